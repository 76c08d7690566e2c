/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records are read ahead of the matchers by the longest usual delay. When the first record of a packet has its turn, it is
 * known which points show the packet, and whether it is unique. Records have their turns in the order of time, as in a pass
 * of two points: in the turn of a record, each pair of its point either takes it as usual, or gets it pushed.
 */
#include "path/joint_pass.h"

#include "base/array.h"
#include "base/time.h"
#include "reconcile/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD_LEAST_NS OW_NS_PER_MS
#define AHEAD_NS       (10 * OW_NS_PER_MS) /* before the usual delays are known */
#define HELD_MOST      65536u              /* records of a point that are read ahead: 4 MB; a power of two */
#define PROGRESS_EVERY 256                 /* batches */
#define BUCKETS_LEAST  4096u
#define NO_ENTRY       UINT32_MAX
#define BLOCK          32                  /* records that are prefetched together */
#define PUSHED         (UINT64_C(1) << 41) /* another id in the same set of the table */
#define TURNS_AHEAD    8u                  /* records whose memory is loaded before their turn */

/* A record that has not had its turn. */
struct held {
	int64_t order_ns;
	uint32_t entry;
	uint32_t
		copy; /* where the record is, if it is not that of the entry, which has one of this point; else NO_ENTRY */
};

struct point {
	struct ow_record_batches *batches;
	struct ow_record_reader *input; /* of the pass that reads it */
	struct held *held;              /* a ring */
	uint32_t size, first, count;
	int64_t newest_ns, next_ns; /* of the last record that was read; of the next one: INT64_MAX at the end */
	bool used, ended, begun;
};

/* A packet, with a record for each point behind it, in the time of the first point. */
struct entry {
	uint64_t id;
	uint64_t usual;   /* bit k: pair k takes it as matched in the usual way */
	uint32_t next;    /* in its bucket */
	uint32_t records; /* that have not had their turn */
	uint16_t seen;    /* bit p: point p shows it */
	uint16_t turned;  /* bit p: and that had its turn */
	bool alike;       /* there are several with its id: the matchers compare them */
	bool decided;
	bool everywhere; /* all points show it, and all pairs take it as usual */
	struct ow_record at[];
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
	int64_t shift_ns[OW_PATH_POINTS]; /* added to the times of a point, for those of the first one */
	unsigned points;
	uint16_t all; /* bit p: point p is used */
	struct point point[OW_PATH_POINTS];
	struct side side[OW_PATH_POINTS][OW_PATH_PAIRS];
	unsigned sides[OW_PATH_POINTS];
	char *entry; /* of entry_size bytes each */
	size_t entry_size, entry_room;
	uint32_t entries;
	uint32_t *free; /* a stack, with room for all entries */
	size_t frees, free_room;
	struct ow_record *copy; /* records that held has */
	size_t copies, copy_room, copies_held;
	uint32_t *bucket;
	uint32_t buckets, hashed;
	struct ow_recent
		*recent; /* ids that matched at all points; changed by PUSHED, those that went through matchers */
	int64_t ahead_ns, window_ns;
};

/* -- which passes can run together -------------------------------------------------------------------------------- */

static bool is_special(const struct ow_match_pass *p)
{
	const struct ow_identity *identity = &p->plan.identity;
	bool special = !ow_match_pass_is_plain(p) || p->plan.untimed || p->plan.drift != 0 || identity->segments ||
	               identity->level == OW_LEVEL_NAT;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader *input = &p->input[side];
		special |= !input->lent || input->dedup || input->notes || input->cutter.there || p->aside[side] ||
		           input->choice.since_ns != INT64_MIN || input->choice.until_ns != INT64_MAX;
	}
	return special;
}

static bool same_identity(const struct ow_identity *a, const struct ow_identity *b)
{
	return a->level == b->level && a->inner == b->inner && a->segments == b->segments &&
	       a->any_ip_id == b->any_ip_id && a->tcp == b->tcp && a->tcp_headers == b->tcp_headers &&
	       a->pieces == b->pieces && a->cut == b->cut && a->hash_limit == b->hash_limit && a->key == b->key &&
	       memcmp(a->secret, b->secret, sizeof a->secret) == 0;
}

/* The shifts of all points that follow from those of pairs. False: they contradict each other. */
static bool find_shifts(const struct ow_joint_pass *set, unsigned passes, int64_t shift_ns[OW_PATH_POINTS])
{
	uint32_t known = UINT32_C(1) << set->pair[0].from, before = 0;
	shift_ns[set->pair[0].from] = 0;
	while (known != before) {
		before = known;
		for (unsigned k = 0; k < passes; k++) {
			unsigned from = set->pair[k].from, to = set->pair[k].to;
			int64_t shift = set->pass[k]->plan.shift_ns;
			if (known >> from & 1 && !(known >> to & 1))
				shift_ns[to] = shift_ns[from] + shift;
			else if (known >> to & 1 && !(known >> from & 1))
				shift_ns[from] = shift_ns[to] - shift;
			else if (known >> from & 1 && shift_ns[to] - shift_ns[from] != shift)
				return false;
			if ((known >> from | known >> to) & 1)
				known |= UINT32_C(1) << from | UINT32_C(1) << to;
		}
	}
	for (unsigned k = 0; k < passes; k++) {
		if (!(known >> set->pair[k].from & 1))
			return false;
	}
	return true;
}

static void swap(struct ow_joint_pass *set, unsigned a, unsigned b)
{
	struct ow_match_pass *pass = set->pass[a];
	struct ow_path_pair pair = set->pair[a];
	set->pass[a] = set->pass[b];
	set->pair[a] = set->pair[b];
	set->pass[b] = pass;
	set->pair[b] = pair;
}

/* Passes that share readers skip the same packets: those that do not pass a router, if any of the pairs has one. */
static void route_alike(struct ow_joint_pass *set, unsigned passes)
{
	bool routed = false;
	for (unsigned k = 0; k < passes; k++)
		routed |= set->pass[k]->plan.identity.routed;
	for (unsigned k = 0; k < passes; k++)
		set->pass[k]->plan.identity.routed = routed;
}

unsigned ow_joint_pass_select(struct ow_joint_pass *set)
{
	unsigned count = set->passes;
	int64_t shift_ns[OW_PATH_POINTS];
	for (unsigned k = 0; k < count;) {
		bool fits = !is_special(set->pass[k]) &&
		            same_identity(&set->pass[k]->plan.identity, &set->pass[0]->plan.identity);
		if (fits)
			k++;
		else
			swap(set, k, --count);
	}
	if (count < 2 || !find_shifts(set, count, shift_ns))
		return 0;
	route_alike(set, count);
	return count;
}

/* -- packets ------------------------------------------------------------------------------------------------------ */

static struct entry *entry_of(const struct joint *j, uint32_t i)
{
	return (struct entry *)(void *)(j->entry + (size_t)i * j->entry_size);
}

static uint32_t *bucket_of(const struct joint *j, uint64_t id)
{
	return &j->bucket[(uint32_t)(id >> 20) & (j->buckets - 1)];
}

static int grow_buckets(struct joint *j)
{
	uint32_t buckets = j->buckets ? 2 * j->buckets : BUCKETS_LEAST, *bucket = malloc(buckets * sizeof *bucket);
	if (!bucket)
		return -ENOMEM;
	memset(bucket, 0xff, buckets * sizeof *bucket);
	uint32_t *old = j->bucket, olds = j->buckets;
	j->bucket = bucket;
	j->buckets = buckets;
	for (uint32_t b = 0; b < olds; b++) {
		for (uint32_t i = old[b], next; i != NO_ENTRY; i = next) {
			struct entry *e = entry_of(j, i);
			next = e->next;
			e->next = *bucket_of(j, e->id);
			*bucket_of(j, e->id) = i;
		}
	}
	free(old);
	return 0;
}

static int make_entry(struct joint *j)
{
	if (OW_GROW(j->entry, j->entry_room, (size_t)(j->entries + 1) * j->entry_size) < 0 ||
	    OW_GROW(j->free, j->free_room, j->entries + 1) < 0)
		return -ENOMEM;
	j->free[j->frees++] = j->entries++;
	return 0;
}

static int new_entry(struct joint *j, uint64_t id, uint32_t *ret_entry)
{
	if (!j->frees && make_entry(j) < 0)
		return -ENOMEM;
	if (j->hashed >= j->buckets / 2 && grow_buckets(j) < 0)
		return -ENOMEM;
	if (j->frees > TURNS_AHEAD)
		__builtin_prefetch(entry_of(j, j->free[j->frees - TURNS_AHEAD]), 1);
	uint32_t i = j->free[--j->frees], *bucket = bucket_of(j, id);
	*entry_of(j, i) = (struct entry){.id = id, .next = *bucket};
	*bucket = i;
	j->hashed++;
	*ret_entry = i;
	return 0;
}

static void unhash(struct joint *j, uint32_t i)
{
	uint32_t *link = bucket_of(j, entry_of(j, i)->id);
	while (*link != i)
		link = &entry_of(j, *link)->next;
	*link = entry_of(j, i)->next;
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
	uint32_t i = *bucket_of(j, record->id);
	while (i != NO_ENTRY && entry_of(j, i)->id != record->id)
		i = entry_of(j, i)->next;
	if (i == NO_ENTRY) {
		int r = new_entry(j, record->id, &i);
		if (r < 0)
			return r;
		entry_of(j, i)->alike = came_before(j, record);
	}
	struct entry *e = entry_of(j, i);
	held->entry = i;
	held->copy = NO_ENTRY;
	e->records++;
	e->alike |= record->len != 0;
	if (e->seen >> p & 1) {
		e->alike = true;
		return enter_copy(j, record, held);
	}
	e->seen |= (uint16_t)(1u << p);
	e->at[p] = *record;
	return 0;
}

/* -- reading ------------------------------------------------------------------------------------------------------ */

static struct held *held_of(struct point *point, uint32_t i)
{
	return &point->held[(point->first + i) & (point->size - 1)];
}

static int grow_ring(struct point *point, uint32_t count)
{
	uint32_t size = point->size ? point->size : 2 * OW_RECORD_READER_BATCH;
	while (size < count)
		size *= 2;
	if (size == point->size)
		return 0;
	struct held *grown = malloc(size * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	for (uint32_t i = 0; i < point->count; i++)
		grown[i] = *held_of(point, i);
	free(point->held);
	point->held = grown;
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

/* What the records from here on will access: first where their packets are found, a block later the packets. */
static void prefetch(const struct joint *j, const struct ow_batch *batch, int from)
{
	int end = from + BLOCK < batch->count ? from + BLOCK : batch->count;
	int after = end + BLOCK < batch->count ? end + BLOCK : batch->count;
	for (int i = from; i < end; i++) {
		uint32_t e = *bucket_of(j, batch->record[i].id);
		if (e != NO_ENTRY)
			__builtin_prefetch(entry_of(j, e), 1);
		ow_recent_prefetch(j->recent, batch->record[i].id);
	}
	for (int i = end; i < after; i++)
		__builtin_prefetch(bucket_of(j, batch->record[i].id));
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
	r = grow_ring(point, point->count + (uint32_t)batch->count);
	if (r < 0)
		return r;
	note_batch(j, p, batch);
	prefetch(j, batch, 0);
	for (int i = 0; i < batch->count && r == 0; i++) {
		if (i % BLOCK == 0)
			prefetch(j, batch, i + BLOCK);
		struct held *held = held_of(point, point->count++);
		held->order_ns = batch->order_ns[i];
		r = enter(j, p, &batch->record[i], held);
	}
	int64_t newest_ns = batch->order_ns[batch->count - 1];
	point->newest_ns = newest_ns > point->newest_ns || !point->begun ? newest_ns : point->newest_ns;
	point->begun = true;
	return r;
}

/* The capture of a point is over, when its last record had its turn. */
static void end_point(struct joint *j, unsigned p)
{
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

/* -- turns -------------------------------------------------------------------------------------------------------- */

/* What is known now of a packet is final for the pairs that take it as usual. */
static void decide(struct joint *j, uint32_t i)
{
	struct entry *e = entry_of(j, i);
	unhash(j, i);
	e->decided = true;
	e->everywhere = e->seen == j->all;
	for (unsigned k = 0; k < j->set->passes; k++) {
		const struct ow_path_pair *pair = &j->set->pair[k];
		if (e->alike || !(e->seen >> pair->from & 1) || !(e->seen >> pair->to & 1)) {
			e->everywhere = false;
			continue;
		}
		int64_t shift_ns = j->shift_ns[pair->from];
		const int64_t time_ns[OW_SIDES] = {e->at[pair->from].time_ns - shift_ns,
		                                   e->at[pair->to].time_ns - shift_ns};
		if (ow_matcher_is_usual(j->matcher[k], time_ns))
			e->usual |= UINT64_C(1) << k;
		else
			e->everywhere = false;
	}
	ow_recent_add(j->recent, e->everywhere ? e->id : e->id ^ PUSHED, e->at[__builtin_ctz(e->seen)].time_ns);
}

static void meet(struct joint *j, const struct entry *e, unsigned k)
{
	const struct ow_path_pair *pair = &j->set->pair[k];
	const struct ow_record *a = &e->at[pair->from], *b = &e->at[pair->to];
	int64_t shift_ns = j->shift_ns[pair->from], later_ns = a->time_ns > b->time_ns ? a->time_ns : b->time_ns;
	ow_matcher_met(j->matcher[k], &(struct ow_meeting){.time_ns = {a->time_ns - shift_ns, b->time_ns - shift_ns},
	                                                   .number = {a->number, b->number},
	                                                   .flow = {a->flow, b->flow},
	                                                   .untimed = a->untimed | b->untimed,
	                                                   .quiet = e->everywhere});
	if (!e->everywhere)
		ow_matcher_remember(j->matcher[k], e->id, later_ns - shift_ns);
}

static int turn_at(struct joint *j, const struct side *s, const struct ow_record *record, const struct entry *e)
{
	struct ow_matcher *matcher = j->matcher[s->pass];
	int64_t shift_ns = j->shift_ns[j->set->pair[s->pass].from], other_ns = j->point[s->other].next_ns;
	other_ns -= other_ns == INT64_MAX ? 0 : shift_ns;
	if (!(e->usual >> s->pass & 1)) {
		struct ow_record pushed = *record;
		pushed.time_ns -= shift_ns;
		return ow_matcher_push(matcher, s->side, &pushed, other_ns);
	}
	int r = ow_matcher_skip(matcher, s->side, record->time_ns - shift_ns, other_ns);
	if (e->turned >> s->other & 1)
		meet(j, e, s->pass);
	return r;
}

static void note_next(struct point *point)
{
	point->next_ns = point->count ? held_of(point, 0)->order_ns : INT64_MAX;
}

static void leave(struct joint *j, const struct held *held)
{
	if (--entry_of(j, held->entry)->records == 0)
		j->free[j->frees++] = held->entry;
	if (held->copy != NO_ENTRY && --j->copies_held == 0)
		j->copies = 0;
}

static int turn(struct joint *j, unsigned p)
{
	struct point *point = &j->point[p];
	const struct held held = *held_of(point, 0);
	struct entry *e = entry_of(j, held.entry);
	const struct ow_record *record = held.copy == NO_ENTRY ? &e->at[p] : &j->copy[held.copy];
	point->first = (point->first + 1) & (point->size - 1);
	point->count--;
	note_next(point);
	if (point->count > TURNS_AHEAD) {
		const struct entry *soon = entry_of(j, held_of(point, TURNS_AHEAD)->entry);
		__builtin_prefetch(soon, 1);
		__builtin_prefetch(&soon->at[p]);
		const struct entry *sooner = entry_of(j, held_of(point, TURNS_AHEAD / 2)->entry);
		if (!sooner->decided)
			ow_recent_prefetch(j->recent, sooner->id);
	}
	if (!e->decided)
		decide(j, held.entry);
	int r = 0;
	for (unsigned n = 0; n < j->sides[p] && r == 0; n++)
		r = turn_at(j, &j->side[p][n], record, e);
	e->turned |= (uint16_t)(1u << p);
	leave(j, &held);
	if (!point->count && point->ended)
		end_point(j, p);
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
	find_ahead(j);
	for (bool more = true; more && r == 0;) {
		more = false;
		unsigned next = next_point(j);
		int64_t time_ns = next < j->points ? j->point[next].next_ns : INT64_MIN;
		for (unsigned p = 0; p < j->points && r == 0; p++) {
			if (!is_behind(j, &j->point[p], time_ns))
				continue;
			r = load(j, p, err);
			if (j->point[p].ended && !j->point[p].count)
				end_point(j, p);
			note_next(&j->point[p]);
			more = true;
		}
	}
	*ret_until_ns = INT64_MAX;
	for (unsigned p = 0; p < j->points; p++) {
		const struct point *point = &j->point[p];
		int64_t until_ns = point->count >= HELD_MOST ? point->newest_ns - 1 : point->newest_ns - j->ahead_ns;
		if (point->used && !point->ended && until_ns < *ret_until_ns)
			*ret_until_ns = until_ns;
	}
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
	int64_t until_ns;
	int r = read_ahead(j, &until_ns, err);
	for (unsigned reads = 0, p; r == 0 && (p = next_point(j)) < j->points;) {
		if (j->point[p].next_ns > until_ns) {
			r = read_ahead(j, &until_ns, err);
			if (++reads % PROGRESS_EVERY == 0 && first->progress)
				first->progress(first->progress_arg);
			r = r == 0 ? check_all(j) : r;
			p = next_point(j);
		}
		if (r == 0)
			r = turn(j, p);
		if (!j->point[p].count && !j->point[p].ended)
			until_ns = INT64_MIN;
	}
	return r == 0 ? check_all(j) : r;
}

/* -- the pass ----------------------------------------------------------------------------------------------------- */

/* The first pass that has a point reads it for all. */
static int open_point(struct joint *j, unsigned p, struct ow_match_pass *pass, enum ow_side side, struct ow_error *err)
{
	struct point *point = &j->point[p];
	const struct ow_time_base base = {.shift_ns = j->shift_ns[p]};
	*point = (struct point){.used = true, .next_ns = INT64_MAX, .input = &pass->input[side]};
	j->all |= (uint16_t)(1u << p);
	j->points = p >= j->points ? p + 1 : j->points;
	int r = ow_record_reader_start(point->input, &pass->plan.identity, err);
	return r == 0 ? ow_record_batches_start(point->input, &base, &point->batches) : r;
}

static int begin(struct joint *j, struct ow_error *err)
{
	int r = find_shifts(j->set, j->set->passes, j->shift_ns) ? 0 : -EAGAIN;
	for (unsigned k = 0; k < j->set->passes && r == 0; k++) {
		struct ow_match_pass *pass = j->set->pass[k];
		const unsigned place[OW_SIDES] = {j->set->pair[k].from, j->set->pair[k].to};
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
	j->entry_size = sizeof(struct entry) + j->points * sizeof(struct ow_record);
	j->recent = ow_recent_create();
	if (r == 0 && !j->recent)
		r = -ENOMEM;
	return r == 0 ? grow_buckets(j) : r;
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
	struct ow_readahead *readahead = ow_readahead_start(batches, inputs, ow_match_pass_threads(j->set->pass[0]));
	int r = run_turns(j, err);
	ow_readahead_leave(readahead);
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
		free(j->point[p].held);
	}
	for (unsigned k = 0; k < set->passes; k++) {
		int ended = j->matcher[k] ? ow_match_pass_end(set->pass[k], j->matcher[k], r) : r;
		r = r == 0 ? ended : r;
	}
	ow_recent_free(j->recent);
	free(j->entry);
	free(j->free);
	free(j->copy);
	free(j->bucket);
	free(j);
	return r == -ENOMEM ? ow_error_set(err, ENOMEM, "out of memory") : r;
}
