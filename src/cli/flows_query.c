/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows query: estimates the delay of flows between two or more recordings. */
#include "base/time.h"
#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/flows.h"
#include "flows/epochs.h"
#include "flows/flow_query.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "packet/flow_parse.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND "flows query"
/* Flows that the text shows if no number was given. */
#define TOP_DEFAULT 10

struct vias {
	const char *path[OW_FLOW_POINTS_MAX - 2];
	unsigned count;
};

struct arguments {
	const char *from, *to, *since, *until, *flow, *csv, *plot;
	struct vias vias;
	struct ow_flows_question question;
	uint64_t top, least, repetitions, seed;
	int64_t each_ns;     /* 0: no table of intervals */
	int64_t max_mean_ns; /* INT64_MAX: no threshold was given */
	bool all, json, no_color, help, version;
};

static int add_via(void *field, const char *value, struct ow_error *err)
{
	struct vias *vias = field;
	if (vias->count == sizeof vias->path / sizeof *vias->path)
		return ow_error_set(err, EINVAL, "more than %d points", OW_FLOW_POINTS_MAX);
	vias->path[vias->count++] = value;
	return 0;
}

static int set_by(void *field, const char *value, struct ow_error *err)
{
	return ow_flow_select_parse(value, field, err);
}

static int set_estimator(void *field, const char *value, struct ow_error *err)
{
	static const char *const names[] = {"auto", "colate", "blup", "banks"};
	static const enum ow_flow_estimator estimators[] = {OW_FLOWS_AUTO, OW_FLOWS_COLATE, OW_FLOWS_BLUP,
	                                                    OW_FLOWS_BANKS};
	size_t i;
	int r = ow_option_choice(names, 4, value, &i, err);
	if (r == 0)
		*(enum ow_flow_estimator *)field = estimators[i];
	return r;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "Recordings of 'oneway flows record' or of a point:"},
	{"from", 0, "FILE", ow_option_text, FIELD(from), "The point that packets pass first (required)."},
	{"to", 0, "FILE", ow_option_text, FIELD(to), "The point that they pass last (required)."},
	{"via", 0, "FILE", add_via, FIELD(vias),
         "A point between them, in the order of the packets; may be given several times. Each leg has its own result."},
	{"since", 0, "T", ow_option_text, FIELD(since),
         "Epochs that end after T: '2026-11-15 10:02', 10:02 (the last time in the past), -2h, now, or seconds "
         "since 1970. Local time, or UTC with a final Z."},
	{"until", 0, "T", ow_option_text, FIELD(until), "Epochs that began before T."},
	{"counts", 0, "FILE", ow_option_text, FIELD(question.counts),
         "Packets of each flow, instead of the counts in the recordings: 'nfdump -o csv', or any CSV with columns src, "
         "dst, sport, dport, proto and packets; - is standard input."},
	{"offset", 0, "D", ow_option_duration, FIELD(question.offset_ns),
         "Add D (-37s, 1.5us) to the times of --to, to correct its clock."},

	{NULL, 0, NULL, NULL, 0, "Which flows (default: the slowest 10; with --json or --csv all):"},
	{"flow", 0, "FLOW", ow_option_text, FIELD(flow), "Only this flow: '10.0.0.1:80 > 10.0.0.2:1234 tcp'."},
	{"top", 0, "N", ow_option_count, FIELD(top), "The N slowest flows."},
	{"worst", 0, NULL, ow_option_flag, FIELD(question.worst),
         "First the flows that are certainly slow: by the lower ends of their intervals."},
	{"lost", 0, NULL, ow_option_flag, FIELD(question.lost),
         "First the flows that lost most packets, also those of which nothing arrived."},
	{"each", 0, "D", ow_option_positive_duration, FIELD(each_ns),
         "The worst flow of each D (with --top N the worst N), a multiple of the recording's interval."},
	{"by", 0, "KEY", set_by, FIELD(question.by),
         "Groups of flows instead of flows: prefix:24,48 (networks; bits of IPv4 and IPv6 addresses) or addresses."},
	{"all", 0, NULL, ow_option_flag, FIELD(all), "All."},
	{"min-packets", 0, "N", ow_option_count, FIELD(least), "Only flows of at least N packets."},

	{NULL, 0, NULL, NULL, 0, "How:"},
	{"no-repair", 0, NULL, ow_option_flag, FIELD(question.no_repair),
         "Leave lost packets in the counters: each counter that has one is of no use."},
	{"estimator", 0, "E", set_estimator, FIELD(question.estimate.estimator),
         "auto (default): the best that the recording allows; colate: COLATE as published; blup: best linear "
         "prediction, "
         "one bank at a time; banks: all banks together."},
	{"repetitions", 0, "N", ow_option_count, FIELD(repetitions),
         "With colate: virtual repetitions of its standard deviation (default: what infinitely many give)."},
	{"seed", 0, "N", ow_option_count, FIELD(seed), "Seed of the repetitions (default 1)."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print JSON instead of text."},
	{"csv", 0, "FILE", ow_option_output, FIELD(csv), "Write a row for each flow and leg; - is standard output."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Plot the slowest flows with their error bars, as .svg or .png (needs gnuplot)."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Threshold (exit code 3 when crossed):"},
	{"max-mean", 0, "D", ow_option_duration, FIELD(max_mean_ns),
         "Highest acceptable mean delay of a flow; crossed when the whole 95 % interval is above."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway flows query --from A.epochs --to B.epochs [OPTION]...\n"
	      "\n"
	      "How long the packets of each flow took from A to B: mean and standard deviation,\n"
	      "each with its 95 % interval, or why they cannot be estimated.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway flows query --from a.epochs --to b.epochs\n"
	      "  oneway flows query --from a.epochs --to b.epochs \\\n"
	      "      --flow '10.0.0.1:80 > 10.0.0.2:1234 tcp'\n"
	      "  oneway flows query --from a.epochs --to b.epochs --since -2h \\\n"
	      "      --min-packets 100 --plot slow.svg\n"
	      "  oneway flows query --from a.epochs --to b.epochs --worst --min-packets 20\n"
	      "  oneway flows query --from a.epochs --to b.epochs --each 1h --top 3\n"
	      "  oneway flows query --from a.epochs --to b.epochs --worst --by prefix:24,48\n"
	      "  oneway flows query --from a.epochs --via b.epochs --to c.epochs --top 5\n"
	      "  oneway flows query --from a.epochs --to b.epochs --all --json | jq .flows\n"
	      "  nfdump -R flows/ -o csv | \\\n"
	      "      oneway flows query --from a.epochs --to b.epochs --counts -\n"
	      "  oneway flows query --from a.epochs --to b.epochs --min-packets 50 \\\n"
	      "      --max-mean 2ms || echo bad\n",
	      stdout);
}

/* -- what was asked for ------------------------------------------------------------------------------------------- */

static int check_outputs(const struct arguments *args, struct ow_error *err)
{
	const struct {
		const char *option, *path;
	} outputs[] = {{"--csv", args->csv}, {"--plot", args->plot}};
	const struct ow_flows_question *q = &args->question;
	for (int i = 0; i < 2; i++) {
		const char *path = outputs[i].path;
		for (unsigned k = 0; path && k <= q->points; k++) {
			const char *input = k < q->points ? q->path[k] : q->counts;
			if (input && ow_same_file(path, input))
				return ow_error_set(err, EINVAL, "%s %.200s would overwrite the input %.200s",
				                    outputs[i].option, path, input);
		}
	}
	if (args->json && ow_output_is_stdout(args->csv))
		return ow_error_set(err, EINVAL, "--json and --csv - cannot both use standard output");
	return 0;
}

static int check_arguments(struct arguments *args, struct ow_error *err)
{
	struct ow_flows_question *q = &args->question;
	if (args->flow && (args->top || args->all || args->least))
		return ow_error_set(err, EINVAL, "--flow selects one flow: it excludes --top, --all and --min-packets");
	if (args->each_ns && (args->flow || args->all || args->json || args->csv || args->plot || args->vias.count ||
	                      args->max_mean_ns != INT64_MAX))
		return ow_error_set(
			err, EINVAL,
			"--each prints a table: it excludes --flow, --all, --via, --max-mean, --json, --csv "
			"and --plot");
	if (args->question.by.by && args->flow)
		return ow_error_set(err, EINVAL, "--flow selects one flow: it excludes --by");
	if (q->lost && (q->worst || args->each_ns))
		return ow_error_set(err, EINVAL, "--lost excludes --worst and --each");
	if (args->top && args->all)
		return ow_error_set(err, EINVAL, "--top and --all exclude each other");
	if (q->offset_ns && q->points > 2)
		return ow_error_set(err, EINVAL, "--offset is for two points: it excludes --via");
	if (args->repetitions > 1000000)
		return ow_error_set(err, EINVAL, "--repetitions: more than 1000000 make no difference");
	if (args->repetitions && q->estimate.estimator != OW_FLOWS_COLATE && q->estimate.estimator != OW_FLOWS_AUTO)
		return ow_error_set(err, EINVAL, "--repetitions is for --estimator colate");
	if (q->since_ns >= q->until_ns)
		return ow_error_set(err, EINVAL, "--since is not before --until");
	return check_outputs(args, err);
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	struct ow_flows_question *q = &args->question;
	*args = (struct arguments){.max_mean_ns = INT64_MAX, .seed = 1};
	q->since_ns = INT64_MIN;
	q->until_ns = INT64_MAX;
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands > 0)
		return ow_error_set(err, EINVAL, "unexpected '%.60s': recordings are named by --from and --to",
		                    argv[1]);
	if (!args->from || !args->to)
		return ow_error_set(err, EINVAL, "needs --from FILE and --to FILE");
	q->path[q->points++] = args->from;
	for (unsigned i = 0; i < args->vias.count; i++)
		q->path[q->points++] = args->vias.path[i];
	q->path[q->points++] = args->to;
	q->estimate.repetitions = (uint32_t)args->repetitions;
	q->estimate.seed = args->seed;
	int r = ow_options_times(args->since, args->until, &q->since_ns, &q->until_ns, err);
	return r < 0 ? r : check_arguments(args, err);
}

/* -- which flows -------------------------------------------------------------------------------------------------- */

static int find_flow(const struct arguments *args, const struct ow_flow_answers *a, const struct ow_flows_files *files,
                     struct ow_flow_rows *rows, struct ow_error *err)
{
	struct ow_flow_key key;
	struct ow_error why;
	if (ow_flow_key_parse(args->flow, &a->select, &key, &why) < 0)
		return ow_error_set(err, EINVAL, "--flow: %.400s", why.text);
	for (size_t i = 0; i < a->flows && !rows->rows; i++) {
		if (a->flow[i].packets && memcmp(&a->flow[i].key, &key, sizeof key) == 0)
			rows->row[rows->rows++] = &a->flow[i];
	}
	if (rows->rows)
		return 0;
	uint64_t sent = ow_flows_files_packets(files, 0, &key);
	if (sent)
		return ow_error_set(err, ENOENT, "--flow: %.200s counted %" PRIu64 " packets of it, %.200s none",
		                    a->point[0].path, sent, a->counts ? a->counts : a->point[a->points - 1].path);
	return ow_error_set(err, ENOENT, "--flow: '%.100s' is not among the %zu flows that %.200s counts", args->flow,
	                    a->flows - (size_t)a->never_arrived, a->counts ? a->counts : a->point[a->points - 1].path);
}

static void take_flows(const struct arguments *args, const struct ow_flow_answers *a, struct ow_flow_rows *rows)
{
	bool machine = args->json || args->csv;
	size_t most = args->all ? SIZE_MAX : args->top ? args->top : machine ? SIZE_MAX : TOP_DEFAULT;
	for (size_t i = 0; i < a->flows; i++) {
		if (a->flow[i].packets < args->least)
			continue;
		rows->eligible++;
		/* Only flows whose delay is known can be among the slowest, and those that lost packets among the others. */
		uint64_t lost = ow_flow_answer_lost(&a->flow[i]);
		bool known = a->lost ? lost && lost != UINT64_MAX
		                     : ow_flow_answer_whole(a, &a->flow[i])->mean_ns.status != OW_VALUE_NONE;
		if (rows->rows < most && (known || most == SIZE_MAX))
			rows->row[rows->rows++] = &a->flow[i];
	}
}

static int choose_rows(const struct arguments *args, const struct ow_flow_answers *a,
                       const struct ow_flows_files *files, struct ow_flow_rows *ret_rows, struct ow_error *err)
{
	*ret_rows = (struct ow_flow_rows){.least = args->least, .one = args->flow != NULL};
	ret_rows->row = calloc(a->flows + 1, sizeof *ret_rows->row);
	if (!ret_rows->row)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (args->flow)
		return find_flow(args, a, files, ret_rows, err);
	take_flows(args, a, ret_rows);
	return 0;
}

/* -- answers ------------------------------------------------------------------------------------------------------ */

static int write_csv(const struct arguments *args, const struct ow_flow_answers *a, const struct ow_flow_rows *rows,
                     struct ow_error *err)
{
	struct ow_output csv = {0};
	int r = ow_output_open(&csv, args->csv, err);
	if (r < 0)
		return r;
	ow_report_flow_answers_csv(csv.stream, a, rows);
	return ow_output_close(&csv, err);
}

/*
 * A flow counts if it is certainly above the threshold. A flow that was asked for by name also fails if its delay is
 * unknown.
 */
static int check_threshold(const struct arguments *args, const struct ow_flow_answers *a,
                           const struct ow_flow_rows *rows)
{
	char limit[OW_DURATION_TEXT], mean[OW_DURATION_TEXT], name[OW_FLOW_SELECTED_TEXT];
	const struct ow_flow_answer *worst = NULL;
	size_t above = 0, known = 0;
	if (args->max_mean_ns == INT64_MAX)
		return OW_EXIT_OK;
	ow_duration_text((double)args->max_mean_ns, limit);
	assert(!args->flow || rows->row);
	for (size_t i = 0; i < a->flows; i++) {
		const struct ow_flow_answer *flow = args->flow ? rows->row[0] : &a->flow[i];
		const struct ow_value *value = &ow_flow_answer_whole(a, flow)->mean_ns;
		if (flow->packets >= args->least && value->status != OW_VALUE_NONE) {
			known++;
			if (value->low > (double)args->max_mean_ns && above++ == 0)
				worst = flow;
		}
		if (args->flow)
			break;
	}
	if (!known) {
		ow_cli_say("oneway " COMMAND ": no estimate to hold against --max-mean %s", limit);
		return OW_EXIT_CROSSED;
	}
	if (!worst)
		return OW_EXIT_OK;
	ow_flow_select_key_text(&a->select, &worst->key, name);
	ow_duration_text(ow_flow_answer_whole(a, worst)->mean_ns.value, mean);
	ow_cli_say("oneway " COMMAND ": %zu %s above --max-mean %s; the slowest, %s, with %s", above,
	           above == 1 ? "flow is" : "flows are", limit, name, mean);
	return OW_EXIT_CROSSED;
}

static int show(const struct arguments *args, const struct ow_flow_answers *a, const struct ow_flow_rows *rows)
{
	FILE *out = ow_output_is_stdout(args->csv) ? stderr : stdout;
	struct ow_error err;
	int code = OW_EXIT_OK;
	if (args->json)
		ow_report_flow_answers_json(out, a, rows);
	else
		ow_report_flow_answers_text(out, a, rows, ow_terminal_width(out),
		                            !args->no_color && ow_terminal_colour(out));
	if (args->csv && write_csv(args, a, rows, &err) < 0)
		code = ow_cli_failed(COMMAND, &err);
	if (args->plot && ow_report_flow_answers_plot(a, rows, args->plot, &err) < 0)
		code = ow_cli_failed(COMMAND, &err);
	return code == OW_EXIT_OK ? check_threshold(args, a, rows) : code;
}

/* -- the worst of each interval ------------------------------------------------------------------------------------ */

/* One interval of the table. */
static int show_interval(const struct arguments *args, int64_t begin_ns, int width, struct ow_error *err)
{
	struct ow_flows_question question = args->question;
	struct ow_flow_answers answers = {0};
	struct ow_flow_rows rows = {0};
	struct ow_flows_files *files = NULL;
	question.since_ns = begin_ns;
	question.until_ns = begin_ns + args->each_ns;
	question.worst = true;
	struct arguments one = *args;
	one.top = args->top ? args->top : 1;
	int r = ow_flows_ask(&question, &answers, &files, err);
	if (r == -ENODATA || r == -ENOMSG || r == -EINVAL) {
		ow_report_flow_worst_none(stdout, begin_ns, err->text, width);
		return 0;
	}
	if (r == 0)
		r = choose_rows(&one, &answers, files, &rows, err);
	if (r == 0)
		ow_report_flow_worst(stdout, begin_ns, &answers, &rows, width, ow_terminal_is(stdout));
	free(rows.row);
	ow_flow_answers_done(&answers);
	ow_flows_files_free(files);
	return r;
}

/* More lines are of no use to anybody; a table of years of seconds is a mistake. */
#define INTERVALS_MAX 100000

static int show_intervals(const struct arguments *args)
{
	struct ow_epochs *epochs;
	struct ow_error err;
	int width = ow_terminal_width(stdout);
	int r = ow_epochs_open(args->from, &epochs, &err);
	if (r < 0)
		return ow_cli_failed(COMMAND, &err);
	struct ow_epochs_span span = ow_epochs_whole(epochs);
	int64_t interval_ns = ow_epochs_info(epochs)->interval_ns;
	ow_epochs_close(epochs);
	/* Otherwise an epoch would be in several rows, as if it had been measured in each. */
	if (!interval_ns || args->each_ns % interval_ns) {
		char text[OW_DURATION_TEXT];
		ow_duration_text((double)interval_ns, text);
		if (interval_ns)
			ow_error_set(&err, EINVAL,
			             "--each: must be a multiple of the recording's interval, which is %s", text);
		else
			ow_error_set(&err, EINVAL, "--each: the recording has no intervals (flows record --interval)");
		return ow_cli_refused(COMMAND, -EINVAL, &err);
	}
	const struct ow_flows_question *q = &args->question;
	int64_t begin = q->since_ns > span.begin_ns ? q->since_ns : span.begin_ns;
	int64_t end = q->until_ns < span.end_ns ? q->until_ns : span.end_ns;
	begin -= begin % args->each_ns;
	if (begin < end && (end - begin) / args->each_ns >= INTERVALS_MAX) {
		ow_error_set(&err, EINVAL, "--each: more than %d intervals", INTERVALS_MAX);
		return ow_cli_refused(COMMAND, -EINVAL, &err);
	}
	ow_report_flow_worst_heading(stdout, width);
	for (; r == 0 && begin < end; begin += args->each_ns)
		r = show_interval(args, begin, width, &err);
	return r < 0 ? ow_cli_failed(COMMAND, &err) : OW_EXIT_OK;
}

int ow_cli_flows_query(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	struct ow_flow_answers answers = {0};
	struct ow_flow_rows rows = {0};
	struct ow_flows_files *files = NULL;
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused(COMMAND, refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (args.each_ns)
		return show_intervals(&args);
	struct ow_progress progress;
	ow_progress_init(&progress, "estimating");
	args.question.estimate.on_progress = ow_progress_show;
	args.question.estimate.arg = &progress;
	int r = ow_flows_ask(&args.question, &answers, &files, &err);
	ow_progress_done(&progress);
	if (r == 0)
		r = choose_rows(&args, &answers, files, &rows, &err);
	int code = r < 0 ? ow_cli_failed(COMMAND, &err) : show(&args, &answers, &rows);
	free(rows.row);
	ow_flow_answers_done(&answers);
	ow_flows_files_free(files);
	return code;
}
