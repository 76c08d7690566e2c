/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/tally.h"

#include <stddef.h>

static void start(struct ow_tally *tally, struct ow_delays *delays)
{
	*tally = (struct ow_tally){
		.first_sent_ns = INT64_MAX,
		.last_sent_ns = INT64_MIN,
		.first_received_ns = INT64_MAX,
		.last_received_ns = INT64_MIN,
		.delays = delays,
	};
}

int ow_tally_init(struct ow_tally *tally)
{
	start(tally, NULL);
	return ow_delays_create(&tally->delays);
}

void ow_tally_done(struct ow_tally *tally)
{
	ow_delays_free(tally->delays);
	tally->delays = NULL;
}

void ow_tally_reset(struct ow_tally *tally)
{
	ow_delays_reset(tally->delays);
	start(tally, tally->delays);
}

void ow_tally_flush(struct ow_tally *tally)
{
	ow_delays_add_many(tally->delays, tally->sample, tally->samples);
	tally->samples = 0;
}

void ow_tally_result(const struct ow_tally *t, struct ow_result *ret_result)
{
	*ret_result = (struct ow_result){
		.sent = t->matched + t->lost,
		.received = t->matched + t->extra,
		.matched = t->matched,
		.lost = t->lost,
		.extra = t->extra,
		.duplicated = t->duplicated,
		.ambiguous = t->ambiguous,
		.reordered = t->reordered,
		.exact = true,
	};
	ow_delays_summary(t->delays, &ret_result->delay);
}
