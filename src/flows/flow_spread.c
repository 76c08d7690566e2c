/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of a flow from the samples of two points: flow_spread.h. */
#include "flows/flow_spread.h"

#include "base/sort.h"
#include "estimate/quantiles.h"
#include <math.h>

/* Packets of the same rank from `at` on. */
static size_t copies(const struct ow_flow_sample *sample, size_t at)
{
	size_t end = at;
	while (end < sample->count && sample->packet[end].rank == sample->packet[at].rank)
		end++;
	return end - at;
}

/*
 * The delays of packets in both samples, of ranks below both limits. Packets of the same rank are copies of one: they are in
 * the order of their times, and if one point has fewer of them, it is not known which. At most OW_FLOW_SAMPLE.
 */
static size_t delays_of(const struct ow_flow_sample *from, const struct ow_flow_sample *to, int64_t *ret_delay)
{
	size_t i = 0, j = 0, count = 0;
	while (i < from->count && j < to->count) {
		uint64_t x = from->packet[i].rank, y = to->packet[j].rank;
		size_t n = copies(from, i), m = copies(to, j);
		for (size_t k = 0; x == y && n == m && k < n && count < OW_FLOW_SAMPLE; k++)
			ret_delay[count++] =
				(int64_t)((uint64_t)to->packet[j + k].time_ns - (uint64_t)from->packet[i + k].time_ns);
		i += x <= y ? n : 0;
		j += y <= x ? m : 0;
	}
	return count;
}

/*
 * Of the share `unknown` of the packets nothing is known: they may all be faster, or slower, than the sampled ones. So the
 * q-quantile of all is between two quantiles of those that were sampled.
 */
static struct ow_value quantile(const int64_t *delay, size_t count, uint64_t sampled, double unknown, double q)
{
	double low_q = (q - unknown) / (1 - unknown), high_q = q / (1 - unknown);
	uint64_t low = 0, high = count + 1, ignored;
	if (low_q > 0)
		ow_quantile_ranks(sampled, count, low_q, &low, &ignored);
	if (high_q < 1)
		ow_quantile_ranks(sampled, count, high_q, &ignored, &high);
	size_t place = (size_t)fmin(fmax(ceil(q * (double)count), 1), (double)count);
	struct ow_value value = {
		.status = OW_VALUE_ESTIMATED,
		.value = (double)delay[place - 1],
		.low = low >= 1 ? (double)delay[low - 1] : -INFINITY,
		.high = high <= count ? (double)delay[high - 1] : INFINITY,
	};
	/* The largest of a small sample says nothing about a quantile that may be far above it. */
	return isinf(value.high) ? ow_value_none(OW_REASON_SAMPLE_TOO_SMALL) : value;
}

bool ow_flow_spread(const struct ow_flow_sample *from, const struct ow_flow_sample *to, uint64_t sampled,
                    uint64_t packets, struct ow_flow_spread *ret_spread)
{
	int64_t delay[OW_FLOW_SAMPLE];
	size_t count = delays_of(from, to, delay);
	if (count < OW_FLOW_SPREAD_MIN || sampled < count || packets < sampled)
		return false;
	ow_sort_times(delay, count);
	*ret_spread = (struct ow_flow_spread){.samples = count, .least_ns = delay[0], .most_ns = delay[count - 1]};
	double unknown = 1 - (double)sampled / (double)packets;
	for (int q = 0; q < OW_QUANTILES; q++)
		ret_spread->quantile_ns[q] = quantile(delay, count, sampled, unknown, ow_quantile_level[q]);
	return true;
}
