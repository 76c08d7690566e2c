# SPDX-License-Identifier: Apache-2.0
"""Faults that are known and not repaired yet. They are wrong without a word like any other; the table must only shrink.

(kinds of faults, perturbations that the case has, options of the command, reason). A verdict is known if its perturbations and
options include those of a row and all its faults are of the row's kinds.
"""
IDENTICAL = {"ambiguous: minimum", "ambiguous: maximum", "ambiguous: mean", "ambiguous: quantile", "sum of minima"}
UNMATCHED = {"false loss", "missing match", "false extra", "false duplicates"}

KNOWN = [
    ({"false loss", "false extra", "false duplicates"} | IDENTICAL, {"hole"}, [], "a short hole with few packets counts as loss"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"late"}, [], "a copy from before the other capture started counts as a duplicate"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"early"}, [], "a copy from after the other capture's end counts as a duplicate"),
    ({"false loss", "false extra", "missing match", "mean"} | IDENTICAL, {"mirror"}, [], "a mirror port that repeats only some packets makes the copies count as lost"),
    ({"quantile", "maximum", "minimum"} | IDENTICAL, {"reordering"}, [], "identical packets in another order are paired n-th with n-th and not ambiguous"),
    (UNMATCHED | IDENTICAL, {"bufferbloat"}, [], "packets that are in flight for seconds count as lost when a capture ends, or among fragments"),
    (UNMATCHED | {"missed counted as lost"}, {"spikes"}, [], "identical packets that take longer than a few periods count as lost and as duplicates"),
    ({"hidden loss", "false match", "mean", "quantile", "maximum"}, {"outage"}, [], "a copy that was sent when one capture was over is paired with one that was lost"),
    ({"hidden loss", "false match"} | IDENTICAL, {"duplicates", "loss"}, [], "duplicates of identical packets are matched with others that were lost"),
    ({"missed counted as lost", "mean"}, {"drops"}, [], "few packets that a capture dropped give no warning"),
]
