# SPDX-License-Identifier: Apache-2.0
"""Metrics as Prometheus sees them: promtool's opinion, a real server that scrapes two points, the shipped rules and dashboard."""
import json
import os
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import command
import points

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.environ["METRICS_PAGE"]  # the unit test, which prints a page with everything in it
SCRAPE, ALERTS, DASHBOARD = (os.path.join(ROOT, "contrib", *p) for p in (("prometheus", "scrape.yml"), ("prometheus", "alerts.yml"), ("grafana", "oneway.json")))
NAME = re.compile(r"\b(?:oneway|process)_[a-z_]+[a-z]\b")
PROMTOOL = shutil.which("promtool")
needs_prometheus = unittest.skipUnless(PROMTOOL and shutil.which("prometheus"), "package prometheus is not installed")

POINT = """point: {name}
psk: lab.psk
metrics: localhost:0
interfaces: [{{file: {file}}}]
{more}"""
PARIS = """listen: 127.0.0.1:0
segments: [{name: x, peer: london, to_peer: not src net 10.0.0.0/8}]
"""
LONDON = """segments:
  - {{name: x, peer: paris, connect: "127.0.0.1:{port}", to_peer: src net 10.0.0.0/8, interval: 250ms, wait: 500ms}}
"""


def promtool(*args, stdin=None):
    return subprocess.run([PROMTOOL, *args], input=stdin, capture_output=True, text=True, timeout=points.PATIENCE)


def get(url, headers=None):
    """Status, type and body of a page."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=points.PATIENCE) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers["Content-Type"], answer.read().decode()


def page(form):
    return subprocess.run([PAGE, form], capture_output=True, text=True, check=True).stdout


def sample_names(text):
    return {re.match(r"[a-z_]+", line)[0] for line in text.splitlines() if line and not line.startswith("#")}


def family_names(text):
    """Names of samples; a histogram by its family."""
    return {re.sub(r"^(oneway_delay_seconds)_(bucket|sum|count)$", r"\1", name) for name in sample_names(text)}


def expressions(node):
    """All queries of a dashboard: of panels and of variables."""
    if isinstance(node, list):
        return [e for part in node for e in expressions(part)]
    if not isinstance(node, dict):
        return []
    own = [node["expr"]] if isinstance(node.get("expr"), str) else []
    own += [node["query"]["query"]] if isinstance(node.get("query"), dict) else []
    return own + [e for part in node.values() for e in expressions(part)]


class Files(unittest.TestCase):
    """What ships with the program."""

    def test_names(self):
        """Every name in the dashboard, the rules and the documentation is exported, and all that is exported is documented."""
        exported = sample_names(page("text"))
        with open(DASHBOARD) as f:
            dashboard = json.load(f)
        queries = expressions(dashboard)
        self.assertGreater(len(queries), 25)
        self.assertEqual(set(NAME.findall(" ".join(queries))) - exported, set())
        for query in queries:
            self.assertTrue(NAME.search(query), query)
        ids = [p["id"] for p in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        with open(ALERTS) as f:
            self.assertEqual(set(NAME.findall(f.read())) - exported, set())
        with open(os.path.join(ROOT, "docs", "metrics.md")) as f:
            documented = set(NAME.findall(f.read()))
        # Those of collectors are on a page of their own.
        with open(os.path.join(ROOT, "src", "cli", "collect.c")) as f:
            collected = {"oneway_collect_" + name for name in re.findall(r'put_(?:counter|metric)\(out, "(\w+)"', f.read())}
        self.assertGreater(len(collected), 10)
        self.assertEqual(documented - exported - collected - {"oneway_delay_seconds"}, set())
        self.assertEqual(collected - documented, set())
        self.assertEqual(family_names(page("text")) - documented, set())

    def test_formats(self):
        """Both formats have the same samples."""
        text, openly = page("text"), page("open")
        samples = lambda t: [line for line in t.splitlines() if not line.startswith("#")]
        self.assertEqual(samples(text), samples(openly))
        self.assertTrue(openly.endswith("\n# EOF\n"))
        self.assertNotIn("# EOF", text)

    @needs_prometheus
    def test_promtool(self):
        done = promtool("check", "metrics", stdin=page("text"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        for args in (("check", "rules", ALERTS), ("check", "config", SCRAPE), ("test", "rules", os.path.join(HERE, "alerts_test.yml"))):
            done = promtool(*args)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # Every alert has its test.
        with open(ALERTS) as rules, open(os.path.join(HERE, "alerts_test.yml")) as tests:
            tested = set(re.findall(r"alertname: (\w+)", tests.read()))
            self.assertEqual(set(re.findall(r"alert: (\w+)", rules.read())), tested)


class Prometheus:
    """A server of its own that scrapes these addresses with the shipped configuration."""

    def __init__(self, case, addresses):
        with open(SCRAPE) as f:
            config = f.read()
        targets = ", ".join(f'"{a}"' for a in addresses)
        config, n = re.subn(r"targets: \[.*\]", f"targets: [{targets}]", config)
        assert n == 1
        config = config.replace("15s", "500ms").replace("- alerts.yml", f"- {ALERTS}")
        with socket.create_server(("127.0.0.1", 0)) as s:
            self.port = s.getsockname()[1]
        self.log = open(case.path("prometheus.log"), "w+")
        case.addCleanup(self.log.close)
        self.process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={case.write('prometheus.yml', config)}",
                f"--storage.tsdb.path={case.path('tsdb')}",
                f"--web.listen-address=127.0.0.1:{self.port}",
            ],
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )
        case.addCleanup(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **query):
        status, _, body = get(f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(query)}")
        answer = json.loads(body)
        if status != 200 or answer["status"] != "success":
            raise AssertionError(f"{query}: {body}")
        return answer["data"]

    def query(self, expression):
        """Values by labels from and to."""
        found = self.ask("/api/v1/query", query=expression)
        return {(r["metric"].get("from"), r["metric"].get("to")): float(r["value"][1]) for r in found["result"]}

    def wait_ready(self):
        end = time.monotonic() + points.PATIENCE
        while True:
            try:
                if get(f"http://127.0.0.1:{self.port}/-/ready")[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > end or self.process.poll() is not None:
                self.log.seek(0)
                raise AssertionError(f"prometheus does not start:\n{self.log.read()}")
            time.sleep(0.1)


class Scrape(points.Case):
    def pair(self, packets):
        """2000 packets a second. A point ends with its capture: that must be long after the test, however busy the machine is."""
        self.simulate("--rate", 2000, "--reverse", 0.4, "--loss", 0.02, "--delay", "weibull:5ms,0.7", "--seed", 12, packets=packets)
        self.keys("psk")
        paris = self.start(self.write("paris.yaml", POINT.format(name="paris", file="b.pcap", more=PARIS)))
        port = paris.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1)
        london = self.start(self.write("london.yaml", POINT.format(name="london", file="a.pcap", more=LONDON.format(port=port))))
        return london, paris

    def address(self, point):
        return point.wait_for(r"metrics at http://(\S+)/metrics").group(1)

    def wait_until(self, what):
        end = time.monotonic() + points.PATIENCE
        while not (value := what()):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        return value

    def test_pages(self):
        london, paris = self.pair(100000)
        here, there = (f"http://{self.address(p)}" for p in (london, paris))
        self.wait_until(lambda: 'oneway_packets_sent_total{segment="x",class="all",from="london",to="paris"}' in get(here + "/metrics")[2])
        self.assertEqual(get(here + "/healthz")[::2], (200, "measuring\n"))
        self.assertEqual(get(here + "/")[0], 404)
        status, kind, text = get(there + "/metrics")
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertIn('oneway_session_connected{peer="london"} 1\n', text)
        # Also a process that may open no file any more sees itself.
        facts = dict(re.findall(r"^(process_\w+) (\S+)$", text, re.M))
        self.assertEqual(set(facts), {name for name in sample_names(page("text")) if name.startswith("process_")})
        self.assertTrue(all(float(value) > 0 for value in facts.values()), facts)
        status, kind, text = get(there + "/metrics", {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        self.assertEqual((status, kind), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"))
        self.assertTrue(text.endswith("# EOF\n"))
        # The peer goes: nothing is lost by that, and it shows.
        paris.stop()
        self.wait_until(lambda: 'oneway_session_connected{peer="paris"} 0\n' in get(here + "/metrics")[2])
        if PROMTOOL:
            done = promtool("check", "metrics", stdin=get(here + "/metrics")[2])
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        london.stop()
        for p in (london, paris):
            p.end()
            self.assertEqual(p.code, 0, p.log)

    def test_busy_address(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            address = "127.0.0.1:%d" % s.getsockname()[1]
            self.simulate(packets=100)
            self.keys("psk")
            config = POINT.format(name="london", file="a.pcap", more=LONDON.format(port=9)).replace("localhost:0", address)
            done = command.oneway("point", "-c", self.write("t.yaml", config))
        self.assert_refused(done, 1, f"metrics: {address}: cannot listen: Address already in use")

    def check_alerts(self, server):
        """Prometheus can evaluate all rules."""
        rules = [rule for group in server.ask("/api/v1/rules")["groups"] for rule in group["rules"]]
        self.assertGreater(len(rules), 10)
        self.assertEqual([(r["name"], r.get("lastError")) for r in rules if r["health"] == "err"], [])

    def check_dashboard(self, server):
        """Prometheus can answer all queries of the dashboard."""
        with open(DASHBOARD) as f:
            panels = [e for e in expressions(json.load(f)["panels"])]
        answers = 0
        for query in panels:
            query = query.replace("$__rate_interval", "1m").replace("$segment", ".*").replace("$class", ".*")
            answers += len(server.ask("/api/v1/query", query=query)["result"]) > 0
        # What a replay has no numbers for: order, clocks.
        self.assertGreaterEqual(answers, len(panels) - 4)

    def running_sums(self, results, names):
        sums, now = [], dict.fromkeys(names, 0)
        for r in results:
            now = {n: now[n] + (r["sent"] - r["pending"] if n == "compared" else r[n]) for n in names}
            sums.append(now)
        return sums

    @needs_prometheus
    def test_prometheus(self):
        """What Prometheus says is what the points say, interval by interval."""
        london, paris = self.pair(200000)
        server = Prometheus(self, [self.address(london), self.address(paris)])
        server.wait_ready()
        # Some seconds of scrapes, so that there are rates.
        scrapes = "min by (from, to) (count_over_time(oneway_packets_sent_total[1m]))"
        self.wait_until(lambda: [n >= 6 for n in server.query(scrapes).values()] == [True] * 2)
        targets = server.ask("/api/v1/targets")["activeTargets"]
        self.assertEqual([(t["health"], t["lastError"]) for t in targets], [("up", "")] * 2)
        # At one moment, of one point: sums of the first so many intervals.
        instance = f'instance="{self.address(london)}"'
        names = ("sent", "lost", "late", "compared", "extra")
        both = server.ask("/api/v1/query", query=f'{{__name__=~"oneway_packets_({"|".join(names)})_total",{instance}}} @ {time.time() - 0.1:.3f}')
        quantile = server.query("histogram_quantile(0.5, sum by (from, to, le) (increase(oneway_delay_seconds_bucket[1m])))")
        loss = server.query("max by (from, to) (rate(oneway_packets_lost_total[1m]) / rate(oneway_packets_compared_total[1m]))")
        self.check_alerts(server)
        self.check_dashboard(server)
        for p in (london, paris):
            p.stop()
        here, _ = london.end()
        paris.end()
        for way in (("london", "paris"), ("paris", "london")):
            final = [r for r in here if r["final"] and r["status"] != "unknown" and (r["from"], r["to"]) == way]
            said = {
                r["metric"]["__name__"].split("_")[2]: int(r["value"][1])
                for r in both["result"]
                if (r["metric"]["from"], r["metric"]["to"]) == way
            }
            self.assertIn(said, self.running_sums(final, names))
            self.assertGreater(said["lost"], 0)
            # 2 % of 1500 packets or more; 6 standard deviations.
            self.assertAlmostEqual(loss[way], 0.02, delta=0.022)
            # The median of weibull:5ms,0.7 is 2.96 ms, in the bucket from 2.5 to 5 ms.
            self.assertTrue(0.0025 <= quantile[way] <= 0.005, quantile)


if __name__ == "__main__":
    if not PROMTOOL:
        print("package prometheus is not installed: no promtool, no real server")
    unittest.main()
