#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perturbed captures with the truth of every packet, and a judge of what `oneway match` says of them.

    perturb.py ONEWAY                          300 cases; with --repaired those that were wrong once (`make test` has some)
    perturb.py ONEWAY --cases 5000 --first 1   as many as you like
    perturb.py ONEWAY --seed 17 --keep DIR     one case; its captures stay in DIR
    perturb.py ONEWAY --first 20001            with those that came later: clock steps, detours, holes in both, lopsided
    perturb.py ONEWAY --first 200001           .. coarse clocks, slews, trailers, one fibre of two, bursts of drops, retries
    perturb.py ONEWAY --first 700001           .. checksums to come, load balancers, IPv6 options, padding, time that wraps
    perturb.py ONEWAY --with nat,loss          cases of this composition
"""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases import PERTURBATIONS, Case  # noqa: E402
from judge import WAYS, Judge, names_cause, said_of  # noqa: E402
from metamorphic import check  # noqa: E402


# Were wrong without a word, each by a mechanism of its own.
REPAIRED = [
    40791,  # a UDP superframe of two datagrams of an unusual size
    11704,  # TCP superframes, captures that end within the TCP header
    1517, 11648,  # identical packets in a queue of seconds: others that arrive beside them tell when they were sent
    40514, 40950, 20253, 11581,  # the first packets of a flood were taken for ones from before the capture
    10033, 40971,  # copies that arrived before the other capture started
    1666,  # faster than all others, before the other capture started
    20178, 21018, 60082, 20411, 40891,  # holes of which few packets, or wrong pairs, tell
    60071, 60126, 60188, 21308, 60381, 60588,  # clocks that are set
    40075,  # both captures drop packets of a flood
    40890,  # one-way traffic from B to A was aligned as A to B
    60739, 20452,  # one packet counts as lost in a hole, and others of the hole are in flows that were never seen, or in one of both captures
    40650, 40685, 40994,  # few identical packets, a detour, and duplicates
    60740,  # copies were known for seconds of the clock
    60752,  # packets that take longer than the waiting time
    20010,  # whether a flow was lost depended on where the clocks were
    60983, 97234, (70102, "clock_step"),  # clocks that are set, with few packets of a direction, or like a drift
    40486,  # the same, with identical packets that are taken for earlier ones
    40895,  # the clock decided which packets are outliers, and they decided the clock
    97063,  # identical packets that are faster than all others
    287,  # identical packets in flight when a capture ends
    60974,  # polls after the end of the sender's capture
    20200,  # a hole while the delays grow
    (1249, "mirror"),  # a single packet that is shown twice
    200070,  # flows of a packet whose direction was taken from a clock that was not settled yet
    200066,  # a clock that is read at 64 Hz
    1460,  # delays that got shorter with every pass
    95047,  # a clock that is set, few packets afterwards, and some of them in a queue
    (77, "reordering,repeats"),  # identical packets overtake each other where no others show it
    (500041, "bufferbloat,route_change"),  # a queue releases a flood at once
    (500015, "bufferbloat,repeats"),  # one direction takes longer than the waiting time
    300482,  # a clock that is adjusted while one direction varies by more than that
    700099,  # copies of one time were ambiguous as a whole, and not in their intervals
    (40010, "duplicates,loss,repeats"),  # a duplicate is taken for a lost packet where no others are duplicated
]

PATIENCE_S = 300  # for one match: it may have to give way to all others


def run(program, paths, options):
    return subprocess.run([program, "match", "--json", *options, *paths], capture_output=True, text=True, timeout=PATIENCE_S)


def ways_to_ask(case):
    """The options with which a user would ask of this case."""
    asked = [[]]
    if {"offset", "drift", "zone", "drift_one_way", "clock_step", "slew", "coarse"} & set(case.names) or case.seed % 5 == 0:
        asked.append(["--offset", "auto"])
    if case.one_direction and not any(u.direction for u in case.net.units):
        asked.append(["--one-direction"])
    if case.seed % 8 == 3:
        asked.append(["--interval", "1s"])
    return asked


class Verdict:
    def __init__(self, case, options, judge=None, faults=(), minor=()):
        self.case, self.options, self.judge = case, options, judge
        self.faults = list(faults) + (judge.faults if judge else [])
        self.minor = list(minor) + (judge.minor if judge else [])
        self.excused = judge.excused if judge else []

    def show_line(self, minor, excused):
        told = self.faults + (self.minor if minor else []) + (self.excused if excused else [])
        if told:
            print(f"{self.case.seed} {'+'.join(self.case.names)} {' '.join(self.options)}: " + "; ".join(f"{k}: {t}" for k, t in told))

    def show(self, program, forced):
        command = f"tests/perturb/perturb.py {program} --seed {self.case.seed}" + (f" --with {','.join(self.case.names)}" if forced else "")
        print(f"seed {self.case.seed}: {' + '.join(self.case.names) or 'nothing perturbed'}; traffic: {', '.join(self.case.kinds)}")
        print(f"  oneway match {' '.join(self.options)}")
        for kind, text in self.faults + [("minor: " + k, t) for k, t in self.minor] + [("excused: " + k, t) for k, t in self.excused]:
            print(f"  {kind}: {text}")
        if self.judge:
            for d, way in enumerate(WAYS):
                print(f"  {way} truth: {self.judge.truth[d]}")
                print(f"         said:  {said_of(self.judge.result[way])}")
            r = self.judge.result
            print(f"  identity {r['identity']}, clock {r['clock']}, window {r['window_ns']}, unclassified {r['unclassified']}, "
                  f"outside {r['outside_overlap']}, skipped {r['skipped']}")
            for warning in r["warnings"]:
                print(f"  warning: {warning}")
        print(f"  {command} --keep DIR")


def answer(program, paths):
    done = run(program, paths, [])
    return json.loads(done.stdout) if done.returncode == 0 else None


def try_case(program, case, folder, changes):
    verdicts = []
    paths = case.write(folder)
    for options in ways_to_ask(case):
        try:
            done = run(program, paths, options)
        except subprocess.TimeoutExpired:
            verdicts.append(Verdict(case, options, faults=[("timeout", f"no answer within {PATIENCE_S} s")]))
            continue
        if done.returncode == 0:
            judge = Judge(case, json.loads(done.stdout), options)
            if changes and not options:
                judge.faults += check(case, folder, lambda paths: answer(program, paths), judge.result)
            verdicts.append(Verdict(case, options, judge))
        elif done.returncode == 1 and done.stderr.count("\n") == 1:
            common = sum(1 for u in case.net.units if u.near and u.far)
            minor = [("refused", f"{common} packets in common: {done.stderr.strip()}")] if common > 10 and not names_cause(case, done.stderr) else []
            verdicts.append(Verdict(case, options, minor=minor))
        else:
            verdicts.append(Verdict(case, options, faults=[("exit", f"{done.returncode}: {done.stderr.strip()}")]))
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one, told in full")
    parser.add_argument("--keep", metavar="DIR", help="leave the captures there")
    parser.add_argument("--with", dest="names", help="perturbations instead of those of the seed: nat,loss; none: -")
    parser.add_argument("--minor", action="store_true", help="tell of answers that are refused or leave much out, too")
    parser.add_argument("--excused", action="store_true", help="tell of wrong results that name the cause, too")
    parser.add_argument("--changes", type=int, default=10, metavar="N", help="change the captures of every N-th case in ways that must make no difference")
    parser.add_argument("--repaired", action="store_true", help="also those that were wrong once")
    parser.add_argument("--quiet", action="store_true", help="one line a fault")
    args = parser.parse_args()
    names = None if args.names is None else [n for n in args.names.split(",") if n in PERTURBATIONS]
    if args.names not in (None, "-") and len(names) != len(args.names.split(",")):
        parser.error(f"perturbations are: {' '.join(sorted(PERTURBATIONS))}")
    seeds = [args.seed] if args.seed is not None else [*range(args.first, args.first + args.cases)]
    cases = [(seed, names) for seed in seeds] + [(r, None) if isinstance(r, int) else (r[0], r[1].split(",")) for r in REPAIRED if args.repaired]
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    failed, minor, excused, results = 0, collections.Counter(), collections.Counter(), 0
    kinds = collections.Counter()
    for seed, names in cases:
        case = Case(seed, names)
        for verdict in try_case(args.program, case, folder, seed % args.changes == 0):
            results += 1
            excused.update({k for k, _ in verdict.excused})
            minor.update({k for k, _ in verdict.minor})
            if verdict.faults:
                failed += 1
                kinds.update({k for k, _ in verdict.faults})
            if args.quiet:
                verdict.show_line(args.minor, args.excused)
            elif verdict.faults or args.seed is not None or args.minor and verdict.minor or args.excused and verdict.excused:
                verdict.show(args.program, names is not None)
        if not args.keep:
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
    if not args.keep:
        shutil.rmtree(folder)
    print(f"{len(cases)} cases, {results} results: {failed} wrong without a word {dict(kinds)}; wrong and said so: {dict(excused)}; "
          f"minor: {dict(minor)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
