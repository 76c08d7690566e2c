/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane: the commands about a network as a whole, and what they have in common. */
#include "cli/plane.h"
#include "cli/cli.h"
#include "cli/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ow_cli_plane(int argc, char **argv)
{
	static const struct ow_cli_part parts[] = {
		{"plan", "which routers to upgrade first, and how many probes that saves", ow_cli_plane_plan},
		{"monitor", "paths from the results of segments, and which segment is to blame", ow_cli_plane_monitor},
		{"probe", "delay and loss to reflectors by probes, without passive points", ow_cli_plane_probe},
		{"reflect", "answers probes (STAMP, TWAMP Light)", ow_cli_plane_reflect},
		{"sets", "what each node of the network must watch", ow_cli_plane_sets},
		{NULL, NULL, NULL},
	};
	return ow_cli_parts("plane",
	                    "A network as a whole: where to measure, what each place must watch, where the\n"
	                    "delay is.\n",
	                    parts, argc, argv);
}

int ow_option_cost(void *field, const char *value, struct ow_error *err)
{
	if (ow_cost_parse(value, strlen(value), field) < 0)
		return ow_error_set(err, EINVAL, "'%.40s' is not a cost above 0", value);
	return 0;
}

int ow_plane_warn_parts(const char *command, const struct ow_topology *topology)
{
	uint32_t parts_found;
	if (ow_topology_parts(topology, NULL, &parts_found) < 0)
		return -ENOMEM;
	if (parts_found > 1)
		ow_cli_say("oneway %s: warning: the network falls into %u parts; routers of different parts have no "
		           "path",
		           command, parts_found);
	return 0;
}
