#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server of the page against clients that mean no good, and what it says of itself: `ONEWAY=build/oneway MAKE_STORE=... test_server.py`"""
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from page import Server, run  # noqa: E402

ONEWAY = os.path.abspath(os.environ.get("ONEWAY", "build/oneway"))
MAKE_STORE = os.environ.get("MAKE_STORE", "build/tests/web/make_store")
TOKEN = "0123456789abcdef0123"
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\x01\n"
RESOURCES = ["", "lanes", "series", "summary", "results", "matrix", "network", "path", "verdicts", "events", "points", "flows", "truth", "stream"]


def ask(address, path, method="GET", headers=None, context=None, timeout=20):
    """Status, headers and body of an answer."""
    url = urllib.parse.urlsplit(address)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port, timeout=timeout, **({"context": context} if context else {}))
    try:
        connection.putrequest(method, path, skip_host=bool(headers and "Host" in headers))
        for key, value in (headers or {}).items():
            connection.putheader(key, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(address, data, timeout=10):
    """Whatever comes back for these bytes."""
    url = urllib.parse.urlsplit(address)
    with socket.create_connection((url.hostname, url.port), timeout=timeout) as s:
        got = b""
        try:
            s.sendall(data)
            while part := s.recv(65536):
                got += part
        except OSError:
            pass
        return got


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) * 1024


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="oneway-web-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.store = pathlib.Path(cls.folder.name, "results.db")
        run(MAKE_STORE, cls.store, "segments=3", "seconds=120", "minutes=0", "hours=0")
        cls.server = Server(ONEWAY, cls.store)
        cls.addClassCleanup(cls.server.close)
        cls.address = cls.server.address

    def get(self, path, **options):
        return ask(self.address, path, **options)

    def well(self):
        """It is there and answers quickly."""
        status, _, body = self.get("/api/v1/")
        self.assertEqual(status, 200)
        self.assertIn("version", json.loads(body))
        self.assertIsNone(self.server.process.poll())

    def test_every_answer_says_how_it_may_be_used(self):
        for path in ("/", "/app.js", "/style.css", "/api/v1/", "/nothing", "/api/v1/nothing"):
            _, headers, _ = self.get(path)
            policy = headers["content-security-policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertIn("script-src 'self'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertNotIn("access-control-allow-origin", headers)
        _, headers, page = self.get("/")
        self.assertEqual(re.findall(rb"<script(?! type=\"module\" src=)[^>]*>|\son\w+=|style=", page), [])

    def test_only_reads(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X"):
            self.assertIn(self.get("/api/v1/lanes", method=method)[0], (400, 405, 501), method)
        self.assertEqual(self.get("/api/v1/lanes", method="HEAD")[2], b"")
        with sqlite3.connect(self.store) as database:
            self.assertEqual(database.execute("SELECT count(DISTINCT segment) FROM lane").fetchone(), (3,))

    def test_foreign_hosts(self):
        port = urllib.parse.urlsplit(self.address).port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "127.0.0.2", "0.0.0.0", "[::ffff:127.0.0.1]"):
            self.assertIn(self.get("/api/v1/lanes", headers={"Host": host})[0], (400, 421), host)
        for host in ("localhost", f"LOCALHOST:{port}", "127.0.0.1", "[::1]:1"):
            self.assertEqual(self.get("/api/v1/lanes", headers={"Host": host})[0], 200, host)
        self.assertRegex(raw(self.address, b"GET / HTTP/1.1\r\n\r\n"), b"^HTTP/1.1 4")
        self.assertRegex(raw(self.address, b"GET / HTTP/1.0\r\n\r\n"), b"^HTTP/1.[01] 4")

    def test_no_way_out_of_the_page(self):
        for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/etc/passwd", "/.", "/page/app.js", "/app.js%00.css", "/app.js/", "/\\..\\x",
                     "/index.html/../app.js", "/%252e%252e/", "http://127.0.0.1/etc/passwd"):
            got = raw(self.address, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            self.assertRegex(got, b"^HTTP/1.1 (400|404) ", path)
            self.assertNotIn(b"root:", got)

    def test_parameters(self):
        long = "x" * 5000
        for path, status in (("/api/v1/lanes?nothing=1", 400), ("/api/v1/series?width=0", 400), ("/api/v1/series?width=4097", 400), ("/api/v1/series?width=99999999999999999999", 400), ("/api/v1/series?segment=nowhere", 404),
                             ("/api/v1/results?limit=1e3", 400), ("/api/v1/results?limit=-1", 400), ("/api/v1/results?since_ns=5&until_ns=5", 400), ("/api/v1/results?since=-1h&since_ns=1", 400),
                             ("/api/v1/results?since=%F0%9F", 400), ("/api/v1/summary?by=everything", 400), ("/api/v1/network?at_ns=-1", 400), ("/api/v1/network?window_ns=9223372036854775807", 400),
                             ("/api/v1/lanes?a=%zz", 400), ("/api/v1/lanes?a=%00", 400), ("/api/v1/results?limit=1&limit=2", 400), ("/api/v1/lanes?" + "&".join(f"p{i}=1" for i in range(40)), 400),
                             ("/api/v1/series?segment=" + long, 414), ("/api/v1/path?from=p000&to=nowhere", 404)):
            got, headers, body = self.get(path)
            self.assertEqual(got, status, path[:100])
            self.assertEqual(headers["content-type"], "application/json")
            self.assertEqual(list(json.loads(body)), ["error"])
        # Times at the ends of the type are times.
        for times in ("since_ns=-9223372036854775808&until_ns=9223372036854775807", "since_ns=0&until_ns=1", "since_ns=9223372036854775806"):
            for name in ("series", "summary", "results", "matrix", "events", "verdicts"):
                more = "&segment=s000&class=all&from=p000&to=p001" if name == "series" else ""
                got, _, body = self.get(f"/api/v1/{name}?{times}{more}")
                self.assertIn(got, (200, 400, 404), (name, times, body[:200]))
                json.loads(body)
        self.well()

    def test_injected_sql_is_a_name(self):
        for name in ("' OR 1=1 --", "s000'; DROP TABLE lane; --", "%27", "s000\" OR \"1", "\\", "*", "%"):
            status, _, body = self.get("/api/v1/results?segment=" + urllib.parse.quote(name))
            self.assertEqual(status, 404, (name, body[:200]))
        self.well()

    def test_hostile_requests(self):
        many = b"".join(b"X-%d: %s\r\n" % (i, b"a" * 100) for i in range(2000))
        for request in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nffffffffffffffff\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n0123456789", b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: oneway=" + b"a" * 4000 + b"\r\nConnection: close\r\n\r\n",
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + b"\0" * 500):
            url = urllib.parse.urlsplit(self.address)
            with socket.create_connection((url.hostname, url.port), timeout=5) as s:
                try:
                    s.sendall(request)
                    s.shutdown(socket.SHUT_WR)
                    got = s.recv(65536)
                except OSError:
                    got = b""
            self.assertTrue(not got or got.startswith(b"HTTP/1.") or got.startswith(b"HTTP/1"), got[:100])
        self.well()

    def test_slow_and_many_clients(self):
        """Half requests that go on, and connections that say nothing: others are served meanwhile, and the memory is bounded."""
        url = urllib.parse.urlsplit(self.address)
        before = resident(self.server.process.pid)
        sockets = []
        try:
            for i in range(300):
                s = socket.create_connection((url.hostname, url.port), timeout=5)
                sockets.append(s)
                s.sendall(b"GET /api/v1/lanes HTTP/1.1\r\nHost: localhost\r\n" if i % 2 else b"")
            for s in sockets[:20]:
                s.sendall(b"X-A: b\r\n")
            started = time.monotonic()
            self.well()
            self.assertLess(time.monotonic() - started, 5)
            self.assertLess(resident(self.server.process.pid) - before, 300 << 20)
        finally:
            for s in sockets:
                s.close()
        self.well()

    def test_more_connections_than_there_are_places(self):
        url = urllib.parse.urlsplit(self.address)
        sockets = []
        try:
            for _ in range(700):
                try:
                    sockets.append(socket.create_connection((url.hostname, url.port), timeout=2))
                except OSError:
                    break
        finally:
            for s in sockets:
                s.close()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                self.well()
                break
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        self.well()

    def test_rate(self):
        with Server(ONEWAY, self.store, "--rate", "5") as server:
            answers = [ask(server.address, "/api/v1/")[0] for _ in range(40)]
            self.assertEqual(set(answers), {200, 429})
            self.assertLess(answers.count(200), 30)

    def test_streams(self):
        url = urllib.parse.urlsplit(self.address)
        with socket.create_connection((url.hostname, url.port), timeout=10) as s:
            s.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 99999999999999999999999999\r\n\r\n")
            got = b""
            while b"event: hello" not in got or b"resumed" not in got:
                part = s.recv(4096)
                self.assertTrue(part, got)
                got += part
        self.assertIn(b"text/event-stream", got)
        self.assertEqual(self.get("/api/v1/stream?segment=nowhere&x=1")[0], 400)

    def test_privileges(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            self.assertEqual(int(re.search(rf"{name}:\s+(\w+)", status).group(1), 16), 0, name)
        self.assertEqual(re.search(r"NoNewPrivs:\s+(\d)", status).group(1), "1")
        self.assertEqual(re.search(r"Seccomp:\s+(\d)", status).group(1), "2")

    def test_hostile_names(self):
        with tempfile.TemporaryDirectory(prefix="oneway-web-") as folder:
            store = pathlib.Path(folder, "results.db")
            run(MAKE_STORE, store, "segments=3", "seconds=60", "minutes=0", "hours=0")
            with sqlite3.connect(store) as database:
                database.execute("UPDATE lane SET segment = segment || ?, class = ?, from_point = from_point || ?", (HOSTILE, HOSTILE, HOSTILE))
                database.execute("UPDATE result SET status = 'unknown', cause = ? WHERE start_ns % 3000000000 = 0", (HOSTILE,))
                database.execute("UPDATE result SET delay_histogram = x'ff00ff' WHERE start_ns % 7000000000 = 0")
                database.execute("UPDATE result SET sent = -5, lost = 9223372036854775807 WHERE start_ns % 5000000000 = 0")
            database.close()
            with Server(ONEWAY, store) as server:
                for name in RESOURCES[:-1]:
                    status, headers, body = ask(server.address, "/api/v1/" + name + ("?from=a&to=b" if name == "path" else ""))
                    self.assertIn(status, (200, 400, 404), name)
                    self.assertEqual(headers["content-type"], "application/json")
                    json.loads(body)
                    self.assertFalse(set(body) & set(range(0, 10)), name)  # control characters are escaped
                [first, *_] = json.loads(ask(server.address, "/api/v1/lanes")[2])["lanes"]
                self.assertEqual(first["segment"], "s000" + HOSTILE)

    def test_the_newest_events_stay(self):
        """More events than an answer may have: the newest are there, and it says how many older ones are not."""
        with tempfile.TemporaryDirectory(prefix="oneway-web-") as folder:
            store = pathlib.Path(folder, "results.db")
            run(MAKE_STORE, store, "segments=3", "seconds=120", "minutes=0", "hours=0")
            with sqlite3.connect(store) as database:
                columns = [row[1] for row in database.execute("PRAGMA table_info(result)")]
                for table in ("minute", "hour", "day"):
                    database.execute(f"DELETE FROM {table}")
                [end] = database.execute("SELECT max(start_ns) FROM result").fetchone()
                database.execute("DELETE FROM result WHERE start_ns <= ?", (end - 100 * 10**9,))
                database.execute("UPDATE result SET status = 'partial', cause = 'cause ' || start_ns")
                for i in range(1, 10):
                    moved = ", ".join({"start_ns": f"start_ns - {i} * 100000000000", "cause": f"'cause ' || (start_ns - {i} * 100000000000)"}.get(name, name) for name in columns)
                    database.execute(f"INSERT INTO result ({', '.join(columns)}) SELECT {moved} FROM result WHERE start_ns > ?", (end - 100 * 10**9,))
                total = database.execute("SELECT count(*) FROM result").fetchone()[0]
            database.close()
            self.assertEqual(total, 6000)
            with Server(ONEWAY, store) as server:
                for limit in (1, 5000):
                    answer = server.get("events", since="-1d", limit=limit)
                    events = [event for event in answer["events"] if event["kind"] == "partial"]
                    others = len(answer["events"]) - len(events)
                    self.assertEqual(len(answer["events"]), limit)
                    self.assertGreaterEqual(answer["omitted"], total + others - limit)
                    self.assertTrue(answer["truncated"])
                    self.assertEqual(events[0]["time_ns"], end)
                    self.assertEqual(events[0]["text"], f"cause {end}")
                    times = [event["time_ns"] for event in events]
                    self.assertEqual(times, sorted(times, reverse=True))
                # 6 lanes: 5000 events are 833 intervals and a part of another one.
                self.assertGreaterEqual(times[-1], end - (5000 // 6) * 10**9)
                answer = server.get("events", segment="s000", **{"from": "p000"}, since_ns=end - 10 * 10**9)
                self.assertEqual((answer["omitted"], answer["truncated"]), (0, False))

    def test_flows(self):
        """Recordings of flows: the worst flows, and the worst networks."""
        folder = pathlib.Path(self.folder.name)
        run(ONEWAY, "simulate", "--packets", 5000, "--flows", 200, "--loss", 0.05, "-a", folder / "a.pcap", "-b", folder / "b.pcap")
        for side in "ab":
            run(ONEWAY, "flows", "record", "-q", folder / f"{side}.pcap", "-o", folder / f"{side}.epochs", "--counters", 300)
        with Server(ONEWAY, self.store, "--flows-from", folder / "a.epochs", "--flows-to", folder / "b.epochs") as server:
            flows, networks = server.get("flows", worst=5), server.get("flows", worst=5, by="prefix:24,48")
            self.assertEqual((len(flows["flows"]), flows["key"], networks["key"]), (5, "five-tuple", "prefix:24,48"))
            self.assertLess(networks["flows_total"], flows["flows_total"])
            lost = [flow["sent"] - flow["packets"] for flow in server.get("flows", worst=10000, order="lost")["flows"]]
            self.assertEqual((lost, len(lost)), (sorted(lost, reverse=True), flows["flows_total"]))
            self.assertGreater(lost[0], 0)
            self.assertEqual(ask(server.address, "/api/v1/flows?order=nonsense")[0], 400)
            self.assertTrue(all(network["flow"]["src"].endswith("/24") for network in networks["flows"]))
            for by in ("class", "nonsense", "prefix:33,48"):
                self.assertEqual(ask(server.address, f"/api/v1/flows?by={by}")[0], 400, by)

    def test_files_that_are_no_store(self):
        for content in (b"", b"not a database" * 100, b"SQLite format 3\0" + os.urandom(4096)):
            with tempfile.NamedTemporaryFile(suffix=".db") as file:
                file.write(content)
                file.flush()
                done = subprocess.run([ONEWAY, "web", file.name, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=20, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_round_trip_is_no_edge(self):
        with tempfile.TemporaryDirectory() as folder:
            store = shutil.copy(self.store, folder)
            with sqlite3.connect(store) as database:
                database.execute("UPDATE lane SET to_point = from_point, class = 'round-trip' WHERE id = 1")
            database.close()
            with Server(ONEWAY, store) as server:
                network = json.loads(ask(server.address, "/api/v1/network")[2])
                self.assertTrue(any(cell["from"] == cell["to"] for cell in network["cells"]))
                self.assertFalse(any(edge["from"] == edge["to"] for edge in network["edges"]), network["edges"])

    def test_network_that_is_none(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"A B\n")
            file.flush()
            for network, why in ((file.name, f"{file.name}:1: "), ("/no/such", "/no/such: No such file")):
                done = subprocess.run([ONEWAY, "web", self.store, "--network", network, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=20, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertTrue(done.stderr.startswith(f"oneway web: {why}"), done.stderr)


class ReachableTest(unittest.TestCase):
    """An address that others can reach: TLS, and a token or a certificate."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="oneway-web-")
        cls.addClassCleanup(cls.folder.cleanup)
        root = cls.root = pathlib.Path(cls.folder.name)
        cls.store = root / "results.db"
        run(MAKE_STORE, cls.store, "segments=3", "seconds=10", "minutes=0", "hours=0")
        for name, subject in (("server", "localhost"), ("client", "someone"), ("other", "stranger")):
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={subject}", "-keyout", root / f"{name}.key",
                "-out", root / f"{name}.pem", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")
        (root / "token").write_text(TOKEN + "\n")
        cls.tls = ("--tls-cert", root / "server.pem", "--tls-key", root / "server.key")

    def trusting(self, client=None):
        context = ssl.create_default_context(cafile=self.root / "server.pem")
        if client:
            context.load_cert_chain(self.root / f"{client}.pem", self.root / f"{client}.key")
        return context

    def test_refuses_to_start_without(self):
        for options, why in (((), "needs TLS"), (self.tls, "needs TLS"), (("--token-file", self.root / "token"), "needs TLS"), (self.tls[:2], "needs its key")):
            done = subprocess.run([ONEWAY, "web", self.store, "--listen", "0.0.0.0:0", *options], capture_output=True, text=True, timeout=20, check=False)
            self.assertNotEqual(done.returncode, 0, options)
            self.assertIn(why, done.stderr)

    def test_token(self):
        with Server(ONEWAY, self.store, *self.tls, "--token-file", self.root / "token") as server:
            def get(path, **headers):
                return ask(server.address, path, headers=headers, context=self.trusting())
            self.assertTrue(server.address.startswith("https://"))
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Authorization": TOKEN}, {"Cookie": f"oneway={TOKEN}"}, {"Cookie": "oneway="}):
                for path in ("/api/v1/lanes", "/app.js", "/", "/api/v1/stream"):
                    status, _, body = get(path, **headers)
                    self.assertIn(status, (401, 429), (path, headers))
                    self.assertNotIn(b"s000", body)
            self.assertEqual(get("/api/v1/lanes", Authorization=f"Bearer {TOKEN}")[0], 200)
            status, headers, _ = get(f"/?token={TOKEN}")
            self.assertEqual((status, headers["location"]), (303, "/"))
            for word in ("HttpOnly", "SameSite=Strict", "Secure"):
                self.assertIn(word, headers["set-cookie"])
            cookie = headers["set-cookie"].split(";")[0]
            self.assertNotIn(TOKEN, cookie)
            self.assertEqual(get("/api/v1/lanes", Cookie=cookie)[0], 200)

    def test_guessing_is_slow(self):
        with Server(ONEWAY, self.store, *self.tls, "--token-file", self.root / "token", "--rate", "10") as server:
            answers = [ask(server.address, "/api/v1/", headers={"Authorization": f"Bearer {i:020}"}, context=self.trusting())[0] for i in range(10)]
            self.assertIn(429, answers)
            self.assertLessEqual(answers.count(401), 4)

    def test_certificates_of_clients(self):
        with Server(ONEWAY, self.store, *self.tls, "--client-ca", self.root / "client.pem") as server:
            self.assertEqual(ask(server.address, "/api/v1/lanes", context=self.trusting("client"))[0], 200)
            for client in (None, "other"):
                try:
                    self.assertEqual(ask(server.address, "/api/v1/lanes", context=self.trusting(client))[0], 401)
                except (ssl.SSLError, ConnectionError, http.client.HTTPException):
                    pass  # refused while they shook hands


if __name__ == "__main__":
    unittest.main(verbosity=1)
