/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#define LONGEST 4

size_t ow_utf8_read(const char *text, size_t left, uint32_t *ret_code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	if (left == 0)
		return 0;
	uint8_t first = (uint8_t)text[0];
	size_t bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	if (bytes > left || (bytes > 1 && (first < 0xc2 || first > 0xf4)))
		return 0;
	uint32_t code = bytes == 1 ? first : first & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if (((uint8_t)text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((uint8_t)text[i] & 0x3f);
	}
	if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return bytes;
}

size_t ow_utf8_next(const char *text, uint32_t *ret_code)
{
	/* Most characters are of ASCII. */
	if ((int8_t)*text > 0) {
		*ret_code = (uint8_t)*text;
		return 1;
	}
	return ow_utf8_read(text, strnlen(text, LONGEST), ret_code);
}

bool ow_utf8_printable(uint32_t code)
{
	/* Unicode categories Cc, Cf, Zl and Zp, and letters and selectors without a glyph. */
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},   {0x600, 0x605},
		{0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x115f, 0x1160}, {0x17b4, 0x17b5},
		{0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f}, {0x3164, 0x3164},
		{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb}, {0x110bd, 0x110cd},
		{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};
	/* Sorted: most characters are before the second range. */
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden && code >= hidden[i].first; i++) {
		if (code <= hidden[i].last)
			return false;
	}
	return true;
}

void ow_utf8_clean(char *text)
{
	char *to = text;
	while (*text) {
		uint32_t code;
		if (*text >= ' ' && *text <= '~') {
			*to++ = *text++;
			continue;
		}
		size_t bytes = ow_utf8_next(text, &code);
		if (bytes && ow_utf8_printable(code)) {
			memmove(to, text, bytes);
			to += bytes;
		} else {
			*to++ = '?';
		}
		text += bytes ? bytes : 1;
	}
	*to = 0;
}
