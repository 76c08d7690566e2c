/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/file/erf.h"

#include "base/bytes.h"
#include "base/time.h"
#include "capture/file/capture_format.h"

#define ERF_RECORD     16U /* bytes of the header */
#define ERF_EXTENSIONS 16U /* of a record; Endace knows 7 types */

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
	return type == ERF_HDLC ? 50 : type == ERF_IPV4 ? 228 : type == ERF_IPV6 ? 229 : OW_LINK_UNKNOWN;
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

static int erf_parse(uint16_t linktype, const uint8_t *p, size_t length, struct ow_frame *ret_frame)
{
	unsigned type = p[8] & 0x7f;
	uint32_t len = ow_load_be16(p + 14);
	size_t head = erf_head(p, length);
	uint64_t fraction = ow_load_le32(p);

	(void)linktype;
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

const struct ow_record_format ow_erf_format = {"ERF", 0, ERF_RECORD, erf_length, erf_parse, erf_dropped};

/*
 * Whether the first records in these bytes, at most so many, can be ERF of the years 1990 to 2106, each within a day of the
 * last. *ret_records: how many are whole; *ret_bytes: their length.
 */
static bool look_like_erf(const uint8_t *bytes, size_t size, size_t most, size_t *ret_records, size_t *ret_bytes)
{
	const uint32_t year_1990 = 631152000, day = 86400;
	size_t at = 0, records = 0;
	uint32_t last = 0;

	while (records < most && size - at >= ERF_RECORD) {
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

uint16_t ow_erf_first_link(const uint8_t *bytes, size_t size)
{
	struct ow_frame frame;
	for (size_t at = 0; size - at >= ERF_RECORD;) {
		size_t length = erf_length(bytes + at);
		if (length == 0 || length > size - at)
			break;
		if (erf_parse(0, bytes + at, length, &frame) == 1)
			return frame.linktype;
		at += length;
	}
	return OW_LINK_UNKNOWN;
}

bool ow_file_may_be_erf(const uint8_t *bytes, size_t size)
{
	size_t records, length;
	return look_like_erf(bytes, size, SIZE_MAX, &records, &length);
}

bool ow_file_is_erf(const uint8_t *bytes, size_t size)
{
	size_t records, length;
	return look_like_erf(bytes, size, SIZE_MAX, &records, &length) &&
	       (records >= 2 || (records == 1 && length == size));
}

int ow_erf_begins(const uint8_t *bytes, size_t size)
{
	size_t records, length;
	return !look_like_erf(bytes, size, 2, &records, &length) ? -1 : records == 2;
}
