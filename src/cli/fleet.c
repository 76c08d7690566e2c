/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet: many points, led from one place. */
#include "cli/fleet.h"
#include "cli/parts.h"

#include <stddef.h>

int ow_cli_fleet(int argc, char **argv)
{
	static const struct ow_cli_part parts[] = {
		{"init", "makes the folder of a fleet: authority, servers of the bus, units", ow_cli_fleet_init},
		{"serve", "gives points their certificates, and renews them", ow_cli_fleet_serve},
		{"enroll", "lets a point join: prints the three lines that it needs", ow_cli_fleet_enroll},
		{"apply", "what the points measure: shows the difference, and brings it to them", ow_cli_fleet_apply},
		{"status", "who is there, and how they are", ow_cli_fleet_status},
		{"revoke", "puts a point out, within seconds", ow_cli_fleet_revoke},
		{"follow", "on another host of the bus: keeps its list of users up to date", ow_cli_fleet_follow},
		{"map", "draws the network that packets show, from samples or captures", ow_cli_fleet_map},
		{"load", "made-up points, to try a bus, collectors and a database", ow_cli_fleet_load},
		{NULL, NULL, NULL},
	};
	return ow_cli_parts("fleet",
	                    "Many points, led from one place: who they are, what they measure, how they are.\n"
	                    "docs/fleet.md goes from nothing to a fleet of three hosts.\n",
	                    parts, argc, argv);
}
