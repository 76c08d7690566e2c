/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "plane/plan.h"
#include "report/style.h"
#include <stdio.h>

void ow_report_plan_text(FILE *out, const struct ow_style *style, const struct ow_topology *topology,
                         const struct ow_made_plan *plan);
void ow_report_plan_json(FILE *out, const struct ow_topology *topology, const struct ow_made_plan *plan);
/* Several plans of one network, for comparison. */
void ow_report_plans_csv(FILE *out, const struct ow_topology *topology, const struct ow_made_plan *plan,
                         unsigned plans);
/* With gnuplot, by the ending .svg or .png. */
int ow_report_plans_plot(const struct ow_made_plan *plan, unsigned plans, const char *path, struct ow_error *err);
