/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order-preserving alignment (formulas section 4). State (i, j): arrival j is packet i.
 *
 *   cost(i, j) = own(d_ij) + the least of
 *     the start:            leading packets that were lost, leading arrivals that nobody sent
 *     cost(i', j - 1 - k):  i' < i, k < KEPT arrivals are copies:
 *                           (i - i' - 1) loss + copies + min(|d_ij - d_i'j'| / sigma, JUMP)
 *     the same with more copies and JUMP
 *
 * Between two rows the change of the delay is the distance of s_i' from s_i - (r_j - r_j'), so the minimum over all i'
 * takes one sweep: a prefix minimum on one side of that place, a sliding minimum on the other.
 *
 * There are three runs. One goes forwards and one backwards; the sum of both is the cost of the best assignment
 * through (i, j), and what is within PLAUSIBLE of the best of all is plausible. The third goes forwards with a small
 * price on the delay itself and chooses the assignment: where the delay is open by whole periods, the shortest.
 */
#include "reconcile/align.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JUMP        10.0 /* most that a change of the delay costs */
#define PLAUSIBLE   16.0 /* an assignment that costs this much more than the best is not plausible */
#define UNUSUAL     0.3  /* a delay outside of the usual ones */
#define FASTER      4.0  /* a delay that is shorter than the least of the others by a part of it */
#define FASTER_PART 64
#define FAR_OCTAVE  3.0 /* a delay that is twice as long as the usual ones and FAR_NS; as much again if twice that */
#define FAR_NS      1e6
#define ACAUSAL     9.0   /* a delay below 0 */
#define NEGATIVE    2.0   /* the same where it is allowed, when choosing */
#define EXTRA       60.0  /* an arrival that nobody sent */
#define OUTSIDE     4.0   /* an arrival from before or after the capture: more than one usually costs that is in it */
#define OUTSIDE_ANY 2.0   /* the same where delays may be below 0 */
#define COPY_NS     1e6   /* a copy costs 1 more for each of these that it is later than the one before */
#define SHORTEST    0.04  /* a delay of one sigma, when choosing between assignments that differ by whole periods */
#define BEAM        120.0 /* states that cost this much more than the best of their row are dropped */
#define WIDTH       512u  /* most states of a row .. */
#define WIDTH_CROWD 64u   /* .. and where more packets than that come into question */
#define SLACK_NS    2000  /* two ticks of a microsecond clock */
#define KEPT        OW_ALIGN_KEPT
#define NONE        OW_ALIGN_NONE

/* The states of one arrival: packets low .. low + count - 1. */
struct row {
	uint32_t low, count;
	size_t at; /* of their costs */
};

/* The state before. Row NONE: the assignment starts here. */
struct origin {
	uint32_t row, sent;
};

struct run {
	struct row *row;
	double *cost;
	struct origin *origin;
	size_t states, room;
	/* By packet: the cheapest assignment that ends with it and skips arrivals from then on, less what skipping
	 * costs; and the row in which it ends. */
	double *far;
	uint32_t *far_row;
};

/* The copies in the order in which a run takes them: forwards, or turned around. */
struct view {
	const double *sent, *received, *skip; /* skip: the price of skipping all arrivals before this one */
	uint32_t sents, receiveds;
	uint32_t first;                  /* the first row to compute: those before are given */
	uint32_t after;                  /* only packets from here on take part */
	double sent_from, received_from; /* what the captures cover */
	double sign;                     /* of the delay */
	bool starts;                     /* an assignment may start here */
	double shortest;                 /* price of a nanosecond of delay */
	double usual;                    /* the delay from which `shortest` counts */
};

/* The last arrivals that are decided, with the costs of their states, and the packets that these may be. */
struct ow_align_carry {
	int64_t base_ns;
	double usual;
	bool crowded;
	uint32_t sents, receiveds; /* decided packets among them, which come first; arrivals */
	double received[KEPT];
	uint32_t chosen[KEPT]; /* the packet that the arrival is, or NONE */
	struct row row[KEPT];
	double *cost, *sent;
};

struct ow_aligner {
	struct ow_align_model model;
	int64_t base_ns;
	/* Times from base_ns; the packets and arrivals carried over come first. */
	double *sent, *received, *skip;
	double *turned_sent, *turned_received, *turned_skip;
	uint32_t sents, receiveds, old_sents, old_receiveds;
	uint32_t sent_room, received_room;
	struct run plain, back, choice;
	double *least, *most; /* of each packet: plausible delays */
	uint32_t *queue;      /* of the sliding minimum */
	uint32_t *chosen;     /* by arrival */
	bool *forced;         /* likewise: a pair only because nothing else is left */
	double *change;
	uint32_t changes;
	bool crowded;
	uint32_t width; /* most states of a row */
	double usual;   /* the delay that is preferred where nothing else decides */
};

/* -- memory ------------------------------------------------------------------------------------------------------- */

int ow_aligner_create(struct ow_aligner **ret_aligner)
{
	*ret_aligner = calloc(1, sizeof **ret_aligner);
	return *ret_aligner ? 0 : -ENOMEM;
}

static void free_run(struct run *run)
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
	double *const times[] = {a->sent,        a->received, a->skip, a->turned_sent, a->turned_received,
	                         a->turned_skip, a->least,    a->most, a->change};
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

static int resize(void *array, size_t count, size_t size)
{
	void *old, *grown;
	memcpy(&old, array, sizeof old);
	grown = realloc(old, count * size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof grown);
	return 0;
}

static uint32_t rounded(uint32_t count)
{
	uint32_t room = 64;
	while (room < count)
		room *= 2;
	return room;
}

static int make_room(struct ow_aligner *a, uint32_t sents, uint32_t receiveds)
{
	struct run *const runs[] = {&a->plain, &a->back, &a->choice};
	int r = 0;
	if (sents > a->sent_room) {
		uint32_t room = rounded(sents);
		double **const arrays[] = {&a->sent, &a->turned_sent, &a->least, &a->most};
		for (size_t i = 0; i < sizeof arrays / sizeof *arrays && r == 0; i++)
			r = resize(arrays[i], room, sizeof(double));
		for (int i = 0; i < 3 && r == 0; i++) {
			r = resize(&runs[i]->far, room, sizeof(double));
			if (r == 0)
				r = resize(&runs[i]->far_row, room, sizeof(uint32_t));
		}
		if (r == 0)
			r = resize(&a->queue, room, sizeof *a->queue);
		a->sent_room = r == 0 ? room : a->sent_room;
	}
	if (r == 0 && receiveds > a->received_room) {
		uint32_t room = rounded(receiveds);
		double **const arrays[] = {&a->received, &a->skip, &a->turned_received, &a->turned_skip, &a->change};
		for (size_t i = 0; i < sizeof arrays / sizeof *arrays && r == 0; i++)
			r = resize(arrays[i], (size_t)room + 1, sizeof(double));
		for (int i = 0; i < 3 && r == 0; i++)
			r = resize(&runs[i]->row, room, sizeof(struct row));
		if (r == 0)
			r = resize(&a->chosen, room, sizeof *a->chosen);
		if (r == 0)
			r = resize(&a->forced, room, sizeof *a->forced);
		a->received_room = r == 0 ? room : a->received_room;
	}
	return r;
}

/* Room for the states of one more row. */
static int add_states(struct run *run, uint32_t count, bool traced)
{
	if (run->states + count <= run->room)
		return 0;
	size_t room = run->room ? run->room * 2 : 4096;
	while (room < run->states + count)
		room *= 2;
	int r = resize(&run->cost, room, sizeof *run->cost);
	if (r == 0 && traced)
		r = resize(&run->origin, room, sizeof *run->origin);
	run->room = r == 0 ? room : run->room;
	return r;
}

/* -- costs -------------------------------------------------------------------------------------------------------- */

/* How many of the first `count` times are below this one. */
static uint32_t below(const double *time, uint32_t count, double limit)
{
	uint32_t low = 0;
	while (low < count) {
		uint32_t middle = low + (count - low) / 2;
		if (time[middle] < limit)
			low = middle + 1;
		else
			count = middle;
	}
	return low;
}

static double delay_of(const struct view *v, uint32_t i, uint32_t j)
{
	return v->received[j] - v->sent[i];
}

/* What a state costs by itself. */
static double own(const struct ow_align_model *model, const struct view *v, double turned_delay)
{
	double d = turned_delay * v->sign, cost = 0, least = model->ranged ? (double)model->least_ns : 0;
	if (model->ranged && d > (double)model->high_ns)
		cost += fmax(UNUSUAL, FAR_OCTAVE * log2(d / ((double)model->high_ns + FAR_NS)));
	else if (model->ranged && least > 0 && d < least)
		cost += FASTER * fmin(1, (least - d) / (least / FASTER_PART + SLACK_NS));
	if (model->causal && d < -SLACK_NS)
		cost += ACAUSAL;
	if (v->shortest > 0 && !model->ranged && d < -SLACK_NS)
		cost += NEGATIVE;
	/* Grows slowly: a long delay is preferred to a loss. */
	return v->shortest > 0 ? cost + log1p(v->shortest * fabs(d - v->usual)) / 2 : cost;
}

/* An arrival from before or after the sender's capture. Where delays may be below 0, it is as likely as a pair. */
static double outside_cost(const struct ow_align_model *model)
{
	return model->causal ? OUTSIDE : OUTSIDE_ANY;
}

/* An assignment that starts with (i, j): leading packets are lost, leading arrivals were not sent, as far as the
 * captures cover them. */
static double lead(const struct ow_align_model *model, const struct view *v, uint32_t i, uint32_t j)
{
	double d = delay_of(v, i, j);
	uint32_t lost = i - below(v->sent, i, v->received_from - d);
	uint32_t outside = below(v->received, j, v->sent_from + d);
	double cost = model->loss * lost + v->skip[j] - v->skip[outside];
	/* Arrivals from before the capture took as long, and pay for it as the others do. One that is close before the
	 * first that counts is rather the same packet. */
	cost += outside * (outside_cost(model) + own(model, v, d));
	return v->sign > 0 && j && outside == j && v->received[j] - v->received[j - 1] < COPY_NS ? cost + model->copy
	                                                                                         : cost;
}

/* -- one row ------------------------------------------------------------------------------------------------------ */

static void offer(struct run *run, const struct row *row, uint32_t i, double cost, uint32_t from_row, uint32_t from)
{
	size_t at = row->at + (i - row->low);
	if (cost >= run->cost[at])
		return;
	run->cost[at] = cost;
	if (run->origin)
		run->origin[at] = (struct origin){from_row, from};
}

/* From the states of an earlier row. */
static void from_row(struct ow_aligner *a, struct run *run, const struct view *v, const struct row *row, uint32_t j,
                     uint32_t back)
{
	const struct row *old = &run->row[back];
	const double *cost = run->cost + old->at, loss = a->model.loss, scale = 1 / a->model.sigma_ns;
	double apart = v->received[j] - v->received[back], skipped = v->skip[j] - v->skip[back + 1];
	double left = INFINITY, any = INFINITY;
	uint32_t left_from = 0, any_from = 0, next = old->low, taken = old->low, head = 0, tail = 0;
	uint32_t end = old->low + old->count;
	for (uint32_t i = row->low; i < row->low + row->count; i++) {
		double place = v->sent[i] - apart;
		/* Packets that come into question: those before i. */
		for (; next < i && next < end; next++) {
			double key = cost[next - old->low] - loss * next;
			if (key < any) {
				any = key;
				any_from = next;
			}
			key += v->sent[next] * scale;
			while (tail > head && cost[a->queue[tail - 1] - old->low] - loss * a->queue[tail - 1] +
			                                      v->sent[a->queue[tail - 1]] * scale >=
			                              key)
				tail--;
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
		offer(run, row, i, any + JUMP + more, back, any_from);
		offer(run, row, i, left + place * scale + more, back, left_from);
		if (head < tail) {
			uint32_t from = a->queue[head];
			offer(run, row, i, cost[from - old->low] - loss * from + (v->sent[from] - place) * scale + more,
			      back, from);
		}
	}
}

/* From states of any row before, with a jump. `before`: the least over packets that no row has any more. */
struct far_before {
	double cost;
	uint32_t row, sent, next;
};

static void from_far(const struct ow_aligner *a, struct run *run, const struct view *v, const struct row *row,
                     uint32_t j, struct far_before *before)
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
		if (i >= before->next) /* the packets of `before` come before it */
			offer(run, row, i, key + v->skip[j] + loss * (i - 1.0), from_row, from);
		if (run->far[i] - loss * i < key) {
			key = run->far[i] - loss * i;
			from_row = run->far_row[i];
			from = i;
		}
	}
}

/* May an assignment start with this arrival? Those before it that were sent while the sender's capture ran are skipped.
 */
static bool may_start(const struct ow_aligner *a, const struct view *v, uint32_t j)
{
	return v->starts &&
	       v->skip[j] - v->skip[below(v->received, j, v->sent_from + (double)a->model.window_ns)] < BEAM;
}

static int compute_row(struct ow_aligner *a, struct run *run, const struct view *v, uint32_t j, uint32_t low,
                       uint32_t count, bool traced, struct far_before *before)
{
	struct row *row = &run->row[j];
	int r = add_states(run, count, traced);
	if (r < 0)
		return r;
	*row = (struct row){low, count, run->states};
	run->states += count;
	for (uint32_t k = 0; k < count; k++) {
		run->cost[row->at + k] = INFINITY;
		if (traced)
			run->origin[row->at + k] = (struct origin){NONE, NONE};
	}
	for (uint32_t k = 1; k <= KEPT && k <= j; k++) {
		if (v->skip[j] - v->skip[j - k + 1] > EXTRA)
			break; /* those between are no copies */
		if (run->row[j - k].count)
			from_row(a, run, v, row, j, j - k);
	}
	from_far(a, run, v, row, j, before);
	bool starts = may_start(a, v, j);
	for (uint32_t i = low; i < low + count; i++) {
		double *cost = &run->cost[row->at + (i - low)];
		if (starts) {
			double start = lead(&a->model, v, i, j);
			if (start < *cost) {
				*cost = start;
				if (traced)
					run->origin[row->at + (i - low)] = (struct origin){NONE, NONE};
			}
		}
		*cost += own(&a->model, v, delay_of(v, i, j));
		/* Skipping begins after this arrival. */
		double far = *cost + JUMP - v->skip[j + 1];
		if (far < run->far[i]) {
			run->far[i] = far;
			run->far_row[i] = j;
		}
	}
	return 0;
}

/* -- which packets an arrival may be ------------------------------------------------------------------------------ */

/* Those from whose sending it took a possible time. */
static void possible(const struct ow_align_model *model, const struct view *v, uint32_t j, uint32_t *low,
                     uint32_t *high)
{
	*low = below(v->sent, v->sents, v->received[j] - (double)model->window_ns);
	*high = below(v->sent, v->sents, nextafter(v->received[j] - (double)model->soonest_ns, INFINITY));
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
 * More than can be compared: those with usual delays. Where these are not known, the first with the first, if the
 * captures start at about the same time, else the fastest.
 */
static void narrow_start(const struct ow_aligner *a, const struct view *v, uint32_t j, uint32_t *low, uint32_t *high)
{
	const struct ow_align_model *model = &a->model;
	double apart = v->received[0] - v->sent[0];
	if (!model->ranged && apart >= 0 && apart < (double)model->window_ns / 2) {
		narrow(*low, a->width, low, high);
		return;
	}
	double usual = model->ranged ? (double)model->low_ns / 2 + (double)model->high_ns / 2 : 0;
	uint32_t middle = below(v->sent, v->sents, v->received[j] - usual);
	narrow(middle > a->width / 2 ? middle - a->width / 2 : 0, a->width, low, high);
}

/* The states of a row: what is possible and within reach of the rows before. */
static void choose_states(struct ow_aligner *a, const struct run *run, const struct view *v, uint32_t j, bool starts,
                          uint32_t best, uint32_t *low, uint32_t *high)
{
	possible(&a->model, v, j, low, high);
	*low = *low < v->after ? v->after : *low;
	if (!starts) {
		uint32_t least = v->sents, most = 0;
		for (uint32_t k = 1; k <= KEPT && k <= j; k++) {
			const struct row *row = &run->row[j - k];
			if (row->count && row->low + 1 < least)
				least = row->low + 1;
			if (row->count && row->low + row->count > most)
				most = row->low + row->count;
		}
		uint32_t reach = (uint32_t)(BEAM / a->model.loss) + 1;
		if (least < v->sents) {
			*low = *low < least ? least : *low;
			*high = *high > most + reach ? most + reach : *high;
		}
	}
	if (*high < *low)
		*high = *low;
	if (*high - *low <= a->width)
		return;
	a->crowded = true;
	if (best == NONE) {
		narrow_start(a, v, j, low, high);
		return;
	}
	/* As before, unless the best leaves the middle half. */
	uint32_t first = j ? run->row[j - 1].low + 1 : *low;
	if (best < first + a->width / 4 || best > first + a->width - a->width / 4)
		first = best > a->width / 2 ? best - a->width / 2 : 0;
	narrow(first, a->width, low, high);
}

/* Drops states that cost far too much from both ends; returns the best. */
static uint32_t trim(struct run *run, uint32_t j)
{
	struct row *row = &run->row[j];
	uint32_t best = 0;
	for (uint32_t k = 1; k < row->count; k++) {
		if (run->cost[row->at + k] < run->cost[row->at + best])
			best = k;
	}
	if (!row->count || isinf(run->cost[row->at + best])) {
		row->count = 0;
		return NONE;
	}
	double limit = run->cost[row->at + best] + BEAM;
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

/* -- the runs ----------------------------------------------------------------------------------------------------- */

static int run_plain(struct ow_aligner *a, const struct view *v)
{
	struct run *run = &a->plain;
	struct far_before before = {.cost = INFINITY};
	uint32_t best = NONE;
	for (uint32_t j = v->first; j < v->receiveds; j++) {
		uint32_t low, high;
		choose_states(a, run, v, j, may_start(a, v, j), best, &low, &high);
		int r = compute_row(a, run, v, j, low, high - low, false, &before);
		if (r < 0)
			return r;
		uint32_t found = trim(run, j);
		best = found == NONE ? best : found + 1;
	}
	return 0;
}

/* The same states as in the plain run. */
static int run_like_plain(struct ow_aligner *a, struct run *run, const struct view *v, bool turned)
{
	struct far_before before = {.cost = INFINITY};
	for (uint32_t j = v->first; j < v->receiveds; j++) {
		const struct row *plain = &a->plain.row[turned ? a->receiveds - 1 - j : j];
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

/* -- what was carried over ---------------------------------------------------------------------------------------- */

void ow_align_carry_free(struct ow_align_carry *carry)
{
	if (!carry)
		return;
	free(carry->cost);
	free(carry->sent);
	free(carry);
}

/* Exact for times within a hundred days of the base. */
static double since_base(const struct ow_aligner *a, int64_t time_ns)
{
	return (double)((__int128)time_ns - a->base_ns);
}

/* More packets come into question for an arrival than can be compared. */
static bool crowd(const struct ow_aligner *a)
{
	double last = a->receiveds ? a->received[a->receiveds - 1] : 0;
	uint32_t least = below(a->sent, a->sents, last - (double)a->model.window_ns);
	return below(a->sent, a->sents, last - (double)a->model.soonest_ns) > least + WIDTH;
}

/* Did both captures start at about the same time? Then the first arrival is the first packet. */
static bool start_together(const struct ow_aligner *a)
{
	double apart = a->receiveds && a->sents ? a->received[0] - a->sent[0] : -1;
	return apart >= 0 && apart < (double)a->model.window_ns / 2;
}

/* The delay that is preferred where the copies leave it open. */
static double usual_delay(const struct ow_aligner *a)
{
	if (a->model.ranged)
		return (double)a->model.least_ns;
	return a->width == WIDTH_CROWD && start_together(a) ? a->received[0] - a->sent[0] : 0;
}

/* In a crowd, arrivals that are close together are no sign of copies. */
static double price_of_skipping(const struct ow_aligner *a, double since_last)
{
	double cost = a->width == WIDTH ? a->model.copy + since_last / COPY_NS : EXTRA;
	return cost < EXTRA ? cost : EXTRA;
}

static int load(struct ow_aligner *a, const struct ow_align_carry *carry, const int64_t *sent_ns, uint32_t sents,
                const int64_t *received_ns, uint32_t receiveds)
{
	uint32_t old_s = carry ? carry->sents : 0, old_r = carry ? carry->receiveds : 0;
	int r = make_room(a, old_s + sents + 1, old_r + receiveds + 1);
	if (r < 0)
		return r;
	a->base_ns = carry ? carry->base_ns : receiveds ? received_ns[0] : 0;
	a->old_sents = old_s;
	a->old_receiveds = old_r;
	a->sents = old_s + sents;
	a->receiveds = old_r + receiveds;
	for (uint32_t i = 0; i < a->sents; i++)
		a->sent[i] = i < old_s ? carry->sent[i] : since_base(a, sent_ns[i - old_s]);
	for (uint32_t j = 0; j < a->receiveds; j++)
		a->received[j] = j < old_r ? carry->received[j] : since_base(a, received_ns[j - old_r]);
	for (uint32_t j = 0; j < old_r; j++)
		a->chosen[j] = carry->chosen[j];
	a->width = crowd(a) ? WIDTH_CROWD : WIDTH;
	a->usual = carry ? carry->usual : usual_delay(a);
	a->skip[0] = 0;
	for (uint32_t j = 0; j < a->receiveds; j++)
		a->skip[j + 1] = a->skip[j] + (j ? price_of_skipping(a, a->received[j] - a->received[j - 1]) : EXTRA);
	for (uint32_t i = 0; i < a->sents; i++)
		a->turned_sent[i] = -a->sent[a->sents - 1 - i];
	for (uint32_t j = 0; j < a->receiveds; j++)
		a->turned_received[j] = -a->received[a->receiveds - 1 - j];
	for (uint32_t j = 0; j <= a->receiveds; j++)
		a->turned_skip[j] = a->skip[a->receiveds] - a->skip[a->receiveds - j];
	return 0;
}

/* Puts a state into a row that is carried over. */
static int put_old(struct ow_aligner *a, struct run *run, uint32_t j, uint32_t low, const double *cost, uint32_t count,
                   bool traced)
{
	int r = add_states(run, count, traced);
	if (r < 0)
		return r;
	run->row[j] = (struct row){low, count, run->states};
	for (uint32_t k = 0; k < count; k++) {
		run->cost[run->states] = cost[k];
		if (traced)
			run->origin[run->states] = (struct origin){NONE, NONE};
		run->states++;
		double far = cost[k] + JUMP - a->skip[j + 1];
		if (far < run->far[low + k]) {
			run->far[low + k] = far;
			run->far_row[low + k] = j;
		}
	}
	return 0;
}

/* Starts a run with the rows that are carried over: all their states, or the chosen ones. */
static int begin(struct ow_aligner *a, struct run *run, const struct ow_align_carry *carry, bool chosen)
{
	static const double nothing = 0;
	run->states = 0;
	for (uint32_t i = 0; i < a->sents; i++)
		run->far[i] = INFINITY;
	int r = 0;
	for (uint32_t j = 0; carry && j < carry->receiveds && r == 0; j++) {
		const struct row *row = &carry->row[j];
		if (chosen)
			r = put_old(a, run, j, carry->chosen[j], &nothing, carry->chosen[j] != NONE, true);
		else
			r = put_old(a, run, j, row->low, carry->cost + row->at, row->count, false);
	}
	return r;
}

/* -- the result --------------------------------------------------------------------------------------------------- */

/* The time as an offset from the base, whatever the time. */
static double offset(const struct ow_aligner *a, int64_t time_ns)
{
	return time_ns == INT64_MIN ? -INFINITY : time_ns == INT64_MAX ? INFINITY : since_base(a, time_ns);
}

/* What the end costs after (i, j): packets and arrivals behind it that the captures cover. */
static double tail(const struct ow_aligner *a, const struct view *v, uint32_t i, uint32_t j)
{
	const struct ow_align_model *model = &a->model;
	uint32_t rest = a->receiveds - j - 1;
	double d = a->received[j] - a->sent[i];
	double sent_until = nextafter(offset(a, model->received_to_ns) - d, INFINITY);
	double received_until = nextafter(offset(a, model->sent_to_ns) + d, INFINITY);
	uint32_t lost = model->ends ? below(a->sent + i + 1, a->sents - i - 1, sent_until) : 0;
	uint32_t unsent = below(a->received + j + 1, rest, received_until);
	double cost = model->loss * lost + a->skip[j + 1 + unsent] - a->skip[j + 1];
	/* Arrivals from after the capture took as long, as those from before it. */
	return cost + (rest - unsent) * (outside_cost(model) + own(model, v, d));
}

/* Not more than tail() of any state of this row: more arrivals are skipped the longer the delay is. */
static double least_tail(const struct ow_aligner *a, const struct row *row, uint32_t j)
{
	uint32_t rest = a->receiveds - j - 1;
	double d = a->received[j] - a->sent[row->low + row->count - 1];
	uint32_t unsent = below(a->received + j + 1, rest, nextafter(offset(a, a->model.sent_to_ns) + d, INFINITY));
	return a->skip[j + 1 + unsent] - a->skip[j + 1] + outside_cost(&a->model) * (rest - unsent);
}

static double least_of_row(const struct run *run, const struct row *row)
{
	double least = INFINITY;
	for (uint32_t k = 0; k < row->count; k++)
		least = run->cost[row->at + k] < least ? run->cost[row->at + k] : least;
	return least;
}

/* Follows the cheapest assignment back from its end. */
static void trace(struct ow_aligner *a, const struct view *v)
{
	const struct run *run = &a->choice;
	double least = INFINITY;
	struct origin at = {NONE, NONE};
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		a->chosen[j] = NONE;
		a->forced[j] = false;
	}
	for (uint32_t j = a->receiveds; j-- > a->old_receiveds;) {
		const struct row *row = &run->row[j];
		if (!row->count || least_of_row(run, row) + least_tail(a, row, j) >= least)
			continue;
		for (uint32_t k = 0; k < row->count; k++) {
			double cost = run->cost[row->at + k] + tail(a, v, row->low + k, j);
			if (cost < least) {
				least = cost;
				at = (struct origin){j, row->low + k};
			}
		}
	}
	while (at.row != NONE && at.row >= a->old_receiveds) {
		a->chosen[at.row] = at.sent;
		const struct row *row = &run->row[at.row];
		at = run->origin[row->at + (at.sent - row->low)];
	}
}

/* Between two pairs there may be packets and arrivals left: pairs with unlikely delays are likelier than a loss and an
 * arrival that nobody sent. */
static void pair_left(struct ow_aligner *a)
{
	uint32_t next = NONE; /* the packet after the pair before */
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

static double sum_of_both(const struct ow_aligner *a, uint32_t i, uint32_t j, const struct view *forth)
{
	const struct row *row = &a->plain.row[j], *turned = &a->back.row[a->receiveds - 1 - j];
	uint32_t t = a->sents - 1 - i;
	if (t < turned->low || t >= turned->low + turned->count)
		return INFINITY;
	return a->plain.cost[row->at + (i - row->low)] + a->back.cost[turned->at + (t - turned->low)] -
	       own(&a->model, forth, a->received[j] - a->sent[i]);
}

static double best_of_all(const struct ow_aligner *a, const struct view *forth)
{
	double best = INFINITY;
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct row *row = &a->plain.row[j];
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

/* Delays that packets which overtook each other may have had. */
static void widen_by_reordering(const struct ow_aligner *a, uint32_t i, uint32_t j, double *least, double *most)
{
	double reach = (double)a->model.reorder_ns;
	if (reach <= 0)
		return;
	uint32_t first = below(a->sent, a->sents, a->sent[i] - reach);
	uint32_t last = below(a->sent, a->sents, nextafter(a->sent[i] + reach, INFINITY)) - 1;
	widen(least, most, a->received[j] - a->sent[first]);
	widen(least, most, a->received[j] - a->sent[last]);
	first = below(a->received, a->receiveds, a->received[j] - reach);
	last = below(a->received, a->receiveds, nextafter(a->received[j] + reach, INFINITY)) - 1;
	/* The first arrival of a packet counts: its copies do not. */
	while (first < j && a->chosen[first] == NONE)
		first++;
	while (last > j && a->chosen[last] == NONE)
		last--;
	widen(least, most, a->received[first] - a->sent[i]);
	widen(least, most, a->received[last] - a->sent[i]);
}

/* The arrivals that every plausible assignment has between its first and its last: others may have been sent outside of
 * the sender's capture. */
static void sure_rows(const struct ow_aligner *a, const struct view *forth, double limit, uint32_t *first,
                      uint32_t *last)
{
	*first = a->old_receiveds;
	*last = a->receiveds;
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct row *row = &a->plain.row[j], *turned = &a->back.row[a->receiveds - 1 - j];
		bool starts = may_start(a, forth, j) && turned->count == row->count;
		bool ends = *last == a->receiveds && row->count &&
		            least_of_row(&a->plain, row) + least_tail(a, row, j) <= limit;
		for (uint32_t k = 0; k < row->count && (starts || ends); k++) {
			uint32_t i = row->low + k;
			if (ends && *last == a->receiveds && a->plain.cost[row->at + k] + tail(a, forth, i, j) <= limit)
				*last = j + 1;
			if (starts &&
			    a->back.cost[turned->at + (turned->count - 1 - k)] + lead(&a->model, forth, i, j) <= limit)
				*first = j;
		}
	}
}

/* The plausible delays, by arrival and by packet. */
static void judge(struct ow_aligner *a, const struct view *forth, struct ow_align_arrival *arrival)
{
	double shortest = INFINITY;
	uint32_t first_sure, last_sure;
	double limit = best_of_all(a, forth) + PLAUSIBLE;
	sure_rows(a, forth, limit, &first_sure, &last_sure);
	for (uint32_t i = 0; i < a->sents; i++) {
		a->least[i] = INFINITY;
		a->most[i] = -INFINITY;
	}
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		const struct row *row = &a->plain.row[j];
		struct ow_align_arrival *out = &arrival[j - a->old_receiveds];
		double least = INFINITY, most = -INFINITY, step = INFINITY, last = NAN;
		for (uint32_t i = row->low; i < row->low + row->count; i++) {
			if (sum_of_both(a, i, j, forth) > limit)
				continue;
			double d = a->received[j] - a->sent[i];
			widen(&least, &most, d);
			widen(&a->least[i], &a->most[i], d);
			shortest = d < shortest ? d : shortest;
			step = last - d < step ? last - d : step;
			last = d;
		}
		/* For now, until those of the packet are known. */
		out->sent = a->chosen[j];
		out->copy = false;
		out->forced = a->forced[j];
		out->step_ns = isfinite(step) ? (int64_t)step : 0;
		out->less_ns = isfinite(least) ? (int64_t)least : INT64_MAX;
		out->more_ns = isfinite(most) ? (int64_t)most : INT64_MIN;
	}
	for (uint32_t j = a->old_receiveds; j < a->receiveds; j++) {
		struct ow_align_arrival *out = &arrival[j - a->old_receiveds];
		uint32_t i = out->sent;
		if (i == NONE) {
			bool after = j > 0 && (a->chosen[j - 1] != NONE || (j > a->old_receiveds && out[-1].copy));
			out->copy = after && a->skip[j + 1] - a->skip[j] < EXTRA;
			out->less_ns = out->more_ns = 0;
			continue;
		}
		double d = a->received[j] - a->sent[i], least = d, most = d;
		if (out->less_ns <= out->more_ns) {
			widen(&least, &most, (double)out->less_ns);
			widen(&least, &most, (double)out->more_ns);
		}
		if (a->least[i] <= a->most[i]) {
			widen(&least, &most, a->least[i]);
			widen(&least, &most, a->most[i]);
		}
		widen_by_reordering(a, i, j, &least, &most);
		if ((j < first_sure || j >= last_sure || a->forced[j]) && shortest < least)
			least = shortest; /* perhaps it is none of these packets */
		out->less_ns = (int64_t)(d - least);
		out->more_ns = (int64_t)(most - d);
		out->sent = i - a->old_sents;
	}
}

/* More copies than can be compared: every delay within the waiting time is plausible. */
static void judge_crowd(const struct ow_aligner *a, struct ow_align_arrival *arrival)
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

int ow_align(struct ow_aligner *a, const struct ow_align_model *model, const struct ow_align_carry *carry,
             const int64_t *sent_ns, uint32_t sents, const int64_t *received_ns, uint32_t receiveds,
             struct ow_align_arrival *arrival, bool *ret_crowded)
{
	a->model = *model;
	a->crowded = carry && carry->crowded;
	int r = load(a, carry, sent_ns, sents, received_ns, receiveds);
	if (r < 0)
		return r;
	struct view forth = {a->sent,
	                     a->received,
	                     a->skip,
	                     a->sents,
	                     a->receiveds,
	                     a->old_receiveds,
	                     0,
	                     offset(a, model->sent_from_ns),
	                     offset(a, model->received_from_ns),
	                     1,
	                     !carry,
	                     0,
	                     a->usual};
	struct view turned = forth;
	turned.sent = a->turned_sent;
	turned.received = a->turned_received;
	turned.skip = a->turned_skip;
	turned.first = 0;
	turned.receiveds = receiveds;
	turned.sign = -1;
	turned.starts = true;
	turned.sent_from = -offset(a, model->sent_to_ns);
	turned.received_from = model->ends ? -offset(a, model->received_to_ns) : INFINITY;
	struct view choosing = forth;
	choosing.shortest = SHORTEST / model->sigma_ns;
	choosing.after = a->old_sents;
	choosing.starts = true; /* unless one of the last arrivals is known */
	for (uint32_t j = 0; j < a->old_receiveds; j++)
		choosing.starts &= a->chosen[j] == NONE;
	if (!a->crowded) {
		r = begin(a, &a->plain, carry, false);
		if (r == 0)
			r = run_plain(a, &forth);
	}
	if (r == 0 && a->crowded) {
		/* Not all states are there: those that are follow the usual delay. */
		forth.shortest = choosing.shortest;
		r = begin(a, &a->plain, carry, false);
		if (r == 0)
			r = run_plain(a, &forth);
	}
	if (r == 0)
		r = begin(a, &a->choice, carry, true);
	if (r == 0)
		r = run_like_plain(a, &a->choice, &choosing, false);
	if (r < 0)
		return r;
	trace(a, &choosing);
	note_changes(a);
	pair_left(a);
	if (!arrival)
		return 0;
	*ret_crowded = a->crowded;
	if (a->crowded) {
		judge_crowd(a, arrival);
		return 0;
	}
	r = begin(a, &a->back, NULL, false);
	if (r == 0)
		r = run_like_plain(a, &a->back, &turned, true);
	if (r < 0)
		return r;
	judge(a, &forth, arrival);
	return 0;
}

/* -- deciding a part ---------------------------------------------------------------------------------------------- */

static int copy_carry(const struct ow_aligner *a, uint32_t first_row, uint32_t end, uint32_t first, uint32_t end_sent,
                      struct ow_align_carry *next)
{
	size_t states = 0, sents = end_sent - first;
	double least = INFINITY;
	for (uint32_t j = first_row; j < end; j++) {
		const struct row *row = &a->plain.row[j];
		states += row->count;
		for (uint32_t k = 0; k < row->count; k++)
			least = a->plain.cost[row->at + k] < least ? a->plain.cost[row->at + k] : least;
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
		const struct row *row = &a->plain.row[j];
		uint32_t n = next->receiveds++;
		for (uint32_t k = 0; k < row->count; k++)
			next->cost[at + k] = a->plain.cost[row->at + k] - least;
		next->row[n] = (struct row){row->count ? row->low - first : 0, row->count, at};
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
		const struct row *row = &a->plain.row[j];
		any |= paired && row->count > 0; /* before the first pair, there is nothing to go on from */
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

double ow_align_sigma(const struct ow_aligner *a)
{
	if (a->changes < 4)
		return -1;
	double sum = 0;
	for (uint32_t i = 0; i < a->changes; i++)
		sum += a->change[i];
	return sum / a->changes;
}
