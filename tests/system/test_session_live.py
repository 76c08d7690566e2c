# SPDX-License-Identifier: Apache-2.0
"""The connection between two points is not traffic that they measure, whatever network carries it. On a network where nothing else
passes, default configurations count no packet."""
import os
import shutil
import subprocess
import sys
import time
import unittest

import points
import router

CONFIG = """point: {name}
psk: lab.psk
{listen}interfaces: [{{name: {interface}}}]
segments:
  - {{name: x, peer: {peer}, interval: 200ms{more}}}
"""
# Neighbour discovery of IPv6, counted at both ends of both directions. The session has about 100 packets.
STRAY = 40


class Session(points.Case):
    """Two hosts and a cable: left has 10.9.0.1, right 10.9.0.2; or fd00:9::1 and ::2."""

    def setUp(self):
        super().setUp()
        self.holders = []
        self.addCleanup(self.close_holders)
        try:
            self.left, self.right = self.hold(), self.hold()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.run_in(self.left, "ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(self.right.pid))
        for host, number in ((self.left, 1), (self.right, 2)):
            self.run_in(host, "sysctl", "-qw", f"net.ipv6.conf.eth0.disable_ipv6={int('ipv6' not in self.id())}")
            self.run_in(host, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.run_in(host, "ip", "address", "add", f"10.9.0.{number}/24", "dev", "eth0")
            self.run_in(host, "ip", "link", "set", "eth0", "up")
            if "ipv6" in self.id():
                self.run_in(host, "ip", "-6", "address", "add", f"fd00:9::{number}/64", "dev", "eth0", "nodad")

    def hold(self):
        self.holders.append(router.holder())
        return self.holders[-1]

    def close_holders(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
            holder.stderr.close()

    def prefix(self, host):
        return ["nsenter", "-t", str(host.pid), "-n"]

    def run_in(self, host, *words):
        subprocess.run([*self.prefix(host), *words], check=True, capture_output=True, text=True, timeout=60)

    def can(self, host, *words):
        return subprocess.run([*self.prefix(host), *words], capture_output=True, timeout=60).returncode == 0

    def start_point(self, host, name, **values):
        values = {"name": name, "listen": "", "interface": "eth0", "more": "", **values}
        path = self.write(name + ".yaml", CONFIG.format(**values))
        point = points.Point(path, prefix=self.prefix(host))
        self.points.append(point)
        return point

    @staticmethod
    def known(results):
        return [r for r in results if r["final"] and r["status"] != "unknown"]

    def count(self, listen, connect, left="eth0", right="eth0", more=""):
        """Packets of all lanes, as both points count them."""
        self.keys("psk")
        there = self.start_point(self.right, "right", listen=f'listen: "{listen}"\n', interface=right, peer="left", more=more)
        there.wait_for("listening on")
        here = self.start_point(self.left, "left", interface=left, peer="right", more=f', connect: "{connect}"{more}')
        for point in (here, there):
            point.wait_for_results(lambda results: len(self.known(results)) > 8)
        total = []
        for point in (here, there):
            point.stop()
        for point in (here, there):
            results, _ = point.end()
            total.append(sum(r["sent"] + r["received"] for r in self.known(results)))
        print(f"{self.id().split('.')[-1]}: {total[0]} and {total[1]} packets")
        return max(total)

    def test_ipv4(self):
        self.assertEqual(self.count("10.9.0.2:8620", "10.9.0.2:8620"), 0)

    def test_any_address(self):
        self.assertEqual(self.count("0.0.0.0:8620", "10.9.0.2:8620"), 0)

    def test_ipv6(self):
        self.assertLessEqual(self.count("[fd00:9::2]:8620", "[fd00:9::2]:8620"), STRAY)

    def test_vlan(self):
        """The session goes through a VLAN; the points watch the cable, and the VLAN on one side."""
        for host, number in ((self.left, 1), (self.right, 2)):
            if not self.can(host, "ip", "link", "add", "link", "eth0", "name", "eth0.7", "type", "vlan", "id", "7"):
                self.skipTest("no VLAN in this kernel")
            self.run_in(host, "ip", "address", "add", f"10.10.0.{number}/24", "dev", "eth0.7")
            self.run_in(host, "ip", "link", "set", "eth0.7", "up")
        self.assertEqual(self.count("10.10.0.2:8620", "10.10.0.2:8620"), 0)
        self.assertEqual(self.count("10.10.0.2:8621", "10.10.0.2:8621", left="eth0.7"), 0)

    def test_tunnel(self):
        """One point sees the packets inside of a tunnel, the other one the tunnel, or both the tunnel."""
        for host, number in ((self.left, 1), (self.right, 2)):
            vxlan = ["vxlan", "id", "7", "dev", "eth0", "remote", f"10.9.0.{3 - number}", "dstport", "4789"]
            if not self.can(host, "ip", "link", "add", "vx0", "type", *vxlan):
                self.skipTest("no VXLAN in this kernel")
            self.run_in(host, "ip", "address", "add", f"10.10.0.{number}/24", "dev", "vx0")
            self.run_in(host, "ip", "link", "set", "vx0", "up")
        inner = ", inner: true"
        self.assertEqual(self.count("10.10.0.2:8620", "10.10.0.2:8620", left="vx0", more=inner), 0)
        self.assertEqual(self.count("10.10.0.2:8621", "10.10.0.2:8621", more=inner), 0)

    def translate(self):
        """What goes from the left to 10.9.0.77 goes to 10.9.0.2, and back. The translation is on the cable's right end."""
        tc = [*self.prefix(self.right), "tc"]
        for words in (
            "qdisc add dev eth0 clsact",
            "filter add dev eth0 ingress protocol ip u32 match ip dst 10.9.0.77/32 action nat ingress 10.9.0.77/32 10.9.0.2",
            "filter add dev eth0 egress protocol ip u32 match ip src 10.9.0.2/32 action nat egress 10.9.0.2/32 10.9.0.77",
        ):
            if subprocess.run([*tc, *words.split()], capture_output=True).returncode:
                return False
        return True

    def test_translated(self):
        """The point that connects knows the other one by another address."""
        if not self.translate():
            self.skipTest("no stateless NAT in this kernel")
        show = subprocess.run([*self.prefix(self.right), "ip", "-br", "link", "show", "eth0"], capture_output=True, text=True).stdout
        self.run_in(self.left, "ip", "neigh", "replace", "10.9.0.77", "lladdr", show.split()[2], "dev", "eth0")
        self.assertEqual(self.count("10.9.0.2:8620", "10.9.0.77:8620"), 0)


if __name__ == "__main__":
    if not shutil.which("ip") or os.geteuid() != 0:
        print("needs root and ip(8)", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
