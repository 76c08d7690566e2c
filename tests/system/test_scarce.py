# SPDX-License-Identifier: Apache-2.0
"""
Memory that runs out, at each allocation of each command: it ends with one line and a code, or goes on and is right. Never a crash, a hang or a wrong
number. In `make test` a sample of the allocations fails; `make scarce` lets each of the first 2000 fail, and also all that follow it.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import command

PRELOAD = os.environ.get("SCARCE_PRELOAD", "")
FULL = os.environ.get("SCARCE_FULL") == "1"
LAST = 2000

CONFIG = """point: london
psk: lab.psk
store: london.db
listen: 127.0.0.1:0
metrics: 127.0.0.1:0
interfaces: [{file: a.pcap}]
segments:
  - {name: x, peer: paris, to_peer: src net 10.0.0.0/8, interval: 100ms, wait: 200ms}
"""


def results(text):
    """Lines of JSON without what differs from run to run."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        line.get("summary", line.get("event", line)).pop("cost", None)
    return lines


def all_seen(r):
    """All packets of both points, and those that are the same."""
    return r["sent"] + r["unshared_sent"], r["received"] + r["unshared_received"], r["matched"]


class Scarce(command.Case):
    def setUp(self):
        super().setUp()
        self.simulate("--loss", "0.02", packets=400)

    def sweep(self, step, *args, judge=None, on=False):
        """Runs the command with every step-th allocation failing, or each."""
        folder = self.path("runs")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        env = {**os.environ, "LD_PRELOAD": PRELOAD, "SCARCE": f"1:{LAST}:{1 if FULL else step}"}
        if judge:
            env["SCARCE_FOLDER"] = folder
        if on:
            env["SCARCE_ON"] = "1"
        if args[0] == "point":
            env["SCARCE_LOG"] = "1"
        done = subprocess.run([os.path.abspath(command.PROGRAM), *map(str, args)], capture_output=True, text=True, env=env, cwd=self.folder, timeout=3000)
        print(f"{args[0]}{' (and all that follow)' if on else ''}: {done.stdout.strip()}", file=sys.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as f, open(os.path.join(folder, "0.out")) as first:
                judge(name, first.read(), f.read())

    def both(self, step, *args, judge=None):
        self.sweep(step, *args, judge=judge)
        self.sweep(step, *args, judge=judge, on=True)

    def careful(self, name, expected, printed):
        """Results are those of the run that had all memory, or say that they are not; nothing is lost that was not."""
        truth = {(r["from"], r["interval"], r["final"]): r for r in results(expected) if "status" in r}
        whole = True
        for r in results(printed):
            if "status" not in r:
                continue
            t = truth.get((r["from"], r["interval"], r["final"]))
            self.assertLessEqual(r["lost"] or 0, t["lost"] if t else 0, (name, r))
            if t is None or r["status"] != "measured" or r["sample"]["shift"]:
                self.assertTrue(r["status"] == "measured" or r["cause"], (name, r))
                whole = False
            elif whole and r["interval"] > 0:
                self.assertEqual(r, t, name)
            else:  # late packets of an interval that is not known are extra or unshared here; the one before the first is not shown
                self.assertEqual(all_seen(r), all_seen(t), (name, r))

    def test_match(self):
        self.both(1, "match", "--json", "--threads", 1, self.a, self.b)
        self.both(3, "match", "--json", "--interval", "1ms", "--csv", self.path("out.csv"), self.a, self.b)

    def test_match_path(self):
        def judge(name, expected, printed):
            self.assertEqual(json.loads(printed), json.loads(expected), name)

        points = [self.path(f"p{i}.pcap") for i in range(4)]
        hops = [arg for i, path in enumerate(points) for arg in (("--hop", "") if i else ()) + ("--point", f"p{i}={path}")]
        done = command.oneway("simulate", "--packets", 400, "--router", "--loss", "0.02", "--reverse", "0.3", *hops)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.both(17, "match", "--json", *points, judge=judge)
        self.both(13, "match", "--json", "--csv", self.path("out.csv"), *points, judge=judge)

    def test_compare(self):
        def judge(name, expected, printed):
            """The exact answer is right; a method has the same numbers, or none of them and the reason."""
            report, truth = json.loads(printed), json.loads(expected)
            self.assertEqual(report["exact"], truth["exact"], name)
            for method, right in zip(report["synopses"], truth["synopses"], strict=True):
                for m in (method, right):
                    m.pop("insert_ns"), m.pop("decode_us")
                if method["delay_ns"]["mean"] is not None:
                    self.assertEqual(method, right, name)
                elif method != right:
                    self.assertTrue("memory" in method.get("failure", "") or method["not_estimated"], (name, method))

        self.both(149, "compare", "--json", self.a, self.b, judge=judge)

    def test_live(self):
        self.both(7, "live", "--from", self.a, "--to", self.b, "--forward", "src net 10.0.0.0/8", "--speed", 0, "--json", "--interval", "1ms", "--wait", "2ms", judge=self.careful)

    def test_results(self):
        command.oneway("live", "--from", self.a, "--to", self.b, "--forward", "src net 10.0.0.0/8", "--speed", 0, "--json", "--interval", "1ms", "--wait", "2ms", "--store", self.path("r.db"))
        self.both(41, "results", self.path("r.db"))

    def test_plane(self):
        links = {"AB": 3, "AF": 2, "BF": 2, "FC": 2, "CD": 3, "FE": 4, "ED": 1, "CE": 3}
        with open(self.path("network.intra"), "w") as f:
            f.writelines(f"{a} {b} {cost}\n{b} {a} {cost}\n" for (a, b), cost in links.items())
        with open(self.path("station.yaml"), "w") as f:
            f.write("network: network.intra\nm_routers: [C, F]\ntargets: [{from: A, to: F}]\n")
        with open(self.path("results.jsonl"), "w") as f:
            f.writelines(json.dumps({"segment": "A>F", "from": "A", "to": "F", "start_ns": i * 10**9, "length_ns": 10**9, "final": True, "status": "measured",
                                     "sent": 10, "lost": 0, "samples": 10, "loss_ratio": 0, "delay_ns": {"mean": 1000, "stddev": 10}}) + "\n" for i in range(3))
        self.both(7, "plane", "plan", self.path("network.intra"), "--planner", "beam", "--json")
        self.both(7, "plane", "sets", self.path("network.intra"), "-m", "C,F", "--json")
        self.both(7, "plane", "monitor", self.path("station.yaml"), self.path("results.jsonl"), "--json")
        # Without a network: lanes, and incidents into a file.
        self.both(7, "plane", "monitor", "--incidents", self.path("incidents"), self.path("results.jsonl"))

    def test_point(self):
        """Its start: keys, captures, store, metrics, sandbox, threads; and its end."""
        done = command.oneway("point", "keygen", "--psk", self.path("lab.psk"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("london.yaml"), "w") as f:
            f.write(CONFIG)
        self.both(1499, "point", "-c", self.path("london.yaml"), "--check-config")
        self.both(401, "point", "-c", self.path("london.yaml"), "--json")


if __name__ == "__main__":
    with open(command.PROGRAM, "rb") as program:
        if b"__asan_init" in program.read() or not PRELOAD:
            print("a sanitizer has an allocator of its own, not tested")
            sys.exit(77)
    unittest.main()
