# SPDX-License-Identifier: Apache-2.0
"""kill -9 of either point at random moments: what was stored stays, at most one interval a time is lost beyond those in which
the points could not measure, and nothing of it looks like packet loss."""
import calendar
import random
import time

import faults

SEED = 20261115
KILLS = 50 if faults.LONG else 3


class Kill(faults.Case):
    interval_ms = 500
    wait_ms = 500

    def test_kills(self):
        rng = random.Random(SEED)
        self.build(loss=0.01, seed=SEED)
        self.begin_both()
        runs = []  # from the first interval to the kill, by the clock of this machine
        for _ in range(KILLS):
            start = self.start_of("london")
            # Moments in which nothing is measured yet are among them.
            time.sleep(rng.uniform(0, 4))
            victim = rng.choice(("london", "paris"))
            runs.append((start, time.time_ns(), victim))
            self.kill(victim)
            agreements = 0 if victim == "london" else self.at["london"].log.count("agreed on")
            self.begin(victim)
            self.at["london"].wait_for("agreed on", agreements + 2)
        stores = self.end()
        self.show(f"seed {SEED}: {KILLS} times kill -9, {sum(v == 'london' for _, _, v in runs)} of london", stores)
        for name, store in stores.items():
            for sender, rows in store.lanes.items():
                for start, killed, _ in runs:
                    self.check_run(name, sender, [r for r in rows if r.start >= start and r.start + r.length <= killed], killed)

    def start_of(self, name):
        """When the lanes that were agreed on last begin."""
        text, ms = self.at[name].log.rsplit("Z, fold", 1)[0].rsplit(" ", 1)[1].split(".")
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) * faults.SECOND + int(ms) * faults.MS

    def check_run(self, name, sender, rows, killed):
        """Of the intervals that were over when one of the points was killed at most the last one is unknown, or as many as were over
        for less time than other results took. The one before may still have had packets on their way: they stay undecided, a few of
        all, unless the wire was held up."""
        # A machine that is too busy for a ring is another matter.
        rows = [r for r in rows if not (r.drops_from or r.drops_to)]
        took = max((r.ready or 0 for r in rows), default=0)
        stored = [r for r in rows[:-1] if r.status != "unknown" or r.start + r.length + 2 * took < killed]
        for i, r in enumerate(reversed(stored)):
            if i == 0 and r.status == "partial":
                self.assertTrue(r.pending < 0.1 * r.sent or self.held_up(sender, r), (name, sender, r))
            else:
                self.assertEqual(r.status, "measured", (name, sender, rows))


if __name__ == "__main__":
    faults.main()
