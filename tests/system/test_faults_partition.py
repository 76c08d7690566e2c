# SPDX-License-Identifier: Apache-2.0
"""Partitions: of the points' own connection, one way and both ways, and of everything. What memory holds is compared when the
connection is back; what was lost on the wire is loss, and nothing else is."""
import sqlite3
import time
import unittest

import faults


class Partition(faults.Case):
    def test_connection(self):
        """Each way for itself, then both, a second each: no interval suffers."""
        self.build(seed=21)
        self.begin_both()
        time.sleep(1)
        for names in (["london"], ["paris"], ["london", "paris"]):
            for name in names:
                self.net.mute(name)
            time.sleep(1)
            for name in names:
                self.net.heal(name)
            time.sleep(1)
        stores = self.recovered()
        self.show("partitions of the connection, 3 of 1 s", stores)
        self.assert_all_measured(stores)

    def test_everything(self):
        """Also of the traffic: what the wire dropped is lost, to the packet."""
        self.build(seed=22)
        self.begin_both()
        time.sleep(1)
        for name in faults.HOST:
            self.net.mute(name)
        self.net.cut("london", "paris")
        time.sleep(1)
        self.net.cut()
        for name in faults.HOST:
            self.net.heal(name)
        time.sleep(1)
        stores = self.recovered()
        self.show("a partition of everything, 1 s", stores)
        self.assert_all_measured(stores)
        for store in stores.values():
            for sender, rows in store.lanes.items():
                self.assertGreater(self.dropped(sender), 0)
                self.assertEqual(sum(r.lost for r in rows if r.lost), self.dropped(sender))

    @unittest.skipUnless(faults.LONG, "make faults")
    def test_minute(self):
        """A minute, that is 600 intervals, within the memory: measured. The same with less memory: what it holds."""
        self.minute("64MiB", 23)
        stores = self.recovered()
        self.show("a minute without connection, 64 MiB", stores)
        self.assert_all_measured(stores)

    @unittest.skipUnless(faults.LONG, "make faults")
    def test_minute_beyond_memory(self):
        self.minute("8MiB", 24)
        stores = self.recovered()
        self.show("a minute without connection, 8 MiB", stores)
        self.assert_recovered(stores)
        for store in stores.values():
            for rows in store.lanes.values():
                unknown = [r for r in rows if r.status == "unknown"]
                self.assertTrue(100 < len(unknown) < 590, len(unknown))
                for r in unknown:
                    self.assertRegex(r.cause, "for longer than memory lasts|did not answer while|not compared, too long ago|no packets of this")

    def minute(self, memory, seed):
        self.memory = memory
        self.build(seed=seed)
        self.begin_both()
        time.sleep(1)
        for name in faults.HOST:
            self.net.mute(name)
        time.sleep(60)
        for name in faults.HOST:
            self.net.heal(name)

    def recovered(self):
        """The connection may have been given up: it comes back by itself. Until what waited is compared."""
        end = time.monotonic() + 40
        while time.monotonic() < end:
            time.sleep(1)
            ages = [time.time_ns() - self.newest(name) for name in faults.HOST]
            if max(ages) < (self.wait_ms + 8 * self.interval_ms) * faults.MS:
                return self.end()
        raise AssertionError("no results any more\n" + self.at["london"].log)

    def newest(self, name):
        """The start of the newest interval that is final and measured."""
        db = sqlite3.connect(self.path(name + ".db"))
        try:
            return min(row[0] for row in db.execute("SELECT max(start_ns) FROM result WHERE final AND status = 'measured' GROUP BY lane"))
        finally:
            db.close()


if __name__ == "__main__":
    faults.main()
