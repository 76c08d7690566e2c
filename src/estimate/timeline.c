/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time bins on an absolute grid: bin k covers [k w, (k+1) w), so that doubling w joins bins 2k and 2k+1 exactly, and
 * nothing depends on the order of the packets. The histogram of a bin covers only the range of its delays and grows
 * with it.
 */
#include "estimate/timeline.h"

#include "base/time.h"
#include "estimate/loglinear.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define BITS 8
/* Histograms grow to multiples of this, half an octave, so that they grow rarely. */
#define GROW 128
/* The initial width. Captures shorter than 512 us have fewer bins. */
#define WIDTH_MIN_NS 1000

struct bin {
	uint64_t sent, lost, samples;
	int64_t min, max;
	uint32_t *slot; /* slots [low, high) of the log-linear histogram; NULL without samples */
	int low, high;
};

struct ow_timeline {
	int64_t width;
	int64_t first, last; /* numbers of the bins in use */
	bool any;
	struct bin bin[OW_TIMELINE_BINS]; /* bin k has the index k modulo the size */
};

int ow_timeline_create(struct ow_timeline **ret_timeline)
{
	struct ow_timeline *timeline = calloc(1, sizeof *timeline);
	if (!timeline)
		return -ENOMEM;
	timeline->width = WIDTH_MIN_NS;
	*ret_timeline = timeline;
	return 0;
}

void ow_timeline_free(struct ow_timeline *timeline)
{
	for (int i = 0; timeline && i < OW_TIMELINE_BINS; i++)
		free(timeline->bin[i].slot);
	free(timeline);
}

/* A time beyond this (in the year 2116) is not a measurement; within it no sum below overflows. */
#define TIME_MAX_NS (INT64_C(1) << 62)

static int64_t limit(int64_t value, int64_t most)
{
	return value > most ? most : value < -most ? -most : value;
}

static struct bin *bin_at(struct ow_timeline *timeline, int64_t number)
{
	return &timeline->bin[(uint64_t)number % OW_TIMELINE_BINS];
}

/* Makes room for the slots first .. last. */
static int cover(struct bin *bin, int first, int last)
{
	if (bin->slot && first >= bin->low && last < bin->high)
		return 0;
	int low = first / GROW * GROW, high = (last / GROW + 1) * GROW;
	if (bin->slot) {
		low = bin->low < low ? bin->low : low;
		high = bin->high > high ? bin->high : high;
	}
	uint32_t *grown = calloc((size_t)(high - low), sizeof *grown);
	if (!grown)
		return -ENOMEM;
	if (bin->slot)
		memcpy(grown + (bin->low - low), bin->slot, (size_t)(bin->high - bin->low) * sizeof *grown);
	free(bin->slot);
	bin->slot = grown;
	bin->low = low;
	bin->high = high;
	return 0;
}

/* Adds `from` to `to`. On failure both are unchanged. */
static int join(struct bin *to, const struct bin *from)
{
	if (from->slot) {
		if (cover(to, from->low, from->high - 1) < 0)
			return -ENOMEM;
		for (int i = from->low; i < from->high; i++)
			to->slot[i - to->low] += from->slot[i - from->low];
		to->min = !to->samples || from->min < to->min ? from->min : to->min;
		to->max = !to->samples || from->max > to->max ? from->max : to->max;
		to->samples += from->samples;
	}
	to->sent += from->sent;
	to->lost += from->lost;
	return 0;
}

/* On failure nothing has changed. */
static int double_width(struct ow_timeline *timeline)
{
	struct bin joined[OW_TIMELINE_BINS] = {0};
	int r = 0;
	for (int64_t k = timeline->first; k <= timeline->last && r == 0; k++)
		r = join(&joined[(uint64_t)ow_floor_div(k, 2) % OW_TIMELINE_BINS], bin_at(timeline, k));
	struct bin *unused = r < 0 ? joined : timeline->bin;
	for (int i = 0; i < OW_TIMELINE_BINS; i++)
		free(unused[i].slot);
	if (r < 0)
		return r;
	memcpy(timeline->bin, joined, sizeof joined);
	timeline->width *= 2;
	timeline->first = ow_floor_div(timeline->first, 2);
	timeline->last = ow_floor_div(timeline->last, 2);
	return 0;
}

/* The bin for a time; extends the range to include it. NULL if out of memory. */
static struct bin *reach(struct ow_timeline *timeline, int64_t time_ns)
{
	time_ns = limit(time_ns, TIME_MAX_NS);
	int64_t number = ow_floor_div(time_ns, timeline->width);
	if (!timeline->any) {
		timeline->any = true;
		timeline->first = timeline->last = number;
	}
	while (number - timeline->first >= OW_TIMELINE_BINS || timeline->last - number >= OW_TIMELINE_BINS) {
		if (double_width(timeline) < 0)
			return NULL;
		number = ow_floor_div(time_ns, timeline->width);
	}
	timeline->first = number < timeline->first ? number : timeline->first;
	timeline->last = number > timeline->last ? number : timeline->last;
	return bin_at(timeline, number);
}

int ow_timeline_add(struct ow_timeline *timeline, int64_t time_ns, int64_t delay_ns, uint32_t packets)
{
	struct bin *bin = reach(timeline, time_ns);
	int slot = ow_loglinear_slot(delay_ns, BITS);
	if (!bin || cover(bin, slot, slot) < 0)
		return -ENOMEM;
	bin->slot[slot - bin->low] += packets;
	bin->min = !bin->samples || delay_ns < bin->min ? delay_ns : bin->min;
	bin->max = !bin->samples || delay_ns > bin->max ? delay_ns : bin->max;
	bin->samples += packets;
	bin->sent += packets;
	return 0;
}

static int add_counts(struct ow_timeline *timeline, int64_t time_ns, uint32_t sent, uint32_t lost)
{
	struct bin *bin = reach(timeline, time_ns);
	if (!bin)
		return -ENOMEM;
	bin->sent += sent;
	bin->lost += lost;
	return 0;
}

int ow_timeline_add_lost(struct ow_timeline *timeline, int64_t time_ns, uint32_t packets)
{
	return add_counts(timeline, time_ns, packets, packets);
}

int ow_timeline_add_unmeasured(struct ow_timeline *timeline, int64_t time_ns, uint32_t packets)
{
	return add_counts(timeline, time_ns, packets, 0);
}

static double quantile(const struct bin *bin, double q)
{
	uint64_t rank = (uint64_t)ceil(q * (double)bin->samples), below = 0;
	int slot = ow_loglinear_slot(bin->min, BITS), last = ow_loglinear_slot(bin->max, BITS);
	while (slot < last && below + bin->slot[slot - bin->low] < rank)
		below += bin->slot[slot++ - bin->low];
	return fmin(fmax(ow_loglinear_value(slot, BITS), (double)bin->min), (double)bin->max);
}

size_t ow_timeline_bins(const struct ow_timeline *timeline, struct ow_timeline_bin *ret_bin)
{
	size_t count = 0;
	for (int64_t k = timeline->first; timeline->any && k <= timeline->last; k++) {
		const struct bin *bin = &timeline->bin[(uint64_t)k % OW_TIMELINE_BINS];
		if (!bin->sent)
			continue;
		struct ow_timeline_bin *out = &ret_bin[count++];
		*out = (struct ow_timeline_bin){.start_ns = k * timeline->width,
		                                .end_ns = (k + 1) * timeline->width,
		                                .sent = bin->sent,
		                                .lost = bin->lost,
		                                .samples = bin->samples};
		if (!bin->samples)
			continue;
		out->min_ns = bin->min;
		out->max_ns = bin->max;
		out->median_ns = quantile(bin, 0.5);
		out->p99_ns = quantile(bin, 0.99);
	}
	return count;
}
