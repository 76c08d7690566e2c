/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that have parts: prints their help and finds the part that is meant. */
#include "cli/parts.h"

#include "base/word.h"
#include "cli/cli.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <string.h>

static ow_cli_parts_list *heard_by;
static void *heard_arg;

void ow_cli_parts_listen(ow_cli_parts_list *list, void *arg)
{
	heard_by = list;
	heard_arg = arg;
}

void ow_cli_parts_tell(const struct ow_cli_part *parts)
{
	if (heard_by)
		heard_by(heard_arg, parts);
}

static void help(FILE *out, const char *command, const char *about, const struct ow_cli_part *parts)
{
	fprintf(out, "usage: oneway %s PART [OPTION]... [FILE]...\n\n%s\n", command, about);
	for (const struct ow_cli_part *part = parts; part->name; part++)
		fprintf(out, "  %-8s %s\n", part->name, part->job);
	fprintf(out, "\n'oneway %s PART --help' explains a part, with examples.\n", command);
}

int ow_cli_parts(const char *command, const char *about, const struct ow_cli_part *parts, int argc, char **argv)
{
	if (argc < 2) {
		help(stderr, command, about, parts);
		return OW_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		ow_cli_parts_tell(parts);
		help(stdout, command, about, parts);
		return OW_EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("oneway %s\n", ow_version());
		return OW_EXIT_OK;
	}
	struct ow_word_guess guess = {.written = argv[1]};
	for (const struct ow_cli_part *part = parts; part->name; part++) {
		if (strcmp(argv[1], part->name) == 0)
			return part->run(argc - 1, argv + 1);
		ow_word_offer(&guess, part->name);
	}
	struct ow_error err;
	if (guess.best)
		ow_error_set(&err, EINVAL, "no part '%.60s', did you mean '%s'?", argv[1], guess.best);
	else
		ow_error_set(&err, EINVAL, "no part '%.60s'", argv[1]);
	return ow_cli_misused(command, &err);
}
