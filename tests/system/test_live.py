# SPDX-License-Identifier: Apache-2.0
"""oneway live on a router, beside captures of the same packets and oneway match; and what it says when it cannot."""
import contextlib
import ctypes
import errno
import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import command
import router

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60  # seconds; sanitizers and a busy machine are slow


class Live:
    """oneway live as a process. Its lines of JSON go to a file, which can be read while it runs."""

    def __init__(self, case, *args):
        self.out, self.err = (tempfile.TemporaryFile("w+") for _ in range(2))
        network = case.network
        self.process = network.start(network.router, command.PROGRAM, "live", "--json", *args, stdout=self.out, stderr=self.err)
        case.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()

    def read(self, file):
        return os.pread(file.fileno(), 1 << 26, 0).decode()

    def wait(self):
        """Until it measures: it has a result."""
        end = time.monotonic() + PATIENCE
        while "\n" not in self.read(self.out):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("no result: " + self.read(self.err))
            time.sleep(0.05)

    def end(self, how=signal.SIGINT):
        if how:
            self.process.send_signal(how)
        self.code = self.process.wait(timeout=PATIENCE)
        self.errors = self.read(self.err)
        lines = [json.loads(line) for line in self.read(self.out).splitlines()]
        self.results = [r for r in lines if "status" in r]
        self.summary = {(r["class"], r["from"], r["to"]): r for r in (s["summary"] for s in lines if "summary" in s)}


class OnRouter(command.Case):
    def setUp(self):
        super().setUp()
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)
        self.children = []
        self.addCleanup(self.kill_children)

    def kill_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()

    def child(self, where, script, *args):
        """A script that says when it is ready."""
        child = self.network.python(where, script, *args, stdout=subprocess.PIPE, text=True)
        self.children.append(child)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def sniff(self, interface):
        path = self.path(f"{interface}.pcap")
        child = self.network.start(
            self.network.router, sys.executable, os.path.join(HERE, "sniff.py"), interface, path, stdout=subprocess.PIPE, text=True
        )
        self.children.append(child)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return path, child

    def kernel_records(self):
        """Skips a test where the kernel cannot record; a ring would take its place."""
        done = command.oneway("doctor", "--json")
        checks = {check["name"]: check for check in json.loads(done.stdout)["checks"] if check["about"] == "host"}
        if checks["kernel_capture"]["state"] != "ok":
            self.skipTest(checks["kernel_capture"]["found"])

    def udp(self):
        """UDP both ways, and superframes of both kinds. Their packets have one time, whoever looks at them."""
        n = self.network
        for host in (n.one, n.two):
            self.child(host, router.UDP_SINK, 7000)
        n.run(n.router, "ip", "neigh", "add", "10.2.0.99", "lladdr", n.mac(n.two, "eth0"), "dev", "r2")
        yield
        self.finish(
            n.python(n.one, router.UDP_SOURCE, "10.2.0.2", 7000, 3000, 2000),
            n.python(n.two, router.UDP_SOURCE, "10.1.0.2", 7000, 3000, 2000),
            n.python(n.one, router.TCP_FRAMES, n.mac(n.router, "r1"), 600, 400),
        )
        yield

    def tcp(self):
        """Connections both ways, which react to losses. A packet that a host's TCP has sent carries the time at which it
        should leave; over a veth it arrives with that, and then the kernel lets every socket take a time of its own: here
        counts can be compared, delays only roughly."""
        n = self.network
        for host in (n.one, n.two):
            self.child(host, router.TCP_SINK, 7001)
        yield
        self.finish(
            n.python(n.one, router.TCP_SOURCE, "10.2.0.2", 7001, 6 << 20),
            n.python(n.two, router.TCP_SOURCE, "10.1.0.2", 7001, 3 << 20),
        )
        yield

    def finish(self, *sources):
        self.children += sources
        for source in sources:
            self.assertEqual(source.wait(timeout=PATIENCE), 0)


class AgreesWithMatch(OnRouter):
    def check_direction(self, live, exact, apart_ns):
        """The run as one result, against the exact match of the captures."""
        # Not reordered: two packets that two processors take at the same time come to each socket in an order of its own.
        for name in ("sent", "received", "matched", "lost", "extra", "duplicated", "pending"):
            self.assertEqual(live[name], exact.get(name, 0), (name, live, exact))
        self.assertTrue(live["exact"])
        self.assertEqual(live["status"], "measured")
        if apart_ns is not None:
            self.assertLessEqual(abs(live["delay_ns"]["mean"] - exact["delay_ns"]["mean"]), apart_ns + 0.01)
        if apart_ns == 0:
            self.assertEqual(live["delay_ns"]["min"], exact["delay_ns"]["min"])
            self.assertEqual(live["delay_ns"]["max"], exact["delay_ns"]["max"])

    def check_intervals(self, live):
        """Every interval is told twice, conserves its packets, and all together are the run."""
        sums = {}
        seen = {}
        for r in live.results:
            self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"])
            self.assertEqual(r["received"], r["matched"] + r["late_received"] + r["extra"])
            lane = (r["class"], r["from"], r["to"])
            seen.setdefault((lane, r["interval"]), []).append(r["final"])
            if r["final"]:
                total = sums.setdefault(lane, dict.fromkeys(("sent", "lost", "matched", "extra"), 0))
                for name in ("sent", "lost", "extra"):
                    total[name] += r[name]
                total["matched"] += r["matched"] + r["late"]
        for told in seen.values():
            self.assertEqual(told, [False, True])
        for lane, total in live.summary.items():
            self.assertEqual(total["sent"] and {k: total[k] for k in sums[lane]}, total["sent"] and sums[lane])

    def compare(self, make_traffic, shaped, apart_ns, *options):
        """Two measurements with different intervals, and a capture at both interfaces, of the same traffic. apart_ns: how far the mean delays
        may be apart; None = the captures have other times."""
        n = self.network
        if shaped and not n.shape("r2"):
            self.skipTest("this kernel has no tbf")
        lives = [
            Live(self, "--from", "r1", "--to", "r2", "--interval", "1s", *options),
            Live(self, "--from", "r1", "--to", "r2", "--interval", "100ms", "--class", "udp=udp", "--class", "tcp=tcp", *options),
        ]
        traffic = make_traffic()
        next(traffic)
        for host in (n.one, n.two):
            self.child(host, router.UDP_SINK, 7009)
        paths, sniffers = zip(self.sniff("r1"), self.sniff("r2"))
        for live in lives:
            live.wait()
        next(traffic)
        time.sleep(0.3)
        if shaped:
            # The last packet may have been lost: one that arrives shows that the captures cover it.
            self.finish(*(n.python(host, router.UDP_SOURCE, to, 7009, 1, 1000) for host, to in ((n.one, "10.2.0.2"), (n.two, "10.1.0.2"))))
            time.sleep(0.1)
        for live in lives:
            live.end()
            self.assertEqual(live.code, 0, live.errors)
            self.check_intervals(live)
        for sniffer in sniffers:
            sniffer.terminate()
            if int(sniffer.stdout.read()):
                self.skipTest("the capture beside it dropped frames")
            sniffer.wait()
        done = command.oneway("match", "--json", "--segments", "off", *paths)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        for direction, ends in (("a_to_b", ("r1", "r2")), ("b_to_a", ("r2", "r1"))):
            exact = report[direction]
            self.check_direction(lives[0].summary[("all", *ends)], exact, apart_ns)
            # Both classes are all there is.
            parts = [lives[1].summary[lane] for lane in lives[1].summary if lane[1:] == ends]
            for name in ("sent", "received", "matched", "lost", "extra"):
                self.assertEqual(sum(p[name] for p in parts), exact[name], name)
            mean = sum(p["delay_ns"]["mean"] * p["matched"] for p in parts) / exact["matched"]
            if apart_ns is not None:
                self.assertLessEqual(abs(mean - exact["delay_ns"]["mean"]), apart_ns + 0.01)
        return report

    def test_udp_and_superframes(self):
        report = self.compare(self.udp, False, 0)
        self.assertEqual(report["a_to_b"]["lost"], 0)
        # Superframes were cut: 2625 datagrams and 375 times 10, 599 times 9 segments and one of 8; 9 times 600 less 1.
        self.assertEqual(report["b_to_a"]["sent"], 2625 + 3750)
        self.assertEqual(report["a_to_b"]["sent"], 2625 + 3750 + 9 * 600 - 1)

    def test_udp_and_superframes_with_loss(self):
        report = self.compare(self.udp, True, 0)
        self.assertGreater(report["a_to_b"]["lost"], 0)

    def test_tcp(self):
        report = self.compare(self.tcp, False, None)
        self.assertGreater(report["a_to_b"]["sent"], (6 << 20) // 1460)

    def test_tcp_with_loss(self):
        report = self.compare(self.tcp, True, None)
        self.assertGreater(report["a_to_b"]["lost"], 0)

    def test_recorded_in_the_kernel(self):
        """The same packets. Times are taken less than a microsecond later than the captures have; on a busy machine the processor is sometimes taken away in between."""
        self.kernel_records()
        report = self.compare(self.udp, True, 10000, "--capture", "kernel")
        self.assertGreater(report["a_to_b"]["lost"], 0)

    def test_tcp_recorded_in_the_kernel(self):
        self.kernel_records()
        self.compare(self.tcp, True, None, "--capture", "kernel")


class InTheKernel(OnRouter):
    """What recording in the kernel leaves, and what it says when it does not take place."""

    BPF = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351, "ppc64le": 361}.get(os.uname().machine)
    FROM_ID = {"prog_id": 13, "map_id": 14}  # BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID

    def setUp(self):
        super().setUp()
        self.kernel_records()

    def objects(self, pid):
        """Programs and maps that a process holds: their kind and id in the kernel."""
        found = set()
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{fd}") as info:
                found |= {(key, int(value)) for key, value in (line.split(":", 1) for line in info if ":" in line) if key in self.FROM_ID}
        return found

    def exists(self, kind, number):
        attributes = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 128)
        fd = ctypes.CDLL(None, use_errno=True).syscall(self.BPF, self.FROM_ID[kind], attributes, 128)
        if fd < 0:
            self.assertEqual(ctypes.get_errno(), errno.ENOENT)
            return False
        os.close(fd)
        return True

    def sockets(self):
        return len(self.network.run(self.network.router, "cat", "/proc/net/packet").splitlines())

    def test_nothing_is_left_when_it_is_killed(self):
        if not self.BPF:
            self.skipTest("the number of bpf(2) is not known here")
        before = self.sockets()
        live = Live(self, "--from", "r1", "--to", "r2", "--interval", "200ms", "--capture", "kernel")
        live.wait()
        objects = self.objects(live.process.pid)
        self.assertEqual(sorted(kind for kind, _ in objects if kind == "prog_id"), ["prog_id"] * 2)
        self.assertGreaterEqual(len(objects), 2 * 3, objects)
        self.assertEqual([o for o in objects if not self.exists(*o)], [])
        self.assertEqual(self.sockets(), before + 2)
        live.process.kill()
        live.process.wait()
        # The kernel frees them when no processor can use them any more.
        end = time.monotonic() + PATIENCE
        while (left := [o for o in objects if self.exists(*o)] or self.sockets() != before) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(left)
        self.assertNotIn("PROMISC", self.network.run(self.network.router, "ip", "link"))

    def test_both_ends_or_none(self):
        """Times of two kinds are never compared: an interface that a ring has to record takes the other one along."""
        n = self.network
        try:
            n.run(n.router, "ip", "tuntap", "add", "dev", "t0", "mode", "tun")
        except subprocess.CalledProcessError as error:
            self.skipTest(error.stderr)
        n.run(n.router, "ip", "link", "set", "t0", "up")
        live = Live(self, "--from", "r1", "--to", "t0", "--interval", "200ms", "--capture", "kernel")
        live.wait()
        self.assertFalse(self.objects(live.process.pid))
        live.end()
        self.assertIn("warning: not recorded in the kernel: t0: only Ethernet is recorded in the kernel\n", live.errors)
        self.assertIn("warning: not recorded in the kernel: r1: t0 is not, and their times would differ\n", live.errors)

    def test_a_point_says_what_differs(self):
        """A filter needs a ring, with a configuration as with options; and a segment with times of two kinds is named."""
        n = self.network
        self.assertEqual(command.oneway("point", "keygen", "--psk", self.path("lab.psk")).returncode, 0)
        with open(self.path("point.yaml"), "w") as f:
            f.write(f"point: london\npsk: {self.path('lab.psk')}\ninterfaces:\n  - {{name: r1, capture: kernel}}\n"
                    "  - {name: r2, capture: kernel, filter: udp}\nsegments:\n  - name: x\n    peer: paris\n"
                    "    connect: 127.0.0.1:9\n    interfaces: [r1, r2]\n")
        with open(self.path("log"), "w+") as log:
            point = n.start(n.router, command.PROGRAM, "point", "-c", self.path("point.yaml"), stdout=subprocess.DEVNULL, stderr=log)
            self.addCleanup(point.wait)
            self.addCleanup(point.kill)
            end = time.monotonic() + PATIENCE
            while "segment 'x'" not in (said := os.pread(log.fileno(), 1 << 16, 0).decode()) and time.monotonic() < end:
                self.assertIsNone(point.poll(), said)
                time.sleep(0.05)
        self.assertIn("not recorded in the kernel: r2: filters of an interface need a ring", said)
        self.assertIn("segment 'x': r1 is recorded in the kernel and r2 is not: their times differ", said)
        live = Live(self, "--from", "r1", "--to", "r2", "--interval", "200ms", "--capture", "kernel", "--filter", "udp")
        live.wait()
        live.end()
        self.assertIn("not recorded in the kernel: r2: filters of an interface need a ring", live.errors)


class HeldUp(OnRouter):
    def test_rings_hold_headers(self):
        """Three times as many bytes of TCP as the ring has, while nobody reads it: nothing is missed."""
        n = self.network
        live = Live(self, "--from", "r1", "--to", "r2", "--interval", "500ms", "--ring", "64MiB")
        self.child(n.two, router.TCP_SINK, 7001)
        live.wait()
        before = n.sent_bytes("r2")
        live.process.send_signal(signal.SIGSTOP)
        try:
            self.finish(n.python(n.one, router.TCP_SOURCE, "10.2.0.2", 7001, 192 << 20))
        finally:
            live.process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        live.end()
        self.assertEqual(live.code, 0, live.errors)
        for r in live.results:
            self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"])
            self.assertEqual(r["received"], r["matched"] + r["late_received"] + r["extra"])
        forward = live.summary[("all", "r1", "r2")]
        self.assertEqual(forward["ring_drops"], {"from": 0, "to": 0})
        for lane in live.summary.values():
            self.assertEqual((lane["status"], lane["lost"], lane["unreadable"]), ("measured", 0, 0))
        # The wire carries each packet's own headers; the counter of the kernel has those of superframes once.
        sent = n.sent_bytes("r2") - before
        self.assertGreater(forward["bytes"], 192 << 20)
        self.assertLess(abs(forward["bytes"] - sent) / sent, 0.06)

    def test_full_rings_of_processors_are_not_losses(self):
        self.kernel_records()
        self.hold_up("--capture", "kernel")

    def test_full_rings_are_not_losses(self):
        self.hold_up()

    def hold_up(self, *options):
        """It stands still for several intervals while traffic goes on. Frames are dropped long after those that it reads
        next: the intervals in which they were sent are the ones in doubt, and no packet is lost."""
        n = self.network
        live = Live(self, "--from", "r1", "--to", "r2", "--interval", "500ms", "--wait", "500ms", "--ring", "1MiB", *options)
        self.child(n.two, router.UDP_SINK, 7000)
        live.wait()
        source = n.python(n.one, router.UDP_SOURCE, "10.2.0.2", 7000, 5000, 1000)
        time.sleep(1)
        live.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        live.process.send_signal(signal.SIGCONT)
        self.finish(source)
        time.sleep(0.3)
        live.end()
        dropped = {r["interval"] for r in live.results if r["ring_drops"]["to"]}
        print(f"frames were dropped in intervals {sorted(dropped)}")
        self.assertGreaterEqual(len(dropped), 3)
        for r in live.results:
            self.assertEqual(r["lost"] or 0, 0, r)
            self.assertTrue(r["interval"] not in dropped or r["status"] == "partial", r)
        # Each frame stands for as many packets as those that were seen: of 5000 sendings 625 are superframes of ten.
        summary = live.summary[("all", "r1", "r2")]
        known = (summary["sent"] - summary["pending"]) / (4375 + 6250)
        print(f"coverage {summary['coverage']:.3f}, in truth {known:.3f}")
        self.assertLess(summary["coverage"], 0.8)
        self.assertAlmostEqual(summary["coverage"], known, delta=0.1)


class OfFiles(command.Case):
    """Captures that are replayed: no interface, no privilege."""

    def live(self, *args, code=0):
        done = command.oneway("live", "--from", self.a, "--to", self.b, "--speed", 0, *args)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def lines(self, *args):
        return [json.loads(line) for line in self.live("--json", *args).stdout.splitlines()]

    def test_intervals_do_not_matter(self):
        """The run has the same numbers however it is cut: those of the truth."""
        truth = self.simulate("--loss", 0.02, "--rate", 20000, "--duplicate", 0.01, "--seed", 7, packets=40000)
        exact = json.loads(self.match("--json"))["a_to_b"]
        for interval in ("1ms", "10ms", "100ms", "1s", "10s"):
            with self.subTest(interval=interval):
                total = self.lines("--interval", interval, "--forward", "ip or ip6")[-1]["summary"]
                # The first packets were sent before the second capture began, the last arrive after the first has ended.
                for name in ("sent", "received", "matched", "lost"):
                    self.assertLessEqual(abs(total[name] - exact[name]), 5, name)
                self.assertLessEqual(abs(total["lost"] - truth["lost"]), 5)
                self.assertEqual(total["sent"], total["matched"] + total["lost"] + total["pending"])
                self.assertLessEqual(abs(total["delay_ns"]["mean"] / exact["delay_ns"]["mean"] - 1), 0.001)
                self.assertEqual(total["delay_ns"]["max"], exact["delay_ns"]["max"])

    def test_both_directions(self):
        self.simulate("--reverse", 0.3, "--seed", 3)
        report = json.loads(self.match("--json"))
        lanes = [line["summary"] for line in self.lines("--forward", "src net 10.0.0.0/8") if "summary" in line]
        self.assertEqual([(r["from"], r["to"]) for r in lanes], [("a.pcap", "b.pcap"), ("b.pcap", "a.pcap")])
        for lane, direction in zip(lanes, ("a_to_b", "b_to_a")):
            self.assertLessEqual(abs(lane["sent"] - report[direction]["sent"]), 5)
            self.assertEqual(lane["extra"], 0)

    def test_provisional_and_final(self):
        self.simulate("--rate", 10000)
        results = [r for r in self.lines("--interval", "100ms", "--forward", "ip or ip6") if "status" in r]
        self.assertEqual([r["interval"] for r in results if r["final"]], [r["interval"] for r in results if not r["final"]])
        for class_ in ("a=ip or ip6", "b=udp"):  # finals of all lanes come interval by interval
            lines = self.lines("--interval", "100ms", "--wait", "300ms", "--forward", "ip or ip6", "--class", class_, "--class", "c=tcp")
            told = [r["interval"] for r in lines if "status" in r and r["final"]]
            self.assertEqual(told, sorted(told))
        text = self.live("--interval", "100ms", "--forward", "ip or ip6").stdout
        both = self.live("--interval", "100ms", "--forward", "ip or ip6", "--provisional").stdout
        self.assertGreater(both.count("~"), 3)
        self.assertEqual(text.count("~"), 0)

    def times(self, path, change):
        """Gives records other times: change(number, seconds, fraction) of each."""
        with open(path, "rb") as f:
            data = bytearray(f.read())
        at, number = 24, 0
        while at < len(data):
            seconds, fraction, size, _ = struct.unpack_from("<IIII", data, at)
            struct.pack_into("<II", data, at, *change(number, seconds, fraction))
            at, number = at + 16 + size, number + 1
        with open(path, "wb") as f:
            f.write(data)

    def test_frames_without_a_time(self):
        """They are left out, and said so: results do not begin in 1970."""
        self.simulate("--rate", 1000, packets=3000)
        for path in (self.a, self.b):
            self.times(path, lambda i, s, f: (0, 0) if i in (0, 1500) else (s, f))
        done = self.live("--json", "--forward", "ip or ip6")
        self.assertLess(done.stdout.count("\n"), 20)
        self.assertIn("2 packets are left out: no timestamp (0)", done.stderr)

    def test_years_without_packets(self):
        """One wrong time must not make a result of each second since."""
        self.simulate("--rate", 1000, packets=3000)
        for path in (self.a, self.b):
            self.times(path, lambda i, s, f: (1000, 0) if i == 0 else (s, f))
        done = self.live("--json", "--forward", "ip or ip6", code=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("more than 1000000 intervals", done.stderr)
        self.assertIn("packet 2 is", done.stderr)
        self.live("--json", "--forward", "ip or ip6", "--count", 10)

    def test_a_signal_ends_it(self):
        """Also while there are a million results without a packet to tell."""
        self.simulate("--rate", 1000, packets=3000)
        for path in (self.a, self.b):
            self.times(path, lambda i, s, f: (s - 900000, 0) if i == 0 else (s, f))
        run = subprocess.Popen([command.PROGRAM, "live", "--from", self.a, "--to", self.b, "--speed", "0", "--json", "--forward", "ip or ip6"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(100):
            self.assertTrue(run.stdout.readline())
        run.terminate()
        told = run.stdout.read().count(b"\n")
        self.assertEqual(run.wait(timeout=PATIENCE), 0)
        run.stdout.close()
        self.assertLess(told, 400000)

    def test_filters_and_tags(self):
        """A filter takes the same packets at both ends, or the result says that it cannot."""
        for at_b, filters in ((("--b-encap", "vlan:5"), ("udp", "vlan 5 and udp")), ((), ("udp",))):
            self.simulate("--rate", 1000, "--loss", 0.05, "--a-encap", "vlan:5", *at_b)
            sent = set()
            for filter_ in filters:
                total = self.lines("--forward", "ip or ip6", "--class", "x=" + filter_)[-1]["summary"]
                self.assertGreater(total["matched"], 500)
                self.assertLess(total["lost"], 0.1 * total["sent"])
                sent.add(total["sent"])
            self.assertEqual(len(sent), 1)
        # B has no tags: its packets are there, and not lost.
        done = self.live("--json", "--forward", "ip or ip6", "--class", "x=vlan 5 and udp", code=1)
        results = [r for r in map(json.loads, done.stdout.splitlines()) if "status" in r]
        unknown = [r for r in results if r["status"] == "unknown"]
        self.assertGreater(len(unknown), 3)
        for result in unknown:
            self.assertIn("the filter takes no packet at b.pcap", result["cause"])
        for result in results:
            self.assertFalse(result["lost"])

    def test_order_of_time(self):
        """Files joined in the wrong order are refused; a few wrong times are not."""
        self.simulate("--rate", 1000, packets=10000)
        self.times(self.a, lambda i, s, f: (s - 100, f) if i >= 5000 else (s, f))
        for args in (("match", self.a, self.b), ("compare", self.a, self.b), ("live", "--from", self.a, "--to", self.b, "--forward", "ip or ip6", "--speed", "0")):
            done = command.oneway(*args)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("not in the order of time", done.stderr)
            self.assertIn("packet 5001", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.simulate("--rate", 1000, packets=10000)
        self.times(self.a, lambda i, s, f: (s + 100, f) if i % 1000 == 500 else (s, f))
        self.assertIn("backwards", self.match())

    def test_thresholds(self):
        self.simulate("--loss", 0.05)
        way = ("--forward", "ip or ip6")
        self.assertIn("--max-loss", self.live(*way, "--max-loss", "1%", code=3).stderr)
        self.assertIn("p99 delay", self.live(*way, "--max-delay-p99", "1ns", code=3).stderr)
        self.live(*way, "--max-loss", "10%", "--max-delay-p99", "1s")

    def test_class_without_packets(self):
        """A mistake in a filter: the class would otherwise just not be there."""
        self.simulate()
        done = self.live("--forward", "ip or ip6", "--class", "all=ip or ip6", "--class", "web=host 192.0.2.77")
        self.assertIn("no packet matched class 'web'", done.stderr)
        self.assertNotIn("'all'", done.stderr)

    def test_no_match_is_an_error(self):
        self.simulate("--seed", 1)
        other = self.path("other.pcap")
        os.rename(self.b, other)
        self.simulate("--seed", 2)
        done = command.oneway("live", "--from", self.a, "--to", other, "--forward", "ip or ip6", "--speed", 0)
        self.assertEqual(done.returncode, 1)
        self.assertIn("left matched", done.stderr)

    def test_store(self):
        self.simulate()
        self.live("--forward", "ip or ip6", "--store", self.path("results.db"))
        with contextlib.closing(sqlite3.connect(self.path("results.db"))) as store:
            tables = [row[0] for row in store.execute("select name from sqlite_master where type = 'table'")]
        self.assertTrue(tables)

    def test_table(self):
        self.simulate()
        code, text = command.on_terminal("live", "--from", self.a, "--to", self.b, "--speed", 0, "--forward", "ip or ip6")
        self.assertEqual(code, 0)
        self.assertIn("a.pcap>b.pcap", text)
        self.assertIn("\x1b[2K", text)
        code, text = command.on_terminal("live", "--lines", "--from", self.a, "--to", self.b, "--speed", 0, "--forward", "ip or ip6")
        self.assertNotIn("\x1b[2K", text)

    def test_signal(self):
        """Ctrl-C in the middle: what was measured until then, and a summary."""
        self.simulate("--rate", 1000, packets=20000)
        process = subprocess.Popen(
            [command.PROGRAM, "live", "--from", self.a, "--to", self.b, "--forward", "ip or ip6", "--interval", "100ms"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.assertIn("sent", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        text = process.stdout.read()
        self.assertEqual(process.wait(timeout=PATIENCE), 0)
        process.stdout.close()
        self.assertIn("--- all a.pcap>b.pcap ---", text)

    def test_signal_while_files_are_looked_at(self):
        """A file of 256 GB, of frames without a time: a signal ends the search for its end."""
        self.simulate()
        os.truncate(self.a, 1 << 38)
        process = subprocess.Popen([command.PROGRAM, "live", "--from", self.a, "--to", self.b, "--forward", "ip or ip6"])
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(process.wait(timeout=PATIENCE), -signal.SIGTERM)
        finally:
            process.kill()


class Refused(command.Case):
    def test_pipes(self):
        """Files are read twice."""
        self.simulate()
        os.mkfifo(self.path("pipe"))
        for ends in ("--from", self.a, "--to", self.path("pipe")), ("--to", self.a, "--from", self.path("pipe")):
            self.assert_refused(command.oneway("live", *ends, "--forward", "ip or ip6", timeout=PATIENCE), 2, "pipe")

    def test_usage(self):
        live = lambda *args: command.oneway("live", *args)
        self.assert_refused(live(), 2, "--from and --to")
        self.assert_refused(live("--from", "lo"), 2, "--from and --to")
        self.assert_refused(live("--from", "lo", "--to", "lo"), 2, "both lo")
        self.assert_refused(live("lo", "--from", "lo", "--to", "eth0"), 2, "unexpected 'lo'")
        self.assert_refused(live("--from", "lo", "--to", "x", "--interval", "1us"), 2, "--interval")
        self.assert_refused(live("--from", "lo", "--to", "x", "--interval", "1ms", "--wait", "2s"), 2, "--wait")
        self.assert_refused(live("--from", "lo", "--to", "x", "--class", "udp"), 2, "--class", "NAME=FILTER")
        self.assert_refused(live("--from", "lo", "--to", "x", "--class", "a=udp", "--class", "a=tcp"), 2, "twice")
        self.assert_refused(live("--from", "lo", "--to", "x", "--seconds", "5", "--count", "5"), 2, "--seconds", "--count")
        self.simulate(packets=10)
        self.assert_refused(live("--from", self.a, "--to", "lo"), 2, "capture file", "lo is not")
        self.assert_refused(live("--from", self.a, "--to", self.a), 2, "both")
        self.assert_refused(live("--from", self.a, "--to", self.b), 2, "--forward")

    def test_interfaces(self):
        self.assert_refused(command.oneway("live", "--from", "nosuch0", "--to", "lo"), 1, "nosuch0")
        libc = ctypes.CDLL(None)
        without_net_raw = lambda: libc.prctl(24, 13, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_NET_RAW
        done = subprocess.run(
            [command.PROGRAM, "live", "--from", "lo", "--to", "nosuch0"], capture_output=True, text=True, preexec_fn=without_net_raw
        )
        self.assert_refused(done, 1, "lo", "CAP_NET_RAW")

    def test_captures_of_different_times(self):
        self.simulate("--seed", 1, packets=100)
        with open(self.b, "rb") as f:
            data = bytearray(f.read())
        at = 24
        while at < len(data):
            seconds, _, caplen, _ = struct.unpack_from("<IIII", data, at)
            struct.pack_into("<I", data, at, seconds + 3600)
            at += 16 + caplen
        with open(self.b, "wb") as f:
            f.write(data)
        done = command.oneway("live", "--from", self.a, "--to", self.b, "--forward", "ip or ip6", "--speed", 0)
        self.assert_refused(done, 1, "not taken at the same time")


if __name__ == "__main__":
    unittest.main()
