/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_FOLD_ESTIMATE_H
#define OW_ESTIMATE_FOLD_ESTIMATE_H

#include "estimate/estimate.h"
#include "estimate/reconciled.h"

/*
 * The default method, from two folds and the caches of both points to numbers, as the points would do it:
 *
 *   B -> A   its fold, sized for what the last interval differed by (ow_fold_expect), and its counters
 *            A folds its own table to the same cells, subtracts and peels. If that is not complete:
 *   A -> B   please a second fold; of as many cells as what is left needs, by the counters
 *   B -> A   a fold with permuted cells; A peels both jointly
 *   A -> B   names of the packets that only B has, or whose copies differ in number (formulas.md 3.5)
 *   B -> A   B leaves them out, then sends what ow_reconciled_delays needs
 *
 * A packet that was sent once and arrived more often keeps the delay of its first arrival (RFC 5560).
 *
 * Lost, extra and mean are exact then; the mean not if packets were left out because of their copies: it is that of
 * a sample then. If it is still not complete, the difference is too large for the table, or the
 * tables are not of these packets: then clean buckets, and the counters for the losses.
 */

/* Where the bytes went, in all; each message has a header of OW_SYNOPSIS_HEADER bytes. */
struct ow_fold_cost {
	uint64_t push;   /* the first message: the encoded synopsis */
	uint64_t top_up; /* request and second fold */
	uint64_t names;
	uint64_t delays;    /* sums and sample */
	uint64_t ambiguous; /* packets that both have, left out because the numbers of their copies differ */
};

/*
 * a's table may be unfolded; b's may be what was decoded. Both of the same seed and banks, else -EINVAL. Without caches
 * there are losses but no delays. cost may be NULL. -ENOMEM.
 */
int ow_fold_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_reconciled_options *options,
                          struct ow_estimate *ret_estimate, struct ow_fold_cost *ret_cost);
int ow_fold_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);

#endif
