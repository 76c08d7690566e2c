/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/flow_samples.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define FLOWS   300
#define PACKETS 400000 /* more than the log holds */

struct packet {
	uint64_t rank;
	uint32_t flow;
};

static struct packet packet[PACKETS];

static void make_packets(uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < PACKETS; i++) {
		uint64_t some = ow_random_below(&random, FLOWS);
		packet[i].flow = (uint32_t)(some * some / FLOWS); /* from a few packets to thousands */
		packet[i].rank = ow_flow_sample_rank(ow_random_u64(&random));
	}
}

static void add(struct ow_flow_samples *samples, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (packet[i].rank < samples->most)
			ow_flow_samples_add(samples, packet[i].flow, packet[i].rank, (int64_t)i);
}

static void begin(struct ow_flow_samples *samples, uint64_t most)
{
	ow_flow_samples_init(samples, most);
	for (size_t f = 0; f < FLOWS; f++)
		assert_int_equal(ow_flow_samples_flow(samples, f), 0);
}

/* Every packet with a rank below the limit is there, and as many as there can be. */
static void check(struct ow_flow_samples *samples, size_t from, size_t to)
{
	for (uint32_t f = 0; f < FLOWS; f++) {
		struct ow_flow_sample sample = ow_flow_samples_get(samples, f);
		size_t expected = 0;
		for (size_t i = from; i < to; i++)
			expected += packet[i].flow == f && packet[i].rank < sample.limit;
		assert_int_equal(sample.count, expected);
		assert_true(sample.limit == samples->most || sample.count == OW_FLOW_SAMPLE);
		for (size_t i = 0; i < sample.count; i++) {
			const struct packet *of = &packet[sample.packet[i].time_ns];
			assert_true(of->flow == f && of->rank == sample.packet[i].rank);
			assert_true(i == 0 || sample.packet[i - 1].rank <= sample.packet[i].rank);
		}
	}
}

static void test_all_below_the_limit(void **state)
{
	(void)state;
	struct ow_flow_samples samples;
	make_packets(3);
	begin(&samples, OW_FLOW_SAMPLE_CONSIDERED);
	for (int round = 0; round < 2; round++) {
		add(&samples, 0, 5000);
		check(&samples, 0, 5000);
		add(&samples, 5000, PACKETS);
		check(&samples, 0, PACKETS);
		ow_flow_samples_reset(&samples, OW_FLOW_SAMPLE_RANKS);
		for (size_t f = 0; f < FLOWS; f++)
			assert_int_equal(ow_flow_samples_flow(&samples, f), 0);
	}
	ow_flow_samples_done(&samples);
}

/* A sum of samples is the sample of all their packets. A part without a sample leaves none. */
static void test_sums(void **state)
{
	(void)state;
	struct ow_flow_samples part, sum;
	make_packets(5);
	begin(&sum, OW_FLOW_SAMPLE_RANKS);
	for (size_t from = 0; from < PACKETS; from += PACKETS / 4) {
		begin(&part, from ? OW_FLOW_SAMPLE_RANKS : OW_FLOW_SAMPLE_CONSIDERED);
		add(&part, from, from + PACKETS / 4);
		for (uint32_t f = 0; f < FLOWS; f++) {
			struct ow_flow_sample sample = ow_flow_samples_get(&part, f);
			ow_flow_samples_put(&sum, f, &sample);
		}
		ow_flow_samples_done(&part);
	}
	for (uint32_t f = 0; f < FLOWS; f++) {
		struct ow_flow_sample sample = ow_flow_samples_get(&sum, f);
		size_t expected = 0;
		for (size_t i = 0; i < PACKETS; i++)
			expected += packet[i].flow == f && packet[i].rank < sample.limit;
		assert_int_equal(sample.count, expected);
		assert_true(sample.limit <= OW_FLOW_SAMPLE_CONSIDERED);
	}
	ow_flow_samples_put(&sum, 7, NULL);
	struct ow_flow_sample none = ow_flow_samples_get(&sum, 7);
	assert_true(none.count == 0 && none.limit == 0);
	ow_flow_samples_done(&sum);
}

/* Of very many flows fewer packets are considered: memory is limited. */
static void test_limit_of_all(void **state)
{
	(void)state;
	const size_t flows = 300000;
	struct ow_flow_samples samples;
	struct ow_random random;
	size_t kept = 0;
	ow_random_seed(&random, 9);
	ow_flow_samples_init(&samples, OW_FLOW_SAMPLE_RANKS);
	for (size_t f = 0; f < flows; f++)
		assert_int_equal(ow_flow_samples_flow(&samples, f), 0);
	for (size_t i = 0; i < 6 * flows; i++) {
		uint64_t rank = ow_flow_sample_rank(ow_random_u64(&random));
		if (rank < samples.most)
			ow_flow_samples_add(&samples, (uint32_t)(i % flows), rank, (int64_t)i);
	}
	uint64_t limit = ow_flow_samples_get(&samples, 0).limit;
	for (uint32_t f = 0; f < flows; f++)
		kept += ow_flow_samples_get(&samples, f).count;
	double expected = 6.0 * (double)flows * (double)limit / (double)OW_FLOW_SAMPLE_RANKS;
	assert_true(limit < OW_FLOW_SAMPLE_RANKS && samples.room <= 1u << 20);
	assert_true((double)kept > 0.98 * expected && (double)kept < 1.02 * expected);
	ow_flow_samples_done(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_below_the_limit), cmocka_unit_test(test_sums),
	                                   cmocka_unit_test(test_limit_of_all)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
