# SPDX-License-Identifier: Apache-2.0
"""Faults that are known and not repaired yet. They are wrong without a word like any other; the table must only shrink.

(kinds of faults, perturbations that the case has, options of the command, reason). A verdict is known if its perturbations and
options include those of a row and all its faults are of the row's kinds.
"""
IDENTICAL = {"ambiguous: minimum", "ambiguous: maximum", "ambiguous: mean", "ambiguous: quantile", "sum of minima"}
UNMATCHED = {"false loss", "missing match", "false extra", "false duplicates"}

KNOWN = [
    ({"quantile", "maximum", "minimum"} | IDENTICAL, {"reordering"}, [], "identical packets in another order are paired n-th with n-th and not ambiguous"),
    ({"hidden loss", "false match"} | IDENTICAL, {"duplicates", "loss"}, [], "duplicates of identical packets are matched with others that were lost"),
]
