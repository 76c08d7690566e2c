/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/comparison.h"
#include "reconcile/interval_copies.h"
#include "reconcile/keyset.h"
#include "reconcile/running_copies.h"

/*
 * Identical packets over the ends of intervals. While a packet of some name waits for its arrival, packets of that name
 * that both points have in a later interval need not be the same ones. If the other point has told the times of all of
 * them, they are aligned (reconcile/interval_copies.h). Otherwise they are taken in turn (ow_late_packets_turns): as many
 * of them as wait are late, and as many of the last ones that were sent here wait in their place. Which arrival was whose
 * is not known then, how many there were is.
 */

/* Packets that wait for their arrival. */
struct ow_missing {
	struct ow_interval_results *results; /* knows all of them */
	/*
	 * Their names, of the latest intervals: at least as many as the horizon, and at most twice as many. Most
	 * packets are in neither set; asking `results` for each would take longer.
	 */
	struct ow_keyset set[2];
	uint32_t age;       /* number of intervals in the first */
	bool out_of_memory; /* always ask `results` */
	struct ow_interval_copies *copies;
	struct ow_running_copies running;
	bool session;          /* the points' session passed with the packets of the interval before */
	int64_t round_trip_ns; /* the least time that an answer took; 0 = not known */
};

/*
 * Says in the result that delays may be longer (reconcile/running_copies.h), unless the points' own messages show that the
 * path is shorter: they do if they leave by the same interface. To be called for each interval; compared: else it is unknown;
 * others: delays of other packets, by which those of the first interval are aligned.
 */
void ow_missing_doubt_delays(struct ow_missing *missing, struct ow_comparison *c, bool compared, size_t others);

/*
 * The packets of an interval that may be confused with identical ones of the intervals before it, in which they may still have
 * been under way: adds their names. To be called for each interval, in order. Returns 0 or -ENOMEM.
 */
int ow_missing_note_repeated(const struct ow_missing *missing, const struct ow_comparison *c, struct ow_keyset *names);

/* Whether packets of this name were sent in several intervals, shortly one after the other. missing: a struct ow_missing. */
bool ow_missing_repeats(const void *missing, uint64_t name);

/* The interval is compared: its missing packets may arrive later. */
void ow_missing_add(struct ow_missing *missing, const struct ow_comparison *c);
/* Whether a packet of this name waits. */
bool ow_missing_has(const struct ow_missing *missing, uint64_t name);
void ow_missing_done(struct ow_missing *missing);

/* To be called before the outcome of an interval becomes a result, and when the result has its clocks. Returns 0 or
 * -ENOMEM. */
int ow_identical_regroup(struct ow_comparison *c);
/* Afterwards: finds packets that this point shows twice. Returns 0 or -ENOMEM. */
int ow_identical_find_twice(struct ow_comparison *c);
