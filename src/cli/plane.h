/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CLI_PLANE_H
#define OW_CLI_PLANE_H

#include "plane/topology.h"

/* What the parts of `oneway plane` share. Each part has a file; argv[0] is its name. */
int ow_cli_plane_monitor(int argc, char **argv);
int ow_cli_plane_plan(int argc, char **argv);
int ow_cli_plane_probe(int argc, char **argv);
int ow_cli_plane_reflect(int argc, char **argv);
int ow_cli_plane_sets(int argc, char **argv);

/* Reads a network in any format; "-" is standard input. default_cost: of links without one, 0 = they are an error. */
int ow_plane_read(const char *path, int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err);
/* int64_t in 1 / OW_COST_ONE */
int ow_option_cost(void *field, const char *value, struct ow_error *err);
/* The routers in a list of names with commas between. The error names one that the network does not have, and what is
 * near. ret_nodes: to be freed by the caller. */
int ow_plane_routers(const struct ow_topology *topology, const char *list, uint32_t **ret_nodes, uint32_t *ret_count,
                     struct ow_error *err);
/* A line on standard error for what a plan cannot mend: parts without a path between them. */
int ow_plane_warn_parts(const char *command, const struct ow_topology *topology);

#endif
