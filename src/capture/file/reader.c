/* SPDX-License-Identifier: Apache-2.0 */
/* A capture: one file, or a set of files. */
#include "capture/file/reader.h"

#include "base/time.h"
#include "capture/file/file_merge.h"
#include "capture/file/file_reader.h"
#include "capture/file/file_set.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
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
	bool has_device;            /* a frame was of this port, */
	uint32_t device;            /* of this device */
	uint64_t portless;          /* frames without a port */
	char note[500];             /* about these */
	int64_t last_ns;            /* time in the file of the last frame with a stamp; 0 = none */
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
		device = OW_READER_ANY_DEVICE;
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

/* How long after the last frame with a stamp, by the times of the file. */
static uint32_t after_stamp(const struct ow_reader *r, int64_t time_ns)
{
	int64_t after_ms = r->last_ns && time_ns > r->last_ns ? (time_ns - r->last_ns) / OW_NS_PER_MS : 0;
	return after_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)after_ms;
}

/* Whether a frame is of the port; an error if two devices have one of this number. */
static int is_of_port(struct ow_reader *r, const struct ow_device_stamp *stamp, struct ow_error *err)
{
	uint32_t device = (uint32_t)(stamp->port >> 32), port = (uint32_t)stamp->port,
		 wanted = (uint32_t)(r->port >> 32);
	if (port != (uint32_t)r->port || (wanted != OW_READER_ANY_DEVICE && device != wanted))
		return 0;
	if (r->has_device && device != r->device)
		return ow_error_set(err, EINVAL,
		                    "%.200s: the devices %" PRIu32 " and %" PRIu32 " have a port %" PRIu32
		                    ": choose one, as #%" PRIu32 ":%" PRIu32,
		                    r->path, r->device, device, port, r->device, port);
	r->has_device = true;
	r->device = device;
	return 1;
}

static const char *files_note(const struct ow_reader *r)
{
	return r->file ? NULL : ow_file_merge_note(r->merge);
}

/* At the end of the files. */
static void note_portless(struct ow_reader *r)
{
	const char *other = files_note(r);
	if (r->portless)
		snprintf(r->note, sizeof r->note, "%llu %s no port of a capture device, and %s left out%s%s",
		         (unsigned long long)r->portless, r->portless == 1 ? "frame has" : "frames have",
		         r->portless == 1 ? "is" : "are", other ? "; " : "", other ? other : "");
}

/* Sets times by the stamps, and keeps the frames of the port. Frames without a stamp have no time, and are of no port. */
static int apply_stamps(struct ow_reader *r, struct ow_frame *frames, int count, struct ow_error *err)
{
	int kept = 0;
	for (int i = 0; i < count; i++) {
		struct ow_device_stamp stamp;
		bool found = ow_device_stamp_read(&r->format, &frames[i], &stamp);
		if (r->one_port && !(found && stamp.has_port)) {
			r->portless++;
			continue;
		}
		int keep = r->one_port ? is_of_port(r, &stamp, err) : 1;
		if (keep < 0)
			return keep;
		if (!keep)
			continue;
		frames[kept] = frames[i];
		if (r->stamped && found)
			r->last_ns = frames[i].time_ns;
		if (r->stamped) {
			frames[kept].after_ms = found ? 0 : after_stamp(r, frames[i].time_ns);
			frames[kept].time_ns = found ? stamp.time_ns : 0;
		}
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
		if (n == 0)
			note_portless(r);
		if (n <= 0)
			return n;
		n = apply_stamps(r, frames, n, err);
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
	return *r->note ? r->note : files_note(r);
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
	r->last_ns = 0;
	r->portless = 0;
	*r->note = 0;
	return r->file ? ow_file_reader_rewind(r->file, err) : ow_file_merge_rewind(r->merge, err);
}
