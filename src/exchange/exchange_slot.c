/* SPDX-License-Identifier: Apache-2.0 */
/* The intervals of a lane in progress, and sending to the other point (exchange_private.h). */
#include "base/array.h"
#include "base/coder.h"
#include "exchange/exchange_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ow_exchange_peer(const struct ow_exchange *x)
{
	return x->options.sending ? x->options.to : x->options.from;
}

void ow_exchange_blank(const struct ow_exchange *x, int64_t interval, struct ow_interval_result *ret_result)
{
	const struct ow_exchange_options *o = &x->options;
	struct ow_interval_result *r = ret_result;
	int64_t start_ns = (int64_t)((uint64_t)o->t0_ns + (uint64_t)interval * (uint64_t)o->length_ns);
	ow_result_blank(interval, start_ns, o->length_ns, r);
	memcpy(r->segment, o->segment, sizeof r->segment);
	memcpy(r->class_name, o->class_name, sizeof r->class_name);
	memcpy(r->from, o->from, sizeof r->from);
	memcpy(r->to, o->to, sizeof r->to);
}

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
	if (OW_GROW(x->slot, x->room, x->slots + 1) < 0)
		return NULL;
	struct ow_slot *slot = calloc(1, x->slot_size);
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

void ow_slot_free(struct ow_exchange *x, struct ow_slot *slot)
{
	if (x->role->slot_done)
		x->role->slot_done(x, slot);
	ow_interval_packets_free(slot->packets);
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
	ow_slot_free(x, slot);
}

int ow_exchange_say(struct ow_exchange *x, const struct ow_message *message)
{
	uint8_t *frame;
	size_t size;
	int r = ow_message_encode(message, &frame, &size, NULL);
	if (r < 0)
		return r;
	x->sinks.send(x->sinks.arg, frame, size);
	free(frame);
	return 0;
}

void ow_exchange_say_none(struct ow_exchange *x, int64_t interval, const char *reason)
{
	struct ow_message m = {.type = OW_MESSAGE_NONE, .lane = x->options.lane, .interval = interval};
	snprintf(m.text.text, sizeof m.text.text, "%s", reason);
	ow_coder_cut(m.text.text);
	(void)ow_exchange_say(x, &m);
}

void ow_exchange_set_shift(struct ow_exchange *x, unsigned shift)
{
	x->shift = shift;
	if (x->sinks.shift)
		x->sinks.shift(x->sinks.arg, shift);
}

void ow_exchange_raise_shift(struct ow_exchange *x, unsigned shift, int64_t interval)
{
	if (shift > x->shift && interval > x->refined)
		ow_exchange_set_shift(x, shift);
}
