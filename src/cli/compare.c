/* SPDX-License-Identifier: Apache-2.0 */
/* oneway compare A B: every method on the same two captures. */
#include "cli/shared_options.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "papers/compare.h"
#include "report/curves.h"
#include "papers/compare_text.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_DEFAULT (64u << 10)
#define MEMORY_MIN     1024u

struct arguments {
	struct ow_compare_options compare;
	bool reverse, json, no_color, help, version;
	const char *plot;
	const char *path[OW_SIDES];
};

/* Sizes are powers of 1024, as memory is counted: 65536, 64K, 64KiB, 1M. */
static int add_point(void *curves, const struct ow_sweep_point *p)
{
	return ow_curves_add(curves, p->name, p->wire_bytes, 100 * p->error, 100 * p->low, 100 * p->high);
}

static int draw(struct ow_compare *compare, const char *path, struct ow_error *err)
{
	struct ow_curves curves = {.title = "Error of the mean delay",
	                           .x_label = "bytes on the wire",
	                           .y_label = "relative error, % (root mean square of 5 seeds, and their range)",
	                           .log_x = true,
	                           .log_y = true};
	int r = ow_compare_sweep(compare, add_point, &curves);
	if (r < 0)
		ow_error_set(err, -r, "%s: not enough memory", path);
	else
		r = ow_curves_draw(&curves, path, err);
	ow_curves_done(&curves);
	return r;
}

static int set_memory(void *field, const char *value, struct ow_error *err)
{
	uint64_t bytes = 0;
	int r = ow_option_size(&bytes, value, err);
	if (r < 0)
		return r;
	if (bytes < MEMORY_MIN || bytes > OW_SYNOPSIS_BYTES_MAX)
		return ow_error_set(err, EINVAL, "'%.40s' is not in 1K .. %uM", value, OW_SYNOPSIS_BYTES_MAX >> 20);
	*(size_t *)field = bytes;
	return 0;
}

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{NULL, 0, NULL, NULL, 0, "What is compared:"},
	{"memory", 'm', "SIZE", set_memory, FIELD(compare.memory),
         "Bytes that each synopsis may take at a point: 1K to 64M (default: 64K)."},
	{"reverse", 0, NULL, ow_option_flag, FIELD(reverse), "The packets from B to A instead of those from A to B."},
	{"seed", 0, "N", ow_option_count, FIELD(compare.seed),
         "Seed of the hashes: another seed chooses another sample (default: 1)."},

	{NULL, 0, NULL, NULL, 0, "What counts as the same packet, and time (as for oneway match):"},
	{"level", 0, "LEVEL", ow_option_level, FIELD(compare.match.level), "ip, nat, frame or auto (default)."},
	{"inner", 0, "WHEN", ow_option_toggle, FIELD(compare.match.inner), "Enter tunnels: auto (default), on or off."},
	{"segments", 0, "WHEN", ow_option_toggle, FIELD(compare.match.segments),
         "Cut superframes into the segments of the wire: auto (default), on or off."},
	{"offset", 0, "D|auto", ow_option_offset, FIELD(compare.match), "Add D to the times of B; auto estimates it."},
	{"window", 0, "D", ow_option_positive_duration, FIELD(compare.match.window_ns),
         "Waiting time after which a packet is lost."},
	{"one-direction", 0, NULL, ow_option_flag, FIELD(compare.match.one_direction), "All traffic goes from A to B."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "JSON instead of text."},
	{"plot", 0, "FILE", ow_option_plot, FIELD(plot),
         "Plot the error of the mean over the bytes on the wire, from 1/16 of the memory to 16 times as much, as .svg "
         "or .png "
         "(needs gnuplot)."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway compare [OPTION]... A B\n"
	      "\n"
	      "Tries every synopsis with the same memory on two captures of the same traffic,\n"
	      "and prints the error of each beside the exact answer of 'oneway match': mean,\n"
	      "standard deviation, loss and quantiles with their 95 % intervals; memory, bytes\n"
	      "on the wire, time to insert a packet and to decode. The whole capture is one\n"
	      "interval.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway compare a.pcap b.pcap\n"
	      "  oneway compare --memory 16K --reverse a.pcap b.pcap\n"
	      "  oneway compare --json a.pcap b.pcap |\n"
	      "      jq '.synopses[] | {name, relative_error}'\n"
	      "  oneway compare --plot error.svg a.pcap b.pcap\n",
	      stdout);
}

static int read_arguments(int argc, char **argv, struct arguments *args, struct ow_error *err)
{
	*args = (struct arguments){.compare = {.memory = MEMORY_DEFAULT, .seed = 1}};
	ow_match_defaults(&args->compare.match);
	int operands = ow_options_parse(options, argc, argv, args, err);
	if (operands < 0 || args->help || args->version)
		return operands < 0 ? operands : 0;
	if (operands != OW_SIDES)
		return ow_error_set(err, EINVAL, "needs two captures, A and B, got %d", operands);
	args->path[OW_SIDE_A] = argv[1];
	args->path[OW_SIDE_B] = argv[2];
	args->compare.direction = args->reverse ? OW_B_TO_A : OW_A_TO_B;
	for (int side = 0; args->plot && side < OW_SIDES; side++) {
		if (ow_same_file(args->plot, args->path[side]))
			return ow_error_set(err, EINVAL, "--plot %.200s would overwrite the input", args->plot);
	}
	if (strcmp(argv[1], "-") == 0 && strcmp(argv[2], "-") == 0)
		return ow_error_set(err, EINVAL, "only one of A and B can be standard input");
	return 0;
}

static int run(const struct arguments *args)
{
	struct ow_error err;
	struct ow_progress progress;
	struct ow_compare *compare;
	const struct ow_method_comparison *comparison = NULL;
	ow_progress_init(&progress, "comparing");
	struct ow_compare_options o = args->compare;
	o.match.on_progress = ow_progress_show;
	o.match.arg = &progress;
	int r = ow_compare_open(args->path[OW_SIDE_A], args->path[OW_SIDE_B], &o, &compare, &err);
	if (r == 0 && (r = ow_compare_run(compare, &comparison)) < 0) {
		ow_compare_free(compare);
		ow_error_set(&err, -r, "not enough memory");
	}
	ow_progress_done(&progress);
	if (r < 0)
		return ow_cli_failed("compare", &err);
	if (args->json)
		ow_report_compare_json(stdout, comparison);
	else
		ow_report_compare_text(stdout, comparison, ow_terminal_width(stdout),
		                       !args->no_color && ow_terminal_colour(stdout));
	fflush(stdout);
	int code = OW_EXIT_OK;
	if (args->plot) {
		ow_progress_init(&progress, "drawing");
		r = draw(compare, args->plot, &err);
		ow_progress_done(&progress);
		if (r < 0)
			code = ow_cli_failed("compare", &err);
	}
	ow_compare_free(compare);
	return code;
}

int ow_cli_compare(int argc, char **argv)
{
	struct arguments args;
	struct ow_error err;
	int refused = read_arguments(argc, argv, &args, &err);
	if (refused < 0)
		return ow_cli_refused("compare", refused, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	return run(&args);
}
