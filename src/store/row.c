/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"

#include "base/format.h"
#include "result/fields.h"
#include "result/result_clock.h"
#include "result/result_json.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- names and SQL ------------------------------------------------------------------------------------------------ */

/* The next name of a field's columns; 0 if there are no more. */
static int next_name(const char **columns, const char **ret_name)
{
	*ret_name = *columns;
	int length = (int)strcspn(*columns, ",");
	*columns += length + (int)strspn(*columns + length, ", ");
	return length;
}

/* The types of columns, in the order in which PostgreSQL has them: numbers without gaps between them first. */
enum column_type { INTEGER, REAL, FLAG, TEXT, BYTES, TYPES };

static enum column_type column_type(enum ow_field_type type)
{
	switch (type) {
	case OW_FIELD_TEXT:
	case OW_FIELD_STATUS:
	case OW_FIELD_REASONS:
		return TEXT;
	case OW_FIELD_SHARE:
	case OW_FIELD_VALUE:
	case OW_FIELD_QUANTILES:
		return REAL;
	case OW_FIELD_FLAG:
		return FLAG;
	case OW_FIELD_HISTOGRAM:
		return BYTES;
	default:
		return INTEGER;
	}
}

static const char *const type_name[][TYPES] = {
	[OW_DIALECT_SQLITE] = {"INTEGER", "REAL", "INTEGER", "TEXT", "BLOB"},
	[OW_DIALECT_POSTGRES] = {"bigint", "double precision", "boolean", "text", "bytea"},
};

/* "sent INTEGER". A column that was added later has a value in existing rows. */
static void put_column(FILE *out, enum ow_dialect dialect, const struct ow_field *field, const char *name, int length)
{
	enum column_type type = column_type(field->type);
	bool not_null = field->flags & OW_FIELD_NOT_NULL;
	fprintf(out, "%.*s %s%s%s", length, name, type_name[dialect][type], not_null ? " NOT NULL" : "",
	        not_null && field->since > 1
	                ? type == FLAG && dialect == OW_DIALECT_POSTGRES ? " DEFAULT false" : " DEFAULT 0"
	                : "");
}

int ow_row_version(void)
{
	int version = 1;
	for (size_t i = 0; i < ow_field_count; i++)
		version = ow_fields[i].since > version ? ow_fields[i].since : version;
	return version;
}

int ow_row_columns(void)
{
	int count = 1; /* lane */
	for (size_t i = 0; i < ow_field_count; i++) {
		const char *columns = ow_fields[i].columns, *name;
		while (columns && next_name(&columns, &name))
			count++;
	}
	return count;
}

/* A line for each field, with its meaning. */
static void put_field(FILE *out, enum ow_dialect dialect, const struct ow_field *field)
{
	const char *columns = field->columns, *name, *between = "  ";
	for (int length; (length = next_name(&columns, &name)); between = " ") {
		fputs(between, out);
		put_column(out, dialect, field, name, length);
		fputc(',', out);
	}
	fprintf(out, "%s%s\n", field->meaning ? " -- " : "", field->meaning ? field->meaning : "");
}

void ow_row_schema(FILE *out, enum ow_dialect dialect)
{
	const struct ow_field *field;
	int kinds = dialect == OW_DIALECT_POSTGRES ? TYPES : 1;
	/* A check of each row would cost the server more than the row. */
	fprintf(out, "  lane %s NOT NULL%s,\n", type_name[dialect][INTEGER],
	        dialect == OW_DIALECT_SQLITE ? " REFERENCES lane" : "");
	for (int kind = 0; kind < kinds; kind++) {
		for (unsigned place = 1; (field = ow_field_place(place)); place++) {
			if (kinds == 1 || (int)column_type(field->type) == kind)
				put_field(out, dialect, field);
		}
	}
}

void ow_row_migration(FILE *out, enum ow_dialect dialect, const char *table, int version)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		const char *columns = field->columns, *name;
		for (int length; columns && field->since == version && (length = next_name(&columns, &name));) {
			fprintf(out, "ALTER TABLE %s ADD COLUMN ", table);
			put_column(out, dialect, field, name, length);
			fputs(";\n", out);
		}
	}
}

void ow_row_names(FILE *out)
{
	fputs("lane", out);
	for (size_t i = 0; i < ow_field_count; i++)
		ow_fields[i].columns ? fprintf(out, ", %s", ow_fields[i].columns) : 0;
}

void ow_row_replace(FILE *out)
{
	fputs("DO UPDATE SET lane = excluded.lane", out);
	for (size_t i = 0; i < ow_field_count; i++) {
		const char *columns = ow_fields[i].columns, *name;
		for (int length; columns && (length = next_name(&columns, &name));)
			fprintf(out, ", %.*s = excluded.%.*s", length, name, length, name);
	}
}

void ow_row_insert(FILE *out, const char *table)
{
	fprintf(out, "INSERT INTO %s (", table);
	ow_row_names(out);
	fputs(") VALUES (?", out);
	for (int i = 1; i < ow_row_columns(); i++)
		fputs(", ?", out);
	fputs(") ON CONFLICT (lane, start_ns) ", out);
	ow_row_replace(out);
}

void ow_row_insert_result(FILE *out)
{
	ow_row_insert(out, "result");
	fputs(" WHERE excluded.final >= result.final AND (result.final = 0 OR excluded.status <> 'unknown' OR"
	      " result.status = 'unknown')",
	      out);
}

void ow_row_select(FILE *out, int version)
{
	fputs("lane, start_ns", out);
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].columns && ow_fields[i].since <= version)
			fprintf(out, ", %s", ow_fields[i].columns);
	}
}

void ow_row_table(FILE *out, int version)
{
	const struct ow_field *field;
	fputs("lane", out);
	for (unsigned place = 1; (field = ow_field_place(place)); place++)
		field->since <= version ? fprintf(out, ", %s", field->columns) : 0;
}

static void put_hex(FILE *out, const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; bytes && i < size; i++)
		fprintf(out, "%02x", bytes[i]);
}

void ow_row_csv(FILE *out, int version, const struct ow_statement *row)
{
	const struct ow_field *field;
	int column = 1; /* behind the lane */
	for (unsigned place = 1; (field = ow_field_place(place)); place++) {
		const char *columns = field->columns, *name;
		while (field->since <= version && next_name(&columns, &name)) {
			size_t size = 0;
			if (column > 1)
				fputc(',', out);
			if (column_type(field->type) == BYTES)
				put_hex(out, ow_column_bytes(row, column, &size), size);
			else
				ow_format_csv(out, ow_column_text(row, column));
			column++;
		}
	}
}

/* -- binding ------------------------------------------------------------------------------------------------------ */

/* Binds one value after the other. */
struct binder {
	const struct ow_statement *statement;
	int at;
	bool known; /* false: everything is NULL except columns that are never NULL */
};

static void bind_integer(struct binder *b, int64_t value)
{
	ow_bind_integer(b->statement, ++b->at, value);
}

static void bind_null(struct binder *b)
{
	ow_bind_null(b->statement, ++b->at);
}

static void bind_count(struct binder *b, uint64_t count)
{
	if (count == OW_RESULT_NOT_COUNTED)
		bind_null(b);
	else
		bind_integer(b, count > INT64_MAX ? INT64_MAX : (int64_t)count);
}

static void bind_real(struct binder *b, double value)
{
	if (b->known && isfinite(value))
		ow_bind_real(b->statement, ++b->at, value);
	else
		bind_null(b);
}

static void bind_text(struct binder *b, const char *text)
{
	if (*text)
		ow_bind_text(b->statement, ++b->at, text);
	else
		bind_null(b);
}

static void bind_value(struct binder *b, const struct ow_value *value, bool bounds)
{
	bool none = value->status == OW_VALUE_NONE;
	bind_real(b, none ? NAN : value->value);
	if (bounds) {
		bind_real(b, none ? NAN : value->low);
		bind_real(b, none ? NAN : value->high);
	}
}

/* What the text of the reasons is made of: for each field its reason, or which quantiles have no upper end. */
#define REASONED_FIELDS 128
struct reasons_key {
	uint16_t why[REASONED_FIELDS];
};

static void key_of_reasons(const struct ow_interval_result *r, struct reasons_key *ret_key)
{
	*ret_key = (struct reasons_key){0};
	for (size_t i = 0; i < ow_field_count && i < REASONED_FIELDS; i++) {
		const struct ow_field *field = &ow_fields[i];
		if (field->type != OW_FIELD_VALUE && field->type != OW_FIELD_QUANTILES)
			continue;
		const struct ow_value *value = ow_field_of(field, r);
		if (value->status == OW_VALUE_NONE)
			ret_key->why[i] = (uint16_t)value->reason;
		for (int k = 0; field->type == OW_FIELD_QUANTILES && k < OW_QUANTILES; k++)
			if (value[k].status == OW_VALUE_ESTIMATED && isinf(value[k].high))
				ret_key->why[i] |= (uint16_t)(1u << (15 - k));
	}
}

static void write_reasons(const struct ow_interval_result *r, char *text, size_t size)
{
	*text = 0;
	FILE *out = fmemopen(text, size, "w");
	if (!out)
		return;
	struct ow_json json = {.out = out};
	ow_result_json_reasons(&json, NULL, r);
	/* Text that does not fit would not be valid JSON. */
	if (fclose(out) != 0 || strcmp(text, "{}\n") == 0)
		*text = 0;
	text[strcspn(text, "\n")] = 0;
}

/* Most rows have the reasons of the row before, and writing them takes longer than all other columns. */
static void bind_reasons(struct binder *b, const struct ow_interval_result *r)
{
	static _Thread_local struct reasons_key written;
	static _Thread_local char text[2048];
	static _Thread_local bool is_written;
	struct reasons_key key;
	key_of_reasons(r, &key);
	if (!is_written || memcmp(&key, &written, sizeof key) != 0) {
		write_reasons(r, text, sizeof text);
		written = key;
		is_written = true;
	}
	bind_text(b, text);
}

static void bind_clock(struct binder *b, const struct ow_clock_state *clock)
{
	bool known = clock->synchronised && clock->error_ns != OW_CLOCK_UNKNOWN && clock->error_ns >= 0;
	bind_count(b, known ? (uint64_t)clock->error_ns : OW_RESULT_NOT_COUNTED);
}

static void bind_histogram(struct binder *b, const struct ow_delay_histogram *histogram)
{
	uint8_t bytes[OW_DELAY_HISTOGRAM_BYTES];
	size_t size = ow_delay_histogram_encode(histogram, bytes);
	if (size)
		ow_bind_bytes(b->statement, ++b->at, bytes, size);
	else
		bind_null(b);
}

static void bind_field(struct binder *b, const struct ow_field *field, const struct ow_interval_result *r)
{
	const void *member = ow_field_of(field, r);
	const struct ow_value *value = member;
	switch (field->type) {
	case OW_FIELD_TEXT:
		bind_text(b, member);
		break;
	case OW_FIELD_STATUS:
		bind_text(b, ow_result_status_name[r->status]);
		break;
	case OW_FIELD_REASONS:
		bind_reasons(b, r);
		break;
	case OW_FIELD_SHARE:
		bind_real(b, *(const double *)member);
		break;
	case OW_FIELD_VALUE:
		bind_value(b, value, !(field->flags & OW_FIELD_NO_BOUNDS));
		break;
	case OW_FIELD_QUANTILES:
		for (int i = 0; i < OW_QUANTILES; i++)
			bind_value(b, &value[i], true);
		break;
	case OW_FIELD_HISTOGRAM:
		bind_histogram(b, member);
		break;
	default:
		if (!b->known && !(field->flags & OW_FIELD_NOT_NULL))
			bind_null(b);
		else if (field->type == OW_FIELD_FLAG)
			ow_bind_flag(b->statement, ++b->at, *(const bool *)member);
		else if (field->type == OW_FIELD_INTEGER)
			bind_integer(b, *(const int64_t *)member);
		else if (field->type == OW_FIELD_COUNT)
			bind_count(b, *(const uint64_t *)member);
		else if (field->type == OW_FIELD_CLOCK)
			bind_clock(b, member);
		else
			bind_integer(b, *(const uint32_t *)member);
	}
}

void ow_row_bind(const struct ow_statement *statement, int64_t lane, const struct ow_interval_result *result)
{
	struct binder b = {statement, 0, result->status != OW_RESULT_UNKNOWN};
	bind_integer(&b, lane);
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].columns)
			bind_field(&b, &ow_fields[i], result);
	}
}

/* -- reading: anybody may have written the file ------------------------------------------------------------------- */

/* Takes one column after the other. */
struct taker {
	const struct ow_statement *statement;
	int at;
};

static uint64_t take_count(struct taker *t, uint64_t otherwise, uint64_t most)
{
	int at = t->at++;
	int64_t value = ow_column_integer(t->statement, at);
	/* NULL is 0 as an integer. */
	if (value < 0 || (value == 0 && otherwise != 0 && ow_column_is_null(t->statement, at)))
		return otherwise;
	return (uint64_t)value < most ? (uint64_t)value : most;
}

static double take_real(struct taker *t)
{
	return ow_column_real(t->statement, t->at++);
}

static const char *take_text(struct taker *t)
{
	const char *value = ow_column_text(t->statement, t->at++);
	return value ? value : "";
}

static void copy_text(char *to, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);
	memcpy(to, text, length);
	to[length] = 0;
}

static struct ow_value take_value(struct taker *t, bool bounds)
{
	struct ow_value v = {.status = OW_VALUE_NONE, .value = take_real(t)};
	v.low = bounds ? take_real(t) : v.value;
	v.high = bounds ? take_real(t) : v.value;
	if (isnan(v.value))
		return ow_value_none(OW_NO_REASON);
	/* Infinity is stored as NULL. */
	v.low = isnan(v.low) ? -INFINITY : v.low;
	v.high = isnan(v.high) ? INFINITY : v.high;
	v.status = v.low == v.value && v.high == v.value ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED;
	return v;
}

/* Unless they are those of the last row. Invalid JSON has no reasons. */
static void take_reasons(struct ow_row_reader *reader, const char *text)
{
	if (reader->text && strcmp(reader->text, text) == 0)
		return;
	json_t *reasons = json_loads(text, 0, NULL);
	ow_row_reader_done(reader);
	reader->text = strdup(text);
	reader->reason = calloc(ow_field_count, sizeof *reader->reason);
	for (size_t i = 0; reader->reason && i < ow_field_count; i++) {
		const char *why = json_string_value(json_object_get(reasons, ow_field_name(&ow_fields[i])));
		reader->reason[i] = why ? ow_reason_of(why, OW_REASON_OTHER) : OW_NO_REASON;
	}
	json_decref(reasons);
}

/* Without a histogram, quantiles of sums say that delays are missing; so does a damaged one. */
static void take_histogram(struct taker *t, struct ow_delay_histogram *ret_histogram)
{
	size_t size = 0;
	const void *bytes = ow_column_bytes(t->statement, t->at++, &size);
	(void)ow_delay_histogram_decode(bytes, bytes ? size : 0, ret_histogram, NULL);
}

static void take_field(struct ow_row_reader *reader, struct taker *t, const struct ow_field *field, void *member)
{
	struct ow_value *value = member;
	uint64_t error;
	int status;
	switch (field->type) {
	case OW_FIELD_TEXT:
		copy_text(member, field->size, take_text(t));
		break;
	case OW_FIELD_STATUS:
		status = ow_result_status_of(take_text(t));
		*(enum ow_result_status *)member = status < 0 ? OW_RESULT_UNKNOWN : (enum ow_result_status)status;
		break;
	case OW_FIELD_INTEGER:
		*(int64_t *)member = ow_column_integer(t->statement, t->at++);
		break;
	case OW_FIELD_FLAG:
		*(bool *)member = ow_column_integer(t->statement, t->at++) != 0;
		break;
	case OW_FIELD_COUNT:
		*(uint64_t *)member =
			take_count(t, field->flags & OW_FIELD_NOT_COUNTED ? OW_RESULT_NOT_COUNTED : 0, INT64_MAX);
		break;
	case OW_FIELD_SHIFT:
	case OW_FIELD_NUMBER:
		*(uint32_t *)member = (uint32_t)take_count(t, 0, field->type == OW_FIELD_SHIFT ? 63 : UINT32_MAX);
		break;
	case OW_FIELD_SHARE:
		*(double *)member = take_real(t);
		if (isnan(*(double *)member))
			*(double *)member = 0;
		break;
	case OW_FIELD_VALUE:
		*value = take_value(t, !(field->flags & OW_FIELD_NO_BOUNDS));
		break;
	case OW_FIELD_QUANTILES:
		for (int i = 0; i < OW_QUANTILES; i++)
			value[i] = take_value(t, true);
		break;
	case OW_FIELD_CLOCK:
		error = take_count(t, OW_CLOCK_UNKNOWN, OW_CLOCK_UNKNOWN);
		*(struct ow_clock_state *)member = (struct ow_clock_state){error < OW_CLOCK_UNKNOWN, (int64_t)error};
		break;
	case OW_FIELD_HISTOGRAM:
		take_histogram(t, member);
		break;
	case OW_FIELD_REASONS:
		take_reasons(reader, take_text(t));
		break;
	default: /* not a column */
		break;
	}
}

/* An unknown value gets the reason of its field. */
static void give_reason(enum ow_reason reason, const struct ow_field *field, struct ow_value *value)
{
	int values = field->type == OW_FIELD_VALUE ? 1 : field->type == OW_FIELD_QUANTILES ? OW_QUANTILES : 0;
	for (int i = 0; reason && i < values; i++) {
		if (value[i].status == OW_VALUE_NONE)
			value[i].reason = reason;
	}
}

void ow_row_read(struct ow_row_reader *reader, const struct ow_statement *statement, struct ow_interval_result *r)
{
	struct taker t = {statement, 2}; /* behind lane and start_ns */
	*r = (struct ow_interval_result){.length_ns = 0};
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].columns && ow_fields[i].since <= reader->version)
			take_field(reader, &t, &ow_fields[i], ow_field_at(&ow_fields[i], r));
		else
			ow_field_absent(&ow_fields[i], r);
	}
	for (size_t i = 0; reader->reason && i < ow_field_count; i++)
		give_reason(reader->reason[i], &ow_fields[i], ow_field_at(&ow_fields[i], r));
	ow_result_clock_forget(r);
}

void ow_row_reader_done(struct ow_row_reader *reader)
{
	free(reader->text);
	free(reader->reason);
	reader->text = NULL;
	reader->reason = NULL;
}
