/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * What a point and its authority say to each other: TLS 1.3, one line of the point, one answer, the end.
 *
 *	enrol NAME SECRET      with a certificate that the point has signed itself: TLS proves that it has the key
 *	renew                  with the certificate that it has from the authority
 *	users HASH             with that of a server of the bus: answered when users.conf has another hash, or after a while
 *
 *	ok                     then "server tls://HOST:PORT" for each server of the bus, and in PEM the certificate and that
 *	                       of the authority; for `users`, the file
 *	no REASON
 */
#define OW_ENROL_REQUEST_MAX 256
#define OW_ENROL_ANSWER_MAX  (64u << 20) /* users.conf of 100,000 points */
#define OW_ENROL_WAIT_S      10          /* for each step */
#define OW_ENROL_POLL_S      20          /* how long `users` waits for a change */

/* Reads until the end, or up to a line feed. The text gets a zero after it; *ret_text is to be freed. -EFBIG, -EIO. */
int ow_enrol_read(SSL *ssl, size_t most, bool line, char **ret_text, size_t *ret_size, struct ow_error *err);
int ow_enrol_write(SSL *ssl, const char *text, size_t size, struct ow_error *err);
/* TLS 1.3 only; a socket that is too slow fails. */
SSL_CTX *ow_enrol_context(void);
void ow_enrol_limit(int fd, int seconds);
/* Words for a TLS call that failed. */
int ow_enrol_failed(const char *what, struct ow_error *err);
