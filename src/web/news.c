/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events (the event stream of the HTML standard). The thread reads the results behind the last final one of
 * each lane every second; a result is told when it is there, and again when it is final.
 */
#include "web/news.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/id_map.h"
#include "base/random.h"
#include "base/thread.h"
#include "base/time.h"
#include "result/result_json.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS      OW_NS_PER_S
#define HEARTBEAT_NS (15 * OW_NS_PER_S)
/* Results that began longer before the newest one are not waited for. */
#define BEHIND_NS (120 * OW_NS_PER_S)
#define NAMES     4
#define EVENTS    64 /* of flows, that are looked at each time */

struct event {
	char *text; /* as it is sent */
	size_t size;
	char name[NAMES][OW_RESULT_NAME];
};

/* What was told of a lane: the starts of its last final and of its last provisional result. */
struct lane {
	uint64_t id;
	int64_t final_ns, provisional_ns;
};

struct ow_news {
	struct ow_stores *stores;
	pthread_t thread;
	bool is_started;
	uint32_t instance; /* events of another run have other ids */
	/* Of the thread. */
	struct lane *lane;
	size_t lanes, lanes_room;
	struct ow_id_map by_name; /* lanes by the hash of their names */
	bool has_baseline;
	int64_t newest_ns, since_ns, event_ns;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t more;
	bool stop;
	unsigned clients;
	uint64_t first, next; /* numbers of the events that are kept */
	struct event kept[OW_NEWS_KEPT];
};

struct ow_news_client {
	struct ow_news *news;
	uint64_t next;
	char name[NAMES][OW_RESULT_NAME]; /* selected; "": all */
	char *text;                       /* what is being sent */
	size_t size, sent;
};

/* -- events ------------------------------------------------------------------------------------------------------- */

static void keep(struct ow_news *news, struct event *event)
{
	pthread_mutex_lock(&news->lock);
	struct event *place = &news->kept[news->next % OW_NEWS_KEPT];
	free(place->text);
	*place = *event;
	news->next++;
	if (news->next - news->first > OW_NEWS_KEPT)
		news->first++;
	pthread_cond_broadcast(&news->more);
	pthread_mutex_unlock(&news->lock);
}

/* "id: ...", "event: ..." and "data: " before the line of JSON. */
static FILE *begin(const struct ow_news *news, const char *kind, struct event *event)
{
	FILE *out = open_memstream(&event->text, &event->size);
	if (out)
		fprintf(out, "id: %" PRIx32 "-%" PRIu64 "\nevent: %s\ndata: ", news->instance, news->next, kind);
	return out;
}

static void end(struct ow_news *news, FILE *out, struct event *event)
{
	/* The line of JSON has its end; an empty line ends the event. */
	fputc('\n', out);
	if (fclose(out) == 0)
		keep(news, event);
	else
		free(event->text);
}

static void tell(struct ow_news *news, const struct ow_interval_result *result)
{
	struct event event = {.text = NULL};
	FILE *out = begin(news, "result", &event);
	if (!out)
		return;
	ow_result_json(out, result);
	memcpy(event.name[0], result->segment, OW_RESULT_NAME);
	memcpy(event.name[1], result->class_name, OW_RESULT_NAME);
	memcpy(event.name[2], result->from, OW_RESULT_NAME);
	memcpy(event.name[3], result->to, OW_RESULT_NAME);
	end(news, out, &event);
}

/* -- the thread --------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct ow_interval_result *r)
{
	const char *names[] = {r->segment, r->class_name, r->from, r->to};
	uint64_t hash = 0;
	for (int i = 0; i < NAMES; i++) {
		for (const char *at = names[i]; *at; at++)
			hash = ow_mix64(hash ^ (uint64_t)(unsigned char)*at);
		hash = ow_mix64(hash + 1);
	}
	return hash;
}

/* The lane of a result, entered if it is new. NULL: out of memory. */
static struct lane *lane_of(struct ow_news *news, const struct ow_interval_result *r)
{
	uint64_t id = hash_of(r);
	uint32_t at = OW_ID_MAP_FIND(&news->by_name, id, i, news->lane[i].id == id);
	if (at != OW_ID_MAP_NONE)
		return &news->lane[at];
	if (OW_GROW(news->lane, news->lanes_room, news->lanes + 1) < 0 ||
	    ow_id_map_add(&news->by_name, id, (uint32_t)news->lanes) < 0)
		return NULL;
	news->lane[news->lanes] = (struct lane){id, INT64_MIN, INT64_MIN};
	return &news->lane[news->lanes++];
}

static int on_result(void *arg, const struct ow_interval_result *r)
{
	struct ow_news *news = arg;
	struct lane *lane = lane_of(news, r);
	if (!lane)
		return -ENOMEM;
	int64_t *told = r->final ? &lane->final_ns : &lane->provisional_ns;
	news->newest_ns = r->start_ns > news->newest_ns ? r->start_ns : news->newest_ns;
	if (r->start_ns <= *told || (!r->final && r->start_ns <= lane->final_ns))
		return 0;
	*told = r->start_ns;
	if (news->has_baseline)
		tell(news, r);
	return 0;
}

static int on_event(void *arg, const struct ow_flow_event *e)
{
	struct ow_news *news = arg;
	struct event event = {.text = NULL};
	if (e->start_ns <= news->event_ns)
		return 0;
	news->event_ns = e->start_ns;
	FILE *out = news->has_baseline ? begin(news, "flow_event", &event) : NULL;
	if (!out)
		return 0;
	struct ow_json json = {.out = out};
	ow_flow_event_json_put(&json, NULL, e);
	memcpy(event.name[0], e->segment, OW_RESULT_NAME);
	memcpy(event.name[1], e->class_name, OW_RESULT_NAME);
	memcpy(event.name[2], e->from, OW_RESULT_NAME);
	memcpy(event.name[3], e->to, OW_RESULT_NAME);
	end(news, out, &event);
	return 0;
}

/* The oldest result that is still to become final, of lanes that have new ones. */
static int64_t waits_since(const struct ow_news *news)
{
	int64_t since = news->newest_ns;
	for (size_t i = 0; i < news->lanes; i++) {
		const struct lane *lane = &news->lane[i];
		if (lane->final_ns > news->newest_ns - BEHIND_NS && lane->final_ns < since)
			since = lane->final_ns;
	}
	return since;
}

static int poll_store(struct ow_news *news, struct ow_stored *stored, struct ow_error *err)
{
	struct ow_stored_filter filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	int64_t first;
	filter.period = ow_stored_finest(stored);
	int r = ow_stored_choose(stored, &filter, err);
	if (r == 0 && !news->has_baseline)
		r = ow_stored_span(stored, &first, &news->newest_ns, err);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	filter.since_ns = news->has_baseline ? waits_since(news) : news->newest_ns - BEHIND_NS;
	r = ow_stored_choose(stored, &filter, err);
	if (r == 0)
		r = ow_stored_list(stored, 0, on_result, news, err);
	filter.period = OW_PERIOD_INTERVAL;
	if (r == 0)
		r = ow_stored_choose(stored, &filter, err);
	if (r == 0)
		r = ow_stored_events(stored, EVENTS, on_event, news, err);
	news->has_baseline = r == 0;
	return r;
}

static void forget_lanes(struct ow_news *news)
{
	ow_id_map_clear(&news->by_name);
	news->lanes = 0;
	news->has_baseline = false;
}

static void ask(struct ow_news *news)
{
	struct ow_stored *stored;
	struct ow_error err;
	if (ow_stores_take(news->stores, POLL_NS, &stored, &err) < 0)
		return;
	int r = ow_stored_end_at(stored, ow_clock_steady_ns() + 10 * OW_NS_PER_S, &err);
	if (r == 0)
		r = poll_store(news, stored, &err);
	ow_stores_give(news->stores, stored, r < 0);
}

static void wait_until(struct ow_news *news, int64_t steady_ns)
{
	struct timespec until = {steady_ns / OW_NS_PER_S, steady_ns % OW_NS_PER_S};
	pthread_cond_timedwait(&news->more, &news->lock, &until);
}

static void *run(void *arg)
{
	struct ow_news *news = arg;
	int64_t next_ns = 0;
	pthread_mutex_lock(&news->lock);
	while (!news->stop) {
		int64_t now_ns = ow_clock_steady_ns();
		if (now_ns < next_ns || !news->clients) {
			wait_until(news, now_ns < next_ns ? next_ns : now_ns + POLL_NS);
			continue;
		}
		bool is_late = now_ns - next_ns > 60 * OW_NS_PER_S;
		next_ns = now_ns + POLL_NS;
		pthread_mutex_unlock(&news->lock);
		/* Nobody listened for a while: what came meanwhile is not news. */
		if (is_late)
			forget_lanes(news);
		ask(news);
		pthread_mutex_lock(&news->lock);
	}
	pthread_mutex_unlock(&news->lock);
	return NULL;
}

/* -- clients ------------------------------------------------------------------------------------------------------ */

/* The event after the last one that the client had; false: it is not known any more. */
static bool find_next(const struct ow_news *news, const char *last_id, uint64_t *ret_next)
{
	unsigned instance;
	unsigned long long number;
	*ret_next = news->next;
	if (!last_id || sscanf(last_id, "%8x-%20llu", &instance, &number) != 2 || instance != news->instance ||
	    number + 1 < news->first || number >= news->next)
		return false;
	*ret_next = number + 1;
	return true;
}

static int greet(struct ow_news_client *client, bool is_resumed)
{
	FILE *out = open_memstream(&client->text, &client->size);
	if (!out)
		return -ENOMEM;
	fputs("retry: 2000\nevent: hello\ndata: ", out);
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_integer(&json, "now_ns", ow_clock_real_ns());
	ow_json_flag(&json, "resumed", is_resumed);
	ow_json_end(&json);
	fputc('\n', out);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

int ow_news_join(struct ow_news *news, const struct ow_query *query, const char *last_id,
                 struct ow_news_client **ret_client, struct ow_error *err)
{
	static const char *const names[NAMES] = {"segment", "class", "from", "to"};
	int r = ow_query_allow(query, "segment class from to", err);
	if (r < 0)
		return r;
	struct ow_news_client *client = calloc(1, sizeof *client);
	if (!client)
		return ow_error_set(err, ENOMEM, "not enough memory");
	client->news = news;
	for (int i = 0; i < NAMES; i++) {
		const char *name = ow_query_get(query, names[i]);
		snprintf(client->name[i], OW_RESULT_NAME, "%s", name ? name : "");
	}
	pthread_mutex_lock(&news->lock);
	bool is_full = news->clients == OW_NEWS_CLIENTS || news->stop;
	bool is_resumed = !is_full && find_next(news, last_id, &client->next);
	r = is_full ? ow_error_set(err, EBUSY, "%d clients listen already", OW_NEWS_CLIENTS)
	            : greet(client, is_resumed);
	news->clients += r == 0;
	pthread_cond_broadcast(&news->more);
	pthread_mutex_unlock(&news->lock);
	if (r == 0)
		*ret_client = client;
	else
		free(client);
	return r;
}

void ow_news_leave(struct ow_news_client *client)
{
	pthread_mutex_lock(&client->news->lock);
	client->news->clients--;
	pthread_mutex_unlock(&client->news->lock);
	free(client->text);
	free(client);
}

static bool is_selected(const struct ow_news_client *client, const struct event *event)
{
	for (int i = 0; i < NAMES; i++) {
		if (*client->name[i] && strcmp(client->name[i], event->name[i]) != 0)
			return false;
	}
	return true;
}

/* Takes the next event that the client has selected, without waiting. The lock is held. */
static void take(struct ow_news_client *client)
{
	const struct ow_news *news = client->news;
	/* A client that reads slower than results come misses some; the numbers show it. */
	if (client->next < news->first)
		client->next = news->first;
	while (client->next < news->next && !client->text) {
		const struct event *event = &news->kept[client->next++ % OW_NEWS_KEPT];
		if (!is_selected(client, event))
			continue;
		client->text = strdup(event->text);
		client->size = client->text ? event->size : 0;
	}
}

/* Waits for an event; after a while the comment that keeps the connection open. */
static void wait_for_text(struct ow_news_client *client)
{
	struct ow_news *news = client->news;
	int64_t until_ns = ow_clock_steady_ns() + HEARTBEAT_NS;
	pthread_mutex_lock(&news->lock);
	take(client);
	while (!client->text && !news->stop && ow_clock_steady_ns() < until_ns) {
		wait_until(news, until_ns);
		take(client);
	}
	pthread_mutex_unlock(&news->lock);
	if (!client->text && !news->stop) {
		client->text = strdup(":\n\n");
		client->size = 3;
	}
}

ssize_t ow_news_read(struct ow_news_client *client, char *bytes, size_t room)
{
	if (!client->text)
		wait_for_text(client);
	if (!client->text)
		return -1;
	size_t size = client->size - client->sent < room ? client->size - client->sent : room;
	memcpy(bytes, client->text + client->sent, size);
	client->sent += size;
	if (client->sent == client->size) {
		free(client->text);
		client->text = NULL;
		client->sent = 0;
	}
	return (ssize_t)size;
}

/* -- life --------------------------------------------------------------------------------------------------------- */

int ow_news_create(struct ow_stores *stores, struct ow_news **ret_news)
{
	struct ow_news *news = calloc(1, sizeof *news);
	if (!news)
		return -ENOMEM;
	news->stores = stores;
	news->instance = (uint32_t)ow_random_secret(news);
	news->event_ns = INT64_MIN;
	pthread_condattr_t steady;
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_mutex_init(&news->lock, NULL);
	pthread_cond_init(&news->more, &steady);
	pthread_condattr_destroy(&steady);
	*ret_news = news;
	return 0;
}

int ow_news_start(struct ow_news *news, struct ow_error *err)
{
	int r = ow_thread_start(&news->thread, run, news);
	news->is_started = r == 0;
	return r < 0 ? ow_error_set(err, -r, "no thread for new results: %s", strerror(-r)) : 0;
}

void ow_news_stop(struct ow_news *news)
{
	pthread_mutex_lock(&news->lock);
	news->stop = true;
	pthread_cond_broadcast(&news->more);
	pthread_mutex_unlock(&news->lock);
	if (news->is_started)
		pthread_join(news->thread, NULL);
	news->is_started = false;
}

void ow_news_free(struct ow_news *news)
{
	if (!news)
		return;
	ow_news_stop(news);
	ow_id_map_done(&news->by_name);
	free(news->lane);
	for (size_t i = 0; i < OW_NEWS_KEPT; i++)
		free(news->kept[i].text);
	pthread_cond_destroy(&news->more);
	pthread_mutex_destroy(&news->lock);
	free(news);
}
