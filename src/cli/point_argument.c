/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/point_argument.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_MOST       64 /* bytes of a name */
#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-"

/* The = behind a name; NULL if there is no name. */
static char *end_of_name(char *argument)
{
	size_t length = strspn(argument, NAME_CHARACTERS);
	return length && length <= NAME_MOST && argument[length] == '=' && access(argument, F_OK) < 0
	               ? argument + length
	               : NULL;
}

/* "dir/client.pcap.gz" -> "client" */
static void name_of_file(const char *path, char name[OW_POINT_NAME])
{
	size_t length = strlen(path);
	while (length && path[length - 1] == '/')
		length--;
	size_t start = length;
	while (start && path[start - 1] != '/')
		start--;
	snprintf(name, OW_POINT_NAME, "%.*s", (int)(length - start), path + start);
	char *dot = strstr(name, ".pcap");
	if (dot && dot != name)
		*dot = 0;
}

static bool is_taken(const struct ow_path_point *point, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(point[i].name, name) == 0)
			return true;
	}
	return false;
}

int ow_point_arguments(char *const *argument, unsigned count, struct ow_point_arguments *ret, struct ow_error *err)
{
	if (count > OW_PATH_POINTS)
		return ow_error_set(err, E2BIG, "%u points, but at most %u are possible", count, OW_PATH_POINTS);
	for (ret->count = 0; ret->count < count; ret->count++) {
		unsigned i = ret->count;
		char *end = end_of_name(argument[i]);
		const char *path = end ? end + 1 : argument[i];
		if (end)
			*end = 0;
		ret->given[i] = end ? argument[i] : NULL;
		name_of_file(path, ret->name[i]);
		const char *name = end ? argument[i] : ret->name[i];
		bool taken = is_taken(ret->point, i, name);
		if (!*path)
			return ow_error_set(err, EINVAL, "%s=: no file", name);
		if (end && taken)
			return ow_error_set(err, EINVAL, "two points are called %s", name);
		ret->point[i] = (struct ow_path_point){taken ? path : name, path};
	}
	return 0;
}
