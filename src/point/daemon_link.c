/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections with peers: making, accepting, driving and dropping them. What is said on them is in daemon_peer.c. A
 * link is freed in one place only, ow_daemon_link_drop, and never while its frames are being handled: it is marked
 * broken then.
 */
#include "point/daemon_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

int ow_daemon_link_watch(struct ow_daemon_link *link, int operation)
{
	short wanted = !link->peer && link->daemon->deaf ? 0 : ow_session_events(link->session);
	uint32_t events = (wanted & POLLIN ? EPOLLIN : 0u) | (wanted & POLLOUT ? EPOLLOUT : 0u);
	if (operation == EPOLL_CTL_MOD && events == link->events)
		return 0;
	struct epoll_event event = {.events = events, .data.ptr = link};
	link->events = events;
	return epoll_ctl(link->daemon->epoll_fd, operation, ow_session_fd(link->session), &event) < 0 ? -errno : 0;
}

int ow_daemon_link_open(struct ow_daemon *daemon, struct ow_daemon_peer *peer, int fd, struct ow_error *err)
{
	struct ow_daemon_link *link = calloc(1, sizeof *link);
	char address[OW_ADDRESS_TEXT];
	ow_address_text(fd, address);
	struct ow_session *session = NULL;
	/* The session takes the socket, whatever happens. */
	int r = ow_session_create(daemon->keys->tls, fd, !peer, peer ? peer->name : NULL, &session, err);
	if (r == 0 && !link)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	if (r == 0 && link) {
		int64_t now = ow_clock_steady_ns();
		*link = (struct ow_daemon_link){.daemon = daemon,
		                                .keys = daemon->keys,
		                                .peer = peer,
		                                .accepted = !peer,
		                                .session = session,
		                                .since_ns = now,
		                                .checked_ns = now,
		                                .heard_ns = now};
		snprintf(link->address, sizeof link->address, "%s", peer && !*address ? peer->connect : address);
		r = ow_daemon_link_watch(link, EPOLL_CTL_ADD);
		if (r < 0)
			ow_error_set(err, -r, "epoll: %s", strerror(-r));
	}
	if (r < 0 || !link) {
		ow_session_free(session);
		free(link);
		return r;
	}
	daemon->keys->users++;
	if (peer)
		peer->link = link;
	else
		ow_daemon_stranger_add(link);
	return 0;
}

void ow_daemon_link_accept(struct ow_daemon *daemon)
{
	int fd;
	struct ow_error err;
	int64_t begin = ow_clock_steady_ns();
	for (unsigned i = 0; i < OW_ACCEPTS_MAX && ow_accept(daemon->listen_fd, &fd) == 0; i++) {
		if (ow_daemon_link_open(daemon, NULL, fd, &err) == 0)
			continue;
		ow_daemon_refused(daemon, OW_REFUSED_BUSY, NULL);
		ow_daemon_log(daemon, OW_EVENT_WARNING, "connection refused: %s", err.text);
	}
	int64_t end = ow_clock_steady_ns();
	ow_daemon_strangers_spend(daemon, end, end - begin);
}

/* The next attempt: soon after a good connection, else later and later. */
static void plan_retry(struct ow_daemon_peer *peer, int64_t lasted_ns, bool was_ready)
{
	if (was_ready && lasted_ns >= OW_GOOD_NS)
		peer->retry_ns = OW_RETRY_FIRST_NS;
	double vary = 0.75 + 0.5 * ow_random_unit(&peer->daemon->jitter);
	peer->next_try_ns = ow_clock_steady_ns() + (int64_t)(vary * (double)peer->retry_ns);
	peer->retry_ns = peer->retry_ns * 2 > OW_RETRY_LAST_NS ? OW_RETRY_LAST_NS : peer->retry_ns * 2;
}

/* A peer that is away is said once, not at every attempt. */
static void log_failure(struct ow_daemon_peer *peer, const char *why)
{
	if (strncmp(peer->last_failure, why, sizeof peer->last_failure - 1) == 0)
		return;
	snprintf(peer->last_failure, sizeof peer->last_failure, "%.*s", (int)sizeof peer->last_failure - 1, why);
	ow_daemon_peer_log(peer, OW_EVENT_WARNING, "cannot connect: %s", why);
}

void ow_daemon_link_drop(struct ow_daemon_link *link, const char *why)
{
	struct ow_daemon *daemon = link->daemon;
	struct ow_daemon_peer *peer = link->peer;
	ow_daemon_stranger_forget(link);
	if (!peer && !link->closing) {
		ow_daemon_stranger_refuse(daemon, link->code);
		ow_daemon_log(daemon, OW_EVENT_WARNING, "connection from %s refused: %s", link->address, why);
	}
	if (peer) {
		if (link->code == -EPROTO && !link->broken)
			ow_daemon_refused(daemon, OW_REFUSED_MESSAGE, peer->name);
		if (link->ready && !link->closing)
			ow_daemon_peer_log(peer, OW_EVENT_NOTICE, "connection lost: %s", why);
		else if (!link->closing)
			log_failure(peer, why);
		peer->link = NULL;
		if (link->ready) {
			ow_daemon_lanes_disconnected(peer);
			ow_daemon_tell_peer(daemon, peer->name, false);
		}
		plan_retry(peer, ow_clock_steady_ns() - link->since_ns, link->ready);
	}
	epoll_ctl(daemon->epoll_fd, EPOLL_CTL_DEL, ow_session_fd(link->session), NULL);
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

/* A stranger has proved its name. */
static void introduce(struct ow_daemon_link *link, const char *name)
{
	struct ow_daemon *daemon = link->daemon;
	struct ow_daemon_peer *peer = ow_daemon_peer_find(daemon, name);
	if (peer && peer->leaving)
		peer = NULL;
	if (!peer || peer->connect) {
		const char *why = peer ? "both points connect: take 'connect' out of one configuration"
		                       : "no segment with this peer";
		ow_daemon_log(daemon, OW_EVENT_WARNING, "%s at %s refused: %s", name, link->address, why);
		ow_daemon_refused(daemon, OW_REFUSED_IDENTITY, NULL);
		ow_daemon_link_bye(link, why);
		return;
	}
	/* The peer knows best: a second connection means that the first one is dead. */
	if (peer->link)
		ow_daemon_link_drop(peer->link, "the peer has connected anew");
	ow_daemon_stranger_forget(link);
	link->peer = peer;
	peer->link = link;
}

/* As many as its turn allows: a peer that keeps this point busy shall not keep it from the others. */
static void take_frames(struct ow_daemon_link *link)
{
	const uint8_t *frame;
	size_t size;
	int64_t begin = ow_clock_steady_ns();
	link->waits = false;
	while (!link->broken && !link->closing && !link->waits && (frame = ow_session_frame(link->session, &size))) {
		link->heard_ns = ow_clock_steady_ns();
		ow_daemon_peer_frame(link, frame, size);
		link->waits = ow_clock_steady_ns() - begin > OW_SLICE_NS;
	}
	ow_daemon_lanes_accept(link->peer);
}

static void drive(struct ow_daemon_link *link)
{
	struct ow_error err = {""};
	bool had_name = ow_session_peer(link->session) != NULL;
	int r = link->broken ? -EPROTO : ow_session_drive(link->session, &err);
	const char *name = ow_session_peer(link->session);
	if (name && !link->peer && !link->closing)
		introduce(link, name);
	if (name && !had_name && link->peer && !link->closing)
		ow_daemon_peer_greet(link);
	if (link->peer)
		take_frames(link);
	if (link->broken || (r < 0 && !link->waits)) {
		link->code = r;
		ow_daemon_link_drop(link, link->broken ? link->why.text : err.text);
		return;
	}
	if (ow_daemon_link_watch(link, EPOLL_CTL_MOD) < 0)
		ow_daemon_link_drop(link, "epoll refuses");
}

void ow_daemon_link_drive(struct ow_daemon_link *link)
{
	struct ow_daemon *daemon = link->daemon;
	bool stranger = !link->peer;
	int64_t begin = ow_clock_steady_ns();
	drive(link);
	int64_t end = ow_clock_steady_ns();
	if (stranger)
		ow_daemon_strangers_spend(daemon, end, end - begin);
}

/* Whether it needs driving although its socket has nothing to say. */
static bool is_due(const struct ow_daemon_link *link, int64_t steady_ns)
{
	return link->broken || link->closing || link->waits || ow_session_queued(link->session) > 0 ||
	       steady_ns >= ow_session_deadline(link->session);
}

void ow_daemon_link_hang_up(struct ow_daemon_peer *peer)
{
	ow_dial_free(peer->dial);
	peer->dial = NULL;
}

/* Begins to connect, or looks what became of it. */
static void connect_peer(struct ow_daemon_peer *peer)
{
	struct ow_error err;
	int fd, r = 0;
	if (!peer->dial)
		r = ow_dial_start(peer->connect, NULL, &peer->dial, &err);
	if (r == 0)
		r = ow_dial_result(peer->dial, &fd, &err);
	if (r == -EINPROGRESS)
		return;
	ow_daemon_link_hang_up(peer);
	if (r == 0)
		r = ow_daemon_link_open(peer->daemon, peer, fd, &err);
	if (r < 0) {
		log_failure(peer, err.text);
		plan_retry(peer, 0, false);
	}
}

static void ask_silent(struct ow_daemon_link *link, int64_t steady_ns)
{
	int64_t silent = steady_ns - link->heard_ns;
	if (!link->ready || link->closing || silent < OW_PING_NS)
		return;
	if (silent > OW_DEAD_NS) {
		ow_daemon_link_break(link, "nothing heard any more");
	} else if (link->asked_ns == 0) {
		struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = (uint64_t)steady_ns}};
		link->asked_ns = steady_ns;
		ow_daemon_link_send(link, &ping);
	}
}

/* Who says nothing, or does not read what was said last, is not waited for. */
static void end_overdue(struct ow_daemon_link *link, int64_t steady_ns)
{
	if (link->closing && link->closed_ns == 0)
		link->closed_ns = steady_ns;
	if (link->closing && steady_ns - link->closed_ns > OW_CLOSING_NS)
		ow_daemon_link_break(link, "it does not read any more");
	else if (!link->ready && !link->closing && steady_ns - link->since_ns > OW_HELLO_NS)
		ow_daemon_link_break(link, "no HELLO");
}

void ow_daemon_links_tend(struct ow_daemon *daemon, int64_t steady_ns)
{
	daemon->hurry = false;
	ow_daemon_queues_bound(daemon, steady_ns);
	for (unsigned i = 0; i < daemon->peer_count; i++) {
		struct ow_daemon_peer *peer = daemon->peers[i];
		if (peer->link) {
			ask_silent(peer->link, steady_ns);
			end_overdue(peer->link, steady_ns);
			if (is_due(peer->link, steady_ns))
				ow_daemon_link_drive(peer->link);
			daemon->hurry |= peer->link && peer->link->waits;
		} else if (peer->connect && !peer->leaving && !daemon->stopping && steady_ns >= peer->next_try_ns) {
			connect_peer(peer);
		}
	}
	ow_daemon_strangers_tend(daemon, steady_ns);
}

void ow_daemon_links_free(struct ow_daemon *daemon)
{
	for (unsigned i = 0; i < daemon->peer_count; i++) {
		if (daemon->peers[i]->link) {
			daemon->peers[i]->link->closing = true;
			ow_daemon_link_drop(daemon->peers[i]->link, "the end");
		}
	}
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		if (daemon->strangers[i]) {
			daemon->strangers[i]->closing = true;
			ow_daemon_link_drop(daemon->strangers[i], "the end");
		}
	}
}
