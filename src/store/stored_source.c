/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored_source.h"

#include <errno.h>
#include <stdlib.h>

int ow_stored_source_open(const char *name, struct ow_stored_source *ret_source, struct ow_error *err)
{
	struct ow_stored_source source = {.name = NULL};
	int r = ow_database_look(name, &source.file, err);
	if (r < 0)
		return r;
	source.name = source.file.path;
	source.version = source.file.version;
	*ret_source = source;
	return 0;
}

void ow_stored_source_close(struct ow_stored_source *source)
{
	ow_database_close(&source->file);
}

int ow_stored_source_fail(const struct ow_stored_source *source, struct ow_error *err)
{
	return ow_database_fail(&source->file, err);
}

int ow_stored_source_prepare(const struct ow_stored_source *source, const char *sql,
                             struct ow_statement **ret_statement, struct ow_error *err)
{
	struct ow_statement *statement = malloc(sizeof *statement);
	sqlite3_stmt *prepared = NULL;
	if (!statement)
		return ow_error_set(err, ENOMEM, "%s: out of memory", source->name);
	int r = ow_database_prepare(&source->file, sql, &prepared, err);
	if (r < 0) {
		free(statement);
		return r;
	}
	*statement = (struct ow_statement){&ow_statement_sqlite, prepared};
	*ret_statement = statement;
	return 0;
}

int ow_stored_source_ask(const struct ow_stored_source *source, const char *sql, int64_t *ret_value,
                         struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	int r = ow_stored_source_prepare(source, sql, &statement, err);
	if (r < 0)
		return r;
	if (ow_step(statement) == OW_STEP_ROW)
		*ret_value = ow_column_integer(statement, 0);
	else
		r = ow_stored_source_fail(source, err);
	ow_statement_free(statement);
	return r;
}
