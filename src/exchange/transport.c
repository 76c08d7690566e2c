/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's own socket BIO writes with write(), which raises SIGPIPE; a library must neither let that happen nor change
 * the program's signals. */
#include "exchange/tls.h"

#include <errno.h>
#include <sys/socket.h>

static bool again(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int transport_read(BIO *bio, char *data, int size)
{
	struct ow_transport *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (size <= 0)
		return 0;
	ssize_t n = recv(t->fd, data, (size_t)size, 0);
	if (n > 0) {
		t->in += (uint64_t)n;
	} else if (n < 0 && again(errno)) {
		BIO_set_retry_read(bio);
	} else {
		t->error = n < 0 ? errno : 0;
		t->ended = true;
	}
	return (int)n;
}

static int transport_write(BIO *bio, const char *data, int size)
{
	struct ow_transport *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (size <= 0)
		return 0;
	ssize_t n = send(t->fd, data, (size_t)size, MSG_NOSIGNAL);
	if (n >= 0) {
		t->out += (uint64_t)n;
	} else if (again(errno)) {
		BIO_set_retry_write(bio);
	} else {
		t->error = errno;
	}
	return (int)n;
}

static long transport_control(BIO *bio, int command, long number, void *pointer)
{
	const struct ow_transport *t = BIO_get_data(bio);
	(void)number;
	(void)pointer;
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return t && t->ended;
	default:
		return 0;
	}
}

BIO_METHOD *ow_transport_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "oneway socket");
	if (method && BIO_meth_set_read(method, transport_read) && BIO_meth_set_write(method, transport_write) &&
	    BIO_meth_set_ctrl(method, transport_control))
		return method;
	BIO_meth_free(method);
	return NULL;
}

BIO *ow_transport_bio(const BIO_METHOD *method, struct ow_transport *transport)
{
	BIO *bio = BIO_new(method);
	if (!bio)
		return NULL;
	BIO_set_data(bio, transport);
	BIO_set_init(bio, 1);
	return bio;
}
