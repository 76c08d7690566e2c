# SPDX-License-Identifier: Apache-2.0
"""Faults that are known and not repaired yet. The table must only shrink.

(kinds of faults, perturbations that the case has, options of the command, reason). A verdict is known if its perturbations and
options include those of a row and all its faults are of the row's kinds. ANY stands for all kinds.
"""
ANY = None
IDENTICAL = {"ambiguous: minimum", "ambiguous: maximum", "ambiguous: mean", "ambiguous: quantile", "sum of minima"}

KNOWN = [
    (IDENTICAL, set(), [], "identical packets are left out of the delays as ambiguous, and nothing bounds what that hides"),
    (ANY, {"concatenated"}, [], "the header of a second file is read as a packet"),
    ({"false loss", "false extra"} | IDENTICAL, {"hole"}, [], "time in which a capture shows nothing counts as loss"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"late"}, [], "a copy from before the other capture started counts as a duplicate"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"early"}, [], "a copy from after the other capture's end counts as a duplicate"),
    ({"false loss", "missing match", "mean"} | IDENTICAL, {"mirror"}, [], "a mirror port that repeats only some packets makes the copies count as lost"),
    ({"quantile", "maximum", "minimum"} | IDENTICAL, {"reordering"}, [], "identical packets in another order are paired n-th with n-th and not ambiguous"),
    ({"false loss", "missing match"}, {"fragments"}, [], "packets that are cut on the way are not found among other fragments or where many are missing"),
    ({"false loss"}, {"bufferbloat"}, [], "delays beyond the waiting time of 2 s count as loss"),
    (ANY, {"disorder", "route_change"}, ["--offset", "auto"], "a change of the route is taken for a drift of the clocks"),
    (ANY, {"new_ident"}, [], "packets that only the IPv4 identification told apart are paired wrongly"),
    (ANY, {"clamp", "nat", "reordering"}, [], "identical packets at level nat"),
]
