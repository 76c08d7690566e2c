#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of a lab in a browser: truth beside measurement while it runs; then every view of what it has stored, beside `oneway results`. Needs root.

    ONEWAY=build/oneway tests/web/test_lab.py
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402
from comparing import ONEWAY, Comparing, lane_text, segment_view, times  # noqa: E402
from page import SECOND, VIEWS, Page, Server  # noqa: E402

LEAST = 12  # intervals that are looked at; the lab is ended then
LAB = ["--seconds", "300", "--rate", "2k", "--reverse", "0.3", "--tcp", "0", "--loss", "1%", "--web"]
LANES = [{"segment": "wire", "class": "all", "from": a, "to": b} for a, b in ("ab", "ba")]


class Lab:
    """`oneway lab --web`, as a server of the page."""

    def __init__(self, folder):
        self.process = subprocess.Popen([ONEWAY, "lab", *LAB, "--store", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said, self.address = "", None
        for line in self.process.stdout:
            self.said += line
            if found := re.search(r"http://\S+", line):
                self.address = found.group(0).rstrip("/") + "/"
                break

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.said += self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait()


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class LabTest(Comparing):
    def truth_shown(self):
        """Rows of the table of truth by lane, or none yet."""
        table = self.page.table("table[data-truth]")
        return {row[0]: dict(zip(table[0], row)) for row in table[1:]} if table else {}

    def wait_for_truth(self, least):
        end = time.monotonic() + 120
        while time.monotonic() < end:
            shown = self.truth_shown()
            if len(shown) == 2 and all(int(row["intervals"]) >= least for row in shown.values()):
                return shown
            time.sleep(0.2)
        self.fail(f"no table of truth with {least} intervals: {self.truth_shown()}, {self.page.problems()}")

    def test_lab(self):
        with tempfile.TemporaryDirectory(prefix="oneway-lab-page-") as folder, Browser() as self.browser:
            lab = Lab(folder)
            self.addCleanup(lab.process.kill)
            self.assertTrue(lab.address, lab.said)
            self.page = Page(self.browser, lab)
            self.page.open("segment?segment=wire&since=-5min")  # there may be no result yet
            self.browser.run("window.opened = 1")
            first = self.wait_for_truth(2)
            # It goes on by itself: the same page, more intervals.
            shown = self.wait_for_truth(max(int(row["intervals"]) for row in first.values()) + 2)
            self.assertEqual(self.browser.run("return window.opened"), 1)
            self.assertEqual(self.page.text("#live"), "live")
            self.assertTrue(self.browser.run("return document.querySelector('[data-drawn=truth]').getAttribute('d').length > 0"))
            for row in shown.values():
                self.assertEqual(row["lost"], row["truly lost"])
            self.assertEqual(self.page.problems(), [])
            self.wait_for_truth(LEAST)
            self.browser.open("about:blank")
            self.assertEqual(lab.end(), 0, lab.said)
            self.check_stored(folder)

    def check_stored(self, folder):
        self.store = str(pathlib.Path(folder, "results.db"))
        truth = json.loads(pathlib.Path(folder, "truth.json").read_text())
        with Server(ONEWAY, self.store) as server:
            self.page = Page(self.browser, server)
            info = server.get("")["periods"]["interval"]
            since, until = info["first_ns"], info["last_ns"] + SECOND
            for view in VIEWS:
                self.page.open(f"{view}?{times(since, until)}")
                self.assertEqual((self.page.address()[0], self.page.problems()), (view, []))
            self.page.open(segment_view(LANES[0], since, until))
            rows = self.truth_shown()
            for lane, way in zip(LANES, truth["segments"]):
                results = [row for row in self.results(lane, "--limit", "1000", "--period", "interval") if row["status"] == "measured"]
                expected = {row["start_ns"] / 1e6: row["delay_ns"]["quantiles"]["0.5"] for row in results if row["samples"]}  # the last one may be empty
                self.assertGreater(len(expected), LEAST // 2)
                self.assertEqual(self.check_line(lane, expected, 1000), len(expected))
                # What the wire did in these intervals.
                starts = {row["start_ns"] for row in results}
                known = [one for one in way["intervals"] if one["start_ns"] in starts]
                shown = rows[lane_text(lane)]
                self.assertEqual(int(shown["intervals"]), len(known))
                self.assertEqual(shown["truly lost"], self.page.format("loss", sum(one["lost"] for one in known), sum(one["sent"] for one in known)))
                self.assertEqual(shown["lost"], shown["truly lost"])
            self.check_sums_of_the_command(2)
            self.page.open(f"matrix?{times(since, until)}")
            self.check_cells(".cell a", self.sums({}, since, until))
            self.check_lanes_table(self.sums({}, since, until))
            self.assertEqual(self.page.problems(), [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
