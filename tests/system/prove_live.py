#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves the live results: what two points say of real traffic is what `oneway match` finds in captures taken at both hosts during
the run, and what the wire did. Prints a row for each run of the lab; exit code 1 if anything differs.

    prove_live.py            the whole matrix, about ten minutes (make prove)
    prove_live.py --quick    a run of each kind, about a minute (a test of suite system)
    prove_live.py NAME...    these runs
    prove_live.py --capture kernel ...    the points record in the kernel: the captures, through a ring, have other times

Of each direction of a run, and of every interval in it: packets sent, received, matched (late ones are), lost and extra are equal, packet
for packet; the mean delay is within 100 ns. Only where packets are identical (a SYN that is repeated: its options stay out of the
identity) may an interval have one that another has, and the mean be off by what so many packets can move it: results say how many are
ambiguous, and mostly that is 0. If a SYN is lost and repeated, the intervals in between are partial: it is not known which was lost. Captures and measurement begin before the traffic and end after it, so that nothing has to be
forgiven at the ends. Every interval is final exactly once, in order, and conserves packets. When a result was ready is printed, never
judged: that depends on the machine."""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import statistics
import sys
import tempfile

from command import oneway
from test_lab import permitted

Run = collections.namedtuple("Run", "name interval_ns seconds options")
# What one run showed: `differs` is empty if all is well.
Proof = collections.namedtuple("Proof", "run packets lost late extra mean_ns ambiguous ready_ns cost differs")

MS = 10**6
WAYS = ("a_to_b", "b_to_a")
COUNTS = ("sent", "received", "matched", "lost", "extra")
# By how much means may be apart: by what the points round; and if they record in the kernel, because those times are taken later,
# and once in an interval long after the others, because the processor was taken away in between.
MEAN_NS, KERNEL_NS, AWAY_NS = 100, 2000, 1000000
FRAME_PACKETS = 46  # 64 KB by 1448: the packets of a superframe have one time
EXACT_NS, QUANTILE_SHARE = 2000, 1e-3
READY_NS = 50 * MS  # the goal
TOO_SLOW = "this machine is too slow, or too busy"
TRIES = 3
WAIT = "1s"  # --wait of the lab and --window of match
INTERVALS = {"100ms": 100 * MS, "1s": 1000 * MS, "10s": 10000 * MS}

UDP = ("--rate", "5000", "--reverse", "0.3", "--tcp", "0")
TCP = ("--rate", "3000", "--reverse", "0.3", "--tcp", "2", "--tcp-reverse", "1", "--bandwidth", "60M")


def run(name, interval, *options):
    # Long enough to cross the ends of several intervals, or of one that is long.
    return Run(name, INTERVALS[interval], 12 if interval == "10s" else 4, ("--interval", interval, *options))


def matrix():
    for interval in INTERVALS:
        for loss in ("0", "0.01%", "1%", "10%"):
            yield run(f"udp-{loss}-{interval}", interval, *UDP, "--loss", loss)
            yield run(f"tcp-{loss}-{interval}", interval, *TCP, "--loss", loss)
    # Packets come an interval late, or several.
    held = ("--delay", "normal:60ms,20ms", "--reorder", "0.2,150ms")
    yield run("reordered-udp", "100ms", *UDP, *held)
    yield run("reordered-tcp", "100ms", *TCP, *held, "--loss", "0.01%")
    yield run("duplicates", "100ms", *UDP, "--duplicate", "0.05", "--delay", "normal:30ms,10ms")
    # match takes no delay from a packet that comes twice and later than twice what is usual (so far): none does.
    yield run("duplicates-tcp", "1s", *TCP, "--duplicate", "0.01", "--base-delay", "60ms")
    yield run("nat", "1s", *UDP, "--nat")
    yield run("nat-tcp", "100ms", *TCP, "--nat", "--reorder", "0.1,30ms")
    yield run("rda-udp", "1s", *UDP, "--method", "rda")
    yield run("rda-tcp", "100ms", *TCP, "--method", "rda", "--loss", "0.01%")
    # All times exchanged: order and extremes of the delays as well.
    yield run("exact-udp", "1s", *UDP, "--exact", "--loss", "1%", "--delay", "normal:5ms,1ms")
    yield run("exact-tcp", "1s", *TCP, "--exact", "--reorder", "0.1,30ms")


QUICK = ("tcp-1%-100ms", "udp-10%-1s", "tcp-0.01%-10s", "reordered-tcp", "duplicates", "nat-tcp", "rda-udp", "exact-udp")


def count(result, name):
    """A count of a live result as match has it: late packets are matched."""
    if name == "matched":
        return result["matched"] + result["late"]
    return result[name]


def differences(where, live, exact, counts=COUNTS, shifted=0):
    """What differs between the counts of two results. shifted: so many packets may count in another interval."""
    for name in counts:
        if abs(live[name] - exact[name]) > shifted:
            yield f"{where}: {name} {live[name]}, not {exact[name]}"


def apart(this, ns, packets):
    """How far the mean of so many times that should be equal may be apart: so far, unless they are of two kinds."""
    return KERNEL_NS + AWAY_NS / max(1, packets) if "kernel" in this.options else ns


def mean_differs(this, where, live, exact, shifted=0):
    a, b = live["mean"], exact["mean"]
    apart_ns = apart(this, MEAN_NS, exact["matched"])
    # Packets whose delay only one of them has, and how far they can move the mean.
    others = live["ambiguous"] + exact["ambiguous"] + 2 * shifted
    if a is None or b is None:
        if a != b and not others:
            yield f"{where}: mean {a} ns, not {b} ns"
    elif abs(a - b) > apart_ns + others * exact["spread"] / max(1, exact["matched"] - others):
        yield f"{where}: mean {a} ns, not {b} ns"


def spread_of(delay):
    """Least and largest delay, and quantiles."""
    return {"min": delay["min"], "max": delay["max"], **(delay["quantiles"] or {})}


def plain(result):
    """Counts and mean of a RESULT."""
    delay = result["delay_ns"]
    return {**{name: result[name] for name in COUNTS}, "ambiguous": result["ambiguous"], "mean": delay["mean"],
            "delays": spread_of(delay), "reordered": result["reordered"],
            "spread": (delay["max"] or 0) - (delay["min"] or 0)}


def conserved(where, result):
    if result["status"] == "unknown":
        return
    if result["sent"] != result["matched"] + result["late"] + result["lost"] + result["pending"]:
        yield f"{where}: sent is not matched + late + lost + pending: {result}"
    if result["received"] != result["matched"] + result["late_received"] + result["extra"]:
        yield f"{where}: received is not matched + late_received + extra: {result}"
    if result["pending"] and result["status"] == "measured":
        yield f"{where}: final, but {result['pending']} are pending"


def in_order(way, results, length_ns):
    """Every interval exactly once, from the first on, and final."""
    for i, result in enumerate(results):
        start_ns = results[0]["start_ns"] + i * length_ns
        if (result["interval"], result["start_ns"], result["final"]) != (i, start_ns, True):
            yield f"{way}: result {i} is interval {result['interval']} from {result['start_ns']}, final: {result['final']}"
            return


def honest(this, where, result, exact, shifted, over):
    """RDA as published may read only a part of the differences: it says so, and estimates. What it counts is true in any case."""
    if result["status"] == "measured":
        yield from interval_differences(this, where, result, exact, shifted, over)
        return
    if not result.get("cause"):
        yield f"{where}: {result['status']}, but not why"
    if result["status"] == "unknown":
        return
    if abs(result["sample"]["total_sent"] - exact["sent"]) > over:
        yield f"{where}: sent {result['sample']['total_sent']}, not {exact['sent']}"
    if not 0 <= result["coverage"] <= 1:
        yield f"{where}: coverage {result['coverage']}"


def is_turn(result):
    """Partial, because it is not known which of some identical packets was lost."""
    return result["status"] == "partial" and re.fullmatch(r"\d+ identical packets?, late in their turn: .*", result["cause"])


def interval_differences(this, where, result, exact, shifted, over):
    # What was received in an interval is not what was received of an interval: match counts by the time of sending.
    live = {name: count(result, name) for name in ("sent", "matched", "lost")}
    live["mean"], live["ambiguous"] = result["delay_ns"]["mean"], result["ambiguous"]
    yield from differences(where, live, exact, ("sent",), over)
    yield from differences(where, live, exact, ("matched", "lost"), shifted + over)
    yield from mean_differs(this, where, live, exact, shifted + (over if live["sent"] != exact["sent"] else 0))


def exact_differences(this, where, result, exact, segments):
    """With all times, extremes, quantiles and order are those of the match. Their times are of other sockets."""
    if result["ambiguous"] or exact["ambiguous"] or not exact["matched"]:
        return
    if not result["exact"] or result["reordered"] is None:
        yield f"{where}: not exact, or without order"
        return
    live_delays = spread_of(result["delay_ns"])
    for name, value in exact["delays"].items():
        live = live_delays[name]
        if value is not None and abs(live - value) > apart(this, EXACT_NS, 1) + QUANTILE_SHARE * abs(value):
            yield f"{where}: {name} of the delay {live} ns, not {value} ns"
    # match takes the packets of a frame with segments as sent at once; points know their order.
    if result["reordered"] < exact["reordered"] or (result["reordered"] != exact["reordered"] and not segments):
        yield f"{where}: reordered {result['reordered']}, not {exact['reordered']}"


def by_start(found, way):
    """The intervals of match, counts and mean, by their start."""
    return {i["start_ns"]: plain(i if way == "a_to_b" else i["b_to_a"]) for i in found["intervals"] if way == "a_to_b" or i["b_to_a"]}


NOTHING = {**dict.fromkeys(COUNTS, 0), "ambiguous": 0, "mean": None, "delays": {},
           "reordered": 0, "spread": 0}


def check_way(this, way, results, pair, found):
    """Everything that must hold of one direction."""
    rda = "rda" in this.options
    shifted = sum(result["ambiguous"] or 0 for result in results)
    # A frame that is recorded at the end of an interval may have a time before it and one after it.
    over = FRAME_PACKETS if "kernel" in this.options else 0
    intervals = by_start(found, way)
    yield from in_order(way, results, this.interval_ns)
    starts = {result["start_ns"] for result in results}
    for start in intervals.keys() - starts:
        if intervals[start] != NOTHING:
            yield f"{way}: no result of the interval from {start}"
    for result in results:
        where = f"{way}, interval {result['interval']}"
        exact = intervals.get(result["start_ns"], NOTHING)
        yield from conserved(where, result)
        if rda:
            yield from honest(this, where, result, exact, shifted, over)
            continue
        if result["status"] != "measured" and not (shifted and is_turn(result)):
            yield f"{where}: {result['status']}: {result.get('cause')}"
            continue
        yield from interval_differences(this, where, result, exact, shifted, over)
        if "--exact" in this.options:
            yield from exact_differences(this, where, result, exact, "60M" in this.options)
    exact = plain(found[way]) if found[way] else NOTHING
    live, true = plain(pair["result"]), plain(pair["truth"])
    yield from differences(f"{way}, wire and match", true, exact)
    if not rda:
        yield from differences(f"{way}, points and match", live, exact)
        yield from mean_differs(this, f"{way}, points and match", live, exact)


def drops(rows, summary):
    """Frames that the machinery lost, not the wire: such a run proves nothing."""
    rings = sum(sum(row["result"]["ring_drops"].values()) for row in rows)
    return {"rings": rings, **{name: summary["wire"][name] for name in ("missed", "kernel_drops", "capture_drops")}}


def check(this, rows, summary, found):
    dropped = drops(rows, summary)
    if any(dropped.values()):
        yield f"{TOO_SLOW}: {dropped}"
    outside = {**found["outside_overlap"], **{"unclassified " + side: n for side, n in found["unclassified"].items()}}
    if any(outside.values()):
        yield f"match leaves packets out: {outside}"
    for way, pair in ((WAYS[0], summary), (WAYS[1], summary["b_to_a"])):
        yield from check_way(this, way, [line["result"] for line in rows if line["direction"] == way], pair, found)


def failed(this, done):
    return Proof(this, 0, 0, 0, 0, 0, (0, 0), [], 0, [done.stderr.strip()])


def prove(this, folder):
    """Runs the lab with captures, matches them, compares."""
    lab = oneway("lab", "--json", "--seconds", this.seconds, "--wait", WAIT, *this.options, "--keep-captures", folder, timeout=300)
    if lab.returncode or "not recorded in the kernel" in lab.stderr:
        return failed(this, lab)
    with open(f"{folder}/lab.json", "w") as f:
        f.write(lab.stdout)
    level = "nat" if "--nat" in this.options else "ip"
    match = oneway("match", "--json", "--level", level, "--window", WAIT, "--interval", f"{this.interval_ns}ns", f"{folder}/a.pcap",
                   f"{folder}/b.pcap", timeout=300)
    if match.returncode:
        return failed(this, match)
    rows = [json.loads(line) for line in lab.stdout.splitlines()]
    summary = rows.pop()["summary"]
    found = json.loads(match.stdout)
    pairs = (summary, summary["b_to_a"])
    results = [row["result"] for row in rows]
    apart = [abs(p["result"]["delay_ns"]["mean"] - found[way]["delay_ns"]["mean"]) for way, p in zip(WAYS, pairs)
             if found[way] and found[way]["samples"] and p["result"]["delay_ns"]["mean"] is not None]
    return Proof(
        this,
        packets=sum(p["truth"]["sent"] for p in pairs),
        lost=sum(p["truth"]["lost"] for p in pairs),
        late=sum(r["late"] or 0 for r in results),
        extra=sum(p["truth"]["extra"] for p in pairs),
        mean_ns=max(apart, default=0),
        ambiguous=tuple(sum(x["ambiguous"] for x in xs) for xs in ([p["result"] for p in pairs], [found[way] for way in WAYS if found[way]])),
        ready_ns=[r["cost"]["ready_ns"] for r in results if r["sent"]],
        cost=summary["cost"]["bytes"] / max(1, summary["cost"]["traffic_bytes"]),
        differs=list(check(this, rows, summary, found)),
    )


def prove_once(this, keep):
    """The files stay only where they tell of a difference, and are wanted."""
    with tempfile.TemporaryDirectory(prefix="oneway-prove-") as folder:
        proof = prove(this, folder)
        if proof.differs and keep:
            shutil.copytree(folder, os.path.join(keep, this.name), dirs_exist_ok=True)
        return proof


def prove_patiently(this, keep):
    """Again where the machine was too busy for the traffic."""
    for _ in range(TRIES):
        proof = prove_once(this, keep)
        if not proof.differs or not proof.differs[0].startswith(TOO_SLOW):
            break
    return proof


def put(proof):
    ready = sorted(proof.ready_ns) or [0]
    above = sum(ns > READY_NS for ns in ready) / len(ready)
    ambiguous = "{}/{}".format(*proof.ambiguous)
    print(f"{proof.run.name:16} {proof.packets:8} {proof.lost:6} {proof.late:6} {proof.extra:6} {ambiguous:>9} {proof.mean_ns:8.2f} "
          f"{100 * proof.cost:6.2f} {statistics.median(ready) / MS:7.1f} {ready[-1] / MS:6.1f} {100 * above:5.1f}  "
          f"{'DIFFERS' if proof.differs else 'equal'}", flush=True)
    for line in proof.differs[:8]:
        print("    " + line[:400])
    if len(proof.differs) > 8:
        print(f"    and {len(proof.differs) - 8} more")


def main():
    parser = argparse.ArgumentParser(description="Proves the live results; see the head of this file.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--capture", choices=("auto", "kernel"), default="auto", help="how the points record")
    parser.add_argument("--jobs", type=int, default=2, help="labs at a time; each has namespaces of its own")
    parser.add_argument("--keep", metavar="DIR", help="for captures and results of runs that differ")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    for program in ("tcpdump", "iperf3"):
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            return 77
    if not permitted():
        print("skipped: network namespaces are not permitted here (they need root)")
        return 77
    chosen = args.names or (QUICK if args.quick else [])
    runs = [r._replace(options=(*r.options, "--capture", args.capture)) for r in matrix() if not chosen or r.name in chosen]
    if len(runs) < len(chosen):
        parser.error(f"the runs are: {' '.join(r.name for r in matrix())}")
    print(f"{'':16} {'':8} {'':6} {'':6} {'':6} {'ambiguous':>9} {'mean off':>8} {'cost':>6} {'ready':>7} {'most':>6} {'>50ms':>5}")
    print(f"{'run':16} {'packets':>8} {'lost':>6} {'late':>6} {'extra':>6} {'live/m.':>9} {'ns':>8} {'%':>6} {'ms':>7} {'ms':>6} {'%':>5}")
    ready, wrong = [], 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for proof in pool.map(lambda this: prove_patiently(this, args.keep), runs):
            put(proof)
            ready += proof.ready_ns
            wrong += bool(proof.differs)
    above = sum(ns > READY_NS for ns in ready)
    if ready:
        print(f"{len(ready)} results were ready {statistics.median(ready) / MS:.1f} ms (median) after the end of their interval, "
              f"{100 * above / len(ready):.1f} % of them after more than {READY_NS // MS} ms.")
    print(f"{len(runs) - wrong} of {len(runs)} runs are equal, packet for packet.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
