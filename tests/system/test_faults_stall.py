# SPDX-License-Identifier: Apache-2.0
"""Processes that are stopped or starved, rings that are full: intervals suffer, and say so; no packet of them is lost."""
import multiprocessing
import os
import signal
import time
import unittest

import faults

STOP_S = 5


def spin(until):
    os.nice(-20)
    while time.monotonic() < until:
        pass


class Stall(faults.Case):
    interval_ms = 200
    wait_ms = 400

    def stop_each(self, seconds):
        for name in ("london", "paris"):
            self.signal(name, signal.SIGSTOP)
            time.sleep(seconds)
            self.signal(name, signal.SIGCONT)
            time.sleep(1.2)

    @unittest.skipUnless(faults.LONG, "make faults")
    def test_stopped(self):
        """For longer than the ring lasts: whatever its size, the kernel hands a block over every 5 ms."""
        self.build(seed=31)
        self.begin_both()
        time.sleep(1)
        self.stop_each(STOP_S)
        stores = self.end()
        self.show(f"each point stopped for {STOP_S} s", stores)
        self.assert_recovered(stores)

    def test_full_ring(self):
        """The ring is too small for that: its drops are told and are not loss."""
        self.ring = "1MiB"
        self.build(rate=4000, seed=32)
        self.begin_both()
        time.sleep(1)
        self.stop_each(1)
        stores = self.end()
        self.show("each point stopped for 1 s with a ring of 1 MiB", stores)
        self.assert_recovered(stores)
        causes = " ".join(r.cause or "" for store in stores.values() for rows in store.lanes.values() for r in rows)
        self.assertRegex(causes, r"missed \d+ frames \(ring full\)")

    def test_starved(self):
        """A point that hardly gets the processor."""
        self.build(seed=33)
        self.begin("paris")
        self.begin("london", prefix=["nice", "-n", "19"])
        self.agreed()
        time.sleep(1)
        until = time.monotonic() + 2
        spinners = [multiprocessing.Process(target=spin, args=(until,)) for _ in range(os.cpu_count())]
        for s in spinners:
            s.start()
        for s in spinners:
            s.join()
        time.sleep(1)
        stores = self.end()
        self.show("london starved for 2 s", stores)


if __name__ == "__main__":
    faults.main()
