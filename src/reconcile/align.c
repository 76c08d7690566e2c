/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order-preserving alignment of identical packets (formulas section 4).
 *
 * There are three runs of the dynamic programme. One goes forwards and one backwards; both together show which delays
 * are plausible. The third goes forwards with a small price on the delay itself and chooses the assignment: if the
 * delay is uncertain by whole periods, the shortest.
 */
#include "reconcile/align_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHORTEST        0.04 /* price of a delay of one sigma, to choose between assignments that differ by whole periods */
#define JUMP_SIGMA      5.0  /* a change of the delay that is larger than this many usual ones is a jump */
#define JUMPS_MANY      0.02 /* share of changes from which on jumps are usual: more than random variation explains */
#define JUMP_BASE       2.0  /* price of the size of a jump */
#define KEPT            OW_ALIGN_KEPT
#define SIGMA_RUNS      4   /* most alignments to find the usual change of the delay, .. */
#define SIGMA_ENOUGH    0.1 /* .. until it changes by less than this share */
#define LOSS_COST_LEAST 2.0 /* -log of the loss ratio */
#define LOSS_COST_MOST  7.0
#define NONE            OW_ALIGN_NONE

int ow_aligner_create(struct ow_aligner **ret_aligner)
{
	*ret_aligner = calloc(1, sizeof **ret_aligner);
	return *ret_aligner ? 0 : -ENOMEM;
}

static void free_run(struct ow_align_run *run)
{
	free(run->row);
	free(run->cost);
	free(run->origin);
	free(run->far);
	free(run->far_row);
}

void ow_aligner_free(struct ow_aligner *a)
{
	if (!a)
		return;
	double *const times[] = {a->sent,
	                         a->received,
	                         a->skip,
	                         a->turned_sent,
	                         a->turned_received,
	                         a->turned_skip,
	                         a->least,
	                         a->most,
	                         a->change,
	                         a->queue_key,
	                         a->not_before,
	                         a->not_after,
	                         a->turned_not_before,
	                         a->turned_not_after};
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		free(times[i]);
	free(a->queue);
	free(a->chosen);
	free(a->forced);
	free_run(&a->plain);
	free_run(&a->back);
	free_run(&a->choice);
	free(a);
}

static uint32_t rounded(uint32_t count)
{
	uint32_t room = 64;
	while (room < count)
		room *= 2;
	return room;
}

static int make_sent_room(struct ow_aligner *a, uint32_t sents)
{
	struct ow_align_run *const runs[] = {&a->plain, &a->back, &a->choice};
	double **const arrays[] = {&a->sent, &a->turned_sent, &a->least, &a->most, &a->queue_key};
	if (sents <= a->sent_room)
		return 0;
	uint32_t room = rounded(sents);
	int r = ow_align_resize(&a->queue, room, sizeof *a->queue);
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays && r == 0; i++)
		r = ow_align_resize(arrays[i], room, sizeof(double));
	for (int i = 0; i < 3 && r == 0; i++) {
		r = ow_align_resize(&runs[i]->far, room, sizeof(double));
		if (r == 0)
			r = ow_align_resize(&runs[i]->far_row, room, sizeof(uint32_t));
	}
	a->sent_room = r == 0 ? room : a->sent_room;
	return r;
}

static int make_received_room(struct ow_aligner *a, uint32_t receiveds)
{
	struct ow_align_run *const runs[] = {&a->plain, &a->back, &a->choice};
	double **const arrays[] = {&a->received,        &a->skip,       &a->turned_received, &a->turned_skip,
	                           &a->change,          &a->not_before, &a->not_after,       &a->turned_not_before,
	                           &a->turned_not_after};
	if (receiveds <= a->received_room)
		return 0;
	uint32_t room = rounded(receiveds);
	int r = ow_align_resize(&a->chosen, room, sizeof *a->chosen);
	if (r == 0)
		r = ow_align_resize(&a->forced, room, sizeof *a->forced);
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays && r == 0; i++)
		r = ow_align_resize(arrays[i], (size_t)room + 1, sizeof(double));
	for (int i = 0; i < 3 && r == 0; i++)
		r = ow_align_resize(&runs[i]->row, room, sizeof(struct ow_align_row));
	a->received_room = r == 0 ? room : a->received_room;
	return r;
}

void ow_align_carry_free(struct ow_align_carry *carry)
{
	if (!carry)
		return;
	free(carry->cost);
	free(carry->sent);
	free(carry);
}

/* Whether more packets are possible for an arrival than are compared. */
static bool crowd(const struct ow_aligner *a)
{
	double last = a->receiveds ? a->received[a->receiveds - 1] : 0;
	uint32_t least = ow_align_below(a->sent, a->sents, last - (double)a->model.window_ns);
	return ow_align_below(a->sent, a->sents, last - (double)a->model.soonest_ns) > least + OW_ALIGN_WIDTH;
}

/* The delay that is preferred if the copies do not determine it. */
static double usual_delay(const struct ow_aligner *a)
{
	if (a->model.ranged)
		return (double)a->model.least_ns;
	return a->width == OW_ALIGN_CROWD && ow_align_start_together(a) ? a->received[0] - a->sent[0] : 0;
}

/* The same times, from the last to the first. */
static void turn(struct ow_aligner *a)
{
	for (uint32_t i = 0; i < a->sents; i++)
		a->turned_sent[i] = -a->sent[a->sents - 1 - i];
	for (uint32_t j = 0; j < a->receiveds; j++) {
		uint32_t from = a->receiveds - 1 - j;
		a->turned_received[j] = -a->received[from];
		a->turned_not_before[j] = -a->not_after[from];
		a->turned_not_after[j] = -a->not_before[from];
	}
	for (uint32_t j = 0; j <= a->receiveds; j++)
		a->turned_skip[j] = a->skip[a->receiveds] - a->skip[a->receiveds - j];
}

/* The times when the arrivals were sent, as far as they are known. */
static void load_order(struct ow_aligner *a)
{
	const struct ow_align_model *model = &a->model;
	for (uint32_t j = 0; j < a->receiveds; j++) {
		bool known = model->not_before_ns && j >= a->old_receiveds;
		uint32_t k = j - a->old_receiveds;
		a->not_before[j] = known ? ow_align_offset(a, model->not_before_ns[k]) : -INFINITY;
		a->not_after[j] = known ? ow_align_offset(a, model->not_after_ns[k]) : INFINITY;
	}
}

static int load(struct ow_aligner *a, const struct ow_align_carry *carry, const int64_t *sent_ns, uint32_t sents,
                const int64_t *received_ns, uint32_t receiveds)
{
	uint32_t old_s = carry ? carry->sents : 0, old_r = carry ? carry->receiveds : 0;
	int r = make_sent_room(a, old_s + sents + 1);
	if (r == 0)
		r = make_received_room(a, old_r + receiveds + 1);
	if (r < 0)
		return r;
	a->base_ns = carry ? carry->base_ns : receiveds ? received_ns[0] : 0;
	a->old_sents = old_s;
	a->old_receiveds = old_r;
	a->sents = old_s + sents;
	a->receiveds = old_r + receiveds;
	for (uint32_t i = 0; i < a->sents; i++)
		a->sent[i] = i < old_s ? carry->sent[i] : ow_align_since_base(a, sent_ns[i - old_s]);
	for (uint32_t j = 0; j < a->receiveds; j++)
		a->received[j] = j < old_r ? carry->received[j] : ow_align_since_base(a, received_ns[j - old_r]);
	for (uint32_t j = 0; j < old_r; j++)
		a->chosen[j] = carry->chosen[j];
	a->width = crowd(a) ? OW_ALIGN_CROWD : OW_ALIGN_WIDTH;
	a->usual = carry ? carry->usual : usual_delay(a);
	a->gap = a->receiveds > 1 ? (a->received[a->receiveds - 1] - a->received[0]) / (a->receiveds - 1) : INFINITY;
	a->skip[0] = 0;
	for (uint32_t j = 0; j < a->receiveds; j++)
		a->skip[j + 1] =
			a->skip[j] + (j ? ow_align_skip_cost(a, a->received[j] - a->received[j - 1]) : OW_ALIGN_EXTRA);
	load_order(a);
	turn(a);
	return 0;
}

/*
 * Follows the cheapest assignment back from its end, which may be an arrival from an earlier call: then no arrival of
 * this call belongs to one of its packets.
 */
static void trace(struct ow_aligner *a, const struct ow_align_view *v)
{
	const struct ow_align_run *run = &a->choice;
	double least = INFINITY;
	struct ow_align_origin at = {NONE, NONE};
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		a->chosen[j] = NONE;
		a->forced[j] = false;
	}
	for (uint32_t j = a->receiveds; j-- > 0;) {
		const struct ow_align_row *row = &run->row[j];
		if (!row->count || ow_align_least_of_row(run, row) + ow_align_least_tail(a, j) >= least)
			continue;
		for (uint32_t k = 0; k < row->count; k++) {
			double cost = run->cost[row->at + k] + ow_align_tail(a, v, row->low + k, j);
			if (cost < least) {
				least = cost;
				at = (struct ow_align_origin){j, row->low + k};
			}
		}
	}
	while (at.row != NONE && at.row >= a->old_receiveds) {
		a->chosen[at.row] = at.sent;
		const struct ow_align_row *row = &run->row[at.row];
		at = run->origin[row->at + (at.sent - row->low)];
	}
}

/*
 * Pairs packets and arrivals that are left between two pairs: unlikely delays are likelier than a loss and an arrival
 * that nobody sent.
 */
static void pair_left(struct ow_aligner *a)
{
	uint32_t next = NONE; /* the packet after the previous pair */
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		if (a->chosen[j] != NONE) {
			next = a->chosen[j] + 1;
			continue;
		}
		uint32_t end = j + 1;
		while (end < a->receiveds && a->chosen[end] == NONE)
			end++;
		if (next == NONE || end == a->receiveds)
			continue;
		while (next < a->chosen[end] && a->received[j] - a->sent[next] > (double)a->model.window_ns)
			next++;
		if (next == a->chosen[end] || a->received[j] - a->sent[next] < (double)a->model.soonest_ns)
			continue;
		a->forced[j] = true;
		a->chosen[j] = next++;
	}
}

/* How much the delay changes from one pair to the next. */
static void note_changes(struct ow_aligner *a)
{
	double last = NAN;
	a->changes = 0;
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		if (a->chosen[j] == NONE)
			continue;
		double d = a->received[j] - a->sent[a->chosen[j]];
		if (!isnan(last))
			a->change[a->changes++] = fabs(d - last);
		last = d;
	}
}

/* The copies in the order of time. */
static struct ow_align_view forward_view(const struct ow_aligner *a, bool starts)
{
	return (struct ow_align_view){
		.sent = a->sent,
		.received = a->received,
		.skip = a->skip,
		.sents = a->sents,
		.receiveds = a->receiveds,
		.first = a->old_receiveds,
		.sent_from = ow_align_offset(a, a->model.sent_from_ns),
		.received_from = ow_align_offset(a, a->model.received_from_ns),
		.sign = 1,
		.starts = starts,
		.usual = a->usual,
		.not_before = a->not_before,
		.not_after = a->not_after,
	};
}

/* The copies in reverse order, without the arrivals that are decided. */
static struct ow_align_view backward_view(const struct ow_aligner *a)
{
	return (struct ow_align_view){
		.sent = a->turned_sent,
		.received = a->turned_received,
		.skip = a->turned_skip,
		.sents = a->sents,
		.receiveds = a->receiveds - a->old_receiveds,
		.sent_from = -ow_align_offset(a, a->model.sent_to_ns),
		.received_from = a->model.ends ? -ow_align_offset(a, a->model.received_to_ns) : INFINITY,
		.sign = -1,
		.starts = true,
		.usual = a->usual,
		.not_before = a->turned_not_before,
		.not_after = a->turned_not_after,
	};
}

/* For the choice: packets that are decided are excluded, and a price on the delay decides between equal assignments. */
static struct ow_align_view choosing_view(const struct ow_aligner *a)
{
	bool starts = true; /* unless one of the last arrivals is known */
	for (uint32_t j = 0; j < a->old_receiveds; j++)
		starts &= a->chosen[j] == NONE;
	struct ow_align_view view = forward_view(a, starts);
	view.after = a->old_sents;
	view.shortest = SHORTEST / a->model.sigma_ns;
	return view;
}

static int run_plain(struct ow_aligner *a, const struct ow_align_carry *carry, const struct ow_align_view *view)
{
	int r = ow_align_begin(a, &a->plain, carry, false);
	return r == 0 ? ow_align_run_plain(a, view) : r;
}

int ow_align(struct ow_aligner *a, const struct ow_align_model *model, const struct ow_align_carry *carry,
             const int64_t *sent_ns, uint32_t sents, const int64_t *received_ns, uint32_t receiveds,
             struct ow_align_arrival *arrival, bool *ret_crowded)
{
	a->model = *model;
	a->crowded = carry && carry->crowded;
	int r = load(a, carry, sent_ns, sents, received_ns, receiveds);
	if (r < 0)
		return r;
	struct ow_align_view forth = forward_view(a, !carry), back = backward_view(a), choosing = choosing_view(a);
	if (!a->crowded)
		r = run_plain(a, carry, &forth);
	if (r == 0 && a->crowded) {
		/* Some states were omitted. Those that are compared have to follow the usual delay. */
		forth.shortest = choosing.shortest;
		r = run_plain(a, carry, &forth);
	}
	if (r == 0)
		r = ow_align_begin(a, &a->choice, carry, true);
	if (r == 0)
		r = ow_align_run_like_plain(a, &a->choice, &choosing, false);
	if (r < 0)
		return r;
	trace(a, &choosing);
	note_changes(a);
	pair_left(a);
	*ret_crowded = a->crowded;
	if (!arrival)
		return 0;
	if (a->crowded) {
		ow_align_judge_crowd(a, arrival);
		return 0;
	}
	r = ow_align_begin(a, &a->back, NULL, false);
	if (r == 0)
		r = ow_align_run_like_plain(a, &a->back, &back, true);
	if (r == 0)
		ow_align_judge(a, &forth, arrival);
	return r;
}

/* Rows first_row to end - 1 and packets first to end_sent - 1. */
static int copy_carry(const struct ow_aligner *a, uint32_t first_row, uint32_t end, uint32_t first, uint32_t end_sent,
                      struct ow_align_carry *next)
{
	size_t states = 0, sents = end_sent - first;
	double least = INFINITY;
	for (uint32_t j = first_row; j < end; j++) {
		states += a->plain.row[j].count;
		least = fmin(least, ow_align_least_of_row(&a->plain, &a->plain.row[j]));
	}
	next->cost = malloc((states + 1) * sizeof *next->cost);
	next->sent = malloc((sents + 1) * sizeof *next->sent);
	if (!next->cost || !next->sent)
		return -ENOMEM;
	next->base_ns = a->base_ns;
	next->usual = a->usual;
	next->crowded = a->crowded;
	next->sents = (uint32_t)sents;
	memcpy(next->sent, a->sent + first, sents * sizeof *next->sent);
	size_t at = 0;
	for (uint32_t j = first_row; j < end; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		uint32_t n = next->receiveds++;
		for (uint32_t k = 0; k < row->count; k++)
			next->cost[at + k] = a->plain.cost[row->at + k] - least;
		next->row[n] = (struct ow_align_row){row->count ? row->low - first : 0, row->count, at};
		next->received[n] = a->received[j];
		next->chosen[n] = a->chosen[j] == NONE ? NONE : a->chosen[j] - first;
		at += row->count;
	}
	return 0;
}

int ow_align_decide(struct ow_aligner *a, uint32_t sents, uint32_t receiveds, struct ow_align_carry **carry)
{
	uint32_t end = a->old_receiveds + receiveds, end_sent = a->old_sents + sents;
	uint32_t first_row = end > KEPT ? end - KEPT : 0, first = end_sent;
	bool any = false, paired = *carry != NULL;
	for (uint32_t j = a->old_receiveds; j < end; j++)
		paired |= a->chosen[j] != NONE;
	for (uint32_t j = first_row; j < end; j++) {
		const struct ow_align_row *row = &a->plain.row[j];
		any |= paired && row->count > 0; /* before the first pair, there is nothing to continue from */
		first = row->count && row->low < first ? row->low : first;
		first = a->chosen[j] < first ? a->chosen[j] : first;
	}
	struct ow_align_carry *next = any ? calloc(1, sizeof *next) : NULL;
	int r = !any ? 0 : next ? copy_carry(a, first_row, end, first, end_sent, next) : -ENOMEM;
	if (r < 0) {
		ow_align_carry_free(next);
		return r;
	}
	ow_align_carry_free(*carry);
	*carry = next;
	return 0;
}

int ow_align_fit(struct ow_aligner *a, struct ow_align_model *model, const struct ow_align_carry *carry,
                 const int64_t *sent_ns, uint32_t sents, const int64_t *received_ns, uint32_t receiveds,
                 bool *ret_crowded)
{
	for (int run = 0;; run++) {
		int r = ow_align(a, model, carry, sent_ns, sents, received_ns, receiveds, NULL, ret_crowded);
		double sigma = ow_align_sigma(a), before = model->sigma_ns;
		if (r < 0 || sigma < 0)
			return r;
		model->jump = ow_align_jump(a);
		model->sigma_ns = fmax(sigma, OW_ALIGN_SIGMA_LEAST_NS);
		if (run == SIGMA_RUNS || fabs(model->sigma_ns - before) <= SIGMA_ENOUGH * before)
			return 0;
	}
}

double ow_align_loss(double lost, double sent)
{
	double cost = lost > 0 ? -log(lost / sent) : INFINITY;
	return fmin(fmax(cost, LOSS_COST_LEAST), LOSS_COST_MOST);
}

/* Queues make delays jump: up when they stall, and down in small steps when they drain. */
double ow_align_jump(const struct ow_aligner *a)
{
	double sigma = ow_align_sigma(a);
	uint32_t jumps = 0;
	for (uint32_t i = 0; i < a->changes; i++)
		jumps += a->change[i] > JUMP_SIGMA * sigma;
	if (sigma < 0 || (double)jumps < JUMPS_MANY * a->changes)
		return OW_ALIGN_JUMP;
	return fmin(OW_ALIGN_JUMP, JUMP_BASE - log((double)jumps / a->changes));
}

double ow_align_sigma(const struct ow_aligner *a)
{
	if (a->changes < 4)
		return -1;
	double sum = 0;
	for (uint32_t i = 0; i < a->changes; i++)
		sum += a->change[i];
	return sum / a->changes;
}
