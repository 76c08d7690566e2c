/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Mean and standard deviation from buckets that hold the same packets at both points (clean buckets):
 *
 *   mu = sum D_j / sum C_j,   sigma^2 = 1/(B-k) sum_j (D_j - mu C_j)^2 / C_j,
 *
 * with C_j packets and D_j summed delay of bucket j, B clean non-empty buckets of k banks. A packet may be in only one
 * of the buckets. It needs no pairs of buckets, and a constant clock error cancels.
 */
struct ow_clean_bucket {
	int64_t delay_ns; /* D_j */
	uint64_t packets; /* C_j; buckets with 0, or 2^63 and more, are ignored */
};

struct ow_centred {
	uint64_t buckets;    /* B */
	double samples;      /* S = sum C_j */
	double mean_ns;      /* undefined without samples */
	double freedom;      /* B - k; the variance is undefined unless it is positive */
	double variance_ns2; /* sigma^2 */
	double kurtosis;     /* excess, at least 0 */
};

void ow_centred_fit(const struct ow_clean_bucket *bucket, size_t count, unsigned banks, struct ow_centred *ret_fit);

/*
 * The values with their 95 % intervals. common: packets that both points saw, of which the buckets hold a sample.
 * complete: the buckets hold all of them with certainty, so the mean is exact.
 */
void ow_centred_mean(const struct ow_centred *fit, double common, bool complete, struct ow_value *ret_mean);
void ow_centred_stddev(const struct ow_centred *fit, double common, bool complete, struct ow_value *ret_stddev);
