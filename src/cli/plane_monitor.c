/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane monitor: the station that turns results of segments into those of paths and says what is wrong. */
#include "base/word.h"
#include "cli/plane_monitor.h"
#include "base/clock.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/plane.h"
#include "station/input.h"
#include "station/network.h"
#include "cli/when.h"
#include "base/format.h"
#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* New results are looked for this often. */
#define POLL_MS 200
/* An interval is judged when all places have told of it, or after this long. */
#define PATIENCE_NS (3 * OW_NS_PER_S)
#define WAITING_MAX (1u << 22)

struct arguments {
	const char *since, *until, *why, *class_name;
	bool follow, quiet, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Options:"},
	{"follow", 'f', NULL, ow_option_flag, FIELD(follow), "Go on with what comes, until interrupted."},
	{"since", 0, "T", ow_option_text, FIELD(since),
         "Results from T on: '2026-11-15 10:02', 10:02, -2h, or seconds since 1970. With --why: slow since T."},
	{"until", 0, "T", ow_option_text, FIELD(until), "Results before T."},
	{"why", 0, "A,B", ow_option_text, FIELD(why),
         "Why is A to B worse since T? Compares every part of the path before and after T."},
	{"class", 0, "C", ow_option_text, FIELD(class_name), "With --why: for packets of this class."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Only changes, no table at the end."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "A line of JSON for each interval."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway plane monitor STATION [OPTION]... RESULTS...\n"
	      "\n"
	      "The monitoring station. STATION (YAML) names the network, the routers that are\n"
	      "measured inside, and the paths that matter; RESULTS are stores of points and\n"
	      "files of JSON lines (- is standard input). Paths are composed from their\n"
	      "segments; when one breaks its target the segments that have changed are named,\n"
	      "since when, and by how much. Exit code 3: a path broke its target; 1: none of\n"
	      "the paths could be judged.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway plane monitor station.yaml london.db paris.db --since -1h\n"
	      "  oneway plane monitor station.yaml --follow london.db paris.db\n"
	      "  oneway plane monitor station.yaml --why A,D --since 10:02 london.db paris.db\n"
	      "  oneway live --from eth0 --to eth1 --json |\n"
	      "      oneway plane monitor station.yaml -f -\n",
	      stdout);
}

/* A result that waits for its interval to be judged. */
struct waiting {
	char *place;
	struct ow_watch_sample sample;
	int64_t came_ns; /* steady */
};

struct job {
	const struct arguments *args;
	struct ow_station *station;
	struct ow_monitor *monitor;
	struct ow_station_input *input;
	struct ow_topology *topology;
	bool *is_mrouter;
	int64_t since_ns, until_ns, refreshed_ns;
	struct waiting *waiting;
	size_t waits, room;
	uint64_t results, homeless; /* without a place */
	char homeless_name[OW_RESULT_NAME];
	enum ow_path_state *state; /* of each target, as told last */
	uint32_t *told;            /* findings told last */
	bool broke;                /* a path was beyond its target at some time */
	bool told_any;             /* of some path something could be said at some time */
	int64_t judged_ns;
	struct ow_error *err;
};

void ow_plane_sample(const struct ow_interval_result *result, struct ow_watch_sample *ret_sample)
{
	bool known = result->status != OW_RESULT_UNKNOWN;
	int64_t from = result->clock_from.error_ns, to = result->clock_to.error_ns;
	bool clocks = from != OW_CLOCK_UNKNOWN && to != OW_CLOCK_UNKNOWN;
	const struct ow_value *mean = &result->mean_ns, *stddev = &result->stddev_ns;
	*ret_sample = (struct ow_watch_sample){
		.start_ns = result->start_ns,
		.length_ns = result->length_ns,
		.has_delay = known && mean->status != OW_VALUE_NONE && result->samples,
		.has_loss = known && result->loss_ratio.status != OW_VALUE_NONE && result->sent > result->pending,
		.mean_ns = mean->value,
		.stddev_ns = stddev->status == OW_VALUE_NONE ? 0 : stddev->value,
		.mean_error_ns = mean->status == OW_VALUE_ESTIMATED ? (mean->high - mean->low) / 3.92 : 0,
		.stddev_error_ns = stddev->status == OW_VALUE_ESTIMATED ? (stddev->high - stddev->low) / 3.92 : 0,
		.clock_error_ns = clocks ? (double)from + (double)to : (double)NAN,
		.samples = result->samples,
		.sent = result->sent - result->pending,
		.lost = result->lost,
		.active = result->active,
	};
}

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct job *job = arg;
	char place[OW_PLACE_TEXT];
	if (result->start_ns >= job->until_ns || result->start_ns <= job->judged_ns)
		return 0;
	if (ow_station_is_round_trip(result))
		return 0;
	job->results++;
	if (!ow_station_place(job->station, result, place)) {
		if (job->homeless++ == 0)
			memcpy(job->homeless_name, result->segment, sizeof(job->homeless_name));
		return 0;
	}
	if (job->waits == WAITING_MAX)
		return ow_error_set(job->err, E2BIG, "more than %u results at once: choose less with --since",
		                    WAITING_MAX);
	if (OW_GROW(job->waiting, job->room, job->waits + 1) < 0)
		return ow_error_set(job->err, ENOMEM, "out of memory");
	struct waiting *waiting = &job->waiting[job->waits];
	*waiting = (struct waiting){.place = strdup(place), .came_ns = ow_clock_steady_ns()};
	if (!waiting->place)
		return ow_error_set(job->err, ENOMEM, "out of memory");
	ow_plane_sample(result, &waiting->sample);
	job->waits++;
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

static int judge(struct job *job, int64_t now_ns)
{
	const struct ow_verdict *verdict;
	uint32_t count;
	char hops[512];
	int r = ow_monitor_judge(job->monitor, now_ns, &verdict, &count, job->err);
	if (r == 0)
		r = ow_monitor_locate(job->monitor, now_ns, hops, sizeof(hops), job->err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		job->broke |= verdict[i].state == OW_PATH_BROKEN;
		job->told_any |= verdict[i].state != OW_PATH_UNKNOWN;
		bool is_news = verdict[i].state != job->state[i] || verdict[i].findings > job->told[i];
		/* At first nothing is known of any path: that is no news. */
		bool silent = verdict[i].state == OW_PATH_UNKNOWN && job->judged_ns == INT64_MIN;
		if (!job->args->json && is_news && !silent)
			ow_plane_show_verdict(stdout, now_ns, &verdict[i], hops);
		job->state[i] = verdict[i].state;
		job->told[i] = verdict[i].findings;
	}
	if (job->args->json)
		ow_plane_json(stdout, now_ns, verdict, count, hops);
	fflush(stdout);
	job->judged_ns = now_ns;
	return 0;
}

/* Judges the intervals that are complete: all but the newest two, or, at the end, all. */
static int advance(struct job *job, bool all)
{
	size_t done = 0;
	int r = 0;
	if (!job->waits)
		return 0;
	qsort(job->waiting, job->waits, sizeof(*job->waiting), by_start);
	int64_t newest_ns = job->waiting[job->waits - 1].sample.start_ns, now_ns = ow_clock_steady_ns();
	while (r == 0 && done < job->waits) {
		const struct ow_watch_sample *first = &job->waiting[done].sample;
		int64_t start_ns = first->start_ns, came_ns = job->waiting[done].came_ns;
		if (!all && newest_ns - start_ns < 2 * first->length_ns && now_ns - came_ns < PATIENCE_NS)
			break;
		for (; r == 0 && done < job->waits && job->waiting[done].sample.start_ns == start_ns; done++) {
			r = ow_monitor_add(job->monitor, job->waiting[done].place, &job->waiting[done].sample,
			                   job->err);
			free(job->waiting[done].place);
		}
		if (r == 0)
			r = judge(job, start_ns);
	}
	job->waits -= done;
	memmove(job->waiting, job->waiting + done, job->waits * sizeof(*job->waiting));
	return r;
}

/* -- the network ------------------------------------------------------------------------------------------------------
 */

static int read_network(struct job *job)
{
	struct ow_topology *topology;
	bool *is_mrouter;
	char changes[400], time[OW_FORMAT];
	int r = ow_station_network(job->station, &topology, &is_mrouter, job->err);
	if (r < 0)
		return r;
	bool changed = !job->topology || ow_station_network_changes(job->topology, topology, changes, sizeof(changes));
	if (changed)
		r = ow_monitor_set_network(job->monitor, topology, is_mrouter, ow_clock_real_ns(), job->err);
	if (changed && job->topology && !job->args->json)
		printf("%s  the network has changed: %s\n", ow_format_local(ow_clock_real_ns(), "%H:%M:%S", time),
		       changes);
	ow_topology_free(job->topology);
	free(job->is_mrouter);
	job->topology = topology;
	job->is_mrouter = is_mrouter;
	return r;
}

/* In the long run: again and again. A network that cannot be read now stays as it was. */
static void refresh(struct job *job)
{
	struct ow_error err, *err_then = job->err;
	int64_t now_ns = ow_clock_steady_ns();
	if (now_ns - job->refreshed_ns < job->station->refresh_ns)
		return;
	job->refreshed_ns = now_ns;
	job->err = &err;
	if (read_network(job) < 0)
		ow_cli_say("oneway plane monitor: warning: %s; going on with the network as it was", err.text);
	job->err = err_then;
}

static int prepare(struct job *job)
{
	int r = ow_monitor_create(&job->station->options, &job->monitor);
	if (r < 0)
		return ow_error_set(job->err, ENOMEM, "out of memory");
	for (unsigned i = 0; r == 0 && i < job->station->targets; i++)
		r = ow_monitor_add_target(job->monitor, &job->station->target[i], job->err);
	job->state = calloc(job->station->targets, sizeof(*job->state));
	job->told = calloc(job->station->targets, sizeof(*job->told));
	if (r == 0 && (!job->state || !job->told))
		r = ow_error_set(job->err, ENOMEM, "out of memory");
	if (r == 0)
		r = read_network(job);
	job->refreshed_ns = ow_clock_steady_ns();
	return r;
}

static int watch(struct job *job)
{
	struct timespec pause = {.tv_nsec = POLL_MS * OW_NS_PER_MS};
	bool ended = false;
	int r = 0;
	while (r == 0 && !ended && !ow_interrupted) {
		r = ow_station_input_poll(job->input, on_result, job, &ended, job->err);
		if (r == 0)
			r = advance(job, ended);
		if (r == 0 && job->args->follow && !ended) {
			refresh(job);
			nanosleep(&pause, NULL);
		}
	}
	return r < 0 ? r : advance(job, true);
}

static int finish(struct job *job)
{
	const struct ow_verdict *verdict;
	uint32_t count;
	struct ow_monitor_count counts;
	if (job->homeless)
		ow_cli_say("oneway plane monitor: warning: %llu %s to no place, the first of segment %s; "
		           "'places' of "
		           "the station says where they belong",
		           (unsigned long long)job->homeless,
		           ow_plural(job->homeless, "result belongs", "results belong"), job->homeless_name);
	if (!job->results)
		return ow_error_set(job->err, ENODATA, "no results (final ones) in what was given");
	if (job->judged_ns == INT64_MIN)
		return ow_error_set(job->err, ENODATA, "none of the results belongs to a place of the station");
	int r = ow_monitor_judge(job->monitor, job->judged_ns, &verdict, &count, job->err);
	if (r < 0)
		return r;
	ow_monitor_count(job->monitor, job->judged_ns, &counts);
	if (!job->args->json && !job->args->quiet)
		ow_plane_show_table(stdout, verdict, count, &counts);
	return job->told_any ? 0
	                     : ow_error_set(job->err, ENODATA,
	                                    "no path could be judged at any time, the first because: %.300s",
	                                    verdict[0].cause);
}

static void job_done(struct job *job)
{
	for (size_t i = 0; i < job->waits; i++)
		free(job->waiting[i].place);
	free(job->waiting);
	free(job->state);
	free(job->told);
	free(job->is_mrouter);
	ow_topology_free(job->topology);
	ow_station_input_close(job->input);
	ow_monitor_free(job->monitor);
	ow_station_free(job->station);
}

static int run(struct job *job, char **operand, int operands)
{
	const struct arguments *args = job->args;
	int64_t now_ns = ow_clock_real_ns();
	int r = ow_station_read(operand[0], &job->station, job->err);
	if (r == 0 && args->since)
		r = ow_when_parse(args->since, now_ns, &job->since_ns, job->err);
	if (r == 0 && args->until)
		r = ow_when_parse(args->until, now_ns, &job->until_ns, job->err);
	if (r < 0)
		return r;
	if (args->why) {
		const char *comma = strchr(args->why, ',');
		if (!comma || !args->since)
			return ow_error_set(job->err, EINVAL, "--why needs two routers, A,B, and --since");
		char from[OW_TOPOLOGY_NAME_MAX + 1];
		snprintf(from, sizeof(from), "%.*s", (int)(comma - args->why), args->why);
		struct ow_plane_why why = {from, comma + 1, args->class_name, job->since_ns, job->until_ns};
		return ow_plane_why(job->station, operand + 1, operands - 1, &why, args->json, job->err);
	}
	r = prepare(job);
	if (r == 0)
		r = ow_station_input_open(operand + 1, operands - 1, args->follow, job->since_ns, &job->input,
		                          job->err);
	if (r == 0)
		r = watch(job);
	return r < 0 ? r : finish(job);
}

int ow_cli_plane_monitor(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	struct job job = {.args = &args, .since_ns = 0, .until_ns = INT64_MAX, .judged_ns = INT64_MIN, .err = &err};
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands < 0)
		return ow_cli_refused("plane monitor", operands, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands < 2) {
		ow_error_set(&err, EINVAL, "STATION and at least one of RESULTS are needed");
		return ow_cli_misused("plane monitor", &err);
	}
	ow_interrupt_catch();
	int r = run(&job, argv + 1, operands);
	bool broke = job.broke;
	job_done(&job);
	if (r < 0)
		return ow_cli_failed("plane monitor", &err);
	return broke ? OW_EXIT_CROSSED : OW_EXIT_OK;
}
