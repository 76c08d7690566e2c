/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ow_sighting;

/*
 * The ids of packets that were sent so shortly before an interval that they may arrive in it. If one with the same id was
 * sent in the interval as well, or two of them before it, an arrival may be either's: they are copies, although no interval
 * has two of them.
 *
 * Only packets within the longest delay before the end of an interval are stored: few, unless intervals are shorter than the
 * path. Each takes one slot in a table with open addressing; ids are uniform.
 */
struct ow_sent_lately_slot {
	uint64_t id; /* 0 = free */
	int64_t time_ns;
};

struct ow_sent_lately_ids {
	struct ow_sent_lately_slot *slot;
	unsigned bits; /* there are 2^bits */
	size_t used;
};

struct ow_sent_lately {
	/* When it was sent, and how long after the one before: since the last change of the two, and between the last two changes. */
	struct ow_sent_lately_ids once[2], again[2];
	int64_t since_ns, end_ns; /* of the first one; absolute */
	int64_t reach_ns;         /* for how long they matter */
};

/* Zeroed is empty. */
void ow_sent_lately_done(struct ow_sent_lately *lately);
/*
 * An interval begins, whose packets are not added yet. reach_ns: no packet takes longer. Forgets what was sent too long before it.
 */
void ow_sent_lately_begin(struct ow_sent_lately *lately, int64_t start_ns, int64_t reach_ns);
/* Adds the packets of the interval, in order, times since its start. Without memory, or with more than 100 thousand, some are left
 * out. */
void ow_sent_lately_add(struct ow_sent_lately *lately, const struct ow_sighting *sighting, size_t count,
                        int64_t start_ns, int64_t length_ns);
/* Adds one packet. */
void ow_sent_lately_note(struct ow_sent_lately *lately, uint64_t id, int64_t time_ns);
/* When the last one with this id was sent, or INT64_MIN. */
int64_t ow_sent_lately_last(const struct ow_sent_lately *lately, uint64_t id);
/* Two were, in different intervals: the time between the last ones; or 0. */
int64_t ow_sent_lately_apart(const struct ow_sent_lately *lately, uint64_t id);
