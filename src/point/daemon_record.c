/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enters the recorder's chunks into the interval logs of the lanes, passes closed intervals to their exchanges, and
 * ends lanes.
 */
#include "point/daemon_record.h"

#include "base/coder.h"
#include "base/time.h"
#include "point/daemon_events.h"
#include "point/daemon_private.h"
#include "result/cause.h"

#include <stdio.h>
#include <string.h>

/* An interface went away, came back, or is away for another cause: replaced by one that cannot be read. */
static void log_outage(struct ow_daemon *d, uint32_t source, bool is_new)
{
	const struct ow_outage *outage = d->logs.outage + source;
	char lasted[OW_DURATION_TEXT];
	if (is_new)
		ow_daemon_log(d, OW_EVENT_WARNING, "%s: its packets are unknown during this time", outage->cause);
	if (!outage->over)
		return;
	/* A repeated warning may not be logged, so this line has all of it. */
	ow_duration_text((double)(outage->until_ns - outage->from_ns), lasted);
	ow_daemon_log(d, OW_EVENT_NOTICE, "%s is back, %s for %s", d->config->interfaces[source].name,
	              outage->cause + strcspn(outage->cause, " ") + 1, lasted);
}

void ow_daemon_log_mixes(struct ow_daemon *d)
{
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		const char *name[2];
		if (ow_recorder_mixes(d->recorder, s->interfaces, name))
			ow_daemon_log(
				d, OW_EVENT_WARNING,
				"segment '%s': %s is recorded in the kernel and %s is not: their times differ by up to "
				"a microsecond, on a busy host by more",
				s->name, name[0], name[1]);
	}
}

/* Lanes with a source that was away do not know what passed. */
static void enter_outages(struct ow_daemon *d)
{
	for (uint32_t s = 0; s < d->logs.sources; s++) {
		struct ow_outage outage;
		bool is_new;
		if (!ow_recorder_outage(d->recorder, s, &outage))
			continue;
		ow_lane_logs_outage(&d->logs, s, &outage, &is_new);
		if (!d->config->interfaces[s].file)
			log_outage(d, s, is_new);
	}
}

static void finish_lane(struct ow_daemon_lane *lane)
{
	ow_daemon_lane_deafen(lane);
	lane->state = OW_LANE_FINISHING;
	ow_exchange_finish(lane->exchange, lane->why);
}

/* Records no interval after this one. */
static void limit_lane(struct ow_daemon_lane *lane, int64_t last)
{
	if (last < lane->until)
		lane->until = last;
	if (lane->log && lane->next > lane->until)
		finish_lane(lane);
}

/* The same, and tells the peer to end it there as well, because it would wait in vain for later intervals. */
static void announce_end(struct ow_daemon_lane *lane, const char *why)
{
	struct ow_message message = {
		.type = OW_MESSAGE_BYE, .lane = lane->wire, .interval = lane->until < 0 ? 0 : lane->until + 1};
	snprintf(message.text.text, sizeof message.text.text, "%s", why);
	ow_coder_cut(message.text.text);
	if (lane->peer->link && lane->peer->link->ready)
		ow_daemon_link_send(lane->peer->link, &message);
}

void ow_daemon_lane_bye(struct ow_daemon_peer *peer, uint32_t wire, int64_t interval, const char *why)
{
	struct ow_daemon_lane *lane = ow_daemon_lane_of_wire(peer, wire);
	if (!lane)
		return;
	if (!lane->exchange) {
		ow_daemon_lane_remove(lane);
		return;
	}
	if (lane->until == INT64_MAX)
		ow_daemon_gap_open(lane, interval > lane->next ? interval : lane->next, why);
	/* The results depend on it. */
	if (ow_cause_of(why) == OW_CAUSE_IDENTITY_CHANGED)
		snprintf(lane->why, sizeof lane->why, "%s", why);
	limit_lane(lane, interval - 1);
}

void ow_daemon_lane_break(struct ow_daemon_lane *lane, const char *why)
{
	if (lane->state < OW_LANE_RUNNING) {
		/* The proposer proposes it again with the next connection. */
		ow_daemon_lane_remove(lane);
		return;
	}
	ow_daemon_gap_open(lane, lane->next, why);
	lane->until = lane->next - 1;
	snprintf(lane->why, sizeof lane->why, "%s", why);
	announce_end(lane, why);
	finish_lane(lane);
}

/* Ends a lane that excludes the points' session if the session has another address now. */
static void break_if_moved(struct ow_daemon_lane *lane)
{
	char filter[sizeof lane->session_filter];
	if (!lane->session_filter[0] || lane->until != INT64_MAX)
		return;
	if (ow_daemon_lane_session(lane, filter, sizeof filter) < 0 || strcmp(filter, lane->session_filter) != 0)
		ow_daemon_lane_break(lane, ow_cause_session_moved);
}

void ow_daemon_lanes_connected(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer != peer || !lane->exchange)
			continue;
		ow_exchange_connected(lane->exchange, ow_daemon_lane_now_ns(lane));
		break_if_moved(lane);
		if (lane->until != INT64_MAX)
			announce_end(lane, lane->why);
	}
}

void ow_daemon_lanes_disconnected(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->peer == peer && d->lanes[i]->exchange)
			ow_exchange_disconnected(d->lanes[i]->exchange);
	}
}

/* Passes closed intervals to the exchange. */
static void close_intervals(struct ow_daemon_lane *lane, int64_t passed_ns)
{
	struct ow_daemon *d = lane->daemon;
	struct ow_interval_packets *packets;
	if (passed_ns == INT64_MAX)
		passed_ns = lane->log ? ow_cuts_start(&lane->log->cuts, lane->until + 1) : 0;
	while (lane->log && lane->next <= lane->until &&
	       (packets = ow_interval_log_next(lane->log->packets, passed_ns))) {
		lane->next = packets->interval + 1;
		if (packets->interval > lane->until)
			ow_interval_packets_free(packets);
		else /* the exchange takes the packets, also if it fails: then the interval is unknown */
			(void)ow_exchange_packets(lane->exchange, packets, &d->clock.state,
			                          ow_daemon_lane_now_ns(lane));
	}
	if (lane->log && lane->next > lane->until)
		finish_lane(lane);
}

/*
 * All files have ended. The interval in which they end is not complete: packets that the other point has of it may have
 * passed here after the end. So the interval before is the last one.
 */
static void end_files(struct ow_daemon *d)
{
	if (d->clock.ended_ns != 0)
		return;
	int64_t end = d->logs.latest_ns > d->passed_ns ? d->logs.latest_ns : d->passed_ns;
	ow_point_clock_end(&d->clock, end);
	ow_daemon_log(d, OW_EVENT_INFO, "the captures have ended");
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (!lane->exchange) {
			ow_daemon_lane_end(lane, ow_cause_captures_ended);
			continue;
		}
		lane->until = end < lane->open.t0_ns ? -1 : (end - lane->open.t0_ns) / lane->open.length_ns - 1;
		announce_end(lane, lane->why);
	}
}

void ow_daemon_lanes_take(struct ow_daemon *d, struct ow_chunk *chunks, int64_t passed)
{
	ow_lane_logs_enter(&d->logs, chunks);
	if (passed == INT64_MAX)
		end_files(d);
	else if (passed > d->passed_ns)
		d->passed_ns = passed;
	/* The end of all files is known. */
	if (passed != INT64_MAX)
		enter_outages(d);
	for (unsigned i = 0; i < d->lane_count; i++)
		close_intervals(d->lanes[i], passed);
}

void ow_daemon_lanes_tick(struct ow_daemon *d)
{
	for (unsigned i = d->lane_count; i-- > 0;) {
		struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->exchange)
			ow_exchange_tick(lane->exchange, ow_daemon_lane_now_ns(lane));
		if (lane->state == OW_LANE_FINISHING && ow_exchange_done(lane->exchange)) {
			ow_daemon_lane_total(lane);
			ow_daemon_lane_remove(lane);
		}
	}
}

void ow_daemon_lane_stop(struct ow_daemon_lane *lane, const char *why)
{
	int64_t now = ow_daemon_lane_now_ns(lane);
	if (lane->state < OW_LANE_RUNNING) {
		/* The peer may still accept it. */
		lane->until = -1;
		if (lane->state == OW_LANE_PROPOSED)
			announce_end(lane, lane->why);
		ow_daemon_lane_end(lane, why);
		return;
	}
	int64_t current = now < lane->open.t0_ns ? -1 : (now - lane->open.t0_ns) / lane->open.length_ns;
	limit_lane(lane, lane->open.length_ns <= OW_QUICK_NS ? current : current - 1);
	announce_end(lane, lane->why);
}

void ow_daemon_lanes_stop(struct ow_daemon *d, bool at_once)
{
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (at_once)
			ow_daemon_lane_end(d->lanes[i], ow_cause_stopped);
		else
			ow_daemon_lane_stop(d->lanes[i], ow_cause_stopped);
	}
}

bool ow_daemon_lanes_done(const struct ow_daemon *d)
{
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->state >= OW_LANE_RUNNING)
			return false;
	}
	return true;
}
