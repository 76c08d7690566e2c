/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "store/store_rollups.h"

/*
 * Makes a store complete: every interval of a lane is in it, from the first one on. Intervals without a result (the
 * point was not running, there was no agreement, the disk was full) become rows of status unknown, with the cause, as
 * soon as a later result of the lane comes.
 */
struct ow_store_gaps {
	const struct ow_database *file;
	sqlite3_stmt *last, *fill;
	int64_t since_ns;              /* before this time, no point was running here */
	int64_t lost_ns, lost_last_ns; /* between these, results could not be stored; equal = none */
};

/* Of a gap with more intervals only the last ones become rows: about a day of seconds. */
#define OW_STORE_GAPS_ROWS 100000

int ow_store_gaps_init(struct ow_store_gaps *absent, const struct ow_database *file, struct ow_error *err);
void ow_store_gaps_done(struct ow_store_gaps *absent);

/*
 * Provisional results that a killed process left become final; they are partial if packets are undecided. Within the open
 * transaction, in which they are added up as well.
 */
int ow_store_gaps_settle(const struct ow_database *file, struct ow_store_rollups *rollups, struct ow_error *err);

/* The end of the lane's last interval, INT64_MIN = none. */
int ow_store_gaps_last(struct ow_store_gaps *absent, int64_t lane, int64_t *ret_end_ns, struct ow_error *err);
/* Fills in the missing intervals between end_ns and the start of an interval. */
int ow_store_gaps_fill(struct ow_store_gaps *absent, int64_t lane, int64_t end_ns,
                       const struct ow_interval_result *next, struct ow_error *err);
