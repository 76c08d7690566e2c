/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/enrol_wire.h"

#include "base/array.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define PIECE 16384

int ow_enrol_failed(const char *what, struct ow_error *err)
{
	int error = errno;
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	bool slow = error == EAGAIN || error == EWOULDBLOCK;
	return ow_error_set(err, EIO, "%s: %s", what,
	                    text    ? text
	                    : slow  ? "no answer in time"
	                    : error ? strerror(error)
	                            : "the connection was closed");
}

int ow_enrol_read(SSL *ssl, size_t most, bool line, char **ret_text, size_t *ret_size, struct ow_error *err)
{
	char *text = NULL;
	size_t size = 0, room = 0;
	for (;;) {
		size_t piece = line ? 1 : PIECE, got = 0;
		if (OW_GROW(text, room, size + piece + 1) < 0) {
			free(text);
			return ow_error_set(err, ENOMEM, "not enough memory");
		}
		errno = 0;
		if (SSL_read_ex(ssl, text + size, piece, &got) != 1) {
			bool ended = SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN;
			if (ended && !line)
				break;
			free(text);
			return ow_enrol_failed("reading", err);
		}
		size += got;
		if (size > most) {
			free(text);
			return ow_error_set(err, EFBIG, "more than %zu bytes", most);
		}
		if (line && text[size - 1] == '\n')
			break;
	}
	if (line)
		size--;
	text[size] = 0;
	*ret_text = text;
	*ret_size = size;
	return 0;
}

int ow_enrol_write(SSL *ssl, const char *text, size_t size, struct ow_error *err)
{
	size_t sent;
	errno = 0;
	return SSL_write_ex(ssl, text, size, &sent) == 1 && sent == size ? 0 : ow_enrol_failed("writing", err);
}

SSL_CTX *ow_enrol_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1) {
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_cert_list(context, 16384);
	return context;
}

void ow_enrol_limit(int fd, int seconds)
{
	struct timeval limit = {.tv_sec = seconds};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}
