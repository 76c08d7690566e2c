/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the fields of messages: coder.h. */
#include "base/coder.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void ow_coder_fail(struct ow_coder *c, const char *field, const char *wrong)
{
	if (!c->failed)
		c->failed = ow_error_set(c->err, c->does == OW_CODER_READS ? EPROTO : EINVAL, "message %s: %s %s",
		                         c->message, field, wrong);
}

/* Advances by `bytes`; *ret_at is where they begin. Returns false after an error, or if fewer bytes are left. */
static bool advance(struct ow_coder *c, const char *field, size_t bytes, size_t *ret_at)
{
	if (c->failed)
		return false;
	if (c->does != OW_CODER_MEASURES && bytes > c->size - c->at) {
		ow_coder_fail(c, field, "is beyond the end");
		return false;
	}
	*ret_at = c->at;
	c->at += bytes;
	return true;
}

static void out_of_range(struct ow_coder *c, const char *field, uint64_t value)
{
	char text[64];
	snprintf(text, sizeof text, "is out of range: %llu", (unsigned long long)value);
	ow_coder_fail(c, field, text);
}

void ow_coder_uint(struct ow_coder *c, const char *field, unsigned bytes, uint64_t *value, uint64_t least,
                   uint64_t most)
{
	size_t at;
	if (!advance(c, field, bytes, &at))
		return;
	uint64_t v = *value;
	if (c->does == OW_CODER_READS) {
		v = 0;
		for (unsigned i = 0; i < bytes; i++)
			v |= (uint64_t)c->from[at + i] << 8 * i;
	}
	if (v < least || v > most) {
		out_of_range(c, field, v);
		return;
	}
	if (c->does == OW_CODER_READS)
		*value = v;
	for (unsigned i = 0; c->does == OW_CODER_WRITES && i < bytes; i++)
		c->to[at + i] = (uint8_t)(v >> 8 * i);
}

void ow_coder_int(struct ow_coder *c, const char *field, int64_t *value, int64_t least, int64_t most)
{
	uint64_t v = (uint64_t)*value;
	ow_coder_uint(c, field, 8, &v, 0, UINT64_MAX);
	if (c->failed)
		return;
	if ((int64_t)v < least || (int64_t)v > most)
		out_of_range(c, field, v);
	else
		*value = (int64_t)v;
}

void ow_coder_u8(struct ow_coder *c, const char *field, uint8_t *value, uint8_t least, uint8_t most)
{
	uint64_t v = *value;
	ow_coder_uint(c, field, 1, &v, least, most);
	*value = (uint8_t)v;
}

void ow_coder_u32(struct ow_coder *c, const char *field, uint32_t *value, uint32_t least, uint32_t most)
{
	uint64_t v = *value;
	ow_coder_uint(c, field, 4, &v, least, most);
	*value = (uint32_t)v;
}

void ow_coder_bool(struct ow_coder *c, const char *field, bool *value)
{
	uint8_t v = *value;
	ow_coder_u8(c, field, &v, 0, 1);
	*value = v == 1;
}

void ow_coder_double(struct ow_coder *c, const char *field, double *value)
{
	uint64_t bits;
	double number;
	memcpy(&bits, value, sizeof bits);
	ow_coder_uint(c, field, 8, &bits, 0, UINT64_MAX);
	memcpy(&number, &bits, sizeof number);
	if (isnan(number))
		ow_coder_fail(c, field, "is not a number");
	else
		*value = number;
}

void ow_coder_zeros(struct ow_coder *c, unsigned bytes)
{
	uint64_t zero = 0;
	ow_coder_uint(c, "reserved bytes", bytes, &zero, 0, 0);
}

/* Bytes of the character at `text`; 0 if it is not valid UTF-8 or not printable. */
static size_t character(const char *text, size_t left)
{
	uint32_t code;
	size_t bytes = ow_utf8_read(text, left, &code);
	return bytes && ow_utf8_printable(code) ? bytes : 0;
}

void ow_coder_cut(char *text)
{
	size_t length = strlen(text), at = 0;
	for (size_t step; at < length && (step = character(text + at, length - at)); at += step)
		;
	text[at] = 0;
}

void ow_coder_text(struct ow_coder *c, const char *field, char *text, size_t size, bool may_be_empty)
{
	uint64_t length = c->does == OW_CODER_READS ? 0 : strnlen(text, size);
	size_t at;
	ow_coder_uint(c, field, 2, &length, may_be_empty ? 0 : 1, size - 1);
	if (c->failed || !advance(c, field, length, &at))
		return;
	const char *bytes = c->does == OW_CODER_READS ? (const char *)c->from + at : text;
	for (size_t i = 0, step; i < length; i += step) {
		step = character(bytes + i, length - i);
		if (!step) {
			ow_coder_fail(c, field, "is not printable UTF-8");
			return;
		}
	}
	if (c->does == OW_CODER_WRITES) {
		memcpy(c->to + at, text, length);
	} else if (c->does == OW_CODER_READS) {
		memcpy(text, bytes, length);
		text[length] = 0;
	}
}

void ow_coder_bytes(struct ow_coder *c, const char *field, const uint8_t **bytes, size_t size)
{
	size_t at;
	if (!advance(c, field, size, &at))
		return;
	if (c->does == OW_CODER_READS)
		*bytes = c->from + at;
	else if (c->does == OW_CODER_WRITES && size)
		memcpy(c->to + at, *bytes, size);
}

static void read_varint(struct ow_coder *c, const char *field, uint64_t *value)
{
	uint64_t v = 0;
	uint8_t byte = 0x80;
	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		size_t at;
		if (!advance(c, field, 1, &at))
			return;
		byte = c->from[at];
		/* The tenth byte holds only the last bit. A last byte of 0 is not the shortest encoding. */
		if ((shift == 63 && byte > 1) || (shift && !byte)) {
			ow_coder_fail(c, field, "has a number that is too long");
			return;
		}
		v |= (uint64_t)(byte & 0x7f) << shift;
	}
	*value = v;
}

static void write_varint(struct ow_coder *c, const char *field, uint64_t value)
{
	do {
		size_t at;
		if (!advance(c, field, 1, &at))
			return;
		if (c->does == OW_CODER_WRITES)
			c->to[at] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
}

void ow_coder_varint(struct ow_coder *c, const char *field, uint64_t *value, uint64_t least, uint64_t most)
{
	uint64_t v = *value;
	if (c->does == OW_CODER_READS)
		read_varint(c, field, &v);
	if (c->failed)
		return;
	if (v < least || v > most)
		out_of_range(c, field, v);
	else if (c->does == OW_CODER_READS)
		*value = v;
	else
		write_varint(c, field, v);
}

void ow_coder_varint32(struct ow_coder *c, const char *field, uint32_t *value, uint32_t least, uint32_t most)
{
	uint64_t v = *value;
	ow_coder_varint(c, field, &v, least, most);
	*value = (uint32_t)v;
}

void ow_coder_signed(struct ow_coder *c, const char *field, int64_t *value, int64_t least, int64_t most)
{
	uint64_t v = (uint64_t)*value << 1 ^ (*value < 0 ? UINT64_MAX : 0);
	ow_coder_varint(c, field, &v, 0, UINT64_MAX);
	int64_t number = (int64_t)(v >> 1 ^ -(v & 1));
	if (c->failed)
		return;
	if (number < least || number > most)
		out_of_range(c, field, (uint64_t)number);
	else
		*value = number;
}
