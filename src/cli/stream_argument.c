/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream_argument.h"

#include "capture/file/file_set.h"
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

/* A file of two parts would be read twice. */
static int check_parts(const char *what, char *const *parts, unsigned count, struct ow_error *err)
{
	struct ow_file_set set;
	struct ow_error why;
	size_t files = 0;
	for (unsigned i = 0; i < count; i++) {
		if (ow_file_set_find_part(parts[i], &set, &why) == 0)
			files += set.count;
		ow_file_set_done(&set);
	}
	bool repeated = ow_file_set_find(what, &set, &why) == 0 && set.count < files;
	ow_file_set_done(&set);
	return repeated ? ow_error_set(err, EINVAL, "%.200s: a file is in two of its parts", what) : 0;
}

static int open_files(const char *what, struct ow_stream_options *options, struct ow_streams *ret, struct ow_error *err)
{
	char **parts, name[OW_RESULT_NAME + 100];
	unsigned count;
	int r = ow_file_set_split(what, &parts, &count, err);
	if (r < 0)
		return r;
	if (count > OW_STREAM_PARTS)
		r = ow_error_set(err, E2BIG, "%.200s: at most %u parts can be followed", what, OW_STREAM_PARTS);
	const char *point = options->name;
	if (r == 0 && count > 1) {
		r = check_parts(what, parts, count, err);
		options->name = name;
	}
	for (unsigned i = 0; r == 0 && i < count; i++) {
		const char *slash = strrchr(parts[i], '/');
		snprintf(name, sizeof name, "%s (%.80s)", point, slash && slash[1] ? slash + 1 : parts[i]);
		r = ow_feed_open_files(parts[i], &options->feed, err);
		if (r == 0)
			r = ow_stream_open(options, &ret->part[i], err);
		ret->parts += r == 0;
	}
	options->name = point;
	free(parts);
	return r;
}

int ow_stream_argument_open(const struct ow_stream_argument *argument, const char *program, int64_t lag_ns,
                            struct ow_streams *ret_streams, struct ow_error *err)
{
	struct ow_stream_options options = {.name = argument->name, .lag_ns = lag_ns};
	struct ow_streams streams = {.parts = 0};
	char title[OW_RESULT_NAME + 40];
	snprintf(title, sizeof title, "%s: %s", program, argument->name);
	int r;
	if (is_command(argument->what))
		r = ow_feed_open_command(argument->what + strlen(COMMAND), title, &options.feed, err);
	else if (ow_stream_is_argument(argument->what))
		r = ow_feed_open_pipe(argument->what, &options.feed, err);
	else
		r = open_files(argument->what, &options, &streams, err);
	if (r == 0 && !streams.parts) {
		r = ow_stream_open(&options, &streams.part[0], err);
		streams.parts = r == 0;
	}
	if (r < 0) {
		ow_streams_close(&streams);
		return r;
	}
	*ret_streams = streams;
	return 0;
}

static void places_of(const char *part, ow_stream_place ret_places[2])
{
	char real[PATH_MAX];
	struct stat st;
	bool there = stat(part, &st) == 0;
	const char *slash = there && S_ISDIR(st.st_mode) ? "/" : "";
	/* Of a pattern, what is before its first letter that stands for others. */
	size_t length = there ? strlen(part) : strcspn(part, "*?[");
	snprintf(ret_places[0], OW_CONFINE_FOLDER, "%.*s%s", (int)length, part, slash);
	if (there && realpath(part, real))
		snprintf(ret_places[1], OW_CONFINE_FOLDER, "%.4000s%s", real, slash);
}

void ow_stream_argument_places(const struct ow_stream_argument *argument,
                               ow_stream_place ret_places[2 * OW_STREAM_PARTS])
{
	char **parts;
	unsigned count;
	for (unsigned i = 0; i < 2 * OW_STREAM_PARTS; i++)
		ret_places[i][0] = 0;
	if (ow_stream_is_argument(argument->what) || ow_file_set_split(argument->what, &parts, &count, NULL) < 0)
		return;
	for (unsigned i = 0; i < count && i < OW_STREAM_PARTS; i++)
		places_of(parts[i], ret_places + 2 * i);
	free(parts);
}
