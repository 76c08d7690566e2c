/* SPDX-License-Identifier: Apache-2.0 */
#include "point/daemon_link.h"

#include "point/daemon_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ow_daemon_keys_create(const struct ow_config *c, struct ow_daemon_keys **ret_keys, struct ow_error *err)
{
	struct ow_tls_options options = {.certificate = c->certificate,
	                                 .key = c->key,
	                                 .ca = c->ca,
	                                 .psk_file = c->psk,
	                                 .name = c->point,
	                                 .revoked = c->revoked};
	struct ow_daemon_keys *keys = calloc(1, sizeof *keys);
	if (!keys)
		return ow_error_set(err, ENOMEM, "not enough memory");
	keys->users = 1;
	/* A point that only records flows has no peers. */
	int r = c->segment_count || c->listen ? ow_tls_create(&options, &keys->tls, err) : 0;
	if (r < 0)
		free(keys);
	else
		*ret_keys = keys;
	return r;
}

void ow_daemon_keys_release(struct ow_daemon_keys *keys)
{
	if (!keys || --keys->users > 0)
		return;
	ow_tls_free(keys->tls);
	free(keys);
}

/* While the share of unauthenticated connections is used up, they are not read. */
static short events_of(const struct ow_daemon_link *link)
{
	return !link->peer && link->daemon->unauthenticated.deaf ? 0 : ow_session_events(link->session);
}

int ow_daemon_link_watch(struct ow_daemon_link *link)
{
	return ow_scheduler_change(&link->daemon->scheduler, &link->watch, events_of(link));
}

static int open_session(struct ow_daemon_link *link, int fd, struct ow_error *err)
{
	struct ow_daemon *d = link->daemon;
	struct ow_daemon_peer *peer = link->peer;
	int r = ow_session_create(d->keys->tls, fd, !peer, peer ? peer->name : NULL, &link->session, err);
	if (r < 0)
		return r;
	link->watch.fd = fd;
	link->watch.events = events_of(link);
	return ow_scheduler_add(&d->scheduler, &link->watch, err);
}

int ow_daemon_link_create(struct ow_daemon *d, struct ow_daemon_peer *peer, int fd,
                          int (*ready)(void *arg, struct ow_error *err), struct ow_daemon_link **ret_link,
                          struct ow_error *err)
{
	struct ow_daemon_link *link = calloc(1, sizeof *link);
	char address[OW_ADDRESS_TEXT];
	if (!link) {
		close(fd);
		return ow_error_set(err, ENOMEM, "not enough memory");
	}
	int64_t now = ow_clock_steady_ns();
	*link = (struct ow_daemon_link){.daemon = d,
	                                .peer = peer,
	                                .watch = {.ready = ready, .arg = link, .fd = -1},
	                                .accepted = !peer,
	                                .since_ns = now,
	                                .checked_ns = now,
	                                .heard_ns = now};
	ow_address_text(fd, address);
	snprintf(link->address, sizeof link->address, "%s", peer && !*address ? peer->connect : address);
	/* The session takes over the socket, also on failure. */
	int r = open_session(link, fd, err);
	if (r < 0) {
		ow_session_free(link->session);
		free(link);
		return r;
	}
	link->keys = d->keys;
	link->keys->users++;
	*ret_link = link;
	return 0;
}

void ow_daemon_link_free(struct ow_daemon_link *link)
{
	ow_scheduler_remove(&link->daemon->scheduler, &link->watch);
	ow_session_free(link->session);
	ow_daemon_keys_release(link->keys);
	free(link);
}

void ow_daemon_link_break(struct ow_daemon_link *link, const char *why)
{
	if (link->broken)
		return;
	link->broken = true;
	ow_error_set(&link->why, EPROTO, "%s", why);
}

void ow_daemon_link_send_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size)
{
	if (link->broken || link->closing)
		return;
	int r = ow_session_send(link->session, frame, size);
	if (r < 0)
		ow_daemon_link_break(link, r == -ENOBUFS ? "the peer does not read"
		                           : r == -EPIPE ? "the peer has closed the connection"
		                                         : strerror(-r));
}

void ow_daemon_link_send(struct ow_daemon_link *link, const struct ow_message *message)
{
	uint8_t *frame;
	size_t size;
	struct ow_error err;
	if (ow_message_encode(message, &frame, &size, &err) < 0) {
		ow_daemon_link_break(link, err.text);
		return;
	}
	ow_daemon_link_send_frame(link, frame, size);
	free(frame);
}

void ow_daemon_link_bye(struct ow_daemon_link *link, const char *why)
{
	struct ow_message bye = {.type = OW_MESSAGE_BYE};
	snprintf(bye.text.text, sizeof bye.text.text, "%s", why);
	ow_daemon_link_send(link, &bye);
	link->closing = true;
	ow_session_close(link->session);
}
