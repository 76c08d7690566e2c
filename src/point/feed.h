/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_FEED_H
#define OW_POINT_FEED_H

#include "point/tap.h"

/*
 * Batches of records from a tap, in the common time base, ready for merging. With a thread of its own a feed reads and
 * decodes ahead while its consumer matches; then the tap belongs to that thread until the feed is stopped.
 */

struct ow_batch {
	int count;
	uint64_t position; /* bytes of the file that were read for it */
	int64_t first_ns;  /* of the file so far, with frames that became no record; INT64_MAX: nothing has a time */
	struct ow_record record[OW_TAP_BATCH];
	int64_t last_ns; /* latest time */
	/* Times that never decrease within the batch: disorder in the file stays local. Then INT64_MAX. */
	int64_t order_ns[OW_TAP_BATCH + 1];
};

/* How a side's times become common ones: plus shift, plus drift times what has passed since drift_from. */
struct ow_time_base {
	int64_t shift_ns, drift_from_ns;
	double drift; /* nanoseconds to add in a nanosecond */
};

struct ow_feed;

int ow_feed_start(struct ow_tap *tap, const struct ow_time_base *base, bool threaded, struct ow_feed **ret_feed);
/* The next batch, valid until the next call; NULL at the end (0) or on failure (negative errno). */
int ow_feed_next(struct ow_feed *feed, const struct ow_batch **ret_batch, struct ow_error *err);
/* Once the end was taken: the latest time of the file, with frames that became no record; INT64_MIN if none has a time.
 */
int64_t ow_feed_last_ns(const struct ow_feed *feed);
/* Stops and frees; the tap is the caller's again. NULL is fine. */
void ow_feed_stop(struct ow_feed *feed);

#endif
