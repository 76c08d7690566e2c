/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows list FILE: shows what a file of epochs contains. */
#include "cli/flows.h"

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "report/epochs.h"
#include <errno.h>

#define COMMAND "flows list"

struct arguments {
	bool epochs, json, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"epochs", 'e', NULL, ow_option_flag, FIELD(epochs),
         "Print a line for each epoch as well (JSON always has them)."},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print a JSON object instead of text."},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway flows list [OPTION]... FILE\n"
	      "\n"
	      "Shows what a file of epochs contains: how it was recorded, the time range, the\n"
	      "number of packets.\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway flows list a.epochs\n"
	      "  oneway flows list --json a.epochs | jq '.epochs[-1]'\n",
	      stdout);
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
		ow_report_epochs_json(stdout, epochs);
	else
		ow_report_epochs_text(stdout, epochs, args.epochs, ow_terminal_width(stdout));
	ow_epochs_close(epochs);
	return OW_EXIT_OK;
}
