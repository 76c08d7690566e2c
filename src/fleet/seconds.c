/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/seconds.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/time.h"
#include "fleet/control.h"
#include "fleet/question.h"
#include "store/stored_seconds.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 100 /* how often the database is asked */

/* What is wanted of a lane, and from whom. */
struct wanted {
	const struct ow_stored_lane *lane;
	struct ow_stored_lack lack;
	enum { OF_SENDER, OF_RECEIVER, ANSWERED, FAILED } state;
	struct ow_answer answer;
	char why[240];
};

struct fetch {
	struct ow_stored *stored;
	const struct ow_stored_lane *lanes;
	struct ow_bus *bus;
	struct wanted *wanted;
	size_t count, room, open; /* open: questions without an answer */
};

/* A question on its way. */
struct asking {
	struct fetch *fetch;
	struct wanted *wanted;
};

/* -- what is lacking ---------------------------------------------------------------------------------------------- */

static int find_lacks(struct fetch *f, int64_t since_ns, int64_t until_ns, struct ow_error *err)
{
	size_t lanes, chosen = 0;
	f->lanes = ow_stored_lanes(f->stored, &lanes);
	for (size_t i = 0; i < lanes; i++) {
		struct wanted wanted = {.lane = &f->lanes[i]};
		if (!f->lanes[i].chosen)
			continue;
		if (++chosen > OW_SECONDS_LANES)
			return ow_error_set(err, E2BIG, "more than %d lanes at a time: choose some", OW_SECONDS_LANES);
		int r = ow_stored_lack(f->stored, wanted.lane, since_ns, until_ns, &wanted.lack, err);
		if (r > 0 && OW_GROW(f->wanted, f->room, f->count + 1) < 0)
			r = ow_error_set(err, ENOMEM, "not enough memory");
		if (r < 0)
			return r;
		if (r > 0)
			f->wanted[f->count++] = wanted;
	}
	return 0;
}

/* -- questions ---------------------------------------------------------------------------------------------------- */

static const char *asked_point(const struct wanted *w)
{
	return w->state == OF_RECEIVER ? w->lane->to : w->lane->from;
}

static void send_question(struct asking *asking);

/* Both points of a lane have its results: if one cannot be asked, the other is. */
static void on_answer(void *arg, const struct ow_bus_message *message)
{
	struct asking *asking = arg;
	struct wanted *w = asking->wanted;
	const char *point = asked_point(w);
	char before[100];
	bool good = !message->status && ow_answer_read(message->data, message->size, &w->answer);
	asking->fetch->open--;
	snprintf(before, sizeof before, "%.96s%s", w->why, *w->why ? ", " : "");
	if (good && !*w->answer.error) {
		w->state = ANSWERED;
		snprintf(w->why, sizeof w->why, "%.64s", point);
		free(asking);
		return;
	}
	snprintf(w->why, sizeof w->why, "%s%.64s %.70s", before, point,
	         message->status == 503 ? "is not connected"
	         : good                 ? w->answer.error
	                                : "does not answer");
	w->state = w->state == OF_SENDER && ow_fleet_name_valid(w->lane->to) ? OF_RECEIVER : FAILED;
	if (w->state == OF_RECEIVER)
		send_question(asking);
	else
		free(asking);
}

static void send_question(struct asking *asking)
{
	struct wanted *w = asking->wanted;
	struct ow_question q = {
		.period = OW_PERIOD_INTERVAL, .since_ns = w->lack.since_ns, .until_ns = w->lack.until_ns};
	char subject[OW_BUS_SUBJECT];
	struct ow_error err = {""};
	snprintf(q.segment, sizeof q.segment, "%s", w->lane->segment);
	snprintf(q.class_name, sizeof q.class_name, "%s", w->lane->class_name);
	snprintf(q.from, sizeof q.from, "%s", w->lane->from);
	snprintf(q.to, sizeof q.to, "%s", w->lane->to);
	snprintf(subject, sizeof subject, "ow.q.%s", asked_point(w));
	char *text = ow_question_text(&q);
	if (text && ow_bus_request(asking->fetch->bus, subject, text, strlen(text), on_answer, asking, &err) == 0) {
		asking->fetch->open++;
	} else {
		w->state = FAILED;
		snprintf(w->why, sizeof w->why, "%.200s", text ? err.text : "not enough memory");
		free(asking);
	}
	free(text);
}

static void fail_all(struct fetch *f, const char *why)
{
	for (size_t i = 0; i < f->count; i++) {
		f->wanted[i].state = FAILED;
		snprintf(f->wanted[i].why, sizeof f->wanted[i].why, "%.230s", why);
	}
}

static void ask_all(struct fetch *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct asking *asking = ow_fleet_name_valid(f->wanted[i].lane->from) ? malloc(sizeof *asking) : NULL;
		if (!asking) {
			f->wanted[i].state = FAILED;
			snprintf(f->wanted[i].why, sizeof f->wanted[i].why, "%.64s is no point of a fleet",
			         f->wanted[i].lane->from);
			continue;
		}
		*asking = (struct asking){f, &f->wanted[i]};
		send_question(asking);
	}
	/* Each question has an end of its own. */
	while (f->open)
		ow_bus_poll(f->bus, LOOK_MS);
}

static void ask_points(struct fetch *f, const char *dir)
{
	struct ow_fleet *fleet = NULL;
	struct ow_error err;
	int r = ow_fleet_open_to_look(dir, &fleet, &err);
	if (r == 0)
		r = ow_control_open(fleet, "station", &f->bus, &err);
	if (r < 0)
		fail_all(f, err.text);
	else
		ask_all(f);
	ow_bus_free(f->bus);
	ow_fleet_close(fleet);
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

/* Until the database has all rows that this point has sent. */
static int wait_for(const struct fetch *f, struct wanted *w, int64_t deadline_ns, struct ow_error *err)
{
	uint64_t rows = 0;
	for (;;) {
		int r = ow_stored_count(f->stored, w->lane, w->lack.since_ns, w->lack.until_ns, &rows, err);
		if (r < 0 || rows >= w->answer.rows)
			return r;
		if (ow_clock_steady_ns() >= deadline_ns)
			break;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * OW_NS_PER_MS}, NULL);
	}
	w->state = FAILED;
	char point[OW_RESULT_NAME];
	snprintf(point, sizeof point, "%.63s", w->why);
	snprintf(w->why, sizeof w->why,
	         "%s has sent them, but they are not in the database yet: is a collector running?", point);
	return 0;
}

static int add_missing(const struct fetch *f, const struct wanted *w, int64_t until_ns, struct ow_seconds *seconds,
                       const char *why)
{
	if (OW_GROW(seconds->missing, seconds->room, seconds->count + 1) < 0)
		return -ENOMEM;
	struct ow_seconds_missing *m = &seconds->missing[seconds->count++];
	*m = (struct ow_seconds_missing){
		.lane = (size_t)(w->lane - f->lanes), .since_ns = w->lack.since_ns, .until_ns = until_ns};
	snprintf(m->why, sizeof m->why, "%s", why);
	return 0;
}

/* What the point that has answered does not have any more. */
static int tell_old(const struct fetch *f, const struct wanted *w, struct ow_seconds *seconds)
{
	char why[240], since[OW_FORMAT];
	int64_t first_ns = w->answer.first_ns, until_ns = w->lack.until_ns;
	if (!w->lack.certain || (first_ns && first_ns < w->lack.since_ns + 60 * OW_NS_PER_S && w->answer.rows))
		return 0;
	if (first_ns > w->lack.since_ns) {
		ow_format_local(first_ns, "%Y-%m-%d %T %Z", since);
		snprintf(why, sizeof why, "%.64s has results since %.40s only", w->why, since);
		until_ns = first_ns < until_ns ? first_ns : until_ns;
	} else {
		snprintf(why, sizeof why, "%.64s has no results of this time", w->why);
	}
	return add_missing(f, w, until_ns, seconds, why);
}

static int gather(const struct fetch *f, int wait_ms, struct ow_seconds *seconds, struct ow_error *err)
{
	int64_t deadline_ns = ow_clock_steady_ns() + wait_ms * OW_NS_PER_MS;
	int r = 0;
	for (size_t i = 0; r == 0 && i < f->count; i++) {
		struct wanted *w = &f->wanted[i];
		if (w->state == ANSWERED) {
			seconds->rows += w->answer.rows;
			r = wait_for(f, w, deadline_ns, err);
		}
		if (r == 0)
			r = w->state == ANSWERED ? tell_old(f, w, seconds)
			                         : add_missing(f, w, w->lack.until_ns, seconds, w->why);
		if (r == -ENOMEM)
			ow_error_set(err, ENOMEM, "not enough memory");
	}
	return r;
}

int ow_seconds_fetch(const char *dir, struct ow_stored *stored, int64_t since_ns, int64_t until_ns, int wait_ms,
                     struct ow_seconds *ret_seconds, struct ow_error *err)
{
	struct fetch f = {.stored = stored};
	int64_t now_ns = ow_clock_real_ns(), span_ns;
	*ret_seconds = (struct ow_seconds){0};
	until_ns = until_ns < now_ns ? until_ns : now_ns;
	if (until_ns <= since_ns)
		return 0;
	/* A question is about whole minutes. */
	if (__builtin_sub_overflow(until_ns, since_ns, &span_ns) || span_ns > OW_QUESTION_SPAN_NS - 60 * OW_NS_PER_S)
		return ow_error_set(err, E2BIG, "results of intervals of more than a day: ask for a shorter time");
	int r = find_lacks(&f, since_ns, until_ns, err);
	if (r == 0 && f.count) {
		ask_points(&f, dir);
		ret_seconds->asked = f.count;
		r = gather(&f, wait_ms, ret_seconds, err);
	}
	free(f.wanted);
	if (r < 0)
		ow_seconds_done(ret_seconds);
	return r;
}

void ow_seconds_done(struct ow_seconds *seconds)
{
	free(seconds->missing);
	*seconds = (struct ow_seconds){0};
}
