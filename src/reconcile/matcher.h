/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/record.h"
#include <oneway/match.h>
#include <stddef.h>

/*
 * Matches two streams of packet records in the order of time, and keeps only what still waits for its counterpart.
 *
 * A packet whose id is unique in the window is matched and removed. Identical packets wait until no further copy can
 * come between them, and are aligned (align.h): each pair is certain, or its delay has bounds. Byte ranges (len > 0)
 * are matched by their overlap, so that a superframe matches its segments.
 *
 * Times are in the common time base: the caller has added the clock shift to B's.
 */
struct ow_matcher;

struct ow_pair {
	/* Valid during the call; for a byte range, len is that of the common part. */
	const struct ow_record *record[OW_SIDES];
	/* there are identical packets that it could be: its position among the sent packets gives no information */
	bool alike;
	bool repeated;            /* there are identical packets: it gives no information about the clocks */
	int64_t less_ns, more_ns; /* uncertain: the delay may be shorter, or longer, by this much */
	int64_t step_ns;          /* uncertain: the distance of neighbouring plausible delays; 0 = not known */
	int64_t near_ns;          /* how long before or after it an identical packet was sent; 0 = not known */
};

enum ow_certainty {
	OW_CERTAIN,   /* the delay of this pair is a sample */
	OW_UNCERTAIN, /* identical packets: it is an estimate, with bounds */
	OW_AMBIGUOUS, /* identical packets: it is not known */
	OW_UNSETTLED, /* `settled` reports it later */
};

/* A certain pair in the usual case: whole packets, unique, with a plausible delay. */
struct ow_meeting {
	int64_t time_ns[OW_SIDES];
	uint64_t number[OW_SIDES];
	uint32_t flow[OW_SIDES];
	bool untimed; /* one of them is */
	/* For the caller of ow_matcher_met: of a packet that needs no log; and its place among others. */
	bool quiet;
	uint32_t turn;
	int64_t order_ns;
};

/* Callbacks of the matcher. The caller counts. */
struct ow_matcher_calls {
	/* Certain pairs in the usual case, many at a time: delayed, but before any other call. NULL: by `matched`. */
	void (*met)(void *arg, const struct ow_meeting *meeting, size_t count);
	void (*matched)(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);
	/* One of the unsettled pairs of this id is known now. Its records may differ from those that were reported. */
	void (*settled)(void *arg, const struct ow_pair *pair, enum ow_certainty certainty);
	/* A record without a counterpart. copy: its id matched shortly before. */
	void (*unmatched)(void *arg, enum ow_side side, const struct ow_record *record, bool copy);
	/* The direction of this flow, as far as it is known. OW_DIRECTIONS = not known. */
	enum ow_direction (*direction)(void *arg, enum ow_side side, uint32_t flow);
	void *arg;
};

int ow_matcher_create(int64_t window_ns, const struct ow_matcher_calls *calls, struct ow_matcher **ret_matcher);
void ow_matcher_free(struct ow_matcher *matcher);

/* Sets the usual delays of a direction before the start, from low to high. */
void ow_matcher_expect(struct ow_matcher *matcher, enum ow_direction direction, int64_t low_ns, int64_t high_ns);

/*
 * Sets the start of a capture: for identical packets, those before may be the counterparts. To be called before the
 * first push.
 */
void ow_matcher_start(struct ow_matcher *matcher, enum ow_side side, int64_t first_ns);
/* All packets go this way, whatever the clocks show. */
void ow_matcher_one_way(struct ow_matcher *matcher, enum ow_direction way);
/* No packet of this direction is faster than the fastest unique one. */
void ow_matcher_least(struct ow_matcher *matcher, enum ow_direction direction, int64_t least_ns);
/* The last packets of this direction may be in flight for this long when the capture that they arrive in ends. */
void ow_matcher_flight(struct ow_matcher *matcher, enum ow_direction direction, int64_t flight_ns);
/* Packets of this direction overtake those that were sent up to reorder_ns earlier. */
void ow_matcher_reorders(struct ow_matcher *matcher, enum ow_direction direction, int64_t reorder_ns);

/*
 * Packets of this direction arrive in the order in which they were sent, except for errors of timestamps up to
 * slack_ns. Returns 0 or -ENOMEM.
 */
int ow_matcher_in_order(struct ow_matcher *matcher, enum ow_direction direction, int64_t slack_ns);

/*
 * Takes the next record of one side. other_ns: the time of the next record of the other side (INT64_MAX if there is
 * none); what waited longer than the window for it is unmatched. Returns 0 or -ENOMEM.
 */
int ow_matcher_push(struct ow_matcher *matcher, enum ow_side side, const struct ow_record *record, int64_t other_ns);

/*
 * Records of one side. order_ns has the time by which each is to be pushed, and one more: that of the record after
 * them. INT64_MAX at the end of the side.
 */
struct ow_matcher_stream {
	const struct ow_record *next, *end;
	const int64_t *order_ns;
};

/* Pushes the records of both sides by time until those of one are used up. Returns 0 or -ENOMEM. */
int ow_matcher_merge(struct ow_matcher *matcher, struct ow_matcher_stream stream[OW_SIDES]);
/* Prefetch what the pushes of these records will access: first the hash buckets, some records later their contents. */
void ow_matcher_prefetch(const struct ow_matcher *matcher, const struct ow_record *record, size_t count);
void ow_matcher_prefetch_waiters(const struct ow_matcher *matcher, const struct ow_record *record, size_t count);

/*
 * For a caller that sees more than this matcher, such as the records of further points, and knows that two records are
 * the only ones with their id within the waiting time: it need not push them.
 * ow_matcher_skip: in place of pushes: of several records of one side in a row, for the last one. Returns 0 or -ENOMEM.
 * ow_matcher_usual: the delays with which pushes of both would report a certain pair.
 * ow_matcher_met: reports such pairs, after pushes of earlier records and before those of later ones; by `met`, if it is
 * called, else
 * ow_matcher_matched: one such pair by `matched`.
 */
struct ow_usual_delays {
	int64_t low_ns[OW_DIRECTIONS], high_ns[OW_DIRECTIONS]; /* none is usual, before they are known */
	int64_t from_ns;                                       /* of packets whose later time is not before this */
};

int ow_matcher_skip(struct ow_matcher *matcher, enum ow_side side, int64_t time_ns, int64_t other_ns);
void ow_matcher_usual(const struct ow_matcher *matcher, struct ow_usual_delays *ret_usual);
void ow_matcher_met(struct ow_matcher *matcher, const struct ow_meeting *meeting, size_t count);
void ow_matcher_matched(struct ow_matcher *matcher, const struct ow_record record[OW_SIDES]);
/* The longest usual delay, as far as it is known; 0 = not known. */
int64_t ow_matcher_longest(const struct ow_matcher *matcher);
/* The id matched, by ow_matcher_met: what comes with it now is a copy. */
void ow_matcher_remember(struct ow_matcher *matcher, uint64_t id, int64_t time_ns);

/* Both streams have ended: everything that waits is decided, or unmatched. Returns 0 or -ENOMEM. */
int ow_matcher_finish(struct ow_matcher *matcher);
/*
 * Pairs of identical packets of which more copies were in flight than can be compared: their bounds may be too narrow.
 */
uint64_t ow_matcher_crowded(const struct ow_matcher *matcher, enum ow_direction direction);
/* Unique packets that were received long before they were sent, reported as ambiguous. */
uint64_t ow_matcher_impossible(const struct ow_matcher *matcher, enum ow_direction direction);
/* Unique packets that arrived far later than usual after the sender's capture: taken for lost ones that were sent again. */
uint64_t ow_matcher_sent_again(const struct ow_matcher *matcher, enum ow_direction direction);
/* Whether identical packets, or parts of packets, wait: they are reported up to three waiting times later. */
bool ow_matcher_groups(const struct ow_matcher *matcher);
