/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/exchange_identical.h"

#include "base/array.h"
#include "exchange/method.h"
#include "reconcile/late_packets.h"
#include "result/cause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Packets of this interval with a waiting name: sorted by name, then by time. */
struct waited {
	struct ow_sighting *stamp;
	size_t count, room;
};

static int add(struct waited *list, const struct ow_sighting *packet, uint64_t name)
{
	if (OW_GROW(list->stamp, list->room, list->count + 1) < 0)
		return -ENOMEM;
	list->stamp[list->count++] = (struct ow_sighting){name, packet->time_ns, packet->flow};
	return 0;
}

bool ow_missing_has(const struct ow_missing *missing, uint64_t name)
{
	bool missed = ow_keyset_has(&missing->set[0], name) || ow_keyset_has(&missing->set[1], name);
	return (missed || missing->out_of_memory) && ow_interval_results_waits(missing->results, name) > 0;
}

void ow_missing_add(struct ow_missing *missing, const struct ow_comparison *c)
{
	if (++missing->age > c->x->options.horizon) {
		ow_keyset_done(&missing->set[1]);
		missing->set[1] = missing->set[0];
		missing->set[0] = (struct ow_keyset){0};
		missing->age = 1;
	}
	for (size_t i = 0; i < c->outcome.only_as; i++)
		missing->out_of_memory |= ow_keyset_add(&missing->set[0], c->outcome.only_a[i].id) < 0;
}

void ow_missing_done(struct ow_missing *missing)
{
	ow_keyset_done(&missing->set[0]);
	ow_keyset_done(&missing->set[1]);
	ow_interval_results_free(missing->results);
}

static int collect(const struct ow_comparison *c, struct waited *waited)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	int r = 0;
	for (size_t i = 0; i < packets->count && r == 0; i++) {
		uint64_t name = c->x->method->name(c, packets->stamp[i].id);
		if (ow_missing_has(c->missing, name))
			r = add(waited, &packets->stamp[i], name);
	}
	if (r == 0 && waited->count)
		qsort(waited->stamp, waited->count, sizeof *waited->stamp, ow_sighting_by_id_and_time);
	return r;
}

/* The number of packets of one name in a sorted list, from *at on. */
static size_t count_name(const struct ow_sighting *stamp, size_t count, size_t at, uint64_t name)
{
	size_t n = 0;
	while (at + n < count && stamp[at + n].id == name)
		n++;
	return n;
}

/* Copies the packets with names before this one. */
static void copy_before(const struct ow_sighting *from, size_t count, size_t *at, bool all, uint64_t name,
                        struct ow_sighting *to, size_t *tos)
{
	for (; *at < count && (all || from[*at].id < name); ++*at)
		to[(*tos)++] = from[*at];
}

struct lists {
	struct ow_sighting *a, *b;
	size_t as, bs, at_a, at_b;
	size_t moved, doubtful;
};

/* One name: `sent` packets of it at this point, in order. */
static void regroup_name(const struct ow_missing *missing, const struct ow_outcome *o, const struct ow_sighting *sent,
                         size_t count, struct lists *l)
{
	uint64_t name = sent->id;
	copy_before(o->only_a, o->only_as, &l->at_a, false, name, l->a, &l->as);
	copy_before(o->only_b, o->only_bs, &l->at_b, false, name, l->b, &l->bs);
	size_t only_a = count_name(o->only_a, o->only_as, l->at_a, name);
	size_t only_b = count_name(o->only_b, o->only_bs, l->at_b, name);
	size_t pairs = count - only_a;
	size_t waits = ow_interval_results_in_turn(missing->results, name, count, pairs + only_b);
	size_t in_turn = ow_late_packets_turns(waits, count, pairs + only_b).pairs;
	size_t moved = pairs > in_turn ? pairs - in_turn : 0;
	for (size_t i = count - only_a - moved; i < count; i++)
		l->a[l->as++] = sent[i];
	for (size_t i = 0; i < moved; i++)
		l->b[l->bs++] = (struct ow_sighting){name, OW_INTERVAL_RESULTS_NO_TIME, 1};
	for (size_t i = 0; i < only_b; i++) {
		struct ow_sighting packet = o->only_b[l->at_b + i];
		if (pairs)
			packet.time_ns = OW_INTERVAL_RESULTS_NO_TIME;
		l->b[l->bs++] = packet;
	}
	l->at_a += only_a;
	l->at_b += only_b;
	l->moved += moved;
	l->doubtful += pairs;
}

static int regroup(const struct ow_missing *missing, struct ow_outcome *o, const struct waited *w, struct lists *l)
{
	l->a = malloc((o->only_as + w->count + 1) * sizeof *l->a);
	l->b = malloc((o->only_bs + w->count + 1) * sizeof *l->b);
	if (!l->a || !l->b)
		return -ENOMEM;
	if (o->only_as)
		qsort(o->only_a, o->only_as, sizeof *o->only_a, ow_sighting_by_id_and_time);
	if (o->only_bs)
		qsort(o->only_b, o->only_bs, sizeof *o->only_b, ow_sighting_by_id_and_time);
	for (size_t i = 0, count; i < w->count; i += count) {
		count = count_name(w->stamp, w->count, i, w->stamp[i].id);
		regroup_name(missing, o, w->stamp + i, count, l);
	}
	copy_before(o->only_a, o->only_as, &l->at_a, true, 0, l->a, &l->as);
	copy_before(o->only_b, o->only_bs, &l->at_b, true, 0, l->b, &l->bs);
	return 0;
}

int ow_identical_regroup(struct ow_comparison *c)
{
	struct ow_outcome *o = &c->outcome;
	struct ow_interval_result *result = &o->result;
	struct waited waited = {0};
	struct lists lists = {0};
	bool sure = c->x->method->leaves_out_doubtful;
	if (!ow_interval_results_waiting(c->missing->results) || (sure && !result->ambiguous))
		return 0;
	int r = collect(c, &waited);
	if (r == 0 && waited.count)
		r = regroup(c->missing, o, &waited, &lists);
	if (r < 0 || !lists.doubtful) {
		free(lists.a);
		free(lists.b);
	} else {
		free(o->only_a);
		free(o->only_b);
		o->only_a = lists.a;
		o->only_b = lists.b;
		o->only_as = lists.as;
		o->only_bs = lists.bs;
		result->matched -= lists.moved;
		result->ambiguous -= lists.moved < result->ambiguous ? lists.moved : result->ambiguous;
		if (!sure) {
			result->status = OW_RESULT_PARTIAL;
			snprintf(result->cause, sizeof result->cause, ow_cause_identical_waited, lists.doubtful);
		}
	}
	free(waited.stamp);
	return r;
}
