/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/period.h"
#include "store/postgres.h"

/*
 * Hours and days in the database. An hour is added up when it is over, from its minutes, for all lanes; a day from its
 * hours. Meta has the time before which this was done. A minute that comes or changes after that puts its hour and lane on
 * the list rollup_due, in the same transaction, and the hour is added up again; and so on to days.
 */

/* Within a transaction that adds results to the period below. Whether results of this time are added up already: until the
 * end of the transaction this does not change. 1, 0, or a negative errno. */
int ow_postgres_rollup_is_late(struct ow_postgres *postgres, enum ow_period period, int64_t start_ns,
                               struct ow_error *err);
/* Runs a statement that inserts such results, and puts what changes on the list. *ret_rows: rows that it changed. */
int ow_postgres_rollup_merge(struct ow_postgres *postgres, enum ow_period period, const char *insert,
                             uint64_t *ret_rows, struct ow_error *err);

/* Where a collector is in the list; all 0: at its start. */
struct ow_postgres_rollup_place {
	int64_t period, start_ns;
	unsigned steps; /* in a row in this hour or day */
};
/*
 * One step of the work: an hour or a day of some hundred lanes. They take turns: a point that changes its old minutes
 * again and again does not hold up the hours of others. 1: there is more to do; 0: there is not, or another collector does
 * it.
 */
int ow_postgres_rollup_step(struct ow_postgres *postgres, struct ow_postgres_rollup_place *place, int64_t now_ns,
                            struct ow_error *err);
