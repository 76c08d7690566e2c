/* SPDX-License-Identifier: Apache-2.0 */
/* The program: a table of commands. Each has its own file and its own --help. */
#include "base/word.h"
#include "capture/file/mapping.h"
#include "capture/file/unpack_more.h"
#include "cli/cli.h"
#include "cli/completions.h"
#include "cli/parts.h"
#include "cli/version.h"
#include "cli/wrap.h"
#include "report/config_manual.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

static const struct ow_cli_part commands[] = {
	{"match", "exact delay and loss from two captures of the same traffic", ow_cli_match},
	{"live", "live delay and loss between two interfaces of this host", ow_cli_live},
	{"point", "the daemon: a measurement point of a network", ow_cli_point},
	{"results", "stored results of a point: lists, worst intervals, sums, plots", ow_cli_results},
	{"web", "a page that shows stored results: network, segments, events", ow_cli_web},
	{"plane", "a network: where to measure, and where the delay is", ow_cli_plane},
	{"fleet", "many points led from one place: certificates, desired state", ow_cli_fleet},
	{"collect", "writes results of a fleet from its bus into PostgreSQL", ow_cli_collect},
	{"doctor", "checks if this host is fit to measure: clock, interfaces, limits", ow_cli_doctor},
	{"lab", "the whole system on this machine: an impaired wire and two points", ow_cli_lab},
	{"flows", "per-flow latency from recorded epochs", ow_cli_flows},
	{"simulate", "makes two-point captures with known truth", ow_cli_simulate},
	{"compare", "every synopsis on two captures beside the exact answer", ow_cli_compare},
	{"reproduce", "recomputes the papers' figures and tables", ow_cli_reproduce},
	{NULL, NULL, NULL},
};

static void help(FILE *out)
{
	fputs("oneway: measures how long packets take from one point of a network to another,\n"
	      "and how many never arrive, from the real traffic: captured before, or live\n"
	      "\n"
	      "usage: oneway COMMAND [OPTION]... [FILE]...\n"
	      "\n",
	      out);
	for (const struct ow_cli_part *c = commands; c->name; c++)
		fprintf(out, "  %-10s %s\n", c->name, c->job);
	fputs("\n"
	      "  --help     print this text; 'oneway help COMMAND' explains a command\n"
	      "  --version  print the version; with --json also libraries and features\n"
	      "\n"
	      "exit code: 0 ok, 1 failed, 2 wrong usage, 3 measured but a given threshold was\n"
	      "           crossed (doctor: a problem was found)\n",
	      out);
}

static int unknown(const char *word)
{
	struct ow_word_guess guess = {.written = word};
	for (const struct ow_cli_part *c = commands; c->name; c++)
		ow_word_offer(&guess, c->name);
	const char *kind = *word == '-' ? "option" : "command";
	if (guess.best)
		ow_cli_say("oneway: unknown %s '%.60s', did you mean '%s'?", kind, word, guess.best);
	else
		ow_cli_say("oneway: unknown %s '%.60s' (see 'oneway --help')", kind, word);
	return OW_EXIT_USAGE;
}

/* argv[0] is the command. */
static int run_command(int argc, char **argv)
{
	for (const struct ow_cli_part *c = commands; c->name; c++) {
		if (strcmp(argv[0], c->name) == 0)
			return c->run(argc, argv);
	}
	return unknown(argv[0]);
}

/* 'help match' is 'match --help', 'help flows query' is 'flows query --help'. */
static int help_of(int words, char **word)
{
	char flag[] = "--help", *argv[] = {word[0], words > 1 ? word[1] : flag, flag, NULL};
	return run_command(words > 1 ? 3 : 2, argv);
}

static int run(int argc, char **argv)
{
	if (argc < 2) {
		help(stderr);
		return OW_EXIT_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 && argc > 2 && strcmp(argv[2], "help") != 0)
		return help_of(argc - 2, argv + 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(stdout);
		return OW_EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0)
		return ow_cli_version(argc - 1, argv + 1);
	/* Not in the help: the build runs them. */
	if (strcmp(argv[1], "completions") == 0)
		return ow_cli_completions(commands, argc - 1, argv + 1);
	if (strcmp(argv[1], "manual") == 0) {
		ow_report_config_manual(stdout);
		return OW_EXIT_OK;
	}
	return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	ow_mapping_allow();
	ow_unpack_more();
	ow_wrap_streams();
	/* At the end threads of libnats may still use what OpenSSL would then free. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
	int code = run(argc, argv);
	/*
	 * If standard output could not be written, the result is lost: that is a failure even if the command succeeded.
	 */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		ow_cli_say("oneway: standard output: %s", strerror(errno));
		return OW_EXIT_FAILED;
	}
	return code;
}
