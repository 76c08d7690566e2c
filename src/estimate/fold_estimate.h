/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "estimate/reconciled.h"

/*
 * The default method: from two folds and the caches of both points to estimates, with the same messages as between
 * points:
 *
 *   B -> A   its fold, sized for the differences of the last interval (ow_fold_expect), and its counters
 *            A folds its own table to the same cells, subtracts and peels. If that is not complete:
 *   A -> B   request for a second fold, with cells for the remaining differences, by the counters
 *   B -> A   a fold with permuted cells; A peels both jointly
 *   A -> B   keys of the packets that only B has, or whose copies differ in number (formulas.md 3.5)
 *   B -> A   B leaves them out, then sends what ow_reconciled_delays needs
 *
 * If a packet was sent once and arrived several times, its delay is that of the first arrival (RFC 5560).
 *
 * Then lost, extra and mean are exact. If packets were left out because of their copies, the mean is that of a sample.
 * If reconciliation is still not complete, the difference is too large for the table, or the tables are not of these
 * packets: then the delays come from clean buckets, and the losses from the counters.
 */

/* Bytes of the messages in all; each message has a header of OW_SYNOPSIS_HEADER bytes. */
struct ow_fold_cost {
	uint64_t push;   /* the first message: the encoded synopsis */
	uint64_t top_up; /* request and second fold */
	uint64_t names;
	uint64_t delays;    /* sums and sample */
	uint64_t ambiguous; /* packets that both have, left out because the numbers of their copies differ */
};

/*
 * a's table may be unfolded; b's may be a decoded one. Both must have the same seed and banks, else -EINVAL. Without
 * caches there are losses but no delays. cost may be NULL. -ENOMEM.
 */
int ow_fold_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_reconciled_options *options,
                          struct ow_estimate *ret_estimate, struct ow_fold_cost *ret_cost);
int ow_fold_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
