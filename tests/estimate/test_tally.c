/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of one direction: the result adds up, and reordering is that of RFC 4737. */
#include "base/random.h"
#include "estimate/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static int setup(void **state)
{
	static struct ow_tally tally;
	*state = &tally;
	return ow_tally_init(&tally);
}

static int teardown(void **state)
{
	ow_tally_done(*state);
	ow_tally_done(*state); /* harmless */
	return 0;
}

static void an_empty_tally(void **state)
{
	struct ow_result r;
	ow_tally_result(*state, &r);
	assert_true(r.sent == 0 && r.received == 0 && r.delay.samples == 0 && r.exact);
}

static void the_result_adds_up(void **state)
{
	struct ow_tally *t = *state;
	for (uint64_t i = 1; i <= 100; i++) {
		ow_tally_match(t, i, (int64_t)i * 10, (int64_t)i * 10 + 5, 2);
		ow_delays_add(t->delays, 5, 2);
	}
	t->lost = 7;
	t->extra = 5;
	t->duplicated = 3;
	t->ambiguous = 1;
	struct ow_result r;
	ow_tally_result(t, &r);
	assert_int_equal(r.matched, 200);
	assert_int_equal(r.sent, 207);
	assert_int_equal(r.received, 205);
	assert_int_equal(r.lost, 7);
	assert_int_equal(r.extra, 5);
	assert_int_equal(r.duplicated, 3);
	assert_int_equal(r.ambiguous, 1);
	assert_int_equal(r.reordered, 0);
	assert_int_equal(r.delay.samples, 200);
	assert_true(r.delay.mean_ns == 5 && r.delay.min_ns == 5 && r.delay.max_ns == 5);
	assert_true(t->first_sent_ns == 10 && t->last_sent_ns == 1000);
	assert_true(t->first_received_ns == 15 && t->last_received_ns == 1005);
}

/* A packet with an unknown position neither is reordered nor makes others reordered. */
static void unplaced_packets_are_in_no_order(void **state)
{
	struct ow_tally *t = *state;
	ow_tally_match(t, 5, 50, 55, 1);
	ow_tally_match(t, OW_TALLY_UNPLACED, 40, 56, 1);
	ow_tally_match(t, 6, 60, 65, 1);
	assert_int_equal(t->reordered, 0);
	assert_int_equal(t->matched, 3);
	assert_int_equal(t->first_sent_ns, 40);
}

/* RFC 4737 section 4.1: sent 1 .. 10, arrived 1 2 3 7 8 9 10 4 5 6: three are reordered. */
static void the_example_of_rfc_4737(void **state)
{
	struct ow_tally *t = *state;
	static const uint64_t order[] = {1, 2, 3, 7, 8, 9, 10, 4, 5, 6};
	for (unsigned i = 0; i < 10; i++)
		ow_tally_match(t, order[i], (int64_t)order[i], 100 + i, 1);
	assert_int_equal(t->reordered, 3);
}

/* Every order of six packets, against the definition: some packet that was sent later came before. */
static void every_order_of_six(void **state)
{
	struct ow_tally *t = *state;
	unsigned digit[6] = {0};
	for (unsigned code = 0; code < 46656; code++) {
		unsigned seen = 0, expected = 0, x = code;
		for (unsigned i = 0; i < 6; i++, x /= 6)
			seen |= 1u << (digit[i] = x % 6);
		if (seen != 63)
			continue;
		ow_tally_reset(t);
		for (unsigned i = 0; i < 6; i++) {
			bool late = false;
			for (unsigned j = 0; j < i; j++)
				late |= digit[j] > digit[i];
			expected += late;
			ow_tally_match(t, digit[i] + 1, digit[i], 10 + i, 1);
		}
		assert_int_equal(t->reordered, expected);
	}
}

/* Segments of one frame have its number: none of them is late for the others. */
static void pieces_of_a_frame_are_in_order(void **state)
{
	struct ow_tally *t = *state;
	for (int i = 0; i < 5; i++)
		ow_tally_match(t, 3, 10, 20 + i, 1);
	assert_int_equal(t->reordered, 0);
	ow_tally_match(t, 2, 9, 30, 4);
	assert_int_equal(t->reordered, 4);
}

static void a_reset_forgets(void **state)
{
	struct ow_tally *t = *state;
	ow_tally_match(t, 9, 10, 20, 1);
	ow_delays_add(t->delays, 10, 1);
	t->lost = t->extra = 1;
	ow_tally_reset(t);
	struct ow_result r;
	ow_tally_result(t, &r);
	assert_true(r.sent == 0 && r.received == 0 && r.delay.samples == 0);
	ow_tally_match(t, 1, 10, 20, 1);
	assert_int_equal(t->reordered, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_empty_tally),          CASE(the_result_adds_up), CASE(unplaced_packets_are_in_no_order),
		CASE(the_example_of_rfc_4737), CASE(every_order_of_six), CASE(pieces_of_a_frame_are_in_order),
		CASE(a_reset_forgets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
