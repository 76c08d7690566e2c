# SPDX-License-Identifier: Apache-2.0
"""Routed networks in namespaces without names, two points in them, and nft's counters as the truth.

    s - lan0 [a] eth0 - [m] - eth0 [b] - t        london is on a, paris on b, each on eth0 with the default configuration
                         \\- [c]                   what goes elsewhere

10.1.0.0/16 is behind a, 10.2.0.0/16 behind b, 10.3.0.0/16 behind c. Hosts do not answer. s, t and c send what a test says."""
import json
import shutil
import subprocess
import sys
import time

import points
import router

PORT = 8620  # of the points' session, which is not measured
# All IP packets of an interface in either direction, but for the session and, without IPv4, ARP.
COUNTERS = """
table netdev truth {{
  counter out {{}}
  counter in {{}}
  chain e {{
    type filter hook egress device "{interface}" priority 0;
    meta l4proto tcp th sport {port} accept
    meta l4proto tcp th dport {port} accept
    meta protocol {{ ip, ip6 }} counter name out
  }}
  chain i {{
    type filter hook ingress device "{interface}" priority 0;
    meta l4proto tcp th sport {port} accept
    meta l4proto tcp th dport {port} accept
    meta protocol {{ ip, ip6 }} counter name in
  }}
}}
"""
LONDON = """point: london
psk: lab.psk
{top}interfaces:
{interfaces}
segments:
  - name: london-paris
    peer: paris
    connect: {address}:8620
{more}"""
PARIS = """point: paris
listen: 0.0.0.0:8620
psk: lab.psk
{top}interfaces:
{interfaces}
segments:
  - name: london-paris
    peer: london
{more}"""
# Raw IP packets: streams of {src, dst: networks /16, flows, nets, size, rate, count, id, same, cut}. The flow of a packet is random.
# cut: bytes of payload in a fragment that the source makes.
SOURCE = """
import json, random, socket, struct, sys, time
streams, seed = json.loads(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
plan = []
def flow(st):
    def host(net):
        a, b = net.split(".")[:2]
        return f"{a}.{b}.{rng.randrange(st.get('nets', 4))}.{rng.randrange(1, 250)}"
    return host(rng.choice(st["src"])), host(rng.choice(st["dst"])), rng.randrange(1024, 60000), rng.randrange(1, 1024)
number = seed * 1000003  # no two sources send the same
for st in streams:
    flows = [flow(st) for _ in range(st.get("flows", 100))]
    for i in range(st["count"]):
        if st.get("new") and i % st["new"] == 0:
            flows[rng.randrange(len(flows))] = flow(st)
        number += 1
        src, dst, sport, dport = flows[0] if st.get("same") else rng.choice(flows)
        size = rng.choice(st["sizes"]) if "sizes" in st else st.get("size", 100)
        mark = 0 if st.get("same") else number
        data = struct.pack(">Q", mark) + bytes(size - 36)
        ident = st["id"] if "id" in st else (number % 65535) + 1
        data = struct.pack(">HHHH", sport, dport, size - 20, 0) + data
        cut = st.get("cut", size)
        for at in range(0, len(data), cut):
            piece = data[at:at + cut]
            more = 0x2000 if at + cut < len(data) else 0
            head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(piece), ident, st.get("df", 0) | more | at // 8, 64, 17, 0, socket.inet_aton(src), socket.inet_aton(dst))
            plan.append((i / st["rate"] + st.get("start", 0), head + piece, dst))
plan.sort(key=lambda p: p[0])
print("ready", flush=True)
sys.stdin.readline()
start = time.monotonic()
for at, packet, dst in plan:
    while time.monotonic() < start + at:
        time.sleep(0.0005)
    s.sendto(packet, (dst, 0))
"""


# A cable between two interfaces that takes its time: seconds, and as many more at most.
DELAY = """
import heapq, random, select, socket, sys, time
least, jitter = float(sys.argv[1]), float(sys.argv[2])
ends = []
for name in sys.argv[3:5]:
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    # A host that is held up for a second loses nothing here: SO_RCVBUFFORCE; PACKET_IGNORE_OUTGOING.
    s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
    s.setsockopt(263, 23, 1)
    s.bind((name, 3))
    s.setblocking(False)
    ends.append(s)
print("ready", flush=True)
rng, queue, number = random.Random(1), [], 0
while True:
    wait = max(0, queue[0][0] - time.monotonic()) if queue else None
    for s in select.select(ends, [], [], wait)[0]:
        try:
            while True:
                frame = s.recv(65536)
                number += 1
                heapq.heappush(queue, (time.monotonic() + least + rng.random() * jitter, number, ends[s is ends[0]], frame))
        except BlockingIOError:
            pass
    while queue and queue[0][0] <= time.monotonic():
        _, _, to, frame = heapq.heappop(queue)
        to.send(frame)
"""


class Network:
    """Namespaces by name, links between them."""

    def __init__(self, names, ipv6=False):
        if not shutil.which("nft"):
            raise router.Unavailable("nftables is not installed")
        self.where, self.sources, self.cables, self.ipv6 = {}, [], [], ipv6
        try:
            for name in names:
                self.where[name] = router.holder()
                settings = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0", "net.ipv4.ip_forward=" + str(int(name not in "stu"))]
                if not ipv6:
                    settings += ["net.ipv6.conf.default.disable_ipv6=1"]
                self.run(name, "sysctl", "-qw", *settings)
                self.ip(name, "link set lo up")
        except BaseException:
            self.close()
            raise

    def prefix(self, name):
        return ["nsenter", "-t", str(self.where[name].pid), "-n"]

    def run(self, name, *command, text=None):
        done = subprocess.run([*self.prefix(name), *command], input=text, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{' '.join(command)} {text or ''}: {done.stderr.strip()}")
        return done.stdout

    def ip(self, name, *lines):
        self.run(name, "ip", "-batch", "-", text="\n".join(lines) + "\n")

    def link(self, near, near_if, far, far_if, net, mtu=1500):
        """NET.1 is near, NET.2 is far."""
        self.ip(near, f"link add name {near_if} mtu {mtu} type veth peer name {far_if} mtu {mtu} netns {self.where[far].pid}",
                f"addr add {net}.1/24 dev {near_if}", f"link set {near_if} up")
        self.ip(far, f"addr add {net}.2/24 dev {far_if}", f"link set {far_if} up")

    def slow_link(self, near, near_if, far, far_if, net, by, least, jitter):
        """The same by a namespace of this name, in which packets take so many seconds; their order may change."""
        for name, interface, address, end in ((near, near_if, 1, "left"), (far, far_if, 2, "right")):
            self.ip(name, f"link add name {interface} type veth peer name {end} netns {self.where[by].pid}", f"addr add {net}.{address}/24 dev {interface}", f"link set {interface} up")
            # Frames pass as they are: neither merged nor with checksums to be filled in.
            self.run(name, "ethtool", "-K", interface, "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off")
            self.ip(by, f"link set {end} up")
        process = subprocess.Popen([*self.prefix(by), sys.executable, "-c", DELAY, str(least), str(jitter), "left", "right"], stdout=subprocess.PIPE, text=True)
        self.cables.append(process)
        assert process.stdout.readline() == "ready\n"

    def route(self, name, *routes):
        self.ip(name, *(f"route replace {r}" for r in routes))

    def nft(self, name, text):
        self.run(name, "nft", "-f", "-", text=text)

    def counters(self, name):
        listed = json.loads(self.run(name, "nft", "-j", "list", "counters"))["nftables"]
        return {c["counter"]["name"]: c["counter"]["packets"] for c in listed if "counter" in c}

    def count(self, name, interface):
        self.nft(name, COUNTERS.format(interface=interface, port=PORT))

    def source(self, name, streams, seed=1):
        """Sends nothing before go()."""
        process = subprocess.Popen([*self.prefix(name), sys.executable, "-c", SOURCE, json.dumps(streams), str(seed)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.sources.append(process)
        return process

    def go(self):
        for process in self.sources:
            assert process.stdout.readline() == "ready\n"
        for process in self.sources:
            process.stdin.write("\n")
            process.stdin.flush()

    def wait(self):
        for process in self.sources:
            assert process.wait(timeout=120) == 0
            process.stdin.close()
            process.stdout.close()
        self.sources = []

    def close(self):
        for process in [*self.sources, *self.cables, *self.where.values()]:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        self.sources, self.cables, self.where = [], [], {}


class Fork(Network):
    """The network above."""

    def __init__(self, ipv6=False, mtu=1500, slow=None):
        """slow: seconds, at least and as many more, that packets take from m to b."""
        super().__init__("sambctx" if slow else "sambct", ipv6)
        try:
            self.link("a", "lan0", "s", "eth0", "10.0.1")
            self.link("a", "eth0", "m", "to_a", "10.0.2")
            if slow:
                self.slow_link("m", "to_b", "b", "eth0", "10.0.3", "x", *slow)
            else:
                self.link("m", "to_b", "b", "eth0", "10.0.3", mtu)
            self.link("m", "to_c", "c", "eth0", "10.0.4")
            self.link("b", "lan0", "t", "eth0", "10.0.5")
            for host in "st":
                self.route(host, f"default via 10.0.{1 if host == 's' else 5}.1")
            self.route("a", "default via 10.0.2.2", "10.1.0.0/16 via 10.0.1.2")
            self.route("b", "default via 10.0.3.1", "10.2.0.0/16 via 10.0.5.2")
            self.route("m", "10.1.0.0/16 via 10.0.2.1", "10.0.1.0/24 via 10.0.2.1", "10.2.0.0/16 via 10.0.3.2", "10.0.5.0/24 via 10.0.3.2", "10.3.0.0/16 via 10.0.4.2")
            # It takes what comes without a word, and can send.
            self.run("c", "sysctl", "-qw", "net.ipv4.ip_forward=0")
            self.route("c", "default via 10.0.4.1")
            for name in "ab":
                self.count(name, "eth0")
        except BaseException:
            self.close()
            raise

    address = "10.0.3.2"


class Ways(Network):
    """Several ways from a to t, each by a router of its own:

    s - lan0 [a] eth0 - [m] - eth0 [b] - t        london is on a, paris1 on b, paris2 on c, ...
                         \\- eth0 [c] -/            m divides what goes to 10.2.0.0/16 by flow, or by packet"""

    def __init__(self, per_packet, ways="bc", slow=None, nested=False):
        """slow: seconds, at least and as many more, that packets take by c. nested: all ways but the first are behind
        another router, n, which divides what it gets by packet."""
        super().__init__("sam" + ways + "t" + ("x" if slow else "") + ("n" if nested else ""))
        try:
            self.link("a", "lan0", "s", "eth0", "10.0.1")
            self.link("a", "eth0", "m", "to_a", "10.0.2")
            self.route("s", "default via 10.0.1.1")
            self.route("a", "default via 10.0.2.2", "10.1.0.0/16 via 10.0.1.2")
            self.route("m", "10.1.0.0/16 via 10.0.2.1", "10.0.1.0/24 via 10.0.2.1")
            if nested:
                self.link("m", "to_n", "n", "to_m", "10.0.30")
                self.route("n", "default via 10.0.30.1")
            for n, way in enumerate(ways, 3):
                front = "n" if nested and n > 3 else "m"
                if slow and way == "c":
                    self.slow_link(front, "to_c", "c", "eth0", "10.0.4", "x", *slow)
                else:
                    self.link(front, "to_" + way, way, "eth0", f"10.0.{n}")
                if front == "n":
                    self.route("m", f"10.0.{n}.0/24 via 10.0.30.2")
                self.link(way, "lan0", "t", "eth_" + way, f"10.0.{n + 10}")
                self.route(way, f"default via 10.0.{n}.1", f"10.2.0.0/16 via 10.0.{n + 10}.2")
                # After nft's loss, which is at the forward hook: what leaves for the way.
                self.nft(front, f"table netdev way_{way} {{\n counter {way} {{}}\n chain e {{\n type filter hook egress device to_{way} priority 0;\n"
                                f" ip daddr 10.2.0.0/16 counter name {way}\n }}\n}}\n")
                self.count(way, "eth0")
            self.count("a", "eth0")
            self.route("t", "default via 10.0.13.1")
            hops = [f"10.0.{n}.2" for n in range(3, 3 + len(ways))]
            if nested:
                self.divide("n", hops[1:], True)
                hops = [hops[0], "10.0.30.2"]
            self.divide("m", hops, per_packet)
        except BaseException:
            self.close()
            raise

    def divide(self, router_name, hops, per_packet):
        """What goes to 10.2.0.0/16, among these routers."""
        if not per_packet:
            self.run(router_name, "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1")
            self.route(router_name, "10.2.0.0/16 " + " ".join(f"nexthop via {hop}" for hop in hops))
            return
        self.nft(router_name, "table ip split {\n chain p {\n type filter hook prerouting priority -300;\n"
                              f" ip daddr 10.2.0.0/16 meta mark set numgen inc mod {len(hops)}\n }}\n}}\n")
        self.route(router_name, f"10.2.0.0/16 via {hops[0]}")
        for n, hop in enumerate(hops[1:], 1):
            self.ip(router_name, f"rule add fwmark {n} lookup {100 + n}", f"route add 10.2.0.0/16 via {hop} table {100 + n}")


class Pair:
    """london and paris with the configurations of docs/point.md on a network."""

    def __init__(self, case, network, at=("a", "b"), interfaces=(("eth0",), ("eth0",)), more=("", ""), env=(None, None), memory=None, store=False):
        self.case, self.network, self.at = case, network, at
        self.folder = case.path("")
        case.keys("psk")
        names = ("london", "paris")
        for name, text, interface, lines in zip(names, (LONDON, PARIS), interfaces, more):
            lists = "\n".join(f"  - name: {i}" for i in interface)
            top = (f"memory: {memory}\n" if memory else "") + (f"store: {name}.db\n" if store else "")
            case.write(name + ".yaml", text.format(interfaces=lists, address=network.address, more=lines, top=top))
        self.point = {}
        for name, place, e in reversed(list(zip(names, at, env))):
            self.point[name] = points.Point(case.path(name + ".yaml"), prefix=network.prefix(place), env=e)
            case.points.append(self.point[name])
            if name == "paris":
                self.point[name].wait_for("listening on")

    def begin(self):
        """Until all intervals have begun; returns what nft counted so far."""
        self.point["london"].wait_for_intervals()
        self.point["paris"].wait_for_intervals()
        self.before = {place: self.network.counters(place) for place in self.at}

    def end(self):
        """Results of both points, and what nft counted."""
        time.sleep(0.3)
        after = {place: self.network.counters(place) for place in self.at}
        # Nothing is sent any more: what is waited for is the end of the interval, and of the waiting time.
        now_ns, patience = time.time_ns(), time.monotonic() + points.PATIENCE
        time.sleep(2)
        while not all(self.is_final(point, now_ns) for point in self.point.values()) and time.monotonic() < patience:
            time.sleep(0.1)
        for point in self.point.values():
            point.stop()
        self.results = {name: point.end()[0] for name, point in self.point.items()}
        self.log = {name: point.log for name, point in self.point.items()}
        self.truth = {}
        for name, place in zip(("london", "paris"), self.at):
            for way in ("out", "in"):
                self.truth[name, way] = after[place].get(way, 0) - self.before[place].get(way, 0)
        return self.results

    @staticmethod
    def is_final(point, at_ns):
        """Whether all lanes of the point have final results up to this time."""
        newest = {}
        for r in point.so_far():
            if "status" in r:
                lane = r["from"], r["to"], r["class"]
                newest[lane] = max(newest.get(lane, 0), r["start_ns"] + r["length_ns"] if r["final"] else 0)
        return all(end_ns >= at_ns for end_ns in newest.values())

    def lane(self, sender, at=None):
        """Final results of what this point sent, as the point `at` has them."""
        return [r for r in self.results[at or sender] if r["from"] == sender and r["final"]]
