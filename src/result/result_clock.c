/* SPDX-License-Identifier: Apache-2.0 */
#include "result/result_clock.h"

#include <math.h>

/* The smallest delay that is known, or NULL. */
static const struct ow_value *smallest(const struct ow_interval_result *r)
{
	if (r->min_ns.status != OW_VALUE_NONE)
		return &r->min_ns;
	if (r->quantile_ns[OW_Q50].status != OW_VALUE_NONE)
		return &r->quantile_ns[OW_Q50];
	return r->mean_ns.status != OW_VALUE_NONE ? &r->mean_ns : NULL;
}

void ow_result_clock_words(const struct ow_interval_result *r, const char *to, struct ow_clock_words *ret_words)
{
	const struct ow_clock_state *a = &r->clock_from, *b = &r->clock_to;
	const struct ow_value *least = smallest(r);
	bool known = a->synchronised && b->synchronised && a->error_ns != OW_CLOCK_UNKNOWN &&
	             b->error_ns != OW_CLOCK_UNKNOWN;
	ow_clock_words(least ? least->value : NAN, r->mean_ns.status != OW_VALUE_NONE ? r->mean_ns.value : NAN,
	               known ? (double)a->error_ns + (double)b->error_ns : NAN, to, ret_words);
}
