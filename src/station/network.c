/* SPDX-License-Identifier: Apache-2.0 */
/* The network of the station, from a file or from FRR's vtysh, with names for router ids. */
#include "station/network.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* vtysh answers at once unless it has a problem. */
#define VTYSH_WAIT_MS 10000

/* Reads to the end, up to a limit of time and size. */
static int read_answer(int fd, char **ret_text, size_t *ret_size)
{
	size_t size = 0, room = 1 << 16;
	char *text = malloc(room);
	while (text) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (poll(&ready, 1, VTYSH_WAIT_MS) <= 0) {
			free(text);
			return -ETIMEDOUT;
		}
		ssize_t n = read(fd, text + size, room - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*ret_text = text;
			*ret_size = size;
			return n < 0 ? -errno : 0;
		}
		size += (size_t)n;
		if (size == room) {
			room *= 2;
			char *grown = room <= OW_TOPOLOGY_FILE_MAX ? realloc(text, room) : NULL;
			if (!grown)
				free(text);
			text = grown;
		}
	}
	return -ENOMEM;
}

/* Runs the program directly, without a shell. */
static int start(const struct ow_station *station, pid_t *ret_pid, int *ret_fd)
{
	int pair[2];
	char *argv[6];
	int n = 0;
	argv[n++] = (char *)station->vtysh;
	if (station->vtysh_socket) {
		argv[n++] = (char *)"--vty_socket";
		argv[n++] = (char *)station->vtysh_socket;
	}
	argv[n++] = (char *)"-c";
	argv[n++] = (char *)"show ip ospf database router json";
	argv[n] = NULL;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	int r = posix_spawnp(ret_pid, station->vtysh, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(pair[1]);
	if (r)
		close(pair[0]);
	else
		*ret_fd = pair[0];
	return -r;
}

static int ask_vtysh(const struct ow_station *station, struct ow_topology **ret_topology, struct ow_error *err)
{
	pid_t pid = -1;
	int fd = -1, status = 0;
	char *text = NULL;
	size_t size = 0;
	int r = start(station, &pid, &fd);
	if (r < 0)
		return ow_error_set(err, -r, "%s: %s", station->vtysh, strerror(-r));
	r = read_answer(fd, &text, &size);
	close(fd);
	if (r < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r < 0)
		return ow_error_set(err, -r, "%s: no answer: %s", station->vtysh, strerror(-r));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		r = ow_error_set(err, EIO, "%s: failed: is ospfd running?", station->vtysh);
	else
		r = ow_topology_parse_frr(station->vtysh, text, size, ret_topology, err);
	free(text);
	return r;
}

static const char *name_of(const struct ow_station *station, const char *id)
{
	for (unsigned i = 0; i < station->routers; i++)
		if (strcmp(station->router_id[i], id) == 0)
			return station->router_name[i];
	return id;
}

/* The same network with the router names of the configuration. */
static int rename_routers(const struct ow_station *station, struct ow_topology **topology, struct ow_error *err)
{
	struct ow_topology *named, *old = *topology;
	if (!station->routers)
		return 0;
	if (ow_topology_create(&named) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < ow_topology_nodes(old); i++) {
		uint32_t number;
		const char *name = name_of(station, ow_topology_name(old, i));
		r = ow_topology_add_node(named, name, strlen(name), &number, err);
		if (r == 0 && number != i)
			r = ow_error_set(err, EINVAL, "names: two routers have the name %.100s", name);
	}
	for (uint32_t i = 0; r == 0 && i < ow_topology_nodes(old); i++) {
		uint32_t count;
		const struct ow_link *link = ow_topology_from(old, i, &count);
		for (uint32_t n = 0; r == 0 && n < count; n++)
			r = ow_topology_add_link(named, &link[n], err);
	}
	if (r == 0 && ow_topology_finish(named) < 0)
		r = ow_error_set(err, ENOMEM, "out of memory");
	ow_topology_free(r < 0 ? named : old);
	if (r == 0)
		*topology = named;
	return r;
}

static int mark(const struct ow_station *station, const struct ow_topology *topology, bool **ret_is_mrouter,
                struct ow_error *err)
{
	bool *is_mrouter = calloc((size_t)ow_topology_nodes(topology) + 1, sizeof(*is_mrouter));
	if (!is_mrouter)
		return ow_error_set(err, ENOMEM, "out of memory");
	/* All routers of a map have a point. */
	for (uint32_t i = 0; station->map && i < ow_topology_nodes(topology); i++)
		is_mrouter[i] = true;
	for (unsigned i = 0; i < station->mrouters; i++) {
		uint32_t node = ow_topology_find(topology, station->mrouter[i]);
		/* A router that FRR does not see now may come back. In a file a missing router is an error. */
		if (node == UINT32_MAX && station->network) {
			free(is_mrouter);
			return ow_error_set(err, ENOENT, "%s: no router '%.100s', which m_routers names",
			                    station->network, station->mrouter[i]);
		}
		if (node != UINT32_MAX)
			is_mrouter[node] = true;
	}
	*ret_is_mrouter = is_mrouter;
	return 0;
}

int ow_station_network(const struct ow_station *station, struct ow_topology **ret_topology, bool **ret_is_mrouter,
                       struct ow_error *err)
{
	struct ow_topology *topology = NULL;
	const char *file = station->map ? station->map : station->network;
	int r = file ? ow_topology_read(file, station->default_cost, &topology, err)
	             : ask_vtysh(station, &topology, err);
	if (r < 0)
		return r;
	r = rename_routers(station, &topology, err);
	if (r == 0)
		r = mark(station, topology, ret_is_mrouter, err);
	if (r < 0)
		ow_topology_free(topology);
	else
		*ret_topology = topology;
	return r;
}

/* Links of a that b does not have, or has at another cost. */
static void put_differences(const struct ow_topology *a, const struct ow_topology *b, const char *gone, bool costs,
                            char *text, size_t size)
{
	for (uint32_t i = 0; i < ow_topology_nodes(a); i++) {
		uint32_t count, from = ow_topology_find(b, ow_topology_name(a, i));
		const struct ow_link *link = ow_topology_from(a, i, &count);
		for (uint32_t n = 0; n < count; n++) {
			uint32_t to = ow_topology_find(b, ow_topology_name(a, link[n].to));
			const struct ow_link *other =
				from != UINT32_MAX && to != UINT32_MAX ? ow_topology_link(b, from, to) : NULL;
			size_t used = strlen(text);
			if (!other)
				snprintf(text + used, size - used, "%s%s>%s %s", used ? ", " : "",
				         ow_topology_name(a, i), ow_topology_name(a, link[n].to), gone);
			else if (costs && other->cost != link[n].cost)
				snprintf(text + used, size - used, "%s%s>%s costs %.10g", used ? ", " : "",
				         ow_topology_name(a, i), ow_topology_name(a, link[n].to),
				         (double)other->cost / OW_COST_ONE);
		}
	}
}

bool ow_station_network_changes(const struct ow_topology *a, const struct ow_topology *b, char *text, size_t size)
{
	text[0] = 0;
	if (ow_topology_same(a, b))
		return false;
	put_differences(a, b, "is gone", true, text, size);
	put_differences(b, a, "is new", false, text, size);
	if (!*text)
		snprintf(text, size, "routers were added or removed");
	return true;
}
