/* SPDX-License-Identifier: Apache-2.0 */
/* What happened and how the points are: verdicts, events, points, flows, and the truth of a lab. */
#include "base/array.h"
#include "base/time.h"
#include "flows/flow_query.h"
#include "web/api_private.h"
#include "web/notices.h"
#include "web/verdicts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX     5000
#define EVENTS_DEFAULT 200
/* A point without results for so long, and for three intervals, is away. */
#define AWAY_NS     (30 * OW_NS_PER_S)
#define FLOWS_MAX   10000
#define FLOWS_WORST 20
/* Of a recording, which may be of a peer: some 3 GB, and a minute. Who has more asks `oneway flows query`. */
#define FLOWS_READ  (1u << 22)
#define TRUTH_BYTES ((size_t)4 << 20)

static int no_memory(struct ow_error *err)
{
	return ow_error_set(err, ENOMEM, "not enough memory");
}

/* -- verdicts ----------------------------------------------------------------------------------------------------- */

/* A list of the lines of a text. */
static void put_lines(struct ow_json *json, const char *name, const char *text)
{
	char line[600];
	ow_json_array(json, name);
	while (text && *text) {
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), text);
		ow_json_string(json, NULL, line);
		text += length + (text[length] == '\n');
	}
	ow_json_end(json);
}

void ow_api_verdict(struct ow_json *json, const char *name, const struct ow_verdict *v, const char *segment)
{
	ow_json_object(json, name);
	ow_json_string(json, "id", v->id);
	ow_json_integer(json, "start_ns", v->since_ns);
	ow_json_integer_if(json, "end_ns", v->until_ns != INT64_MAX, v->until_ns);
	ow_json_string(json, "kind", v->is_broken ? "broken" : "unmeasured");
	ow_json_string(json, "subject", v->subject);
	ow_json_string(json, "segment", segment);
	ow_json_string(json, "from", v->from);
	ow_json_string(json, "to", v->to);
	ow_json_string(json, "text", v->text);
	put_lines(json, "why", v->why);
	ow_json_raw(json, "evidence", v->evidence ? v->evidence : "[]");
	ow_json_end(json);
}

/* The segment between two points; NULL: none, or the incident is of a path. */
static const char *segment_of(const struct ow_stored *stored, const struct ow_verdict *v)
{
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes);
	for (size_t i = 0; v->from && v->to && i < lanes; i++) {
		if (strcmp(lane[i].from, v->from) == 0 && strcmp(lane[i].to, v->to) == 0)
			return lane[i].segment;
	}
	return NULL;
}

static void put_incident(void *arg, const struct ow_verdict *v)
{
	struct ow_call *call = arg;
	ow_api_verdict(&call->json, NULL, v, segment_of(call->stored, v));
}

int ow_api_verdicts(struct ow_call *call, struct ow_error *err)
{
	struct ow_json *json = &call->json;
	struct ow_error problem;
	int64_t from, until;
	int r = ow_api_select(call, err);
	if (r < 0)
		return r;
	ow_json_object(json, NULL);
	ow_json_array(json, "incidents");
	ow_verdicts_list(call->api->verdicts, call->filter.since_ns, call->filter.until_ns, put_incident, call, &from,
	                 &until, &problem);
	ow_json_end(json);
	ow_json_integer_if(json, "judged_from_ns", from != 0, from);
	ow_json_integer_if(json, "judged_until_ns", from != 0, until);
	ow_json_string(json, "problem", *problem.text ? problem.text : NULL);
	ow_json_end(json);
	return 0;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

struct event {
	int64_t time_ns;
	char *json;
};

struct events {
	struct ow_call *call;
	struct event *event;
	size_t count, room;
	uint64_t omitted; /* older ones that were not read */
	bool no_memory;
};

/* Begins an event; its JSON goes to the stream. NULL: no memory. */
static FILE *begin_event(struct events *e, int64_t time_ns, size_t *ret_size)
{
	if (OW_GROW(e->event, e->room, e->count + 1) < 0) {
		e->no_memory = true;
		return NULL;
	}
	struct event *event = &e->event[e->count];
	*event = (struct event){.time_ns = time_ns};
	FILE *out = open_memstream(&event->json, ret_size);
	e->no_memory |= !out;
	return out;
}

static void end_event(struct events *e, FILE *out)
{
	if (fclose(out) != 0) {
		e->no_memory = true;
		free(e->event[e->count].json);
		return;
	}
	/* The document has its line end, which a list has not. */
	char *json = e->event[e->count++].json;
	json[strcspn(json, "\n")] = 0;
}

static int on_flow_event(void *arg, const struct ow_flow_event *event)
{
	struct events *e = arg;
	size_t size;
	FILE *out = begin_event(e, event->start_ns, &size);
	if (!out)
		return -ENOMEM;
	struct ow_json json = {.out = out};
	ow_flow_event_json_put(&json, NULL, event);
	end_event(e, out);
	return 0;
}

static void add_notice(struct events *e, const struct ow_notice *notice)
{
	size_t lanes, size;
	const struct ow_stored_lane *lane = ow_stored_lanes(e->call->stored, &lanes);
	FILE *out = begin_event(e, notice->start_ns, &size);
	if (!out)
		return;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "kind", notice->of_clock ? "clock" : ow_result_status_name[notice->status]);
	ow_json_integer(&json, "time_ns", notice->start_ns);
	ow_json_integer(&json, "end_ns", notice->end_ns);
	ow_api_lane(&json, &lane[notice->lane]);
	ow_json_string(&json, "text", *notice->text ? notice->text : "no cause known");
	ow_json_count(&json, "intervals", notice->intervals);
	ow_json_end(&json);
	end_event(e, out);
}

static void add_incident(void *arg, const struct ow_verdict *v)
{
	struct events *e = arg;
	const char *segment = segment_of(e->call->stored, v), *wanted = e->call->filter.segment;
	size_t size;
	if (wanted && (!segment || strcmp(wanted, segment) != 0))
		return;
	FILE *out = begin_event(e, v->since_ns, &size);
	if (!out)
		return;
	struct ow_json json = {.out = out};
	ow_json_object(&json, NULL);
	ow_json_string(&json, "kind", "incident");
	ow_json_integer(&json, "time_ns", v->since_ns);
	ow_json_integer_if(&json, "end_ns", v->until_ns != INT64_MAX, v->until_ns);
	ow_json_string(&json, "segment", segment);
	ow_json_null(&json, "class");
	ow_json_string(&json, "from", v->from);
	ow_json_string(&json, "to", v->to);
	ow_json_string(&json, "text", v->text);
	ow_json_string(&json, "id", v->id);
	ow_json_end(&json);
	end_event(e, out);
}

/* The newest ones of flows. */
static int collect_flow_events(struct events *e, uint64_t limit, struct ow_error *err)
{
	uint64_t all = 0;
	int r = ow_stored_events_count(e->call->stored, &all, err);
	if (r == 0)
		r = ow_stored_events(e->call->stored, limit, on_flow_event, e, err);
	/* More may have come since they were counted. */
	if (r == 0 && all > e->count)
		e->omitted += all - e->count;
	return r;
}

/* Times that were not measured, and clocks: from hours if it is long ago, so its ends are then those of hours. */
static int collect_notices(struct events *e, struct ow_error *err)
{
	struct ow_notices notices = {.limit = EVENTS_MAX, .clocks = true};
	const struct ow_stored_sum_options o = {.group = OW_STORED_LANE,
	                                        .p99_limit_ns = INT64_MAX,
	                                        .on_notice = ow_notices_add,
	                                        .arg = &notices,
	                                        .notices_only = true};
	struct ow_stored_sums sums;
	int64_t since = e->call->filter.since_ns;
	bool is_long = since == INT64_MIN || e->call->filter.until_ns - since > 48 * 3600 * OW_NS_PER_S;
	int r = ow_stored_summarise_any(e->call->stored, &o, is_long ? OW_PERIOD_HOUR : OW_PERIOD_MINUTE, &sums, err);
	if (r < 0)
		return r;
	ow_stored_sums_done(&sums);
	ow_notices_end(&notices);
	for (size_t i = 0; i < notices.count; i++)
		add_notice(e, &notices.notice[i]);
	e->no_memory |= notices.no_memory;
	e->omitted += notices.omitted;
	ow_notices_done(&notices);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
}

static void put_events(struct ow_json *json, const struct events *e, size_t limit)
{
	ow_json_object(json, NULL);
	ow_json_array(json, "events");
	for (size_t i = 0; i < e->count && i < limit; i++)
		ow_json_raw(json, NULL, e->event[i].json);
	ow_json_end(json);
	uint64_t omitted = e->omitted + (e->count > limit ? e->count - limit : 0);
	ow_json_flag(json, "truncated", omitted > 0);
	ow_json_count(json, "omitted", omitted);
	ow_json_end(json);
}

/* Without a time: those of the last day that is stored. */
static int select_events(struct ow_call *call, struct ow_error *err)
{
	int64_t first, last;
	int r = ow_api_select(call, err);
	if (r < 0 || call->filter.since_ns != INT64_MIN)
		return r;
	r = ow_stored_span(call->stored, &first, &last, err);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	int64_t end = call->filter.until_ns < last ? call->filter.until_ns : last;
	call->filter.since_ns = ow_time_later(end, -24 * 3600 * OW_NS_PER_S);
	return ow_stored_choose(call->stored, &call->filter, err);
}

int ow_api_events(struct ow_call *call, struct ow_error *err)
{
	struct events e = {.call = call};
	struct ow_error problem;
	int64_t limit = EVENTS_DEFAULT, from, until;
	int r = select_events(call, err);
	if (r == 0)
		r = ow_query_number(call->query, "limit", 1, EVENTS_MAX, &limit, err);
	if (r == 0)
		r = collect_flow_events(&e, (uint64_t)limit, err);
	if (r == 0)
		r = collect_notices(&e, err);
	if (r == 0)
		ow_verdicts_list(call->api->verdicts, call->filter.since_ns, call->filter.until_ns, add_incident, &e,
		                 &from, &until, &problem);
	if (r == 0 && e.no_memory)
		r = no_memory(err);
	if (e.count)
		qsort(e.event, e.count, sizeof *e.event, newest_first);
	if (r == 0)
		put_events(&call->json, &e, (size_t)limit);
	for (size_t i = 0; i < e.count; i++)
		free(e.event[i].json);
	free(e.event);
	return r;
}

/* -- points ------------------------------------------------------------------------------------------------------- */

struct point {
	char name[OW_RESULT_NAME];
	int64_t last_ns, length_ns; /* the end of its newest result, and its length */
	int64_t clock_ns;           /* the start of the result that the clock is of */
	bool clock_known;
	int64_t clock_error_ns;
	uint64_t drops;
};

struct points {
	struct point *point;
	size_t count, room;
	bool no_memory;
};

static struct point *point_of(struct points *points, const char *name)
{
	for (size_t i = 0; i < points->count; i++) {
		if (strcmp(points->point[i].name, name) == 0)
			return &points->point[i];
	}
	if (OW_GROW(points->point, points->room, points->count + 1) < 0) {
		points->no_memory = true;
		return NULL;
	}
	struct point *p = &points->point[points->count++];
	*p = (struct point){.last_ns = INT64_MIN, .clock_ns = INT64_MIN};
	snprintf(p->name, sizeof p->name, "%s", name);
	return p;
}

static void note_clock(struct point *p, const struct ow_interval_result *r, const struct ow_clock_state *clock,
                       uint64_t drops)
{
	int64_t end = ow_time_later(r->start_ns, r->length_ns);
	if (end > p->last_ns) {
		p->last_ns = end;
		p->length_ns = r->length_ns;
	}
	if (r->status == OW_RESULT_UNKNOWN)
		return;
	p->drops += drops;
	if (r->start_ns < p->clock_ns)
		return;
	p->clock_ns = r->start_ns;
	p->clock_known = clock->synchronised;
	p->clock_error_ns = clock->error_ns;
}

static int on_newest(void *arg, const struct ow_interval_result *r)
{
	struct points *points = arg;
	struct point *from = point_of(points, r->from);
	if (from)
		note_clock(from, r, &r->clock_from, r->ring_drops_from);
	struct point *to = strchr(r->to, '+') ? NULL : point_of(points, r->to);
	if (to)
		note_clock(to, r, &r->clock_to, r->ring_drops_to);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct point *)a)->name, ((const struct point *)b)->name);
}

static void put_points(struct ow_call *call, const struct points *points, const char *problem)
{
	struct ow_json *json = &call->json;
	ow_json_object(json, NULL);
	ow_json_string(json, "source", "results");
	ow_json_string(json, "problem", problem);
	ow_json_array(json, "points");
	for (size_t i = 0; i < points->count; i++) {
		const struct point *p = &points->point[i];
		int64_t patience = p->length_ns > AWAY_NS / 3 ? 3 * p->length_ns : AWAY_NS;
		bool is_away = p->last_ns == INT64_MIN || p->last_ns < call->now_ns - patience;
		ow_json_object(json, NULL);
		ow_json_string(json, "point", p->name);
		ow_json_string(json, "state", is_away ? "away" : "measuring");
		ow_json_integer_if(json, "last_result_ns", p->last_ns != INT64_MIN, p->last_ns);
		ow_json_integer_if(json, "clock_error_ns", p->clock_known, p->clock_error_ns);
		ow_json_count(json, "ring_drops", p->drops);
		ow_json_string(json, "problem", is_away ? "no new results in the store" : NULL);
		ow_json_null(json, "health");
		ow_json_end(json);
	}
	ow_json_end(json);
	ow_json_end(json);
}

/* From the fleet; if there is none, or it cannot be asked, from the newest results of all lanes. */
int ow_api_points(struct ow_call *call, struct ow_error *err)
{
	struct points points = {0};
	struct ow_error problem = {""};
	size_t lanes;
	if (call->api->options.fleet && ow_api_fleet_points(call, &problem) == 0)
		return 0;
	int r = ow_api_select(call, err);
	call->filter.period = ow_stored_finest(call->stored);
	if (r == 0)
		r = ow_stored_choose(call->stored, &call->filter, err);
	const struct ow_stored_lane *lane = ow_stored_lanes(call->stored, &lanes);
	for (size_t i = 0; r == 0 && i < lanes; i++) {
		point_of(&points, lane[i].from);
		if (!strchr(lane[i].to, '+'))
			point_of(&points, lane[i].to);
	}
	if (r == 0)
		r = ow_stored_list(call->stored, 4 * lanes + 1, on_newest, &points, err);
	if (r == 0 && points.no_memory)
		r = no_memory(err);
	if (points.count)
		qsort(points.point, points.count, sizeof *points.point, by_name);
	if (r == 0)
		put_points(call, &points, *problem.text ? problem.text : NULL);
	free(points.point);
	return r;
}

/* -- flows -------------------------------------------------------------------------------------------------------- */

static int put_flows(struct ow_call *call, const struct ow_flow_answers *answers, size_t most)
{
	struct ow_flow_rows rows = {.row = calloc(answers->flows + 1, sizeof *rows.row)};
	if (!rows.row)
		return -ENOMEM;
	for (size_t i = 0; i < answers->flows; i++) {
		rows.eligible++;
		bool known = ow_flow_answer_whole(answers, &answers->flow[i])->mean_ns.status != OW_VALUE_NONE;
		if (rows.rows < most && (known || answers->lost))
			rows.row[rows.rows++] = &answers->flow[i];
	}
	ow_report_flow_answers_json(call->json.out, answers, &rows);
	free(rows.row);
	return 0;
}

int ow_api_flows(struct ow_call *call, struct ow_error *err)
{
	const struct ow_api_options *o = &call->api->options;
	struct ow_flows_question question = {
		.since_ns = INT64_MIN, .until_ns = INT64_MAX, .worst = true, .flows_max = FLOWS_READ};
	struct ow_flow_answers answers = {0};
	struct ow_flows_files *files = NULL;
	int64_t most = FLOWS_WORST;
	if (!o->flows_from)
		return ow_error_set(err, ENOENT, "no recordings of flows: start with --flows-from and --flows-to");
	question.path[question.points++] = o->flows_from;
	question.path[question.points++] = o->flows_to;
	int r = ow_query_time(call->query, "since", call->now_ns, &question.since_ns, err);
	if (r == 0)
		r = ow_query_time(call->query, "until", call->now_ns, &question.until_ns, err);
	if (r == 0)
		r = ow_query_number(call->query, "worst", 1, FLOWS_MAX, &most, err);
	const char *by = ow_query_get(call->query, "by"), *order = ow_query_get(call->query, "order");
	if (r == 0 && order && strcmp(order, "worst") != 0 && strcmp(order, "lost") != 0)
		r = ow_error_set(err, EINVAL, "order: 'worst' or 'lost', not '%.40s'", order);
	question.lost = order && strcmp(order, "lost") == 0;
	question.worst = !question.lost;
	if (r == 0 && by)
		r = ow_flow_select_parse(by, &question.by, err);
	if (r == 0)
		r = ow_flows_ask(&question, &answers, &files, err);
	if (r == 0 && put_flows(call, &answers, (size_t)most) < 0)
		r = no_memory(err);
	ow_flow_answers_done(&answers);
	ow_flows_files_free(files);
	return r;
}

/* -- truth -------------------------------------------------------------------------------------------------------- */

/* What the lab writes, as it is. */
int ow_api_truth(struct ow_call *call, struct ow_error *err)
{
	const char *path = call->api->options.truth;
	if (!path)
		return ow_error_set(err, ENOENT, "only a lab knows the truth: oneway lab --web");
	FILE *file = fopen(path, "re");
	if (!file && errno == ENOENT) {
		/* The first interval is not over yet. */
		ow_json_object(&call->json, NULL);
		ow_json_array(&call->json, "segments");
		ow_json_end(&call->json);
		ow_json_end(&call->json);
		return 0;
	}
	char *text = file ? malloc(TRUTH_BYTES) : NULL;
	size_t size = text ? fread(text, 1, TRUTH_BYTES, file) : 0;
	bool is_whole = text && size && size < TRUTH_BYTES && !ferror(file);
	if (is_whole)
		fwrite(text, 1, size, call->json.out);
	if (file)
		fclose(file);
	free(text);
	return is_whole ? 0 : ow_error_set(err, EIO, "%.200s cannot be read", path);
}
