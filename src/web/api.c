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
	{"/api/v1/seconds", OW_API_LANES " " OW_API_TIMES, ow_api_seconds},
	{"/api/v1/flows", OW_API_TIMES " worst order by", ow_api_flows},
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
	pthread_mutex_init(&api->fleet_lock, NULL);
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
