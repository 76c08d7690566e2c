/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/match_pass.h"

/*
 * Packets without a counterpart near the ends of the captures: they are lost, or were not yet, or no longer, in the
 * other capture.
 */

/* The delays of a direction, in the common time base, without this share of the fastest and of the slowest. */
struct ow_reach ow_match_reach(struct ow_match_pass *pass, enum ow_direction direction, double share);

/* What is known about a direction, to judge packets near the ends of the captures. */
struct ow_end_rule {
	struct ow_reach all;      /* every delay */
	struct ow_reach probable; /* without those that are rarer than losses */
	bool overtakes;           /* packets overtake each other more often than they are lost */
	int64_t in_flight_ns;     /* packets after the last that arrived may be in flight for this long */
	int64_t soonest_ns;       /* packets before the first that arrived may take as little as this */
};

struct ow_end_rule ow_end_rule(struct ow_match_pass *pass, enum ow_direction direction);

/*
 * Whether the other capture may not have covered this packet. It arrives at t + delay. If that may be before the other
 * capture's start or after its end, its absence is no evidence, unless a loss is far likelier than such a delay. A
 * received packet that may have been sent before the other capture's start, or after its end, is no
 * evidence either; a further copy is.
 */
bool ow_outside_overlap(const struct ow_match_pass *pass, const struct ow_edge *edge, uint8_t direction,
                        const struct ow_end_rule *rule);
/* If the packet was sent after the last one that arrived: notes its fate. */
void ow_note_last_sent(struct ow_match_pass *pass, enum ow_direction direction, int64_t sent_ns, enum ow_fate fate,
                       uint32_t packets);
