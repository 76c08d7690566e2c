/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane: the commands about a network as a whole. */
#include "cli/plane.h"
#include "cli/cli.h"
#include "cli/parts.h"

#include <stddef.h>

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
