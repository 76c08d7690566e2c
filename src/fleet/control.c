/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/control.h"

#include "base/array.h"
#include "base/state_file.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/revocation.h"
#include "fleet/streams.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_MS 10000
#define READ_TRIES 3
/* Questions at a time. */
#define OPEN_MAX 256

/* "a\nb\n" becomes "a,b". */
static int read_urls(const struct ow_fleet *fleet, char **ret_urls, struct ow_error *err)
{
	char *path = ow_state_path(fleet->path, OW_FLEET_SERVERS);
	size_t size = 0;
	int r = path ? ow_state_read(path, 65536, ret_urls, &size, err)
	             : ow_error_set(err, ENOMEM, "not enough memory");
	free(path);
	if (r < 0)
		return r;
	while (size > 0 && (*ret_urls)[size - 1] == '\n')
		(*ret_urls)[--size] = 0;
	for (char *c = *ret_urls; *c; c++) {
		if (*c == '\n')
			*c = ',';
	}
	return 0;
}

int ow_control_open(const struct ow_fleet *fleet, const char *service, struct ow_bus **ret_bus, struct ow_error *err)
{
	char *urls = NULL, *ca = ow_state_path(fleet->path, "ca.pem"), *certificate = NULL, *key = NULL, name[64];
	int n = asprintf(&certificate, "%s/%s.pem", fleet->path, service),
	    m = asprintf(&key, "%s/%s.key", fleet->path, service);
	snprintf(name, sizeof name, "service.%s", service);
	int r = ca && n >= 0 && m >= 0 ? read_urls(fleet, &urls, err) : ow_error_set(err, ENOMEM, "not enough memory");
	struct ow_bus *bus = NULL;
	struct ow_bus_options options = {
		.urls = urls, .server = OW_BUS_NAME, .ca = ca, .certificate = certificate, .key = key, .name = name};
	if (r == 0)
		r = ow_bus_create(&options, &bus, err);
	if (r == 0)
		r = ow_bus_wait(bus, CONNECT_MS, err);
	free(urls);
	free(ca);
	if (n >= 0)
		free(certificate);
	if (m >= 0)
		free(key);
	if (r < 0) {
		ow_bus_free(bus);
		return r;
	}
	*ret_bus = bus;
	return 0;
}

int ow_control_setup(const struct ow_fleet *fleet, struct ow_bus *bus, struct ow_error *err)
{
	struct ow_streams_options options = {.replicas = fleet->settings.server_list->count >= 3 ? 3 : 1,
	                                     .max_bytes = OW_STREAMS_MAX_BYTES};
	int r = ow_streams_make(bus, &options, err);
	return r < 0 ? r : ow_revocation_reserve(bus, err);
}

/* -- health of points ---------------------------------------------------------------------------------------------- */

void ow_healths_done(struct ow_healths *healths)
{
	free(healths->health);
	*healths = (struct ow_healths){0};
}

const struct ow_health *ow_healths_find(const struct ow_healths *healths, const char *point)
{
	for (size_t i = 0; i < healths->count; i++) {
		if (strcmp(healths->health[i].point, point) == 0)
			return &healths->health[i];
	}
	return NULL;
}

/* The point is who may publish to the subject, whatever the message says. */
static void take(void *arg, const struct ow_bus_message *message)
{
	struct ow_healths *healths = arg;
	struct ow_health health;
	struct ow_error ignored;
	const char *point = message->subject + strlen("ow.h.");
	if (strncmp(message->subject, "ow.h.", 5) != 0 || !ow_fleet_name_valid(point))
		return;
	if (ow_health_parse(message->data, message->size, &health, &ignored) < 0) {
		healths->damaged++;
		health = (struct ow_health){.state = "damaged"};
	}
	snprintf(health.point, sizeof health.point, "%s", point);
	health.heard_ns = message->stored_ns;
	if (healths->count < OW_FLEET_POINTS_MAX && OW_GROW(healths->health, healths->room, healths->count + 1) == 0)
		healths->health[healths->count++] = health;
}

int ow_healths_read(struct ow_healths *healths, struct ow_bus *bus, struct ow_error *err)
{
	int r = -ETIMEDOUT;
	/* A point that reports while they are read replaces a message that was announced. */
	for (unsigned tries = 0; r == -ETIMEDOUT && tries < READ_TRIES; tries++) {
		healths->count = healths->damaged = 0;
		r = ow_bus_each(bus, OW_STREAM_HEALTH, "ow.h.>", true, take, healths, err);
	}
	return r;
}

/* A question for the health of a point. */
struct health_question {
	struct ow_healths *healths;
	const char *point;
	size_t *open;
	int *status; /* why a question has failed */
};

static void on_health(void *arg, const struct ow_bus_message *message)
{
	const struct health_question *q = arg;
	char subject[OW_BUS_SUBJECT];
	struct ow_bus_message of_point = *message;
	--*q->open;
	snprintf(subject, sizeof subject, "ow.h.%s", q->point);
	of_point.subject = subject;
	if (!message->status)
		take(q->healths, &of_point);
	else if (message->status != 404)
		*q->status = message->status;
}

int ow_healths_get(struct ow_healths *healths, struct ow_bus *bus, const struct ow_fleet_point *points, size_t count,
                   struct ow_error *err)
{
	struct health_question *question = calloc(count + 1, sizeof *question);
	char subject[OW_BUS_SUBJECT], last[OW_BUS_SUBJECT];
	size_t open = 0;
	int r = question ? 0 : ow_error_set(err, ENOMEM, "not enough memory"), status = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		question[i] = (struct health_question){healths, points[i].name, &open, &status};
		snprintf(subject, sizeof subject, "ow.h.%s", points[i].name);
		ow_bus_get_subject(OW_STREAM_HEALTH, subject, last);
		r = ow_bus_request(bus, last, NULL, 0, on_health, &question[i], err);
		open += r == 0;
		while (open >= OPEN_MAX)
			ow_bus_poll(bus, 100);
	}
	/* Each question has an end of its own. */
	while (open)
		ow_bus_poll(bus, 100);
	free(question);
	if (r == 0 && status)
		r = ow_error_set(err, ETIMEDOUT, "the bus does not say how the points are: %s",
		                 status == 503 ? "there is no stream " OW_STREAM_HEALTH : "no answer");
	return r;
}

bool ow_health_is_heard(const struct ow_health *health, int64_t now_ns)
{
	return now_ns - health->heard_ns < OW_HEALTH_FRESH_S * (int64_t)OW_NS_PER_S;
}

bool ow_health_is_fresh(const struct ow_health *health, int64_t now_ns)
{
	int64_t age_ns = now_ns - health->time_ns;
	/* Clocks may differ. */
	return ow_health_is_heard(health, now_ns) && age_ns < OW_HEALTH_FRESH_S * (int64_t)OW_NS_PER_S &&
	       age_ns > -600 * (int64_t)OW_NS_PER_S;
}
