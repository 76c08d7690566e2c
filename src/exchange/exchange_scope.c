/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets and flows of an interval both points have. */
#include "exchange/exchange_scope.h"

#include "base/hash.h"
#include "exchange/method.h"
#include "reconcile/keyset.h"

#include <stdlib.h>
#include <string.h>

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

uint8_t *ow_scope_matched(const struct ow_comparison *c)
{
	const struct ow_interval_packets *page = c->slot.page;
	struct ow_keyset only = {0};
	uint8_t *matched = malloc(page->count + 1);
	if (!matched || list_only(&c->outcome, &only) < 0) {
		ow_keyset_done(&only);
		free(matched);
		return NULL;
	}
	memset(matched, 1, page->count + 1);
	for (size_t i = 0; c->outcome.only_as && i < page->count; i++) {
		uint64_t name = c->x->method->name(c, page->stamp[i].id);
		matched[i] = !ow_keyset_has(&only, key_of(name, page->stamp[i].time_ns));
	}
	ow_keyset_done(&only);
	return matched;
}
