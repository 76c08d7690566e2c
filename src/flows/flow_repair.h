/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epochs.h"
#include "flows/lost_packets.h"

/* One of the two recordings of a leg: its file, and the sum of the epochs that are compared. */
struct ow_repair_side {
	const struct ow_epochs *epochs;
	const struct ow_epoch *sum;
};

/*
 * Finds the packets that only one of two recordings has, in epochs that overlap [since_ns, until_ns): in the sum of all
 * epochs, or, if these differ in more packets than a table holds, epoch by epoch. Flow counts of at least one of them
 * are needed to name the flows. offset_ns corrects the clock of the second one. 0: nothing could be found because there
 * are no tables or no counts; 1; or -errno.
 */
int ow_flow_repair_find(const struct ow_repair_side side[2], int64_t since_ns, int64_t until_ns, int64_t offset_ns,
                        struct ow_lost_packets *packets, struct ow_error *err);
