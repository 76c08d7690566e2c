# SPDX-License-Identifier: Apache-2.0
"""Two points that record flows of the same packets copy each other's epochs while they run."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import command
import points
import test_point_live as live

FLOWS = "flows: [{{file: {file}, heading: {heading}, peer: {peer}, interval: 500ms, counters: 60, filter: udp port 7000, seed: {seed}{rest}}}]\n"


class Copies(points.Case):
    def setUp(self):
        super().setUp()
        self.far = live.Far()
        self.addCleanup(self.far.close)
        self.keys("psk")

    def config(self, name, file, heading, peer, listen, interface, more, seed=1):
        text = live.CONFIG.format(name=name, listen=listen, interface=interface, peer=peer, more=more)
        rest = f", from: {file}.{peer}" if heading == "in" else ""
        return self.write(name + ".yaml", text + FLOWS.format(file=file, heading=heading, peer=peer, seed=seed, rest=rest))

    def start_paris(self, seed=1):
        config = self.config("paris", "in.epochs", "in", "london", "listen: 10.9.0.2:8620\n", "far", "facing: peer", seed)
        paris = points.Point(config, prefix=self.far.enter())
        self.points.append(paris)
        paris.wait_for("listening on")
        return paris

    def start_london(self):
        return self.start(self.config("london", "out.epochs", "out", "paris", "", "near", "connect: 10.9.0.2:8620"))

    @staticmethod
    def send(seconds):
        subprocess.run([sys.executable, "-c", live.SENDER, "10.9.0.2", "7000", str(1000 * seconds), "1000"], check=True, timeout=60)

    def epochs(self, file):
        done = command.oneway("flows", "list", self.path(file), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(e["begin_ns"], e["end_ns"], e["packets"]) for e in json.loads(done.stdout)["epochs"]]

    def wait_for_epochs(self, file, count):
        end = time.monotonic() + points.PATIENCE
        while len(self.epochs(file)) < count:
            self.assertLess(time.monotonic(), end, file)
            time.sleep(0.2)

    def test_copied(self):
        """Each point has the other's epochs while both run, also of the time in which one was dead."""
        paris, london = self.start_paris(), self.start_london()
        london.wait_for("out.epochs.paris gets the epochs of paris")
        paris.wait_for("in.epochs.london gets the epochs of london")
        self.send(2)
        self.wait_for_epochs("out.epochs.paris", 2)
        self.wait_for_epochs("in.epochs.london", 2)
        paris.stop(signal.SIGKILL)
        self.send(1)
        paris = self.start_paris()
        paris.wait_for("in.epochs.london gets the epochs of london")
        self.send(1)
        sent = 4000
        self.wait_for_epochs("in.epochs.london", len(self.epochs("out.epochs")))
        self.wait_for_epochs("out.epochs.paris", len(self.epochs("in.epochs")))
        # While both run.
        done = command.oneway("flows", "query", "--from", self.path("out.epochs"), "--to", self.path("out.epochs.paris"), "--worst", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        flows = answer["flows"]
        # What was sent while paris was dead is not called lost without a word.
        self.assertTrue(any("out.epochs.paris has no epoch: if it did not record then" in w for w in answer["warnings"]), answer["warnings"])
        self.assertTrue(any(f["flow"]["dst"] == "10.9.0.2" and f["packets"] > 1000 and f["mean_ns"] > 0 for f in flows), flows)
        # If the epochs of an interval come too late, its flows are not known, which is said; the next interval is another one.
        end = time.monotonic() + points.PATIENCE
        while "10.9.0.2:7000 udp was certainly the slowest flow" not in paris.log:
            self.assertLess(time.monotonic(), end, paris.log)
            self.send(1)
            sent += 1000
            paris.read_log(0.1)
        london.stop()
        london.end()
        paris.stop()
        paris.end()
        for copy, file in (("in.epochs.london", "out.epochs"), ("out.epochs.paris", "in.epochs")):
            self.assertEqual(self.epochs(copy), self.epochs(file)[:len(self.epochs(copy))])
        self.assertEqual(sum(e[2] for e in self.epochs("out.epochs")), sent)

    def test_refused(self):
        """Recordings that cannot be compared, and a file that begins with other epochs, are named and not copied."""
        paris, london = self.start_paris(seed=2), self.start_london()
        london.wait_for("out.epochs.paris gets no epochs of paris: it does not record the same packets in the same way")
        paris.stop()
        paris.end()
        os.remove(self.path("in.epochs"))
        os.remove(self.path("in.epochs.london"))
        paris = self.start_paris()
        paris.wait_for("in.epochs.london gets the epochs of london")
        self.send(1)
        self.wait_for_epochs("in.epochs.london", 1)
        london.stop()
        london.end()
        os.remove(self.path("out.epochs"))
        self.start_london()
        paris.wait_for("in.epochs.london gets no epochs of london: its file begins with other epochs")


if __name__ == "__main__":
    if not live.permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        # In a namespace of our own from here on.
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main()
