/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_DUPLICATE_CAPTURE_H
#define OW_MATCH_DUPLICATE_CAPTURE_H

#include "match/duplicate_filter.h"
#include <oneway/match.h>
#include <stddef.h>

/*
 * Does a capture show packets twice: a mirror port for both directions, a bridge, all interfaces of a router? Or were
 * they sent twice, or duplicated on the way?
 *
 * A sample of the packets of both captures (all copies of those with the smallest ids) tells. A packet that its
 * sender's capture shows twice and that arrives once was shown twice, or sent twice and one of the two was lost. If it
 * was sent twice, both arrive as often as the loss of other packets permits:
 *
 *     shown twice and arrived once / shown twice and arrived twice  =  2 p / (1 - p),     p = loss ratio
 *
 * Where there are clearly more, at lags that are alike, the capture shows packets twice, and copies at these lags are
 * left out in both directions. A packet that arrives twice at such a lag alone may be the network's doing.
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
	/* The least time from a packet to what its loss causes; a packet that is repeated later may be a reaction. */
	int64_t round_trip_ns;
	/* Packets that a side sends and that do not arrive, of all: their copies may be among them. */
	double most_lost[OW_SIDES];
};

struct ow_duplicate_capture_verdict {
	bool twice;               /* the capture shows packets twice, by this rule */
	struct ow_copy_rule rule; /* without `twice`: no copies */
	bool unsure;              /* too many packets are sent twice and arrive once for loss, too few to tell */
	bool arrivals;            /* packets arrive twice, at lags that are alike */
	bool everywhere; /* most packets are there twice at both points, as if both captures showed them twice */
};

/* Judges both captures. The sample can be judged once. */
void ow_duplicate_capture_judge(struct ow_duplicate_capture_sample *sample,
                                const struct ow_duplicate_capture_facts *facts,
                                struct ow_duplicate_capture_verdict ret_verdict[OW_SIDES]);

#endif
