/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the blocks of a pcapng stream that arrives in chunks of any size. */
#include "capture/file/follow.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/pcapng.h"
#include <stdlib.h>

#define HEAD_BYTES       12U /* of every block: type, length, and the byte-order magic or interface or second length */
#define INTERFACE_BYTES  16U /* before the options */
#define STATISTICS_BYTES 20U
#define LINKTYPE_AT      8U
#define SNAPLEN_AT       12U
#define TSRESOL_DEFAULT  6U
/* libpcap multiplies the fraction of a second by 10^9 in 64 bits: 2^n * 10^9 must stay below 2^64. */
#define BINARY_MAX 34U
/* libpcap sees LINKTYPE_EBHSCR for every interface: it maps to itself, has no special handling, and allows frames of 8
 * MiB. */
#define LINKTYPE_NEUTRAL 279U

/* The if_tsresol byte: 10^-n seconds, or 2^-n if the top bit is set. Returns whole nanoseconds, at least 1. */
static int64_t tsresol_ns(uint8_t tsresol)
{
	unsigned n = tsresol & 0x7f;
	int64_t ns = OW_NS_PER_S;

	if (tsresol & 0x80)
		return n < 30 ? ns >> n : 1;
	for (unsigned i = 0; i < n && ns > 1; i++)
		ns /= 10;
	return ns;
}

static uint8_t find_tsresol(const struct ow_follow *f, size_t size)
{
	struct ow_pcapng_option o;
	size_t at = INTERFACE_BYTES;

	while (ow_pcapng_next_option(f->kept, size, f->big_endian, &at, &o))
		if (o.code == OW_PCAPNG_TSRESOL && o.length == 1)
			return *o.value;
	return TSRESOL_DEFAULT;
}

static bool add_interface(struct ow_follow *f, uint16_t linktype)
{
	if (f->n_interface == OW_FOLLOW_INTERFACES_MAX ||
	    OW_GROW(f->interface, f->interface_room, f->n_interface + 1) < 0)
		return false;
	f->interface[f->n_interface++] = (struct ow_follow_interface){.linktype = linktype};
	return true;
}

static void end_interface(struct ow_follow *f)
{
	size_t size = f->length < sizeof f->kept ? f->length - 4 : sizeof f->kept;
	uint16_t linktype = ow_load16(f->kept + LINKTYPE_AT, f->big_endian);
	uint8_t tsresol;
	int64_t ns;

	if (size < INTERFACE_BYTES || !add_interface(f, linktype)) {
		f->lost = true;
		return;
	}
	tsresol = find_tsresol(f, size);
	ns = tsresol_ns(tsresol);
	if (f->interfaces++ == 0) {
		f->linktype = linktype;
		f->snaplen = ow_load32(f->kept + SNAPLEN_AT, f->big_endian);
	}
	if (tsresol & 0x80 && (tsresol & 0x7f) > BINARY_MAX)
		f->too_fine = true;
	if (ns > f->resolution_ns)
		f->resolution_ns = ns;
}

/* The counts are those since the start of the capture; a file may have several of an interface. */
static void end_statistics(struct ow_follow *f)
{
	size_t size = f->length < sizeof f->kept ? f->length - 4 : sizeof f->kept, at = STATISTICS_BYTES;
	uint32_t number = ow_load32(f->kept + 8, f->big_endian);
	uint64_t dropped = 0, *before;
	struct ow_pcapng_option o;

	while (ow_pcapng_next_option(f->kept, size, f->big_endian, &at, &o))
		if ((o.code == OW_PCAPNG_IFDROP || o.code == OW_PCAPNG_OSDROP) && o.length == 8 &&
		    ow_load64(o.value, f->big_endian) > dropped)
			dropped = ow_load64(o.value, f->big_endian);
	if (number >= f->n_interface)
		return;
	before = &f->interface[number].dropped;
	if (dropped <= *before)
		return;
	f->dropped = dropped - *before > UINT64_MAX - f->dropped ? UINT64_MAX : f->dropped + (dropped - *before);
	*before = dropped;
}

static void begin_section(struct ow_follow *f)
{
	bool big_endian = ow_load_be32(f->kept + 8) == OW_PCAPNG_ORDER_MAGIC;

	f->lost = !big_endian && ow_load_le32(f->kept + 8) != OW_PCAPNG_ORDER_MAGIC;
	if (f->sections++ && big_endian != f->big_endian && !f->lost)
		f->mixed_order = true;
	f->big_endian = big_endian;
	f->n_interface = 0;
}

/* The first HEAD_BYTES are known. */
static void begin_block(struct ow_follow *f)
{
	uint32_t type = ow_load32(f->kept, f->big_endian), interface = 0;

	if (type == OW_PCAPNG_SECTION)
		begin_section(f);
	f->length = ow_load32(f->kept + 4, f->big_endian);
	if (f->length < HEAD_BYTES || f->length % 4)
		f->lost = true;
	if (type == OW_PCAPNG_ENHANCED)
		interface = ow_load32(f->kept + 8, f->big_endian);
	if (type == OW_PCAPNG_PACKET)
		interface = ow_load16(f->kept + 8, f->big_endian);
	if ((type == OW_PCAPNG_ENHANCED || type == OW_PCAPNG_PACKET || type == OW_PCAPNG_SIMPLE) &&
	    interface < f->n_interface)
		f->packet_linktype = f->interface[interface].linktype; /* libpcap rejects other interface numbers */
}

/* Valid only after the first 8 bytes of the block. */
static bool is_interface(const struct ow_follow *f)
{
	return ow_load32(f->kept, f->big_endian) == OW_PCAPNG_INTERFACE;
}

static bool is_statistics(const struct ow_follow *f)
{
	return ow_load32(f->kept, f->big_endian) == OW_PCAPNG_STATISTICS;
}

/* How many bytes of the current block to keep, as far as it is known yet. */
static uint64_t keep_size(const struct ow_follow *f)
{
	if (f->pos < HEAD_BYTES)
		return HEAD_BYTES;
	if (!is_interface(f) && !is_statistics(f))
		return 0;
	return f->length < sizeof f->kept ? f->length : sizeof f->kept;
}

/* The byte that libpcap sees at pos of an interface description. */
static uint8_t neutral(const struct ow_follow *f, uint8_t byte)
{
	switch (f->pos) {
	case LINKTYPE_AT:
		return f->big_endian ? LINKTYPE_NEUTRAL >> 8 : LINKTYPE_NEUTRAL & 0xff;
	case LINKTYPE_AT + 1:
		return f->big_endian ? LINKTYPE_NEUTRAL & 0xff : LINKTYPE_NEUTRAL >> 8;
	case SNAPLEN_AT:
	case SNAPLEN_AT + 1:
	case SNAPLEN_AT + 2:
	case SNAPLEN_AT + 3:
		return 0;
	default:
		return byte;
	}
}

void ow_follow_reset(struct ow_follow *f)
{
	free(f->interface);
	*f = (struct ow_follow){0};
}

/* Processes some of the bytes to keep: usually a whole head, otherwise one byte. Returns how many. */
static size_t take(struct ow_follow *f, uint8_t *bytes, size_t size)
{
	size_t n = 1;

	if (f->pos == 0)
		f->block_offset = f->offset;
	if (f->pos == 0 && size >= HEAD_BYTES && ow_load32(bytes, f->big_endian) != OW_PCAPNG_INTERFACE) {
		n = HEAD_BYTES;
		memcpy(f->kept, bytes, HEAD_BYTES);
	} else {
		f->kept[f->pos] = *bytes;
		if (f->pos >= LINKTYPE_AT && is_interface(f))
			*bytes = neutral(f, *bytes);
	}
	f->pos += n;
	if (f->pos == HEAD_BYTES)
		begin_block(f);
	return n;
}

size_t ow_follow_feed(struct ow_follow *f, uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size && !f->lost) {
		uint64_t n;
		if (f->pos < keep_size(f)) {
			n = take(f, bytes + i, size - i);
		} else {
			n = f->length - f->pos < size - i ? f->length - f->pos : size - i;
			f->pos += n;
		}
		f->offset += n;
		i += n;
		if (f->pos >= HEAD_BYTES && f->pos == f->length) {
			if (is_interface(f))
				end_interface(f);
			if (is_statistics(f))
				end_statistics(f);
			f->pos = 0;
			return i;
		}
	}
	return size;
}
