#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two points on routed networks, with the default configurations: what does not pass both points is never lost. nft counts.
Clocks that are apart are in test_clock_steps.py.

Without arguments all tests run, several networks at a time."""
import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
import unittest

import command
import networks
import points
import router

SECONDS = 4
RATE = 1000
# Some 2 % of what goes to b, by m.
DROP = """
table ip loss {{
  counter lost {{}}
  chain f {{
    type filter hook forward priority 0;
    ip daddr 10.2.0.0/16 {where} counter name lost drop
  }}
}}
"""
# Four pings a second; prints how many were answered.
PING = """
import os, socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(2)
answers = 0
for i in range(int(sys.argv[2])):
    head = struct.pack(">BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, i)
    total = sum(struct.unpack(">4H", head))
    total = (total & 0xFFFF) + (total >> 16)
    s.sendto(head[:2] + struct.pack(">H", total ^ 0xFFFF) + head[4:], (sys.argv[1], 0))
    while True:
        got = s.recv(2000)[20:28]
        if got[0] == 0 and got[4:] == head[4:]:
            break
    answers += 1
    time.sleep(0.25)
print(answers)
"""


class Case(points.Case):
    def network(self, kind=networks.Fork, *args, **options):
        try:
            network = kind(*args, **options)
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(network.close)
        return network

    def assert_all(self, pair):
        """Every result of both points is conserved, and all packets of nft are in the final ones."""
        for name, results in pair.results.items():
            for r in results:
                self.assert_conserved(r)
            for sender in ("london", "paris"):
                receiver = "paris" if sender == "london" else "london"
                lane = pair.lane(sender, name)
                self.assertTrue(lane, pair.log)
                self.assertEqual([r["start_ns"] for r in lane], sorted({r["start_ns"] for r in lane}))
                for r in lane:
                    self.assertLessEqual(r["absent"] or 0, r["unshared_sent"] or 0, r)
                    self.assertLessEqual(r["lost_whole_flows"] or 0, r["lost"] or 0, r)
                if any(r["status"] == "unknown" for r in lane):
                    continue
                self.assertEqual(sum(r["sent"] + r["unshared_sent"] for r in lane), pair.truth[sender, "out"], (name, sender, brief(lane)))
                self.assertEqual(sum(r["received"] + r["unshared_received"] for r in lane), pair.truth[receiver, "in"], (name, sender, brief(lane)))

    def total(self, lane, *members):
        return [sum(r[m] or 0 for r in lane) for m in members]

    def assert_measured(self, lane, but=()):
        for r in lane:
            self.assertIn(r["status"], ("measured", *but), r)

    def run_pair(self, network, streams, between=None, **options):
        """Streams by the host that sends them."""
        pair = networks.Pair(self, network, **options)
        for number, (host, list_of) in enumerate(streams.items()):
            network.source(host, list_of, number + 1)
        pair.begin()
        network.go()
        if between:
            between(pair)
        network.wait()
        pair.end()
        if os.environ.get("SHOW"):
            for sender in ("london", "paris"):
                for at in ("london", "paris"):
                    print(sender, "at", at, *brief(pair.lane(sender, at)), sep="\n")
            print(pair.truth, pair.log["london"], pair.log["paris"])
        self.assert_all(pair)
        return pair


def brief(lane):
    members = ("interval", "status", "cause", "sent", "received", "matched", "late", "lost", "pending", "extra", "late_received", "unshared_sent", "unshared_received",
               "absent", "lost_whole_flows", "ambiguous")
    return [{m: r[m] for m in members if r.get(m)} for r in lane]


def in_doubt(r):
    """By how many packets the loss may be another one. Causes name them, too, as far as there is room for causes."""
    ratio = r["ci95"]["loss_ratio"]
    return round(max(r["lost"] - ratio[0] * r["sent"], ratio[1] * r["sent"] - r["lost"])) if ratio else 0


def stream(dst, src="10.1", count=RATE * SECONDS, rate=RATE, **more):
    return {"src": [src], "dst": [dst] if isinstance(dst, str) else dst, "count": count, "rate": rate, **more}


class Overlap(Case):
    def test_half_elsewhere(self):
        """Half of what leaves a goes elsewhere, b gets other traffic, too, and one in 50 of the shared packets is lost."""
        n = self.network()
        n.nft("m", DROP.format(where="ip saddr 10.1.0.0/16 numgen inc mod 50 0"))
        pair = self.run_pair(n, {
            "s": [stream("10.2"), stream("10.3")],
            "c": [stream("10.2", "10.3", count=RATE * SECONDS // 2, rate=RATE / 2)],
            "t": [stream("10.1", "10.2"), stream("10.3", "10.2")],
        })
        lost = n.counters("m")["lost"]
        self.assertEqual(lost, RATE * SECONDS // 50)
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assert_measured(lane)
            self.assertEqual(self.total(lane, "lost", "extra", "unshared_sent", "unshared_received"), [lost, 0, RATE * SECONDS, RATE * SECONDS // 2], brief(lane))
            back = pair.lane("paris", at)
            self.assert_measured(back)
            self.assertEqual(self.total(back, "lost", "extra", "unshared_sent"), [0, 0, RATE * SECONDS], brief(back))

    def test_one_in_fifty(self):
        """One packet in 50 passes b. The points exchange less than they share."""
        n = self.network()
        shared = RATE * SECONDS // 50
        pair = self.run_pair(n, {"s": [stream("10.3"), stream("10.2", count=shared, rate=RATE / 50, flows=20)]})
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assert_measured(lane)
            self.assertEqual(self.total(lane, "sent", "lost", "extra", "unshared_sent"), [shared, 0, 0, RATE * SECONDS], brief(lane))

    def test_quiet_link(self):
        """Almost nothing passes both points; there are pings to the next hop, neighbour discovery and multicast on each link."""
        n = self.network(ipv6=True)
        pair = networks.Pair(self, n)
        pair.begin()
        pings = []
        for where, to in (("a", "10.0.2.2"), ("m", "10.0.2.1"), ("b", "10.0.3.1"), ("a", "10.0.3.2")):
            pings.append(subprocess.Popen([*n.prefix(where), sys.executable, "-c", PING, to, "16"], stdout=subprocess.PIPE, text=True))
        for where in "ab":
            n.run(where, sys.executable, "-c", "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                  f"s.setsockopt(0, 32, socket.inet_aton('{'10.0.2.1' if where == 'a' else '10.0.3.2'}'))\n"
                  "for i in range(20):\n s.sendto(b'who %d' % i, ('224.0.0.251', 5353))")
        for p in pings:
            self.assertEqual(p.communicate(timeout=60)[0], "16\n")
        pair.end()
        for at in ("london", "paris"):
            for r in pair.results[at]:
                self.assert_conserved(r)
            for sender in ("london", "paris"):
                self.assertEqual(self.total(pair.lane(sender, at), "lost", "extra"), [0, 0], brief(pair.lane(sender, at)))
                self.assertGreater(self.total(pair.lane(sender, at), "matched")[0], 10)


class SeveralWays(Case):
    def test_half_of_the_flows(self):
        """m shares the load by flow: half of them do not pass b, and none is lost."""
        n = self.network()
        n.run("m", "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1")
        n.route("m", "10.2.0.0/16 nexthop via 10.0.3.2 nexthop via 10.0.4.2")
        pair = self.run_pair(n, {"s": [stream("10.2", flows=200)]})
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assert_measured(lane)
            self.assertEqual(self.total(lane, "lost", "extra"), [0, 0], brief(lane))
            self.assertGreater(self.total(lane, "absent")[0], RATE * SECONDS / 4)

    def test_half_of_each_network(self):
        """m has routes finer than /24: half of each network of the destinations is elsewhere, and flows are short. What goes
        there is not lost, from the first interval on."""
        n = self.network()
        n.nft("m", DROP.format(where="ip daddr & 0.0.0.128 == 0 numgen inc mod 40 0"))
        for network in range(4):
            n.route("m", f"10.2.{network}.128/25 via 10.0.4.2")
        pair = self.run_pair(n, {"s": [stream("10.2", flows=200, new=3)]})
        lane = pair.lane("london")
        self.assert_measured(lane)
        lost, absent = self.total(lane, "lost", "absent")
        self.assertLessEqual(lost, n.counters("m")["lost"], brief(lane))
        self.assertGreater(absent, RATE * SECONDS / 3)

    def test_every_second_packet(self):
        """m shares the load by packet. One peer cannot tell this from loss; it must say so."""
        n = self.network()
        n.nft("m", "table ip split {\n chain p {\n type filter hook prerouting priority -300;\n ip daddr 10.2.0.0/16 meta mark set numgen inc mod 2\n }\n}\n")
        n.ip("m", "rule add fwmark 1 lookup 100", "route add 10.2.0.0/16 via 10.0.4.2 table 100")
        pair = self.run_pair(n, {"s": [stream("10.2", flows=200)]})
        lane = pair.lane("london")
        self.assertRegex(pair.log["london"], r"warning: .* of the packets of \d+ flows of 10\.2\..* do not pass paris: this looks like load sharing")
        self.assertTrue(self.total(lane, "lost")[0])

    def detour(self, network, seconds, **options):
        """50 flows; what goes to a network takes another way around b for some seconds."""
        n = self.network()

        def detour(pair):
            time.sleep(3)
            n.route("m", network + " via 10.0.4.2")
            time.sleep(seconds)
            n.route("m", network + " via 10.0.3.2")

        pair = self.run_pair(n, {"s": [stream("10.2", count=400 * (seconds + 9), rate=400, flows=50)]}, detour, **options)
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assert_measured(lane)
            lost, whole, extra = self.total(lane, "lost", "lost_whole_flows", "extra")
            self.assertEqual((lost - whole, extra), (0, 0), brief(lane))
            self.assertEqual(lost, pair.truth["london", "out"] - pair.truth["paris", "in"], brief(lane))
        stopped = re.findall(r"warning: .* since \S+ (\d+) flows of 10\.2\.\S+ no longer pass paris", pair.log["london"])
        back = re.findall(r" since \S+ (\d+) flows of 10\.2\.\S+ pass paris again", pair.log["london"])
        return pair, sum(map(int, stopped)), sum(map(int, back))

    def test_detour(self):
        """All of it for 8 s. Nothing is lost but whole flows, in JSON, store and text, and the log says that all of them stopped."""
        pair, stopped, back = self.detour("10.2.0.0/16", 8, store=True)
        self.assertEqual((stopped, back), (50, 50), pair.log["london"])
        for name in ("london", "paris"):
            lost = self.total(pair.lane("london", name), "lost")[0]
            with contextlib.closing(sqlite3.connect(self.path(name + ".db"))) as store:
                rows = store.execute("select sum(lost), sum(lost_whole_flows), sum(extra) from result join lane on lane.id = result.lane where from_point = 'london'").fetchone()
            self.assertEqual(rows, (lost, lost, 0))
            rows = [line.split() for line in command.oneway("results", self.path(name + ".db"), "--from", "london", "--final").stdout.splitlines()]
            # Columns after the time, the class and the lane: sent, lost and, if there are any, those of whole flows.
            whole = [row for row in rows if "london>paris" in row and row[4] != "0"]
            self.assertEqual((sum(int(row[4]) for row in whole), sum(int(row[5]) for row in whole)), (lost, lost), rows)

    def test_detour_of_half(self):
        pair, stopped, back = self.detour("10.2.0.0/23", 4)
        self.assertEqual(stopped, back, pair.log["london"])
        self.assertTrue(10 < stopped < 40, pair.log["london"])

    def test_short_detour(self):
        """As long as the waiting time: flows that lack packets for less are not told, but none of them counts as loss of single packets."""
        self.detour("10.2.0.0/16", 2)


class ShortFlows(Case):
    def test_lost(self):
        """All flows have one packet, as DNS has, and one in 20 is lost: it is lost, or the result says that it may be."""
        n = self.network()
        n.nft("m", DROP.format(where="numgen random mod 20 0"))
        pair = self.run_pair(n, {"s": [stream("10.2", new=1, flows=1)]})
        lane = pair.lane("london")
        lost, absent, unshared = self.total(lane, "lost", "absent", "unshared_sent")
        self.assertEqual(lost + absent, n.counters("m")["lost"], brief(lane))
        self.assertEqual(absent, unshared)
        for r in lane:
            self.assertEqual(r["status"] == "partial", r.get("cause_code") == "flows_undecided", r)
            self.assertTrue(r["status"] == "partial" or r["absent"] * 50 <= r["sent"], r)


class Flaps(Case):
    def test_flap(self):
        """All of it takes another way for 300 ms, again and again, with few packets between any two networks: nothing is lost that may
        not have gone another way."""
        def between(_):
            for _ in range(3):
                time.sleep(1.4)
                n.route("m", "10.2.0.0/16 via 10.0.4.2")
                time.sleep(0.3)
                n.route("m", "10.2.0.0/16 via 10.0.3.2")

        n = self.network()
        pair = self.run_pair(n, {"s": [stream("10.2", count=700, rate=100, flows=20)]}, between)
        lane = pair.lane("london")
        self.assert_measured(lane)
        lost, whole, matched = self.total(lane, "lost", "lost_whole_flows", "matched")
        self.assertEqual(lost, whole, brief(lane))
        self.assertEqual(matched + lost, 700, brief(lane))
        self.assertGreater(lost, 0)


class Fragments(Case):
    """The link to b has a smaller MTU. A packet has the fate of its first fragment; those that a router makes behind it are unshared."""

    def check(self, pair, **truth):
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assert_measured(lane)
            self.assertEqual(self.total(lane, *truth, "extra", "pending"), [*truth.values(), 0, 0], brief(lane))

    def lose(self, n, where=""):
        n.nft("m", DROP.format(where=where + " numgen inc mod 50 0"))

    def test_all(self):
        """What a sends whole comes in two pieces."""
        n = self.network(mtu=1000)
        self.lose(n)
        pair = self.run_pair(n, {"s": [stream("10.2", size=1400, rate=500, count=2000)]})
        self.check(pair, sent=2000, lost=40, unshared_sent=0, unshared_received=1960)

    def test_some(self):
        """Half of the packets of each flow are small: they pass whole."""
        n = self.network(mtu=576)
        self.lose(n)
        pair = self.run_pair(n, {"s": [stream("10.2", sizes=[100, 1400], rate=500, count=2000)]})
        self.check(pair, sent=2000, lost=40, unshared_sent=0)

    def test_class(self):
        """A filter by port does not match later fragments, at neither point; one that excludes ports matches them where they are; one
        by length (without the session of the points) matches at a only: that is unknown, and the log warns of it. None makes packets lost that are not."""
        n = self.network(mtu=1000)
        self.lose(n)
        filters = {"udp": "udp portrange 1-1023", "others": "not (udp portrange 1-1023 or tcp)", "long": "greater 1200 and not tcp"}
        more = "    classes:\n" + "".join(f"      - {{name: {name}, filter: '{text}'}}\n" for name, text in filters.items())
        pair = networks.Pair(self, n, more=(more, more))
        n.source("s", [stream("10.2", size=1400, rate=500, count=2000)])
        pair.begin()
        n.go()
        n.wait()
        pair.end()
        for at in ("london", "paris"):
            lanes = {name: [r for r in pair.lane("london", at) if r["class"] == name] for name in filters}
            self.assert_measured(lanes["udp"])
            for name, truth in {"udp": [2000, 40, 0, 0, 0], "others": [0, 0, 0, 0, 1960], "long": [0] * 5}.items():
                self.assertEqual(self.total(lanes[name], "sent", "lost", "pending", "unshared_sent", "unshared_received"), truth, (name, brief(lanes[name])))
        self.assertRegex(pair.log["london"], "warning: .*/long to paris: the filter looks at lengths")
        self.assertNotRegex(pair.log["london"], "/udp .*the filter looks")

    def test_of_fragments(self):
        """The source makes fragments of 1500, 1500 and 40 bytes: m cuts the long ones again."""
        n = self.network(mtu=1000)
        self.lose(n, "@nh,51,13 0")
        pair = self.run_pair(n, {"s": [stream("10.2", size=3000, cut=1480, rate=200, count=800)]})
        self.check(pair, sent=2400, lost=16, unshared_sent=0, unshared_received=1600 - 16)

    def test_lost(self):
        """Of the fragments that m has made some are lost, first and others. Linux makes no others if the first is dropped."""
        n = self.network(mtu=1000)
        n.nft("m", """
table netdev loss {
  counter lost {}
  counter later {}
  chain e {
    type filter hook egress device "to_b" priority 0;
    ip daddr 10.2.0.0/16 @nh,51,13 0 numgen inc mod 40 0 counter name lost drop
    ip daddr 10.2.0.0/16 @nh,51,13 != 0 numgen inc mod 25 0 counter name later drop
  }
}
""")
        pair = self.run_pair(n, {"s": [stream("10.2", size=1400, rate=500, count=2000)]})
        self.check(pair, sent=2000, lost=n.counters("m")["lost"], unshared_received=2000 - sum(n.counters("m").values()))

    def test_translated(self):
        """m also translates the source: the points find it out, though half of what arrives at b are later fragments."""
        n = self.network(mtu=1000)
        self.lose(n)
        n.nft("m", "table ip nat {\n chain p {\n type nat hook postrouting priority 100;\n ip daddr 10.2.0.0/16 snat to 10.0.3.1\n }\n}\n")
        pair = self.run_pair(n, {"s": [stream("10.2", size=1400, rate=500, count=5000)]})
        lane = [r for r in pair.lane("london") if r["status"] == "measured" and r["sent"] > 100]
        self.assertGreaterEqual(len(lane), 3, brief(pair.lane("london")))
        for r in lane:
            self.assertLessEqual(abs(r["lost"] - r["sent"] / 50), 2, brief(lane))

    def test_tunnel(self):
        """m puts the packets into a VXLAN, and has to fragment the long ones of it: the first fragment has what is inside."""
        n = self.network()
        n.ip("m", "link add vx0 mtu 1500 type vxlan id 5 dstport 4789 remote 10.0.5.2 local 10.0.3.1", "link set vx0 up", "addr add 192.168.9.1/24 dev vx0",
             "neigh add 192.168.9.2 lladdr 02:00:00:00:00:02 dev vx0", "route replace 10.2.0.0/16 via 192.168.9.2 dev vx0")
        self.lose(n)
        pair = self.run_pair(n, {"s": [stream("10.2", sizes=[100, 1480], rate=500, count=5000, flows=20)]})
        lane = [r for r in pair.lane("london") if r["status"] == "measured" and r["sent"] > 100]
        self.assertGreaterEqual(len(lane), 3, brief(pair.lane("london")))
        for r in lane:
            self.assertLessEqual(abs(r["lost"] - r["sent"] / 50), 2, brief(lane))
        self.assertIn("inside tunnels", pair.log["london"])

    def test_joined(self):
        """m reassembles what the source has cut, as stateful firewalls do, and cuts it otherwise: later fragments of a are not at b."""
        n = self.network(mtu=1000)
        self.lose(n, "ct state != invalid")
        pair = self.run_pair(n, {"s": [stream("10.2", size=3000, cut=1480, rate=200, count=800)]})
        self.check(pair, sent=800, lost=16, unshared_sent=1600, unshared_received=3 * (800 - 16))


class Changed(Case):
    def test_ip_id_rewritten(self):
        n = self.network()
        n.nft("m", DROP.format(where="numgen inc mod 40 0"))
        n.nft("m", "table ip rewrite {\n chain p {\n type filter hook postrouting priority 0;\n ip daddr 10.2.0.0/16 ip id set 7\n }\n}\n")
        pair = self.run_pair(n, {"s": [stream("10.2")]})
        for at in ("london", "paris"):
            for r in pair.lane("london", at):
                if r["status"] == "measured" and r["sent"]:
                    self.assertLess(r["loss_ratio"], 0.05, brief([r]))


class Identical(Case):
    def identical(self, *others, slow=None, more=""):
        """Packets that are all the same, 200 a second, one in 19 lost after the first of a second; beside them these streams, of which none is."""
        n = self.network(networks.Fork, slow=slow)
        n.nft("m", DROP.format(where="udp length 80 numgen inc mod 19 0") + more)
        pair = self.run_pair(n, {"s": [stream("10.2", count=817, rate=200, same=True, id=0, df=0x4000), *others]})
        lost = n.counters("m")["lost"]
        self.assertEqual(lost, 43)
        return pair, lost

    def check_identical(self, pair, lost, beside=0):
        """Each loss is in the interval in which it arose, or the cause says how many may be in another one. numgen drops the packets 0, 19, 38, ..."""
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            number = 0
            for r in lane:
                same = r["sent"] - beside if r["sent"] > beside else r["sent"]
                truth = len([k for k in range(number, number + same) if k % 19 == 0])
                number += same
                doubts = in_doubt(r)
                if not beside:
                    self.assertLessEqual(abs(r["lost"] - truth), doubts, brief(lane))
                elif r["sent"] == 200 + beside:
                    self.assertLessEqual(abs(r["lost"] - 200 / 19), 2 + doubts, brief(lane))
            self.assertEqual(self.total(lane, "lost", "extra"), [lost, 0], brief(lane))

    def test_identical(self):
        """Other packets show how long the path is."""
        pair, lost = self.identical(stream("10.2", count=410, rate=100, size=300))
        self.check_identical(pair, lost, beside=100)
        for at in ("london", "paris"):
            self.assert_measured(pair.lane("london", at))

    def test_identical_alone(self):
        pair, lost = self.identical()
        self.check_identical(pair, lost)
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            self.assertGreaterEqual(sum(r["status"] == "measured" and r["lost"] > 0 for r in lane), 3, brief(lane))
            for r in lane:
                if r["status"] == "measured" and r["matched"] > r["ambiguous"]:
                    self.assertLess(r["delay_ns"]["max"], 5e6, r)

    def test_identical_jitter(self):
        """The path takes between 1 and 31 ms, and a packet is sent every 5 ms: most intervals cannot be told apart."""
        pair, lost = self.identical(slow=(0.001, 0.03))
        self.check_identical(pair, lost)

    def test_identical_twice(self):
        """One in 23 arrives twice: that is said where as many may be late."""
        twice = """
table netdev twice {{
  chain e {{
    type filter hook egress device to_b priority 0;
    udp length 80 numgen inc mod 23 7 dup to to_b
  }}
}}
"""
        pair, _ = self.identical(more=twice.format())
        for at in ("london", "paris"):
            lane = pair.lane("london", at)
            for r in lane:
                self.assertEqual(r["lost"] - r["extra"] + r["late"] - r["late_received"], r["sent"] - r["received"], r)
                if r["sent"] == 200:
                    self.assertLessEqual(abs(r["lost"] - 200 / 19), 1 + in_doubt(r), brief(lane))


    def running(self, *others):
        """Packets that are all the same, and these, are on their way when the points begin, on a path of 50 ms. None is lost."""
        n = self.network(networks.Fork, slow=(0.05, 0.001))
        n.source("s", [stream("10.2", count=1800, rate=200, same=True, id=0, df=0x4000), *others])
        n.go()
        time.sleep(1)
        pair = networks.Pair(self, n)
        pair.begin()
        n.wait()
        pair.end()
        for r in pair.results["london"] + pair.results["paris"]:
            self.assert_conserved(r)
            # A host that is held up sends several at once: these are in doubt.
            self.assertLessEqual(r["lost"] or 0, in_doubt(r), r)
        return [r for r in pair.lane("london") if r["sent"] > 100]

    def test_identical_running(self):
        """Other packets show how long the path is, so none is paired with one that was sent later."""
        for r in self.running(stream("10.2", count=900, rate=100, size=300)):
            self.assertTrue(r["status"] == "measured" or r["cause_code"] in ("identical_begun", "identical_close", "identical_late"), r)
            if r["delay_ns"]["mean"]:
                self.assertTrue(45e6 < r["delay_ns"]["min"] and r["delay_ns"]["mean"] < 100e6, r)

    def test_identical_running_alone(self):
        """Nothing shows it: the delay may be longer. Unless the host is held up, and gaps between packets show it: then it is right, to
        less than the 5 ms between two packets."""
        lane = self.running()
        for r in lane:
            if r.get("cause_code") in ("identical_delays", "identical_begun", "identical_close", "identical_late"):
                continue
            least = r["delay_ns"]["min"] if r["delay_ns"]["min"] is not None else r["delay_ns"]["mean"]
            self.assertTrue(r["status"] == "measured" and 50e6 <= least < 55e6, (r, brief(lane)))


class OneRouter(Case):
    def live(self, n, name, between):
        """Results of live between two interfaces while the sources send, of the first direction."""
        process = subprocess.Popen([*n.prefix(name), command.PROGRAM, "live", "--from", between[0], "--to", between[1], "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = process.stdout.readline()  # it records since an interval
        n.go()
        n.wait()
        time.sleep(3.2)
        process.terminate()
        out, log = process.communicate(timeout=30)
        lane = [r for r in map(json.loads, [begun, *out.splitlines()]) if "status" in r]
        for r in lane:
            self.assert_conserved(r)
        forth = [r for r in lane if r["final"] and r["from"] == between[0]]
        if os.environ.get("SHOW"):
            print(*brief(forth), log, sep="\n")
        return forth

    def identical(self, *others):
        """Packets that are all the same, 200 a second, one in 19 lost: each loss is in the interval in which it arose."""
        n = self.network()
        n.nft("m", DROP.format(where="udp length 80 numgen inc mod 19 0"))
        n.source("s", [stream("10.2", count=817, rate=200, same=True, id=1, df=0x4000), *others])
        forth = self.live(n, "m", ("to_a", "to_b"))
        self.assertEqual(n.counters("m")["lost"], 43)
        # Where copies arrive together because the host is held up, one may be a duplicate, and another one lost.
        lost, extra = self.total(forth, "lost", "extra")
        self.assertEqual(lost - extra, 43, brief(forth))
        self.assertLessEqual(extra, sum(map(in_doubt, forth)), brief(forth))
        for r in forth:
            if r["status"] == "measured" and not others:
                self.assertLessEqual(abs(r["lost"] - r["sent"] / 19), 2, brief(forth))
        self.assertGreaterEqual(sum(r["status"] == "measured" and r["lost"] > 0 for r in forth), 3, brief(forth))
        return forth

    def test_live_identical(self):
        forth = self.identical(stream("10.2", count=410, rate=100, size=300))
        for r in forth:
            if r["status"] == "measured" and r["sent"] == 300:
                self.assertLessEqual(abs(r["lost"] - 200 / 19), 2, brief(forth))

    def test_live_identical_alone(self):
        self.identical()

    def test_live_fragments(self):
        """The router cuts long packets, and drops some before."""
        n = self.network(mtu=1000)
        n.nft("m", DROP.format(where="numgen inc mod 50 0"))
        n.source("s", [stream("10.2", sizes=[100, 1400], rate=500, count=2000)])
        forth = self.live(n, "m", ("to_a", "to_b"))
        self.assert_measured(forth)
        self.assertEqual(self.total(forth, "sent", "lost", "extra"), [2000, 40, 0], brief(forth))
        self.assertGreater(self.total(forth, "unshared_received")[0], 800)

    def test_live_three_interfaces(self):
        """live between two of the three interfaces of a router."""
        n = self.network(networks.Network, "srtu")
        for name, interface, host, number in (("lan", "lan0", "s", 1), ("up", "up0", "t", 2), ("dmz", "dmz0", "u", 3)):
            n.link("r", interface, host, "eth0", f"10.0.{number}")
            n.route("r", f"10.{number}.0.0/16 via 10.0.{number}.2")
            n.route(host, f"default via 10.0.{number}.1")
        n.source("s", [stream("10.2"), stream("10.3", count=3000, rate=750)])
        n.source("u", [stream("10.2", "10.3", count=1000, rate=250)])
        forth = self.live(n, "r", ("lan0", "up0"))
        self.assert_measured(forth)
        self.assertEqual(self.total(forth, "sent", "lost", "extra", "unshared_sent", "unshared_received"), [RATE * SECONDS, 0, 0, 3000, 1000], brief(forth))


if __name__ == "__main__":
    points.run_all(sys.modules["__main__"], __file__)
