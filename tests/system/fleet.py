# SPDX-License-Identifier: Apache-2.0
"""What the tests of a fleet share: its folder with a real nats-server, points as processes, and a client of the bus that
says what its test wants, with a certificate that may be stolen."""
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

import command
from servers import free_port

PATIENCE = 40


def why_not():
    """The reason to skip a test, or None."""
    return None if shutil.which("nats-server") else "nats-server is not installed"


def until(condition, what, seconds=PATIENCE, every=0.05):
    """Waits for the condition and returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(every)


class Process:
    """A process with its output in a file."""

    def __init__(self, line, folder, name, cwd=None):
        self.file = os.path.join(folder, name + ".log")
        with open(self.file, "ab") as log:
            self.process = subprocess.Popen([str(a) for a in line], stdout=log, stderr=log, cwd=cwd)

    def log(self):
        with open(self.file, errors="replace") as f:
            return f.read()

    def wait_for(self, text, seconds=PATIENCE):
        return until(lambda: re.search(text, self.log()), lambda: f"{text!r} in\n{self.log()[-3000:]}", seconds)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Fleet:
    """A fleet on loopback."""

    def __init__(self, *options, servers=1, serve=True):
        self.root = tempfile.mkdtemp(prefix="oneway-fleet-")
        self.folder = os.path.join(self.root, "fleet")
        self.ports = []
        while len(self.ports) < servers:
            port = free_port()
            if 1024 < port < 60000 and port not in self.ports:
                self.ports.append(port)
        self.serve_port = free_port()
        self.processes = {}
        hosts = ",".join(f"127.0.0.1:{p}" for p in self.ports)
        self.run("init", self.folder, "--server", hosts, "--address", f"127.0.0.1:{self.serve_port}", *options, dir=False)
        for port in self.ports:
            self.start_server(port)
        if serve:
            self.start_serve()

    def server_folder(self, port):
        return os.path.join(self.folder, "nats", f"127.0.0.1-{port}")

    def start_server(self, port):
        nats = Process(["nats-server", "-c", "nats.conf"], self.root, f"nats-{port}", cwd=self.server_folder(port))
        self.processes[f"nats-{port}"] = nats
        nats.wait_for("Server is ready")

    def start_serve(self):
        serve = Process([command.PROGRAM, "fleet", "serve", "--dir", self.folder], self.root, "serve")
        self.processes["serve"] = serve
        serve.wait_for("certificates at")

    def run(self, part, *args, dir=True, code=0, timeout=120):
        """oneway fleet PART; returns what it printed."""
        done = command.oneway("fleet", part, *args, *(["--dir", self.folder] if dir else []), timeout=timeout)
        if code is not None and done.returncode != code:
            raise AssertionError(f"fleet {part}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def status(self):
        done = command.oneway("fleet", "status", "--json", "--dir", self.folder)
        return {p["point"]: p for p in json.loads(done.stdout)["points"]}

    def state(self, name):
        return os.path.join(self.root, "state-" + name)

    def start_point(self, name, more="", enroll=True):
        """A point with the three lines of `enroll`, and perhaps more."""
        config = os.path.join(self.root, name + ".yaml")
        if enroll:
            done = command.oneway("fleet", "enroll", name, "--dir", self.folder)
            assert done.returncode == 0, done.stderr
            lines = done.stdout + f"  state: {self.state(name)}\n" + more
            pathlib.Path(config).write_text(lines)
        self.processes[name] = Process([command.PROGRAM, "point", "-c", config, "--quiet"], self.root, name)
        return self.processes[name]

    def wait_for_certificate(self, name):
        path = os.path.join(self.state(name), "point.pem")
        until(lambda: os.path.exists(path), lambda: self.processes[name].log())

    def nats_log(self):
        return "".join(p.log() for n, p in self.processes.items() if n.startswith("nats-"))

    def apply(self, text, code=0):
        path = os.path.join(self.root, "fleet.yaml")
        pathlib.Path(path).write_text(text)
        return self.run("apply", path, code=code)

    def end(self):
        for name in sorted(self.processes, key=lambda n: n.startswith("nats")):
            self.processes[name].stop()
        shutil.rmtree(self.root, ignore_errors=True)


class Client:
    """Speaks the protocol of NATS with the files of somebody's certificate."""

    def __init__(self, fleet, folder, name, ca=None, port=None):
        context = ssl.create_default_context(cafile=ca or os.path.join(fleet.folder, "ca.pem"))
        context.check_hostname = False
        if name:
            context.load_cert_chain(os.path.join(folder, name + ".pem"), os.path.join(folder, name + ".key"))
        self.bytes = b""
        self.closed = False
        self.socket = socket.create_connection(("127.0.0.1", port or fleet.ports[0]), timeout=10)
        try:
            self.connect(context)
        except OSError:
            self.socket.close()
            raise

    def connect(self, context):
        self.socket.recv(65536)  # INFO
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.socket.settimeout(0.2)
        self.send('CONNECT {"verbose":false,"pedantic":false,"tls_required":true,"headers":true,"no_responders":true}\r\nPING\r\n')
        self.until("PONG")

    def send(self, text):
        self.socket.settimeout(10)
        try:
            self.socket.sendall(text.encode() if isinstance(text, str) else text)
        except OSError:
            self.closed = True
        self.socket.settimeout(0.2)

    def read(self, seconds=0.5):
        """What came until nothing came for this time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.closed:
            try:
                more = self.socket.recv(65536)
            except (TimeoutError, ssl.SSLWantReadError):
                continue
            except OSError:
                more = b""
            if not more:
                self.closed = True
                break
            if more == b"PING\r\n":
                self.send("PONG\r\n")
            self.bytes += more
        return self.bytes.decode(errors="replace")

    def until(self, text, seconds=10):
        end = time.monotonic() + seconds
        while text not in self.bytes.decode(errors="replace"):
            if self.closed or time.monotonic() > end:
                raise ConnectionError(f"no {text!r}: {self.bytes.decode(errors='replace')[-500:]}")
            self.read(0.02)
        return self.bytes.decode(errors="replace")

    def publish(self, subject, data=b"x", reply=""):
        data = data.encode() if isinstance(data, str) else data
        self.send(f"PUB {subject} {reply + ' ' if reply else ''}{len(data)}\r\n".encode() + data + b"\r\n")

    def subscribe(self, subject, number=1):
        self.send(f"SUB {subject} {number}\r\n")

    def settle(self):
        """Until the server has handled everything before; returns what it said."""
        before = self.bytes.count(b"PONG")
        self.send("PING\r\n")
        end = time.monotonic() + 10
        while self.bytes.count(b"PONG") <= before and not self.closed and time.monotonic() < end:
            self.read(0.02)
        return self.bytes.decode(errors="replace")

    def wait_closed(self, seconds=20):
        start = time.monotonic()
        while not self.closed and time.monotonic() - start < seconds:
            self.read(0.02)
        return time.monotonic() - start

    def close(self):
        self.socket.close()
