/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/directions.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/id_map.h"
#include "base/side.h"
#include "packet/scope_flow.h"
#include "reconcile/whole_flow.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN     OW_DIRECTIONS
#define FIRST_FLOWS 1024u
#define PREFIXES    4 /* the host itself, and three sizes of network around it */
#define CLEAR_VOTES 8 /* votes from which on a pair of hosts needs no further evidence */
#define CLEAR_SHARE \
	0.5F /* of votes, from -1 to 1: half of what unanimous packets differ by if a clock was set in the middle */
#define CLEAR_NS 2000 /* or a mean delay beyond two ticks of a microsecond clock */

/* Losses of so much time are known; what is missing waits for half of it. */
#define SPAN_NS     (INT64_C(1) << 38)
#define MISSEDS_MAX 65536u
#define BINS_MAX    64 /* of a flow: if none of so many packets arrived, others tell nothing new */

int ow_directions_create(struct ow_directions **ret_directions)
{
	struct ow_directions *d = calloc(1, sizeof *d);
	if (d && ow_loss_bins_create(&d->bins[OW_A_TO_B], SPAN_NS) == 0 &&
	    ow_loss_bins_create(&d->bins[OW_B_TO_A], SPAN_NS) == 0) {
		*ret_directions = d;
		return 0;
	}
	ow_directions_free(d);
	return -ENOMEM;
}

void ow_directions_free(struct ow_directions *directions)
{
	if (!directions)
		return;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++)
		ow_loss_bins_done(&directions->bins[way]);
	free(directions->missed);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		free(directions->flow[side]);
		free(directions->repeats[side]);
	}
	free(directions);
}

static int make_room(struct ow_directions *d, enum ow_side side, uint32_t room)
{
	uint32_t had = d->room[side];
	struct ow_flow_evidence *flow = aligned_alloc(OW_FLOW_EVIDENCE_BYTES, room * sizeof *flow);
	struct ow_flow_repeats *repeats = malloc(room * sizeof *repeats);
	if (!flow || !repeats) {
		free(flow);
		free(repeats);
		return -ENOMEM;
	}
	if (had) {
		memcpy(flow, d->flow[side], had * sizeof *flow);
		memcpy(repeats, d->repeats[side], had * sizeof *repeats);
	}
	free(d->flow[side]);
	free(d->repeats[side]);
	d->flow[side] = flow;
	d->repeats[side] = repeats;
	d->room[side] = room;
	return 0;
}

struct ow_flow_evidence *ow_directions_grow(struct ow_directions *d, enum ow_side side, uint32_t flow)
{
	if (flow >= d->room[side]) {
		uint32_t room = d->room[side] ? d->room[side] : FIRST_FLOWS;
		while (room <= flow)
			room *= 2;
		if (make_room(d, side, room) < 0)
			return NULL;
	}
	for (; d->flows[side] <= flow; d->flows[side]++) {
		d->flow[side][d->flows[side]] = (struct ow_flow_evidence){.direction = UNKNOWN};
		d->repeats[side][d->flows[side]] = (struct ow_flow_repeats){0};
	}
	return &d->flow[side][flow];
}

/* How likely it is that the packets that were missed are lost. */
static void weigh_missed(struct ow_directions *d)
{
	double q[OW_SIDES];
	for (unsigned side = 0; side < OW_SIDES; side++)
		q[side] = ow_usual_loss((double)d->lost[side], (double)d->sent[side]);
	for (const struct ow_missing_packet *m = d->missed; m < d->missed + d->misseds; m++)
		ow_flow_loss_add(&d->bins[m->side], &d->repeats[m->side][m->flow].loss, m->time_ns, q[m->side]);
	d->misseds = 0;
}

int ow_directions_missed(struct ow_directions *d, enum ow_side side, uint32_t flow, int64_t time_ns)
{
	struct ow_flow_repeats *of = &d->repeats[side][flow];
	time_ns = ow_directions_time(d, time_ns);
	if (of->bins == BINS_MAX || !ow_flow_loss_begins(&d->bins[side], &of->loss, time_ns))
		return 0;
	if (d->misseds == MISSEDS_MAX || (d->misseds && time_ns - d->missed[0].time_ns > SPAN_NS / 2))
		weigh_missed(d);
	if (OW_GROW(d->missed, d->missed_room, d->misseds + 1) < 0)
		return -ENOMEM;
	of->bins++;
	d->missed[d->misseds++] = (struct ow_missing_packet){time_ns, flow, side};
	return 0;
}

static void forget_losses(struct ow_directions *d)
{
	if (!d->has_origin) /* nothing was noted */
		return;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		ow_loss_bins_clear(&d->bins[way]);
		d->sent[way] = d->lost[way] = 0;
	}
	d->misseds = 0;
	d->has_origin = false;
}

void ow_directions_forget(struct ow_directions *directions)
{
	directions->flows[OW_SIDE_A] = directions->flows[OW_SIDE_B] = 0;
	forget_losses(directions);
}

void ow_directions_restart(struct ow_directions *directions)
{
	forget_losses(directions);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < directions->flows[side]; i++) {
			struct ow_flow_evidence *e = &directions->flow[side][i];
			*e = (struct ow_flow_evidence){.direction = e->direction, .decided = e->decided};
			directions->repeats[side][i] = (struct ow_flow_repeats){0};
		}
	}
}

/* -- hosts and pairs of hosts ------------------------------------------------------------------------------------- */

/* An unordered pair of hosts with its two orientations; a host with the weight of evidence for either side; or flows of
 * one side between two networks, or to a network, in one direction. */
struct group {
	uint64_t key;     /* hash */
	float matched[2]; /* pairs: by orientation; hosts: matched packets that show that it is on A's, on B's side */
	float votes[2], delay_sum[2];       /* pairs: of the unique packets, .. */
	float unique[2];                    /* .. and their number; */
	float alike_votes[2], alike_sum[2]; /* of identical ones */
	uint8_t direction[2];               /* pairs: of either orientation */
	bool clear;                         /* pairs: their own packets show it without doubt */
	struct ow_flow_share share;         /* networks; matched[0]: of its flows */
};

struct groups {
	struct group *group;
	uint32_t count, room;
	struct ow_id_map by_key;
	uint64_t secret;     /* random, so that a crafted capture cannot choose hosts that collide */
	bool failed;         /* out of memory: */
	struct group forgot; /* used if there was no memory for a group: its counts are lost */
};

static void groups_done(struct groups *g)
{
	free(g->group);
	ow_id_map_done(&g->by_key);
}

static struct group *group_of(const struct groups *g, uint64_t key)
{
	uint32_t i = g->group ? OW_ID_MAP_FIND(&g->by_key, key, j, g->group[j].key == key) : OW_ID_MAP_NONE;
	return i != OW_ID_MAP_NONE ? &g->group[i] : NULL;
}

/* The group of a key, entered if new; valid until the next call. */
static struct group *group_at(struct groups *g, uint64_t key)
{
	struct group *known = group_of(g, key);
	if (known)
		return known;
	if (g->failed || OW_GROW(g->group, g->room, g->count + 1) < 0 || ow_id_map_add(&g->by_key, key, g->count) < 0) {
		g->failed = true;
		return &g->forgot;
	}
	g->group[g->count] = (struct group){.key = key, .direction = {UNKNOWN, UNKNOWN}};
	return &g->group[g->count++];
}

static uint64_t host_hash(const struct groups *g, const uint8_t address[16])
{
	uint64_t a, b;
	memcpy(&a, address, 8);
	memcpy(&b, address + 8, 8);
	return ow_mum64(ow_mum64(a ^ g->secret, b ^ ow_mix64(g->secret)) ^ ow_mix64(~g->secret),
	                a ^ (b << 1) ^ g->secret);
}

/* 1 if source and destination are in the order of their addresses, so that the two directions differ. */
static unsigned orientation(const struct ow_flow_key *key)
{
	return memcmp(key->src, key->dst, sizeof key->src) < 0;
}

static struct group *pair_of(struct groups *pairs, const struct ow_flow_key *key)
{
	uint64_t s = host_hash(pairs, key->src), d = host_hash(pairs, key->dst);
	return group_at(pairs, orientation(key) ? ow_mix64(s) ^ d : ow_mix64(d) ^ s);
}

/* -- deciding ----------------------------------------------------------------------------------------------------- */

/* Of the flows of a side in a direction: packets of those that have matches, and flows without any. */
struct rates {
	double sent, lost;
	double flows, absent;
};

struct decision {
	struct ow_directions *d;
	const struct ow_flow_table *const *keys;
	struct groups pairs, hosts, networks;
	struct ow_scope_hash hash;
	struct rates rates[OW_SIDES][OW_DIRECTIONS];
};

static uint8_t opposite(uint8_t direction)
{
	return direction == UNKNOWN ? UNKNOWN : !direction;
}

static uint8_t by_votes(double votes)
{
	return votes < 0 ? OW_B_TO_A : OW_A_TO_B;
}

static void gather_pairs(struct decision *c)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			const struct ow_flow_evidence *e = &c->d->flow[side][i];
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			if (!e->matched || !key)
				continue;
			struct group *pair = pair_of(&c->pairs, key);
			const struct ow_flow_repeats *alike = &c->d->repeats[side][i];
			unsigned o = orientation(key);
			pair->matched[o] += (float)e->matched;
			pair->unique[o] += (float)(e->matched - alike->matched);
			pair->votes[o] += (float)(e->votes - alike->votes);
			pair->delay_sum[o] += (float)(e->delay_sum_ns - alike->delay_sum_ns);
			pair->alike_votes[o] += (float)alike->votes;
			pair->alike_sum[o] += (float)alike->delay_sum_ns;
		}
	}
}

/* Few packets, or delays of the size of a clock tick, may show the wrong direction. */
static bool points_clearly(const struct group *p, unsigned o)
{
	float mean = p->unique[o] > 0 ? p->delay_sum[o] / p->unique[o] : 0;
	return fabsf(p->votes[o]) >= CLEAR_VOTES || (fabsf(mean) > CLEAR_NS && mean * p->votes[o] > 0);
}

/* The direction of one orientation by its own packets: the unique ones, if there are any. */
static uint8_t own_way(const struct group *p, unsigned o)
{
	return p->matched[o] > 0 ? by_votes(p->unique[o] > 0 ? p->votes[o] : p->alike_votes[o]) : UNKNOWN;
}

static float mean_delay(const struct group *p, unsigned o)
{
	return p->unique[o] > 0 ? p->delay_sum[o] / p->unique[o] : p->alike_sum[o] / p->matched[o];
}

/*
 * By how much more one orientation is later at B than the other: by the share of its packets if these differ clearly, as when a
 * clock was set by much more than packets take; otherwise by the mean delays.
 */
static float later_by(const struct group *p)
{
	float share[2] = {0};
	for (unsigned o = 0; o < 2; o++)
		share[o] = p->unique[o] > 0 ? p->votes[o] / p->unique[o] : 0;
	return fabsf(share[1] - share[0]) > CLEAR_SHARE ? share[1] - share[0] : mean_delay(p, 1) - mean_delay(p, 0);
}

/* One orientation only, and its delays are shorter than what the clocks may be off by. */
static bool in_doubt(const struct group *p, int64_t doubt_ns)
{
	unsigned o = p->matched[1] > 0;
	return !(p->matched[0] > 0 && p->matched[1] > 0) && fabsf(mean_delay(p, o)) < (float)doubt_ns;
}

static void decide_pair(struct group *p, enum ow_direction_rule rule, enum ow_direction way, int64_t doubt_ns)
{
	p->clear = rule == OW_ONE_WAY || ((points_clearly(p, 0) || points_clearly(p, 1)) && !in_doubt(p, doubt_ns));
	for (unsigned o = 0; o < 2; o++)
		p->direction[o] = p->matched[o] > 0 && rule == OW_ONE_WAY ? way : own_way(p, o);
	if (p->direction[0] == UNKNOWN || p->direction[1] == UNKNOWN || p->direction[0] != p->direction[1])
		return;
	/* Both have the same direction. If one has only identical packets, it gets the reverse one. */
	if ((p->unique[0] > 0) != (p->unique[1] > 0)) {
		unsigned o = p->unique[0] > 0;
		p->direction[o] = opposite(p->direction[!o]);
		return;
	}
	/* Otherwise the clocks differ: the direction that is later at B goes to B. */
	float later = later_by(p);
	/* Delays of 0 in both directions: the orientation with more packets is taken as A to B. */
	bool to_b = later != 0 ? later > 0 : p->matched[1] >= p->matched[0];
	p->direction[1] = to_b ? OW_A_TO_B : OW_B_TO_A;
	p->direction[0] = opposite(p->direction[1]);
}

/* A network around an address: what is known about one host is used for its neighbours. */
static uint64_t network_hash(const struct groups *hosts, const uint8_t address[16], uint8_t version, unsigned level)
{
	static const uint8_t v4[PREFIXES] = {4, 3, 2, 1}, v6[PREFIXES] = {16, 8, 6, 4}, mac[PREFIXES] = {6, 6, 6, 6};
	uint8_t prefix[16] = {0};
	memcpy(prefix, address, version == 4 ? v4[level] : version == 6 ? v6[level] : mac[level]);
	return ow_mix64(host_hash(hosts, prefix) + level);
}

static void name_host(struct decision *c, const uint8_t address[16], uint8_t version)
{
	for (unsigned level = 0; level < PREFIXES; level++)
		group_at(&c->hosts, network_hash(&c->hosts, address, version, level));
}

/* The hosts whose sides will be asked for, of flows without a match or a clear direction: usually few. */
static void name_hosts(struct decision *c)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			if (!key || (c->d->flow[side][i].matched && pair_of(&c->pairs, key)->clear))
				continue;
			name_host(c, key->src, key->version);
			name_host(c, key->dst, key->version);
		}
	}
}

/* Counts matched packets as evidence that a host, and the networks around it, are on this side. */
static void place_host(struct decision *c, const uint8_t address[16], uint8_t version, unsigned side, uint64_t matched)
{
	for (unsigned level = 0; level < PREFIXES; level++) {
		struct group *host = group_of(&c->hosts, network_hash(&c->hosts, address, version, level));
		if (host)
			host->matched[side] += (float)matched;
	}
}

/* The side of a host: by its own evidence, otherwise by that of the smallest network around it that has any. */
static int side_of(struct decision *c, const uint8_t address[16], uint8_t version)
{
	for (unsigned level = 0; level < PREFIXES; level++) {
		const struct group *g = group_of(&c->hosts, network_hash(&c->hosts, address, version, level));
		if (!g || (g->matched[OW_SIDE_A] == 0 && g->matched[OW_SIDE_B] == 0))
			continue;
		if (g->matched[OW_SIDE_A] > 9 * g->matched[OW_SIDE_B])
			return OW_SIDE_A;
		return g->matched[OW_SIDE_B] > 9 * g->matched[OW_SIDE_A] ? OW_SIDE_B : -1;
	}
	return -1;
}

/* The direction of a flow by the sides of its hosts. */
static uint8_t way_by_sides(struct decision *c, const struct ow_flow_key *key)
{
	int from = side_of(c, key->src, key->version), to = side_of(c, key->dst, key->version);
	if (from >= 0 && to >= 0)
		return from == to ? UNKNOWN : ow_sent_by(from);
	if (from >= 0)
		return ow_sent_by(from);
	if (to >= 0)
		return to == OW_SIDE_B ? OW_A_TO_B : OW_B_TO_A;
	return UNKNOWN;
}

/* Counts the matches of all flows whose pair is clear (or not) for the sides of their hosts. */
static void place_flows(struct decision *c, bool clear)
{
	for (unsigned side = 0; side < OW_SIDES && c->hosts.count; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			const struct ow_flow_evidence *e = &c->d->flow[side][i];
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			if (!e->matched || !key)
				continue;
			const struct group *pair = pair_of(&c->pairs, key);
			if (pair->clear != clear)
				continue;
			bool to_b = pair->direction[orientation(key)] == OW_A_TO_B;
			place_host(c, key->src, key->version, to_b ? OW_SIDE_A : OW_SIDE_B, e->matched);
			place_host(c, key->dst, key->version, to_b ? OW_SIDE_B : OW_SIDE_A, e->matched);
		}
	}
}

/* Pairs without a clear direction get that of their hosts' networks, if these are known. */
static void decide_doubtful_pairs(struct decision *c)
{
	for (uint32_t i = 0; i < c->d->flows[OW_SIDE_A]; i++) {
		const struct ow_flow_key *key = ow_flow_table_key(c->keys[OW_SIDE_A], i);
		if (!c->d->flow[OW_SIDE_A][i].matched || !key)
			continue;
		struct group *pair = pair_of(&c->pairs, key);
		uint8_t way = pair->clear ? UNKNOWN : way_by_sides(c, key);
		if (way != UNKNOWN) {
			pair->direction[orientation(key)] = way;
			pair->direction[!orientation(key)] = opposite(way);
		}
	}
}

static void decide_matched_flows(struct decision *c)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			struct ow_flow_evidence *e = &c->d->flow[side][i];
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			e->decided = true;
			e->direction = UNKNOWN;
			if (!e->matched || !key)
				continue;
			e->direction = pair_of(&c->pairs, key)->direction[orientation(key)];
		}
	}
}

/* Addresses that no router forwards: only one point may see such packets. */
static bool stays_on_link(const struct ow_flow_key *key)
{
	if (key->version == 4)
		return key->dst[0] >= 224 || key->src[0] == 0 || (key->dst[0] == 169 && key->dst[1] == 254) ||
		       (key->src[0] == 169 && key->src[1] == 254);
	if (key->version == 6)
		return key->dst[0] == 0xff || (key->dst[0] == 0xfe && (key->dst[1] & 0xc0) == 0x80) ||
		       (key->src[0] == 0xfe && (key->src[1] & 0xc0) == 0x80);
	return true;
}

/* A conversation that only this point saw: it was answered, so it was not lost; it does not pass the other point. */
static bool answered_here(const struct decision *c, unsigned side, const struct ow_flow_key *key)
{
	struct ow_flow_key back = *key;
	memcpy(back.src, key->dst, sizeof back.src);
	memcpy(back.dst, key->src, sizeof back.dst);
	back.sport = key->dport;
	back.dport = key->sport;
	if (memcmp(&back, key, sizeof back) == 0)
		return false;
	uint32_t i = ow_flow_table_find(c->keys[side], &back);
	return i < c->d->flows[side] && !c->d->flow[side][i].matched && c->d->flow[side][i].unmatched;
}

/* The probable direction of a flow without matches, from what is known about its hosts. */
static uint8_t expected_direction(struct decision *c, unsigned side, const struct ow_flow_key *key)
{
	const struct group *pair = pair_of(&c->pairs, key);
	unsigned o = orientation(key);
	if (pair->direction[o] != UNKNOWN || pair->direction[!o] != UNKNOWN)
		return answered_here(c, side, key)     ? UNKNOWN
		       : pair->direction[o] != UNKNOWN ? pair->direction[o]
		                                       : opposite(pair->direction[!o]);
	if (stays_on_link(key) || answered_here(c, side, key))
		return UNKNOWN;
	return way_by_sides(c, key);
}

/* -- flows without a match: reconcile/whole_flow.h ----------------------------------------------------------------- */

/* Its pair of networks and its destination. */
static void networks_of(const struct decision *c, unsigned side, uint8_t way, const struct ow_flow_key *key,
                        uint64_t ret_keys[2])
{
	struct ow_scope_flow flow;
	ow_scope_flow_of(&c->hash, key, &flow);
	ret_keys[0] = flow.pair ^ (2 * side + way);
	ret_keys[1] = flow.dest ^ (2 * side + way);
}

/* The networks that are asked for: usually few. */
static void name_networks(struct decision *c)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			uint8_t way = c->d->flow[side][i].matched || !key ? UNKNOWN : expected_direction(c, side, key);
			uint64_t keys[2];
			if (way == UNKNOWN)
				continue;
			networks_of(c, side, way, key, keys);
			group_at(&c->networks, keys[0]);
			group_at(&c->networks, keys[1]);
		}
	}
}

static void count_flow(struct decision *c, unsigned side, uint8_t way, const struct ow_flow_key *key)
{
	uint64_t keys[2];
	networks_of(c, side, way, key, keys);
	for (unsigned k = 0; k < 2; k++) {
		struct group *network = group_of(&c->networks, keys[k]);
		if (network) {
			network->matched[0]++;
			network->share.flows++;
		}
	}
}

/* What flows with matches show: the loss, and which networks pass both points. */
static void learn_rates(struct decision *c)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			const struct ow_flow_evidence *e = &c->d->flow[side][i];
			if (e->direction == UNKNOWN)
				continue;
			struct rates *rates = &c->rates[side][e->direction];
			rates->flows++;
			if (e->matched + e->unmatched >= 2) {
				rates->sent += (double)(e->matched + e->unmatched);
				rates->lost += (double)e->unmatched;
			}
			if (c->networks.count)
				count_flow(c, side, e->direction, ow_flow_table_key(c->keys[side], i));
		}
	}
}

/* Whether a flow without matches took another way, or lost every packet. */
static bool is_lost(struct decision *c, unsigned side, uint8_t way, const struct ow_flow_key *key,
                    const struct ow_flow_loss *loss, bool learns)
{
	struct rates *rates = &c->rates[side][way];
	double q = ow_usual_loss(rates->lost, rates->sent);
	uint64_t keys[2];
	networks_of(c, side, way, key, keys);
	struct group *pair = group_of(&c->networks, keys[0]), *dest = group_of(&c->networks, keys[1]);
	if (!pair || !dest || dest->matched[0] == 0)
		return false;
	double share = ow_absent_share(&dest->share, ow_absent_usual(rates->absent, rates->flows));
	share = ow_absent_share(&pair->share, share);
	double absent = ow_absent_chance(share, (double)loss->log_like + loss->quiet * log(q));
	if (learns) {
		rates->flows++;
		rates->absent += absent;
		dest->share.flows++;
		dest->share.absent += (float)absent;
		pair->share.flows++;
		pair->share.absent += (float)absent;
	}
	return absent <= OW_ABSENT_RATHER;
}

static void decide_unmatched_flows(struct decision *c, bool learns)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < c->d->flows[side]; i++) {
			struct ow_flow_evidence *e = &c->d->flow[side][i];
			const struct ow_flow_key *key = ow_flow_table_key(c->keys[side], i);
			uint8_t way = e->matched || !key ? UNKNOWN : expected_direction(c, side, key);
			const struct ow_flow_loss *loss = &c->d->repeats[side][i].loss;
			if (way != UNKNOWN && is_lost(c, side, way, key, loss, learns) && !learns)
				e->direction = way;
		}
	}
}

static int64_t miscounted(const struct ow_directions *d)
{
	int64_t wrong = 0;
	for (uint32_t i = 0; i < d->flows[OW_SIDE_A]; i++) {
		const struct ow_flow_evidence *e = &d->flow[OW_SIDE_A][i];
		if (e->direction != UNKNOWN)
			wrong += (int64_t)e->counted[!e->direction];
	}
	return wrong;
}

static void weigh_flows(const struct ow_directions *d, struct ow_direction_evidence *ret)
{
	for (uint32_t i = 0; i < d->flows[OW_SIDE_A]; i++) {
		const struct ow_flow_evidence *e = &d->flow[OW_SIDE_A][i];
		uint64_t clear = (uint64_t)(e->votes < 0 ? -e->votes : e->votes);
		ret->way[by_votes((double)e->votes)] += e->matched;
		ret->against += (e->matched - clear) / 2;
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < d->flows[side]; i++) {
			const struct ow_flow_evidence *e = &d->flow[side][i];
			uint64_t copies = d->repeats[side][i].copies;
			if (e->matched && e->unmatched > copies)
				ret->only[side] += e->unmatched - copies;
		}
	}
}

int ow_directions_weigh(struct ow_directions *directions, const struct ow_flow_table *const keys[OW_SIDES],
                        struct ow_direction_evidence *ret_evidence)
{
	struct decision c = {.d = directions, .keys = keys};
	c.pairs.secret = ow_flow_table_secret(keys[OW_SIDE_A]);
	*ret_evidence = (struct ow_direction_evidence){0};
	gather_pairs(&c);
	for (uint32_t i = 0; i < c.pairs.count; i++)
		ret_evidence->both |= c.pairs.group[i].matched[0] > 0 && c.pairs.group[i].matched[1] > 0;
	weigh_flows(directions, ret_evidence);
	groups_done(&c.pairs);
	return c.pairs.failed ? -ENOMEM : 0;
}

static int64_t decide_all_forward(struct ow_directions *d)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		for (uint32_t i = 0; i < d->flows[side]; i++) {
			d->flow[side][i].direction = OW_A_TO_B;
			d->flow[side][i].decided = true;
		}
	}
	return miscounted(d);
}

int64_t ow_directions_decide(struct ow_directions *directions, const struct ow_flow_table *const keys[OW_SIDES],
                             enum ow_direction_rule rule, enum ow_direction way, int64_t doubt_ns)
{
	if (rule == OW_ALL_FORWARD)
		return decide_all_forward(directions);
	struct decision c = {.d = directions, .keys = keys};
	c.pairs.secret = c.hosts.secret = c.networks.secret = ow_flow_table_secret(keys[OW_SIDE_A]);
	ow_scope_hash_seed(&c.hash, c.pairs.secret);
	gather_pairs(&c);
	for (uint32_t i = 0; i < c.pairs.count; i++)
		decide_pair(&c.pairs.group[i], rule, way, doubt_ns);
	name_hosts(&c);
	place_flows(&c, true);
	decide_doubtful_pairs(&c);
	place_flows(&c, false);
	decide_matched_flows(&c);
	name_networks(&c);
	learn_rates(&c);
	weigh_missed(directions);
	/* First they show how many flows take another way. */
	decide_unmatched_flows(&c, true);
	decide_unmatched_flows(&c, false);
	int64_t r = c.pairs.failed || c.hosts.failed || c.networks.failed ? -ENOMEM : miscounted(directions);
	groups_done(&c.pairs);
	groups_done(&c.hosts);
	groups_done(&c.networks);
	return r;
}
