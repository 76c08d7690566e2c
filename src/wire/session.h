/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_WIRE_SESSION_H
#define OW_WIRE_SESSION_H

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A TLS 1.3 connection between two points that carries frames (wire/message.h): bytes with a length in front. Both ends
 * prove who they are: by certificates of a common CA, whose name (the DNS name in subjectAltName, or CN) is the point's
 * name; or, in a lab, by a pre-shared key. Nothing blocks: a session is driven by its file descriptor and poll.
 */
struct ow_tls; /* keys and certificates of this point */

struct ow_tls_options {
	const char *certificate, *key, *ca; /* PEM files; all or none */
	const char *psk_file;               /* hex, at least 32 digits; instead of certificates */
	const char *name;                   /* of this point: the PSK identity */
};
int ow_tls_create(const struct ow_tls_options *options, struct ow_tls **ret_tls, struct ow_error *err);
void ow_tls_free(struct ow_tls *tls);

/* Writes a CA and the certificate and key of each named point into `folder`, or a PSK file. Nothing is overwritten. */
int ow_tls_make_certificates(const char *folder, const char *const *names, unsigned count, unsigned days,
                             struct ow_error *err);
int ow_tls_make_psk(const char *path, struct ow_error *err);

/* "host:port", "[v6]:port", ":port". The sockets do not block. */
int ow_listen(const char *address, int *ret_fd, struct ow_error *err);
int ow_connect(const char *address, int *ret_fd, struct ow_error *err); /* -EINPROGRESS is success */

struct ow_session;

/* Takes the socket, also on failure. expect: the name that the peer must prove (client side; server side too if not
 * NULL). */
int ow_session_create(struct ow_tls *tls, int fd, bool server, const char *expect, struct ow_session **ret_session,
                      struct ow_error *err);
void ow_session_free(struct ow_session *session);

int ow_session_fd(const struct ow_session *session);
/* POLLIN, POLLOUT: what it waits for. */
short ow_session_events(const struct ow_session *session);
/* Shakes hands, reads and writes as far as possible. 0; -ECONNRESET at the end of the connection; -EPROTO, -EACCES (not
 * who it should be) with a line that says why. */
int ow_session_drive(struct ow_session *session, struct ow_error *err);

/* The name that the peer has proved; NULL until the handshake is done. */
const char *ow_session_peer(const struct ow_session *session);

/* The next frame that has arrived completely, without its length; NULL if there is none. Valid until the next call. */
const uint8_t *ow_session_frame(struct ow_session *session, size_t *ret_size);
/* Queues a frame; ow_session_drive sends it. -EMSGSIZE; -ENOBUFS when more than OW_SESSION_QUEUE bytes wait. */
int ow_session_send(struct ow_session *session, const uint8_t *frame, size_t size);
#define OW_SESSION_QUEUE (256u << 20)
/* Largest frame that is accepted from a peer whose name is not proved yet, and the time it has for that. */
#define OW_SESSION_HANDSHAKE_MS 5000

struct ow_session_counts {
	uint64_t bytes_in, bytes_out; /* of frames, lengths included */
	uint64_t wire_in, wire_out;   /* with TLS */
};
void ow_session_counts(const struct ow_session *session, struct ow_session_counts *ret_counts);

#endif
