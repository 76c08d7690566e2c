/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Losses come in bursts. What flows that arrive sent and lost in each bin of 8.4 ms tells how likely it is that all
 * packets of another flow are lost, too (reconcile/whole_flow.h):
 *
 *     product over the distinct bins of its packets of max(q, (lost + 3 q') / (sent + 3))
 *
 * q is the usual loss, q' that of the eight bins around, at least q. Packets of a flow in one bin share their fate.
 */
#define OW_LOSS_BIN_SHIFT 23 /* a bin has at least 2^23 ns */

struct ow_loss_bin {
	uint64_t turn; /* of the bin that has this place now, see ow_loss_bin_turn; 0 = none */
	uint32_t sent, lost;
};

/* The bins of the newest time span. */
struct ow_loss_bins {
	struct ow_loss_bin *bin;
	int64_t mask;
	unsigned shift;
};

/* Of the packets of a flow. Zeroed is empty. */
struct ow_flow_loss {
	uint32_t last;  /* bin + 1; its lower half is enough */
	float log_like; /* of bins with losses */
	uint32_t quiet; /* number of the others: q is not known before all is known */
};

/* 0 or -ENOMEM. A long span has fewer and wider bins. */
int ow_loss_bins_create(struct ow_loss_bins *bins, int64_t span_ns);
void ow_loss_bins_done(struct ow_loss_bins *bins);
void ow_loss_bins_clear(struct ow_loss_bins *bins);

/* In the order of numbers (time >> shift), and never 0: memory that is zeroed has no bin. */
static inline uint64_t ow_loss_bin_turn(int64_t number)
{
	return (uint64_t)number - (uint64_t)INT64_MIN;
}

/* The bin of this time, to be counted in; NULL if it is too old. */
static inline struct ow_loss_bin *ow_loss_bin_at(struct ow_loss_bins *bins, int64_t at_ns)
{
	int64_t number = at_ns >> bins->shift;
	uint64_t turn = ow_loss_bin_turn(number);
	struct ow_loss_bin *bin = &bins->bin[number & bins->mask];
	if (bin->turn == turn)
		return bin;
	if (bin->turn > turn)
		return NULL;
	*bin = (struct ow_loss_bin){.turn = turn};
	return bin;
}

/* Whether a packet of the flow is the first in its bin. They come in order of time. */
static inline bool ow_flow_loss_begins(const struct ow_loss_bins *bins, struct ow_flow_loss *loss, int64_t at_ns)
{
	uint32_t last = loss->last;
	loss->last = (uint32_t)(at_ns >> bins->shift) + 1;
	return loss->last != last;
}

/* To be called once a bin, when that is complete. */
void ow_flow_loss_add(const struct ow_loss_bins *bins, struct ow_flow_loss *loss, int64_t at_ns, double q);
