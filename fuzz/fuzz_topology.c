/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a network, in each format: refused with an error message, or routers and links within their limits. */
#include "plane/spf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

static void check_network(const struct ow_topology *topology)
{
	uint32_t nodes = ow_topology_nodes(topology), links = 0, parts = 0;
	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t count;
		const struct ow_link *link = ow_topology_from(topology, i, &count);
		check(ow_topology_find(topology, ow_topology_name(topology, i)) == i);
		for (uint32_t n = 0; n < count; n++) {
			check(link[n].from == i && link[n].to < nodes && link[n].to != i);
			check(link[n].cost > 0 && link[n].cost <= OW_COST_MAX);
		}
		links += count;
	}
	check(links == ow_topology_links(topology));
	check(ow_topology_parts(topology, NULL, &parts) == 0 && parts <= nodes);
	struct ow_spf spf;
	if (nodes && ow_spf_run(topology, 0, &spf) == 0) {
		check(spf.reached >= 1 && spf.reached <= nodes && spf.first[nodes] <= links);
		ow_spf_done(&spf);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (enum ow_topology_format format = OW_TOPOLOGY_AUTO; format <= OW_TOPOLOGY_FRR; format++) {
		struct ow_topology *topology = NULL;
		struct ow_error err = {""};
		if (ow_topology_parse(format, "fuzz", (const char *)data, size, 0, &topology, &err) < 0) {
			check(strncmp(err.text, "fuzz:", 5) == 0 && !topology);
		} else {
			check_network(topology);
			ow_topology_free(topology);
		}
	}
	return 0;
}
