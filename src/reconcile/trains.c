/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of trains: TCP data is matched by overlapping ranges of sequence numbers, so that a superframe meets its
 * segments, and superframes of both points meet in their common pieces.
 */
#include "reconcile/matching.h"

#include <errno.h>
#include <stdlib.h>

#define WALK_LONG      64u /* waiting pieces of one train from which on those too late to match are given up early */
#define HOPELESS_NS    INT64_C(50000000) /* early: after 50 ms, .. */
#define HOPELESS_TIMES 4                 /* .. and so many times the longest plausible delay */
#define PIECES_MAX     128u              /* gaps that one superframe may still have when it has met what waits for it */

struct range {
	uint32_t seq, len;
};

/* The common bytes of two ranges of sequence numbers (mod 2^32); false if there are none. */
static bool overlap(struct range a, struct range b, struct range *ret)
{
	int32_t shift = (int32_t)(b.seq - a.seq);
	int64_t from = shift > 0 ? shift : 0;
	int64_t to = (int64_t)shift + b.len < a.len ? (int64_t)shift + b.len : a.len;
	if (from >= to)
		return false;
	*ret = (struct range){a.seq + (uint32_t)from, (uint32_t)(to - from)};
	return true;
}

static struct ow_record piece(const struct ow_record *record, struct range r)
{
	struct ow_record p = *record;
	p.bytes = p.bytes - p.len + r.len; /* the headers and this much data */
	p.seq = r.seq;
	p.len = r.len;
	return p;
}

/* Cuts `cut` out of *r; what remains behind it is *ret_after (len 0 if nothing). */
static void subtract(struct range *r, struct range cut, struct range *ret_after)
{
	uint32_t front = cut.seq - r->seq;
	*ret_after = (struct range){cut.seq + cut.len, r->len - front - cut.len};
	r->len = front;
}

/* Removes matched bytes from a waiting entry; the part behind them goes on waiting as an entry of its own. */
static int shorten(struct ow_matcher *m, uint32_t i, uint32_t before, struct range cut)
{
	struct range rest = {m->waiting.entry[i].record.seq, m->waiting.entry[i].record.len}, after;
	subtract(&rest, cut, &after);
	if (!rest.len && !after.len) {
		ow_matching_take(m, i, before);
		return 0;
	}
	struct ow_record whole = m->waiting.entry[i].record;
	if (!rest.len || !after.len) {
		m->waiting.entry[i].record = piece(&whole, rest.len ? rest : after);
		return 0;
	}
	uint32_t j = ow_waiting_new(&m->waiting);
	if (j == OW_NOBODY)
		return -ENOMEM;
	m->waiting.entry[i].record = piece(&whole, rest);
	m->waiting.entry[j] = m->waiting.entry[i];
	m->waiting.entry[j].record = piece(&whole, after);
	m->waiting.entry[i].next = j;
	uint32_t *tail = &m->waiting.queue[m->waiting.entry[i].queue].tail[m->waiting.entry[i].side];
	if (*tail == i)
		*tail = j;
	/* Beside its other half in the waiting list: same age. */
	ow_waiting_start_behind(&m->waiting, j, i);
	return 0;
}

/* Bytes of the record that wait on the other side, counted once for each time they wait there. */
static uint64_t waiting_bytes(const struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q,
                              unsigned *ret_walked)
{
	uint64_t bytes = 0;
	struct range all = {record->seq, record->len}, common;
	*ret_walked = 0;
	for (uint32_t i = m->waiting.queue[q].head[!side]; i != OW_NOBODY;
	     i = m->waiting.entry[i].next, (*ret_walked)++) {
		struct range other = {m->waiting.entry[i].record.seq, m->waiting.entry[i].record.len};
		if (overlap(all, other, &common))
			bytes += common.len;
	}
	return bytes;
}

/* Gives up the oldest pieces of the other side that are far too late for any that may still come; keeps the last one.
 */
static void drop_hopeless(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	for (uint32_t i = m->waiting.queue[q].head[!side], next; m->waiting.entry[i].next != OW_NOBODY; i = next) {
		struct ow_pair pair = ow_matching_pair(side, record, &m->waiting.entry[i].record);
		const struct ow_plausible *p = &m->plausible[ow_matching_delay(&pair) >= 0 ? OW_A_TO_B : OW_B_TO_A];
		int64_t age = llabs(ow_matching_delay(&pair));
		next = m->waiting.entry[i].next;
		if (!p->known || age < HOPELESS_NS || age / HOPELESS_TIMES < p->high_ns)
			return;
		ow_matching_give_up(m, i);
	}
}

/* Matches one range of the record with what waits; leaves what remains in rest[], returns how many, or -ENOMEM. */
static int match_ranges(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q,
                        struct range rest[PIECES_MAX])
{
	unsigned walked;
	enum ow_certainty certainty =
		waiting_bytes(m, side, record, q, &walked) > record->len ? OW_AMBIGUOUS : OW_CERTAIN;
	/* Without TCP timestamps a connection is one train: what was lost must not lengthen the walk for a whole
	 * window. */
	if (walked > WALK_LONG)
		drop_hopeless(m, side, record, q);
	int rests = 1;
	rest[0] = (struct range){record->seq, record->len};
	for (uint32_t i = m->waiting.queue[q].head[!side], before = OW_NOBODY, next; i != OW_NOBODY;
	     before = i, i = next) {
		next = m->waiting.entry[i].next;
		for (int r = 0; r < rests && rests < (int)PIECES_MAX; r++) {
			struct range other = {m->waiting.entry[i].record.seq, m->waiting.entry[i].record.len}, common,
				     after;
			if (!overlap(rest[r], other, &common))
				continue;
			struct ow_record mine = piece(record, common),
					 theirs = piece(&m->waiting.entry[i].record, common);
			struct ow_pair pair = ow_matching_pair(side, &mine, &theirs);
			pair.alike = certainty == OW_AMBIGUOUS;
			ow_recent_add(m->recent, ow_matching_copy_id(&mine), mine.time_ns);
			if (certainty == OW_CERTAIN)
				ow_matching_learn(m, &pair, ow_matching_delay(&pair) >= 0 ? OW_A_TO_B : OW_B_TO_A);
			ow_matching_calls(m)->matched(m->calls.arg, &pair, certainty);
			subtract(&rest[r], common, &after);
			if (!rest[r].len)
				rest[r] = after; /* in its place: segments in order take no room */
			else if (after.len)
				rest[rests++] = after;
			bool whole = common.len == other.len;
			if (shorten(m, i, before, common) < 0)
				return -ENOMEM;
			next = whole ? next : m->waiting.entry[i].next;
			if (whole) {
				i = before; /* gone: its predecessor stays the predecessor */
				break;
			}
		}
	}
	return rests;
}

int ow_matching_push_piece(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct range rest[PIECES_MAX] = {{record->seq, record->len}};
	int rests = 1, r = 0;
	if (q != OW_NOBODY) {
		rests = match_ranges(m, side, record, q, rest);
		if (rests < 0)
			return rests;
	}
	for (int i = 0; i < rests && r == 0; i++) {
		if (!rest[i].len)
			continue;
		struct ow_record part = piece(record, rest[i]);
		r = ow_matching_wait(m, side, &part, q);
		q = ow_waiting_find(&m->waiting, record->id);
	}
	if (q != OW_NOBODY)
		ow_matching_leave(m, q);
	return r;
}
