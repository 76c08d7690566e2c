# SPDX-License-Identifier: Apache-2.0
"""Captures of the points of a path, and what happened to each packet: truth for tests of oneway match."""
import random
import struct

US = 1000


class Point:
    """hops: routers before it; link: it shows only packets of this link, where there are several in parallel; sees: which
    packets it shows; offset_ns, drift: of its clock."""

    def __init__(self, name, hops=0, link=None, sees=lambda packet: True, offset_ns=0, drift=0):
        self.name, self.hops, self.link, self.sees = name, hops, link, sees
        self.offset_ns, self.drift = offset_ns, drift
        self.frames = []


class Packet:
    def __init__(self, number, flow, sent_ns, reverse, link):
        self.number, self.flow, self.sent_ns, self.reverse, self.link = number, flow, sent_ns, reverse, link
        self.times = {}        # when it passed a point, whether or not the point shows it
        self.lost_after = None  # the last point that it passed, if it was lost


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frame(packet, ttl, nat):
    source, target = 0x0a000000 + packet.flow + 1, 0x0a010001
    if nat:
        source = 0xc0000201
    sport, dport = 10000 + packet.flow, 443
    if packet.reverse:
        source, target, sport, dport = target, source, dport, sport
    payload = struct.pack(">Q", packet.number * 2 + packet.reverse) * 4
    head = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(payload), packet.number & 0xffff, 0, ttl, 17, 0, source, target)
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return b"\0" * 12 + b"\x08\0" + head + struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload


def run(points, count=4000, flows=40, seed=1, gap_ns=500 * US, loss=None, delay=None, links=None, nat_from=None,
        reverse=0.5, start_ns=1_700_000_000 * 10**9):
    """Sends packets through the points. loss: {(from, to): share}; delay: {(from, to): ns}, both ways; links: flow or
    packet -> link. Returns the packets; each point has its frames."""
    choose = random.Random(seed)
    loss, delay = loss or {}, delay or {}
    packets = []
    now = start_ns
    for number in range(count):
        now += int(choose.expovariate(1 / gap_ns)) + 1
        back = choose.random() < reverse
        packet = Packet(number, choose.randrange(flows), now, back, None)
        packet.link = links(packet) if links else None
        at, time = None, now
        for i, point in enumerate(reversed(points) if back else points):
            if point.link is not None and point.link != packet.link:
                continue
            if at is not None:
                hop = (point.name, at.name) if back else (at.name, point.name)
                if choose.random() < loss.get(hop, 0):
                    packet.lost_after = at.name
                    break
                time += int(delay.get(hop, 100 * US) * (1 + choose.expovariate(4)))
            packet.times[point.name] = time
            at = point
            if point.sees(packet):
                index = points.index(point)
                ttl = 64 - abs(point.hops - (points[-1].hops if back else points[0].hops))
                behind = nat_from is not None and index >= nat_from
                shown = time + point.offset_ns + int((time - start_ns) * point.drift)
                point.frames.append((shown, frame(packet, ttl, behind)))
        packets.append(packet)
    return packets


def write(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 1))
        for time, data in sorted(frames, key=lambda f: f[0]):
            file.write(struct.pack("<IIII", time // 10**9, time % 10**9, len(data), len(data)) + data)
