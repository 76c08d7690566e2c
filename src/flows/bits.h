/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/bytes.h"

/* Numbers of a given number of bits, one after the other, the lowest bit first. */

/* A number modulo 2^bits as a signed one. */
static inline double ow_bits_signed(uint64_t number, unsigned bits)
{
	unsigned shift = 64 - bits;
	return (double)((int64_t)(number << shift) >> shift);
}

struct ow_bits_writer {
	uint8_t *to; /* the caller has made room for everything that is written */
	uint64_t held;
	unsigned bits; /* number of pending bits, below 32 */
};

static inline void ow_bits_put_some(struct ow_bits_writer *writer, uint32_t value, unsigned bits) /* up to 32 */
{
	writer->held |= (uint64_t)value << writer->bits;
	writer->bits += bits;
	if (writer->bits < 32)
		return;
	ow_store_le32(writer->to, (uint32_t)writer->held);
	writer->to += 4;
	writer->held >>= 32;
	writer->bits -= 32;
}

/* value < 2^bits, bits up to 64. */
static inline void ow_bits_put(struct ow_bits_writer *writer, uint64_t value, unsigned bits)
{
	if (bits > 32) {
		ow_bits_put_some(writer, (uint32_t)value, 32);
		value >>= 32;
		bits -= 32;
	}
	ow_bits_put_some(writer, (uint32_t)value, bits);
}

static inline uint8_t *ow_bits_end(struct ow_bits_writer *writer)
{
	for (; writer->bits; writer->bits = writer->bits > 8 ? writer->bits - 8 : 0, writer->held >>= 8)
		*writer->to++ = (uint8_t)writer->held;
	return writer->to;
}

struct ow_bits_reader {
	const uint8_t *from, *end; /* the caller has checked that everything that is read is there */
	uint64_t held;
	unsigned bits;
};

static inline uint32_t ow_bits_get_some(struct ow_bits_reader *reader, unsigned bits) /* up to 32 */
{
	while (reader->bits < bits) {
		if (reader->end - reader->from >= 4) {
			reader->held |= (uint64_t)ow_load_le32(reader->from) << reader->bits;
			reader->from += 4;
			reader->bits += 32;
		} else {
			reader->held |= (uint64_t)*reader->from++ << reader->bits;
			reader->bits += 8;
		}
	}
	uint32_t value = (uint32_t)(reader->held & ((UINT64_C(1) << bits) - 1));
	reader->held >>= bits;
	reader->bits -= bits;
	return value;
}

static inline uint64_t ow_bits_get(struct ow_bits_reader *reader, unsigned bits)
{
	uint64_t low = 0;
	if (bits <= 32)
		return ow_bits_get_some(reader, bits);
	low = ow_bits_get_some(reader, 32);
	return low | (uint64_t)ow_bits_get_some(reader, bits - 32) << 32;
}
