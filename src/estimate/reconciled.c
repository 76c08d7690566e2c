/* SPDX-License-Identifier: Apache-2.0 */
/* Delays of reconciled packets, and of those that could not be: reconciled.h has the method. */
#include "estimate/reconciled.h"

#include "base/hash.h"
#include "base/random.h"
#include "estimate/bottomk_estimate.h"
#include "estimate/centred.h"
#include "estimate/quantiles.h"
#include "estimate/sample.h"
#include "synopsis/bottomk.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define KEY_TAG      UINT64_C(0x7265636f6e63696c)
#define SUM_BYTES    8
#define BUCKET_BYTES 20 /* incomplete: count 4, digest 8, sum 8 */
/* Fewer packets a bucket than this, and the weights 1 / C_j of long-tailed delays spoil the chi-squared interval. */
#define PER_BUCKET 16

/* Where packets go, from the seed. */
struct plan {
	uint64_t key_xor, key_mul, digest_key;
	uint32_t buckets;
	double share;   /* of the packets that take part: */
	uint64_t limit; /* those with a sampling hash up to this */
};

struct bucket {
	uint64_t time, digest, packets;
};

static struct plan make_plan(uint64_t seed, uint32_t buckets, double share)
{
	struct ow_random random;
	ow_random_seed(&random, seed ^ KEY_TAG);
	struct plan plan = {.buckets = buckets, .share = fmin(1, share), .limit = UINT64_MAX};
	if (share < 1)
		plan.limit = (uint64_t)(share * 0x1p64);
	plan.key_xor = ow_random_u64(&random);
	plan.key_mul = ow_random_u64(&random) | 1;
	plan.digest_key = ow_random_u64(&random);
	return plan;
}

static void fill(const struct plan *plan, const struct ow_stamp *stamps, size_t count, struct bucket *bucket)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t digest = ow_mix64(stamps[i].id ^ plan->digest_key);
		/* The digest of an id is as good a sampling hash as any: it is uniform, and independent of the bucket.
		 */
		if (digest > plan->limit)
			continue;
		uint64_t hash = ow_mum64(stamps[i].id ^ plan->key_xor, plan->key_mul);
		struct bucket *at = &bucket[(hash >> 32) * plan->buckets >> 32];
		at->time += (uint64_t)stamps[i].time_ns;
		at->digest += digest;
		at->packets++;
	}
}

/* Buckets of both points; in *ret_clean those that hold the same packets, others with 0 packets: *ret_dirty of them. */
static int compare_buckets(const struct plan *plan, const struct ow_stamp *a, size_t as, const struct ow_stamp *b,
                           size_t bs, struct ow_clean_bucket **ret_clean, uint32_t *ret_dirty)
{
	uint32_t dirty = 0;
	struct bucket *x = calloc(plan->buckets, sizeof *x), *y = calloc(plan->buckets, sizeof *y);
	struct ow_clean_bucket *clean = calloc(plan->buckets, sizeof *clean);
	if (!x || !y || !clean) {
		free(x);
		free(y);
		free(clean);
		return -ENOMEM;
	}
	fill(plan, a, as, x);
	fill(plan, b, bs, y);
	for (uint32_t i = 0; i < plan->buckets; i++) {
		if (x[i].packets == y[i].packets && x[i].digest == y[i].digest)
			clean[i] = (struct ow_clean_bucket){(int64_t)(y[i].time - x[i].time), x[i].packets};
		else
			dirty++;
	}
	free(x);
	free(y);
	*ret_clean = clean;
	*ret_dirty = dirty;
	return 0;
}

/* Bytes of a time as synopsis/bottomk writes it: 7 bits a byte, with a sign. */
static uint64_t time_bytes(int64_t time_ns)
{
	uint64_t x = (uint64_t)time_ns << 1 ^ (time_ns < 0 ? UINT64_MAX : 0);
	return x ? (70 - (uint64_t)__builtin_clzll(x)) / 7 : 1;
}

static void free_both(struct ow_synopsis *a, struct ow_synopsis *b)
{
	ow_synopsis_free(a);
	ow_synopsis_free(b);
}

static int make_sample(const struct ow_stamp *stamps, size_t count, uint32_t k, uint64_t seed,
                       struct ow_synopsis **ret_sample)
{
	struct ow_synopsis *sample = NULL;
	int r = ow_bottomk_create(k, seed, &sample);
	if (r == 0)
		ow_bottomk_ops.add(sample, stamps, count);
	*ret_sample = sample;
	return r;
}

static int make_samples(const struct ow_stamp *a, size_t as, const struct ow_stamp *b, size_t bs, uint32_t k,
                        uint64_t seed, struct ow_synopsis **ret_a, struct ow_synopsis **ret_b)
{
	int r = make_sample(a, as, k, seed, ret_a);
	if (r < 0)
		return r;
	r = make_sample(b, bs, k, seed, ret_b);
	if (r < 0)
		ow_synopsis_free(*ret_a);
	return r;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Both samples are of the same ids: entry meets entry. Sorted delays; adds the times of B to *bytes. */
static int sample_delays(const struct ow_stamp *a, const struct ow_stamp *b, size_t count, uint32_t k, uint64_t seed,
                         int64_t **ret_delay, uint64_t *bytes)
{
	struct ow_synopsis *x, *y;
	uint32_t n;
	int r = make_samples(a, count, b, count, k, seed, &x, &y);
	if (r < 0)
		return r;
	const struct ow_bottomk_entry *at_a = ow_bottomk_entries(x, &n), *at_b = ow_bottomk_entries(y, &n);
	int64_t *delay = malloc((n + (size_t)1) * sizeof *delay);
	for (uint32_t i = 0; delay && i < n; i++) {
		delay[i] = (int64_t)((uint64_t)at_b[i].time_ns - (uint64_t)at_a[i].time_ns);
		*bytes += time_bytes(at_b[i].time_ns);
	}
	free_both(x, y);
	if (!delay)
		return -ENOMEM;
	qsort(delay, n, sizeof *delay, by_value);
	*ret_delay = delay;
	return 0;
}

static int from_sums(const struct ow_stamp *a, const struct ow_stamp *b, size_t count, uint64_t common, uint64_t seed,
                     uint32_t buckets, struct ow_estimate *estimate)
{
	struct plan plan = make_plan(seed, buckets, 1);
	struct ow_clean_bucket *clean;
	struct ow_centred fit;
	uint32_t dirty;
	int r = compare_buckets(&plan, a, count, b, count, &clean, &dirty);
	if (r < 0)
		return r;
	ow_centred_fit(clean, buckets, 1, &fit);
	free(clean);
	ow_centred_mean(&fit, (double)common, common == count, &estimate->mean_ns);
	ow_centred_stddev(&fit, (double)common, common == count, &estimate->stddev_ns);
	estimate->more_bytes += (uint64_t)buckets * SUM_BYTES;
	return 0;
}

int ow_reconciled_delays(const struct ow_stamp *a, const struct ow_stamp *b, size_t count, uint64_t common,
                         uint64_t seed, const struct ow_reconciled_options *options, struct ow_estimate *estimate)
{
	uint32_t buckets = options->buckets, k = options->sample;
	uint64_t bytes = 0;
	int64_t *delay;
	if (count == 0)
		return 0;
	/* All times, if they are no more bytes than sums and sample (a time takes 5). */
	if (count <= k + (uint64_t)buckets * SUM_BYTES / 5)
		k = (uint32_t)count;
	else if (buckets > count / PER_BUCKET)
		buckets = (uint32_t)(count / PER_BUCKET);
	int r = sample_delays(a, b, count, k, seed, &delay, &bytes);
	if (r < 0)
		return r;
	if (k == count) {
		ow_sample_delays(delay, count, (double)common, estimate);
	} else {
		r = from_sums(a, b, count, common, seed, buckets, estimate);
		if (r == 0)
			ow_quantiles(delay, k, common, estimate->mean_ns.value, estimate->quantile_ns);
	}
	free(delay);
	estimate->useful = count;
	estimate->more_bytes += bytes;
	return r;
}

/*
 * *ret_common: packets that both have, by the share of dirty buckets: differences are spread over the buckets like
 * raindrops, exp(-d p / B) of them stay clean.
 */
static int clean_buckets(const struct plan *plan, const struct ow_stamp *a, size_t as, const struct ow_stamp *b,
                         size_t bs, struct ow_estimate *estimate, double *ret_common)
{
	struct ow_clean_bucket *clean;
	struct ow_centred fit;
	uint32_t dirty;
	int r = compare_buckets(plan, a, as, b, bs, &clean, &dirty);
	if (r < 0)
		return r;
	ow_centred_fit(clean, plan->buckets, 1, &fit);
	free(clean);
	double rest = -log1p(-(double)dirty / plan->buckets) * plan->buckets / plan->share;
	double common = fmax(((double)as + (double)bs - rest) / 2, fit.samples + (dirty > 0));
	*ret_common = common;
	ow_centred_mean(&fit, common, false, &estimate->mean_ns);
	ow_centred_stddev(&fit, common, false, &estimate->stddev_ns);
	estimate->useful = ow_packets_of(fit.samples);
	estimate->more_bytes += (uint64_t)plan->buckets * BUCKET_BYTES;
	return 0;
}

int ow_unreconciled_delays(const struct ow_stamp *a, size_t as, const struct ow_stamp *b, size_t bs, double differences,
                           uint64_t seed, const struct ow_reconciled_options *options, struct ow_estimate *estimate)
{
	struct ow_synopsis *x, *y;
	struct ow_bottomk_pairs pairs;
	double common;
	/* LDA's optimum: one difference a bucket. */
	struct plan plan = make_plan(seed, options->buckets, options->buckets / fmax(differences, 1));
	int r = clean_buckets(&plan, a, as, b, bs, estimate, &common);
	if (r < 0)
		return r;
	r = make_samples(a, as, b, bs, options->sample, seed, &x, &y);
	if (r < 0)
		return r;
	estimate->more_bytes += ow_synopsis_encoded_size(y);
	r = ow_bottomk_pair(x, y, &pairs);
	free_both(x, y);
	if (r < 0)
		return r;
	/* The mean is not exact here: nothing to calibrate to. */
	ow_quantiles(pairs.delay_ns, pairs.count, ow_packets_of(fmax((double)pairs.count + !pairs.all, common)), NAN,
	             estimate->quantile_ns);
	ow_bottomk_pairs_done(&pairs);
	return 0;
}
