/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/period.h"
#include "store/postgres.h"
#include <stdio.h>

/*
 * The schema of a database of results at a PostgreSQL server: the tables and columns of a store (docs/store.md). Tables of
 * results are partitioned by time: what is old is dropped at once, and what comes in is written at one end.
 */

/* Everything as SQL, for an administrator to read and to run: tables, a role that collects and a role that reads. */
void ow_postgres_schema(FILE *out);

/* The version of its schema; 0: an empty database; negative errno: not a database of ours, or a newer one. */
int ow_postgres_version(struct ow_postgres *postgres, struct ow_error *err);
/* Makes the tables in an empty database, or converts those of an earlier version: completely or not at all. */
int ow_postgres_bring_up(struct ow_postgres *postgres, struct ow_error *err);

/* The part of time that a partition of this period has. */
struct ow_postgres_part {
	enum ow_period period;
	int64_t start_ns, end_ns;
};
struct ow_postgres_part ow_postgres_part(enum ow_period period, int64_t ns);
/* Makes the partition if it does not exist. */
int ow_postgres_add_part(struct ow_postgres *postgres, const struct ow_postgres_part *part, struct ow_error *err);
/* Drops one partition that ended before this time. 1: one was dropped, and there may be more; 0: there is none. */
int ow_postgres_drop_part(struct ow_postgres *postgres, enum ow_period period, int64_t before_ns, struct ow_error *err);

/* Statements for rows: into the temporary table stage_PERIOD, and from there into that of the period; a condition for
 * replacing may follow, with `old` and `excluded` for the stored row and the new one. */
void ow_postgres_put_copy(FILE *out, enum ow_period period);
void ow_postgres_put_merge(FILE *out, enum ow_period period);

/* Advisory locks of collectors, each held until the end of a transaction. */
/* 1: changes of the schema; 2: who adds up; 3: shared by those who write minutes, against moving the time before which
 * they are added up; 4: new lanes. */
#define OW_POSTGRES_LOCK_CLASS "1870094713" /* "oway" */
