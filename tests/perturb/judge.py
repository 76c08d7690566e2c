# SPDX-License-Identifier: Apache-2.0
"""Holds a result of `oneway match --json` against the truth of every packet.

A result may leave packets out if it says so (unclassified, outside, ambiguous), and it may be wrong if a warning names
the cause. Anything else is a fault.
"""
import math
import re

from cases import PERTURBATIONS

WAYS = ("a_to_b", "b_to_a")
IDENTICAL = "identical|repeat|ambiguous|period"
COUNTS = "so that both counts"  # .. are off, because of identical packets
DELAYS = COUNTS + "|keeps the order"
# Warnings that say how the result was made, and excuse nothing.
INFORMATION = r"offset is estimated(:| from one direction)|were cut into the segments of the wire|segments are taken to be as long|those\s+of the fragments|corrected for that|flows of which"
QUANTILE_ERROR = 0.001  # what the documentation promises


def names_cause(case, text, also=""):
    """Whether the text names one of the things that went wrong."""
    text = " / ".join(w for w in text.split(" / ") if not re.search(INFORMATION, w))
    words = "|".join(filter(None, [PERTURBATIONS[n][1] for n in case.names] + [also]))
    return bool(words and re.search(words, text, re.I))


class Truth:
    """What a perfect observer of both captures would say of one direction."""

    def __init__(self, case, direction):
        near, far = case.captures[direction], case.captures[1 - direction]
        units = [u for u in case.net.units if u.direction == direction]
        passed = [a - u.t for u in units for a in u.arrivals[:1]]
        self.fastest, self.slowest = (min(passed), max(passed)) if passed else (0, 0)
        self.near_seen = sum(1 for u in units if u.near)
        self.far_seen = sum(len(u.far) for u in units)
        self.pairs = []  # (delay by the captures' clocks, true delay of these stamps)
        self.lost = self.lost_maybe = self.missed = self.uncovered = 0
        self.extra = self.unsent_uncovered = self.copies = self.near_copies = 0
        for u in units:
            self.near_copies += max(0, len(u.near) - 1)
            if u.near and u.far:
                self.pairs.append((u.far[0][0] - u.near[0][0], u.far[0][1] - u.near[0][1]))
                self.copies += len(u.far) - 1
            elif u.near and not u.arrivals:
                window = u.t + self.fastest, u.t + self.slowest
                sure = window[0] >= far.first and window[1] <= far.last and not any(a < window[1] and window[0] < b for a, b in far.holes)
                self.lost += sure
                self.lost_maybe += not sure
            elif u.near:
                self.missed += u.far_reason == "drop"
                self.uncovered += u.far_reason != "drop"
            elif u.far:
                self.extra += len(u.far) if u.near_reason == "drop" else 0
                self.unsent_uncovered += len(u.far) if u.near_reason != "drop" else 0
        self.matched = len(self.pairs)

    def __str__(self):
        d = sorted(p[0] for p in self.pairs)
        delays = f" delay min {d[0]} mean {sum(d) / len(d):.0f} max {d[-1]}" if d else ""
        return (f"matched {self.matched} lost {self.lost} (+{self.lost_maybe} at the edges) missed by the capture {self.missed} "
                f"not covered {self.uncovered} | copies {self.copies} not in the sender's capture {self.extra} "
                f"(+{self.unsent_uncovered} not covered){delays}")


def said_of(result):
    if not result:
        return "nothing"
    d = result["delay_ns"]
    return (f"matched {result['matched']} lost {result['lost']} extra {result['extra']} duplicated {result['duplicated']} "
            f"ambiguous {result['ambiguous']} samples {result['samples']} delay min {d['min']} mean "
            f"{d['mean'] and round(d['mean'])} max {d['max']}")


def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


EMPTY = {"sent": 0, "received": 0, "matched": 0, "lost": 0, "extra": 0, "duplicated": 0, "ambiguous": 0, "samples": 0,
         "delay_ns": {"mean": None, "min": None, "max": None, "quantiles": {}}}


class Judge:
    def __init__(self, case, result, options):
        self.case, self.result, self.options = case, result, options
        self.faults, self.excused, self.minor = [], [], []
        self.truth = [Truth(case, d) for d in (0, 1)]
        self.way = [result[w] or EMPTY for w in WAYS]
        self.warnings = " / ".join(result["warnings"])
        self.auto = "auto" in options
        self.tick = max(max(c.tick, c.rounds) for c in case.captures)
        self.judge()

    def fault(self, kind, text, also=""):
        """`also`: further words that name the cause."""
        (self.excused if names_cause(self.case, self.warnings, also) else self.faults).append((kind, text))

    def judge(self):
        self.conservation()
        self.intervals()
        for d in (0, 1):
            self.counts(d)
            if not self.auto:
                self.delays(d, [p[0] for p in self.truth[d].pairs], 0)
        if self.auto:
            self.estimated_clock()
        if "a clock was set while it captured:" in self.warnings and not any(c.clock_steps or c.slews or c.drift for c in self.case.captures):
            self.faults.append(("false clock step", "no clock was set"))

    # -- counts ------------------------------------------------------------------------------------------------

    def conservation(self):
        r = self.result
        for name, way in zip(WAYS, self.way):
            if way["sent"] != way["matched"] + way["lost"] or way["received"] != way["matched"] + way["extra"]:
                self.faults.append(("conservation", f"{name}: {said_of(way)}"))
            if way["duplicated"] > way["extra"] or way["ambiguous"] > way["matched"] or way["samples"] > way["matched"]:
                self.faults.append(("conservation", f"{name}: {said_of(way)}"))
        if r["identity"]["segments"] or r["identity"]["fragments"] or any(c.superframes for c in self.case.captures):
            return
        for side, sends, gets in (("a", 0, 1), ("b", 1, 0)):
            counted = self.way[sends]["sent"] + self.way[gets]["received"] + sum(r[k][side] for k in ("unclassified", "outside_overlap", "skipped"))
            if counted != r["inputs"][side]["packets"]:
                self.faults.append(("conservation", f"{side}: {counted} of {r['inputs'][side]['packets']} packets are accounted for"))
        for side in (0, 1):
            if r["inputs"]["ab"[side]]["packets"] != len(self.case.files[side]):
                self.fault("reading", f"{'AB'[side]}: {r['inputs']['ab'[side]]['packets']} packets of {len(self.case.files[side])} read")

    def intervals(self):
        """The intervals add up to the whole, and the delays of each are between those of the whole."""
        if "intervals" not in self.result:
            return
        rows = [[row for row in self.result["intervals"]], [row["b_to_a"] for row in self.result["intervals"] if row["b_to_a"]]]
        for name, way, parts in zip(WAYS, self.way, rows):
            for key in ("sent", "received", "matched", "lost", "extra", "duplicated", "ambiguous", "samples"):
                total = sum(part[key] for part in parts)
                if total != way[key]:
                    self.faults.append(("intervals", f"{name}: {key} {way[key]}, of the intervals {total}"))
            delays = [part["delay_ns"] for part in parts if part["samples"]]
            if delays and (min(d["min"] for d in delays), max(d["max"] for d in delays)) != (way["delay_ns"]["min"], way["delay_ns"]["max"]):
                self.faults.append(("intervals", f"{name}: the extremes of the intervals are not those of the whole"))

    def counts(self, d):
        truth, way, name = self.truth[d], self.way[d], WAYS[d]
        near, far = "ab"[d], "ba"[d]
        stated = self.result["unclassified"][near] + self.result["outside_overlap"][near]
        most = truth.lost + truth.lost_maybe
        if way["lost"] > most:
            if way["lost"] <= most + truth.missed:
                if self.knowable(d):
                    self.fault("missed counted as lost", f"{name}: lost {way['lost']}, truth {most}, the capture missed {truth.missed}")
            else:
                self.fault("false loss", f"{name}: lost {way['lost']}, truth {truth.lost}..{most}", COUNTS)
        if way["lost"] < truth.lost - stated:
            self.fault("hidden loss", f"{name}: lost {way['lost']}, truth {truth.lost}, {stated} left out as stated", COUNTS)
        elif way["lost"] < 0.9 * truth.lost - 2:
            self.minor.append(("loss left out", f"{name}: lost {way['lost']} of {truth.lost}, {stated} left out as stated"))
        if way["matched"] > truth.matched:
            self.fault("false match", f"{name}: matched {way['matched']}, truth {truth.matched}", COUNTS)
        left_out = sum(self.result[k][side] for k in ("unclassified", "outside_overlap") for side in (near, far))
        if way["matched"] < truth.matched - left_out:
            self.fault("missing match", f"{name}: matched {way['matched']}, truth {truth.matched}, {left_out} left out as stated", COUNTS)
        elif way["matched"] < truth.matched * 0.95 - 2:
            self.minor.append(("left out", f"{name}: matched {way['matched']} of {truth.matched}; {left_out} left out as stated"))
        if way["extra"] > truth.extra + truth.copies:
            self.fault("false extra", f"{name}: extra {way['extra']}, truth {truth.extra} + {truth.copies} copies", COUNTS)
        # A copy of which the sender's capture dropped the original of its own looks like a duplicate.
        if way["duplicated"] > truth.copies + truth.extra:
            self.fault("false duplicates", f"{name}: duplicated {way['duplicated']}, truth {truth.copies}", IDENTICAL)

    def knowable(self, d):
        """Whether the traffic shows that the receiving capture dropped packets: it also sends, and those are extra then."""
        back = self.truth[1 - d]
        extra = back.extra - self.result["outside_overlap"]["ab"[d]]
        return extra >= 5 and extra > 0.01 * back.far_seen

    # -- delays ------------------------------------------------------------------------------------------------

    def delays(self, d, true, tolerance, name=None):
        """The numbers of the samples against the true delays, less what the result leaves out as stated."""
        way, name = self.way[d], name or WAYS[d]
        delay, n = way["delay_ns"], len(true)
        if not way["samples"] or not n:
            return
        true = sorted(true)
        tolerance += self.tick if self.case.net.mtu or self.auto else 0
        left_out = max(0, n - way["samples"])
        also = IDENTICAL if way["ambiguous"] else DELAYS
        kind = "ambiguous: " if way["ambiguous"] else ""
        bounds = delay.get("bounds") or {}

        def check(what, value, bound, low, high):
            """The value, or the bounds that are stated for it, and the true range have to meet."""
            least, most = bound or (value, value)
            if least > high or most < low:
                self.fault(kind + what.split()[0], f"{name}: {what} {value} ({least}..{most}), truth {low:.0f}..{high:.0f}", also)

        all_there = way["matched"] >= n
        far = float("inf")
        check("minimum", delay["min"], bounds.get("min"), true[0] - tolerance, true[0] + tolerance if all_there else far)
        check("maximum", delay["max"], bounds.get("max"), true[-1] - tolerance if all_there else -far, true[-1] + tolerance)
        mean = sum(true) / n
        allowed = tolerance + 1 + (0 if all_there else left_out / n * (true[-1] - true[0]))
        check("mean", delay["mean"], bounds.get("mean"), mean - allowed, mean + allowed)
        share = left_out / n
        for q, value in delay["quantiles"].items():
            low, high = quantile(true, float(q) - share - 0.5 / n), quantile(true, float(q) + share + 0.5 / n)
            margin = tolerance + QUANTILE_ERROR * abs(value) + 1
            check(f"quantile {q}", value, bounds.get("quantiles", {}).get(q), low - margin, high + margin)

    def estimated_clock(self):
        """--offset auto. The offset is right within what is stated of it; with what it is off by, every delay is right."""
        true = [[p[1] for p in t.pairs] for t in self.truth]
        drift = self.drift_tolerance(true)
        self.offset_bounds(drift)
        off = self.result["clock"]["offset_ns"] - self.right_offset()
        for d in (0, 1):
            shown = [x + off if d == 0 else x - off for x in true[d]]
            self.delays(d, shown, drift + 2 * self.tick)
        said = [w["delay_ns"] for w in self.way if w["samples"]]
        if len(said) == 2:
            total = sum(d["min"] for d in said)
            if total < -2 * self.tick:
                self.fault("no offset fits", f"the minima add up to {total}", "no offset|sum of")
        elif len(said) == 1 and abs(said[0]["min"]) > drift + 2 * self.tick:
            self.fault("minimum of one direction", f"{said[0]['min']}, and not 0", "faster than the clock offset")

    def right_offset(self):
        a, b = self.case.captures
        both = max(a.first, b.first)  # a clock may have been set before the other capture began
        right = a.offset_at(both) - b.offset_at(both)
        if self.result["clock"]["drift_ppb"]:  # the offset is that at B's first packet
            right -= int(b.drift * (b.first - self.case.net.start))
        return right

    def offset_bounds(self, drift):
        """The right offset, which undoes that of B, lies within the stated bounds and the stated error."""
        clock, right = self.result["clock"], self.right_offset()
        low, high = clock["bounds_ns"] or (None, None)
        if low is not None and right < low - drift or high is not None and right > high + drift:
            self.fault("bounds of the offset", f"{low}..{high}, truth {right}")
        if clock["error_ns"] is not None and abs(clock["offset_ns"] - right) > clock["error_ns"] + drift:
            self.fault("error of the offset", f"{clock['offset_ns']} +- {clock['error_ns']}, truth {right}")

    def drift_tolerance(self, true):
        """How far a drift that is estimated from delays can be off over the capture: a part of their spread."""
        spread = max([sorted(t)[len(t) // 2] - min(t) for t in true if t], default=0)
        # A step of a clock that is smaller than what the delays vary cannot be seen.
        steps = sum(abs(ns) for c in self.case.captures for _, ns in c.clock_steps)
        steps += sum(int(abs(gain) * (stop - start)) for c in self.case.captures for start, stop, gain in c.slews)
        steps = steps if steps <= spread else 0
        if not self.result["clock"]["drift_ppb"] and not any(c.drift for c in self.case.captures):
            return steps
        return 10_000 + spread + steps
