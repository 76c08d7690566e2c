/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats in which every record begins with its length: snoop (RFC 1761) and ERF (Endace). The file is read into a
 * buffer; frames are pointers into it, and a record that the end of the buffer cuts is moved to its beginning.
 *
 *     snoop file:   "snoop" 0 0 0 | version 4 | link 4                                      (all big-endian)
 *     record:       length on the wire 4 | captured 4 | record 4 | drops so far 4 | seconds 4 | microseconds 4 | bytes, padding
 *
 *     ERF record:   fraction of a second 4, seconds 4 (little-endian) | type 1 | flags 1 | record 2 | lost or colour 2 |
 *                   length on the wire 2 | [extension headers 8 each, while the top bit of the type is set] | bytes
 *
 * An ERF file has no header: it is recognised by records that follow each other. Padding and metadata are left out. Bytes of
 * Ethernet come behind two bytes of padding.
 */
#include "capture/file/capture_format.h"

#include "base/bytes.h"
#include "base/time.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define FILL_BYTES     ((size_t)256 << 10)
#define RECORD_MAX     (OW_CAPTURE_CAPLEN_MAX + 4096U) /* with its header and padding */
#define SNOOP_HEADER   16U
#define SNOOP_RECORD   24U
#define SNOOP_VERSION  2U
#define ERF_RECORD     16U
#define ERF_EXTENSIONS 16U /* of a record; Endace knows 7 types */
#define LINK_UNKNOWN   0xffffU

struct records {
	struct ow_file_cursor walk;
	const struct format *format;
	uint16_t linktype; /* of a snoop file */
	uint64_t offset;   /* of next in the file */
	size_t next, end;  /* of the bytes in the buffer that are not returned yet */
	uint8_t buffer[RECORD_MAX + FILL_BYTES];
};

struct format {
	const char *name;
	size_t header, record; /* bytes of the headers of the file and of a record */
	/* Length of the record whose header is at p; 0 if it cannot be one. */
	size_t (*length)(const uint8_t *p);
	/* The frame of a whole record. Returns 1, 0 if there is no packet in it, or -1 if it is damaged. */
	int (*parse)(const struct records *r, const uint8_t *p, size_t length, struct ow_frame *ret_frame);
	/* Packets that the capture has dropped, with this record. */
	uint64_t (*dropped)(const uint8_t *p, uint64_t before);
};

static uint16_t snoop_link(uint32_t type)
{
	static const struct {
		uint32_t type;
		uint16_t linktype;
	} links[] = {{0, 1}, {2, 6}, {4, 1}, {8, 10}, {26, 228}, {27, 229}, {28, 226}};

	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		if (links[i].type == type)
			return links[i].linktype;
	}
	return LINK_UNKNOWN;
}

static size_t snoop_length(const uint8_t *p)
{
	uint32_t length = ow_load_be32(p + 8);
	return length < SNOOP_RECORD || length > RECORD_MAX ? 0 : length;
}

static int snoop_parse(const struct records *r, const uint8_t *p, size_t length, struct ow_frame *ret_frame)
{
	uint32_t len = ow_load_be32(p), caplen = ow_load_be32(p + 4);

	if (caplen > length - SNOOP_RECORD || caplen > OW_CAPTURE_CAPLEN_MAX)
		return -1;
	*ret_frame = (struct ow_frame){
		.time_ns = ow_load_be32(p + 16) * OW_NS_PER_S + ow_load_be32(p + 20) * OW_NS_PER_US,
		.data = p + SNOOP_RECORD,
		.caplen = caplen,
		.len = len < caplen ? caplen : len,
		.linktype = r->linktype,
	};
	return 1;
}

static uint64_t snoop_dropped(const uint8_t *p, uint64_t before)
{
	uint32_t now = ow_load_be32(p + 12);
	return now > before ? now : before;
}

enum {
	ERF_HDLC = 1,
	ERF_ETHERNET = 2,
	ERF_COLOUR = 11,
	ERF_DSM = 16,
	ERF_HASH = 20,
	ERF_IPV4 = 22,
	ERF_IPV6 = 23,
	ERF_META = 27,
	ERF_PAD = 48
};

static bool erf_is_ethernet(unsigned type)
{
	return type == ERF_ETHERNET || type == ERF_COLOUR || type == ERF_DSM || type == ERF_HASH;
}

static uint16_t erf_link(unsigned type)
{
	if (erf_is_ethernet(type))
		return 1;
	return type == ERF_HDLC ? 50 : type == ERF_IPV4 ? 228 : type == ERF_IPV6 ? 229 : LINK_UNKNOWN;
}

/* Bytes before the packet; 0 if there are too many extensions, or more than the record has. */
static size_t erf_head(const uint8_t *p, size_t length)
{
	size_t head = ERF_RECORD;
	bool more = p[8] & 0x80;

	for (unsigned n = 0; more; n++) {
		if (n == ERF_EXTENSIONS || head + 8 > length)
			return 0;
		more = p[head] & 0x80;
		head += 8;
	}
	if (erf_is_ethernet(p[8] & 0x7f))
		head += 2;
	return head > length ? 0 : head;
}

static size_t erf_length(const uint8_t *p)
{
	unsigned type = p[8] & 0x7f, length = ow_load_be16(p + 10);
	return length < ERF_RECORD || type == 0 || type > ERF_PAD ? 0 : length;
}

static int erf_parse(const struct records *r, const uint8_t *p, size_t length, struct ow_frame *ret_frame)
{
	unsigned type = p[8] & 0x7f;
	uint32_t len = ow_load_be16(p + 14);
	size_t head = erf_head(p, length);
	uint64_t fraction = ow_load_le32(p);

	(void)r;
	if (head == 0)
		return -1;
	*ret_frame = (struct ow_frame){
		.time_ns = ow_load_le32(p + 4) * OW_NS_PER_S + (int64_t)((fraction * OW_NS_PER_S + (1U << 31)) >> 32),
		.data = p + head,
		.caplen = length - head < len ? (uint32_t)(length - head) : len, /* records are padded */
		.len = len,
		.linktype = erf_link(type),
	};
	return type != ERF_META && type != ERF_PAD;
}

/* Some types have a colour in this place. */
static uint64_t erf_dropped(const uint8_t *p, uint64_t before)
{
	unsigned type = p[8] & 0x7f;
	bool counts = type == ERF_HDLC || type == ERF_ETHERNET || type == ERF_IPV4 || type == ERF_IPV6;
	return before + (counts ? ow_load_be16(p + 12) : 0);
}

static const struct format snoop_format = {"snoop",      SNOOP_HEADER, SNOOP_RECORD,
                                           snoop_length, snoop_parse,  snoop_dropped};
static const struct format erf_format = {"ERF", 0, ERF_RECORD, erf_length, erf_parse, erf_dropped};

/*
 * Whether all records in these bytes can be ERF of the years 1990 to 2106, each within a day of the last. *ret_records:
 * how many are whole; *ret_bytes: their length.
 */
static bool look_like_erf(const uint8_t *bytes, size_t size, size_t *ret_records, size_t *ret_bytes)
{
	const uint32_t year_1990 = 631152000, day = 86400;
	size_t at = 0, records = 0;
	uint32_t last = 0;

	while (size - at >= ERF_RECORD) {
		const uint8_t *p = bytes + at;
		size_t length = erf_length(p);
		uint32_t s = ow_load_le32(p + 4);
		if (length == 0 || s < year_1990 || (records && (s > last ? s - last : last - s) > day))
			return false;
		if (length > size - at)
			break;
		if (erf_head(p, length) == 0)
			return false;
		last = s;
		records++;
		at += length;
	}
	*ret_records = records;
	*ret_bytes = at;
	return true;
}

bool ow_file_may_be_erf(const uint8_t *bytes, size_t size)
{
	size_t records, length;
	return look_like_erf(bytes, size, &records, &length);
}

bool ow_file_is_erf(const uint8_t *bytes, size_t size)
{
	size_t records, length;
	return look_like_erf(bytes, size, &records, &length) && (records >= 2 || (records == 1 && length == size));
}

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
		int packets = length ? r->format->parse(r, p, length, &frames[n]) : -1;
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
	uint8_t head[SNOOP_HEADER];
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
static int records_open(struct ow_source *source, const struct format *format, struct ow_reader_info *info,
                        struct ow_file_cursor **ret_walk, struct ow_error *err)
{
	struct records *r = malloc(sizeof *r);
	int result;

	if (!r)
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_source_name(source));
	r->walk = (struct ow_file_cursor){.ops = &ops, .source = source, .info = info};
	r->format = format;
	r->linktype = LINK_UNKNOWN;
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
	int result;

	if (ow_load_be32(head + 8) != SNOOP_VERSION)
		return ow_error_set(err, ENOTSUP, "%s: snoop version %u, but only version 2 can be read",
		                    ow_source_name(source), ow_load_be32(head + 8));
	result = records_open(source, &snoop_format, info, ret_walk, err);
	if (result < 0)
		return result;
	((struct records *)*ret_walk)->linktype = info->linktype = snoop_link(ow_load_be32(head + 12));
	info->resolution_ns = OW_NS_PER_US;
	return 0;
}

int ow_file_cursor_erf(struct ow_source *source, struct ow_reader_info *info, struct ow_file_cursor **ret_walk,
                       struct ow_error *err)
{
	info->linktype = 1; /* records have their own */
	info->resolution_ns = 1;
	return records_open(source, &erf_format, info, ret_walk, err);
}
