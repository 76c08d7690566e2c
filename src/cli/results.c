/* SPDX-License-Identifier: Apache-2.0 */
/* oneway results STORE: lists, summarises and plots stored results of a point. */
#include "base/time.h"
#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "fleet/seconds.h"
#include "report/interval_render.h"
#include "result/result_json.h"
#include "store/postgres.h"
#include "store/stored.h"
#include "store/stored_copy.h"
#include "store/stored_sum.h"
#include "base/format.h"

#include <errno.h>
#include <inttypes.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Lines of text, if no number was given. */
#define LINES_DEFAULT 50
/* Bins of a plot: as many as it has pixels. */
#define BINS 600

struct arguments {
	const char *store;
	struct ow_stored_filter filter;
	const char *since, *until, *csv, *plot, *copy_to, *fleet;
	uint64_t limit, worst;
	enum ow_stored_by by;
	enum ow_stored_group group;
	int period; /* -1: not given; ANY: whatever gives the sum */
	bool summary, events, worst_by, group_by, json, no_color, help, version;
	double max_loss;    /* above 1: no threshold was given */
	int64_t max_p99_ns; /* INT64_MAX: no threshold was given */
};

static int set_status(void *field, const char *value, struct ow_error *err)
{
	size_t i = 0;
	int r = ow_option_choice(ow_result_status_name, 3, value, &i, err);
	if (r == 0)
		*(unsigned *)field |= 1u << i;
	return r;
}

#define ANY OW_PERIODS

static int set_period(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"interval", "minute", "hour", "day", "any"};
	size_t i = 0;
	int r = ow_option_choice(names, ANY + 1, value, &i, err);
	if (r == 0)
		*(int *)field = (int)i;
	return r;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Which results (default: all):"},
	{"segment", 0, "S", ow_option_text, FIELD(filter.segment), "Results of this segment."},
	{"class", 0, "C", ow_option_text, FIELD(filter.class_name), "Results of this class."},
	{"from", 0, "P", ow_option_text, FIELD(filter.from), "Results of packets sent by this point."},
	{"to", 0, "P", ow_option_text, FIELD(filter.to), "Results of packets received by this point."},
	{"since", 0, "T", ow_option_text, FIELD(since),
         "Intervals that began at T or later: '2026-11-15 10:02', 10:02 (the last time in the past), -2h, now, or "
         "seconds since 1970. Local time, or UTC with a final Z."},
	{"until", 0, "T", ow_option_text, FIELD(until), "Intervals that began before T."},
	{"status", 0, "STATUS", set_status, FIELD(filter.statuses),
         "measured, partial or unknown; may be given several times."},
	{"period", 0, "P", set_period, FIELD(period),
         "interval, minute, hour or day: results as they were measured, or added up (default: the shortest that still "
         "has all of the time; for sums and plots of more than 2 days minutes, of more than 60 days hours; of a "
         "server, minutes). any, for --summary: from all of them, so that each interval counts once."},
	{"fleet", 0, "DIR", ow_option_text, FIELD(fleet),
         "With --since: results of intervals that the server does not have are fetched from the points of this fleet, "
         "whose folder is DIR. What a point does not give is listed as missing."},
	{"final", 0, NULL, ow_option_flag, FIELD(filter.final),
         "Only final results, which late packets can no longer change."},

	{NULL, 0, NULL, NULL, 0, "What to print (default: a line for each result):"},
	{"limit", 0, "N", ow_option_count, FIELD(limit),
         "Only the newest N (default: 50 for text without --since and --until, else all)."},
	{"worst", 0, "N", ow_option_count, FIELD(worst),
         "The worst N, worst first; followed by 'by loss' (default), 'by p99' or 'by mean'."},
	{"summary", 0, NULL, ow_option_flag, FIELD(summary),
         "Sums for each lane; may be followed by 'by hour', 'by day' or 'by segment'."},

	{"events", 0, NULL, ow_option_flag, FIELD(events),
         "A line for each event of flows: they no longer pass the other point, pass it again, were rerouted, or look "
         "sprayed by load sharing."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a line of JSON for each result or event."},
	{"csv", 0, "FILE", ow_option_output, FIELD(csv),
         "Write all columns of the store as CSV; - is standard output."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Plot delay, loss and status over time, as .svg or .png (needs gnuplot)."},
	{"copy-to", 0, "URL", ow_option_text, FIELD(copy_to),
         "Copy results, minutes, hours, days and events to a PostgreSQL server: postgresql://... . May be repeated."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Thresholds, for each lane (exit code 3 if crossed):"},
	{"max-loss", 0, "P", ow_option_share, FIELD(max_loss),
         "Highest acceptable loss of all intervals together: 0.01 or 1%."},
	{"max-delay-p99", 0, "D", ow_option_duration, FIELD(max_p99_ns),
         "Highest acceptable 99th percentile of the delay of any interval."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway results STORE [OPTION]...\n"
	      "\n"
	      "Shows what a point has stored (store: in its configuration, or oneway live\n"
	      "--store), or a fleet at a PostgreSQL server (postgresql://...): lists, worst\n"
	      "intervals, sums, plots. The point may be running.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway results results.db\n"
	      "  oneway results results.db --since 10:02 --until 10:05 --segment london-paris\n"
	      "  oneway results results.db --since -24h --summary\n"
	      "  oneway results results.db --since -7d --summary by day --class voice\n"
	      "  oneway results results.db --since -24h --worst 10 by p99\n"
	      "  oneway results results.db --since -24h --status unknown --status partial\n"
	      "  oneway results results.db --since -24h --events\n"
	      "  oneway results results.db --since -24h --plot day.svg\n"
	      "  oneway results results.db --since -365d --summary --plot year.svg\n"
	      "  oneway results postgresql://reader@db/oneway --since -7d --period hour\n"
	      "  oneway results postgresql:///oneway --fleet /etc/oneway/fleet --since -5min\n"
	      "  oneway results results.db --since -1h --max-loss 0.1% --summary || echo bad\n",
	      stdout);
}

/* -- what was asked for ------------------------------------------------------------------------------------------- */

/* "by loss" belongs to --worst, "by hour" to --summary. */
static int read_by(const char *word, struct arguments *args, struct ow_error *err)
{
	static const char *const names[] = {"loss", "p99", "mean", "hour", "day", "segment"};
	static const enum ow_stored_group groups[] = {OW_STORED_HOUR, OW_STORED_DAY, OW_STORED_SEGMENT};
	size_t i = 0;
	if (!word)
		return ow_error_set(err, EINVAL,
		                    "'by' needs loss, p99 or mean (--worst), hour, day or segment "
		                    "(--summary)");
	struct ow_error why;
	if (ow_option_choice(names, 6, word, &i, &why) < 0)
		return ow_error_set(err, EINVAL, "by: %.400s", why.text);
	if (i < 3) {
		args->by = (enum ow_stored_by)i;
		args->worst_by = true;
	} else {
		args->group = groups[i - 3];
		args->group_by = true;
	}
	return 0;
}

static int read_operands(int count, char **operand, struct arguments *args, struct ow_error *err)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(operand[i], "by") == 0) {
			int r = read_by(i + 1 < count ? operand[i + 1] : NULL, args, err);
			if (r < 0)
				return r;
			i++;
		} else if (args->store) {
			return ow_error_set(err, EINVAL, "unexpected '%.60s'", operand[i]);
		} else {
			args->store = operand[i];
		}
	}
	return args->store ? 0
	                   : ow_error_set(err, EINVAL,
	                                  "a store is required: the SQLite file of a point, or postgresql://...");
}

static int read_times(struct arguments *args, struct ow_error *err)
{
	int r = ow_options_times(args->since, args->until, &args->filter.since_ns, &args->filter.until_ns, err);
	if (r < 0)
		return r;
	return args->filter.since_ns < args->filter.until_ns
	               ? 0
	               : ow_error_set(err, EINVAL, "--since %.60s is not before --until %.60s",
	                              args->since ? args->since : "the beginning", args->until ? args->until : "now");
}

static int check_arguments(const struct arguments *args, struct ow_error *err)
{
	bool stdout_csv = args->csv && strcmp(args->csv, "-") == 0;
	if (args->worst && args->summary)
		return ow_error_set(err, EINVAL, "--worst and --summary exclude each other");
	if (args->events &&
	    (args->worst || args->summary || args->filter.statuses || args->filter.final || args->period >= 0))
		return ow_error_set(err, EINVAL, "--events and --%s exclude each other",
		                    args->worst             ? "worst"
		                    : args->summary         ? "summary"
		                    : args->filter.statuses ? "status"
		                    : args->filter.final    ? "final"
		                                            : "period");
	if (args->period == ANY && (!args->summary || args->csv || args->plot || args->filter.statuses ||
	                            args->filter.final || args->max_loss <= 1 || args->max_p99_ns != INT64_MAX))
		return ow_error_set(err, EINVAL, "--period any is for --summary alone");
	if ((args->worst_by && !args->worst) || (args->group_by && !args->summary))
		return ow_error_set(err, EINVAL, "'by' without %s", args->worst_by ? "--worst" : "--summary");
	if (args->limit && (args->worst || args->summary))
		return ow_error_set(err, EINVAL, "--limit is for lists, not for --%s",
		                    args->worst ? "worst" : "summary");
	if (stdout_csv && (args->json || args->summary || args->worst || args->events))
		return ow_error_set(err, EINVAL, "--csv - and --%s cannot both use standard output",
		                    args->json      ? "json"
		                    : args->summary ? "summary"
		                    : args->events  ? "events"
		                                    : "worst");
	if (args->copy_to && (args->json || args->summary || args->worst || args->events || args->csv || args->plot))
		return ow_error_set(err, EINVAL, "--copy-to copies, and prints or writes nothing else");
	if (args->copy_to && !ow_postgres_is_url(args->copy_to))
		return ow_error_set(err, EINVAL, "--copy-to needs the URL of a server: postgresql://...");
	if (args->fleet && !ow_postgres_is_url(args->store))
		return ow_error_set(err, EINVAL, "--fleet is for a server of a fleet: postgresql://...");
	if (args->fleet && (!args->since || args->period > OW_PERIOD_INTERVAL || args->events || args->copy_to))
		return ow_error_set(err, EINVAL, "--fleet is for results of intervals, and needs --since");
	const char *outputs[] = {args->csv, args->plot};
	for (int i = 0; i < 2; i++) {
		if (outputs[i] && ow_same_file(outputs[i], args->store))
			return ow_error_set(err, EINVAL, "--%s would overwrite the store", i ? "plot" : "csv");
	}
	return 0;
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	*args = (struct arguments){.filter = {.since_ns = INT64_MIN, .until_ns = INT64_MAX},
	                           .period = -1,
	                           .max_loss = 2,
	                           .max_p99_ns = INT64_MAX,
	                           .group = OW_STORED_LANE};
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	int r = read_operands(operands, argv + 1, args, err);
	if (r == 0)
		r = read_times(args, err);
	if (r == 0)
		r = check_arguments(args, err);
	if (r == 0 && args->fleet)
		args->period = OW_PERIOD_INTERVAL;
	return r;
}

/* -- output ------------------------------------------------------------------------------------------------------- */

struct list {
	struct ow_render_text text;
	bool json;
	uint64_t count;
};

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct list *list = arg;
	list->count++;
	if (list->json)
		ow_result_json(stdout, result);
	else
		ow_render_text(&list->text, result);
	/* A reader that closed its end of the pipe does not want the rest. */
	return ferror(stdout) ? -EPIPE : 0;
}

/* If no result matches, prints when there are results. */
static int nothing(struct ow_stored *stored, struct ow_error *err)
{
	int64_t first, last;
	char from[OW_FORMAT], to[OW_FORMAT], zone[OW_FORMAT];
	int r = ow_stored_span(stored, &first, &last, err);
	if (r < 0)
		return r;
	ow_format_local(first, "%Y-%m-%d %T", from);
	ow_format_local(last, "%Y-%m-%d %T", to);
	return ow_error_set(err, ENODATA, "%.200s: no results match; there are results from %s to %s %s",
	                    ow_stored_where(stored), from, to, ow_format_local(last, "%Z", zone));
}

static unsigned width(void)
{
	return isatty(STDOUT_FILENO) ? (unsigned)ow_terminal_width(stdout) : 0;
}

static int put_list(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct list list = {.text = {.out = stdout,
	                             .width = width(),
	                             .colour = !args->no_color && ow_terminal_colour(stdout),
	                             .local = true},
	                    .json = args->json};
	uint64_t limit = args->limit;
	if (!limit && !args->json && !args->since && !args->until)
		limit = LINES_DEFAULT;
	int r = args->worst ? ow_stored_worst(stored, args->by, args->worst, on_result, &list, err)
	                    : ow_stored_list(stored, limit, on_result, &list, err);
	if (r == -EPIPE)
		return 0; /* main reports why */
	if (r == 0 && !list.count)
		r = nothing(stored, err);
	if (r == 0 && !args->limit && limit && list.count == limit)
		fprintf(stderr, "the newest %" PRIu64 " (more: --limit N, --since T)\n", limit);
	return r;
}

static int on_event(void *arg, const struct ow_flow_event *event)
{
	struct list *list = arg;
	list->count++;
	if (list->json)
		ow_flow_event_json(stdout, event);
	else
		ow_render_stored_event(stdout, list->text.width, event);
	return ferror(stdout) ? -EPIPE : 0;
}

/* That there are none is good news, not an error. */
static int put_events(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct list list = {.text = {.width = width()}, .json = args->json};
	int r = ow_stored_events(stored, args->limit, on_event, &list, err);
	if (r == 0 && !list.count)
		fputs("no events\n", stderr);
	return r == -EPIPE ? 0 : r;
}

/* The longest that can be divided: hours and days of groups are local. */
static enum ow_period longest(const struct arguments *args)
{
	time_t now = time(NULL);
	struct tm tm = {0};
	if (!args->summary || args->group < OW_STORED_HOUR)
		return OW_PERIOD_DAY;
	localtime_r(&now, &tm);
	return tm.tm_gmtoff % 3600 ? OW_PERIOD_MINUTE : OW_PERIOD_HOUR;
}

/* Hours and days that are stored are those of UTC. */
static void note_parts(const struct ow_stored *stored, const struct arguments *args)
{
	enum ow_period period = ow_stored_period(stored);
	time_t now = time(NULL);
	struct tm tm = {0};
	tzset();
	localtime_r(&now, &tm);
	bool whole = args->group == OW_STORED_DAY && period == OW_PERIOD_DAY && tm.tm_gmtoff == 0 && !daylight;
	if (args->period != ANY && period > longest(args) && !whole)
		fprintf(stderr,
		        "%s of UTC are not parts of local %ss: each counts where it begins (--period any, or TZ=UTC)\n",
		        ow_stored_period_name[period], args->group == OW_STORED_DAY ? "day" : "hour");
}

static int put_summary(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_stored_sum_options o = {.group = args->group, .p99_limit_ns = args->max_p99_ns};
	struct ow_stored_show show = {stdout, width(), !args->no_color && ow_terminal_colour(stdout)};
	struct ow_stored_sums sums;
	note_parts(stored, args);
	int r = args->period == ANY ? ow_stored_summarise_any(stored, &o, longest(args), &sums, err)
	                            : ow_stored_summarise(stored, &o, &sums, err);
	if (r < 0)
		return r;
	if (!sums.intervals)
		r = nothing(stored, err);
	else if (args->json)
		ow_stored_json(stdout, stored, &sums, args->group);
	else
		ow_stored_show(&show, stored, &sums, args->group);
	ow_stored_sums_done(&sums);
	return r;
}

static int put_csv(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_output output;
	uint64_t rows = 0;
	int r = ow_output_open(&output, args->csv, err);
	if (r < 0)
		return r;
	r = ow_stored_csv(stored, args->limit, output.stream, &rows, err);
	if (r == 0 && !rows)
		r = nothing(stored, err);
	if (r == 0)
		return ow_output_close(&output, err);
	ow_output_abort(&output);
	return r;
}

static int copy_to_server(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_stored_copied copied;
	int r = ow_stored_copy(stored, args->copy_to, &copied, err);
	if (r < 0)
		return r;
	printf("copied %" PRIu64 " results, minutes, hours and days, and %" PRIu64 " events; %" PRIu64
	       " were there already\n",
	       copied.results, copied.events, copied.there);
	return copied.refused ? ow_error_set(err, EINVAL, "%" PRIu64 " could not be copied: %.300s", copied.refused,
	                                     copied.why.text)
	                      : 0;
}

/* The newest interval: its length stands for all. */
static int note_last(void *arg, const struct ow_interval_result *result)
{
	*(struct ow_interval_result *)arg = *result;
	return 0;
}

static int put_plot(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_interval_result newest = {.length_ns = 0};
	int64_t first, last;
	int r = ow_stored_span(stored, &first, &last, err);
	if (r == 0)
		r = ow_stored_list(stored, 1, note_last, &newest, err);
	if (r < 0)
		return r;
	if (newest.length_ns <= 0)
		return nothing(stored, err);
	first = args->filter.since_ns > first ? args->filter.since_ns : first;
	int64_t wanted = (newest.start_ns - first) / BINS / newest.length_ns;
	struct ow_stored_sum_options o = {.group = OW_STORED_BIN,
	                                  .p99_limit_ns = INT64_MAX,
	                                  .bin_ns = (wanted > 0 ? wanted + 1 : 1) * newest.length_ns};
	struct ow_stored_sums sums;
	r = ow_stored_summarise(stored, &o, &sums, err);
	if (r < 0)
		return r;
	r = ow_stored_plot(args->plot, stored, &sums, err);
	ow_stored_sums_done(&sums);
	return r;
}

/* -- periods ------------------------------------------------------------------------------------------------------ */

#define DAY_NS (24 * 3600 * OW_NS_PER_S)

/* Sums of more than this are made of minutes, hours, days: that is fast, and exact. */
static const int64_t longest_ns[] = {2 * DAY_NS, 60 * DAY_NS, 5 * 365 * DAY_NS};

/* The shortest for sums of the selected time. */
static int shortest_for_sums(struct ow_stored *stored, const struct arguments *args, enum ow_period *ret_least,
                             struct ow_error *err)
{
	int64_t first, last;
	int r = ow_stored_span(stored, &first, &last, err);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	first = args->filter.since_ns > first ? args->filter.since_ns : first;
	last = args->filter.until_ns < last ? args->filter.until_ns : last;
	while (*ret_least < longest(args) && (double)last - (double)first > (double)longest_ns[*ret_least])
		(*ret_least)++;
	return 0;
}

/* Chooses the period, unless it was given, and tells which it is. */
static int choose_period(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	enum ow_period least = ow_stored_period(stored);
	bool sums = args->summary || args->plot || args->max_loss <= 1 || args->max_p99_ns != INT64_MAX;
	bool newest = !sums && !args->worst && !args->since && !args->until;
	if (args->period >= 0 || args->copy_to || args->events || args->filter.statuses || args->filter.final || newest)
		return 0;
	int r = ow_stored_choose_period(stored, least, err);
	if (r == 0 && sums)
		r = shortest_for_sums(stored, args, &least, err);
	if (r == 0 && least > ow_stored_period(stored))
		r = ow_stored_choose_period(stored, least, err);
	if (r == 0 && ow_stored_period(stored) != OW_PERIOD_INTERVAL)
		fprintf(stderr, "by %s (others: --period)\n", ow_stored_period_name[ow_stored_period(stored)]);
	return r;
}

/* -- thresholds --------------------------------------------------------------------------------------------------- */

static bool crossed_loss(const char *lane, const struct ow_stored_sum *sum, double limit)
{
	double loss = ow_stored_sum_loss(sum);
	struct ow_interval_result n = {.length_ns = 0};
	ow_stored_sum_counts(sum, &n);
	if (limit > 1 || loss <= limit)
		return false;
	if (loss > limit)
		ow_cli_say("oneway results: %s: loss of %.4g %% is above --max-loss %.4g %%", lane, 100 * loss,
		           100 * limit);
	else /* An unknown loss also crosses the threshold: a script that checks it must not continue. */
		ow_cli_say("oneway results: %s: %s to compare with --max-loss %.4g %%", lane,
		           n.matched ? "the loss of one of several peers is not known (--to selects all): nothing"
		                     : "no packet",
		           100 * limit);
	return true;
}

static bool crossed_p99(const char *lane, const struct ow_stored_sum *sum, int64_t limit_ns, const char *rows)
{
	char p99[OW_DURATION_TEXT], limit[OW_DURATION_TEXT], at[OW_FORMAT];
	if (limit_ns == INT64_MAX || (sum->p99_ns.count && !sum->above_p99))
		return false;
	ow_duration_text((double)limit_ns, limit);
	if (sum->p99_ns.count) {
		ow_duration_text(sum->p99_ns.high, p99);
		ow_cli_say("oneway results: %s: p99 delay of %" PRIu64 " of %" PRIu64
		           " %s is above --max-delay-p99 %s, worst %s at %s",
		           lane, sum->above_p99, sum->p99_ns.count, rows, limit, p99,
		           ow_format_local(sum->p99_ns.high_ns, "%Y-%m-%d %T", at));
	} else {
		ow_cli_say("oneway results: %s: no delay to compare with --max-delay-p99 %s", lane, limit);
	}
	return true;
}

/* Returns the exit code, or a negative errno. */
static int check_thresholds(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_stored_sum_options o = {.group = OW_STORED_LANE, .p99_limit_ns = args->max_p99_ns};
	struct ow_stored_sums sums;
	size_t lanes;
	const struct ow_stored_lane *lane = ow_stored_lanes(stored, &lanes);
	if (args->max_loss > 1 && args->max_p99_ns == INT64_MAX)
		return OW_EXIT_OK;
	int r = ow_stored_summarise(stored, &o, &sums, err);
	if (r < 0)
		return r;
	bool crossed = false;
	for (size_t i = 0; i < sums.count; i++) {
		const struct ow_stored_lane *l = &lane[sums.sum[i].lane];
		char name[4 * OW_RESULT_NAME], clean[4 * OW_RESULT_NAME];
		snprintf(name, sizeof name, "%s/%s %s>%s", l->segment, l->class_name, l->from, l->to);
		ow_format_clean(name, false, clean, sizeof clean);
		crossed |= crossed_loss(clean, &sums.sum[i], args->max_loss);
		crossed |= crossed_p99(clean, &sums.sum[i], args->max_p99_ns,
		                       ow_stored_period_name[ow_stored_period(stored)]);
	}
	ow_stored_sums_done(&sums);
	return crossed ? OW_EXIT_CROSSED : OW_EXIT_OK;
}

/* -- results that are still at the points ------------------------------------------------------------------------- */

#define FETCH_MS 8000

static void say_missing(const struct ow_stored *stored, const struct ow_seconds_missing *m)
{
	size_t lanes;
	const struct ow_stored_lane *l = &ow_stored_lanes(stored, &lanes)[m->lane];
	char name[4 * OW_RESULT_NAME], clean[4 * OW_RESULT_NAME], since[OW_FORMAT], until[OW_FORMAT];
	snprintf(name, sizeof name, "%s/%s %s>%s", l->segment, l->class_name, l->from, l->to);
	ow_format_clean(name, false, clean, sizeof clean);
	ow_cli_say("oneway results: missing: %s, %s to %s: %s", clean,
	           ow_format_local(m->since_ns, "%Y-%m-%d %T", since), ow_format_local(m->until_ns, "%T", until),
	           m->why);
}

static int fetch(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_seconds seconds;
	if (!args->fleet)
		return 0;
	int r = ow_seconds_fetch(args->fleet, stored, args->filter.since_ns, args->filter.until_ns, FETCH_MS, &seconds,
	                         err);
	for (size_t i = 0; r == 0 && i < seconds.count; i++)
		say_missing(stored, &seconds.missing[i]);
	ow_seconds_done(&seconds);
	return r;
}

/* -- the command -------------------------------------------------------------------------------------------------- */

static int put_all(struct ow_stored *stored, const struct arguments *args, struct ow_error *err)
{
	struct ow_error caveat;
	struct ow_stored_filter filter = args->filter;
	filter.period =
		args->period < 0 || args->period == ANY ? ow_stored_finest(stored) : (enum ow_period)args->period;
	int r = ow_stored_choose(stored, &filter, err);
	if (r < 0)
		return r;
	if ((r = choose_period(stored, args, err)) < 0 || (r = fetch(stored, args, err)) < 0)
		return r;
	if (ow_stored_caveat(stored, &caveat))
		ow_cli_say("oneway results: %s", caveat.text);
	if (args->copy_to)
		return copy_to_server(stored, args, err);
	if (args->csv)
		r = put_csv(stored, args, err);
	if (r == 0 && args->plot)
		r = put_plot(stored, args, err);
	if (r == 0 && args->summary)
		r = put_summary(stored, args, err);
	else if (r == 0 && args->events)
		r = put_events(stored, args, err);
	/* With an output file and no other option, no lines are printed. */
	else if (r == 0 && (args->worst || args->json || (!args->csv && !args->plot)))
		r = put_list(stored, args, err);
	return r < 0 ? r : check_thresholds(stored, args, err);
}

int ow_cli_results(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	struct ow_stored *stored = NULL;
	tzset();
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("results", refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	int r = ow_stored_open(args.store, &stored, &err);
	if (r == 0)
		r = put_all(stored, &args, &err);
	ow_stored_close(stored);
	return r < 0 ? ow_cli_failed("results", &err) : r;
}
