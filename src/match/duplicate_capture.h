/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "match/duplicate_filter.h"
#include <oneway/match.h>

/*
 * Decides whether a capture shows packets twice (a mirror port for both directions, a bridge, all interfaces of a
 * router), or whether they were sent twice, or duplicated on the way.
 *
 * It uses a sample of the packets of both captures (all copies of those with the smallest ids). If a sender's capture
 * shows a packet twice and it arrives once, it was shown twice, or sent twice and one of the two was lost. If it was
 * sent twice, both arrive as often as the loss of other packets permits:
 *
 *     shown twice and arrived once / shown twice and arrived twice  =  2 p / (1 - p),     p = loss ratio
 *
 * If there are clearly more, at similar lags, the capture shows packets twice, and copies at these lags are ignored in
 * both directions. A packet that only arrives twice at such a lag may be duplicated by the network.
 */

struct ow_frame_sighting {
	uint64_t id;
	int64_t time_ns; /* in the common time base */
	uint8_t side;
	uint8_t direction; /* of its flow; OW_DIRECTIONS: not known */
};

struct ow_duplicate_capture_sample;

struct ow_duplicate_capture_sample *ow_duplicate_capture_sample_create(void);
void ow_duplicate_capture_sample_free(struct ow_duplicate_capture_sample *sample);
void ow_duplicate_capture_sample_add(struct ow_duplicate_capture_sample *sample,
                                     const struct ow_frame_sighting *sighting);

/* What is known of the captures. */
struct ow_duplicate_capture_facts {
	int64_t first_ns[OW_SIDES], last_ns[OW_SIDES];
	/*
	 * The shortest time from a packet to a reaction to its loss; a packet that is repeated later may be a reaction.
	 */
	int64_t round_trip_ns;
	/* Share of the packets that a side sends and that do not arrive: their copies may be among them. */
	double most_lost[OW_SIDES];
};

struct ow_duplicate_capture_verdict {
	bool twice;               /* the capture shows packets twice, by this rule */
	struct ow_copy_rule rule; /* without `twice`: no copies */
	/*
	 * more packets are sent twice and arrive once than loss and the rule explain, or no others are lost; but too few
	 * for a verdict
	 */
	bool unsure;
	bool arrivals;   /* packets arrive twice, at similar lags */
	bool everywhere; /* most packets occur twice at both points, as if both captures showed them twice */
};

/* Judges both captures. A sample can be judged once. */
void ow_duplicate_capture_judge(struct ow_duplicate_capture_sample *sample,
                                const struct ow_duplicate_capture_facts *facts,
                                struct ow_duplicate_capture_verdict ret_verdict[OW_SIDES]);
