# SPDX-License-Identifier: Apache-2.0
"""Live results against captures taken at both hosts during the run: `oneway match` finds the same packets, and the same mean.

Every run has UDP both ways, TCP with offloads on, and packets that are held back over the ends of intervals."""
import concurrent.futures
import json
import shutil
import sys
import unittest

from command import Case, oneway
from test_lab import permitted

# loss, interval, seconds of traffic. Intervals of 10 s: the traffic crosses the end of one.
RUNS = [(loss, interval, 2) for loss in ("0", "0.01%", "1%", "10%") for interval in ("100ms", "1s")] + [("1%", "10s", 11)]
# Labs at a time: each has namespaces of its own, and the traffic is light.
AT_ONCE = 3
MEAN_NS = 100


class Captures(Case):
    def run_lab(self, loss, interval, seconds):
        folder = self.path(f"{loss}-{interval}")
        done = oneway("lab", "--json", "--seconds", seconds, "--loss", loss, "--interval", interval, "--rate", 1000, "--reverse", 0.3,
                      "--reorder", "0.1,50ms", "--bandwidth", "20M", "--keep-captures", folder, timeout=150)
        self.assertEqual(done.returncode, 0, done.stderr)
        match = oneway("match", "--json", "--window", "1s", f"{folder}/a.pcap", f"{folder}/b.pcap")
        self.assertEqual(match.returncode, 0, match.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()], json.loads(match.stdout)

    def check(self, lines, found):
        summary = lines.pop()["summary"]
        for line in lines:
            result = line["result"]
            self.assertEqual(result["status"], "measured", result)
            self.assertEqual(result["sent"], result["matched"] + result["late"] + result["lost"])
            self.assertEqual(result["received"], result["matched"] + result["late_received"] + result["extra"])
        self.assertEqual((summary["wire"]["missed"], summary["wire"]["kernel_drops"]), (0, 0))
        for way, pair in (("a_to_b", summary), ("b_to_a", summary["b_to_a"])):
            live, true, exact = pair["result"], pair["truth"], found[way]
            for count in ("sent", "matched", "lost", "extra", "received"):
                self.assertEqual(live[count], true[count], (way, count))
            # match does not count what was lost behind the last packet of a capture: it could have come after its end.
            outside = sum(found["outside_overlap"].values())
            self.assertEqual(live["matched"], exact["matched"], way)
            self.assertIn(live["lost"] - exact["lost"], range(outside + 1), way)
            self.assertEqual(live["sent"] - exact["sent"], live["lost"] - exact["lost"], way)
            self.assertGreater(live["samples"], 0)
            # Identical packets (acknowledgements that repeat) whose copies lie in two intervals are ambiguous in other numbers.
            if live["ambiguous"] == exact["ambiguous"]:
                self.assertAlmostEqual(live["delay_ns"]["mean"], exact["delay_ns"]["mean"], delta=MEAN_NS)
            else:
                self.assertLess(abs(live["ambiguous"] - exact["ambiguous"]), 0.05 * live["matched"])
                self.assertAlmostEqual(live["delay_ns"]["mean"] / exact["delay_ns"]["mean"], 1, delta=0.05)

    def test_all(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            runs = {run: pool.submit(self.run_lab, *run) for run in RUNS}
        for run, done in runs.items():
            with self.subTest(loss=run[0], interval=run[1]):
                self.check(*done.result())


if __name__ == "__main__":
    for program in ("tcpdump", "iperf3"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    if not permitted():
        print("skipped: network namespaces are not permitted here (they need root)")
        sys.exit(77)
    unittest.main()
