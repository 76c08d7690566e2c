/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows of both sides are nodes of a graph. A flow has an edge to the flow with which it shares most packets, and to
 * another one if that is not by chance: a NAT gives a flow other ports after a pause. Each connected component has one
 * name. So a chance match joins a small flow to one that it does not belong to, but never separates flows that belong
 * together.
 *
 * A flow without unique packets has no edge. Most translators leave one end of a connection as it is: such flows are joined
 * if they go to the same end at both sides, or come from it. So polls that are the same both ways do not meet their answers.
 */
#include "match/flow_pairs.h"

#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PEERS        2
#define SECOND_LEAST 8u  /* packets shared with another flow that are not by chance, .. */
#define SECOND_SHARE 10u /* .. and one in this many of those with the first */

/* The flows of the other side with which a flow shares most packets (the Misra-Gries algorithm). */
struct ow_flow_peers {
	uint32_t flow[PEERS], packets[PEERS];
};

void ow_flow_pairs_done(struct ow_flow_pairs *pairs)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		free(pairs->peers[side]);
		free(pairs->name[side]);
	}
	memset(pairs, 0, sizeof *pairs);
}

static struct ow_flow_peers *peers_at(struct ow_flow_pairs *p, enum ow_side side, uint32_t flow)
{
	return OW_GROW_ZEROED(p->peers[side], p->room[side], (size_t)flow + 1) < 0 ? NULL : &p->peers[side][flow];
}

static void note_peer(struct ow_flow_peers *p, uint32_t flow)
{
	for (unsigned i = 0; i < PEERS; i++) {
		if (p->packets[i] && p->flow[i] == flow) {
			p->packets[i] += p->packets[i] < UINT32_MAX;
			return;
		}
	}
	for (unsigned i = 0; i < PEERS; i++) {
		if (!p->packets[i]) {
			p->flow[i] = flow;
			p->packets[i] = 1;
			return;
		}
	}
	for (unsigned i = 0; i < PEERS; i++)
		p->packets[i]--;
}

int ow_flow_pairs_note(struct ow_flow_pairs *pairs, uint32_t a, uint32_t b)
{
	struct ow_flow_peers *pa = peers_at(pairs, OW_SIDE_A, a), *pb = peers_at(pairs, OW_SIDE_B, b);
	if (!pa || !pb)
		return -ENOMEM;
	note_peer(pa, b);
	note_peer(pb, a);
	return 0;
}

/* -- what hangs together ------------------------------------------------------------------------------------------ */

/* Nodes: the flows of A, then those of B. Each points to one of its component; the root points to itself. */
struct graph {
	const struct ow_flow_table *const *keys;
	uint32_t flows[OW_SIDES];
	uint32_t *parent;
	bool *joined;
};

static uint32_t node_of(const struct graph *g, enum ow_side side, uint32_t flow)
{
	return side == OW_SIDE_A ? flow : g->flows[OW_SIDE_A] + flow;
}

static uint32_t root_of(struct graph *g, uint32_t node)
{
	while (g->parent[node] != node) {
		g->parent[node] = g->parent[g->parent[node]];
		node = g->parent[node];
	}
	return node;
}

static void join_nodes(struct graph *g, uint32_t a, uint32_t b)
{
	g->joined[a] = g->joined[b] = true;
	a = root_of(g, a);
	b = root_of(g, b);
	g->parent[a < b ? b : a] = a < b ? a : b;
}

static void join(struct graph *g, enum ow_side side, uint32_t flow, uint32_t peer)
{
	if (flow < g->flows[side] && peer < g->flows[!side])
		join_nodes(g, node_of(g, side, flow), node_of(g, !side, peer));
}

/* The number of the flow in the reverse direction, or UINT32_MAX. */
static uint32_t reverse_of(const struct ow_flow_table *table, uint32_t flow)
{
	const struct ow_flow_key *key = ow_flow_table_key(table, flow);
	if (!key || ow_flow_key_is_coarse(key))
		return UINT32_MAX;
	struct ow_flow_key back = *key;
	memcpy(back.src, key->dst, sizeof back.src);
	memcpy(back.dst, key->src, sizeof back.dst);
	back.sport = key->dport;
	back.dport = key->sport;
	return ow_flow_table_find(table, &back);
}

static unsigned first_of(const struct ow_flow_peers *p)
{
	return p->packets[1] > p->packets[0];
}

static bool same_end(const uint8_t *a, uint16_t a_port, const uint8_t *b, uint16_t b_port)
{
	return a_port == b_port && memcmp(a, b, sizeof((struct ow_flow_key *)0)->src) == 0;
}

/* A NAT leaves one end as it is: where a flow goes to it and the other comes from it, these are two directions. */
static bool are_opposite(const struct ow_flow_key *a, const struct ow_flow_key *b)
{
	if (!a || !b || a->version != b->version || a->proto != b->proto || ow_flow_key_is_coarse(a))
		return false;
	bool crossed = same_end(a->src, a->sport, b->dst, b->dport) || same_end(a->dst, a->dport, b->src, b->sport);
	return crossed && !same_end(a->src, a->sport, b->src, b->sport) &&
	       !same_end(a->dst, a->dport, b->dst, b->dport);
}

/*
 * The flows with which a flow shares packets. What it shares with the opposite direction of a flow are packets that are the
 * same both ways, such as polls and their answers: they show that it belongs to that connection, and so to the other one.
 */
static struct ow_flow_peers peers_of(const struct graph *g, const struct ow_flow_pairs *pairs, enum ow_side side,
                                     uint32_t flow)
{
	struct ow_flow_peers p = pairs->peers[side][flow];
	const struct ow_flow_key *key = ow_flow_table_key(g->keys[side], flow);
	for (unsigned i = 0; i < PEERS; i++) {
		if (!p.packets[i] || !are_opposite(key, ow_flow_table_key(g->keys[!side], p.flow[i])))
			continue;
		p.flow[i] = reverse_of(g->keys[!side], p.flow[i]);
		if (p.flow[i] == UINT32_MAX)
			p.packets[i] = 0;
	}
	if (p.packets[0] && p.packets[1] && p.flow[0] == p.flow[1]) {
		p.packets[0] += p.packets[1];
		p.packets[1] = 0;
	}
	return p;
}

static void join_peers(struct graph *g, const struct ow_flow_pairs *pairs, enum ow_side side)
{
	for (uint32_t flow = 0; flow < g->flows[side] && flow < pairs->room[side]; flow++) {
		const struct ow_flow_peers p = peers_of(g, pairs, side, flow);
		unsigned first = first_of(&p);
		uint32_t most = p.packets[first], second = p.packets[!first];
		if (most)
			join(g, side, flow, p.flow[first]);
		if (second >= SECOND_LEAST && second >= most / SECOND_SHARE)
			join(g, side, flow, p.flow[!first]);
	}
}

/* A flow of only identical packets, such as acknowledgements, belongs to the flow in the reverse direction. */
static void join_reverse(struct graph *g, const struct ow_flow_pairs *pairs)
{
	for (uint32_t flow = 0; flow < g->flows[OW_SIDE_A] && flow < pairs->room[OW_SIDE_A]; flow++) {
		const struct ow_flow_peers p = peers_of(g, pairs, OW_SIDE_A, flow);
		if (!p.packets[first_of(&p)])
			continue;
		uint32_t back = reverse_of(g->keys[OW_SIDE_A], flow);
		uint32_t peer = reverse_of(g->keys[OW_SIDE_B], p.flow[first_of(&p)]);
		if (back == UINT32_MAX || peer == UINT32_MAX)
			continue;
		if (!g->joined[node_of(g, OW_SIDE_A, back)] || !g->joined[node_of(g, OW_SIDE_B, peer)])
			join(g, OW_SIDE_A, back, peer);
	}
}

/* -- flows of identical packets only ------------------------------------------------------------------------------ */

/* The flows that nothing has joined, by the ends that they come from and go to. */
struct ends {
	struct ow_flow_table *table; /* numbers the ends: keys with one end only */
	struct end {
		uint32_t node; /* the first flow with this end */
		bool shown[OW_SIDES];
	} * end;
	uint32_t room;
	uint32_t *node; /* of the flows */
	uint32_t nodes;
};

static enum ow_side side_of(const struct graph *g, uint32_t node)
{
	return node < g->flows[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B;
}

static const struct ow_flow_key *key_of(const struct graph *g, uint32_t node)
{
	enum ow_side side = side_of(g, node);
	return ow_flow_table_key(g->keys[side], side == OW_SIDE_A ? node : node - g->flows[OW_SIDE_A]);
}

/* The number of the end that the flow comes from, or goes to. */
static uint32_t end_of(const struct graph *g, struct ends *e, uint32_t node, bool target)
{
	struct ow_flow_key key = *key_of(g, node);
	memset(target ? key.src : key.dst, 0, sizeof key.src);
	*(target ? &key.sport : &key.dport) = 0;
	return ow_flow_table_number(e->table, &key);
}

static int note_end(const struct graph *g, struct ends *e, uint32_t node, bool target)
{
	uint32_t number = end_of(g, e, node, target), known = e->room;
	if (OW_GROW_ZEROED(e->end, e->room, (size_t)number + 1) < 0)
		return -ENOMEM;
	struct end *end = &e->end[number];
	if (number >= known || !(end->shown[OW_SIDE_A] || end->shown[OW_SIDE_B]))
		end->node = node;
	end->shown[side_of(g, node)] = true;
	return 0;
}

static int note_ends(const struct graph *g, struct ends *e)
{
	uint32_t nodes = g->flows[OW_SIDE_A] + g->flows[OW_SIDE_B];
	for (uint32_t node = 0; node < nodes; node++) {
		const struct ow_flow_key *key = key_of(g, node);
		if (g->joined[node] || !key || !key->version || ow_flow_key_is_coarse(key))
			continue;
		e->node[e->nodes++] = node;
		if (note_end(g, e, node, false) < 0 || note_end(g, e, node, true) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void join_ends(struct graph *g, struct ends *e)
{
	for (uint32_t i = 0; i < e->nodes; i++) {
		for (unsigned target = 0; target < 2; target++) {
			const struct end *end = &e->end[end_of(g, e, e->node[i], target)];
			if (end->shown[OW_SIDE_A] && end->shown[OW_SIDE_B])
				join_nodes(g, end->node, e->node[i]);
		}
	}
}

/* Of more ends than the table has numbers, none are joined. */
static int join_by_ends(struct graph *g)
{
	struct ends e = {.node = malloc(((size_t)g->flows[OW_SIDE_A] + g->flows[OW_SIDE_B] + 1) * sizeof *e.node)};
	int r = e.node ? ow_flow_table_create(ow_flow_table_secret(g->keys[OW_SIDE_A]), &e.table) : -ENOMEM;
	if (r == 0)
		r = note_ends(g, &e);
	if (r == 0 && !ow_flow_table_is_coarse(e.table))
		join_ends(g, &e);
	ow_flow_table_free(e.table);
	free(e.end);
	free(e.node);
	return r;
}

int ow_flow_pairs_learn(struct ow_flow_pairs *pairs, const struct ow_flow_table *const keys[OW_SIDES])
{
	struct graph g = {.keys = keys,
	                  .flows = {ow_flow_table_count(keys[OW_SIDE_A]), ow_flow_table_count(keys[OW_SIDE_B])}};
	uint32_t nodes = g.flows[OW_SIDE_A] + g.flows[OW_SIDE_B];
	int r = 0;
	g.parent = calloc(nodes + 1, sizeof *g.parent);
	g.joined = calloc(nodes + 1, sizeof *g.joined);
	if (!g.parent || !g.joined)
		r = -ENOMEM;
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		free(pairs->name[side]);
		pairs->names[side] = 0;
		pairs->name[side] = calloc(g.flows[side] + 1, sizeof *pairs->name[side]);
		r = pairs->name[side] ? 0 : -ENOMEM;
	}
	for (uint32_t node = 0; node < nodes && r == 0; node++)
		g.parent[node] = node;
	if (r == 0) {
		join_peers(&g, pairs, OW_SIDE_A);
		join_peers(&g, pairs, OW_SIDE_B);
		join_reverse(&g, pairs);
		r = join_by_ends(&g);
	}
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		pairs->names[side] = g.flows[side];
		for (uint32_t flow = 0; flow < g.flows[side]; flow++) {
			uint32_t node = node_of(&g, side, flow);
			pairs->name[side][flow] = g.joined[node] ? root_of(&g, node) + 1 : 0;
		}
	}
	free(g.parent);
	free(g.joined);
	return r;
}
