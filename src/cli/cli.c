/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands say and answer. */
#include "cli/cli.h"

#include "base/utf8.h"
#include <errno.h>
#include <oneway/oneway.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_BYTES 9000 /* enough for two paths of 4096 bytes; a longer message is cut */

bool ow_cli_answered(bool help_wanted, bool version_wanted, void (*print_help)(void))
{
	if (help_wanted)
		print_help();
	else if (version_wanted)
		printf("oneway %s\n", ow_version());
	return help_wanted || version_wanted;
}

void ow_cli_say(const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	ow_utf8_clean(line);
	fprintf(stderr, "%s\n", line);
}

int ow_cli_failed(const char *command, const struct ow_error *err)
{
	ow_cli_say("oneway %s: %s", command, err->text);
	return OW_EXIT_FAILED;
}

int ow_cli_misused(const char *command, const struct ow_error *err)
{
	ow_cli_say("oneway %s: %s (see 'oneway %s --help')", command, err->text, command);
	return OW_EXIT_USAGE;
}

int ow_cli_refused(const char *command, int code, const struct ow_error *err)
{
	static const int of_files[] = {EACCES, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, EROFS};
	for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
		if (code == -of_files[i])
			return ow_cli_failed(command, err);
	return ow_cli_misused(command, err);
}
