/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of oneway plane share. */
#include "cli/plane.h"

#include "cli/cli.h"
#include <errno.h>
#include <string.h>

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
