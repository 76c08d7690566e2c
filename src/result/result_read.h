/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include <oneway/error.h>

/*
 * Reads a line of JSON that ow_result_json (or another program with the same names) wrote: all fields, except those
 * that are computed from others. Missing values are 0, not counted or NONE.
 * Returns 1; 0 for a line that is JSON but not a result (a log, a summary); -EINVAL with an error message.
 */
int ow_result_json_read(const char *line, size_t length, struct ow_interval_result *ret_result, struct ow_error *err);
#define OW_RESULT_LINE_MAX (1u << 16)
