/* SPDX-License-Identifier: Apache-2.0 */
/* oneway point keygen: certificates for points, or a pre-shared key. */
#include "cli/cli.h"
#include "cli/options.h"
#include "exchange/session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define COMMAND "point keygen"
#define DAYS    825 /* two years, and some time to notice */

struct arguments {
	const char *folder, *psk;
	uint64_t days;
	bool help;
};

static const struct ow_option table[] = {
	{"folder", 'f', "DIR", ow_option_text, offsetof(struct arguments, folder),
         "Folder of the files; it is created if it does not exist. Default: the current folder."},
	{"days", 'd', "N", ow_option_count, offsetof(struct arguments, days),
         "Validity of the points' certificates. Default 825; a new CA is valid for 10 years or longer."},
	{"psk", 0, "FILE", ow_option_text, offsetof(struct arguments, psk),
         "Create a pre-shared key instead. Use it only in a lab: everybody who has it can use any name."},
	{"help", 'h', NULL, ow_option_flag, offsetof(struct arguments, help), "Print this text."},
	{.name = NULL},
};

static void help(void)
{
	fputs("oneway point keygen: certificates and keys that points authenticate with\n"
	      "\n"
	      "usage: oneway point keygen [--folder DIR] [--days N] NAME...\n"
	      "       oneway point keygen --psk FILE\n"
	      "\n",
	      stdout);
	ow_options_help(stdout, table);
	fputs("\n"
	      "Writes ca.pem and ca.key, and NAME.pem and NAME.key for each point. If the\n"
	      "folder has a CA already, it is used. No file is overwritten. A point needs its\n"
	      "own .pem and .key and ca.pem. Keep ca.key where it is: it is needed only for\n"
	      "further points.\n"
	      "\n"
	      "examples:\n"
	      "  oneway point keygen --folder keys london paris\n"
	      "  oneway point keygen --folder keys rome          another point, the same CA\n"
	      "  oneway point keygen --psk lab.psk\n",
	      stdout);
}

static int make_psk(const char *path)
{
	struct ow_error err;
	if (ow_tls_make_psk(path, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	printf("%s: a pre-shared key for all points of a lab\n", path);
	return OW_EXIT_OK;
}

static int make_certificates(const struct arguments *args, const char *const *names, unsigned count)
{
	struct ow_error err;
	if (ow_tls_make_certificates(args->folder, names, count, (unsigned)args->days, &err) < 0)
		return ow_cli_failed(COMMAND, &err);
	printf("%s/ca.pem: the CA, for every point\n%s/ca.key: signs further points; keep it safe\n", args->folder,
	       args->folder);
	for (unsigned i = 0; i < count; i++)
		printf("%s/%s.pem, %s/%s.key: for %s only\n", args->folder, names[i], args->folder, names[i], names[i]);
	return OW_EXIT_OK;
}

int ow_cli_point_keygen(int argc, char **argv)
{
	struct arguments args = {.folder = ".", .days = DAYS};
	struct ow_error err;
	int names = ow_options_parse(table, argc, argv, &args, &err);
	if (names < 0)
		return ow_cli_misused(COMMAND, &err);
	if (args.help) {
		help();
		return OW_EXIT_OK;
	}
	if (args.psk && names > 0) {
		ow_error_set(&err, EINVAL, "--psk makes one key for all points: give no names");
		return ow_cli_misused(COMMAND, &err);
	}
	if (args.psk)
		return make_psk(args.psk);
	if (names == 0) {
		ow_error_set(&err, EINVAL, "give the names of the points, or --psk FILE");
		return ow_cli_misused(COMMAND, &err);
	}
	if (args.days == 0 || args.days > OW_TLS_DAYS_MAX) {
		ow_error_set(&err, EINVAL, "--days: 1 to %d", OW_TLS_DAYS_MAX);
		return ow_cli_misused(COMMAND, &err);
	}
	return make_certificates(&args, (const char *const *)argv + 1, (unsigned)names);
}
