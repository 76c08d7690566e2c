# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium through chromedriver: the WebDriver protocol over HTTP, with Python's own library only.

    with Browser() as browser:
        browser.open("http://127.0.0.1:8080/")
        browser.run("return document.title")
"""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name of a reference to an element, from the standard
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
    "Home": "\ue011", "End": "\ue010", "Shift": "\ue008", "Space": " ",
}


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self, width=1280, height=900, dark=False, start_timeout=30):
        self.folder = tempfile.mkdtemp(prefix="oneway-browser-")
        self.log = open(os.path.join(self.folder, "driver.log"), "w+", encoding="utf-8")
        self.session = None
        # chromedriver and the browsers that it starts are one process group, which ends with us.
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "HOME": self.folder, "TMPDIR": self.folder})
        try:
            self.address = f"http://127.0.0.1:{self._port(start_timeout)}"
            self._start(width, height, dark)
        except BaseException:
            self.close()
            raise

    def _port(self, timeout):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            with open(self.log.name, encoding="utf-8") as log:
                found = re.search(r"started successfully on port (\d+)", log.read())
            if found:
                return int(found.group(1))
            if self.driver.poll() is not None:
                break
            time.sleep(0.05)
        raise BrowserError("chromedriver did not start")

    def _start(self, width, height, dark):
        # Without the windows of a whole browser, pages take two thirds of the processor time.
        binary = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-extensions", "--force-device-scale-factor=1", "--lang=en-US",
                     f"--window-size={width},{height}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses to start as root otherwise
        if dark:
            arguments.append("--force-dark-mode")
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "acceptInsecureCerts": True, "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": arguments, "binary": binary}}}}, timeout=60)
        self.session = answer["sessionId"]
        self.call("POST", "/timeouts", {"script": 120000})  # ms: axe-core on a loaded machine

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session:
            try:
                self._call("DELETE", f"/session/{self.session}")
            except (OSError, BrowserError):
                pass
            self.session = None
        try:
            os.killpg(self.driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.driver.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, method, path, body=None, timeout=60):
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.address + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise BrowserError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def call(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body, timeout=150)

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value of a script's `return`; it may await."""
        wrapped = "const done = arguments[arguments.length - 1], args = [...arguments].slice(0, -1);" \
                  "(async function () {" + script + "}).apply(null, args)" \
                  ".then(v => done({v}), e => done({e: String(e && e.stack || e)}));"
        answer = self.call("POST", "/execute/async", {"script": wrapped, "args": list(arguments)})
        if "e" in answer:
            raise BrowserError(answer["e"])
        return answer.get("v")

    def wait(self, condition, what=None, timeout=20):
        """Waits until the expression is true, and returns its value."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            value = self.run(f"return ({condition})")
            if value:
                return value
            time.sleep(0.02)
        raise BrowserError(f"{what or condition}: not within {timeout} s")

    def cdp(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def viewport(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features):
        """media(prefers_color_scheme="dark"), media(type="print")"""
        kind = features.pop("type", "")
        self.cdp("Emulation.setEmulatedMedia", media=kind,
                 features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def keys(self, *names):
        """Presses keys one after the other; "Shift+Tab" holds one."""
        actions = []
        for name in names:
            parts = [KEYS.get(part, part) for part in (name.split("+") if len(name) > 1 else [name])]
            actions += [{"type": "keyDown", "value": key} for key in parts]
            actions += [{"type": "keyUp", "value": key} for key in reversed(parts)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def pointer(self, *moves):
        """Moves: (x, y) of the viewport, "down", "up"."""
        actions = []
        for move in moves:
            if move in ("down", "up"):
                actions.append({"type": "pointer" + move.capitalize(), "button": 0})
            else:
                actions.append({"type": "pointerMove", "duration": 0, "x": int(move[0]), "y": int(move[1]), "origin": "viewport"})
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def click(self, selector):
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.call("POST", f"/element/{element}/click")

    def back(self):
        self.call("POST", "/back")

    def forward(self):
        self.call("POST", "/forward")

    def console(self):
        """What the console got since the last call: warnings and errors, of scripts, the network and security."""
        return [entry for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] in ("WARNING", "SEVERE")]

    def screenshot(self, path, whole=False):
        """The viewport, or with `whole` the page in its full height."""
        parameters = {"format": "png"}
        if whole:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            parameters.update(captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        data = self.cdp("Page.captureScreenshot", **parameters)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pdf(self, path):
        data = self.call("POST", "/print", {"background": True})
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
