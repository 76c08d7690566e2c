/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates from two coordinated bottom-k samples. */
#include "estimate/bottomk_estimate.h"

#include "base/sort.h"
#include "estimate/quantiles.h"
#include "estimate/sample.h"
#include "synopsis/bottomk.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The largest rank up to which this sample holds every packet. */
static uint64_t horizon(const struct ow_synopsis *synopsis, const struct ow_bottomk_entry *entry, uint32_t count)
{
	uint32_t k = ((const struct ow_bottomk *)synopsis)->k;
	/* Copies of the largest rank may have been left out. */
	return count < k ? UINT64_MAX : entry[0].rank - (entry[0].rank > 0);
}

/* Number of entries with the same rank, from the end of the list. */
static uint32_t copies(const struct ow_bottomk_entry *entry, uint32_t count)
{
	uint32_t n = 1;
	while (n < count && entry[count - 1 - n].rank == entry[count - 1].rank)
		n++;
	return n;
}

/* Goes through both lists from the smallest rank, which is last. */
static void pair_up(const struct ow_bottomk_entry *a, uint32_t as, const struct ow_bottomk_entry *b, uint32_t bs,
                    uint64_t limit, struct ow_bottomk_pairs *pairs)
{
	while ((as && a[as - 1].rank <= limit) || (bs && b[bs - 1].rank <= limit)) {
		uint32_t x = 0, y = 0;
		if (as && (!bs || a[as - 1].rank <= b[bs - 1].rank))
			x = copies(a, as);
		if (bs && (!as || b[bs - 1].rank <= a[as - 1].rank))
			y = copies(b, bs);
		pairs->sent += x;
		pairs->lost += x > y ? x - y : 0;
		pairs->received += y;
		pairs->extra += y > x ? y - x : 0;
		for (uint32_t i = 1; i <= x && x == y; i++)
			pairs->delay_ns[pairs->count++] =
				(int64_t)((uint64_t)b[bs - i].time_ns - (uint64_t)a[as - i].time_ns);
		as -= x;
		bs -= y;
	}
}

int ow_bottomk_pair(const struct ow_synopsis *a, const struct ow_synopsis *b, struct ow_bottomk_pairs *ret_pairs)
{
	uint32_t as, bs;
	const struct ow_bottomk_entry *x = ow_bottomk_entries(a, &as), *y = ow_bottomk_entries(b, &bs);
	struct ow_bottomk_pairs pairs = {.delay_ns = malloc((as + (size_t)1) * sizeof *pairs.delay_ns)};
	if (!pairs.delay_ns)
		return -ENOMEM;
	uint64_t limit_a = horizon(a, x, as), limit_b = horizon(b, y, bs),
		 limit = limit_a < limit_b ? limit_a : limit_b;
	pairs.all = limit == UINT64_MAX;
	pair_up(x, as, y, bs, limit, &pairs);
	ow_sort_times(pairs.delay_ns, pairs.count);
	*ret_pairs = pairs;
	return 0;
}

void ow_bottomk_pairs_done(struct ow_bottomk_pairs *pairs)
{
	free(pairs->delay_ns);
	*pairs = (struct ow_bottomk_pairs){0};
}

/* The packets of a point. If its own sample contradicts the peer's count, the count is not used. */
static double seen(const struct ow_bottomk_pairs *pairs, uint64_t sampled, uint64_t packets)
{
	return (double)(pairs->all || packets < sampled ? sampled : packets);
}

/*
 * The points' packet counts give lost less extra packets, so one of the two gives the other. Estimate the rarer one,
 * because its number in the sample varies less. (Choosing by the sample instead would be biased.)
 */
static void losses(const struct ow_bottomk_pairs *pairs, double sent, double received, struct ow_estimate *estimate)
{
	if (!pairs->received || received >= sent) {
		ow_sample_loss(pairs->lost, pairs->sent, sent, received, estimate);
		return;
	}
	struct ow_estimate back;
	ow_sample_loss(pairs->extra, pairs->received, received, sent, &back);
	struct ow_value lost = back.extra;
	estimate->extra = back.lost;
	estimate->lost = lost;
	estimate->loss_ratio = (struct ow_value){lost.status, fmin(1, lost.value / sent), fmin(1, lost.low / sent),
	                                         fmin(1, lost.high / sent), OW_NO_REASON};
}

int ow_bottomk_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	struct ow_bottomk_pairs pairs;
	struct ow_estimate estimate;
	int r = ow_bottomk_pair(a->synopsis, b->synopsis, &pairs);
	if (r < 0)
		return r;
	ow_estimate_none(&estimate, OW_REASON_NO_COMMON_SAMPLE);
	double sent = seen(&pairs, pairs.sent, a->packets);
	losses(&pairs, sent, seen(&pairs, pairs.received, b->packets), &estimate);
	double common = pairs.all ? (double)pairs.count : fmax((double)pairs.count + 1, sent - estimate.lost.value);
	if (pairs.count)
		ow_sample_delays(pairs.delay_ns, pairs.count, common, &estimate);
	ow_quantiles(pairs.delay_ns, pairs.count, ow_packets_of(common), NAN, estimate.quantile_ns);
	estimate.complete = pairs.all;
	ow_bottomk_pairs_done(&pairs);
	*ret_estimate = estimate;
	return 0;
}
