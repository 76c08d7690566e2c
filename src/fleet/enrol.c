/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a point: it connects to its authority, recognises it, and asks for a certificate. */
#include "fleet/enrol.h"

#include "base/state_file.h"
#include "config/config_fleet.h"
#include "fleet/authority.h"
#include "fleet/enrol_wire.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX      65536
#define SELF_VALID_S 3600

/* By what the authority is recognised: its certificate, or, before the point has it, the token. */
struct trust {
	X509 *ca;
	uint8_t pin[OW_TOKEN_PIN];
};

struct call {
	SSL_CTX *context;
	SSL *ssl;
	int fd;
	struct trust trust;
	struct ow_error refused; /* why the other end is not trusted */
};

/* -- who answers --------------------------------------------------------------------------------------------------- */

/* The authority's certificate among those that the other end shows. */
static X509 *find_authority(const struct trust *trust, STACK_OF(X509) * chain)
{
	uint8_t pin[OW_TOKEN_PIN];
	if (trust->ca)
		return trust->ca;
	for (int i = 0; i < sk_X509_num(chain); i++) {
		X509 *c = sk_X509_value(chain, i);
		if (ow_certificate_pin(c, pin) == 0 && memcmp(pin, trust->pin, sizeof pin) == 0)
			return c;
	}
	return NULL;
}

static bool is_signed_by(X509_STORE_CTX *given, X509 *ca)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	bool good = store && verify && X509_STORE_add_cert(store, ca) == 1 &&
	            X509_STORE_CTX_init(verify, store, X509_STORE_CTX_get0_cert(given), NULL) == 1 &&
	            X509_verify_cert(verify) == 1;
	X509_STORE_CTX_free(verify);
	X509_STORE_free(store);
	ERR_clear_error();
	return good;
}

/* Another point has a certificate of the same authority, but not this name. */
static int verify_authority(X509_STORE_CTX *verify, void *arg)
{
	struct call *call = arg;
	char uri[OW_URI_TEXT];
	X509 *ca = find_authority(&call->trust, X509_STORE_CTX_get0_untrusted(verify));
	ow_uri_of_certificate(X509_STORE_CTX_get0_cert(verify), uri);
	if (!ca)
		ow_error_set(&call->refused, EACCES, "it is not the fleet that the token is of");
	else if (!is_signed_by(verify, ca))
		ow_error_set(&call->refused, EACCES, "its certificate is not one of the fleet, or has expired");
	else if (strncmp(uri, "oneway:service/serve/", 21) != 0)
		ow_error_set(&call->refused, EACCES, "it is not the authority of the fleet, but '%s'", uri);
	else
		return 1;
	X509_STORE_CTX_set_error(verify, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* -- a connection -------------------------------------------------------------------------------------------------- */

static int dial(const char *address, int *ret_fd, struct ow_error *err)
{
	char full[300];
	const char *colon = strrchr(address, ':');
	bool port = colon && (*address == '[' ? colon[-1] == ']' : strchr(address, ':') == colon);
	if (port)
		snprintf(full, sizeof full, "%.250s", address);
	else if (strchr(address, ':') && *address != '[')
		snprintf(full, sizeof full, "[%.250s]:%d", address, OW_FLEET_PORT);
	else
		snprintf(full, sizeof full, "%.250s:%d", address, OW_FLEET_PORT);
	int fd, r = ow_connect(full, &fd, err);
	if (r < 0)
		return r;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t size = sizeof error;
	if (poll(&ready, 1, OW_ENROL_WAIT_S * 1000) != 1)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error) {
		close(fd);
		return ow_error_set(err, error, "%s: %s", full, strerror(error));
	}
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	ow_enrol_limit(fd, OW_ENROL_WAIT_S);
	*ret_fd = fd;
	return 0;
}

static void hang_up(struct call *call)
{
	SSL_free(call->ssl);
	SSL_CTX_free(call->context);
	if (call->fd >= 0)
		close(call->fd);
	X509_free(call->trust.ca);
}

/* Connects as who has this key and certificate. */
static int call_authority(const char *address, const struct ow_credential *self, struct call *call,
                          struct ow_error *err)
{
	int r = dial(address, &call->fd, err);
	if (r < 0)
		return r;
	call->context = ow_enrol_context();
	if (!call->context || SSL_CTX_use_certificate(call->context, self->certificate) != 1 ||
	    SSL_CTX_use_PrivateKey(call->context, self->key) != 1)
		return ow_openssl_failed("own key", err);
	SSL_CTX_set_verify(call->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(call->context, verify_authority, call);
	call->ssl = SSL_new(call->context);
	if (!call->ssl || SSL_set_fd(call->ssl, call->fd) != 1)
		return ow_openssl_failed("TLS", err);
	errno = 0;
	if (SSL_connect(call->ssl) == 1)
		return 0;
	if (call->refused.text[0])
		return ow_error_set(err, EACCES, "%s: %s", address, call->refused.text);
	struct ow_error why;
	ow_enrol_failed(address, &why);
	*err = why;
	return -EIO;
}

/* One request and its answer, without "ok". */
static int ask(struct call *call, const char *request, char **ret_answer, size_t *ret_size, struct ow_error *err)
{
	char *text = NULL;
	size_t size = 0;
	int r = ow_enrol_write(call->ssl, request, strlen(request), err);
	if (r == 0)
		r = ow_enrol_read(call->ssl, OW_ENROL_ANSWER_MAX, false, &text, &size, err);
	if (r == 0 && strncmp(text, "ok\n", 3) != 0) {
		text[strcspn(text, "\n")] = 0;
		r = ow_error_set(err, EACCES, "the fleet refuses: %.200s",
		                 strncmp(text, "no ", 3) == 0 ? text + 3 : "(no reason given)");
	}
	if (r != 0) {
		free(text);
		return r;
	}
	memmove(text, text + 3, size - 2);
	*ret_answer = text;
	*ret_size = size - 3;
	return 0;
}

/* -- the point's files --------------------------------------------------------------------------------------------- */

static int write_pem(const char *folder, const char *name, X509 *certificate, EVP_PKEY *key, struct ow_error *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *path = ow_state_path(folder, name), *bytes = NULL;
	bool made = bio && path &&
	            (certificate ? PEM_write_bio_X509(bio, certificate)
	                         : PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)) == 1;
	long size = made ? BIO_get_mem_data(bio, &bytes) : 0;
	int r = made ? ow_state_write(path, bytes, (size_t)size, err) : ow_openssl_failed(name, err);
	BIO_free(bio);
	free(path);
	return r;
}

static void *read_pem(const char *folder, const char *name, bool is_key)
{
	char *path = ow_state_path(folder, name);
	FILE *file = path ? ow_state_open(path) : NULL;
	void *item = !file    ? NULL
	             : is_key ? (void *)PEM_read_PrivateKey(file, NULL, NULL, "")
	                      : PEM_read_X509(file, NULL, NULL, "");
	if (file)
		fclose(file);
	free(path);
	ERR_clear_error();
	return item;
}

/* The point's key: it is made once, and never leaves the host. */
static int get_key(const char *folder, EVP_PKEY **ret_key, struct ow_error *err)
{
	struct stat status;
	char *path = ow_state_path(folder, OW_FLEET_KEY);
	bool exists = path && stat(path, &status) == 0;
	int r = 0;
	*ret_key = read_pem(folder, OW_FLEET_KEY, true);
	if (!*ret_key && exists)
		r = ow_error_set(err, EINVAL, "%s: not a private key, or not readable", path);
	else if (!*ret_key && !(*ret_key = EVP_EC_gen("P-256")))
		r = ow_openssl_failed("making a key", err);
	else if (!exists)
		r = write_pem(folder, OW_FLEET_KEY, NULL, *ret_key, err);
	free(path);
	return r;
}

/* A certificate that only carries the public key. */
static int sign_self(EVP_PKEY *key, X509 **ret_certificate, struct ow_error *err)
{
	X509 *c = X509_new();
	if (c && X509_set_version(c, X509_VERSION_3) == 1 && X509_gmtime_adj(X509_getm_notBefore(c), -SELF_VALID_S) &&
	    X509_gmtime_adj(X509_getm_notAfter(c), SELF_VALID_S) && X509_set_pubkey(c, key) == 1 &&
	    X509_sign(c, key, EVP_sha256()) > 0) {
		*ret_certificate = c;
		return 0;
	}
	X509_free(c);
	return ow_openssl_failed("own certificate", err);
}

/* -- the answer ---------------------------------------------------------------------------------------------------- */

/* The addresses of the bus: the lines in front. */
static int write_servers(const char *folder, const char *answer, struct ow_error *err)
{
	char *path = ow_state_path(folder, OW_FLEET_SERVERS), *list = NULL;
	size_t size;
	FILE *out = open_memstream(&list, &size);
	if (!path || !out) {
		free(path);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	for (const char *line = answer; strncmp(line, "server ", 7) == 0; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");
		fprintf(out, "%.*s\n", (int)(length - 7), line + 7);
		if (!line[length])
			break;
	}
	int r = fclose(out) == 0 ? ow_state_write(path, list, size, err)
	                         : ow_error_set(err, ENOMEM, "not enough memory");
	free(list);
	free(path);
	return r;
}

/* The certificate must be for this key and this name, and signed by the authority that was recognised. */
static int check_answer(const struct call *call, const char *name, EVP_PKEY *key, X509 *certificate, X509 *ca,
                        struct ow_error *err)
{
	uint8_t pin[OW_TOKEN_PIN];
	char host[OW_POINT_NAME + 1];
	snprintf(host, sizeof host, "%s", name);
	bool known =
		certificate && ca &&
		(call->trust.ca ? X509_cmp(ca, call->trust.ca) == 0
	                        : ow_certificate_pin(ca, pin) == 0 && memcmp(pin, call->trust.pin, sizeof pin) == 0);
	if (!known || X509_check_private_key(certificate, key) != 1 ||
	    X509_verify(certificate, X509_get0_pubkey(ca)) != 1 ||
	    X509_check_host(certificate, host, 0, X509_CHECK_FLAG_NO_WILDCARDS, NULL) != 1) {
		ERR_clear_error();
		return ow_error_set(err, EPROTO, "the answer of the fleet has no certificate for this point");
	}
	return 0;
}

static int take_answer(const struct call *call, const struct ow_config *config, EVP_PKEY *key, const char *answer,
                       size_t size, struct ow_error *err)
{
	const char *folder = config->fleet.state;
	BIO *bio = size <= PEM_MAX ? BIO_new_mem_buf(answer, (int)size) : NULL;
	X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, "") : NULL,
	     *ca = bio ? PEM_read_bio_X509(bio, NULL, NULL, "") : NULL;
	int r = check_answer(call, config->point, key, certificate, ca, err);
	if (r == 0)
		r = write_servers(folder, answer, err);
	if (r == 0)
		r = write_pem(folder, OW_FLEET_CA, ca, NULL, err);
	/* The same key as before, but for a new token. If this ends before the certificate is there, the key gets it again. */
	if (r == 0)
		r = write_pem(folder, OW_FLEET_KEY, NULL, key, err);
	/* Last, because with it the point is enrolled. */
	if (r == 0)
		r = write_pem(folder, OW_FLEET_CERTIFICATE, certificate, NULL, err);
	X509_free(certificate);
	X509_free(ca);
	BIO_free(bio);
	return r;
}

/* Whether half of the time of a certificate is over. It begins a day before it was made. */
static bool is_due(const X509 *certificate)
{
	int days = 0, seconds = 0, total_days = 0, total = 0;
	const ASN1_TIME *from = X509_get0_notBefore(certificate), *to = X509_get0_notAfter(certificate);
	if (ASN1_TIME_diff(&days, &seconds, NULL, to) != 1 || ASN1_TIME_diff(&total_days, &total, from, to) != 1)
		return true;
	int64_t left_s = (int64_t)days * 86400 + seconds, valid_s = (int64_t)(total_days - 1) * 86400 + total;
	return left_s < valid_s / 2;
}

static int exchange(const struct ow_config *config, const char *request, const struct ow_credential *self,
                    struct call *call, struct ow_error *err)
{
	char *answer = NULL;
	size_t size;
	int r = call_authority(config->fleet.address, self, call, err);
	if (r == 0)
		r = ask(call, request, &answer, &size, err);
	if (r == 0)
		r = take_answer(call, config, self->key, answer, size, err);
	free(answer);
	return r < 0 ? r : 1;
}

static void hash_text(const void *bytes, size_t size, char ret_hex[65])
{
	uint8_t hash[32] = {0};
	(void)EVP_Q_digest(NULL, "SHA256", NULL, bytes, size, hash, NULL);
	for (size_t i = 0; i < sizeof hash; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", hash[i]);
}

/* Whether the token is not the one by which the certificate came. Without a record of that it is taken for the same. */
static bool is_other_token(const struct ow_config *config, const char *refused)
{
	char *path = ow_state_path(config->fleet.state, OW_FLEET_TOKEN), *used = NULL, hex[65] = "";
	size_t size;
	struct ow_error ignored;
	bool known = config->fleet.token && strncmp(config->fleet.token, refused, OW_ENROL_TOKEN - 1) != 0 && path &&
	             ow_state_read(path, 100, &used, &size, &ignored) == 0;
	if (known)
		hash_text(config->fleet.token, strlen(config->fleet.token), hex);
	bool other = known && strcmp(used, hex) != 0;
	free(used);
	free(path);
	return other;
}

/* The token serves once: only its hash is kept. */
static int keep_token(const struct ow_config *config, struct ow_error *err)
{
	char *path = ow_state_path(config->fleet.state, OW_FLEET_TOKEN), hex[65];
	hash_text(config->fleet.token, strlen(config->fleet.token), hex);
	int r = path ? ow_state_write(path, hex, strlen(hex), err) : ow_error_set(err, ENOMEM, "not enough memory");
	free(path);
	return r;
}

static int first_time(const struct ow_config *config, EVP_PKEY *key, struct call *call, struct ow_error *err)
{
	struct ow_credential self = {.key = key};
	uint8_t secret[OW_TOKEN_SECRET];
	char request[OW_ENROL_REQUEST_MAX];
	if (!config->fleet.token)
		return ow_error_set(err, EACCES,
		                    "no certificate yet, and 'fleet' has no token; 'oneway fleet enroll %s' "
		                    "makes one",
		                    config->point);
	int r = ow_token_parse(config->fleet.token, secret, call->trust.pin, err);
	if (r == 0)
		r = sign_self(key, &self.certificate, err);
	snprintf(request, sizeof request, "enrol %s %.*s\n", config->point, 2 * OW_TOKEN_SECRET, config->fleet.token);
	if (r == 0)
		r = exchange(config, request, &self, call, err);
	if (r > 0 && keep_token(config, err) < 0)
		r = -EIO;
	OPENSSL_cleanse(request, sizeof request);
	X509_free(self.certificate);
	return r;
}

/*
 * Somebody has enrolled the point anew: it gets another key and a certificate for it. If the fleet refuses the token, the
 * point goes on with what it has, and does not ask again.
 */
static int replace_key(const struct ow_config *config, char *refused, struct ow_error *err)
{
	struct call call = {.fd = -1};
	EVP_PKEY *key = EVP_EC_gen("P-256");
	int r = key ? first_time(config, key, &call, err) : ow_openssl_failed("making a key", err);
	if (r == -EACCES || r == -EINVAL)
		snprintf(refused, OW_ENROL_TOKEN, "%s", config->fleet.token);
	hang_up(&call);
	EVP_PKEY_free(key);
	return r;
}

int ow_enrol(const struct ow_config *config, char ref_refused[OW_ENROL_TOKEN], struct ow_error *err)
{
	struct call call = {.fd = -1};
	struct ow_credential self = {0};
	const char *folder = config->fleet.state;
	int r = is_other_token(config, ref_refused) ? replace_key(config, ref_refused, err) : 0;
	if (r != 0)
		return r;
	r = get_key(folder, &self.key, err);
	self.certificate = read_pem(folder, OW_FLEET_CERTIFICATE, false);
	call.trust.ca = self.certificate ? read_pem(folder, OW_FLEET_CA, false) : NULL;
	bool enrolled = self.certificate && call.trust.ca && X509_check_private_key(self.certificate, self.key) == 1 &&
	                X509_cmp_current_time(X509_get0_notAfter(self.certificate)) > 0;
	if (r == 0 && enrolled && is_due(self.certificate)) {
		r = exchange(config, "renew\n", &self, &call, err);
	} else if (r == 0 && !enrolled) {
		X509_free(call.trust.ca);
		call.trust.ca = NULL;
		r = first_time(config, self.key, &call, err);
	}
	hang_up(&call);
	ow_credential_done(&self);
	return r;
}

/* -- servers of the bus -------------------------------------------------------------------------------------------- */

static int hash_file(const char *path, char ret_hex[65])
{
	char *bytes = NULL;
	size_t size;
	struct ow_error ignored;
	memset(ret_hex, '0', 64);
	ret_hex[64] = 0;
	if (ow_state_read(path, OW_ENROL_ANSWER_MAX, &bytes, &size, &ignored) == 0)
		hash_text(bytes, size, ret_hex);
	free(bytes);
	return 0;
}

int ow_enrol_users(const char *address, const char *folder, struct ow_error *err)
{
	struct call call = {.fd = -1, .trust.ca = read_pem(folder, OW_FLEET_CA, false)};
	struct ow_credential self = {0};
	char hex[65], request[OW_ENROL_REQUEST_MAX], *answer = NULL, *path = ow_state_path(folder, "users.conf");
	size_t size = 0;
	int r = call.trust.ca && path ? ow_credential_load(folder, "server", &self, err) : -ENOENT;
	if (r == -ENOENT)
		r = ow_error_set(err, ENOENT, "%s needs ca.pem, server.pem and server.key", folder);
	if (r == 0)
		r = call_authority(address, &self, &call, err);
	if (r == 0) {
		ow_enrol_limit(call.fd, OW_ENROL_POLL_S + OW_ENROL_WAIT_S);
		hash_file(path, hex);
		snprintf(request, sizeof request, "users %s\n", hex);
		r = ask(&call, request, &answer, &size, err);
	}
	if (r == 0 && size > 0)
		r = ow_state_write(path, answer, size, err);
	free(answer);
	free(path);
	hang_up(&call);
	ow_credential_done(&self);
	return r < 0 ? r : size > 0;
}
