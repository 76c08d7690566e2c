/* SPDX-License-Identifier: Apache-2.0 */
/* Planning, against counts of the paper's algorithm by another program and by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "plane/plan.h"
#include "network.h"

static struct ow_plan_step *plan(const struct ow_topology *topology, enum ow_planner planner, uint32_t *ret_count)
{
	struct ow_plan_options options = {.planner = planner, .steps = UINT32_MAX, .seed = 7};
	struct ow_plan_step *steps = NULL;
	struct ow_error err = {""};
	if (ow_plan(topology, &options, &steps, ret_count, &err) < 0)
		fail_msg("%s", err.text);
	return steps;
}

/* Whoever the planner is: with all routers upgraded one probe a directed link on a shortest path is left. */
static void sprint(void **state)
{
	(void)state;
	struct ow_topology *topology = network_rocketfuel("1239");
	if (!topology)
		skip();
	uint32_t count;
	assert_int_equal(ow_topology_nodes(topology), 315);
	struct ow_plan_step *steps = plan(topology, OW_PLANNER_PAPER, &count);
	assert_int_equal(count, 316);
	assert_int_equal(steps[0].measure.probe_hops, 965384);
	assert_int_equal(steps[45].measure.probe_hops, 5662);
	assert_true(fabs(steps[0].measure.mean - 4.66) < 0.005);
	assert_true(fabs(steps[50].measure.mean - 1.49) < 0.005);
	assert_int_equal(steps[315].measure.max, 1);
	free(steps);
	ow_topology_free(topology);
}

/* What one upgrade saves, as the planner says it before and as it is after. */
static void savings_are_what_happens(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 11);
	for (int run = 0; run < 30; run++) {
		struct ow_topology *topology = network_random(&random, 12, 14);
		struct ow_paths *paths;
		assert_int_equal(ow_paths_create(12, &paths), 0);
		assert_int_equal(ow_paths_add_all(paths, topology, NULL), 0);
		for (int step = 0; step < 12; step++) {
			int64_t savings[12];
			struct ow_paths_measure before, after;
			uint32_t router = (uint32_t)ow_random_below(&random, 12);
			assert_int_equal(ow_paths_savings(paths, savings), 0);
			ow_paths_measure(paths, &before);
			assert_int_equal(ow_paths_split(paths, router), 0);
			ow_paths_measure(paths, &after);
			assert_int_equal((int64_t)before.probe_hops - (int64_t)after.probe_hops, savings[router]);
		}
		ow_paths_free(paths);
		ow_topology_free(topology);
	}
}

static void all_maps(void **state)
{
	(void)state;
	static const char *const as[] = {"1221", "1239", "1755", "3257", "3967", "6461"};
	for (size_t i = 0; i < sizeof(as) / sizeof(*as); i++) {
		struct ow_topology *topology = network_rocketfuel(as[i]);
		if (!topology)
			skip();
		uint32_t count, nodes = ow_topology_nodes(topology);
		uint64_t last = 0;
		for (enum ow_planner planner = OW_PLANNER_PAPER; planner <= OW_PLANNER_RANDOM; planner++) {
			struct ow_plan_step *steps = plan(topology, planner, &count);
			assert_int_equal(count, nodes + 1);
			assert_true(planner == OW_PLANNER_PAPER || steps[nodes].measure.probe_hops == last);
			last = steps[nodes].measure.probe_hops;
			free(steps);
		}
		ow_topology_free(topology);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sprint), cmocka_unit_test(savings_are_what_happens),
	                                   cmocka_unit_test(all_maps)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
