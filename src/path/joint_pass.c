/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records are read ahead of the matchers by the longest usual delay. When the first record of a packet has its turn, it is
 * known which points show the packet, and whether it is unique. A packet that all points show in the usual way is smooth:
 * most are. The others are rough, and have their turns in the order of time, as in a pass of two points: in the turn of a
 * record, each pair of its point either takes it as usual, or gets it pushed. The turns of smooth packets between two rough
 * ones are taken point by point, and each pair gets its meetings in the order of time.
 */
#include "path/joint_pass.h"

#include "base/array.h"
#include "base/time.h"
#include "path/joint_meetings.h"
#include "path/joint_packets.h"
#include "reconcile/recent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD_LEAST_NS OW_NS_PER_MS
#define AHEAD_NS       (10 * OW_NS_PER_MS) /* before the usual delays are known */
#define HELD_MOST      65536u              /* records of a point that are read ahead: 8 MB */
#define HELD_LEAST     1024u               /* room for records of a point; a power of two */
#define PROGRESS_EVERY 256                 /* batches */
#define BLOCK          16                  /* records before its turn the memory of one is loaded */
#define PUSHED         (UINT64_C(1) << 41) /* another id in the same set of the table */
#define TURNS_AHEAD    8                   /* records whose memory is loaded before their turn */
#define READY_MOST     256u                /* records of a point that have their turns together, if times differ */

/* A record that has not had its turn. */
struct held {
	_Alignas(OW_JOINT_LINE) struct ow_record record;
	int64_t order_ns;
	struct ow_joint_packet *packet;
};

/* A record that is ready for its turn, of a packet that is not smooth. */
struct rough {
	int64_t order_ns; /* its own, or that of a later one before it */
	uint32_t before;  /* records of its point that have their turns before it, of those that are ready */
};

struct point {
	struct ow_record_batches *batches;
	struct ow_record_reader *input; /* of the pass that reads it */
	struct held *ring;
	uint32_t size;                   /* of the ring: a power of two */
	uint32_t first, count;           /* records that did not have their turn: the first is ring[first % size] */
	uint32_t ready;                  /* the first ones: their packets are decided, .. */
	struct ow_joint_packet **packet; /* .. and these */
	size_t packet_room;
	struct rough *rough; /* of those that are ready */
	size_t roughs, rough_room, next_rough;
	uint32_t turned;            /* of those that were ready together */
	int64_t turned_ns;          /* latest time of a record that had its turn; INT64_MIN: there was none */
	int64_t newest_ns, next_ns; /* of the last record that was read; of the next one: INT64_MAX at the end */
	bool used, ended, begun;
};

/* What a pair takes as usual, while records that are ready have their turns: in the time of the first point. */
struct usual {
	uint16_t points; /* bits of both */
	uint8_t from, to;
	bool first;       /* of two records of the same time, that of `from` has its turn first */
	bool plain;       /* its pass takes meetings */
	int64_t shift_ns; /* of the pair's first point */
	/* Of the time from `from` to `to`, if that is not below 0, and if it is: the least, and how many from there on. */
	int64_t least_ns[OW_DIRECTIONS];
	uint64_t count_ns[OW_DIRECTIONS];
	int64_t from_ns; /* of packets whose later time is not before this */
};

/* A side of a pair at a point. */
struct side {
	unsigned pass;
	enum ow_side side;
	unsigned other; /* point of the other side */
};

struct joint {
	const struct ow_joint_pass *set;
	struct ow_matcher *matcher[OW_PATH_PAIRS];
	struct usual usual[OW_PATH_PAIRS];
	struct ow_joint_meetings meetings[OW_PATH_PAIRS][OW_SIDES]; /* at the first point, at the second one */
	struct ow_joint_meetings merged;
	int64_t shift_ns[OW_PATH_POINTS]; /* added to the times of a point, for those of the first one */
	unsigned points, passes;
	uint16_t all; /* bit p: point p is used */
	uint64_t all_pairs;
	bool plain; /* all passes are */
	struct point point[OW_PATH_POINTS];
	struct side side[OW_PATH_POINTS][OW_PATH_PAIRS];
	unsigned sides[OW_PATH_POINTS];
	struct ow_joint_packets packets;
	struct ow_recent
		*recent; /* ids that matched at all points; changed by PUSHED, those that went through matchers */
	int64_t ahead_ns, window_ns;
	struct ow_flow_table *flows[OW_PATH_PAIRS][OW_SIDES]; /* of passes that use those of the reader of the point */
};

/* -- packets ------------------------------------------------------------------------------------------------------ */

/* Copies of packets that matched, or went through the matchers, do so, too. */
static bool came_before(struct joint *j, const struct ow_record *record)
{
	if (ow_recent_has(j->recent, record->id, record->time_ns, j->window_ns)) {
		for (unsigned k = 0; k < j->passes; k++)
			ow_matcher_remember(j->matcher[k], record->id,
			                    record->time_ns - j->shift_ns[j->set->pair[k].from]);
		return true;
	}
	return ow_recent_has(j->recent, record->id ^ PUSHED, record->time_ns, j->window_ns);
}

static int enter(struct joint *j, unsigned p, struct held *held)
{
	const struct ow_record *record = &held->record;
	struct ow_joint_packet *packet = ow_joint_packets_find(&j->packets, record->id);
	if (!packet) {
		packet = ow_joint_packets_add(&j->packets, record->id);
		if (!packet)
			return -ENOMEM;
		packet->alike = came_before(j, record);
	}
	const uint16_t here = (uint16_t)(1u << p);
	struct ow_joint_showing *at = &packet->at[p];
	held->packet = packet;
	packet->records++;
	if (record->len || packet->seen & here)
		packet->alike = true;
	packet->seen |= here;
	at->time_ns = record->time_ns;
	at->order_ns = held->order_ns;
	at->number = record->number;
	at->flow = record->flow;
	at->untimed = record->untimed;
	if (!j->plain)
		ow_joint_packets_records(&j->packets, packet)[p] = *record;
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

static inline struct held *held_at(const struct point *point, uint32_t i)
{
	return &point->ring[(point->first + i) & (point->size - 1)];
}

/* Makes room for records after those that are held. */
static int hold_more(struct point *point, uint32_t count)
{
	uint32_t size = point->size ? point->size : HELD_LEAST;
	while (size < point->count + count)
		size *= 2;
	if (size == point->size)
		return 0;
	struct held *ring = aligned_alloc(OW_JOINT_LINE, size * sizeof *ring);
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < point->count; i++)
		ring[i] = *held_at(point, i);
	free(point->ring);
	point->ring = ring;
	point->size = size;
	point->first = 0;
	return 0;
}

static void note_batch(struct joint *j, unsigned p, const struct ow_batch *batch)
{
	for (unsigned i = 0; i < j->sides[p]; i++) {
		const struct side *s = &j->side[p][i];
		struct ow_match_pass *pass = j->set->pass[s->pass];
		int64_t shift_ns = j->shift_ns[j->set->pair[s->pass].from];
		if (!pass->records[s->side]) {
			int64_t first_ns = batch->record[0].time_ns;
			first_ns = (batch->first_ns < first_ns ? batch->first_ns : first_ns) - shift_ns;
			pass->first_ns[s->side] = first_ns;
			ow_matcher_start(j->matcher[s->pass], s->side, first_ns);
		}
		if (!pass->records[s->side] || batch->last_ns - shift_ns > pass->last_ns[s->side])
			pass->last_ns[s->side] = batch->last_ns - shift_ns;
		pass->records[s->side] += (uint64_t)batch->count;
		pass->position[s->side] = batch->position;
	}
}

/* What the records after this one will access: first where their packets are found, later the packets. */
static void prefetch(const struct joint *j, unsigned p, const struct ow_batch *batch, int i)
{
	if (i + 2 * BLOCK < batch->count)
		__builtin_prefetch(ow_joint_packets_bucket(&j->packets, batch->record[i + 2 * BLOCK].id));
	if (i + BLOCK < batch->count) {
		uint64_t id = batch->record[i + BLOCK].id;
		const struct ow_joint_packet *packet = *ow_joint_packets_bucket(&j->packets, id);
		/* Only the first record of a packet is looked up there: its bucket is usually empty. */
		if (packet) {
			__builtin_prefetch(packet, 1);
			__builtin_prefetch(&packet->at[p], 1);
		} else {
			ow_recent_prefetch(j->recent, id);
		}
	}
}

/* The next batch of a point. */
static int load(struct joint *j, unsigned p, struct ow_error *err)
{
	struct point *point = &j->point[p];
	const struct ow_batch *batch;
	int r = ow_record_batches_next(point->batches, &batch, err);
	if (r < 0)
		return r;
	point->ended = !batch;
	if (!batch)
		return 0;
	r = hold_more(point, (uint32_t)batch->count);
	if (r < 0)
		return r;
	note_batch(j, p, batch);
	for (int i = -BLOCK; i < 0; i++)
		prefetch(j, p, batch, i);
	for (int i = 0; i < batch->count && r == 0; i++) {
		prefetch(j, p, batch, i);
		struct held *held = held_at(point, point->count++);
		held->record = batch->record[i];
		held->order_ns = batch->order_ns[i];
		r = enter(j, p, held);
	}
	int64_t newest_ns = batch->order_ns[batch->count - 1];
	point->newest_ns = newest_ns > point->newest_ns || !point->begun ? newest_ns : point->newest_ns;
	point->begun = true;
	return r;
}

/* Ends the capture of a point, if its last record had its turn. */
static void end_point(struct joint *j, unsigned p)
{
	if (!j->point[p].ended || j->point[p].count)
		return;
	int64_t last_ns = ow_record_batches_last_ns(j->point[p].batches);
	for (unsigned i = 0; i < j->sides[p]; i++) {
		const struct side *s = &j->side[p][i];
		struct ow_match_pass *pass = j->set->pass[s->pass];
		pass->ended[s->side] = true;
		if (pass->records[s->side] && last_ns != INT64_MIN &&
		    last_ns - j->shift_ns[j->set->pair[s->pass].from] > pass->last_ns[s->side])
			pass->last_ns[s->side] = last_ns - j->shift_ns[j->set->pair[s->pass].from];
	}
}

/* The usual delays go up to twice the longest but for one in a thousand: few packets are slower than this. */
static void find_ahead(struct joint *j)
{
	int64_t longest_ns = 0;
	for (unsigned k = 0; k < j->passes; k++) {
		int64_t ns = ow_matcher_longest(j->matcher[k]);
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	longest_ns = longest_ns / 8 * 5;
	j->ahead_ns = !longest_ns ? AHEAD_NS : longest_ns > AHEAD_LEAST_NS ? longest_ns : AHEAD_LEAST_NS;
}

/* -- decisions ---------------------------------------------------------------------------------------------------- */

static void note_usual(struct joint *j)
{
	for (unsigned k = 0; k < j->passes; k++) {
		struct usual *usual = &j->usual[k];
		struct ow_usual_delays delays;
		ow_matcher_usual(j->matcher[k], &delays);
		usual->from_ns = delays.from_ns == INT64_MIN ? INT64_MIN : delays.from_ns + usual->shift_ns;
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			int64_t low_ns = delays.low_ns[d] > 0 ? delays.low_ns[d] : 0, high_ns = delays.high_ns[d];
			bool none = low_ns > high_ns;
			usual->least_ns[d] = none ? 0 : d == OW_A_TO_B ? low_ns : -high_ns;
			usual->count_ns[d] = none ? 0 : (uint64_t)(high_ns - low_ns) + 1;
		}
	}
}

static inline bool is_usual(const struct usual *usual, int64_t from_ns, int64_t to_ns)
{
	int64_t delay_ns = to_ns - from_ns, later_ns = to_ns > from_ns ? to_ns : from_ns;
	const enum ow_direction way = delay_ns >= 0 ? OW_A_TO_B : OW_B_TO_A;
	uint64_t above_ns = (uint64_t)delay_ns - (uint64_t)usual->least_ns[way];
	return (above_ns < usual->count_ns[way]) & (later_ns >= usual->from_ns);
}

/* What is known now of a packet is final for the pairs that take it as usual. */
static void decide(struct joint *j, struct ow_joint_packet *packet)
{
	const uint16_t seen = packet->alike ? 0 : packet->seen;
	uint64_t at_to = 0, at_from = 0, pair = 1;
	ow_joint_packets_leave(&j->packets, packet);
	for (const struct usual *usual = j->usual; usual < j->usual + j->passes; usual++, pair <<= 1) {
		const struct ow_joint_showing *from = &packet->at[usual->from], *to = &packet->at[usual->to];
		if ((seen & usual->points) != usual->points || !is_usual(usual, from->time_ns, to->time_ns))
			continue;
		bool is_to = from->order_ns < to->order_ns + usual->first;
		at_to |= is_to ? pair : 0;
		at_from |= is_to ? 0 : pair;
	}
	packet->decided = true;
	packet->met[OW_SIDE_A] = at_from;
	packet->met[OW_SIDE_B] = at_to;
	packet->smooth = seen == j->all && (at_to | at_from) == j->all_pairs;
	ow_recent_add(j->recent, packet->smooth ? packet->id : packet->id ^ PUSHED,
	              packet->at[__builtin_ctz(packet->seen)].time_ns);
}

/* Of the pair and the record of the later side, which is that of this point and has this turn. There is room for it. */
static inline void meet(const struct usual *usual, const struct ow_joint_packet *packet, enum ow_side later,
                        uint32_t turn, struct ow_meeting *to)
{
	const struct ow_joint_showing *a = &packet->at[usual->from], *b = &packet->at[usual->to];
	to->time_ns[OW_SIDE_A] = a->time_ns - usual->shift_ns;
	to->time_ns[OW_SIDE_B] = b->time_ns - usual->shift_ns;
	to->number[OW_SIDE_A] = a->number;
	to->number[OW_SIDE_B] = b->number;
	to->flow[OW_SIDE_A] = a->flow;
	to->flow[OW_SIDE_B] = b->flow;
	to->untimed = a->untimed | b->untimed;
	to->quiet = packet->smooth;
	to->turn = turn;
	to->order_ns = later == OW_SIDE_B ? b->order_ns : a->order_ns;
}

/* The meetings of a pair at this point: of the records that are ready, if the other one of the packet is earlier. */
static int meet_all(struct joint *j, const struct point *point, const struct side *side)
{
	const struct usual usual = j->usual[side->pass];
	const uint64_t pair = UINT64_C(1) << side->pass;
	struct ow_joint_packet *const *ready = point->packet;
	struct ow_joint_meetings *m = &j->meetings[side->pass][side->side];
	if (ow_joint_meetings_room(m, point->ready + 1, usual.plain) < 0)
		return -ENOMEM;
	struct ow_meeting *to = m->meeting;
	for (uint32_t i = 0, end = point->ready; i < end; i++) {
		struct ow_joint_packet *packet = ready[i];
		if (!(packet->met[side->side] & pair))
			continue;
		if (!usual.plain)
			ow_joint_meetings_keep(m, (size_t)(to - m->meeting),
			                       ow_joint_packets_records(&j->packets, packet), usual.from, usual.to,
			                       usual.shift_ns);
		meet(&usual, packet, side->side, i, to++);
	}
	m->count = (size_t)(to - m->meeting);
	return 0;
}

static int note_rough(struct point *point, int64_t order_ns, uint32_t before)
{
	if (OW_GROW(point->rough, point->rough_room, point->roughs + 1) < 0)
		return -ENOMEM;
	point->rough[point->roughs++] = (struct rough){order_ns, before};
	return 0;
}

static inline void load_soon(const struct joint *j, const struct held *held, unsigned p)
{
	__builtin_prefetch(held->packet, 1);
	__builtin_prefetch(&held->packet->at[p]);
	ow_recent_prefetch(j->recent, held->record.id);
}

/* The records of a point up to this time will have their turns now: decides their packets, notes those that are rough. */
static int decide_ready(struct joint *j, unsigned p, int64_t until_ns)
{
	struct point *point = &j->point[p];
	const struct held *const ring = point->ring;
	const uint32_t first = point->first, count = point->count, mask = point->size - 1;
	int64_t order_ns = INT64_MIN;
	uint32_t i = 0;
	if (OW_GROW(point->packet, point->packet_room, count + 1) < 0)
		return -ENOMEM;
	for (; i < count; i++) {
		const struct held *held = &ring[(first + i) & mask];
		struct ow_joint_packet *packet = held->packet;
		if (held->order_ns > until_ns)
			break;
		point->packet[i] = packet;
		if (i + TURNS_AHEAD < count)
			load_soon(j, &ring[(first + i + TURNS_AHEAD) & mask], p);
		order_ns = held->order_ns > order_ns ? held->order_ns : order_ns;
		if (!packet->decided)
			decide(j, packet);
		if (packet->smooth)
			ow_joint_packets_drop(&j->packets, packet);
		else if (note_rough(point, order_ns, i) < 0)
			return -ENOMEM;
	}
	point->ready = i;
	return 0;
}

/* Packets that are dropped here stay as they are until the next record is read. */
static int make_ready(struct joint *j, unsigned p, int64_t until_ns)
{
	struct point *point = &j->point[p];
	point->turned = 0;
	point->roughs = point->next_rough = 0;
	int r = decide_ready(j, p, until_ns);
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = meet_all(j, point, &j->side[p][n]);
	return r;
}

/* -- turns -------------------------------------------------------------------------------------------------------- */

static void note_next(struct point *point)
{
	point->next_ns = point->count ? held_at(point, 0)->order_ns : INT64_MAX;
}

/* Of its next record, in the time of a pair. */
static int64_t next_time(const struct point *point, int64_t shift_ns)
{
	return point->next_ns == INT64_MAX ? INT64_MAX : point->next_ns - shift_ns;
}

/* A point's turns of records in a row are over. time_ns: the latest of them. */
static void end_turns(struct joint *j, unsigned p, uint32_t count, int64_t time_ns)
{
	struct point *point = &j->point[p];
	point->first += count;
	point->count -= count;
	point->turned += count;
	point->turned_ns = time_ns > point->turned_ns ? time_ns : point->turned_ns;
	note_next(point);
}

/* Brings a pair up to the turns that its points had: its matcher expects what is pushed now. */
static int catch_up(struct joint *j, unsigned k)
{
	const struct usual *usual = &j->usual[k];
	const unsigned place[OW_SIDES] = {usual->from, usual->to};
	const uint32_t turned[OW_SIDES] = {j->point[usual->from].turned, j->point[usual->to].turned};
	int r = ow_joint_meetings_tell(j->meetings[k], turned, usual->plain, usual->first, &j->merged, j->matcher[k]);
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		const struct point *point = &j->point[place[side]];
		if (point->turned_ns != INT64_MIN)
			r = ow_matcher_skip(j->matcher[k], side, point->turned_ns - usual->shift_ns,
			                    next_time(&j->point[place[!side]], usual->shift_ns));
	}
	return r;
}

static int turn_at(struct joint *j, const struct side *s, const struct ow_record *record,
                   const struct ow_joint_packet *packet)
{
	struct ow_matcher *matcher = j->matcher[s->pass];
	int64_t shift_ns = j->usual[s->pass].shift_ns;
	bool later = packet->met[s->side] >> s->pass & 1;
	if (!later && !(packet->met[!s->side] >> s->pass & 1)) {
		struct ow_record pushed = *record;
		pushed.time_ns -= shift_ns;
		return ow_matcher_push(matcher, s->side, &pushed, next_time(&j->point[s->other], shift_ns));
	}
	if (later)
		ow_matcher_remember(matcher, packet->id, record->time_ns - shift_ns);
	return 0;
}

static int turn_rough(struct joint *j, unsigned p)
{
	struct point *point = &j->point[p];
	const struct held *held = held_at(point, 0);
	int r = 0;
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = catch_up(j, j->side[p][n].pass);
	point->next_rough++;
	end_turns(j, p, 1, held->record.time_ns);
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = turn_at(j, &j->side[p][n], &held->record, held->packet);
	ow_joint_packets_drop(&j->packets, held->packet);
	end_point(j, p);
	return r;
}

/* The point whose rough record is next; j->points when there is none. */
static unsigned next_rough(const struct joint *j)
{
	unsigned next = j->points;
	int64_t least_ns = INT64_MAX;
	for (unsigned p = 0; p < j->points; p++) {
		const struct point *point = &j->point[p];
		if (point->next_rough == point->roughs)
			continue;
		if (next == j->points || point->rough[point->next_rough].order_ns < least_ns) {
			next = p;
			least_ns = point->rough[point->next_rough].order_ns;
		}
	}
	return next;
}

/* The turns of the smooth records of a point that come before the next rough one, of point `next`. */
static void turn_smooth(struct joint *j, unsigned p, unsigned next)
{
	const struct point *point = &j->point[p];
	const bool own = point->next_rough < point->roughs;
	const uint32_t end = own ? point->rough[point->next_rough].before : point->ready;
	int64_t before_ns = INT64_MAX, latest_ns = INT64_MIN;
	uint32_t count = 0;
	if (p != next && next < j->points)
		before_ns = j->point[next].rough[j->point[next].next_rough].order_ns - (p > next);
	for (; count < end - point->turned && held_at(point, count)->order_ns <= before_ns; count++) {
		int64_t time_ns = held_at(point, count)->record.time_ns;
		latest_ns = time_ns > latest_ns ? time_ns : latest_ns;
	}
	if (count) {
		end_turns(j, p, count, latest_ns);
		end_point(j, p);
	}
}

/* The turns of all records that are ready. */
static int run_ready(struct joint *j)
{
	int r = 0;
	for (bool more = true; more && r == 0;) {
		unsigned next = next_rough(j);
		more = next < j->points;
		for (unsigned p = 0; p < j->points; p++)
			turn_smooth(j, p, next);
		if (more)
			r = turn_rough(j, next);
	}
	for (unsigned k = 0; k < j->passes && r == 0; k++)
		r = catch_up(j, k);
	return r;
}

/* Whether a point must be read further before a record of this time has its turn. */
static bool is_behind(const struct joint *j, const struct point *point, int64_t time_ns)
{
	if (!point->used || point->ended)
		return false;
	return !point->count || (point->newest_ns < time_ns + j->ahead_ns && point->count < HELD_MOST);
}

/* The point whose record is next; j->points at the end. */
static unsigned next_point(const struct joint *j)
{
	unsigned next = j->points;
	int64_t least_ns = INT64_MAX;
	for (unsigned p = 0; p < j->points; p++) {
		if (j->point[p].count && (next == j->points || j->point[p].next_ns < least_ns)) {
			next = p;
			least_ns = j->point[p].next_ns;
		}
	}
	return next;
}

/* Reads until all points are far enough ahead. ret_until_ns: turns up to this time need no more. */
static int read_ahead(struct joint *j, int64_t *ret_until_ns, struct ow_error *err)
{
	int r = 0;
	int64_t next_ns = INT64_MIN;
	find_ahead(j);
	for (bool more = true; more && r == 0;) {
		more = false;
		unsigned next = next_point(j);
		next_ns = next < j->points ? j->point[next].next_ns : INT64_MIN;
		for (unsigned p = 0; p < j->points && r == 0; p++) {
			if (!is_behind(j, &j->point[p], next_ns))
				continue;
			r = load(j, p, err);
			end_point(j, p);
			note_next(&j->point[p]);
			more = true;
		}
	}
	*ret_until_ns = INT64_MAX;
	for (unsigned p = 0; p < j->points && r == 0; p++) {
		struct point *point = &j->point[p];
		if (!point->used || point->ended)
			continue;
		int64_t until_ns = point->count >= HELD_MOST ? point->newest_ns - 1 : point->newest_ns - j->ahead_ns;
		int64_t last_ns = held_at(point, point->count - 1)->order_ns; /* what comes next may be as early */
		until_ns = last_ns < until_ns ? last_ns : until_ns;
		int64_t most_ns = point->count > READY_MOST ? held_at(point, READY_MOST)->order_ns : INT64_MAX;
		until_ns = most_ns < until_ns ? most_ns : until_ns;
		*ret_until_ns = until_ns < *ret_until_ns ? until_ns : *ret_until_ns;
	}
	*ret_until_ns = next_ns > *ret_until_ns ? next_ns : *ret_until_ns;
	return r;
}

static int check_all(const struct joint *j)
{
	int r = 0;
	for (unsigned k = 0; k < j->passes && r == 0; k++)
		r = j->set->pass[k]->failed;
	return r;
}

static int run_turns(struct joint *j, struct ow_error *err)
{
	struct ow_match_pass *first = j->set->pass[0];
	int r = 0;
	for (unsigned reads = 1; r == 0; reads++) {
		int64_t until_ns;
		r = read_ahead(j, &until_ns, err);
		if (r < 0 || next_point(j) == j->points)
			break;
		note_usual(j);
		for (unsigned p = 0; p < j->points && r == 0; p++)
			r = make_ready(j, p, until_ns);
		r = r == 0 ? run_ready(j) : r;
		r = r == 0 ? check_all(j) : r;
		if (reads % PROGRESS_EVERY == 0 && first->progress)
			first->progress(first->progress_arg);
	}
	return r;
}

/* -- the pass ----------------------------------------------------------------------------------------------------- */

/* The first pass that has a point reads it for all. */
static int open_point(struct joint *j, unsigned p, struct ow_match_pass *pass, enum ow_side side, struct ow_error *err)
{
	struct point *point = &j->point[p];
	const struct ow_time_base base = {.shift_ns = j->shift_ns[p]};
	*point =
		(struct point){.used = true, .next_ns = INT64_MAX, .turned_ns = INT64_MIN, .input = &pass->input[side]};
	j->all |= (uint16_t)(1u << p);
	j->points = p >= j->points ? p + 1 : j->points;
	point->input->wants_classes = false;
	for (unsigned k = 0; k < j->passes; k++)
		point->input->wants_classes |= j->set->pass[k]->events;
	int r = ow_record_reader_start(point->input, &pass->plan.identity, err);
	return r == 0 ? ow_record_batches_start(point->input, &base, &point->batches) : r;
}

static void open_pair(struct joint *j, unsigned k)
{
	const struct ow_path_pair *pair = &j->set->pair[k];
	j->usual[k] = (struct usual){
		.points = (uint16_t)(1u << pair->from | 1u << pair->to),
		.from = (uint8_t)pair->from,
		.to = (uint8_t)pair->to,
		.first = pair->from < pair->to,
		.plain = ow_match_pass_is_plain(j->set->pass[k]),
		.shift_ns = j->shift_ns[pair->from],
	};
	j->plain &= j->usual[k].plain;
}

static int begin(struct joint *j, struct ow_error *err)
{
	int r = ow_joint_shifts(j->set, j->set->passes, j->shift_ns) ? 0 : -EAGAIN;
	j->passes = j->set->passes;
	j->plain = true;
	for (unsigned k = 0; k < j->passes && r == 0; k++) {
		struct ow_match_pass *pass = j->set->pass[k];
		const unsigned place[OW_SIDES] = {j->set->pair[k].from, j->set->pair[k].to};
		open_pair(j, k);
		j->window_ns = pass->plan.window_ns > j->window_ns ? pass->plan.window_ns : j->window_ns;
		for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
			unsigned p = place[side];
			j->side[p][j->sides[p]++] = (struct side){k, side, place[!side]};
			if (!j->point[p].used)
				r = open_point(j, p, pass, side, err);
		}
		if (r == 0)
			r = ow_match_pass_begin(pass, &j->matcher[k]);
	}
	assert(j->passes > 0);
	j->all_pairs = UINT64_MAX >> (64 - j->passes);
	j->recent = ow_recent_create();
	if (r == 0 && !j->recent)
		r = -ENOMEM;
	return r == 0 ? ow_joint_packets_init(&j->packets, j->points, !j->plain) : r;
}

/* While the pass runs, all that share a point name flows as its reader does; afterwards each has its own table again. */
static void lend_flows(struct joint *j)
{
	for (unsigned k = 0; k < j->passes; k++) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			struct ow_record_reader *input = &j->set->pass[k]->input[side];
			j->flows[k][side] = input->flows;
			input->flows = j->point[ow_joint_point(j->set, k, side)].input->flows;
		}
	}
}

static void return_flows(struct joint *j)
{
	for (unsigned k = 0; k < j->passes; k++) {
		for (unsigned side = 0; side < OW_SIDES; side++)
			j->set->pass[k]->input[side].flows = j->flows[k][side];
	}
}

/* The other passes have the same flows and facts as the one that read the point. */
static int hand_on(struct joint *j)
{
	int r = 0;
	for (unsigned p = 0; p < j->points && r == 0; p++) {
		for (unsigned i = 0; i < j->sides[p] && r == 0; i++) {
			const struct side *s = &j->side[p][i];
			struct ow_record_reader *input = &j->set->pass[s->pass]->input[s->side];
			if (input != j->point[p].input)
				r = ow_record_reader_adopt(input, j->point[p].input);
		}
	}
	return r;
}

static int run(struct joint *j, struct ow_error *err)
{
	struct ow_record_batches *batches[OW_PATH_POINTS];
	unsigned inputs = 0;
	for (unsigned p = 0; p < j->points; p++) {
		if (j->point[p].used)
			batches[inputs++] = j->point[p].batches;
	}
	lend_flows(j);
	struct ow_readahead *readahead = ow_readahead_start(batches, inputs, ow_match_pass_threads(j->set->pass[0]));
	int r = run_turns(j, err);
	ow_readahead_leave(readahead);
	return_flows(j);
	return r == 0 ? hand_on(j) : r;
}

int ow_joint_pass_run(const struct ow_joint_pass *set, struct ow_error *err)
{
	struct joint *j = calloc(1, sizeof *j);
	if (!j)
		return ow_error_set(err, ENOMEM, "out of memory");
	j->set = set;
	int r = begin(j, err);
	if (r == 0)
		r = run(j, err);
	for (unsigned p = 0; p < OW_PATH_POINTS; p++) {
		ow_record_batches_stop(j->point[p].batches);
		free(j->point[p].ring);
		free(j->point[p].packet);
		free(j->point[p].rough);
	}
	for (unsigned k = 0; k < set->passes; k++) {
		int ended = j->matcher[k] ? ow_match_pass_end(set->pass[k], j->matcher[k], r) : r;
		r = r == 0 ? ended : r;
	}
	for (unsigned k = 0; k < set->passes; k++) {
		ow_joint_meetings_done(&j->meetings[k][OW_SIDE_A]);
		ow_joint_meetings_done(&j->meetings[k][OW_SIDE_B]);
	}
	ow_joint_meetings_done(&j->merged);
	ow_recent_free(j->recent);
	ow_joint_packets_done(&j->packets);
	free(j);
	return ow_match_pass_refuse(r, err);
}
