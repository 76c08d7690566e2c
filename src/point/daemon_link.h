/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "exchange/message.h"
#include "exchange/session.h"
#include "point/scheduler.h"

/* A connection with a peer, and sending on it. */
struct ow_daemon;
struct ow_daemon_peer;

/*
 * Keys and certificates. After a reload a connection continues with those that it was made with, if the new ones would
 * accept its peer as well.
 */
struct ow_daemon_keys {
	struct ow_tls *tls;
	unsigned users;
};

struct ow_daemon_link {
	struct ow_daemon *daemon;
	struct ow_daemon_keys *keys;
	struct ow_daemon_peer *peer; /* NULL until authenticated */
	struct ow_session *session;
	struct ow_watch watch;
	int64_t since_ns;   /* steady */
	int64_t heard_ns;   /* steady time of the last received data */
	int64_t checked_ns; /* steady time of the last check of the peer's certificate */
	int64_t asked_ns;   /* steady time of the PING that waits for an answer, otherwise 0 */
	/* count of sent bytes at which everything that waited at unread_ns (steady) has been read */
	uint64_t unread_end;
	int64_t unread_ns;
	bool accepted;     /* the peer has connected to us */
	bool ready;        /* both HELLOs have arrived */
	bool closing;      /* queued data is sent, then it ends */
	int64_t closed_ns; /* steady time since when; 0 = not yet */
	bool waits;        /* frames are left because its turn was over */
	int code;          /* negative errno of the end */
	bool broken;       /* to be dropped as soon as it is not in use */
	unsigned nonsense; /* number of messages that were not understood */
	char address[OW_ADDRESS_TEXT];
	struct ow_error why; /* reason of broken */
};

int ow_daemon_keys_create(const struct ow_config *config, struct ow_daemon_keys **ret_keys, struct ow_error *err);
void ow_daemon_keys_release(struct ow_daemon_keys *keys);

/* Takes over the socket, also on failure. peer: NULL = not known yet. ready: as in struct ow_watch, with the link. */
int ow_daemon_link_create(struct ow_daemon *daemon, struct ow_daemon_peer *peer, int fd,
                          int (*ready)(void *arg, struct ow_error *err), struct ow_daemon_link **ret_link,
                          struct ow_error *err);
void ow_daemon_link_free(struct ow_daemon_link *link);
/* Watches the events that it needs now. Returns 0 or a negative errno. */
int ow_daemon_link_watch(struct ow_daemon_link *link);
void ow_daemon_link_send(struct ow_daemon_link *link, const struct ow_message *message);
void ow_daemon_link_send_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size);
/* Sends the reason to the peer, and closes. */
void ow_daemon_link_bye(struct ow_daemon_link *link, const char *why);
/* The link is dropped as soon as it is not in use. */
void ow_daemon_link_break(struct ow_daemon_link *link, const char *why);
