#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a point to be in a fleet: processor time and bytes of its agent, and what discovery adds.

    fleet_cost.py ONEWAY [--seconds N] [--rate N]

Two points on loopback with ten lanes, UDP packets, and a real nats-server; once without and once with discovery. The
points store their results in either case; the agent and the process that starts both are there in a fleet only.
"""
import argparse
import os
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
PORT = 9101
CLASSES = 5
PLAN = """
discovery: {discovery}
classes: [{classes}]
points:
  - {{name: london, address: '127.0.0.1:{port}', interfaces: [{{name: lo}}], memory: 16MiB}}
  - {{name: paris, interfaces: [{{name: lo}}], memory: 16MiB}}
segments:
  - {{between: [london, paris]}}
"""


def send(rate, end):
    """Packets of all classes, evenly."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    at, number = time.monotonic(), 0
    while not end.is_set():
        for _ in range(max(1, rate // 100)):
            out.sendto(number.to_bytes(8, "big") * 8, ("127.0.0.1", PORT + number % CLASSES))
            number += 1
        at += 0.01
        time.sleep(max(0, at - time.monotonic()))


def family(pid):
    """A process, and all that it started."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        children = [int(child) for child in f.read().split()]
    return [pid, *(one for child in children for one in family(child))]


def cpu_ms(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def bus_bytes(pid, port):
    """Bytes that the process has sent to the bus, and received from it, with TLS. None: it is not connected."""
    lines = subprocess.run(["ss", "-tinpHO", "state", "established", "dport", "=", f":{port}"], capture_output=True, text=True).stdout
    for line in lines.splitlines():
        if f"pid={pid}," in line:
            return [int(found.group(1)) if (found := re.search(rf"{key}:(\d+)", line)) else 0 for key in ("bytes_sent", "bytes_received")]
    return None


def measure(discovery, args):
    from fleet import Fleet, until
    from servers import free_port
    fleet = Fleet()
    try:
        classes = ", ".join(f"{{name: c{i}, filter: 'udp port {PORT + i}'}}" for i in range(CLASSES))
        fleet.apply(PLAN.format(discovery=str(discovery).lower(), classes=classes, port=free_port()))
        points = [fleet.start_point(name) for name in ("london", "paris")]
        until(lambda: all(p.get("health") and p["health"]["lanes"] == 2 * CLASSES and p["state"] == "measuring" for p in fleet.status().values())
              and len(fleet.status()) == 2, lambda: str(fleet.status()))
        first = points[0].process.pid
        agent = until(lambda: next((pid for pid in family(first) if bus_bytes(pid, fleet.ports[0])), None), "no connection to the bus")
        others = [pid for pid in family(first) if pid not in (first, agent)]
        before = cpu_ms(first), cpu_ms(agent), sum(map(cpu_ms, others)), *bus_bytes(agent, fleet.ports[0])
        time.sleep(args.seconds)
        after = cpu_ms(first), cpu_ms(agent), sum(map(cpu_ms, others)), *bus_bytes(agent, fleet.ports[0])
        return [(b - a) / args.seconds for a, b in zip(before, after)]
    finally:
        fleet.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oneway")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--rate", type=int, default=2000, help="packets a second")
    args = parser.parse_args()
    os.environ["ONEWAY"] = os.path.abspath(args.oneway)
    end = threading.Event()
    threading.Thread(target=send, args=(args.rate, end), daemon=True).start()
    try:
        print(f"{2 * CLASSES} lanes, {args.rate} packets/s; a second costs", flush=True)
        for discovery in (False, True):
            waiter, agent, point, sent, received = measure(discovery, args)
            print(f"{'with' if discovery else 'without'} discovery: agent {agent:.2f} ms, the process that waits {waiter:.2f} ms, the point itself {point:.2f} ms "
                  f"of processor time; {sent:.0f} bytes to the bus, {received:.0f} from it", flush=True)
    finally:
        end.set()


if __name__ == "__main__":
    main()
