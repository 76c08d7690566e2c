/* SPDX-License-Identifier: Apache-2.0 */
/* Delays after complete and incomplete reconciliation: reconciled.h has the method. */
#include "estimate/reconciled.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/sort.h"
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
/* With fewer packets a bucket, the weights 1 / C_j of long-tailed delays make the chi-squared interval wrong. */
#define PER_BUCKET 16

/* How packets are assigned to buckets, derived from the seed. */
struct places {
	uint64_t key_xor, key_mul, digest_key;
	uint32_t buckets;
	double share;   /* share of the packets that are used: */
	uint64_t limit; /* those with a sampling hash up to this */
};

/* The optimum of LDA if the points differ: one difference a bucket. */
static double share_of(const struct ow_reconciled_plan *plan)
{
	return plan->complete ? 1 : fmin(1, plan->buckets / fmax(plan->differences, 1));
}

static struct places make_places(uint64_t seed, const struct ow_reconciled_plan *plan)
{
	struct ow_random random;
	ow_random_seed(&random, seed ^ KEY_TAG);
	struct places places = {.buckets = plan->buckets, .share = share_of(plan), .limit = UINT64_MAX};
	if (places.share < 1)
		places.limit = (uint64_t)(places.share * 0x1p64);
	places.key_xor = ow_random_u64(&random);
	places.key_mul = ow_random_u64(&random) | 1;
	places.digest_key = ow_random_u64(&random);
	return places;
}

static void fill(const struct places *places, const struct ow_sighting *sightings, size_t count,
                 struct ow_reconciled_part *part)
{
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t digest = ow_mix64(sightings[i].id ^ places->digest_key);
		all += digest;
		/* The digest of an id is also the sampling hash: it is uniform, and independent of the bucket. */
		if (digest > places->limit || !places->buckets)
			continue;
		uint64_t hash = ow_mum64(sightings[i].id ^ places->key_xor, places->key_mul);
		struct ow_reconciled_bucket *at = &part->bucket[(hash >> 32) * places->buckets >> 32];
		at->time += (uint64_t)sightings[i].time_ns;
		at->digest += digest;
		at->packets++;
	}
	part->packets = count;
	part->digest = all;
}

/* Bytes of a time as in synopsis/bottomk: 7 bits a byte, with a sign. */
static uint64_t time_bytes(int64_t time_ns)
{
	uint64_t x = (uint64_t)time_ns << 1 ^ (time_ns < 0 ? UINT64_MAX : 0);
	return x ? (70 - (uint64_t)__builtin_clzll(x)) / 7 : 1;
}

static int make_sample(const struct ow_sighting *sightings, size_t count, uint32_t k, uint64_t seed,
                       struct ow_synopsis **ret_sample)
{
	struct ow_synopsis *sample = NULL;
	int r = ow_bottomk_create(k, seed, &sample);
	if (r == 0)
		ow_bottomk_ops.add(sample, sightings, count);
	*ret_sample = sample;
	return r;
}

/* Both points have the same packets: the times in the order of ranks are sufficient. */
static int keep_times(struct ow_reconciled_part *part)
{
	const struct ow_bottomk_entry *entry = ow_bottomk_entries(part->sample, &part->samples);
	part->sample_ns = malloc((part->samples + (size_t)1) * sizeof *part->sample_ns);
	if (!part->sample_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < part->samples; i++)
		part->sample_ns[i] = entry[i].time_ns;
	ow_synopsis_free(part->sample);
	part->sample = NULL;
	return 0;
}

/* The largest number of packets whose times are all sent, with these options. */
static uint64_t few_times(const struct ow_reconciled_options *options)
{
	/* All times, if they are no more bytes than sums and sample (a time takes 5). */
	return options->sample + (uint64_t)options->buckets * SUM_BYTES / 5;
}

void ow_reconciled_plan(size_t count, const struct ow_reconciled_options *options, struct ow_reconciled_plan *ret_plan)
{
	struct ow_reconciled_plan plan = {.complete = true, .buckets = options->buckets, .sample = options->sample};
	if (count <= (options->all ? OW_RECONCILED_ALL : few_times(options))) {
		plan.buckets = 0;
		plan.sample = (uint32_t)count;
	} else if (plan.buckets > count / PER_BUCKET) {
		plan.buckets = (uint32_t)(count / PER_BUCKET);
	}
	*ret_plan = plan;
}

int ow_reconciled_take(const struct ow_sighting *sightings, size_t count, uint64_t seed,
                       const struct ow_reconciled_plan *plan, struct ow_reconciled_part *ret_part)
{
	struct ow_reconciled_part part = {.buckets = plan->buckets};
	struct places places = make_places(seed, plan);
	/* The size of a sample that is sent as a synopsis is part of it. */
	uint32_t sample = plan->complete && plan->sample > count ? (uint32_t)count : plan->sample;
	part.bucket = calloc((size_t)plan->buckets + 1, sizeof *part.bucket);
	int r = part.bucket ? make_sample(sightings, count, sample ? sample : 1, seed, &part.sample) : -ENOMEM;
	if (r == 0) {
		fill(&places, sightings, count, &part);
		r = plan->complete ? keep_times(&part) : 0;
	}
	if (r < 0)
		ow_reconciled_part_done(&part);
	else
		*ret_part = part;
	return r;
}

int ow_reconciled_order(const struct ow_sighting *sightings, size_t count, uint64_t seed, uint32_t *ret_place)
{
	struct ow_synopsis *ranks = NULL;
	uint32_t entries = 0;
	int r = ow_bottomk_create(count ? (uint32_t)count : 1, seed, &ranks);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		ow_bottomk_ops.add(ranks, &(struct ow_sighting){sightings[i].id, (int64_t)i, 0}, 1);
	const struct ow_bottomk_entry *entry = ow_bottomk_entries(ranks, &entries);
	for (uint32_t i = 0; i < entries; i++)
		ret_place[i] = (uint32_t)entry[i].time_ns;
	ow_synopsis_free(ranks);
	return 0;
}

void ow_reconciled_part_done(struct ow_reconciled_part *part)
{
	free(part->bucket);
	free(part->sample_ns);
	ow_synopsis_free(part->sample);
	*part = (struct ow_reconciled_part){0};
}

uint64_t ow_reconciled_check(const struct ow_reconciled_part *part)
{
	uint64_t check = 0;
	for (uint32_t i = 0; i < part->buckets; i++)
		check += ow_mix64(ow_mix64(i) + part->bucket[i].time);
	return check;
}

void ow_reconciled_restore(struct ow_reconciled_part *part, const struct ow_reconciled_part *mine, unsigned bits,
                           int64_t least_ns)
{
	uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
	for (uint32_t i = 0; i < part->buckets; i++) {
		uint64_t least = mine->bucket[i].time + mine->bucket[i].packets * (uint64_t)least_ns;
		part->bucket[i].time = least + ((part->bucket[i].time - least) & mask);
	}
}

/* Bytes of the encoded part, without headers. */
static uint64_t part_bytes(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *part)
{
	if (!plan->complete)
		return (uint64_t)part->buckets * BUCKET_BYTES + ow_synopsis_encoded_size(part->sample);
	uint64_t bytes = (uint64_t)part->buckets * SUM_BYTES;
	for (uint32_t i = 0; i < part->samples; i++)
		bytes += time_bytes(part->sample_ns[i]);
	return bytes;
}

/*
 * Returns the buckets that have the same packets at both points, the *ret_dirty others with 0 packets. A complete part
 * was sent with sums only: A's counts are those of both.
 */
static struct ow_clean_bucket *clean_buckets(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *a,
                                             const struct ow_reconciled_part *b, uint32_t *ret_dirty)
{
	struct ow_clean_bucket *clean = calloc((size_t)plan->buckets + 1, sizeof *clean);
	uint32_t dirty = 0;
	for (uint32_t i = 0; clean && i < plan->buckets; i++) {
		const struct ow_reconciled_bucket *x = a->bucket + i, *y = b->bucket + i;
		if (plan->complete || (x->packets == y->packets && x->digest == y->digest))
			clean[i] = (struct ow_clean_bucket){(int64_t)(y->time - x->time), x->packets};
		else
			dirty++;
	}
	*ret_dirty = dirty;
	return clean;
}

/* Both samples have the same ids in the same order, so the times pair up. Returns the sorted delays. */
static int64_t *sample_delays(const struct ow_reconciled_part *a, const struct ow_reconciled_part *b)
{
	int64_t *delay = malloc((a->samples + (size_t)1) * sizeof *delay);
	for (uint32_t i = 0; delay && i < a->samples; i++)
		delay[i] = (int64_t)((uint64_t)b->sample_ns[i] - (uint64_t)a->sample_ns[i]);
	if (delay)
		ow_sort_times(delay, a->samples);
	return delay;
}

static int compare_complete(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *a,
                            const struct ow_reconciled_part *b, uint64_t common, struct ow_estimate *estimate,
                            struct ow_reconciled_delay *ret_delay)
{
	uint32_t dirty;
	struct ow_centred fit;
	if (a->packets != b->packets || a->digest != b->digest || a->samples != b->samples)
		return -EBADMSG;
	struct ow_reconciled_delay delay = {sample_delays(a, b), a->samples};
	struct ow_clean_bucket *clean = clean_buckets(plan, a, b, &dirty);
	int r = delay.ns && clean ? 0 : -ENOMEM;
	estimate->useful = a->packets;
	if (r == 0 && !plan->buckets && a->packets) {
		ow_sample_delays(delay.ns, delay.count, (double)common, estimate);
	} else if (r == 0 && a->packets) {
		ow_centred_fit(clean, plan->buckets, 1, &fit);
		ow_centred_mean(&fit, (double)common, common == a->packets, &estimate->mean_ns);
		ow_centred_stddev(&fit, (double)common, common == a->packets, &estimate->stddev_ns);
		ow_quantiles(delay.ns, delay.count, common, estimate->mean_ns.value, estimate->quantile_ns);
	}
	free(clean);
	if (r < 0)
		free(delay.ns);
	else
		*ret_delay = delay;
	return r;
}

static int compare_different(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *a,
                             const struct ow_reconciled_part *b, struct ow_estimate *estimate,
                             struct ow_reconciled_delay *ret_delay)
{
	uint32_t dirty;
	struct ow_centred fit;
	struct ow_bottomk_pairs pairs;
	struct ow_clean_bucket *clean = clean_buckets(plan, a, b, &dirty);
	if (!clean)
		return -ENOMEM;
	ow_centred_fit(clean, plan->buckets, 1, &fit);
	free(clean);
	int r = ow_bottomk_pair(a->sample, b->sample, &pairs);
	if (r < 0)
		return r;
	/* Differences are distributed randomly over the buckets: exp(-d p / B) of them stay clean. */
	double rest = -log1p(-(double)dirty / plan->buckets) * plan->buckets / share_of(plan);
	double common = fmax(((double)a->packets + (double)b->packets - rest) / 2, fit.samples + (dirty > 0));
	ow_centred_mean(&fit, common, false, &estimate->mean_ns);
	ow_centred_stddev(&fit, common, false, &estimate->stddev_ns);
	estimate->useful = ow_packets_of(fit.samples);
	/* The mean is not exact here, so the quantiles cannot be calibrated to it. */
	ow_quantiles(pairs.delay_ns, pairs.count, ow_packets_of(fmax((double)pairs.count + !pairs.all, common)), NAN,
	             estimate->quantile_ns);
	*ret_delay = (struct ow_reconciled_delay){pairs.delay_ns, pairs.count};
	return 0;
}

int ow_reconciled_compare(const struct ow_reconciled_plan *plan, const struct ow_reconciled_part *a,
                          const struct ow_reconciled_part *b, uint64_t common, struct ow_estimate *estimate,
                          struct ow_reconciled_delay *ret_delay)
{
	struct ow_reconciled_delay delay;
	if (a->buckets != plan->buckets || b->buckets != plan->buckets)
		return -EBADMSG;
	if (!plan->complete && (!a->sample || !b->sample || ow_synopsis_comparable(a->sample, b->sample, NULL) < 0))
		return -EBADMSG;
	int r = plan->complete ? compare_complete(plan, a, b, common, estimate, &delay)
	                       : compare_different(plan, a, b, estimate, &delay);
	if (r < 0)
		return r;
	if (ret_delay)
		*ret_delay = delay;
	else
		free(delay.ns);
	return 0;
}

int ow_reconciled_delays(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs,
                         const struct ow_reconciled_plan *plan, uint64_t common, uint64_t seed,
                         struct ow_estimate *estimate)
{
	struct ow_reconciled_part mine = {0}, theirs = {0};
	int r = ow_reconciled_take(a, as, seed, plan, &mine);
	if (r == 0)
		r = ow_reconciled_take(b, bs, seed, plan, &theirs);
	if (r == 0)
		r = ow_reconciled_compare(plan, &mine, &theirs, common, estimate, NULL);
	if (r == 0)
		estimate->more_bytes += part_bytes(plan, &theirs);
	ow_reconciled_part_done(&mine);
	ow_reconciled_part_done(&theirs);
	return r;
}
