# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/ that tests run: their lines with a prompt, and what the page says that these print.

A prompt is `$`, `#` (as root), or the name of a host and `#`. Output follows its command, up to an empty line, the next prompt or the
end of the block; an empty line in the middle of it is part of it. `...` stands for any lines, also none."""
import collections
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time

Step = collections.namedtuple("Step", "host command output first last")
PROMPT = re.compile(r"    (\$|[a-z]*#) (.*)")
COLUMNS = 80
# What a number may look like: 1,144  12:00:05.000  2026-11-18  0.4%  45.86 ms; or a value that is not there: -
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d,.:]*(-\d\d-\d\d)?%?( (ns|us|ms|s)\b)?(?![A-Za-z_])|(?<=\s)-(?=\s|$)")


def is_whole(text):
    """Whether bash would not ask for more. Of a text that ends within << it only warns."""
    done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
    return done.returncode == 0 and "here-document" not in done.stderr and not text.endswith("\\")


def read(path):
    """The sections of a page, by their titles: lists of Step. A command may have several lines; lines of output are those of
    the page, numbered from 0 (first, last: the range to replace)."""
    lines = path.read_text().splitlines()
    sections, title, at = {}, "", 0
    while at < len(lines):
        if lines[at].startswith("## "):
            title = lines[at][3:]
        found = PROMPT.match(lines[at])
        at += 1
        if not found:
            continue
        host, text = found.groups()
        while not is_whole(text):
            text += "\n" + lines[at][4:]
            at += 1
        first = at
        while at < len(lines) and (lines[at].startswith("    ") or lines[at] == "") and not PROMPT.match(lines[at]):
            at += 1
        while at > first and lines[at - 1] == "":
            at -= 1
        # An empty line right behind the command ends it: what follows is something else.
        last = at if first < len(lines) and lines[first] else first
        sections.setdefault(title, []).append(Step(host, text, [line[4:] for line in lines[first:last]], first, last))
        at = max(last, first)
    return sections


def shape(line):
    """The line with its numbers made equal, and runs of blanks: tables move with the width of numbers."""
    return " ".join(NUMBER.sub("N", line).split())


def align(said, printed, form):
    """The lines of a page with those that were printed in their place; None if they do not fit. form: what must be the same of a line."""
    pieces, lines, at = [[]], [], 0
    for line in said:
        if line == "...":
            pieces.append([])
        else:
            pieces[-1].append(form(line))
    got = [form(line) for line in printed]
    for number, piece in enumerate(pieces):
        last = len(got) - len(piece)
        starts = range(at, last + 1) if 0 < number < len(pieces) - 1 else [0 if number == 0 else last]
        if number == 0 and len(pieces) == 1 and last != 0:
            return None
        where = next((s for s in starts if s >= at and got[s : s + len(piece)] == piece), None)
        if where is None:
            return None
        at = where + len(piece)
        lines += (["..."] if number else []) + printed[where:at]
    return lines


class Shell:
    """bash with a terminal as its output, as wide as a page."""

    MARK = "\x1e"

    def __init__(self, folder, env=None, prefix=()):
        self.terminal, far_end = os.openpty()
        fcntl.ioctl(far_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C", "TZ": "UTC", **(env or {})}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen([*prefix, "bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=far_end, stderr=far_end,
                                        env=environment, text=True)
        os.close(far_end)
        # Who enters a namespace of mounts is in its root folder.
        self.run(f"cd {folder}")

    def run(self, text, seconds=60):
        """Exit code, and the lines that were written."""
        self.process.stdin.write(text + f"\nprintf '{self.MARK}%s{self.MARK}' $?\n")
        self.process.stdin.flush()
        written, end = "", time.monotonic() + seconds
        while written.count(self.MARK) < 2:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text}: not within {seconds} s:\n{written}")
            written += os.read(self.terminal, 65536).decode(errors="replace")
        before, code, _ = written.split(self.MARK)
        # What a line of progress leaves when it is erased.
        lines = before.replace("\r\n", "\n").split("\n")
        return int(code), [line.split("\r\x1b[K")[-1] for line in lines[: len(lines) - (not lines[-1] or "\x1b[K" in lines[-1])]]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        os.close(self.terminal)


class Network:
    """A place for namespaces with names: they, and all processes in it, end with it. Nothing of it is seen outside."""

    LINE = "mount -t tmpfs tmpfs /run && mkdir /run/netns && mount -t sysfs sysfs /sys && ip link set lo up && echo ready && exec sleep 3600"

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", self.LINE],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise AssertionError(self.holder.stderr.read())
        with open(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children") as children:
            self.pid = children.read().split()[0]

    def prefix(self, namespace=None):
        inside = ["nsenter", "-t", self.pid, "--net", "--mount", "--pid"]
        return inside + (["ip", "netns", "exec", namespace] if namespace else [])

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()
