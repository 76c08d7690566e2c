/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that the sending point shows twice, as at a mirror port for both directions (reconcile/shown_twice.h). */
#include "base/array.h"
#include "exchange/exchange_identical.h"
#include "exchange/method.h"
#include "reconcile/shown_twice.h"

#include <errno.h>
#include <stdlib.h>

/* Two identical packets of the interval, or one that another was sent before. */
struct pair {
	uint64_t name;
	int64_t time_ns[2];
	unsigned sent, missing;
};

struct pairs {
	struct pair *pair;
	size_t count, room;
	struct ow_id_map by_name;
	struct ow_shown_twice twice;
};

static struct pair *pair_of(const struct pairs *p, uint64_t name)
{
	uint32_t at = OW_ID_MAP_FIND(&p->by_name, name, i, p->pair[i].name == name);
	return at == OW_ID_MAP_NONE ? NULL : &p->pair[at];
}

static int add_pair(struct pairs *p, uint64_t name)
{
	if (OW_GROW(p->pair, p->room, p->count + 1) < 0 || ow_id_map_add(&p->by_name, name, (uint32_t)p->count) < 0)
		return -ENOMEM;
	p->pair[p->count++] = (struct pair){.name = name};
	return 0;
}

static int list_pairs(struct pairs *p, const struct ow_comparison *c)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	int r = 0;
	for (size_t i = 0; i < packets->copies && r == 0; i++) {
		uint64_t name = c->x->method->name(c, packets->copy[i].id);
		if (packets->copy[i].nth == 2 && !ow_missing_has(c->missing, name))
			r = add_pair(p, name);
	}
	/* One of the interval before is shown again: that it does not arrive says nothing of others. */
	for (size_t i = 0; i < packets->count && p->count && r == 0; i++) {
		uint64_t id = packets->sighting[i].id, name;
		if (!ow_sent_lately_apart(&c->missing->copies->lately, id))
			continue;
		name = c->x->method->name(c, id);
		r = pair_of(p, name) ? 0 : add_pair(p, name);
	}
	return r;
}

/* Returns of how many pairs one packet has not arrived. */
static size_t note_missing(struct pairs *p, const struct ow_outcome *o)
{
	size_t once = 0;
	for (size_t i = 0; i < o->only_as; i++) {
		struct pair *pair = pair_of(p, o->only_a[i].id);
		if (pair)
			pair->missing++;
		else
			p->twice.missing++;
	}
	for (size_t k = 0; k < p->count; k++)
		once += p->pair[k].missing == 1;
	return once;
}

static void note_sent(struct pairs *p, const struct ow_comparison *c)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	for (size_t i = 0; i < packets->count; i++) {
		struct pair *pair = pair_of(p, c->x->method->name(c, packets->sighting[i].id));
		if (!pair)
			p->twice.others++;
		else if (pair->sent++ < 2)
			pair->time_ns[pair->sent - 1] = packets->sighting[i].time_ns;
	}
	for (size_t k = 0; k < p->count; k++) {
		const struct pair *pair = &p->pair[k];
		p->twice.again += pair->sent == 1 && pair->missing;
		if (pair->sent == 2 && pair->missing <= 2)
			ow_shown_twice_note(&p->twice, pair->time_ns[0], pair->time_ns[1], 2 - pair->missing);
	}
}

int ow_identical_find_twice(struct ow_comparison *c)
{
	struct pairs p = {0};
	struct ow_outcome *o = &c->outcome;
	if (c->slot.packets->copies < OW_SHOWN_TWICE_LEAST || o->only_as < OW_SHOWN_TWICE_LEAST)
		return 0;
	int r = list_pairs(&p, c);
	if (r == 0 && p.count && note_missing(&p, o) >= OW_SHOWN_TWICE_LEAST) {
		note_sent(&p, c);
		o->twice = ow_shown_twice_doubtful(&p.twice);
	}
	free(p.pair);
	ow_id_map_done(&p.by_name);
	return r;
}
