/* SPDX-License-Identifier: Apache-2.0 */
#include "point/segment_clock.h"

#include "base/time.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL       0.1  /* an error of so much of the least delay is small, */
#define STILL_SMALL 0.2  /* and of so much, if it was small before */
#define SAMPLES     1024 /* of a period; a floor needs no more */

struct ow_segment_clock {
	struct ow_segment_clock_options options;
	struct ow_clock_tracker tracker;
	/* Of the lanes that this host sends on: samples of a period that is not over. */
	struct gathering {
		struct ow_clock_sample sample[SAMPLES];
		size_t count;
		int64_t period; /* its number */
	} gathering[OW_DIRECTIONS];
	/* By direction: the mean of the last interval by the clocks as they are, and when that was. */
	double mean_ns[OW_DIRECTIONS];
	int64_t mean_at_ns[OW_DIRECTIONS];
	bool small; /* the stated error, last time */
	bool event; /* not reported in a result yet */
};

int ow_segment_clock_create(const struct ow_segment_clock_options *options, struct ow_segment_clock **ret_clock)
{
	struct ow_segment_clock *c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->options = *options;
	ow_clock_tracker_init(&c->tracker, options->length_ns > OW_NS_PER_S ? options->length_ns : OW_NS_PER_S);
	c->mean_ns[OW_A_TO_B] = c->mean_ns[OW_B_TO_A] = NAN;
	*ret_clock = c;
	return 0;
}

void ow_segment_clock_free(struct ow_segment_clock *c)
{
	free(c);
}

void ow_segment_clock_event(const struct ow_segment_clock *c, char ret_text[OW_CLOCK_EVENT_TEXT])
{
	struct ow_clock_estimate e;
	char size[OW_DURATION_TEXT];
	ow_clock_tracker_estimate(&c->tracker, 0, &e);
	ow_duration_text(fabs(e.event_size_ns), size);
	const char *sign = e.event_size_ns < 0 ? "-" : "+";
	if (e.event == OW_CLOCK_STEP)
		snprintf(ret_text, OW_CLOCK_EVENT_TEXT, "the clocks' difference stepped by %s%s", sign, size);
	else
		snprintf(ret_text, OW_CLOCK_EVENT_TEXT, "the least delay changed by %s%s", sign, size);
}

bool ow_segment_clock_usable(const struct ow_segment_clock *c, int64_t at_ns)
{
	struct ow_clock_estimate e;
	ow_clock_tracker_estimate(&c->tracker, at_ns, &e);
	return e.reason == OW_NO_REASON;
}

/* -- floors ------------------------------------------------------------------------------------------------------- */

/*
 * Gathers the samples of an interval, and makes a floor when a period is over. Of short intervals, each has its share
 * of the room. Times become those of A's clock.
 */
static bool gather(struct ow_segment_clock *c, enum ow_direction direction, const struct ow_clock_sample *samples,
                   size_t count, const struct ow_interval_result *r, struct ow_clock_floor *ret_floor)
{
	struct gathering *g = &c->gathering[direction];
	int64_t period_ns = c->tracker.period_ns, period = (r->start_ns + r->length_ns) / period_ns;
	size_t share = (size_t)ceil((double)SAMPLES * (double)r->length_ns / (double)period_ns);
	for (size_t i = 0; i < count && i < share && g->count < SAMPLES; i++) {
		int64_t at_ns = samples[i].at_ns + (direction == OW_A_TO_B ? 0 : samples[i].delay_ns);
		g->sample[g->count++] = (struct ow_clock_sample){at_ns, samples[i].delay_ns};
	}
	*ret_floor = (struct ow_clock_floor){0};
	if (period == g->period)
		return false;
	g->period = period;
	ow_clock_tracker_floor(&c->tracker, direction, g->sample, g->count, ret_floor);
	g->count = 0;
	return ow_clock_tracker_add(&c->tracker, direction, ret_floor);
}

/* -- what is done about them -------------------------------------------------------------------------------------- */

struct view {
	struct ow_clock_estimate estimate;
	double stated_ns; /* the error that both clocks state together; NAN = not known */
	double least_ns;  /* least delay by the clocks as they are; NAN = not known */
	bool contradicted;
};

static double stated_of(const struct ow_segment_clock *c, const struct ow_interval_result *r)
{
	const struct ow_clock_state *a = &r->clock_from, *b = &r->clock_to;
	if (c->options.same)
		return 0;
	if (c->options.files || !a->synchronised || !b->synchronised || a->error_ns == OW_CLOCK_UNKNOWN ||
	    b->error_ns == OW_CLOCK_UNKNOWN)
		return NAN;
	return (double)a->error_ns + (double)b->error_ns;
}

/* Of the sorted samples, without the few that may be pairs of two packets. */
static double least_of(const struct ow_clock_sample *sorted, size_t count)
{
	size_t outliers = count < 20 ? 0 : 1 + count / 100;
	return count ? (double)sorted[outliers].delay_ns : NAN;
}

/* Packets that arrive before they were sent, by more than the clocks say they are apart. */
static bool is_contradicted(const struct ow_segment_clock *c, const struct view *v)
{
	const struct ow_clock_estimate *e = &v->estimate;
	double apart_ns = isnan(v->stated_ns) ? 0 : v->stated_ns;
	if (c->options.same)
		return false;
	return v->least_ns < -apart_ns ||
	       (e->reason == OW_NO_REASON && (e->low_ns > apart_ns || e->high_ns < -apart_ns));
}

static void look(const struct ow_segment_clock *c, const struct ow_segment_clock *other,
                 const struct ow_interval_result *r, double least_ns, struct view *ret_view)
{
	/* The middle of the interval: the drift within it has no part in the mean. */
	int64_t at_ns = r->start_ns + r->length_ns / 2;
	struct view v = {.stated_ns = stated_of(c, r), .least_ns = least_ns};
	ow_clock_tracker_estimate(&c->tracker, at_ns, &v.estimate);
	if (v.estimate.reason != OW_NO_REASON && other)
		ow_clock_tracker_estimate(&other->tracker, at_ns, &v.estimate);
	v.contradicted = is_contradicted(c, &v);
	*ret_view = v;
}

static bool is_trusted(const struct ow_segment_clock *c, const struct view *v)
{
	switch (c->options.mode) {
	case OW_CLOCK_TRUSTED:
		return true;
	case OW_CLOCK_RELATIVE:
		return false;
	case OW_CLOCK_AUTO:
		break;
	}
	if (c->options.same)
		return true;
	if (v->contradicted)
		return false;
	if (c->options.files)
		return true;
	return v->estimate.reason == OW_NO_REASON ? c->small : !isnan(v->stated_ns);
}

static void set_trusted(struct ow_interval_result *r, double stated_ns)
{
	double error_ns = isnan(stated_ns) ? INFINITY : stated_ns;
	snprintf(r->clock_method, sizeof r->clock_method, "trusted");
	r->clock_offset_ns = (struct ow_value){OW_VALUE_ESTIMATED, 0, -error_ns, error_ns, OW_NO_REASON};
	if (error_ns == 0)
		r->clock_offset_ns = ow_value_exact(0);
	r->clock_drift_ppb = ow_value_none(OW_NO_REASON);
}

/* B's clock is ahead by the offset: that is taken off times of B, or added to those of A. */
static void set_relative(const struct ow_segment_clock *c, struct ow_interval_result *r, enum ow_direction direction,
                         const struct view *v)
{
	const struct ow_clock_estimate *e = &v->estimate;
	double sign = direction == OW_A_TO_B ? -1 : 1;
	/* The drift within the interval stays in the delays. */
	double within_ns = fabs(e->drift_ppb) * (double)r->length_ns / 2e9;
	double low_ns = e->low_ns, high_ns = e->high_ns;
	if (c->options.mode == OW_CLOCK_AUTO && !isnan(v->stated_ns) && !v->contradicted) {
		low_ns = fmax(low_ns, -v->stated_ns);
		high_ns = fmin(high_ns, v->stated_ns);
	}
	double offset_ns = rint(fmax(low_ns, fmin(e->offset_ns, high_ns)));
	double added_ns = sign * offset_ns, a = sign * low_ns, b = sign * high_ns;
	snprintf(r->clock_method, sizeof r->clock_method, "relative");
	r->clock_offset_ns = (struct ow_value){OW_VALUE_ESTIMATED, added_ns, fmin(fmin(a, b), added_ns) - within_ns,
	                                       fmax(fmax(a, b), added_ns) + within_ns, OW_NO_REASON};
	r->clock_drift_ppb = ow_value_exact(-sign * e->drift_ppb);
}

static void set_none(struct ow_interval_result *r, enum ow_reason reason)
{
	snprintf(r->clock_method, sizeof r->clock_method, "none");
	r->clock_offset_ns = r->clock_drift_ppb = ow_value_none(reason);
}

/* -- numbers without clocks --------------------------------------------------------------------------------------- */

static void keep_mean(struct ow_segment_clock *c, enum ow_direction direction, double mean_ns, int64_t at_ns)
{
	c->mean_ns[direction] = mean_ns;
	c->mean_at_ns[direction] = at_ns;
}

static struct ow_value value_of(double value, enum ow_reason reason)
{
	return isfinite(value) ? ow_value_exact(value) : ow_value_none(reason);
}

static void fill_clock_free(struct ow_segment_clock *c, enum ow_direction direction, const struct view *v,
                            struct ow_interval_result *r)
{
	enum ow_direction back = direction == OW_A_TO_B ? OW_B_TO_A : OW_A_TO_B;
	double mean_ns = r->mean_ns.status == OW_VALUE_NONE ? NAN : r->mean_ns.value;
	bool both = v->estimate.reason != OW_REASON_CLOCK_ONE_WAY;
	bool recent = llabs(r->start_ns - c->mean_at_ns[back]) <= OW_CLOCK_POINTS * c->tracker.period_ns;
	keep_mean(c, direction, mean_ns, r->start_ns);
	r->above_min_ns = value_of(mean_ns - v->least_ns, OW_REASON_NO_KNOWN_DELAY);
	r->round_trip_min_ns = value_of(both ? v->estimate.round_trip_ns : NAN, OW_REASON_CLOCK_ONE_WAY);
	r->round_trip_mean_ns = value_of(recent ? mean_ns + c->mean_ns[back] : NAN, OW_REASON_CLOCK_ONE_WAY);
}

/* -- intervals ---------------------------------------------------------------------------------------------------- */

bool ow_segment_clock_correct(struct ow_segment_clock *c, enum ow_direction direction, struct ow_clock_sample *samples,
                              size_t count, const struct ow_segment_clock *other, struct ow_interval_result *r,
                              struct ow_clock_floor *ret_floor)
{
	struct view v;
	bool event = gather(c, direction, samples, count, r, ret_floor);
	c->event |= event;
	ow_clock_samples_sort(samples, count);
	look(c, other, r, least_of(samples, count), &v);
	fill_clock_free(c, direction, &v, r);
	c->small = v.estimate.reason == OW_NO_REASON &&
	           v.stated_ns <= (c->small ? STILL_SMALL : SMALL) * v.estimate.round_trip_ns / 2;
	if (is_trusted(c, &v))
		set_trusted(r, v.stated_ns);
	else if (v.estimate.reason == OW_NO_REASON)
		set_relative(c, r, direction, &v);
	else
		set_none(r, v.estimate.reason);
	r->clock_event[0] = 0;
	if (c->event)
		ow_segment_clock_event(c, r->clock_event);
	c->event = false;
	return event;
}

bool ow_segment_clock_told(struct ow_segment_clock *c, enum ow_direction direction, const struct ow_clock_floor *floor,
                           const struct ow_interval_result *r)
{
	double added_ns = r->clock_offset_ns.status == OW_VALUE_NONE ? 0 : r->clock_offset_ns.value;
	bool event = ow_clock_tracker_add(&c->tracker, direction, floor);
	c->event |= event;
	if (r->mean_ns.status != OW_VALUE_NONE)
		keep_mean(c, direction, r->mean_ns.value - added_ns, r->start_ns);
	return event;
}
