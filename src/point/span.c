/* SPDX-License-Identifier: Apache-2.0 */
/* From when to when a capture was taken. */
#include "point/span.h"

#include "capture/reader.h"
#include <errno.h>

#define BATCH 256

int ow_span_of_file(const char *path, struct ow_span *ret_span, struct ow_error *err)
{
	struct ow_reader *reader;
	struct ow_frame frames[BATCH];
	struct ow_span span = {INT64_MAX, INT64_MIN};
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	while ((r = ow_reader_read(reader, frames, BATCH, err)) > 0) {
		for (int i = 0; i < r; i++) {
			int64_t time_ns = frames[i].time_ns;
			span.first_ns = time_ns < span.first_ns ? time_ns : span.first_ns;
			span.last_ns = time_ns > span.last_ns ? time_ns : span.last_ns;
		}
	}
	ow_reader_close(reader);
	if (r < 0)
		return r;
	if (span.first_ns > span.last_ns)
		return ow_error_set(err, ENODATA, "%.200s: no packets", path);
	*ret_span = span;
	return 0;
}
