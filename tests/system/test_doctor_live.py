# SPDX-License-Identifier: Apache-2.0
"""oneway doctor in a network namespace: what is changed there changes its lines. Judgement itself: test_checkup.c."""
import json
import os
import re
import subprocess
import sys
import unittest

import command
import router

STATES = ("ok", "note", "warning", "problem")
# Answers as chronyd 4.3 does: the error is at most 5.728 us. In the namespace its port is free.
CHRONYD = """
import socket
answer = bytes.fromhex(
    "06020000002100050000000000000000123456780000000000000000"
    "7f0000017f00000100000000000000000000000000010000"
    "00090000000000006af990c032896422"
    "dd495e94d0891e25e086605bf757d7e2f0cb6ff000a09edfe0d26b7bdca554a404802e95")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 323))
print("ready", flush=True)
while True:
    question, sender = s.recvfrom(1024)
    s.sendto(answer[:16] + question[8:12] + answer[20:], sender)
"""
# UDP out of v0 as long as it runs.
SOURCE = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
while True:
    s.sendto(bytes(100), ("10.9.0.2", 9))
    s.setsockopt(socket.IPPROTO_UDP, 103, 1000)
    s.sendto(bytes(10000), ("10.9.0.2", 9))
    s.setsockopt(socket.IPPROTO_UDP, 103, 0)
    time.sleep(0.01)
"""


class Doctor(command.Case):
    """v0 and v1 are the two ends of a pair."""

    def setUp(self):
        super().setUp()
        try:
            self.holder = router.holder()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.close)
        try:
            self.run_inside("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.run_inside("ip", "link", "set", "lo", "up")
            self.run_inside("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
            for name in ("v0", "v1"):
                self.run_inside("ip", "link", "set", name, "up")
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no veth: {error.stderr.strip()}")

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()

    def prefix(self):
        return ["nsenter", "-t", str(self.holder.pid), "-n"]

    def run_inside(self, *args):
        return subprocess.run([*self.prefix(), *args], check=True, capture_output=True, text=True).stdout

    def child(self, script):
        child = subprocess.Popen([*self.prefix(), sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")

    def doctor(self, *args, prefix=()):
        return subprocess.run(
            [*self.prefix(), *prefix, command.PROGRAM, "doctor", *args], capture_output=True, text=True, timeout=60
        )

    def checks(self, *args, prefix=()):
        """By (about, name); also holds the document against its description and the exit code."""
        done = self.doctor("--json", *args, prefix=prefix)
        document = json.loads(done.stdout)
        self.check_document(document)
        self.assertEqual(done.returncode, 3 if document["problems"] else 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return {(c["about"], c["name"]): c for c in document["checks"]}

    def check_document(self, d):
        """docs/doctor.md"""
        types = {"oneway": str, "host": str, "point": (str, type(None)), "time_ns": int, "checks": list, "interfaces": list}
        types.update(problems=int, warnings=int, notes=int)
        self.assertEqual(set(d), set(types))
        for key, kind in types.items():
            self.assertIsInstance(d[key], kind, key)
        for c in d["checks"]:
            self.assertEqual(list(c), ["about", "name", "state", "found", "means", "fix"])
            self.assertRegex(c["name"], r"^[a-z_]+$")
            self.assertIn(c["state"], STATES)
            self.assertTrue(c["about"] and c["found"] and c["means"], c)
            self.assertTrue(c["fix"] is None or c["fix"])
            if c["state"] in ("warning", "problem"):
                self.assertIsNotNone(c["fix"], c)
        for i in d["interfaces"]:
            self.assertEqual(list(i), ["name", "state", "kind", "speed_mbps"])
        for n, state in enumerate(("note", "warning", "problem")):
            self.assertEqual(sum(c["state"] == state for c in d["checks"]), d[state + "s"])

    def assert_check(self, checks, about, name, state, found, fix=None):
        c = checks[about, name]
        self.assertEqual(c["state"], state, c)
        self.assertIn(found, c["found"])
        if fix:
            self.assertIn(fix, c["fix"])


class Interfaces(Doctor):
    def test_offloads(self):
        try:
            self.run_inside("ethtool", "-K", "v0", "tso", "on", "gso", "on", "gro", "off", "tx-udp-segmentation", "on")
        except (FileNotFoundError, subprocess.CalledProcessError) as reason:
            self.skipTest(f"ethtool: {reason}")
        checks = self.checks("v0")
        self.assert_check(checks, "v0", "segmentation", "note", "TSO on, UDP on", "ethtool -K v0 tso off tx-udp-segmentation off")
        self.assert_check(checks, "v0", "gro", "ok", "off")
        self.assert_check(checks, "v0", "lro", "ok", "off")
        # The command that it names does what it says.
        self.run_inside("sh", "-c", checks["v0", "segmentation"]["fix"])
        self.run_inside("ethtool", "-K", "v0", "gro", "on", "rx-udp-gro-forwarding", "on")
        checks = self.checks("v0")
        self.assert_check(checks, "v0", "segmentation", "ok", "TSO off")
        self.assert_check(checks, "v0", "gro", "note", "on", "ethtool -K v0 gro off")
        self.assertEqual(checks["v0", "udp_superframes"]["state"], "warning")
        self.run_inside("sh", "-c", checks["v0", "udp_superframes"]["fix"])
        self.assertEqual(self.checks("v0")["v0", "udp_superframes"]["state"], "ok")

    def test_kinds_and_levels(self):
        checks = self.checks("lo", "v0")
        self.assert_check(checks, "lo", "interface", "note", "loopback")
        self.assert_check(checks, "v0", "interface", "note", "the other is v1")
        self.assert_check(checks, "v0", "timestamps", "ok", "by the kernel")
        self.assertNotIn(("v0", "member"), checks)
        try:
            self.run_inside("ip", "link", "add", "br0", "type", "bridge")
            self.run_inside("ip", "link", "set", "v0", "master", "br0")
        except subprocess.CalledProcessError:
            return  # a kernel without bridges
        checks = self.checks("v0", "br0")
        self.assert_check(checks, "v0", "member", "ok", "bridge br0")
        self.assert_check(checks, "br0", "interface", "warning", "bridge", "br0")

    def test_link(self):
        self.run_inside("ip", "link", "set", "v0", "mtu", "9000")
        checks = self.checks("v0")
        self.assert_check(checks, "v0", "link", "ok", "up")
        self.assert_check(checks, "v0", "mtu", "ok", "9000, jumbo")
        self.run_inside("ip", "link", "set", "v1", "down")
        self.assert_check(self.checks("v0"), "v0", "link", "problem", "no carrier")
        checks = self.checks("v1", "--try")
        self.assert_check(checks, "v1", "link", "problem", "down", "ip link set v1 up")
        self.assert_check(checks, "v1", "trial", "problem", "v1: the interface is down", "ip link set v1 up")

    def test_no_such_interface(self):
        self.assert_refused(self.doctor("v3"), 1, "v3: no such interface, did you mean v1 or v0?")
        self.assert_refused(self.doctor("v0", "enp0s31f6"), 1, "enp0s31f6: no such interface; there are lo", "v0")
        self.assert_refused(self.doctor("--json", ""), 1, "no such interface")
        self.assert_refused(self.doctor("--try"), 2, "--try")
        self.assert_refused(self.doctor("--json", "--quiet"), 2, "--quiet")
        self.assert_refused(self.doctor("--frob"), 2, "--frob")

    def test_names_that_a_shell_understands(self):
        self.run_inside("ip", "link", "set", "v0", "down")
        self.run_inside("ip", "link", "set", "v0", "name", "v;reboot")
        checks = self.checks("v;reboot")
        self.assert_check(checks, "v;reboot", "link", "problem", "down")
        for c in checks.values():
            self.assertNotIn("v;reboot", c["fix"] or "")

    def test_trial(self):
        self.run_inside("ip", "addr", "add", "10.9.0.1/24", "dev", "v0")
        self.run_inside("ip", "neigh", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:01", "dev", "v0")
        checks = self.checks("v0", "--try")
        self.assert_check(checks, "v0", "trial", "note", "no frame")
        self.child(SOURCE)
        checks = self.checks("v0", "--try")
        self.assert_check(checks, "v0", "trial", "ok", "ring: ")
        self.assert_check(checks, "v0", "trial_stamps", "ok", "by the kernel")
        self.assert_check(checks, "v0", "trial_drops", "ok", "none")
        found = re.search(r"(\d+) frames in, (\d+) out in (\S+) s; (\d+) packets/s; superframes (\S+) %", checks["v0", "trial"]["found"])
        self.assertIsNotNone(found, checks["v0", "trial"])
        into, out, seconds, rate, share = map(float, found.groups())
        self.assertEqual(into, 0)
        self.assertGreater(out, 5)
        if share:  # half of the frames stand for ten packets
            self.assertAlmostEqual(share, 50, delta=5)
            self.assertAlmostEqual(rate * seconds, out * 5.5, delta=out * 0.5 + 10 + rate * 0.1)
            # What is said to turn them off does.
            self.run_inside("sh", "-c", checks["v0", "segmentation"]["fix"])
            self.assertIn("superframes 0 %", self.checks("v0", "--try")["v0", "trial"]["found"])


class Host(Doctor):
    def test_clock(self):
        self.child(CHRONYD)
        checks = self.checks()
        self.assert_check(checks, "host", "clock", "ok", "error at most 5.", None)
        self.assertIn("chrony", checks["host", "clock"]["found"])
        for name in ("time_daemon", "clock_source", "kernel", "privileges", "memory", "cpus", "open_files", "backlog"):
            self.assertIn(("host", name), checks)

    def test_text(self):
        done = self.doctor()
        self.assertIn("Host ", done.stdout)
        self.assertRegex(done.stdout, r"Interfaces .*\n(.*\n)*  v0 +up +veth")
        self.assertRegex(done.stdout.splitlines()[-1], r"problem")
        for line in done.stdout.splitlines():
            self.assertEqual(line, line.rstrip())
            if "fix: " not in line:
                self.assertLessEqual(len(line), 80, line)
        quiet = self.doctor("--quiet").stdout
        self.assertNotIn("  OK ", quiet)
        self.assertNotIn("  note ", quiet)

    def test_without_privileges(self):
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
        try:
            self.run_inside(*nobody, command.PROGRAM, "--version")
        except (FileNotFoundError, subprocess.CalledProcessError) as reason:
            self.skipTest(f"setpriv: {reason}")
        checks = self.checks("v0", "--try", prefix=nobody)
        self.assert_check(checks, "host", "privileges", "warning", "no CAP_NET_RAW", "setcap")
        self.assert_check(checks, "v0", "trial", "note", "needs root", "sudo")
        self.assert_check(checks, "v0", "link", "ok", "up")
        self.assertIn(("v0", "gro"), checks)

    def test_open_files(self):
        done = subprocess.run(
            [*self.prefix(), "sh", "-c", 'ulimit -n 64; exec "$0" doctor --json', command.PROGRAM], capture_output=True, text=True
        )
        found = [c for c in json.loads(done.stdout)["checks"] if c["name"] == "open_files"]
        self.assertEqual((found[0]["state"], found[0]["found"]), ("warning", "at most 64"))


class Configuration(Doctor):
    CONFIG = """point: london
listen: 127.0.0.1:8620
{keys}
memory: 64MiB
store: {store}
interfaces: [{{name: v0, threads: 2, ring: 8MiB}}, {{name: {other}}}]
segments:
  - {{name: a, peer: paris, connect: "127.0.0.1:9001", interfaces: [v0], interval: 100ms}}
  - {{name: b, peer: rome, connect: "127.0.0.1:9002", interfaces: [v0]}}
  - {{name: c, peer: rome, connect: "127.0.0.1:9002", interfaces: [v0]}}
"""

    def write(self, keys="psk: psk", store="x.db", other="v1"):
        path = self.path("london.yaml")
        with open(path, "w") as f:
            f.write(self.CONFIG.format(keys=keys, store=store, other=other))
        if not os.path.exists(self.path("psk")):
            done = command.oneway("point", "keygen", "--psk", self.path("psk"))
            self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def peers(self, checks):
        return {c["found"].split(":")[0]: c for (about, name), c in checks.items() if name == "peer"}

    def test_point(self):
        self.child('import socket\ns = socket.create_server(("127.0.0.1", 9001))\nprint("ready", flush=True)\ns.accept()\ns.accept()')
        done = self.doctor("--json", "-c", self.write())
        document = json.loads(done.stdout)
        self.check_document(document)
        self.assertEqual(document["point"], "london")
        self.assertEqual(done.returncode, 3)
        peers = {c["found"].split(":")[0]: c["state"] for c in document["checks"] if c["name"] == "peer"}
        self.assertEqual(peers, {"paris": "ok", "rome": "problem"})
        checks = {(c["about"], c["name"]): c for c in document["checks"]}
        self.assert_check(checks, "point", "configuration", "ok", "2 interfaces, 3 segments")
        self.assert_check(checks, "point", "listen", "ok", "127.0.0.1:8620 is free")
        # 2 lanes of 10 results a second, 4 of 1, 670 bytes each
        self.assertIn("a day takes 1325 MiB", checks["point", "store"]["found"])
        self.assertIn("interval packets and rings take up to 144 MiB", checks["host", "memory"]["found"])
        for name in ("v0", "v1"):
            self.assertIn((name, "link"), checks)

    def test_what_is_missing(self):
        checks = self.checks("-c", self.write(other="v7"))
        self.assert_check(checks, "point", "configuration", "problem", "interface 'v7' is not on this host")
        self.assert_check(checks, "v7", "interface", "problem", "did you mean v")
        self.assertIn(("v0", "link"), checks)
        checks = self.checks("-c", self.write(store="no/such/folder/x.db"))
        self.assert_check(checks, "point", "store", "problem", "No such file")
        os.chmod(self.path("psk"), 0o644)
        self.assert_check(self.checks("-c", self.write()), "point", "configuration", "problem", "others than its owner")
        self.assert_refused(self.doctor("-c", self.path("none.yaml")), 1, "none.yaml")

    def test_certificate(self):
        done = command.oneway("point", "keygen", "--folder", self.folder, "--days", 3, "london")
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = "certificate: london.pem\nkey: london.key\nca: ca.pem"
        checks = self.checks("-c", self.write(keys))
        self.assert_check(checks, "point", "certificate", "warning", "expires in 3 days", "keygen")
        with open(self.path("london.pem"), "w") as f:
            f.write("nothing\n")
        self.assert_check(self.checks("-c", self.write(keys)), "point", "certificate", "problem", "is not a certificate")


class Terminal(unittest.TestCase):
    def test_width_and_colour(self):
        for columns in (20, 34, 50, 72, 90, 200):
            code, text = command.on_terminal("doctor", "lo", columns=columns)
            self.assertIn(code, (0, 3))
            self.assertIn("\033[", text)
            plain = re.sub(r"\033\[[0-9;]*m", "", text)
            for line in plain.splitlines():
                # Commands are kept whole; a word can be longer than a line.
                if "fix: " not in line and " " in line.strip():
                    self.assertLessEqual(len(line), max(columns, 30), line)
        self.assertNotIn("\033[", command.on_terminal("doctor", "lo", "--no-color")[1])
        self.assertNotIn("\033[", command.on_terminal("doctor", "lo", env={"NO_COLOR": "1"})[1])


if __name__ == "__main__":
    unittest.main()
