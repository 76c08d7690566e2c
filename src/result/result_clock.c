/* SPDX-License-Identifier: Apache-2.0 */
#include "result/result_clock.h"

#include "base/time.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The smallest delay that is known, or NULL. */
static const struct ow_value *smallest(const struct ow_interval_result *r)
{
	if (r->min_ns.status != OW_VALUE_NONE)
		return &r->min_ns;
	if (r->quantile_ns[OW_Q50].status != OW_VALUE_NONE)
		return &r->quantile_ns[OW_Q50];
	return r->mean_ns.status != OW_VALUE_NONE ? &r->mean_ns : NULL;
}

static bool is_relative(const struct ow_interval_result *r)
{
	return strcmp(r->clock_method, "relative") == 0;
}

/* The largest difference of the clocks; if it was not measured, their own error bounds. */
static double error_of(const struct ow_interval_result *r)
{
	const struct ow_clock_state *a = &r->clock_from, *b = &r->clock_to;
	double error_ns = ow_result_clock_error_ns(r);
	if (!isnan(error_ns))
		return error_ns;
	bool known = a->synchronised && b->synchronised && a->error_ns != OW_CLOCK_UNKNOWN &&
	             b->error_ns != OW_CLOCK_UNKNOWN;
	return known ? (double)a->error_ns + (double)b->error_ns : NAN;
}

void ow_result_clock_words(const struct ow_interval_result *r, const char *to, struct ow_clock_words *ret_words)
{
	const struct ow_value *least = smallest(r);
	ow_clock_words(least ? least->value : NAN, r->mean_ns.status != OW_VALUE_NONE ? r->mean_ns.value : NAN,
	               error_of(r), to, ret_words);
	/* The bound of an estimated offset is half of the round trip: about the delay, always. */
	if (is_relative(r))
		ret_words->beyond[0] = 0;
}

int64_t ow_result_clock_added_ns(const struct ow_interval_result *r)
{
	return r->clock_offset_ns.status == OW_VALUE_NONE ? 0 : llrint(r->clock_offset_ns.value);
}

double ow_result_clock_error_ns(const struct ow_interval_result *r)
{
	const struct ow_value *offset = &r->clock_offset_ns;
	if (!*r->clock_method || offset->status == OW_VALUE_NONE)
		return NAN;
	double error_ns = fmax(offset->high - offset->value, offset->value - offset->low);
	return isfinite(error_ns) ? error_ns : NAN;
}

bool ow_result_clock_known(const struct ow_interval_result *r)
{
	return strcmp(r->clock_method, "none") != 0;
}

/* A packet of several identical ones has no delay anyway. */
static uint64_t packets_with_delay(const struct ow_interval_result *r)
{
	uint64_t arrived = r->matched + r->late;
	return r->intervals ? r->delay_packets : arrived > r->ambiguous ? arrived - r->ambiguous : 0;
}

void ow_result_clock_forget(struct ow_interval_result *r)
{
	if (ow_result_clock_known(r) || r->status == OW_RESULT_UNKNOWN)
		return;
	enum ow_reason reason = r->clock_offset_ns.reason;
	struct ow_value none = ow_value_none(reason ? reason : OW_REASON_OTHER);
	if (!r->without_clock)
		r->without_clock = packets_with_delay(r);
	r->delay_packets = 0;
	r->mean_ns = r->min_ns = r->max_ns = none;
	for (int q = 0; q < OW_QUANTILES; q++)
		r->quantile_ns[q] = none;
	r->delays = (struct ow_delay_histogram){0};
	memset(r->delay_bucket, 0, sizeof r->delay_bucket);
}

static void take_clock(struct ow_interval_result *r, const struct ow_interval_result *from)
{
	memcpy(r->clock_method, from->clock_method, sizeof r->clock_method);
	r->clock_offset_ns = from->clock_offset_ns;
	r->clock_drift_ppb = from->clock_drift_ppb;
}

void ow_result_clock_meet(struct ow_interval_result *sum, struct ow_interval_result *r, bool first)
{
	if (first || !ow_result_clock_known(sum))
		take_clock(sum, r);
	else if (!ow_result_clock_known(r))
		take_clock(r, sum);
}

static void widen(struct ow_value *value, double below_ns, double above_ns)
{
	if (value->status == OW_VALUE_NONE)
		return;
	/* Another point may have said that they are narrower than the clocks let them be. */
	value->low = fmin(value->low - below_ns, value->value);
	value->high = fmax(value->high + above_ns, value->value);
	value->status = value->low == value->high ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED;
}

static void widen_all(struct ow_interval_result *r, double sign)
{
	const struct ow_value *offset = &r->clock_offset_ns;
	double error_ns = ow_result_clock_error_ns(r);
	if (isnan(error_ns) || error_ns == 0)
		return;
	double below_ns = sign * (offset->value - offset->low), above_ns = sign * (offset->high - offset->value);
	widen(&r->mean_ns, below_ns, above_ns);
	for (int q = 0; q < OW_QUANTILES; q++)
		widen(&r->quantile_ns[q], below_ns, above_ns);
}

void ow_result_clock_widen(struct ow_interval_result *r)
{
	widen_all(r, 1);
	ow_result_clock_forget(r);
}

void ow_result_clock_narrow(struct ow_interval_result *r)
{
	widen_all(r, -1);
}

void ow_result_clock_note(const struct ow_interval_result *r, const char *to, char ret_note[OW_RESULT_CLOCK_NOTE])
{
	char added[OW_DURATION_TEXT], error[OW_DURATION_TEXT];
	ret_note[0] = 0;
	if (is_relative(r) && r->clock_offset_ns.status != OW_VALUE_NONE) {
		ow_duration_text(r->clock_offset_ns.value, added);
		ow_duration_text(ow_result_clock_error_ns(r), error);
		snprintf(ret_note, OW_RESULT_CLOCK_NOTE,
		         "clocks by packets: %s added to the times of %.64s, good to %s", added, to, error);
	} else if (!ow_result_clock_known(r)) {
		snprintf(ret_note, OW_RESULT_CLOCK_NOTE, "no delays: the difference of the clocks is not known: %s",
		         ow_reason_text(r->clock_offset_ns.reason));
	}
}
