/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"

/*
 * The memory budget. A lane keeps the interval packets that wait for the peer: those of OW_RETAIN_NS and of the
 * difference of the two clocks, whatever their size, and more as long as they fit into the lane's part of the budget. A
 * packet takes OW_SIGHTING_BYTES while its interval is open and compared: 24 bytes for id, time and
 * flow, 16 to tell copies apart, 8 for the synopsis, and 8 for its share of the flows.
 */
#define OW_RETAIN_NS INT64_C(5000000000)
/* Threads that did not run for this long still find open interval packets for what the ring has kept. */
#define OW_HELD_UP_NS INT64_C(20000000000)
/* For a connected peer that does not answer: longer than it takes to detect a dead connection (OW_DEAD_NS). */
#define OW_PATIENCE_NS     INT64_C(20000000000)
#define OW_RETAIN_MIN      4
#define OW_RETAIN_MAX      256
#define OW_SIGHTING_BYTES  56
#define OW_SIGHTINGS_LEAST 1024 /* fewer packets in an interval are not enough to measure */

struct ow_retention {
	unsigned intervals_max; /* intervals that wait for the peer */
	unsigned open_max;      /* intervals that are open */
	int64_t notice_ns;      /* after this time the point reports that an interval is not answered */
	int64_t patience_ns;    /* after this time an interval that a connected peer does not answer is given up */
};
/* skew_ns: difference of the two clocks; speed: of the clock (for files that are replayed faster). */
void ow_agree_retention(int64_t length_ns, int64_t skew_ns, double speed, struct ow_retention *ret_retention);
/*
 * The packets that one interval of a lane may hold, given the bytes of the lane; 0 if these are not enough to measure.
 */
size_t ow_agree_stamps(uint64_t bytes, const struct ow_retention *retention);
/* The bytes that a lane needs at least. */
uint64_t ow_agree_least(const struct ow_retention *retention);
/*
 * The same for all lanes that a configuration certainly has: if a peer chooses the classes, one class, with the
 * interval of the configuration or the default.
 */
uint64_t ow_agree_needed(const struct ow_config *config, unsigned *ret_lanes);
/* Bytes of the interval packets that wait. */
uint64_t ow_agree_retained(uint64_t bytes, const struct ow_retention *retention);
/*
 * The part of the remaining budget that a new lane gets, if so many lanes are still to come (itself included).
 * open_ended: a peer may ask for more lanes; one part is reserved for those, so that the budget is never exceeded. own,
 * others: what this lane needs at least, and what all other lanes to come need. The lane gets what it needs if that is
 * available, also if the others, with longer intervals, need less than an equal part.
 */
uint64_t ow_agree_share(uint64_t left, unsigned expected, bool open_ended, uint64_t own, uint64_t others);
