/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_gaps.h"

#include "store/postgres.h"

/*
 * An interval of more than a minute makes a minute of its length, at the start of the minute in which it begins: the next
 * one begins before its length and a minute are over. The index has no lengths: only those before a pause are looked up.
 */
#define SQL                                                                                                          \
	"SELECT from_point, to_point, m.start_ns + 60000000000, next_ns FROM (SELECT lane, start_ns,"                \
	" lead(start_ns) OVER (PARTITION BY lane ORDER BY start_ns) AS next_ns FROM minute WHERE start_ns >= ?1 AND" \
	" start_ns < ?2) AS m JOIN lane ON lane.id = m.lane WHERE next_ns > m.start_ns + 60000000000 AND next_ns >=" \
	" m.start_ns + 60000000000 + (SELECT length_ns FROM minute WHERE lane = m.lane AND start_ns = m.start_ns)"   \
	" ORDER BY next_ns DESC LIMIT ?3"

int ow_postgres_gaps(struct ow_postgres_writer *writer, int64_t since_ns, int64_t until_ns, unsigned limit,
                     ow_postgres_each_gap *each, void *arg, struct ow_error *err)
{
	struct ow_statement *statement = NULL;
	struct ow_postgres *postgres = ow_postgres_writer_connection(writer);
	enum ow_step step;
	int r = ow_postgres_prepare(postgres, SQL, &statement, err);
	if (r < 0)
		return r;
	ow_bind_integer(statement, 1, since_ns);
	ow_bind_integer(statement, 2, until_ns);
	ow_bind_integer(statement, 3, limit);
	while ((step = ow_step(statement)) == OW_STEP_ROW) {
		struct ow_postgres_gap gap = {.from = ow_column_string(statement, 0),
		                              .to = ow_column_string(statement, 1),
		                              .since_ns = ow_column_integer(statement, 2),
		                              .until_ns = ow_column_integer(statement, 3)};
		each(arg, &gap);
	}
	if (step == OW_STEP_FAILED)
		r = ow_postgres_fail(postgres, err);
	ow_statement_free(statement);
	return r;
}
