/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/point_argument.h"

#include "capture/file/reader.h"
#include <errno.h>
#include <inttypes.h>
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

/* The = of NAME=FILE if FILE is there, but NAME is no name; else NULL. */
static const char *end_of_bad_name(const char *argument)
{
	const char *equals = strchr(argument, '=');
	return equals && !memchr(argument, '/', (size_t)(equals - argument)) && access(argument, F_OK) < 0 &&
	                       access(equals + 1, F_OK) == 0
	               ? equals
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

/* A name for a point that was given none: that of its file, else its path, else a number besides. */
static const char *free_name(struct ow_point_arguments *points, const char *path)
{
	unsigned i = points->count;
	char *name = points->name[i];
	name_of_file(path, name);
	if (!is_taken(points->point, i, name))
		return name;
	if (!is_taken(points->point, i, path))
		return path;
	snprintf(name, OW_POINT_NAME, "%.200s (%u)", path, i + 1);
	return name;
}

int ow_point_arguments(char *const *argument, unsigned count, struct ow_point_arguments *ret, struct ow_error *err)
{
	if (count > OW_PATH_POINTS)
		return ow_error_set(err, E2BIG, "%u points, but at most %u are possible", count, OW_PATH_POINTS);
	for (ret->count = 0; ret->count < count; ret->count++) {
		unsigned i = ret->count;
		char *end = end_of_name(argument[i]);
		const char *path = end ? end + 1 : argument[i], *bad = end ? NULL : end_of_bad_name(argument[i]);
		if (bad)
			return ow_error_set(err, EINVAL,
			                    "'%.*s' is not a name of a point (1 to %d letters, digits, _ . : -)",
			                    (int)(bad - argument[i]), argument[i], NAME_MOST);
		if (end)
			*end = 0;
		ret->given[i] = end ? argument[i] : NULL;
		if (!*path)
			return ow_error_set(err, EINVAL, "%s%s: no file", end ? argument[i] : "''", end ? "=" : "");
		if (end && is_taken(ret->point, i, argument[i]))
			return ow_error_set(err, EINVAL, "two points are called %s", argument[i]);
		ret->point[i] = (struct ow_path_point){end ? argument[i] : free_name(ret, path), path};
	}
	return 0;
}

/* The ports of the frames, sorted. */
struct ports {
	uint64_t port[OW_PATH_POINTS];
	unsigned count;
};

/* Adds a port; false if there are too many. */
static bool add_port(struct ports *ports, uint64_t port)
{
	unsigned i = 0;
	while (i < ports->count && ports->port[i] < port)
		i++;
	if (i < ports->count && ports->port[i] == port)
		return true;
	if (ports->count == OW_PATH_POINTS)
		return false;
	memmove(&ports->port[i + 1], &ports->port[i], (ports->count - i) * sizeof *ports->port);
	ports->port[i] = port;
	ports->count++;
	return true;
}

static int read_ports(struct ow_reader *reader, struct ports *ports, struct ow_error *err)
{
	const char *path = ow_reader_info(reader)->path;
	struct ow_device_format format;
	struct ow_frame frames[256];
	int n = ow_reader_find_stamps(reader, &format, err);
	if (n < 0)
		return n;
	if (format.device == OW_DEVICE_NONE)
		return ow_error_set(err, EINVAL, "%.200s: no port of a capture device in its frames", path);
	while ((n = ow_reader_read(reader, frames, 256, err)) > 0) {
		for (int i = 0; i < n; i++) {
			struct ow_device_stamp stamp;
			if (ow_device_stamp_read(&format, &frames[i], &stamp) && stamp.has_port &&
			    !add_port(ports, stamp.port))
				return ow_error_set(err, E2BIG, "%.200s: more than %u ports: choose some, as FILE#PORT",
				                    path, OW_PATH_POINTS);
		}
	}
	if (n == 0 && ports->count < 2)
		return ow_error_set(err, EINVAL, "%.200s: the %s of its frames name%s", path,
		                    ow_device_name(format.device), ports->count ? " one port only" : " no port");
	return n;
}

int ow_point_ports(const char *path, struct ow_point_arguments *ret, struct ow_error *err)
{
	struct ports ports = {.count = 0};
	struct ow_reader *reader;
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	r = read_ports(reader, &ports, err);
	ow_reader_close(reader);
	for (ret->count = 0; r == 0 && ret->count < ports.count; ret->count++) {
		unsigned i = ret->count;
		uint32_t device = (uint32_t)(ports.port[i] >> 32), port = (uint32_t)ports.port[i];
		snprintf(ret->name[i], OW_POINT_NAME, "port-%" PRIu32 ":%" PRIu32, device, port);
		if (snprintf(ret->path[i], OW_POINT_PATH, "%s#%" PRIu32 ":%" PRIu32, path, device, port) >=
		    OW_POINT_PATH)
			return ow_error_set(err, ENAMETOOLONG, "%.200s: the path is too long", path);
		ret->given[i] = ret->name[i];
		ret->point[i] = (struct ow_path_point){ret->name[i], ret->path[i]};
	}
	return r;
}
