# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: the program, a folder for its files, captures read without its help."""
import collections
import fcntl
import json
import os
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

PROGRAM = os.environ.get("ONEWAY", "build/oneway")


def oneway(*args, env=None, stdin=None, timeout=60):
    """Runs the program without a terminal."""
    environment = {**os.environ, **(env or {})}
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, env=environment, stdin=stdin, timeout=timeout)


def on_terminal(*args, columns=80, env=None):
    """Runs the program on a terminal of its own; returns its exit code and what it wrote."""
    terminal, far_end = os.openpty()
    fcntl.ioctl(far_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", **(env or {})}
    child = subprocess.Popen([PROGRAM, *map(str, args)], stdin=far_end, stdout=far_end, stderr=far_end, env=environment)
    os.close(far_end)
    written = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        written += more
    os.close(terminal)
    return child.wait(timeout=60), written.decode().replace("\r\n", "\n")


Record = collections.namedtuple("Record", "time_ns frame")


def read_pcap(path):
    """The records of a nanosecond pcap file in this machine's byte order, as the simulator writes them."""
    with open(path, "rb") as f:
        data = f.read()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D, "not a nanosecond pcap file"
    records, at = [], 24
    while at < len(data):
        seconds, nanoseconds, caplen, _ = struct.unpack_from("<IIII", data, at)
        records.append(Record(seconds * 10**9 + nanoseconds, data[at + 16 : at + 16 + caplen]))
        at += 16 + caplen
    assert at == len(data)
    return records


def leave_out(path, since_s, until_s):
    """A capture as read_pcap reads it loses its records of a time, from its first one on."""
    records = read_pcap(path)
    with open(path, "rb") as f:
        head = f.read(24)
    with open(path, "wb") as f:
        f.write(head)
        for t, frame in records:
            if not since_s * 1e9 < t - records[0].time_ns < until_s * 1e9:
                f.write(struct.pack("<IIII", t // 10**9, t % 10**9, len(frame), len(frame)) + frame)


def sanitized():
    """A sanitizer takes memory of its own, and its library has to be the first one."""
    with open(PROGRAM, "rb") as f:
        return b"__asan_init" in f.read()


class Case(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oneway-system-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.a, self.b = self.path("a.pcap"), self.path("b.pcap")

    def path(self, name):
        return os.path.join(self.folder, name)

    def simulate(self, *args, packets=5000):
        """Writes a.pcap and b.pcap; returns the truth."""
        done = oneway("simulate", "-n", packets, "--flows", 50, *args, "-a", self.a, "-b", self.b, "--truth", self.path("truth.json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("truth.json")) as f:
            return json.load(f)

    def match(self, *args, code=0):
        """Matches them; returns what was printed."""
        done = oneway("match", *args, self.a, self.b)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def assert_refused(self, done, code, *texts):
        """One line on standard error with these texts, nothing on standard output."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for text in texts:
            self.assertIn(str(text), done.stderr)
