/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_LDA_ESTIMATE_H
#define OW_ESTIMATE_LDA_ESTIMATE_H

#include "estimate/estimate.h"

/*
 * Numbers from two LDAs. Delays come from the buckets whose counters agree. Lost and extra packets: their difference is
 * known from the packets that the points saw; extra packets show in how the differences of the counters scatter. If
 * nothing speaks for extra packets (the paper's assumption), lost is the difference. If something does, a bucket may
 * hold a lost packet at A and an extra one at B and look clean: then the intervals of mean and deviation are infinite.
 */
struct ow_lda_options {
	bool plus;         /* LDA+ (FineComb 5.3): leave out buckets whose delay is negative */
	bool paper_stddev; /* the paper's F - mu^2 from pairs of buckets instead of the centred estimator */
};

/* Comparable synopses (ow_synopsis_comparable). -ENOMEM. */
int ow_lda_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_lda_options *options,
                         struct ow_estimate *ret_estimate);
/* With the default options. */
int ow_lda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);

#endif
