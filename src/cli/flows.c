/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows PART: per-flow latency. Each part has its own file. */
#include "cli/flows.h"

#include "cli/cli.h"
#include "cli/parts.h"
#include <stddef.h>

int ow_cli_flows(int argc, char **argv)
{
	static const struct ow_cli_part parts[] = {
		{"record", "the times of a capture's packets, in counters that all flows share", ow_cli_flows_record},
		{"query", "how long the packets of flows took between recordings of two points", ow_cli_flows_query},
		{"list", "what a file of epochs holds", ow_cli_flows_list},
		{"size", "how large a COLATE recording has to be, by its paper's equations", ow_cli_flows_size},
		{NULL, NULL, NULL},
	};
	return ow_cli_parts("flows",
	                    "How long the packets of each flow took, from far less than a time for each\n"
	                    "packet: every point records by itself, and any two recordings can be asked\n"
	                    "later.\n",
	                    parts, argc, argv);
}
