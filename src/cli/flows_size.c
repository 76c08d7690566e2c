/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows size: how large a COLATE recording has to be, by the equations of its paper. */
#include "cli/flows.h"

#include "base/time.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "flows/colate_size.h"
#include "flows/flow_measure.h"
#include "base/json_writer.h"
#include "base/format.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
		return ow_error_set(err, EINVAL, "'%.40s' is no number above 0", value);
	*(double *)field = number;
	return 0;
}

static int set_key(void *field, const char *value, struct ow_error *err)
{
	struct ow_flow_select select;
	int r = ow_flow_select_parse(value, &select, err);
	if (r == 0 && select.by == OW_FLOW_BY_CLASS)
		return ow_error_set(err, EINVAL, "classes need no sizing: give each counters of its own");
	if (r == 0)
		*(struct ow_flow_select *)field = select;
	return r;
}

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What is asked for:"},
	{"memory", 'M', "SIZE", ow_option_size, FIELD(memory), "Of all counters (default 1MiB)."},
	{"alpha", 0, "P", ow_option_share, FIELD(alpha), "Share of flows that must be within beta (default 0.95)."},
	{"beta", 0, "P", ow_option_share, FIELD(beta), "Relative error that these may have (default 0.05)."},
	{"least-spread", 0, "M", ow_option_count, FIELD(least), "Least counters a flow (default 2)."},

	{NULL, 0, NULL, NULL, 0, "The traffic, in an epoch:"},
	{"t-min", 0, "T", set_positive, FIELD(t_min),
         "Sum of the times of the smallest flow for which this shall hold, in units from the epoch's start."},
	{"t-max", 0, "T", set_positive, FIELD(t_max), "Of the largest flow."},
	{"ratio", 0, "R", set_positive, FIELD(ratio),
         "Equation 12: which part of a flow's times is delay. Default 1, which sizes for the sums themselves, as the "
         "paper's numbers do."},
	{"rate", 0, "PPS", ow_option_count, FIELD(rate), "Packets a second, for bits per packet."},
	{"unit", 0, "D", ow_option_positive_duration, FIELD(unit_ns), "Unit of time (default 1ns)."},

	{NULL, 0, NULL, NULL, 0, "Or measured; what is given above still counts:"},
	{"measure", 0, "CAPTURE", ow_option_text, FIELD(measure),
         "Take t-min, t-max and the rate from it; with a second capture B of the same traffic, the ratio, too."},
	{"interval", 0, "D", ow_option_positive_duration, FIELD(interval_ns),
         "Epochs of this length (default: the capture is one)."},
	{"min-packets", 0, "N", ow_option_count, FIELD(packets_min),
         "The smallest flow for which it shall hold has N packets in an epoch (default 64)."},
	{"key", 0, "KEY", set_key, FIELD(select), "What a flow is: five-tuple (default), addresses, prefix:24,48."},
	{"filter", 0, "FILTER", ow_option_text, FIELD(filter), "Only packets of this filter (pcap-filter(7))."},
	{"id-bytes", 0, "N", ow_option_count, FIELD(id_bytes), "As for record (default 64)."},

	{NULL, 0, NULL, NULL, 0, "Other:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "A JSON object instead of text."},
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
		                    args->measure ? "one more capture, B, at most"
		                                  : "a capture needs --measure in front of it");
	args->path_b = operands ? argv[1] : NULL;
	if (!args->measure && (args->t_min <= 0 || args->t_max <= 0))
		return ow_error_set(err, EINVAL, "needs --t-min and --t-max, or --measure CAPTURE");
	if (args->unit_ns > UINT32_MAX || !args->id_bytes || args->id_bytes > UINT32_MAX || !args->packets_min)
		return ow_error_set(err, EINVAL, "--unit, --id-bytes or --min-packets is out of range");
	return 0;
}

static void on_progress(void *arg, double done)
{
	ow_progress_show(arg, done);
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
		.progress = on_progress,
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

/* Steady traffic: packets arrive evenly over an epoch, so that T = rate * length^2 / 2. */
static double epoch_length(const struct ow_colate_size *size, double rate)
{
	return sqrt(2 * size->threshold / rate);
}

static void print_text(const struct arguments *args, const struct ow_colate_need *need,
                       const struct ow_flow_measure *found, const struct ow_colate_size *size, double rate)
{
	char a[OW_FORMAT], b[OW_FORMAT], c[OW_FORMAT], length[OW_DURATION_TEXT];
	if (args->measure) {
		printf("measured    %s packets, %s flows, %s with at least %" PRIu64 " packets\n",
		       ow_format_count(found->packets, a), ow_format_count(found->flows, b),
		       ow_format_count(found->large, c), args->packets_min);
		if (args->path_b && found->compared)
			printf("ratio       median %.4g, 5 %% quantile %.4g, of %s flows at both points\n",
			       found->ratio_median, found->ratio_low, ow_format_count(found->compared, a));
	}
	printf("need        alpha %.4g, beta %.4g, t_min %.4g, t_max %.4g, ratio %.4g\n", need->alpha, need->beta,
	       need->t_min, need->t_max, need->ratio);
	printf("equations   n %.6g, m %.4g, b %.4g, T %.4g\n", size->n, size->m, size->b, size->T);
	printf("counters    %s of %u bits, %u a flow\n", ow_format_count(size->counters, a), size->bits, size->spread);
	printf("threshold   %.4g\n", size->threshold);
	if (rate > 0) {
		double units = epoch_length(size, rate);
		ow_duration_text(units * (double)args->unit_ns, length);
		printf("epochs      of %s at %.4g packets a second\n", length, rate * 1e9 / (double)args->unit_ns);
		printf("storage     %.3g bit/packet\n", ow_colate_bits_per_packet(size, units / 2));
	} else {
		printf("storage     per packet: needs --rate or --measure\n");
	}
	printf("record with --form colate --counters %u --spread %u --bits %u --threshold %.0f", size->counters,
	       size->spread, size->bits, size->threshold);
	if (args->unit_ns != 1)
		printf(" --unit %" PRId64 "ns", args->unit_ns);
	printf("\n");
}

static void json_need(struct ow_json *json, const struct arguments *args, const struct ow_colate_need *need)
{
	ow_json_object(json, "need");
	ow_json_number(json, "memory_bits", need->memory_bits);
	ow_json_number(json, "alpha", need->alpha);
	ow_json_number(json, "beta", need->beta);
	ow_json_number(json, "t_min", need->t_min);
	ow_json_number(json, "t_max", need->t_max);
	ow_json_number(json, "ratio", need->ratio);
	ow_json_number(json, "unit_ns", (double)args->unit_ns);
	ow_json_end(json);
}

static void json_measured(struct ow_json *json, const struct ow_flow_measure *found)
{
	ow_json_object(json, "measured");
	ow_json_count(json, "packets", found->packets);
	ow_json_count(json, "flows", found->flows);
	ow_json_count(json, "large_flows", found->large);
	ow_json_count(json, "compared", found->compared);
	ow_json_number(json, "ratio_median", found->ratio_median);
	ow_json_number(json, "ratio_low", found->ratio_low);
	ow_json_end(json);
}

static void json_equations(struct ow_json *json, const struct ow_colate_size *size)
{
	ow_json_object(json, "equations");
	ow_json_number(json, "n", size->n);
	ow_json_number(json, "m", size->m);
	ow_json_number(json, "b", size->b);
	ow_json_number(json, "T", size->T);
	ow_json_end(json);
}

static void print_json(const struct arguments *args, const struct ow_colate_need *need,
                       const struct ow_flow_measure *found, const struct ow_colate_size *size, double rate)
{
	struct ow_json json = {.out = stdout, .indent = 1};
	double units = rate > 0 ? epoch_length(size, rate) : NAN;
	ow_json_object(&json, NULL);
	ow_json_command(&json, COMMAND);
	ow_json_line(&json);
	json_need(&json, args, need);
	ow_json_line(&json);
	if (args->measure)
		json_measured(&json, found);
	else
		ow_json_null(&json, "measured");
	ow_json_line(&json);
	json_equations(&json, size);
	ow_json_line(&json);
	ow_json_count(&json, "counters", size->counters);
	ow_json_count(&json, "spread", size->spread);
	ow_json_count(&json, "bits", size->bits);
	ow_json_number(&json, "threshold", size->threshold);
	ow_json_number(&json, "epoch_ns", units * (double)args->unit_ns);
	ow_json_number(&json, "bits_per_packet", rate > 0 ? ow_colate_bits_per_packet(size, units / 2) : NAN);
	ow_json_end(&json);
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
	if (args->json)
		print_json(args, &need, &found, &size, rate);
	else
		print_text(args, &need, &found, &size, rate);
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
