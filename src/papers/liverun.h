/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/interval_result.h"
#include "exchange/exchange.h"
#include <oneway/error.h>

/*
 * A live measurement as in section IX of the RDA paper, with synthetic packets: some TCP flows fill a gigabit link,
 * delays centre around 50 us while their standard deviation varies between 0.05 and 1 ms, and only one point sees some
 * of the packets. Sightings pass through the interval logs, exchanges, messages and the TLS session of two points, each
 * on its own thread; only the capture is missing. Intervals do not wait until their second is over: the clocks jump
 * from the end of one interval to the next.
 */
struct ow_liverun_truth {
	uint64_t sent, lost;       /* in the interval; lost: of these, never received */
	double mean_ns, stddev_ns; /* of all packets sent in the interval that arrived at any time */
	double load;               /* bit/s of TCP data */
};

struct ow_liverun_options {
	unsigned intervals;
	uint64_t seed;
	enum ow_method method;
	double scale; /* of the load; 1 = 940 to 942 Mbit/s */
	void (*on_progress)(void *arg, double done);
	void *arg;
};

/* Arrays of `intervals`. */
struct ow_liverun {
	struct ow_liverun_truth *truth;
	struct ow_interval_result *result; /* the final results, with the cost of the first ones */
	unsigned intervals;
};

/* -EDOM, with an error message, if a result is missing or packets are not accounted for. */
int ow_liverun(const struct ow_liverun_options *options, struct ow_liverun *ret_run, struct ow_error *err);
void ow_liverun_done(struct ow_liverun *run);
