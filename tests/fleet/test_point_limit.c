/* SPDX-License-Identifier: Apache-2.0 */
/* A point that sends too much has to wait; the others do not notice. */
#include "fleet/point_limit.h"

#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void a_flood_is_cut_to_its_rate(void **state)
{
	(void)state;
	struct ow_point_limit limit;
	size_t flood = 0, calm = 0;
	ow_point_limit_init(&limit, 1000, 50);
	/* 20 s, each millisecond: batches of 10 rows of one point, and now and then a row of the other. */
	for (int64_t ms = 0; ms < 20000; ms++) {
		flood += ow_point_limit_allow(&limit, "flood", 10, ms * OW_NS_PER_MS) ? 10 : 0;
		if (ms % 100 == 0)
			calm += ow_point_limit_allow(&limit, "calm", 1, ms * OW_NS_PER_MS);
	}
	assert_in_range(flood, 1000 + 19 * 50, 1000 + 20 * 50 + 10);
	assert_int_equal(calm, 200);
	ow_point_limit_done(&limit);
}

/* What was not used up does not add up beyond the burst; a batch that is larger than the burst passes once. */
static void a_burst_is_a_burst(void **state)
{
	(void)state;
	struct ow_point_limit limit;
	ow_point_limit_init(&limit, 100, 10);
	assert_true(ow_point_limit_allow(&limit, "a", 2000, 0));
	assert_false(ow_point_limit_allow(&limit, "a", 1, 189 * OW_NS_PER_S));
	assert_true(ow_point_limit_allow(&limit, "a", 1, 191 * OW_NS_PER_S));
	int64_t later = 1000000 * OW_NS_PER_S;
	assert_true(ow_point_limit_allow(&limit, "a", 100, later));
	assert_false(ow_point_limit_allow(&limit, "a", 1, later));
	ow_point_limit_done(&limit);
}

/* In any order of names, each has a limit of its own. */
static void each_point_has_its_own(void **state)
{
	(void)state;
	struct ow_point_limit limit;
	char name[20];
	ow_point_limit_init(&limit, 1, 1);
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 1000; i++) {
			snprintf(name, sizeof name, "p%u", i * 7919 % 1000);
			assert_int_equal(ow_point_limit_allow(&limit, name, 1, 0), round == 0);
		}
	}
	ow_point_limit_done(&limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_is_cut_to_its_rate),
		cmocka_unit_test(a_burst_is_a_burst),
		cmocka_unit_test(each_point_has_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
