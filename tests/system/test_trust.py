# SPDX-License-Identifier: Apache-2.0
"""What changes while two points are connected: another CA, a certificate that expires, a class with another name."""
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import command
import points
import test_point_live

CONFIG = """point: {name}
certificate: {name}.pem
key: {name}.key
ca: {ca}
metrics: 127.0.0.1:9620
{listen}interfaces: [{{name: {interface}}}]
segments:
  - {{name: x, peer: {peer}{more}}}
"""
CLASSES = ", connect: '10.9.0.2:8620', interval: 100ms, wait: 200ms, classes: [{{name: {name}, filter: udp port 7000}}, {{name: same, filter: udp port 7001}}]"
# openssl ca: the only command of OpenSSL 3.0 that signs until a given second.
AUTHORITY = """[ca]
default_ca = here
[here]
new_certs_dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
default_md = sha256
policy = names
copy_extensions = copy
x509_extensions = uses
private_key = {folder}/ca.key
certificate = {folder}/ca.pem
[names]
commonName = supplied
[uses]
extendedKeyUsage = serverAuth,clientAuth
"""


class Trust(test_point_live.Live):
    def pair(self, name="web"):
        done = command.oneway("point", "keygen", "--folder", self.folder, "london", "paris")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write("paris.yaml", CONFIG.format(name="paris", ca="ca.pem", listen="listen: 10.9.0.2:8620\n", interface="far", peer="london", more=""))
        self.name_class(name)

    def run_pair(self):
        paris = points.Point(self.path("paris.yaml"), prefix=self.far.enter())
        self.points.append(paris)
        paris.wait_for("listening on")
        london = self.start(self.path("london.yaml"))
        london.wait_for("agreed on", 4)
        paris.wait_for("agreed on", 4)
        return london, paris

    def name_class(self, name):
        self.write("london.yaml", CONFIG.format(name="london", ca="ca.pem", listen="", interface="near", peer="paris", more=CLASSES.format(name=name)))

    def read_again(self, point):
        point.process.send_signal(signal.SIGHUP)
        point.wait_for("was read again")

    def test_renamed_class(self):
        """The point that does not name the classes reports the old name as unknown until it knows better, not for ever."""
        self.pair()
        london, paris = self.run_pair()
        time.sleep(1)
        self.name_class("www")
        self.read_again(london)
        paris.wait_for("agreed on x/www", 2)
        agreed = time.time_ns()
        time.sleep(14)
        for p in (london, paris):
            p.stop()
        results, _ = paris.end()
        london.end()
        last = {name: max((r["start_ns"] for r in results if r["class"] == name), default=0) for name in ("web", "www", "same")}
        self.assertLess(last["web"], agreed + 12.5e9)
        self.assertGreater(last["www"], agreed + 12.5e9)
        self.assertGreater(last["same"], agreed + 12.5e9)

    def test_another_ca(self):
        """A peer that the new CA does not vouch for is shut out at once, with the reason in both logs, and let in with a new certificate."""
        self.pair()
        london, paris = self.run_pair()
        done = command.oneway("point", "keygen", "--folder", self.path("new"), "london", "paris")
        self.assertEqual(done.returncode, 0, done.stderr)
        for suffix in ("pem", "key"):
            shutil.copy(self.path(f"new/paris.{suffix}"), self.path(f"paris.{suffix}"))
        # Each point has a CA of its own until both are changed.
        shutil.copy(self.path("ca.pem"), self.path("old.pem"))
        shutil.copy(self.path("new/ca.pem"), self.path("ca.pem"))
        self.read_again(paris)
        paris.wait_for(r"london: connection ended: the peer's certificate \('london'\) is not signed by this point's CA")
        london.wait_for("paris: has left: the peer's certificate")
        london.wait_for("paris: cannot connect: ")
        time.sleep(1)  # some intervals that are unknown
        for suffix in ("pem", "key"):
            shutil.copy(self.path(f"new/london.{suffix}"), self.path(f"london.{suffix}"))
        self.read_again(london)
        paris.wait_for("agreed on", 8)
        london.stop()
        results, _ = london.end()
        paris.stop()
        paris.end()
        self.assertEqual((london.code, paris.code), (0, 0))
        causes = {r["cause"] for r in results if r["status"] == "unknown"}
        self.assertTrue(any("certificate" in cause for cause in causes), causes)

    def sign(self, name, seconds):
        """Another certificate for the key, valid for so long."""
        self.write("ca.cnf", AUTHORITY.format(folder=self.folder))
        self.write("index.txt", "")
        self.write("serial", "1000\n")
        end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
        for words in (
            ("req", "-new", "-key", self.path(f"{name}.key"), "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-out", self.path("csr")),
            ("ca", "-batch", "-notext", "-config", self.path("ca.cnf"), "-in", self.path("csr"), "-out", self.path(f"{name}.pem"), "-enddate", end),
        ):
            done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_expired(self):
        """A certificate that expires ends the connection; its owner has said so before."""
        self.pair()
        self.sign("london", 8)
        london, paris = self.run_pair()
        london.wait_for("the certificate of this point expires in 0 h")
        code = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9620/metrics', timeout=20).read().decode())"
        page = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
        self.assertRegex(page, r"\noneway_certificate_expiry_timestamp_seconds \d{10}\n")
        paris.wait_for(r"london: connection ended: the peer's certificate \('london'\) has expired")
        london.wait_for("error: the certificate of this point has expired: peers refuse it")
        for p in (london, paris):
            p.stop()
            p.end()


if __name__ == "__main__":
    if not test_point_live.permitted():
        print("network namespaces with veth are not permitted here, not tested")
        sys.exit(77)
    if os.environ.get("OW_INSIDE") != "1":
        os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], {**os.environ, "OW_INSIDE": "1"})
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Trust.test_renamed_class", "Trust.test_another_ca", "Trust.test_expired"])])
