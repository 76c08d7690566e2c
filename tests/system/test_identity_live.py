# SPDX-License-Identifier: Apache-2.0
"""Networks that change packets on the way: the points find out by themselves what makes a packet the same at both."""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

import command
import points
import router

ONE = """point: one
psk: lab.psk
interfaces: [{name: eth0}]
segments:
  - {name: path, peer: two, connect: "10.2.0.2:8620"}
"""
TWO = """point: two
psk: lab.psk
listen: 10.2.0.2:8620
interfaces: [{name: eth0}]
segments:
  - {name: path, peer: one}
"""
# Until it is killed: datagrams that differ, at a rate.
TRAFFIC = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start, i = time.monotonic(), 0
while True:
    s.sendto(i.to_bytes(8, "big") * (4 + i % 50), (sys.argv[1], 7000))
    i += 1
    time.sleep(max(0, start + i / float(sys.argv[2]) - time.monotonic()))
"""
# One packet in 20 of the traffic is dropped on the way, and counted.
DROP = "udp dport 7000 numgen inc mod 20 0 counter name lost drop"


class Identity(points.Case):
    def setUp(self):
        super().setUp()
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)

    def nft(self, *rules):
        for rule in rules:
            done = subprocess.run([*self.network.prefix(self.network.router), "nft", rule], capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest("nft: " + done.stderr.strip())

    def rewrite(self, *rules):
        """Rules of the router, before what it drops."""
        self.nft(
            "add table ip t",
            "add counter ip t lost",
            "add chain ip t early { type filter hook prerouting priority -300; }",
            "add chain ip t forward { type filter hook forward priority 0; }",
            "add chain ip t nat { type nat hook postrouting priority 100; }",
            *rules,
            "add rule ip t forward " + DROP,
        )

    def lost(self):
        found = json.loads(self.network.run(self.network.router, "nft", "-j", "list", "counters"))["nftables"]
        return [c["counter"]["packets"] for c in found if "counter" in c][0]

    def point(self, where, name, text):
        self.write(name + ".yaml", text)
        point = points.Point(self.path(name + ".yaml"), prefix=self.network.prefix(where))
        self.points.append(point)
        return point

    def traffic(self, to="10.2.0.2", rate=400):
        n = self.network
        sink = n.python(n.two, router.UDP_SINK, 7000, stdout=-1)
        self.addCleanup(lambda: (sink.kill(), sink.wait(), sink.stdout.close()))
        sink.stdout.readline()
        self.send(to, rate)

    def send(self, to="10.2.0.2", rate=400):
        source = self.source = self.network.python(self.network.one, TRAFFIC, to, rate)
        self.addCleanup(lambda: (source.kill(), source.wait()))

    def start_points(self, one=ONE, two=TWO):
        n = self.network
        self.keys("psk")
        self.two = self.point(n.two, "two", two)
        self.two.wait_for("listening on")
        self.one = self.point(n.one, "one", one)
        self.one.wait_for("agreed on", 2)

    def finish(self):
        """The results of the sending point, after the traffic has ended."""
        self.source.kill()
        self.source.wait()
        time.sleep(4)
        self.one.stop()
        self.two.stop()
        results, _ = self.one.end()
        self.two.end()
        for r in results:
            self.assert_conserved(r)
        return [r for r in results if r["final"] and r["from"] == "one"]

    def check(self, results, fewest=4):
        """No interval has loss that is not there; some are measured."""
        measured = [r for r in results if r["status"] == "measured" and r["sent"] > 100]
        self.assertGreaterEqual(len(measured), fewest, [(r["status"], r.get("cause"), r["sent"]) for r in results])
        for r in measured:
            # every twentieth, whatever the phase
            self.assertLessEqual(abs(r["lost"] - r["sent"] / 20), 2, r)
        self.assertLessEqual(sum(r["lost"] for r in measured), self.lost())

    def show(self, results):
        for r in results:
            print(*(r.get(k) for k in ("interval", "status", "cause", "sent", "received", "matched", "lost", "extra", "unshared_sent")))

    def measure(self, pattern, to="10.2.0.2"):
        self.traffic(to)
        self.start_points()
        print(self.one.wait_for(pattern).group(0))
        self.one.wait_for("agreed on", 3)
        time.sleep(7)
        results = self.finish()
        self.show(results)
        self.check(results)

    def test_ip_id_is_rewritten(self):
        self.rewrite("add rule ip t forward udp dport 7000 ip id set 7")
        self.measure(r"identity: ip without IP id.*")

    def test_addresses_are_translated(self):
        self.rewrite("add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1")
        self.measure(r"identity: nat, because.*")

    def test_the_receiving_point_connects(self):
        """The point that proposes lanes learns from the results of the other that packets do not match, and decides."""
        n = self.network
        self.rewrite("add rule ip t forward udp dport 7000 ip id set 7")
        self.traffic()
        self.keys("psk")
        self.one = self.point(n.one, "one", ONE.replace(', connect: "10.2.0.2:8620"', "").replace("psk:", "listen: 10.1.0.2:8620\npsk:"))
        self.one.wait_for("listening on")
        self.two = self.point(n.two, "two", TWO.replace("listen: 10.2.0.2:8620\n", "").replace("peer: one", 'peer: one, connect: "10.1.0.2:8620"'))
        print(self.two.wait_for("identity: ip without IP id.*").group(0))
        self.one.wait_for("agreed on", 3)
        time.sleep(5)
        results = self.finish()
        self.show(results)
        self.check(results, 3)

    def test_rewriting_begins(self):
        """After intervals with identity ip. No interval has loss that is not there, and it is found out."""
        self.rewrite()
        self.traffic()
        self.start_points()
        time.sleep(5)
        self.nft("insert rule ip t forward udp dport 7000 ip id set 7")
        self.one.wait_for("identity: ip without IP id")
        self.one.wait_for("agreed on", 3)
        time.sleep(5)
        results = self.finish()
        self.show(results)
        self.check(results, 6)

    def test_tunnel(self):
        """Host one sends into a VXLAN tunnel that the router ends: the point on the wire sees packets inside of it."""
        n = self.network
        self.rewrite()
        for where, here, there in ((n.one, "10.1.0.2", "10.1.0.1"), (n.router, "10.1.0.1", "10.1.0.2")):
            link = ["name", "vx0", "type", "vxlan", "id", "5", "local", here, "remote", there, "dstport", "4789", "dev"]
            try:
                n.run(where, "ip", "link", "add", *link, "eth0" if where is n.one else "r1")
            except subprocess.CalledProcessError as error:
                self.skipTest(error.stderr)
            n.run(where, "ip", "addr", "add", "10.5.0." + here[-1] + "/24", "dev", "vx0")
            n.run(where, "ip", "link", "set", "vx0", "up")
        n.run(n.one, "ip", "route", "add", "10.2.0.77/32", "via", "10.5.0.1")
        n.run(n.two, "ip", "addr", "add", "10.2.0.77/32", "dev", "eth0")
        n.run(n.two, "ip", "route", "add", "10.5.0.0/24", "via", "10.2.0.1")
        self.measure(r"identity: ip inside tunnels, because.*", "10.2.0.77")

    def live(self, *options):
        """oneway live on the router, while traffic passes; its results, and what it says."""
        n = self.network
        time.sleep(0.5)
        program = [command.PROGRAM, "live", "--from", "r1", "--to", "r2", "--count", "8", "--json", *options]
        done = n.start(n.router, *program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, said = done.communicate(timeout=points.PATIENCE)
        results = [r for r in map(json.loads, out.splitlines()) if "summary" not in r]
        for r in results:
            self.assert_conserved(r)
        results = [r for r in results if r["final"] and r["from"] == "r1"]
        print(said)
        self.show(results)
        return results, said, done.returncode

    def test_live(self):
        """Between two interfaces of the router, whatever it changes."""
        self.rewrite()
        self.traffic()
        rules = {
            r"identity: nat, because": "add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1",
            r"identity: ip without IP id, because": "insert rule ip t forward udp dport 7000 ip id set 7",
        }
        for line, rule in rules.items():
            self.nft(rule)
            results, said, code = self.live()
            self.assertEqual(code, 0)
            self.assertRegex(said, line)
            self.assertEqual(len(results), 8)
            self.check(results, 3)
            self.source.kill()
            self.nft("flush chain ip t nat")
            self.send()

    def test_live_fixed(self):
        self.rewrite("add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1")
        self.traffic()
        results, said, code = self.live("--identity", "ip")
        self.assertEqual(code, 1)
        self.assertIn("--identity nat", said)
        self.assertEqual([r for r in results if r["status"] == "measured" and r["lost"]], [])

    def test_fixed(self):
        """A configuration that fixes the identity is kept: the intervals are unknown, and say why."""
        self.rewrite("add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1")
        self.traffic()
        self.start_points(ONE.replace("name: path,", "name: path, identity: ip,"))
        time.sleep(7)
        results = self.finish()
        self.assertNotIn("identity: nat, because", self.one.log)
        self.assertEqual([r for r in results if r["status"] == "measured" and r["lost"]], [])
        self.assertTrue(any("NAT" in (r.get("cause") or "") for r in results), results)

    def test_fixed_at_the_other_point(self):
        self.rewrite("add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1")
        self.traffic()
        self.start_points(two=TWO.replace("name: path,", "name: path, identity: ip,"))
        time.sleep(7)
        results = self.finish()
        self.assertNotIn("identity: nat, because", self.one.log)
        self.assertNotIn("refuses", self.one.log)
        self.assertEqual([r for r in results if r["status"] == "measured" and r["lost"]], [])

    def test_only_a_part_is_translated_and_passes(self):
        """Half of what leaves one is not seen at two: it is unshared, behind a NAT as well."""
        n = self.network
        self.rewrite("add rule ip t nat oifname r2 udp dport 7000 snat to 10.2.0.1", "add rule ip t forward udp dport 7001 drop")
        other = n.python(n.one, TRAFFIC.replace("7000", "7001"), "10.2.0.2", 400)
        self.addCleanup(lambda: (other.kill(), other.wait()))
        self.traffic()
        self.start_points()
        time.sleep(8)
        self.one.wait_for("identity: nat, because")
        results = self.finish()
        self.show(results)
        self.check(results, 2)
        self.assertTrue(all(r["unshared_sent"] for r in results if r["status"] == "measured" and r["sent"] > 100), results)


if __name__ == "__main__":
    if not shutil.which("ip") or not shutil.which("nft") or os.geteuid() != 0:
        print("needs root, ip(8) and nft(8)", file=sys.stderr)
        sys.exit(77)
    points.run_all(sys.modules["__main__"], __file__)
