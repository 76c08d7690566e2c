/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/recent_rows.h"

#include "base/array.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

void ow_recent_rows_done(struct ow_recent_rows *recent)
{
	free(recent->row);
	*recent = (struct ow_recent_rows){0};
}

/* What changes when results are added to a sum: its counts. */
static uint64_t digest_of(const struct ow_interval_result *r)
{
	const uint64_t counts[] = {r->intervals,
	                           r->intervals_partial,
	                           r->intervals_unknown,
	                           r->sent,
	                           r->received,
	                           r->matched,
	                           r->late,
	                           r->lost,
	                           r->pending,
	                           r->extra,
	                           r->unshared_sent,
	                           r->unshared_received,
	                           r->samples,
	                           r->delays.packets,
	                           (uint64_t)r->length_ns,
	                           (uint64_t)r->status};
	uint64_t digest = 0;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		digest = ow_mix64(digest + counts[i] + i);
	return digest;
}

/* Where the row is, or would be. */
static size_t place_of(const struct ow_recent_rows *recent, int64_t start_ns, int64_t lane)
{
	size_t low = 0, high = recent->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct ow_recent_row *row = &recent->row[middle];
		if (row->start_ns < start_ns || (row->start_ns == start_ns && row->lane < lane))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ow_recent_rows_note(struct ow_recent_rows *recent, int64_t lane, const struct ow_interval_result *result)
{
	struct ow_recent_row new = {result->start_ns, lane, digest_of(result)};
	size_t at = place_of(recent, new.start_ns, lane);
	struct ow_recent_row *row = recent->row + at;
	if (at < recent->count && row->start_ns == new.start_ns && row->lane == lane) {
		bool changed = row->digest != new.digest;
		*row = new;
		return changed;
	}
	/* Without memory a row is sent more often than necessary. */
	if (OW_GROW(recent->row, recent->room, recent->count + 1) < 0)
		return true;
	memmove(recent->row + at + 1, recent->row + at, (recent->count++ - at) * sizeof *recent->row);
	recent->row[at] = new;
	return true;
}

void ow_recent_rows_trim(struct ow_recent_rows *recent, int64_t before_ns)
{
	size_t gone = place_of(recent, before_ns, INT64_MIN);
	if (gone == 0)
		return;
	recent->count -= gone;
	memmove(recent->row, recent->row + gone, recent->count * sizeof *recent->row);
}
