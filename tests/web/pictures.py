#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pictures.py FOLDER: the pictures of the README and of docs/web.md, from a store that make_store makes. `make pictures` runs it."""
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402
from page import SECOND, Page, Server, run  # noqa: E402

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))
MAKE_STORE = os.path.abspath(os.environ.get("MAKE_STORE", "build/tests/web/make_store"))
CITIES = ["london", "paris", "lyon", "milan", "vienna", "prague", "berlin", "hamburg", "amsterdam"]
SPAN = 2400  # seconds of results
WIDTH = 1100


def name_points(store):
    """Cities instead of numbers, and five minutes in which one of them did not answer."""
    with sqlite3.connect(store) as database:
        for i, city in enumerate(CITIES):
            for column in ("from_point", "to_point"):
                database.execute(f"UPDATE lane SET {column} = ? WHERE {column} = ?", (city, f"p{i:03}"))
            database.execute("UPDATE lane SET segment = ? WHERE segment = ?", (f"{city}-{CITIES[(i + 1) % len(CITIES)]}", f"s{i:03}"))
        [end] = database.execute("SELECT max(start_ns) FROM result").fetchone()
        keep = {"lane", "start_ns", "length_ns", "interval", "final", "status", "cause"}
        empty = [row[1] for row in database.execute("PRAGMA table_info(result)") if row[1] not in keep and not row[3]]
        database.execute(f"UPDATE result SET status = 'unknown', cause = 'paris does not answer', {', '.join(f'{one} = NULL' for one in empty)} "
                         "WHERE start_ns > ? AND start_ns < ? AND lane IN (SELECT id FROM lane WHERE segment = 'london-paris')", (end - 1500 * SECOND, end - 1320 * SECOND))
        for table in ("minute", "hour", "day"):
            database.execute(f"DELETE FROM {table}")
    database.close()
    return end


def main():
    folder = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="oneway-pictures-") as name:
        store = pathlib.Path(name, "results.db")
        run(MAKE_STORE, store, f"segments={len(CITIES)}", f"seconds={SPAN}", "minutes=0", "hours=0", "end=1795000000")
        end = name_points(store)
        with Server(ONEWAY, store) as server, Browser(WIDTH, 800) as browser:
            until = time.monotonic() + 60
            while (server.get("verdicts")["judged_until_ns"] or 0) < end - 30 * SECOND and time.monotonic() < until:
                time.sleep(0.5)
            page = Page(browser, server)
            for view, height in (("segment?segment=london-paris", 800), ("network?window=15min", 960)):
                browser.viewport(WIDTH, height)
                page.open(view)
                picture = folder / f"{view.split('?')[0]}.png"
                browser.screenshot(picture)
                subprocess.run(["pngquant", "--force", "--speed", "1", "--strip", "--output", picture, "64", picture], check=True)
                print(f"{picture}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
