# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: two points in namespaces of their own, a wire between them that knows the truth, a link for
the points' session that can be cut, and what must hold in their stores whatever happened.

london is host A of tests/system/labwire.c and connects; paris is host B. Traffic goes both ways, all of the time."""
import collections
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

import points

LABWIRE = os.environ.get("LABWIRE", "build/tests/system/labwire")
# make faults: more of everything, and the cases that take minutes.
LONG = os.environ.get("OW_FAULTS") == "long"
HOST = {"london": "a", "paris": "b"}
ADDRESS = {"london": "192.0.2.1", "paris": "192.0.2.2"}
NOWHERE = "02:00:00:00:00:ff"
MS = 10**6
SECOND = 10**9

CONFIG = """point: {name}
psk: lab.psk
store: {store}
output: none
memory: {memory}
{listen}interfaces: [{{name: wire0, ring: {ring}}}]
segments:
  - name: x
    peer: {peer}
    {segment}
"""


def other(name):
    return "paris" if name == "london" else "london"


def run(*words):
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL)


class Net:
    """The hosts, the wire and its traffic."""

    def __init__(self, interval_ms, loss, rate, seed, prefix, base="2ms"):
        self.process = subprocess.Popen(
            [*prefix, LABWIRE, f"{interval_ms}ms", "weibull:200us,0.8", str(loss), "0", "0", str(seed), base], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        first = self.process.stdout.readline()
        if not first:
            raise AssertionError("no network for the test")
        self.path = json.loads(first)["hosts"]
        self.truth, self.total, self.kernel_drops = {}, {}, None
        self.seed = seed
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.mac = {name: self.link_of(name) for name in HOST}
        for name in HOST:
            self.send(name, rate)

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            self.kernel_drops = said["kernel_drops"]
            if said["total"]:
                self.total[said["from"]] = said
            else:
                self.truth[said["from"], said["start_ns"]] = said

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def send(self, name, rate, kind=1):
        """From now on the host sends so many packets a second of this kind, of which there are three."""
        self.seed += 1
        self.tell("rate", HOST[name], kind, rate, self.seed)

    def cut(self, *names):
        """All that these hosts send over the measured wire is lost from now on."""
        self.tell("cut", "".join(HOST[name] for name in names) or "-")

    def enter(self, name):
        return ["nsenter", "--net=" + self.path[HOST[name]]]

    def link_of(self, name):
        done = subprocess.run([*self.enter(name), "ip", "-json", "link", "show", "mgmt0"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)[0]["address"]

    def mute(self, name):
        """What this host says to the other one about the measurement gets lost, silently."""
        self.neighbour(name, NOWHERE)

    def heal(self, name):
        self.neighbour(name, self.mac[other(name)])

    def neighbour(self, name, mac):
        run(*self.enter(name), "ip", "neighbour", "replace", ADDRESS[other(name)], "lladdr", mac, "nud", "permanent", "dev", "mgmt0")

    def stop(self):
        """Ends traffic and wire; the truth is whole then."""
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        self.reader.join(timeout=points.PATIENCE)
        self.process.wait(timeout=points.PATIENCE)
        self.process.stdout.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


Row = collections.namedtuple(
    "Row", "start length final status cause sent received matched late late_received lost pending extra total_sent sample_shift drops_from drops_to ready"
)
COLUMNS = (
    "start_ns, length_ns, final, status, cause, sent, received, matched, late, late_received, lost, pending, extra, total_sent,"
    " sample_shift, ring_drops_from, ring_drops_to, ready_ns"
)


# Minutes that are not the sum of their final results.
WRONG_MINUTES = """SELECT m.lane, m.start_ns, m.intervals, count(*), m.sent, sum(r.sent) FROM minute m JOIN result r
    ON r.lane = m.lane AND r.final AND r.start_ns >= m.start_ns AND r.start_ns < m.start_ns + 60000000000
    GROUP BY m.lane, m.start_ns HAVING m.intervals <> count(*) OR m.intervals_unknown <> sum(r.status = 'unknown')
    OR ifnull(m.sent, 0) <> ifnull(sum(r.sent << r.sample_shift), 0)
    OR ifnull(m.lost, 0) <> ifnull(sum(r.lost << r.sample_shift), 0)"""


class Store:
    """What a point has stored, after its end."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.integrity = self.db.execute("PRAGMA integrity_check").fetchone()[0]
        self.lanes = {}
        for lane, sender in self.db.execute("SELECT id, from_point FROM lane").fetchall():
            rows = self.db.execute(f"SELECT {COLUMNS} FROM result WHERE lane = ? ORDER BY start_ns", (lane,))
            self.lanes[sender] = [Row(*row) for row in rows]
        self.wrong_minutes = self.db.execute(WRONG_MINUTES).fetchall()
        found = self.db.execute("SELECT value FROM meta WHERE key = 'not_stored'").fetchone()
        self.not_stored = found[0] if found else 0
        self.db.close()


def count(rows, status):
    return sum(r.status == status for r in rows)


class Case(points.Case):
    interval_ms = 100
    wait_ms = 200
    memory = "64MiB"
    ring = "8MiB"
    wire_prefix = ("nice", "-n", "-10")  # real wires do not wait for a processor

    def build(self, loss=0, rate=2000, seed=1):
        self.net = Net(self.interval_ms, loss, rate, seed, self.wire_prefix)
        self.rate = rate
        self.addCleanup(self.net.close)
        self.keys("psk")
        self.at = {}
        for name in HOST:
            self.configure(name)

    def configure(self, name, store=None, segment=None, memory=None, ring=None, psk="lab.psk"):
        if segment is None:
            segment = ""
            if name == "london":
                segment = f"interval: {self.interval_ms}ms\n    wait: {self.wait_ms}ms"
        text = CONFIG.format(
            name=name,
            peer=other(name),
            listen="listen: 192.0.2.2:8620\n" if name == "paris" else "",
            store=store or name + ".db",
            memory=memory or self.memory,
            ring=ring or self.ring,
            segment=("connect: 192.0.2.2:8620\n    " if name == "london" else "") + segment,
        )
        self.write(name + ".yaml", text.replace("lab.psk", psk))

    def begin(self, name, prefix=()):
        """Starts a point, again if it was there before."""
        point = points.Point(self.path(name + ".yaml"), prefix=[*self.net.enter(name), *prefix])
        self.points.append(point)
        self.at[name] = point
        if name == "paris":
            point.wait_for("listening on")
        return point

    def begin_both(self):
        self.begin("paris")
        self.begin("london")
        self.agreed()

    def agreed(self, name="london", times=1):
        """Until the lanes of both directions are there, so many times; returns their (last) start."""
        self.at[name].wait_for("agreed on", 2 * times)

    def kill(self, name):
        self.at[name].process.kill()
        self.at[name].process.wait()

    def signal(self, name, number):
        self.at[name].process.send_signal(number)

    def end(self):
        """Both points end, then the network. Returns their stores, in which everything holds that must."""
        time.sleep((self.wait_ms + 4 * self.interval_ms) / 1000)
        for name in ("london", "paris"):
            self.at[name].stop()
        for name in ("london", "paris"):
            self.at[name].end()
            self.assertEqual(self.at[name].code, 0, self.at[name].log)
            self.assertNotIn("not understood", self.at[name].log)
        self.net.stop()
        return {name: self.check(name) for name in HOST}

    # What must hold in any case.

    def check(self, name, gaps=True):
        store = Store(self.path(name + ".db"))
        self.assertEqual(store.integrity, "ok")
        self.assertEqual(store.wrong_minutes, [])
        self.assertEqual(set(store.lanes), set(HOST), name)
        for sender, rows in store.lanes.items():
            self.check_rows(name, sender, rows)
            if gaps:
                self.check_gaps(name, sender, rows)
        return store

    def check_rows(self, name, sender, rows):
        lost = 0
        for r in rows:
            where = (name, sender, r)
            self.assertIn(r.status, ("measured", "partial", "unknown"))
            self.assertEqual(r.final, 1, where)
            self.assertEqual(r.status == "measured", r.cause is None, where)
            if r.status == "unknown":
                self.assertIsNone(r.lost, where)
                continue
            self.assertEqual(r.sent, r.matched + r.late + r.lost + r.pending, where)
            self.assertEqual(r.received, r.matched + r.late_received + r.extra, where)
            self.assertGreaterEqual(min(r[5:14]), 0, where)
            if r.status == "measured":
                self.assertEqual(r.pending, 0, where)
                self.check_sent(where, sender, r)
            if not self.held_up(sender, r):
                lost += r.lost
                self.check_loss(where, sender, r)
        self.assertLessEqual(lost, self.dropped(sender), (name, sender, "more lost than the wire dropped"))

    def dropped(self, sender):
        """By the wire, or on the way to it and from it."""
        total = self.net.total[HOST[sender]]
        return total["lost"] + total["missed"] + self.net.kernel_drops

    def check_sent(self, where, sender, r):
        """A measured interval has the packets of its time, of no other, and all of them. At its ends the wire may have been
        held up, by a hundredth of a second on a busy machine."""
        true = self.net.truth.get((HOST[sender], r.start))
        if true and r.drops_from == 0:
            self.assertLessEqual(abs(r.total_sent - true["sent"]), 5 + self.rate / 100, (where, true))

    def around(self, sender, r):
        """The wire stamps a packet some microseconds after the sender: one at the end of an interval may be in the next."""
        truths = [self.net.truth.get((HOST[sender], r.start + k * r.length)) for k in (-1, 0, 1)]
        return [t for t in truths if t]

    def held_up(self, sender, r):
        """On a busy machine the wire may not come to deliver a packet for longer than the points wait: then it is lost to them. Half
        of that time, a thousand times the delay, shows that it was: what it has not delivered at the end is in no interval."""
        return any(t["max_ns"] > self.wait_ms * MS / 2 for t in self.around(sender, r))

    def check_loss(self, where, sender, r):
        true = sum(t["lost"] for t in self.around(sender, r))
        slack = self.net.total[HOST[sender]]["missed"] + self.net.kernel_drops
        self.assertLessEqual(r.lost, true + slack, where)

    def check_gaps(self, name, sender, rows):
        for before, after in zip(rows, rows[1:]):
            self.assertEqual(before.start + before.length, after.start, (name, sender, "gap", before, after))

    def show(self, what, stores):
        """One line for the reader of the log."""
        parts = []
        for name, store in stores.items():
            for sender, rows in store.lanes.items():
                lost = sum(r.lost or 0 for r in rows)
                parts.append(
                    f"{name} of {sender}: {len(rows)} intervals, {count(rows, 'measured')} measured, {count(rows, 'partial')} partial,"
                    f" {count(rows, 'unknown')} unknown, {lost} of {self.dropped(sender)} lost"
                )
        print(what + "\n  " + "\n  ".join(parts), flush=True)
        causes = collections.Counter(
            (r.status, re.sub(r"[0-9]+", "N", r.cause)) for store in stores.values() for rows in store.lanes.values() for r in rows if r.cause
        )
        for (status, cause), intervals in causes.most_common():
            print(f"    {intervals:6} {status}: {cause}", flush=True)

    def assert_recovered(self, stores, seconds=0.5):
        """The last intervals before the end are measured."""
        for name, store in stores.items():
            for sender, rows in store.lanes.items():
                # Those at the very end may have packets on their way.
                last = rows[: -(2 + self.wait_ms // self.interval_ms)][-int(seconds * 1000 / self.interval_ms) :]
                self.assertTrue(last)
                for r in last:
                    # Nobody promised a machine that is idle.
                    if r.drops_from or r.drops_to or self.held_up(sender, r):
                        continue
                    self.assertEqual(r.status, "measured", (name, sender, r))

    def assert_all_measured(self, stores):
        """But for the end, where packets are on their way, and where the wire was held up."""
        for name, store in stores.items():
            for sender, rows in store.lanes.items():
                for r in rows[: -(1 + self.wait_ms // self.interval_ms)]:
                    if r.drops_from or r.drops_to or self.held_up(sender, r):
                        continue
                    self.assertEqual(r.status, "measured", (name, sender, r))


def permitted():
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        return False
    return subprocess.run(["unshare", "--net", "ip", "link", "add", "name", "probe0", "type", "veth"], capture_output=True).returncode == 0


def main():
    if not permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        # What is mounted from here on nobody else sees, and it goes with us.
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main()
