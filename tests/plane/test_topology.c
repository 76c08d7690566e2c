/* SPDX-License-Identifier: Apache-2.0 */
/* Networks from text, shortest paths against Floyd and Warshall, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "plane/spf.h"
#include "network.h"

static void costs(void **state)
{
	(void)state;
	int64_t cost;
	assert_int_equal(ow_cost_parse("2.5", 3, &cost), 0);
	assert_int_equal(cost, 2500000);
	assert_int_equal(ow_cost_parse("100000000", 9, &cost), 0);
	static const char *const wrong[] = {
		"", ".", "0", "-1", "1e5", "nan", "1.2.3", "100000001", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_true(ow_cost_parse(wrong[i], strlen(wrong[i]), &cost) < 0);
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} some[] = {
		{"A B 1\nB C -2\n", "text:2: \"-2\" is not a weight above 0"},
		{"A B 1\nB C\n", "text:2: expected FROM TO NUMBER; the number is missing"},
		{"A A 1\n", "text:1: a link from A to itself"},
		{"# a comment\n\nA B 1 2\n", "text:3: more than three words"},
		{"A B nan\n", "text:1: \"nan\" is not a weight above 0"},
	};
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		struct ow_topology *topology = NULL;
		struct ow_error err = {""};
		assert_true(ow_topology_parse_rocketfuel("text", some[i].text, strlen(some[i].text), &topology, &err) <
		            0);
		assert_null(topology);
		assert_string_equal(err.text, some[i].says);
	}
}

static void parts_and_links(void **state)
{
	(void)state;
	struct ow_topology *topology = network_parse("A B 2\nB A 2\nA B 1\nC D 1\n");
	uint32_t parts, part[4];
	assert_int_equal(ow_topology_parts(topology, part, &parts), 0);
	assert_int_equal(parts, 2);
	assert_int_equal(part[0], part[1]);
	assert_int_not_equal(part[0], part[2]);
	assert_int_equal(ow_topology_links(topology), 3);
	assert_int_equal(ow_topology_link(topology, 0, 1)->cost, OW_COST_ONE);
	assert_null(ow_topology_link(topology, 3, 2));
	assert_int_equal(ow_topology_find(topology, "E"), UINT32_MAX);
	ow_topology_free(topology);
}

static void shortest(void **state)
{
	(void)state;
	enum { NODES = 20 };
	struct ow_random random;
	ow_random_seed(&random, 3);
	for (int run = 0; run < 20; run++) {
		struct ow_topology *topology = network_random(&random, NODES, 15);
		int64_t cost[NODES][NODES];
		for (uint32_t a = 0; a < NODES; a++) {
			for (uint32_t b = 0; b < NODES; b++) {
				const struct ow_link *link = ow_topology_link(topology, a, b);
				cost[a][b] = a == b ? 0 : link ? link->cost : INT64_MAX / 4;
			}
		}
		for (uint32_t k = 0; k < NODES; k++)
			for (uint32_t a = 0; a < NODES; a++)
				for (uint32_t b = 0; b < NODES; b++)
					if (cost[a][k] + cost[k][b] < cost[a][b])
						cost[a][b] = cost[a][k] + cost[k][b];
		for (uint32_t a = 0; a < NODES; a++) {
			struct ow_spf spf;
			assert_int_equal(ow_spf_run(topology, a, &spf), 0);
			assert_int_equal(spf.reached, NODES);
			for (uint32_t b = 0; b < NODES; b++) {
				assert_int_equal(spf.cost[b], cost[a][b]);
				uint32_t from = 0, to = spf.first[b + 1] - spf.first[b];
				for (uint32_t c = 0; c < NODES; c++) {
					const struct ow_link *link = ow_topology_link(topology, c, b);
					from += link && cost[a][c] + link->cost == cost[a][b];
				}
				assert_int_equal(from, to);
			}
			ow_spf_done(&spf);
		}
		ow_topology_free(topology);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(costs), cmocka_unit_test(refused),
	                                   cmocka_unit_test(parts_and_links), cmocka_unit_test(shortest)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
