/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored_samples.h"

#include "store/database.h"
#include "store/sample_row.h"
#include <errno.h>

static int read_rows(const struct ow_database *file, ow_stored_sample_handler *handler, void *arg, struct ow_error *err)
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

int ow_stored_samples_read(const char *path, ow_stored_sample_handler *handler, void *arg, struct ow_error *err)
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
