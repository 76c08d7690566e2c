# SPDX-License-Identifier: Apache-2.0
"""oneway live on captures that begin and end anywhere: what a file cannot show, because it has ended, is not lost.

Each case cuts one or both of two simulated captures at random places. Three witnesses: the captures themselves, read here packet by packet;
the whole captures, which know what arrived after the cut; and oneway match. CASES=N runs more of them, SEED=N others."""
import json
import os
import random
import unittest

import command
import points

CASES = int(os.environ.get("CASES", "24"))
SEED = int(os.environ.get("SEED", "1"))
# Delays as shares of the time between cuts, from much shorter than an interval to longer.
DELAYS = ("weibull:200us,0.8", "normal:5ms,1ms", "constant:20ms", "weibull:15ms,2")
WAITS = ("60ms", "300ms")  # the longest delay of 4000 packets is 60 ms, once in 2000 runs
PACKETS, RATE = 4000, 10000  # 0.4 s


class Cut(points.Case):
    def cut(self, records, generator, path):
        """Keeps the records from some place to another one, in the middle half of them at least. None: as it is."""
        kind = generator.choice(("whole", "head", "tail", "both"))
        first = generator.randrange(len(records) // 3) if kind in ("tail", "both") else 0
        last = len(records) - (generator.randrange(1, len(records) // 2) if kind in ("head", "both") else 0)
        with open(path, "rb") as f:
            data = f.read()
        sizes = [16 + len(r.frame) for r in records]
        begin = 24 + sum(sizes[:first])
        with open(path, "wb") as f:
            f.write(data[:24] + data[begin : begin + sum(sizes[first:last])])

    def live(self, interval, wait):
        done = command.oneway("live", "--from", self.a, "--to", self.b, "--forward", "src net 10.0.0.0/9", "--speed", 0, "--json",
                              "--interval", interval, "--wait", wait, "--scope", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            if "status" in line:
                self.assert_conserved(line)
        return [line for line in lines if "status" in line and line["final"]], [line["summary"] for line in lines if "summary" in line]

    def check_way(self, forward, results, total, found, whole, kept):
        """One direction, against the packets of the files as they are now."""
        here, there = ("a", "b") if forward else ("b", "a")
        start = max(min(kept.at[side].values()) for side in "ab")
        end = min(max(kept.at[side].values()) for side in "ab") + 1
        sent = [f for f, t in kept.at[here].items() if kept.goes_forward(f) == forward and start <= t < end]
        arrived = sum(f in kept.at[there] for f in sent)
        gone = sum(f not in whole.at[there] for f in sent)
        self.assertEqual(total["sent"], len(sent))
        self.assertEqual(total["matched"], arrived)
        # On their way when the sender's capture began, so that nobody saw them sent.
        self.assertEqual(total["extra"], sum(start <= t < end and f not in kept.at[here] for f, t in kept.at[there].items()
                                             if kept.goes_forward(f) == forward))
        self.assertEqual(total["lost"] + total["pending"], len(sent) - arrived)
        # What arrived after the cut is not lost, nor is more lost than match finds.
        self.assertLessEqual(total["lost"], gone)
        self.assertLessEqual(total["lost"], found["lost"] if found else 0)
        # match also counts what was sent before both captures had begun, and was seen by both.
        if found:
            self.assertLessEqual(total["matched"], found["matched"])
        self.assertEqual(sum(r["sent"] for r in results), total["sent"])
        self.assertEqual(sum(r["lost"] for r in results), total["lost"])
        self.assertEqual(sum(r["pending"] for r in results), total["pending"])
        return total["lost"], total["pending"], gone

    def test_random_cuts(self):
        lost = pending = gone = 0
        for case in range(CASES):
            seed = SEED * 1000 + case
            generator = random.Random(seed)
            delay, interval, wait = (generator.choice(of) for of in (DELAYS, ("10ms", "100ms", "1s"), WAITS))
            with self.subTest(seed=seed, delay=delay, interval=interval, wait=wait):
                self.simulate("--rate", RATE, "--loss", generator.choice((0, 0.01, 0.1)), "--delay", delay, "--reverse", 0.4, "--seed", seed,
                              packets=PACKETS)
                whole = points.Sight(self.a, self.b)
                for path in (self.a, self.b):
                    self.cut(command.read_pcap(path), generator, path)
                kept = points.Sight(self.a, self.b)
                results, totals = self.live(interval, wait)
                found = json.loads(self.match("--json", "--window", wait))
                for total in totals:
                    way = total["from"] == "a.pcap"
                    lane = [r for r in results if r["from"] == total["from"]]
                    counts = self.check_way(way, lane, total, found["a_to_b" if way else "b_to_a"], whole, kept)
                    lost, pending, gone = lost + counts[0], pending + counts[1], gone + counts[2]
        print(f"seed {SEED}: {CASES} cases, {gone} packets were lost, {lost} are said to be, {pending} undecided")
        # Most of what is lost is found nevertheless.
        self.assertGreater(lost, gone / 2)


if __name__ == "__main__":
    unittest.main()
