/* SPDX-License-Identifier: Apache-2.0 */
/* Copies selected records of two captures into one file: lost or extra packets, for other tools. */
#include "match/extract.h"

#include "base/array.h"
#include "capture/file/reader.h"
#include "capture/file/writer.h"
#include <errno.h>
#include <stdlib.h>

#define BATCH 256
/* 2^40 records: 128 GB of bitmap. A larger record number is invalid. */
#define NUMBER_MAX (UINT64_C(1) << 40)

int ow_records_add(struct ow_records *records, uint64_t number)
{
	if (!number || number > NUMBER_MAX)
		return -ERANGE;
	size_t index = (size_t)(number >> 6);
	if (OW_GROW_ZEROED(records->word, records->words, index + 1) < 0)
		return -ENOMEM;
	uint64_t bit = UINT64_C(1) << (number & 63);
	records->count += !(records->word[index] & bit);
	records->word[index] |= bit;
	return 0;
}

bool ow_records_has(const struct ow_records *records, uint64_t number)
{
	return number >> 6 < records->words && records->word[number >> 6] >> (number & 63) & 1;
}

void ow_records_done(struct ow_records *records)
{
	free(records->word);
	*records = (struct ow_records){0};
}

/* One capture and the next chosen frame of it. */
struct source {
	const char *path;
	const struct ow_records *chosen;
	uint64_t left; /* selected records not found yet */
	struct ow_reader *reader;
	struct ow_frame frame[BATCH];
	int next, count;
};

/* Moves to the next selected frame; without one, left becomes 0. */
static int advance(struct source *source, struct ow_error *err)
{
	while (source->left) {
		while (source->next < source->count) {
			if (ow_records_has(source->chosen, source->frame[source->next].number))
				return 0;
			source->next++;
		}
		source->next = 0;
		source->count = ow_reader_read(source->reader, source->frame, BATCH, err);
		if (source->count < 0)
			return source->count;
		if (!source->count)
			return ow_error_set(err, EIO, "%s has changed since it was matched", source->path);
	}
	return 0;
}

static int open_source(struct source *source, const char *path, const struct ow_records *chosen, struct ow_error *err)
{
	source->path = path;
	source->chosen = chosen;
	source->left = chosen->count;
	source->reader = NULL;
	source->next = source->count = 0;
	if (!source->left)
		return 0;
	int r = ow_reader_open(path, &source->reader, err);
	return r < 0 ? r : advance(source, err);
}

/* The source whose next frame is earlier; NULL if both have ended. */
static struct source *earlier(struct source *a, struct source *b)
{
	if (!a->left || !b->left)
		return a->left ? a : b->left ? b : NULL;
	return a->frame[a->next].time_ns <= b->frame[b->next].time_ns ? a : b;
}

static int copy(struct source source[OW_SIDES], uint16_t linktype, const char *path, struct ow_writer *writer,
                struct ow_error *err)
{
	for (struct source *from; (from = earlier(&source[OW_SIDE_A], &source[OW_SIDE_B]));) {
		const struct ow_frame *frame = &from->frame[from->next];
		if (frame->linktype != linktype)
			return ow_error_set(err, EINVAL, "%s cannot hold both link types, %s and %s", path,
			                    ow_linktype_name(linktype), ow_linktype_name(frame->linktype));
		int r = ow_writer_write(writer, frame, err);
		if (r < 0)
			return r;
		from->next++;
		from->left--;
		r = advance(from, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Without a selected frame, the link type of A is used. */
static int first_linktype(struct source source[OW_SIDES], uint16_t *ret_linktype, struct ow_error *err)
{
	const struct source *first = earlier(&source[OW_SIDE_A], &source[OW_SIDE_B]);
	if (first) {
		*ret_linktype = first->frame[first->next].linktype;
		return 0;
	}
	int r = ow_reader_open(source[OW_SIDE_A].path, &source[OW_SIDE_A].reader, err);
	if (r == 0)
		*ret_linktype = ow_reader_info(source[OW_SIDE_A].reader)->linktype;
	return r;
}

int ow_extract(const char *path, const char *const source_path[OW_SIDES], const struct ow_records chosen[OW_SIDES],
               struct ow_error *err)
{
	struct ow_writer *writer = NULL;
	struct source *source = calloc(OW_SIDES, sizeof *source);
	if (!source)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	int r = 0;
	for (int side = 0; side < OW_SIDES && r == 0; side++)
		r = open_source(&source[side], source_path[side], &chosen[side], err);
	struct ow_writer_options options = {.nanoseconds = true};
	ow_writer_options_of_name(path, &options.format, &options.gzip);
	if (r == 0)
		r = first_linktype(source, &options.linktype, err);
	if (r == 0)
		r = ow_writer_open(path, &options, &writer, err);
	if (r == 0)
		r = copy(source, options.linktype, path, writer, err);
	if (r < 0)
		ow_writer_abort(writer);
	else
		r = ow_writer_close(writer, err);
	for (int side = 0; side < OW_SIDES; side++)
		ow_reader_close(source[side].reader);
	free(source);
	return r;
}
