/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of a lane: the intervals under way, and who does what with them (exchange_slot.h). */
#include "exchange/exchange.h"

#include "exchange/exchange_private.h"
#include "base/coder.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The receiving point waits longer, so that the sending one, which knows more, speaks first. */
#define RECEIVER_PATIENCE 1.5
/* A finer sample is tried every so many intervals; recorders take it up within this time. */
#define REFINE_INTERVALS 16
#define REFINE_LAG_NS    INT64_C(100000000)

int64_t ow_exchange_start(const struct ow_exchange *x, int64_t interval)
{
	return (int64_t)((uint64_t)x->options.t0_ns + (uint64_t)interval * (uint64_t)x->options.length_ns);
}

const char *ow_exchange_peer(const struct ow_exchange *x)
{
	return x->options.sending ? x->options.to : x->options.from;
}

void ow_exchange_blank(const struct ow_exchange *x, int64_t interval, struct ow_interval_result *ret_result)
{
	const struct ow_exchange_options *o = &x->options;
	struct ow_interval_result r = {
		.interval = interval,
		.start_ns = ow_exchange_start(x, interval),
		.length_ns = o->length_ns,
		.reordered = OW_RESULT_NOT_COUNTED,
		.clock_from = {false, OW_CLOCK_UNKNOWN},
		.clock_to = {false, OW_CLOCK_UNKNOWN},
	};
	const struct ow_value none = {.reason = OW_REASON_INTERVAL_UNKNOWN};
	memcpy(r.segment, o->segment, sizeof r.segment);
	memcpy(r.class_name, o->class_name, sizeof r.class_name);
	memcpy(r.from, o->from, sizeof r.from);
	memcpy(r.to, o->to, sizeof r.to);
	r.mean_ns = r.stddev_ns = r.min_ns = r.max_ns = r.loss_ratio = none;
	for (int q = 0; q < OW_QUANTILES; q++)
		r.quantile_ns[q] = none;
	*ret_result = r;
}

/* -- slots -------------------------------------------------------------------------------------------------------- */

struct ow_slot *ow_slot_find(const struct ow_exchange *x, int64_t interval)
{
	for (size_t i = 0; i < x->slots; i++) {
		if (x->slot[i]->interval == interval)
			return x->slot[i];
	}
	return NULL;
}

struct ow_slot *ow_slot_add(struct ow_exchange *x, int64_t interval)
{
	if (x->slots == x->room) {
		size_t room = x->room ? 2 * x->room : 16;
		struct ow_slot **grown = realloc(x->slot, room * sizeof(void *));
		if (!grown)
			return NULL;
		x->slot = grown;
		x->room = room;
	}
	struct ow_slot *slot = calloc(1, sizeof *slot);
	if (!slot)
		return NULL;
	slot->interval = interval;
	slot->since_ns = x->now_ns;
	size_t at = x->slots++;
	for (; at > 0 && x->slot[at - 1]->interval > interval; at--)
		x->slot[at] = x->slot[at - 1];
	x->slot[at] = slot;
	return slot;
}

static void free_slot(struct ow_slot *slot)
{
	ow_interval_packets_free(slot->page);
	ow_synopsis_free(slot->synopsis);
	ow_fold_steps_done(&slot->steps);
	ow_rda_peel_done(&slot->peel);
	ow_synopsis_free(slot->table);
	ow_synopsis_free(slot->other_table);
	free(slot->asked);
	free(slot->request);
	free(slot->outcome.only_a);
	free(slot->outcome.only_b);
	free(slot->outcome.delay.ns);
	free(slot);
}

void ow_slot_remove(struct ow_exchange *x, struct ow_slot *slot)
{
	size_t at = 0;
	while (at < x->slots && x->slot[at] != slot)
		at++;
	if (at == x->slots)
		return;
	memmove(x->slot + at, x->slot + at + 1, (x->slots - at - 1) * sizeof(void *));
	x->slots--;
	free_slot(slot);
}

/* -- speaking ----------------------------------------------------------------------------------------------------- */

int ow_exchange_say(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message *message, bool request)
{
	uint8_t *frame;
	size_t size;
	int r = ow_message_encode(message, &frame, &size, NULL);
	if (r < 0)
		return r;
	if (slot)
		slot->cost.bytes += size + 4;
	x->sinks.send(x->sinks.arg, frame, size);
	if (request && slot) {
		free(slot->request);
		slot->request = frame;
		slot->request_size = size;
	} else {
		free(frame);
	}
	return 0;
}

void ow_exchange_say_none(struct ow_exchange *x, int64_t interval, const char *reason)
{
	struct ow_message m = {.type = OW_MESSAGE_NONE, .lane = x->options.lane, .interval = interval};
	snprintf(m.text.text, sizeof m.text.text, "%s", reason);
	ow_coder_cut(m.text.text);
	(void)ow_exchange_say(x, NULL, &m, false);
}

static void set_shift(struct ow_exchange *x, unsigned shift)
{
	x->shift = shift;
	if (x->sinks.shift)
		x->sinks.shift(x->sinks.arg, shift);
}

void ow_exchange_raise_shift(struct ow_exchange *x, unsigned shift, int64_t interval)
{
	if (shift > x->shift && interval > x->refined)
		set_shift(x, shift);
}

/*
 * What needed a coarse sample may be over, but neither point can see that alone: each samples coarsely because the
 * other does. So both try a finer one, in the same interval, as both count them alike. Who has no room for it halves
 * its page, and the other is told again.
 */
static void refine_shift(struct ow_exchange *x, int64_t interval)
{
	/* The next interval has begun, and those that begin within the lag are not yet finer either. */
	int64_t guard = 1 + (REFINE_LAG_NS + x->options.length_ns - 1) / x->options.length_ns;
	int64_t period = REFINE_INTERVALS > 4 * guard ? REFINE_INTERVALS : 4 * guard;
	if (!x->shift || interval % period != 0)
		return;
	x->refined = interval + guard;
	set_shift(x, x->shift - 1);
}

/* -- life --------------------------------------------------------------------------------------------------------- */

int ow_exchange_create(const struct ow_exchange_options *options, const struct ow_exchange_sinks *sinks,
                       struct ow_exchange **ret_exchange)
{
	if (options->length_ns < OW_INTERVAL_MIN_NS || options->length_ns > OW_INTERVAL_MAX_NS || options->t0_ns < 0 ||
	    options->pages_max < 1 || options->buckets > OW_MESSAGE_BUCKETS_MAX ||
	    options->sample > OW_MESSAGE_SAMPLE_MAX)
		return -EINVAL;
	struct ow_exchange *x = calloc(1, sizeof *x);
	if (!x)
		return -ENOMEM;
	x->options = *options;
	x->sinks = *sinks;
	x->reconciled = (struct ow_reconciled_options){options->buckets ? options->buckets : OW_RECONCILED_BUCKETS,
	                                               options->sample ? options->sample : OW_RECONCILED_SAMPLE};
	x->next_page = x->asked_until = x->refined = -1;
	x->connected = true;
	x->ahead_ns = INT64_MIN;
	x->expected = NAN;
	int r = options->sending ? ow_sender_create(x) : ow_receiver_create(x);
	if (r < 0) {
		ow_exchange_free(x);
		return r;
	}
	*ret_exchange = x;
	return 0;
}

void ow_exchange_free(struct ow_exchange *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->slots; i++)
		free_slot(x->slot[i]);
	free(x->slot);
	ow_sender_free(x);
	ow_receiver_free(x);
	free(x);
}

static void give_up(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	if (x->options.sending)
		ow_sender_unknown(x, slot, cause);
	else
		ow_receiver_unknown(x, slot, cause);
}

static size_t bytes_of(const struct ow_slot *slot)
{
	const struct ow_interval_packets *page = slot->page;
	if (!page)
		return sizeof *slot;
	return sizeof *slot + sizeof *page + page->count * sizeof *page->stamp + page->copies * sizeof *page->copy;
}

/* The oldest that waits if more wait than there is memory for, else NULL. Results go out in order: what the receiving
 * point has of later intervals waits for the oldest, too. */
static struct ow_slot *too_many(const struct ow_exchange *x, size_t *ret_pages)
{
	size_t pages = 0, bytes = 0;
	struct ow_slot *oldest = NULL;
	for (size_t i = x->slots; i-- > 0;) {
		struct ow_slot *slot = x->slot[i];
		bytes += bytes_of(slot);
		pages += slot->page && slot->stage < OW_STAGE_READY;
		if (x->options.sending ? slot->page && slot->stage < OW_STAGE_READY : !slot->told_final)
			oldest = slot;
	}
	*ret_pages = pages;
	if (pages <= x->options.pages_max || (bytes <= x->retain_bytes && pages <= OW_EXCHANGE_PAGES_MAX))
		return NULL;
	return oldest;
}

static void keep_within(struct ow_exchange *x)
{
	char cause[OW_RESULT_CAUSE];
	size_t pages;
	for (struct ow_slot *oldest; (oldest = too_many(x, &pages));) {
		if (x->connected)
			snprintf(cause, sizeof cause, "%s did not answer while %zu more intervals passed",
			         ow_exchange_peer(x), pages - 1);
		else
			snprintf(cause, sizeof cause,
			         "no connection with %s for longer than memory lasts (%zu intervals)",
			         ow_exchange_peer(x), pages - 1);
		give_up(x, oldest, cause);
	}
}

void ow_exchange_retain(struct ow_exchange *x, size_t bytes)
{
	x->retain_bytes = bytes;
	keep_within(x);
}

static void enter(struct ow_exchange *x, int64_t now_ns)
{
	x->now_ns = now_ns;
	x->entered_ns = ow_clock_steady_ns();
}

int ow_exchange_page(struct ow_exchange *x, struct ow_interval_packets *page, const struct ow_clock_state *clock,
                     int64_t now_ns)
{
	enter(x, now_ns);
	struct ow_slot *slot = NULL;
	bool fits = !x->finished && page->interval >= 0 && page->interval <= OW_MESSAGE_INTERVAL_MAX &&
	            (x->next_page < 0 || page->interval >= x->next_page);
	if (fits)
		slot = ow_slot_find(x, page->interval);
	if (fits && !slot)
		slot = ow_slot_add(x, page->interval);
	if (!slot) {
		ow_interval_packets_free(page);
		return fits ? -ENOMEM : -EINVAL;
	}
	slot->page = page;
	slot->seen = page->count;
	slot->seen_total = page->total_packets > page->count ? page->total_packets : page->count;
	slot->clock = *clock;
	slot->since_ns = now_ns;
	x->next_page = page->interval + 1;
	refine_shift(x, page->interval);
	if (x->options.sending)
		ow_sender_advance(x);
	else
		ow_receiver_push(x);
	keep_within(x);
	return 0;
}

int ow_exchange_frame(struct ow_exchange *x, const uint8_t *frame, size_t size, int64_t now_ns, struct ow_error *err)
{
	struct ow_message message;
	enter(x, now_ns);
	int r = ow_message_decode(frame, size, &message, err);
	if (r < 0)
		return r;
	if (message.lane != x->options.lane)
		r = ow_error_set(err, EPROTO, "message %s: lane %u instead of %u", ow_message_name(message.type),
		                 message.lane, x->options.lane);
	else if (message.interval > (x->next_page < 0 ? 0 : x->next_page) + OW_EXCHANGE_AHEAD_MAX)
		r = ow_error_set(err, EPROTO, "message %s: interval %lld is far in the future",
		                 ow_message_name(message.type), (long long)message.interval);
	else if (x->options.sending)
		r = ow_sender_frame(x, &message, size, err);
	else
		r = ow_receiver_frame(x, &message, err);
	ow_message_done(&message);
	return r;
}

void ow_exchange_connected(struct ow_exchange *x, int64_t now_ns)
{
	enter(x, now_ns);
	x->connected = true;
	/* Now the peer can answer. */
	for (size_t i = 0; i < x->slots; i++)
		x->slot[i]->since_ns = now_ns;
	if (x->options.sending)
		ow_sender_connected(x);
	else
		ow_receiver_connected(x);
}

void ow_exchange_disconnected(struct ow_exchange *x)
{
	x->connected = false;
}

/* What this point has not recorded yet, the other one cannot be blamed for. */
static bool is_waiting(const struct ow_exchange *x, const struct ow_slot *slot)
{
	return x->options.sending ? slot->stage < OW_STAGE_READY && slot->page : !slot->told_final;
}

/* The oldest slot that has waited too long (at_all: that waits), or NULL. */
static struct ow_slot *overdue(const struct ow_exchange *x, bool at_all)
{
	double patience = (double)x->options.patience_ns * (x->options.sending ? 1 : RECEIVER_PATIENCE);
	double settles = (double)x->options.length_ns * x->options.horizon;
	/* Without a connection nobody can answer; that it comes back is worth waiting for while there is memory. */
	if (!x->connected && !x->finished && !at_all)
		return NULL;
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_slot *slot = x->slot[i];
		bool waits = is_waiting(x, slot);
		double limit = patience + (slot->told ? settles : 0);
		if (waits && (at_all || (double)x->now_ns - (double)slot->since_ns > limit))
			return slot;
	}
	return NULL;
}

/* Whoever looks at results during an outage sees that there is one; results that follow replace this. */
static void notice(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_interval_result r;
	ow_exchange_blank(x, slot->interval, &r);
	r.status = OW_RESULT_UNKNOWN;
	r.waiting = true;
	snprintf(r.cause, sizeof r.cause, "no answer from %s yet", ow_exchange_peer(x));
	slot->noticed = true;
	x->sinks.result(x->sinks.arg, &r);
}

static void notice_waiting(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots && x->options.notice_ns; i++) {
		struct ow_slot *slot = x->slot[i];
		if (is_waiting(x, slot) && !slot->told && slot->page && !slot->noticed &&
		    (double)x->now_ns - (double)slot->since_ns > (double)x->options.notice_ns)
			notice(x, slot);
	}
}

void ow_exchange_tick(struct ow_exchange *x, int64_t now_ns)
{
	enter(x, now_ns);
	char cause[OW_RESULT_CAUSE];
	snprintf(cause, sizeof cause, "no answer from %s", ow_exchange_peer(x));
	for (struct ow_slot *slot; (slot = overdue(x, false));)
		give_up(x, slot, cause);
	notice_waiting(x);
}

void ow_exchange_abandon(struct ow_exchange *x, const char *cause, int64_t now_ns)
{
	enter(x, now_ns);
	ow_exchange_finish(x, cause);
	for (struct ow_slot *slot; (slot = overdue(x, true));)
		give_up(x, slot, cause);
}

void ow_exchange_finish(struct ow_exchange *x, const char *why)
{
	if (x->finished)
		return;
	x->finished = true;
	snprintf(x->ended, sizeof x->ended, "%s", why ? why : "the recording has ended");
	if (x->options.sending)
		ow_sender_finish(x);
	else
		ow_receiver_finish(x);
}

bool ow_exchange_done(const struct ow_exchange *x)
{
	return x->finished && x->slots == 0 && (x->final || !x->options.sending);
}

int64_t ow_exchange_ahead_ns(const struct ow_exchange *x)
{
	return x->ahead_ns;
}

void ow_exchange_total(const struct ow_exchange *x, struct ow_interval_result *ret_total)
{
	struct ow_interval_result total, blank;
	if (x->options.sending)
		ow_run_total(x->settle, &total);
	else
		ow_run_total_result(x->total, &total);
	ow_exchange_blank(x, 0, &blank);
	memcpy(total.segment, blank.segment, sizeof total.segment);
	memcpy(total.class_name, blank.class_name, sizeof total.class_name);
	memcpy(total.from, blank.from, sizeof total.from);
	memcpy(total.to, blank.to, sizeof total.to);
	*ret_total = total;
}
