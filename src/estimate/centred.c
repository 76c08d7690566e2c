/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The centred estimator. It replaces the second moment F - mu^2 of LDA, FineComb and RDA, whose noise grows with (mu +
 * offset)^2 / sigma^2. Here a constant part of the delays cancels before anything is squared.
 */
#include "estimate/centred.h"

#include "estimate/distribution.h"
#include <math.h>

static bool usable(const struct ow_clean_bucket *b)
{
	return b->packets && b->packets <= INT64_MAX;
}

/* e_j = D_j - mu C_j. The integer part of mu is subtracted in integers, so the result is exact for any clock offset. */
static double centre(const struct ow_clean_bucket *b, int64_t whole, double rest)
{
	uint64_t off = (uint64_t)b->delay_ns - (uint64_t)whole * b->packets;
	return (double)(int64_t)off - rest * (double)b->packets;
}

void ow_centred_fit(const struct ow_clean_bucket *bucket, size_t count, unsigned banks, struct ow_centred *ret_fit)
{
	struct ow_centred fit = {0};
	__int128 delay = 0, packets = 0;
	for (size_t i = 0; i < count; i++) {
		if (!usable(&bucket[i]))
			continue;
		fit.buckets++;
		delay += bucket[i].delay_ns;
		packets += (__int128)bucket[i].packets;
	}
	fit.samples = (double)packets;
	fit.freedom = (double)fit.buckets - banks;
	if (!packets) {
		*ret_fit = fit;
		return;
	}
	int64_t whole = (int64_t)(delay / packets);
	double rest = (double)(delay - whole * packets) / fit.samples;
	fit.mean_ns = (double)whole + rest;
	double second = 0, fourth = 0;
	for (size_t i = 0; i < count; i++) {
		if (!usable(&bucket[i]))
			continue;
		double e = centre(&bucket[i], whole, rest), e2 = e * e / (double)bucket[i].packets;
		second += e2;
		fourth += e2 * e2;
	}
	double b = (double)fit.buckets;
	if (fit.freedom > 0)
		fit.variance_ns2 = second / fit.freedom;
	/* E e^4 = 3 C^2 sigma^4 + C kappa sigma^4 */
	if (second > 0)
		fit.kurtosis = fmax(0, fit.samples / b * (fourth / b / pow(second / b, 2) - 3));
	*ret_fit = fit;
}

/* The share of the common packets that is not in the sample. */
static double unseen(const struct ow_centred *fit, double common, bool complete)
{
	return complete ? 0 : fmax(0, 1 - fit->samples / fmax(common, 1));
}

void ow_centred_mean(const struct ow_centred *fit, double common, bool complete, struct ow_value *ret_mean)
{
	if (fit->samples <= 0) {
		*ret_mean = (struct ow_value){.reason = OW_REASON_NO_COMMON_BUCKET};
		return;
	}
	double mean = fit->mean_ns, rest = unseen(fit, common, complete), error = 0;
	/* mu +- t sqrt(s^2/S (1 - S/R)); with one bucket the variance is unknown */
	if (rest > 0)
		error = fit->freedom > 0 ? ow_student_975(fit->freedom) * sqrt(fit->variance_ns2 / fit->samples * rest)
		                         : INFINITY;
	*ret_mean = (struct ow_value){complete ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED, mean, mean - error, mean + error,
	                              OW_NO_REASON};
}

void ow_centred_stddev(const struct ow_centred *fit, double common, bool complete, struct ow_value *ret_stddev)
{
	if (fit->freedom <= 0) {
		*ret_stddev = (struct ow_value){.reason = fit->samples > 0 ? OW_REASON_FEW_COMMON_BUCKETS
		                                                           : OW_REASON_NO_COMMON_BUCKET};
		return;
	}
	double nu = fit->freedom, variance = fit->variance_ns2, s = sqrt(variance),
	       rest = unseen(fit, common, complete);
	struct ow_value v = {OW_VALUE_ESTIMATED, s, 0, 0, OW_NO_REASON};
	if (rest <= 0) {
		/* [nu s^2 / chi2_.975, nu s^2 / chi2_.025] */
		v.low = sqrt(nu * variance / ow_chi2_quantile(0.975, nu));
		v.high = sqrt(nu * variance / ow_chi2_quantile(0.025, nu));
	} else {
		/*
		 * log s^2 +- t sqrt(2/(B-1) + (kappa+2)/S (1-S/R)). For the upper bound, chi-squared with the degrees
		 * of freedom that give this variance is larger, as long-tailed delays need: 1 or 2 more of 100
		 * intervals contain the true value.
		 */
		double b = (double)fit->buckets;
		double v2 = 2 / fmax(1, b - 1) + (fit->kurtosis + 2) / fit->samples * rest, effective = fmax(1, 2 / v2);
		v.low = s * exp(-ow_student_975(nu) * sqrt(v2) / 2);
		v.high = sqrt(effective * variance / ow_chi2_quantile(0.025, effective));
	}
	*ret_stddev = v;
}
