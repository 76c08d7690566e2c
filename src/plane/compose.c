/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the results of routes from the results of places. */
#include "plane/compose.h"
#include "estimate/distribution.h"
#include <math.h>

/* The values of one way, or of the mixture of several ways. */
struct part {
	double mean, variance, through;
	double mean_error2, variance_error2, loss_error2; /* squares of standard errors */
	bool has_delay, has_loss;
};

/* The variance of the loss ratio of n packets. If none was lost: the variance with half a packet lost. */
static double loss_variance(const struct ow_watch_sample *sample)
{
	double n = (double)sample->sent, p = ((double)sample->lost + 0.5) / (n + 1);
	return p * (1 - p) / (n + 1);
}

const struct ow_watch_sample ow_compose_folded;

static struct part along(const struct ow_way *way, uint32_t number, ow_compose_find *find, void *arg,
                         struct ow_composed *composed)
{
	struct part part = {.through = 1, .has_delay = true, .has_loss = true};
	for (uint32_t i = 0; i < way->places; i++) {
		const struct ow_watch_sample *sample = find(arg, way, &way->place[i]);
		if (sample == &ow_compose_folded) {
			composed->folded++;
			continue;
		}
		composed->places++;
		if (sample && sample->length_ns > composed->length_ns)
			composed->length_ns = sample->length_ns;
		if (!sample || !sample->has_delay || !sample->has_loss || !sample->sent) {
			if (composed->missing++ == 0) {
				composed->missing_way = number;
				composed->missing_place = i;
			}
		}
		if (sample && sample->has_delay) {
			part.mean += sample->mean_ns;
			part.variance += sample->stddev_ns * sample->stddev_ns;
			part.mean_error2 += sample->mean_error_ns * sample->mean_error_ns;
			double error = 2 * sample->stddev_ns * sample->stddev_error_ns;
			part.variance_error2 += error * error;
			composed->clock_error_ns = fmax(composed->clock_error_ns, sample->clock_error_ns);
			if (isnan(sample->clock_error_ns))
				composed->clock_error_ns = INFINITY;
			composed->active |= sample->active;
		} else {
			part.has_delay = false;
		}
		if (sample && sample->has_loss && sample->sent) {
			double ratio = (double)sample->lost / (double)sample->sent;
			part.through *= 1 - ratio;
			part.loss_error2 += loss_variance(
				sample); /* approximately the relative error of the share that gets through */
		} else {
			part.has_loss = false;
		}
	}
	return part;
}

static struct ow_value around(double value, double error2, double low, double high)
{
	double half = OW_NORMAL_975 * sqrt(error2);
	return (struct ow_value){OW_VALUE_ESTIMATED, value, fmax(value - half, low), fmin(value + half, high),
	                         OW_NO_REASON};
}

void ow_compose(const struct ow_route *route, ow_compose_find *find, void *arg, struct ow_composed *ret_composed)
{
	struct ow_composed composed = {.clock_error_ns = 0};
	struct part mix = {.has_delay = true, .has_loss = true, .through = 0};
	double squares = 0, known = 0;
	for (uint32_t w = 0; w < route->ways; w++) {
		double share = route->way[w].share;
		struct part part = along(&route->way[w], w, find, arg, &composed);
		known += share * part.mean;
		mix.has_delay &= part.has_delay;
		mix.has_loss &= part.has_loss;
		mix.mean += share * part.mean;
		squares += share * (part.variance + part.mean * part.mean);
		/* Ways share places, so their errors can be correlated. This bound holds for any correlation. */
		mix.mean_error2 += share * part.mean_error2;
		mix.variance_error2 += share * part.variance_error2;
		mix.through += share * part.through;
		mix.loss_error2 += share * part.loss_error2;
	}
	composed.known_mean_ns = known;
	bool has_spread = mix.has_delay && !isnan(squares); /* NAN: a place has a mean, but no standard deviation */
	mix.variance = fmax(squares - mix.mean * mix.mean, 0);
	composed.mean_ns = mix.has_delay ? around(mix.mean, mix.mean_error2, -INFINITY, INFINITY)
	                                 : ow_value_none(OW_REASON_PATH_INCOMPLETE);
	double spread = sqrt(mix.variance), spread_error2 = spread > 0 ? mix.variance_error2 / (4 * mix.variance) : 0;
	composed.stddev_ns =
		has_spread ? around(spread, spread_error2, 0, INFINITY) : ow_value_none(OW_REASON_PATH_INCOMPLETE);
	composed.loss_ratio = mix.has_loss ? around(1 - mix.through, mix.loss_error2, 0, 1)
	                                   : ow_value_none(OW_REASON_PATH_INCOMPLETE);
	composed.clock_error_ns = isinf(composed.clock_error_ns) ? NAN : 2 * composed.clock_error_ns;
	*ret_composed = composed;
}
