# SPDX-License-Identifier: Apache-2.0
"""Packets as header fields, and their bytes from the IP header on."""
import copy
import struct

TCP, UDP, ICMP, ICMP6, ESP = 6, 17, 1, 58, 50
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


class Packet:
    """One packet. `ident` is the IPv4 identification; `offset` and `more` are those of a fragment that the host sent."""

    def __init__(self, src, dst, proto, payload=b"", sport=0, dport=0, ident=0, df=True, ttl=64, tos=0, seq=0, ack=0,
                 flags=0, window=502, options=b"", kind=0, code=0, offset=0, more=False):
        self.src, self.dst, self.proto, self.payload = src, dst, proto, payload
        self.sport, self.dport = sport, dport  # ICMP echo: sport is the identifier, seq the number
        self.ident, self.df, self.ttl, self.tos = ident, df, ttl, tos
        self.seq, self.ack, self.flags, self.window, self.options = seq, ack, flags, window, options
        self.kind, self.code = kind, code
        self.offset, self.more = offset, more
        self.ip_options = b""
        self.partial_checksum = self.zero_checksum = False
        self.label = 0x12345  # IPv6

    def but(self, **fields):
        other = copy.copy(self)
        for name, value in fields.items():
            setattr(other, name, value)
        return other


def ones_sum(data):
    if len(data) & 1:
        data += b"\0"
    return int.from_bytes(data, "big") % 65535


def checksum(data):
    return 65535 - ones_sum(data)


def transport(p):
    """Bytes from the transport header on."""
    if p.offset:
        return p.payload
    if p.proto == TCP:
        words = (20 + len(p.options)) // 4
        head = struct.pack("!HHIIBBHHH", p.sport, p.dport, p.seq & 0xFFFFFFFF, p.ack & 0xFFFFFFFF, words << 4, p.flags,
                           p.window, 0, 0) + p.options
        at = 16
    elif p.proto == UDP:
        length = 8 + len(p.payload) if not p.more else p.window  # the first fragment has the datagram's length
        head = struct.pack("!HHHH", p.sport, p.dport, length, 0)
        at = 6
    elif p.proto in (ICMP, ICMP6):
        head = struct.pack("!BBHHH", p.kind, p.code, 0, p.sport, p.seq & 0xFFFF)
        at = 2
    else:
        return p.payload
    pseudo = b"" if p.proto == ICMP else p.src + p.dst + struct.pack("!HH", p.proto, len(head) + len(p.payload))
    value = 0 if p.zero_checksum else ones_sum(pseudo) if p.partial_checksum else checksum(pseudo + head + p.payload)
    return head[:at] + struct.pack("!H", value & 0xFFFF) + head[at + 2 :] + p.payload


def ip_header(p, length, offset, more):
    if len(p.src) == 16:
        part = struct.pack("!BBHI", p.proto, 0, offset | more, p.ident) if offset or more else b""
        following = 44 if part else p.proto
        if p.ip_options:  # hop by hop
            part, following = bytes([following, 0]) + p.ip_options + part, 0
        return struct.pack("!IHBB", 6 << 28 | p.tos << 20 | p.label, len(part) + length, following, p.ttl) + p.src + p.dst + part
    fragment = (0x4000 if p.df and not offset and not more else 0) | (0x2000 if more else 0) | offset // 8
    options = p.ip_options
    head = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, p.tos, 20 + len(options) + length, p.ident & 0xFFFF,
                       fragment, p.ttl, p.proto, 0) + p.src + p.dst + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def bytes_of(p):
    body = transport(p)
    return ip_header(p, len(body), p.offset, p.more) + body


def header_length(p):
    return 40 if len(p.src) == 16 else 20 + len(p.ip_options)


def pieces_of(p, mtu):
    """The offsets of the fragments in which a link of this MTU carries the packet: [(start, end, more)]."""
    length = len(transport(p))
    room = (mtu - header_length(p)) // 8 * 8
    if len(p.src) == 16 or p.df or header_length(p) + length <= mtu:
        return None
    return [(at, min(at + room, length), p.more or at + room < length) for at in range(0, length, room)]


def fragment_of(p, piece):
    start, end, more = piece
    return ip_header(p, end - start, p.offset + start, more) + transport(p)[start:end]


def address(text):
    import ipaddress
    return ipaddress.ip_address(text).packed
