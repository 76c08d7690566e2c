/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/hash.h"
#include "reconcile/align.h"
#include "reconcile/fifo.h"
#include "reconcile/matcher.h"
#include "reconcile/plausible.h"
#include "reconcile/recent.h"
#include "reconcile/waiting.h"

/* Internal to the matcher: what matcher.c (unique packets), identical.c and byte_ranges.c have in common. */

/* The queue of this id is checked when the time comes. */
struct ow_due {
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
	uint64_t early[OW_DIRECTIONS]; /* unique packets that came implausibly early */
	/* Until this time a pair may be two copies of one packet, of which each capture misses one. */
	int64_t start_ns[OW_SIDES], hold_until_ns;
	uint32_t held;
	int64_t last_ns[OW_SIDES]; /* of the records that came */
	bool ended[OW_SIDES];      /* no more come */
	/* Identical packets. */
	struct ow_aligner *aligner;
	struct ow_group_scratch *scratch;
	double sigma_ns[OW_DIRECTIONS]; /* usual change of the delay between neighbours; 0 = not known */
	int64_t reorder_ns[OW_DIRECTIONS];
	struct ow_fifo fifo[OW_DIRECTIONS];
	int64_t least_ns[OW_DIRECTIONS];  /* delay of unique packets, known beforehand; 0 = not known */
	int64_t flight_ns[OW_DIRECTIONS]; /* the last packets may be in flight for this long; 0 = not known */
	uint64_t group_sent[OW_DIRECTIONS], group_lost[OW_DIRECTIONS];
	uint64_t copies[OW_DIRECTIONS];     /* further arrivals of unique packets */
	bool one_way;                       /* delays may be below 0; */
	enum ow_direction only_way;         /* .. all packets go this way */
	bool in_order;                      /* there are marks of a direction */
	uint64_t impossible[OW_DIRECTIONS]; /* unique packets that were received long before they were sent */
	uint64_t sent_again[OW_DIRECTIONS]; /* unique packets that were taken for ones that were sent again */
	uint64_t crowded[OW_DIRECTIONS];    /* pairs of which more copies were in flight than can be compared */
	struct ow_due *due;                 /* a ring, in the order of time */
	uint32_t dues, due_first, due_room;
	int64_t due_ns;     /* of the first; INT64_MAX when there is none */
	uint64_t collected; /* identical packets that were collected to be compared, for tests */
	struct ow_meeting met[OW_MATCHING_MET];
	unsigned mets; /* not reported yet */
};

/* The marks of the path of a unique packet; NULL = there are none. */
static inline struct ow_fifo *ow_matching_fifo(struct ow_matcher *m, int64_t a_ns, int64_t b_ns)
{
	struct ow_fifo *fifo = &m->fifo[m->one_way ? m->only_way : b_ns >= a_ns ? OW_A_TO_B : OW_B_TO_A];
	return fifo->mark ? fifo : NULL;
}

static inline void ow_matching_mark(struct ow_matcher *m, int64_t a_ns, int64_t b_ns)
{
	struct ow_fifo *fifo = ow_matching_fifo(m, a_ns, b_ns);
	if (fifo)
		ow_fifo_note(fifo, fifo == m->fifo ? a_ns : b_ns, fifo == m->fifo ? b_ns : a_ns);
}

/* The packet is not unique. */
static inline void ow_matching_unmark(struct ow_matcher *m, int64_t a_ns, int64_t b_ns)
{
	struct ow_fifo *fifo = ow_matching_fifo(m, a_ns, b_ns);
	if (fifo)
		ow_fifo_forget(fifo, fifo == m->fifo ? b_ns : a_ns);
}

static inline void ow_matching_tell(struct ow_matcher *m, const struct ow_meeting *meeting, size_t count)
{
	m->calls.met(m->calls.arg, meeting, count);
	for (size_t i = 0; i < count && m->in_order; i++)
		ow_matching_mark(m, meeting[i].time_ns[OW_SIDE_A], meeting[i].time_ns[OW_SIDE_B]);
}

static inline void ow_matching_tell_met(struct ow_matcher *m)
{
	if (m->mets)
		ow_matching_tell(m, m->met, m->mets);
	m->mets = 0;
}

/* For callbacks other than `met`, which is called first. */
static inline const struct ow_matcher_calls *ow_matching_calls(struct ow_matcher *m)
{
	ow_matching_tell_met(m);
	return &m->calls;
}

static inline struct ow_pair ow_matching_pair(enum ow_side side, const struct ow_record *mine,
                                              const struct ow_record *other)
{
	/* Not by index: narrow stores followed by a wide load would stall. */
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

static inline bool ow_matching_timed(const struct ow_pair *pair)
{
	return !(pair->record[OW_SIDE_A]->untimed | pair->record[OW_SIDE_B]->untimed);
}

static inline void ow_matching_learn(struct ow_matcher *m, const struct ow_pair *pair, enum ow_direction way)
{
	if (!ow_matching_timed(pair))
		return;
	int64_t d = ow_matching_delay(pair);
	ow_plausible_add(&m->plausible[way], way == OW_A_TO_B ? d : -d);
}

/* Copies of a byte range have the id of the stream: the sequence number distinguishes them. */
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

/* The last time at which a record of time_ns has not waited too long. */
static inline int64_t ow_matching_until(const struct ow_matcher *m, int64_t time_ns)
{
	int64_t until_ns;
	return __builtin_add_overflow(time_ns, m->window_ns, &until_ns) ? INT64_MAX : until_ns;
}

/* A waiter with this record, in no list yet; OW_NOBODY if there is no memory. */
static inline uint32_t ow_matching_new_waiter(struct ow_matcher *m, enum ow_side side, const struct ow_record *record,
                                              bool copy)
{
	uint32_t i = ow_waiting_new(&m->waiting);
	if (i == OW_NOBODY)
		return i;
	struct ow_waiter *e = &m->waiting.entry[i];
	e->record = *record;
	e->side = (uint8_t)side;
	e->copy = copy;
	return i;
}

enum ow_pair_timing { OW_FEASIBLE, OW_TOO_LATE, OW_TOO_EARLY };

/* Whether these two could be the same packet, by the usual delays. */
static inline enum ow_pair_timing ow_matching_judge(const struct ow_matcher *m, const struct ow_pair *pair,
                                                    enum ow_direction way)
{
	int64_t d = way == OW_A_TO_B ? ow_matching_delay(pair) : -ow_matching_delay(pair);
	const struct ow_plausible *p = &m->plausible[way];
	if (!p->known)
		return d < 0 ? OW_TOO_EARLY : OW_FEASIBLE;
	return d < p->low_ns ? OW_TOO_EARLY : d > p->high_ns ? OW_TOO_LATE : OW_FEASIBLE;
}

/* matcher.c: adds a record to the queue q of its id, OW_NOBODY = none yet. */
int ow_matching_wait(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q);
/* matcher.c: the oldest does not wait any longer: unmatched. */
void ow_matching_give_up(struct ow_matcher *m, uint32_t i);

/*
 * identical.c: a record whose id is not unique, or that waits to see whether it is; the queues whose time has come; the
 * end of a queue; memory.
 */
int ow_matching_push_identical(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t *link);
int ow_matching_look(struct ow_matcher *m, int64_t now_ns);
void ow_matching_leave(struct ow_matcher *m, uint32_t q);
void ow_matching_free_groups(struct ow_matcher *m);

/* byte_ranges.c: a byte range. */
int ow_matching_push_segment(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q);
