/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "papers/figure.h"
#include <math.h>

/* Mean and scatter of a number over the runs of a figure's point. */
struct ow_spread {
	double count, sum, squares, most;
};

static inline void ow_spread_add(struct ow_spread *s, double x)
{
	s->count++;
	s->sum += x;
	s->squares += x * x;
	s->most = s->count == 1 || x > s->most ? x : s->most;
}

static inline double ow_spread_mean(const struct ow_spread *s)
{
	return s->count > 0 ? s->sum / s->count : 0;
}

static inline void ow_spread_keep_worse(struct ow_spread *worst, const struct ow_spread *s)
{
	if (ow_spread_mean(s) > ow_spread_mean(worst))
		*worst = *s;
}

/* The error in percent of an estimate, if there is one. */
static inline void ow_spread_add_error(struct ow_spread *s, const struct ow_value *v, double truth)
{
	if (v->status != OW_VALUE_NONE)
		ow_spread_add(s, 100 * fabs(v->value - truth) / truth);
}

/* The standard error of the mean. */
static inline double ow_spread_error(const struct ow_spread *s)
{
	double mean = ow_spread_mean(s);
	return s->count > 1 ? sqrt(fmax(0, s->squares / s->count - mean * mean) / (s->count - 1)) : 0;
}

/*
 * Whether a paper's "less than bound" holds as far as the runs can show: the mean minus twice its standard error is
 * below.
 */
static inline bool ow_spread_below(const struct ow_spread *s, double bound)
{
	return s->count > 0 && ow_spread_mean(s) - 2 * ow_spread_error(s) <= bound;
}

/* Adds the mean as a point with its standard error; adds nothing if no run gave a number. */
static inline int ow_spread_point(struct ow_figure_run *run, const char *series, double x, const struct ow_spread *s)
{
	double mean = ow_spread_mean(s), error = ow_spread_error(s);
	return s->count > 0 ? ow_figure_point(run, series, x, mean, fmax(0, mean - error), mean + error) : 0;
}
