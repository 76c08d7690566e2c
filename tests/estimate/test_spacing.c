/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/spacing.h"

#include "base/random.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS INT64_C(1000000)

/* Spacings from 0 to 20 ms: those below 10 ms are among the closer ones, and none above the next power of two. */
static void counts_the_close_ones(void **state)
{
	(void)state;
	struct ow_spacing spacing = {0};
	uint64_t below = 0, next = 0;
	for (int64_t ns = 0; ns < 20 * MS; ns += 1013) {
		ow_spacing_note(&spacing, ns, 2);
		below += ns < 10 * MS ? 2 : 0;
		next += ns < INT64_C(1) << 24 ? 2 : 0;
	}
	assert_in_range(ow_spacing_closer(&spacing, 10 * MS), below, next);
}

/* Packets at random distances, each held up for up to 10 ms: at least as many are overtaken as is said, and at most twice
 * as many, because a distance counts as the next power of two. Five standard deviations of a binomial distribution. */
static void bounds_what_is_overtaken(void **state)
{
	(void)state;
	struct ow_spacing spacing = {0};
	struct ow_random r;
	double overtaken = 0;
	ow_random_seed(&r, 1);
	for (int i = 0; i < 100000; i++) {
		int64_t apart = llrint(8e6 * ow_random_unit(&r));
		ow_spacing_note(&spacing, apart, 1);
		overtaken += 10e6 * ow_random_unit(&r) > (double)apart;
	}
	double said = ow_spacing_overtaken(&spacing, 10 * MS), error = 5 * sqrt(overtaken);
	assert_true(said < overtaken + error && said > overtaken / 2 - error);
}

/* What is out of order is not evidence of order. */
static void leaves_the_disorderly_out(void **state)
{
	(void)state;
	struct ow_spacing spacing = {0};
	ow_spacing_note(&spacing, -1, 1);
	ow_spacing_note(&spacing, INT64_MIN, 1);
	assert_int_equal(ow_spacing_closer(&spacing, INT64_MAX), 0);
	assert_true(ow_spacing_overtaken(&spacing, INT64_MAX) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_the_close_ones),
		cmocka_unit_test(bounds_what_is_overtaken),
		cmocka_unit_test(leaves_the_disorderly_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
