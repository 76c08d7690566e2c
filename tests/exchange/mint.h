/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "link.h"

#include <openssl/ssl.h>

/* Certificates of the keys' CA that something is wrong with, and peers that do what a session never does. */
struct mint {
	const char *cn;             /* NULL: an empty subject */
	const char *alternative;    /* as OpenSSL's configuration writes it: "DNS:paris"; NULL = none */
	const char *use;            /* "serverAuth,clientAuth" if NULL */
	long from_days, until_days; /* from now */
};
/* Writes FILE.pem and FILE.key into the folder. */
void mint(const struct keys *keys, const char *file, const struct mint *mint);

/* A peer made of OpenSSL alone. */
struct raw {
	int fd;
	SSL_CTX *context;
	SSL *ssl;
};
/* file NULL: no certificate. version: the only one that it speaks. The socket does not block. */
void raw_make(struct raw *raw, int fd, bool server, const struct keys *keys, const char *file, int version);
void raw_free(struct raw *raw);
/* Drives the session and shakes hands at the raw end until both are done or the session ends; the session's answer. */
int raw_shake(struct raw *raw, struct ow_session *session, struct ow_error *err);
