#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it draws is what `oneway results` prints; addresses, keys, colours, narrow screens, hostile names.

    ONEWAY=build/oneway tests/web/test_page.py
"""
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import axe  # noqa: E402
import checks  # noqa: E402
from browser import Browser  # noqa: E402
from page import VIEWS, SECOND, Page, Server, forget, json_lines, measured_store, rename, run  # noqa: E402

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))
SHOTS = os.environ.get("SHOTS")  # a folder for pictures of all views
HOSTILE = "<img src=x onerror=document.title='owned'>\"'&\u202efdp.exe\u2066"
LANE = {"segment": "london-paris", "class": "voice", "from": "london", "to": "paris"}


def iso(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // SECOND)) + f".{ns % SECOND // 10**6:03d}Z"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="oneway-page-")
        folder = pathlib.Path(cls.folder.name)
        start = int(time.time()) - 1000
        cls.store = measured_store(ONEWAY, folder, start)
        rename(cls.store, "london-paris", {"a.pcap": "london", "b.pcap": "paris"})
        cls.unknown = forget(cls.store, "paris does not answer", (0.4, 0.5))
        cls.server = Server(ONEWAY, cls.store)
        cls.addClassCleanup(cls.folder.cleanup)
        cls.addClassCleanup(cls.server.close)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.page = Page(cls.browser, cls.server)
        cls.since, cls.until = (start - 5) * SECOND, (start + 130) * SECOND
        cls.times = f"since={iso(cls.since)}&until={iso(cls.until)}"

    def setUp(self):
        self.browser.viewport(1280, 900)
        self.browser.media()

    def tearDown(self):
        self.assertEqual(self.page.problems(), [])

    def segment(self, more=""):
        return f"segment?{urllib.parse.urlencode(LANE)}&{self.times}{more}"

    def results(self, *options, lane=LANE):
        words = [word for key, value in lane.items() for word in (f"--{key}", value)]
        return json_lines(run(ONEWAY, "results", self.store, *words, "--json", *options))

    def lane_box(self, lane=LANE):
        return f"[data-lane='{lane['class']} {lane['from']} → {lane['to']}']"

    # --- what is drawn ---

    def drawn(self, what):
        """The values of a line of the chart, by the start of their bins, from the pixels of its path."""
        box = self.browser.run(
            "const svg = document.querySelector(arguments[0] + ' svg'); const p = svg.querySelector(`[data-drawn='${arguments[1]}']`);"
            "return {d: p.getAttribute('d'), ...svg.dataset}", self.lane_box(), what)
        number = {key: float(value) for key, value in box.items() if key != "d"}
        low, high = (math.log(number[key]) if number["log"] else number[key] for key in ("low", "high"))
        values, x, y = {}, None, None
        for letter, text in re.findall(r"([MVH])([-\d. ]+)", box["d"]):
            place = [float(word) for word in text.split()]
            if letter == "H":
                when = number["since"] + ((x + place[0]) / 2 - number["left"]) / number["plotWidth"] * (number["until"] - number["since"])
                share = (number["bottom"] - y) / (number["bottom"] - number["top"])
                value = low + share * (high - low)
                values[when] = math.exp(value) if number["log"] else value
                x = place[0]
            elif letter == "V":
                y = place[0]
            else:
                x, y = place
        pixel = (high - low) / (number["bottom"] - number["top"])  # of the scale; coordinates have a tenth of a pixel
        return values, (lambda value: abs(math.expm1(pixel * 0.11)) * value) if number["log"] else (lambda value: pixel * 0.11)

    def test_the_median_is_drawn_where_results_say(self):
        self.page.open(self.segment())
        values, error = self.drawn("p50")
        expected = {row["start_ns"] / 1e6: row for row in self.results("--since", iso(self.since), "--until", iso(self.until))}
        known = {start: row["delay_ns"]["quantiles"]["0.5"] for start, row in expected.items() if row["status"] != "unknown"}
        self.assertEqual(len(values), len(known))
        for when, value in values.items():
            start = max(start for start in known if start <= when)
            self.assertLess(when - start, 1000)
            # Quantiles of a bin are those of a histogram with buckets of 1/64.
            self.assertAlmostEqual(value, known[start], delta=error(value) + known[start] / 64)

    def test_bins_are_the_intervals(self):
        self.page.open(self.segment())
        self.browser.run("document.querySelector(arguments[0] + ' details.bins').open = true", self.lane_box())
        self.browser.wait("document.querySelector('table[data-bins]')")
        head, *rows = self.page.table("table[data-bins]")
        column = {name: i for i, name in enumerate(head)}
        results = self.results("--since", iso(self.since), "--until", iso(self.until))
        rows = [row for row in rows if row[column["measured"]] != "0" or row[column["unknown"]] != "0"]
        self.assertEqual(len(rows), len(results))
        for row, result in zip(rows, sorted(results, key=lambda one: one["start_ns"])):
            for name in ("sent", "lost"):
                self.assertEqual(row[column[name]], "unknown" if result[name] is None else f"{result[name]:,}", (name, result["start_ns"]))
            self.assertEqual(row[column["unknown"]], "1" if result["status"] == "unknown" else "0")

    def sums_shown(self):
        head, *rows = self.page.table("table[data-sums]")
        return {row[0]: dict(zip(head, row)) for row in rows}

    def check_sums(self, expected, shown):
        self.assertEqual(shown["lost"], self.page.format("loss", expected["lost"], expected["sent"] - expected["pending"], expected["loss_ratio"]))
        self.assertEqual(shown["delays of"], f"{expected['samples']:,} packets")
        self.assertEqual(shown["mean"], self.page.format("delay", expected["delay_ns"]["mean"]))
        for q, title in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99")):
            low, high = expected["ci95"]["quantiles"][q]
            text = self.page.format("delay", expected["delay_ns"]["quantiles"][q])
            self.assertEqual(shown[title], f"{text} {self.page.format('delay', low)} to {self.page.format('delay', high)}")

    def test_sums_are_those_of_the_command_that_is_shown(self):
        self.page.open(self.segment())
        command = shlex.split(self.page.text(".command"))
        self.assertEqual(command[:2], ["oneway", "results"])
        sums = [line for line in json_lines(run(ONEWAY, *command[1:], "--json", cwd=self.folder.name)) if "intervals" in line and "delay_ns" in line]
        self.assertEqual(len(sums), 2)
        shown = self.sums_shown()
        for one in sums:
            self.check_sums(one, shown[f"{one['class']} {one['from']} → {one['to']}"])

    def test_distribution_has_every_packet(self):
        self.page.open(self.segment())
        [expected] = [line for line in self.results("--since", iso(self.since), "--until", iso(self.until), "--summary") if "delay_ns" in line]
        self.assertEqual(int(self.browser.run("return document.querySelector('.histogram').dataset.packets")), expected["samples"])
        self.browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        _, *rows = self.page.table("table[data-distribution]")
        self.assertEqual(sum(int(row[2].replace(",", "")) for row in rows), expected["samples"])

    def test_unknown_is_hatched_and_says_why(self):
        self.page.open(self.segment())
        self.assertTrue(self.browser.run("return document.querySelector('.span-unknown').getAttribute('d').length > 0"))
        self.assertIn("paris does not answer", self.page.text(self.lane_box() + " .causes"))
        box = self.browser.run("return document.querySelector('.chart-box').getBoundingClientRect().toJSON()")
        plot = self.browser.run("return {...document.querySelector('.chart-box svg').dataset}")
        middle = sum(self.unknown) / 2e6
        share = (middle - float(plot["since"])) / (float(plot["until"]) - float(plot["since"]))
        self.browser.pointer((box["left"] + float(plot["left"]) + share * float(plot["plotWidth"]), box["top"] + 100))
        self.assertIn("because paris does not answer", self.page.text(".readout"))
        self.assertIn("delay unknown", self.page.text(".readout"))

    def test_raw_intervals(self):
        self.page.open(self.segment())
        head, *rows = self.page.table("table[data-raw]")
        results = {row["start_ns"]: row for row in self.results("--since", iso(self.since), "--until", iso(self.until))}
        newest = [results[start] for start in sorted(results, reverse=True)]
        self.assertEqual(len(rows), min(100, len(newest)))
        self.assertEqual([row[head.index("sent")] for row in rows], ["unknown" if one["sent"] is None else f"{one['sent']:,}" for one in newest[:len(rows)]])
        self.assertTrue(any("unknown: paris does not answer" in row[-1] for row in rows))

    def test_pictures_and_csv(self):
        self.page.open(self.segment())
        made = self.browser.run("""
            const save = await import('/save.js');
            const panels = [...document.querySelectorAll('.lane')].map((p) => ({svg: p.querySelector('svg'), title: p.dataset.lane}));
            const text = save.svgText(panels);
            const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
            const blob = await save.png(text);
            const bytes = new Uint8Array(await blob.arrayBuffer());
            const view = new DataView(bytes.buffer);
            return {error: !!parsed.querySelector('parsererror'), styled: !parsed.querySelector('[class]'), fills: [...parsed.querySelectorAll('path')].map((p) => p.getAttribute('fill')).filter(Boolean).length,
              png: String.fromCharCode(...bytes.slice(1, 4)), width: view.getUint32(16), shown: panels[0].svg.width.baseVal.value,
              csv: save.csv(['a'], [['=1+1'], ['x,"y'], [null]])};""")
        self.assertFalse(made["error"])
        self.assertTrue(made["styled"])
        self.assertGreater(made["fills"], 10)
        self.assertEqual(made["png"], "PNG")
        self.assertEqual(made["width"], 2 * made["shown"])
        self.assertEqual(made["csv"], "a\r\n'=1+1\r\n\"x,\"\"y\"\r\n\r\n")

    # --- addresses ---

    def test_drag_zooms_back_and_forward_return(self):
        self.page.open(self.segment())
        before = self.page.address()
        box = self.browser.run("return document.querySelector('.chart-box').getBoundingClientRect().toJSON()")
        plot = self.browser.run("return {...document.querySelector('.chart-box svg').dataset}")
        x = box["left"] + float(plot["left"])
        width = float(plot["plotWidth"])
        y = box["top"] + 80
        self.page.act(lambda: self.browser.pointer((x + width * 0.25, y), "down", (x + width * 0.4, y), (x + width * 0.75, y), "up"))
        zoomed = self.page.address()
        length = (self.until - self.since) / 1e6
        shown = self.browser.run("const d = document.querySelector('.chart-box svg').dataset; return [d.since, d.until]")
        for value, share in zip(map(float, shown), (0.25, 0.75)):
            self.assertAlmostEqual(value, self.since / 1e6 + share * length, delta=2 * length / width)
        [one] = [line for line in self.results("--since", zoomed[1]["since"][0], "--until", zoomed[1]["until"][0], "--summary") if "delay_ns" in line]
        self.check_sums(one, self.sums_shown()["voice london → paris"])
        self.page.act(self.browser.back)
        self.assertEqual(self.page.address(), before)
        self.page.act(self.browser.forward)
        self.assertEqual(self.page.address(), zoomed)

    def test_keys(self):
        self.page.open(self.segment())
        self.browser.run("document.querySelector('.chart-box').focus()")
        text = "return document.querySelector('.chart-box').getAttribute('aria-valuetext')"
        self.browser.keys("Right", "Right")
        first = self.browser.run(text)
        self.browser.keys("Right")
        self.assertNotEqual(self.browser.run(text), first)
        self.assertIn("p99", self.browser.run(text))
        self.browser.keys("Left")
        self.assertEqual(self.browser.run(text), first)
        self.page.act(lambda: self.browser.keys("+"))
        length = lambda: (lambda d: float(d["until"]) - float(d["since"]))(self.browser.run("return {...document.querySelector('.chart-box svg').dataset}"))  # noqa: E731
        self.assertAlmostEqual(length(), (self.until - self.since) / 2e6, delta=2)
        self.assertEqual(self.browser.run("return document.activeElement.className"), "chart-box")  # the focus stays
        self.page.act(lambda: self.browser.keys("-"))
        self.assertAlmostEqual(length(), (self.until - self.since) / 1e6, delta=4)
        self.browser.keys("Escape")
        self.page.act(lambda: self.browser.keys("Escape"))
        self.assertAlmostEqual(length(), (self.until - self.since) / 5e5, delta=8)

    def test_classes_side_by_side_and_last_week(self):
        self.page.open(self.segment("&class=bulk&compare=week"))
        boxes = self.browser.run("return [...document.querySelectorAll('.lane')].map(e => [e.dataset.lane, e.getBoundingClientRect().top, e.getBoundingClientRect().left])")
        self.assertEqual([one[0] for one in boxes], ["voice london → paris", "bulk london → paris", "voice paris → london", "bulk paris → london"])
        self.assertEqual(boxes[0][1], boxes[1][1])
        self.assertLess(boxes[0][2], boxes[1][2])
        scales = self.browser.run("return [...document.querySelectorAll('.chart-box svg')].map(e => e.dataset.low + ' ' + e.dataset.high)")
        self.assertEqual(len(set(scales)), 1)

    def test_links_lead_to_the_segment(self):
        for view, selector in (("network", ".edge"), ("matrix", ".cell a"), ("path?from=london&to=paris", ".hop")):
            self.page.open(f"{view}{'&' if '?' in view else '?'}{self.times}")
            self.browser.run("document.querySelector(arguments[0]).focus()", selector)
            self.page.act(lambda: self.browser.keys("Enter"))
            shown, query = self.page.address()
            self.assertEqual((shown, query["segment"]), ("segment", ["london-paris"]), view)
            self.assertTrue(self.browser.run("return !!document.querySelector('.chart-box')"))

    def test_matrix_is_the_sum(self):
        self.page.open(f"matrix?{self.times}&class=voice")
        cells = self.browser.run("return [...document.querySelectorAll('.cell a')].map(e => ({...e.dataset}))")
        self.assertEqual(len(cells), 2)
        for cell in cells:
            [one] = [line for line in self.results("--since", iso(self.since), "--until", iso(self.until), "--summary", lane={**LANE, "from": cell["from"], "to": cell["to"]}) if "delay_ns" in line]
            self.assertEqual(float(cell["loss"]), one["loss_ratio"])
            self.assertEqual(float(cell["p99"]), one["delay_ns"]["quantiles"]["0.99"])

    # --- every view ---

    def fragment(self, view):
        return self.segment("&compare=week") if view == "segment" else f"{view}?{self.times}" + ("&from=london&to=paris" if view == "path" else "")

    def test_every_view_in_both_colours_and_widths(self):
        findings, rules = [], None
        try:
            rules = axe.source()
        except axe.Unavailable as error:
            print(f"without axe-core: {error}")
        for view in VIEWS:
            self.page.open(self.fragment(view))
            self.assertEqual(self.page.address()[0], view)
            for scheme in ("light", "dark"):
                self.browser.media(prefers_color_scheme=scheme)
                for name, script in checks.ALL.items():
                    findings += [f"{view}, {scheme}, {name}: {one}" for one in self.browser.run(script)]
                findings += [f"{view}, {scheme}, axe: {one}" for one in axe.findings(self.browser, rules)] if rules else []
                self.keep(f"{view}-{scheme}")
            self.browser.media()
            self.page.act(lambda: self.browser.viewport(375, 800))
            findings += [f"{view}, 375 pixels: {one}" for name in ("width", "targets", "names") for one in self.browser.run(checks.ALL[name])]
            self.keep(f"{view}-375")
            self.page.act(lambda: self.browser.viewport(1280, 900))
        self.assertEqual(findings, [])

    def keep(self, name):
        """A picture for people to look at."""
        if SHOTS:
            os.makedirs(SHOTS, exist_ok=True)
            self.browser.screenshot(os.path.join(SHOTS, name + ".png"), whole=True)

    def test_tab_reaches_everything_and_shows_where_it_is(self):
        self.page.open(self.segment())
        self.browser.run("document.activeElement.blur(); scrollTo(0, 0)")
        reached, findings = set(), []
        for _ in range(60):
            self.browser.keys("Tab")
            found = self.browser.run(checks.FOCUS)
            if found == "body":
                break
            if found:
                findings.append(found)
            reached.add(self.browser.run("const e = document.activeElement; return e.dataset.key || e.id || e.className || e.textContent.slice(0, 20)"))
        self.assertEqual(findings, [])
        for key in ("Segment", "Delay axis", "compare", "chart voice london → paris", "chart voice paris → london", "Copy command", "theme", "skip"):
            self.assertIn(key, reached)

    def test_colours_switch(self):
        self.page.open(f"points?{self.times}")
        ground = "const c = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number); return c[0] + c[1] + c[2]"
        self.assertGreater(self.browser.run(ground), 600)
        self.browser.click("#theme")
        self.browser.click("#theme")
        self.assertEqual(self.page.text("#theme"), "dark")
        self.assertLess(self.browser.run(ground), 150)
        self.browser.click("#theme")
        self.browser.media(prefers_color_scheme="dark")
        self.assertLess(self.browser.run(ground), 150)

    def test_paper(self):
        self.page.open(self.segment())
        self.browser.media(type="print", prefers_color_scheme="dark")
        shown = self.browser.run("const d = (s) => getComputedStyle(document.querySelector(s)).display; return [d('nav'), d('.controls'), d('.chart'), getComputedStyle(document.body).color]")
        self.assertEqual(shown[:3], ["none", "none", "block"])
        self.assertTrue(max(map(int, re.findall(r"\d+", shown[3])[:3])) < 80, shown)  # dark on white

    def test_faults_are_said(self):
        self.page.open("segment?segment=nowhere")
        self.assertIn("no such lane", self.page.text("#view"))
        self.page.open("matrix?since=nonsense&until=never")
        self.assertTrue(self.browser.run("return !!document.querySelector('.matrix')"))


class HostileTest(unittest.TestCase):
    def test_names_are_text(self):
        with tempfile.TemporaryDirectory(prefix="oneway-page-") as name:
            folder = pathlib.Path(name)
            start = int(time.time()) - 1000
            store = measured_store(ONEWAY, folder, start)
            rename(store, HOSTILE, {"a.pcap": HOSTILE + "a", "b.pcap": HOSTILE + "b"})
            forget(store, HOSTILE, (0.4, 0.5))
            with Server(ONEWAY, store) as server, Browser() as browser:
                page = Page(browser, server)
                shown = HOSTILE.replace("\u202e", "\\u{202e}").replace("\u2066", "\\u{2066}")
                for view in VIEWS:
                    page.open(f"{view}?since=-1h")
                    self.assertNotEqual(browser.run("return document.title"), "owned")
                    self.assertEqual(browser.run("return document.querySelectorAll('img, [onerror]').length"), 0, view)
                    text = browser.run("return document.getElementById('view').textContent")
                    self.assertFalse("\u202e" in text and view, "a character that turns the text is shown as it is")
                    if view not in ("events", "flows"):
                        self.assertIn(shown, text, view)
                    if view == "segment":
                        words = run("bash", "-c", "printf '%s\\0' " + page.text(".command")).split("\0")
                        self.assertEqual(words[words.index("--segment") + 1], HOSTILE)
                    self.assertEqual(page.problems(), [], view)


if __name__ == "__main__":
    unittest.main(verbosity=1)
