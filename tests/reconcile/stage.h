/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/matcher.h"
#include <stddef.h>

/*
 * A test bench for the matcher: records of both sides are added, pushed in the order of time, and everything that the
 * matcher reports is noted and checked: each record is in one pair or unmatched, pairs have one id, each unsettled pair
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
	uint32_t met;                              /* pairs that were reported many at a time */
	bool pieces; /* byte ranges: records end in several parts; the test checks them by `on_pair` and `on_single` */
	void (*on_pair)(struct stage *stage, const struct ow_pair *pair, enum ow_certainty certainty);
	void (*on_single)(struct stage *stage, enum ow_side side, const struct ow_record *record, bool copy);
	void *arg;
};

void stage_open(struct stage *stage, int64_t window_ns, enum ow_direction way);
/* The same, with usual pairs reported many at a time. */
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
