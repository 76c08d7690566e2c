# SPDX-License-Identifier: Apache-2.0
"""Changes of the captures that must not change the result, or change it in a known way. No truth is needed for these."""
import copy
import random

from network import S
from packets import UDP, Packet, bytes_of

COUNTS = ("sent", "received", "matched", "lost", "extra", "duplicated", "ambiguous", "samples")
WAYS = ("a_to_b", "b_to_a")


def numbers(result, names=COUNTS + ("delay_ns", "reordered"), swap=False):
    """What is compared: by direction, and what is left out by side."""
    ways, sides = (WAYS[::-1], "ba") if swap else (WAYS, "ab")
    told = [{n: result[w][n] for n in names} if result[w] and result[w]["sent"] + result[w]["received"] else None for w in ways]
    left_out = [result[k][s] for k in ("unclassified", "outside_overlap", "skipped") for s in sides] if "delay_ns" in names else []
    return told + left_out


def shifted(case, rng):
    """Both clocks run by the same time ahead."""
    by = rng.randrange(10**9) * 1000 * S // 10**6
    by -= by % 1000
    return case.captures, [[(stamp + by, frame, length) for stamp, frame, length in frames] for frames in case.files]


def other_format(case, rng):
    """pcapng instead of pcap and the other way round, compressed or not."""
    captures = [copy.copy(c) for c in case.captures]
    for c in captures:
        c.format = "pcap" if c.format == "pcapng" else "pcapng"
        c.compressed, c.concatenated = not c.compressed, False
    return captures, case.files


def strangers(case, rng):
    """More traffic at one point that has nothing to do with the other."""
    side = rng.randrange(2)
    capture, frames = case.captures[side], case.files[side]
    first, last = min(f[0] for f in frames), max(f[0] for f in frames)
    added = []
    for _ in range(60):
        host, peer = bytes([198, 18, side, rng.randrange(1, 5)]), bytes([198, 19, side, rng.randrange(1, 5)])
        data = bytes_of(Packet(host, peer, UDP, rng.randbytes(rng.randrange(20, 400)), sport=4000, dport=5000, ident=rng.getrandbits(16)))
        frame = capture.encapsulate(data, [])
        stamp = rng.randrange(first, last + 1)
        added.append((stamp - stamp % capture.tick, frame[: capture.snaplen], len(frame)))
    files = list(case.files)
    # Only the added frames are sorted in: the file's own order stays as it is.
    added.sort()
    merged, at = [], 0
    for frame in frames:
        while at < len(added) and added[at][0] < frame[0]:
            merged.append(added[at])
            at += 1
        merged.append(frame)
    files[side] = merged + added[at:]
    return case.captures, files


def swapped(case, rng):
    """A is B."""
    return case.captures[::-1], case.files[::-1]


CHANGES = {"shifted clocks": shifted, "another format": other_format, "strangers at one point": strangers, "A and B swapped": swapped}


def check(case, folder, ask, original):
    """[(kind, text)] of what should be equal and is not. `ask(paths)` runs match without options."""
    faults = []
    for name, change in CHANGES.items():
        # Strangers show that a capture ran, where a silence may be a hole or an outage.
        if change is strangers and (original and original["holes"] or any(c.holes or c.mirror or c.drops for c in case.captures)):
            continue
        # If delays are below 0 whatever the offset, both directions look like A to B.
        if change is swapped and original and any("no clock offset fits" in w for w in original["warnings"]):
            continue
        captures, files = change(case, random.Random(case.seed))
        paths = []
        for letter, capture, frames in zip("xy", captures, files):
            paths.append(f"{folder}/{letter}.{capture.format}")
            capture.write(paths[-1], frames)
        result = ask(paths)
        names = ("sent", "matched", "lost") if change is strangers else COUNTS + ("delay_ns", "reordered")
        before = original and numbers(original, names)
        after = result and numbers(result, names, change is swapped)
        if before != after:
            faults.append(("changed by: " + name, f"{before} became {after}"))
    return faults
