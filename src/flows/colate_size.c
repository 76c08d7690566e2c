/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of a COLATE recording: section 5 of the paper. Equations 13, 14 and 15 give n, T and m for each b; equation 22
 * (with the denominator corrected to (n - m)^2) then chooses b.
 */
#include "flows/colate_size.h"

#include "estimate/distribution.h"
#include "synopsis/colate.h"
#include <errno.h>
#include <math.h>

/*
 * The range of b that is tried: fewer bits cannot store a time, more are not supported. It is searched in steps of this
 * size, then by bisection.
 */
#define BITS_MIN  2.0
#define BITS_MAX  64.0
#define BITS_STEP 0.05

struct point {
	double n, m, b, T;
};

/* Equations 13 to 15 for this b. */
static struct point at_bits(const struct ow_colate_need *need, double b)
{
	double n = need->memory_bits / b, half = exp2(b - 1);
	/* (15) with T / n = 2^(b-1): t_max (1/m - 1/n) = 2^(b-1) - 1 */
	return (struct point){n, 1 / ((half - 1) / need->t_max + 1 / n), b, n * half};
}

/* The right side of equation 22: the variance of the estimated sum of times, times k^2. */
static double spread_of(double n, double m, double T, double t, double k)
{
	double own = t / m * (1 - 1 / m), others = fmax(T - t, 0) / n * (1 - 1 / n);
	return k * k * n * n * m / ((n - m) * (n - m)) * (own + others);
}

static double normal_of(double alpha)
{
	/* (11), (19): A = (1 + alpha) / 2; the square of a standard normal is chi-squared. */
	return sqrt(ow_chi2_quantile((1 + alpha) / 2, 1));
}

/* >= 0 if the need is met. The m counters of a flow must be far fewer than all counters. */
static double margin(const struct ow_colate_need *need, const struct ow_colate_size *size, double b)
{
	struct point p = at_bits(need, b);
	if (p.m < need->m_min * (1 - 1e-12) || p.m > p.n / 2)
		return -INFINITY;
	return size->B * size->B * need->t_min * need->t_min - spread_of(p.n, p.m, p.T, need->t_min, size->k);
}

double ow_colate_reach(double n, double m, double T, double t, double alpha, double ratio)
{
	return sqrt(spread_of(n, m, T, t, normal_of(alpha))) / t / ratio;
}

double ow_colate_bits_per_packet(const struct ow_colate_size *size, double mean_time)
{
	return (double)size->counters * size->bits * mean_time / size->threshold;
}

static int check(const struct ow_colate_need *need, struct ow_error *err)
{
	if (!(need->memory_bits >= 64 && need->memory_bits < 0x1p50))
		return ow_error_set(err, EINVAL, "memory of %g bits is not in 64 .. 2^50", need->memory_bits);
	if (!(need->alpha > 0 && need->alpha < 1) || !(need->beta > 0 && need->beta < 1))
		return ow_error_set(err, EINVAL, "alpha %g, beta %g: both must be between 0 and 1", need->alpha,
		                    need->beta);
	if (!(need->t_min > 0 && need->t_min <= need->t_max && need->t_max < 0x1p63))
		return ow_error_set(err, EINVAL, "t_min %g, t_max %g: must be 0 < t_min <= t_max < 2^63", need->t_min,
		                    need->t_max);
	if (!(need->ratio > 0 && need->ratio <= 1))
		return ow_error_set(err, EINVAL, "ratio %g: (t_R - t_S) / (t_R + t_S) must be between 0 and 1",
		                    need->ratio);
	if (!(need->m_min >= 2 && need->m_min <= OW_COLATE_SPREAD_MAX))
		return ow_error_set(err, EINVAL, "%g counters of a flow is not in 2 .. %d", need->m_min,
		                    OW_COLATE_SPREAD_MAX);
	return 0;
}

/* The best b for this need, whether the need is met or not; 0 if no b makes a recording. */
static double best_bits(const struct ow_colate_need *need, const struct ow_colate_size *size)
{
	double best = 0, most = -INFINITY;
	double b = BITS_MIN;
	while (b <= BITS_MAX) {
		double m = margin(need, size, b);
		if (m > most) {
			most = m;
			best = b;
		}
		b += BITS_STEP;
	}
	return best;
}

/* The largest b, and with it T, that meets the need; 0 if there is none. */
static double largest_bits(const struct ow_colate_need *need, const struct ow_colate_size *size)
{
	double b = BITS_MAX;
	while (b >= BITS_MIN && !(margin(need, size, b) >= 0))
		b -= BITS_STEP;
	if (b < BITS_MIN)
		return 0;
	double low = b, high = fmin(b + BITS_STEP, BITS_MAX);
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		*(margin(need, size, middle) >= 0 ? &low : &high) = middle;
	}
	return low;
}

/* Rounds to whole numbers: b up, n and m from it, T as equation 22 allows (at most what fits). */
static void round_size(const struct ow_colate_need *need, struct ow_colate_size *size)
{
	size->bits = (uint8_t)fmin(ceil(size->b - 1e-9), BITS_MAX);
	double n = fmin(floor(need->memory_bits / size->bits), OW_COLATE_COUNTERS_MAX);
	double m = fmin(2 * ceil(size->m / 2 - 1e-9), OW_COLATE_SPREAD_MAX);
	size->counters = (uint32_t)n;
	size->spread = (uint32_t)m;
	double t = need->t_min, k2 = size->k * size->k;
	double others = size->B * size->B * t * t * (n - m) * (n - m) / (k2 * n * n * m) - t / m * (1 - 1 / m);
	size->threshold = fmin(t + others * n / (1 - 1 / n), n * exp2(size->bits - 1));
}

int ow_colate_size(const struct ow_colate_need *need, struct ow_colate_size *ret_size, struct ow_error *err)
{
	int r = check(need, err);
	if (r < 0)
		return r;
	struct ow_colate_size size = {.A = (1 + need->alpha) / 2, .B = need->beta * need->ratio};
	size.k = normal_of(need->alpha);
	double b = largest_bits(need, &size);
	if (b <= 0) {
		b = best_bits(need, &size);
		if (b <= 0)
			return ow_error_set(
				err, ERANGE,
				"no recording of %g bits has between 2 and n / 2 counters of a flow at t_max %g",
				need->memory_bits, need->t_max);
		struct point p = at_bits(need, b);
		return ow_error_set(
			err, ERANGE,
			"beta %g for flows of t_min %g cannot be met, whatever b: at alpha %g the best is %.3g",
			need->beta, need->t_min, need->alpha,
			ow_colate_reach(p.n, p.m, p.T, need->t_min, need->alpha, need->ratio));
	}
	struct point p = at_bits(need, b);
	size.n = p.n, size.m = p.m, size.b = p.b, size.T = p.T;
	round_size(need, &size);
	if (!(size.threshold > need->t_min))
		return ow_error_set(err, ERANGE, "whole numbers of bits and counters do not meet beta %g at t_min %g",
		                    need->beta, need->t_min);
	*ret_size = size;
	return 0;
}

double ow_colate_epoch_length(const struct ow_colate_size *size, double rate)
{
	return sqrt(2 * size->threshold / rate);
}
