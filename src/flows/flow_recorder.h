/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epoch.h"

/*
 * Collects sightings of packets into epochs. An epoch ends at a multiple of the interval (of Unix time, so that the
 * epochs of all points end together), when the sum of its times has reached the threshold, or when the caller asks for
 * it. Epochs without packets are not passed on. The span of an epoch is its interval, without the time before the recording
 * began and after it ended: what passed then was not seen.
 */

/*
 * A flow keeps a counter of its own, of about 13 bytes, in an epoch of which it has one packet in this many: that adds at
 * most so many counters. Smaller flows of a short epoch need at least so many packets, which makes it 2 bits a packet.
 */
#define OW_FLOW_HEAVY_SHARE 1024
#define OW_FLOW_HEAVY_MIN   64

struct ow_flow_recorder_options {
	struct ow_epoch_info info; /* interval_ns: 0 = none */
	uint64_t threshold;        /* T, in units of time; 0 = none */
	size_t flows_max;          /* limit of the flow counts of an epoch; 0 = OW_FLOW_COUNTS_MAX */
	/*
	 * The recorder owns the epoch, unless the callee takes it and sets colate and counts to NULL. A negative errno,
	 * with err, is passed on to the caller.
	 */
	int (*on_epoch)(void *arg, struct ow_epoch *epoch, struct ow_error *err);
	void *arg;
};

struct ow_flow_recorder;

int ow_flow_recorder_create(const struct ow_flow_recorder_options *options, struct ow_flow_recorder **ret_recorder,
                            struct ow_error *err);
void ow_flow_recorder_free(struct ow_flow_recorder *recorder);

/* keys: as for ow_flow_counts_add. A packet that is late by less than an interval is recorded in the current epoch. */
int ow_flow_recorder_add(struct ow_flow_recorder *recorder, const struct ow_flow_sighting *sightings,
                         const struct ow_flow_key *const *keys, size_t count, struct ow_error *err);
/* All packets before this time have been added, and those from then on will be: passes on an interval that has ended. */
int ow_flow_recorder_pass(struct ow_flow_recorder *recorder, int64_t passed_ns, struct ow_error *err);
/* What happens to the current epoch, or to the next one if there is none: of ow_epoch_flaw. */
void ow_flow_recorder_flaw(struct ow_flow_recorder *recorder, uint8_t flaws);
/* Whether this time ends the current epoch. */
bool ow_flow_recorder_due(const struct ow_flow_recorder *recorder, int64_t time_ns);
/* The recording ends, or pauses: passes on the current epoch. */
int ow_flow_recorder_cut(struct ow_flow_recorder *recorder, struct ow_error *err);
