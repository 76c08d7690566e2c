/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a packet may have arrived unseen: from the delays so far, the clocks' errors, and what packets show.
 */
#include "result/interval_results_private.h"
#include "result/result_clock.h"

#include <math.h>

/* If clock errors are not known, a packet may seem to arrive this much before it was sent. */
#define EARLY_UNKNOWN_NS INT64_C(50000000)
/* Drops of a ring are counted up to this much later, so possibly in the next interval. */
#define DROPS_LAG_NS INT64_C(50000000)

void ow_interval_results_raise_ahead(struct ow_interval_results *results, int64_t delay_ns)
{
	int64_t ahead = delay_ns < 0 ? 2 * -(delay_ns > -INT64_MAX / 4 ? delay_ns : -INT64_MAX / 4) : 0;
	if (ahead > results->ahead_ns)
		results->ahead_ns = ahead;
}

void ow_interval_results_learn_shown(struct ow_interval_results *results, const struct ow_interval_results_input *in)
{
	int64_t least = 0;
	size_t negative = 0;
	for (size_t i = 0; i < in->delays; i++) {
		int64_t delay_ns = in->delay_ns[i] - in->shift_ns;
		least = delay_ns < least ? delay_ns : least;
		negative += delay_ns < 0;
	}
	double mean_ns =
		in->result.mean_ns.value - (double)in->shift_ns - (double)ow_result_clock_added_ns(&in->result);
	if (!in->delays && in->result.mean_ns.status != OW_VALUE_NONE && mean_ns < 0)
		least = (int64_t)fmax(mean_ns, -1e18);
	else if (negative < in->delays / 4 + 1)
		return;
	int64_t shown = least > -INT64_MAX / 4 ? 2 * -least : INT64_MAX / 2;
	results->shown_ns = shown > results->shown_ns ? shown : results->shown_ns;
}

void ow_interval_results_raise_reach(struct ow_interval_results *results, int64_t delay_ns)
{
	int64_t size = delay_ns < 0 ? -(delay_ns + 1) : delay_ns;
	int64_t reach = size > INT64_MAX / 4 ? INT64_MAX / 2 : 2 * size;
	if (reach > results->reach_ns)
		results->reach_ns = reach;
	ow_interval_results_raise_ahead(results, delay_ns - results->shift_ns);
}

bool ow_interval_results_is_unplaced(const struct ow_interval_results *results, const struct ow_sighting *arrival)
{
	return results->unplaced_ns > 0 && (arrival->time_ns == OW_INTERVAL_RESULTS_NO_TIME ||
	                                    arrival->time_ns < results->unplaced_ns + results->shift_ns);
}

/* The reason why a packet of the oldest interval may have arrived unseen in this one. */
static enum ow_doubt doubt_of(const struct ow_interval_results_open *open, const struct ow_interval_results_open *own)
{
	return open->unknown                                          ? OW_DOUBT_UNKNOWN
	       : open->incomplete                                     ? OW_DOUBT_INCOMPLETE
	       : open->result.ring_drops_to                           ? OW_DOUBT_DROPS
	       : open->result.sample_shift > own->result.sample_shift ? OW_DOUBT_SAMPLED
	                                                              : OW_DOUBT_NONE;
}

int64_t ow_interval_results_early(const struct ow_interval_results *results, const struct ow_interval_result *r,
                                  int64_t shift_ns)
{
	int64_t most = r->length_ns / 2, early = EARLY_UNKNOWN_NS;
	if (r->clock_from.error_ns < most && r->clock_to.error_ns < most)
		early = r->clock_from.error_ns + r->clock_to.error_ns;
	early = early < most ? early : most;
	/* The receiver's interval begins later, by the usual delay: faster packets arrive before it. */
	early += shift_ns > 0 ? shift_ns : 0;
	early = early > results->shown_ns ? early : results->shown_ns;
	return early / OW_LATE_PACKETS_EARLY_MAX < r->length_ns ? early : r->length_ns * OW_LATE_PACKETS_EARLY_MAX;
}

/* Whether it could have arrived unseen before its own interval, the oldest one. */
static bool missed_before(const struct ow_interval_results *results, int64_t sent_ns)
{
	const struct ow_interval_results_open *oldest = ow_interval_results_open_of(results, results->first);
	const struct ow_interval_result *own = &oldest->result;
	int64_t early = ow_interval_results_early(results, own, oldest->shift_ns);
	early = early < own->length_ns ? early : own->length_ns;
	/* If no packet has ever arrived so early, none does. */
	if (results->ahead_ns < early && (results->ahead_ns >= 0 || results->before == OW_DOUBT_BEGUN))
		early = results->ahead_ns;
	return sent_ns - own->start_ns < early;
}

bool ow_interval_results_on_undecided(void *arg, int64_t sent_ns)
{
	struct ow_interval_results *results = arg;
	const struct ow_interval_results_open *own = ow_interval_results_open_of(results, results->first);
	int64_t wait = (int64_t)results->horizon * own->result.length_ns;
	if (results->changed) {
		results->doubt = OW_DOUBT_CHANGED;
		return true;
	}
	int64_t last_ns = sent_ns + (results->reach_ns >= 0 && results->reach_ns < wait ? results->reach_ns : wait);
	/* If nothing has arrived that was sent later, all of it may be held up for longer than any packet before. */
	int64_t unseen_ns = sent_ns > own->matched_ns ? sent_ns + wait : last_ns;
	for (uint64_t n = results->first; results->blind + results->coarser && n < results->next; n++) {
		const struct ow_interval_results_open *open = ow_interval_results_open_of(results, n);
		const struct ow_interval_result *r = &open->result;
		enum ow_doubt doubt = doubt_of(open, own);
		int64_t start_ns = r->start_ns - (doubt == OW_DOUBT_DROPS ? DROPS_LAG_NS : 0);
		if (!doubt || unseen_ns < start_ns || sent_ns >= r->start_ns + r->length_ns)
			continue;
		results->doubt = doubt;
		results->doubted = r->interval;
		return true;
	}
	enum ow_doubt before = results->before;
	if (!before && results->before_shift > own->result.sample_shift)
		before = OW_DOUBT_SAMPLED;
	if (before && missed_before(results, sent_ns)) {
		results->doubt = before;
		results->doubted = own->result.interval - 1;
		return true;
	}
	/* A packet has waited for less than the waiting time only at the end, and if the end splits an interval. */
	if (last_ns < results->end_ns)
		return false;
	results->doubt = OW_DOUBT_ENDED;
	return true;
}

/* What arrives sooner after the start of the first interval than any packet took was sent before it. Since the start of
 * the receiver's interval, which may be shifted. */
static int64_t least_delay(const struct ow_interval_results_input *in)
{
	int64_t least = in->delays ? INT64_MAX : 0;
	for (size_t i = 0; i < in->delays; i++)
		least = in->delay_ns[i] < least ? in->delay_ns[i] : least;
	return least > in->shift_ns ? least - in->shift_ns : 0;
}

int64_t ow_interval_results_unplaced_until(const struct ow_interval_results *results,
                                           const struct ow_interval_results_input *in)
{
	const struct ow_interval_result *next = &in->result;
	int64_t wait = (int64_t)results->horizon * next->length_ns;
	int64_t reach = results->reach_ns >= 0 && results->reach_ns < wait ? results->reach_ns : wait;
	/* After a gap the last interval stands for all missing ones. */
	int64_t end_ns = next->start_ns;
	for (uint64_t n = results->next; n-- > results->first; end_ns -= next->length_ns) {
		if (ow_interval_results_open_of(results, n)->unknown)
			return end_ns + reach > next->start_ns ? end_ns + reach - next->start_ns : 0;
	}
	return results->begun_ns == INT64_MIN ? least_delay(in) : 0;
}
