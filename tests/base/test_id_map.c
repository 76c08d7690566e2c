/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id_map.h"

#include "base/random.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define ITEMS 4000u
#define IDS   1500u /* so that several items share an id */

static bool has(const struct ow_id_map *map, const uint64_t *ids, uint64_t id, uint32_t item)
{
	return OW_ID_MAP_FIND(map, id, i, ids[i] == id && i == item) == item;
}

/* Adds, removes and replaces at random; after each step a list of what is there says the same. */
static void like_a_list(void **state)
{
	(void)state;
	struct ow_id_map map = {0};
	struct ow_random random;
	static uint64_t ids[ITEMS];
	static bool in[ITEMS];
	size_t count = 0;
	ow_random_seed(&random, 1);
	for (uint32_t i = 0; i < ITEMS; i++)
		ids[i] = ow_random_below(&random, IDS) << (i % 3 ? 50 : 0);
	for (unsigned step = 0; step < 100000; step++) {
		uint32_t item = (uint32_t)ow_random_below(&random, ITEMS);
		assert_int_equal(has(&map, ids, ids[item], item), in[item]);
		if (in[item])
			ow_id_map_remove(&map, ids[item], item);
		else
			assert_int_equal(ow_id_map_add(&map, ids[item], item), 0);
		count = in[item] ? count - 1 : count + 1;
		in[item] = !in[item];
		assert_int_equal(map.used, count);
	}
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_int_equal(has(&map, ids, ids[i], i), in[i]);
	ow_id_map_clear(&map);
	for (uint32_t i = 0; i < ITEMS; i++)
		assert_false(has(&map, ids, ids[i], i));
	ow_id_map_done(&map);
	assert_null(map.slot);
}

static void replaces(void **state)
{
	(void)state;
	struct ow_id_map map = {0};
	const uint64_t ids[] = {7, 8, 7};
	assert_int_equal(ow_id_map_add(&map, 7, 0), 0);
	assert_int_equal(ow_id_map_add(&map, 8, 1), 0);
	ow_id_map_replace(&map, 7, 0, 2);
	assert_false(has(&map, ids, 7, 0));
	assert_true(has(&map, ids, 8, 1));
	assert_true(has(&map, ids, 7, 2));
	assert_int_equal(map.used, 2);
	ow_id_map_done(&map);
}

/* Ids with a common difference, of any size, are spread like random ones: in a table that is half full a search then
 * looks at 1.5 slots (Knuth, 6.4), with a standard deviation of the mean of some 0.02. */
static void regular_ids_are_spread(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 48; shift += 4) {
		struct ow_id_map map = {0};
		uint64_t looks = 0, count = 1u << 14;
		for (uint64_t i = 0; i < count; i++)
			assert_int_equal(ow_id_map_add(&map, i << shift, (uint32_t)i), 0);
		for (uint64_t i = 0; i < count; i++) {
			struct ow_id_probe probe = ow_id_map_probe(&map, i << shift);
			uint64_t from = probe.at;
			while (ow_id_probe_next(&probe) != i)
				;
			looks += (probe.at - from) & probe.mask;
		}
		assert_true(looks < 2 * count);
		ow_id_map_done(&map);
	}
}

static void too_many(void **state)
{
	(void)state;
	struct ow_id_map map = {0};
	assert_int_equal(ow_id_map_add(&map, 1, 5), 0);
	assert_int_equal(ow_id_map_reserve(&map, (size_t)OW_ID_MAP_ITEMS_MAX + 1), -12);
	struct ow_id_probe probe = ow_id_map_probe(&map, 1);
	assert_int_equal(ow_id_probe_next(&probe), 5);
	assert_int_equal(ow_id_probe_next(&probe), OW_ID_MAP_NONE);
	ow_id_map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(like_a_list),
		cmocka_unit_test(replaces),
		cmocka_unit_test(regular_ids_are_spread),
		cmocka_unit_test(too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
