#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the stories of docs/tutorial.md as they are there, side by side: what they print has the page's form (the first story: every
character), and the numbers are true by what other programs count.

    test_tutorial.py [--update]     --update: puts what was printed into the page (tools/update-examples)"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import command
import pages
from test_clock_steps import Clock, MS

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
STEPPED = os.environ.get("STEPPED", "build/tests/system/oneway_stepped")
CAPTURES, ROUTER, OFFICES, NETWORK = "Two captures and a question", "A router that is slow", "Two offices over a VPN, without PTP", "A network of five points"
PARIS_AHEAD = 8 * MS
NOT_SYNCHRONISED = -1
LATE_MS = 20  # what a busy machine adds to a delay


class Story:
    """A folder as that of a clone after `make`, a network, and a shell for each prompt."""

    def __init__(self, title, steps, more):
        """more: commands that are not on the page, for what the test wants to know."""
        self.steps, self.more, self.shells = steps, more, {}
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="oneway-tutorial-"))
        shutil.copytree(ROOT / "docs" / "examples", self.root / "docs" / "examples")
        (self.root / "build").mkdir()
        (self.root / "build" / "oneway").symlink_to(os.path.abspath(STEPPED if title == OFFICES else command.PROGRAM))
        self.clocks = {name: Clock(str(self.root / (name + ".clock"))) for name in ("", "london", "paris")}
        self.clocks["paris"].offset = PARIS_AHEAD
        for clock in self.clocks.values():
            clock.state(NOT_SYNCHRONISED)
        self.network = pages.Network()

    def shell(self, host):
        """That of a host is started from the first one, and is where that is."""
        name = host.rstrip("$#")
        if name not in self.shells:
            folder = self.shells[""].run("pwd")[1][0] if self.shells else self.root
            path = f"{self.root}/build:{os.environ['PATH']}"
            self.shells[name] = pages.Shell(folder, {**self.clocks[name].env(), "PATH": path}, self.network.prefix(name))
        return self.shells[name]

    def run(self):
        """What each command has printed."""
        printed = []
        try:
            begin = pages.read(PAGE)[""][0]
            for host, text in [("$", begin.command), *((s.host, s.command) for s in self.steps), *(("#", text) for text in self.more)]:
                code, lines = self.shell(host).run(text)
                # 3: measured, and a limit is crossed.
                if code not in (0, 3):
                    raise AssertionError(f"{host} {text}: exit code {code}\n" + "\n".join(lines))
                printed.append(lines)
        finally:
            for shell in self.shells.values():
                shell.close()
            self.network.close()
            shutil.rmtree(self.root)
        assert printed[0] == [], printed[0]
        return printed[1:]


MORE = {OFFICES: ["oneway results london.db --json --final"]}


def run_all():
    """The stories by title, and what each command of each story has printed."""
    stories = {title: steps for title, steps in pages.read(PAGE).items() if title}
    with concurrent.futures.ThreadPoolExecutor() as side_by_side:
        running = {title: side_by_side.submit(lambda t, s: Story(t, s, MORE.get(t, [])).run(), title, steps) for title, steps in stories.items()}
        return stories, {title: story.result() for title, story in running.items()}


def update():
    stories, printed = run_all()
    lines = PAGE.read_text().splitlines()
    for title in reversed(stories):
        for step, output in reversed(list(zip(stories[title], printed[title]))):
            output = pages.align(step.output, output, pages.shape) or output
            lines[step.first : step.last] = [("    " + line).rstrip() for line in output]
    PAGE.write_text("\n".join(lines) + "\n")


def number(pattern, lines):
    """What the pattern finds in these lines, once, as a number."""
    found = re.findall(pattern, "\n".join(lines))
    assert len(found) == 1, (pattern, lines)
    return int(found[0].replace(",", ""))


def duration_ms(text):
    value, unit = text.split()
    return float(value) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit]


@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class Tutorial(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stories, cls.printed = run_all()

    def after(self, title, text):
        """What the one command with this text has printed."""
        (lines,) = [p for s, p in zip(self.stories[title], self.printed[title]) if text in s.command]
        return lines

    def assert_page(self, title, form):
        for step, printed in zip(self.stories[title], self.printed[title]):
            if pages.align([form(line) for line in step.output], [form(line) for line in printed], form) is None:
                self.fail("the page has\n" + "\n".join(step.output) + f"\n\n{step.host} {step.command}\nprints\n" + "\n".join(printed))

    def test_all_are_run(self):
        self.assertEqual(list(self.stories), [CAPTURES, ROUTER, OFFICES, NETWORK])
        text = PAGE.read_text()
        self.assertEqual(text.count("\n**Answer:** "), 4)

    def test_captures(self):
        """The same seed gives the same packets: every character is the page's, and the losses are the simulator's."""
        self.assert_page(CAPTURES, str.rstrip)
        truth = self.after(CAPTURES, "grep")
        for lost, lines in zip(truth, (self.after(CAPTURES, "--interval"), self.after(CAPTURES, "--interval"))):
            self.assertIn(int(lost.split()[-1]), [int(w) for w in re.findall(r"^  lost +(\d+) ", "\n".join(lines), re.M)])

    def test_router(self):
        self.assert_page(ROUTER, pages.shape)
        live = self.after(ROUTER, "oneway live")
        out, back = "\n".join(live).split("--- all wan0>lan0 ---")
        out = out.split("--- all lan0>wan0 ---")[1]
        lost = number(r"([\d,]+) lost", [out])
        self.assertGreater(lost, 100)
        self.assertEqual(lost, number(r"dropped (\d+)", self.after(ROUTER, "tc -s")))
        self.assertEqual(number(r"([\d,]+) lost", [back]), 0)
        # The queue has at most 40 ms, and 16 KiB at 10 Mbit/s: 13 ms.
        median = duration_ms(re.search(r"= \S+ \S+ / (\S+ \S+) /", out)[1])
        self.assertTrue(30 < median < 53.2 + LATE_MS, median)
        self.assertLess(duration_ms(re.search(r"= \S+ \S+ / (\S+ \S+) /", back)[1]), LATE_MS)

    def test_offices(self):
        self.assert_page(OFFICES, pages.shape)
        told = self.after(OFFICES, "grep 'TX")
        summary = "\n".join(self.after(OFFICES, "--summary")).split("---")
        self.assertEqual(number(r"([\d,]+) lost", [summary[2]]), number(r"(\d+)/\d+ \(", told))
        self.assertEqual(number(r"([\d,]+) lost", [summary[4]]), 0)
        results = [r for r in map(json.loads, self.printed[OFFICES][-1]) if r["samples"] and r["clock"]["method"] != "none"]
        self.assertGreater(len(results), 12)
        for r in results:
            self.assertEqual(r["clock"]["method"], "relative", r)
            # What is added to the receiver's times, and the bound of it.
            sign = -1 if r["to"] == "paris" else 1
            self.assertLessEqual(abs(r["clock"]["offset_ns"] - sign * PARIS_AHEAD), r["clock"]["error_ns"], r)
            # 30 ms, and 8 KiB at 4 Mbit/s: 16.4 ms.
            self.assertLess(r["ci95"]["mean"][0], (46.4 if r["from"] == "london" else 0) * MS + LATE_MS * MS, r)
            self.assertGreater(r["ci95"]["mean"][1], 0, r)
        self.assertGreater(max(r["delay_ns"]["mean"] for r in results if r["from"] == "london"), 30 * MS)

    def test_network(self):
        self.assert_page(NETWORK, pages.shape)
        # A busy machine changes delays of microseconds in other places as well: these do not explain a loss.
        named = set(re.findall(r"(\w+>\w+) since", "\n".join(self.after(NETWORK, "plane monitor"))))
        self.assertEqual(named, {"paris>berlin"})
        lost = number(r"([\d,]+) lost", self.after(NETWORK, "--summary"))
        self.assertEqual(lost, number(r"packets (\d+)", self.after(NETWORK, "nft list")))
        self.assertGreater(lost, 100)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
