/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_writer.h"

#include "base/format.h"
#include "base/utf8.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <oneway/oneway.h>

static void put_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const char *p = text; *p;) {
		uint32_t code;
		size_t length = ow_utf8_next(p, &code);
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (!length)
			fputs("\\ufffd", out);
		else if (ow_utf8_printable(code))
			fwrite(p, 1, length, out);
		else if (code < 0x10000)
			fprintf(out, "\\u%04x", code);
		else
			fprintf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
		p += length ? length : 1;
	}
	fputc('"', out);
}

static struct ow_json_level *innermost(struct ow_json *json)
{
	assert(json->depth > 0);
	return &json->level[json->depth - 1];
}

static void begin_line(struct ow_json *json)
{
	int spaces = json->margin + json->indent * (int)json->depth;
	fprintf(json->out, "\n%*s", spaces > 0 ? spaces : 0, "");
}

/* Writes what precedes a value: the comma, the space or line start, and the name. */
static void begin_value(struct ow_json *json, const char *name)
{
	if (json->depth == 0) {
		assert(!name);
		return;
	}
	struct ow_json_level *level = innermost(json);
	assert(level->is_array == !name);
	if (level->has_items)
		fputc(',', json->out);
	if (json->line || level->style == OW_JSON_LINES)
		begin_line(json);
	else if (level->has_items || level->style == OW_JSON_PADDED)
		fputc(' ', json->out);
	level->has_items = true;
	json->line = false;
	if (name) {
		put_string(json->out, name);
		fputs(": ", json->out);
	}
}

static void begin_level(struct ow_json *json, const char *name, bool is_array)
{
	assert(json->depth < OW_JSON_DEPTH);
	begin_value(json, name);
	fputc(is_array ? '[' : '{', json->out);
	json->level[json->depth++] = (struct ow_json_level){.is_array = is_array};
}

void ow_json_object(struct ow_json *json, const char *name)
{
	begin_level(json, name, false);
}

void ow_json_array(struct ow_json *json, const char *name)
{
	begin_level(json, name, true);
}

void ow_json_end(struct ow_json *json)
{
	const struct ow_json_level *level = innermost(json);
	json->depth--;
	if (json->line || (level->style == OW_JSON_LINES && level->has_items))
		begin_line(json);
	else if (level->style == OW_JSON_PADDED)
		fputc(' ', json->out);
	json->line = false;
	fputs(level->is_array ? "]" : "}", json->out);
	if (json->depth == 0)
		fputc('\n', json->out);
}

void ow_json_style(struct ow_json *json, enum ow_json_style style)
{
	struct ow_json_level *level = innermost(json);
	if (style == OW_JSON_OUTER)
		style = json->depth > 1 ? level[-1].style : OW_JSON_FLAT;
	level->style = style;
}

void ow_json_line(struct ow_json *json)
{
	assert(json->depth > 0);
	json->line = true;
}

void ow_json_raw(struct ow_json *json, const char *name, const char *text)
{
	assert(json->depth > 0);
	begin_value(json, name);
	fputs(text, json->out);
}

void ow_json_null(struct ow_json *json, const char *name)
{
	ow_json_raw(json, name, "null");
}

void ow_json_flag(struct ow_json *json, const char *name, bool flag)
{
	ow_json_raw(json, name, flag ? "true" : "false");
}

void ow_json_string(struct ow_json *json, const char *name, const char *text)
{
	if (!text) {
		ow_json_null(json, name);
		return;
	}
	ow_json_raw(json, name, "");
	put_string(json->out, text);
}

void ow_json_count(struct ow_json *json, const char *name, uint64_t count)
{
	ow_json_raw(json, name, "");
	fprintf(json->out, "%" PRIu64, count);
}

void ow_json_integer(struct ow_json *json, const char *name, int64_t value)
{
	ow_json_raw(json, name, "");
	fprintf(json->out, "%" PRId64, value);
}

void ow_json_count_if(struct ow_json *json, const char *name, bool known, uint64_t count)
{
	if (known)
		ow_json_count(json, name, count);
	else
		ow_json_null(json, name);
}

void ow_json_integer_if(struct ow_json *json, const char *name, bool known, int64_t value)
{
	if (known)
		ow_json_integer(json, name, value);
	else
		ow_json_null(json, name);
}

void ow_json_number(struct ow_json *json, const char *name, double value)
{
	char text[OW_FORMAT];
	ow_json_raw(json, name, isfinite(value) ? ow_format_number(value, text) : "null");
}

void ow_json_digits(struct ow_json *json, const char *name, double value, int digits)
{
	char text[OW_FORMAT];
	assert(digits > 0 && digits <= 17);
	ow_json_raw(json, name, isfinite(value) ? ow_format_digits(value, digits, text) : "null");
}

void ow_json_command(struct ow_json *json, const char *command)
{
	ow_json_string(json, "tool", "oneway");
	ow_json_string(json, "version", ow_version());
	ow_json_string(json, "command", command);
}

void ow_json_rows(struct ow_json *json, const char *name)
{
	ow_json_array(json, name);
	ow_json_style(json, OW_JSON_PADDED);
}

void ow_json_row(struct ow_json *json)
{
	ow_json_line(json);
	ow_json_object(json, NULL);
	ow_json_style(json, OW_JSON_PADDED);
}
