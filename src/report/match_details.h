/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "base/table.h"
#include <oneway/match.h>
#include <stdio.h>

/* Numbers of a direction about the order of its packets. */
void ow_report_match_details_text(FILE *out, const struct ow_details *details, int width, enum ow_look look);
/* The member "details". */
void ow_report_match_details_json(struct ow_json *json, const struct ow_details *details);
