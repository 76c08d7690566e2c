/* SPDX-License-Identifier: Apache-2.0 */
/* Reads two capture files into sightings, and runs all methods on them. */
#include "papers/compare.h"

#include "base/hash.h"
#include "synopsis/copies.h"
#include "base/array.h"
#include "base/side.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Sizes and seeds of the plot. */
#define SWEEP_SIZES 5

/* A packet at one point, and the number of its record, which gives the order in which the point saw it. */
struct numbered {
	uint64_t number;
	struct ow_sighting sighting;
};

struct list {
	struct numbered *item;
	size_t count, room;
};

struct ow_compare {
	struct ow_compare_options options;
	struct ow_match *match;
	struct list sent, received;
	struct ow_sight traffic;
	struct ow_method_comparison comparison;
};

/* -- collecting --------------------------------------------------------------------------------------------------- */

static int list_add(struct list *list, struct ow_sighting sighting, uint64_t number)
{
	if (OW_GROW(list->item, list->room, list->count + 1) < 0)
		return -ENOMEM;
	list->item[list->count++] = (struct numbered){number, sighting};
	return 0;
}

static void list_done(struct list *list)
{
	free(list->item);
	*list = (struct list){0};
}

/* A superframe stands for several packets of the wire: each segment is a packet with its own id. */
static int collect(struct list *list, const struct ow_packet_event *event, enum ow_side side)
{
	int r = 0;
	for (uint32_t i = 0; i < event->packets && r == 0; i++) {
		uint64_t id = i ? ow_mix64(event->id + i) : event->id;
		r = list_add(list, (struct ow_sighting){id, event->time_ns[side]}, event->number[side]);
	}
	return r;
}

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	struct ow_compare *c = arg;
	enum ow_side sender = ow_sender_of(c->options.direction);
	if (event->fate == OW_FATE_UNCLASSIFIED || event->fate == OW_FATE_OUTSIDE ||
	    event->direction != c->options.direction)
		return 0;
	int r = 0;
	if (event->fate == OW_FATE_MATCHED || event->fate == OW_FATE_LOST)
		r = collect(&c->sent, event, sender);
	if (r == 0 && event->fate != OW_FATE_LOST)
		r = collect(&c->received, event, !sender);
	return r;
}

static void on_progress(void *arg, double done)
{
	struct ow_compare *c = arg;
	if (c->options.match.on_progress)
		c->options.match.on_progress(c->options.match.arg, done / 2);
}

/* -- sightings ------------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->sighting.id > y->sighting.id) - (x->sighting.id < y->sighting.id);
}

/* Sorts the packets into the order of the capture and gives copies different ids. Empties the list. */
static int put_in_order(struct list *list, int64_t start_ns, struct ow_sighting **ret_sightings, size_t *ret_count)
{
	size_t count = list->count;
	struct ow_sighting *sightings = malloc((count + 1) * sizeof *sightings);
	if (!sightings)
		return -ENOMEM;
	if (count)
		qsort(list->item, count, sizeof *list->item, by_number);
	for (size_t i = 0; i < count; i++)
		sightings[i] =
			(struct ow_sighting){list->item[i].sighting.id, list->item[i].sighting.time_ns - start_ns};
	list_done(list);
	*ret_sightings = sightings;
	*ret_count = count;
	return ow_copies_rename(sightings, count);
}

static int64_t earliest(const struct list *list, int64_t least)
{
	for (size_t i = 0; i < list->count; i++)
		least = list->item[i].sighting.time_ns < least ? list->item[i].sighting.time_ns : least;
	return least;
}

static int make_traffic(struct ow_compare *c)
{
	struct ow_sight *t = &c->traffic;
	const struct ow_result *exact = c->comparison.exact;
	int64_t start_ns = earliest(&c->received, earliest(&c->sent, INT64_MAX));
	int r = put_in_order(&c->sent, start_ns, &t->a, &t->as);
	if (r == 0)
		r = put_in_order(&c->received, start_ns, &t->b, &t->bs);
	if (r == 0)
		r = ow_fates_find(t->a, t->as, t->b, t->bs, &t->fates);
	double sent = (double)exact->sent;
	t->sizing = (struct ow_sizing){sent, (double)exact->lost / sent, (double)exact->extra / sent};
	return r;
}

/* -- the whole ---------------------------------------------------------------------------------------------------- */

int ow_compare_open(const char *path_a, const char *path_b, const struct ow_compare_options *options,
                    struct ow_compare **ret_compare, struct ow_error *err)
{
	struct ow_compare *c = calloc(1, sizeof *c);
	if (!c)
		return ow_error_set(err, ENOMEM, "not enough memory");
	c->options = *options;
	struct ow_match_options match = options->match;
	/* The seed is fixed, because the content of synopses depends on the ids: it must be the same in every run. */
	if (match.seed == 0)
		match.seed = ow_mix64(options->seed) | 1;
	match.on_packet = on_packet;
	match.on_progress = on_progress;
	match.arg = c;
	int r = ow_match_files(path_a, path_b, &match, &c->match, err);
	if (r == 0) {
		const struct ow_match_report *report = ow_match_report(c->match);
		c->comparison = (struct ow_method_comparison){.match = report,
		                                              .direction = options->direction,
		                                              .exact = &report->direction[options->direction],
		                                              .memory_bytes = options->memory,
		                                              .seed = options->seed};
		if (!report->has_direction[options->direction] || !c->comparison.exact->sent)
			r = ow_error_set(err, EINVAL, "no packet was sent from %s",
			                 options->direction == OW_A_TO_B ? "A to B (--reverse compares B to A)"
			                                                 : "B to A");
	}
	if (r == 0) {
		r = make_traffic(c);
		if (r < 0)
			ow_error_set(err, -r, "not enough memory for %zu packets", c->traffic.as + c->traffic.bs);
	}
	if (r < 0)
		ow_compare_free(c);
	else
		*ret_compare = c;
	return r;
}

void ow_compare_free(struct ow_compare *compare)
{
	if (!compare)
		return;
	list_done(&compare->sent);
	list_done(&compare->received);
	ow_sight_done(&compare->traffic);
	free(compare->comparison.row);
	ow_match_free(compare->match);
	free(compare);
}

static void tell_progress(struct ow_compare *c, double done)
{
	if (c->options.match.on_progress)
		c->options.match.on_progress(c->options.match.arg, done);
}

int ow_compare_run(struct ow_compare *compare, const struct ow_method_comparison **ret_comparison)
{
	struct ow_method_comparison *result = &compare->comparison;
	size_t methods = ow_trial_methods();
	struct ow_compare_row *row = calloc(methods, sizeof *row);
	if (!row)
		return -ENOMEM;
	for (size_t i = 0; i < methods; i++) {
		ow_trial_run(i, &compare->traffic, result->memory_bytes, result->seed, true, &row[i]);
		tell_progress(compare, 0.5 + 0.5 * (double)(i + 1) / (double)methods);
	}
	free(result->row);
	result->row = row;
	result->rows = methods;
	*ret_comparison = result;
	return 0;
}

/* -- over memory -------------------------------------------------------------------------------------------------- */

/* Root mean square over the seeds; 0 means exact. If a run gives no value, the point is omitted. */
static int sweep_point(struct ow_compare *c, size_t method, size_t memory, ow_compare_point *tell, void *arg)
{
	struct ow_sweep_point point = {.name = ow_trial_name(method), .low = INFINITY};
	double sum = 0;
	for (uint64_t seed = 0; seed < OW_SWEEP_SEEDS; seed++) {
		struct ow_compare_row row;
		ow_trial_run(method, &c->traffic, memory, c->options.seed + seed, false, &row);
		double error = fabs(ow_compare_error(&row.estimate.mean_ns, c->comparison.exact->delay.mean_ns));
		if (isnan(error))
			return 0;
		sum += error * error;
		point.low = fmin(point.low, error);
		point.high = fmax(point.high, error);
		point.wire_bytes += (double)row.wire_bytes / OW_SWEEP_SEEDS;
	}
	point.error = sqrt(sum / OW_SWEEP_SEEDS);
	return tell(arg, &point);
}

int ow_compare_sweep(struct ow_compare *compare, ow_compare_point *tell, void *arg)
{
	size_t methods = ow_trial_methods();
	int r = 0;
	for (size_t i = 0; i < methods && r == 0; i++) {
		for (size_t k = 0; k < SWEEP_SIZES && r == 0; k++) {
			size_t memory = compare->options.memory / 16 << 2 * k;
			if (memory > 0 && memory <= OW_SYNOPSIS_BYTES_MAX)
				r = sweep_point(compare, i, memory, tell, arg);
			tell_progress(compare, ((double)i + (double)(k + 1) / SWEEP_SIZES) / (double)methods);
		}
	}
	return r;
}
