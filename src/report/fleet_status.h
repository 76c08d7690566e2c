/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/control.h"
#include "report/style.h"

/* The points of a fleet: as the fleet knows them, and as they say they are. */
struct ow_fleet_status {
	const struct ow_fleet_point *point; /* by name */
	size_t count;
	const struct ow_healths *healths;
	uint64_t *desired; /* for each point, the version it should have; 0 = none */
	int64_t now_ns;
};

/* Returns the number of points with a problem: away, refusing, without a clock, losing packets. */
size_t ow_report_fleet_text(FILE *out, const struct ow_style *style, const struct ow_fleet_status *status);
size_t ow_report_fleet_json(FILE *out, const struct ow_fleet_status *status);
