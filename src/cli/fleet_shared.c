/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of oneway fleet share. */
#include "cli/fleet.h"

#include <unistd.h>

const char *ow_cli_fleet_dir(const char *given)
{
	return given ? given : access("settings.yaml", F_OK) == 0 ? "." : "/etc/oneway/fleet";
}
