/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored_source.h"

#include "store/postgres_schema.h"
#include <errno.h>
#include <stdlib.h>

/* Nothing here writes; the server makes sure of it. */
static int only_read(struct ow_postgres *server, struct ow_error *err)
{
	return ow_postgres_run(server, "SET default_transaction_read_only = on", err);
}

static int open_server(const char *url, struct ow_stored_source *source, struct ow_error *err)
{
	int r = ow_postgres_open(url, &source->server, err);
	if (r < 0)
		return r;
	source->name = ow_postgres_name(source->server);
	r = only_read(source->server, err);
	if (r == 0)
		r = source->version = ow_postgres_version(source->server, err);
	if (r == 0)
		r = ow_error_set(err, ENODATA, "%s: empty, not a store of oneway", source->name);
	if (r < 0)
		ow_postgres_close(source->server);
	return r < 0 ? r : 0;
}

int ow_stored_source_open(const char *name, struct ow_stored_source *ret_source, struct ow_error *err)
{
	struct ow_stored_source source = {.name = NULL};
	bool is_url = ow_postgres_is_url(name);
	int r = is_url ? open_server(name, &source, err) : ow_database_look(name, &source.file, err);
	if (r < 0)
		return r;
	if (!is_url) {
		source.name = source.file.path;
		source.version = source.file.version;
	}
	*ret_source = source;
	return 0;
}

void ow_stored_source_close(struct ow_stored_source *source)
{
	ow_postgres_close(source->server);
	ow_database_close(&source->file);
}

int ow_stored_source_fail(const struct ow_stored_source *source, struct ow_error *err)
{
	return source->server ? ow_postgres_fail(source->server, err) : ow_database_fail(&source->file, err);
}

/* Who follows results for days continues when the server was restarted. */
static int prepare_at_server(struct ow_postgres *server, const char *sql, struct ow_statement **ret_statement,
                             struct ow_error *err)
{
	int r = 0;
	if (!ow_postgres_is_connected(server) && (r = ow_postgres_revive(server, err)) == 0)
		r = only_read(server, err);
	return r < 0 ? r : ow_postgres_prepare(server, sql, ret_statement, err);
}

int ow_stored_source_prepare(const struct ow_stored_source *source, const char *sql,
                             struct ow_statement **ret_statement, struct ow_error *err)
{
	sqlite3_stmt *prepared = NULL;
	if (source->server)
		return prepare_at_server(source->server, sql, ret_statement, err);
	struct ow_statement *statement = malloc(sizeof *statement);
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
	enum ow_step step = ow_step(statement);
	if (step == OW_STEP_ROW)
		*ret_value = ow_column_integer(statement, 0);
	else
		r = step == OW_STEP_DONE ? ow_error_set(err, ENODATA, "%s: no such row", source->name)
		                         : ow_stored_source_fail(source, err);
	ow_statement_free(statement);
	return r;
}
