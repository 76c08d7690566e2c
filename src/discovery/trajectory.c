/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From sightings to trajectories: which sightings are of one packet, and which came first. Facts about pairs of
 * vantages (rewritten TTLs, bridges, clock bounds, twins) come from all packets of the batch, so there are several
 * passes over them. discovery/join.h has the rules.
 */
#include "base/array.h"
#include "discovery/join_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_MAX_NS  INT64_C(3000000000) /* of one packet; clocks and delays together */
#define COPIES_MAX   2
#define TTL_FAR      40 /* no path has so many routers: somebody rewrote the TTL */
#define FAR_PACKETS  2
#define FAR_SHARE    0.02
#define RANGE_LESS   20 /* TTLs at the side behind the rewriting device vary by so much less */
#define BRIDGE_EQUAL 3
#define SLACK_NS     1000000 /* drift of 30 ppm over an epoch, twice and more */
#define TWIN_PACKETS 8
#define TWIN_ERRORS  4.0
#define TWINS_MAX    2048 /* pairs in a batch; few vantages are taps */
#define ALIASES_MAX  65536

/* -- sightings ------------------------------------------------------------------------------------------------------ */

static int collect_message(struct ow_join *join, uint32_t vantage, const struct ow_join_message *m, bool now)
{
	if (OW_GROW(join->sighting, join->sighting_room, join->sightings + m->count + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->count; i++) {
		const struct ow_sample_record *r = &m->record[i];
		if (m->used[i])
			continue;
		join->sighting[join->sightings++] = (struct ow_join_sighting){.id = r->id,
		                                                              .time_ns = r->time_ns,
		                                                              .flow = r->flow,
		                                                              .vantage = (uint16_t)vantage,
		                                                              .record = (uint16_t)i,
		                                                              .ttl = r->ttl,
		                                                              .outer_ttl = r->outer_ttl,
		                                                              .copies = r->copies,
		                                                              .now = now};
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct ow_join_sighting *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->vantage != y->vantage)
		return x->vantage < y->vantage ? -1 : 1;
	return x->now - y->now;
}

static int collect(struct ow_join *join, int64_t epoch)
{
	int r = 0;
	join->sightings = 0;
	for (uint32_t i = 0; i < join->vantages && r == 0; i++) {
		struct ow_join_message *before = ow_join_message_of(&join->vantage[i], epoch - 1);
		struct ow_join_message *now = ow_join_message_of(&join->vantage[i], epoch);
		/* A clock that was set in between shows times that mean two things. */
		if (before && now && before->clock_generation != now->clock_generation)
			continue;
		if (before)
			r = collect_message(join, i, before, false);
		if (r == 0 && now)
			r = collect_message(join, i, now, true);
	}
	if (r == 0 && join->sightings)
		qsort(join->sighting, join->sightings, sizeof *join->sighting, by_id);
	return r;
}

/* -- flows: NAT changes their hash --------------------------------------------------------------------------------- */

static uint32_t alias_at(const struct ow_join *join, uint32_t flow)
{
	return OW_ID_MAP_FIND(&join->alias_map, flow, i, join->alias[i].flow == flow);
}

uint32_t ow_join_flow_of(const struct ow_join *join, uint32_t flow)
{
	if (join->aliases == 0)
		return flow;
	for (uint32_t at; (at = alias_at(join, flow)) != OW_ID_MAP_NONE && join->alias[at].same != flow;)
		flow = join->alias[at].same;
	return flow;
}

/* A flow points to a smaller one, so there are no circles. */
static int same_flow(struct ow_join *join, uint32_t x, uint32_t y)
{
	x = ow_join_flow_of(join, x);
	y = ow_join_flow_of(join, y);
	uint32_t small = x < y ? x : y, large = x < y ? y : x;
	if (small == large)
		return 0;
	if (join->aliases == ALIASES_MAX) {
		join->aliases = 0;
		ow_id_map_clear(&join->alias_map);
	}
	if (OW_GROW(join->alias, join->alias_room, join->aliases + 1) < 0 ||
	    ow_id_map_add(&join->alias_map, large, join->aliases) < 0)
		return -ENOMEM;
	join->alias[join->aliases].flow = large;
	join->alias[join->aliases++].same = small;
	return 0;
}

/* -- groups --------------------------------------------------------------------------------------------------------- */

/* Whether it left a point with a larger TTL than it came in: the point sets TTLs, and those before it and behind it do not
 * tell the order. TTLs that are far apart are recognised without this. */
static bool is_rewritten(const struct ow_join *join, const struct ow_join_sighting *s, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct ow_join_vantage *in = &join->vantage[s[i].vantage];
		for (uint32_t j = 0; j < count && in->kind == OW_VANTAGE_IN; j++) {
			const struct ow_join_vantage *out = &join->vantage[s[j].vantage];
			if (out->kind == OW_VANTAGE_OUT && out->clock == in->clock && s[j].time_ns > s[i].time_ns &&
			    s[j].ttl > s[i].ttl && s[j].ttl - s[i].ttl <= TTL_FAR)
				return true;
		}
	}
	return false;
}

/* Whether the sightings from s on are a packet that can be used; else the reason is counted. */
static bool usable(struct ow_join *join, const struct ow_join_sighting *s, uint32_t count)
{
	int64_t first_ns = s->time_ns, last_ns = s->time_ns;
	bool twice = count > OW_JOIN_SIGHTINGS_MAX, copies = false;
	for (uint32_t i = 0; i < count; i++) {
		first_ns = s[i].time_ns < first_ns ? s[i].time_ns : first_ns;
		last_ns = s[i].time_ns > last_ns ? s[i].time_ns : last_ns;
		twice = twice || (i > 0 && s[i].vantage == s[i - 1].vantage);
		copies = copies || s[i].copies > COPIES_MAX;
	}
	bool long_span = last_ns - first_ns > SPAN_MAX_NS;
	bool rewritten = !copies && !twice && !long_span && is_rewritten(join, s, count);
	join->counts.copies += copies;
	join->counts.repeats += !copies && twice;
	join->counts.spans += !copies && !twice && long_span;
	join->counts.rewritten += rewritten;
	return !copies && !twice && !long_span && !rewritten;
}

/* The packets that were first seen in the epoch before; the others are left to the next batch. */
static int group(struct ow_join *join, int64_t epoch)
{
	join->trajectories = 0;
	for (uint32_t from = 0, end; from < join->sightings; from = end) {
		const struct ow_join_sighting *s = &join->sighting[from];
		bool before = false;
		for (end = from; end < join->sightings && join->sighting[end].id == s->id; end++)
			before = before || !join->sighting[end].now;
		if (!before)
			continue;
		for (uint32_t i = from; i < end; i++) {
			const struct ow_join_sighting *one = &join->sighting[i];
			if (one->now)
				ow_join_message_of(&join->vantage[one->vantage], epoch)->used[one->record] = 1;
		}
		if (!usable(join, s, end - from))
			continue;
		if (OW_GROW(join->trajectory, join->trajectory_room, join->trajectories + 1) < 0)
			return -ENOMEM;
		for (uint32_t i = from + 1; i < end; i++) {
			if (same_flow(join, s->flow, join->sighting[i].flow) < 0)
				return -ENOMEM;
		}
		join->trajectory[join->trajectories++] =
			(struct ow_join_trajectory){.first = from, .count = end - from, .flow = s->flow};
	}
	return 0;
}

/* -- facts about pairs --------------------------------------------------------------------------------------------- */

static void note_ttls(struct ow_join *join, const struct ow_join_sighting *x, const struct ow_join_sighting *y)
{
	uint32_t at = ow_join_pair_of(join, x->vantage, y->vantage);
	if (at == OW_JOIN_NONE)
		return;
	struct ow_join_pair *pair = &join->pair[at];
	/* Sightings of a group are in the order of vantages. */
	const uint8_t ttl[2] = {x->ttl, y->ttl};
	pair->n++;
	pair->far += abs(x->ttl - y->ttl) > TTL_FAR;
	for (int i = 0; i < 2; i++) {
		pair->low[i] = ttl[i] < pair->low[i] ? ttl[i] : pair->low[i];
		pair->high[i] = ttl[i] > pair->high[i] ? ttl[i] : pair->high[i];
	}
	const struct ow_join_vantage *a = &join->vantage[x->vantage], *b = &join->vantage[y->vantage];
	if (a->clock == b->clock && a->kind != b->kind && x->ttl == y->ttl && x->outer_ttl == y->outer_ttl)
		pair->equal++;
}

static void judge_ttls(struct ow_join *join)
{
	for (uint32_t i = 0; i < join->vantages; i++)
		join->vantage[i].has_void = join->vantage[i].bridge = false;
	for (uint32_t i = 0; i < join->pairs; i++) {
		struct ow_join_pair *pair = &join->pair[i];
		struct ow_join_vantage *a = &join->vantage[pair->a], *b = &join->vantage[pair->b];
		int range_a = pair->high[0] - pair->low[0], range_b = pair->high[1] - pair->low[1];
		pair->ttl_void = pair->far >= FAR_PACKETS && pair->far >= FAR_SHARE * pair->n;
		pair->downstream = (int8_t)((range_b < range_a - RANGE_LESS) - (range_a < range_b - RANGE_LESS));
		if (pair->ttl_void)
			a->has_void = b->has_void = true;
		if (pair->equal >= BRIDGE_EQUAL)
			a->bridge = b->bridge = true;
		pair->twin = 0;
		pair->twin_n = 0;
		pair->twin_sum = pair->twin_squares = 0;
	}
}

static int rank_of(const struct ow_join_vantage *v)
{
	return v->bridge || v->kind == OW_VANTAGE_TAP ? 1 : v->kind == OW_VANTAGE_OUT ? 0 : 2;
}

static const struct ow_join_pair *void_pair(const struct ow_join *join, uint32_t x, uint32_t y)
{
	if (!join->vantage[x].has_void || !join->vantage[y].has_void)
		return NULL;
	const struct ow_join_pair *pair = ow_join_pair_find(join, x, y);
	return pair && pair->ttl_void ? pair : NULL;
}

/* -1: x was first, 1: y was, 0: neither TTL, nor one clock, nor the direction tells. */
static int by_packet(const struct ow_join *join, const struct ow_join_sighting *x, const struct ow_join_sighting *y)
{
	const struct ow_join_vantage *a = &join->vantage[x->vantage], *b = &join->vantage[y->vantage];
	const struct ow_join_pair *pair = void_pair(join, x->vantage, y->vantage);
	if (pair && pair->downstream)
		return (pair->downstream > 0) == (pair->a == x->vantage) ? -1 : 1;
	if (!pair && x->ttl != y->ttl)
		return x->ttl > y->ttl ? -1 : 1;
	if (!pair && x->outer_ttl && y->outer_ttl && x->outer_ttl != y->outer_ttl)
		return x->outer_ttl > y->outer_ttl ? -1 : 1;
	if (a->clock == b->clock && x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	/* Out of one router and into the next. A bridge shows both, and is passed in between. */
	if (!pair && a->clock != b->clock && rank_of(a) != rank_of(b))
		return rank_of(a) < rank_of(b) ? -1 : 1;
	return 0;
}

/* The same, also by what is known of clocks and of the other direction. */
static int by_all(struct ow_join *join, const struct ow_join_sighting *x, const struct ow_join_sighting *y)
{
	int order = by_packet(join, x, y);
	const struct ow_join_vantage *a = &join->vantage[x->vantage], *b = &join->vantage[y->vantage];
	int64_t least_ns, most_ns;
	if (order || a->clock == b->clock)
		return order;
	if (ow_clock_bounds_between(join->bounds, a->clock, b->clock, &least_ns, &most_ns) == 0) {
		int64_t later_ns = y->time_ns - x->time_ns;
		if (later_ns > most_ns || later_ns < least_ns)
			return later_ns > most_ns ? -1 : 1;
	}
	const struct ow_join_pair *pair = ow_join_pair_find(join, x->vantage, y->vantage);
	if (!pair || !pair->twin)
		return 0;
	return (pair->twin > 0) == (pair->a == x->vantage) ? -1 : 1;
}

/* -- clocks --------------------------------------------------------------------------------------------------------- */

static int by_depth(const void *a, const void *b)
{
	const struct ow_join_sighting *x = a, *y = b;
	if (x->ttl != y->ttl)
		return y->ttl - x->ttl;
	if (x->outer_ttl != y->outer_ttl)
		return y->outer_ttl - x->outer_ttl;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

static int note_open_order(struct ow_join *join, const struct ow_join_sighting *x, const struct ow_join_sighting *y)
{
	struct ow_join_pair *pair = ow_join_pair_find(join, x->vantage, y->vantage);
	if (!pair || pair->ttl_void || x->copies > 1 || y->copies > 1)
		return 0;
	double later = (double)(pair->a == x->vantage ? y->time_ns - x->time_ns : x->time_ns - y->time_ns);
	if (pair->twin_n == 0) {
		if (join->twins == TWINS_MAX)
			return 0;
		if (OW_GROW(join->twin, join->twin_room, join->twins + 1) < 0)
			return -ENOMEM;
		join->twin[join->twins++] = (uint32_t)(pair - join->pair);
	}
	pair->twin_n++;
	pair->twin_sum += later;
	pair->twin_squares += later * later;
	return 0;
}

/* From one packet: a bound for each sighting and the next one that is known to be later. */
static int note_clocks(struct ow_join *join, struct ow_join_sighting *s, uint32_t count)
{
	int r = 0;
	qsort(s, count, sizeof *s, by_depth);
	for (uint32_t i = 0; i < count && r == 0; i++) {
		bool bounded = false;
		for (uint32_t j = i + 1; j < count && r == 0; j++) {
			uint32_t from = join->vantage[s[i].vantage].clock, to = join->vantage[s[j].vantage].clock;
			int order = by_packet(join, &s[i], &s[j]);
			if (order == 0 && from != to)
				r = note_open_order(join, &s[i], &s[j]);
			if (order == 0 || from == to || s[i].copies > 1 || s[j].copies > 1 || (bounded && order < 0) ||
			    void_pair(join, s[i].vantage, s[j].vantage))
				continue;
			int64_t later_ns = s[j].time_ns - s[i].time_ns;
			if (order < 0)
				r = ow_clock_bounds_add(join->bounds, from, to, later_ns + SLACK_NS);
			else
				r = ow_clock_bounds_add(join->bounds, to, from, SLACK_NS - later_ns);
			bounded = bounded || order < 0;
		}
	}
	return r;
}

static int find_clocks(struct ow_join *join)
{
	uint32_t clocks = 0;
	for (uint32_t i = 0; i < join->vantages; i++)
		clocks = join->vantage[i].clock >= clocks ? join->vantage[i].clock + 1 : clocks;
	int r = ow_clock_bounds_reset(join->bounds, clocks);
	join->twins = 0;
	for (uint32_t i = 0; i < join->trajectories && r == 0; i++) {
		const struct ow_join_trajectory *t = &join->trajectory[i];
		if (t->count > 1)
			r = note_clocks(join, &join->sighting[t->first], t->count);
	}
	if (r == 0)
		r = ow_clock_bounds_solve(join->bounds);
	if (r > 0 || r == -ELOOP)
		join->counts.clock_contradictions += r > 0 ? (uint64_t)r : 1;
	return r == -ENOMEM ? r : 0;
}

/* -- twins: two directions between the same two taps ---------------------------------------------------------------- */

struct twin {
	struct ow_join_pair *pair;
	uint32_t near, far; /* clocks */
	int sign;
	double mean, variance; /* of the time at `far` less that at `near` */
};

static struct twin twin_of(const struct ow_join *join, struct ow_join_pair *pair)
{
	uint32_t a = join->vantage[pair->a].clock, b = join->vantage[pair->b].clock;
	double n = pair->twin_n, mean = pair->twin_sum / n;
	int sign = a < b ? 1 : -1;
	return (struct twin){.pair = pair,
	                     .near = a < b ? a : b,
	                     .far = a < b ? b : a,
	                     .sign = sign,
	                     .mean = sign * mean,
	                     .variance = n > 1 ? fmax(0, pair->twin_squares / n - mean * mean) / (n - 1) : INFINITY};
}

static bool later(const struct twin *x, const struct twin *y)
{
	return x->mean - y->mean > TWIN_ERRORS * sqrt(x->variance + y->variance);
}

/* Of the packets between two points, those that take longer go from near to far. */
static void find_twins(struct ow_join *join)
{
	for (uint32_t i = 0; i < join->twins; i++) {
		struct ow_join_pair *pair = &join->pair[join->twin[i]];
		if (pair->twin_n < TWIN_PACKETS)
			continue;
		struct twin one = twin_of(join, pair);
		for (uint32_t k = 0; k < join->twins && !pair->twin; k++) {
			struct ow_join_pair *other = &join->pair[join->twin[k]];
			if (k == i || other->twin_n < TWIN_PACKETS)
				continue;
			struct twin two = twin_of(join, other);
			if (one.near != two.near || one.far != two.far)
				continue;
			pair->twin = (int8_t)(one.sign * (later(&one, &two) - later(&two, &one)));
		}
	}
}

/* -- order ---------------------------------------------------------------------------------------------------------- */

struct order {
	uint32_t before[OW_JOIN_SIGHTINGS_MAX]; /* bit j: i was before j */
	uint32_t all;
};

/* false: contradictory. */
static bool find_order(struct ow_join *join, const struct ow_join_sighting *s, uint32_t count, struct order *order)
{
	memset(order, 0, sizeof *order);
	order->all = count == 32 ? UINT32_MAX : (UINT32_C(1) << count) - 1;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = i + 1; j < count; j++) {
			int first = by_all(join, &s[i], &s[j]);
			if (first < 0)
				order->before[i] |= UINT32_C(1) << j;
			else if (first > 0)
				order->before[j] |= UINT32_C(1) << i;
		}
	}
	for (uint32_t k = 0; k < count; k++) {
		for (uint32_t i = 0; i < count; i++) {
			if (order->before[i] >> k & 1)
				order->before[i] |= order->before[k];
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		if (order->before[i] >> i & 1)
			return false;
	}
	return true;
}

/* i is before j, or their order is open. */
static enum ow_join_how how_of(const struct order *order, uint32_t count, uint32_t i, uint32_t j)
{
	bool tie = !(order->before[i] >> j & 1), maybe = false;
	for (uint32_t k = 0; k < count; k++) {
		if (k == i || k == j)
			continue;
		bool k_first = order->before[k] >> i & 1, k_last = order->before[j] >> k & 1;
		if (tie) {
			k_first = k_first && order->before[k] >> j & 1;
			k_last = k_last && order->before[i] >> k & 1;
		} else if (order->before[i] >> k & 1 && order->before[k] >> j & 1) {
			return OW_JOIN_THROUGH;
		}
		maybe = maybe || (!k_first && !k_last);
	}
	return maybe ? OW_JOIN_UNCLEAR : tie ? OW_JOIN_TIE : OW_JOIN_DIRECT;
}

/* What was counted while nobody knew that this vantage lies between does not count. */
static void note_between(struct ow_join_way *way, uint16_t vantage)
{
	for (unsigned i = 0; i < way->betweens; i++) {
		if (way->between[i] == vantage)
			return;
	}
	if (way->betweens == OW_JOIN_BETWEEN_MAX) /* the strict threshold knows the others */
		return;
	way->between[way->betweens++] = vantage;
	way->direct = way->through = way->strict_direct = way->strict_through = 0;
}

static int note_passage(struct ow_join *join, const struct ow_join_sighting *s, const struct order *order,
                        uint32_t count, uint32_t i, uint32_t j)
{
	uint32_t at = ow_join_pair_of(join, s[i].vantage, s[j].vantage);
	bool tie = !(order->before[i] >> j & 1);
	if (at == OW_JOIN_NONE)
		return 0;
	if (OW_GROW(join->passage, join->passage_room, join->passages + 1) < 0)
		return -ENOMEM;
	struct ow_join_pair *pair = &join->pair[at];
	unsigned way = pair->a != s[i].vantage;
	enum ow_join_how how = how_of(order, count, i, j);
	pair->ties += tie;
	pair->tie_direct += how == OW_JOIN_TIE;
	join->passage[join->passages++] =
		(struct ow_join_passage){.id = s[i].id, .pair = at, .way = (uint8_t)way, .how = (uint8_t)how};
	for (uint32_t k = 0; how == OW_JOIN_THROUGH && k < count; k++) {
		if (order->before[i] >> k & 1 && order->before[k] >> j & 1)
			note_between(&pair->way[way], s[k].vantage);
	}
	return 0;
}

/* Puts the sightings of a packet in order and notes what passed where. 1: contradictory, not used. */
static int settle(struct ow_join *join, struct ow_join_sighting *s, uint32_t count)
{
	struct order order, sorted = {.all = 0};
	struct ow_join_sighting copy[OW_JOIN_SIGHTINGS_MAX];
	uint32_t place[OW_JOIN_SIGHTINGS_MAX];
	int r = 0;
	if (!find_order(join, s, count, &order))
		return 1;
	memcpy(copy, s, count * sizeof *s);
	/* The first is before most others; open order: as they are. */
	for (uint32_t i = 0; i < count; i++) {
		place[i] = 0;
		for (uint32_t k = 0; k < count; k++) {
			int more = __builtin_popcount(order.before[k]) - __builtin_popcount(order.before[i]);
			place[i] += more > 0 || (more == 0 && k < i);
		}
		s[place[i]] = copy[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < count; k++)
			sorted.before[place[i]] |= (order.before[i] >> k & 1) << place[k];
	}
	for (uint32_t i = 0; i < count && r == 0; i++) {
		for (uint32_t j = i + 1; j < count && r == 0; j++)
			r = note_passage(join, s, &sorted, count, i, j);
	}
	return r;
}

static int note_settled(struct ow_join_vantage *v, uint64_t id)
{
	if (OW_GROW(v->settled, v->settled_room, v->settleds + 1) < 0)
		return -ENOMEM;
	v->settled[v->settleds++] = id;
	return 0;
}

static int settle_all(struct ow_join *join)
{
	uint32_t kept = 0;
	int r = 0;
	join->passages = 0;
	for (uint32_t i = 0; i < join->vantages; i++)
		join->vantage[i].settleds = 0;
	for (uint32_t i = 0; i < join->trajectories && r >= 0; i++) {
		struct ow_join_trajectory t = join->trajectory[i];
		struct ow_join_sighting *s = &join->sighting[t.first];
		r = t.count > 1 ? settle(join, s, t.count) : 0;
		join->counts.loops += r == 1;
		for (uint32_t k = 0; k < t.count && r == 0; k++)
			r = note_settled(&join->vantage[s[k].vantage], s[k].id);
		if (r == 0)
			join->trajectory[kept++] = t;
	}
	join->trajectories = kept;
	join->counts.packets += kept;
	return r < 0 ? r : 0;
}

int ow_join_find_trajectories(struct ow_join *join, int64_t epoch)
{
	int r = collect(join, epoch);
	if (r == 0)
		r = group(join, epoch);
	for (uint32_t i = 0; i < join->trajectories && r == 0; i++) {
		const struct ow_join_trajectory *t = &join->trajectory[i];
		const struct ow_join_sighting *s = &join->sighting[t->first];
		for (uint32_t x = 0; x < t->count; x++) {
			for (uint32_t y = x + 1; y < t->count; y++)
				note_ttls(join, &s[x], &s[y]);
		}
	}
	if (r < 0)
		return r;
	judge_ttls(join);
	r = find_clocks(join);
	if (r < 0)
		return r;
	find_twins(join);
	for (uint32_t i = 0; i < join->trajectories; i++)
		join->trajectory[i].flow = ow_join_flow_of(join, join->trajectory[i].flow);
	return settle_all(join);
}
