/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/enrol_server.h"

#include "base/clock.h"
#include "base/state_file.h"
#include "base/time.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/bus_users.h"
#include "fleet/enrol_wire.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS_MAX      64 /* at a time */
#define CALLS_OF_ONE   4  /* of one IPv4 address, or one IPv6 network (/64), of which a host may have all addresses */
#define USERS_EVERY_MS 200
#define THREAD_STACK   (256 << 10)

struct server;
struct call {
	struct server *server;
	int fd;
	int64_t until_ns;              /* steady time; then the connection is cut, however busy it looks */
	char address[OW_ADDRESS_TEXT]; /* without port; "" = not in use */
	uint64_t network;              /* of this address, see network_of */
};

struct server {
	const struct ow_enrol_server *how;
	SSL_CTX *context;
	X509_STORE *store; /* the authority */
	pthread_mutex_t lock;
	struct call calls[CALLS_MAX];
	unsigned open;
	bool stopping;
};

static void say(struct server *s, bool bad, const char *from, const char *what, const char *why)
{
	char line[600];
	snprintf(line, sizeof line, "%s: %s%s%.400s", from, what, *why ? ": " : "", why);
	pthread_mutex_lock(&s->lock);
	s->how->log(s->how->arg, bad, line);
	pthread_mutex_unlock(&s->lock);
}

/* Lets a connection last for so long from now on. */
static void allow(struct call *call, int seconds)
{
	pthread_mutex_lock(&call->server->lock);
	call->until_ns = ow_clock_steady_ns() + seconds * (int64_t)OW_NS_PER_S;
	pthread_mutex_unlock(&call->server->lock);
}

/* Cuts connections that take too long. A client that sends a byte now and then would never be too slow otherwise. */
static void cut_late(struct server *s)
{
	int64_t now_ns = ow_clock_steady_ns();
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < CALLS_MAX; i++) {
		const struct call *call = &s->calls[i];
		if (call->address[0] && now_ns > call->until_ns)
			(void)shutdown(call->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&s->lock);
}

/* -- answers ------------------------------------------------------------------------------------------------------- */

/* The certificate of the client, if the authority signed it and it is valid; else NULL. */
static X509 *authenticated(const struct server *s, SSL *ssl)
{
	X509 *leaf = SSL_get0_peer_certificate(ssl);
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	bool good = leaf && verify && X509_STORE_CTX_init(verify, s->store, leaf, NULL) == 1 &&
	            X509_verify_cert(verify) == 1;
	X509_STORE_CTX_free(verify);
	ERR_clear_error();
	return good ? leaf : NULL;
}

/* "ok", the servers, the certificate, the authority. */
static int print_certificate(const struct ow_fleet *fleet, const struct ow_credential *ca, X509 *certificate, BIO *out,
                             struct ow_error *err)
{
	char *path = ow_state_path(fleet->path, OW_FLEET_SERVERS), *servers = NULL;
	size_t size;
	int r = path ? ow_state_read(path, 65536, &servers, &size, err)
	             : ow_error_set(err, ENOMEM, "not enough memory");
	BIO_puts(out, "ok\n");
	for (char *line = servers; r == 0 && *line; line += strcspn(line, "\n") + 1) {
		BIO_printf(out, "server %.*s\n", (int)strcspn(line, "\n"), line);
		if (!line[strcspn(line, "\n")])
			break;
	}
	if (r == 0 && (PEM_write_bio_X509(out, certificate) != 1 || PEM_write_bio_X509(out, ca->certificate) != 1))
		r = ow_openssl_failed("certificate", err);
	free(servers);
	free(path);
	return r;
}

/* "enrol NAME SECRET" */
static int enrol(const struct ow_fleet *fleet, const struct ow_credential *ca, const char *request, EVP_PKEY *key,
                 X509 **ret_certificate, struct ow_error *err)
{
	char name[OW_POINT_NAME], hex[2 * OW_TOKEN_SECRET + 1], *elsewhere = NULL;
	uint8_t secret[OW_TOKEN_SECRET];
	size_t size;
	bool users = false;
	int end = 0;
	if (sscanf(request, "enrol %63[A-Za-z0-9_-] %32[0-9a-f]%n", name, hex, &end) != 2 || request[end] ||
	    OPENSSL_hexstr2buf_ex(secret, sizeof secret, &size, hex, 0) != 1 || size != sizeof secret)
		return ow_error_set(err, EPROTO, "not a request to enrol");
	int r = ow_authority_enrol(fleet, ca, name, secret, key, ret_certificate, &users, err);
	OPENSSL_cleanse(secret, sizeof secret);
	/* The generation before is out. */
	if (r == 0 && users)
		r = ow_bus_users_apply(fleet, &elsewhere, err);
	free(elsewhere);
	return r;
}

static int answer_certificate(struct server *s, SSL *ssl, const char *request, BIO *out, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_credential ca = {0};
	X509 *certificate = NULL, *leaf = SSL_get0_peer_certificate(ssl);
	bool renew = strcmp(request, "renew") == 0;
	EVP_PKEY *key = leaf ? X509_get0_pubkey(leaf) : NULL;
	if (!key || EVP_PKEY_get_security_bits(key) < 112)
		return ow_error_set(err, EACCES, "no key, or a weak one");
	if (renew && !authenticated(s, ssl))
		return ow_error_set(err, EACCES, "the certificate is not one of this fleet, or has expired");
	int r = ow_fleet_open(s->how->folder, &fleet, err);
	if (r == 0)
		r = ow_authority_load(fleet, &ca, err);
	if (r == 0)
		r = renew ? ow_authority_renew(fleet, &ca, leaf, key, &certificate, err)
		          : enrol(fleet, &ca, request, key, &certificate, err);
	if (r == 0)
		r = print_certificate(fleet, &ca, certificate, out, err);
	X509_free(certificate);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
	return r;
}

/* users.conf of the first server: that of all. */
static int read_users(const struct server *s, char **ret_text, size_t *ret_size, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_bus_host host;
	int r = ow_fleet_open(s->how->folder, &fleet, err);
	if (r == 0)
		r = ow_bus_host_parse(fleet->settings.server_list->first->text, &host, err);
	char *folder = r == 0 ? ow_bus_folder(fleet->path, &host) : NULL,
	     *path = folder ? ow_state_path(folder, "users.conf") : NULL;
	if (r == 0)
		r = path ? ow_state_read(path, OW_ENROL_ANSWER_MAX - 16, ret_text, ret_size, err)
		         : ow_error_set(err, ENOMEM, "not enough memory");
	free(path);
	free(folder);
	ow_fleet_close(fleet);
	return r;
}

static bool has_hash(const char *text, size_t size, const char *hex)
{
	uint8_t hash[32], given[32];
	size_t length = 0;
	return OPENSSL_hexstr2buf_ex(given, sizeof given, &length, hex, 0) == 1 && length == sizeof given &&
	       EVP_Q_digest(NULL, "SHA256", NULL, text, size, hash, NULL) == 1 && memcmp(hash, given, sizeof hash) == 0;
}

/* "users HASH": waits until there are others. */
static int answer_users(struct call *call, SSL *ssl, const char *request, BIO *out, struct ow_error *err)
{
	struct server *s = call->server;
	X509 *leaf = authenticated(s, ssl);
	char *text = NULL;
	size_t size = 0;
	if (!leaf || X509_check_host(leaf, OW_BUS_NAME, 0, 0, NULL) != 1)
		return ow_error_set(err, EACCES, "only servers of the bus may know its users");
	int r = 0;
	bool same = true;
	allow(call, OW_ENROL_POLL_S + OW_ENROL_WAIT_S);
	for (int waited_ms = 0; r == 0 && same && waited_ms < OW_ENROL_POLL_S * 1000; waited_ms += USERS_EVERY_MS) {
		if (waited_ms > 0)
			usleep(USERS_EVERY_MS * 1000);
		free(text);
		text = NULL;
		r = read_users(s, &text, &size, err);
		same = r == 0 && !__atomic_load_n(&s->stopping, __ATOMIC_RELAXED) &&
		       has_hash(text, size, request + strlen("users "));
	}
	BIO_puts(out, "ok\n");
	if (r == 0 && !same)
		BIO_write(out, text, (int)size);
	free(text);
	return r;
}

static int answer(struct call *call, SSL *ssl, const char *request, BIO *out, struct ow_error *err)
{
	if (strncmp(request, "users ", 6) == 0)
		return answer_users(call, ssl, request, out, err);
	if (strncmp(request, "enrol ", 6) == 0 || strcmp(request, "renew") == 0)
		return answer_certificate(call->server, ssl, request, out, err);
	return ow_error_set(err, EPROTO, "not a request that the authority of a fleet understands");
}

/* -- connections --------------------------------------------------------------------------------------------------- */

static void log_answer(struct server *s, const struct call *call, SSL *ssl, const char *request, int code,
                       const struct ow_error *why)
{
	char what[OW_POINT_NAME + 40] = "", uri[OW_URI_TEXT] = "", name[OW_POINT_NAME] = "";
	const X509 *leaf = SSL_get0_peer_certificate(ssl);
	if (leaf)
		ow_uri_of_certificate(leaf, uri);
	if (sscanf(request, "enrol %63[A-Za-z0-9_-]", name) == 1)
		snprintf(what, sizeof what, "%s is %s", name, code < 0 ? "refused" : "enrolled");
	else if (strcmp(request, "renew") == 0)
		snprintf(what, sizeof what, "%.60s %s", uri, code < 0 ? "is refused" : "has a new certificate");
	else if (code < 0)
		snprintf(what, sizeof what, "refused");
	if (*what)
		say(s, code < 0, call->address, what, code < 0 ? why->text : "");
}

static void converse(struct call *call, SSL *ssl)
{
	struct server *s = call->server;
	struct ow_error err = {""};
	char *request = NULL, *bytes = NULL, refusal[500];
	size_t size;
	errno = 0;
	if (SSL_accept(ssl) != 1) {
		ow_enrol_failed("TLS", &err);
		say(s, true, call->address, "refused", err.text);
		return;
	}
	if (ow_enrol_read(ssl, OW_ENROL_REQUEST_MAX, true, &request, &size, &err) < 0) {
		say(s, true, call->address, "refused", err.text);
		return;
	}
	BIO *out = BIO_new(BIO_s_mem());
	int r = out ? answer(call, ssl, request, out, &err) : -ENOMEM;
	log_answer(s, call, ssl, request, r, &err);
	OPENSSL_cleanse(request, size);
	free(request);
	snprintf(refusal, sizeof refusal, "no %.400s\n", err.text);
	long length = r < 0 ? (long)strlen(refusal) : BIO_get_mem_data(out, &bytes);
	if (ow_enrol_write(ssl, r < 0 ? refusal : bytes, (size_t)length, &err) == 0)
		SSL_shutdown(ssl);
	BIO_free(out);
}

static void *serve_call(void *arg)
{
	struct call *call = arg;
	struct server *s = call->server;
	SSL *ssl = SSL_new(s->context);
	if (ssl && SSL_set_fd(ssl, call->fd) == 1)
		converse(call, ssl);
	SSL_free(ssl);
	ERR_clear_error();
	pthread_mutex_lock(&s->lock);
	int fd = call->fd;
	call->address[0] = 0;
	close(fd);
	s->open--;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* What the limit of connections is for. */
static uint64_t network_of(int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t size = sizeof peer;
	uint64_t network = 0;
	if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
		return 0;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&peer;
	if (peer.ss_family == AF_INET)
		memcpy(&network, &((const struct sockaddr_in *)&peer)->sin_addr, 4);
	else if (peer.ss_family == AF_INET6)
		/* Only a socket for both families shows IPv4 addresses in this form. */
		memcpy(&network, six->sin6_addr.s6_addr + (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) ? 8 : 0), 8);
	return network;
}

/* A free place, unless this network has enough of them. */
static struct call *find_place(struct server *s, uint64_t network)
{
	struct call *place = NULL;
	unsigned same = 0;
	for (unsigned i = 0; i < CALLS_MAX; i++) {
		struct call *call = &s->calls[i];
		same += call->address[0] && call->network == network;
		if (!call->address[0])
			place = call;
	}
	return same < CALLS_OF_ONE ? place : NULL;
}

static void start_call(struct server *s, int fd)
{
	char address[OW_ADDRESS_TEXT];
	pthread_attr_t attributes;
	pthread_t thread;
	uint64_t network = network_of(fd);
	ow_address_text(fd, address);
	char *colon = strrchr(address, ':');
	if (colon)
		*colon = 0;
	if (!*address)
		snprintf(address, sizeof address, "?");
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	ow_enrol_limit(fd, OW_ENROL_WAIT_S);
	pthread_mutex_lock(&s->lock);
	struct call *call = find_place(s, network);
	if (call) {
		*call = (struct call){.server = s,
		                      .fd = fd,
		                      .network = network,
		                      .until_ns = ow_clock_steady_ns() + OW_ENROL_WAIT_S * (int64_t)OW_NS_PER_S};
		memcpy(call->address, address, sizeof address);
		s->open++;
	}
	pthread_mutex_unlock(&s->lock);
	if (!call) {
		close(fd);
		return;
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, THREAD_STACK);
	if (pthread_create(&thread, &attributes, serve_call, call) != 0)
		serve_call(call);
	pthread_attr_destroy(&attributes);
}

/* -- the server ---------------------------------------------------------------------------------------------------- */

/* Whether a certificate is trusted depends on the request. TLS still proves that the client has its key. */
static int accept_any(X509_STORE_CTX *verify, void *arg)
{
	(void)verify;
	(void)arg;
	return 1;
}

static int open_context(struct server *s, struct ow_error *err)
{
	struct ow_fleet *fleet = NULL;
	struct ow_credential self = {0}, ca = {0};
	int r = ow_fleet_open(s->how->folder, &fleet, err);
	if (r == 0)
		r = ow_authority_load(fleet, &ca, err);
	if (r == 0)
		r = ow_credential_load(fleet->path, "serve", &self, err);
	if (r == -ENOENT && !err->text[0])
		r = ow_error_set(err, ENOENT, "%s has no serve.pem and serve.key", s->how->folder);
	if (r == 0) {
		SSL_CTX *c = s->context = ow_enrol_context();
		s->store = X509_STORE_new();
		/* The client sees the authority's certificate, too: its token names it. */
		if (!c || !s->store || SSL_CTX_use_certificate(c, self.certificate) != 1 ||
		    SSL_CTX_use_PrivateKey(c, self.key) != 1 || SSL_CTX_add1_chain_cert(c, ca.certificate) != 1 ||
		    X509_STORE_add_cert(s->store, ca.certificate) != 1)
			r = ow_openssl_failed("TLS", err);
		else {
			SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
			SSL_CTX_set_cert_verify_callback(c, accept_any, NULL);
		}
	}
	ow_credential_done(&self);
	ow_credential_done(&ca);
	ow_fleet_close(fleet);
	return r;
}

static void accept_calls(struct server *s, int listener)
{
	struct pollfd wait[] = {{.fd = listener, .events = POLLIN}, {.fd = s->how->stop_fd, .events = POLLIN}};
	for (;;) {
		int fd;
		if (poll(wait, 2, 1000) < 0 && errno != EINTR)
			return;
		cut_late(s);
		if (wait[1].revents)
			return;
		if (!wait[0].revents)
			continue;
		if (ow_accept(listener, &fd) == 0)
			start_call(s, fd);
		else
			usleep(10000); /* no descriptors: not at full speed */
	}
}

/* Lets the calls end; none takes long. */
static void drain(struct server *s)
{
	__atomic_store_n(&s->stopping, true, __ATOMIC_RELAXED);
	for (unsigned open = 1; open;) {
		usleep(10000);
		cut_late(s);
		pthread_mutex_lock(&s->lock);
		open = s->open;
		pthread_mutex_unlock(&s->lock);
	}
}

int ow_enrol_serve(const struct ow_enrol_server *how, struct ow_error *err)
{
	struct server *s = calloc(1, sizeof *s);
	int listener = -1;
	if (!s)
		return ow_error_set(err, ENOMEM, "not enough memory");
	s->how = how;
	err->text[0] = 0;
	pthread_mutex_init(&s->lock, NULL);
	int r = open_context(s, err);
	if (r == 0)
		r = ow_listen(how->listen, &listener, err);
	if (r == 0) {
		char line[80 + OW_ADDRESS_TEXT];
		snprintf(line, sizeof line, "gives points their certificates at %.80s", how->listen);
		how->log(how->arg, false, line);
		accept_calls(s, listener);
		close(listener);
		drain(s);
	}
	SSL_CTX_free(s->context);
	X509_STORE_free(s->store);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return r;
}
