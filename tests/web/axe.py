# SPDX-License-Identifier: Apache-2.0
"""axe-core in the browser: rules of accessibility, by people who know them better than we do.

It is one file of an npm package, which is fetched from the registry (the sum is checked) and kept beside the build. Nothing of it
is part of oneway.
"""
import base64
import hashlib
import io
import os
import pathlib
import tarfile
import tempfile
import urllib.request

PACKAGE = "https://registry.npmjs.org/axe-core/-/axe-core-4.10.3.tgz"
SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
RUN = """
const found = await axe.run(document, {resultTypes: ['violations'], preload: false});
return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${v.help}: ${n.html.slice(0, 120)}`));
"""


class Unavailable(Exception):
    pass


def source():
    """The text of axe.min.js."""
    kept = pathlib.Path(os.environ.get("AXE_FOLDER", tempfile.gettempdir()), "axe-core-4.10.3.tgz")
    data = kept.read_bytes() if kept.exists() else b""
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != SHA512:
        try:
            with urllib.request.urlopen(PACKAGE, timeout=20) as answer:
                data = answer.read()
        except OSError as error:
            raise Unavailable(f"{PACKAGE}: {error}") from None
        if base64.b64encode(hashlib.sha512(data).digest()).decode() != SHA512:
            raise Unavailable(f"{PACKAGE}: not the file that we know")
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
            file.write(data)
        os.replace(file.name, kept)
    with tarfile.open(fileobj=io.BytesIO(data)) as package:
        return package.extractfile("package/axe.min.js").read().decode()


def findings(browser, text):
    """Runs it on what is shown."""
    browser.run("if (!window.axe) { " + text + "\n window.axe = axe; }")
    return browser.run(RUN)
