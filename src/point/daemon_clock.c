/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock steps, and clocks that are no longer synchronised.
 *
 * Intervals are cut by the clock, so after a step those of the two points are no longer the same, and a delay would be
 * the difference of a time before the step and one after it. So every lane ends with the last interval that was closed
 * before the step, the current interval is unknown, and the peers are informed. When they have answered for the
 * intervals before, the points connect again: HELLO compares the clocks, and the points agree on new lanes by the new
 * time. A result never mixes times before and after a step.
 *
 * A step is searched after packets were read and before they are used (base/steps.h). Daemon, exchange and agreement
 * get times of the steady clock, to which the step is added only then.
 */
#include "point/daemon_clock.h"

#include "base/time.h"
#include "point/agreement.h"
#include "point/daemon_connections.h"
#include "point/daemon_events.h"
#include "point/daemon_private.h"
#include "point/daemon_record.h"
#include "result/cause.h"

#include <stdio.h>
#include <string.h>

/* After a clock step, the time for answers about intervals before it. Then the points compare clocks again. */
#define STEP_DRAIN_NS INT64_C(1000000000)

/* Both points know about the step; the connecting point connects at once when the time has come. */
static void begin_anew(struct ow_daemon_peer *peer)
{
	peer->retry_ns = OW_RETRY_FIRST_NS;
	peer->next_try_ns = 0;
	if (peer->link && !peer->link->closing)
		peer->anew_ns = ow_clock_steady_ns() + STEP_DRAIN_NS;
}

/*
 * Clocks that have drifted apart until a packet would be searched in the wrong interval: the synopses of the peer show
 * it. HELLO checks whether the clocks are close enough.
 */
static void part(struct ow_daemon_peer *peer, int64_t ahead_ns)
{
	struct ow_daemon *d = peer->daemon;
	char apart[OW_DURATION_TEXT], cause[OW_RESULT_CAUSE];
	ow_duration_text((double)ahead_ns, apart);
	snprintf(cause, sizeof cause, ow_cause_clock_ahead, peer->name, apart);
	ow_daemon_log(d, OW_EVENT_WARNING, "%s: %s", peer->name, cause);
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (d->lanes[i]->peer == peer && d->lanes[i]->until == INT64_MAX)
			ow_daemon_lane_break(d->lanes[i], cause);
	}
	begin_anew(peer);
}

static void compare(struct ow_daemon *d)
{
	for (unsigned i = d->lane_count; i-- > 0;) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->state != OW_LANE_RUNNING || lane->until != INT64_MAX)
			continue;
		int64_t ahead = ow_exchange_ahead_ns(lane->exchange);
		if (ahead > OW_APART_END(lane->open.length_ns)) {
			part(lane->peer, ahead);
			return; /* lanes were removed; the rest follows the next time */
		}
	}
}

void ow_daemon_clock_stepped(struct ow_daemon *d, int64_t step_ns)
{
	char size[OW_STEP_TEXT], cause[OW_RESULT_CAUSE];
	int64_t now_ns = ow_point_clock_now_ns(&d->clock);
	ow_step_text(step_ns, size);
	snprintf(cause, sizeof cause, ow_cause_clock_stepped_at, size, d->config->point);
	ow_daemon_log(d, OW_EVENT_WARNING,
	              "the clock stepped by %s: the current intervals are unknown, the points agree again", size);
	for (unsigned i = 0; i < d->lane_count; i++)
		d->lanes[i]->stepped_ns += step_ns;
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (d->lanes[i]->until == INT64_MAX)
			ow_daemon_lane_break(d->lanes[i], cause);
	}
	ow_recorder_clock_set(d->recorder);
	d->passed_ns = INT64_MIN;
	ow_daemon_gaps_step(d, now_ns - step_ns, now_ns);
	ow_daemon_groups_retire(d, NULL);
	for (unsigned i = 0; i < d->peer_count; i++) {
		d->peers[i]->ahead_ns -= step_ns;
		begin_anew(d->peers[i]);
	}
}

/* Intervals that have not been answered by now are given up: their memory is needed. */
static void end_lanes(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = d->lane_count; i-- > 0;) {
		if (d->lanes[i]->peer == peer)
			ow_daemon_lane_end(d->lanes[i], ow_cause_step_not_answered);
	}
}

static void tend_peer(struct ow_daemon_peer *peer, int64_t steady_ns)
{
	if (peer->anew_ns == 0 || (ow_daemon_lanes_any(peer) && steady_ns < peer->anew_ns))
		return;
	peer->anew_ns = 0;
	end_lanes(peer);
	if (peer->link)
		ow_daemon_link_drop(peer->link, "the clock stepped: the points compare their clocks again");
	if (peer->connect)
		peer->next_try_ns = 0;
}

/* Logged once, when it changes. */
static void judge(struct ow_daemon *d, const struct ow_clock_state *clock, bool by_chrony)
{
	char error[OW_DURATION_TEXT];
	ow_duration_text((double)clock->error_ns, error);
	const char *source = by_chrony ? "chronyd" : "the kernel";
	if (!clock->synchronised && !d->clock.known)
		ow_daemon_log(d, OW_EVENT_WARNING,
		              "the clock is not synchronised: the error of delays is unknown (oneway doctor)");
	else if (!clock->synchronised && d->clock.state.synchronised)
		ow_daemon_log(d, OW_EVENT_WARNING,
		              "the clock has lost its source: the error of delays is unknown (oneway doctor)");
	else if (clock->synchronised && d->clock.known && !d->clock.state.synchronised)
		ow_daemon_log(d, OW_EVENT_NOTICE, "the clock is synchronised: its error is at most %s, according to %s",
		              error, source);
	else if (clock->synchronised && d->clock.known && d->clock.by_chrony && !by_chrony)
		ow_daemon_log(d, OW_EVENT_WARNING,
		              "chronyd does not answer any more: the clock's error is at most %s, according to the "
		              "kernel, and "
		              "grows",
		              error);
	else if (clock->synchronised && d->clock.known && !d->clock.by_chrony && by_chrony)
		ow_daemon_log(d, OW_EVENT_NOTICE, "chronyd answers: the clock's error is at most %s", error);
}

void ow_daemon_clock_tick(struct ow_daemon *d)
{
	int64_t steady_ns = ow_clock_steady_ns();
	for (unsigned i = 0; i < d->peer_count; i++)
		tend_peer(d->peers[i], steady_ns);
	/* Nothing is known about the clock with which a file was captured. */
	if (d->clock.files)
		return;
	compare(d);
	struct ow_clock_state clock;
	ow_clocks_tick(d->clock.clocks, steady_ns);
	ow_clocks_state(d->clock.clocks, steady_ns, &clock);
	bool by_chrony = strcmp(ow_clocks_source(d->clock.clocks, steady_ns), "chrony") == 0;
	judge(d, &clock, by_chrony);
	d->clock.state = clock;
	d->clock.by_chrony = by_chrony;
	d->clock.known = true;
}
