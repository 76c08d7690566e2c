/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a point, and which peers it accepts. Only TLS 1.3; no tickets, no early data, no resumption: every
 * connection authenticates both ends again.
 *
 * Certificates: the peer's must chain to our CA, be for the use (server or client) and have the expected name.
 * Pre-shared key: an external PSK with (EC)DHE. The identity is the connecting point's name; the connecting point sends
 * the wanted name in server_name, and a point with another name refuses, so that a wrong address is detected in a lab
 * as well.
 */
#include "exchange/tls.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PSK_BYTES_MIN       16
#define KEY_FILE_MAX        65536 /* any key is smaller; the limit protects the memory against a wrong path */
#define REKEY               (UINT64_C(1) << 20) /* far below the 2^24.5 records of RFC 8446, 5.5 */
#define SECURITY_BITS_LEVEL 2                   /* 112 bits, whatever the system's configuration */
#define CHAIN_BYTES_MAX     32768               /* of a peer's certificates: two of RSA-4096 are 4 KiB */

/* SHA-256 as the hash of the key exchange, RFC 8446's default for external keys, which `openssl s_client -psk` uses. */
#define PSK_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
static const unsigned char psk_suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */

/* The first error of OpenSSL's queue, which is emptied. */
static const char *reason(void)
{
	unsigned long code = ERR_peek_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return text ? text : "unknown error";
}

/* Opens a file with a secret: it must be regular, and nobody else may read it. */
static int open_secret(const char *what, const char *path, FILE **ret_file, struct ow_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return ow_error_set(err, errno, "%s %s: %s", what, path, strerror(errno));
	struct stat status;
	int r = 0;
	if (fstat(fd, &status) < 0)
		r = ow_error_set(err, errno, "%s %s: %s", what, path, strerror(errno));
	else if (!S_ISREG(status.st_mode))
		r = ow_error_set(err, EINVAL, "%s %s: not a regular file", what, path);
	else if (status.st_mode & 0077)
		r = ow_error_set(err, EACCES, "%s %s: others than its owner may use it; run: chmod 600 %s", what, path,
		                 path);
	else if (status.st_size > KEY_FILE_MAX)
		r = ow_error_set(err, EINVAL, "%s %s: larger than %d bytes", what, path, KEY_FILE_MAX);
	FILE *file = r < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		if (r == 0)
			r = ow_error_set(err, errno, "%s %s: %s", what, path, strerror(errno));
		close(fd);
		return r;
	}
	*ret_file = file;
	return 0;
}

/* Instead of asking at the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
	(void)buffer;
	(void)size;
	(void)writing;
	*(bool *)arg = true;
	return -1;
}

static int load_key(SSL_CTX *context, const char *path, struct ow_error *err)
{
	FILE *file = NULL;
	int r = open_secret("key", path, &file, err);
	if (r < 0)
		return r;
	bool encrypted = false;
	EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, no_passphrase, &encrypted);
	fclose(file);
	if (encrypted)
		r = ow_error_set(err, EINVAL, "key %s: it has a passphrase, and nobody could type it", path);
	else if (!key)
		r = ow_error_set(err, EINVAL, "key %s: no private key in PEM format (%s)", path, reason());
	else if (SSL_CTX_use_PrivateKey(context, key) != 1)
		r = ow_error_set(err, EINVAL, "key %s: does not belong to the certificate (%s)", path, reason());
	ERR_clear_error();
	EVP_PKEY_free(key);
	return r;
}

/* What a peer would find wrong with our certificate is better said at the start. */
static int check_own(SSL_CTX *context, const struct ow_tls_options *options, int64_t *ret_expiry_s,
                     struct ow_error *err)
{
	X509 *own = SSL_CTX_get0_certificate(context);
	STACK_OF(X509) *chain = NULL;
	char name[OW_POINT_NAME], whose[256];
	snprintf(whose, sizeof whose, "certificate %.200s", options->certificate);
	struct ow_error why = {""};
	int r = ow_certificate_name(own, name, &why);
	if (r < 0)
		return ow_error_set(err, -r, "%s: %s", whose, why.text);
	if (options->name && !ow_certificate_is_for(own, options->name))
		return ow_error_set(err, EINVAL, "%s: is for '%s', but this point is '%s'", whose, name, options->name);
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	SSL_CTX_get0_chain_certs(context, &chain);
	if (!verify || X509_STORE_CTX_init(verify, SSL_CTX_get_cert_store(context), own, chain) != 1)
		r = ow_error_set(err, ENOMEM, "out of memory");
	else if (X509_verify_cert(verify) != 1)
		r = ow_certificate_wrong(verify, whose, err);
	else
		*ret_expiry_s = ow_certificate_expiry_s(X509_STORE_CTX_get0_chain(verify));
	X509_STORE_CTX_free(verify);
	ERR_clear_error();
	return r;
}

static int load_certificates(struct ow_tls *tls, const struct ow_tls_options *options, struct ow_error *err)
{
	SSL_CTX *context = tls->context;
	if (SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1)
		return ow_error_set(err, EINVAL, "certificate %s: cannot be used (%s)", options->certificate, reason());
	if (SSL_CTX_load_verify_file(context, options->ca) != 1)
		return ow_error_set(err, EINVAL, "ca %s: no certificates to be read (%s)", options->ca, reason());
	int r = load_key(context, options->key, err);
	return r < 0 ? r : check_own(context, options, &tls->expiry_s, err);
}

static int hex_digit(int c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

int ow_psk_load(const char *path, uint8_t ret_key[OW_PSK_MAX], size_t *ret_size, struct ow_error *err)
{
	FILE *file = NULL;
	int r = open_secret("psk", path, &file, err);
	if (r < 0)
		return r;
	uint8_t key[OW_PSK_MAX] = {0};
	size_t digits = 0;
	int c;
	while ((c = getc(file)) != EOF && r == 0) {
		int digit = hex_digit(c);
		if (digit < 0 && isspace(c))
			continue;
		if (digit < 0)
			r = ow_error_set(err, EINVAL, "psk %s: only hexadecimal digits may be in it", path);
		else if (digits >= 2 * sizeof key)
			r = ow_error_set(err, EINVAL, "psk %s: more than %zu digits", path, 2 * sizeof key);
		else
			key[digits / 2] |= (uint8_t)(digits % 2 ? digit : digit << 4);
		digits++;
	}
	fclose(file);
	if (r == 0 && (digits < 2 * PSK_BYTES_MIN || digits % 2))
		r = ow_error_set(err, EINVAL, "psk %s: %zu hexadecimal digits; needs %d or more, an even number", path,
		                 digits, 2 * PSK_BYTES_MIN);
	if (r == 0) {
		memcpy(ret_key, key, sizeof key);
		*ret_size = digits / 2;
	}
	OPENSSL_cleanse(key, sizeof key);
	return r;
}

static int load_psk(struct ow_tls *tls, const char *path, struct ow_error *err)
{
	uint8_t key[OW_PSK_MAX];
	size_t size = 0;
	int r = ow_psk_load(path, key, &size, err);
	if (r == 0 && !(tls->psk = OPENSSL_memdup(key, size)))
		r = ow_error_set(err, ENOMEM, "out of memory");
	tls->psk_size = size;
	OPENSSL_cleanse(key, sizeof key);
	return r;
}

/* Both sides' view of the pre-shared key. */
static SSL_SESSION *psk_session(SSL *ssl, const struct ow_tls *tls)
{
	SSL_SESSION *session = SSL_SESSION_new();
	const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, psk_suite);
	if (session && suite && SSL_SESSION_set1_master_key(session, tls->psk, tls->psk_size) == 1 &&
	    SSL_SESSION_set_cipher(session, suite) == 1 &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Connecting side: sends its own name. */
static int offer_psk(SSL *ssl, const EVP_MD *md, const unsigned char **ret_id, size_t *ret_size,
                     SSL_SESSION **ret_session)
{
	const struct ow_handshake *handshake = SSL_get_app_data(ssl);
	*ret_session = NULL;
	/* After a retry only one hash is left; without a session there is no offer and the handshake fails. */
	if (md && !EVP_MD_is_a(md, "SHA256"))
		return 1;
	*ret_session = psk_session(ssl, handshake->tls);
	*ret_id = (const unsigned char *)handshake->tls->name;
	*ret_size = strlen(handshake->tls->name);
	return *ret_session != NULL;
}

/* Listening side: without a session there is neither key nor certificate, and the handshake fails. */
static int find_psk(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **ret_session)
{
	struct ow_handshake *handshake = SSL_get_app_data(ssl);
	char name[OW_POINT_NAME] = "";
	*ret_session = NULL;
	if (size < sizeof name && !memchr(id, 0, size))
		memcpy(name, id, size);
	if (!ow_point_name_valid(name)) {
		ow_error_set(&handshake->refused, EACCES, "the peer names itself by what is no name of a point");
		return 1;
	}
	if (handshake->expect[0] && strcmp(handshake->expect, name) != 0) {
		ow_error_set(&handshake->refused, EACCES, "the peer's name is '%s', but '%s' is expected", name,
		             handshake->expect);
		return 1;
	}
	*ret_session = psk_session(ssl, handshake->tls);
	memcpy(handshake->peer, name, sizeof name);
	return *ret_session != NULL;
}

static int check_server_name(SSL *ssl, int *alert, void *arg)
{
	struct ow_handshake *handshake = SSL_get_app_data(ssl);
	const char *wanted = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	(void)arg;
	/* A point with certificates says nothing here; it will be refused for having no key. */
	if (!handshake->server || !wanted || strcmp(wanted, handshake->tls->name) == 0)
		return SSL_TLSEXT_ERR_OK;
	ow_error_set(&handshake->refused, EACCES, "the peer looks for '%s', but this point is '%s'",
	             ow_point_name_valid(wanted) ? wanted : "?", handshake->tls->name);
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int use_psk(struct ow_tls *tls, const struct ow_tls_options *options, struct ow_error *err)
{
	if (!options->name)
		return ow_error_set(err, EINVAL, "a pre-shared key needs the name of this point");
	int r = load_psk(tls, options->psk_file, err);
	if (r < 0)
		return r;
	if (SSL_CTX_set_ciphersuites(tls->context, PSK_SUITES) != 1)
		return ow_error_set(err, EINVAL, "OpenSSL: %s", reason());
	SSL_CTX_set_psk_use_session_callback(tls->context, offer_psk);
	SSL_CTX_set_psk_find_session_callback(tls->context, find_psk);
	SSL_CTX_set_tlsext_servername_callback(tls->context, check_server_name);
	return 0;
}

/* Replaces OpenSSL's own check, so that the certificate's name is available if it is refused. */
static int verify_peer(X509_STORE_CTX *verify, void *arg)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(verify, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct ow_handshake *handshake = SSL_get_app_data(ssl);
	const X509 *certificate = X509_STORE_CTX_get0_cert(verify);
	struct ow_error *refused = &handshake->refused;
	(void)arg;
	if (handshake->tls->psk) {
		X509_STORE_CTX_set_error(verify, X509_V_ERR_APPLICATION_VERIFICATION); /* alert: handshake failure */
		ow_error_set(refused, EACCES, "the peer shows a certificate, but this point has a pre-shared key");
		return 0;
	}
	if (X509_verify_cert(verify) != 1) {
		ow_certificate_wrong(verify, "the peer's certificate", refused);
		return 0;
	}
	char name[OW_POINT_NAME];
	struct ow_error why = {""};
	if (ow_certificate_name(certificate, name, &why) < 0) {
		X509_STORE_CTX_set_error(verify, X509_V_ERR_HOSTNAME_MISMATCH);
		ow_error_set(refused, EACCES, "the peer's certificate: %s", why.text);
		return 0;
	}
	if (handshake->expect[0] && !ow_certificate_is_for(certificate, handshake->expect)) {
		X509_STORE_CTX_set_error(verify, X509_V_ERR_HOSTNAME_MISMATCH);
		ow_error_set(refused, EACCES, "the peer's name is '%s', but '%s' is expected", name, handshake->expect);
		return 0;
	}
	if (ow_revoked_check(&handshake->tls->revoked, certificate, handshake->expect[0] ? handshake->expect : name,
	                     refused) < 0) {
		X509_STORE_CTX_set_error(verify, X509_V_ERR_CERT_REVOKED);
		return 0;
	}
	memcpy(handshake->peer, handshake->expect[0] ? handshake->expect : name, sizeof handshake->peer);
	return 1;
}

static int create_context(struct ow_tls *tls, struct ow_error *err)
{
	SSL_CTX *context = tls->context = SSL_CTX_new(TLS_method());
	tls->transport = ow_transport_method();
	if (!context || !tls->transport || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1)
		return ow_error_set(err, ENOMEM, "OpenSSL: %s", reason());
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
	                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_security_level(context, SECURITY_BITS_LEVEL);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(context, CHAIN_BYTES_MAX);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                                  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_cert_verify_callback(context, verify_peer, NULL);
	return 0;
}

static int check_options(const struct ow_tls_options *o, struct ow_error *err)
{
	bool any = o->certificate || o->key || o->ca, all = o->certificate && o->key && o->ca;
	if (o->name && !ow_point_name_valid(o->name))
		return ow_error_set(err, EINVAL,
		                    "'%.80s' is no name of a point (1 to %d letters, digits, '.', '_', '-')", o->name,
		                    OW_POINT_NAME - 1);
	if (any && o->psk_file)
		return ow_error_set(err, EINVAL, "either certificates or a pre-shared key, not both");
	if (any && !all)
		return ow_error_set(err, EINVAL, "certificate, key and ca are needed together");
	if (!any && !o->psk_file)
		return ow_error_set(err, EINVAL, "neither certificate, key and ca nor psk are given");
	return 0;
}

int ow_tls_create(const struct ow_tls_options *options, struct ow_tls **ret_tls, struct ow_error *err)
{
	int r = check_options(options, err);
	if (r < 0)
		return r;
	struct ow_tls *tls = calloc(1, sizeof *tls);
	if (!tls)
		return ow_error_set(err, ENOMEM, "out of memory");
	tls->rekey = REKEY;
	tls->expiry_s = INT64_MAX;
	if (options->name)
		snprintf(tls->name, sizeof tls->name, "%s", options->name);
	ERR_clear_error();
	r = create_context(tls, err);
	if (r == 0)
		r = options->psk_file ? use_psk(tls, options, err) : load_certificates(tls, options, err);
	if (r == 0 && options->revoked)
		r = ow_revoked_load(&tls->revoked, options->revoked, err);
	if (r < 0) {
		ow_tls_free(tls);
		return r;
	}
	*ret_tls = tls;
	return 0;
}

int64_t ow_tls_expiry_s(const struct ow_tls *tls)
{
	return tls->expiry_s;
}

int ow_tls_check_peer(const struct ow_tls *tls, SSL *ssl, bool server, const char *name, struct ow_error *err)
{
	X509 *leaf = SSL_get0_peer_certificate(ssl);
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	int r = 0;
	if (!leaf)
		r = ow_error_set(err, EACCES, "the peer has shown no certificate");
	else if (!verify ||
	         X509_STORE_CTX_init(verify, SSL_CTX_get_cert_store(tls->context), leaf,
	                             SSL_get_peer_cert_chain(ssl)) != 1 ||
	         X509_STORE_CTX_set_default(verify, server ? "ssl_client" : "ssl_server") != 1)
		r = ow_error_set(err, ENOMEM, "out of memory");
	if (r == 0) {
		X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(verify), SECURITY_BITS_LEVEL);
		if (X509_verify_cert(verify) != 1)
			r = ow_certificate_wrong(verify, "the peer's certificate", err);
		else if (!ow_certificate_is_for(leaf, name))
			r = ow_error_set(err, EACCES, "the peer's certificate is not for '%s'", name);
		else
			r = ow_revoked_check(&tls->revoked, leaf, name, err);
	}
	X509_STORE_CTX_free(verify);
	ERR_clear_error();
	return r;
}

void ow_tls_free(struct ow_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->transport);
	OPENSSL_clear_free(tls->psk, tls->psk_size);
	ow_revoked_done(&tls->revoked);
	free(tls);
}

SSL *ow_tls_connection(const struct ow_tls *tls, struct ow_handshake *handshake)
{
	/* To OpenSSL a pre-shared key is a resumed session, and a server wants to know of what. */
	static const unsigned char of[] = "oneway";
	SSL *ssl = SSL_new(tls->context);
	if (!ssl)
		return NULL;
	SSL_set_app_data(ssl, handshake);
	if (handshake->server) {
		SSL_set_session_id_context(ssl, of, sizeof of - 1);
		SSL_set_accept_state(ssl);
		return ssl;
	}
	SSL_set_connect_state(ssl);
	/* In the clear, as the identity is; with certificates the names stay encrypted. */
	if (tls->psk && handshake->expect[0] && SSL_set_tlsext_host_name(ssl, handshake->expect) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}
