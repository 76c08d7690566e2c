/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/collector.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "fleet/point_limit.h"
#include "fleet/question.h"
#include "fleet/result_batch.h"
#include "fleet/streams.h"
#include "store/postgres_gaps.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages that are asked for at a time. */
#define PULL_MESSAGES 2000
/* Messages that cannot be stored are given back by not acknowledging them: before they would come again anyway. */
#define HOLD_NS (20 * OW_NS_PER_S)
/* After a failure of the database: pauses grow from the first to the second. */
#define PAUSE_LEAST_NS (200 * OW_NS_PER_MS)
#define PAUSE_MOST_NS  (10 * OW_NS_PER_S)
#define MAINTAIN_NS    (5 * OW_NS_PER_S)
/* Minutes that the database lacks: they are looked for this often, in this time before now; once an hour, and at first,
 * in a day: 20,000 lanes have 29 million minutes in it, which takes 15 s. Points need some minutes to send what they
 * have. */
#define GAPS_EACH_NS  (300 * OW_NS_PER_S)
#define GAPS_BACK_NS  (2 * 3600 * OW_NS_PER_S)
#define GAPS_LONG_NS  (24 * 3600 * OW_NS_PER_S)
#define GAPS_LONG     12
#define GAPS_AFTER_NS (600 * OW_NS_PER_S)
#define GAPS_MAX      1000
/* A message of a point that sends too much comes again after this time. */
#define POSTPONE_NS (30 * OW_NS_PER_S)
#define POINT_NAME  OW_RESULT_NAME
/* Lines about what a point sends: so many, and one in ten seconds after that. All are counted. */
#define LINES_BURST 5
#define LINES_RATE  0.1

struct row {
	char point[POINT_NAME];
	enum ow_period period;
	struct ow_interval_result result;
};

struct event_row {
	char point[POINT_NAME];
	struct ow_flow_event event;
};

struct ow_collector {
	struct ow_collector_options options;
	struct ow_bus *bus;
	struct ow_postgres_writer *writer; /* NULL = not opened yet */
	struct row *row;
	size_t rows, rows_room;
	struct event_row *event;
	size_t events, events_room;
	struct ow_postgres_row *sorted; /* for the writer */
	size_t sorted_room;
	char **reply; /* messages to acknowledge when rows and events are stored */
	size_t replies, replies_room;
	int64_t since_ns; /* when the first of these came */
	int64_t newest_ns;
	int64_t retry_ns, pause_ns, maintain_ns, gaps_ns;
	unsigned gaps_looks;
	struct ow_point_limit limit, lines;
	struct asked_gap {
		char point[POINT_NAME];
		int64_t since_ns, until_ns;
	} asked[GAPS_MAX];
	unsigned asked_count, asked_next;
	struct ow_error said;
	pthread_mutex_t lock; /* of the counts */
	struct ow_collector_counts counts;
};

/* -- log and counts ----------------------------------------------------------------------------------------------- */

static void say(struct ow_collector *c, bool warning, const char *line)
{
	c->options.log(c->options.arg, warning, line);
}

/* A problem that stays is logged once. */
static void complain(struct ow_collector *c, const char *what, const struct ow_error *err)
{
	struct ow_error line;
	ow_error_set(&line, EIO, "%s%.480s", what, err->text);
	if (strcmp(line.text, c->said.text) == 0)
		return;
	c->said = line;
	say(c, true, line.text);
}

/* A point that sends nonsense of many kinds must not fill the log. */
static void complain_of(struct ow_collector *c, const char *point, const char *what, const struct ow_error *err)
{
	if (ow_point_limit_allow(&c->lines, point, 1, ow_clock_steady_ns()))
		complain(c, what, err);
}

static void on_news(void *arg, const char *line)
{
	say(arg, strncmp(line, "connected", 9) != 0, line);
}

static void count(struct ow_collector *c, uint64_t *counter, uint64_t more)
{
	pthread_mutex_lock(&c->lock);
	*counter += more;
	pthread_mutex_unlock(&c->lock);
}

void ow_collector_counts(struct ow_collector *c, struct ow_collector_counts *ret_counts)
{
	pthread_mutex_lock(&c->lock);
	*ret_counts = c->counts;
	pthread_mutex_unlock(&c->lock);
}

/* -- messages ----------------------------------------------------------------------------------------------------- */

/* "ow.r.london": the point. */
static bool point_of(const char *subject, char ret_point[POINT_NAME])
{
	const char *name = strlen(subject) > 5 ? subject + 5 : "";
	if (!*name || strlen(name) >= POINT_NAME)
		return false;
	snprintf(ret_point, POINT_NAME, "%s", name);
	return true;
}

static int keep_reply(struct ow_collector *c, const char *reply)
{
	char *copy = strdup(reply);
	if (!copy || OW_GROW(c->reply, c->replies_room, c->replies + 1) < 0) {
		free(copy);
		return -ENOMEM;
	}
	c->reply[c->replies++] = copy;
	if (c->since_ns == 0)
		c->since_ns = ow_clock_steady_ns();
	return 0;
}

struct taken {
	struct ow_collector *collector;
	char point[POINT_NAME];
};

static int take_row(void *arg, enum ow_period period, const struct ow_interval_result *result)
{
	const struct taken *taken = arg;
	struct ow_collector *c = taken->collector;
	if (OW_GROW(c->row, c->rows_room, c->rows + 1) < 0)
		return -ENOMEM;
	struct row *row = &c->row[c->rows++];
	memcpy(row->point, taken->point, sizeof row->point);
	row->period = period;
	row->result = *result;
	/* What has not ended yet says nothing of how late results are. */
	int64_t end_ns;
	if (!__builtin_add_overflow(result->start_ns, result->length_ns, &end_ns) && end_ns > c->newest_ns &&
	    end_ns <= ow_clock_real_ns())
		c->newest_ns = end_ns;
	return 0;
}

/* It would be the same the next time. */
static void refuse_message(struct ow_collector *c, const struct ow_bus_message *message, const struct ow_error *err)
{
	char what[120];
	snprintf(what, sizeof what, "a message on %.80s is ignored: ", message->subject);
	complain_of(c, message->subject, what, err);
	count(c, &c->counts.undecodable, 1);
	ow_bus_acknowledge(c->bus, message->reply);
}

/* A point that sends too much has to wait, not the others. */
static bool is_within_limit(struct ow_collector *c, const struct ow_bus_message *message, const char *point,
                            size_t rows)
{
	struct ow_error err;
	if (ow_point_limit_allow(&c->limit, point, rows, ow_clock_steady_ns()))
		return true;
	ow_bus_postpone(c->bus, message->reply, POSTPONE_NS);
	ow_error_set(&err, EDQUOT, "point %s sends more than %d rows a second", point, OW_COLLECTOR_POINT_RATE);
	complain_of(c, point, "", &err);
	count(c, &c->counts.postponed, 1);
	return false;
}

static void on_results(void *arg, const struct ow_bus_message *message)
{
	struct ow_collector *c = arg;
	struct taken taken = {.collector = c};
	struct ow_error err;
	size_t before = c->rows;
	count(c, &c->counts.messages, 1);
	count(c, &c->counts.bytes, message->size);
	int r = point_of(message->subject, taken.point)
	                ? ow_result_batch_decode(message->data, message->size, take_row, &taken, &err)
	                : ow_error_set(&err, EPROTO, "its subject names no point");
	if (r == 0 && !is_within_limit(c, message, taken.point, c->rows - before)) {
		c->rows = before;
		return;
	}
	if (r == 0)
		r = keep_reply(c, message->reply);
	if (r < 0)
		c->rows = before;
	/* Without memory the message comes again later. */
	if (r == -EPROTO)
		refuse_message(c, message, &err);
}

static void on_event(void *arg, const struct ow_bus_message *message)
{
	struct ow_collector *c = arg;
	struct event_row event;
	struct ow_error err;
	int r = point_of(message->subject, event.point)
	                ? ow_flow_event_read(message->data, message->size, &event.event, &err)
	                : ow_error_set(&err, EINVAL, "its subject names no point");
	if (r == 0) /* of the station, for those who listen */
		ow_bus_acknowledge(c->bus, message->reply);
	if (r == -EINVAL)
		refuse_message(c, message, &err);
	if (r != 1 || !is_within_limit(c, message, event.point, 1) ||
	    OW_GROW(c->event, c->events_room, c->events + 1) < 0)
		return;
	if (keep_reply(c, message->reply) == 0) {
		c->event[c->events++] = event;
		count(c, &c->counts.events, 1);
	}
}

/* -- the database ------------------------------------------------------------------------------------------------- */

static void clear(struct ow_collector *c)
{
	for (size_t i = 0; i < c->replies; i++)
		free(c->reply[i]);
	c->replies = c->rows = c->events = 0;
	c->since_ns = c->newest_ns = 0;
}

static int open_writer(struct ow_collector *c, struct ow_error *err)
{
	if (c->writer)
		return 0;
	int r = ow_postgres_writer_open(&c->options.database, &c->writer, err);
	if (r == 0) {
		char line[300];
		snprintf(line, sizeof line, "writes to %.250s", ow_postgres_writer_name(c->writer));
		say(c, false, line);
	}
	return r;
}

static int write_rows(struct ow_collector *c, struct ow_postgres_tally *ret_tally, struct ow_error *err)
{
	if (c->rows == 0)
		return 0;
	if (OW_GROW(c->sorted, c->sorted_room, c->rows) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->rows; i++)
		c->sorted[i] = (struct ow_postgres_row){c->row[i].point, c->row[i].period, &c->row[i].result};
	return ow_postgres_write(c->writer, c->sorted, c->rows, ret_tally, err);
}

static int write_events(struct ow_collector *c, struct ow_postgres_tally *ret_tally, struct ow_error *err)
{
	if (c->events == 0)
		return 0;
	struct ow_postgres_event *event = reallocarray(NULL, c->events, sizeof *event);
	if (!event)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->events; i++)
		event[i] = (struct ow_postgres_event){c->event[i].point, &c->event[i].event};
	int r = ow_postgres_write_events(c->writer, event, c->events, ret_tally, err);
	free(event);
	return r;
}

static void add_tally(struct ow_collector *c, const struct ow_postgres_tally *tally)
{
	if (tally->refused)
		complain_of(c, "", "rows are refused: ", &tally->why);
	pthread_mutex_lock(&c->lock);
	c->counts.stored += tally->stored;
	c->counts.kept += tally->kept;
	c->counts.refused += tally->refused;
	pthread_mutex_unlock(&c->lock);
}

static void stored(struct ow_collector *c)
{
	for (size_t i = 0; i < c->replies; i++)
		ow_bus_acknowledge(c->bus, c->reply[i]);
	pthread_mutex_lock(&c->lock);
	c->counts.commits++;
	if (c->newest_ns)
		c->counts.lag_ns = ow_clock_real_ns() - c->newest_ns;
	pthread_mutex_unlock(&c->lock);
	clear(c);
	c->pause_ns = 0;
	c->said.text[0] = '\0';
}

static void failed(struct ow_collector *c, const struct ow_error *err)
{
	int64_t now_ns = ow_clock_steady_ns();
	complain(c, "", err);
	count(c, &c->counts.failures, 1);
	c->pause_ns = c->pause_ns ? c->pause_ns * 2 : PAUSE_LEAST_NS;
	c->pause_ns = c->pause_ns < PAUSE_MOST_NS ? c->pause_ns : PAUSE_MOST_NS;
	c->retry_ns = now_ns + c->pause_ns;
	if (c->since_ns && now_ns - c->since_ns > HOLD_NS)
		clear(c);
}

/* Commits, then acknowledges. */
static int store(struct ow_collector *c)
{
	struct ow_postgres_tally rows = {0}, events = {0};
	struct ow_error err;
	int r = open_writer(c, &err);
	if (r == 0)
		r = write_rows(c, &rows, &err);
	if (r == 0)
		r = write_events(c, &events, &err);
	if (r < 0) {
		failed(c, &err);
		return r;
	}
	stored(c);
	add_tally(c, &rows);
	add_tally(c, &events);
	return 0;
}

/* -- gaps --------------------------------------------------------------------------------------------------------- */

static bool was_asked(const struct ow_collector *c, const char *point, const struct ow_postgres_gap *gap)
{
	for (unsigned i = 0; i < c->asked_count; i++) {
		const struct asked_gap *asked = &c->asked[i];
		if (gap->since_ns >= asked->since_ns && gap->until_ns <= asked->until_ns &&
		    strcmp(asked->point, point) == 0)
			return true;
	}
	return false;
}

/* Once for each gap: a point that was not running has nothing to send. */
static void ask_point(struct ow_collector *c, const char *point, const struct ow_postgres_gap *gap)
{
	struct ow_question question = {
		.period = OW_PERIOD_MINUTE, .since_ns = gap->since_ns, .until_ns = gap->until_ns};
	char subject[OW_BUS_SUBJECT], *text = NULL;
	if (strlen(point) >= POINT_NAME || strpbrk(point, " *>.\t\r\n") || was_asked(c, point, gap) ||
	    !(text = ow_question_text(&question)))
		return;
	snprintf(subject, sizeof subject, "ow.q.%s", point);
	if (ow_bus_send(c->bus, subject, text, strlen(text), NULL) == 0) {
		struct asked_gap *asked = &c->asked[c->asked_next++ % GAPS_MAX];
		snprintf(asked->point, sizeof asked->point, "%s", point);
		asked->since_ns = gap->since_ns;
		asked->until_ns = gap->until_ns;
		c->asked_count += c->asked_count < GAPS_MAX;
		count(c, &c->counts.gaps, 1);
	}
	free(text);
}

static void on_gap(void *arg, const struct ow_postgres_gap *gap)
{
	ask_point(arg, gap->from, gap);
	ask_point(arg, gap->to, gap);
}

/* -- working ------------------------------------------------------------------------------------------------------ */

static void maintain(struct ow_collector *c, int64_t now_ns)
{
	struct ow_error err;
	int64_t real_ns = ow_clock_real_ns();
	if (now_ns < c->maintain_ns || now_ns < c->retry_ns)
		return;
	int r = open_writer(c, &err);
	if (r == 0)
		r = ow_postgres_maintain(c->writer, real_ns, &err);
	c->maintain_ns = now_ns + (r == 1 ? 0 : MAINTAIN_NS);
	if (r >= 0 && now_ns >= c->gaps_ns && ow_bus_connected(c->bus)) {
		c->gaps_ns = now_ns + GAPS_EACH_NS;
		int64_t back_ns = c->gaps_looks++ % GAPS_LONG == 0 ? GAPS_LONG_NS : GAPS_BACK_NS;
		r = ow_postgres_gaps(c->writer, real_ns - back_ns, real_ns - GAPS_AFTER_NS, GAPS_MAX / 2, on_gap, c,
		                     &err);
	}
	if (r < 0)
		failed(c, &err);
}

static bool is_due(const struct ow_collector *c, int64_t now_ns)
{
	return c->replies && now_ns >= c->retry_ns &&
	       (c->rows >= c->options.rows || now_ns - c->since_ns >= c->options.wait_ns);
}

void ow_collector_work(struct ow_collector *c, int wait_ms)
{
	/* Rows that wait for the database are limited; the others wait in the stream. After a failure without rows, the next
	 * rows are the next attempt. */
	bool failing = c->pause_ns > 0 && (c->replies > 0 || ow_clock_steady_ns() < c->retry_ns);
	ow_bus_pause(c->bus, c->rows >= c->options.rows || failing);
	int wait = c->replies && wait_ms > 20 ? 20 : wait_ms;
	ow_bus_poll(c->bus, wait);
	int64_t now_ns = ow_clock_steady_ns();
	if (is_due(c, now_ns))
		store(c);
	maintain(c, now_ns);
	pthread_mutex_lock(&c->lock);
	c->counts.waiting = c->rows;
	c->counts.connected = ow_bus_connected(c->bus);
	pthread_mutex_unlock(&c->lock);
}

int ow_collector_drain(struct ow_collector *c, int wait_ms)
{
	int64_t until_ns = ow_clock_steady_ns() + wait_ms * OW_NS_PER_MS;
	int r = 0;
	ow_bus_pause(c->bus, true);
	do {
		/* What was asked for may still come; who would store it later? */
		ow_bus_poll(c->bus, 50);
		if (c->replies && ow_clock_steady_ns() >= c->retry_ns)
			r = store(c);
	} while ((c->replies || ow_bus_pulling(c->bus)) && ow_clock_steady_ns() < until_ns);
	return c->replies ? r < 0 ? r : -ETIMEDOUT : 0;
}

int ow_collector_create(const struct ow_collector_options *options, struct ow_collector **ret_collector,
                        struct ow_error *err)
{
	struct ow_collector *c = calloc(1, sizeof *c);
	if (!c)
		return ow_error_set(err, ENOMEM, "out of memory");
	c->options = *options;
	c->options.rows = options->rows ? options->rows : OW_COLLECTOR_ROWS;
	c->options.wait_ns = options->wait_ns ? options->wait_ns : OW_COLLECTOR_WAIT_NS;
	c->options.bus.news = on_news;
	c->options.bus.arg = c;
	pthread_mutex_init(&c->lock, NULL);
	ow_point_limit_init(&c->limit, OW_COLLECTOR_POINT_BURST, OW_COLLECTOR_POINT_RATE);
	ow_point_limit_init(&c->lines, LINES_BURST, LINES_RATE);
	int r = ow_bus_create(&c->options.bus, &c->bus, err);
	if (r == 0)
		r = ow_bus_pull(c->bus, OW_STREAM_RESULTS, OW_CONSUMER_COLLECT, PULL_MESSAGES, on_results, c, err);
	if (r == 0)
		r = ow_bus_pull(c->bus, OW_STREAM_EVENTS, OW_CONSUMER_COLLECT, PULL_MESSAGES, on_event, c, err);
	if (r < 0) {
		ow_collector_free(c);
		return r;
	}
	*ret_collector = c;
	return 0;
}

void ow_collector_free(struct ow_collector *c)
{
	if (!c)
		return;
	ow_bus_free(c->bus);
	ow_postgres_writer_close(c->writer);
	clear(c);
	free(c->row);
	free(c->event);
	free(c->sorted);
	free(c->reply);
	ow_point_limit_done(&c->limit);
	ow_point_limit_done(&c->lines);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
