/* SPDX-License-Identifier: Apache-2.0 */
/* Where packets were seen and lost, from the events of pairs of points. */
#include "path/join.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000000)

/* Three points: [0] both ends, [1] and [2] neighbours. */
enum { ENDS, FIRST, SECOND_HOP };

struct told {
	unsigned packets;
	struct ow_path_packet last;
};

static int on_packet(void *arg, const struct ow_path_packet *packet)
{
	struct told *told = arg;
	told->packets++;
	told->last = *packet;
	return 0;
}

static struct ow_path_join *create(struct told *told)
{
	struct ow_path_join *join;
	struct ow_path_join_options options = {.points = 3,
	                                       .pairs = 3,
	                                       .pair = {{0, 2}, {0, 1}, {1, 2}},
	                                       .wait_ns = 4 * SECOND,
	                                       .edge_ns = {SECOND},
	                                       .edges = 1,
	                                       .seed = 7,
	                                       .on_packet = told ? on_packet : NULL,
	                                       .arg = told};
	assert_int_equal(ow_path_join_create(&options, &join), 0);
	return join;
}

static void add(struct ow_path_join *join, unsigned pair, enum ow_fate fate, uint64_t a, uint64_t b, int64_t time_ns,
                unsigned flow)
{
	struct ow_path_event event = {.number = {a, b},
	                              .time_ns = {time_ns, time_ns},
	                              .packets = 1,
	                              .fate = (uint8_t)fate,
	                              .direction = fate == OW_FATE_UNCLASSIFIED ? OW_DIRECTIONS : OW_A_TO_B,
	                              .side = a ? OW_SIDE_A : OW_SIDE_B,
	                              .flow = {.proto = 17, .version = 4, .sport = (uint16_t)flow}};
	assert_int_equal(ow_path_join_add(join, pair, &event), 0);
}

static struct ow_path_join_result finish(struct ow_path_join *join)
{
	struct ow_path_join_result result;
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(ow_path_join_end(join, k, true), 0);
	assert_int_equal(ow_path_join_finish(join, &result), 0);
	ow_path_join_free(join);
	return result;
}

/* A packet that passes all points. */
static void add_whole(struct ow_path_join *join, uint64_t a, uint64_t m, uint64_t b, int64_t time_ns, unsigned flow)
{
	add(join, SECOND_HOP, OW_FATE_MATCHED, m, b, time_ns, flow);
	add(join, FIRST, OW_FATE_MATCHED, a, m, time_ns, flow);
	add(join, ENDS, OW_FATE_MATCHED, a, b, time_ns, flow);
}

/* Whatever the order of the pairs, it is one packet, which is judged and forgotten when all have reported it. */
static void test_one_packet_in_any_order(void **state)
{
	static const unsigned order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct told told = {0};
		struct ow_path_join *join = create(&told);
		for (unsigned k = 0; k < 3; k++) {
			assert_int_equal(told.packets, 0);
			switch (order[i][k]) {
			case ENDS:
				add(join, ENDS, OW_FATE_MATCHED, 5, 7, SECOND, 1);
				break;
			case FIRST:
				add(join, FIRST, OW_FATE_MATCHED, 5, 6, SECOND, 1);
				break;
			default:
				add(join, SECOND_HOP, OW_FATE_MATCHED, 6, 7, SECOND, 1);
			}
		}
		assert_int_equal(told.packets, 1);
		assert_int_equal(told.last.seen, 7);
		assert_int_equal(told.last.number[1], 6);
		assert_int_equal(told.last.fate, OW_FATE_MATCHED);
		struct ow_path_join_result result = finish(join);
		assert_int_equal(result.around[OW_A_TO_B][1], 0);
		assert_true(result.most <= 2);
	}
}

static void test_lost_on_each_hop(void **state)
{
	(void)state;
	struct ow_path_join *join = create(NULL);
	add(join, ENDS, OW_FATE_LOST, 1, 0, SECOND, 1);
	add(join, FIRST, OW_FATE_LOST, 1, 0, SECOND, 1);
	add(join, FIRST, OW_FATE_MATCHED, 2, 1, SECOND, 1);
	add(join, SECOND_HOP, OW_FATE_LOST, 1, 0, SECOND, 1);
	add(join, ENDS, OW_FATE_LOST, 2, 0, SECOND, 1);
	struct ow_path_join_result result = finish(join);
	assert_int_equal(result.lost_at[OW_A_TO_B][0][1], 1);
	assert_int_equal(result.lost_at[OW_A_TO_B][1][2], 1);
	assert_int_equal(result.lost_unknown[OW_A_TO_B], 0);
	assert_int_equal(result.correction[FIRST][OW_A_TO_B].around_to, 0);
}

/* A packet that the middle does not show, but the end, is not lost there. */
static void add_around(struct ow_path_join *join, uint64_t a, uint64_t b, unsigned flow)
{
	add(join, FIRST, OW_FATE_LOST, a, 0, SECOND, flow);
	add(join, SECOND_HOP, OW_FATE_EXTRA, 0, b, SECOND, flow);
	add(join, ENDS, OW_FATE_MATCHED, a, b, SECOND, flow);
}

static void test_unseen_in_the_middle(void **state)
{
	(void)state;
	struct ow_path_join *join = create(NULL);
	add_around(join, 1, 1, 1);
	/* Of the same flow: lost before the middle, or behind it. Of another one, which the middle shows: before it. */
	add(join, FIRST, OW_FATE_LOST, 2, 0, SECOND, 1);
	add(join, ENDS, OW_FATE_LOST, 2, 0, SECOND, 1);
	add_whole(join, 3, 1, 2, SECOND, 2);
	add(join, FIRST, OW_FATE_LOST, 4, 0, SECOND, 2);
	add(join, ENDS, OW_FATE_LOST, 4, 0, SECOND, 2);
	struct ow_path_join_result result = finish(join);
	assert_int_equal(result.around[OW_A_TO_B][1], 1);
	assert_int_equal(result.correction[FIRST][OW_A_TO_B].around_to, 1);
	assert_int_equal(result.correction[SECOND_HOP][OW_A_TO_B].around_from, 1);
	assert_int_equal(result.correction[FIRST][OW_A_TO_B].undecided, 1);
	assert_int_equal(result.lost_at[OW_A_TO_B][0][2], 1);
	assert_int_equal(result.lost_at[OW_A_TO_B][0][1], 1);
}

/* One in 200 that the middle misses: a capture that drops packets. Losses are still before it. */
static void test_middle_that_drops_a_few(void **state)
{
	(void)state;
	struct ow_path_join *join = create(NULL);
	for (uint64_t i = 1; i < 200; i++)
		add_whole(join, i, i, i, SECOND, 1);
	add_around(join, 200, 200, 1);
	add(join, FIRST, OW_FATE_LOST, 201, 0, SECOND, 1);
	add(join, ENDS, OW_FATE_LOST, 201, 0, SECOND, 1);
	struct ow_path_join_result result = finish(join);
	assert_int_equal(result.around[OW_A_TO_B][1], 1);
	assert_int_equal(result.lost_at[OW_A_TO_B][0][1], 1);
	assert_int_equal(result.correction[FIRST][OW_A_TO_B].undecided, 0);
}

/* The middle never shows the flow, or did not capture at that time. */
static void test_middle_that_cannot_tell(void **state)
{
	static const enum ow_fate fate[] = {OW_FATE_UNCLASSIFIED, OW_FATE_OUTSIDE};
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct ow_path_join *join = create(NULL);
		add(join, FIRST, fate[i], 1, 0, SECOND, 1);
		add(join, ENDS, OW_FATE_LOST, 1, 0, SECOND, 1);
		add(join, FIRST, fate[i], 2, 0, SECOND, 1);
		add(join, SECOND_HOP, fate[i], 0, 1, SECOND, 1);
		add(join, ENDS, OW_FATE_MATCHED, 2, 1, SECOND, 1);
		struct ow_path_join_result result = finish(join);
		assert_int_equal(result.lost_at[OW_A_TO_B][0][2], 1);
		assert_int_equal(result.around[OW_A_TO_B][1], i == 0);
		assert_int_equal(result.correction[FIRST][OW_A_TO_B].around_to, 0);
	}
}

/* Pairs that do not agree about identical packets: it is not known where one was lost. */
static void test_pairs_that_disagree(void **state)
{
	(void)state;
	struct ow_path_join *join = create(NULL);
	add(join, FIRST, OW_FATE_MATCHED, 1, 1, SECOND, 1);
	add(join, SECOND_HOP, OW_FATE_MATCHED, 1, 1, SECOND, 1);
	add(join, ENDS, OW_FATE_LOST, 1, 0, SECOND, 1);
	add(join, FIRST, OW_FATE_LOST, 2, 0, SECOND, 1);
	add(join, ENDS, OW_FATE_MATCHED, 2, 1, SECOND, 1);
	struct ow_path_join_result result = finish(join);
	assert_int_equal(result.lost_unknown[OW_A_TO_B], 1);
	assert_int_equal(result.correction[FIRST][OW_A_TO_B].around_to, 0);
}

/* Packets that one pair leaves out do not stay for ever. */
static void test_memory(void **state)
{
	(void)state;
	struct told told = {0};
	struct ow_path_join *join = create(&told);
	for (uint64_t i = 1; i <= 20000; i++) {
		int64_t time_ns = (int64_t)i * SECOND / 100;
		add(join, FIRST, OW_FATE_MATCHED, i, i, time_ns, 1);
		add(join, SECOND_HOP, OW_FATE_MATCHED, i, i, time_ns, 1);
		if (i % 10 == 0)
			add(join, ENDS, OW_FATE_MATCHED, i, i, time_ns, 1);
	}
	struct ow_path_join_result result = finish(join);
	assert_int_equal(told.packets, 20000);
	/* Of the first 4 s, and of the last 5. */
	assert_true(result.most < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_packet_in_any_order),
		cmocka_unit_test(test_lost_on_each_hop),
		cmocka_unit_test(test_unseen_in_the_middle),
		cmocka_unit_test(test_middle_that_drops_a_few),
		cmocka_unit_test(test_middle_that_cannot_tell),
		cmocka_unit_test(test_pairs_that_disagree),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
