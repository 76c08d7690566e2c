/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical packets: n-th with n-th inside the window (design section 5, formulas 3.5). The range of plausible delays
 * narrows the choice, so that one lost poll does not shift all later ones by a period. Where several were plausible,
 * the pairs stay unsettled until the queue is empty: then the copy counts agreed, or did not.
 *
 * A unique packet with an implausible delay is doubtful: its pair stays unsettled for a window, to see whether there
 * are others of its kind.
 */
#include "reconcile/matching.h"

#include <errno.h>
#include <stdlib.h>

#define PENDING_MAX      262144u /* unsettled pairs of one id (38 MB); with more they are ambiguous */
#define WALK_MAX         256u    /* candidates looked at for one record */
#define CLOCK_STEP_SHARE 20      /* one packet in so many too early: the clocks, not identical packets, are to blame */
#define SPARSE_SHARE     4       /* so many identical packets alone on their way for one that was not */

/*
 * Do identical packets tell how long packets take? Those that are certain are mostly the fast ones when several are
 * on their way at a time; then a range learned from them would exclude the slow ones for good.
 */
static bool sparse(const struct ow_matcher *m, enum ow_direction way)
{
	return m->alone[way] > SPARSE_SHARE * m->crowded[way];
}

static void settle(struct ow_matcher *m, uint32_t q)
{
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	enum ow_certainty certainty = queue->differs ? OW_AMBIGUOUS : OW_CERTAIN;
	for (uint32_t a = queue->pending, b, next; a != OW_NOBODY; a = next) {
		b = m->waiting.entry[a].next;
		next = m->waiting.entry[b].next;
		struct ow_pair pair = {.record = {&m->waiting.entry[a].record, &m->waiting.entry[b].record},
		                       .repeated = !queue->doubtful};
		enum ow_direction way = ow_matching_way(m, &pair);
		if (certainty == OW_CERTAIN && (queue->doubtful || sparse(m, way)))
			ow_matching_learn(m, &pair, way);
		ow_matching_calls(m)->settled(m->calls.arg, &pair, certainty);
		ow_waiting_release(&m->waiting, a);
		ow_waiting_release(&m->waiting, b);
	}
	queue->pending = queue->pending_tail = OW_NOBODY;
	queue->pendings = 0;
}

static int add_pending(struct ow_matcher *m, uint32_t q, const struct ow_pair *pair)
{
	uint32_t a = ow_waiting_new(&m->waiting), b = a == OW_NOBODY ? OW_NOBODY : ow_waiting_new(&m->waiting);
	if (b == OW_NOBODY)
		return -ENOMEM;
	struct ow_waiting_queue *queue = &m->waiting.queue[q];
	m->waiting.entry[a].record = *pair->record[OW_SIDE_A];
	m->waiting.entry[b].record = *pair->record[OW_SIDE_B];
	m->waiting.entry[a].next = b;
	m->waiting.entry[b].next = OW_NOBODY;
	if (queue->pending_tail == OW_NOBODY)
		queue->pending = a;
	else
		m->waiting.entry[queue->pending_tail].next = a;
	queue->pending_tail = b;
	if (++queue->pendings >= PENDING_MAX) {
		queue->differs = true; /* for all we know */
		settle(m, q);
	}
	return 0;
}

void ow_matching_leave(struct ow_matcher *m, uint32_t q)
{
	if (m->waiting.queue[q].head[OW_SIDE_A] != OW_NOBODY || m->waiting.queue[q].head[OW_SIDE_B] != OW_NOBODY)
		return;
	settle(m, q);
	ow_waiting_release_queue(&m->waiting, q);
}

struct choice {
	uint32_t entry, before; /* the one to match, or OW_NOBODY */
	uint32_t feasible;      /* how many were feasible */
};

/* Among the identical packets that wait on the other side: the oldest feasible one, else the youngest of those
 * that waited too long. */
static struct choice choose(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct choice best = {OW_NOBODY, OW_NOBODY, 0}, fallback = {OW_NOBODY, OW_NOBODY, 0};
	uint32_t before = OW_NOBODY, walked = 0;
	for (uint32_t i = m->waiting.queue[q].head[!side]; i != OW_NOBODY && walked < WALK_MAX; walked++) {
		struct ow_pair pair = ow_matching_pair(side, record, &m->waiting.entry[i].record);
		enum ow_verdict verdict = ow_matching_judge(m, &pair, ow_matching_way(m, &pair));
		if (verdict == OW_FEASIBLE && best.feasible++ == 0) {
			best.entry = i;
			best.before = before;
		}
		if (verdict == OW_TOO_LATE)
			fallback = (struct choice){i, before, 0};
		before = i;
		i = m->waiting.entry[i].next;
	}
	return best.feasible ? best : fallback;
}

/* Identical packets that are too late for any that may still come only lengthen the walk. */
static void drop_hopeless(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	uint32_t i = m->waiting.queue[q].head[!side];
	while (i != OW_NOBODY && m->waiting.entry[i].next != OW_NOBODY) {
		struct ow_pair pair = ow_matching_pair(side, record, &m->waiting.entry[i].record);
		uint32_t next = m->waiting.entry[i].next;
		if (ow_matching_judge(m, &pair, ow_matching_way(m, &pair)) != OW_TOO_LATE)
			return;
		ow_matching_give_up(m, i);
		i = next;
	}
}

int ow_matching_push_identical(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct choice choice = choose(m, side, record, q);
	if (choice.entry == OW_NOBODY)
		return ow_matching_wait(m, side, record, q);
	struct ow_record other = m->waiting.entry[choice.entry].record;
	struct ow_pair pair = ow_matching_pair(side, record, &other);
	enum ow_direction way = ow_matching_way(m, &pair);
	pair.alike = choice.feasible != 1;
	pair.repeated = true;
	bool skipped = choice.feasible && choice.before != OW_NOBODY;
	if (m->waiting.queue[q].head[!side] == choice.entry && m->waiting.entry[choice.entry].next == OW_NOBODY)
		m->alone[way]++;
	else
		m->crowded[way]++;
	ow_matching_take(m, choice.entry);
	m->waiting.queue[q].met = true;
	ow_recent_add(m->recent, record->id, record->time_ns);
	int r = 0;
	if (choice.feasible == 1) {
		if (sparse(m, way))
			ow_matching_learn(m, &pair, way);
		ow_matching_calls(m)->matched(m->calls.arg, &pair, OW_CERTAIN);
	} else if (choice.feasible == 0) {
		ow_matching_calls(m)->matched(m->calls.arg, &pair, OW_AMBIGUOUS);
	} else {
		ow_matching_calls(m)->matched(m->calls.arg, &pair, OW_UNSETTLED);
		r = add_pending(m, q, &pair);
	}
	if (skipped)
		drop_hopeless(m, side, record, q);
	/* drop_hopeless keeps at least one entry, so the queue is still ours. */
	ow_matching_leave(m, q);
	return r;
}

static void note_oldest_doubt(struct ow_matcher *m)
{
	m->doubt_until_ns = m->doubts ? ow_matching_until(m, m->doubt[m->doubt_first].time_ns) : INT64_MAX;
}

static int add_doubt(struct ow_matcher *m, uint64_t id, int64_t time_ns)
{
	if (m->doubts == m->doubt_room) {
		uint32_t room = m->doubt_room ? m->doubt_room * 2 : 64;
		struct ow_doubt *grown = malloc(room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		for (uint32_t i = 0; i < m->doubts; i++)
			grown[i] = m->doubt[(m->doubt_first + i) & (m->doubt_room - 1)];
		free(m->doubt);
		m->doubt = grown;
		m->doubt_room = room;
		m->doubt_first = 0;
	}
	m->doubt[(m->doubt_first + m->doubts++) & (m->doubt_room - 1)] = (struct ow_doubt){id, time_ns};
	note_oldest_doubt(m);
	return 0;
}

/*
 * Received long before it was sent, when hardly any other was: not the same packet. When many are, the clock was
 * stepped; when by less than packets usually take, timestamps are inaccurate.
 */
static bool acausal(struct ow_matcher *m, uint32_t q)
{
	uint32_t a = m->waiting.queue[q].pending;
	if (a == OW_NOBODY)
		return false;
	struct ow_pair pair = {
		.record = {&m->waiting.entry[a].record, &m->waiting.entry[m->waiting.entry[a].next].record}};
	enum ow_direction way = ow_matching_way(m, &pair);
	int64_t d = way == OW_A_TO_B ? ow_matching_delay(&pair) : -ow_matching_delay(&pair);
	return d < -m->plausible[way].high_ns && m->early[way] * CLOCK_STEP_SHARE < m->plausible[way].samples;
}

/* The window has passed and nothing like it was seen: an unusual delay, but a delay. */
void ow_matching_dispel_oldest_doubt(struct ow_matcher *m)
{
	uint32_t q = ow_waiting_find(&m->waiting, m->doubt[m->doubt_first].id);
	m->doubt_first = (m->doubt_first + 1) & (m->doubt_room - 1);
	m->doubts--;
	note_oldest_doubt(m);
	if (q == OW_NOBODY)
		return;
	m->waiting.queue[q].differs |= acausal(m, q);
	ow_matching_leave(m, q);
}

/* Matches a unique packet whose delay is implausible; its queue stays to see whether there are more of its kind. */
int ow_matching_push_doubtful(struct ow_matcher *m, const struct ow_pair *pair, uint32_t q, enum ow_direction way)
{
	struct ow_record a = *pair->record[OW_SIDE_A], b = *pair->record[OW_SIDE_B];
	const struct ow_pair kept = {.record = {&a, &b}}; /* one of them is the waiter's, which goes now */
	m->early[way] += ow_matching_judge(m, pair, way) == OW_TOO_EARLY;
	m->waiting.queue[q].repeats = m->waiting.queue[q].doubtful = true;
	uint32_t waits = m->waiting.queue[q].head[OW_SIDE_A];
	ow_matching_take(m, waits != OW_NOBODY ? waits : m->waiting.queue[q].head[OW_SIDE_B]);
	ow_recent_add(m->recent, a.id, a.time_ns);
	ow_matching_calls(m)->matched(m->calls.arg, &kept, OW_UNSETTLED);
	int r = add_pending(m, q, &kept);
	return r < 0 ? r : add_doubt(m, a.id, a.time_ns > b.time_ns ? a.time_ns : b.time_ns);
}
