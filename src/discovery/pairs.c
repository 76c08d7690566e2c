/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of two vantages: packets, TTLs, delays, share, and whether something lies between. See join.h. */
#include "base/array.h"
#include "base/sort.h"
#include "discovery/join_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ADJACENT_PACKETS 3    /* with 2 there are twice as many edges that do not exist */
#define ADJACENT_SHARE   0.05 /* direct packets, of those that pass both */
#define REVERSE_TIMES    9
#define DROPS_TIMES      2

/* -- the table ------------------------------------------------------------------------------------------------------ */

static uint64_t key_of(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

static uint32_t find(const struct ow_join *join, uint32_t a, uint32_t b)
{
	return OW_ID_MAP_FIND(&join->pair_map, key_of(a, b), i, join->pair[i].a == a && join->pair[i].b == b);
}

struct ow_join_pair *ow_join_pair_find(const struct ow_join *join, uint32_t x, uint32_t y)
{
	uint32_t at = find(join, x < y ? x : y, x < y ? y : x);
	return at == OW_ID_MAP_NONE ? NULL : &join->pair[at];
}

static void way_init(struct ow_join_way *way)
{
	*way = (struct ow_join_way){.tau = UINT64_MAX, .strict_tau = UINT64_MAX, .seen = INT64_MIN};
}

uint32_t ow_join_pair_of(struct ow_join *join, uint32_t x, uint32_t y)
{
	uint32_t a = x < y ? x : y, b = x < y ? y : x, at = find(join, a, b);
	if (at != OW_ID_MAP_NONE)
		return at;
	if (join->pairs == OW_JOIN_PAIRS_MAX) {
		join->counts.pairs_refused++;
		return OW_JOIN_NONE;
	}
	if (OW_GROW(join->pair, join->pair_room, join->pairs + 1) < 0 ||
	    ow_id_map_add(&join->pair_map, key_of(a, b), join->pairs) < 0)
		return OW_JOIN_NONE;
	struct ow_join_pair *pair = &join->pair[join->pairs];
	*pair = (struct ow_join_pair){.a = (uint16_t)a, .b = (uint16_t)b, .low = {UINT8_MAX, UINT8_MAX}};
	way_init(&pair->way[0]);
	way_init(&pair->way[1]);
	return join->pairs++;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* -- counting ------------------------------------------------------------------------------------------------------- */

/* Remembers the differences that occur most; a new one takes the place of the rarest. */
static void note_ttl(struct ow_join_way *way, int difference)
{
	unsigned least = 0;
	for (unsigned i = 0; i < OW_JOIN_TTLS; i++) {
		if (way->ttl_count[i] > 0 && way->ttl[i] == difference) {
			way->ttl_count[i]++;
			return;
		}
		least = way->ttl_count[i] < way->ttl_count[least] ? i : least;
	}
	way->ttl[least] = (int16_t)difference;
	way->ttl_count[least]++;
}

bool ow_join_usual_ttl(const struct ow_join_way *way, int *ret_difference)
{
	unsigned most = 0;
	for (unsigned i = 1; i < OW_JOIN_TTLS; i++)
		most = way->ttl_count[i] > way->ttl_count[most] ? i : most;
	*ret_difference = way->ttl[most];
	return way->ttl_count[most] > 0;
}

static void note_mean(struct ow_join_mean *mean, double x, double share)
{
	double w = 1 / share, v = w * w * (1 - share);
	if (mean->n == 0)
		mean->origin = x;
	x -= mean->origin;
	mean->n++;
	mean->w += w;
	mean->wx += w * x;
	mean->v += v;
	mean->vx += v * x;
	mean->vxx += v * x * x;
}

static void count_sightings(struct ow_join *join, const struct ow_join_sighting *x, const struct ow_join_sighting *y)
{
	struct ow_join_pair *pair = ow_join_pair_find(join, x->vantage, y->vantage);
	if (!pair)
		return;
	struct ow_join_way *way = ow_join_way(pair, x->vantage);
	const struct ow_join_vantage *a = &join->vantage[x->vantage], *b = &join->vantage[y->vantage];
	way->packets++;
	way->seen = join->settled;
	if (!pair->ttl_void)
		note_ttl(way, x->ttl - y->ttl);
	uint64_t tau = min_u64(a->tc, b->tc);
	way->num += x->id < tau;
	if (x->copies == 1 && y->copies == 1 && x->id < tau)
		note_mean(&way->delay, (double)(y->time_ns - x->time_ns), ow_join_share_below(tau));
}

static void add_share(struct ow_join_way *way, double n, double den, double num)
{
	way->share_n += n;
	way->share_sum += n * num / den;
	way->share_variance += n * n * (1 - den / n) / den;
}

/* The batches before the one that shows a pair: none of so many packets passed both. */
static void note_past(const struct ow_join_vantage *from, const struct ow_join_vantage *to, struct ow_join_way *way)
{
	for (unsigned i = 0; i < OW_JOIN_HALVES; i++) {
		double n = (double)from->past[i].packets;
		double den = n * ow_join_share_below(min_u64(from->past[i].tc, to->past[i].tc));
		if (den >= 1)
			add_share(way, n, den, 0);
	}
}

static void note_batch(struct ow_join *join)
{
	for (uint32_t i = 0; i < join->vantages; i++) {
		struct ow_join_vantage *v = &join->vantage[i];
		v->past[join->batches % OW_JOIN_HALVES].tc = v->tc;
		v->past[join->batches % OW_JOIN_HALVES].packets = v->packets;
	}
}

/* The share of an epoch, weighed by the packets of `from`. */
static void note_share(const struct ow_join_vantage *from, const struct ow_join_vantage *to, struct ow_join_way *way)
{
	uint32_t den = (uint32_t)ow_ids_below(from->settled, from->settleds, min_u64(from->tc, to->tc)), num = way->num;
	way->num = 0;
	if (den == 0)
		return;
	/* If a pair counted from the packet on that showed it, rare pairs would seem less rare. */
	if (!way->share_begun && num > 0) {
		way->share_begun = true;
		note_past(from, to, way);
	}
	double n = from->packets > den ? (double)from->packets : den;
	if (way->share_begun)
		add_share(way, n, den, num);
}

/* -- thresholds ----------------------------------------------------------------------------------------------------- */

/* Whether TTLs allow that C, on the ways ac and cb, lies between. */
static bool fits(const struct ow_join_pair *p_ac, const struct ow_join_way *ac, const struct ow_join_pair *p_cb,
                 const struct ow_join_way *cb, const struct ow_join_pair *p_ab, const struct ow_join_way *ab)
{
	if (p_ac->ttl_void || p_cb->ttl_void || p_ab->ttl_void)
		return true;
	for (unsigned i = 0; i < OW_JOIN_TTLS; i++) {
		for (unsigned j = 0; j < OW_JOIN_TTLS && ac->ttl_count[i] > 0; j++) {
			for (unsigned k = 0; k < OW_JOIN_TTLS && cb->ttl_count[j] > 0; k++) {
				if (ab->ttl_count[k] > 0 && ac->ttl[i] + cb->ttl[j] == ab->ttl[k])
					return true;
			}
		}
	}
	return false;
}

struct neighbours { /* pairs by vantage */
	uint32_t *first, *pair;
};

static int neighbours_find(const struct ow_join *join, struct neighbours *ret)
{
	uint32_t *at = calloc(join->vantages + 2, sizeof *at),
		 *pair = calloc(2 * (size_t)join->pairs + 1, sizeof *pair);
	if (!at || !pair) {
		free(at);
		free(pair);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < join->pairs; i++) {
		at[join->pair[i].a + 2]++;
		at[join->pair[i].b + 2]++;
	}
	for (uint32_t v = 0; v < join->vantages; v++)
		at[v + 2] += at[v + 1];
	for (uint32_t i = 0; i < join->pairs; i++) {
		pair[at[join->pair[i].a + 1]++] = i;
		pair[at[join->pair[i].b + 1]++] = i;
	}
	*ret = (struct neighbours){at, pair};
	return 0;
}

/* Whether a part of the way does not take more routers than the whole. */
static bool is_part(const struct ow_join_pair *p_part, const struct ow_join_way *part, const struct ow_join_pair *p_ab,
                    const struct ow_join_way *ab)
{
	if (p_part->ttl_void || p_ab->ttl_void)
		return true;
	for (unsigned i = 0; i < OW_JOIN_TTLS; i++) {
		for (unsigned k = 0; k < OW_JOIN_TTLS && part->ttl_count[i] > 0; k++) {
			if (ab->ttl_count[k] > 0 && part->ttl[i] <= ab->ttl[k])
				return true;
		}
	}
	return false;
}

/*
 * Lowers tau to the threshold of each vantage that may lie between, by its pair with one end. If its sample is coarse, it
 * may share packets with the other end, too, of which none was sampled.
 */
static uint64_t strict_of(const struct ow_join *join, const struct neighbours *near, const struct ow_join_pair *pair,
                          struct ow_join_way *way, uint32_t from, uint32_t to, bool at_from, uint64_t tau)
{
	uint32_t end = at_from ? from : to, other = at_from ? to : from;
	for (uint32_t i = near->first[end]; i < near->first[end + 1]; i++) {
		struct ow_join_pair *one = &join->pair[near->pair[i]];
		uint32_t c = one->a == end ? one->b : one->a;
		const struct ow_join_way *part = ow_join_way(one, at_from ? from : c);
		if (c == other || join->vantage[c].tc >= tau || part->packets <= 0)
			continue;
		struct ow_join_pair *two = ow_join_pair_find(join, c, other);
		const struct ow_join_way *rest = two ? ow_join_way(two, at_from ? c : from) : NULL;
		bool known = rest && rest->packets > 0;
		if (known ? !fits(one, part, two, rest, pair, way) : !is_part(one, part, pair, way))
			continue;
		tau = join->vantage[c].tc;
		way->coarsest = (uint16_t)c;
	}
	return tau;
}

static void lower(uint64_t *tau, uint64_t now, double *direct, double *through)
{
	/* What was counted when more could slip through between no longer counts. */
	if (now && now < *tau / 2)
		*direct = *through = 0;
	if (now && now < *tau)
		*tau = now;
}

static void set_thresholds(const struct ow_join *join, const struct neighbours *near, struct ow_join_pair *pair,
                           unsigned number)
{
	struct ow_join_way *way = &pair->way[number];
	uint32_t from = number ? pair->b : pair->a, to = ow_join_other(pair, number);
	uint64_t tau = min_u64(join->vantage[from].tc, join->vantage[to].tc);
	for (unsigned i = 0; i < way->betweens; i++)
		tau = min_u64(tau, join->vantage[way->between[i]].tc);
	way->batch_tau = tau;
	way->batch_strict = 0;
	if (way->wants_strict) {
		way->batch_strict = strict_of(join, near, pair, way, from, to, true, tau);
		way->batch_strict = strict_of(join, near, pair, way, from, to, false, way->batch_strict);
	}
	lower(&way->tau, tau, &way->direct, &way->through);
	if (way->wants_strict)
		lower(&way->strict_tau, way->batch_strict, &way->strict_direct, &way->strict_through);
}

static void count_passages(struct ow_join *join)
{
	for (size_t i = 0; i < join->passages; i++) {
		const struct ow_join_passage *p = &join->passage[i];
		struct ow_join_way *way = &join->pair[p->pair].way[p->way];
		bool direct = p->how == OW_JOIN_DIRECT, through = p->how == OW_JOIN_THROUGH;
		if (p->id < way->batch_tau) {
			way->direct += direct;
			way->through += through;
		}
		if (p->id < way->batch_strict) {
			way->strict_direct += direct;
			way->strict_through += through;
		}
	}
}

int ow_join_count_pairs(struct ow_join *join)
{
	struct neighbours near;
	for (uint32_t i = 0; i < join->trajectories; i++) {
		const struct ow_join_trajectory *t = &join->trajectory[i];
		const struct ow_join_sighting *s = &join->sighting[t->first];
		for (uint32_t x = 0; x < t->count; x++) {
			for (uint32_t y = x + 1; y < t->count; y++)
				count_sightings(join, &s[x], &s[y]);
		}
	}
	for (size_t i = 0; i < join->passages; i++) {
		if (join->passage[i].how == OW_JOIN_DIRECT)
			join->pair[join->passage[i].pair].way[join->passage[i].way].wants_strict = true;
	}
	int r = neighbours_find(join, &near);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < join->pairs; i++) {
		struct ow_join_pair *pair = &join->pair[i];
		struct ow_join_vantage *a = &join->vantage[pair->a], *b = &join->vantage[pair->b];
		note_share(a, b, &pair->way[0]);
		note_share(b, a, &pair->way[1]);
		set_thresholds(join, &near, pair, 0);
		set_thresholds(join, &near, pair, 1);
	}
	count_passages(join);
	note_batch(join);
	for (uint32_t i = 0; i < join->pairs; i++)
		join->pair[i].way[0].wants_strict = join->pair[i].way[1].wants_strict = false;
	free(near.first);
	free(near.pair);
	return 0;
}

/* -- verdict -------------------------------------------------------------------------------------------------------- */

/* Drops of a capture between make packets look direct. */
static double share_needed(const struct ow_join *join, const struct ow_join_way *way)
{
	double drops = 0;
	for (unsigned i = 0; i < way->betweens; i++)
		drops = fmax(drops, join->vantage[way->between[i]].drop_share);
	return ADJACENT_SHARE + DROPS_TIMES * drops;
}

static bool enough(double direct, double through, double share)
{
	return direct >= ADJACENT_PACKETS && direct >= share * (direct + through);
}

enum ow_adjacency ow_join_adjacency(const struct ow_join *join, const struct ow_join_pair *pair, unsigned number)
{
	const struct ow_join_way *way = &pair->way[number], *back = &pair->way[!number];
	double share = share_needed(join, way);
	double both = way->packets + back->packets;
	if (enough(pair->tie_direct, both - pair->tie_direct, share) && pair->tie_direct > way->direct + back->direct)
		return OW_UNKNOWN_ORDER;
	if (!enough(way->direct, way->through, share) || back->direct >= REVERSE_TIMES * way->direct)
		return OW_NOT_ADJACENT;
	return enough(way->strict_direct, way->strict_through, share) ? OW_FIRM : OW_PROVISIONAL;
}

/* -- age ------------------------------------------------------------------------------------------------------------ */

static void halve_way(struct ow_join_way *way)
{
	double *const half[] = {&way->packets,      &way->share_n,       &way->share_sum,      &way->direct,
	                        &way->through,      &way->strict_direct, &way->strict_through, &way->loss_packets,
	                        &way->lost,         &way->loss_drops,    &way->loss_weight,    &way->lost_weight,
	                        &way->delay.n,      &way->delay.w,       &way->delay.wx,       &way->usual_known,
	                        &way->usual_missing};
	double *const quarter[] = {&way->share_variance, &way->loss_squares, &way->delay.v, &way->delay.vx,
	                           &way->delay.vxx};
	for (size_t i = 0; i < sizeof half / sizeof *half; i++)
		*half[i] /= 2;
	for (size_t i = 0; i < sizeof quarter / sizeof *quarter; i++)
		*quarter[i] /= 4;
	for (unsigned i = 0; i < OW_JOIN_TTLS; i++)
		way->ttl_count[i] = way->ttl_count[i] > 1 ? way->ttl_count[i] / 2 : 0;
	way->tau = way->strict_tau = UINT64_MAX;
}

static void halve(struct ow_join *join)
{
	for (uint32_t i = 0; i < join->pairs; i++) {
		struct ow_join_pair *pair = &join->pair[i];
		halve_way(&pair->way[0]);
		halve_way(&pair->way[1]);
		pair->n /= 2;
		pair->far /= 2;
		pair->equal /= 2;
		pair->ties /= 2;
		pair->tie_direct /= 2;
		memset(pair->low, UINT8_MAX, sizeof pair->low);
		memset(pair->high, 0, sizeof pair->high);
	}
	for (uint32_t i = 0; i < join->vantages; i++) {
		join->vantage[i].all_packets /= 2;
		join->vantage[i].all_drops /= 2;
		join->vantage[i].all_sampled /= 2;
	}
}

static void forget_between(struct ow_join *join, struct ow_join_way *way)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < way->betweens; i++) {
		if (join->vantage[way->between[i]].there)
			way->between[kept++] = way->between[i];
	}
	way->betweens = (uint8_t)kept;
}

static bool is_old(const struct ow_join *join, const struct ow_join_pair *pair)
{
	int64_t seen = pair->way[0].seen > pair->way[1].seen ? pair->way[0].seen : pair->way[1].seen;
	return !join->vantage[pair->a].there || !join->vantage[pair->b].there || seen < join->settled - OW_JOIN_FORGETS;
}

static void forget(struct ow_join *join)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < join->vantages; i++) {
		struct ow_join_vantage *v = &join->vantage[i];
		if (v->there && v->last < join->settled - OW_JOIN_FORGETS)
			v->there = false;
	}
	for (uint32_t i = 0; i < join->pairs; i++) {
		forget_between(join, &join->pair[i].way[0]);
		forget_between(join, &join->pair[i].way[1]);
		if (!is_old(join, &join->pair[i]))
			join->pair[kept++] = join->pair[i];
	}
	if (kept == join->pairs)
		return;
	join->pairs = kept;
	ow_id_map_clear(&join->pair_map);
	for (uint32_t i = 0; i < kept; i++) /* there is room: there were more */
		(void)ow_id_map_add(&join->pair_map, key_of(join->pair[i].a, join->pair[i].b), i);
}

void ow_join_age(struct ow_join *join)
{
	join->batches++;
	if (join->batches % OW_JOIN_HALVES == 0)
		halve(join);
	forget(join);
}
