/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/scope_verdict.h"

/*
 * Internal to scope: events that grow. Flows of one kind of event whose destinations share 16 bits (IPv6: 32) are told
 * together. An event is ready when nothing was added for a call, or after three calls.
 */
struct ow_scope_events {
	struct ow_scope_pending {
		struct ow_scope_event event;
		unsigned calls; /* for which it has waited */
		bool grew;
	} pending[OW_SCOPE_EVENTS_MAX];
	size_t count;
};

void ow_scope_events_add(struct ow_scope_events *events, const struct ow_scope_event *event);
size_t ow_scope_events_take(struct ow_scope_events *events, struct ow_scope_event *ret_events);
