/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PAPERS_LIVERUN_H
#define OW_PAPERS_LIVERUN_H

#include "result/interval_result.h"
#include "exchange/exchange.h"
#include <oneway/error.h>

/*
 * A live measurement as in section IX of the RDA paper, with made packets: some TCP flows fill a gigabit link, delays
 * centre around 50 us while their standard deviation wanders between 0.05 and 1 ms, and of some packets only one point
 * knows. Stamps go through the ledgers, exchanges, messages and the TLS session of two points, each on a thread of its
 * own; only the capture is left out. Intervals do not wait for their second to pass: clocks jump from the end of one to
 * the next.
 */
struct ow_liverun_truth {
	uint64_t sent, lost;       /* in the interval; of these never received */
	double mean_ns, stddev_ns; /* of all packets sent in the interval that arrived, whenever */
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
	struct ow_interval_result *result; /* the final ones; their cost is that of the first */
	unsigned intervals;
};

/* -EDOM, with a line that says what, if a result is missing or packets are not accounted for. */
int ow_liverun(const struct ow_liverun_options *options, struct ow_liverun *ret_run, struct ow_error *err);
void ow_liverun_done(struct ow_liverun *run);

#endif
