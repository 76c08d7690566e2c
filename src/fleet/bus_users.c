/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/bus_users.h"

#include "base/state_file.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/revocation.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Subjects of a user; "@" stands for the name of the point. */
struct permissions {
	const char *const *publish, *const *subscribe;
};

static const char *const point_publish[] = {
	"ow.r.@",
	"ow.s.@",
	"ow.e.@",
	"ow.h.@",
	"$JS.API.DIRECT.GET.KV_cfg.$KV.cfg.@",
	"$JS.API.DIRECT.GET.KV_cfg.$KV.cfg." OW_REVOCATION_KEY, /* NOLINT(bugprone-suspicious-missing-comma) */
	NULL};
/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma) */
static const char *const point_subscribe[] = {"_IN.@.>", "cfg.@", "cfg." OW_REVOCATION_KEY, "ow.q.@", NULL};
static const struct permissions of_point = {point_publish, point_subscribe};

/* A collector takes from the streams by consumers that exist, and asks points for what is missing. */
static const char *const collector_publish[] = {"$JS.API.STREAM.INFO.*",
                                                "$JS.API.CONSUMER.INFO.*.pg",
                                                "$JS.API.CONSUMER.MSG.NEXT.*.pg",
                                                "$JS.ACK.*.pg.>",
                                                "ow.q.*",
                                                NULL};
static const char *const collector_subscribe[] = {"_IN.service.collector.>", NULL};
static const struct permissions of_collector = {collector_publish, collector_subscribe};

/* The station and pages listen, ask, and add events of their own. */
static const char *const station_publish[] = {"ow.e.station", "ow.q.*", "$JS.API.DIRECT.GET.OW_HEALTH.ow.h.*", NULL};
static const char *const station_subscribe[] = {"_IN.service.station.>", "ow.r.*", "ow.s.*", "ow.e.*", "ow.h.*", NULL};
static const struct permissions of_station = {station_publish, station_subscribe};

/* `oneway fleet`: makes the streams, writes desired state, reads health. */
static const char *const controller_publish[] = {"$JS.API.>", "$JS.ACK.>", "$KV.cfg.*", "ow.q.*", NULL};
static const char *const controller_subscribe[] = {
	"_IN.service.controller.>", "ow.r.*", "ow.s.*", "ow.e.*", "ow.h.*", NULL};
static const struct permissions of_controller = {controller_publish, controller_subscribe};

static void print_subjects(FILE *out, const char *what, const char *const *subjects, const char *name)
{
	fprintf(out, "%s: [", what);
	for (const char *const *s = subjects; *s; s++) {
		const char *at = strchr(*s, '@');
		if (at)
			fprintf(out, "%s\"%.*s%s%s\"", s == subjects ? "" : ", ", (int)(at - *s), *s, name, at + 1);
		else
			fprintf(out, "%s\"%s\"", s == subjects ? "" : ", ", *s);
	}
	fputs("]", out);
}

static void print_user(FILE *out, const char *uri, const struct permissions *may, const char *name)
{
	fprintf(out, "  {user: \"%s\", permissions: {", uri);
	print_subjects(out, "publish", may->publish, name);
	fputs(", ", out);
	print_subjects(out, "subscribe", may->subscribe, name);
	/* Points say whether they have what they are asked for. */
	fputs(may == &of_point ? ", allow_responses: {max: 1, expires: \"1m\"}}}\n" : "}}\n", out);
}

static void print_service(FILE *out, const char *name, uint64_t generation, const struct permissions *may)
{
	char uri[OW_URI_TEXT];
	ow_uri_of_service(name, generation, uri);
	print_user(out, uri, may, "");
}

/* Also the generation that a token is for: the point connects right after it has its certificate. */
static void print_point(FILE *out, const struct ow_fleet_point *point)
{
	char uri[OW_URI_TEXT];
	ow_uri_of_point(point->name, point->generation, uri);
	if (point->state == OW_FLEET_ENROLLED)
		print_user(out, uri, &of_point, point->name);
	ow_uri_of_point(point->name, point->token_generation, uri);
	if (point->state != OW_FLEET_REVOKED && point->token[0] && point->token_generation > point->generation)
		print_user(out, uri, &of_point, point->name);
}

int ow_bus_users_print(const struct ow_fleet *fleet, FILE *out, struct ow_error *err)
{
	const struct ow_fleet_settings *s = &fleet->settings;
	struct ow_fleet_point *points = NULL;
	size_t count = 0;
	int r = ow_fleet_points(fleet, &points, &count, err);
	if (r < 0)
		return r;
	fputs("# Written by oneway fleet: who may connect, and what each may publish and read.\nusers: [\n", out);
	print_service(out, "collector", s->collector, &of_collector);
	print_service(out, "station", s->station, &of_station);
	print_service(out, "controller", s->controller, &of_controller);
	for (size_t i = 0; i < count; i++)
		print_point(out, &points[i]);
	fputs("]\n", out);
	free(points);
	return 0;
}

char *ow_bus_folder(const char *path, const struct ow_bus_host *host)
{
	char *folder;
	int n = host->port == OW_BUS_PORT ? asprintf(&folder, "%s/nats/%s", path, host->host)
	                                  : asprintf(&folder, "%s/nats/%s-%u", path, host->host, host->port);
	return n < 0 ? NULL : folder;
}

/* Whether this process is a nats-server, and not another one that has got its number. */
static bool is_server(long pid)
{
	char path[64], *name = NULL;
	size_t size;
	struct ow_error ignored;
	snprintf(path, sizeof path, "/proc/%ld/comm", pid);
	bool is = ow_state_read(path, 64, &name, &size, &ignored) == 0 && strcmp(name, "nats-server\n") == 0;
	free(name);
	return is;
}

int ow_bus_reload(const char *folder)
{
	char *path = ow_state_path(folder, "nats.pid"), *text = NULL;
	size_t size;
	struct ow_error ignored;
	int r = -ESRCH;
	if (path && ow_state_read(path, 32, &text, &size, &ignored) == 0) {
		long pid = strtol(text, NULL, 10);
		if (pid > 1 && is_server(pid))
			r = kill((pid_t)pid, SIGHUP) == 0 ? 0 : -errno;
	}
	free(text);
	free(path);
	return r;
}

static int apply_one(const struct ow_fleet *fleet, const struct ow_yaml *server, const char *users, size_t size,
                     FILE *elsewhere, struct ow_error *err)
{
	struct ow_bus_host host;
	int r = ow_bus_host_parse(server->text, &host, err);
	char *folder = r == 0 ? ow_bus_folder(fleet->path, &host) : NULL,
	     *file = folder ? ow_state_path(folder, "users.conf") : NULL;
	if (r == 0 && !file)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0)
		r = ow_state_write(file, users, size, err);
	if (r == 0 && ow_bus_reload(folder) < 0)
		fprintf(elsewhere, " %s", server->text);
	free(file);
	free(folder);
	return r;
}

int ow_bus_users_apply(const struct ow_fleet *fleet, char **ret_elsewhere, struct ow_error *err)
{
	char *users = NULL, *list = NULL;
	size_t size = 0, list_size;
	FILE *out = open_memstream(&users, &size), *elsewhere = open_memstream(&list, &list_size);
	int r = out && elsewhere ? ow_bus_users_print(fleet, out, err) : ow_error_set(err, ENOMEM, "not enough memory");
	if (out && fclose(out) != 0 && r == 0)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	for (const struct ow_yaml *s = fleet->settings.server_list->first; r == 0 && s; s = s->next)
		r = apply_one(fleet, s, users, size, elsewhere, err);
	if (elsewhere)
		fclose(elsewhere);
	free(users);
	if (r < 0)
		free(list);
	else
		*ret_elsewhere = list;
	return r;
}
