/* SPDX-License-Identifier: Apache-2.0 */
/* The truth against a recomputation from the files, for every kind of traffic, path and file. */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void small(struct ow_sim_options *options, uint64_t seed)
{
	ow_sim_defaults(options);
	options->seed = seed;
	options->packets = 3000;
	options->flows = 50;
	options->size = (struct ow_sim_size){OW_SIM_SIZE_UNIFORM, 100, 1500};
}

static void counts_and_delays(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct ow_sim_options options;
		struct pair pair;
		small(&options, seed);
		options.loss.ratio = 0.05;
		options.duplicate = seed & 1 ? 0.02 : 0;
		options.ipv6 = 0.3;
		options.reverse = seed & 2 ? 0.4 : 0;
		options.in_order = seed & 4;
		pair_make(&options, 0, &pair);
		pair_check(&pair, OW_A_TO_B, 0);
		assert_int_equal(pair.truth.has_direction[OW_B_TO_A], options.reverse > 0);
		if (options.reverse > 0)
			pair_check(&pair, OW_B_TO_A, 0);
		if (options.in_order)
			assert_int_equal(pair.truth.direction[OW_A_TO_B].reordered, 0);
		else
			assert_true(pair.truth.direction[OW_A_TO_B].reordered > 100);
		assert_int_equal(pair.truth.direction[0].sent + pair.truth.direction[1].sent, 3000);
		assert_int_equal(pair.bad_checksums, 0);
		pair_done(&pair);
	}
}

static void the_same_seed_gives_the_same_bytes(void **state)
{
	(void)state;
	struct ow_sim_options options;
	struct pair first;
	small(&options, 42);
	options.loss.ratio = 0.05;
	options.duplicate = 0.02;
	options.reverse = 0.5;
	options.ipv6 = 0.2;
	pair_make(&options, 0, &first);
	struct ow_sim_truth truth;
	struct ow_error err;
	options.side[0].path = "again.a.pcap";
	options.side[1].path = "again.b.pcap";
	assert_int_equal(ow_sim_run(&options, &truth, &err), 0);
	assert_true(same_bytes(first.path[0], "again.a.pcap"));
	assert_true(same_bytes(first.path[1], "again.b.pcap"));
	assert_memory_equal(&truth.direction[0], &first.truth.direction[0], sizeof truth.direction[0]);
	options.seed = 43;
	assert_int_equal(ow_sim_run(&options, &truth, &err), 0);
	assert_false(same_bytes(first.path[0], "again.a.pcap"));
	unlink("again.a.pcap");
	unlink("again.b.pcap");
	pair_done(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_delays),
		cmocka_unit_test(the_same_seed_gives_the_same_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
