/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs methods as two points would use them: each point fills its synopsis in batches, one sends the encoding, and the
 * other decodes it and estimates. A time is the smallest of some repetitions, because disturbances can only add time.
 */
#include "papers/trial.h"

#include "base/clock.h"
#include "base/time.h"
#include "estimate/fold_estimate.h"
#include "estimate/lda_estimate.h"
#include "estimate/rda_estimate.h"
#include "synopsis/bottomk.h"
#include "synopsis/finecomb.h"
#include "synopsis/fold.h"
#include "synopsis/lda.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH       256                 /* packets of one add, as a lane recorder delivers them */
#define REPEAT_MAX  20                  /* repetitions of a timed operation, */
#define REPEAT_NS   (50 * OW_NS_PER_MS) /* or until this much time has passed */
#define RECORD_SIZE 16                  /* record of a cache: id and time */

static int lda_plus(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	return ow_lda_estimate_with(a, b, &(struct ow_lda_options){.plus = true}, ret_estimate);
}

/* As in the paper: two banks, ids without a check, standard deviation from pairs of cells. */
static int rda_published(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
                         struct ow_synopsis **ret_synopsis)
{
	(void)sizing;
	struct ow_rda_params params = {.banks = 2, .cells = (uint32_t)(memory / (2 * sizeof(struct ow_rda_cell)))};
	return ow_rda_create(&params, seed, ret_synopsis);
}

static int rda_published_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	struct ow_rda_estimate_options options = {.peel.published = true, .published = true};
	return ow_rda_estimate_with(a, b, &options, ret_estimate);
}

static int fold_within(const struct ow_view *a, const struct ow_view *b, size_t memory,
                       struct ow_estimate *ret_estimate)
{
	struct ow_reconciled_options options = {OW_RECONCILED_BUCKETS, OW_RECONCILED_SAMPLE, .bytes = memory};
	return ow_fold_estimate_with(a, b, &options, ret_estimate, NULL);
}

/* One row for each method. */
/* clang-format off */
static const struct method {
	const char *name;
	/* For a synopsis: its constructor by memory, and its estimator (NULL: the default of its kind). */
	int (*create_for)(size_t memory, const struct ow_sizing *sizing, uint64_t seed,
	                  struct ow_synopsis **ret_synopsis);
	int (*estimate)(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
	int (*estimate_within)(const struct ow_view *a, const struct ow_view *b, size_t memory,
	                       struct ow_estimate *ret_estimate); /* the same, with as many bytes on the wire */
	bool cache; /* the points also keep all records of the interval */
	/* For a baseline. */
	int (*baseline)(const struct ow_fates *fates, size_t memory, uint64_t seed, struct ow_estimate *ret_estimate,
	                struct ow_baseline_cost *ret_cost);
} methods[] = {
	{"lda", .create_for = ow_lda_create_for},
	{"lda+", .create_for = ow_lda_create_for, .estimate = lda_plus},
	{"finecomb", .create_for = ow_finecomb_create_for},
	{"finecomb-", .create_for = ow_finecomb_minus_create_for},
	{"srda", .create_for = ow_srda_create_for, .cache = true},
	{"rda", .create_for = ow_rda_create_for, .cache = true},
	{"rda-paper", .create_for = rda_published, .estimate = rda_published_estimate, .cache = true},
	{"fold", .create_for = ow_fold_create_for, .estimate_within = fold_within, .cache = true},
	{"bottomk", .create_for = ow_bottomk_create_for},
	{"sampled", .baseline = ow_baseline_sampled},
	{"probes", .baseline = ow_baseline_probes},
	{"direct", .baseline = ow_baseline_direct},
};
/* clang-format on */

size_t ow_trial_methods(void)
{
	return sizeof methods / sizeof *methods;
}

const char *ow_trial_name(size_t method)
{
	return methods[method].name;
}

void ow_sight_done(struct ow_sight *traffic)
{
	free(traffic->a);
	free(traffic->b);
	ow_fates_done(&traffic->fates);
	*traffic = (struct ow_sight){0};
}

static void fail(struct ow_compare_row *row, int code)
{
	snprintf(row->failure, sizeof row->failure, "%s", code == -EINVAL ? "too little memory" : strerror(-code));
}

/* -- baselines ---------------------------------------------------------------------------------------------------- */

static void run_baseline(const struct method *method, const struct ow_sight *traffic, size_t memory, uint64_t seed,
                         struct ow_compare_row *row)
{
	struct ow_baseline_cost cost;
	row->baseline = true;
	int r = method->baseline(&traffic->fates, memory, seed, &row->estimate, &cost);
	if (r < 0) {
		fail(row, r);
		return;
	}
	row->memory_bytes = cost.memory_bytes;
	row->wire_bytes = cost.wire_bytes;
	snprintf(row->params, sizeof row->params, "%s", cost.params);
}

/* -- synopses ----------------------------------------------------------------------------------------------------- */

struct trial {
	const struct method *method;
	const struct ow_sight *traffic;
	size_t memory;
	struct ow_synopsis *a, *b;
	uint8_t *bytes; /* b's encoding */
	size_t size;
	struct ow_compare_row *row;
	struct ow_error err;
};

static void insert(struct ow_synopsis *synopsis, const struct ow_sighting *sightings, size_t count)
{
	for (size_t i = 0; i < count; i += BATCH)
		synopsis->ops->add(synopsis, sightings + i, count - i < BATCH ? count - i : BATCH);
}

static void insert_all(struct trial *t, bool timed)
{
	const struct ow_sight *traffic = t->traffic;
	insert(t->b, traffic->b, traffic->bs);
	int64_t least = INT64_MAX, begin = ow_clock_steady_ns(), last = begin;
	for (int i = 0; i < (timed ? REPEAT_MAX : 1) && (i == 0 || last - begin < REPEAT_NS); i++) {
		if (i)
			t->a->ops->reset(t->a);
		int64_t from = ow_clock_steady_ns();
		insert(t->a, traffic->a, traffic->as);
		last = ow_clock_steady_ns();
		least = last - from < least ? last - from : least;
	}
	if (timed && traffic->as)
		t->row->insert_ns = (double)least / (double)traffic->as;
}

/* Decodes what B sent and estimates, as A would. */
static int conclude(struct trial *t, struct ow_estimate *ret_estimate)
{
	const struct ow_sight *traffic = t->traffic;
	struct ow_synopsis *peer;
	int r = ow_synopsis_decode(t->bytes, t->size, t->a->seed, &peer, &t->err);
	if (r < 0)
		return r;
	struct ow_view a = {t->a, traffic->as, NULL, 0}, b = {peer, traffic->bs, NULL, 0};
	if (t->method->cache) {
		a.cache = traffic->a;
		a.cached = traffic->as;
		b.cache = traffic->b;
		b.cached = traffic->bs;
	}
	bool own = t->method->estimate || t->method->estimate_within;
	r = t->method->estimate_within ? t->method->estimate_within(&a, &b, t->memory, ret_estimate)
	    : t->method->estimate      ? t->method->estimate(&a, &b, ret_estimate)
	                               : ow_estimate(&a, &b, ret_estimate, &t->err);
	if (r < 0 && own)
		ow_error_set(&t->err, -r, "%s", strerror(-r));
	ow_synopsis_free(peer);
	return r;
}

static void conclude_all(struct trial *t, bool timed)
{
	t->size = ow_synopsis_encoded_size(t->b);
	t->bytes = malloc(t->size);
	if (!t->bytes) {
		fail(t->row, -ENOMEM);
		return;
	}
	ow_synopsis_encode(t->b, t->bytes);
	int64_t least = INT64_MAX, begin = ow_clock_steady_ns(), last = begin;
	for (int i = 0; i < (timed ? REPEAT_MAX : 1) && (i == 0 || last - begin < REPEAT_NS); i++) {
		int64_t from = ow_clock_steady_ns();
		if (conclude(t, &t->row->estimate) < 0) {
			snprintf(t->row->failure, sizeof t->row->failure, "%.150s", t->err.text);
			return;
		}
		last = ow_clock_steady_ns();
		least = last - from < least ? last - from : least;
	}
	if (timed)
		t->row->decode_us = (double)least / 1e3;
	t->row->wire_bytes = t->size + t->row->estimate.more_bytes;
}

static void run_synopsis(const struct method *method, const struct ow_sight *traffic, size_t memory, uint64_t seed,
                         bool timed, struct ow_compare_row *row)
{
	struct trial t = {.method = method, .traffic = traffic, .memory = memory, .row = row};
	int r = method->create_for(memory, &traffic->sizing, seed, &t.a);
	if (r == 0)
		r = method->create_for(memory, &traffic->sizing, seed, &t.b);
	if (r < 0) {
		fail(row, r);
	} else {
		row->memory_bytes = t.a->ops->memory(t.a);
		row->cache_bytes = method->cache ? RECORD_SIZE * (uint64_t)traffic->as : 0;
		if (t.a->ops->describe)
			t.a->ops->describe(t.a, row->params, sizeof row->params);
		insert_all(&t, timed);
		conclude_all(&t, timed);
	}
	free(t.bytes);
	ow_synopsis_free(t.a);
	ow_synopsis_free(t.b);
}

void ow_trial_run(size_t method, const struct ow_sight *traffic, size_t memory, uint64_t seed, bool timed,
                  struct ow_compare_row *ret_row)
{
	*ret_row = (struct ow_compare_row){.name = methods[method].name, .insert_ns = NAN, .decode_us = NAN};
	ow_estimate_none(&ret_row->estimate, OW_REASON_METHOD_NOT_TRIED);
	if (methods[method].baseline)
		run_baseline(&methods[method], traffic, memory, seed, ret_row);
	else
		run_synopsis(&methods[method], traffic, memory, seed, timed, ret_row);
	/* Discards the results of the stages before the failure. */
	if (*ret_row->failure)
		ow_estimate_none(&ret_row->estimate, OW_REASON_METHOD_NOT_TRIED);
}
