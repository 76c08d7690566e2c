/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sample_row.h"

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
