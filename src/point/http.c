/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages over HTTP. libmicrohttpd parses and sends in its own thread; here are its limits and the choice of pages. It is
 * loaded when a server is created, because it brings GnuTLS along: nearly half of the time that a command takes to start.
 */
#include "point/http.h"

#include "base/library.h"
#include "exchange/session.h"
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for connections that are being closed while new ones are accepted. */
#define SPARE_CONNECTIONS 16
#define LIBRARY           "libmicrohttpd.so.12"

static struct {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_connection_info) *get_connection_info;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
} mhd;

static int load_library(struct ow_error *err)
{
	static const struct ow_library_function functions[] = {
		{"MHD_start_daemon", &mhd.start_daemon},
		{"MHD_stop_daemon", &mhd.stop_daemon},
		{"MHD_get_connection_info", &mhd.get_connection_info},
		{"MHD_lookup_connection_value", &mhd.lookup_connection_value},
		{"MHD_create_response_from_buffer", &mhd.create_response_from_buffer},
		{"MHD_add_response_header", &mhd.add_response_header},
		{"MHD_queue_response", &mhd.queue_response},
		{"MHD_destroy_response", &mhd.destroy_response},
	};
	return ow_library_load(LIBRARY, functions, sizeof functions / sizeof *functions, err);
}

struct ow_http {
	struct ow_http_options options;
	int listen_fd;
	struct MHD_Daemon *daemon; /* NULL = not started */
	char address[80];
	/* Used only by the server's thread: open connections, the oldest first. */
	int open[OW_HTTP_CONNECTIONS + SPARE_CONNECTIONS];
	unsigned open_count;
};

/* Connections. */

static int socket_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

static void forget(struct ow_http *http, int fd)
{
	for (unsigned i = 0; i < http->open_count; i++) {
		if (http->open[i] != fd)
			continue;
		memmove(http->open + i, http->open + i + 1, (--http->open_count - i) * sizeof *http->open);
		return;
	}
}

/* A request takes milliseconds: if there are many connections, the oldest only blocks others. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
	struct ow_http *http = arg;
	(void)context;
	int fd = socket_of(connection);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		forget(http, fd);
		return;
	}
	if (http->open_count >= OW_HTTP_CONNECTIONS)
		shutdown(http->open[http->open_count - OW_HTTP_CONNECTIONS], SHUT_RDWR);
	if (http->open_count < OW_HTTP_CONNECTIONS + SPARE_CONNECTIONS)
		http->open[http->open_count++] = fd;
}

/* Requests. */

static enum MHD_Result answer(struct MHD_Connection *connection, const struct ow_http_page *page)
{
	struct MHD_Response *response = mhd.create_response_from_buffer(page->size, page->body, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(page->body);
		return MHD_NO;
	}
	mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
	mhd.add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	if (page->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result r = mhd.queue_response(connection, page->status, response);
	mhd.destroy_response(response);
	return r;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
	struct ow_http_page page = {.status = status, .type = "text/plain; charset=utf-8", .body = strdup(why)};
	if (!page.body)
		return MHD_NO;
	page.size = strlen(page.body);
	return answer(connection, &page);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **context)
{
	struct ow_http *http = arg;
	struct ow_http_page page = {.status = MHD_HTTP_OK};
	(void)version, (void)upload, (void)upload_size, (void)context;
	/* Answered at the first call, so that no body is uploaded. */
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	const char *accept = mhd.lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	int r = http->options.page(http->options.arg, url, accept, &page);
	if (r == -ENOENT)
		return refuse(connection, MHD_HTTP_NOT_FOUND, "no such page\n");
	if (r < 0)
		return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "not enough memory\n");
	return answer(connection, &page);
}

/* Life. */

static void write_address(int fd, char *text, size_t size)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	char host[64], port[16];
	if (getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
	    getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(text, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

int ow_http_create(const struct ow_http_options *options, struct ow_http **ret_http, struct ow_error *err)
{
	int r = load_library(err);
	if (r < 0)
		return r;
	struct ow_http *http = calloc(1, sizeof *http);
	if (!http)
		return ow_error_set(err, ENOMEM, "not enough memory");
	http->options = *options;
	r = ow_listen(options->address, &http->listen_fd, err);
	if (r < 0) {
		free(http);
		return r;
	}
	write_address(http->listen_fd, http->address, sizeof http->address);
	*ret_http = http;
	return 0;
}

int ow_http_start(struct ow_http *http, struct ow_error *err)
{
	/* Signals are for the other threads. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	http->daemon = mhd.start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC, 0, NULL, NULL, on_request, http,
		MHD_OPTION_LISTEN_SOCKET, http->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(OW_HTTP_CONNECTIONS + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)OW_HTTP_SILENT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)OW_HTTP_REQUEST_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return http->daemon ? 0 : ow_error_set(err, EIO, "%s: the web server does not start", http->address);
}

void ow_http_free(struct ow_http *http)
{
	if (!http)
		return;
	/* If the server has started, it closes the socket. */
	if (http->daemon)
		mhd.stop_daemon(http->daemon);
	else
		close(http->listen_fd);
	free(http);
}

const char *ow_http_address(const struct ow_http *http)
{
	return http->address;
}
