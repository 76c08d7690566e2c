#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random routed networks of 4 to 8 routers, two points on each with default configurations: no interval that is measured has loss
that is not there. Counts the intervals that are measured, partial and unknown.

    random_networks.py [--seed N] [--count N] [--side-by-side N] [--show]        (make networks)

    s - [a] - [m] -+- [x0] -+- ... [y] ... - [b] - t
                   |- [x1] -|
                   '- [c]

What may happen: destinations behind c, traffic from c, load sharing by flow over x0 and x1 or over b and c, a half of each network behind
c, a tunnel that begins at m (the way of x0 then), a smaller MTU, NAT, loss, a detour of some networks by c, a session that stalls, points with several interfaces, short intervals, little memory, RDA."""
import argparse
import collections
import concurrent.futures
import random
import sys
import time

import networks
import points
import router
from test_networks import brief

Plan = collections.namedtuple("Plan", "seed parallel behind ecmp mtu nat loss detour stall interval method memory elsewhere cross back sizes flows new rate tunnel halves")
# m drops some of what it forwards.
LOSS = """
table ip loss {{
  counter to_b {{}}
  counter to_a {{}}
  chain dropped {{
    iifname to_a oifname != to_c counter name to_b
    oifname to_a iifname != to_c counter name to_a
    # Behind a NAT m has joined the fragments that b sent.
    oifname to_a iifname != to_c meta length > {mtu} counter name to_a
    drop
  }}
  chain f {{
    type filter hook forward priority 0;
    {drop}
  }}
}}
"""


def plan(seed):
    rng = random.Random(seed)
    p = lambda share: rng.random() < share
    return Plan(seed, parallel=p(0.4), behind=rng.randrange(3), ecmp=p(0.25), mtu=1000 if p(0.2) else 1500, nat=p(0.15),
                loss=rng.choice([0, 0, 0, 7, 50, 200]), detour=rng.choice([0, 0, 0, 1, 2]), stall=p(0.2),
                interval=rng.choice(["1s", "1s", "1s", "200ms", "100ms", "10ms"]), method=rng.choice(["fold", "fold", "fold", "rda"]),
                memory=rng.choice(["256 MiB"] * 4 + ["40 MiB"]), elsewhere=rng.choice([0, 0.3, 0.9]), cross=p(0.4), back=p(0.6),
                sizes=[100, 400, 1400] if p(0.5) else [100], flows=rng.choice([3, 40, 400]), new=rng.choice([0, 0, 5]), rate=rng.choice([200, 1000, 2000]), tunnel=p(0.15), halves=p(0.15))


class Random(networks.Network):
    def __init__(self, p):
        self.plan = p
        xs = ["x0", "x1"] if p.parallel else []
        ys = [f"y{i}" for i in range(p.behind)]
        super().__init__(["s", "a", "m", *xs, *ys, "b", "c", "t"])
        try:
            self.build(p, xs, ys)
        except BaseException:
            self.close()
            raise

    def build(self, p, xs, ys):
        """Routes to 10.1/16 (behind a), 10.2/16 (behind b) and 10.3/16 (behind c)."""
        self.link("a", "lan0", "s", "eth0", "10.0.1")
        self.link("a", "eth0", "m", "to_a", "10.0.2")
        self.link("m", "to_c", "c", "eth0", "10.0.4")
        self.link("b", "lan0", "t", "eth0", "10.0.5")
        self.run("c", "sysctl", "-qw", "net.ipv4.ip_forward=0")
        self.route("s", "default via 10.0.1.1")
        self.route("t", "default via 10.0.5.1")
        self.route("c", "default via 10.0.4.1")
        self.route("a", "default via 10.0.2.2", "10.1.0.0/16 via 10.0.1.2")
        self.route("b", "10.2.0.0/16 via 10.0.5.2")
        self.to_b, number = [], 20
        chain = [*ys, "b"]
        for i, (near, far) in enumerate(zip(chain, chain[1:])):
            self.link(near, "eth1", far, "eth0", f"10.0.{number}", p.mtu if far == "b" else 1500)
            self.route(near, f"10.2.0.0/16 via 10.0.{number}.2", f"10.0.5.0/24 via 10.0.{number}.2")
            self.route(far, f"default via 10.0.{number}.1")
            for before in chain[:i]:
                self.route(before, f"10.0.{number}.0/24 via {self.after[before]}")
            self.after = {**getattr(self, "after", {}), near: f"10.0.{number}.2"}
            number += 1
        first, back = chain[0], []
        self.interfaces = ("eth0",)
        for k, x in enumerate(xs or [None]):
            mtu = p.mtu if first == "b" else 1500
            entry = "eth0" if first == "b" and k == 0 else f"in{k}"
            if x:
                self.link("m", f"to_{x}", x, "north", f"10.0.{number}")
                self.link(x, "south", first, entry, f"10.0.{number + 1}", mtu)
                self.route(x, f"default via 10.0.{number}.1", f"10.2.0.0/16 via 10.0.{number + 1}.2", f"10.0.5.0/24 via 10.0.{number + 1}.2")
                for c in range(20, 20 + len(chain) - 1):
                    self.route(x, f"10.0.{c}.0/24 via 10.0.{number + 1}.2")
                self.to_b.append(f"10.0.{number}.2")
                back.append(f"10.0.{number + 1}.1")
                self.address = f"10.0.{number + 1}.2"
                self.route("m", f"10.0.{number + 1}.0/24 via 10.0.{number}.2")
                number += 2
            else:
                self.link("m", "to_b", first, entry, f"10.0.{number}", mtu)
                self.to_b.append(f"10.0.{number}.2")
                back.append(f"10.0.{number}.1")
                self.address = f"10.0.{number}.2"
        if first == "b" and xs:
            self.interfaces = ("eth0", "in1")
        self.route(first, f"default via {back[0]}" if len(back) == 1 else "default " + " ".join(f"nexthop via {h}" for h in back))
        if first != "b":
            self.address = f"10.0.{20 + len(chain) - 2}.2"
            for c in range(20, 20 + len(chain) - 1):
                self.route("m", f"10.0.{c}.0/24 via {self.to_b[0]}")
        self.hops = " ".join(f"nexthop via {h}" for h in [*self.to_b, *(["10.0.4.2"] if p.ecmp else [])])
        if p.tunnel:
            # It ends behind b, where nobody opens it.
            self.ip("m", f"link add vx0 mtu 1500 type vxlan id 5 dstport 4789 remote 10.0.5.2 local {self.to_b[0].rpartition('.')[0]}.1", "link set vx0 up",
                    "addr add 192.168.9.1/24 dev vx0", "neigh add 192.168.9.2 lladdr 02:00:00:00:00:02 dev vx0")
            self.hops = "via 192.168.9.2 dev vx0"
        self.run("m", "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1")
        self.run(first, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1")
        self.route("m", "10.1.0.0/16 via 10.0.2.1", "10.0.1.0/24 via 10.0.2.1", f"10.0.5.0/24 via {self.to_b[0]}", f"10.2.0.0/16 {self.hops}", "10.3.0.0/16 via 10.0.4.2")
        for network in range(4) if p.halves else ():
            self.route("m", f"10.2.{network}.128/25 via 10.0.4.2")
        self.count("a", "eth0")
        drop = f"meta l4proto udp numgen random mod {p.loss} 0 jump dropped" if p.loss else ""
        self.nft("m", LOSS.format(drop=drop, mtu=p.mtu))
        if p.nat:
            self.nft("m", "table ip nat {\n chain p {\n type nat hook postrouting priority 100;\n ip daddr 10.2.0.0/23 udp dport 1-65535 snat to 10.0.2.2\n }\n}\n")

    def dropped(self):
        """What m dropped between the points, by sender."""
        counters = self.counters("m")
        return collections.Counter(london=counters["to_b"], paris=counters["to_a"])


class Case(points.Case):
    def runTest(self):
        """Not a test of its own."""

    def stream(self, src, dst, rate, seconds):
        p = self.plan
        return {"src": [src], "dst": [dst], "count": int(rate * seconds), "rate": rate, "flows": p.flows, "new": p.new, "sizes": p.sizes}

    def measure(self, p):
        self.plan = p
        n = Random(p)
        self.addCleanup(n.close)
        lines = f"    interval: {p.interval}\n    wait: 1s\n    method: {p.method}\n"
        pair = networks.Pair(self, n, at=("a", "b"), interfaces=(("eth0",), n.interfaces), more=(lines, ""), memory=p.memory)
        seconds = 10 if p.detour else 5
        n.source("s", [self.stream("10.1", "10.2", p.rate * (1 - p.elsewhere), seconds), *([self.stream("10.1", "10.3", p.rate * p.elsewhere, seconds)] if p.elsewhere else [])], p.seed)
        if p.cross:
            n.source("c", [self.stream("10.3", "10.2", p.rate / 2, seconds)], p.seed + 1)
        if p.back:
            n.source("t", [self.stream("10.2", "10.1", p.rate / 2, seconds), self.stream("10.2", "10.3", p.rate / 4, seconds)], p.seed + 2)
        pair.begin()
        before = n.dropped()
        n.go()
        time.sleep(2)
        if p.stall:
            n.nft("m", f"table ip stall {{\n chain f {{\n type filter hook forward priority 0;\n tcp dport {networks.PORT} drop\n tcp sport {networks.PORT} drop\n }}\n}}\n")
            time.sleep(1.5)
            n.run("m", "nft", "delete table ip stall")
        if p.detour:
            network = "10.2.0.0/16" if p.detour == 1 else "10.2.0.0/23"
            n.route("m", f"{network} via 10.0.4.2")
            time.sleep(4)
            if p.detour == 1:
                n.route("m", f"{network} {n.hops}")
            else:
                n.run("m", "ip", "route", "del", network)
        n.wait()
        pair.end()
        return pair, n.dropped() - before


def judge(case, p, pair, dropped):
    """What is wrong, and the number of intervals by status."""
    wrong, count, causes = [], collections.Counter(), collections.Counter()
    for name, results in pair.results.items():
        for r in results:
            try:
                case.assert_conserved(r)
            except AssertionError as error:
                wrong.append(f"{name}: not conserved: {error}")
        for sender in ("london", "paris"):
            lane = pair.lane(sender, name)
            if name == sender:
                # not those that the end of the test cut off
                count.update(r["status"] for r in lane if (r["sent"] or r["status"] != "measured") and r.get("cause_code") != "stopped")
                causes.update(r["cause_code"] for r in lane if "cause_code" in r)
            measured = [r for r in lane if r["status"] == "measured"]
            lost = sum(r["lost"] - r["lost_whole_flows"] for r in measured)
            if lost > dropped[sender]:
                wrong.append(f"{name}: {sender}: {lost} lost, {dropped[sender]} dropped: {[b for b in brief(measured) if b.get('lost')][:4]}")
            if name == sender and not p.detour and len(measured) == len(lane):
                found = sum(r["lost"] for r in lane)
                count["dropped"] += dropped[sender]
                count["lost"] += min(found, dropped[sender])
                if found < dropped[sender]:
                    print(f"{p.seed}: {sender}: {dropped[sender]} dropped, {found} lost", flush=True)
            if p.memory == "256 MiB" and not p.detour and all(r["status"] != "unknown" for r in lane) and sender == "london":
                seen = sum(r["sent"] + r["unshared_sent"] for r in lane)
                if seen != pair.truth["london", "out"]:
                    wrong.append(f"{name}: {seen} packets in results, {pair.truth['london', 'out']} sent")
    return wrong, count, causes


def run_one(seed, show=False):
    p = plan(seed)
    case = Case()
    case.setUp()
    try:
        pair, dropped = case.measure(p)
        wrong, count, causes = judge(case, p, pair, dropped)
        if show:
            for sender in ("london", "paris"):
                for at in ("london", "paris"):
                    print(sender, "at", at, *brief(pair.lane(sender, at)), sep="\n")
            print(pair.log["london"], pair.log["paris"], pair.truth, dropped)
        return p, wrong, count, causes
    except (AssertionError, OSError) as error:
        return p, [f"{type(error).__name__}: {error}"], collections.Counter(), collections.Counter()
    finally:
        case.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--side-by-side", type=int, default=4)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    total, why, failed = collections.Counter(), collections.Counter(), 0
    try:
        router.holder().kill()
    except (router.Unavailable, FileNotFoundError) as reason:
        print(f"skipped: {reason}")
        return 77
    with concurrent.futures.ThreadPoolExecutor(options.side_by_side) as pool:
        for p, wrong, count, causes in pool.map(lambda s: run_one(s, options.show), range(options.seed, options.seed + options.count)):
            total += count
            why += causes
            failed += bool(wrong)
            if wrong:
                print(p, *wrong, sep="\n    ", flush=True)
    print(f"{options.count} networks, {failed} wrong; intervals with packets: {total['measured']} measured, {total['partial']} partial, {total['unknown']} unknown")
    print(f"without detours, where all intervals are measured: {total['dropped']} packets dropped, {total['lost']} lost, the others unshared")
    print("causes:", ", ".join(f"{cause} {count}" for cause, count in why.most_common()) or "none")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
