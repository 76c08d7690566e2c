/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/capture_when.h"

#include "base/time.h"
#include "base/when.h"
#include "capture/file/reader.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

/* A pipe can be read once: the packets would be gone. */
static bool is_pipe(const char *path)
{
	struct stat st;
	return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

int ow_capture_when_parse(const char *text, const char *path, int64_t *ret_ns, struct ow_error *err)
{
	int64_t first_ns = 0, after_ns;
	bool relative = *text == '+' || (isdigit((unsigned char)*text) && text[strspn(text, "0123456789")] == ':');
	if (*text == '-' || strcmp(text, "now") == 0)
		return ow_error_set(
			err, EINVAL,
			"'%.40s': give a time of day, a date with or without one, or +D after the first packet", text);
	if (relative && is_pipe(path))
		return ow_error_set(err, EINVAL, "'%.40s' needs a file: give a date for standard input or a pipe",
		                    text);
	int r = relative ? first_time(path, &first_ns, err) : 0;
	if (r < 0)
		return r;
	if (*text != '+')
		return ow_when_parse(text, first_ns + 24 * 3600 * OW_NS_PER_S - 1, ret_ns, err);
	r = ow_duration_parse(text + 1, &after_ns, err);
	if (r == 0 && after_ns < 0)
		return ow_error_set(err, EINVAL, "'%.40s' is negative", text);
	if (r == 0 && __builtin_add_overflow(first_ns, after_ns, ret_ns))
		return ow_error_set(err, EINVAL, "'%.40s' is too long", text);
	return r;
}
