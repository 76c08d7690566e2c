/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which characters of untrusted text (from peers, files, file names, configurations) may be printed. All code that
 * prints such text in logs, tables or errors uses these functions.
 */

/* Bytes of the UTF-8 character at `text`, where `left` bytes can be read; 0 if there is none (truncated, overlong,
 * surrogate, beyond U+10FFFF, or left is 0). */
size_t ow_utf8_read(const char *text, size_t left, uint32_t *ret_code);
/* The same for a 0-terminated text. */
size_t ow_utf8_next(const char *text, uint32_t *ret_code);

/* Whether the character is printed as it is. Not printable: control characters (C0, C1, DEL), line and paragraph
 * separators, characters that change the direction of the text around them, and characters of no width, which make two
 * different names look the same. */
bool ow_utf8_printable(uint32_t code);

/* Replaces each character that is not printable, and each invalid byte, by '?'. The text does not get longer. */
void ow_utf8_clean(char *text);
