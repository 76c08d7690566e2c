/* SPDX-License-Identifier: Apache-2.0 */
/* The papers' second moment by collapsed pairs of buckets. */
#include "estimate/paired.h"

#include "estimate/distribution.h"
#include <math.h>

struct pair {
	double square, packets; /* (D_2i - D_2i-1)^2, C_2i + C_2i-1 */
};

static bool collapse(const struct ow_clean_bucket *two, struct pair *ret_pair)
{
	if (two[0].packets > INT64_MAX || two[1].packets > INT64_MAX)
		return false;
	double difference = (double)two[1].delay_ns - (double)two[0].delay_ns;
	*ret_pair = (struct pair){difference * difference, (double)two[0].packets + (double)two[1].packets};
	return true;
}

void ow_paired_stddev(const struct ow_clean_bucket *const *bank, const size_t *buckets, unsigned banks, double mean_ns,
                      struct ow_value *ret_stddev)
{
	struct pair pair;
	double squares = 0, packets = 0, scatter = 0;
	for (unsigned k = 0; k < banks; k++)
		for (size_t i = 0; i + 1 < buckets[k]; i += 2)
			if (collapse(bank[k] + i, &pair)) {
				squares += pair.square;
				packets += pair.packets;
			}
	if (packets <= 0) {
		*ret_stddev = (struct ow_value){.reason = OW_REASON_NO_COMMON_BUCKET_PAIR};
		return;
	}
	double f = squares / packets, variance = f - mean_ns * mean_ns;
	if (variance < 0) {
		*ret_stddev = (struct ow_value){.reason = OW_REASON_MOMENTS_CONTRADICT};
		return;
	}
	for (unsigned k = 0; k < banks; k++)
		for (size_t i = 0; i + 1 < buckets[k]; i += 2)
			if (collapse(bank[k] + i, &pair))
				scatter += pow(pair.square - f * pair.packets, 2);
	/* The noise of F, and in addition that of mu^2: 4 mu^2 sigma^2 / S. */
	double error = OW_NORMAL_975 * sqrt(scatter / (packets * packets) + 4 * mean_ns * mean_ns * variance / packets);
	*ret_stddev = (struct ow_value){OW_VALUE_ESTIMATED, sqrt(variance), sqrt(fmax(0, variance - error)),
	                                sqrt(variance + error), OW_NO_REASON};
}
