/* SPDX-License-Identifier: Apache-2.0 */
/* Flows are numbered from 1, each once, up to the most that is allowed; chunks carry them into their interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "record/interval_log.h"
#include <stdlib.h>
#include <string.h>

static struct ow_identity identity;
static struct ow_scope_hash hash;

static struct ow_flow_key key_of(uint32_t number)
{
	struct ow_flow_key key = {.src = {10, 1}, .dst = {10, 2}, .proto = 17, .version = 4};
	memcpy(key.src + 4, &number, sizeof number);
	key.sport = (uint16_t)number;
	return key;
}

static uint64_t hash_of(uint32_t number)
{
	struct ow_flow_key key = key_of(number);
	return ow_scope_hash_flow(&hash, &key);
}

static uint32_t number(struct ow_lane_flows *flows, uint32_t which, uint32_t max)
{
	struct ow_flow_key key = key_of(which);
	struct ow_scope_flow flow;
	uint32_t known = ow_lane_flows_find(flows, hash_of(which));
	ow_scope_flow_of(&hash, &key, &flow);
	flow.ttl = (uint8_t)which;
	return known ? known : ow_lane_flows_add(flows, &flow, max);
}

static void test_numbers(void **state)
{
	(void)state;
	enum { FLOWS = 5000 };
	struct ow_lane_flows flows = {0};
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < FLOWS; i++)
			assert_int_equal(number(&flows, i, FLOWS), i + 1);
	}
	assert_int_equal(flows.count, FLOWS);
	assert_int_equal(number(&flows, FLOWS, FLOWS), 0);
	assert_int_equal(number(&flows, 7, FLOWS), 8);
	for (uint32_t i = 0; i < FLOWS; i++) {
		assert_true(flows.flow[i].flow == hash_of(i));
		assert_int_equal(flows.flow[i].ttl, (uint8_t)i);
	}
	ow_lane_flows_done(&flows);
}

/* Two chunks with the same flows under different numbers: every packet keeps its flow, in order of time. */
static void test_interval(void **state)
{
	(void)state;
	enum { PACKETS = 3000, FLOWS = 100 };
	struct ow_interval_log *log = NULL;
	struct ow_interval_log_options options = {identity, 0, 1000000, 100000, 4};
	struct ow_random random;
	ow_random_seed(&random, 3);
	assert_int_equal(ow_interval_log_create(&options, &log), 0);
	for (int c = 0; c < 2; c++) {
		struct ow_chunk *chunk = calloc(1, sizeof *chunk + PACKETS * sizeof *chunk->sighting);
		assert_non_null(chunk);
		chunk->count = PACKETS;
		chunk->packets = PACKETS;
		for (uint32_t i = 0; i < PACKETS; i++) {
			uint32_t which = (uint32_t)ow_random_below(&random, FLOWS);
			uint32_t flow = number(&chunk->flows, which, UINT32_MAX);
			chunk->sighting[i] =
				(struct ow_sighting){(uint64_t)which << 32 | (uint64_t)c << 20 | (i + 1), i, flow};
		}
		assert_int_equal(ow_interval_log_add(log, chunk), 0);
		ow_chunk_free(chunk);
	}
	struct ow_interval_packets *packets = ow_interval_log_next(log, INT64_MAX);
	assert_non_null(packets);
	assert_int_equal(packets->count, 2 * PACKETS);
	assert_int_equal(packets->flows.count, FLOWS);
	for (size_t i = 0; i < packets->count; i++) {
		assert_true(packets->sighting[i].flow >= 1 && packets->sighting[i].flow <= FLOWS);
		uint32_t which = (uint32_t)(packets->sighting[i].id >> 32);
		assert_true(packets->flows.flow[packets->sighting[i].flow - 1].flow == hash_of(which));
	}
	uint64_t sum = 0;
	for (uint32_t i = 0; i < packets->flows.count; i++)
		sum += packets->flows.flow[i].packets;
	assert_int_equal(sum, packets->count);
	ow_interval_packets_free(packets);
	ow_interval_log_free(log);
}

int main(void)
{
	ow_identity_seed(&identity, 11);
	ow_scope_hash_seed(&hash, 12);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_interval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
