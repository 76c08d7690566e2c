/* SPDX-License-Identifier: Apache-2.0 */
/* What the store has: its times, its lanes, its results and sums of them. */
#include "result/result_json.h"
#include "web/api_private.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>

#define RESULTS_MAX     5000
#define RESULTS_DEFAULT 100

/* -- the store ---------------------------------------------------------------------------------------------------- */

static int put_span(struct ow_call *call, enum ow_period period, struct ow_error *err)
{
	const struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX, .period = period};
	int64_t first, last;
	int r = ow_stored_choose(call->stored, &filter, err);
	if (r == 0)
		r = ow_stored_span(call->stored, &first, &last, err);
	if (r != 0)
		return r == -ENODATA ? 0 : r;
	ow_json_object(&call->json, ow_api_period(period));
	ow_json_integer(&call->json, "first_ns", first);
	ow_json_integer(&call->json, "last_ns", last);
	ow_json_end(&call->json);
	return 0;
}

int ow_api_root(struct ow_call *call, struct ow_error *err)
{
	const struct ow_api_options *o = &call->api->options;
	const struct {
		const char *name;
		bool is_there;
	} features[] = {{"stream", true},
	                {"verdicts", true},
	                {"flows", o->flows_from != NULL},
	                {"fleet", o->fleet != NULL},
	                {"network", o->network != NULL},
	                {"truth", o->truth != NULL}};
	struct ow_json *json = &call->json;
	struct ow_error caveat;
	ow_json_object(json, NULL);
	ow_json_string(json, "version", ow_version());
	ow_json_string(json, "store", ow_stored_where(call->stored));
	ow_json_string(json, "caveat", ow_stored_caveat(call->stored, &caveat) ? caveat.text : NULL);
	ow_json_integer(json, "now_ns", call->now_ns);
	ow_json_array(json, "features");
	for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
		if (features[i].is_there)
			ow_json_string(json, NULL, features[i].name);
	}
	ow_json_end(json);
	ow_json_object(json, "periods");
	int r = 0;
	for (int p = 0; r == 0 && p < OW_PERIODS; p++)
		r = put_span(call, (enum ow_period)p, err);
	ow_json_end(json);
	ow_json_end(json);
	return r;
}

/* -- lanes -------------------------------------------------------------------------------------------------------- */

static void put_times(struct ow_json *json, const struct ow_stored_lane_times *t)
{
	int64_t first = ow_stored_lane_first(t), last = ow_stored_lane_last(t);
	ow_json_integer_if(json, "first_ns", first != INT64_MAX, first);
	ow_json_integer_if(json, "last_ns", last != INT64_MIN, last);
	ow_json_integer_if(json, "interval_ns", t->length_ns > 0, t->length_ns);
}

int ow_api_lanes(struct ow_call *call, struct ow_error *err)
{
	struct ow_stored_lane_times *times;
	size_t lanes;
	int r = ow_api_select(call, err);
	if (r == 0)
		r = ow_stored_lane_times(call->stored, &times, err);
	if (r != 0)
		return r;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	ow_json_object(&call->json, NULL);
	ow_json_array(&call->json, "lanes");
	for (size_t i = 0; i < lanes; i++) {
		ow_json_object(&call->json, NULL);
		ow_api_lane(&call->json, &lane[i]);
		put_times(&call->json, &times[i]);
		ow_json_end(&call->json);
	}
	ow_json_end(&call->json);
	ow_json_end(&call->json);
	free(times);
	return 0;
}

/* -- results ------------------------------------------------------------------------------------------------------ */

static int read_period(struct ow_call *call, bool *ret_given, enum ow_period *ret_period, struct ow_error *err)
{
	const char *name = ow_query_get(call->query, "period");
	*ret_given = name != NULL;
	for (int p = 0; name && p < OW_PERIODS; p++) {
		if (strcmp(name, ow_api_period((enum ow_period)p)) == 0) {
			*ret_period = (enum ow_period)p;
			return 0;
		}
	}
	return name ? ow_error_set(err, EINVAL, "period: '%.40s' is not interval, minute, hour or day", name) : 0;
}

/* As `oneway results` does: the finest that reaches back to the selected time, unless the request says which. */
static int choose_period(struct ow_call *call, struct ow_error *err)
{
	bool given;
	int r = read_period(call, &given, &call->filter.period, err);
	if (r == 0 && !given)
		call->filter.period = ow_stored_finest(call->stored);
	if (r == 0)
		r = ow_stored_choose(call->stored, &call->filter, err);
	bool newest = call->filter.since_ns == INT64_MIN && call->filter.until_ns == INT64_MAX;
	return r < 0 || given || newest ? r : ow_stored_choose_period(call->stored, call->filter.period, err);
}

struct list {
	struct ow_json *json;
	uint64_t count, limit;
};

static int put_result(void *arg, const struct ow_interval_result *result)
{
	struct list *list = arg;
	/* One more than was asked for shows that there are more. */
	if (list->count++ < list->limit)
		ow_result_json_put(list->json, NULL, result);
	return 0;
}

/* The first of the newest limit + 1 is not wanted if there are so many. */
static int skip_first(void *arg, const struct ow_interval_result *result)
{
	(void)result;
	struct list *list = arg;
	list->count++;
	return 0;
}

int ow_api_results(struct ow_call *call, struct ow_error *err)
{
	int64_t limit = RESULTS_DEFAULT;
	struct ow_json *json = &call->json;
	int r = ow_api_select(call, err);
	if (r == 0)
		r = ow_query_number(call->query, "limit", 1, RESULTS_MAX, &limit, err);
	if (r == 0)
		r = choose_period(call, err);
	if (r < 0)
		return r;
	struct list list = {.json = json, .limit = (uint64_t)limit};
	ow_json_object(json, NULL);
	ow_json_string(json, "period", ow_api_period(ow_stored_period(call->stored)));
	ow_json_array(json, "results");
	r = ow_stored_list(call->stored, (uint64_t)limit, put_result, &list, err);
	ow_json_end(json);
	struct list all = {0};
	if (r == 0 && list.count == (uint64_t)limit)
		r = ow_stored_list(call->stored, (uint64_t)limit + 1, skip_first, &all, err);
	ow_json_flag(json, "truncated", all.count > list.count);
	ow_json_end(json);
	return r;
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

struct buckets {
	FILE *out[3];
	char *text[3];
	size_t size[3];
	bool has_items;
};

static void put_bucket(void *arg, double low_ns, double high_ns, uint64_t packets)
{
	struct buckets *b = arg;
	const char *comma = b->has_items ? "," : "";
	fprintf(b->out[0], "%s%.0f", comma, low_ns);
	fprintf(b->out[1], "%s%.0f", comma, high_ns);
	fprintf(b->out[2], "%s%llu", comma, (unsigned long long)packets);
	b->has_items = true;
}

/* {"low_ns": [...], "high_ns": [...], "packets": [...]}: the buckets that are not empty. */
static int put_distribution(struct ow_json *json, const struct ow_delay_histogram *delays)
{
	static const char *const names[] = {"low_ns", "high_ns", "packets"};
	struct buckets b = {.has_items = false};
	int r = 0;
	for (int i = 0; i < 3; i++) {
		b.out[i] = open_memstream(&b.text[i], &b.size[i]);
		r = b.out[i] ? r : -ENOMEM;
		if (b.out[i])
			fputc('[', b.out[i]);
	}
	if (r == 0)
		ow_delay_histogram_each(delays, put_bucket, &b);
	ow_json_object(json, "distribution");
	for (int i = 0; i < 3; i++) {
		if (b.out[i])
			fputc(']', b.out[i]);
		if (b.out[i] && fclose(b.out[i]) != 0)
			r = -ENOMEM;
		if (r == 0)
			ow_json_raw(json, names[i], b.text[i]);
		free(b.text[i]);
	}
	ow_json_end(json);
	return r;
}

static int read_group(struct ow_call *call, enum ow_stored_group *ret_group, struct ow_error *err)
{
	const char *by = ow_query_get(call->query, "by");
	*ret_group = by && strcmp(by, "segment") == 0 ? OW_STORED_SEGMENT : OW_STORED_LANE;
	return by && strcmp(by, "segment") != 0 && strcmp(by, "lane") != 0
	               ? ow_error_set(err, EINVAL, "by: '%.40s' is not lane or segment", by)
	               : 0;
}

static int put_sums(struct ow_call *call, const struct ow_stored_sums *sums, enum ow_stored_group group)
{
	struct ow_json *json = &call->json;
	int r = 0;
	ow_json_object(json, NULL);
	ow_json_array(json, "sums");
	for (size_t i = 0; r == 0 && i < sums->count; i++) {
		ow_json_object(json, NULL);
		ow_stored_sum_json(json, call->stored, &sums->sum[i], group);
		r = put_distribution(json, &sums->sum[i].delays);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_array(json, "causes");
	for (size_t i = 0; i < sums->causes; i++) {
		ow_json_object(json, NULL);
		ow_stored_cause_json(json, &sums->cause[i]);
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
	return r;
}

int ow_api_summary(struct ow_call *call, struct ow_error *err)
{
	struct ow_stored_sum_options o = {.p99_limit_ns = INT64_MAX};
	struct ow_stored_sums sums;
	bool given;
	int r = ow_api_select(call, err);
	if (r == 0)
		r = read_group(call, &o.group, err);
	if (r == 0)
		r = read_period(call, &given, &call->filter.period, err);
	if (r == 0 && given)
		r = ow_stored_choose(call->stored, &call->filter, err);
	if (r == 0)
		r = given ? ow_stored_summarise(call->stored, &o, &sums, err)
		          : ow_stored_summarise_any(call->stored, &o, OW_PERIOD_DAY, &sums, err);
	if (r != 0)
		return r;
	r = put_sums(call, &sums, o.group);
	ow_stored_sums_done(&sums);
	return r;
}
