/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 10 to 13 of the RDA paper: the results of a live measurement of one-second intervals, their errors, and their
 * computing time. papers/liverun.h is the measurement. The paper's method (MinHash, 2 banks of 2d cells, collapsed
 * pairs) is compared with ours (fold).
 */
#include "papers/figures_rda.h"

#include "base/sort.h"
#include "papers/liverun.h"
#include "papers/spread.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>

#define INTERVALS 60
#define QUICK     6
/* The relative error of rounding. */
#define EXACT 1e-12

enum { RDA, FOLD, METHODS };
static const char *const method_name[METHODS] = {"RDA as published", "fold"};
static const enum ow_method method[METHODS] = {OW_METHOD_RDA, OW_METHOD_FOLD};

static void on_progress(void *arg, double done)
{
	ow_figure_progress(arg, done / METHODS);
}

static void on_second_half(void *arg, double done)
{
	ow_figure_progress(arg, (1 + done) / METHODS);
}

/* Both methods measure the same packets. */
static int measure(struct ow_figure_run *run, struct ow_liverun live[METHODS], struct ow_error *err)
{
	for (int m = 0; m < METHODS; m++) {
		struct ow_liverun_options options = {
			.intervals = ow_figure_quick(run) ? QUICK : INTERVALS,
			.seed = ow_figure_seed(run) + 1000,
			.method = method[m],
			.scale = ow_figure_quick(run) ? 0.2 : 1,
			.on_progress = m ? on_second_half : on_progress,
			.arg = run,
		};
		int r = ow_liverun(&options, &live[m], err);
		if (r < 0) {
			while (m-- > 0)
				ow_liverun_done(&live[m]);
			return r;
		}
	}
	return 0;
}

static void done(struct ow_liverun live[METHODS])
{
	for (int m = 0; m < METHODS; m++)
		ow_liverun_done(&live[m]);
}

/* Numbers whose median is used, because a machine that does other things has outliers. */
struct list {
	double value[INTERVALS];
	unsigned count;
};

static void note(struct list *list, double value)
{
	if (list->count < INTERVALS)
		list->value[list->count++] = value;
}

static double median_of(struct list *list)
{
	ow_sort_doubles(list->value, list->count);
	return list->count ? list->value[list->count / 2] : 0;
}

static double most_of(const struct list *list)
{
	double most = 0;
	for (unsigned i = 0; i < list->count; i++)
		most = fmax(most, list->value[i]);
	return most;
}

static int point(struct ow_figure_run *run, const char *kind, int m, double x, double y)
{
	char name[80];
	snprintf(name, sizeof name, "%s%s%s", kind, m < 0 ? "" : ": ", m < 0 ? "" : method_name[m]);
	return ow_figure_point(run, name, x, y, y, y);
}

/* -- figure 10: latency over time --------------------------------------------------------------------------------- */

int ow_figure_rda_10(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_liverun live[METHODS];
	struct ow_spread mean = {0};
	double low = INFINITY, high = 0;
	int r = measure(run, live, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < live[0].intervals && r == 0; i++) {
		const struct ow_liverun_truth *truth = &live[0].truth[i];
		r = point(run, "average, true", -1, i, truth->mean_ns / 1e6);
		if (r == 0)
			r = point(run, "standard deviation, true", -1, i, truth->stddev_ns / 1e6);
		for (int m = 0; m < METHODS && r == 0; m++) {
			const struct ow_interval_result *result = &live[m].result[i];
			if (result->mean_ns.status != OW_VALUE_NONE)
				r = point(run, "average", m, i, result->mean_ns.value / 1e6);
			if (r == 0 && result->stddev_ns.status != OW_VALUE_NONE)
				r = point(run, "standard deviation", m, i, result->stddev_ns.value / 1e6);
		}
		if (live[FOLD].result[i].mean_ns.status != OW_VALUE_NONE) {
			ow_spread_add(&mean, live[FOLD].result[i].mean_ns.value / 1e6);
			low = fmin(low, live[FOLD].result[i].stddev_ns.value / 1e6);
			high = fmax(high, live[FOLD].result[i].stddev_ns.value / 1e6);
		}
	}
	if (r == 0)
		r = ow_figure_claim(run, "the average centres around 0.05 ms, the deviation varies from 0.05 to 1 ms",
		                    fabs(ow_spread_mean(&mean) - 0.05) < 0.01 && low < 0.2 && high < 2,
		                    "average %.3f ms, deviation %.3f to %.2f ms", ow_spread_mean(&mean), low, high);
	done(live);
	return r;
}

/* -- figure 11: relative error ------------------------------------------------------------------------------------ */

static double error_of(const struct ow_value *value, double truth)
{
	double error = fabs(value->value - truth) / truth;
	return error < EXACT ? 0 : error;
}

int ow_figure_rda_11(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_liverun live[METHODS];
	struct ow_spread mean[METHODS] = {0}, stddev[METHODS] = {0};
	unsigned losses[METHODS] = {0}, exact[METHODS] = {0};
	int r = measure(run, live, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < live[0].intervals && r == 0; i++) {
		for (int m = 0; m < METHODS && r == 0; m++) {
			const struct ow_liverun_truth *truth = &live[m].truth[i];
			const struct ow_interval_result *result = &live[m].result[i];
			losses[m] += result->lost == truth->lost;
			if (result->mean_ns.status != OW_VALUE_NONE) {
				double error = error_of(&result->mean_ns, truth->mean_ns);
				ow_spread_add(&mean[m], error);
				exact[m] += error == 0;
				r = point(run, "average", m, i, error);
			}
			if (r == 0 && result->stddev_ns.status != OW_VALUE_NONE) {
				ow_spread_add(&stddev[m], error_of(&result->stddev_ns, truth->stddev_ns));
				r = point(run, "standard deviation", m, i,
				          error_of(&result->stddev_ns, truth->stddev_ns));
			}
		}
	}
	if (r == 0)
		r = ow_figure_claim(run, "the average errs by 1e-8 to 1e-7", mean[FOLD].most < 1e-7,
		                    "0 in %u, at most %.1g in %.0f of %u intervals; fold 0 in %u", exact[RDA],
		                    mean[RDA].most, mean[RDA].count, live[0].intervals, exact[FOLD]);
	if (r == 0)
		r = ow_figure_claim(run, "the standard deviation errs by 0.01 to 0.1 in most cases",
		                    ow_spread_mean(&stddev[FOLD]) < 0.1,
		                    "on average %.2g, at most %.2g; fold %.2g, at most %.2g",
		                    ow_spread_mean(&stddev[RDA]), stddev[RDA].most, ow_spread_mean(&stddev[FOLD]),
		                    stddev[FOLD].most);
	if (r == 0)
		r = ow_figure_claim(run, "(lost packets counted exactly)", losses[FOLD] == live[0].intervals,
		                    "RDA in %u, fold in %u of %u intervals", losses[RDA], losses[FOLD],
		                    live[0].intervals);
	done(live);
	return r;
}

/* -- figure 12: stacked delays ------------------------------------------------------------------------------------ */

enum { TRANSMIT, DECODE, MISSING, ERASE, COMPUTE, STAGES };
static const char *const stage_name[STAGES] = {"transmit", "+ decode", "+ missing", "+ erase", "+ compute"};

/* The sums of the stages so far, in ms. */
static void stack_of(const struct ow_result_cost *cost, double ret_stack[STAGES])
{
	const int64_t stage[STAGES] = {cost->transmit_ns, cost->decode_ns, cost->missing_ns, cost->erase_ns,
	                               cost->compute_ns};
	double sum = 0;
	for (int i = 0; i < STAGES; i++)
		ret_stack[i] = sum += (double)stage[i] / 1e6;
}

int ow_figure_rda_12(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_liverun live[METHODS];
	struct list all[METHODS] = {0}, network[METHODS] = {0};
	int r = measure(run, live, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < live[0].intervals && r == 0; i++) {
		for (int m = 0; m < METHODS && r == 0; m++) {
			double stack[STAGES];
			stack_of(&live[m].result[i].cost, stack);
			for (int k = 0; k < STAGES && r == 0; k++)
				r = point(run, stage_name[k], m, i, stack[k]);
			note(&all[m], stack[COMPUTE]);
			double network_ms = stack[TRANSMIT] + stack[MISSING] - stack[DECODE];
			if (stack[COMPUTE] > 0)
				note(&network[m], 100 * network_ms / stack[COMPUTE]);
		}
	}
	if (r == 0)
		r = ow_figure_claim(run, "the overall delay is around 20 ms", median_of(&all[FOLD]) < 20,
		                    "median %.1f ms, at most %.1f; fold %.1f ms, at most %.1f", median_of(&all[RDA]),
		                    most_of(&all[RDA]), median_of(&all[FOLD]), most_of(&all[FOLD]));
	if (r == 0)
		r = ow_figure_claim(run, "transmitting and requesting missing times take over 70 % of it",
		                    median_of(&network[RDA]) > 70, "%.0f %%; fold %.0f %%", median_of(&network[RDA]),
		                    median_of(&network[FOLD]));
	done(live);
	return r;
}

/* -- figure 13: load and overall delay ---------------------------------------------------------------------------- */

int ow_figure_rda_13(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_liverun live[METHODS];
	struct list all[METHODS] = {0};
	struct ow_spread bytes[METHODS] = {0};
	double low = INFINITY, high = 0;
	int r = measure(run, live, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < live[0].intervals && r == 0; i++) {
		double load = live[0].truth[i].load / 1e6;
		low = fmin(low, load);
		high = fmax(high, load);
		r = point(run, "load, Mbit/s", -1, i, load);
		for (int m = 0; m < METHODS && r == 0; m++) {
			const struct ow_interval_result *result = &live[m].result[i];
			double ready = (double)result->cost.ready_ns / 1e6;
			note(&all[m], ready);
			ow_spread_add(&bytes[m], 100 * (double)result->cost.bytes / (double)result->bytes);
			r = point(run, "overall delay, ms", m, i, ready);
		}
	}
	if (r == 0)
		r = ow_figure_claim(run, "940 to 942 Mbit/s, the overall delay is around 20 ms",
		                    median_of(&all[FOLD]) < 20,
		                    "%.0f to %.0f Mbit/s; median %.1f ms, fold %.1f ms after the end of the interval",
		                    low, high, median_of(&all[RDA]), median_of(&all[FOLD]));
	if (r == 0)
		r = ow_figure_claim(run, "(a low overhead)", ow_spread_mean(&bytes[FOLD]) < 0.1,
		                    "messages are %.3f %% of the traffic, fold %.3f %%", ow_spread_mean(&bytes[RDA]),
		                    ow_spread_mean(&bytes[FOLD]));
	done(live);
	return r;
}
