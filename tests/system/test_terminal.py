# SPDX-License-Identifier: Apache-2.0
"""Every command on a terminal, with its sandbox: it works, tables fit, and it ends as a person expects."""
import json
import os
import re
import signal
import subprocess
import time
import unittest

import command
import points
import router
from terminal import Terminal, run

UTF8 = {"LC_ALL": "C.UTF-8"}
SOURCE = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
n = 0
while True:
    s.sendto(n.to_bytes(8, "big"), ("10.2.0.2", 7000))
    n += 1
    time.sleep(0.005)
"""


class Commands(command.Case):
    """All that read files."""

    def setUp(self):
        super().setUp()
        self.simulate("--loss", 0.01, "--reverse", 0.3, "--rate", 20000)
        for name in ("a", "b"):
            done = command.oneway("flows", "record", self.path(name + ".pcap"), "--interval", "1s", "--out", self.path(name + ".epochs"))
            self.assertEqual(done.returncode, 0, done.stderr)
        done = command.oneway("live", *self.replay, "--store", self.path("results.db"))
        self.assertEqual(done.returncode, 0, done.stderr)

    @property
    def replay(self):
        return ("--from", self.a, "--to", self.b, "--forward", "src net 10.0.0.0/8", "--speed", 0, "--interval", "50ms")

    def commands(self):
        """With the exit code, and whether all of it is tables, which fit."""
        epochs = [self.path(name + ".epochs") for name in "ab"]
        return [
            (("match", self.a, self.b), 0, False),
            (("compare", self.a, self.b), 0, False),
            (("simulate", "-n", 1000, "-a", self.path("x.pcap"), "-b", self.path("y.pcap")), 0, True),
            (("reproduce",), None, False),
            (("live", *self.replay), 0, False),
            (("live", "--lines", *self.replay), 0, False),
            (("live", "--json", *self.replay), 0, False),
            (("flows", "record", self.a, "--out", self.path("z.epochs")), 0, False),
            (("flows", "list", epochs[0]), 0, False),
            (("flows", "query", *epochs, "--all"), None, False),
            (("results", self.path("results.db")), 0, True),
            (("results", self.path("results.db"), "--worst", 5), 0, True),
            (("doctor", "lo"), None, False),
            (("plane",), None, False),
            (("lab", "--help"), 0, False),
            (("point", "keygen", "--psk", self.path(f"{time.monotonic_ns()}.psk")), 0, False),
        ]

    def test_all(self):
        """None dies, whatever the terminal is like; what is a table fits."""
        terminals = [
            ({"columns": 100}, UTF8),
            ({"columns": 40}, UTF8),
            ({"columns": 20, "rows": 3}, {"LC_ALL": "C"}),
            ({"columns": 0, "rows": 0}, {"COLUMNS": None, "LINES": None}),
            ({"columns": 80}, {"TERM": "dumb"}),
            ({"columns": 80}, {"TERM": None}),
            ({"columns": 80}, {"NO_COLOR": "1"}),
        ]
        for size, env in terminals:
            for args, code, tables in self.commands():
                with self.subTest(args=args, size=size, env=env):
                    done, terminal = run(*args, env=env, **size)
                    self.assertGreaterEqual(done, 0, terminal.written)
                    self.assertIn(done, (0, 1, 2, 3) if code is None else (code,), terminal.written)
                    screen = terminal.screen(size["columns"] or 80)
                    if tables:
                        self.assertEqual(screen.wrapped, 0, screen.text())
                    if env.get("TERM", "xterm") != "xterm":
                        self.assertNotIn("\033", terminal.written)
                    if "NO_COLOR" in env:
                        self.assertNotRegex(terminal.written, r"\033\[[0-9;]*[0-9]m")

    def test_words_stay_whole(self):
        """What is on a narrow terminal is what is in a file, but for spaces and line breaks: no word is cut."""
        for args, code in ((("match", "--help"), 0), (("--help",), 0), (("match", "nothing.pcap", "a b c d e f g.pcap"), 1)):
            for columns in (60, 40):
                with self.subTest(args=args, columns=columns):
                    done, terminal = run(*args, columns=columns)
                    self.assertEqual(done, code)
                    plain = command.oneway(*args)
                    self.assertEqual(terminal.written.split(), (plain.stdout + plain.stderr).split())
                    for line in terminal.written.splitlines():
                        if not line.startswith("  oneway "):
                            self.assertLessEqual(len(line), columns, line)

    def test_compare_fits(self):
        done, terminal = run("compare", self.a, self.b, columns=80)
        self.assertEqual(done, 0)
        for line in terminal.written.splitlines():
            if re.match(r"(lda|finecomb|s?rda|fold|bottomk|sampled|probes|direct)", line):
                self.assertLessEqual(len(re.sub(r"\033\[[0-9;]*m", "", line.rstrip())), 80, line)

    def test_flows_fit(self):
        """Names of flows that do not fit behind the numbers are below them; what flows are sorted by is shown."""
        query = ("flows", "query", "--from", self.path("a.epochs"), "--to", self.path("b.epochs"), "--top", 2)
        for columns in (80, 60):
            done, terminal = run(*query, "--each", "1h", columns=columns)
            self.assertEqual(done, 0, terminal.written)
            rows = terminal.screen(columns).text().splitlines()[1:]
            for row, start in zip(rows, ("20", "  1", " " * 23, "  1")):
                self.assertTrue(row.startswith(start), rows)
        for columns in (80, 60, 40):
            done, terminal = run(*query, "--worst", columns=columns)
            self.assertEqual(done, 0, terminal.written)
            self.assertRegex(terminal.screen(columns).text(), r"at least +mean .*by\n")

    def test_streams(self):
        """Standard input closed; standard output full, or closed by its reader."""
        for args in (("live", *self.replay), ("live", "--json", *self.replay), ("match", self.a, self.b), ("results", self.path("results.db"))):
            with self.subTest(args=args):
                with open("/dev/full", "w") as full:
                    done, terminal = run(*args, stdout=full, stdin=subprocess.DEVNULL)
                self.assertEqual(done, 1, terminal.written)
                self.assertIn("No space left on device", terminal.written)
                closed, writer = os.pipe()
                os.close(closed)
                with open(writer, "w") as out:
                    done, terminal = run(*args, stdout=out)
                self.assertIn(done, (1, -signal.SIGPIPE), terminal.written)
                done, terminal = run("-c", 'exec "$0" "$@" <&-', command.PROGRAM, *args, program=("sh",))
                self.assertEqual(done, 0, terminal.written)

    def test_progress(self):
        """What takes long shows how far it is, and removes that at the end, also of Ctrl-C."""
        args = ("simulate", "-n", 40000000, "--seed", 1, "-a", self.path("x.pcap"), "-b", self.path("y.pcap"))
        terminal = Terminal(*args, columns=40)
        terminal.wait_for(r"simulating +\d+ %")
        terminal.interrupt()
        self.assertNotEqual(terminal.end(), 0)
        terminal = Terminal(*args, env={"TERM": "dumb"})
        time.sleep(3)
        terminal.interrupt()
        terminal.end()
        self.assertNotIn("simulating", terminal.written)

    def test_progress_is_erased(self):
        """Before the result, which takes its place."""
        terminal = Terminal("simulate", "-n", 3000000, "--snaplen", 64, "-a", self.path("x.pcap"), "-b", "/dev/null", "--json")
        # Longer than the two seconds after which it is shown, on a fast machine, too.
        time.sleep(0.3)
        terminal.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        terminal.process.send_signal(signal.SIGCONT)
        self.assertEqual(terminal.end(), 0, terminal.written)
        self.assertIn("simulating", terminal.written)
        self.assertNotIn("simulating", terminal.screen(80).text())


class OnInterfaces(command.Case):
    """oneway live and oneway point on interfaces, confined."""

    def setUp(self):
        super().setUp()
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)
        source = self.network.python(self.network.one, SOURCE)
        self.addCleanup(source.wait)
        self.addCleanup(source.kill)

    def live(self, *args, **options):
        terminal = Terminal(
            "live", "--from", "r1", "--to", "r2", "--interval", "200ms", "--wait", "200ms", *args,
            prefix=self.network.prefix(self.network.router), env={**UTF8, **options.pop("env", {})}, **options,
        )
        self.addCleanup(terminal.close)
        return terminal

    def test_forms(self):
        """A table, lines and JSON, wide and narrow; Ctrl-C ends them with a summary."""
        for args, columns, seen in (
            ((), 100, r"all r1>r2 .*pps"),
            ((), 40, r"all r1>r2 .*%"),
            ((), 20, r"r1>r2"),
            (("--lines",), 80, r"\d\d:\d\d:\d\d\.\d+ +all r1>r2 "),
            (("--json",), 80, r'"final": true'),
            (("--no-sandbox",), 80, r"all r1>r2 "),
        ):
            with self.subTest(args=args, columns=columns):
                terminal = self.live(*args, columns=columns)
                terminal.wait_for(seen)
                since = len(terminal.written)
                time.sleep(0.5)
                terminal.read(0)
                if not args:
                    screen = terminal.screen(columns)
                    # The sentences at the start may wrap, nothing else; and the table is there once.
                    sentences = re.findall(r"(?m)^(?:Measuring|oneway live).*?\r?$", terminal.written)
                    self.assertLessEqual(screen.wrapped, sum(len(s) // columns for s in sentences), screen.text())
                    self.assertEqual(len(re.findall("^total", screen.text(), re.M)), 1, screen.text())
                terminal.interrupt()
                self.assertEqual(terminal.end(), 0, terminal.written)
                self.assertRegex(terminal.written[since:], r'"summary"' if "--json" in args else r"one-way delay")

    def test_resize(self):
        terminal = self.live(columns=100)
        terminal.wait_for("pps")
        for columns in (40, 20, 120, 8):
            terminal.resize(columns)
            terminal.read(0)
            since = len(terminal.written)
            terminal.wait_for(r"\033\[J", since)
            since = len(terminal.written)
            terminal.wait_for(r"(?s)\033\[J.*\033\[J", since)
            drawn = terminal.written[since:].split("\033[J")[1]
            lines = re.sub(r"\033\[[0-9;]*[A-Za-z]", "", drawn).replace("\r", "").splitlines()
            self.assertLessEqual(max(map(len, lines)), columns, drawn)
        terminal.interrupt()
        self.assertEqual(terminal.end(), 0, terminal.written)

    def test_dumb(self):
        """A terminal that cannot move its cursor gets lines."""
        terminal = self.live(columns=80, env={"TERM": "dumb"})
        terminal.wait_for(r"all r1>r2 ")
        terminal.interrupt()
        self.assertEqual(terminal.end(), 0, terminal.written)
        self.assertNotIn("\033", terminal.written)

    def test_stopped(self):
        """Stopped and continued, as by Ctrl-Z and fg: no loss that is none."""
        with open(self.path("out"), "w") as out:
            terminal = self.live("--json", stdout=out)
        time.sleep(1.5)
        terminal.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        terminal.process.send_signal(signal.SIGCONT)
        time.sleep(1)
        terminal.interrupt()
        self.assertEqual(terminal.end(), 0, terminal.written)
        with open(self.path("out")) as out:
            lines = [json.loads(line) for line in out]
        self.assertTrue(any(r.get("final") and r["matched"] for r in lines))
        self.assertTrue(all(not r["lost"] for r in lines if "status" in r))

    def test_closed(self):
        """The terminal is closed: it ends, and does not spin."""
        for shell in ('exec "$0" "$@"', 'trap "" HUP; exec "$0" "$@"'):
            terminal = self.live(columns=80, program=("sh", "-c", shell, command.PROGRAM))
            terminal.wait_for("pps")
            terminal.hang_up()
            self.assertNotEqual(terminal.end(), 0)

    def test_point(self):
        """Two points, one of them on a terminal: lines, and a word when the other one does not answer."""
        done = command.oneway("point", "keygen", "--psk", self.path("lab.psk"))
        self.assertEqual(done.returncode, 0, done.stderr)
        prefix = self.network.prefix(self.network.router)
        text = "point: {}\npsk: lab.psk\n{}interfaces: [{{name: {}}}]\nsegments:\n  - {{name: x, peer: {}, {}}}\n"
        for name, listen, interface, peer, more in (
            ("london", "", "r1", "paris", "connect: 127.0.0.1:8620, facing: away, interval: 200ms, wait: 200ms"),
            ("paris", "listen: 127.0.0.1:8620\n", "r2", "london", "facing: away"),
        ):
            with open(self.path(name + ".yaml"), "w") as f:
                f.write(text.format(name, listen, interface, peer, more))
        self.network.run(self.network.router, "ip", "link", "set", "lo", "up")
        paris = points.Point(self.path("paris.yaml"), prefix=prefix)
        self.addCleanup(paris.close)
        paris.wait_for("listening on")
        for columns in (40, 100):
            terminal = Terminal("point", "-c", self.path("london.yaml"), "--text", prefix=prefix, env=UTF8, columns=columns)
            self.addCleanup(terminal.close)
            terminal.wait_for(r"london>paris|\d\d:\d\d:\d\d.* 0%")
            if columns == 100:
                paris.process.send_signal(signal.SIGSTOP)
                terminal.wait_for("no result: no answer from paris yet")
                paris.process.send_signal(signal.SIGCONT)
                since = len(terminal.written)
                terminal.wait_for(r" 0% ", since)
            terminal.interrupt()
            self.assertEqual(terminal.end(), 0, terminal.written)
        paris.stop()
        paris.end()
        self.assertEqual(paris.code, 0, paris.log)


if __name__ == "__main__":
    unittest.main()
