/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections with peers: making, accepting, driving and dropping them. Their messages are handled in daemon_peer.c. A
 * link is freed in one place only, ow_daemon_link_drop, and never while its frames are being handled: then it is marked
 * as broken.
 */
#include "point/daemon_connections.h"

#include "exchange/dial.h"
#include "point/daemon_agree.h"
#include "point/daemon_events.h"
#include "point/daemon_peer.h"
#include "point/daemon_private.h"
#include "point/daemon_queue.h"
#include "point/daemon_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Connections that are accepted before other work. */
#define ACCEPTS_MAX 32
/* The longest time for which the messages of one peer are handled in a row. */
#define SLICE_NS INT64_C(5000000)
/* Time limit from the connection to HELLO; and for the last messages of a connection that ends. */
#define HELLO_NS   INT64_C(10000000000)
#define CLOSING_NS INT64_C(5000000000)
/* The longest time between attempts to connect: it is doubled from the first, and varied by a quarter. */
#define RETRY_LAST_NS INT64_C(10000000000)
/* If a connection lasted this long, the next attempt comes soon. */
#define GOOD_NS INT64_C(1000000000)
/* If nothing was received for this long, longer than lanes without traffic are silent, send a PING; and after this long,
 * the connection is dead. */
#define PING_NS INT64_C(5000000000)
#define DEAD_NS INT64_C(12000000000)

/* Plans the next attempt: soon after a good connection, otherwise later and later. */
static void plan_retry(struct ow_daemon_peer *peer, int64_t lasted_ns, bool was_ready)
{
	if (was_ready && lasted_ns >= GOOD_NS)
		peer->retry_ns = OW_RETRY_FIRST_NS;
	double vary = 0.75 + 0.5 * ow_random_unit(&peer->daemon->jitter);
	peer->next_try_ns = ow_clock_steady_ns() + (int64_t)(vary * (double)peer->retry_ns);
	peer->retry_ns = peer->retry_ns * 2 > RETRY_LAST_NS ? RETRY_LAST_NS : peer->retry_ns * 2;
}

/* A failure is logged once, not at every attempt. */
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
	ow_unauthenticated_remove(link);
	if (!peer && !link->closing) {
		ow_unauthenticated_refuse(daemon, link->code);
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
	ow_daemon_link_free(link);
}

/* The peer is authenticated. */
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
	/* A peer connects again only if its first connection is dead. */
	if (peer->link)
		ow_daemon_link_drop(peer->link, "the peer has connected again");
	ow_unauthenticated_remove(link);
	link->peer = peer;
	peer->link = link;
}

/* Handles as many frames as its turn allows, so that one peer cannot block the others. */
static void take_frames(struct ow_daemon_link *link)
{
	const uint8_t *frame;
	size_t size;
	int64_t begin = ow_clock_steady_ns();
	link->waits = false;
	while (!link->broken && !link->closing && !link->waits && (frame = ow_session_frame(link->session, &size))) {
		link->heard_ns = ow_clock_steady_ns();
		ow_daemon_peer_frame(link, frame, size);
		link->waits = ow_clock_steady_ns() - begin > SLICE_NS;
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
	if (ow_daemon_link_watch(link) < 0)
		ow_daemon_link_drop(link, "epoll refuses");
}

/* Reads, writes, and handles what was received. May free the link. */
static void drive_link(struct ow_daemon_link *link)
{
	struct ow_daemon *daemon = link->daemon;
	bool unauthenticated = !link->peer;
	int64_t begin = ow_clock_steady_ns();
	drive(link);
	int64_t end = ow_clock_steady_ns();
	if (unauthenticated)
		ow_unauthenticated_spend(daemon, end, end - begin);
}

static int on_ready(void *arg, struct ow_error *err)
{
	(void)err;
	drive_link(arg);
	return 0;
}

static int open_link(struct ow_daemon *daemon, struct ow_daemon_peer *peer, int fd, struct ow_error *err)
{
	struct ow_daemon_link *link;
	int r = ow_daemon_link_create(daemon, peer, fd, on_ready, &link, err);
	if (r < 0)
		return r;
	if (peer) {
		peer->link = link;
		return 0;
	}
	struct ow_daemon_link *displaced = ow_unauthenticated_add(link);
	if (displaced) {
		displaced->code = -EBUSY;
		ow_daemon_link_drop(displaced, "too many connections are being made");
	}
	return 0;
}

int ow_daemon_accept(void *arg, struct ow_error *err)
{
	struct ow_daemon *daemon = arg;
	struct ow_error why;
	int fd;
	int64_t begin = ow_clock_steady_ns();
	(void)err;
	for (unsigned i = 0; i < ACCEPTS_MAX && ow_accept(daemon->listen.fd, &fd) == 0; i++) {
		if (open_link(daemon, NULL, fd, &why) == 0)
			continue;
		ow_daemon_refused(daemon, OW_REFUSED_BUSY, NULL);
		ow_daemon_log(daemon, OW_EVENT_WARNING, "connection refused: %s", why.text);
	}
	int64_t end = ow_clock_steady_ns();
	ow_unauthenticated_spend(daemon, end, end - begin);
	return 0;
}

/* Whether it must be driven although its socket is not ready. */
static bool is_due(const struct ow_daemon_link *link, int64_t steady_ns)
{
	return link->broken || link->closing || link->waits || ow_session_queued(link->session) > 0 ||
	       steady_ns >= ow_session_deadline(link->session);
}

/* Starts to connect, or checks the state of the attempt. */
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
	ow_daemon_peer_hang_up(peer);
	if (r == 0)
		r = open_link(peer->daemon, peer, fd, &err);
	if (r < 0) {
		log_failure(peer, err.text);
		plan_retry(peer, 0, false);
	}
}

static void ask_silent(struct ow_daemon_link *link, int64_t steady_ns)
{
	int64_t silent = steady_ns - link->heard_ns;
	if (!link->ready || link->closing || silent < PING_NS)
		return;
	if (silent > DEAD_NS) {
		ow_daemon_link_break(link, "no answer any more");
	} else if (link->asked_ns == 0) {
		struct ow_message ping = {.type = OW_MESSAGE_PING, .ping = {.token = (uint64_t)steady_ns}};
		link->asked_ns = steady_ns;
		ow_daemon_link_send(link, &ping);
	}
}

/* Ends connections that are silent, or do not read the last messages. */
static void end_overdue(struct ow_daemon_link *link, int64_t steady_ns)
{
	if (link->closing && link->closed_ns == 0)
		link->closed_ns = steady_ns;
	if (link->closing && steady_ns - link->closed_ns > CLOSING_NS)
		ow_daemon_link_break(link, "it does not read any more");
	else if (!link->ready && !link->closing && steady_ns - link->since_ns > HELLO_NS)
		ow_daemon_link_break(link, "no HELLO");
}

static void tend_unauthenticated(struct ow_daemon *daemon, int64_t steady_ns)
{
	if (daemon->unauthenticated.deaf)
		ow_unauthenticated_spend(daemon, steady_ns, 0);
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++) {
		struct ow_daemon_link *link = daemon->unauthenticated.link[i];
		if (!link)
			continue;
		bool late = link->closing && steady_ns - link->since_ns > HELLO_NS;
		link->broken |= late;
		bool waits = link->closing || ow_session_queued(link->session) > 0;
		if (link->broken || steady_ns >= ow_session_deadline(link->session) ||
		    (waits && !daemon->unauthenticated.deaf))
			drive_link(link);
	}
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
				drive_link(peer->link);
			daemon->hurry |= peer->link && peer->link->waits;
		} else if (peer->connect && !peer->leaving && !daemon->stopping && steady_ns >= peer->next_try_ns) {
			connect_peer(peer);
		}
	}
	tend_unauthenticated(daemon, steady_ns);
}

static void end_link(struct ow_daemon_link *link)
{
	if (!link)
		return;
	link->closing = true;
	ow_daemon_link_drop(link, "the end");
}

void ow_daemon_links_free(struct ow_daemon *daemon)
{
	for (unsigned i = 0; i < daemon->peer_count; i++)
		end_link(daemon->peers[i]->link);
	for (unsigned i = 0; i < OW_UNAUTHENTICATED_MAX; i++)
		end_link(daemon->unauthenticated.link[i]);
}
