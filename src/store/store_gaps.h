/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_STORE_STORE_GAPS_H
#define OW_STORE_STORE_GAPS_H

#include "result/interval_result.h"
#include "store/database.h"

/*
 * What makes a store complete: every interval of a lane is in it, from the first one on. Intervals of which nobody told
 * (the point was not running, nothing was agreed on, the disk was full) become rows of status unknown, with the cause,
 * as soon as a later result of the lane comes.
 */
struct ow_store_gaps {
	const struct ow_database *file;
	sqlite3_stmt *last, *fill;
	int64_t since_ns;              /* before, nothing ran here */
	int64_t lost_ns, lost_last_ns; /* in between, results could not be stored; equal = none */
};

/* Of a gap with more intervals only the last ones become rows: a day of seconds. */
#define OW_STORE_GAPS_ROWS 100000

int ow_store_gaps_init(struct ow_store_gaps *absent, const struct ow_database *file, struct ow_error *err);
void ow_store_gaps_done(struct ow_store_gaps *absent);

/* A process that was killed has left provisional results: they become final, partial where packets are undecided. */
int ow_store_gaps_settle(const struct ow_database *file, struct ow_error *err);

/* The end of the lane's last interval, INT64_MIN = none. */
int ow_store_gaps_last(struct ow_store_gaps *absent, int64_t lane, int64_t *ret_end_ns, struct ow_error *err);
/* Fills in what is missing between end_ns and the start of an interval. */
int ow_store_gaps_fill(struct ow_store_gaps *absent, int64_t lane, int64_t end_ns,
                       const struct ow_interval_result *next, struct ow_error *err);

#endif
