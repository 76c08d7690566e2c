/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_TESTS_RECONCILE_STAGE_H
#define OW_TESTS_RECONCILE_STAGE_H

#include "reconcile/matcher.h"
#include <stddef.h>

/*
 * A stage for the matcher: records of both sides are put on it, played in the order of time, and everything that the
 * matcher tells is noted and checked: each record ends in one pair or unmatched, pairs have one id, what is unsettled
 * is settled once.
 */
#define STAGE_MAX 4096

enum stage_end { STAGE_WAITS, STAGE_MATCHED, STAGE_UNMATCHED };

struct stage_record {
	struct ow_record record;
	uint64_t truth; /* which packet this really is; 0 = not told */
	enum stage_end end;
	uint32_t partner; /* index on the other side, when matched */
	enum ow_certainty certainty;
	int64_t less_ns, more_ns; /* of the pair */
	bool copy;
};

struct stage {
	struct ow_matcher *matcher;
	int64_t window_ns;
	enum ow_direction way; /* what the stage answers when asked for a direction */
	struct stage_record entry[OW_SIDES][STAGE_MAX];
	uint32_t count[OW_SIDES];
	uint32_t pairs, unmatched[OW_SIDES], open; /* open: unsettled pairs */
	uint32_t met;                              /* pairs that were told many at a time */
	bool pieces; /* trains: records end in several pieces, the test checks them by `on_pair` and `on_single` */
	void (*on_pair)(struct stage *stage, const struct ow_pair *pair, enum ow_certainty certainty);
	void (*on_single)(struct stage *stage, enum ow_side side, const struct ow_record *record, bool copy);
	void *arg;
};

void stage_open(struct stage *stage, int64_t window_ns, enum ow_direction way);
/* Likewise, with usual pairs told many at a time. */
void stage_open_late(struct stage *stage, int64_t window_ns, enum ow_direction way);
void stage_close(struct stage *stage);
/* Forgets the records, keeps the matcher. */
void stage_clear(struct stage *stage);
struct stage_record *stage_put(struct stage *stage, enum ow_side side, uint64_t id, int64_t time_ns, uint64_t truth);
/* Plays all records (each side must have been put in the order of time). end_ns: what comes next on both sides. */
void stage_play(struct stage *stage, int64_t end_ns);
void stage_finish(struct stage *stage);
/* Every record has ended, nothing is open; the numbers add up. */
void stage_check(const struct stage *stage);

#endif
