# SPDX-License-Identifier: Apache-2.0
"""The command line: usage of every command; of oneway match also files, exit codes, terminals."""
import os
import re
import shutil
import unittest

from command import Case, on_terminal, oneway


class Usage(Case):
    def test_no_arguments(self):
        self.assertEqual(oneway().returncode, 2)
        self.assert_refused(oneway("match"), 2, "two captures")
        self.assert_refused(oneway("match", "a"), 2, "two captures")

    def test_wrong_arguments_are_named(self):
        self.assert_refused(oneway("match", "--foo", "a", "b"), 2, "--foo")
        self.assert_refused(oneway("match", "--offset", "37", "a", "b"), 2, "--offset", "37")
        self.assert_refused(oneway("match", "--level", "mac", "a", "b"), 2, "--level", "mac")
        self.assert_refused(oneway("match", "--max-loss", "x", "a", "b"), 2, "--max-loss")
        self.assertEqual(oneway("frobnicate").returncode, 2)

    def test_help_and_version(self):
        for args in (["--help"], ["match", "--help"], ["simulate", "--help"]):
            done = oneway(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage: oneway", done.stdout)
        for flag in ("--offset", "--interval", "--csv", "--lost", "--extra", "--plot", "--max-loss", "--max-delay-p99"):
            self.assertIn(flag, oneway("match", "--help").stdout)
        self.assertRegex(oneway("--version").stdout, r"\d+\.\d+\.\d+")

    def test_two_servers_are_no_cluster(self):
        for hosts, warned in (("a", False), ("a,b", True), ("a,b,c", False)):
            done = oneway("fleet", "init", self.path(hosts), "--name", "x", "--server", hosts)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("use 1 or 3" in done.stderr, warned, hosts)


class Terminals(Case):
    """Words and names of files on a terminal: what is in them is shown, not obeyed."""

    NAME = "x\x1b[31m\x07\u202e\u2028\n.pcap"

    def assert_harmless(self, done):
        text = done.stdout + done.stderr
        for character in "\x1b\x07\u202e\u2028":
            self.assertNotIn(character, text)
        self.assertIn("?[31m???", text)

    def test_words(self):
        for args in ([self.NAME], ["help", self.NAME], ["flows", self.NAME], ["match", "--" + self.NAME], ["match", self.NAME]):
            self.assert_harmless(oneway(*args, *(["b"] if args[0] == "match" else [])))

    def test_names(self):
        self.simulate()
        a, b = self.path("a" + self.NAME), self.path("b" + self.NAME)
        for path, name in (self.a, a), (self.b, b):
            with open(path, "rb") as source, open(name, "wb") as out:
                out.write(source.read() + bytes(16))  # a frame without a time
        self.assert_harmless(oneway("match", a, b))
        self.assert_harmless(oneway("match", a, b, "--csv", self.path(self.NAME) + "/x.csv"))
        live = oneway("live", "--from", a, "--to", b, "--forward", "ip or ip6", "--speed", 0)
        self.assertIn("left out: no timestamp", live.stderr)
        self.assert_harmless(live)


def commands():
    """Every command and part of one, as lists of words, by what --help lists."""
    found = [[]]
    for words in found:
        text = oneway(*words, "--help").stdout
        listed = re.findall(r"^  ([a-z]+) +\S", text, re.M) if re.search("usage: .*(COMMAND|PART)", text) else []
        found += [words + [name] for name in listed]
    return found[1:] + [["point", "keygen"]]


class EveryCommand(Case):
    def test_help_fits_80_columns(self):
        self.assertGreater(len(commands()), 20)
        for words in [[]] + commands():
            done = oneway(*words, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertIn(" ".join(["usage: oneway", *words]), done.stdout)
            self.assertEqual([line for line in done.stdout.splitlines() if len(line) > 80], [], words)

    def test_help_is_a_command(self):
        self.assertEqual(oneway("help").stdout, oneway("--help").stdout)
        for words in commands():
            self.assertEqual(oneway("help", *words).stdout, oneway(*words, "--help").stdout, words)
        self.assert_refused(oneway("help", "mach"), 2, "'mach'", "did you mean 'match'?")
        self.assert_refused(oneway("help", "flows", "quer"), 2, "'quer'", "did you mean 'query'?")

    def test_outputs_are_looked_at_before_the_work(self):
        nowhere, missing = self.path("no-folder"), self.path("missing")
        for args in (
            ["match", missing, missing, "--csv"],
            ["match", missing, missing, "--flows-csv"],
            ["match", missing, missing, "--lost"],
            ["match", missing, missing, "--extra"],
            ["match", missing, missing, "--plot"],
            ["compare", missing, missing, "--plot"],
            ["flows", "query", "--from", missing, "--to", missing, "--csv"],
            ["flows", "query", "--from", missing, "--to", missing, "--plot"],
            ["flows", "record", missing, "--counters", 10, "-o"],
            ["lab", "--plot"],
            ["live", "--from", missing, "--to", missing, "--forward", "ip", "--store"],
            ["plane", "plan", missing, "--csv"],
            ["plane", "plan", missing, "--plot"],
            ["plane", "probe", "127.0.0.1", "--store"],
            ["results", missing, "--csv"],
            ["results", missing, "--plot"],
            ["simulate", "-n", 1, "-b", self.b, "-a"],
            ["simulate", "-n", 1, "-a", self.a, "-b"],
            ["simulate", "-n", 1, "-a", self.a, "-b", self.b, "--truth"],
        ):
            with self.subTest(args=args):
                self.assert_refused(oneway(*args, nowhere + "/x.svg"), 1, nowhere)
        self.assert_refused(oneway("match", missing, missing, "--csv", self.path("")), 1, "Is a directory")

    def test_a_failure_leaves_the_old_output(self):
        old = self.path("old.csv")
        with open(old, "w", encoding="ascii") as out:
            out.write("old")
        os.chmod(old, 0o640)
        self.assert_refused(oneway("match", self.path("missing"), self.path("missing2"), "--csv", old), 1, "missing")
        with open(old, encoding="ascii") as stayed:
            self.assertEqual(stayed.read(), "old")
        self.assertEqual([name for name in os.listdir(self.path("")) if name.startswith("old.csv")], ["old.csv"])
        self.assertEqual(oneway("simulate", "-n", 100, "-a", self.a, "-b", self.b).returncode, 0)
        self.assertEqual(oneway("match", self.a, self.b, "--csv", old).returncode, 0)
        with open(old, encoding="ascii") as new:
            self.assertTrue(new.read().startswith("fate,"))
        self.assertEqual(os.stat(old).st_mode & 0o777, 0o640)

    def test_what_is_unknown_is_named_in_one_line(self):
        self.assert_refused(oneway("no-such-command"), 2, "no-such-command", "oneway --help")
        for words in commands():
            self.assert_refused(oneway(*words, "--no-such-option"), 2, " ".join(["oneway", *words]), "--no-such-option")

    def test_files_that_are_not_there_are_named_in_one_line(self):
        missing = self.path("missing")
        for args in (
            ["match", missing, missing + "2"],
            ["compare", missing, missing + "2"],
            ["live", "--forward", "ip", "--from", missing, "--to", missing + "2"],
            ["point", "-c", missing],
            ["doctor", "-c", missing],
            ["results", missing],
            ["simulate", "-n", 1, "-a", missing + "/a", "-b", self.b],
            ["flows", "record", missing, "-o", self.path("a.epochs"), "--counters", 10],
            ["flows", "query", "--from", missing, "--to", missing],
            ["flows", "list", missing],
            ["flows", "size", "--measure", missing],
            ["plane", "plan", missing],
            ["plane", "sets", missing],
            ["plane", "monitor", missing, missing],
            ["plane", "reflect", "--key", missing],
            ["plane", "probe", "127.0.0.1", "--key", missing],
        ):
            with self.subTest(args=args):
                self.assert_refused(oneway(*args), 1, missing)


class Files(Case):
    def save(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def test_missing_empty_and_wrong_files(self):
        self.simulate()
        for name, data in (("text", b"not a capture\n" * 10), ("empty", b""), ("zeros", bytes(1000))):
            bad = self.save(name, data)
            self.assert_refused(oneway("match", bad, self.b), 1, bad)
            self.assert_refused(oneway("match", self.a, bad), 1, bad)
        missing = self.path("missing")
        self.assert_refused(oneway("match", missing, self.b), 1, missing, "No such file")
        nothing = self.path("nothing")
        os.mkdir(nothing)
        self.assert_refused(oneway("match", self.a, nothing), 1, nothing)

    def test_two_identical_files(self):
        self.simulate()
        shutil.copy(self.a, self.b)
        text = self.match()
        self.assertRegex(text, r"lost +0")
        self.assertRegex(text, r"max +0")

    def test_nothing_in_common(self):
        self.simulate()
        shutil.copy(self.a, self.path("first"))
        self.simulate("--seed", 2)
        self.assert_refused(oneway("match", self.path("first"), self.b), 1, "nothing in common")

    def test_clocks_37_seconds_apart(self):
        self.simulate("--offset", "37s")
        self.assert_refused(oneway("match", self.a, self.b), 1, "37.00 s", "--offset auto")
        self.match("--offset", "-37s")
        self.match("--offset", "auto")

    def test_standard_input(self):
        self.simulate()
        with open(self.a, "rb") as f:
            piped = oneway("match", "--json", "-", self.b, stdin=f)
        self.assertEqual(piped.returncode, 0, piped.stderr)

    def test_no_room_for_the_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.simulate()
        self.assertEqual(oneway("match", "--csv", "/dev/full", self.a, self.b).returncode, 1)
        done = oneway("match", "--lost", self.path("no/such/folder"), self.a, self.b)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no/such/folder", done.stderr)


class Thresholds(Case):
    def test_exit_code_3(self):
        self.simulate("--loss", 0.02, "--delay", "constant:100us")
        self.match("--max-loss", "5%", "--max-delay-p99", "1ms")
        self.assertIn("sent", self.match("--max-loss", "0.1%", code=3))
        self.assertIn("sent", self.match("--max-loss", "0.001", code=3))
        self.assertIn("sent", self.match("--max-delay-p99", "99us", code=3))
        self.match("--max-delay-p99", "101us")

    def test_either_direction_counts(self):
        self.simulate("--reverse", 0.5, "--offset", "50us", "--delay", "constant:100us")
        self.match("--max-delay-p99", "149us", code=3)
        self.match("--max-delay-p99", "151us")


class Terminals(Case):
    def test_colour_only_on_a_terminal_and_never_with_no_color(self):
        self.simulate("--loss", 0.05)
        self.assertNotIn("\033[", self.match())
        code, text = on_terminal("match", self.a, self.b)
        self.assertEqual(code, 0)
        self.assertIn("\033[", text)
        for args, env in (([], {"NO_COLOR": "1"}), (["--no-color"], {}), ([], {"TERM": "dumb"})):
            code, text = on_terminal("match", *args, self.a, self.b, env=env)
            self.assertEqual(code, 0)
            self.assertNotIn("\033[", text)
            self.assertIn("A to B", text)

    def test_a_narrow_terminal(self):
        self.simulate("--reverse", 0.5, "--offset", "1ms")  # warns
        for columns in (20, 60, 72, 200):  # narrower than 60 is written as for 60, wider than 100 as for 100
            code, text = on_terminal("match", self.a, self.b, columns=columns, env={"NO_COLOR": "1"})
            self.assertEqual(code, 0)
            warning = text[text.index("warning:") :].splitlines()
            self.assertTrue(all(len(line) <= min(max(columns, 60), 100) for line in warning), warning)


if __name__ == "__main__":
    unittest.main()
