/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"
#include "base/random.h"
#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT 5000
#define SEED  7

/* Numbers over their whole range, so that a comparison by subtraction would fail. */
static void sort_all(struct ow_random *random, size_t count)
{
	static double real[COUNT];
	static uint64_t id[COUNT];
	static int64_t time[COUNT];
	uint64_t before = 0, after = 0; /* sums: none is lost or made up */
	for (size_t i = 0; i < count; i++) {
		id[i] = ow_random_u64(random);
		time[i] = (int64_t)ow_random_u64(random);
		real[i] = (double)time[i] * 1e200;
	}
	time[0] = INT64_MIN;
	time[1] = INT64_MAX;
	for (size_t i = 0; i < count; i++)
		before += id[i] + 3 * (uint64_t)time[i];
	ow_sort_ids(id, count);
	ow_sort_times(time, count);
	ow_sort_doubles(real, count);
	for (size_t i = 1; i < count; i++)
		assert_true(id[i - 1] <= id[i] && time[i - 1] <= time[i] && real[i - 1] <= real[i]);
	assert_true(time[0] == INT64_MIN && time[count - 1] == INT64_MAX);
	for (size_t i = 0; i < count; i++)
		after += id[i] + 3 * (uint64_t)time[i];
	assert_true(before == after);
}

static void places(void **state)
{
	(void)state;
	static const uint64_t id[] = {0, 5, 5, 5, 9, UINT64_MAX};
	static const struct {
		uint64_t id;
		size_t below;
	} cases[] = {{0, 0}, {1, 1}, {5, 1}, {6, 4}, {9, 4}, {10, 5}, {UINT64_MAX, 5}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(ow_ids_below(id, sizeof id / sizeof *id, cases[i].id), cases[i].below);
	assert_int_equal(ow_ids_below(id, 5, 10), 5);
	assert_int_equal(ow_ids_below(NULL, 0, 5), 0);
}

/* Few and many are sorted in different ways. */
static void sorted(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (size_t count = 100; count <= COUNT; count *= 50)
		sort_all(&random, count);
	ow_sort_ids(NULL, 0);
	ow_sort_times(NULL, 0);
	ow_sort_doubles(NULL, 0);
}

static void times(void **state)
{
	(void)state;
	static const int64_t some[] = {INT64_MIN, INT64_MIN + 1, -1000000001,   -1,       0,
	                               1,         999999999,     INT64_MAX - 1, INT64_MAX};
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		for (int64_t step = 1; step < INT64_MAX / 1000; step *= 1000) {
			__int128 down = (__int128)ow_floor_div(some[i], step) * step;
			assert_true(down <= some[i] && some[i] < down + step);
		}
		for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
			__int128 sum = (__int128)some[i] + some[k];
			int64_t want = sum < INT64_MIN ? INT64_MIN : sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
			assert_true(ow_time_later(some[i], some[k]) == want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sorted), cmocka_unit_test(places), cmocka_unit_test(times)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
