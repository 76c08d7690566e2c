/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_MATCHING_H
#define OW_RECONCILE_MATCHING_H

#include "base/hash.h"
#include "reconcile/matcher.h"
#include "reconcile/plausible.h"
#include "reconcile/recent.h"
#include "reconcile/waiting.h"

/* Internal to the matcher: what matcher.c (unique packets), identical.c and trains.c share. */

/* A pair whose delay is implausible: if its id shows up again within the window, it was another packet. */
struct ow_doubt {
	uint64_t id;
	int64_t time_ns;
};

#define OW_MATCHING_MET 64

struct ow_matcher {
	struct ow_matcher_calls calls;
	int64_t window_ns;
	struct ow_waiting waiting;
	struct ow_plausible plausible[OW_DIRECTIONS];
	struct ow_recent *recent;
	uint64_t early[OW_DIRECTIONS]; /* unique packets that came too early to be plausible */
	/* Identical packets that were matched when no other, and when several of their kind were on their way. */
	uint64_t alone[OW_DIRECTIONS], crowded[OW_DIRECTIONS];
	struct ow_doubt *doubt; /* a ring of doubts, oldest first */
	uint32_t doubts, doubt_first, doubt_room;
	int64_t doubt_until_ns; /* after this time the oldest doubt is dispelled; INT64_MAX when there is none */
	struct ow_meeting met[OW_MATCHING_MET];
	unsigned mets; /* still to be told */
};

static inline void ow_matching_tell_met(struct ow_matcher *m)
{
	if (m->mets)
		m->calls.met(m->calls.arg, m->met, m->mets);
	m->mets = 0;
}

/* For calls other than `met`, which comes first. */
static inline const struct ow_matcher_calls *ow_matching_calls(struct ow_matcher *m)
{
	ow_matching_tell_met(m);
	return &m->calls;
}

static inline struct ow_pair ow_matching_pair(enum ow_side side, const struct ow_record *mine,
                                              const struct ow_record *other)
{
	/* Not by index: narrow stores and a wide load of them would stall. */
	bool a = side == OW_SIDE_A;
	return (struct ow_pair){.record = {a ? mine : other, a ? other : mine}};
}

static inline int64_t ow_matching_delay(const struct ow_pair *pair)
{
	return pair->record[OW_SIDE_B]->time_ns - pair->record[OW_SIDE_A]->time_ns;
}

static inline enum ow_direction ow_matching_way(struct ow_matcher *m, const struct ow_pair *pair)
{
	enum ow_direction way = ow_matching_calls(m)->direction(m->calls.arg, OW_SIDE_A, pair->record[OW_SIDE_A]->flow);
	if (way != OW_DIRECTIONS)
		return way;
	return ow_matching_delay(pair) >= 0 ? OW_A_TO_B : OW_B_TO_A;
}

static inline void ow_matching_learn(struct ow_matcher *m, const struct ow_pair *pair, enum ow_direction way)
{
	int64_t d = ow_matching_delay(pair);
	ow_plausible_add(&m->plausible[way], way == OW_A_TO_B ? d : -d);
}

/* Copies of a piece share the train's id: the sequence number tells them apart. */
static inline uint64_t ow_matching_copy_id(const struct ow_record *r)
{
	return r->len ? ow_mix64(r->id ^ r->seq) : r->id;
}

static inline void ow_matching_take(struct ow_matcher *m, uint32_t i)
{
	ow_waiting_stop(&m->waiting, i);
	ow_waiting_dequeue(&m->waiting, i);
	ow_waiting_release(&m->waiting, i);
}

/* The last time at which what came at time_ns has not waited too long. */
static inline int64_t ow_matching_until(const struct ow_matcher *m, int64_t time_ns)
{
	int64_t until_ns;
	return __builtin_add_overflow(time_ns, m->window_ns, &until_ns) ? INT64_MAX : until_ns;
}

enum ow_verdict { OW_FEASIBLE, OW_TOO_LATE, OW_TOO_EARLY };

/* Could these two be the same packet, given how long packets take? */
static inline enum ow_verdict ow_matching_judge(const struct ow_matcher *m, const struct ow_pair *pair,
                                                enum ow_direction way)
{
	int64_t d = way == OW_A_TO_B ? ow_matching_delay(pair) : -ow_matching_delay(pair);
	const struct ow_plausible *p = &m->plausible[way];
	if (!p->known)
		return d < 0 ? OW_TOO_EARLY : OW_FEASIBLE;
	return d < p->low_ns ? OW_TOO_EARLY : d > p->high_ns ? OW_TOO_LATE : OW_FEASIBLE;
}

/* matcher.c: puts a record into the queue q of its id, OW_NOBODY = none yet. */
int ow_matching_wait(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q);
/* matcher.c: the oldest waits no longer: unmatched. */
void ow_matching_give_up(struct ow_matcher *m, uint32_t i);

/* identical.c: a record whose id is not unique; a unique one with an implausible delay; the end of a queue. */
int ow_matching_push_identical(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q);
int ow_matching_push_doubtful(struct ow_matcher *m, const struct ow_pair *pair, uint32_t q, enum ow_direction way);
void ow_matching_leave(struct ow_matcher *m, uint32_t q);
void ow_matching_dispel_oldest_doubt(struct ow_matcher *m);

/* trains.c: a piece of a train. */
int ow_matching_push_piece(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q);

#endif
