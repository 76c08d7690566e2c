# SPDX-License-Identifier: Apache-2.0
"""A case: a network, traffic, two captures, and one to three things that go wrong. All of it follows from the seed."""
import random

from captures import COOKED, RAW, Capture
from network import A, B, MS, S, US, Network
from traffic import Traffic

PERTURBATIONS = {}
# Perturbations that came later belong to seeds from here on, so that earlier seeds stay the same cases.
ERAS = [(20001, "later"), (200001, "latest"), (700001, "newest")]
ERA_OF = {}


def perturbation(*words, era=None):
    """Registers a function that changes a case. `words`: a regular expression of warnings that name this cause."""
    def register(function):
        PERTURBATIONS[function.__name__] = (function, "|".join(words))
        ERA_OF[function.__name__] = era
        return function
    return register


def of_era(era):
    return sorted(n for n in PERTURBATIONS if ERA_OF[n] == era)


class Case:
    def __init__(self, seed, names=None):
        self.seed = seed
        self.rng = rng = random.Random(seed)
        if names is None:
            names = rng.sample(of_era(None), rng.choice([0, 1, 1, 1, 2, 2, 2, 2, 3, 3]))
            eras = [era for first, era in ERAS if seed >= first]
            if eras:
                names = names[:2] + [rng.choice(of_era(eras[-1]))]
        self.names = sorted(names)
        self.start = 1_700_000_000 * S + rng.randrange(10**6) * MS
        self.seconds = rng.choice([6, 10, 10, 20, 40])
        self.net = Network(rng, self.start)
        self.captures = [Capture(rng, side, self.net) for side in (A, B)]
        self.options = []
        self.one_direction = self.large_six = self.six = False
        self.apps = None  # kinds of traffic, where a perturbation needs them
        self.usual_capture()
        for name in self.names:
            PERTURBATIONS[name][0](self, rng)
        for capture in self.captures:
            capture.end = self.start + self.seconds * S + S // 2
        self.generate()
        self.files = [capture.take() for capture in self.captures]

    def side(self):
        return self.rng.choice(self.captures)

    def path(self):
        return self.rng.choice(self.net.paths)

    def usual_capture(self):
        """Kinds of files and links that ought to make no difference."""
        rng = self.rng
        for capture in self.captures:
            capture.format = rng.choice(["pcap", "pcap", "pcapng"])
            capture.swapped = rng.random() < 0.1
            capture.compressed = rng.random() < 0.1
            capture.tick = rng.choice([1, 1, US])
            capture.link = rng.choice([1, 1, 1, 1, COOKED, RAW])

    def generate(self):
        rng, d = self.rng, self.seconds
        traffic = Traffic(self.net, rng, d * S, six=(rng.random() < 0.15 or self.large_six or self.six) and not self.net.nat and not self.net.mtu)
        traffic.large_six = self.large_six
        t = self.start
        short = min(d, 10)
        kinds = {
            "dns": lambda: traffic.dns(t, rng.randrange(5, 40)),
            "rtp": lambda: traffic.rtp(t + rng.randrange(S), short * 0.6),
            "silence": lambda: traffic.rtp(t + rng.randrange(S), short * 0.6, silent=True),
            "echo": lambda: traffic.echo(t + rng.randrange(S), d * 2, S // 2, rng.random() < 0.3),
            "quic": lambda: traffic.quic(t + rng.randrange(S), short),
            "web": lambda: [traffic.tcp(t + rng.randrange(d * S), rng.randrange(80, 900), rng.randrange(200, 40000)) for _ in range(12)],
            "bulk": lambda: traffic.tcp(t + rng.randrange(S), 300, 400_000, side=rng.randrange(2)),
            "chat": lambda: traffic.tcp(t + rng.randrange(S), 60, 120, turns=d * 4, pause=220 * MS),
            "idle": lambda: [traffic.tcp(t + rng.randrange(S), 100, 500, keepalive=rng.choice([S // 5, S, 2 * S])) for _ in range(3)],
            "polling": lambda: traffic.polling(t + rng.randrange(S), *self.poll(d), jitter=rng.choice([0, 0.02, 0.5])),
            "scan": lambda: traffic.scan(t + rng.randrange(S), 120, d * S // 150),
            "syslog": lambda: traffic.syslog(t + rng.randrange(S), 300, d * S // 330),
            "esp": lambda: traffic.esp(t + rng.randrange(S), 200, d * S // 220),
            "flood": lambda: traffic.polling(t + rng.randrange(S), rng.choice([MS, 10 * MS]), 300, jitter=1.0, replies=False, flood=True),
            "many": lambda: traffic.syslog(t + rng.randrange(S), 4000, d * S // 4400),
            "dns_retries": lambda: traffic.retries(t + rng.randrange(S), 30, (d - 2) * S // 30),
            "few": lambda: traffic.dns(t, rng.randrange(1, 3)),
            "large": lambda: traffic.large_datagrams(t + rng.randrange(S), 40, d * S // 45),
            "long": lambda: traffic.long_datagrams(t + rng.randrange(S), 150, d * S // 160),
        }
        usual = ["dns", "rtp", "echo", "quic", "web", "bulk", "chat", "idle", "syslog", "esp", "web", "chat"]
        seldom = ["silence", "polling", "scan", "flood", "large", "long"]
        if self.one_direction:
            chosen = ["syslog", rng.choice(["syslog", "flood", "syslog"])]
        else:
            chosen = rng.sample(usual, rng.randrange(2, 5)) + (rng.sample(seldom, 1) if rng.random() < 0.35 else [])
        for kind in list(dict.fromkeys(chosen + (self.apps or []))):
            kinds[kind]()
        for side in (A, B):
            if rng.random() < 0.6:
                traffic.chatter(side, t, d)
            if rng.random() < 0.3 and not self.one_direction:
                traffic.local(side, t, d)
        self.kinds = chosen + (self.apps or [])
        self.net.run(self.start + d * S)

    def poll(self, seconds):
        period = self.rng.choice([20 * MS, 100 * MS, S, 5 * S])
        return period, max(2, min(400, (seconds - 1) * S // period))

    def write(self, folder):
        paths = []
        for name, capture, frames in zip("ab", self.captures, self.files):
            suffix = capture.format + (".gz" if capture.compressed else "")
            paths.append(f"{folder}/{name}.{suffix}")
            capture.write(paths[-1], frames)
        return paths


# -- the network -----------------------------------------------------------------------------------------------


@perturbation()
def loss(case, rng):
    case.path().loss = rng.choice([0.002, 0.01, 0.05, 0.2])


@perturbation()
def loss_both(case, rng):
    for path in case.net.paths:
        path.loss = rng.choice([0.002, 0.01, 0.05])


@perturbation()
def burst_loss(case, rng):
    case.path().burst_loss = (rng.choice([0.002, 0.01]), rng.choice([0.05, 0.2]), rng.choice([0.7, 1.0]))


@perturbation("outage", "hole", "cover", "interrupt", "gap", "at all")
def outage(case, rng):
    """Nothing arrives for some time, in one direction or in both; the captures go on."""
    at = case.start + int(rng.uniform(0.2, 0.7) * case.seconds * S)
    both = rng.random() < 0.5
    for path in case.net.paths if both else [case.path()]:
        path.outages = [(at, at + int(rng.uniform(0.05, 0.2) * case.seconds * S))]


@perturbation("duplicat", "more than once", "copies")
def duplicates(case, rng):
    case.path().duplicate = rng.choice([0.005, 0.05])


@perturbation()
def reordering(case, rng):
    case.path().reorder = rng.choice([0.01, 0.1])


@perturbation("may be late")
def spikes(case, rng):
    for path in case.net.paths:
        path.spikes = 0.005


@perturbation("in flight")
def bufferbloat(case, rng):
    path = case.path()
    path.queue = rng.choice([50, 200, 600]) * MS


@perturbation()
def satellite(case, rng):
    for path in case.net.paths:
        path.base = rng.choice([270, 600]) * MS


@perturbation("drift", "step", "route")
def route_change(case, rng):
    path = case.path()
    path.steps = [(case.start + int(rng.uniform(0.2, 0.8) * case.seconds * S), int(rng.uniform(0.5, 5) * MS))]


@perturbation()
def short_path(case, rng):
    """A switch: microseconds."""
    for path in case.net.paths:
        path.base, path.queue = rng.randrange(2 * US, 20 * US), rng.randrange(1, 10) * US


@perturbation()
def marking(case, rng):
    case.net.dscp, case.net.hops = rng.choice([0, 0x28, 0x02]), rng.randrange(1, 30)


@perturbation("nat", "address", "rewrit")
def nat(case, rng):
    case.net.nat = True


@perturbation("identification", "rewrit")
def new_ident(case, rng):
    case.net.new_ident = True


@perturbation("sequence", "number", "rewrit")
def new_numbers(case, rng):
    case.net.new_numbers = True
    case.apps = (case.apps or []) + ["web", "bulk"]


@perturbation("option", "rewrit")
def strip_options(case, rng):
    case.net.strip_options = True
    case.net.clamp = case.seed % 3 == 0
    case.apps = (case.apps or []) + ["web", "bulk"]


@perturbation("option", "rewrit")
def clamp(case, rng):
    case.net.clamp = True
    case.apps = (case.apps or []) + ["web"]


@perturbation("option", "rewrit")
def ip_options(case, rng):
    case.net.options_added = rng.choice([0.3, 1.0])


@perturbation("fragment", "cut on the way")
def fragments(case, rng):
    case.net.mtu = rng.choice([1280, 1400, 1454, 576])
    case.net.mtu_back = [0, 1500, 1398][case.seed % 3]  # no random number: other perturbations stay as they are
    case.apps = (case.apps or []) + ["long"]


@perturbation("fragment")
def large(case, rng):
    case.apps = (case.apps or []) + ["large"]
    case.large_six, case.net.reassembles = case.seed % 4 == 1, case.seed % 4 == 2


@perturbation()
def tags(case, rng):
    capture = case.side()
    capture.link, capture.encapsulation = 1, rng.choice([("vlan",), ("qinq",), ("mpls",), ("pppoe",), ("mpls", "vlan")])


@perturbation("tunnel", "inner")
def tunnel(case, rng):
    capture = case.side()
    capture.encapsulation = (rng.choice(["gre", "vxlan", "ipip"]),) + rng.choice([(), ("vlan",)])
    capture.link = 1


@perturbation()
def around(case, rng):
    """One direction of some flows takes another way."""
    case.net.around, case.net.around_share = {rng.randrange(2)}, 0.5


# -- the captures ----------------------------------------------------------------------------------------------


@perturbation("truncat", "cut")
def snaplen(case, rng):
    for capture in case.captures if rng.random() < 0.5 else [case.side()]:
        capture.snaplen = rng.choice([60, 68, 96, 128, 256])


@perturbation("clock", "offset", "later at", "direction")
def offset(case, rng):
    case.captures[B].offset = int(rng.choice([-1, 1]) * 10 ** rng.uniform(5, 10.5))
    case.auto = True


@perturbation("clock", "offset", "later at", "direction")
def zone(case, rng):
    """Another time zone, TAI, GPS."""
    case.captures[B].offset = rng.choice([-1, 1]) * rng.choice([37 * S, 18 * S, 3600 * S, 7200 * S])


@perturbation("drift", "clock", "ppm")
def drift(case, rng):
    case.captures[B].drift = rng.choice([-1, 1]) * rng.choice([5e-6, 2e-5, 1e-4])


@perturbation()
def late(case, rng):
    case.side().late = int(rng.uniform(0.05, 0.5) * case.seconds * S)


@perturbation()
def early(case, rng):
    case.side().early = int(rng.uniform(0.05, 0.5) * case.seconds * S)


@perturbation("hole", "cover", "interrupt", "gap", "no frame", "at all")
def hole(case, rng):
    at = case.start + int(rng.uniform(0.1, 0.7) * case.seconds * S)
    case.side().holes = [(at, at + int(rng.uniform(0.08, 0.25) * case.seconds * S))]


@perturbation("drop")
def drops(case, rng):
    for capture in case.captures if rng.random() < 0.3 else [case.side()]:
        capture.drops = rng.choice([0.002, 0.02, 0.1])
        capture.tells_drops = capture.format == "pcapng" and rng.random() < 0.5


@perturbation("more than once", "cop(y|ies)")
def mirror(case, rng):
    """A mirror port, or all interfaces of a router: of all or some packets, all or some of the time, both ways or one."""
    for capture in case.captures if rng.random() < 0.15 else [case.side()]:
        capture.mirror = rng.choice([1.0, 1.0, 0.5, 0.05])
        capture.mirror_delay = rng.choice([1, 5, 50, 500, 5000]) * US
        capture.mirror_view = rng.choice(["same", "same", "vlan", "ttl"])
        if rng.random() < 0.3:
            capture.mirror_ways = {rng.choice(["sent", "received"])}
        if rng.random() < 0.3:
            at = case.start + int(rng.uniform(0.1, 0.6) * case.seconds * S)
            capture.mirror_from, capture.mirror_to = at, at + int(rng.uniform(0.1, 0.4) * case.seconds * S)


@perturbation()
def disorder(case, rng):
    case.side().disorder = rng.choice([0.005, 0.1])


@perturbation()
def concatenated(case, rng):
    capture = case.side()
    capture.format, capture.concatenated = "pcap", True


@perturbation("superframe", "segment")
def superframes(case, rng):
    capture = case.side()
    capture.superframes = True
    case.apps = (case.apps or []) + ["bulk"] + rng.choice([[], ["quic"]])


@perturbation()
def offload(case, rng):
    case.net.offload = True


# -- the traffic -----------------------------------------------------------------------------------------------


@perturbation("identical", "repeat", "ambiguous", "period")
def repeats(case, rng):
    case.apps = (case.apps or []) + rng.sample(["polling", "idle", "silence", "flood", "scan"], 2)


@perturbation("direction")
def one_direction(case, rng):
    case.one_direction = True


# -- those that came later -------------------------------------------------------------------------------------


@perturbation("hole", "cover", "interrupt", "gap", "no frame", "at all", era="later")
def holes(case, rng):
    """Both captures have holes, which may overlap."""
    for capture in case.captures:
        for _ in range(rng.randrange(1, 4)):
            at = case.start + int(rng.uniform(0.1, 0.8) * case.seconds * S)
            capture.holes.append((at, at + int(rng.uniform(0.02, 0.2) * case.seconds * S)))


@perturbation("hole", "cover", "interrupt", "gap", "no frame", "at all", era="later")
def late_in_a_hole(case, rng):
    """One capture starts while the other has a hole."""
    first, second = rng.sample(case.captures, 2)
    at = int(rng.uniform(0.1, 0.4) * case.seconds * S)
    length = int(rng.uniform(0.1, 0.3) * case.seconds * S)
    first.holes = [(case.start + at, case.start + at + length)]
    second.late = at + int(rng.random() * length)


@perturbation("clock", "step", "backwards", "offset", "drift", era="later")
def clock_step(case, rng):
    """A clock is set while it captures."""
    at = case.start + int(rng.uniform(0.2, 0.8) * case.seconds * S)
    case.side().clock_steps = [(at, int(rng.choice([-1, 1]) * 10 ** rng.uniform(5, 7.7)))]


@perturbation("drift", "step", "route", era="later")
def detour(case, rng):
    """The route changes to one that is much longer, and perhaps back."""
    path = case.path()
    at = case.start + int(rng.uniform(0.2, 0.6) * case.seconds * S)
    path.steps = [(at, 100 * MS)]
    if rng.random() < 0.5:
        path.steps.append((at + int(rng.uniform(0.05, 0.3) * case.seconds * S), -100 * MS))


@perturbation("direction", era="later")
def lopsided(case, rng):
    """Thousands of packets one way, and one or two the other way."""
    case.one_direction = True
    case.apps = ["many", "few"]


@perturbation("direction", "drift", "clock", "ppm", era="later")
def drift_one_way(case, rng):
    case.one_direction = True
    drift(case, rng)
    case.auto = True


# -- those that came last --------------------------------------------------------------------------------------


@perturbation("multiples of", "timestamps? resolve", era="latest")
def coarse(case, rng):
    """A device that reads its clock every 100 us, millisecond or 10 ms, or at 64 Hz, and writes microseconds."""
    for capture in case.captures if rng.random() < 0.5 else [case.side()]:
        capture.tick, capture.rounds = US, rng.choice([100 * US, MS, 10 * MS, 15_625 * US])


@perturbation("drift", "clock", "step", "ppm", era="latest")
def slew(case, rng):
    """A clock is adjusted by 500 ppm until it is right."""
    at = case.start + int(rng.uniform(0.2, 0.6) * case.seconds * S)
    case.side().slews = [(at, at + int(rng.uniform(0.1, 0.3) * case.seconds * S), rng.choice([-5e-4, 5e-4]))]


@perturbation(era="latest")
def trailer(case, rng):
    """Frames with a checksum, or with what a switch appends."""
    capture = case.side()
    capture.link, capture.trailer = 1, rng.choice([4, 8, 16])


@perturbation("flows of which", "does not pass both", era="latest")
def one_fibre(case, rng):
    """A tap on one of two fibres: a capture shows one direction only."""
    case.side().only = rng.randrange(2)


@perturbation("drop", "stalled", "no packet at all", "does not show", era="latest")
def drop_bursts(case, rng):
    """A ring that overflows for some milliseconds, again and again."""
    capture = case.side()
    for _ in range(rng.randrange(3, 12)):
        at = case.start + int(rng.random() * case.seconds * S)
        capture.drop_bursts.append((at, at + int(rng.choice([2, 10, 40]) * MS)))


@perturbation("identical", "repeat", "ambiguous", "period", era="latest")
def retries(case, rng):
    """Questions that are asked again, byte by byte, until there is an answer; and many are lost."""
    for path in case.net.paths:
        path.loss = 0.1
    case.apps = (case.apps or []) + ["dns_retries"]


# -- the newest ------------------------------------------------------------------------------------------------


@perturbation("truncat", "cut", era="newest")
def snaplens(case, rng):
    """Each capture keeps another length of the packets."""
    for capture, length in zip(case.captures, rng.sample([54, 64, 80, 96, 128, 200, 512], 2)):
        capture.snaplen = length


@perturbation(era="newest")
def pending_checksums(case, rng):
    """The network card computes checksums: a host's capture shows a part of them, or zeros, of what it sends."""
    for side in rng.choice([[A], [B], [A, B]]):
        case.net.pending[side] = rng.choice(["partial", "zero"])


@perturbation(era="newest")
def load_balancer(case, rng):
    """Flows take ways of different lengths, and some devices set TTL to what a host starts with."""
    case.net.ways, case.net.fresh_ttl = rng.choice([2, 4]), rng.choice([0, 0, 64, 255])


@perturbation(era="newest")
def congestion_marks(case, rng):
    case.net.marked = rng.choice([0.05, 0.5])


@perturbation("option", "rewrit", "extension", era="newest")
def hop_by_hop(case, rng):
    """A router adds hop-by-hop options to IPv6 packets."""
    case.six, case.net.hop_by_hop = True, rng.choice([0.3, 1.0])


@perturbation(era="newest")
def flow_labels(case, rng):
    case.six = case.net.flow_label = True


@perturbation("IPv6", "NAT64", "nat64", "translat", era="newest")
def nat64(case, rng):
    """A translates IPv6 of its network to IPv4."""
    case.six = case.net.nat64 = True


@perturbation(era="newest")
def other_tags(case, rng):
    for capture, layers in zip(case.captures, rng.sample([("vlan",), ("qinq",), ("mpls", "vlan"), ("pppoe", "vlan"), ()], 2)):
        capture.link, capture.encapsulation = 1, layers


@perturbation(era="newest")
def padding(case, rng):
    """A switch fills short frames up to 60 bytes, with or without their checksum, at one point or at both."""
    for capture in case.captures if rng.random() < 0.3 else [case.side()]:
        capture.link, capture.padded, capture.fcs = 1, rng.random() < 0.8, rng.random() < 0.5


@perturbation("clock", "step", "backwards", "offset", "drift", "order", era="newest")
def file_jumps(case, rng):
    """A capture of several files, each with a clock of its own."""
    capture = case.side()
    for _ in range(rng.randrange(2, 5)):
        at = case.start + int(rng.uniform(0.1, 0.9) * case.seconds * S)
        capture.clock_steps.append((at, int(rng.choice([-1, 1]) * 10 ** rng.uniform(5, 8))))


@perturbation("order", "wrap", "1970", "backwards", "year", "apart", era="newest")
def seconds_wrap(case, rng):
    """The 32 bits of the seconds of a pcap file overflow, in both captures or in one of them."""
    later = (1 << 32) * S - case.start - int(rng.uniform(0.2, 0.8) * case.seconds * S)
    for capture in case.captures:
        capture.offset += later
        capture.wraps, capture.format = True, "pcap"
    if rng.random() < 0.3:
        case.captures[B].format, case.captures[B].wraps = "pcapng", False


@perturbation("clock", "step", "backwards", "offset", "drift", "order", era="newest")
def leap_second(case, rng):
    at = case.start + int(rng.uniform(0.2, 0.8) * case.seconds * S)
    for capture in case.captures if rng.random() < 0.5 else [case.side()]:
        capture.clock_steps = [(at, -S)]


@perturbation("multiples of", "timestamps? resolve", "impossible", era="newest")
def rounded_up(case, rng):
    """Timestamps are rounded to the nearest tick at one point."""
    capture = case.side()
    capture.tick, capture.rounds, capture.nearest = US, rng.choice([US, 10 * US, MS]), True


@perturbation("order", "backwards", era="newest")
def queues(case, rng):
    """A capture of several queues of a network card, which are written one after the other."""
    capture = case.side()
    capture.queue_lag = int(rng.choice([1, 20, 200]) * MS)
