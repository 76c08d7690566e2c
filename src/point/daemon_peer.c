/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between points that do not belong to a lane: HELLO, PING, BYE, and the proposals and answers of
 * daemon_agree.c. An epoch identifies a process: after a lost connection the same epoch means that both still have
 * their lanes; another one means that the peer was restarted.
 */
#include "point/daemon_peer.h"

#include "base/time.h"
#include "exchange/dial.h"
#include "point/daemon_agree.h"
#include "point/daemon_events.h"
#include "point/daemon_identity.h"
#include "point/daemon_private.h"
#include "point/daemon_record.h"
#include "result/cause.h"

#include <errno.h>
#include <math.h>
#include <oneway/oneway.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No PING is answered while this many bytes wait to be read by the peer. */
#define PONG_QUEUE ((size_t)1 << 20)
/* Messages that are not understood before a connection is closed. */
#define NONSENSE_MAX 16

struct ow_daemon_peer *ow_daemon_peer_find(const struct ow_daemon *daemon, const char *name)
{
	for (unsigned i = 0; i < daemon->peer_count; i++) {
		if (strcmp(daemon->peers[i]->name, name) == 0)
			return daemon->peers[i];
	}
	return NULL;
}

void ow_daemon_peer_hang_up(struct ow_daemon_peer *peer)
{
	ow_dial_free(peer->dial);
	peer->dial = NULL;
}

void ow_daemon_peer_free(struct ow_daemon_peer *peer)
{
	ow_daemon_peer_hang_up(peer);
	free(peer->connect);
	free(peer);
}

static int add_peer(struct ow_daemon *daemon, const struct ow_config_segment *s, struct ow_error *err)
{
	struct ow_daemon_peer *peer = daemon->peer_count < OW_PEERS_MAX ? calloc(1, sizeof *peer) : NULL;
	if (!peer || (s->connect && !(peer->connect = strdup(s->connect)))) {
		free(peer);
		return ow_error_set(err, ENOMEM, "not enough memory for peer '%s'", s->peer);
	}
	peer->daemon = daemon;
	peer->retry_ns = OW_RETRY_FIRST_NS;
	snprintf(peer->name, sizeof peer->name, "%s", s->peer);
	daemon->peers[daemon->peer_count++] = peer;
	return 0;
}

int ow_daemon_peers_add(struct ow_daemon *daemon, const struct ow_config *config, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < config->segment_count; i++) {
		if (!ow_daemon_peer_find(daemon, config->segments[i].peer))
			r = add_peer(daemon, &config->segments[i], err);
	}
	return r;
}

/* Of the clock that stamps packets here; 0: it is not the host's, or not only. */
static uint64_t clock_identity(const struct ow_daemon *daemon)
{
	const struct ow_config *c = daemon->config;
	bool own = daemon->clock.files;
	for (unsigned i = 0; i < c->interface_count; i++)
		own |= c->interfaces[i].hardware_stamps;
	return own ? 0 : daemon->clock.identity;
}

void ow_daemon_peer_greet(struct ow_daemon_link *link)
{
	struct ow_daemon *daemon = link->daemon;
	struct ow_message hello = {.type = OW_MESSAGE_HELLO,
	                           .hello = {.version_min = OW_WIRE_VERSION,
	                                     .version_max = OW_WIRE_VERSION,
	                                     .epoch = daemon->epoch,
	                                     .now_ns = ow_point_clock_now_ns(&daemon->clock)}};
	hello.hello.clock = daemon->clock.state;
	hello.hello.clock_identity = clock_identity(daemon);
	snprintf(hello.hello.point, sizeof hello.hello.point, "%s", daemon->config->point);
	snprintf(hello.hello.software, sizeof hello.hello.software, "oneway %s", ow_version());
	link->asked_ns = ow_clock_steady_ns();
	ow_daemon_link_send(link, &hello);
}

static void log_connected(const struct ow_daemon_link *link, const struct ow_message_hello *hello, bool again)
{
	char apart[OW_DURATION_TEXT];
	ow_duration_text(fabs((double)link->peer->ahead_ns), apart);
	/* As far as one message can show: its travel time is included. */
	ow_daemon_peer_log(link->peer, OW_EVENT_INFO, "connected%s, %s, %s, clocks differ by about %s",
	                   again ? " again" : "", link->address, hello->software, apart);
}

/* The reason for a refusal, or NULL. */
static const char *refusal(const struct ow_daemon_link *link, const struct ow_message_hello *hello)
{
	if (strcmp(hello->point, link->peer->name) != 0)
		return "HELLO has another name than the authenticated one";
	if (hello->version_min > OW_WIRE_VERSION || hello->version_max < OW_WIRE_VERSION)
		return "no common version of the protocol";
	if (link->ready)
		return "a second HELLO";
	if (hello->now_ns < 0 || hello->now_ns > INT64_MAX / 2)
		return "a clock that is out of range";
	return NULL;
}

/* Whether there is a segment with this peer that can be measured with these clocks. Only the connecting point knows. */
static bool clocks_fit(const struct ow_daemon_peer *peer)
{
	const struct ow_config *c = peer->daemon->config;
	for (unsigned i = 0; i < c->segment_count; i++) {
		if (strcmp(c->segments[i].peer, peer->name) == 0 && ow_daemon_clocks_fit(peer, &c->segments[i]))
			return true;
	}
	return false;
}

static void refuse_clock(struct ow_daemon_link *link)
{
	const struct ow_config *c = link->daemon->config;
	char why[OW_RESULT_CAUSE];
	ow_daemon_clocks_cause(link->peer, why);
	ow_daemon_peer_log(link->peer, OW_EVENT_WARNING, "refused: %s", why);
	ow_daemon_gaps_explain(link->peer, why);
	for (unsigned i = 0; i < c->segment_count; i++) {
		if (strcmp(c->segments[i].peer, link->peer->name) == 0)
			ow_daemon_gaps_open(link->peer, &c->segments[i], why);
	}
	snprintf(link->peer->last_failure, sizeof link->peer->last_failure, "%s", why);
	ow_daemon_link_bye(link, why);
}

static void on_hello(struct ow_daemon_link *link, const struct ow_message_hello *hello)
{
	struct ow_daemon_peer *peer = link->peer;
	const char *why = refusal(link, hello);
	if (why) {
		ow_daemon_complain(peer, "refused: %s", why);
		ow_daemon_link_bye(link, why);
		return;
	}
	bool again = peer->known && peer->epoch == hello->epoch;
	peer->round_trip_ns = ow_clock_steady_ns() - link->asked_ns;
	peer->ahead_ns = hello->now_ns - ow_point_clock_now_ns(&link->daemon->clock);
	/*
	 * The message may have waited here while this process was delayed; it was not written before there was a
	 * connection.
	 */
	peer->hello_age_ns = ow_clock_steady_ns() - link->since_ns;
	peer->same_clock = hello->clock_identity != 0 && hello->clock_identity == clock_identity(link->daemon);
	link->asked_ns = 0;
	if (peer->connect && !clocks_fit(peer)) {
		refuse_clock(link);
		return;
	}
	/* Before the connection is ready: a new process would not understand the last messages of the old lanes. */
	if (!again)
		ow_daemon_lanes_end(peer, ow_cause_peer_restarted);
	link->ready = true;
	peer->last_failure[0] = 0;
	ow_session_set_limit(link->session, OW_WIRE_FRAME_MAX);
	log_connected(link, hello, again);
	ow_daemon_tell_peer(link->daemon, peer->name, true);
	peer->known = true;
	peer->epoch = hello->epoch;
	if (again)
		ow_daemon_lanes_connected(peer);
	if (peer->connect)
		ow_daemon_lanes_propose(peer);
}

static void on_ping(struct ow_daemon_link *link, const struct ow_message_ping *ping)
{
	if (ping->answer) {
		if (link->asked_ns != 0 && ping->token == (uint64_t)link->asked_ns)
			link->peer->round_trip_ns = ow_clock_steady_ns() - link->asked_ns;
		link->asked_ns = 0;
		return;
	}
	if (ow_session_queued(link->session) > PONG_QUEUE)
		return; /* it does not read answers either */
	struct ow_message pong = {.type = OW_MESSAGE_PING, .ping = {.token = ping->token, .answer = true}};
	ow_daemon_link_send(link, &pong);
}

static void on_bye(struct ow_daemon_link *link, const char *why)
{
	struct ow_daemon_peer *peer = link->peer;
	char cause[OW_RESULT_CAUSE];
	if (link->ready)
		ow_daemon_peer_log(peer, OW_EVENT_NOTICE, "has left: %s", why);
	else
		ow_daemon_peer_log(peer, OW_EVENT_WARNING, "refuses us: %s", why);
	ow_daemon_lanes_end(peer, ow_cause_peer_left);
	snprintf(cause, sizeof cause, link->ready ? ow_cause_peer_left_because : ow_cause_peer_refuses, peer->name,
	         why);
	ow_daemon_gaps_explain(peer, cause);
	/* The peer does not come back with its old state. */
	peer->known = false;
	link->closing = true;
	ow_session_close(link->session);
}

static void on_nonsense(struct ow_daemon_link *link, const char *why)
{
	if (link->nonsense++ == 0)
		ow_daemon_complain(link->peer, "not understood: %s", why);
	else
		ow_daemon_refused(link->daemon, OW_REFUSED_MESSAGE, link->peer->name);
	if (link->nonsense > NONSENSE_MAX) {
		ow_daemon_peer_log(link->peer, OW_EVENT_WARNING, "too much that is not understood");
		ow_daemon_link_bye(link, "too much that is not understood");
	}
}

/* The end of a lane, or of the connection. */
static int on_any_bye(struct ow_daemon_link *link, const struct ow_message *m, struct ow_error *err)
{
	if (!m->lane) {
		on_bye(link, m->text.text);
		return 0;
	}
	const struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(link->peer, m->lane);
	if (lane && m->interval > lane->next + OW_EXCHANGE_AHEAD_MAX)
		return ow_error_set(err, EPROTO, "message BYE: interval %lld is far in the future",
		                    (long long)m->interval);
	ow_daemon_lane_bye(link->peer, m->lane, m->interval, m->text.text);
	return 0;
}

static int on_message(struct ow_daemon_link *link, const struct ow_message *m, struct ow_error *err)
{
	struct ow_daemon_peer *peer = link->peer;
	switch (m->type) {
	case OW_MESSAGE_HELLO:
		on_hello(link, &m->hello);
		break;
	case OW_MESSAGE_OPEN:
		ow_daemon_lane_asked(peer, m->lane, &m->open);
		break;
	case OW_MESSAGE_OPENED:
		ow_daemon_lane_opened(peer, m->lane, &m->opened);
		break;
	case OW_MESSAGE_REFUSED:
		ow_daemon_lane_refused(peer, m->lane, m->text.text);
		break;
	case OW_MESSAGE_SURVEY:
		ow_daemon_identity_asked(peer, m->lane, &m->survey);
		break;
	case OW_MESSAGE_SAMPLE:
		ow_daemon_identity_told(peer, m->lane, &m->sample);
		break;
	case OW_MESSAGE_WANTED:
	case OW_MESSAGE_EPOCH:
		if (peer->daemon->options.flows.message)
			peer->daemon->options.flows.message(peer->daemon->options.flows.arg, peer->name, m);
		break;
	case OW_MESSAGE_PING:
		on_ping(link, &m->ping);
		break;
	case OW_MESSAGE_BYE:
		return on_any_bye(link, m, err);
	default:
		break;
	}
	return 0;
}

static bool is_control(enum ow_message_type type)
{
	return type == OW_MESSAGE_HELLO || type == OW_MESSAGE_OPEN || type == OW_MESSAGE_OPENED ||
	       type == OW_MESSAGE_REFUSED || type == OW_MESSAGE_PING || type == OW_MESSAGE_BYE ||
	       type == OW_MESSAGE_SURVEY || type == OW_MESSAGE_SAMPLE || type == OW_MESSAGE_WANTED ||
	       type == OW_MESSAGE_EPOCH;
}

void ow_daemon_peer_frame(struct ow_daemon_link *link, const uint8_t *frame, size_t size)
{
	struct ow_error err;
	enum ow_message_type type;
	uint32_t wire;
	int r = ow_message_peek(frame, size, &type, &wire, &err);
	if (r == 0 && !link->ready && type != OW_MESSAGE_HELLO && type != OW_MESSAGE_BYE)
		r = ow_error_set(&err, EPROTO, "%s before HELLO", ow_message_name(type));
	if (r == 0 && is_control(type)) {
		struct ow_message message;
		r = ow_message_decode(frame, size, &message, &err);
		if (r == 0) {
			r = on_message(link, &message, &err);
			ow_message_done(&message);
		}
	} else if (r == 0) {
		/* Messages for a lane that has ended are ignored; a lane that never existed is an error. */
		struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(link->peer, wire);
		if (wire == 0 || wire > link->peer->wire_max)
			r = ow_error_set(&err, EPROTO, "message %s: lane %u was never agreed on", ow_message_name(type),
			                 wire);
		else if (lane && lane->exchange)
			r = ow_exchange_frame(lane->exchange, frame, size, ow_daemon_lane_now_ns(lane), &err);
	}
	if (r < 0)
		on_nonsense(link, err.text);
}
