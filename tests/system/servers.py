# SPDX-License-Identifier: Apache-2.0
"""Servers for tests, each in a folder of its own, on loopback: PostgreSQL and nats-server as Debian installs them."""
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


RESERVED = []


def free_port():
    """A port that nobody uses, and that nobody else gets until this process ends: also while a server that has it is killed or starts
    again. A server has to set SO_REUSEADDR, as all do here."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    RESERVED.append(s)
    return s.getsockname()[1]


class Disk:
    """A file system of its own, in a file: it can be really full. Needs root, and a mount namespace to end with."""

    def __init__(self, size):
        self.image = tempfile.NamedTemporaryFile(prefix="oneway-disk-")
        self.image.truncate(size)
        self.folder = tempfile.mkdtemp(prefix="oneway-disk-")
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", self.image.name], check=True)
        subprocess.run(["mount", "-o", "loop", self.image.name, self.folder], check=True)
        self.ballast = os.path.join(self.folder, "ballast")

    def fill(self):
        """Until there is no block left."""
        with open(self.ballast, "wb") as f:
            size = 1 << 30
            while size >= 4096:
                try:
                    os.posix_fallocate(f.fileno(), os.fstat(f.fileno()).st_size, size)
                except OSError:
                    size //= 2

    def relieve(self):
        os.unlink(self.ballast)

    def remove(self):
        subprocess.run(["umount", "-l", self.folder], check=True)
        os.rmdir(self.folder)
        self.image.close()


class Postgres:
    """A cluster of its own. It does not run as root: root starts it as user postgres."""

    SETTINGS = {"fsync": "on", "shared_buffers": "64MB", "max_wal_size": "256MB", "max_connections": "30",
                "autovacuum_naptime": "10s", "log_min_messages": "fatal"}

    @staticmethod
    def folder_of_programs():
        """Where initdb and postgres are; None: not installed."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda p: int(p.split("/")[4]))
        return os.path.dirname(found[-1]) if found else None

    @classmethod
    def why_not(cls):
        """The reason to skip a test, or None."""
        if not cls.folder_of_programs():
            return "PostgreSQL is not installed (package postgresql)"
        return None

    def __init__(self, disk=None, **settings):
        """disk: for its data."""
        self.folder = tempfile.mkdtemp(prefix="oneway-postgres-")
        self.data = os.path.join(disk.folder if disk else self.folder, "data")
        self.port = free_port()
        self.process = None
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(os.path.dirname(self.data), "postgres", "postgres")
            shutil.chown(self.folder, "postgres", "postgres")
        os.chmod(self.folder, 0o755)
        self.settings = {**self.SETTINGS, **settings}
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self.start()

    def command(self, program, *args):
        """A command line that runs one of PostgreSQL's programs as its user."""
        line = [os.path.join(self.folder_of_programs(), program), *map(str, args)]
        if os.geteuid() == 0:
            line = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", "--", *line]
        return line

    def run(self, program, *args, **options):
        return subprocess.run(self.command(program, *args), check=True, capture_output=True, text=True, cwd=self.folder, **options)

    def start(self, timeout=30):
        line = ["-D", self.data, "-p", self.port, "-k", self.folder, "-h", "127.0.0.1"]
        for key, value in self.settings.items():
            line += ["-c", f"{key}={value}"]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(self.command("postgres", *line), stdout=log, stderr=log, cwd=self.folder)
        end = time.monotonic() + timeout
        while subprocess.run(self.command("pg_isready", "-q", "-h", self.folder, "-p", self.port)).returncode != 0:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("PostgreSQL does not start: " + self.log()[-2000:])
            time.sleep(0.05)

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as f:
            return f.read()

    def stop(self, signal_number=signal.SIGINT):
        """SIGINT: fast; SIGQUIT: immediate, as after a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.wait(timeout=60)
        self.process = None

    def kill(self):
        """kill -9 of all of its processes, and recovery at the next start."""
        with open(os.path.join(self.data, "postmaster.pid")) as f:
            server = int(f.readline())
        with open(f"/proc/{server}/task/{server}/children") as f:
            children = [int(pid) for pid in f.read().split()]
        for pid in [server, *children]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(timeout=60)
        self.process = None

    def restart(self, signal_number=signal.SIGQUIT):
        self.stop(signal_number)
        self.start()

    def url(self, database="postgres", user="postgres", **options):
        query = "&".join(f"{k}={v}" for k, v in options.items())
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}" + (f"?{query}" if query else "")

    def sql(self, text, database="postgres", user="postgres"):
        """Rows as lists of texts. The text is run as it is."""
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", user,
                               "-d", database, "-f", "-"], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [line.split("\t") for line in done.stdout.splitlines()]

    def database(self, name):
        """A new, empty database; returns its URL."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


class Nats:
    """One nats-server with JetStream, or a cluster of several."""

    @staticmethod
    def why_not():
        return None if shutil.which("nats-server") else "nats-server is not installed (package nats-server)"

    def __init__(self, servers=1):
        self.folder = tempfile.mkdtemp(prefix="oneway-nats-")
        self.ports = [free_port() for _ in range(servers)]
        self.routes = [free_port() for _ in range(servers)]
        self.monitors = [free_port() for _ in range(servers)]
        self.processes = [None] * servers
        for i in range(servers):
            self.start(i)
        self.wait()

    def configuration(self, i):
        # As `oneway fleet init` has it.
        text = (f'server_name: n{i}\nlisten: "127.0.0.1:{self.ports[i]}"\nhttp: "127.0.0.1:{self.monitors[i]}"\nping_interval: "10s"\n'
                f'jetstream {{ store_dir: "{self.folder}/n{i}", max_file_store: 20GB }}\n')
        if len(self.ports) > 1:
            routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes)
            text += f'cluster {{ name: test, listen: "127.0.0.1:{self.routes[i]}", routes: [{routes}] }}\n'
        return text

    def start(self, i=0):
        path = os.path.join(self.folder, f"n{i}.conf")
        with open(path, "w") as f:
            f.write(self.configuration(i))
        with open(os.path.join(self.folder, f"n{i}.log"), "ab") as log:
            self.processes[i] = subprocess.Popen(["nats-server", "-c", path], stdout=log, stderr=log)

    def ask(self, i, page):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitors[i]}/{page}", timeout=5) as answer:
            return json.load(answer)

    def wait(self, timeout=30):
        """Until all servers that run have JetStream, and a cluster has a leader."""
        end = time.monotonic() + timeout
        while True:
            try:
                states = [self.ask(i, "jsz") for i, p in enumerate(self.processes) if p]
                if all(len(self.ports) == 1 or s.get("meta_cluster", {}).get("leader") for s in states):
                    return
            except OSError:
                pass
            if time.monotonic() > end:
                raise RuntimeError(f"nats-server does not start, see {self.folder}")
            time.sleep(0.1)

    def detail(self, i, stream):
        """What a server knows of a stream and its consumers; {}: nothing."""
        for account in self.ask(i, "jsz?streams=1&consumers=1").get("account_details", []):
            for detail in account.get("stream_detail", []):
                if detail["name"] == stream:
                    return detail
        return {}

    def leader(self, stream):
        """The number of the server that leads a stream."""
        for i, process in enumerate(self.processes):
            if process and (detail := self.detail(i, stream)):
                return int(detail.get("cluster", {}).get("leader", f"n{i}")[1:])
        return 0

    def waiting(self, stream):
        """Messages that its consumers have not delivered, and those that are not acknowledged. A consumer has a leader of
        its own: what other servers say of it is old."""
        counts, led = {}, set()
        for i, process in enumerate(self.processes):
            for consumer in (self.detail(i, stream) if process else {}).get("consumer_detail", []):
                name = consumer["name"]
                leads = consumer.get("cluster", {}).get("leader", f"n{i}") == f"n{i}"
                if leads:
                    led.add(name)
                if leads or name not in counts:
                    counts[name] = [consumer["num_pending"], consumer["num_ack_pending"]]
        if set(counts) - led:
            raise ValueError(f"consumers without a leader: {set(counts) - led}")
        return [count for name in sorted(counts) for count in counts[name]]

    def left(self, stream):
        """Of each server: messages that it has of the stream, the number of the last one that came, and up to which
        number the consumers have acknowledged all."""
        found = []
        for i, process in enumerate(self.processes):
            detail = self.detail(i, stream) if process else {}
            if detail:
                floors = [c["ack_floor"]["stream_seq"] for c in detail.get("consumer_detail", [])]
                found.append((detail["state"]["messages"], detail["state"]["last_seq"], min(floors, default=0)))
        return found

    def end(self, i=0, signal_number=signal.SIGKILL):
        self.processes[i].send_signal(signal_number)
        self.processes[i].wait(timeout=30)
        self.processes[i] = None

    def signal(self, signal_number):
        for process in self.processes:
            if process:
                process.send_signal(signal_number)

    def url(self):
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)

    def remove(self):
        for i, process in enumerate(self.processes):
            if process:
                self.end(i)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    """servers.py postgres COMMAND...: runs it beside a server whose URL is in ONEWAY_POSTGRES. 77: there is none."""
    if len(sys.argv) < 3 or sys.argv[1] != "postgres":
        sys.exit(main.__doc__)
    if Postgres.why_not():
        print("skipped:", Postgres.why_not())
        sys.exit(77)
    server = Postgres(synchronous_commit="off")
    try:
        sys.exit(subprocess.run(sys.argv[2:], env={**os.environ, "ONEWAY_POSTGRES": server.url()}).returncode)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
