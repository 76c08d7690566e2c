# SPDX-License-Identifier: Apache-2.0
"""Two hosts and a router between them, in namespaces without names: they vanish with the processes that hold them."""
import json
import subprocess
import sys


class Unavailable(Exception):
    """This machine, or this user, cannot have namespaces."""


def holder():
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if process.stdout.readline() != "ready\n":
        reason = process.stderr.read().strip()
        process.wait()
        raise Unavailable(f"no network namespaces: {reason}")
    return process


class Cabled:
    """Routers by their names; the cables between them all end in a namespace of its own, with interfaces AB and BA."""

    def __init__(self, names):
        self.where, self.cables = {}, None
        for name in (*names, "cables"):
            self.where[name] = holder()

    def prefix(self, name):
        return ["nsenter", "-t", str(self.where[name].pid), "-n"]

    def run(self, name, *command, text=None):
        return subprocess.run([*self.prefix(name), *command], check=True, capture_output=True, text=True, input=text).stdout

    def start(self, name, *command, **options):
        return subprocess.Popen([*self.prefix(name), *command], **options)

    def plug(self, program, links, priority):
        """Starts the cables (tests/system/cables.c) between these pairs, with a command in front."""
        self.cables = self.start("cables", *priority, program, *(f"{a}{b},{b}{a}" for a, b in links), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.cables.stdout.readline() == "ready\n"

    def impair(self, near, far, delay_us, loss=0):
        """What near sends to far over their cable."""
        self.cables.stdin.write(f"{near}{far} {delay_us} {loss}\n")
        self.cables.stdin.flush()
        assert self.cables.stdout.readline() == "ok\n"

    def late(self):
        """By how many microseconds the machine held a frame up at most, since this was asked last."""
        self.cables.stdin.write("late\n")
        self.cables.stdin.flush()
        return int(self.cables.stdout.readline())

    def close(self):
        if self.cables:
            self.cables.stdin.close()
            self.cables.stdout.close()
            self.cables.kill()
            self.cables.wait()
        for process in self.where.values():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


class Router:
    """host one - r1 [router] r2 - host two; 10.1.0.2 and 10.2.0.2 are the hosts."""

    def __init__(self):
        self.holders = []
        try:
            self.holders = [holder() for _ in range(3)]
            self.one, self.two, self.router = self.holders
            self.wire(self.one, "r1", 1)
            self.wire(self.two, "r2", 2)
            self.run(self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        except subprocess.CalledProcessError as error:
            self.close()
            raise Unavailable(f"no router: {error.stderr.strip()}") from error
        except BaseException:
            self.close()
            raise

    def prefix(self, where):
        return ["nsenter", "-t", str(where.pid), "-n"]

    def run(self, where, *command):
        return subprocess.run([*self.prefix(where), *command], check=True, capture_output=True, text=True).stdout

    def start(self, where, *command, **options):
        return subprocess.Popen([*self.prefix(where), *command], **options)

    def python(self, where, script, *args, **options):
        return self.start(where, sys.executable, "-c", script, *map(str, args), **options)

    def wire(self, host, name, net):
        # Nothing but the traffic of the test: no IPv6, whose router and neighbour messages stay on the link.
        for place in (host, self.router):
            self.run(place, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        self.run(self.router, "ip", "link", "add", "name", name, "type", "veth", "peer", "name", "eth0", "netns", str(host.pid))
        self.run(self.router, "ip", "addr", "add", f"10.{net}.0.1/24", "dev", name)
        self.run(self.router, "ip", "link", "set", name, "up")
        self.run(host, "ip", "addr", "add", f"10.{net}.0.2/24", "dev", "eth0")
        self.run(host, "ip", "link", "set", "eth0", "up")
        self.run(host, "ip", "link", "set", "lo", "up")
        self.run(host, "ip", "route", "add", "default", "via", f"10.{net}.0.1")

    def mac(self, where, interface):
        return json.loads(self.run(where, "ip", "-json", "link", "show", interface))[0]["address"]

    def sent_bytes(self, interface):
        return json.loads(self.run(self.router, "ip", "-json", "-stats", "link", "show", interface))[0]["stats64"]["tx"]["bytes"]

    def shape(self, interface):
        """A slow wire with a short queue behind it, so that packets are lost. False where the kernel cannot."""
        shaper = ["tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", "40mbit", "burst", "64k", "limit", "80k"]
        return subprocess.run([*self.prefix(self.router), *shaper], capture_output=True).returncode == 0

    def close(self):
        for process in self.holders:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


UDP_SINK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
while True:
    s.recv(65536)
"""
# Every eighth is a superframe of ten datagrams (UDP_SEGMENT).
UDP_SOURCE = """
import socket, sys, time
to, port, count, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start = time.monotonic()
for i in range(count):
    super = i % 8 == 7
    s.setsockopt(socket.IPPROTO_UDP, 103, 1000 if super else 0)
    data = b"".join(i.to_bytes(8, "big") + bytes([k]) * 992 for k in range(10))
    s.sendto(data if super else data[: 20 + i % 1200], (to, port))
    while time.monotonic() < start + i / rate:
        time.sleep(0.001)
"""
TCP_SINK = """
import socket, sys
s = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", flush=True)
while True:
    c, _ = s.accept()
    while c.recv(1 << 20):
        pass
    c.close()
"""
TCP_SOURCE = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
left, piece = int(sys.argv[3]), bytes(1 << 16)
while left > 0:
    s.sendall(piece)
    left -= len(piece)
s.shutdown(socket.SHUT_WR)
s.recv(1)
"""
# Superframes of TCP segments for a host that does not answer, past TCP itself: see test_live.py. MAC, count, rate.
TCP_FRAMES = """
import socket, struct, sys, time
count, rate = int(sys.argv[2]), float(sys.argv[3])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.setsockopt(263, 15, 1)
s.bind(("eth0", 0))
start, seq = time.monotonic(), 1
for i in range(count):
    data = bytes(1448 * 8 + i % 1448)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(data), (i * 16) & 0xFFFF, 0x4000, 64, 6, 0,
                     socket.inet_aton("10.1.0.2"), socket.inet_aton("10.2.0.99"))
    total = sum(struct.unpack(">10H", ip))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", total ^ 0xFFFF) + ip[12:]
    tcp = struct.pack(">HHIIBBHHH", 1000, 2000, seq, 1, 0x50, 0x18, 1000, 0, 0)
    frame = bytes.fromhex(sys.argv[1].replace(":", "")) + bytes(6) + b"\\x08\\x00" + ip + tcp + data
    s.send(struct.pack("<BBHHHH", 1, 1, 54, 1448, 34, 16) + frame)
    seq += len(data)
    while time.monotonic() < start + i / rate:
        time.sleep(0.001)
"""
