/* SPDX-License-Identifier: Apache-2.0 */
/* The baselines on a stream with known fates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "papers/baseline.h"
#include "papers/stream.h"
#include "synopsis/copies.h"
#include <math.h>

static struct ow_made_stream stream;
static struct ow_fates fates;

static int setup(void **state)
{
	(void)state;
	struct ow_stream_params p = {.packets = 100000,
	                             .interval_ns = 1000000000,
	                             .delay = "weibull:10us,0.6",
	                             .loss = 0.01,
	                             .reorder = {50, 0, 0, 20},
	                             .seed = 3};
	return ow_stream_make(&p, &stream, NULL) < 0 ||
	       ow_fates_find(stream.a, stream.as, stream.b, stream.bs, &fates) < 0;
}

static int teardown(void **state)
{
	(void)state;
	ow_fates_done(&fates);
	ow_stream_done(&stream);
	return 0;
}

static void test_direct_is_exact(void **state)
{
	(void)state;
	struct ow_estimate e;
	struct ow_baseline_cost cost;
	assert_int_equal(ow_baseline_direct(&fates, 0, 0, &e, &cost), 0);
	assert_true(e.complete);
	assert_int_equal(e.useful, stream.truth.common);
	assert_int_equal(e.mean_ns.status, OW_VALUE_EXACT);
	assert_true(fabs(e.mean_ns.value - stream.truth.mean_ns) < 1e-6 * stream.truth.mean_ns);
	assert_true(fabs(e.stddev_ns.value - stream.truth.stddev_ns) < 1e-6 * stream.truth.stddev_ns);
	assert_true(e.lost.value == (double)stream.truth.lost && e.extra.value == (double)stream.truth.extra);
	size_t p99 = (size_t)ceil(0.99 * (double)stream.truth.common) - 1;
	assert_true(e.quantile_ns[OW_Q99].value == (double)stream.delay[p99]);
	assert_int_equal(cost.wire_bytes, 16 * stream.bs);
}

static bool covers(const struct ow_value *value, double truth)
{
	return value->low <= truth && truth <= value->high;
}

/* 500 seeds on one stream: 95 % intervals, with 4 standard deviations of room. */
static void coverage(int (*baseline)(const struct ow_fates *, size_t, uint64_t, struct ow_estimate *,
                                     struct ow_baseline_cost *))
{
	const int64_t *place = stream.delay + stream.truth.common / 10 * 9;
	const double q90 = (double)*place;
	int mean = 0, loss = 0, p90 = 0;
	for (uint64_t seed = 0; seed < 500; seed++) {
		struct ow_estimate e;
		struct ow_baseline_cost cost;
		assert_int_equal(baseline(&fates, 32768, seed, &e, &cost), 0);
		assert_true(cost.memory_bytes <= 32768 && cost.wire_bytes <= 32768 * 1.2);
		mean += covers(&e.mean_ns, stream.truth.mean_ns);
		loss += covers(&e.loss_ratio, (double)stream.truth.lost / (double)stream.truth.sent);
		p90 += covers(&e.quantile_ns[OW_Q90], q90);
	}
	assert_in_range(mean, 460, 495);
	assert_in_range(loss, 460, 499); /* counts are discrete */
	assert_in_range(p90, 460, 495);
}

static void test_sampled(void **state)
{
	(void)state;
	coverage(ow_baseline_sampled);
}

/* Times of a capture need not be in order: a packet of another century between others of one moment. */
static void test_probes_of_any_time(void **state)
{
	(void)state;
	enum { COUNT = 300 };
	struct ow_sighting sent[COUNT];
	int64_t delay_ns[COUNT];
	for (int i = 0; i < COUNT; i++) {
		sent[i] = (struct ow_sighting){(uint64_t)i, INT64_C(1700000000000000000) + i * 3};
		delay_ns[i] = 1000 + i;
	}
	sent[COUNT / 2].time_ns = INT64_C(4000000000000000000);
	struct ow_fates odd = {.sent = sent, .delay_ns = delay_ns, .count = COUNT, .received = COUNT};
	struct ow_estimate e;
	struct ow_baseline_cost cost;
	assert_int_equal(ow_baseline_probes(&odd, 1 << 20, 1, &e, &cost), 0);
	assert_true(e.mean_ns.value > 1000 && e.mean_ns.value < 1000 + COUNT);
}

static void test_probes(void **state)
{
	(void)state;
	coverage(ow_baseline_probes);
}

/* Copies of which one is lost have no known delays; a packet that arrives twice has that of its first arrival. */
static void test_copies(void **state)
{
	(void)state;
	struct ow_sighting a[] = {{7, 0}, {8, 0}, {7, 10}, {7, 20}, {9, 30}, {9, 40}},
			   b[] = {{8, 3}, {7, 12}, {7, 22}, {8, 25}, {9, 34}, {9, 45}};
	struct ow_fates copies;
	struct ow_estimate e;
	struct ow_baseline_cost cost;
	ow_copies_rename(a, 6);
	ow_copies_rename(b, 6);
	assert_int_equal(ow_fates_find(a, 6, b, 6, &copies), 0);
	assert_true(copies.delay_ns[0] == OW_FATE_AMBIGUOUS && copies.delay_ns[2] == OW_FATE_AMBIGUOUS);
	assert_true(copies.delay_ns[3] == OW_FATE_NONE && copies.delay_ns[1] == 3);
	assert_true(copies.delay_ns[4] == 4 && copies.delay_ns[5] == 5);
	assert_int_equal(ow_baseline_direct(&copies, 0, 0, &e, &cost), 0);
	assert_true(e.useful == 3 && e.lost.value == 1 && e.extra.value == 1 && e.mean_ns.value == 4);
	assert_int_equal(e.mean_ns.status, OW_VALUE_ESTIMATED);
	assert_true(e.mean_ns.high > 4);
	ow_fates_done(&copies);
}

static void test_empty(void **state)
{
	(void)state;
	struct ow_fates none;
	struct ow_estimate e;
	struct ow_baseline_cost cost;
	assert_int_equal(ow_fates_find(NULL, 0, NULL, 0, &none), 0);
	assert_int_equal(ow_baseline_direct(&none, 1024, 1, &e, &cost), 0);
	assert_int_equal(e.mean_ns.status, OW_VALUE_NONE);
	assert_int_equal(ow_baseline_sampled(&none, 1024, 1, &e, &cost), 0);
	assert_int_equal(ow_baseline_probes(&none, 1024, 1, &e, &cost), 0);
	ow_fates_done(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct_is_exact), cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_probes),          cmocka_unit_test(test_probes_of_any_time),
		cmocka_unit_test(test_copies),          cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
