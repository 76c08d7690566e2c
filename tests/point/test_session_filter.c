/* SPDX-License-Identifier: Apache-2.0 */
/* A filter without the points' session: the endpoint that listens, as each end sees it. */
#include "point/session_filter.h"
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

struct pair {
	int listening, connected, accepted;
	unsigned port;
};

/* family AF_INET6: IPv4 comes in as an IPv6 address. */
static struct pair connect_pair(int family)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_storage bound = {0};
	socklen_t size = sizeof bound;
	struct pair pair = {.listening = socket(family, SOCK_STREAM, 0), .connected = socket(AF_INET, SOCK_STREAM, 0)};
	const struct sockaddr *at = family == AF_INET6 ? (struct sockaddr *)&any : (struct sockaddr *)&to;
	if (pair.listening < 0 || bind(pair.listening, at, family == AF_INET6 ? sizeof any : sizeof to) < 0)
		skip(); /* no IPv6 here */
	assert_int_equal(listen(pair.listening, 1), 0);
	assert_int_equal(getsockname(pair.listening, (struct sockaddr *)&bound, &size), 0);
	/* The port is in the same place in both. */
	to.sin_port = ((struct sockaddr_in *)&bound)->sin_port;
	pair.port = ntohs(to.sin_port);
	assert_int_equal(connect(pair.connected, (struct sockaddr *)&to, sizeof to), 0);
	pair.accepted = accept(pair.listening, NULL, NULL);
	assert_true(pair.accepted >= 0);
	return pair;
}

static void check_family(int family)
{
	struct pair pair = connect_pair(family);
	char want[200], text[200];
	snprintf(want, sizeof want, "ip host 127.0.0.1 and tcp port %u", pair.port);
	assert_int_equal(ow_session_filter(pair.connected, false, text, sizeof text), 0);
	assert_string_equal(text, want);
	assert_int_equal(ow_session_filter(pair.accepted, true, text, sizeof text), 0);
	assert_string_equal(text, want);
	assert_int_equal(ow_session_filter(pair.accepted, true, text, strlen(want)), -EMSGSIZE);
	close(pair.listening);
	close(pair.connected);
	close(pair.accepted);
}

static void test_ipv4(void **state)
{
	(void)state;
	check_family(AF_INET);
}

static void test_mapped(void **state)
{
	(void)state;
	check_family(AF_INET6);
}

static void test_not_connected(void **state)
{
	(void)state;
	char text[200];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(ow_session_filter(fd, false, text, sizeof text), -ENOTCONN);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_not_connected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
