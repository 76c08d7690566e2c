/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simple random samples. Mean: Student's interval, with the finite population correction (1 - n/N). Standard deviation:
 * log s^2 has a variance of about (kappa + 2)/n, kappa the excess kurtosis. Quantiles: the number of samples below the
 * true quantile is binomial, so two order statistics bound it for any distribution.
 */
#include "estimate/sample.h"

#include "base/sort.h"
#include "estimate/distribution.h"
#include <math.h>

#define Z OW_NORMAL_975

static struct ow_value between(double value, double low, double high)
{
	return (struct ow_value){OW_VALUE_ESTIMATED, value, low, high, OW_NO_REASON};
}

struct moments {
	double mean, variance, kurtosis; /* variance with n - 1; excess kurtosis */
};

/* Fourth moments about a trimmed mean (Bonett 2006): about the mean, a few hundred samples of a long tail underestimate
 * it. */
static struct moments moments_of(const int64_t *delay, size_t count)
{
	/* Relative to the median, so that a large clock offset costs no precision. */
	const int64_t origin = delay[count / 2];
	size_t trim = count > 8 ? (size_t)((double)count / (2 * sqrt((double)count - 4))) : 0;
	double n = (double)count, sum = 0, inner = 0, m2 = 0, m4 = 0;
	for (size_t i = 0; i < count; i++) {
		sum += (double)(delay[i] - origin);
		inner += i >= trim && i < count - trim ? (double)(delay[i] - origin) : 0;
	}
	double mean = sum / n, trimmed = inner / (double)(count - 2 * trim);
	for (size_t i = 0; i < count; i++) {
		double e = (double)(delay[i] - origin) - mean, f = (double)(delay[i] - origin) - trimmed;
		m2 += e * e;
		m4 += f * f * f * f;
	}
	double kurtosis = m2 > 0 ? n * m4 / (m2 * m2) - 3 : 0;
	return (struct moments){(double)origin + mean, count > 1 ? m2 / (n - 1) : 0, fmax(kurtosis, -1.9)};
}

/* P(X = k), X binomial (n, q). */
static double binomial(double n, double q, double k)
{
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) + (n - k) * log1p(-q));
}

void ow_sample_ranks(size_t count, double q, double *ret_low, double *ret_high)
{
	/*
	 * X samples are at most the quantile. The k-th smallest (place k - 1) is above it if X < k, below it if X >= k:
	 * both ends are the innermost for which that has a probability of at most 0.025.
	 */
	double n = (double)count, mean = n * q, spread = 12 * sqrt(n * q * (1 - q)) + 12;
	uint64_t k = (uint64_t)fmax(0, floor(mean - spread)), last = (uint64_t)fmin(n - 1, mean + spread);
	double p = binomial(n, q, (double)k), below = 0, low = -1, high = n;
	for (; k <= last && high == n; k++) {
		below += p;
		if (below <= 0.025)
			low = (double)k;
		if (1 - below <= 0.025)
			high = (double)k;
		p *= (n - (double)k) / (double)(k + 1) * q / (1 - q);
	}
	*ret_low = low;
	*ret_high = high;
}

static struct ow_value quantile(const int64_t *delay, size_t count, double q)
{
	size_t place = (size_t)fmax(0, ceil(q * (double)count) - 1);
	double low, high;
	ow_sample_ranks(count, q, &low, &high);
	/* There is no bound beyond the largest sample, or below the smallest. */
	return between((double)delay[place], low < 0 ? -INFINITY : (double)delay[(size_t)low],
	               high >= (double)count ? INFINITY : (double)delay[(size_t)high]);
}

static struct ow_value stddev_value(const struct moments *m, double n, double common)
{
	double v2 = (m->kurtosis + 2) / n * fmax(0, 1 - n / common), s = sqrt(m->variance);
	if (v2 <= 0)
		return between(s, s, s);
	/* For the upper bound, as in the centred estimator: chi-squared is larger, as long tails need. */
	double effective = fmax(1, 2 / v2);
	return between(s, s * exp(-Z * sqrt(v2) / 2), s * sqrt(effective / ow_chi2_quantile(0.025, effective)));
}

void ow_sample_delays(int64_t *delay, size_t count, double common, struct ow_estimate *estimate)
{
	estimate->useful = count;
	bool all = count > 0 && (double)count >= common;
	if (count < 2 && !all) {
		estimate->mean_ns = estimate->stddev_ns = ow_value_none(OW_REASON_FEW_DELAYS);
		for (int i = 0; i < OW_QUANTILES; i++)
			estimate->quantile_ns[i] = ow_value_none(OW_REASON_FEW_DELAYS);
		return;
	}
	ow_sort_times(delay, count);
	struct moments m = moments_of(delay, count);
	double n = (double)count;
	if (all) {
		estimate->mean_ns = ow_value_exact(m.mean);
		estimate->stddev_ns = ow_value_exact(sqrt(m.variance * (n - 1) / n));
	} else {
		double half = ow_student_975(n - 1) * sqrt(m.variance / n * (1 - n / common));
		estimate->mean_ns = between(m.mean, m.mean - half, m.mean + half);
		estimate->stddev_ns = stddev_value(&m, n, common);
	}
	for (int i = 0; i < OW_QUANTILES; i++) {
		struct ow_value value = quantile(delay, count, ow_quantile_level[i]);
		estimate->quantile_ns[i] = all ? ow_value_exact(value.value) : value;
	}
}

void ow_sample_loss(uint64_t lost, uint64_t trials, double sent, double received, struct ow_estimate *estimate)
{
	if (!trials) {
		estimate->lost = estimate->extra = estimate->loss_ratio = ow_value_none(OW_REASON_NO_PACKET_SAMPLED);
		return;
	}
	double n = (double)trials, p = (double)lost / n, difference = received - sent;
	double middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n);
	double half = Z / (1 + Z * Z / n) * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
	double low = fmax(0, middle - half), high = fmin(1, middle + half);
	/* At least as many packets are lost as are missing. */
	double least = isnan(received) ? 0 : fmax(0, -difference) / sent;
	p = fmax(p, least);
	/* Rounding must not exclude p itself at 0 and 1. */
	low = fmin(fmax(low, least), p);
	high = fmax(high, p);
	estimate->loss_ratio = between(p, low, high);
	estimate->lost = between(p * sent, low * sent, high * sent);
	estimate->extra = between(p * sent + difference, low * sent + difference, high * sent + difference);
	if (trials >= ow_packets_of(sent)) {
		estimate->loss_ratio = ow_value_exact((double)lost / sent);
		estimate->lost = ow_value_exact((double)lost);
		estimate->extra = ow_value_exact((double)lost + difference);
	}
	if (isnan(received))
		estimate->extra = ow_value_none(OW_REASON_PROBES_NO_EXTRA);
}

void ow_sample_widen(double count, double share, struct ow_value *mean_ns, struct ow_value *stddev_ns)
{
	const double kurtosis = 6;
	double rest = 1 - share, half = INFINITY;
	if (mean_ns->status == OW_VALUE_NONE)
		return;
	if (count > 1 && stddev_ns->status != OW_VALUE_NONE)
		half = ow_student_975(count - 1) * stddev_ns->high / sqrt(count - 1) * sqrt(rest);
	mean_ns->status = OW_VALUE_ESTIMATED;
	mean_ns->low -= half;
	mean_ns->high += half;
	if (stddev_ns->status == OW_VALUE_NONE)
		return;
	if (!(count > 1)) {
		*stddev_ns = (struct ow_value){.reason = OW_REASON_FEW_DELAYS};
		return;
	}
	double v2 = (kurtosis + 2) / count * rest, effective = fmax(1, 2 / v2);
	stddev_ns->status = OW_VALUE_ESTIMATED;
	stddev_ns->low *= exp(-OW_NORMAL_975 * sqrt(v2) / 2);
	stddev_ns->high *= fmax(1, sqrt(effective / ow_chi2_quantile(0.025, effective)));
}
