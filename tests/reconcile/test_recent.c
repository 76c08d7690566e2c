/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of recent ids: it knows recent ids, forgets with time, and has few false positives. */
#include "base/hash.h"
#include "reconcile/recent.h"
#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define S      INT64_C(1000000000)
#define WINDOW (2 * S)

static int setup(void **state)
{
	*state = ow_recent_create();
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	ow_recent_free(*state);
	return 0;
}

static uint64_t id(uint64_t i)
{
	return ow_mix64(i + 1);
}

static void knows_what_was_added(void **state)
{
	struct ow_recent *r = *state;
	assert_false(ow_recent_has(r, id(1), 100 * S, WINDOW));
	ow_recent_add(r, id(1), 100 * S);
	ow_recent_prefetch(r, id(1));
	assert_true(ow_recent_has(r, id(1), 100 * S, WINDOW));
	assert_false(ow_recent_has(r, id(2), 100 * S, WINDOW));
	/* The same set, another name; the same name, another set. */
	assert_false(ow_recent_has(r, id(1) ^ (UINT64_C(1) << 40), 100 * S, WINDOW));
	assert_false(ow_recent_has(r, id(1) ^ 1, 100 * S, WINDOW));
}

/* To the second, at least one: all within the window are known, none more than two seconds beyond it. */
static void forgets_with_time(void **state)
{
	struct ow_recent *r = *state;
	for (int64_t t = 0; t < 400 * S; t += S / 3 + 7) {
		ow_recent_add(r, id(7), t);
		assert_true(ow_recent_has(r, id(7), t + WINDOW, WINDOW));
		assert_true(ow_recent_has(r, id(7), t - WINDOW, WINDOW)); /* clocks that go backwards */
		assert_true(ow_recent_has(r, id(7), t + S - 1, 0));
		assert_false(ow_recent_has(r, id(7), t + WINDOW + 2 * S, WINDOW));
	}
}

/* The seconds wrap around after four and a half minutes. */
static void survives_the_wrap_of_its_seconds(void **state)
{
	struct ow_recent *r = *state;
	int64_t t = (INT64_C(255) << 30) + S / 2;
	ow_recent_add(r, id(1), t);
	assert_true(ow_recent_has(r, id(1), t + S, WINDOW));
	assert_false(ow_recent_has(r, id(1), t + 5 * S, WINDOW));
}

/* After 10,000 others an id is forgotten with a probability of 3e-7, as the header says; after 40,000 of 0.0023. */
static void holds_as_many_as_promised(void **state)
{
	struct ow_recent *r = *state;
	unsigned asked = 0, forgotten = 0, forgotten_later = 0, strangers = 0;
	for (uint64_t i = 0; i < 1000000; i++) {
		ow_recent_add(r, id(i), 10 * S);
		if (i >= 40000 && i % 4 == 0) {
			asked++;
			forgotten += !ow_recent_has(r, id(i - 10000), 10 * S, WINDOW);
			forgotten_later += !ow_recent_has(r, id(i - 40000), 10 * S, WINDOW);
		}
	}
	assert_int_equal(asked, 240000);
	/* 0.07 expected. */
	assert_in_range(forgotten, 0, 3);
	/* The chance of 8 or more where 40,000 / 16,384 are expected; five standard deviations. */
	double least = 0, term = exp(-40000 / 16384.0);
	for (int k = 0; k < 8; k++, term *= 40000 / 16384.0 / k)
		least += term;
	double expected = asked * (1 - least);
	assert_in_range(forgotten_later, (unsigned)(expected - 5 * sqrt(expected)),
	                (unsigned)(expected + 5 * sqrt(expected)));
	/* 8 entries, 24 bits: 0.48 of a million. */
	for (uint64_t i = 0; i < 1000000; i++)
		strangers += ow_recent_has(r, id(i + 2000000), 10 * S, WINDOW);
	assert_in_range(strangers, 0, 5);
}

/* The same times from the origin on have the same answers, whatever the date. */
static void does_not_depend_on_the_date(void **state)
{
	struct ow_recent *r = *state;
	for (int64_t shift = 0; shift < 2 * S; shift += S / 10) {
		r->origin_ns = 1000 * S + shift;
		ow_recent_add(r, id((uint64_t)shift), r->origin_ns + S / 10);
		assert_true(ow_recent_has(r, id((uint64_t)shift), r->origin_ns + (3 * S) / 2, 0));
		assert_false(ow_recent_has(r, id((uint64_t)shift), r->origin_ns + (22 * S) / 10, 0));
	}
}

static void the_table_takes_null(void **state)
{
	(void)state;
	ow_recent_free(NULL);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(knows_what_was_added),
		CASE(forgets_with_time),
		CASE(survives_the_wrap_of_its_seconds),
		CASE(holds_as_many_as_promised),
		CASE(does_not_depend_on_the_date),
		cmocka_unit_test(the_table_takes_null),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
