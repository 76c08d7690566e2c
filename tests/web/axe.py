# SPDX-License-Identifier: Apache-2.0
"""axe-core in the browser: rules of accessibility, by people who know them better than we do."""
import npm

PACKAGE = "axe-core/-/axe-core-4.10.3.tgz"
SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
# What stands in a long row has no findings of its own after the first.
RUN = """
const repeated = ['tr', 'g', 'a', 'circle', 'path', 'text'].map((name) => [`${name}:nth-of-type(n + 25)`]);
const found = await axe.run({exclude: repeated}, {resultTypes: ['violations'], preload: false, ...args[0]});
return found.violations.flatMap((v) => v.nodes.map((n) => `${v.id} (${v.impact}): ${v.help}: ${n.html.slice(0, 120)}`));
"""
Unavailable = npm.Unavailable


def source():
    """The text of axe.min.js."""
    return npm.text(PACKAGE, SHA512, "axe.min.js")


def findings(browser, text, colours_only=False):
    """Runs it on what is shown; colours_only: of which all but the colours was looked at before."""
    browser.run("if (!window.axe) { " + text + "\n window.axe = axe; }")
    return browser.run(RUN, {"runOnly": ["color-contrast"]} if colours_only else {})
