# SPDX-License-Identifier: Apache-2.0
"""Two points at the two ends of a virtual cable, in network namespaces of their own that leave nothing behind."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import points
import router

CONFIG = """point: {name}
psk: lab.psk
{listen}interfaces: [{{name: {interface}}}]
segments:
  - name: x
    peer: {peer}
    {more}
"""
# Sends numbered datagrams at a steady pace: host, port, how many, how many a second.
SENDER = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
host, port, count, rate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
start = time.monotonic()
for i in range(count):
    s.sendto(i.to_bytes(8, "big") * 20, (host, port))
    ahead = i / rate - (time.monotonic() - start)
    if ahead > 0.002:
        time.sleep(ahead)
"""


SESSION_BYTES = """table inet session {
 counter passed {}
 chain out { type filter hook output priority 0; tcp dport 8620 counter name passed; }
 chain in { type filter hook input priority 0; tcp sport 8620 counter name passed; }
}
"""


def session_bytes():
    listed = subprocess.run(["nft", "-j", "list", "counters"], check=True, stdout=subprocess.PIPE).stdout
    return sum(entry["counter"]["bytes"] for entry in json.loads(listed)["nftables"] if entry.get("counter", {}).get("table") == "session")


class Far:
    """A namespace that lives as long as this object, joined to ours by a veth: near 10.9.0.1, far 10.9.0.2."""

    def __init__(self):
        self.holder = router.holder()
        try:
            self.join()
        except BaseException:
            self.close()
            raise

    def join(self):
        run("ip", "link", "add", "name", "near", "type", "veth", "peer", "name", "far", "netns", str(self.holder.pid))
        for ns, end, address in (([], "near", "10.9.0.1/24"), (self.enter(), "far", "10.9.0.2/24")):
            run(*ns, "ip", "link", "set", "lo", "up")
            run(*ns, "ip", "address", "add", address, "dev", end)
            run(*ns, "ip", "link", "set", end, "up")

    def enter(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n"]

    def close(self):
        # At once; the end of a namespace can take a while.
        subprocess.run(["ip", "link", "delete", "near"], stderr=subprocess.DEVNULL, timeout=60)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()


def run(*words):
    subprocess.run(words, check=True, timeout=60)


class Live(points.Case):
    def setUp(self):
        super().setUp()
        self.far = Far()
        self.addCleanup(self.far.close)

    def pair(self, more):
        self.keys("psk")
        self.write("paris.yaml", CONFIG.format(name="paris", listen="listen: 10.9.0.2:8620\n", interface="far", peer="london", more="facing: peer"))
        self.write("london.yaml", CONFIG.format(name="london", listen="", interface="near", peer="paris", more="connect: 10.9.0.2:8620\n    " + more))
        paris = points.Point(self.path("paris.yaml"), prefix=self.far.enter())
        self.points.append(paris)
        paris.wait_for("listening on")
        london = self.start(self.path("london.yaml"))
        return london, paris

    def test_idle(self):
        """A segment without traffic costs less than 300 bytes a second: IP packets of the session, both ways, with their headers, as nft counts them."""
        if not shutil.which("nft"):
            self.skipTest("nftables is not installed")
        subprocess.run(["nft", "-f", "-"], input=SESSION_BYTES, text=True, check=True)
        self.addCleanup(run, "nft", "delete", "table", "inet", "session")
        london, paris = self.pair("interval: 1s\n    wait: 2s\n    classes: [{name: data, filter: udp port 7000}]")
        london.wait_for("agreed on", 2)
        paris.wait_for("agreed on", 2)
        time.sleep(8)  # it is known that nothing comes
        before, start = session_bytes(), time.monotonic()
        time.sleep(16)
        rate = (session_bytes() - before) / (time.monotonic() - start)
        london.stop()
        here, _ = london.end()
        paris.stop()
        there, _ = paris.end()
        print(f"an idle segment: {rate:.0f} bytes/s", file=sys.stderr)
        self.assertLess(rate, 300)
        for results in (here, there):
            for way in ("london", "paris"):
                lane = sorted((r for r in results if r["final"] and r["from"] == way), key=lambda r: r["interval"])
                numbers = [r["interval"] for r in lane]
                self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))), way)
                self.assertGreater(len(lane), 20)
                for r in lane[:-1]:
                    self.assertEqual((r["status"], r["sent"], r["received"]), ("measured", 0, 0), r)

    def test_datagrams(self):
        """All datagrams of a class are sent, received and matched, in both directions; results come soon."""
        london, paris = self.pair("interval: 200ms\n    wait: 400ms\n    classes: [{name: data, filter: udp port 7000}]")
        london.wait_for_intervals()
        paris.wait_for_intervals()
        count = 4000
        forward = subprocess.Popen([sys.executable, "-c", SENDER, "10.9.0.2", "7000", str(count), "2500"])
        back = subprocess.Popen(self.far.enter() + [sys.executable, "-c", SENDER, "10.9.0.1", "7000", str(count), "2500"])
        self.assertEqual((forward.wait(timeout=60), back.wait(timeout=60)), (0, 0))
        time.sleep(1)
        london.stop()
        here, summary = london.end()
        paris.stop()
        there, _ = paris.end()
        self.assertEqual((london.code, paris.code), (0, 0))
        for r in here + there:
            self.assert_conserved(r)
        for way in ("london", "paris"):
            lane = [r for r in here if r["final"] and r["from"] == way and r["status"] == "measured"]
            self.assertEqual(sum(r["sent"] for r in lane), count, way)
            self.assertEqual(sum(r["matched"] + r["late"] for r in lane), count, way)
            self.assertEqual(sum(r["lost"] for r in lane), 0, way)
            total = [s for s in summary if s["from"] == way][0]
            self.assertEqual((total["sent"], total["matched"], total["lost"]), (count, count, 0))
            self.assertGreater(total["delay_ns"]["mean"], 0)

    def test_order_at_the_end(self):
        """The peer ends, and answers late: the final results of the last intervals come before those of the time after."""
        london, paris = self.pair("interval: 500ms\n    wait: 1s")
        london.wait_for_intervals()
        time.sleep(1)
        paris.stop()
        time.sleep(0.2)  # it has told where its lanes end
        paris.stop(signal.SIGSTOP)
        time.sleep(1.7)
        paris.stop(signal.SIGCONT)
        london.wait_for("paris: has left")
        time.sleep(1)
        london.stop()
        results, _ = london.end()
        for way in ("london", "paris"):
            final = [r for r in results if r["final"] and r["from"] == way]
            numbers = [r["interval"] for r in final]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))), way)
            self.assertEqual(final[-1]["status"], "unknown", "the time after")
        paris.end()

    def test_restart(self):
        """A peer that has died is not loss; when it is back new lanes are agreed on, and the old ones are summed up."""
        london, paris = self.pair("interval: 100ms\n    wait: 200ms")
        london.wait_for_lanes()
        paris.process.kill()
        paris.process.wait()
        london.wait_for("connection lost")
        again = points.Point(self.path("paris.yaml"), prefix=self.far.enter())
        self.points.append(again)
        london.wait_for_lanes(4)
        for p in (london, again):
            p.stop()
        here, summary = london.end()
        again.end()
        self.assertEqual(len(summary), 4)
        self.assertTrue(any(r.get("cause") == "paris was restarted" for r in here if r["status"] == "unknown"))
        self.assertTrue(any(r["status"] == "unknown" for r in here))
        for r in here:
            self.assert_conserved(r)
            if r["final"]:
                self.assertEqual(r.get("lost") or 0, 0, r)


    def test_restart_of_who_connects(self):
        """The point that is connected to sees the new epoch, ends the old lanes and accepts new ones."""
        london, paris = self.pair("interval: 100ms\n    wait: 200ms")
        paris.wait_for_lanes()
        london.process.kill()
        london.process.wait()
        again = self.start(self.path("london.yaml"))
        paris.wait_for_lanes(4)
        again.stop()
        again.end()
        paris.stop()
        results, summary = paris.end()
        self.assertEqual(len(summary), 4)
        for r in results:
            self.assert_conserved(r)
            self.assertEqual(r["lost"] or 0, 0, r)


def permitted():
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        return False
    return subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "probe0", "type", "veth"], capture_output=True).returncode == 0


if __name__ == "__main__":
    if not permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        # In a namespace of our own from here on.
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main()
