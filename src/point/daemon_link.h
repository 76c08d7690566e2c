/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_LINK_H
#define OW_POINT_DAEMON_LINK_H

#include "config/config.h"
#include "exchange/message.h"
#include "exchange/session.h"
#include "point/scheduler.h"

/* A connection with a peer, and what is sent on it. */
struct ow_daemon;
struct ow_daemon_peer;

/* Keys and certificates. After a reload a connection goes on with those that it was made with if the new ones would
 * accept its peer, too. */
struct ow_daemon_keys {
	struct ow_tls *tls;
	unsigned users;
};

struct ow_daemon_link {
	struct ow_daemon *daemon;
	struct ow_daemon_keys *keys;
	struct ow_daemon_peer *peer; /* NULL until the name is proved */
	struct ow_session *session;
	struct ow_watch watch;
	int64_t since_ns;    /* steady */
	int64_t heard_ns;    /* steady: the last time that anything came */
	int64_t checked_ns;  /* steady: when the peer's certificate was last looked at */
	int64_t asked_ns;    /* steady: of the PING that waits for an answer, else 0 */
	uint64_t unread_end; /* bytes sent when what waited at unread_ns (steady) has been read */
	int64_t unread_ns;
	bool accepted;     /* the peer has connected to us */
	bool ready;        /* both HELLOs are through */
	bool closing;      /* what is queued goes out, then it is over */
	int64_t closed_ns; /* steady: since when; 0 = not yet */
	bool waits;        /* frames are left: its turn was over */
	int code;          /* of the end: negative errno */
	bool broken;       /* to be dropped as soon as nobody uses it */
	unsigned nonsense; /* messages */
	char address[OW_ADDRESS_TEXT];
	struct ow_error why; /* of broken */
};

int ow_daemon_keys_create(const struct ow_config *config, struct ow_daemon_keys **ret_keys, struct ow_error *err);
void ow_daemon_keys_release(struct ow_daemon_keys *keys);

/* Takes the socket, whatever happens. peer: NULL = not known yet. ready: as of struct ow_watch, with the link. */
int ow_daemon_link_create(struct ow_daemon *daemon, struct ow_daemon_peer *peer, int fd,
                          int (*ready)(void *arg, struct ow_error *err), struct ow_daemon_link **ret_link,
                          struct ow_error *err);
void ow_daemon_link_free(struct ow_daemon_link *link);
/* Watches for what it waits for now. 0 or a negative errno. */
int ow_daemon_link_watch(struct ow_daemon_link *link);
void ow_daemon_link_send(struct ow_daemon_link *link, const struct ow_message *message);
void ow_daemon_link_send_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);
/* Tells the peer why, and closes. */
void ow_daemon_link_bye(struct ow_daemon_link *link, const char *why);
/* It is dropped as soon as nobody uses it. */
void ow_daemon_link_break(struct ow_daemon_link *link, const char *why);

#endif
