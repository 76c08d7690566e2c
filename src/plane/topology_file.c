/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a network from a file, and routers from a list of names. */
#include "plane/topology.h"

#include "base/array.h"
#include "base/word.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads up to the end, at most OW_TOPOLOGY_FILE_MAX bytes. */
static int read_all(FILE *file, const char *path, char **ret_text, size_t *ret_size, struct ow_error *err)
{
	size_t size = 0, room = 0, asked = 1 << 16;
	char *text = NULL;
	for (; size == room; asked = 2 * room) {
		if (room > OW_TOPOLOGY_FILE_MAX) {
			free(text);
			return ow_error_set(err, EFBIG, "%s: more than %u MiB", path, OW_TOPOLOGY_FILE_MAX >> 20);
		}
		if (OW_GROW(text, room, asked) < 0) {
			free(text);
			return ow_error_set(err, ENOMEM, "%s: out of memory", path);
		}
		size += fread(text + size, 1, room - size, file);
	}
	if (ferror(file)) {
		free(text);
		return ow_error_set(err, EIO, "%s: cannot be read", path);
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

int ow_topology_read(const char *path, int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	if (!file)
		return ow_error_set(err, errno, "%s: %s", path, strerror(errno));
	char *text = NULL;
	size_t size = 0;
	int r = read_all(file, path, &text, &size, err);
	if (!is_stdin)
		fclose(file);
	if (r < 0)
		return r;
	r = ow_topology_parse(OW_TOPOLOGY_AUTO, path, text, size, default_cost, ret_topology, err);
	free(text);
	if (r == 0 && ow_topology_nodes(*ret_topology) == 0) {
		ow_topology_free(*ret_topology);
		*ret_topology = NULL;
		r = ow_error_set(err, EINVAL, "%s: the network has no routers", path);
	}
	return r;
}

static int no_such_router(const struct ow_topology *topology, const char *name, struct ow_error *err)
{
	struct ow_word_guess guess = {.written = name};
	for (uint32_t i = 0; i < ow_topology_nodes(topology); i++)
		ow_word_offer(&guess, ow_topology_name(topology, i));
	if (guess.best)
		return ow_error_set(err, ENOENT, "the network has no router '%.100s', did you mean '%.100s'?", name,
		                    guess.best);
	return ow_error_set(err, ENOENT, "the network has no router '%.100s'", name);
}

/* Names may contain commas (Rocketfuel's do): the longest name that fits is taken. */
static uint32_t take_router(const struct ow_topology *topology, const char *list, size_t *ret_length)
{
	char name[OW_TOPOLOGY_NAME_MAX + 1];
	size_t end = strlen(list);
	for (;;) {
		if (end < sizeof(name)) {
			memcpy(name, list, end);
			name[end] = 0;
			uint32_t node = ow_topology_find(topology, name);
			if (node != UINT32_MAX) {
				*ret_length = end;
				return node;
			}
		}
		while (end && list[--end] != ',')
			;
		if (end == 0)
			return UINT32_MAX;
	}
}

int ow_topology_routers(const struct ow_topology *topology, const char *list, uint32_t **ret_nodes, uint32_t *ret_count,
                        struct ow_error *err)
{
	uint32_t *nodes = calloc(strlen(list) + 1, sizeof(*nodes)), count = 0;
	if (!nodes)
		return ow_error_set(err, ENOMEM, "out of memory");
	while (*list) {
		size_t length;
		uint32_t node = take_router(topology, list, &length);
		if (node == UINT32_MAX) {
			char name[OW_TOPOLOGY_NAME_MAX + 1];
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(list, ","), list);
			free(nodes);
			return no_such_router(topology, name, err);
		}
		nodes[count++] = node;
		list += length;
		list += *list == ',';
	}
	*ret_nodes = nodes;
	*ret_count = count;
	return 0;
}
