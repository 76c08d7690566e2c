#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results of intervals that are still at the points come into the database when somebody asks for them; what a point does not
give is said to be missing, with the reason. A real nats-server, a real PostgreSQL, points on loopback."""
import json
import os
import pathlib
import shutil
import socket
import sys
import threading
import time
import unittest

import command

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "web"))
from browser import Browser  # noqa: E402
from page import Page, Server  # noqa: E402
from fleet import Fleet, Process, until, why_not
from servers import Postgres, free_port
from test_clock_steps import Clock

STEPPED = os.environ.get("STEPPED", "build/tests/system/oneway_stepped")

PLAN = """
points:
  - {{name: london, address: '127.0.0.1:{port}', interfaces: [{{name: lo}}], memory: 8MiB}}
  - {{name: paris, interfaces: [{{name: lo}}], memory: 8MiB}}
segments:
  - {{between: [london, paris], interval: 250ms, wait: 500ms}}
"""


@unittest.skipIf(why_not() or Postgres.why_not(), why_not() or Postgres.why_not())
class Seconds(unittest.TestCase):
    def setUp(self):
        self.postgres = Postgres()
        self.addCleanup(self.postgres.remove)
        self.postgres.sql("CREATE DATABASE oneway")
        self.url = self.postgres.url("oneway")
        self.fleet = Fleet("--database", self.url)
        self.addCleanup(self.fleet.end)
        self.postgres.sql(pathlib.Path(self.fleet.folder, "schema.sql").read_text(), "oneway")
        self.done = threading.Event()
        self.addCleanup(self.done.set)
        threading.Thread(target=self.traffic, daemon=True).start()

    def traffic(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            while not self.done.wait(0.01):
                s.sendto(b"something", ("127.0.0.1", 7777))

    def collect(self):
        collector = Process([command.PROGRAM, "collect", "--dir", self.fleet.folder], self.fleet.root, "collect")
        self.fleet.processes["collect"] = collector
        return collector

    def ask(self, *args):
        done = command.oneway("results", self.url, "--fleet", self.fleet.folder, "--json", *args, timeout=60)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_seconds(self):
        port = free_port()
        self.fleet.apply(PLAN.format(port=port))
        points = {name: self.fleet.start_point(name) for name in ("london", "paris")}
        for point in points.values():
            point.wait_for("agreed on london-paris/all to")
        # The database knows the lanes, as it does after a minute.
        for lane in ("'london', 'paris'", "'paris', 'london'"):
            self.postgres.sql(f"INSERT INTO lane (segment, class, from_point, to_point, point) VALUES ('london-paris', 'all', {lane}, 'london')", "oneway")
        time.sleep(5)

        # Nobody takes them from the bus: that is said.
        rows, said = self.ask("--since", "-30s", "--from", "london")
        self.assertEqual(rows, [])
        self.assertRegex(said, "missing: london-paris/all london>paris, .*: london has sent them, but they are not in the database yet: is a collector running")

        # With a collector they are there, of both directions, and no interval is missing between.
        self.collect()
        started = time.monotonic()
        rows, said = self.ask("--since", "-30s")
        print(f"{len(rows)} results after {time.monotonic() - started:.1f} s")
        self.assertNotIn("missing", said)
        for name in points:
            mine = [r for r in rows if r["from"] == name and r["status"] == "measured"]
            self.assertGreater(len(mine), 10)
            starts = [r["start_ns"] for r in rows if r["from"] == name]
            self.assertEqual(starts, list(range(starts[0], starts[-1] + 1, 250_000_000)))
            self.assertTrue(all(r["final"] for r in mine))

        # The page asks for them as well, and for how the points are, from within its sandbox.
        with Server(command.PROGRAM, self.url, "--fleet", self.fleet.folder) as page:
            answer = page.get("points")
            self.assertEqual((answer["source"], sorted(p["point"] for p in answer["points"])), ("fleet", ["london", "paris"]), answer)
            self.assertTrue(all(p["health"]["version"] for p in answer["points"]))
            since = time.time_ns() - 20 * 10**9
            answer = page.get("seconds", segment="london-paris", since_ns=since)
            self.assertEqual((answer["missing"], answer["asked"] > 0, answer["rows"] > 0), ([], True, True), answer)
            series = page.get("series", segment="london-paris", **{"class": "all", "from": "london", "to": "paris"}, since_ns=since, until_ns=since + 10 * 10**9)
            self.assertEqual(series["period"], "interval")
            self.assertGreater(sum(n or 0 for n in series["measured"]), 10)
            self.check_browser(page)

        # One point is away: the other has the same results.
        points["london"].stop()
        rows, said = self.ask("--since", "-10s", "--from", "london")
        self.assertTrue(rows)
        self.assertNotIn("missing", said)
        # Both are: what is not in the database is missing, and the reason is there. All from london may be in the database by now.
        points["paris"].stop()
        until(lambda: "paris is not connected" in self.ask("--since", "-10s")[1], "the reason")
        rows, said = self.ask("--since", "-60s")
        self.assertTrue(rows)
        self.assertRegex(said, "missing: london-paris/all paris>london, .*: paris is not connected, london is not connected")

        # Without the bus, too.
        self.fleet.processes[f"nats-{self.fleet.ports[0]}"].stop()
        rows, said = self.ask("--since", "-60s")
        self.assertTrue(rows)
        self.assertRegex(said, "missing: ")

    def check_browser(self, server):
        """A segment in the page: it asks the points for the intervals that the database lacks, and draws them without being loaded again."""
        if not shutil.which("chromedriver"):
            return
        # Nobody has asked for this time yet.
        start = time.time() + 1
        time.sleep(14)
        times = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)) for second in (start, start + 10)]
        with Browser() as browser:
            view = Page(browser, server)
            view.open(f"segment?segment=london-paris&since={times[0]}&until={times[1]}")
            drawn = "document.querySelector('.chart-box [data-drawn=p50]')?.getAttribute('d').split('H').length > 20"
            browser.wait(drawn, "intervals of the points are drawn", timeout=60)
            asked = browser.run("return performance.getEntriesByType('resource').filter((entry) => /\\/seconds\\?/.test(entry.name)).length")
            self.assertGreaterEqual(asked, 1)
            self.assertEqual(browser.run("return performance.getEntriesByType('navigation').length"), 1)
            self.assertEqual(view.problems(), [])

    def test_clock_of_a_collector(self):
        """A collector whose clock is wrong would refuse good results: it waits until its clock is that of the database."""
        clock = Clock(os.path.join(self.fleet.root, "clock"))
        clock.step(2 * 3600 * 10**9)
        collector = Process(["env", "ONEWAY_TEST_CLOCK=" + clock.path, STEPPED, "collect", "--dir", self.fleet.folder], self.fleet.root, "ahead")
        self.addCleanup(collector.stop)
        collector.wait_for("the clock of this host is 1(19|20) min ahead of that of the server: nothing is stored until they agree")
        clock.step(-2 * 3600 * 10**9)
        collector.wait_for("writes to postgresql://")

    def test_refused(self):
        for args, why in ((["results.db", "--since", "-5min"], "is for a server"), ([self.url], "needs --since"),
                          ([self.url, "--since", "-5min", "--period", "minute"], "results of intervals"),
                          ([self.url, "--since", "-3d"], "a shorter time")):
            done = command.oneway("results", *args, "--fleet", self.fleet.folder)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
