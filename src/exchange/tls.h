/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/revoked.h"
#include "exchange/session.h"

#include <openssl/ssl.h>

/* Private to tls.c, transport.c, refusal.c and session.c. */
struct ow_tls {
	SSL_CTX *context;
	BIO_METHOD *transport;
	uint8_t *psk; /* NULL: certificates */
	size_t psk_size;
	char name[OW_POINT_NAME];
	uint64_t rekey; /* records under one key; tests want fewer */
	int64_t expiry_s;
	struct ow_revoked revoked;
};

/* Of a session during its handshake. */
struct ow_handshake {
	const struct ow_tls *tls;
	bool server;
	char expect[OW_POINT_NAME]; /* "" = anybody whom the CA or the key vouches for */
	char peer[OW_POINT_NAME];   /* as proved, when the handshake is done */
	struct ow_error refused;    /* why we do not accept the peer, "" if we do */
};
/* A new connection with `handshake` as what the callbacks of the context get to see. */
SSL *ow_tls_connection(const struct ow_tls *tls, struct ow_handshake *handshake);

/* The socket below TLS: never raises SIGPIPE, counts bytes. */
struct ow_transport {
	int fd;
	uint64_t in, out;
	int error; /* errno of the last failure, 0 at an orderly end */
	bool ended;
};
BIO_METHOD *ow_transport_method(void);
BIO *ow_transport_bio(const BIO_METHOD *method, struct ow_transport *transport);

/* Fills err for a call of OpenSSL that failed with SSL_ERROR_SSL or SSL_ERROR_SYSCALL, and empties OpenSSL's queue of
 * errors. done: the handshake is. */
int ow_tls_why(const struct ow_handshake *handshake, const struct ow_transport *transport, bool done,
               struct ow_error *err);
/* The name that a certificate is for. -ENOENT, -EINVAL with a line. */
int ow_certificate_name(const X509 *certificate, char ret_name[OW_POINT_NAME], struct ow_error *err);
/* Does it carry this name? */
bool ow_certificate_is_for(const X509 *certificate, const char *name);
/* When the first of a chain expires, in seconds since 1970. */
int64_t ow_certificate_expiry_s(const STACK_OF(X509) * chain);
/* Checks a peer's certificate again. server: this point accepted the connection. */
int ow_tls_check_peer(const struct ow_tls *tls, SSL *ssl, bool server, const char *name, struct ow_error *err);
/* Words for why X509_verify_cert failed. whose: "the peer's certificate", or that of a file. */
int ow_certificate_wrong(X509_STORE_CTX *verify, const char *whose, struct ow_error *err);
