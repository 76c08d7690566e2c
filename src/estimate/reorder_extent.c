/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/reorder_extent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_reorder_extent_init(struct ow_reorder_extent *e)
{
	*e = (struct ow_reorder_extent){0};
	e->mark = malloc(OW_REORDER_EXTENT_MAX * sizeof *e->mark);
	return e->mark && ow_delays_create(&e->extent) == 0 ? 0 : -ENOMEM;
}

void ow_reorder_extent_done(struct ow_reorder_extent *e)
{
	free(e->mark);
	ow_delays_free(e->extent);
	*e = (struct ow_reorder_extent){0};
}

static const struct ow_reorder_mark *mark_at(const struct ow_reorder_extent *e, uint64_t i)
{
	return &e->mark[i % OW_REORDER_EXTENT_MAX];
}

/* The first mark that was sent later than this packet: at least the last one was. */
static uint64_t first_later(const struct ow_reorder_extent *e, uint64_t number)
{
	uint64_t low = e->marks > OW_REORDER_EXTENT_MAX ? e->marks - OW_REORDER_EXTENT_MAX : 0, high = e->marks - 1;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (mark_at(e, middle)->number > number)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ow_reorder_extent_add(struct ow_reorder_extent *e, uint64_t number, uint32_t packets)
{
	uint64_t arrival = e->arrived;
	e->arrived += packets;
	if (!e->marks || number >= mark_at(e, e->marks - 1)->number) {
		e->mark[e->marks++ % OW_REORDER_EXTENT_MAX] = (struct ow_reorder_mark){number, arrival};
		return;
	}
	uint64_t i = first_later(e, number);
	e->reordered += packets;
	e->beyond += e->marks > OW_REORDER_EXTENT_MAX && i == e->marks - OW_REORDER_EXTENT_MAX ? packets : 0;
	ow_delays_add(e->extent, (int64_t)(arrival - mark_at(e, i)->arrival), packets);
}

void ow_reorder_extent_get(const struct ow_reorder_extent *e, struct ow_reordering *ret)
{
	*ret = (struct ow_reordering){.reordered = e->reordered, .arrived = e->arrived, .beyond = e->beyond};
	ow_count_spread_of(e->extent, &ret->extent);
}

void ow_count_spread_of(const struct ow_delays *counts, struct ow_count_spread *ret)
{
	struct ow_delay summary;
	ow_delays_summary(counts, &summary);
	*ret = (struct ow_count_spread){.samples = summary.samples};
	if (!summary.samples)
		return;
	ret->mean = summary.mean_ns;
	ret->min = (uint64_t)summary.min_ns;
	ret->max = (uint64_t)summary.max_ns;
	memcpy(ret->quantile, summary.quantile_ns, sizeof ret->quantile);
}
