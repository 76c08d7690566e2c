/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECORD_INTERVAL_LOG_H
#define OW_RECORD_INTERVAL_LOG_H

#include "record/recorder.h"
#include "synopsis/copies.h"

/*
 * The books of a lane: chunks of the recorder become pages, one an interval. A page is closed when the recorder has
 * passed the end of its interval; it then holds every packet once, copies of identical packets under names of their own
 * (synopsis/copies.h), and stays until it is freed. The work is done chunk by chunk: closing a page is cheap.
 *
 * Memory: pages hold at most `stamps_max` packets. A page that would become larger halves itself as often as needed
 * (sample_shift); total_packets still counts all.
 */

struct ow_interval_packets {
	int64_t interval;
	int64_t start_ns, length_ns;
	unsigned sample_shift;
	uint64_t total_packets, total_bytes, unreadable;
	uint64_t ring_drops;
	char blind[OW_OUTAGE_CAUSE]; /* why packets of a part of the interval may be missing; "" = they are not */
	struct ow_sighting *stamp;   /* in the order of arrival, times since start_ns */
	size_t count;
	struct ow_copy *copy; /* sorted by id */
	size_t copies;
};

struct ow_interval_log_options {
	struct ow_identity identity; /* for ow_sample_rank */
	int64_t t0_ns, length_ns;
	size_t stamps_max; /* of a page */
	/* Pages that are not closed yet; packets of others are counted in `misplaced`. An empty one takes 200 bytes:
	 * enough of them for the longest time that a reader may be held up. */
	size_t open_max;
};

struct ow_interval_log;

int ow_interval_log_create(const struct ow_interval_log_options *options, struct ow_interval_log **ret_ledger);
void ow_interval_log_free(struct ow_interval_log *ledger);

/* Another size of pages from now on. */
void ow_interval_log_set_max(struct ow_interval_log *ledger, size_t stamps_max);

/* Does not keep the chunk. -ENOMEM: the packets are counted, the page says so by its shift. */
int ow_interval_log_add(struct ow_interval_log *ledger, const struct ow_chunk *chunk);
/* Ring drops since the last call. Every interval that they may have been in gets its share, and at least one. */
void ow_interval_log_drops(struct ow_interval_log *ledger, const struct ow_drops *drops);

/* Packets of this time may be missing: pages of it say so. */
void ow_interval_log_outage(struct ow_interval_log *ledger, const struct ow_outage *outage);

/*
 * The oldest page whose interval ended at or before passed_ns, in order and without gaps from the first interval that
 * began at or after start (an interval without packets has an empty page; only a clock that jumps by more
 * than 1024 intervals without a packet leaves pages out); NULL if there is none. With passed_ns
 * INT64_MAX (end of all files) it goes up to the last interval that has packets. The page is the caller's.
 */
struct ow_interval_packets *ow_interval_log_next(struct ow_interval_log *ledger, int64_t passed_ns);
/* Is there one? When ow_interval_log_next has none nevertheless, there was no memory; the page is still there. */
bool ow_interval_log_due(struct ow_interval_log *ledger, int64_t passed_ns);
void ow_interval_packets_free(struct ow_interval_packets *page);

/* Reduces a page to a larger shift, as the other point has it. */
void ow_interval_packets_resample(struct ow_interval_packets *page, const struct ow_identity *identity,
                                  unsigned sample_shift);
/* Leaves out what was seen from end_ns on, which is within the page; totals in proportion. */
void ow_interval_packets_cut(struct ow_interval_packets *page, int64_t end_ns);
/* What was seen from some time within the page on, as the page of the interval after it. NULL without memory. */
struct ow_interval_packets *ow_interval_packets_rest(const struct ow_interval_packets *page, int64_t from_ns);
/* The copy that goes by this id, or NULL: then it is the first, or the only one. */
const struct ow_copy *ow_interval_packets_copy(const struct ow_interval_packets *page, uint64_t id);

/* Packets that came for an interval whose page was closed or too far away: a clock that jumped, or a reader that was
 * held up for long. They count as dropped, too. */
uint64_t ow_interval_log_misplaced(const struct ow_interval_log *ledger);

#endif
