/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic programme over all order-preserving assignments (formulas section 4). State (i, j): arrival j is packet
 * i.
 *
 *   cost(i, j) = price of the delay d_ij + the least of
 *     the start:            leading packets that were lost, leading arrivals that nobody sent
 *     cost(i', j - 1 - k):  i' < i, k < KEPT arrivals are copies:
 *                           copies + min((i - i' - 1) loss + min(|d_ij - d_i'j'| / sigma, JUMP), OUTAGE)
 *     the same with more copies and JUMP
 *
 * Between two rows the change of the delay is the distance of s_i' from s_i - (r_j - r_j'), so the minimum over all i'
 * takes one sweep: a prefix minimum on one side of that place, a sliding minimum on the other.
 */
#include "reconcile/align_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OUTAGE 30.0 /* largest price of losses between two pairs and of the change of the delay */
/* there may be an outage between arrivals that are this many times further apart than usual */
#define OUTAGE_TIMES 8
#define KEPT         OW_ALIGN_KEPT
#define NONE         OW_ALIGN_NONE

int ow_align_resize(void *array, size_t count, size_t size)
{
	void *old, *grown;
	memcpy(&old, array, sizeof old);
	grown = realloc(old, count * size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof grown);
	return 0;
}

/* Makes room for the states of one more row. */
static int add_states(struct ow_align_run *run, uint32_t count, bool traced)
{
	if (run->states + count <= run->room)
		return 0;
	size_t room = run->room ? run->room * 2 : 4096;
	while (room < run->states + count)
		room *= 2;
	int r = ow_align_resize(&run->cost, room, sizeof *run->cost);
	if (r == 0 && traced)
		r = ow_align_resize(&run->origin, room, sizeof *run->origin);
	run->room = r == 0 ? room : run->room;
	return r;
}

/* A transition to state i of the row. */
static void offer(struct ow_align_run *run, const struct ow_align_row *row, uint32_t i, double cost, uint32_t from_row,
                  uint32_t from)
{
	size_t at = row->at + (i - row->low);
	if (cost >= run->cost[at])
		return;
	run->cost[at] = cost;
	if (run->origin)
		run->origin[at] = (struct ow_align_origin){from_row, from};
}

/*
 * Computes the states of row j from those of row `back`. For each packet i the best packet before it: `any`, with a
 * jump of the delay; `outage`, with any losses; `left`, with a delay that became longer, by a prefix minimum; and from
 * the queue, with one that became shorter, by a sliding minimum.
 */
static void from_row(struct ow_aligner *a, struct ow_align_run *run, const struct ow_align_view *v,
                     const struct ow_align_row *row, uint32_t j, uint32_t back)
{
	const struct ow_align_row *old = &run->row[back];
	const double *cost = run->cost + old->at, loss = a->model.loss, scale = 1 / a->model.sigma_ns;
	double apart = v->received[j] - v->received[back], skipped = v->skip[j] - v->skip[back + 1];
	double left = INFINITY, any = INFINITY, outage = INFINITY;
	uint32_t left_from = 0, any_from = 0, outage_from = 0, next = old->low, taken = old->low, head = 0, tail = 0;
	uint32_t end = old->low + old->count;
	for (uint32_t i = row->low; i < row->low + row->count; i++) {
		double place = v->sent[i] - apart;
		/* Possible packets: those before i. */
		for (; next < i && next < end; next++) {
			double key = cost[next - old->low] - loss * next;
			if (cost[next - old->low] < outage) {
				outage = cost[next - old->low];
				outage_from = next;
			}
			if (key < any) {
				any = key;
				any_from = next;
			}
			key += v->sent[next] * scale;
			while (tail > head && a->queue_key[tail - 1] >= key)
				tail--;
			a->queue_key[tail] = key;
			a->queue[tail++] = next;
		}
		for (; taken < next && v->sent[taken] <= place; taken++) {
			double key = cost[taken - old->low] - loss * taken - v->sent[taken] * scale;
			if (key < left) {
				left = key;
				left_from = taken;
			}
		}
		while (head < tail && a->queue[head] < taken)
			head++;
		double more = skipped + loss * (i - 1.0);
		offer(run, row, i, any + a->model.jump + more, back, any_from);
		offer(run, row, i, outage + OUTAGE + skipped, back, outage_from);
		offer(run, row, i, left + place * scale + more, back, left_from);
		if (head < tail) {
			offer(run, row, i, a->queue_key[head] - place * scale + more, back, a->queue[head]);
		}
	}
}

/* The cheapest of the packets before `next`, which are no longer in any row. */
struct far_before {
	double cost;
	uint32_t row, sent, next;
};

/* Reaches the states of row j from any row before, with a jump. */
static void from_far(const struct ow_aligner *a, struct ow_align_run *run, const struct ow_align_view *v,
                     const struct ow_align_row *row, uint32_t j, struct far_before *before)
{
	double loss = a->model.loss;
	for (; before->next < row->low; before->next++) {
		double key = run->far[before->next] - loss * before->next;
		if (key < before->cost)
			*before = (struct far_before){key, run->far_row[before->next], before->next, before->next};
	}
	double key = before->cost;
	uint32_t from_row = before->row, from = before->sent;
	for (uint32_t i = row->low; i < row->low + row->count; i++) {
		if (i >= before->next)
			offer(run, row, i, key + v->skip[j] + loss * (i - 1.0), from_row, from);
		if (run->far[i] - loss * i < key) {
			key = run->far[i] - loss * i;
			from_row = run->far_row[i];
			from = i;
		}
	}
}

/* Skipping begins after arrival j, which is packet i. */
static void note_far(struct ow_align_run *run, uint32_t i, uint32_t j, double cost)
{
	if (cost < run->far[i]) {
		run->far[i] = cost;
		run->far_row[i] = j;
	}
}

static int compute_row(struct ow_aligner *a, struct ow_align_run *run, const struct ow_align_view *v, uint32_t j,
                       uint32_t low, uint32_t count, bool traced, struct far_before *before)
{
	struct ow_align_row *row = &run->row[j];
	int r = add_states(run, count, traced);
	if (r < 0)
		return r;
	*row = (struct ow_align_row){low, count, run->states};
	run->states += count;
	for (uint32_t k = 0; k < count; k++)
		run->cost[row->at + k] = INFINITY;
	for (uint32_t k = 0; k < count && traced; k++)
		run->origin[row->at + k] = (struct ow_align_origin){NONE, NONE};
	for (uint32_t k = 1; k <= KEPT && k <= j; k++) {
		if (v->skip[j] - v->skip[j - k + 1] > OW_ALIGN_EXTRA)
			break; /* those between are not copies */
		if (run->row[j - k].count)
			from_row(a, run, v, row, j, j - k);
	}
	from_far(a, run, v, row, j, before);
	bool starts = ow_align_may_start(a, v, j);
	for (uint32_t i = low; i < low + count; i++) {
		double *cost = &run->cost[row->at + (i - low)];
		if (starts)
			offer(run, row, i, ow_align_lead(&a->model, v, i, j), NONE, NONE);
		*cost += ow_align_pair_cost(&a->model, v, i, j);
		note_far(run, i, j, *cost + a->model.jump - v->skip[j + 1]);
	}
	return 0;
}

/* The packets that arrival j may be: low to high - 1. */
static void possible(const struct ow_align_model *model, const struct ow_align_view *v, uint32_t j, uint32_t *low,
                     uint32_t *high)
{
	*low = ow_align_below(v->sent, v->sents, v->received[j] - (double)model->window_ns);
	*high = ow_align_below(v->sent, v->sents, nextafter(v->received[j] - (double)model->soonest_ns, INFINITY));
}

/* Keeps `width` of the packets from low to high, from `first` on as far as possible. */
static void narrow(uint32_t first, uint32_t width, uint32_t *low, uint32_t *high)
{
	first = first < *low ? *low : first;
	first = first + width > *high ? *high - width : first;
	*low = first;
	*high = first + width;
}

/*
 * Chooses packets if an assignment starts and more are possible than are compared: those with usual delays. If these
 * are not known, the first packet with the first arrival, if the captures start together, otherwise the fastest.
 */
static void narrow_start(const struct ow_aligner *a, const struct ow_align_view *v, uint32_t j, uint32_t *low,
                         uint32_t *high)
{
	const struct ow_align_model *model = &a->model;
	if (!model->ranged && ow_align_start_together(a)) {
		narrow(*low, a->width, low, high);
		return;
	}
	double usual = model->ranged ? (double)model->low_ns / 2 + (double)model->high_ns / 2 : 0;
	uint32_t middle = ow_align_below(v->sent, v->sents, v->received[j] - usual);
	narrow(middle > a->width / 2 ? middle - a->width / 2 : 0, a->width, low, high);
}

/* The packets that the rows before lead to, without too many losses, unless there was an outage. */
static void within_reach(const struct ow_aligner *a, const struct ow_align_run *run, const struct ow_align_view *v,
                         uint32_t j, uint32_t *low, uint32_t *high)
{
	uint32_t least = v->sents, most = 0, reach = (uint32_t)(OW_ALIGN_BEAM / a->model.loss) + 1;
	for (uint32_t k = 1; k <= KEPT && k <= j; k++) {
		const struct ow_align_row *row = &run->row[j - k];
		if (row->count && row->low + 1 < least)
			least = row->low + 1;
		if (row->count && row->low + row->count > most)
			most = row->low + row->count;
	}
	if (least == v->sents)
		return;
	*low = *low < least ? least : *low;
	bool silent = j > 0 && v->received[j] - v->received[j - 1] > OUTAGE_TIMES * a->gap;
	if (!silent && *high > most + reach)
		*high = most + reach;
}

/* The states of row j. best: the packet after the best of the row before, or NONE. */
static void choose_states(struct ow_aligner *a, const struct ow_align_run *run, const struct ow_align_view *v,
                          uint32_t j, bool starts, uint32_t best, uint32_t *low, uint32_t *high)
{
	possible(&a->model, v, j, low, high);
	*low = *low < v->after ? v->after : *low;
	if (!starts)
		within_reach(a, run, v, j, low, high);
	if (*high < *low)
		*high = *low;
	if (*high - *low <= a->width)
		return;
	a->crowded = true;
	if (best == NONE) {
		narrow_start(a, v, j, low, high);
		return;
	}
	/* One further than in the row before, unless the best one leaves the middle half. */
	uint32_t first = j ? run->row[j - 1].low + 1 : *low;
	if (best < first + a->width / 4 || best > first + a->width - a->width / 4)
		first = best > a->width / 2 ? best - a->width / 2 : 0;
	narrow(first, a->width, low, high);
}

/* Drops states at both ends of a row that cost far too much. Returns the best packet, or NONE. */
static uint32_t trim(struct ow_align_run *run, uint32_t j)
{
	struct ow_align_row *row = &run->row[j];
	uint32_t best = 0;
	for (uint32_t k = 1; k < row->count; k++) {
		if (run->cost[row->at + k] < run->cost[row->at + best])
			best = k;
	}
	if (!row->count || isinf(run->cost[row->at + best])) {
		row->count = 0;
		return NONE;
	}
	double limit = run->cost[row->at + best] + OW_ALIGN_BEAM;
	uint32_t first = 0, end = row->count;
	while (run->cost[row->at + first] > limit)
		first++;
	while (run->cost[row->at + end - 1] > limit)
		end--;
	best += row->low;
	row->low += first;
	row->at += first;
	row->count = end - first;
	return best;
}

int ow_align_run_plain(struct ow_aligner *a, const struct ow_align_view *v)
{
	struct ow_align_run *run = &a->plain;
	struct far_before before = {.cost = INFINITY};
	uint32_t best = NONE;
	for (uint32_t j = v->first; j < v->receiveds; j++) {
		uint32_t low, high;
		choose_states(a, run, v, j, ow_align_may_start(a, v, j), best, &low, &high);
		int r = compute_row(a, run, v, j, low, high - low, false, &before);
		if (r < 0)
			return r;
		uint32_t found = trim(run, j);
		best = found == NONE ? best : found + 1;
	}
	return 0;
}

int ow_align_run_like_plain(struct ow_aligner *a, struct ow_align_run *run, const struct ow_align_view *v, bool turned)
{
	struct far_before before = {.cost = INFINITY};
	for (uint32_t j = v->first; j < v->receiveds; j++) {
		const struct ow_align_row *plain = &a->plain.row[turned ? a->receiveds - 1 - j : j];
		uint32_t low = turned ? a->sents - plain->low - plain->count : plain->low, count = plain->count;
		if (low < v->after) {
			count = count > v->after - low ? count - (v->after - low) : 0;
			low = v->after;
		}
		int r = compute_row(a, run, v, j, low, count, !turned, &before);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Puts states from an earlier call into row j. */
static int put_old(struct ow_aligner *a, struct ow_align_run *run, uint32_t j, uint32_t low, const double *cost,
                   uint32_t count, bool traced)
{
	if (low + count > a->sents) /* the rest is not among the packets of this call */
		count = low < a->sents ? a->sents - low : 0;
	int r = add_states(run, count, traced);
	if (r < 0)
		return r;
	run->row[j] = (struct ow_align_row){low, count, run->states};
	for (uint32_t k = 0; k < count; k++) {
		run->cost[run->states] = cost[k];
		if (traced)
			run->origin[run->states] = (struct ow_align_origin){NONE, NONE};
		run->states++;
		note_far(run, low + k, j, cost[k] + a->model.jump - a->skip[j + 1]);
	}
	return 0;
}

int ow_align_begin(struct ow_aligner *a, struct ow_align_run *run, const struct ow_align_carry *carry, bool chosen)
{
	static const double nothing = 0;
	run->states = 0;
	for (uint32_t i = 0; i < a->sents; i++)
		run->far[i] = INFINITY;
	int r = 0;
	for (uint32_t j = 0; carry && j < carry->receiveds && r == 0; j++) {
		const struct ow_align_row *row = &carry->row[j];
		if (chosen)
			r = put_old(a, run, j, carry->chosen[j], &nothing, carry->chosen[j] != NONE, true);
		else
			r = put_old(a, run, j, row->low, carry->cost + row->at, row->count, false);
	}
	return r;
}

double ow_align_least_of_row(const struct ow_align_run *run, const struct ow_align_row *row)
{
	double least = INFINITY;
	for (uint32_t k = 0; k < row->count; k++)
		least = run->cost[row->at + k] < least ? run->cost[row->at + k] : least;
	return least;
}
