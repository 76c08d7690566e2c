/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "active/probes.h"

/* Private to probes.c (probes and replies), probes_settle.c (the direction of losses) and probes_result.c (results). */

struct ow_probes_slot {
	int64_t sent_ns;
	int64_t delay_ns[OW_PROBES_LANES];
	/* The lowest and highest number of the reflector's replies to this probe, extended beyond 2^32; after a
	 * renumbering a new epoch begins. */
	int64_t low, high;
	uint32_t epoch;
	bool skipped, answered, timed;
	/* The epoch of the first answered probe from here on, and the smallest number of that epoch from here on. */
	bool followed;
	uint32_t next_epoch;
	int64_t next_low;
};

/* Counted when replies arrive. Probes themselves are counted when their interval becomes final. */
struct ow_probes_interval {
	int64_t start_ns;
	uint64_t first; /* index of its first probe */
	uint64_t bytes, reply_bytes;
	uint64_t late;                        /* replies that came too late, for another interval */
	uint64_t duplicated[OW_PROBES_LANES]; /* THERE and BACK only if the numbers show it */
	uint64_t reordered[OW_PROBES_LANES];  /* BACK, ROUND */
	struct ow_clock_state far;            /* the worst that a reply reported */
	bool heard;
};

/* The probes of an interval. */
struct ow_probes_fate {
	uint64_t sent, answered;
	uint64_t lost_there, lost_back, undecided; /* of those without reply */
	uint64_t under_way;                        /* may still be answered; also in `undecided` */
	uint64_t reordered_there;
};

struct ow_probes_sum {
	struct ow_interval_result counts;
	struct ow_delays *delays;
	uint64_t intervals, partial;
	uint64_t under_way, doubtful; /* probes */
};

struct ow_probes {
	struct ow_probes_options options;
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME], round_name[OW_RESULT_NAME];
	char from[OW_RESULT_NAME], to[OW_RESULT_NAME], method[32];

	struct ow_probes_slot *slot; /* probe n is at n % window */
	uint32_t window;             /* a power of two */
	uint64_t next;               /* probes so far, with the skipped one; the low 32 bits are the sequence number */
	uint64_t settled;            /* probes before this are final */

	struct ow_probes_interval *interval; /* open intervals, a ring */
	uint32_t open, oldest, intervals_max;
	int64_t number; /* of the oldest interval */

	/* The reflector's numbers: */
	bool numbered;
	int64_t newest; /* the highest of this epoch */
	uint32_t epoch;
	bool stateful, told; /* told: `stateful` is known */

	/* Before the first probe that is not final: the highest number so far, and probes without reply since. */
	bool left;
	int64_t left_high;
	uint32_t left_epoch;
	uint64_t left_gap;

	uint64_t newest_answered; /* for the order of round trips: highest probe that was answered, plus one */
	int64_t *scratch;         /* delays, `window` of them */
	struct ow_probes_sum sum[OW_PROBES_LANES];
};

static inline struct ow_probes_slot *ow_probes_slot(const struct ow_probes *probes, uint64_t n)
{
	return &probes->slot[n & (probes->window - 1)];
}

static inline struct ow_probes_interval *ow_probes_interval(const struct ow_probes *probes, uint32_t i)
{
	return &probes->interval[(probes->oldest + i) % probes->intervals_max];
}

/* Determines the fate of probes first .. end - 1. closing_ns: probes that were sent later may still be answered. */
void ow_probes_settle(struct ow_probes *probes, uint64_t first, uint64_t end, int64_t closing_ns,
                      struct ow_probes_fate *ret_fate);

/* Reports the results of the oldest interval to the sink and adds them to the totals. end: the first probe of the next
 * interval. cut: NULL, or why it ends early. */
void ow_probes_report(struct ow_probes *probes, uint64_t end, int64_t length_ns, const struct ow_probes_fate *fate,
                      int64_t now_ns, const struct ow_clock_state *near, const char *cut);
