/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP client: one POST, one answer. */
#include "station/http_post.h"

#include "base/clock.h"
#include "base/time.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX 65536

/* -- the address ------------------------------------------------------------------------------------------------------
 */

static bool is_port(const char *text, size_t length)
{
	unsigned port = 0;
	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]) || length > 5)
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	return port > 0 && port < 65536;
}

/* No spaces or control characters: they would end the line of the request. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

int ow_http_url_parse(const char *text, struct ow_http_url *ret_url, struct ow_error *err)
{
	struct ow_http_url url = {.tls = strncmp(text, "https://", 8) == 0};
	const char *host = text + (url.tls ? 8 : 7);
	if ((!url.tls && strncmp(text, "http://", 7) != 0) || !is_plain(text))
		return ow_error_set(err, EINVAL, "'%.200s' is not http://HOST[:PORT][/PATH] or https://...", text);
	bool bracket = *host == '[';
	const char *end = bracket ? strchr(++host, ']') : host + strcspn(host, ":/");
	size_t length = end ? (size_t)(end - host) : 0;
	const char *rest = end ? end + bracket : "";
	const char *port = *rest == ':' ? rest + 1 : url.tls ? "443" : "80";
	size_t digits = strcspn(port, "/");
	const char *path = *rest == ':' ? port + digits : rest;
	if (length == 0 || length >= sizeof(url.host) || !is_port(port, digits) || (*path && *path != '/') ||
	    strlen(path) >= sizeof(url.path) || memchr(host, '@', length))
		return ow_error_set(err, EINVAL, "'%.200s' has no valid host, port or path", text);
	memcpy(url.host, host, length);
	memcpy(url.port, port, digits);
	snprintf(url.path, sizeof(url.path), "%s", path);
	/* "http://host/" and "http://host" are the same. */
	size_t used = strlen(url.path);
	if (used && url.path[used - 1] == '/')
		url.path[used - 1] = 0;
	*ret_url = url;
	return 0;
}

/* -- the connection ---------------------------------------------------------------------------------------------------
 */

struct connection {
	int fd;
	SSL_CTX *context;
	SSL *ssl; /* NULL without TLS */
	int64_t until_ns;
};

/* Waits until the socket can be read or written. */
static int wait_for(const struct connection *c, short events)
{
	for (;;) {
		int64_t left_ns = c->until_ns - ow_clock_steady_ns();
		if (left_ns <= 0)
			return -ETIMEDOUT;
		struct pollfd ready = {.fd = c->fd, .events = events};
		int r = poll(&ready, 1, (int)(left_ns / OW_NS_PER_MS) + 1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

static int connect_one(struct connection *c, const struct addrinfo *address)
{
	int error = 0;
	socklen_t size = sizeof(error);
	c->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	int r = connect(c->fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
	if (r == -EINPROGRESS) {
		r = wait_for(c, POLLOUT);
		if (r == 0 && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
			r = -error;
	}
	if (r < 0) {
		close(c->fd);
		c->fd = -1;
	}
	return r;
}

static int connect_to(struct connection *c, const struct ow_http_url *url, struct ow_error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list = NULL;
	int code = getaddrinfo(url->host, url->port, &hints, &list);
	if (code)
		return ow_error_set(err, EHOSTUNREACH, "%s: %s", url->host, gai_strerror(code));
	int r = -EHOSTUNREACH;
	for (const struct addrinfo *a = list; a && r < 0; a = a->ai_next)
		r = connect_one(c, a);
	freeaddrinfo(list);
	return r < 0 ? ow_error_set(err, -r, "%s port %s: %s", url->host, url->port, strerror(-r)) : 0;
}

static int tls_failed(const struct connection *c, const struct ow_http_url *url, struct ow_error *err)
{
	long verified = c->ssl ? SSL_get_verify_result(c->ssl) : X509_V_OK;
	unsigned long code = ERR_peek_last_error();
	const char *why = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
	                  : code                ? ERR_reason_error_string(code)
	                                        : NULL;
	ERR_clear_error();
	return ow_error_set(err, EPROTO, "%s port %s: TLS: %s", url->host, url->port,
	                    why ? why : "the connection ended");
}

/* What SSL waits for after a call that returned n; 0 = go on. */
static int wait_for_tls(const struct connection *c, int n)
{
	switch (SSL_get_error(c->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		return wait_for(c, POLLIN);
	case SSL_ERROR_WANT_WRITE:
		return wait_for(c, POLLOUT);
	default:
		return -EPROTO;
	}
}

static int start_tls(struct connection *c, const struct ow_http_url *url, const char *ca, struct ow_error *err)
{
	c->context = SSL_CTX_new(TLS_client_method());
	if (!c->context || SSL_CTX_set_min_proto_version(c->context, TLS1_2_VERSION) != 1)
		return tls_failed(c, url, err);
	if ((ca ? SSL_CTX_load_verify_file(c->context, ca) : SSL_CTX_set_default_verify_paths(c->context)) != 1) {
		ERR_clear_error();
		return ow_error_set(err, EINVAL, "%s: no certificates", ca ? ca : "this host");
	}
	SSL_CTX_set_verify(c->context, SSL_VERIFY_PEER, NULL);
	c->ssl = SSL_new(c->context);
	if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1)
		return tls_failed(c, url, err);
	bool is_address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), url->host) == 1;
	if (!is_address && (SSL_set1_host(c->ssl, url->host) != 1 || SSL_set_tlsext_host_name(c->ssl, url->host) != 1))
		return tls_failed(c, url, err);
	int n;
	while ((n = SSL_connect(c->ssl)) != 1) {
		int r = wait_for_tls(c, n);
		if (r < 0)
			return r == -EPROTO ? tls_failed(c, url, err)
			                    : ow_error_set(err, -r, "%s port %s: TLS: %s", url->host, url->port,
			                                   strerror(-r));
	}
	return 0;
}

static void hang_up(struct connection *c)
{
	SSL_free(c->ssl);
	SSL_CTX_free(c->context);
	if (c->fd >= 0)
		close(c->fd);
}

/* Sends some bytes, or receives some. Returns how many, 0 at the end, or a negative errno. */
static ssize_t transfer(struct connection *c, bool sends, void *bytes, size_t length)
{
	for (;;) {
		ssize_t n;
		int r;
		if (c->ssl) {
			int size = length > ANSWER_MAX ? ANSWER_MAX : (int)length;
			n = sends ? SSL_write(c->ssl, bytes, size) : SSL_read(c->ssl, bytes, size);
			if (n > 0)
				return n;
			int why = SSL_get_error(c->ssl, (int)n);
			if (!sends &&
			    (why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL || why == SSL_ERROR_SSL))
				return 0;
			r = wait_for_tls(c, (int)n);
		} else {
			n = sends ? send(c->fd, bytes, length, MSG_NOSIGNAL) : recv(c->fd, bytes, length, 0);
			if (n >= 0)
				return n;
			r = errno == EAGAIN || errno == EINTR ? wait_for(c, sends ? POLLOUT : POLLIN) : -errno;
		}
		if (r < 0)
			return r;
	}
}

static int send_all(struct connection *c, const char *bytes, size_t length)
{
	while (length) {
		ssize_t n = transfer(c, true, (void *)bytes, length);
		if (n < 0)
			return (int)n;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

static int receive(struct connection *c, char answer[ANSWER_MAX])
{
	size_t used = 0;
	while (used < ANSWER_MAX - 1) {
		ssize_t n = transfer(c, false, answer + used, ANSWER_MAX - 1 - used);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		used += (size_t)n;
		answer[used] = 0;
		/* The rest of a good answer is not needed. */
		if (used > 9 && strncmp(answer, "HTTP/1.", 7) == 0 && answer[9] == '2' && strstr(answer, "\r\n\r\n"))
			break;
	}
	answer[used] = 0;
	return 0;
}

/* -- the request ------------------------------------------------------------------------------------------------------
 */

static int judge_answer(const struct ow_http_url *url, const char *answer, struct ow_error *err)
{
	unsigned status = 0;
	const char *body = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*1d %3u", &status) != 1)
		return ow_error_set(err, EBADMSG, "%s port %s: no answer of an HTTP server", url->host, url->port);
	if (status / 100 == 2)
		return 0;
	/* Whoever answers must not choose where alerts go. */
	if (status / 100 == 3)
		return ow_error_set(err, EBADMSG, "%s port %s answers %u: redirects are not followed", url->host,
		                    url->port, status);
	body = body ? body + 4 : "";
	return ow_error_set(err, EBADMSG, "%s port %s answers %u: %.*s", url->host, url->port, status,
	                    (int)strcspn(body, "\r\n") > 300 ? 300 : (int)strcspn(body, "\r\n"), body);
}

static int talk(struct connection *c, const struct ow_http_url *url, const char *path, const char *json, size_t length,
                struct ow_error *err)
{
	char head[OW_HTTP_PATH + OW_HTTP_HOST + 512], *answer = malloc(ANSWER_MAX);
	bool bracket = strchr(url->host, ':') != NULL;
	if (!answer)
		return ow_error_set(err, ENOMEM, "out of memory");
	int n = snprintf(head, sizeof(head),
	                 "POST %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: oneway\r\nContent-Type: "
	                 "application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
	                 url->path, path, bracket ? "[" : "", url->host, bracket ? "]" : "", url->port, length);
	int r = send_all(c, head, (size_t)n);
	if (r == 0)
		r = send_all(c, json, length);
	if (r == 0)
		r = receive(c, answer);
	r = r < 0 ? ow_error_set(err, -r, "%s port %s: %s", url->host, url->port, strerror(-r))
	          : judge_answer(url, answer, err);
	free(answer);
	return r;
}

int ow_http_post(const struct ow_http_url *url, const char *path, const char *ca, const char *json, size_t length,
                 int64_t timeout_ns, struct ow_error *err)
{
	struct connection c = {.fd = -1, .until_ns = ow_clock_steady_ns() + timeout_ns};
	int r = connect_to(&c, url, err);
	if (r == 0 && url->tls)
		r = start_tls(&c, url, ca, err);
	if (r == 0)
		r = talk(&c, url, path, json, length, err);
	hang_up(&c);
	return r;
}
