/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/baseline.h"
#include "papers/comparison.h"

/* Runs every method on the packets of an interval as both points saw them. */

/*
 * The packets that both points saw. Times are relative to the start of the interval; different packets have different
 * ids (synopsis/copies.h).
 */
struct ow_sight {
	struct ow_sighting *a, *b; /* at the sending point, at the receiving one */
	size_t as, bs;
	struct ow_sizing sizing;
	struct ow_fates fates;
};
void ow_sight_done(struct ow_sight *traffic);

/* The number of methods. */
size_t ow_trial_methods(void);
const char *ow_trial_name(size_t method);
/*
 * Sizes the method's structure for this many bytes, inserts, encodes, decodes, estimates. A failure of the method is
 * described in the row (failure). timed: also measure times, by repetition.
 */
void ow_trial_run(size_t method, const struct ow_sight *traffic, size_t memory, uint64_t seed, bool timed,
                  struct ow_compare_row *ret_row);
