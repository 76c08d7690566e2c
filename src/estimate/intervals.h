/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * Results by interval of the sending time of packets (extra packets: arrival time). Intervals begin at multiples of
 * their length. An interval stays open until the waiting time is over; then its delays are summed up.
 */
struct ow_intervals;

#define OW_INTERVALS_MAX 100000u

/* Packets earlier than start_ns are counted in the first interval. */
int ow_intervals_create(int64_t length_ns, int64_t window_ns, int64_t start_ns, struct ow_intervals **ret_intervals);
/* Before the first packet: these percentiles are wanted of each. 0 or -ENOMEM. */
int ow_intervals_want(struct ow_intervals *intervals, const double *percent, unsigned count);
void ow_intervals_free(struct ow_intervals *intervals);

/* Each returns 0, -ENOMEM, or -ERANGE if there would be more than OW_INTERVALS_MAX intervals. */
int ow_intervals_match(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns, uint32_t packets,
                       bool reordered);
/* A delay, which may be shorter by less_ns or longer by more_ns. */
struct ow_interval_delay {
	int64_t delay_ns, less_ns, more_ns;
};
/* Adds the delay of packets that were counted as matched; NULL: unknown. */
int ow_intervals_delay(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns,
                       const struct ow_interval_delay *delay, uint32_t packets);
int ow_intervals_lost(struct ow_intervals *intervals, enum ow_direction direction, int64_t sent_ns, uint32_t packets);
int ow_intervals_extra(struct ow_intervals *intervals, enum ow_direction direction, int64_t received_ns,
                       uint32_t packets, bool duplicated);

/* Call when all packets were added. Returns the intervals from the first to the last that has packets. The object owns
 * them. */
int ow_intervals_finish(struct ow_intervals *intervals, const struct ow_interval **ret_interval, size_t *ret_count);
/* After that: the percentiles of each direction of each interval, one after the other; NULL if none are wanted. */
const struct ow_percentile *ow_intervals_percentiles(const struct ow_intervals *intervals);
