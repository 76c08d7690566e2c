/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows size: computes the size of a COLATE recording by the equations of its paper. */
#include "cli/flows.h"

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "report/sizing.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define COMMAND "flows size"

struct arguments {
	uint64_t memory, least, rate, id_bytes, packets_min;
	double alpha, beta, t_min, t_max, ratio;
	const char *measure, *filter;
	struct ow_flow_select select;
	int64_t unit_ns, interval_ns;
	bool json, help, version;
	const char *path_b;
};

#define FIELD(name) offsetof(struct arguments, name)

static int set_positive(void *field, const char *value, struct ow_error *err)
{
	char *end;
	double number = strtod(value, &end);
	if (end == value || *end || !(number > 0 && isfinite(number)))
		return ow_error_set(err, EINVAL, "'%.40s' is not a number above 0", value);
	*(double *)field = number;
	return 0;
}

static int set_key(void *field, const char *value, struct ow_error *err)
{
	return ow_option_flow_key(field, value, "classes need no sizing: give each class its own counters", err);
}

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What is asked for:"},
	{"memory", 'M', "SIZE", ow_option_size, FIELD(memory), "Memory of all counters (default 1MiB)."},
	{"alpha", 0, "P", ow_option_share, FIELD(alpha), "Share of flows that must be within beta (default 0.95)."},
	{"beta", 0, "P", ow_option_share, FIELD(beta), "Relative error that these may have (default 0.05)."},
	{"least-spread", 0, "M", ow_option_count, FIELD(least), "Smallest number of counters of a flow (default 2)."},

	{NULL, 0, NULL, NULL, 0, "The traffic, in an epoch:"},
	{"t-min", 0, "T", set_positive, FIELD(t_min),
         "Sum of the times, in units from the epoch's start, of the smallest flow that must meet the target."},
	{"t-max", 0, "T", set_positive, FIELD(t_max), "The same of the largest flow."},
	{"ratio", 0, "R", set_positive, FIELD(ratio),
         "Equation 12: which part of a flow's times is delay. Default 1, which sizes for the sums themselves, as the "
         "paper's numbers do."},
	{"rate", 0, "PPS", ow_option_count, FIELD(rate), "Packets per second; used to print bits per packet."},
	{"unit", 0, "D", ow_option_positive_duration, FIELD(unit_ns), "Unit of time (default 1ns)."},

	{NULL, 0, NULL, NULL, 0, "Measure the traffic instead; values given above take precedence:"},
	{"measure", 0, "CAPTURE", ow_option_text, FIELD(measure),
         "Take t-min, t-max and the rate from this capture; with a second capture B of the same traffic, also the "
         "ratio."},
	{"interval", 0, "D", ow_option_positive_duration, FIELD(interval_ns),
         "Length of an epoch (default: the whole capture is one epoch)."},
	{"min-packets", 0, "N", ow_option_count, FIELD(packets_min),
         "The smallest flow that must meet the target has N packets in an epoch (default 64)."},
	{"key", 0, "KEY", set_key, FIELD(select), "What a flow is: five-tuple (default), addresses, prefix:24,48."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter),
         "Use only packets that match this filter (pcap-filter(7))."},
	{"id-bytes", 0, "N", ow_option_count, FIELD(id_bytes),
         "Bytes that enter the identity, as for record (default 64)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a JSON object instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway flows size [OPTION]... [--measure CAPTURE [B]]\n"
	      "\n"
	      "Solves COLATE's equations 13, 14, 15 and 22 (corrected) for the number of\n"
	      "counters n, the counters a flow m, their bits b and the threshold T at which an\n"
	      "epoch ends, for 'oneway flows record --form colate'. Says so when the target\n"
	      "cannot be met. Banks, the default form of a recording, need far less: half a\n"
	      "counter a flow is a good start.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway flows size --memory 1MiB --t-min 2e7 --t-max 1e9\n"
	      "  oneway flows size --memory 10MiB --alpha 0.9 --beta 0.1 --unit 1us \\\n"
	      "      --measure a.pcap\n"
	      "  oneway flows size --measure a.pcap b.pcap --min-packets 256 --json\n",
	      stdout);
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	*args = (struct arguments){
		.memory = 1 << 20,
		.alpha = 0.95,
		.beta = 0.05,
		.least = 2,
		.unit_ns = 1,
		.packets_min = 64,
		.id_bytes = 64,
		.select.by = OW_FLOW_BY_FIVE_TUPLE,
	};
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands > (args->measure ? 1 : 0))
		return ow_error_set(err, EINVAL, "%s",
		                    args->measure ? "--measure takes at most one more capture, B"
		                                  : "a capture must follow --measure");
	args->path_b = operands ? argv[1] : NULL;
	if (!args->measure && (args->t_min <= 0 || args->t_max <= 0))
		return ow_error_set(err, EINVAL, "needs --t-min and --t-max, or --measure CAPTURE");
	if (args->unit_ns > UINT32_MAX || !args->id_bytes || args->id_bytes > UINT32_MAX || !args->packets_min)
		return ow_error_set(err, EINVAL, "--unit, --id-bytes or --min-packets is out of range");
	return 0;
}

static int measure(const struct arguments *args, struct ow_flow_measure *ret_measure, struct ow_error *err)
{
	struct ow_progress progress;
	struct ow_colate_plan plan;
	struct ow_epoch_info info = {
		.select = args->select,
		.level = OW_LEVEL_IP,
		.id_bytes = (uint32_t)args->id_bytes,
		.interval_ns = args->interval_ns,
	};
	ow_colate_plan_defaults(&plan);
	plan.unit_ns = (uint32_t)args->unit_ns;
	int r = ow_colate_plan_params(&plan, &info.params, err);
	if (r < 0)
		return r;
	ow_progress_init(&progress, "measuring");
	const struct ow_flow_measure_options how = {
		.info = &info,
		.filter = args->filter,
		.packets_min = args->packets_min,
		.progress = ow_progress_show,
		.arg = &progress,
	};
	r = ow_flow_measure(args->measure, args->path_b, &how, ret_measure, err);
	ow_progress_done(&progress);
	if (r == 0 && !ret_measure->large && args->t_min <= 0)
		return ow_error_set(err, ENODATA,
		                    "%.200s: no flow has %" PRIu64 " packets: use a smaller --min-packets",
		                    args->measure, args->packets_min);
	return r;
}

static int run(const struct arguments *args)
{
	struct ow_flow_measure found = {.ratio_low = NAN};
	struct ow_error err = {"no reason given"};
	int r = args->measure ? measure(args, &found, &err) : 0;
	if (r < 0)
		return ow_cli_failed(COMMAND, &err);
	const struct ow_colate_need need = {
		.memory_bits = 8 * (double)args->memory,
		.alpha = args->alpha,
		.beta = args->beta,
		.t_min = args->t_min > 0 ? args->t_min : found.t_min,
		.t_max = args->t_max > 0 ? args->t_max : found.t_max,
		.ratio = args->ratio > 0       ? args->ratio
	                 : found.ratio_low > 0 ? found.ratio_low
	                                       : 1,
		.m_min = (double)args->least,
	};
	double rate = args->rate                          ? (double)args->rate * (double)args->unit_ns / 1e9
	              : args->measure && found.length > 0 ? (double)found.packets / found.length
	                                                  : 0;
	struct ow_colate_size size;
	if (ow_colate_size(&need, &size, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	const struct ow_report_sizing sizing = {.need = &need,
	                                        .size = &size,
	                                        .measured = args->measure ? &found : NULL,
	                                        .both = args->path_b != NULL,
	                                        .packets_min = args->packets_min,
	                                        .unit_ns = args->unit_ns,
	                                        .rate = rate};
	if (args->json)
		ow_report_sizing_json(stdout, &sizing);
	else
		ow_report_sizing_text(stdout, &sizing);
	return OW_EXIT_OK;
}

int ow_cli_flows_size(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	if (read_arguments(argc, argv, &args, &err) < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	return run(&args);
}
