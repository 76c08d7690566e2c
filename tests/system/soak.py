#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the whole system for a while and shows that it could go on for ever. Two points in network namespaces watch both ends of a wire
that delays, loses, reorders and duplicates packets and knows what it did (labwire.c); three classes in both directions, a rate that goes up and
down, a store with retention, /metrics scraped every second.

    soak.py [--seconds TIME] [--csv FILE]      TIME: 90, 90s, 10m, 1h (make soak SOAK=1h)

Exit code 1 unless all of this holds:

- Loss. In every interval that is measured, of each direction, as many packets are lost as the wire dropped; where an interval is partial,
  not more. The wire stamps a packet microseconds after the point does, so that one may count in the next interval there: runs of intervals are
  compared, the shortest ones over which both have counted the same packets as sent.
- Accounts. Each lane has every interval once, final, in order, at both points, and both say the same; sent = matched + late + lost + pending,
  received = matched + late_received + extra. So has the store what it still retains. The counters of /metrics are the sums.
- Memory. A leak that matters fills the memory budget within 30 days: memory that is allocated (oneway_memory_allocated_bytes) must not grow
  faster than that. Its least in each cycle of the rate, when there is no traffic, is fitted by a line, after a quarter of the time; it grows if
  the slope is above the limit by more than chance allows (99.9 %). Whether the run was long enough to exclude such a leak is printed, too:
  "flat", else "no growth seen". The heap (anonymous pages) has besides what was needed once: records of a load that does not change become rarer,
  and higher by the logarithm of time. Extrapolated so to 30 days it must be within the budget.
- Descriptors and threads: in the last quarter it has at some moment as few as in the second one. The store's file: in the second half not more
  than an eighth larger than before (the free part that it may have), once its retention has passed; its log below its limit."""
import argparse
import collections
import csv
import ctypes
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PROGRAM = os.environ.get("ONEWAY", "build/oneway")
LABWIRE = os.environ.get("LABWIRE", "build/tests/system/labwire")
SKIPPED = 77
FIRST = ("nice", "-n", "-10")  # real points do not share their processors with the wire and both ends of the traffic
# What glibc's threads keep of freed memory, up to 236 KiB each, counts as allocated, and comes little by little.
TUNABLES = "glibc.malloc.tcache_count=0"
PATIENCE = 60  # seconds for what takes one

CLASSES = ("voice", "web", "bulk")  # by port, from 9000 on
RATES = (400, 300, 300)  # packets a second and direction, times
CYCLE = (1, 4, 0.25, 0, 2)  # this, one after the other
WIRE = ("weibull:3ms,0.8", "0.01", "0.02", "0.005")  # delay, loss, reordering, duplicates
WAIT = 1  # seconds
MEMORY = 64 << 20  # of packets; all else takes a part of it only
RETENTION = 60  # seconds, the shortest
LOG_MAX = (4 << 20) + (1 << 20)  # of the store: docs/store.md, and a transaction
MONTH = 30 * 86400
MIB = 1 << 20
COUNTS = ("sent", "received", "matched", "late", "late_received", "lost", "pending", "extra", "duplicated")
# One-sided 99.9 % quantiles of Student's t by degrees of freedom.
STUDENT = ((1, 318.3), (2, 22.33), (3, 10.21), (4, 7.17), (5, 5.89), (6, 5.21), (7, 4.79), (8, 4.50), (10, 4.14), (15, 3.73), (20, 3.55),
           (30, 3.39), (60, 3.23))

CONFIG = """point: {name}
psk: key.psk
memory: {memory}
store: {name}.db
retention: {retention}s
store_max: 64MiB
metrics: 127.0.0.1:9620
output: json
interfaces:
  - {{name: wire0, ring: 8MiB}}
"""
LISTENS = """listen: 192.0.2.2:8620
segments:
  - {name: wire, peer: a, interfaces: [wire0]}
"""
CONNECTS = """segments:
  - name: wire
    peer: b
    connect: 192.0.2.2:8620
    interfaces: [wire0]
    interval: {interval}ms
    wait: {wait}s
    classes:
"""


def seconds_of(text):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h|d)?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no time: 90s, 10m, 1h")
    return float(match[1]) * {None: 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[match[2]]


def in_thread(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


class Wire:
    """labwire: hosts, wire, traffic, truth."""

    def __init__(self, interval_ms, seed):
        self.process = subprocess.Popen([LABWIRE, f"{interval_ms}ms", *WIRE, str(seed)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.wait())
        first = json.loads(line)
        self.hosts, self.relay = first["hosts"], first["relay"]
        self.truth = {"a": {}, "b": {}}  # by start
        self.totals = {}
        self.seed = seed
        self.reader = in_thread(self.read)

    def read(self):
        for line in self.process.stdout:
            report = json.loads(line)
            if report["total"]:
                self.totals[report["from"]] = report
            else:
                self.truth[report["from"]][report["start_ns"]] = report

    def rate(self, times):
        for number, pps in enumerate(RATES):
            for host in "ab":
                self.seed += 1
                self.process.stdin.write(f"rate {host} {number} {pps * times} {self.seed}\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE)
        self.reader.join(PATIENCE)
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Point:
    """A point as a process; its results are taken in while it runs."""

    def __init__(self, name, host, folder):
        self.name = name
        self.folder = folder
        self.log = open(os.path.join(folder, f"{name}.log"), "w+")
        self.process = subprocess.Popen(["nsenter", f"--net={host}", *FIRST, PROGRAM, "point", "-c", f"{folder}/{name}.yaml"],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env={**os.environ, "GLIBC_TUNABLES": TUNABLES})
        self.final = collections.defaultdict(list)  # by lane: (class, from)
        self.begun = set()
        self.lines = 0
        self.metrics = {}
        self.scrapes = self.scrapes_failed = 0
        self.scraping = True
        self.reader = in_thread(self.read)
        self.scraper = in_thread(self.scrape, host)

    def read(self):
        for line in self.process.stdout:
            result = json.loads(line)
            self.lines += 1
            if "status" not in result:
                continue
            lane = (result["class"], result["from"])
            self.begun.add(lane)
            if result["final"]:
                keep = ("interval", "start_ns", "status", "ring_drops", *COUNTS)
                self.final[lane].append({**{k: result[k] for k in keep}, "cause": result.get("cause")})

    def scrape(self, host):
        """Within the point's namespace, which is a matter of the thread."""
        with open(host) as ns:
            assert ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), 0x40000000) == 0  # CLONE_NEWNET
        while self.scraping:
            try:
                with urllib.request.urlopen("http://127.0.0.1:9620/metrics", timeout=10) as page:
                    self.metrics = dict(line.rsplit(" ", 1) for line in page.read().decode().splitlines() if line and line[0] != "#")
                self.scrapes += 1
            except OSError:
                self.scrapes_failed += self.scrapes > 0
            time.sleep(1)

    def said(self):
        self.log.flush()
        with open(self.log.name) as f:
            return f.read()

    def stop_scraping(self):
        self.scraping = False
        self.scraper.join(PATIENCE)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        self.reader.join(PATIENCE)
        return code

    def close(self):
        self.scraping = False
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def sample(self):
        """What the process holds now."""
        pid = self.process.pid
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        store = os.path.join(self.folder, f"{self.name}.db")
        size = lambda path: os.path.getsize(path) if os.path.exists(path) else 0
        return {
            "allocated": int(float(self.metrics.get("oneway_memory_allocated_bytes", 0))),
            "resident": int(status["VmRSS"].split()[0]) * 1024,
            "heap": int(status["RssAnon"].split()[0]) * 1024,
            "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "store": size(store),
            "log": size(store + "-wal"),
        }


Sample = collections.namedtuple("Sample", "seconds cycle values")  # values: by point


class Soak:
    def __init__(self, seconds, folder, memory=True):
        self.seconds, self.folder, self.memory = seconds, folder, memory
        self.interval_ms = 100 if seconds < 120 else 500
        self.cycle_s = min(60, max(5, seconds / 16))
        self.sample_s = min(5, max(0.25, seconds / 600))
        self.progress_s = max(5, seconds / 30)
        # The store, and what SQLite keeps of it in memory, grow until the retention has passed.
        self.steady = seconds / 4 >= 1.5 * RETENTION
        self.samples = []
        self.seed = 1
        self.wire = None
        self.points = {}
        self.wrong = []

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(text)

    def start(self):
        self.write("key.psk", "%064x\n" % int.from_bytes(os.urandom(32), "big"))
        common = {"memory": MEMORY, "retention": RETENTION}
        classes = "".join(f"      - {{name: {name}, filter: udp dst port {9000 + i}}}\n" for i, name in enumerate(CLASSES))
        self.write("b.yaml", CONFIG.format(name="b", **common) + LISTENS)
        self.write("a.yaml", CONFIG.format(name="a", **common) + CONNECTS.format(interval=self.interval_ms, wait=WAIT) + classes)
        self.wire = Wire(self.interval_ms, self.seed)
        for name in "ba":
            self.points[name] = Point(name, self.wire.hosts[name], self.folder)
        end = time.monotonic() + PATIENCE
        while min(len(p.begun) for p in self.points.values()) < 2 * len(CLASSES):
            if time.monotonic() > end or any(p.process.poll() is not None for p in self.points.values()):
                raise RuntimeError("the points do not measure:\n" + "\n".join(p.said() for p in self.points.values()))
            time.sleep(0.05)

    def run(self):
        start = time.monotonic()
        step = self.cycle_s / len(CYCLE)
        phase, next_sample, next_line = -1, start, start + self.progress_s
        while (now := time.monotonic()) - start < self.seconds:
            if int((now - start) / step) != phase:
                phase = int((now - start) / step)
                self.wire.rate(CYCLE[phase % len(CYCLE)])
            if now >= next_sample:
                self.samples.append(Sample(now - start, phase // len(CYCLE), {n: p.sample() for n, p in self.points.items()}))
                next_sample += self.sample_s * (1 + int((now - next_sample) / self.sample_s))
            if now >= next_line:
                self.progress(now - start)
                next_line += self.progress_s
            time.sleep(max(0, min(next_sample, next_line, start + (phase + 1) * step) - time.monotonic()))
        self.wire.rate(0)

    def end(self):
        # What is under way arrives, the last packets become final, and the counters have them.
        time.sleep(WAIT + 4 * self.interval_ms / 1000 + 2)
        for p in self.points.values():
            p.stop_scraping()
        for name, p in self.points.items():
            if code := p.end():
                self.fail(f"point {name} ended with exit code {code}")
        if code := self.wire.end():
            self.fail(f"the wire ended with exit code {code}")

    def close(self):
        for p in self.points.values():
            p.close()
        if self.wire:
            self.wire.close()

    def fail(self, text):
        self.wrong.append(text)

    # -- progress

    HEAD = f"{'seconds':>7} {'results':>7} {'other':>5} {'sent':>9} {'lost':>7} {'wire':>7}" + "".join(
        f" | {name} {'MiB':>4} {'heap':>5} fds {'store':>5}" for name in "ab")

    def progress(self, elapsed):
        """The wire is ahead by the waiting time."""
        final = [r for way in self.points["a"].final.values() for r in list(way)]
        dropped = sum(r["lost"] for way in self.wire.truth.values() for r in list(way.values()))
        values = self.samples[-1].values
        print(f"{elapsed:7.0f} {len(final):7} {sum(r['status'] != 'measured' for r in final):5} {sum(r['sent'] or 0 for r in final):9} "
              f"{sum(r['lost'] or 0 for r in final):7} {dropped:7}" + "".join(
                  f" | {v['resident'] / MIB:6.1f} {v['heap'] / MIB:5.1f} {v['descriptors']:3} {v['store'] / MIB:5.2f}" for v in (values[n] for n in "ab")), flush=True)

    # -- what must hold

    def check_accounts(self):
        for name, p in self.points.items():
            if len(p.final) != 2 * len(CLASSES):
                self.fail(f"{name} has {len(p.final)} lanes, not {2 * len(CLASSES)}")
            for lane, results in p.final.items():
                for i, r in enumerate(results):
                    if r["interval"] != i:
                        self.fail(f"{name}, {lane}: final result {i} is of interval {r['interval']}")
                        break
                for r in results:
                    if r["status"] == "unknown":
                        continue
                    if r["sent"] != r["matched"] + r["late"] + r["lost"] + r["pending"] or r["received"] != r["matched"] + r["late_received"] + r["extra"]:
                        self.fail(f"{name}, {lane}: not conserved: {r}")
        a, b = (self.points[n].final for n in "ab")
        for lane in a.keys() & b.keys():
            ours, theirs = a[lane], b[lane]
            # The one that was asked first to end may know an interval less. If the other is held up, it has more, of which it knows nothing.
            last = min(len(ours), len(theirs)) + 1
            if known := sum(r["status"] != "unknown" for r in ours[last:] + theirs[last:]):
                self.fail(f"{lane}: {len(ours)} intervals at a, {len(theirs)} at b, {known} of them known")
            for x, y in zip(ours, theirs):
                if x["status"] == y["status"] == "measured" and any(x[k] != y[k] for k in COUNTS):
                    self.fail(f"{lane}: the points differ: {x} {y}")

    def by_interval(self, way):
        """The classes of a direction together, in order: start, sums (None: what was sent is not known), whether all are measured."""
        lanes = [self.points[way].final[(name, way)] for name in CLASSES]
        for results in zip(*lanes):
            # What the sending point's ring missed was sent, but is in no account.
            if any(r["status"] == "unknown" or r["ring_drops"]["from"] for r in results):
                yield results[0]["start_ns"], None, False
                continue
            sums = {k: sum(r[k] for r in results) for k in COUNTS}
            yield results[0]["start_ns"], sums, all(r["status"] == "measured" for r in results)

    def check_losses(self, way):
        """Returns (intervals judged, of them alone, lost)."""
        truth = self.wire.truth[way]
        none = {"sent": 0, "lost": 0, "missed": 0}
        missed = judged = alone = lost = 0
        run = []  # (start, points, wire, measured) since both had counted the same packets
        ahead = 0
        synchronous = True
        for start, sums, measured in self.by_interval(way):
            wire = truth.get(start, none)
            dropped, missed = wire["missed"] - missed if start in truth else 0, max(missed, wire["missed"])
            if sums is None or dropped:
                run, ahead, synchronous = [], 0, False
                continue
            if not synchronous and sums["sent"] != wire["sent"]:
                continue
            synchronous = True
            run.append((start, sums, wire, measured))
            ahead += sums["sent"] - wire["sent"]
            if ahead:
                if len(run) > 20:
                    self.fail(f"from {way}, interval at {start}: sent differs from the wire's by {ahead} for {len(run)} intervals")
                    run, ahead, synchronous = [], 0, False
                continue
            said, true = sum(r[1]["lost"] for r in run), sum(r[2]["lost"] for r in run)
            if said > true or (said != true and all(r[3] for r in run)):
                self.fail(f"from {way}, interval at {run[0][0]}: {said} lost, the wire dropped {true}")
            judged += len(run)
            alone += len(run) == 1
            lost += said
            run = []
        return judged, alone, lost

    def check_store(self, name):
        """What is retained is final, in order, and what was said."""
        said = {(lane, r["start_ns"]): r for lane, results in self.points[name].final.items() for r in results}
        rows = 0
        with sqlite3.connect(os.path.join(self.folder, f"{name}.db")) as store:
            if store.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                self.fail(f"{name}: the store is damaged")
            if lost := store.execute("SELECT value FROM meta WHERE key = 'not_stored'").fetchone():
                self.fail(f"{name}: {lost[0]} intervals are not in the store")
            before = {}
            for way_class, way, start, length, final, status, sent, dropped in store.execute(
                    "SELECT class, from_point, start_ns, length_ns, final, status, sent, lost FROM results ORDER BY start_ns"):
                lane = (way_class, way)
                rows += 1
                if lane in before and start != before[lane]:
                    self.fail(f"{name}, {lane}: the store has no result at {before[lane]}")
                before[lane] = start + length
                result = said.get((lane, start))
                if not final or not result or (status, sent, dropped) != (result["status"], result["sent"], result["lost"]):
                    self.fail(f"{name}, {lane}: stored at {start}: {status} {sent} {dropped}, said {result}")
        store.close()
        return rows

    def check_metrics(self, name):
        """Counters are the sums of what the point has said."""
        p = self.points[name]
        for metric, counted in (("oneway_packets_lost_total", lambda r: r["lost"]), ("oneway_packets_compared_total", lambda r: r["sent"] - r["pending"]),
                                ("oneway_packets_extra_total", lambda r: r["extra"])):
            shown = sum(float(v) for k, v in p.metrics.items() if k.startswith(metric + "{"))
            total = sum(counted(r) for results in p.final.values() for r in results if r["status"] != "unknown")
            if shown != total:
                self.fail(f"{name}: {metric} is {shown:.0f}, results say {total}")
        if p.scrapes_failed:
            self.fail(f"{name}: {p.scrapes_failed} scrapes failed")

    def series(self, name, what):
        """After the first quarter, whole cycles: (cycle, seconds, value)."""
        warm = [s for s in self.samples if s.seconds >= self.seconds / 4]
        first, last = warm[0].cycle + 1, warm[-1].cycle - 1
        return [(s.cycle, s.seconds, s.values[name][what]) for s in warm if first <= s.cycle <= last]

    def check_allocated(self, name):
        """Returns slope, its error (99.9 %) and the verdict."""
        limit = MEMORY / MONTH
        cycles = collections.defaultdict(list)
        for cycle, seconds, value in self.series(name, "allocated"):
            if value:
                cycles[cycle].append((value, seconds))
        least = [(seconds, value) for value, seconds in map(min, cycles.values())]
        if len(least) < 4 or not self.steady:
            return None, None, "too short"
        slope, error = regression(least)
        if slope - error > limit:
            self.fail(f"{name}: allocated memory grows by {slope:.0f} +- {error:.0f} bytes a second; the limit is {limit:.1f}")
            return slope, error, "GROWS"
        return slope, error, "flat" if slope + error <= limit else "no growth seen"

    def check_heap(self, name):
        """What it would have after a month, growing with the logarithm of time."""
        quarter = [s for s in self.samples if s.seconds >= self.seconds / 4]
        first, last = quarter[0], quarter[-1]
        now = max(s.values[name]["heap"] for s in self.samples)
        growth = max(0, last.values[name]["heap"] - first.values[name]["heap"]) / math.log(last.seconds / first.seconds)
        then = now + growth * math.log(MONTH / last.seconds)
        if then > MEMORY:
            self.fail(f"{name}: {mib(now)} heap, in 30 days {mib(then)}; the budget is {mib(MEMORY)}")
        return f"in 30 days {mib(then)}" + (" GROWS" if then > MEMORY else "")

    def check_least(self, name, what):
        """Other connections than ours come and go: what leaks is never given back."""
        quarters = [[s.values[name][what] for s in self.samples if n <= 4 * s.seconds / self.seconds < n + 1] for n in range(4)]
        if min(quarters[3]) > min(quarters[1]):
            self.fail(f"{name}: {what} went from {min(quarters[1])} to {min(quarters[3])}")
            return "GROWS"
        return "flat"

    def check_store_size(self, name):
        if not self.steady:
            return "too short"
        sizes = [s.values[name]["store"] for s in self.samples if s.seconds >= self.seconds / 4]
        half = len(sizes) // 2
        if max(sizes[half:]) > 9 / 8 * max(sizes[:half]):
            self.fail(f"{name}: the store went from {max(sizes[:half])} to {max(sizes[half:])} bytes")
            return "GROWS"
        return "flat"

    def check_log(self, name):
        most = max(s.values[name]["log"] for s in self.samples)
        if most > LOG_MAX:
            self.fail(f"{name}: the log of the store has {most} bytes")
        return "bounded" if most <= LOG_MAX else "GROWS"

    # -- the end

    def verdict(self, name, what):
        """Slope and error of what has one, and the verdict."""
        if what == "allocated" and self.memory:
            return self.check_allocated(name)
        checks = {"heap": self.check_heap if self.memory else lambda name: "", "resident": lambda name: "", "allocated": lambda name: "",
                  "store": self.check_store_size, "log": self.check_log}
        check = checks.get(what)
        return None, None, check(name) if check else self.check_least(name, what)

    def report(self, out):
        print(f"\n{'':16} {'at 1/4':>10} {'at the end':>10} {'most':>10} {'bytes/h':>9} {'+-99.9%':>9}", file=out)
        for name in "ab":
            for what in self.samples[0].values[name]:
                values = [s.values[name][what] for s in self.samples]
                slope, error, verdict = self.verdict(name, what)
                show = (lambda v: f"{v}") if what in ("descriptors", "threads") else kib
                rate = f"{3600 * slope:9.0f} {3600 * error:9.0f}" if slope is not None else f"{'':19}"
                print(f"{name}  {what:13} {show(values[len(values) // 4]):>10} {show(values[-1]):>10} {show(max(values)):>10} {rate}  {verdict}", file=out)
        print(f"Allocated memory may grow by {3600 * MEMORY / MONTH:.0f} bytes/h: {mib(MEMORY)}, the budget, in 30 days.\n", file=out)

    def judge(self, out):
        self.check_accounts()
        print(f"{'':8} {'intervals':>9} {'measured':>8} {'partial':>8} {'unknown':>8} {'sent':>9} {'lost':>7} {'wire':>7} {'late':>7} {'duplicates':>10}", file=out)
        for way in "ab":
            results = [r for (_, sender), lane in self.points[way].final.items() if sender == way for r in lane]
            status = collections.Counter(r["status"] for r in results)
            total = {k: sum(r[k] or 0 for r in results) for k in COUNTS}
            judged, alone, lost = self.check_losses(way)
            wire = self.wire.totals.get(way, {"lost": 0, "missed": 0, "kernel_drops": 0})
            print(f"from {way}   {len(results):9} {status['measured']:8} {status['partial']:8} {status['unknown']:8} {total['sent']:9} {total['lost']:7} "
                  f"{wire['lost']:7} {total['late']:7} {total['duplicated']:10}", file=out)
            print(f"         {judged} intervals of the direction compared with the wire, {alone} one by one: {lost} lost; "
                  f"the wire's socket missed {wire['missed']} frames, the kernel dropped {wire['kernel_drops']}", file=out)
            if not judged:
                self.fail(f"from {way}: no interval could be compared with the wire")
            causes = collections.Counter(r["cause"] for r in results if r["status"] != "measured")
            for cause, count in causes.most_common(5):
                print(f"         {count} x {cause}", file=out)
        for name in "ab":
            rows = self.check_store(name)
            self.check_metrics(name)
            print(f"{name}: {rows} results in the store, {self.points[name].scrapes} scrapes", file=out)
        self.report(out)

    def write_csv(self, path):
        with open(path, "w", newline="") as f:
            rows = csv.writer(f)
            keys = list(self.samples[0].values["a"])
            rows.writerow(["seconds", "cycle", *(f"{n}_{k}" for n in "ab" for k in keys)])
            for s in self.samples:
                rows.writerow([f"{s.seconds:.2f}", s.cycle, *(s.values[n][k] for n in "ab" for k in keys)])


def kib(size):
    return f"{size / 1024:.0f} KiB"


def mib(size):
    return f"{size / MIB:.1f} MiB"


def regression(points):
    """Slope and its one-sided 99.9 % error; infinite for two points."""
    n = len(points)
    mx, my = (statistics.fmean(column) for column in zip(*points))
    sxx = sum((x - mx) ** 2 for x, _ in points)
    slope = sum((x - mx) * (y - my) for x, y in points) / sxx
    rest = sum((y - my - slope * (x - mx)) ** 2 for x, y in points)
    if n < 3:
        return slope, float("inf")
    t = [quantile for freedom, quantile in STUDENT if freedom <= n - 2][-1]
    return slope, t * (rest / (n - 2) / sxx) ** 0.5


def main():
    parser = argparse.ArgumentParser(description="Runs the whole system for a while; see the head of this file.")
    parser.add_argument("--seconds", type=seconds_of, default=600, metavar="TIME")
    parser.add_argument("--csv", metavar="FILE", help="what the processes held, second by second")
    parser.add_argument("--sanitized", action="store_true", help="memory is the sanitizer's, not judged")
    args = parser.parse_args()
    if args.seconds < 20:
        parser.error("at least 20 s")
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter"))):
        print("skipped: network namespaces need root, ip and nsenter")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # nothing stays behind
    with tempfile.TemporaryDirectory(prefix="oneway-soak-") as folder:
        soak = Soak(args.seconds, folder, not args.sanitized)
        try:
            soak.start()
            print(f"{args.seconds:.0f} s: intervals of {soak.interval_ms} ms, rate in cycles of {soak.cycle_s:.0f} s, seed {soak.seed}\n{soak.HEAD}", flush=True)
            soak.run()
            soak.end()
            soak.judge(sys.stdout)
            if args.csv:
                soak.write_csv(args.csv)
        finally:
            soak.close()
    for line in soak.wrong[:20]:
        print("WRONG: " + line)
    if len(soak.wrong) > 20:
        print(f"and {len(soak.wrong) - 20} more")
    print("FAILED" if soak.wrong else "all holds")
    return 1 if soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
