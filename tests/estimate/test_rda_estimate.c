/* SPDX-License-Identifier: Apache-2.0 */
/* RDA and sRDA: the paper's examples, exactness if everything is decoded, and the coverage of intervals. */
#include "base/random.h"
#include "estimate/rda_estimate.h"
#include "papers/stream.h"
#include "synopsis/copies.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Coverage needs many runs; a sanitized build, five times slower, only shows that nothing is amiss. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNS 50
#else
#define RUNS 500
#endif

struct pair {
	struct ow_synopsis *a, *b;
};

static struct pair make_rda(uint32_t banks, uint32_t cells, uint64_t seed)
{
	struct pair p;
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){banks, cells, true}, seed, &p.a), 0);
	assert_int_equal(ow_rda_create(&(struct ow_rda_params){banks, cells, true}, seed, &p.b), 0);
	return p;
}

static struct pair make_srda(uint32_t hashes, uint32_t cells, uint64_t seed)
{
	struct pair p;
	assert_int_equal(ow_srda_create(&(struct ow_srda_params){hashes, cells}, seed, &p.a), 0);
	assert_int_equal(ow_srda_create(&(struct ow_srda_params){hashes, cells}, seed, &p.b), 0);
	return p;
}

static struct ow_estimate estimate(struct pair p, const struct ow_sighting *a, size_t as, const struct ow_sighting *b,
                                   size_t bs, bool cached, bool published)
{
	p.a->ops->add(p.a, a, as);
	p.b->ops->add(p.b, b, bs);
	struct ow_view va = {p.a, as, cached ? a : NULL, cached ? as : 0},
		       vb = {p.b, bs, cached ? b : NULL, cached ? bs : 0};
	struct ow_estimate e;
	assert_int_equal(ow_rda_estimate_with(&va, &vb, &(struct ow_rda_estimate_options){.published = published}, &e),
	                 0);
	return e;
}

static void done(struct pair p)
{
	ow_synopsis_free(p.a);
	ow_synopsis_free(p.b);
}

/* RDA figure 2: P5 is lost, P9 drifts in. LDA takes both for one packet: 970/6. RDA finds them. */
static void test_figure_2(void **state)
{
	(void)state;
	const struct ow_sighting a[] = {{1u << 16, 70},  {2u << 16, 150}, {3u << 16, 200},
	                                {4u << 16, 250}, {5u << 16, 310}, {6u << 16, 330}};
	const struct ow_sighting b[] = {{1u << 16, 110}, {2u << 16, 260}, {3u << 16, 310},
	                                {4u << 16, 390}, {6u << 16, 450}, {9u << 16, 760}};
	double all = 0, sent = 0;
	for (int i = 0; i < 6; i++) {
		all += (double)b[i].time_ns;
		sent += (double)a[i].time_ns;
	}
	assert_true(fabs((all - sent) / 6 - 970 / 6.) < 1e-12);
	for (uint32_t banks = 2; banks <= 4; banks++) {
		struct pair p = make_rda(banks, 5, 3);
		struct ow_estimate e = estimate(p, a, 6, b, 6, true, false);
		assert_true(e.complete && e.mean_ns.status == OW_VALUE_EXACT && e.mean_ns.value == 104 &&
		            e.useful == 5);
		assert_true(e.lost.status == OW_VALUE_EXACT && e.lost.value == 1 && e.extra.value == 1);
		assert_true(fabs(e.loss_ratio.value - 1 / 6.) < 1e-12);
		assert_true(e.more_bytes == 16 && e.round_trips == 1);
		done(p);
	}
}

/* An id that goes to these two cells of five (figures 3 and 4). */
static uint64_t id_for(const struct ow_synopsis *s, uint32_t x, uint32_t y, uint64_t from)
{
	for (uint64_t id = from;; id++) {
		uint32_t place[OW_SRDA_HASHES_MAX];
		ow_srda_places(ow_srda_of(s), id, place);
		if ((place[0] == x && place[1] == y) || (place[0] == y && place[1] == x))
			return id;
	}
}

/*
 * Figures 3 and 4: P3 and P5 lost, P9 extra; every pair of cells is spoilt, and all are repaired. Section IV-D:
 * collapsing neighbours gives a variance of -6089.6; the centred estimator gives (7650/3)(3/4), sigma 43.7 (37.67 is
 * true).
 */
static void test_figures_3_and_4(void **state)
{
	(void)state;
	struct pair p = make_srda(2, 5, 1);
	uint64_t p1 = id_for(p.a, 0, 1, 1000), p2 = id_for(p.a, 3, 4, 2000), p3 = id_for(p.a, 0, 2, 3000);
	uint64_t p4 = id_for(p.a, 2, 3, 4000), p5 = id_for(p.a, 1, 3, 5000), p6 = id_for(p.a, 1, 4, 6000);
	uint64_t p9 = id_for(p.a, 3, 4, 9000);
	const struct ow_sighting a[] = {{p1, 70}, {p2, 150}, {p3, 200}, {p4, 250}, {p5, 310}, {p6, 330}};
	const struct ow_sighting b[] = {{p1, 110}, {p2, 260}, {p4, 390}, {p6, 450}, {p9, 760}};
	struct ow_estimate e = estimate(p, a, 6, b, 5, true, false);
	struct ow_rda_peel peel;
	assert_int_equal(ow_rda_peel(p.a, p.b, NULL, &peel), 0);
	assert_true(peel.complete && peel.losts == 2 && peel.extras == 1 && peel.extra[0] == p9);
	assert_true((peel.lost[0] == p3 && peel.lost[1] == p5) || (peel.lost[0] == p5 && peel.lost[1] == p3));
	ow_rda_peel_done(&peel);
	assert_true(e.complete && e.mean_ns.status == OW_VALUE_EXACT && e.mean_ns.value == 102.5 && e.useful == 4);
	assert_true(e.lost.value == 2 && e.extra.value == 1);
	assert_true(fabs(e.stddev_ns.value - sqrt(7650 / 3. * 3 / 4)) < 1e-9);
	assert_true(e.stddev_ns.low < 37.67 && e.stddev_ns.high > 43.49);
	/* ((450-330)^2 + (260-150)^2)/6 - 102.5^2 < 0 */
	p.a->ops->reset(p.a);
	p.b->ops->reset(p.b);
	e = estimate(p, a, 6, b, 5, true, true);
	assert_true(e.mean_ns.value == 102.5 && e.stddev_ns.status == OW_VALUE_NONE && e.stddev_ns.reason);
	done(p);
}

static void exact_of(const struct ow_sighting *a, const struct ow_sighting *b, const unsigned *state, unsigned n,
                     double *mean, unsigned *common)
{
	double sum = 0;
	*common = 0;
	for (unsigned i = 0; i < n; i++) {
		if (state[i] == 0) {
			sum += (double)(b[i].time_ns - a[i].time_ns);
			++*common;
		}
	}
	*mean = *common ? sum / *common : 0;
}

/* Every way in which 6 packets can be common, lost or extra: exact when complete, and never wrong about counts. */
static void test_exhaustive(void **state)
{
	(void)state;
	enum { N = 6, WAYS = 729 };
	for (int shape = 0; shape < 4; shape++) {
		struct ow_sighting at_a[N], at_b[N];
		struct ow_random random;
		ow_random_seed(&random, 5);
		for (unsigned i = 0; i < N; i++) {
			at_a[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_below(&random, 1000)};
			at_b[i] = (struct ow_sighting){at_a[i].id,
			                               at_a[i].time_ns + (int64_t)ow_random_below(&random, 100)};
		}
		for (unsigned way = 0; way < WAYS; way++) {
			struct ow_sighting a[N], b[N];
			unsigned what[N], lost = 0, extra = 0, common;
			size_t as = 0, bs = 0;
			for (unsigned i = 0, w = way; i < N; i++, w /= 3) {
				what[i] = w % 3;
				lost += what[i] == 1;
				extra += what[i] == 2;
				if (what[i] != 2)
					a[as++] = at_a[i];
				if (what[i] != 1)
					b[bs++] = at_b[i];
			}
			struct pair p =
				shape < 2 ? make_rda(2 + (uint32_t)shape, 4, 8) : make_srda((uint32_t)shape, 8, 8);
			struct ow_estimate e = estimate(p, a, as, b, bs, true, false);
			double mean;
			exact_of(at_a, at_b, what, N, &mean, &common);
			if (e.complete) {
				assert_true(e.lost.value == lost && e.extra.value == extra && e.useful == common);
				assert_int_equal(e.mean_ns.status, common ? OW_VALUE_EXACT : OW_VALUE_NONE);
				if (common)
					assert_true(fabs(e.mean_ns.value - mean) < 1e-9);
			} else {
				assert_true(e.lost.low <= lost && e.extra.low <= extra && e.useful <= common);
			}
			assert_true(e.mean_ns.status != OW_VALUE_NONE || e.mean_ns.reason);
			assert_true(e.stddev_ns.status != OW_VALUE_NONE || e.stddev_ns.reason);
			done(p);
		}
	}
}

struct scenario {
	const char *what;
	struct ow_stream_params stream;
	uint32_t k, cells; /* in all */
	bool srda, cached;
	bool complete; /* nearly always */
};

static bool holds(const struct ow_value *v, double truth)
{
	return v->status != OW_VALUE_NONE && v->low <= truth + 1e-6 && truth <= v->high + 1e-6;
}

#define WEIBULL "weibull:10us,0.6"
static const struct scenario scenarios[] = {
	{"complete", {.packets = 20000, .delay = WEIBULL, .loss = 0.01}, 4, 600, false, true, true},
	{"complete, few packets a cell", {.packets = 2000, .delay = WEIBULL, .loss = 0.02}, 4, 600, false, true, true},
	{"complete, clock offset",
         {.packets = 5000, .delay = WEIBULL, .loss = 0.01, .clock_offset_ns = 1000000},
         3,
         400,
         false,
         true,
         true},
	{"2 banks, some undecoded",
         {.packets = 20000, .delay = WEIBULL, .loss = 0.05, .reorder = {10, 10, 10, 10}},
         2,
         1000,
         false,
         true,
         false},
	{"3 banks, overloaded",
         {.packets = 20000, .delay = WEIBULL, .loss = 0.05, .reorder = {10, 10, 10, 10}},
         3,
         1000,
         false,
         true,
         false},
	{"no caches",
         {.packets = 20000, .delay = WEIBULL, .loss = 0.02, .reorder = {50, 50, 50, 50}},
         2,
         800,
         false,
         false,
         false},
	{"sRDA, undecoded",
         {.packets = 20000, .delay = WEIBULL, .loss = 0.04, .reorder = {50, 50, 50, 50}},
         2,
         1000,
         true,
         true,
         false},
	{"sRDA, complete", {.packets = 20000, .delay = "weibull:10us,2", .loss = 0.02}, 4, 700, true, true, true},
};

/* How often the 95 % intervals of a scenario hold the truth. */
struct coverage {
	unsigned mean, stddev, lost, extra, complete;
};

static struct coverage cover(const struct scenario *sc, uint64_t seed)
{
	struct coverage c = {0};
	for (unsigned run = 0; run < RUNS; run++) {
		struct ow_stream_params params = sc->stream;
		params.interval_ns = 1000000000;
		params.no_delays = true;
		params.seed = seed + run;
		struct ow_made_stream stream;
		assert_int_equal(ow_stream_make(&params, &stream, NULL), 0);
		struct pair p = sc->srda ? make_srda(sc->k, sc->cells, run) : make_rda(sc->k, sc->cells / sc->k, run);
		struct ow_estimate e = estimate(p, stream.a, stream.as, stream.b, stream.bs, sc->cached, false);
		c.complete += e.complete;
		c.mean += holds(&e.mean_ns, stream.truth.mean_ns);
		c.stddev += holds(&e.stddev_ns, stream.truth.stddev_ns);
		c.lost += holds(&e.lost, (double)stream.truth.lost);
		c.extra += holds(&e.extra, (double)stream.truth.extra);
		if (e.complete && sc->cached)
			assert_true(e.mean_ns.status == OW_VALUE_EXACT && e.useful == stream.truth.common);
		done(p);
		ow_stream_done(&stream);
	}
	return c;
}

/* They do in 92 to 99 % of runs; those of counts, which are not continuous, in 92 % or more. */
static void test_coverage(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof scenarios / sizeof *scenarios; s++) {
		const struct scenario *sc = scenarios + s;
		struct coverage c = cover(sc, s * 100000);
		double runs = RUNS;
		print_message("%s: complete %.3f, mean %.3f, stddev %.3f, lost %.3f, extra %.3f\n", sc->what,
		              c.complete / runs, c.mean / runs, c.stddev / runs, c.lost / runs, c.extra / runs);
		if (RUNS < 500)
			continue;
		assert_true(sc->complete ? c.complete >= 0.98 * runs : c.complete <= 0.1 * runs);
		assert_true(c.mean >= 0.92 * runs && (sc->complete || c.mean <= 0.99 * runs));
		assert_true(c.stddev >= 0.92 * runs && c.stddev <= 0.99 * runs);
		assert_true(c.lost >= 0.92 * runs && c.extra >= 0.92 * runs);
	}
}

/* formulas.md 3.1: the centred estimator does not mind a clock offset, the published one does. */
static void test_clock_offset(void **state)
{
	(void)state;
	double value[2][2];
	for (int offset = 0; offset < 2; offset++) {
		for (int published = 0; published < 2; published++) {
			struct ow_stream_params params = {.packets = 100000,
			                                  .interval_ns = 1000000000,
			                                  .delay = "weibull:10us,0.6",
			                                  .clock_offset_ns = offset * 1000000,
			                                  .no_delays = true,
			                                  .seed = 6};
			struct ow_made_stream stream;
			assert_int_equal(ow_stream_make(&params, &stream, NULL), 0);
			struct pair p = make_rda(2, 1000, 1);
			struct ow_estimate e = estimate(p, stream.a, stream.as, stream.b, stream.bs, true, published);
			value[offset][published] =
				e.stddev_ns.status ? e.stddev_ns.value / stream.truth.stddev_ns - 1 : INFINITY;
			done(p);
			ow_stream_done(&stream);
		}
	}
	/* Standard deviations: 1/sqrt(2 * 2000) = 1.6 %. */
	assert_true(fabs(value[0][0]) < 0.06 && fabs(value[1][0] - value[0][0]) < 1e-9);
	assert_true(fabs(value[0][1]) < 0.3 && fabs(value[1][1]) > 0.3);
}

/* Nothing, one packet, all lost, other shapes: reasons instead of numbers. */
static void test_no_estimate(void **state)
{
	(void)state;
	struct ow_sighting one[] = {{UINT64_C(1) << 40, 5}}, two[] = {{UINT64_C(1) << 40, 25}};
	for (int kind = 0; kind < 2; kind++) {
		struct pair p = kind ? make_srda(2, 9, 1) : make_rda(2, 9, 1);
		struct ow_estimate e = estimate(p, NULL, 0, NULL, 0, true, false);
		assert_true(e.complete && e.mean_ns.status == OW_VALUE_NONE && e.mean_ns.reason &&
		            e.loss_ratio.status == OW_VALUE_NONE);
		assert_true(e.lost.status == OW_VALUE_EXACT && e.lost.value == 0 && e.quantile_ns[0].reason);
		e = estimate(p, one, 1, two, 1, true, false);
		assert_true(e.mean_ns.value == 20 && e.stddev_ns.status == OW_VALUE_NONE && e.stddev_ns.reason &&
		            e.useful == 1);
		done(p);
		p = kind ? make_srda(2, 9, 1) : make_rda(2, 9, 1);
		e = estimate(p, one, 1, NULL, 0, true, false);
		assert_true(e.complete && e.mean_ns.status == OW_VALUE_NONE && e.lost.value == 1 &&
		            e.loss_ratio.value == 1);
		done(p);
	}
	struct pair p = make_rda(2, 9, 1), q = make_rda(2, 8, 1);
	struct ow_view a = {.synopsis = p.a}, b = {.synopsis = q.a};
	struct ow_estimate e;
	assert_int_equal(ow_rda_estimate(&a, &b, &e), -EINVAL);
	assert_int_equal(ow_estimate(&a, &b, &e, NULL), -EINVAL);
	done(p);
	done(q);
}

/* A packet that arrives twice: its second copy is extra, its delay is that of the first. */
static void test_copy(void **state)
{
	(void)state;
	struct ow_sighting a[] = {{UINT64_C(7) << 50, 10}, {UINT64_C(8) << 50, 20}};
	struct ow_sighting b[] = {{UINT64_C(7) << 50, 15}, {UINT64_C(8) << 50, 29}, {UINT64_C(7) << 50, 900}};
	struct pair p = make_rda(3, 9, 2);
	struct ow_estimate e = estimate(p, a, 2, b, 3, true, false);
	assert_true(e.complete && e.mean_ns.value == 7 && e.extra.value == 1 && e.lost.value == 0);
	done(p);
}

/* Copies with names of their own, one of them lost: which one is not known, so none of them counts. */
static void test_ambiguous(void **state)
{
	(void)state;
	for (int srda = 0; srda < 2; srda++) {
		struct ow_sighting a[] = {{7, 0}, {8, 0}, {7, 10}, {7, 20}, {9, 30}, {10, 40}},
				   b[] = {{8, 3}, {7, 12}, {7, 22}, {9, 34}, {10, 45}};
		for (int i = 0; i < 6; i++)
			a[i].id = ow_mix64(a[i].id);
		for (int i = 0; i < 5; i++)
			b[i].id = ow_mix64(b[i].id);
		ow_copies_rename(a, 6);
		ow_copies_rename(b, 5);
		struct pair p = srda ? make_srda(3, 60, 2) : make_rda(3, 20, 2);
		struct ow_estimate e = estimate(p, a, 6, b, 5, true, false);
		assert_true(e.complete && e.lost.value == 1 && e.extra.value == 0);
		assert_true(e.useful == 3 && e.mean_ns.value == 4 && e.mean_ns.status == OW_VALUE_ESTIMATED);
		assert_true(e.mean_ns.low < 4 && e.mean_ns.high > 4 && e.more_bytes == 32);
		done(p);
	}
}

static void assert_sane(const struct ow_value *v)
{
	if (v->status == OW_VALUE_NONE) {
		assert_true(v->reason);
		return;
	}
	assert_false(isnan(v->value) || isinf(v->value) || isnan(v->low) || isnan(v->high));
	assert_true(v->low <= v->value && v->value <= v->high);
}

/* Whatever cells a peer sends, numbers are numbers and lie in their intervals. */
static void test_garbage(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 13);
	for (int run = 0; run < 2000; run++) {
		uint32_t k = 1 + (uint32_t)ow_random_below(&random, 4),
			 cells = k + (uint32_t)ow_random_below(&random, 30);
		struct pair p = run % 2 ? make_srda(k, cells, 1) : make_rda(k, cells, 1);
		size_t bytes = p.b->ops->memory(p.b);
		uint8_t *at =
			run % 2 ? (uint8_t *)((struct ow_srda *)p.b)->cell : (uint8_t *)((struct ow_rda *)p.b)->cell;
		struct ow_sighting packets[40];
		for (int i = 0; i < 40; i++)
			packets[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)ow_random_u64(&random)};
		p.a->ops->add(p.a, packets, 40);
		p.b->ops->add(p.b, packets, 40);
		for (size_t i = 0; i < bytes; i++) {
			if (ow_random_below(&random, 1 + (uint64_t)run % 50) == 0)
				at[i] = (uint8_t)ow_random_u64(&random);
		}
		struct ow_view a = {p.a, 40, packets, 40}, b = {p.b, ow_random_u64(&random) >> (run % 64), packets, 40};
		struct ow_estimate e;
		for (int published = 0; published < 2; published++) {
			struct ow_rda_estimate_options options = {{published, 0}, published};
			assert_int_equal(ow_rda_estimate_with(&a, &b, &options, &e), 0);
			assert_sane(&e.mean_ns);
			assert_sane(&e.stddev_ns);
			assert_sane(&e.lost);
			assert_sane(&e.extra);
			assert_sane(&e.loss_ratio);
		}
		done(p);
	}
}

/* MinHash: cannot see 10 of 1e5, errs little when half differs; its interval holds what it should. */
static void test_minhash(void **state)
{
	(void)state;
	const size_t n = 20000;
	struct ow_sighting *p = malloc(2 * n * sizeof *p);
	for (size_t differences = 0; differences <= n; differences = differences ? differences * 10 : 20) {
		unsigned covered = 0, runs = 100;
		for (unsigned run = 0; run < runs; run++) {
			struct ow_random random;
			ow_random_seed(&random, differences + run);
			for (size_t i = 0; i < n + differences; i++)
				p[i] = (struct ow_sighting){ow_random_u64(&random), 0};
			struct ow_synopsis *a, *b;
			assert_int_equal(ow_minhash_create(1024, run, &a), 0);
			assert_int_equal(ow_minhash_create(1024, run, &b), 0);
			a->ops->add(a, p, n);
			b->ops->add(b, p + differences, n);
			struct ow_value v;
			assert_int_equal(ow_minhash_difference(a, b, n, n, &v), 0);
			covered += holds(&v, 2. * (double)differences);
			ow_synopsis_free(a);
			ow_synopsis_free(b);
		}
		assert_in_range(covered, 88, 100);
	}
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figure_2),    cmocka_unit_test(test_figures_3_and_4),
		cmocka_unit_test(test_exhaustive),  cmocka_unit_test(test_clock_offset),
		cmocka_unit_test(test_no_estimate), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_ambiguous),   cmocka_unit_test(test_minhash),
		cmocka_unit_test(test_garbage),     cmocka_unit_test(test_coverage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
