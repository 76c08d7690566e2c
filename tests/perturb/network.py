# SPDX-License-Identifier: Apache-2.0
"""The network between the two points, and the truth: what it did to every packet."""
import heapq
import random
import zlib

from packets import ICMP, ICMP6, SYN, TCP, UDP, bytes_of, fragment_of, pieces_of

US = 1_000
MS = 1_000 * US
S = 1_000 * MS
A, B = 0, 1


class Unit:
    """What is counted: a packet of the wire, or a fragment of one that is cut on the way.

    t         when it passed the sending point
    arrivals  when it, and its duplicates, passed the receiving point; empty: lost
    whole     the datagram that a firewall makes of the host's fragments, of which this is one; else None
    near, far the times that the captures show, and reason of none: drop, hole, late, early
    """
    __slots__ = ("direction", "packet", "piece", "t", "arrivals", "near", "far", "near_reason", "far_reason", "train", "group", "number", "whole")

    def __init__(self, direction, packet, piece, t, train, group, number):
        self.direction, self.packet, self.piece, self.t, self.train, self.group = direction, packet, piece, t, train, group
        self.number, self.whole = number, None
        self.arrivals, self.near, self.far = [], [], []
        self.near_reason = self.far_reason = None


class Path:
    """One direction. Delays are a base, a queue that fills and drains, and rare spikes; order is kept unless told."""

    def __init__(self, rng):
        self.rng = rng
        self.base = int(10 ** rng.uniform(4.7, 7.7))  # 50 us .. 50 ms
        self.queue = self.base * rng.choice([0.02, 0.2, 1.0])  # mean of the queueing delay
        self.level, self.until = 0.0, 0
        self.loss, self.burst_loss, self.bad = 0.0, None, False
        self.outages = []  # (start, end): nothing arrives
        self.duplicate, self.reorder, self.spikes = 0.0, 0.0, 0.0
        self.steps = []  # (time, ns): the route changes
        self.last = 0

    def lost(self, now):
        if any(start <= now < end for start, end in self.outages):
            return True
        if self.burst_loss:
            enter, leave, rate = self.burst_loss
            self.bad = self.rng.random() < ((1 - leave) if self.bad else enter)
            if self.bad and self.rng.random() < rate:
                return True
        return self.loss > 0 and self.rng.random() < self.loss

    def arrival(self, now):
        rng = self.rng
        if now >= self.until:  # the load changes now and then
            self.level = rng.expovariate(1.0) * self.queue
            self.until = now + int(rng.expovariate(1 / (200 * MS)))
        delay = self.base + int(rng.expovariate(1.0) * (self.level + 200)) + sum(ns for t, ns in self.steps if now >= t)
        if self.spikes and rng.random() < self.spikes:
            delay += int(rng.uniform(0.02, 0.4) * S)
        if self.reorder and rng.random() < self.reorder:
            return now + delay + int(rng.uniform(1, 6) * MS)
        self.last = max(self.last + 300, now + delay)
        return self.last


class Network:
    def __init__(self, rng, start):
        self.rng, self.start = rng, start
        self.events, self.order = [], 0
        self.paths = [Path(rng), Path(rng)]
        self.paths[1].base = int(self.paths[0].base * rng.choice([1, 1, 1.01, 1.5]))
        self.units, self.only_packets, self.frames = [], ([], []), ([], [])
        self.groups = 0
        self.beyond = 0.003  # share of packets that get lost after the second point
        # What the network changes. See `view`.
        self.hops, self.dscp, self.mtu = rng.randrange(0, 12), None, 0
        self.mtu_back = 0  # of the direction from B to A, where it is another one
        self.reassembles = False
        self.nat = self.new_ident = self.new_numbers = self.strip_options = self.clamp = self.offload = False
        self.options_added = 0.0
        self.pending = {}  # side: "partial" or "zero" checksums of what it sends
        self.ways, self.fresh_ttl, self.marked, self.hop_by_hop = 1, 0, 0.0, 0.0
        self.flow_label = self.nat64 = False
        self.around = set()  # directions of some flows that take another way
        self.around_share = 0.0
        self.ports, self.shift, self.idents = {}, {}, {}
        self.salt = rng.getrandbits(30)

    # -- events ------------------------------------------------------------------------------------------------

    def at(self, t, call):
        self.order += 1
        heapq.heappush(self.events, (t, self.order, call))

    def run(self, end):
        while self.events and self.events[0][0] < end:
            t, _, call = heapq.heappop(self.events)
            call(t)

    def goes_around(self, p, direction):
        if not self.around_share or direction not in self.around:
            return False
        flow = tuple(sorted([(p.src, p.sport), (p.dst, p.dport)]))
        return random.Random(repr(flow) + str(self.salt)).random() < self.around_share

    def send(self, p, side, now, then=None, train=None):
        path = self.paths[side]
        if self.goes_around(p, side):
            if then:
                self.at(now + path.base, then)
            return
        mtu = side == B and self.mtu_back or self.mtu
        pieces = pieces_of(p, mtu) if mtu else None
        self.groups += 1
        first = path.lost(now)
        whole = True
        latest = now
        for piece in pieces or [None]:
            unit = Unit(side, p, piece, now, train, self.groups, len(self.units))
            self.units.append(unit)
            if first or (piece and path.loss and self.rng.random() < path.loss / 2):
                whole = False
                continue
            unit.arrivals.append(path.arrival(now))
            latest = unit.arrivals[0]
            if path.duplicate and self.rng.random() < path.duplicate:
                unit.arrivals.append(unit.arrivals[0] + self.rng.randrange(2 * US, 3 * MS))
        if whole and then and self.rng.random() >= self.beyond:
            self.at(latest, then)

    def send_reassembled(self, parts, whole, side, now):
        """The fragments of a datagram, which a firewall puts together: [(time from now, fragment)]."""
        path = self.paths[side]
        self.groups += 1
        units = [Unit(side, p, None, now + after, None, self.groups, len(self.units) + i) for i, (after, p) in enumerate(parts)]
        arrivals = [None if path.lost(u.t) else path.arrival(u.t) for u in units]
        for u in units:
            u.whole = whole
            if None not in arrivals:  # else the rest is thrown away
                u.arrivals.append(max(arrivals))
        self.units += units

    def only(self, side, now, p):
        self.only_packets[side].append((now, p))

    def frame(self, side, now, raw):
        self.frames[side].append((now, raw))

    # -- what the points see -----------------------------------------------------------------------------------

    def mapped(self, host, port, proto):
        """Network address translation: one address, ports of its own."""
        key = host, port, proto
        if key not in self.ports:
            self.ports[key] = 1024 + (len(self.ports) * 7 + self.salt) % 60000
        public = b"\xcb\x00\x71\x05" if len(host) == 4 else host
        return public, self.ports[key] if len(host) == 4 else port

    def view(self, unit, side):
        """The bytes of the unit from the IP header on, as this point sees them. A fragment is whole at the sending point."""
        near = side == unit.direction
        p = unit.packet if near or not unit.whole else unit.whole
        change = {}
        if self.nat and side == B:
            if unit.direction == A:
                change["src"], change["sport"] = self.mapped(p.src, p.sport, p.proto)
            else:
                change["dst"], port = self.mapped(p.dst, p.sport if p.proto == ICMP else p.dport, p.proto)
                change["sport" if p.proto == ICMP else "dport"] = port
        if self.new_numbers and side == B and p.proto == TCP:
            flow = (p.src, p.sport, p.dst, p.dport) if unit.direction == A else (p.dst, p.dport, p.src, p.sport)
            shift = self.shift.setdefault(flow, self.rng.getrandbits(32))
            if unit.direction == A:
                change["seq"] = p.seq + shift
            elif p.ack:
                change["ack"] = p.ack + shift
        if not near:
            change["ttl"] = self.fresh_ttl or p.ttl - self.hops
            if self.ways > 1 and not self.fresh_ttl:
                change["ttl"] = p.ttl - self.hops - zlib.crc32(p.src + p.dst + bytes([p.sport & 255, p.dport & 255])) % self.ways
            if self.marked and unit.group * 7919 % 1000 < 1000 * self.marked:
                change["tos"] = p.tos | 3
            if len(p.src) == 16 and unit.group % 100 < 100 * self.hop_by_hop:
                change["ip_options"] = b"\x05\x02\0\0\x01\0"
            if self.flow_label:
                change["label"] = 0x54321
            if self.dscp is not None:
                change["tos"] = self.dscp
            if self.new_ident and len(p.src) == 4 and not p.offset and not p.more:
                change["ident"] = self.idents.setdefault(unit.group, self.rng.randrange(65536))
            if p.proto == TCP and self.strip_options and p.options:
                change["options"] = b"\2\4\x05\xb4\1\3\3\7" if p.flags & SYN else b""
            if p.proto == TCP and self.clamp and p.flags & SYN:
                change["options"] = b"\2\4\x04\xd8" + change.get("options", p.options)[4:]
            if self.options_added and len(p.src) == 4 and unit.group % 100 < 100 * self.options_added:
                change["ip_options"] = b"\x94\x04\0\0"
        elif self.offload and side == A:
            change["partial_checksum"] = True
        elif side in self.pending:
            change["partial_checksum"], change["zero_checksum"] = True, self.pending[side] == "zero"
        if self.nat64 and side == B and len(p.src) == 16:
            change.update(src=p.src[-4:], dst=p.dst[-4:], proto=ICMP if p.proto == ICMP6 else p.proto)
        q = p.but(**change) if change else p
        if unit.piece and not near:
            return fragment_of(q, unit.piece)
        return bytes_of(q)
