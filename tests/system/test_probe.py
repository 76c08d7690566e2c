# SPDX-License-Identifier: Apache-2.0
"""oneway plane probe and reflect as processes, each in a namespace of its own, with a wire between them that treats the two
directions differently and knows what it did to each packet. Without the right to make namespaces: on loopback only."""
import json
import math
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

import command
import points

LABWIRE = os.environ.get("LABWIRE", "build/tests/system/labwire")
SEED = 20260
THERE, BACK, ROUND = 0, 1, 2
ADDRESS = {"a": "198.51.100.1", "b": "198.51.100.2"}
MS = 10**6


class Net:
    """Two hosts and their wire; the only packets on it are ours."""

    def __init__(self, there, back):
        words = [LABWIRE, "1s", there[0], str(there[1]), "0", "0", str(SEED), back[0], str(back[1])]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if not first:
            why = self.process.communicate()[1]
            raise unittest.SkipTest(f"no namespaces: {why.strip()}") if self.process.returncode == 77 else AssertionError(why)
        self.path = json.loads(first)["hosts"]

    def enter(self, host):
        return ["nsenter", "--net=" + self.path[host]]

    def end(self):
        """What the wire did in the whole run, by the host that sent."""
        out, _ = self.process.communicate(timeout=points.PATIENCE)
        said = [json.loads(line) for line in out.splitlines()]
        return {s["from"]: s for s in said if s["total"]}

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Reflector:
    def __init__(self, *args, prefix=()):
        words = [*prefix, command.PROGRAM, "plane", "reflect", "--json", *map(str, args)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = ""
        # With a sanitizer it says first that there is no sandbox.
        while "listening on" not in said:
            line = self.process.stderr.readline()
            if not line:
                self.process.communicate()
                raise AssertionError(said)
            said += line

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=points.PATIENCE)
        assert self.process.returncode == 0, err
        return json.loads(out)["reflector"]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Probed(command.Case):
    def reflector(self, *args, **kwargs):
        reflector = Reflector(*args, **kwargs)
        self.addCleanup(reflector.close)
        return reflector

    def probe(self, *args, prefix=(), code=0):
        done = subprocess.run([*prefix, command.PROGRAM, "plane", "probe", "--json", *map(str, args)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        said = [json.loads(line) for line in done.stdout.splitlines()]
        results = [s for s in said if "segment" in s]
        for r in results:
            self.assertTrue(r["active"], r)
            self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"], r)
            self.assertEqual(r["received"], r["matched"] + r["late_received"] + r["extra"], r)
        self.log = done.stderr
        return results, [s["summary"] for s in said if "summary" in s], [s["session"] for s in said if "session" in s]

    def key(self, name):
        path = self.path(name)
        done = command.oneway("point", "keygen", "--psk", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path


class OnTheWire(Probed):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("namespaces need root")

    def net(self, there, back):
        net = Net(there, back)
        self.addCleanup(net.close)
        return net

    def check_delays(self, summary, wire):
        """The wire's own times are within those of the hosts; what is beyond is the hosts' stacks. Delays are
        known of those that came back: of what else the wire delivered each may have had its longest delay."""
        for lane, host in ((THERE, "a"), (BACK, "b")):
            samples, of, delay = summary[lane]["samples"], wire[host]["matched"], summary[lane]["delay_ns"]
            beyond = delay["mean"] - wire[host]["mean_ns"]
            others = (of - samples) / samples * (wire[host]["max_ns"] - wire[host]["mean_ns"])
            self.assertGreater(beyond, -0.02 * MS - others, (lane, summary[lane], wire))
            self.assertLess(beyond, 2 * MS, (lane, summary[lane], wire))
        mean = [s["delay_ns"]["mean"] for s in summary]
        self.assertAlmostEqual(mean[ROUND], mean[THERE] + mean[BACK], delta=1)

    def test_directions(self):
        """Delay and loss of each direction, by both ends' numbers, to the probe."""
        net = self.net(("constant:3ms", 0.04), ("weibull:6ms,1", 0.10))
        reflector = self.reflector(prefix=net.enter("b"))
        store = self.path("probes.db")
        results, summary, session = self.probe(
            "F>E>D=" + ADDRESS["b"], "--rate", "100/s", "--seconds", 5, "--seed", SEED, "--store", store, prefix=net.enter("a")
        )
        counts = reflector.end()
        wire = net.end()
        self.assertEqual((wire["a"]["sent"], wire["b"]["sent"]), (session[0]["sent"], counts["answered"]))
        self.assertEqual(wire["a"]["missed"] + wire["b"]["missed"], 0)
        there, back, both = summary
        self.assertEqual((there["from"], there["to"], there["segment"]), ("F", "D", "F>E>D"))
        self.assertEqual((back["from"], back["to"], both["class"]), ("D", "F", "round-trip"))
        # What is decided is right, and few are not: both ways lost neighbours across a boundary.
        self.assertEqual(there["sent"], wire["a"]["sent"])
        self.assertEqual(both["lost"], wire["a"]["lost"] + wire["b"]["lost"])
        self.assertEqual(there["lost"] + back["lost"] + there["pending"], both["lost"])
        self.assertLessEqual(there["lost"], wire["a"]["lost"])
        self.assertLessEqual(back["lost"], wire["b"]["lost"])
        self.assertLessEqual(there["pending"], 0.05 * both["lost"] + 6)
        # The wire's loss is within the intervals, and they are those of Wilson: wider than nothing, narrower than 3 %.
        for lane, share in ((there, 0.04), (back, 0.10)):
            low, high = lane["ci95"]["loss_ratio"]
            happened = wire["a" if lane is there else "b"]
            self.assertLessEqual(low, happened["lost"] / happened["sent"])
            self.assertGreaterEqual(high, happened["lost"] / happened["sent"])
            # 5 standard deviations of what the wire was told.
            self.assertAlmostEqual(lane["loss_ratio"], share, delta=5 * math.sqrt(share / there["sent"]))
        self.check_delays(summary, wire)
        self.assertIn("stateful", there["synopsis"])
        self.assertEqual(session[0]["hops"], {"there": 0, "back": 0})
        # Stored as probes, every interval of three lanes.
        with sqlite3.connect(store) as db:
            rows = db.execute("SELECT count(*), sum(active), sum(sent) FROM results WHERE class = 'all' AND from_point = 'F'").fetchone()
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[2], there["sent"])
        listed = command.oneway("results", store)
        self.assertEqual(listed.returncode, 0, listed.stderr)

    def test_stateless_keyed(self):
        """Authenticated, and a reflector that counts nothing: loss of the round trip only."""
        net = self.net(("constant:2ms", 0.05), ("constant:4ms", 0.05))
        key = self.key("lab.psk")
        reflector = self.reflector("--stateless", "--key", key, prefix=net.enter("b"))
        _, summary, _ = self.probe(ADDRESS["b"], "--key", key, "--rate", "100/s", "--seconds", 2, "--seed", SEED, prefix=net.enter("a"))
        reflector.end()
        wire = net.end()
        there, back, both = summary
        self.assertEqual(both["lost"], wire["a"]["lost"] + wire["b"]["lost"])
        self.assertGreater(both["lost"], 0)
        self.assertEqual((there["lost"], there["pending"]), (0, both["lost"]))
        self.assertIsNone(there["loss_ratio"])
        self.assertIsNone(back["loss_ratio"])
        self.assertIn("which way", there["not_estimated"]["loss_ratio"])
        self.assertIn("STAMP authenticated probes, stateless", there["synopsis"])
        self.check_delays(summary, wire)

    def test_dissector(self):
        """What another program reads in our packets."""
        if not shutil.which("tshark") or not shutil.which("tcpdump"):
            self.skipTest("no tshark or tcpdump")
        net = self.net(("constant:1ms", 0), ("constant:1ms", 0))
        reflector = self.reflector("--listen", ":862", prefix=net.enter("b"))
        pcap = self.path("wire.pcap")
        tcpdump = subprocess.Popen([*net.enter("a"), "tcpdump", "-i", "wire0", "--immediate-mode", "-U", "-w", pcap, "udp port 862"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(tcpdump.kill)
        self.assertIn("listening", tcpdump.stderr.readline())
        _, summary, session = self.probe(ADDRESS["b"], "--rate", "50/s", "--seconds", 1, "--dscp", 46, prefix=net.enter("a"))
        reflector.end()
        net.end()
        time.sleep(0.5)
        tcpdump.terminate()
        tcpdump.communicate(timeout=points.PATIENCE)
        self.dissected(pcap, summary, session[0])

    def dissected(self, pcap, summary, session):
        names = ("seq_number", "timestamp", "receive_timestamp", "sender_seq_number", "sender_timestamp", "sender_ttl", "error_estimate.multiplier")
        fields = ["ip.src", "ip.ttl", "ip.dsfield.dscp", *("twamp.test." + n for n in names)]
        # tshark holds the first packet of a port for a probe and the others by their direction.
        done = subprocess.run(
            ["tshark", "-r", pcap, "-d", "udp.port==862,twamp.test", "-T", "fields", "-E", "separator=;", *(w for f in fields for w in ("-e", f))],
            capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [dict(zip(fields, line.split(";"))) for line in done.stdout.splitlines()]
        probes = [r for r in rows if r["ip.src"] == ADDRESS["a"]]
        replies = [r for r in rows if r["ip.src"] == ADDRESS["b"]]
        self.assertEqual((len(probes), len(replies)), (session["sent"], session["answers"]))
        for r in rows:
            self.assertEqual((r["ip.ttl"], r["ip.dsfield.dscp"]), ("255", "46"))
            self.assertNotEqual(r["twamp.test.error_estimate.multiplier"], "0")
        # One is left out, so that the reflector's own numbers show.
        numbers = [int(r["twamp.test.seq_number"]) for r in probes]
        self.assertEqual(numbers, [0, *range(2, len(numbers) + 1)])
        self.assertEqual([int(r["twamp.test.seq_number"]) for r in replies], list(range(len(replies))))
        self.assertEqual([int(r["twamp.test.sender_seq_number"]) for r in replies], numbers)
        self.assertEqual([r["twamp.test.sender_timestamp"] for r in replies], [r["twamp.test.timestamp"] for r in probes])
        self.assertEqual({r["twamp.test.sender_ttl"] for r in replies}, {"255"})
        year = time.strftime("%Y", time.gmtime())
        for r in replies:
            self.assertIn(year, r["twamp.test.receive_timestamp"])
            self.assertIn(year, r["twamp.test.timestamp"])


class OnLoopback(Probed):
    def test_keys(self):
        """Another key is refused on either side, and said."""
        one, other = self.key("one.psk"), self.key("other.psk")
        port = free_port()
        reflector = self.reflector("--listen", f"127.0.0.1:{port}", "--key", one)
        for args, code in ((("--key", one), 0), (("--key", other), 1), ((), 1)):
            _, summary, session = self.probe(f"127.0.0.1:{port}", "--seconds", 0.5, "--rate", "50/s", "--wait", "500ms", *args, code=code)
            self.assertEqual(session[0]["answers"], session[0]["sent"] if code == 0 else 0)
            if code:
                self.assertIn("none of", self.log)
                self.assertEqual(summary[ROUND]["lost"], summary[ROUND]["sent"])
        counts = reflector.end()
        self.assertGreater(counts["wrong_key"], 0)
        self.assertGreater(counts["malformed"], 0)
        self.assertEqual(counts["received"], counts["answered"] + counts["wrong_key"] + counts["malformed"])

    def test_nobody(self):
        _, summary, session = self.probe(f"127.0.0.1:{free_port()}", "--seconds", 0.5, "--rate", "50/s", "--wait", "500ms", code=1)
        self.assertIn("no program listens there", self.log)
        self.assertGreater(session[0]["unreachable"], 0)
        self.assertEqual(summary[ROUND]["loss_ratio"], 1)

    def test_several(self):
        """Many reflectors from one process; names of places; ends by a signal, with all results."""
        ports = [free_port() for _ in range(3)]
        reflectors = [self.reflector("--listen", f"127.0.0.1:{p}") for p in ports]
        words = [command.PROGRAM, "plane", "probe", "--json", "--interval", "200ms", "--rate", "100/s"]
        words += [f"F>{name}=127.0.0.1:{port}" for name, port in zip("ABC", ports)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=points.PATIENCE)
        self.assertEqual(process.returncode, 0, err)
        said = [json.loads(line) for line in out.splitlines()]
        sums = {s["summary"]["segment"] for s in said if "summary" in s}
        self.assertEqual(sums, {"F>A", "F>B", "F>C"})
        sent = [s["session"]["sent"] for s in said if "session" in s]
        self.assertEqual([r.end()["answered"] for r in reflectors], sent)

    def test_twamp_light(self):
        """A sender of TWAMP Light: 41 octets and more are answered, as long as they came; less is not."""
        port = free_port()
        reflector = self.reflector("--listen", f"127.0.0.1:{port}")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            for number, size in enumerate((14, 40, 41, 44, 100, 1400)):
                # 2026 in NTP's time, S, scale 0, multiplier 1; random padding.
                probe = struct.pack(">IIIH", number, 0xED000000, 5, 0x8001) + bytes((7 * i) & 0x7F for i in range(size - 14))
                s.sendto(probe, ("127.0.0.1", port))
                if size < 41:
                    continue
                reply = s.recv(2000)
                self.assertEqual(len(reply), size)
                sequence, _, _, _, _, _, _, again, when, part, error = struct.unpack_from(">IIIHHIIIIIH", reply)
                self.assertEqual((sequence, again, when, part, error), (number - 2 if size < 44 else sequence, number, 0xED000000, 5, 0x8001))
                self.assertEqual(reply[40], 64)
                self.assertEqual(reply[44:], probe[44:])
        counts = reflector.end()
        self.assertEqual((counts["received"], counts["answered"], counts["too_small"]), (6, 4, 2))

    def test_replies_are_not_answered(self):
        """What a reflector would get from another one in whose name somebody asks."""
        ports = [free_port() for _ in range(2)]
        one, other = (self.reflector("--listen", f"127.0.0.1:{p}") for p in ports)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            s.sendto(struct.pack(">IIIH", 1, 0xED000000, 5, 0x8001) + bytes(30), ("127.0.0.1", ports[0]))
            reply = s.recv(2000)
            s.sendto(reply, ("127.0.0.1", ports[1]))
            s.sendto(struct.pack(">IIIH", 2, 0xED000000, 5, 0x8001) + bytes(30), ("127.0.0.1", ports[1]))
            self.assertEqual(struct.unpack_from(">I", s.recv(2000), 24), (2,))
        self.assertEqual(one.end()["answered"], 1)
        counts = other.end()
        self.assertEqual((counts["received"], counts["answered"], counts["replies"]), (2, 1, 1))

    def test_wrong_words(self):
        for args, words in (
            ((), "a reflector is required"),
            (("127.0.0.1", "--rate", "2000/s"), "--rate"),
            (("127.0.0.1", "--rate", "fast"), "not a rate"),
            (("127.0.0.1", "--dscp", "64"), "DSCP"),
            (("127.0.0.1", "127.0.0.2", "--segment", "x"), "one reflector"),
        ):
            done = command.oneway("plane", "probe", *args)
            self.assert_refused(done, 2, words)
        self.assert_refused(command.oneway("plane", "probe", "a=127.0.0.1", "a=127.0.0.2"), 1, "two reflectors")
        self.assert_refused(command.oneway("plane", "probe", "127.0.0.1", "--key", self.path("none")), 1, "none")
        self.assert_refused(command.oneway("plane", "reflect", "--limit", "0"), 2, "above 0")
        self.assert_refused(command.oneway("plane", "reflect", "--listen", "127.0.0.1:x"), 1, "not an address")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
