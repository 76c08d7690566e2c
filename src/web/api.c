/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of the interface, and what all of them need: a reader of the store, a selection, an answer. */
#include "web/api.h"

#include "base/clock.h"
#include "web/api_private.h"
#include "web/news.h"
#include "web/verdicts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long a request waits for a reader of the store. */
#define WAIT_NS INT64_C(10000000000)

static const struct resource {
	const char *path, *parameters;
	ow_api_handler *handler;
} resources[] = {
	{"/api/v1/", "", ow_api_root},
	{"/api/v1/lanes", "", ow_api_lanes},
	{"/api/v1/series", OW_API_LANES " " OW_API_TIMES " width", ow_api_series},
	{"/api/v1/summary", OW_API_LANES " " OW_API_TIMES " by period", ow_api_summary},
	{"/api/v1/results", OW_API_LANES " " OW_API_TIMES " period limit", ow_api_results},
	{"/api/v1/matrix", "segment class " OW_API_TIMES, ow_api_matrix},
	{"/api/v1/network", "class at_ns window_ns", ow_api_network},
	{"/api/v1/path", "from to class " OW_API_TIMES, ow_api_path},
	{"/api/v1/verdicts", OW_API_TIMES, ow_api_verdicts},
	{"/api/v1/events", OW_API_LANES " " OW_API_TIMES " limit", ow_api_events},
	{"/api/v1/points", "", ow_api_points},
	{"/api/v1/flows", OW_API_TIMES " worst", ow_api_flows},
	{"/api/v1/truth", "", ow_api_truth},
};
#define RESOURCES (sizeof resources / sizeof *resources)

static const struct resource *find(const char *path)
{
	for (size_t i = 0; i < RESOURCES; i++) {
		if (strcmp(resources[i].path, path) == 0)
			return &resources[i];
	}
	return NULL;
}

int ow_api_create(const struct ow_api_options *options, struct ow_api **ret_api, struct ow_error *err)
{
	struct ow_api *api = calloc(1, sizeof *api);
	if (!api)
		return ow_error_set(err, ENOMEM, "not enough memory");
	api->options = *options;
	if (!api->options.limit_ns)
		api->options.limit_ns = OW_API_LIMIT_NS;
	int r = ow_stores_create(options->store, &api->stores, err);
	if (r == 0 && (ow_verdicts_create(options->store, api->stores, &api->verdicts) < 0 ||
	               ow_news_create(api->stores, &api->news) < 0))
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r < 0)
		ow_api_free(api);
	else
		*ret_api = api;
	return r;
}

int ow_api_start(struct ow_api *api, struct ow_error *err)
{
	int r = ow_verdicts_start(api->verdicts, err);
	return r < 0 ? r : ow_news_start(api->news, err);
}

void ow_api_stop(struct ow_api *api)
{
	ow_news_stop(api->news);
}

struct ow_news *ow_api_news(struct ow_api *api)
{
	return api->news;
}

void ow_api_free(struct ow_api *api)
{
	if (!api)
		return;
	ow_news_free(api->news);
	ow_verdicts_free(api->verdicts);
	ow_stores_free(api->stores);
	free(api);
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

static unsigned status_of(int r)
{
	switch (r) {
	case -EINVAL:
		return 400;
	case -ENOENT:
		return 404;
	case -ENODATA:
		return 404;
	case -EBUSY:
	case -ETIME:
	case -EAGAIN:
	case -ECONNRESET:
		return 503;
	default:
		return 500;
	}
}

int ow_api_refuse(unsigned status, const char *why, struct ow_api_answer *ret_answer)
{
	*ret_answer = (struct ow_api_answer){.status = status};
	FILE *out = open_memstream(&ret_answer->body, &ret_answer->size);
	if (!out)
		return -ENOMEM;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "error", why);
	ow_json_end(&json);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

static int run(struct ow_call *call, const struct resource *resource, struct ow_error *err)
{
	struct ow_api *api = call->api;
	int r = ow_query_allow(call->query, resource->parameters, err);
	if (r == 0)
		r = ow_stores_take(api->stores, WAIT_NS, &call->stored, err);
	if (r < 0)
		return r;
	r = ow_stored_end_at(call->stored, ow_clock_steady_ns() + api->options.limit_ns, err);
	if (r == 0)
		r = resource->handler(call, err);
	ow_stores_give(api->stores, call->stored, r < 0 && status_of(r) >= 500);
	return r;
}

int ow_api_answer(struct ow_api *api, const struct ow_query *query, struct ow_api_answer *ret_answer)
{
	const struct resource *resource = find(query->path);
	struct ow_call call = {.api = api, .query = query, .now_ns = ow_clock_real_ns()};
	struct ow_error err;
	if (!resource)
		return ow_api_refuse(404, "no such resource; docs/web.md lists them", ret_answer);
	*ret_answer = (struct ow_api_answer){.status = 200};
	FILE *out = open_memstream(&ret_answer->body, &ret_answer->size);
	if (!out)
		return -ENOMEM;
	call.json.out = out;
	int r = run(&call, resource, &err);
	if (fclose(out) != 0)
		r = -ENOMEM;
	if (r == 0)
		return 0;
	free(ret_answer->body);
	return r == -ENOMEM ? r : ow_api_refuse(status_of(r), err.text, ret_answer);
}

/* -- selections --------------------------------------------------------------------------------------------------- */

int ow_api_select(struct ow_call *call, struct ow_error *err)
{
	struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	const struct ow_query *query = call->query;
	filter.segment = ow_query_get(query, "segment");
	filter.class_name = ow_query_get(query, "class");
	filter.from = ow_query_get(query, "from");
	filter.to = ow_query_get(query, "to");
	int r = ow_query_time(query, "since", call->now_ns, &filter.since_ns, err);
	if (r == 0)
		r = ow_query_time(query, "until", call->now_ns, &filter.until_ns, err);
	if (r == 0 && filter.since_ns >= filter.until_ns)
		r = ow_error_set(err, EINVAL, "since is not before until");
	call->filter = filter;
	return r < 0 ? r : ow_stored_choose(call->stored, &filter, err);
}

/* Points send minutes to a server, and intervals of few lanes: then minutes are the finest. */
static int finest(struct ow_call *call, enum ow_period *ret_least, struct ow_error *err)
{
	struct ow_stored_filter filter = call->filter;
	*ret_least = ow_stored_finest(call->stored);
	if (*ret_least != OW_PERIOD_MINUTE)
		return 0;
	filter.period = OW_PERIOD_INTERVAL;
	int r = ow_stored_choose(call->stored, &filter, err);
	if (r == 0)
		r = ow_stored_choose_period(call->stored, OW_PERIOD_INTERVAL, err);
	size_t lanes, chosen = 0;
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	for (size_t i = 0; i < lanes; i++)
		chosen += lane[i].chosen;
	if (r == 0 && chosen == 1)
		*ret_least = ow_stored_period(call->stored);
	return r;
}

int ow_api_sum(struct ow_call *call, const struct ow_stored_sum_options *options, enum ow_period most,
               struct ow_stored_sums *ret_sums, struct ow_error *err)
{
	struct ow_stored_division division = {0};
	struct ow_stored_sum_options o = *options;
	enum ow_period least = OW_PERIOD_INTERVAL;
	int r = finest(call, &least, err);
	if (r == 0)
		r = ow_stored_divide(call->stored, least, most > least ? most : least, &division, err);
	if (r < 0)
		return r;
	o.division = &division;
	r = ow_stored_summarise(call->stored, &o, ret_sums, err);
	ow_stored_division_done(&division);
	return r;
}

const char *ow_api_period(enum ow_period period)
{
	return period ? ow_periods[period].table : "interval";
}

void ow_api_lane(struct ow_json *json, const struct ow_stored_lane *lane)
{
	ow_json_string(json, "segment", lane->segment);
	ow_json_string(json, "class", lane->class_name);
	ow_json_string(json, "from", lane->from);
	ow_json_string(json, "to", lane->to);
}
