/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_JSON_WRITER_H
#define OW_BASE_JSON_WRITER_H

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

/* Open objects and arrays at most. */
#define OW_JSON_DEPTH 16

enum ow_json_style {
	OW_JSON_FLAT,   /* {"a": 1, "b": 2} */
	OW_JSON_PADDED, /* { "a": 1, "b": 2 } */
	OW_JSON_LINES,  /* each member or element on a line of its own, and the end if there is any */
	OW_JSON_OUTER,  /* as the object or array around it */
};

struct ow_json {
	FILE *out;
	int indent; /* spaces at the start of a line for each open object or array */
	int margin; /* and for all of them together; can be negative */
	/* The rest belongs to the writer and begins as zero. */
	bool line; /* what comes next begins a line */
	unsigned depth;
	struct ow_json_level {
		bool is_array, has_items;
		enum ow_json_style style;
	} level[OW_JSON_DEPTH];
};

/* Begins an object or an array; it is flat until ow_json_style() says otherwise. */
void ow_json_object(struct ow_json *json, const char *name);
void ow_json_array(struct ow_json *json, const char *name);
/* Ends what was begun last; if that was the document, also its last line. */
void ow_json_end(struct ow_json *json);

/* How what was begun last is laid out from its next member or element on. */
void ow_json_style(struct ow_json *json, enum ow_json_style style);
/* What comes next (a member, an element, an end) begins a line, whatever the style. */
void ow_json_line(struct ow_json *json);

/* The members that begin the document of a command: "tool", "version", "command". */
void ow_json_command(struct ow_json *json, const char *command);
/* Any bytes: what is not UTF-8 becomes U+FFFD, and characters that a terminal would obey are escaped. NULL is null. */
void ow_json_string(struct ow_json *json, const char *name, const char *text);
void ow_json_count(struct ow_json *json, const char *name, uint64_t count);
void ow_json_integer(struct ow_json *json, const char *name, int64_t value);
/* With the fewest digits that read back as the same number. NAN and infinity are null. */
void ow_json_number(struct ow_json *json, const char *name, double value);
/* Rounded to 1 to 17 significant digits. NAN and infinity are null. */
void ow_json_digits(struct ow_json *json, const char *name, double value, int digits);
void ow_json_flag(struct ow_json *json, const char *name, bool flag);
void ow_json_null(struct ow_json *json, const char *name);
/* null if it is not known. */
void ow_json_count_if(struct ow_json *json, const char *name, bool known, uint64_t count);
void ow_json_integer_if(struct ow_json *json, const char *name, bool known, int64_t value);
/* A value that is JSON already. */
void ow_json_raw(struct ow_json *json, const char *name, const char *text);

/* An array of objects, each on a line of its own: begins the array, and each of its objects. */
void ow_json_rows(struct ow_json *json, const char *name);
void ow_json_row(struct ow_json *json);

#endif
