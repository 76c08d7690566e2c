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
#define PACKET_BYTES     28U /* of an enhanced packet block, before the packet */
#define CAPLEN_AT        20U
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

/* The option of this code and length among the kept bytes, or NULL. */
static const uint8_t *option(const struct ow_follow *f, size_t at, size_t size, uint16_t code, size_t length)
{
	struct ow_pcapng_option o;

	while (ow_pcapng_next_option(f->kept, size, f->big_endian, &at, &o)) {
		if (o.code == code && o.length == length)
			return o.value;
	}
	return NULL;
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
	const uint8_t *found = option(f, INTERFACE_BYTES, size, OW_PCAPNG_TSRESOL, 1);
	tsresol = found ? *found : TSRESOL_DEFAULT;
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

/* dropped: since the start of the capture. */
static void note_dropped(struct ow_follow *f, uint32_t number, uint64_t dropped)
{
	if (number >= f->n_interface || dropped <= f->interface[number].dropped)
		return;
	uint64_t more = dropped - f->interface[number].dropped;
	f->dropped = more > UINT64_MAX - f->dropped ? UINT64_MAX : f->dropped + more;
	f->interface[number].dropped = dropped;
}

/* A file may have several of an interface. */
static void end_statistics(struct ow_follow *f)
{
	size_t size = f->length < sizeof f->kept ? f->length - 4 : sizeof f->kept;
	const uint8_t *by_interface = option(f, STATISTICS_BYTES, size, OW_PCAPNG_IFDROP, 8);
	const uint8_t *by_system = option(f, STATISTICS_BYTES, size, OW_PCAPNG_OSDROP, 8);
	uint64_t a = by_interface ? ow_load64(by_interface, f->big_endian) : 0,
		 b = by_system ? ow_load64(by_system, f->big_endian) : 0;
	note_dropped(f, ow_load32(f->kept + 8, f->big_endian), a > b ? a : b);
}

/* Packets that were dropped between two packets of an interface. */
static void note_dropped_before(struct ow_follow *f, uint32_t number, uint64_t dropped)
{
	if (number >= f->n_interface)
		return;
	uint64_t *sum = &f->interface[number].dropped_before;
	*sum = dropped > UINT64_MAX - *sum ? UINT64_MAX : *sum + dropped;
	note_dropped(f, number, *sum);
}

/* Where the options of a packet begin, when its head is known. */
static uint64_t options_at(const struct ow_follow *f)
{
	return PACKET_BYTES + ((uint64_t)ow_load32(f->kept + CAPLEN_AT, f->big_endian) + 3) / 4 * 4;
}

/* The options are kept behind the head. */
static void end_packet(struct ow_follow *f)
{
	uint64_t at = f->length < PACKET_BYTES ? f->length : options_at(f);
	uint64_t size = at < f->length ? PACKET_BYTES + f->length - 4 - at : 0;
	const uint8_t *dropped =
		option(f, PACKET_BYTES, size < sizeof f->kept ? size : sizeof f->kept, OW_PCAPNG_DROPCOUNT, 8);
	if (dropped)
		note_dropped_before(f, ow_load32(f->kept + 8, f->big_endian), ow_load64(dropped, f->big_endian));
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
	if (type == OW_PCAPNG_PACKET && ow_load16(f->kept + 10, f->big_endian) != OW_PCAPNG_DROPS_UNKNOWN)
		note_dropped_before(f, interface, ow_load16(f->kept + 10, f->big_endian));
}

/* Valid only after the first 8 bytes of the block. */
static bool is(const struct ow_follow *f, uint32_t type)
{
	return ow_load32(f->kept, f->big_endian) == type;
}

/* To which place the bytes of the current block are kept from pos on, as far as it is known yet; 0: they are not. */
static uint64_t keep_until(const struct ow_follow *f)
{
	uint64_t until = sizeof f->kept;
	if (f->pos < HEAD_BYTES)
		return HEAD_BYTES;
	if (is(f, OW_PCAPNG_ENHANCED) && f->pos < PACKET_BYTES)
		until = PACKET_BYTES;
	else if (is(f, OW_PCAPNG_ENHANCED))
		until = f->pos < options_at(f) ? 0 : options_at(f) + sizeof f->kept - PACKET_BYTES;
	else if (!is(f, OW_PCAPNG_INTERFACE) && !is(f, OW_PCAPNG_STATISTICS))
		until = 0;
	return f->length < until ? f->length : until;
}

/* To which place the bytes are not kept from pos on. */
static uint64_t pass_until(const struct ow_follow *f)
{
	bool options = is(f, OW_PCAPNG_ENHANCED) && f->pos < options_at(f) && options_at(f) < f->length;
	return options ? options_at(f) : f->length;
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

/* Processes some of the bytes to keep: of a description of an interface, and of a cut head, one byte. Returns how many. */
static size_t take(struct ow_follow *f, uint8_t *bytes, size_t size)
{
	uint64_t known = keep_until(f) - f->pos, place = f->pos;
	size_t n = 1;

	if (f->pos == 0)
		f->block_offset = f->offset;
	if (f->pos ? f->pos >= HEAD_BYTES && !is(f, OW_PCAPNG_INTERFACE)
	           : size >= HEAD_BYTES && ow_load32(bytes, f->big_endian) != OW_PCAPNG_INTERFACE)
		n = known < size ? known : size;
	if (f->pos >= PACKET_BYTES && is(f, OW_PCAPNG_ENHANCED))
		place -= options_at(f) - PACKET_BYTES;
	memcpy(f->kept + place, bytes, n);
	if (f->pos >= LINKTYPE_AT && is(f, OW_PCAPNG_INTERFACE))
		*bytes = neutral(f, *bytes);
	f->pos += n;
	if (f->pos == HEAD_BYTES)
		begin_block(f);
	return n;
}

static void end_block(struct ow_follow *f)
{
	if (is(f, OW_PCAPNG_INTERFACE))
		end_interface(f);
	if (is(f, OW_PCAPNG_STATISTICS))
		end_statistics(f);
	if (is(f, OW_PCAPNG_ENHANCED))
		end_packet(f);
	f->pos = 0;
}

size_t ow_follow_feed(struct ow_follow *f, uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size && !f->lost) {
		uint64_t n;
		if (f->pos < keep_until(f)) {
			n = take(f, bytes + i, size - i);
		} else {
			uint64_t rest = pass_until(f) - f->pos;
			n = rest < size - i ? rest : size - i;
			f->pos += n;
		}
		f->offset += n;
		i += n;
		if (f->pos >= HEAD_BYTES && f->pos == f->length) {
			end_block(f);
			return i;
		}
	}
	return size;
}
