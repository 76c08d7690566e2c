/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with TSO and GRO: the truth counts wire segments, with the times that the frames show. */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#define MSS (1500 - 52)

static void options_for(struct ow_sim_options *options, uint64_t seed, unsigned sides)
{
	ow_sim_defaults(options);
	options->seed = seed;
	options->packets = 20000;
	options->flows = 40;
	options->size = (struct ow_sim_size){OW_SIM_SIZE_UNIFORM, 100, 1500};
	options->side[0].superframes = sides & 1;
	options->side[1].superframes = sides & 2;
}

static void either_side_and_both(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 24; i++) {
		struct ow_sim_options options;
		struct pair pair;
		unsigned sides = 1 + i % 3;
		options_for(&options, i, sides);
		options.in_order = i & 4;
		options.loss.ratio = i & 8 ? 0.01 : 0;
		options.duplicate = i & 8 ? 0.01 : 0;
		options.reverse = i >= 16 ? 0.4 : 0;
		options.router = i & 1;
		options.ecn_mark = i == 5 ? 0.1 : 0;
		options.side[1].microseconds = i == 7;
		pair_make(&options, MSS, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		if (options.reverse > 0)
			pair_check(&pair, OW_B_TO_A, 0);
		assert_int_equal(pair.bad_checksums, 0);
		assert_int_equal(pair.truth.direction[0].sent + pair.truth.direction[1].sent, 20000);
		for (int side = 0; side < OW_SIDES; side++) {
			if (!options.side[side].superframes)
				assert_int_equal(pair.truth.superframes[side], 0);
			else if (options.in_order || (options.reverse > 0) || side == OW_SIDE_A)
				assert_true(pair.truth.superframes[side] > 50);
		}
		pair_done(&pair);
	}
}

/* At constant delay GRO rebuilds what TSO took apart. */
static void gro_undoes_tso(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	options_for(&options, 3, 3);
	assert_int_equal(ow_sim_delay_parse("constant:100us", &options.delay, NULL), 0);
	options.rate_pps = 10000;
	pair_make(&options, MSS, &pair);
	pair_check(&pair, OW_A_TO_B, 0);
	assert_int_equal(pair.records[0], pair.records[1]);
	assert_int_equal(pair.truth.superframes[0], pair.truth.superframes[1]);
	/* The frame's time at B is its last segment's: 100 us plus up to 44 times 1.2 us. */
	assert_int_equal(pair.truth.direction[0].delay.min_ns, 100000);
	assert_in_range(pair.truth.direction[0].delay.max_ns, 140000, 100000 + 45 * 1200);
	pair_done(&pair);
}

static void beyond_64_kb_the_ip_length_is_zero(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	options_for(&options, 4, 1);
	options.superframe_bytes = 180000;
	options.ipv6 = 0.5;
	pair_make(&options, 0, &pair);
	assert_true(pair.truth.superframes[0] > 50);
	assert_int_equal(pair.truth.direction[0].matched, 20000);
	assert_int_equal(pair.bad_checksums, 0);
	pair_done(&pair);
}

static void records_are_in_the_order_of_time(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair pair;
	options_for(&options, 5, 3);
	options.reverse = 0.5;
	options.rate_pps = 500000;
	pair_make(&options, MSS, &pair);
	for (int side = 0; side < OW_SIDES; side++) {
		for (size_t i = 1; i < pair.count[side]; i++)
			assert_true(pair.seen[side][i].time_ns >= pair.seen[side][i - 1].time_ns);
	}
	pair_done(&pair);
}

static void the_same_bytes_again(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair first;
	options_for(&options, 6, 3);
	options.packets = 5000;
	options.reverse = 0.5;
	pair_make(&options, MSS, &first);
	struct ow_sim_truth truth;
	struct ow_error err;
	options.side[0].path = "super.a.pcap";
	options.side[1].path = "super.b.pcap";
	assert_int_equal(ow_sim_run(&options, &truth, &err), 0);
	assert_true(same_bytes(first.path[0], "super.a.pcap"));
	assert_true(same_bytes(first.path[1], "super.b.pcap"));
	unlink("super.a.pcap");
	unlink("super.b.pcap");
	pair_done(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_side_and_both),
		cmocka_unit_test(gro_undoes_tso),
		cmocka_unit_test(beyond_64_kb_the_ip_length_is_zero),
		cmocka_unit_test(records_are_in_the_order_of_time),
		cmocka_unit_test(the_same_bytes_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
