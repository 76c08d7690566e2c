# SPDX-License-Identifier: Apache-2.0
"""What the tests of the page share: stores, the server, the page in a browser."""
import json
import re
import select
import shlex
import sqlite3
import subprocess
import urllib.parse
import urllib.request

VIEWS = ["network", "matrix", "segment", "path", "events", "points", "flows"]
SECOND = 10**9


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise AssertionError(f"{shlex.join(map(str, words))}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def measured_store(oneway, folder, start):
    """Two minutes of two classes in both directions, as `oneway live` measures them from captures."""
    run(oneway, "simulate", "-a", folder / "a.pcap", "-b", folder / "b.pcap", "-t", folder / "truth.json", "-n", "120000", "-r", "1000",
        "--reverse", "0.4", "--loss", "episodes:0.004,8", "--base-delay", "4ms", "-d", "weibull:300us,0.7", "--start", start, "--flows", "50", "--seed", "18")
    store = folder / "results.db"
    run(oneway, "live", "--from", folder / "a.pcap", "--to", folder / "b.pcap", "--forward", "src net 10.0.0.0/8", "--speed", "0", "--store", store,
        "--class", "voice=udp", "--class", "bulk=tcp", "--lines")
    return store


def rename(store, segment, points):
    """Gives the lanes of a store other names."""
    with sqlite3.connect(store) as database:
        database.execute("UPDATE lane SET segment = ?", (segment,))
        for old, new in points.items():
            database.execute("UPDATE lane SET from_point = ? WHERE from_point = ?", (new, old))
            database.execute("UPDATE lane SET to_point = ? WHERE to_point = ?", (new, old))
    database.close()


def forget(store, cause, share):
    """Makes a part of the intervals unknown, as if the other point had not answered. Sums of minutes no longer apply."""
    with sqlite3.connect(store) as database:
        columns = [row[1:4] for row in database.execute("PRAGMA table_info(result)")]
        keep = {"lane", "start_ns", "length_ns", "interval", "final", "status", "cause"}
        empty = [name for name, _, not_null in columns if name not in keep and not not_null]
        first, last = database.execute("SELECT min(start_ns), max(start_ns) FROM result").fetchone()
        since, until = (first + int((last - first) * part) for part in share)
        database.execute(f"UPDATE result SET status = 'unknown', cause = ?, {', '.join(f'{name} = NULL' for name in empty)} WHERE start_ns >= ? AND start_ns < ?", (cause, since, until))
        for table in ("minute", "hour", "day"):
            database.execute(f"DELETE FROM {table}")
    database.close()
    return since, until


class Server:
    """`oneway web` on a port of its own."""

    def __init__(self, oneway, store, *options):
        self.process = subprocess.Popen([str(oneway), "web", str(store), "--listen", "127.0.0.1:0", *map(str, options)], stdout=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], 20)
        line = self.process.stdout.readline() if ready else ""
        found = re.search(r"https?://\S+", line)
        if not found:
            self.close()
            raise AssertionError(f"oneway web does not print its address, but {line!r}")
        self.address = found.group(0).rstrip("/") + "/"

    def get(self, resource, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.address}api/v1/{resource}{'?' + query if query else ''}", timeout=20) as answer:
            return json.load(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Page:
    """The page of a server in a browser."""

    DRAWN = "document.documentElement.dataset.drawn > {} && !document.querySelector('#view[aria-busy], #view [aria-busy]')"

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

    def drawings(self):
        return int(self.browser.run("return document.documentElement.dataset.drawn || 0"))

    def open(self, fragment):
        """Loads the page anew."""
        self.browser.open("about:blank")
        self.browser.open(self.server.address + "#/" + fragment)
        self.ready(0)

    def go(self, fragment):
        """Changes the address, as a link does."""
        before = self.drawings()
        self.browser.run("location.hash = arguments[0]", "#/" + fragment)
        self.ready(before)

    def ready(self, before):
        self.browser.wait(self.DRAWN.format(before), "the page is drawn")

    def act(self, action):
        """Does something after which the page is drawn again."""
        before = self.drawings()
        action()
        self.ready(before)

    def text(self, selector):
        return self.browser.run("const e = document.querySelector(arguments[0]); return e && e.textContent", selector)

    def address(self):
        """View and parameters of the address that is shown."""
        fragment = self.browser.run("return location.hash")
        view, _, query = fragment.removeprefix("#/").partition("?")
        return view, urllib.parse.parse_qs(query)

    def table(self, selector):
        """Rows of a table as lists of texts, the heading first."""
        return self.browser.run(
            "const t = document.querySelector(arguments[0]);"
            "while (t && t.isConnected && t.closest('[role=region][aria-busy]')) await new Promise(requestAnimationFrame);"
            "return t && [...t.rows].map(row => [...row.cells].map(cell => cell.textContent.trim()))", selector)

    def format(self, function, *values):
        """A number as the page writes it."""
        return self.browser.run("const f = await import('/format.js'); return f[arguments[0]](...arguments[1])", function, list(values))

    def problems(self):
        """What went wrong, by the page and by the console."""
        said = self.browser.run("return document.getElementById('problem').textContent")
        return ([said] if said else []) + [entry["message"] for entry in self.browser.console()]
