# SPDX-License-Identifier: Apache-2.0
"""Interfaces that come and go while they are measured: no packet is lost that was not, and the results are whole again.

Numbered packets go through a router, or between two hosts, and what arrives is counted there: that is the truth."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import command
import points
import router

MS = 10**6
LENGTH = 200 * MS
RATE = 1000
# It takes two intervals to notice that an interface has gone or come, more where the machine is busy: then more is unknown.
BUSY = 1000 * MS
LONG = os.environ.get("OW_FAULTS") == "long"

SOURCE = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start, n = time.monotonic(), 0
while True:
    try:
        s.sendto(n.to_bytes(8, "big") + bytes(50), (sys.argv[1], 7000))
    except OSError:
        pass
    n += 1
    left = start + n / float(sys.argv[2]) - time.monotonic()
    if left > 0:
        time.sleep(left)
"""
# One line for each packet: when it arrived.
SINK = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("0.0.0.0", 7000))
print("ready", flush=True)
while True:
    s.recv(2000)
    print(time.time_ns(), flush=True)
"""


# An interface t0 of a link layer for which libpcap is needed: SLIP.
TUN_SLIP = """
import fcntl, os, struct, time
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH", b"t0", 0x1001))
fcntl.ioctl(tun, 0x400454CD, 256)
print("ready", flush=True)
time.sleep(1000)
"""


class Case(command.Case):
    def setUp(self):
        super().setUp()
        self.children = []
        self.addCleanup(self.end_children)

    def end_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()

    def traffic(self, network, source, sink, address):
        """Starts it; returns the file in which the times of arrival are."""
        arrived = tempfile.NamedTemporaryFile("w+")
        self.addCleanup(arrived.close)
        self.children.append(network.start(sink, sys.executable, "-c", SINK, stdout=arrived))
        while not os.pread(arrived.fileno(), 10, 0):
            time.sleep(0.02)
        self.children.append(network.start(source, sys.executable, "-c", SOURCE, address, str(RATE)))
        return arrived

    def check(self, rows, arrived, begin, end, causes):
        """rows: final results of a lane. Within begin..end the interface was away."""
        arrived.seek(0)
        times = sorted(int(line) for line in arrived if line.strip().isdigit())
        self.assertTrue(rows)
        unknown = [r for r in rows if r["status"] == "unknown"]
        for r in rows:
            self.assertIn(r["status"], ("measured", "partial", "unknown"))
            if r["status"] == "unknown":
                self.assertRegex(r["cause"], causes)
                self.assertTrue(begin - BUSY < r["start_ns"] < end + BUSY, (r["cause"], (r["start_ns"] - begin) / 1e9))
                continue
            self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"], r)
            self.assertEqual(r["received"], r["matched"] + r["late_received"] + r["extra"], r)
            # What did not leave the other side: packets that were sent then, as many as are missing there.
            came = sum(r["start_ns"] <= t < r["start_ns"] + r["length_ns"] for t in times)
            # A source that was held up catches up: more than its rate.
            expected = max(RATE * r["length_ns"] // 10**9, r["sent"])
            self.assertLessEqual(r["lost"], max(0, expected - came) + expected // 5, (r, came))
            if r["start_ns"] + r["length_ns"] <= begin - LENGTH:
                self.assertEqual(r["lost"], 0, r)
        # It is back, and everything is known again.
        after = [r for r in rows if r["start_ns"] >= end + BUSY]
        self.assertTrue(after)
        self.assertTrue(all(r["status"] != "unknown" for r in after))
        self.assertGreater(sum(r["matched"] for r in after[-4:-1]), 0)
        return unknown


class OfLive(Case):
    def setUp(self):
        super().setUp()
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)

    def ip(self, *words, where=None):
        self.network.run(where or self.network.router, "ip", *map(str, words))

    def measure(self, change, *args, code=0, after=2):
        """Returns the final results of the lane from r1 to r2, and when the change began and ended."""
        n = self.network
        out, err = self.path("out"), self.path("err")
        arrived = self.traffic(n, n.one, n.two, "10.2.0.2")
        with open(out, "w") as stdout, open(err, "w") as stderr:
            live = n.start(
                n.router, command.PROGRAM, "live", "--json", "--from", "r1", "--to", "r2", "--interval", "200ms", "--wait", "400ms", *args,
                stdout=stdout, stderr=stderr,
            )
        self.children.append(live)
        stop = time.monotonic() + points.PATIENCE
        while not any(r.get("matched") for r in self.lines(out)) and time.monotonic() < stop:
            time.sleep(0.05)
        time.sleep(0.5)
        begin = time.time_ns()
        change()
        end = time.time_ns()
        time.sleep(after)
        live.send_signal(signal.SIGINT)
        done = live.wait(timeout=points.PATIENCE)
        with open(err) as f:
            self.errors = f.read()
        self.assertEqual(done, code, self.errors)
        self.end_children()
        self.children = []
        rows = [r for r in self.lines(out) if r.get("final") and r["from"] == "r1"]
        return rows, arrived, begin, end

    @staticmethod
    def lines(path):
        with open(path) as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def down(self, interface, seconds):
        def change():
            self.ip("link", "set", interface, "down")
            time.sleep(seconds)
            self.ip("link", "set", interface, "up")

        return change

    def renamed(self):
        for before, after in (("r2", "r9"), ("r9", "r2")):
            self.ip("link", "set", before, "down")
            self.ip("link", "set", before, "name", after)
            self.ip("link", "set", after, "up")
            time.sleep(0.3)

    def replaced(self):
        self.ip("link", "del", "r2")
        time.sleep(0.3)
        self.network.wire(self.network.two, "r2", 2)

    def moved(self):
        n = self.network
        self.ip("link", "set", "r2", "netns", n.one.pid)
        time.sleep(0.3)
        self.ip("link", "set", "r2", "netns", n.router.pid, where=n.one)
        self.ip("addr", "add", "10.2.0.1/24", "dev", "r2")
        self.ip("link", "set", "r2", "up")

    def test_comes_back(self):
        cases = [("down 0.1", self.down("r2", 0.1)), ("removed", self.replaced), ("moved", self.moved), ("renamed", self.renamed)]
        if LONG:
            cases += [("down 0.3", self.down("r2", 0.3)), ("down 2", self.down("r2", 2)), ("in", self.down("r1", 0.3))]
        for name, change in cases:
            with self.subTest(name):
                unknown = self.check(*self.measure(change), "^r[12] was (down|removed)$")
                self.assertTrue(unknown)

    def test_threads(self):
        """Several threads share the interface. It is created again twice, and is the same one when it is renamed."""

        def change():
            self.replaced()
            time.sleep(0.5)
            self.replaced()

        for name, what in (("removed twice", change), ("renamed", self.renamed)):
            with self.subTest(name):
                unknown = self.check(*self.measure(what, "--threads", "3", after=3), "^r[12] was (down|removed|replaced)$")
                self.assertTrue(unknown)
                self.assertNotIn("restart", self.errors)

    def test_settings(self):
        """What changes while packets flow is no outage."""

        def change():
            self.ip("link", "set", "r2", "promisc", "on")
            self.ip("link", "set", "r2", "mtu", "1400")
            self.ip("addr", "add", "10.7.0.1/24", "dev", "r2")
            self.ip("link", "set", "r1", "txqueuelen", "500")
            self.ip("link", "set", "r2", "mtu", "1500")
            self.ip("link", "set", "r2", "promisc", "off")

        rows, arrived, begin, end = self.measure(change)
        self.assertEqual(self.check(rows, arrived, begin, end, "none"), [])
        self.assertEqual(sum(r["lost"] for r in rows), 0)

    def test_no_directions(self):
        """An interface that does not tell which way packets go would show none of them: that is an error."""
        n, words = self.network, "t0 does not show the direction of packets: give "
        tun = n.start(n.router, sys.executable, "-c", TUN_SLIP, stdout=subprocess.PIPE, text=True)
        self.children.append(tun)
        self.addCleanup(tun.stdout.close)
        if tun.stdout.readline() != "ready\n":
            self.skipTest("no TUN devices")
        self.ip("link", "set", "t0", "up")
        with open(self.path("a.yaml"), "w") as f:
            f.write("point: a\npsk: lab.psk\nlisten: 0.0.0.0:0\ninterfaces: [{name: t0}]\nsegments: [{name: x, peer: b}]\n")
        command.oneway("point", "keygen", "--psk", self.path("lab.psk"))
        flows = "point: a\ninterfaces: [{name: t0}]\nflows: [{file: f.epochs, heading: in}]\n"
        with open(self.path("f.yaml"), "w") as f:
            f.write(flows)
        for expected, args in (
            (words + "--forward", ["live", "--from", "t0", "--to", "r2", "--seconds", "1"]),
            ("segment 'x': " + words + "to_peer", ["point", "-c", self.path("a.yaml"), "--seconds", "1"]),
            (words + "a filter, not 'heading'", ["point", "-c", self.path("f.yaml"), "--seconds", "1"]),
        ):
            done = n.start(n.router, command.PROGRAM, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            _, errors = done.communicate(timeout=points.PATIENCE)
            self.assertEqual(done.returncode, 1, errors)
            self.assertIn(expected, errors)

    def test_all_gone(self):
        def change():
            self.ip("link", "del", "r1")
            self.ip("link", "del", "r2")

        rows, _, _, end = self.measure(change, code=1)
        self.assertRegex(self.errors, r"(?m)^oneway live: no interface is left: r1 was removed, r2 was removed$")
        after = [r for r in rows if r["start_ns"] >= end]
        self.assertGreater(len(after), 3)
        self.assertTrue(all(r["status"] == "unknown" and "was removed" in r["cause"] for r in after))


class Pair:
    """Two hosts; wire0 is measured, mgmt0 is for their session, spare0 leads nowhere."""

    def __init__(self):
        self.holders = []
        try:
            self.holders = [router.holder() for _ in range(2)]
            self.london, self.paris = self.holders
            for host in self.holders:
                self.run(host, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
                self.run(host, "ip", "link", "add", "spare0", "type", "veth", "peer", "name", "spare1")
                for name in ("lo", "spare0", "spare1"):
                    self.run(host, "ip", "link", "set", name, "up")
            self.wire("mgmt0", "192.0.2.")
            self.wire("wire0", "10.9.0.")
        except BaseException:
            self.close()
            raise

    prefix = router.Router.prefix
    run = router.Router.run
    start = router.Router.start
    close = router.Router.close

    def wire(self, name, net):
        self.run(self.london, "ip", "link", "add", name, "type", "veth", "peer", "name", name, "netns", str(self.paris.pid))
        for number, host in enumerate(self.holders, 1):
            self.run(host, "ip", "addr", "add", f"{net}{number}/24", "dev", name)
            self.run(host, "ip", "link", "set", name, "up")


CONFIG = """point: {name}
psk: lab.psk
{listen}
interfaces: [{interfaces}]
segments:
  - {{name: x, peer: {peer}, {segment}}}
"""


class OfPoints(Case):
    def setUp(self):
        super().setUp()
        try:
            self.pair = Pair()
        except (router.Unavailable, FileNotFoundError, subprocess.CalledProcessError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.pair.close)
        done = command.oneway("point", "keygen", "--psk", self.path("lab.psk"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def begin(self, host, name, peer, listen="", segment="", interfaces="{name: wire0}, {name: spare0}"):
        with open(self.path(name + ".yaml"), "w") as f:
            f.write(CONFIG.format(name=name, peer=peer, listen=listen, segment=segment, interfaces=interfaces))
        point = points.Point(self.path(name + ".yaml"), prefix=self.pair.prefix(host))
        self.addCleanup(point.close)
        return point

    def begin_both(self, address="192.0.2.2", classes="", **options):
        paris = self.begin(self.pair.paris, "paris", "london", listen="listen: 0.0.0.0:8620", **options)
        paris.wait_for("listening on")
        london = self.begin(
            self.pair.london, "london", "paris", segment=f'connect: "{address}:8620", interval: 200ms, wait: 400ms{classes}', **options
        )
        london.wait_for_intervals()
        return london, paris

    def measure(self, change, after=2):
        p = self.pair
        london, paris = self.begin_both()
        arrived = {"london": self.traffic(p, p.london, p.paris, "10.9.0.2"), "paris": self.traffic(p, p.paris, p.london, "10.9.0.1")}
        time.sleep(1.5)
        begin = time.time_ns()
        change()
        end = time.time_ns()
        time.sleep(after)
        london.stop()
        paris.stop()
        results = {name: point.end()[0] for name, point in (("london", london), ("paris", paris))}
        self.end_children()
        self.children = []
        return {"london": london, "paris": paris}, results, arrived, begin, end

    def link(self, host, *words):
        self.pair.run(host, "ip", "link", *words)

    def down(self, host, interface, seconds):
        def change():
            self.link(host, "set", interface, "down")
            time.sleep(seconds)
            self.link(host, "set", interface, "up")

        return change

    def replaced(self):
        self.link(self.pair.paris, "del", "wire0")
        time.sleep(0.3)
        self.pair.wire("wire0", "10.9.0.")

    def test_comes_back(self):
        p = self.pair
        cases = [("receiver", self.down(p.paris, "wire0", 0.3)), ("spare", self.down(p.london, "spare0", 0.1)), ("removed", self.replaced)]
        if LONG:
            cases += [("sender", self.down(p.london, "wire0", 0.1)), ("long", self.down(p.paris, "wire0", 2))]
        for name, change in cases:
            with self.subTest(name):
                told, results, arrived, begin, end = self.measure(change)
                for point, rows in results.items():
                    self.assertEqual(told[point].code, 0, told[point].log)
                    for sender in ("london", "paris"):
                        lane = [r for r in rows if r["final"] and r["from"] == sender]
                        unknown = self.check(lane, arrived[sender], begin, end, "^(london|paris): (wire|spare)0 was (down|removed)$")
                        self.assertTrue(unknown, (point, sender))

    def test_all_gone(self):
        """The point waits; ended without any interface it says so."""

        def change():
            for name in ("wire0", "spare0"):
                self.link(self.pair.paris, "del", name)

        told, results, _, begin, _ = self.measure(change)
        self.assertEqual(told["paris"].code, 1)
        self.assertIn("oneway point: no interface is left: wire0 was removed, spare0 was removed", told["paris"].log)
        self.assertEqual(told["london"].code, 0, told["london"].log)
        for rows in results.values():
            after = [r for r in rows if r["final"] and r["start_ns"] >= begin]
            self.assertGreater(len(after), 4)
            for r in after:
                self.assertEqual(r["status"], "unknown", r)
                # At the very end the other point has left.
                self.assertRegex(r["cause"], "was removed|stopped|left|ends")

    def test_another_kind(self):
        """The cause is what keeps it away now, not what did at first."""
        other = "wire0 was replaced by an interface of another kind"

        def change():
            self.link(self.pair.paris, "del", "wire0")
            time.sleep(0.3)
            self.pair.run(self.pair.paris, "ip", "tuntap", "add", "wire0", "mode", "tun")
            self.link(self.pair.paris, "set", "wire0", "up")
            time.sleep(1)
            self.link(self.pair.paris, "del", "wire0")
            self.pair.wire("wire0", "10.9.0.")

        told, results, _, begin, end = self.measure(change)
        self.assertIn(f"warning: {other}", told["paris"].log)
        self.assertRegex(told["paris"].log, r"wire0 is back, was \w+ for 1\.\d+ s")
        for rows in results.values():
            causes = [r["cause"] for r in rows if r["final"] and r["status"] == "unknown" and begin < r["start_ns"] < end]
            self.assertIn(f"paris: {other}", causes)
            self.assertTrue(all(r["status"] != "unknown" for r in rows if r["final"] and r["start_ns"] > end + BUSY))

    def test_own_session(self):
        """Nothing goes over the wire but their session: the class without a filter has no packet, others have it."""
        classes = ", classes: [{name: all}, {name: tcp, filter: tcp}, {name: some, filter: ip}]"
        both = self.begin_both("10.9.0.2", classes, interfaces="{name: wire0}")
        both[0].wait_for("agreed on", 6)
        time.sleep(2)
        for point in both:
            point.stop()
        for point in both:
            _, summaries = point.end()
            self.assertEqual(point.code, 0, point.log)
            self.assertEqual({s["class"] for s in summaries}, {"all", "tcp", "some"})
            for s in summaries:
                self.assertEqual(s["lost"], 0, s)
                self.assertEqual(s["sent"] + s["received"] > 0, s["class"] != "all", s)


if __name__ == "__main__":
    unittest.main()
