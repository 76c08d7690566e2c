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

/* Returns the bytes of the frame. */
static size_t say_scope(struct ow_exchange *x, int64_t interval, const struct ow_scope_update *update)
{
	struct ow_message m = {.type = OW_MESSAGE_SCOPE, .lane = x->options.lane, .interval = interval};
	uint8_t *bytes = NULL, *frame = NULL;
	size_t size = 0;
	if (ow_message_of_scope_update(update, &m.scope, &bytes) == 0 &&
	    ow_message_encode(&m, &frame, &size, NULL) == 0) {
		x->sinks.send(x->sinks.arg, frame, size);
		size += 4;
	}
	free(frame);
	free(bytes);
	return size;
}

size_t ow_sender_announce(struct ow_exchange *x, struct ow_scope_announcer *announcer, const struct ow_slot *slot)
{
	const struct ow_scope_update *update = NULL;
	const struct ow_lane_flows *flows = &slot->page->flows;
	size_t count = slot->page->blind[0] ? 0 : flows->count;
	int r = ow_scope_announce(announcer, slot->interval, flows->flow, count, &update);
	if (r == -ENOMEM || r == -ENOSPC) {
		ow_scope_announcer_reset(announcer);
		r = ow_scope_announce(announcer, slot->interval, flows->flow, count, &update);
	}
	/* If this fails the receiver waits, and says that it got no answer. */
	return r == 0 ? say_scope(x, slot->interval, update) : 0;
}

void ow_sender_announce_again(struct ow_exchange *x, const struct ow_scope_announcer *announcer)
{
	int64_t interval;
	const struct ow_scope_update *update;
	for (size_t n = 0; (update = ow_scope_in_flight(announcer, n, &interval)); n++)
		(void)say_scope(x, interval, update);
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

/* Moves the packets of flows that are not in scope out of the page. */
static int put_aside(struct ow_comparison *c)
{
	struct ow_interval_packets *page = c->slot.page;
	size_t out = 0, kept = 0;
	for (size_t i = 0; i < page->count; i++)
		out += !page->stamp[i].flow || !c->in_scope[page->stamp[i].flow - 1];
	if (!out)
		return 0;
	c->aside = malloc(out * sizeof *c->aside);
	if (!c->aside)
		return -ENOMEM;
	for (size_t i = 0; i < page->count; i++) {
		if (page->stamp[i].flow && c->in_scope[page->stamp[i].flow - 1])
			page->stamp[kept++] = page->stamp[i];
		else
			c->aside[c->asides++] = page->stamp[i];
	}
	page->count = kept;
	return 0;
}

int ow_sender_confirm(struct ow_comparison *c, struct ow_scope_announcer *announcer)
{
	const struct ow_lane_flows *flows = &c->slot.page->flows;
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
	const struct ow_interval_packets *page = c->slot.page;
	size_t count = page->count + c->asides;
	struct ow_keyset only = {0};
	struct ow_sighting *packets = malloc((count + 1) * sizeof *packets);
	uint8_t *matched = malloc(count + 1);
	if (!packets || !matched || list_only(&c->outcome, &only) < 0) {
		ow_keyset_done(&only);
		free(packets);
		free(matched);
		return -ENOMEM;
	}
	if (page->count)
		memcpy(packets, page->stamp, page->count * sizeof *packets);
	if (c->asides) {
		memcpy(packets + page->count, c->aside, c->asides * sizeof *packets);
		ow_sightings_sort(packets, count);
	}
	memset(matched, 1, count);
	for (size_t i = 0; c->outcome.only_as && i < count; i++)
		matched[i] = !ow_keyset_has(&only, key_of(c->x->method->name(c, packets[i].id), packets[i].time_ns));
	ow_keyset_done(&only);
	*ret_packets = packets;
	*ret_matched = matched;
	return 0;
}
