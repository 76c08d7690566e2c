/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "estimate/estimate.h"

/*
 * A distribution of delays that adds up over intervals, lanes and points, in 200 bytes at most.
 *
 * Buckets are log-linear: 2^bits an octave (estimate/loglinear.h), over all of int64_t; below 1 bucket an octave, if
 * bits is negative. It begins with 2^10, and as long as the code of the buckets does not fit, pairs of them are joined:
 * bits is the largest number for which all fits. A bucket of fewer bits is a union of those of more bits, and the code
 * never becomes shorter when packets are added. So the sum of histograms does not depend on the order, nor on how they
 * are grouped: it is the histogram of all delays.
 *
 * Counts are exact. Where only some delays are known, each stands for several packets.
 */
#define OW_DELAY_HISTOGRAM_BITS 10
/* Bytes of the code of the buckets. */
#define OW_DELAY_HISTOGRAM_CODE 158

struct ow_delay_histogram {
	uint64_t packets;       /* that it stands for: the sum of the buckets. 0: it is empty */
	uint64_t samples;       /* delays that are known */
	uint64_t weight;        /* the most packets that one of these stands for; 1: all delays are known */
	int64_t min_ns, max_ns; /* of those that are known */
	int16_t bits;
	uint8_t used; /* bytes of the code; the others are 0 */
	uint8_t code[OW_DELAY_HISTOGRAM_CODE];
};

/* All these delays are known, and each stands for `weight` packets. */
void ow_delay_histogram_of(const struct ow_delays *delays, uint64_t weight, struct ow_delay_histogram *ret_histogram);
/* A uniform sample of `packets` delays, sorted ascending. */
void ow_delay_histogram_sample(const int64_t *delay_ns, size_t count, uint64_t packets,
                               struct ow_delay_histogram *ret_histogram);
void ow_delay_histogram_merge(struct ow_delay_histogram *histogram, const struct ow_delay_histogram *other);

/*
 * The smallest delay x with F(x) >= q, 0 < q <= 1, of the packets in the histogram and of `missing` others whose delays
 * are not in it. low and high are the ends of the bucket; they allow for the sample (95 %), and for any delays of the
 * missing packets. NONE: it is empty, or so much is missing that neither end is known.
 */
struct ow_value ow_delay_histogram_quantile(const struct ow_delay_histogram *histogram, double q, uint64_t missing);
/* The largest difference of a delay from the middle of its bucket, as a share of the delay. */
double ow_delay_histogram_error(const struct ow_delay_histogram *histogram);

/* Calls back for each bucket that is not empty, in order, with its least and its greatest delay. */
typedef void (*ow_delay_histogram_bucket)(void *arg, double low_ns, double high_ns, uint64_t packets);
void ow_delay_histogram_each(const struct ow_delay_histogram *histogram, ow_delay_histogram_bucket bucket, void *arg);

/*
 * As bytes, docs/store.md describes them. Histograms are equal if their bytes are. An empty one has none. The bytes may
 * be anybody's: -EPROTO if they are not a histogram.
 */
#define OW_DELAY_HISTOGRAM_BYTES (2 + 4 * 10 + OW_DELAY_HISTOGRAM_CODE)
size_t ow_delay_histogram_encode(const struct ow_delay_histogram *histogram,
                                 uint8_t ret_bytes[OW_DELAY_HISTOGRAM_BYTES]);
int ow_delay_histogram_decode(const uint8_t *bytes, size_t size, struct ow_delay_histogram *ret_histogram,
                              struct ow_error *err);

/* A sum that is being made, for many histograms: the same as merging them one by one. Zeros are an empty one. */
struct ow_delay_bucket {
	int32_t key; /* its distance from the bucket of 0, negative below it */
	uint64_t packets;
};
struct ow_delay_histogram_sum {
	uint64_t samples, weight;
	int64_t min_ns, max_ns;
	int bits;
	struct ow_delay_bucket *bucket;
	unsigned count, room;
};
/* Adds the bytes of one. -EPROTO: they are none, and the sum is as before. -ENOMEM: the sum is not complete. */
int ow_delay_histogram_sum_add(struct ow_delay_histogram_sum *sum, const uint8_t *bytes, size_t size);
int ow_delay_histogram_sum_merge(struct ow_delay_histogram_sum *sum, const struct ow_delay_histogram *other);
/* Room for as many buckets as there can be: adding does not fail then. */
int ow_delay_histogram_sum_reserve(struct ow_delay_histogram_sum *sum);
/* The sum is empty then. */
void ow_delay_histogram_sum_take(struct ow_delay_histogram_sum *sum, struct ow_delay_histogram *ret_histogram);
void ow_delay_histogram_sum_done(struct ow_delay_histogram_sum *sum);
