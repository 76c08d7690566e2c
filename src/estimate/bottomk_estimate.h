/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/* What two coordinated samples have in common, below the smaller of their largest ranks. */
struct ow_bottomk_pairs {
	int64_t *delay_ns; /* sorted */
	size_t count;
	uint64_t sent;            /* packets of A below that rank */
	uint64_t lost;            /* those of them that B does not have */
	uint64_t received, extra; /* packets of B below that rank, and those that A does not have */
	bool all;                 /* the samples contain all packets, so there is no such rank */
};

/* Pairs two comparable bottom-k samples. Entries with the same id are left out unless both have the same number of
 * them. 0 or -ENOMEM. */
int ow_bottomk_pair(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_bottomk_pairs *ret_pairs);
void ow_bottomk_pairs_done(struct ow_bottomk_pairs *pairs);

/* Estimates everything from the samples alone. 0 or -ENOMEM. */
int ow_bottomk_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
