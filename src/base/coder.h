/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Each message is described once, field by field, for both directions: the coder measures, writes or reads it. Each
 * field has a range, which is checked in both directions. After the first error the coder does nothing; the error names
 * the message and the field.
 */
struct ow_coder {
	enum { OW_CODER_MEASURES, OW_CODER_WRITES, OW_CODER_READS } does;
	uint8_t *to;
	const uint8_t *from;
	size_t at, size;
	const char *message; /* for errors */
	struct ow_error *err;
	int failed; /* negative errno */
};

/* Reports what is wrong with the field, unless there was an error before. */
void ow_coder_fail(struct ow_coder *coder, const char *field, const char *wrong);

/* An integer of `bytes` bytes, from `least` to `most`. */
void ow_coder_uint(struct ow_coder *coder, const char *field, unsigned bytes, uint64_t *value, uint64_t least,
                   uint64_t most);
void ow_coder_int(struct ow_coder *coder, const char *field, int64_t *value, int64_t least, int64_t most);
void ow_coder_u8(struct ow_coder *coder, const char *field, uint8_t *value, uint8_t least, uint8_t most);
void ow_coder_u32(struct ow_coder *coder, const char *field, uint32_t *value, uint32_t least, uint32_t most);
void ow_coder_bool(struct ow_coder *coder, const char *field, bool *value);
/* Any number but NaN. */
void ow_coder_double(struct ow_coder *coder, const char *field, double *value);
void ow_coder_zeros(struct ow_coder *coder, unsigned bytes);
/* The length (2 bytes), then bytes of printable UTF-8. size: bytes of the array, with the terminating 0. */
void ow_coder_text(struct ow_coder *coder, const char *field, char *text, size_t size, bool may_be_empty);
/* Raw bytes. When reading, *bytes points into the frame. */
void ow_coder_bytes(struct ow_coder *coder, const char *field, const uint8_t **bytes, size_t size);
/* An integer of 1 to 10 bytes: 7 bits a byte, lowest first, top bit set on all but the last byte. Only the shortest
 * encoding is accepted. Signed: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... */
void ow_coder_varint(struct ow_coder *coder, const char *field, uint64_t *value, uint64_t least, uint64_t most);
void ow_coder_varint32(struct ow_coder *coder, const char *field, uint32_t *value, uint32_t least, uint32_t most);
void ow_coder_signed(struct ow_coder *coder, const char *field, int64_t *value, int64_t least, int64_t most);

/* An enum as one byte below `count`. */
#define OW_CODER_ENUM(coder, field, variable, least, count)          \
	do {                                                         \
		uint8_t byte_ = (uint8_t)(variable);                 \
		ow_coder_u8(coder, field, &byte_, least, (count)-1); \
		(variable) = byte_;                                  \
	} while (0)

/* Cuts a text before the first character that a message may not contain, such as an incomplete character at the end. */
void ow_coder_cut(char *text);
