# SPDX-License-Identifier: Apache-2.0
"""Six routers with FRR's OSPF in namespaces without names: figure 7 of the MPLANE paper, with cables that can be made slow."""
import json
import os
import shutil
import subprocess
import tempfile
import time

import router

FRR = "/usr/lib/frr"
ROUTERS = "ABCDEF"
# The figure's costs are not in the text; these lead to the m-sets of figure 8.
LINKS = [("A", "B", 3), ("A", "F", 2), ("B", "F", 2), ("F", "C", 2), ("C", "D", 3), ("F", "E", 4), ("E", "D", 1), ("C", "E", 3)]
PATIENCE = 90


def router_id(name):
    return f"10.255.0.{ROUTERS.index(name) + 1}"


def address(of, towards):
    """The address of a router on its link towards a neighbour."""
    for number, (a, b, _) in enumerate(LINKS, 1):
        if (a, b) == (of, towards):
            return f"10.0.{number}.1"
        if (b, a) == (of, towards):
            return f"10.0.{number}.2"
    raise KeyError((of, towards))


class Network(router.Cabled):
    """A router is a namespace with interfaces toB, toF, ...; all cables end in a namespace of their own."""

    def __init__(self, cables):
        if not os.path.exists(f"{FRR}/ospfd"):
            raise router.Unavailable("frr is not installed")
        self.folder = tempfile.mkdtemp(prefix="oneway-ospf-")
        os.chmod(self.folder, 0o755)
        self.daemons = []
        super().__init__(ROUTERS)
        try:
            self.connect()
            self.plug(cables, [(a, b) for a, b, _ in LINKS], ["nice", "-n", "-15"])
            for a, b, _ in LINKS:
                self.impair(a, b)
                self.impair(b, a)
            for name in ROUTERS:
                self.start_frr(name)
            self.wait_for_routes()
        except subprocess.CalledProcessError as error:
            self.close()
            raise router.Unavailable(f"no routers: {error.stderr.strip()}") from error
        except BaseException:
            self.close()
            raise

    def connect(self):
        for name in self.where:
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            self.run(name, "ip", "link", "set", "lo", "up")
        for name in ROUTERS:
            self.run(name, "ip", "addr", "add", f"{router_id(name)}/32", "dev", "lo")
            self.run(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for a, b, _ in LINKS:
            for near, far in ((a, b), (b, a)):
                pid = str(self.where["cables"].pid)
                self.run(near, "ip", "link", "add", "name", f"to{far}", "type", "veth", "peer", "name", f"{near}{far}", "netns", pid)
                self.run(near, "ip", "addr", "add", f"{address(near, far)}/30", "dev", f"to{far}")
                # What a cable takes in must be what a wire carries: whole checksums, no superframes.
                self.run(near, "ethtool", "-K", f"to{far}", "tx", "off", "gso", "off", "tso", "off")
                self.run(near, "ip", "link", "set", f"to{far}", "up")
                self.run("cables", "ip", "link", "set", f"{near}{far}", "up")

    def impair(self, near, far, delay_us=200, loss=0):
        super().impair(near, far, delay_us, loss)

    def start_frr(self, name):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        config = [f"hostname {name}", "interface lo", " ip ospf area 0"]
        for a, b, cost in LINKS:
            if name in (a, b):
                config += [f"interface to{b if name == a else a}", " ip ospf area 0", f" ip ospf cost {cost}",
                           " ip ospf network point-to-point", " ip ospf hello-interval 1", " ip ospf dead-interval 10"]
        config += ["router ospf", f" ospf router-id {router_id(name)}", " timers throttle spf 0 50 200"]
        with open(f"{folder}/ospfd.conf", "w") as file:
            file.write("\n".join(config) + "\n")
        for path in (folder, f"{folder}/ospfd.conf"):
            shutil.chown(path, "frr", "frr")
        for daemon, conf in (("zebra", "/dev/null"), ("ospfd", f"{folder}/ospfd.conf")):
            self.daemons.append(self.start(
                name, f"{FRR}/{daemon}", "-f", conf, "--vty_socket", folder, "-i", f"{folder}/{daemon}.pid",
                "-z", f"{folder}/zserv.api", "-u", "frr", "-g", "frr", "-A", "127.0.0.1",
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            end = time.monotonic() + PATIENCE
            while not os.path.exists(f"{folder}/{daemon}.vty") and time.monotonic() < end:
                time.sleep(0.05)

    def vtysh(self, name, command):
        return subprocess.run(["vtysh", "--vty_socket", os.path.join(self.folder, name), "-c", command],
                              capture_output=True, text=True, timeout=PATIENCE).stdout

    def socket(self, name):
        return os.path.join(self.folder, name)

    def known_links(self, name):
        """How many links (each from both ends) the router's database has."""
        try:
            areas = json.loads(self.vtysh(name, "show ip ospf database router json"))["routerLinkStates"]["areas"]
        except (ValueError, KeyError):
            return 0
        return sum("neighborRouterId" in link for lsas in areas.values() for lsa in lsas for link in lsa["routerLinks"].values())

    def wait_for_routes(self):
        """Until every router knows every link, and F both of its ways to D."""
        end = time.monotonic() + PATIENCE
        known = {}
        while time.monotonic() < end:
            known = {name: self.known_links(name) for name in ROUTERS}
            if set(known.values()) == {2 * len(LINKS)} and self.run("F", "ip", "route", "show", router_id("D")).count("nexthop") == 2:
                return
            time.sleep(0.3)
        raise AssertionError(f"no routes after {PATIENCE} s; links known: {known}")

    def close(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)
