/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that is set while both interfaces are measured: it cuts one interval, and the next begins by the new one. */
#include "point/local_pair_private.h"

#include <stdio.h>

static void forget_books(struct ow_local_pair *both, struct ow_local_pair_lane *lane)
{
	for (int side = 0; side < 2; side++) {
		struct ow_local_pair_book *book = lane->book + side;
		ow_recorder_remove_lane(both->recorder, book->lane);
		both->owner[book->lane] = UINT32_MAX;
		ow_interval_log_free(book->ledger);
		ow_interval_packets_free(book->page);
		*book = (struct ow_local_pair_book){.source = book->source};
	}
	ow_interval_packets_free(lane->before);
	lane->before = NULL;
}

/* What the step has cut is unknown, and what waits for its arrival undecided: the next interval has another clock. */
static int tell_step(struct ow_local_pair *both, struct ow_local_pair_lane *lane, int64_t last, const char *cause)
{
	int r = 0;
	for (int64_t i = both->next; r == 0 && i <= last; i++) {
		struct ow_interval_result result = {.interval = i + both->split - both->lead,
		                                    .start_ns = ow_local_pair_start_of(both, i),
		                                    .length_ns = both->options.length_ns,
		                                    .reordered = OW_RESULT_NOT_COUNTED};
		ow_local_pair_complete(both, lane, &result);
		snprintf(result.cause, sizeof result.cause, "%s", cause);
		if (i >= both->lead && result.start_ns < both->end_ns)
			r = ow_interval_results_unknown(lane->settle, &result, false);
	}
	ow_interval_results_finish(lane->settle);
	return r;
}

/*
 * The clock was set, as packets were taken that are not in any page yet: all that is not compared is of two clocks. New
 * lanes begin by the new one, with the interval after the one that was cut; unless the run was about to end.
 */
static int on_step(struct ow_local_pair *both, int64_t step_ns, struct ow_error *err)
{
	const struct ow_local_pair_options *o = &both->options;
	char size[OW_STEP_TEXT], cause[OW_STEP_TEXT + 32];
	int64_t now_ns = ow_steps_now_ns(&both->steps), grid_ns = ow_local_pair_least(o->length_ns, OW_NS_PER_S);
	int64_t last = (now_ns - step_ns - both->t0_ns) / o->length_ns;
	int r = 0;
	ow_step_text(step_ns, size);
	snprintf(cause, sizeof cause, "clock stepped by %s", size);
	both->holding = true;
	for (size_t i = 0; r == 0 && i < both->lanes; i++) {
		r = tell_step(both, both->lane + i, last, cause);
		forget_books(both, both->lane + i);
	}
	ow_local_pair_release(both);
	both->next = last + 1 > both->next ? last + 1 : both->next;
	both->base = both->next;
	int64_t start_ns = ow_local_pair_floor(now_ns + OW_LOCAL_PAIR_SETUP_NS, grid_ns) + grid_ns;
	int64_t shift_ns = start_ns - ow_local_pair_start_of(both, both->next);
	both->t0_ns += shift_ns;
	both->end_ns += both->end_ns == INT64_MAX ? 0 : shift_ns;
	both->stop_ns += both->stop_ns == INT64_MAX ? 0 : shift_ns;
	ow_recorder_clock_set(both->recorder);
	both->passed_ns = INT64_MIN;
	for (size_t i = 0; r == 0 && i < both->lanes; i++)
		r = ow_local_pair_add_books(both, i, err);
	if (r == 0 && both->stopped)
		both->done = true;
	return r;
}

int ow_local_pair_look_at_clock(struct ow_local_pair *both, struct ow_error *err)
{
	struct ow_steps_reading reading;
	if (both->files)
		return 0;
	/* One clock stamps both sides: no error of it matters but a step. */
	ow_steps_read(OW_STEPS_LEAST_NS / 2, &reading);
	int64_t step = ow_steps_check(&both->steps, &reading, OW_STEPS_LEAST_NS);
	return step ? on_step(both, step, err) : 0;
}
