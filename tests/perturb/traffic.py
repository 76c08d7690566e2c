# SPDX-License-Identifier: Apache-2.0
"""Traffic as networks carry it. Each function schedules packets on a `Network`; hosts answer what arrives."""
import random
import struct

from packets import ACK, ESP, FIN, ICMP, ICMP6, PSH, RST, SYN, TCP, UDP, Packet, address

MS = 1_000_000
S = 1_000 * MS
A, B = 0, 1
POOL = random.Random(1).randbytes(1 << 17)


class Host:
    """Addresses and how the system counts IP ids: by packet, at random, or not at all (0)."""

    def __init__(self, rng, side, number, net=None):
        net = net if net is not None else (10, 20 + side * 100)
        self.side = side
        self.rng = rng
        self.v4 = bytes([net[0], net[1], rng.randrange(3), 10 + number])
        self.v6 = address("2001:db8::") [:6] + bytes([0, side + 1]) + rng.randbytes(8)
        self.count = rng.randrange(65536)
        self.policy = rng.choice(["count", "count", "random", "zero"])
        self.ttl = rng.choice([64, 64, 128, 255])
        self.port = rng.randrange(32768, 60000)

    def ident(self, connectionless=False):
        if self.policy == "zero" and not connectionless:
            return 0
        if self.policy == "random":
            return self.rng.randrange(65536)
        self.count += 1
        return self.count & 0xFFFF

    def next_port(self):
        self.port += 1
        return self.port


class Traffic:
    def __init__(self, network, rng, duration, six=False):
        self.net, self.rng, self.duration = network, rng, duration
        self.hosts = [[Host(rng, side, i) for i in range(rng.randrange(1, 4))] for side in (A, B)]
        self.six = six
        # Hosts fill the smallest MTU of the path, less what routers add.
        self.room = (network.mtu or 1500) - (4 if network.options_added else 0)
        self.at = rng.randrange(len(POOL))

    large_six = False  # large datagrams are sent over IPv6 where the rest is

    def payload(self, length):
        """Bytes that no other packet has."""
        self.at = (self.at + 7919) % (len(POOL) - 1600)
        return self.rng.randbytes(min(length, 8)) + POOL[self.at : self.at + max(0, length - 8)] if length else b""

    def pair(self, side=None):
        side = self.rng.randrange(2) if side is None else side
        return self.rng.choice(self.hosts[side]), self.rng.choice(self.hosts[1 - side])

    def packet(self, src, dst, proto, payload=b"", **fields):
        fields.setdefault("ident", src.ident())
        fields.setdefault("ttl", src.ttl)
        six = self.six and fields.pop("six", True)
        fields.pop("six", None)
        return Packet(src.v6 if six else src.v4, dst.v6 if six else dst.v4, proto, payload, **fields)

    def send(self, src, dst, t, p, then=None, **how):
        self.net.at(t, lambda now: self.net.send(p, src.side, now, then, **how))

    # -- applications ------------------------------------------------------------------------------------------

    def dns(self, start, queries=10):
        client, server = self.pair()
        for i in range(queries):
            t = start + int(self.rng.random() * (self.duration - 2 * S))
            port = client.next_port()
            self.query(client, server, port, self.payload(self.rng.randrange(24, 60)), t, self.rng.choice([1, 2, 5]) * S, 0)

    def query(self, client, server, port, question, t, wait, tries):
        done = []
        answer = question[:2] + self.payload(self.rng.randrange(40, 300))

        def asked(now):
            reply = self.packet(server, client, UDP, answer, sport=53, dport=port)
            self.send(server, client, now + self.rng.randrange(50_000, 20 * MS), reply, done.append)

        def again(now):
            if not done and tries < 3:
                self.query(client, server, port, question, now, wait, tries + 1)

        request = self.packet(client, server, UDP, question, sport=port, dport=53, df=False)
        self.send(client, server, t, request, asked)
        self.net.at(t + wait, again)

    def retries(self, start, count, period):
        """Questions of a device that sends the same bytes again, with the same IP id, until it has an answer."""
        client, server = self.pair()
        for i in range(count):
            question = self.packet(client, server, UDP, self.payload(40), sport=client.next_port(), dport=161, df=False)
            self.ask(client, server, question, start + i * period, 4)

    def ask(self, client, server, question, t, tries):
        done = []
        answer = self.packet(server, client, UDP, self.payload(80), sport=161, dport=question.sport)

        def again(now):
            if not done and tries:
                self.ask(client, server, question, now, tries - 1)

        self.send(client, server, t, question, lambda now: self.send(server, client, now + 2 * MS, answer, done.append))
        self.net.at(t + 300 * MS, again)

    def rtp(self, start, seconds, silent=False, both=True):
        """Voice: 50 packets a second. Silence: the same payload each time, or nothing is sent."""
        one, two = self.pair()
        ports = self.rng.randrange(16384, 30000) & ~1, self.rng.randrange(16384, 30000) & ~1
        for src, dst, (sport, dport) in ((one, two, ports), (two, one, ports[::-1]))[: 1 + both]:
            ssrc, sequence, quiet = self.rng.randbytes(4), self.rng.randrange(65536), b"\xff" * 160
            suppress = self.rng.random() < 0.5
            for i in range(int(seconds * 50)):
                talk = (i // 60) % 2 == 0
                if not talk and suppress:
                    continue
                head = struct.pack("!BBHI", 0x80, 0, (sequence + i) & 0xFFFF, i * 160) + ssrc
                p = self.packet(src, dst, UDP, head + (self.payload(160) if talk and not silent else quiet),
                                sport=sport, dport=dport, tos=0xB8)
                self.send(src, dst, start + i * 20 * MS + self.rng.randrange(200_000), p)

    def echo(self, start, count, period, constant=False):
        client, server = self.pair()
        number = self.rng.randrange(65536)
        request, reply, proto = (128, 129, ICMP6) if self.six else (8, 0, ICMP)
        for i in range(count):
            data = b"abcdefghijklmnopqrstuvwabcdefghi" if constant else self.payload(56)
            p = self.packet(client, server, proto, data, kind=request, sport=number, seq=i + 1, df=False)

            def asked(now, i=i, data=data):
                q = self.packet(server, client, proto, data, kind=reply, sport=number, seq=i + 1, df=False)
                self.send(server, client, now + self.rng.randrange(20_000, 100_000), q)

            self.send(client, server, start + i * period, p, asked)

    def quic(self, start, seconds):
        client, server = self.pair()
        port, size = client.next_port(), min(self.rng.choice([1200, 1252, 1350]), self.room - 48)
        t = start
        while t < start + seconds * S:
            count = self.rng.randrange(1, 12)
            for i in range(count):
                length = size if i + 1 < count else self.rng.randrange(60, size)
                p = self.packet(server, client, UDP, self.payload(length), sport=443, dport=port)
                ack = self.packet(client, server, UDP, self.payload(self.rng.randrange(30, 60)), sport=port, dport=443)
                reply = (lambda now, ack=ack: self.send(client, server, now + 30_000, ack)) if i % 3 == 2 else None
                self.send(server, client, t + i * 15_000, p, reply, train=(t, i))
            t += self.rng.randrange(20 * MS, 300 * MS)

    def polling(self, start, period, count, jitter=0.0, replies=True, flood=False):
        """Requests that differ in nothing: no IP id, the same payload. The answers are alike, too."""
        client, server = self.pair(A if flood else None)
        port, data, answer = client.next_port(), self.payload(24), self.payload(32)

        def asked(now):
            q = self.packet(server, client, UDP, answer, sport=502, dport=port, ident=0)
            self.send(server, client, now + self.rng.randrange(50_000, 400_000), q)

        for i in range(count):
            p = self.packet(client, server, UDP, data, sport=port, dport=502, ident=0)
            t = start + int(i * period + self.rng.random() * jitter * period)
            self.send(client, server, t, p, asked if replies else None)

    def scan(self, start, count, period):
        """One host tries many addresses, most of which nobody has."""
        client, _ = self.pair(A if self.rng.random() < 0.7 else B)
        net = self.hosts[1 - client.side][0].v4[:2]
        port = client.next_port()
        for i in range(count):
            target = Host(self.rng, 1 - client.side, 100 + i % 150, net)
            p = self.packet(client, target, TCP, sport=port, dport=self.rng.choice([22, 23, 80, 443, 8080]), flags=SYN,
                            seq=self.rng.getrandbits(32), ident=54321, df=False, window=65535, six=False)

            def asked(now, target=target, p=p):
                q = Packet(p.dst, p.src, TCP, sport=p.dport, dport=p.sport, flags=RST | ACK, ack=p.seq + 1, ttl=64)
                self.send(target, client, now + 40_000, q)

            self.send(client, target, start + i * period, p, asked if self.rng.random() < 0.2 else None)

    def syslog(self, start, count, period):
        """Datagrams to one collector, never answered."""
        client, server = self.pair(A)
        port = client.next_port()
        for i in range(count):
            p = self.packet(client, server, UDP, self.payload(self.rng.randrange(60, 400)), sport=port, dport=514, df=False)
            self.send(client, server, start + int(i * period * (0.5 + self.rng.random())), p)

    def esp(self, start, count, period):
        one, two = self.pair()
        for i in range(count):
            data = struct.pack("!II", 0x1001, i + 1) + self.payload(self.rng.randrange(60, 500))
            p = self.packet(one, two, ESP, data, df=False)
            self.send(one, two, start + i * period, p)

    def large_datagrams(self, start, count, period):
        """Datagrams of several kB, which the host itself sends as fragments (NFS, DNSSEC, old games)."""
        one, two = self.pair()
        port = one.next_port()
        room = 1448 if self.six and self.large_six else 1480
        for i in range(count):
            length, ident = self.rng.randrange(3000, 8000), one.ident(True)
            parts, whole = [], b""
            for number, at in enumerate(range(0, length, room)):
                size = min(room, length - at)
                data = self.payload(size - 8 if at == 0 else size)
                whole += data
                p = self.packet(one, two, UDP, data, sport=port, dport=2049, df=False, ident=ident, offset=at, more=at + room < length,
                                window=length, six=self.large_six)
                parts.append((number * 12_000, p))
            if self.net.reassembles and not self.net.mtu:
                packet = parts[0][1].but(payload=whole, more=False)
                self.net.at(start + i * period, lambda now, parts=parts, packet=packet: self.net.send_reassembled(parts, packet, one.side, now))
                continue
            for after, p in parts:
                self.send(one, two, start + i * period + after, p)

    def long_datagrams(self, start, count, period):
        """Datagrams that fill an Ethernet frame and may be cut on the way."""
        one, two = self.pair()
        port = one.next_port()
        for i in range(count):
            p = self.packet(one, two, UDP, self.payload(self.rng.randrange(1300, 1473)), sport=port, dport=4789 + 11,
                            df=False, ident=one.ident(True), six=False)
            self.send(one, two, start + i * period, p)

    def tcp(self, start, up, down, turns=1, pause=0, keepalive=0, side=None):
        client, server = self.pair(side)
        Connection(self, client, server, start, up, down, turns, pause, keepalive).open()

    def local(self, side, start, seconds):
        """Traffic that only one of the points sees: two hosts on the same side, and what is not IP."""
        net = (172, 16 + side)
        one, two = Host(self.rng, side, 1, net), Host(self.rng, side, 2, net)
        port = one.next_port()
        for i in range(int(seconds * self.rng.choice([2, 10, 30]))):
            src, dst, ports = (one, two, (port, 445)) if self.rng.random() < 0.5 else (two, one, (445, port))
            p = self.packet(src, dst, UDP, self.payload(self.rng.randrange(30, 900)), sport=ports[0], dport=ports[1])
            self.net.at(start + int(self.rng.random() * seconds * S), lambda now, p=p: self.net.only(side, now, p))

    def chatter(self, side, start, seconds):
        """ARP, spanning tree: no IP."""
        mac = bytes([2, 0, 0, 0, side, 9])
        for i in range(int(seconds)):
            arp = b"\xff" * 6 + mac + b"\x08\x06\0\1\x08\0\6\4\0\1" + mac + self.rng.randbytes(14) + b"\0" * 18
            self.net.at(start + i * S + self.rng.randrange(S), lambda now, arp=arp: self.net.frame(side, now, arp))


class Connection:
    """A TCP connection: handshake, requests and answers in segments, acknowledgements, retransmissions, keep-alives."""

    def __init__(self, traffic, client, server, start, up, down, turns, pause, keepalive):
        self.traffic, self.rng, self.start = traffic, traffic.rng, start
        self.end = [client, server]
        self.port = [client.next_port(), self.rng.choice([80, 443, 443, 22, 8443])]
        self.isn = [self.rng.getrandbits(32), self.rng.getrandbits(32)]
        self.next = [1, 1]  # relative to isn
        self.got = [set(), set()]
        self.acked = [0, 0]
        self.amount, self.turns, self.pause, self.keepalive = (up, down), turns, pause, keepalive
        self.stamps = self.rng.random() < 0.7
        self.mss = traffic.room - (60 if traffic.six else 40) - (12 if self.stamps else 0)
        self.rtt = 4 * MS
        self.unacked = [0, 0]
        self.opened = False
        self.contiguous = [1, 1]

    def options(self, now, syn=False):
        stamp = b"\1\1\x08\x0a" + struct.pack("!II", (now // MS) & 0xFFFFFFFF, 77) if self.stamps else b""
        return (b"\2\4\x05\xb4\1\3\3\7" if syn else b"") + stamp

    def send(self, who, now, flags, seq, data=b"", then=None, train=None):
        src, dst = self.end[who], self.end[1 - who]
        ack = self.isn[1 - who] + self.contiguous[1 - who] if flags & ACK else 0
        p = self.traffic.packet(src, dst, TCP, data, sport=self.port[who], dport=self.port[1 - who], flags=flags,
                                seq=self.isn[who] + seq, ack=ack, options=self.options(now, bool(flags & SYN)),
                                window=501 + (seq >> 14))
        self.traffic.net.send(p, src.side, now, then, train=train)

    def at(self, t, call):
        self.traffic.net.at(t, call)

    def open(self, tries=0):
        def syn(now):
            if not self.opened:
                self.send(0, now, SYN, 0, then=lambda then: self.at(then + 60_000, answer))
                if tries < 2:
                    self.open_again(now, tries)

        def answer(now):
            self.send(1, now, SYN | ACK, 0, then=lambda then: self.at(then + 30_000, established))

        def established(now):
            if not self.opened:
                self.opened = True
                self.rtt = max(4 * MS, now - self.start)
                self.send(0, now, ACK, 1)
                self.turn(now + 20_000, 0)

        self.at(self.start, syn)

    def open_again(self, now, tries):
        def retry(later):
            if not self.opened:
                self.start = later
                self.open(tries + 1)
        self.at(now + S * (1 << tries), retry)

    def turn(self, t, number):
        if number == self.turns:
            if self.keepalive:
                self.idle(t, 0)
            else:
                self.at(t, lambda now: self.send(0, now, FIN | ACK, self.next[0],
                                                 then=lambda then: self.at(then, lambda u: self.send(1, u, FIN | ACK, self.next[1]))))
            return
        def requested(now):
            self.transfer(1, now + self.rng.randrange(100_000, 5 * MS), self.amount[1], lambda then: self.turn(then + self.pause, number + 1))
        self.transfer(0, t, self.amount[0], requested)

    def idle(self, t, number):
        """Keep-alives: the same bytes each time, but for what the host counts."""
        if number == 30 or t > self.traffic.duration + self.traffic.net.start - S:
            return
        def alive(now):
            self.send(0, now, ACK, self.next[0] - 1, then=lambda then: self.at(then + 20_000, lambda u: self.send(1, u, ACK, self.next[1])))
        self.at(t + self.keepalive, alive)
        self.at(t + self.keepalive, lambda now: self.idle(now, number + 1))

    def transfer(self, who, t, amount, done):
        """Bursts of up to ten segments; the next one when a round trip is over. `done` when all has arrived."""
        if t > self.traffic.net.start + self.traffic.duration:
            return
        segments, seq = [], self.next[who]
        left = amount
        while left > 0:
            length = min(left, self.mss)
            segments.append((seq, length, self.traffic.payload(length)))
            seq, left = seq + length, left - length
        self.next[who] = seq
        if not segments:
            self.at(t, done)
            return
        state = {"missing": {s[0] for s in segments}, "done": done, "last": segments[-1][0]}
        for i, segment in enumerate(segments):
            burst = i // 10
            when = t + burst * self.rtt + (i % 10) * 12_200
            train = (id(state), burst, i)
            self.at(when, lambda now, s=segment, tr=train: self.segment(who, now, s, state, 0, tr))

    def segment(self, who, now, segment, state, tries, train=None):
        seq, length, data = segment
        flags = ACK | (PSH if seq == state["last"] else 0)

        def arrived(then):
            first = seq in state["missing"]
            state["missing"].discard(seq)
            self.advance(who, seq, length)
            self.unacked[who] += 1
            if self.unacked[who] >= 2 or seq == state["last"] or not first:
                self.unacked[who] = 0
                self.at(then + 15_000, lambda u: self.send(1 - who, u, ACK, self.next[1 - who]))
            if first and not state["missing"]:
                self.at(then + 50_000, state["done"])

        def timeout(then):
            if seq in state["missing"] and tries < 4:
                self.segment(who, then, segment, state, tries + 1)

        self.send(who, now, flags, seq, data, arrived, train)
        self.at(now + max(200 * MS, 2 * self.rtt) * (1 << tries), timeout)

    def advance(self, who, seq, length):
        self.got[who].add((seq, length))
        moved = True
        while moved:
            moved = False
            for s, n in list(self.got[who]):
                if s <= self.contiguous[who]:
                    self.contiguous[who] = max(self.contiguous[who], s + n)
                    self.got[who].discard((s, n))
                    moved = True
