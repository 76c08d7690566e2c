/* SPDX-License-Identifier: Apache-2.0 */
/* Which peers are accepted, over real sockets; both ends report the reason. */
#include "link.h"
#include "mint.h"

#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEED 20260

static struct keys keys;

static int setup(void **state)
{
	(void)state;
	keys_make(&keys);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	keys_remove(&keys);
	return 0;
}

static void expect_text(const struct link *link, int side, int code, const char *text)
{
	if (link->code[side] != code || !strstr(link->err[side].text, text))
		fail_msg("side %d: %d '%s', expected %d '%s'", side, link->code[side], link->err[side].text, code,
		         text);
}

static void talk(struct link *link)
{
	size_t size = 0;
	assert_int_equal(ow_session_send(link->session[CLIENT], (const uint8_t *)"bonjour", 7), 0);
	const uint8_t *frame = link_frame(link, SERVER, &size);
	assert_non_null(frame);
	assert_int_equal(size, 7);
	assert_memory_equal(frame, "bonjour", 7);
	assert_int_equal(ow_session_send(link->session[SERVER], (const uint8_t *)"hello", 5), 0);
	frame = link_frame(link, CLIENT, &size);
	assert_non_null(frame);
	assert_int_equal(size, 5);
	assert_memory_equal(frame, "hello", 5);
	assert_null(ow_session_frame(link->session[CLIENT], &size));
}

static void certificates_name_both(void **state)
{
	(void)state;
	struct ow_tls *london = keys_tls(&keys, "london", "ca"), *paris = keys_tls(&keys, "paris", "ca");
	struct link link;
	link_make(&link, london, "paris", paris, NULL);
	assert_null(ow_session_peer(link.session[CLIENT]));
	assert_null(ow_session_peer(link.session[SERVER]));
	link_open(&link);
	assert_string_equal(ow_session_peer(link.session[CLIENT]), "paris");
	assert_string_equal(ow_session_peer(link.session[SERVER]), "london");
	talk(&link);
	ow_session_close(link.session[CLIENT]);
	link_end(&link);
	expect_text(&link, CLIENT, -ECONNRESET, "closed");
	expect_text(&link, SERVER, -ECONNRESET, "the peer closed the connection");
	link_free(&link);
	ow_tls_free(london);
	ow_tls_free(paris);
}

static void a_key_names_both(void **state)
{
	(void)state;
	struct ow_tls *london = keys_psk(&keys, "psk", "london"), *paris = keys_psk(&keys, "psk", "paris");
	struct link link;
	link_make(&link, london, "paris", paris, "london");
	link_open(&link);
	assert_string_equal(ow_session_peer(link.session[CLIENT]), "paris");
	assert_string_equal(ow_session_peer(link.session[SERVER]), "london");
	talk(&link);
	link_free(&link);
	ow_tls_free(london);
	ow_tls_free(paris);
}

/* Who tries, with which CA (or which pre-shared key, if it has no certificates), whom it expects; the same of the one
 * that listens; what both say. */
static const struct refusal {
	const char *client, *client_ca, *client_expects, *server, *server_ca, *server_expects;
	const char *client_says, *server_says;
} refusals[] = {
	{"london", "ca", "rome", "paris", "ca", NULL, "the peer's name is 'paris', but 'rome' is expected",
         "refuses our certificate: not yet valid, or not the name"},
	{"london", "ca", "paris", "paris", "ca", "rome", "refuses our certificate: not yet valid, or not the name",
         "the peer's name is 'london', but 'rome' is expected"},
	{"other/london", "other/ca", "paris", "paris", "ca", NULL, "('paris') is not signed by this point's CA",
         "not signed by its CA"},
	{"other/london", "both", "paris", "paris", "ca", NULL, "the peer refuses our certificate: not signed by its CA",
         "('london') is not signed by this point's CA"},
	{"london", "psk:psk", "rome", "paris", "psk:psk", NULL, "the peer says that it is not 'rome'",
         "the peer looks for 'rome', but this point is 'paris'"},
	{"london", "psk:psk", "paris", "paris", "psk:psk", "rome", "expects another name than 'london'",
         "the peer's name is 'london', but 'rome' is expected"},
	{"london", "psk:other/psk", "paris", "paris", "psk:psk", NULL, "the peer's pre-shared key is another one",
         "the peer's pre-shared key is another one"},
	{"london", "psk:psk", "paris", "paris", "ca", NULL,
         "the peer shows a certificate, but this point has a pre-shared key",
         "has it a pre-shared key instead of certificates?"},
	{"london", "ca", "paris", "paris", "psk:psk", NULL, "has it a pre-shared key instead of certificates?",
         "the peer offers no pre-shared key: has it certificates?"},
};

static struct ow_tls *tls_of(const char *name, const char *ca)
{
	return strncmp(ca, "psk:", 4) == 0 ? keys_psk(&keys, ca + 4, name) : keys_tls(&keys, name, ca);
}

static void join_cas(void)
{
	char command[400];
	snprintf(command, sizeof command, "cat %s/ca.pem %s/other/ca.pem >%s/both.pem", keys.folder, keys.folder,
	         keys.folder);
	assert_int_equal(system(command), 0);
}

static void refuses_whom_it_should(void **state)
{
	(void)state;
	join_cas();
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];
		struct ow_tls *client = tls_of(r->client, r->client_ca), *server = tls_of(r->server, r->server_ca);
		struct link link;
		link_make(&link, client, r->client_expects, server, r->server_expects);
		/* A client that is accepted only by itself already sends. */
		for (unsigned j = 0; j < 10; j++)
			assert_int_equal(ow_session_send(link.session[CLIENT], (const uint8_t *)"hello", 5), 0);
		link_end(&link);
		expect_text(&link, CLIENT, -EACCES, r->client_says);
		expect_text(&link, SERVER, -EACCES, r->server_says);
		assert_null(ow_session_peer(link.session[SERVER]));
		size_t size;
		assert_null(ow_session_frame(link.session[SERVER], &size));
		/* The answer stays. */
		assert_int_equal(ow_session_drive(link.session[SERVER], &link.err[SERVER]), -EACCES);
		expect_text(&link, SERVER, -EACCES, r->server_says);
		assert_int_equal(ow_session_send(link.session[SERVER], (const uint8_t *)"x", 1), -EPIPE);
		link_free(&link);
		ow_tls_free(client);
		ow_tls_free(server);
	}
}

/* Certificates of the right CA; NULL: accepted as 'london'. */
static const struct odd {
	struct mint mint;
	const char *says;
} odds[] = {
	{{.alternative = "DNS:london", .from_days = -1, .until_days = 1}, NULL},
	{{.cn = "london", .from_days = -1, .until_days = 1}, NULL},
	{{.cn = "rome", .alternative = "DNS:london", .from_days = -1, .until_days = 1}, NULL},
	{{.cn = "x", .alternative = "DNS:london,DNS:rome", .from_days = -1, .until_days = 1}, NULL},
	{{.cn = "x", .alternative = "email:a@b.c,DNS:london", .from_days = -1, .until_days = 1}, NULL},
	{{.alternative = "DNS:london", .from_days = -9, .until_days = -2}, "('london') has expired: valid until 20"},
	{{.alternative = "DNS:london", .from_days = 2, .until_days = 9}, "('london') is not yet valid: valid from 20"},
	{{.alternative = "DNS:london", .use = "serverAuth", .from_days = -1, .until_days = 1},
         "is not for both clients and servers"},
	{{.alternative = "DNS:*", .from_days = -1, .until_days = 1}, "has no name of a point"},
	{{.alternative = "DNS:*.london", .from_days = -1, .until_days = 1}, "has no name of a point"},
	{{.cn = "london", .alternative = "email:a@b.c", .from_days = -1, .until_days = 1}, "has no name of a point"},
	{{.cn = "lon don", .from_days = -1, .until_days = 1}, "has no name of a point"},
	{{.from_days = -1, .until_days = 1, .alternative = "IP:192.0.2.1"}, "has no name of a point"},
	{{.cn = "london", .alternative = "DNS:rome", .from_days = -1, .until_days = 1},
         "the peer's name is 'rome', but 'london' is expected"},
	{{.alternative = "DNS:London", .from_days = -1, .until_days = 1},
         "the peer's name is 'London', but 'london' is expected"},
	{{.alternative = "DNS:london.example", .from_days = -1, .until_days = 1},
         "the peer's name is 'london.example', but 'london' is expected"},
};

static void reads_names_and_dates(void **state)
{
	(void)state;
	struct ow_tls *paris = keys_tls(&keys, "paris", "ca");
	for (size_t i = 0; i < sizeof odds / sizeof *odds; i++) {
		int fds[2];
		struct raw raw;
		struct ow_session *session = NULL;
		struct ow_error err = {""};
		mint(&keys, "odd", &odds[i].mint);
		socket_pair(fds);
		assert_int_equal(ow_session_create(paris, fds[1], true, "london", &session, NULL), 0);
		raw_make(&raw, fds[0], false, &keys, "odd", TLS1_3_VERSION);
		int code = raw_shake(&raw, session, &err);
		if (odds[i].says && (code != -EACCES || !strstr(err.text, odds[i].says)))
			fail_msg("%zu: %d '%s', expected '%s'", i, code, err.text, odds[i].says);
		if (!odds[i].says && (code < 0 || strcmp(ow_session_peer(session), "london") != 0))
			fail_msg("%zu: %d '%s', expected to be accepted", i, code, err.text);
		raw_free(&raw);
		ow_session_free(session);
	}
	ow_tls_free(paris);
}

static void tells_other_versions(void **state)
{
	(void)state;
	struct ow_tls *paris = keys_tls(&keys, "paris", "ca");
	for (int server = 0; server < 2; server++) {
		int fds[2];
		struct raw raw;
		struct ow_session *session = NULL;
		struct ow_error err = {""};
		socket_pair(fds);
		assert_int_equal(ow_session_create(paris, fds[1], server, "london", &session, NULL), 0);
		raw_make(&raw, fds[0], !server, &keys, "london", TLS1_2_VERSION);
		assert_int_equal(raw_shake(&raw, session, &err), -EPROTO);
		assert_string_equal(err.text, "the peer does not speak TLS 1.3");
		raw_free(&raw);
		ow_session_free(session);
	}
	ow_tls_free(paris);
}

/* A client without a certificate. */
static void wants_a_certificate(void **state)
{
	(void)state;
	struct ow_tls *paris = keys_tls(&keys, "paris", "ca");
	int fds[2];
	struct raw raw;
	struct ow_session *session = NULL;
	struct ow_error err = {""};
	socket_pair(fds);
	assert_int_equal(ow_session_create(paris, fds[1], true, NULL, &session, NULL), 0);
	raw_make(&raw, fds[0], false, &keys, NULL, TLS1_3_VERSION);
	assert_int_equal(raw_shake(&raw, session, &err), -EACCES);
	assert_non_null(strstr(err.text, "the peer shows no certificate"));
	raw_free(&raw);
	ow_session_free(session);
	ow_tls_free(paris);
}

/* The session's answer to these bytes, and the end of the connection after them. */
static int answer(struct ow_tls *tls, bool server, const void *bytes, size_t size, struct ow_error *err)
{
	int fds[2], code = 0;
	struct ow_session *session = NULL;
	socket_pair(fds);
	assert_int_equal(ow_session_create(tls, fds[1], server, "london", &session, NULL), 0);
	assert_int_equal(send(fds[0], bytes, size, MSG_NOSIGNAL), size);
	shutdown(fds[0], SHUT_WR);
	for (unsigned i = 0; code == 0 && i < 100; i++)
		code = ow_session_drive(session, err);
	assert_null(ow_session_peer(session));
	ow_session_free(session);
	close(fds[0]);
	return code;
}

static void tells_plain_text(void **state)
{
	(void)state;
	static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n",
	                                    "hello, is this paris?", "\x07\x01\0\0\x01\x01\0\0 a frame without TLS"};
	struct ow_tls *paris = keys_tls(&keys, "paris", "ca");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		for (int server = 0; server < 2; server++) {
			struct ow_error err = {""};
			size_t size = i == 3 ? 28 : strlen(texts[i]);
			int code = answer(paris, server, texts[i], size, &err);
			if (code != -EPROTO || !strstr(err.text, "is not TLS"))
				fail_msg("%s: %d %s", texts[i], code, err.text);
		}
	}
	struct ow_error err = {""};
	assert_int_equal(answer(paris, true, "", 0, &err), -ECONNRESET);
	assert_string_equal(err.text, "the peer closed the connection during the handshake");
	ow_tls_free(paris);
}

/* What a client says first. */
static size_t client_hello(struct ow_tls *tls, uint8_t *bytes, size_t size)
{
	int fds[2];
	struct ow_session *session = NULL;
	socket_pair(fds);
	assert_int_equal(ow_session_create(tls, fds[1], false, "paris", &session, NULL), 0);
	assert_int_equal(ow_session_drive(session, NULL), 0);
	ssize_t n = recv(fds[0], bytes, size, 0);
	assert_true(n > 100 && (size_t)n < size);
	ow_session_free(session);
	close(fds[0]);
	return (size_t)n;
}

static void survives_damaged_handshakes(void **state)
{
	(void)state;
	uint8_t hello[2048];
	struct ow_error err;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	print_message("seed %d\n", SEED);
	for (int psk = 0; psk < 2; psk++) {
		struct ow_tls *london = tls_of("london", psk ? "psk:psk" : "ca"),
			      *paris = tls_of("paris", psk ? "psk:psk" : "ca");
		size_t size = client_hello(london, hello, sizeof hello);
		for (size_t cut = 1; cut < size; cut += 7) {
			assert_int_equal(answer(paris, true, hello, cut, &err), -ECONNRESET);
			assert_string_equal(err.text, "the peer closed the connection during the handshake");
		}
		for (size_t at = 0; at < size; at += 3) {
			uint8_t mask = (uint8_t)(1 + ow_random_below(&random, 255));
			hello[at] ^= mask;
			assert_true(answer(paris, true, hello, size, &err) < 0);
			assert_true(err.text[0]);
			hello[at] ^= mask;
		}
		ow_tls_free(london);
		ow_tls_free(paris);
	}
}

static void survives_garbage(void **state)
{
	(void)state;
	struct ow_tls *paris = keys_tls(&keys, "paris", "ca");
	struct ow_random random;
	ow_random_seed(&random, SEED);
	print_message("seed %d\n", SEED);
	for (unsigned i = 0; i < 400; i++) {
		uint8_t bytes[600];
		struct ow_error err = {""};
		for (size_t j = 0; j < sizeof bytes; j++)
			bytes[j] = (uint8_t)ow_random_u64(&random);
		/* Half of it looks like a record of a handshake. */
		if (i % 2) {
			static const uint8_t record[] = {0x16, 3, 1, 2, 0};
			memcpy(bytes, record, sizeof record);
			bytes[5] = i % 4 == 1 ? 1 : 2;
			bytes[6] = 0;
			bytes[7] = 1;
		}
		assert_true(answer(paris, i % 3, bytes, 1 + ow_random_below(&random, sizeof bytes - 1), &err) < 0);
		assert_true(err.text[0]);
	}
	ow_tls_free(paris);
}

static void names_of_points(void **state)
{
	(void)state;
	static const char *const good[] = {"a", "london", "London-2", "10.0.0.1", "x_y.z"};
	static const char *const bad[] = {"", "-a", ".a", "a b", "a/b", "a*", "a\n", "\xc3\xa9", "a,DNS:b"};
	char name[OW_POINT_NAME + 1];
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(ow_point_name_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(ow_point_name_valid(bad[i]));
	memset(name, 'a', sizeof name);
	name[OW_POINT_NAME] = '\0';
	assert_false(ow_point_name_valid(name));
	name[OW_POINT_NAME - 1] = '\0';
	assert_true(ow_point_name_valid(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_name_both), cmocka_unit_test(a_key_names_both),
		cmocka_unit_test(refuses_whom_it_should), cmocka_unit_test(reads_names_and_dates),
		cmocka_unit_test(tells_other_versions),   cmocka_unit_test(wants_a_certificate),
		cmocka_unit_test(tells_plain_text),       cmocka_unit_test(survives_damaged_handshakes),
		cmocka_unit_test(survives_garbage),       cmocka_unit_test(names_of_points),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
