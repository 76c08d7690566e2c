/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <oneway/match.h>

/*
 * Captures of the same traffic at several points of a path. Neighbouring points are matched as pairs, and so are both
 * ends; where each packet was seen follows from the pairs that have its record numbers (path/join.h). So a result of a
 * path is made of results of pairs, and what is true of them is true of it.
 */

#define OW_PATH_POINTS 16u /* at most */

struct ow_path_point {
	const char *name; /* for results */
	const char *path; /* as for ow_match_files */
};

/* What shows the order of the points. */
enum ow_path_order { OW_ORDER_GIVEN, OW_ORDER_HOPS, OW_ORDER_TIMES, OW_ORDER_UNKNOWN };

/* A packet and where it was seen. Points are numbered in the order of the path. */
struct ow_path_packet {
	enum ow_fate fate;           /* from end to end; OUTSIDE also if no pair of both ends tells it */
	enum ow_direction direction; /* OW_DIRECTIONS if it is not known */
	bool ambiguous;              /* identical packets make it uncertain at some point */
	uint32_t seen;               /* bit p: at point p */
	uint64_t number[OW_PATH_POINTS];
	int64_t time_ns[OW_PATH_POINTS]; /* by the clock of the first point */
	uint32_t packets, bytes;
	const struct ow_flow_key *flow;
	const struct ow_path_report *path; /* its points are known, its results are not */
};

/* The last point on its way that shows the packet; -1 if its direction is not known. */
int ow_path_last_seen(const struct ow_path_packet *packet);

struct ow_path_options {
	struct ow_match_options match; /* of each pair; on_packet is called for the pair of both ends */
	bool keep_order;               /* the points are given in their order */
	/*
	 * Called for every packet, in the thread that called ow_path_match; NULL = no calls. on_packet may be called in
	 * another thread at the same time. A return value other than 0 (negative errno) stops the run.
	 */
	int (*on_path_packet)(void *arg, const struct ow_path_packet *packet);
};

/* Packets of a direction of a segment that the pair alone would count wrongly. */
struct ow_path_correction {
	/* not at the receiving point, but at a later one: they pass it unseen, and are neither sent nor lost here */
	uint64_t around_to;
	/* not at the sending point, but at an earlier one: neither received nor extra here */
	uint64_t around_from;
	/*
	 * Lost here or later: other packets of their flows pass the receiving point unseen. Neither sent nor lost here.
	 */
	uint64_t undecided;
};

/* A pair of points. Of its report, result has the directions as corrected. */
struct ow_path_segment {
	unsigned from, to;
	const struct ow_match_report *report; /* NULL: they have no packets in common, reason says more */
	const char *reason;
	struct ow_result result[OW_DIRECTIONS];
	struct ow_path_correction correction[OW_DIRECTIONS];
};

struct ow_path_report {
	unsigned points;
	struct ow_path_point point[OW_PATH_POINTS];     /* in the order of the path */
	unsigned argument[OW_PATH_POINTS];              /* the place of each among the arguments */
	struct ow_capture_info capture[OW_PATH_POINTS]; /* linktype NULL: only the path is known, see segment.reason */
	uint32_t files[OW_PATH_POINTS];
	int64_t offset_ns[OW_PATH_POINTS]; /* added to the times of a point, for the clock of the first one */
	int64_t error_ns[OW_PATH_POINTS];  /* largest error of it, if it is estimated; -1: not known */
	bool clocks_joined;                /* the clocks of all points were estimated together */
	enum ow_path_order order;
	const struct ow_match_report *ends; /* from the first point to the last; it has the warnings of all pairs */
	/* neighbours in their order, and behind them pairs that packets pass without being seen between them */
	const struct ow_path_segment *segment;
	unsigned segments;
	/*
	 * Packets that were lost from end to end, by the last point that saw them and the next one that would have shown
	 * them. Together with lost_unknown these are all that ends->direction[d].lost counts.
	 */
	uint64_t lost_at[OW_DIRECTIONS][OW_PATH_POINTS][OW_PATH_POINTS];
	uint64_t lost_unknown[OW_DIRECTIONS];
	/* packets that were seen before and after a point, but not there */
	uint64_t around[OW_DIRECTIONS][OW_PATH_POINTS];
	const char *const *warning; /* those of ends */
	size_t warnings;
};

struct ow_path;

/*
 * Matches two or more points. On success *ret_path owns the report; the caller frees it with ow_path_free.
 * Errors are those of ow_match_files.
 */
int ow_path_match(const struct ow_path_point *point, unsigned points, const struct ow_path_options *options,
                  struct ow_path **ret_path, struct ow_error *err);
/*
 * The mean delay of a segment as a share of that from end to end. False if it is not known: no samples, or delays that
 * cannot be right.
 */
bool ow_path_delay_share(const struct ow_path_report *report, const struct ow_path_segment *segment,
                         enum ow_direction direction, double *ret_share);
const struct ow_path_report *ow_path_report(const struct ow_path *path);
void ow_path_free(struct ow_path *path);
