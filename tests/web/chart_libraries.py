#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What libraries of charts take to draw, and weigh, beside our own charts: chart_libraries.py [ROUNDS]

The same 1,200 bins of five values at 1,200 x 300 pixels, in Chromium: time of the script, and to the end of the frame in which the picture is drawn. uPlot,
dygraphs and d3 come from the npm registry. d3 draws no charts by itself: here it draws the areas and the axes.
"""
import gzip
import http.server
import pathlib
import re
import statistics
import sys
import tempfile
import threading

import npm
from browser import Browser

PAGE = pathlib.Path(__file__).resolve().parents[2] / "src" / "web" / "page"
# Name in the page, package, its sum, its files.
LIBRARIES = {
    "uPlot 1.6.32": ("uplot/-/uplot-1.6.32.tgz", "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
                     ["dist/uPlot.iife.min.js", "dist/uPlot.min.css"]),
    "dygraphs 2.2.1": ("dygraphs/-/dygraphs-2.2.1.tgz", "xnuvsvh2H/FKvJjTSlXgJpwCOhLOi3u0sHw1gsJg/Bmf29y6bnO14PbTz8MwHOa3GIbKqqgKVBMSOi+Z1gI2Gg==",
                       ["dist/dygraph.min.js", "dist/dygraph.css"]),
    "d3 7.9.0": ("d3/-/d3-7.9.0.tgz", "e1U46jVP+w7Iut8Jt8ri1YsPOvFpg46k+K8TpCb0P+zjCkjkPnV7WzfDJzMHy1LnA+wj5pLT1wjO901gLXeEhA==", ["dist/d3.min.js"]),
}
OURS = "ours, SVG"
SCRIPT = """
import {draw, scaleOf} from './chart.js';
const BINS = 1200, WIDTH = 1200, HEIGHT = 300, NAMES = ['min', 'p50', 'p90', 'p99', 'max'], START = 1.7e12;
const noise = (i) => ((i * 2654435761) % 4294967296) / 4294967296;
const bins = (make) => Array.from({length: BINS}, (_, i) => make(i));
const time = bins((i) => START + i * 1000);
const values = NAMES.map((_, k) => bins((i) => 4e6 + k * 3e5 + Math.sin(i / 60) * 5e5 + noise(i * 5 + k) * 4e5 * (k + 1)));
const series = Object.fromEntries(NAMES.map((name, k) => [name, values[k]]));
const constant = (v) => bins(() => v);
Object.assign(series, {start_ns: time.map((ms) => ms * 1e6), bin_ns: 1e9, mean: values[1], clock_error_ns: constant(1e5), sent: constant(1000), lost: bins((i) => (i % 97 ? 0 : 3)),
  loss_ratio: bins((i) => (i % 97 ? 0 : 0.003)), samples: constant(1000), intervals: constant(1), measured: constant(1), partial: constant(0), unknown: constant(0),
  missing: constant(0), causes: []});
const place = () => { const box = document.createElement('div'); box.style.cssText = `width:${WIDTH}px;height:${HEIGHT}px`; document.body.replaceChildren(box); return box; };
const ways = {
  'uPlot 1.6.32': (box) => new uPlot({width: WIDTH, height: HEIGHT, series: [{}, ...NAMES.map((label) => ({label, stroke: '#357'}))],
    bands: NAMES.slice(1).map((_, k) => ({series: [k + 2, k + 1], fill: '#35733c'})), legend: {show: false}}, [time.map((ms) => ms / 1000), ...values], box),
  'dygraphs 2.2.1': (box) => new Dygraph(box, time.map((ms, i) => [new Date(ms), ...values.map((v) => v[i])]), {labels: ['time', ...NAMES], fillGraph: true, width: WIDTH, height: HEIGHT}),
  'd3 7.9.0': (box) => {
    const x = d3.scaleTime([START, START + BINS * 1000], [60, WIDTH]), y = d3.scaleLinear([d3.min(values[0]), d3.max(values[4])], [HEIGHT - 20, 0]);
    const svg = d3.select(box).append('svg').attr('width', WIDTH).attr('height', HEIGHT);
    for (let k = 1; k < NAMES.length; k++)
      svg.append('path').attr('fill', '#357').attr('opacity', k / 6).attr('d', d3.area((_, i) => x(time[i]), (_, i) => y(values[k - 1][i]), (_, i) => y(values[k][i])).curve(d3.curveStepAfter)(values[k]));
    svg.append('g').attr('transform', `translate(0,${HEIGHT - 20})`).call(d3.axisBottom(x));
    svg.append('g').attr('transform', 'translate(60,0)').call(d3.axisLeft(y));
  },
  'ours, SVG': (box) => box.append(draw(series, {width: WIDTH, since: START, until: START + BINS * 1000}, scaleOf([series], 'auto'), {label: 'a lane'})),
};
const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
window.measure = async (name) => {
  const box = place();
  await frame();
  const begin = performance.now();
  ways[name](box);
  const script = performance.now() - begin;
  await frame();
  return [script, performance.now() - begin, box.querySelectorAll('canvas, path').length];
};
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def drawing_modules(first):
    """The module and those that it imports."""
    seen, left = set(), [first]
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += re.findall(r"from '\./([\w.]+)'", (PAGE / name).read_text())
    return sorted(seen)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    with tempfile.TemporaryDirectory(prefix="oneway-charts-") as folder:
        root, weights, head = pathlib.Path(folder), {}, ""
        for name, (package, sha512, paths) in LIBRARIES.items():
            texts = {path.rsplit("/", 1)[1]: npm.text(package, sha512, path) for path in paths}
            for file, text in texts.items():
                (root / file).write_text(text)
                head += f'<script src="{file}"></script>' if file.endswith(".js") else f'<link rel="stylesheet" href="{file}">'
            weights[name] = "".join(texts.values()).encode()
        modules = drawing_modules("chart.js")
        for name in (*modules, "style.css"):
            (root / name).write_bytes((PAGE / name).read_bytes())
        weights[OURS] = b"".join((root / name).read_bytes() for name in modules)
        (root / "script.js").write_text(SCRIPT)
        (root / "index.html").write_text(f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="style.css">{head}<script type="module" src="script.js"></script><body>')
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser(width=1300) as browser:
            browser.open(f"http://127.0.0.1:{server.server_port}/")
            browser.wait("!!window.measure")
            times = {name: [] for name in weights}
            for _ in range(rounds):
                for name in weights:
                    script, drawn, shapes = browser.run("return measure(args[0])", name)
                    if not shapes:
                        sys.exit(f"chart_libraries: {name} draws nothing")
                    times[name].append((script, drawn))
        server.shutdown()
    with open("/proc/loadavg", encoding="ascii") as load:
        print(f"load {load.read().split()[0]}; median of {rounds}, in turn")
    print(f"{'':16} {'script':>9} {'to the frame':>14} {'bytes':>9} {'gzip':>9}")
    for name, data in weights.items():
        script, drawn = (statistics.median(column) for column in zip(*times[name]))
        print(f"{name:16} {script:6.1f} ms {drawn:11.1f} ms {len(data):9} {len(gzip.compress(data)):9}")


main()
