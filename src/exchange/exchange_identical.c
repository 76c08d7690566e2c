/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/exchange_identical.h"

#include "base/array.h"
#include "base/time.h"
#include "exchange/method.h"
#include "reconcile/late_packets.h"
#include "result/cause.h"
#include "result/result_clock.h"
#include "synopsis/copies.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Packets of this interval with a waiting name: sorted by name, then by time. */
struct waited {
	struct ow_sighting *sighting;
	size_t count, room;
};

static int add(struct waited *list, const struct ow_sighting *packet, uint64_t name)
{
	if (OW_GROW(list->sighting, list->room, list->count + 1) < 0)
		return -ENOMEM;
	list->sighting[list->count++] = (struct ow_sighting){name, packet->time_ns, packet->flow};
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
	ow_interval_copies_free(missing->copies);
	ow_interval_results_free(missing->results);
}

/* Whether the points' messages show how long the path is. A session on another network says nothing about it. */
static bool is_session_beside(const struct ow_missing *missing, const struct ow_comparison *c)
{
	return c->slot.packets->session || missing->session;
}

void ow_missing_doubt_delays(struct ow_missing *missing, struct ow_comparison *c, bool compared, size_t others)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	struct ow_interval_result *r = &c->outcome.result;
	if (c->cost.missing_ns > 0 && (!missing->round_trip_ns || c->cost.missing_ns < missing->round_trip_ns))
		missing->round_trip_ns = c->cost.missing_ns;
	bool beside = compared && is_session_beside(missing, c);
	missing->session = compared && packets->session;
	struct ow_running_interval interval = {
		.compared = compared,
		.unsure = c->outcome.odd || c->outcome.close || r->ambiguous,
		.others = others,
		.aligned = c->outcome.copies,
		.most_ns = beside ? missing->round_trip_ns : INT64_MAX,
		.lost_ns = (int64_t)c->x->options.horizon * c->x->options.length_ns,
	};
	if (compared) {
		interval.start_ns = interval.begun_ns = packets->start_ns;
		interval.sent = packets->sighting;
		interval.count = packets->count;
		interval.copies = packets->copies;
	}
	int64_t gap_ns = ow_running_copies_doubt(&missing->running, &interval);
	if (gap_ns)
		ow_result_delays_longer(r, gap_ns);
}

/* Keys have 48 bits. */
static uint64_t id_of(uint64_t name)
{
	return ow_mix64(name);
}

/* The time between the last two packets of this name, if they were sent in different intervals; or 0. */
static int64_t apart_of(const struct ow_missing *missing, uint64_t name)
{
	return ow_sent_lately_apart(&missing->copies->repeated, id_of(name));
}

bool ow_missing_repeats(const void *missing, uint64_t name)
{
	return apart_of(missing, name) > 0;
}

/* Of several in an interval, other rules tell which are in doubt. */
static bool has_copy(const struct ow_interval_packets *packets, uint64_t id)
{
	return ow_interval_packets_copy(packets, id) || ow_interval_packets_copy(packets, ow_copy_next(id));
}

int ow_missing_note_repeated(const struct ow_missing *missing, const struct ow_comparison *c, struct ow_keyset *names)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	struct ow_sent_lately *lately = &missing->copies->lately, *repeated = &missing->copies->repeated;
	int64_t reach_ns = ow_interval_results_reach(missing->results), start_ns = packets->start_ns;
	int r = 0;
	bool known = lately->end_ns == start_ns + packets->length_ns; /* it is compared once more */
	for (size_t i = 0; i < packets->count && r == 0 && known; i++) {
		uint64_t name = c->x->method->name(c, packets->sighting[i].id);
		r = apart_of(missing, name) ? ow_keyset_add(names, name) : 0;
	}
	if (known)
		return r;
	reach_ns = reach_ns < 0 ? INT64_MAX / 4 : reach_ns;
	ow_sent_lately_begin(lately, start_ns, reach_ns);
	ow_sent_lately_begin(repeated, start_ns, reach_ns);
	for (size_t i = 0; i < packets->count && r == 0; i++) {
		int64_t last_ns = ow_sent_lately_last(lately, packets->sighting[i].id);
		if (last_ns == INT64_MIN || has_copy(packets, packets->sighting[i].id))
			continue;
		uint64_t name = c->x->method->name(c, packets->sighting[i].id);
		ow_sent_lately_note(repeated, id_of(name), last_ns);
		ow_sent_lately_note(repeated, id_of(name), start_ns + packets->sighting[i].time_ns);
		r = ow_keyset_add(names, name);
	}
	ow_sent_lately_add(lately, packets->sighting, packets->count, start_ns, packets->length_ns);
	repeated->end_ns = lately->end_ns;
	return r;
}

/* -- in turn ------------------------------------------------------------------------------------------------------ */

static int collect(const struct ow_comparison *c, struct waited *waited)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	int r = 0;
	for (size_t i = 0; i < packets->count && r == 0; i++) {
		uint64_t name = c->x->method->name(c, packets->sighting[i].id);
		if (ow_missing_has(c->missing, name))
			r = add(waited, &packets->sighting[i], name);
	}
	if (r == 0 && waited->count)
		qsort(waited->sighting, waited->count, sizeof *waited->sighting, ow_sighting_by_id_and_time);
	return r;
}

/* The number of packets of one name in a sorted list, from *at on. */
static size_t count_name(const struct ow_sighting *sighting, size_t count, size_t at, uint64_t name)
{
	size_t n = 0;
	while (at + n < count && sighting[at + n].id == name)
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
	int64_t *b_sent_ns;
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
	size_t moved = pairs > in_turn ? pairs - in_turn : 0, first_b = l->bs;
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
	/* If some have not arrived, it may be those that wait, and not the last ones. */
	for (size_t i = first_b; i < l->bs && waits + count != pairs + only_b; i++)
		l->b_sent_ns[i] = OW_LATE_PACKETS_OLDEST;
	l->at_a += only_a;
	l->at_b += only_b;
	l->moved += moved;
	l->doubtful += pairs;
}

static int regroup(const struct ow_missing *missing, struct ow_outcome *o, const struct waited *w, struct lists *l)
{
	size_t bs_max = o->only_bs + w->count;
	l->a = malloc((o->only_as + w->count + 1) * sizeof *l->a);
	l->b = malloc((bs_max + 1) * sizeof *l->b);
	l->b_sent_ns = malloc((bs_max + 1) * sizeof *l->b_sent_ns);
	if (!l->a || !l->b || !l->b_sent_ns)
		return -ENOMEM;
	for (size_t i = 0; i < bs_max; i++)
		l->b_sent_ns[i] = OW_LATE_PACKETS_ANY;
	if (o->only_as)
		qsort(o->only_a, o->only_as, sizeof *o->only_a, ow_sighting_by_id_and_time);
	if (o->only_bs)
		qsort(o->only_b, o->only_bs, sizeof *o->only_b, ow_sighting_by_id_and_time);
	for (size_t i = 0, count; i < w->count; i += count) {
		count = count_name(w->sighting, w->count, i, w->sighting[i].id);
		regroup_name(missing, o, w->sighting + i, count, l);
	}
	copy_before(o->only_a, o->only_as, &l->at_a, true, 0, l->a, &l->as);
	copy_before(o->only_b, o->only_bs, &l->at_b, true, 0, l->b, &l->bs);
	return 0;
}

static void doubt_waited(struct ow_interval_result *result, size_t packets)
{
	char text[OW_RESULT_CAUSE];
	snprintf(text, sizeof text, ow_cause_identical_waited, packets);
	ow_result_add_cause(result, text);
}

static int take_in_turn(struct ow_comparison *c)
{
	struct ow_outcome *o = &c->outcome;
	struct ow_interval_result *result = &o->result;
	struct waited waited = {0};
	struct lists lists = {0};
	bool sure = c->x->method->leaves_out_doubtful;
	int r = collect(c, &waited);
	if (r == 0 && waited.count)
		r = regroup(c->missing, o, &waited, &lists);
	if (r < 0 || !lists.doubtful) {
		free(lists.a);
		free(lists.b);
		free(lists.b_sent_ns);
	} else {
		free(o->only_a);
		free(o->only_b);
		o->only_a = lists.a;
		o->only_b = lists.b;
		o->only_b_sent_ns = lists.b_sent_ns;
		o->only_as = lists.as;
		o->only_bs = lists.bs;
		result->matched -= lists.moved;
		result->ambiguous -= lists.moved < result->ambiguous ? lists.moved : result->ambiguous;
		if (!sure)
			doubt_waited(result, lists.doubtful);
	}
	free(waited.sighting);
	return r;
}

/* -- by their times ----------------------------------------------------------------------------------------------- */

/* An arrival of a packet that is aligned; place: in only_b, or behind it in copy. */
struct arrival {
	struct ow_sighting packet;
	size_t place;
};

struct alignment {
	struct ow_comparison *c;
	struct ow_keyset names;
	struct waited sent; /* packets of this point with these names */
	struct arrival *got;
	size_t gots, got_room;
	bool comparable;  /* the times of the points are, */
	int64_t lead_ns;  /* if this is added to those of the other one, */
	double error_ns;  /* but for this error */
	int64_t *time_ns; /* of one name: those that wait, those sent, those received */
	size_t time_room;
	struct ow_copy_fate *fate, *fate_of; /* of one name; by place */
	size_t fate_room;
	bool all_delays; /* are given */
	bool others;     /* that no packet is identical to, were sent now or wait */
	struct ow_sighting *only_a;
	size_t only_as, pairs, copies, doubtful;
};

/* Without other packets: none takes longer than a message of the points and its answer just did, on the same way. */
static void limit_delays(struct ow_plausible *p, int64_t most_ns)
{
	p->known = true;
	p->least_ns = 0;
	p->low_ns = 0;
	p->high_ns = most_ns;
}

/* Whether packets that no other is like were sent in this interval, or wait. */
static bool are_others(const struct alignment *g)
{
	const struct ow_interval_results *results = g->c->missing->results;
	size_t waiting = ow_interval_results_waiting(results);
	for (size_t i = 0; i < g->names.used && waiting; i++)
		waiting -= ow_interval_results_waits(results, g->names.key[i]);
	return waiting || g->sent.count < g->c->slot.packets->count;
}

/* How long packets take, so that no arrival is before its packet was sent: by the delays of others, or by the clocks. */
static void learn_delays(struct alignment *g)
{
	const struct ow_outcome *o = &g->c->outcome;
	struct ow_interval_copies *copies = g->c->missing->copies;
	int64_t delay_ns[OW_INTERVAL_RESULTS_DELAYS], least_ns = INT64_MAX;
	size_t count = o->delay.count;
	bool longer = g->c->missing->running.longer;
	size_t before = longer ? 0 : ow_interval_results_usual_delays(g->c->missing->results, delay_ns);
	if (longer && count)
		ow_interval_copies_forget(copies);
	for (size_t i = 0; i < before + count; i++) {
		int64_t ns = i < before ? delay_ns[i] : o->delay.ns[i - before];
		least_ns = ns < least_ns ? ns : least_ns;
	}
	double clock_ns = ow_result_clock_error_ns(&o->result);
	bool as_they_are = !g->c->x->sinks.clock;
	g->error_ns = before + count || as_they_are ? 0 : clock_ns;
	g->comparable = !isnan(g->error_ns);
	g->lead_ns = before + count ? ow_interval_copies_lead((double)least_ns)
	             : g->comparable
	                     ? ow_interval_copies_lead(-(double)ow_result_clock_added_ns(&o->result) - g->error_ns)
	                     : 0;
	for (size_t i = 0; i < before + count; i++)
		ow_interval_copies_learn(copies, (i < before ? delay_ns[i] : o->delay.ns[i - before]) + g->lead_ns);
	ow_interval_copies_learned(copies);
	copies->others_wait = g->others;
	if (!copies->plausible.samples && g->comparable && !as_they_are && g->c->cost.missing_ns > 0 &&
	    is_session_beside(g->c->missing, g->c))
		limit_delays(&copies->plausible, g->c->cost.missing_ns + g->lead_ns);
}

static int list_names(struct alignment *g)
{
	const struct ow_outcome *o = &g->c->outcome;
	const struct ow_interval_results *results = g->c->missing->results;
	int r = 0;
	for (size_t i = 0; i < o->copies && r == 0; i++)
		r = ow_keyset_add(&g->names, o->copy[i].id);
	/* One that nothing was sent like in this interval, and several before it, that wait or are taken for others. */
	for (size_t i = 0; ow_interval_results_waiting(results) && i < o->only_bs && r == 0; i++) {
		size_t waits = ow_interval_results_waits(results, o->only_b[i].id);
		if (waits > (apart_of(g->c->missing, o->only_b[i].id) ? 0 : 1))
			r = ow_keyset_add(&g->names, o->only_b[i].id);
	}
	return r;
}

static int list_packets(struct alignment *g)
{
	const struct ow_outcome *o = &g->c->outcome;
	const struct ow_interval_packets *packets = g->c->slot.packets;
	int r = 0;
	for (size_t i = 0; i < packets->count && r == 0; i++) {
		uint64_t name = g->c->x->method->name(g->c, packets->sighting[i].id);
		if (ow_keyset_has(&g->names, name))
			r = add(&g->sent, &packets->sighting[i], name);
	}
	for (size_t i = 0; i < o->only_bs + o->copies && r == 0; i++) {
		const struct ow_sighting *packet = i < o->only_bs ? &o->only_b[i] : &o->copy[i - o->only_bs];
		if (!ow_keyset_has(&g->names, packet->id))
			continue;
		r = OW_GROW(g->got, g->got_room, g->gots + 1);
		if (r == 0)
			g->got[g->gots++] = (struct arrival){*packet, i};
	}
	if (g->sent.count)
		qsort(g->sent.sighting, g->sent.count, sizeof *g->sent.sighting, ow_sighting_by_id_and_time);
	if (g->gots)
		qsort(g->got, g->gots, sizeof *g->got, ow_sighting_by_id_and_time);
	return r;
}

/* One name: its packets here and its arrivals. */
struct identical {
	const struct ow_sighting *sent;
	const struct arrival *got;
	size_t sents, gots, waiting;
};

/* The clocks tell which is which only if their error is less than the time between two packets. */
static bool is_comparable(const struct alignment *g, const struct identical *n)
{
	double gap_ns = n->sents < 2
	                        ? INFINITY
	                        : (double)(n->sent[n->sents - 1].time_ns - n->sent[0].time_ns) / (double)(n->sents - 1);
	return g->comparable && 2 * g->error_ns <= gap_ns;
}

static int list_times(struct alignment *g, const struct identical *n)
{
	int64_t start_ns = g->c->slot.packets->start_ns;
	size_t k = n->waiting;
	if (OW_GROW(g->time_ns, g->time_room, n->waiting + n->sents + n->gots) < 0 ||
	    OW_GROW(g->fate, g->fate_room, n->gots) < 0)
		return -ENOMEM;
	if (n->waiting)
		ow_interval_results_waiting_times(g->c->missing->results, n->got->packet.id, g->time_ns);
	for (size_t i = 0; i < n->sents; i++)
		g->time_ns[k++] = start_ns + n->sent[i].time_ns;
	for (size_t j = 0; j < n->gots; j++)
		g->time_ns[k++] = start_ns + n->got[j].packet.time_ns + g->lead_ns;
	return 0;
}

/* Enters what the arrivals of one name are. */
static int take_fates(struct alignment *g, const struct identical *n)
{
	struct ow_outcome *o = &g->c->outcome;
	bool *matched = calloc(n->sents + 1, sizeof *matched);
	int64_t *grown = realloc(o->delay.ns, (o->delay.count + n->gots + 1) * sizeof *grown);
	o->delay.ns = grown ? grown : o->delay.ns;
	if (!matched || !grown) {
		free(matched);
		return -ENOMEM;
	}
	for (size_t j = 0; j < n->gots; j++) {
		const struct ow_copy_fate *fate = &g->fate[j];
		g->fate_of[n->got[j].place] = *fate;
		g->copies += n->got[j].place >= o->only_bs;
		if (fate->sent == OW_ALIGN_NONE)
			continue;
		matched[fate->sent] = true;
		g->pairs++;
		g->doubtful += fate->doubtful;
		if (fate->doubtful || !g->all_delays)
			continue;
		o->delay.ns[o->delay.count++] = n->got[j].packet.time_ns - n->sent[fate->sent].time_ns;
		o->identical += g->others;
	}
	for (size_t i = 0; i < n->sents; i++) {
		if (!matched[i])
			g->only_a[g->only_as++] = n->sent[i];
	}
	free(matched);
	return 0;
}

static int align_name(struct alignment *g, struct identical *n)
{
	struct ow_copy_counts counts = {0};
	n->waiting = ow_interval_results_waits(g->c->missing->results, n->got->packet.id);
	int r = list_times(g, n);
	size_t sents = n->waiting + n->sents;
	int64_t apart_ns = n->sents > 1 ? 0 : apart_of(g->c->missing, n->got->packet.id);
	if (r == 0)
		r = ow_interval_copies_pair(is_comparable(g, n) ? g->c->missing->copies : NULL,
		                            &(struct ow_copy_times){n->got->packet.id, g->time_ns, g->time_ns + sents,
		                                                    (uint32_t)n->waiting, (uint32_t)sents,
		                                                    (uint32_t)n->gots, g->c->slot.packets->start_ns,
		                                                    apart_ns},
		                            g->fate, &counts);
	g->c->outcome.result.duplicated += counts.duplicated;
	g->c->outcome.close += counts.close;
	g->c->outcome.odd |= counts.odd;
	for (size_t j = 0; j < n->gots && r == 0 && apart_ns; j++) {
		/* Nothing tells which it is. */
		g->fate[j].doubtful |= !is_comparable(g, n);
		g->c->outcome.begun_amid |= g->fate[j].doubtful && g->others;
	}
	g->c->outcome.begun_amid |= counts.odd && g->others;
	return r < 0 ? r : take_fates(g, n);
}

static int align_names(struct alignment *g)
{
	size_t at = 0;
	int r = 0;
	for (size_t i = 0, gots; i < g->gots && r == 0; i += gots) {
		uint64_t name = g->got[i].packet.id;
		for (gots = 0; i + gots < g->gots && g->got[i + gots].packet.id == name;)
			gots++;
		while (at < g->sent.count && g->sent.sighting[at].id < name)
			g->only_a[g->only_as++] = g->sent.sighting[at++];
		struct identical one = {g->sent.sighting + at, g->got + i,
		                        count_name(g->sent.sighting, g->sent.count, at, name), gots, 0};
		at += one.sents;
		r = align_name(g, &one);
	}
	while (r == 0 && at < g->sent.count)
		g->only_a[g->only_as++] = g->sent.sighting[at++];
	return r;
}

/* The place of the next arrival, in the order of time; at: of only_b, of copy. */
static size_t next_place(const struct ow_outcome *o, size_t at[2])
{
	bool copy = at[0] == o->only_bs || (at[1] < o->copies && o->copy[at[1]].time_ns < o->only_b[at[0]].time_ns);
	return copy ? o->only_bs + at[1]++ : at[0]++;
}

/* The arrivals that are no packets of this interval. */
static int list_only_b(struct alignment *g)
{
	struct ow_outcome *o = &g->c->outcome;
	size_t all = o->only_bs + o->copies, count = 0, at[2] = {0};
	struct ow_sighting *only_b = malloc((all + 1) * sizeof *only_b);
	o->only_b_sent_ns = malloc((all + 1) * sizeof *o->only_b_sent_ns);
	if (!only_b || !o->only_b_sent_ns) {
		free(only_b);
		return -ENOMEM;
	}
	for (size_t i = 0; i < all; i++) {
		size_t place = next_place(o, at);
		const struct ow_copy_fate *fate = &g->fate_of[place];
		if (fate->sent != OW_ALIGN_NONE)
			continue;
		only_b[count] = place < o->only_bs ? o->only_b[place] : o->copy[place - o->only_bs];
		if (fate->doubtful)
			only_b[count].time_ns = OW_INTERVAL_RESULTS_NO_TIME;
		if (place >= o->only_bs) /* others of its flow are matched */
			only_b[count].flow = 1;
		o->only_b_sent_ns[count++] = fate->waited_ns;
	}
	free(o->only_b);
	o->only_b = only_b;
	o->only_bs = count;
	return 0;
}

static int align_lists(struct alignment *g)
{
	struct ow_outcome *o = &g->c->outcome;
	struct ow_interval_result *result = &o->result;
	g->fate_of = malloc((o->only_bs + o->copies + 1) * sizeof *g->fate_of);
	g->only_a = malloc((o->only_as + g->sent.count + 1) * sizeof *g->only_a);
	if (!g->fate_of || !g->only_a)
		return -ENOMEM;
	for (size_t i = 0; i < o->only_bs + o->copies; i++)
		g->fate_of[i] = (struct ow_copy_fate){OW_ALIGN_NONE, OW_LATE_PACKETS_ANY, false};
	for (size_t i = 0; i < o->only_as; i++) {
		if (!ow_keyset_has(&g->names, o->only_a[i].id))
			g->only_a[g->only_as++] = o->only_a[i];
	}
	int r = align_names(g);
	if (r == 0)
		r = list_only_b(g);
	if (r < 0)
		return r;
	if (g->only_as)
		ow_sightings_sort(g->only_a, g->only_as);
	free(o->only_a);
	o->only_a = g->only_a;
	o->only_as = g->only_as;
	g->only_a = NULL;
	result->matched = result->matched + g->pairs - g->copies;
	result->ambiguous = result->ambiguous + (g->all_delays ? g->doubtful : g->pairs) - g->copies;
	return 0;
}

static int align_by_times(struct ow_comparison *c)
{
	const struct ow_outcome *o = &c->outcome;
	struct alignment g = {.c = c, .all_delays = o->delay.count == o->result.matched - o->result.ambiguous};
	ow_interval_copies_begin(c->missing->copies);
	if (o->copies)
		ow_sightings_sort(o->copy, o->copies);
	int r = list_names(&g);
	if (r == 0 && g.names.used)
		r = list_packets(&g);
	if (r == 0 && g.names.used) {
		g.others = are_others(&g);
		learn_delays(&g);
		r = align_lists(&g);
	}
	ow_keyset_done(&g.names);
	free(g.sent.sighting);
	free(g.got);
	free(g.time_ns);
	free(g.fate);
	free(g.fate_of);
	free(g.only_a);
	return r;
}

/* Methods that take every delay as it is cannot leave out packets that may be confused with those of the interval before. */
static int doubt_repeated(struct ow_comparison *c)
{
	struct ow_interval_result *result = &c->outcome.result;
	struct ow_keyset names = {0};
	int r = ow_missing_note_repeated(c->missing, c, &names);
	if (r == 0 && names.used)
		doubt_waited(result, names.used);
	ow_keyset_done(&names);
	return r;
}

int ow_identical_regroup(struct ow_comparison *c)
{
	const struct ow_outcome *o = &c->outcome;
	int r = c->x->method->leaves_out_doubtful ? 0 : doubt_repeated(c);
	if (r < 0)
		return r;
	if (c->x->method->leaves_out_doubtful && (o->copies || !o->result.ambiguous))
		return align_by_times(c);
	return ow_interval_results_waiting(c->missing->results) ? take_in_turn(c) : 0;
}
