/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

struct ow_fleet_init {
	const char *name;
	const char *servers;  /* "host", "host:port,host:port" */
	const char *address;  /* of `oneway fleet serve`: "host", "host:port"; NULL = the first server */
	const char *database; /* postgresql://...; NULL = none */
	int64_t valid_ns;     /* of the certificates of points */
};

/* Makes the folder of a fleet: all of it or nothing. -EEXIST if there is anything at this path. */
int ow_fleet_init(const char *path, const struct ow_fleet_init *how, struct ow_error *err);
