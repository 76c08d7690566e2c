# SPDX-License-Identifier: Apache-2.0
"""sniff.py IF FILE: captures an interface until SIGTERM, as the wire has it: superframes of segmentation offload are cut
into their packets here, without the program's help. Then says how many frames it had to drop."""
import signal
import socket
import struct
import sys

SOL_PACKET, PACKET_STATISTICS, PACKET_VNET_HDR = 263, 6, 15
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
ETH_P_ALL, ETH_P_IP, IPPROTO_TCP = 3, 0x0800, 6
GSO_TCP4, GSO_UDP_L4 = 1, 5
FIN_PSH, CWR = 0x09, 0x80


def cut(frame, gso_type, gso_size):
    """The packets of an IPv4 superframe. Checksums stay as they are: offload leaves them unfinished anyway."""
    if gso_type & 0x7F not in (GSO_TCP4, GSO_UDP_L4) or frame[12:14] != b"\x08\x00":
        return [frame]
    ip = 14
    l4 = ip + (frame[ip] & 15) * 4
    tcp = frame[ip + 9] == IPPROTO_TCP
    data = l4 + (frame[l4 + 12] >> 4) * 4 if tcp else l4 + 8
    end = ip + struct.unpack_from(">H", frame, ip + 2)[0]
    ip_id = struct.unpack_from(">H", frame, ip + 4)[0]
    packets = []
    for n, start in enumerate(range(data, end, gso_size)):
        part = frame[start : min(start + gso_size, end)]
        packet = bytearray(frame[:data]) + part
        struct.pack_into(">HH", packet, ip + 2, len(packet) - ip, (ip_id + n) & 0xFFFF)
        if tcp:
            seq = struct.unpack_from(">I", frame, l4 + 4)[0]
            struct.pack_into(">I", packet, l4 + 4, (seq + start - data) & 0xFFFFFFFF)
            if start + gso_size < end:
                packet[l4 + 13] &= ~FIN_PSH
            if n:
                packet[l4 + 13] &= ~CWR & 0xFF
        else:
            struct.pack_into(">H", packet, l4 + 4, len(packet) - l4)
        packets.append(bytes(packet))
    return packets


def main():
    interface, path = sys.argv[1:]
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sniffer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
    sniffer.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sniffer.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sniffer.bind((interface, ETH_P_ALL))
    sniffer.settimeout(0.1)
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        print("ready", flush=True)
        while True:
            try:
                data, control, _, _ = sniffer.recvmsg(262144, 64)
            except TimeoutError:
                if ends:
                    break
                continue
            stamp = next(value for level, kind, value in control if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS)
            seconds, nanoseconds = struct.unpack("qq", stamp)
            _, gso_type, _, gso_size = struct.unpack_from("<BBHH", data)
            for packet in cut(data[10:], gso_type, gso_size) if gso_type else [data[10:]]:
                out.write(struct.pack("<IIII", seconds, nanoseconds, len(packet), len(packet)) + packet)
    print(struct.unpack("II", sniffer.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1])


main()
