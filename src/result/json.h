/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RESULT_JSON_H
#define OW_RESULT_JSON_H

#include "estimate/estimate.h"
#include <oneway/match.h>
#include <stdio.h>

/* The pieces that all JSON of ours is made of. */

/* The text as a JSON string, with its quotes. */
void ow_report_json_string(FILE *out, const char *text);
/* The shortest notation that reads back as this number; null if it is none. */
void ow_report_json_number(FILE *out, double value);

/* The RESULT object alone, for simulate's truth and others. indent = spaces before each line after the first;
 * negative = all on one line. */
void ow_report_result_json(FILE *out, const struct ow_result *result, int indent);
/* Its members without the braces; first = no comma before the first one. */
void ow_report_json_members(FILE *out, const struct ow_result *result, int indent, bool first);

/* Begins a member of an object: comma, and on a line of its own unless indent is negative. */
void ow_report_json_name(FILE *out, int indent, const char *name, bool first);
/* The value, NAN (null in JSON) if there is none. */
double ow_report_json_known(const struct ow_value *value);
/* [low, high]: the 95 % interval. Infinity is null; null alone if there is no value. */
void ow_report_json_bounds(FILE *out, const struct ow_value *value);
/* {"0.5": ..., ...}; NULL: all null. */
void ow_report_json_quantiles(FILE *out, const double quantile_ns[OW_QUANTILES]);

#endif
