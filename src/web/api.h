/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "web/query.h"
#include <stdbool.h>

/* The public interface: what GET /api/v1/... answers, as JSON. docs/web.md describes it. Any thread may call it. */
struct ow_api;

struct ow_api_options {
	const char *store;      /* a file, or the URL of a server */
	const char *network;    /* a topology; NULL: none */
	const char *fleet;      /* the folder of a fleet; NULL: none */
	const char *truth;      /* a file of JSON that the lab writes; NULL: none */
	const char *flows_from; /* recordings of flows; NULL: none */
	const char *flows_to;
	int64_t limit_ns; /* of a query; 0: OW_API_LIMIT_NS */
};
#define OW_API_LIMIT_NS INT64_C(20000000000)

struct ow_api_answer {
	unsigned status; /* of HTTP */
	char *body;      /* JSON, from malloc */
	size_t size;
};

/* The strings stay the caller's. Opens the store. */
int ow_api_create(const struct ow_api_options *options, struct ow_api **ret_api, struct ow_error *err);
/* Starts the threads that follow the store. */
int ow_api_start(struct ow_api *api, struct ow_error *err);
/* Ends streams, so that their connections can be closed. */
void ow_api_stop(struct ow_api *api);
void ow_api_free(struct ow_api *api);
/* New results, see web/news.h. */
struct ow_news *ow_api_news(struct ow_api *api);
/* -ENOMEM: there is no answer. */
int ow_api_answer(struct ow_api *api, const struct ow_query *query, struct ow_api_answer *ret_answer);
/* {"error": "..."} */
int ow_api_refuse(unsigned status, const char *why, struct ow_api_answer *ret_answer);
