/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/delay.h"
#include "sim/sim.h"
#include "sim/wire.h"

/*
 * Keeps the truth. A packet counts if the sending side's capture ran when it was sent, and the receiving side's capture
 * ran when it arrived or would have arrived. Its delay is the difference of the times in the two files, less the error
 * of B's clock.
 */
struct ow_account {
	struct ow_sim_truth truth;
	struct ow_delays *delays[OW_DIRECTIONS];
	bool stamped;                   /* both captures have timestamps, so there are delays */
	uint64_t latest[OW_DIRECTIONS]; /* highest number of a sent record that has arrived in an earlier record */
	uint64_t coming[OW_DIRECTIONS]; /* the same, this record included */
	uint64_t packets;               /* sent, whether they count or not */
};

int ow_account_init(struct ow_account *account, const struct ow_sim_options *options);
void ow_account_done(struct ow_account *account);

void ow_account_sent(struct ow_account *account, const struct ow_wire *wire);
/* arrival_covered: the receiving side's capture ran when the packet would have arrived. */
void ow_account_lost(struct ow_account *account, const struct ow_wire *wire, bool arrival_covered, bool dropped);
/* Begins a record of received packets; then one call follows for each packet in it. */
void ow_account_begin(struct ow_account *account, int direction);
void ow_account_received(struct ow_account *account, const struct ow_wire *wire, int64_t stamp_ns, bool covered);
/* A frame was written. */
void ow_account_record(struct ow_account *account, enum ow_side side, bool superframe);
void ow_account_finish(struct ow_account *account);
