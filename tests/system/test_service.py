# SPDX-License-Identifier: Apache-2.0
"""A point as a service: what it tells systemd, its log, its unit."""
import os
import re
import shutil
import signal
import socket
import sqlite3
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
# Points that come and go with a reload, and one that is changed.
SEGMENT = '  - {{name: {name}, peer: {peer}, to_peer: {way}src net 10.0.0.0/8{more}}}\n'
HEAD = "point: {name}\npsk: lab.psk\n{listen}interfaces: [{{file: {file}}}]\nstore: {name}.db\nsegments:\n"
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
            self.assertIn("STATUS=0 of 1 peer connected, 0 lanes measured", heard)
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

    def reload(self, point, text, said):
        """Another configuration, and what the log says of it."""
        before = len(re.findall(said, point.log))
        self.write(f"{point.name}.yaml", text)
        point.process.send_signal(signal.SIGHUP)
        return point.wait_for(said, before + 1)

    def config_of(self, name, *segments, port=None):
        head = HEAD.format(name=name, listen="" if name == "london" else "listen: 127.0.0.1:0\n", file="a.pcap" if name == "london" else "b.pcap")
        way, peer = ("", "paris") if name == "london" else ("not ", "london")
        connect = f', connect: "127.0.0.1:{port}"' if port else ""
        return head + "".join(SEGMENT.format(name=n, peer=peer, way=way, more=connect + more) for n, more in segments)

    def pair(self, london, paris):
        there = self.start(self.write("paris.yaml", self.config_of("paris", *paris)))
        there.name = "paris"
        self.port = int(there.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1))
        here = self.start(self.write("london.yaml", self.config_of("london", *london, port=self.port)))
        here.name = "london"
        return here, there

    def check_store(self, name, segment):
        """Final results of a segment in one direction: (start, end, status) in order, none of which overlap."""
        with sqlite3.connect(self.path(f"{name}.db")) as db:
            rows = db.execute(
                "select start_ns, start_ns + length_ns, status, lost, sent from result join lane on lane.id = lane"
                " where segment = ? and from_point = 'london' and final order by start_ns",
                (segment,),
            ).fetchall()
        for a, b in zip(rows, rows[1:]):
            self.assertLessEqual(a[1], b[0], rows)
        return rows

    def wait_for_results(self, segment, count):
        """Until both points have stored so many final results of it."""
        end = time.monotonic() + points.PATIENCE
        while any(len(self.check_store(name, segment)) < count for name in ("london", "paris")):
            self.assertLess(time.monotonic(), end, segment)
            time.sleep(0.1)

    def test_reload_where_it_connects(self):
        """Segments come, change and go; the others do not notice."""
        quick = ", interval: 200ms, wait: 400ms"
        london, paris = self.pair([("keep", quick), ("change", quick), ("go", quick)], [("keep", ""), ("change", ""), ("go", ""), ("come", "")])
        london.wait_for("agreed on", 6)
        self.wait_for_results("keep", 6)
        self.wait_for_results("go", 5)
        slow = ", interval: 400ms, wait: 400ms"
        text = self.config_of("london", ("keep", quick), ("change", slow), ("come", quick), port=self.port)
        self.reload(london, text, "read again: segments: 1 unchanged, 1 changed, 1 new, 1 removed")
        london.wait_for("agreed on", 10)
        self.wait_for_results("come", 5)
        for point in (london, paris):
            point.stop()
        for point in (london, paris):
            point.end()
            self.assertEqual(point.code, 0, point.log)
            self.assertEqual(len(re.findall("agreed on keep", point.log)), 2, point.log)
            self.assertNotIn("warning", re.sub("no sandbox", "", point.log).replace("warning: no privileges", ""))
            kept = self.check_store(point.name, "keep")
            # Every interval is there, and none is unknown.
            self.assertGreater(len(kept), 12)
            self.assertEqual([a[1] for a in kept[:-1]], [b[0] for b in kept[1:]])
            self.assertEqual({row[2] for row in kept[:-3]}, {"measured"})
            changed = self.check_store(point.name, "change")
            self.assertEqual({row[1] - row[0] for row in changed}, {200000000, 400000000})
            self.assertGreater(len(self.check_store(point.name, "come")), 4)
            self.assertGreater(len(self.check_store(point.name, "go")), 4)

    def test_reload_where_it_listens(self):
        """The accepting point gets a segment that it has refused, and loses one."""
        quick = ", interval: 200ms, wait: 400ms"
        london, paris = self.pair([("keep", quick), ("come", quick), ("go", quick)], [("keep", ""), ("go", "")])
        london.wait_for("agreed on", 4)
        london.wait_for("refuses come", 2)
        time.sleep(1)
        self.reload(paris, self.config_of("paris", ("keep", ""), ("come", "")), "1 unchanged, 0 changed, 1 new, 1 removed")
        london.wait_for("connected again")
        london.wait_for("agreed on come", 2)
        self.wait_for_results("come", 4)
        for point in (london, paris):
            point.stop()
        for point in (london, paris):
            point.end()
            self.assertEqual(point.code, 0, point.log)
            self.assertEqual(len(re.findall("agreed on keep", point.log)), 2, point.log)
            kept = self.check_store(point.name, "keep")
            self.assertEqual([a[1] for a in kept[:-1]], [b[0] for b in kept[1:]])
            self.assertEqual({row[2] for row in kept[:-3]}, {"measured"})
            self.assertGreater(len(self.check_store(point.name, "come")), 3)

    def test_reload_peers(self):
        """A peer that is in no segment any more is told so; it may come back."""
        quick = ", interval: 200ms, wait: 400ms"
        london, paris = self.pair([("x", quick)], [("x", "")])
        paris.wait_for("agreed on", 2)
        text = self.config_of("paris", ("x", ""))
        self.reload(paris, text.replace("peer: london", "peer: rome"), "0 unchanged, 1 changed, 0 new, 0 removed")
        london.wait_for("has left: no segment with this peer any more")
        london.wait_for("refuses us: no segment with this peer")
        self.reload(paris, text, "0 unchanged, 1 changed, 0 new, 0 removed")
        london.wait_for("agreed on", 4)
        for point in (london, paris):
            point.stop()
            point.end()
            self.assertEqual(point.code, 0, point.log)

    def test_reload_refused(self):
        """A bad configuration is named with its line, and nothing changes; what needs a restart is said."""
        quick = ", interval: 200ms, wait: 400ms"
        manager = self.listen(self.path("notify"))
        os.environ["NOTIFY_SOCKET"] = self.path("notify")
        try:
            london, paris = self.pair([("x", quick)], [("x", "")])
        finally:
            del os.environ["NOTIFY_SOCKET"]
        london.wait_for("agreed on", 2)
        good = self.config_of("london", ("x", quick), port=self.port)
        stays = "; the old configuration stays in use"
        for text, said in (
            (good.replace("interval", "intervall"), r"london.yaml:6: unknown key 'intervall' in segment 'x', did you mean 'interval'\?"),
            (good.replace("src net", "src nett"), "london.yaml:6: to_peer of segment 'x': filter"),
            (good.replace("a.pcap", "b.pcap"), "london.yaml:3: interface 'b.pcap' is new or has changed: needs a restart"),
            (good.replace("london.db", "other.db"), "london.yaml: 'store' has changed: needs a restart"),
            (good.replace("lab.psk", "no.psk"), "no.psk"),
            ("", "london.yaml"),
        ):
            self.reload(london, text, "error: [^\n]*" + said + "[^\n]*" + stays)
        self.reload(london, good, "1 unchanged, 0 changed, 0 new, 0 removed")
        heard = []
        while heard[-2:] != [b"RELOADING=1", b"READY=1"]:
            heard.append(manager.recv(4096).split(b"\n")[0])
        time.sleep(0.5)
        for point in (london, paris):
            point.stop()
            point.end()
            self.assertEqual(point.code, 0, point.log)
            self.assertEqual(len(re.findall("agreed on", point.log)), 2, point.log)

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
