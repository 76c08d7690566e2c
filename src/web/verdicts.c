/* SPDX-License-Identifier: Apache-2.0 */
/* A station in a thread, and the incidents that it has told of. */
#include "web/verdicts.h"

#include "base/clock.h"
#include "base/thread.h"
#include "base/time.h"
#include "report/verdicts.h"
#include "station/monitoring.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* After a failure it begins again. */
#define RETRY_S 10

struct ow_verdicts {
	const char *path;
	struct ow_stores *stores;
	pthread_t thread;
	bool is_started;
	volatile sig_atomic_t stop;
	pthread_mutex_t lock; /* for what follows */
	struct ow_verdict verdict[OW_VERDICTS_MAX];
	size_t count;
	int64_t from_ns, until_ns;
	struct ow_error problem;
};

static void forget(struct ow_verdict *v)
{
	free(v->id);
	free(v->subject);
	free(v->from);
	free(v->to);
	free(v->text);
	free(v->why);
	free(v->evidence);
	*v = (struct ow_verdict){0};
}

static char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* The lines that the station prints for it, and its findings as JSON. */
static void render(enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident,
                   struct ow_verdict *v)
{
	struct ow_style plain = {0};
	char sentence[OW_REPORT_SENTENCE];
	size_t size;
	ow_report_incident_sentence(incident, sentence);
	v->text = strdup(sentence);
	FILE *out = open_memstream(&v->why, &size);
	if (out) {
		ow_report_incident(out, &plain, event, now_ns, incident);
		fclose(out);
	}
	out = open_memstream(&v->evidence, &size);
	if (!out)
		return;
	struct ow_json json = {.out = out};
	ow_json_array(&json, NULL);
	for (uint32_t i = 0; i < incident->findings; i++)
		ow_report_finding_json(&json, &incident->finding[i]);
	ow_json_end(&json);
	fclose(out);
	v->evidence[strcspn(v->evidence, "\n")] = 0;
}

/* The place of an incident: its own, a free one, or that of the oldest. */
static struct ow_verdict *place_for(struct ow_verdicts *verdicts, const char *id)
{
	for (size_t i = verdicts->count; i > 0; i--) {
		struct ow_verdict *v = &verdicts->verdict[i - 1];
		if (v->id && strcmp(v->id, id) == 0)
			return v;
	}
	if (verdicts->count == OW_VERDICTS_MAX) {
		forget(&verdicts->verdict[0]);
		memmove(verdicts->verdict, verdicts->verdict + 1, (OW_VERDICTS_MAX - 1) * sizeof *verdicts->verdict);
		verdicts->count--;
		verdicts->verdict[verdicts->count] = (struct ow_verdict){0};
	}
	return &verdicts->verdict[verdicts->count++];
}

static void on_incident(void *arg, enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident,
                        struct ow_station_input *input)
{
	struct ow_verdicts *verdicts = arg;
	(void)input;
	pthread_mutex_lock(&verdicts->lock);
	struct ow_verdict *v = place_for(verdicts, incident->id);
	forget(v);
	v->id = strdup(incident->id);
	v->subject = strdup(incident->subject);
	v->from = copy_of(incident->target ? incident->target->from : NULL);
	v->to = copy_of(incident->target ? incident->target->to : NULL);
	v->is_broken = incident->kind == OW_INCIDENT_BROKEN;
	v->since_ns = incident->since_ns;
	v->until_ns = event == OW_INCIDENT_END ? incident->until_ns : INT64_MAX;
	render(event, now_ns, incident, v);
	pthread_mutex_unlock(&verdicts->lock);
}

static void on_interval(void *arg, int64_t start_ns, int64_t length_ns, const struct ow_monitor_verdict *verdict,
                        uint32_t count, const char *hops)
{
	struct ow_verdicts *verdicts = arg;
	(void)verdict, (void)count, (void)hops;
	pthread_mutex_lock(&verdicts->lock);
	verdicts->until_ns = start_ns + length_ns;
	verdicts->problem.text[0] = 0;
	pthread_mutex_unlock(&verdicts->lock);
}

static void on_warning(void *arg, const char *text)
{
	(void)arg, (void)text;
}

static void ignore_network(void *arg, int64_t now_ns, const char *changes)
{
	(void)arg, (void)now_ns, (void)changes;
}

static void ignore(void *arg)
{
	(void)arg;
}

static void ignore_end(void *arg, const struct ow_monitor_verdict *verdict, uint32_t count,
                       const struct ow_monitor_count *counts)
{
	(void)arg, (void)verdict, (void)count, (void)counts;
}

/* From where on to judge: a day before the last result, less if there are many lanes. */
static int begin_at(struct ow_verdicts *verdicts, int64_t *ret_since_ns, struct ow_error *err)
{
	struct ow_stored *stored;
	const struct ow_stored_filter all = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	int64_t first, last = 0;
	size_t lanes = 0;
	int r = ow_stores_take(verdicts->stores, INT64_MAX / 4, &stored, err);
	if (r < 0)
		return r;
	r = ow_stored_end_at(stored, ow_clock_steady_ns() + 60 * OW_NS_PER_S, err);
	if (r == 0)
		r = ow_stored_choose(stored, &all, err);
	if (r == 0)
		r = ow_stored_span(stored, &first, &last, err);
	ow_stored_lanes(stored, &lanes);
	ow_stores_give(verdicts->stores, stored, r < 0 && r != -ENODATA);
	if (r != 0)
		return r;
	int64_t history_ns = OW_VERDICTS_RESULTS / (int64_t)(lanes ? lanes : 1) * OW_NS_PER_S;
	history_ns = history_ns < OW_VERDICTS_HISTORY_NS ? history_ns : OW_VERDICTS_HISTORY_NS;
	*ret_since_ns = last - history_ns > first ? last - history_ns : first;
	return 0;
}

static int judge(struct ow_verdicts *verdicts, struct ow_error *err)
{
	struct ow_station *station = NULL;
	struct ow_monitoring_count count = {0};
	char *path = (char *)(uintptr_t)verdicts->path;
	int64_t since_ns = 0;
	int r = begin_at(verdicts, &since_ns, err);
	if (r == 0)
		r = ow_station_read(NULL, &station, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&verdicts->lock);
	verdicts->from_ns = verdicts->until_ns = since_ns;
	pthread_mutex_unlock(&verdicts->lock);
	const struct ow_monitoring how = {.station = station,
	                                  .since_ns = since_ns > 0 ? since_ns : 1,
	                                  .until_ns = INT64_MAX,
	                                  .follow = true,
	                                  .stop = &verdicts->stop,
	                                  .on_incident = on_incident,
	                                  .on_interval = on_interval,
	                                  .on_network = ignore_network,
	                                  .on_caught_up = ignore,
	                                  .on_idle = ignore,
	                                  .on_warning = on_warning,
	                                  .on_end = ignore_end,
	                                  .arg = verdicts};
	r = ow_monitoring_run(&how, &path, 1, &count, err);
	ow_station_free(station);
	return r;
}

static void *run(void *arg)
{
	struct ow_verdicts *verdicts = arg;
	while (!verdicts->stop) {
		struct ow_error err = {""};
		int r = judge(verdicts, &err);
		pthread_mutex_lock(&verdicts->lock);
		if (r < 0)
			verdicts->problem = err;
		pthread_mutex_unlock(&verdicts->lock);
		for (int i = 0; i < RETRY_S * 10 && !verdicts->stop; i++)
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	}
	return NULL;
}

int ow_verdicts_create(const char *path, struct ow_stores *stores, struct ow_verdicts **ret_verdicts)
{
	struct ow_verdicts *verdicts = calloc(1, sizeof *verdicts);
	if (!verdicts)
		return -ENOMEM;
	verdicts->path = path;
	verdicts->stores = stores;
	pthread_mutex_init(&verdicts->lock, NULL);
	*ret_verdicts = verdicts;
	return 0;
}

int ow_verdicts_start(struct ow_verdicts *verdicts, struct ow_error *err)
{
	int r = ow_thread_start(&verdicts->thread, run, verdicts);
	verdicts->is_started = r == 0;
	return r < 0 ? ow_error_set(err, -r, "no thread for verdicts: %s", strerror(-r)) : 0;
}

void ow_verdicts_free(struct ow_verdicts *verdicts)
{
	if (!verdicts)
		return;
	verdicts->stop = 1;
	if (verdicts->is_started)
		pthread_join(verdicts->thread, NULL);
	for (size_t i = 0; i < verdicts->count; i++)
		forget(&verdicts->verdict[i]);
	pthread_mutex_destroy(&verdicts->lock);
	free(verdicts);
}

void ow_verdicts_list(struct ow_verdicts *verdicts, int64_t since_ns, int64_t until_ns, ow_verdicts_each *each,
                      void *arg, int64_t *ret_from_ns, int64_t *ret_until_ns, struct ow_error *ret_problem)
{
	pthread_mutex_lock(&verdicts->lock);
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct ow_verdict *v = &verdicts->verdict[i];
		if (v->since_ns < until_ns && v->until_ns >= since_ns)
			each(arg, v);
	}
	*ret_from_ns = verdicts->from_ns;
	*ret_until_ns = verdicts->until_ns;
	*ret_problem = verdicts->problem;
	pthread_mutex_unlock(&verdicts->lock);
}
