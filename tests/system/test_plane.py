# SPDX-License-Identifier: Apache-2.0
"""oneway plane as people use it: plan, sets, monitor and why on the network of the paper's figure 7, and what it says of bad input."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

from command import PROGRAM, Case, on_terminal, oneway

# The paper's figure with costs of ours: they lead to its m-sets.
LINKS = {"AB": 3, "AF": 2, "BF": 2, "FC": 2, "CD": 3, "FE": 4, "ED": 1, "CE": 3}
S = 10**9
START = 1794736800 * S  # 2026-11-15 10:00 UTC
# Places on the ways from A to D, over C and over E, and their usual delay.
USUAL = {"A>F": 2e6, "F[A>C]": 50e3, "F[A>E]": 60e3, "F>C": 2e6, "C[F>D]": 40e3, "C>D": 3e6, "F>E>D": 5e6}
STATION = """network: network.intra
m_routers: [C, F]
targets:
  - {from: A, to: D, mean: 8ms, loss: 0.1%}
  - {from: A, to: C}
"""


def network(links=None):
    return "".join(f"{a} {b} {cost}\n{b} {a} {cost}\n" for (a, b), cost in (links or LINKS).items())


def result(place, interval, mean, lost=0, **more):
    """A line as `oneway live --json` and `oneway point --json` print it."""
    start, end = place[place.index("[") + 1 : -1].split(">") if "[" in place else (place[0], place[-1])
    sent = 1000
    return json.dumps(
        {
            "segment": place, "class": "all", "from": start, "to": end, "interval": interval, "start_ns": START + interval * S, "length_ns": S,
            "final": True, "status": "measured", "sent": sent, "received": sent - lost, "matched": sent - lost, "late": 0, "late_received": 0,
            "lost": lost, "pending": 0, "extra": 0, "samples": sent - lost, "loss_ratio": lost / sent, "delay_ns": {"mean": mean, "stddev": mean / 20},
            "ci95": {"mean": [mean * 0.998, mean * 1.002], "stddev": [mean / 21, mean / 19], "loss_ratio": [lost / sent, lost / sent]},
            "clock": {"from": {"synchronised": True, "error_ns": 1000}, "to": {"synchronised": True, "error_ns": 1000}},
            **more,
        }
    )


class Plane(Case):
    def setUp(self):
        super().setUp()
        self.network = self.write("network.intra", network())
        self.station = self.write("station.yaml", STATION)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def results(self, intervals=60, slow=(), lossy=(), since=40, without=(), name="results.jsonl"):
        """Intervals of all places; from `since` on some are slower by 3 ms, or lose 2 %."""
        rng = random.Random(5)
        lines = []
        for i in range(intervals):
            for place, usual in USUAL.items():
                mean = rng.gauss(usual, usual * 0.01) + (3e6 if i >= since and place in slow else 0)
                if place not in without:
                    lines.append(result(place, i, mean, 20 if i >= since and place in lossy else 0))
        return self.write(name, "\n".join(lines) + "\n")

    def run_plane(self, *args, code=0):
        done = oneway("plane", *args, env={"TZ": "UTC"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def fails(self, says, *args, code=1):
        done = self.run_plane(*args, code=code)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def fits(self, text, columns=80):
        for line in text.splitlines():
            self.assertLessEqual(len(line), columns, line)

    def is_aligned(self, text, title, rows):
        """The heading that begins with `title` and the rows below it are of one width: nothing was broken."""
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith(title))
        self.assertEqual(len({len(line.rstrip()) for line in lines[first : first + 1 + rows]}), 1, text)


class Plan(Plane):
    def test_json(self):
        for planner in ("paper", "beam", "greedy", "random"):
            plan = json.loads(self.run_plane("plan", self.network, "--planner", planner, "--json").stdout)
            self.assertEqual((plan["routers"], plan["links"], plan["planner"]), (6, 16, planner))
            self.assertEqual([step["upgraded"] for step in plan["steps"]], list(range(7)))
            self.assertIsNone(plan["steps"][0]["router"])
            self.assertEqual(sorted(step["router"] for step in plan["steps"][1:]), list("ABCDEF"))
            for step in plan["steps"]:
                self.assertEqual(set(step), {"upgraded", "router", "paths", "probe_hops", "granularity"})
                self.assertEqual(set(step["granularity"]), {"mean", "min", "max"})
                self.assertAlmostEqual(step["granularity"]["mean"], step["probe_hops"] / step["paths"], places=4)
            # By hand: 36 shortest paths of 64 hops, and one probe a directed link in the end.
            self.assertEqual((plan["steps"][0]["paths"], plan["steps"][0]["probe_hops"]), (36, 64))
            self.assertEqual((plan["steps"][6]["paths"], plan["steps"][6]["probe_hops"]), (16, 16))

    def test_text_and_csv(self):
        code, text = on_terminal("plane", "plan", self.network)
        self.assertEqual(code, 0)
        self.fits(text)
        self.assertIn("planner paper", text)
        rows = self.run_plane("plan", self.network, "--compare", "--csv", "-").stdout.splitlines()
        self.assertEqual(len(rows), 1 + 4 * 7)
        self.assertEqual({row.split(",")[0] for row in rows[1:]}, {"paper", "beam", "greedy", "random"})

    def test_some_upgraded(self):
        plan = json.loads(self.run_plane("plan", self.network, "--upgraded", "F", "--steps", 2, "--json").stdout)
        self.assertEqual(len(plan["steps"]), 3)
        self.assertNotIn("F", [step["router"] for step in plan["steps"]])

    def test_formats_say_the_same(self):
        plan = self.run_plane("plan", self.network).stdout
        dot = "".join(f"{a} -- {b} [weight={c}];\n" for (a, b), c in LINKS.items())
        ids = {name: i for i, name in enumerate("ABFCDE")}
        gml = "".join(f'node [ id {i} label "{name}" ]\n' for name, i in ids.items())
        gml += "".join(f"edge [ source {ids[a]} target {ids[b]} weight {c} ]\n" for (a, b), c in LINKS.items())
        graphml = '<graphml><key id="w" for="edge" attr.name="weight" attr.type="double"/><graph edgedefault="undirected">'
        graphml += "".join(f'<node id="{name}"/>' for name in ids)
        graphml += "".join(f'<edge source="{a}" target="{b}"><data key="w">{c}</data></edge>' for (a, b), c in LINKS.items()) + "</graph></graphml>"
        for name, text in (("n.dot", f"graph {{\n{dot}}}\n"), ("n.gml", f"graph [\n{gml}]\n"), ("n.graphml", graphml)):
            self.assertEqual(self.run_plane("plan", self.write(name, text)).stdout, plan, name)

    def test_bad_input(self):
        self.fails("No such file", "plan", self.path("nowhere"))
        self.fails("one TOPOLOGY", "plan", code=2)
        self.fails("is not one of paper, beam, greedy or random", "plan", self.network, "--planner", "papr", code=2)
        self.fails("has no router 'Z'", "plan", self.network, "--upgraded", "Z")
        for text, says in (
            ("A B -3\n", ":1:"),
            ("A B 0\n", ":1:"),
            ("A B\n", ":1:"),
            ("A B 3\nA C nan\n", ":2:"),
            ("A A 3\n", ":1:"),
            ("", "no routers"),
            ("\x00\x01\x02", ":1:"),
            ("graph { a -- b; }", "cost"),
            ("graph { a -- b [weight=-1]; }", ":1:"),
            ("{}", "show ip ospf database router json"),
        ):
            self.fails(says, "plan", self.write("bad", text))

    def test_parts_without_a_path(self):
        done = self.run_plane("plan", self.write("two", network({"AB": 1, "CD": 1})), "--json")
        self.assertIn("falls into 2 parts", done.stderr)
        self.assertEqual(json.loads(done.stdout)["steps"][0]["paths"], 4)


class Sets(Plane):
    def test_json(self):
        found = json.loads(self.run_plane("sets", self.network, "-m", "C,F", "--json").stdout)
        ends = {s["owner"]: sorted("".join(segment["path"]) for segment in s["segments"]) for s in found["sets"]}
        # Figure 8: M_A = {B, F}; M_C = {F, D, E}; M_F = {A, B, E, D over E}, and C (src/plane/sets.h).
        self.assertEqual(ends["A"], ["AB", "AF"])
        self.assertEqual(ends["C"], ["CD", "CE", "CF"])
        self.assertEqual(ends["F"], ["FA", "FB", "FC", "FE", "FED"])
        self.assertEqual({s["owner"]: s["kind"] for s in found["sets"]}["F"], "m-router")

    def test_text(self):
        code, text = on_terminal("plane", "sets", self.network, "-m", "C,F", "--of", "F", "--tree")
        self.assertEqual(code, 0)
        self.fits(text)
        self.assertIn("watch F > E > D", text)
        self.assertIn("D, cost 5, from C E", text)

    def test_of_the_station(self):
        self.assertEqual(self.run_plane("sets", "--station", self.station).stdout, self.run_plane("sets", self.network, "-m", "C,F").stdout)

    def test_bad_input(self):
        self.fails("has no router 'Z'", "sets", self.network, "-m", "C,Z")
        self.fails("has no router 'Z'", "sets", self.network, "--of", "Z")
        self.fails("--follow needs --station", "sets", self.network, "--follow", code=2)
        self.assertIn("no path to C", self.run_plane("sets", self.write("two", network({"AB": 1, "CD": 1})), "--of", "A").stdout)


class Monitor(Plane):
    def last(self, results, code=0, station=None):
        done = self.run_plane("monitor", station or self.station, "--json", results, code=code)
        return json.loads(done.stdout.splitlines()[-1])

    def test_nothing_is_wrong(self):
        last = self.last(self.results())
        self.assertEqual(last["start_ns"], START + 59 * S)
        self.assertEqual([path["state"] for path in last["paths"]], ["ok", "ok"])
        path = last["paths"][0]
        # Half goes over C, half over E.
        self.assertAlmostEqual(path["mean_ns"] / (2e6 + (50e3 + 2e6 + 40e3 + 3e6 + 60e3 + 5e6) / 2), 1, delta=0.03)
        self.assertLess(path["ci95"]["mean"][0], path["mean_ns"])
        # A>F is on both ways.
        self.assertEqual((path["loss_ratio"], path["missing"], path["places"], path["responsible"]), (0, 0, 8, []))
        self.assertEqual(last["explained_by"], "")

    def test_a_slow_segment(self):
        results = self.results(slow=["F>C"])
        last = self.last(results, code=3)
        self.assertEqual([path["state"] for path in last["paths"]], ["broken", "broken"])
        for path in last["paths"]:
            self.assertEqual([finding["place"] for finding in path["responsible"]], ["F>C"])
            finding = path["responsible"][0]
            self.assertEqual((finding["delay"], finding["loss"], finding["since_ns"]), (True, False, START + 40 * S))
            self.assertAlmostEqual(finding["now_ns"] - finding["usual_ns"], 3e6, delta=0.2e6)
        self.assertEqual(last["explained_by"], "F>C")
        code, text = on_terminal("plane", "monitor", self.station, results, env={"TZ": "UTC"})
        self.assertEqual(code, 3)
        self.fits(text)
        self.assertIn("F>C since 10:00:40", text)
        # One interval alone is no incident, and so each path is told once.
        self.assertIn("10:00:43.000  A to D: 8.571 ms, above its target of 8 ms\n            F>C since 10:00:40.000", text)
        self.assertEqual(text.count("since"), 2)
        for columns in (40, 50, 64, 72):
            text = on_terminal("plane", "monitor", self.station, results, columns=columns)[1]
            self.fits(text, columns)
            self.is_aligned(text, "path ", 2)

    def test_as_slow_as_ever(self):
        station = self.write("s.yaml", STATION.replace("8ms", "5ms"))
        last = self.last(self.results(), code=3, station=station)
        self.assertIn("no part of it has changed: its delay and loss are as usual", last["paths"][0]["cause"])
        self.assertEqual(last["paths"][0]["responsible"], [])

    def test_a_lossy_inside(self):
        last = self.last(self.results(lossy=["F[A>C]"]), code=3)
        self.assertEqual([f["place"] for f in last["paths"][0]["responsible"]], ["F[A>C]"])
        self.assertTrue(last["paths"][0]["responsible"][0]["loss"])
        # Half of the packets pass it, 2 % of them are lost.
        self.assertAlmostEqual(last["paths"][0]["loss_ratio"], 0.01, delta=1e-9)
        self.assertAlmostEqual(last["paths"][1]["loss_ratio"], 0.02, delta=1e-9)

    def test_a_segment_without_results(self):
        last = self.last(self.results(without=["C>D"]))
        path = last["paths"][0]
        self.assertEqual((path["state"], path["mean_ns"], path["missing"]), ("unknown", None, 1))
        self.assertIn("no result of C>D", path["cause"])
        self.assertEqual(last["paths"][1]["state"], "ok")

    def test_routers_that_are_not_there(self):
        station = self.write("s.yaml", STATION + "  - {from: A, to: Z}\n")
        path = self.last(self.results(), station=station)["paths"][2]
        self.assertEqual(path["state"], "unknown")
        self.assertIn("Z", path["cause"])
        self.fails("no router 'Z'", "monitor", self.write("s.yaml", STATION.replace("[C, F]", "[C, Z]")), self.results())

    def test_no_path(self):
        self.write("network.intra", network({"AF": 1, "FC": 1, "ED": 1}))
        last = self.last(self.results())
        self.assertEqual([path["state"] for path in last["paths"]], ["unknown", "ok"])

    def test_bad_input(self):
        results = self.results()
        self.fails("at least one of RESULTS is required", "monitor", self.station, code=2)
        self.fails("at least one of RESULTS is required", "monitor", code=2)
        self.fails("No such file", "monitor", self.path("nowhere.yaml"), results)
        self.fails("No such file", "monitor", self.station, self.path("nowhere"))
        self.fails("station.yaml:2: unknown key 'm_router'", "monitor", self.write("station.yaml", STATION.replace("m_routers", "m_router")), results)
        self.write("station.yaml", STATION)
        self.fails("none:1: not JSON", "monitor", self.station, self.write("none", "this is no result\n"))
        self.fails("no final results", "monitor", self.station, self.write("empty", ""))
        self.fails("no final results", "monitor", self.station, self.write("other", '{"some": "thing"}\n'))
        self.fails("status", "monitor", self.station, self.write("odd", '{"segment": "A>F", "start_ns": 1, "length_ns": 1, "status": "fine"}\n'))
        homeless = self.write("homeless", result("A>F", 0, 1e6, segment="london-paris") + "\n")
        done = self.run_plane("monitor", self.station, homeless, code=1)
        self.assertIn("1 result without a place ('places' of the station says where they belong), the first of segment london-paris", done.stderr)
        self.assertIn("none of the results belongs to a place of the station", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_no_path_can_be_judged(self):
        elsewhere = self.write("elsewhere", "\n".join(result("E>D", i, 1e6) for i in range(30)))
        for more in ([], ["--quiet"], ["--json"]):
            done = self.run_plane("monitor", self.station, elsewhere, *more, code=1)
            self.assertRegex(done.stderr, "no path could be judged at any time, the first because: no result of A>F")
            self.assertNotIn("nan", done.stdout)
        self.assertIn("A to D: unknown: no result of A>F", self.run_plane("monitor", self.station, elsewhere, code=1).stdout)

    def test_a_delay_does_not_explain_losses(self):
        """F>C becomes 4 us slower, for certain; C>D loses packets; the target is one of loss."""
        station = self.write("s.yaml", STATION.replace("mean: 8ms, loss: 0.1%", "loss: 0.1%"))
        lines = [
            result(place, i, usual + i % 3 * 100 + (4e3 if i >= 40 and place == "F>C" else 0), lost=20 if i >= 40 and place == "C>D" else 0)
            for i in range(60)
            for place, usual in USUAL.items()
        ]
        path = self.last(self.write("r", "\n".join(lines)), code=3, station=station)["paths"][0]
        self.assertEqual([(f["place"], f["delay"], f["loss"]) for f in path["responsible"]], [("C>D", False, True)])
        self.assertIn("loses", path["cause"])
        # A loss that is as ever: nobody is blamed.
        lines = [
            result(place, i, usual + i % 3 * 100 + (4e3 if i >= 40 and place == "F>C" else 0), lost=20 if place == "C>D" else 0)
            for i in range(60)
            for place, usual in USUAL.items()
        ]
        path = self.last(self.write("r", "\n".join(lines)), code=3, station=station)["paths"][0]
        self.assertEqual(path["responsible"], [])
        self.assertIn("as usual", path["cause"])

    def test_all_is_lost(self):
        """No packet, no delay: that is said without a number that is none."""
        lines = [
            result(place, i, usual + i % 3 * 100, **({"lost": 1000, "samples": 0, "delay_ns": None} if i >= 40 and place == "F>C" else {}))
            for i in range(60)
            for place, usual in USUAL.items()
        ]
        done = self.run_plane("monitor", self.station, self.write("r", "\n".join(lines)), code=3)
        self.assertNotIn("nan", done.stdout)
        self.assertIn("loses 50 %, above its target of 0.1 %", done.stdout)

    def test_round_trips_are_no_places(self):
        lines = [result(place, 0, 2e6) for place in USUAL] + [result("A>F", 0, 4e6, **{"to": "A", "class": "round-trip", "active": True})]
        self.assertEqual(self.run_plane("monitor", self.station, self.write("probes", "\n".join(lines))).stderr, "")

    def test_provisional_results_do_not_count(self):
        lines = [result("A>F", i, 2e6, final=False) for i in range(5)]
        self.fails("no final results", "monitor", self.station, self.write("provisional", "\n".join(lines)))


class Segments(Plane):
    """No network and no places: points in a row, and results as they store them."""

    def lane(self, start, end, interval, mean=2e6, lost=0, **more):
        ends = "-".join(sorted((start, end)))
        return result(f"{start}>{end}", interval, mean, lost, **{"segment": ends, "from": start, "to": end, **more})

    def chain(self, intervals=80, bad="B>C", since=40, until=999, lost=0, slower=0, points="ABC", change=None):
        """Both directions of a row of points. change(start, end, interval) has other members of a result, or None for no result."""
        rng = random.Random(7)
        lines = []
        for i in range(intervals):
            for a, b in zip(points, points[1:]):
                for start, end in ((a, b), (b, a)):
                    is_bad = f"{start}>{end}" == bad and since <= i < until
                    more = change(start, end, i) if change else {}
                    mean = rng.gauss(2e6, 2e4) + (slower if is_bad else 0)
                    if more is not None:
                        lines.append(self.lane(start, end, i, mean, lost if is_bad else 0, **more))
        return self.write("chain.jsonl", "\n".join(lines) + "\n")

    def incidents(self, results, *args, code=3):
        path = self.path("incidents.jsonl")
        if os.path.exists(path):
            os.unlink(path)
        done = self.run_plane("monitor", *args, "--incidents", path, results, code=code)
        self.text = done.stdout
        with open(path) as f:
            return [json.loads(line)["incident"] for line in f]

    def test_three_points_in_a_row(self):
        found = self.incidents(self.chain(lost=20, until=60))
        self.assertEqual([(i["event"], i["subject"], i["kind"]) for i in found], [("begin", "B>C", "broken"), ("end", "B>C", "broken")])
        begin, end = found
        self.assertEqual((begin["from"], begin["to"], begin["id"], begin["since_ns"]), ("B", "C", "B>C@2026-11-15T10:00:40Z", START + 40 * S))
        self.assertEqual([(f["place"], f["loss"], f["delay"], f["now_loss"]) for f in begin["responsible"]], [("B>C", True, False, 0.02)])
        self.assertIn("B>C loses 2.00%, usually 0%", begin["summary"])
        self.assertEqual((end["id"], end["until_ns"] >= START + 60 * S), (begin["id"], True))
        self.assertIn("B>C: loses more than usual\n            B>C since 10:00:40.000", self.text)
        self.assertIn("B>C: ended: as usual again since 10:01:0", self.text)
        # The whole path, without a network.
        last = json.loads(self.run_plane("monitor", self.write("s.yaml", "targets:\n  - {from: A, to: C, loss: 1%}\n"), "--json",
                                         self.chain(lost=20), code=3).stdout.splitlines()[-1])
        (path,) = last["paths"]
        self.assertEqual((path["state"], path["missing"], path["places"], path["folded"], path["length_ns"]), ("broken", 0, 2, 1, S))
        self.assertEqual([f["place"] for f in path["responsible"]], ["B>C"])
        self.assertAlmostEqual(path["mean_ns"], 4e6, delta=2e5)
        why = json.loads(self.run_plane("monitor", "--why", "A,C", "--since", "2026-11-15 10:00:40Z", "--json", self.chain(slower=1e6)).stdout)
        self.assertEqual([(p["place"], p["responsible"]) for p in why["parts"]], [("B>C", True), ("A>B", False)])

    def test_each_segment_and_kind(self):
        for bad in ("A>B", "B>A", "C>D", "D>C"):
            for impairment in ({"lost": 20}, {"slower": 1e6}, {"lost": 1000}):
                found = self.incidents(self.chain(points="ABCD", bad=bad, **impairment))
                self.assertEqual({i["subject"] for i in found}, {bad}, impairment)
                self.assertEqual(found[0]["event"], "begin")

    def test_one_bad_second(self):
        self.assertEqual(self.incidents(self.chain(lost=500, until=41), code=0), [])
        self.assertEqual(self.incidents(self.chain(slower=1e8, until=41), code=0), [])

    def test_a_fault_that_lasts(self):
        """It does not end because it lasts for minutes; after an hour it is what is usual, and that is said."""
        def minutes(count):
            lines = [self.lane("B", "C", 0, 2e6 + i % 7 * 100, lost=20 if i >= 30 else 0, start_ns=START + 30 * i * S, length_ns=30 * S) for i in range(count)]
            return self.incidents(self.write("lasts.jsonl", "\n".join(lines)))
        self.assertEqual([i["event"] for i in minutes(140)], ["begin"])
        found = minutes(220)
        self.assertEqual([i["event"] for i in found], ["begin", "end"])
        self.assertIn("has lasted so long that it is usual now", found[1]["cause"])

    def test_a_point_stops(self):
        """All its segments are not measured: it is named, and nothing is broken."""
        found = self.incidents(self.chain(intervals=120, points="ABCD", change=lambda a, b, i: None if "B" in (a, b) and 40 <= i < 90 else {}), code=0)
        self.assertEqual([(i["event"], i["kind"], i["subject"]) for i in found], [("begin", "unmeasured", "point B"), ("end", "unmeasured", "point B")])
        # Its peers say so themselves.
        unknown = {"status": "unknown", "cause": "no connection to B", "samples": 0, "loss_ratio": None, "delay_ns": None}
        found = self.incidents(self.chain(intervals=120, points="ABCD", change=lambda a, b, i: unknown if "B" in (a, b) and i >= 40 else {}), code=0)
        self.assertEqual([(i["event"], i["kind"], i["subject"]) for i in found], [("begin", "unmeasured", "point B")])
        self.assertIn("A to B: unknown: no result of A>B: no connection to B", self.text)
        # An end of the row stops, then everything.
        found = self.incidents(self.chain(intervals=120, change=lambda a, b, i: None if "A" in (a, b) and i >= 40 else {}), code=0)
        self.assertEqual([i["subject"] for i in found], ["point A"])

    def test_a_trifle_and_then_unknown(self):
        """A delay that rose by less than anybody notices is no fault when the results end."""
        unknown = {"status": "unknown", "cause": "no connection to B", "samples": 0, "loss_ratio": None, "delay_ns": None}
        def change(a, b, i):
            if i >= 50 and "B" in (a, b):
                return unknown
            return {"delay_ns": {"mean": 2e6 + i % 5 * 100 + (3e3 if i >= 40 else 0), "stddev": 1e5}}
        self.assertEqual(self.incidents(self.chain(intervals=60, change=change), code=0), [])

    def test_clocks_do_not_accuse(self):
        """A clock that moves by 1 ms: what is slower one way is faster the other way. Unknown clocks say nothing about delay, but loss counts."""
        def moved(error):
            def change(a, b, i):
                mean = 2e6 + (i % 5) * 1e3 + (1e6 if i >= 40 and b == "C" else -1e6 if i >= 40 and a == "C" else 0)
                clock = {"synchronised": error is not None, "error_ns": error}
                return {"delay_ns": {"mean": mean, "stddev": 1e5}, "clock": {"from": clock, "to": clock}}
            return change
        for error in (1_000_000, None):
            self.assertEqual(self.incidents(self.chain(change=moved(error)), code=0), [])
            found = self.incidents(self.chain(change=moved(error), lost=20))
            self.assertEqual([(i["subject"], [(f["place"], f["delay"], f["loss"]) for f in i["responsible"]]) for i in found], [("B>C", [("B>C", False, True)])])
        # Whatever the clocks are, they do not make one direction slower and leave the other as it is. Without the other nobody knows.
        clock = {"clock": {"from": {"synchronised": False, "error_ns": None}, "to": {"synchronised": False, "error_ns": None}}}
        found = self.incidents(self.chain(slower=1e6, change=lambda a, b, i: clock))
        self.assertEqual({i["subject"] for i in found}, {"B>C"})
        self.assertEqual(self.incidents(self.chain(slower=1e6, change=lambda a, b, i: None if (a, b) == ("C", "B") else clock), code=0), [])

    def test_minutes_and_seconds(self):
        rng = random.Random(3)
        def minutes(bad=range(0), count=40):
            return [self.lane(a, b, 0, rng.gauss(2e6, 2e3), lost=20 if (a, b) == ("B", "C") and i in bad else 0, **{"start_ns": START + 60 * i * S, "length_ns": 60 * S})
                    for i in range(count) for a, b in ("AB", "BA", "BC", "CB")]
        found = self.incidents(self.write("m.jsonl", "\n".join(minutes(range(30, 36)))))
        self.assertEqual([(i["event"], i["subject"], i["length_ns"]) for i in found][:1], [("begin", "B>C", 60 * S)])
        self.assertEqual(found[0]["since_ns"], START + 1800 * S)
        # Seconds that come only while something is wrong have not seen what is usual: the minutes decide.
        seconds = [self.lane("B", "C", i, 2e6 + i % 7 * 1e3, lost=20) for i in range(1830, 2100)]
        found = self.incidents(self.write("m.jsonl", "\n".join(minutes(range(30, 40)) + seconds)))
        self.assertEqual({(i["subject"], i["length_ns"]) for i in found}, {("B>C", 60 * S)})
        self.assertEqual([i["event"] for i in found][:1], ["begin"])
        self.assertNotIn("end", [i["event"] for i in found])
        # Seconds that come always are faster than minutes.
        seconds = [self.lane("B", "C", i, rng.gauss(2e6, 2e4), lost=20 if i >= 1800 else 0) for i in range(1700, 1900)]
        found = self.incidents(self.write("m.jsonl", "\n".join(minutes(range(30, 31), 31) + seconds)))
        self.assertEqual((found[0]["subject"], found[0]["length_ns"], found[0]["since_ns"]), ("B>C", S, START + 1800 * S))

    def test_a_map_of_the_fleet(self):
        """A segment from A to C that passes B is none of its own, and paths go over neighbours."""
        rng = random.Random(9)
        lines = []
        for i in range(70):
            for start, end in ("AB", "BA", "BC", "CB", "AC", "CA"):
                lost = 20 if i >= 40 and (start, end) in (("B", "C"), ("A", "C")) else 0
                lines.append(self.lane(start, end, i, rng.gauss(2e6, 2e4), lost))
        results = self.write("spans.jsonl", "\n".join(lines))
        edges = [{"from": a, "to": b, "adjacency": "firm"} for a, b in ("AB", "BA", "BC", "CB")] + [{"from": "A", "to": "C", "adjacency": "none"}]
        self.write("map.json", json.dumps({"tool": "oneway", "command": "fleet map", "edges": edges}))
        self.assertEqual({i["subject"] for i in self.incidents(results)}, {"B>C", "A>C"})
        station = self.write("s.yaml", "network: {map: map.json}\n")
        self.assertEqual({i["subject"] for i in self.incidents(results, station)}, {"B>C"})
        station = self.write("s.yaml", "network: {map: map.json}\ntargets:\n  - {from: A, to: C, loss: 1%}\n")
        (incident,) = self.incidents(results, station)
        self.assertEqual((incident["subject"], [f["place"] for f in incident["responsible"]]), ("A to C", ["B>C"]))
        why = json.loads(self.run_plane("monitor", station, "--why", "A,C", "--since", "2026-11-15 10:00:40Z", "--json", results).stdout)
        self.assertEqual({p["place"]: p["responsible"] for p in why["parts"]}, {"A>B": False, "B>C": True})
        # An order that is not known is both; the map is a network for plans, too.
        self.write("map.json", json.dumps({"edges": [{"from": "A", "to": "B", "adjacency": "unknown order"}]}))
        self.assertIn("2 routers, 2 directed links", self.run_plane("plan", self.path("map.json")).stdout)
        for bad, says in (('{"edges": 1}', "no edges"), ('{"edges": [{"from": "A"}]}', "edge 1: from and to"), ('{"edges": [{"from": "A", "to": "A"}]}', "edge 1"), ("{", ":1:")):
            self.write("map.json", bad)
            self.fails(says, "monitor", station, results)

    def test_two_segments_and_classes(self):
        lines = []
        for i in range(60):
            for segment, name, lost in (("wan1", "all", 0), ("wan2", "all", 30), ("wan2", "voice", 30)):
                lines.append(self.lane("A", "B", i, 2e6 + i % 5 * 1e3, lost if i >= 40 else 0, segment=segment, **{"class": name}))
        found = self.incidents(self.write("two.jsonl", "\n".join(lines)))
        # A class is a part of its segment's incident.
        self.assertEqual({i["subject"] for i in found}, {"A>B (wan2)"})
        self.assertIn("A>B (wan2)/voice", {f["place"] for i in found for f in i["responsible"]})

    def test_both_points_have_stored_it(self):
        """What one of them does not know the other one may know; nothing counts twice."""
        unknown = {"status": "unknown", "cause": "restarted", "samples": 0, "loss_ratio": None, "delay_ns": None}
        one = self.chain(change=lambda a, b, i: unknown if i % 2 else {})
        with open(one) as f:
            lines = f.read()
        with open(self.chain(lost=20)) as f:
            lines += f.read()
        found = self.incidents(self.write("both.jsonl", lines))
        self.assertEqual([(i["event"], i["subject"]) for i in found], [("begin", "B>C")])

    def test_hostile_results(self):
        """Times and lengths that are impossible, and names that would be others."""
        with open(self.chain()) as f:
            good = f.read()
        odd = [
            self.lane("A", "B", 0, length_ns=2**62), self.lane("A", "B", 0, length_ns=1), self.lane("A", "B", 0, start_ns=-(2**62)), self.lane("A", "B", 0, start_ns=2**63 - 1),
            self.lane("A>B", "C", 1), self.lane("A", "A", 1), self.lane("\u001b]2J", "B", 41, lost=900), self.lane("A", "B", -31536000),
        ]
        done = self.run_plane("monitor", "--json", self.write("odd.jsonl", good + "\n".join(odd)))
        self.assertIn("3 results not used because of their time or length, the first of segment A-B", done.stderr)
        self.assertIn("2 results without a place", done.stderr)
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual({p["state"] for p in last["paths"] if "\u001b" not in p["name"]}, {"ok"})
        self.assertNotIn("\u001b", done.stdout + done.stderr + self.run_plane("monitor", self.path("odd.jsonl")).stdout)


class Why(Plane):
    def why(self, *args, code=0):
        return self.run_plane("monitor", self.station, "--why", "A,D", "--since", "2026-11-15 10:00:40Z", *args, code=code).stdout

    def test_json(self):
        found = json.loads(self.why("--json", self.results(slow=["F>E>D"])))
        self.assertEqual([part["place"] for part in found["parts"] if part["responsible"]], ["F>E>D"])
        self.assertEqual({part["place"]: part["share"] for part in found["parts"]}, {p: 1 if p == "A>F" else 0.5 for p in USUAL})
        self.assertAlmostEqual(found["after_ns"] - found["before_ns"], 1.5e6, delta=0.05e6)
        part = found["parts"][0]
        self.assertEqual((part["intervals_before"], part["intervals_after"]), (40, 20))
        self.assertAlmostEqual(part["excess_ns"], 3e6, delta=5 * part["excess_error_ns"])

    def test_text(self):
        code, text = on_terminal("plane", "monitor", self.station, "--why", "A,D", "--since", "2026-11-15 10:00:40Z", self.results(slow=["C>D"]))
        self.assertEqual(code, 0)
        self.fits(text)
        self.assertIn("* C>D", text)
        self.assertRegex(" ".join(text.split()), r"C>D is slower by \S+ \S+ for 50 % of the packets, \d+ % of the path's excess")
        for columns in (40, 50, 64, 72):
            text = on_terminal("plane", "monitor", self.station, "--why", "A,D", "--since", "2026-11-15 10:00:40Z", self.results(slow=["C>D"]), columns=columns)[1]
            self.fits(text, columns)
            self.is_aligned(text, "  part ", len(USUAL))

    def test_delays_without_any_spread(self):
        lines = [result(place, i, usual + (1e6 if i >= 40 and place == "F>C" else 0)) for i in range(60) for place, usual in USUAL.items()]
        found = json.loads(self.why("--json", self.write("constant", "\n".join(lines))))
        self.assertEqual([part["place"] for part in found["parts"] if part["responsible"]], ["F>C"])

    def test_nothing_is_worse(self):
        self.assertIn("No part of it is significantly worse than before", self.why(self.results()))

    def test_without_some_results(self):
        text = self.why(self.results(without=["A>F"]))
        self.assertIn("cannot be composed", text)
        self.assertIn("No part with results is significantly worse than before.", text)
        self.assertIn("1 of its 7 parts cannot be judged", text)

    def test_without_any_result(self):
        for more in ([], ["--json"]):
            self.fails("no part of A to D has results both in the hour before --since and after it", "monitor", self.station,
                       "--why", "A,D", "--since", "2026-11-15 12:00Z", self.results(), *more)

    def test_bad_input(self):
        self.fails("--why needs two routers", "monitor", self.station, "--why", "A,D", self.results())
        self.fails("--why needs two routers", "monitor", self.station, "--why", "A", "--since", "-1h", self.results())
        self.fails("no router 'Z'", "monitor", self.station, "--why", "A,Z", "--since", "-1h", self.results())
        self.fails("both ends are A", "monitor", self.station, "--why", "A,A", "--since", "-1h", self.results())


class Frr(Plane):
    """A vtysh that prints what a file has."""

    def setUp(self):
        super().setUp()
        self.vtysh = self.write("vtysh", f'#!/bin/sh\ntest "$*" = "--vty_socket /run/x -c show ip ospf database router json" && cat "{self.path("lsdb")}"\n')
        os.chmod(self.vtysh, 0o755)
        names = "".join(f"  10.0.0.{i}: {name}\n" for i, name in enumerate("ABCDEF"))
        self.station = self.write("frr.yaml", f"network: {{vtysh: '{self.vtysh}', socket: /run/x}}\nrefresh: 100ms\nhold: 300ms\nnames:\n{names}" + STATION.split("\n", 1)[1])
        self.advertise(LINKS)

    def advertise(self, links):
        ids = {name: f"10.0.0.{i}" for i, name in enumerate("ABCDEF")}
        lsas = {name: {} for name in ids}
        for (a, b), cost in links.items():
            for here, there in ((a, b), (b, a)):
                lsas[here][f"link{len(lsas[here])}"] = {"linkType": "another Router (point-to-point)", "neighborRouterId": ids[there], "tos0Metric": cost}
        states = [{"advertisingRouter": ids[name], "routerLinks": links} for name, links in lsas.items()]
        self.write("lsdb.new", json.dumps({"routerLinkStates": {"areas": {"0.0.0.0": states}}}))
        os.rename(self.path("lsdb.new"), self.path("lsdb"))

    def test_the_same_as_the_file(self):
        of_file = json.loads(self.run_plane("sets", self.network, "-m", "C,F", "--json").stdout)["sets"]
        of_frr = json.loads(self.run_plane("sets", "--station", self.station, "--json").stdout)["sets"]
        for sets in (of_file, of_frr):
            for s in sets:
                s["segments"].sort(key=str)
        self.assertEqual(sorted(of_frr, key=str), sorted(of_file, key=str))

    def test_follows_a_change(self):
        with subprocess.Popen([PROGRAM, "plane", "sets", "--station", self.station, "--follow", "--json", "--of", "F"], stdout=subprocess.PIPE, text=True) as child:
            try:
                seen = [json.loads(child.stdout.readline()) for _ in range(5)]
                self.assertEqual({(e["event"], e["segment"]) for e in seen}, {("new", s) for s in ("F>A", "F>B", "F>C", "F>E", "F>E>D")})
                self.advertise({ends: cost for ends, cost in LINKS.items() if ends != "ED"})
                seen = [json.loads(child.stdout.readline()) for _ in range(2)]
                # D is reached over C alone, which watches that; its segment of old goes after the hold time.
                self.assertEqual([(e["event"], e["segment"]) for e in seen], [("old", "F>E>D"), ("gone", "F>E>D")])
                self.assertGreaterEqual(seen[1]["time_ns"] - seen[0]["time_ns"], 250_000_000)
            finally:
                child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=60), 0)

    def test_no_answer(self):
        self.write("lsdb", "")
        self.fails("vtysh", "sets", "--station", self.station)
        os.unlink(self.path("lsdb"))
        self.fails("failed: is ospfd running?", "sets", "--station", self.station)
        os.unlink(self.vtysh)
        self.fails("No such file", "sets", "--station", self.station)


class Follow(Plane):
    def test_lines_as_they_come(self):
        results = self.results(intervals=1)
        command = [PROGRAM, "plane", "monitor", self.station, "--follow", "--json", results]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            try:
                for i in range(4):
                    with open(results, "a") as f:
                        f.writelines(result(place, i + 1, usual) + "\n" for place, usual in USUAL.items())
                    time.sleep(0.3)
                # An interval is judged when two newer ones are there.
                starts = [json.loads(child.stdout.readline())["start_ns"] for _ in range(3)]
                self.assertEqual(starts, [START + i * S for i in range(3)])
            finally:
                child.send_signal(signal.SIGTERM)
            rest = child.stdout.read().splitlines()
            self.assertEqual(child.wait(timeout=60), 0)
        self.assertEqual([json.loads(line)["start_ns"] for line in rest], [START + i * S for i in (3, 4)])

    def test_standard_input_ends(self):
        with open(self.results()) as f:
            lines = f.read()
        done = subprocess.run([PROGRAM, "plane", "monitor", self.station, "--follow", "--json", "-"], input=lines, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 60), done.stderr)

    def test_ends_in_the_future(self):
        """A point that claims a whole hour now, or is half a minute ahead, does not make the results of the others old."""
        now = time.time_ns() // S * S
        times = [(now - 3 * S + i * S, S) for i in range(3)]
        odd = [("X", now - S, 3600 * S), ("Y", now + 30 * S, S), ("Z", now + 7200 * S, S)]
        lines = [result("A>F", 0, 2e6, start_ns=start, length_ns=length) for start, length in times]
        lines += [result(f"{x}>B", 0, 2e6, start_ns=start, length_ns=length) for x, start, length in odd]
        done = subprocess.run([PROGRAM, "plane", "monitor", "--follow", "--json", "-"], input="\n".join(lines), capture_output=True, text=True, timeout=60)
        self.assertIn("3 results not used because they end in the future, the first of point X", done.stderr)
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual([(p["name"], p["state"]) for p in last["paths"]], [("A to F", "ok")])


class Command(Plane):
    def test_parts(self):
        self.fails("did you mean 'plan'", "plam", code=2)
        for part in ("plan", "sets", "monitor"):
            self.assertIn(part, self.run_plane("--help").stdout)
            self.assertIn("Examples:", self.run_plane(part, "--help").stdout)
            self.assertIn("oneway", self.run_plane(part, "--version").stdout)


if __name__ == "__main__":
    unittest.main()
