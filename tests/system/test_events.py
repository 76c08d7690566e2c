# SPDX-License-Identifier: Apache-2.0
"""Flows that leave a path, come back, take another way or are sprayed over several: what is said of them.

Captures are made here: 20 flows of 50 packets a second for 30 s, of which 17 go to 10.1.0.0/22."""
import collections
import json
import struct
import unittest

import command
import points

START_NS = 1700000000 * 10**9  # 22:13:20
FLOWS, MOVING, SECONDS, RATE = 20, 17, 30, 50

PARIS = """point: paris
store: paris.db
listen: 127.0.0.1:0
psk: lab.psk
interfaces: [{file: b.pcap, speed: 6}]
segments:
  - {name: x, peer: london, to_peer: not src net 10.0.0.0/8}
"""
LONDON = """point: london
store: london.db
psk: lab.psk
interfaces: [{file: a.pcap, speed: 6}]
segments:
  - {name: x, peer: paris, connect: "127.0.0.1:PORT", to_peer: src net 10.0.0.0/8}
"""


def datagram(flow, number, ttl):
    """IPv4 and UDP, without checksums."""
    payload = struct.pack(">Q", number) + bytes(20)
    to = (10, 1, flow % 4, 7) if flow < MOVING else (10, 9, 0, flow)
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), number & 0xFFFF, 0, ttl, 17, 0, bytes((10, 200, 1, flow)), bytes(to))
    return header + struct.pack(">HHHH", 4000 + flow, 5000, 8 + len(payload), 0) + payload


def write(path, packets):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))
        for time_ns, data in sorted(packets):
            f.write(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(data), len(data)) + data)


class Events(points.Case):
    def traffic(self, passes, ttl=lambda second: 63):
        """passes(flow, number in its flow, second): whether it passes B; ttl(second): there. Returns how many do not."""
        a, b = [], []
        for i in range(SECONDS * RATE):
            for flow in range(FLOWS):
                time_ns = START_NS + i * 10**9 // RATE + flow * 700000
                number, second = i * FLOWS + flow, i / RATE
                a.append((time_ns, datagram(flow, number, 64)))
                if passes(flow, i, second):
                    b.append((time_ns + 2000000, datagram(flow, number, ttl(second))))
        write(self.a, a)
        write(self.b, b)
        return len(a) - len(b)

    def live(self, *args):
        done = command.oneway("live", "--from", self.a, "--to", self.b, "--forward", "ip", "--speed", 0, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def lines(self, *args):
        """Results and events of a run with --json."""
        lines = [json.loads(line) for line in self.live("--json", *args).splitlines()]
        for r in (r for r in lines if "status" in r):
            self.assert_conserved(r)
        return [r for r in lines if "status" in r and r["final"]], [r["event"] for r in lines if "event" in r]

    @staticmethod
    def detour(flow, _, second):
        return flow >= MOVING or not 10 <= second < 18

    def check_detour(self, events, to):
        said = [(e["kind"], e["time_ns"] - START_NS, e["flows"], e["network"], e["to"]) for e in events]
        self.assertEqual(said, [("stopped", 10 * 10**9, MOVING, "10.1.0.0/22", to), ("back", 18 * 10**9, MOVING, "10.1.0.0/22", to)])

    def test_detour(self):
        """17 flows go another way for 8 s. What they lack is told apart from loss."""
        missing = self.traffic(self.detour)
        results, events = self.lines()
        self.check_detour(events, "b.pcap")
        lost = sum(r["lost"] for r in results)
        self.assertEqual(lost + sum(r["unshared_sent"] for r in results), missing)
        text = self.live("--lines", "--store", self.path("results.db"))
        self.assertIn("  * since 22:13:30 17 flows of 10.1.0.0/22 no longer pass b.pcap\n", text)
        self.assertIn("  * since 22:13:38 17 flows of 10.1.0.0/22 pass b.pcap again\n", text)
        # The store has the same events.
        done = command.oneway("results", self.path("results.db"), "--events", "--json")
        self.assertEqual([json.loads(line)["event"] for line in done.stdout.splitlines()], events)
        done = command.oneway("results", self.path("results.db"), "--events", env={"TZ": "UTC"})
        self.assertIn("2023-11-14 22:13:30  all a.pcap>b.pcap: 17 flows of 10.1.0.0/22 no longer pass b.pcap\n", done.stdout)
        # Where everything must pass, packets are lost and nothing else is said.
        results, events = self.lines("--scope", "all")
        self.assertEqual((sum(r["lost"] for r in results), events), (missing, []))

    def test_load_sharing(self):
        """Every second packet goes another way."""
        self.traffic(lambda flow, i, second: second < 5 or (i + flow) % 2)
        events = self.lines()[1]
        self.assertEqual({e["kind"] for e in events}, {"load_sharing"})
        for e in events:
            self.assertAlmostEqual(e["share"], 0.5, delta=0.05)
            self.assertIn("load sharing", e["text"])

    def test_random_loss(self):
        """Loss alone is no event."""
        self.traffic(lambda flow, i, second: (i * 7919 + flow * 104729) % 1009 % 50 != 3)
        self.assertEqual(self.lines()[1], [])

    def test_flapping(self):
        """A network that comes and goes all the time is not told without end."""
        self.traffic(lambda flow, i, second: flow >= MOVING or (second + flow / 7) % 2 < 1)
        events = self.lines("--interval", "100ms", "--wait", "200ms")[1]
        self.assertLessEqual(len(events), 12 + SECONDS // 10)
        self.assertTrue(any("further events are not reported for a while" in e["text"] for e in events), events)

    def test_points(self):
        """The sending point says it in its log and in its results."""
        self.traffic(self.detour, ttl=lambda second: 63 if second < 24 else 61)
        self.keys("psk")
        paris = self.start(self.write("paris.yaml", PARIS))
        port = paris.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1)
        london = self.start(self.write("london.yaml", LONDON.replace("PORT", port)))
        results = london.end()[0]
        paris.end()
        for r in results:
            self.assert_conserved(r)
        self.check_detour([e for e in london.events if e["kind"] != "rerouted"], "paris")
        self.assertIn("warning: paris: x/all to paris: since 22:13:30 17 flows of 10.1.0.0/22 no longer pass paris", london.log)
        self.assertIn("london: paris: x/all to paris: since 22:13:38 17 flows of 10.1.0.0/22 pass paris again", london.log)
        rerouted = [e for e in london.events if e["kind"] == "rerouted"]
        kinds = collections.Counter(e["network"] for e in rerouted)
        self.assertTrue(rerouted, london.log)
        for e in rerouted:
            self.assertEqual(e["ttl_change"], -2, e)
            self.assertGreaterEqual(e["time_ns"], START_NS + 23 * 10**9)
        self.assertIn("with a TTL that is 2 lower than before: they were rerouted", london.log)
        self.assertEqual(set(kinds.values()), {1}, rerouted)
        self.assertEqual(paris.events, [])
        for name, events in (("london", london.events), ("paris", [])):
            done = command.oneway("results", self.path(name + ".db"), "--events", "--json")
            self.assertEqual([json.loads(line)["event"] for line in done.stdout.splitlines()], events)


if __name__ == "__main__":
    unittest.main(verbosity=2)
