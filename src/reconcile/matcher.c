/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming matcher: who waits, who meets, who has waited too long. Unique packets, nearly all there are, are dealt
 * with here; identical ones in identical.c, pieces of superframes in trains.c.
 */
#include "reconcile/matcher.h"

#include "reconcile/matching.h"

#include <errno.h>
#include <stdlib.h>

void ow_matching_give_up(struct ow_matcher *m, uint32_t i)
{
	struct ow_waiter *e = &m->waiting.entry[i];
	uint32_t q = e->queue, before = OW_NOBODY;
	for (uint32_t at = m->waiting.queue[q].head[e->side]; at != i; at = m->waiting.entry[at].next)
		before = at;
	ow_waiting_stop(&m->waiting, i);
	ow_waiting_dequeue(&m->waiting, i, before);
	m->waiting.queue[q].differs = true;
	bool copy = e->copy || (m->waiting.queue[q].met && !e->record.len);
	m->calls.unmatched(m->calls.arg, (enum ow_side)e->side, &e->record, copy);
	ow_waiting_release(&m->waiting, i);
	ow_matching_leave(m, q);
}

static void expire(struct ow_matcher *m, unsigned side, int64_t other_ns)
{
	while (m->waiting.oldest_ns[side] < other_ns &&
	       ow_matching_between(m->waiting.oldest_ns[side], other_ns) > (uint64_t)m->window_ns)
		ow_matching_give_up(m, m->waiting.oldest[side]);
}

int ow_matching_wait(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	bool copy = ow_recent_has(m->recent, ow_matching_copy_id(record), record->time_ns, m->window_ns);
	uint32_t i = ow_waiting_new(&m->waiting);
	if (i == OW_NOBODY)
		return -ENOMEM;
	if (q == OW_NOBODY)
		q = ow_waiting_new_queue(&m->waiting, record->id);
	else if (!record->len)
		m->waiting.queue[q].repeats = true;
	if (q == OW_NOBODY) {
		ow_waiting_release(&m->waiting, i);
		return -ENOMEM;
	}
	if (copy && !record->len)
		m->waiting.queue[q].repeats = true;
	struct ow_waiter *e = &m->waiting.entry[i];
	e->record = *record;
	e->side = (uint8_t)side;
	e->copy = copy;
	ow_waiting_enqueue(&m->waiting, q, i);
	ow_waiting_start(&m->waiting, i);
	return 0;
}

int ow_matcher_create(int64_t window_ns, const struct ow_matcher_calls *calls, struct ow_matcher **ret_matcher)
{
	struct ow_matcher *m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	m->calls = *calls;
	m->window_ns = window_ns;
	ow_plausible_init(&m->plausible[OW_A_TO_B]);
	ow_plausible_init(&m->plausible[OW_B_TO_A]);
	m->recent = ow_recent_create();
	if (ow_waiting_init(&m->waiting) < 0 || !m->recent) {
		ow_matcher_free(m);
		return -ENOMEM;
	}
	*ret_matcher = m;
	return 0;
}

void ow_matcher_free(struct ow_matcher *matcher)
{
	if (!matcher)
		return;
	ow_recent_free(matcher->recent);
	ow_waiting_done(&matcher->waiting);
	free(matcher->doubt);
	free(matcher);
}

void ow_matcher_expect(struct ow_matcher *matcher, enum ow_direction direction, int64_t low_ns, int64_t high_ns)
{
	while (!matcher->plausible[direction].known) {
		ow_plausible_add(&matcher->plausible[direction], low_ns);
		ow_plausible_add(&matcher->plausible[direction], high_ns);
	}
}

int ow_matcher_push(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, int64_t other_ns)
{
	expire(m, side, other_ns);
	expire(m, !side, record->time_ns);
	while (m->doubts && record->time_ns > m->doubt[m->doubt_first].time_ns &&
	       ow_matching_between(m->doubt[m->doubt_first].time_ns, record->time_ns) > (uint64_t)m->window_ns)
		ow_matching_dispel_oldest_doubt(m);
	uint32_t q = ow_waiting_find(&m->waiting, record->id);
	if (record->len)
		return ow_matching_push_piece(m, side, record, q);
	if (q == OW_NOBODY)
		return ow_matching_wait(m, side, record, q);
	uint32_t i = m->waiting.queue[q].head[!side];
	if (i == OW_NOBODY && m->waiting.queue[q].head[side] == OW_NOBODY)
		m->waiting.queue[q].differs = true; /* a doubtful pair, and here is another of its kind */
	if (m->waiting.queue[q].repeats || i == OW_NOBODY)
		return ow_matching_push_identical(m, side, record, q);
	/* The usual case: one packet, one counterpart. The sign of the delay mostly tells its direction; asking for
	 * that of its flow costs more. */
	struct ow_pair pair = ow_matching_pair(side, record, &m->waiting.entry[i].record);
	enum ow_direction way = ow_matching_delay(&pair) >= 0 ? OW_A_TO_B : OW_B_TO_A;
	if (!m->plausible[way].known)
		way = ow_matching_way(m, &pair);
	if (m->plausible[way].known && ow_matching_judge(m, &pair, way) != OW_FEASIBLE)
		return ow_matching_push_doubtful(m, &pair, q, ow_matching_way(m, &pair));
	ow_matching_learn(m, &pair, way);
	m->calls.matched(m->calls.arg, &pair, OW_CERTAIN);
	ow_matching_take(m, i, OW_NOBODY);
	ow_waiting_release_queue(&m->waiting, q);
	ow_recent_add(m->recent, record->id, record->time_ns);
	return 0;
}

void ow_matcher_prefetch(const struct ow_matcher *m, uint64_t id)
{
	__builtin_prefetch(&m->waiting.head[ow_waiting_bucket(&m->waiting, id)]);
	ow_recent_prefetch(m->recent, id);
}

void ow_matcher_prefetch_queue(const struct ow_matcher *m, uint64_t id)
{
	uint32_t q = m->waiting.head[ow_waiting_bucket(&m->waiting, id)];
	if (q != OW_NOBODY)
		__builtin_prefetch(&m->waiting.queue[q]);
}

void ow_matcher_finish(struct ow_matcher *m)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		while (m->waiting.oldest[side] != OW_NOBODY)
			ow_matching_give_up(m, m->waiting.oldest[side]);
	}
	while (m->doubts)
		ow_matching_dispel_oldest_doubt(m);
}

uint64_t ow_matcher_peak(const struct ow_matcher *m)
{
	return m->waiting.peak;
}
