# SPDX-License-Identifier: Apache-2.0
"""axe-core in the browser: rules of accessibility, by people who know them better than we do."""
import npm

PACKAGE = "axe-core/-/axe-core-4.10.3.tgz"
SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
RUN = """
const found = await axe.run(document, {resultTypes: ['violations'], preload: false});
return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${v.help}: ${n.html.slice(0, 120)}`));
"""
Unavailable = npm.Unavailable


def source():
    """The text of axe.min.js."""
    return npm.text(PACKAGE, SHA512, "axe.min.js")


def findings(browser, text):
    """Runs it on what is shown."""
    browser.run("if (!window.axe) { " + text + "\n window.axe = axe; }")
    return browser.run(RUN)
