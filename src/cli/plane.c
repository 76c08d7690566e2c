/* SPDX-License-Identifier: Apache-2.0 */
/* oneway plane: the commands about a network as a whole, and what they share. */
#include "cli/plane.h"
#include "base/word.h"
#include "cli/cli.h"
#include "report/words.h"

#include <errno.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct part {
	const char *name, *job;
	int (*run)(int argc, char **argv);
} parts[] = {
	{"plan", "which routers to upgrade first, and what it saves", ow_cli_plane_plan},
	{"monitor", "paths from the results of segments, and which segment is to blame", ow_cli_plane_monitor},
	{"probe", "delay and loss to reflectors by probes, where nothing passive can see", ow_cli_plane_probe},
	{"reflect", "answers probes (STAMP, TWAMP Light)", ow_cli_plane_reflect},
	{"sets", "what each node of the network must watch", ow_cli_plane_sets},
	{NULL, NULL, NULL},
};

static void help(void)
{
	fputs("usage: oneway plane PART [OPTION]...\n"
	      "\n"
	      "A network as a whole: where to measure, what each place must watch, where the delay is.\n"
	      "\n",
	      stdout);
	for (const struct part *part = parts; part->name; part++)
		printf("  %-8s %s\n", part->name, part->job);
	fputs("\n"
	      "'oneway plane PART --help' explains a part, with examples\n",
	      stdout);
}

int ow_cli_plane(int argc, char **argv)
{
	struct ow_error err;
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help();
		return argc < 2 ? OW_EXIT_USAGE : OW_EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("oneway %s\n", ow_version());
		return OW_EXIT_OK;
	}
	const struct part *near = NULL;
	for (const struct part *part = parts; part->name; part++) {
		if (strcmp(argv[1], part->name) == 0)
			return part->run(argc - 1, argv + 1);
		if (ow_word_distance(argv[1], part->name) <= OW_WORD_NEAR)
			near = part;
	}
	if (near)
		ow_error_set(&err, EINVAL, "no part '%.60s', did you mean '%s'?", argv[1], near->name);
	else
		ow_error_set(&err, EINVAL, "no part '%.60s'", argv[1]);
	return ow_cli_misused("plane", &err);
}

/* Everything up to the end, at most OW_TOPOLOGY_FILE_MAX bytes. */
static int read_all(FILE *file, const char *path, char **ret_text, size_t *ret_size, struct ow_error *err)
{
	size_t size = 0, room = 1 << 16;
	char *text = malloc(room);
	while (text) {
		size += fread(text + size, 1, room - size, file);
		if (size < room)
			break;
		if (room > OW_TOPOLOGY_FILE_MAX) {
			free(text);
			return ow_error_set(err, EFBIG, "%s: more than %u MiB", path, OW_TOPOLOGY_FILE_MAX >> 20);
		}
		room *= 2;
		char *grown = realloc(text, room);
		if (!grown)
			free(text);
		text = grown;
	}
	if (!text)
		return ow_error_set(err, ENOMEM, "%s: out of memory", path);
	if (ferror(file)) {
		free(text);
		return ow_error_set(err, EIO, "%s: cannot be read", path);
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

int ow_plane_read(const char *path, int64_t default_cost, struct ow_topology **ret_topology, struct ow_error *err)
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
		r = ow_error_set(err, EINVAL, "%s: no routers in it", path);
	}
	return r;
}

int ow_option_cost(void *field, const char *value, struct ow_error *err)
{
	if (ow_cost_parse(value, strlen(value), field) < 0)
		return ow_error_set(err, EINVAL, "'%.40s' is not a cost above 0", value);
	return 0;
}

static int no_such_router(const struct ow_topology *topology, const char *name, struct ow_error *err)
{
	const char *near = NULL;
	unsigned nearest = OW_WORD_NEAR + 1;
	for (uint32_t i = 0; i < ow_topology_nodes(topology); i++) {
		unsigned distance = ow_word_distance(name, ow_topology_name(topology, i));
		if (distance < nearest && distance < strlen(name)) {
			nearest = distance;
			near = ow_topology_name(topology, i);
		}
	}
	if (near)
		return ow_error_set(err, ENOENT, "the network has no router '%.100s', did you mean '%.100s'?", name,
		                    near);
	return ow_error_set(err, ENOENT, "the network has no router '%.100s'", name);
}

/* Names may have commas themselves (Rocketfuel's do): the longest name that fits is taken. */
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

int ow_plane_routers(const struct ow_topology *topology, const char *list, uint32_t **ret_nodes, uint32_t *ret_count,
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

int ow_plane_warn_parts(const char *command, const struct ow_topology *topology)
{
	uint32_t parts_found;
	if (ow_topology_parts(topology, NULL, &parts_found) < 0)
		return -ENOMEM;
	if (parts_found > 1)
		fprintf(stderr,
		        "oneway %s: warning: the network falls into %u parts; routers of different parts have no "
		        "path\n",
		        command, parts_found);
	return 0;
}
