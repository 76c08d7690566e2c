/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers about the order of packets; tests/cli/check-numbers computes them a second time. */
#include "estimate/details.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define LATER INT64_MIN /* nothing is decided yet */

static void add(struct ow_details_tally *t, struct ow_ordered_packet packet)
{
	packet.packets = 1;
	packet.time_ns = (int64_t)packet.number * 100;
	packet.has_delay = !packet.is_lost && !packet.is_unknown;
	assert_int_equal(ow_details_tally_sent(t, &packet, packet.number, packet.time_ns + packet.delay_ns, LATER), 0);
}

static void arrives(struct ow_details_tally *t, uint64_t number, int64_t delay_ns)
{
	ow_details_tally_arrived(t, number, 1);
	add(t, (struct ow_ordered_packet){.number = number, .delay_ns = delay_ns});
}

static void by_hand(void **state)
{
	(void)state;
	struct ow_details_tally *t;
	struct ow_details d;
	const struct ow_result result = {
		.sent = 8, .lost = 4, .matched = 4, .delay = {.samples = 4, .min_ns = 10, .max_ns = 42}};
	uint32_t flow;
	assert_int_equal(ow_details_tally_create(1000, &t), 0);
	/* 10 26 lost lost 42 lost 10 lost | unknown; the lost ones become known at last */
	arrives(t, 1, 10);
	arrives(t, 2, 26);
	arrives(t, 5, 42);
	arrives(t, 7, 10);
	add(t, (struct ow_ordered_packet){.number = 8, .is_lost = true, .alike = true});
	add(t, (struct ow_ordered_packet){.number = 3, .is_lost = true});
	add(t, (struct ow_ordered_packet){.number = 6, .is_lost = true});
	add(t, (struct ow_ordered_packet){.number = 4, .is_lost = true});
	add(t, (struct ow_ordered_packet){.number = 9, .is_unknown = true});
	assert_int_equal(ow_details_tally_finish(t, &result, &d, &flow), 0);
	assert_null(d.reason);
	assert_int_equal(d.packets, 8);
	assert_int_equal(d.ipdv.samples, 1);
	assert_int_equal(d.ipdv.max_ns, 16);
	assert_int_equal(d.pdv.max_ns, 32);
	assert_int_equal(d.loss.lost, 4);
	assert_int_equal(d.loss.length.samples, 3);
	assert_int_equal(d.loss.length.max, 2);
	assert_int_equal(d.loss.distance.samples, 3);
	assert_true(d.loss.distance.mean == 5. / 3);
	assert_int_equal(d.loss.uncertain, 1);
	assert_int_equal(d.loss.least_periods, 1);
	assert_int_equal(d.loss.most_periods, 4);
	assert_int_equal(d.loss.least_longest, 1);
	assert_int_equal(d.loss.most_longest, 4);
	/* 0, 16/16, + (16 - 1)/16, + (32 - j)/16 */
	double second = 1 + (16 - 1.) / 16, third = second + (32 - second) / 16;
	assert_int_equal(d.jitter.samples, 3);
	assert_true(d.jitter.max_ns == third && d.jitter.final_ns == third);
	assert_true(d.jitter.mean_ns == (1 + second + third) / 3);
	ow_details_tally_free(t);
}

/* Numbers that do not add up to the result, and packets that come too late, are said. */
static void says_why(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct ow_details_tally *t;
		struct ow_details d;
		const struct ow_result result = {.sent = 2, .matched = 2, .lost = !late};
		uint32_t flow;
		assert_int_equal(ow_details_tally_create(1000, &t), 0);
		struct ow_ordered_packet packet = {.number = 2, .packets = 1, .time_ns = 200};
		assert_int_equal(ow_details_tally_sent(t, &packet, 2, 210, late ? INT64_MAX : LATER), 0);
		packet.number = 1;
		assert_int_equal(ow_details_tally_sent(t, &packet, 1, 110, LATER), 0);
		assert_int_equal(ow_details_tally_finish(t, &result, &d, &flow), 0);
		assert_non_null(strstr(d.reason, late ? "too late" : "not those"));
		assert_int_equal(d.unplaced, late);
		ow_details_tally_free(t);
	}
}

/* The bounds of a difference contain it for every delay within its own bounds. */
static void uncertain_delays(void **state)
{
	(void)state;
	struct ow_details_tally *t;
	struct ow_details d;
	const struct ow_result result = {.sent = 2, .matched = 2};
	uint32_t flow;
	assert_int_equal(ow_details_tally_create(1000, &t), 0);
	add(t, (struct ow_ordered_packet){.number = 1, .delay_ns = 100, .less_ns = 20, .more_ns = 50, .alike = true});
	add(t, (struct ow_ordered_packet){.number = 2, .delay_ns = 110, .less_ns = 5, .more_ns = 7, .alike = true});
	assert_int_equal(ow_details_tally_finish(t, &result, &d, &flow), 0);
	assert_int_equal(d.ipdv.uncertain, 1);
	assert_int_equal(d.ipdv.low.min_ns, 10 - 5 - 50);
	assert_int_equal(d.ipdv.high.max_ns, 10 + 7 + 20);
	assert_int_equal(d.ipdv_size.low.min_ns, 0);
	assert_int_equal(d.ipdv_size.high.max_ns, 45);
	assert_int_equal(d.jitter.samples, 0);
	assert_int_equal(d.jitter.left_out, 2);
	ow_details_tally_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand), cmocka_unit_test(says_why),
	                                   cmocka_unit_test(uncertain_delays)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
