# SPDX-License-Identifier: Apache-2.0
"""A capture at one point: what it misses, how it stamps, how it is written."""
import gzip
import struct

from network import S, US
from packets import ACK, PSH, TCP, UDP, bytes_of

ETHERNET, RAW, COOKED, NULL = 1, 101, 113, 0
LONGEST_SUPERFRAME = 60_000


class Capture:
    """Frames of one side. `covered` says whether the capture ran at a time, else why not."""

    def __init__(self, rng, side, network):
        self.rng, self.side, self.network = rng, side, network
        self.snaplen = 262144
        self.offset, self.drift = 0, 0.0  # ns, and ns gained in a ns
        self.tick = 1
        self.rounds = 1  # the clock is read coarser than the file says
        self.slews = []  # (from, to, ns gained in a ns): the clock is adjusted
        self.trailer = 0  # bytes behind the packet
        self.padded = self.fcs = self.nearest = self.wraps = False
        self.queue_lag = 0  # frames of some flows are written this much later
        self.only = None  # the direction that it sees
        self.drop_bursts = []
        self.format = "pcap"
        self.swapped = self.compressed = self.concatenated = False
        self.link, self.encapsulation = ETHERNET, ()
        self.late, self.early, self.holes = 0, 0, []
        self.clock_steps = []  # (true time, ns): the clock is set
        self.drops, self.tells_drops = 0.0, False
        self.mirror, self.mirror_delay = 0.0, 5 * US  # share of frames that are shown twice, and how much later
        self.mirror_from, self.mirror_to = 0, 1 << 63  # when they are
        self.mirror_ways, self.mirror_view = {"sent", "received"}, "same"
        self.disorder = 0.0
        self.superframes = False
        self.dropped = 0
        self.end = 0
        self.first = self.last = 0  # true times of the first and last frame
        self.tunnel_ident = 0

    def stamp(self, t):
        now = t + self.offset + int(self.drift * (t - self.network.start)) + sum(ns for at, ns in self.clock_steps if t >= at)
        now += sum(int(gain * (min(t, stop) - start)) for start, stop, gain in self.slews if t > start)
        tick = max(self.tick, self.rounds)
        return (now + (tick // 2 if self.nearest else 0)) // tick * tick

    def offset_at(self, t):
        """Of its clock, which may have been set before."""
        return self.offset + sum(ns for at, ns in self.clock_steps if at <= t)

    def covers(self, t):
        """None where it covers t, else the reason."""
        if t < self.network.start + self.late:
            return "late"
        if t >= self.end - self.early:
            return "early"
        if any(start <= t < stop for start, stop in self.holes):
            return "hole"
        return None

    # -- from packets to frames --------------------------------------------------------------------------------

    def sightings(self):
        """[time, units that the frame shows, bytes from the IP header on or a whole frame, is a whole frame]"""
        net, found = self.network, []
        groups = {}
        for unit in net.units:
            one = unit.group if (unit.direction == self.side) != bool(unit.whole) else None
            if one in groups:  # further fragments of a packet that is whole here
                groups[one][1].append(unit)
            elif one is not None and (unit.direction == self.side or unit.arrivals):
                groups[one] = [unit.t if unit.direction == self.side else unit.arrivals[0], [unit], None, False]
                found.append(groups[one])
            elif unit.direction == self.side:
                found.append([unit.t, [unit], None, False])
            else:
                found += [[t, [unit], None, False] for t in unit.arrivals]
        found.sort(key=lambda f: f[0])
        if self.superframes:
            found = self.merged(found)
        for sighting in found:
            if sighting[2] is None:
                sighting[2] = net.view(sighting[1][0], self.side)
        found += [[t, [], bytes_of(p), False] for t, p in net.only_packets[self.side]]
        found += [[t, [], raw, True] for t, raw in net.frames[self.side]]
        found.sort(key=lambda f: f[0])
        return found

    def merged(self, found):
        """Segments that the host sends (TSO) or gets (GRO) at one go become one superframe."""
        out, last = [], {}
        for sighting in found:
            unit = sighting[1][0]
            p = unit.packet
            usable = (p.proto == TCP and p.payload and p.flags in (ACK, ACK | PSH) or p.proto == UDP and unit.train) and not unit.piece
            key = (p.src, p.sport, p.dst, p.dport, p.proto)
            if not usable or unit.train is None:
                last.pop(key, None)
                out.append(sighting)
                continue
            before = last.get(key)
            if before and self.joins(before, sighting):
                before[1].append(unit)
                if unit.direction != self.side:  # a superframe that is received is complete with its last segment
                    before[0] = sighting[0]
            else:
                last[key] = sighting
                out.append(sighting)
        for sighting in out:
            first = sighting[1][0]
            if len(sighting[1]) > 1 and not first.piece and not first.whole:
                sighting[2] = self.superframe(sighting[1])
        return out

    def joins(self, before, sighting):
        units, unit = before[1], sighting[1][0]
        first, last, p = units[0], units[-1].packet, unit.packet
        if unit.direction != first.direction or sighting[0] - before[0] > 100 * US or unit in units:
            return False
        if sum(len(u.packet.payload) for u in units) + len(p.payload) > LONGEST_SUPERFRAME:
            return False
        if p.proto == UDP:
            return len(last.payload) == len(first.packet.payload) >= len(p.payload)
        return (p.seq == last.seq + len(last.payload) and not last.flags & PSH and p.options == last.options and p.ack == last.ack
                and len(last.payload) == len(first.packet.payload))

    def superframe(self, units):
        data = b"".join(u.packet.payload for u in units)
        first = units[0]
        whole = first.packet
        kept, flags = whole.payload, whole.flags
        whole.payload, whole.flags = data, flags | units[-1].packet.flags
        frame = self.network.view(first, self.side)
        whole.payload, whole.flags = kept, flags
        return frame

    def take(self):
        """Frames as they are in the file: [(stamp, bytes, length on the wire)]. Leaves the stamps in the units."""
        frames = []
        for t, units, data, whole in self.sightings():
            reason = self.covers(t)
            if reason is None and self.only is not None and units and units[0].direction != self.only:
                reason = "elsewhere"
            if reason is None and any(start <= t < stop for start, stop in self.drop_bursts):
                reason = "drop"
                self.dropped += 1
            if reason is None and self.drops and self.rng.random() < self.drops:
                reason = "drop"
                self.dropped += 1
            if reason:
                for unit in units:
                    if unit.direction == self.side:
                        unit.near_reason = reason
                    else:
                        unit.far_reason = reason
                continue
            frame = data if whole and self.link == ETHERNET else None if whole else self.encapsulate(data, units)
            if frame is None:
                continue
            shown = [(t, frame)]
            if self.mirrors(t, units) and self.rng.random() < self.mirror:
                copy = frame if whole else self.mirrored(frame, data, units)
                shown.append((t + self.mirror_delay + self.rng.randrange(3 * US), copy))
            for when, seen in shown:
                stamped = when - (self.rng.randrange(20 * US) if self.disorder and self.rng.random() < self.disorder else 0)
                stamp = self.stamp(stamped)
                lag = self.queue_lag if units and (units[0].packet.sport ^ units[0].packet.dport) >> 1 & 1 else 0
                frames.append((when + lag, stamp, seen))
                for unit in units:
                    (unit.near if unit.direction == self.side else unit.far).append((stamp, stamped))
        frames.sort(key=lambda f: f[0])
        self.first, self.last = (frames[0][0], frames[-1][0]) if frames else (0, 0)
        return [(stamp, frame[: self.snaplen], len(frame)) for _, stamp, frame in frames]

    def mirrors(self, t, units):
        way = "sent" if not units or units[0].direction == self.side else "received"
        return self.mirror and self.mirror_from <= t < self.mirror_to and way in self.mirror_ways

    def mirrored(self, frame, data, units):
        """The copy: the same bytes, with the tag of another port, or behind a router."""
        if self.mirror_view == "vlan" and self.link == ETHERNET:
            return frame[:12] + b"\x81\0\0\x2a" + frame[12:]
        if self.mirror_view == "ttl" and not self.encapsulation:
            data = bytearray(data)
            if data[0] >> 4 == 6:
                data[7] -= 1
            else:
                data[8] -= 1
                total = (data[10] << 8 | data[11]) + 0x100
                total = (total & 0xFFFF) + (total >> 16)
                data[10], data[11] = total >> 8, total & 0xFF
            return self.encapsulate(bytes(data), units)
        return frame

    # -- link layer --------------------------------------------------------------------------------------------

    def encapsulate(self, data, units):
        outgoing = not units or units[0].direction == self.side
        macs = b"\2\0\0\0\0\1\2\0\0\0\0\2" if outgoing else b"\2\0\0\0\0\2\2\0\0\0\0\1"
        kind = b"\x86\xdd" if data[0] >> 4 == 6 else b"\x08\0"
        for layer in self.encapsulation:
            if layer == "vlan":
                kind, data = b"\x81\0", b"\0\x65" + kind + data
            elif layer == "qinq":
                kind, data = b"\x88\xa8", b"\0\x07\x81\0\0\x65" + kind + data
            elif layer == "mpls":
                kind, data = b"\x88\x47", b"\0\x10\x01\x40" + data
            elif layer == "pppoe":
                inner = b"\0\x57" if data[0] >> 4 == 6 else b"\0\x21"
                kind, data = b"\x88\x64", b"\x11\0\0\x2a" + struct.pack("!H", len(data) + 2) + inner + data
            else:
                kind, data = b"\x08\0", self.tunnel(layer, kind, data, macs, outgoing)
        if self.link == RAW:
            return data
        if self.link == COOKED:
            return struct.pack("!HHH", 4 if outgoing else 0, 1, 6) + macs[6:] + b"\0\0" + kind + data
        frame = macs + kind + data + bytes(self.trailer)
        if self.padded:
            frame += bytes(max(0, 60 - len(frame)))
        return frame + (self.rng.randbytes(4) if self.fcs else b"")

    def tunnel(self, layer, kind, data, macs, outgoing):
        if layer == "gre":
            proto, body = 47, b"\0\0" + kind + data
        elif layer == "vxlan":
            proto, body = 17, struct.pack("!HHHH", 49152 + self.rng.randrange(9), 4789, 30 + len(data), 0) + b"\x08\0\0\0\0\0\x2a\0" + macs + kind + data
        else:
            proto, body = (41 if kind == b"\x86\xdd" else 4), data
        ends = b"\xc0\0\2\1\xc0\0\2\2" if outgoing else b"\xc0\0\2\2\xc0\0\2\1"
        self.tunnel_ident += 1
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), self.tunnel_ident & 0xFFFF, 0, 64, proto, 0) + ends
        return head + body

    # -- files -------------------------------------------------------------------------------------------------

    def write(self, path, frames):
        if self.format == "pcapng":
            data = self.pcapng(frames)
        elif self.concatenated and len(frames) > 2:
            cut = self.rng.randrange(1, len(frames))
            data = self.pcap(frames[:cut]) + self.pcap(frames[cut:])
        else:
            data = self.pcap(frames)
        with open(path, "wb") as f:
            f.write(gzip.compress(data, 1) if self.compressed else data)

    def pcap(self, frames):
        order = ">" if self.swapped else "<"
        magic, unit = (0xA1B23C4D, 1) if self.tick == 1 else (0xA1B2C3D4, 1000)
        record = struct.Struct(order + "IIII")
        parts = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, self.snaplen, self.link)]
        for stamp, frame, length in frames:
            seconds = stamp // S & 0xFFFFFFFF if self.wraps else stamp // S
            parts += [record.pack(seconds, stamp % S // unit, len(frame), length), frame]
        return b"".join(parts)

    def pcapng(self, frames):
        def block(kind, body):
            body += b"\0" * (-len(body) % 4)
            return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
        resolution = b"\x09\0\x01\0" + (b"\x09" if self.tick == 1 else b"\x06") + b"\0\0\0\0\0\0\0"
        parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
                 block(1, struct.pack("<HHI", self.link, 0, self.snaplen) + resolution)]
        for stamp, frame, length in frames:
            stamp //= self.tick
            parts.append(block(6, struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), length) + frame))
        if self.tells_drops and frames:
            stamp = frames[-1][0] // self.tick
            parts.append(block(5, struct.pack("<III", 0, stamp >> 32, stamp & 0xFFFFFFFF) + struct.pack("<HHQ", 5, 8, self.dropped) + b"\0\0\0\0"))
        return b"".join(parts)
