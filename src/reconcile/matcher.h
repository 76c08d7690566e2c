/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_RECONCILE_MATCHER_H
#define OW_RECONCILE_MATCHER_H

#include "packet/record.h"
#include <oneway/match.h>
#include <stddef.h>

/*
 * Matches two streams of packet records that come in time order, holding only what still waits for its counterpart.
 *
 * A packet whose id is unique in the window meets its counterpart and leaves. Identical packets wait until no further
 * copy can come between them, and are aligned (align.h): each pair is certain, or its delay has bounds.
 * Pieces of trains (len > 0) are matched by overlapping byte ranges, so that a superframe meets its segments.
 *
 * Times are in the common time base: the caller has added the clock shift to B's.
 */
struct ow_matcher;

struct ow_pair {
	/* Valid during the call; with len set to the common piece where it is a train's. */
	const struct ow_record *record[OW_SIDES];
	bool alike;    /* others just like it could have been meant: its place among the sent packets says nothing */
	bool repeated; /* others just like it are about: it says nothing of the clocks */
	int64_t less_ns, more_ns; /* uncertain: the delay may be shorter, or longer, by so much */
	int64_t step_ns; /* uncertain: the plausible delays next to each other are so far apart; 0 = not known */
};

enum ow_certainty {
	OW_CERTAIN,   /* the delay of this pair is a sample */
	OW_UNCERTAIN, /* identical packets: it is an estimate, with bounds */
	OW_AMBIGUOUS, /* identical packets: it is not known */
	OW_UNSETTLED, /* to be told by `settled` */
};

/* A certain pair in the usual case: whole packets, unique, with a plausible delay. */
struct ow_meeting {
	int64_t time_ns[OW_SIDES];
	uint64_t number[OW_SIDES];
	uint32_t flow[OW_SIDES];
	bool untimed; /* one of them is */
};

/* What the matcher tells, and asks. The caller counts. */
struct ow_matcher_calls {
	/* Certain pairs in the usual case, many at a time: late, but before any other call. NULL: by `matched`. */
	void (*met)(void *arg, const struct ow_meeting *meeting, size_t count);
	void (*matched)(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);
	/* One of the unsettled pairs of this id is known now. Its records may be others than were told. */
	void (*settled)(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);
	/* A record that found no counterpart. copy: its id matched shortly before. */
	void (*unmatched)(void *arg, enum ow_side side, const struct ow_record *record, bool copy);
	/* Which way does this flow go, as far as is known? OW_DIRECTIONS = not known. */
	enum ow_direction (*direction)(void *arg, enum ow_side side, uint32_t flow);
	void *arg;
};

int ow_matcher_create(int64_t window_ns, const struct ow_matcher_calls *calls, struct ow_matcher **ret_matcher);
void ow_matcher_free(struct ow_matcher *matcher);

/* Tells beforehand which delays are usual in a direction, from low to high. */
void ow_matcher_expect(struct ow_matcher *matcher, enum ow_direction direction, int64_t low_ns, int64_t high_ns);

/* Tells when a capture started: of identical packets, those before may be the counterparts. Before the first push. */
void ow_matcher_start(struct ow_matcher *matcher, enum ow_side side, int64_t first_ns);
/* All packets go one way, whatever the clocks say. */
void ow_matcher_one_way(struct ow_matcher *matcher);
/* No packet of this direction is faster than the fastest unique one. */
void ow_matcher_least(struct ow_matcher *matcher, enum ow_direction direction, int64_t least_ns);
/* Packets of this direction overtake those that were sent up to reorder_ns earlier. */
void ow_matcher_reorders(struct ow_matcher *matcher, enum ow_direction direction, int64_t reorder_ns);

/* Packets of this direction arrive in the order in which they were sent, but for errors of timestamps up to slack_ns.
 * Returns 0 or -ENOMEM. */
int ow_matcher_in_order(struct ow_matcher *matcher, enum ow_direction direction, int64_t slack_ns);

/*
 * Takes the next record of one side. other_ns: the time of the next record of the other side that is still to come
 * (INT64_MAX when there is none); what waited longer than the window for it is unmatched. Returns 0 or -ENOMEM.
 */
int ow_matcher_push(struct ow_matcher *matcher, enum ow_side side, const struct ow_record *record, int64_t other_ns);

/* Records of one side. order_ns has the time by which each is to be pushed, and one time more: that of the record
 * behind them. INT64_MAX at the end of the side. */
struct ow_matcher_stream {
	const struct ow_record *next, *end;
	const int64_t *order_ns;
};

/* Pushes the records of both sides by time until those of one are used up. Returns 0 or -ENOMEM. */
int ow_matcher_merge(struct ow_matcher *matcher, struct ow_matcher_stream stream[OW_SIDES]);
/* Start loading what the pushes of these records will touch: first the hash buckets, some records later what these
 * hold. */
void ow_matcher_prefetch(const struct ow_matcher *matcher, const struct ow_record *record, size_t count);
void ow_matcher_prefetch_waiters(const struct ow_matcher *matcher, const struct ow_record *record, size_t count);
/* Both streams have ended: everything that waits is settled, or unmatched. Returns 0 or -ENOMEM. */
int ow_matcher_finish(struct ow_matcher *matcher);
/* Pairs of identical packets of which more copies were in flight than can be compared: their bounds may be too narrow.
 */
uint64_t ow_matcher_crowded(const struct ow_matcher *matcher, enum ow_direction direction);
/* Unique packets that were received long before they were sent, told as ambiguous. */
uint64_t ow_matcher_impossible(const struct ow_matcher *matcher, enum ow_direction direction);
/* Most records that waited at one time. */
uint64_t ow_matcher_peak(const struct ow_matcher *matcher);

#endif
