/* SPDX-License-Identifier: Apache-2.0 */
/* What a server of alerts may answer, and that none of it takes alerts elsewhere, or holds the station up. */
#include "station/http_post.h"

#include "base/time.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_NS (30 * OW_NS_PER_S)
#define SHORT_NS    (200 * OW_NS_PER_MS)

/* A socket that listens at a free port of loopback. */
static int listen_somewhere(unsigned *ret_port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* A process that answers one connection with this text, so many times, and then says nothing more. */
static pid_t answer(int listener, const char *text, unsigned times)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	/* All of it: a connection that is closed with unread bytes is reset, and its answer may be gone. */
	char request[4096] = "";
	size_t size = 0;
	int fd = accept(listener, NULL, NULL);
	for (ssize_t n = 1; n > 0 && !strstr(request, "\r\n\r\n[]"); size += n > 0 ? (size_t)n : 0)
		n = read(fd, request + size, sizeof request - size - 1);
	for (unsigned i = 0; i < times; i++)
		if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
			break;
	if (times == 0)
		pause();
	_exit(0);
}

/* Posts to a server that answers so; what ow_http_post returns. */
static int post(const char *text, unsigned times, int64_t timeout_ns, struct ow_error *err)
{
	struct ow_http_url url;
	unsigned port;
	char address[60];
	int listener = listen_somewhere(&port);
	pid_t server = answer(listener, text, times);
	snprintf(address, sizeof address, "http://127.0.0.1:%u/prefix/", port);
	assert_int_equal(ow_http_url_parse(address, &url, err), 0);
	int r = ow_http_post(&url, "/api", NULL, "[]", 2, timeout_ns, err);
	close(listener);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return r;
}

/* Alerts go where the configuration says, and nowhere else. */
static void redirects(void **state)
{
	(void)state;
	static const int code[] = {301, 302, 303, 307, 308};
	unsigned port;
	struct ow_error err;
	int elsewhere = listen_somewhere(&port);
	for (size_t i = 0; i < sizeof code / sizeof *code; i++) {
		char text[200], status[20];
		snprintf(text, sizeof text,
		         "HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:%u/\r\nContent-Length: 0\r\n\r\n", code[i],
		         port);
		snprintf(status, sizeof status, "answers %d", code[i]);
		assert_int_equal(post(text, 1, PATIENCE_NS, &err), -EBADMSG);
		assert_non_null(strstr(err.text, status));
		assert_non_null(strstr(err.text, "not followed"));
	}
	struct pollfd p = {elsewhere, POLLIN, 0};
	assert_int_equal(poll(&p, 1, 0), 0);
	close(elsewhere);
}

static void answers(void **state)
{
	(void)state;
	struct ow_error err;
	assert_int_equal(post("HTTP/1.1 200 OK\r\n\r\n", 1, PATIENCE_NS, &err), 0);
	assert_int_equal(post("HTTP/1.0 204 No Content\r\nContent-Length: 0\r\n\r\nrest", 1, PATIENCE_NS, &err), 0);
	assert_int_equal(post("HTTP/1.1 400 Bad Request\r\n\r\nno such label\nmore", 1, PATIENCE_NS, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "answers 400: no such label"));
	assert_null(strstr(err.text, "more"));
	static const char *const nonsense[] = {"HTTP/1.1", "HTTP/1.1 ", "SSH-2.0-x\r\n", "HTTP/1.1 abc\r\n\r\n",
	                                       "\r\n\r\n"};
	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		assert_int_equal(post(nonsense[i], 1, PATIENCE_NS, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "no answer of an HTTP server"));
	}
	/* Bytes without end, and none. */
	assert_int_equal(post("0123456789abcdef", 1u << 20, PATIENCE_NS, &err), -EBADMSG);
	assert_int_equal(post("", 0, SHORT_NS, &err), -ETIMEDOUT);
}

static void addresses(void **state)
{
	(void)state;
	struct ow_http_url url;
	struct ow_error err;
	assert_int_equal(ow_http_url_parse("https://[::1]:93/a/b", &url, &err), 0);
	assert_true(url.tls);
	assert_string_equal(url.host, "::1");
	assert_string_equal(url.port, "93");
	assert_string_equal(url.path, "/a/b");
	static const char *const wrong[] = {
		"",           "ftp://a",           "http://",     "http://a:0", "http://a:65536", "http://user@a",
		"http://a b", "http://a/\r\nX: y", "http://[::1", "http://a:1x"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(ow_http_url_parse(wrong[i], &url, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(redirects), cmocka_unit_test(answers),
	                                   cmocka_unit_test(addresses)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
