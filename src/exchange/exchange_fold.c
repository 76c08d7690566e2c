/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison by fold: the steps of estimate/fold_steps.h, as the messages arrive. */
#include "base/time.h"
#include "estimate/arrivals.h"
#include "estimate/fold_steps.h"
#include "estimate/low_bits.h"
#include "exchange/exchange_identical.h"
#include "exchange/method.h"
#include "reconcile/key_list.h"
#include "synopsis/bottomk.h"
#include "result/cause.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comparison {
	struct ow_comparison c;
	struct ow_synopsis *pushed;
	struct ow_fold_steps steps;
	uint64_t *asked; /* packets whose times are asked for: those that only B has, and copies in doubt */
	size_t askeds;
	struct ow_reconciled_plan plan;
	struct ow_delay_window window; /* in which delays are expected: */
	unsigned width;                /* bytes of a sum */
	unsigned least;                /* the bits of times below this one are not needed, */
	unsigned low, bits;            /* those that were asked for last, */
	uint64_t *part;                /* the low bits of the sampled times that arrived before */
	struct ow_arrival *arrival;    /* of the common packets, in order, if this is known, */
	uint64_t *place;               /* and the places of the others among them */
	bool ordered;
	bool clean; /* clean buckets were requested, because the packets could not be identified */
};

static struct comparison *fold_of(struct ow_comparison *c)
{
	return (struct comparison *)c;
}

/* -- the receiver ------------------------------------------------------------------------------------------------- */

/* Above this many differences, 3 banks need a fifth less than 4 (synopsis/fold.h). */
#define MANY 1e4

/*
 * Counters of the estimate, which is needed if the fold is too small: few of them for few packets, so that they do not
 * take more bytes than the fold.
 */
#define COUNTERS_LEAST 64
#define PER_COUNTER    16

static uint32_t counters_for(size_t packets)
{
	uint32_t counters = COUNTERS_LEAST;
	while (counters < OW_AMS_COUNTERS && counters < packets / PER_COUNTER)
		counters *= 2;
	return counters;
}

static int push(const struct ow_exchange *x, const struct ow_interval_packets *packets, double differences,
                unsigned *banks, struct ow_synopsis **ret_synopsis)
{
	/*
	 * If it is pushed again, it has the same banks: the other point may have asked for a second fold to go with it.
	 */
	if (!*banks)
		*banks = differences > MANY ? OW_FOLD_BANKS_MIN : OW_FOLD_BANKS_MAX;
	struct ow_fold_params params = {*banks, ow_fold_cells_for(*banks, differences), 0, true,
	                                counters_for(packets->count)};
	return ow_fold_create(&params, x->options.seed, ret_synopsis);
}

static int answer(const struct ow_exchange *x, unsigned banks, const struct ow_message_ask *ask,
                  struct ow_synopsis **ret_synopsis)
{
	struct ow_fold_params params = {banks, ask->cells, ask->order, false};
	return ask->part == OW_MESSAGE_SECOND ? ow_fold_create(&params, x->options.seed, ret_synopsis) : -EOPNOTSUPP;
}

/* -- which packets ------------------------------------------------------------------------------------------------ */

static int check_push(const struct ow_synopsis *synopsis, uint64_t packets, struct ow_error *err)
{
	if (synopsis->ops != &ow_fold_ops)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: %s instead of a fold", synopsis->ops->name);
	if (ow_fold_of(synopsis)->params.order)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: a second fold that was not asked for");
	/* Peeling counts in size_t, and keys have 48 bits. */
	if (packets > OW_MESSAGE_PACKETS_MAX)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: too many packets");
	return 0;
}

/* Without packets there is no fold in the message. */
static int no_packets(const struct ow_message_synopsis *m, uint64_t seed, struct ow_synopsis **ret_synopsis,
                      struct ow_error *err)
{
	const struct ow_fold_params params = {OW_FOLD_BANKS_MAX, 1, 0, false};
	if (m->synopsis_size)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: a synopsis without packets");
	return ow_fold_create(&params, seed, ret_synopsis);
}

static int take_push(struct ow_comparison *c, const struct ow_message_synopsis *m, struct ow_error *err)
{
	struct comparison *f = fold_of(c);
	struct ow_synopsis *synopsis = NULL;
	uint64_t seed = c->x->options.seed;
	int r = m->packets ? ow_synopsis_decode(m->synopsis, m->synopsis_size, seed, &synopsis, err)
	                   : no_packets(m, seed, &synopsis, err);
	if (r == 0)
		r = check_push(synopsis, m->packets, err);
	if (r < 0) {
		ow_synopsis_free(synopsis);
		return r == -ENOMEM ? r : -EPROTO;
	}
	ow_synopsis_free(f->pushed);
	f->pushed = synopsis;
	return 0;
}

/* Whether a packet is identical to one that waits for its arrival since an earlier interval, or may have been sent before
 * the first one. */
struct doubts {
	const struct ow_comparison *c;
	struct ow_keyset
		earlier; /* of intervals that are compared but have no result yet; of copies, at the beginning */
};

static uint64_t name(const struct ow_comparison *c, uint64_t id)
{
	return ow_fold_key(&ow_fold_of(((const struct comparison *)c)->steps.first)->secret, ow_comparison_base(c, id));
}

static bool in_doubt(void *arg, uint64_t id)
{
	const struct doubts *d = arg;
	uint64_t key = name(d->c, id);
	return ow_keyset_has(&d->earlier, key) || ow_missing_has(d->c->missing, key);
}

static int note_earlier(struct doubts *d)
{
	const struct ow_exchange *x = d->c->x;
	int r = 0;
	for (size_t i = 0; i < x->slots && x->slot[i] != &d->c->slot && r == 0; i++) {
		struct comparison *f = (struct comparison *)x->slot[i];
		bool known = f->c.slot.packets && f->c.stage <= OW_STAGE_READY;
		for (size_t k = 0; known && k < f->steps.onlys && r == 0; k++)
			r = ow_keyset_add(&d->earlier, name(&f->c, f->steps.only[k].id));
	}
	return r;
}

/* Copies of packets of which it is not known how many were on their way before: when the first interval began, or after one
 * in which they could be confused. Other packets show it, also if there are none before later. */
static int note_begun(struct doubts *d)
{
	const struct ow_interval_packets *packets = d->c->slot.packets;
	const struct ow_missing *missing = d->c->missing;
	const struct ow_running_copies *running = &missing->running;
	bool doubt = !running->begun || running->unsure || (running->amid && packets->copies < packets->count);
	int r = 0;
	for (size_t i = 0; doubt && i < packets->copies && r == 0; i++)
		r = ow_keyset_add(&d->earlier, name(d->c, packets->copy[i].id));
	return r;
}

static int erase(struct comparison *f)
{
	int64_t begin = ow_exchange_steady_ns(f->c.x);
	struct doubts doubts = {.c = &f->c};
	int r = note_earlier(&doubts);
	if (r == 0)
		r = note_begun(&doubts);
	if (r == 0)
		r = ow_missing_note_repeated(f->c.missing, &f->c, &doubts.earlier);
	if (r == 0 && (doubts.earlier.used || ow_interval_results_waiting(f->c.missing->results))) {
		f->steps.doubt = in_doubt;
		f->steps.arg = &doubts;
	}
	if (r == 0)
		r = ow_fold_steps_erase(&f->steps);
	f->steps.doubt = NULL;
	f->steps.arg = NULL;
	ow_keyset_done(&doubts.earlier);
	f->c.cost.erase_ns += ow_exchange_steady_ns(f->c.x) - begin;
	return r;
}

/* -- asking ------------------------------------------------------------------------------------------------------- */

/* Encodes a list of keys; the caller frees *ret_bytes. */
static int encode_names(const uint64_t *keys, size_t count, uint8_t **ret_bytes, uint32_t *ret_size)
{
	*ret_bytes = NULL;
	*ret_size = 0;
	if (!count)
		return 0;
	size_t size = ow_key_list_size(OW_KEY_LIST_PACKET, keys, count);
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	ow_key_list_encode(OW_KEY_LIST_PACKET, keys, count, bytes);
	*ret_bytes = bytes;
	*ret_size = (uint32_t)size;
	return 0;
}

/*
 * The times of identical packets whose numbers differ are asked for, to align them. Each takes some 25 bytes, so there is a
 * limit for a second; with more of them the interval does without.
 */
#define COPIES_A_SECOND 1024
#define COPIES_LEAST    64
#define COPIES_MOST     4096

static size_t copies_max(const struct ow_exchange_options *o)
{
	double most = COPIES_A_SECOND * ((double)o->length_ns / (double)OW_NS_PER_S);
	return o->one_of_several ? 0 : (size_t)fmin(fmax(most, COPIES_LEAST), COPIES_MOST);
}

static int choose_asked(struct comparison *f)
{
	struct ow_fold_steps *s = &f->steps;
	/* Others than copies are among them if points do not distinguish copies. */
	bool copies = s->otherss <= copies_max(&f->c.x->options) && s->otherss == s->ambiguous;
	size_t i = 0, k = 0, count = s->wanteds + (copies ? s->otherss : 0);
	free(f->asked);
	f->asked = malloc((count + 1) * sizeof *f->asked);
	f->askeds = f->asked ? count : 0;
	for (size_t n = 0; n < f->askeds; n++) {
		bool other = i == s->wanteds || (k < count - s->wanteds && s->others[k] < s->wanted[i]);
		f->asked[n] = other ? s->others[k++] : s->wanted[i++];
	}
	return f->asked ? 0 : -ENOMEM;
}

static int say_names(struct comparison *f)
{
	const struct ow_fold_steps *s = &f->steps;
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	uint8_t *wanted = NULL, *others = NULL;
	m.names = (struct ow_message_names){.sums = s->lefts ? OW_MESSAGE_SUMS : OW_MESSAGE_NO_SUMS};
	if (s->lefts) {
		m.names.buckets = f->plan.buckets;
		m.names.sample = f->plan.sample;
		m.names.low = (uint8_t)f->low;
		m.names.bits = (uint8_t)f->bits;
		m.names.width = (uint8_t)f->width;
	}
	int r = encode_names(f->asked, f->askeds, &wanted, &m.names.wanted_size);
	if (r == 0 && f->askeds == s->wanteds)
		r = encode_names(s->others, s->otherss, &others, &m.names.others_size);
	m.names.wanted = wanted;
	m.names.others = others;
	if (r == 0)
		r = ow_comparison_request(&f->c, OW_STAGE_NAMED, &m);
	free(wanted);
	free(others);
	return r;
}

/* The packets cannot be identified: asks for clean buckets of all of them. */
static int say_clean(struct comparison *f)
{
	struct ow_fold_steps *s = &f->steps;
	struct ow_estimate losses;
	struct ow_message m = {.type = OW_MESSAGE_NAMES};
	ow_fold_steps_losses(s, false, &losses);
	double differences =
		isnan(s->differences) ? (double)ow_fold_of(s->first)->params.cells : fmax(1, s->differences);
	const struct ow_exchange_options *o = &f->c.x->options;
	f->plan = (struct ow_reconciled_plan){false, o->buckets, o->sample,
	                                      fmin(differences, (double)OW_MESSAGE_PACKETS_MAX)};
	m.names = (struct ow_message_names){.sums = OW_MESSAGE_CLEAN,
	                                    .buckets = f->plan.buckets,
	                                    .sample = f->plan.sample,
	                                    .differences = f->plan.differences};
	int r = ow_comparison_request(&f->c, OW_STAGE_NAMED, &m);
	f->clean = r == 0;
	return r;
}

static int compare_complete(struct comparison *f, const struct ow_message_times *times);

/*
 * The size of the sample: what the p99 needs by the intervals before, but its times take no more bytes than the sums of
 * the buckets.
 */
static uint32_t choose_sample(const struct comparison *f)
{
	const struct ow_exchange_options *o = &f->c.x->options;
	uint32_t wanted = f->c.forecast->sample, least = o->sample / 4 + 1, most = o->buckets * 64 / f->bits;
	if (!wanted)
		return o->sample;
	most = most > o->sample ? most : o->sample;
	return wanted < least ? least : wanted < most ? wanted : most;
}

/*
 * The agreed number of buckets is for a second: a shorter interval has fewer, so that its share of the traffic is the
 * same. An interval with as few packets as they are worth has all times.
 */
#define BUCKETS_LEAST    24
#define PER_SHORT_BUCKET 40 /* packets */

static uint32_t choose_buckets(const struct ow_exchange_options *o, size_t packets)
{
	if (o->length_ns >= OW_NS_PER_S)
		return o->buckets;
	double part = (double)o->buckets * (double)o->length_ns / (double)OW_NS_PER_S;
	uint32_t buckets = (uint32_t)fmax(fmin(part, (double)packets / PER_SHORT_BUCKET), BUCKETS_LEAST);
	return buckets < o->buckets ? buckets : o->buckets;
}

/* Quantiles of a sample do not need times that are finer than the 2^14th part of the window. */
#define SAMPLE_BITS 14

/* Bytes that a sum of times needs, as its delays are within the window: of the packets of a bucket, some more than
 * usual. */
static unsigned choose_width(const struct comparison *f)
{
	double mean = f->plan.buckets ? (double)f->steps.lefts / f->plan.buckets : 1;
	double most = mean + 6 * sqrt(mean) + 8;
	unsigned width = (unsigned)ceil((f->bits + log2(most)) / 8);
	return width < 8 ? width : 8;
}

/* All differences are known, or cannot be found. */
static int turn(struct ow_comparison *c)
{
	struct comparison *f = fold_of(c);
	struct ow_fold_steps *s = &f->steps;
	const struct ow_exchange_options *o = &c->x->options;
	if (!ow_fold_steps_complete(s) || s->diff.doubled)
		return say_clean(f);
	int r = erase(f);
	if (r < 0)
		return r;
	/* Keys of packets that this point does not have, or has twice. */
	if (s->onlys != s->diff.as || s->wanteds != s->diff.bs || s->wanteds > OW_KEY_LIST_MAX ||
	    s->otherss > OW_KEY_LIST_MAX)
		return say_clean(f);
	r = choose_asked(f);
	if (r < 0)
		return r;
	f->window = ow_forecast_window(c->forecast, ow_comparison_window(c));
	f->bits = f->window.bits;
	struct ow_reconciled_options options = {choose_buckets(o, s->lefts), choose_sample(f), .all = o->exact};
	ow_reconciled_plan(s->lefts, &options, &f->plan);
	f->width = choose_width(f);
	bool coarse = f->plan.buckets && c->forecast->known && f->bits > SAMPLE_BITS;
	f->least = coarse ? f->bits - SAMPLE_BITS : 0;
	f->low = f->least;
	f->bits -= f->least;
	/* No packet in common, so nothing to ask for. */
	if (!s->lefts && !s->wanteds && !s->otherss)
		return compare_complete(f, &(struct ow_message_times){0});
	return say_names(f);
}

static int start(struct ow_comparison *c)
{
	static const struct ow_sighting nothing;
	struct comparison *f = fold_of(c);
	struct ow_fold_steps *s = &f->steps;
	int64_t begin = ow_exchange_steady_ns(f->c.x);
	ow_fold_steps_done(s);
	/* An interval without packets is not a missing one. */
	s->cache = f->c.slot.packets->sighting ? f->c.slot.packets->sighting : &nothing;
	s->cached = s->packets = f->c.slot.packets->count;
	int r = ow_fold_steps_push(s, f->pushed, ow_fold_of(f->pushed)->ams, f->c.theirs.packets);
	f->c.cost.decode_ns += ow_exchange_steady_ns(f->c.x) - begin;
	if (r < 0)
		return r;
	if (s->diff.complete) {
		f->c.stage = OW_STAGE_TURN;
		return 0;
	}
	unsigned order;
	uint32_t cells;
	r = ow_fold_steps_more(s, &cells, &order);
	if (r < 0)
		return r;
	struct ow_message_ask ask = {.part = OW_MESSAGE_SECOND, .order = (uint8_t)order, .cells = cells};
	return ow_comparison_ask(c, OW_STAGE_SYNOPSIS, &ask);
}

static int take_synopsis(struct ow_comparison *c, const struct ow_message_synopsis *m, struct ow_error *err)
{
	struct comparison *f = fold_of(c);
	struct ow_synopsis *second = NULL;
	int r = ow_synopsis_decode(m->synopsis, m->synopsis_size, c->x->options.seed, &second, err);
	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	const struct ow_fold_params *p = second->ops == &ow_fold_ops ? &ow_fold_of(second)->params : NULL;
	if (!p || p->banks != ow_fold_of(f->steps.first)->params.banks || p->cells != c->ask.cells ||
	    p->order != c->ask.order) {
		r = ow_error_set(err, EPROTO, "message SYNOPSIS: not the second fold that was asked for");
	} else {
		int64_t begin = ow_exchange_steady_ns(c->x);
		r = ow_fold_steps_second(&f->steps, second);
		c->cost.decode_ns += ow_exchange_steady_ns(c->x) - begin;
	}
	if (r == 0)
		c->stage = OW_STAGE_TURN;
	ow_synopsis_free(second);
	return r;
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

struct placed {
	uint64_t place;
	struct ow_sighting packet;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	return (x->place > y->place) - (x->place < y->place);
}

/* Puts the packets that only the other point has into the order of arrival. Returns whether it is one. */
static bool sort_only_b(struct comparison *f, const struct ow_message_times *times)
{
	struct ow_outcome *o = &f->c.outcome;
	struct placed *placed = malloc((o->only_bs + 1) * sizeof *placed);
	uint64_t all = o->only_bs + f->steps.lefts;
	f->place = malloc((o->only_bs + 1) * sizeof *f->place);
	bool good = placed && f->place;
	for (size_t i = 0; good && i < o->only_bs; i++)
		placed[i] = (struct placed){(uint64_t)times->place[i], o->only_b[i]};
	if (good && o->only_bs)
		qsort(placed, o->only_bs, sizeof *placed, by_place);
	for (size_t i = 0; good && i < o->only_bs; i++) {
		good = placed[i].place < all && (!i || (placed[i - 1].place < placed[i].place &&
		                                        placed[i - 1].packet.time_ns <= placed[i].packet.time_ns));
		f->place[i] = placed[i].place;
	}
	for (size_t i = 0; good && i < o->only_bs; i++)
		o->only_b[i] = placed[i].packet;
	free(placed);
	return good;
}

/* The same without packets in common. Returns whether all times are different. */
static bool sort_by_time(struct ow_outcome *o)
{
	size_t i = 1;
	ow_sightings_sort(o->only_b, o->only_bs);
	while (i < o->only_bs && o->only_b[i - 1].time_ns < o->only_b[i].time_ns)
		i++;
	return i >= o->only_bs;
}

/* The packets whose times have arrived, by name: those of only_b, and copies that both points have. A packet of the other
 * point comes with its base key if it is a copy. */
static void list_asked(struct comparison *f, const struct ow_message_times *times)
{
	const struct ow_fold_steps *s = &f->steps;
	struct ow_outcome *o = &f->c.outcome;
	uint32_t next = 0;
	for (size_t i = 0; i < f->askeds; i++) {
		bool is_copy = next < times->copies && times->copy[next].index == i;
		struct ow_sighting packet = {is_copy ? times->copy[next].base : f->asked[i], times->time_ns[i],
		                             ow_times_shared(times, i)};
		next += is_copy;
		if (o->only_bs < s->wanteds && s->wanted[o->only_bs] == f->asked[i])
			o->only_b[o->only_bs++] = packet;
		else
			o->copy[o->copies++] = packet;
	}
}

/* The packets at one point only, and copies that may be confused with them. */
static int list_differences(struct comparison *f, const struct ow_message_times *times)
{
	const struct ow_fold_steps *s = &f->steps;
	struct ow_outcome *o = &f->c.outcome;
	o->only_a = malloc((s->onlys + 1) * sizeof *o->only_a);
	o->only_b = malloc((s->wanteds + 1) * sizeof *o->only_b);
	o->copy = malloc((f->askeds - s->wanteds + 1) * sizeof *o->copy);
	if (!o->only_a || !o->only_b || !o->copy)
		return -ENOMEM;
	for (size_t i = 0; i < s->onlys; i++)
		o->only_a[i] = (struct ow_sighting){name(&f->c, s->only[i].id), s->only[i].time_ns, s->only[i].flow};
	o->only_as = s->onlys;
	list_asked(f, times);
	if (o->copies)
		f->ordered = false;
	else if (f->arrival)
		f->ordered = sort_only_b(f, times);
	else
		f->ordered = !s->lefts && sort_by_time(o);
	return 0;
}

/* Whole times of the bits that have arrived; mine: this point's times of the same packets. -EAGAIN: some delay is not
 * within the window; -EPROTO. */
static int whole_times(const struct comparison *f, const uint64_t *part, uint64_t check, const int64_t *mine,
                       int64_t *time_ns, uint32_t count)
{
	int64_t step_ns = INT64_C(1) << f->least;
	for (uint32_t i = 0; i < count; i++) {
		int64_t least_ns = mine[i] + f->window.least_ns;
		time_ns[i] = ow_low_bits_restore(part[i], f->low + f->bits, least_ns & -step_ns);
	}
	if (ow_low_bits_check(time_ns, count, f->low) != check)
		return -EAGAIN;
	if (!ow_comparison_within(&f->c, time_ns, count, step_ns))
		return -EPROTO;
	/* The middle of what it may be. */
	for (uint32_t i = 0; i < count; i++)
		time_ns[i] += step_ns / 2;
	return 0;
}

/* The times of the sample. -EAGAIN: the bits are kept, and others are needed. */
static int restore_times(struct comparison *f, const struct ow_message_times *times, const int64_t *mine,
                         int64_t *time_ns)
{
	uint64_t *part = calloc(times->samples + (size_t)1, sizeof *part);
	if (!part)
		return -ENOMEM;
	if (f->part)
		memcpy(part, f->part, times->samples * sizeof *part);
	ow_low_bits_unpack(times->sample, times->samples, f->low, f->bits, part);
	int r = whole_times(f, part, times->sample_check, mine, time_ns, times->samples);
	if (r == -EAGAIN) {
		free(f->part);
		f->part = part;
	} else {
		free(part);
	}
	return r;
}

/* Not all delays are where they were expected: asks for the other bits of the times. */
static int say_more_bits(struct comparison *f)
{
	struct ow_delay_window any = ow_comparison_window(&f->c);
	unsigned known = f->low + f->bits;
	if (known >= any.bits)
		return say_clean(f);
	f->window = any;
	f->width = 8;
	f->low = known;
	f->bits = any.bits - known;
	return say_names(f);
}

/* The sums of the buckets. -ERANGE: some delay is not within the window, so whole ones are needed; -EBADMSG. */
static int restore_sums(const struct comparison *f, const struct ow_message_times *times,
                        const struct ow_reconciled_part *mine, struct ow_reconciled_part *theirs)
{
	if (!theirs->buckets)
		return 0;
	ow_reconciled_restore(theirs, mine, 8 * f->width, f->window.least_ns);
	if (ow_reconciled_check(theirs) == times->sums_check)
		return 0;
	return f->width < 8 ? -ERANGE : -EBADMSG;
}

/* The other point's part as it was received. If the plan is complete, there are only sums of times. */
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
	*ret_part = part;
	return 0;
}

static void describe(const struct comparison *f, char text[80])
{
	const struct ow_fold_params *first = &ow_fold_of(f->steps.first)->params;
	int used = snprintf(text, 80, "fold %u x %u", first->banks, first->cells);
	if (f->steps.second)
		snprintf(text + used, 80 - (size_t)used, " + %u x %u", first->banks,
		         ow_fold_of(f->steps.second)->params.cells);
}

/* Delays with their times, of a sample of the packets that no other is like. Without memory for it, there is none. */
static void keep_samples(struct ow_comparison *c, const struct ow_reconciled_part *mine,
                         const struct ow_reconciled_part *theirs)
{
	size_t count = mine->samples < OW_COMPARISON_SAMPLES ? mine->samples : OW_COMPARISON_SAMPLES;
	int64_t start_ns = c->x->options.t0_ns + c->slot.interval * c->x->options.length_ns;
	if (!c->x->sinks.clock || !count)
		return;
	c->outcome.sample = malloc(count * sizeof *c->outcome.sample);
	c->outcome.samples = c->outcome.sample ? count : 0;
	for (size_t i = 0; i < c->outcome.samples; i++)
		c->outcome.sample[i] = (struct ow_clock_sample){start_ns + mine->sample_ns[i],
		                                                theirs->sample_ns[i] - mine->sample_ns[i]};
}

/* The order in which the packets arrived, if all their times are known. Without memory for it, it is not known. */
static void find_order(struct comparison *f, const struct ow_message_times *times, const int64_t *theirs)
{
	const struct ow_fold_steps *s = &f->steps;
	uint32_t *place = malloc((s->lefts + 1) * sizeof *place);
	struct ow_arrival *arrival = malloc((s->lefts + 1) * sizeof *arrival);
	bool known = place && arrival && ow_reconciled_order(s->left, s->lefts, f->c.x->options.seed, place) == 0;
	for (uint32_t i = 0; known && i < s->lefts; i++)
		arrival[i] = (struct ow_arrival){theirs[i], place[i], i};
	if (known) {
		ow_arrivals_sort(arrival, s->lefts);
		known = ow_arrivals_check(arrival, s->lefts) == times->order_check;
	}
	free(place);
	free(f->arrival);
	f->arrival = known ? arrival : NULL;
	if (!known)
		free(arrival);
}

/* Counts reordered packets, among those that were sent and received in this interval, and remembers what had been sent
 * when others arrived. */
static void count_reordered(struct comparison *f)
{
	const struct ow_fold_steps *s = &f->steps;
	struct ow_outcome *o = &f->c.outcome;
	struct ow_arrivals_newest newest = {.sent_ns = INT64_MIN};
	size_t k = 0;
	o->newest_ns = malloc((o->only_bs + 1) * sizeof *o->newest_ns);
	if (!o->newest_ns)
		return;
	for (size_t i = 0; i < s->lefts; i++) {
		const struct ow_arrival *a = &f->arrival[i];
		for (; k < o->only_bs && f->place[k] == i + k; k++)
			o->newest_ns[k] = newest.sent_ns;
		ow_arrivals_next(&newest, s->left[a->place].time_ns, a->place);
	}
	for (; k < o->only_bs; k++)
		o->newest_ns[k] = newest.sent_ns;
	o->newest_at_end_ns = newest.sent_ns;
	o->result.reordered = newest.reordered;
}

/* -EBADMSG: the packets are not the same. -EAGAIN, -ERANGE, -EPROTO: as restore_times, restore_sums. */
static int compute(struct comparison *f, const struct ow_message_times *times, struct ow_estimate *estimate)
{
	const struct ow_fold_steps *s = &f->steps;
	struct ow_reconciled_part mine = {0}, theirs = {0};
	ow_estimate_none(estimate, s->packets && s->received ? OW_REASON_NO_COMMON_PACKET : OW_REASON_A_POINT_SAW_NONE);
	if (!s->lefts)
		return times->kept ? -EBADMSG : 0;
	int r = ow_reconciled_take(s->left, s->lefts, f->c.x->options.seed, &f->plan, &mine);
	if (r == 0)
		r = part_of(times, &theirs);
	if (r == 0)
		r = restore_times(f, times, mine.sample_ns, theirs.sample_ns);
	if (r == 0)
		r = restore_sums(f, times, &mine, &theirs);
	if (r == 0)
		r = ow_reconciled_compare(&f->plan, &mine, &theirs, s->lefts + s->ambiguous, estimate,
		                          &f->c.outcome.delay);
	if (r == 0) {
		keep_samples(&f->c, &mine, &theirs);
		ow_forecast_learn(f->c.forecast, f->c.outcome.delay.ns, f->c.outcome.delay.count, f->low > f->least);
	}
	if (r == 0 && !f->plan.buckets)
		find_order(f, times, theirs.sample_ns);
	ow_reconciled_part_done(&mine);
	ow_reconciled_part_done(&theirs);
	return r;
}

static int compare_complete(struct comparison *f, const struct ow_message_times *times)
{
	const struct ow_fold_steps *s = &f->steps;
	int64_t begin = ow_exchange_steady_ns(f->c.x);
	struct ow_estimate estimate;
	int r = compute(f, times, &estimate);
	if (r == -EAGAIN)
		return say_more_bits(f);
	if (r == -ERANGE) {
		f->width = 8;
		return say_names(f);
	}
	if (r == -EBADMSG)
		return say_clean(f);
	if (r == 0)
		r = list_differences(f, times);
	if (r < 0)
		return r;
	f->c.cost.compute_ns += ow_exchange_steady_ns(f->c.x) - begin;
	ow_comparison_measured(&f->c, &estimate);
	struct ow_interval_result *result = &f->c.outcome.result;
	result->ambiguous = s->ambiguous;
	result->duplicated = s->duplicated;
	result->exact = !f->plan.buckets && !s->ambiguous;
	if (!s->ambiguous && f->ordered)
		count_reordered(f);
	describe(f, result->synopsis);
	return 0;
}

static int compare_clean(struct comparison *f, const struct ow_message_times *times, struct ow_synopsis *sample)
{
	struct ow_fold_steps *s = &f->steps;
	int64_t begin = ow_exchange_steady_ns(f->c.x);
	struct ow_reconciled_part mine = {0}, theirs = {0};
	struct ow_estimate estimate;
	ow_estimate_none(&estimate, OW_REASON_NO_COMMON_PACKET);
	ow_fold_steps_losses(s, false, &estimate);
	int r = ow_reconciled_take(s->cache, s->cached, f->c.x->options.seed, &f->plan, &mine);
	if (r == 0)
		r = part_of(times, &theirs);
	if (r == 0) {
		theirs.sample = sample;
		r = ow_reconciled_compare(&f->plan, &mine, &theirs, 0, &estimate, NULL);
		theirs.sample = NULL;
	}
	ow_reconciled_part_done(&mine);
	ow_reconciled_part_done(&theirs);
	if (r < 0)
		return r == -EBADMSG ? -EPROTO : r;
	f->c.cost.compute_ns += ow_exchange_steady_ns(f->c.x) - begin;
	char cause[OW_RESULT_CAUSE];
	if (isnan(s->differences))
		snprintf(cause, sizeof cause, ow_cause_differences_unknown);
	else
		snprintf(cause, sizeof cause, ow_cause_differences_estimated, s->differences);
	ow_comparison_estimated(&f->c, &estimate, cause);
	describe(f, f->c.outcome.result.synopsis);
	return 0;
}

static int clean_times(struct comparison *f, const struct ow_message_times *times, struct ow_error *err)
{
	struct ow_synopsis *sample = NULL;
	if (times->sums != OW_MESSAGE_CLEAN)
		return 0; /* the answer to an earlier request */
	if (times->kept != f->c.theirs.packets || times->buckets != f->plan.buckets || times->times || times->unknown)
		return ow_error_set(err, EPROTO, "message TIMES: not the buckets that were asked for");
	int r = ow_synopsis_decode(times->synopsis, times->synopsis_size, f->c.x->options.seed, &sample, err);
	if (r == 0 && sample->ops != &ow_bottomk_ops)
		r = ow_error_set(err, EPROTO, "message TIMES: %s instead of a sample", sample->ops->name);
	if (r == 0)
		r = compare_clean(f, times, sample);
	else if (r != -ENOMEM)
		r = -EPROTO;
	if (r == -EPROTO && err && !err->text[0])
		ow_error_set(err, EPROTO, "message TIMES: not the sample that was asked for");
	ow_synopsis_free(sample);
	return r;
}

static int take_times(struct ow_comparison *c, const struct ow_message_times *times, struct ow_error *err)
{
	struct comparison *f = fold_of(c);
	const struct ow_fold_steps *s = &f->steps;
	if (f->clean)
		return clean_times(f, times, err);
	if (times->sums != (s->lefts ? OW_MESSAGE_SUMS : OW_MESSAGE_NO_SUMS))
		return ow_error_set(err, EPROTO, "message TIMES: not what was asked for");
	/* The other point does not have packets that its fold contained, or kept other packets than this point. */
	if (times->unknown || times->kept != s->lefts)
		return say_clean(f);
	if (s->lefts && (times->low != f->low || (f->plan.buckets && times->width != f->width)))
		return 0; /* the answer to an earlier request */
	uint64_t samples = s->lefts < f->plan.sample ? s->lefts : f->plan.sample;
	if (times->times != f->askeds || times->buckets != f->plan.buckets || times->samples != samples ||
	    (s->lefts && times->bits != f->bits))
		return ow_error_set(err, EPROTO,
		                    "message TIMES: %u times, %u sums and %u samples instead of %zu, %u and %llu",
		                    times->times, times->buckets, times->samples, f->askeds, f->plan.buckets,
		                    (unsigned long long)samples);
	int r = -EPROTO;
	if (ow_comparison_within(c, times->time_ns, times->times, 1))
		r = compare_complete(f, times);
	return r == -EPROTO ? ow_error_set(err, EPROTO, "message TIMES: times outside of the interval") : r;
}

static void done(struct ow_comparison *c)
{
	ow_synopsis_free(fold_of(c)->pushed);
	ow_fold_steps_done(&fold_of(c)->steps);
	free(fold_of(c)->asked);
	free(fold_of(c)->part);
	free(fold_of(c)->arrival);
	free(fold_of(c)->place);
}

const struct ow_method_ops ow_fold_method = {
	.size = sizeof(struct comparison),
	.leaves_out_doubtful = true,
	.push = push,
	.answer = answer,
	.take_push = take_push,
	.start = start,
	.turn = turn,
	.take_synopsis = take_synopsis,
	.take_times = take_times,
	.name = name,
	.done = done,
};
