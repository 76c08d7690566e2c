/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "result/interval_result.h"
#include <stdio.h>

/* Live results as JSON. */

/* One line of JSON with all fields of a result. */
void ow_result_json(FILE *out, const struct ow_interval_result *result);
/* The same as a member or element of another document. */
void ow_result_json_put(struct ow_json *json, const char *name, const struct ow_interval_result *result);
/* The line of a whole run: {"summary": {...}}. */
void ow_result_json_summary(FILE *out, const struct ow_interval_result *total);
/* Only the member "not_estimated": an object of reasons by name. */
void ow_result_json_reasons(struct ow_json *json, const char *name, const struct ow_interval_result *result);
