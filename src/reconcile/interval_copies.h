/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "reconcile/align.h"
#include "reconcile/plausible.h"

/*
 * Identical packets in live measurements, where each interval is decided when it is over: which of those that arrived is
 * which of those that were sent in the interval, or before it and have not arrived yet (align.h). The last pairs of an
 * interval help to align those of the next one. For two points whose clocks show the same time.
 */
#define OW_INTERVAL_COPIES_MAX 4096u /* of one packet that are sent, and that arrive; with more there is no alignment */

struct ow_copies_pairs;

struct ow_interval_copies {
	struct ow_aligner *aligner;
	struct ow_plausible plausible; /* delays of other packets; to be filled in for each interval */
	size_t aligned;                /* arrivals of this interval */
	/* The last pairs of each packet, of this interval and of the last one. */
	struct ow_copies_pairs *pairs[2];
	size_t count[2], room[2];
	struct ow_id_map by_id[2];
	/* What is aligned. */
	int64_t *sent_ns, *received_ns;
	uint32_t *place;
	struct ow_align_arrival *arrival;
	size_t sent_room, place_room, received_room, arrival_room;
};

int ow_interval_copies_create(struct ow_interval_copies **ret_copies);
void ow_interval_copies_free(struct ow_interval_copies *copies);
/* An interval begins. */
void ow_interval_copies_begin(struct ow_interval_copies *copies);
/* Whether so many copies of a packet are aligned: further ones of an interval would take too long. */
bool ow_interval_copies_fit(const struct ow_interval_copies *copies, size_t sents, size_t receiveds);

/* One packet: all of its copies, in the order of time. */
struct ow_copy_times {
	uint64_t id;
	const int64_t *sent_ns, *received_ns;
	uint32_t sents, receiveds;
	int64_t start_ns; /* of the interval */
};

struct ow_copies_verdict {
	const struct ow_align_arrival *arrival; /* valid until the next call */
	bool sure; /* no plausible assignment takes a packet of the interval for one from before, or the reverse */
	int64_t since_ns; /* none that was sent before this has plausibly arrived now */
};

int ow_interval_copies_align(struct ow_interval_copies *copies, const struct ow_copy_times *of,
                             struct ow_copies_verdict *ret_verdict);
/* Pairs of this interval, in order. Without memory they do not help. */
void ow_interval_copies_note(struct ow_interval_copies *copies, uint64_t id, int64_t sent_ns, int64_t received_ns);
