/* SPDX-License-Identifier: Apache-2.0 */
/* A capture: one file, or a set of files. */
#include "capture/file/reader.h"

#include "capture/file/file_merge.h"
#include "capture/file/file_reader.h"
#include "capture/file/file_set.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ow_reader {
	struct ow_file_reader *file; /* NULL if it is a set */
	struct ow_file_merge *merge;
	struct ow_file_set set;
	char *name; /* of the set */
	/* Stamps of a capture device: */
	struct ow_device_format format;
	bool stamped;  /* frames have the times of the stamps */
	bool one_port; /* only frames of this port */
	uint64_t port;
	struct ow_reader_info info; /* if stamped or one_port */
	char *path;                 /* with the port */
};

static int open_set(struct ow_reader *r, const char *name, struct ow_error *err)
{
	r->name = strdup(name);
	if (!r->name)
		return ow_error_set(err, ENOMEM, "%s: out of memory", name);
	int result = ow_file_set_find(name, &r->set, err);
	return result < 0 ? result : ow_file_merge_open(r->name, &r->set, &r->merge, err);
}

static int open_files(struct ow_reader *r, const char *path, struct ow_error *err)
{
	return ow_file_set_is_file(path) ? ow_file_reader_open(path, &r->file, err) : open_set(r, path, err);
}

static const struct ow_reader_info *files_info(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_info(r->file) : ow_file_merge_info(r->merge);
}

static void update_info(struct ow_reader *r)
{
	r->info = *files_info(r);
	if (r->stamped)
		r->info.resolution_ns = 1;
	if (r->one_port)
		r->info.path = r->path;
}

/* Opens the files, and finds out how their frames are stamped. */
static int open_port(struct ow_reader *r, const char *path, size_t length, struct ow_error *err)
{
	char *files = strndup(path, length);
	r->path = strdup(path);
	int result =
		files && r->path ? open_files(r, files, err) : ow_error_set(err, ENOMEM, "%s: out of memory", path);
	if (result == 0)
		result = ow_reader_find_stamps(r, &r->format, err);
	if (result == 0 && r->format.device == OW_DEVICE_NONE)
		result = ow_error_set(err, EINVAL, "%.200s: no port of a capture device in its frames", files);
	free(files);
	if (result < 0)
		return result;
	r->one_port = true;
	update_info(r);
	return 0;
}

size_t ow_reader_port_of_path(const char *path, uint64_t *ret_port)
{
	const char *mark = strrchr(path, '#');
	unsigned long long device = 0, port = 0;
	int used = 0;
	if (!mark || mark == path || !isdigit((unsigned char)mark[1]) || access(path, F_OK) == 0)
		return 0;
	if (sscanf(mark + 1, "%10llu:%10llu%n", &device, &port, &used) < 2 || mark[1 + used]) {
		device = 0;
		if (sscanf(mark + 1, "%10llu%n", &port, &used) < 1 || mark[1 + used])
			return 0;
	}
	if (device > UINT32_MAX || port > UINT32_MAX)
		return 0;
	*ret_port = device << 32 | port;
	return (size_t)(mark - path);
}

int ow_reader_open(const char *path, struct ow_reader **ret_reader, struct ow_error *err)
{
	struct ow_reader *r = calloc(1, sizeof *r);
	if (!r)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	size_t length = ow_reader_port_of_path(path, &r->port);
	int result = length ? open_port(r, path, length, err) : open_files(r, path, err);
	if (result < 0) {
		ow_reader_close(r);
		return result;
	}
	*ret_reader = r;
	return 0;
}

void ow_reader_close(struct ow_reader *r)
{
	if (!r)
		return;
	ow_file_reader_close(r->file);
	ow_file_merge_close(r->merge);
	ow_file_set_done(&r->set);
	free(r->name);
	free(r->path);
	free(r);
}

const struct ow_reader_info *ow_reader_info(const struct ow_reader *r)
{
	return r->stamped || r->one_port ? &r->info : files_info(r);
}

int ow_reader_find_stamps(struct ow_reader *r, struct ow_device_format *ret_format, struct ow_error *err)
{
	struct ow_device_survey survey = {0};
	struct ow_frame frames[64];
	int n = 1;
	for (unsigned read = 0; n > 0 && read < OW_DEVICE_FRAMES; read += (unsigned)n) {
		n = r->file ? ow_file_reader_read(r->file, frames, 64, err)
		            : ow_file_merge_read(r->merge, frames, 64, err);
		for (int i = 0; i < n; i++)
			ow_device_survey_add(&survey, &frames[i]);
	}
	if (n < 0)
		return n;
	*ret_format = ow_device_survey_result(&survey);
	return ow_reader_rewind(r, err);
}

void ow_reader_use_stamps(struct ow_reader *r, const struct ow_device_format *format)
{
	r->format = *format;
	r->stamped = true;
	update_info(r);
}

/* Sets times by the stamps, and keeps the frames of the port. Frames without a stamp have no time, and are of no port. */
static int apply_stamps(const struct ow_reader *r, struct ow_frame *frames, int count)
{
	int kept = 0;
	for (int i = 0; i < count; i++) {
		struct ow_device_stamp stamp;
		bool found = ow_device_stamp_read(&r->format, &frames[i], &stamp);
		if (r->one_port && !(found && stamp.has_port && stamp.port == r->port))
			continue;
		frames[kept] = frames[i];
		if (r->stamped)
			frames[kept].time_ns = found ? stamp.time_ns : 0;
		kept++;
	}
	return kept;
}

int ow_reader_read(struct ow_reader *r, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	for (;;) {
		int n = r->file ? ow_file_reader_read(r->file, frames, max, err)
		                : ow_file_merge_read(r->merge, frames, max, err);
		if (!r->stamped && !r->one_port)
			return n;
		update_info(r);
		if (n > 0)
			n = apply_stamps(r, frames, n);
		else
			return n;
		if (n)
			return n;
	}
}

const char *ow_reader_damage(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_damage(r->file) : ow_file_merge_damage(r->merge);
}

const char *ow_reader_note(const struct ow_reader *r)
{
	return r->file ? NULL : ow_file_merge_note(r->merge);
}

const char *ow_reader_file(const struct ow_reader *r, size_t i)
{
	return r->file ? NULL : ow_file_merge_file(r->merge, i);
}

const char *ow_reader_last_file(const struct ow_reader *r)
{
	return r->file ? NULL : ow_file_merge_last_file(r->merge);
}

uint64_t ow_reader_position(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_position(r->file) : ow_file_merge_position(r->merge);
}

int ow_reader_rewind(struct ow_reader *r, struct ow_error *err)
{
	return r->file ? ow_file_reader_rewind(r->file, err) : ow_file_merge_rewind(r->merge, err);
}
