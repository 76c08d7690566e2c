/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"
#include <oneway/match.h>

/*
 * A scenario simulates two captures, matches them through the library and holds the result against the truth. Whatever
 * the scenario, packets are conserved: in the totals, per capture, in the events and in the intervals.
 */
struct scenario {
	const char *name; /* said when something fails */
	struct ow_sim_options sim;
	struct ow_match_options match;
	struct ow_sim_truth truth;
	struct ow_match *result;
	const struct ow_match_report *report;
	struct ow_error err;
};

/* 20,000 packets, 1 % loss, 200 flows, a base delay of 10 us; match with its defaults. */
void scenario_init(struct scenario *s, const char *name);
/* Runs the simulator, and the matcher over what it wrote. */
void scenario_simulate(struct scenario *s);
int scenario_match(struct scenario *s);
/* Both must succeed, and what is true of every result holds. */
void scenario_run(struct scenario *s);
/* The result is the truth: all counts, minimum, maximum, mean, standard deviation, quantiles; nothing left over. */
void scenario_check(const struct scenario *s);
void scenario_check_counts(const struct ow_result *result, const struct ow_result *truth, bool order);
void scenario_check_delays(const struct ow_delay *result, const struct ow_delay *truth);
/* init, run, check, done. change: what is special about it. */
void scenario_exact(const char *name, void (*change)(struct scenario *s));
void scenario_done(struct scenario *s);

/* What holds of every result. */
void scenario_conserved(const struct ow_match_report *report);
/* Does one of the warnings contain this? */
bool scenario_warns(const struct ow_match_report *report, const char *text);

/* Files of the simulated captures, and of others beside them; removed at exit. */
const char *scenario_path(const char *name);
int scenario_setup(void **state);
/* After a test: says which scenario it was in when it failed. */
int scenario_say(void **state);
int scenario_teardown(void **state);
