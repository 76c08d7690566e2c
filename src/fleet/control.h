/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/bus.h"
#include "fleet/folder.h"
#include "fleet/health.h"

/* A connection to the bus of a fleet as one of its services, and what is known of its points. */

/* service: "controller", "collector", "station". */
int ow_control_open(const struct ow_fleet *fleet, const char *service, struct ow_bus **ret_bus, struct ow_error *err);
/* The streams of the fleet: makes those that do not exist. */
int ow_control_setup(const struct ow_fleet *fleet, struct ow_bus *bus, struct ow_error *err);

/* The last health of each point, by name. */
struct ow_healths {
	struct ow_health *health;
	size_t count, room;
	size_t damaged; /* messages that are none */
};
void ow_healths_done(struct ow_healths *healths);
const struct ow_health *ow_healths_find(const struct ow_healths *healths, const char *point);
/* Reads all of them, as the controller. */
int ow_healths_read(struct ow_healths *healths, struct ow_bus *bus, struct ow_error *err);
/* Reads those of these points, by questions that any service may ask. */
int ow_healths_get(struct ow_healths *healths, struct ow_bus *bus, const struct ow_fleet_point *points, size_t count,
                   struct ow_error *err);
/* Whether the bus got a report of the point in the last half minute; an agent also sends what is old. */
bool ow_health_is_heard(const struct ow_health *health, int64_t now_ns);
/* Whether it did, and the point wrote the report in that time. */
bool ow_health_is_fresh(const struct ow_health *health, int64_t now_ns);
#define OW_HEALTH_FRESH_S 30
