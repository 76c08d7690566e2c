/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte ranges: TCP data is matched by overlapping ranges of sequence numbers, so that a superframe matches its
 * segments, and superframes of both points match in their common parts.
 */
#include "reconcile/matching.h"

#include "base/time.h"
#include <errno.h>
#include <stdlib.h>

#define WAIT_LONG      64u /* waiting parts of one stream from which on those too late to match are given up early */
#define HOPELESS_NS    INT64_C(50000000) /* early: after 50 ms, .. */
#define HOPELESS_TIMES 4                 /* .. and this many times the longest plausible delay */
/* gaps that one superframe may still have after it was matched with what waits for it */
#define PIECES_MAX 128u

static struct ow_record piece(const struct ow_record *record, struct ow_byte_range r)
{
	struct ow_record p = *record;
	p.bytes = p.bytes - p.len + r.len; /* the headers and this much data */
	p.seq = r.seq;
	p.len = r.len;
	return p;
}

/* Removes `cut` from *r; what remains after it is *ret_after (len 0 if nothing). */
static void subtract(struct ow_byte_range *r, struct ow_byte_range cut, struct ow_byte_range *ret_after)
{
	uint32_t front = cut.seq - r->seq;
	*ret_after = (struct ow_byte_range){cut.seq + cut.len, r->len - front - cut.len};
	r->len = front;
}

/* Removes matched bytes from a waiting entry; the part after them continues to wait as its own entry. */
static int shorten(struct ow_matcher *m, uint32_t i, struct ow_byte_range cut)
{
	struct ow_waiting *w = &m->waiting;
	struct ow_record whole = w->entry[i].record;
	struct ow_byte_range rest = {whole.seq, whole.len}, after;
	subtract(&rest, cut, &after);
	if (!rest.len && !after.len) {
		ow_matching_take(m, i);
		return 0;
	}
	uint32_t rear = OW_NOBODY;
	if (rest.len && after.len) {
		rear = ow_waiting_new(w);
		if (rear == OW_NOBODY)
			return -ENOMEM;
	}
	ow_byte_range_index_remove(w, i);
	w->entry[i].record = piece(&whole, rest.len ? rest : after);
	ow_byte_range_index_add(w, i);
	if (rear != OW_NOBODY) {
		w->entry[rear] = w->entry[i];
		w->entry[rear].record = piece(&whole, after);
		ow_waiting_enqueue_rear(w, rear, i);
		/* Next to its other half in the waiting list: same age. */
		ow_waiting_start_behind(w, rear, i);
	}
	return 0;
}

/* Gives up the oldest parts of the other side that are far too late for any that may still come; keeps the last one. */
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

/* A range of a record that has not been matched, and the longest waiting one that has some of it. */
struct rest {
	struct ow_byte_range range;
	uint32_t meets; /* or OW_NOBODY */
};

/* usual: the times when the possible ones were sent, or arrived; NULL if no byte waits twice. */
static struct rest new_rest(struct ow_matcher *m, uint32_t root, struct ow_byte_range range,
                            const struct ow_time_span *usual)
{
	uint32_t meets = usual ? ow_byte_range_index_oldest_within(&m->waiting, root, range, usual) : OW_NOBODY;
	return (struct rest){range, meets != OW_NOBODY ? meets : ow_byte_range_index_oldest(&m->waiting, root, range)};
}

/* The rest whose counterpart waited longest, or NULL if none has one. */
static struct rest *next_to_meet(const struct ow_matcher *m, struct rest *rest, int rests)
{
	struct rest *next = NULL;
	for (struct rest *r = rest; r < rest + rests; r++) {
		if (r->meets != OW_NOBODY && (!next || ow_byte_range_index_older(&m->waiting, r->meets, next->meets)))
			next = r;
	}
	return next;
}

/* Whether the side that waits is the sender of this pair, and the other one the receiver. */
static bool waits_sent(struct ow_matcher *m, enum ow_side side, const struct ow_pair *pair)
{
	return (ow_matching_way(m, pair) == OW_A_TO_B) == (side == OW_SIDE_B);
}

/* The times of waiting pieces that give this record a usual delay. */
static struct ow_time_span usual_times(struct ow_matcher *m, enum ow_side side, const struct ow_record *record,
                                       uint32_t q)
{
	struct ow_pair pair = ow_matching_pair(side, record, &m->waiting.entry[m->waiting.queue[q].head[!side]].record);
	const struct ow_plausible *p = &m->plausible[ow_matching_way(m, &pair)];
	if (!p->known)
		return (struct ow_time_span){INT64_MIN, INT64_MAX};
	if (waits_sent(m, side, &pair))
		return (struct ow_time_span){ow_time_later(record->time_ns, -p->high_ns),
		                             ow_time_later(record->time_ns, -p->low_ns)};
	return (struct ow_time_span){ow_time_later(record->time_ns, p->low_ns),
	                             ow_time_later(record->time_ns, p->high_ns)};
}

/*
 * The bytes wait more than once, possibly sent again. One is matched, but another one may have arrived: the delay may
 * be that of any of them.
 */
static void bound_piece(struct ow_matcher *m, enum ow_side side, uint32_t q, uint32_t i, struct ow_byte_range common,
                        struct ow_pair *pair)
{
	const struct ow_waiting_queue *queue = &m->waiting.queue[q];
	struct ow_time_span span;
	if (!ow_byte_range_index_span(&m->waiting, queue->root[!side], common, &span))
		span = (struct ow_time_span){m->waiting.entry[queue->head[!side]].record.time_ns,
		                             m->waiting.entry[queue->tail[!side]].record.time_ns};
	int64_t time_ns = m->waiting.entry[i].record.time_ns;
	int64_t earlier_ns = time_ns - span.from_ns, later_ns = span.to_ns - time_ns;
	/* An earlier sending time is a longer delay; an earlier arrival time a shorter one. */
	bool sent = waits_sent(m, side, pair);
	pair->less_ns = sent ? later_ns : earlier_ns;
	pair->more_ns = sent ? earlier_ns : later_ns;
}

/* Reports the pair of the common bytes of a record and of waiter i. */
static void tell_piece(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q, uint32_t i,
                       struct ow_byte_range common, bool crowded)
{
	struct ow_record mine = piece(record, common), theirs = piece(&m->waiting.entry[i].record, common);
	struct ow_pair pair = ow_matching_pair(side, &mine, &theirs);
	if (crowded)
		bound_piece(m, side, q, i, common, &pair);
	bool certain = pair.less_ns == 0 && pair.more_ns == 0;
	pair.alike = !certain;
	ow_recent_add(m->recent, ow_matching_copy_id(&mine), mine.time_ns);
	if (certain)
		ow_matching_learn(m, &pair, ow_matching_delay(&pair) >= 0 ? OW_A_TO_B : OW_B_TO_A);
	ow_matching_calls(m)->matched(m->calls.arg, &pair, certain ? OW_CERTAIN : OW_UNCERTAIN);
}

/*
 * Matches the record with what waits, oldest first; leaves the remaining ranges in rest[]. Returns their number, or
 * -ENOMEM.
 */
static int match_ranges(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q,
                        struct rest rest[PIECES_MAX])
{
	struct ow_byte_range all = {record->seq, record->len};
	const uint32_t *root = &m->waiting.queue[q].root[!side];
	bool crowded = ow_byte_range_index_crowded(&m->waiting, *root, all);
	const struct ow_time_span times = crowded ? usual_times(m, side, record, q) : (struct ow_time_span){0};
	const struct ow_time_span *usual = crowded ? &times : NULL;
	/* Without TCP timestamps a connection is one stream: lost data must not match what is sent again later. */
	if (m->waiting.queue[q].waits[!side] > WAIT_LONG)
		drop_hopeless(m, side, record, q);
	int rests = 1;
	rest[0] = new_rest(m, *root, all, usual);
	for (struct rest *r; rests < (int)PIECES_MAX && (r = next_to_meet(m, rest, rests)) != NULL;) {
		uint32_t i = r->meets;
		struct ow_byte_range other = {m->waiting.entry[i].record.seq, m->waiting.entry[i].record.len};
		struct ow_byte_range common = {0}, after;
		ow_range_overlap(r->range, other, &common); /* they do overlap: that is how it was found */
		tell_piece(m, side, record, q, i, common, crowded);
		subtract(&r->range, common, &after);
		if (!r->range.len)
			r->range = after; /* in its place: segments in order need no room */
		else if (after.len)
			rest[rests++] = (struct rest){after, i};
		if (shorten(m, i, common) < 0)
			return -ENOMEM;
		for (r = rest; r < rest + rests; r++) {
			if (r->meets == i)
				*r = new_rest(m, *root, r->range, usual);
		}
	}
	return rests;
}

int ow_matching_push_segment(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct rest rest[PIECES_MAX] = {{.range = {record->seq, record->len}}};
	int rests = 1, r = 0;
	if (q != OW_NOBODY) {
		rests = match_ranges(m, side, record, q, rest);
		if (rests < 0)
			return rests;
	}
	for (int i = 0; i < rests && r == 0; i++) {
		if (!rest[i].range.len)
			continue;
		struct ow_record part = piece(record, rest[i].range);
		r = ow_matching_wait(m, side, &part, q);
		q = ow_waiting_find(&m->waiting, record->id);
	}
	if (q != OW_NOBODY)
		ow_matching_leave(m, q);
	return r;
}
