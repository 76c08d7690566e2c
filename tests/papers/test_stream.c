/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: the truth agrees with the sightings, and the models with their definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "papers/stream.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_id(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

static struct ow_sighting *sorted(const struct ow_sighting *list, size_t count)
{
	struct ow_sighting *copy = malloc(count * sizeof *copy + 1);
	assert_non_null(copy);
	memcpy(copy, list, count * sizeof *copy);
	qsort(copy, count, sizeof *copy, by_id);
	return copy;
}

/* Recounts everything from the stamps. */
static void check_truth(const struct ow_made_stream *s)
{
	struct ow_sighting *a = sorted(s->a, s->as), *b = sorted(s->b, s->bs);
	uint64_t common = 0;
	double sum = 0, sum2 = 0;
	size_t j = 0;
	for (size_t i = 0; i < s->as; i++) {
		while (j < s->bs && b[j].id < a[i].id)
			j++;
		if (j == s->bs || b[j].id != a[i].id)
			continue;
		double delay = (double)(b[j].time_ns - a[i].time_ns);
		common++;
		sum += delay;
		sum2 += delay * delay;
	}
	double mean = sum / (double)common;
	assert_int_equal(s->truth.sent, s->as);
	assert_int_equal(s->truth.received, s->bs);
	assert_int_equal(s->truth.common, common);
	assert_int_equal(s->truth.lost, s->as - common);
	assert_int_equal(s->truth.extra, s->bs - common);
	assert_true(fabs(mean - s->truth.mean_ns) <= 1e-9 * fabs(mean) + 1e-6);
	double stddev = sqrt(sum2 / (double)common - mean * mean);
	assert_true(fabs(stddev - s->truth.stddev_ns) <= 1e-4 * stddev + 1e-3);
	for (uint64_t i = 1; s->delay && i < common; i++)
		assert_true(s->delay[i - 1] <= s->delay[i]);
	free(a);
	free(b);
}

static void check_order(const struct ow_sighting *list, size_t count)
{
	for (size_t i = 1; i < count; i++)
		assert_true(list[i - 1].time_ns <= list[i].time_ns);
}

static struct ow_made_stream make(const struct ow_stream_params *params)
{
	struct ow_made_stream stream;
	struct ow_error err;
	assert_int_equal(ow_stream_make(params, &stream, &err), 0);
	return stream;
}

static void test_plain(void **state)
{
	(void)state;
	struct ow_stream_params p = {
		.packets = 100000, .interval_ns = 1000000000, .delay = "weibull:10us,0.6", .loss = 0.02, .seed = 7};
	struct ow_made_stream s = make(&p), t = make(&p);
	check_truth(&s);
	check_order(s.a, s.as);
	check_order(s.b, s.bs);
	assert_memory_equal(s.b, t.b, s.bs * sizeof *s.b);
	/* Loss within 5 standard deviations. */
	assert_true(fabs((double)s.truth.lost - 2000) < 5 * sqrt(2000));
	assert_int_equal(s.truth.extra, 0);
	assert_true(s.a[0].time_ns >= 0 && s.a[s.as - 1].time_ns < p.interval_ns);
	assert_int_equal(s.befores + s.afters, 0);
	ow_stream_done(&s);
	ow_stream_done(&t);
}

/* The tables of the sampler keep the distribution: mean and standard deviation within 5 standard errors. */
static void test_delays_follow_the_model(void **state)
{
	(void)state;
	static const struct {
		const char *delay;
		double mean, stddev, tolerance;
	} cases[] = {
		/* scale Gamma(1 + 1/shape); the spread of s^2 by the fourth moment, roughly */
		{"weibull:10us,0.6", 15045.75, 26451.4, 0.02},
		{"pareto:10us,5", 12500, 3227.5, 0.05},
		{"normal:50us,5us", 50000, 5000, 0.01},
		{"constant:50us", 50000, 0, 0},
		{"paths:0.75,constant:50us;0.25,constant:90us", 60000, 17320.5, 0.01},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_made_stream s = make(&(struct ow_stream_params){.packets = 500000,
		                                                          .interval_ns = 1000000000,
		                                                          .delay = cases[i].delay,
		                                                          .seed = 3 + i,
		                                                          .no_delays = true});
		double error = 5 * cases[i].stddev / sqrt((double)s.truth.common);
		assert_true(fabs(s.truth.mean_ns - cases[i].mean) <= error + 1e-9);
		assert_true(fabs(s.truth.stddev_ns - cases[i].stddev) <= cases[i].tolerance * cases[i].stddev);
		assert_null(s.delay);
		ow_stream_done(&s);
	}
}

static void test_reordering(void **state)
{
	(void)state;
	struct ow_stream_params p = {.packets = 20000,
	                             .interval_ns = 10000000,
	                             .delay = "constant:100us",
	                             .reorder = {11, 12, 13, 14},
	                             .margin = 40,
	                             .seed = 9};
	struct ow_made_stream s = make(&p);
	check_truth(&s);
	assert_int_equal(s.truth.lost, 12 + 13);
	assert_int_equal(s.truth.extra, 11 + 14);
	assert_int_equal(s.befores, 40 + 12);
	assert_int_equal(s.afters, 40 + 13);
	for (int i = 0; i < 11; i++)
		assert_true(s.b[i].time_ns < 100000); /* sent before the interval */
	for (int i = 1; i <= 14; i++)
		assert_true(s.b[s.bs - (size_t)i].time_ns >= 100000 + p.interval_ns);
	/* Next to the boundary: this interval's own packets. */
	for (int i = 0; i < 12; i++)
		assert_int_equal(s.before[40 + i].id, s.a[i].id);
	for (int i = 0; i < 13; i++)
		assert_int_equal(s.after[i].id, s.a[s.as - 13 + (size_t)i].id);
	ow_stream_done(&s);
}

static void test_copies_and_clock(void **state)
{
	(void)state;
	struct ow_stream_params p = {.packets = 50000,
	                             .interval_ns = 10000000,
	                             .delay = "constant:100us",
	                             .duplicate = 0.1,
	                             .clock_offset_ns = -250000,
	                             .seed = 5};
	struct ow_made_stream s = make(&p);
	check_truth(&s);
	assert_int_equal(s.truth.common, 50000);
	assert_true(fabs((double)s.truth.extra - 5000) < 5 * sqrt(4500));
	assert_true(fabs(s.truth.mean_ns + 150000) < 1e-6);
	ow_stream_done(&s);
	p.duplicate = 1;
	s = make(&p);
	assert_int_equal(s.truth.received, 100000);
	ow_stream_done(&s);
}

static void test_episodes(void **state)
{
	(void)state;
	struct ow_made_stream s = make(&(struct ow_stream_params){.packets = 1000000,
	                                                          .interval_ns = 1000000000,
	                                                          .delay = "constant:1us",
	                                                          .loss = 0.1,
	                                                          .episode = 100,
	                                                          .seed = 4});
	/* 1000 episodes of mean 100 with exponential lengths and gaps: the share varies by about 4 %. */
	assert_true(fabs((double)s.truth.lost - 1e5) < 2e4);
	ow_stream_done(&s);
}

static void test_refuses(void **state)
{
	(void)state;
	const struct ow_stream_params good = {.packets = 10, .interval_ns = 1000, .delay = "constant:1us"};
	struct ow_stream_params p[8];
	for (int i = 0; i < 8; i++)
		p[i] = good;
	p[0].packets = 0;
	p[1].interval_ns = 0;
	p[2].delay = "fifo:1G";
	p[3].loss = 1.5;
	p[4].reorder[1] = 11;
	p[5].reorder[1] = p[5].reorder[2] = 6;
	p[6].duplicate = NAN;
	p[7].margin = 11;
	for (int i = 0; i < 8; i++) {
		struct ow_made_stream s;
		struct ow_error err;
		assert_int_equal(ow_stream_make(&p[i], &s, &err), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),      cmocka_unit_test(test_delays_follow_the_model),
		cmocka_unit_test(test_reordering), cmocka_unit_test(test_copies_and_clock),
		cmocka_unit_test(test_episodes),   cmocka_unit_test(test_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
