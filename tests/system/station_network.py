#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The station on real networks: routers in namespaces, a point on each, their stores followed without any description of the network.

Chains of three to five points, and rings. Cables lose packets or become slow in one direction, a point is killed, routes change. The
segment that is named must be the one that has the fault, and no healthy one may ever be named.

    station_network.py [--seeds N] [--first SEED]     random networks and faults; without: one short run
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import command
import router

INTERVAL_MS = 250
DELAY_US = 50000  # a machine that is busy adds tens of milliseconds
SLOW_US = 250000
PORT = 8620
# UDP to the loopback addresses of others, so many packets a second to each, from a few sockets.
SOURCE = """
import socket, sys, time
rate, to = float(sys.argv[1]), sys.argv[2:]
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
start, i = time.monotonic(), 0
while True:
    for address in to:
        try:
            sockets[i % 4].sendto(i.to_bytes(8, "big") + bytes(100), (address, 9))
        except OSError:
            pass
    i += 1
    time.sleep(max(0, start + i / rate - time.monotonic()))
"""


class Network(router.Cabled):
    """Routers with one-letter names, and cables between some of them."""

    def __init__(self, names, links):
        self.names, self.links = names, links
        super().__init__(names)
        try:
            self.connect()
            self.plug(os.environ["CABLES"], links, ["chrt", "-f", "10"])
            for a, b in links:
                self.impair(a, b)
                self.impair(b, a)
        except subprocess.CalledProcessError as error:
            self.close()
            raise router.Unavailable(f"no routers: {error.stderr.strip()}") from error
        except BaseException:
            self.close()
            raise

    def loopback(self, name):
        return f"10.255.0.{self.names.index(name) + 1}"

    def address(self, of, towards):
        for number, (a, b) in enumerate(self.links, 1):
            if {a, b} == {of, towards}:
                return f"10.0.{number}.{1 if of == a else 2}"
        raise KeyError((of, towards))

    def neighbours(self, name):
        return [b if a == name else a for a, b in self.links if name in (a, b)]

    def connect(self):
        pid = str(self.where["cables"].pid)
        for name in self.where:
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
                     "net.ipv4.conf.default.rp_filter=0", "net.ipv4.icmp_ratelimit=0")
        for name in self.names:
            lines = ["link set lo up", f"addr add {self.loopback(name)}/32 dev lo"]
            for far in self.neighbours(name):
                lines += [f"link add name to{far} type veth peer name {name}{far} netns {pid}", f"addr add {self.address(name, far)}/30 dev to{far}", f"link set to{far} up"]
            self.run(name, "ip", "-batch", "-", text="\n".join(lines) + "\n")
            for far in self.neighbours(name):
                # What a cable takes in must be what a wire carries: whole checksums, no superframes.
                self.run(name, "ethtool", "-K", f"to{far}", "tx", "off", "gso", "off", "tso", "off")
                self.run("cables", "ip", "link", "set", f"{name}{far}", "up")
        for name in self.names:
            for to in self.names:
                if to != name:
                    self.route(name, to, self.first_hop(name, to))

    def first_hop(self, start, end):
        """Of a shortest way; among equals the first by the alphabet."""
        ways = [[start]]
        while ways:
            way = ways.pop(0)
            for far in sorted(self.neighbours(way[-1])):
                if far == end:
                    return (way + [far])[1]
                if far not in way:
                    ways.append(way + [far])
        raise KeyError((start, end))

    def route(self, name, to, hop):
        self.run(name, "ip", "route", "replace", f"{self.loopback(to)}/32", "via", self.address(hop, name), "src", self.loopback(name))

    def impair(self, near, far, delay_us=DELAY_US, loss=0):
        super().impair(near, far, delay_us, loss)


class Run:
    """A network with points, traffic between all routers, and the station."""

    def __init__(self, folder, names, links):
        self.folder, self.processes, self.points = folder, [], {}
        self.network = Network(names, links)
        self.expected, self.events = set(), []  # what may be named now; what was told
        self.late = []  # when the cables were asked how late they were, and what they said
        try:
            subprocess.run([command.PROGRAM, "point", "keygen", "--folder", folder, *names], check=True, capture_output=True)
            for name in names:
                self.configure(name)
                self.start_point(name)
            for name in names:
                self.keep(self.network.start(name, sys.executable, "-c", SOURCE, "60", *(self.network.loopback(to) for to in names if to != name)))
            self.watch()
        except BaseException:
            self.close()
            raise

    def keep(self, process):
        self.processes.append(process)
        return process

    def configure(self, name):
        segments = ""
        for far in self.network.neighbours(name):
            connects = name < far
            segments += f"  - name: {min(name, far)}-{max(name, far)}\n    peer: {far}\n    interfaces: [to{far}]\n"
            if connects:
                segments += f"    connect: {self.network.address(far, name)}:{PORT}\n    interval: {INTERVAL_MS}ms\n    wait: 500ms\n"
        with open(f"{self.folder}/{name}.yaml", "w") as f:
            f.write(f"point: {name}\ncertificate: {name}.pem\nkey: {name}.key\nca: ca.pem\nlisten: 0.0.0.0:{PORT}\nstore: {name}.db\ninterfaces:\n"
                    + "".join(f"  - name: to{far}\n" for far in self.network.neighbours(name)) + f"segments:\n{segments}")

    def start_point(self, name):
        with open(f"{self.folder}/{name}.log", "a") as log:
            self.points[name] = self.keep(self.network.start(name, command.PROGRAM, "point", "-c", f"{self.folder}/{name}.yaml", "--quiet", stdout=log, stderr=log))

    def watch(self):
        # A machine that is busy is no fault of the network.
        with open(f"{self.folder}/station.yaml", "w") as f:
            f.write("worth: 50%\n")
        stores = [f"{self.folder}/{name}.db" for name in self.network.names]
        self.until(lambda: all(os.path.exists(store) for store in stores), "the stores exist")
        with open(f"{self.folder}/station.log", "w") as log:
            self.station = self.keep(subprocess.Popen(
                [command.PROGRAM, "plane", "monitor", f"{self.folder}/station.yaml", "--follow", "--incidents", f"{self.folder}/incidents", *stores],
                stdout=log, stderr=log))

    def until(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for process in self.processes:
                if process.poll() is not None and process not in self.may_end:
                    raise AssertionError(f"{process.args} has ended with {process.returncode}")
            found = condition()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"not within {seconds} s: {what}; incidents:\n{self.text()}")

    may_end = ()

    def is_noise(self, finding):
        """A machine that is busy adds to all delays: what is far from the fault is not the network's, nor by how much the cables
        themselves were late. Their last 30 s count: as long as a test waits for an incident."""
        held_us = max((late for at, late in self.late if at > time.monotonic() - 30), default=0)
        return not finding["loss"] and finding["now_ns"] - finding["usual_ns"] < max((SLOW_US - DELAY_US) / 2, held_us) * 1000

    def incidents(self):
        """All events so far. A healthy segment that is named is a failure at once."""
        self.late.append((time.monotonic(), self.network.late()))
        with open(f"{self.folder}/incidents", "a+") as f:
            f.seek(0)
            lines = [line for line in f.read().splitlines(keepends=True) if line.endswith("\n")]
        for line in lines[len(self.events) :]:
            event = json.loads(line)["incident"]
            self.events.append(event)
            if event["kind"] == "broken" and event["event"] != "end":
                named = {f["place"] for f in event["responsible"] if not self.is_noise(f)}
                assert named <= self.expected, f"healthy, but named: {sorted(named - self.expected)}\n{self.text()}"
        return self.events

    def text(self):
        with open(f"{self.folder}/station.log") as f:
            return f.read()

    def wait_for(self, event, kind, subject, seconds=60, since=0):
        """The first such event that comes after so many others."""
        def found():
            return [e for e in self.incidents()[since:] if (e["event"], e["kind"], e["subject"]) == (event, kind, subject)]
        return self.until(found, f"{event} {kind} {subject}", seconds)[0]

    def learn(self):
        """Until every lane has results of 30 intervals and more."""
        def rows():
            lanes = [0]
            for name in self.network.names:
                done = subprocess.run([command.PROGRAM, "results", f"{self.folder}/{name}.db", "--json", "--since", "-60s"], capture_output=True, text=True)
                count = {}
                for line in done.stdout.splitlines():
                    r = json.loads(line)
                    if r.get("final") and r.get("status") == "measured":
                        count[r["segment"], r["from"]] = count.get((r["segment"], r["from"]), 0) + 1
                lanes.append(min(count.values()) if len(count) == 2 * len(self.network.neighbours(name)) else 0)
            return min(lanes[1:]) >= 30
        self.until(rows, "the station learns", 90)
        time.sleep(2)
        self.incidents()

    def fault(self, kind, near, far):
        """One direction of a cable becomes lossy or slow, and the station names it."""
        segment = f"{near}>{far}"
        self.expected.add(segment)
        began, before = time.time(), len(self.incidents())
        self.network.impair(near, far, *((SLOW_US, 0) if kind == "slow" else (DELAY_US, 0.2)))
        event = self.wait_for("begin", "broken", segment, 30, before)
        finding = event["responsible"][0]
        assert finding["place"] == segment and finding["delay" if kind == "slow" else "loss"], event
        assert abs(event["since_ns"] / 1e9 - began) < 5, (event, began)
        print(f"right: {near} to {far} {kind}: named after {time.time() - began:.1f} s", flush=True)

    def heal(self, near, far):
        segment, before = f"{near}>{far}", len(self.incidents())
        self.network.impair(near, far)
        self.wait_for("end", "broken", segment, 60, before)
        self.expected.discard(segment)
        print(f"right: {near} to {far} is over", flush=True)

    def stop(self, name):
        """A point is killed, and starts again: not measured, never broken."""
        before = len(self.incidents())
        self.may_end = (*self.may_end, self.points[name])
        self.points[name].kill()
        self.wait_for("begin", "unmeasured", f"point {name}", 90, before)
        self.start_point(name)
        self.wait_for("end", "unmeasured", f"point {name}", 90, before)
        subjects = {e["subject"] for e in self.incidents()[before:] if e["kind"] == "unmeasured"}
        assert subjects == {f"point {name}"}, subjects
        print(f"right: point {name} stopped and started", flush=True)

    def reroute(self, start, end):
        """What goes from one router to another takes another neighbour: nothing is broken."""
        before = len(self.incidents())
        usual = self.network.first_hop(start, end)
        (other,) = set(self.network.neighbours(start)) - {usual}
        self.network.route(start, end, other)
        time.sleep(8)
        self.network.route(start, end, usual)
        time.sleep(8)
        assert all(self.is_noise(f) for e in self.incidents()[before:] for f in e["responsible"]), self.incidents()[before:]
        print(f"right: {start} to {end} over {other} and back: nothing", flush=True)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        self.network.close()


def short():
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, "ABC", [("A", "B"), ("B", "C")])
        try:
            run.learn()
            run.fault("lossy", "B", "C")
            run.fault("slow", "B", "A")
        finally:
            run.close()


def random_run(seed):
    rng = random.Random(seed)
    names = "ABCDE"[: rng.randint(3, 5)]
    links = list(zip(names, names[1:]))
    ring = len(names) > 3 and rng.random() < 0.5
    if ring:
        links.append((names[0], names[-1]))
    print(f"seed {seed}: {'ring' if ring else 'chain'} of {len(names)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, names, links)
        try:
            run.learn()
            for _ in range(3):
                near, far = rng.choice(links)[:: rng.choice((1, -1))]
                run.fault(rng.choice(("lossy", "slow")), near, far)
                run.heal(near, far)
            if ring:
                start = rng.randrange(len(names))
                run.reroute(names[start], names[(start + 2) % len(names)])
            run.stop(rng.choice(names))
        finally:
            run.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    try:
        if not args.seeds:
            short()
        for seed in range(args.first, args.first + args.seeds):
            random_run(seed)
    except router.Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(77)


if __name__ == "__main__":
    main()
