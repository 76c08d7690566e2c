/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss and changes of routes, by flow. A packet of a flow that was seen at A counts for the loss from A to B only if an
 * earlier and a later packet of the flow passed both: then the flow went that way. If it was seen elsewhere, as deep as
 * B or deeper, it took another route. If packets of flows that used to pass both no longer do, the route has changed.
 */
#include "base/array.h"
#include "discovery/join_private.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANGE_MISSING 3
#define CHANGE_FLOWS   2
#define CHANGE_TAIL    1e-6
#define LOSS_LEAST     0.01 /* that may explain missing packets */
#define LOSS_UNKNOWN   0.02 /* with few samples */
#define LOSS_SAMPLES   100
#define LOSS_TIMES     1.5

void ow_join_batch_done(struct ow_join_batch *batch)
{
	free(batch->sighting);
	free(batch->trajectory);
	free(batch->flow);
	free(batch->tc);
	free(batch->dropped);
	*batch = (struct ow_join_batch){.epoch = INT64_MIN};
}

static int by_flow(const void *a, const void *b)
{
	const struct ow_join_flow *x = a, *y = b;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	if (x->flow != y->flow)
		return x->flow < y->flow ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

/* Sorts, and joins those of the same flow and vantages. Returns how many are left. */
static size_t join_flows(struct ow_join_flow *flow, size_t count)
{
	size_t kept = 0;
	if (count)
		qsort(flow, count, sizeof *flow, by_flow);
	for (size_t i = 0; i < count; i++) {
		struct ow_join_flow *last = kept ? &flow[kept - 1] : NULL;
		if (!last || by_flow(last, &flow[i]) != 0) {
			flow[kept++] = flow[i];
			continue;
		}
		last->first_ns = flow[i].first_ns < last->first_ns ? flow[i].first_ns : last->first_ns;
		last->last_ns = flow[i].last_ns > last->last_ns ? flow[i].last_ns : last->last_ns;
	}
	return kept;
}

static int note_flows(struct ow_join_batch *batch)
{
	for (uint32_t i = 0; i < batch->trajectories; i++) {
		const struct ow_join_trajectory *t = &batch->trajectory[i];
		const struct ow_join_sighting *s = &batch->sighting[t->first];
		if (OW_GROW(batch->flow, batch->flow_room, batch->flows + t->count * t->count + 1) < 0)
			return -ENOMEM;
		for (uint32_t x = 0; x < t->count; x++) {
			for (uint32_t y = x + 1; y < t->count; y++)
				batch->flow[batch->flows++] = (struct ow_join_flow){.flow = t->flow,
				                                                    .a = s[x].vantage,
				                                                    .b = s[y].vantage,
				                                                    .first_ns = s[x].time_ns,
				                                                    .last_ns = s[x].time_ns};
		}
	}
	batch->flows = join_flows(batch->flow, batch->flows);
	return 0;
}

/* Takes what the batch needs later. The join's arrays move into it. */
static int keep(struct ow_join *join, int64_t epoch)
{
	struct ow_join_batch *batch = &join->batch[0];
	ow_join_batch_done(&join->batch[OW_JOIN_SPANS - 1]);
	for (unsigned i = OW_JOIN_SPANS - 1; i > 0; i--)
		join->batch[i] = join->batch[i - 1];
	*batch = (struct ow_join_batch){.epoch = epoch,
	                                .sighting = join->sighting,
	                                .trajectory = join->trajectory,
	                                .sightings = join->sightings,
	                                .trajectories = join->trajectories,
	                                .vantages = join->vantages};
	join->sighting = NULL;
	join->trajectory = NULL;
	join->sighting_room = join->trajectory_room = 0;
	batch->tc = calloc(join->vantages + 1, sizeof *batch->tc);
	batch->dropped = calloc(join->vantages + 1, sizeof *batch->dropped);
	if (!batch->tc || !batch->dropped)
		return -ENOMEM;
	for (uint32_t i = 0; i < join->vantages; i++) {
		batch->tc[i] = join->vantage[i].tc;
		batch->dropped[i] = join->vantage[i].drop_share > 0;
	}
	return note_flows(batch);
}

/* The flows of some batches together, each by its one hash. */
static int gather(const struct ow_join *join, unsigned from, unsigned end, struct ow_join_flow **ret_flow,
                  size_t *ret_count)
{
	size_t count = 0;
	for (unsigned i = from; i < end; i++)
		count += join->batch[i].flows;
	struct ow_join_flow *flow = malloc((count + 1) * sizeof *flow);
	if (!flow)
		return -ENOMEM;
	count = 0;
	for (unsigned i = from; i < end; i++) {
		for (size_t k = 0; k < join->batch[i].flows; k++) {
			flow[count] = join->batch[i].flow[k];
			flow[count].flow = ow_join_flow_of(join, flow[count].flow);
			count++;
		}
	}
	*ret_flow = flow;
	*ret_count = join_flows(flow, count);
	return 0;
}

/* The first entry of a vantage and flow. */
static size_t first_of(const struct ow_join_flow *flow, size_t count, uint32_t a, uint32_t hash)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (flow[middle].a < a || (flow[middle].a == a && flow[middle].flow < hash))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A packet at a vantage, and another vantage that its flow passes. */
struct case_of_flow {
	const struct ow_join_batch *batch;
	const struct ow_join_trajectory *trajectory;
	const struct ow_join_flow *flow;
	uint32_t at; /* its sighting at flow->a */
	bool arrived;
	struct ow_join_pair *pair;
	struct ow_join_way *way;
};

typedef void for_each_case(struct ow_join *join, const struct case_of_flow *one);

static bool passed(const struct ow_join_batch *batch, const struct ow_join_trajectory *t, uint32_t at, uint32_t vantage)
{
	for (uint32_t i = at + 1; i < t->count; i++) {
		if (batch->sighting[t->first + i].vantage == vantage)
			return true;
	}
	return false;
}

static void walk_packet(struct ow_join *join, const struct ow_join_batch *batch, const struct ow_join_trajectory *t,
                        uint32_t at, const struct ow_join_flow *flow, size_t count, for_each_case *each)
{
	const struct ow_join_sighting *s = &batch->sighting[t->first + at];
	uint32_t hash = ow_join_flow_of(join, t->flow);
	size_t i = first_of(flow, count, s->vantage, hash);
	for (; i < count && flow[i].a == s->vantage && flow[i].flow == hash; i++) {
		if (flow[i].b >= batch->vantages || s->id >= batch->tc[s->vantage] || s->id >= batch->tc[flow[i].b])
			continue;
		struct ow_join_pair *pair = ow_join_pair_find(join, flow[i].a, flow[i].b);
		if (!pair)
			continue;
		const struct case_of_flow one = {.batch = batch,
		                                 .trajectory = t,
		                                 .flow = &flow[i],
		                                 .at = at,
		                                 .arrived = passed(batch, t, at, flow[i].b),
		                                 .pair = pair,
		                                 .way = ow_join_way(pair, flow[i].a)};
		each(join, &one);
	}
}

static void walk(struct ow_join *join, const struct ow_join_batch *batch, const struct ow_join_flow *flow, size_t count,
                 for_each_case *each)
{
	for (uint32_t i = 0; i < batch->trajectories; i++) {
		const struct ow_join_trajectory *t = &batch->trajectory[i];
		for (uint32_t k = 0; k < t->count; k++) {
			if (batch->sighting[t->first + k].copies == 1)
				walk_packet(join, batch, t, k, flow, count, each);
		}
	}
}

/* -- loss ----------------------------------------------------------------------------------------------------------- */

/* Whether the packet was seen as deep as B or deeper. If TTLs mean nothing, anywhere behind A. */
static bool elsewhere(const struct case_of_flow *one)
{
	const struct ow_join_sighting *s = &one->batch->sighting[one->trajectory->first];
	int difference;
	bool known = ow_join_usual_ttl(one->way, &difference) && !one->pair->ttl_void;
	for (uint32_t i = one->at + 1; i < one->trajectory->count; i++) {
		if (!known || s[i].ttl <= s[one->at].ttl - difference)
			return true;
	}
	return false;
}

static void note_loss(struct ow_join *join, const struct case_of_flow *one)
{
	const struct ow_join_sighting *s = &one->batch->sighting[one->trajectory->first + one->at];
	(void)join;
	if (s->time_ns <= one->flow->first_ns || s->time_ns >= one->flow->last_ns)
		return;
	if (!one->arrived && elsewhere(one))
		return;
	uint64_t a = one->batch->tc[one->flow->a], b = one->batch->tc[one->flow->b];
	double w = 1 / ow_join_share_below(a < b ? a : b);
	one->way->loss_packets++;
	one->way->lost += !one->arrived;
	one->way->loss_weight += w;
	one->way->lost_weight += one->arrived ? 0 : w;
	one->way->loss_squares += w * w;
	one->way->loss_drops += one->batch->dropped[one->flow->b];
}

/* -- changes -------------------------------------------------------------------------------------------------------- */

static void note_known(struct ow_join *join, const struct case_of_flow *one)
{
	struct ow_join_way *way = one->way;
	(void)join;
	way->known++;
	if (one->arrived)
		return;
	way->missing++;
	if (way->missing_flows == 0 || (way->missing_flows == 1 && way->missing_flow[0] != one->flow->flow))
		way->missing_flow[way->missing_flows++] = one->flow->flow;
}

/* P(X >= k), X binomial (n, p), k above n p: the first terms of a falling series. */
static double tail(double n, double p, double k)
{
	double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
	double sum = 0;
	for (; k <= n && term > 1e-12 * sum; k++) {
		sum += term;
		term *= (n - k) / (k + 1) * p / (1 - p);
	}
	return sum;
}

static bool has_changed(const struct ow_join_way *way)
{
	double p = LOSS_UNKNOWN;
	if (way->missing < CHANGE_MISSING || way->missing_flows < CHANGE_FLOWS || 2 * way->missing <= way->known)
		return false;
	if (way->usual_known < CHANGE_MISSING)
		return false; /* from what? */
	if (way->loss_packets >= LOSS_SAMPLES)
		p = fmax(LOSS_LEAST, LOSS_TIMES * way->lost / way->loss_packets);
	/* What is divided among links by packet is missing at each of them, always. */
	p = fmax(p, way->usual_missing / way->usual_known);
	return p < 1 && way->missing > p * way->known && tail(way->known, p, way->missing) < CHANGE_TAIL;
}

static void find_changes(struct ow_join *join, int64_t epoch)
{
	for (uint32_t i = 0; i < 2 * join->pairs; i++) {
		struct ow_join_pair *pair = &join->pair[i / 2];
		struct ow_join_way *way = &pair->way[i % 2];
		if (has_changed(way)) {
			struct ow_map_change *change = &join->change[join->changes++ % OW_JOIN_CHANGES_MAX];
			*change = (struct ow_map_change){.epoch = epoch - 1,
			                                 .time_ns = (epoch - 1) * join->epoch_ns,
			                                 .from = i % 2 ? pair->b : pair->a,
			                                 .to = ow_join_other(pair, i % 2),
			                                 .packets = way->known,
			                                 .missing = way->missing,
			                                 .flows = way->missing_flows};
		}
		way->usual_known += way->known;
		way->usual_missing += way->missing;
		way->known = way->missing = way->missing_flows = 0;
	}
}

int ow_join_count_flows(struct ow_join *join, int64_t epoch)
{
	struct ow_join_flow *flow;
	size_t count;
	int r = keep(join, epoch);
	if (r == 0)
		r = gather(join, 1, OW_JOIN_SPANS, &flow, &count);
	if (r != 0)
		return r;
	walk(join, &join->batch[0], flow, count, note_known);
	find_changes(join, epoch);
	free(flow);
	r = gather(join, 0, OW_JOIN_SPANS, &flow, &count);
	if (r < 0)
		return r;
	walk(join, &join->batch[1], flow, count, note_loss);
	free(flow);
	return 0;
}
