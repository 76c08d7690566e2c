/* SPDX-License-Identifier: Apache-2.0 */
/* oneway doctor [IF]...: judges whether this host is fit to measure, and says what to change. */
#include "report/doctor.h"

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/shared_options.h"
#include "cli/terminal.h"
#include "doctor/examine.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <sys/utsname.h>

#define COMMAND "doctor"

struct arguments {
	const char *config;
	bool try, json, quiet, no_color, help, version;
};

#define FIELD(name) offsetof(struct arguments, name)

static const struct ow_option options[] = {
	{"config", 'c', "FILE", ow_option_text, FIELD(config),
         "Check what this configuration of a point needs: its interfaces, store, certificate, peers, memory."},
	{"try", 0, NULL, ow_option_flag, FIELD(try),
         "Capture from each interface for a second: packet rate, source of timestamps, superframes, drops (needs "
         "CAP_NET_RAW)."},

	{NULL, 0, NULL, NULL, 0, "Output:"},
	{"json", 0, NULL, ow_option_flag, FIELD(json), "Print one JSON object."},
	{"quiet", 'q', NULL, ow_option_flag, FIELD(quiet), "Print only warnings and problems, as text."},
	OW_OPTIONS_NO_COLOR(struct arguments),

	{NULL, 0, NULL, NULL, 0, "Other:"},
	OW_OPTIONS_HELP(struct arguments),
	{0},
};

static void help(void)
{
	fputs("usage: oneway doctor [OPTION]... [IF]...\n"
	      "\n"
	      "Checks the clock, the kernel, the limits and the interfaces of this host. Prints\n"
	      "what it found, what it means for the measurement, and the command to change it.\n"
	      "Changes nothing, and needs no privilege except for --try. Without IF, interfaces\n"
	      "are only listed.\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, options);
	fputs("\n"
	      "Examples:\n"
	      "  oneway doctor\n"
	      "  oneway doctor eth0 --try\n"
	      "  oneway doctor -c london.yaml --quiet\n"
	      "  oneway doctor --json eth0 | jq '.checks[] | select(.state == \"problem\")'\n"
	      "\n"
	      "exit code: 0 no problem, 1 failed, 2 wrong usage, 3 a problem was found\n",
	      stdout);
}

static int show(const struct arguments *args, struct ow_examination *found, bool list)
{
	struct utsname name = {.nodename = ""};
	struct ow_style style = ow_terminal_style(stdout, args->no_color);
	struct ow_doctor_report report = {
		.host = uname(&name) == 0 ? name.nodename : "",
		.point = found->config ? found->config->point : NULL,
		.findings = &found->findings,
		.links = found->links,
		.link_count = found->link_count,
		.list = list,
	};
	/* For an interface that is only listed, what its driver reports. */
	for (size_t i = 0; i < found->link_count && (args->json || (list && i < OW_DOCTOR_LINKS)); i++) {
		if (!found->links[i].detailed)
			ow_facts_link(&found->links[i]);
	}
	if (args->json)
		ow_report_doctor_json(stdout, &report);
	else
		ow_report_doctor_text(stdout, &report, &style, args->quiet);
	return ow_diagnoses_count(&found->findings, OW_VERDICT_PROBLEM) ? OW_EXIT_CROSSED : OW_EXIT_OK;
}

int ow_cli_doctor(int argc, char **argv)
{
	struct arguments args = {0};
	struct ow_error err;
	int operands = ow_options_parse(options, argc, argv, &args, &err);
	if (operands >= 0 && !args.help && args.try && operands == 0 && !args.config)
		operands = ow_error_set(&err, EINVAL, "--try needs an interface, or -c FILE");
	if (operands >= 0 && args.json && args.quiet)
		operands = ow_error_set(&err, EINVAL, "--json and --quiet exclude each other");
	if (operands < 0)
		return ow_cli_misused(COMMAND, &err);
	if (ow_cli_answered(args.help, args.version, help))
		return OW_EXIT_OK;
	struct ow_examine what = {args.config, argv + 1, operands, args.try};
	struct ow_examination found;
	if (ow_examine(&what, &found, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	int code = show(&args, &found, !found.config && operands == 0);
	ow_examination_done(&found);
	return code;
}
