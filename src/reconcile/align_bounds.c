/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the plausible delays. The sum of the forward and the backward run is the cost of the best assignment through a
 * state; states within PLAUSIBLE of the best assignment are plausible.
 */
#include "reconcile/align_private.h"

#include <math.h>

#define PLAUSIBLE 16.0 /* the usual price above the best from which on an assignment is not plausible */
#define NONE      OW_ALIGN_NONE

/* The cost of the best assignment in which arrival j is packet i. */
static double sum_of_both(const struct ow_aligner *a, uint32_t i, uint32_t j, const struct ow_align_view *forth)
{
	const struct ow_align_row *row = &a->plain.row[j], *turned = &a->back.row[a->receiveds - 1 - j];
	uint32_t t = a->sents - 1 - i;
	if (t < turned->low || t >= turned->low + turned->count)
		return INFINITY;
	return a->plain.cost[row->at + (i - row->low)] + a->back.cost[turned->at + (t - turned->low)] -
	       ow_align_pair_cost(&a->model, forth, i, j);
}

static double best_of_all(const struct ow_aligner *a, const struct ow_align_view *forth)
{
	double best = INFINITY;
	for (uint32_t j = 0; j < a->old_receiveds; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		for (uint32_t k = 0; k < row->count; k++)
			best = fmin(best, a->plain.cost[row->at + k] + ow_align_tail(a, forth, row->low + k, j));
	}
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		for (uint32_t i = row->low; i < row->low + row->count; i++) {
			double sum = sum_of_both(a, i, j, forth);
			best = sum < best ? sum : best;
		}
	}
	return best;
}

static void widen(double *least, double *most, double d)
{
	*least = d < *least ? d : *least;
	*most = d > *most ? d : *most;
}

/* The possible delays of packets that overtook each other. */
static void widen_by_reordering(const struct ow_aligner *a, uint32_t i, uint32_t j, double *least, double *most)
{
	double reach = (double)a->model.reorder_ns;
	if (reach <= 0)
		return;
	uint32_t first = ow_align_below(a->sent, a->sents, a->sent[i] - reach);
	uint32_t last = ow_align_below(a->sent, a->sents, nextafter(a->sent[i] + reach, INFINITY)) - 1;
	widen(least, most, a->received[j] - a->sent[first]);
	widen(least, most, a->received[j] - a->sent[last]);
	first = ow_align_below(a->received, a->receiveds, a->received[j] - reach);
	last = ow_align_below(a->received, a->receiveds, nextafter(a->received[j] + reach, INFINITY)) - 1;
	/* The first arrival of a packet counts; its copies do not. */
	while (first < j && a->chosen[first] == NONE)
		first++;
	while (last > j && a->chosen[last] == NONE)
		last--;
	widen(least, most, a->received[first] - a->sent[i]);
	widen(least, most, a->received[last] - a->sent[i]);
}

/*
 * The arrivals first to last - 1 are between the first and the last pair of every plausible assignment. Others may have
 * been sent while the sender's capture did not run.
 */
static void sure_rows(const struct ow_aligner *a, const struct ow_align_view *forth, double limit, uint32_t *first,
                      uint32_t *last)
{
	*first = a->old_receiveds;
	*last = a->receiveds;
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct ow_align_row *row = &a->plain.row[j], *turned = &a->back.row[a->receiveds - 1 - j];
		bool starts = ow_align_may_start(a, forth, j) && turned->count == row->count;
		bool ends = *last == a->receiveds && row->count &&
		            ow_align_least_of_row(&a->plain, row) + ow_align_least_tail(a, j) <= limit;
		for (uint32_t k = 0; k < row->count && (starts || ends); k++) {
			uint32_t i = row->low + k;
			if (ends && *last == a->receiveds &&
			    a->plain.cost[row->at + k] + ow_align_tail(a, forth, i, j) <= limit)
				*last = j + 1;
			if (starts && a->back.cost[turned->at + (turned->count - 1 - k)] +
			                              ow_align_lead(&a->model, forth, i, j) <=
			                      limit)
				*first = j;
		}
	}
}

/* The results of the runs for all arrivals. */
struct verdict {
	double limit;                   /* states of assignments that cost more are not plausible */
	double shortest;                /* plausible delay of all */
	uint32_t first_sure, last_sure; /* see sure_rows */
};

/*
 * Writes the plausible delays of each packet to least and most, and those of each arrival, until bound_pair combines
 * them, to less_ns and more_ns; more < less means that there are none.
 */
static void note_plausible(struct ow_aligner *a, const struct ow_align_view *forth, struct verdict *verdict,
                           struct ow_align_arrival *arrival)
{
	for (uint32_t i = 0; i < a->sents; i++) {
		a->least[i] = INFINITY;
		a->most[i] = -INFINITY;
	}
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		double least = INFINITY, most = -INFINITY, step = INFINITY, last = NAN;
		for (uint32_t i = row->low; i < row->low + row->count; i++) {
			if (sum_of_both(a, i, j, forth) > verdict->limit)
				continue;
			double d = a->received[j] - a->sent[i];
			widen(&least, &most, d);
			widen(&a->least[i], &a->most[i], d);
			step = last - d < step ? last - d : step;
			last = d;
		}
		verdict->shortest = least < verdict->shortest ? least : verdict->shortest;
		arrival[j - a->old_receiveds] = (struct ow_align_arrival){
			.sent = a->chosen[j],
			.forced = a->forced[j],
			.step_ns = isfinite(step) ? (int64_t)step : 0,
			.less_ns = isfinite(least) ? (int64_t)least : INT64_MAX,
			.more_ns = isfinite(most) ? (int64_t)most : INT64_MIN,
		};
	}
}

static void widen_by_arrival(const struct ow_align_arrival *noted, double *least, double *most)
{
	if (noted->less_ns > noted->more_ns)
		return;
	widen(least, most, (double)noted->less_ns);
	widen(least, most, (double)noted->more_ns);
}

/* An arrival without a packet next to arrival j may be the one that counts instead. */
static void widen_by_unpaired(const struct ow_aligner *a, uint32_t j, const struct ow_align_arrival *out, double *least,
                              double *most)
{
	for (uint32_t k = j; k > a->old_receiveds && a->chosen[k - 1] == NONE; k--)
		widen_by_arrival(out - (j - k) - 1, least, most);
	for (uint32_t k = j + 1; k < a->receiveds && a->chosen[k] == NONE; k++)
		widen_by_arrival(out + (k - j), least, most);
}

/* The possible delays of the pair of arrival j and its packet: those of either one. */
static void bound_pair(const struct ow_aligner *a, uint32_t j, const struct verdict *verdict,
                       struct ow_align_arrival *out)
{
	uint32_t i = out->sent;
	double d = a->received[j] - a->sent[i], least = d, most = d;
	widen_by_arrival(out, &least, &most);
	widen_by_unpaired(a, j, out, &least, &most);
	if (a->least[i] <= a->most[i]) {
		widen(&least, &most, a->least[i]);
		widen(&least, &most, a->most[i]);
	}
	widen_by_reordering(a, i, j, &least, &most);
	/* The arrival may belong to none of these packets. */
	bool sure = j >= verdict->first_sure && j < verdict->last_sure && !a->forced[j];
	if (!sure && verdict->shortest < least)
		least = verdict->shortest;
	out->less_ns = (int64_t)(d - least);
	out->more_ns = (int64_t)(most - d);
	out->sent = i - a->old_sents;
}

/*
 * The price below which an arrival is a copy of the one before it. If with the delay of that one it was sent after the
 * end of the sender's capture, it is rather the next of several identical packets, unless packets are known to be copied.
 */
static double dearest_copy(const struct ow_aligner *a, uint32_t j)
{
	uint32_t before = a->chosen[j - 1];
	double delay = before == NONE ? 0 : a->received[j - 1] - a->sent[before];
	bool ended = before != NONE && a->sents > 1 && a->received[j] - delay > ow_align_offset(a, a->model.sent_to_ns);
	return ended ? OW_ALIGN_NO_COPIES : OW_ALIGN_EXTRA;
}

void ow_align_judge(struct ow_aligner *a, const struct ow_align_view *forth, struct ow_align_arrival *arrival)
{
	struct verdict verdict = {.limit = best_of_all(a, forth) +
	                                   (a->model.plausible > 0 ? a->model.plausible : PLAUSIBLE),
	                          .shortest = INFINITY};
	sure_rows(a, forth, verdict.limit, &verdict.first_sure, &verdict.last_sure);
	note_plausible(a, forth, &verdict, arrival);
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		struct ow_align_arrival *out = &arrival[j - a->old_receiveds];
		if (out->sent != NONE)
			bound_pair(a, j, &verdict, out);
	}
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		struct ow_align_arrival *out = &arrival[j - a->old_receiveds];
		if (out->sent != NONE)
			continue;
		bool after = j > 0 && (a->chosen[j - 1] != NONE || (j > a->old_receiveds && out[-1].copy));
		out->copy = after && a->skip[j + 1] - a->skip[j] < dearest_copy(a, j);
		out->less_ns = out->more_ns = 0;
	}
}

void ow_align_judge_crowd(const struct ow_aligner *a, struct ow_align_arrival *arrival)
{
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		struct ow_align_arrival *out = &arrival[j - a->old_receiveds];
		uint32_t i = a->chosen[j];
		*out = (struct ow_align_arrival){.sent = i, .forced = a->forced[j]};
		if (i == NONE)
			continue;
		double d = a->received[j] - a->sent[i], least = d, most = d;
		widen(&least, &most, (double)a->model.soonest_ns);
		widen(&least, &most, (double)a->model.window_ns);
		out->sent = i - a->old_sents;
		out->less_ns = (int64_t)(d - least);
		out->more_ns = (int64_t)(most - d);
	}
}
