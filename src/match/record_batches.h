/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_RECORD_BATCHES_H
#define OW_MATCH_RECORD_BATCHES_H

#include "match/record_reader.h"

/*
 * Batches of records from a tap, in the common time base, ready for merging. They are made by who takes them, unless a
 * crew made them before: its threads read and decode ahead for the feeds, always for the one that has least in store.
 * So all work, and nobody waits for the slowest part. The tap belongs to the feed until that is stopped.
 */

struct ow_batch {
	int count;
	uint64_t position; /* bytes of the file that were read for it */
	int64_t first_ns;  /* of the file so far, with frames that became no record; INT64_MAX: nothing has a time */
	struct ow_record record[OW_RECORD_READER_BATCH];
	int64_t last_ns; /* latest time */
	/* Times that never decrease within the batch: disorder in the file stays local. Then INT64_MAX. */
	int64_t order_ns[OW_RECORD_READER_BATCH + 1];
	/* Copies that the capture shows: not to be merged. Where there are many in a row, some are left out. */
	int agains;
	struct ow_record again[OW_RECORD_READER_BATCH];
};

/* How a side's times become common ones: plus shift, plus drift times what has passed since drift_from. */
struct ow_time_base {
	int64_t shift_ns, drift_from_ns;
	double drift; /* nanoseconds to add in a nanosecond */
};

int64_t ow_time_base_common(const struct ow_time_base *base, int64_t time_ns);

struct ow_record_batches;
struct ow_readahead;

int ow_record_batches_start(struct ow_record_reader *tap, const struct ow_time_base *base,
                            struct ow_record_batches **ret_feed);
/* The next batch, valid until the call after the next; NULL at the end (0) or on failure (negative errno). */
int ow_record_batches_next(struct ow_record_batches *feed, const struct ow_batch **ret_batch, struct ow_error *err);
/* Once the end was taken: the latest time of the file, with frames that became no record; INT64_MIN if none has a time.
 */
int64_t ow_record_batches_last_ns(const struct ow_record_batches *feed);
/* Stops and frees; the tap is the caller's again. The crew has left. NULL is fine. */
void ow_record_batches_stop(struct ow_record_batches *feed);

#define OW_READAHEAD_MAX OW_SIDES /* a thread for each feed: more would only wait */
/* Threads for both feeds; NULL when there are none to be had, which only takes longer. */
struct ow_readahead *ow_readahead_start(struct ow_record_batches *const feed[OW_SIDES], unsigned threads);
/* NULL is fine. */
void ow_readahead_leave(struct ow_readahead *crew);

#endif
