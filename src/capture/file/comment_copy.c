/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of pcapng:
 *
 *     section:  0a0d0d0a | length | byte-order magic 4 | version 4 | section length 8 | options | length
 *     packet:   6 or 2 | length | interface 4 | time 8 | caplen 4 | len 4 | padded bytes | options | length
 *     option:   code 2 | length 2 | padded value            comment: 1, end: 0
 */
#include "capture/file/comment_copy.h"

#include "base/array.h"
#include "base/bytes.h"
#include "capture/file/capture_format.h"
#include "capture/file/pcapng.h"
#include "capture/file/sink.h"
#include "capture/file/writer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH           64
#define HEAD_BYTES      12U
#define SECTION_BYTES   28U
#define INTERFACE_BYTES 32U
#define PACKET_BYTES    28U         /* before the packet */
#define BLOCK_MAX       (16U << 20) /* libpcap's limit */

struct copy {
	struct ow_sink *sink;
	const char *to;
	bool gzip;
	ow_comment_of *comment_of;
	void *arg;
	bool big_endian; /* of this section */
	/* Files of a set, one after the other: their packets must be the next ones of the set. NULL for one file. */
	struct ow_reader *set;
	const char *file; /* the one that is copied */
	uint64_t number;  /* of the last record */
	uint8_t *block;
	size_t room;
	uint16_t *linktype; /* of the interfaces that were written */
	size_t interfaces, linktype_room;
};

static uint32_t padded(uint32_t length)
{
	return (length + 3) / 4 * 4;
}

static int put(struct copy *c, const uint8_t *bytes, size_t size, struct ow_error *err)
{
	while (size) {
		size_t n = size < OW_SINK_ROOM_BYTES ? size : OW_SINK_ROOM_BYTES;
		uint8_t *room;
		int r = ow_sink_room(c->sink, n, &room, err);
		if (r < 0)
			return r;
		memcpy(room, bytes, n);
		ow_sink_add(c->sink, n);
		bytes += n;
		size -= n;
	}
	return 0;
}

/* The comment as an option, padded. Returns its bytes. */
static uint32_t make_option(const struct copy *c, const char *text, uint32_t length, uint8_t *ret_option)
{
	uint32_t head = c->big_endian ? OW_PCAPNG_COMMENT << 16 | length : length << 16 | OW_PCAPNG_COMMENT;
	memset(ret_option, 0, 4 + padded(length));
	ow_store32(ret_option, head, c->big_endian);
	memcpy(ret_option + 4, text, length);
	return 4 + padded(length);
}

/* Bytes of the options that are whole: a longer one than its block makes the file unreadable for Wireshark. */
static uint32_t whole_options(const struct copy *c, const uint8_t *options, uint32_t size)
{
	uint32_t at = 0;
	while (size - at >= 4) {
		uint32_t head = ow_load32(options + at, c->big_endian);
		uint32_t code = c->big_endian ? head >> 16 : head & 0xffff,
			 length = c->big_endian ? head & 0xffff : head >> 16;
		if (code == 0)
			return size;
		if (padded(length) > size - at - 4)
			return at;
		at += 4 + padded(length);
	}
	return at;
}

/* Writes a packet block whose options begin at `options`, with the comment before those that are whole. */
static int put_packet(struct copy *c, uint8_t *block, uint32_t length, uint32_t options, struct ow_error *err)
{
	static const uint8_t end[4];
	char text[OW_COMMENT_MAX];
	uint8_t option[OW_COMMENT_MAX + 8], tail[4];
	int commented = c->comment_of(c->arg, c->number, text, err);
	if (commented <= 0)
		return commented < 0 ? commented : put(c, block, length, err);
	uint32_t added = make_option(c, text, (uint32_t)commented, option), all = length - 4 - options;
	uint32_t old = whole_options(c, block + options, all), ends = old && old == all ? 0 : sizeof end;
	ow_store32(tail, options + added + old + ends + 4, c->big_endian);
	memcpy(block + 4, tail, sizeof tail);
	int r = put(c, block, options, err);
	if (r == 0)
		r = put(c, option, added, err);
	if (r == 0)
		r = put(c, block + options, old, err);
	if (r == 0)
		r = put(c, end, ends, err);
	return r < 0 ? r : put(c, tail, sizeof tail, err);
}

static int put_section(struct copy *c, struct ow_error *err)
{
	uint8_t p[SECTION_BYTES] = {0};
	ow_store32(p, OW_PCAPNG_SECTION, c->big_endian);
	ow_store32(p + 4, SECTION_BYTES, c->big_endian);
	ow_store32(p + 8, OW_PCAPNG_ORDER_MAGIC, c->big_endian);
	ow_store32(p + 12, 1, c->big_endian); /* version 1.0 */
	memset(p + 16, 0xff, 8);
	ow_store32(p + 24, SECTION_BYTES, c->big_endian);
	return put(c, p, sizeof p, err);
}

/* -- a pcapng file, block by block -- */

/* Reads the next block into c->block. *ret_length: 0 at the end, or where the file is damaged. */
static int read_block(struct copy *c, struct ow_source *source, uint32_t *ret_length, struct ow_error *err)
{
	uint8_t head[HEAD_BYTES];
	size_t got;
	*ret_length = 0;
	int r = ow_source_read(source, head, sizeof head, &got, err);
	if (r < 0 || got < sizeof head)
		return r;
	if (ow_load_le32(head) == OW_PCAPNG_SECTION)
		c->big_endian = ow_load_be32(head + 8) == OW_PCAPNG_ORDER_MAGIC;
	uint32_t length = ow_load32(head + 4, c->big_endian);
	if (length < HEAD_BYTES || length > BLOCK_MAX || length % 4)
		return 0;
	if (OW_GROW(c->block, c->room, length) < 0)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", c->to);
	memcpy(c->block, head, sizeof head);
	r = ow_source_read(source, c->block + sizeof head, length - sizeof head, &got, err);
	if (r == 0 && got == length - sizeof head)
		*ret_length = length;
	return r;
}

/* Where the options of the packet block in c->block begin; 0 if it is damaged. */
static uint32_t options_of(const struct copy *c, uint32_t length)
{
	uint32_t caplen = length < PACKET_BYTES + 4 ? UINT32_MAX : ow_load32(c->block + 20, c->big_endian);
	return caplen > BLOCK_MAX || PACKET_BYTES + padded(caplen) > length - 4 ? 0 : PACKET_BYTES + padded(caplen);
}

/*
 * The number of the packet in c->block. Returns 1 if it is not the next one of the set: then files of the set cover the
 * same time.
 */
static int next_number(struct copy *c, uint32_t caplen, struct ow_error *err)
{
	struct ow_frame frame;
	c->number++;
	if (!c->set)
		return 0;
	int n = ow_reader_read(c->set, &frame, 1, err);
	if (n < 0)
		return n;
	return n == 0 || ow_reader_last_file(c->set) != c->file || frame.number != c->number ||
	       frame.caplen != caplen || memcmp(frame.data, c->block + PACKET_BYTES, caplen) != 0;
}

enum { DAMAGED = 1, NOT_IN_ORDER = 2 };

/* Returns 0, a negative errno, or why copying ends. */
static int copy_block(struct copy *c, uint32_t length, struct ow_error *err)
{
	uint32_t type = ow_load32(c->block, c->big_endian), options = 0;
	bool packet = type == OW_PCAPNG_PACKET || type == OW_PCAPNG_ENHANCED;
	if (type == OW_PCAPNG_SECTION && length >= SECTION_BYTES)
		memset(c->block + 16, 0xff, 8); /* its length: unknown, because it becomes longer */
	if (packet && !(options = options_of(c, length)))
		return DAMAGED;
	if (!packet) {
		c->number += type == OW_PCAPNG_SIMPLE;
		return c->set && type == OW_PCAPNG_SIMPLE ? NOT_IN_ORDER : put(c, c->block, length, err);
	}
	int r = next_number(c, ow_load32(c->block + 20, c->big_endian), err);
	return r ? r < 0 ? r : NOT_IN_ORDER : put_packet(c, c->block, length, options, err);
}

static int copy_blocks(struct copy *c, const char *from, struct ow_error *err)
{
	struct ow_source *source;
	uint32_t length;
	int r = ow_source_open(from, &source, err);
	if (r < 0)
		return r;
	r = read_block(c, source, &length, err);
	if (r == 0 && !length)
		r = put_section(c, err); /* damaged at its beginning: the copy is an empty file */
	while (r == 0 && length) {
		r = copy_block(c, length, err);
		if (r == 0)
			r = read_block(c, source, &length, err);
	}
	ow_source_close(source);
	return r == DAMAGED ? 0 : r;
}

/* -- frames of any capture -- */

static int put_interface(struct copy *c, uint16_t linktype, uint32_t snaplen, struct ow_error *err)
{
	uint8_t p[INTERFACE_BYTES] = {0};
	if (OW_GROW(c->linktype, c->linktype_room, c->interfaces + 1) < 0)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", c->to);
	c->linktype[c->interfaces++] = linktype;
	ow_store32(p, OW_PCAPNG_INTERFACE, c->big_endian);
	ow_store32(p + 4, sizeof p, c->big_endian);
	ow_store32(p + 8, linktype, c->big_endian);
	ow_store32(p + 12, snaplen, c->big_endian);
	ow_store32(p + 16, 1U << 16 | OW_PCAPNG_TSRESOL, c->big_endian);
	p[20] = 9; /* nanoseconds */
	ow_store32(p + 28, sizeof p, c->big_endian);
	return put(c, p, sizeof p, err);
}

/* The interface of a link type; a new one if there is none yet. */
static int find_interface(struct copy *c, uint16_t linktype, uint32_t snaplen, uint32_t *ret_interface,
                          struct ow_error *err)
{
	size_t i = 0;
	while (i < c->interfaces && c->linktype[i] != linktype)
		i++;
	*ret_interface = (uint32_t)i;
	return i < c->interfaces ? 0 : put_interface(c, linktype, snaplen, err);
}

static int copy_frame(struct copy *c, const struct ow_frame *frame, uint32_t snaplen, struct ow_error *err)
{
	uint32_t options = PACKET_BYTES + padded(frame->caplen), interface;
	int r = find_interface(c, frame->linktype, snaplen, &interface, err);
	if (r < 0)
		return r;
	if (frame->time_ns < 0)
		return ow_error_set(err, ERANGE, "%s: record %llu: a time before 1970 cannot be stored", c->to,
		                    (unsigned long long)frame->number);
	if (OW_GROW(c->block, c->room, options + 4) < 0)
		return ow_error_set(err, ENOMEM, "%s: not enough memory", c->to);
	uint8_t *p = c->block;
	memset(p, 0, options + 4);
	ow_store32(p, OW_PCAPNG_ENHANCED, c->big_endian);
	ow_store32(p + 4, options + 4, c->big_endian);
	ow_store32(p + 8, interface, c->big_endian);
	ow_store32(p + 12, (uint32_t)((uint64_t)frame->time_ns >> 32), c->big_endian);
	ow_store32(p + 16, (uint32_t)frame->time_ns, c->big_endian);
	ow_store32(p + 20, frame->caplen, c->big_endian);
	ow_store32(p + 24, frame->len, c->big_endian);
	if (frame->caplen)
		memcpy(p + PACKET_BYTES, frame->data, frame->caplen);
	ow_store32(p + options, options + 4, c->big_endian);
	c->number = frame->number;
	return put_packet(c, p, options + 4, options, err);
}

static int copy_frames(struct copy *c, struct ow_reader *reader, struct ow_error *err)
{
	const struct ow_reader_info *info = ow_reader_info(reader);
	struct ow_frame frame[BATCH];
	int n, r = put_section(c, err);
	if (r == 0)
		r = put_interface(c, info->linktype, info->snaplen, err);
	while (r == 0 && (n = ow_reader_read(reader, frame, BATCH, err)) != 0) {
		r = n < 0 ? n : 0;
		for (int i = 0; i < n && r == 0; i++)
			r = copy_frame(c, &frame[i], info->snaplen, err);
	}
	return r;
}

/* -- sets of files -- */

static bool is_pcapng(const char *path, bool *ret_big_endian)
{
	struct ow_source *source;
	uint8_t head[HEAD_BYTES];
	size_t got;
	if (ow_source_open(path, &source, NULL) < 0)
		return false;
	bool is = ow_source_read(source, head, sizeof head, &got, NULL) == 0 && got == sizeof head &&
	          ow_load_le32(head) == OW_PCAPNG_SECTION;
	*ret_big_endian = is && ow_load_be32(head + 8) == OW_PCAPNG_ORDER_MAGIC;
	ow_source_close(source);
	return is;
}

/* Whether all files are pcapng with one byte order, so that they can follow each other in one file. */
static bool can_follow(const struct ow_reader *set)
{
	bool big = false, first = false;
	for (size_t i = 0; ow_reader_file(set, i); i++) {
		if (!is_pcapng(ow_reader_file(set, i), &big) || (i && big != first))
			return false;
		first = big;
	}
	return ow_reader_file(set, 0);
}

/* Copies the files of a set one after the other. NOT_IN_ORDER: they cannot be. */
static int copy_files(struct copy *c, struct ow_reader *set, struct ow_error *err)
{
	struct ow_frame frame;
	int r = can_follow(set) ? 0 : NOT_IN_ORDER;
	c->set = set;
	for (size_t i = 0; r == 0 && (c->file = ow_reader_file(set, i)); i++)
		r = copy_blocks(c, c->file, err);
	if (r == 0 && ow_reader_read(set, &frame, 1, err) != 0)
		r = NOT_IN_ORDER;
	c->set = NULL;
	return r;
}

/* What was written of a set is left out, and it is copied frame by frame. */
static int start_again(struct copy *c, struct ow_reader *set, struct ow_error *err)
{
	ow_sink_abort(c->sink);
	c->sink = NULL;
	c->number = 0;
	c->big_endian = false;
	int r = ow_sink_open(c->to, c->gzip, &c->sink, err);
	return r < 0 ? r : ow_reader_rewind(set, err);
}

static int copy_set(struct copy *c, struct ow_reader *set, struct ow_error *err)
{
	int r = copy_files(c, set, err);
	if (r != NOT_IN_ORDER)
		return r;
	r = start_again(c, set, err);
	return r < 0 ? r : copy_frames(c, set, err);
}

static int copy_capture(struct copy *c, const char *from, struct ow_error *err)
{
	struct ow_reader *reader;
	uint64_t number;
	int r = ow_reader_open(from, &reader, err);
	if (r < 0)
		return r;
	const struct ow_reader_info *info = ow_reader_info(reader);
	bool port = ow_reader_port_of_path(from, &number) > 0;
	if (!info->files && !port && strcmp(info->format, "pcapng") == 0)
		r = copy_blocks(c, from, err);
	else
		r = info->files && !port ? copy_set(c, reader, err) : copy_frames(c, reader, err);
	ow_reader_close(reader);
	return r;
}

int ow_comment_copy(const char *from, const char *to, uint64_t records, ow_comment_of *comment_of, void *arg,
                    struct ow_error *err)
{
	struct copy c = {.to = to, .comment_of = comment_of, .arg = arg};
	enum ow_file_format format;
	ow_writer_options_of_name(to, &format, &c.gzip);
	int r = ow_sink_open(to, c.gzip, &c.sink, err);
	if (r < 0)
		return r;
	r = copy_capture(&c, from, err);
	if (r == 0 && c.number < records)
		r = ow_error_set(err, EIO, "%s has changed since it was matched", from);
	if (r < 0)
		ow_sink_abort(c.sink);
	else
		r = ow_sink_close(c.sink, err);
	free(c.block);
	free(c.linktype);
	return r;
}
