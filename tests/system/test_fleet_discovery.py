#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fleet whose segments are discovered, with a real nats-server: two points sample their packets, `fleet map` finds in the
stream that they are neighbours, and `segments: discover` has them measure the segment between them.

    [here] near0 - [m] - far0 [here]        london watches near0, paris far0; m is a router"""
import json
import os
import subprocess
import sys
import unittest

import networks
import router
from fleet import Fleet, until, why_not
from servers import free_port

PLAN = """
wait: 30s
points:
  - {{name: london, address: '127.0.0.1:{port}', interfaces: [{{name: near0, ring: 4MiB}}], memory: 8MiB}}
  - {{name: paris, interfaces: [{{name: far0, ring: 4MiB}}], memory: 8MiB}}
discovery: {{key: the key of this fleet, epoch: 1s}}
segments: discover
"""
SECONDS = 60


class Wires(networks.Network):
    """This process's own namespace, and m."""

    def __init__(self):
        super().__init__(["m"])
        near, far = 1, 2
        for name, n in (("near0", near), ("far0", far)):
            subprocess.run(["ip", "link", "add", "name", name, "type", "veth", "peer", "name", f"m{n}", "netns", str(self.where["m"].pid)], check=True)
            subprocess.run(["ip", "addr", "add", f"10.0.{n}.1/24", "dev", name], check=True)
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
            self.ip("m", f"addr add 10.0.{n}.2/24 dev m{n}", f"link set m{n} up", f"route add 10.{n}.0.0/16 via 10.0.{n}.1")
        self.run("m", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for to, via in ((far, near), (near, far)):
            subprocess.run(["ip", "route", "add", f"10.{to}.0.0/16", "via", f"10.0.{via}.2"], check=True)

    def prefix(self, name):
        return super().prefix(name) if name in self.where else []


@unittest.skipIf(why_not(), why_not())
class Discovered(unittest.TestCase):
    def setUp(self):
        self.wires = Wires()
        self.addCleanup(self.wires.close)
        self.fleet = Fleet()
        self.addCleanup(self.fleet.end)

    def edges(self):
        found = json.loads(self.fleet.run("map", "--json"))
        return found, {(e["from"], e["to"]): e["adjacency"] for e in found["edges"]}

    def test_discover(self):
        fleet, plan = self.fleet, PLAN.format(port=free_port())
        self.assertIn("2 points change", fleet.apply(plan))
        self.assertIn("has no samples", fleet.run("map", code=1))
        london, paris = fleet.start_point("london"), fleet.start_point("paris")
        for point in (london, paris):
            point.wait_for("no privileges from here on")
        for seed, (src, dst) in enumerate((("10.1", "10.2"), ("10.2", "10.1")), 1):
            self.wires.source("here", [{"src": [src], "dst": [dst], "count": 100 * SECONDS, "rate": 100, "flows": 10, "size": 100}], seed)
        self.wires.go()
        firm = {("london", "paris"): "firm", ("paris", "london"): "firm"}
        until(lambda: fleet.run("map", "--json", code=None).startswith("{") and self.edges()[1] == firm, lambda: fleet.run("map", code=None), every=1)
        found, _ = self.edges()
        pair = next(p for p in found["pairs"] if (p["from_point"], p["to_point"]) == ("london", "paris"))
        self.assertEqual(pair["hops"], 1)
        self.assertGreater(pair["share"], 0.9)
        # What the map shows is measured exactly, and stays.
        self.assertIn("2 points change", fleet.apply(plan))
        for point in (london, paris):
            point.wait_for("agreed on london-paris/all")
        self.assertIn("0 points change", fleet.apply(plan))
        with open(os.path.join(fleet.folder, "discovered"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"^london paris near0 far0 [01]\.\d+ 0\n$")


def main():
    """In a namespace of its own: its interfaces and routes are nobody else's."""
    if "OWN_NAMESPACE" not in os.environ:
        try:
            networks.Network(["m"]).close()
        except (router.Unavailable, FileNotFoundError) as reason:
            print(f"skipped: {reason}")
            return 77
        script = 'ip link set lo up && exec "$0" "$@"'
        return subprocess.run(["unshare", "--net", "sh", "-c", script, sys.executable, *sys.argv], env={**os.environ, "OWN_NAMESPACE": "1"}).returncode
    return unittest.main()


if __name__ == "__main__":
    sys.exit(main())
