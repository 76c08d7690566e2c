/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_FORMAT_H
#define OW_BASE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers, times and names as people read them. All texts are terminated. */
#define OW_FORMAT 48

/* 1234567 as 1,234,567. */
const char *ow_format_count(uint64_t count, char text[OW_FORMAT]);
/* The same in at most `places` columns: 1,234,567, else 1234567, else 1.23M. places >= 5. */
const char *ow_format_short(uint64_t count, int places, char text[OW_FORMAT]);
/* A share in percent: three significant digits, never in exponent form. whole > 0. */
const char *ow_format_share(uint64_t part, uint64_t whole, char text[OW_FORMAT]);
/* 0..1 in percent, in at most six columns: "0.183%". */
const char *ow_format_percent(double ratio, char text[OW_FORMAT]);
/* "12.34 kpps", "1.500 Mb/s": a thousand of `unit` is one k of it. */
const char *ow_format_rate(double rate, const char *unit, char text[OW_FORMAT]);
/* For machines: a finite number with the fewest digits that read back as the same one, never "-0". */
const char *ow_format_number(double value, char text[OW_FORMAT]);
/* The same rounded to 1 to 17 significant digits. */
const char *ow_format_digits(double value, int digits, char text[OW_FORMAT]);
/* A time by strftime in UTC; with milliseconds behind if the format has %S. */
const char *ow_format_time(int64_t ns, const char *format, char text[OW_FORMAT]);
/* The same in local time. */
const char *ow_format_local(int64_t ns, const char *format, char text[OW_FORMAT]);

/*
 * Copies text that may hold any bytes so that a terminal obeys none of it: control characters and what is not UTF-8
 * become '?', with ascii also everything beyond it. Cut to what fits into size. Returns the columns it takes.
 */
size_t ow_format_clean(const char *text, bool ascii, char *ret_clean, size_t size);
/* Cuts clean text in the middle to at most `columns` columns; '*' stands for what is left out. */
void ow_format_cut(char *clean, size_t columns);
/* Columns that clean text takes. */
size_t ow_format_columns(const char *clean);

/* Bytes of the sequence that sets a colour at the start of text; 0 if there is none. */
size_t ow_format_colour(const char *text, size_t length);
/* How many of the `length` bytes of text go on a line of `room` columns: all, or those before a space, but not before
 * the unit of a number ("1.5 ms"). 0 if no space is so near. Colours take no columns. */
size_t ow_format_break(const char *text, size_t length, size_t room);
/* The text and the end of its line, broken at spaces to `width` columns, of which `hang` are taken: further lines begin
 * with as many spaces. Control characters become '?'. */
void ow_format_wrap(FILE *out, const char *text, int hang, int width);

/* A column of a table whose columns depend on the width of the terminal. */
struct ow_format_column {
	const char *title;
	unsigned width;
	unsigned rank; /* 0 is needed most; each rank once, below OW_FORMAT_COLUMNS */
};
#define OW_FORMAT_COLUMNS 16
/* The columns, a bit each, that fit into `width` with a space before each: by rank until one does not fit. *ret_used:
 * what they take. */
unsigned ow_format_fit(const struct ow_format_column *column, unsigned count, unsigned width, unsigned *ret_used);

/* A field of CSV, in quotes where it needs them (RFC 4180). NULL is empty. */
void ow_format_csv(FILE *out, const char *text);
/* A number as a field of CSV. NAN and infinity are empty. */
void ow_format_csv_number(FILE *out, double value);

#endif
