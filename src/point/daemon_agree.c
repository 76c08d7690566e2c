/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agreement on lanes: the point that connects proposes them, the other one compares them with its configuration. An
 * agreement holds as long as both processes live, also without a connection: the packets of intervals wait for it.
 */
#include "point/daemon_agree.h"

#include "base/time.h"
#include "point/agreement.h"
#include "point/daemon_events.h"
#include "point/daemon_identity.h"
#include "point/daemon_limit.h"
#include "point/daemon_private.h"
#include "result/cause.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* How often a lane that was refused is proposed again. */
#define PROPOSE_NS INT64_C(30000000000)
/* t0 is at least this far in the future, so that both points have their lanes by then; plus twice the round trip. */
#define LEAD_NS INT64_C(500000000)
/* A t0 later than this (and two intervals) is a mistake. */
#define LEAD_MAX_NS INT64_C(60000000000)
/* How often a lane is proposed again at once if the answer comes after its start. */
#define LATE_ANSWERS_MAX 8

/* The point that connects. */

static int64_t lead_ns(const struct ow_daemon_peer *peer)
{
	return (int64_t)((double)(LEAD_NS + 2 * peer->round_trip_ns) * peer->daemon->clock.speed);
}

static bool is_far(const struct ow_daemon_lane *lane, int64_t t0_ns)
{
	int64_t here = ow_point_clock_now_ns(&lane->daemon->clock), there = here + lane->peer->ahead_ns;
	double lead = (double)t0_ns - (double)(here > there ? here : there);
	return lead > (double)LEAD_MAX_NS * lane->daemon->clock.speed + 2 * (double)lane->open.length_ns;
}

static void send_open(struct ow_daemon_lane *lane)
{
	struct ow_daemon_peer *peer = lane->peer;
	int64_t here = ow_point_clock_now_ns(&lane->daemon->clock);
	lane->open.t0_ns = ow_agree_t0(here, here + peer->ahead_ns, lead_ns(peer), lane->open.length_ns);
	struct ow_message message = {.type = OW_MESSAGE_OPEN, .lane = lane->wire, .open = lane->open};
	ow_daemon_link_send(peer->link, &message);
}

static int draw_seeds(struct ow_message_open *open)
{
	uint64_t seeds[2];
	if (getrandom(seeds, sizeof seeds, 0) != (ssize_t)sizeof seeds)
		return -EIO;
	open->identity_seed = seeds[0];
	open->synopsis_seed = seeds[1];
	return 0;
}

/* Where the packets of a lane go to several peers, all lanes to them have the same seeds. */
static int join_group(struct ow_daemon_lane *lane)
{
	if (!lane->sending || !lane->segment->peers)
		return 0;
	lane->group = ow_daemon_group_of(lane->daemon, lane->segment, lane->open.class_name);
	if (!lane->group)
		return -ENOMEM;
	lane->identity_seed = lane->group->identity_seed;
	lane->synopsis_seed = lane->group->synopsis_seed;
	return 0;
}

static void propose(struct ow_daemon_peer *peer, const struct ow_config_segment *segment,
                    const struct ow_config_class *class, bool sending)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_message_open open;
	ow_agree_propose(segment, class, sending, &open);
	ow_daemon_identity_propose(peer, segment, &open);
	open.tcp_headers = !d->clock.files; /* no ring limits the packets of files */
	open.pieces = true;
	struct ow_daemon_lane *lane =
		draw_seeds(&open) < 0 ? NULL : ow_daemon_lane_add(peer, segment, &open, ++d->last_wire, sending);
	if (lane && join_group(lane) < 0) {
		ow_daemon_lane_remove(lane);
		lane = NULL;
	}
	if (!lane) {
		ow_daemon_log(d, OW_EVENT_ERROR, "%s: no memory for a lane of segment %s", peer->name, segment->name);
		return;
	}
	lane->open.identity_seed = lane->identity_seed;
	lane->open.synopsis_seed = lane->synopsis_seed;
	lane->filter = class->filter;
	send_open(lane);
}

static bool is_there(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *class_name,
                     bool sending)
{
	const struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		/* A lane that is ending makes room for the next. */
		if (lane->segment == segment && lane->sending == sending && lane->until == INT64_MAX &&
		    strcmp(lane->open.class_name, class_name) == 0)
			return true;
	}
	return false;
}

bool ow_daemon_clocks_fit(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment)
{
	return peer->daemon->clock.files || ow_agree_clocks(peer->ahead_ns, peer->hello_age_ns,
	                                                    ow_agree_apart_max(segment->interval_ns, segment->wait_ns));
}

void ow_daemon_clocks_cause(const struct ow_daemon_peer *peer, char ret_cause[OW_RESULT_CAUSE])
{
	char apart[OW_DURATION_TEXT];
	ow_duration_text(fabs((double)peer->ahead_ns), apart);
	snprintf(ret_cause, OW_RESULT_CAUSE, ow_cause_clocks_apart, apart);
}

static void propose_segment(struct ow_daemon_peer *peer, const struct ow_config_segment *s)
{
	if (!ow_daemon_clocks_fit(peer, s)) {
		char cause[OW_RESULT_CAUSE];
		ow_daemon_clocks_cause(peer, cause);
		ow_daemon_log(peer->daemon, OW_EVENT_WARNING, "%s: segment '%s' not measured: %s", peer->name, s->name,
		              cause);
		ow_daemon_gaps_open(peer, s, cause);
		return;
	}
	for (unsigned k = 0; k < 2 * s->class_count; k++) {
		if (!is_there(peer, s, s->classes[k / 2].name, k % 2 == 0))
			propose(peer, s, &s->classes[k / 2], k % 2 == 0);
	}
}

void ow_daemon_lanes_propose(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	peer->propose_ns = ow_clock_steady_ns() + PROPOSE_NS;
	/* Their memory is needed. */
	if (ow_daemon_lanes_ending(peer)) {
		peer->renew = true;
		return;
	}
	/* Removes lanes that were proposed or refused before. */
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer == peer && lane->state < OW_LANE_RUNNING) {
			lane->state = OW_LANE_PROPOSED;
			send_open(lane);
		}
	}
	for (unsigned i = 0; i < d->config->segment_count && !d->stopping; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		if (strcmp(s->peer, peer->name) == 0)
			propose_segment(peer, s);
	}
}

static void refuse(struct ow_daemon_peer *peer, uint32_t wire, const char *why)
{
	struct ow_message message = {.type = OW_MESSAGE_REFUSED, .lane = wire};
	snprintf(message.text.text, sizeof message.text.text, "%.*s", OW_MESSAGE_TEXT - 1, why);
	if (peer->link)
		ow_daemon_link_send(peer->link, &message);
}

static void fail_lane(struct ow_daemon_lane *lane, const char *why)
{
	char name[OW_LANE_TEXT];
	ow_daemon_lane_text(lane, name);
	ow_daemon_complain(lane->peer, "%s refused here: %s", name, why);
	refuse(lane->peer, lane->wire, why);
}

/*
 * The answer took too long: the beginning would be missing. New seeds make it another lane, except in a group, whose
 * other lanes have them. If that happens repeatedly, it is proposed only at the next time (PROPOSE_NS).
 */
static void propose_later(struct ow_daemon_lane *lane)
{
	if (++lane->late_answers % LATE_ANSWERS_MAX == 0) {
		lane->state = OW_LANE_REFUSED;
		return;
	}
	if (!lane->group && draw_seeds(&lane->open) < 0)
		return;
	lane->identity_seed = lane->open.identity_seed;
	lane->synopsis_seed = lane->open.synopsis_seed;
	send_open(lane);
}

/* Only the point that packets come from may choose other seeds. */
static bool take_seeds(struct ow_daemon_lane *lane, const struct ow_message_opened *opened)
{
	bool same = opened->identity_seed == lane->identity_seed && opened->synopsis_seed == lane->synopsis_seed;
	lane->identity_seed = opened->identity_seed;
	lane->synopsis_seed = opened->synopsis_seed;
	return same || !lane->sending;
}

void ow_daemon_lane_opened(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_opened *opened)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	struct ow_error err;
	if (!lane || lane->state != OW_LANE_PROPOSED)
		return;
	if (opened->t0_ns % lane->open.length_ns != 0 || is_far(lane, opened->t0_ns)) {
		fail_lane(lane, "t0 of OPENED is not a multiple of the interval, or too far away");
		lane->state = OW_LANE_REFUSED;
		return;
	}
	if (opened->t0_ns <= ow_point_clock_now_ns(&lane->daemon->clock)) {
		propose_later(lane);
		return;
	}
	lane->open.t0_ns = opened->t0_ns;
	if (!take_seeds(lane, opened)) {
		fail_lane(lane, "OPENED has other seeds for packets of this point");
		lane->state = OW_LANE_REFUSED;
		return;
	}
	if (ow_daemon_lane_start(lane, &err) < 0) {
		fail_lane(lane, err.text);
		ow_daemon_lane_remove(lane);
	}
}

void ow_daemon_lane_refused(struct ow_daemon_peer *peer, uint32_t wire, const char *why)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	char name[OW_LANE_TEXT];
	if (!lane)
		return;
	ow_daemon_lane_text(lane, name);
	ow_daemon_peer_log(peer, OW_EVENT_WARNING, "refuses %s: %s", name, why);
	if (lane->state == OW_LANE_PROPOSED)
		lane->state = OW_LANE_REFUSED;
	else
		ow_daemon_lane_end(lane, ow_cause_refused);
}

/* The point that is connected to. */

/* Whether the peer proposes a lane that exists. If its start has passed, the peer could not use it, and has begun anew. */
static bool is_same(const struct ow_daemon_lane *lane, const struct ow_message_open *open)
{
	int64_t here = ow_point_clock_now_ns(&lane->daemon->clock), there = here + lane->peer->ahead_ns;
	return lane->open.identity_seed == open->identity_seed && lane->open.synopsis_seed == open->synopsis_seed &&
	       lane->open.length_ns == open->length_ns && lane->open.t0_ns > (here > there ? here : there);
}

static void send_opened(const struct ow_daemon_lane *lane)
{
	struct ow_message message = {.type = OW_MESSAGE_OPENED,
	                             .lane = lane->wire,
	                             .opened = {.now_ns = ow_point_clock_now_ns(&lane->daemon->clock),
	                                        .t0_ns = lane->open.t0_ns,
	                                        .identity_seed = lane->identity_seed,
	                                        .synopsis_seed = lane->synopsis_seed}};
	ow_daemon_link_send(lane->peer->link, &message);
}

/* The peer has finished the lane that has ended, because it asks for the next one: the memory is needed. */
static void end_predecessor(struct ow_daemon_peer *peer, const struct ow_message_open *open, bool sending)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer == peer && lane->until != INT64_MAX && lane->sending == sending &&
		    strcmp(lane->open.segment, open->segment) == 0 &&
		    strcmp(lane->open.class_name, open->class_name) == 0)
			ow_daemon_lane_end(lane, ow_cause_answers_no_more);
	}
}

/* Records a lane that the peer proposes, if it can be accepted. */
static int note_lane(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open,
                     struct ow_error *why)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_agreed agreed;
	unsigned instructions = 0;
	if (d->stopping)
		return ow_error_set(why, ESHUTDOWN, "this point is about to stop");
	if (d->clock.ended_ns != 0)
		return ow_error_set(why, ESHUTDOWN, "the captures have ended here");
	if (peer->anew_ns != 0)
		return ow_error_set(why, EAGAIN, "the clock stepped here");
	int r = ow_agree_check(d->config, peer->name, open, &agreed, why);
	if (r < 0)
		return r;
	if (is_there(peer, agreed.segment, open->class_name, agreed.sending))
		return ow_error_set(why, EEXIST, "this lane exists already");
	end_predecessor(peer, open, agreed.sending);
	r = ow_daemon_limit_lane(d, agreed.segment, open, why);
	if (r == 0 && agreed.filter == open->filter)
		r = ow_daemon_limit_filter(peer, agreed.segment, open->filter, &instructions, why);
	if (r < 0)
		return r;
	struct ow_daemon_lane *lane = ow_daemon_lane_add(peer, agreed.segment, open, wire, agreed.sending);
	if (lane && join_group(lane) < 0) {
		ow_daemon_lane_remove(lane);
		lane = NULL;
	}
	if (!lane)
		return ow_error_set(why, ENOMEM, "no more lanes are possible here");
	/* If the filter is in the message, the lane keeps its own copy. */
	lane->filter = agreed.filter == open->filter ? lane->open.filter : agreed.filter;
	lane->instructions = instructions;
	lane->state = OW_LANE_ASKED;
	return 0;
}

void ow_daemon_lane_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	struct ow_error why;
	if (lane && lane->state == OW_LANE_RUNNING && is_same(lane, open)) {
		/* OPENED was lost with the connection. */
		send_opened(lane);
		return;
	}
	if (lane)
		ow_daemon_lane_remove(lane);
	ow_daemon_gaps_asked(peer, open);
	if (note_lane(peer, wire, open, &why) == 0)
		return;
	ow_daemon_complain(peer, "segment '%s' class '%s' refused: %s", open->segment, open->class_name, why.text);
	refuse(peer, wire, why.text);
}

static int accept_lane(struct ow_daemon_lane *lane, struct ow_error *why)
{
	int64_t lead = lead_ns(lane->peer), here = ow_point_clock_now_ns(&lane->daemon->clock);
	if (lane->open.t0_ns % lane->open.length_ns != 0 || is_far(lane, lane->open.t0_ns))
		return ow_error_set(why, EINVAL, "t0 is not a multiple of the interval, or too far away");
	if (!lane->daemon->clock.files &&
	    !ow_agree_clocks(lane->peer->ahead_ns, lane->peer->hello_age_ns, lane->open.wait_ns))
		return ow_error_set(why, EINVAL, "the clocks differ by more than its 'wait'");
	/* A tenth of the lead is enough time to prepare; if less is left, t0 is moved. */
	if (lane->open.t0_ns < here + lead / 10)
		lane->open.t0_ns = ow_agree_later(lane->open.t0_ns, here, lead, lane->open.length_ns);
	int64_t begin = ow_clock_steady_ns();
	int r = ow_daemon_lane_start(lane, why);
	ow_daemon_peer_spend(lane->peer, begin);
	if (r == 0)
		send_opened(lane);
	return r;
}

void ow_daemon_lanes_accept(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	struct ow_error why;
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer != peer || lane->state != OW_LANE_ASKED)
			continue;
		if (!peer->link || accept_lane(lane, &why) < 0) {
			if (peer->link)
				fail_lane(lane, why.text);
			ow_daemon_lane_remove(lane);
			i--;
		}
	}
}
