/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Estimates from two LDAs. Delays come from the buckets whose counters agree. The difference of lost and extra packets
 * is known from the packets that the points saw. Extra packets increase the variance of the counters' differences.
 * Without evidence of extra packets (the paper's assumption), lost is the difference. With such evidence, a bucket may
 * have a lost packet at A and an extra one at B and look clean: then the intervals of mean and deviation are infinite.
 */
struct ow_lda_options {
	bool plus;         /* LDA+ (FineComb 5.3): ignore buckets with a negative delay */
	bool paper_stddev; /* the paper's F - mu^2 from pairs of buckets instead of the centred estimator */
};

/* For comparable synopses (ow_synopsis_comparable). -ENOMEM. */
int ow_lda_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_lda_options *options,
                         struct ow_estimate *ret_estimate);
/* With the default options. */
int ow_lda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
