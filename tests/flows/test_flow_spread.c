/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of a heavy flow's quantiles hold the quantiles of the packets that both points saw, whatever was lost. */
#include "base/random.h"
#include "base/sort.h"
#include "flows/flow_spread.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PACKETS 2000
#define TRIALS  250

/* What one point saw of a flow. */
struct point {
	struct ow_flow_samples samples;
	uint64_t packets;
};

static void begin(struct point *point)
{
	ow_flow_samples_init(&point->samples, OW_FLOW_SAMPLE_CONSIDERED);
	assert_int_equal(ow_flow_samples_flow(&point->samples, 0), 0);
	point->packets = 0;
}

static void see(struct point *point, uint64_t rank, int64_t time_ns)
{
	point->packets++;
	if (rank < point->samples.most)
		ow_flow_samples_add(&point->samples, 0, rank, time_ns);
}

/* One flow with this loss and delays with a long tail, of which the first part was not sampled. Counts intervals that hold. */
static void try(struct ow_random *random, double loss, double unsampled, unsigned held[OW_QUANTILES],
                unsigned known[OW_QUANTILES])
{
	struct point a, b;
	int64_t delay[PACKETS];
	size_t received = 0;
	struct ow_flow_spread spread;
	begin(&a);
	begin(&b);
	uint64_t skipped = 0;
	for (size_t i = 0; i < PACKETS; i++) {
		uint64_t rank = ow_flow_sample_rank(ow_random_u64(random));
		bool is_skipped = (double)i < unsampled * PACKETS, is_lost = ow_random_unit(random) < loss;
		/* The delays that were not sampled are the slowest: the worst case. */
		double tail = 20e3 * pow(-log(1 - ow_random_unit(random)), 1 / 0.6);
		int64_t time = (int64_t)i * 1000, took = 80000 + (int64_t)tail + (is_skipped ? 5000000 : 0);
		if (!is_skipped)
			see(&a, rank, time);
		if (is_lost)
			continue;
		if (!is_skipped)
			see(&b, rank, time + took);
		skipped += is_skipped;
		delay[received++] = took;
	}
	ow_sort_times(delay, received);
	struct ow_flow_sample x = ow_flow_samples_get(&a.samples, 0), y = ow_flow_samples_get(&b.samples, 0);
	assert_true(ow_flow_spread(&x, &y, b.packets, b.packets + skipped, &spread));
	assert_true(spread.least_ns >= delay[0] && spread.most_ns <= delay[received - 1]);
	assert_true(spread.samples >= OW_FLOW_SAMPLE * (1 - loss) / 2);
	for (int q = 0; q < OW_QUANTILES; q++) {
		const struct ow_value *value = &spread.quantile_ns[q];
		double truth = (double)delay[(size_t)ceil(ow_quantile_level[q] * (double)received) - 1];
		known[q] += value->status != OW_VALUE_NONE;
		held[q] += value->status != OW_VALUE_NONE && value->low <= truth && truth <= value->high;
	}
	ow_flow_samples_done(&a.samples);
	ow_flow_samples_done(&b.samples);
}

static void test_intervals_hold(void **state)
{
	(void)state;
	const struct {
		double loss, unsampled;
	} cases[] = {{0, 0}, {0.01, 0}, {0.3, 0}, {0, 0.02}, {0.1, 0.05}};
	struct ow_random random;
	ow_random_seed(&random, 17);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		unsigned held[OW_QUANTILES] = {0}, known[OW_QUANTILES] = {0};
		for (unsigned t = 0; t < TRIALS; t++)
			try(&random, cases[c].loss, cases[c].unsampled, held, known);
		/* At least 95 % of cases; three deviations of a binomial less. */
		for (int q = 0; q < OW_QUANTILES; q++)
			if (held[q] < 0.95 * known[q] - 3 * sqrt(0.95 * 0.05 * known[q]))
				fail_msg("loss %g, unsampled %g, quantile %g: %u of %u hold", cases[c].loss,
				         cases[c].unsampled, ow_quantile_level[q], held[q], known[q]);
		assert_int_equal(known[OW_Q50], TRIALS);
		/* 64 packets cannot bound the slowest hundredth. */
		assert_int_equal(known[OW_Q99], 0);
	}
}

/* Copies of one packet have one rank: if one point has fewer of them, none is used. */
static void test_copies(void **state)
{
	(void)state;
	struct ow_flow_sampled from[20], to[20];
	struct ow_flow_spread spread;
	for (int i = 0; i < 20; i++) {
		from[i] = (struct ow_flow_sampled){.rank = (uint64_t)(i < 4 ? 1 : i), .time_ns = i};
		to[i] = (struct ow_flow_sampled){.rank = (uint64_t)(i < 4 ? 1 : i), .time_ns = i + 100};
	}
	struct ow_flow_sample x = {from, 20, 1000}, y = {to, 20, 1000};
	assert_true(ow_flow_spread(&x, &y, 20, 20, &spread));
	assert_int_equal(spread.samples, 20);
	assert_true(spread.least_ns == 100 && spread.most_ns == 100);
	struct ow_flow_sample fewer = {to + 1, 19, 1000};
	assert_true(ow_flow_spread(&x, &fewer, 19, 19, &spread));
	assert_int_equal(spread.samples, 16);
	struct ow_flow_sample few = {to, 7, 1000};
	assert_false(ow_flow_spread(&x, &few, 20, 20, &spread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_intervals_hold), cmocka_unit_test(test_copies)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
