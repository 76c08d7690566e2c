/* SPDX-License-Identifier: Apache-2.0 */
/* What the station takes of a result. */
#include "station/sample.h"

#include "result/result_clock.h"

#include <math.h>

bool ow_station_times_valid(const struct ow_interval_result *result)
{
	return result->length_ns >= OW_STATION_LENGTH_MIN_NS && result->length_ns <= OW_STATION_LENGTH_MAX_NS &&
	       result->start_ns >= 0 && result->start_ns <= OW_STATION_START_MAX_NS;
}

/* What the clocks may add to a delay; NAN = not known. */
static double clock_error_ns(const struct ow_interval_result *result)
{
	int64_t from = result->clock_from.error_ns, to = result->clock_to.error_ns;
	double error_ns = NAN;
	if (*result->clock_method)
		error_ns = ow_result_clock_error_ns(result);
	else if (from != OW_CLOCK_UNKNOWN && to != OW_CLOCK_UNKNOWN)
		error_ns = (double)from + (double)to;
	return isfinite(error_ns) ? error_ns : NAN;
}

void ow_station_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample)
{
	bool known = result->status != OW_RESULT_UNKNOWN;
	/* The clocks' error is the same from one interval to the next: it hides no change. */
	struct ow_interval_result sampled = *result;
	ow_result_clock_narrow(&sampled);
	const struct ow_value *mean = &sampled.mean_ns, *stddev = &sampled.stddev_ns;
	*ret_sample = (struct ow_watch_sample){
		.start_ns = result->start_ns,
		.length_ns = result->length_ns,
		.has_delay = known && mean->status != OW_VALUE_NONE && result->samples,
		.has_loss = known && result->loss_ratio.status != OW_VALUE_NONE && result->sent > result->pending,
		.mean_ns = mean->value,
		.stddev_ns = stddev->status == OW_VALUE_NONE ? NAN : stddev->value,
		.mean_error_ns = mean->status == OW_VALUE_ESTIMATED ? (mean->high - mean->low) / 3.92 : 0,
		.stddev_error_ns = stddev->status == OW_VALUE_ESTIMATED ? (stddev->high - stddev->low) / 3.92 : 0,
		.clock_error_ns = clock_error_ns(result),
		.clock_set = *result->clock_event,
		.samples = result->samples,
		.sent = result->sent - result->pending,
		.lost = result->lost,
		.lost_whole = result->lost_whole_flows,
		.active = result->active,
		.cause = known ? NULL : result->cause,
	};
}
