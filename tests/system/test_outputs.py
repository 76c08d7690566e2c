# SPDX-License-Identifier: Apache-2.0
"""What oneway match writes: JSON, CSV, captures of lost and extra packets, plots; against the truth and each other."""
import collections
import csv
import json
import shutil
import unittest

from command import Case, oneway, read_pcap

COUNTS = ("sent", "received", "matched", "lost", "extra", "duplicated", "reordered")


class Json(Case):
    def test_fields_and_numbers(self):
        truth = self.simulate("--loss", 0.02, "--duplicate", 0.01, "--reverse", 0.4, "--router")
        found = json.loads(self.match("--json"))
        self.assertEqual((found["tool"], found["command"]), ("oneway", "match"))
        for side, path in (("a", self.a), ("b", self.b)):
            self.assertEqual(found["inputs"][side]["path"], path)
            self.assertEqual(found["inputs"][side]["packets"], truth["records"][side])
            self.assertEqual(found["inputs"][side]["linktype"], "EN10MB")
            self.assertEqual(found["inputs"][side]["resolution_ns"], 1)
        self.assertEqual(found["identity"], {"level": "ip", "inner": False, "segments": False, "fragments": False, "ip_id": True,
                                             "tcp_numbers": True, "tcp_options": True})
        self.assertEqual((found["clock"]["offset_ns"], found["clock"]["method"]), (0, "none"))
        for way, true in (("a_to_b", truth), ("b_to_a", truth["reverse"])):
            for count in COUNTS:
                self.assertEqual(found[way][count], true[count], (way, count))
            self.assertAlmostEqual(found[way]["loss_ratio"], true["lost"] / true["sent"])
            for key in ("min", "max"):
                self.assertEqual(found[way]["delay_ns"][key], true["delay_ns"][key])
            for key in ("mean", "stddev"):
                self.assertAlmostEqual(found[way]["delay_ns"][key] / true["delay_ns"][key], 1, delta=1e-9)
            self.assertTrue({"0.5", "0.9", "0.99", "0.999"} <= set(found[way]["delay_ns"]["quantiles"]))
            self.assertIs(found[way]["exact"], True)
        self.assertEqual(found["warnings"], [])

    def test_one_direction_is_null_the_other_way(self):
        self.simulate()
        self.assertIsNone(json.loads(self.match("--json"))["b_to_a"])

    def test_intervals(self):
        self.simulate("--loss", 0.02, "--reverse", 0.3)
        found = json.loads(self.match("--json", "--interval", "10ms"))
        self.assertGreaterEqual(len(found["intervals"]), 5)
        starts = [interval["start_ns"] for interval in found["intervals"]]
        self.assertTrue(all(start % 10_000_000 == 0 for start in starts))
        self.assertEqual([b - a for a, b in zip(starts, starts[1:])], [10_000_000] * (len(starts) - 1))

    def test_paths_with_odd_characters(self):
        self.simulate()
        odd = self.path('quote " backslash \\ and \n newline.pcap')
        shutil.copy(self.a, odd)
        done = oneway("match", "--json", odd, self.b)
        self.assertEqual(json.loads(done.stdout)["inputs"]["a"]["path"], odd)


class Csv(Case):
    def test_one_row_for_every_packet(self):
        self.simulate("--loss", 0.03, "--duplicate", 0.02, "--reverse", 0.3, "--b-skip", "5ms")
        found = json.loads(self.match("--json", "--csv", self.path("packets.csv")))
        with open(self.path("packets.csv"), newline="") as f:
            rows = list(csv.DictReader(f))
        fates = collections.Counter((row["fate"], row["direction"]) for row in rows)
        for way in ("a_to_b", "b_to_a"):
            result = found[way]
            self.assertEqual(fates["matched", way], result["matched"])
            self.assertEqual(fates["lost", way], result["lost"])
            self.assertEqual(fates["duplicated", way], result["duplicated"])
            self.assertEqual(fates["extra", way] + fates["duplicated", way], result["extra"])
            delays = [int(row["delay_ns"]) for row in rows if row["fate"] == "matched" and row["direction"] == way]
            self.assertEqual(min(delays), result["delay_ns"]["min"])
            self.assertEqual(max(delays), result["delay_ns"]["max"])
            self.assertAlmostEqual(sum(delays) / len(delays), result["delay_ns"]["mean"], places=3)
        outside = sum(found["outside_overlap"].values())
        self.assertGreater(outside, 0)
        self.assertEqual(len(rows), sum(found[way][k] for way in ("a_to_b", "b_to_a") for k in ("matched", "lost", "extra")) + outside)

    def test_to_standard_output(self):
        self.simulate("--loss", 0.03)
        lines = self.match("--csv", "-").splitlines()
        self.assertTrue(lines[0].startswith("fate,"))
        self.assertEqual(len(lines), 5001)


class Captures(Case):
    """The simulator's packets are all different, and nothing changes them here: bytes tell which is which."""

    def surplus(self, of, over):
        rest = collections.Counter(record.frame for record in read_pcap(over))
        for record in read_pcap(of):
            if rest[record.frame]:
                rest[record.frame] -= 1
            else:
                yield record

    def test_lost_and_extra_packets(self):
        truth = self.simulate("--loss", 0.03, "--duplicate", 0.02)
        said = json.loads(self.match("--json", "--lost", self.path("lost.pcap"), "--extra", self.path("extra.pcap")))
        lost, extra = read_pcap(self.path("lost.pcap")), read_pcap(self.path("extra.pcap"))
        # What was sent just before B's capture ended may have arrived after it.
        outside = said["outside_overlap"]["a"]
        self.assertLess(outside, 10)
        self.assertEqual((len(lost) + outside, len(extra)), (truth["lost"], truth["extra"]))
        self.assertEqual(lost, sorted(self.surplus(self.a, self.b))[: len(lost)])
        self.assertEqual(sorted(extra), sorted(self.surplus(self.b, self.a)))

    def test_both_directions(self):
        truth = self.simulate("--loss", 0.03, "--reverse", 0.4)
        self.match("--lost", self.path("lost.pcap"))
        lost = collections.Counter(record.frame for record in read_pcap(self.path("lost.pcap")))
        self.assertEqual(sum(lost.values()), truth["lost"] + truth["reverse"]["lost"])
        true = [record.frame for one, other in ((self.a, self.b), (self.b, self.a)) for record in self.surplus(one, other)]
        self.assertEqual(lost, collections.Counter(true))

    def test_the_lost_ones_match_what_was_sent(self):
        self.simulate("--loss", 0.05)
        self.match("--lost", self.path("lost.pcap"))
        found = json.loads(oneway("match", "--json", "--window", "1s", self.a, self.path("lost.pcap")).stdout)
        self.assertEqual(found["a_to_b"]["matched"], len(read_pcap(self.path("lost.pcap"))))
        self.assertEqual(found["a_to_b"]["delay_ns"]["max"], 0)


class Plots(Case):
    def test_svg(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is not installed")
        self.simulate("--loss", 0.02, "--reverse", 0.3)
        self.match("--plot", self.path("delay.svg"))
        with open(self.path("delay.svg")) as f:
            text = f.read()
        self.assertIn("<svg", text)
        self.assertIn("</svg>", text)
        self.assert_refused(oneway("match", "--plot", self.path("delay.doc"), self.a, self.b), 2, "--plot")


class Simulate(Case):
    def test_the_same_seed_gives_the_same_bytes(self):
        first = {}
        for turn in range(2):
            self.simulate("--seed", 5, "--loss", 0.01, "--reverse", 0.2)
            for path in (self.a, self.b, self.path("truth.json")):
                with open(path, "rb") as f:
                    data = f.read()
                self.assertEqual(first.setdefault(path, data), data, turn)


if __name__ == "__main__":
    unittest.main()
