/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in their usual notations, over the loopback interface. */
#include "link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof address;
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
	                                           : ((struct sockaddr_in *)&address)->sin_port);
}

static bool have_ipv6(void)
{
	int fd = -1;
	bool have = ow_listen("[::1]:0", &fd, NULL) == 0;
	if (have)
		close(fd);
	return have;
}

static void connects(const char *at, const char *to, const char *seen)
{
	int listener = -1, far = -1, near = -1;
	struct ow_error err = {""};
	char address[64], text[OW_ADDRESS_TEXT];
	if (ow_listen(at, &listener, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ow_accept(listener, &near), -EAGAIN);
	snprintf(address, sizeof address, "%s:%u", to, port_of(listener));
	if (ow_connect(address, &far, &err) < 0)
		fail_msg("%s", err.text);
	struct pollfd poll_listener = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&poll_listener, 1, 5000), 1);
	assert_int_equal(ow_accept(listener, &near), 0);
	ow_address_text(far, text);
	assert_string_equal(text, address);
	ow_address_text(near, text);
	if (strncmp(text, seen, strlen(seen)) != 0)
		fail_msg("%s, expected %s...", text, seen);
	assert_int_equal(recv(near, text, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
	close(listener);
	close(far);
	close(near);
}

static void finds_the_other_end(void **state)
{
	(void)state;
	connects("127.0.0.1:0", "127.0.0.1", "127.0.0.1:");
	connects("0.0.0.0:0", "127.0.0.1", "127.0.0.1:");
	if (!have_ipv6()) {
		print_message("no IPv6 here\n");
		connects(":0", "127.0.0.1", "127.0.0.1:");
		return;
	}
	connects("[::1]:0", "[::1]", "[::1]:");
	connects(":0", "[::1]", "[::1]:");
	connects(":0", "127.0.0.1", "127.0.0.1:");
}

/* Calls `check` in a process with an empty /etc; it returns 0 if all is well. */
static void with_empty_etc(int (*check)(void))
{
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", "/etc", "tmpfs", 0, NULL) < 0)
			_exit(77);
		_exit(check());
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int find_localhost(void)
{
	struct sockaddr_storage address;
	int fd = -1;
	return ow_listen("localhost:0", &fd, NULL) < 0 ||
	       ow_address_find("localhost:862", NULL, AF_UNSPEC, false, &address, NULL) < 0 ||
	       ow_address_find("LocalHost:862", NULL, AF_INET6, false, &address, NULL) < 0;
}

/* On a root without /etc/hosts and without a name server, as debootstrap leaves it. */
static void localhost_needs_no_hosts_file(void **state)
{
	(void)state;
	with_empty_etc(find_localhost);
}

static int write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	return !file || fputs(text, file) < 0 || fclose(file) != 0;
}

static int connect_to_second(void)
{
	int listener = -1, fd = -1;
	char address[32], text[OW_ADDRESS_TEXT];
	if (write_file("/etc/nsswitch.conf", "hosts: files\n") ||
	    write_file("/etc/hosts", "::1 paris\n127.0.0.1 paris\n") || ow_listen("127.0.0.1:0", &listener, NULL) < 0)
		return 1;
	snprintf(address, sizeof address, "paris:%u", port_of(listener));
	if (ow_connect(address, &fd, NULL) < 0)
		return 2;
	struct pollfd connected = {.fd = fd, .events = POLLOUT};
	if (poll(&connected, 1, 5000) != 1)
		return 3;
	ow_address_text(fd, text);
	return strncmp(text, "127.0.0.1:", 10) == 0 ? 0 : 4;
}

/* The point listens at one of the addresses of its name only. */
static void tries_every_address_of_a_name(void **state)
{
	(void)state;
	with_empty_etc(connect_to_second);
}

static void refuses_what_is_no_address(void **state)
{
	(void)state;
	static const char *const bad[] = {"",           "london",        "london:", "1.2.3.4:x",  "1.2.3.4:65536",
	                                  "1.2.3.4:-1", "::1:8620",      "[::1]",   "1.2.3.4:+1", "1.2.3.4: 1",
	                                  "1.2.3.4:1 ", "1.2.3.4:000001"};
	struct ow_error err;
	int fd = -7;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		err.text[0] = '\0';
		assert_int_equal(ow_listen(bad[i], &fd, &err), -EINVAL);
		assert_true(err.text[0]);
		assert_int_equal(ow_connect(bad[i], &fd, &err), -EINVAL);
	}
	assert_int_equal(ow_connect(":8620", &fd, &err), -EINVAL);
	assert_int_equal(ow_connect("127.0.0.1:0", &fd, &err), -EINVAL);
	char name[400];
	memset(name, 'a', sizeof name);
	memcpy(name + 300, ":1", 3);
	assert_int_equal(ow_connect(name, &fd, &err), -EINVAL);
	assert_int_equal(ow_listen("[192.0.2.1.7]:1", &fd, &err), -EHOSTUNREACH);
	assert_non_null(strstr(err.text, "[192.0.2.1.7]:1"));
	assert_int_equal(ow_listen("192.0.2.1:1", &fd, &err), -EADDRNOTAVAIL);
	assert_non_null(strstr(err.text, "192.0.2.1:1: cannot listen: "));
	assert_int_equal(fd, -7);
}

static void an_address_in_use_is_said(void **state)
{
	(void)state;
	int fd = -1, other = -1;
	struct ow_error err = {""};
	char address[32];
	assert_int_equal(ow_listen("127.0.0.1:0", &fd, NULL), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", port_of(fd));
	assert_int_equal(ow_listen(address, &other, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, address));
	close(fd);
}

/* The whole way over TCP; a port where nobody listens is refused by connect or by the session. */
static void sessions_over_tcp(void **state)
{
	(void)state;
	struct keys keys;
	keys_make(&keys);
	struct ow_tls *london = keys_tls(&keys, "london", "ca"), *paris = keys_tls(&keys, "paris", "ca");
	struct link link = {0};
	int listener = -1, far = -1, near = -1, value = 0;
	socklen_t size = sizeof value;
	char address[32];
	assert_int_equal(ow_listen("127.0.0.1:0", &listener, NULL), 0);
	snprintf(address, sizeof address, "127.0.0.1:%u", port_of(listener));
	assert_int_equal(ow_connect(address, &far, NULL), 0);
	assert_int_equal(ow_session_create(london, far, false, "paris", &link.session[CLIENT], NULL), 0);
	struct pollfd poll_listener = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&poll_listener, 1, 5000), 1);
	assert_int_equal(ow_accept(listener, &near), 0);
	assert_int_equal(ow_session_create(paris, near, true, NULL, &link.session[SERVER], NULL), 0);
	link_open(&link);
	assert_int_equal(getsockopt(near, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
	assert_int_equal(value, 1);
	assert_int_equal(getsockopt(far, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
	assert_int_equal(value, 1);
	link_free(&link);
	close(listener);
	struct ow_error err = {""};
	int r = ow_connect(address, &far, &err);
	if (r == 0) {
		assert_int_equal(ow_session_create(london, far, false, "paris", &link.session[CLIENT], NULL), 0);
		struct pollfd poll_far = {.fd = far, .events = ow_session_events(link.session[CLIENT])};
		assert_int_equal(poll(&poll_far, 1, 5000), 1);
		r = ow_session_drive(link.session[CLIENT], &err);
		ow_session_free(link.session[CLIENT]);
	}
	assert_int_equal(r, -ECONNREFUSED);
	assert_non_null(strstr(err.text, "Connection refused"));
	ow_tls_free(london);
	ow_tls_free(paris);
	keys_remove(&keys);
}

static void finds_datagram_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int family;
		unsigned port; /* 0 = refused */
	} cases[] = {
		{"127.0.0.1", AF_INET, 862}, {"127.0.0.1:99", AF_INET, 99}, {"::1", AF_INET6, 862},
		{"[::1]", AF_INET6, 862},    {"[::1]:99", AF_INET6, 99},    {"[fe80::1", 0, 0},
		{"127.0.0.1:", 0, 0},        {"127.0.0.1:70000", 0, 0},     {"", 0, 0},
	};
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sockaddr_storage address;
		struct ow_error err;
		int r = ow_address_find(cases[i].text, "862", AF_UNSPEC, false, &address, &err);
		if (!cases[i].port) {
			assert_true(r < 0);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(address.ss_family, cases[i].family);
		/* The port is at the same place in both. */
		assert_int_equal(ntohs(((struct sockaddr_in *)&address)->sin_port), cases[i].port);
	}
	struct sockaddr_storage here;
	assert_int_equal(ow_address_find(":862", "862", AF_INET, true, &here, NULL), 0);
	assert_int_equal(((struct sockaddr_in *)&here)->sin_addr.s_addr, INADDR_ANY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_datagram_addresses),
		cmocka_unit_test(finds_the_other_end),
		cmocka_unit_test(refuses_what_is_no_address),
		cmocka_unit_test(an_address_in_use_is_said),
		cmocka_unit_test(sessions_over_tcp),
		cmocka_unit_test(localhost_needs_no_hosts_file),
		cmocka_unit_test(tries_every_address_of_a_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
