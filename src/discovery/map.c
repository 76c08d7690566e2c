/* SPDX-License-Identifier: Apache-2.0 */
/* The map: what the join knows, as numbers with intervals. */
#include "discovery/map.h"

#include "discovery/join_private.h"
#include "estimate/distribution.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z             OW_NORMAL_975
#define DELAYS_LEAST  2
#define SHARE_PACKETS 3.0 /* a pair needs as many to be seen */

const char *const ow_adjacency_name[OW_ADJACENCIES] = {"none", "firm", "provisional", "unknown order"};

void ow_map_done(struct ow_map *map)
{
	free(map->vantage);
	free(map->pair);
	free(map->change);
	*map = (struct ow_map){.vantage = NULL};
}

/* -- estimates ------------------------------------------------------------------------------------------------------ */

/* Wilson's interval of a share p of n trials; n may be infinite. */
static struct ow_value wilson(double p, double n)
{
	if (isinf(n))
		return ow_value_exact(p);
	double z2 = Z * Z, middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = Z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
	return (struct ow_value){.status = OW_VALUE_ESTIMATED,
	                         .value = p,
	                         .low = p <= 0 ? 0 : fmax(0, middle - half),
	                         .high = p >= 1 ? 1 : fmin(1, middle + half)};
}

static struct ow_value share_of(const struct ow_join_way *way)
{
	if (way->share_n <= 0)
		return ow_value_none(OW_REASON_NO_PACKET_SAMPLED);
	double p = fmin(1, way->share_sum / way->share_n);
	double n = way->share_variance > 0 ? way->share_n * way->share_n / way->share_variance : INFINITY;
	return wilson(p, n);
}

static struct ow_value loss_of(const struct ow_join_way *way)
{
	if (way->loss_packets < 1)
		return ow_value_none(OW_REASON_NO_KNOWN_FATE);
	return wilson(way->lost_weight / way->loss_weight, way->loss_weight * way->loss_weight / way->loss_squares);
}

static struct ow_value delay_of(const struct ow_join_way *way)
{
	const struct ow_join_mean *d = &way->delay;
	if (d->n < DELAYS_LEAST)
		return ow_value_none(OW_REASON_FEW_DELAYS);
	double mean = d->wx / d->w, squares = d->vxx - 2 * mean * d->vx + mean * mean * d->v;
	double half = ow_student_975(d->n - 1) * sqrt(fmax(0, squares) * d->n / (d->n - 1)) / d->w;
	mean += d->origin;
	return (struct ow_value){.status = OW_VALUE_ESTIMATED, .value = mean, .low = mean - half, .high = mean + half};
}

/* -- vantages ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	const struct ow_join_vantage *x = *(struct ow_join_vantage *const *)a, *y = *(struct ow_join_vantage *const *)b;
	int order = strcmp(x->point, y->point);
	if (order == 0)
		order = strcmp(x->interface, y->interface);
	return order ? order : (int)x->kind - (int)y->kind;
}

static struct ow_map_vantage vantage_of(const struct ow_join_vantage *v)
{
	struct ow_map_vantage one = {.kind = v->kind,
	                             .bridge = v->bridge,
	                             .packets = ow_packets_of(v->all_packets),
	                             .drops = ow_packets_of(v->all_drops),
	                             .epochs = v->epochs,
	                             .least_share = fmin(1, SHARE_PACKETS / fmax(v->all_sampled, SHARE_PACKETS))};
	memcpy(one.point, v->point, sizeof one.point);
	memcpy(one.interface, v->interface, sizeof one.interface);
	return one;
}

/* number: the place of each of the join's vantages. */
static int make_vantages(struct ow_join *join, struct ow_map *map, uint32_t *number)
{
	struct ow_join_vantage **sorted = calloc(join->vantages + 1, sizeof *sorted);
	map->vantage = calloc(join->vantages + 1, sizeof *map->vantage);
	if (!sorted || !map->vantage) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < join->vantages; i++) {
		if (join->vantage[i].there)
			sorted[map->vantages++] = &join->vantage[i];
	}
	qsort(sorted, map->vantages, sizeof *sorted, by_name);
	for (uint32_t i = 0; i < map->vantages; i++) {
		map->vantage[i] = vantage_of(sorted[i]);
		number[sorted[i] - join->vantage] = i;
	}
	free(sorted);
	return 0;
}

/* -- pairs ---------------------------------------------------------------------------------------------------------- */

static struct ow_map_pair pair_of(struct ow_join *join, const struct ow_join_pair *pair, unsigned number,
                                  const uint32_t *place)
{
	const struct ow_join_way *way = &pair->way[number];
	uint32_t from = number ? pair->b : pair->a, to = ow_join_other(pair, number);
	int difference = 0;
	bool known = ow_join_usual_ttl(way, &difference) && !pair->ttl_void && difference >= 0;
	struct ow_map_pair one = {.from = place[from],
	                          .to = place[to],
	                          .adjacency = ow_join_adjacency(join, pair, number),
	                          .packets = ow_packets_of(round(way->packets)),
	                          .ttl_void = pair->ttl_void,
	                          .hops_known = known,
	                          .hops = (uint8_t)(known ? difference : 0),
	                          .share = share_of(way),
	                          .delay_ns = delay_of(way),
	                          .loss = loss_of(way),
	                          .loss_at_most = way->loss_drops > 0,
	                          .lost = ow_packets_of(round(way->lost)),
	                          .loss_packets = ow_packets_of(round(way->loss_packets)),
	                          .between = UINT32_MAX};
	if (one.adjacency == OW_PROVISIONAL && join->vantage[way->coarsest].there)
		one.between = place[way->coarsest];
	(void)ow_clock_bounds_between(join->bounds, join->vantage[from].clock, join->vantage[to].clock,
	                              &one.offset_least_ns, &one.offset_most_ns);
	return one;
}

static int by_vantages(const void *a, const void *b)
{
	const struct ow_map_pair *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static int make_pairs(struct ow_join *join, struct ow_map *map, const uint32_t *place)
{
	map->pair = calloc(2 * (size_t)join->pairs + 1, sizeof *map->pair);
	if (!map->pair)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2 * join->pairs; i++) {
		const struct ow_join_pair *pair = &join->pair[i / 2];
		if (pair->way[i % 2].packets >= 0.5 && join->vantage[pair->a].there && join->vantage[pair->b].there)
			map->pair[map->pairs++] = pair_of(join, pair, i % 2, place);
	}
	qsort(map->pair, map->pairs, sizeof *map->pair, by_vantages);
	return 0;
}

static int make_changes(const struct ow_join *join, struct ow_map *map, const uint32_t *place)
{
	uint32_t count = join->changes < OW_JOIN_CHANGES_MAX ? join->changes : OW_JOIN_CHANGES_MAX;
	map->change = calloc(count + 1, sizeof *map->change);
	if (!map->change)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct ow_map_change change = join->change[(join->changes - count + i) % OW_JOIN_CHANGES_MAX];
		if (!join->vantage[change.from].there || !join->vantage[change.to].there)
			continue;
		change.from = place[change.from];
		change.to = place[change.to];
		map->change[map->changes++] = change;
	}
	return 0;
}

int ow_join_map(struct ow_join *join, struct ow_map *ret_map)
{
	struct ow_map map = {.counts = join->counts};
	uint32_t *place = calloc(join->vantages + 1, sizeof *place);
	int r = place ? make_vantages(join, &map, place) : -ENOMEM;
	if (r == 0)
		r = make_pairs(join, &map, place);
	if (r == 0)
		r = make_changes(join, &map, place);
	if (join->settled != INT64_MIN) {
		map.until_ns = join->settled * join->epoch_ns;
		map.from_ns = join->first != INT64_MIN ? (join->first - 1) * join->epoch_ns : map.until_ns;
	}
	free(place);
	if (r < 0)
		ow_map_done(&map);
	else
		*ret_map = map;
	return r;
}
