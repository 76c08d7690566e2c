/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP. libmicrohttpd parses and sends; here are its limits, who may ask, and what every answer says. It is loaded when a
 * server is created, because it brings GnuTLS along.
 */
#include "web/server.h"

#include "base/clock.h"
#include "base/time.h"
#include "exchange/session.h"
#include "web/answer.h"
#include "web/limits.h"
#include "web/mhd.h"
#include "web/news.h"
#include <errno.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define COOKIE      "oneway"
#define COOKIE_TEXT (2 * SHA256_DIGEST_LENGTH + 1)
/* A wrong token counts as so many requests. */
#define WRONG_COST 20
#define STACK      ((size_t)512 << 10)

struct connection {
	int fd; /* -1: the place is free */
	bool is_answered;
	int64_t since_ns; /* waits for a request, or is being answered; INT64_MAX: a stream */
};

struct ow_web {
	struct ow_web_options options;
	struct ow_api *api; /* NULL: not started */
	int listen_fd;
	bool is_loopback;
	char url[96], address[80];
	char cookie[COOKIE_TEXT]; /* follows from the token; a cookie that leaks is not the token */
	struct ow_limits *limits;
	struct MHD_Daemon *daemon; /* NULL: not started */
	pthread_mutex_t lock;
	struct connection connection[OW_WEB_CONNECTIONS];
};

/* -- connections -------------------------------------------------------------------------------------------------- */

static int socket_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		ow_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

static struct connection *place_of(struct ow_web *web, int fd)
{
	for (int i = 0; i < OW_WEB_CONNECTIONS; i++) {
		if (web->connection[i].fd == fd)
			return &web->connection[i];
	}
	return NULL;
}

static void note(struct ow_web *web, int fd, bool is_answered, int64_t since_ns)
{
	pthread_mutex_lock(&web->lock);
	struct connection *c = place_of(web, fd);
	if (c) {
		c->is_answered = is_answered;
		c->since_ns = since_ns;
	}
	pthread_mutex_unlock(&web->lock);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
	struct ow_web *web = arg;
	(void)context;
	int fd = socket_of(connection);
	bool is_new = what == MHD_CONNECTION_NOTIFY_STARTED;
	pthread_mutex_lock(&web->lock);
	struct connection *c = place_of(web, is_new ? -1 : fd);
	if (c)
		*c = (struct connection){.fd = is_new ? fd : -1, .since_ns = ow_clock_steady_ns()};
	pthread_mutex_unlock(&web->lock);
}

void ow_web_tick(struct ow_web *web)
{
	int64_t now_ns = ow_clock_steady_ns();
	pthread_mutex_lock(&web->lock);
	for (int i = 0; i < OW_WEB_CONNECTIONS; i++) {
		const struct connection *c = &web->connection[i];
		int64_t limit_s = c->is_answered ? OW_WEB_ANSWER_S : OW_WEB_REQUEST_S;
		if (c->fd >= 0 && c->since_ns < now_ns - limit_s * OW_NS_PER_S)
			shutdown(c->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&web->lock);
}

/* -- who may ask -------------------------------------------------------------------------------------------------- */

/*
 * A page of another site can make a browser ask a server of this host under a name of its own (DNS rebinding). So on this
 * host alone, the name has to be one of this host; elsewhere TLS checks it.
 */
static bool is_own_name(const struct ow_web *web, const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	if (!host)
		return false;
	if (!web->is_loopback)
		return true;
	const char *port = *host == '[' ? strchr(host, ']') : host;
	port = port ? strchr(port, ':') : NULL;
	size_t length = port ? (size_t)(port - host) : strlen(host);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strlen(names[i]) == length && strncasecmp(host, names[i], length) == 0)
			return true;
	}
	return strcmp(host, web->address) == 0;
}

static bool is_equal(const char *a, const char *b)
{
	size_t length = strlen(a);
	return length == strlen(b) && CRYPTO_memcmp(a, b, length) == 0;
}

static void make_cookie(const char *token, char ret_cookie[COOKIE_TEXT])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	SHA256((const unsigned char *)token, strlen(token), digest);
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		snprintf(ret_cookie + 2 * i, 3, "%02x", digest[i]);
}

static bool has_certificate(const struct ow_web *web, struct MHD_Connection *connection)
{
	unsigned status = 1;
	if (!web->options.client_ca)
		return false;
	const union MHD_ConnectionInfo *info =
		ow_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info && info->tls_session && ow_mhd.verify_peers2(info->tls_session, &status) == 0 && status == 0;
}

static bool is_allowed(const struct ow_web *web, struct MHD_Connection *connection)
{
	const struct ow_web_options *o = &web->options;
	if (!o->token && !o->client_ca)
		return true;
	if (has_certificate(web, connection))
		return true;
	const char *bearer = ow_mhd_header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
	const char *cookie = ow_mhd.lookup_connection_value(connection, MHD_COOKIE_KIND, COOKIE);
	return o->token && ((bearer && strncasecmp(bearer, "Bearer ", 7) == 0 && is_equal(bearer + 7, o->token)) ||
	                    (cookie && is_equal(cookie, web->cookie)));
}

/* -- requests ----------------------------------------------------------------------------------------------------- */

/* The text of the request's target, before the library decodes it. */
struct request {
	bool is_begun, is_too_long;
	char url[OW_QUERY_BYTES];
	struct ow_query query;
};

static void *on_url(void *arg, const char *url, struct MHD_Connection *connection)
{
	(void)arg, (void)connection;
	struct request *request = calloc(1, sizeof *request);
	if (!request)
		return NULL;
	size_t length = strnlen(url, sizeof request->url);
	request->is_too_long = length == sizeof request->url;
	memcpy(request->url, url, request->is_too_long ? 0 : length);
	return request;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode why)
{
	(void)why;
	note(arg, socket_of(connection), false, ow_clock_steady_ns());
	free(*context);
	*context = NULL;
}

/* "?token=..." becomes a cookie, so that the token is in no address that is sent on. */
static enum MHD_Result sign_in(struct ow_web *web, struct MHD_Connection *connection, const struct request *request)
{
	const char *token = ow_query_get(&request->query, "token");
	char cookie[COOKIE_TEXT + 100];
	if (!web->options.token || !token || !is_equal(token, web->options.token))
		return ow_answer_sign_in(connection);
	snprintf(cookie, sizeof cookie, COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict%s", web->cookie,
	         web->options.certificate ? "; Secure" : "");
	return ow_answer_redirect(connection, "/", cookie);
}

static ssize_t read_stream(void *arg, uint64_t at, char *bytes, size_t room)
{
	(void)at;
	ssize_t size = ow_news_read(arg, bytes, room);
	return size < 0 ? MHD_CONTENT_READER_END_OF_STREAM : size;
}

static void end_stream(void *arg)
{
	ow_news_leave(arg);
}

static enum MHD_Result stream(struct ow_web *web, struct MHD_Connection *connection, const struct ow_query *query)
{
	struct ow_news_client *client;
	struct ow_error err;
	int r = ow_news_join(ow_api_news(web->api), query, ow_mhd_header(connection, "Last-Event-ID"), &client, &err);
	if (r < 0)
		return ow_answer_error(connection, r == -EINVAL ? 400 : 503, err.text);
	note(web, socket_of(connection), true, INT64_MAX);
	return ow_answer_stream(connection, read_stream, end_stream, client);
}

static enum MHD_Result answer(struct ow_web *web, struct MHD_Connection *connection, const struct request *request)
{
	const struct ow_query *query = &request->query;
	if (strncmp(query->path, "/api/", 5) != 0)
		return ow_answer_file(connection, query->path, web->options.page);
	if (strcmp(query->path, "/api/v1/stream") == 0)
		return stream(web, connection, query);
	struct ow_api_answer made;
	if (ow_api_answer(web->api, query, &made) < 0)
		return MHD_NO;
	return ow_answer_json(connection, &made);
}

static enum MHD_Result check(struct ow_web *web, struct MHD_Connection *connection, const char *method,
                             struct request *request)
{
	const union MHD_ConnectionInfo *peer =
		ow_mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	int64_t now_ns = ow_clock_steady_ns();
	struct ow_error err;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return ow_answer_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
	if (!is_own_name(web, ow_mhd_header(connection, MHD_HTTP_HEADER_HOST)))
		return ow_answer_error(connection, 421, "this is not the name of this server: use localhost");
	if (!peer || !ow_limits_allow(web->limits, peer->client_addr, 1, now_ns))
		return ow_answer_error(connection, 429, "too many requests from this address");
	if (request->is_too_long)
		return ow_answer_error(connection, MHD_HTTP_URI_TOO_LONG, "the address is too long");
	if (ow_query_parse(request->url, &request->query, &err) < 0)
		return ow_answer_error(connection, MHD_HTTP_BAD_REQUEST, err.text);
	if (is_allowed(web, connection) && !(web->options.token && ow_query_get(&request->query, "token")))
		return answer(web, connection, request);
	if (!ow_limits_allow(web->limits, peer->client_addr, WRONG_COST, now_ns))
		return ow_answer_error(connection, 429, "too many requests from this address");
	return strncmp(request->query.path, "/api/", 5) == 0
	               ? ow_answer_error(connection, MHD_HTTP_UNAUTHORIZED, "a token is required")
	               : sign_in(web, connection, request);
}

/*
 * The first call comes with the headers. An answer to it closes the connection: that is for requests that bring a body, of
 * which nothing is read. Others are answered at the second call.
 */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_size, void **context)
{
	struct ow_web *web = arg;
	struct request *request = *context;
	(void)url, (void)version, (void)upload;
	if (!request || *upload_size)
		return MHD_NO;
	bool is_plain = (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0) &&
	                !ow_mhd_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH) &&
	                !ow_mhd_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	if (is_plain && !request->is_begun) {
		request->is_begun = true;
		return MHD_YES;
	}
	note(web, socket_of(connection), true, ow_clock_steady_ns());
	return check(web, connection, method, request);
}

/* -- life --------------------------------------------------------------------------------------------------------- */

static int find_address(struct ow_web *web, struct ow_error *err)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	char host[64], port[16];
	if (getsockname(web->listen_fd, (struct sockaddr *)&address, &length) < 0 ||
	    getnameinfo((struct sockaddr *)&address, length, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return ow_error_set(err, EIO, "%s: its address is not known", web->options.address);
	web->is_loopback = ow_limits_is_loopback((struct sockaddr *)&address);
	snprintf(web->address, sizeof web->address, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	snprintf(web->url, sizeof web->url, "http%s://%s/", web->options.certificate ? "s" : "", web->address);
	return 0;
}

/* What others could read needs more than what only this host can. */
static int check_options(const struct ow_web *web, struct ow_error *err)
{
	const struct ow_web_options *o = &web->options;
	if (!o->certificate != !o->key)
		return ow_error_set(err, EINVAL, "a certificate needs its key, and a key its certificate");
	if (o->client_ca && !o->certificate)
		return ow_error_set(err, EINVAL, "certificates of clients need TLS: a certificate and its key");
	if (o->token && strlen(o->token) < OW_WEB_TOKEN_BYTES_MIN)
		return ow_error_set(err, EINVAL, "a token has at least %d characters", OW_WEB_TOKEN_BYTES_MIN);
	if (!web->is_loopback && (!o->certificate || (!o->token && !o->client_ca)))
		return ow_error_set(err, EPERM,
		                    "%s can be reached by others: that needs TLS (--tls-cert, --tls-key), and "
		                    "--token-file or --client-ca",
		                    web->address);
	return 0;
}

int ow_web_create(const struct ow_web_options *options, struct ow_web **ret_web, struct ow_error *err)
{
	int r = ow_mhd_load(options->client_ca != NULL, err);
	if (r < 0)
		return r;
	struct ow_web *web = calloc(1, sizeof *web);
	if (!web)
		return ow_error_set(err, ENOMEM, "not enough memory");
	web->options = *options;
	pthread_mutex_init(&web->lock, NULL);
	for (int i = 0; i < OW_WEB_CONNECTIONS; i++)
		web->connection[i].fd = -1;
	web->listen_fd = -1;
	if (options->token)
		make_cookie(options->token, web->cookie);
	r = ow_listen(options->address, &web->listen_fd, err);
	if (r == 0)
		r = find_address(web, err);
	if (r == 0)
		r = check_options(web, err);
	unsigned rate = options->rate ? options->rate : web->is_loopback ? OW_WEB_RATE_LOOPBACK : OW_WEB_RATE;
	if (r == 0 && ow_limits_create(rate, &web->limits) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r < 0)
		ow_web_free(web);
	else
		*ret_web = web;
	return r;
}

/* Options that only TLS has. */
static size_t tls_options(const struct ow_web *web, struct MHD_OptionItem item[5])
{
	const struct ow_web_options *o = &web->options;
	size_t n = 0;
	if (o->certificate) {
		item[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)o->certificate};
		item[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)o->key};
		item[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
		                                    (void *)(uintptr_t) "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"};
	}
	if (o->client_ca)
		item[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)o->client_ca};
	item[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	return n;
}

int ow_web_start(struct ow_web *web, struct ow_api *api, struct ow_error *err)
{
	web->api = api;
	struct MHD_OptionItem tls[5];
	tls_options(web, tls);
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC |
	                 (web->options.certificate ? MHD_USE_TLS : 0);
	/* Signals are for the other threads. */
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	web->daemon = ow_mhd.start_daemon(
		flags, 0, NULL, NULL, on_request, web, MHD_OPTION_LISTEN_SOCKET, web->listen_fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)OW_WEB_CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned)(web->is_loopback ? 0 : OW_WEB_BY_ADDRESS), MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)OW_WEB_REQUEST_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)OW_WEB_HEADER_BYTES,
		MHD_OPTION_THREAD_STACK_SIZE, STACK, MHD_OPTION_NOTIFY_CONNECTION, on_connection, web,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, web, MHD_OPTION_URI_LOG_CALLBACK, on_url, web,
		MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return web->daemon ? 0
	                   : ow_error_set(err, EIO, "%s: the web server does not start%s", web->address,
	                                  web->options.certificate ? ": is the key that of the certificate?" : "");
}

void ow_web_free(struct ow_web *web)
{
	if (!web)
		return;
	if (web->api)
		ow_api_stop(web->api);
	/* If the server has started, it closes the socket. */
	if (web->daemon)
		ow_mhd.stop_daemon(web->daemon);
	else if (web->listen_fd >= 0)
		close(web->listen_fd);
	ow_limits_free(web->limits);
	pthread_mutex_destroy(&web->lock);
	free(web);
}

const char *ow_web_url(const struct ow_web *web)
{
	return web->url;
}
