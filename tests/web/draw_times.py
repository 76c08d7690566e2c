#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the views of a store take in a browser: draw_times.py ONEWAY STORE [ROUNDS]

Time from the start of loading the page to its first drawing, bytes that were loaded, and how soon the page follows the pointer and the
key that zooms: until the bins that are there are drawn at the new scale, and until those of the server are. build/tests/web/make_store
makes a store of 100 segments and 90 days.
"""
import datetime
import sys

from browser import Browser
from page import Page, Server

HOUR_NS = 3600 * 10**9
BYTES = """const loaded = performance.getEntriesByType('resource').filter(entry => !/stream/.test(entry.name));
return loaded.reduce((sum, entry) => sum + entry.transferSize, performance.getEntriesByType('navigation')[0].transferSize)"""
POINTER = """const box = document.querySelector('.chart-box'), at = box.getBoundingClientRect(), times = [];
for (let i = 0; i < 30; i++) {
    const begin = performance.now();
    box.dispatchEvent(new PointerEvent('pointermove', {clientX: at.left + 100 + i * 20, clientY: at.top + 60, bubbles: true}));
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - begin);
}
return times"""
ZOOM = """const root = document.documentElement, times = [];
const busy = () => document.querySelector('#view[aria-busy], #view [aria-busy]');
const after = async (key, before, begin) => {
    while ((root.dataset[key] || 0) === before && performance.now() - begin < 20000)
        await new Promise(requestAnimationFrame);
    return performance.now() - begin;
};
for (let i = 0; i < 10; i++) {
    while (busy()) await new Promise(requestAnimationFrame);
    const box = document.querySelector('.chart-box'), early = root.dataset.early || 0, drawn = root.dataset.drawn || 0, begin = performance.now();
    box.focus();
    box.dispatchEvent(new KeyboardEvent('keydown', {key: i % 4 < 3 ? '+' : '-', bubbles: true}));
    times.push([await after('early', early, begin), await after('drawn', drawn, begin)]);
}
return times"""


def iso(ns):
    return datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def spread(times):
    times = sorted(times)
    return f"{times[len(times) // 2]:7.0f} {times[0]:7.0f} {times[-1]:7.0f}"


def main():
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    with Server(sys.argv[1], sys.argv[2]) as server, Browser() as browser:
        page = Page(browser, server)
        lane = server.get("lanes")["lanes"][0]
        end_ns = lane["last_ns"]

        def times(hours):
            return f"since={iso(end_ns - hours * HOUR_NS)}&until={iso(end_ns)}"

        segment = f"segment?segment={lane['segment']}&"
        views = {
            "network, day": "network?" + times(24), "matrix, day": "matrix?" + times(24), "segment, hour": segment + times(1),
            "segment, day": segment + times(24), "segment, 90 days": segment + times(24 * 90),
        }
        with open("/proc/loadavg", encoding="ascii") as load:
            print(f"load {load.read().split()[0]}; milliseconds")
        print(f"{'':24}  median   least  longest  bytes")
        for name, view in views.items():
            drawn, size = [], 0
            for _ in range(rounds):
                page.open(view)
                drawn.append(float(browser.run("return document.documentElement.dataset.ms")))
                size = max(size, browser.run(BYTES))
            print(f"{name:24} {spread(drawn)}  {size}", flush=True)
        page.open(views["segment, day"])
        print(f"{'pointer, to next frame':24} {spread(browser.run(POINTER))}")
        first, whole = zip(*browser.run(ZOOM))
        print(f"{'zoom by a key':24} {spread(first)}")
        print(f"{'  with new bins':24} {spread(whole)}")


if __name__ == "__main__":
    main()
