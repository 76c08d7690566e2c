/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows list FILE: what a file of epochs holds. */
#include "base/word.h"
#include "cli/flows.h"

#include "base/time.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "flows/epochs.h"
#include "base/json_writer.h"
#include "base/format.h"
#include "synopsis/colate_plan.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define COMMAND "flows list"

/* Columns of what stands before a line's text. */
#define LABEL 12

struct arguments {
	bool epochs, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"epochs", 'e', NULL, ow_option_flag, FIELD(epochs), "A line for each epoch, too (JSON has them always)."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "A JSON object instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway flows list [OPTION]... FILE\n"
	      "\n"
	      "What a file of epochs holds: how it was recorded, from when to when, how many\n"
	      "packets.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway flows list a.epochs\n"
	      "  oneway flows list --json a.epochs | jq '.epochs[-1]'\n",
	      stdout);
}

struct total {
	uint64_t packets, bytes;
	int64_t begin_ns, end_ns;
};

static struct total add_up(const struct ow_epochs *epochs)
{
	struct total total = {0};
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		total.begin_ns = !i || span.begin_ns < total.begin_ns ? span.begin_ns : total.begin_ns;
		total.end_ns = !i || span.end_ns > total.end_ns ? span.end_ns : total.end_ns;
		total.packets += span.packets;
		total.bytes += span.bytes;
	}
	return total;
}

static void print_epochs(const struct ow_epochs *epochs)
{
	printf("\n%-27s %12s %14s %14s\n", "begin (UTC)", "length", "packets", "bytes");
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		char time[OW_FORMAT], length[OW_DURATION_TEXT], packets[OW_FORMAT], bytes[OW_FORMAT];
		ow_duration_text((double)(span.end_ns - span.begin_ns), length);
		printf("%-27s %12s %14s %14s\n", ow_format_time(span.begin_ns, "%Y-%m-%d %H:%M:%S", time), length,
		       ow_format_count(span.packets, packets), ow_format_count(span.bytes, bytes));
	}
}

static const char *level_name(enum ow_level level)
{
	return level == OW_LEVEL_NAT ? "nat" : level == OW_LEVEL_FRAME ? "frame" : "ip";
}

static void print_text(const struct ow_epochs *epochs, bool each)
{
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	struct total total = add_up(epochs);
	char recording[OW_COLATE_TEXT], key[OW_FLOW_SELECT_TEXT], length[OW_DURATION_TEXT], text[OW_FORMAT];
	ow_colate_params_text(&info->params, recording);
	ow_flow_select_text(&info->select, key);
	fputs("recording   ", stdout);
	ow_format_wrap(stdout, recording, LABEL, ow_terminal_width(stdout));
	printf("flows       by %s, %s\n", key, info->counts ? "counted" : "not counted");
	printf("packets     by level %s%s%s, %u bytes of each, seed %" PRIu64 "\n", level_name(info->level),
	       info->inner ? ", inside tunnels" : "", info->any_ip_id ? ", any IP id" : "", info->id_bytes,
	       info->params.seed);
	printf("epochs      %s", ow_format_count(ow_epochs_count(epochs), text));
	if (info->interval_ns) {
		ow_duration_text((double)info->interval_ns, length);
		printf(" of %s", length);
	}
	printf(", %s %s", ow_format_count(total.packets, text), ow_plural(total.packets, "packet", "packets"));
	printf(", %s bytes\n", ow_format_count(total.bytes, text));
	if (ow_epochs_count(epochs)) {
		ow_duration_text((double)(total.end_ns - total.begin_ns), length);
		printf("time        %s UTC, %s\n", ow_format_time(total.begin_ns, "%Y-%m-%d %H:%M:%S", text), length);
	}
	if (each && ow_epochs_count(epochs))
		print_epochs(epochs);
	if (ow_epochs_damage(epochs))
		printf("warning: %s\n", ow_epochs_damage(epochs));
}

static void print_json(const struct ow_epochs *epochs)
{
	const struct ow_epoch_info *info = ow_epochs_info(epochs);
	struct ow_json json = {.out = stdout, .indent = 1};
	char key[OW_FLOW_SELECT_TEXT];
	struct total total = add_up(epochs);
	ow_flow_select_text(&info->select, key);
	ow_json_object(&json, NULL);
	ow_json_command(&json, COMMAND);
	ow_json_string(&json, "file", ow_epochs_path(epochs));
	ow_json_line(&json);
	ow_json_string(&json, "key", key);
	ow_json_string(&json, "level", level_name(info->level));
	ow_json_flag(&json, "inner", info->inner);
	ow_json_count(&json, "id_bytes", info->id_bytes);
	ow_json_count(&json, "seed", info->params.seed);
	ow_json_count(&json, "unit_ns", info->params.unit_ns);
	ow_json_integer(&json, "interval_ns", info->interval_ns);
	ow_json_flag(&json, "flow_counts", info->counts);
	ow_json_line(&json);
	ow_cli_flows_layers(&json, &info->params);
	ow_json_line(&json);
	ow_json_count(&json, "packets", total.packets);
	ow_json_count(&json, "bytes", total.bytes);
	ow_json_string(&json, "damage", ow_epochs_damage(epochs));
	ow_json_line(&json);
	ow_json_array(&json, "epochs");
	for (size_t i = 0; i < ow_epochs_count(epochs); i++) {
		struct ow_epochs_span span = ow_epochs_span(epochs, i);
		ow_json_line(&json);
		ow_json_object(&json, NULL);
		ow_json_integer(&json, "begin_ns", span.begin_ns);
		ow_json_integer(&json, "end_ns", span.end_ns);
		ow_json_count(&json, "packets", span.packets);
		ow_json_count(&json, "bytes", span.bytes);
		ow_json_end(&json);
	}
	ow_json_end(&json);
	ow_json_end(&json);
}

int ow_cli_flows_list(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	struct ow_epochs *epochs;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands >= 0 && ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	if (operands >= 0 && operands != 1)
		operands = ow_error_set(&err, EINVAL, "needs one file of epochs, got %d", operands);
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_epochs_open(argv[1], &epochs, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	if (args.json)
		print_json(epochs);
	else
		print_text(epochs, args.epochs);
	ow_epochs_close(epochs);
	return OW_EXIT_OK;
}
