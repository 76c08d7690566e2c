/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A TLS 1.3 connection between two points for frames (exchange/message.h): bytes with a length in front. Both ends
 * authenticate: by certificates of a common CA, whose name (the DNS name in subjectAltName, or CN) is the point's name;
 * or, in a lab, by a pre-shared key, which shows that a peer has the key while its name is not authenticated. Nothing
 * blocks: a session is driven by its file descriptor and poll. Different sessions may be used by different threads.
 */
struct ow_tls; /* keys and certificates of this point */

/*
 * Longest name of a point, with the terminating zero: letters, digits, '.', '_' and '-', the first one a letter or
 * digit.
 */
#define OW_POINT_NAME 64
bool ow_point_name_valid(const char *name);

struct ow_tls_options {
	const char *certificate, *key, *ca; /* PEM files; all or none */
	const char *psk_file;               /* hex, at least 32 digits; instead of certificates */
	/* of this point: the PSK identity, or the name that the certificate must have (not checked if NULL) */
	const char *name;
	const char *revoked; /* a file of revoked keys (exchange/revoked.h), which need not exist; NULL = none */
};
int ow_tls_create(const struct ow_tls_options *options, struct ow_tls **ret_tls, struct ow_error *err);
void ow_tls_free(struct ow_tls *tls); /* after its sessions */
/* When this point's certificate, or a CA above it, expires: seconds since 1970. INT64_MAX with a pre-shared key. */
int64_t ow_tls_expiry_s(const struct ow_tls *tls);

/*
 * Writes ca.pem and ca.key, and NAME.pem and NAME.key for each point, into `folder`, which is created if it does not
 * exist. An existing CA is used. -EEXIST, and nothing is written, if a point's file exists.
 */
int ow_tls_make_certificates(const char *folder, const char *const *names, unsigned count, unsigned days,
                             struct ow_error *err);
#define OW_TLS_DAYS_MAX 36500
int ow_tls_make_psk(const char *path, struct ow_error *err);
/* The key in such a file; refused if others may read it. */
#define OW_PSK_MAX 256
int ow_psk_load(const char *path, uint8_t ret_key[OW_PSK_MAX], size_t *ret_size, struct ow_error *err);

/*
 * "host:port", "[v6]:port", ":port" (all addresses of this host). The sockets do not block; the lookup of a host name
 * can.
 */
int ow_listen(const char *address, int *ret_fd, struct ow_error *err);
/*
 * 0 also while the connection is in progress: a session waits for it. The addresses of a name are tried one after the
 * other, each for two seconds; the last one is not waited for.
 */
int ow_connect(const char *address, int *ret_fd, struct ow_error *err);
/* Whether ow_connect would call the resolver, and block. */
bool ow_address_waits(const char *address);
/*
 * The address for datagrams, in the same notation; port: the default, then "paris.example" and "::1" are also allowed.
 * family: AF_INET, AF_INET6, AF_UNSPEC. here: one of this host, or all (":862").
 */
struct sockaddr_storage;
int ow_address_find(const char *address, const char *port, int family, bool here, struct sockaddr_storage *ret_address,
                    struct ow_error *err);
/* -EAGAIN if no client waits. */
int ow_accept(int listener, int *ret_fd);
/* The address of the other end, "192.0.2.7:40112"; "" if not known. */
#define OW_ADDRESS_TEXT 96
void ow_address_text(int fd, char text[OW_ADDRESS_TEXT]);

struct ow_session;

/*
 * Takes over the socket, also on failure. expect: the name that the peer must have (client side; server side as well if
 * not NULL).
 */
int ow_session_create(struct ow_tls *tls, int fd, bool server, const char *expect, struct ow_session **ret_session,
                      struct ow_error *err);
/* Sends a close notification if that does not block, and closes the socket. */
void ow_session_free(struct ow_session *session);

int ow_session_fd(const struct ow_session *session);
/* POLLIN, POLLOUT: the events it waits for. No POLLIN while enough frames wait to be taken. */
short ow_session_events(const struct ow_session *session);
/* The time when ow_session_drive is to be called even without events, as ow_clock_steady_ns; INT64_MAX = never. */
int64_t ow_session_deadline(const struct ow_session *session);
/*
 * Does the handshake, reads and writes as far as possible. Returns 0, or how the connection ended, with an error
 * message, and the same for every later call; frames that have arrived before can still be taken:
 *   -ECONNRESET  it was closed; other errors of the socket as they are (-ECONNREFUSED ...)
 *   -EACCES      one of the two is not authenticated, or has the wrong name
 *   -EPROTO      the data is not the protocol of points
 *   -ETIMEDOUT   the handshake, or the rest of a frame, took too long
 */
int ow_session_drive(struct ow_session *session, struct ow_error *err);

/*
 * The authenticated name of the peer; NULL until the handshake is done. The connecting side may know it shortly before
 * the other side has accepted this point's name: a refusal then follows.
 */
const char *ow_session_peer(const struct ow_session *session);

/*
 * Whether the authenticated peer would be accepted with these keys (the current ones, or others) now: by its
 * certificate, or by the key. 0; -EACCES with an error message; -ENOMEM.
 */
int ow_session_check(const struct ow_session *session, const struct ow_tls *tls, struct ow_error *err);

/* Raises the largest frame that is accepted; at first OW_SESSION_FIRST_MAX, at most OW_WIRE_FRAME_MAX. */
void ow_session_set_limit(struct ow_session *session, size_t bytes);
/* The next frame that has arrived completely, without its length; NULL if there is none. Valid until the next call of
 * this or of ow_session_drive. */
const uint8_t *ow_session_frame(struct ow_session *session, size_t *ret_size);
/*
 * Queues a frame; ow_session_drive sends it. -EMSGSIZE; -ENOBUFS if more than OW_SESSION_QUEUE bytes would wait;
 * -ENOMEM; -EPIPE after ow_session_close or the end.
 */
int ow_session_send(struct ow_session *session, const uint8_t *frame, size_t size);
/* Bytes that wait to be sent. */
size_t ow_session_queued(const struct ow_session *session);
/* Nothing more will be sent: ow_session_drive sends the queued data and closes, then returns -ECONNRESET. */
void ow_session_close(struct ow_session *session);

#define OW_SESSION_QUEUE        (256u << 20)
#define OW_SESSION_FIRST_MAX    (64u << 10) /* largest frame until the caller knows the peer */
#define OW_SESSION_HANDSHAKE_MS 5000        /* connection and handshake */
#define OW_SESSION_STALL_MS     5000        /* time without data in the middle of a frame */
#define OW_SESSION_RATE_MIN     1024        /* bytes per second of a frame, after that time */

struct ow_session_counts {
	uint64_t bytes_in, bytes_out; /* of frames, lengths included */
	uint64_t wire_in, wire_out;   /* including TLS */
};
void ow_session_counts(const struct ow_session *session, struct ow_session_counts *ret_counts);
