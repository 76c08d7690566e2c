/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/loss_bins.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS_MAX (INT64_C(1) << 18)
#define AROUND   8

int ow_loss_bins_create(struct ow_loss_bins *bins, int64_t span_ns)
{
	int64_t count = 2 * AROUND;
	*bins = (struct ow_loss_bins){.shift = OW_LOSS_BIN_SHIFT};
	while (span_ns >> bins->shift > BINS_MAX - 2)
		bins->shift++;
	while (count < (span_ns >> bins->shift) + 2)
		count *= 2;
	/* Most of it is never used: it is not written to. */
	bins->bin = calloc((size_t)count, sizeof *bins->bin);
	if (!bins->bin)
		return -ENOMEM;
	bins->mask = count - 1;
	return 0;
}

void ow_loss_bins_done(struct ow_loss_bins *bins)
{
	free(bins->bin);
	*bins = (struct ow_loss_bins){0};
}

void ow_loss_bins_clear(struct ow_loss_bins *bins)
{
	memset(bins->bin, 0, (size_t)(bins->mask + 1) * sizeof *bins->bin);
}

static double share_lost(double lost, double sent, double q)
{
	return fmax((lost + 3 * q) / (sent + 3), q);
}

static double loss_in(const struct ow_loss_bins *bins, int64_t number, double q)
{
	const struct ow_loss_bin *here = &bins->bin[number & bins->mask];
	uint64_t sent = 0, lost = 0;
	for (int64_t i = number & ~(int64_t)(AROUND - 1), end = i + AROUND; i < end; i++) {
		const struct ow_loss_bin *bin = &bins->bin[i & bins->mask];
		sent += bin->turn == ow_loss_bin_turn(i) ? bin->sent : 0;
		lost += bin->turn == ow_loss_bin_turn(i) ? bin->lost : 0;
	}
	double around = share_lost((double)lost, (double)sent, q);
	if (here->turn != ow_loss_bin_turn(number))
		return around;
	return fmax(share_lost(here->lost, here->sent, around), q);
}

void ow_flow_loss_add(const struct ow_loss_bins *bins, struct ow_flow_loss *loss, int64_t at_ns, double q)
{
	double here = loss_in(bins, at_ns >> bins->shift, q);
	if (here > q)
		loss->log_like += (float)log(here);
	else
		loss->quiet++;
}
