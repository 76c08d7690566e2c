/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/topology.h"

/* Declarations that the parts of `oneway plane` have in common. Each part has a file; argv[0] is its name. */
int ow_cli_plane_monitor(int argc, char **argv);
int ow_cli_plane_plan(int argc, char **argv);
int ow_cli_plane_probe(int argc, char **argv);
int ow_cli_plane_reflect(int argc, char **argv);
int ow_cli_plane_sets(int argc, char **argv);

/* The field is an int64_t in units of 1 / OW_COST_ONE. */
int ow_option_cost(void *field, const char *value, struct ow_error *err);
/* Prints a warning if the network has parts without a path between them. */
int ow_plane_warn_parts(const char *command, const struct ow_topology *topology);
