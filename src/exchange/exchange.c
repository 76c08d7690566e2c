/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of a lane: the intervals in progress, and their roles (exchange_private.h). */
#include "exchange/exchange.h"

#include "exchange/method.h"
#include "result/cause.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A finer sample is tried every so many intervals; recorders use it within this time. */
#define REFINE_INTERVALS 16
#define REFINE_LAG_NS    INT64_C(100000000)

/*
 * The reason for a coarse sample may be over, but neither point can see that alone: each samples coarsely because the
 * other does. So both try a finer one, in the same interval, because both count them in the same way. A point without
 * room for it halves its sample, and the other is informed again.
 */
static void refine_shift(struct ow_exchange *x, int64_t interval)
{
	/* The next interval has begun, and those that begin within the lag are not finer yet. */
	int64_t guard = 1 + (REFINE_LAG_NS + x->options.length_ns - 1) / x->options.length_ns;
	int64_t period = REFINE_INTERVALS > 4 * guard ? REFINE_INTERVALS : 4 * guard;
	if (!x->shift || interval % period != 0)
		return;
	x->refined = interval + guard;
	ow_exchange_set_shift(x, x->shift - 1);
}

/* -- life --------------------------------------------------------------------------------------------------------- */

int ow_exchange_create(const struct ow_exchange_options *options, const struct ow_exchange_sinks *sinks,
                       struct ow_exchange **ret_exchange)
{
	if (options->length_ns < OW_INTERVAL_MIN_NS || options->length_ns > OW_INTERVAL_MAX_NS || options->t0_ns < 0 ||
	    options->intervals_max < 1 || options->buckets > OW_MESSAGE_BUCKETS_MAX ||
	    options->sample > OW_MESSAGE_SAMPLE_MAX)
		return -EINVAL;
	const struct ow_role *role = options->sending ? &ow_sender_role : &ow_receiver_role;
	struct ow_exchange *x = calloc(1, role->size);
	if (!x)
		return -ENOMEM;
	x->role = role;
	x->method = options->method == OW_METHOD_FOLD ? &ow_fold_method : &ow_rda_method;
	x->options = *options;
	x->options.buckets = options->buckets ? options->buckets : OW_RECONCILED_BUCKETS;
	x->options.sample = options->sample ? options->sample : OW_RECONCILED_SAMPLE;
	x->sinks = *sinks;
	x->next_interval = x->refined = -1;
	x->connected = true;
	x->ahead_ns = INT64_MIN;
	int r = role->create(x);
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
		ow_slot_free(x, x->slot[i]);
	free(x->slot);
	x->role->done(x);
	free(x);
}

static size_t bytes_of(const struct ow_exchange *x, const struct ow_slot *slot)
{
	const struct ow_interval_packets *packets = slot->packets;
	if (!packets)
		return x->slot_size;
	return x->slot_size + sizeof *packets + packets->count * sizeof *packets->sighting +
	       packets->copies * sizeof *packets->copy;
}

/*
 * The oldest waiting interval if more wait than there is memory for, otherwise NULL. Results come in order: what the
 * receiving point has of later intervals waits for the oldest as well.
 */
static struct ow_slot *too_many(const struct ow_exchange *x, size_t *ret_intervals)
{
	size_t intervals = 0, bytes = 0;
	struct ow_slot *oldest = NULL;
	for (size_t i = x->slots; i-- > 0;) {
		struct ow_slot *slot = x->slot[i];
		bytes += bytes_of(x, slot);
		if (!x->role->waits(slot))
			continue;
		intervals += slot->packets != NULL;
		oldest = slot;
	}
	*ret_intervals = intervals;
	if (intervals <= x->options.intervals_max ||
	    (bytes <= x->retain_bytes && intervals <= OW_EXCHANGE_INTERVALS_MAX))
		return NULL;
	return oldest;
}

static void keep_within(struct ow_exchange *x)
{
	char cause[OW_RESULT_CAUSE];
	size_t intervals;
	for (struct ow_slot *oldest; (oldest = too_many(x, &intervals));) {
		if (x->connected)
			snprintf(cause, sizeof cause, ow_cause_silent, ow_exchange_peer(x), intervals - 1);
		else
			snprintf(cause, sizeof cause, ow_cause_disconnected, ow_exchange_peer(x), intervals - 1);
		x->role->unknown(x, oldest, cause);
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
	x->entered_ns = ow_exchange_steady_ns(x);
}

int ow_exchange_packets(struct ow_exchange *x, struct ow_interval_packets *packets, const struct ow_clock_state *clock,
                        int64_t now_ns)
{
	enter(x, now_ns);
	struct ow_slot *slot = NULL;
	bool fits = !x->finished && packets->interval >= 0 && packets->interval <= OW_MESSAGE_INTERVAL_MAX &&
	            (x->next_interval < 0 || packets->interval >= x->next_interval);
	if (fits)
		slot = ow_slot_find(x, packets->interval);
	if (fits && !slot)
		slot = ow_slot_add(x, packets->interval);
	if (!slot) {
		ow_interval_packets_free(packets);
		return fits ? -ENOMEM : -EINVAL;
	}
	slot->packets = packets;
	slot->clock = *clock;
	slot->since_ns = now_ns;
	x->next_interval = packets->interval + 1;
	refine_shift(x, packets->interval);
	x->role->packets(x, slot);
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
	else if (message.interval > (x->next_interval < 0 ? 0 : x->next_interval) + OW_EXCHANGE_AHEAD_MAX)
		r = ow_error_set(err, EPROTO, "message %s: interval %lld is far in the future",
		                 ow_message_name(message.type), (long long)message.interval);
	else
		r = x->role->frame(x, &message, size, err);
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
	x->role->connected(x);
}

void ow_exchange_disconnected(struct ow_exchange *x)
{
	x->connected = false;
}

/* The oldest slot that has waited too long (at_all: that waits), or NULL. */
static struct ow_slot *overdue(const struct ow_exchange *x, bool at_all)
{
	double patience = (double)x->options.patience_ns * x->role->patience;
	double settles = (double)x->options.length_ns * x->options.horizon;
	/* Without a connection there can be no answer; the interval waits for it while there is memory. */
	if (!x->connected && !x->finished && !at_all)
		return NULL;
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_slot *slot = x->slot[i];
		/* If the packets are gone, the result is provisional, and the final one comes later. */
		double limit = patience + (slot->packets ? 0 : settles);
		if (x->role->waits(slot) && (at_all || (double)x->now_ns - (double)slot->since_ns > limit))
			return slot;
	}
	return NULL;
}

/* Makes an outage visible in the results; later results replace this one. */
static void notice(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_interval_result r;
	ow_exchange_blank(x, slot->interval, &r);
	r.status = OW_RESULT_UNKNOWN;
	r.waiting = true;
	snprintf(r.cause, sizeof r.cause, ow_cause_no_answer_yet, ow_exchange_peer(x));
	slot->noticed = true;
	x->sinks.result(x->sinks.arg, &r);
}

static void notice_waiting(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots && x->options.notice_ns; i++) {
		struct ow_slot *slot = x->slot[i];
		if (x->role->waits(slot) && slot->packets && !slot->noticed &&
		    (double)x->now_ns - (double)slot->since_ns > (double)x->options.notice_ns)
			notice(x, slot);
	}
}

void ow_exchange_tick(struct ow_exchange *x, int64_t now_ns)
{
	enter(x, now_ns);
	char cause[OW_RESULT_CAUSE];
	snprintf(cause, sizeof cause, ow_cause_no_answer, ow_exchange_peer(x));
	for (struct ow_slot *slot; (slot = overdue(x, false));)
		x->role->unknown(x, slot, cause);
	notice_waiting(x);
}

void ow_exchange_abandon(struct ow_exchange *x, const char *cause, int64_t now_ns)
{
	enter(x, now_ns);
	ow_exchange_finish(x, cause);
	for (struct ow_slot *slot; (slot = overdue(x, true));)
		x->role->unknown(x, slot, cause);
}

void ow_exchange_finish(struct ow_exchange *x, const char *why)
{
	if (x->finished)
		return;
	x->finished = true;
	snprintf(x->ended, sizeof x->ended, "%s", why ? why : ow_cause_recording_ended);
	x->role->finish(x);
}

bool ow_exchange_done(const struct ow_exchange *x)
{
	return x->finished && x->slots == 0;
}

int64_t ow_exchange_ahead_ns(const struct ow_exchange *x)
{
	return x->ahead_ns;
}

void ow_exchange_total(const struct ow_exchange *x, struct ow_interval_result *ret_total)
{
	struct ow_interval_result blank;
	x->role->total(x, ret_total);
	ow_exchange_blank(x, 0, &blank);
	ow_result_name_like(ret_total, &blank);
}
