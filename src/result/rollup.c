/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of results: rollup.h has what they mean. */
#include "result/rollup.h"

#include "base/time.h"
#include "estimate/pool.h"
#include "result/cause.h"
#include "result/fields.h"
#include "result/result_clock.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Delays whose mean over all packets is meant: those without a part of a clock. */
enum { ROUND_TRIP_MEAN, ABOVE_MIN, MEANS };

struct ow_rollup {
	struct ow_interval_result sum;
	bool begun, known;    /* something was added, something with numbers */
	struct ow_pool *pool; /* mean and standard deviation */
	struct ow_delay_histogram_sum delays;
	uint64_t with_numbers;        /* intervals */
	double packets, covered;      /* packets sent, and those whose fate is known */
	double loss_low2, loss_high2; /* squares of what the loss may be off, beyond undecided packets */
	enum ow_reason no_loss;       /* why the loss of some packets is not known */
	enum ow_reason no_extremes;   /* the same for minimum and maximum */
	double weight[MEANS], mean[MEANS];
	char cause[OW_RESULT_CAUSE]; /* the first one */
};

int ow_rollup_create(struct ow_rollup **ret_rollup)
{
	struct ow_rollup *rollup = calloc(1, sizeof *rollup);
	if (!rollup || ow_pool_create(&rollup->pool) < 0 || ow_delay_histogram_sum_reserve(&rollup->delays) < 0) {
		ow_rollup_free(rollup);
		return -ENOMEM;
	}
	*ret_rollup = rollup;
	return 0;
}

void ow_rollup_free(struct ow_rollup *rollup)
{
	if (!rollup)
		return;
	ow_pool_free(rollup->pool);
	ow_delay_histogram_sum_done(&rollup->delays);
	free(rollup);
}

void ow_rollup_begin(struct ow_rollup *rollup, int64_t start_ns, int64_t length_ns)
{
	ow_pool_reset(rollup->pool);
	rollup->delays.count = 0;
	*rollup = (struct ow_rollup){.pool = rollup->pool, .delays = rollup->delays};
	ow_result_blank(length_ns > 0 ? ow_floor_div(start_ns, length_ns) : 0, start_ns, length_ns, &rollup->sum);
	rollup->sum.status = OW_RESULT_UNKNOWN;
	rollup->sum.final = true;
	rollup->sum.reordered = 0;
}

static uint64_t at_most(uint64_t count, uint64_t most)
{
	return count < most ? count : most;
}

/* Both are at most INT64_MAX; so is the sum. */
static void add_intervals(uint64_t *sum, uint64_t more)
{
	*sum = at_most(*sum + more, INT64_MAX);
}

struct ow_rollup_intervals ow_rollup_intervals(const struct ow_interval_result *result)
{
	bool is_unknown = result->status == OW_RESULT_UNKNOWN;
	if (!result->intervals)
		return (struct ow_rollup_intervals){1, result->status == OW_RESULT_PARTIAL, is_unknown};
	/* Anybody may have written these: a result with numbers has an interval with numbers. */
	uint64_t all = at_most(result->intervals, INT64_MAX);
	uint64_t unknown = is_unknown ? all : at_most(result->intervals_unknown, all - 1);
	return (struct ow_rollup_intervals){all, at_most(result->intervals_partial, all - unknown), unknown};
}

static uint64_t times(uint64_t count, unsigned shift)
{
	return count > UINT64_MAX >> shift ? UINT64_MAX : count << shift;
}

uint64_t ow_rollup_delay_packets(const struct ow_interval_result *result)
{
	if (result->intervals || result->mean_ns.status == OW_VALUE_NONE)
		return result->delay_packets;
	/* A method that samples has fewer delays than its numbers stand for. */
	uint64_t there = result->matched + result->late;
	return times(there > result->ambiguous ? there - result->ambiguous : result->samples, result->sample_shift);
}

/* -- adding ------------------------------------------------------------------------------------------------------- */

/* Counts of a sample become those of packets, and means over intervals become sums. */
static void scale(struct ow_interval_result *r, uint64_t intervals)
{
	for (size_t i = 0; i < ow_field_count; i++) {
		const struct ow_field *field = &ow_fields[i];
		uint64_t *count = ow_field_at(field, r);
		if (field->sum == OW_SUM_MEAN)
			*count *= intervals; /* a duration; it wraps around, as sums of them do */
		else if (field->flags & OW_FIELD_OF_SAMPLE && !r->intervals && *count != OW_RESULT_NOT_COUNTED)
			*count = times(*count, r->sample_shift);
	}
}

/* The first cause stays: of a sum it is the one after its own words. */
static void note_cause(struct ow_rollup *u, const struct ow_interval_result *r)
{
	const char *text = r->cause;
	if (r->intervals) {
		text = strstr(r->cause, "; ");
		text = text ? text + 2 : "";
	}
	if (!*u->cause)
		snprintf(u->cause, sizeof u->cause, "%s", text);
}

static double width_of(const struct ow_value *value)
{
	return value->status == OW_VALUE_NONE ? INFINITY : value->high - value->low;
}

static void add_fields(struct ow_rollup *u, struct ow_interval_result *r)
{
	struct ow_interval_result *sum = &u->sum;
	char event[sizeof sum->clock_event];
	int64_t start_ns = sum->start_ns;
	memcpy(event, *r->clock_event ? r->clock_event : sum->clock_event, sizeof event);
	if (!u->known) {
		sum->exact = true;
		sum->clock_from = r->clock_from;
		sum->clock_to = r->clock_to;
	}
	ow_result_clock_meet(sum, r, !u->known);
	double uncertain_ns = width_of(&sum->clock_offset_ns);
	ow_fields_add(sum, r, ~OW_SUM_BIT(OW_SUM_NONE));
	/* The method is that of the least certain clock. */
	if (width_of(&sum->clock_offset_ns) > uncertain_ns)
		memcpy(sum->clock_method, r->clock_method, sizeof sum->clock_method);
	memcpy(sum->clock_event, event, sizeof event);
	sum->start_ns = start_ns;
}

static void add_mean(struct ow_rollup *u, int which, const struct ow_value *value, double packets)
{
	if (value->status == OW_VALUE_NONE || !(packets > 0))
		return;
	u->weight[which] += packets;
	u->mean[which] += (value->value - u->mean[which]) * (packets / u->weight[which]);
}

static void add_extremes(struct ow_rollup *u, const struct ow_interval_result *r)
{
	struct ow_interval_result *sum = &u->sum;
	if (r->min_ns.status == OW_VALUE_NONE || r->max_ns.status == OW_VALUE_NONE) {
		u->no_extremes = r->min_ns.status == OW_VALUE_NONE ? r->min_ns.reason : r->max_ns.reason;
		u->no_extremes = u->no_extremes ? u->no_extremes : OW_REASON_OTHER;
		return;
	}
	if (sum->min_ns.status == OW_VALUE_NONE || r->min_ns.value < sum->min_ns.value)
		sum->min_ns = r->min_ns;
	if (sum->max_ns.status == OW_VALUE_NONE || r->max_ns.value > sum->max_ns.value)
		sum->max_ns = r->max_ns;
}

/* packets: with a delay. Their error by the clocks is that of the sum, in the end. */
static void add_delays(struct ow_rollup *u, const struct ow_interval_result *r, uint64_t packets)
{
	struct ow_interval_result *sum = &u->sum, narrow = *r;
	ow_result_clock_narrow(&narrow);
	ow_pool_add(u->pool, &(struct ow_pool_group){
				     .packets = (double)packets, .mean_ns = narrow.mean_ns, .stddev_ns = r->stddev_ns});
	if (packets)
		add_extremes(u, r);
	sum->delay_packets += packets;
	(void)ow_delay_histogram_sum_merge(&u->delays, &r->delays); /* there is room */
	add_mean(u, ROUND_TRIP_MEAN, &r->round_trip_mean_ns, (double)packets);
	add_mean(u, ABOVE_MIN, &r->above_min_ns, (double)packets);
	const struct ow_value *least = &r->round_trip_min_ns;
	if (least->status != OW_VALUE_NONE &&
	    (sum->round_trip_min_ns.status == OW_VALUE_NONE || least->value < sum->round_trip_min_ns.value))
		sum->round_trip_min_ns = *least;
}

/*
 * Packets whose fate is not known may be lost or not, all of them: that adds up. What the interval of a part is wider by
 * is the error of a sample or of an estimate: such errors are independent.
 */
static void add_loss(struct ow_rollup *u, const struct ow_interval_result *r)
{
	double sent = (double)r->sent;
	const struct ow_value *loss = &r->loss_ratio;
	if (r->sent <= r->pending)
		return;
	if (loss->status == OW_VALUE_NONE) {
		u->no_loss = loss->reason ? loss->reason : OW_REASON_OTHER;
		return;
	}
	u->loss_low2 += pow(fmax(0, (double)r->lost - sent * loss->low), 2);
	u->loss_high2 += pow(fmax(0, sent * loss->high - (double)(r->lost + r->pending)), 2);
}

static void add_coverage(struct ow_rollup *u, const struct ow_interval_result *r)
{
	double packets = fmax((double)r->total_sent - (double)r->unshared_sent, (double)r->sent);
	u->packets += packets;
	u->covered += r->coverage * packets;
}

void ow_rollup_add(struct ow_rollup *u, const struct ow_interval_result *result)
{
	struct ow_interval_result r = *result, *sum = &u->sum;
	struct ow_rollup_intervals n = ow_rollup_intervals(&r);
	if (!u->begun) {
		ow_result_name_like(sum, &r);
		sum->active = r.active;
	}
	u->begun = true;
	add_intervals(&sum->intervals, n.all);
	add_intervals(&sum->intervals_partial, n.partial);
	add_intervals(&sum->intervals_unknown, n.unknown);
	sum->length_ns = r.length_ns > sum->length_ns ? r.length_ns : sum->length_ns;
	note_cause(u, &r);
	if (r.status == OW_RESULT_UNKNOWN)
		return;
	ow_result_clock_forget(&r);
	uint64_t packets = ow_rollup_delay_packets(&r);
	scale(&r, n.all - n.unknown);
	add_fields(u, &r);
	add_delays(u, &r, packets);
	add_loss(u, &r);
	add_coverage(u, &r);
	u->known = true;
	add_intervals(&u->with_numbers, n.all - n.unknown);
}

/* -- the sum ------------------------------------------------------------------------------------------------------ */

static void fill_status(const struct ow_rollup *u, struct ow_interval_result *r)
{
	char words[OW_RESULT_CAUSE] = "";
	uint64_t unknown = r->intervals_unknown, partial = r->intervals_partial;
	r->status = unknown == r->intervals ? OW_RESULT_UNKNOWN
	            : unknown + partial > 0 ? OW_RESULT_PARTIAL
	                                    : OW_RESULT_MEASURED;
	if (unknown && partial)
		snprintf(words, sizeof words, ow_cause_intervals_unknown_partial, r->intervals, unknown, partial);
	else if (unknown)
		snprintf(words, sizeof words, ow_cause_intervals_unknown, r->intervals, unknown);
	else if (partial)
		snprintf(words, sizeof words, ow_cause_intervals_partial, r->intervals, partial);
	memcpy(r->cause, words, sizeof words);
	if (*words && *u->cause)
		ow_result_add_cause(r, u->cause);
}

static void fill_loss(const struct ow_rollup *u, struct ow_interval_result *r)
{
	double sent = (double)r->sent, decided = sent - (double)r->pending, lost = (double)r->lost;
	r->coverage = u->packets > 0 ? u->covered / u->packets : 1;
	r->loss_ratio = ow_value_none(u->no_loss ? u->no_loss : OW_REASON_NO_KNOWN_FATE);
	if (u->no_loss || !(decided > 0))
		return;
	double low = fmax(0, (lost - sqrt(u->loss_low2)) / sent);
	double high = fmin(1, (lost + (double)r->pending + sqrt(u->loss_high2)) / sent);
	double value = lost / decided;
	r->loss_ratio = (struct ow_value){low == high ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED, value, fmin(low, value),
	                                  fmax(high, value), OW_NO_REASON};
}

/* Probes are a sample of what the network did, of any number of packets. */
static void fill_quantiles(struct ow_interval_result *r)
{
	struct ow_delay_histogram delays = r->delays;
	uint64_t missing = r->delay_packets > delays.packets ? r->delay_packets - delays.packets : 0;
	if (r->active && delays.weight == 1)
		delays.weight = 2;
	for (int q = 0; q < OW_QUANTILES; q++) {
		r->quantile_ns[q] = ow_delay_histogram_quantile(&delays, ow_quantile_level[q], missing);
		if (r->active && !(isfinite(r->quantile_ns[q].low) && isfinite(r->quantile_ns[q].high)))
			r->quantile_ns[q] = ow_value_none(OW_REASON_PROBES_TOO_FEW);
	}
}

static struct ow_value mean_of(const struct ow_rollup *u, int which)
{
	return u->weight[which] > 0 ? ow_value_exact(u->mean[which]) : ow_value_none(OW_REASON_NO_KNOWN_DELAY);
}

static void fill_delays(const struct ow_rollup *u, struct ow_interval_result *r)
{
	struct ow_value none[OW_QUANTILES];               /* of a pool without samples */
	struct ow_delay_histogram_sum delays = u->delays; /* which stays as it is */
	ow_pool_values(u->pool, &r->mean_ns, &r->stddev_ns, none);
	ow_delay_histogram_sum_take(&delays, &r->delays);
	fill_quantiles(r);
	if (u->no_extremes)
		r->min_ns = r->max_ns = ow_value_none(u->no_extremes);
	else if (r->min_ns.status == OW_VALUE_NONE)
		r->min_ns = r->max_ns = ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	r->round_trip_mean_ns = mean_of(u, ROUND_TRIP_MEAN);
	r->above_min_ns = mean_of(u, ABOVE_MIN);
	if (r->round_trip_min_ns.status == OW_VALUE_NONE)
		r->round_trip_min_ns = ow_value_none(OW_REASON_NO_KNOWN_DELAY);
	ow_result_clock_widen(r);
}

void ow_rollup_result(const struct ow_rollup *u, struct ow_interval_result *ret_result)
{
	*ret_result = u->sum;
	fill_status(u, ret_result);
	if (!u->known)
		return;
	ow_fields_mean(ret_result, (int64_t)u->with_numbers);
	fill_loss(u, ret_result);
	fill_delays(u, ret_result);
}
