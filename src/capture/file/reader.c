/* SPDX-License-Identifier: Apache-2.0 */
/* A capture: one file, or a set of files. */
#include "capture/file/reader.h"

#include "capture/file/file_merge.h"
#include "capture/file/file_reader.h"
#include "capture/file/file_set.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ow_reader {
	struct ow_file_reader *file; /* NULL if it is a set */
	struct ow_file_merge *merge;
	struct ow_file_set set;
	char *name; /* of the set */
};

static int open_set(struct ow_reader *r, const char *name, struct ow_error *err)
{
	r->name = strdup(name);
	if (!r->name)
		return ow_error_set(err, ENOMEM, "%s: out of memory", name);
	int result = ow_file_set_find(name, &r->set, err);
	return result < 0 ? result : ow_file_merge_open(r->name, &r->set, &r->merge, err);
}

int ow_reader_open(const char *path, struct ow_reader **ret_reader, struct ow_error *err)
{
	struct ow_reader *r = calloc(1, sizeof *r);
	if (!r)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	int result = ow_file_set_is_file(path) ? ow_file_reader_open(path, &r->file, err) : open_set(r, path, err);
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
	free(r);
}

const struct ow_reader_info *ow_reader_info(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_info(r->file) : ow_file_merge_info(r->merge);
}

int ow_reader_read(struct ow_reader *r, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	return r->file ? ow_file_reader_read(r->file, frames, max, err)
	               : ow_file_merge_read(r->merge, frames, max, err);
}

const char *ow_reader_damage(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_damage(r->file) : ow_file_merge_damage(r->merge);
}

const char *ow_reader_note(const struct ow_reader *r)
{
	return r->file ? NULL : ow_file_merge_note(r->merge);
}

uint64_t ow_reader_position(const struct ow_reader *r)
{
	return r->file ? ow_file_reader_position(r->file) : ow_file_merge_position(r->merge);
}

int ow_reader_rewind(struct ow_reader *r, struct ow_error *err)
{
	return r->file ? ow_file_reader_rewind(r->file, err) : ow_file_merge_rewind(r->merge, err);
}
