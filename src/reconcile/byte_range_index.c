/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/byte_range_index.h"

#include "base/hash.h"
#include "reconcile/waiting.h"
#include <errno.h>
#include <stdlib.h>

#define WRAP        (INT64_C(1) << 32)
#define VISITS_MOST 256u /* nodes that a search among copies visits */

int ow_byte_range_index_room(struct ow_waiting *w, uint32_t entries)
{
	struct ow_byte_range_node *grown = realloc(w->node, (size_t)entries * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	w->node = grown;
	return 0;
}

static struct ow_byte_range range_of(const struct ow_waiting *w, uint32_t i)
{
	return (struct ow_byte_range){w->entry[i].record.seq, w->entry[i].record.len};
}

/* The order of the tree. */
static bool precedes(const struct ow_waiting *w, uint32_t i, uint32_t j)
{
	uint32_t a = w->entry[i].record.seq, b = w->entry[j].record.seq;
	return a != b ? a < b : i < j;
}

bool ow_byte_range_index_older(const struct ow_waiting *w, uint32_t i, uint32_t j)
{
	const struct ow_byte_range_node *a = &w->node[i], *b = &w->node[j];
	if (a->turn != b->turn)
		return a->turn < b->turn;
	return (int32_t)(w->entry[i].record.seq - w->entry[j].record.seq) < 0;
}

static void note_child(struct ow_waiting *w, uint32_t t, uint32_t child)
{
	if (child == OW_NOBODY)
		return;
	struct ow_byte_range_node *node = &w->node[t];
	if (w->node[child].reach > node->reach)
		node->reach = w->node[child].reach;
	if (ow_byte_range_index_older(w, w->node[child].oldest, node->oldest))
		node->oldest = w->node[child].oldest;
}

/* Updates t's data about its subtree, after its children changed. */
static void renew(struct ow_waiting *w, uint32_t t)
{
	struct ow_byte_range_node *node = &w->node[t];
	node->reach = (uint64_t)w->entry[t].record.seq + w->entry[t].record.len;
	node->oldest = t;
	note_child(w, t, node->left);
	note_child(w, t, node->right);
	w->looked++;
}

/* Splits the nodes below t into those that precede i, and the others. */
static void split(struct ow_waiting *w, uint32_t t, uint32_t i, uint32_t *ret_before, uint32_t *ret_behind)
{
	if (t == OW_NOBODY) {
		*ret_before = *ret_behind = OW_NOBODY;
		return;
	}
	uint32_t half;
	if (precedes(w, t, i)) {
		split(w, w->node[t].right, i, &half, ret_behind);
		w->node[t].right = half;
		*ret_before = t;
	} else {
		split(w, w->node[t].left, i, ret_before, &half);
		w->node[t].left = half;
		*ret_behind = t;
	}
	renew(w, t);
}

static uint32_t merge(struct ow_waiting *w, uint32_t before, uint32_t behind)
{
	if (before == OW_NOBODY || behind == OW_NOBODY)
		return before == OW_NOBODY ? behind : before;
	uint32_t top = before;
	if (w->node[before].rank >= w->node[behind].rank) {
		w->node[before].right = merge(w, w->node[before].right, behind);
	} else {
		w->node[behind].left = merge(w, before, w->node[behind].left);
		top = behind;
	}
	renew(w, top);
	return top;
}

static uint32_t add(struct ow_waiting *w, uint32_t t, uint32_t i)
{
	if (t == OW_NOBODY || w->node[i].rank > w->node[t].rank) {
		uint32_t before, behind;
		split(w, t, i, &before, &behind);
		w->node[i].left = before;
		w->node[i].right = behind;
		renew(w, i);
		return i;
	}
	if (precedes(w, i, t))
		w->node[t].left = add(w, w->node[t].left, i);
	else
		w->node[t].right = add(w, w->node[t].right, i);
	renew(w, t);
	return t;
}

static uint32_t take_out(struct ow_waiting *w, uint32_t t, uint32_t i)
{
	if (t == i)
		return merge(w, w->node[i].left, w->node[i].right);
	if (precedes(w, i, t))
		w->node[t].left = take_out(w, w->node[t].left, i);
	else
		w->node[t].right = take_out(w, w->node[t].right, i);
	renew(w, t);
	return t;
}

static uint32_t *root_of(const struct ow_waiting *w, uint32_t i)
{
	return &w->queue[w->entry[i].queue].root[w->entry[i].side];
}

void ow_byte_range_index_add(struct ow_waiting *w, uint32_t i)
{
	const struct ow_record *record = &w->entry[i].record;
	w->node[i].rank = (uint32_t)ow_mix64(record->id ^ ow_mix64((uint64_t)record->seq << 32 | i));
	uint32_t *root = root_of(w, i);
	*root = add(w, *root, i);
}

void ow_byte_range_index_remove(struct ow_waiting *w, uint32_t i)
{
	uint32_t *root = root_of(w, i);
	*root = take_out(w, *root, i);
}

/* A search: the range as bounds of unwrapped sequence numbers, at one of three turns around the circle. */
struct search {
	struct ow_waiting *waiting;
	struct ow_byte_range range;
	int64_t from, to;
	uint32_t best;
	uint64_t bytes;
	struct ow_time_span *span;
	const struct ow_time_span *within; /* only parts of this time, or NULL: all */
	unsigned visits;
};

static bool is_within(const struct search *s, uint32_t t)
{
	int64_t time_ns = s->waiting->entry[t].record.time_ns;
	return !s->within || (time_ns >= s->within->from_ns && time_ns <= s->within->to_ns);
}

/* The older half first: then the other one can usually be skipped. */
static void seek_oldest(struct search *s, uint32_t t)
{
	struct ow_waiting *w = s->waiting;
	if (t == OW_NOBODY || (int64_t)w->node[t].reach <= s->from ||
	    (s->best != OW_NOBODY && !ow_byte_range_index_older(w, w->node[t].oldest, s->best)) ||
	    (s->within && ++s->visits > VISITS_MOST))
		return;
	w->looked++;
	struct ow_byte_range common;
	if ((s->best == OW_NOBODY || ow_byte_range_index_older(w, t, s->best)) && is_within(s, t) &&
	    ow_range_overlap(s->range, range_of(w, t), &common))
		s->best = t;
	uint32_t left = w->node[t].left, right = w->entry[t].record.seq < s->to ? w->node[t].right : OW_NOBODY;
	bool right_first = left != OW_NOBODY && right != OW_NOBODY &&
	                   ow_byte_range_index_older(w, w->node[right].oldest, w->node[left].oldest);
	seek_oldest(s, right_first ? right : left);
	seek_oldest(s, right_first ? left : right);
}

static void sum_bytes(struct search *s, uint32_t t)
{
	struct ow_waiting *w = s->waiting;
	if (t == OW_NOBODY || (int64_t)w->node[t].reach <= s->from || s->bytes > s->range.len)
		return;
	w->looked++;
	int64_t seq = w->entry[t].record.seq, end = seq + w->entry[t].record.len;
	int64_t from = seq > s->from ? seq : s->from, to = end < s->to ? end : s->to;
	s->bytes += from < to ? (uint64_t)(to - from) : 0;
	sum_bytes(s, w->node[t].left);
	if (seq < s->to)
		sum_bytes(s, w->node[t].right);
}

static void widen_span(struct search *s, uint32_t t)
{
	struct ow_waiting *w = s->waiting;
	if (t == OW_NOBODY || (int64_t)w->node[t].reach <= s->from || ++s->visits > VISITS_MOST)
		return;
	struct ow_byte_range common;
	int64_t time_ns = w->entry[t].record.time_ns;
	if (ow_range_overlap(s->range, range_of(w, t), &common)) {
		s->span->from_ns = time_ns < s->span->from_ns ? time_ns : s->span->from_ns;
		s->span->to_ns = time_ns > s->span->to_ns ? time_ns : s->span->to_ns;
	}
	widen_span(s, w->node[t].left);
	if (w->entry[t].record.seq < s->to)
		widen_span(s, w->node[t].right);
}

/* If the range or a part wraps, they may overlap a turn further on or back. */
static void search_around(struct search *s, uint32_t root, void (*search)(struct search *s, uint32_t t))
{
	for (int turn = -1; turn <= 1; turn++) {
		s->from = (int64_t)s->range.seq + turn * WRAP;
		s->to = s->from + s->range.len;
		if (s->to > 0)
			search(s, root);
	}
}

uint32_t ow_byte_range_index_oldest(struct ow_waiting *w, uint32_t root, struct ow_byte_range range)
{
	struct search s = {.waiting = w, .range = range, .best = OW_NOBODY};
	if (range.len)
		search_around(&s, root, seek_oldest);
	return s.best;
}

uint32_t ow_byte_range_index_oldest_within(struct ow_waiting *w, uint32_t root, struct ow_byte_range range,
                                           const struct ow_time_span *within)
{
	struct search s = {.waiting = w, .range = range, .best = OW_NOBODY, .within = within};
	if (range.len)
		search_around(&s, root, seek_oldest);
	return s.best;
}

bool ow_byte_range_index_crowded(struct ow_waiting *w, uint32_t root, struct ow_byte_range range)
{
	struct search s = {.waiting = w, .range = range, .best = OW_NOBODY};
	search_around(&s, root, sum_bytes);
	return s.bytes > range.len;
}

bool ow_byte_range_index_span(struct ow_waiting *w, uint32_t root, struct ow_byte_range range,
                              struct ow_time_span *ret_span)
{
	*ret_span = (struct ow_time_span){INT64_MAX, INT64_MIN};
	struct search s = {.waiting = w, .range = range, .best = OW_NOBODY, .span = ret_span};
	search_around(&s, root, widen_span);
	return s.visits <= VISITS_MOST;
}
