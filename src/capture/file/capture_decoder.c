/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes come into `packed`, if they are compressed, and then into `plain`, else directly into `plain`. Frames are pointers into
 * `plain`; a record that is not complete yet is moved to its beginning when there is no more room behind it.
 *
 * pcapng: the head of every block is type 4 | length 4, and the length comes again at its end (capture/file/follow.h has the
 * blocks). Blocks that are not needed are skipped.
 */
#include "capture/file/capture_decoder.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/capture_format.h"
#include "capture/file/erf.h"
#include "capture/file/pcapng.h"
#include "capture/file/snoop.h"
#include "capture/file/unpack.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_BYTES   (64U << 10)
#define RECORD_MAX     (OW_CAPTURE_CAPLEN_MAX + (64U << 10)) /* of pcapng: with its options */
#define PLAIN_BYTES    (RECORD_MAX + (256U << 10))
#define INTERFACES_MAX 4096U /* of a section */
/* Bytes of a text that are shown if it is no capture; fewer are shown as numbers. */
#define TEXT_BYTES 60U
#define TEXT_LEAST 8U

#define BLOCK_MIN 12U

struct interface {
	uint16_t linktype;
	uint64_t per_second;     /* units of its times */
	int64_t offset_s;        /* added to them */
	uint64_t dropped;        /* so far, by its statistics or its packets, whichever says more */
	uint64_t dropped_before; /* the same by its packets */
};

struct ow_capture_decoder {
	const char *name;
	struct ow_capture_decoder_info info;
	enum { BEGINNING, CLASSIC, NEXT_GENERATION, RECORDS } format;
	const struct ow_record_format *records; /* of RECORDS */
	bool big_endian;
	int64_t tick_ns; /* of classic pcap */
	uint64_t number; /* records so far */
	uint64_t offset; /* of the next record in the unpacked capture */
	struct interface *interface;
	size_t interfaces, interface_room;
	/* Compressed captures: */
	bool looked; /* at the first bytes, for a magic */
	const struct ow_unpack_method *method;
	void *unpacker;
	bool between; /* two members; another one may follow */
	int failed;   /* unpacking has failed: its errno, */
	struct ow_error why;
	size_t packed_used; /* bytes in packed */
	uint8_t packed[PACKED_BYTES];
	size_t next, end; /* of the bytes in plain that were not returned */
	uint8_t plain[PLAIN_BYTES];
};

int ow_capture_decoder_create(const char *name, struct ow_capture_decoder **ret_decoder)
{
	struct ow_capture_decoder *d = calloc(1, sizeof *d);
	if (!d)
		return -ENOMEM;
	d->name = name;
	d->info.packing = "";
	*ret_decoder = d;
	return 0;
}

void ow_capture_decoder_free(struct ow_capture_decoder *d)
{
	if (!d)
		return;
	if (d->unpacker)
		d->method->close(d->unpacker);
	free(d->interface);
	free(d);
}

const struct ow_capture_decoder_info *ow_capture_decoder_info(const struct ow_capture_decoder *d)
{
	return &d->info;
}

/* -- bytes --------------------------------------------------------------------------------------------------------- */

static void move_down(struct ow_capture_decoder *d)
{
	memmove(d->plain, d->plain + d->next, d->end - d->next);
	d->end -= d->next;
	d->next = 0;
}

uint8_t *ow_capture_decoder_room(struct ow_capture_decoder *d, size_t *ret_size)
{
	if (d->unpacker) {
		*ret_size = sizeof d->packed - d->packed_used;
		return d->packed + d->packed_used;
	}
	if (d->next == d->end || d->end == sizeof d->plain)
		move_down(d);
	*ret_size = sizeof d->plain - d->end;
	/* The first bytes may be compressed ones. */
	if (!d->looked)
		*ret_size = sizeof d->packed - d->end;
	return d->plain + d->end;
}

void ow_capture_decoder_fill(struct ow_capture_decoder *d, size_t size)
{
	if (d->unpacker)
		d->packed_used += size;
	else
		d->end += size;
}

/* The first bytes are a magic: from now on bytes come into packed. */
static int start_unpacking(struct ow_capture_decoder *d, enum ow_packing packing, struct ow_error *err)
{
	d->info.packing = ow_packing_name(packing);
	d->method = ow_unpack_method(packing);
	if (!d->method)
		return ow_error_set(err, EINVAL, "%s: compressed with %s, which this program cannot unpack", d->name,
		                    d->info.packing);
	d->unpacker = d->method->open();
	if (!d->unpacker)
		return ow_error_set(err, ENOMEM, "%s: out of memory", d->name);
	d->packed_used = d->end - d->next;
	memcpy(d->packed, d->plain + d->next, d->packed_used);
	d->next = d->end = 0;
	return 0;
}

/* Unpacks what has come, as long as there is room. */
static int unpack(struct ow_capture_decoder *d, struct ow_error *err)
{
	struct ow_unpack_io io = {d->packed, d->packed_used, NULL, 0};
	for (;;) {
		if (d->end == sizeof d->plain)
			move_down(d);
		io.out = d->plain + d->end;
		io.out_bytes = sizeof d->plain - d->end;
		size_t in = io.in_bytes, room = io.out_bytes;
		if (d->between && in && d->method->restart(d->unpacker) < 0)
			return ow_error_set(err, ENOMEM, "%s: out of memory", d->name);
		d->between = d->between && !in;
		int r = in && room ? d->method->step(d->unpacker, &io) : OW_UNPACK_MORE;
		d->end += room - io.out_bytes;
		if (r == OW_UNPACK_DAMAGED || r == OW_UNPACK_TOO_LARGE)
			return ow_error_set(err, EINVAL, "%s: %s data %s, after %llu whole records", d->name,
			                    d->info.packing,
			                    r == OW_UNPACK_DAMAGED ? "damaged" : "needs more than 128 MiB of memory",
			                    (unsigned long long)d->number);
		if (r < 0)
			return ow_error_set(err, ENOMEM, "%s: out of memory", d->name);
		d->between = d->between || r == OW_UNPACK_END;
		if (in == io.in_bytes && room == io.out_bytes && r != OW_UNPACK_END)
			break;
	}
	memmove(d->packed, io.in, io.in_bytes);
	d->packed_used = io.in_bytes;
	return 0;
}

/* -- pcap ---------------------------------------------------------------------------------------------------------- */

static void note_snaplen(struct ow_capture_decoder *d, uint32_t snaplen)
{
	if (snaplen && (!d->info.snaplen || snaplen < d->info.snaplen))
		d->info.snaplen = snaplen;
}

static int damaged(const struct ow_capture_decoder *d, const char *what, struct ow_error *err)
{
	return ow_error_set(err, EINVAL, "%s: damaged at record %llu at offset %llu (%s)", d->name,
	                    (unsigned long long)d->number + 1, (unsigned long long)d->offset, what);
}

static void take(struct ow_capture_decoder *d, size_t size)
{
	d->next += size;
	d->offset += size;
}

/* Returns 1, or 0 if bytes are missing. */
static int classic_header(struct ow_capture_decoder *d)
{
	const uint8_t *p = d->plain + d->next;
	if (d->end - d->next < OW_PCAP_HEADER_BYTES)
		return 0;
	uint32_t magic = ow_load_le32(p);
	d->big_endian = magic != 0xa1b2c3d4 && magic != 0xa1b23c4d;
	d->tick_ns = ow_load32(p, d->big_endian) == 0xa1b23c4d ? 1 : OW_NS_PER_US;
	d->info.linktype = (uint16_t)ow_load32(p + 20, d->big_endian);
	note_snaplen(d, ow_load32(p + 16, d->big_endian));
	d->format = CLASSIC;
	d->info.begun = true;
	take(d, OW_PCAP_HEADER_BYTES);
	return 1;
}

/* Returns 1 with a frame, 0 if bytes are missing, or an error. */
static int classic_record(struct ow_capture_decoder *d, struct ow_frame *ret_frame, struct ow_error *err)
{
	const uint8_t *p = d->plain + d->next;
	size_t there = d->end - d->next;
	if (there < OW_PCAP_RECORD_BYTES)
		return 0;
	uint32_t caplen = ow_load32(p + 8, d->big_endian), len = ow_load32(p + 12, d->big_endian);
	if (caplen > OW_CAPTURE_CAPLEN_MAX)
		return damaged(d, "its length is not possible", err);
	if (there - OW_PCAP_RECORD_BYTES < caplen)
		return 0;
	int64_t fraction = ow_load32(p + 4, d->big_endian);
	if (d->number == 0)
		d->tick_ns = ow_pcap_tick_ns(p, there, d->big_endian, d->tick_ns);
	if (fraction >= OW_NS_PER_S / d->tick_ns)
		return damaged(d, "more than a second of microseconds: nanoseconds?", err);
	*ret_frame = (struct ow_frame){
		.time_ns = ow_load32(p, d->big_endian) * OW_NS_PER_S + fraction * d->tick_ns,
		.data = p + OW_PCAP_RECORD_BYTES,
		.caplen = caplen,
		.len = len < caplen ? caplen : len,
		.linktype = d->info.linktype,
	};
	d->number++;
	take(d, OW_PCAP_RECORD_BYTES + caplen);
	return 1;
}

/* -- pcapng -------------------------------------------------------------------------------------------------------- */

/* The option of this code and length, or NULL. */
static const uint8_t *option(const struct ow_capture_decoder *d, const uint8_t *block, size_t at, size_t size,
                             uint16_t code, size_t length)
{
	struct ow_pcapng_option o;
	while (ow_pcapng_next_option(block, size, d->big_endian, &at, &o))
		if (o.code == code && o.length == length)
			return o.value;
	return NULL;
}

static uint64_t units_per_second(uint8_t tsresol)
{
	unsigned n = tsresol & 0x7f;
	uint64_t units = 1;
	if (tsresol & 0x80)
		return n < 63 ? UINT64_C(1) << n : 0;
	for (unsigned i = 0; i < n && units; i++)
		units = n <= 18 ? units * 10 : 0;
	return units;
}

static int take_interface(struct ow_capture_decoder *d, const uint8_t *block, size_t size, struct ow_error *err)
{
	if (size < 16)
		return damaged(d, "the description of an interface is too short", err);
	if (d->interfaces == INTERFACES_MAX)
		return damaged(d, "too many interfaces", err);
	if (OW_GROW(d->interface, d->interface_room, d->interfaces + 1) < 0)
		return ow_error_set(err, ENOMEM, "%s: out of memory", d->name);
	const uint8_t *tsresol = option(d, block, 16, size, OW_PCAPNG_TSRESOL, 1);
	const uint8_t *tsoffset = option(d, block, 16, size, OW_PCAPNG_TSOFFSET, 8);
	struct interface interface = {.linktype = ow_load16(block + 8, d->big_endian),
	                              .per_second = units_per_second(tsresol ? *tsresol : 6),
	                              .offset_s = tsoffset ? (int64_t)ow_load64(tsoffset, d->big_endian) : 0};
	const int64_t most_s = OW_CAPTURE_TIME_MAX_NS / OW_NS_PER_S;
	if (!interface.per_second || interface.offset_s > most_s || interface.offset_s < -most_s)
		return damaged(d, "its times are not possible", err);
	note_snaplen(d, ow_load32(block + 12, d->big_endian));
	if (d->interfaces == 0)
		d->info.linktype = interface.linktype;
	d->interface[d->interfaces++] = interface;
	return 0;
}

/* dropped: since the start of the capture. */
static void note_dropped(struct ow_capture_decoder *d, uint32_t number, uint64_t dropped)
{
	uint64_t *before = &d->interface[number].dropped;
	if (dropped <= *before)
		return;
	d->info.dropped += dropped - *before;
	*before = dropped;
}

static void take_statistics(struct ow_capture_decoder *d, const uint8_t *block, size_t size)
{
	uint32_t number = size >= 20 ? ow_load32(block + 8, d->big_endian) : UINT32_MAX;
	if (number >= d->interfaces)
		return;
	const uint8_t *by_interface = option(d, block, 20, size, OW_PCAPNG_IFDROP, 8);
	const uint8_t *by_system = option(d, block, 20, size, OW_PCAPNG_OSDROP, 8);
	uint64_t a = by_interface ? ow_load64(by_interface, d->big_endian) : 0,
		 b = by_system ? ow_load64(by_system, d->big_endian) : 0;
	note_dropped(d, number, a > b ? a : b);
}

/* What a packet says of those that were dropped before it. */
static void take_drops(struct ow_capture_decoder *d, const uint8_t *block, size_t size, uint32_t type, uint32_t number)
{
	uint16_t drops = ow_load16(block + 10, d->big_endian);
	const uint8_t *count =
		type == OW_PCAPNG_ENHANCED
			? option(d, block, 28 + ((size_t)ow_load32(block + 20, d->big_endian) + 3) / 4 * 4, size,
	                         OW_PCAPNG_DROPCOUNT, 8)
			: NULL;
	if (count)
		d->interface[number].dropped_before += ow_load64(count, d->big_endian);
	else if (type == OW_PCAPNG_PACKET && drops != OW_PCAPNG_DROPS_UNKNOWN)
		d->interface[number].dropped_before += drops;
	note_dropped(d, number, d->interface[number].dropped_before);
}

/* Time in nanoseconds; 0 if it is not possible. */
static int64_t time_of(const struct interface *interface, uint64_t units)
{
	uint64_t seconds = units / interface->per_second, rest = units % interface->per_second;
	if (seconds > (uint64_t)(OW_CAPTURE_TIME_MAX_NS / OW_NS_PER_S))
		return 0;
	int64_t whole = (int64_t)seconds + interface->offset_s;
	if (whole < 0 || whole >= OW_CAPTURE_TIME_MAX_NS / OW_NS_PER_S)
		return 0;
	/* rest * 10^9 fits: per_second is below 2^63 */
	return whole * OW_NS_PER_S + (int64_t)((unsigned __int128)rest * OW_NS_PER_S / interface->per_second);
}

/* Returns 1 with a frame, 0 without a time, or an error. */
static int take_packet(struct ow_capture_decoder *d, const uint8_t *block, size_t size, uint32_t type,
                       struct ow_frame *ret_frame, struct ow_error *err)
{
	if (type == OW_PCAPNG_SIMPLE) {
		d->info.untimed++;
		return 0;
	}
	uint32_t number = size < 28                  ? UINT32_MAX
	                  : type == OW_PCAPNG_PACKET ? ow_load16(block + 8, d->big_endian)
	                                             : ow_load32(block + 8, d->big_endian);
	if (number >= d->interfaces)
		return damaged(d, size < 28 ? "it is too short" : "its interface was not described", err);
	const struct interface *interface = &d->interface[number];
	uint32_t caplen = ow_load32(block + 20, d->big_endian), len = ow_load32(block + 24, d->big_endian);
	if (caplen > OW_CAPTURE_CAPLEN_MAX || caplen > size - 28)
		return damaged(d, "its length is not possible", err);
	take_drops(d, block, size, type, number);
	uint64_t units = (uint64_t)ow_load32(block + 12, d->big_endian) << 32 | ow_load32(block + 16, d->big_endian);
	*ret_frame = (struct ow_frame){
		.time_ns = time_of(interface, units),
		.data = block + 28,
		.caplen = caplen,
		.len = len < caplen ? caplen : len,
		.linktype = interface->linktype,
	};
	return 1;
}

/* A section has its own byte order and interfaces. Returns false if it has no byte order. */
static bool begin_section(struct ow_capture_decoder *d, const uint8_t *block)
{
	d->big_endian = ow_load_be32(block + 8) == OW_PCAPNG_ORDER_MAGIC;
	d->interfaces = 0;
	d->format = NEXT_GENERATION;
	d->info.begun = true;
	return d->big_endian || ow_load_le32(block + 8) == OW_PCAPNG_ORDER_MAGIC;
}

/* A block. Returns 1 with a frame, 0 if bytes are missing, -EAGAIN if it has no frame, or another error. */
static int take_block(struct ow_capture_decoder *d, struct ow_frame *ret_frame, struct ow_error *err)
{
	const uint8_t *p = d->plain + d->next;
	size_t there = d->end - d->next;
	if (there < BLOCK_MIN)
		return 0;
	if (ow_load_le32(p) == OW_PCAPNG_SECTION && !begin_section(d, p))
		return damaged(d, "a section without byte order", err);
	uint32_t type = ow_load32(p, d->big_endian), length = ow_load32(p + 4, d->big_endian);
	if (length < BLOCK_MIN || length % 4 || length > RECORD_MAX)
		return damaged(d, "the length of a block is not possible", err);
	if (there < length)
		return 0;
	int r = 0;
	if (ow_load32(p + length - 4, d->big_endian) != length)
		return damaged(d, "the two lengths of a block differ", err);
	d->number++;
	if (type == OW_PCAPNG_INTERFACE)
		r = take_interface(d, p, length - 4, err);
	else if (type == OW_PCAPNG_STATISTICS)
		take_statistics(d, p, length - 4);
	else if (type == OW_PCAPNG_ENHANCED || type == OW_PCAPNG_PACKET || type == OW_PCAPNG_SIMPLE)
		r = take_packet(d, p, length - 4, type, ret_frame, err);
	if (r < 0)
		return r;
	take(d, length);
	return r == 1 ? 1 : -EAGAIN;
}

/* -- snoop and ERF ------------------------------------------------------------------------------------------------- */

static int begin_records(struct ow_capture_decoder *d, const struct ow_record_format *format)
{
	d->records = format;
	d->format = RECORDS;
	d->info.begun = true;
	take(d, format->header);
	return 1;
}

/* Returns 1, 0 if bytes are missing, or an error. */
static int snoop_header(struct ow_capture_decoder *d, struct ow_error *err)
{
	if (d->end - d->next < OW_SNOOP_HEADER)
		return 0;
	int r = ow_snoop_begin(d->plain + d->next, d->name, &d->info.linktype, err);
	return r < 0 ? r : begin_records(d, &ow_snoop_format);
}

/* A record. Returns 1 with a frame, 0 if bytes are missing, -EAGAIN if it has no frame, or another error. */
static int take_record(struct ow_capture_decoder *d, struct ow_frame *ret_frame, struct ow_error *err)
{
	const uint8_t *p = d->plain + d->next;
	size_t there = d->end - d->next;
	if (there < d->records->record)
		return 0;
	size_t length = d->records->length(p);
	if (!length)
		return damaged(d, "its length is not possible", err);
	if (there < length)
		return 0;
	int packets = d->records->parse(d->info.linktype, p, length, ret_frame);
	if (packets < 0)
		return damaged(d, "its lengths contradict each other", err);
	if (packets && d->records == &ow_erf_format && !d->number)
		d->info.linktype = ret_frame->linktype;
	d->info.dropped = d->records->dropped(p, d->info.dropped);
	d->number += (uint64_t)packets;
	take(d, length);
	return packets ? 1 : -EAGAIN;
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

/* Whether these are characters and nothing else. */
static bool is_text(const uint8_t *p, size_t size)
{
	size_t length = 0;
	while (length < size && ((p[length] >= ' ' && p[length] <= '~') || p[length] == '\n' || p[length] == '\r'))
		length++;
	return size && length == size;
}

/*
 * Whether a capture may begin with these few bytes: all formats and methods of compression but ERF show it by the first four.
 * A text is not taken for ERF: it may be a prompt that nothing follows.
 */
static bool may_begin(const uint8_t *p, size_t size)
{
	static const uint8_t magic[][4] = {{0xd4, 0xc3, 0xb2, 0xa1}, {0xa1, 0xb2, 0xc3, 0xd4}, {0x4d, 0x3c, 0xb2, 0xa1},
	                                   {0xa1, 0xb2, 0x3c, 0x4d}, {0x0a, 0x0d, 0x0d, 0x0a}, {0x28, 0xb5, 0x2f, 0xfd},
	                                   {0x04, 0x22, 0x4d, 0x18}, {0xfd, '7', 'z', 'X'},    {'s', 'n', 'o', 'o'}};
	if (!is_text(p, size))
		return true;
	if (size >= 4)
		size = 4;
	for (size_t i = 0; i < sizeof magic / sizeof *magic; i++) {
		if (memcmp(p, magic[i], size) == 0)
			return true;
	}
	/* gzip, bzip2, a frame of zstd that is skipped */
	return memcmp(p, "\x1f\x8b", size < 2 ? size : 2) == 0 || memcmp(p, "BZh", size < 3 ? size : 3) == 0 ||
	       ((p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", size - 1) == 0);
}

static int refuse(const struct ow_capture_decoder *d, const uint8_t *p, size_t size, struct ow_error *err)
{
	char bytes[3 * 4 + 1] = "", text[TEXT_BYTES + 1] = "";
	size_t length = 0;
	for (size_t i = 0; i < size && i < 4; i++)
		snprintf(bytes + 3 * i, sizeof bytes - 3 * i, " %02x", p[i]);
	while (length < size && length < TEXT_BYTES && p[length] >= ' ' && p[length] <= '~') {
		text[length] = (char)p[length];
		length++;
	}
	/* A greeting of a shell, or an error that went to standard output. */
	if (length >= TEXT_LEAST)
		return ow_error_set(err, EINVAL, "%s: no capture: it begins with '%s'", d->name, text);
	return ow_error_set(err, EINVAL, "%s: no capture: it begins with%s", d->name, bytes);
}

/* Finds the format. Returns 1, or 0 if bytes are missing. */
static int begin(struct ow_capture_decoder *d, struct ow_error *err)
{
	const uint8_t *p = d->plain + d->next;
	size_t there = d->end - d->next;
	if (there < OW_PACKING_MAGIC_MAX + 2)
		return there && !may_begin(p, there) ? refuse(d, p, there, err) : 0;
	enum ow_packing packing = d->looked ? OW_PACKING_NONE : ow_packing_of(p, there);
	d->looked = true;
	if (packing != OW_PACKING_NONE) {
		int r = start_unpacking(d, packing, err);
		if (r == 0)
			d->failed = unpack(d, &d->why);
		return r;
	}
	int erf = ow_erf_begins(p, there);
	switch (ow_file_kind(p, there)) {
	case OW_FILE_KIND_CLASSIC:
		return classic_header(d);
	case OW_FILE_KIND_PCAPNG:
		d->format = NEXT_GENERATION;
		return 1;
	case OW_FILE_KIND_SNOOP:
		return snoop_header(d, err);
	case OW_FILE_KIND_NONE:
		return erf < 0 ? refuse(d, p, there, err) : erf ? begin_records(d, &ow_erf_format) : 0;
	default:
		return ow_error_set(err, EINVAL, "%s: this variant of pcap cannot be read while it is written",
		                    d->name);
	}
}

static int next_frame(struct ow_capture_decoder *d, struct ow_frame *ret_frame, struct ow_error *err)
{
	int r;
	if (d->format == BEGINNING) {
		r = begin(d, err);
		if (r == 0 && d->unpacker && d->end > d->next)
			r = begin(d, err);
		if (r <= 0)
			return r;
	}
	do
		r = d->format == CLASSIC   ? classic_record(d, ret_frame, err)
		    : d->format == RECORDS ? take_record(d, ret_frame, err)
		                           : take_block(d, ret_frame, err);
	while (r == -EAGAIN);
	return r;
}

/* The whole frames in plain. Returns their number, 0 if bytes are missing, or an error. */
static int whole_frames(struct ow_capture_decoder *d, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	size_t n = 0;
	int r = 0;
	while (n < max) {
		r = next_frame(d, &frames[n], err);
		if (r <= 0)
			break;
		/* A frame without a time belongs nowhere. */
		if (frames[n].time_ns <= 0)
			d->info.untimed++;
		else
			n++;
	}
	return n ? (int)n : r;
}

int ow_capture_decoder_read(struct ow_capture_decoder *d, struct ow_frame *frames, size_t max, struct ow_error *err)
{
	int r = whole_frames(d, frames, max, err);
	/* Frames that were returned are invalid now, so that bytes may move; less than a record is left of them. */
	if (r == 0 && d->unpacker && !d->failed) {
		d->failed = unpack(d, &d->why);
		r = whole_frames(d, frames, max, err);
	}
	/* Damage is reported when the frames before it have been taken: it is found again. */
	if (r != 0 || !d->failed)
		return r;
	*err = d->why;
	return d->failed;
}

bool ow_capture_decoder_ends_whole(const struct ow_capture_decoder *d, struct ow_error *err)
{
	size_t left = d->end - d->next;
	if (d->format == BEGINNING) {
		ow_error_set(err, EINVAL, left || d->unpacker ? "%s: ended before its first packet" : "%s: was empty",
		             d->name);
		return false;
	}
	if (!left && (!d->unpacker || (d->between && !d->packed_used)))
		return true;
	ow_error_set(err, EINVAL, "%s: cut off in record %llu at offset %llu", d->name,
	             (unsigned long long)d->number + 1, (unsigned long long)d->offset);
	return false;
}
