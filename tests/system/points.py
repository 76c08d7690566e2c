# SPDX-License-Identifier: Apache-2.0
"""What the tests of measurement points share: points as processes, a cable between them that can be cut, the truth."""
import collections
import concurrent.futures
import datetime
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import command

SIDE_BY_SIDE = 4  # tests with networks of their own
PATIENCE = 40  # seconds for what takes one; sanitizers and a busy machine are slow


class Point:
    """oneway point as a process. Its log is read while it runs."""

    def __init__(self, config, prefix=(), env=None):
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*prefix, command.PROGRAM, "point", "-c", config, "--json"],
            stdout=self.output,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self.log = ""

    def read_log(self, seconds):
        """Takes in what the point logs within this time; False at the end of its log."""
        if not select.select([self.process.stderr], [], [], seconds)[0]:
            return True
        more = os.read(self.process.stderr.fileno(), 65536).decode()
        self.log += more
        return more != ""

    def wait_for(self, pattern, count=1):
        """Until the log has this so many times; returns the last match."""
        end = time.monotonic() + PATIENCE
        while True:
            found = list(re.finditer(pattern, self.log))
            if len(found) >= count:
                return found[count - 1]
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} in the log:\n{self.log}")
            if not self.read_log(0.1) and len(list(re.finditer(pattern, self.log))) < count:
                raise AssertionError(f"ended without {pattern!r} in the log:\n{self.log}")

    def wait_for_intervals(self, lanes=2):
        """Until it has agreed on this many lanes, and the first interval of each has begun: up to two seconds later, and more on a
        busy machine. Returns when the last of them began, in ns. Its clock is that of this host."""
        self.wait_for("agreed on", lanes)
        starts = re.findall(r"agreed on .*: intervals of .* from (\S+)Z, ", self.log)
        last = max(datetime.datetime.fromisoformat(s + "+00:00") for s in starts).timestamp()
        time.sleep(max(0, last + 0.1 - time.time()))
        return round(last * 1000) * 10**6

    def wait_for_results(self, enough):
        """Until its results so far are enough."""
        end = time.monotonic() + PATIENCE
        while not enough([r for r in self.so_far() if "status" in r]):
            if time.monotonic() > end or not self.read_log(0.1):
                raise AssertionError(f"not enough results:\n{self.log}")

    def wait_for_lanes(self, lanes=2):
        """Until the lanes of both directions that were agreed on last have results."""
        begin_ns = self.wait_for_intervals(lanes)
        self.wait_for_results(lambda results: len({r["from"] for r in results if r["start_ns"] >= begin_ns}) == 2)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)

    def end(self):
        """Until it has ended; returns its results and summaries. Events of flows are in self.events."""
        end = time.monotonic() + PATIENCE
        while self.read_log(0.1):
            if time.monotonic() > end:
                self.process.kill()
                raise AssertionError(f"does not end:\n{self.log}")
        self.code = self.process.wait(timeout=PATIENCE)
        self.output.seek(0)
        lines = [json.loads(line) for line in self.output]
        self.close()
        self.events = [r["event"] for r in lines if "event" in r]
        return [r for r in lines if "status" in r], [r["summary"] for r in lines if "summary" in r]

    def so_far(self):
        """The results of a point that runs."""
        text = os.pread(self.output.fileno(), self.output_size(), 0).decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def output_size(self):
        """Bytes of results so far."""
        return os.fstat(self.output.fileno()).st_size

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        self.output.close()


class Cable:
    """A TCP proxy on loopback: what connects to `port` is connected to `far_port`, until the cable is cut."""

    def __init__(self, far_port):
        self.far_port = far_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.sockets = []
        self.plugged = True
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                if not self.plugged:
                    near.close()
                    continue
                try:
                    far = socket.create_connection(("127.0.0.1", self.far_port))
                except OSError:
                    near.close()
                    continue
                self.connections += 1
                self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(a, b), daemon=True).start()

    @staticmethod
    def carry(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        with self.lock:
            self.plugged = False
            for s in self.sockets:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()
            self.sockets = []

    def plug(self):
        with self.lock:
            self.plugged = True

    def close(self):
        self.cut()
        self.listener.close()


Truth = collections.namedtuple("Truth", "sent arrived lost mean_ns")


class Sight:
    """What both points of a pair of captures saw; frames pass unchanged and each is different."""

    def __init__(self, a, b):
        self.at = {"a": {}, "b": {}}
        for side, path in (("a", a), ("b", b)):
            for record in command.read_pcap(path):
                assert record.frame not in self.at[side], "the same frame twice"
                self.at[side][record.frame] = record.time_ns

    @staticmethod
    def goes_forward(frame):
        """The simulator's clients, 10.0.0.0/8, are at A."""
        return frame[26] == 10

    def truth(self, forward, start_ns, length_ns):
        """Of the packets that were sent in an interval."""
        here, there = (self.at["a"], self.at["b"]) if forward else (self.at["b"], self.at["a"])
        sent = [f for f, t in here.items() if self.goes_forward(f) == forward and start_ns <= t < start_ns + length_ns]
        delays = [there[f] - here[f] for f in sent if f in there]
        return Truth(len(sent), len(delays), len(sent) - len(delays), sum(delays) / len(delays) if delays else None)


class Case(command.Case):
    """Tests with points that end with the test."""

    def setUp(self):
        super().setUp()
        self.points = []
        self.addCleanup(self.close)

    def close(self):
        for point in self.points:
            if point.process.poll() is None or not point.output.closed:
                point.close()

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def start(self, config, env=None):
        point = Point(config, env=env)
        self.points.append(point)
        return point

    def keys(self, kind):
        """Makes keys; returns the lines of a configuration by the point's name."""
        if kind == "psk" and os.path.exists(self.path("lab.psk")):
            return lambda name: "psk: lab.psk\n"
        if kind == "psk":
            done = command.oneway("point", "keygen", "--psk", self.path("lab.psk"))
            self.assertEqual(done.returncode, 0, done.stderr)
            return lambda name: "psk: lab.psk\n"
        done = command.oneway("point", "keygen", "--folder", self.folder, "london", "paris", "rome")
        self.assertEqual(done.returncode, 0, done.stderr)
        return lambda name: f"certificate: {name}.pem\nkey: {name}.key\nca: ca.pem\n"

    def assert_conserved(self, r):
        self.assertNotEqual(r.get("cause_code"), "other", r)
        if r["status"] == "unknown":
            return
        self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"], r)
        self.assertEqual(r["received"], r["matched"] + r["late_received"] + r["extra"], r)
        if r["final"]:
            self.assertGreaterEqual(r["sent"], 0)


def all_names(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_names(test)
        else:
            yield f"{type(test).__name__}.{test._testMethodName}"


def run_all(module, path):
    """All tests of a module, or those of these classes, several networks at a time; with names of tests, as unittest does."""
    loader = unittest.defaultTestLoader
    if any("." in name or name.startswith("-") for name in sys.argv[1:]):
        unittest.main(module)
    tests = loader.loadTestsFromNames(sys.argv[1:], module) if len(sys.argv) > 1 else loader.loadTestsFromModule(module)

    def run_one(name):
        return subprocess.run([sys.executable, path, "-v", name], capture_output=True, text=True)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for done in pool.map(run_one, all_names(tests)):
            print(done.stdout + done.stderr, flush=True)
            failed += done.returncode != 0
    sys.exit(failed != 0)
