/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "result/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A result in which every field has a value that no other field has, for all ways out and in. */

/* The nth field; odd values are known, the others have a reason each. */
static inline struct ow_value every_value(unsigned n, bool bounds)
{
	double value = 1000.25 + n;
	if (n % 2 == 0)
		return ow_value_none((enum ow_reason)(OW_REASON_NO_COMMON_BUCKET + (int)(n % 20)));
	return bounds ? (struct ow_value){OW_VALUE_ESTIMATED, value, value - 0.5, value + 0.125, OW_NO_REASON}
	              : ow_value_exact(value);
}

static inline void every_fill(const struct ow_field *field, unsigned n, void *member)
{
	struct ow_value *value = member;
	switch (field->type) {
	case OW_FIELD_NAME:
	case OW_FIELD_TEXT:
		snprintf(member, field->size, "text %u of \"%s\"", n, field->json);
		break;
	case OW_FIELD_INTEGER:
		*(int64_t *)member = 1000000 + n;
		break;
	case OW_FIELD_FLAG:
		*(bool *)member = true;
		break;
	case OW_FIELD_STATUS:
		*(enum ow_result_status *)member = OW_RESULT_PARTIAL;
		break;
	case OW_FIELD_COUNT:
		*(uint64_t *)member = 100 + n;
		break;
	case OW_FIELD_SHIFT:
	case OW_FIELD_NUMBER:
		*(uint32_t *)member = n % 40;
		break;
	case OW_FIELD_SHARE:
		*(double *)member = 1.0 / (1 + n);
		break;
	case OW_FIELD_VALUE:
		*value = every_value(n, !(field->flags & OW_FIELD_NO_BOUNDS));
		break;
	case OW_FIELD_QUANTILES:
		for (unsigned q = 0; q < OW_QUANTILES; q++)
			value[q] = every_value(2 * (n + q) + 1, true);
		break;
	case OW_FIELD_CLOCK:
		*(struct ow_clock_state *)member = (struct ow_clock_state){true, 5000 + n};
		break;
	default: /* follows from others */
		break;
	}
}

/* Counts are conserved. more: other values of the same fields. */
static inline struct ow_interval_result every_field(unsigned more)
{
	struct ow_interval_result r = {.length_ns = 0};
	for (size_t i = 0; i < ow_field_count; i++)
		every_fill(&ow_fields[i], (unsigned)i + more, ow_field_at(&ow_fields[i], &r));
	r.duplicated = r.extra - 1;
	r.absent = r.unshared_sent - 1;
	r.lost_whole_flows = r.lost - 1;
	r.ambiguous = r.matched - 1;
	r.intervals = r.intervals_partial + r.intervals_unknown + 1;
	r.sent = r.matched + r.late + r.lost + r.pending;
	r.received = r.matched + r.late_received + r.extra;
	uint64_t delays = (r.matched + r.late - r.ambiguous) << r.sample_shift;
	ow_delay_histogram_sample((const int64_t[]){-5, 1000 + more, 5000000}, 3, delays, &r.delays);
	return r;
}

static inline void every_same_value(const char *name, const struct ow_value *a, const struct ow_value *b)
{
	if (a->status != b->status || a->reason != b->reason ||
	    (a->status != OW_VALUE_NONE && (a->value != b->value || a->low != b->low || a->high != b->high)))
		fail_msg("%s: %d %g [%g, %g] %s became %d %g [%g, %g] %s", name, a->status, a->value, a->low, a->high,
		         ow_reason_text(a->reason), b->status, b->value, b->low, b->high, ow_reason_text(b->reason));
}

static inline void every_same(const struct ow_field *field, const struct ow_interval_result *a,
                              const struct ow_interval_result *b)
{
	const void *from = ow_field_of(field, a), *to = ow_field_of(field, b);
	const struct ow_clock_state *clock = from, *other = to;
	switch (field->type) {
	case OW_FIELD_NAME:
	case OW_FIELD_TEXT:
		assert_string_equal(from, to);
		break;
	case OW_FIELD_VALUE:
		every_same_value(field->json, from, to);
		break;
	case OW_FIELD_QUANTILES:
		for (unsigned q = 0; q < OW_QUANTILES; q++)
			every_same_value(field->json, (const struct ow_value *)from + q,
			                 (const struct ow_value *)to + q);
		break;
	case OW_FIELD_CLOCK:
		if (clock->synchronised != other->synchronised || clock->error_ns != other->error_ns)
			fail_msg("%s differs", field->json);
		break;
	default:
		if (memcmp(from, to, field->size) != 0)
			fail_msg("%s differs", field->json);
	}
}
