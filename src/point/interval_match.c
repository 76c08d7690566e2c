/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of both points side by side. Packets that are unlike all others meet by their id (reconcile/id_pairing.c).
 * Identical ones, which the copies of both and what still waits name, are taken apart again and aligned by the
 * times at which they were sent and arrived, or paired by their order.
 */
#include "point/interval_match.h"

#include "base/array.h"
#include "base/id_map.h"
#include "base/sort.h"
#include "reconcile/id_pairing.h"
#include "reconcile/late_packets.h"
#include "reconcile/shown_twice.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 12 /* look-ups between prefetching a slot and using it */

/* Names of identical packets, and the group (base id) that each belongs to. */
struct name {
	uint64_t id;
	uint32_t group; /* from 1 */
};

struct names {
	struct name *name;
	uint32_t count, room;
	struct ow_id_map by_id;
	uint64_t *base; /* of each group */
	uint32_t groups, group_room;
};

/* The packets of the groups at one point: those of group g are place[start[g]] .. place[start[g + 1] - 1]. */
struct members {
	uint32_t *place;
	uint32_t *start;
};

enum group_member {
	NO_MEMBER,
	MEMBER,
	DOUBTFUL, /* paired, or late, but with an uncertain delay */
};

struct join {
	const struct ow_interval_packets *a, *b;
	const struct ow_interval_match_past *past;
	uint32_t *of_a, *of_b;
	uint8_t *of_group; /* of the packets at B, an enum group_member */
	struct names names;
	struct members at_a, at_b;
	uint64_t duplicated, close;
	struct ow_shown_twice twice;
	bool others;        /* that no packet is identical to, were sent now or wait */
	bool comparable;    /* the times of both points are, */
	int64_t lead_ns;    /* if this is added to those of B */
	bool first;         /* some identical ones may have been sent before the first interval */
	int64_t *late_of_b; /* of the packets at B: which waiting packet it is; NULL until it is needed */
	int64_t *time_ns;   /* of the copies of one packet: those that wait, those sent, those received */
	size_t time_room;
	struct ow_copy_fate *fate; /* of those received */
	size_t fate_room;
};

/* The group of a packet, or 0. */
static uint32_t group_named(const struct names *names, uint64_t id)
{
	if (!names->count)
		return 0;
	uint32_t at = OW_ID_MAP_FIND(&names->by_id, id, i, names->name[i].id == id);
	return at == OW_ID_MAP_NONE ? 0 : names->name[at].group;
}

static int enter(struct names *names, uint64_t id, uint32_t group)
{
	if (OW_GROW(names->name, names->room, names->count + 1) < 0 ||
	    ow_id_map_add(&names->by_id, id, names->count) < 0)
		return -ENOMEM;
	names->name[names->count++] = (struct name){id, group};
	return 0;
}

/* Adds a name of the packets with this base id; the base is a name as well. */
static int add_name(struct names *names, uint64_t id, uint64_t base)
{
	uint32_t group = group_named(names, base);
	if (!group) {
		if (OW_GROW(names->base, names->group_room, names->groups + 1) < 0)
			return -ENOMEM;
		names->base[names->groups++] = base;
		group = names->groups;
		int r = enter(names, base, group);
		if (r < 0)
			return r;
	}
	return group_named(names, id) ? 0 : enter(names, id, group);
}

/*
 * Collects the names that must not be paired by id: copies at either point, and packets identical to some that still
 * wait.
 */
static int collect_names(struct join *join)
{
	const struct ow_interval_packets *both[] = {join->a, join->b};
	int r = 0;
	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; r == 0 && i < both[side]->copies; i++)
			r = add_name(&join->names, both[side]->copy[i].id, both[side]->copy[i].base_id);
	}
	if (!join->past->results || !ow_interval_results_waiting(join->past->results))
		return r;
	for (size_t j = 0; r == 0 && j < join->b->count; j++) {
		uint64_t id = join->b->sighting[j].id;
		if (ow_interval_results_waits(join->past->results, id) > (join->of_b[j] == OW_PAIRING_NONE))
			r = add_name(&join->names, id, id);
	}
	return r;
}

/* Arrivals that may be those of packets sent before, because the same was sent then: there are copies, although no interval has
 * two of them. */
static int collect_repeated(struct join *join)
{
	const struct ow_interval_results *results = join->past->results;
	const struct ow_sent_lately *lately = &join->past->copies->lately;
	const struct ow_sighting *b = join->b->sighting;
	int r = 0;
	for (size_t j = 0; r == 0 && j < join->b->count && b[j].time_ns < lately->reach_ns; j++) {
		bool paired = join->of_b[j] != OW_PAIRING_NONE;
		bool repeated =
			paired ? ow_sent_lately_last(lately, b[j].id) != INT64_MIN
			       : ow_interval_results_waits(results, b[j].id) && ow_sent_lately_apart(lately, b[j].id);
		if (repeated)
			r = add_name(&join->names, b[j].id, b[j].id);
	}
	return r;
}

/* Finds the packets of the groups in an interval, in its order. */
static int find_members(const struct names *names, const struct ow_interval_packets *packets, struct members *members)
{
	uint32_t total = 0, *group = malloc((packets->count + 1) * sizeof *group);
	uint32_t *start = members->start = calloc(names->groups + (size_t)2, sizeof *start);
	if (!group || !start) {
		free(group);
		return -ENOMEM;
	}
	for (size_t i = 0; i < packets->count; i++) {
		/*
		 * Whether few or nearly all packets are in groups, the look-ups would miss the cache one after the
		 * other.
		 */
		if (i + AHEAD < packets->count)
			ow_id_map_prefetch(&names->by_id, packets->sighting[i + AHEAD].id);
		group[i] = group_named(names, packets->sighting[i].id);
		start[group[i]]++;
	}
	/* start[0] has counted the packets without a group. */
	for (uint32_t g = 1; g <= names->groups; g++) {
		uint32_t count = start[g];
		start[g] = total;
		total += count;
	}
	members->place = malloc((total + (size_t)1) * sizeof *members->place);
	for (size_t i = 0; members->place && i < packets->count; i++) {
		if (group[i])
			members->place[start[group[i]]++] = (uint32_t)i;
	}
	free(group);
	/* Each start is now the end of its group, and so the start of the next one. */
	start[0] = 0;
	return members->place ? 0 : -ENOMEM;
}

/* Group g of the names, g from 0. */
static const uint32_t *group_of(const struct members *members, uint32_t g, size_t *ret_count)
{
	*ret_count = 0;
	if (!members->start)
		return NULL;
	uint32_t from = members->start[g];
	*ret_count = members->start[g + 1] - from;
	return members->place + from;
}

/* The packets of a group, in order, and how many of them wait from earlier intervals. */
struct group {
	uint64_t base;
	const uint32_t *a, *b;
	size_t as, bs, waiting;
};

static struct group take_group(struct join *join, uint32_t g)
{
	struct group group = {.base = join->names.base[g]};
	group.a = group_of(&join->at_a, g, &group.as);
	group.b = group_of(&join->at_b, g, &group.bs);
	if (join->past->results)
		group.waiting = ow_interval_results_waits(join->past->results, group.base);
	for (size_t i = 0; i < group.as; i++)
		join->of_a[group.a[i]] = OW_PAIRING_NONE;
	for (size_t j = 0; j < group.bs; j++)
		join->of_b[group.b[j]] = OW_PAIRING_NONE;
	return group;
}

static void pair(struct join *join, uint32_t from, uint32_t to)
{
	join->of_a[from] = to;
	join->of_b[to] = from;
}

/* Puts the times of a group one after the other: those that wait, those that were sent, those that were received. */
static int list_times(struct join *join, const struct group *g)
{
	size_t n = g->waiting, all = n + g->as + g->bs;
	if (OW_GROW(join->time_ns, join->time_room, all) < 0 || OW_GROW(join->fate, join->fate_room, g->bs) < 0)
		return -ENOMEM;
	if (n)
		ow_interval_results_waiting_times(join->past->results, g->base, join->time_ns);
	for (size_t i = 0; i < g->as; i++)
		join->time_ns[n++] = join->a->start_ns + join->a->sighting[g->a[i]].time_ns;
	for (size_t j = 0; j < g->bs; j++)
		join->time_ns[n++] = join->b->start_ns + join->b->sighting[g->b[j]].time_ns + join->lead_ns;
	return 0;
}

static void note_twice(struct join *join, const struct group *g)
{
	if (!g->waiting && g->as == 2 && g->bs <= 2)
		ow_shown_twice_note(&join->twice, join->a->sighting[g->a[0]].time_ns,
		                    join->a->sighting[g->a[1]].time_ns, g->bs);
}

/* If none has a copy in this interval. */
static int64_t apart_of(const struct join *join, const struct group *g)
{
	return join->past->copies && g->as < 2 ? ow_sent_lately_apart(&join->past->copies->lately, g->base) : 0;
}

static int pair_group(struct join *join, uint32_t number)
{
	struct group g = take_group(join, number);
	size_t sents = g.waiting + g.as;
	struct ow_copy_counts counts = {0};
	note_twice(join, &g);
	if (!g.bs)
		return 0;
	int r = list_times(join, &g);
	if (r == 0)
		r = ow_interval_copies_pair(
			join->comparable ? join->past->copies : NULL,
			&(struct ow_copy_times){g.base, join->time_ns, join->time_ns + sents, (uint32_t)g.waiting,
		                                (uint32_t)sents, (uint32_t)g.bs, join->a->start_ns, apart_of(join, &g)},
			join->fate, &counts);
	for (size_t j = 0; r == 0 && j < g.bs; j++) {
		const struct ow_copy_fate *fate = &join->fate[j];
		bool apart = apart_of(join, &g), doubtful = fate->doubtful || (apart && !join->comparable);
		join->of_group[g.b[j]] = doubtful ? DOUBTFUL : MEMBER;
		join->late_of_b[g.b[j]] = fate->waited_ns;
		join->first |= doubtful && apart;
		if (fate->sent != OW_ALIGN_NONE)
			pair(join, g.a[fate->sent], g.b[j]);
	}
	join->duplicated += counts.duplicated;
	join->close += counts.close;
	join->first |= counts.odd;
	return r;
}

/* Whether packets that no other is like were sent in this interval, or wait. */
static bool are_others(const struct join *join)
{
	const struct ow_interval_results *results = join->past->results;
	size_t waiting = results ? ow_interval_results_waiting(results) : 0;
	if (join->at_a.start[join->names.groups] < join->a->count)
		return true;
	for (uint32_t g = 0; g < join->names.groups && waiting; g++)
		waiting -= ow_interval_results_waits(results, join->names.base[g]);
	return waiting;
}

/* How long packets take that no other is like: of this interval, and of the last one. */
static void learn_delays(struct join *join)
{
	int64_t delay_ns[OW_INTERVAL_RESULTS_DELAYS + OW_JOINED_SAMPLES], least_ns = 0;
	struct ow_interval_copies *copies = join->past->copies;
	size_t count = join->past->results && !join->past->longer
	                       ? ow_interval_results_usual_delays(join->past->results, delay_ns)
	                       : 0;
	for (size_t i = 0, step = join->a->count / OW_JOINED_SAMPLES + 1; i < join->a->count; i += step) {
		const struct ow_sighting *a = &join->a->sighting[i];
		if (join->of_a[i] != OW_PAIRING_NONE && !group_named(&join->names, a->id))
			delay_ns[count++] = join->b->sighting[join->of_a[i]].time_ns - a->time_ns;
	}
	for (size_t i = 0; i < count; i++)
		least_ns = delay_ns[i] < least_ns ? delay_ns[i] : least_ns;
	join->lead_ns = join->past->two_clocks ? ow_interval_copies_lead((double)least_ns) : 0;
	join->comparable |= count > 0;
	for (size_t i = 0; i < count; i++)
		ow_interval_copies_learn(copies, delay_ns[i] + join->lead_ns);
	if (join->past->longer && copies->plausible.samples)
		ow_interval_copies_forget(copies);
	ow_interval_copies_learned(copies);
	copies->others_wait = join->others;
}

static int64_t reach_of(const struct ow_interval_results *results)
{
	int64_t reach_ns = ow_interval_results_reach(results);
	return reach_ns < 0 ? INT64_MAX / 4 : reach_ns;
}

static int pair_identical(struct join *join)
{
	struct ow_interval_copies *copies = join->past->copies;
	bool neighbours = copies && join->past->results;
	if (copies)
		ow_interval_copies_begin(copies);
	if (neighbours)
		ow_sent_lately_begin(&copies->lately, join->a->start_ns, reach_of(join->past->results));
	int r = collect_names(join);
	if (r == 0 && neighbours)
		r = collect_repeated(join);
	if (neighbours)
		ow_sent_lately_add(&copies->lately, join->a->sighting, join->a->count, join->a->start_ns,
		                   join->a->length_ns);
	if (r < 0 || !join->names.groups)
		return r;
	r = find_members(&join->names, join->a, &join->at_a);
	if (r == 0)
		r = find_members(&join->names, join->b, &join->at_b);
	join->late_of_b = calloc(join->b->count + 1, sizeof *join->late_of_b);
	if (r == 0 && !join->late_of_b)
		r = -ENOMEM;
	if (r < 0)
		return r;
	for (size_t j = 0; j < join->b->count; j++)
		join->late_of_b[j] = OW_LATE_PACKETS_ANY;
	join->others = are_others(join);
	if (join->past->copies)
		learn_delays(join);
	for (uint32_t g = 0; r == 0 && g < join->names.groups; g++)
		r = pair_group(join, g);
	return r;
}

/* The id of the packet itself, for any of its copies. */
static uint64_t base_of(const struct names *names, uint64_t id)
{
	uint32_t group = group_named(names, id);
	return group && names->base ? names->base[group - 1] : id;
}

static void list_only_a(const struct join *join, struct ow_sighting *only_a)
{
	for (size_t i = 0, n = 0; i < join->a->count; i++) {
		if (join->of_a[i] == OW_PAIRING_NONE)
			only_a[n++] = (struct ow_sighting){base_of(&join->names, join->a->sighting[i].id),
			                                   join->a->sighting[i].time_ns, join->a->sighting[i].flow};
	}
}

/* The delays of identical packets that are known. Returns their number. */
static size_t list_identical(const struct join *join, int64_t *delay_ns)
{
	const struct ow_sighting *a = join->a->sighting, *b = join->b->sighting;
	size_t count = 0;
	for (uint32_t k = 0, end = join->at_b.start ? join->at_b.start[join->names.groups] : 0; k < end; k++) {
		uint32_t j = join->at_b.place[k], i = join->of_b[j];
		if (i != OW_PAIRING_NONE && join->of_group[j] == MEMBER)
			delay_ns[count++] = b[j].time_ns - a[i].time_ns;
	}
	return count;
}

/* In the order of arrival: delays, packets that only B has, and reordered packets. */
static void list_arrivals(const struct join *join, struct ow_interval_results_input *in, struct ow_joined *joined)
{
	const struct ow_sighting *a = join->a->sighting, *b = join->b->sighting;
	int64_t newest_ns = INT64_MIN;
	size_t delays = 0, only_bs = 0, newest = 0;
	uint64_t reordered = 0, ambiguous = 0;
	for (size_t j = 0; j < join->b->count; j++) {
		uint32_t i = join->of_b[j];
		if (i == OW_PAIRING_NONE) {
			joined->only_b[only_bs] = (struct ow_sighting){
				base_of(&join->names, b[j].id),
				join->of_group[j] == DOUBTFUL ? OW_INTERVAL_RESULTS_NO_TIME : b[j].time_ns};
			if (join->late_of_b)
				joined->only_b_sent_ns[only_bs] = join->late_of_b[j];
			joined->newest_ns[only_bs++] = newest_ns;
			continue;
		}
		if (join->of_group[j] == DOUBTFUL) {
			ambiguous++;
			continue;
		}
		if (join->of_group[j] == NO_MEMBER)
			joined->delay_ns[delays++] = b[j].time_ns - a[i].time_ns;
		/*
		 * RFC 4737, 3.3: sent earlier than one that has arrived before. The packets of a superframe have one
		 * time: then the position decides.
		 */
		if (a[i].time_ns < newest_ns || (i < newest && a[i].time_ns == newest_ns)) {
			reordered++;
		} else {
			newest_ns = a[i].time_ns;
			newest = i;
		}
	}
	size_t identical = list_identical(join, joined->delay_ns + delays);
	in->identical = join->others ? identical : 0;
	in->begun_amid = join->first && join->others;
	in->delays = delays + identical;
	in->only_bs = only_bs;
	in->newest_at_end_ns = newest_ns;
	in->result.reordered = reordered;
	in->result.ambiguous = ambiguous;
}

/* Adds the flows of B's matched packets to those that come from A. */
static int note_shared(const struct join *join)
{
	const struct ow_interval_packets *b = join->b;
	int r = 0;
	ow_shared_flows_turn(join->past->shared, b->start_ns);
	for (size_t j = 0; j < b->count && r == 0; j++) {
		if (join->of_b[j] != OW_PAIRING_NONE && b->sighting[j].flow)
			r = ow_shared_flows_add(join->past->shared, b->flows.flow[b->sighting[j].flow - 1].flow);
	}
	return r;
}

/* Whether a packet that only B has comes from A. A fragment that is not the first was made on the way, unless it is a
 * copy. */
static bool is_shared(const struct join *join, const struct ow_sighting *packet)
{
	const struct ow_scope_flow *flow = packet->flow ? &join->b->flows.flow[packet->flow - 1] : NULL;
	bool made = flow && flow->later && !ow_interval_packets_copy(join->b, packet->id);
	return flow && !made && ow_shared_flows_has(join->past->shared, flow->flow);
}

/* Says of A's packets which are matched; the flow of only_b becomes 1 if it comes from A, else 0. */
static int note_flows(const struct join *join, struct ow_interval_results_input *in, struct ow_joined *joined)
{
	const struct ow_interval_packets *a = join->a, *b = join->b;
	if (!join->past->shared)
		return 0;
	int r = note_shared(join);
	if (r < 0)
		return r;
	joined->is_matched = malloc(a->count + 1);
	if (!joined->is_matched)
		return -ENOMEM;
	for (size_t i = 0; i < a->count; i++)
		joined->is_matched[i] = join->of_a[i] != OW_PAIRING_NONE;
	for (size_t j = 0, n = 0; j < b->count; j++) {
		if (join->of_b[j] == OW_PAIRING_NONE)
			joined->only_b[n++].flow = is_shared(join, &b->sighting[j]);
	}
	in->packet = a->sighting;
	in->packets = a->count;
	in->is_matched = joined->is_matched;
	in->flow = a->flows.flow;
	in->flows = a->flows.count;
	return 0;
}

/* Packets all over the interval, about as many as there is room for. */
static void take_sample(const struct join *join, struct ow_joined *joined)
{
	size_t step = join->a->count / OW_JOINED_SAMPLES + 1;
	for (size_t i = 0; i < join->a->count; i += step) {
		const struct ow_sighting *a = &join->a->sighting[i];
		if (join->of_a[i] == OW_PAIRING_NONE || (join->names.groups && group_named(&join->names, a->id)))
			continue;
		joined->sample[joined->samples++] =
			(struct ow_clock_sample){a->time_ns, join->b->sighting[join->of_a[i]].time_ns - a->time_ns};
	}
}

static int make_lists(const struct join *join, struct ow_interval_results_input *in, struct ow_joined *joined)
{
	size_t only_as = 0, only_bs = 0;
	for (size_t i = 0; i < join->a->count; i++)
		only_as += join->of_a[i] == OW_PAIRING_NONE;
	for (size_t j = 0; j < join->b->count; j++)
		only_bs += join->of_b[j] == OW_PAIRING_NONE;
	size_t matched = join->a->count - only_as;
	assert(matched == join->b->count - only_bs);
	joined->only_a = malloc((only_as + 1) * sizeof *joined->only_a);
	joined->only_b = malloc((only_bs + 1) * sizeof *joined->only_b);
	joined->newest_ns = malloc((only_bs + 1) * sizeof *joined->newest_ns);
	joined->only_b_sent_ns = malloc((only_bs + 1) * sizeof *joined->only_b_sent_ns);
	joined->delay_ns = malloc((matched + 1) * sizeof *joined->delay_ns);
	joined->sample = malloc(OW_JOINED_SAMPLES * sizeof *joined->sample);
	if (!joined->only_a || !joined->only_b || !joined->newest_ns || !joined->only_b_sent_ns || !joined->delay_ns ||
	    !joined->sample)
		return -ENOMEM;
	list_only_a(join, joined->only_a);
	list_arrivals(join, in, joined);
	take_sample(join, joined);
	in->only_as = only_as;
	in->only_a = joined->only_a;
	in->only_b = joined->only_b;
	in->newest_ns = joined->newest_ns;
	in->only_b_sent_ns = join->late_of_b ? joined->only_b_sent_ns : NULL;
	in->delay_ns = joined->delay_ns;
	in->result.matched = matched;
	in->result.duplicated = join->duplicated;
	in->close = join->close;
	joined->aligned = join->comparable;
	return note_flows(join, in, joined);
}

/* Packets without a counterpart in this interval and among those that wait. Some of them may repeat earlier ones. */
static size_t list_strangers(const struct join *join, const struct ow_interval_results_input *in, uint64_t *id)
{
	size_t count = 0;
	for (size_t i = 0; i < in->only_bs; i++) {
		size_t as = 0;
		uint64_t base = in->only_b[i].id;
		uint32_t group = group_named(&join->names, base);
		if (group)
			group_of(&join->at_a, group - 1, &as);
		if (!as && !(join->past->results && ow_interval_results_waits(join->past->results, base)))
			id[count++] = base;
	}
	ow_sort_ids(id, count);
	return count;
}

/* Counts those that had already arrived in the last interval: duplicates across its end. */
static int count_repeated(const struct join *join, const struct ow_interval_results_input *in, uint64_t *ret_repeated)
{
	static const unsigned bits = 16;
	const struct ow_interval_packets *before = join->past->b;
	*ret_repeated = 0;
	if (!before || !before->count || !in->only_bs)
		return 0;
	uint64_t *id = malloc(in->only_bs * sizeof *id), *sieve = calloc((1u << bits) / 64, sizeof *sieve);
	size_t count = id && sieve ? list_strangers(join, in, id) : 0;
	for (size_t i = 0; i < count; i++)
		sieve[id[i] >> (64 - bits) >> 6] |= UINT64_C(1) << (id[i] >> (64 - bits) & 63);
	for (size_t i = 0; count && i < before->count; i++) {
		uint64_t name = before->sighting[i].id;
		if (!(sieve[name >> (64 - bits) >> 6] >> (name >> (64 - bits) & 63) & 1))
			continue;
		for (size_t k = ow_ids_below(id, count, name); k < count && id[k] == name; k++)
			++*ret_repeated;
	}
	int r = id && sieve ? 0 : -ENOMEM;
	free(id);
	free(sieve);
	return r;
}

/* The others are those that no other is identical to. One that is shown again, after the end of an interval, says nothing of
 * them if it does not arrive again. */
static uint64_t find_twice(struct join *join)
{
	const struct ow_interval_copies *copies = join->past->copies;
	struct ow_shown_twice *twice = &join->twice;
	if (twice->all[1] < OW_SHOWN_TWICE_LEAST)
		return 0;
	for (size_t i = 0; i < join->a->count; i++) {
		uint64_t id = join->a->sighting[i].id;
		bool missing = join->of_a[i] == OW_PAIRING_NONE;
		if (group_named(&join->names, id))
			continue;
		bool again = missing && copies && ow_sent_lately_apart(&copies->lately, id);
		twice->again += again;
		twice->others += !again;
		twice->missing += missing && !again;
	}
	return ow_shown_twice_doubtful(twice);
}

static void describe(const struct ow_interval_packets *a, const struct ow_interval_packets *b,
                     struct ow_interval_result *r)
{
	r->interval = a->interval;
	r->start_ns = a->start_ns;
	r->length_ns = a->length_ns;
	r->sent = a->count;
	r->received = b->count;
	r->bytes = a->total_bytes;
	r->sample_shift = a->sample_shift;
	r->exact = a->sample_shift == 0;
	r->total_sent = a->total_packets;
	r->total_received = b->total_packets;
	r->ring_drops_from = a->ring_drops;
	r->missed = a->missed;
	r->ring_drops_to = b->ring_drops;
	r->unreadable = a->unreadable + b->unreadable;
	memcpy(r->synopsis, "exact", sizeof "exact");
}

int ow_interval_match_pair(const struct ow_interval_packets *a, const struct ow_interval_packets *b,
                           const struct ow_interval_match_past *past, struct ow_interval_results_input *ret_input,
                           struct ow_joined *ret_joined)
{
	struct join join = {.a = a, .b = b, .past = past, .comparable = !past->two_clocks};
	struct ow_interval_results_input in = {0};
	struct ow_joined joined = {0};
	assert(a->interval == b->interval && a->sample_shift == b->sample_shift);
	join.of_a = malloc((a->count + 1) * sizeof *join.of_a);
	join.of_b = malloc((b->count + 1) * sizeof *join.of_b);
	join.of_group = calloc(b->count + 1, 1);
	int r = join.of_a && join.of_b && join.of_group ? 0 : -ENOMEM;
	if (r == 0)
		r = ow_pairing(a->sighting, a->count, b->sighting, b->count, join.of_a, join.of_b);
	if (r == 0)
		r = pair_identical(&join);
	if (r == 0) {
		describe(a, b, &in.result);
		r = make_lists(&join, &in, &joined);
	}
	uint64_t repeated = 0;
	if (r == 0)
		r = count_repeated(&join, &in, &repeated);
	in.twice = r == 0 ? find_twice(&join) : 0;
	in.result.duplicated += repeated;
	free(join.of_a);
	free(join.of_b);
	free(join.of_group);
	free(join.late_of_b);
	free(join.time_ns);
	free(join.fate);
	ow_id_map_done(&join.names.by_id);
	free(join.names.name);
	free(join.names.base);
	free(join.at_a.place);
	free(join.at_a.start);
	free(join.at_b.place);
	free(join.at_b.start);
	if (r < 0) {
		ow_joined_done(&joined);
		return r;
	}
	*ret_input = in;
	*ret_joined = joined;
	return 0;
}

void ow_joined_done(struct ow_joined *joined)
{
	free(joined->only_a);
	free(joined->only_b);
	free(joined->delay_ns);
	free(joined->newest_ns);
	free(joined->only_b_sent_ns);
	free(joined->is_matched);
	free(joined->sample);
	*joined = (struct ow_joined){0};
}
