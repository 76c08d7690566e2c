/* SPDX-License-Identifier: Apache-2.0 */
#include "match/merge.h"

#define BLOCK          16   /* records of a side that are merged before the next ones are prefetched */
#define PROGRESS_EVERY 4096 /* blocks between two calls of progress */

/* The state of the merge. */
struct merge {
	struct ow_record_batches *const *batches; /* of each side */
	const struct ow_batch *next[OW_SIDES];    /* the batch after this one */
	const struct ow_record *end[OW_SIDES];    /* of the batch */
	struct ow_matcher_stream block[OW_SIDES]; /* the records to come, up to BLOCK of the batch */
};

/* The next batch. The one after it is taken as well, to prefetch what its first records need. */
static int next_batch(struct ow_matcher *matcher, struct merge *merge, enum ow_side side,
                      const struct ow_batch **ret_batch, struct ow_error *err)
{
	int r = 0;
	*ret_batch = merge->next[side];
	if (merge->next[side])
		r = ow_record_batches_next(merge->batches[side], &merge->next[side], err);
	const struct ow_batch *next = merge->next[side];
	if (r == 0 && next)
		ow_matcher_prefetch(matcher, next->record, next->count < BLOCK ? (size_t)next->count : BLOCK);
	return r;
}

static int refill(struct ow_match_pass *p, struct ow_matcher *matcher, struct merge *merge, enum ow_side side,
                  struct ow_error *err)
{
	static const int64_t never = INT64_MAX;
	const struct ow_batch *batch = NULL;
	/* An error is that of the batch after this one: without it, this one would be taken for the last. */
	int r = next_batch(matcher, merge, side, &batch, err);
	if (r < 0)
		return r;
	p->ended[side] = !batch;
	merge->block[side] = (struct ow_matcher_stream){.order_ns = &never};
	merge->end[side] = NULL;
	if (!batch) {
		int64_t last_ns = p->records[side] ? ow_record_batches_last_ns(merge->batches[side]) : INT64_MIN;
		if (last_ns > p->last_ns[side])
			p->last_ns[side] = last_ns;
		return 0;
	}
	merge->block[side] = (struct ow_matcher_stream){batch->record, batch->record, batch->order_ns};
	merge->end[side] = batch->record + batch->count;
	if (!p->records[side]) {
		int64_t first_ns = batch->record[0].time_ns;
		p->first_ns[side] = batch->first_ns < first_ns ? batch->first_ns : first_ns;
		ow_matcher_start(matcher, side, p->first_ns[side]);
	}
	if (!p->records[side] || batch->last_ns > p->last_ns[side])
		p->last_ns[side] = batch->last_ns;
	for (int i = 0; i < batch->agains; i++)
		ow_copies_aside_add(p->aside[side], &batch->again[i]);
	p->records[side] += (uint64_t)batch->count;
	p->position[side] = batch->position;
	for (int i = 0; i < batch->count && p->plan.identity.segments; i++) {
		if (batch->record[i].len)
			r = ow_tcp_segments_note(&p->pieces, side, &batch->record[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The next block of records: their data was prefetched one block ago; that of the next block is prefetched now. */
static void next_block(struct ow_matcher *matcher, struct merge *merge, enum ow_side side)
{
	const struct ow_record *r = merge->block[side].next, *batch_end = merge->end[side];
	const struct ow_record *end = batch_end - r > BLOCK ? r + BLOCK : batch_end;
	const struct ow_record *after = batch_end - end > BLOCK ? end + BLOCK : batch_end;
	merge->block[side].end = end;
	ow_matcher_prefetch_waiters(matcher, r, (size_t)(end - r));
	ow_matcher_prefetch(matcher, end, (size_t)(after - end));
}

int ow_merge_run(struct ow_match_pass *p, struct ow_matcher *matcher, struct ow_record_batches *const batches[OW_SIDES],
                 struct ow_error *err)
{
	struct merge state = {.batches = batches}, *merge = &state;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		int r = ow_record_batches_next(batches[side], &merge->next[side], err);
		if (r < 0)
			return r;
	}
	for (unsigned blocks = 0; !p->failed; blocks++) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			int r = merge->block[side].next == merge->end[side] && !p->ended[side]
			                ? refill(p, matcher, merge, side, err)
			                : 0;
			if (r < 0)
				return r;
			if (merge->block[side].next == merge->block[side].end)
				next_block(matcher, merge, side);
		}
		if (p->progress && blocks % PROGRESS_EVERY == 0)
			p->progress(p->progress_arg);
		if (p->ended[OW_SIDE_A] && p->ended[OW_SIDE_B])
			break;
		int r = ow_matcher_merge(matcher, merge->block);
		if (r < 0)
			return r;
	}
	return p->failed;
}
