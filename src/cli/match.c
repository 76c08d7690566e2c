/* SPDX-License-Identifier: Apache-2.0 */
/* oneway match A B: runs the library's matcher and writes what was asked for. */
#include "base/array.h"
#include "cli/cli.h"
#include "match/annotate.h"
#include "match/extract.h"
#include "cli/interrupt.h"
#include "cli/match_arguments.h"
#include "cli/measure_hops.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"

#include "base/side.h"
#include "base/time.h"
#include "estimate/class_tally.h"
#include "report/match_classes.h"
#include "report/match_flows.h"
#include "report/match_packets.h"
#include "report/match_page.h"
#include "report/plot.h"
#include "report/report.h"
#include "path/flow_hops.h"
#include "path/path.h"
#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/random.h>

/* Rows of a table of flows, if no number was given. */
#define TOP_DEFAULT 10

/* Collects packets for the outputs while they are matched. */
struct collector {
	struct ow_output csv, path_csv;      /* one of them */
	struct ow_record_file *notes, *hops; /* of --annotate; hops: of a path */
	struct ow_plot *plot;
	struct ow_flow_tally *tally;
	struct ow_class_tally *classes;
	struct ow_match_packets packets; /* flow is not NULL if they are wanted */
	struct ow_last_seen *seen;       /* of these, on a path */
	size_t seens, seen_room;
	struct ow_flow_hops *flow_hops; /* of a path */
	struct ow_match_flows flows;
	bool lost_wanted, extra_wanted;
	int64_t from_ns;  /* offsets in the CSV are from this time on, .. */
	bool csv_started; /* .. if a row was written */
	struct ow_records lost[OW_SIDES], extra[OW_SIDES];
	struct ow_progress progress;
	struct ow_error err; /* why on_packet stopped the run, if it did */
	struct ow_error path_err;
};

/* Lost packets are records of the sending side, extra ones of the receiving side. */
static int note_record(struct collector *c, const struct ow_packet_event *event)
{
	enum ow_side sender = ow_sender_of(event->direction), receiver = !sender;
	if (event->fate == OW_FATE_LOST && c->lost_wanted)
		return ow_records_add(&c->lost[sender], event->number[sender]);
	if ((event->fate == OW_FATE_EXTRA || event->fate == OW_FATE_DUPLICATED) && c->extra_wanted)
		return ow_records_add(&c->extra[receiver], event->number[receiver]);
	return 0;
}

static int on_packet(void *arg, const struct ow_packet_event *event)
{
	struct collector *c = arg;
	if (ow_interrupted)
		return ow_error_set(&c->err, EINTR, "interrupted");
	if (c->csv.stream) {
		if (!c->csv_started)
			c->from_ns = event->time_ns[event->number[OW_SIDE_A] ? OW_SIDE_A : OW_SIDE_B];
		c->csv_started = true;
		ow_report_csv_packet(c->csv.stream, event, c->from_ns);
		int r = ow_output_check(&c->csv, &c->err);
		if (r < 0)
			return r;
	}
	int r = note_record(c, event);
	if (r == 0 && c->notes && (r = ow_packet_note_add(c->notes, OW_SIDE_A, event, &c->err)) < 0)
		return r;
	if (r == 0 && c->plot)
		r = ow_plot_add(c->plot, event);
	if (r == 0 && c->tally)
		r = ow_flow_tally_add(c->tally, event);
	if (r == 0 && c->classes)
		r = ow_class_tally_add(c->classes, event);
	if (r == 0 && c->packets.flow)
		r = ow_match_packets_add(&c->packets, event);
	return r < 0 ? ow_error_set(&c->err, -r, "collecting packets: %s", strerror(-r)) : 0;
}

static int note_last_seen(struct collector *c, const struct ow_path_packet *packet)
{
	const struct ow_path_report *path = packet->path;
	int last = ow_path_last_seen(packet);
	if (last < 0 || packet->ambiguous || c->seens == OW_MATCH_PACKETS_MAX)
		return 0;
	if (OW_GROW(c->seen, c->seen_room, c->seens + 1) < 0)
		return -ENOMEM;
	unsigned end = path->points - 1;
	c->seen[c->seens++] = (struct ow_last_seen){
		.number = {packet->seen & 1 ? packet->number[0] : 0, packet->seen >> end & 1 ? packet->number[end] : 0},
		.point = path->point[last].name};
	return 0;
}

/* Rows and hops of a path. Runs beside on_packet. */
static int on_path_packet(void *arg, const struct ow_path_packet *packet)
{
	struct collector *c = arg;
	if (ow_interrupted)
		return ow_error_set(&c->path_err, EINTR, "interrupted");
	if (c->plot && ow_plot_add_path(c->plot, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--plot: not enough memory");
	if (c->hops && (packet->seen & 1) && !packet->ambiguous) {
		const struct ow_hop_note hop = {.seen = packet->seen, .direction = (uint8_t)packet->direction};
		int r = ow_hop_note_add(c->hops, packet->number[0], &hop, packet->time_ns, packet->path->points,
		                        &c->path_err);
		if (r < 0)
			return r;
	}
	if (c->flow_hops && ow_flow_hops_add(c->flow_hops, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--flows: not enough memory");
	if (c->packets.flow && note_last_seen(c, packet) < 0)
		return ow_error_set(&c->path_err, ENOMEM, "--flow: not enough memory");
	if (!c->path_csv.stream)
		return 0;
	if (!c->csv_started) {
		ow_report_csv_path_header(c->path_csv.stream, packet->path);
		c->from_ns = packet->time_ns[__builtin_ctz(packet->seen)];
	}
	c->csv_started = true;
	ow_report_csv_path_packet(c->path_csv.stream, packet->path, packet, c->from_ns);
	return ow_output_check(&c->path_csv, &c->path_err);
}

static void on_progress(void *arg, double done)
{
	struct collector *c = arg;
	ow_progress_show(&c->progress, done);
}

/* Notes about packets are in the folder of the file that they are for. */
static int start_notes(struct collector *c, const char *path, unsigned points, struct ow_error *err)
{
	char *copy = strdup(path);
	struct ow_error why;
	const char *folder = copy ? dirname(copy) : NULL;
	int r = folder ? ow_record_file_create(folder, sizeof(struct ow_packet_note), &c->notes, &why)
	               : ow_error_set(&why, ENOMEM, "not enough memory");
	if (r == 0 && points > OW_SIDES)
		r = ow_record_file_create(folder, ow_hop_note_size(points), &c->hops, &why);
	free(copy);
	return r < 0 ? ow_error_set(err, -r, "--annotate: %s", why.text) : 0;
}

static int start_collecting(struct collector *c, struct ow_match_arguments *args, struct ow_error *err)
{
	ow_progress_init(&c->progress, "matching");
	args->match.arg = c;
	args->match.on_progress = on_progress;
	c->lost_wanted = args->lost != NULL;
	c->extra_wanted = args->extra != NULL;
	c->packets.flow = args->flow;
	bool flows = args->flows || args->flows_csv || args->report, plot = args->plot || args->report;
	args->match.percentile = args->percentiles.percent;
	args->match.percentiles = args->percentiles.count;
	args->match.class_filter = args->classes.filter;
	args->match.classes = args->classes.count;
	args->match.class_by = args->classes.by;
	bool classes = args->classes.count || args->classes.by;
	if (!args->csv && !args->lost && !args->extra && !args->annotate && !plot && !flows && !classes && !args->flow)
		return 0;
	args->match.on_packet = on_packet;
	ow_interrupt_catch();
	if (plot && ow_plot_create(args->points.count > OW_SIDES ? args->points.count - 1 : 0, &c->plot) < 0)
		return ow_error_set(err, ENOMEM, "--plot: not enough memory");
	if (flows && !args->match.seed &&
	    getrandom(&args->match.seed, sizeof args->match.seed, 0) != (ssize_t)sizeof args->match.seed)
		return ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	if (flows && ow_flow_tally_create(&args->key, args->match.seed, &c->tally) < 0)
		return ow_error_set(err, ENOMEM, "--flows: not enough memory");
	if (classes && ow_class_tally_create(args->classes.by, &c->classes) < 0)
		return ow_error_set(err, ENOMEM, "--class: not enough memory");
	int r = args->annotate ? start_notes(c, args->annotate, args->points.count, err) : 0;
	if (!args->csv || r < 0)
		return r;
	if (args->points.count > OW_SIDES)
		return ow_output_open(&c->path_csv, args->csv, err);
	r = ow_output_open(&c->csv, args->csv, err);
	if (r == 0)
		ow_report_csv_header(c->csv.stream);
	return r;
}

static void stop_collecting(struct collector *c)
{
	ow_output_abort(&c->csv);
	ow_output_abort(&c->path_csv);
	ow_record_file_free(c->notes);
	ow_record_file_free(c->hops);
	ow_plot_free(c->plot);
	ow_flow_tally_free(c->tally);
	ow_class_tally_free(c->classes);
	ow_match_packets_done(&c->packets);
	ow_match_flows_done(&c->flows);
	ow_flow_hops_free(c->flow_hops);
	free(c->seen);
	for (int side = 0; side < OW_SIDES; side++) {
		ow_records_done(&c->lost[side]);
		ow_records_done(&c->extra[side]);
	}
}

static int write_flows(const struct collector *c, const char *path, struct ow_error *err)
{
	struct ow_output csv = {0};
	int r = ow_output_open(&csv, path, err);
	if (r < 0)
		return r;
	ow_report_match_flows_csv(csv.stream, &c->flows);
	return ow_output_close(&csv, err);
}

static struct ow_match_page page_of(const struct collector *c, const struct ow_match_arguments *args,
                                    const struct ow_match_report *report, const struct ow_path_report *path)
{
	return (struct ow_match_page){.report = report,
	                              .name = args->points.given,
	                              .path = path,
	                              .classes = args->classes.count ? &args->classes : NULL,
	                              .packets = args->flow ? &c->packets : NULL,
	                              .flows = args->flows ? &c->flows : NULL,
	                              .top = args->top ? args->top : TOP_DEFAULT,
	                              .least = args->least,
	                              .plot = c->plot};
}

/* It has tables of flows, whether or not the text has them. */
static int write_page(const struct collector *c, const char *path, struct ow_match_page page, struct ow_error *err)
{
	struct ow_output html = {0};
	struct ow_error why;
	int r = ow_output_open(&html, path, err);
	if (r < 0)
		return r;
	page.flows = &c->flows;
	r = ow_match_page_html(html.stream, &page, &why);
	if (r == 0)
		return ow_output_close(&html, err);
	ow_output_abort(&html);
	return ow_error_set(err, -r, "%s: %s", path, why.text);
}

/* The first point of a path, or A. */
static int write_annotated(const struct collector *c, const struct ow_match_arguments *args,
                           const struct ow_match_report *report, const struct ow_path_report *path,
                           struct ow_error *err)
{
	struct ow_annotation annotation = {
		.packets = c->notes, .window_ns = report->window_ns, .interrupted = &ow_interrupted, .hops = c->hops};
	_Static_assert(OW_ANNOTATE_POINTS >= OW_PATH_POINTS, "a path has more points");
	for (; path && annotation.points < path->points; annotation.points++)
		annotation.name[annotation.points] = path->point[annotation.points].name;
	return ow_annotate(args->path[OW_SIDE_A], args->annotate, &annotation, err);
}

static int write_intervals(const struct ow_match_report *report, const char *path, struct ow_error *err)
{
	struct ow_output csv = {0};
	int r = ow_output_open(&csv, path, err);
	if (r < 0)
		return r;
	ow_report_csv_intervals(csv.stream, report);
	return ow_output_close(&csv, err);
}

/* Writes the files besides the report. If one fails, the others are still written. */
static int write_files(struct collector *c, const struct ow_match_arguments *args, const struct ow_match_report *report,
                       const struct ow_path_report *path)
{
	struct ow_error err;
	int code = OW_EXIT_OK;
	if (ow_output_close(&c->csv, &err) < 0 || ow_output_close(&c->path_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->lost && ow_extract(args->lost, args->path, c->lost, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->extra && ow_extract(args->extra, args->path, c->extra, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->annotate && write_annotated(c, args, report, path, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->flows_csv && write_flows(c, args->flows_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->intervals_csv && write_intervals(report, args->intervals_csv, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->plot && ow_plot_write(c->plot, report, path, args->plot, &err) < 0)
		code = ow_cli_failed("match", &err);
	if (args->report && write_page(c, args->report, page_of(c, args, report, path), &err) < 0)
		code = ow_cli_failed("match", &err);
	return code;
}

/* Prints to standard output, or to standard error if CSV uses standard output. */
static void print_report(const struct collector *c, const struct ow_match_arguments *args,
                         const struct ow_match_report *report, const struct ow_path_report *path)
{
	FILE *out = ow_match_arguments_table(args) ? stderr : stdout;
	int width = ow_terminal_width(out);
	bool colour = !args->no_color && ow_terminal_colour(out);
	if (args->json) {
		ow_report_match_json(out, report, args->points.given, args->flows ? &c->flows : NULL,
		                     args->classes.count ? &args->classes : NULL, args->flow ? &c->packets : NULL,
		                     path);
		return;
	}
	struct ow_match_page page = page_of(c, args, report, path);
	ow_match_page_text(out, &page, width, ow_terminal_is(out), colour ? OW_LOOK_COLOUR : OW_LOOK_PLAIN);
}

static int check_thresholds(const struct ow_match_arguments *args, const struct ow_match_report *report)
{
	static const char *const title[] = {"A to B", "B to A"};
	int code = OW_EXIT_OK;
	for (int d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_result *result = &report->direction[d];
		if (!report->has_direction[d])
			continue;
		if (result->sent && (double)result->lost / (double)result->sent > args->max_loss) {
			ow_cli_say("oneway match: %s: loss of %.4g %% is above --max-loss %.4g %%", title[d],
			           100 * (double)result->lost / (double)result->sent, 100 * args->max_loss);
			code = OW_EXIT_CROSSED;
		}
		if (args->max_p99_ns == INT64_MAX)
			continue;
		char p99[OW_DURATION_TEXT], limit[OW_DURATION_TEXT];
		ow_duration_text(result->delay.quantile_ns[OW_Q99], p99);
		ow_duration_text((double)args->max_p99_ns, limit);
		if (!result->delay.samples) {
			/* An unknown delay also crosses the threshold: a script that checks it must not continue. */
			ow_cli_say("oneway match: %s: no delay sample to compare with --max-delay-p99 %s", title[d],
			           limit);
			code = OW_EXIT_CROSSED;
		} else if (result->delay.quantile_ns[OW_Q99] > (double)args->max_p99_ns) {
			ow_cli_say("oneway match: %s: p99 delay of %s is above --max-delay-p99 %s", title[d], p99,
			           limit);
			code = OW_EXIT_CROSSED;
		}
	}
	return code;
}

static int get_classes(struct collector *c, struct ow_match_classes *classes, const struct ow_match_report *report)
{
	for (unsigned i = 0; i < OW_CLASSES_MAX && classes->by; i++) {
		if (ow_class_tally_used(c->classes, i))
			ow_match_classes_add(classes, (uint8_t)i);
	}
	classes->percentiles = report->percentiles;
	for (unsigned i = 0; i < classes->count; i++) {
		for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
			if (ow_class_tally_get(c->classes, report, classes->by ? classes->number[i] : i, d,
			                       &classes->result[i][d], classes->percentile[i][d]) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

static int get_flow_hops(struct collector *c, const struct ow_flow_select *key, const struct ow_path_report *path)
{
	struct ow_flow_hops_report *hops = &c->flows.hops;
	*hops = (struct ow_flow_hops_report){
		.path = path, .select = key, .omitted = ow_flow_hops_omitted(c->flow_hops)};
	return ow_flow_hops_all(c->flow_hops, &hops->flow, &hops->flows);
}

/* Prints and writes all that was asked for. */
static int write_results(struct ow_match_arguments *args, struct collector *c, const struct ow_match_report *report,
                         const struct ow_path_report *path)
{
	struct ow_error err;
	if (c->tally) {
		assert(ow_flow_tally_conserves(c->tally, report));
		if (ow_match_flows_init(&c->flows, c->tally, &args->key) < 0 ||
		    ow_match_flows_add_jitter(&c->flows, report) < 0) {
			ow_error_set(&err, ENOMEM, "--flows: not enough memory");
			return ow_cli_failed("match", &err);
		}
	}
	if (path && args->flow)
		ow_match_packets_place(&c->packets, c->seen, c->seens);
	ow_match_packets_sort(&c->packets);
	if (c->flow_hops && get_flow_hops(c, &args->key, path) < 0) {
		ow_error_set(&err, ENOMEM, "--flows: not enough memory");
		return ow_cli_failed("match", &err);
	}
	if (get_classes(c, &args->classes, report) < 0) {
		ow_error_set(&err, ENOMEM, "--class: not enough memory");
		return ow_cli_failed("match", &err);
	}
	/* The report is printed before the files are written, so that a failing file does not lose it. */
	print_report(c, args, report, path);
	int code = write_files(c, args, report, path);
	return code == OW_EXIT_OK ? check_thresholds(args, report) : code;
}

static int run_pair(struct ow_match_arguments *args, struct collector *c)
{
	struct ow_match *match = NULL;
	struct ow_error err = {"no reason given"};
	int r = start_collecting(c, args, &err);
	if (r == 0)
		r = ow_match_files(args->path[OW_SIDE_A], args->path[OW_SIDE_B], &args->match, &match, &err);
	ow_progress_done(&c->progress);
	if (r < 0)
		return ow_cli_failed("match", *c->err.text ? &c->err : &err);
	int code = write_results(args, c, ow_match_report(match), NULL);
	ow_match_free(match);
	return code;
}

static int run_path(struct ow_match_arguments *args, struct collector *c)
{
	struct ow_path *path = NULL;
	struct ow_error err = {"no reason given"};
	int r = start_collecting(c, args, &err);
	struct ow_path_options path_options = {
		.match = args->match,
		.keep_order = args->keep_order,
		.on_path_packet = args->csv || args->plot || args->report || args->annotate || args->flow || c->tally
	                                  ? on_path_packet
	                                  : NULL};
	if (r == 0 && c->tally && ow_flow_hops_create(&args->key, args->match.seed, &c->flow_hops) < 0)
		r = ow_error_set(&err, ENOMEM, "--flows: not enough memory");
	if (r == 0)
		r = ow_path_match(args->points.point, args->points.count, &path_options, &path, &err);
	ow_progress_done(&c->progress);
	if (r < 0)
		return ow_cli_failed("match", *c->err.text ? &c->err : *c->path_err.text ? &c->path_err : &err);
	const struct ow_path_report *report = ow_path_report(path);
	args->path[OW_SIDE_A] = report->point[0].path;
	args->path[OW_SIDE_B] = report->point[report->points - 1].path;
	args->points.given[OW_SIDE_A] = report->point[0].name;
	args->points.given[OW_SIDE_B] = report->point[report->points - 1].name;
	int code = write_results(args, c, report->ends, report);
	ow_path_free(path);
	return code;
}

/* -- files that are still being written ------------------------------------------------------------------------- */

static int follow_options(struct ow_match_arguments *args, struct ow_measure *m, struct ow_error *err)
{
	ow_measure_defaults("match", m);
	m->streams = true;
	m->filter = args->match.filter;
	m->forward = args->match.one_direction ? "ip or ip6" : args->forward;
	m->one_way = args->match.one_direction;
	m->level = args->match.level;
	m->inner = args->match.inner == OW_ON;
	m->outer = args->match.inner == OW_OFF;
	m->clock = args->match.clock == OW_CLOCK_ESTIMATED ? OW_CLOCK_RELATIVE : OW_CLOCK_AUTO;
	m->interval_ns = args->match.interval_ns ? args->match.interval_ns : m->interval_ns;
	m->wait_ns = args->match.window_ns;
	m->lag_ns = args->lag_ns ? args->lag_ns : m->lag_ns;
	m->since_ns = args->since ? args->match.since_ns : m->since_ns;
	m->until_ns = args->until ? args->match.until_ns : m->until_ns;
	m->show.json = args->json;
	m->no_color = args->no_color;
	for (unsigned i = 0; i < args->classes.count; i++) {
		snprintf(m->classes.name[i], sizeof m->classes.name[i], "%s", args->classes.name[i]);
		m->classes.class[i] = (struct ow_local_pair_class){m->classes.name[i], args->classes.filter[i]};
	}
	m->classes.count = args->classes.count;
	return ow_measure_check_times(m, err);
}

static void follow_between(const struct ow_match_arguments *args, unsigned from, unsigned to, struct ow_measure *m)
{
	const unsigned place[OW_SIDES] = {from, to};
	for (unsigned i = 0; i < OW_SIDES; i++) {
		const struct ow_path_point *point = &args->points.point[place[i]];
		snprintf(m->stream[i].name, sizeof m->stream[i].name, "%.*s", OW_RESULT_NAME - 1, point->name);
		m->stream[i].what = point->path;
	}
}

/* Of more than two points each hop is measured by itself, and both ends: thresholds are about these. */
static int run_follow(struct ow_match_arguments *args)
{
	unsigned last = args->points.count - 1, count = last > 1 ? last + 1 : 1;
	struct ow_measure *measure = calloc(count, sizeof *measure);
	struct ow_error err;
	int r = measure ? follow_options(args, &measure[0], &err) : ow_error_set(&err, ENOMEM, "out of memory");
	for (unsigned i = count; i-- > 0 && r == 0;) {
		bool ends = i == last || count == 1;
		measure[i] = measure[0];
		follow_between(args, i == last ? 0 : i, i == last ? last : i + 1, &measure[i]);
		measure[i].max_loss = ends ? args->max_loss : 2;
		measure[i].max_p99_ns = ends ? args->max_p99_ns : INT64_MAX;
	}
	int code = r < 0       ? ow_cli_refused("match", r, &err)
	           : count > 1 ? ow_measure_hops_run(measure, count)
	                       : ow_measure_run(measure);
	free(measure);
	return code;
}

int ow_cli_match(int argc, char **argv)
{
	struct ow_match_arguments args;
	struct ow_error err;
	int refused = ow_match_arguments_read(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("match", refused, &err);
	if (ow_cli_answered(args.help, args.version, ow_match_arguments_help))
		return OW_EXIT_OK;
	if (args.follow)
		return run_follow(&args);
	struct collector collector = {0};
	int code = args.points.count > OW_SIDES ? run_path(&args, &collector) : run_pair(&args, &collector);
	stop_collecting(&collector);
	return code;
}
