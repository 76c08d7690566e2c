/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RESULT_RESULT_JSON_H
#define OW_RESULT_RESULT_JSON_H

#include "result/interval_result.h"
#include <stdio.h>

/* Live results for machines. */

/* "measured", "partial", "unknown": by enum ow_result_status. */
extern const char *const ow_result_status_name[];

/* One line of JSON: the RESULT of every command, with segment, class, interval, late, pending, clock, synopsis, cost.
 */
void ow_result_json(FILE *out, const struct ow_interval_result *result);
/* The same object without line end, to be put into others ({"result": ...}). */
void ow_result_json_object(FILE *out, const struct ow_interval_result *result);
/* The member "not_estimated" alone: an object of reasons by name. */
void ow_result_json_reasons(FILE *out, const struct ow_interval_result *result);

#endif
