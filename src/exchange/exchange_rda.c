/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparison by RDA as published (rda-ton2018, section VIII): MinHash estimates how many packets differ; the RDAs have
 * 2 banks of twice as many cells, with ids without a check; decoded packets are erased, for which the other point sends
 * times; mean and standard deviation come from the repaired cells, by pairs. Beyond the paper: copies of a packet have
 * their own names, late packets are distinguished from lost ones, and if decoding is not complete, the result says so.
 */
#include "base/sort.h"
#include "estimate/rda_estimate.h"
#include "exchange/method.h"
#include "reconcile/keyset.h"
#include "reconcile/rda_peel.h"
#include "result/cause.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct ow_rda_estimate_options as_published = {.peel = {.published = true}, .published = true};

struct comparison {
	struct ow_comparison c;
	struct ow_rda_peel peel;
	struct ow_synopsis *table, *other_table; /* this point's, the other's */
	uint64_t *asked;                         /* ids whose times were requested */
	size_t askeds;
};

/* -- the receiver ------------------------------------------------------------------------------------------------- */

static int answer(const struct ow_exchange *x, unsigned banks, const struct ow_message_ask *ask,
                  struct ow_synopsis **ret_synopsis)
{
	struct ow_rda_params params = {ask->banks, ask->cells, false};
	(void)banks;
	if (ask->part == OW_MESSAGE_TABLE)
		return ow_rda_create(&params, x->options.seed, ret_synopsis);
	if (ask->part == OW_MESSAGE_MINHASH && ask->cells <= OW_MINHASH_SLOTS)
		return ow_minhash_create(ask->cells, x->options.seed, ret_synopsis);
	return -EOPNOTSUPP;
}

/* -- which packets ------------------------------------------------------------------------------------------------ */

static int take_push(struct ow_comparison *c, const struct ow_message_synopsis *m, struct ow_error *err)
{
	(void)c;
	return m->synopsis_size ? ow_error_set(err, EPROTO, "message SYNOPSIS: a synopsis that was not asked for") : 0;
}

static int start(struct ow_comparison *c)
{
	return ow_comparison_ask(c, OW_STAGE_SYNOPSIS,
	                         &(struct ow_message_ask){.part = OW_MESSAGE_MINHASH, .cells = OW_MINHASH_SLOTS});
}

static int take_minhash(struct comparison *rda, const struct ow_synopsis *theirs, struct ow_error *err)
{
	struct ow_synopsis *mine = NULL;
	struct ow_value differences;
	int64_t begin = ow_exchange_steady_ns(rda->c.x);
	int r = ow_minhash_create(OW_MINHASH_SLOTS, rda->c.x->options.seed, &mine);
	if (r < 0)
		return r;
	mine->ops->add(mine, rda->c.slot.packets->sighting, rda->c.slot.packets->count);
	r = ow_minhash_difference(mine, theirs, rda->c.slot.packets->count, rda->c.theirs.packets, &differences);
	ow_synopsis_free(mine);
	if (r < 0)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: not the MinHash that was asked for");
	rda->c.cost.decode_ns += ow_exchange_steady_ns(rda->c.x) - begin;
	struct ow_rda_params params;
	ow_rda_params_for(differences.status == OW_VALUE_NONE ? 0 : differences.value, 0, true, &params);
	struct ow_message_ask ask = {.part = OW_MESSAGE_TABLE, .banks = (uint8_t)params.banks, .cells = params.cells};
	r = ow_rda_create(&params, rda->c.x->options.seed, &rda->table);
	return r < 0 ? r : ow_comparison_ask(&rda->c, OW_STAGE_SYNOPSIS, &ask);
}

/* The packets whose times the other point must send: those that only it has, and uncertain copies. */
static int list_asked(struct comparison *rda, const struct ow_view *a)
{
	uint64_t *copies = NULL;
	size_t count = 0, unique = 0;
	int r = ow_rda_ambiguous(a, &rda->peel, &copies, &count);
	if (r < 0)
		return r;
	rda->asked = malloc((rda->peel.extras + count + 1) * sizeof *rda->asked);
	if (rda->asked) {
		for (size_t i = 0; i < rda->peel.extras; i++)
			rda->asked[i] = rda->peel.extra[i];
		for (size_t i = 0; i < count; i++)
			rda->asked[rda->peel.extras + i] = copies[i];
		rda->askeds = rda->peel.extras + count;
		ow_sort_ids(rda->asked, rda->askeds);
		for (size_t i = 0; i < rda->askeds; i++) {
			if (!i || rda->asked[i] != rda->asked[i - 1])
				rda->asked[unique++] = rda->asked[i];
		}
		rda->askeds = unique;
	}
	free(copies);
	return rda->asked ? 0 : -ENOMEM;
}

static int compare(struct comparison *rda, const struct ow_message_times *times);

static int take_table(struct comparison *rda)
{
	const struct ow_interval_packets *packets = rda->c.slot.packets;
	int64_t begin = ow_exchange_steady_ns(rda->c.x);
	rda->table->ops->add(rda->table, packets->sighting, packets->count);
	int r = ow_rda_peel(rda->table, rda->other_table, &as_published.peel, &rda->peel);
	struct ow_view a = {rda->table, packets->count, packets->sighting, packets->count};
	if (r == 0)
		r = list_asked(rda, &a);
	rda->c.cost.decode_ns += ow_exchange_steady_ns(rda->c.x) - begin;
	if (r < 0)
		return r;
	if (rda->askeds > OW_MESSAGE_NAMED_MAX)
		return -E2BIG;
	if (!rda->askeds)
		return compare(rda, &(struct ow_message_times){0});
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	m.names = (struct ow_message_names){.sums = OW_MESSAGE_NO_SUMS,
	                                    .wide = true,
	                                    .wanted = (const uint8_t *)rda->asked,
	                                    .wanted_size = (uint32_t)(8 * rda->askeds)};
	return ow_comparison_request(&rda->c, OW_STAGE_NAMED, &m);
}

static int take_synopsis(struct ow_comparison *c, const struct ow_message_synopsis *m, struct ow_error *err)
{
	struct comparison *rda = (struct comparison *)c;
	struct ow_synopsis *theirs = NULL;
	int r = ow_synopsis_decode(m->synopsis, m->synopsis_size, rda->c.x->options.seed, &theirs, err);
	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	if (m->part == OW_MESSAGE_MINHASH) {
		r = take_minhash(rda, theirs, err);
		ow_synopsis_free(theirs);
		return r;
	}
	if (theirs->ops != &ow_rda_ops || ow_synopsis_comparable(rda->table, theirs, NULL) < 0) {
		ow_synopsis_free(theirs);
		return ow_error_set(err, EPROTO, "message SYNOPSIS: not the RDA that was asked for");
	}
	rda->other_table = theirs;
	return take_table(rda);
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static int list_only_a(struct comparison *rda)
{
	struct ow_outcome *o = &rda->c.outcome;
	struct ow_keyset lost = {0};
	int r = 0;
	o->only_a = malloc((rda->peel.losts + 1) * sizeof *o->only_a);
	if (!o->only_a)
		return -ENOMEM;
	for (size_t i = 0; i < rda->peel.losts && r == 0; i++)
		r = ow_keyset_add(&lost, rda->peel.lost[i]);
	o->only_as = 0;
	for (size_t i = 0; i < rda->c.slot.packets->count && r == 0; i++) {
		const struct ow_sighting *sighting = rda->c.slot.packets->sighting + i;
		if (!ow_keyset_has(&lost, sighting->id))
			continue;
		if (o->only_as == rda->peel.losts)
			r = -EBADMSG;
		else
			o->only_a[o->only_as++] = (struct ow_sighting){ow_comparison_base(&rda->c, sighting->id),
			                                               sighting->time_ns, sighting->flow};
	}
	ow_keyset_done(&lost);
	/* Ids that were never sent, or that occur twice. */
	return r == 0 && o->only_as != rda->peel.losts ? -EBADMSG : r;
}

static int list_only_b(struct comparison *rda, const struct ow_message_times *times)
{
	struct ow_outcome *o = &rda->c.outcome;
	struct ow_keyset extra = {0};
	uint32_t copy = 0;
	int r = 0;
	o->only_b = malloc((rda->askeds + 1) * sizeof *o->only_b);
	if (!o->only_b)
		return -ENOMEM;
	for (size_t i = 0; i < rda->peel.extras && r == 0; i++)
		r = ow_keyset_add(&extra, rda->peel.extra[i]);
	o->only_bs = 0;
	for (uint32_t i = 0; i < times->times && r == 0; i++) {
		bool copied = copy < times->copies && times->copy[copy].index == i;
		uint64_t base = copied ? times->copy[copy].base : rda->asked[i];
		copy += copied;
		if (ow_keyset_has(&extra, rda->asked[i]))
			o->only_b[o->only_bs++] =
				(struct ow_sighting){base, times->time_ns[i], ow_times_shared(times, i)};
	}
	ow_keyset_done(&extra);
	return r == 0 && o->only_bs != rda->peel.extras ? -EBADMSG : r;
}

/* Further copies at the other point of packets that were sent once and arrived. */
static int count_duplicated(const struct comparison *rda, const struct ow_message_times *times,
                            uint64_t *ret_duplicated)
{
	struct ow_keyset base = {0}, sent = {0};
	int r = 0;
	for (uint32_t i = 0; i < times->copies && r == 0; i++)
		r = ow_keyset_add(&base, times->copy[i].base);
	for (size_t i = 0; base.used && i < rda->c.slot.packets->count && r == 0; i++) {
		if (ow_keyset_has(&base, rda->c.slot.packets->sighting[i].id))
			r = ow_keyset_add(&sent, rda->c.slot.packets->sighting[i].id);
	}
	uint64_t duplicated = 0;
	for (uint32_t i = 0; i < times->copies; i++)
		duplicated += ow_keyset_has(&sent, times->copy[i].base);
	ow_keyset_done(&base);
	ow_keyset_done(&sent);
	*ret_duplicated = duplicated;
	return r;
}

static int estimate(struct comparison *rda, const struct ow_message_times *times, struct ow_estimate *ret_estimate)
{
	const struct ow_interval_packets *packets = rda->c.slot.packets;
	struct ow_sighting *cache = malloc((rda->askeds + 1) * sizeof *cache);
	if (!cache)
		return -ENOMEM;
	for (uint32_t i = 0; i < times->times; i++)
		cache[i] = (struct ow_sighting){rda->asked[i], times->time_ns[i]};
	struct ow_view a = {rda->table, packets->count, packets->sighting, packets->count};
	struct ow_view b = {rda->other_table, rda->c.theirs.packets, cache, times->times};
	int r = ow_rda_estimate_with(&a, &b, &as_published, ret_estimate);
	free(cache);
	return r;
}

static int finish(struct comparison *rda, const struct ow_message_times *times, const struct ow_estimate *e)
{
	struct ow_interval_result *result = &rda->c.outcome.result;
	uint64_t duplicated = 0;
	int r = list_only_a(rda);
	if (r == 0)
		r = list_only_b(rda, times);
	if (r == 0)
		r = count_duplicated(rda, times, &duplicated);
	if (r < 0)
		return r;
	ow_comparison_measured(&rda->c, e);
	result->ambiguous = result->matched > e->useful ? result->matched - e->useful : 0;
	result->duplicated = duplicated;
	return 0;
}

static int compare(struct comparison *rda, const struct ow_message_times *times)
{
	const struct ow_rda_params *params = &ow_rda_of(rda->table)->params;
	const struct ow_rda_peel *peel = &rda->peel;
	int64_t begin = ow_exchange_steady_ns(rda->c.x);
	struct ow_estimate e;
	char cause[OW_RESULT_CAUSE];
	int r = estimate(rda, times, &e);
	if (r < 0)
		return r;
	rda->c.cost.erase_ns += e.erase_ns;
	rda->c.cost.compute_ns += ow_exchange_steady_ns(rda->c.x) - begin - e.erase_ns;
	bool agree = rda->c.slot.packets->count - rda->c.theirs.packets == (uint64_t)peel->losts - peel->extras;
	r = peel->complete && agree && times->times == rda->askeds ? finish(rda, times, &e) : -EBADMSG;
	if (r == -EBADMSG) {
		snprintf(cause, sizeof cause, ow_cause_differences_remain, peel->losts + peel->extras);
		ow_comparison_estimated(&rda->c, &e, cause);
		r = 0;
	}
	if (r == 0)
		snprintf(rda->c.outcome.result.synopsis, sizeof rda->c.outcome.result.synopsis,
		         "rda %u x %u as published", params->banks, params->cells);
	return r;
}

static int take_times(struct ow_comparison *c, const struct ow_message_times *times, struct ow_error *err)
{
	struct comparison *rda = (struct comparison *)c;
	/* The times of some packets that were decoded by mistake are missing: none are erased. */
	if (times->unknown)
		return compare(rda, &(struct ow_message_times){0});
	if (times->sums != OW_MESSAGE_NO_SUMS || times->times != rda->askeds)
		return ow_error_set(err, EPROTO, "message TIMES: %u times instead of %zu", times->times, rda->askeds);
	if (!ow_comparison_within(c, times->time_ns, times->times, 1))
		return ow_error_set(err, EPROTO, "message TIMES: times outside of the interval");
	return compare(rda, times);
}

static void done(struct ow_comparison *c)
{
	struct comparison *rda = (struct comparison *)c;
	ow_rda_peel_done(&rda->peel);
	ow_synopsis_free(rda->table);
	ow_synopsis_free(rda->other_table);
	free(rda->asked);
}

const struct ow_method_ops ow_rda_method = {
	.size = sizeof(struct comparison),
	.answer = answer,
	.take_push = take_push,
	.start = start,
	.take_synopsis = take_synopsis,
	.take_times = take_times,
	.name = ow_comparison_base,
	.done = done,
};
