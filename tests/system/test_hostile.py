# SPDX-License-Identifier: Apache-2.0
"""A point under attack measures its other segments as if nothing was: complete, exact, with bounded memory and descriptors."""
import os
import re
import subprocess
import sys
import threading
import time
import unittest

import command
import points
import test_point_live

HOSTILE = os.environ.get("HOSTILE", "build/tests/hostile/hostile")
RATE = 400  # datagrams a second, each way

# The attacks' own packets are not to be measured: the kernel leaves them out.
PARIS = """point: paris
certificate: paris.pem
key: paris.key
ca: ca.pem
listen: 10.9.0.2:8620
metrics: 127.0.0.1:9620
memory: 32MiB
interfaces: [{name: far, filter: udp port 7000}]
segments:
  - {name: honest, peer: london, facing: peer}
  - {name: theirs, peer: rome, facing: peer}
"""
LONDON = """point: london
certificate: london.pem
key: london.key
ca: ca.pem
interfaces: [{name: near, filter: udp port 7000}]
segments:
  - name: honest
    peer: paris
    connect: 10.9.0.2:8620
    interval: 200ms
    wait: 400ms
    classes: [{name: data, filter: udp port 7000}]
"""
OSLO = """point: oslo
psk: lab.psk
listen: 10.9.0.2:8621
interfaces: [{name: far}]
segments:
  - {name: y, peer: rome, facing: peer}
"""
# Why connections are refused, as the log has it.
REFUSALS = (
    r"\('london'\) is not signed by this point's CA",
    r"\('rome'\) has expired",
    r"moscow at 10\.9\.0\.1:\d+ refused: no segment with this peer",
    r"the peer shows no certificate",
    r"the peer does not speak TLS 1\.3",
    r"what the peer sends is not TLS",
    r"no complete handshake within",
    r"too many connections are being made",
)
# Of what a peer with a good certificate says.
COMPLAINTS = (
    r"rome: refused: HELLO has another name",
    r"rome: segment 'honest' class 'data' refused: peer of the segment is 'london' here",
    r"rome: theirs/all from rome refused here: t0 is not a multiple of the interval, or too far away",
    r"may be a name, and names from a peer are not looked up",
    r"the peer announces a frame of 4294967295 bytes",
    r"the peer sends an empty frame",
    r"the peer sends a frame too slowly|the peer stopped in the middle of a frame",
    r"rome: not understood: message SYNOPSIS: ",
    r"rome: not understood: message RESULT: more packets received than this point saw",
    r"rome: too much that is not understood",
)


def cpu_seconds(pid):
    """Seconds of processor time."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """The most memory and descriptors that a process has had."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.running = pid, True
        self.memory, self.descriptors = 0, 0
        self.first = self.resident()
        self.start()

    def resident(self):
        with open(f"/proc/{self.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) << 10

    def run(self):
        while self.running:
            try:
                self.memory = max(self.memory, self.resident())
                self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.pid}/fd")))
            except (OSError, AttributeError):
                return
            time.sleep(0.05)


class Hostile(test_point_live.Live):
    def attack(self, *names, port=8620):
        process = subprocess.Popen([HOSTILE, self.folder, "10.9.0.2", str(port), *names], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        said, _ = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, said)

    def prepare(self):
        for args in (("--folder", self.folder, "london", "paris", "rome", "moscow"), ("--folder", self.path("other"), "london"), ("--psk", self.path("lab.psk")), ("--psk", self.path("wrong.psk"))):
            done = command.oneway("point", "keygen", *args)
            self.assertEqual(done.returncode, 0, done.stderr)
        paris = points.Point(self.write("paris.yaml", PARIS), prefix=self.far.enter())
        self.points.append(paris)
        paris.wait_for("listening on")
        london = self.start(self.write("london.yaml", LONDON))
        london.wait_for_intervals()
        return london, paris

    def send(self):
        """Datagrams both ways, until stopped."""
        count = RATE * 300
        words = [sys.executable, "-c", test_point_live.SENDER]
        senders = [
            subprocess.Popen([*words, "10.9.0.2", "7000", str(count), str(RATE)]),
            subprocess.Popen([*self.far.enter(), *words, "10.9.0.1", "7000", str(count), str(RATE)]),
        ]
        for sender in senders:
            self.addCleanup(sender.kill)
        return senders

    def metrics(self):
        code = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9620/metrics', timeout=20).read().decode())"
        done = subprocess.run([*self.far.enter(), sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_honest(self, here, there):
        """Every interval is there once, measured, with nothing lost. london stops first: from then on paris tells what it lacks."""
        last = max(r["start_ns"] for r in here if r["segment"] == "honest")
        self.check_lanes(here)
        self.check_lanes([r for r in there if r["start_ns"] <= last])

    def check_lanes(self, results):
        for way in ("london", "paris"):
            lane = sorted((r for r in results if r["final"] and r["segment"] == "honest" and r["from"] == way), key=lambda r: r["interval"])
            numbers = [r["interval"] for r in lane]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))), way)
            self.assertGreater(len(lane), 20)
            for r in lane:
                self.assert_conserved(r)
                self.assertEqual((r["status"], r["lost"]), ("measured", 0), r)
            self.assertGreater(sum(r["matched"] for r in lane), RATE)

    def test_attacks(self):
        london, paris = self.prepare()
        senders = self.send()
        watch = Watch(paris.process.pid)
        self.finish(self.attack("no-certificate", "wrong-ca", "expired", "unknown-name", "tls12", "plain-text"))
        self.finish(self.attack("flood"))
        slow = self.attack("slow-handshake")
        # One after the other: a second connection of rome would end the first.
        self.finish(self.attack("too-soon", "other-name", "foreign-segment", "far-start", "odd-filter", "huge-length", "large-length", "no-length", "truncated", "garbage"))
        self.finish(self.attack("bad-fields", "endless-cells", "wild-times", "wild-results", "greedy", "pings", "many-lanes", "slow-frame"))
        self.finish(slow)
        page = self.metrics()
        watch.running = False
        for sender in senders:
            sender.terminate()
            sender.wait()
        time.sleep(1.2)
        london.stop()
        here, _ = london.end()
        paris.stop()
        there, _ = paris.end()
        self.assertEqual((london.code, paris.code), (0, 0), paris.log)
        self.check_honest(here, there)
        for pattern in REFUSALS + COMPLAINTS:
            self.assertRegex(paris.log, pattern)
        # Each reason once, and how often: hundreds of connections are some lines.
        self.assertLess(paris.log.count("\n"), 150, paris.log)
        self.assertEqual(len(re.findall(r"is not signed by this point's CA(?! \()", paris.log)), 1, paris.log)
        for reason in ("identity", "protocol", "timeout", "busy"):
            self.assertGreater(int(re.search(rf'oneway_connections_refused_total{{reason="{reason}"}} (\d+)', page).group(1)), 0, page)
        self.assertGreater(int(re.search(r'oneway_messages_refused_total{peer="rome"} (\d+)', page).group(1)), 20)
        self.assertEqual(int(re.search(r'oneway_messages_refused_total{peer="london"} (\d+)', page).group(1)), 0)
        # 64 strangers, two peers, and what it has anyway.
        self.assertLess(watch.descriptors, 120)
        print(f"resident {watch.first >> 20} MiB, at most {watch.memory >> 20} MiB; at most {watch.descriptors} descriptors", file=sys.stderr)
        if not command.sanitized():
            self.assertLess(watch.memory - watch.first, 96 << 20)

    def test_costly_peer(self):
        """What a peer with a good certificate chooses (filters, names, times, words) costs the others nothing, and nothing of it stays when the peer has gone."""
        london, paris = self.prepare()
        senders = self.send()
        watch = Watch(paris.process.pid)
        for attack in ("slow-filter", "far-bye", "odd-text", "restless", "many-filters", "new-names"):
            self.finish(self.attack(attack))
        # It has gone. What is left of it are some lanes that are unknown.
        time.sleep(1)
        begin = time.monotonic()
        busy, rows = cpu_seconds(paris.process.pid), paris.output_size()
        time.sleep(3)
        seconds = time.monotonic() - begin
        busy, rows = (cpu_seconds(paris.process.pid) - busy) / seconds, (paris.output_size() - rows) / seconds
        watch.running = False
        for sender in senders:
            sender.terminate()
            sender.wait()
        time.sleep(1.2)
        page = self.metrics()
        london.stop()
        here, _ = london.end()
        begin = time.monotonic()
        paris.stop()
        there, _ = paris.end()
        took = time.monotonic() - begin
        self.assertEqual((london.code, paris.code), (0, 0), paris.log)
        self.check_honest(here, there)
        print(f"afterwards {100 * busy:.0f} % of a processor, {rows / 1e6:.2f} MB of results a second; ends after {took:.1f} s; at most {watch.memory >> 20} MiB", file=sys.stderr)
        for pattern in (
            r"rome: segment 'theirs' class 'all' refused: filter 'portrange .*': \d+ terms, at most 128",
            r"rome: not understood: message BYE: interval \d+ is far in the future",
            r"rome: not understood: message OPEN: class is not printable UTF-8",
            r"rome: further refusals are only counted",
        ):
            self.assertRegex(paris.log, pattern)
        self.assertNotRegex(paris.log, "[\u0080-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
        self.assertLess(paris.log.count("\n"), 400, paris.log)
        # Lanes of the honest segment have their metrics, whatever rome's take.
        for way in ("london", "paris"):
            self.assertRegex(page, rf'oneway_packets_sent_total{{segment="honest",class="data",from="{way}",')
        # A gap of some lanes of at most 4000 results a second, 1.5 kB each.
        self.assertLess(rows, 12e6)
        if not command.sanitized():
            self.assertLess(busy, 0.9)
            self.assertLess(took, 8)
            self.assertLess(watch.memory - watch.first, 96 << 20)

    def test_flows_and_clocks(self):
        """Flows that a peer announces or claims to have seen, its shifts of intervals and its clocks are its own segment's."""
        london, paris = self.prepare()
        senders = self.send()
        watch = Watch(paris.process.pid)
        for attack in ("flow-flood", "flow-answers", "wild-clocks"):
            self.finish(self.attack(attack))
        time.sleep(2)
        watch.running = False
        for sender in senders:
            sender.terminate()
            sender.wait()
        time.sleep(1.2)
        london.stop()
        here, _ = london.end()
        paris.stop()
        there, _ = paris.end()
        self.assertEqual((london.code, paris.code), (0, 0), paris.log)
        self.check_honest(here, there)
        print(f"resident {watch.first >> 20} MiB, at most {watch.memory >> 20} MiB", file=sys.stderr)
        if not command.sanitized():
            self.assertLess(watch.memory - watch.first, 96 << 20)

    def test_psk(self):
        """A key that is another one is refused; the right one is let in."""
        self.prepare()
        oslo = points.Point(self.write("oslo.yaml", OSLO), prefix=self.far.enter())
        self.points.append(oslo)
        oslo.wait_for("listening on")
        self.finish(self.attack("wrong-psk", "right-psk", port=8621))
        oslo.wait_for("the peer's pre-shared key is another one")


if __name__ == "__main__":
    if not test_point_live.permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Hostile.test_attacks", "Hostile.test_costly_peer", "Hostile.test_psk"])])
