/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/rotation.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIODS_MAX INT64_C(100000000) /* file numbers have at most 8 digits */

struct ow_rotation {
	struct ow_writer_options options;
	struct ow_writer *writer; /* NULL: no file is open */
	int64_t length_ns, start_ns, end_ns;
	uint32_t files;
	char path[PATH_MAX];
};

int ow_rotation_open(const char *path, const struct ow_writer_options *options, int64_t length_ns, int64_t start_ns,
                     struct ow_rotation **ret_rotation, struct ow_error *err)
{
	struct ow_rotation *r = calloc(1, sizeof *r);
	if (!r)
		return ow_error_set(err, ENOMEM, "out of memory");
	*r = (struct ow_rotation){
		.options = *options, .length_ns = length_ns, .start_ns = start_ns, .end_ns = INT64_MAX, .files = 1};
	int result = 0;
	if (snprintf(r->path, sizeof r->path, "%s", path) >= (int)sizeof r->path)
		result = ow_error_set(err, ENAMETOOLONG, "%.60s...: %s", path, strerror(ENAMETOOLONG));
	else if (!length_ns)
		result = ow_writer_open(path, options, &r->writer, err);
	if (length_ns) {
		r->files = 0;
		r->end_ns = INT64_MIN;
	}
	if (result < 0) {
		free(r);
		return result;
	}
	*ret_rotation = r;
	return 0;
}

/* Where the number of the period goes: before the suffix. */
static size_t stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strchr(name, '.');
	return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

static int next_file(struct ow_rotation *r, int64_t time_ns, struct ow_error *err)
{
	int64_t period = time_ns > r->start_ns ? (time_ns - r->start_ns) / r->length_ns : 0;
	if (period >= PERIODS_MAX)
		return ow_error_set(err, EINVAL, "--rotate: more than %lld files", (long long)PERIODS_MAX);
	int result = ow_writer_close(r->writer, err);
	r->writer = NULL;
	if (result < 0)
		return result;
	char path[PATH_MAX + 16];
	size_t at = stem(r->path);
	snprintf(path, sizeof path, "%.*s_%05lld%s", (int)at, r->path, (long long)period + 1, r->path + at);
	result = ow_writer_open(path, &r->options, &r->writer, err);
	if (result < 0)
		return result;
	r->files++;
	r->end_ns = r->start_ns + (period + 1) * r->length_ns;
	return 0;
}

int ow_rotation_write(struct ow_rotation *r, const struct ow_frame *frame, struct ow_error *err)
{
	int result = frame->time_ns >= r->end_ns ? next_file(r, frame->time_ns, err) : 0;
	return result < 0 ? result : ow_writer_write(r->writer, frame, err);
}

uint32_t ow_rotation_files(const struct ow_rotation *r)
{
	return r->files;
}

int ow_rotation_close(struct ow_rotation *r, struct ow_error *err)
{
	int result = r ? ow_writer_close(r->writer, err) : 0;
	free(r);
	return result;
}

void ow_rotation_abort(struct ow_rotation *r)
{
	if (r)
		ow_writer_abort(r->writer);
	free(r);
}
