/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fleet/fleet_status.h"
#include "report/style.h"

struct ow_json;

/* Returns the number of points with a problem: away, refusing, without a clock, losing packets. */
size_t ow_report_fleet_text(FILE *out, const struct ow_style *style, const struct ow_fleet_status *status);
/* The member "points" of an object. */
size_t ow_report_fleet_points(struct ow_json *json, const struct ow_fleet_status *status);
size_t ow_report_fleet_json(FILE *out, const struct ow_fleet_status *status);
