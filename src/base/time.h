/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdint.h>

/* Times and durations are int64_t nanoseconds; their names end in _ns. */
#define OW_NS_PER_US INT64_C(1000)
#define OW_NS_PER_MS INT64_C(1000000)
#define OW_NS_PER_S  INT64_C(1000000000)

/* a / b rounded down, b > 0: the interval of length b that contains the time a. */
static inline int64_t ow_floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* The time that is later by this, or earlier; limited to what a time can be. */
static inline int64_t ow_time_later(int64_t time_ns, int64_t by_ns)
{
	int64_t sum;
	return __builtin_add_overflow(time_ns, by_ns, &sum) ? by_ns < 0 ? INT64_MIN : INT64_MAX : sum;
}

/* Parses "1s", "250ms", "-37s", "1.5us", "10 ns", "2d", "3h", "5min". A bare number other than 0 is refused. */
int ow_duration_parse(const char *text, int64_t *ret_ns, struct ow_error *err);

/* "4.41 us", "-37 s", "950 ns": four significant digits, in the usual unit. Always 0-terminated. */
#define OW_DURATION_TEXT 32
void ow_duration_text(double ns, char text[OW_DURATION_TEXT]);
/* The same for tables: "-" unless it is finite. */
const char *ow_duration_cell(double ns, char text[OW_DURATION_TEXT]);
