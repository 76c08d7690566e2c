/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet that was lost was lost behind the last point that shows it. Up to which point follows from other packets of its
 * flow: the next point that shows all of those that pass it.
 */
#include "path/flow_hops.h"

#include "base/array.h"
#include "packet/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX      (UINT32_C(1) << 27) /* of memory for flows */
#define COMPLETE_SHARE 0.01 /* of the packets that pass a point it may miss: its capture drops some (path/join.c) */

/* A flow at a point. */
struct at_point {
	uint64_t seen, unseen; /* unseen: points before and after it show the packet */
	uint64_t lost;         /* that no later point shows */
	uint64_t delays;       /* to the next point */
	double sum_ns;
	int64_t max_ns;
	uint8_t next; /* the next point that shows its packets, + 1; 0 = not known */
};

struct ow_flow_hops {
	struct ow_flow_select select;
	struct ow_flow_table *flows;
	unsigned points;
	struct at_point *at; /* of flow i in direction d at point p: [(2 i + d) points + p] */
	size_t room;
	uint64_t *sent, *lost; /* of flow i in direction d: [2 i + d] */
	size_t sent_room, lost_room;
	uint32_t count; /* flows */
	uint64_t omitted;
};

int ow_flow_hops_create(const struct ow_flow_select *select, uint64_t seed, struct ow_flow_hops **ret_hops)
{
	struct ow_flow_hops *h = calloc(1, sizeof *h);
	if (!h || ow_flow_table_create(seed, &h->flows) < 0) {
		free(h);
		return -ENOMEM;
	}
	h->select = *select;
	*ret_hops = h;
	return 0;
}

void ow_flow_hops_free(struct ow_flow_hops *h)
{
	if (!h)
		return;
	ow_flow_table_free(h->flows);
	free(h->at);
	free(h->sent);
	free(h->lost);
	free(h);
}

/* Room for the flows up to this one. */
static int make_room(struct ow_flow_hops *h, uint32_t flow)
{
	size_t rows = ((size_t)flow + 1) * OW_DIRECTIONS, had = (size_t)h->count * OW_DIRECTIONS;
	if (flow < h->count)
		return 0;
	if (OW_GROW(h->at, h->room, rows * h->points) < 0 || OW_GROW(h->sent, h->sent_room, rows) < 0 ||
	    OW_GROW(h->lost, h->lost_room, rows) < 0)
		return -ENOMEM;
	memset(h->at + had * h->points, 0, (rows - had) * h->points * sizeof *h->at);
	memset(h->sent + had, 0, (rows - had) * sizeof *h->sent);
	memset(h->lost + had, 0, (rows - had) * sizeof *h->lost);
	h->count = flow + 1;
	return 0;
}

/* The point that comes after i others on the way. */
static unsigned place(unsigned points, enum ow_direction direction, unsigned i)
{
	return direction == OW_A_TO_B ? i : points - 1 - i;
}

static void add_delay(struct at_point *at, unsigned next, const struct ow_path_packet *packet, unsigned point)
{
	int64_t delay_ns = (int64_t)((uint64_t)packet->time_ns[next] - (uint64_t)packet->time_ns[point]);
	at->next = at->next ? at->next : (uint8_t)(next + 1);
	if (at->next != next + 1 || packet->ambiguous)
		return;
	at->max_ns = !at->delays || delay_ns > at->max_ns ? delay_ns : at->max_ns;
	at->sum_ns += (double)delay_ns * packet->packets;
	at->delays += packet->packets;
}

int ow_flow_hops_add(struct ow_flow_hops *h, const struct ow_path_packet *packet)
{
	bool lost = packet->fate == OW_FATE_LOST;
	if (packet->direction >= OW_DIRECTIONS || (packet->fate != OW_FATE_MATCHED && !lost))
		return 0;
	struct ow_flow_key key;
	h->points = packet->path->points;
	ow_flow_select_key(&h->select, packet->flow, &key);
	uint32_t flow = ow_flow_table_number(h->flows, &key);
	if (flow >= BYTES_MAX / (OW_DIRECTIONS * h->points * sizeof *h->at)) {
		h->omitted += packet->packets;
		return 0;
	}
	if (make_room(h, flow) < 0)
		return -ENOMEM;
	size_t row = (size_t)flow * OW_DIRECTIONS + packet->direction;
	struct at_point *at = &h->at[row * h->points];
	int last = -1;
	h->sent[row] += packet->packets;
	h->lost[row] += lost ? packet->packets : 0;
	for (unsigned i = 0; i < h->points; i++) {
		unsigned p = place(h->points, packet->direction, i);
		if (!(packet->seen >> p & 1))
			continue;
		at[p].seen += packet->packets;
		if (last >= 0)
			add_delay(&at[place(h->points, packet->direction, (unsigned)last)], p, packet,
			          place(h->points, packet->direction, (unsigned)last));
		for (int k = last + 1; last >= 0 && k < (int)i; k++)
			at[place(h->points, packet->direction, (unsigned)k)].unseen += packet->packets;
		last = (int)i;
	}
	if (lost && last >= 0)
		at[place(h->points, packet->direction, (unsigned)last)].lost += packet->packets;
	return 0;
}

uint64_t ow_flow_hops_omitted(const struct ow_flow_hops *h)
{
	return h->omitted;
}

static bool shows_all(const struct at_point *at)
{
	return at->seen && (double)at->unseen <= COMPLETE_SHARE * (double)(at->seen + at->unseen);
}

static void get(const struct ow_flow_hops *h, size_t row, struct ow_flow_on_path *ret)
{
	const struct at_point *at = &h->at[row * h->points];
	*ret = (struct ow_flow_on_path){.key = *ow_flow_table_key(h->flows, (uint32_t)(row / OW_DIRECTIONS)),
	                                .direction = (enum ow_direction)(row % OW_DIRECTIONS),
	                                .sent = h->sent[row],
	                                .lost = h->lost[row],
	                                .lossy = -1,
	                                .slow = -1};
	for (unsigned i = 0; i + 1 < h->points; i++) {
		unsigned from = place(h->points, ret->direction, i), k = i + 1;
		while (k + 1 < h->points && !shows_all(&at[place(h->points, ret->direction, k)]))
			k++;
		unsigned to = place(h->points, ret->direction, k);
		if (!at[from].seen)
			continue;
		struct ow_flow_hop *hop = &ret->hop[ret->hops];
		*hop = (struct ow_flow_hop){.from = from, .to = to, .sent = at[from].seen, .lost = at[from].lost};
		if (at[from].next == to + 1 && at[from].delays) {
			hop->delays = at[from].delays;
			hop->mean_ns = at[from].sum_ns / (double)at[from].delays;
			hop->max_ns = at[from].max_ns;
		}
		if (hop->lost && (ret->lossy < 0 || hop->lost > ret->hop[ret->lossy].lost))
			ret->lossy = (int)ret->hops;
		if (hop->delays && (ret->slow < 0 || hop->mean_ns > ret->hop[ret->slow].mean_ns))
			ret->slow = (int)ret->hops;
		ret->hops++;
	}
}

static int by_harm(const void *x, const void *y)
{
	const struct ow_flow_on_path *a = x, *b = y;
	double s = a->slow < 0 ? -1 : a->hop[a->slow].mean_ns, t = b->slow < 0 ? -1 : b->hop[b->slow].mean_ns;
	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	if (s != t)
		return s > t ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof a->key);
}

int ow_flow_hops_all(const struct ow_flow_hops *h, struct ow_flow_on_path **ret_flow, size_t *ret_count)
{
	size_t rows = (size_t)h->count * OW_DIRECTIONS, count = 0;
	struct ow_flow_on_path *flow = malloc((rows + 1) * sizeof *flow);
	if (!flow)
		return -ENOMEM;
	for (size_t row = 0; row < rows; row++) {
		if (h->sent[row])
			get(h, row, &flow[count++]);
	}
	qsort(flow, count, sizeof *flow, by_harm);
	*ret_flow = flow;
	*ret_count = count;
	return 0;
}
