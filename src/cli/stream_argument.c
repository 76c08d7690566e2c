/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream_argument.h"

#include "config/keys.h"
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COMMAND "exec:"
/* Options of ssh(1) with an argument. */
#define SSH_OPTIONS     "BbcDEeFIiJLlmOoPpQRSWw"
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-"

/* Behind NAME=, if there is a name. */
static const char *after_name(const char *argument)
{
	size_t length = strspn(argument, NAME_CHARACTERS);
	struct stat st;
	return length && argument[length] == '=' && stat(argument, &st) < 0 ? argument + length + 1 : argument;
}

static bool is_command(const char *what)
{
	return strncmp(what, COMMAND, strlen(COMMAND)) == 0;
}

bool ow_stream_is_argument(const char *argument)
{
	const char *what = after_name(argument);
	struct stat st;
	if (is_command(what) || strcmp(what, "-") == 0)
		return true;
	return !if_nametoindex(what) && stat(what, &st) == 0 &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode));
}

/* "ssh -p 22 user@host command" -> "host" */
static const char *host_of_ssh(char *const *words)
{
	for (size_t i = 1; words[i]; i++) {
		const char *at = strrchr(words[i], '@');
		if (words[i][0] != '-')
			return at ? at + 1 : words[i];
		/* Its last letter may take the next word. */
		if (words[i][1] && !words[i][2] && strchr(SSH_OPTIONS, words[i][1]) && words[i + 1])
			i++;
	}
	return words[0];
}

static int name_command(const char *command, char name[OW_RESULT_NAME], struct ow_error *err)
{
	char **words;
	int r = ow_feed_split(command, &words, err);
	if (r < 0)
		return r;
	const char *slash = strrchr(words[0], '/'), *program = slash ? slash + 1 : words[0];
	snprintf(name, OW_RESULT_NAME, "%s", strcmp(program, "ssh") == 0 ? host_of_ssh(words) : program);
	free(words);
	return 0;
}

static void name_pipe(const char *path, char name[OW_RESULT_NAME])
{
	const char *slash = strrchr(path, '/');
	if (strcmp(path, "-") == 0)
		snprintf(name, OW_RESULT_NAME, "stdin");
	else if (strncmp(path, "/dev/fd/", 8) == 0)
		snprintf(name, OW_RESULT_NAME, "fd%s", path + 8);
	else
		snprintf(name, OW_RESULT_NAME, "%s", slash ? slash + 1 : path);
}

int ow_stream_argument(const char *argument, struct ow_stream_argument *ret, struct ow_error *err)
{
	int r = 0;
	ret->what = after_name(argument);
	if (is_command(ret->what))
		r = name_command(ret->what + strlen(COMMAND), ret->name, err);
	else
		name_pipe(ret->what, ret->name);
	if (ret->what != argument)
		snprintf(ret->name, sizeof ret->name, "%.*s", (int)(ret->what - argument - 1), argument);
	if (r < 0)
		return r;
	for (char *c = ret->name; *c; c++)
		*c = strchr(NAME_CHARACTERS, *c) ? *c : '_';
	return ow_name_check(ret->name, err);
}

int ow_stream_argument_open(const struct ow_stream_argument *argument, const char *program, int64_t lag_ns,
                            struct ow_iface **ret_live, struct ow_error *err)
{
	struct ow_stream_options options = {.name = argument->name, .lag_ns = lag_ns};
	char title[OW_RESULT_NAME + 40];
	snprintf(title, sizeof title, "%s: %s", program, argument->name);
	int r;
	if (is_command(argument->what))
		r = ow_feed_open_command(argument->what + strlen(COMMAND), title, &options.feed, err);
	else if (ow_stream_is_argument(argument->what))
		r = ow_feed_open_pipe(argument->what, &options.feed, err);
	else
		r = ow_feed_open_files(argument->what, &options.feed, err);
	return r < 0 ? r : ow_stream_open(&options, ret_live, err);
}

void ow_stream_argument_places(const struct ow_stream_argument *argument, char ret_places[2][OW_CONFINE_FOLDER])
{
	char real[PATH_MAX];
	struct stat st;
	ret_places[0][0] = ret_places[1][0] = 0;
	if (ow_stream_is_argument(argument->what))
		return;
	bool there = stat(argument->what, &st) == 0;
	const char *slash = there && S_ISDIR(st.st_mode) ? "/" : "";
	/* Of a pattern, what is before its first letter that stands for others. */
	size_t length = there ? strlen(argument->what) : strcspn(argument->what, "*?[");
	snprintf(ret_places[0], OW_CONFINE_FOLDER, "%.*s%s", (int)length, argument->what, slash);
	if (there && realpath(argument->what, real))
		snprintf(ret_places[1], OW_CONFINE_FOLDER, "%.4000s%s", real, slash);
}
