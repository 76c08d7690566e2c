/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_UTF8_H
#define OW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Text from outside (peers, files, names of files, configurations) as it may be shown. Everything that prints such text
 * decides by these functions what a line of a log, a table or an error may hold.
 */

/* Bytes of the UTF-8 character at `text`, of which `left` bytes can be read; 0 = none (cut, overlong, surrogate, beyond
 * U+10FFFF, or left is 0). */
size_t ow_utf8_read(const char *text, size_t left, uint32_t *ret_code);
/* The same of a text that ends with a 0. */
size_t ow_utf8_next(const char *text, uint32_t *ret_code);

/* Whether the character is shown as itself. Not so: control characters (C0, C1, DEL), line and paragraph separators,
 * characters that change the direction of the text around them, and characters of no width, which make two different
 * names look the same. */
bool ow_utf8_printable(uint32_t code);

/* Replaces whatever is not printable by '?', one for each character or stray byte. The text does not get longer. */
void ow_utf8_clean(char *text);

#endif
