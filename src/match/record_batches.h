/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/record_reader.h"
#include <math.h>

/*
 * Batches of records from a record reader, in the common time base, ready for merging. The consumer builds a batch
 * itself, unless a read-ahead thread has prepared it: these threads read and decode ahead, always for the side with the
 * fewest ready batches. So all threads work, and none waits for the slowest part. The batches own the reader until they
 * are stopped.
 */

struct ow_batch {
	int count;
	uint64_t position; /* bytes of the file that were read for it */
	/* earliest time of the file so far, including frames without a record; INT64_MAX: no frame has a time */
	int64_t first_ns;
	struct ow_record record[OW_RECORD_READER_BATCH];
	int64_t last_ns; /* latest time */
	/* Times that never decrease within the batch, so that disorder in the file stays local. Then INT64_MAX. */
	int64_t order_ns[OW_RECORD_READER_BATCH + 1];
	/* Copies in the capture: not to be merged. If there are many in a row, some are omitted. */
	int agains;
	struct ow_record again[OW_RECORD_READER_BATCH];
};

/* Converts a side's times to the common time base: plus shift, plus drift times the time since drift_from. */
struct ow_time_base {
	int64_t shift_ns, drift_from_ns;
	double drift; /* nanoseconds to add in a nanosecond */
};

static inline int64_t ow_time_base_common(const struct ow_time_base *base, int64_t time_ns)
{
	if (base->drift != 0)
		time_ns += llrint(base->drift * (double)(time_ns - base->drift_from_ns));
	return time_ns + base->shift_ns;
}

struct ow_record_batches;
struct ow_readahead;

int ow_record_batches_start(struct ow_record_reader *input, const struct ow_time_base *base,
                            struct ow_record_batches **ret_batches);
/* The next batch, valid until the call after the next; NULL at the end (0) or on failure (negative errno). */
int ow_record_batches_next(struct ow_record_batches *batches, const struct ow_batch **ret_batch, struct ow_error *err);
/*
 * After the end was taken: the latest time of the file, including frames without a record; INT64_MIN if none has a
 * time.
 */
int64_t ow_record_batches_last_ns(const struct ow_record_batches *batches);
/* Stops and frees; the caller owns the reader again. The read-ahead threads must have ended. Does nothing for NULL. */
void ow_record_batches_stop(struct ow_record_batches *batches);

#define OW_READAHEAD_INPUTS 16u /* at most */
/*
 * Read-ahead threads for the batches of all inputs, at most one for each: more would only wait. NULL if none can be
 * started, which only takes longer.
 */
struct ow_readahead *ow_readahead_start(struct ow_record_batches *const *batches, unsigned inputs, unsigned threads);
/* Does nothing for NULL. */
void ow_readahead_leave(struct ow_readahead *readahead);
