/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json_writer.h"
#include "store/stored_sum.h"
#include "web/api.h"
#include "web/stores.h"
#include <pthread.h>

/* Private to the files api*.c. */
struct ow_api {
	struct ow_api_options options;
	struct ow_stores *stores;
	struct ow_verdicts *verdicts;
	struct ow_news *news;
	pthread_mutex_t fleet_lock;
};

/* A request that is being answered. */
struct ow_call {
	struct ow_api *api;
	const struct ow_query *query;
	struct ow_stored *stored;
	struct ow_json json;
	int64_t now_ns;
	struct ow_stored_filter filter; /* what was selected */
};

/* Writes one object to call->json. -EINVAL, -ENOENT, -ENODATA: the request is at fault. */
typedef int ow_api_handler(struct ow_call *call, struct ow_error *err);

/* Selects lanes and time by the parameters of the request. */
#define OW_API_LANES "segment class from to"
#define OW_API_TIMES "since until since_ns until_ns"
int ow_api_select(struct ow_call *call, struct ow_error *err);
/* "interval", "minute", ... */
const char *ow_api_period(enum ow_period period);
void ow_api_lane(struct ow_json *json, const struct ow_stored_lane *lane);

/* An incident; segment: NULL if it is not known. */
struct ow_verdict;
void ow_api_verdict(struct ow_json *json, const char *name, const struct ow_verdict *verdict, const char *segment);

ow_api_handler ow_api_root, ow_api_lanes, ow_api_results, ow_api_summary, ow_api_series; /* what is stored */
/* Fails if the fleet cannot be asked. */
ow_api_handler ow_api_fleet_points, ow_api_seconds;
ow_api_handler ow_api_matrix, ow_api_network, ow_api_path;                                /* all lanes */
ow_api_handler ow_api_verdicts, ow_api_events, ow_api_points, ow_api_flows, ow_api_truth; /* and the rest */
