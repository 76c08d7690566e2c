/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stddef.h>
#include <stdint.h>

/* Times and durations are int64_t nanoseconds; their names end in _ns. */
#define OW_NS_PER_US INT64_C(1000)
#define OW_NS_PER_MS INT64_C(1000000)
#define OW_NS_PER_S  INT64_C(1000000000)

/* Parses "1s", "250ms", "-37s", "1.5us", "10 ns", "2d", "3h", "5min". A bare number other than 0 is refused. */
int ow_duration_parse(const char *text, int64_t *ret_ns, struct ow_error *err);

/* "4.41 us", "-37 s", "950 ns": four significant digits, in the usual unit. Always 0-terminated. */
#define OW_DURATION_TEXT 32
void ow_duration_text(double ns, char text[OW_DURATION_TEXT]);
/* The same for tables: "-" unless it is finite. */
const char *ow_duration_cell(double ns, char text[OW_DURATION_TEXT]);
