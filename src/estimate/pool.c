/* SPDX-License-Identifier: Apache-2.0 */
/* Combines groups of delays: pool.h has the formulas. */
#include "estimate/pool.h"

#include "estimate/distribution.h"
#include "estimate/loglinear.h"
#include "estimate/sample.h"
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BITS  10 /* as in ow_delays: values within 0.05 % */
#define Z     OW_NORMAL_975
#define PRIOR 20
/* Standard errors: the mean of a sample is hardly ever farther from that of all. */
#define MEAN_FAR 4
/* More samples make the interval only slightly narrower, and their ranks take time to compute. */
#define SAMPLES_MAX 1e9

struct ow_pool {
	double packets;
	double origin;            /* the first mean; sums relative to it keep their precision for any clock offset */
	long double sum;          /* of n_i (mu_i - origin) */
	long double square;       /* of n_i (sigma_i^2 + (mu_i - origin)^2) */
	double mean_low2;         /* of (n_i (mu_i - low_i))^2 */
	double mean_high2;        /* the same for high */
	double variance_low2;     /* of (n_i (sigma_i^2 - low_i^2))^2 */
	double variance_high2;    /* the same for high */
	bool estimated;           /* some mean is not exact */
	bool estimated_stddev;    /* some standard deviation is not exact */
	enum ow_reason no_stddev; /* why some group has no standard deviation */
	bool unsampled;           /* some group has no single delay */

	double weight;   /* of all samples: the packets that they stand for */
	double spread;   /* sum of (n_i^2 / k_i)(1 - k_i / n_i) */
	int first, last; /* slots that were used */
	double slot[OW_LOGLINEAR_SLOTS(BITS)];
};

int ow_pool_create(struct ow_pool **ret_pool)
{
	struct ow_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return -ENOMEM;
	*ret_pool = pool;
	return 0;
}

void ow_pool_free(struct ow_pool *pool)
{
	free(pool);
}

void ow_pool_reset(struct ow_pool *pool)
{
	if (pool->weight > 0)
		memset(pool->slot + pool->first, 0, (size_t)(pool->last - pool->first + 1) * sizeof *pool->slot);
	memset(pool, 0, offsetof(struct ow_pool, slot));
}

void ow_pool_copy(struct ow_pool *pool, const struct ow_pool *from)
{
	ow_pool_reset(pool);
	memcpy(pool, from, offsetof(struct ow_pool, slot));
	if (from->weight > 0)
		memcpy(pool->slot + from->first, from->slot + from->first,
		       (size_t)(from->last - from->first + 1) * sizeof *pool->slot);
}

double ow_pool_packets(const struct ow_pool *pool)
{
	return pool->packets;
}

static void add_moments(struct ow_pool *pool, double n, const struct ow_value *mean, const struct ow_value *stddev)
{
	if (pool->packets == 0)
		pool->origin = mean->value;
	double x = mean->value - pool->origin, s2 = stddev->value * stddev->value;
	pool->packets += n;
	pool->sum += (long double)n * x;
	pool->mean_low2 += pow(n * (mean->value - mean->low), 2);
	pool->mean_high2 += pow(n * (mean->high - mean->value), 2);
	pool->estimated |= mean->status != OW_VALUE_EXACT;
	if (stddev->status == OW_VALUE_NONE) {
		pool->no_stddev = stddev->reason;
		return;
	}
	pool->square += (long double)n * ((long double)s2 + (long double)x * x);
	pool->variance_low2 += pow(n * (s2 - stddev->low * stddev->low), 2);
	pool->variance_high2 += pow(n * (stddev->high * stddev->high - s2), 2);
	pool->estimated_stddev |= stddev->status != OW_VALUE_EXACT;
}

static void add_weight(struct ow_pool *pool, double delay_ns, double weight)
{
	/* A peer's delay may be at the end of the range, where rounding up would overflow. */
	int slot = ow_loglinear_slot(llrint(fmin(fmax(delay_ns, -0x1p62), 0x1p62)), BITS);
	if (pool->weight == 0) {
		pool->first = pool->last = slot;
	} else {
		pool->first = slot < pool->first ? slot : pool->first;
		pool->last = slot > pool->last ? slot : pool->last;
	}
	pool->slot[slot] += weight;
	pool->weight += weight;
}

static void add_sample(struct ow_pool *pool, const struct ow_pool_group *group)
{
	double k = (double)group->delays, n = group->packets, origin = group->mean_ns.value, mean = 0, variance = 0;
	for (size_t i = 0; i < group->delays; i++)
		mean += ((double)group->delay_ns[i] - origin) / k;
	for (size_t i = 0; i < group->delays; i++)
		variance += pow((double)group->delay_ns[i] - origin - mean, 2) / k;
	/*
	 * w_i = (1 + (mu - m)(x_i - m) / s^2) / k, unless the sample is complete. If it has missed the few delays that the
	 * mean is made of, its mean is too far away: weights that move it there would move the quantiles as well.
	 */
	bool near = mean * mean * k <= MEAN_FAR * MEAN_FAR * variance;
	double slope = variance > 0 && k < n && near ? -mean / variance : 0;
	for (size_t i = 0; i < group->delays; i++) {
		double e = (double)group->delay_ns[i] - origin - mean;
		add_weight(pool, (double)group->delay_ns[i], fmax(0, 1 + slope * e) * n / k);
	}
	pool->spread += n * n / k * fmax(0, 1 - k / n);
}

void ow_pool_add(struct ow_pool *pool, const struct ow_pool_group *group)
{
	if (!(group->packets > 0) || group->mean_ns.status == OW_VALUE_NONE)
		return;
	add_moments(pool, group->packets, &group->mean_ns, &group->stddev_ns);
	if (group->delays)
		add_sample(pool, group);
	else
		pool->unsampled = true;
}

struct spreading {
	struct ow_pool *pool;
	double weight, mean, fourth; /* fourth: sum of (x - mean)^4 */
};

static void spread_slot(void *arg, double delay_ns, uint64_t samples)
{
	struct spreading *s = arg;
	add_weight(s->pool, delay_ns, (double)samples * s->weight);
	s->fourth += (double)samples * pow(delay_ns - s->mean, 4);
}

/* The interval of the standard deviation of a sample, as in estimate/sample.c. */
static struct ow_value stddev_of(double s, double fourth, double n, double rest)
{
	double kurtosis = s > 0 ? fmax(fourth / n / pow(s, 4) - 3, -1.9) : 0;
	/* Few samples do not show the tail: assume that some more of an exponential distribution are among them. */
	kurtosis = (n * kurtosis + PRIOR * 6) / (n + PRIOR);
	double v2 = (kurtosis + 2) / n * rest, effective = fmax(1, 2 / v2);
	return (struct ow_value){OW_VALUE_ESTIMATED, s, s * exp(-Z * sqrt(v2) / 2),
	                         s * sqrt(effective / ow_chi2_quantile(0.025, effective)), OW_NO_REASON};
}

void ow_pool_add_delays(struct ow_pool *pool, const struct ow_delays *delays, double weight)
{
	struct ow_delay d;
	ow_delays_summary(delays, &d);
	if (!d.samples)
		return;
	double n = (double)d.samples, rest = 1 - 1 / weight;
	struct spreading spreading = {pool, weight, d.mean_ns, 0};
	ow_delays_each(delays, spread_slot, &spreading);
	struct ow_value mean = ow_value_exact(d.mean_ns);
	struct ow_value stddev = ow_value_exact(d.stddev_ns);
	if (weight > 1) {
		double half = n > 1 ? ow_student_975(n - 1) * d.stddev_ns / sqrt(n - 1) * sqrt(rest) : INFINITY;
		mean = (struct ow_value){OW_VALUE_ESTIMATED, d.mean_ns, d.mean_ns - half, d.mean_ns + half,
		                         OW_NO_REASON};
		stddev = ow_value_none(OW_REASON_FEW_DELAYS);
		if (n > 1)
			stddev = stddev_of(d.stddev_ns * sqrt(n / (n - 1)), spreading.fourth, n, rest);
		pool->spread += n * weight * weight * rest;
	}
	add_moments(pool, n * weight, &mean, &stddev);
}

/* The smallest value for which the weights up to it reach a share of all. */
static double at_share(const struct ow_pool *pool, double share)
{
	double goal = (share - 1e-9) * pool->weight, sum = 0;
	int slot = pool->first;
	while (slot < pool->last && (sum += pool->slot[slot]) < goal)
		slot++;
	return ow_loglinear_value(slot, BITS);
}

static struct ow_value quantile(const struct ow_pool *pool, double q)
{
	double value = at_share(pool, q), low, high;
	if (pool->spread <= 0 && !pool->estimated)
		return ow_value_exact(value);
	double k = SAMPLES_MAX;
	if (pool->spread > 0)
		k = fmin(fmax(floor(pool->weight * pool->weight / pool->spread), 1), SAMPLES_MAX);
	ow_sample_ranks((size_t)k, q, &low, &high);
	return (struct ow_value){OW_VALUE_ESTIMATED, value,
	                         low < 0 ? -INFINITY : fmin(value, at_share(pool, (low + 1) / k)),
	                         high >= k ? INFINITY : fmax(value, at_share(pool, (high + 1) / k)), OW_NO_REASON};
}

static struct ow_value stddev_value(const struct ow_pool *pool)
{
	long double n = pool->packets, mean = pool->sum / n;
	if (pool->no_stddev)
		return ow_value_none(pool->no_stddev);
	double variance = (double)fmaxl(0, pool->square / n - mean * mean), s = sqrt(variance);
	if (!pool->estimated_stddev)
		return ow_value_exact(s);
	double low = variance - sqrt(pool->variance_low2) / pool->packets;
	double high = variance + sqrt(pool->variance_high2) / pool->packets;
	return (struct ow_value){OW_VALUE_ESTIMATED, s, fmin(s, sqrt(fmax(0, low))), sqrt(high), OW_NO_REASON};
}

void ow_pool_values(const struct ow_pool *pool, struct ow_value *ret_mean_ns, struct ow_value *ret_stddev_ns,
                    struct ow_value ret_quantile_ns[OW_QUANTILES])
{
	*ret_mean_ns = *ret_stddev_ns = ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	for (int i = 0; i < OW_QUANTILES; i++)
		ret_quantile_ns[i] = pool->unsampled    ? ow_value_none(OW_REASON_DELAYS_ELSEWHERE)
		                     : pool->weight > 0 ? quantile(pool, ow_quantile_level[i])
		                                        : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	if (!(pool->packets > 0))
		return;
	double mean = (double)(pool->origin + pool->sum / pool->packets);
	*ret_mean_ns = ow_value_exact(mean);
	if (pool->estimated) {
		*ret_mean_ns = (struct ow_value){OW_VALUE_ESTIMATED, mean, mean - sqrt(pool->mean_low2) / pool->packets,
		                                 mean + sqrt(pool->mean_high2) / pool->packets, OW_NO_REASON};
	}
	*ret_stddev_ns = stddev_value(pool);
}
