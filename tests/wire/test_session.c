/* SPDX-License-Identifier: Apache-2.0 */
/* Two sessions over real sockets: who is accepted, what is carried, how it ends. */
#include "link.h"

#include "base/random.h"
#include "wire/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* Who tries, whom it expects, who answers, whom that expects; what both say. */
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
	{"london", NULL, "rome", "paris", NULL, NULL, "the peer says that it is not 'rome'",
         "the peer looks for 'rome', but this point is 'paris'"},
	{"london", NULL, "paris", "paris", NULL, "rome", "expects another name than 'london'",
         "the peer's name is 'london', but 'rome' is expected"},
	{"london", NULL, "paris", "paris", "ca", NULL,
         "the peer shows a certificate, but this point has a pre-shared key",
         "has it a pre-shared key instead of certificates?"},
	{"london", "ca", "paris", "paris", NULL, NULL, "has it a pre-shared key instead of certificates?",
         "the peer offers no pre-shared key: has it certificates?"},
};

static struct ow_tls *tls_of(const char *name, const char *ca)
{
	return ca ? keys_tls(&keys, name, ca) : keys_psk(&keys, "psk", name);
}

static void refuses_whom_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *r = &refusals[i];
		struct ow_tls *client = tls_of(r->client, r->client_ca), *server = tls_of(r->server, r->server_ca);
		struct link link;
		link_make(&link, client, r->client_expects, server, r->server_expects);
		link_end(&link);
		print_message("client: %s\nserver: %s\n", link.err[CLIENT].text, link.err[SERVER].text);
		expect_text(&link, CLIENT, -EACCES, r->client_says);
		expect_text(&link, SERVER, -EACCES, r->server_says);
		assert_null(ow_session_peer(link.session[SERVER]));
		link_free(&link);
		ow_tls_free(client);
		ow_tls_free(server);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_name_both),
		cmocka_unit_test(a_key_names_both),
		cmocka_unit_test(refuses_whom_it_should),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
