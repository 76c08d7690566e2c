/* SPDX-License-Identifier: Apache-2.0 */
/* The small web server: its pages, what it refuses, and that no client can block others. */
#include "point/http.h"
#include "exchange/session.h"
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#define PATIENCE_MS 30000
#define LARGE       3000000

static int on_page(void *arg, const char *path, const char *accept, struct ow_http_page *page)
{
	(void)arg;
	if (strcmp(path, "/fails") == 0)
		return -ENOMEM;
	if (strcmp(path, "/large") == 0) {
		page->size = LARGE;
		page->body = malloc(page->size);
		memset(page->body, 'x', page->size);
	} else if (strcmp(path, "/page") == 0) {
		page->size = (size_t)asprintf(&page->body, "accept %s\n", accept ? accept : "nothing");
	} else {
		return -ENOENT;
	}
	page->type = "text/x-test";
	return 0;
}

static struct ow_http *serve(void)
{
	struct ow_http *http;
	struct ow_error err;
	if (ow_http_create(&(struct ow_http_options){"127.0.0.1:0", on_page, NULL}, &http, &err) < 0)
		fail_msg("%s", err.text);
	if (ow_http_start(http, &err) < 0)
		fail_msg("%s", err.text);
	return http;
}

static int enter(const struct ow_http *http)
{
	int fd;
	struct ow_error err;
	if (ow_connect(ow_http_address(http), &fd, &err) < 0)
		fail_msg("%s", err.text);
	struct pollfd p = {fd, POLLOUT, 0};
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	return fd;
}

/* All that comes until the server closes the connection. */
static char *listen_to(int fd)
{
	size_t size = 0, room = LARGE + 4096;
	char *text = malloc(room);
	for (;;) {
		struct pollfd p = {fd, POLLIN, 0};
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		ssize_t n = recv(fd, text + size, room - size - 1, 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
		assert_true(size < room - 1);
	}
	text[size] = 0;
	close(fd);
	return text;
}

static char *ask(const struct ow_http *http, const char *request)
{
	int fd = enter(http);
	/* The server may have had enough before all is sent. */
	(void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
	return listen_to(fd);
}

static void says(const struct ow_http *http, const char *request, const char *status, const char *more)
{
	char *text = ask(http, request);
	if (strncmp(text, status, strlen(status)) != 0 || !strstr(text, more))
		fail_msg("%.60s: %.300s", request, text);
	free(text);
}

static void pages(void **state)
{
	(void)state;
	struct ow_http *http = serve();
	says(http, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "\r\n\r\naccept nothing\n");
	says(http, "GET /page HTTP/1.1\r\nHost: x\r\nAccept: text/plain;q=0.5\r\n\r\n", "HTTP/1.1 200 ",
	     "\r\n\r\naccept text/plain;q=0.5\n");
	says(http, "GET /page?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", "Content-Type: text/x-test\r\n");
	char *text = ask(http, "HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(text, "Content-Length: 15\r\n"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	free(text);
	text = ask(http, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), LARGE);
	free(text);
	ow_http_free(http);
}

static void refusals(void **state)
{
	(void)state;
	struct ow_http *http = serve();
	says(http, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "");
	says(http, "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 404 ", "");
	says(http, "GET /fails HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 500 ", "");
	says(http, "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc", "HTTP/1.1 405 ",
	     "Allow: GET, HEAD\r\n");
	says(http, "DELETE /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 405 ", "");
	free(ask(http, "\r\n\r\n\x01\x02 nonsense\r\n\r\n"));
	ow_http_free(http);
}

static void long_requests(void **state)
{
	(void)state;
	struct ow_http *http = serve();
	char *request = malloc(100000);
	int n = snprintf(request, 100, "GET /page HTTP/1.1\r\nHost: x\r\nX: ");
	memset(request + n, 'a', 99999 - (size_t)n);
	request[99999] = 0;
	char *text = ask(http, request);
	assert_true(*text == 0 || strncmp(text, "HTTP/1.1 4", 10) == 0);
	free(text);
	free(request);
	says(http, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "");
	ow_http_free(http);
}

/* Clients that connect and send nothing, or request a large page and do not read it, do not block others. */
static void crowds(void **state)
{
	(void)state;
	struct ow_http *http = serve();
	int fd[5 * OW_HTTP_CONNECTIONS];
	for (int i = 0; i < 5 * OW_HTTP_CONNECTIONS; i++) {
		static const char whole[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n", begun[] = "GET /pa";
		fd[i] = enter(http);
		const char *request = i % 2 ? whole : begun;
		(void)!send(fd[i], request, strlen(request), MSG_NOSIGNAL);
		if (i % 8 == 7)
			says(http, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "accept nothing");
	}
	for (int i = 0; i < 5 * OW_HTTP_CONNECTIONS; i++)
		close(fd[i]);
	says(http, "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 ", "accept nothing");
	ow_http_free(http);
}

static void addresses(void **state)
{
	(void)state;
	struct ow_http *http = serve(), *other;
	struct ow_error err;
	assert_memory_equal(ow_http_address(http), "127.0.0.1:", 10);
	assert_true(strtoul(ow_http_address(http) + 10, NULL, 10) > 0);
	int r = ow_http_create(&(struct ow_http_options){ow_http_address(http), on_page, NULL}, &other, &err);
	assert_int_equal(r, -EADDRINUSE);
	assert_non_null(strstr(err.text, "cannot listen"));
	ow_http_free(http);
	ow_http_free(NULL);
	/* Not started, and yet the address is free again. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ow_http_create(&(struct ow_http_options){"127.0.0.1:0", on_page, NULL}, &http, &err),
		                 0);
		ow_http_free(http);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages),  cmocka_unit_test(refusals),  cmocka_unit_test(long_requests),
		cmocka_unit_test(crowds), cmocka_unit_test(addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
