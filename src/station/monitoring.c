/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the monitoring station: results wait until their interval is complete, then every path is judged. */
#include "station/monitoring.h"

#include "result/result_clock.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/time.h"
#include "station/input.h"
#include "station/network.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often new results are looked for. */
#define POLL_MS 200
/* An interval is judged when all places have a result for it, or after this time. */
#define PATIENCE_NS (3 * OW_NS_PER_S)
#define WAITING_MAX (1u << 22)

/* A result that waits for its interval to be judged. */
struct waiting {
	char *place;
	struct ow_watch_sample sample;
	int64_t came_ns; /* by the steady clock */
};

struct monitoring {
	const struct ow_monitoring *how;
	const struct ow_station *station;
	struct ow_monitor *monitor;
	struct ow_station_input *input;
	struct ow_topology *topology;
	bool *is_mrouter;
	int64_t refreshed_ns;
	struct waiting *waiting;
	size_t waits, room;
	enum ow_path_state *state; /* of each target, as reported last */
	uint32_t *told;            /* number of findings reported last */
	bool told_any;             /* at least one path could be judged at some time */
	int64_t judged_ns;
	struct ow_monitoring_end *end;
	struct ow_error *err;
};

/* What the clocks may add to a delay; NAN = not known. */
static double clock_error_ns(const struct ow_interval_result *result)
{
	int64_t from = result->clock_from.error_ns, to = result->clock_to.error_ns;
	if (*result->clock_method)
		return ow_result_clock_error_ns(result);
	return from != OW_CLOCK_UNKNOWN && to != OW_CLOCK_UNKNOWN ? (double)from + (double)to : (double)NAN;
}

void ow_station_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample)
{
	bool known = result->status != OW_RESULT_UNKNOWN;
	/* The clocks' error is the same from one interval to the next: it hides no change. */
	struct ow_interval_result sampled = *result;
	ow_result_clock_narrow(&sampled);
	const struct ow_value *mean = &sampled.mean_ns, *stddev = &sampled.stddev_ns;
	*ret_sample = (struct ow_watch_sample){
		.start_ns = result->start_ns,
		.length_ns = result->length_ns,
		.has_delay = known && mean->status != OW_VALUE_NONE && result->samples,
		.has_loss = known && result->loss_ratio.status != OW_VALUE_NONE && result->sent > result->pending,
		.mean_ns = mean->value,
		.stddev_ns = stddev->status == OW_VALUE_NONE ? 0 : stddev->value,
		.mean_error_ns = mean->status == OW_VALUE_ESTIMATED ? (mean->high - mean->low) / 3.92 : 0,
		.stddev_error_ns = stddev->status == OW_VALUE_ESTIMATED ? (stddev->high - stddev->low) / 3.92 : 0,
		.clock_error_ns = clock_error_ns(result),
		.samples = result->samples,
		.sent = result->sent - result->pending,
		.lost = result->lost,
		.active = result->active,
	};
}

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct monitoring *m = arg;
	char place[OW_PLACE_TEXT];
	if (result->start_ns >= m->how->until_ns || result->start_ns <= m->judged_ns)
		return 0;
	if (ow_station_is_round_trip(result))
		return 0;
	m->end->results++;
	if (!ow_station_place(m->station, result, place)) {
		if (m->end->homeless++ == 0)
			memcpy(m->end->homeless_name, result->segment, sizeof(m->end->homeless_name));
		return 0;
	}
	if (m->waits == WAITING_MAX)
		return ow_error_set(m->err, E2BIG, "more than %u results at once: select fewer with --since",
		                    WAITING_MAX);
	if (OW_GROW(m->waiting, m->room, m->waits + 1) < 0)
		return ow_error_set(m->err, ENOMEM, "out of memory");
	struct waiting *waiting = &m->waiting[m->waits];
	*waiting = (struct waiting){.place = strdup(place), .came_ns = ow_clock_steady_ns()};
	if (!waiting->place)
		return ow_error_set(m->err, ENOMEM, "out of memory");
	ow_station_sample(result, &waiting->sample);
	m->waits++;
	return 0;
}

static int by_start(const void *pa, const void *pb)
{
	const struct waiting *a = pa, *b = pb;
	if (a->sample.start_ns != b->sample.start_ns)
		return a->sample.start_ns < b->sample.start_ns ? -1 : 1;
	return strcmp(a->place, b->place);
}

/* -- verdicts ---------------------------------------------------------------------------------------------------------
 */

static int judge(struct monitoring *m, int64_t now_ns)
{
	const struct ow_monitor_verdict *verdict;
	uint32_t count;
	char hops[512];
	int r = ow_monitor_judge(m->monitor, now_ns, &verdict, &count, m->err);
	if (r == 0)
		r = ow_monitor_locate(m->monitor, now_ns, hops, sizeof(hops), m->err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		m->end->broke |= verdict[i].state == OW_PATH_BROKEN;
		m->told_any |= verdict[i].state != OW_PATH_UNKNOWN;
		bool is_news = verdict[i].state != m->state[i] || verdict[i].findings > m->told[i];
		/* At the start no path can be judged: this is not reported. */
		bool silent = verdict[i].state == OW_PATH_UNKNOWN && m->judged_ns == INT64_MIN;
		if (is_news && !silent)
			m->how->on_news(m->how->arg, now_ns, &verdict[i], hops);
		m->state[i] = verdict[i].state;
		m->told[i] = verdict[i].findings;
	}
	m->how->on_interval(m->how->arg, now_ns, verdict, count, hops);
	m->judged_ns = now_ns;
	return 0;
}

/* Judges the complete intervals: all but the newest two, or, at the end, all. */
static int advance(struct monitoring *m, bool all)
{
	size_t done = 0;
	int r = 0;
	if (!m->waits)
		return 0;
	qsort(m->waiting, m->waits, sizeof(*m->waiting), by_start);
	int64_t newest_ns = m->waiting[m->waits - 1].sample.start_ns, now_ns = ow_clock_steady_ns();
	while (r == 0 && done < m->waits) {
		const struct ow_watch_sample *first = &m->waiting[done].sample;
		int64_t start_ns = first->start_ns, came_ns = m->waiting[done].came_ns;
		if (!all && newest_ns - start_ns < 2 * first->length_ns && now_ns - came_ns < PATIENCE_NS)
			break;
		for (; r == 0 && done < m->waits && m->waiting[done].sample.start_ns == start_ns; done++) {
			r = ow_monitor_add(m->monitor, m->waiting[done].place, &m->waiting[done].sample, m->err);
			free(m->waiting[done].place);
		}
		if (r == 0)
			r = judge(m, start_ns);
	}
	m->waits -= done;
	memmove(m->waiting, m->waiting + done, m->waits * sizeof(*m->waiting));
	return r;
}

/* -- the network ------------------------------------------------------------------------------------------------------
 */

static int read_network(struct monitoring *m)
{
	struct ow_topology *topology;
	bool *is_mrouter;
	char changes[400];
	int r = ow_station_network(m->station, &topology, &is_mrouter, m->err);
	if (r < 0)
		return r;
	bool changed = !m->topology || ow_station_network_changes(m->topology, topology, changes, sizeof(changes));
	if (changed)
		r = ow_monitor_set_network(m->monitor, topology, is_mrouter, ow_clock_real_ns(), m->err);
	if (changed && m->topology)
		m->how->on_network(m->how->arg, ow_clock_real_ns(), changes);
	ow_topology_free(m->topology);
	free(m->is_mrouter);
	m->topology = topology;
	m->is_mrouter = is_mrouter;
	return r;
}

/* Reads the network again at regular times. If it cannot be read, the station keeps the last one. */
static void refresh(struct monitoring *m)
{
	struct ow_error err, *err_then = m->err;
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns - m->refreshed_ns < m->station->refresh_ns)
		return;
	m->refreshed_ns = now_ns;
	m->err = &err;
	if (read_network(m) < 0)
		m->how->on_stale_network(m->how->arg, err.text);
	m->err = err_then;
}

static int prepare(struct monitoring *m)
{
	int r = ow_monitor_create(&m->station->options, &m->monitor);
	if (r < 0)
		return ow_error_set(m->err, ENOMEM, "out of memory");
	for (unsigned i = 0; r == 0 && i < m->station->targets; i++)
		r = ow_monitor_add_target(m->monitor, &m->station->target[i], m->err);
	m->state = calloc(m->station->targets, sizeof(*m->state));
	m->told = calloc(m->station->targets, sizeof(*m->told));
	if (r == 0 && (!m->state || !m->told))
		r = ow_error_set(m->err, ENOMEM, "out of memory");
	if (r == 0)
		r = read_network(m);
	m->refreshed_ns = ow_clock_steady_ns();
	return r;
}

static int watch(struct monitoring *m)
{
	struct timespec pause = {.tv_nsec = POLL_MS * OW_NS_PER_MS};
	bool ended = false;
	int r = 0;
	while (r == 0 && !ended && !*m->how->stop) {
		r = ow_station_input_poll(m->input, on_result, m, &ended, m->err);
		if (r == 0)
			r = advance(m, ended);
		if (r == 0 && m->how->follow && !ended) {
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
	if (!m->end->results)
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
	                              verdict[0].cause);
}

static void release(struct monitoring *m)
{
	for (size_t i = 0; i < m->waits; i++)
		free(m->waiting[i].place);
	free(m->waiting);
	free(m->state);
	free(m->told);
	free(m->is_mrouter);
	ow_topology_free(m->topology);
	ow_station_input_close(m->input);
	ow_monitor_free(m->monitor);
}

int ow_monitoring_run(const struct ow_monitoring *how, char *const *paths, int count, struct ow_monitoring_end *ret_end,
                      struct ow_error *err)
{
	struct monitoring m = {.how = how, .station = how->station, .judged_ns = INT64_MIN, .end = ret_end, .err = err};
	*ret_end = (struct ow_monitoring_end){0};
	int r = prepare(&m);
	if (r == 0)
		r = ow_station_input_open(paths, count, how->follow, how->since_ns, &m.input, err);
	if (r == 0)
		r = watch(&m);
	if (r == 0) {
		how->on_homeless(how->arg, ret_end);
		r = finish(&m);
	}
	release(&m);
	return r;
}
