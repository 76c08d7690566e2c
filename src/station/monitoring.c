/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the monitoring station: results wait until their interval is complete, then every path is judged. */
#include "station/monitoring.h"

#include "base/clock.h"
#include "base/time.h"
#include "base/word.h"
#include "station/wait.h"
#include "station/input.h"
#include "station/lane_places.h"
#include "station/network.h"
#include "station/sample.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often new results are looked for. */
#define POLL_MS 200
/* Results that arrive now may end this far ahead of this host's clock: less than after which others are stale. */
#define AHEAD_NS (5 * OW_NS_PER_S)
/* Ends of intervals that are closer together are judged together. */
#define JUDGE_STEP_NS (100 * OW_NS_PER_MS)

struct monitoring {
	const struct ow_monitoring *how;
	const struct ow_station *station;
	struct ow_monitor *monitor;
	struct ow_incidents *incidents;
	struct ow_station_input *input;
	struct ow_wait *wait;
	struct ow_lane_places *lanes;
	uint32_t lanes_known; /* lanes that the network contains */
	struct ow_topology *topology;
	bool *is_mrouter;
	int64_t refreshed_ns;
	bool told_any;                           /* at least one path could be judged at some time */
	int64_t judged_ns;                       /* the end of the last interval that was judged */
	int64_t judged_at_ns;                    /* when that was, by the steady clock */
	int64_t length_ns;                       /* of that interval */
	bool pending;                            /* results have come that are not judged yet */
	struct ow_monitoring_count *count, told; /* told: as of the last warning */
	struct ow_error *err;
};

/* Whether the network is read, and not made of the segments that have results. */
static bool is_read(const struct monitoring *m)
{
	return !ow_station_by_segments(m->station) || m->station->map;
}

/* -- results ----------------------------------------------------------------------------------------------------------
 */

static void count_first(uint64_t *count, char name[OW_RESULT_NAME + 16], const char *what, const char *value)
{
	if ((*count)++ == 0)
		snprintf(name, OW_RESULT_NAME + 16, "%s %s", what, value);
}

/* Whether the station can use the result; counts those that it cannot use. */
static bool is_usable(struct monitoring *m, const struct ow_interval_result *result)
{
	if (ow_station_is_round_trip(result))
		return false;
	m->count->results++;
	if (!ow_station_times_valid(result)) {
		count_first(&m->count->odd, m->count->odd_name, "segment", result->segment);
		return false;
	}
	/* One wrong clock must not move the time of all others. */
	if (m->how->follow && result->start_ns + result->length_ns > ow_clock_real_ns() + AHEAD_NS) {
		count_first(&m->count->ahead, m->count->ahead_name, "point", result->from);
		return false;
	}
	return result->start_ns < m->how->until_ns;
}

/* With a map only segments between neighbours are watched. */
static bool is_neighbours(const struct monitoring *m, const struct ow_lane_place *lane)
{
	if (!m->station->map)
		return true;
	uint32_t from = ow_topology_find(m->topology, lane->from), to = ow_topology_find(m->topology, lane->to);
	return from != UINT32_MAX && to != UINT32_MAX && ow_topology_link(m->topology, from, to);
}

/* A segment of a network that nobody described is a path of its own. */
static int watch_alone(struct monitoring *m, struct ow_lane_place *lane)
{
	char name[OW_PLACE_TEXT];
	if (!ow_station_by_segments(m->station) || m->station->targets || !lane->place || lane->watched ||
	    !is_neighbours(m, lane))
		return 0;
	const char *more = strpbrk(lane->place, "(/");
	snprintf(name, sizeof(name), "%s to %s%s%s", lane->from, lane->to,
	         !more          ? ""
	         : *more == '(' ? " "
	                        : ", ",
	         !more ? "" : more + (*more == '/'));
	struct ow_target target = {.name = name,
	                           .from = lane->from,
	                           .to = lane->to,
	                           .max_mean_ns = NAN,
	                           .max_loss = NAN,
	                           .place = lane->place};
	lane->watched = true;
	return ow_monitor_add_target(m->monitor, &target, m->err);
}

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct monitoring *m = arg;
	struct ow_watch_sample sample;
	bool is_new, full;
	if (!is_usable(m, result))
		return 0;
	struct ow_lane_place *lane = ow_lane_places_find(m->lanes, result, &is_new, &full);
	if (!lane) {
		m->count->surplus += full;
		return full ? 0 : ow_error_set(m->err, ENOMEM, "out of memory");
	}
	if (!lane->place) {
		count_first(&m->count->homeless, m->count->homeless_name, "segment", result->segment);
		return 0;
	}
	int r = is_new ? watch_alone(m, lane) : 0;
	ow_station_sample(result, &sample);
	if (r < 0 || !ow_monitor_is_new(m->monitor, lane->place, &sample))
		return r;
	return ow_wait_add(m->wait, lane->place, &sample, ow_clock_steady_ns(), m->err);
}

static void warn(struct monitoring *m, uint64_t *told, uint64_t count, const char *what, const char *first)
{
	struct ow_error line;
	if (!count || *told)
		return;
	*told = count;
	ow_error_set(&line, EINVAL, "%llu %s %s%s%s", (unsigned long long)count, ow_plural(count, "result", "results"),
	             what, *first ? ", the first of " : "", first);
	m->how->on_warning(m->how->arg, line.text);
}

/* Once for each kind: results that are not used. */
static void warn_of_results(struct monitoring *m)
{
	const struct ow_monitoring_count *count = m->count;
	warn(m, &m->told.homeless, count->homeless, "without a place ('places' of the station says where they belong)",
	     count->homeless_name);
	warn(m, &m->told.ahead, count->ahead, "not used because they end in the future", count->ahead_name);
	warn(m, &m->told.odd, count->odd, "not used because of their time or length", count->odd_name);
	warn(m, &m->told.surplus, count->surplus, "not used because there are too many lanes", "");
}

/* -- the network ------------------------------------------------------------------------------------------------------
 */

static int find_network(struct monitoring *m, struct ow_topology **ret_topology, bool **ret_is_mrouter)
{
	if (is_read(m))
		return ow_station_network(m->station, ret_topology, ret_is_mrouter, m->err);
	m->lanes_known = ow_lane_places_count(m->lanes);
	return ow_lane_places_network(m->lanes, ret_topology, ret_is_mrouter, m->err);
}

static int read_network(struct monitoring *m)
{
	struct ow_topology *topology;
	bool *is_mrouter;
	char changes[400];
	int r = find_network(m, &topology, &is_mrouter);
	if (r < 0)
		return r;
	bool changed = !m->topology || ow_station_network_changes(m->topology, topology, changes, sizeof(changes));
	if (changed)
		r = ow_monitor_set_network(m->monitor, topology, is_mrouter, ow_clock_real_ns(), m->err);
	if (changed && m->topology && is_read(m))
		m->how->on_network(m->how->arg, ow_clock_real_ns(), changes);
	ow_topology_free(m->topology);
	free(m->is_mrouter);
	m->topology = topology;
	m->is_mrouter = is_mrouter;
	for (uint32_t i = 0; r == 0 && i < ow_lane_places_count(m->lanes); i++)
		r = watch_alone(m, ow_lane_places_get(m->lanes, i));
	return r;
}

/* Reads the network again at regular times. If it cannot be read, the station keeps the last one. */
static void refresh(struct monitoring *m)
{
	struct ow_error err, text, *err_then = m->err;
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns - m->refreshed_ns < m->station->refresh_ns || !is_read(m))
		return;
	m->refreshed_ns = now_ns;
	m->err = &err;
	if (read_network(m) < 0) {
		ow_error_set(&text, EIO, "%.400s; the last known network is used", err.text);
		m->how->on_warning(m->how->arg, text.text);
	}
	m->err = err_then;
}

/* -- verdicts ---------------------------------------------------------------------------------------------------------
 */

static int judge(struct monitoring *m, int64_t now_ns)
{
	const struct ow_monitor_verdict *verdict;
	uint32_t count;
	char hops[512];
	int r = 0;
	/* Paths over several segments are found again when there are new ones. */
	if (!is_read(m) && m->station->targets && m->lanes_known != ow_lane_places_count(m->lanes))
		r = read_network(m);
	if (r == 0)
		r = ow_monitor_judge(m->monitor, now_ns, &verdict, &count, m->err);
	if (r == 0)
		r = ow_monitor_locate(m->monitor, now_ns, hops, sizeof(hops), m->err);
	if (r != 0)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		m->count->broke |= verdict[i].state == OW_PATH_BROKEN;
		m->told_any |= verdict[i].state != OW_PATH_UNKNOWN;
	}
	m->judged_ns = now_ns;
	m->judged_at_ns = ow_clock_steady_ns();
	m->pending = false;
	if (ow_incidents_update(m->incidents, now_ns, verdict, count, hops) < 0)
		return ow_error_set(m->err, ENOMEM, "out of memory");
	m->how->on_interval(m->how->arg, now_ns - m->length_ns, m->length_ns, verdict, count, hops);
	return 0;
}

/* Judges the complete intervals, in the order of their ends. Results that come late count from the next verdict on. */
static int advance(struct monitoring *m, bool all)
{
	const char *place;
	struct ow_watch_sample sample;
	int64_t end_ns = INT64_MIN, now_ns = ow_clock_steady_ns();
	int r = 0;
	while (r == 0 && ow_wait_next(m->wait, all, now_ns, &place, &sample)) {
		int64_t next_ns = sample.start_ns + sample.length_ns;
		/* It may have come again while it waited. */
		if (!ow_monitor_is_new(m->monitor, place, &sample))
			continue;
		if (m->pending && end_ns > m->judged_ns && next_ns - end_ns > 0 &&
		    (m->judged_ns == INT64_MIN || end_ns - m->judged_ns >= JUDGE_STEP_NS))
			r = judge(m, end_ns);
		if (r == 0)
			r = ow_monitor_add(m->monitor, place, &sample, m->err);
		if (!m->pending || sample.length_ns < m->length_ns)
			m->length_ns = sample.length_ns;
		m->pending = true;
		end_ns = next_ns > end_ns ? next_ns : end_ns;
	}
	if (r == 0 && m->pending)
		r = judge(m, end_ns > m->judged_ns ? end_ns : m->judged_ns);
	return r;
}

/* If no results come at all, time goes on all the same. */
static int advance_without_results(struct monitoring *m)
{
	int64_t silent_ns = ow_clock_steady_ns() - m->judged_at_ns;
	int64_t stale_ns = m->station->options.stale_ns > 0 ? m->station->options.stale_ns : 10 * OW_NS_PER_S;
	if (m->judged_ns == INT64_MIN || silent_ns < stale_ns + m->length_ns)
		return 0;
	return judge(m, m->judged_ns + silent_ns);
}

static void on_incident(void *arg, enum ow_incident_event event, int64_t now_ns, const struct ow_incident *incident)
{
	struct monitoring *m = arg;
	m->how->on_incident(m->how->arg, event, now_ns, incident, m->input);
}

/* -- the run ----------------------------------------------------------------------------------------------------------
 */

static int prepare(struct monitoring *m)
{
	if (ow_monitor_create(&m->station->options, &m->monitor) < 0 || ow_wait_create(&m->wait) < 0 ||
	    ow_lane_places_create(m->station, &m->lanes) < 0 || ow_incidents_create(on_incident, m, &m->incidents) < 0)
		return ow_error_set(m->err, ENOMEM, "out of memory");
	int r = 0;
	for (unsigned i = 0; r == 0 && i < m->station->targets; i++)
		r = ow_monitor_add_target(m->monitor, &m->station->target[i], m->err);
	if (r == 0 && is_read(m))
		r = read_network(m);
	m->refreshed_ns = ow_clock_steady_ns();
	return r;
}

static int watch(struct monitoring *m)
{
	struct timespec pause = {.tv_nsec = POLL_MS * OW_NS_PER_MS};
	bool ended = false, caught_up = false;
	struct ow_error line;
	int r = 0;
	while (r == 0 && !ended && !*m->how->stop) {
		bool is_current = ow_station_input_is_current(m->input);
		r = ow_station_input_poll(m->input, on_result, m, &ended, m->err);
		if (r == 0)
			r = advance(m, ended);
		if (r < 0 || !is_current)
			continue;
		if (!caught_up)
			m->how->on_caught_up(m->how->arg);
		caught_up = true;
		if (m->how->follow && !ended) {
			r = advance_without_results(m);
			m->how->on_idle(m->how->arg);
			warn_of_results(m);
			while (ow_station_input_news(m->input, &line))
				m->how->on_warning(m->how->arg, line.text);
			refresh(m);
			nanosleep(&pause, NULL);
		}
	}
	return r < 0 ? r : advance(m, true);
}

static int finish(struct monitoring *m)
{
	const struct ow_monitor_verdict *verdict;
	uint32_t count;
	struct ow_monitor_count counts;
	if (!m->count->results)
		return ow_error_set(m->err, ENODATA, "the input has no final results");
	if (m->judged_ns == INT64_MIN)
		return ow_error_set(m->err, ENODATA, "none of the results belongs to a place of the station");
	int r = ow_monitor_judge(m->monitor, m->judged_ns, &verdict, &count, m->err);
	if (r < 0)
		return r;
	ow_monitor_count(m->monitor, m->judged_ns, &counts);
	m->how->on_end(m->how->arg, verdict, count, &counts);
	return m->told_any
	               ? 0
	               : ow_error_set(m->err, ENODATA, "no path could be judged at any time, the first because: %.300s",
	                              count ? verdict[0].cause : "there is none");
}

static void release(struct monitoring *m)
{
	free(m->is_mrouter);
	ow_topology_free(m->topology);
	ow_station_input_close(m->input);
	ow_incidents_free(m->incidents);
	ow_monitor_free(m->monitor);
	ow_wait_free(m->wait);
	ow_lane_places_free(m->lanes);
}

int ow_monitoring_run(const struct ow_monitoring *how, char *const *paths, int count,
                      struct ow_monitoring_count *ret_count, struct ow_error *err)
{
	struct monitoring m = {
		.how = how, .station = how->station, .judged_ns = INT64_MIN, .count = ret_count, .err = err};
	*ret_count = (struct ow_monitoring_count){0};
	int r = prepare(&m);
	if (r == 0)
		r = ow_station_input_open(paths, count, how->follow, how->since_ns, &how->access, &m.input, err);
	if (r == 0)
		r = watch(&m);
	if (r == 0) {
		warn_of_results(&m);
		r = finish(&m);
	}
	release(&m);
	return r;
}
