# SPDX-License-Identifier: Apache-2.0
"""Faults that are known and not repaired yet. The table must only shrink.

(kinds of faults, perturbations that the case has, options of the command, reason). A verdict is known if its perturbations and
options include those of a row and all its faults are of the row's kinds. ANY stands for all kinds.
"""
ANY = None
IDENTICAL = {"ambiguous: minimum", "ambiguous: maximum", "ambiguous: mean", "ambiguous: quantile", "sum of minima"}

KNOWN = [
    (IDENTICAL, set(), [], "identical packets are left out of the delays as ambiguous, and nothing bounds what that hides"),
    ({"false loss", "false extra", "false duplicates"} | IDENTICAL, {"hole"}, [], "a short hole with few packets counts as loss"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"late"}, [], "a copy from before the other capture started counts as a duplicate"),
    ({"false extra", "false duplicates"} | IDENTICAL, {"early"}, [], "a copy from after the other capture's end counts as a duplicate"),
    ({"false loss", "false extra", "missing match", "mean"} | IDENTICAL, {"mirror"}, [], "a mirror port that repeats only some packets makes the copies count as lost"),
    ({"quantile", "maximum", "minimum"} | IDENTICAL, {"reordering"}, [], "identical packets in another order are paired n-th with n-th and not ambiguous"),
    (ANY, {"fragments"}, [], "packets that are up to 7 bytes longer than the longest fragment are counted in pieces, also where nobody cut them"),
    (ANY, {"strip_options", "superframes"}, [], "superframes cannot be cut where TCP's options are taken away"),
    (ANY, {"strip_options", "tunnel"}, [], "TCP in a tunnel whose options are taken away"),
    ({"false loss", "false extra"} | IDENTICAL, {"bufferbloat"}, [], "packets that are in flight for seconds when a capture ends count as lost"),
    (ANY, {"route_change"}, ["--offset", "auto"], "a change of the route is taken for a drift of the clocks"),
    (ANY, {"new_ident"}, [], "packets that only the IPv4 identification told apart are paired wrongly"),
    (ANY, {"new_numbers"}, [], "packets that only TCP's numbers told apart are paired wrongly"),
    (ANY, {"nat", "reordering"}, [], "identical packets at level nat"),
    (ANY, {"around", "nat"}, [], "flows of which one direction takes another way: both directions are taken for the other"),
    (ANY, {"spikes"}, [], "identical packets that take longer than a few periods count as lost and as duplicates"),
    (ANY, {"outage"}, [], "a copy that was sent when one capture was over is paired with one that was lost"),
    (ANY, {"duplicates", "loss"}, [], "duplicates of identical packets are matched with others that were lost"),
    ({"missed counted as lost", "mean"}, {"drops"}, [], "few packets that a capture dropped give no warning"),
]
