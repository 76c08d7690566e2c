/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending point compares by RDA as published (rda-ton2018, section VIII): MinHash tells about how many packets
 * differ, the RDAs have 2 banks of twice as many cells, with ids that do not check themselves; what is decoded is
 * erased, for which the other point sends times; mean and standard deviation come from the repaired cells, by pairs.
 * Beyond the paper: copies of a packet have names of their own, late packets are settled, and where the decoding is not
 * complete the result says so.
 */
#include "base/clock.h"
#include "estimate/rda_estimate.h"
#include "exchange/exchange_private.h"
#include "reconcile/keyset.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ow_rda_estimate_options as_published = {.peel = {.published = true}, .published = true};

int ow_sender_rda_start(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_message m = {.type = OW_MESSAGE_ASK};
	m.ask = (struct ow_message_ask){.part = OW_MESSAGE_MINHASH, .cells = OW_MINHASH_SLOTS};
	return ow_sender_ask(x, slot, OW_STAGE_MINHASH, &m);
}

static int take_minhash(struct ow_exchange *x, struct ow_slot *slot, const struct ow_synopsis *theirs,
                        struct ow_error *err)
{
	struct ow_synopsis *mine = NULL;
	struct ow_value differences;
	int64_t begin = ow_clock_steady_ns();
	int r = ow_minhash_create(OW_MINHASH_SLOTS, x->options.seed, &mine);
	if (r < 0)
		return r;
	mine->ops->add(mine, slot->page->stamp, slot->page->count);
	r = ow_minhash_difference(mine, theirs, slot->page->count, slot->theirs.packets, &differences);
	ow_synopsis_free(mine);
	if (r < 0)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: not the MinHash that was asked for");
	slot->cost.decode_ns += ow_clock_steady_ns() - begin;
	struct ow_rda_params params;
	ow_rda_params_for(differences.status == OW_VALUE_NONE ? 0 : differences.value, 0, true, &params);
	struct ow_message m = {.type = OW_MESSAGE_ASK};
	m.ask = (struct ow_message_ask){
		.part = OW_MESSAGE_TABLE, .banks = (uint8_t)params.banks, .cells = params.cells};
	r = ow_rda_create(&params, x->options.seed, &slot->table);
	return r < 0 ? r : ow_sender_ask(x, slot, OW_STAGE_TABLE, &m);
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The packets of which the other point must send times: those that only it has, and copies that are in doubt. */
static int list_asked(struct ow_slot *slot, const struct ow_view *a)
{
	uint64_t *copies = NULL;
	size_t count = 0, unique = 0;
	int r = ow_rda_ambiguous(a, &slot->peel, &copies, &count);
	if (r < 0)
		return r;
	slot->asked = malloc((slot->peel.extras + count + 1) * sizeof *slot->asked);
	if (slot->asked) {
		for (size_t i = 0; i < slot->peel.extras; i++)
			slot->asked[i] = slot->peel.extra[i];
		for (size_t i = 0; i < count; i++)
			slot->asked[slot->peel.extras + i] = copies[i];
		slot->askeds = slot->peel.extras + count;
		if (slot->askeds)
			qsort(slot->asked, slot->askeds, sizeof *slot->asked, compare_ids);
		for (size_t i = 0; i < slot->askeds; i++) {
			if (!i || slot->asked[i] != slot->asked[i - 1])
				slot->asked[unique++] = slot->asked[i];
		}
		slot->askeds = unique;
	}
	free(copies);
	return slot->asked ? 0 : -ENOMEM;
}

static int compare(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times);

static int take_table(struct ow_exchange *x, struct ow_slot *slot)
{
	const struct ow_interval_packets *page = slot->page;
	int64_t begin = ow_clock_steady_ns();
	slot->table->ops->add(slot->table, page->stamp, page->count);
	int r = ow_rda_peel(slot->table, slot->other_table, &as_published.peel, &slot->peel);
	struct ow_view a = {slot->table, page->count, page->stamp, page->count};
	if (r == 0)
		r = list_asked(slot, &a);
	slot->cost.decode_ns += ow_clock_steady_ns() - begin;
	if (r < 0)
		return r;
	if (slot->askeds > OW_MESSAGE_NAMED_MAX)
		return -E2BIG;
	if (!slot->askeds)
		return compare(x, slot, &(struct ow_message_times){0});
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	m.names = (struct ow_message_names){.sums = OW_MESSAGE_NO_SUMS,
	                                    .wide = true,
	                                    .wanted = (const uint8_t *)slot->asked,
	                                    .wanted_size = (uint32_t)(8 * slot->askeds)};
	return ow_sender_ask(x, slot, OW_STAGE_NAMED, &m);
}

int ow_sender_rda_synopsis(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_synopsis *m,
                           struct ow_error *err)
{
	struct ow_synopsis *theirs = NULL;
	int r = ow_synopsis_decode(m->synopsis, m->synopsis_size, x->options.seed, &theirs, err);
	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	if (m->part == OW_MESSAGE_MINHASH) {
		r = take_minhash(x, slot, theirs, err);
		ow_synopsis_free(theirs);
		return r;
	}
	if (theirs->ops != &ow_rda_ops || ow_synopsis_comparable(slot->table, theirs, NULL) < 0) {
		ow_synopsis_free(theirs);
		return ow_error_set(err, EPROTO, "message SYNOPSIS: not the RDA that was asked for");
	}
	slot->other_table = theirs;
	return take_table(x, slot);
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

/* Packets by base id, as settle wants them. */
static uint64_t base_of(const struct ow_interval_packets *page, uint64_t id)
{
	const struct ow_copy *copy = page->copies ? ow_interval_packets_copy(page, id) : NULL;
	return copy ? copy->base_id : id;
}

static int list_only_a(struct ow_slot *slot)
{
	struct ow_outcome *o = &slot->outcome;
	struct ow_keyset lost = {0};
	int r = 0;
	o->only_a = malloc((slot->peel.losts + 1) * sizeof *o->only_a);
	if (!o->only_a)
		return -ENOMEM;
	for (size_t i = 0; i < slot->peel.losts && r == 0; i++)
		r = ow_keyset_add(&lost, slot->peel.lost[i]);
	o->only_as = 0;
	for (size_t i = 0; i < slot->page->count && r == 0; i++) {
		const struct ow_sighting *stamp = slot->page->stamp + i;
		if (!ow_keyset_has(&lost, stamp->id))
			continue;
		if (o->only_as == slot->peel.losts)
			r = -EBADMSG;
		else
			o->only_a[o->only_as++] = (struct ow_sighting){base_of(slot->page, stamp->id), stamp->time_ns};
	}
	ow_keyset_done(&lost);
	/* Ids that were never sent, or twice the same. */
	return r == 0 && o->only_as != slot->peel.losts ? -EBADMSG : r;
}

static int by_time(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int list_only_b(struct ow_slot *slot, const struct ow_message_times *times)
{
	struct ow_outcome *o = &slot->outcome;
	struct ow_keyset extra = {0};
	uint32_t copy = 0;
	int r = 0;
	o->only_b = malloc((slot->askeds + 1) * sizeof *o->only_b);
	if (!o->only_b)
		return -ENOMEM;
	for (size_t i = 0; i < slot->peel.extras && r == 0; i++)
		r = ow_keyset_add(&extra, slot->peel.extra[i]);
	o->only_bs = 0;
	for (uint32_t i = 0; i < times->times && r == 0; i++) {
		bool copied = copy < times->copies && times->copy[copy].index == i;
		uint64_t base = copied ? times->copy[copy].base : slot->asked[i];
		copy += copied;
		if (ow_keyset_has(&extra, slot->asked[i]))
			o->only_b[o->only_bs++] = (struct ow_sighting){base, times->time_ns[i]};
	}
	ow_keyset_done(&extra);
	if (r == 0 && o->only_bs)
		qsort(o->only_b, o->only_bs, sizeof *o->only_b, by_time);
	return r == 0 && o->only_bs != slot->peel.extras ? -EBADMSG : r;
}

/* Further copies at the other point of packets that were sent once and arrived. */
static int count_duplicated(const struct ow_slot *slot, const struct ow_message_times *times, uint64_t *ret_duplicated)
{
	struct ow_keyset base = {0}, sent = {0};
	int r = 0;
	for (uint32_t i = 0; i < times->copies && r == 0; i++)
		r = ow_keyset_add(&base, times->copy[i].base);
	for (size_t i = 0; base.used && i < slot->page->count && r == 0; i++) {
		if (ow_keyset_has(&base, slot->page->stamp[i].id))
			r = ow_keyset_add(&sent, slot->page->stamp[i].id);
	}
	uint64_t duplicated = 0;
	for (uint32_t i = 0; i < times->copies; i++)
		duplicated += ow_keyset_has(&sent, times->copy[i].base);
	ow_keyset_done(&base);
	ow_keyset_done(&sent);
	*ret_duplicated = duplicated;
	return r;
}

static int estimate(struct ow_slot *slot, const struct ow_message_times *times, struct ow_estimate *ret_estimate)
{
	const struct ow_interval_packets *page = slot->page;
	struct ow_sighting *cache = malloc((slot->askeds + 1) * sizeof *cache);
	if (!cache)
		return -ENOMEM;
	for (uint32_t i = 0; i < times->times; i++)
		cache[i] = (struct ow_sighting){slot->asked[i], times->time_ns[i]};
	struct ow_view a = {slot->table, page->count, page->stamp, page->count};
	struct ow_view b = {slot->other_table, slot->theirs.packets, cache, times->times};
	int r = ow_rda_estimate_with(&a, &b, &as_published, ret_estimate);
	free(cache);
	return r;
}

static int finish(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                  const struct ow_estimate *e)
{
	struct ow_interval_result *result = &slot->outcome.result;
	uint64_t duplicated = 0;
	int r = list_only_a(slot);
	if (r == 0)
		r = list_only_b(slot, times);
	if (r == 0)
		r = count_duplicated(slot, times, &duplicated);
	if (r < 0)
		return r;
	ow_sender_result(x, slot, result);
	ow_sender_numbers(e, result);
	result->status = OW_RESULT_MEASURED;
	result->matched = result->sent - slot->outcome.only_as;
	result->ambiguous = result->matched > e->useful ? result->matched - e->useful : 0;
	result->duplicated = duplicated;
	slot->outcome.differences = slot->outcome.only_as + slot->outcome.only_bs;
	slot->stage = OW_STAGE_READY;
	return 0;
}

static int compare(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times)
{
	const struct ow_rda_params *params = &ow_rda_of(slot->table)->params;
	const struct ow_rda_peel *peel = &slot->peel;
	int64_t begin = ow_clock_steady_ns();
	struct ow_estimate e;
	char cause[OW_RESULT_CAUSE];
	int r = estimate(slot, times, &e);
	if (r < 0)
		return r;
	slot->cost.erase_ns += e.erase_ns;
	slot->cost.compute_ns += ow_clock_steady_ns() - begin - e.erase_ns;
	bool agree = slot->page->count - slot->theirs.packets == (uint64_t)peel->losts - peel->extras;
	r = peel->complete && agree && times->times == slot->askeds ? finish(x, slot, times, &e) : -EBADMSG;
	if (r == -EBADMSG) {
		snprintf(cause, sizeof cause,
		         "%zu differences decoded, more remain: loss is an estimate, late packets included",
		         peel->losts + peel->extras);
		ow_sender_estimated(x, slot, &e, cause);
		r = 0;
	}
	if (r == 0)
		snprintf(slot->outcome.result.synopsis, sizeof slot->outcome.result.synopsis,
		         "rda %u x %u as published", params->banks, params->cells);
	return r;
}

int ow_sender_rda_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                        struct ow_error *err)
{
	/* Without the times of some that were decoded by mistake: none are erased. */
	if (times->unknown)
		return compare(x, slot, &(struct ow_message_times){0});
	if (times->sums != OW_MESSAGE_NO_SUMS || times->times != slot->askeds)
		return ow_error_set(err, EPROTO, "message TIMES: %u times instead of %zu", times->times, slot->askeds);
	for (uint32_t i = 0; i < times->times; i++) {
		if (times->time_ns[i] < 0 || times->time_ns[i] >= x->options.length_ns)
			return ow_error_set(err, EPROTO, "message TIMES: times outside of the interval");
	}
	return compare(x, slot, times);
}
