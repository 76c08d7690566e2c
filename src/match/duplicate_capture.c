/* SPDX-License-Identifier: Apache-2.0 */
/* Does a capture show packets twice: a mirror port for both directions, a bridge, all interfaces of a router? */
#include "match/match.h"

#define DOUBLED_FLOW  0.8  /* copies for each packet that matched: the capture shows the flow twice */
#define DOUBLED_SHARE 0.3  /* copies for each packet of a direction that matched: it shows most flows twice, .. */
#define DOUBLED_LEAST 8    /* .. and so many copies */
#define DOUBLED_REST  0.02 /* copies for each packet that matched: some are further apart */

/* Copies in flows with more than this share of them. */
static uint64_t count_copies(struct ow_match *m, enum ow_side side, enum ow_direction direction, double share)
{
	uint64_t copies = 0;
	uint32_t flows = ow_flow_table_count(m->pass.tap[side].flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct ow_flow_evidence *e = ow_directions_flow(m->pass.directions, side, i);
		if (e && e->direction == direction && (double)e->copies > share * (double)e->matched)
			copies += e->copies;
	}
	return copies;
}

uint64_t ow_match_doubled(struct ow_match *m, enum ow_side side, enum ow_direction direction)
{
	return count_copies(m, side, direction, DOUBLED_FLOW);
}

/*
 * Packets that are there twice where they are sent and arrive once: no network does that. What arrives twice may well
 * be the network's doing, but not if as much as arrives is lost the other way. (There copies of superframes, which wait
 * together, are not known as such.)
 */
static bool sends_twice(struct ow_match *m, enum ow_side side)
{
	enum ow_direction way = side == OW_SIDE_A ? OW_A_TO_B : OW_B_TO_A;
	const struct ow_tally *out = &m->pass.tally[way], *in = &m->pass.tally[!way];
	uint64_t copies = ow_match_doubled(m, side, way), arrived = ow_match_doubled(m, side, !way);
	if (copies >= DOUBLED_LEAST && (double)copies > DOUBLED_SHARE * (double)out->matched)
		return true;
	return arrived >= DOUBLED_LEAST && (double)arrived > DOUBLED_FLOW * (double)in->matched &&
	       (double)out->lost > DOUBLED_FLOW * (double)out->matched;
}

/* Still many copies in a capture that is known to show packets twice. */
static bool shows_more(struct ow_match *m, enum ow_side side)
{
	uint64_t copies = 0, matches = 0;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		copies += count_copies(m, side, way, 0);
		matches += m->pass.tally[way].matched;
	}
	return m->pass.tap[side].dedup && (double)copies > DOUBLED_REST * (double)matches;
}

bool ow_match_shows_twice(struct ow_match *m, enum ow_side side)
{
	return sends_twice(m, side) || shows_more(m, side);
}
