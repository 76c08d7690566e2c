/* SPDX-License-Identifier: Apache-2.0 */
#include "result/group_results.h"

#include "base/array.h"
#include "base/id_map.h"
#include "reconcile/late_packets.h"
#include "result/cause.h"
#include "result/interval_results_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct packet {
	struct ow_sighting sent;
	uint64_t name;
	uint8_t seen, matches; /* number of lanes that have it, and of members that got it */
};

/* An interval, as far as members have told. */
struct entry {
	int64_t start_ns;
	uint32_t told;     /* bit k: member k has, */
	unsigned known;    /* and so many have compared it, */
	unsigned identity; /* by this one */
	struct ow_interval_result result;
	struct packet *packet;
	size_t packets;
	struct ow_id_map by_id;
	struct ow_scope_flow *flow;
	size_t flows;
	struct ow_sighting *only_b; /* times are since the start of the member's shifted interval */
	size_t only_bs, only_b_room;
	uint64_t changed;          /* as in struct ow_interval_results_input */
	int64_t least_ns, most_ns; /* delays; most less than least: none is known */
};

struct ow_group_results {
	struct ow_group_results_options options;
	ow_interval_results_sink sink;
	ow_flow_event_sink event;
	void *arg;
	struct ow_interval_results *results;
	struct entry **entry; /* by rising start */
	size_t entries, room;
	int64_t first_ns,
		next_ns; /* start of the first interval that was closed, end of the last; next INT64_MIN = none */
};

bool ow_group_has(const char *group, const char *member)
{
	size_t length = strlen(member);
	if (!strchr(group, '+') || strchr(member, '+'))
		return false;
	for (const char *at = group; at; at = strchr(at, '+')) {
		at += *at == '+';
		if (strncmp(at, member, length) == 0 && (!at[length] || at[length] == '+'))
			return true;
	}
	return false;
}

/* -- results ------------------------------------------------------------------------------------------------------- */

/* The delays here serve the doubts only. */
static void leave_delays_out(struct ow_interval_result *r)
{
	const struct ow_value none = ow_value_none(OW_REASON_EACH_PEER);
	ow_result_clear_delays(r);
	memset(r->delay_bucket, 0, sizeof r->delay_bucket);
	r->samples = 0;
	r->exact = false;
	if (r->status == OW_RESULT_UNKNOWN)
		return;
	r->mean_ns = r->stddev_ns = r->min_ns = r->max_ns = none;
	r->round_trip_min_ns = r->round_trip_mean_ns = r->above_min_ns = none;
	r->clock_offset_ns = r->clock_drift_ppb = none;
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] = none;
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	struct ow_group_results *g = arg;
	struct ow_interval_result r = *result;
	leave_delays_out(&r);
	g->sink(g->arg, &r);
}

static void on_event(void *arg, const struct ow_flow_event *event)
{
	struct ow_group_results *g = arg;
	if (g->event)
		g->event(g->arg, event);
}

int ow_group_results_create(const struct ow_group_results_options *options, ow_interval_results_sink result,
                            ow_flow_event_sink event, void *arg, struct ow_group_results **ret_group)
{
	struct ow_group_results *g = calloc(1, sizeof *g);
	if (!g)
		return -ENOMEM;
	*g = (struct ow_group_results){
		.options = *options, .sink = result, .event = event, .arg = arg, .next_ns = INT64_MIN};
	int r = ow_interval_results_create(options->horizon, on_result, g, &g->results);
	if (r == 0 && options->shared)
		r = ow_interval_results_share(g->results, options->length_ns, on_event);
	if (r < 0) {
		ow_group_results_free(g);
		return r;
	}
	*ret_group = g;
	return 0;
}

static void free_entry(struct entry *e)
{
	if (!e)
		return;
	free(e->packet);
	ow_id_map_done(&e->by_id);
	free(e->flow);
	free(e->only_b);
	free(e);
}

void ow_group_results_free(struct ow_group_results *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->entries; i++)
		free_entry(g->entry[i]);
	free(g->entry);
	ow_interval_results_free(g->results);
	free(g);
}

void ow_group_results_total(const struct ow_group_results *g, struct ow_interval_result *ret_total)
{
	ow_run_total(g->results, ret_total);
	leave_delays_out(ret_total);
}

/* -- the packets of an interval, joined ------------------------------------------------------------------------------ */

struct lonely {
	struct ow_sighting packet; /* with its name */
	uint32_t at;               /* where it is among those sent */
};

struct joined {
	struct ow_sighting *sent, *only_a, *only_b;
	uint8_t *matched;
	struct lonely *lonely;
	size_t sents, only_as, only_bs;
	size_t outside; /* that are not in all lanes */
	size_t copies;  /* that several members got, */
	size_t paired;  /* and how many of all only at B are identical to a packet only at A */
};

static void joined_done(struct joined *j)
{
	free(j->sent);
	free(j->only_a);
	free(j->only_b);
	free(j->matched);
	free(j->lonely);
}

static int joined_create(const struct entry *e, struct joined *j)
{
	size_t copies = 0;
	for (size_t i = 0; i < e->packets; i++)
		copies += e->packet[i].matches;
	j->sent = malloc((e->packets + 1) * sizeof *j->sent);
	j->matched = malloc(e->packets + 1);
	j->lonely = malloc((e->packets + 1) * sizeof *j->lonely);
	j->only_a = malloc((e->packets + 1) * sizeof *j->only_a);
	j->only_b = malloc((e->only_bs + copies + 1) * sizeof *j->only_b);
	return j->sent && j->matched && j->lonely && j->only_a && j->only_b ? 0 : -ENOMEM;
}

static void list_packets(const struct entry *e, struct joined *j)
{
	if (e->only_bs)
		memcpy(j->only_b, e->only_b, e->only_bs * sizeof *j->only_b);
	j->only_bs = e->only_bs;
	for (size_t i = 0; i < e->packets; i++) {
		const struct packet *p = &e->packet[i];
		if (p->seen < e->known) {
			j->outside++;
			continue;
		}
		if (!p->matches) {
			j->lonely[j->only_as].packet = p->sent;
			j->lonely[j->only_as].packet.id = p->name;
			j->lonely[j->only_as++].at = (uint32_t)j->sents;
		}
		for (unsigned k = 1; k < p->matches; k++, j->copies++)
			j->only_b[j->only_bs++] = (struct ow_sighting){p->name, OW_INTERVAL_RESULTS_NO_TIME, 1};
		j->matched[j->sents] = p->matches > 0;
		j->sent[j->sents++] = p->sent;
	}
}

/* The numbers of packets of the first name of both lists. */
static size_t same_name(const struct ow_sighting *packet, size_t size, size_t count, uint64_t name)
{
	size_t n = 0;
	while (n < count && ((const struct ow_sighting *)((const char *)packet + n * size))->id == name)
		n++;
	return n;
}

/*
 * Identical packets: each lane numbers the copies that it has on its own, so two of them may have matched the same copy,
 * and none another one; and a lane takes copies for late ones that went to another member. So packets of one name that
 * are only at A and others only at B are the same, except those that an earlier interval waits for.
 */
static void pair_identical(const struct ow_group_results *g, struct joined *j)
{
	size_t as = 0, bs = 0, a = 0, b = 0;
	if (!j->only_as || !j->only_bs)
		return;
	qsort(j->lonely, j->only_as, sizeof *j->lonely, ow_sighting_by_id_and_time);
	qsort(j->only_b, j->only_bs, sizeof *j->only_b, ow_sighting_by_id_and_time);
	while (a < j->only_as) {
		uint64_t name = j->lonely[a].packet.id;
		for (; b < j->only_bs && j->only_b[b].id < name; b++)
			j->only_b[bs++] = j->only_b[b];
		size_t sent = same_name(&j->lonely[a].packet, sizeof *j->lonely, j->only_as - a, name);
		size_t got = same_name(j->only_b + b, sizeof *j->only_b, j->only_bs - b, name);
		size_t waits = got ? ow_interval_results_in_turn(g->results, name, sent, got) : 0;
		struct ow_late_packets_turns turns = ow_late_packets_turns(waits, sent, got);
		for (size_t i = 0; i < turns.pairs; i++)
			j->matched[j->lonely[a + i].at] = 1;
		memmove(j->lonely + as, j->lonely + a + turns.pairs, (sent - turns.pairs) * sizeof *j->lonely);
		memmove(j->only_b + bs, j->only_b + b, turns.late * sizeof *j->only_b);
		memmove(j->only_b + bs + turns.late, j->only_b + b + turns.late + turns.pairs,
		        (got - turns.late - turns.pairs) * sizeof *j->only_b);
		as += sent - turns.pairs;
		bs += got - turns.pairs;
		a += sent;
		b += got;
		j->paired += turns.pairs;
	}
	memmove(j->only_b + bs, j->only_b + b, (j->only_bs - b) * sizeof *j->only_b);
	j->only_bs = bs + j->only_bs - b;
	j->only_as = as;
}

static int join(const struct ow_group_results *g, const struct entry *e, struct joined *j)
{
	if (joined_create(e, j) < 0)
		return -ENOMEM;
	list_packets(e, j);
	pair_identical(g, j);
	for (size_t i = 0; i < j->only_as; i++)
		j->only_a[i] = j->lonely[i].packet;
	if (j->only_as)
		ow_sightings_sort(j->only_a, j->only_as);
	if (j->only_bs)
		ow_sightings_sort(j->only_b, j->only_bs);
	return 0;
}

/* -- closing an interval ----------------------------------------------------------------------------------------------- */

static void count(const struct joined *j, struct ow_interval_result *r)
{
	size_t both = j->copies < j->paired ? j->copies : j->paired;
	r->sent = j->sents;
	r->matched = j->sents - j->only_as;
	r->received = r->matched + j->only_bs;
	/* Of identical packets that two lanes had matched with the same copy, one was ambiguous already. */
	r->duplicated += j->copies - both;
	r->ambiguous += j->paired - both;
	if (r->ambiguous > r->matched)
		r->ambiguous = r->matched;
	r->unshared_sent = j->outside;
}

static int step(struct ow_group_results *g, const struct entry *e, const struct ow_interval_result *result)
{
	const int64_t delay_ns[] = {e->least_ns, e->most_ns};
	struct joined j = {0};
	int r = join(g, e, &j);
	if (r == 0) {
		struct ow_interval_results_input in = {.result = *result,
		                                       .only_a = j.only_a,
		                                       .only_b = j.only_b,
		                                       .only_as = j.only_as,
		                                       .only_bs = j.only_bs,
		                                       .delay_ns = delay_ns,
		                                       .changed = e->changed,
		                                       .incomplete = e->known < g->options.members};
		count(&j, &in.result);
		if (e->most_ns >= e->least_ns && in.result.matched - in.result.ambiguous >= 2)
			in.delays = 2;
		/* What flows do is not seen without all members. */
		if (!in.incomplete) {
			in.packet = j.sent;
			in.packets = j.sents;
			in.is_matched = j.matched;
			in.flow = e->flow;
			in.flows = e->flows;
		}
		r = ow_interval_results_step(g->results, &in);
	}
	joined_done(&j);
	return r;
}

static void close_oldest(struct ow_group_results *g)
{
	struct entry *e = g->entry[0];
	struct ow_interval_result *r = &e->result;
	char text[OW_RESULT_CAUSE];
	memmove(g->entry, g->entry + 1, --g->entries * sizeof *g->entry);
	if (g->next_ns == INT64_MIN)
		g->first_ns = e->start_ns;
	g->next_ns = e->start_ns + g->options.length_ns;
	r->interval = (e->start_ns - g->first_ns) / g->options.length_ns;
	for (unsigned k = 0; k < g->options.members; k++) {
		snprintf(text, sizeof text, ow_cause_no_answer, g->options.member[k]);
		if (!(e->told >> k & 1))
			ow_result_add_cause(r, text);
	}
	int code = e->known ? step(g, e, r) : -ENODATA;
	if (code < 0 && code != -ENODATA)
		ow_result_add_cause(r, code == -ENOMEM ? ow_cause_out_of_memory : ow_cause_counts_contradict);
	if (code < 0)
		(void)ow_interval_results_unknown(g->results, r, false);
	free_entry(e);
}

static void advance(struct ow_group_results *g)
{
	uint32_t all = (UINT32_C(1) << g->options.members) - 1;
	int64_t patience_ns = (int64_t)g->options.waiting * g->options.length_ns;
	while (g->entries &&
	       (g->entry[0]->told == all || g->entry[g->entries - 1]->start_ns - g->entry[0]->start_ns >= patience_ns))
		close_oldest(g);
}

void ow_group_results_finish(struct ow_group_results *g)
{
	while (g->entries)
		close_oldest(g);
	(void)ow_interval_results_finish(g->results);
}

/* -- what members tell --------------------------------------------------------------------------------------------------- */

static struct entry *add_entry(struct ow_group_results *g, size_t at, int64_t start_ns)
{
	struct entry *e = OW_GROW(g->entry, g->room, g->entries + 1) < 0 ? NULL : calloc(1, sizeof *e);
	if (!e)
		return NULL;
	e->start_ns = start_ns;
	e->least_ns = INT64_MAX;
	e->most_ns = INT64_MIN;
	ow_result_blank(0, start_ns, g->options.length_ns, &e->result);
	ow_result_name_like(&e->result, &g->options.names);
	memmove(g->entry + at + 1, g->entry + at, (g->entries - at) * sizeof *g->entry);
	g->entry[at] = e;
	g->entries++;
	return e;
}

/* The interval for a member that has not told yet; NULL if it is closed already, or there is no memory for it. */
static struct entry *entry_for(struct ow_group_results *g, unsigned member, int64_t start_ns)
{
	size_t at = g->entries;
	while (at > 0 && g->entry[at - 1]->start_ns > start_ns)
		at--;
	struct entry *e = at > 0 && g->entry[at - 1]->start_ns == start_ns ? g->entry[at - 1] : NULL;
	if (!e && start_ns >= g->next_ns)
		e = add_entry(g, at, start_ns);
	if (!e || e->told >> member & 1)
		return NULL;
	return e;
}

/* The sender's counts are the same in all lanes. */
static void take_sender(struct entry *e, const struct ow_interval_result *r)
{
	if (r->cost.ready_ns > e->result.cost.ready_ns)
		e->result.cost.ready_ns = r->cost.ready_ns;
	if (e->result.total_sent >= r->total_sent && e->result.clock_from.error_ns != OW_CLOCK_UNKNOWN)
		return;
	e->result.total_sent = r->total_sent;
	e->result.bytes = r->bytes;
	e->result.ring_drops_from = r->ring_drops_from;
	e->result.missed = r->missed;
	e->result.unreadable = r->unreadable;
	e->result.clock_from = r->clock_from;
}

static void take_receiver(struct entry *e, const struct ow_interval_result *r)
{
	struct ow_interval_result *sum = &e->result;
	sum->total_received += r->total_received;
	sum->unshared_received += r->unshared_received;
	sum->ring_drops_to += r->ring_drops_to;
	sum->duplicated += r->duplicated;
	sum->ambiguous += r->ambiguous;
	/* The worst clock of all. */
	if (!e->known)
		sum->clock_to = r->clock_to;
	sum->clock_to.synchronised &= r->clock_to.synchronised;
	if (r->clock_to.error_ns > sum->clock_to.error_ns)
		sum->clock_to.error_ns = r->clock_to.error_ns;
}

/*
 * By the clocks as they are. A member cuts its intervals later by the usual delay, so packets may arrive before the
 * interval in which they were sent by as much.
 */
static void take_delays(struct entry *e, const struct ow_interval_results_input *in)
{
	for (size_t i = 0; i < in->delays; i++) {
		int64_t early = in->delay_ns[i] - in->shift_ns;
		e->least_ns = early < e->least_ns ? early : e->least_ns;
		e->most_ns = in->delay_ns[i] > e->most_ns ? in->delay_ns[i] : e->most_ns;
	}
	if (in->delays && -in->shift_ns < e->least_ns)
		e->least_ns = -in->shift_ns;
}

/*
 * A member that has more packets of unknown flows between the sender's networks than packets of the sender: something
 * on this way may change packets, which then seem lost.
 */
static void take_strange(struct entry *e, const struct ow_interval_results_input *in)
{
	uint64_t strange = 0, matched = 0;
	for (size_t i = 0; i < in->only_bs; i++)
		strange += !in->only_b[i].flow;
	for (size_t i = 0; i < in->packets; i++)
		matched += in->is_matched[i];
	e->changed += strange > matched ? strange : 0;
}

static int take_only_b(struct entry *e, const struct ow_interval_results_input *in)
{
	if (in->only_bs && OW_GROW(e->only_b, e->only_b_room, e->only_bs + in->only_bs) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < in->only_bs; i++) {
		struct ow_sighting *b = &e->only_b[e->only_bs + i];
		*b = in->only_b[i];
		if (b->time_ns == OW_INTERVAL_RESULTS_NO_TIME)
			continue;
		b->time_ns -= in->shift_ns;
		/* Where the shift grows, the interval is longer, but it ends before the next one. */
		if (b->time_ns >= e->result.length_ns)
			b->time_ns = e->result.length_ns - 1;
	}
	return 0;
}

/* The first member that tells brings the packets. */
static int take_packets(struct entry *e, const struct ow_interval_results_input *in, const uint64_t *name)
{
	struct packet *packet = malloc((in->packets + 1) * sizeof *packet);
	struct ow_scope_flow *flow = malloc((in->flows + 1) * sizeof *flow);
	if (!packet || !flow || ow_id_map_reserve(&e->by_id, in->packets) < 0) {
		free(packet);
		free(flow);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->packets; i++) {
		packet[i] = (struct packet){.sent = in->packet[i], .name = name[i]};
		(void)ow_id_map_add(&e->by_id, in->packet[i].id, (uint32_t)i);
	}
	if (in->flows)
		memcpy(flow, in->flow, in->flows * sizeof *flow);
	e->packet = packet;
	e->packets = in->packets;
	e->flow = flow;
	e->flows = in->flows;
	e->result.sample_shift = in->result.sample_shift;
	return 0;
}

static void take_matches(struct entry *e, const struct ow_interval_results_input *in)
{
	for (size_t i = 0; i < in->packets; i++) {
		uint64_t id = in->packet[i].id;
		uint32_t at = OW_ID_MAP_FIND(&e->by_id, id, n, e->packet[n].sent.id == id);
		if (at == OW_ID_MAP_NONE)
			continue;
		e->packet[at].seen++;
		e->packet[at].matches += in->is_matched[i];
	}
}

static void explain(struct ow_group_results *g, struct entry *e, unsigned member, const char *cause)
{
	char text[OW_RESULT_CAUSE];
	/* Many causes name the member. */
	bool named = strstr(cause, g->options.member[member]);
	if (named)
		snprintf(text, sizeof text, "%s", cause);
	else
		snprintf(text, sizeof text, ow_cause_of_point, g->options.member[member], cause);
	ow_result_add_cause(&e->result, text);
}

/* Why the packets of this lane cannot be joined with those of the lanes before; NULL: they are. */
static const char *add_lane(struct entry *e, unsigned identity, const struct ow_interval_results_input *in,
                            const uint64_t *name)
{
	if (e->known && e->identity != identity)
		return ow_cause_another_identity;
	if (e->known && e->result.sample_shift != in->result.sample_shift)
		return ow_cause_another_sample;
	if (take_only_b(e, in) < 0 || (!e->known && take_packets(e, in, name) < 0))
		return ow_cause_out_of_memory;
	e->identity = identity;
	e->only_bs += in->only_bs;
	take_matches(e, in);
	take_receiver(e, &in->result);
	take_delays(e, in);
	take_strange(e, in);
	e->known++;
	return NULL;
}

void ow_group_results_compared(struct ow_group_results *g, unsigned member, unsigned identity,
                               const struct ow_interval_results_input *in, const uint64_t *name)
{
	struct entry *e = entry_for(g, member, in->result.start_ns);
	if (!e)
		return;
	e->told |= UINT32_C(1) << member;
	take_sender(e, &in->result);
	const char *why = add_lane(e, identity, in, name);
	if (why)
		explain(g, e, member, why);
	advance(g);
}

void ow_group_results_unknown(struct ow_group_results *g, unsigned member, const struct ow_interval_result *result)
{
	struct entry *e = entry_for(g, member, result->start_ns);
	if (!e)
		return;
	e->told |= UINT32_C(1) << member;
	take_sender(e, result);
	explain(g, e, member, result->cause);
	advance(g);
}
