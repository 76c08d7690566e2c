/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "estimate/arrivals.h"

#define COUNT 200

/* Against the definition: reordered if any packet that was sent later arrived before it. */
static void test_reordered(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 2);
	for (int run = 0; run < 50; run++) {
		int64_t sent[COUNT];
		struct ow_arrival arrival[COUNT];
		for (uint32_t i = 0; i < COUNT; i++) {
			/* Several packets of one time at both points. */
			sent[i] = 10 * (i / 3);
			arrival[i] = (struct ow_arrival){sent[i] + (int64_t)ow_random_below(&random, 5) * 10, i, i};
		}
		ow_arrivals_sort(arrival, COUNT);
		struct ow_arrivals_newest newest = {.sent_ns = INT64_MIN};
		uint64_t truth = 0;
		for (uint32_t k = 0; k < COUNT; k++) {
			bool late = false;
			for (uint32_t j = 0; j < k; j++)
				late |= arrival[j].place > arrival[k].place;
			truth += late;
			ow_arrivals_next(&newest, sent[arrival[k].place], arrival[k].place);
			assert_true(k == 0 || arrival[k - 1].time_ns < arrival[k].time_ns ||
			            (arrival[k - 1].time_ns == arrival[k].time_ns &&
			             arrival[k - 1].place < arrival[k].place));
		}
		assert_int_equal(newest.reordered, truth);
		assert_true(truth > 0);
	}
}

static void test_check(void **state)
{
	(void)state;
	const struct ow_arrival a[] = {{1, 0, 5}, {2, 1, 6}}, b[] = {{2, 1, 6}, {1, 0, 5}},
				c[] = {{9, 3, 5}, {9, 4, 6}};
	assert_true(ow_arrivals_check(a, 2) != ow_arrivals_check(b, 2));
	/* Only the numbers count. */
	assert_true(ow_arrivals_check(a, 2) == ow_arrivals_check(c, 2));
	assert_true(ow_arrivals_check(a, 1) != ow_arrivals_check(a, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reordered), cmocka_unit_test(test_check)};
	return cmocka_run_group_tests_name("arrivals", tests, NULL, NULL);
}
