/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_SPAN_H
#define OW_POINT_SPAN_H

#include <oneway/error.h>
#include <stdint.h>

/* The time that a capture file covers: its earliest and latest stamp. */
struct ow_span {
	int64_t first_ns, last_ns;
};

/* Reads the whole file. -ENODATA if it has no frames; a damaged one ends where it is damaged. */
int ow_span_of_file(const char *path, struct ow_span *ret_span, struct ow_error *err);

#endif
