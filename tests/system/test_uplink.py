# SPDX-License-Identifier: Apache-2.0
"""A router with a shaped uplink: what a point on the uplink cannot see, and a point on the inner side can."""
import json
import os
import shutil
import sys
import time
import unittest

import command
import points
import router

ROUTER = """point: router
psk: lab.psk
interfaces: [{name: r1}, {name: r2}]
segments:
  - {name: outer, peer: two, connect: "10.2.0.2:8620", interfaces: [r2], interval: 500ms}
  - {name: inner, peer: two, connect: "10.2.0.2:8620", interfaces: [r1], facing: away, interval: 500ms}
"""
HOST = """point: two
psk: lab.psk
listen: 10.2.0.2:8620
interfaces: [{name: eth0}]
segments:
  - {name: outer, peer: router}
  - {name: inner, peer: router}
"""


class Uplink(points.Case):
    def setUp(self):
        super().setUp()
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)

    def point(self, where, name, text):
        self.write(name + ".yaml", text)
        point = points.Point(self.path(name + ".yaml"), prefix=self.network.prefix(where))
        self.points.append(point)
        return point

    def dropped(self):
        """By the queue of the uplink."""
        return json.loads(self.network.run(self.network.router, "tc", "-s", "-json", "qdisc", "show", "dev", "r2"))[0]["drops"]

    def doctor(self, path):
        done = self.network.run(self.network.router, "sh", "-c", f'"$0" doctor --json -c {path} || true', command.PROGRAM)
        return {c["about"]: c for c in json.loads(done)["checks"] if c["name"] == "queue"}

    def test_queue_of_the_uplink(self):
        """The queue drops and delays datagrams. Only the segment that begins on the inner side has this in its results."""
        n = self.network
        if not n.shape("r2"):
            self.skipTest("this kernel has no tbf")
        self.keys("psk")
        two = self.point(n.two, "two", HOST)
        two.wait_for("listening on")
        here = self.point(n.router, "router", ROUTER)
        sink = n.python(n.two, router.UDP_SINK, 7000, stdout=-1)
        self.addCleanup(lambda: (sink.kill(), sink.wait(), sink.stdout.close()))
        sink.stdout.readline()
        here.wait_for_intervals(4)
        source = n.python(n.one, router.UDP_SOURCE, "10.2.0.2", 7000, 5000, 1e9)
        self.assertEqual(source.wait(timeout=points.PATIENCE), 0)
        time.sleep(3)
        for point in (here, two):
            point.stop()
        results, summaries = here.end()
        two.end()
        for r in results:
            self.assert_conserved(r)
        outer, inner = ([s for s in summaries if s["segment"] == name and s["from"] == "router"][0] for name in ("outer", "inner"))
        drops = self.dropped()
        print(f"{drops} dropped by the queue; outer {outer['lost']} of {outer['sent']}, inner {inner['lost']} of {inner['sent']}")
        print(f"mean delay: outer {outer['delay_ns']['mean']:.0f} ns, inner {inner['delay_ns']['mean']:.0f} ns")
        self.assertGreater(drops, 0)
        self.assertEqual((outer["lost"], inner["sent"]), (0, 4375 + 6250))
        self.assertEqual(inner["lost"] + inner["matched"], inner["sent"])
        self.assertEqual(inner["lost"], inner["sent"] - outer["sent"])
        # A superframe that the queue drops is one packet for its counter, and ten for us.
        self.assertGreaterEqual(inner["lost"], drops)
        self.assertLessEqual(inner["lost"], 10 * drops)
        self.assertEqual(inner["matched"], inner["received"])
        # At 40 Mbit/s a queue of 80 kB takes up to 16 ms; the mean is far above what a veth takes.
        self.assertGreater(inner["delay_ns"]["mean"], 1e6)
        self.assertLess(outer["delay_ns"]["mean"], inner["delay_ns"]["mean"] / 2)

    def test_doctor_offers_the_inner_side(self):
        n = self.network
        if not n.shape("r2"):
            self.skipTest("this kernel has no tbf")
        self.keys("psk")
        self.write("router.yaml", ROUTER)
        found = self.doctor(self.path("router.yaml"))
        self.assertEqual(set(found), {"r2"})  # a veth has no queue of its own
        self.assertEqual(found["r2"]["state"], "warning")
        self.assertIn("tbf", found["r2"]["found"])
        self.assertIn("facing: away", found["r2"]["fix"])


if __name__ == "__main__":
    if not shutil.which("ip") or os.geteuid() != 0:
        print("needs root and ip(8)", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
