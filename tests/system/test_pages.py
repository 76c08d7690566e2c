# SPDX-License-Identifier: Apache-2.0
"""Commands of pages of docs/ print what the page has, with the files that the page makes, or those of docs/examples."""
import os
import pathlib
import shutil
import unittest

import pages
from command import PROGRAM, Case

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Pages(Case):
    def run_sections(self, name, count, sections=None):
        """As many commands in these sections (all of the page), in a folder that looks like a clone."""
        shutil.copytree(ROOT / "docs" / "examples", self.path("docs/examples"))
        os.mkdir(self.path("bin"))
        os.symlink(os.path.abspath(PROGRAM), self.path("bin/oneway"))
        shell = pages.Shell(self.folder, {"PATH": self.path("bin") + ":" + os.environ["PATH"]})
        self.addCleanup(shell.close)
        steps = [step for title, section in pages.read(ROOT / "docs" / name).items() if not sections or title in sections for step in section]
        self.assertEqual(len(steps), count)
        for step in steps:
            printed = shell.run(step.command)[1]
            self.assertIsNotNone(pages.align(step.output, printed, str.rstrip), step.command + "\n" + "\n".join(printed))

    def test_plane(self):
        self.run_sections("plane.md", 5)

    def test_match(self):
        self.run_sections("match.md", 4, ("", "Paths of several points"))


if __name__ == "__main__":
    unittest.main()
