/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streaming matcher. Waiting records are entries of a pool, in three lists at once: the queue of their id (oldest
 * first), and the waiting list of their side (oldest first, for expiry). Queues hang in a hash table by id. Everything
 * is an index into growing arrays, so that a table of a million waiting packets costs 90 MB and an empty one nothing.
 *
 * Identical packets follow design section 5 and formulas 3.5: n-th with n-th inside the window. The range of plausible
 * delays narrows the choice, so that one lost poll does not shift all later ones by a period.
 */
#include "reconcile/matcher.h"

#include "base/hash.h"
#include "reconcile/plausible.h"
#include "reconcile/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE             UINT32_MAX
#define FIRST_HEADS      4096u /* hash buckets at the start; power of two */
#define FIRST_POOL       1024u
#define PENDING_MAX      262144u /* unsettled pairs of one id (38 MB); with more they are ambiguous */
#define WALK_MAX         256u    /* candidates looked at for one record */
#define CLOCK_STEP_SHARE 20      /* one packet in so many too early: the clocks, not identical packets, are to blame */
#define PIECES_MAX       128u    /* gaps that one superframe may still have when it has met what waits for it */

struct entry {
	struct ow_record record;
	uint32_t queue;
	uint32_t next;         /* in the queue (or pending list, or free list) */
	uint32_t newer, older; /* in the waiting list of its side */
	uint8_t side;
	bool copy;
};

/* A pair whose delay is implausible: if its id shows up again within the window, it was another packet. */
struct doubt {
	uint64_t id;
	int64_t time_ns;
};

struct queue {
	uint64_t id;
	uint32_t hash_next;
	uint32_t head, tail;                      /* waiting entries, oldest first */
	uint32_t pending, pending_tail, pendings; /* unsettled pairs: entries of A and B by turns */
	bool repeats;                             /* identical packets are about: check plausibility */
	bool differs;                             /* the copy counts differ */
};

struct ow_matcher {
	struct ow_matcher_calls calls;
	int64_t window_ns;
	struct entry *entry;
	struct queue *queue;
	uint32_t *head; /* hash buckets */
	uint32_t heads, entries, queues, free_entry, free_queue;
	uint32_t queues_used;
	uint32_t oldest[OW_SIDES], newest[OW_SIDES];
	int64_t oldest_ns[OW_SIDES]; /* time of the oldest, INT64_MAX when none waits */
	uint64_t waiting, peak;
	struct ow_plausible plausible[OW_DIRECTIONS];
	struct ow_recent *recent;
	uint64_t early[OW_DIRECTIONS]; /* unique packets that came too early to be plausible */
	struct doubt *doubt;           /* a ring of doubts, oldest first */
	uint32_t doubts, doubt_first, doubt_room;
};

/* From one time to a later one; times of odd files can be too far apart for a signed difference. */
static uint64_t time_between(int64_t from_ns, int64_t to_ns)
{
	return (uint64_t)to_ns - (uint64_t)from_ns;
}

/* -- pools -------------------------------------------------------------------------------------------------------- */

static uint32_t new_entry(struct ow_matcher *m)
{
	if (m->free_entry == NONE) {
		uint32_t more = m->entries ? m->entries : FIRST_POOL;
		struct entry *grown = realloc(m->entry, (size_t)(m->entries + more) * sizeof *grown);
		if (!grown)
			return NONE;
		m->entry = grown;
		for (uint32_t i = 0; i < more; i++)
			grown[m->entries + i].next = i + 1 < more ? m->entries + i + 1 : NONE;
		m->free_entry = m->entries;
		m->entries += more;
	}
	uint32_t i = m->free_entry;
	m->free_entry = m->entry[i].next;
	return i;
}

static void release_entry(struct ow_matcher *m, uint32_t i)
{
	m->entry[i].next = m->free_entry;
	m->free_entry = i;
}

static uint32_t bucket_of(const struct ow_matcher *m, uint64_t id)
{
	return (uint32_t)(id >> 24) & (m->heads - 1);
}

static int grow_heads(struct ow_matcher *m)
{
	uint32_t heads = m->heads ? m->heads * 2 : FIRST_HEADS;
	uint32_t *grown = malloc(heads * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	memset(grown, 0xff, heads * sizeof *grown);
	uint32_t *old = m->head, olds = m->heads;
	m->head = grown;
	m->heads = heads;
	for (uint32_t b = 0; b < olds; b++) {
		for (uint32_t q = old[b], next; q != NONE; q = next) {
			next = m->queue[q].hash_next;
			uint32_t *bucket = &grown[bucket_of(m, m->queue[q].id)];
			m->queue[q].hash_next = *bucket;
			*bucket = q;
		}
	}
	free(old);
	return 0;
}

static uint32_t find_queue(const struct ow_matcher *m, uint64_t id)
{
	uint32_t q = m->head[bucket_of(m, id)];
	while (q != NONE && m->queue[q].id != id)
		q = m->queue[q].hash_next;
	return q;
}

static uint32_t new_queue(struct ow_matcher *m, uint64_t id)
{
	if (m->free_queue == NONE) {
		uint32_t more = m->queues ? m->queues : FIRST_POOL;
		struct queue *grown = realloc(m->queue, (size_t)(m->queues + more) * sizeof *grown);
		if (!grown)
			return NONE;
		m->queue = grown;
		for (uint32_t i = 0; i < more; i++)
			grown[m->queues + i].hash_next = i + 1 < more ? m->queues + i + 1 : NONE;
		m->free_queue = m->queues;
		m->queues += more;
	}
	if (m->queues_used >= m->heads && grow_heads(m) < 0)
		return NONE;
	uint32_t q = m->free_queue;
	m->free_queue = m->queue[q].hash_next;
	m->queues_used++;
	uint32_t *bucket = &m->head[bucket_of(m, id)];
	m->queue[q] = (struct queue){
		.id = id, .hash_next = *bucket, .head = NONE, .tail = NONE, .pending = NONE, .pending_tail = NONE};
	*bucket = q;
	return q;
}

static void release_queue(struct ow_matcher *m, uint32_t q)
{
	uint32_t *link = &m->head[bucket_of(m, m->queue[q].id)];
	while (*link != q)
		link = &m->queue[*link].hash_next;
	*link = m->queue[q].hash_next;
	m->queue[q].hash_next = m->free_queue;
	m->free_queue = q;
	m->queues_used--;
}

/* -- waiting lists ------------------------------------------------------------------------------------------------ */

static void refresh_oldest(struct ow_matcher *m, unsigned side)
{
	uint32_t i = m->oldest[side];
	m->oldest_ns[side] = i == NONE ? INT64_MAX : m->entry[i].record.time_ns;
}

static void start_waiting(struct ow_matcher *m, uint32_t i)
{
	struct entry *e = &m->entry[i];
	e->newer = NONE;
	e->older = m->newest[e->side];
	if (e->older == NONE) {
		m->oldest[e->side] = i;
		m->oldest_ns[e->side] = e->record.time_ns;
	} else {
		m->entry[e->older].newer = i;
	}
	m->newest[e->side] = i;
	if (++m->waiting > m->peak)
		m->peak = m->waiting;
}

static void stop_waiting(struct ow_matcher *m, uint32_t i)
{
	struct entry *e = &m->entry[i];
	if (e->newer == NONE)
		m->newest[e->side] = e->older;
	else
		m->entry[e->newer].older = e->older;
	if (e->older == NONE) {
		m->oldest[e->side] = e->newer;
		refresh_oldest(m, e->side);
	} else {
		m->entry[e->older].newer = e->newer;
	}
	m->waiting--;
}

static void enqueue(struct ow_matcher *m, uint32_t q, uint32_t i)
{
	struct queue *queue = &m->queue[q];
	m->entry[i].queue = q;
	m->entry[i].next = NONE;
	if (queue->tail == NONE)
		queue->head = i;
	else
		m->entry[queue->tail].next = i;
	queue->tail = i;
}

/* Takes an entry out of its queue; `before` is its predecessor there, or NONE when it is the head. */
static void dequeue(struct ow_matcher *m, uint32_t i, uint32_t before)
{
	struct queue *queue = &m->queue[m->entry[i].queue];
	if (before == NONE)
		queue->head = m->entry[i].next;
	else
		m->entry[before].next = m->entry[i].next;
	if (queue->tail == i)
		queue->tail = before;
}

/* -- identical packets -------------------------------------------------------------------------------------------- */

static struct ow_pair make_pair(enum ow_side side, const struct ow_record *mine, const struct ow_record *other)
{
	struct ow_pair pair;
	pair.record[side] = *mine;
	pair.record[!side] = *other;
	return pair;
}

static int64_t delay_ab(const struct ow_pair *pair)
{
	return pair->record[OW_SIDE_B].time_ns - pair->record[OW_SIDE_A].time_ns;
}

static enum ow_direction way_of(const struct ow_matcher *m, const struct ow_pair *pair)
{
	enum ow_direction way = m->calls.direction(m->calls.arg, OW_SIDE_A, pair->record[OW_SIDE_A].flow);
	if (way != OW_DIRECTIONS)
		return way;
	return delay_ab(pair) >= 0 ? OW_A_TO_B : OW_B_TO_A;
}

static void learn(struct ow_matcher *m, const struct ow_pair *pair, enum ow_direction way)
{
	int64_t d = delay_ab(pair);
	ow_plausible_add(&m->plausible[way], way == OW_A_TO_B ? d : -d);
}

static void settle(struct ow_matcher *m, uint32_t q)
{
	struct queue *queue = &m->queue[q];
	enum ow_certainty certainty = queue->differs ? OW_AMBIGUOUS : OW_CERTAIN;
	for (uint32_t a = queue->pending, b, next; a != NONE; a = next) {
		b = m->entry[a].next;
		next = m->entry[b].next;
		struct ow_pair pair = {{m->entry[a].record, m->entry[b].record}};
		if (certainty == OW_CERTAIN)
			learn(m, &pair, way_of(m, &pair));
		m->calls.settled(m->calls.arg, &pair, certainty);
		release_entry(m, a);
		release_entry(m, b);
	}
	queue->pending = queue->pending_tail = NONE;
	queue->pendings = 0;
}

static int add_pending(struct ow_matcher *m, uint32_t q, const struct ow_pair *pair)
{
	uint32_t a = new_entry(m), b = a == NONE ? NONE : new_entry(m);
	if (b == NONE)
		return -ENOMEM;
	struct queue *queue = &m->queue[q];
	m->entry[a].record = pair->record[OW_SIDE_A];
	m->entry[b].record = pair->record[OW_SIDE_B];
	m->entry[a].next = b;
	m->entry[b].next = NONE;
	if (queue->pending_tail == NONE)
		queue->pending = a;
	else
		m->entry[queue->pending_tail].next = a;
	queue->pending_tail = b;
	if (++queue->pendings >= PENDING_MAX) {
		queue->differs = true; /* for all we know */
		settle(m, q);
	}
	return 0;
}

static void leave_queue(struct ow_matcher *m, uint32_t q)
{
	if (m->queue[q].head != NONE)
		return;
	settle(m, q);
	release_queue(m, q);
}

/* Copies of a piece share the train's id: the sequence number tells them apart. */
static uint64_t copy_id(const struct ow_record *r)
{
	return r->len ? ow_mix64(r->id ^ r->seq) : r->id;
}

static void give_up(struct ow_matcher *m, uint32_t i)
{
	struct entry *e = &m->entry[i];
	uint32_t q = e->queue, before = NONE;
	for (uint32_t at = m->queue[q].head; at != i; at = m->entry[at].next)
		before = at;
	stop_waiting(m, i);
	dequeue(m, i, before);
	m->queue[q].differs = true;
	m->calls.unmatched(m->calls.arg, (enum ow_side)e->side, &e->record, e->copy);
	release_entry(m, i);
	leave_queue(m, q);
}

static void expire(struct ow_matcher *m, unsigned side, int64_t other_ns)
{
	while (m->oldest_ns[side] < other_ns && time_between(m->oldest_ns[side], other_ns) > (uint64_t)m->window_ns)
		give_up(m, m->oldest[side]);
}

static int wait(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	bool copy = ow_recent_has(m->recent, copy_id(record), record->time_ns, m->window_ns);
	uint32_t i = new_entry(m);
	if (i == NONE)
		return -ENOMEM;
	if (q == NONE)
		q = new_queue(m, record->id);
	else if (!record->len)
		m->queue[q].repeats = true;
	if (q == NONE) {
		release_entry(m, i);
		return -ENOMEM;
	}
	if (copy && !record->len)
		m->queue[q].repeats = true;
	struct entry *e = &m->entry[i];
	e->record = *record;
	e->side = (uint8_t)side;
	e->copy = copy;
	enqueue(m, q, i);
	start_waiting(m, i);
	return 0;
}

enum verdict { FEASIBLE, TOO_LATE, TOO_EARLY };

/* Could these two be the same packet, given how long packets take? */
static enum verdict judge(const struct ow_matcher *m, const struct ow_pair *pair, enum ow_direction way)
{
	int64_t d = way == OW_A_TO_B ? delay_ab(pair) : -delay_ab(pair);
	const struct ow_plausible *p = &m->plausible[way];
	if (!p->known)
		return d < 0 ? TOO_EARLY : FEASIBLE;
	return d < p->low_ns ? TOO_EARLY : d > p->high_ns ? TOO_LATE : FEASIBLE;
}

struct choice {
	uint32_t entry, before; /* the one to match, or NONE */
	uint32_t feasible;      /* how many were feasible */
};

/* Among the identical packets that wait on the other side: the oldest feasible one, else the youngest of those
 * that waited too long. */
static struct choice choose(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct choice best = {NONE, NONE, 0}, fallback = {NONE, NONE, 0};
	uint32_t before = NONE, walked = 0;
	for (uint32_t i = m->queue[q].head, next; i != NONE && walked < WALK_MAX; i = next, walked++) {
		next = m->entry[i].next;
		if (m->entry[i].side != side) {
			struct ow_pair pair = make_pair(side, record, &m->entry[i].record);
			enum verdict verdict = judge(m, &pair, way_of(m, &pair));
			if (verdict == FEASIBLE && best.feasible++ == 0) {
				best.entry = i;
				best.before = before;
			}
			if (verdict == TOO_LATE)
				fallback = (struct choice){i, before, 0};
		}
		before = i;
	}
	return best.feasible ? best : fallback;
}

/* Identical packets that are too late for any that may still come only lengthen the walk. */
static void drop_hopeless(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	uint32_t i = m->queue[q].head;
	while (i != NONE && m->entry[i].side != side && m->entry[i].next != NONE) {
		struct ow_pair pair = make_pair(side, record, &m->entry[i].record);
		uint32_t next = m->entry[i].next;
		if (judge(m, &pair, way_of(m, &pair)) != TOO_LATE)
			return;
		give_up(m, i);
		i = next;
	}
}

static void take(struct ow_matcher *m, uint32_t i, uint32_t before)
{
	stop_waiting(m, i);
	dequeue(m, i, before);
	release_entry(m, i);
}

static int push_identical(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct choice choice = choose(m, side, record, q);
	if (choice.entry == NONE)
		return wait(m, side, record, q);
	struct ow_pair pair = make_pair(side, record, &m->entry[choice.entry].record);
	bool skipped = choice.before != NONE;
	take(m, choice.entry, choice.before);
	ow_recent_add(m->recent, record->id, record->time_ns);
	int r = 0;
	if (choice.feasible == 1) {
		learn(m, &pair, way_of(m, &pair));
		m->calls.matched(m->calls.arg, &pair, OW_CERTAIN);
	} else if (choice.feasible == 0) {
		m->calls.matched(m->calls.arg, &pair, OW_AMBIGUOUS);
	} else {
		m->calls.matched(m->calls.arg, &pair, OW_UNSETTLED);
		r = add_pending(m, q, &pair);
	}
	if (skipped)
		drop_hopeless(m, side, record, q);
	/* drop_hopeless keeps at least one entry, so the queue is still ours. */
	leave_queue(m, q);
	return r;
}

/* -- doubts ------------------------------------------------------------------------------------------------------- */

static int add_doubt(struct ow_matcher *m, uint64_t id, int64_t time_ns)
{
	if (m->doubts == m->doubt_room) {
		uint32_t room = m->doubt_room ? m->doubt_room * 2 : 64;
		struct doubt *grown = malloc(room * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		for (uint32_t i = 0; i < m->doubts; i++)
			grown[i] = m->doubt[(m->doubt_first + i) & (m->doubt_room - 1)];
		free(m->doubt);
		m->doubt = grown;
		m->doubt_room = room;
		m->doubt_first = 0;
	}
	m->doubt[(m->doubt_first + m->doubts++) & (m->doubt_room - 1)] = (struct doubt){id, time_ns};
	return 0;
}

/*
 * Received long before it was sent, when hardly any other was: not the same packet. When many are, the clock was
 * stepped; when by less than packets usually take, timestamps are inaccurate.
 */
static bool acausal(const struct ow_matcher *m, uint32_t q)
{
	uint32_t a = m->queue[q].pending;
	if (a == NONE)
		return false;
	struct ow_pair pair = {{m->entry[a].record, m->entry[m->entry[a].next].record}};
	enum ow_direction way = way_of(m, &pair);
	int64_t d = way == OW_A_TO_B ? delay_ab(&pair) : -delay_ab(&pair);
	return d < -m->plausible[way].high_ns && m->early[way] * CLOCK_STEP_SHARE < m->plausible[way].samples;
}

/* The window has passed and nothing like it was seen: an unusual delay, but a delay. */
static void dispel_oldest_doubt(struct ow_matcher *m)
{
	uint32_t q = find_queue(m, m->doubt[m->doubt_first].id);
	m->doubt_first = (m->doubt_first + 1) & (m->doubt_room - 1);
	m->doubts--;
	if (q == NONE)
		return;
	m->queue[q].differs |= acausal(m, q);
	leave_queue(m, q);
}

/* Matches a unique packet whose delay is implausible; its queue stays to see whether there are more of its kind. */
static int push_doubtful(struct ow_matcher *m, const struct ow_pair *pair, uint32_t q, enum ow_direction way)
{
	m->early[way] += judge(m, pair, way) == TOO_EARLY;
	const struct ow_record *r = &pair->record[OW_SIDE_A];
	m->queue[q].repeats = true;
	take(m, m->queue[q].head, NONE);
	ow_recent_add(m->recent, r->id, r->time_ns);
	m->calls.matched(m->calls.arg, pair, OW_UNSETTLED);
	int result = add_pending(m, q, pair);
	int64_t b_ns = pair->record[OW_SIDE_B].time_ns;
	return result < 0 ? result : add_doubt(m, r->id, r->time_ns > b_ns ? r->time_ns : b_ns);
}

/* -- trains ------------------------------------------------------------------------------------------------------- */

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
	struct range rest = {m->entry[i].record.seq, m->entry[i].record.len}, after;
	subtract(&rest, cut, &after);
	if (!rest.len && !after.len) {
		take(m, i, before);
		return 0;
	}
	struct ow_record whole = m->entry[i].record;
	if (!rest.len || !after.len) {
		m->entry[i].record = piece(&whole, rest.len ? rest : after);
		return 0;
	}
	uint32_t j = new_entry(m);
	if (j == NONE)
		return -ENOMEM;
	m->entry[i].record = piece(&whole, rest);
	m->entry[j] = m->entry[i];
	m->entry[j].record = piece(&whole, after);
	m->entry[i].next = j;
	if (m->queue[m->entry[i].queue].tail == i)
		m->queue[m->entry[i].queue].tail = j;
	/* Beside its other half in the waiting list: same age. */
	m->entry[j].older = i;
	if (m->entry[i].newer == NONE)
		m->newest[m->entry[i].side] = j;
	else
		m->entry[m->entry[i].newer].older = j;
	m->entry[i].newer = j;
	m->waiting++;
	return 0;
}

/* Bytes of the record that wait on the other side, counted once for each time they wait there. */
static uint64_t waiting_bytes(const struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	uint64_t bytes = 0;
	struct range all = {record->seq, record->len}, common;
	for (uint32_t i = m->queue[q].head; i != NONE; i = m->entry[i].next) {
		struct range other = {m->entry[i].record.seq, m->entry[i].record.len};
		if (m->entry[i].side != side && overlap(all, other, &common))
			bytes += common.len;
	}
	return bytes;
}

/* Matches one range of the record with what waits; leaves what remains in rest[], returns how many, or -ENOMEM. */
static int match_ranges(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q,
                        struct range rest[PIECES_MAX])
{
	enum ow_certainty certainty = waiting_bytes(m, side, record, q) > record->len ? OW_AMBIGUOUS : OW_CERTAIN;
	int rests = 1;
	rest[0] = (struct range){record->seq, record->len};
	for (uint32_t i = m->queue[q].head, before = NONE, next; i != NONE; before = i, i = next) {
		next = m->entry[i].next;
		if (m->entry[i].side == side)
			continue;
		for (int r = 0; r < rests && rests < (int)PIECES_MAX; r++) {
			struct range other = {m->entry[i].record.seq, m->entry[i].record.len}, common, after;
			if (!overlap(rest[r], other, &common))
				continue;
			struct ow_record mine = piece(record, common), theirs = piece(&m->entry[i].record, common);
			struct ow_pair pair = make_pair(side, &mine, &theirs);
			ow_recent_add(m->recent, copy_id(&mine), mine.time_ns);
			m->calls.matched(m->calls.arg, &pair, certainty);
			subtract(&rest[r], common, &after);
			if (!rest[r].len)
				rest[r] = after; /* in its place: segments in order take no room */
			else if (after.len)
				rest[rests++] = after;
			bool whole = common.len == other.len;
			if (shorten(m, i, before, common) < 0)
				return -ENOMEM;
			next = whole ? next : m->entry[i].next;
			if (whole) {
				i = before; /* gone: its predecessor stays the predecessor */
				break;
			}
		}
	}
	return rests;
}

static int push_piece(struct ow_matcher *m, enum ow_side side, const struct ow_record *record, uint32_t q)
{
	struct range rest[PIECES_MAX] = {{record->seq, record->len}};
	int rests = 1, r = 0;
	if (q != NONE) {
		rests = match_ranges(m, side, record, q, rest);
		if (rests < 0)
			return rests;
	}
	for (int i = 0; i < rests && r == 0; i++) {
		if (!rest[i].len)
			continue;
		struct ow_record part = piece(record, rest[i]);
		r = wait(m, side, &part, q);
		q = find_queue(m, record->id);
	}
	if (q != NONE)
		leave_queue(m, q);
	return r;
}

/* -- the interface ------------------------------------------------------------------------------------------------ */

int ow_matcher_create(int64_t window_ns, const struct ow_matcher_calls *calls, struct ow_matcher **ret_matcher)
{
	struct ow_matcher *m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	m->calls = *calls;
	m->window_ns = window_ns;
	m->free_entry = m->free_queue = NONE;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		m->oldest[side] = m->newest[side] = NONE;
		m->oldest_ns[side] = INT64_MAX;
	}
	ow_plausible_init(&m->plausible[OW_A_TO_B]);
	ow_plausible_init(&m->plausible[OW_B_TO_A]);
	m->recent = ow_recent_create();
	if (!m->recent || grow_heads(m) < 0) {
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
	free(matcher->entry);
	free(matcher->queue);
	free(matcher->head);
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
	       time_between(m->doubt[m->doubt_first].time_ns, record->time_ns) > (uint64_t)m->window_ns)
		dispel_oldest_doubt(m);
	uint32_t q = find_queue(m, record->id);
	if (record->len)
		return push_piece(m, side, record, q);
	if (q == NONE)
		return wait(m, side, record, q);
	uint32_t i = m->queue[q].head;
	if (i == NONE)
		m->queue[q].differs = true; /* a doubtful pair, and here is another of its kind */
	if (m->queue[q].repeats || m->entry[i].side == side)
		return push_identical(m, side, record, q);
	/* The usual case: one packet, one counterpart. */
	struct ow_pair pair = make_pair(side, record, &m->entry[i].record);
	enum ow_direction way = way_of(m, &pair);
	if (m->plausible[way].known && judge(m, &pair, way) != FEASIBLE)
		return push_doubtful(m, &pair, q, way);
	take(m, i, NONE);
	release_queue(m, q);
	ow_recent_add(m->recent, record->id, record->time_ns);
	learn(m, &pair, way);
	m->calls.matched(m->calls.arg, &pair, OW_CERTAIN);
	return 0;
}

void ow_matcher_prefetch(const struct ow_matcher *m, uint64_t id)
{
	__builtin_prefetch(&m->head[bucket_of(m, id)]);
	ow_recent_prefetch(m->recent, id);
}

void ow_matcher_prefetch_queue(const struct ow_matcher *m, uint64_t id)
{
	uint32_t q = m->head[bucket_of(m, id)];
	if (q != NONE)
		__builtin_prefetch(&m->queue[q]);
}

void ow_matcher_finish(struct ow_matcher *m)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		while (m->oldest[side] != NONE)
			give_up(m, m->oldest[side]);
	}
	while (m->doubts)
		dispel_oldest_doubt(m);
}

uint64_t ow_matcher_peak(const struct ow_matcher *m)
{
	return m->peak;
}
