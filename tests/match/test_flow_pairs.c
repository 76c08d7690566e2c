/* SPDX-License-Identifier: Apache-2.0 */
/* Which flow of A is which flow of B, behind a NAT. */
#include "match/flow_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct ow_flow_table *table[OW_SIDES];
static struct ow_flow_pairs pairs;

static int set_up(void **state)
{
	(void)state;
	for (unsigned side = 0; side < OW_SIDES; side++)
		assert_int_equal(ow_flow_table_create(7 + side, &table[side]), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ow_flow_pairs_done(&pairs);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_flow_table_free(table[side]);
	return 0;
}

/* The number of the flow between host 1 and host 2 with this port, or of the one back. */
static uint32_t flow(enum ow_side side, uint16_t port, bool back)
{
	struct ow_flow_key key = {.sport = back ? 80 : port, .dport = back ? port : 80, .proto = 6, .version = 4};
	key.src[0] = key.dst[0] = 10;
	key.src[3] = back ? 2 : 1;
	key.dst[3] = back ? 1 : 2;
	return ow_flow_table_number(table[side], &key);
}

static void share(uint32_t a, uint32_t b, unsigned packets)
{
	for (unsigned i = 0; i < packets; i++)
		assert_int_equal(ow_flow_pairs_note(&pairs, a, b), 0);
}

static void learn(void)
{
	const struct ow_flow_table *const keys[OW_SIDES] = {table[OW_SIDE_A], table[OW_SIDE_B]};
	assert_int_equal(ow_flow_pairs_learn(&pairs, keys), 0);
}

static uint32_t name(enum ow_side side, uint32_t number)
{
	return number < pairs.names[side] ? pairs.name[side][number] : 0;
}

static void flows_that_share_packets_are_one(void **state)
{
	(void)state;
	uint32_t a[3], b[3];
	for (uint16_t i = 0; i < 3; i++)
		a[i] = flow(OW_SIDE_A, 1000 + i, false);
	for (uint16_t i = 0; i < 3; i++)
		b[i] = flow(OW_SIDE_B, 5002 - i, false);
	share(a[0], b[2], 100);
	share(a[1], b[1], 1);
	learn();
	assert_true(name(OW_SIDE_A, a[0]) && name(OW_SIDE_A, a[0]) == name(OW_SIDE_B, b[2]));
	assert_true(name(OW_SIDE_A, a[1]) && name(OW_SIDE_A, a[1]) == name(OW_SIDE_B, b[1]));
	assert_int_not_equal(name(OW_SIDE_A, a[0]), name(OW_SIDE_A, a[1]));
	assert_int_not_equal(name(OW_SIDE_A, a[2]), name(OW_SIDE_A, a[0]));
	assert_int_not_equal(name(OW_SIDE_A, a[2]), name(OW_SIDE_A, a[1]));
	assert_int_equal(name(OW_SIDE_B, 12345), 0);
}

/* Two connections with some chance matches stay two; a small flow may be joined to one of them. */
static void chance_does_not_join(void **state)
{
	(void)state;
	uint32_t a0 = flow(OW_SIDE_A, 1, false), a1 = flow(OW_SIDE_A, 2, false), small = flow(OW_SIDE_A, 3, false);
	uint32_t b0 = flow(OW_SIDE_B, 1, false), b1 = flow(OW_SIDE_B, 2, false);
	for (unsigned i = 0; i < 100; i++) {
		share(a0, b0, 1);
		share(a1, b1, 1);
		if (i % 20 == 0) {
			share(a0, b1, 1);
			share(a1, b0, 1);
		}
	}
	share(small, b0, 1);
	share(small, b1, 1);
	learn();
	assert_int_equal(name(OW_SIDE_A, a0), name(OW_SIDE_B, b0));
	assert_int_equal(name(OW_SIDE_A, a1), name(OW_SIDE_B, b1));
	assert_int_not_equal(name(OW_SIDE_A, a0), name(OW_SIDE_A, a1));
}

/* The translator gives the flow another port after a pause: all three are one. */
static void ports_change(void **state)
{
	(void)state;
	uint32_t a = flow(OW_SIDE_A, 1, false), b0 = flow(OW_SIDE_B, 7, false), b1 = flow(OW_SIDE_B, 8, false);
	share(a, b0, 60);
	share(a, b1, 20);
	learn();
	assert_true(name(OW_SIDE_A, a) == name(OW_SIDE_B, b0) && name(OW_SIDE_A, a) == name(OW_SIDE_B, b1));
}

/* Acknowledgements are like others: their flow goes with that of the data. */
static void the_flow_back_goes_along(void **state)
{
	(void)state;
	uint32_t a = flow(OW_SIDE_A, 1, false), b = flow(OW_SIDE_B, 7, false);
	uint32_t back_a = flow(OW_SIDE_A, 1, true), back_b = flow(OW_SIDE_B, 7, true);
	share(a, b, 3);
	learn();
	assert_true(name(OW_SIDE_A, back_a) && name(OW_SIDE_A, back_a) == name(OW_SIDE_B, back_b));
	assert_int_not_equal(name(OW_SIDE_A, back_a), name(OW_SIDE_A, a));
}

/* Polls that are the same both ways meet each other: the flows of one direction belong together nevertheless. */
static void directions_stay_apart(void **state)
{
	(void)state;
	uint32_t a = flow(OW_SIDE_A, 1000, false), a_back = flow(OW_SIDE_A, 1000, true);
	uint32_t b = flow(OW_SIDE_B, 5000, false), b_back = flow(OW_SIDE_B, 5000, true);
	share(a, b_back, 3);
	share(a, b, 2);
	share(a_back, b, 3);
	learn();
	assert_true(name(OW_SIDE_A, a) && name(OW_SIDE_A, a) == name(OW_SIDE_B, b));
	assert_true(name(OW_SIDE_A, a_back) && name(OW_SIDE_A, a_back) == name(OW_SIDE_B, b_back));
	assert_int_not_equal(name(OW_SIDE_A, a), name(OW_SIDE_A, a_back));
}

/* Keep-alives of several hosts to one server, the same both ways, and no other packets: the server's end tells the directions. */
static void a_common_end_joins(void **state)
{
	(void)state;
	uint32_t a = flow(OW_SIDE_A, 1000, false), a_back = flow(OW_SIDE_A, 1000, true);
	uint32_t other = flow(OW_SIDE_A, 1001, false);
	uint32_t b = flow(OW_SIDE_B, 5000, false), b_back = flow(OW_SIDE_B, 5000, true);
	learn();
	assert_true(name(OW_SIDE_A, a) && name(OW_SIDE_A, a) == name(OW_SIDE_B, b));
	assert_true(name(OW_SIDE_A, a_back) && name(OW_SIDE_A, a_back) == name(OW_SIDE_B, b_back));
	assert_int_not_equal(name(OW_SIDE_A, a), name(OW_SIDE_A, a_back));
	assert_int_equal(name(OW_SIDE_A, other), name(OW_SIDE_A, a));
}

/* Nothing joins flows of which both ends are others at the other side. */
static void other_ends_do_not_join(void **state)
{
	(void)state;
	struct ow_flow_key key = {
		.src = {10, 0, 0, 1}, .dst = {10, 0, 0, 2}, .sport = 1, .dport = 2, .proto = 17, .version = 4};
	uint32_t a = ow_flow_table_number(table[OW_SIDE_A], &key);
	key.proto = 6;
	uint32_t tcp = ow_flow_table_number(table[OW_SIDE_B], &key);
	key = (struct ow_flow_key){
		.src = {10, 0, 0, 3}, .dst = {10, 0, 0, 1}, .sport = 2, .dport = 1, .proto = 17, .version = 4};
	uint32_t back = ow_flow_table_number(table[OW_SIDE_B], &key);
	learn();
	assert_int_equal(name(OW_SIDE_A, a), 0);
	assert_int_equal(name(OW_SIDE_B, tcp), 0);
	assert_int_equal(name(OW_SIDE_B, back), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flows_that_share_packets_are_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chance_does_not_join, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ports_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_flow_back_goes_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(directions_stay_apart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_common_end_joins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_ends_do_not_join, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
