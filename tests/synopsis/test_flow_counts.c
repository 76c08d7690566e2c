/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "synopsis/flow_counts.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STAMPS 40000
#define FLOWS  5000 /* the table grows on the way */

static const struct ow_colate_params params = {
	.layers = 2,
	.unit_ns = 1,
	.seed = 3,
	.layer = {{.last = OW_COLATE_SHARE}, {.first = 100, .last = 30000}},
};
static struct ow_flow_sighting stamp[STAMPS];
static const struct ow_flow_key *key[STAMPS];
static struct ow_flow_key all[FLOWS];
static uint64_t packets[FLOWS], partial[FLOWS];

static int setup(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 5);
	for (uint32_t i = 0; i < FLOWS; i++)
		all[i] = (struct ow_flow_key){.version = 4, .proto = 17, .sport = (uint16_t)i, .dport = 53};
	for (size_t i = 0; i < STAMPS; i++) {
		size_t f = i < FLOWS ? i : ow_random_below(&random, FLOWS);
		key[i] = &all[f];
		stamp[i].flow = ow_flow_hash(params.seed, &all[f]);
		stamp[i].id = ow_random_u64(&random);
		stamp[i].time_ns = (int64_t)i - 100;
		packets[f]++;
		uint32_t place = ow_colate_place(ow_colate_packet_hash(params.seed, stamp[i].id));
		partial[f] += place >= 100 && place < 30000;
	}
	return 0;
}

static void check_all(const struct ow_flow_counts *counts, uint64_t times)
{
	assert_int_equal(ow_flow_counts_flows(counts), FLOWS);
	assert_int_equal(ow_flow_counts_packets(counts), times * STAMPS);
	for (size_t i = 0; i < FLOWS; i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(counts, i, &count);
		assert_memory_equal(&count.key, &all[i], sizeof count.key);
		assert_int_equal(count.packets, times * packets[i]);
		assert_int_equal(count.first_ns, (int64_t)i - 100);
		assert_true(count.last_ns >= count.first_ns && count.last_ns < STAMPS);
		assert_int_equal(ow_flow_counts_in_layer(counts, i, 0), times * packets[i]);
		assert_int_equal(ow_flow_counts_in_layer(counts, i, 1), times * partial[i]);
		assert_int_equal(ow_flow_counts_find(counts, count.flow), i);
	}
	assert_int_equal(ow_flow_counts_find(counts, 12345), -1);
}

static void put_all(struct ow_flow_counts *sum, const struct ow_flow_counts *part)
{
	for (size_t i = 0; i < ow_flow_counts_flows(part); i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(part, i, &count);
		assert_int_equal(ow_flow_counts_put(sum, &count, ow_flow_counts_in_partials(part, i), NULL), 0);
	}
}

static void test_counts(void **state)
{
	(void)state;
	struct ow_flow_counts *counts, *other;
	assert_int_equal(ow_flow_counts_create(&params, 0, &counts), 0);
	assert_int_equal(ow_flow_counts_create(&params, 0, &other), 0);
	ow_flow_counts_add(counts, stamp, key, 1);
	ow_flow_counts_add(counts, stamp + 1, key + 1, STAMPS - 1);
	check_all(counts, 1);
	put_all(other, counts);
	check_all(other, 1);
	put_all(other, counts);
	check_all(other, 2);
	ow_flow_counts_reset(other);
	assert_int_equal(ow_flow_counts_flows(other), 0);
	ow_flow_counts_add(other, stamp, key, STAMPS);
	check_all(other, 1);
	ow_flow_counts_free(counts);
	ow_flow_counts_free(other);
}

/* Own counters have all packets of their flows, in units, and stay only with large flows. */
static void test_own(void **state)
{
	(void)state;
	struct ow_colate_params in_units = params;
	struct ow_flow_counts *counts, *sum;
	in_units.unit_ns = 1000;
	assert_int_equal(ow_flow_counts_create(&in_units, 0, &counts), 0);
	assert_int_equal(ow_flow_counts_create(&in_units, 0, &sum), 0);
	ow_flow_counts_add(counts, stamp, key, STAMPS);
	uint64_t keep = stamp[0].flow; /* of a flow that is looked at below */
	ow_flow_counts_drop_own(counts, 10, &keep, 1);
	put_all(sum, counts);
	ow_flow_counts_reset(counts);
	ow_flow_counts_add(counts, stamp, key, STAMPS);
	put_all(sum, counts);
	for (size_t f = 0; f < FLOWS; f++) {
		struct ow_flow_count count;
		struct ow_flow_own own = {0};
		for (size_t i = 0; i < STAMPS; i++) {
			if (key[i] != &all[f])
				continue;
			own.packets++;
			own.sum += (uint64_t)(stamp[i].time_ns < 0 ? -1 : stamp[i].time_ns / 1000);
			own.check += ow_colate_check_word(ow_colate_packet_hash(params.seed, stamp[i].id));
		}
		uint32_t times = own.packets < 10 && f > 0 ? 1 : 2;
		ow_flow_counts_get(sum, f, &count);
		assert_int_equal(count.own.packets, times * own.packets);
		assert_int_equal(count.own.sum, times * own.sum);
		assert_int_equal(count.own.check, times * own.check);
		/* Look at some flows only: each takes a pass over all packets. */
		f += 20;
	}
	ow_flow_counts_free(counts);
	ow_flow_counts_free(sum);
}

/* Every packet is counted with its flow or as one that found no room. */
static void test_full(void **state)
{
	(void)state;
	struct ow_flow_counts *counts;
	assert_int_equal(ow_flow_counts_create(&params, 1500, &counts), 0);
	ow_flow_counts_add(counts, stamp, key, STAMPS);
	assert_int_equal(ow_flow_counts_flows(counts), 1500);
	assert_true(ow_flow_counts_uncounted(counts) > 0);
	assert_int_equal(ow_flow_counts_packets(counts) + ow_flow_counts_uncounted(counts), STAMPS);
	struct ow_flow_count count = {.flow = 99, .packets = 1};
	uint64_t none = 0;
	assert_int_equal(ow_flow_counts_put(counts, &count, &none, NULL), -ENOSPC);
	ow_flow_counts_free(counts);
	ow_flow_counts_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_own),
	                                   cmocka_unit_test(test_full)};
	return cmocka_run_group_tests(tests, setup, NULL);
}
