/* SPDX-License-Identifier: Apache-2.0 */
/* oneway fleet status: who is there, and how they are. */
#include "cli/fleet.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "fleet/fleet_status.h"
#include "report/fleet_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND "fleet status"

struct arguments {
	const char *dir;
	bool json, no_color, help, version;
};

static const struct ow_option options[] = {
	OW_OPTION_DIR(struct arguments),
	{"json", 0, NULL, ow_option_flag, offsetof(struct arguments, json), "Print JSON (docs/json.md)."},
	OW_OPTIONS_NO_COLOR(struct arguments),
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("oneway fleet status: who is there, and how they are\n"
	      "\n"
	      "usage: oneway fleet status [OPTION]...\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "A line for each point: its state, the version of its configuration (with ! if it\n"
	      "refuses a newer one), the age of its last result, the error of its clock, frames\n"
	      "dropped, lanes, peers that are connected, memory, how long its certificate is\n"
	      "still valid, and its program. Below: what is wrong, and what a point's own file\n"
	      "decides. A narrow terminal shows the most important columns.\n"
	      "\n"
	      "exit code: 0, or 3 if a point has a problem\n"
	      "\n"
	      "examples:\n"
	      "  oneway fleet status\n"
	      "  oneway fleet status --json | jq '.points[] | select(.problem)'\n",
	      stdout);
}

static int show(const struct arguments *args, struct ow_error *err)
{
	struct ow_fleet_status status = {0};
	size_t problems;
	int r = ow_fleet_status_read(ow_cli_fleet_dir(args->dir), "controller", &status, err);
	if (r < 0)
		return r;
	if (args->json) {
		problems = ow_report_fleet_json(stdout, &status);
	} else {
		struct ow_style style = ow_terminal_style(stdout, args->no_color);
		problems = ow_report_fleet_text(stdout, &style, &status);
	}
	ow_fleet_status_done(&status);
	return problems > 0;
}

int ow_cli_fleet_status(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands > 0)
		operands = ow_error_set(&err, EINVAL, "unexpected '%.60s'", argv[1]);
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	int r = show(&args, &err);
	return r < 0 ? ow_cli_failed(COMMAND, &err) : r ? OW_EXIT_CROSSED : OW_EXIT_OK;
}
