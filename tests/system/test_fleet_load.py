#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many made-up points, a real bus, collectors and a real PostgreSQL, which are killed one after the other: every result
that was made is in the database once, and minutes, hours and days are what a recomputation gives.

    test_fleet_load.py ONEWAY [--long | --hour] [--points N] [--servers 1|3] [--seconds N] [--speed F]

Short: 20 s, few points, one fault of each kind. Long (`make fleet-test`): 2000 points of 10 lanes, 10 minutes, three
servers, a fault each minute. Hour: the bus cannot be reached for an hour, of which each minute takes a second.

It runs in namespaces of its own: the network, in which packets to the bus can be dropped, and the file system of the
database, which can be full.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers


# What a collector had when it was killed comes to others after 30 s: that is the first one.
FAULTS = ["kill_collector", "full_disk", "kill_leader", "kill_points", "partition", "kill_database"]


# Seconds for which all has to be as before.
STEADY = 10


class Follower(threading.Thread):
    """How many rows were made, and how many are in the stream, each time that the load tells."""

    LINE = re.compile(r"(\d+) results and (\d+) minutes made, (\d+) not in the stream")

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.samples = path, []

    def run(self):
        while not os.path.exists(self.path):
            time.sleep(0.1)
        with open(self.path) as f:
            while True:
                found = self.LINE.search(f.readline())
                if found:
                    results, minutes, behind = map(int, found.groups())
                    self.samples.append((time.monotonic(), results + minutes - behind, behind))
                else:
                    time.sleep(0.1)

    def longest_pause(self, since):
        """The longest time in which nothing came into the stream, in seconds."""
        longest, last = 0.0, None
        for at, arrived, _ in [s for s in self.samples if s[0] >= since - 1]:
            if last is None or arrived > last[1]:
                longest = max(longest, at - last[0] if last else 0)
                last = (at, arrived)
        return longest


class Run:
    def __init__(self, args):
        self.args = args
        self.folder = tempfile.mkdtemp(prefix="oneway-fleet-load-")
        self.collectors, self.started = [], 0
        self.faults = []
        self.begin = time.monotonic()
        self.nats = servers.Nats(args.servers)
        self.disk = servers.Disk((40 if args.long else 8) << 30)
        self.postgres = servers.Postgres(self.disk, **({"shared_buffers": "512MB", "max_wal_size": "4GB"} if args.long else {}))
        self.url = self.postgres.database("fleet")
        self.load = None
        self.follower = Follower(os.path.join(self.folder, "load.log"))

    def say(self, text):
        print(f"{time.monotonic() - self.begin:7.1f} s  {text}", flush=True)

    # -- processes

    def start_collector(self):
        self.started += 1
        log = open(os.path.join(self.folder, f"collect-{self.started}.log"), "wb")
        self.collectors.append(subprocess.Popen([self.args.oneway, "collect", "--nats", self.nats.url(), "--to", self.url], stderr=log))

    def start_load(self):
        a = self.args
        self.load = subprocess.Popen([a.oneway, "fleet", "load", "--nats", self.nats.url(), "--replicas", str(min(a.servers, 3)), "--points", str(a.points),
                                      "--lanes", str(a.lanes), "--processes", str(a.processes), "--seconds", str(a.seconds), "--speed", str(a.speed),
                                      "--drain", str(a.drain), *(["--ago", a.ago] if a.ago else []), "--folder", os.path.join(self.folder, "spool")],
                                     stdout=open(os.path.join(self.folder, "load.log"), "wb"))

    def last_line(self):
        with open(os.path.join(self.folder, "load.log")) as f:
            lines = f.read().splitlines()
        return lines[-1] if lines else ""

    # -- faults

    def kill_leader(self):
        i = self.nats.leader("OW_RESULTS")
        self.nats.end(i)
        time.sleep(2)
        self.nats.start(i)

    def kill_collector(self):
        self.collectors[0].kill()
        self.collectors[0].wait()
        self.collectors.pop(0)
        self.start_collector()

    def kill_database(self):
        self.postgres.kill()
        time.sleep(1)
        self.postgres.start(timeout=120)

    def kill_points(self):
        with open(os.path.join(self.folder, "spool", "pids")) as f:
            pids = [int(line) for line in f if int(line) > 0]
        os.kill(pids[len(pids) // 2], signal.SIGKILL)

    def partition(self):
        """The bus is there, and no packet reaches it, or comes from it."""
        ports = ", ".join(map(str, self.nats.ports))
        self.nft(f"add table inet fault; add chain inet fault in {{ type filter hook input priority 0; }};"
                 f"add rule inet fault in tcp dport {{ {ports} }} drop; add rule inet fault in tcp sport {{ {ports} }} drop")
        time.sleep(self.args.partition)
        self.nft("delete table inet fault")

    @staticmethod
    def nft(text):
        subprocess.run(["nft", text], check=True)

    def full_disk(self):
        """The database has no block left, neither for tables nor for its log. A server that gives up is started again."""
        self.disk.fill()
        end = time.monotonic() + 30
        while not self.has_noticed() and self.load.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        self.check("the disk of the database was full", self.has_noticed() or self.load.poll() is not None, "" if self.has_noticed() else "after the load")
        time.sleep(self.args.partition)
        self.disk.relieve()
        if self.postgres.process.poll() is not None:
            self.say("PostgreSQL has ended, and is started again")
            self.postgres.start(timeout=120)

    def has_noticed(self):
        """PostgreSQL has ended, or told a collector that it has no space."""
        said = ""
        for path in glob.glob(os.path.join(self.folder, "collect-*.log")):
            with open(path, errors="replace") as f:
                said += f.read()
        return self.postgres.process.poll() is not None or "No space left on device" in said

    # -- how long things take after a fault

    def is_normal(self):
        """Rows of some seconds, or of the last two intervals, are always on their way."""
        a = self.args
        if not self.follower.samples or self.follower.samples[-1][2] > max(2, 4 * a.speed) * a.points * a.lanes:
            return False
        waiting = self.waiting()
        return bool(waiting) and sum(waiting) <= 4 * a.points

    def waiting(self):
        """Messages that are not delivered, and not acknowledged; None: nobody can say."""
        try:
            return self.nats.waiting("OW_RESULTS")
        except (OSError, ValueError, KeyError):
            return None

    def lag(self, start, timeout):
        """Says how long the stream took nothing, and when all was as before, and stayed so."""
        over = late = time.monotonic()
        while time.monotonic() - late < STEADY:
            if time.monotonic() - over > timeout:
                return f"not over {timeout:.0f} s after its end"
            if not self.is_normal():
                late = time.monotonic()
            time.sleep(0.25)
        return (f"lasted {over - start:.1f} s; the stream took nothing for {self.follower.longest_pause(start):.1f} s; "
                f"as before {late - over:.1f} s after its end")

    def run_faults(self):
        a = self.args
        names = a.faults.split(",")
        each = a.each or a.seconds / (len(names) + 1)
        start = time.monotonic()
        for n, name in enumerate(names, 1):
            time.sleep(max(0, start + n * each - time.monotonic()))
            try:
                self.say(f"{name}: {self.last_line()[10:]}")
                begin = time.monotonic()
                getattr(self, name)()
                left = a.drain if n == len(names) else start + (n + 1) * each - 2 - time.monotonic()
                self.say(f"{name} {self.lag(begin, left) if a.each else 'is over'}")
            except Exception as problem:  # noqa: BLE001, a test must say that a fault could not be made
                self.faults.append(f"{name}: {problem}")

    # -- cost

    def cpu(self, pid):
        """Seconds of processor time of a process and its children."""
        try:
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(") ", 1)[1].split()
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                children = [int(child) for child in f.read().split()]
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(self.cpu(child) for child in children)

    def costs(self):
        used = {"collectors": sum(self.cpu(c.pid) for c in self.collectors), "bus": sum(self.cpu(p.pid) for p in self.nats.processes if p),
                "database": self.cpu(self.postgres.process.pid), "points": self.cpu(self.load.pid)}
        return used

    def follow_costs(self):
        """Processor time a row, while all of it runs without faults."""
        time.sleep(self.args.seconds / 3)
        before, rows, start = self.costs(), self.rows(), time.monotonic()
        time.sleep(self.args.seconds / 3)
        after, more, span = self.costs(), self.rows() - rows, time.monotonic() - start
        parts = ", ".join(f"{part} {(after[part] - before[part]) / more * 1e6:.1f} us ({(after[part] - before[part]) / span:.2f} cores)" for part in after)
        self.say(f"{more / span:.0f} rows/s into the database; processor time a row: {parts}")

    def rows(self):
        return int(self.postgres.sql("SELECT (SELECT count(*) FROM result) + (SELECT count(*) FROM minute)", "fleet")[0][0])

    # -- checks

    def wait_for_database(self, rows, timeout):
        """The lag after the last fault, in seconds; None if not all rows come."""
        start = time.monotonic()
        while time.monotonic() - start < timeout:
            found = self.rows()
            if found == rows:
                return time.monotonic() - start
            time.sleep(0.5)
        self.faults.append(f"{found} rows in the database instead of {rows}")
        return None

    def check(self, what, good, detail=""):
        self.say(f"{'ok  ' if good else 'FAIL'} {what} {detail}")
        if not good:
            self.faults.append(what)

    def spool_sums(self, table):
        """Rows and sums over all stores of the points."""
        total = [0] * 5
        for path in glob.glob(os.path.join(self.folder, "spool", "load-*.db")):
            db = sqlite3.connect(path)
            row = db.execute(f"SELECT count(*), ifnull(sum(sent), 0), ifnull(sum(lost), 0), ifnull(sum(start_ns / 1000000000 % 1000003 * (ifnull(sent, 0) % 1009 + 1)), 0),"
                             f" count(delay_histogram) FROM {table} WHERE final").fetchone()
            total = [a + b for a, b in zip(total, row)]
            db.close()
        return total

    def database_sums(self, table):
        row = self.postgres.sql(f"SELECT count(*), coalesce(sum(sent), 0), coalesce(sum(lost), 0),"
                                f" coalesce(sum(start_ns / 1000000000 % 1000003 * (coalesce(sent, 0) % 1009 + 1)), 0), count(delay_histogram) FROM {table}", "fleet")[0]
        return [int(x) for x in row]

    def check_rollups(self):
        """Minutes are the sum of their intervals, hours that of their minutes."""
        wrong = self.postgres.sql("SELECT count(*) FROM (SELECT lane, start_ns / 60000000000 * 60000000000 AS minute_ns, sum(sent) AS sent, sum(lost) AS lost, count(*) AS n"
                                  " FROM result WHERE status <> 'unknown' GROUP BY 1, 2) AS r JOIN minute AS m ON m.lane = r.lane AND m.start_ns = r.minute_ns"
                                  " WHERE m.sent <> r.sent OR m.lost <> r.lost OR m.intervals - m.intervals_unknown <> r.n", "fleet")
        self.check("minutes are what their intervals give", wrong[0][0] == "0", wrong[0][0] + " differ")
        end = time.monotonic() + 60
        while True:
            wrong = self.postgres.sql("SELECT count(*), count(h.sent) FROM (SELECT lane, start_ns / 3600000000000 * 3600000000000 AS hour_ns, sum(sent) AS sent, sum(lost) AS lost,"
                                      " sum(intervals) AS n FROM minute GROUP BY 1, 2) AS m LEFT JOIN hour AS h ON h.lane = m.lane AND h.start_ns = m.hour_ns"
                                      " WHERE m.hour_ns + 3600000000000 + 900000000000 < extract(epoch FROM now()) * 1e9"
                                      " AND (h.sent IS NULL OR h.sent <> m.sent OR h.lost <> m.lost OR h.intervals <> m.n)", "fleet")
            if wrong[0][0] == "0" or time.monotonic() > end:
                break
            time.sleep(1)
        hours = self.postgres.sql("SELECT count(*) FROM hour", "fleet")[0][0]
        self.check("hours are what their minutes give", wrong[0][0] == "0", f"{wrong[0][0]} of {hours} differ")

    def check_all(self):
        for table in ("result", "minute"):
            spool, database = self.spool_sums(table), self.database_sums(table)
            self.check(f"table {table} is what the points made", spool == database, f"{spool} {database}")
        self.check_rollups()

    def run(self):
        a = self.args
        self.start_collector()
        time.sleep(1)
        self.start_collector()
        self.start_load()
        self.follower.start()
        faults = threading.Thread(target=self.follow_costs if a.calm else self.run_faults)
        faults.start()
        code = self.load.wait()
        faults.join()
        self.say(self.last_line()[10:])
        self.check("all that was made is in the stream", code == 0)
        made = self.spool_sums("result")[0] + self.spool_sums("minute")[0]
        lag = self.wait_for_database(made, a.drain)
        self.say(f"{made} rows made; the database had them {lag if lag is None else round(lag, 1)} s after the stream")
        self.check_all()
        # What a killed collector had, and what was stored when a server died, comes again after 30 s.
        end = time.monotonic() + 90
        while (waiting := self.waiting()) != [0, 0] and time.monotonic() < end:
            time.sleep(0.5)
        self.check("nothing waits for collectors", waiting == [0, 0], f"{waiting} (not delivered, not acknowledged)")
        # A server that was killed has messages again that it had removed.
        left = self.nats.left("OW_RESULTS")
        acknowledged = max(floor for _, _, floor in left)
        self.check("what is left in the stream is acknowledged", all(last <= acknowledged for messages, last, _ in left if messages),
                   f"{left} (messages, last, acknowledged) of each server")
        for collector in self.collectors:
            collector.terminate()
        codes = [collector.wait(timeout=30) for collector in self.collectors]
        self.check("collectors end when they are told to", codes == [0] * len(codes), str(codes))
        return 1 if self.faults else 0

    def remove(self):
        for process in [*self.collectors, self.load]:
            if process and process.poll() is None:
                process.kill()
                process.wait()
        self.nats.remove()
        self.postgres.remove()
        self.disk.remove()
        if self.faults:
            print("kept:", self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


# Short, a fault of each kind within seconds; long, one each minute; an hour's partition in a minute.
USUAL = {
    "short": {"points": 8, "lanes": 2, "processes": 4, "servers": 1, "seconds": 20, "speed": 60, "drain": 60, "partition": 2, "ago": "2h",
              "faults": ",".join(FAULTS), "each": 0},
    "long": {"points": 2000, "lanes": 10, "processes": 20, "servers": 3, "seconds": 600, "speed": 1, "drain": 600, "partition": 15, "ago": "",
             "faults": ",".join(FAULTS + ["kill_leader", "kill_database", "kill_points"]), "each": 60},
    "hour": {"points": 10, "lanes": 10, "processes": 5, "servers": 3, "seconds": 110, "speed": 60, "drain": 600, "partition": 60, "ago": "2h",
             "faults": "partition", "each": 30},
}


def why_not():
    """The reason to skip the test, or None."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "nft", "mkfs.ext4"))):
        return "needs root, unshare, ip, nft and mkfs.ext4"
    return None


def enter_namespaces():
    """Starts again in namespaces of its own; what is mounted there goes with it."""
    if os.environ.get("FLEET_LOAD_INSIDE"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    os.environ["FLEET_LOAD_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oneway")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--faults", help="their names, with commas between them")
    parser.add_argument("--each", type=float, help="seconds from one fault to the next")
    parser.add_argument("--calm", action="store_true", help="no faults; processor time a row of each part")
    parser.add_argument("--points", type=int)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--servers", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--speed", type=float)
    parser.add_argument("--ago", help="the last result is that old, so that hours are over")
    parser.add_argument("--drain", type=float)
    parser.add_argument("--partition", type=float)
    args = parser.parse_args()
    usual = USUAL["long" if args.long else "hour" if args.hour else "short"]
    for key, value in usual.items():
        if getattr(args, key) is None:
            setattr(args, key, value)
    why = servers.Nats.why_not() or servers.Postgres.why_not() or why_not()
    if why:
        print("skipped:", why)
        sys.exit(77)
    enter_namespaces()
    run = Run(args)
    try:
        code = run.run()
    finally:
        run.remove()
    sys.exit(code)


if __name__ == "__main__":
    main()
