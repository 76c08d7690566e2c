/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/keys.h"
#include "discovery/point_map.h"
#include "exchange/session.h"

/*
 * fleet.yaml: points, groups of points, classes and segments; and the desired state of each point that follows from it.
 * The keys of points and segments are those of a point's own configuration (config/config.h), by the same tables.
 */
#define OW_FLEET_PLAN_POINTS_MAX   4096
#define OW_FLEET_PLAN_SEGMENTS_MAX 4096

struct ow_fleet_plan_options {
	const char *sample_key; /* by which all points sample, unless the file says otherwise; or NULL */
	const struct ow_discovered_segment *found; /* for `segments: discover` */
	size_t found_count;
};

struct ow_fleet_plan_point {
	char name[OW_POINT_NAME];
	char *body; /* of its desired state: keys of a configuration */
};

struct ow_fleet_plan {
	double canary;   /* share of the points that get a change first */
	int64_t wait_ns; /* for their reports */
	bool discover;   /* segments are found, not given */
	struct ow_fleet_plan_point *points;
	unsigned count;
	char *notes; /* lines about what may not be meant; or NULL */
};

extern const struct ow_key ow_fleet_plan_keys[], ow_fleet_plan_point_keys[], ow_fleet_plan_segment_keys[];

/* Reads fleet.yaml and makes the desired state of each of its points. Each is checked as the point will check it. */
int ow_fleet_plan_make(const char *path, const char *bytes, size_t size, const struct ow_fleet_plan_options *options,
                       struct ow_fleet_plan **ret_plan, struct ow_error *err);
void ow_fleet_plan_free(struct ow_fleet_plan *plan);
