/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver's answer to NAMES: the times of the named packets, and sums and a sample of the others. */
#include "exchange/exchange_private.h"
#include "exchange/exchange_scope.h"
#include "base/sort.h"
#include "estimate/arrivals.h"
#include "estimate/low_bits.h"
#include "estimate/reconciled.h"
#include "reconcile/key_list.h"
#include "reconcile/keyset.h"
#include "synopsis/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lists {
	uint64_t *wanted, *others;
	size_t wanteds, otherss;
	struct ow_keyset set; /* all of them */
	bool wide;
	struct ow_fold_secret secret;
};

struct found {
	int64_t *time_ns; /* of the wanted packets */
	bool *there;
	struct ow_message_copy *copy;
	uint32_t copies;
	size_t hits;
	struct ow_sighting *kept;
	size_t kepts;
	uint32_t *flow; /* of the wanted packets */
	int64_t *place; /* of the wanted packets: in the interval; then in the order of arrival, without omitted ones */
	uint32_t *at;   /* of the kept packets: in the interval */
	uint8_t *shared; /* a bit for each of them: packets of its flow are kept */
	bool twice;      /* two packets of one name */
};

static int read_list(const uint8_t *bytes, uint32_t size, bool wide, uint64_t **ret_keys, size_t *ret_count,
                     struct ow_error *err)
{
	*ret_keys = NULL;
	*ret_count = 0;
	if (!size)
		return 0;
	if (!wide) {
		int r = ow_key_list_decode(OW_KEY_LIST_PACKET, bytes, size, ret_keys, ret_count, err);
		if (r < 0)
			return r == -ENOMEM ? r : -EPROTO;
	} else {
		*ret_keys = malloc(size);
		if (!*ret_keys)
			return -ENOMEM;
		memcpy(*ret_keys, bytes, size);
		*ret_count = size / 8;
	}
	for (size_t i = 1; i < *ret_count; i++) {
		if ((*ret_keys)[i] <= (*ret_keys)[i - 1])
			return ow_error_set(err, EPROTO, "message NAMES: names are not in rising order");
	}
	return 0;
}

static void lists_done(struct lists *lists)
{
	free(lists->wanted);
	free(lists->others);
	ow_keyset_done(&lists->set);
}

static int read_lists(const struct ow_exchange *x, const struct ow_message_names *m, struct lists *lists,
                      struct ow_error *err)
{
	struct ow_synopsis *fold;
	/* All folds have the same secret of keys. */
	int r = ow_fold_create(&(struct ow_fold_params){OW_FOLD_BANKS_MAX, 1, 0, false}, x->options.seed, &fold);
	if (r < 0)
		return r;
	lists->secret = ow_fold_of(fold)->secret;
	ow_synopsis_free(fold);
	lists->wide = m->wide;
	r = read_list(m->wanted, m->wanted_size, m->wide, &lists->wanted, &lists->wanteds, err);
	if (r == 0)
		r = read_list(m->others, m->others_size, m->wide, &lists->others, &lists->otherss, err);
	for (size_t i = 0; i < lists->wanteds && r == 0; i++)
		r = ow_keyset_add(&lists->set, lists->wanted[i]);
	for (size_t i = 0; i < lists->otherss && r == 0; i++)
		r = ow_keyset_add(&lists->set, lists->others[i]);
	return r;
}

static uint64_t name_of(const struct lists *lists, uint64_t id)
{
	return lists->wide ? id : ow_fold_key(&lists->secret, id);
}

static void take_named(const struct lists *lists, const struct ow_interval_packets *packets,
                       const struct ow_sighting *sighting, uint64_t name, struct found *found)
{
	size_t place = ow_ids_below(lists->wanted, lists->wanteds, name);
	found->hits++;
	if (place == lists->wanteds || lists->wanted[place] != name)
		return;
	found->twice |= found->there[place];
	found->there[place] = true;
	found->time_ns[place] = sighting->time_ns;
	found->flow[place] = sighting->flow;
	found->place[place] = sighting - packets->sighting;
	const struct ow_copy *copy = packets->copies ? ow_interval_packets_copy(packets, sighting->id) : NULL;
	if (copy && found->copies < lists->wanteds)
		found->copy[found->copies++] = (struct ow_message_copy){(uint32_t)place, name_of(lists, copy->base_id)};
}

static int by_index(const void *a, const void *b)
{
	const struct ow_message_copy *x = a, *y = b;
	return (x->index > y->index) - (x->index < y->index);
}

static void found_done(struct found *found)
{
	free(found->time_ns);
	free(found->there);
	free(found->copy);
	free(found->kept);
	free(found->flow);
	free(found->place);
	free(found->at);
	free(found->shared);
}

/* Whether the wanted packet belongs to a flow that comes from the sender: packets of it are kept, or were lately. */
static bool is_shared(const struct ow_interval_packets *packets, const struct ow_shared_flows *shared, uint32_t flow)
{
	return flow && ow_shared_flows_has(shared, packets->flows.flow[flow - 1].flow);
}

/* A fragment that only this point has was made on the way, unless it is a copy. */
static int find_shared(const struct lists *lists, const struct ow_interval_packets *packets,
                       struct ow_shared_flows *shared, struct found *found)
{
	const struct ow_scope_flow *flow = packets->flows.flow;
	int r = 0;
	found->shared = calloc(lists->wanteds / 8 + 1, 1);
	if (!found->shared)
		return -ENOMEM;
	for (size_t i = 0; i < found->kepts && r == 0; i++) {
		if (found->kept[i].flow)
			r = ow_shared_flows_add(shared, flow[found->kept[i].flow - 1].flow);
	}
	for (size_t i = 0; i < lists->wanteds; i++) {
		bool made = found->flow[i] && flow[found->flow[i] - 1].later;
		if (!made && is_shared(packets, shared, found->flow[i]))
			found->shared[i / 8] |= (uint8_t)(1u << i % 8);
	}
	for (size_t k = 0; k < found->copies; k++) {
		uint32_t i = found->copy[k].index;
		if (is_shared(packets, shared, found->flow[i]))
			found->shared[i / 8] |= (uint8_t)(1u << i % 8);
	}
	return r;
}

/* What only this point has may cost less if its flows are told one by one. */
static void note_only(const struct lists *lists, const struct ow_interval_packets *packets, const struct found *found,
                      struct ow_receiver_scope *scope)
{
	for (size_t i = 0; i < lists->wanteds; i++) {
		if (found->flow[i])
			ow_receiver_scope_only(scope, &packets->flows.flow[found->flow[i] - 1], 1);
	}
}

/* Divides the packets of the interval into named packets and the others. */
static int part(const struct lists *lists, const struct ow_interval_packets *packets, struct found *found)
{
	found->time_ns = calloc(lists->wanteds + 1, sizeof *found->time_ns);
	found->there = calloc(lists->wanteds + 1, sizeof *found->there);
	found->copy = calloc(lists->wanteds + 1, sizeof *found->copy);
	found->flow = calloc(lists->wanteds + 1, sizeof *found->flow);
	found->place = calloc(lists->wanteds + 1, sizeof *found->place);
	found->at = malloc((packets->count + 1) * sizeof *found->at);
	found->kept = malloc((packets->count + 1) * sizeof *found->kept);
	if (!found->time_ns || !found->there || !found->copy || !found->flow || !found->place || !found->at ||
	    !found->kept)
		return -ENOMEM;
	for (size_t i = 0; i < packets->count; i++) {
		uint64_t name = name_of(lists, packets->sighting[i].id);
		if (ow_keyset_has(&lists->set, name)) {
			take_named(lists, packets, &packets->sighting[i], name, found);
		} else {
			found->at[found->kepts] = (uint32_t)i;
			found->kept[found->kepts++] = packets->sighting[i];
		}
	}
	if (found->copies)
		qsort(found->copy, found->copies, sizeof *found->copy, by_index);
	return 0;
}

/* The order of arrival: kept packets are numbered by rank, wanted ones follow. */
static int list_arrivals(const struct lists *lists, const struct found *found, uint64_t seed,
                         struct ow_arrival **ret_arrival)
{
	uint32_t *kept = malloc((found->kepts + 1) * sizeof *kept), count = (uint32_t)found->kepts;
	struct ow_arrival *arrival = malloc((found->kepts + lists->wanteds + 1) * sizeof *arrival);
	int r = kept && arrival ? ow_reconciled_order(found->kept, found->kepts, seed, kept) : -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < count; i++)
		arrival[i] = (struct ow_arrival){found->kept[kept[i]].time_ns, found->at[kept[i]], i};
	for (uint32_t i = 0; r == 0 && i < lists->wanteds; i++)
		arrival[count + i] = (struct ow_arrival){found->time_ns[i], (uint32_t)found->place[i], count + i};
	free(kept);
	if (r < 0)
		free(arrival);
	else
		*ret_arrival = arrival;
	return r;
}

/* Where the wanted packets are in the order of arrival, and the check of the order of the others. */
static int put_order(struct ow_message_times *m, const struct lists *lists, struct found *found, uint64_t seed)
{
	struct ow_arrival *arrival;
	size_t kept = 0, all = found->kepts + lists->wanteds;
	int r = list_arrivals(lists, found, seed, &arrival);
	if (r < 0)
		return r;
	ow_arrivals_sort(arrival, all);
	for (size_t i = 0; i < all; i++) {
		if (arrival[i].number < found->kepts)
			arrival[kept++] = arrival[i];
		else
			found->place[arrival[i].number - found->kepts] = (int64_t)i;
	}
	m->place = found->place;
	m->order_check = ow_arrivals_check(arrival, kept);
	free(arrival);
	return 0;
}

/* The bits of the sampled times that NAMES asks for; the caller frees *ret_bytes. */
static int put_sample(struct ow_message_times *m, const struct ow_reconciled_part *part, uint8_t **ret_bytes)
{
	uint8_t *bytes = calloc(1, ow_low_bits_size(part->samples, m->bits) + 1);
	*ret_bytes = bytes;
	if (!bytes)
		return -ENOMEM;
	ow_low_bits_pack(part->sample_ns, part->samples, m->low, m->bits, bytes);
	m->sample = bytes;
	m->samples = part->samples;
	m->sample_check = ow_low_bits_check(part->sample_ns, part->samples, m->low);
	return 0;
}

/* The sample of packets that are not all the same; the caller frees *ret_bytes. */
static int put_synopsis(struct ow_message_times *m, const struct ow_reconciled_part *part, uint8_t **ret_bytes)
{
	size_t size = ow_synopsis_encoded_size(part->sample);
	uint8_t *bytes = malloc(size + 1);
	*ret_bytes = bytes;
	if (!bytes)
		return -ENOMEM;
	ow_synopsis_encode(part->sample, bytes);
	m->synopsis = bytes;
	m->synopsis_size = (uint32_t)size;
	return 0;
}

/* The part of the kept packets as it is in the message; the caller frees *ret_bucket and *ret_bytes. */
static int put_part(struct ow_message_times *m, const struct ow_reconciled_part *part,
                    struct ow_message_bucket **ret_bucket, uint8_t **ret_bytes)
{
	struct ow_message_bucket *bucket = malloc((part->buckets + (size_t)1) * sizeof *bucket);
	*ret_bucket = bucket;
	if (!bucket)
		return -ENOMEM;
	for (uint32_t i = 0; i < part->buckets; i++)
		bucket[i] = (struct ow_message_bucket){part->bucket[i].time, part->bucket[i].digest,
		                                       (uint32_t)part->bucket[i].packets};
	m->sums_check = ow_reconciled_check(part);
	m->kept = part->packets;
	m->digest = part->digest;
	m->bucket = bucket;
	m->buckets = part->buckets;
	return part->sample ? put_synopsis(m, part, ret_bytes) : put_sample(m, part, ret_bytes);
}

static int say_times(struct ow_exchange *x, const struct ow_slot *slot, const struct ow_message_names *names,
                     const struct lists *lists, struct found *found)
{
	struct ow_message m = {.type = OW_MESSAGE_TIMES, .lane = x->options.lane, .interval = slot->interval};
	struct ow_reconciled_part part = {0};
	struct ow_message_bucket *bucket = NULL;
	uint8_t *bytes = NULL;
	int r = 0;
	m.times.sums = names->sums;
	m.times.sample_shift = (uint8_t)slot->packets->sample_shift;
	m.times.kept = found->kepts;
	m.times.low = names->low;
	m.times.bits = names->bits;
	m.times.width = names->width;
	size_t unknown = lists->set.used > found->hits ? lists->set.used - found->hits : found->twice;
	if (unknown) {
		m.times.unknown = (uint32_t)unknown;
		return ow_exchange_say(x, &m);
	}
	m.times.time_ns = found->time_ns;
	m.times.times = (uint32_t)lists->wanteds;
	m.times.copy = found->copy;
	m.times.copies = found->copies;
	if (found->shared && lists->wanteds) {
		m.times.shared = found->shared;
		m.times.shared_size = (uint32_t)(lists->wanteds + 7) / 8;
	}
	if (names->sums != OW_MESSAGE_NO_SUMS) {
		struct ow_reconciled_plan plan = {names->sums == OW_MESSAGE_SUMS, names->buckets, names->sample,
		                                  names->differences};
		r = ow_reconciled_take(found->kept, found->kepts, x->options.seed, &plan, &part);
		if (r == 0)
			r = put_part(&m.times, &part, &bucket, &bytes);
		if (r == 0 && plan.complete && !plan.buckets)
			r = put_order(&m.times, lists, found, x->options.seed);
	}
	if (r == 0)
		r = ow_exchange_say(x, &m);
	ow_reconciled_part_done(&part);
	free(bucket);
	free(bytes);
	return r;
}

int ow_exchange_say_times(struct ow_exchange *x, const struct ow_slot *slot, const struct ow_message_names *names,
                          struct ow_shared_flows *shared, struct ow_receiver_scope *scope, struct ow_error *err)
{
	struct lists lists = {0};
	struct found found = {0};
	int r = read_lists(x, names, &lists, err);
	if (r == 0)
		r = part(&lists, slot->packets, &found);
	if (r == 0 && x->options.shared)
		r = find_shared(&lists, slot->packets, shared, &found);
	if (r == 0 && scope)
		note_only(&lists, slot->packets, &found, scope);
	if (r == 0)
		r = say_times(x, slot, names, &lists, &found);
	found_done(&found);
	lists_done(&lists);
	return r;
}
