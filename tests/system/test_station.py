# SPDX-License-Identifier: Apache-2.0
"""oneway plane monitor as it runs for days: results that come, stores that grow, a real Alertmanager that goes away and comes back."""
import base64
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request

import fleet
import servers
from command import PROGRAM, Case

S = 10**9
PATIENCE = 30


def wait_for(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")


class Webhook:
    """What Alertmanager notifies people of."""

    def __init__(self):
        notified = self.notified = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]:
                    notified.append((alert["status"], alert["labels"]["alertname"], alert["labels"]["subject"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Alertmanager:
    def __init__(self, folder, webhook, tls=False):
        self.folder, self.port, self.tls, self.child = folder, servers.free_port(), tls, None
        with open(f"{folder}/alertmanager.yml", "w") as f:
            f.write(
                "route: {receiver: test, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}\n"
                f"receivers: [{{name: test, webhook_configs: [{{url: 'http://127.0.0.1:{webhook.server.server_port}/', send_resolved: true}}]}}]\n"
            )
        if tls:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{folder}/am.key", "-out",
                 f"{folder}/am.pem", "-subj", "/CN=alertmanager", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"], check=True, capture_output=True)
            with open(f"{folder}/web.yml", "w") as f:
                f.write("tls_server_config: {cert_file: am.pem, key_file: am.key}\n")
        self.start()

    def start(self):
        more = [f"--web.config.file={self.folder}/web.yml"] if self.tls else []
        self.child = subprocess.Popen(
            ["prometheus-alertmanager", f"--config.file={self.folder}/alertmanager.yml", f"--storage.path={self.folder}/data", "--cluster.listen-address=",
             f"--web.listen-address=127.0.0.1:{self.port}", *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.is_up, "Alertmanager is up")

    def is_up(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            self.child.wait()

    def alerts(self):
        """Those that are firing, by subject."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v2/alerts", timeout=10) as answer:
            return {alert["labels"]["subject"]: alert for alert in json.load(answer)}


class Station(Case):
    def setUp(self):
        super().setUp()
        self.start = (int(time.time()) - 400) * S
        self.number = 0
        self.results = self.path("results.jsonl")
        open(self.results, "w").close()
        self.child = None

    def tearDown(self):
        if self.child and self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        super().tearDown()

    def monitor(self, *args, results=None):
        self.log = open(self.path("log"), "ab+")
        self.child = subprocess.Popen([PROGRAM, "plane", "monitor", "--follow", *args, *(results or [self.results])], stdout=self.log, stderr=self.log,
                                      env={**os.environ, "TZ": "UTC"})
        self.addCleanup(self.log.close)

    def end(self, *codes):
        self.child.send_signal(signal.SIGTERM)
        self.assertIn(self.child.wait(timeout=PATIENCE), codes or (0, 3), self.said())

    def said(self):
        with open(self.path("log")) as f:
            return f.read()

    def write(self, intervals, lost=0, slower=0, where="BC"):
        """Both directions of A - B - C for so many seconds."""
        with open(self.results, "a") as f:
            for _ in range(intervals):
                for start, end in ("AB", "BA", "BC", "CB"):
                    is_bad = start + end == where
                    n, mean = lost if is_bad else 0, 2e6 + self.number * 7919 % 997 * 20 + (slower if is_bad else 0)
                    f.write(json.dumps({
                        "segment": "-".join(sorted((start, end))), "class": "all", "from": start, "to": end, "start_ns": self.start + self.number * S, "length_ns": S,
                        "final": True, "status": "measured", "sent": 1000, "received": 1000 - n, "matched": 1000 - n, "lost": n, "pending": 0, "samples": 1000 - n,
                        "loss_ratio": n / 1000, "delay_ns": {"mean": mean, "stddev": 1e5}, "ci95": {"loss_ratio": [n / 1000, n / 1000], "mean": [mean, mean]},
                        "clock": {"from": {"synchronised": True, "error_ns": 100}, "to": {"synchronised": True, "error_ns": 100}}}) + "\n")
                self.number += 1


class Alerts(Station):
    def setUp(self):
        super().setUp()
        self.webhook = Webhook()
        self.addCleanup(self.webhook.close)

    def alertmanager(self, **options):
        manager = Alertmanager(self.folder, self.webhook, **options)
        self.addCleanup(manager.stop)
        return manager

    def test_fired_updated_resolved(self):
        manager = self.alertmanager()
        # A past incident is not posted; the one that is open at the start is.
        self.write(60)
        self.write(20, lost=50)
        self.write(60)
        self.monitor("--alertmanager", f"http://127.0.0.1:{manager.port}/", "--incidents", self.path("incidents"))
        wait_for(lambda: "ended" in self.said(), "the past incident")
        self.write(10, lost=20)
        alert = wait_for(lambda: manager.alerts().get("B>C"), "the alert fires")
        self.assertEqual(alert["labels"], {"alertname": "OnewayBroken", "severity": "critical", "subject": "B>C", "from": "B", "to": "C"})
        self.assertIn("B>C loses 2.00%, usually 0%", alert["annotations"]["summary"])
        first = alert["annotations"]["incident"]
        self.assertEqual(alert["startsAt"][:19], time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.start // S + 140)))
        # It gets worse: the same alert.
        self.write(15, lost=200)
        wait_for(lambda: "20.0%" in manager.alerts()["B>C"]["annotations"]["summary"], "the alert is updated")
        self.assertEqual(manager.alerts()["B>C"]["annotations"]["incident"], first)
        wait_for(lambda: self.webhook.notified, "the first notification")
        # Alertmanager is away while it ends; nothing is lost.
        manager.stop()
        self.write(30)
        wait_for(lambda: "B>C: ended" in self.said().split(first[-20:-1])[-1] and self.said().count("ended") == 2, "the end")
        wait_for(lambda: "it is tried again" in self.said(), "the failure is told")
        manager.start()
        wait_for(lambda: "takes alerts again" in self.said(), "that it works is told")
        wait_for(lambda: not manager.alerts(), "the alert is resolved")
        wait_for(lambda: len(self.webhook.notified) >= 2, lambda: f"two notifications: {self.webhook.notified}\n{self.said()}")
        self.end()
        self.assertEqual(self.webhook.notified, [("firing", "OnewayBroken", "B>C"), ("resolved", "OnewayBroken", "B>C")])
        with open(self.path("incidents")) as f:
            events = [json.loads(line)["incident"] for line in f]
        self.assertEqual([(e["event"], e["number"]) for e in events], [("begin", 1), ("end", 2), ("begin", 1), ("worse", 2), ("end", 3)])
        self.assertEqual({e["id"] for e in events[2:]}, {first})

    def test_the_station_restarts(self):
        """The same incident is found again, with the same id: nobody is notified twice."""
        manager = self.alertmanager()
        self.start = (int(time.time()) - 150) * S
        self.write(60)
        self.write(10, lost=20)
        url = f"http://127.0.0.1:{manager.port}"
        self.monitor("--alertmanager", url, "--incidents", self.path("incidents"))
        wait_for(lambda: manager.alerts().get("B>C"), "the alert fires")
        self.child.kill()
        self.child.wait()
        self.write(10, lost=20)
        self.monitor("--alertmanager", url, "--incidents", self.path("incidents"))
        self.write(30)
        wait_for(lambda: not manager.alerts(), "the alert is resolved")
        wait_for(lambda: len(self.webhook.notified) >= 2, lambda: f"two notifications: {self.webhook.notified}\n{self.said()}")
        self.end()
        self.assertEqual([n[0] for n in self.webhook.notified], ["firing", "resolved"])
        with open(self.path("incidents")) as f:
            events = [json.loads(line)["incident"] for line in f]
        self.assertEqual([(e["event"], e["number"]) for e in events], [("begin", 1), ("end", 2)])
        self.assertEqual(len({e["id"] for e in events}), 1)

    def test_tls_and_addresses(self):
        manager = self.alertmanager(tls=True)
        self.write(60)
        self.write(10, lost=20)
        url = f"https://127.0.0.1:{manager.port}"
        self.monitor("--alertmanager", url, "--alertmanager-ca", f"{self.folder}/am.pem")
        wait_for(lambda: self.webhook.notified, "the alert is posted with TLS")
        self.end()
        self.monitor("--alertmanager", url)
        wait_for(lambda: "self-signed certificate" in self.said() or "self signed" in self.said(), "an unknown certificate is refused")
        self.end()
        for bad in ("127.0.0.1:9093", "http://", "http://a:b", "http://a:70000", "http://a b/", "ftp://a", "http://u@h/"):
            done = subprocess.run([PROGRAM, "plane", "monitor", "--alertmanager", bad, self.results], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 1, bad)
            self.assertIn(bad, done.stderr)


@unittest.skipIf(servers.Postgres.why_not(), servers.Postgres.why_not())
class Database(Station):
    def test_minutes_of_a_server_that_restarts(self):
        """Minutes of points in a ring; the server goes away and comes back, and the station goes on."""
        server = servers.Postgres()
        self.addCleanup(server.remove)
        url = server.database("fleet")
        feeder = [os.environ.get("POSTGRES_FEEDER", "build/tests/store/postgres_feeder"), url, "1", "5", "90"]
        subprocess.run(feeder, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=60)
        self.monitor("--json", results=[url])
        def verdicts():
            return [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        last = wait_for(lambda: len(verdicts()) >= 90 and verdicts()[-1], "all minutes are judged")
        self.assertEqual(last["length_ns"], 60 * S)
        self.assertEqual(sorted(path["name"] for path in last["paths"]), [f"p{i} to p{(i + 1) % 5}" for i in range(5)])
        self.assertEqual({path["length_ns"] for path in last["paths"]}, {60 * S})
        server.stop(signal.SIGQUIT)
        wait_for(lambda: "it is asked again" in self.said(), "the failure is told")
        server.start()
        wait_for(lambda: "answers again" in self.said(), "it is back")
        # These minutes have counts only: no path could be judged.
        self.end(1)
        starts = [verdict["start_ns"] for verdict in verdicts()]
        self.assertEqual(len(starts), len(set(starts)), "each minute is judged once")


@unittest.skipIf(fleet.why_not(), fleet.why_not())
class Stream(Station):
    def test_incidents_into_the_stream(self):
        """With the certificate that the fleet made for the station; a server that was away gets the event all the same."""
        bus = fleet.Fleet(serve=False)
        self.addCleanup(bus.end)
        bus.apply("points: [{name: a, interfaces: [{name: lo}]}]\n")
        (port,) = bus.ports
        certificate = [f"{option}={bus.folder}/{file}" for option, file in (("--ca", "ca.pem"), ("--cert", "station.pem"), ("--key", "station.key"))]
        self.write(60)
        self.monitor(*certificate, results=[f"tls://127.0.0.1:{port}", self.results])
        wait_for(lambda: "connected to" in self.said(), self.said)
        bus.processes[f"nats-{port}"].stop()
        self.write(10, lost=30)
        wait_for(lambda: "B>C: loses more than usual" in self.said(), self.said)
        bus.start_server(port)
        def stored():
            try:
                client = fleet.Client(bus, bus.folder, "controller")
            except OSError:  # not up yet
                return None
            client.subscribe("_IN.service.controller.test")
            client.publish("$JS.API.STREAM.MSG.GET.OW_EVENTS", json.dumps({"last_by_subj": "ow.e.station"}), "_IN.service.controller.test")
            said = client.read(1)
            client.close()
            return re.search(r'"data":"([^"]*)"', said)
        event = json.loads(base64.b64decode(wait_for(stored, self.said)[1]))["incident"]
        self.assertEqual((event["subject"], event["event"], event["number"]), ("B>C", "begin", 1))
        self.assertIn("B>C loses 3.00%, usually 0%", event["summary"])
        self.end()


if __name__ == "__main__":
    unittest.main()
