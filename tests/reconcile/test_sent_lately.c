/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that may still be under way: those that were sent shortly before, those that were sent twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "reconcile/sent_lately.h"
#include "synopsis/synopsis.h"

#include <stdlib.h>

/* Only packets that were sent within the reach before the interval are known. */
static void test_reach(void **state)
{
	(void)state;
	struct ow_sent_lately lately = {0};
	const struct ow_sighting sent[] = {
		{ow_mix64(1), 100, 0}, {ow_mix64(2), 899, 0}, {ow_mix64(3), 900, 0}, {0, 950, 0}};
	ow_sent_lately_begin(&lately, 5000, 100);
	ow_sent_lately_add(&lately, sent, 4, 5000, 1000);
	ow_sent_lately_begin(&lately, 6000, 100);
	assert_true(ow_sent_lately_last(&lately, ow_mix64(1)) == INT64_MIN);
	assert_true(ow_sent_lately_last(&lately, ow_mix64(2)) == INT64_MIN);
	assert_int_equal(ow_sent_lately_last(&lately, ow_mix64(3)), 5900);
	assert_int_equal(ow_sent_lately_last(&lately, 0), 5950);
	ow_sent_lately_begin(&lately, 7000, 100);
	assert_true(ow_sent_lately_last(&lately, 0) == INT64_MIN);
	ow_sent_lately_done(&lately);
}

/* Intervals shorter than the reach: each packet is known for as long as that, and for at most two more; the time between two is. */
static void test_short(void **state)
{
	(void)state;
	struct ow_sent_lately lately = {0};
	enum { REACH = 70, LENGTH = 10 };
	for (int64_t i = 0; i < 1000; i++) {
		const struct ow_sighting sent[] = {{ow_mix64((uint64_t)i + 1), 2, 0}, {77, 5, 0}};
		ow_sent_lately_begin(&lately, i * LENGTH, REACH);
		for (int64_t k = 0; k < i; k++) {
			int64_t ago = i * LENGTH - (k * LENGTH + 2);
			bool known = ow_sent_lately_last(&lately, ow_mix64((uint64_t)k + 1)) != INT64_MIN;
			assert_true(known || ago > REACH);
			assert_true(!known || ago <= 3 * REACH);
			assert_int_equal(ow_sent_lately_apart(&lately, ow_mix64((uint64_t)k + 1)), 0);
		}
		ow_sent_lately_add(&lately, sent, i % 3 ? 1 : 2, i * LENGTH, LENGTH);
		assert_true(i < 3 || ow_sent_lately_apart(&lately, 77) == 3 * LENGTH);
	}
	ow_sent_lately_done(&lately);
}

/* Of very many, the last ones. After a pause, none. */
static void test_many(void **state)
{
	(void)state;
	enum { COUNT = 300000 };
	struct ow_sighting *sent = malloc(COUNT * sizeof *sent);
	struct ow_sent_lately lately = {0};
	assert_non_null(sent);
	for (int i = 0; i < COUNT; i++)
		sent[i] = (struct ow_sighting){ow_mix64((uint64_t)i + 1), i, 0};
	ow_sent_lately_begin(&lately, 0, INT64_MAX / 4);
	ow_sent_lately_add(&lately, sent, COUNT, 0, COUNT);
	ow_sent_lately_begin(&lately, COUNT, COUNT);
	for (int i = 1; i <= 100000; i++)
		assert_int_equal(ow_sent_lately_last(&lately, sent[COUNT - i].id), COUNT - i);
	ow_sent_lately_begin(&lately, 3 * COUNT, COUNT);
	assert_true(ow_sent_lately_last(&lately, sent[COUNT - 1].id) == INT64_MIN);
	ow_sent_lately_done(&lately);
	free(sent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reach),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
