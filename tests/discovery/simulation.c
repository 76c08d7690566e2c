/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation.h"

#include "base/random.h"
#include "discovery/sampler.h"
#include "plane/spf.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EPOCH_NS       OW_SAMPLE_EPOCH_NS
#define FIRST          INT64_C(175000000) /* the number of the first epoch */
#define FLOWS          4000u
#define PATH_MAX_LINKS 64
#define RING           4 /* open epochs of a vantage */
#define NONE           UINT32_MAX

struct vantage {
	uint32_t node, peer; /* an interface of node to peer; a tap: on the link from node to peer */
	enum ow_vantage_kind kind;
	uint32_t point;
	struct ow_bottom ring[RING];
};

struct truth {                   /* of two vantages, packets of the epochs that were settled */
	uint32_t passed, direct; /* both; as the next one */
	double delay;            /* sum, by both clocks */
	uint32_t path,
		compared; /* of epochs that can be compared: those at the first whose route leads to the second; those
	                            that passed both */
};

struct flow {
	uint32_t from, to, hash;
	double weight;
	uint32_t path[PATH_MAX_LINKS + 1];
	unsigned nodes;
	uint8_t ttl;
};

struct simulation {
	const struct ow_topology *topology;
	const struct simulation_options *options;
	struct ow_random random;
	struct ow_spf *spf; /* from each node */
	struct vantage *vantage;
	uint32_t vantages, points;
	uint32_t *out, *in, *tap[2];      /* vantages by link; NONE */
	double *offset, *drift, *step_at; /* of points, s */
	double *loss, *latency;           /* of links, s */
	unsigned *burst;                  /* packets of a burst that are still to be lost */
	bool *nat;
	struct flow flow[FLOWS];
	double weights[FLOWS + 1];
	double *mass;
	struct truth *truth; /* [from][to] */
	uint64_t *seen;      /* packets at a vantage */
	struct ow_join *join;
	double join_seconds, bytes;
	uint64_t messages;
};

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static double unit(struct simulation *s)
{
	return ow_random_unit(&s->random);
}

static uint32_t link_of(const struct simulation *s, uint32_t from, uint32_t to)
{
	uint32_t count;
	const struct ow_link *first = ow_topology_from(s->topology, 0, &count);
	return (uint32_t)(ow_topology_link(s->topology, from, to) - first);
}

/* -- the network ---------------------------------------------------------------------------------------------------- */

struct ow_topology *random_topology(unsigned routers, uint64_t seed)
{
	struct ow_topology *topology;
	struct ow_random random;
	ow_random_seed(&random, seed);
	if (ow_topology_create(&topology) < 0)
		abort();
	for (unsigned i = 0; i < routers; i++) {
		char name[16];
		uint32_t node;
		int length = snprintf(name, sizeof name, "r%u", i);
		if (ow_topology_add_node(topology, name, (size_t)length, &node, NULL) < 0)
			abort();
	}
	/* A tree, and half as many links again. */
	for (unsigned i = 1; i < routers + routers / 2; i++) {
		uint32_t a = i < routers ? i : (uint32_t)ow_random_below(&random, routers);
		uint32_t b = (uint32_t)ow_random_below(&random, i < routers ? i : routers);
		if (a == b)
			continue;
		struct ow_link link = {a, b, (int64_t)(1 + ow_random_below(&random, 3)) * OW_COST_ONE, NAN};
		struct ow_link back = {b, a, link.cost, NAN};
		if (ow_topology_add_link(topology, &link, NULL) < 0 || ow_topology_add_link(topology, &back, NULL) < 0)
			abort();
	}
	if (ow_topology_finish(topology) < 0)
		abort();
	return topology;
}

static uint32_t add_vantage(struct simulation *s, uint32_t node, uint32_t peer, enum ow_vantage_kind kind,
                            uint32_t point)
{
	struct vantage *v = &s->vantage[s->vantages];
	*v = (struct vantage){node, peer, kind, point, {{0}}};
	for (unsigned i = 0; i < RING; i++) {
		if (ow_bottom_init(&v->ring[i], s->options->k) < 0)
			abort();
	}
	return s->vantages++;
}

/* A tap shows both directions of a link, each as a vantage of its own. */
static void place_tap(struct simulation *s, uint32_t node)
{
	uint32_t count;
	const struct ow_link *link = ow_topology_from(s->topology, node, &count);
	uint32_t peer = link[ow_random_below(&s->random, count)].to;
	uint32_t there = link_of(s, node, peer);
	if (s->tap[0][there] != NONE || !ow_topology_link(s->topology, peer, node))
		return;
	s->tap[0][there] = add_vantage(s, node, peer, OW_VANTAGE_TAP, s->points);
	s->tap[0][link_of(s, peer, node)] = add_vantage(s, peer, node, OW_VANTAGE_TAP, s->points);
	s->points++;
}

static void place_router(struct simulation *s, uint32_t node)
{
	uint32_t count;
	const struct ow_link *link = ow_topology_from(s->topology, node, &count);
	for (uint32_t i = 0; i < count && s->vantages + 2 <= s->options->vantages; i++) {
		s->out[link_of(s, node, link[i].to)] = add_vantage(s, node, link[i].to, OW_VANTAGE_OUT, s->points);
		if (ow_topology_link(s->topology, link[i].to, node))
			s->in[link_of(s, link[i].to, node)] =
				add_vantage(s, node, link[i].to, OW_VANTAGE_IN, s->points);
	}
	s->points++;
}

static void place(struct simulation *s)
{
	uint32_t nodes = ow_topology_nodes(s->topology), *order = need(calloc(nodes, sizeof *order));
	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t k = (uint32_t)ow_random_below(&s->random, i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (uint32_t i = 0; i < nodes && s->vantages + 2 <= s->options->vantages; i++) {
		if (unit(s) < s->options->taps)
			place_tap(s, order[i]);
		else
			place_router(s, order[i]);
	}
	free(order);
}

static void set_up(struct simulation *s)
{
	uint32_t nodes = ow_topology_nodes(s->topology), links = ow_topology_links(s->topology);
	uint32_t *none[] = {need(calloc(links, 4)), need(calloc(links, 4)), need(calloc(links, 4))};
	for (unsigned k = 0; k < 3; k++)
		memset(none[k], 0xff, links * sizeof(uint32_t));
	s->out = none[0];
	s->in = none[1];
	s->tap[0] = none[2];
	s->vantage = need(calloc(s->options->vantages + 2, sizeof *s->vantage));
	place(s);
	s->offset = need(calloc(s->points, sizeof(double)));
	s->drift = need(calloc(s->points, sizeof(double)));
	s->step_at = need(calloc(s->points, sizeof(double)));
	for (uint32_t i = 0; i < s->points; i++) {
		s->offset[i] = (2 * unit(s) - 1) * s->options->clock_s;
		s->drift[i] = s->options->clock_s > 0 ? (2 * unit(s) - 1) * 30e-6 : 0;
		s->step_at[i] = unit(s) < s->options->clock_steps ? 45.0 : INFINITY;
	}
	s->loss = need(calloc(links, sizeof(double)));
	s->latency = need(calloc(links, sizeof(double)));
	s->burst = need(calloc(links, sizeof(unsigned)));
	uint32_t count;
	const struct ow_link *link = ow_topology_from(s->topology, 0, &count);
	for (uint32_t i = 0; i < links; i++) {
		s->loss[i] = unit(s) < s->options->lossy ? unit(s) * s->options->loss_max : 0;
		s->latency[i] = isnan(link[i].latency_ns) ? 0.0005 + 0.005 * unit(s) : link[i].latency_ns / 1e9;
	}
	s->nat = need(calloc(nodes, sizeof(bool)));
	s->mass = need(calloc(nodes + 1, sizeof(double)));
	s->spf = need(calloc(nodes, sizeof *s->spf));
	for (uint32_t i = 0; i < nodes; i++) {
		s->nat[i] = unit(s) < s->options->nat;
		s->mass[i + 1] = s->mass[i] + exp(2 * sqrt(-2 * log(1 - unit(s))) * cos(2 * M_PI * unit(s)));
		if (ow_spf_run(s->topology, i, &s->spf[i]) < 0)
			abort();
	}
	s->truth = need(calloc((size_t)s->vantages * s->vantages + 1, sizeof *s->truth));
	s->seen = need(calloc(s->vantages + 1, sizeof *s->seen));
}

static void tear_down(struct simulation *s)
{
	for (uint32_t i = 0; i < s->vantages; i++) {
		for (unsigned k = 0; k < RING; k++)
			ow_bottom_done(&s->vantage[i].ring[k]);
	}
	for (uint32_t i = 0; i < ow_topology_nodes(s->topology); i++)
		ow_spf_done(&s->spf[i]);
	void *all[] = {s->out,     s->in,    s->tap[0], s->vantage, s->offset, s->drift, s->step_at, s->loss,
	               s->latency, s->burst, s->nat,    s->mass,    s->spf,    s->truth, s->seen};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	ow_join_free(s->join);
}

/* -- traffic -------------------------------------------------------------------------------------------------------- */

static uint32_t pick(struct simulation *s, const double *sum, uint32_t count)
{
	double at = unit(s) * sum[count];
	uint32_t low = 0, high = count;
	while (low + 1 < high) {
		uint32_t middle = (low + high) / 2;
		if (sum[middle] <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Back from the destination; a flow stays on its way. */
static bool route(struct simulation *s, struct flow *f, uint32_t salt)
{
	const struct ow_spf *spf = &s->spf[f->from];
	uint32_t back[PATH_MAX_LINKS + 1], n = 0;
	for (uint32_t at = f->to; at != f->from;) {
		uint32_t choices = spf->first[at + 1] - spf->first[at];
		if (choices == 0 || n == PATH_MAX_LINKS)
			return false;
		back[n++] = at;
		at = spf->from[spf->first[at] + (f->hash ^ salt) % choices];
	}
	f->nodes = 0;
	f->path[f->nodes++] = f->from;
	while (n > 0)
		f->path[f->nodes++] = back[--n];
	return true;
}

static void new_flow(struct simulation *s, struct flow *f)
{
	static const uint8_t ttls[] = {64, 128, 255};
	uint32_t nodes = ow_topology_nodes(s->topology);
	do {
		*f = (struct flow){.from = pick(s, s->mass, nodes),
		                   .to = pick(s, s->mass, nodes),
		                   .hash = (uint32_t)ow_random_u64(&s->random),
		                   .ttl = ttls[ow_random_below(&s->random, 3)],
		                   .weight = fmin(200, pow(1 - unit(s), -1 / 1.2))};
	} while (f->from == f->to || !route(s, f, 0));
}

static void see(struct simulation *s, uint32_t vantage, struct ow_sample_record *r, double at_s, uint32_t *passed,
                double *times, unsigned *count)
{
	if (vantage == NONE)
		return;
	struct vantage *v = &s->vantage[vantage];
	double clock = at_s + s->offset[v->point] + s->drift[v->point] * at_s + (at_s > s->step_at[v->point] ? 0.2 : 0);
	if (clock < 0)
		return;
	passed[*count] = vantage;
	times[(*count)++] = clock;
	if (s->options->drops > 0 && unit(s) < s->options->drops)
		return;
	r->time_ns = FIRST * EPOCH_NS + (int64_t)(clock * 1e9);
	struct ow_bottom *bottom = &v->ring[(uint64_t)(r->time_ns / EPOCH_NS) % RING];
	bottom->packets++;
	if (ow_bottom_wants(bottom, r->id))
		ow_bottom_add(bottom, r);
}

static bool is_lost(struct simulation *s, uint32_t link)
{
	if (s->burst[link]) {
		s->burst[link]--;
		return true;
	}
	double length = s->options->bursts > 0 ? s->options->bursts : 1;
	if (s->loss[link] <= 0 || unit(s) >= s->loss[link] / length)
		return false;
	s->burst[link] = (unsigned)length - 1;
	return true;
}

/* The vantages that the packet would have passed: for the truth of loss. */
static unsigned way_of(const struct simulation *s, const struct flow *f, uint32_t *way)
{
	unsigned count = 0;
	for (unsigned i = 0; i + 1 < f->nodes; i++) {
		uint32_t link = link_of(s, f->path[i], f->path[i + 1]);
		uint32_t some[] = {s->out[link], s->tap[0][link], s->in[link]};
		for (unsigned k = 0; k < 3; k++) {
			if (some[k] != NONE)
				way[count++] = some[k];
		}
	}
	return count;
}

/* What happened to a packet, for the epochs that the join settles, and those among them that it can compare. */
static void note_truth(struct simulation *s, const uint32_t *way, unsigned ways, const uint32_t *passed,
                       const double *times, unsigned count)
{
	double first = INFINITY;
	for (unsigned i = 0; i < count; i++)
		first = fmin(first, times[i]);
	if (first / 10 >= s->options->epochs - 2)
		return;
	bool compared = first / 10 >= 1;
	for (unsigned i = 0; i < count; i++) {
		s->seen[passed[i]] += compared;
		for (unsigned k = i + 1; k < ways && compared; k++)
			s->truth[passed[i] * s->vantages + way[k]].path++;
		for (unsigned k = i + 1; k < count; k++) {
			struct truth *truth = &s->truth[passed[i] * s->vantages + passed[k]];
			truth->passed++;
			truth->compared += compared;
			truth->direct += k == i + 1;
			truth->delay += compared ? times[k] - times[i] : 0;
		}
	}
}

static void send(struct simulation *s, const struct flow *f, double at_s)
{
	uint32_t passed[3 * PATH_MAX_LINKS], way[3 * PATH_MAX_LINKS];
	double times[3 * PATH_MAX_LINKS];
	unsigned count = 0, ways = way_of(s, f, way);
	struct ow_sample_record r = {.id = ow_random_u64(&s->random), .flow = f->hash, .ttl = f->ttl, .copies = 1};
	if (s->options->copies > 0 && unit(s) < s->options->copies)
		r.copies = 2;
	for (unsigned i = 0; i + 1 < f->nodes; i++) {
		uint32_t link = link_of(s, f->path[i], f->path[i + 1]);
		r.ttl--;
		if (s->nat[f->path[i]])
			r.flow = r.flow * 2654435761u + 1;
		see(s, s->out[link], &r, at_s, passed, times, &count);
		if (is_lost(s, link))
			break;
		double share = 0.2 + 0.6 * 0.5, late = s->latency[link] - 0.0003 * log(1 - unit(s));
		see(s, s->tap[0][link], &r, at_s + share * late, passed, times, &count);
		at_s += late;
		see(s, s->in[link], &r, at_s, passed, times, &count);
		at_s += 20e-6 - 20e-6 * log(1 - unit(s));
	}
	note_truth(s, way, ways, passed, times, count);
}

/* -- epochs --------------------------------------------------------------------------------------------------------- */

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void publish(struct simulation *s, int64_t epoch)
{
	for (uint32_t i = 0; i < s->vantages; i++) {
		struct vantage *v = &s->vantage[i];
		struct ow_bottom *bottom = &v->ring[(uint64_t)(FIRST + epoch) % RING];
		bool stepped = (double)epoch * 10 + 10 > s->step_at[v->point];
		struct ow_vantage_sample sample = {.kind = v->kind,
		                                   .clock_generation = stepped ? 2 : 1,
		                                   .epoch = FIRST + epoch,
		                                   .epoch_ns = EPOCH_NS,
		                                   .start_ns = (FIRST + epoch) * EPOCH_NS,
		                                   .end_ns = (FIRST + epoch + 1) * EPOCH_NS,
		                                   .clock_error_ns = -1},
					 back;
		uint8_t *bytes;
		size_t size;
		snprintf(sample.point, sizeof sample.point, "p%u", v->point);
		snprintf(sample.interface, sizeof sample.interface, "%u-%u", v->node, v->peer);
		if (ow_bottom_take(bottom, &sample) < 0)
			abort();
		sample.drops = (uint64_t)((double)sample.packets * s->options->drops);
		/* What the point saw before its clock was set is discarded. */
		if (stepped && (double)epoch * 10 <= s->step_at[v->point]) {
			sample.count = 0;
			sample.start_ns += EPOCH_NS / 2;
		}
		ow_bottom_reset(bottom);
		if (ow_vantage_sample_encode(&sample, &bytes, &size, NULL) < 0 ||
		    ow_vantage_sample_decode(bytes, size, &back, NULL) < 0)
			abort();
		s->bytes += (double)size;
		s->messages++;
		if (unit(s) >= s->options->missing && ow_join_add(s->join, &back) < 0)
			abort();
		ow_vantage_sample_done(&back);
		ow_vantage_sample_done(&sample);
		free(bytes);
	}
	double from = now_s();
	if (ow_join_settle(s->join, FIRST + epoch) < 0)
		abort();
	s->join_seconds += now_s() - from;
}

static void run(struct simulation *s)
{
	for (unsigned i = 0; i < FLOWS; i++)
		new_flow(s, &s->flow[i]);
	for (unsigned epoch = 0; epoch < s->options->epochs; epoch++) {
		bool rerouted = s->options->reroute_s > 0 && epoch * 10.0 >= s->options->reroute_s;
		for (unsigned i = 0; i < FLOWS; i++) {
			if (epoch > 0 && unit(s) < 0.3)
				new_flow(s, &s->flow[i]);
			else if (rerouted && i % 2)
				route(s, &s->flow[i], 0x5bd1e995u);
			s->weights[i + 1] = s->weights[i] + s->flow[i].weight;
		}
		for (unsigned i = 0; i < s->options->packets; i++)
			send(s, &s->flow[pick(s, s->weights, FLOWS)], epoch * 10.0 + 10 * unit(s));
		if (epoch > 0)
			publish(s, epoch - 1);
	}
}

/* -- the score ------------------------------------------------------------------------------------------------------ */

static uint32_t number_of(const struct simulation *s, const struct ow_map_vantage *v)
{
	unsigned point, node, peer;
	if (sscanf(v->point + 1, "%u", &point) != 1 || sscanf(v->interface, "%u-%u", &node, &peer) != 2)
		abort();
	for (uint32_t i = 0; i < s->vantages; i++) {
		const struct vantage *one = &s->vantage[i];
		if (one->point == point && one->node == node && one->peer == peer && one->kind == v->kind)
			return i;
	}
	abort();
}

static void score_pair(const struct simulation *s, const struct ow_map_pair *pair, uint32_t a, uint32_t b,
                       struct simulation_score *score)
{
	const struct truth *truth = &s->truth[a * s->vantages + b], *back = &s->truth[b * s->vantages + a];
	score->firm += pair->adjacency == OW_FIRM;
	score->firm_right += pair->adjacency == OW_FIRM && truth->direct > 0;
	score->firm_reversed += pair->adjacency == OW_FIRM && truth->passed == 0 && back->passed > 0;
	score->provisional += pair->adjacency == OW_PROVISIONAL;
	score->provisional_right += pair->adjacency == OW_PROVISIONAL && truth->direct > 0;
	score->unknown_order += pair->adjacency == OW_UNKNOWN_ORDER;
	if (pair->adjacency == OW_UNKNOWN_ORDER)
		return;
	score->ordered++;
	score->order_wrong += truth->passed == 0;
	double share = s->seen[a] ? truth->compared / (double)s->seen[a] : 0;
	/* Without sampling the share is exact, and the ends of epochs, which are cut by other clocks here, decide. */
	bool sampled = s->seen[a] > 2 * (uint64_t)s->options->k * s->options->epochs;
	if (share >= 0.01 && pair->share.status != OW_VALUE_NONE && sampled) {
		score->shares++;
		score->shares_in += pair->share.low <= share && share <= pair->share.high;
	}
	if (truth->compared > 0 && pair->packets >= 30 && sampled && pair->delay_ns.status == OW_VALUE_ESTIMATED) {
		double mean = truth->delay / truth->compared * 1e9;
		score->delays++;
		score->delays_in += pair->delay_ns.low <= mean && mean <= pair->delay_ns.high;
	}
	if (truth->path > 0 && pair->loss_packets >= 100) {
		double loss = 1 - (double)truth->compared / truth->path;
		score->losses++;
		score->losses_in += pair->loss.low <= loss && loss <= pair->loss.high;
		score->clean += truth->compared == truth->path;
		score->accused += truth->compared == truth->path && pair->lost > 0;
	}
	if (pair->offset_least_ns != INT64_MIN && pair->offset_most_ns != INT64_MAX) {
		double at = s->options->epochs * 10.0 - 25, offset[2];
		uint32_t p[2] = {s->vantage[a].point, s->vantage[b].point};
		for (int i = 0; i < 2; i++)
			offset[i] = (s->offset[p[i]] + s->drift[p[i]] * at + (at > s->step_at[p[i]] ? 0.2 : 0)) * 1e9;
		score->offsets++;
		score->offsets_out += offset[1] - offset[0] < (double)pair->offset_least_ns - 5e5 ||
		                      offset[1] - offset[0] > (double)pair->offset_most_ns + 5e5;
	}
}

static bool is_adjacent(const struct ow_map *map, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < map->pairs; i++)
		if (map->pair[i].from == from && map->pair[i].to == to)
			return map->pair[i].adjacency != OW_NOT_ADJACENT;
	return false;
}

static void score_edges(const struct simulation *s, const struct ow_map *map, const uint32_t *place,
                        struct simulation_score *score)
{
	static const double least[] = {0.3, 0.03, 0.01, 0.003, 0};
	for (uint32_t a = 0; a < s->vantages; a++) {
		for (uint32_t b = 0; b < s->vantages; b++) {
			const struct truth *truth = &s->truth[a * s->vantages + b];
			if (truth->direct == 0 || (double)truth->direct < 0.05 * truth->passed)
				continue;
			double busier = (double)(s->seen[a] > s->seen[b] ? s->seen[a] : s->seen[b]);
			unsigned class = 0;
			while (truth->compared / busier < least[class])
				class ++;
			score->edges[class]++;
			score->found[class] += is_adjacent(map, place[a], place[b]);
		}
	}
}

static void judge(const struct simulation *s, struct simulation_score *score)
{
	struct ow_map map;
	if (ow_join_map(s->join, &map) < 0)
		abort();
	uint32_t *number = need(calloc(map.vantages + 1, 4)), *place = need(calloc(s->vantages + 1, 4));
	memset(place, 0xff, s->vantages * sizeof *place);
	for (uint32_t i = 0; i < map.vantages; i++) {
		number[i] = number_of(s, &map.vantage[i]);
		place[number[i]] = i;
	}
	for (uint32_t i = 0; i < map.pairs; i++)
		score_pair(s, &map.pair[i], number[map.pair[i].from], number[map.pair[i].to], score);
	score_edges(s, &map, place, score);
	score->changes += map.changes;
	score->seconds += s->join_seconds / s->options->epochs;
	score->bytes += s->bytes / (double)s->messages;
	score->counts = map.counts;
	free(number);
	free(place);
	ow_map_done(&map);
}

void simulate(const struct ow_topology *topology, const struct simulation_options *options,
              struct simulation_score *score)
{
	struct simulation *s = need(calloc(1, sizeof *s));
	s->topology = topology;
	s->options = options;
	ow_random_seed(&s->random, options->seed);
	set_up(s);
	if (ow_join_create(EPOCH_NS, &s->join) < 0)
		abort();
	run(s);
	judge(s, score);
	tear_down(s);
	free(s);
}
