# SPDX-License-Identifier: Apache-2.0
"""Two points that replay the two captures of a simulation: results are the truth, whatever happens to the connection."""
import os
import sqlite3
import time
import unittest

import command
import points

PARIS = """point: paris
listen: 127.0.0.1:0
{keys}interfaces: [{{file: b.pcap, speed: {speed}}}]
store: paris.db
segments:
  - {{name: x, peer: {peer}, to_peer: not src net 10.0.0.0/8{more}}}
"""
LONDON = """point: london
{keys}interfaces: [{{file: a.pcap, speed: {speed}}}]
segments:
  - {{name: x, peer: {peer}, connect: "127.0.0.1:{port}", to_peer: src net 10.0.0.0/8{more}}}
"""


class Replay(points.Case):
    horizon = 2  # intervals of waiting time, in the tests whose results are checked

    # Captures end well within an interval, so that it is the same one at both points.
    def traffic(self, *args, packets=16800, rate=4000):
        self.simulate("--rate", rate, "--reverse", 0.4, "--loss", 0.01, "--delay", "weibull:5ms,0.7", "--seed", 11, *args, packets=packets)
        self.sight = points.Sight(self.a, self.b)

    def pair(self, keys="psk", speed=1, cable=False, london="", paris="", peer="paris", segment="x", memory="64MiB"):
        """Both points. london, paris: further keys of the segment; peer, segment: their names in london's eyes."""
        lines = self.keys(keys)
        config = f"memory: {memory}\n" + PARIS.format(keys=lines("paris"), speed=speed, more=paris, peer="london")
        there = self.start(self.write("paris.yaml", config))
        port = int(there.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1))
        if cable:
            self.cable = points.Cable(port)
            self.addCleanup(self.cable.close)
            port = self.cable.port
        config = LONDON.format(keys=lines("london"), speed=speed, more=london, port=port, peer=peer).replace("name: x", f"name: {segment}")
        return self.start(self.write("london.yaml", config)), there

    def check(self, results):
        """Final results are the truth, every interval of both directions once, without gaps. Returns their sums."""
        sums = {}
        for r in results:
            self.assert_conserved(r)
        final = [r for r in results if r["final"]]
        for way in ("london", "paris"):
            lane = [r for r in final if r["from"] == way]
            self.assertEqual([r["interval"] for r in lane], list(range(len(lane))))
            self.assertGreater(len(lane), 4)
            for r in lane:
                self.check_result(r, way == "london", r["interval"] + self.horizon >= len(lane))
            sums[way] = {k: sum(r[k] for r in lane) for k in ("sent", "matched", "late", "lost", "pending", "extra")}
            # All but the interval in which the first of the captures ends.
            last = min(max(at.values()) for at in self.sight.at.values())
            self.assertGreater(lane[-1]["start_ns"] + 2 * lane[-1]["length_ns"], last)
        return sums

    def check_result(self, r, forward, near_end):
        """At the end packets that are on their way stay pending; all others are decided."""
        truth = self.sight.truth(forward, r["start_ns"], r["length_ns"])
        self.assertEqual(r["status"], "partial" if near_end and r["pending"] else "measured", r)
        arrived = r["matched"] + r["late"]
        self.assertEqual(r["sent"], truth.sent, r)
        if near_end and r["pending"]:
            self.assertLessEqual(r["pending"], 40, r)
            self.assertLessEqual(arrived, truth.arrived, r)
            self.assertLessEqual(r["lost"], truth.lost, r)
            return
        self.assertEqual((arrived, r["lost"], r["pending"]), (truth.arrived, truth.lost, 0), r)
        self.assertAlmostEqual(r["delay_ns"]["mean"], truth.mean_ns, delta=1)

    def finals(self, results):
        return {(r["from"], r["interval"]): (r["sent"], r["matched"], r["late"], r["lost"], r["pending"]) for r in results if r["final"]}

    def check_both(self, london, paris):
        here, summary = london.end()
        there, _ = paris.end()
        self.assertEqual((london.code, paris.code), (0, 0), london.log + paris.log)
        sums = self.check(here)
        self.check(there)
        # Both points have the same results.
        self.assertEqual(self.finals(here), self.finals(there))
        self.assertEqual(len(summary), 2)
        for s in summary:
            want = sums[s["from"]]
            self.assertEqual(
                (s["sent"], s["matched"], s["lost"], s["pending"]), (want["sent"], want["matched"] + want["late"], want["lost"], want["pending"])
            )
        return here, there

    def test_psk_both_directions(self):
        self.traffic()
        london, paris = self.pair(london=", interval: 500ms, wait: 1s")
        here, there = self.check_both(london, paris)
        self.assertTrue(any(r["late"] for r in here))
        with sqlite3.connect(self.path("paris.db")) as db:
            tables = [row[0] for row in db.execute("select name from sqlite_master where type = 'table'")]
            self.assertIn("result", " ".join(tables))

    def test_certificates_rda_classes(self):
        self.traffic(packets=28800)
        london, paris = self.pair(
            keys="certificates", speed=2, london=", interval: 1s, method: rda, classes: [{name: tcp, filter: tcp}, {name: udp, filter: udp}]"
        )
        here, _ = london.end()
        paris.end()
        self.assertEqual((london.code, paris.code), (0, 0), london.log + paris.log)
        for r in here:
            self.assert_conserved(r)
        # The two classes are all packets.
        total = {}
        for r in here:
            if r["final"] and r["status"] != "unknown":
                key = (r["from"], r["start_ns"], r["length_ns"])
                total.setdefault(key, []).append((r["class"], r["sent"]))
        complete = 0
        for (way, start, length), parts in total.items():
            if sorted(p[0] for p in parts) == ["tcp", "udp"]:
                self.assertEqual(sum(p[1] for p in parts), self.sight.truth(way == "london", start, length).sent)
                complete += 1
        self.assertGreaterEqual(complete, 4)

    def test_nothing_in_common(self):
        """Every packet lost and as many extra: that is a mistake, and the log says which one it probably is."""
        self.simulate("--rate", 4000, "--reverse", 0.4, "--seed", 12, packets=16800)
        os.rename(self.b, self.path("kept.pcap"))
        self.simulate("--rate", 4000, "--reverse", 0.4, "--seed", 13, packets=16800)
        os.rename(self.path("kept.pcap"), self.b)
        london, paris = self.pair(london=", interval: 500ms, wait: 500ms")
        london.wait_for(r"no packet at \w+ is one of \w+: NAT \(identity\), tunnel \(inner\), or wrong facing\?", count=2)
        results, _ = london.end()
        paris.end()
        self.assertEqual(london.log.count("is one of"), 2, london.log)
        for r in results:
            self.assertFalse(r["lost"], r)

    def test_cut_connection(self):
        """An agreement outlives its connection: nothing is lost, and nothing is agreed on anew."""
        self.traffic(packets=20400)
        london, paris = self.pair(cable=True, london=", interval: 250ms, wait: 500ms")
        london.wait_for("agreed on", 2)
        time.sleep(1.2)
        self.cable.cut()
        london.wait_for("connection lost")
        time.sleep(0.4)
        self.cable.plug()
        london.wait_for("connected again")
        self.check_both(london, paris)
        self.assertEqual(london.log.count("agreed on"), 2)
        self.assertEqual(paris.log.count("agreed on"), 2)
        self.assertGreaterEqual(self.cable.connections, 2)

    def test_memory(self):
        """Beyond the budget packets are sampled, both points alike; all are counted."""
        self.traffic()
        london, paris = self.pair(memory="1MiB", london=", interval: 1s, wait: 1s")
        here, _ = london.end()
        paris.end()
        self.assertEqual((london.code, paris.code), (0, 0), london.log + paris.log)
        lane = [r for r in here if r["final"] and r["from"] == "london"]
        self.assertGreaterEqual(len(lane), 2)
        for r in lane:
            truth = self.sight.truth(True, r["start_ns"], r["length_ns"])
            self.assert_conserved(r)
            self.assertGreaterEqual(r["sample"]["shift"], 1, r)
            self.assertEqual(r["sample"]["total_sent"], truth.sent)
            # Of a binomial sample, 6 standard deviations.
            share = 0.5 ** r["sample"]["shift"]
            self.assertAlmostEqual(r["sent"], truth.sent * share, delta=6 * (truth.sent * share * (1 - share)) ** 0.5)
            self.assertLessEqual(r["lost"], truth.lost)

    def refused(self, here, there, **pair):
        """Both points log why, and nothing is measured."""
        with self.subTest(here):
            london, paris = self.pair(**pair)
            london.wait_for(here)
            paris.wait_for(there)
            for p in (london, paris):
                p.stop()
                results, _ = p.end()
                self.assertEqual((p.code, results), (0, []), p.log)

    def test_refusals(self):
        self.traffic(packets=8000, rate=1000)
        self.refused("paris: refuses x/all to paris: interval is 2 s here and 1 s there", "refused: interval is 2 s", paris=", interval: 2s")
        self.refused("refuses x/all from paris: method is fold here and rda there", "refused: method", london=", method: rda", paris=", method: fold")
        self.refused("refuses x/web to paris: no class 'web' here", "no class 'web'", london=", classes: [{name: web}]", paris=", classes: [{name: all}]")
        self.refused("refuses us: both points connect", "refused: both points connect", paris=', connect: "127.0.0.1:9"')
        self.refused("cannot connect: .*oslo", "refused", peer="oslo")
        self.refused("refuses y/all to paris: no segment 'y' here", "refused: no segment 'y'", segment="y")

    def test_another_key(self):
        self.traffic(packets=8000, rate=1000)
        london, paris = self.pair(keys="certificates")
        london.wait_for("agreed on", 2)
        london.stop()
        paris.stop()
        london.end()
        paris.end()
        # The point at the address proves another name than the segment's peer.
        os.replace(self.path("rome.pem"), self.path("paris.pem"))
        os.replace(self.path("rome.key"), self.path("paris.key"))
        done = command.oneway("point", "-c", self.path("paris.yaml"), "--seconds", 1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("rome", done.stderr)


class Configuration(command.Case):
    """--check-config and the command line."""

    TEXT = "point: london\npsk: lab.psk\ninterfaces: [{name: lo}]\nsegments:\n  - name: x\n    peer: paris\n    connect: 127.0.0.1:8620\n"

    def setUp(self):
        super().setUp()
        self.assertEqual(command.oneway("point", "keygen", "--psk", self.path("lab.psk")).returncode, 0)

    def config(self, text):
        with open(self.path("t.yaml"), "w") as f:
            f.write(text)
        return self.path("t.yaml")

    def test_check(self):
        done = command.oneway("point", "-c", self.config(self.TEXT), "--check-config")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("point      london", "interface  lo", "segment    x: peer paris, connects to 127.0.0.1:8620", "class all", "scope shared", "clock auto"):
            self.assertIn(text, done.stdout)

    def test_wrong(self):
        done = command.oneway("point", "-c", self.config(self.TEXT + "    intervall: 1s\n"), "--check-config")
        self.assert_refused(done, 1, "t.yaml:8: unknown key 'intervall' in segment 'x', did you mean 'interval'?")
        os.chmod(self.path("lab.psk"), 0o644)
        self.assert_refused(command.oneway("point", "-c", self.config(self.TEXT), "--check-config"), 1, "others than its owner may use it")

    def test_keys_are_tried(self):
        self.assertEqual(command.oneway("point", "keygen", "--folder", self.path("."), "london").returncode, 0)
        keys = "certificate: london.pem\nkey: london.key\nca: ca.pem\n"
        self.assertIn("psk: lab.psk\n", self.TEXT)
        text = self.TEXT.replace("psk: lab.psk\n", keys)
        self.assertEqual(command.oneway("point", "-c", self.config(text), "--check-config").returncode, 0)
        text = text.replace("point: london", "point: berlin")
        done = command.oneway("point", "-c", self.config(text), "--check-config")
        self.assert_refused(done, 1, "is for 'london', but this point is 'berlin'")

    def test_usage(self):
        self.assert_refused(command.oneway("point"), 2, "needs -c FILE")
        self.assert_refused(command.oneway("point", "-c", "x", "--json", "--quiet"), 2, "exclude each other")
        self.assert_refused(command.oneway("point", "-c", "x", "y"), 2, "unexpected 'y'")
        self.assert_refused(command.oneway("point", "-c", "/nonexistent"), 1, "/nonexistent: No such file")
        self.assertEqual(command.oneway("point", "--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
