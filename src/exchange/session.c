/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection for frames. OpenSSL reads one record at a time from the socket (no read-ahead), and a record is always
 * taken out completely: the rest waits in the kernel, so that poll reports it and reading may pause at any time.
 */
#include "exchange/session.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/time.h"
#include "exchange/frames.h"
#include "exchange/message.h"
#include "exchange/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENOUGH ((size_t)256 << 10) /* bytes that include a complete frame: reading pauses */
#define BURST  ((size_t)1 << 20)   /* bytes in one direction by one call, so that other sessions get their turn */
/* bytes discarded at the end, so that the kernel does not answer them with a reset */
#define DRAIN        ((size_t)64 << 10)
#define DEAD_PEER_MS 20000 /* data without acknowledgement for this long ends the connection */

/* WAITING: for the connection, or for the first byte of an accepted client. */
enum phase { WAITING, SHAKING, OPEN, ENDED };

struct ow_session {
	enum phase phase;
	struct ow_transport transport;
	struct ow_handshake handshake;
	SSL *ssl;    /* NULL while WAITING: OpenSSL takes some 60 KiB, which a silent client must not cost */
	short wants; /* events that OpenSSL asked for last, in addition to those of the queues */
	bool closing;
	struct ow_frames in;
	struct ow_buffer out;
	int64_t deadline_ns; /* of the handshake */
	int64_t moved_ns;    /* when a byte of a frame last arrived, or reading was resumed */
	int64_t began_ns;    /* start of the incomplete frame */
	uint64_t began_at;   /* bytes that had arrived by then */
	uint64_t bytes_in, bytes_out, records;
	int code; /* how it ended, and why */
	struct ow_error end;
};

static void set(int fd, int level, int option, int value)
{
	/* Each option is useful; none is required, and not every socket is TCP. */
	(void)setsockopt(fd, level, option, &value, sizeof value);
}

static int prepare_socket(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
	set(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, DEAD_PEER_MS);
	return 0;
}

int ow_session_create(struct ow_tls *tls, int fd, bool server, const char *expect, struct ow_session **ret_session,
                      struct ow_error *err)
{
	struct ow_session *session = calloc(1, sizeof *session);
	if (!session) {
		close(fd);
		return ow_error_set(err, ENOMEM, "out of memory for a session");
	}
	session->transport.fd = fd;
	session->handshake.tls = tls;
	session->handshake.server = server;
	session->wants = server ? POLLIN : POLLOUT;
	session->in.limit = OW_SESSION_FIRST_MAX;
	session->deadline_ns = ow_clock_steady_ns() + OW_SESSION_HANDSHAKE_MS * OW_NS_PER_MS;
	int r = 0;
	if (expect ? !ow_point_name_valid(expect) : !server)
		r = ow_error_set(err, EINVAL, "'%.80s' is not a name of a point", expect ? expect : "");
	else if (expect)
		snprintf(session->handshake.expect, sizeof session->handshake.expect, "%s", expect);
	if (r == 0 && (r = prepare_socket(fd)) < 0)
		ow_error_set(err, -r, "socket: %s", strerror(-r));
	if (r < 0) {
		ow_session_free(session);
		return r;
	}
	*ret_session = session;
	return 0;
}

/* The end is remembered, because later calls return the same. */
static int end(struct ow_session *session, int code)
{
	session->phase = ENDED;
	session->code = code;
	return code;
}

/* After a call of OpenSSL that did not succeed: 0 if it is to be called again. */
static int not_now(struct ow_session *session, int result)
{
	switch (SSL_get_error(session->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_WANT_WRITE:
		session->wants |= POLLOUT;
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return end(session, ow_error_set(&session->end, ECONNRESET, "the peer closed the connection"));
	default:
		return end(session,
		           ow_tls_why(&session->handshake, &session->transport, session->phase == OPEN, &session->end));
	}
}

static int begin(struct ow_session *session)
{
	const struct ow_tls *tls = session->handshake.tls;
	session->ssl = ow_tls_connection(tls, &session->handshake);
	BIO *bio = session->ssl ? ow_transport_bio(tls->transport, &session->transport) : NULL;
	if (!bio)
		return end(session, ow_error_set(&session->end, ENOMEM, "out of memory for a session"));
	SSL_set_bio(session->ssl, bio, bio);
	session->phase = SHAKING;
	return 0;
}

static int wait_ready(struct ow_session *session)
{
	struct pollfd fd = {.fd = session->transport.fd, .events = session->wants};
	int error = 0;
	socklen_t size = sizeof error;
	if (poll(&fd, 1, 0) <= 0)
		return 0;
	if (getsockopt(fd.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error)
		return end(session, ow_error_set(&session->end, error, "%s", strerror(error)));
	return begin(session);
}

/* The peer is authenticated; with a key, the listening side has the name that it did not refuse. */
static int accept_peer(struct ow_session *session)
{
	struct ow_handshake *h = &session->handshake;
	if (h->tls->psk && !SSL_session_reused(session->ssl))
		return end(session, ow_error_set(&session->end, EACCES, "the peer does not use the pre-shared key"));
	if (h->tls->psk && !h->server)
		memcpy(h->peer, h->expect, sizeof h->peer);
	if (!h->peer[0])
		return end(session, ow_error_set(&session->end, EACCES, "the peer proved no name"));
	session->phase = OPEN;
	session->wants = 0;
	session->moved_ns = ow_clock_steady_ns();
	return 0;
}

static int shake(struct ow_session *session)
{
	session->wants = POLLIN;
	ERR_clear_error();
	int n = SSL_do_handshake(session->ssl);
	if (n == 1)
		return accept_peer(session);
	int r = not_now(session, n);
	if (session->wants & POLLOUT)
		session->wants = POLLOUT;
	return r;
}

/* A complete frame waits, with much data. */
static bool enough(const struct ow_session *session)
{
	return ow_buffer_size(&session->in.buffer) - session->in.given >= ENOUGH &&
	       ow_frames_check(&session->in, NULL) != 0;
}

static int receive(struct ow_session *session)
{
	size_t before = session->bytes_in;
	while ((!enough(session) && session->bytes_in - before < BURST) || SSL_pending(session->ssl) > 0) {
		uint8_t *room = NULL;
		size_t size = 0;
		int r = ow_frames_room(&session->in, &room, &size);
		if (r < 0)
			return end(session, ow_error_set(&session->end, ENOMEM, "out of memory for a frame"));
		ERR_clear_error();
		int n = SSL_read(session->ssl, room, size > BURST ? (int)BURST : (int)size);
		if (n <= 0)
			return not_now(session, n);
		ow_frames_add(&session->in, (size_t)n);
		session->bytes_in += (uint64_t)n;
		r = ow_frames_check(&session->in, &session->end);
		if (r < 0)
			return end(session, r);
	}
	return 0;
}

static int transmit(struct ow_session *session)
{
	uint64_t before = session->bytes_out;
	struct ow_buffer *out = &session->out;
	while (ow_buffer_size(out) > 0 && session->bytes_out - before < BURST) {
		size_t size = ow_buffer_size(out);
		ERR_clear_error();
		int n = SSL_write(session->ssl, out->data + out->start, size > BURST ? (int)BURST : (int)size);
		if (n <= 0)
			return not_now(session, n);
		ow_buffer_take(out, (size_t)n);
		session->bytes_out += (uint64_t)n;
		if (++session->records % session->handshake.tls->rekey == 0)
			SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
	}
	return 0;
}

/* A write failed because the peer is gone: its last message, if there is one, has the reason. */
static int transmit_or_listen(struct ow_session *session)
{
	int r = transmit(session);
	if (r != -ECONNRESET)
		return r;
	uint8_t last[256];
	ERR_clear_error();
	int n = SSL_read(session->ssl, last, sizeof last);
	if (n <= 0 && SSL_get_error(session->ssl, n) == SSL_ERROR_SSL)
		return end(session, ow_tls_why(&session->handshake, &session->transport, true, &session->end));
	ERR_clear_error();
	return r;
}

/* The time when too little of a frame has arrived: otherwise one byte at a time could take years. */
static int64_t slow_ns(const struct ow_session *session)
{
	uint64_t came = session->bytes_in - session->began_at;
	return session->began_ns + OW_SESSION_STALL_MS * OW_NS_PER_MS +
	       (int64_t)(came * (OW_NS_PER_S / OW_SESSION_RATE_MIN));
}

/* The next data begins a frame, unless one has begun. */
static void note_begin(struct ow_session *session)
{
	if (ow_frames_partial(&session->in))
		return;
	session->began_ns = ow_clock_steady_ns();
	session->began_at = session->bytes_in;
}

/* Checks whether the peer stopped in the middle of a frame, or sends it too slowly. */
static int check_stall(struct ow_session *session, bool moved)
{
	int64_t now = ow_clock_steady_ns();
	if (moved || !ow_frames_partial(&session->in))
		session->moved_ns = now;
	note_begin(session);
	if (now - session->moved_ns >= OW_SESSION_STALL_MS * OW_NS_PER_MS)
		return end(session,
		           ow_error_set(&session->end, ETIMEDOUT, "the peer stopped in the middle of a frame"));
	if (now < slow_ns(session))
		return 0;
	return end(session, ow_error_set(&session->end, ETIMEDOUT, "the peer sends a frame too slowly"));
}

static int carry(struct ow_session *session)
{
	bool paused = enough(session);
	uint64_t before = session->bytes_in;
	session->wants = 0;
	note_begin(session);
	int r = receive(session);
	if (r == 0)
		r = transmit_or_listen(session);
	if (r == 0)
		r = check_stall(session, paused || session->bytes_in != before);
	if (r < 0 || !session->closing || ow_buffer_size(&session->out) > 0)
		return r;
	ERR_clear_error();
	int n = SSL_shutdown(session->ssl);
	if (n < 0)
		return not_now(session, n);
	return end(session, ow_error_set(&session->end, ECONNRESET, "closed"));
}

static int step(struct ow_session *session)
{
	int r = 0;
	if (session->phase == WAITING)
		r = wait_ready(session);
	if (r == 0 && session->phase == SHAKING)
		r = shake(session);
	if (r == 0 && session->phase == OPEN)
		r = carry(session);
	if (r == 0 && session->phase < OPEN && ow_clock_steady_ns() >= session->deadline_ns)
		r = end(session,
		        ow_error_set(&session->end, ETIMEDOUT, "no %s within %d s",
		                     session->phase == WAITING && !session->handshake.server ? "connection"
		                                                                             : "complete handshake",
		                     OW_SESSION_HANDSHAKE_MS / 1000));
	return r;
}

int ow_session_drive(struct ow_session *session, struct ow_error *err)
{
	int r = session->phase == ENDED ? session->code : step(session);
	if (r < 0)
		ow_error_set(err, -r, "%s", session->end.text);
	return r;
}

short ow_session_events(const struct ow_session *session)
{
	switch (session->phase) {
	case WAITING:
	case SHAKING:
		return session->wants;
	case OPEN:
		return (short)(session->wants | (enough(session) ? 0 : POLLIN) |
		               (ow_buffer_size(&session->out) > 0 || session->closing ? POLLOUT : 0));
	default:
		return POLLIN | POLLOUT; /* to report the end */
	}
}

int64_t ow_session_deadline(const struct ow_session *session)
{
	int64_t stalled_ns;
	switch (session->phase) {
	case WAITING:
	case SHAKING:
		return session->deadline_ns;
	case OPEN:
		stalled_ns = session->moved_ns + OW_SESSION_STALL_MS * OW_NS_PER_MS;
		return !ow_frames_partial(&session->in) ? INT64_MAX
		       : stalled_ns < slow_ns(session)  ? stalled_ns
		                                        : slow_ns(session);
	default:
		return 0;
	}
}

int ow_session_fd(const struct ow_session *session)
{
	return session->transport.fd;
}

const char *ow_session_peer(const struct ow_session *session)
{
	bool proved = session->phase == OPEN || (session->phase == ENDED && session->moved_ns);
	return proved ? session->handshake.peer : NULL;
}

int ow_session_check(const struct ow_session *session, const struct ow_tls *tls, struct ow_error *err)
{
	const struct ow_handshake *h = &session->handshake;
	const struct ow_tls *then = h->tls;
	if (session->phase != OPEN)
		return 0;
	if (!tls || !tls->psk != !then->psk)
		return ow_error_set(err, EACCES, "points prove their names in another way by now");
	if (!tls->psk)
		return ow_tls_check_peer(tls, session->ssl, h->server, h->peer, err);
	if (tls->psk_size == then->psk_size && CRYPTO_memcmp(tls->psk, then->psk, tls->psk_size) == 0)
		return 0;
	return ow_error_set(err, EACCES, "the pre-shared key is another one by now");
}

void ow_session_set_limit(struct ow_session *session, size_t bytes)
{
	if (bytes > session->in.limit)
		session->in.limit = bytes < OW_WIRE_FRAME_MAX ? bytes : OW_WIRE_FRAME_MAX;
}

const uint8_t *ow_session_frame(struct ow_session *session, size_t *ret_size)
{
	const uint8_t *frame = NULL;
	struct ow_error why;
	int r = ow_frames_next(&session->in, &frame, ret_size, &why);
	if (r < 0 && session->phase != ENDED) {
		session->end = why;
		end(session, r);
	}
	return r == 1 ? frame : NULL;
}

int ow_session_send(struct ow_session *session, const uint8_t *frame, size_t size)
{
	if (session->phase == ENDED || session->closing)
		return -EPIPE;
	if (size == 0 || size > OW_WIRE_FRAME_MAX)
		return -EMSGSIZE;
	if (ow_buffer_size(&session->out) + OW_FRAME_LENGTH + size > OW_SESSION_QUEUE)
		return -ENOBUFS;
	int r = ow_buffer_reserve(&session->out, OW_FRAME_LENGTH + size);
	if (r < 0)
		return r;
	uint8_t *tail = session->out.data + session->out.end;
	ow_store_le32(tail, (uint32_t)size);
	memcpy(tail + OW_FRAME_LENGTH, frame, size);
	session->out.end += OW_FRAME_LENGTH + size;
	return 0;
}

size_t ow_session_queued(const struct ow_session *session)
{
	return ow_buffer_size(&session->out);
}

void ow_session_close(struct ow_session *session)
{
	session->closing = true;
}

void ow_session_counts(const struct ow_session *session, struct ow_session_counts *ret_counts)
{
	*ret_counts = (struct ow_session_counts){
		.bytes_in = session->bytes_in,
		.bytes_out = session->bytes_out,
		.wire_in = session->transport.in,
		.wire_out = session->transport.out,
	};
}

/* Closing a socket with unread bytes resets the connection, and the reset may overtake our last message. */
static void hang_up(int fd)
{
	uint8_t unread[4096];
	shutdown(fd, SHUT_WR);
	for (size_t i = 0; i < DRAIN / sizeof unread && recv(fd, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
		continue;
	close(fd);
}

void ow_session_free(struct ow_session *session)
{
	if (!session)
		return;
	if (session->phase == OPEN && SSL_shutdown(session->ssl) < 0)
		ERR_clear_error();
	SSL_free(session->ssl);
	hang_up(session->transport.fd);
	ow_frames_done(&session->in);
	ow_buffer_done(&session->out);
	free(session);
}
