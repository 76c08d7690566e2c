/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_CONFIG_MEMORY_BUDGET_H
#define OW_CONFIG_MEMORY_BUDGET_H

#include "config/config.h"

/*
 * The memory budget. A lane keeps the pages that wait for the peer: those of OW_RETAIN_NS, and as many more as the two
 * clocks are apart, however large they are; and more than that as long as they fit into the lane's part of the budget.
 * OW_SIGHTING_BYTES are all that a packet takes while its page is being written and compared: 16 for id and time, as
 * much for telling copies apart, and half of it for the synopsis.
 */
#define OW_RETAIN_NS INT64_C(5000000000)
/* Threads that are not let run for so long still find a page for what the ring has kept. */
#define OW_HELD_UP_NS INT64_C(20000000000)
/* A peer that is connected and does not answer: longer than it takes to find out that it is not (OW_DEAD_NS). */
#define OW_PATIENCE_NS     INT64_C(20000000000)
#define OW_RETAIN_MIN      4
#define OW_RETAIN_MAX      256
#define OW_SIGHTING_BYTES  40
#define OW_SIGHTINGS_LEAST 1024 /* a page smaller than this measures nothing */

struct ow_retention {
	unsigned pages_max;  /* that wait for the peer */
	unsigned open_max;   /* that are being written */
	int64_t notice_ns;   /* until it is told that an interval is not answered */
	int64_t patience_ns; /* until an interval that a connected peer does not answer is given up */
};
/* skew_ns: how far the two clocks are apart; speed: of the clock (files that are replayed faster). */
void ow_agree_retention(int64_t length_ns, int64_t skew_ns, double speed, struct ow_retention *ret_retention);
/* Packets that a page may hold, for a lane that has so many bytes; 0 if those are not enough for a measurement. */
size_t ow_agree_stamps(uint64_t bytes, const struct ow_retention *retention);
/* Bytes that a lane needs at least. */
uint64_t ow_agree_least(const struct ow_retention *retention);
/* The same of all lanes that a configuration is sure to have: where a peer chooses the classes, one of them, with the
 * interval that is written or the default. */
uint64_t ow_agree_needed(const struct ow_config *config, unsigned *ret_lanes);
/* Bytes of the pages that wait. */
uint64_t ow_agree_retained(uint64_t bytes, const struct ow_retention *retention);
/*
 * A new lane's part of what is left of the budget, when so many lanes are still to come (itself included). open_ended:
 * a peer may ask for more; one part stays for those, so that the budget holds whatever it asks for. own, others: what
 * this lane needs at least, and all others that are to come. It gets that, if it can be had, also where others, with
 * longer intervals, need less than an equal part.
 */
uint64_t ow_agree_share(uint64_t left, unsigned expected, bool open_ended, uint64_t own, uint64_t others);

#endif
