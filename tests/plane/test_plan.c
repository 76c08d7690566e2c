/* SPDX-License-Identifier: Apache-2.0 */
/* Planning, compared with counts of the paper's algorithm by another program and by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "../effort.h"
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

/* For any planner: with all routers upgraded one probe for each directed link on a shortest path is left. */
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
	for (int run = 0; run < RUN_COUNT(30); run++) {
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

/* A plan compared with Algorithm 1's: at how many steps it has fewer probe hops, as many, more, and by what ratio. */
struct versus {
	uint32_t better, equal, worse;
	double most, mean;
};

static struct versus compare(const struct ow_plan_step *steps, const struct ow_plan_step *paper, uint32_t count)
{
	struct versus v = {0};
	for (uint32_t i = 0; i < count; i++) {
		uint64_t ours = steps[i].measure.probe_hops, theirs = paper[i].measure.probe_hops;
		double ratio = theirs ? (double)ours / (double)theirs : 1;
		v.better += ours < theirs;
		v.equal += ours == theirs;
		v.worse += ours > theirs;
		v.most = fmax(v.most, ratio);
		v.mean += ratio / count;
	}
	return v;
}

/* Every router once. */
static void check_order(const struct ow_plan_step *steps, uint32_t nodes)
{
	bool *seen = calloc(nodes, sizeof(*seen));
	assert_non_null(seen);
	for (uint32_t i = 1; i <= nodes; i++) {
		assert_true(steps[i].router < nodes && !seen[steps[i].router]);
		seen[steps[i].router] = true;
		assert_true(steps[i].measure.probe_hops <= steps[i - 1].measure.probe_hops);
	}
	free(seen);
}

static void check_planners(const char *name, const struct ow_topology *topology)
{
	static const char *const planner_name[OW_PLANNERS] = {"paper", "beam", "greedy", "random"};
	uint32_t count, nodes = ow_topology_nodes(topology);
	struct ow_plan_step *paper = plan(topology, OW_PLANNER_PAPER, &count);
	for (enum ow_planner planner = OW_PLANNER_BEAM; planner < OW_PLANNERS; planner++) {
		/* Random orders keep many paths for long: slow on large maps. */
		if (planner == OW_PLANNER_RANDOM && nodes > 200)
			continue;
		struct ow_plan_step *steps = plan(topology, planner, &count);
		assert_int_equal(count, nodes + 1);
		check_order(steps, nodes);
		assert_int_equal(steps[nodes].measure.probe_hops, paper[nodes].measure.probe_hops);
		struct versus v = compare(steps, paper, count);
		if (name)
			print_message("AS %s, %u routers, %s: %u steps better, %u equal, %u worse; ratio at most %.3f, "
			              "mean %.4f\n",
			              name, nodes, planner_name[planner], v.better, v.equal, v.worse, v.most, v.mean);
		if (planner == OW_PLANNER_BEAM) {
			assert_int_equal(v.worse, 0);
			assert_true(!name || v.better > 0);
		}
		free(steps);
	}
	free(paper);
}

static void all_maps(void **state)
{
	(void)state;
	static const char *const as[] = {"1221", "1239", "1755", "3257", "3967", "6461"};
	for (size_t i = 0; i < sizeof(as) / sizeof(*as); i++) {
		struct ow_topology *topology = network_rocketfuel(as[i]);
		if (!topology)
			skip();
		check_planners(as[i], topology);
		ow_topology_free(topology);
	}
}

static void random_networks(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 12);
	for (int run = 0; run < RUN_COUNT(40); run++) {
		struct ow_topology *topology = network_random(&random, 16, 20);
		check_planners(NULL, topology);
		ow_topology_free(topology);
	}
}

/* Some routers are upgraded before, and not all of the others are wanted. */
static void beam_goes_on(void **state)
{
	(void)state;
	struct ow_topology *topology = network_parse(figure_7);
	const uint32_t upgraded[] = {ow_topology_find(topology, "F"), ow_topology_find(topology, "C")};
	for (uint32_t wanted = 0; wanted <= 6; wanted++) {
		struct ow_plan_options options = {
			.planner = OW_PLANNER_BEAM, .steps = wanted, .upgraded = upgraded, .upgrades = 2};
		struct ow_plan_step *steps;
		uint32_t count;
		assert_int_equal(ow_plan(topology, &options, &steps, &count, NULL), 0);
		assert_int_equal(count, 1 + (wanted < 4 ? wanted : 4));
		for (uint32_t i = 1; i < count; i++)
			assert_true(steps[i].router != upgraded[0] && steps[i].router != upgraded[1]);
		free(steps);
	}
	ow_topology_free(topology);
}

/* The order of lines in a file decides nothing. */
static void order_of_the_file(void **state)
{
	(void)state;
	struct ow_topology *one = network_parse("A B 1\nB A 1\nB C 1\nC B 1\nC D 1\nD C 1\nA D 1\nD A 1\n");
	struct ow_topology *other = network_parse("D A 1\nA D 1\nC D 1\nD C 1\nB C 1\nC B 1\nB A 1\nA B 1\n");
	for (enum ow_planner planner = OW_PLANNER_PAPER; planner < OW_PLANNER_RANDOM; planner++) {
		uint32_t count;
		struct ow_plan_step *a = plan(one, planner, &count), *b = plan(other, planner, &count);
		for (uint32_t i = 1; i < count; i++)
			assert_string_equal(ow_topology_name(one, a[i].router), ow_topology_name(other, b[i].router));
		free(a);
		free(b);
	}
	ow_topology_free(one);
	ow_topology_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sprint),       cmocka_unit_test(savings_are_what_happens),
		cmocka_unit_test(all_maps),     cmocka_unit_test(random_networks),
		cmocka_unit_test(beam_goes_on), cmocka_unit_test(order_of_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
