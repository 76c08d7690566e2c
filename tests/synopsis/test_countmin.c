/* SPDX-License-Identifier: Apache-2.0 */
/* Count-Min of times: never too low, exact when alone, and within its bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "synopsis/countmin.h"
#include <errno.h>

#define FLOWS  2000
#define ORIGIN INT64_C(1700000000000000000)

static struct ow_countmin *make(uint32_t rows, uint32_t columns)
{
	struct ow_countmin *c;
	struct ow_error err;
	assert_int_equal(ow_countmin_create(&(struct ow_countmin_params){rows, columns, ORIGIN, 7}, &c, &err), 0);
	return c;
}

/* 165 counters and 3 hash functions for 0.95 and 0.05: section 6.5 of the COLATE paper. */
static void test_size(void **state)
{
	(void)state;
	struct ow_countmin_params p = ow_countmin_size(0.95, 0.05);
	assert_int_equal(p.rows, 3);
	assert_int_equal(p.rows * p.columns, 165);
}

static void test_bound(void **state)
{
	(void)state;
	struct ow_countmin *a = make(3, 55), *b = make(3, 55);
	struct ow_random random;
	ow_random_seed(&random, 1);
	uint64_t sum_a[FLOWS], sum_d[FLOWS], all_a = 0, all_d = 0;
	for (int f = 0; f < FLOWS; f++) {
		struct ow_flow_sighting s = {ow_mix64((uint64_t)f + 1), 0,
		                             ORIGIN + (int64_t)ow_random_below(&random, 1000000)};
		ow_countmin_add(a, &s, 1);
		sum_a[f] = (uint64_t)(s.time_ns - ORIGIN);
		sum_d[f] = ow_random_below(&random, 1000);
		s.time_ns += (int64_t)sum_d[f];
		ow_countmin_add(b, &s, 1);
		all_a += sum_a[f];
		all_d += sum_d[f];
	}
	struct ow_error err;
	assert_int_equal(ow_countmin_subtract(b, a, &err), 0);
	int beyond_a = 0, beyond_d = 0;
	for (int f = 0; f < FLOWS; f++) {
		uint64_t flow = ow_mix64((uint64_t)f + 1), at_a = ow_countmin_query(a, flow),
			 d = ow_countmin_query(b, flow);
		assert_true(at_a >= sum_a[f] && d >= sum_d[f]);
		beyond_a += (double)(at_a - sum_a[f]) > 0.05 * (double)all_a;
		beyond_d += (double)(d - sum_d[f]) > 0.05 * (double)all_d;
	}
	assert_true(beyond_a <= 0.05 * FLOWS && beyond_d <= 0.05 * FLOWS);
	ow_countmin_free(a);
	ow_countmin_free(b);
}

static void test_edges(void **state)
{
	(void)state;
	struct ow_countmin *c = make(2, 1), *other = make(2, 2);
	struct ow_error err;
	struct ow_flow_sighting s[] = {{1, 0, ORIGIN - 5}, {1, 0, ORIGIN + 3}, {1, 0, ORIGIN + 4}};
	ow_countmin_add(c, s, 3);
	assert_int_equal(ow_countmin_query(c, 1), 7);
	assert_int_equal(ow_countmin_subtract(c, other, &err), -EINVAL);
	ow_countmin_free(c);
	ow_countmin_free(other);
	ow_countmin_free(NULL);
	assert_int_equal(ow_countmin_create(&(struct ow_countmin_params){0, 5, 0, 0}, &c, &err), -EINVAL);
	assert_int_equal(ow_countmin_create(&(struct ow_countmin_params){32, 1u << 30, 0, 0}, &c, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_size), cmocka_unit_test(test_bound),
	                                   cmocka_unit_test(test_edges)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
