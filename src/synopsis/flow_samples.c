/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the packets of flows: flow_samples.h. */
#include "synopsis/flow_samples.h"

#include "base/array.h"
#include <errno.h>
#include <stdlib.h>

/* Packets in the log: 24 bytes each, and as many again while it is cleared out. */
#define PACKETS_MIN (1u << 14)
#define PACKETS_MAX (1u << 20)

void ow_flow_samples_init(struct ow_flow_samples *samples, uint64_t most)
{
	*samples = (struct ow_flow_samples){.most = most, .full = PACKETS_MIN};
}

void ow_flow_samples_done(struct ow_flow_samples *samples)
{
	free(samples->packet);
	free(samples->spare);
	free(samples->limit);
	free(samples->first);
	*samples = (struct ow_flow_samples){0};
}

void ow_flow_samples_reset(struct ow_flow_samples *samples, uint64_t most)
{
	samples->most = most;
	samples->count = samples->flows = 0;
	samples->full = PACKETS_MIN;
	samples->sorted = false;
}

int ow_flow_samples_flow(struct ow_flow_samples *samples, size_t flow)
{
	if (OW_GROW(samples->limit, samples->flow_room, flow + 1) < 0)
		return -ENOMEM;
	samples->limit[flow] = OW_FLOW_SAMPLE_RANKS;
	samples->flows = flow + 1;
	samples->sorted = false;
	return 0;
}

static void give_up(struct ow_flow_samples *samples)
{
	samples->most = 0;
	samples->count = 0;
	samples->sorted = false;
}

/* -- clearing out -------------------------------------------------------------------------------------------------- */

static int by_rank(const void *a, const void *b)
{
	const struct ow_flow_sampled *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static bool is_kept(const struct ow_flow_samples *samples, const struct ow_flow_sampled *packet)
{
	return packet->rank < samples->most && packet->rank < samples->limit[packet->flow];
}

/* Orders the packets by flow, without those beyond the limits: counts, places, packets into `spare`. */
static int by_flow(struct ow_flow_samples *samples)
{
	size_t spare_room = samples->spare ? samples->room : 0;
	if (OW_GROW(samples->first, samples->first_room, samples->flows + 2) < 0)
		return -ENOMEM;
	if (!samples->spare) {
		samples->spare = ow_grow(NULL, &spare_room, samples->room, sizeof *samples->spare);
		if (!samples->spare)
			return -ENOMEM;
	}
	uint32_t *first = samples->first;
	for (size_t f = 0; f < samples->flows + 2; f++)
		first[f] = 0;
	for (size_t i = 0; i < samples->count; i++)
		if (is_kept(samples, &samples->packet[i]))
			first[samples->packet[i].flow + 2]++;
	for (size_t f = 2; f < samples->flows + 2; f++)
		first[f] += first[f - 1];
	/* first[f + 1] is where the next packet of f goes; in the end, where those of f + 1 begin. */
	for (size_t i = 0; i < samples->count; i++)
		if (is_kept(samples, &samples->packet[i]))
			samples->spare[first[samples->packet[i].flow + 1]++] = samples->packet[i];
	struct ow_flow_sampled *old = samples->packet;
	samples->packet = samples->spare;
	samples->spare = old;
	samples->count = first[samples->flows];
	return 0;
}

/* Packets of a flow beyond the OW_FLOW_SAMPLE smallest ranks leave; those that stay are the first. Returns how many do. */
static size_t shorten(struct ow_flow_samples *samples, uint32_t flow, struct ow_flow_sampled *packet, size_t count)
{
	if (count <= OW_FLOW_SAMPLE)
		return count;
	qsort(packet, count, sizeof *packet, by_rank);
	samples->limit[flow] = packet[OW_FLOW_SAMPLE].rank;
	size_t kept = OW_FLOW_SAMPLE;
	while (kept && packet[kept - 1].rank >= samples->limit[flow])
		kept--;
	return kept;
}

static int clear_out(struct ow_flow_samples *samples)
{
	int r = by_flow(samples);
	size_t end = 0;
	for (uint32_t f = 0; r == 0 && f < samples->flows; f++) {
		struct ow_flow_sampled *packet = samples->packet + samples->first[f];
		size_t count = shorten(samples, f, packet, samples->first[f + 1] - samples->first[f]);
		samples->first[f] = (uint32_t)end;
		for (size_t i = 0; i < count; i++)
			samples->packet[end++] = packet[i];
	}
	if (r < 0)
		return r;
	samples->first[samples->flows] = (uint32_t)end;
	samples->count = end;
	return 0;
}

/* -- adding -------------------------------------------------------------------------------------------------------- */

static void make_room(struct ow_flow_samples *samples)
{
	int r = samples->count ? clear_out(samples) : 0;
	while (r == 0 && samples->count > PACKETS_MAX / 2) {
		samples->most /= 2;
		r = clear_out(samples);
	}
	size_t full = 2 * samples->count > PACKETS_MIN ? 2 * samples->count : PACKETS_MIN;
	if (r == 0 && full > samples->room) {
		free(samples->spare);
		samples->spare = NULL;
		r = OW_GROW(samples->packet, samples->room, full);
	}
	samples->full = full;
	if (r < 0)
		give_up(samples);
}

void ow_flow_samples_add(struct ow_flow_samples *samples, uint32_t flow, uint64_t rank, int64_t time_ns)
{
	if (rank >= samples->limit[flow])
		return;
	if (samples->count >= samples->full || !samples->packet)
		make_room(samples);
	if (rank >= samples->most || rank >= samples->limit[flow])
		return;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): make_room() has made room, or has set the limits to 0 */
	samples->packet[samples->count++] = (struct ow_flow_sampled){rank, time_ns, flow};
	samples->sorted = false;
}

void ow_flow_samples_put(struct ow_flow_samples *samples, uint32_t flow, const struct ow_flow_sample *sample)
{
	uint64_t limit = sample ? sample->limit : 0;
	samples->sorted = false;
	if (limit < samples->limit[flow])
		samples->limit[flow] = limit;
	for (size_t i = 0; sample && i < sample->count; i++)
		ow_flow_samples_add(samples, flow, sample->packet[i].rank, sample->packet[i].time_ns);
}

struct ow_flow_sample ow_flow_samples_get(struct ow_flow_samples *samples, uint32_t flow)
{
	if (!samples->sorted && samples->count) {
		if (clear_out(samples) < 0)
			give_up(samples);
		for (uint32_t f = 0; samples->count && f < samples->flows; f++)
			qsort(samples->packet + samples->first[f], samples->first[f + 1] - samples->first[f],
			      sizeof *samples->packet, by_rank);
		samples->sorted = true;
	}
	uint64_t limit = samples->limit[flow] < samples->most ? samples->limit[flow] : samples->most;
	if (!samples->count)
		return (struct ow_flow_sample){.limit = limit};
	uint32_t first = samples->first[flow];
	return (struct ow_flow_sample){samples->packet + first, samples->first[flow + 1] - first, limit};
}
