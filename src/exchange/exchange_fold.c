/* SPDX-License-Identifier: Apache-2.0 */
/* The sending point compares by fold: the steps of estimate/fold_steps.h, as the messages come. */
#include "base/clock.h"
#include "exchange/exchange_private.h"
#include "reconcile/key_list.h"
#include "synopsis/bottomk.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- which packets ------------------------------------------------------------------------------------------------ */

int ow_sender_fold_check(const struct ow_synopsis *synopsis, uint64_t packets, struct ow_error *err)
{
	if (synopsis->ops != &ow_fold_ops)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: %s instead of a fold", synopsis->ops->name);
	if (ow_fold_of(synopsis)->params.order)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: a second fold that was not asked for");
	/* Peeling counts in size_t and keys have 48 bits. */
	if (packets > OW_MESSAGE_PACKETS_MAX)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: too many packets");
	return 0;
}

/* Is a packet identical to one that waits for its arrival since an earlier interval? */
struct doubts {
	const struct ow_exchange *x;
	const struct ow_slot *slot;
	const struct ow_fold_secret *secret;
	struct ow_keyset earlier; /* of intervals that are compared but not settled yet */
};

/* The name that settle and the other point know a packet by: the key of the first of its copies. */
static uint64_t name_of(const struct ow_fold_secret *secret, const struct ow_interval_packets *page, uint64_t id)
{
	const struct ow_copy *copy = page->copies ? ow_interval_packets_copy(page, id) : NULL;
	return ow_fold_key(secret, copy ? copy->base_id : id);
}

uint64_t ow_sender_name(const struct ow_exchange *x, const struct ow_slot *slot, uint64_t id)
{
	const struct ow_copy *copy = slot->page->copies ? ow_interval_packets_copy(slot->page, id) : NULL;
	uint64_t base = copy ? copy->base_id : id;
	return x->options.method == OW_METHOD_FOLD ? ow_fold_key(&ow_fold_of(slot->steps.first)->secret, base) : base;
}

static bool in_doubt(void *arg, uint64_t id)
{
	const struct doubts *d = arg;
	uint64_t name = name_of(d->secret, d->slot->page, id);
	return ow_keyset_has(&d->earlier, name) || ow_sender_waits(d->x, name);
}

static int note_earlier(struct doubts *d)
{
	int r = 0;
	for (size_t i = 0; i < d->x->slots && d->x->slot[i] != d->slot && r == 0; i++) {
		const struct ow_slot *slot = d->x->slot[i];
		for (size_t k = 0; slot->page && slot->stage <= OW_STAGE_READY && k < slot->steps.onlys && r == 0; k++)
			r = ow_keyset_add(&d->earlier, name_of(d->secret, slot->page, slot->steps.only[k].id));
	}
	return r;
}

static int erase(struct ow_exchange *x, struct ow_slot *slot)
{
	int64_t begin = ow_clock_steady_ns();
	struct doubts doubts = {.x = x, .slot = slot, .secret = &ow_fold_of(slot->steps.first)->secret};
	int r = note_earlier(&doubts);
	if (r == 0 && (doubts.earlier.used || ow_interval_results_waiting(x->settle))) {
		slot->steps.doubt = in_doubt;
		slot->steps.arg = &doubts;
	}
	if (r == 0)
		r = ow_fold_steps_erase(&slot->steps);
	slot->steps.doubt = NULL;
	slot->steps.arg = NULL;
	ow_keyset_done(&doubts.earlier);
	slot->cost.erase_ns += ow_clock_steady_ns() - begin;
	return r;
}

/* -- asking ------------------------------------------------------------------------------------------------------- */

/* A list of keys as bytes; *ret_bytes is to be freed. */
static int encode_names(const uint64_t *keys, size_t count, uint8_t **ret_bytes, uint32_t *ret_size)
{
	*ret_bytes = NULL;
	*ret_size = 0;
	if (!count)
		return 0;
	size_t size = ow_key_list_size(keys, count);
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	ow_key_list_encode(keys, count, bytes);
	*ret_bytes = bytes;
	*ret_size = (uint32_t)size;
	return 0;
}

static int say_names(struct ow_exchange *x, struct ow_slot *slot)
{
	const struct ow_fold_steps *s = &slot->steps;
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	uint8_t *wanted = NULL, *others = NULL;
	m.names = (struct ow_message_names){.sums = s->lefts ? OW_MESSAGE_SUMS : OW_MESSAGE_NO_SUMS};
	if (s->lefts) {
		m.names.buckets = slot->plan.buckets;
		m.names.sample = slot->plan.sample;
	}
	int r = encode_names(s->wanted, s->wanteds, &wanted, &m.names.wanted_size);
	if (r == 0)
		r = encode_names(s->others, s->otherss, &others, &m.names.others_size);
	m.names.wanted = wanted;
	m.names.others = others;
	if (r == 0)
		r = ow_sender_ask(x, slot, OW_STAGE_NAMED, &m);
	free(wanted);
	free(others);
	return r;
}

/* The packets cannot be told apart: clean buckets of all of them. */
static int say_clean(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_fold_steps *s = &slot->steps;
	struct ow_estimate losses;
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	ow_fold_steps_losses(s, false, &losses);
	double differences =
		isnan(s->differences) ? (double)ow_fold_of(s->first)->params.cells : fmax(1, s->differences);
	slot->plan = (struct ow_reconciled_plan){false, x->reconciled.buckets, x->reconciled.sample,
	                                         fmin(differences, (double)OW_MESSAGE_PACKETS_MAX)};
	m.names = (struct ow_message_names){.sums = OW_MESSAGE_CLEAN,
	                                    .buckets = slot->plan.buckets,
	                                    .sample = slot->plan.sample,
	                                    .differences = slot->plan.differences};
	return ow_sender_ask(x, slot, OW_STAGE_CLEAN, &m);
}

static int compare_complete(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times);

/* All differences are known, or they will not be. */
int ow_sender_fold_name(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_fold_steps *s = &slot->steps;
	if (!ow_fold_steps_complete(s) || s->diff.doubled)
		return say_clean(x, slot);
	int r = erase(x, slot);
	if (r < 0)
		return r;
	/* Keys of packets that this point does not have, or has twice. */
	if (s->onlys != s->diff.as || s->wanteds != s->diff.bs || s->wanteds > OW_KEY_LIST_MAX ||
	    s->otherss > OW_KEY_LIST_MAX)
		return say_clean(x, slot);
	ow_reconciled_plan(s->lefts, &x->reconciled, &slot->plan);
	/* Nothing in common, nothing to be asked for. */
	if (!s->lefts && !s->wanteds && !s->otherss)
		return compare_complete(x, slot, &(struct ow_message_times){0});
	return say_names(x, slot);
}

int ow_sender_fold_start(struct ow_exchange *x, struct ow_slot *slot)
{
	static const struct ow_sighting nothing;
	struct ow_fold_steps *s = &slot->steps;
	int64_t begin = ow_clock_steady_ns();
	ow_fold_steps_done(s);
	/* An empty page is no missing one. */
	s->cache = slot->page->stamp ? slot->page->stamp : &nothing;
	s->cached = s->packets = slot->page->count;
	int r = ow_fold_steps_push(s, slot->synopsis, ow_fold_of(slot->synopsis)->ams, slot->theirs.packets);
	slot->cost.decode_ns += ow_clock_steady_ns() - begin;
	if (r < 0)
		return r;
	if (s->diff.complete) {
		slot->stage = OW_STAGE_PEELED;
		return 0;
	}
	struct ow_message m = {.type = OW_MESSAGE_ASK};
	unsigned order;
	uint32_t cells;
	r = ow_fold_steps_more(s, &cells, &order);
	if (r < 0)
		return r;
	m.ask = (struct ow_message_ask){.part = OW_MESSAGE_SECOND, .order = (uint8_t)order, .cells = cells};
	return ow_sender_ask(x, slot, OW_STAGE_SECOND, &m);
}

int ow_sender_fold_synopsis(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_synopsis *m,
                            struct ow_error *err)
{
	struct ow_synopsis *second = NULL;
	struct ow_message asked;
	int r = ow_synopsis_decode(m->synopsis, m->synopsis_size, x->options.seed, &second, err);
	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	/* What was asked for is in the request. */
	r = ow_message_decode(slot->request, slot->request_size, &asked, err);
	const struct ow_fold_params *p = second->ops == &ow_fold_ops ? &ow_fold_of(second)->params : NULL;
	if (r == 0 && (!p || p->banks != ow_fold_of(slot->steps.first)->params.banks || p->cells != asked.ask.cells ||
	               p->order != asked.ask.order))
		r = ow_error_set(err, EPROTO, "message SYNOPSIS: not the second fold that was asked for");
	if (r == 0) {
		int64_t begin = ow_clock_steady_ns();
		r = ow_fold_steps_second(&slot->steps, second);
		slot->cost.decode_ns += ow_clock_steady_ns() - begin;
		if (r == 0)
			slot->stage = OW_STAGE_PEELED;
	}
	ow_synopsis_free(second);
	return r;
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

/* What a packet of the other point is called: its base key comes along if it is a copy. */
static int by_time(const void *a, const void *b)
{
	const struct ow_sighting *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

/* The packets at one point only, for settling. */
static int list_differences(struct ow_slot *slot, const struct ow_message_times *times)
{
	const struct ow_fold_steps *s = &slot->steps;
	const struct ow_fold_secret *secret = &ow_fold_of(s->first)->secret;
	struct ow_outcome *o = &slot->outcome;
	o->only_a = malloc((s->onlys + 1) * sizeof *o->only_a);
	o->only_b = malloc((s->wanteds + 1) * sizeof *o->only_b);
	if (!o->only_a || !o->only_b)
		return -ENOMEM;
	for (size_t i = 0; i < s->onlys; i++)
		o->only_a[i] = (struct ow_sighting){name_of(secret, slot->page, s->only[i].id), s->only[i].time_ns};
	for (size_t i = 0; i < s->wanteds; i++)
		o->only_b[i] = (struct ow_sighting){s->wanted[i], times->time_ns[i]};
	for (uint32_t i = 0; i < times->copies; i++)
		o->only_b[times->copy[i].index].id = times->copy[i].base;
	qsort(o->only_b, s->wanteds, sizeof *o->only_b, by_time);
	o->only_as = s->onlys;
	o->only_bs = s->wanteds;
	o->differences = s->onlys + s->wanteds;
	return 0;
}

/* The other point's part as it came. Only sums of times came if the plan is complete. */
static int part_of(const struct ow_message_times *times, struct ow_reconciled_part *ret_part)
{
	struct ow_reconciled_part part = {.packets = times->kept, .digest = times->digest};
	part.bucket = malloc((times->buckets + (size_t)1) * sizeof *part.bucket);
	part.sample_ns = malloc((times->samples + (size_t)1) * sizeof *part.sample_ns);
	if (!part.bucket || !part.sample_ns) {
		ow_reconciled_part_done(&part);
		return -ENOMEM;
	}
	part.buckets = times->buckets;
	part.samples = times->samples;
	for (uint32_t i = 0; i < times->buckets; i++)
		part.bucket[i] = (struct ow_reconciled_bucket){times->bucket[i].time, times->bucket[i].digest,
		                                               times->bucket[i].packets};
	if (times->samples)
		memcpy(part.sample_ns, times->sample_ns, times->samples * sizeof *part.sample_ns);
	*ret_part = part;
	return 0;
}

static void describe(const struct ow_slot *slot, char text[80])
{
	const struct ow_fold_params *first = &ow_fold_of(slot->steps.first)->params;
	int used = snprintf(text, 80, "fold %u x %u", first->banks, first->cells);
	if (slot->steps.second)
		snprintf(text + used, 80 - (size_t)used, " + %u x %u", first->banks,
		         ow_fold_of(slot->steps.second)->params.cells);
}

/* -EBADMSG: not the same packets after all. */
static int compute(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                   struct ow_estimate *estimate)
{
	const struct ow_fold_steps *s = &slot->steps;
	struct ow_reconciled_part mine = {0}, theirs = {0};
	ow_estimate_none(estimate, s->packets && s->received ? OW_REASON_NO_COMMON_PACKET : OW_REASON_A_POINT_SAW_NONE);
	if (!s->lefts)
		return times->kept ? -EBADMSG : 0;
	int r = ow_reconciled_take(s->left, s->lefts, x->options.seed, &slot->plan, &mine);
	if (r == 0)
		r = part_of(times, &theirs);
	if (r == 0)
		r = ow_reconciled_compare(&slot->plan, &mine, &theirs, s->lefts + s->ambiguous, estimate,
		                          &slot->outcome.delay);
	ow_reconciled_part_done(&mine);
	ow_reconciled_part_done(&theirs);
	return r;
}

static int compare_complete(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times)
{
	const struct ow_fold_steps *s = &slot->steps;
	int64_t begin = ow_clock_steady_ns();
	struct ow_estimate estimate;
	int r = compute(x, slot, times, &estimate);
	if (r == -EBADMSG)
		return say_clean(x, slot);
	if (r == 0)
		r = list_differences(slot, times);
	if (r < 0)
		return r;
	slot->cost.compute_ns += ow_clock_steady_ns() - begin;
	struct ow_interval_result *result = &slot->outcome.result;
	ow_sender_result(x, slot, result);
	ow_sender_numbers(&estimate, result);
	result->status = OW_RESULT_MEASURED;
	result->matched = result->sent - s->onlys;
	result->ambiguous = s->ambiguous;
	result->duplicated = s->duplicated;
	result->exact = !slot->plan.buckets && !s->ambiguous;
	describe(slot, result->synopsis);
	slot->stage = OW_STAGE_READY;
	return 0;
}

static int compare_clean(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                         struct ow_synopsis *sample)
{
	struct ow_fold_steps *s = &slot->steps;
	int64_t begin = ow_clock_steady_ns();
	struct ow_reconciled_part mine = {0}, theirs = {0};
	struct ow_estimate estimate;
	ow_estimate_none(&estimate, OW_REASON_NO_COMMON_PACKET);
	ow_fold_steps_losses(s, false, &estimate);
	int r = ow_reconciled_take(s->cache, s->cached, x->options.seed, &slot->plan, &mine);
	if (r == 0)
		r = part_of(times, &theirs);
	if (r == 0) {
		theirs.sample = sample;
		r = ow_reconciled_compare(&slot->plan, &mine, &theirs, 0, &estimate, NULL);
		theirs.sample = NULL;
	}
	ow_reconciled_part_done(&mine);
	ow_reconciled_part_done(&theirs);
	if (r < 0)
		return r == -EBADMSG ? -EPROTO : r;
	slot->cost.compute_ns += ow_clock_steady_ns() - begin;
	char cause[OW_RESULT_CAUSE];
	if (isnan(s->differences))
		snprintf(cause, sizeof cause, "the points differ by more packets than can be told apart");
	else
		snprintf(cause, sizeof cause,
		         "the points differ by about %.0f packets that cannot be told apart: loss is an estimate, late "
		         "packets included",
		         s->differences);
	ow_sender_estimated(x, slot, &estimate, cause);
	describe(slot, slot->outcome.result.synopsis);
	return 0;
}

static int clean_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                       struct ow_error *err)
{
	struct ow_synopsis *sample = NULL;
	if (times->sums != OW_MESSAGE_CLEAN)
		return 0; /* the answer to a request before */
	if (times->kept != slot->theirs.packets || times->buckets != slot->plan.buckets || times->times ||
	    times->unknown)
		return ow_error_set(err, EPROTO, "message TIMES: not the buckets that were asked for");
	int r = ow_synopsis_decode(times->synopsis, times->synopsis_size, x->options.seed, &sample, err);
	if (r == 0 && sample->ops != &ow_bottomk_ops)
		r = ow_error_set(err, EPROTO, "message TIMES: %s instead of a sample", sample->ops->name);
	if (r == 0)
		r = compare_clean(x, slot, times, sample);
	else if (r != -ENOMEM)
		r = -EPROTO;
	if (r == -EPROTO && err && !err->text[0])
		ow_error_set(err, EPROTO, "message TIMES: not the sample that was asked for");
	ow_synopsis_free(sample);
	return r;
}

/* Times are of the interval, or made up. */
static bool within(const int64_t *time_ns, uint32_t count, int64_t length_ns)
{
	for (uint32_t i = 0; i < count; i++) {
		if (time_ns[i] < 0 || time_ns[i] >= length_ns)
			return false;
	}
	return true;
}

int ow_sender_fold_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                         struct ow_error *err)
{
	const struct ow_fold_steps *s = &slot->steps;
	if (slot->stage == OW_STAGE_CLEAN)
		return clean_times(x, slot, times, err);
	if (times->sums != (s->lefts ? OW_MESSAGE_SUMS : OW_MESSAGE_NO_SUMS))
		return ow_error_set(err, EPROTO, "message TIMES: not what was asked for");
	/* The other point does not have packets that its fold showed, or kept others than this point did. */
	if (times->unknown || times->kept != s->lefts)
		return say_clean(x, slot);
	uint64_t samples = s->lefts < slot->plan.sample ? s->lefts : slot->plan.sample;
	if (times->times != s->wanteds || times->buckets != slot->plan.buckets || times->samples != samples)
		return ow_error_set(err, EPROTO,
		                    "message TIMES: %u times, %u sums and %u samples instead of %zu, %u and %llu",
		                    times->times, times->buckets, times->samples, s->wanteds, slot->plan.buckets,
		                    (unsigned long long)samples);
	if (!within(times->time_ns, times->times, x->options.length_ns) ||
	    !within(times->sample_ns, times->samples, x->options.length_ns))
		return ow_error_set(err, EPROTO, "message TIMES: times outside of the interval");
	return compare_complete(x, slot, times);
}
