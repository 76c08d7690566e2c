# SPDX-License-Identifier: Apache-2.0
"""oneway live between two hosts with nothing but sshd and tcpdump on them; nft counts what the router between them drops."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import command
import router

PATIENCE = 60
PORT, ALIVE = 7000, 7001
# Packets that tell that the captures go on: to ALIVE. argv: address, port, packets, packets a second.
SOURCE = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
start, count = time.monotonic(), int(sys.argv[3])
i = 0
while i < count or count == 0:
    s.sendto(i.to_bytes(8, "big") + bytes(100 + i % 700), (sys.argv[1], int(sys.argv[2])))
    i += 1
    time.sleep(max(0, start + i / float(sys.argv[4]) - time.monotonic()))
"""
# Passes on what comes, later.
LATE = """
import os, select, sys, time
wait, queue, open_ = float(sys.argv[1]), [], True
while open_ or queue:
    left = max(0, queue[0][0] - time.monotonic()) if queue else None
    if open_ and select.select([0], [], [], left)[0]:
        data = os.read(0, 65536)
        open_ = bool(data)
        queue.append((time.monotonic() + wait, data))
    elif not open_:
        time.sleep(left)
    while queue and queue[0][0] <= time.monotonic():
        os.write(1, queue.pop(0)[1])
"""
RULES = """
table inet t {
    chain f {
        type filter hook forward priority 0
        ip saddr 10.1.0.2 udp dport %d counter
        ip saddr 10.1.0.2 udp dport %d numgen random mod 10 0 counter drop
    }
}
""" % (PORT, PORT)


def family(pid):
    """Its process id, those of its children, theirs, and so on, with their names."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return []
    return [(pid, name), *(p for child in children for p in family(int(child)))]


class Ssh(command.Case):
    def setUp(self):
        super().setUp()
        for tool in ("sshd", "ssh", "ssh-keygen", "tcpdump", "nft"):
            if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin"):
                self.skipTest(f"no {tool}")
        try:
            self.network = router.Router()
        except (router.Unavailable, FileNotFoundError) as reason:
            self.skipTest(str(reason))
        self.addCleanup(self.network.close)
        self.children = []
        self.addCleanup(self.kill_children)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        with open(self.path("sshd_config"), "w") as f:
            f.write(
                f"HostKey {self.path('host')}\nAuthorizedKeysFile {self.path('user.pub')}\nStrictModes no\nUsePAM no\n"
                f"PermitRootLogin yes\nPidFile none\nPrintMotd no\n"
            )
        self.sshd = {host: self.start_sshd(host) for host in (self.network.one, self.network.two)}

    def kill_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()

    def start_sshd(self, host):
        log = open(self.path("sshd.log"), "a")
        self.addCleanup(log.close)
        sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        child = self.network.start(host, sshd, "-D", "-e", "-f", self.path("sshd_config"), stderr=log, stdin=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def ssh(self, net, snaplen=0, after=""):
        """A source: what tcpdump sees at a host, through ssh."""
        options = "-F /dev/null -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes"
        text = f"ssh {options} -i {self.path('user')} 10.{net}.0.2 tcpdump -Z root -U -s {snaplen} -w - -i eth0 udp"
        if after:
            text = f"sh -c '{text} | {after}'"
        return f"{'ab'[net - 1]}=exec:{text}"

    def live(self, *options, a=None, b=None):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.addCleanup(self.out.close)
        self.addCleanup(self.err.close)
        args = ["live", "--json", "--from", a or self.ssh(1), "--to", b or self.ssh(2)]
        classes = ["--class", f"test=udp dst port {PORT}", "--class", f"alive=udp dst port {ALIVE}"]
        self.process = self.network.start(self.network.router, command.PROGRAM, *args, *classes, *options, stdout=self.out, stderr=self.err)
        self.children.append(self.process)

    def results(self, final=True):
        text = os.pread(self.out.fileno(), 1 << 26, 0).decode()
        lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return [r for r in lines if "status" in r and r["final"] == final and r["class"] == "test" and r["from"] == "a"]

    def errors(self):
        return os.pread(self.err.fileno(), 1 << 20, 0).decode()

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{what} did not come: {self.errors()} {self.results()[-3:]}")
            time.sleep(0.1)

    def send(self, address, port, count, rate):
        child = self.network.python(self.network.one if address.startswith("10.2") else self.network.two, SOURCE, address, port, count, rate)
        self.children.append(child)
        return child

    def keep_alive(self):
        self.send("10.2.0.2", ALIVE, 0, 50)
        self.send("10.1.0.2", ALIVE, 0, 50)

    def drop(self):
        subprocess.run([*self.network.prefix(self.network.router), "nft", "-f", "-"], input=RULES, text=True, check=True)

    def counters(self):
        """Packets that came to the router, and those that it dropped."""
        rules = json.loads(self.network.run(self.network.router, "nft", "-j", "list", "ruleset"))["nftables"]
        return [e["counter"]["packets"] for r in rules if "rule" in r for e in r["rule"]["expr"] if "counter" in e]

    def newest(self):
        results = self.results()
        return results[-1]["start_ns"] if results else 0

    def run_traffic(self, count=2000, rate=500):
        self.assertEqual(self.send("10.2.0.2", PORT, count, rate).wait(timeout=PATIENCE), 0)
        sent_ns = time.time_ns()
        self.wait_for("the time after the packets", lambda: self.newest() >= sent_ns)

    def end(self, code=0):
        those = family(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(timeout=PATIENCE), code, self.errors())
        end = time.monotonic() + 5
        while any(os.path.exists(f"/proc/{pid}") for pid, _ in those) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse([(pid, name) for pid, name in those if os.path.exists(f"/proc/{pid}")])
        return self.results()

    def check_conserved(self, results):
        for r in results:
            if r["status"] != "unknown":
                self.assertEqual(r["sent"], r["matched"] + r["late"] + r["lost"] + r["pending"], r)

    def test_loss_is_what_the_router_dropped(self):
        """Half of the packets are cut at one end, whose stream is late, too."""
        script = self.path("late.py")
        with open(script, "w") as f:
            f.write(LATE)
        self.drop()
        self.keep_alive()
        self.live(a=self.ssh(1, snaplen=128), b=self.ssh(2, after=f"{sys.executable} {script} 3"))
        self.wait_for("a result", self.results)
        self.run_traffic()
        results = self.end()
        came, dropped = self.counters()
        self.check_conserved(results)
        self.assertEqual([r for r in results if r["status"] != "measured"], [])
        self.assertEqual(sum(r["sent"] for r in results), 2000)
        self.assertEqual(came, 2000)
        self.assertGreater(dropped, 100)
        self.assertEqual(sum(r["lost"] for r in results), dropped)

    def test_what_is_too_late_is_unknown(self):
        script = self.path("late.py")
        with open(script, "w") as f:
            f.write(LATE)
        self.keep_alive()
        self.live("--lag", "1s", b=self.ssh(2, after=f"{sys.executable} {script} 0"))
        self.wait_for("a result", self.results)
        cat = [pid for pid, name in family(self.process.pid) if name.startswith("python")][0]
        traffic = self.send("10.2.0.2", PORT, 0, 200)
        time.sleep(2)
        os.kill(cat, signal.SIGSTOP)
        self.wait_for("an unknown interval", lambda: any(r["status"] == "unknown" for r in self.results()))
        time.sleep(2)
        os.kill(cat, signal.SIGCONT)
        back = self.newest()
        self.wait_for("measured intervals", lambda: any(r["status"] == "measured" and r["start_ns"] > back and r["sent"] for r in self.results()))
        traffic.kill()
        results = self.end()
        self.check_conserved(results)
        self.assertEqual([r for r in results if r["lost"]], [])
        self.assertIn("was_silent", {r["cause_code"] for r in results if r["status"] == "unknown"})

    def cut_and_return(self, cut):
        """No packet is lost, so that nothing may be: cut() ends a connection."""
        self.keep_alive()
        self.live("--lag", "3s")
        self.wait_for("a result", self.results)
        self.send("10.2.0.2", PORT, 0, 200)
        self.wait_for("packets", lambda: any(r["sent"] for r in self.results()))
        cut()
        self.wait_for("an unknown interval", lambda: any(r["status"] == "unknown" for r in self.results()))
        back = self.newest()
        self.wait_for("measured intervals", lambda: any(r["status"] == "measured" and r["start_ns"] > back and r["sent"] for r in self.results()))
        results = self.end()
        self.check_conserved(results)
        self.assertEqual([r for r in results if r["lost"]], [])
        self.assertIn("was_disconnected", {r["cause_code"] for r in results if r["status"] == "unknown"})
        self.assertIn("starting it again", self.errors())

    def test_ssh_is_killed(self):
        def cut():
            pids = [pid for pid, name in family(self.process.pid) if name == "ssh"]
            self.assertEqual(len(pids), 2)
            os.kill(pids[1], signal.SIGKILL)

        self.cut_and_return(cut)

    def test_sshd_is_restarted(self):
        def cut():
            sshd = self.sshd[self.network.two]
            for pid, _ in reversed(family(sshd.pid)):
                os.kill(pid, signal.SIGKILL)
            sshd.wait()
            time.sleep(2)
            self.start_sshd(self.network.two)

        self.cut_and_return(cut)

    def test_killed(self):
        """Nothing is left of the commands."""
        self.keep_alive()
        self.live()
        self.wait_for("a result", self.results)
        those = family(self.process.pid)
        self.assertEqual(sum(name == "ssh" for _, name in those), 2)
        self.process.kill()
        self.process.wait()
        end = time.monotonic() + 5
        while any(os.path.exists(f"/proc/{pid}") for pid, _ in those) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse([(pid, name) for pid, name in those if os.path.exists(f"/proc/{pid}")])


if __name__ == "__main__":
    unittest.main()
