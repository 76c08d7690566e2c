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
#include "reconcile/recent.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD_LEAST_NS OW_NS_PER_MS
#define AHEAD_NS       (10 * OW_NS_PER_MS) /* before the usual delays are known */
#define HELD_MOST      65536u              /* records of a point that are read ahead: 5 MB */
#define PROGRESS_EVERY 256                 /* batches */
#define BUCKETS_LEAST  4096u
#define ENTRIES        256 /* that are allocated together */
#define NO_COPY        UINT32_MAX
#define BLOCK          16                  /* records before its turn the memory of one is loaded */
#define PUSHED         (UINT64_C(1) << 41) /* another id in the same set of the table */
#define TURNS_AHEAD    8                   /* records whose memory is loaded before their turn */
#define READY_MOST     256u                /* records of a point that have their turns together, if times differ */

struct entry;

/* A record that has not had its turn. */
struct held {
	int64_t order_ns;
	struct entry *entry;
	uint32_t copy; /* where the record is, if the entry has another one of this point; else NO_COPY */
};

/* A record that is ready for its turn, of a packet that is not smooth. */
struct rough {
	int64_t order_ns; /* its own, or that of a later one before it */
	uint32_t before;  /* records of its point that have their turns before it, of those that are ready */
};

struct point {
	struct ow_record_batches *batches;
	struct ow_record_reader *input; /* of the pass that reads it */
	struct held *all;               /* records, of which the first ones had their turn, .. */
	struct held *held;              /* .. from here on they did not */
	uint32_t size, count;
	uint32_t ready;      /* the first ones: their packets are decided */
	struct rough *rough; /* of those that are ready */
	size_t roughs, rough_room, next_rough;
	uint32_t turned;            /* of those that were ready together */
	int64_t turned_ns;          /* latest time of a record that had its turn; INT64_MIN: there was none */
	int64_t newest_ns, next_ns; /* of the last record that was read; of the next one: INT64_MAX at the end */
	bool used, ended, begun;
};

/* How a point shows a packet. */
struct showing {
	struct ow_record record;
	int64_t order_ns;
};

/* A packet, with a record for each point behind it, in the time of the first point. */
struct entry {
	uint64_t id;
	uint64_t usual; /* bit k: pair k takes it as matched in the usual way */
	uint64_t at_to; /* bit k: when its second point shows it, because that is later; else when the first one does */
	struct entry *next;  /* in its bucket, or of those that are not used */
	struct entry **link; /* to it, in its bucket */
	uint32_t records;    /* that have not had their turn */
	uint16_t seen;       /* bit p: point p shows it */
	bool alike;          /* there are several with its id: the matchers compare them */
	bool decided;
	bool smooth; /* all points show it, and all pairs take it as usual */
	struct showing at[];
};

/* What the pairs take as usual, while records that are ready have their turns. */
struct usual {
	uint16_t points; /* bits of both */
	uint8_t from, to;
	bool plain;                    /* its pass takes meetings */
	int64_t shift_ns;              /* of the pair's first point */
	struct ow_usual_delays delays; /* in the time of the first point */
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
	unsigned points;
	uint16_t all; /* bit p: point p is used */
	uint64_t all_pairs;
	struct point point[OW_PATH_POINTS];
	struct side side[OW_PATH_POINTS][OW_PATH_PAIRS];
	unsigned sides[OW_PATH_POINTS];
	uint64_t first_of[OW_PATH_POINTS], second_of[OW_PATH_POINTS]; /* bit k: of pair k */
	char **block;                                                 /* of entries */
	size_t blocks, block_room, entry_size;
	struct entry *unused;
	struct ow_record *copy; /* records that held has */
	size_t copies, copy_room, copies_held;
	struct entry **bucket;
	uint32_t buckets, hashed;
	struct ow_recent
		*recent; /* ids that matched at all points; changed by PUSHED, those that went through matchers */
	int64_t ahead_ns, window_ns;
	struct ow_flow_table *flows[OW_PATH_PAIRS][OW_SIDES]; /* of passes that use those of the reader of the point */
};

/* -- packets ------------------------------------------------------------------------------------------------------ */

static struct entry **bucket_of(const struct joint *j, uint64_t id)
{
	return &j->bucket[(uint32_t)(id >> 20) & (j->buckets - 1)];
}

static void hash(const struct joint *j, struct entry *e)
{
	struct entry **bucket = bucket_of(j, e->id);
	e->next = *bucket;
	e->link = bucket;
	if (e->next)
		e->next->link = &e->next;
	*bucket = e;
}

static int grow_buckets(struct joint *j)
{
	uint32_t buckets = j->buckets ? 2 * j->buckets : BUCKETS_LEAST, olds = j->buckets;
	struct entry **bucket = calloc(buckets, sizeof *bucket), **old = j->bucket;
	if (!bucket)
		return -ENOMEM;
	j->bucket = bucket;
	j->buckets = buckets;
	for (uint32_t b = 0; b < olds; b++) {
		for (struct entry *e = old[b], *next; e; e = next) {
			next = e->next;
			hash(j, e);
		}
	}
	free(old);
	return 0;
}

static int make_entries(struct joint *j)
{
	if (OW_GROW(j->block, j->block_room, j->blocks + 1) < 0)
		return -ENOMEM;
	char *block = malloc(ENTRIES * j->entry_size);
	if (!block)
		return -ENOMEM;
	j->block[j->blocks++] = block;
	for (unsigned i = ENTRIES; i-- > 0;) {
		struct entry *e = (struct entry *)(void *)(block + i * j->entry_size);
		e->next = j->unused;
		j->unused = e;
	}
	return 0;
}

/* NULL: out of memory. */
static struct entry *new_entry(struct joint *j, uint64_t id)
{
	if (!j->unused && make_entries(j) < 0)
		return NULL;
	if (j->hashed >= j->buckets / 2 && grow_buckets(j) < 0)
		return NULL;
	struct entry *e = j->unused;
	j->unused = e->next;
	__builtin_prefetch(j->unused, 1);
	*e = (struct entry){.id = id};
	hash(j, e);
	j->hashed++;
	return e;
}

static void unhash(struct joint *j, const struct entry *e)
{
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	j->hashed--;
}

/* Copies of packets that matched, or went through the matchers, do so, too. */
static bool came_before(struct joint *j, const struct ow_record *record)
{
	if (ow_recent_has(j->recent, record->id, record->time_ns, j->window_ns)) {
		for (unsigned k = 0; k < j->set->passes; k++)
			ow_matcher_remember(j->matcher[k], record->id,
			                    record->time_ns - j->shift_ns[j->set->pair[k].from]);
		return true;
	}
	return ow_recent_has(j->recent, record->id ^ PUSHED, record->time_ns, j->window_ns);
}

/* Copies are rare: their room is used again when there are none. */
static int enter_copy(struct joint *j, const struct ow_record *record, struct held *held)
{
	if (OW_GROW(j->copy, j->copy_room, j->copies + 1) < 0)
		return -ENOMEM;
	held->copy = (uint32_t)j->copies;
	j->copy[j->copies++] = *record;
	j->copies_held++;
	return 0;
}

static int enter(struct joint *j, unsigned p, const struct ow_record *record, struct held *held)
{
	struct entry *e = *bucket_of(j, record->id);
	while (e && e->id != record->id)
		e = e->next;
	if (!e) {
		e = new_entry(j, record->id);
		if (!e)
			return -ENOMEM;
		e->alike = came_before(j, record);
	}
	held->entry = e;
	held->copy = NO_COPY;
	e->records++;
	e->alike |= record->len != 0;
	if (e->seen >> p & 1) {
		e->alike = true;
		return enter_copy(j, record, held);
	}
	e->seen |= (uint16_t)(1u << p);
	e->at[p].record = *record;
	e->at[p].order_ns = held->order_ns;
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

/* Makes room for records after those that are held. */
static int hold_more(struct point *point, uint32_t count)
{
	uint32_t needed = point->count + count, size = point->size;
	if (point->all && (size_t)(point->held - point->all) + needed <= size)
		return 0;
	/* There is as much room as is held: they are moved once for as many that are read. */
	while (size < 2 * needed)
		size = size ? 2 * size : 4 * OW_RECORD_READER_BATCH;
	struct held *all = size == point->size ? point->all : malloc(size * sizeof *all);
	if (!all)
		return -ENOMEM;
	if (point->count)
		memmove(all, point->held, point->count * sizeof *all);
	if (all != point->all)
		free(point->all);
	point->all = point->held = all;
	point->size = size;
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
static void prefetch(const struct joint *j, const struct ow_batch *batch, int i)
{
	if (i + 2 * BLOCK < batch->count)
		__builtin_prefetch(bucket_of(j, batch->record[i + 2 * BLOCK].id));
	if (i + BLOCK < batch->count) {
		uint64_t id = batch->record[i + BLOCK].id;
		const struct entry *e = *bucket_of(j, id);
		/* Only the first record of a packet is looked up there: its bucket is usually empty. */
		if (e)
			__builtin_prefetch(e, 1);
		else
			ow_recent_prefetch(j->recent, id);
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
		prefetch(j, batch, i);
	for (int i = 0; i < batch->count && r == 0; i++) {
		prefetch(j, batch, i);
		struct held *held = &point->held[point->count++];
		held->order_ns = batch->order_ns[i];
		r = enter(j, p, &batch->record[i], held);
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
	for (unsigned k = 0; k < j->set->passes; k++) {
		int64_t ns = ow_matcher_longest(j->matcher[k]);
		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	longest_ns = longest_ns / 8 * 5;
	j->ahead_ns = !longest_ns ? AHEAD_NS : longest_ns > AHEAD_LEAST_NS ? longest_ns : AHEAD_LEAST_NS;
}

/* -- decisions ---------------------------------------------------------------------------------------------------- */

static void note_usual(struct joint *j)
{
	for (unsigned k = 0; k < j->set->passes; k++) {
		const struct ow_path_pair *pair = &j->set->pair[k];
		struct usual *usual = &j->usual[k];
		usual->from = (uint8_t)pair->from;
		usual->to = (uint8_t)pair->to;
		usual->points = (uint16_t)(1u << pair->from | 1u << pair->to);
		usual->plain = ow_match_pass_is_plain(j->set->pass[k]);
		usual->shift_ns = j->shift_ns[pair->from];
		ow_matcher_usual(j->matcher[k], &usual->delays);
		if (usual->delays.from_ns != INT64_MIN)
			usual->delays.from_ns += usual->shift_ns;
	}
}

static bool is_usual(const struct usual *usual, int64_t from_ns, int64_t to_ns)
{
	int64_t delay = to_ns - from_ns, size = delay >= 0 ? delay : -delay;
	const enum ow_direction way = delay >= 0 ? OW_A_TO_B : OW_B_TO_A;
	return (size >= usual->delays.low_ns[way]) & (size <= usual->delays.high_ns[way]) &
	       ((delay >= 0 ? to_ns : from_ns) >= usual->delays.from_ns);
}

/* What is known now of a packet is final for the pairs that take it as usual. */
static void decide(struct joint *j, struct entry *e)
{
	int64_t time_ns[OW_PATH_POINTS], order_ns[OW_PATH_POINTS];
	uint64_t taken = 0, at_to = 0;
	unhash(j, e);
	for (unsigned p = 0; p < j->points; p++) {
		bool seen = e->seen >> p & 1;
		time_ns[p] = seen ? e->at[p].record.time_ns : 0;
		order_ns[p] = seen ? e->at[p].order_ns : 0;
	}
	for (unsigned k = 0; k < j->set->passes && !e->alike; k++) {
		const struct usual *usual = &j->usual[k];
		unsigned from = usual->from, to = usual->to;
		bool both = (e->seen & usual->points) == usual->points;
		/* Of two records of the same time, that of the first point has its turn first. */
		taken |= (uint64_t)(both & is_usual(usual, time_ns[from], time_ns[to])) << k;
		/* cppcheck-suppress uninitvar ; from and to are below j->points */
		at_to |= (uint64_t)(order_ns[from] < order_ns[to] + (from < to)) << k;
	}
	e->decided = true;
	e->usual = taken;
	e->at_to = at_to;
	e->smooth = e->seen == j->all && taken == j->all_pairs;
	ow_recent_add(j->recent, e->smooth ? e->id : e->id ^ PUSHED, time_ns[__builtin_ctz(e->seen)]);
}

static void load_soon(const struct joint *j, const struct held *held, unsigned p)
{
	__builtin_prefetch(held[TURNS_AHEAD].entry, 1);
	__builtin_prefetch(&held[TURNS_AHEAD].entry->at[p]);
	ow_recent_prefetch(j->recent, held[TURNS_AHEAD / 2].entry->id);
}

/* The records of a point up to this time will have their turns now. */
static int make_ready(struct joint *j, unsigned p, int64_t until_ns)
{
	struct point *point = &j->point[p];
	const struct held *held = point->held, *end = held + point->count;
	int64_t order_ns = INT64_MIN;
	point->turned = 0;
	point->roughs = point->next_rough = 0;
	for (; held < end && held->order_ns <= until_ns; held++) {
		if (end - held > TURNS_AHEAD)
			load_soon(j, held, p);
		order_ns = held->order_ns > order_ns ? held->order_ns : order_ns;
		if (!held->entry->decided)
			decide(j, held->entry);
		if (held->entry->smooth)
			continue;
		if (OW_GROW(point->rough, point->rough_room, point->roughs + 1) < 0)
			return -ENOMEM;
		point->rough[point->roughs++] = (struct rough){order_ns, (uint32_t)(held - point->held)};
	}
	point->ready = (uint32_t)(held - point->held);
	return 0;
}

/* -- turns -------------------------------------------------------------------------------------------------------- */

/* There is room for it. */
static void meet(struct joint *j, const struct entry *e, unsigned k, enum ow_side later)
{
	const struct usual *usual = &j->usual[k];
	const struct showing *a = &e->at[usual->from], *b = &e->at[usual->to];
	struct ow_joint_meetings *m = &j->meetings[k][later];
	size_t i = m->count++;
	m->order_ns[i] = later == OW_SIDE_B ? b->order_ns : a->order_ns;
	if (!usual->plain) {
		struct ow_record *record = m->both[i].record;
		record[OW_SIDE_A] = a->record;
		record[OW_SIDE_B] = b->record;
		record[OW_SIDE_A].time_ns -= usual->shift_ns;
		record[OW_SIDE_B].time_ns -= usual->shift_ns;
		return;
	}
	struct ow_meeting *meeting = &m->meeting[i];
	meeting->time_ns[OW_SIDE_A] = a->record.time_ns - usual->shift_ns;
	meeting->time_ns[OW_SIDE_B] = b->record.time_ns - usual->shift_ns;
	meeting->number[OW_SIDE_A] = a->record.number;
	meeting->number[OW_SIDE_B] = b->record.number;
	meeting->flow[OW_SIDE_A] = a->record.flow;
	meeting->flow[OW_SIDE_B] = b->record.flow;
	meeting->untimed = a->record.untimed | b->record.untimed;
	meeting->quiet = e->smooth;
}

static void note_next(struct point *point)
{
	point->next_ns = point->count ? point->held->order_ns : INT64_MAX;
}

static void drop(struct joint *j, struct entry *e)
{
	if (--e->records == 0) {
		e->next = j->unused;
		j->unused = e;
	}
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
	point->held += count;
	point->count -= count;
	point->turned += count;
	point->turned_ns = time_ns > point->turned_ns ? time_ns : point->turned_ns;
	note_next(point);
}

static int make_room_at(struct joint *j, unsigned p, uint32_t count)
{
	int r = 0;
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++) {
		unsigned k = j->side[p][n].pass;
		struct ow_joint_meetings *m = &j->meetings[k][j->side[p][n].side];
		r = ow_joint_meetings_room(m, m->count + count, j->usual[k].plain);
	}
	return r;
}

/* The turns of records of smooth packets. */
static int turn_smooth(struct joint *j, unsigned p, uint32_t count)
{
	const struct held *held = j->point[p].held, *end = held + count;
	uint64_t first_of = j->first_of[p], second_of = j->second_of[p];
	int64_t latest_ns = INT64_MIN;
	if (make_room_at(j, p, count) < 0)
		return -ENOMEM;
	for (; held < end; held++) {
		struct entry *e = held->entry;
		if (end - held > TURNS_AHEAD)
			__builtin_prefetch(held[TURNS_AHEAD].entry, 1);
		for (uint64_t pairs = e->at_to & second_of; pairs; pairs &= pairs - 1)
			meet(j, e, (unsigned)__builtin_ctzll(pairs), OW_SIDE_B);
		for (uint64_t pairs = ~e->at_to & first_of; pairs; pairs &= pairs - 1)
			meet(j, e, (unsigned)__builtin_ctzll(pairs), OW_SIDE_A);
		latest_ns = e->at[p].record.time_ns > latest_ns ? e->at[p].record.time_ns : latest_ns;
		drop(j, e);
	}
	end_turns(j, p, count, latest_ns);
	end_point(j, p);
	return 0;
}

/* Brings a pair up to the turns that its points had: its matcher expects what is pushed now. */
static int catch_up(struct joint *j, unsigned k)
{
	const struct usual *usual = &j->usual[k];
	int r = ow_joint_meetings_tell(j->meetings[k], usual->plain, usual->from < usual->to, &j->merged,
	                               j->matcher[k]);
	const unsigned place[OW_SIDES] = {j->set->pair[k].from, j->set->pair[k].to};
	int64_t shift_ns = j->shift_ns[place[OW_SIDE_A]];
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		const struct point *point = &j->point[place[side]];
		if (point->turned_ns != INT64_MIN)
			r = ow_matcher_skip(j->matcher[k], side, point->turned_ns - shift_ns,
			                    next_time(&j->point[place[!side]], shift_ns));
	}
	return r;
}

static int turn_at(struct joint *j, const struct side *s, const struct ow_record *record, const struct entry *e)
{
	struct ow_matcher *matcher = j->matcher[s->pass];
	int64_t shift_ns = j->shift_ns[j->set->pair[s->pass].from];
	bool later = (e->at_to >> s->pass & 1) == (s->side == OW_SIDE_B);
	if (!(e->usual >> s->pass & 1)) {
		struct ow_record pushed = *record;
		pushed.time_ns -= shift_ns;
		return ow_matcher_push(matcher, s->side, &pushed, next_time(&j->point[s->other], shift_ns));
	}
	if (later) {
		ow_matcher_remember(matcher, e->id, record->time_ns - shift_ns);
		meet(j, e, s->pass, s->side);
	}
	return 0;
}

static int turn_rough(struct joint *j, unsigned p)
{
	struct point *point = &j->point[p];
	const struct held held = *point->held;
	const struct ow_record record = held.copy == NO_COPY ? held.entry->at[p].record : j->copy[held.copy];
	int r = make_room_at(j, p, 1);
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = catch_up(j, j->side[p][n].pass);
	point->next_rough++;
	end_turns(j, p, 1, record.time_ns);
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = turn_at(j, &j->side[p][n], &record, held.entry);
	drop(j, held.entry);
	if (held.copy != NO_COPY && --j->copies_held == 0)
		j->copies = 0;
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

/* How many smooth records of a point come before the next rough one, of point `next`. */
static uint32_t smooth_before(struct joint *j, unsigned p, unsigned next)
{
	struct point *point = &j->point[p];
	uint32_t left = point->ready - point->turned, count = 0;
	if (point->next_rough < point->roughs)
		left = point->rough[point->next_rough].before - point->turned;
	if (p == next || next == j->points)
		return left;
	int64_t before_ns = j->point[next].rough[j->point[next].next_rough].order_ns - (p > next);
	while (count < left && point->held[count].order_ns <= before_ns)
		count++;
	return count;
}

/* The turns of all records that are ready. */
static int run_ready(struct joint *j)
{
	int r = 0;
	for (bool more = true; more && r == 0;) {
		unsigned next = next_rough(j);
		more = next < j->points;
		for (unsigned p = 0; p < j->points && r == 0; p++) {
			uint32_t smooth = smooth_before(j, p, next);
			if (smooth)
				r = turn_smooth(j, p, smooth);
		}
		if (more && r == 0)
			r = turn_rough(j, next);
	}
	for (unsigned k = 0; k < j->set->passes && r == 0; k++)
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
		int64_t last_ns = point->held[point->count - 1].order_ns; /* what comes next may be as early */
		until_ns = last_ns < until_ns ? last_ns : until_ns;
		int64_t most_ns = point->count > READY_MOST ? point->held[READY_MOST].order_ns : INT64_MAX;
		until_ns = most_ns < until_ns ? most_ns : until_ns;
		*ret_until_ns = until_ns < *ret_until_ns ? until_ns : *ret_until_ns;
	}
	*ret_until_ns = next_ns > *ret_until_ns ? next_ns : *ret_until_ns;
	return r;
}

static int check_all(const struct joint *j)
{
	int r = 0;
	for (unsigned k = 0; k < j->set->passes && r == 0; k++)
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
	for (unsigned k = 0; k < j->set->passes; k++)
		point->input->wants_classes |= j->set->pass[k]->events;
	int r = ow_record_reader_start(point->input, &pass->plan.identity, err);
	return r == 0 ? ow_record_batches_start(point->input, &base, &point->batches) : r;
}

static int begin(struct joint *j, struct ow_error *err)
{
	int r = ow_joint_shifts(j->set, j->set->passes, j->shift_ns) ? 0 : -EAGAIN;
	for (unsigned k = 0; k < j->set->passes && r == 0; k++) {
		struct ow_match_pass *pass = j->set->pass[k];
		const unsigned place[OW_SIDES] = {j->set->pair[k].from, j->set->pair[k].to};
		j->window_ns = pass->plan.window_ns > j->window_ns ? pass->plan.window_ns : j->window_ns;
		for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
			unsigned p = place[side];
			j->side[p][j->sides[p]++] = (struct side){k, side, place[!side]};
			*(side == OW_SIDE_A ? &j->first_of[p] : &j->second_of[p]) |= UINT64_C(1) << k;
			if (!j->point[p].used)
				r = open_point(j, p, pass, side, err);
		}
		if (r == 0)
			r = ow_match_pass_begin(pass, &j->matcher[k]);
	}
	assert(j->set->passes > 0);
	j->all_pairs = UINT64_MAX >> (64 - j->set->passes);
	j->entry_size = sizeof(struct entry) + j->points * sizeof(struct showing);
	j->recent = ow_recent_create();
	if (r == 0 && !j->recent)
		r = -ENOMEM;
	return r == 0 ? grow_buckets(j) : r;
}

/* While the pass runs, all that share a point name flows as its reader does; afterwards each has its own table again. */
static void lend_flows(struct joint *j)
{
	for (unsigned k = 0; k < j->set->passes; k++) {
		for (unsigned side = 0; side < OW_SIDES; side++) {
			struct ow_record_reader *input = &j->set->pass[k]->input[side];
			j->flows[k][side] = input->flows;
			input->flows = j->point[ow_joint_point(j->set, k, side)].input->flows;
		}
	}
}

static void return_flows(struct joint *j)
{
	for (unsigned k = 0; k < j->set->passes; k++) {
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
		free(j->point[p].all);
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
	while (j->blocks)
		free(j->block[--j->blocks]);
	free(j->block);
	free(j->copy);
	free(j->bucket);
	free(j);
	return ow_match_pass_refuse(r, err);
}
