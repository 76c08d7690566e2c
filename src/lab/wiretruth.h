/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/result.h>

/*
 * The truth about one direction of the lab's wire: the fate of every packet, by the interval in which it came in and
 * for the whole run. Intervals are at multiples of their length in Unix time, as those of the points.
 */
struct ow_wiretruth_report {
	int64_t start_ns, length_ns; /* of the run: first and last packet */
	struct ow_result result; /* of the packets that came in; received and extra count the copies of those packets */
	uint64_t bytes;          /* of their IP packets */
	uint64_t queue_full;     /* out of lost: no room in a queue */
};

struct ow_wiretruth;

/* start_ns: lies in the first interval. */
int ow_wiretruth_create(int64_t interval_ns, int64_t start_ns, struct ow_wiretruth **ret_truth);
void ow_wiretruth_free(struct ow_wiretruth *truth);

/*
 * A packet came in. *ret_interval is the interval in which it counts: its own, or the nearest open one. The caller
 * passes it back with the packet's fate. Returns 0 or -ENOMEM.
 */
int ow_wiretruth_in(struct ow_wiretruth *truth, int64_t in_ns, uint32_t bytes, int64_t *ret_interval);
/*
 * The fate of a packet; packets that go out must be in the order of time. number: its position among those that came
 * in.
 */
void ow_wiretruth_out(struct ow_wiretruth *truth, int64_t interval, uint64_t number, int64_t in_ns, int64_t out_ns);
void ow_wiretruth_lost(struct ow_wiretruth *truth, int64_t interval, bool queue_full);
/* A further copy of a packet that went out before. */
void ow_wiretruth_copy(struct ow_wiretruth *truth, int64_t interval);

/* The next interval that ended at passed_ns or before and has no packet with an open fate; false: none yet. */
bool ow_wiretruth_next(struct ow_wiretruth *truth, int64_t passed_ns, struct ow_wiretruth_report *ret_report);
void ow_wiretruth_total(struct ow_wiretruth *truth, struct ow_wiretruth_report *ret_report);
