/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "estimate/buckets.h"
#include "estimate/delay_histogram.h"
#include "estimate/estimate.h"

/*
 * The result of one interval of one lane: the packets of one class in one direction of one segment. Always:
 *
 *     sent = matched + late + lost + pending        received = matched + late_received + extra
 *
 * An interval is reported twice: soon after its end, with packets that may still arrive in `pending`; and when the
 * waiting time is over, final, with pending = 0 if it is measured (undecided packets have a cause). late: arrived, but
 * in a later interval of the receiver; late_received: arrived here, sent in an earlier interval, or, if that one is
 * unknown, possibly so. duplicated <= extra, ambiguous <= matched + late.
 *
 * Delays are those of the packets sent in the interval: of matched packets, and in a final result also of late ones. If
 * the difference of the clocks is not known (method `none`), there are none: they would contain it.
 */
#define OW_RESULT_NAME  64 /* bytes of names of points, segments and classes, with the terminating zero */
#define OW_RESULT_CAUSE 160

enum ow_result_status {
	OW_RESULT_MEASURED, /* every packet that both points should have seen was compared */
	OW_RESULT_PARTIAL,  /* only a part was compared; `cause` says which or why */
	OW_RESULT_UNKNOWN,  /* no numbers; `cause` says why */
};

/* "measured", "partial", "unknown". */
extern const char *const ow_result_status_name[];
/* -1 if it is not a status, or NULL. */
int ow_result_status_of(const char *name);

/* The cost of a result. Durations are the stages of figure 12 of the RDA paper. */
struct ow_result_cost {
	uint64_t bytes; /* of messages, both ways, headers included */
	uint32_t round_trips;
	/* from the request (or the end of the interval) until the synopsis has arrived, without waiting */
	int64_t transmit_ns;
	int64_t decode_ns;  /* decoding of the differences */
	int64_t missing_ns; /* request and arrival of times that only the other point has */
	int64_t erase_ns;   /* removal of the differences */
	int64_t compute_ns; /* computing of the numbers */
	int64_t ready_ns;   /* from the end of the interval to this result, by this point's clock */
};

#define OW_RESULT_NOT_COUNTED UINT64_MAX

struct ow_interval_result {
	char segment[OW_RESULT_NAME], class_name[OW_RESULT_NAME];
	char from[OW_RESULT_NAME], to[OW_RESULT_NAME]; /* points */
	int64_t interval;                              /* its number */
	int64_t start_ns, length_ns;
	/* Of a minute, an hour or a day: the intervals in it, and which of them were not measured. Else 0. */
	uint64_t intervals, intervals_partial, intervals_unknown;
	uint64_t delay_packets; /* of such a sum: the packets that its mean stands for */
	enum ow_result_status status;
	char cause[OW_RESULT_CAUSE];
	bool final;
	bool waiting; /* unknown only for the time being: the other point has not answered yet */
	bool exact;   /* every packet was compared one by one: all delays are exact */
	bool active;  /* the packets were probes, not the network's traffic */

	uint64_t sent, received;
	uint64_t matched, late, late_received, lost, pending, extra;
	uint64_t duplicated, ambiguous;
	uint64_t without_clock; /* of matched and late: without a delay, see ow_result_clock_known */
	/* With scope `shared`: packets of flows that do not pass the other point. They are neither sent nor received. */
	uint64_t unshared_sent, unshared_received;
	uint64_t absent;           /* of unshared_sent: other flows between the same networks do pass */
	uint64_t lost_whole_flows; /* of lost: nothing that was sent later of the flow arrived either */
	uint64_t reordered;        /* OW_RESULT_NOT_COUNTED if the method does not see the order */
	uint64_t bytes;            /* of all IP packets sent */

	/*
	 * If the memory budget is exceeded, or on request, packets are sampled by id: the counts above are those of the
	 * sample.
	 */
	uint32_t sample_shift;                   /* one packet in 2^shift; 0 = all */
	uint64_t total_sent, total_received;     /* including those outside the sample */
	double coverage;                         /* share of the packets sent whose fate is known, 0..1 */
	uint64_t ring_drops_from, ring_drops_to; /* frames that the points' own rings lost in the interval */
	uint64_t
		missed; /* packets in the frames that the sending point's ring lost, see ow_result_packets_sent; only here */
	uint64_t unreadable; /* frames of IP packets that could not be identified (truncated) */

	uint64_t samples;                   /* number of delays in the numbers below */
	struct ow_value mean_ns, stddev_ns; /* population */
	struct ow_value min_ns, max_ns;     /* NONE unless exact; then over all packets */
	struct ow_value quantile_ns[OW_QUANTILES];
	struct ow_value loss_ratio; /* lost / (sent - pending); its interval is of all packets sent */
	/* In a final result: the delays of its packets, where single ones are known. It adds up (result/rollup.h). */
	struct ow_delay_histogram delays;
	/*
	 * In a final result, at the point that has single delays (the sending one): its packets by delay. Otherwise all
	 * 0.
	 */
	uint64_t delay_bucket[OW_BUCKETS + 1];

	struct ow_clock_state clock_from, clock_to;
	char clock_method[16];           /* "trusted", "relative", "none"; "" = not looked at (point/segment_clock.h) */
	struct ow_value clock_offset_ns; /* what was added to the times of `to`, and bounds of what should have been */
	struct ow_value clock_drift_ppb; /* what the clock of `to` gains, where it was estimated */
	char clock_event[80];            /* a step or another route, seen by packets; "" = none in this interval */
	/* Delays in which no clock has a part: of both directions together, and above the least one. */
	struct ow_value round_trip_min_ns, round_trip_mean_ns, above_min_ns;
	char synopsis[80]; /* "fold 4 x 1024", "rda 2 x 200 as published", "exact" */
	struct ow_result_cost cost;
};

/*
 * The packets sent that coverage is a share of. Each frame that the sending point's ring lost counts as many packets as
 * other frames of the lane have; all of these frames count, because their lane is not known.
 */
double ow_result_packets_sent(const struct ow_interval_result *result);
/* Widens the share of loss of the decided packets to what it may be of all: the others may be lost, or none of them. */
void ow_result_loss_undecided(struct ow_value *loss, double decided, double sent);
/* Widens it by so many packets of those sent that may be lost although they are not counted as lost, or the reverse. */
void ow_result_loss_doubted(struct ow_value *loss, double packets, double sent);
/* A result of the interval without numbers: no counts, unknown delays and clocks. */
void ow_result_blank(int64_t interval, int64_t start_ns, int64_t length_ns, struct ow_interval_result *ret_result);
/* The same for the delays and the order of packets only. */
void ow_result_clear_delays(struct ow_interval_result *result);
/* Adds a cause, and makes a measured result partial. */
void ow_result_add_cause(struct ow_interval_result *result, const char *text);
/* The same if delays may be longer by a multiple of this (reconcile/running_copies.h). */
void ow_result_delays_longer(struct ow_interval_result *result, int64_t gap_ns);
/* Copies the names of the lane: segment, class, from, to. */
void ow_result_name_like(struct ow_interval_result *result, const struct ow_interval_result *names);
/* Whether two results are of one lane: all four names are the same. */
bool ow_result_is_lane(const struct ow_interval_result *a, const struct ow_interval_result *b);
