# SPDX-License-Identifier: Apache-2.0
"""What a page draws beside what `oneway results` prints for the same lanes and times."""
import bisect
import math
import os
import re
import shlex
import time
import unittest
import urllib.parse

from page import SECOND, json_lines, run

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))


def iso(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // SECOND)) + f".{ns % SECOND // 10**6:03d}Z"


def times(since, until):
    return f"since={iso(since)}&until={iso(until)}"


def lane_text(lane):
    return f"{lane['class']} {lane['from']} → {lane['to']}"


def lane_box(lane):
    return f"[data-lane='{lane_text(lane)}']"


def segment_view(lane, since, until, more=""):
    return f"segment?{urllib.parse.urlencode({key: lane[key] for key in ('segment', 'class', 'from', 'to')})}&{times(since, until)}{more}"


class Comparing(unittest.TestCase):
    """Tests of a page (self.page in self.browser) that shows a store (self.store)."""

    def results(self, lane, *options):
        words = [word for key in ("segment", "class", "from", "to") if key in lane for word in (f"--{key}", lane[key])]
        return json_lines(run(ONEWAY, "results", self.store, *words, "--json", *options))

    def sums(self, lane, since, until, *options):
        """Sums by segment, class, from and to."""
        lines = self.results(lane, "--since", iso(since), "--until", iso(until), "--summary", "--period", "any", *options)
        return {(one["segment"], one["class"], one["from"], one["to"]): one for one in lines if "delay_ns" in one}

    def drawn(self, lane, what):
        """The values of a line of the chart, by the middle of their bins in ms, from the pixels of its path; and the error of a value."""
        box = self.browser.run(
            "const svg = document.querySelector(arguments[0] + ' svg'); const p = svg.querySelector(`[data-drawn='${arguments[1]}']`);"
            "return {d: p.getAttribute('d'), ...svg.dataset}", lane_box(lane), what)
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

    def check_line(self, lane, expected, most_ms):
        """The p50 that is drawn is that of the result of its time. expected: p50 by the start in ms; most_ms: the longest of a result."""
        values, error = self.drawn(lane, "p50")
        starts = sorted(expected)
        for when, value in values.items():
            start = starts[bisect.bisect_right(starts, when) - 1]
            self.assertLess(when - start, most_ms)
            # Quantiles of a bin are those of a histogram with buckets of 1/64.
            self.assertAlmostEqual(value, expected[start], delta=error(value) + expected[start] / 64)
        return len(values)

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
            self.assertEqual(shown[title], text if low == high else f"{text} {self.page.format('delay', low)} to {self.page.format('delay', high)}")

    def check_sums_of_the_command(self, lanes):
        """The table of sums has the numbers of the command that is shown below the charts."""
        command = shlex.split(self.page.text(".command"))
        self.assertEqual(command[:2], ["oneway", "results"])
        sums = [line for line in json_lines(run(ONEWAY, *command[1:], "--json", cwd=os.path.dirname(self.store))) if "intervals" in line and "delay_ns" in line]
        self.assertEqual(len(sums), lanes)
        shown = self.sums_shown()
        for one in sums:
            self.check_sums(one, shown[lane_text(one)])

    def check_cells(self, selector, expected):
        """Cells of the matrix, by their data: the loss and the p99 of each lane."""
        cells = self.browser.run("return [...document.querySelectorAll(arguments[0])].map(e => ({...e.dataset}))", selector)
        self.assertEqual(len(cells), len(expected))
        for cell in cells:
            one = next(one for key, one in expected.items() if key[1:] == (cell["class"], cell["from"], cell["to"]))
            self.assertEqual(float(cell["loss"]), one["loss_ratio"])
            self.assertEqual(float(cell["p99"]), one["delay_ns"]["quantiles"]["0.99"])

    def check_lanes_table(self, expected):
        """The list of lanes of the network, the matrix and a path: counts, quantiles, the number of packets."""
        head, *rows = self.page.table("table[data-cells]")
        self.assertEqual(len(rows), len(expected))
        by_name = {f"{key[0]} {key[1]} {key[2]} → {key[3]}": one for key, one in expected.items()}
        written = self.browser.run("const f = await import('/format.js'); return arguments[0].map(([lost, of, ratio, p50, p99]) => [f.loss(lost, of, ratio), f.delay(p50), f.delay(p99)])",
                                   [[one["lost"], one["sent"], one["loss_ratio"], one["delay_ns"]["quantiles"]["0.5"], one["delay_ns"]["quantiles"]["0.99"]] for one in by_name.values()])
        for (name, one), (lost, p50, p99) in zip(by_name.items(), written):
            [row] = [dict(zip(head, row)) for row in rows if row[0] == name]
            self.assertEqual((row["lost"], row["p50"], row["delays of"]), (lost, p50, f"{one['samples']:,} packets"), name)
            self.assertTrue(row["p99"].startswith(p99), (name, row["p99"], p99))
