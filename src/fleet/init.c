/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a new fleet. It is made beside its place, and moved there when it is complete. */
#include "fleet/init.h"

#include "base/state_file.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/bus_users.h"
#include "store/postgres_schema.h"
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CA_VALID_S    (INT64_C(3650) * 86400)
#define CLUSTER_PORTS 2000 /* the servers' own port: 6222 for 4222 */
#define SECRET_BYTES  24

struct making {
	const struct ow_fleet_init *how;
	char *path;             /* where the folder will be */
	char *draft;            /* where it is made */
	char program[PATH_MAX]; /* this program, which the units run */
	struct ow_fleet fleet;
	struct ow_credential ca;
	char address[OW_ADDRESS_TEXT];
	char secret[2 * SECRET_BYTES + 1]; /* of the servers among themselves */
	char sample_key[2 * SECRET_BYTES + 1];
	struct ow_error *err;
};

/* Writes FOLDER/NAME, readable by its owner only. */
__attribute__((format(printf, 4, 5))) static int put(const struct making *m, const char *folder, const char *name,
                                                     const char *format, ...)
{
	char *path = ow_state_path(folder, name), *text = NULL;
	va_list args;
	va_start(args, format);
	int n = vasprintf(&text, format, args);
	va_end(args);
	int r = path && n >= 0 ? ow_state_write(path, text, (size_t)n, m->err)
	                       : ow_error_set(m->err, ENOMEM, "not enough memory");
	if (n >= 0)
		free(text);
	free(path);
	return r;
}

static int copy(const struct making *m, const char *from, const char *folder, const char *name)
{
	char *source = ow_state_path(m->draft, from), *bytes = NULL;
	size_t size;
	int r = source ? ow_state_read(source, 65536, &bytes, &size, m->err)
	               : ow_error_set(m->err, ENOMEM, "not enough memory");
	if (r == 0)
		r = put(m, folder, name, "%s", bytes);
	free(bytes);
	free(source);
	return r;
}

static int make_folder(const struct making *m, const char *name)
{
	char *path = ow_state_path(m->draft, name);
	int r = path && mkdir(path, 0700) == 0 ? 0 : ow_error_set(m->err, errno, "%s: %s", name, strerror(errno));
	free(path);
	return r;
}

/* -- the bus ------------------------------------------------------------------------------------------------------- */

/* An address in a URL. */
static void bracket(const struct ow_bus_host *host, char text[OW_ADDRESS_TEXT + 2])
{
	bool v6 = strchr(host->host, ':') != NULL;
	snprintf(text, OW_ADDRESS_TEXT + 2, "%s%s%s", v6 ? "[" : "", host->host, v6 ? "]" : "");
}

static void print_cluster(const struct making *m, FILE *out, const char *listen, unsigned port)
{
	fprintf(out,
	        "\n# The servers among themselves. A certificate alone is not enough, as points have one, too.\n"
	        "cluster {\n"
	        "  name: \"%s\"\n"
	        "  listen: \"%s:%u\"\n"
	        "  authorization { user: \"server\", password: \"%s\", timeout: 5 }\n"
	        "  tls { cert_file: \"server.pem\", key_file: \"server.key\", ca_file: \"ca.pem\", verify: true, "
	        "timeout: 5 }\n"
	        "  routes: [\n",
	        m->how->name, listen, port + CLUSTER_PORTS, m->secret);
	for (const struct ow_yaml *s = m->fleet.settings.server_list->first; s; s = s->next) {
		struct ow_bus_host host;
		char name[OW_ADDRESS_TEXT + 2];
		if (ow_bus_host_parse(s->text, &host, m->err) < 0)
			continue;
		bracket(&host, name);
		fprintf(out, "    \"nats-route://server:%s@%s:%u\"\n", m->secret, name, host.port + CLUSTER_PORTS);
	}
	fputs("  ]\n}\n", out);
}

static void print_server(const struct making *m, FILE *out, const struct ow_bus_host *host)
{
	char name[OW_ADDRESS_TEXT + 2];
	bracket(host, name);
	const char *listen = host->is_address ? name : "0.0.0.0";
	fprintf(out,
	        "# nats-server of the fleet %s at %s. Its files are in this folder; start it there:\n"
	        "#\n"
	        "#     nats-server -c nats.conf\n"
	        "#\n"
	        "# After a change of users.conf: kill -HUP $(cat nats.pid)\n"
	        "server_name: \"%s-%u\"\n"
	        "listen: \"%s:%u\"\n"
	        "pid_file: \"nats.pid\"\n"
	        "max_payload: 1MB\n"
	        "max_pending: 64MB\n"
	        "max_subscriptions: 100\n"
	        "# A connection that a broken network has left is closed after three of these. TCP would wait longer "
	        "for it,\n"
	        "# once more as long as the network was broken.\n"
	        "ping_interval: \"10s\"\n"
	        "write_deadline: \"10s\"\n"
	        "\n"
	        "# A client is the user that the URI in its certificate names.\n"
	        "tls { cert_file: \"server.pem\", key_file: \"server.key\", ca_file: \"ca.pem\", verify_and_map: true, "
	        "timeout: 5 }\n"
	        "authorization { include \"users.conf\" }\n"
	        "\n"
	        "jetstream { store_dir: \"jetstream\", max_memory_store: 64MB, max_file_store: 64GB }\n",
	        m->how->name, host->host, host->host, host->port, listen, host->port);
	if (m->fleet.settings.server_list->count > 1)
		print_cluster(m, out, listen, host->port);
}

static int make_server(const struct making *m, const struct ow_yaml *server)
{
	struct ow_bus_host host;
	char *text = NULL, *folder = NULL;
	size_t size;
	int r = ow_bus_host_parse(server->text, &host, m->err);
	if (r == 0 && (!(folder = ow_bus_folder(m->draft, &host)) || mkdir(folder, 0700) < 0))
		r = ow_error_set(m->err, errno, "%s: %s", server->text,
		                 errno == EEXIST ? "is given twice" : strerror(errno));
	FILE *out = r == 0 ? open_memstream(&text, &size) : NULL;
	if (r == 0 && !out)
		r = ow_error_set(m->err, ENOMEM, "not enough memory");
	if (out) {
		print_server(m, out, &host);
		r = fclose(out) == 0 ? put(m, folder, "nats.conf", "%s", text)
		                     : ow_error_set(m->err, ENOMEM, "not enough memory");
	}
	if (r == 0)
		r = copy(m, "ca.pem", folder, "ca.pem");
	if (r == 0)
		r = ow_authority_make_server(&m->ca, folder, &host, m->err);
	free(text);
	free(folder);
	return r;
}

static int make_bus(struct making *m)
{
	char *elsewhere = NULL, *list = NULL;
	size_t size;
	int r = make_folder(m, "nats");
	for (const struct ow_yaml *s = m->fleet.settings.server_list->first; r == 0 && s; s = s->next)
		r = make_server(m, s);
	if (r == 0)
		r = ow_bus_users_apply(&m->fleet, &elsewhere, m->err);
	free(elsewhere);
	FILE *out = r == 0 ? open_memstream(&list, &size) : NULL;
	for (const struct ow_yaml *s = m->fleet.settings.server_list->first; out && s; s = s->next) {
		struct ow_bus_host host;
		char name[OW_ADDRESS_TEXT + 2];
		if (ow_bus_host_parse(s->text, &host, m->err) < 0)
			continue;
		bracket(&host, name);
		fprintf(out, "tls://%s:%u\n", name, host.port);
	}
	if (out)
		r = fclose(out) == 0 ? put(m, m->draft, OW_FLEET_SERVERS, "%s", list)
		                     : ow_error_set(m->err, ENOMEM, "not enough memory");
	free(list);
	return r;
}

/* -- authority and services ---------------------------------------------------------------------------------------- */

static int make_authority(struct making *m)
{
	static const char *const services[] = {"collector", "station", "controller", "serve"};
	char subject[OW_POINT_NAME + 16];
	snprintf(subject, sizeof subject, "oneway fleet %s", m->how->name);
	int r = ow_credential_make_ca(subject, CA_VALID_S, &m->ca, m->err);
	if (r == 0)
		r = ow_credential_save(m->draft, "ca", &m->ca, m->err);
	for (size_t i = 0; r == 0 && i < sizeof services / sizeof *services; i++)
		r = ow_authority_make_service(&m->ca, m->draft, services[i], 1, m->err);
	return r;
}

/* The first argument of its format is the name of the fleet, the others are those of the service. */
#define UNIT(meaning, what, service)                                                                        \
	"# " meaning "\n[Unit]\nDescription=" what " of the oneway fleet %s\nAfter=network-online.target\n" \
	"Wants=network-online.target\n\n"                                                                   \
	"[Service]\n" service "Restart=always\nRestartSec=2\n\n"                                            \
	"[Install]\nWantedBy=multi-user.target\n"
/* Followed by the arguments; its %s is the program. */
#define PROGRAM "ExecStart=%s "

/* For services that need nothing but the network, and files that they read. */
#define CONFINED                                                                                                       \
	"NoNewPrivileges=yes\nCapabilityBoundingSet=\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\n"         \
	"PrivateDevices=yes\nProtectProc=invisible\nProtectClock=yes\nProtectHostname=yes\nProtectControlGroups=yes\n" \
	"ProtectKernelLogs=yes\nProtectKernelModules=yes\nProtectKernelTunables=yes\nRestrictNamespaces=yes\n"         \
	"RestrictRealtime=yes\nRestrictSUIDSGID=yes\nRestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n"               \
	"LockPersonality=yes\nMemoryDenyWriteExecute=yes\nSystemCallArchitectures=native\n"                            \
	"SystemCallFilter=@system-service landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp\n"  \
	"SystemCallErrorNumber=EPERM\n"

/* What follows the database and the bus. urls: of the bus, one a line. */
static int make_watching_units(const struct making *m, const char *folder, char *urls)
{
	const char *database = m->how->database ? m->how->database : "postgresql:///oneway";
	/* One argument: they are servers of one bus. */
	for (char *c = urls; *c; c++)
		*c = *c != '\n' ? *c : c[1] ? ',' : 0;
	int r = put(m, folder, "oneway-station.service",
	            UNIT("Names segments that are worse than usual: docs/plane.md. Alerts: --alertmanager "
	                 "http://HOST:9093.",
	                 "station",
	                 PROGRAM "plane monitor --follow %s %s --ca %s/ca.pem --cert %s/station.pem --key "
	                         "%s/station.key --incidents /var/lib/oneway-station/incidents.jsonl\n"
	                         "StateDirectory=oneway-station\n" CONFINED),
	            m->how->name, m->program, database, urls, m->path, m->path, m->path);
	return r < 0 ? r
	             : put(m, folder, "oneway-web.service",
	                   UNIT("The page, at http://127.0.0.1:8080: docs/web.md. Another address needs TLS and a "
	                        "token.",
	                        "page", PROGRAM "web %s --fleet %s\n" CONFINED),
	                   m->how->name, m->program, database, m->path);
}

static int make_units(const struct making *m)
{
	char *folder = ow_state_path(m->draft, "systemd");
	int r = folder ? make_folder(m, "systemd") : ow_error_set(m->err, ENOMEM, "not enough memory");
	if (r == 0)
		r = put(m, folder, "oneway-nats.service",
		        UNIT("A server of the bus. HOST: the folder under nats/ that belongs to this host.",
		             "nats-server",
		             "WorkingDirectory=%s/nats/HOST\nExecStart=/usr/sbin/nats-server -c nats.conf\n"
		             "ExecReload=kill -HUP $MAINPID\nLimitNOFILE=100000\n"),
		        m->how->name, m->path);
	if (r == 0)
		r = put(m, folder, "oneway-fleet.service",
		        UNIT("Gives points their certificates, and renews them.", "authority",
		             PROGRAM "fleet serve --dir %s\n"),
		        m->how->name, m->program, m->path);
	if (r == 0)
		r = put(m, folder, "oneway-follow.service",
		        UNIT("On a host of the bus that has only its own folder, HOST: keeps its users up to date.",
		             "users", PROGRAM "fleet follow %s %s/nats/HOST\n"),
		        m->how->name, m->program, m->fleet.settings.address, m->path);
	if (r == 0)
		r = put(m, folder, "oneway-collect.service",
		        UNIT("Takes results from the bus to PostgreSQL. Any number of hosts can run it.", "collector",
		             PROGRAM "collect --dir %s\n" CONFINED),
		        m->how->name, m->program, m->path);
	char *servers = ow_state_path(m->draft, OW_FLEET_SERVERS), *urls = NULL;
	size_t size;
	if (r == 0)
		r = servers ? ow_state_read(servers, 65536, &urls, &size, m->err)
		            : ow_error_set(m->err, ENOMEM, "not enough memory");
	if (r == 0)
		r = make_watching_units(m, folder, urls);
	free(urls);
	free(servers);
	free(folder);
	return r;
}

static int write_schema(const struct making *m)
{
	char *text = NULL;
	size_t size;
	FILE *out = m->how->database ? open_memstream(&text, &size) : NULL;
	if (!out)
		return 0;
	ow_postgres_schema(out);
	int r = fclose(out) == 0 ? put(m, m->draft, "schema.sql", "%s", text)
	                         : ow_error_set(m->err, ENOMEM, "not enough memory");
	free(text);
	return r;
}

static int write_readme(const struct making *m)
{
	return put(
		m, m->draft, "README",
		"The oneway fleet %s. docs/fleet.md of oneway explains it; 'oneway fleet --help' lists the commands.\n"
		"\n"
		"ca.key               the key of the authority. Who has it owns the fleet: keep it here, and a copy "
		"safe.\n"
		"ca.pem               the certificate of the authority, public\n"
		"settings.yaml        name, servers, database\n"
		"points/NAME.yaml     a point: waiting for its certificate, enrolled, or revoked\n"
		"desired/NAME.yaml    what the point should measure, signed\n"
		"versions/N.yaml      what was applied, by version\n"
		"nats/HOST/           all files of a server of the bus: copy the folder to that host\n"
		"servers              addresses of the bus\n"
		"serve.pem, .key      for 'oneway fleet serve', which gives points their certificates\n"
		"controller.pem, .key for 'oneway fleet apply', 'status', 'map'\n"
		"collector.pem, .key  for 'oneway collect'\n"
		"station.pem, .key    for 'oneway plane monitor', 'oneway web', 'oneway results --fleet'\n"
		"schema.sql           tables of PostgreSQL, if the fleet has a database\n"
		"systemd/             units\n",
		m->how->name);
}

/* -- all of it ----------------------------------------------------------------------------------------------------- */

static int add_server(struct ow_yaml *list, const char *text, size_t length)
{
	struct ow_yaml **last = &list->first, *node = calloc(1, sizeof *node);
	if (!node || !(node->text = strndup(text, length))) {
		free(node);
		return -ENOMEM;
	}
	while (*last)
		last = &(*last)->next;
	*last = node;
	list->count++;
	return 0;
}

static int read_servers(struct making *m)
{
	struct ow_yaml *list = calloc(1, sizeof *list);
	struct ow_bus_host host;
	int r = list ? 0 : -ENOMEM;
	m->fleet.tree = list;
	m->fleet.settings.server_list = list;
	for (const char *text = m->how->servers; r == 0; text++) {
		size_t length = strcspn(text, ",");
		r = add_server(list, text, length);
		text += length;
		if (!*text)
			break;
	}
	if (r < 0)
		return ow_error_set(m->err, ENOMEM, "not enough memory");
	if (list->count > OW_BUS_SERVERS_MAX)
		return ow_error_set(m->err, EINVAL, "more than %d servers", OW_BUS_SERVERS_MAX);
	for (const struct ow_yaml *s = list->first; r == 0 && s; s = s->next)
		r = ow_bus_host_parse(s->text, &host, m->err);
	if (r == 0 && !m->fleet.settings.address) {
		r = ow_bus_host_parse(list->first->text, &host, m->err);
		snprintf(m->address, sizeof m->address, "%s", host.host);
		m->fleet.settings.address = m->address;
	}
	return r;
}

static int check(const struct making *m)
{
	const struct ow_fleet_init *how = m->how;
	if (!ow_point_name_valid(how->name))
		return ow_error_set(m->err, EINVAL, "'%.80s' is not a name of a fleet (letters, digits, '.', '_', '-')",
		                    how->name);
	if (how->address && strpbrk(how->address, "'\"\n\\ "))
		return ow_error_set(m->err, EINVAL, "'%.80s' is not an address", how->address);
	if (how->database && (strncmp(how->database, "postgresql://", 13) != 0 || strpbrk(how->database, "'\"\n\\ ")))
		return ow_error_set(m->err, EINVAL, "not the URL of a database, as postgresql://user@host/name");
	return 0;
}

static int make_secret(char hex[2 * SECRET_BYTES + 1], struct ow_error *err)
{
	uint8_t secret[SECRET_BYTES];
	if (RAND_priv_bytes(secret, sizeof secret) != 1)
		return ow_openssl_failed("random numbers", err);
	for (size_t i = 0; i < sizeof secret; i++)
		snprintf(hex + 2 * i, 3, "%02x", secret[i]);
	return 0;
}

static int fill(struct making *m)
{
	int r = make_secret(m->secret, m->err);
	if (r == 0)
		r = make_secret(m->sample_key, m->err);
	m->fleet.settings.sample_key = m->sample_key;
	if (r == 0)
		r = make_folder(m, "points");
	if (r == 0)
		r = make_folder(m, "desired");
	if (r == 0)
		r = make_folder(m, "versions");
	if (r == 0)
		r = ow_fleet_write_settings(m->draft, &m->fleet.settings, m->err);
	if (r == 0)
		r = make_authority(m);
	if (r == 0)
		r = make_bus(m);
	if (r == 0)
		r = make_units(m);
	if (r == 0)
		r = write_schema(m);
	return r < 0 ? r : write_readme(m);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *level)
{
	(void)status;
	(void)type;
	(void)level;
	return remove(path);
}

/* The path without a slash at its end, from the root on. */
static char *absolute(const char *path)
{
	char *folder = *path == '/' ? NULL : getcwd(NULL, 0), *result = NULL;
	int n = asprintf(&result, "%s%s%s", folder ? folder : "", folder ? "/" : "", path);
	free(folder);
	if (n < 0)
		return NULL;
	while (n > 1 && result[n - 1] == '/')
		result[--n] = 0;
	return result;
}

static int make(struct making *m)
{
	struct stat status;
	if (lstat(m->path, &status) == 0)
		return ow_error_set(m->err, EEXIST, "%s is there already: nothing was changed", m->path);
	int r = read_servers(m);
	if (r < 0)
		return r;
	if (mkdir(m->draft, 0700) < 0)
		return ow_error_set(m->err, errno, "%s: %s%s", errno == EEXIST ? m->draft : m->path, strerror(errno),
		                    errno == EEXIST   ? "; an init that was interrupted left it: remove it"
		                    : errno == ENOENT ? "; make the folder around it first"
		                                      : "");
	r = fill(m);
	if (r == 0 && rename(m->draft, m->path) < 0)
		r = ow_error_set(m->err, errno, "%s: %s", m->path, strerror(errno));
	if (r < 0)
		(void)nftw(m->draft, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}

int ow_fleet_init(const char *path, const struct ow_fleet_init *how, struct ow_error *err)
{
	struct making m = {.how = how, .err = err, .path = absolute(path)};
	m.fleet.settings = (struct ow_fleet_settings){.name = how->name,
	                                              .address = how->address,
	                                              .database = how->database,
	                                              .valid_ns = how->valid_ns,
	                                              .collector = 1,
	                                              .station = 1,
	                                              .controller = 1,
	                                              .serve = 1};
	int r = check(&m);
	if (r == 0 && readlink("/proc/self/exe", m.program, sizeof m.program - 1) < 0)
		r = ow_error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	if (r == 0 && (!m.path || asprintf(&m.draft, "%s.new", m.path) < 0)) {
		m.draft = NULL;
		r = ow_error_set(err, ENOMEM, "not enough memory");
	}
	m.fleet.path = m.draft;
	if (r == 0)
		r = make(&m);
	ow_credential_done(&m.ca);
	ow_yaml_free(m.fleet.tree);
	free(m.draft);
	free(m.path);
	return r;
}
