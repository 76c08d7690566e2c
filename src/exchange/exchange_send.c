/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending point of a lane: it compares, settles and tells. Intervals are under way side by side, but each names its
 * packets only when those before it know which they lack: a packet that is identical to one that still waits is
 * ambiguous, and must be known as such.
 */
#include "base/clock.h"
#include "estimate/sample.h"
#include "exchange/exchange_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- results ------------------------------------------------------------------------------------------------------ */

static void forget_told(struct ow_exchange *x, size_t count)
{
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		free(x->tell[i].frame);
	x->tells -= count;
	memmove(x->tell, x->tell + count, x->tells * sizeof *x->tell);
}

/* The other point has the final results of all intervals before this one. */
static void confirm(struct ow_exchange *x, int64_t settled)
{
	size_t kept = 0;
	for (size_t i = 0; i < x->tells; i++) {
		if (x->tell[i].interval < settled)
			free(x->tell[i].frame);
		else
			x->tell[kept++] = x->tell[i];
	}
	x->tells = kept;
}

/* Of those that may have to be told again one must go: the oldest, but first those that say nothing. */
static void forget_one(struct ow_exchange *x)
{
	size_t at = 0;
	while (at < x->tells && !x->tell[at].unknown)
		at++;
	if (at == x->tells)
		at = 0;
	free(x->tell[at].frame);
	x->tells--;
	memmove(x->tell + at, x->tell + at + 1, (x->tells - at) * sizeof *x->tell);
}

static bool is_told(const struct ow_exchange *x, int64_t interval)
{
	for (size_t i = 0; i < x->tells; i++) {
		if (x->tell[i].interval == interval)
			return true;
	}
	return false;
}

static size_t tells_max(const struct ow_exchange *x)
{
	size_t ahead = x->options.pages_max > OW_EXCHANGE_WINDOW ? x->options.pages_max : OW_EXCHANGE_WINDOW;
	return 2 * (ahead + x->options.horizon + 2);
}

static void tell(struct ow_exchange *x, struct ow_interval_result *result, uint64_t differences)
{
	struct ow_message m = {.type = OW_MESSAGE_RESULT, .lane = x->options.lane, .interval = result->interval};
	uint8_t *frame;
	size_t size;
	ow_result_to_message(result, differences, &m.result);
	if (ow_message_encode(&m, &frame, &size, NULL) < 0)
		return;
	free(frame);
	/* Its own bytes, and those of the provisional result before it. */
	result->cost.bytes += (size + 4) * (result->final ? 2 : 1);
	m.result.cost_bytes = result->cost.bytes;
	if (ow_message_encode(&m, &frame, &size, NULL) < 0)
		return;
	x->sinks.send(x->sinks.arg, frame, size);
	if (x->tells == tells_max(x))
		forget_one(x);
	x->tell[x->tells++] = (struct ow_told){result->interval, result->status == OW_RESULT_UNKNOWN, frame, size};
}

static void on_result(void *arg, const struct ow_interval_result *settled)
{
	struct ow_exchange *x = arg;
	struct ow_interval_result result = *settled;
	uint64_t differences = 0;
	if (x->settling && x->settling->interval == result.interval)
		differences = x->settling->outcome.differences;
	tell(x, &result, differences);
	x->sinks.result(x->sinks.arg, &result);
}

void ow_sender_result(const struct ow_exchange *x, const struct ow_slot *slot, struct ow_interval_result *ret_result)
{
	struct ow_interval_result *r = ret_result;
	ow_exchange_blank(x, slot->interval, r);
	r->cost = slot->cost;
	/* With the work since this call began. */
	uint64_t now_ns = (uint64_t)x->now_ns + (uint64_t)(ow_clock_steady_ns() - x->entered_ns);
	r->cost.ready_ns = (int64_t)(now_ns - (uint64_t)r->start_ns - (uint64_t)r->length_ns);
	if (slot->page) {
		r->sent = slot->page->count;
		r->total_sent = slot->page->total_packets;
		r->bytes = slot->page->total_bytes;
		r->ring_drops_from = slot->page->ring_drops;
		r->unreadable = slot->page->unreadable;
		r->sample_shift = slot->page->sample_shift;
		r->clock_from = slot->clock;
	}
	if (slot->pushed) {
		r->received = slot->theirs.packets;
		r->total_received = slot->theirs.total_packets;
		r->ring_drops_to = slot->theirs.ring_drops;
		r->unreadable += slot->theirs.unreadable;
		r->clock_to = slot->theirs.clock;
	}
}

/* Both times of a packet are of the interval: sums that say otherwise are made up. */
static bool made_up(const struct ow_value *mean_ns, int64_t length_ns)
{
	return mean_ns->status != OW_VALUE_NONE && !(fabs(mean_ns->value) <= (double)length_ns);
}

void ow_sender_numbers(const struct ow_estimate *estimate, struct ow_interval_result *result)
{
	if (made_up(&estimate->mean_ns, result->length_ns)) {
		const struct ow_value none = {.reason = OW_REASON_PEER_TIMES_IMPOSSIBLE};
		result->mean_ns = result->stddev_ns = none;
		for (int q = 0; q < OW_QUANTILES; q++)
			result->quantile_ns[q] = none;
		return;
	}
	result->samples = estimate->useful;
	result->mean_ns = estimate->mean_ns;
	result->stddev_ns = estimate->stddev_ns;
	memcpy(result->quantile_ns, estimate->quantile_ns, sizeof result->quantile_ns);
}

/*
 * Which packets are at one point only is not known, how many is: lost ones are an estimate, with late ones among them.
 */
void ow_sender_estimated(struct ow_exchange *x, struct ow_slot *slot, const struct ow_estimate *estimate,
                         const char *cause)
{
	struct ow_outcome *o = &slot->outcome;
	struct ow_interval_result *r = &o->result;
	ow_sender_result(x, slot, r);
	ow_sender_numbers(estimate, r);
	uint64_t least = r->sent > r->received ? r->sent - r->received : 0, lost = least;
	if (estimate->lost.status != OW_VALUE_NONE)
		lost = ow_packets_of(estimate->lost.value + 0.5);
	lost = lost < least ? least : lost > r->sent ? r->sent : lost;
	r->lost = lost;
	r->matched = r->sent - lost;
	if (r->sample_shift)
		ow_sample_widen((double)r->matched, exp2(-(double)r->sample_shift), &r->mean_ns, &r->stddev_ns);
	r->extra = r->received - r->matched;
	r->loss_ratio = estimate->loss_ratio;
	r->min_ns = r->max_ns = (struct ow_value){.reason = OW_REASON_DELAYS_NOT_ALL_KNOWN};
	double total = fmax((double)r->total_sent, (double)r->sent);
	r->coverage = total > 0 ? fmin(1, (double)r->samples / total) : 0;
	r->status = OW_RESULT_PARTIAL;
	snprintf(r->cause, sizeof r->cause, "%s", cause);
	o->differences = r->lost + r->extra;
	o->estimated = true;
	slot->stage = OW_STAGE_READY;
}

/* -- settling ----------------------------------------------------------------------------------------------------- */

/* What is missing now may turn up later: packets that are identical to it are ambiguous. */
static void note_missing(struct ow_exchange *x, const struct ow_outcome *o)
{
	if (++x->missing_age > x->options.horizon) {
		ow_keyset_done(&x->missing[1]);
		x->missing[1] = x->missing[0];
		x->missing[0] = (struct ow_keyset){0};
		x->missing_age = 1;
	}
	for (size_t i = 0; i < o->only_as; i++)
		x->missing_unknown |= ow_keyset_add(&x->missing[0], o->only_a[i].id) < 0;
}

static void settle_slot(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_outcome *o = &slot->outcome;
	int r = 0;
	x->settling = slot;
	/* The other point may have declined before the page was closed. */
	if (slot->stage == OW_STAGE_UNKNOWN) {
		char cause[OW_RESULT_CAUSE];
		memcpy(cause, o->result.cause, sizeof cause);
		ow_sender_result(x, slot, &o->result);
		memcpy(o->result.cause, cause, sizeof cause);
	}
	bool compared = slot->stage == OW_STAGE_READY && !o->estimated;
	if (compared)
		r = ow_sender_regroup(x, slot);
	if (compared && r == 0) {
		struct ow_interval_results_input input = {
			.result = o->result,
			.only_a = o->only_a,
			.only_b = o->only_b,
			.only_as = o->only_as,
			.only_bs = o->only_bs,
			.delay_ns = o->delay.ns,
			.delays = o->delay.count,
		};
		r = ow_interval_results_step(x->settle, &input);
	}
	if (r < 0)
		snprintf(o->result.cause, sizeof o->result.cause, "%s",
		         r == -ENOMEM ? "out of memory" : "the counts contradict each other");
	if (o->estimated)
		r = ow_interval_results_estimated(x->settle, &o->result);
	if (r < 0 || slot->stage == OW_STAGE_UNKNOWN)
		(void)ow_interval_results_unknown(x->settle, &o->result, false);
	note_missing(x, o);
	x->settling = NULL;
	x->next_settled = slot->interval + 1;
}

static void settle_ready(struct ow_exchange *x)
{
	while (x->slots && x->slot[0]->stage >= OW_STAGE_READY && (x->slot[0]->page || x->finished)) {
		struct ow_slot *slot = x->slot[0];
		if (slot->page)
			settle_slot(x, slot);
		ow_slot_remove(x, slot);
	}
	if (x->finished && !x->slots && !x->final) {
		x->final = true;
		(void)ow_interval_results_finish(x->settle);
	}
}

/* -- stages ------------------------------------------------------------------------------------------------------- */

static void give_up(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	slot->stage = OW_STAGE_UNKNOWN;
	slot->outcome.estimated = false;
	ow_sender_result(x, slot, &slot->outcome.result);
	snprintf(slot->outcome.result.cause, sizeof slot->outcome.result.cause, "%s", cause);
}

void ow_sender_unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	give_up(x, slot, cause);
	ow_sender_advance(x);
}

int ow_sender_ask(struct ow_exchange *x, struct ow_slot *slot, enum ow_stage stage, struct ow_message *message)
{
	message->lane = x->options.lane;
	message->interval = slot->interval;
	int r = ow_exchange_say(x, slot, message, true);
	if (r < 0)
		return r;
	slot->stage = stage;
	slot->requested_ns = ow_clock_steady_ns();
	slot->cost.round_trips++;
	return 0;
}

/*
 * A tag that only one point sees (a trunk and an access port): the filter takes packets there, and cannot take them at
 * the other one. They are not lost. Once it has taken packets at both points, none at one of them is loss.
 */
static bool filter_fits(struct ow_exchange *x, const struct ow_slot *slot)
{
	bool here = slot->page->total_packets > 0, there = slot->theirs.total_packets > 0;
	x->met |= here && there;
	return !x->options.link_filter || x->met || here == there;
}

static int start(struct ow_exchange *x, struct ow_slot *slot)
{
	if (slot->page->blind[0]) {
		char cause[OW_RESULT_CAUSE];
		snprintf(cause, sizeof cause, "%s: %s", x->options.from, slot->page->blind);
		give_up(x, slot, cause);
		return 0;
	}
	if (!filter_fits(x, slot)) {
		char cause[OW_RESULT_CAUSE];
		snprintf(cause, sizeof cause, "the filter takes no packet at %.24s: is it tagged alike?",
		         slot->page->total_packets ? x->options.to : x->options.from);
		give_up(x, slot, cause);
		return 0;
	}
	unsigned mine = slot->page->sample_shift, theirs = slot->theirs.sample_shift;
	if (theirs < mine) {
		struct ow_message m = {.type = OW_MESSAGE_ASK};
		m.ask = (struct ow_message_ask){.part = OW_MESSAGE_AGAIN, .sample_shift = (uint8_t)mine};
		return ow_sender_ask(x, slot, OW_STAGE_AGAIN, &m);
	}
	if (theirs > mine) {
		ow_interval_packets_resample(slot->page, &x->options.identity, theirs);
		ow_exchange_raise_shift(x, theirs, slot->interval);
	}
	return x->options.method == OW_METHOD_FOLD ? ow_sender_fold_start(x, slot) : ow_sender_rda_start(x, slot);
}

/* Intervals that began before the recording did: the other point will get nothing else. */
static void drop_pageless(struct ow_exchange *x)
{
	while (x->slots && !x->slot[0]->page && (x->finished || x->slot[0]->interval < x->next_page)) {
		ow_exchange_say_none(x, x->slot[0]->interval, "not recorded");
		ow_slot_remove(x, x->slot[0]);
	}
	for (size_t i = x->slots; x->finished && i-- > 0;) {
		if (!x->slot[i]->page) {
			ow_exchange_say_none(x, x->slot[i]->interval, x->ended);
			ow_slot_remove(x, x->slot[i]);
		}
	}
}

void ow_sender_advance(struct ow_exchange *x)
{
	bool turn = true;
	drop_pageless(x);
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_slot *slot = x->slot[i];
		int r = 0;
		if (slot->stage == OW_STAGE_OPEN && slot->page && slot->pushed)
			r = start(x, slot);
		if (r == 0 && slot->stage == OW_STAGE_PEELED && turn)
			r = ow_sender_fold_name(x, slot);
		if (r < 0)
			give_up(x, slot, strerror(-r));
		turn &= slot->stage >= OW_STAGE_NAMED;
	}
	settle_ready(x);
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* The pushed synopsis, or the same of fewer packets. */
static int take_push(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_synopsis *m,
                     struct ow_error *err)
{
	struct ow_synopsis *synopsis = NULL;
	bool fold = x->options.method == OW_METHOD_FOLD;
	if (slot->stage == OW_STAGE_AGAIN && m->sample_shift < slot->page->sample_shift)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: shift %u instead of %u", m->sample_shift,
		                    slot->page->sample_shift);
	if (!fold && m->synopsis_size)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: a synopsis that was not asked for");
	if (fold) {
		int r = ow_synopsis_decode(m->synopsis, m->synopsis_size, x->options.seed, &synopsis, err);
		if (r == 0)
			r = ow_sender_fold_check(synopsis, m->packets, err);
		if (r < 0) {
			ow_synopsis_free(synopsis);
			return r == -ENOMEM ? r : -EPROTO;
		}
	}
	ow_synopsis_free(slot->synopsis);
	slot->synopsis = synopsis;
	slot->held = m->synopsis_size;
	slot->theirs = *m;
	slot->theirs.synopsis = NULL;
	slot->pushed = true;
	if (slot->stage == OW_STAGE_AGAIN)
		slot->cost.transmit_ns += ow_clock_steady_ns() - slot->requested_ns;
	else
		slot->cost.transmit_ns = (int64_t)((uint64_t)slot->cost.transmit_ns + (uint64_t)m->work_ns +
		                                   (uint64_t)(x->now_ns > m->sent_ns ? x->now_ns - m->sent_ns : 0));
	slot->stage = OW_STAGE_OPEN;
	return 0;
}

/* Whether there is room for another synopsis of so many bytes. */
static bool has_room(const struct ow_exchange *x, size_t size)
{
	size_t held = 0;
	for (size_t i = 0; i < x->slots; i++)
		held += x->slot[i]->held;
	return !x->options.synopses_max || !held || held + size <= x->options.synopses_max;
}

/* Where a synopsis of this interval goes; NULL if it is not wanted. */
static struct ow_slot *slot_for(struct ow_exchange *x, int64_t interval)
{
	struct ow_slot *slot = ow_slot_find(x, interval);
	/* Its result is on its way, or was given up during an outage. */
	if (!slot && interval < x->next_settled && !is_told(x, interval))
		ow_exchange_say_none(x, interval, "not compared, too long ago");
	if (slot || interval < x->next_settled)
		return slot;
	if (x->finished || interval < x->next_page) {
		ow_exchange_say_none(x, interval, x->finished ? x->ended : "not recorded");
		return NULL;
	}
	/* This point is slow, or the other one is mad. */
	size_t ahead = 0;
	for (size_t i = x->slots; i-- > 0 && !x->slot[i]->page;)
		ahead++;
	if (ahead >= 2 * (size_t)x->options.pages_max)
		return NULL;
	return ow_slot_add(x, interval);
}

static bool wants(const struct ow_slot *slot, enum ow_message_part part)
{
	switch (part) {
	case OW_MESSAGE_PUSHED:
		return slot->stage == OW_STAGE_OPEN && !slot->pushed;
	case OW_MESSAGE_AGAIN:
		return slot->stage == OW_STAGE_AGAIN || (slot->stage == OW_STAGE_OPEN && !slot->pushed);
	case OW_MESSAGE_SECOND:
		return slot->stage == OW_STAGE_SECOND;
	case OW_MESSAGE_MINHASH:
		return slot->stage == OW_STAGE_MINHASH;
	case OW_MESSAGE_TABLE:
		return slot->stage == OW_STAGE_TABLE;
	case OW_MESSAGE_PARTS:
		break;
	}
	return false;
}

static int on_synopsis(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	const struct ow_message_synopsis *m = &message->synopsis;
	struct ow_slot *slot = slot_for(x, message->interval);
	x->ahead_ns = (int64_t)((uint64_t)m->sent_ns - (uint64_t)x->now_ns);
	if (slot && wants(slot, m->part) && !has_room(x, m->synopsis_size)) {
		ow_exchange_say_none(x, message->interval, "no memory for so many synopses");
		if (slot->page)
			give_up(x, slot, "more synopses at a time than there is memory for");
		else
			ow_slot_remove(x, slot);
	} else if (slot && wants(slot, m->part)) {
		bool answer = m->part >= OW_MESSAGE_SECOND;
		/* Answers must be of the same packets as the counts that came first. */
		if (answer && (m->packets != slot->theirs.packets || m->sample_shift != slot->theirs.sample_shift))
			return ow_error_set(err, EPROTO, "message SYNOPSIS: other packets than before");
		int64_t waited = ow_clock_steady_ns() - slot->requested_ns;
		int r = !answer                               ? take_push(x, slot, m, err)
		        : x->options.method == OW_METHOD_FOLD ? ow_sender_fold_synopsis(x, slot, m, err)
		                                              : ow_sender_rda_synopsis(x, slot, m, err);
		if (r == -EPROTO) {
			if (!slot->page && !slot->pushed)
				ow_slot_remove(x, slot);
			return r;
		}
		if (r < 0)
			give_up(x, slot, strerror(-r));
		slot->cost.bytes += size + 4;
		slot->cost.transmit_ns += answer ? waited : 0;
	}
	confirm(x, m->settled);
	/* What the other point no longer has cannot be compared. */
	for (size_t i = 0; i < x->slots && x->slot[i]->interval < m->oldest; i++) {
		if (x->slot[i]->page && x->slot[i]->stage < OW_STAGE_READY)
			give_up(x, x->slot[i], "the other point has no packets of this interval");
	}
	ow_sender_advance(x);
	return 0;
}

static int on_times(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_slot *slot = ow_slot_find(x, message->interval);
	if (!slot || (slot->stage != OW_STAGE_NAMED && slot->stage != OW_STAGE_CLEAN))
		return 0;
	/* The bytes of this answer are part of the result that it makes possible. */
	slot->cost.bytes += size + 4;
	int64_t before = slot->cost.missing_ns;
	slot->cost.missing_ns += ow_clock_steady_ns() - slot->requested_ns;
	int r = message->times.sample_shift != slot->theirs.sample_shift ? -ESTALE
	        : x->options.method == OW_METHOD_FOLD ? ow_sender_fold_times(x, slot, &message->times, err)
	                                              : ow_sender_rda_times(x, slot, &message->times, err);
	if (r == -EPROTO) {
		slot->cost.bytes -= size + 4;
		slot->cost.missing_ns = before;
		return r;
	}
	if (r < 0)
		give_up(x, slot, r == -ESTALE ? "the other point has changed its sample" : strerror(-r));
	ow_sender_advance(x);
	return 0;
}

int ow_sender_frame(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_slot *slot;
	switch (message->type) {
	case OW_MESSAGE_SYNOPSIS:
		return on_synopsis(x, message, size, err);
	case OW_MESSAGE_TIMES:
		return on_times(x, message, size, err);
	case OW_MESSAGE_NONE:
		/* The other point may close its interval first. */
		slot = slot_for(x, message->interval);
		if (slot && slot->stage < OW_STAGE_READY) {
			char cause[OW_RESULT_CAUSE];
			snprintf(cause, sizeof cause, "%s: %.90s", ow_exchange_peer(x), message->text.text);
			ow_sender_unknown(x, slot, cause);
		}
		return 0;
	default:
		return ow_error_set(err, EPROTO, "message %s: not for the sending point of a lane",
		                    ow_message_name(message->type));
	}
}

/* -- life --------------------------------------------------------------------------------------------------------- */

int ow_sender_create(struct ow_exchange *x)
{
	int r = ow_interval_results_create(x->options.horizon, on_result, x, &x->settle);
	if (r < 0)
		return r;
	x->tell = calloc(tells_max(x), sizeof *x->tell);
	return x->tell ? 0 : -ENOMEM;
}

void ow_sender_free(struct ow_exchange *x)
{
	forget_told(x, x->tells);
	free(x->tell);
	ow_keyset_done(&x->missing[0]);
	ow_keyset_done(&x->missing[1]);
	ow_interval_results_free(x->settle);
}

/* Did the other point's synopsis get lost, or will there be none? */
static void ask_for_synopsis(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_message m = {.type = OW_MESSAGE_ASK};
	m.ask = (struct ow_message_ask){.part = OW_MESSAGE_AGAIN};
	if (ow_sender_ask(x, slot, OW_STAGE_OPEN, &m) < 0)
		give_up(x, slot, "out of memory");
}

static void ask_for_missing(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++) {
		if (x->slot[i]->page && x->slot[i]->stage == OW_STAGE_OPEN && !x->slot[i]->pushed)
			ask_for_synopsis(x, x->slot[i]);
	}
}

void ow_sender_connected(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->tells; i++)
		x->sinks.send(x->sinks.arg, x->tell[i].frame, x->tell[i].size);
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_slot *slot = x->slot[i];
		if (slot->stage == OW_STAGE_OPEN || slot->stage == OW_STAGE_PEELED || slot->stage >= OW_STAGE_READY ||
		    !slot->request)
			continue;
		slot->cost.bytes += slot->request_size + 4;
		x->sinks.send(x->sinks.arg, slot->request, slot->request_size);
	}
	if (x->finished)
		ask_for_missing(x);
}

void ow_sender_finish(struct ow_exchange *x)
{
	ask_for_missing(x);
	ow_sender_advance(x);
}
