# SPDX-License-Identifier: Apache-2.0
"""The program on a terminal of its own: what it writes, and what a person would see of that."""
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

import command

PATIENCE = 60  # seconds; sanitizers and a busy machine are slow
SEQUENCE = re.compile(r"\033\[([0-9;?]*)([A-Za-z])")


class Screen:
    """Rows of a terminal, as far as the program uses one. What it does not know is an error."""

    def __init__(self, columns):
        self.columns, self.rows, self.row, self.column = columns, [[]], 0, 0
        self.wrapped = 0  # rows that began because a line was too long

    def put(self, c):
        wide = 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if self.column + wide > self.columns:
            self.wrapped += 1
            self.feed()
        row = self.rows[self.row]
        row += [" "] * (self.column - len(row))
        row[self.column : self.column + 1] = [c]
        self.column += wide

    def feed(self):
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append([])

    def control(self, numbers, letter):
        n = int(numbers or 0)
        if letter == "F":
            assert self.row >= n, "above the first row"
            self.row, self.column = self.row - (n or 1), 0
        elif letter == "K" and n == 2:
            self.rows[self.row] = []
        elif letter == "K" and n == 0:
            del self.rows[self.row][self.column :]
        elif letter == "J" and n == 0:
            del self.rows[self.row][self.column :], self.rows[self.row + 1 :]
        else:
            raise AssertionError(f"unknown control sequence {numbers!r} {letter!r}")

    def write(self, text):
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found:
                if found[2] != "m":
                    self.control(*found.groups())
                at = found.end()
                continue
            c = text[at]
            at += 1
            if c == "\n":
                self.feed()
            elif c == "\r":
                self.column = 0
            elif c == "\t":
                self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
            else:
                assert c.isprintable(), f"control character {c!r}"
                self.put(c)

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)


class Terminal:
    """A program on a terminal. Standard input, output and error are its, but for those that options of Popen say."""

    def __init__(self, *args, columns=80, rows=24, env=None, prefix=(), program=(command.PROGRAM,), **options):
        self.master, far_end = os.openpty()
        self.resize(columns, rows, tell=False)
        environment = {**os.environ, "TERM": "xterm", **(env or {})}
        for name in [name for name, value in environment.items() if value is None]:
            del environment[name]
        streams = {name: options.pop(name, far_end) for name in ("stdin", "stdout", "stderr")}
        self.process = subprocess.Popen(
            [*prefix, *program, *map(str, args)],
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: self.log_in(far_end),
            **streams,
            **options,
        )
        os.close(far_end)
        self.written = ""
        self.rest = b""

    @staticmethod
    def log_in(far_end):
        """As a shell on this terminal would start it. What runs in the background, as these tests may, ignores Ctrl-C."""
        fcntl.ioctl(far_end, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def resize(self, columns, rows=24, tell=True):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.process.send_signal(signal.SIGWINCH)

    def read(self, seconds):
        """Takes in what comes within this time; False at the end."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self.master, 65536)
        except OSError:
            return False
        self.rest += more
        cut = len(self.rest)
        while cut and len(self.rest) - cut < 4 and self.rest[cut - 1] & 0xC0 == 0x80:
            cut -= 1
        if cut and self.rest[cut - 1] >= 0xC0:
            cut -= 1
        try:
            self.written += self.rest.decode()
            self.rest = b""
        except UnicodeDecodeError:
            self.written += self.rest[:cut].decode()
            self.rest = self.rest[cut:]
        return bool(more)

    def wait_for(self, pattern, since=0):
        """Until it has written this."""
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.written[since:]):
            if not self.read(0.1) or time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} on the terminal:\n{self.written}")

    def type(self, text):
        os.write(self.master, text.encode())

    def interrupt(self):
        self.type("\x03")

    def hang_up(self):
        """The terminal is closed."""
        os.close(self.master)
        self.master = -1

    def end(self):
        """Until it has ended; its exit code, negative for a signal."""
        stop = time.monotonic() + PATIENCE
        while self.master >= 0 and self.read(0.1):
            if time.monotonic() > stop:
                self.process.kill()
                raise AssertionError(f"does not end:\n{self.written}")
        code = self.process.wait(timeout=PATIENCE)
        self.close()
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def screen(self, columns, since=0):
        """What is on it, if it has been so wide since then."""
        screen = Screen(columns)
        screen.write(self.written[since:].replace("\r\n", "\n"))
        return screen


def run(*args, **options):
    """Runs the program to its end; returns exit code and terminal."""
    terminal = Terminal(*args, **options)
    return terminal.end(), terminal
