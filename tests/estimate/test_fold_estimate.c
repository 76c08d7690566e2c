/* SPDX-License-Identifier: Apache-2.0 */
/* The default method from two streams to numbers: exactness, coverage, bytes, and its behaviour when it fails. */
#include "estimate/fold_estimate.h"
#include "papers/stream.h"
#include "synopsis/copies.h"
#include "synopsis/fold.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS 20
#else
#define RUNS 600
#endif

static const struct ow_reconciled_options defaults = {OW_RECONCILED_BUCKETS, OW_RECONCILED_SAMPLE};

struct outcome {
	struct ow_estimate estimate;
	struct ow_fold_cost cost;
	size_t push; /* bytes of B's synopsis */
};

static struct ow_synopsis *make(uint32_t cells, bool estimator, uint64_t seed, double expected,
                                const struct ow_sighting *stamps, size_t count)
{
	struct ow_synopsis *fold;
	assert_int_equal(ow_fold_create(&(struct ow_fold_params){4, cells, 0, estimator}, seed, &fold), 0);
	fold->ops->add(fold, stamps, count);
	ow_fold_expect(fold, expected);
	return fold;
}

static struct outcome run(const struct ow_made_stream *s, uint32_t cells, bool estimator, double expected,
                          uint64_t seed, const struct ow_reconciled_options *options)
{
	struct outcome o;
	struct ow_synopsis *a = make(cells, estimator, seed, expected, s->a, s->as),
			   *b = make(cells, estimator, seed, expected, s->b, s->bs);
	struct ow_view va = {a, s->as, s->a, s->as}, vb = {b, s->bs, s->b, s->bs};
	o.push = ow_synopsis_encoded_size(b);
	assert_int_equal(ow_fold_estimate_with(&va, &vb, options, &o.estimate, &o.cost), 0);
	assert_int_equal(o.cost.push, o.push);
	assert_int_equal(o.estimate.more_bytes, o.cost.top_up + o.cost.names + o.cost.delays);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	return o;
}

static struct ow_made_stream stream(uint64_t packets, double loss, uint64_t reorder, uint64_t seed, int64_t offset_ns)
{
	struct ow_made_stream s;
	struct ow_error err;
	struct ow_stream_params params = {.packets = packets,
	                                  .interval_ns = 1000000000,
	                                  .delay = "weibull:10us,0.6",
	                                  .loss = loss,
	                                  .reorder = {reorder, reorder, reorder, reorder},
	                                  .clock_offset_ns = offset_ns,
	                                  .seed = seed};
	if (ow_stream_make(&params, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static bool near(double x, double y)
{
	return fabs(x - y) <= 1e-9 * fmax(1, fabs(y));
}

static void check_exact(const struct outcome *o, const struct ow_stream_truth *truth)
{
	const struct ow_estimate *e = &o->estimate;
	assert_true(e->complete);
	assert_true(e->lost.status == OW_VALUE_EXACT && e->lost.value == (double)truth->lost);
	assert_true(e->extra.status == OW_VALUE_EXACT && e->extra.value == (double)truth->extra);
	assert_true(e->loss_ratio.status == OW_VALUE_EXACT &&
	            near(e->loss_ratio.value, (double)truth->lost / (double)truth->sent));
	assert_true(e->useful == truth->common && e->mean_ns.status == OW_VALUE_EXACT);
	assert_true(near(e->mean_ns.value, truth->mean_ns));
}

/* Loss and mean are exact, with losses, reordering and clock offsets; a second fold where the first was too small. */
static void exact(void **state)
{
	(void)state;
	static const struct {
		double loss, expected;
		uint64_t packets, reorder;
		int64_t offset_ns;
	} cases[] = {
		{0, 0, 20000, 0, 0},       {0, 10, 20000, 0, -1000000000}, {0.001, 20, 20000, 0, 37000000000},
		{0.01, 600, 20000, 50, 0}, {0.01, 10, 20000, 50, 0},       {0.2, 4000, 20000, 0, 0},
		{0.2, 100, 20000, 100, 5}, {0.05, 50, 900, 10, 0},         {0.5, 0, 2000, 0, 0},
		{1, 3000, 3000, 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_made_stream s =
			stream(cases[i].packets, cases[i].loss, cases[i].reorder, i, cases[i].offset_ns);
		struct outcome o = run(&s, OW_FOLD_CELLS, true, cases[i].expected, i, &defaults);
		uint64_t d = s.truth.lost + s.truth.extra;
		if (s.truth.common)
			check_exact(&o, &s.truth);
		else
			assert_true(o.estimate.complete && o.estimate.mean_ns.status == OW_VALUE_NONE &&
			            o.estimate.mean_ns.reason);
		if (cases[i].expected >= (double)d) {
			assert_true(o.cost.top_up == 0);
		} else if (cases[i].expected * 2 < (double)d && d > 100) {
			/* Not more than the difference needs, with its uncertainty. */
			assert_true(o.cost.top_up > 0 && (double)o.cost.top_up < 8 * 1.725 * 1.25 * (double)d + 1000);
		}
		assert_int_equal(o.estimate.round_trips, (o.cost.top_up > 0) + (s.truth.common > 0));
		ow_stream_done(&s);
	}
}

/* Few packets: all times are exchanged, everything is exact. */
static void few_packets_are_exact(void **state)
{
	(void)state;
	for (uint64_t packets = 1; packets < 2500; packets = packets * 3 + 1) {
		struct ow_made_stream s = stream(packets, 0.02, 0, packets, 0);
		struct outcome o = run(&s, OW_FOLD_CELLS, true, 100, 1, &defaults);
		const struct ow_estimate *e = &o.estimate;
		if (s.truth.common) {
			check_exact(&o, &s.truth);
			assert_true(e->stddev_ns.status == OW_VALUE_EXACT &&
			            fabs(e->stddev_ns.value - s.truth.stddev_ns) <= 1e-6 * s.truth.stddev_ns);
			for (int q = 0; q < OW_QUANTILES; q++) {
				size_t rank =
					(size_t)fmax(1, ceil(ow_quantile_level[q] * (double)s.truth.common - 1e-9));
				assert_true(e->quantile_ns[q].status == OW_VALUE_EXACT &&
				            e->quantile_ns[q].value == (double)s.delay[rank - 1]);
			}
		}
		ow_stream_done(&s);
	}
}

struct held {
	unsigned stddev, mean, lost, quantile[OW_QUANTILES], runs, estimated;
};

static bool holds(const struct ow_value *value, double truth)
{
	return value->status != OW_VALUE_NONE && value->low <= truth && truth <= value->high;
}

static void count_held(struct held *held, const struct ow_estimate *e, const struct ow_made_stream *s)
{
	held->runs++;
	held->stddev += holds(&e->stddev_ns, s->truth.stddev_ns);
	held->mean += holds(&e->mean_ns, s->truth.mean_ns);
	held->lost += holds(&e->lost, (double)s->truth.lost);
	for (int q = 0; q < OW_QUANTILES; q++) {
		size_t rank = (size_t)fmax(1, ceil(ow_quantile_level[q] * (double)s->truth.common - 1e-9));
		held->quantile[q] += holds(&e->quantile_ns[q], (double)s->delay[rank - 1]);
	}
}

static void check_share(const char *what, unsigned held, unsigned runs, double most)
{
	/* Few runs (sanitizers) only show that nothing is amiss. */
	double least = runs >= 500 ? 0.92 : 0.7;
	if (held < least * runs || held > (runs >= 500 ? most : 1) * runs)
		fail_msg("%s: %u of %u", what, held, runs);
}

/* Standard deviation and quantiles after reconciliation. */
static void coverage_complete(void **state)
{
	(void)state;
	static const struct {
		uint64_t packets;
		struct ow_reconciled_options options;
	} cases[] = {{20000, {256, 400}}, {3000, {1024, 100}}, {40000, {1024, 1000}}};
	for (size_t k = 0; k < 3; k++) {
		struct held held = {0};
		for (uint64_t seed = 0; seed < RUNS; seed++) {
			struct ow_made_stream s = stream(cases[k].packets, 0.002, 3, 1000 * k + seed, 0);
			struct outcome o = run(&s, 200, true, 0, seed, &cases[k].options);
			assert_true(o.estimate.complete && o.estimate.stddev_ns.status == OW_VALUE_ESTIMATED);
			check_exact(&o, &s.truth);
			count_held(&held, &o.estimate, &s);
			ow_stream_done(&s);
		}
		check_share("stddev", held.stddev, held.runs, 0.99);
		for (int q = 0; q < OW_QUANTILES; q++)
			check_share(ow_quantile_name[q], held.quantile[q], held.runs,
			            cases[k].options.sample * (1 - ow_quantile_level[q]) < 2 ? 1 : 0.99);
	}
}

/* Nothing is known but the number of differences: clean buckets and the sample. */
static void coverage_unreconciled(void **state)
{
	(void)state;
	struct held held = {0};
	const struct ow_reconciled_options options = {500, 400};
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct ow_made_stream s = stream(20000, 0.05, 10, 77 + seed, 0);
		struct ow_estimate e;
		ow_estimate_none(&e, OW_NO_REASON);
		double d = (double)(s.truth.lost + s.truth.extra);
		const struct ow_reconciled_plan plan = {false, options.buckets, options.sample, d};
		assert_int_equal(ow_reconciled_delays(s.a, s.as, s.b, s.bs, &plan, 0, seed, &e), 0);
		count_held(&held, &e, &s);
		ow_stream_done(&s);
	}
	check_share("mean", held.mean, held.runs, 0.99);
	check_share("stddev", held.stddev, held.runs, 0.99);
	for (int q = 0; q < OW_Q99; q++)
		check_share(ow_quantile_name[q], held.quantile[q], held.runs, 0.99);
}

/* A table that cannot be peeled to the end: what is left is judged by clean buckets, the losses by the counters. */
static void coverage_incomplete(void **state)
{
	(void)state;
	struct held held = {0};
	const struct ow_reconciled_options options = {500, 400};
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct ow_made_stream s = stream(20000, 0.05, 0, seed, 0);
		struct ow_synopsis *a = make(40, true, seed, 0, s.a, s.as), *b = make(40, true, seed, 0, s.b, s.bs);
		struct ow_view va = {a, s.as, s.a, s.as}, vb = {b, s.bs, s.b, s.bs};
		struct ow_estimate e;
		/* What would make the second fold complete is spoilt: a packet that is there three times more. */
		for (int i = 0; i < 3; i++)
			a->ops->add(a, s.a, 1);
		va.packets += 3;
		struct ow_sighting *more = malloc((s.as + 3) * sizeof *more);
		memcpy(more, s.a, s.as * sizeof *more);
		for (int i = 0; i < 3; i++)
			more[s.as + (size_t)i] = s.a[0];
		va.cache = more;
		va.cached = s.as + 3;
		assert_int_equal(ow_fold_estimate_with(&va, &vb, &options, &e, NULL), 0);
		assert_false(e.complete);
		assert_true(e.mean_ns.status == OW_VALUE_ESTIMATED && e.lost.status == OW_VALUE_ESTIMATED);
		s.truth.lost += 3;
		count_held(&held, &e, &s);
		free(more);
		ow_stream_done(&s);
		ow_synopsis_free(a);
		ow_synopsis_free(b);
	}
	check_share("mean", held.mean, held.runs, 0.99);
	check_share("stddev", held.stddev, held.runs, 0.99);
	for (int q = 0; q < OW_Q99; q++)
		check_share(ow_quantile_name[q], held.quantile[q], held.runs, 0.99);
	check_share("lost", held.lost, held.runs, 1);
}

/* More than the table holds: losses by the counters, within 5 deviations. */
static void too_large(void **state)
{
	(void)state;
	struct ow_made_stream s = stream(600000, 0.6, 0, 3, 0);
	struct outcome o = run(&s, OW_FOLD_CELLS, true, 1e5, 4, &defaults);
	assert_false(o.estimate.complete);
	double lost = (double)s.truth.lost;
	assert_true(o.estimate.lost.status == OW_VALUE_ESTIMATED && fabs(o.estimate.lost.value / lost - 1) < 5 * 0.045);
	assert_true(o.estimate.mean_ns.status == OW_VALUE_ESTIMATED && o.estimate.mean_ns.low < s.truth.mean_ns * 1.2);
	/* About 1/e m R/L = 251 samples, LDA's best. */
	assert_true(o.estimate.useful > 150);
	/* Without counters it says so. */
	o = run(&s, OW_FOLD_CELLS, false, 1e5, 4, &defaults);
	assert_true(o.estimate.lost.status == OW_VALUE_NONE && o.estimate.lost.reason && !o.estimate.complete);
	ow_stream_done(&s);
}

/* Packets that arrive twice: with names of their own for copies the first arrival counts, else they are ambiguous. */
static void copies(void **state)
{
	(void)state;
	for (int named = 0; named < 2; named++) {
		struct ow_made_stream s;
		struct ow_stream_params params = {.packets = 5000,
		                                  .interval_ns = 1000000000,
		                                  .delay = "constant:1ms",
		                                  .loss = 0.01,
		                                  .duplicate = 0.01,
		                                  .seed = 8};
		assert_int_equal(ow_stream_make(&params, &s, NULL), 0);
		uint64_t doubled = s.bs - (s.truth.common);
		if (named) {
			assert_int_equal(ow_copies_rename(s.a, s.as), 0);
			assert_int_equal(ow_copies_rename(s.b, s.bs), 0);
		}
		struct outcome o = run(&s, OW_FOLD_CELLS, true, 200, 8, &defaults);
		assert_true(doubled > 20 && o.estimate.complete);
		assert_true(o.estimate.lost.value == (double)s.truth.lost && o.estimate.extra.value == (double)doubled);
		assert_int_equal(o.cost.ambiguous, named ? 0 : doubled);
		assert_int_equal(o.estimate.useful, s.truth.common - o.cost.ambiguous);
		assert_true(near(o.estimate.mean_ns.value, 1e6));
		/* Of a sample: the ambiguous ones may have had other delays. */
		assert_int_equal(o.estimate.mean_ns.status, named ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED);
		ow_stream_done(&s);
	}
	/* Five copies at A, three at B: all eight are ambiguous. And two at A, none at B: lost. */
	struct ow_sighting a[] = {{1, 0}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 0}, {2, 0}, {3, 0}, {4, 0}},
			   b[] = {{1, 10}, {1, 11}, {1, 12}, {3, 7}, {4, 9}};
	ow_copies_rename(a, 9);
	ow_copies_rename(b, 5);
	struct ow_made_stream s = {.a = a, .b = b, .as = 9, .bs = 5};
	struct outcome o = run(&s, OW_FOLD_CELLS, true, 10, 8, &defaults);
	assert_true(o.estimate.complete && o.estimate.lost.value == 4 && o.estimate.extra.value == 0);
	assert_true(o.cost.ambiguous == 3 && o.estimate.useful == 2 && near(o.estimate.mean_ns.value, 8));
	assert_true(o.estimate.mean_ns.status == OW_VALUE_ESTIMATED && o.estimate.mean_ns.high > 9);
}

/* A long chain of copies, of which one is lost, takes one pass instead of one for each copy. */
static void many_copies(void **state)
{
	(void)state;
	enum { COPIES = 50000 };
	struct ow_sighting *a = calloc(COPIES, sizeof *a), *b = calloc(COPIES, sizeof *b);
	assert_true(a && b);
	for (int i = 0; i < COPIES; i++)
		a[i] = b[i] = (struct ow_sighting){i % 10 ? 5 : (uint64_t)i << 32, i};
	ow_copies_rename(a, COPIES);
	ow_copies_rename(b, COPIES - 1);
	struct ow_made_stream s = {.a = a, .b = b, .as = COPIES, .bs = COPIES - 1};
	clock_t start = clock();
	struct outcome o = run(&s, OW_FOLD_CELLS, true, 10, 8, &defaults);
	assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
	assert_true(o.estimate.complete && o.estimate.lost.value == 1);
	assert_int_equal(o.estimate.useful, COPIES / 10);
	assert_int_equal(o.cost.ambiguous, COPIES - COPIES / 10 - 1);
	free(a);
	free(b);
}

/* What comes over the wire is what A works with. */
static void decoded(void **state)
{
	(void)state;
	struct ow_made_stream s = stream(20000, 0.01, 20, 6, 0);
	for (int small = 0; small < 2; small++) {
		struct ow_synopsis *a = make(small ? 300 : OW_FOLD_CELLS, true, 5, 0, s.a, s.as),
				   *b = make(small ? 300 : OW_FOLD_CELLS, true, 5, 100, s.b, s.bs), *peer;
		size_t size = ow_synopsis_encoded_size(b);
		uint8_t *bytes = malloc(size);
		ow_synopsis_encode(b, bytes);
		assert_int_equal(ow_synopsis_decode(bytes, size, 5, &peer, NULL), 0);
		struct ow_view va = {a, s.as, s.a, s.as}, vb = {peer, s.bs, s.b, s.bs};
		struct outcome o;
		assert_int_equal(ow_fold_estimate_with(&va, &vb, &defaults, &o.estimate, &o.cost), 0);
		check_exact(&o, &s.truth);
		/* Without caches: losses, or the reason why not even these; no delays. */
		va.cache = vb.cache = NULL;
		va.cached = vb.cached = 0;
		assert_int_equal(ow_fold_estimate_with(&va, &vb, &defaults, &o.estimate, &o.cost), 0);
		assert_int_equal(o.estimate.complete, small);
		assert_true(o.estimate.mean_ns.status == OW_VALUE_NONE && o.estimate.lost.status != OW_VALUE_NONE);
		free(bytes);
		ow_synopsis_free(a);
		ow_synopsis_free(b);
		ow_synopsis_free(peer);
	}
	ow_stream_done(&s);
}

/* Reconciliation costs at most 3 KB + 20 bytes a difference below 1000 of them, 20 from there on: all included. */
static void bytes(void **state)
{
	(void)state;
	static const struct {
		uint64_t packets, reorder;
		double loss;
	} cases[] = {{1000000, 0, 1e-5},
	             {1000000, 0, 1e-4},
	             {1000000, 0, 1.02e-3},
	             {1000000, 250, 5e-4},
	             {1000000, 2500, 5e-3}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_made_stream s = stream(cases[i].packets, cases[i].loss, cases[i].reorder, 50 + i, 0);
		double d = (double)(s.truth.lost + s.truth.extra);
		struct outcome o = run(&s, OW_FOLD_CELLS, true, d, 50 + i, &defaults);
		double cost = (double)(o.cost.push + o.cost.top_up + o.cost.names);
		check_exact(&o, &s.truth);
		if (cost > (d < 1000 ? 3072 + 20 * d : 20 * d))
			fail_msg("%.0f differences: %.0f bytes", d, cost);
		ow_stream_done(&s);
	}
}

static void refuses_others(void **state)
{
	(void)state;
	struct ow_synopsis *a = make(100, true, 1, 0, NULL, 0), *b = make(100, true, 2, 0, NULL, 0),
			   *c = make(50, true, 1, 0, NULL, 0);
	struct ow_view va = {.synopsis = a}, vb = {.synopsis = b}, vc = {.synopsis = c};
	struct ow_estimate e;
	assert_int_equal(ow_fold_estimate(&va, &vb, &e), -EINVAL);
	assert_int_equal(ow_fold_estimate(&va, &vc, &e), -EINVAL);
	/* No packets at all. */
	assert_int_equal(ow_fold_estimate(&va, &va, &e), 0);
	assert_true(e.complete && e.mean_ns.status == OW_VALUE_NONE && e.lost.value == 0 &&
	            e.loss_ratio.status == OW_VALUE_NONE);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_synopsis_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(few_packets_are_exact),
		cmocka_unit_test(coverage_complete),
		cmocka_unit_test(coverage_unreconciled),
		cmocka_unit_test(coverage_incomplete),
		cmocka_unit_test(too_large),
		cmocka_unit_test(copies),
		cmocka_unit_test(many_copies),
		cmocka_unit_test(decoded),
		cmocka_unit_test(bytes),
		cmocka_unit_test(refuses_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
