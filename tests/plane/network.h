/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "plane/topology.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Networks to try things on. For files with cmocka's headers. */

/* Figure 7 of the paper shows costs that the text does not tell; these lead to the m-sets of figure 8. */
static const char figure_7[] = "A B 3\nB A 3\nA F 2\nF A 2\nB F 2\nF B 2\nF C 2\nC F 2\nC D 3\nD C 3\nF E 4\nE F 4\n"
			       "E D 1\nD E 1\nC E 3\nE C 3\n";

static inline struct ow_topology *network_parse(const char *text)
{
	struct ow_topology *topology = NULL;
	struct ow_error err = {""};
	if (ow_topology_parse_rocketfuel("text", text, strlen(text), &topology, &err) < 0)
		fail_msg("%s", err.text);
	return topology;
}

/* A connected network with small costs, so that many are equal. */
static inline struct ow_topology *network_random(struct ow_random *random, uint32_t nodes, uint32_t more_links)
{
	struct ow_topology *topology;
	assert_int_equal(ow_topology_create(&topology), 0);
	for (uint32_t i = 0; i < nodes + more_links; i++) {
		uint32_t a, b;
		char name[16];
		snprintf(name, sizeof(name), "r%u", i < nodes ? i : (uint32_t)ow_random_below(random, nodes));
		assert_int_equal(ow_topology_add_node(topology, name, strlen(name), &a, NULL), 0);
		b = (uint32_t)ow_random_below(random, i < nodes ? i + (i == 0) : nodes);
		if (a == b)
			continue;
		int64_t cost = (int64_t)(1 + ow_random_below(random, 3)) * OW_COST_ONE;
		assert_int_equal(ow_topology_add_link(topology, &(struct ow_link){a, b, cost, NAN}, NULL), 0);
		assert_int_equal(ow_topology_add_link(topology, &(struct ow_link){b, a, cost, NAN}, NULL), 0);
	}
	assert_int_equal(ow_topology_finish(topology), 0);
	return topology;
}

/* One of the Rocketfuel maps, or NULL with a line when they are not there. */
static inline struct ow_topology *network_rocketfuel(const char *as)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/topologies/rocketfuel-%s.weights.intra", OW_SHARED, as);
	FILE *file = fopen(path, "r");
	if (!file) {
		print_message("skipped: no Rocketfuel maps beside this checkout\n");
		return NULL;
	}
	static char text[1 << 20];
	size_t size = fread(text, 1, sizeof(text), file);
	fclose(file);
	struct ow_topology *topology = NULL;
	struct ow_error err = {""};
	if (ow_topology_parse_rocketfuel(path, text, size, &topology, &err) < 0)
		fail_msg("%s", err.text);
	return topology;
}
