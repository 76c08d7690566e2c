#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A segment with several peers: the packets are divided among two or more routers with a point on each, by flow or by packet.
A packet is lost if none of them got it. nft counts what each way lost.

Without arguments all tests run, several networks at a time."""
import os
import signal
import sys
import time

import networks
import points
import test_networks
from test_networks import RATE, SECONDS, brief, stream

LONDON = """point: london
psk: lab.psk
listen: 0.0.0.0:8620
interfaces: [{{name: eth0}}]
segments:
  - name: ways
    peers: [{peers}]
{more}"""
PARIS = """point: {name}
psk: lab.psk
listen: 0.0.0.0:8620
interfaces: [{{name: {interface}}}]
segments:
  - name: ways
    peer: london
{more}"""
LISTENS = "    connect: 10.0.2.1:8620\n"


def connects(count):
    return "    connect: {" + ", ".join(f"paris{n}: 10.0.{n + 2}.2:8620" for n in range(1, count + 1)) + "}\n"


class Case(test_networks.Case):
    def ways(self, per_packet, ways="bc", **options):
        """A network; self.way has the router of each peer, self.all the name of all peers together."""
        self.way = {f"paris{n}": way for n, way in enumerate(ways, 1)}
        self.all = "+".join(self.way)
        return self.network(networks.Ways, per_packet, ways, **options)

    def truth(self, n, name):
        """The counters of what left for this peer, and was dropped on its way."""
        counters = {**n.counters("m"), **(n.counters("n") if "n" in n.where else {})}
        way = self.way[name]
        return counters[way], counters.get("lost_" + way, 0)

    def lose(self, n, way, what):
        """nft drops packets on one way, and counts them."""
        n.nft("n" if "n" in n.where and way != "b" else "m", f"table ip loss_{way} {{\n counter lost_{way} {{}}\n chain f {{\n type filter hook forward priority 0;\n"
                   f" oifname to_{way} ip daddr 10.2.0.0/16 {what} counter name lost_{way} drop\n }}\n}}\n")

    def start(self, n, name):
        point = points.Point(self.path(name + ".yaml"), prefix=n.prefix(self.way.get(name, "a")))
        self.points.append(point)
        self.point[name] = point
        return point

    def begin(self, n, more=None, streams=(), interfaces=()):
        """interfaces: of peers whose interface is not eth0."""
        more = more or (connects(len(self.way)), "")
        self.keys("psk")
        self.point = {}
        self.write("london.yaml", LONDON.format(peers=", ".join(self.way), more=more[0]))
        for name in self.way:
            self.write(name + ".yaml", PARIS.format(name=name, interface=dict(interfaces).get(name, "eth0"), more=more[1]))
            self.start(n, name).wait_for("listening on")
        self.start(n, "london")
        for number, (host, list_of) in enumerate(streams):
            n.source(host, list_of, number + 1)
        for name in self.way:
            self.point[name].wait_for_intervals()
        self.point["london"].wait_for_intervals(2 * len(self.way))
        n.go()

    def end(self, n):
        n.wait()
        time.sleep(3.5)
        for point in self.point.values():
            point.stop()
        self.results, self.sums = {}, {}
        for name, point in self.point.items():
            self.results[name], self.sums[name] = point.end()
        if os.environ.get("SHOW"):
            for to in (self.all, *self.way):
                print(to, *brief(self.lane(to)), sep="\n")
            print(self.point["london"].log, self.point["paris1"].log)

    def lane(self, to, at="london", sender="london"):
        """Final results."""
        return [r for r in self.results[at] if r["from"] == sender and r["to"] == to and r["final"]]

    def check(self, sent):
        """What must hold whatever happened."""
        for results in self.results.values():
            for r in results:
                self.assert_conserved(r)
        for name in self.way:
            for at in ("london", name):
                for r in self.lane(name, at):
                    if r["status"] != "unknown":
                        self.assertEqual((r["lost"], r["loss_ratio"]), (0, None), r)
        union = self.lane(self.all)
        starts = [r["start_ns"] for r in union]
        self.assertEqual(starts, sorted(set(starts)))
        for a, b in zip(starts, starts[1:]):
            self.assertEqual(b - a, 10**9, starts)
        for r in union:
            self.assertIsNone(r["delay_ns"]["mean"], r)
        # Each lane leaves out its own session only: that with the other peer is unshared.
        if all(r["status"] == "measured" for r in union):
            self.assertEqual(sum(r["sent"] for r in union), sent, brief(union))
            self.assertLess(sum(r["unshared_sent"] for r in union), 20 * len(self.way) * len(union), brief(union))
        return union


class Divided(Case):
    def run_ways(self, per_packet, loss=None, more=None, ways="bc", nested=False, **how):
        n = self.ways(per_packet, ways, nested=nested)
        for way in ways[1:] if loss else "":
            self.lose(n, way, loss)
        self.begin(n, more, [("s", [stream("10.2", flows=200, **how)]), ("t", [stream("10.1", "10.2", count=1000, rate=250)])])
        self.end(n)
        truth = {name: self.truth(n, name) for name in self.way}
        lost = sum(dropped for _, dropped in truth.values())
        union = self.check(RATE * SECONDS)
        # What the first intervals had is not known: the lanes begin one after the other, and a host that is held up does not answer yet.
        known = [r for r in union if r["matched"]]
        self.assert_measured(known)
        found, pending = self.total(known, "lost", "pending")
        self.assertEqual(self.total(known, "sent", "extra"), [RATE * SECONDS, 0], brief(union))
        self.assertTrue(lost - pending <= found <= lost and pending < 20, brief(union))
        for name, (count, _) in truth.items():
            for at in ("london", name):
                lane = self.lane(name, at)
                # The sessions with the other peers go on until the end.
                self.assert_measured([r for r in lane if r["matched"] and r.get("cause_code") != "undecided_ended"])
                self.assertEqual(sum(self.total(lane, "matched", "late")), count, brief(lane))
                self.assertEqual(self.total(lane, "extra"), [0], brief(lane))
                self.assertTrue(all(r["delay_ns"]["mean"] for r in lane if r["matched"] > 100), lane)
        self.assertGreater(min(count for count, _ in truth.values()), RATE * SECONDS / len(ways) / 2.5)
        for name in self.way:
            self.assertEqual(self.total(self.lane("london", "london", name), "lost"), [0])
        self.assertNotIn("load sharing", self.point["london"].log)
        return union, lost

    def test_by_flow(self):
        self.run_ways(False)

    def test_by_packet(self):
        self.run_ways(True)

    def test_by_flow_with_loss(self):
        _, lost = self.run_ways(False, "numgen inc mod 40 0")
        self.assertGreater(lost, 10)

    def test_by_packet_with_loss(self):
        """The peers connect, and choose the seeds, until london tells them others."""
        _, lost = self.run_ways(True, "numgen inc mod 40 0", ("", LISTENS))
        self.assertEqual(lost, RATE * SECONDS // 80)

    def test_three_by_flow(self):
        _, lost = self.run_ways(False, "numgen inc mod 40 0", ways="bcd")
        self.assertGreater(lost, 10)

    def test_three_by_packet(self):
        _, lost = self.run_ways(True, "numgen inc mod 40 0", ways="bcd")
        self.assertGreater(lost, 10)

    def test_nested(self):
        """Half of the packets pass b; the others are divided again, among c, d and e."""
        _, lost = self.run_ways(True, "numgen inc mod 20 0", ways="bcde", nested=True)
        self.assertGreater(lost, 10)

    def test_nested_by_flow(self):
        """By flow among b and others, and those by packet."""
        self.run_ways(False, ways="bcd", nested=True)

    def test_one_way_is_long(self):
        """150 ms by c: paris2 shifts its intervals, paris1 does not."""
        n = self.ways(True, slow=(0.15, 0.01))
        self.lose(n, "b", "numgen inc mod 50 0")
        self.begin(n, streams=[("s", [stream("10.2", count=5000, rate=500)])])
        self.end(n)
        union = self.check(5000)
        lost, pending, extra = self.total(union, "lost", "pending", "extra")
        self.assertEqual((lost, extra), (n.counters("m")["lost_b"], 0), brief(union))
        # paris2 connects later: what the first intervals had is not known.
        self.assert_measured([r for r in union if r["matched"]])
        self.assertLess(pending, 20)

    def test_changed_on_one_way(self):
        """By c packets get another IP id. They are undecided until paris2 finds that out, and paris1 follows."""
        n = self.ways(True)
        n.nft("m", "table ip rewrite {\n chain p {\n type filter hook postrouting priority 0;\n oifname to_c ip daddr 10.2.0.0/16 ip id set 7\n }\n}\n")
        self.begin(n, streams=[("s", [stream("10.2", count=5000, rate=500, flows=50)])])
        self.end(n)
        union = self.check(5000)
        self.assertEqual(self.total(union, "lost"), [0], brief(union))
        for r in union:
            if r["status"] == "partial":
                self.assertRegex(r["cause"], "changed on the way|another identity|not known of all peers|is unknown|no answer")
        self.assertEqual([r["status"] for r in union if r["sent"]][-2:], ["measured"] * 2, brief(union))

    def test_scope_all(self):
        n = self.ways(True)
        self.lose(n, "b", "numgen inc mod 50 0")
        self.begin(n, (connects(2) + "    scope: all\n    classes: [{name: udp, filter: udp}]\n", ""), [("s", [stream("10.2")])])
        self.end(n)
        union = self.check(RATE * SECONDS)
        self.assert_measured([r for r in union if r["sent"]])
        self.assertEqual(self.total(union, "lost", "extra", "unshared_sent"), [n.counters("m")["lost_b"], 0, 0], brief(union))

    def test_identical(self):
        """All packets are the same: which copy went where nobody knows, but how many."""
        n = self.ways(True)
        self.lose(n, "c", "udp length 80 numgen inc mod 9 0")
        self.begin(n, streams=[("s", [stream("10.2", count=817, rate=200, same=True, id=1, df=0x4000), stream("10.2", count=410, rate=100, size=300)])])
        self.end(n)
        union = self.check(817 + 410)
        lost = n.counters("m")["lost_c"]
        self.assertEqual(self.total(union, "extra"), [0], brief(union))
        if all(r["status"] == "measured" for r in union):
            self.assertEqual(self.total(union, "lost"), [lost], brief(union))
        else:
            self.assertLessEqual(self.total(union, "lost")[0], lost, brief(union))


class SeveralGet(Case):
    """Packets reach several peers: each is one match, and the others of it are duplicates."""

    def flood(self, **options):
        """m sends a copy to c of what goes to b, but not where the IP id modulo 16 is 3 or 11; on the way to b those with 3 and 5 are
        dropped: packets with 3 are lost, those with 5 reach c only."""
        n = self.ways(False, **options)
        n.route("m", "10.2.0.0/16 via 10.0.3.2")
        n.nft("m", "table ip flood {\n chain p {\n type filter hook prerouting priority -300;\n"
                   " ip daddr 10.2.0.0/16 ip id & 7 != 3 dup to 10.0.4.2 device to_c\n }\n}\n")
        n.nft("m", "table ip loss {\n counter none {}\n counter other {}\n chain f {\n type filter hook forward priority 0;\n"
                   " ip daddr 10.2.0.0/16 ip id & 15 == 3 counter name none drop\n ip daddr 10.2.0.0/16 ip id & 15 == 5 counter name other drop\n }\n}\n")
        self.begin(n, streams=[("s", [stream("10.2", flows=50)])])
        self.end(n)
        counters = n.counters("m")
        union = self.check(RATE * SECONDS)
        self.assertEqual(counters["b"] + counters["other"] + counters["none"], RATE * SECONDS)
        self.assertGreater(min(counters["other"], counters["none"]), 200)
        return union, counters

    def assert_copies(self, union, copies):
        """A copy that comes after the interval of its packet is extra, not duplicated: a packet or two at the end of each interval."""
        self.assertEqual(self.total(union, "extra"), [copies], brief(union))
        duplicated = self.total(union, "duplicated")[0]
        self.assertLessEqual(duplicated, copies, brief(union))
        self.assertGreaterEqual(duplicated, copies - 2 * len(union), brief(union))

    def test_flooded(self):
        union, counters = self.flood()
        self.assert_measured([r for r in union if r["sent"]])
        self.assertEqual(self.total(union, "lost"), [counters["none"]], brief(union))
        self.assert_copies(union, counters["c"] - counters["other"])
        for name, way in self.way.items():
            self.assertEqual(sum(self.total(self.lane(name), "matched", "late")), counters[way], brief(self.lane(name)))

    def test_flooded_long_way(self):
        """The copies take 150 ms: some are in a later interval."""
        union, counters = self.flood(slow=(0.15, 0.01))
        self.assertEqual(self.total(union, "lost"), [counters["none"]], brief(union))
        self.assert_measured([r for r in union if r["matched"]])

    def test_in_a_row(self):
        """What passes b passes c afterwards, but for some. Only what is lost before b is lost."""
        n = self.ways(False)
        n.link("b", "east", "c", "west", "10.0.40")
        n.route("m", "10.2.0.0/16 via 10.0.3.2")
        n.route("b", "10.2.0.0/16 via 10.0.40.2")
        self.lose(n, "b", "numgen inc mod 40 0")
        n.nft("b", "table ip loss {\n counter behind {}\n chain f {\n type filter hook forward priority 0;\n"
                   " ip daddr 10.2.0.0/16 numgen inc mod 30 0 counter name behind drop\n }\n}\n")
        self.begin(n, streams=[("s", [stream("10.2", flows=50)])], interfaces={"paris2": "west"}.items())
        self.end(n)
        union = self.check(RATE * SECONDS)
        lost, passed, behind = n.counters("m")["lost_b"], n.counters("m")["b"], n.counters("b")["behind"]
        self.assertGreater(min(lost, behind), 50)
        self.assert_measured([r for r in union if r["sent"]])
        self.assertEqual(self.total(union, "lost"), [lost], brief(union))
        self.assert_copies(union, passed - behind)
        self.assertEqual(sum(self.total(self.lane("paris2"), "matched", "late")), passed - behind, brief(self.lane("paris2")))


class OnePeerGone(Case):
    def test_way_of_three(self):
        """The router shares the load among two of three ways for some seconds, and among three again. Nothing is lost by that."""
        n = self.ways(False, "bcd")
        self.lose(n, "b", "numgen inc mod 50 0")
        self.begin(n, streams=[("s", [stream("10.2", count=400 * 10, rate=400, flows=100)])])
        for hops in ("bc", "bcd"):
            time.sleep(3)
            n.divide("m", [f"10.0.{3 + 'bcd'.index(way)}.2" for way in hops], False)
        self.end(n)
        union = self.check(400 * 10)
        self.assert_measured([r for r in union if r["sent"]])
        self.assertEqual(self.total(union, "lost", "extra"), [self.truth(n, "paris1")[1], 0], brief(union))

    def test_killed(self):
        """What paris2 got is unknown while it is away: nothing is lost for that, and what paris1 got is told."""
        n = self.ways(True)
        self.lose(n, "b", "numgen inc mod 50 0")
        seconds = 17
        self.begin(n, streams=[("s", [stream("10.2", count=400 * seconds, rate=400, flows=50)])])
        time.sleep(4)
        self.point["paris2"].stop(signal.SIGKILL)
        self.point["paris2"].process.wait()
        self.point["paris2"].close()
        time.sleep(3)
        self.start(n, "paris2").wait_for("agreed on", 2)
        self.end(n)
        union = self.check(400 * seconds)
        lost, pending = self.total(union, "lost", "pending")
        truth = n.counters("m")["lost_b"]
        self.assertLessEqual(lost, truth, brief(union))
        self.assertGreaterEqual(lost + pending, truth, brief(union))
        states = [r["status"] for r in union if r["sent"]]
        self.assertEqual((states[1], states[-2]), ("measured", "measured"), brief(union))
        partial = [r for r in union if r["status"] == "partial"]
        self.assertTrue(partial, brief(union))
        for r in partial:
            self.assertRegex(r["cause"], "paris2|not known of all peers", r)
        self.assertGreater(max(r["matched"] for r in partial), 150, brief(partial))
        self.assertGreater(sum(r["lost"] for r in union if r["status"] == "measured"), 20, brief(union))


if __name__ == "__main__":
    points.run_all(sys.modules["__main__"], __file__)
