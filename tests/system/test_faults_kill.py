# SPDX-License-Identifier: Apache-2.0
"""kill -9 of either point at random moments: what was stored stays, at most one interval a time is lost beyond those in which
the point was not there, and nothing of it looks like packet loss."""
import random
import time

import faults

SEED = 20261115
KILLS = 50 if faults.LONG else 6


class Kill(faults.Case):
    interval_ms = 500
    wait_ms = 500

    def test_kills(self):
        rng = random.Random(SEED)
        self.build(loss=0.01, seed=SEED)
        self.begin_both()
        away = {"london": [], "paris": []}  # when which point did not measure, by the clock of this machine
        for _ in range(KILLS):
            victim = rng.choice(("london", "paris"))
            time.sleep(rng.uniform(0.2, 3))
            began = time.time_ns()
            agreements = self.at[faults.other(victim)].log.count("agreed on")
            self.kill(victim)
            self.begin(victim)
            self.agreed(victim)
            away[victim].append((began, self.start_of(victim)))
        stores = self.end()
        self.show(f"seed {SEED}: {KILLS} kills, {len(away['london'])} of london", stores)
        for name, store in stores.items():
            for sender, rows in store.lanes.items():
                self.check_lost(name, sender, rows, away)

    def start_of(self, name):
        """When both lanes that were agreed on last begin."""
        found = self.at[name].wait_for(r"agreed on .* from (\S+)Z,", 2)
        text, ms = found.group(1).split(".")
        import calendar

        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")) * faults.SECOND + int(ms) * faults.MS

    def check_lost(self, name, sender, rows, away):
        """Outside of the times in which nobody could measure, at most one interval a kill is not measured."""
        spans = sorted(away["london"] + away["paris"])
        outside = [r for r in rows if not any(r.start < until and r.start + r.length > began for began, until in spans)]
        for began, until in spans:
            near = [r for r in outside if r.status != "measured" and began - 2 * faults.SECOND < r.start + r.length <= began]
            self.assertLessEqual(len(near), 1, (name, sender, began, near))
        bad = [r for r in outside if r.status != "measured"]
        # The last ones may be partial: the run ends.
        bad = [r for r in bad if r.start + r.length <= spans[-1][1]]
        self.assertLessEqual(len(bad), len(spans), (name, sender, bad))


if __name__ == "__main__":
    faults.main()
