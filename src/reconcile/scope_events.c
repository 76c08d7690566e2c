/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the flows of one event together. */
#include "reconcile/scope_events.h"

#define CALLS_MAX 3

static unsigned common_bits(const uint8_t *a, const uint8_t *b, unsigned most)
{
	unsigned bits = 0;
	while (bits < most && (a[bits / 8] >> (7 - bits % 8) & 1) == (b[bits / 8] >> (7 - bits % 8) & 1))
		bits++;
	return bits;
}

/* Bits that the destinations of an event have in common. */
static unsigned least_bits(const struct ow_scope_event *event)
{
	return event->version == 6 ? 32 : 16;
}

static bool together(const struct ow_scope_event *a, const struct ow_scope_event *b)
{
	if (a->kind != b->kind || a->version != b->version || a->ttl_change != b->ttl_change)
		return false;
	if (!a->bits || !b->bits)
		return a->bits == b->bits;
	return common_bits(a->network, b->network, least_bits(a)) == least_bits(a);
}

static bool is_before(const struct ow_scope_event *a, const struct ow_scope_event *b)
{
	return a->interval != b->interval ? a->interval < b->interval : a->time_ns < b->time_ns;
}

static void merge(struct ow_scope_event *sum, const struct ow_scope_event *event)
{
	unsigned most = sum->bits < event->bits ? sum->bits : event->bits;
	sum->bits = (uint8_t)common_bits(sum->network, event->network, most);
	if (sum->version != event->version || sum->bits < 8)
		sum->bits = 0;
	for (unsigned bit = sum->bits; bit < 8 * sizeof sum->network; bit++)
		sum->network[bit / 8] &= (uint8_t) ~(1u << (7 - bit % 8));
	sum->flows += event->flows;
	if (is_before(event, sum)) {
		sum->interval = event->interval;
		sum->time_ns = event->time_ns;
	}
}

void ow_scope_events_add(struct ow_scope_events *events, const struct ow_scope_event *event)
{
	struct ow_scope_pending *same_kind = NULL;
	for (size_t i = 0; i < events->count; i++) {
		struct ow_scope_pending *pending = &events->pending[i];
		if (together(&pending->event, event)) {
			merge(&pending->event, event);
			pending->grew = true;
			return;
		}
		if (pending->event.kind == event->kind)
			same_kind = pending;
	}
	if (events->count < OW_SCOPE_EVENTS_MAX)
		events->pending[events->count++] = (struct ow_scope_pending){.event = *event, .grew = true};
	else if (same_kind)
		merge(&same_kind->event, event);
}

size_t ow_scope_events_take(struct ow_scope_events *events, struct ow_scope_event *ret_events)
{
	size_t kept = 0, ready = 0;
	for (size_t i = 0; i < events->count; i++) {
		struct ow_scope_pending *pending = &events->pending[i];
		if (pending->grew && ++pending->calls < CALLS_MAX) {
			pending->grew = false;
			events->pending[kept++] = *pending;
		} else {
			ret_events[ready++] = pending->event;
		}
	}
	events->count = kept;
	return ready;
}
