/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in which every record begins with its length (capture/file/record_format.h). The file is read into a buffer; frames are
 * pointers into it, and a record that the end of the buffer cuts is moved to its beginning.
 */
#include "capture/file/capture_format.h"

#include "base/time.h"
#include "capture/file/erf.h"
#include "capture/file/snoop.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define FILL_BYTES ((size_t)256 << 10)

struct records {
	struct ow_file_cursor walk;
	const struct ow_record_format *format;
	uint16_t linktype; /* of a snoop file */
	uint64_t offset;   /* of next in the file */
	size_t next, end;  /* of the bytes in the buffer that are not returned yet */
	uint8_t buffer[OW_RECORD_FORMAT_MAX + FILL_BYTES];
};

static int refill(struct records *r, size_t *ret_got, struct ow_error *err)
{
	int result;

	memmove(r->buffer, r->buffer + r->next, r->end - r->next);
	r->end -= r->next;
	r->next = 0;
	result = ow_source_read(r->walk.source, r->buffer + r->end, FILL_BYTES, ret_got, err);
	if (result == 0)
		r->end += *ret_got;
	return result;
}

static void note_end(struct records *r)
{
	const char *name = ow_source_name(r->walk.source), *packed = ow_source_damage(r->walk.source);
	unsigned long long number = r->walk.number, offset = r->offset;
	size_t left = r->end - r->next;

	if (packed)
		ow_error_set(&r->walk.damage, EINVAL, "%s: %s, after %llu whole records", name, packed, number);
	else if (left)
		ow_error_set(&r->walk.damage, EINVAL,
		             "%s: damaged or cut off in record %llu at offset %llu (%zu bytes present)", name,
		             number + 1, offset, left);
}

/* Returns the frames of the whole records of the buffer. *ret_damaged: the next record is invalid. */
static size_t walk_buffer(struct records *r, struct ow_frame *frames, size_t max, bool *ret_damaged)
{
	size_t n = 0;

	while (n < max && r->end - r->next >= r->format->record) {
		const uint8_t *p = r->buffer + r->next;
		size_t length = r->format->length(p);
		if (length && r->end - r->next < length)
			break;
		int packets = length ? r->format->parse(r->linktype, p, length, &frames[n]) : -1;
		*ret_damaged = packets < 0;
		if (packets < 0)
			break;
		r->walk.info->dropped = r->format->dropped(p, r->walk.info->dropped);
		r->next += length;
		r->offset += length;
		if (packets)
			frames[n++].number = ++r->walk.number;
	}
	return n;
}

static int records_read(struct ow_file_cursor *walk, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	struct records *r = (struct records *)walk;

	if (max > INT_MAX)
		max = INT_MAX;
	for (;;) {
		size_t got = 0;
		bool damaged = false;
		size_t n = walk_buffer(r, frames, max, &damaged);
		if (n)
			return (int)n;
		int result = damaged ? 0 : refill(r, &got, err);
		if (result < 0)
			return result;
		if (got == 0) {
			note_end(r);
			return 0;
		}
	}
}

/* The caller has rewound the source. */
static int records_rewind(struct ow_file_cursor *walk, struct ow_error *err)
{
	struct records *r = (struct records *)walk;
	uint8_t head[OW_SNOOP_HEADER];
	size_t got;

	r->next = r->end = 0;
	r->offset = r->format->header;
	r->walk.info->dropped = 0;
	return ow_source_read(walk->source, head, r->format->header, &got, err);
}

static void records_free(struct ow_file_cursor *walk)
{
	free(walk);
}

static const struct ow_file_cursor_ops ops = {.read = records_read, .rewind = records_rewind, .free = records_free};

/* The caller has rewound the source. */
static int records_open(struct ow_source *source, const struct ow_record_format *format, struct ow_reader_info *info,
                        struct ow_file_cursor **ret_walk, struct ow_error *err)
{
	struct records *r = malloc(sizeof *r);
	int result;

	if (!r)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_source_name(source));
	r->walk = (struct ow_file_cursor){.ops = &ops, .source = source, .info = info};
	r->format = format;
	r->linktype = OW_LINK_UNKNOWN;
	info->format = format->name;
	result = records_rewind(&r->walk, err);
	if (result < 0) {
		free(r);
		return result;
	}
	*ret_walk = &r->walk;
	return 0;
}

int ow_file_cursor_snoop(struct ow_source *source, const uint8_t *head, struct ow_reader_info *info,
                         struct ow_file_cursor **ret_walk, struct ow_error *err)
{
	uint16_t linktype;
	int result = ow_snoop_begin(head, ow_source_name(source), &linktype, err);

	if (result == 0)
		result = records_open(source, &ow_snoop_format, info, ret_walk, err);
	if (result < 0)
		return result;
	((struct records *)*ret_walk)->linktype = info->linktype = linktype;
	info->resolution_ns = OW_NS_PER_US;
	return 0;
}

int ow_file_cursor_erf(struct ow_source *source, uint16_t linktype, struct ow_reader_info *info,
                       struct ow_file_cursor **ret_walk, struct ow_error *err)
{
	info->linktype = linktype; /* records have their own */
	info->resolution_ns = 1;
	return records_open(source, &ow_erf_format, info, ret_walk, err);
}
