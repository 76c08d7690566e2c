/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on an unmatched packet of flow f, pair g, destination d, sent in tick j:
 *
 *     limit = d matched in j or later ? 30 s : 10 s
 *     own   = f matched at or before j, within limit; or f began in j-1..j and matched in j+1..j+2
 *     own -> lost
 *     f is of fragments that are not the first -> absent: a router may have joined them to a packet that matched
 *     g or d matched since j - 10 s -> lost or absent, as whole_flow.h has it. All packets of f since it matched, up to
 *            the newest interval, are lost as likely as loss_bins.h says, from the losses of own flows
 *     else -> unshared
 *
 * The formulas were simulated packet by packet (tests/reconcile/test_scope_simulation.c); each part was found necessary.
 *
 * A tick is an interval, or half of the waiting time if that is longer, and at least 100 ms.
 */
#include "reconcile/scope_verdict_private.h"

#include "base/array.h"
#include "base/sort.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS     1000000000.0
#define TICK_MIN_NS   INT64_C(100000000)
#define LIMIT_S       10.0
#define LIMIT_LONG_S  30.0
#define FLOW_SLOTS    131072u
#define NETWORK_SLOTS 65536u
/* Short flows are absent only where long ones are, with so much of the share. */
#define SURE_SHARE   .25
#define SURE_CLASSES 32
#define SHORT_LOSS   .009 /* less than the root of OW_SCOPE_UNLIKELY: two bins without losses are not short */

_Static_assert(OW_SCOPE_FLOWS_MAX == FLOW_SLOTS / 4 * 3 && OW_SCOPE_NETWORKS_MAX == NETWORK_SLOTS / 4 * 3,
               "the limits of the tables");

/* Of a flow of the interval that is judged. */
struct ow_scope_judged {
	uint32_t unmatched;
	struct ow_flow_loss loss;
	int64_t first_ns, last_ns; /* of the unmatched packets; of those that matched */
	struct ow_scope_span
		whole[3]; /* of the flow, its pair and its destination: packets in these are of whole flows */
	bool known;       /* has an entry */
	bool counted;     /* for q */
	bool brief;       /* of one packet, or at one moment */
	uint8_t sure;     /* that it is not lost: a class */
	bool unsure;      /* its fate: absent, or lost */
	uint8_t fate;
};

int ow_scope_verdict_create(const struct ow_scope_verdict_options *options, struct ow_scope_verdict **ret_verdict)
{
	if (options->length_ns <= 0 || options->horizon < 1 || options->horizon > OW_SCOPE_OVERLAP_MAX)
		return -EINVAL;
	struct ow_scope_verdict *v = calloc(1, sizeof *v);
	if (!v)
		return -ENOMEM;
	v->options = *options;
	v->last = INT64_MIN;
	v->seconds = (double)options->length_ns / SECOND_NS;
	v->wait_ns = options->length_ns * options->horizon;
	v->tick_intervals = (options->horizon + 1) / 2;
	if (v->tick_intervals * options->length_ns < TICK_MIN_NS)
		v->tick_intervals = (TICK_MIN_NS + options->length_ns - 1) / options->length_ns;
	double tick_s = v->seconds * (double)v->tick_intervals;
	v->limit = (int32_t)ceil(LIMIT_S / tick_s);
	v->limit_long = (int32_t)ceil(LIMIT_LONG_S / tick_s);
	if (ow_loss_bins_create(&v->bins, v->wait_ns + 3 * options->length_ns) < 0) {
		free(v);
		return -ENOMEM;
	}
	ow_scope_table_init(&v->flows, sizeof(struct ow_scope_past_flow), FLOW_SLOTS, options->secret);
	ow_scope_table_init(&v->pairs, sizeof(struct ow_scope_past_network), NETWORK_SLOTS, options->secret);
	ow_scope_table_init(&v->dests, sizeof(struct ow_scope_past_network), NETWORK_SLOTS, options->secret);
	ow_scope_waste_init(&v->waste, options->secret);
	*ret_verdict = v;
	return 0;
}

void ow_scope_verdict_free(struct ow_scope_verdict *v)
{
	if (!v)
		return;
	ow_scope_table_done(&v->flows);
	ow_scope_table_done(&v->pairs);
	ow_scope_table_done(&v->dests);
	ow_scope_waste_done(&v->waste);
	free(v->noted);
	free(v->kind);
	free(v->loss);
	free(v->gap);
	free(v->place);
	free(v->judged);
	ow_loss_bins_done(&v->bins);
	free(v);
}

/* -- judging an interval ------------------------------------------------------------------------------------------- */

struct judging {
	struct ow_scope_verdict *v;
	int64_t interval;
	int32_t tick;
	const struct ow_scope_flow *flows;
	size_t flow_count;
	const struct ow_scope_packet *unmatched;
	size_t count;
	double q;
};

/* Lists the flows that have unmatched packets. */
static int count_unmatched(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	size_t n = 0;
	if ((j->flow_count > v->place_room && OW_GROW(v->place, v->place_room, j->flow_count) < 0) ||
	    (j->count > v->judged_room && OW_GROW(v->judged, v->judged_room, j->count) < 0))
		return -ENOMEM;
	if (j->flow_count)
		memset(v->place, 0, j->flow_count * sizeof *v->place);
	for (size_t i = 0; i < j->count; i++) {
		uint32_t flow = j->unmatched[i].flow;
		if (flow >= j->flow_count)
			return -EINVAL;
		if (!v->place[flow]) {
			int64_t first_ns = ow_scope_absolute_ns(v, j->interval, j->unmatched[i].time_ns);
			v->judged[n++] = (struct ow_scope_judged){.first_ns = first_ns};
			v->place[flow] = (uint32_t)n;
		}
		v->judged[v->place[flow] - 1].unmatched++;
	}
	return 0;
}

/* NULL: all of the flow matched. */
static struct ow_scope_judged *judged_of(const struct judging *j, size_t flow)
{
	return j->v->place[flow] ? &j->v->judged[j->v->place[flow] - 1] : NULL;
}

/* Flows that lose a part, by destination: as if packets went different ways in turn. */
static void count_spray(const struct judging *j, struct ow_scope_past_network *dest, const struct ow_scope_flow *flow,
                        uint32_t lost)
{
	if (!dest || flow->packets < 4)
		return;
	if (dest->interval != j->interval) {
		dest->interval = j->interval;
		dest->spray_flows = dest->spray_sent = dest->spray_lost = dest->spray_squares = 0;
	}
	dest->spray_flows++;
	dest->spray_sent += (float)flow->packets;
	dest->spray_lost += (float)lost;
	dest->spray_squares += (float)lost * (float)lost / (float)flow->packets;
}

/* A flow that matched, and that was not counted yet, is not absent. */
static void count_present(const struct judging *j, const struct ow_scope_flow *flow, struct ow_scope_past_flow *f,
                          struct ow_scope_past_network *dest)
{
	if (!f || !f->matched || f->counted)
		return;
	ow_scope_count_new_flow(j->v, ow_scope_table_find(&j->v->pairs, ow_scope_key(flow->pair)), dest, 0);
	f->counted = true;
}

/* Which flows are own; and what these lost. */
static void find_own(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	for (size_t k = 0; k < j->flow_count; k++) {
		const struct ow_scope_flow *flow = &j->flows[k];
		struct ow_scope_judged here = {0}, *w = judged_of(j, k);
		if (k + OW_SCOPE_AHEAD < j->flow_count) {
			ow_scope_table_prefetch(&v->flows, j->flows[k + OW_SCOPE_AHEAD].flow, 1);
			ow_scope_table_prefetch(&v->dests, ow_scope_key(j->flows[k + OW_SCOPE_AHEAD].dest), 1);
		}
		struct ow_scope_past_flow *f = ow_scope_table_find(&v->flows, flow->flow);
		struct ow_scope_past_network *dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
		count_present(j, flow, f, dest);
		w = w ? w : &here;
		w->known = f;
		if (!ow_scope_is_own(v, f, dest, j->tick)) {
			w->fate = OW_SCOPE_UNSHARED;
			continue;
		}
		w->fate = OW_SCOPE_LOST;
		w->counted = f->packets >= 2;
		if (w->counted) {
			v->longs++;
			v->sent += flow->packets;
			v->lost += w->unmatched;
		}
		count_spray(j, dest, flow, w->unmatched);
	}
}

/* For flows without an entry: from the packets of this interval alone. */
static void add_likelihoods(const struct judging *j)
{
	for (size_t i = 0; i < j->count; i++) {
		struct ow_scope_judged *w = judged_of(j, j->unmatched[i].flow);
		if (!w->known)
			ow_scope_add_likelihood(j->v, &w->loss,
			                        ow_scope_absolute_ns(j->v, j->interval, j->unmatched[i].time_ns), j->q);
	}
}

/* How likely it is that all packets of the run are lost to which those of this interval belong (logarithm). */
static double run_likelihood(const struct judging *j, const struct ow_scope_past_flow *f,
                             const struct ow_scope_judged *w, double q)
{
	if (!f)
		return (double)w->loss.log_like + w->loss.quiet * log(q);
	if (f->matched && w->first_ns < f->run.matched_ns && f->run_end >= j->tick)
		return (double)f->run_like;
	return (double)f->log_like + f->quiet * log(q);
}

/* Of one packet, or at one moment: something may drop such flows that others do not show. */
static bool is_short(const struct judging *j, const struct ow_scope_past_flow *f, const struct ow_scope_judged *w)
{
	return run_likelihood(j, f, w, fmax(j->q, SHORT_LOSS)) > log(OW_SCOPE_UNLIKELY);
}

/* The fate of the packets of a flow that is not own. */
static uint8_t weigh(const struct judging *j, const struct ow_scope_flow *flow, struct ow_scope_judged *w)
{
	struct ow_scope_verdict *v = j->v;
	struct ow_scope_past_network *pair = ow_scope_table_find(&v->pairs, ow_scope_key(flow->pair));
	struct ow_scope_past_network *dest = ow_scope_table_find(&v->dests, ow_scope_key(flow->dest));
	if (!ow_scope_network_matched(pair, j->tick - v->limit) && !ow_scope_network_matched(dest, j->tick - v->limit))
		return OW_SCOPE_UNSHARED;
	if (flow->later)
		return OW_SCOPE_ABSENT;
	pair = ow_scope_network_of(&v->pairs, ow_scope_key(flow->pair), j->tick, flow);
	double share = ow_absent_share(dest ? &dest->share : NULL, ow_absent_usual(v->absent, v->news));
	share = ow_absent_share(pair ? &pair->share : NULL, share);
	struct ow_scope_past_flow *f = ow_scope_table_find(&v->flows, flow->flow);
	double absent = ow_absent_chance(share, run_likelihood(j, f, w, j->q));
	if (!f || !f->counted)
		ow_scope_count_new_flow(v, pair, dest, absent);
	v->longs += !w->brief;
	v->longs_absent += w->brief ? 0 : absent;
	/* Where no long flows are absent, there may be no other way. */
	w->unsure = w->brief && SURE_SHARE * share > v->longs_absent / (v->longs + 1);
	if (f)
		f->counted = true;
	return absent <= OW_ABSENT_RATHER ? OW_SCOPE_LOST : OW_SCOPE_ABSENT;
}

/* A flow that passed does not any more: more packets in a row are missing than loss explains, for longer than the
 * waiting time. */
static void note_stop(const struct judging *j, const struct ow_scope_flow *flow, struct ow_scope_past_flow *f,
                      const struct ow_scope_judged *w)
{
	struct ow_scope_verdict *v = j->v;
	uint32_t missing = f->run.missing;
	if (f->stopped || !f->matched || missing < OW_SCOPE_WHOLE_MIN || f->sent_ns - f->run.matched_ns < v->wait_ns ||
	    missing < v->unlikely || w->first_ns < f->run.matched_ns)
		return;
	f->stopped = true;
	ow_scope_tell(v, OW_SCOPE_STOPPED, w->first_ns, flow->network, flow->version,
	              &(struct ow_scope_event){.flows = 1});
}

/* Which lost packets of the flow are of a run in which nothing of the flow, or of its networks, arrived: after last_ns, or
 * in a run that has ended. */
static void find_whole(const struct judging *j, const struct ow_scope_flow *flow, const struct ow_scope_past_flow *f,
                       struct ow_scope_judged *w)
{
	const struct ow_scope_past_network *pair = ow_scope_table_find(&j->v->pairs, ow_scope_key(flow->pair));
	const struct ow_scope_past_network *dest = ow_scope_table_find(&j->v->dests, ow_scope_key(flow->dest));
	w->last_ns = INT64_MIN;
	if (!f || !f->matched || !pair || !dest)
		return;
	w->whole[0] = f->run.whole;
	w->whole[1] = pair->run.whole;
	w->whole[2] = dest->run.whole;
	w->last_ns = pair->run.matched_ns;
	if (f->run.missing >= OW_SCOPE_WHOLE_MIN && f->run.matched_ns < w->last_ns)
		w->last_ns = f->run.matched_ns;
}

static bool is_in(const struct ow_scope_span *span, int64_t at_ns)
{
	return at_ns > span->from_ns && at_ns < span->to_ns;
}

static bool is_of_whole(const struct ow_scope_verdict *v, const struct ow_scope_judged *w, int64_t at_ns)
{
	return at_ns > w->last_ns || is_in(&w->whole[0], at_ns) || is_in(&w->whole[1], at_ns) ||
	       is_in(&w->whole[2], at_ns) || is_in(&v->run.whole, at_ns);
}

static void judge_flow(const struct judging *j, const struct ow_scope_flow *flow, struct ow_scope_judged *w)
{
	if (w->fate != OW_SCOPE_LOST)
		w->fate = weigh(j, flow, w);
	struct ow_scope_past_flow *f = ow_scope_table_find(&j->v->flows, flow->flow);
	if (w->fate == OW_SCOPE_LOST)
		find_whole(j, flow, f, w);
	if (f)
		note_stop(j, flow, f, w);
}

/* How sure it is that a flow is not lost, in classes: 0 = not at all. */
static unsigned sureness(const struct judging *j, const struct ow_scope_past_flow *f, const struct ow_scope_judged *w)
{
	double sure = -run_likelihood(j, f, w, j->q);
	return sure < 0 ? 0 : sure < SURE_CLASSES - 1 ? (unsigned)sure : SURE_CLASSES - 1;
}

/* Those that are surely not lost come first: they show what share of the flows is absent, which decides about others. */
static int judge_flows(const struct judging *j)
{
	uint32_t first[SURE_CLASSES] = {0}, flows = 0;
	uint32_t *order = malloc((j->count + 1) * sizeof *order);
	if (!order)
		return -ENOMEM;
	for (size_t k = 0; k < j->flow_count; k++) {
		struct ow_scope_judged *w = judged_of(j, k);
		if (!w)
			continue;
		const struct ow_scope_past_flow *f = ow_scope_table_find(&j->v->flows, j->flows[k].flow);
		w->brief = is_short(j, f, w);
		w->sure = (uint8_t)sureness(j, f, w);
		first[w->sure]++;
	}
	for (unsigned c = SURE_CLASSES; c-- > 0; flows += first[c], first[c] = flows - first[c])
		;
	for (size_t k = 0; k < j->flow_count; k++) {
		const struct ow_scope_judged *w = judged_of(j, k);
		if (w)
			order[first[w->sure]++] = (uint32_t)k;
	}
	for (uint32_t i = 0; i < flows; i++)
		judge_flow(j, &j->flows[order[i]], judged_of(j, order[i]));
	free(order);
	return 0;
}

static void judge_packets(const struct judging *j, uint8_t *fate, struct ow_scope_sums *sums)
{
	for (size_t i = 0; i < j->count; i++) {
		const struct ow_scope_packet *packet = &j->unmatched[i];
		const struct ow_scope_judged *w = judged_of(j, packet->flow);
		bool lost = w->fate == OW_SCOPE_LOST;
		int64_t at_ns = ow_scope_absolute_ns(j->v, j->interval, packet->time_ns);
		bool whole = lost && is_of_whole(j->v, w, at_ns);
		fate[i] = whole ? OW_SCOPE_LOST_WHOLE : w->fate;
		sums->lost += lost;
		sums->whole += whole;
		j->v->whole += whole && w->counted;
		sums->unshared += !lost;
		if (w->fate != OW_SCOPE_ABSENT)
			continue;
		sums->absent++;
		sums->unsure += w->unsure;
		if (packet->compared)
			ow_scope_waste_add(&j->v->waste, ow_scope_key(j->flows[packet->flow].pair), j->interval,
			                   OW_SCOPE_WASTE_A_ONLY);
	}
}

static int count_networks(const struct judging *j, uint64_t *ret_networks)
{
	size_t n = 0;
	uint64_t *key = malloc((j->flow_count + 1) * sizeof *key);
	if (!key)
		return -ENOMEM;
	for (size_t k = 0; k < j->flow_count; k++) {
		const struct ow_scope_judged *w = judged_of(j, k);
		if (w && w->fate == OW_SCOPE_UNSHARED)
			key[n++] = j->flows[k].dest;
	}
	ow_sort_ids(key, n);
	for (size_t k = 0; k < n; k++)
		*ret_networks += !k || key[k] != key[k - 1];
	free(key);
	return 0;
}

/* -- what is unusual ----------------------------------------------------------------------------------------------- */

static bool is_fraction(double p)
{
	static const double fraction[] = {1. / 4, 1. / 3, 1. / 2, 2. / 3, 3. / 4};
	for (size_t i = 0; i < sizeof fraction / sizeof *fraction; i++) {
		if (fabs(p - fraction[i]) < .05)
			return true;
	}
	return false;
}

/* The flows of a destination lose the same share, no more unevenly than chance would have it. */
static bool is_sprayed(const struct ow_scope_past_network *dest, double *ret_share)
{
	double p = dest->spray_sent > 0 ? (double)dest->spray_lost / (double)dest->spray_sent : 0;
	*ret_share = p;
	if (dest->spray_flows < 4 || dest->spray_sent < 64 || !is_fraction(p))
		return false;
	double chi2 = ((double)dest->spray_squares - p * (double)dest->spray_lost) / (p * (1 - p));
	return chi2 <= 2 * ((double)dest->spray_flows - 1);
}

#define STEADY_INTERVALS 3

static void judge_spray(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	for (size_t k = 0; k < j->flow_count; k++) {
		struct ow_scope_past_network *dest = ow_scope_table_find(&v->dests, ow_scope_key(j->flows[k].dest));
		double share;
		/* The first flow of a destination speaks for all. */
		if (!dest || dest->interval != j->interval || dest->spray_flows == 0)
			continue;
		bool sprayed = is_sprayed(dest, &share);
		uint32_t flows = (uint32_t)dest->spray_flows;
		dest->steady = sprayed ? dest->steady + 1 : 0;
		dest->spray_flows = 0;
		if (dest->steady == STEADY_INTERVALS)
			ow_scope_tell(v, OW_SCOPE_SPRAYED,
			              ow_scope_absolute_ns(v, j->interval - STEADY_INTERVALS + 1, 0), dest->network,
			              dest->version, &(struct ow_scope_event){.flows = flows, .share = share});
	}
}

static void judge_missing(const struct judging *j)
{
	struct ow_scope_verdict *v = j->v;
	double usual = v->absent / (v->news + 20), now = v->fast_absent / (v->fast_news + 1);
	if (!v->missing && v->fast_absent >= 10 && now > 2 * usual + .01) {
		v->missing = true;
		ow_scope_tell(v, OW_SCOPE_MISSING, ow_scope_absolute_ns(v, j->interval, 0), NULL, 0,
		              &(struct ow_scope_event){.flows = (uint32_t)v->fast_absent, .share = now});
	} else if (v->missing && now < 1.2 * usual + .005) {
		v->missing = false;
	}
}

static void age(struct ow_scope_verdict *v)
{
	double slow = pow(.98, v->seconds), slower = pow(.99, v->seconds), fast = pow(.8, v->seconds);
	v->sent *= slow;
	v->lost *= slow;
	v->whole *= slow;
	v->absent *= slower;
	v->longs *= slower;
	v->longs_absent *= slower;
	v->news *= slower;
	v->fast_absent *= fast;
	v->fast_news *= fast;
}

int ow_scope_verdict_judge(struct ow_scope_verdict *v, int64_t interval, const struct ow_scope_flow *flows,
                           size_t flow_count, const struct ow_scope_packet *unmatched, size_t count, uint8_t *fate,
                           struct ow_scope_sums *ret_sums)
{
	struct judging j = {.v = v,
	                    .interval = interval,
	                    .tick = ow_scope_tick(v, interval),
	                    .flows = flows,
	                    .flow_count = flow_count,
	                    .unmatched = unmatched,
	                    .count = count};
	struct ow_scope_sums sums = {0};
	int r = count_unmatched(&j);
	if (r < 0)
		return r;
	find_own(&j);
	j.q = ow_scope_usual_loss(v);
	add_likelihoods(&j);
	r = judge_flows(&j);
	if (r < 0)
		return r;
	judge_packets(&j, fate, &sums);
	r = count_networks(&j, &sums.networks);
	judge_spray(&j);
	judge_missing(&j);
	age(v);
	*ret_sums = sums;
	return r;
}

size_t ow_scope_verdict_events(struct ow_scope_verdict *v, struct ow_scope_event *events)
{
	return ow_scope_events_take(&v->events, events);
}

size_t ow_scope_verdict_fine(struct ow_scope_verdict *v, uint64_t *pair_keys, size_t max)
{
	size_t n = v->waste.fines < max ? v->waste.fines : max;
	v->waste.fines -= n;
	if (n)
		memcpy(pair_keys, v->waste.fine + v->waste.fines, n * sizeof *pair_keys);
	return n;
}
