/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Writes JSON to a stream, value by value. The writer places commas, line ends and indentation; the caller says what
 * comes next:
 *
 *	struct ow_json json = {.out = stdout, .indent = 2};
 *	ow_json_object(&json, NULL);
 *	ow_json_count(&json, "packets", 7);
 *	ow_json_array(&json, "warnings");
 *	ow_json_string(&json, NULL, "one");
 *	ow_json_end(&json);
 *	ow_json_end(&json);
 *
 * prints {"packets": 7, "warnings": ["one"]} and a line end, because the document is complete. The same writer can then
 * write the next document. `name` is the name of the member of an object; it is NULL for an element of an array and for
 * the document itself. Anything else is a fault of the program and aborts. Failed writes are left to ferror(out).
 */

/* At most this many objects and arrays are open at once. */
#define OW_JSON_DEPTH 16

enum ow_json_style {
	OW_JSON_FLAT,   /* {"a": 1, "b": 2} */
	OW_JSON_PADDED, /* { "a": 1, "b": 2 } */
	OW_JSON_LINES,  /* each member or element on its own line; the closing bracket too, unless it is empty */
	OW_JSON_OUTER,  /* the style of the enclosing object or array */
};

struct ow_json {
	FILE *out;
	int indent; /* spaces at the start of a line for each open object or array */
	int margin; /* added to the indentation of every line; can be negative */
	/* The rest belongs to the writer and starts as zero. */
	bool line; /* the next output begins a line */
	unsigned depth;
	struct ow_json_level {
		bool is_array, has_items;
		enum ow_json_style style;
	} level[OW_JSON_DEPTH];
};

/* Begins an object or an array; it is flat until ow_json_style() says otherwise. */
void ow_json_object(struct ow_json *json, const char *name);
void ow_json_array(struct ow_json *json, const char *name);
/* Ends the innermost open object or array. The end of the document also ends its last line. */
void ow_json_end(struct ow_json *json);

/* Sets the layout of the innermost open object or array, from its next member or element on. */
void ow_json_style(struct ow_json *json, enum ow_json_style style);
/* Starts a new line before the next member, element or end, whatever the style. */
void ow_json_line(struct ow_json *json);

/* The members that begin the document of a command: "tool", "version", "command". */
void ow_json_command(struct ow_json *json, const char *command);
/* Accepts any bytes: invalid UTF-8 becomes U+FFFD, and characters that could control a terminal are escaped. NULL is
 * null. */
void ow_json_string(struct ow_json *json, const char *name, const char *text);
void ow_json_count(struct ow_json *json, const char *name, uint64_t count);
void ow_json_integer(struct ow_json *json, const char *name, int64_t value);
/* Writes the shortest text that reads back as the same number. NAN and infinity are null. */
void ow_json_number(struct ow_json *json, const char *name, double value);
/* Rounded to 1 to 17 significant digits. NAN and infinity are null. */
void ow_json_digits(struct ow_json *json, const char *name, double value, int digits);
void ow_json_flag(struct ow_json *json, const char *name, bool flag);
void ow_json_null(struct ow_json *json, const char *name);
/* Writes null if the count is not known. */
void ow_json_count_if(struct ow_json *json, const char *name, bool known, uint64_t count);
void ow_json_integer_if(struct ow_json *json, const char *name, bool known, int64_t value);
/* A value that is JSON already. */
void ow_json_raw(struct ow_json *json, const char *name, const char *text);

/* An array of objects, each on a line of its own: begins the array, and each of its objects. */
void ow_json_rows(struct ow_json *json, const char *name);
void ow_json_row(struct ow_json *json);
