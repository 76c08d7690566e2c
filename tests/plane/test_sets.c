/* SPDX-License-Identifier: Apache-2.0 */
/* m-sets: the paper's example, and that together they are what splitting all paths leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "plane/sets.h"
#include "plane/turnover.h"
#include "network.h"

static void expect(const struct ow_topology *topology, const char *owner, const bool *is_mrouter, const char *expected)
{
	struct ow_paths *segments;
	assert_int_equal(ow_mset_find(topology, ow_topology_find(topology, owner), is_mrouter, &segments, NULL), 0);
	char all[512] = "";
	for (uint32_t i = 0; i < ow_paths_count(segments); i++) {
		uint32_t nodes;
		const uint16_t *node = ow_paths_get(segments, i, &nodes);
		for (uint32_t k = 0; k < nodes; k++) {
			size_t used = strlen(all);
			snprintf(all + used, sizeof(all) - used, "%s%s",
			         k      ? ">"
			         : used ? " "
			                : "",
			         ow_topology_name(topology, node[k]));
		}
	}
	assert_string_equal(all, expected);
	ow_paths_free(segments);
}

/* Figure 8: M_A = {B, F}, M_C = {F, D, E}, M_F = {A, B, E, D_2} and C, see plane/sets.h. Routers are A B F C D E. */
static void figure_8(void **state)
{
	(void)state;
	struct ow_topology *topology = network_parse(figure_7);
	bool is_mrouter[6] = {false};
	is_mrouter[ow_topology_find(topology, "C")] = true;
	is_mrouter[ow_topology_find(topology, "F")] = true;
	expect(topology, "A", is_mrouter, "A>B A>F");
	expect(topology, "C", is_mrouter, "C>F C>D C>E");
	expect(topology, "F", is_mrouter, "F>A F>B F>C F>E>D F>E");
	ow_topology_free(topology);
}

static void together_they_are_all(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 5);
	for (int run = 0; run < 40; run++) {
		enum { NODES = 14 };
		struct ow_topology *topology = network_random(&random, NODES, 12);
		bool is_mrouter[NODES];
		struct ow_paths *all;
		assert_int_equal(ow_paths_create(NODES, &all), 0);
		assert_int_equal(ow_paths_add_all(all, topology, NULL), 0);
		for (uint32_t i = 0; i < NODES; i++) {
			is_mrouter[i] = ow_random_below(&random, 3) == 0;
			if (is_mrouter[i])
				assert_int_equal(ow_paths_split(all, i), 0);
		}
		struct ow_paths_measure whole, one;
		ow_paths_measure(all, &whole);
		uint64_t segments = 0, hops = 0;
		for (uint32_t i = 0; i < NODES; i++) {
			struct ow_paths *mset;
			assert_int_equal(ow_mset_find(topology, i, is_mrouter, &mset, NULL), 0);
			ow_paths_measure(mset, &one);
			segments += one.paths;
			hops += one.probe_hops;
			ow_paths_free(mset);
		}
		assert_int_equal(segments, whole.paths);
		assert_int_equal(hops, whole.probe_hops);
		ow_paths_free(all);
		ow_topology_free(topology);
	}
}

struct told {
	char text[1024];
};

static void tell(void *arg, enum ow_turnover_event event, const char *segment)
{
	struct told *told = arg;
	size_t used = strlen(told->text);
	snprintf(told->text + used, sizeof(told->text) - used, "%s%c%s", used ? " " : "", "+-^x"[event], segment);
}

/* C - D goes down and comes back; then goes for good. Only F and C are asked. */
static void old_and_new(void **state)
{
	(void)state;
	static const char without[] =
		"A B 3\nB A 3\nA F 2\nF A 2\nB F 2\nF B 2\nF C 2\nC F 2\nF E 4\nE F 4\nE D 1\nD E 1\n"
		"C E 3\nE C 3\n";
	struct ow_topology *all = network_parse(figure_7), *less = network_parse(without);
	bool mask[2][6] = {{false}};
	for (int i = 0; i < 2; i++) {
		mask[i][ow_topology_find(i ? less : all, "C")] = true;
		mask[i][ow_topology_find(i ? less : all, "F")] = true;
	}
	struct ow_turnover *turnover;
	struct told told = {""};
	assert_int_equal(ow_turnover_create(60, &turnover), 0);
	assert_int_equal(ow_turnover_network(turnover, all, mask[0], mask[0], 0, tell, &told, NULL), 0);
	assert_string_equal(told.text, "+C>D +C>E +C>F +F>A +F>B +F>C +F>E +F>E>D");
	told.text[0] = 0;
	assert_int_equal(ow_turnover_network(turnover, less, mask[1], mask[1], 10, tell, &told, NULL), 0);
	assert_string_equal(told.text, "-C>D +C>E>D");
	assert_int_equal(ow_turnover_expire(turnover, 69, tell, &told), 70);
	told.text[0] = 0;
	assert_int_equal(ow_turnover_network(turnover, all, mask[0], mask[0], 69, tell, &told, NULL), 0);
	assert_string_equal(told.text, "^C>D -C>E>D");
	told.text[0] = 0;
	assert_true(ow_turnover_expire(turnover, 129, tell, &told) == INT64_MAX);
	assert_string_equal(told.text, "xC>E>D");
	ow_turnover_free(turnover);
	ow_topology_free(all);
	ow_topology_free(less);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(figure_8), cmocka_unit_test(together_they_are_all),
	                                   cmocka_unit_test(old_and_new)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
