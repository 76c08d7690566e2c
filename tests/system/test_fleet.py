#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A fleet on loopback with a real nats-server: points join with three lines, get their desired state in steps, refuse what
they cannot use; and nobody can do more than its certificate allows."""
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import unittest

import command
from fleet import Client, Fleet, Process, until, why_not
from servers import Postgres, free_port

TWO = """
canary: 50%
wait: 30s
points:
  - {{name: london, address: '127.0.0.1:{port}', interfaces: [{{name: lo}}], memory: 8MiB}}
  - {{name: paris, interfaces: [{{name: {interface}}}], memory: {memory}}}
segments:
  - {{between: [london, paris]}}
"""


@unittest.skipIf(why_not(), why_not())
class Life(unittest.TestCase):
    """A short life of two points."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet("--valid", "12s")

    @classmethod
    def tearDownClass(cls):
        cls.fleet.end()

    def plan(self, interface="lo", memory="8MiB"):
        return TWO.format(port=self.port, interface=interface, memory=memory)

    def test_life(self):
        fleet = self.fleet
        self.port = free_port()

        # Nobody is there: both get it when they come.
        said = fleet.apply(self.plan())
        self.assertIn("none of these is there now", said)
        self.assertIn("0 points change, 2 unchanged", fleet.apply(self.plan()))
        london = fleet.start_point("london")
        paris = fleet.start_point("paris", "memory: 16MiB\n")
        for point in (london, paris):
            point.wait_for("agreed on london-paris/all to")
        self.assertEqual(os.stat(os.path.join(fleet.state("london"), "point.key")).st_mode & 0o077, 0)
        status = until(lambda: self.both_measure(), lambda: str(fleet.status()))
        self.assertIsNone(status["london"]["problem"])
        # What the point's own file says wins, and is shown.
        self.assertEqual(status["paris"]["health"]["config_kept"], "memory")
        self.assertIn("paris: its own file decides: memory", fleet.run("status", code=None))

        # A second one with other intervals: without a restart.
        said = fleet.apply(self.plan().replace("[london, paris]}", "[london, paris], interval: 500ms}"))
        self.assertIn("version 2: 2 of 2 points changed", said)
        self.assertEqual({p["health"]["config_version"] for p in fleet.status().values()}, {2})
        self.assertNotIn("needs a restart", london.log() + paris.log())
        # One that needs a restart: more memory for one point.
        said = fleet.apply(self.plan(memory="9MiB").replace("16MiB", "16MiB").replace("name: lo}]", "name: lo, threads: 2}]"))
        self.assertIn("version 3: 2 of 2 points changed", said)
        self.assertIn("needs a restart", london.log())

        # One that a point cannot use: the first half of the points refuses, and all is as before.
        said = fleet.apply(self.plan(interface="nosuch0"), code=1)
        self.assertRegex(said, "paris refuses version 4: desired state: interface 'nosuch0' is not on this host")
        self.assertIn("changed back", said)
        until(lambda: fleet.status()["paris"]["health"]["config_version"] == 5, lambda: str(fleet.status()["paris"]))
        until(self.both_measure, lambda: str(fleet.status()))

        # Certificates of 12 s: by now each was renewed, and the connection between the points lasts.
        serve = fleet.processes["serve"]
        for point in ("london", "paris"):
            serve.wait_for(f"oneway:point/{point}/1 has a new certificate")
        self.assertNotIn("untrusted", london.log())

        # A point that was off for longer than its certificate is valid gets another one with its token.
        paris.stop()
        time.sleep(13)
        paris = fleet.start_point("paris", enroll=False)
        until(self.both_measure, lambda: paris.log()[-2000:])

        # Out within seconds, and it stays out.
        started = time.monotonic()
        self.assertIn("london is out.", fleet.run("revoke", "london"))
        london.wait_for("fleet: .*(lost|closed|disconnected|revoked|Authorization)", 10)
        print(f"revoked after {time.monotonic() - started:.2f} s")
        self.assertEqual(fleet.status()["london"]["state"], "revoked")
        # Nor does its peer take it any longer. (The certificate also expires after some seconds.)
        paris.wait_for("the peer's certificate .'london', generation 1. is revoked by the fleet", 10)
        print(f"its peer refused it after {time.monotonic() - started:.2f} s")

        # A point that has time to come, and one that did not come in time.
        fleet.run("enroll", "rome", "--valid", "1h")
        self.assertEqual((fleet.status()["rome"]["state"], fleet.status()["rome"]["problem"]), ("invited", None))
        fleet.run("enroll", "rome", "--valid", "1s")
        until(lambda: "its token has expired" in (fleet.status()["rome"]["problem"] or ""), lambda: str(fleet.status()["rome"]), 10)

    def both_measure(self):
        status = self.fleet.status()
        good = all(p.get("health") and p["health"]["lanes"] == 2 and p["health"]["connected"] == 1
                   and p["state"] == "measuring" for p in status.values())
        return status if good else None


@unittest.skipIf(why_not(), why_not())
class Attacks(unittest.TestCase):
    """Keys are stolen: what they allow, and what not."""

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        cls.london = cls.fleet.start_point("london")
        cls.paris = cls.fleet.start_point("paris")
        for name in ("london", "paris"):
            cls.fleet.wait_for_certificate(name)
        cls.fleet.apply("points: [{name: london, interfaces: [{name: lo}]}, {name: paris, interfaces: [{name: lo}]}]\n")

    @classmethod
    def tearDownClass(cls):
        cls.fleet.end()

    def thief(self, name="london"):
        return Client(self.fleet, self.fleet.state(name), "point")

    def service(self, name):
        return Client(self.fleet, self.fleet.folder, name)

    def refused(self, client, verb, subject):
        """The server says so, and logs it."""
        if verb == "Publish":
            client.publish(subject)
        else:
            client.subscribe(subject)
        said = client.settle()
        self.assertIn(f'Permissions Violation for {"Publish" if verb == "Publish" else "Subscription"} to "{subject}"', said)
        self.assertIn(subject, self.fleet.nats_log())

    def test_point_is_itself_only(self):
        client = self.thief()
        for subject in ("ow.r.paris", "ow.s.paris", "ow.e.paris", "ow.h.paris", "ow.e.station", "ow.q.paris", "$KV.cfg.london",
                        "$KV.cfg.paris", "cfg.paris", "$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.paris", "$JS.API.DIRECT.GET.KV_cfg",
                        "$JS.API.STREAM.DELETE.OW_RESULTS", "$JS.API.STREAM.PURGE.OW_RESULTS", "$JS.API.STREAM.CREATE.X",
                        "$JS.API.STREAM.MSG.GET.KV_cfg", "$JS.API.CONSUMER.CREATE.KV_cfg", "$JS.API.CONSUMER.MSG.NEXT.OW_RESULTS.pg",
                        "$JS.API.INFO", "$SYS.REQ.SERVER.PING", "_IN.paris.x"):
            self.refused(client, "Publish", subject)
        for subject in ("cfg.paris", "cfg.*", "cfg.>", "ow.r.*", "ow.q.paris", "_IN.paris.>", "_IN.>", "_IN.service.controller.>",
                        ">", "$KV.cfg.*", "$SYS.>"):
            self.refused(client, "Subscription", subject)
        # What it may: its own.
        client.subscribe("_IN.london.>", 7)
        client.publish("$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.london", b"", "_IN.london.x")
        self.assertIn("desired state of london", client.until("desired state of"))
        client.close()

    def test_collector_takes_only(self):
        client = self.service("collector")
        for subject in ("ow.r.london", "ow.h.london", "$KV.cfg.london", "$JS.API.STREAM.DELETE.OW_RESULTS", "$JS.API.STREAM.CREATE.X",
                        "$JS.API.STREAM.PURGE.OW_RESULTS", "$JS.API.CONSUMER.DELETE.OW_RESULTS.pg", "$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.london"):
            self.refused(client, "Publish", subject)
        for subject in ("cfg.*", "_IN.london.>", ">"):
            self.refused(client, "Subscription", subject)
        client.close()
        # A stolen one is replaced: the old one is out, the new one works.
        keep = os.path.join(self.fleet.root, "stolen")
        os.makedirs(keep)
        for suffix in ("pem", "key"):
            pathlib.Path(keep, "collector." + suffix).write_bytes(pathlib.Path(self.fleet.folder, "collector." + suffix).read_bytes())
        old = Client(self.fleet, keep, "collector")
        said = self.fleet.run("revoke", "collector")
        self.assertIn("collector is out", said)
        self.assertLess(old.wait_closed(), 5)
        old.close()
        with self.assertRaises((ConnectionError, OSError)):
            Client(self.fleet, keep, "collector")
        self.service("collector").close()

    def test_station_listens(self):
        client = self.service("station")
        for subject in ("ow.r.london", "ow.e.london", "$KV.cfg.london", "$JS.API.STREAM.DELETE.OW_RESULTS"):
            self.refused(client, "Publish", subject)
        client.close()

    @unittest.skipIf(command.sanitized(), "a sanitizer has to be the first library")
    def test_ends_beside_threads(self):
        """Threads of libnats may still use OpenSSL when the command ends."""
        environment = {**os.environ, "LD_PRELOAD": os.environ["OPENSSL_END"]}
        done = subprocess.run([command.PROGRAM, "fleet", "status", "--dir", self.fleet.folder], env=environment, capture_output=True, timeout=60)
        self.assertIn(done.returncode, (0, 3), done)
        self.assertNotIn(b"OpenSSL has ended", done.stderr)

    def test_strangers(self):
        other = Fleet(serve=False)
        try:
            # Another fleet's certificate, and none.
            for folder, name in ((other.folder, "controller"), (None, None)):
                with self.assertRaises((ConnectionError, OSError)):
                    Client(self.fleet, folder, name)
        finally:
            other.end()

    def test_forged_answer(self):
        """A server's answer goes where the asker wants, whatever the permissions say: the point notices by the signature."""
        self.paris.wait_for("desired state, version")
        client = self.thief()
        client.publish("$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.london", b"", "cfg.paris")
        self.paris.wait_for("desired state refused: it is for 'london', but this point is 'paris'")
        client.close()

    def test_answers_delete_nothing(self):
        """The answer to a publication can be sent to the interface of JetStream, where its "seq" would be that of messages to delete."""
        client, paris, controller = self.thief(), self.thief("paris"), self.service("controller")
        for kind in "rseh":
            paris.publish(f"ow.{kind}.paris", b"{}")
        paris.settle()
        controller.subscribe("_IN.service.controller.>", 3)
        for stream in ("OW_RESULTS", "OW_SAMPLES", "OW_EVENTS", "OW_HEALTH", "KV_cfg"):
            # Enough of them that one of the answers has the number of a message that is there.
            for _ in range(20):
                client.publish("ow.r.london", b"x", f"$JS.API.STREAM.PURGE.{stream}")
                client.publish("ow.r.london", b"x", f"$JS.API.STREAM.MSG.DELETE.{stream}")
            client.settle()
            controller.bytes = b""
            controller.publish(f"$JS.API.STREAM.INFO.{stream}", b'{"subjects_filter": ">"}', "_IN.service.controller.info")
            said = controller.until("consumer_count")
            self.assertRegex(said, r"\"subjects\":\{[^}]*paris", stream)
        for c in (client, paris, controller):
            c.close()

    @unittest.skipIf(Postgres.why_not(), Postgres.why_not())
    def test_answers_are_no_messages_of_others(self):
        """The answer to a publication can be sent to another point's subjects, and is then stored as its message: collectors
        drop and log it, and what the other point sends is taken."""
        postgres = Postgres()
        self.addCleanup(postgres.remove)
        collector = Process([command.PROGRAM, "collect", "--dir", self.fleet.folder, "--to", postgres.database("fleet")], self.fleet.root, "collect")
        self.addCleanup(collector.stop)
        client, paris, controller = self.thief(), self.thief("paris"), self.service("controller")
        # More than the share of a point in the stream; an answer is one more message of the thief's own share.
        for i in range(3000):
            client.publish("ow.r.london", b"x", "ow.r.paris")
            if i % 100 == 99:
                client.settle()
        for kind in "es":
            client.publish("ow.r.london", b"x", f"ow.{kind}.paris")
        client.publish("$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.london", b"", "ow.r.paris")
        collector.wait_for("a message on ow.r.paris is ignored: ")
        controller.subscribe("_IN.service.controller.>", 3)

        def is_empty():
            controller.bytes = b""
            controller.publish("$JS.API.STREAM.INFO.OW_RESULTS", b"", "_IN.service.controller.info")
            return '"messages":0,' in controller.until("consumer_count")
        until(is_empty, lambda: collector.log()[-2000:])
        # A batch without rows: the stream takes it, and the collector says nothing.
        paris.subscribe("_IN.paris.>", 9)
        paris.publish("ow.r.paris", b"\x01\x00\x00", "_IN.paris.1")
        self.assertIn('"seq":', paris.until("OW_RESULTS"))
        until(is_empty, lambda: collector.log()[-2000:])
        self.assertLess(collector.log().count("\n"), 40)
        self.assertEqual(postgres.sql("SELECT (SELECT count(*) FROM minute) + (SELECT count(*) FROM result) + (SELECT count(*) FROM event)", "fleet"), [["0"]])
        for c in (client, paris, controller):
            c.close()

    def test_empty_answers_delete_nothing(self):
        """A point without a desired state: an empty answer would be the command to delete a stream."""
        oslo = self.fleet.start_point("oslo")
        self.fleet.wait_for_certificate("oslo")
        client, controller = self.thief("oslo"), self.service("controller")
        controller.subscribe("_IN.service.controller.>", 3)
        for stream in ("OW_RESULTS", "OW_EVENTS", "KV_cfg"):
            client.publish("$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.oslo", b"", f"$JS.API.STREAM.DELETE.{stream}")
            client.settle()
            controller.bytes = b""
            controller.publish(f"$JS.API.STREAM.INFO.{stream}", b"", "_IN.service.controller.info")
            self.assertNotIn("not found", controller.until("stream_info_response"))
        self.assertNotIn("refused", oslo.log())
        client.close()
        controller.close()

    def test_huge_message(self):
        client = self.thief()
        client.send("PUB ow.r.london 1073741824\r\n")
        client.wait_closed()
        self.assertTrue(client.closed)
        self.assertRegex(self.fleet.nats_log(), "(?i)maximum payload|Bad or Missing Size")
        client.close()
        pid = int(pathlib.Path(self.fleet.server_folder(self.fleet.ports[0]), "nats.pid").read_text())
        resident = int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))
        self.assertLess(resident, 300_000)

    def test_flood_fills_its_own_share(self):
        """The stream refuses what is beyond a point's share; another point's results are taken."""
        client = self.thief()
        client.subscribe("_IN.london.>", 9)
        data = b"x" * 100
        refused = None
        for i in range(10000):
            client.publish("ow.r.london", data, f"_IN.london.{i}")
            if i % 100 == 99:
                said = client.settle()
                refused = re.search(r'"error":\{[^}]*"description":"([^"]*)"', said)
                if refused:
                    break
                client.bytes = b""
        self.assertIsNotNone(refused, "everything was taken")
        print(f"refused after {i + 1} messages: {refused.group(1)}")
        client.bytes = b""
        client.publish("ow.r.london", b"x" * 900_000, "_IN.london.large")
        self.assertRegex(client.until('"error"'), "exceeds maximum allowed|per subject exceeded")
        other = self.thief("paris")
        other.subscribe("_IN.paris.>", 9)
        other.publish("ow.r.paris", b"x", "_IN.paris.1")
        self.assertIn('"seq":', other.until("OW_RESULTS"))
        other.close()
        client.close()

    def test_health_is_not_believed(self):
        """A point says it is another, or talks nonsense: it speaks for itself only, and nothing breaks."""
        client = self.thief("paris")
        client.publish("ow.h.paris", b'{"point": "london", "state": "\x1b[31mevil", "peers": -5, "config_why": ' + b'"' + b"y" * 5000 + b'"}')
        client.settle()
        status = self.fleet.status()
        self.assertNotIn("\x1b", str(status))
        self.assertEqual(status["london"]["health"]["point"], "london")
        for garbage in (b"", b"{", b"[1,2]", b'{"state": 7}', b"\xff" * 100, b"x" * 900_000):
            client.publish("ow.h.paris", garbage)
            client.settle()
            self.assertEqual(self.fleet.status()["paris"]["point"], "paris")
        client.close()

    def test_clock_of_a_report(self):
        """A point whose clock is wrong, or whose disk is full, has reported: the status says so, and not that it is silent."""
        client = self.thief("paris")
        for ahead, words in ((-3600, "s ago: its clock is wrong, or it does not measure any more"), (3600, "s ahead: its clock is wrong"),
                             (0, "cannot write its store: 7 results wait in memory, 0 lost")):
            def told():
                health = {"state": "measuring", "time_ns": time.time_ns() + ahead * 10**9, "store_waiting": 7, "store_failing": ahead == 0}
                client.publish("ow.h.paris", json.dumps(health))
                client.settle()
                return words in (self.fleet.status()["paris"]["problem"] or "")
            until(told, lambda: str(self.fleet.status()["paris"]), 20)
        client.close()

    def test_pipes_and_links_in_the_folder(self):
        """Who can write into the fleet's folder, and is not its owner, cannot make its commands wait, or write elsewhere."""
        folder, victim = self.fleet.folder, os.path.join(self.fleet.root, "victim")
        pathlib.Path(victim).write_text("precious")
        for name in sorted(n for n in os.listdir(folder) if os.path.isfile(os.path.join(folder, n))):
            path = os.path.join(folder, name)
            os.rename(path, path + ".kept")
            for make, part in ((os.mkfifo, ["status"]), (lambda at: os.symlink("/dev/zero", at), ["enroll", "lima"]),
                               (lambda at: os.symlink(victim, at), ["revoke", "nobody"])):
                make(path)
                self.assertIn(command.oneway("fleet", *part, "--dir", folder).returncode, (0, 1, 3), (name, part))
                os.unlink(path)
                self.assertEqual(pathlib.Path(victim).read_text(), "precious", name)
            os.rename(path + ".kept", path)
        self.assertLessEqual({"london", "paris"}, set(self.fleet.status()))

    def test_slow_clients(self):
        """Connections that say nothing, or a byte now and then, are cut; then a point of the same address gets in."""
        idle = [socket.create_connection(("127.0.0.1", self.fleet.serve_port)) for _ in range(6)]
        hello = iter(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500))
        started = time.monotonic()
        self.fleet.start_point("oslo")
        path = os.path.join(self.fleet.state("oslo"), "point.pem")
        while not os.path.exists(path):
            self.assertLess(time.monotonic() - started, 40, self.fleet.processes["oslo"].log())
            byte = bytes([next(hello)])
            for one in idle:
                try:
                    one.send(byte)
                except OSError:
                    pass
            time.sleep(0.3)
        print(f"in after {time.monotonic() - started:.0f} s")
        for one in idle:
            one.close()

    def test_revoked_is_out_at_once(self):
        fleet = self.fleet
        fleet.start_point("rome")
        fleet.wait_for_certificate("rome")
        client = self.thief("rome")
        started = time.monotonic()
        revoke = subprocess.Popen([command.PROGRAM, "fleet", "revoke", "rome", "--dir", fleet.folder], stdout=subprocess.DEVNULL)
        client.wait_closed()
        seconds = time.monotonic() - started
        revoke.wait()
        client.close()
        print(f"out after {seconds * 1000:.0f} ms")
        self.assertLess(seconds, 5)
        with self.assertRaises((ConnectionError, OSError)):
            self.thief("rome")
        # Nor does it get a new certificate with the old one.
        os.unlink(os.path.join(fleet.state("rome"), "servers"))
        fleet.processes["rome"].stop()
        # Its name comes back with another key, of the next generation.
        files = [pathlib.Path(fleet.state("rome"), name) for name in ("point.key", "point.pem")]
        old = [file.read_bytes() for file in files]
        fleet.start_point("rome")
        until(lambda: all(file.read_bytes() != before for file, before in zip(files, old)), lambda: fleet.processes["rome"].log())
        fleet.processes["rome"].wait_for("fleet: connected to")
        self.thief("rome").close()
        self.assertEqual(fleet.status()["rome"]["generation"], 2)


@unittest.skipIf(why_not(), why_not())
class Cluster(unittest.TestCase):
    """Three servers: they take nobody as one of them who has only a certificate, and follow a revocation elsewhere."""

    def test_cluster(self):
        fleet = Fleet(servers=3)
        self.addCleanup(fleet.end)
        fleet.start_point("london")
        fleet.wait_for_certificate("london")
        until(lambda: command.oneway("fleet", "status", "--dir", fleet.folder).returncode in (0, 3), lambda: fleet.nats_log()[-3000:], 60)
        # The third runs elsewhere: it has only its own folder.
        port = fleet.ports[2]
        away = os.path.join(fleet.root, "away")
        fleet.processes[f"nats-{port}"].stop()
        os.rename(fleet.server_folder(port), away)
        os.makedirs(fleet.server_folder(port))
        fleet.processes[f"nats-{port}"] = Process(["nats-server", "-c", "nats.conf"], fleet.root, "nats-away", cwd=away)
        fleet.processes["follow"] = Process([command.PROGRAM, "fleet", "follow", f"127.0.0.1:{fleet.serve_port}", away], fleet.root, "follow")
        fleet.processes[f"nats-{port}"].wait_for("Server is ready")
        thief = until(lambda: self.connects(fleet, port), lambda: fleet.nats_log()[-2000:])
        started = time.monotonic()
        said = fleet.run("revoke", "london")
        self.assertIn(f"127.0.0.1:{port}", said)
        self.assertLess(thief.wait_closed(), 10)
        print(f"out elsewhere after {(time.monotonic() - started) * 1000:.0f} ms")
        thief.close()
        # A route with a point's key.
        with self.assertRaises((ConnectionError, OSError)):
            Client(fleet, fleet.state("london"), "point", port=fleet.ports[0] + 2000)

    @staticmethod
    def connects(fleet, port):
        try:
            return Client(fleet, fleet.state("london"), "point", port=port)
        except (ConnectionError, OSError):
            return None


if __name__ == "__main__":
    unittest.main()
