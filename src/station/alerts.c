/* SPDX-License-Identifier: Apache-2.0 */
/* Open incidents, posted to Alertmanager by a thread. */
#include "station/alerts.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "base/thread.h"
#include "base/time.h"
#include "station/http_post.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open alerts are repeated so often; Alertmanager takes them as ended after this time without it. */
#define REPEAT_NS    (60 * OW_NS_PER_S)
#define EXPIRE_NS    (4 * 60 * OW_NS_PER_S)
#define RETRY_NS     (1 * OW_NS_PER_S)
#define RETRY_MAX_NS (30 * OW_NS_PER_S)
#define TIMEOUT_NS   (10 * OW_NS_PER_S)
/* At the end there is less time. */
#define LAST_TIMEOUT_NS (2 * OW_NS_PER_S)
#define ALERTS_MAX      (1u << 17)
/* Alerts of one request. */
#define BATCH 500

struct alert {
	char *subject, *from, *to, *id, *sentence;
	enum ow_incident_kind kind;
	int64_t since_ns, until_ns; /* until_ns NEVER: it is open */
	bool due;                   /* has changed since it was posted */
	bool sending;               /* is in the request that is under way, as it is now */
	bool posted;
};
#define NEVER INT64_MIN

struct ow_alerts {
	struct ow_http_url url;
	char *ca;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct alert *alert;
	uint32_t alerts, room;
	bool released, stop, failing, has_news;
	struct ow_error news;
	int64_t repeated_ns; /* by the steady clock */
};

static void alert_done(struct alert *alert)
{
	free(alert->subject);
	free(alert->from);
	free(alert->to);
	free(alert->id);
	free(alert->sentence);
}

/* -- requests ---------------------------------------------------------------------------------------------------------
 */

static void put_time(struct ow_json *json, const char *name, int64_t ns)
{
	char time[OW_FORMAT], text[OW_FORMAT + 1];
	ow_format_time(ns, "%Y-%m-%dT%H:%M:%S", time);
	snprintf(text, sizeof(text), "%sZ", time);
	ow_json_string(json, name, text);
}

static void put_alert(struct ow_json *json, const struct alert *alert, int64_t now_ns)
{
	bool broken = alert->kind == OW_INCIDENT_BROKEN;
	ow_json_object(json, NULL);
	ow_json_object(json, "labels");
	ow_json_string(json, "alertname", broken ? "OnewayBroken" : "OnewayUnmeasured");
	ow_json_string(json, "severity", broken ? "critical" : "warning");
	ow_json_string(json, "subject", alert->subject);
	if (alert->from && alert->to) {
		ow_json_string(json, "from", alert->from);
		ow_json_string(json, "to", alert->to);
	}
	ow_json_end(json);
	ow_json_object(json, "annotations");
	ow_json_string(json, "summary", alert->sentence);
	ow_json_string(json, "incident", alert->id);
	ow_json_end(json);
	put_time(json, "startsAt", alert->since_ns);
	put_time(json, "endsAt", alert->until_ns == NEVER ? now_ns + EXPIRE_NS : alert->until_ns);
	ow_json_end(json);
}

/* The next alerts that are due, as a document; NULL if there are none. */
static char *make_request(struct ow_alerts *alerts, size_t *ret_length)
{
	char *text = NULL;
	uint32_t count = 0;
	FILE *out = open_memstream(&text, ret_length);
	struct ow_json json = {.out = out};
	if (!out)
		return NULL;
	ow_json_array(&json, NULL);
	for (uint32_t i = 0; i < alerts->alerts && count < BATCH; i++) {
		struct alert *alert = &alerts->alert[i];
		if (!alert->due)
			continue;
		put_alert(&json, alert, ow_clock_real_ns());
		alert->due = false;
		alert->sending = true;
		count++;
	}
	ow_json_end(&json);
	bool failed = ferror(out) || fclose(out) != 0;
	if (!count || failed) {
		free(text);
		text = NULL;
	}
	return text;
}

/* What became of the request. An alert that has changed meanwhile is due again; one that has ended is done with. */
static void note(struct ow_alerts *alerts, bool worked)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < alerts->alerts; i++) {
		struct alert *alert = &alerts->alert[i];
		bool sent = alert->sending;
		alert->sending = false;
		alert->due |= sent && !worked;
		alert->posted |= sent && worked;
		if (sent && worked && alert->until_ns != NEVER && !alert->due)
			alert_done(alert);
		else
			alerts->alert[kept++] = *alert;
	}
	alerts->alerts = kept;
}

static void tell_news(struct ow_alerts *alerts, int r, const struct ow_error *err)
{
	bool fails = r < 0;
	if (fails == alerts->failing)
		return;
	alerts->failing = fails;
	alerts->has_news = true;
	if (fails)
		ow_error_set(&alerts->news, -r, "Alertmanager: %.400s; it is tried again", err->text);
	else
		ow_error_set(&alerts->news, 0, "Alertmanager takes alerts again");
}

static bool has_due(const struct ow_alerts *alerts)
{
	for (uint32_t i = 0; i < alerts->alerts; i++)
		if (alerts->alert[i].due)
			return true;
	return false;
}

static void repeat_open(struct ow_alerts *alerts)
{
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns - alerts->repeated_ns < REPEAT_NS)
		return;
	alerts->repeated_ns = now_ns;
	for (uint32_t i = 0; i < alerts->alerts; i++)
		alerts->alert[i].due = true;
}

static void sleep_until(struct ow_alerts *alerts, int64_t ns)
{
	struct timespec until = {.tv_sec = ns / OW_NS_PER_S, .tv_nsec = ns % OW_NS_PER_S};
	pthread_cond_timedwait(&alerts->changed, &alerts->mutex, &until);
}

/* Posts what is due. The lock is free while the server is asked. */
static int post(struct ow_alerts *alerts)
{
	struct ow_error err = {""};
	size_t length;
	int r = 0;
	while (r == 0) {
		char *request = make_request(alerts, &length);
		if (!request)
			break;
		int64_t timeout_ns = alerts->stop ? LAST_TIMEOUT_NS : TIMEOUT_NS;
		pthread_mutex_unlock(&alerts->mutex);
		r = ow_http_post(&alerts->url, "/api/v2/alerts", alerts->ca, request, length, timeout_ns, &err);
		free(request);
		pthread_mutex_lock(&alerts->mutex);
		note(alerts, r == 0);
		tell_news(alerts, r, &err);
	}
	return r;
}

static void *run(void *arg)
{
	struct ow_alerts *alerts = arg;
	int64_t retry_ns = RETRY_NS;
	bool stop = false;
	pthread_mutex_lock(&alerts->mutex);
	while (!stop) {
		if (!alerts->released) {
			pthread_cond_wait(&alerts->changed, &alerts->mutex);
			continue;
		}
		stop = alerts->stop;
		repeat_open(alerts);
		int r = post(alerts);
		int64_t now_ns = ow_clock_steady_ns();
		if (stop || alerts->stop)
			continue;
		if (r < 0) {
			int64_t until_ns = now_ns + retry_ns;
			while (!alerts->stop && ow_clock_steady_ns() < until_ns)
				sleep_until(alerts, until_ns);
			retry_ns = 2 * retry_ns < RETRY_MAX_NS ? 2 * retry_ns : RETRY_MAX_NS;
		} else {
			retry_ns = RETRY_NS;
			if (!has_due(alerts))
				sleep_until(alerts, alerts->repeated_ns + REPEAT_NS);
		}
	}
	pthread_mutex_unlock(&alerts->mutex);
	return NULL;
}

/* -- the station's side -----------------------------------------------------------------------------------------------
 */

int ow_alerts_start(const char *url, const char *ca, struct ow_alerts **ret_alerts, struct ow_error *err)
{
	struct ow_alerts *alerts = calloc(1, sizeof(*alerts));
	pthread_condattr_t monotonic;
	if (!alerts)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = ow_http_url_parse(url, &alerts->url, err);
	if (r < 0) {
		free(alerts);
		return r;
	}
	alerts->ca = ca ? strdup(ca) : NULL;
	alerts->repeated_ns = ow_clock_steady_ns();
	pthread_mutex_init(&alerts->mutex, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&alerts->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = ca && !alerts->ca ? -ENOMEM : ow_thread_start(&alerts->thread, run, alerts);
	if (r < 0) {
		free(alerts->ca);
		free(alerts);
		return ow_error_set(err, -r, "a thread for alerts: %s", strerror(-r));
	}
	*ret_alerts = alerts;
	return 0;
}

void ow_alerts_release(struct ow_alerts *alerts)
{
	pthread_mutex_lock(&alerts->mutex);
	alerts->released = true;
	pthread_cond_signal(&alerts->changed);
	pthread_mutex_unlock(&alerts->mutex);
}

void ow_alerts_stop(struct ow_alerts *alerts)
{
	if (!alerts)
		return;
	pthread_mutex_lock(&alerts->mutex);
	alerts->stop = alerts->released = true;
	pthread_cond_signal(&alerts->changed);
	pthread_mutex_unlock(&alerts->mutex);
	pthread_join(alerts->thread, NULL);
	for (uint32_t i = 0; i < alerts->alerts; i++)
		alert_done(&alerts->alert[i]);
	free(alerts->alert);
	pthread_cond_destroy(&alerts->changed);
	pthread_mutex_destroy(&alerts->mutex);
	free(alerts->ca);
	free(alerts);
}

/* Alertmanager takes alerts with the same labels as one, so there is one here, too. */
static struct alert *find_or_add(struct ow_alerts *alerts, const struct ow_incident *incident)
{
	for (uint32_t i = 0; i < alerts->alerts; i++)
		if (alerts->alert[i].kind == incident->kind && strcmp(alerts->alert[i].subject, incident->subject) == 0)
			return &alerts->alert[i];
	if (alerts->alerts == ALERTS_MAX || OW_GROW(alerts->alert, alerts->room, alerts->alerts + 1) < 0)
		return NULL;
	struct alert alert = {.subject = strdup(incident->subject), .kind = incident->kind};
	if (incident->target) {
		alert.from = strdup(incident->target->from);
		alert.to = strdup(incident->target->to);
	}
	if (!alert.subject || (incident->target && (!alert.from || !alert.to))) {
		alert_done(&alert);
		return NULL;
	}
	alerts->alert[alerts->alerts] = alert;
	return &alerts->alert[alerts->alerts++];
}

static int fill(struct alert *alert, enum ow_incident_event event, const struct ow_incident *incident,
                const char *sentence)
{
	char *id = strdup(incident->id), *text = strdup(sentence);
	if (!id || !text) {
		free(id);
		free(text);
		return -ENOMEM;
	}
	free(alert->id);
	free(alert->sentence);
	alert->id = id;
	alert->sentence = text;
	alert->since_ns = incident->since_ns;
	alert->until_ns = event == OW_INCIDENT_END ? incident->until_ns : NEVER;
	/* What ended long ago, and was never posted by us, Alertmanager has forgotten as well. */
	bool past = event == OW_INCIDENT_END && !alert->posted && !alert->sending &&
	            incident->until_ns < ow_clock_real_ns() - EXPIRE_NS;
	alert->due = !past;
	return past ? 1 : 0;
}

int ow_alerts_tell(struct ow_alerts *alerts, enum ow_incident_event event, const struct ow_incident *incident,
                   const char *sentence)
{
	pthread_mutex_lock(&alerts->mutex);
	struct alert *alert = find_or_add(alerts, incident);
	int r = !alert ? -ENOMEM : fill(alert, event, incident, sentence);
	if (r > 0) {
		alert_done(alert);
		*alert = alerts->alert[--alerts->alerts];
	}
	pthread_cond_signal(&alerts->changed);
	pthread_mutex_unlock(&alerts->mutex);
	return r < 0 ? r : 0;
}

bool ow_alerts_news(struct ow_alerts *alerts, struct ow_error *ret_line)
{
	pthread_mutex_lock(&alerts->mutex);
	bool has = alerts->has_news;
	alerts->has_news = false;
	*ret_line = alerts->news;
	pthread_mutex_unlock(&alerts->mutex);
	return has;
}
