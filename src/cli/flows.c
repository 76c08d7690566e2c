/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows PART: per-flow latency. Each part has its own file. */
#include "cli/flows.h"

#include "cli/cli.h"
#include "cli/parts.h"
#include <stddef.h>

int ow_cli_flows(int argc, char **argv)
{
	static const struct ow_cli_part parts[] = {
		{"record", "records the times of a capture's packets in counters that flows share",
	         ow_cli_flows_record},
		{"query", "estimates the delay of flows between the recordings of two points", ow_cli_flows_query},
		{"list", "shows what a file of epochs contains", ow_cli_flows_list},
		{"size", "computes the size of a COLATE recording from its paper's equations", ow_cli_flows_size},
		{NULL, NULL, NULL},
	};
	return ow_cli_parts("flows",
	                    "Estimates how long the packets of each flow took, from far less data than a time\n"
	                    "for each packet. Every point records on its own; any two recordings can be\n"
	                    "compared later.\n",
	                    parts, argc, argv);
}
