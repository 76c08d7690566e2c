#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the lines of docs/fleet.md as they are there, on three hosts: namespaces with their own /etc/oneway and
/var/lib/oneway, a real nats-server, a real PostgreSQL. ssh is a script that enters the other host."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import command
import pages
from fleet import until, why_not
from servers import Postgres

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
ADDRESSES = {"fleet": "10.79.0.1", "london": "10.79.0.2", "paris": "10.79.0.3"}
FOLDERS = ("/etc/oneway", "/var/lib/oneway")
TRAFFIC = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10**9):
    s.sendto(b"%d" % i, (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.02)
"""


class Hosts:
    """Three hosts at a switch."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="oneway-page-")
        self.bin = os.path.join(self.root, "bin")
        os.makedirs(self.bin)
        os.symlink(os.path.abspath(command.PROGRAM), os.path.join(self.bin, "oneway"))
        names = "127.0.0.1 localhost\n" + "".join(f"{a} {h} {h}.example\n" for h, a in ADDRESSES.items())
        pathlib.Path(self.root, "hosts").write_text(names)
        # They stay: another run may have something mounted there.
        for folder in FOLDERS:
            os.makedirs(folder, exist_ok=True)
        self.postgres = Postgres()
        self.holders, self.background = {}, []
        for host in ("switch", *ADDRESSES):
            self.holders[host] = self.hold(host)
        self.script("ssh", f'host=$1; shift; exec nsenter -t "$(cat {self.root}/$host.pid)" -n -m sh -c "$*"')
        self.wire()

    def script(self, name, text):
        path = pathlib.Path(self.bin, name)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def hold(self, host):
        mounts = "".join(f"mount -t tmpfs tmpfs {f} && " for f in FOLDERS) + f"mount --bind {self.root}/hosts /etc/hosts && "
        line = mounts + "ip link set lo up && echo ready && exec sleep 3600"
        holder = subprocess.Popen(["unshare", "-n", "-m", "--propagation", "private", "sh", "-c", line], stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "ready\n"
        pathlib.Path(self.root, host + ".pid").write_text(str(holder.pid))
        return holder

    def wire(self):
        self.run("switch", "ip link add bridge type bridge && ip link set bridge up")
        for host, address in ADDRESSES.items():
            pid = self.holders[host].pid
            self.run("switch", f"ip link add {host} type veth peer name eth0 netns {pid} && ip link set {host} master bridge up")
            self.run(host, f"ip address add {address}/24 dev eth0 && ip link set eth0 up")

    def line(self, host, text):
        return ["nsenter", "-t", str(self.holders[host].pid), "-n", "-m", "sh", "-c", text]

    def environment(self):
        return {**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], "PGHOST": self.postgres.folder,
                "PGPORT": str(self.postgres.port), "PGUSER": "postgres", "COLUMNS": "80"}

    def run(self, host, text, check=True):
        done = subprocess.run(self.line(host, text), capture_output=True, text=True, env=self.environment(), cwd="/", timeout=200)
        if check and done.returncode not in (0, 3):
            raise AssertionError(f"{host}# {text}\n{done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout + done.stderr

    def start(self, host, text):
        path = os.path.join(self.root, f"{len(self.background)}.log")
        with open(path, "wb") as log:
            process = subprocess.Popen(self.line(host, "exec " + text if "&&" not in text else text.replace("&& ", "&& exec ")), stdout=log, stderr=log,
                                       env=self.environment(), cwd="/")
        self.background.append((text, process, path))
        time.sleep(1.5)
        if process.poll() is not None:
            raise AssertionError(f"{host}# {text} & ended\n{self.logs()}")

    def logs(self):
        return "\n".join(f"-- {text}\n{pathlib.Path(path).read_text(errors='replace')[-2000:]}" for text, _, path in self.background[2:])

    def end(self):
        for _, process, _ in reversed(self.background):
            process.terminate()
        for _, process, _ in self.background:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.postgres.stop()
        shutil.rmtree(self.postgres.folder, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)


@unittest.skipIf(why_not() or Postgres.why_not(), why_not() or Postgres.why_not())
@unittest.skipIf(os.geteuid() != 0, "needs root: namespaces")
class Page(unittest.TestCase):
    def test_page(self):
        steps = [(s.host.rstrip("#"), s.command) for section in pages.read(PAGE).values() for s in section]
        self.assertGreater(len(steps), 14)
        (written,) = [text.split("\n", 1)[1].removesuffix("END") for _, text in steps if "fleet.yaml <<" in text]
        example = (PAGE.parent / "examples" / "fleet.yaml").read_text()
        self.assertEqual("".join(line for line in example.splitlines(True) if not line.startswith("#")), written)
        hosts = Hosts()
        self.addCleanup(hosts.end)
        for port, (here, there) in enumerate((("london", "paris"), ("paris", "london"))):
            hosts.start(here, f"python3 -c '{TRAFFIC}' {ADDRESSES[there]} {7000 + port}")
        started = time.monotonic()
        for host, text in steps:
            if text.endswith("&"):
                hosts.start(host, text.removesuffix("&").strip())
            elif "fleet status" in text:
                until(lambda: self.all_measure(hosts), lambda: hosts.run("fleet", "oneway fleet status") + hosts.logs(), 40)
                said = hosts.run(host, text)
                heading = next(line for line in PAGE.read_text().splitlines() if re.match(r"    point +state", line))
                self.assertEqual(said.splitlines()[0].split(), heading.split())
            elif "oneway results" in text:
                # A minute, and what comes after it.
                until(lambda: "london>paris" in hosts.run(host, text, check=False), lambda: hosts.run(host, text, check=False) + hosts.logs(), 200, 2)
            elif "fleet map" in text:
                until(lambda: re.search("london .*paris|paris .*london", hosts.run(host, text, check=False)), lambda: hosts.run(host, text, check=False), 60, 2)
            else:
                said = hosts.run(host, text)
                if "apply" in text:
                    self.assertIn("none of these is there now", said)
                if "revoke" in text:
                    self.assertIn("paris is out.", said)
        print(f"{len(steps)} lines in {time.monotonic() - started:.0f} s")
        until(lambda: json.loads(hosts.run("fleet", "oneway fleet status --json"))["points"][1]["state"] == "revoked", "revoked")

    @staticmethod
    def all_measure(hosts):
        points = json.loads(hosts.run("fleet", "oneway fleet status --json"))["points"]
        return len(points) == 2 and all(p["health"] and p["health"]["lanes"] == 2 and p["health"]["last_result_ns"] for p in points)


if __name__ == "__main__":
    unittest.main()
