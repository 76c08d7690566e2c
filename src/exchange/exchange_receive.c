/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving point of a lane: it pushes a synopsis of each interval and answers what is asked about it, always from
 * the page, so that a question may come twice. The page stays until the result is here.
 */
#include "base/clock.h"
#include "exchange/exchange_private.h"
#include "reconcile/keyset.h"
#include "reconcile/key_list.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first interval is sized for one difference in so many packets, */
#define GUESS 100
/* each for this many at least, and this many standard deviations more than expected (differences are about Poisson). */
#define LEAST  16
#define MARGIN 3
/* Above so many differences 3 banks take a fifth less than 4 (synopsis/fold.h). */
#define MANY 1e4
/* What is asked about one interval: three rounds, and again after each of some lost connections. */
#define ANSWERS_MAX 32
/* After an interval with fewer differences the expectation falls by this share of the way. */
#define DECAY 0.25

/* -- synopses ----------------------------------------------------------------------------------------------------- */

static double expected(const struct ow_exchange *x, const struct ow_interval_packets *page)
{
	double d = isnan(x->expected) ? (double)page->count / GUESS : x->expected;
	return d + MARGIN * sqrt(d) + LEAST;
}

static void learn(struct ow_exchange *x, uint64_t differences)
{
	double d = (double)differences;
	if (isnan(x->expected) || d > x->expected)
		x->expected = d;
	else
		x->expected += DECAY * (d - x->expected);
}

static int make_fold(const struct ow_exchange *x, struct ow_slot *slot, struct ow_synopsis **ret_synopsis)
{
	double differences = expected(x, slot->page);
	/* Pushed again, it has the same banks: the other point may already have asked for a second one to go with it.
	 */
	unsigned banks = differences > MANY ? OW_FOLD_BANKS_MIN : OW_FOLD_BANKS_MAX;
	struct ow_fold_params params = {slot->banks ? slot->banks : banks, 1, 0, false};
	/* Without packets there is nothing to tell. */
	if (slot->page->count) {
		params.cells = ow_fold_cells_for(params.banks, differences);
		params.estimator = true;
	}
	slot->banks = params.banks;
	return ow_fold_create(&params, x->options.seed, ret_synopsis);
}

/* The oldest interval whose packets are still here. */
static int64_t oldest(const struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++) {
		if (x->slot[i]->page)
			return x->slot[i]->interval;
	}
	return x->next_page;
}

/* Takes the synopsis. */
static int say_synopsis(struct ow_exchange *x, struct ow_slot *slot, enum ow_message_part part,
                        struct ow_synopsis *synopsis, int64_t begin_ns)
{
	const struct ow_interval_packets *page = slot->page;
	struct ow_message m = {.type = OW_MESSAGE_SYNOPSIS, .lane = x->options.lane, .interval = slot->interval};
	size_t size = synopsis ? ow_synopsis_encoded_size(synopsis) : 0;
	uint8_t *bytes = size <= OW_MESSAGE_SYNOPSIS_MAX ? malloc(size + 1) : NULL;
	if (!bytes) {
		ow_synopsis_free(synopsis);
		return -ENOMEM;
	}
	if (synopsis)
		ow_synopsis_encode(synopsis, bytes);
	ow_synopsis_free(synopsis);
	m.synopsis = (struct ow_message_synopsis){
		.part = part,
		.sample_shift = (uint8_t)page->sample_shift,
		.clock = slot->clock,
		.packets = page->count,
		.total_packets = page->total_packets > page->count ? page->total_packets : page->count,
		.total_bytes = page->total_bytes,
		.ring_drops = page->ring_drops,
		.unreadable = page->unreadable,
		.oldest = oldest(x),
		.settled = x->next_final,
		.sent_ns = x->now_ns > 0 ? x->now_ns : 0,
		.work_ns = ow_clock_steady_ns() - begin_ns,
		.synopsis = bytes,
		.synopsis_size = (uint32_t)size,
	};
	int r = ow_exchange_say(x, slot, &m, false);
	free(bytes);
	return r;
}

static int push(struct ow_exchange *x, struct ow_slot *slot, enum ow_message_part part)
{
	int64_t begin = ow_clock_steady_ns();
	struct ow_synopsis *fold = NULL;
	if (x->options.method == OW_METHOD_FOLD) {
		int r = make_fold(x, slot, &fold);
		if (r < 0)
			return r;
		fold->ops->add(fold, slot->page->stamp, slot->page->count);
	}
	return say_synopsis(x, slot, part, fold, begin);
}

/* The next page to push, or NULL: none is left, or enough are under way. */
static struct ow_slot *next_push(const struct ow_exchange *x)
{
	size_t under_way = 0;
	for (size_t i = 0; i < x->slots && under_way < OW_EXCHANGE_WINDOW; i++) {
		const struct ow_slot *slot = x->slot[i];
		if (slot->page && !slot->under_way)
			return x->slot[i];
		under_way += slot->page != NULL;
	}
	return NULL;
}

void ow_receiver_push(struct ow_exchange *x)
{
	for (struct ow_slot *slot; x->connected && (slot = next_push(x));) {
		slot->under_way = true;
		if (slot->page->blind[0])
			ow_exchange_say_none(x, slot->interval, slot->page->blind);
		else if (push(x, slot, OW_MESSAGE_PUSHED) < 0)
			ow_receiver_unknown(x, slot, "out of memory");
	}
}

static int make_asked(const struct ow_exchange *x, const struct ow_slot *slot, const struct ow_message_ask *ask,
                      struct ow_synopsis **ret_synopsis)
{
	struct ow_fold_params fold = {slot->banks, ask->cells, ask->order, false};
	struct ow_rda_params rda = {ask->banks, ask->cells, false};
	switch (ask->part) {
	case OW_MESSAGE_SECOND:
		return ow_fold_create(&fold, x->options.seed, ret_synopsis);
	case OW_MESSAGE_MINHASH:
		return ow_minhash_create(ask->cells, x->options.seed, ret_synopsis);
	case OW_MESSAGE_TABLE:
		return ow_rda_create(&rda, x->options.seed, ret_synopsis);
	default:
		return -EINVAL;
	}
}

/* What the method of this lane asks for, and no more of it. */
static bool is_usual(const struct ow_exchange *x, const struct ow_message_ask *ask)
{
	switch (ask->part) {
	case OW_MESSAGE_AGAIN:
		return true;
	case OW_MESSAGE_SECOND:
		return x->options.method == OW_METHOD_FOLD;
	case OW_MESSAGE_MINHASH:
		return x->options.method == OW_METHOD_RDA && ask->cells <= OW_MINHASH_SLOTS;
	default:
		return x->options.method == OW_METHOD_RDA;
	}
}

static int on_ask(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_ask *ask, struct ow_error *err)
{
	int64_t begin = ow_clock_steady_ns();
	struct ow_synopsis *synopsis = NULL;
	if (!is_usual(x, ask))
		return ow_error_set(err, EPROTO, "message ASK: not what this lane is compared by");
	/* Up to 64 MiB: asked for again only after some lost connections. */
	if (ask->part == OW_MESSAGE_TABLE)
		slot->answers += ANSWERS_MAX / 8;
	if (ask->part == OW_MESSAGE_AGAIN) {
		if (ask->sample_shift > slot->page->sample_shift) {
			ow_interval_packets_resample(slot->page, &x->options.identity, ask->sample_shift);
			ow_exchange_raise_shift(x, ask->sample_shift, slot->interval);
		}
		return push(x, slot, OW_MESSAGE_AGAIN);
	}
	int r = make_asked(x, slot, ask, &synopsis);
	if (r == -EINVAL)
		return ow_error_set(err, EPROTO, "message ASK: %u cells are out of range", ask->cells);
	if (r < 0)
		return r;
	synopsis->ops->add(synopsis, slot->page->stamp, slot->page->count);
	return say_synopsis(x, slot, ask->part, synopsis, begin);
}

/* -- names and times ---------------------------------------------------------------------------------------------- */

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
	bool twice; /* two packets of one name */
};

static int read_list(const uint8_t *bytes, uint32_t size, bool wide, uint64_t **ret_keys, size_t *ret_count,
                     struct ow_error *err)
{
	*ret_keys = NULL;
	*ret_count = 0;
	if (!size)
		return 0;
	if (!wide) {
		int r = ow_key_list_decode(bytes, size, ret_keys, ret_count, err);
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
	/* The secret of keys is that of any fold. */
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

/* Its place in the sorted list, or SIZE_MAX. */
static size_t place_of(const uint64_t *keys, size_t count, uint64_t key)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && keys[low] == key ? low : SIZE_MAX;
}

static void take_named(const struct lists *lists, const struct ow_interval_packets *page,
                       const struct ow_sighting *stamp, uint64_t name, struct found *found)
{
	size_t place = place_of(lists->wanted, lists->wanteds, name);
	found->hits++;
	if (place == SIZE_MAX)
		return;
	found->twice |= found->there[place];
	found->there[place] = true;
	found->time_ns[place] = stamp->time_ns;
	const struct ow_copy *copy = page->copies ? ow_interval_packets_copy(page, stamp->id) : NULL;
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
}

/* Parts the page into named packets and those that stay. */
static int part(const struct lists *lists, const struct ow_interval_packets *page, struct found *found)
{
	found->time_ns = calloc(lists->wanteds + 1, sizeof *found->time_ns);
	found->there = calloc(lists->wanteds + 1, sizeof *found->there);
	found->copy = calloc(lists->wanteds + 1, sizeof *found->copy);
	found->kept = malloc((page->count + 1) * sizeof *found->kept);
	if (!found->time_ns || !found->there || !found->copy || !found->kept)
		return -ENOMEM;
	for (size_t i = 0; i < page->count; i++) {
		uint64_t name = name_of(lists, page->stamp[i].id);
		if (ow_keyset_has(&lists->set, name))
			take_named(lists, page, &page->stamp[i], name, found);
		else
			found->kept[found->kepts++] = page->stamp[i];
	}
	if (found->copies)
		qsort(found->copy, found->copies, sizeof *found->copy, by_index);
	return 0;
}

/* The part of the kept packets as the message has it; *ret_bucket and *ret_bytes are to be freed. */
static int put_part(struct ow_message_times *m, const struct ow_reconciled_part *part,
                    struct ow_message_bucket **ret_bucket, uint8_t **ret_bytes)
{
	struct ow_message_bucket *bucket = malloc((part->buckets + (size_t)1) * sizeof *bucket);
	size_t size = part->sample ? ow_synopsis_encoded_size(part->sample) : 0;
	uint8_t *bytes = malloc(size + 1);
	*ret_bucket = bucket;
	*ret_bytes = bytes;
	if (!bucket || !bytes)
		return -ENOMEM;
	for (uint32_t i = 0; i < part->buckets; i++)
		bucket[i] = (struct ow_message_bucket){part->bucket[i].time, part->bucket[i].digest,
		                                       (uint32_t)part->bucket[i].packets};
	if (part->sample)
		ow_synopsis_encode(part->sample, bytes);
	m->kept = part->packets;
	m->digest = part->digest;
	m->bucket = bucket;
	m->buckets = part->buckets;
	m->sample_ns = part->sample_ns;
	m->samples = part->samples;
	m->synopsis = bytes;
	m->synopsis_size = (uint32_t)size;
	return 0;
}

static int say_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_names *names,
                     const struct lists *lists, const struct found *found)
{
	struct ow_message m = {.type = OW_MESSAGE_TIMES, .lane = x->options.lane, .interval = slot->interval};
	struct ow_reconciled_part part = {0};
	struct ow_message_bucket *bucket = NULL;
	uint8_t *bytes = NULL;
	int r = 0;
	m.times.sums = names->sums;
	m.times.sample_shift = (uint8_t)slot->page->sample_shift;
	m.times.kept = found->kepts;
	size_t unknown = lists->set.used > found->hits ? lists->set.used - found->hits : found->twice;
	if (unknown) {
		m.times.unknown = (uint32_t)unknown;
		return ow_exchange_say(x, slot, &m, false);
	}
	m.times.time_ns = found->time_ns;
	m.times.times = (uint32_t)lists->wanteds;
	m.times.copy = found->copy;
	m.times.copies = found->copies;
	if (names->sums != OW_MESSAGE_NO_SUMS) {
		struct ow_reconciled_plan plan = {names->sums == OW_MESSAGE_SUMS, names->buckets, names->sample,
		                                  names->differences};
		r = ow_reconciled_take(found->kept, found->kepts, x->options.seed, &plan, &part);
		if (r == 0)
			r = put_part(&m.times, &part, &bucket, &bytes);
	}
	if (r == 0)
		r = ow_exchange_say(x, slot, &m, false);
	ow_reconciled_part_done(&part);
	free(bucket);
	free(bytes);
	return r;
}

static int on_names(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_names *names,
                    struct ow_error *err)
{
	struct lists lists = {0};
	struct found found = {0};
	int r = read_lists(x, names, &lists, err);
	if (r == 0)
		r = part(&lists, slot->page, &found);
	if (r == 0)
		r = say_times(x, slot, names, &lists, &found);
	found_done(&found);
	lists_done(&lists);
	return r;
}

/* -- results ------------------------------------------------------------------------------------------------------ */

static void drop_page(struct ow_slot *slot)
{
	ow_interval_packets_free(slot->page);
	slot->page = NULL;
}

static void total_add(struct ow_exchange *x, const struct ow_interval_result *result)
{
	/* The mean is that of late packets, too: here they count as if they had been in time. */
	struct ow_interval_result first = *result;
	first.matched += first.late;
	ow_run_total_add(x->total, &first, result, false, NULL, 0, x->no_delays);
}

/* Hands on what has come, in order. */
void ow_receiver_emit(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots && (x->slot[i]->told || x->slot[i]->told_final); i++) {
		struct ow_slot *slot = x->slot[i];
		if (slot->told && !slot->emitted)
			x->sinks.result(x->sinks.arg, &slot->provisional);
		slot->emitted = true;
	}
	while (x->slots && x->slot[0]->told_final) {
		total_add(x, &x->slot[0]->final);
		x->sinks.result(x->sinks.arg, &x->slot[0]->final);
		x->next_final = x->slot[0]->interval + 1;
		ow_slot_remove(x, x->slot[0]);
	}
}

void ow_receiver_unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	struct ow_interval_result *r = &slot->final;
	if (slot->told) {
		/* What is pending stays so. */
		*r = slot->provisional;
		if (r->status == OW_RESULT_MEASURED && r->pending)
			r->status = OW_RESULT_PARTIAL;
	} else {
		ow_exchange_blank(x, slot->interval, r);
		r->status = OW_RESULT_UNKNOWN;
		r->clock_to = slot->clock;
	}
	r->final = true;
	if (slot->page) {
		r->total_received = slot->page->total_packets;
		r->ring_drops_to = slot->page->ring_drops;
		r->unreadable = slot->page->unreadable;
		r->sample_shift = slot->page->sample_shift;
	}
	if (r->status != OW_RESULT_MEASURED)
		snprintf(r->cause, sizeof r->cause, "%s", cause);
	slot->told_final = true;
	drop_page(slot);
	ow_receiver_emit(x);
}

static int on_result(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_result *m,
                     struct ow_error *err)
{
	struct ow_interval_result *r = m->final ? &slot->final : &slot->provisional;
	if (slot->told_final || (slot->told && !m->final))
		return 0;
	/* What arrived here nobody knows better. */
	if (m->received > slot->seen || m->total_received > slot->seen_total)
		return ow_error_set(err, EPROTO, "message RESULT: more packets received than this point saw");
	ow_exchange_blank(x, slot->interval, r);
	ow_result_from_message(m, r);
	if (!m->final && m->status != OW_MESSAGE_UNKNOWN)
		learn(x, m->differences);
	*(m->final ? &slot->told_final : &slot->told) = true;
	slot->since_ns = x->now_ns;
	drop_page(slot);
	ow_receiver_emit(x);
	ow_receiver_push(x);
	return 0;
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* Asked about an interval whose packets are not here. */
static void no_page(struct ow_exchange *x, const struct ow_slot *slot, int64_t interval)
{
	if (slot && slot->told)
		return; /* a question from before the result */
	bool later = x->next_page < 0 || interval >= x->next_page;
	if (later && !x->finished) {
		/* It will be pushed. Nobody asks for intervals that far ahead; then it is the end that is asked for. */
		if (interval > x->asked_until && interval - x->next_page < (int64_t)x->options.pages_max)
			x->asked_until = interval;
		return;
	}
	ow_exchange_say_none(x, interval, later ? x->ended : "not recorded, or no longer here");
}

int ow_receiver_frame(struct ow_exchange *x, const struct ow_message *message, struct ow_error *err)
{
	struct ow_slot *slot = ow_slot_find(x, message->interval);
	bool here = slot && slot->page;
	int r = 0;
	switch (message->type) {
	case OW_MESSAGE_ASK:
	case OW_MESSAGE_NAMES:
		if (here && slot->answers++ >= ANSWERS_MAX)
			return ow_error_set(err, EPROTO, "message %s: asked more often than anybody needs",
			                    ow_message_name(message->type));
		if (!here)
			no_page(x, slot, message->interval);
		else if (slot->page->blind[0])
			ow_exchange_say_none(x, slot->interval, slot->page->blind);
		else
			r = message->type == OW_MESSAGE_ASK ? on_ask(x, slot, &message->ask, err)
			                                    : on_names(x, slot, &message->names, err);
		if (r == -ENOMEM || r == -EMSGSIZE) {
			ow_exchange_say_none(x, message->interval, "out of memory");
			r = 0;
		}
		return r;
	case OW_MESSAGE_RESULT:
		return slot ? on_result(x, slot, &message->result, err) : 0;
	case OW_MESSAGE_NONE:
		if (here) {
			char cause[OW_RESULT_CAUSE];
			snprintf(cause, sizeof cause, "%s: %.100s", ow_exchange_peer(x), message->text.text);
			ow_receiver_unknown(x, slot, cause);
		}
		return 0;
	default:
		return ow_error_set(err, EPROTO, "message %s: not for the receiving point of a lane",
		                    ow_message_name(message->type));
	}
}

/* -- life --------------------------------------------------------------------------------------------------------- */

int ow_receiver_create(struct ow_exchange *x)
{
	int r = ow_run_total_create(&x->total);
	return r < 0 ? r : ow_delays_create(&x->no_delays);
}

void ow_receiver_free(struct ow_exchange *x)
{
	ow_run_total_free(x->total);
	ow_delays_free(x->no_delays);
}

void ow_receiver_connected(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++)
		x->slot[i]->under_way = false;
	ow_receiver_push(x);
}

void ow_receiver_finish(struct ow_exchange *x)
{
	for (int64_t i = x->next_page < 0 ? 0 : x->next_page; i <= x->asked_until; i++)
		ow_exchange_say_none(x, i, x->ended);
	ow_receiver_emit(x);
}
