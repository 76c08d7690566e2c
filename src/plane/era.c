/* SPDX-License-Identifier: Apache-2.0 */
/* Time spans of a place, and what changed between two of them. */
#include "plane/era.h"
#include <math.h>

/* Lower limit of the error of a mean, also if all intervals have the same value. */
#define GRAIN_NS 1.0

void ow_era_add(struct ow_era *era, const struct ow_watch_sample *sample)
{
	if (sample->has_delay && isfinite(sample->mean_ns)) {
		double step = sample->mean_ns - era->mean;
		era->intervals++;
		era->mean += step / era->intervals;
		era->squares += step * (sample->mean_ns - era->mean);
		era->variances += sample->stddev_ns * sample->stddev_ns;
		era->clock_error_ns =
			isnan(sample->clock_error_ns) ? INFINITY : fmax(era->clock_error_ns, sample->clock_error_ns);
		era->active |= sample->active;
	}
	if (sample->has_loss) {
		era->sent += (double)sample->sent;
		era->lost += (double)sample->lost;
	}
}

static double error2_of(const struct ow_era *era)
{
	return era->intervals > 1 ? era->squares / (era->intervals - 1) / era->intervals : 0;
}

void ow_era_sample(const struct ow_era *era, struct ow_watch_sample *ret_sample)
{
	double n = era->intervals, between = n > 1 ? era->squares / (n - 1) : 0;
	*ret_sample = (struct ow_watch_sample){.has_delay = n > 0,
	                                       .has_loss = era->sent > 0,
	                                       .mean_ns = era->mean,
	                                       .stddev_ns = n > 0 ? sqrt(era->variances / n + between) : 0,
	                                       .mean_error_ns = sqrt(error2_of(era)),
	                                       .clock_error_ns = isinf(era->clock_error_ns) ? NAN : era->clock_error_ns,
	                                       .samples = (uint64_t)n,
	                                       .sent = (uint64_t)era->sent,
	                                       .lost = (uint64_t)era->lost,
	                                       .active = era->active};
}

void ow_era_compare(const struct ow_era *before, const struct ow_era *after, struct ow_era_change *ret_change)
{
	struct ow_era_change change = {NAN, NAN, NAN, NAN, NAN, NAN};
	if (before->intervals > 1 && after->intervals > 0) {
		/*
		 * A single interval after the change has no spread of its own. The spread from before the change is
		 * used.
		 */
		double spread2 = before->squares / (before->intervals - 1);
		double error2 = error2_of(before) + (after->intervals > 1 ? error2_of(after) : spread2);
		error2 = fmax(error2, GRAIN_NS * GRAIN_NS);
		change.excess_ns = after->mean - before->mean;
		change.excess_error_ns = sqrt(error2);
		change.delay_z = change.excess_ns / change.excess_error_ns;
	}
	if (before->sent > 0 && after->sent > 0) {
		double pooled = (before->lost + after->lost + 1) / (before->sent + after->sent + 2);
		change.loss_before = before->lost / before->sent;
		change.loss_after = after->lost / after->sent;
		change.loss_z = (change.loss_after - change.loss_before) /
		                sqrt(pooled * (1 - pooled) * (1 / before->sent + 1 / after->sent));
	}
	*ret_change = change;
}
