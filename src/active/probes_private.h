/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ACTIVE_PROBES_PRIVATE_H
#define OW_ACTIVE_PROBES_PRIVATE_H

#include "estimate/delay.h"
#include "active/probes.h"

/* What probes.c (probes and replies), probes_settle.c (which way they were lost) and probes_result.c (numbers) share:
 * nobody else includes this. */

struct ow_probes_slot {
	int64_t sent_ns;
	int64_t delay_ns[OW_PROBES_LANES];
	/* The reflector's numbers of its replies to this probe, counted on beyond 2^32; a renumbering is a new epoch.
	 */
	int64_t low, high;
	uint32_t epoch;
	bool skipped, answered, timed;
	/* Of the first answered probe from here on: its epoch, and the smallest number of that epoch from here on. */
	bool followed;
	uint32_t next_epoch;
	int64_t next_low;
};

/* What is counted when it arrives. Probes themselves are counted when their interval becomes final. */
struct ow_probes_interval {
	int64_t start_ns;
	uint64_t first; /* its first probe, by count */
	uint64_t bytes, reply_bytes;
	uint64_t late;                        /* replies that came too late, for another interval */
	uint64_t duplicated[OW_PROBES_LANES]; /* THERE and BACK: only where the numbers tell */
	uint64_t reordered[OW_PROBES_LANES];  /* BACK, ROUND */
	struct ow_clock_state far;            /* the worst that a reply said */
	bool heard;
};

/* Of the probes of an interval. */
struct ow_probes_fate {
	uint64_t sent, answered;
	uint64_t lost_there, lost_back, undecided; /* of those without answer */
	uint64_t under_way;                        /* may still be answered; also undecided */
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

	struct ow_probes_slot *slot; /* of probe n: n % window */
	uint32_t window;             /* a power of two */
	uint64_t next;               /* probes so far, with the skipped one; its low 32 bits are the sequence */
	uint64_t settled;            /* below: final */

	struct ow_probes_interval *interval; /* open ones, a ring */
	uint32_t open, oldest, intervals_max;
	int64_t number; /* of the oldest interval */

	/* The reflector's numbers. */
	bool numbered;
	int64_t newest; /* the highest, in this epoch */
	uint32_t epoch;
	bool stateful, told; /* told: whether it is, is known */

	/* Before the first probe that is not settled: the highest number so far, and probes without answer since. */
	bool left;
	int64_t left_high;
	uint32_t left_epoch;
	uint64_t left_gap;

	uint64_t newest_answered; /* for the order of round trips: highest probe that was answered, plus one */
	int64_t *scratch;         /* of delays, `window` */
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

/* What became of probes first .. end - 1. closing_ns: probes that were sent later may still be answered. */
void ow_probes_settle(struct ow_probes *probes, uint64_t first, uint64_t end, int64_t closing_ns,
                      struct ow_probes_fate *ret_fate);

/* The results of the oldest interval to the sink and into the sums. end: its first probe of the next one. cut: NULL, or
 * why it ends before its time. */
void ow_probes_report(struct ow_probes *probes, uint64_t end, int64_t length_ns, const struct ow_probes_fate *fate,
                      int64_t now_ns, const struct ow_clock_state *near, const char *cut);

#endif
