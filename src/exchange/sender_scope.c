/* SPDX-License-Identifier: Apache-2.0 */
/* Scope at the sender: announces flows, and compares the packets of those that the receiver has. */
#include "exchange/exchange_scope.h"

#include "base/hash.h"
#include "base/random.h"
#include "exchange/message_scope.h"
#include "exchange/method.h"
#include "reconcile/keyset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What arrives by so much before its interval, by clocks that differ and jitter, still finds it. */
#define EARLY_NS INT64_C(100000000)

uint32_t ow_exchange_hold(const struct ow_exchange *x)
{
	int64_t hold = (EARLY_NS + x->options.length_ns - 1) / x->options.length_ns;
	return hold > OW_SCOPE_HOLD_MAX ? OW_SCOPE_HOLD_MAX : (uint32_t)hold;
}

void ow_exchange_scope_options(const struct ow_exchange *x, struct ow_scope_options *ret_options)
{
	*ret_options = (struct ow_scope_options){
		.hold = ow_exchange_hold(x), .overlap = x->options.horizon, .secret = ow_random_secret(x)};
}

/* idle: intervals directly before with the same update. Returns the bytes of the frame. */
static size_t say_scope(struct ow_exchange *x, int64_t interval, const struct ow_scope_update *update, uint32_t idle,
                        bool quiet)
{
	struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = x->options.lane, .interval = interval};
	uint8_t *bytes = NULL, *frame = NULL;
	size_t size = 0;
	int r = ow_message_of_scope_update(update, &m.scope, &bytes);
	m.scope.idle = idle;
	m.scope.quiet = quiet;
	if (r == 0 && ow_message_encode(&m, &frame, &size, NULL) == 0) {
		x->sinks.send(x->sinks.arg, frame, size);
		size += 4;
	}
	free(frame);
	free(bytes);
	return size;
}

/* Results of intervals without anything may be late by this, */
#define QUIET_NS INT64_C(4000000000)

/* and so many of them are announced together; less than 2: each at once. Fewer than may wait for the other point. */
static uint32_t quiet_max(const struct ow_exchange *x)
{
	int64_t most = QUIET_NS / x->options.length_ns;
	most = most < (int64_t)x->options.intervals_max - 1 ? most : (int64_t)x->options.intervals_max - 1;
	return most < OW_MESSAGE_IDLE_MAX / 2 ? (uint32_t)most : OW_MESSAGE_IDLE_MAX / 2;
}

static bool is_idle(const struct ow_interval_packets *packets)
{
	return !packets->total_packets && !packets->count && !packets->ring_drops && !packets->unreadable &&
	       !packets->blind[0];
}

/* Whether the last two updates of the announcer are empty and the same. */
static bool says_nothing_new(const struct ow_scope_announcer *announcer)
{
	int64_t interval;
	size_t count = ow_scope_flights(announcer);
	const struct ow_scope_update *now = count ? ow_scope_in_flight(announcer, count - 1, &interval) : NULL;
	const struct ow_scope_update *before = count > 1 ? ow_scope_in_flight(announcer, count - 2, &interval) : now;
	return now && !now->reset && !now->hot.count && !now->fine.count && !now->keys.count &&
	       now->generation == before->generation && now->digest == before->digest;
}

/* Announces what is held; newer: updates that came after it. */
static void say_held(struct ow_exchange *x, const struct ow_scope_announcer *announcer, struct ow_sender_quiet *quiet,
                     size_t newer)
{
	int64_t interval;
	size_t count = ow_scope_flights(announcer);
	const struct ow_scope_update *last =
		count > newer ? ow_scope_in_flight(announcer, count - 1 - newer, &interval) : NULL;
	if (quiet->held && last)
		(void)say_scope(x, interval, last, quiet->held - 1, true);
	quiet->held = 0;
}

void ow_sender_announce_held(struct ow_exchange *x, const struct ow_scope_announcer *announcer,
                             struct ow_sender_quiet *quiet)
{
	say_held(x, announcer, quiet, 0);
}

/* The flows of the last interval are known to the announcer: says so, or waits for the next one. */
static size_t say_or_hold(struct ow_exchange *x, const struct ow_scope_announcer *announcer,
                          struct ow_sender_quiet *quiet, const struct ow_slot *slot,
                          const struct ow_scope_update *update)
{
	/* Results of what was sent before wait for intervals as many as the horizon. */
	bool calm = quiet->idle > x->options.horizon && quiet_max(x) > 1;
	bool same = says_nothing_new(announcer);
	/* All lanes at the same time, so that they share packets. */
	bool due = calm && slot->packets->start_ns / x->options.length_ns % quiet_max(x) == quiet_max(x) - 1;
	if (calm && same && !due && x->connected && slot->interval > quiet->asked) {
		quiet->held++;
		return 0;
	}
	if (!same)
		say_held(x, announcer, quiet, 1);
	uint32_t held = quiet->held;
	quiet->held = 0;
	return say_scope(x, slot->interval, update, held, calm);
}

size_t ow_sender_announce(struct ow_exchange *x, struct ow_scope_announcer *announcer, struct ow_sender_quiet *quiet,
                          const struct ow_slot *slot)
{
	quiet->idle = is_idle(slot->packets) ? quiet->idle + 1 : 0;
	if (!quiet->idle)
		ow_sender_announce_held(x, announcer, quiet);
	const struct ow_scope_update *update = NULL;
	const struct ow_lane_flows *flows = &slot->packets->flows;
	size_t count = slot->packets->blind[0] ? 0 : flows->count;
	int r = ow_scope_announce(announcer, slot->interval, flows->flow, count, &update);
	if (r == -ENOMEM || r == -ENOSPC) {
		ow_scope_announcer_reset(announcer);
		quiet->held = 0;
		r = ow_scope_announce(announcer, slot->interval, flows->flow, count, &update);
	}
	/* If this fails the receiver waits, and says that it got no answer. */
	return r == 0 ? say_or_hold(x, announcer, quiet, slot, update) : 0;
}

static size_t say_list(struct ow_exchange *x, int64_t interval, const struct ow_scope_update *update)
{
	struct ow_scope_update list = *update;
	list.capacity = 0;
	return say_scope(x, interval, &list, 0, false);
}

size_t ow_sender_announce_list(struct ow_exchange *x, const struct ow_scope_announcer *announcer, int64_t interval)
{
	int64_t i;
	const struct ow_scope_update *update;
	for (size_t n = 0; (update = ow_scope_in_flight(announcer, n, &i)); n++) {
		if (i == interval)
			return say_list(x, i, update);
	}
	return 0;
}

void ow_sender_announce_again(struct ow_exchange *x, const struct ow_scope_announcer *announcer)
{
	int64_t interval;
	const struct ow_scope_update *update;
	for (size_t n = 0; (update = ow_scope_in_flight(announcer, n, &interval)); n++)
		(void)say_list(x, interval, update);
}

int ow_sender_take_answer(struct ow_comparison *c, const struct ow_message_scope_answer *message, struct ow_error *err)
{
	if (!ow_exchange_has_keys(c->x) || c->confirmed)
		return 0;
	if (!message->there)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: no answer to SCOPE");
	struct ow_scope_answer answer = {0};
	int r = ow_scope_answer_of_message(message, &answer, err);
	if (r < 0) {
		ow_scope_answer_done(&answer);
		return r;
	}
	ow_scope_answer_done(&c->answer);
	c->answer = answer;
	return 0;
}

/* Takes out the packets of flows that are not in scope. */
static int put_aside(struct ow_comparison *c)
{
	struct ow_interval_packets *packets = c->slot.packets;
	size_t out = 0, kept = 0;
	for (size_t i = 0; i < packets->count; i++)
		out += !packets->sighting[i].flow || !c->in_scope[packets->sighting[i].flow - 1];
	if (!out)
		return 0;
	c->aside = malloc(out * sizeof *c->aside);
	if (!c->aside)
		return -ENOMEM;
	for (size_t i = 0; i < packets->count; i++) {
		if (packets->sighting[i].flow && c->in_scope[packets->sighting[i].flow - 1])
			packets->sighting[kept++] = packets->sighting[i];
		else
			c->aside[c->asides++] = packets->sighting[i];
	}
	packets->count = kept;
	return 0;
}

int ow_sender_confirm(struct ow_comparison *c, struct ow_scope_announcer *announcer)
{
	const struct ow_lane_flows *flows = &c->slot.packets->flows;
	struct ow_error err;
	if (!ow_exchange_has_keys(c->x) || c->confirmed)
		return 0;
	c->confirmed = true;
	c->in_scope = calloc(flows->count + (size_t)1, 1);
	if (!c->in_scope)
		return -ENOMEM;
	int r = ow_scope_confirm(announcer, c->slot.interval, &c->answer, flows->flow, flows->count, c->in_scope, &err);
	if (r == -EINVAL)
		r = -ESTALE;
	if (r == 0)
		r = put_aside(c);
	return r;
}

int ow_sender_add_aside(struct ow_comparison *c)
{
	struct ow_outcome *o = &c->outcome;
	if (!c->asides)
		return 0;
	struct ow_sighting *only = realloc(o->only_a, (o->only_as + c->asides) * sizeof *only);
	if (!only)
		return -ENOMEM;
	o->only_a = only;
	for (size_t i = 0; i < c->asides; i++)
		only[o->only_as++] = (struct ow_sighting){c->x->method->name(c, c->aside[i].id), c->aside[i].time_ns,
		                                          c->aside[i].flow};
	return 0;
}

/* Identical packets have one name; which of them is meant its time tells. */
static uint64_t key_of(uint64_t name, int64_t time_ns)
{
	return ow_mix64(name + ow_mix64((uint64_t)time_ns));
}

static int list_only(const struct ow_outcome *o, struct ow_keyset *only)
{
	int r = 0;
	for (size_t i = 0; i < o->only_as && r == 0; i++)
		r = ow_keyset_add(only, key_of(o->only_a[i].id, o->only_a[i].time_ns));
	return r;
}

int ow_sender_matched(const struct ow_comparison *c, struct ow_sighting **ret_packets, uint8_t **ret_matched)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	size_t count = packets->count + c->asides;
	struct ow_keyset only = {0};
	struct ow_sighting *all = malloc((count + 1) * sizeof *all);
	uint8_t *matched = malloc(count + 1);
	if (!all || !matched || list_only(&c->outcome, &only) < 0) {
		ow_keyset_done(&only);
		free(all);
		free(matched);
		return -ENOMEM;
	}
	if (packets->count)
		memcpy(all, packets->sighting, packets->count * sizeof *all);
	if (c->asides) {
		memcpy(all + packets->count, c->aside, c->asides * sizeof *all);
		ow_sightings_sort(all, count);
	}
	memset(matched, 1, count);
	for (size_t i = 0; c->outcome.only_as && i < count; i++)
		matched[i] = !ow_keyset_has(&only, key_of(c->x->method->name(c, all[i].id), all[i].time_ns));
	ow_keyset_done(&only);
	*ret_packets = all;
	*ret_matched = matched;
	return 0;
}
