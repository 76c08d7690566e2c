/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEWAY_RESULT_H
#define ONEWAY_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The quantiles of every result, in this order. 0.95 is for the jitter P95-P50 of owping. */
enum ow_quantile { OW_Q50, OW_Q90, OW_Q95, OW_Q99, OW_Q999, OW_QUANTILES };
extern const double ow_quantile_level[OW_QUANTILES];
extern const char *const ow_quantile_name[OW_QUANTILES]; /* "0.5", "0.9", ... as in JSON */

/* The statistics of the delay if every uncertain delay were the shortest, or the longest, that is plausible. */
struct ow_delay_bound {
	double mean_ns;
	int64_t min_ns, max_ns;
	double quantile_ns[OW_QUANTILES];
};

/* One-way delay (RFC 7679) of the packets that arrived. If `samples` is 0, the other members are not defined. */
struct ow_delay {
	uint64_t samples;                 /* packets whose delay is in the numbers below */
	double mean_ns;                   /* exact over the samples */
	double stddev_ns;                 /* population standard deviation, exact over the samples */
	int64_t min_ns;                   /* exact */
	int64_t max_ns;                   /* exact */
	double quantile_ns[OW_QUANTILES]; /* RFC 2330: smallest x with F(x) >= q; within 0.1 % */
	/*
	 * Samples that are estimates, because of identical packets. For every plausible assignment of these packets,
	 * mean, minimum, maximum and quantiles are between those of low and high. Both are defined if uncertain is not
	 * 0.
	 */
	uint64_t uncertain;
	struct ow_delay_bound low, high;
	int64_t period_ns; /* uncertain delays can only be wrong by multiples of this; 0 = by any amount */
};

/*
 * What happened to the packets of one direction. Always:
 *   sent = matched + lost,  received = matched + extra,  duplicated <= extra,  ambiguous <= matched.
 */
struct ow_result {
	uint64_t sent;     /* seen by the sending point, inside the time that both captures cover */
	uint64_t received; /* seen by the receiving point, in the same time */
	uint64_t matched;
	uint64_t lost;       /* sent, and not received within the waiting time */
	uint64_t extra;      /* received, but not in the sender's capture; includes duplicated */
	uint64_t duplicated; /* further copies of a matched packet (RFC 5560) */
	/*
	 * Matched, but identical packets make the delay uncertain: delay.uncertain of them are samples, with bounds;
	 * the others are not samples.
	 */
	uint64_t ambiguous;
	uint64_t reordered; /* arrived after a packet that was sent later (RFC 4737 type-P-reordered) */
	struct ow_delay delay;
	bool exact; /* every packet was compared; false for an estimate from a synopsis */
};

#ifdef __cplusplus
}
#endif

#endif
