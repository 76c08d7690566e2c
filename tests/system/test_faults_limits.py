# SPDX-License-Identifier: Apache-2.0
"""Little memory at full load, and a disk of 1 MB: the measurement goes on, says what it lacks, and recovers."""
import os
import subprocess
import time

import command
import faults

SECONDS = 20 if faults.LONG else 3


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int([line.split()[1] for line in f if line.startswith("VmHWM")][0])


class Memory(faults.Case):
    interval_ms = 1000
    wait_ms = 1000
    memory = "16MiB"
    wire_prefix = ()  # its load is to leave something for the points

    def test_full_load(self):
        """As many packets as this machine makes: sampled, within the budget, nothing lost but what the wire dropped."""
        self.build(seed=41)
        self.begin_both()
        time.sleep(1.5)
        before = {name: peak_kib(point.process.pid) for name, point in self.at.items()}
        for name in faults.HOST:
            self.net.send(name, 200000, kind=0)
        self.rate = 200000
        time.sleep(SECONDS)
        for name in faults.HOST:
            self.net.send(name, 0, kind=0)
        time.sleep(1)
        after = {name: peak_kib(point.process.pid) for name, point in self.at.items()}
        stores = self.end()
        self.show(f"{SECONDS} s at full load with 16 MiB", stores)
        for name in faults.HOST:
            grown = (after[name] - before[name]) / 1024
            most = max(r.total_sent or 0 for rows in stores[name].lanes.values() for r in rows)
            shift = max(r.sample_shift for rows in stores[name].lanes.values() for r in rows)
            print(f"    {name}: at most {most} packets a second sent, one in {2**shift} kept, memory grew by {grown:.1f} MiB", flush=True)
            if "asan" not in command.PROGRAM:
                # Chunks on their way to the books, synopses and results are beyond the budget.
                self.assertLess(grown, 2 * 16, name)


class Disk(faults.Case):
    def test_small(self):
        """paris has a disk of 1 MB that somebody fills for a while."""
        disk = self.path("disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "--lazy", disk], check=False)
        self.build(seed=42)
        self.configure("paris", store="disk/paris.db")
        os.symlink("disk/paris.db", self.path("paris.db"))
        self.begin_both()
        time.sleep(1.5)
        with open(os.path.join(disk, "ballast"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        paris = self.at["paris"]
        paris.wait_for("no space left; results wait in memory")
        time.sleep(1)
        os.unlink(os.path.join(disk, "ballast"))
        paris.wait_for("written again after")
        # And then for longer than the log of the store would fit.
        time.sleep(30 if faults.LONG else 6)
        stores = self.end()
        self.show("a disk of 1 MB, full for 1 s", stores)
        self.assert_recovered(stores)
        lost = [r for rows in stores["paris"].lanes.values() for r in rows if r.cause == "the result could not be stored"]
        self.assertEqual(len(lost), stores["paris"].not_stored)


if __name__ == "__main__":
    faults.main()
