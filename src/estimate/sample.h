/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/* Estimates from the delays of packets that were chosen at random, with 95 % intervals. */

/*
 * Mean, standard deviation and quantiles. delay: `count` delays of different packets out of `common`; it is sorted in
 * place. If they are all (count = common), the values are exact. Sets `useful`.
 */
void ow_sample_delays(int64_t *delay, size_t count, double common, struct ow_estimate *estimate);

/*
 * Widens the intervals of mean and standard deviation of `count` packets, which are a random share (0..1) of the
 * packets in question. For the standard deviation an exponential distribution is assumed, because fourth moments are
 * not known.
 */
void ow_sample_widen(double count, double share, struct ow_value *mean_ns, struct ow_value *stddev_ns);

/*
 * Lost packets, if `lost` of `trials` packets chosen at random were lost: Wilson's interval, scaled to `sent`. Extra
 * packets follow from received = sent - lost + extra; received = NAN: unknown, then extra packets are not set.
 */
void ow_sample_loss(uint64_t lost, uint64_t trials, double sent, double received, struct ow_estimate *estimate);

/* Both ends of the 95 % interval of the q-quantile as places (from 0) in a sorted sample; -1 and count: not bounded. */
void ow_sample_ranks(size_t count, double q, double *ret_low, double *ret_high);
