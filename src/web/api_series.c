/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lane over time, reduced to as many bins as a screen has pixels. A bin is the sum of its intervals, made from the
 * longest periods that fit into it, so that a day takes as long as an hour. Nothing is hidden: a bin has the extremes of
 * its packets and of its rows, and what was not measured apart from what was lost.
 */
#include "base/time.h"
#include "result/cause.h"
#include "web/api_private.h"
#include "web/notices.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WIDTH_MIN     2
#define WIDTH_MAX     4096
#define WIDTH_DEFAULT 600
#define CAUSES_MAX    200

struct series {
	const struct ow_stored_lane *lane;
	int64_t since_ns, until_ns, bin_ns;
	int64_t first_ns, last_ns, length_ns; /* of the lane: its first and last row, and its newest intervals */
	size_t bins;
	const struct ow_stored_sum **bin; /* NULL: nothing is stored of this time */
	struct ow_notices notices;
};

/* -- which bins --------------------------------------------------------------------------------------------------- */

/* "several lanes: wan/all a>b, ..." */
static int several(const struct ow_call *call, struct ow_error *err)
{
	char list[300] = "";
	size_t lanes, used = 0;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	for (size_t i = 0; i < lanes && used < sizeof list; i++) {
		if (lane[i].chosen)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s/%s %s>%s", used ? ", " : "",
			                         lane[i].segment, lane[i].class_name, lane[i].from, lane[i].to);
	}
	return ow_error_set(err, EINVAL, "a series is of one lane; select segment, class, from and to: %s%s", list,
	                    used >= sizeof list ? "..." : "");
}

static int find_lane(struct ow_call *call, struct series *s, struct ow_error *err)
{
	struct ow_stored_lane_times *times;
	size_t lanes, chosen = 0, at = 0;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	for (size_t i = 0; i < lanes; i++) {
		at = lane[i].chosen ? i : at;
		chosen += lane[i].chosen;
	}
	if (chosen > 1)
		return several(call, err);
	if (!chosen)
		return ow_error_set(err, ENODATA, "no lanes are stored");
	int r = ow_stored_lane_times(call->stored, &times, err);
	if (r < 0)
		return r;
	s->lane = &lane[at];
	s->length_ns = times[at].length_ns;
	s->first_ns = ow_stored_lane_first(&times[at]);
	s->last_ns = ow_stored_lane_last(&times[at]);
	free(times);
	return s->first_ns == INT64_MAX ? ow_error_set(err, ENODATA, "no results of this lane are stored") : 0;
}

static int64_t round_up(int64_t ns, int64_t unit)
{
	return (ns + unit - 1) / unit * unit;
}

/* The least length of at most `width` bins that consist of whole intervals, minutes, hours or days. */
static int64_t length_of_bins(const struct series *s, int64_t width, enum ow_period finest)
{
	int64_t least = (s->until_ns - s->since_ns) / (width - 1) + 1, unit = s->length_ns > 0 ? s->length_ns : 1;
	for (int p = OW_PERIOD_MINUTE; p < OW_PERIODS; p++) {
		int64_t length = ow_periods[p].length_ns;
		if ((p <= (int)finest || least > length) && unit < length)
			unit = length;
	}
	return round_up(least, unit);
}

/* The longest period of which a bin has whole ones. */
static enum ow_period longest_in(int64_t bin_ns)
{
	int p = OW_PERIOD_DAY;
	while (p > OW_PERIOD_INTERVAL && bin_ns % ow_periods[p].length_ns)
		p--;
	return (enum ow_period)p;
}

static int choose_bins(struct ow_call *call, struct series *s, struct ow_error *err)
{
	int64_t width = WIDTH_DEFAULT;
	int r = ow_query_number(call->query, "width", WIDTH_MIN, WIDTH_MAX, &width, err);
	if (r == 0)
		r = ow_stored_choose_period(call->stored, OW_PERIOD_INTERVAL, err);
	if (r < 0)
		return r;
	int64_t end_ns = ow_time_later(s->last_ns, s->length_ns > 0 ? s->length_ns : 1);
	s->since_ns = call->filter.since_ns == INT64_MIN ? s->first_ns : call->filter.since_ns;
	s->until_ns = call->filter.until_ns == INT64_MAX ? end_ns : call->filter.until_ns;
	/* 146 years: then all sums of times fit. */
	if (s->since_ns >= s->until_ns || s->since_ns < -(INT64_MAX / 2) || s->until_ns > INT64_MAX / 2)
		return ow_error_set(err, EINVAL, "since and until: there is no such time here");
	s->bin_ns = length_of_bins(s, width, ow_stored_period(call->stored));
	int64_t from = ow_floor_div(s->since_ns, s->bin_ns), to = ow_floor_div(s->until_ns - 1, s->bin_ns);
	s->bins = (size_t)(to - from + 1);
	s->bin = calloc(s->bins, sizeof(*s->bin));
	return s->bin ? 0 : ow_error_set(err, ENOMEM, "not enough memory");
}

static int64_t start_of(const struct series *s, size_t bin)
{
	return (ow_floor_div(s->since_ns, s->bin_ns) + (int64_t)bin) * s->bin_ns;
}

/* -- what was not measured ---------------------------------------------------------------------------------------- */

static void put_causes(struct ow_json *json, const struct series *s)
{
	ow_json_array(json, "causes");
	for (size_t i = 0; i < s->notices.count; i++) {
		const struct ow_notice *notice = &s->notices.notice[i];
		ow_json_object(json, NULL);
		ow_json_integer(json, "start_ns", notice->start_ns);
		ow_json_integer(json, "end_ns", notice->end_ns);
		ow_json_string(json, "status", ow_result_status_name[notice->status]);
		ow_json_string(json, "cause", notice->text);
		ow_json_string(json, "cause_code", *notice->text ? ow_cause_name(ow_cause_of(notice->text)) : NULL);
		ow_json_count(json, "intervals", notice->intervals);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_count(json, "causes_omitted", s->notices.omitted);
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

/* Of a time without any row: the intervals that have no result, between the first and the last of the lane. */
static double missing_in(const struct series *s, size_t bin)
{
	int64_t from = start_of(s, bin), to = from + s->bin_ns, end = ow_time_later(s->last_ns, s->length_ns);
	from = from > s->first_ns ? from : s->first_ns;
	from = from > s->since_ns ? from : s->since_ns;
	to = to < end ? to : end;
	to = to < s->until_ns ? to : s->until_ns;
	return s->length_ns > 0 && from < to ? (double)((to - from) / s->length_ns) : 0;
}

enum number {
	MIN,
	P50,
	P90,
	P99,
	P99_LOW,
	P99_HIGH,
	MAX,
	MEAN,
	MEAN_LOW,
	MEAN_HIGH,
	P99_WORST,
	LOSS,
	LOSS_WORST,
	CLOCK_ERROR,
	SAMPLES,
	SENT,
	RECEIVED,
	LOST,
	DUPLICATED,
	LATE,
	PENDING,
	INTERVALS,
	MEASURED,
	PARTIAL,
	UNKNOWN,
	MISSING,
	PROVISIONAL,
	NUMBERS,
};
static const char *const number_name[NUMBERS] = {
	"min",       "p50",      "p90",       "p99",       "p99_low",    "p99_high",    "max",
	"mean",      "mean_low", "mean_high", "p99_worst", "loss_ratio", "loss_worst",  "clock_error_ns",
	"samples",   "sent",     "received",  "lost",      "duplicated", "late",        "pending",
	"intervals", "measured", "partial",   "unknown",   "missing",    "provisional",
};

static double extreme(const struct ow_stored_extreme *e, bool high)
{
	return !e->count ? NAN : high ? e->high : e->low;
}

static void delays_of(const struct ow_stored_sum *sum, double value[NUMBERS])
{
	struct ow_value p50 = ow_stored_sum_quantile(sum, 0.5), p90 = ow_stored_sum_quantile(sum, 0.9),
			p99 = ow_stored_sum_quantile(sum, 0.99);
	value[MIN] = ow_stored_sum_min(sum);
	value[MAX] = ow_stored_sum_max(sum);
	value[MEAN] = ow_stored_sum_mean(sum);
	value[P50] = ow_value_known(&p50, p50.value);
	value[P90] = ow_value_known(&p90, p90.value);
	value[P99] = ow_value_known(&p99, p99.value);
	value[P99_LOW] = ow_value_known(&p99, p99.low);
	value[P99_HIGH] = ow_value_known(&p99, p99.high);
	value[MEAN_LOW] = extreme(&sum->mean, false);
	value[MEAN_HIGH] = extreme(&sum->mean, true);
	value[P99_WORST] = extreme(&sum->p99_ns, true);
	value[CLOCK_ERROR] = sum->clock_error_ns < 0 || sum->clock_unknown ? NAN : (double)sum->clock_error_ns;
	value[SAMPLES] = (double)sum->samples;
}

static void counts_of(const struct ow_stored_sum *sum, double value[NUMBERS])
{
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	value[SENT] = (double)n.sent;
	value[RECEIVED] = (double)n.received;
	value[LOST] = (double)n.lost;
	value[DUPLICATED] = (double)n.duplicated;
	value[LATE] = (double)n.late;
	value[PENDING] = (double)n.pending;
	value[LOSS] = ow_stored_sum_loss(sum);
	value[LOSS_WORST] = extreme(&sum->loss, true);
}

/* All of a bin; NaN is what is not known. */
static void numbers_of(const struct series *s, size_t bin, double value[NUMBERS])
{
	const struct ow_stored_sum *sum = s->bin[bin];
	for (int i = 0; i < NUMBERS; i++)
		value[i] = i < INTERVALS ? NAN : 0;
	value[MISSING] = sum ? (double)sum->missing : missing_in(s, bin);
	if (!sum)
		return;
	value[INTERVALS] = (double)sum->intervals;
	value[MEASURED] = (double)sum->measured;
	value[PARTIAL] = (double)sum->partial;
	value[UNKNOWN] = (double)sum->unknown;
	value[PROVISIONAL] = (double)sum->provisional;
	if (!(sum->measured + sum->partial))
		return;
	counts_of(sum, value);
	delays_of(sum, value);
}

static void put_array(struct ow_json *json, const char *name, const double *value, size_t count, size_t step)
{
	ow_json_array(json, name);
	for (size_t i = 0; i < count; i++)
		ow_json_number(json, NULL, value[i * step]);
	ow_json_end(json);
}

static int put_numbers(struct ow_json *json, const struct series *s)
{
	double *value = calloc(s->bins, NUMBERS * sizeof *value);
	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < s->bins; i++)
		numbers_of(s, i, value + i * NUMBERS);
	for (size_t k = 0; k < NUMBERS; k++)
		put_array(json, number_name[k], value + k, s->bins, NUMBERS);
	free(value);
	return 0;
}

static int put_series(struct ow_call *call, const struct series *s, struct ow_error *err)
{
	struct ow_json *json = &call->json;
	ow_json_object(json, NULL);
	ow_api_lane(json, s->lane);
	ow_json_string(json, "period", ow_api_period(ow_stored_period(call->stored)));
	ow_json_integer_if(json, "interval_ns", s->length_ns > 0, s->length_ns);
	ow_json_integer(json, "bin_ns", s->bin_ns);
	ow_json_integer(json, "since_ns", s->since_ns);
	ow_json_integer(json, "until_ns", s->until_ns);
	ow_json_count(json, "bins", s->bins);
	ow_json_array(json, "start_ns");
	for (size_t i = 0; i < s->bins; i++)
		ow_json_integer(json, NULL, start_of(s, i));
	ow_json_end(json);
	int r = put_numbers(json, s);
	ow_json_array(json, "clock_method");
	for (size_t i = 0; i < s->bins; i++)
		ow_json_string(json, NULL, s->bin[i] && *s->bin[i]->clock_method ? s->bin[i]->clock_method : NULL);
	ow_json_end(json);
	put_causes(json, s);
	ow_json_end(json);
	return r < 0 || s->notices.no_memory ? ow_error_set(err, ENOMEM, "not enough memory") : 0;
}

static int answer(struct ow_call *call, struct series *s, struct ow_error *err)
{
	struct ow_stored_sums sums;
	int r = choose_bins(call, s, err);
	if (r < 0)
		return r;
	call->filter.since_ns = s->since_ns;
	call->filter.until_ns = s->until_ns;
	struct ow_stored_sum_options o = {.group = OW_STORED_BIN,
	                                  .bin_ns = s->bin_ns,
	                                  .p99_limit_ns = INT64_MAX,
	                                  .on_notice = ow_notices_add,
	                                  .arg = &s->notices};
	r = ow_stored_choose(call->stored, &call->filter, err);
	if (r == 0)
		r = ow_stored_summarise_any(call->stored, &o, longest_in(s->bin_ns), &sums, err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < sums.count; i++) {
		int64_t bin = ow_floor_div(sums.sum[i].start_ns - start_of(s, 0), s->bin_ns);
		if (bin >= 0 && (size_t)bin < s->bins)
			s->bin[bin] = &sums.sum[i];
	}
	ow_notices_end(&s->notices);
	r = put_series(call, s, err);
	ow_stored_sums_done(&sums);
	return r;
}

int ow_api_series(struct ow_call *call, struct ow_error *err)
{
	struct series s = {.notices = {.limit = CAUSES_MAX}};
	int r = ow_api_select(call, err);
	if (r == 0)
		r = find_lane(call, &s, err);
	if (r == 0)
		r = answer(call, &s, err);
	free(s.bin);
	ow_notices_done(&s.notices);
	return r;
}
