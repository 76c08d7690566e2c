#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""50 clients of the page beside running points: every interval is measured, and counts are those of the wire. Needs root.

    ONEWAY=build/oneway tests/web/load.py [CLIENTS [SECONDS]]
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
from page import json_lines, run  # noqa: E402

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))
LANE = "segment=wire&class=all&from=a&to=b"
# What the page asks for when it draws the network and a segment, and when something is new.
REQUESTS = ["/api/v1/", "/api/v1/lanes", "/api/v1/network?window_ns=60000000000", "/api/v1/verdicts?since=-1h", f"/api/v1/series?{LANE}&since=-5min&width=1200",
            "/api/v1/summary?segment=wire&since=-5min", "/api/v1/events?segment=wire&since=-5min", f"/api/v1/results?{LANE}&since=-5min&period=interval", "/api/v1/truth"]
PAUSE = 2  # seconds between two drawings, as in the page


def client(address, done, statuses, took):
    """A page: its stream, and a drawing every two seconds."""
    stream = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    stream.request("GET", "/api/v1/stream")
    statuses[f"stream {stream.getresponse().status}"] += 1
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    while not done.is_set():
        for path in REQUESTS:
            started = time.monotonic()
            try:
                connection.request("GET", path)
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


def main():
    clients, seconds = (list(map(int, sys.argv[1:])) + [50, 20])[:2] if len(sys.argv) < 3 else map(int, sys.argv[1:3])
    done, statuses, took = threading.Event(), collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="oneway-load-") as folder:
        lab = subprocess.Popen([ONEWAY, "lab", "--seconds", str(seconds), "--rate", "5k", "--reverse", "0.3", "--store", folder, "--web"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        address = None
        while not address:
            line = lab.stdout.readline()
            if not line:
                sys.exit("the lab ended")
            address = re.search(r"http://\S+", line)
        url = urllib.parse.urlsplit(address.group(0))
        while not pathlib.Path(folder, "truth.json").exists() and lab.poll() is None:
            time.sleep(0.2)
        threads = [threading.Thread(target=client, args=(url, done, statuses, took), daemon=True) for _ in range(clients)]
        for thread in threads:
            thread.start()
        threading.Timer(seconds - 3, done.set).start()
        said = lab.stdout.read()
        code = lab.wait()
        results = json_lines(run(ONEWAY, "results", pathlib.Path(folder, "results.db"), "--json", "--limit", "1000"))
    states = collections.Counter(row["status"] for row in results)
    counts = re.findall(r"^  (sent|received|lost|extra) +([\d,]+) +([\d,]+)", said, re.M)
    wrong = [row for row in counts if row[1] != row[2]]
    took.sort()
    print(f"{clients} clients, {len(took)} requests in {seconds} s, {dict(statuses)}; median {took[len(took) // 2] * 1000:.0f} ms, longest {took[-1]:.1f} s")
    print(f"intervals: {dict(states)}; counts that differ from the wire: {wrong or 'none'} of {len(counts)}; exit code {code}")
    sys.exit(bool(wrong or code or set(states) != {"measured"} or not counts))


if __name__ == "__main__":
    main()
