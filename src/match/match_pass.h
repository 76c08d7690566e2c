/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/details.h"
#include "estimate/floor.h"
#include "estimate/skew.h"
#include "estimate/intervals.h"
#include "estimate/tally.h"
#include "base/side.h"
#include "match/copies_aside.h"
#include "match/record_batches.h"
#include "match/flow_pairs.h"
#include "match/tcp_segments.h"
#include "reconcile/directions.h"
#include "reconcile/matcher.h"

/*
 * One pass over two captures: records are merged in the order of time, matched, and counted by direction. What is
 * learned (directions, truncation, superframes) may make the caller start another pass with a better plan.
 */

/* Why all packets are assumed to go one way, if no pair of hosts shows both directions. */
enum ow_way_reason {
	OW_WAY_ASSUMED, /* no evidence; A to B */
	OW_WAY_HOPS,    /* routers decreased the TTL */
	OW_WAY_LOST,    /* packets are missing at one end, not at the other */
	OW_WAY_TAIL,    /* delays vary upwards, not downwards */
};

/* Identical packets are reported after up to three waiting times; one more is a margin. */
#define OW_DETAILS_WINDOWS 4

struct ow_plan {
	struct ow_identity identity;
	int64_t shift_ns; /* added to B's times for a common time base: order, window, directions */
	/* B's time at which the shift is exact; it changes by drift nanoseconds per nanosecond */
	int64_t drift_from_ns;
	double drift;
	int64_t offset_ns; /* added to B's times in results; usually the same */
	int64_t window_ns;
	enum ow_direction_rule rule; /* forward: the caller says so; one way: see ow_way_reason */
	enum ow_direction way;       /* of OW_ONE_WAY */
	enum ow_way_reason why;
	int64_t doubt_ns; /* by which clocks or timestamps may be off: shorter delays show no direction */
	bool untimed; /* a capture has no times: only the order is known, and no packet is outside the common time */
	bool expects[OW_DIRECTIONS]; /* the usual delays of this direction are known before the pass */
	int64_t low_ns[OW_DIRECTIONS], high_ns[OW_DIRECTIONS]; /* likewise, in the common time base */
	bool has_least[OW_DIRECTIONS];     /* the smallest delay of unique packets is known from an earlier pass: */
	int64_t least_ns[OW_DIRECTIONS];   /* in the common time base */
	int64_t reorder_ns[OW_DIRECTIONS]; /* packets overtake those that were sent this much earlier */
	bool in_order[OW_DIRECTIONS];      /* unique packets arrived in the order in which they were sent */
};

/* An unmatched packet near the start or the end of the other capture: the directions decide its fate. */
struct ow_edge {
	struct ow_record record;
	enum ow_side side;
	bool copy;
	struct ow_tcp_header header; /* if details are wanted */
	uint8_t fate, direction;     /* enum ow_fate, enum ow_direction: what it came to */
	bool foretold;               /* the details have it already: by its fate in the previous pass */
};

/* The least and the greatest delay of a direction, in the common time base. */
struct ow_reach {
	int64_t least_ns, most_ns;
	bool known;
};

/* Packets of a direction that were sent after the last one that arrived. */
struct ow_last_sent {
	uint64_t packets, lost; /* lost: those that count as lost, because they were sent long before the end */
	int64_t before_end_ns;  /* time from the first of them to the other capture's end */
	int64_t longest_ns;     /* the longest delay so far */
	double loss;            /* share of the other packets that are lost */
};

/*
 * What a pass reported of packets, before directions and fates were final: a log of a limited number. Meetings that the
 * caller has called quiet are not in it.
 */
struct ow_pass_note {
	uint64_t number[OW_SIDES]; /* 0: not on this side */
	int64_t time_ns[OW_SIDES]; /* as in results */
	uint32_t flow[OW_SIDES];
	uint32_t bytes;
	uint8_t side;      /* that has it, if only one does */
	uint8_t fate;      /* LOST: by the direction of its flow */
	uint8_t direction; /* of OUTSIDE */
	bool copy, ambiguous;
};

struct ow_pass_log {
	struct ow_pass_note *note;
	size_t notes, room, most; /* most: not more than this */
	bool full;                /* there were more: they are not in it */
	/* Instead, in a pass whose directions are known from an earlier one: called for each. 0 or a negative errno. */
	int (*tell)(void *arg, const struct ow_pass_note *note);
	void *arg;
};

struct ow_match_pass {
	const struct ow_match_options *options;
	struct ow_record_reader input[OW_SIDES];
	struct ow_plan plan;
	struct ow_directions *directions;
	struct ow_identity numbered_by; /* the identity by which the directions' flows were numbered */
	struct ow_tally tally[OW_DIRECTIONS];
	struct ow_intervals *intervals;                  /* NULL if not wanted in this pass */
	struct ow_details_tally *details[OW_DIRECTIONS]; /* likewise */
	int64_t details_ns[OW_DIRECTIONS];               /* how far they are: the latest time of a packet */
	uint64_t misjudged;                              /* packets that came to another fate than was foretold */
	struct ow_matcher *matcher;                      /* of the pass that runs */
	bool events;                                     /* call on_packet in this pass */
	struct ow_pass_log *log;                         /* NULL if not wanted in this pass */
	int failed;                                      /* negative errno from a callback */

	/*
	 * What the capture covers, by any of its frames, in the common time base: from its first batch, up to what was
	 * read so far.
	 */
	int64_t first_ns[OW_SIDES], last_ns[OW_SIDES];
	bool ended[OW_SIDES];
	/*
	 * Silences of a capture between its first and its last frame that may be holes: the caller fills them in, in
	 * the order of time; the pass counts.
	 */
	struct ow_gap gap[OW_SIDES][OW_SILENCES_MAX];
	unsigned gaps[OW_SIDES];
	struct ow_reach usual[OW_DIRECTIONS];  /* delays of the previous pass, without the rare ones */
	struct ow_reach common[OW_DIRECTIONS]; /* the same, without those of pairs that may be wrong */
	int64_t flight_ns
		[OW_DIRECTIONS]; /* by the previous pass, the last packets may be in flight for this long; 0 = not known */
	int64_t alike_sent_ns[OW_DIRECTIONS]; /* time when the last identical packet was sent that arrived */
	struct ow_edge *edge;
	size_t edges, edge_room;
	struct ow_edge *edge_before; /* of the previous pass */
	size_t edges_before, edge_room_before;

	struct ow_copies_aside *aside[OW_SIDES]; /* copies in the capture; NULL if there is no rule for them */
	struct ow_tcp_segments pieces;
	struct ow_flow_pairs flow_pairs; /* level nat: collected until they are named */
	struct ow_skew skew;
	struct ow_floor floor[OW_DIRECTIONS]; /* of unique packets */
	/* The last packet of a class that arrived, by the order of sending; and those that came after it. */
	struct ow_class_order {
		uint64_t newest_sent, reordered;
	} class_order[OW_CLASSES_MAX][OW_DIRECTIONS];
	bool no_outliers; /* packets that are far faster than all others count, because it changes which ones they are */

	/* Results of the pass. */
	uint64_t unclassified[OW_SIDES], outside[OW_SIDES];
	uint64_t records[OW_SIDES];
	uint64_t resent[OW_SIDES];              /* copies that were matched: the other capture shows as many */
	uint64_t maybe_copied[OW_SIDES];        /* copies that may be packets that count as lost */
	uint64_t position[OW_SIDES];            /* bytes read of each file, for progress */
	uint64_t repeats[OW_DIRECTIONS];        /* matched packets with identical ones */
	struct ow_spacing alike[OW_DIRECTIONS]; /* of these */
	uint64_t untimed[OW_DIRECTIONS];    /* matched packets without a delay, because a point shows no time of them */
	uint64_t unsettled[OW_DIRECTIONS];  /* matched packets whose delay is not known yet */
	uint64_t crowded[OW_DIRECTIONS];    /* see ow_matcher_crowded */
	uint64_t impossible[OW_DIRECTIONS]; /* unique packets that were received long before they were sent */
	uint64_t sent_again[OW_DIRECTIONS]; /* see ow_matcher_sent_again */
	uint64_t unmatched_frames[OW_SIDES];    /* records, or parts of them, without a counterpart */
	uint64_t unmatched_fragments[OW_SIDES]; /* of these, fragments that are not copies */
	struct ow_last_sent last_sent[OW_DIRECTIONS];
	/* Level nat: matched packets with identical ones, in flows of which nothing shows which is which. */
	struct ow_unpaired {
		uint64_t packets;
		uint32_t flow[OW_SIDES]; /* of the first one */
		bool several;            /* there are more flows */
	} unpaired;
	int64_t miscounted; /* packets counted for the wrong direction: another pass is needed */
	void (*progress)(void *arg);
	void *progress_arg;
};

/* The packets of the wire for a record that only one side shows. */
static inline uint32_t ow_match_packets(const struct ow_match_pass *p, enum ow_side side,
                                        const struct ow_record *record, uint8_t direction)
{
	enum ow_direction way = direction < OW_DIRECTIONS ? (enum ow_direction)direction : ow_sent_by(side);
	return ow_tcp_segments_single(&p->pieces, side, way, record);
}

/* The pass is zeroed by the caller. */
int ow_match_pass_init(struct ow_match_pass *pass, const struct ow_match_options *options);
void ow_match_pass_done(struct ow_match_pass *pass);

/* How the times of a side are converted to the common time base, by the plan. */
struct ow_time_base ow_match_pass_time_base(const struct ow_match_pass *pass, enum ow_side side);

/* Runs the pass by pass->plan. The sources are open. */
int ow_match_pass_run(struct ow_match_pass *pass, struct ow_error *err);

/* The same in parts, for a caller that pushes the records itself. ow_match_pass_end frees the matcher. */
int ow_match_pass_begin(struct ow_match_pass *pass, struct ow_matcher **ret_matcher);
/* r: of what came between, 0 or a negative errno. */
int ow_match_pass_end(struct ow_match_pass *pass, struct ow_matcher *matcher, int r);
/* Returns r, with the text for what a matcher returned. */
int ow_match_pass_refuse(int r, struct ow_error *err);
/* Whether pairs of the usual kind are reported together: there are no intervals, events, or parts of packets. */
bool ow_match_pass_is_plain(const struct ow_match_pass *pass);
/* The number of threads that read ahead. */
unsigned ow_match_pass_threads(const struct ow_match_pass *pass);

/* After the pass: the event that a note stands for. */
void ow_match_pass_event(const struct ow_match_pass *pass, const struct ow_pass_note *note,
                         struct ow_packet_event *ret_event);
