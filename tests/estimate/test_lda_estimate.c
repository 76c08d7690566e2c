/* SPDX-License-Identifier: Apache-2.0 */
/* The papers' examples, every pattern of loss at tiny sizes, and the coverage of intervals. */
#include "estimate/lda_estimate.h"
#include "estimate/moments_estimate.h"
#include "papers/stream.h"
#include "synopsis/lda.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/*
 * Coverage needs many runs: of 500, an interval that holds in 95 % of cases may well fall below 92 % (one did:
 * 459 of 500 where 8000 runs give 94.6 %); 1500 settle it. A sanitized build, five times slower, only shows that
 * nothing is amiss.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS 50
#else
#define RUNS 1500
#endif

static struct ow_lda *make(const struct ow_lda_params *params, uint64_t seed)
{
	struct ow_lda *lda;
	assert_int_equal(ow_lda_create(params, seed, &lda, NULL), 0);
	return lda;
}

static struct ow_estimate estimate(struct ow_lda *a, struct ow_lda *b, uint64_t sent, uint64_t received,
                                   struct ow_lda_options options)
{
	struct ow_estimate e;
	struct ow_view va = {.synopsis = &a->base, .packets = sent}, vb = {.synopsis = &b->base, .packets = received};
	assert_int_equal(ow_lda_estimate_with(&va, &vb, &options, &e), 0);
	return e;
}

/* LDA figure 2. */
static void test_figure_2(void **state)
{
	(void)state;
	const struct ow_lda_params params = {1, {{4, UINT32_MAX}}};
	struct ow_lda *a = make(&params, 1), *b = make(&params, 1);
	memcpy(a->bucket, (struct ow_lda_bucket[]){{120, 5}, {234, 10}, {15, 2}, {6, 1}}, 64);
	memcpy(b->bucket, (struct ow_lda_bucket[]){{180, 5}, {348, 9}, {37, 2}, {14, 1}}, 64);
	struct ow_estimate e = estimate(a, b, 18, 17, (struct ow_lda_options){0});
	assert_true(e.mean_ns.status == OW_VALUE_ESTIMATED && e.mean_ns.value == 11.25);
	assert_true(e.useful == 8 && e.lost.value == 1 && e.extra.value == 0);
	assert_true(e.mean_ns.low < 11.25 && e.mean_ns.high > 11.25 && !e.complete);
	/* ((60 - 56.25)^2/5 + (22 - 22.5)^2/2 + (8 - 11.25)^2/1) / (3 - 1) */
	assert_true(fabs(e.stddev_ns.value - sqrt((2.8125 + 0.125 + 10.5625) / 2)) < 1e-12);
	/* Rows 3 and 4 are the only pair: F = 14^2 / 3, less than 11.25^2. */
	e = estimate(a, b, 18, 17, (struct ow_lda_options){.paper_stddev = true});
	assert_true(e.stddev_ns.status == OW_VALUE_NONE && e.stddev_ns.reason);
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
}

/* RDA figure 2: P5 is lost, P9 drifts in, both meet in the fourth bucket. */
static void test_rda_figure_2(void **state)
{
	(void)state;
	const struct ow_lda_params params = {1, {{5, UINT32_MAX}}};
	struct ow_lda *a = make(&params, 1), *b = make(&params, 1);
	memcpy(a->bucket, (struct ow_lda_bucket[]){{270, 2}, {150, 1}, {250, 1}, {310, 1}, {330, 1}}, 80);
	memcpy(b->bucket, (struct ow_lda_bucket[]){{420, 2}, {260, 1}, {390, 1}, {760, 1}, {450, 1}}, 80);
	struct ow_estimate e = estimate(a, b, 6, 6, (struct ow_lda_options){0});
	assert_true(fabs(e.mean_ns.value - 970 / 6.) < 1e-12);
	b->bucket[3] = (struct ow_lda_bucket){0, 0};
	e = estimate(a, b, 6, 5, (struct ow_lda_options){0});
	assert_true(e.mean_ns.value == 104);
	/* LDA+ leaves out what a bucket with a negative sum shows. */
	b->bucket[3] = (struct ow_lda_bucket){100, 1};
	e = estimate(a, b, 6, 6, (struct ow_lda_options){.plus = true});
	assert_true(e.mean_ns.value == 104);
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
}

/* Every set of lost packets out of 10, in 1 to 5 buckets: the mean of the packets whose bucket lost none. */
static void test_all_losses(void **state)
{
	(void)state;
	enum { N = 10 };
	struct ow_sighting sent[N], one[N];
	for (int i = 0; i < N; i++)
		sent[i] = (struct ow_sighting){(uint64_t)i + 1, 1000 * i};
	for (uint32_t m = 1; m <= 5; m++) {
		const struct ow_lda_params params = {1, {{m, UINT32_MAX}}};
		uint32_t where[N] = {0};
		for (int i = 0; i < N; i++) {
			struct ow_lda *probe = make(&params, m);
			probe->base.ops->add(&probe->base, &sent[i], 1);
			while (!probe->bucket[where[i]].packets)
				where[i]++;
			ow_synopsis_free(&probe->base);
		}
		for (unsigned lost = 0; lost < 1u << N; lost++) {
			struct ow_lda *a = make(&params, m), *b = make(&params, m);
			unsigned spoilt = 0;
			size_t received = 0;
			for (int i = 0; i < N; i++) {
				if (lost >> i & 1)
					spoilt |= 1u << where[i];
				else
					one[received++] = (struct ow_sighting){sent[i].id, sent[i].time_ns + 7 * i * i};
			}
			a->base.ops->add(&a->base, sent, N);
			b->base.ops->add(&b->base, one, received);
			double sum = 0, n = 0;
			for (int i = 0; i < N; i++)
				if (!(spoilt >> where[i] & 1)) {
					sum += 7 * i * i;
					n++;
				}
			struct ow_estimate e = estimate(a, b, N, received, (struct ow_lda_options){0});
			assert_true((double)e.useful == n && e.lost.value == (double)(N - received));
			if (n > 0)
				assert_true(fabs(e.mean_ns.value - sum / n) < 1e-9);
			else
				assert_true(e.mean_ns.status == OW_VALUE_NONE && e.mean_ns.reason);
			ow_synopsis_free(&a->base);
			ow_synopsis_free(&b->base);
		}
	}
}

/* A constant clock error shifts the mean and leaves the deviation alone, however large it is. */
static void test_offset(void **state)
{
	(void)state;
	const int64_t hour = INT64_C(3600000000000);
	const struct ow_lda_params params = {1, {{50, UINT32_MAX}}};
	struct ow_estimate e[2];
	for (int k = 0; k < 2; k++) {
		struct ow_lda *a = make(&params, 3), *b = make(&params, 3);
		for (uint64_t i = 0; i < 5000; i++) {
			struct ow_sighting s = {i, (int64_t)i * 1000}, r = {i, (int64_t)(i * 1000 + i % 97) + k * hour};
			a->base.ops->add(&a->base, &s, 1);
			b->base.ops->add(&b->base, &r, 1);
		}
		e[k] = estimate(a, b, 5000, 5000, (struct ow_lda_options){0});
		ow_synopsis_free(&a->base);
		ow_synopsis_free(&b->base);
	}
	assert_true(fabs(e[1].mean_ns.value - e[0].mean_ns.value - (double)hour) < 1e-2);
	assert_true(fabs(e[1].stddev_ns.value - e[0].stddev_ns.value) < 1e-6 * e[0].stddev_ns.value);
}

/* -- coverage ------------------------------------------------------------------------------------------------------ */

struct coverage {
	const char *what;
	const char *delay;
	uint32_t banks, buckets[2];
	double tuned[2];
	uint64_t packets;
	double loss;
	uint64_t pre_start; /* packets that drift in */
};

struct tally {
	unsigned mean, stddev, lost, extra, with_mean, with_stddev;
	double samples;
};

static bool within(const struct ow_value *v, double truth)
{
	return v->low - 1e-9 * fabs(truth) <= truth && truth <= v->high + 1e-9 * fabs(truth);
}

static void run(const struct coverage *c, uint64_t seed, struct tally *t)
{
	struct ow_stream_params p = {.packets = c->packets,
	                             .interval_ns = 1000000000,
	                             .delay = c->delay,
	                             .loss = c->loss,
	                             .reorder = {c->pre_start, 0, 0, 0},
	                             .no_delays = true,
	                             .seed = seed};
	struct ow_made_stream s;
	struct ow_lda_params params;
	assert_int_equal(ow_stream_make(&p, &s, NULL), 0);
	assert_int_equal(ow_lda_tune((double)c->packets, c->buckets, c->tuned, c->banks, OW_LDA_ALPHA, &params, NULL),
	                 0);
	struct ow_lda *a = make(&params, seed), *b = make(&params, seed);
	a->base.ops->add(&a->base, s.a, s.as);
	b->base.ops->add(&b->base, s.b, s.bs);
	struct ow_estimate e = estimate(a, b, s.as, s.bs, (struct ow_lda_options){0});
	t->with_mean += e.mean_ns.status != OW_VALUE_NONE;
	t->with_stddev += e.stddev_ns.status != OW_VALUE_NONE;
	t->mean += within(&e.mean_ns, s.truth.mean_ns);
	t->stddev += within(&e.stddev_ns, s.truth.stddev_ns);
	t->lost += within(&e.lost, (double)s.truth.lost);
	t->extra += within(&e.extra, (double)s.truth.extra);
	t->samples += (double)e.useful;
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
	ow_stream_done(&s);
}

static void share(const char *what, const char *value, unsigned held, unsigned runs, double low, double high)
{
	double c = (double)held / runs;
	print_message("%s, %s: %.1f %%\n", what, value, 100 * c);
	if (RUNS >= 500 && !(c >= low && c <= high))
		fail_msg("%s: the interval of %s held the truth in %u of %u runs", what, value, held, runs);
}

static void test_coverage(void **state)
{
	(void)state;
	static const struct coverage cases[] = {
		{"long tail", "weibull:10us,0.6", 1, {256}, {0.05}, 10000, 0.05, 0},
		{"little loss", "weibull:10us,0.6", 1, {256}, {0.01}, 10000, 0.01, 0},
		{"exponential", "weibull:10us,1", 1, {128}, {0.05}, 10000, 0.05, 0},
		{"few buckets", "weibull:10us,1", 1, {32}, {0.02}, 10000, 0.02, 0},
		{"two banks", "weibull:10us,0.8", 2, {128, 256}, {0.01, 0.05}, 20000, 0.03, 0},
		{"narrow", "pareto:10us,5", 1, {256}, {0.05}, 10000, 0.05, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct coverage *c = &cases[i];
		struct tally t = {0};
		for (uint64_t r = 0; r < RUNS; r++)
			run(c, 1000 * i + r, &t);
		share(c->what, "the mean", t.mean, t.with_mean, 0.92, 0.99);
		share(c->what, "the standard deviation", t.stddev, t.with_stddev, 0.92, 0.99);
		/* Without extra packets the difference of the counts is the truth. */
		share(c->what, "lost packets", t.lost, RUNS, 0.92, 1);
		assert_true(t.with_mean == RUNS && t.with_stddev == RUNS);
		/* The expected samples, within 10 %: they scatter by a few percent, and their average by far less. */
		if (c->banks == 1) {
			double lost = c->loss * (double)c->packets,
			       p = ow_lda_sampling(c->buckets[0], lost, OW_LDA_ALPHA);
			double want = p * ((double)c->packets - lost) * exp(-p * lost / c->buckets[0]);
			assert_true(fabs(t.samples / RUNS - want) < 0.1 * want);
		}
	}
}

/* Packets drift in: the counts of lost and extra packets still hold, and the delays are not trusted. */
static void test_disorder(void **state)
{
	(void)state;
	static const struct coverage c = {"disorder", "weibull:10us,0.6", 1, {256}, {0.05}, 10000, 0.05, 300};
	struct tally t = {0};
	for (uint64_t r = 0; r < RUNS; r++)
		run(&c, 9000 + r, &t);
	share(c.what, "lost packets", t.lost, RUNS, 0.92, 1);
	share(c.what, "extra packets", t.extra, RUNS, 0.92, 1);
	share(c.what, "the mean", t.mean, RUNS, 0.92, 1);
}

/* -- moments ------------------------------------------------------------------------------------------------------- */

/* All packets are common: the mean is exact and chi-squared holds the deviation. The header's example, too. */
static void test_moments(void **state)
{
	(void)state;
	unsigned held = 0;
	for (uint64_t r = 0; r < RUNS; r++) {
		struct ow_stream_params p = {.packets = 5000,
		                             .interval_ns = 1000000000,
		                             .delay = "weibull:10us,0.6",
		                             .no_delays = true,
		                             .seed = r};
		struct ow_made_stream s;
		struct ow_moments *a, *b;
		struct ow_estimate e;
		assert_int_equal(ow_stream_make(&p, &s, NULL), 0);
		assert_int_equal(ow_moments_create(200, r, &a, NULL), 0);
		assert_int_equal(ow_moments_create(200, r, &b, NULL), 0);
		a->base.ops->add(&a->base, s.a, s.as);
		b->base.ops->add(&b->base, s.b, s.bs);
		struct ow_view va = {&a->base, s.as, s.a, s.as}, vb = {&b->base, s.bs, NULL, 0};
		assert_int_equal(ow_estimate(&va, &vb, &e, NULL), 0);
		assert_true(e.mean_ns.status == OW_VALUE_EXACT);
		assert_true(fabs(e.mean_ns.value - s.truth.mean_ns) < 1e-9 * s.truth.mean_ns);
		held += within(&e.stddev_ns, s.truth.stddev_ns);
		b->base.ops->remove(&b->base, s.b, 1);
		assert_int_equal(ow_estimate(&va, &vb, &e, NULL), 0);
		assert_true(e.mean_ns.status == OW_VALUE_NONE && e.mean_ns.reason);
		ow_synopsis_free(&a->base);
		ow_synopsis_free(&b->base);
		ow_stream_done(&s);
	}
	share("moments", "the standard deviation", held, RUNS, 0.92, 0.99);

	struct ow_moments *a, *b;
	struct ow_value mean, stddev;
	assert_int_equal(ow_moments_create(2, 1, &a, NULL), 0);
	assert_int_equal(ow_moments_create(2, 1, &b, NULL), 0);
	b->time[0] = 8;
	b->time[1] = 10;
	assert_int_equal(ow_moments_values(a, b, (uint32_t[]){2, 1}, &mean, &stddev), 0);
	assert_true(mean.value == 6 && fabs(stddev.value * stddev.value - 24) < 1e-12);
	ow_synopsis_free(&a->base);
	ow_synopsis_free(&b->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figure_2), cmocka_unit_test(test_rda_figure_2), cmocka_unit_test(test_all_losses),
		cmocka_unit_test(test_offset),   cmocka_unit_test(test_coverage),     cmocka_unit_test(test_disorder),
		cmocka_unit_test(test_moments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
