/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/control.h"

/* The points of a fleet: as the fleet knows them, and as they say they are. */
struct ow_fleet_status {
	struct ow_fleet_point *point; /* by name; also those that are to measure and were never enrolled */
	size_t count, room;
	struct ow_healths healths;
	uint64_t *desired; /* for each point, the version it should have; 0 = none */
	int64_t now_ns;
};

/*
 * Reads the folder of the fleet, and the last health of each point from the bus, as one of the services: "controller",
 * or "station", which cannot change anything.
 */
int ow_fleet_status_read(const char *dir, const char *service, struct ow_fleet_status *ret_status,
                         struct ow_error *err);
void ow_fleet_status_done(struct ow_fleet_status *status);
