# SPDX-License-Identifier: Apache-2.0
"""A peer that comes back with other parameters or another key: refused by name, never compared with."""
import time

import command
import faults


class Peer(faults.Case):
    def again(self, segment=None, psk="lab.psk"):
        """paris is killed and comes back with another configuration."""
        self.configure("paris", segment=segment, psk=psk)
        self.kill("paris")
        self.begin("paris")

    def test_other_parameters(self):
        self.build(seed=51)
        done = command.oneway("point", "keygen", "--psk", self.path("other.psk"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.begin_both()
        time.sleep(1)
        london = self.at["london"]
        for segment, why in (("interval: 200ms", "interval is 200 ms here and 100 ms there"), ("method: rda", "method is rda here and fold there")):
            self.again(segment)
            london.wait_for(why)
            self.at["paris"].wait_for(why)
            time.sleep(0.5)
        self.again(psk="other.psk")
        london.wait_for("paris: cannot connect: .*(key|psk|PSK|alert)")
        agreements = london.log.count("agreed on")
        self.assertEqual(agreements, 2, london.log)
        self.again()
        london.wait_for("agreed on", 4)
        time.sleep(2)
        stores = self.end()
        self.show("a peer with another interval, method, key, and as before", stores)
        self.assert_recovered(stores)
        for store in stores.values():
            for rows in store.lanes.values():
                self.assertEqual({r.length for r in rows}, {self.interval_ms * faults.MS})


if __name__ == "__main__":
    faults.main()
