/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of flows and networks: equal where they should be, and only there; the same for the same seed. */
#include "packet/scope_flow.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct ow_flow_key v4(uint8_t c, uint8_t d, uint8_t host, uint16_t port)
{
	struct ow_flow_key key = {.proto = 17, .version = 4, .sport = port, .dport = 53};
	memcpy(key.src, (uint8_t[]){10, 0, c, host}, 4);
	memcpy(key.dst, (uint8_t[]){10, 9, d, host}, 4);
	return key;
}

static struct ow_scope_flow of(uint64_t seed, struct ow_flow_key key)
{
	struct ow_scope_hash hash;
	struct ow_scope_flow flow;
	ow_scope_hash_seed(&hash, seed);
	ow_scope_flow_of(&hash, &key, &flow);
	assert_int_equal(flow.flow, ow_scope_hash_flow(&hash, &key));
	return flow;
}

static void test_v4(void **state)
{
	(void)state;
	struct ow_scope_flow a = of(1, v4(1, 2, 3, 4)), again = of(1, v4(1, 2, 3, 4));
	assert_memory_equal(&a, &again, sizeof a);
	/* Another host and port of the same networks. */
	struct ow_scope_flow b = of(1, v4(1, 2, 200, 5));
	assert_true(b.flow != a.flow && b.pair == a.pair && b.dest == a.dest);
	struct ow_scope_flow c = of(1, v4(7, 2, 3, 4));
	assert_true(c.flow != a.flow && c.pair != a.pair && c.dest == a.dest);
	struct ow_scope_flow d = of(1, v4(1, 7, 3, 4));
	assert_true(d.flow != a.flow && d.pair != a.pair && d.dest != a.dest);
	assert_memory_equal(d.network, ((uint8_t[]){10, 9, 7, 0, 0, 0}), 6);
	assert_int_equal(d.version, 4);
	/* Another lane. */
	struct ow_scope_flow e = of(2, v4(1, 2, 3, 4));
	assert_true(e.flow != a.flow && e.pair != a.pair && e.dest != a.dest);
}

/* The two directions are two flows between two pairs. */
static void test_directions(void **state)
{
	(void)state;
	struct ow_flow_key key = v4(1, 2, 3, 53), back = key;
	memcpy(back.src, key.dst, 16);
	memcpy(back.dst, key.src, 16);
	struct ow_scope_flow a = of(1, key), b = of(1, back);
	assert_true(a.flow != b.flow && a.pair != b.pair && a.dest != b.dest);
	assert_true(a.pair != a.dest && a.flow != a.pair);
}

static void test_v6(void **state)
{
	(void)state;
	struct ow_flow_key key = {.proto = 6, .version = 6};
	for (uint8_t i = 0; i < 16; i++)
		key.src[i] = key.dst[i] = (uint8_t)(i + 1);
	struct ow_scope_flow a = of(1, key);
	key.dst[6] ^= 1;
	struct ow_scope_flow b = of(1, key);
	assert_true(b.flow != a.flow && b.pair == a.pair && b.dest == a.dest);
	key.dst[5] ^= 1;
	struct ow_scope_flow c = of(1, key);
	assert_true(c.pair != a.pair && c.dest != a.dest);
	assert_memory_equal(c.network, key.dst, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_v4), cmocka_unit_test(test_directions),
	                                   cmocka_unit_test(test_v6)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
