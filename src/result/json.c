/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as JSON. The names are those of docs/json.md. Counts and nanoseconds that are integers are written as
 * integers, other numbers with the fewest digits that read back as the same double. Without samples: null, never 0 or
 * NaN.
 */
#include "base/format.h"
#include "estimate/delay.h"
#include "result/interval_result.h"
#include "result/json.h"

#include <math.h>
#include <oneway/oneway.h>

double ow_json_known(const struct ow_value *value)
{
	return value->status == OW_VALUE_NONE ? NAN : value->value;
}

/* [low, high]. Infinity is null. */
static void put_range(struct ow_json *json, const char *name, double low, double high)
{
	ow_json_array(json, name);
	ow_json_number(json, NULL, low);
	ow_json_number(json, NULL, high);
	ow_json_end(json);
}

void ow_json_bounds(struct ow_json *json, const char *name, const struct ow_value *value)
{
	if (value->status == OW_VALUE_NONE)
		ow_json_null(json, name);
	else
		put_range(json, name, value->low, value->high);
}

void ow_json_quantiles(struct ow_json *json, const char *name, const double quantile_ns[OW_QUANTILES])
{
	ow_json_object(json, name);
	for (int i = 0; i < OW_QUANTILES; i++)
		ow_json_number(json, ow_quantile_name[i], quantile_ns ? quantile_ns[i] : NAN);
	ow_json_end(json);
}

/* The bounds of the numbers, because identical packets make some delays uncertain. */
static void put_bounds(struct ow_json *json, const struct ow_delay *delay)
{
	const struct ow_delay_bound *low = &delay->low, *high = &delay->high;
	ow_json_count(json, "uncertain", delay->uncertain);
	ow_json_integer_if(json, "period", delay->period_ns, delay->period_ns);
	ow_json_object(json, "bounds");
	put_range(json, "mean", low->mean_ns, high->mean_ns);
	put_range(json, "min", (double)low->min_ns, (double)high->min_ns);
	put_range(json, "max", (double)low->max_ns, (double)high->max_ns);
	ow_json_object(json, "quantiles");
	for (int i = 0; i < OW_QUANTILES; i++)
		put_range(json, ow_quantile_name[i], low->quantile_ns[i], high->quantile_ns[i]);
	ow_json_end(json);
	ow_json_end(json);
}

static void put_delay_members(struct ow_json *json, const struct ow_delay *delay, bool has_min, bool has_max)
{
	bool known = delay->samples > 0;
	ow_json_number(json, "mean", known ? delay->mean_ns : NAN);
	ow_json_number(json, "stddev", known ? delay->stddev_ns : NAN);
	ow_json_integer_if(json, "min", known && has_min, delay->min_ns);
	ow_json_integer_if(json, "max", known && has_max, delay->max_ns);
	ow_json_quantiles(json, "quantiles", known ? delay->quantile_ns : NULL);
	if (delay->uncertain)
		put_bounds(json, delay);
}

static void put_delay(struct ow_json *json, const struct ow_delay *delay, bool has_min, bool has_max)
{
	ow_json_object(json, "delay_ns");
	ow_json_style(json, OW_JSON_OUTER);
	put_delay_members(json, delay, has_min, has_max);
	ow_json_end(json);
}

void ow_json_delay(struct ow_json *json, const char *name, const struct ow_delay *delay)
{
	ow_json_object(json, name);
	ow_json_count(json, "samples", delay->samples);
	put_delay_members(json, delay, true, true);
	ow_json_end(json);
}

void ow_json_percentiles(struct ow_json *json, const struct ow_percentile *percentile, unsigned count,
                         const struct ow_delay *delay)
{
	char name[OW_FORMAT];
	if (!count)
		return;
	ow_json_object(json, "percentiles_ns");
	for (unsigned i = 0; i < count; i++)
		ow_json_number(json, ow_format_number(percentile[i].percent, name),
		               delay->samples ? percentile[i].delay_ns : NAN);
	ow_json_end(json);
	if (!delay->samples || !delay->uncertain)
		return;
	ow_json_object(json, "percentile_bounds_ns");
	for (unsigned i = 0; i < count; i++)
		put_range(json, ow_format_number(percentile[i].percent, name), percentile[i].low_ns,
		          percentile[i].high_ns);
	ow_json_end(json);
}

static void put_members(struct ow_json *json, const struct ow_result *result, bool has_min, bool has_max)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"sent", result->sent},           {"received", result->received},   {"matched", result->matched},
		{"lost", result->lost},           {"extra", result->extra},         {"duplicated", result->duplicated},
		{"ambiguous", result->ambiguous}, {"reordered", result->reordered}, {"samples", result->delay.samples},
	};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		ow_json_count_if(json, counts[i].name, counts[i].value != OW_RESULT_NOT_COUNTED, counts[i].value);
	ow_json_number(json, "loss_ratio", result->sent ? (double)result->lost / (double)result->sent : NAN);
	put_delay(json, &result->delay, has_min, has_max);
	double median = result->delay.quantile_ns[OW_Q50], q95 = result->delay.quantile_ns[OW_Q95];
	ow_json_number(json, "jitter_ns", result->delay.samples ? q95 - median : NAN);
	ow_json_number(json, "jitter_error_ns", result->delay.samples ? ow_delay_jitter_error(median, q95) : NAN);
	ow_json_flag(json, "exact", result->exact);
}

void ow_json_result_members(struct ow_json *json, const struct ow_result *result)
{
	put_members(json, result, true, true);
}

void ow_json_result(struct ow_json *json, const char *name, const struct ow_result *result)
{
	ow_json_result_partly(json, name, result, true, true);
}

void ow_json_result_partly(struct ow_json *json, const char *name, const struct ow_result *result, bool has_min,
                           bool has_max)
{
	ow_json_object(json, name);
	ow_json_style(json, OW_JSON_OUTER);
	put_members(json, result, has_min, has_max);
	ow_json_end(json);
}

void ow_json_sides(struct ow_json *json, const char *name, const uint64_t count[OW_SIDES])
{
	ow_json_object(json, name);
	ow_json_count(json, "a", count[OW_SIDE_A]);
	ow_json_count(json, "b", count[OW_SIDE_B]);
	ow_json_end(json);
}
