#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random networks of 5 to 12 routers in namespaces, points on some of them, clocks up to 500 ms apart: the map that
`oneway fleet map` draws from the samples of the points is the network that was built.

    discovered_networks.py [--seed N] [--count N] [--side-by-side N] [--show]        (make fleet-test)

Every router forwards by shortest paths. Some pairs of routers send each other packets; the truth is the row of points on each
path. Equal are: which points are neighbours, in which direction, how many links lie between, and the order of all pairs.
ONEWAY is the program with the clock of injected_clock.c."""
import argparse
import collections
import concurrent.futures
import json
import random
import struct
import subprocess
import sys
import time

import command
import networks
import points
import router

PACKETS = 300  # of each pair of routers that send
SECONDS = 5
EPOCH = 1
CONFIG = """point: {name}
store: {name}.db
memory: 1MiB
output: none
interfaces:
{interfaces}
discovery: {{key: the key of this test, epoch: {epoch}s, records: 4096}}
"""


class Plan:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.seed, self.routers = seed, rng.randrange(5, 13)
        links = {(rng.randrange(i), i) for i in range(1, self.routers)}
        for _ in range(rng.randrange(self.routers)):
            a, b = rng.sample(range(self.routers), 2)
            links.add((min(a, b), max(a, b)))
        self.links = sorted(links)
        self.cost = {}
        for a, b in self.links:  # costs of both directions differ: routes need not be symmetric
            self.cost[a, b], self.cost[b, a] = rng.uniform(1, 3), rng.uniform(1, 3)
        self.points = sorted(rng.sample(range(self.routers), rng.randrange(3, self.routers + 1)))
        self.offset = {p: rng.randrange(-500_000_000, 500_000_000) for p in self.points}
        self.pairs = rng.sample([(a, b) for a in range(self.routers) for b in range(self.routers) if a != b], min(20, self.routers * 2))
        self.threads = {p: rng.choice([1, 1, 2]) for p in self.points}  # that share an interface
        self.stepped = rng.choice(self.points) if rng.random() < 0.25 else None  # its clock is set while packets pass
        self.step = rng.choice([-1, 1]) * rng.randrange(50_000_000, 300_000_000)

    def next_hops(self, to):
        """Of each router, by Bellman and Ford from the destination."""
        distance, hop = {to: 0.0}, {}
        for _ in range(self.routers):
            for (a, b), cost in self.cost.items():
                if b in distance and distance[b] + cost < distance.get(a, 1e9):
                    distance[a], hop[a] = distance[b] + cost, b
        return hop

    def path(self, a, b):
        hop, row = self.next_hops(b), [a]
        while row[-1] != b:
            row.append(hop[row[-1]])
        return row

    def truth(self):
        """Edges between neighbouring points with the links between them, and pairs in order."""
        edges, order = collections.defaultdict(set), set()
        for a, b in self.pairs:
            row = self.path(a, b)
            seen = [i for i, r in enumerate(row) if r in self.points]
            for n, i in enumerate(seen):
                order |= {(f"r{row[i]}", f"r{row[k]}") for k in seen[n + 1:]}
            for i, k in zip(seen, seen[1:]):
                edges[f"r{row[i]}", f"r{row[k]}"].add(k - i)
        return edges, order


class Built(networks.Network):
    def __init__(self, plan):
        super().__init__([f"r{i}" for i in range(plan.routers)])
        try:
            self.build(plan)
        except BaseException:
            self.close()
            raise

    def build(self, plan):
        self.interfaces, address = collections.defaultdict(list), {}
        for n, (a, b) in enumerate(plan.links):
            self.link(f"r{a}", f"to{b}", f"r{b}", f"to{a}", f"10.0.{n}")
            address[a, b], address[b, a] = f"10.0.{n}.2", f"10.0.{n}.1"
            self.interfaces[a].append(f"to{b}")
            self.interfaces[b].append(f"to{a}")
        routes = collections.defaultdict(list)
        for to in range(plan.routers):
            for at, hop in plan.next_hops(to).items():
                routes[at].append(f"10.{100 + to}.0.0/16 via {address[at, hop]}")
        for i in range(plan.routers):
            self.ip(f"r{i}", f"route add blackhole 10.{100 + i}.0.0/16")
            self.route(f"r{i}", *routes[i])


class Case(points.Case):
    def runTest(self):
        """Not a test of its own."""

    def measure(self, plan):
        n = Built(plan)
        self.addCleanup(n.close)
        running = []
        for p in plan.points:
            with open(self.path(f"r{p}.clock"), "wb") as file:
                file.write(struct.pack("=Qqqqq", 0, -1, 0, plan.offset[p], plan.offset[p]))
            interfaces = "\n".join(f"  - {{name: {i}, ring: 4MiB, threads: {plan.threads[p]}}}" for i in n.interfaces[p])
            self.write(f"r{p}.yaml", CONFIG.format(name=f"r{p}", interfaces=interfaces, epoch=EPOCH))
            point = points.Point(self.path(f"r{p}.yaml"), prefix=n.prefix(f"r{p}"), env={"ONEWAY_TEST_CLOCK": self.path(f"r{p}.clock")})
            self.points.append(point)
            running.append(point)
        for point in running:
            point.wait_for("no privileges from here on")
        for source in sorted({a for a, _ in plan.pairs}):
            streams = [{"src": [f"10.{100 + a}"], "dst": [f"10.{100 + b}"], "count": PACKETS, "rate": PACKETS / SECONDS, "flows": 20, "size": 80}
                       for a, b in plan.pairs if a == source]
            n.source(f"r{source}", streams, plan.seed * 100 + source)
        time.sleep(EPOCH * 2.5)  # an epoch that began before the points is not compared
        n.go()
        if plan.stepped is not None:
            time.sleep(SECONDS / 2)
            self.set_clock(plan, plan.stepped)
        n.wait()
        time.sleep(EPOCH * 2.5)
        for point in running:
            point.stop()
        for point in running:
            point.end()
            self.assertEqual(point.code, 0, point.log)
        env = {"ONEWAY_TEST_CLOCK": self.path(f"r{plan.points[0]}.clock")}
        done = command.oneway("fleet", "map", "--json", *(self.path(f"r{p}.db") for p in plan.points), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)


    def set_clock(self, plan, p):
        """As injected_clock.c reads it: the number is odd while it is written."""
        offset = plan.offset[p]
        with open(self.path(f"r{p}.clock"), "r+b", buffering=0) as file:
            file.write(struct.pack("=Q", 1))
            file.seek(8)
            file.write(struct.pack("=qqqq", -1, time.time_ns() + 20_000_000, offset, offset + plan.step))
            file.seek(0)
            file.write(struct.pack("=Q", 2))


def judge(plan, found):
    wrong, (edges, order) = [], plan.truth()
    drawn = {(e["from"], e["to"]): e for e in found["edges"]}
    for ends in sorted(drawn.keys() - edges.keys()):
        wrong.append(f"an edge that does not exist: {drawn[ends]}")
    for ends in sorted(edges.keys() - drawn.keys()):
        wrong.append(f"not found: {ends}")
    for ends in sorted(edges.keys() & drawn.keys()):
        if drawn[ends]["adjacency"] != "firm":
            wrong.append(f"not firm: {drawn[ends]}")
        if drawn[ends]["links"] not in edges[ends]:
            wrong.append(f"{ends}: {drawn[ends]['links']} links, built {edges[ends]}")
    seen = {(p["from_point"], p["to_point"]) for p in found["pairs"] if p["from_point"] != p["to_point"]}
    if seen != order:
        wrong.append(f"order: {sorted(seen - order)} are not so, {sorted(order - seen)} not found")
    for p in found["pairs"]:
        if p["loss"] and not p["loss_at_most"]:  # unless a capture dropped frames, and the map says so
            wrong.append(f"loss that is not there: {p}")
        if plan.stepped is not None:
            continue  # what the offset was depends on when
        if p["offset_least_ns"] is not None and p["offset_most_ns"] is not None:
            true = plan.offset[int(p["to_point"][1:])] - plan.offset[int(p["from_point"][1:])]
            if not p["offset_least_ns"] <= true <= p["offset_most_ns"]:
                wrong.append(f"offset {true}: {p}")
    return wrong


def run_one(seed, show=False):
    plan, case = Plan(seed), Case()
    case.setUp()
    try:
        found = case.measure(plan)
        wrong = judge(plan, found)
        if plan.stepped is not None and not found["counts"]["clock_steps"]:
            wrong.append(f"the clock of r{plan.stepped} was set, and nobody noticed")
        if show or wrong:
            print(f"{seed}: {plan.routers} routers, points {plan.points}, links {plan.links}, pairs {plan.pairs}, {found['counts']}", flush=True)
        if show:
            print(json.dumps(found["edges"], indent=1))
        return plan, wrong, len(found["edges"])
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        return plan, [f"{type(error).__name__}: {error}"], 0
    finally:
        case.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--side-by-side", type=int, default=3)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    failed = edges = 0
    try:
        router.holder().kill()
    except (router.Unavailable, FileNotFoundError) as reason:
        print(f"skipped: {reason}")
        return 77
    with concurrent.futures.ThreadPoolExecutor(options.side_by_side) as pool:
        for plan, wrong, count in pool.map(lambda s: run_one(s, options.show), range(options.seed, options.seed + options.count)):
            failed += bool(wrong)
            edges += count
            if wrong:
                print(plan.seed, *wrong, sep="\n    ", flush=True)
    print(f"{options.count} networks, {failed} wrong, {edges} edges")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
