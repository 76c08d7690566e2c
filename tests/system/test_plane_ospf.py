#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measurement plane on a routed network: six routers with OSPF (FRR) in namespaces, figure 7 of the MPLANE paper.

C and F are m-routers: points compare what passes between them, and `oneway live` watches their insides. All other segments
of the m-sets are probed (STAMP). The station reads the network from FRR. Each link in turn is made slow, then lossy, so is the
inside of F; the station must name the place, and none while nothing is wrong. Then a link goes down.

    test_plane_ospf.py [--all]     all links and both faults; without, a few of them
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import command
import ospf
import router

INTERVAL = 0.5
PROBES = 40  # a second and segment
MROUTERS = ("C", "F")
INSIDES = [("F", "A", "C"), ("F", "A", "E"), ("C", "F", "D")]
LEARN = 30  # intervals
PORT = 8622

# Packets of UDP to another router's loopback, so many a second; a socket on each port, so that flows take all ways.
SOURCE = """
import socket, sys, time
to, rate = sys.argv[1], float(sys.argv[2])
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
start, i = time.monotonic(), 0
while True:
    sockets[i % 8].sendto(i.to_bytes(8, "big") + bytes(200), (to, 9))
    i += 1
    time.sleep(max(0, start + i / rate - time.monotonic()))
"""


class Plane:
    def __init__(self, folder, cables):
        self.folder = folder
        self.processes = []
        self.may_end = []
        self.verdicts = []
        self.network = ospf.Network(cables)
        self.results = []
        try:
            self.measure()
            self.watch()
        except BaseException:
            self.close()
            raise

    def start(self, where, *args, out=subprocess.DEVNULL):
        errors = open(f"{self.folder}/errors-{len(self.processes)}", "w")
        process = self.network.start(where, *args, stdout=out, stderr=errors, stdin=subprocess.DEVNULL)
        errors.close()
        self.processes.append((process, args))
        return process

    def results_of(self, where, *args):
        """Starts what prints results as JSON into a file of its own, for the station."""
        path = f"{self.folder}/results-{len(self.results)}.json"
        self.results.append(path)
        with open(path, "w") as out:
            return self.start(where, command.PROGRAM, *args, out=out)

    def msets(self):
        database = self.network.vtysh("A", "show ip ospf database router json")
        sets = subprocess.run(
            [command.PROGRAM, "plane", "sets", "-", "--json", "--m-routers", ",".join(ospf.router_id(r) for r in MROUTERS)],
            input=database, capture_output=True, text=True, check=True)
        name = {ospf.router_id(r): r for r in ospf.ROUTERS}
        return {name[s["owner"]]: ["".join(name[r] for r in segment["path"]) for segment in s["segments"]] for s in json.loads(sets.stdout)["sets"]}

    def measure(self):
        self.points()
        for where in ospf.ROUTERS:
            self.start(where, command.PROGRAM, "plane", "reflect", "--listen", f"0.0.0.0:{PORT}")
        for to in "CE":
            self.start("A", sys.executable, "-c", SOURCE, ospf.router_id(to), "100")
        self.start("A", sys.executable, "-c", SOURCE, ospf.router_id("D"), "100")
        self.start("C", sys.executable, "-c", SOURCE, ospf.router_id("A"), "100")
        self.start("F", sys.executable, "-c", SOURCE, ospf.router_id("D"), "100")
        for of, come, go in INSIDES:
            # What comes in by one link and leaves by the other, by where it goes: OSPF is no business of theirs.
            self.results_of(of, "live", "--from", f"to{come}", "--to", f"to{go}", "--interval", f"{int(INTERVAL * 1000)}ms", "--wait", "1s",
                            "--json", "--filter", f"udp and dst host {ospf.router_id(go)} and src host {ospf.address(come, of)}"
                            if of == "F" else f"udp dst port 9 and dst host {ospf.router_id('D')} and src host {ospf.address('A', 'F')}")
        for owner, segments in self.msets().items():
            for path in segments:
                if path in ("FC", "CF"):
                    continue
                # The address on the last link leads over it.
                self.results_of(owner, "plane", "probe", f"{ospf.address(path[-1], path[-2])}:{PORT}", "--segment", ">".join(path),
                                "--from", path[0], "--to", path[-1], "--rate", f"{PROBES}/s", "--interval", f"{int(INTERVAL * 1000)}ms", "--json")

    def points(self):
        subprocess.run([command.PROGRAM, "point", "keygen", "--folder", self.folder, "F", "C"], check=True, capture_output=True)
        for name, far, more, segment in (
            ("C", "F", "listen: 0.0.0.0:8620\n", ""),
            ("F", "C", "", f"    connect: {ospf.address('C', 'F')}:8620\n    interval: {int(INTERVAL * 1000)}ms\n    wait: 1s\n"),
        ):
            with open(f"{self.folder}/{name}.yaml", "w") as file:
                file.write(f"point: {name}\ncertificate: {name}.pem\nkey: {name}.key\nca: ca.pem\n{more}interfaces:\n  - name: to{far}\n"
                           f"segments:\n  - name: F>C\n    peer: {far}\n{segment}    interfaces: [to{far}]\n")
            if name == "F":
                self.results_of(name, "point", "-c", f"{self.folder}/{name}.yaml", "--json")
            else:
                self.start(name, command.PROGRAM, "point", "-c", f"{self.folder}/{name}.yaml", "--quiet")

    def watch(self):
        places = "".join(f"  - {{segment: to{come}-to{go}, from: to{come}, to: to{go}, place: '{of}[{come}>{go}]'}}\n"
                         f"  - {{segment: to{come}-to{go}, from: to{go}, to: to{come}, place: '{of}[{go}>{come}]'}}\n" for of, come, go in INSIDES)
        # Cables of 200 us on a machine that does all of this at once: a host that is busy is no fault of the network.
        with open(f"{self.folder}/station.yaml", "w") as file:
            file.write(f"network: {{vtysh: vtysh, socket: {self.network.socket('A')}}}\nrefresh: 1s\nhold: 5s\nstale: 4s\nworth: 20%\n"
                       f"names: {{{', '.join(f'{ospf.router_id(r)}: {r}' for r in ospf.ROUTERS)}}}\n"
                       f"m_routers: [{', '.join(MROUTERS)}]\nplaces:\n{places}targets:\n"
                       + "".join(f"  - {{from: {a}, to: {b}}}\n" for a in ospf.ROUTERS for b in ospf.ROUTERS if a != b))
        self.station = subprocess.Popen([command.PROGRAM, "plane", "monitor", f"{self.folder}/station.yaml", "--follow", "--json", *self.results],
                                        stdout=subprocess.PIPE, stderr=open(f"{self.folder}/errors-station", "w"), text=True)
        self.processes.append((self.station, ["station"]))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.station.stdout:
            self.verdicts.append(json.loads(line))

    def check_alive(self):
        for number, (process, args) in enumerate(self.processes):
            if process.poll() is not None and process not in self.may_end:
                path = f"{self.folder}/errors-{number}" if args != ["station"] else f"{self.folder}/errors-station"
                with open(path) as errors:
                    raise AssertionError(f"ended with {process.returncode}: {' '.join(args)}\n{errors.read()}")

    def wait(self, until, what, seconds=60):
        """Until the function of the newest verdicts holds; returns them."""
        seen, end = len(self.verdicts), time.monotonic() + seconds
        while time.monotonic() < end:
            self.check_alive()
            if len(self.verdicts) > seen:
                now = self.verdicts[:]  # more may come meanwhile
                seen = len(now)
                if until(now):
                    return now[-1]
            time.sleep(0.05)
        last = self.verdicts[-1] if self.verdicts else None
        raise AssertionError(f"{what}: not within {seconds} s; {len(self.verdicts)} verdicts, last {summary(last)}")

    def quiet(self, intervals):
        """Nothing is named for so many intervals. Returns how many were looked at until then."""
        start = len(self.verdicts)
        self.wait(lambda v: len(v) > start + intervals and not any(named(x) for x in v[-intervals:]), f"quiet for {intervals} intervals", 120)
        return len(self.verdicts) - start

    def close(self):
        for process, _ in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
        for process, _ in self.processes:
            process.wait()
        self.network.close()


def named(verdict):
    """The places that are held responsible for any path."""
    return {f["place"] for path in verdict["paths"] for f in path["responsible"]}


def summary(verdict):
    if not verdict:
        return None
    states = {}
    for path in verdict["paths"]:
        states.setdefault(path["state"] + (": " + path["cause"] if path["state"] == "unknown" else ""), []).append(path["name"])
    return {"explained_by": verdict["explained_by"], "named": sorted(named(verdict)), **states}


class Faults:
    def __init__(self, plane):
        self.plane = plane
        self.right = self.total = 0

    def one(self, what, hop, begin, end):
        """A fault; the places named must all have this hop, and it must be what explains them, as soon as something does."""
        self.total += 1
        before = len(self.plane.verdicts)
        begin()
        try:
            self.plane.wait(lambda v: named(v[-1]), f"{what}: something is named", 40)
            verdict = self.plane.wait(
                lambda v: len(v) > 3 and all(named(x) for x in v[-3:]) and v[-1]["explained_by"], f"{what}: stays named, and is explained", 40)
        finally:
            end()
        places = named(verdict)
        right = verdict["explained_by"] == hop and all(hop in place for place in places)
        self.right += right
        took = next(i for i, v in enumerate(self.plane.verdicts[before:]) if named(v)) + 1
        print(f"{'right' if right else 'WRONG'}: {what}: {sorted(places)}, explained by {verdict['explained_by'] or 'nothing'}, after {took} intervals", flush=True)
        self.plane.quiet(4)


def run(everything):
    with tempfile.TemporaryDirectory() as folder:
        plane = Plane(folder, os.environ["CABLES"])
        try:
            sets = plane.msets()
            assert {k: sorted(sets[k]) for k in "ACF"} == {
                "A": ["AB", "AF"], "C": ["CD", "CE", "CF"], "F": ["FA", "FB", "FC", "FE", "FED"]}, sets
            plane.wait(lambda v: len(v) > LEARN, "the station learns", 120)
            calm = 20 if everything else 6
            alarms = plane.quiet(calm) - calm - 1
            print(f"nothing wrong: {calm} quiet intervals, {alarms} before them with a name", flush=True)
            links = ospf.LINKS if everything else [("E", "D", 0)]
            # A machine that tests other things meanwhile has delays of milliseconds itself.
            slow_us = 8000 if everything else 30000
            faults = Faults(plane)
            for a, b, _ in links:
                faults.one(f"{a} to {b} slow", f"{a}>{b}", lambda: plane.network.impair(a, b, slow_us), lambda: plane.network.impair(a, b))
                if everything:
                    faults.one(f"{b} to {a} lossy", f"{b}>{a}", lambda: plane.network.impair(b, a, 200, 0.5), lambda: plane.network.impair(b, a))
            shape = ["tc", "qdisc", "replace", "dev", "toC", "root", "tbf", "rate", "150kbit", "burst", "2k", "limit"]
            faults.one("inside of F slow", "F[A>C]", lambda: plane.network.run("F", *shape, "8k"), lambda: plane.network.run("F", "tc", "qdisc", "del", "dev", "toC", "root"))
            if everything:
                faults.one("inside of F lossy", "F[A>C]", lambda: plane.network.run("F", *shape, "2k"),
                           lambda: plane.network.run("F", "tc", "qdisc", "del", "dev", "toC", "root"))
            link_down(plane)
            print(f"{faults.right} of {faults.total} faults: the right place, and no other", flush=True)
            assert faults.right == faults.total
        finally:
            plane.close()


def link_down(plane):
    """C - D goes: the way of A to D is another, and the m-sets follow."""
    def places(verdict):
        return next(path["places"] for path in verdict["paths"] if (path["from"], path["to"]) == ("A", "D"))

    assert places(plane.verdicts[-1]) == 8, summary(plane.verdicts[-1])
    # What watched that interface has nothing to watch any more.
    plane.may_end = [process for process, args in plane.processes if "toD" in args]
    plane.network.run("C", "ip", "link", "set", "toD", "down")
    plane.wait(lambda v: places(v[-1]) == 3, "the path follows the network", 60)
    assert "CED" in plane.msets()["C"], plane.msets()
    print("a link down: A to D over A>F, F[A>E], F>E>D only; C watches C>E>D", flush=True)


if __name__ == "__main__":
    try:
        run("--all" in sys.argv)
    except router.Unavailable as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
