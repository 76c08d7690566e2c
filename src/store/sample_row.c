/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_row.h"

#include "store/database.h"
#include <errno.h>

const char ow_sample_row_schema[] =
	"CREATE TABLE IF NOT EXISTS sample ( -- packets that were sampled, for ten minutes\n"
	"  id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
	"  start_ns INTEGER NOT NULL, -- of the epoch, since 1970-01-01 UTC\n"
	"  bytes BLOB NOT NULL); -- a message, see docs/discovery.md\n";
const char ow_sample_row_insert[] = "INSERT INTO sample (start_ns, bytes) VALUES (?, ?)";
const char ow_sample_row_delete[] = "DELETE FROM sample WHERE start_ns < ?";

void ow_sample_row_bind(sqlite3_stmt *statement, const struct ow_sample_row *row)
{
	sqlite3_bind_int64(statement, 1, row->start_ns);
	sqlite3_bind_blob64(statement, 2, row->bytes, row->size, SQLITE_STATIC);
}

static int read_rows(const struct ow_database *file,
                     int (*handler)(void *arg, const uint8_t *bytes, size_t size, struct ow_error *err), void *arg,
                     struct ow_error *err)
{
	sqlite3_stmt *statement;
	int code = SQLITE_ROW, r = ow_database_prepare(file, "SELECT bytes FROM sample ORDER BY id", &statement, err);
	while (r == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		const void *bytes = sqlite3_column_blob(statement, 0);
		r = handler(arg, bytes, (size_t)sqlite3_column_bytes(statement, 0), err);
	}
	if (r == 0 && code != SQLITE_DONE)
		r = ow_database_fail(file, err);
	sqlite3_finalize(statement);
	return r;
}

int ow_sample_rows_read(const char *path,
                        int (*handler)(void *arg, const uint8_t *bytes, size_t size, struct ow_error *err), void *arg,
                        struct ow_error *err)
{
	struct ow_database file;
	int r = ow_database_look(path, &file, err);
	if (r < 0)
		return r;
	if (file.version < OW_SAMPLE_ROW_SINCE)
		r = ow_error_set(err, ENODATA, "%s: has no samples, it is of an older version of oneway", path);
	else
		r = read_rows(&file, handler, arg, err);
	ow_database_close(&file);
	return r;
}
