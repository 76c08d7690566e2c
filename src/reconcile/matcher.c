/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming matcher: waiting packets, matches, and packets that have waited too long. It handles unique packets,
 * which are nearly all; identical ones are in identical.c, byte ranges in byte_ranges.c.
 */
#include "reconcile/matcher.h"

#include "reconcile/matching.h"

#include <errno.h>
#include <stdlib.h>

#define HELD_MAX            65536u             /* pairs at the start that are delayed */
#define FAR_TIMES           8                  /* a delay that is this many times longer than the longest usual one */
#define HOLD_WINDOW_MOST_NS (INT64_C(1) << 60) /* a longer waiting time: there are no times */

static void expire_side(struct ow_matcher *m, unsigned side, int64_t other_ns)
{
	while (m->waiting.until_ns[side] < other_ns)
		ow_matching_give_up(m, ow_waiting_oldest(&m->waiting, side));
}

static inline __attribute__((always_inline)) int wait_alone(struct ow_matcher *m, enum ow_side side,
                                                            const struct ow_record *record)
{
	uint32_t i = ow_matching_new_waiter(m, side, record, false);
	if (i == OW_NOBODY)
		return -ENOMEM;
	uint32_t *bucket = &m->waiting.alone[ow_waiting_bucket(record->id, m->waiting.alones)];
	m->waiting.entry[i].queue = OW_NOBODY;
	m->waiting.entry[i].next = *bucket;
	*bucket = i;
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
	m->due_ns = INT64_MAX;
	m->hold_until_ns = INT64_MIN;
	m->start_ns[OW_SIDE_A] = m->start_ns[OW_SIDE_B] = INT64_MIN;
	m->last_ns[OW_SIDE_A] = m->last_ns[OW_SIDE_B] = INT64_MIN;
	ow_plausible_init(&m->plausible[OW_A_TO_B]);
	ow_plausible_init(&m->plausible[OW_B_TO_A]);
	m->recent = ow_recent_create();
	if (ow_waiting_init(&m->waiting, window_ns) < 0 || !m->recent) {
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
	ow_matching_free_groups(matcher);
	ow_fifo_done(&matcher->fifo[OW_A_TO_B]);
	ow_fifo_done(&matcher->fifo[OW_B_TO_A]);
	ow_waiting_done(&matcher->waiting);
	free(matcher);
}

void ow_matcher_expect(struct ow_matcher *matcher, enum ow_direction direction, int64_t low_ns, int64_t high_ns)
{
	while (!matcher->plausible[direction].known) {
		ow_plausible_add(&matcher->plausible[direction], low_ns);
		ow_plausible_add(&matcher->plausible[direction], high_ns);
	}
}

void ow_matcher_start(struct ow_matcher *m, enum ow_side side, int64_t first_ns)
{
	m->start_ns[side] = first_ns;
	m->recent->origin_ns =
		m->start_ns[!side] == INT64_MIN || first_ns < m->start_ns[!side] ? first_ns : m->start_ns[!side];
	if (m->start_ns[!side] == INT64_MIN || m->window_ns > HOLD_WINDOW_MOST_NS)
		return;
	int64_t later = first_ns > m->start_ns[!side] ? first_ns : m->start_ns[!side], longest = ow_matcher_longest(m);
	if (!longest || longest > m->window_ns)
		longest = m->window_ns;
	if (__builtin_add_overflow(later, longest, &m->hold_until_ns))
		m->hold_until_ns = INT64_MIN;
}

void ow_matcher_one_way(struct ow_matcher *m, enum ow_direction way)
{
	m->one_way = true;
	m->only_way = way;
}

void ow_matcher_least(struct ow_matcher *m, enum ow_direction direction, int64_t least_ns)
{
	m->least_ns[direction] = least_ns;
}

void ow_matcher_flight(struct ow_matcher *m, enum ow_direction direction, int64_t flight_ns)
{
	m->flight_ns[direction] = flight_ns;
}

void ow_matcher_reorders(struct ow_matcher *m, enum ow_direction direction, int64_t reorder_ns)
{
	m->reorder_ns[direction] = reorder_ns;
}

int ow_matcher_in_order(struct ow_matcher *m, enum ow_direction direction, int64_t slack_ns)
{
	m->in_order = true;
	return ow_fifo_init(&m->fifo[direction], m->window_ns, slack_ns);
}

/*
 * The sender's capture is over, so it does not show what was sent since. A packet that arrives then, far later than
 * usual, was probably sent again, as TCP does with lost data.
 */
static bool sent_since(const struct ow_matcher *m, enum ow_side side, const struct ow_pair *pair)
{
	const struct ow_plausible *p = &m->plausible[side == OW_SIDE_B ? OW_A_TO_B : OW_B_TO_A];
	int64_t received_ns = pair->record[side]->time_ns, delay_ns = received_ns - pair->record[!side]->time_ns;
	return m->ended[!side] && !m->one_way && p->known && delay_ns / FAR_TIMES > p->high_ns &&
	       received_ns - p->least_ns > m->last_ns[!side];
}

/* Two unique packets with an unusual delay, or before it is known what is usual. */
static __attribute__((noinline)) int meet_oddly(struct ow_matcher *m, enum ow_side side, const struct ow_pair *pair,
                                                uint32_t *link)
{
	uint32_t i = *link;
	enum ow_direction way = ow_matching_delay(pair) >= 0 ? OW_A_TO_B : OW_B_TO_A;
	if (!m->plausible[way].known)
		way = ow_matching_way(m, pair);
	bool implausible = m->plausible[way].known && ow_matching_judge(m, pair, way) != OW_FEASIBLE;
	if (implausible && sent_since(m, side, pair)) {
		m->sent_again[side == OW_SIDE_B ? OW_A_TO_B : OW_B_TO_A]++;
		ow_matching_calls(m)->unmatched(m->calls.arg, side, pair->record[side], false);
		return 0;
	}
	if (implausible || pair->record[side]->time_ns < m->hold_until_ns) {
		m->early[way] += implausible && ow_matching_judge(m, pair, way) == OW_TOO_EARLY;
		if (!implausible && ++m->held >= HELD_MAX)
			m->hold_until_ns = INT64_MIN;
		if (!implausible)
			ow_matching_mark(m, pair->record[OW_SIDE_A]->time_ns, pair->record[OW_SIDE_B]->time_ns);
		return ow_matching_push_identical(m, side, pair->record[side], link);
	}
	ow_matching_learn(m, pair, way);
	ow_matching_calls(m)->matched(m->calls.arg, pair, OW_CERTAIN);
	ow_matching_mark(m, pair->record[OW_SIDE_A]->time_ns, pair->record[OW_SIDE_B]->time_ns);
	*link = m->waiting.entry[i].next;
	ow_recent_add(m->recent, pair->record[side]->id, pair->record[side]->time_ns);
	ow_waiting_stop(&m->waiting, i);
	ow_waiting_release(&m->waiting, i);
	return 0;
}

/* The usual case: one packet, one counterpart, which waits alone at this link. */
static inline __attribute__((always_inline)) int meet(struct ow_matcher *m, enum ow_side side,
                                                      const struct ow_record *record, uint32_t *link)
{
	uint32_t i = *link;
	const struct ow_record *other = &m->waiting.entry[i].record;
	int64_t waited = record->time_ns - other->time_ns, delay = side == OW_SIDE_B ? waited : -waited;
	/* The sign of the delay usually shows its direction; looking up its flow costs more. */
	struct ow_plausible *plausible = &m->plausible[delay >= 0 ? OW_A_TO_B : OW_B_TO_A];
	int64_t size = delay >= 0 ? delay : -delay;
	if (!m->calls.met || !plausible->known || size < plausible->low_ns || size > plausible->high_ns ||
	    record->time_ns < m->hold_until_ns) {
		struct ow_pair pair = ow_matching_pair(side, record, other);
		return meet_oddly(m, side, &pair, link);
	}
	ow_plausible_add(plausible, size);
	struct ow_meeting *meeting = &m->met[m->mets++];
	meeting->time_ns[side] = record->time_ns;
	meeting->time_ns[!side] = other->time_ns;
	meeting->number[side] = record->number;
	meeting->number[!side] = other->number;
	meeting->flow[side] = record->flow;
	meeting->flow[!side] = other->flow;
	meeting->untimed = record->untimed | other->untimed;
	meeting->quiet = false;
	if (m->mets == OW_MATCHING_MET)
		ow_matching_tell_met(m);
	*link = m->waiting.entry[i].next;
	ow_waiting_stop(&m->waiting, i);
	ow_waiting_release(&m->waiting, i);
	ow_recent_add(m->recent, record->id, record->time_ns);
	return 0;
}

/* There are other packets with this id, or it is a byte range. */
static __attribute__((noinline)) int push_queued(struct ow_matcher *m, enum ow_side side,
                                                 const struct ow_record *record, uint32_t *link)
{
	if (!record->len)
		return ow_matching_push_identical(m, side, record, link);
	bool alone = *link != OW_NOBODY;
	uint32_t q = alone ? ow_waiting_accompany(&m->waiting, link) : ow_waiting_find(&m->waiting, record->id);
	return alone && q == OW_NOBODY ? -ENOMEM : ow_matching_push_segment(m, side, record, q);
}

static __attribute__((noinline)) int expire(struct ow_matcher *m, enum ow_side side, int64_t now_ns, int64_t other_ns)
{
	expire_side(m, side, other_ns);
	expire_side(m, !side, now_ns);
	/* If times are out of order, one side may be far ahead. */
	return ow_matching_look(m, now_ns < other_ns ? now_ns : other_ns);
}

/* Inlined for each side separately: which side is next is random, what follows then usually is not. */
static inline __attribute__((always_inline)) int push(struct ow_matcher *m, enum ow_side side,
                                                      const struct ow_record *record, int64_t other_ns)
{
	const struct ow_waiting *w = &m->waiting;
	if (w->until_ns[side] < other_ns || w->until_ns[!side] < record->time_ns || m->due_ns < record->time_ns) {
		int r = expire(m, side, record->time_ns, other_ns);
		if (r < 0)
			return r;
	}
	uint32_t *link = ow_waiting_alone(w, record->id);
	if (*link != OW_NOBODY && w->entry[*link].side != side && !record->len)
		return meet(m, side, record, link);
	if (*link != OW_NOBODY || record->len || (w->queues_used && ow_waiting_find(w, record->id) != OW_NOBODY) ||
	    ow_recent_has(m->recent, record->id, record->time_ns, m->window_ns))
		return push_queued(m, side, record, link);
	return wait_alone(m, side, record);
}

static void note_last(struct ow_matcher *m, enum ow_side side, int64_t time_ns)
{
	m->last_ns[side] = time_ns > m->last_ns[side] ? time_ns : m->last_ns[side];
}

int ow_matcher_push(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, int64_t other_ns)
{
	note_last(m, side, record->time_ns);
	m->ended[!side] = other_ns == INT64_MAX;
	return side == OW_SIDE_A ? push(m, OW_SIDE_A, record, other_ns) : push(m, OW_SIDE_B, record, other_ns);
}

int ow_matcher_skip(struct ow_matcher *m, enum ow_side side, int64_t time_ns, int64_t other_ns)
{
	const struct ow_waiting *w = &m->waiting;
	note_last(m, side, time_ns);
	m->ended[!side] = other_ns == INT64_MAX;
	if (w->until_ns[side] < other_ns || w->until_ns[!side] < time_ns || m->due_ns < time_ns)
		return expire(m, side, time_ns, other_ns);
	return 0;
}

void ow_matcher_usual(const struct ow_matcher *m, struct ow_usual_delays *ret_usual)
{
	ret_usual->from_ns = m->hold_until_ns;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		ret_usual->low_ns[d] = m->plausible[d].known ? m->plausible[d].low_ns : INT64_MAX;
		ret_usual->high_ns[d] = m->plausible[d].known ? m->plausible[d].high_ns : INT64_MIN;
	}
}

void ow_matcher_met(struct ow_matcher *m, const struct ow_meeting *meeting, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t delay = meeting[i].time_ns[OW_SIDE_B] - meeting[i].time_ns[OW_SIDE_A];
		ow_plausible_add(&m->plausible[delay >= 0 ? OW_A_TO_B : OW_B_TO_A], delay >= 0 ? delay : -delay);
	}
	ow_matching_tell_met(m);
	ow_matching_tell(m, meeting, count);
}

void ow_matcher_matched(struct ow_matcher *m, const struct ow_record record[OW_SIDES])
{
	const struct ow_pair pair = {.record = {&record[OW_SIDE_A], &record[OW_SIDE_B]}};
	int64_t delay = ow_matching_delay(&pair);
	ow_matching_learn(m, &pair, delay >= 0 ? OW_A_TO_B : OW_B_TO_A);
	m->calls.matched(m->calls.arg, &pair, OW_CERTAIN);
	ow_matching_mark(m, record[OW_SIDE_A].time_ns, record[OW_SIDE_B].time_ns);
}

int64_t ow_matcher_longest(const struct ow_matcher *m)
{
	int64_t longest = 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (m->plausible[d].known && m->plausible[d].high_ns > longest)
			longest = m->plausible[d].high_ns;
	}
	return longest;
}

void ow_matcher_remember(struct ow_matcher *m, uint64_t id, int64_t time_ns)
{
	ow_recent_add(m->recent, id, time_ns);
}

int ow_matcher_merge(struct ow_matcher *m, struct ow_matcher_stream stream[OW_SIDES])
{
	struct ow_matcher_stream a = stream[OW_SIDE_A], b = stream[OW_SIDE_B];
	int64_t a_ns = *a.order_ns, b_ns = *b.order_ns;
	int r = 0;
	m->ended[OW_SIDE_A] = a_ns == INT64_MAX;
	m->ended[OW_SIDE_B] = b_ns == INT64_MAX;
	bool more = true;
	while (more && r == 0) {
		if (a_ns <= b_ns) {
			r = push(m, OW_SIDE_A, a.next++, b_ns);
			a_ns = *++a.order_ns;
			more = a.next < a.end;
		} else {
			r = push(m, OW_SIDE_B, b.next++, a_ns);
			b_ns = *++b.order_ns;
			more = b.next < b.end;
		}
	}
	if (a.next > stream[OW_SIDE_A].next)
		note_last(m, OW_SIDE_A, a.next[-1].time_ns);
	if (b.next > stream[OW_SIDE_B].next)
		note_last(m, OW_SIDE_B, b.next[-1].time_ns);
	stream[OW_SIDE_A] = a;
	stream[OW_SIDE_B] = b;
	return r;
}

void ow_matcher_prefetch(const struct ow_matcher *m, const struct ow_record *record, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		__builtin_prefetch(&m->waiting.alone[ow_waiting_bucket(record[i].id, m->waiting.alones)]);
		ow_recent_prefetch(m->recent, record[i].id);
	}
}

void ow_matcher_prefetch_waiters(const struct ow_matcher *m, const struct ow_record *record, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t waiter = m->waiting.alone[ow_waiting_bucket(record[i].id, m->waiting.alones)];
		__builtin_prefetch(&m->waiting.entry[waiter & (m->waiting.entries - 1)]); /* the last one for nobody */
	}
}

int ow_matcher_finish(struct ow_matcher *m)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		while (ow_waiting_oldest(&m->waiting, side) != side)
			ow_matching_give_up(m, ow_waiting_oldest(&m->waiting, side));
	}
	m->ended[OW_SIDE_A] = m->ended[OW_SIDE_B] = true;
	int r = ow_matching_look(m, INT64_MAX);
	ow_matching_tell_met(m);
	return r;
}

uint64_t ow_matcher_crowded(const struct ow_matcher *m, enum ow_direction direction)
{
	return m->crowded[direction];
}

uint64_t ow_matcher_impossible(const struct ow_matcher *m, enum ow_direction direction)
{
	return m->impossible[direction];
}

uint64_t ow_matcher_sent_again(const struct ow_matcher *m, enum ow_direction direction)
{
	return m->sent_again[direction];
}

bool ow_matcher_groups(const struct ow_matcher *m)
{
	return m->waiting.queues_used > 0;
}
