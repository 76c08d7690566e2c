/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet's folder, and how points get their certificates from it: once, for their own name, and renewed. */
#include "fleet/enrol.h"

#include "base/state_file.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/bus_users.h"
#include "fleet/enrol_server.h"
#include "fleet/init.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct world {
	char root[64], folder[80], address[40], other[80];
	int stop[2];
	pthread_t thread;
	struct ow_enrol_server server;
	pthread_mutex_t lock; /* of the log: the server writes it */
	char log[8192];
};

static void note(void *arg, bool bad, const char *line)
{
	struct world *w = arg;
	pthread_mutex_lock(&w->lock);
	size_t used = strlen(w->log);
	snprintf(w->log + used, sizeof w->log - used, "%s%s\n", bad ? "! " : "", line);
	pthread_mutex_unlock(&w->lock);
}

static bool logged(struct world *w, const char *text)
{
	pthread_mutex_lock(&w->lock);
	bool found = strstr(w->log, text) != NULL;
	pthread_mutex_unlock(&w->lock);
	return found;
}

static void *serve(void *arg)
{
	struct world *w = arg;
	struct ow_error err;
	assert_int_equal(ow_enrol_serve(&w->server, &err), 0);
	return NULL;
}

static unsigned free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static void make_fleet(const char *folder, const char *address, int64_t valid_ns)
{
	struct ow_fleet_init how = {
		.name = "test", .servers = "bus1,bus2.example:4333", .address = address, .valid_ns = valid_ns};
	struct ow_error err;
	if (ow_fleet_init(folder, &how, &err) < 0)
		fail_msg("%s", err.text);
}

static int begin(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	*state = w;
	pthread_mutex_init(&w->lock, NULL);
	snprintf(w->root, sizeof w->root, "/tmp/oneway-enrol-XXXXXX");
	assert_non_null(mkdtemp(w->root));
	snprintf(w->folder, sizeof w->folder, "%s/fleet", w->root);
	snprintf(w->other, sizeof w->other, "%s/other", w->root);
	snprintf(w->address, sizeof w->address, "127.0.0.1:%u", free_port());
	make_fleet(w->folder, w->address, 3600 * INT64_C(1000000000));
	make_fleet(w->other, w->address, 3600 * INT64_C(1000000000));
	assert_int_equal(pipe(w->stop), 0);
	w->server = (struct ow_enrol_server){
		.folder = w->folder, .listen = w->address, .stop_fd = w->stop[0], .log = note, .arg = w};
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
	for (unsigned i = 0; i < 500 && !logged(w, "certificates at"); i++)
		usleep(10000);
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;
	char command[128];
	assert_int_equal(write(w->stop[1], "x", 1), 1);
	pthread_join(w->thread, NULL);
	close(w->stop[0]);
	close(w->stop[1]);
	snprintf(command, sizeof command, "rm -r %s", w->root);
	assert_int_equal(system(command), 0);
	free(w);
	return 0;
}

static void invite(const char *folder, const char *name, int64_t valid_s, char token[OW_TOKEN_TEXT])
{
	struct ow_fleet *fleet = NULL;
	struct ow_credential ca = {0};
	struct ow_error err;
	char *elsewhere = NULL;
	assert_int_equal(ow_fleet_open(folder, &fleet, &err), 0);
	assert_int_equal(ow_authority_load(fleet, &ca, &err), 0);
	if (ow_authority_invite(fleet, &ca, name, valid_s, token, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_bus_users_apply(fleet, &elsewhere, &err), 0);
	free(elsewhere);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
}

static struct ow_config *configure(const struct world *w, const char *name, const char *state, const char *token)
{
	char text[400], path[120];
	struct ow_config *config = NULL;
	struct ow_error err;
	snprintf(path, sizeof path, "%s/p.yaml", w->root);
	snprintf(text, sizeof text, "fleet: {address: '%s', name: %s, state: %s%s%s}\n", w->address, name, state,
	         token ? ", token: " : "", token ? token : "");
	if (ow_config_parse(path, text, strlen(text), &config, &err) < 0)
		fail_msg("%s", err.text);
	return config;
}

/* Expects this of the next attempt; why: a part of the reason. */
static void expect(const struct world *w, const char *name, const char *state, const char *token, int code,
                   const char *why)
{
	struct ow_config *config = configure(w, name, state, token);
	struct ow_error err = {""};
	(void)mkdir(config->fleet.state, 0700);
	char refused[OW_ENROL_TOKEN] = "";
	int r = ow_enrol(config, refused, &err);
	if (r != code || (why && !strstr(err.text, why)))
		fail_msg("%s: %d '%s' instead of %d '%s'\n%s", name, r, err.text, code, why ? why : "", w->log);
	ow_config_free(config);
}

static char *slurp(const char *folder, const char *name)
{
	char *path = ow_state_path(folder, name), *text = NULL;
	size_t size;
	struct ow_error err;
	if (ow_state_read(path, 1 << 20, &text, &size, &err) < 0)
		fail_msg("%s", err.text);
	free(path);
	return text;
}

static void folder_is_private_and_whole(void **state)
{
	const struct world *w = *state;
	static const char *const files[] = {"README",
	                                    "settings.yaml",
	                                    "ca.pem",
	                                    "ca.key",
	                                    "servers",
	                                    "collector.key",
	                                    "controller.pem",
	                                    "points",
	                                    "nats/bus1/nats.conf",
	                                    "nats/bus1/server.key",
	                                    "nats/bus2.example-4333/users.conf",
	                                    "systemd/oneway-nats.service"};
	struct stat status;
	struct ow_error err;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char *path = ow_state_path(w->folder, files[i]);
		assert_int_equal(stat(path, &status), 0);
		/* Certificates are public, and the folder is not. */
		if (!strstr(path, ".pem"))
			assert_int_equal(status.st_mode & 0077, 0);
		free(path);
	}
	assert_int_equal(stat(w->folder, &status), 0);
	assert_int_equal(status.st_mode & 0077, 0);
	/* A second time changes nothing. */
	char *before = slurp(w->folder, "ca.pem");
	struct ow_fleet_init how = {.name = "again", .servers = "x", .valid_ns = INT64_C(100000000000)};
	assert_int_equal(ow_fleet_init(w->folder, &how, &err), -EEXIST);
	char *after = slurp(w->folder, "ca.pem");
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void init_refuses(void **state)
{
	const struct world *w = *state;
	static const struct ow_fleet_init cases[] = {
		{.name = "a b", .servers = "x"},
		{.name = "a", .servers = ""},
		{.name = "a", .servers = "x,,y"},
		{.name = "a", .servers = "x:0"},
		{.name = "a", .servers = "x:99999"},
		{.name = "a", .servers = "x,x"},
		{.name = "a", .servers = "x\" y"},
		{.name = "a", .servers = "x", .database = "mysql://x"},
		{.name = "a", .servers = "x", .database = "postgresql://x'y"},
		{.name = "a", .servers = "x", .address = "x'y"},
	};
	char path[100], draft[110];
	struct ow_error err;
	snprintf(path, sizeof path, "%s/bad", w->root);
	snprintf(draft, sizeof draft, "%s.new", path);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (ow_fleet_init(path, &cases[i], &err) >= 0)
			fail_msg("%zu was accepted", i);
		assert_int_equal(access(path, F_OK), -1);
		assert_int_equal(access(draft, F_OK), -1);
	}
	struct ow_fleet_init right = {.name = "a", .servers = "x"};
	snprintf(path, sizeof path, "%s/none/fleet", w->root);
	assert_int_equal(ow_fleet_init(path, &right, &err), -ENOENT);
	assert_non_null(strstr(err.text, "none/fleet: No such file or directory; make the folder around it first"));
}

/* An IPv6 address needs brackets only before a port. */
static void hosts(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host;
		unsigned port;
	} good[] = {{"bus.example", "bus.example", 4222}, {"bus:5000", "bus", 5000},
	            {"192.0.2.1:1", "192.0.2.1", 1},      {"fd79::1", "fd79::1", 4222},
	            {"[fd79::1]", "fd79::1", 4222},       {"[fd79::1]:5000", "fd79::1", 5000}};
	static const char *const bad[] = {"",    ":1",        "a:", "a:0", "a:64000", "[fd79::1", "[fd79::1]5000",
	                                  "a b", "fd79::1::2"};
	struct ow_bus_host host;
	struct ow_error err;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_int_equal(ow_bus_host_parse(good[i].text, &host, &err), 0);
		assert_string_equal(host.host, good[i].host);
		assert_int_equal(host.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_bus_host_parse(bad[i], &host, &err), -EINVAL);
}

/* What cannot be looked at may be the folder of a fleet. */
static void folder_that_cannot_be_read(void **state)
{
	(void)state;
	char path[400] = {0};
	struct ow_fleet *fleet;
	struct ow_error err;
	memset(path, 'x', 300);
	assert_int_equal(ow_fleet_open_to_look(path, &fleet, &err), -ENAMETOOLONG);
	assert_null(strstr(err.text, "is not the folder"));
	assert_int_equal(ow_fleet_open_to_look("/dev/null", &fleet, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/dev/null is not the folder of a fleet"));
}

static void enrols_once(void **state)
{
	struct world *w = *state;
	char token[OW_TOKEN_TEXT], other[OW_TOKEN_TEXT];
	invite(w->folder, "london", 60, token);
	expect(w, "london", "a", NULL, -EACCES, "no token");
	expect(w, "london", "a", "12", -EINVAL, "not a token");
	/* For its name only, and only with the right secret. */
	expect(w, "paris", "b", token, -EACCES, "no point 'paris'");
	memcpy(other, token, sizeof other);
	other[0] = other[0] == '0' ? '1' : '0';
	expect(w, "london", "a", other, -EACCES, "not the token");
	expect(w, "london", "a", token, 1, NULL);
	expect(w, "london", "a", token, 0, NULL);
	/* Its answer may have been lost: the same key gets it again, another one does not. */
	char path[120];
	snprintf(path, sizeof path, "%s/a/point.pem", w->root);
	assert_int_equal(unlink(path), 0);
	expect(w, "london", "a", token, 1, NULL);
	expect(w, "london", "c", token, -EACCES, "used already");

	char *servers = NULL;
	snprintf(path, sizeof path, "%s/a", w->root);
	servers = slurp(path, "servers");
	assert_string_equal(servers, "tls://bus1:4222\ntls://bus2.example:4333\n");
	free(servers);
	char *users = slurp(w->folder, "nats/bus1/users.conf");
	assert_non_null(strstr(users, "\"oneway:point/london/1\""));
	assert_null(strstr(users, "paris"));
	free(users);
	assert_true(logged(w, "london is enrolled"));
	assert_true(logged(w, "! 127.0.0.1: london is refused: 'london': the token has been used already"));
}

/* A new token replaces the key, also of a point that is revoked; one that is refused changes nothing. */
static void another_token(void **state)
{
	const struct world *w = *state;
	char token[OW_TOKEN_TEXT], next[OW_TOKEN_TEXT], wrong[OW_TOKEN_TEXT], refused[OW_ENROL_TOKEN] = "", path[120];
	struct ow_error err;
	snprintf(path, sizeof path, "%s/v", w->root);
	invite(w->folder, "vienna", 60, token);
	expect(w, "vienna", "v", token, 1, NULL);
	char *first = slurp(path, "point.key");
	memcpy(wrong, token, sizeof wrong);
	wrong[0] = wrong[0] == '0' ? '1' : '0';
	struct ow_config *config = configure(w, "vienna", "v", wrong);
	assert_int_equal(ow_enrol(config, refused, &err), -EACCES);
	assert_int_equal(ow_enrol(config, refused, &err), 0);
	ow_config_free(config);
	char *same = slurp(path, "point.key");
	assert_string_equal(same, first);
	invite(w->folder, "vienna", 60, next);
	expect(w, "vienna", "v", next, 1, NULL);
	expect(w, "vienna", "v", next, 0, NULL);
	char *second = slurp(path, "point.key");
	assert_string_not_equal(second, first);
	char *users = slurp(w->folder, "nats/bus1/users.conf");
	assert_non_null(strstr(users, "\"oneway:point/vienna/2\""));
	assert_null(strstr(users, "\"oneway:point/vienna/1\""));
	free(first);
	free(same);
	free(second);
	free(users);
}

struct attempt {
	struct ow_config *config;
	pthread_t thread;
	int code;
	struct ow_error err;
};

static void *enrol_now(void *arg)
{
	struct attempt *attempt = arg;
	char refused[OW_ENROL_TOKEN] = "";
	attempt->code = ow_enrol(attempt->config, refused, &attempt->err);
	return NULL;
}

/*
 * Hosts with the same token at the same time: one of them is the point, the other is told. No more than two: the server
 * allows an address four connections, and those of the round before may still be open.
 */
#define HOSTS 2
static void one_of_two_at_once(void **state)
{
	struct world *w = *state;
	for (unsigned round = 0; round < 5; round++) {
		struct attempt attempt[HOSTS] = {0};
		char token[OW_TOKEN_TEXT], name[20];
		unsigned enrolled = 0;
		snprintf(name, sizeof name, "rome%u", round);
		invite(w->folder, name, 60, token);
		for (unsigned i = 0; i < HOSTS; i++) {
			char folder[20];
			snprintf(folder, sizeof folder, "r%u-%u", round, i);
			attempt[i].config = configure(w, name, folder, token);
			assert_int_equal(mkdir(attempt[i].config->fleet.state, 0700), 0);
		}
		for (unsigned i = 0; i < HOSTS; i++)
			assert_int_equal(pthread_create(&attempt[i].thread, NULL, enrol_now, &attempt[i]), 0);
		for (unsigned i = 0; i < HOSTS; i++) {
			pthread_join(attempt[i].thread, NULL);
			enrolled += attempt[i].code == 1;
			if (attempt[i].code != 1 &&
			    (attempt[i].code != -EACCES || !strstr(attempt[i].err.text, "used already")))
				fail_msg("%s: %d '%s'", name, attempt[i].code, attempt[i].err.text);
			ow_config_free(attempt[i].config);
		}
		assert_int_equal(enrolled, 1);
	}
}

static void expires(void **state)
{
	const struct world *w = *state;
	char token[OW_TOKEN_TEXT];
	invite(w->folder, "rome", 0, token);
	expect(w, "rome", "r", token, -EACCES, "expired");
}

/* The token names the authority: another fleet's server does not get its secret. */
static void knows_its_authority(void **state)
{
	const struct world *w = *state;
	char token[OW_TOKEN_TEXT];
	invite(w->other, "oslo", 60, token);
	expect(w, "oslo", "o", token, -EACCES, "not the fleet that the token is of");
}

static void revoked_is_out(void **state)
{
	const struct world *w = *state;
	struct ow_fleet *fleet = NULL;
	struct ow_error err;
	char token[OW_TOKEN_TEXT], path[120], *elsewhere = NULL;
	invite(w->folder, "berlin", 60, token);
	expect(w, "berlin", "e", token, 1, NULL);
	assert_int_equal(ow_fleet_open(w->folder, &fleet, &err), 0);
	assert_int_equal(ow_authority_revoke(fleet, "berlin", &err), 0);
	assert_int_equal(ow_authority_revoke(fleet, "nobody", &err), -ENOENT);
	assert_int_equal(ow_bus_users_apply(fleet, &elsewhere, &err), 0);
	assert_string_equal(elsewhere, " bus1 bus2.example:4333");
	free(elsewhere);
	ow_fleet_close(fleet);
	char *users = slurp(w->folder, "nats/bus1/users.conf");
	assert_null(strstr(users, "berlin"));
	free(users);
	/* The token is dead with it. */
	snprintf(path, sizeof path, "%s/e/point.pem", w->root);
	assert_int_equal(unlink(path), 0);
	expect(w, "berlin", "e", token, -EACCES, "not the token");
	/* A new token is of the next generation; the old one stays out. */
	invite(w->folder, "berlin", 60, token);
	expect(w, "berlin", "f", token, 1, NULL);
	users = slurp(w->folder, "nats/bus1/users.conf");
	assert_non_null(strstr(users, "\"oneway:point/berlin/2\""));
	assert_null(strstr(users, "\"oneway:point/berlin/1\""));
	free(users);
}

static void names(void **state)
{
	const struct world *w = *state;
	static const char *const bad[] = {"a.b",       "",        "a/b",        "*",     ">",
	                                  "collector", "station", "controller", "serve", "bus1"};
	struct ow_fleet *fleet = NULL;
	struct ow_credential ca = {0};
	struct ow_error err;
	char token[OW_TOKEN_TEXT];
	assert_int_equal(ow_fleet_open(w->folder, &fleet, &err), 0);
	assert_int_equal(ow_authority_load(fleet, &ca, &err), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ow_authority_invite(fleet, &ca, bad[i], 60, token, &err), -EINVAL);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
}

static void servers_follow(void **state)
{
	const struct world *w = *state;
	char folder[120], token[OW_TOKEN_TEXT];
	struct ow_error err;
	snprintf(folder, sizeof folder, "%s/nats/bus2.example-4333", w->folder);
	char copy[400];
	snprintf(copy, sizeof copy, "cp -r %s %s/copy && echo >%s/copy/users.conf", folder, w->root, w->root);
	assert_int_equal(system(copy), 0);
	invite(w->folder, "madrid", 60, token);
	snprintf(folder, sizeof folder, "%s/copy", w->root);
	assert_int_equal(ow_enrol_users(w->address, folder, &err), 1);
	char *users = slurp(folder, "users.conf");
	assert_non_null(strstr(users, "\"oneway:point/madrid/1\""));
	free(users);
	/* A point may not have them. */
	snprintf(copy, sizeof copy, "cd %s/a && cp point.key server.key && cp point.pem server.pem", w->root);
	assert_int_equal(system(copy), 0);
	snprintf(folder, sizeof folder, "%s/a", w->root);
	assert_int_equal(ow_enrol_users(w->address, folder, &err), -EACCES);
	assert_non_null(strstr(err.text, "only servers of the bus"));
}

static void send_bytes(const struct world *w, const void *bytes, size_t size)
{
	struct ow_error err;
	int fd = -1;
	assert_int_equal(ow_connect(w->address, &fd, &err), 0);
	usleep(20000);
	(void)!write(fd, bytes, size);
	close(fd);
}

/* What is not TLS, or says nothing, ends; points go on. */
static void garbage(void **state)
{
	const struct world *w = *state;
	uint8_t bytes[4096];
	unsigned seed = 7;
	char token[OW_TOKEN_TEXT];
	for (unsigned k = 0; k < 20; k++) {
		for (size_t i = 0; i < sizeof bytes; i++)
			bytes[i] = (uint8_t)rand_r(&seed);
		send_bytes(w, bytes, 1 + (size_t)k * 200);
	}
	/* A few silent connections of one address do not keep others out for longer than they last. */
	invite(w->folder, "vienna", 60, token);
	expect(w, "vienna", "v", token, 1, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folder_is_private_and_whole),
		cmocka_unit_test(init_refuses),
		cmocka_unit_test(hosts),
		cmocka_unit_test(folder_that_cannot_be_read),
		cmocka_unit_test(enrols_once),
		cmocka_unit_test(another_token),
		cmocka_unit_test(one_of_two_at_once),
		cmocka_unit_test(expires),
		cmocka_unit_test(knows_its_authority),
		cmocka_unit_test(revoked_is_out),
		cmocka_unit_test(names),
		cmocka_unit_test(servers_follow),
		cmocka_unit_test(garbage),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
