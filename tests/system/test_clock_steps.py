# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set while two points measure: every interval is measured or says why not, nothing is called loss, results
come back by themselves, and no result is of two clocks. The clock is that of injected_clock.c; the host's is not touched."""
import itertools
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

import command
import faults
import points
import router
import test_point_live

MS, S, HOUR = 10**6, 10**9, 3600 * 10**9
LENGTH = 200 * MS
RECENT_NS = S + 2 * LENGTH  # results are final after a second
SEGMENT = "interval: 200ms\n    wait: 2s\n    classes: [{name: data, filter: udp port 7000}]"
# Datagrams with the number in front, for ever.
TRAFFIC = """
import itertools, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start = time.monotonic()
for i in itertools.count():
    try:
        s.sendto(i.to_bytes(8, "big") * 10, (sys.argv[1], 7000))
    except ConnectionRefusedError:
        pass
    ahead = i / 500 - (time.monotonic() - start)
    if ahead > 0.002:
        time.sleep(ahead)
"""


class Clock:
    """What a point's clock is ahead of the host's, and what it knows of its error."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(40))
        self.file = open(path, "r+b")
        self.memory = mmap.mmap(self.file.fileno(), 40)
        self.file.close()
        self.sequence, self.offset, self.error = 0, 0, 50_000
        self.steps = []  # host's time, by how much
        self.write(0, 0)

    def put(self, at, value):
        self.memory[8 * at : 8 * at + 8] = struct.pack("<q", value)

    def write(self, at_ns, before):
        self.put(0, self.sequence + 1)
        for i, value in enumerate((self.error, at_ns, before, self.offset), 1):
            self.put(i, value)
        self.sequence += 2
        self.put(0, self.sequence)

    def step(self, by):
        """Takes place in a moment, so that stamps before and after it are told apart."""
        at = time.time_ns() + 20 * MS
        before = self.offset
        self.offset += by
        self.steps.append((at, by))
        self.write(at, before)

    def state(self, error):
        self.error = error
        self.write(0, self.offset)

    def env(self):
        return {"ONEWAY_TEST_CLOCK": self.path}


class Steps(points.Case):
    def setUp(self):
        super().setUp()
        self.far = test_point_live.Far()
        self.addCleanup(self.far.close)
        self.clocks = {name: Clock(self.path(name + ".clock")) for name in ("london", "paris")}
        os.environ["ONEWAY_TEST_CLOCK"] = self.clocks["london"].path  # of keygen

    def begin(self, segment=SEGMENT, agreed=True):
        self.keys("psk")
        config = test_point_live.CONFIG
        self.write("paris.yaml", config.format(name="paris", listen="listen: 10.9.0.2:8620\n", interface="far", peer="london", more="facing: peer"))
        self.write("london.yaml", config.format(name="london", listen="", interface="near", peer="paris", more="connect: 10.9.0.2:8620\n    " + segment))
        paris = points.Point(self.path("paris.yaml"), prefix=self.far.enter(), env=self.clocks["paris"].env())
        self.points.append(paris)
        paris.wait_for("listening on")
        london = self.start(self.path("london.yaml"), env=self.clocks["london"].env())
        for point in (london, paris) if agreed else ():
            point.wait_for("agreed on", 2)
        for ns, host in (([], "10.9.0.2"), (self.far.enter(), "10.9.0.1")):
            sender = subprocess.Popen([*ns, sys.executable, "-c", TRAFFIC, host])
            self.addCleanup(sender.wait)
            self.addCleanup(sender.kill)
        return {"london": london, "paris": paris}

    def finish(self, pair):
        results = {}
        for name, point in pair.items():
            point.stop()
        for name, point in pair.items():
            results[name], _ = point.end()
            self.assertEqual(point.code, 0, point.log)
        return results

    def check(self, name, results):
        """What holds whatever the clocks do."""
        for r in results:
            self.assert_conserved(r)
            self.assertEqual(r["lost"] or 0, 0, r)
            if r["status"] != "measured":
                self.assertTrue(r["cause"], r)
        measured = [r for r in results if r["final"] and r["status"] == "measured"]
        self.assertTrue(measured)
        for lane in ("london", "paris"):
            self.assertTrue(any(r["from"] == lane for r in measured), f"{name}: no result from {lane}")
        return measured

    def assert_unmixed(self, measured, apart):
        """Delays of an interval are all of one difference of the clocks, and that is one there has been: paris less london."""
        for r in measured:
            if r["clock"]["method"] == "none":
                # The packets arrived, and nobody knows how long they took.
                self.assertIsNone(r["delay_ns"]["mean"], r)
                self.assertEqual(r["without_clock"], r["matched"] + r["late"] - r["ambiguous"], r)
                continue
            self.assertEqual(r["without_clock"], 0, r)
            if not r["samples"]:
                continue
            sign = 1 if r["to"] == "paris" else -1
            best = min(abs(r["delay_ns"]["mean"] - sign * a) for a in apart)
            # A virtual cable takes microseconds; a mean of 0.5 ms would be a machine that is held up all the time.
            self.assertLess(best, MS / 2, r)

    def agreed(self, pair, count):
        for point in pair.values():
            point.wait_for("agreed on", count)

    @staticmethod
    def step_of(cause, who):
        """By how much a clock was set, of a cause that says so."""
        found = re.fullmatch(rf"clock stepped by ([+-][0-9.]+) (us|ms|s) at {who}", cause)
        return float(found[1]) * {"us": 1000, "ms": MS, "s": S}[found[2]] if found else None

    def assert_told(self, results, who, size):
        """Both points have said of both directions what the clock did where, as exactly as two clocks are read (and shown)."""
        for name, way in itertools.product(results, ("london", "paris")):
            unknown = [r["cause"] for r in results[name] if r["status"] == "unknown" and r["from"] == way]
            steps = [step for step in (self.step_of(cause, who) for cause in unknown) if step is not None]
            self.assertTrue(any(abs(step - size) <= max(50_000, abs(size) / 1000) for step in steps), f"{name}: {size} from {way}: {unknown}")

    def run_steps(self, who, sizes):
        """Small steps at one point; results come back after each, by the clocks as they are then."""
        pair = self.begin()
        apart = [0]
        time.sleep(1)
        for i, size in enumerate(sizes, 2):
            self.clocks[who].step(size)
            apart.append(apart[-1] + (size if who == "paris" else -size))
            self.agreed(pair, 2 * i)
            time.sleep(1.5)
        results = self.finish(pair)
        for name in results:
            self.assert_unmixed(self.check(name, results[name]), apart)
        for size in sizes:
            self.assert_told(results, who, size)
        self.assertEqual(pair[who].log.count("the clock stepped by"), len(sizes), pair[who].log)
        return results

    def test_small_at_who_connects(self):
        self.run_steps("london", [MS, -MS, 40 * MS])

    def test_small_at_who_is_connected_to(self):
        self.run_steps("paris", [-MS, -40 * MS])

    def run_there_and_back(self, who, sizes):
        """Steps by more than clocks may be apart: not measured, and said so, until the clock is right again."""
        pair = self.begin()
        time.sleep(1)
        for i, size in enumerate(sizes, 2):
            self.clocks[who].step(size)
            pair["london"].wait_for("refused: the clocks", i - 1)
            time.sleep(1)
            self.clocks[who].step(-size)
            self.agreed(pair, 2 * i)
            time.sleep(1.5)
        results = self.finish(pair)
        for name in results:
            self.assert_unmixed(self.check(name, results[name]), [0])
            for size in sizes:
                self.assertTrue(any("the clocks are" in r.get("cause", "") for r in results[name]))
        for size in sizes:
            self.assert_told(results, who, size)

    def test_large_at_who_connects(self):
        self.run_there_and_back("london", [S, -HOUR])

    def test_large_at_who_is_connected_to(self):
        self.run_there_and_back("paris", [-S, HOUR])

    def test_apart_from_the_start(self):
        """Never measured: each interval says why, of both directions, and is measured as soon as the clock is right."""
        self.clocks["paris"].offset = 2 * S
        self.clocks["paris"].state(50_000)
        pair = self.begin(agreed=False)
        pair["london"].wait_for("refused: the clocks")
        time.sleep(2)
        self.clocks["paris"].step(-2 * S)
        self.agreed(pair, 2)
        time.sleep(1.5)
        results = self.finish(pair)
        self.check("london", results["london"])
        for way in ("london", "paris"):
            causes = [r["cause"] for r in results["london"] if r["from"] == way and r["status"] == "unknown"]
            self.assertTrue(any(re.match(r"the clocks are (2|2\.0\d*|1\.9\d*) s apart, more than half an interval", c) for c in causes), causes)

    def test_source_is_lost(self):
        """Said once, in each result, and once when it is back; loss is measured all the time."""
        pair = self.begin()
        time.sleep(1.6)  # t0 and some intervals
        self.clocks["paris"].state(-1)
        pair["paris"].wait_for("the clock has lost its source")
        time.sleep(1)
        self.clocks["paris"].state(3 * MS)
        pair["paris"].wait_for("the clock is synchronised: its error is at most 3 ms, according to the kernel")
        time.sleep(1)
        results = self.finish(pair)
        for name in results:
            measured = self.check(name, results[name])
            ours = [r["clock"]["from" if r["from"] == "paris" else "to"] for r in measured]
            self.assertEqual({c["error_ns"] for c in ours}, {50_000, None, 3 * MS})
            self.assertEqual({c["synchronised"] for c in ours}, {True, False})
            for r in measured:
                bounds = [r["clock"][side]["error_ns"] for side in ("from", "to")]
                if r["clock"]["method"] == "trusted" and r["samples"] and None not in bounds and sum(bounds) > abs(r["delay_ns"]["mean"]):
                    self.assertIn("clock error exceeds the delay", r["warnings"][0])
        self.assertEqual(pair["paris"].log.count("lost its source"), 1, pair["paris"].log)


class Apart(points.Case):
    """Clocks that are four times as far apart as the path is long, and that nothing synchronises. The wire knows the delay."""

    apart, base = 8 * MS, 2 * MS
    # What the wire tells of at a time, a packet or so: both clocks' intervals are made of it, so the truth is of the same packets.
    step_ms = 2

    @staticmethod
    def usable(results):
        return [r for r in results if r.get("final") and r["status"] == "measured" and r["samples"] > 50]

    def run_apart(self, mode):
        net = faults.Net(self.step_ms, 0, 500, 1, [], f"{self.base}ns")
        self.addCleanup(net.close)
        clocks = {name: Clock(self.path(name + ".clock")) for name in faults.HOST}
        os.environ["ONEWAY_TEST_CLOCK"] = clocks["london"].path
        clocks["paris"].offset = self.apart
        for clock in clocks.values():
            clock.state(-1)
        self.keys("psk")
        more = {"paris": "clock: " + mode, "london": "connect: 192.0.2.2:8620\n    interval: 200ms\n    wait: 1s\n    clock: " + mode}
        for name in more:
            listen = "listen: 192.0.2.2:8620\n" if name == "paris" else ""
            self.write(name + ".yaml", test_point_live.CONFIG.format(name=name, listen=listen, interface="wire0", peer=faults.other(name), more=more[name]))
        pair = {}
        for name in ("paris", "london"):
            pair[name] = points.Point(self.path(name + ".yaml"), prefix=net.enter(name), env=clocks[name].env())
            self.points.append(pair[name])
            if name == "paris":
                pair[name].wait_for("listening on")
        pair["london"].wait_for("agreed on", 2)
        end = time.monotonic() + points.PATIENCE
        while min(len(self.usable(point.so_far())) for point in pair.values()) < 50 and time.monotonic() < end:
            for point in pair.values():
                point.read_log(0.1)
        for point in pair.values():
            point.stop()
        results = {name: point.end()[0] for name, point in pair.items()}
        net.stop()
        for name, found in results.items():
            for r in found:
                self.assert_conserved(r)
            results[name] = self.usable(found)
            self.assertGreaterEqual(len(results[name]), 50, pair[name].log)
        return results, net

    def truth(self, net, sender, start_ns, sent=None):
        """What the wire did in an interval of the sender, by the sender's clock. None if nothing; or if these are not the packets that
        were sent, because the kernel handed them to the wire when it had told of that time."""
        start_ns -= self.apart if sender == "paris" else 0
        steps = (net.truth.get((faults.HOST[sender], at)) for at in range(start_ns, start_ns + LENGTH, self.step_ms * MS))
        delays = sorted(itertools.chain.from_iterable([t["mean_ns"]] * t["matched"] for t in steps if t))
        if not delays or (sent is not None and abs(len(delays) - sent) > 1):
            return None
        # Two packets of a step have their mean here, so a quantile may be that of a neighbour.
        most = len(delays) - 1
        jitter = [delays[min(most, max(0, len(delays) * 19 // 20 + by))] - delays[len(delays) // 2] for by in (-2, 2)]
        return {"mean_ns": sum(delays) / len(delays), "jitter_ns": jitter}

    def test_auto_is_relative(self):
        results, net = self.run_apart("auto")
        for name, found in results.items():
            relative = [r for r in found if r["clock"]["method"] == "relative"]
            # The first second has no floor of the other direction yet, and says so.
            self.assertGreater(len(relative), len(found) / 2)
            for r in found:
                self.assertEqual(r["lost"], 0, r)
                if r["clock"]["method"] == "none":
                    self.assertTrue(any("difference of the clocks" in w for w in r["warnings"]), r)
                    self.assertIn("offset_ns", r["not_estimated"])
                    self.assertIsNone(r["delay_ns"]["mean"], r)
            errors = []
            for r in relative:
                true = self.truth(net, r["from"], r["start_ns"], r["sent"])
                if not true:
                    continue
                true = true["mean_ns"]
                low, high = r["ci95"]["mean"]
                # The points stamp before and after the wire does.
                self.assertLess(low, true + MS / 4, r)
                self.assertGreater(high, true - MS / 10, r)
                # Half of the least round trip, in which hosts have a part.
                self.assertGreaterEqual(high - low, 2 * self.base, r)
                errors.append(abs(r["delay_ns"]["mean"] - true))
                sign = -1 if r["to"] == "paris" else 1
                self.assertLess(abs(r["clock"]["offset_ns"] - sign * self.apart), self.base + MS / 4, r)
            self.assertGreater(len(errors), len(relative) / 2)
            error, bound = sorted(errors)[len(errors) // 2], relative[-1]["clock"]["error_ns"]
            print(f"{name}: clocks {self.apart // MS} ms apart: delay within {error / 1000:.0f} us of the wire's, bound {bound / 1000:.0f} us", flush=True)
            self.assertLess(error, self.base / 4)
            self.assertLess(sorted(r["clock"]["error_ns"] for r in relative)[len(relative) // 2], 2 * self.base + MS / 2)
            for way in ("london", "paris"):
                self.check_clock_free([r for r in relative if r["from"] == way], net)

    def check_clock_free(self, found, net):
        """What no clock has a part in: both directions together, the delay above the least, its variation. Hosts add to the delays of
        the wire, so half of the intervals are compared. Of the other direction the latest result counts, which may be RECENT_NS old."""
        off = {"round_trip_mean_ns": [], "above_min": [], "jitter_ns": []}
        for r in found:
            there = self.truth(net, r["from"], r["start_ns"], r["sent"])
            recent = range(r["start_ns"] - RECENT_NS, r["start_ns"] + RECENT_NS + 1, LENGTH)
            back = [t["mean_ns"] for t in (self.truth(net, r["to"], at) for at in recent) if t]
            if not there or r["round_trip_mean_ns"] is None:
                continue
            off["round_trip_mean_ns"].append(min(abs(r["round_trip_mean_ns"] - there["mean_ns"] - t) for t in back))
            off["above_min"].append(abs(r["delay_ns"]["above_min"] - (there["mean_ns"] - self.base)))
            low, high = there["jitter_ns"]
            off["jitter_ns"].append(max(0, low - r["jitter_ns"], r["jitter_ns"] - high))
        for name, list_of in off.items():
            middle = sorted(list_of)[len(list_of) // 2]
            print(f"{name}: within {middle / 1000:.0f} us of the wire's", flush=True)
            self.assertLess(middle, MS / 4, name)

    def test_trusted(self):
        results, net = self.run_apart("trusted")
        errors = []
        for r in results["london"]:
            self.assertEqual((r["clock"]["method"], r["clock"]["offset_ns"], r["clock"]["error_ns"]), ("trusted", 0, None))
            apart = self.apart if r["to"] == "paris" else -self.apart
            true = self.truth(net, r["from"], r["start_ns"], r["sent"])
            if true:
                errors.append(abs(r["delay_ns"]["mean"] - true["mean_ns"] - apart))
                self.assertLess(errors[-1], MS / 4, r)
            # If the wire is held up for long, its delays are longer than the clocks are apart.
            least = r["delay_ns"]["mean"] if r["delay_ns"]["min"] is None else r["delay_ns"]["min"]
            self.assertEqual(any("negative delay" in w for w in r["warnings"]), least < 0, r)
        self.assertTrue(any(r["from"] == "paris" and r["warnings"] for r in results["london"]))
        self.assertGreater(len(errors), len(results["london"]) / 2)


class ApartNear(Apart):
    """A path of 0.5 ms."""

    apart, base = 2 * MS, MS // 2


class OneHost(command.Case):
    """oneway live: one clock stamps both interfaces, and is set."""

    def test_steps(self):
        """Through a ring, and recorded in the kernel (or through a ring again, where that is not possible)."""
        clock = Clock(self.path("clock"))
        network = router.Router()
        self.addCleanup(network.close)
        lives = {}
        for capture in ("auto", "kernel"):
            with open(self.path(capture), "w") as out:
                lives[capture] = network.start(network.router, command.PROGRAM, "live", "--json", "--from", "r1", "--to", "r2", "--interval", "200ms",
                                               "--wait", "400ms", "--capture", capture, stdout=out, env={**os.environ, **clock.env()})
            self.addCleanup(lives[capture].wait)
            self.addCleanup(lives[capture].kill)
        sender = network.python(network.one, TRAFFIC, "10.2.0.2")
        self.addCleanup(sender.wait)
        self.addCleanup(sender.kill)
        sizes = [MS, -S, HOUR, -HOUR]
        time.sleep(2)
        for size in sizes:
            clock.step(size)
            time.sleep(1.5)
        for live in lives.values():
            live.send_signal(signal.SIGINT)
        for capture, live in lives.items():
            self.assertEqual(live.wait(timeout=points.PATIENCE), 0)
            with self.subTest(capture):
                self.check(self.path(capture), sizes)

    def check(self, path, sizes):
        with open(path) as out:
            results = [r for r in map(json.loads, out) if "status" in r and r["final"] and r["from"] == "r1"]
        numbers = [r["interval"] for r in results]
        self.assertEqual(numbers, list(range(len(numbers))), "every interval once, in order")
        # With the interval that had just ended, where that was not complete yet.
        told = [(cause, len(list(same))) for cause, same in itertools.groupby(r["cause"] for r in results if r["status"] == "unknown")]
        causes = [cause for cause, _ in told]
        self.assertEqual(len(causes), len(sizes), told)
        for cause, size in zip(causes, sizes):
            self.assertTrue(cause.startswith(f"clock stepped by {'+' if size > 0 else '-'}"), cause)
        for r in results:
            self.assertEqual(r["lost"] or 0, 0, r)
            if r["samples"]:
                self.assertLess(abs(r["delay_ns"]["max"]), 100 * MS, r)
        measured = [r for r in results if r["status"] == "measured" and r["sent"] > 50]
        # By the clock as it was after each step.
        for offset in set(itertools.accumulate([0, *sizes])):
            self.assertTrue(any(abs(r["start_ns"] - offset - time.time_ns()) < 60 * S for r in measured), offset)


class Probes(command.Case):
    """The clock of a sender of probes: no interval is of two clocks, and round trips know nothing of it."""

    def test_sender(self):
        clock, far = Clock(self.path("near.clock")), Clock(self.path("far.clock"))
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        reflect = subprocess.Popen(
            [command.PROGRAM, "plane", "reflect", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, **far.env()}
        )
        self.addCleanup(reflect.communicate)
        self.addCleanup(reflect.kill)
        # With a sanitizer it says first that there is no sandbox.
        address = next(line for line in reflect.stderr if "listening on" in line).split()[-1]
        probe = subprocess.Popen(
            [command.PROGRAM, "plane", "probe", address, "--rate", "200/s", "--interval", "200ms", "--seconds", "4", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **clock.env()},
        )
        for by in (3 * S, -10 * S):
            time.sleep(1.3)
            clock.step(by)
        out, err = probe.communicate(timeout=points.PATIENCE)
        self.assertEqual(probe.returncode, 0, err)
        results = [r for r in map(json.loads, out.splitlines()) if "segment" in r]
        met = set()
        for there, back, both in zip(results[0::3], results[1::3], results[2::3]):
            self.assertEqual(both["sent"], both["matched"] + both["lost"] + both["pending"], both)
            self.assertEqual(both["lost"], 0, both)
            if both["samples"] < 2:
                continue
            # As far apart as the clocks are, all of them; half a second is for a busy machine.
            offset = round(there["delay_ns"]["mean"] / S)
            met.add(offset)
            for r, mean in ((there, offset * S), (back, -offset * S), (both, 0)):
                self.assertLess(abs(r["delay_ns"]["mean"] - mean), S / 2, r)
                self.assertLess(r["delay_ns"]["stddev"], S / 2, r)
        self.assertEqual(met, {0, -3, 7})


if __name__ == "__main__":
    if not test_point_live.permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main()
