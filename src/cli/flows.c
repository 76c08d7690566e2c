/* SPDX-License-Identifier: Apache-2.0 */
/* oneway flows PART: per-flow latency. Each part has its own file. */
#include "cli/flows.h"

#include "cli/cli.h"
#include <oneway/oneway.h>
#include <stdio.h>
#include <string.h>

static const struct part {
	const char *name, *job;
	int (*run)(int argc, char **argv);
} parts[] = {
	{"record", "the times of a capture's packets, in counters that all flows share", ow_cli_flows_record},
	{"query", "how long the packets of flows took between recordings of two points", ow_cli_flows_query},
	{"list", "what a file of epochs holds", ow_cli_flows_list},
	{"size", "how large a COLATE recording has to be, by its paper's equations", ow_cli_flows_size},
	{NULL, NULL, NULL},
};

static void help(FILE *out)
{
	fputs("usage: oneway flows PART [OPTION]... [FILE]...\n"
	      "\n"
	      "How long the packets of each flow took, from far less than a time for each packet: every\n"
	      "point records by itself, and any two recordings can be asked later.\n"
	      "\n",
	      out);
	for (const struct part *part = parts; part->name; part++)
		fprintf(out, "  %-10s %s\n", part->name, part->job);
	fputs("\n'oneway flows PART --help' explains a part, with examples.\n", out);
}

int ow_cli_flows(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return OW_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help(stdout);
		return OW_EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("oneway %s\n", ow_version());
		return OW_EXIT_OK;
	}
	for (const struct part *part = parts; part->name; part++) {
		if (strcmp(argv[1], part->name) == 0)
			return part->run(argc - 1, argv + 1);
	}
	fprintf(stderr, "oneway flows: there is no part '%.60s' (see 'oneway flows --help')\n", argv[1]);
	return OW_EXIT_USAGE;
}
