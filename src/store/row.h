/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "store/statement.h"
#include <stdio.h>

/* A result as a row of table result, by the table of its fields. Unknown values are NULL. */

/* The version of the schema: the first one that has all columns. */
int ow_row_version(void);
/* Columns of the row, the lane included. */
int ow_row_columns(void);

enum ow_dialect { OW_DIALECT_SQLITE, OW_DIALECT_POSTGRES };
/* The columns for CREATE TABLE, each followed by a comma, in the order of the table. */
void ow_row_schema(FILE *out, enum ow_dialect dialect);
/* The statements that add the columns that are new in a version of the schema; may be empty. */
void ow_row_migration(FILE *out, enum ow_dialect dialect, const char *table, int version);
/* The names of all columns, in the order of ow_row_bind. */
void ow_row_names(FILE *out);
/* "DO UPDATE SET ...": all columns of a row that conflicts with an existing one. */
void ow_row_replace(FILE *out);

/* "INSERT INTO table (...) VALUES (?, ...) ON CONFLICT ...": replaces a row of the same lane and time. */
void ow_row_insert(FILE *out, const char *table);
/*
 * The same for results: a final result replaces any other, a provisional one only a provisional
 * one. After a clock was set back, times occur again: an unknown result then does not replace a known one.
 */
void ow_row_insert_result(FILE *out);
void ow_row_bind(const struct ow_statement *statement, int64_t lane, const struct ow_interval_result *result);

/* All columns, in the order of the table, for SELECT; and a row of these as CSV, without the lane. Bytes are hexadecimal. */
void ow_row_table(FILE *out, int version);
void ow_row_csv(FILE *out, int version, const struct ow_statement *row);

/* Keeps the reasons of the last row, because most rows have the same. */
struct ow_row_reader {
	int version;            /* of the schema: columns of later ones are not read */
	char *text;             /* not_estimated */
	enum ow_reason *reason; /* in it, of each field */
};
/* The columns to SELECT: lane and start_ns, then those that ow_row_read reads. */
void ow_row_select(FILE *out, int version);
/* Reads everything except the names of the lane. */
void ow_row_read(struct ow_row_reader *reader, const struct ow_statement *statement,
                 struct ow_interval_result *ret_result);
void ow_row_reader_done(struct ow_row_reader *reader);
