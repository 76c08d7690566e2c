/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/capture_when.h"

#include "base/time.h"
#include "base/when.h"
#include "capture/file/reader.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>

/* The time of the first packet that has one. */
static int first_time(const char *path, int64_t *ret_ns, struct ow_error *err)
{
	struct ow_reader *reader;
	struct ow_frame frame;
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	while ((r = ow_reader_read(reader, &frame, 1, err)) == 1 && frame.time_ns == 0)
		continue;
	ow_reader_close(reader);
	if (r == 0)
		return ow_error_set(err, EINVAL, "%.200s: no packets with a time", path);
	*ret_ns = frame.time_ns;
	return r < 0 ? r : 0;
}

int ow_capture_when_parse(const char *text, const char *path, int64_t *ret_ns, struct ow_error *err)
{
	int64_t first_ns = 0, after_ns;
	bool relative = *text == '+' || (isdigit((unsigned char)*text) && text[strspn(text, "0123456789")] == ':');
	if (*text == '-' || strcmp(text, "now") == 0)
		return ow_error_set(
			err, EINVAL,
			"'%.40s': give a time of day, a date with or without one, or +D after the first packet", text);
	if (relative && strcmp(path, "-") == 0)
		return ow_error_set(err, EINVAL, "'%.40s' needs a file: give a date for standard input", text);
	int r = relative ? first_time(path, &first_ns, err) : 0;
	if (r < 0)
		return r;
	if (*text != '+')
		return ow_when_parse(text, first_ns + 24 * 3600 * OW_NS_PER_S - 1, ret_ns, err);
	r = ow_duration_parse(text + 1, &after_ns, err);
	if (r == 0 && after_ns < 0)
		return ow_error_set(err, EINVAL, "'%.40s' is negative", text);
	*ret_ns = first_ns + after_ns;
	return r;
}
