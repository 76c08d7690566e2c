#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what it draws is what `oneway results` prints; addresses, keys, colours, narrow screens, hostile names.

    ONEWAY=build/oneway tests/web/test_page.py
"""
import contextlib
import json
import os
import pathlib
import re
import sqlite3
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import checks  # noqa: E402
from comparing import ONEWAY, Comparing, iso, lane_box, segment_view, times  # noqa: E402
from browser import Browser  # noqa: E402
from page import VIEWS, SECOND, Page, Server, forget, measured_store, rename, run  # noqa: E402

MAKE_STORE = os.path.abspath(os.environ.get("MAKE_STORE", "build/tests/web/make_store"))
SHOTS = os.environ.get("SHOTS")  # a folder for pictures of all views
HOSTILE = "<img src=x onerror=document.title='owned'>\"'&\u202efdp.exe\u2066"
LANE = {"segment": "london-paris", "class": "voice", "from": "london", "to": "paris"}


BROWSER = None  # one for all: each start takes seconds of the processor


def setUpModule():
    global BROWSER
    BROWSER = Browser()
    unittest.addModuleCleanup(BROWSER.close)


@contextlib.contextmanager
def shown(server):
    """The page of a server. The browser leaves it before the server ends, which would be a problem of the page."""
    BROWSER.viewport(1280, 900)
    BROWSER.media()
    yield Page(BROWSER, server)
    BROWSER.open("about:blank")


def keep(browser, name):
    """A picture for people to look at."""
    if SHOTS:
        os.makedirs(SHOTS, exist_ok=True)
        browser.screenshot(os.path.join(SHOTS, name + ".png"), whole=True)


class PageTest(Comparing):
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
        cls.browser = BROWSER
        cls.page = cls.enterClassContext(shown(cls.server))
        cls.since, cls.until = (start - 5) * SECOND, (start + 130) * SECOND
        cls.times = f"since={iso(cls.since)}&until={iso(cls.until)}"

    def setUp(self):
        self.browser.viewport(1280, 900)
        self.browser.media()

    def tearDown(self):
        self.assertEqual(self.page.problems(), [])

    def segment(self, more=""):
        return segment_view(LANE, self.since, self.until, more)

    # --- what is drawn ---

    def test_the_median_is_drawn_where_results_say(self):
        self.page.open(self.segment())
        expected = {row["start_ns"] / 1e6: row["delay_ns"]["quantiles"]["0.5"] for row in self.results(LANE, "--since", iso(self.since), "--until", iso(self.until)) if row["status"] != "unknown"}
        self.assertEqual(self.check_line(LANE, expected, 1000), len(expected))

    def test_bins_are_the_intervals(self):
        self.page.open(self.segment())
        self.browser.run("document.querySelector(arguments[0] + ' details.bins').open = true", lane_box(LANE))
        self.browser.wait("document.querySelector('table[data-bins]')")
        head, *rows = self.page.table("table[data-bins]")
        column = {name: i for i, name in enumerate(head)}
        results = self.results(LANE, "--since", iso(self.since), "--until", iso(self.until))
        rows = [row for row in rows if any(row[column[name]] != "0" for name in ("measured", "partial", "unknown"))]
        self.assertEqual(len(rows), len(results))
        for row, result in zip(rows, sorted(results, key=lambda one: one["start_ns"])):
            for name in ("sent", "lost"):
                self.assertEqual(row[column[name]], "unknown" if result[name] is None else f"{result[name]:,}", (name, result["start_ns"]))
            self.assertEqual(row[column["unknown"]], "1" if result["status"] == "unknown" else "0")

    def test_sums_are_those_of_the_command_that_is_shown(self):
        self.page.open(self.segment())
        self.check_sums_of_the_command(2)

    def test_distribution_has_every_packet(self):
        self.page.open(self.segment())
        [expected] = [line for line in self.results(LANE, "--since", iso(self.since), "--until", iso(self.until), "--summary") if "delay_ns" in line]
        self.assertEqual(int(self.browser.run("return document.querySelector('.histogram').dataset.packets")), expected["samples"])
        self.browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        _, *rows = self.page.table("table[data-distribution]")
        self.assertEqual(sum(int(row[2].replace(",", "")) for row in rows), expected["samples"])

    def test_unknown_is_hatched_and_says_why(self):
        self.page.open(self.segment())
        self.assertTrue(self.browser.run("return document.querySelector('.span-unknown').getAttribute('d').length > 0"))
        self.assertIn("paris does not answer", self.page.text(lane_box(LANE) + " .causes"))
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
        results = {row["start_ns"]: row for row in self.results(LANE, "--since", iso(self.since), "--until", iso(self.until))}
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
        [one] = [line for line in self.results(LANE, "--since", zoomed[1]["since"][0], "--until", zoomed[1]["until"][0], "--summary") if "delay_ns" in line]
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
        self.check_cells(".cell a", self.sums({"class": "voice"}, self.since, self.until))

    # --- every view ---

    def fragment(self, view):
        return self.segment("&compare=week") if view == "segment" else f"{view}?{self.times}" + ("&from=london&to=paris" if view == "path" else "")

    def test_every_view_in_both_colours_and_widths(self):
        findings, rules = [], checks.rules()
        for view in VIEWS:
            self.page.open(self.fragment(view))
            self.assertEqual(self.page.address()[0], view)
            findings += checks.look(self.page, view, rules, lambda name: keep(self.browser, name))
        self.assertEqual(findings, [])

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
        self.browser.media()

    def test_paper_has_one_page(self):
        """The segment as a PDF, from a dark page: one sheet, with the charts, the sums and the distribution."""
        self.page.open(self.segment())
        self.browser.click("#theme")
        self.browser.click("#theme")
        self.assertEqual(self.page.text("#theme"), "dark")
        path = pathlib.Path(SHOTS or self.folder.name, "segment.pdf")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.browser.print_pdf(path)
        self.browser.click("#theme")
        sheets = re.findall(rb"/Type\s*/Page\b(?!s)", path.read_bytes())
        self.assertEqual(len(sheets), 1)
        self.browser.media(type="print", prefers_color_scheme="dark")
        hidden = self.browser.run("return ['nav', '.switches', '#range', '.controls', '.exports button', '.paperless', 'details'].filter((s) => [...document.querySelectorAll(s)].some((e) => e.getClientRects().length))")
        self.assertEqual(hidden, [])
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('.chart')].filter((e) => e.getClientRects().length).length"), 4)

    def test_faults_are_said(self):
        self.page.open("segment?segment=nowhere")
        self.assertIn("no such lane", self.page.text("#view"))
        self.page.open("matrix?since=nonsense&until=never")
        self.assertTrue(self.browser.run("return !!document.querySelector('.matrix')"))


class LargeTest(Comparing):
    """A made store of 100 segments and 90 days: every view, and its numbers beside those of `oneway results`."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="oneway-page-")
        cls.addClassCleanup(folder.cleanup)
        cls.store = pathlib.Path(folder.name, "results.db")
        # Seconds of four minutes, minutes of an hour, hours of two days, days of 90.
        run(MAKE_STORE, cls.store, "segments=100", "seconds=250", "minutes=60", "hours=60", "days=88")
        cls.server = Server(ONEWAY, cls.store)
        cls.addClassCleanup(cls.server.close)
        cls.browser = BROWSER
        cls.page = cls.enterClassContext(shown(cls.server))
        info = cls.server.get("")["periods"]
        cls.end = info["interval"]["last_ns"] + SECOND
        cls.lane = cls.server.get("lanes")["lanes"][0]
        cls.days = (cls.end - info["day"]["first_ns"]) // (86400 * SECOND)

    def tearDown(self):
        self.assertEqual(self.page.problems(), [])

    def test_every_view(self):
        self.assertGreaterEqual(self.days, 89)
        findings, rules = [], checks.rules()
        for view in VIEWS:
            for length in (600, 86400, 89 * 86400):
                more = f"&from={self.lane['from']}&to={self.lane['to']}&segment={self.lane['segment']}" if view in ("segment", "path") else ""
                self.page.open(f"{view}?{times(self.end - length * SECOND, self.end)}{more}")
                self.assertEqual(self.page.address()[0], view)
                self.assertEqual(self.page.problems(), [], (view, length))
                self.assertTrue(self.page.text("#view h1"))
            if view in ("network", "matrix", "segment"):  # which have more to show here
                findings += checks.look(self.page, f"{view}-large", rules, lambda name: keep(self.browser, name))
        self.assertEqual(findings, [])

    def check_segment(self, period, length, results):
        """Bins are results of this period. That of the last one may be incomplete."""
        since = self.end - length * SECOND
        self.page.open(segment_view(self.lane, since, self.end))
        rows = self.results(self.lane, "--since", iso(since), "--until", iso(self.end), "--period", period, "--limit", "5000")
        expected = {row["start_ns"] / 1e6: row["delay_ns"]["quantiles"]["0.5"] for row in rows}
        longest = max(row["length_ns"] for row in rows) / 1e6
        compared = self.check_line(self.lane, {start: value for start, value in expected.items()}, longest) if period == "interval" else self.check_whole(expected, longest)
        self.assertGreaterEqual(compared, results)
        self.check_sums_of_the_command(2)

    def check_whole(self, expected, longest):
        """The same without the first and the last bin, which may be parts of results."""
        values, error = self.drawn(self.lane, "p50")
        inner = sorted(values)[1:-1]
        for when in inner:
            start = max(start for start in expected if start <= when)
            self.assertLess(when - start, longest)
            self.assertAlmostEqual(values[when], expected[start], delta=error(values[when]) + expected[start] / 64)
        return len(inner)

    def test_seconds(self):
        self.check_segment("interval", 240, 240)

    def test_minutes(self):
        self.check_segment("minute", 3600, 55)

    def test_hours(self):
        self.check_segment("hour", 2 * 86400, 40)

    def test_days(self):
        self.check_segment("day", 89 * 86400, 85)

    def test_all_lanes(self):
        """The list of the network and the cells of the matrix: each of 200 lanes."""
        since = self.end - 3600 * SECOND
        self.page.open(f"matrix?{times(since, self.end)}")
        expected = self.sums({}, since, self.end)
        self.assertEqual(len(expected), 200)
        self.check_lanes_table(expected)
        self.check_cells(".cell a", {key: one for key, one in expected.items()})
        self.page.open(f"network?{times(since, self.end)}&window=1h")
        shown = self.server.get("network", at_ns=self.end, window_ns=3600 * SECOND)
        self.check_lanes_table(self.sums({}, shown["since_ns"], shown["until_ns"]))
        self.assertEqual(self.browser.run("return [document.querySelectorAll('.edge').length, document.querySelectorAll('.node').length]"), [200, 60])
        states = self.browser.run("const n = {}; for (const e of document.querySelectorAll('.edge')) n[e.dataset.state] = (n[e.dataset.state] || 0) + 1; return n")
        self.assertEqual((states["loss"], states["delay"]), (1, 2))

    def test_path(self):
        since = self.end - 3600 * SECOND
        self.page.open(f"path?from=p000&to=p004&{times(since, self.end)}")
        expected = self.sums({}, since, self.end)
        hops = self.browser.run("return [...document.querySelectorAll('.hop')].map(e => ({...e.dataset}))")
        self.assertEqual((hops[0]["from"], hops[-1]["to"]), ("p000", "p004"))
        for hop in hops:
            one = next(one for key, one in expected.items() if key[2:] == (hop["from"], hop["to"]))
            self.assertEqual(float(hop["mean"]), one["delay_ns"]["mean"])

    def test_events_and_points(self):
        self.page.open(f"events?{times(self.end - 3600 * SECOND, self.end)}")
        head, *rows = self.page.table("table[data-events]")
        self.assertTrue(any("does not answer" in row[head.index("what happened")] for row in rows))
        self.page.open("points")
        self.assertEqual(self.browser.run("return document.querySelector('table[data-points]').dataset.points"), "60")

    def test_a_zoom_is_drawn_at_once(self):
        """Bins that are there are drawn at the new scale, before the answer of the server; the focus stays."""
        self.page.open(segment_view(self.lane, self.end - 86400 * SECOND, self.end))
        self.browser.run("""
            window.answers = [];
            const real = window.fetch;
            window.fetch = async (...words) => { if (/series/.test(words[0])) await new Promise((go) => window.answers.push(go)); return real(...words); };
            document.querySelector('.chart-box').focus();""")
        before = self.page.drawings()
        self.browser.keys("+")
        self.browser.wait("document.documentElement.dataset.early === '1'")
        plot = "const d = document.querySelector('.chart-box svg').dataset; return (d.until - d.since) / 3600e3"
        self.assertAlmostEqual(self.browser.run(plot), 12, delta=0.1)
        self.assertEqual(self.page.drawings(), before)
        self.assertIn("being loaded", self.page.text(".readout"))
        self.assertEqual(self.browser.run("return document.activeElement.className"), "chart-box")
        self.browser.run("window.fetch = undefined; delete window.fetch; for (const go of window.answers) go()")
        self.page.ready(before)
        self.assertAlmostEqual(self.browser.run(plot), 12, delta=0.1)
        self.assertNotIn("being loaded", self.page.text(".readout"))
        self.assertFalse(self.browser.run("return document.getElementById('view').classList.contains('early')"))


class FlowsTest(unittest.TestCase):
    """Recordings of flows beside `oneway flows query`."""

    def test_flows(self):
        with tempfile.TemporaryDirectory(prefix="oneway-page-") as name:
            folder = pathlib.Path(name)
            store = measured_store(ONEWAY, folder, int(time.time()) - 1000)
            run(ONEWAY, "simulate", "--packets", 20000, "--flows", 100, "--loss", "1%", "-a", folder / "a.pcap", "-b", folder / "b.pcap")
            for side in "ab":
                run(ONEWAY, "flows", "record", "-q", folder / f"{side}.pcap", "-o", folder / f"{side}.epochs", "--counters", 300)
            asked = json.loads(run(ONEWAY, "flows", "query", "--from", folder / "a.epochs", "--to", folder / "b.epochs", "--worst", "--top", 20, "--json"))
            with Server(ONEWAY, store, "--flows-from", folder / "a.epochs", "--flows-to", folder / "b.epochs") as server, shown(server) as page:
                page.open("flows?worst=20&since=2000-01-01T00:00:00.000Z")
                head, *rows = page.table("table[data-flows]")
                self.assertEqual(len(rows), 20)
                for row, flow in zip(rows, asked["flows"]):
                    cells = dict(zip(head, row))
                    where = flow["flow"]
                    self.assertIn(f"{where['src']}:{where['sport']} → {where['dst']}:{where['dport']}", cells["flow"])
                    self.assertEqual(cells["received"], f"{flow['packets']:,} packets")
                    self.assertTrue(cells["mean delay (95 %)"].startswith(page.format("delay", flow["mean_ns"])), (cells, flow))
                self.assertEqual(checks.look(page, "flows-recorded", checks.rules(), lambda name: keep(BROWSER, name)), [])
                page.open("flows?worst=20&of=prefix:24,48&since=2000-01-01T00:00:00.000Z")
                self.assertIn("/24", page.text("#view"))
                self.assertEqual(page.problems(), [])


class EmptyTest(unittest.TestCase):
    """A store in which there is nothing yet."""

    def test_every_view(self):
        with tempfile.TemporaryDirectory(prefix="oneway-page-") as folder:
            store = pathlib.Path(folder, "results.db")
            run(MAKE_STORE, store, "segments=2", "seconds=0", "minutes=0", "hours=0")
            with sqlite3.connect(store) as database:
                for table in ("result", "minute", "hour", "day", "lane"):
                    database.execute(f"DELETE FROM {table}")
            database.close()
            with Server(ONEWAY, store) as server, shown(server) as page:
                for view in VIEWS:
                    page.open(view)
                    self.assertEqual(page.problems(), [], view)
                    self.assertTrue(page.text("#view h1"))


class HostileTest(unittest.TestCase):
    def test_names_are_text(self):
        with tempfile.TemporaryDirectory(prefix="oneway-page-") as name:
            folder = pathlib.Path(name)
            start = int(time.time()) - 1000
            store = measured_store(ONEWAY, folder, start)
            rename(store, HOSTILE, {"a.pcap": HOSTILE + "a", "b.pcap": HOSTILE + "b"})
            forget(store, HOSTILE, (0.4, 0.5))
            with Server(ONEWAY, store) as server, shown(server) as page:
                name = HOSTILE.replace("\u202e", "\\u{202e}").replace("\u2066", "\\u{2066}")
                for view in VIEWS:
                    page.open(f"{view}?since=-1h")
                    self.assertNotEqual(BROWSER.run("return document.title"), "owned")
                    self.assertEqual(BROWSER.run("return document.querySelectorAll('img, [onerror]').length"), 0, view)
                    text = BROWSER.run("return document.getElementById('view').textContent")
                    self.assertFalse("\u202e" in text and view, "a character that turns the text is shown as it is")
                    if view not in ("events", "flows"):
                        self.assertIn(name, text, view)
                    if view == "segment":
                        words = run("bash", "-c", "printf '%s\\0' " + page.text(".command")).split("\0")
                        self.assertEqual(words[words.index("--segment") + 1], HOSTILE)
                    self.assertEqual(page.problems(), [], view)


if __name__ == "__main__":
    unittest.main(verbosity=1)
