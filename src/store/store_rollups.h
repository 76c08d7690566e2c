/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/period.h"
#include "result/rollup.h"
#include "store/database.h"
#include "store/row.h"

/*
 * Adds final results up to minutes, these to hours, and these to days, in the transactions in which results are stored:
 * whenever a process is killed, the sums in the file are those of the results in it.
 *
 * A result belongs to the minute in which it begins. A minute is added up when the lane has a final result of a later
 * one, when nothing came for long, or when the process ends, and again when one of its own results becomes final or is
 * replaced after that. The hour and the day are added up with each of their minutes; they are not final before they are
 * over. What was deleted is not missed: a sum whose parts may be gone stays as it is.
 */
struct ow_store_rollups {
	const struct ow_database *file;
	struct ow_rollup *rollup;
	struct ow_row_reader reader;
	sqlite3_stmt *read[OW_PERIODS], *put[OW_PERIODS]; /* of a minute, an hour, a day: its parts, and itself */
	sqlite3_stmt *first, *newest, *rolled, *next_lane;
	struct ow_store_rollups_lane *lane; /* those that were looked at */
	size_t lanes, lanes_room, last;
	struct ow_store_rollups_dirty *dirty[OW_PERIODS]; /* to be added up again in this transaction */
	size_t dirties[OW_PERIODS], dirty_room[OW_PERIODS];
	int64_t deleted_ns[OW_PERIODS]; /* parts that began before this were deleted */
	bool stale;                     /* these have to be read again */
};

int ow_store_rollups_init(struct ow_store_rollups *rollups, const struct ow_database *file, struct ow_error *err);
void ow_store_rollups_done(struct ow_store_rollups *rollups);

/* A final result of the lane that begins at this time was stored, or is to be, in the open transaction. */
int ow_store_rollups_note(struct ow_store_rollups *rollups, int64_t lane, int64_t start_ns, struct ow_error *err);
/*
 * Adds up what is due, within the open transaction; of lanes that are far behind only a part. Returns 1 if there is more.
 */
int ow_store_rollups_update(struct ow_store_rollups *rollups, struct ow_error *err);
/* The same for all lanes, also those of which nothing is stored any more: all minutes before this time. */
int ow_store_rollups_update_all(struct ow_store_rollups *rollups, int64_t before_ns, struct ow_error *err);
/* The transaction has failed: what was noted is forgotten. */
void ow_store_rollups_forget(struct ow_store_rollups *rollups);
/* Results, minutes or hours before this time are being deleted, within the open transaction. */
int ow_store_rollups_deleted(struct ow_store_rollups *rollups, enum ow_period period, int64_t before_ns,
                             struct ow_error *err);
