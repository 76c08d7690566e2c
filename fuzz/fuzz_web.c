/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the page's server. Text that begins with / is the target of one: it is parsed and answered from a small
 * store, and every answer is JSON with a status of the interface. Other bytes go to the server over a real connection:
 * an answer is HTTP with a status that it uses, and who gets none does not prevent answers to others.
 */
#include "base/time.h"
#include "http_client.h"
#include "store/store.h"
#include "web/server.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>

#define ROWS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/oneway-fuzz-XXXXXX", path[sizeof folder + 16];
static struct ow_api *api;
static struct ow_web *web;

static void end(void)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	ow_api_stop(api);
	ow_web_free(web);
	ow_api_free(api);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char name[sizeof path + 16];
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
	rmdir(folder);
}

static void make_store(void)
{
	struct ow_store *store;
	struct ow_error err;
	check(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/store.db", folder);
	check(ow_store_open(path, &store, &err) == 0);
	for (int i = 0; i < ROWS; i++) {
		static struct ow_interval_result r;
		ow_result_blank(i, INT64_C(1700000000) * OW_NS_PER_S + i * OW_NS_PER_S, OW_NS_PER_S, &r);
		snprintf(r.segment, sizeof r.segment, "a-b");
		snprintf(r.class_name, sizeof r.class_name, "all");
		snprintf(r.from, sizeof r.from, "a");
		snprintf(r.to, sizeof r.to, "b");
		r.final = true;
		r.status = i == 4 ? OW_RESULT_UNKNOWN : OW_RESULT_MEASURED;
		r.sent = r.received = r.matched = r.samples = i == 4 ? 0 : 100;
		r.mean_ns = r.stddev_ns = r.min_ns = r.max_ns = r.loss_ratio = ow_value_exact(1000);
		check(ow_store_add(store, &r, &err) == 0);
	}
	check(ow_store_commit(store, &err) == 0);
	ow_store_close(store);
}

/* Started once. */
static void start(void)
{
	struct ow_error err;
	if (api)
		return;
	make_store();
	signal(SIGPIPE, SIG_IGN);
	const struct ow_api_options shown = {.store = path};
	const struct ow_web_options served = {.address = "127.0.0.1:0", .rate = 1000000};
	check(ow_api_create(&shown, &api, &err) == 0 && ow_api_start(api, &err) == 0);
	check(ow_web_create(&served, &web, &err) == 0 && ow_web_start(web, api, &err) == 0);
	atexit(end);
}

static void answer_target(const char *target)
{
	static const unsigned meant[] = {200, 400, 404, 503};
	static struct ow_query query;
	struct ow_api_answer answer;
	struct ow_error err;
	bool known = false;
	if (ow_query_parse(target, &query, &err) < 0) {
		check(*err.text != 0);
		return;
	}
	check(query.count <= OW_QUERY_PARAMETERS && *query.path == '/');
	check(ow_api_answer(api, &query, &answer) == 0);
	for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
		known |= answer.status == meant[i];
	check(known);
	json_t *json = json_loadb(answer.body, answer.size, 0, NULL);
	check(json_is_object(json));
	check((answer.status == 200) != (json_object_get(json, "error") != NULL));
	json_decref(json);
	free(answer.body);
}

static void answer_bytes(const uint8_t *data, size_t size)
{
	static const int meant[] = {100, 200, 303, 304, 400, 404, 405, 411, 413,
	                            414, 421, 429, 431, 500, 501, 503, 505, 0};
	static const char simple[] = "GET /api/v1/ HTTP/1.0\r\nHost: localhost\r\n\r\n";
	char address[96];
	snprintf(address, sizeof address, "%s", ow_web_url(web) + strlen("http://"));
	address[strcspn(address, "/")] = 0;
	const char *answer = http_ask(address, data, size, HTTP_PATIENCE_MS);
	http_check_status(
		*answer ? answer : http_ask(address, (const uint8_t *)simple, sizeof simple - 1, HTTP_WAIT_MS), meant);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	if (!size || *data != '/') {
		answer_bytes(data, size);
		return 0;
	}
	char *target = strndup((const char *)data, size);
	check(target != NULL);
	answer_target(target);
	free(target);
	return 0;
}
