# SPDX-License-Identifier: Apache-2.0
"""A running point has no privileges, whoever has started it; and what it needs still works."""
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import unittest
import urllib.request

import command
import points

CONFIG = """point: {name}
psk: lab.psk
{top}
interfaces: [{{name: lo}}]
segments:
  - {{name: x, peer: {peer}, to_peer: src port 7001, interval: 200ms, wait: 400ms, {more}}}
"""


def status(pid):
    """What the kernel says of each thread of a process."""
    threads = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status") as f:
            threads.append(dict(line.rstrip("\n").split(":", 1) for line in f))
    return threads


class Confined(points.Case):
    def pair(self, london="", paris="", host="127.0.0.1"):
        self.keys("psk")
        there = self.start(self.write("paris.yaml", CONFIG.format(name="paris", peer="london", top="listen: 127.0.0.1:0\n" + paris, more="")))
        port = int(there.wait_for(r"listening on 127\.0\.0\.1:(\d+)").group(1))
        here = self.start(self.write("london.yaml", CONFIG.format(name="london", peer="paris", top=london, more=f'connect: "{host}:{port}"')))
        here.wait_for("agreed on", 2)
        return here, there

    def check_threads(self, point, user=None, sandbox=True):
        for said in status(point.process.pid):
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(int(said[name], 16), 0, f"{name} {said}")
            self.assertEqual(said["NoNewPrivs"].strip(), "1")
            self.assertEqual(said["Seccomp"].strip(), "2" if sandbox and "no sandbox" not in point.log else "0", point.log)
            if user:
                entry = pwd.getpwnam(user)
                self.assertEqual(set(said["Uid"].split()), {str(entry.pw_uid)})
                self.assertEqual(set(said["Gid"].split()), {str(entry.pw_gid)})
                self.assertEqual(said["Groups"].split(), [])
        self.assertGreater(len(status(point.process.pid)), 1)

    def finish(self, *these):
        for point in these:
            point.wait_for_results(lambda results: any(r["final"] for r in results))
        for point in these:
            point.stop()
        for point in these:
            results, _ = point.end()
            self.assertEqual(point.code, 0, point.log)
            self.assertTrue(any(r["final"] for r in results), point.log)

    def test_root(self):
        """Started by root, no user given; a store; a peer by name; a connection that comes back."""
        london, paris = self.pair(london="store: london.db", host="localhost")
        for point in (london, paris):
            point.wait_for("no privileges from here on")
            self.check_threads(point)
        if "no sandbox" not in london.log:
            self.assertRegex(london.log, "seccomp, (no )?landlock")
        london.wait_for_lanes()
        paris.stop()
        paris.end()
        london.wait_for("cannot connect")
        port = re.search(r"listening on 127\.0\.0\.1:(\d+)", paris.log).group(1)
        again = self.start(self.write("paris.yaml", CONFIG.format(name="paris", peer="london", top=f"listen: 127.0.0.1:{port}", more="")))
        london.wait_for_lanes(4)
        self.finish(london, again)
        with sqlite3.connect(self.path("london.db")) as db:
            self.assertGreater(db.execute("select count(*) from result").fetchone()[0], 2)
            self.assertEqual(db.execute("pragma integrity_check").fetchone()[0], "ok")

    def test_user(self):
        """It becomes somebody else, who owns what it writes."""
        os.chmod(self.folder, 0o777)
        self.keys("psk")
        nobody = pwd.getpwnam("nobody")
        os.chown(self.path("lab.psk"), nobody.pw_uid, nobody.pw_gid)
        london, paris = self.pair(london="user: nobody\nstore: london.db\nmetrics: 127.0.0.1:0", paris="user: nobody\nsandbox: false")
        self.check_threads(london, "nobody")
        self.check_threads(paris, "nobody", sandbox=False)
        with urllib.request.urlopen(london.wait_for(r"metrics at (\S+)").group(1), timeout=points.PATIENCE) as page:
            self.assertRegex(page.read().decode(), r"(?m)^process_open_fds \d+$")
        self.finish(london, paris)
        self.assertEqual(os.stat(self.path("london.db")).st_uid, nobody.pw_uid)

    def test_wrong(self):
        self.keys("psk")
        for top, said in (
            ("user: no-such-user", r"user 'no-such-user': does not exist"),
            ("sandbox: maybe", r"paris.yaml:4: sandbox: 'maybe' is not true, false or log"),
        ):
            path = self.write("paris.yaml", CONFIG.format(name="paris", peer="london", top="listen: 127.0.0.1:0\n" + top, more=""))
            done = command.oneway("point", "-c", path)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, said)
        # A key that the user cannot read: before anything is opened.
        os.chmod(self.folder, 0o755)
        path = self.write("paris.yaml", CONFIG.format(name="paris", peer="london", top="listen: 127.0.0.1:0\nuser: nobody", more=""))
        done = command.oneway("point", "-c", path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"psk: .*lab\.psk: Permission denied")

    def test_live(self):
        """oneway live gives up its privileges, too; as somebody else it writes that user's store."""
        os.chmod(self.folder, 0o777)
        words = ["live", "--from", "lo", "--to", "other", "--seconds", "3", "--user", "nobody", "--store", self.path("live.db")]
        live = subprocess.Popen([command.PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + points.PATIENCE
        while len(os.listdir(f"/proc/{live.pid}/task")) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        threads = status(live.pid)
        said = live.communicate(timeout=points.PATIENCE)[1]
        self.assertIn("no packets to compare", said)
        self.assertEqual(len(threads), 3, said)
        for thread in threads:
            self.assertEqual([int(thread[c], 16) for c in ("CapPrm", "CapEff", "CapBnd")], [0, 0, 0])
            self.assertEqual(thread["Seccomp"].strip(), "0" if "no sandbox" in said else "2")
            self.assertEqual(set(thread["Uid"].split()), {str(pwd.getpwnam("nobody").pw_uid)})
        self.assertEqual(os.stat(self.path("live.db")).st_uid, pwd.getpwnam("nobody").pw_uid)


def prepare():
    """Whether there is a loopback and another interface in a namespace of our own."""
    return all(
        subprocess.run(["ip", "link", *words], stderr=subprocess.DEVNULL).returncode == 0
        for words in (["set", "lo", "up"], ["add", "other", "type", "veth", "peer", "name", "end"], ["set", "other", "up"])
    )


if __name__ == "__main__":
    if os.environ.get("OW_INSIDE") != "1":
        if os.geteuid() != 0 or not shutil.which("ip") or subprocess.run(["unshare", "--net", "true"]).returncode != 0:
            print("needs root, to give it up, and network namespaces: not tested")
            sys.exit(77)
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    if not prepare():
        print("no interfaces can be made in a namespace here: not tested")
        sys.exit(77)
    unittest.main()
