/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/agent.h"

#include "base/clock.h"
#include "base/state_file.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/membership.h"
#include "fleet/outbox.h"
#include "fleet/positions.h"
#include "fleet/question.h"
#include "fleet/recent_rows.h"
#include "fleet/result_batch.h"
#include "fleet/spool.h"
#include "sandbox/guard.h"
#include "sandbox/privileges.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Rows of a message when there are many. */
#define ROWS_AT_ONCE 1000
/* Sent rows are looked at again for this long, this often: late packets, or a restart, may have changed them. */
#define CHANGES_NS      (15 * 60 * OW_NS_PER_S)
#define CHANGES_EACH_NS (15 * OW_NS_PER_S)
/* What an agent sent last before it ended: so much of it is looked at when the next one begins. */
#define LAST_NS (120 * OW_NS_PER_S)
/* Intervals are judged when the end of the next one is this long ago, because they should be final by then. */
#define LOOK_AFTER_NS (60 * OW_NS_PER_S)
#define LOOK_EACH_NS  (10 * OW_NS_PER_S)
/* What is usual is learned from so much before the first interval that may be sent. */
#define LEARN_NS (300 * OW_NS_PER_S)
/* A point that joins, or was away for long, sends intervals of the last hour and minutes of the last day at most. */
#define LOOK_BACK_NS   (3600 * OW_NS_PER_S)
#define MINUTE_BACK_NS (24 * 3600 * OW_NS_PER_S)
#define HEALTH_NS      (10 * OW_NS_PER_S)
#define HEALTH_BYTES   (64u << 10)
#define SERVERS_BYTES  4096
/* What the fleet may ask for at a time, and how many such questions may wait. */
#define ASKED_MAX     1024
#define QUESTIONS_MAX 1000 /* the others are for what is unusual */
/* Parts in which these are answered. */
#define PART_NS        (60 * OW_NS_PER_S)
#define MINUTE_PART_NS (6 * 3600 * OW_NS_PER_S)

/* Rows that were asked for, or are unusual. */
struct asked {
	enum ow_period period;
	int64_t lane; /* 0 = all */
	int64_t since_ns, until_ns;
	int64_t look_ns; /* intervals before the one that ended then were judged, when these are sent; 0 = says nothing */
};

struct ow_agent {
	struct ow_agent_options options;
	char *path[6]; /* of files in the folder */
	struct ow_bus *bus;
	struct ow_membership *membership; /* NULL = none */
	struct ow_spool *spool;
	struct ow_positions *positions;
	struct ow_outbox *minutes, *others, *events, *samples;
	struct ow_result_batch batch;
	struct ow_recent_rows recent;
	struct ow_unusual unusual;
	struct asked asked[ASKED_MAX];
	unsigned asked_count;
	int64_t minute_place, event_place, sample_place; /* rows up to here were made into messages */
	int64_t sent_ns;      /* start of the minute that was sent last before the store was opened */
	int64_t look_ns;      /* intervals before those that ended then were judged */
	int64_t send_from_ns; /* unusual ones before this are not sent */
	int64_t read_next_ns, changes_next_ns, look_next_ns, health_next_ns;
	char *health;         /* that was sent last */
	struct ow_error said; /* last problem that was logged */
	struct ow_agent_counts counts;
};

enum { CA, CERTIFICATE, KEY, SERVERS, HEALTH, POSITIONS };

/* -- log ---------------------------------------------------------------------------------------------------------- */

/* A problem that stays is logged once. */
static void complain(struct ow_agent *agent, const struct ow_error *err)
{
	if (strcmp(agent->said.text, err->text) == 0)
		return;
	agent->said = *err;
	agent->options.log(agent->options.arg, true, err->text);
}

static void on_news(void *arg, const char *line)
{
	struct ow_agent *agent = arg;
	bool good = strncmp(line, "connected", 9) == 0;
	char text[400];
	snprintf(text, sizeof text, "fleet: %.380s", line);
	agent->options.log(agent->options.arg, !good, text);
}

/* -- rows into messages ------------------------------------------------------------------------------------------- */

/* Rows of a table that become messages of an outbox. */
struct feed {
	struct ow_agent *agent;
	struct ow_outbox *outbox;
	enum ow_period period;
	bool only_changed;
	int64_t place;  /* of the last row, or of all of them */
	bool by_number; /* the place is the row's number */
	struct ow_error *err;
};

static int flush(struct feed *feed)
{
	const uint8_t *bytes = NULL;
	size_t size = 0;
	struct ow_result_batch *batch = &feed->agent->batch;
	if (batch->rows == 0)
		return 0;
	int r = ow_result_batch_encode(batch, &bytes, &size, feed->err);
	return r < 0 ? r : ow_outbox_add(feed->outbox, bytes, size, feed->place, feed->err);
}

static int add_row(struct feed *feed, const struct ow_interval_result *result)
{
	struct ow_agent *agent = feed->agent;
	int r = ow_result_batch_add(&agent->batch, feed->period, result, feed->err);
	if (r == -ENOSPC) {
		r = flush(feed);
		if (r == 0)
			r = ow_result_batch_add(&agent->batch, feed->period, result, feed->err);
	}
	if (r == -EINVAL) {
		/* A row that breaks its own rules cannot be sent, and must not stop the others. */
		complain(agent, feed->err);
		return 0;
	}
	agent->counts.rows += r == 0;
	return r;
}

static int feed_row(void *arg, int64_t number, int64_t lane, const struct ow_interval_result *result)
{
	struct feed *feed = arg;
	bool changed = feed->period != OW_PERIOD_MINUTE || !(feed->by_number || feed->only_changed) ||
	               ow_recent_rows_note(&feed->agent->recent, lane, result);
	int r = feed->only_changed && !changed ? 0 : add_row(feed, result);
	if (r == 0 && feed->by_number)
		feed->place = number;
	return r;
}

/* New minutes, as long as there is room for them. */
static int send_minutes(struct ow_agent *agent, struct ow_error *err)
{
	int r = 0;
	int64_t before = -1;
	while (r == 0 && ow_outbox_has_room(agent->minutes) && before != agent->minute_place) {
		struct feed feed = {.agent = agent,
		                    .outbox = agent->minutes,
		                    .period = OW_PERIOD_MINUTE,
		                    .place = agent->minute_place,
		                    .by_number = true,
		                    .err = err};
		before = agent->minute_place;
		r = ow_spool_new(agent->spool, OW_PERIOD_MINUTE, agent->minute_place, ROWS_AT_ONCE, feed_row, &feed,
		                 err);
		if (r == 0)
			r = flush(&feed);
		if (r == 0)
			agent->minute_place = feed.place;
	}
	return r;
}

static int first_number(void *arg, int64_t number, int64_t lane, const struct ow_interval_result *result)
{
	(void)lane, (void)result;
	*(int64_t *)arg = number - 1;
	return 1;
}

/* Where to begin if nothing is known: minutes of the last day. */
static int64_t first_minute(struct ow_agent *agent, int64_t now_ns)
{
	int64_t place = 0;
	if (ow_spool_range(agent->spool, OW_PERIOD_MINUTE, 0, now_ns - MINUTE_BACK_NS, INT64_MAX, 1, first_number,
	                   &place, NULL) <= 0)
		ow_spool_last(agent->spool, OW_PERIOD_MINUTE, &place, NULL);
	return place;
}

/* Minutes that have changed since they were sent. After a start, all recent ones may have, and the last ones that were
 * sent, however old: a point that ended did not know yet what they lack. */
static int send_changes(struct ow_agent *agent, int64_t now_ns, struct ow_error *err)
{
	struct feed feed = {
		.agent = agent, .outbox = agent->others, .period = OW_PERIOD_MINUTE, .only_changed = true, .err = err};
	int64_t last = 0;
	ow_recent_rows_trim(&agent->recent, now_ns - CHANGES_NS);
	/* Rows are numbered anew when somebody runs VACUUM. */
	if (ow_spool_last(agent->spool, OW_PERIOD_MINUTE, &last, NULL) == 0 && last < agent->minute_place)
		agent->minute_place = first_minute(agent, now_ns);
	int r = 0;
	if (agent->sent_ns)
		r = ow_spool_range(agent->spool, OW_PERIOD_MINUTE, 0, agent->sent_ns - LAST_NS, agent->sent_ns + 1,
		                   UINT32_MAX, feed_row, &feed, err);
	if (r == 0)
		r = ow_spool_range(agent->spool, OW_PERIOD_MINUTE, 0, now_ns - CHANGES_NS, INT64_MAX, UINT32_MAX,
		                   feed_row, &feed, err);
	if (r == 0)
		r = flush(&feed);
	if (r == 0)
		agent->sent_ns = 0;
	return r;
}

/* The next part of what was asked for first. */
static int send_asked(struct ow_agent *agent, struct ow_error *err)
{
	struct asked *asked = agent->asked;
	int64_t part_ns = asked->period == OW_PERIOD_INTERVAL ? PART_NS : MINUTE_PART_NS;
	int64_t end_ns = asked->until_ns - asked->since_ns > part_ns ? asked->since_ns + part_ns : asked->until_ns;
	bool last = end_ns == asked->until_ns;
	struct feed feed = {.agent = agent,
	                    .outbox = agent->others,
	                    .period = asked->period,
	                    .place = last ? asked->look_ns : 0,
	                    .err = err};
	int r = ow_spool_range(agent->spool, asked->period, asked->lane, asked->since_ns, end_ns, UINT32_MAX, feed_row,
	                       &feed, err);
	if (r == 0)
		r = flush(&feed);
	asked->since_ns = end_ns;
	if (r == 0 && last)
		memmove(asked, asked + 1, --agent->asked_count * sizeof *asked);
	return r;
}

/* -- what is unusual ---------------------------------------------------------------------------------------------- */

static void ask(struct ow_agent *agent, const struct asked *asked)
{
	if (agent->asked_count < ASKED_MAX)
		agent->asked[agent->asked_count++] = *asked;
}

static void look_at(void *arg, const struct ow_unusual_look *look)
{
	struct ow_agent *agent = arg;
	int64_t next_end_ns = look->start_ns + 2 * look->length_ns;
	struct asked asked = {.period = OW_PERIOD_INTERVAL, .lane = look->lane, .look_ns = next_end_ns};
	if (ow_unusual_look(&agent->unusual, look, &asked.since_ns, &asked.until_ns) &&
	    next_end_ns > agent->send_from_ns)
		ask(agent, &asked);
}

/* Intervals around unusual ones are sent when those after them are final, too. */
static int look(struct ow_agent *agent, int64_t now_ns, struct ow_error *err)
{
	int64_t until_ns = now_ns - LOOK_AFTER_NS;
	/* The clock was set back: what is measured now has times that were looked at. */
	if (agent->look_ns > now_ns) {
		ow_unusual_done(&agent->unusual);
		agent->send_from_ns = until_ns;
		agent->look_ns = until_ns - LEARN_NS;
	}
	if (until_ns <= agent->look_ns)
		return 0;
	int r = ow_spool_look(agent->spool, agent->look_ns, until_ns, look_at, agent, err);
	if (r < 0)
		return r;
	agent->look_ns = until_ns;
	/* While something unusual is on its way, the position is that of what has arrived. */
	if (agent->asked_count == 0 && ow_outbox_waiting(agent->others) == 0)
		ow_positions_set(agent->positions, "look_ns", until_ns);
	return 0;
}

/* -- the store ---------------------------------------------------------------------------------------------------- */

static void find_positions(struct ow_agent *agent, int64_t now_ns)
{
	struct ow_positions *p = agent->positions;
	int64_t created_ns = ow_spool_created_ns(agent->spool);
	bool same = ow_positions_get(p, "store", 0) == created_ns;
	agent->minute_place = same ? ow_positions_get(p, "minute", -1) : -1;
	if (agent->minute_place < 0)
		agent->minute_place = first_minute(agent, now_ns);
	agent->event_place = same ? ow_positions_get(p, "event", 0) : 0;
	agent->sample_place = same ? ow_positions_get(p, "sample", 0) : 0;
	agent->send_from_ns = ow_positions_get(p, "look_ns", now_ns);
	if (agent->send_from_ns < now_ns - LOOK_BACK_NS || agent->send_from_ns > now_ns)
		agent->send_from_ns = now_ns - LOOK_BACK_NS;
	agent->look_ns = agent->send_from_ns - LEARN_NS;
	ow_spool_start(agent->spool, OW_PERIOD_MINUTE, agent->minute_place, &agent->sent_ns, NULL);
	ow_positions_set(p, "store", created_ns);
	ow_positions_set(p, "minute", agent->minute_place);
}

/* A store of which the tables were made or changed in the meantime is opened anew. */
static int open_spool(struct ow_agent *agent, int64_t now_ns, struct ow_error *err)
{
	if (agent->spool)
		return 0;
	int r = ow_spool_open(agent->options.store, &agent->spool, err);
	if (r == 0)
		find_positions(agent, now_ns);
	return r;
}

/* -- what the fleet asks for -------------------------------------------------------------------------------------- */

/* Returns NULL, or why nothing will be sent. */
static const char *take_question(struct ow_agent *agent, const struct ow_question *q, struct ow_answer *answer)
{
	struct asked asked = {.period = q->period, .since_ns = q->since_ns, .until_ns = q->until_ns};
	struct ow_error err;
	if (open_spool(agent, ow_clock_real_ns(), &err) < 0)
		return "has no store yet";
	if (agent->asked_count >= QUESTIONS_MAX)
		return "has too many questions to answer";
	if (*q->segment && (asked.lane = ow_spool_lane(agent->spool, q)) == 0)
		return "does not have this lane";
	if (ow_spool_count(agent->spool, q, asked.lane, &answer->rows, &answer->first_ns, &err) < 0) {
		complain(agent, &err);
		return "cannot read its store";
	}
	ask(agent, &asked);
	agent->read_next_ns = 0;
	return NULL;
}

static void on_question(void *arg, const struct ow_bus_message *message)
{
	struct ow_agent *agent = arg;
	struct ow_question question;
	struct ow_answer answer = {0};
	struct ow_error err;
	const char *why = "does not understand the question";
	if (ow_question_read(message->data, message->size, &question)) {
		why = take_question(agent, &question, &answer);
	} else {
		ow_error_set(&err, EPROTO, "fleet: a question that is not understood: %.*s",
		             (int)(message->size < 100 ? message->size : 100), (const char *)message->data);
		complain(agent, &err);
	}
	snprintf(answer.error, sizeof answer.error, "%s", why ? why : "");
	char *text = *message->reply ? ow_answer_text(&answer) : NULL;
	if (text)
		ow_bus_send(agent->bus, message->reply, text, strlen(text), NULL);
	free(text);
}

/* -- events, samples, health -------------------------------------------------------------------------------------- */

static int add_event(void *arg, int64_t number, const struct ow_flow_event *event)
{
	struct ow_agent *agent = arg;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	ow_flow_event_json(out, event);
	int r = fclose(out) == 0 ? ow_outbox_add(agent->events, text, size, number, NULL) : -ENOMEM;
	free(text);
	if (r < 0)
		return r;
	agent->event_place = number;
	agent->counts.events++;
	return ow_outbox_has_room(agent->events) ? 0 : 1;
}

static int add_sample(void *arg, int64_t number, const void *bytes, size_t size)
{
	struct ow_agent *agent = arg;
	int r = ow_outbox_add(agent->samples, bytes, size, number, NULL);
	if (r < 0)
		return r;
	agent->sample_place = number;
	agent->counts.samples++;
	return ow_outbox_has_room(agent->samples) ? 0 : 1;
}

static int send_news(struct ow_agent *agent, struct ow_error *err)
{
	int r = 0;
	if (ow_outbox_has_room(agent->events))
		r = ow_spool_events(agent->spool, agent->event_place, ROWS_AT_ONCE, add_event, agent, err);
	if (r >= 0 && ow_outbox_has_room(agent->samples))
		r = ow_spool_samples(agent->spool, agent->sample_place, ROWS_AT_ONCE, add_sample, agent, err);
	return r < 0 ? r : 0;
}

/* The next state replaces this one: it need not arrive. */
static void health_published(void *arg, enum ow_bus_outcome outcome, const char *why)
{
	(void)arg, (void)outcome, (void)why;
}

static void send_health(struct ow_agent *agent, int64_t now_ns)
{
	char subject[OW_BUS_SUBJECT], *text = NULL;
	size_t size = 0;
	if (!ow_bus_room(agent->bus) || ow_state_read(agent->path[HEALTH], HEALTH_BYTES, &text, &size, NULL) < 0)
		return;
	bool due = now_ns >= agent->health_next_ns, changed = !agent->health || strcmp(agent->health, text) != 0;
	snprintf(subject, sizeof subject, "ow.h.%s", agent->options.point);
	if ((due || changed) &&
	    ow_bus_publish(agent->bus, subject, NULL, text, size, health_published, NULL, NULL) == 0) {
		agent->health_next_ns = now_ns + HEALTH_NS;
		free(agent->health);
		agent->health = text;
		return;
	}
	free(text);
}

/* -- what has arrived --------------------------------------------------------------------------------------------- */

static void on_minutes(void *arg, int64_t place)
{
	struct ow_agent *agent = arg;
	ow_positions_set(agent->positions, "minute", place);
}

static void on_others(void *arg, int64_t place)
{
	struct ow_agent *agent = arg;
	if (place)
		ow_positions_set(agent->positions, "look_ns", place);
}

static void on_events(void *arg, int64_t place)
{
	struct ow_agent *agent = arg;
	ow_positions_set(agent->positions, "event", place);
}

static void on_samples(void *arg, int64_t place)
{
	struct ow_agent *agent = arg;
	ow_positions_set(agent->positions, "sample", place);
}

/* What is done now and then is due by the steady clock: the other one may be set. */
static int read_store(struct ow_agent *agent, int64_t now_ns, int64_t steady_ns, struct ow_error *err)
{
	int r = open_spool(agent, now_ns, err);
	if (r == 0)
		r = send_minutes(agent, err);
	if (r == 0 && steady_ns >= agent->changes_next_ns && ow_outbox_has_room(agent->others)) {
		r = send_changes(agent, now_ns, err);
		agent->changes_next_ns = steady_ns + CHANGES_EACH_NS;
	}
	if (r == 0 && steady_ns >= agent->look_next_ns) {
		r = look(agent, now_ns, err);
		agent->look_next_ns = steady_ns + LOOK_EACH_NS;
	}
	while (r == 0 && agent->asked_count && ow_outbox_has_room(agent->others))
		r = send_asked(agent, err);
	return r < 0 ? r : send_news(agent, err);
}

static void work_on_store(struct ow_agent *agent)
{
	struct ow_error err;
	int64_t now_ns = ow_clock_real_ns();
	int r = read_store(agent, now_ns, ow_clock_steady_ns(), &err);
	/* The point makes or converts its store when it starts. */
	if (r < 0 && r != -ENOENT && r != -EAGAIN)
		complain(agent, &err);
	if (r < 0 && agent->spool) {
		ow_spool_close(agent->spool);
		agent->spool = NULL;
	}
	if (ow_positions_save(agent->positions, &err) < 0)
		complain(agent, &err);
}

static void send_all(struct ow_agent *agent)
{
	ow_outbox_send(agent->minutes);
	ow_outbox_send(agent->events);
	ow_outbox_send(agent->others);
	ow_outbox_send(agent->samples);
}

void ow_agent_work(struct ow_agent *agent, int wait_ms)
{
	ow_bus_poll(agent->bus, wait_ms);
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns >= agent->read_next_ns) {
		agent->read_next_ns = now_ns + OW_AGENT_READ_NS;
		work_on_store(agent);
		send_health(agent, now_ns);
	}
	if (agent->membership)
		ow_membership_tick(agent->membership, now_ns);
	send_all(agent);
}

static size_t waiting(const struct ow_agent *agent)
{
	return ow_outbox_waiting(agent->minutes) + ow_outbox_waiting(agent->others) + ow_outbox_waiting(agent->events) +
	       ow_outbox_waiting(agent->samples);
}

size_t ow_agent_drain(struct ow_agent *agent, int wait_ms)
{
	int64_t until_ns = ow_clock_steady_ns() + wait_ms * OW_NS_PER_MS;
	work_on_store(agent);
	do {
		send_all(agent);
		ow_bus_poll(agent->bus, 20);
	} while (waiting(agent) && ow_clock_steady_ns() < until_ns);
	ow_positions_save(agent->positions, NULL);
	return waiting(agent);
}

static void count(const struct ow_outbox *outbox, struct ow_agent_counts *counts)
{
	const struct ow_outbox_counts *c = ow_outbox_counts(outbox);
	counts->messages += c->sent;
	counts->bytes += c->bytes;
	counts->repeated += c->repeated;
	counts->distrusted += c->distrusted;
}

void ow_agent_counts(const struct ow_agent *agent, struct ow_agent_counts *ret_counts)
{
	*ret_counts = agent->counts;
	count(agent->minutes, ret_counts);
	count(agent->others, ret_counts);
	count(agent->events, ret_counts);
	count(agent->samples, ret_counts);
}

/* -- creation ----------------------------------------------------------------------------------------------------- */

static int name_files(struct ow_agent *agent, struct ow_error *err)
{
	static const char *const names[] = {
		[CA] = OW_FLEET_CA,           [CERTIFICATE] = OW_FLEET_CERTIFICATE, [KEY] = OW_FLEET_KEY,
		[SERVERS] = OW_FLEET_SERVERS, [HEALTH] = OW_FLEET_HEALTH,           [POSITIONS] = "agent.db"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		agent->path[i] = ow_state_path(agent->options.folder, names[i]);
		if (!agent->path[i])
			return ow_error_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

static int connect_bus(struct ow_agent *agent, struct ow_error *err)
{
	char *servers = NULL, subject[OW_BUS_SUBJECT];
	size_t size;
	bool tls = access(agent->path[CERTIFICATE], R_OK) == 0;
	int r = agent->options.urls ? 0 : ow_state_read(agent->path[SERVERS], SERVERS_BYTES, &servers, &size, err);
	if (r < 0)
		return r;
	struct ow_bus_options o = {.urls = servers ? servers : agent->options.urls,
	                           .ca = tls ? agent->path[CA] : NULL,
	                           .certificate = tls ? agent->path[CERTIFICATE] : NULL,
	                           .key = tls ? agent->path[KEY] : NULL,
	                           .server = tls ? OW_BUS_NAME : NULL,
	                           .name = agent->options.point,
	                           .news = on_news,
	                           .arg = agent};
	r = ow_bus_create(&o, &agent->bus, err);
	free(servers);
	snprintf(subject, sizeof subject, "ow.q.%s", agent->options.point);
	return r < 0 ? r : ow_bus_subscribe(agent->bus, subject, on_question, agent, err);
}

static int make_outbox(struct ow_agent *agent, const char *kind, void (*arrived)(void *, int64_t),
                       struct ow_outbox **ret_outbox, struct ow_error *err)
{
	char subject[OW_BUS_SUBJECT];
	snprintf(subject, sizeof subject, "ow.%s.%s", kind, agent->options.point);
	struct ow_outbox_options o = {.bus = agent->bus, .subject = subject, .arrived = arrived, .arg = agent};
	return ow_outbox_create(&o, ret_outbox, err);
}

int ow_agent_create(const struct ow_agent_options *options, struct ow_agent **ret_agent, struct ow_error *err)
{
	struct ow_agent *agent = calloc(1, sizeof *agent);
	if (!agent)
		return ow_error_set(err, ENOMEM, "out of memory");
	agent->options = *options;
	int r = name_files(agent, err);
	if (r == 0)
		r = ow_positions_open(agent->path[POSITIONS], &agent->positions, err);
	if (r == 0)
		r = connect_bus(agent, err);
	if (r == 0)
		r = make_outbox(agent, "r", on_minutes, &agent->minutes, err);
	if (r == 0)
		r = make_outbox(agent, "r", on_others, &agent->others, err);
	if (r == 0)
		r = make_outbox(agent, "e", on_events, &agent->events, err);
	if (r == 0)
		r = make_outbox(agent, "s", on_samples, &agent->samples, err);
	if (r < 0) {
		ow_agent_free(agent);
		return r;
	}
	*ret_agent = agent;
	return 0;
}

void ow_agent_free(struct ow_agent *agent)
{
	if (!agent)
		return;
	ow_bus_free(agent->bus);
	ow_outbox_free(agent->minutes);
	ow_outbox_free(agent->others);
	ow_outbox_free(agent->events);
	ow_outbox_free(agent->samples);
	ow_spool_close(agent->spool);
	ow_positions_close(agent->positions);
	ow_result_batch_done(&agent->batch);
	ow_recent_rows_done(&agent->recent);
	ow_unusual_done(&agent->unusual);
	for (size_t i = 0; i < sizeof agent->path / sizeof *agent->path; i++)
		free(agent->path[i]);
	free(agent->health);
	free(agent);
}

/* -- the process -------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t stopping;

static void on_stop(int signal)
{
	(void)signal;
	stopping = 1;
}

/* SIGTERM ends the work; the others are left to the point. */
static void take_signals(void)
{
	struct sigaction stop = {.sa_handler = on_stop}, ignore = {.sa_handler = SIG_IGN};
	sigset_t none;
	sigemptyset(&none);
	sigaction(SIGTERM, &stop, NULL);
	/* From a terminal it is meant for the point, whose last results the agent has to send. */
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int confine(const struct ow_config *config, const struct ow_agent_options *o, struct ow_error *err)
{
	char text[OW_CONFINE_TEXT], line[OW_CONFINE_TEXT + 40];
	bool whole;
	char *file = ow_state_path(o->folder, OW_FLEET_HEALTH);
	struct ow_guard guard = {.sandbox = config->sandbox, .read = {config->path}, .write = {file, o->store}};
	int r = file ? ow_guard_close(&guard, text, &whole, err) : ow_error_set(err, ENOMEM, "out of memory");
	free(file);
	if (r < 0)
		return r;
	snprintf(line, sizeof line, "fleet: no privileges from here on; %s", text);
	o->log(o->arg, !whole, line);
	return 0;
}

int ow_agent_run(const struct ow_config *config, const struct ow_agent_options *options)
{
	struct ow_agent *agent = NULL;
	struct ow_membership membership = {.config = config, .log = options->log, .arg = options->arg};
	struct ow_error err;
	take_signals();
	int r = ow_privileges_reduce(config->user, 0, &err);
	if (r == 0 && mkdir(options->folder, 0700) < 0 && errno != EEXIST)
		r = ow_error_set(&err, errno, "%s: %s", options->folder, strerror(errno));
	if (r == 0)
		r = confine(config, options, &err);
	if (r == 0 && ow_membership_begin(&membership, &stopping) < 0)
		return EXIT_SUCCESS;
	if (r == 0)
		r = ow_agent_create(options, &agent, &err);
	if (r == 0) {
		agent->membership = &membership;
		r = ow_membership_join(&membership, agent->bus, &err);
	}
	if (r != 0) {
		options->log(options->arg, true, err.text);
		return EXIT_FAILURE;
	}
	while (!stopping)
		ow_agent_work(agent, 500);
	ow_agent_drain(agent, 2000);
	ow_agent_free(agent);
	return EXIT_SUCCESS;
}
