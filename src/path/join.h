/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "path/path.h"
#include "path/stream.h"

/*
 * Joins the packets of pairs of points: two events that have a record of the same point in common are about the same
 * packet. So the identity of packets, which may differ from pair to pair (a NAT, superframes), plays no part. A packet
 * is complete when all pairs of all points that saw it have reported it; then it is judged and forgotten. Packets that
 * do not become complete (copies that one pair left out) are judged when the pairs are past them.
 */

#define OW_PATH_PAIRS 64u /* at most */

struct ow_path_pair {
	unsigned from, to; /* points, in the order of the path */
};

struct ow_path_join_options {
	unsigned points, pairs;
	struct ow_path_pair pair[OW_PATH_PAIRS]; /* [0]: both ends */
	int64_t offset_ns[OW_PATH_POINTS];       /* added to times of pairs that begin at this point */
	int64_t wait_ns;                         /* how long the pairs may be apart */
	/*
	 * Times at which a capture begins or ends, by the clock of the first point: pairs report packets of these times at
	 * their end.
	 */
	int64_t edge_ns[2 * OW_PATH_POINTS];
	unsigned edges;
	uint64_t seed;
	int (*on_packet)(void *arg, const struct ow_path_packet *packet); /* may be NULL */
	void *arg;
	const struct ow_path_report *report; /* for on_packet */
};

/* As in struct ow_path_report. */
struct ow_path_join_result {
	uint64_t lost_at[OW_DIRECTIONS][OW_PATH_POINTS][OW_PATH_POINTS];
	uint64_t lost_unknown[OW_DIRECTIONS];
	uint64_t around[OW_DIRECTIONS][OW_PATH_POINTS];
	uint64_t seen[OW_DIRECTIONS][OW_PATH_POINTS];
	struct ow_path_correction correction[OW_PATH_PAIRS][OW_DIRECTIONS];
	uint64_t most; /* packets that were known at a time */
};

struct ow_path_join;

int ow_path_join_create(const struct ow_path_join_options *options, struct ow_path_join **ret_join);
void ow_path_join_free(struct ow_path_join *join);
/* Returns 0, -ENOMEM, or what on_packet returned. */
int ow_path_join_add(struct ow_path_join *join, unsigned pair, const struct ow_path_event *event);
/* Packets of a direction that all points show, and that are not added. */
void ow_path_join_everywhere(struct ow_path_join *join, enum ow_direction direction, uint64_t packets);
/* A pair has ended. common: its points have packets in common; if not, it has reported none. */
int ow_path_join_end(struct ow_path_join *join, unsigned pair, bool common);
/* After all pairs have ended. */
int ow_path_join_finish(struct ow_path_join *join, struct ow_path_join_result *ret_result);
