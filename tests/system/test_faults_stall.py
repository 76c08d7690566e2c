# SPDX-License-Identifier: Apache-2.0
"""Processes that are stopped or starved, rings that are full: intervals suffer, and say so; no packet of them is lost."""
import multiprocessing
import os
import signal
import time
import unittest

import faults

STOP_S = 5


def spin(until, processor):
    os.sched_setaffinity(0, {processor})
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
        """A point that hardly gets the processor: it has to share one, and is served last. All others go on."""
        processor = min(os.sched_getaffinity(0))
        self.build(seed=33)
        self.begin("paris")
        self.begin("london", prefix=["taskset", "--cpu-list", str(processor), "chrt", "--idle", "0"])
        self.agreed()
        time.sleep(1)
        spinner = multiprocessing.Process(target=spin, args=(time.monotonic() + 2, processor))
        spinner.start()
        spinner.join()
        time.sleep(1)
        stores = self.end()
        self.show("london starved for 2 s", stores)


if __name__ == "__main__":
    faults.main()
