/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FineComb compared with the truth of streams with loss and drift over the boundaries, and the coverage of its
 * intervals.
 */
#include "estimate/finecomb_estimate.h"
#include "papers/stream.h"
#include "synopsis/copies.h"
#include "synopsis/finecomb.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* As in test_lda_estimate.c. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS 40
#else
#define RUNS 1000
#endif
#define MARGIN 1000

struct scene {
	const char *what, *delay;
	uint32_t storage;
	bool four;
	uint64_t packets;
	double loss;
	uint64_t reorder[4];
};

struct measured {
	struct ow_stream_truth truth;
	double lost; /* never arrived, in the interval or next to it */
	struct ow_estimate e;
};

static void tune(const struct scene *s, struct ow_finecomb_params *params)
{
	uint64_t most = 0;
	for (int i = 0; i < 4; i++)
		most = s->reorder[i] > most ? s->reorder[i] : most;
	double n = (double)s->packets, rho = 4 * (double)most / n;
	int r = s->four ? ow_finecomb_tune_four(n, s->storage, (double[]){s->loss / 5, s->loss * 5},
	                                        (double[]){rho / 5, rho * 5}, OW_FINECOMB_MARGIN, params, NULL)
	                : ow_finecomb_tune(n, s->storage, s->loss, rho, true, OW_FINECOMB_MARGIN, params, NULL);
	assert_int_equal(r, 0);
}

static struct measured measure(const struct scene *s, uint64_t seed, const struct ow_finecomb_options *options)
{
	struct ow_stream_params p = {.packets = s->packets,
	                             .interval_ns = 1000000000,
	                             .delay = s->delay,
	                             .loss = s->loss,
	                             .reorder = {s->reorder[0], s->reorder[1], s->reorder[2], s->reorder[3]},
	                             .margin = MARGIN,
	                             .no_delays = true,
	                             .seed = seed};
	struct ow_made_stream stream;
	struct ow_finecomb_params params;
	struct ow_finecomb *a, *b;
	struct measured m;
	assert_int_equal(ow_stream_make(&p, &stream, NULL), 0);
	tune(s, &params);
	assert_int_equal(ow_finecomb_create(&params, seed, &a, NULL), 0);
	assert_int_equal(ow_finecomb_create(&params, seed, &b, NULL), 0);
	a->base.ops->add(&a->base, stream.a, stream.as);
	ow_finecomb_before(b, stream.before, stream.befores);
	b->base.ops->add(&b->base, stream.b, stream.bs);
	ow_finecomb_after(b, stream.after, stream.afters);
	struct ow_view va = {.synopsis = &a->base, .packets = stream.as};
	struct ow_view vb = {.synopsis = &b->base, .packets = stream.bs};
	assert_int_equal(ow_finecomb_estimate_with(&va, &vb, options, &m.e), 0);
	m.truth = stream.truth;
	/* In addition to the margins, before and after have the packets that drifted out. */
	m.lost = (double)stream.truth.lost - ((double)stream.befores + (double)stream.afters - 2 * MARGIN);
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
	ow_stream_done(&stream);
	return m;
}

static bool within(const struct ow_value *v, double truth)
{
	return v->status != OW_VALUE_NONE && v->low - 1e-9 * fabs(truth) <= truth &&
	       truth <= v->high + 1e-9 * fabs(truth);
}

static void share(const char *what, const char *value, unsigned held, double low, double high)
{
	double c = (double)held / RUNS;
	print_message("%s, %s: %.1f %%\n", what, value, 100 * c);
	if (RUNS >= 500 && !(c >= low && c <= high))
		fail_msg("%s: the interval of %s held the truth in %u of %u runs", what, value, held, RUNS);
}

static void test_coverage(void **state)
{
	(void)state;
	static const struct scene scenes[] = {
		{"loss", "weibull:10us,0.8", 512, false, 10000, 0.05, {0}},
		{"forward", "weibull:10us,0.6", 256, false, 10000, 0.02, {0, 100, 0, 0}},
		{"backward", "weibull:10us,0.8", 512, false, 10000, 0.02, {0, 0, 50, 0}},
		{"drift in", "weibull:10us,0.8", 512, false, 10000, 0.02, {50, 0, 0, 0}},
		{"all four", "weibull:10us,0.8", 256, false, 10000, 0.02, {25, 50, 15, 50}},
		{"four banks", "weibull:10us,0.8", 1024, true, 20000, 0.01, {50, 50, 50, 50}},
	};
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
		const struct scene *s = &scenes[i];
		unsigned mean = 0, stddev = 0, lost = 0, extra = 0;
		for (uint64_t r = 0; r < RUNS; r++) {
			struct measured m = measure(s, 1000 * i + r, &(struct ow_finecomb_options){0});
			mean += within(&m.e.mean_ns, m.truth.mean_ns);
			stddev += within(&m.e.stddev_ns, m.truth.stddev_ns);
			lost += within(&m.e.lost, m.lost);
			extra += within(&m.e.extra, (double)m.truth.extra);
		}
		share(s->what, "the mean", mean, 0.92, 0.99);
		share(s->what, "the standard deviation", stddev, 0.92, 0.99);
		/* Without drift it is exact, except for packets that drift unseen. */
		share(s->what, "lost packets", lost, 0.92, 1);
		share(s->what, "extra packets", extra, 0.92, 1);
	}
}

/* Drift and no loss: everything is repaired, and the counts are exact. */
static void test_complete(void **state)
{
	(void)state;
	static const struct scene s = {"drift", "weibull:10us,0.6", 512, false, 50000, 0, {5, 4, 3, 2}};
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct measured m = measure(&s, seed, &(struct ow_finecomb_options){0});
		assert_true(m.e.complete && m.e.useful == s.packets && m.e.mean_ns.status == OW_VALUE_EXACT);
		assert_true(m.e.lost.status == OW_VALUE_EXACT && m.e.lost.value == 0);
		assert_true(m.e.extra.status == OW_VALUE_EXACT && m.e.extra.value == 7);
		/* Seven packets of 50000, which drifted out, are in our mean and not in the stream's. */
		assert_true(fabs(m.e.mean_ns.value - m.truth.mean_ns) < 0.01 * m.truth.mean_ns);
		m = measure(&s, seed, &(struct ow_finecomb_options){.no_stash = true});
		assert_true(!m.e.complete && m.e.useful < s.packets);
	}
}

/*
 * Drift and loss: the printed estimate counts drift that spoilt buckets hide as lost, and only where C_A >= C_B it is
 * worse; ours is without bias. 200 runs: averages are good to 2 %.
 */
static void test_bias(void **state)
{
	(void)state;
	static const struct scene s = {"bias", "weibull:10us,0.8", 512, false, 20000, 0.02, {100, 0, 0, 0}};
	double ours = 0, printed = 0, where = 0, none = 0;
	enum { N = 200 };
	for (uint64_t seed = 0; seed < N; seed++) {
		struct measured m = measure(&s, seed, &(struct ow_finecomb_options){0});
		ours += m.e.lost.value / m.lost / N;
		m = measure(&s, seed, &(struct ow_finecomb_options){.paper_loss = true});
		printed += m.e.lost.value / m.lost / N;
		m = measure(&s, seed, &(struct ow_finecomb_options){.paper_loss = true, .paper_where = true});
		where += m.e.lost.value / m.lost / N;
		m = measure(&s, seed, &(struct ow_finecomb_options){.paper_loss = true, .no_stash = true});
		none += m.e.lost.value / m.lost / N;
	}
	assert_true(fabs(ours - 1) < 0.02);
	assert_true(printed < 0.96 && none < 0.8 && where > printed);
}

/* What decoded bytes may hold: no packets, huge and negative counts. Numbers or reasons, no failure. */
static void test_odd(void **state)
{
	(void)state;
	const struct ow_finecomb_params params = {2, {{3, UINT32_MAX, 1}, {2, 5, 1}}};
	struct ow_finecomb *a, *b;
	assert_int_equal(ow_finecomb_create(&params, 1, &a, NULL), 0);
	assert_int_equal(ow_finecomb_create(&params, 1, &b, NULL), 0);
	struct ow_estimate e;
	struct ow_view va = {.synopsis = &a->base}, vb = {.synopsis = &b->base};
	assert_int_equal(ow_estimate(&va, &vb, &e, NULL), 0);
	assert_true(e.mean_ns.status == OW_VALUE_NONE && e.mean_ns.reason && e.stddev_ns.reason && e.loss_ratio.reason);
	for (uint32_t i = 0; i < 5; i++) {
		a->bucket[i].packets = b->bucket[i].packets = UINT64_C(1) << (60 + i % 4);
		b->bucket[i].time = UINT64_MAX / (i + 1);
	}
	a->bucket[0].packets = UINT64_MAX;
	assert_int_equal(ow_estimate(&va, &vb, &e, NULL), 0);
	assert_true(e.mean_ns.status == OW_VALUE_NONE || isfinite(e.mean_ns.value));
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
}

/* More packets than were sent, since some arrive twice: they are extra, and no more of the others are lost. */
static void test_copies(void **state)
{
	(void)state;
	struct ow_made_stream s;
	struct ow_stream_params params = {.packets = 20000,
	                                  .interval_ns = 1000000000,
	                                  .delay = "weibull:10us,0.6",
	                                  .loss = 0.01,
	                                  .duplicate = 0.02,
	                                  .seed = 5};
	assert_int_equal(ow_stream_make(&params, &s, NULL), 0);
	assert_int_equal(ow_copies_rename(s.b, s.bs), 0);
	struct ow_sizing sizing = {20000, 0.01, 0.02};
	struct ow_synopsis *a, *b;
	assert_int_equal(ow_finecomb_create_for(65536, &sizing, 3, &a), 0);
	assert_int_equal(ow_finecomb_create_for(65536, &sizing, 3, &b), 0);
	a->ops->add(a, s.a, s.as);
	b->ops->add(b, s.b, s.bs);
	struct ow_view va = {.synopsis = a, .packets = s.as}, vb = {.synopsis = b, .packets = s.bs};
	struct ow_estimate e;
	assert_int_equal(ow_estimate(&va, &vb, &e, NULL), 0);
	assert_true(e.lost.low <= (double)s.truth.lost && (double)s.truth.lost <= e.lost.high);
	assert_true(fabs(e.lost.value - (double)s.truth.lost) < 0.3 * (double)s.truth.lost);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	ow_stream_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coverage), cmocka_unit_test(test_complete), cmocka_unit_test(test_bias),
		cmocka_unit_test(test_odd),      cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
