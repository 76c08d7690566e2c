# SPDX-License-Identifier: Apache-2.0
"""oneway match --follow: files that grow, rotate, are renamed, truncated, compressed, or stop growing at one point."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import zlib

import command

PATIENCE = 60
SPEED = 4  # of the captures' time


class Writer(threading.Thread):
    """Writes the records of a capture as time passes. change(i): before record i; returns the path of another file, or None."""

    def __init__(self, source, path, change=None, pack=False, until=None):
        super().__init__()
        with open(source, "rb") as f:
            self.head = f.read(24)
        self.records = command.read_pcap(source)
        self.path, self.change, self.pack, self.until = path, change, pack, until
        self.packer = None

    def write(self, file, data):
        if self.packer:
            data = self.packer.compress(data) + self.packer.flush(zlib.Z_SYNC_FLUSH)
        # Records come in two parts, as from a writer with a buffer.
        file.write(data[: len(data) // 2])
        file.flush()
        file.write(data[len(data) // 2 :])
        file.flush()

    def open(self):
        self.packer = zlib.compressobj(wbits=31) if self.pack else None
        file = open(self.path, "wb")
        self.write(file, self.head)
        return file

    def run(self):
        first, start = self.records[0].time_ns, time.monotonic()
        file = self.open()
        for i, record in enumerate(self.records):
            if self.until is not None and i >= self.until:
                break
            path = self.change(i, file) if self.change else None
            if path:
                if self.packer:
                    file.write(self.packer.flush())
                file.close()
                self.path = path
                file = self.open()
            wait = start + (record.time_ns - first) / 1e9 / SPEED - time.monotonic()
            if wait > 0.003:
                time.sleep(wait)
            seconds, rest = divmod(record.time_ns, 10**9)
            self.write(file, struct.pack("<IIII", seconds, rest, len(record.frame), len(record.frame)) + record.frame)
        if self.packer:
            file.write(self.packer.flush())
        file.close()


class Follow(command.Case):
    def make(self, *args):
        """8 s of 500 packets a second."""
        self.simulate("--rate", "500", *args, packets=4000)

    def follow(self, a, b, *options):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        self.process = subprocess.Popen(
            [command.PROGRAM, "match", "--follow", "--json", "--lag", "2s", *(options or ["--one-direction"]), a, b], stdout=self.out, stderr=self.err
        )
        self.addCleanup(self.stop)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def lines(self):
        text = os.pread(self.out.fileno(), 1 << 26, 0).decode()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def results(self):
        return [r for r in self.lines() if r.get("final")]

    def errors(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode()

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{what} did not come: {self.errors()} {self.results()[-2:]}")
            time.sleep(0.05)

    def end(self, code=0):
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(timeout=PATIENCE), code, self.errors())
        for r in self.results():
            if r["status"] != "unknown":
                self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"], r)
        return self.results()

    def run_writers(self, *writers):
        for writer in writers:
            writer.start()
        for writer in writers:
            self.addCleanup(writer.join)
        return writers

    def check_truth(self, results):
        """Each interval that is measured, against the whole captures."""
        sent, arrived = ([(r.time_ns, r.frame[34:]) for r in command.read_pcap(path)] for path in (self.a, self.b))
        there = {payload for _, payload in arrived}
        self.assertEqual(len({payload for _, payload in sent}), len(sent))
        measured = [r for r in results if r["status"] == "measured"]
        self.assertGreaterEqual(len(measured), 4, results)
        for r in measured:
            here = [payload for t, payload in sent if 0 <= t - r["start_ns"] < r["length_ns"]]
            self.assertEqual(r["sent"], len(here), r)
            self.assertEqual(r["lost"], sum(payload not in there for payload in here), r)

    def rotate(self, name, every):
        return lambda i, file: self.path(f"{name}_{i // every:03}.pcap") if i and i % every == 0 else None

    def test_rotating_sets(self):
        self.make("--loss", "0.05")
        writers = self.run_writers(
            Writer(self.a, self.path("x_000.pcap"), self.rotate("x", 700)), Writer(self.b, self.path("y_000.pcap"), self.rotate("y", 900))
        )
        self.follow(f"client={self.path('x_*')}", f"server={self.path('y_*')}")
        self.wait_for("a result while they grow", lambda: self.results())
        self.assertTrue(any(w.is_alive() for w in writers))
        for writer in writers:
            writer.join()
        last = max(r.time_ns for r in writers[0].records)
        self.wait_for("the last interval", lambda: self.results()[-1]["start_ns"] > last - 2 * 10**9)
        results = self.end()
        self.assertEqual({r["from"] for r in results}, {"client"})
        self.check_truth(results)
        self.assertGreater(sum(r["lost"] or 0 for r in results), 0)
        summary = [line["summary"] for line in self.lines() if "summary" in line]
        self.assertEqual(len(summary), 1)
        self.assertEqual(summary[0]["lost"], sum(r["lost"] or 0 for r in results))

    def no_loss(self, change, *causes, pack=False):
        self.make()
        self.is_followed = threading.Event()
        grow = self.path("grow.pcap")
        writers = self.run_writers(Writer(self.a, grow, change(grow), pack=pack), Writer(self.b, self.path("other.pcap")))
        time.sleep(0.2)
        self.follow(grow, self.path("other.pcap"))
        self.wait_for("a line while they grow", self.lines)
        self.is_followed.set()
        for writer in writers:
            writer.join()
        last = max(r.time_ns for r in writers[0].records)
        self.wait_for("the last interval", lambda: self.results() and self.results()[-1]["start_ns"] > last - 2 * 10**9)
        results = self.end()
        self.assertEqual([r for r in results if r["lost"] or r["extra"]], [])
        known = [r for r in results if r["start_ns"] + 2 * 10**9 < last]
        if not causes:
            self.assertEqual([r for r in known if r["status"] != "measured"], [])
        for cause in causes:
            self.assertIn(cause, {r["cause_code"] for r in known if r["status"] == "unknown"})
        self.assertGreaterEqual(sum(r["status"] == "measured" for r in known), 2, [(r["start_ns"], r["status"], r.get("cause")) for r in results])

    def test_renamed(self):
        def change(path):
            def rename(i, file):
                if i and i % 1100 == 0:
                    os.rename(path, f"{path}.{i}")
                    return path

            return rename

        self.no_loss(change)

    def test_compressed(self):
        self.no_loss(lambda path: None, pack=True)

    def test_truncated(self):
        """As logrotate's copytruncate: packets that were not read in time are gone. Then nothing is known, and nothing lost."""

        def change(path):
            # What was truncated before somebody read it was not truncated.
            return lambda i, file: path if i == 2000 and self.is_followed.wait(PATIENCE) else None

        self.no_loss(change, "was_truncated")

    def test_truncated_unseen(self):
        """The file is longer again than it was read before the reader looks at it."""

        def change(path):
            def stop(i, file):
                if i == 3900:
                    self.process.send_signal(signal.SIGCONT)
                if i != 1600:
                    return None
                self.is_followed.wait(PATIENCE)
                self.process.send_signal(signal.SIGSTOP)
                return path

            return stop

        self.no_loss(change, "was_truncated")

    def test_a_file_is_cut_off(self):
        """The writer was killed within a record: what it would have written until the next file is not lost."""
        self.make()
        with open(self.b, "rb") as f:
            head = f.read(24)
        for path, records in zip((self.path("y1.pcap"), self.path("y2.pcap")), (slice(0, 1800), slice(1850, None))):
            with open(path, "wb") as f:
                f.write(head)
                for t, frame in command.read_pcap(self.b)[records]:
                    f.write(struct.pack("<IIII", t // 10**9, t % 10**9, len(frame), len(frame)) + frame)
                if records.stop:
                    f.truncate(f.tell() - 3)
        self.follow(self.a, self.path("y?.pcap"), "--one-direction", "--until", "+6s")
        self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
        self.assertEqual([r for r in self.results() if r["lost"]], [])
        unknown = [r for r in self.results() if r["status"] == "unknown"]
        self.assertEqual({r["cause_code"] for r in unknown}, {"was_cut_off"})
        self.assertLessEqual(len(unknown), 2)

    def test_a_capture_misses_a_time(self):
        """b was full for a while: what a received from it then shows that it is not the network that lost packets."""
        self.make("--reverse", "0.4", "--delay", "constant:2ms")
        command.leave_out(self.b, 2.4, 3.7)
        self.follow(self.a, self.b, "--until", "+6s")
        self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
        results = [r for r in self.results() if r["from"] == "a"]
        self.assertEqual([r for r in results if r["lost"]], [])
        missed = [r for r in results if r.get("cause_code") == "capture_missed"]
        self.assertIn(len(missed), (2, 3), results)
        self.assertIn("that came from it", missed[0]["cause"])

    def test_formats(self):
        """ERF and snoop give the counts of pcap; snoop has microseconds."""
        self.make("--loss", "0.05")
        erf, snoop = self.path("a.erf"), self.path("b.snoop")
        with open(erf, "wb") as f:
            for t, frame in command.read_pcap(self.a):
                fraction = (t % 10**9 * 2**32 + 10**9 // 2) // 10**9
                f.write(struct.pack("<II", fraction, t // 10**9) + struct.pack(">BBHHH", 2, 4, 18 + len(frame), 0, len(frame)) + b"\0\0" + frame)
        with open(snoop, "wb") as f:
            f.write(b"snoop\0\0\0" + struct.pack(">II", 2, 4))
            for t, frame in command.read_pcap(self.b):
                padding = bytes(-len(frame) % 4)
                f.write(struct.pack(">IIIIII", len(frame), len(frame), 24 + len(frame) + len(padding), 0, t // 10**9, t % 10**9 // 1000))
                f.write(frame + padding)
        counts = []
        for a, b in ((self.a, self.b), (erf, snoop)):
            self.follow(a, b, "--until", "+5s", "--one-direction")
            self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
            counts.append([(r["start_ns"], r["status"], r["sent"], r["lost"]) for r in self.results()])
        self.assertGreater(sum(lost or 0 for _, _, _, lost in counts[0]), 0)
        self.assertEqual(*counts)

    def test_grows_at_one_point_only(self):
        self.make()
        writers = self.run_writers(Writer(self.a, self.path("x.pcap")), Writer(self.b, self.path("y.pcap"), until=1500))
        time.sleep(0.2)
        self.follow(self.path("x.pcap"), self.path("y.pcap"))
        for writer in writers:
            writer.join()
        self.wait_for("an unknown interval", lambda: self.results() and self.results()[-1]["status"] == "unknown")
        results = self.end()
        self.assertEqual([r for r in results if r["lost"]], [])
        self.assertIn("had_not_grown", {r.get("cause_code") for r in results})

    def test_until(self):
        self.make()
        self.follow(self.a, self.b, "--until", "+5s", "--one-direction")
        self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
        self.assertLessEqual(len(self.results()), 5)
        self.assertEqual({r["status"] for r in self.results()}, {"measured"})

    def test_direction_is_found(self):
        self.make("--reverse", "0.4", "--delay", "constant:2ms")
        self.follow(self.a, self.b, "--until", "+6s")
        self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
        self.assertIn("on the side of a", self.errors())
        results = self.results()
        self.assertEqual({r["from"] for r in results}, {"a", "b"})
        for r in results:
            self.assertEqual((r["lost"], r["extra"]), (0, 0), r)
            self.assertGreater(r["delay_ns"]["min"], 0)
            self.assertGreater(r["sent"], 0)

    def divide(self):
        """The packets of b on two links, by the addresses."""
        with open(self.b, "rb") as f:
            head = f.read(24)
        links = [self.path("link0.pcap"), self.path("link1.pcap")]
        files = [open(path, "wb") for path in links]
        for file in files:
            file.write(head)
        for t, frame in command.read_pcap(self.b):
            files[sum(frame[26:34]) % 2].write(struct.pack("<IIII", t // 10**9, t % 10**9, len(frame), len(frame)) + frame)
        for file in files:
            file.close()
        return links

    def test_joined(self):
        """A point of two links: what passes either of them has arrived."""
        self.make("--loss", "0.05")
        links = self.divide()
        os.mkdir(self.path("y1"))
        writers = self.run_writers(
            Writer(self.a, self.path("x.pcap")),
            Writer(links[0], self.path("y0.pcap")),
            Writer(links[1], self.path("y1/000.pcap"), lambda i, file: self.path(f"y1/{i:05}.pcap") if i and i % 500 == 0 else None),
        )
        time.sleep(0.2)
        self.follow(f"a={self.path('x.pcap')}", f"b={self.path('y0.pcap')}+{self.path('y1')}")
        for writer in writers:
            writer.join()
        last = max(r.time_ns for r in writers[0].records)
        self.wait_for("the last interval", lambda: self.results() and self.results()[-1]["start_ns"] > last - 2 * 10**9)
        results = self.end()
        self.check_truth(results)
        self.assertGreater(sum(r["lost"] or 0 for r in results), 0)

    def test_joined_point_of_a_path(self):
        self.make("--loss", "0.05")
        links = self.divide()
        done = command.oneway(
            "match", "--follow", "--one-direction", "--json", "--lag", "2s", "--until", "+6s", f"a={self.a}", "b=" + "+".join(links), f"c={self.b}"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [r for r in map(json.loads, done.stdout.splitlines()) if r.get("final")]
        self.check_truth([r for r in lines if (r["from"], r["to"]) == ("a", "b")])
        self.assertEqual({(r["lost"], r["extra"]) for r in lines if r["from"] == "b"}, {(0, 0)})

    def test_one_part_does_not_grow(self):
        self.make()
        links = self.divide()
        count = len(command.read_pcap(links[1])) // 3
        writers = self.run_writers(
            Writer(self.a, self.path("x.pcap")), Writer(links[0], self.path("y0.pcap")), Writer(links[1], self.path("y1.pcap"), until=count)
        )
        time.sleep(0.2)
        self.follow(self.path("x.pcap"), f"b={self.path('y0.pcap')}+{self.path('y1.pcap')}")
        for writer in writers:
            writer.join()
        self.wait_for("an unknown interval", lambda: self.results() and self.results()[-1]["status"] == "unknown")
        results = self.end()
        self.assertEqual([r for r in results if r["lost"]], [])
        self.assertIn("b (y1.pcap) had not grown", {r.get("cause") for r in results})

    def test_identity_is_found(self):
        self.make("--nat", "--reverse", "0.4", "--delay", "constant:2ms", "--router")
        self.follow(self.a, self.b, "--until", "+6s")
        self.assertEqual(self.process.wait(timeout=PATIENCE), 0, self.errors())
        self.assertIn("identity: nat, because 100 %", self.errors())
        self.assertGreaterEqual(len(self.results()), 8)
        for r in self.results():
            self.assertEqual((r["lost"], r["extra"], r["status"]), (0, 0, "measured"), r)
            self.assertGreater(r["sent"], 0)

    def test_tunnels(self):
        """Their hosts do not tell the direction of what is inside."""
        self.make("--b-encap", "gre", "--delay", "constant:2ms")
        argv = ["match", "--follow", "--json", "--lag", "2s", "--until", "+5s"]
        done = command.oneway(*argv, self.a, self.b)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("100 % of the first packets are the same inside of tunnels, 0 % outside", done.stderr)
        done = command.oneway(*argv, "--one-direction", self.a, self.b)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("identity: ip inside tunnels", done.stderr)
        results = [r for r in map(json.loads, done.stdout.splitlines()) if r.get("final")]
        self.assertEqual({(r["lost"], r["extra"], r["sent"] > 0) for r in results}, {(0, 0, True)})

    def test_path(self):
        """Each hop and both ends, against the truth; thresholds are about both ends."""
        points, argv = ("a", "b", "c"), []
        for i, name in enumerate(points):
            argv += (["--hop", ""] if i else []) + ["--point", f"{name}={self.path(name + '.pcap')}"]
        done = command.oneway("simulate", "--rate", "500", "--packets", "4000", "--flows", "10", "--loss", "0.05", "--delay", "constant:2ms", *argv)
        self.assertEqual(done.returncode, 0, done.stderr)
        paths = [f"{name}={self.path(name + '.pcap')}" for name in points]
        argv = ["match", "--follow", "--one-direction", "--lag", "2s", "--until", "+6s", *paths]
        done = command.oneway(*argv, "--json", "--max-loss", "7%")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("a to c, all: loss", done.stderr)
        self.assertEqual(done.stderr.count("is above"), 1, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for a, b in (("a", "b"), ("b", "c"), ("a", "c")):
            self.a, self.b = self.path(a + ".pcap"), self.path(b + ".pcap")
            self.check_truth([r for r in lines if r.get("final") and (r["from"], r["to"]) == (a, b)])
        done = command.oneway(*argv)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, summaries = done.stdout.split("\n\n", 1)
        self.assertEqual([line for line in summaries.splitlines() if line.startswith("---")], [f"--- all {x} ---" for x in ("a>b", "b>c", "a>c")])
        self.assertEqual(rows.count(" lane "), 1, rows)

    def test_path_ends_with_one_that_fails(self):
        self.make()
        done = command.oneway("match", "--follow", "--one-direction", self.a, self.path("none.pcap"), self.b)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "none.pcap: cannot open")

    def test_refused(self):
        self.make()
        for args, text in (
            (["--csv", "x.csv", "--one-direction"], "--csv does not go with --follow"),
            (["--inner", "on"], "--forward"),
            (["--one-direction", "-"], "not standard input"),
            (["--one-direction", "exec:tcpdump -w -"], "only files can be followed"),
        ):
            self.assert_refused(command.oneway("match", "--follow", *args, self.a, self.b), 2, text)
        self.assert_refused(command.oneway("match", "--lag", "1s", self.a, self.b), 2, "--lag is for --follow")
        for args, text in ((["--filter", "no filter", self.a, self.b], "syntax error"), ([self.a, f"{self.b}+{self.b}"], "in two of its parts")):
            done = command.oneway("match", "--follow", "--one-direction", *args)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr.splitlines()[-1])
        bad = self.path("bad.pcap")
        with open(bad, "wb") as f:
            f.write(b"this is no capture at all")
        done = command.oneway("match", "--follow", "--one-direction", self.a, bad)
        # A build with sanitizers also says that it has no sandbox.
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.splitlines()[-1], "bad.pcap: no capture")
        self.assert_refused(command.oneway("match", "--follow", "--one-direction", self.a, self.path("none.pcap")), 1, "none.pcap")


if __name__ == "__main__":
    unittest.main()
