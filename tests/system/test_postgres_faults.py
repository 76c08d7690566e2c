# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL fails while collectors write: nothing is lost, nothing is there twice, sums are right.

Two feeders (tests/store/postgres_feeder.c) write the same minutes, in another order, again and again until each batch is
stored. Meanwhile the server is killed, restarted, stopped, or its disk is full.
"""
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import unittest

import servers
from command import oneway

FEEDER = os.environ.get("POSTGRES_FEEDER", "build/tests/store/postgres_feeder")
POINTS, MINUTES = 40, 180


def sums(table, length_s):
    """Counts of each lane and hour or day, as rows."""
    return (f"SELECT lane, start_ns / {length_s * 10**9}, sum(intervals), sum(sent), sum(lost), sum(matched) FROM {table} "
            "GROUP BY 1, 2 ORDER BY 1, 2")


def message(kind, body):
    """As the protocol of PostgreSQL has it."""
    return kind + struct.pack(">I", len(body) + 4) + body


@unittest.skipIf(servers.Postgres.why_not(), servers.Postgres.why_not())
class Faults(unittest.TestCase):
    def setUp(self):
        self.server = servers.Postgres()
        self.addCleanup(self.server.remove)
        self.url = self.server.database("fleet")

    def feed(self, seed):
        feeder = subprocess.Popen([FEEDER, self.url, str(seed), str(POINTS), str(MINUTES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(feeder.stdout.close)
        self.addCleanup(feeder.wait)
        self.addCleanup(feeder.kill)
        self.addCleanup(lambda: feeder.stdin and feeder.stdin.close())
        return feeder

    def finish(self, feeders):
        said = ""
        for feeder in feeders:
            feeder.stdin.close()
            feeder.stdin = None
        for feeder in feeders:
            out, _ = feeder.communicate(timeout=200)
            self.assertEqual(feeder.returncode, 0, out)
            self.assertTrue(out.endswith("done\n"), out)
            said += out
        return said

    def sql(self, text):
        return self.server.sql(text, "fleet")

    def wait_for_rows(self, rows):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if int(self.sql("SELECT count(*) FROM minute")[0][0]) >= rows:
                    return
            except RuntimeError:
                pass  # no tables yet
            time.sleep(0.05)
        self.fail("the feeders do not write")

    def check(self):
        """Every minute once, the final one; hours are the sums of minutes, days of hours."""
        self.assertEqual(self.sql("SELECT count(*), count(DISTINCT (lane, start_ns)), sum(final::int), sum(intervals), sum(sent) FROM minute"),
                         [[str(POINTS * MINUTES), str(POINTS * MINUTES), str(POINTS * MINUTES), str(60 * POINTS * MINUTES), str(1000 * POINTS * MINUTES)]])
        lost = sum(n * 7919 % 100 for n in range(POINTS * MINUTES))
        self.assertEqual(self.sql("SELECT sum(lost) FROM minute"), [[str(lost)]])
        self.assertEqual(self.sql("SELECT count(*) FROM lane"), [[str(POINTS)]])
        self.assertEqual(self.sql("SELECT count(*) FROM rollup_due"), [["0"]])
        for part, whole, length_s in (("minute", "hour", 3600), ("hour", "day", 86400)):
            over = f"WHERE start_ns < (SELECT value::bigint FROM meta WHERE key = '{whole}_until_ns')"
            self.assertEqual(self.sql(sums(f"(SELECT * FROM {part} {over}) AS over", length_s)),
                             self.sql(sums(f"(SELECT * FROM {whole} {over}) AS over", length_s)))

    def test_killed_and_restarted(self):
        feeders = [self.feed(1), self.feed(2)]
        self.wait_for_rows(1000)
        self.server.kill()
        time.sleep(0.3)
        self.server.start()
        self.wait_for_rows(4000)
        self.server.restart(signal.SIGQUIT)
        time.sleep(0.5)
        self.server.restart(signal.SIGINT)
        said = self.finish(feeders)
        self.assertIn("postgresql://127.0.0.1:", said)
        self.check()

    def test_feeder_killed(self):
        feeders = [self.feed(1), self.feed(2)]
        self.wait_for_rows(1000)
        feeders[0].kill()
        feeders[0] = self.feed(3)
        self.finish(feeders)
        self.check()

    @unittest.skipIf(os.geteuid() != 0, "needs root for a small file system")
    def test_disk_full(self):
        disk = os.path.join(self.server.folder, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "small", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        space = os.path.join(disk, "space")
        os.mkdir(space)
        subprocess.run(["chown", "postgres:", space], check=True)
        self.server.sql(f"CREATE TABLESPACE small LOCATION '{space}'")
        self.server.sql("DROP DATABASE fleet")
        self.server.sql("CREATE DATABASE fleet TABLESPACE small")
        feeders = [self.feed(1), self.feed(2)]
        self.wait_for_rows(500)
        filler = os.path.join(disk, "filler")
        try:
            with open(filler, "wb", buffering=0) as f:
                while True:
                    f.write(bytes(4096))
        except OSError:
            pass
        self.assertIn("No space left", feeders[0].stdout.readline())
        os.remove(filler)
        self.finish(feeders)
        self.check()


@unittest.skipIf(servers.Postgres.why_not(), servers.Postgres.why_not())
class Tls(unittest.TestCase):
    """Certificates are checked as the URL says."""

    def certificate(self, name, host):
        key, pem = (os.path.join(self.server.folder, name + end) for end in (".key", ".pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                        f"/CN={host}", "-addext", f"subjectAltName=DNS:{host},IP:127.0.0.1", "-keyout", key, "-out", pem],
                       check=True, capture_output=True)
        os.chmod(key, 0o600)
        if os.geteuid() == 0:
            shutil.chown(key, "postgres", "postgres")
        return key, pem

    def results(self, **options):
        return oneway("results", self.server.url("fleet", **options))

    def test_whom_it_talks_to(self):
        self.server = servers.Postgres()
        self.addCleanup(self.server.remove)
        key, pem = self.certificate("server", "localhost")
        _, other = self.certificate("other", "localhost")
        self.server.stop()
        self.server.settings.update(ssl="on", ssl_cert_file=pem, ssl_key_file=key)
        self.server.start()
        self.server.database("fleet")
        # An empty database is what it gets to say behind a connection that is trusted.
        self.assertIn("empty, not a store", self.results(sslmode="verify-full", sslrootcert=pem).stderr)
        done = self.results(sslmode="verify-full", sslrootcert=other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("certificate verify failed", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


class Hostile(unittest.TestCase):
    """What is no PostgreSQL, or one that belongs to somebody else."""

    def answer(self, connection, what):
        """Takes the connection, and answers the first command with `what` as long as it is read."""
        with connection:
            connection.recv(4096)
            connection.sendall(message(b"R", bytes(4)) + message(b"Z", b"I"))
            connection.recv(65536)
            try:
                connection.sendall(message(b"T", struct.pack(">H", 1) + b"c\0" + struct.pack(">IHIhih", 0, 0, 25, 8, -1, 0)))
                while True:
                    connection.sendall(what)
            except OSError:
                pass

    def test_rows_without_end(self):
        """Nobody asked for them: they are not kept, and there is one line."""
        row = message(b"D", struct.pack(">Hi", 1, 300) + b"A" * 300)
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: self.answer(server.accept()[0], row * 100), daemon=True).start()
            url = f"postgresql://u:hunter2@127.0.0.1:{server.getsockname()[1]}/fleet?sslmode=disable"
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            done = oneway("results", url)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertNotIn("hunter2", done.stderr)
        self.assertLessEqual(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, max(before, 200 << 10))


if __name__ == "__main__":
    unittest.main()
