/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/tally.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_TOLERANCE 50 /* steps are equal if they differ by less than one part in this many */

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
	for (int i = 0; i < OW_UNCERTAINS; i++) {
		ow_delays_free(tally->uncertain[i]);
		tally->uncertain[i] = NULL;
	}
}

void ow_tally_reset(struct ow_tally *tally)
{
	struct ow_delays *delays = tally->delays;
	tally->delays = NULL;
	ow_tally_done(tally);
	ow_delays_reset(delays);
	start(tally, delays);
}

void ow_tally_flush(struct ow_tally *tally)
{
	ow_delays_add_many(tally->delays, tally->sample, tally->samples);
	tally->samples = 0;
}

/*
 * Delays that are ambiguous by whole periods differ by the same step. Keeps the most frequent step (Boyer and Moore).
 */
static void note_period(struct ow_tally *t, int64_t step_ns, uint32_t packets)
{
	bool same = llabs(step_ns - t->period_ns) <= t->period_ns / PERIOD_TOLERANCE;
	if (t->period_votes <= 0 && !same) {
		t->period_ns = step_ns;
		t->period_votes = t->period_samples = 0;
		same = true;
	}
	t->period_votes += same ? (int64_t)packets : -(int64_t)packets;
	t->period_samples += same ? packets : 0;
}

int ow_tally_uncertain(struct ow_tally *t, int64_t delay_ns, int64_t less_ns, int64_t more_ns, int64_t step_ns,
                       uint32_t packets)
{
	for (int i = 0; i < OW_UNCERTAINS; i++) {
		if (!t->uncertain[i] && ow_delays_create(&t->uncertain[i]) < 0)
			return -ENOMEM;
	}
	ow_delays_add(t->uncertain[OW_UNCERTAIN_ESTIMATE], delay_ns, packets);
	ow_delays_add(t->uncertain[OW_UNCERTAIN_LEAST], delay_ns - less_ns, packets);
	ow_delays_add(t->uncertain[OW_UNCERTAIN_MOST], delay_ns + more_ns, packets);
	note_period(t, step_ns, packets);
	t->ambiguous += packets;
	return 0;
}

const struct ow_delays *ow_tally_borrow(const struct ow_tally *t)
{
	struct ow_delays *all;
	if (!t->uncertain[OW_UNCERTAIN_ESTIMATE])
		return t->delays;
	if (ow_delays_create(&all) < 0)
		return NULL;
	ow_delays_merge(all, t->delays);
	ow_delays_merge(all, t->uncertain[OW_UNCERTAIN_ESTIMATE]);
	return all;
}

void ow_tally_return(const struct ow_tally *t, const struct ow_delays *delays)
{
	if (delays != t->delays)
		ow_delays_free((struct ow_delays *)delays);
}

static void bound_of(const struct ow_delay *delay, struct ow_delay_bound *ret)
{
	*ret = (struct ow_delay_bound){delay->mean_ns, delay->min_ns, delay->max_ns, {0}};
	memcpy(ret->quantile_ns, delay->quantile_ns, sizeof ret->quantile_ns);
}

int ow_delays_bounded(const struct ow_delays *certain, struct ow_delays *const uncertain[OW_UNCERTAINS],
                      struct ow_delay *ret_delay)
{
	if (!uncertain[OW_UNCERTAIN_MOST]) {
		ow_delays_summary(certain, ret_delay);
		return 0;
	}
	struct ow_delays *all;
	struct ow_delay delay[OW_UNCERTAINS];
	if (ow_delays_create(&all) < 0)
		return -ENOMEM;
	for (int i = 0; i < OW_UNCERTAINS; i++) {
		ow_delays_reset(all);
		ow_delays_merge(all, certain);
		ow_delays_merge(all, uncertain[i]);
		ow_delays_summary(all, &delay[i]);
	}
	ow_delays_free(all);
	*ret_delay = delay[OW_UNCERTAIN_ESTIMATE];
	ret_delay->uncertain = ow_delays_samples(uncertain[OW_UNCERTAIN_ESTIMATE]);
	bound_of(&delay[OW_UNCERTAIN_LEAST], &ret_delay->low);
	bound_of(&delay[OW_UNCERTAIN_MOST], &ret_delay->high);
	return 0;
}

int ow_delays_percentiles(const struct ow_delays *certain, struct ow_delays *const uncertain[OW_UNCERTAINS],
                          struct ow_percentile *percentile, unsigned count)
{
	struct ow_delays *all;
	if (ow_delays_create(&all) < 0)
		return -ENOMEM;
	for (int i = 0; i < OW_UNCERTAINS; i++) {
		ow_delays_reset(all);
		ow_delays_merge(all, certain);
		if (uncertain[i])
			ow_delays_merge(all, uncertain[i]);
		for (unsigned p = 0; p < count && ow_delays_samples(all); p++) {
			double delay_ns = ow_delays_quantile(all, percentile[p].percent / 100);
			*(i == OW_UNCERTAIN_ESTIMATE ? &percentile[p].delay_ns
			  : i == OW_UNCERTAIN_LEAST  ? &percentile[p].low_ns
			                             : &percentile[p].high_ns) = delay_ns;
		}
	}
	ow_delays_free(all);
	return 0;
}

int ow_tally_percentiles(const struct ow_tally *t, struct ow_percentile *percentile, unsigned count)
{
	return ow_delays_percentiles(t->delays, t->uncertain, percentile, count);
}

void ow_tally_summary(const struct ow_tally *t, struct ow_delay *ret_delay)
{
	if (ow_delays_bounded(t->delays, t->uncertain, ret_delay) < 0)
		*ret_delay = (struct ow_delay){0};
}

int ow_tally_result(const struct ow_tally *t, struct ow_result *ret_result)
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
	int r = ow_delays_bounded(t->delays, t->uncertain, &ret_result->delay);
	if (r == 0 && 10 * t->period_samples > 9 * ret_result->delay.uncertain)
		ret_result->delay.period_ns = t->period_ns;
	return r;
}
