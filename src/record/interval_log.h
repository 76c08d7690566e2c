/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "record/recorder.h"
#include "synopsis/copies.h"

/*
 * The open intervals of a lane: collects the recorder's chunks by interval. An interval is closed when the recorder has
 * passed its end. Its packets then contain every packet once, copies of identical packets with their own ids
 * (synopsis/copies.h), and stay until they are freed. The work is done for each chunk, so closing is cheap.
 *
 * Memory: an interval holds at most `sightings_max` packets. If it would become larger, its sample is halved as often as
 * needed (sample_shift); total_packets still counts all.
 */

struct ow_interval_packets {
	int64_t interval;
	int64_t start_ns, length_ns;
	int64_t shift_ns,
		end_shift_ns; /* packets of [start + shift, start + length + end shift): record/interval_cuts.h */
	unsigned sample_shift;
	uint64_t total_packets, total_bytes, unreadable;
	uint64_t ring_drops; /* frames; of any lane of the interface */
	uint64_t missed; /* the packets in them, if all are of this lane and frames hold as many as those that came */
	bool session;    /* the points' own session passes where these packets do */
	char blind[OW_OUTAGE_CAUSE];  /* why packets of a part of the interval may be missing; "" = none are */
	struct ow_sighting *sighting; /* in order of arrival, times since start_ns */
	size_t count;
	struct ow_copy *copy; /* sorted by id */
	size_t copies;
	struct ow_lane_flows flows; /* of the packets, if the lane notes them; at most sightings_max / 8 */
};

/* See below: of earlier intervals, with the ids of first copies, in order, times before the start of this one. They
 * become the first packets, and copies are numbered anew. 0, or -ENOMEM and nothing has changed. */
int ow_interval_packets_join(struct ow_interval_packets *packets, const struct ow_sighting *earlier, size_t count);

struct ow_interval_log_options {
	struct ow_identity identity; /* for ow_sample_rank */
	int64_t t0_ns, length_ns;
	size_t sightings_max; /* of an interval */
	/* The number of open intervals; packets of others are counted in `misplaced`. An empty one takes 200 bytes:
	 * enough of them for the longest time that a reader may be delayed. */
	size_t open_max;
};

struct ow_interval_log;

int ow_interval_log_create(const struct ow_interval_log_options *options, struct ow_interval_log **ret_log);
void ow_interval_log_free(struct ow_interval_log *log);

/* Changes the maximum of packets from now on. */
void ow_interval_log_set_max(struct ow_interval_log *log, size_t sightings_max);
/* As ow_recorder_set_cuts: for intervals that are not open yet. */
void ow_interval_log_set_cuts(struct ow_interval_log *log, const struct ow_interval_cuts *cuts);

/* Does not keep the chunk. -ENOMEM: the packets are counted, and sample_shift shows that some are not stored. */
int ow_interval_log_add(struct ow_interval_log *log, const struct ow_chunk *chunk);
/* Adds ring drops since the last call. Every interval in which they may have happened gets its share, at least one. */
void ow_interval_log_drops(struct ow_interval_log *log, const struct ow_drops *drops);

/* Packets of this time may be missing: marks its intervals. */
void ow_interval_log_outage(struct ow_interval_log *log, const struct ow_outage *outage);

/*
 * Returns the packets of the oldest interval that ended at or before passed_ns; NULL if there is none. Intervals come
 * in order and without gaps, from the first that began at or after start. An interval without packets has empty ones;
 * only if a clock jumps by more than 1024 intervals without a packet, intervals are left out. With passed_ns INT64_MAX
 * (end of all files) it continues to the last interval that has packets. The caller owns the result.
 */
struct ow_interval_packets *ow_interval_log_next(struct ow_interval_log *log, int64_t passed_ns);
/* Whether there is such an interval. If ow_interval_log_next returns NULL nevertheless, memory ran out; the interval is
 * kept. */
bool ow_interval_log_due(struct ow_interval_log *log, int64_t passed_ns);
void ow_interval_packets_free(struct ow_interval_packets *packets);

/* Reduces the packets to a larger shift, that of the other point. */
void ow_interval_packets_resample(struct ow_interval_packets *packets, const struct ow_identity *identity,
                                  unsigned sample_shift);
/* Removes what was seen from end_ns on, which is within the interval; reduces totals in proportion. */
void ow_interval_packets_cut(struct ow_interval_packets *packets, int64_t end_ns);
/* What was seen from a time within the interval on, as packets of the following interval. NULL if out of memory. */
struct ow_interval_packets *ow_interval_packets_rest(const struct ow_interval_packets *packets, int64_t from_ns);
/* The copy with this id, or NULL: then it is the first, or the only one. */
const struct ow_copy *ow_interval_packets_copy(const struct ow_interval_packets *packets, uint64_t id);

/* Packets for an interval that was already closed or too far ahead: a clock jumped, or the reader was delayed for long.
 * They also count as dropped. */
uint64_t ow_interval_log_misplaced(const struct ow_interval_log *log);
