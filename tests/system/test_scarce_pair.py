# SPDX-License-Identifier: Apache-2.0
"""
Memory that runs out in one of two points that measure: some allocation of it fails, from its start to its end, wherever that is. It refuses with a
line in its log, or goes on; it neither crashes nor hangs. The other point always goes on. What either says is the truth, or says that it is not known:
nothing is lost that was not. In `make test` some allocations fail, in `make scarce` SCARCE_RUNS (default 400) of them.
"""
import concurrent.futures
import os
import random
import re
import signal
import sys
import unittest

import command
import points

PRELOAD = os.environ.get("SCARCE_PRELOAD", "")
FULL = os.environ.get("SCARCE_FULL") == "1"
RUNS = int(os.environ.get("SCARCE_RUNS", 400 if FULL else 8))
AT_ONCE = 4
SEED = 20
START = 2000  # allocations

PARIS = """point: paris
psk: {folder}/lab.psk
listen: 127.0.0.1:0
memory: 16MiB
store: paris{n}.db
metrics: 127.0.0.1:0
interfaces: [{{file: b.pcap}}]
segments:
  - {{name: x, peer: london, to_peer: not src net 10.0.0.0/8}}
"""
LONDON = """point: london
psk: {folder}/lab.psk
memory: 16MiB
store: london{n}.db
interfaces: [{{file: a.pcap}}]
segments:
  - {{name: x, peer: paris, connect: "127.0.0.1:{port}", to_peer: src net 10.0.0.0/8, interval: 100ms, wait: 200ms}}
"""


class Run:
    """Two points, one of which lacks memory once."""

    def __init__(self, case, n, who):
        self.case, self.n, self.who = case, n, who
        self.scarce = {"LD_PRELOAD": PRELOAD, "SCARCE": f"{n}:{n}:1", "SCARCE_COUNT": "1"}
        self.results, self.codes, self.logs = {}, {}, {}

    def start(self, name, text):
        config = self.case.write(f"{name}{self.n}.yaml", text)
        return self.case.start(config, env=self.scarce if name == self.who else None)

    def end(self, name, point):
        try:
            self.results[name], _ = point.end()
        finally:
            self.logs[name] = point.log
        self.codes[name] = point.code

    def play(self):
        paris = self.start("paris", PARIS.format(folder=self.case.folder, n=self.n))
        try:
            port = int(paris.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1))
        except AssertionError:  # it has refused
            self.end("paris", paris)
            return self
        london = self.start("london", LONDON.format(folder=self.case.folder, n=self.n, port=port))
        points_of = {"paris": paris, "london": london}
        other = points_of["london" if self.who == "paris" else "paris"]
        # Both end with their captures. Who waits for one that has refused, waits for ever.
        points_of[self.who].process.wait(timeout=points.PATIENCE)
        self.end(self.who, points_of[self.who])
        if self.codes[self.who] != 0:
            other.wait_for(r"connect|listening")  # signals are minded now
            other.stop(signal.SIGTERM)
        self.end("london" if self.who == "paris" else "paris", other)
        return self

    @property
    def allocations(self):
        found = re.search(r"(\d+) allocations", self.logs[self.who])
        return int(found.group(1)) if found else 0


class Pair(points.Case):
    def check(self, run):
        what = f"allocation {run.n} of {run.who}: {run.codes}\n" + "\n".join(run.logs.values())
        self.assertGreaterEqual(run.codes[run.who], 0, what)  # no signal
        self.assertRegex(run.logs[run.who], r"\S", what)
        for name, code in run.codes.items():
            if name != run.who:
                self.assertEqual(code, 0, what)
        measured = unknown = 0
        for r in (r for results in run.results.values() for r in results):
            truth = self.sight.truth(r["from"] == "london", r["start_ns"], r["length_ns"])
            self.assert_conserved(r)
            self.assertTrue(r["status"] == "measured" or r["cause"], (what, r))
            self.assertLessEqual(r["lost"] or 0, truth.lost, (what, r))
            if r["final"] and r["status"] == "measured" and not r["sample"]["shift"]:
                self.assertEqual((r["sent"], r["matched"] + r["late"], r["lost"]), (truth.sent, truth.arrived, truth.lost), (what, r))
                measured += 1
            unknown += r["final"] and r["status"] == "unknown"
        return measured, unknown

    def test_pair(self):
        self.simulate("--rate", 4000, "--reverse", 0.4, "--loss", 0.01, "--delay", "weibull:5ms,0.7", "--seed", 11, packets=6000)
        self.sight = points.Sight(self.a, self.b)
        self.keys("psk")
        whole = [Run(self, 0, who).play() for who in ("london", "paris")]
        usual = [self.check(run) for run in whole]
        self.assertTrue(all(run.codes == {"london": 0, "paris": 0} for run in whole), whole[0].logs)
        # A busy machine is late for some of the captures' intervals, which are partial then.
        self.assertTrue(all(measured and not unknown for measured, unknown in usual), usual)
        total = min(run.allocations for run in whole)
        self.assertGreater(total // 2, START + RUNS)
        chance = random.Random(SEED)
        # Half of them while it starts, half from when it shuts itself in; in between are those of the filter of system calls.
        numbers = sorted(chance.sample(range(1, START + 1), RUNS // 2) + chance.sample(range(total // 2, total + 1), RUNS // 2))
        refused = went_on = gaps = 0
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for run in pool.map(lambda at: Run(self, at[1], ("london", "paris")[at[0] % 2]).play(), enumerate(numbers)):
                _, unknown = self.check(run)
                refused += run.codes[run.who] != 0
                went_on += run.codes[run.who] == 0
                gaps += run.codes[run.who] == 0 and unknown > 0
        print(f"seed {SEED}: {total} allocations, {len(numbers)} of them failed: {refused} refused, {went_on} went on, {gaps} of these with intervals that are not known", file=sys.stderr)


if __name__ == "__main__":
    with open(command.PROGRAM, "rb") as program:
        code = program.read()
        if b"__asan_init" in code or b"__tsan_init" in code or not PRELOAD:
            print("a sanitizer has an allocator of its own, not tested")
            sys.exit(77)
    unittest.main()
