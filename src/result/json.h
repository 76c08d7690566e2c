/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "estimate/estimate.h"
#include <oneway/match.h>

/* Results and estimates with the JSON writer: the parts that several commands have in common. */

/* The object RESULT of docs/json.md, with the layout of its surroundings. */
void ow_json_result(struct ow_json *json, const char *name, const struct ow_result *result);
/* The same if the smallest or the largest delay may not be known. */
void ow_json_result_partly(struct ow_json *json, const char *name, const struct ow_result *result, bool has_min,
                           bool has_max);
/* A delay or a difference of delays: {"samples", "mean", ...}. */
void ow_json_delay(struct ow_json *json, const char *name, const struct ow_delay *delay);
/* percentiles_ns, {"50": ..., "99.9": ...}: percentiles that were asked for. */
void ow_json_percentiles(struct ow_json *json, const struct ow_percentile *percentile, unsigned count,
                         const struct ow_delay *delay);
/* Only its members. */
void ow_json_result_members(struct ow_json *json, const struct ow_result *result);

/* {"a": ..., "b": ...} */
void ow_json_sides(struct ow_json *json, const char *name, const uint64_t count[OW_SIDES]);
/* The value, NAN (null in JSON) if there is none. */
double ow_json_known(const struct ow_value *value);
/* The 95 % interval as a range; null if there is no value. */
void ow_json_bounds(struct ow_json *json, const char *name, const struct ow_value *value);
/* {"0.5": ..., ...}; NULL: all null. */
void ow_json_quantiles(struct ow_json *json, const char *name, const double quantile_ns[OW_QUANTILES]);
