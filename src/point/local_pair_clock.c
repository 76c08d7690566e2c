/* SPDX-License-Identifier: Apache-2.0 */
/* A clock step while both interfaces are measured: it cuts one interval, and the next begins by the new time. */
#include "point/local_pair_private.h"

#include "result/cause.h"
#include <stdio.h>

void ow_local_pair_correct(struct ow_local_pair_lane *lane, struct ow_interval_results_input *in,
                           struct ow_joined *joined)
{
	struct ow_interval_result *r = &in->result;
	struct ow_clock_floor floor;
	double sum = 0;
	for (size_t i = 0; i < joined->samples; i++)
		joined->sample[i].at_ns += r->start_ns;
	for (size_t i = 0; i < in->delays; i++)
		sum += (double)joined->delay_ns[i];
	r->mean_ns = in->delays ? ow_value_exact(sum / (double)in->delays) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	(void)ow_segment_clock_correct(lane->clock, lane->direction, joined->sample, joined->samples, NULL, r, &floor);
}

/*
 * The clock was set while packets were read that are not in any interval yet: everything that is not compared mixes two
 * times. New lanes begin by the new time, with the interval after the one that was cut; unless the run was about to
 * end.
 */
static int on_step(struct ow_local_pair *pair, int64_t step_ns, struct ow_error *err)
{
	const struct ow_local_pair_options *o = &pair->options;
	char size[OW_STEP_TEXT], cause[OW_STEP_TEXT + 32];
	int64_t now_ns = ow_point_clock_now_ns(&pair->clock), grid_ns = ow_local_pair_least(o->length_ns, OW_NS_PER_S);
	int64_t last = (now_ns - step_ns - pair->t0_ns) / o->length_ns;
	ow_step_text(step_ns, size);
	snprintf(cause, sizeof cause, ow_cause_clock_stepped, size);
	ow_local_pair_unsurvey(pair);
	int r = ow_local_pair_give_up(pair, last, cause);
	int64_t start_ns = (ow_floor_div(now_ns + OW_LOCAL_PAIR_SETUP_NS, grid_ns) + 1) * grid_ns;
	int64_t shift_ns = start_ns - ow_local_pair_start_of(pair, pair->next);
	pair->t0_ns += shift_ns;
	pair->end_ns += pair->end_ns == INT64_MAX ? 0 : shift_ns;
	pair->stop_ns += pair->stop_ns == INT64_MAX ? 0 : shift_ns;
	ow_recorder_clock_set(pair->recorder);
	pair->passed_ns = INT64_MIN;
	if (r == 0)
		r = ow_local_pair_begin(pair, err);
	if (r == 0 && pair->stopped)
		pair->done = true;
	return r;
}

int ow_local_pair_look_at_clock(struct ow_local_pair *pair, struct ow_error *err)
{
	int64_t step_ns = ow_point_clock_look(&pair->clock);
	return step_ns ? on_step(pair, step_ns, err) : 0;
}
