/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/sim.h"

/*
 * FineComb's reordering model (tech report 2010, sections 3.1 and 5.1): at the boundaries of an interval, runs of
 * neighbouring packets arrive on the other side of the sync message. The boundary k is at start + k * interval at A,
 * and when its sync message arrives at B. Odd boundaries begin a measured interval (pre-start, post-start), even ones
 * end it (pre-end, post-end). No other packet crosses a boundary: arrivals are moved to their side of it.
 */
struct ow_drift;
int ow_drift_create(const struct ow_sim_options *options, struct ow_drift **ret_drift);
void ow_drift_free(struct ow_drift *drift);
/* The arrival time of the next packet, which is sent at time_ns and would arrive at arrival_ns without the model. */
int64_t ow_drift_move(struct ow_drift *drift, int64_t time_ns, int64_t arrival_ns, bool lost);
/* How many packets crossed, by type. */
void ow_drift_counts(const struct ow_drift *drift, uint64_t ret_counts[4]);
