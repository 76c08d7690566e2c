/* SPDX-License-Identifier: Apache-2.0 */
/* Mean and standard deviation from sums of times by bucket, if both points have the same packets. */
#include "estimate/moments_estimate.h"

#include "estimate/centred.h"
#include <errno.h>
#include <stdlib.h>

int ow_moments_values(const struct ow_moments *a, const struct ow_moments *b, const uint32_t *counts,
                      struct ow_value *ret_mean, struct ow_value *ret_stddev)
{
	struct ow_clean_bucket *bucket = malloc(a->buckets * sizeof *bucket);
	if (!bucket)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->buckets; i++)
		bucket[i] = (struct ow_clean_bucket){(int64_t)(b->time[i] - a->time[i]), counts[i]};
	struct ow_centred fit;
	ow_centred_fit(bucket, a->buckets, 1, &fit);
	free(bucket);
	ow_centred_mean(&fit, fit.samples, true, ret_mean);
	ow_centred_stddev(&fit, fit.samples, true, ret_stddev);
	return 0;
}

int ow_moments_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	const struct ow_moments *ma = (const struct ow_moments *)a->synopsis,
				*mb = (const struct ow_moments *)b->synopsis;
	const struct ow_view *known = a->cached == ma->packets ? a : b;
	struct ow_estimate e;
	if (ma->packets != mb->packets) {
		ow_estimate_none(ret_estimate, OW_REASON_SUMS_DIFFER);
		return 0;
	}
	if (known->cached != ma->packets || !known->cache) {
		ow_estimate_none(ret_estimate, OW_REASON_SUMS_WITHOUT_CACHE);
		return 0;
	}
	uint32_t *counts = calloc(ma->buckets, sizeof *counts);
	if (!counts)
		return -ENOMEM;
	ow_moments_count(ma, known->cache, known->cached, counts);
	ow_estimate_none(&e, OW_REASON_SUMS_ONLY);
	int r = ow_moments_values(ma, mb, counts, &e.mean_ns, &e.stddev_ns);
	free(counts);
	if (r < 0)
		return r;
	e.useful = ma->packets;
	e.lost.reason = e.extra.reason = e.loss_ratio.reason = OW_REASON_SUMS_WITHOUT_LOSS;
	*ret_estimate = e;
	return 0;
}
