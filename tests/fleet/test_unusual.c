/* SPDX-License-Identifier: Apache-2.0 */
/* Which intervals are unusual, how many rows that may cost, and how many rows a point may send at all. */
#include "fleet/point_limit.h"
#include "fleet/recent_rows.h"
#include "fleet/unusual.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define SECOND INT64_C(1000000000)

static struct ow_unusual_look look_of(int64_t lane, int second, double loss, double p99_ns)
{
	return (struct ow_unusual_look){
		.lane = lane, .start_ns = second * SECOND, .length_ns = SECOND, .loss = loss, .p99_ns = p99_ns};
}

static void quiet_lanes_send_nothing(void **state)
{
	(void)state;
	struct ow_unusual unusual = {0};
	int64_t since, until;
	for (int i = 0; i < 5000; i++) {
		struct ow_unusual_look look = look_of(i % 7, i, i % 50 ? 0 : 0.0005, 1e6 + i % 100 * 5e3);
		assert_false(ow_unusual_look(&unusual, &look, &since, &until));
		look = look_of(8, i, NAN, NAN); /* unknown ones are not unusual */
		assert_false(ow_unusual_look(&unusual, &look, &since, &until));
	}
	ow_unusual_done(&unusual);
}

/* Loss, a slow p99, an eventful interval: each is found in its lane, with a window around it; windows do not overlap. */
static void what_stands_out_is_found(void **state)
{
	(void)state;
	static const struct ow_unusual_look odd[] = {{.loss = 0.05, .p99_ns = 1e6},
	                                             {.loss = 0, .p99_ns = 5e6},
	                                             {.loss = 0, .p99_ns = 1e6, .eventful = true}};
	for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
		struct ow_unusual unusual = {0};
		int64_t since = 0, until = 0;
		struct ow_unusual_look look;
		for (int i = 0; i < 100; i++) {
			look = look_of(3, i, 0, 1e6);
			assert_false(ow_unusual_look(&unusual, &look, &since, &until));
		}
		look = odd[k];
		look.lane = 3;
		look.start_ns = 100 * SECOND;
		look.length_ns = SECOND;
		assert_true(ow_unusual_look(&unusual, &look, &since, &until));
		assert_int_equal(since, 90 * SECOND);
		assert_int_equal(until, 121 * SECOND);
		look.start_ns = 105 * SECOND;
		assert_true(ow_unusual_look(&unusual, &look, &since, &until));
		assert_int_equal(since, 121 * SECOND);
		assert_int_equal(until, 126 * SECOND);
		ow_unusual_done(&unusual);
	}
}

/* Of short intervals hundreds are sent, not ten seconds of them: that would be more than may be sent at once. */
static void short_intervals_are_found(void **state)
{
	(void)state;
	struct ow_unusual unusual = {0};
	int64_t since = 0, until = 0, ms = SECOND / 1000;
	struct ow_unusual_look look = {.lane = 3, .length_ns = 10 * ms, .p99_ns = 1e6};
	for (int i = 0; i < 5000; i++) {
		look.start_ns = i * look.length_ns;
		look.loss = i == 4000 ? 0.05 : 0;
		assert_int_equal(ow_unusual_look(&unusual, &look, &since, &until), i == 4000);
	}
	assert_int_equal(since, 39 * SECOND);
	assert_int_equal(until, 42 * SECOND + 10 * ms);
	ow_unusual_done(&unusual);
}

/* A lane that is always eventful: a tenth of its rows, after the first ones. */
static void a_bad_lane_has_a_budget(void **state)
{
	(void)state;
	struct ow_unusual unusual = {0};
	int64_t since, until, sent = 0;
	for (int i = 0; i < 20000; i++) {
		struct ow_unusual_look look = look_of(1, i, 0, 1e6);
		look.eventful = true;
		if (ow_unusual_look(&unusual, &look, &since, &until))
			sent += (until - since) / SECOND;
	}
	assert_true(sent <= 600 + 2000 && sent >= 1500);
	ow_unusual_done(&unusual);
}

/* A flood of one point does not slow others down. */
static void a_point_has_a_limit(void **state)
{
	(void)state;
	struct ow_point_limit limit;
	unsigned allowed = 0;
	ow_point_limit_init(&limit, 10000, 100);
	for (int second = 0; second < 100; second++) {
		for (int i = 0; i < 1000; i++)
			allowed += ow_point_limit_allow(&limit, "flood", 100, second * SECOND);
		for (int i = 0; i < 100; i++) {
			char name[20];
			snprintf(name, sizeof name, "p%d", i);
			assert_true(ow_point_limit_allow(&limit, name, 10, second * SECOND));
		}
	}
	assert_true(allowed >= 100 && allowed <= 100 + 100);
	ow_point_limit_done(&limit);
}

static void changed_rows_are_noticed(void **state)
{
	(void)state;
	struct ow_recent_rows recent = {0};
	struct ow_interval_result r = {.start_ns = 0};
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 1000; i++) {
			r.start_ns = i * 7919 % 1000 * SECOND;
			r.sent = (uint64_t)i;
			assert_int_equal(ow_recent_rows_note(&recent, i % 3, &r), round == 0);
		}
	}
	r.sent++;
	assert_true(ow_recent_rows_note(&recent, 999 % 3, &r));
	ow_recent_rows_trim(&recent, 500 * SECOND);
	assert_int_equal(recent.count, 500);
	ow_recent_rows_done(&recent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quiet_lanes_send_nothing), cmocka_unit_test(what_stands_out_is_found),
		cmocka_unit_test(a_bad_lane_has_a_budget),  cmocka_unit_test(a_point_has_a_limit),
		cmocka_unit_test(changed_rows_are_noticed), cmocka_unit_test(short_intervals_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
