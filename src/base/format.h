/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Formats numbers, times and names for people. All texts are 0-terminated. */
#define OW_FORMAT 48

/* 1234567 as 1,234,567. */
const char *ow_format_count(uint64_t count, char text[OW_FORMAT]);
/* The same in at most `places` columns: 1,234,567, or 1234567, or 1.23M, the first that fits. places >= 5. */
const char *ow_format_short(uint64_t count, int places, char text[OW_FORMAT]);
/* A share in percent: three significant digits, never in exponent form. whole > 0. */
const char *ow_format_share(uint64_t part, uint64_t whole, char text[OW_FORMAT]);
/* 0..1 in percent, in at most six columns: "0.183%". */
const char *ow_format_percent(double ratio, char text[OW_FORMAT]);
/* "12.34 kpps", "1.500 Mb/s": `unit` with no prefix or k, M, G or T. */
const char *ow_format_rate(double rate, const char *unit, char text[OW_FORMAT]);
/* For machines: the shortest text that reads back as the same finite number, never "-0". */
const char *ow_format_number(double value, char text[OW_FORMAT]);
/* The same rounded to 1 to 17 significant digits. */
const char *ow_format_digits(double value, int digits, char text[OW_FORMAT]);
/* A time in UTC by strftime; milliseconds are appended if the format has %S. */
const char *ow_format_time(int64_t ns, const char *format, char text[OW_FORMAT]);
/* The same in local time. */
const char *ow_format_local(int64_t ns, const char *format, char text[OW_FORMAT]);

/*
 * Copies text that may contain any bytes, so that it cannot control a terminal: control characters and bytes that are
 * not UTF-8 become '?'; with `ascii`, so does every character outside of ASCII. Cuts the text to `size` bytes. Returns
 * the columns it takes.
 */
size_t ow_format_clean(const char *text, bool ascii, char *ret_clean, size_t size);
/* Cuts clean text in the middle to at most `columns` columns; '*' replaces the part left out. */
void ow_format_cut(char *clean, size_t columns);
/* Columns that clean text takes. */
size_t ow_format_columns(const char *clean);

/* Bytes of the escape sequence that sets a colour at the start of text; 0 if there is none. */
size_t ow_format_colour(const char *text, size_t length);
/* How many of the `length` bytes of text fit on a line of `room` columns: all, or those before a space, but not before
 * the unit of a number ("1.5 ms"). 0 if there is no such space. Colours take no columns. */
size_t ow_format_break(const char *text, size_t length, size_t room);
/* Prints the text and a line end, broken at spaces to `width` columns. The caller has already used `hang` columns of
 * the first line; further lines are indented by as many spaces. Control characters become '?'. */
void ow_format_wrap(FILE *out, const char *text, int hang, int width);

/* A CSV field, quoted if needed (RFC 4180). NULL is empty. */
void ow_format_csv(FILE *out, const char *text);
/* A number as a CSV field. NAN and infinity are empty. */
void ow_format_csv_number(FILE *out, double value);
