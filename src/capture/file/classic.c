/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classic pcap: a 24-byte file header, then records. A record is a 16-byte header (seconds, sub-seconds, bytes
 * captured, bytes on the wire; 32 bits each, in the byte order of the magic) and the captured bytes.
 *
 * If the file can be mapped, frames are pointers into the mapping, so a frame costs a few loads. Otherwise the file is
 * read into a buffer with the layout
 *
 *     [ room for a record cut by the end of the last fill | one fill of the file, page-aligned ]
 *
 * so that reads stay page-aligned, and only the cut record is copied.
 *
 * Files may be concatenated (cat a.pcap b.pcap): another file header can be where a record should begin. Its magic and
 * version distinguish it from a record. Reading then continues with the format of that header.
 *
 * Some devices and tools write nanoseconds under a header that declares microseconds: nearly every record then has more
 * than a million of them. The first records tell.
 *
 * Other sub-seconds of a second or more (in some damaged or hand-made files) are added to the seconds, as tcpdump does;
 * unsigned 32-bit fields cannot exceed OW_CAPTURE_TIME_MAX_NS. If the captured length is more than the length on the
 * wire, the captured length is used for both.
 */
#include "capture/file/capture_format.h"
#include "capture/file/pcapng.h"

#include "base/bytes.h"
#include "base/time.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define FILL_BYTES  ((size_t)256 << 10) /* bytes per read; fit into the second-level cache */
#define PAGE_BYTES  4096U
#define SPARE_BYTES (OW_CAPTURE_CAPLEN_MAX + PAGE_BYTES) /* holds any cut record with its header */

struct classic {
	struct ow_file_cursor walk;
	uint8_t *buffer;     /* SPARE_BYTES + FILL_BYTES */
	const uint8_t *next; /* first byte not returned; in the buffer, or in the mapped file (info->mapped) */
	const uint8_t *end;  /* end of the valid bytes */
	uint64_t offset;     /* of `next` in the unpacked file */
	/* From the last file header: */
	bool swapped;
	int64_t tick_ns;
	uint16_t linktype;
};

/* Whether the 4 bytes after a magic are version 2.0 to 2.4, in either byte order. In a record, the sub-seconds are in
 * this place. */
static inline bool is_version(const uint8_t *p)
{
	uint32_t v = ow_load_le32(p);
	return (v & ~0x00070000u) == 0x00000002 || (v & ~0x07000000u) == 0x00000200;
}

/* The kind of file that begins at p, where a record of at least OW_PCAP_RECORD_BYTES is expected. */
static enum ow_file_kind begins_file(const uint8_t *p)
{
	enum ow_file_kind kind = ow_file_kind(p, OW_PCAP_RECORD_BYTES);
	bool sure = kind == OW_FILE_KIND_PCAPNG ? ow_load_le32(p + 8) == OW_PCAPNG_ORDER_MAGIC ||
	                                                  ow_load_be32(p + 8) == OW_PCAPNG_ORDER_MAGIC
	                                        : is_version(p + 4);
	return sure ? kind : OW_FILE_KIND_NONE;
}

/* Returns the complete records of the buffer; stops before an incomplete or too long record, or another file header. */
static inline __attribute__((always_inline)) size_t walk_buffer(struct classic *c, bool swapped,
                                                                struct ow_frame *frames, size_t max)
{
	const uint8_t *p = c->next, *end = c->end;
	uint64_t number = c->walk.number;
	int64_t tick_ns = c->tick_ns;
	uint16_t linktype = c->linktype;
	uint64_t excess = 0;
	size_t n = 0;

	while (n < max && (size_t)(end - p) >= OW_PCAP_RECORD_BYTES) {
		uint32_t caplen = ow_load32(p + 8, swapped), len = ow_load32(p + 12, swapped);
		if (caplen > OW_CAPTURE_CAPLEN_MAX || (size_t)(end - p) - OW_PCAP_RECORD_BYTES < caplen)
			break;
		if (__builtin_expect(is_version(p + 4), 0) && begins_file(p) != OW_FILE_KIND_NONE)
			break;
		int64_t fraction_ns = ow_load32(p + 4, swapped) * tick_ns;
		excess += fraction_ns >= OW_NS_PER_S;
		number++;
		frames[n++] = (struct ow_frame){
			.time_ns = ow_load32(p, swapped) * OW_NS_PER_S + fraction_ns,
			.data = p + OW_PCAP_RECORD_BYTES,
			.caplen = caplen,
			.len = len < caplen ? caplen : len,
			.number = number,
			.linktype = linktype,
		};
		p += OW_PCAP_RECORD_BYTES + caplen;
	}
	c->offset += (uint64_t)(p - c->next);
	c->next = p;
	c->walk.number = number;
	c->walk.info->excess += excess;
	return n;
}

/* Reads a file header, at the start or where a record could be. */
static void take_header(struct classic *c, const uint8_t *head)
{
	uint32_t magic = ow_load_le32(head);

	c->swapped = magic != 0xa1b2c3d4 && magic != 0xa1b23c4d;
	c->tick_ns = ow_load32(head, c->swapped) == 0xa1b23c4d ? 1 : OW_NS_PER_US;
	c->linktype = (uint16_t)ow_load32(head + 20, c->swapped); /* the upper half has the FCS length and flags */
}

/* Finds out by the records behind a header whether their sub-seconds are what it declares. */
static void find_unit(struct classic *c)
{
	int64_t tick_ns = ow_pcap_tick_ns(c->next, (size_t)(c->end - c->next), c->swapped, c->tick_ns);
	c->walk.info->wrong_unit |= tick_ns != c->tick_ns;
	c->tick_ns = tick_ns;
	if (c->tick_ns > c->walk.info->resolution_ns)
		c->walk.info->resolution_ns = c->tick_ns;
}

/* Moves the cut record in front of the fill area and fills that. At the end of the source *ret_got is 0. */
static int refill(struct classic *c, size_t *ret_got, struct ow_error *err)
{
	size_t left = (size_t)(c->end - c->next);
	uint8_t *fill = c->buffer + SPARE_BYTES;
	int r;

	memmove(fill - left, c->next, left);
	if (c->walk.info->mapped) {
		r = ow_source_pass(c->walk.source, c->end, err);
		if (r < 0)
			return r;
	}
	c->next = fill - left;
	c->end = fill;
	c->walk.info->mapped = false;
	r = ow_source_read(c->walk.source, fill, FILL_BYTES, ret_got, err);
	if (r == 0)
		c->end += *ret_got;
	return r;
}

/* Starts reading behind the file header: maps the file if possible. */
static int start(struct classic *c, const uint8_t *head, struct ow_error *err)
{
	size_t size = 0;
	int r = 0;

	take_header(c, head);
	c->walk.info->excess = 0;
	c->next = c->end = c->buffer + SPARE_BYTES;
	c->offset = OW_PCAP_HEADER_BYTES;
	c->walk.info->mapped = ow_source_map(c->walk.source, &c->next, &size);
	if (c->walk.info->mapped)
		c->end = c->next + size;
	else
		r = refill(c, &size, err);
	find_unit(c);
	return r;
}

/* Reports why reading ended: the record at next is too long or incomplete, or the source ended early. */
static void note_end(struct classic *c)
{
	const char *name = ow_source_name(c->walk.source), *packed = ow_source_damage(c->walk.source);
	unsigned long long number = c->walk.number + 1, offset = c->offset;
	size_t left = (size_t)(c->end - c->next);

	if (packed)
		ow_error_set(&c->walk.damage, EINVAL, "%s: %s, after %llu whole records", name, packed, number - 1);
	else if (left >= OW_PCAP_RECORD_BYTES && begins_file(c->next) != OW_FILE_KIND_NONE)
		ow_error_set(&c->walk.damage, EINVAL,
		             "%s: cut off in the header of another file at offset %llu (%d bytes, %zu present)", name,
		             offset, OW_PCAP_HEADER_BYTES, left);
	else if (left >= OW_PCAP_RECORD_BYTES && ow_load32(c->next + 8, c->swapped) > OW_CAPTURE_CAPLEN_MAX)
		ow_error_set(
			&c->walk.damage, EINVAL,
			"%s: damaged at record %llu at offset %llu (a record of %u bytes; at most %u are possible)",
			name, number, offset, ow_load32(c->next + 8, c->swapped), OW_CAPTURE_CAPLEN_MAX);
	else if (left >= OW_PCAP_RECORD_BYTES)
		ow_error_set(&c->walk.damage, EINVAL,
		             "%s: cut off in record %llu at offset %llu (a record of %zu bytes, %zu present)", name,
		             number, offset, OW_PCAP_RECORD_BYTES + (size_t)ow_load32(c->next + 8, c->swapped), left);
	else if (left)
		ow_error_set(&c->walk.damage, EINVAL,
		             "%s: cut off in record %llu at offset %llu (a record header of %d bytes, %zu present)",
		             name, number, offset, OW_PCAP_RECORD_BYTES, left);
}

/*
 * Another file begins at next. Returns 1 if reading continues with it, 0 if its header is incomplete, or an error if
 * the files have different formats.
 */
static int next_file(struct classic *c, enum ow_file_kind kind, struct ow_error *err)
{
	if (kind != OW_FILE_KIND_CLASSIC)
		return ow_error_set(err, ENOTSUP,
		                    "%s: another capture file, in another format (%s), begins at offset %llu: split it "
		                    "there, and convert the parts to one format",
		                    ow_source_name(c->walk.source),
		                    kind == OW_FILE_KIND_PCAPNG ? "pcapng" : "a variant of pcap",
		                    (unsigned long long)c->offset);
	if (c->end - c->next < OW_PCAP_HEADER_BYTES)
		return 0;
	take_header(c, c->next);
	c->next += OW_PCAP_HEADER_BYTES;
	c->offset += OW_PCAP_HEADER_BYTES;
	find_unit(c);
	return 1;
}

static int classic_read(struct ow_file_cursor *walk, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	struct classic *c = (struct classic *)walk;

	if (max > INT_MAX)
		max = INT_MAX;
	for (;;) {
		size_t got = 0;
		int r = c->walk.info->mapped ? ow_source_pass(c->walk.source, c->next, err) : 0;
		if (r < 0)
			return r;
		size_t n = c->swapped ? walk_buffer(c, true, frames, max) : walk_buffer(c, false, frames, max);
		if (n)
			return (int)n;
		bool headed = c->end - c->next >= OW_PCAP_RECORD_BYTES;
		enum ow_file_kind kind = headed ? begins_file(c->next) : OW_FILE_KIND_NONE;
		if (kind != OW_FILE_KIND_NONE && (r = next_file(c, kind, err)) < 0)
			return r;
		if (r == 1)
			continue;
		bool absurd = headed && kind == OW_FILE_KIND_NONE &&
		              ow_load32(c->next + 8, c->swapped) > OW_CAPTURE_CAPLEN_MAX;
		if (!absurd) {
			r = refill(c, &got, err);
			if (r < 0)
				return r;
		}
		if (got == 0) {
			note_end(c);
			return 0;
		}
	}
}

static int classic_rewind(struct ow_file_cursor *walk, struct ow_error *err)
{
	struct classic *c = (struct classic *)walk;
	uint8_t head[OW_PCAP_HEADER_BYTES];
	size_t got;
	int r = ow_source_read(walk->source, head, sizeof head, &got, err);

	return r < 0 ? r : start(c, head, err);
}

static void classic_free(struct ow_file_cursor *walk)
{
	struct classic *c = (struct classic *)walk;

	free(c->buffer);
	free(c);
}

static const struct ow_file_cursor_ops classic_ops = {
	.read = classic_read,
	.rewind = classic_rewind,
	.free = classic_free,
};

int ow_file_cursor_classic(struct ow_source *source, const uint8_t *head, struct ow_reader_info *info,
                           struct ow_file_cursor **ret_walk, struct ow_error *err)
{
	struct classic *c = calloc(1, sizeof *c);
	uint8_t *buffer = aligned_alloc(PAGE_BYTES, SPARE_BYTES + FILL_BYTES);

	if (!c || !buffer) {
		free(c);
		free(buffer);
		return ow_error_set(err, ENOMEM, "%s: out of memory", ow_source_name(source));
	}
	c->walk = (struct ow_file_cursor){.ops = &classic_ops, .source = source, .info = info};
	c->buffer = buffer;
	int r = start(c, head, err);
	if (r < 0) {
		classic_free(&c->walk);
		return r;
	}
	info->format = "pcap";
	info->snaplen = ow_load32(head + 16, c->swapped);
	info->linktype = c->linktype;
	*ret_walk = &c->walk;
	return 0;
}
