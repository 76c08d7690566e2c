#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""50 pages beside running points: every interval is measured, and counts are those of the wire. Needs root.

    ONEWAY=build/oneway tests/web/load.py [PAGES [SECONDS [BROWSERS]]]

Two cores do not carry 50 browsers. So BROWSERS (5) of the pages are Chromium, some with a segment and some with the network. The others are
clients that repeat what these ask: the requests of one drawing are recorded from one of them, and each client makes them, with times that
are as far from now, every two seconds, beside a stream of its own.
"""
import collections
import http.client
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402
from page import json_lines, run  # noqa: E402

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))
VIEWS = ["segment?segment=wire&since=-5min", "network?since=-5min"]
RECORD = """const root = document.documentElement, before = Number(root.dataset.drawn);
performance.clearResourceTimings();
while (Number(root.dataset.drawn) === before || document.querySelector('#view[aria-busy], #view [aria-busy]')) await new Promise((go) => setTimeout(go, 50));
await new Promise((go) => setTimeout(go, 300));
return [performance.timeOrigin + performance.now(), performance.getEntriesByType('resource').map((entry) => entry.name)]"""
PAUSE = 2  # seconds between two drawings, as in the page


def record(browser, address, view):
    """What a page asks the server for when it draws a view again because something is new: paths, with {N} for N ns before now."""
    browser.open(f"{address}#/{view}")
    browser.wait("document.documentElement.dataset.drawn > 0 && document.querySelector('.chart-box, .edge')", "the view is drawn", timeout=60)
    now_ms, names = browser.run(RECORD)
    paths = [name.removeprefix(address) for name in names if "/api/v1/" in name and not name.endswith("stream")]
    ago = lambda found: f"{found.group(1)}={{{int(now_ms * 1e6) - int(found.group(2))}}}"  # noqa: E731
    return ["/" + re.sub(r"(since_ns|until_ns|at_ns)=(\d+)", ago, path) for path in paths]


def client(address, requests, done, statuses, took):
    """A page: its stream, and a drawing every two seconds."""
    stream = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    stream.request("GET", "/api/v1/stream")
    statuses[f"stream {stream.getresponse().status}"] += 1
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    while not done.is_set():
        for path in requests:
            started = time.monotonic()
            try:
                connection.request("GET", re.sub(r"\{(-?\d+)\}", lambda found: str(time.time_ns() - int(found.group(1))), path), headers={"Accept-Encoding": "gzip"})
                answer = connection.getresponse()
                answer.read()
                statuses[answer.status] += 1
            except (OSError, http.client.HTTPException):
                connection.close()
                statuses["no answer"] += not done.is_set()
            took.append(time.monotonic() - started)
        done.wait(PAUSE)
    stream.close()
    connection.close()


def drawings(browsers):
    """How often each has drawn, and what went wrong."""
    counts = [int(browser.run("return document.documentElement.dataset.drawn || 0")) for browser in browsers]
    said = [browser.run("return document.getElementById('problem').textContent") for browser in browsers] + [entry["message"] for browser in browsers for entry in browser.console()]
    return counts, [text for text in said if text]


def main():
    pages, seconds, browsers = [int(word) for word in sys.argv[1:]] + [50, 60, 5][len(sys.argv) - 1:]
    done, statuses, took = threading.Event(), collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="oneway-load-") as folder:
        real = [Browser() for _ in range(browsers)]
        lab = subprocess.Popen([ONEWAY, "lab", "--seconds", str(seconds), "--rate", "5k", "--reverse", "0.3", "--store", folder, "--web"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started, address = time.monotonic(), None
        while not address:
            line = lab.stdout.readline()
            if not line:
                sys.exit("the lab ended")
            address = re.search(r"http://\S+", line)
        address = address.group(0).rstrip("/") + "/"
        requests = [record(browser, address, view) for browser, view in zip(real, VIEWS)]
        for i in range(2, browsers):
            real[i].open(f"{address}#/{VIEWS[i % 2]}")
        threads = [threading.Thread(target=client, args=(urllib.parse.urlsplit(address), requests[i % 2], done, statuses, took), daemon=True) for i in range(pages - browsers)]
        for thread in threads:
            thread.start()
        begun = time.monotonic() - started
        done.wait(max(1, seconds - 4 - begun))
        drawn, problems = drawings(real)
        done.set()
        for browser in real:
            browser.close()
        said = lab.stdout.read()
        code = lab.wait()
        results = json_lines(run(ONEWAY, "results", pathlib.Path(folder, "results.db"), "--json", "--limit", "1000"))
    states = collections.Counter(row["status"] for row in results)
    counts = re.findall(r"^  (sent|received|lost|extra) +([\d,]+) +([\d,]+)", said, re.M)
    wrong = [row for row in counts if row[1] != row[2]]
    took.sort()
    print(f"load {os.getloadavg()[0]:.1f}; {browsers} of Chromium drew {drawn} times, {problems or 'no problems'}; {pages - browsers} clients with the {[len(one) for one in requests]} requests of a page, "
          f"{len(took)} in {seconds - 4 - begun:.0f} s: {dict(statuses)}; median {took[len(took) // 2] * 1000:.0f} ms, longest {took[-1]:.1f} s")
    print(f"intervals: {dict(states)}; counts that differ from the wire: {wrong or 'none'} of {len(counts)}; exit code {code}")
    sys.exit(bool(wrong or code or problems or set(statuses) - {200, "stream 200"} or set(states) != {"measured"} or not counts))


if __name__ == "__main__":
    main()
