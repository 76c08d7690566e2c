# SPDX-License-Identifier: Apache-2.0
"""A point as a service: what it tells systemd, its log, its unit."""
import os
import re
import shutil
import socket
import subprocess
import time
import unittest

import command
import points

CONFIG = """point: paris
psk: lab.psk
listen: 127.0.0.1:0
interfaces: [{file: b.pcap}]
segments:
  - {name: x, peer: london, to_peer: not src net 10.0.0.0/8}
"""
UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/systemd/oneway-point@.service")


class Service(points.Case):
    def setUp(self):
        super().setUp()
        self.keys("psk")
        self.simulate("--rate", 1000, packets=60000)  # a minute
        self.config = self.write("paris.yaml", CONFIG)

    def listen(self, address):
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(address)
        manager.settimeout(points.PATIENCE)
        return manager

    def test_notify(self):
        """Ready, alive, a line of state, and the end, to a socket with a path and to an abstract one."""
        for name, address in ((self.path("notify"), self.path("notify")), ("@oneway-%d" % os.getpid(), "\0oneway-%d" % os.getpid())):
            manager = self.listen(address)
            point = self.start(self.config, env={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "400000"})
            self.assertEqual(manager.recv(4096), b"READY=1")
            # A peer that has not come, yet measured without one.
            heard, beats = [], []
            while len(beats) < 4:
                heard.append(manager.recv(4096).decode())
                if heard[-1] == "WATCHDOG=1":
                    beats.append(time.monotonic())
            self.assertIn("STATUS=0 of 1 peers connected, 0 lanes measured", heard)
            self.assertGreater(beats[-1] - beats[0], 0.3, "more often than half of 0.4 s")
            point.stop()
            while heard[-1] != "STOPPING=1":
                heard.append(manager.recv(4096).decode())
            point.end()
            self.assertEqual(point.code, 0, point.log)
            # Events are lines of their own, none of them about single intervals.
            self.assertLess(point.log.count("\n"), 8, point.log)

    def test_not_my_watchdog(self):
        manager = self.listen(self.path("notify"))
        point = self.start(self.config, env={"NOTIFY_SOCKET": self.path("notify"), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"})
        self.assertEqual(manager.recv(4096), b"READY=1")
        time.sleep(0.5)
        point.stop()
        heard = [manager.recv(4096)]
        while heard[-1] != b"STOPPING=1":
            heard.append(manager.recv(4096))
        self.assertNotIn(b"WATCHDOG=1", heard)
        point.end()

    def test_journal(self):
        """In a journal's stream each line has its level; elsewhere the time."""
        with open(self.path("log"), "w+") as log:
            st = os.fstat(log.fileno())
            env = {**os.environ, "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}
            done = subprocess.run([command.PROGRAM, "point", "-c", self.config, "--seconds", "0.5"], stdout=subprocess.DEVNULL, stderr=log, env=env, timeout=60)
            self.assertEqual(done.returncode, 0)
            log.seek(0)
            lines = log.read().splitlines()
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r"^<[3-6]>\S")
        done = command.oneway("point", "-c", self.config, "--seconds", "0.5")
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^\d\d:\d\d:\d\d\.\d\d\d paris: \S")

    def test_refused_again_and_again(self):
        """Somebody who is refused all the time is one line, and a count."""
        point = self.start(self.config)
        port = int(point.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1))
        for _ in range(30):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                stranger.settimeout(points.PATIENCE)
                try:
                    while stranger.recv(4096):
                        pass
                except OSError:
                    pass
        point.wait_for("connection from 127.0.0.1:\\d+ refused")
        point.stop()
        point.end()
        lines = [line for line in point.log.splitlines() if "refused" in line]
        self.assertEqual(len(lines), 2, point.log)
        self.assertRegex(lines[0], r"warning: connection from 127\.0\.0\.1:\d+ refused: ")
        self.assertRegex(lines[1], r"\(29 more times in ")

    def test_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        done = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", UNIT], capture_output=True, text=True, timeout=60
        )
        if "unrecognized option" in done.stderr or "Unknown" in done.stderr:
            self.skipTest("this systemd-analyze looks at running services only: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        exposure = float(re.search(r"Overall exposure level.*: ([\d.]+) ", done.stdout).group(1))
        self.assertLessEqual(exposure, 2.0)


if __name__ == "__main__":
    unittest.main()
