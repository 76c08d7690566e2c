/* SPDX-License-Identifier: Apache-2.0 */
#include "point/daemon_gap.h"

#include "base/array.h"
#include "base/time.h"
#include "point/daemon_events.h"
#include "point/daemon_limit.h"
#include "point/daemon_private.h"

#include <stdio.h>
#include <string.h>

/* Results of a gap at a time: after a process was stopped for long, more are omitted. */
#define BURST 1024
/* Proposals within this time belong together. */
#define TOGETHER_NS (10 * OW_NS_PER_S)

static bool is_lane_of(const struct ow_daemon_lane *lane, const struct ow_daemon_gap *gap)
{
	return lane->peer == gap->peer && lane->sending == gap->sending &&
	       strcmp(lane->open.segment, gap->segment) == 0 && strcmp(lane->open.class_name, gap->class_name) == 0;
}

static void remove_gap(struct ow_daemon *d, unsigned i)
{
	d->gaps.gap[i] = d->gaps.gap[--d->gaps.count];
}

static void tell(struct ow_daemon *d, struct ow_daemon_gap *gap)
{
	struct ow_interval_result r;
	ow_result_blank(gap->interval++, gap->start_ns, gap->length_ns, &r);
	r.status = OW_RESULT_UNKNOWN;
	r.final = true;
	*(gap->sending ? &r.clock_from : &r.clock_to) = d->clock.state;
	const char *here = d->config->point, *there = gap->peer->name;
	snprintf(r.segment, sizeof r.segment, "%s", gap->segment);
	snprintf(r.class_name, sizeof r.class_name, "%s", gap->class_name);
	snprintf(r.from, sizeof r.from, "%s", gap->sending ? here : there);
	snprintf(r.to, sizeof r.to, "%s", gap->sending ? there : here);
	snprintf(r.cause, sizeof r.cause, "%s", gap->cause);
	gap->start_ns += gap->length_ns;
	gap->told_ns = gap->start_ns;
	if (*gap->then)
		memcpy(gap->cause, gap->then, sizeof gap->cause);
	*gap->then = 0;
	ow_daemon_result(d, &r);
	if (gap->sending)
		ow_daemon_group_gap(d, &r);
}

/* The oldest gap of a segment; *ret_gaps: the number of its gaps, *ret_results: their results per second. */
static unsigned oldest_of(const struct ow_daemon *d, const struct ow_daemon_gap *like, unsigned *ret_gaps,
                          double *ret_results)
{
	unsigned oldest = d->gaps.count, gaps = 0;
	double results = 0;
	for (unsigned i = 0; i < d->gaps.count; i++) {
		const struct ow_daemon_gap *gap = &d->gaps.gap[i];
		if (gap->peer != like->peer || strcmp(gap->segment, like->segment) != 0)
			continue;
		gaps++;
		results += ow_daemon_results_per_s(gap->length_ns);
		if (oldest == d->gaps.count || gap->since_ns < d->gaps.gap[oldest].since_ns)
			oldest = i;
	}
	*ret_gaps = gaps;
	*ret_results = results;
	return oldest;
}

/* Names of classes may come from a peer, which can invent new ones without end. */
static void make_room(struct ow_daemon *d, const struct ow_daemon_gap *added)
{
	for (;;) {
		unsigned gaps;
		double results;
		unsigned oldest = oldest_of(d, added, &gaps, &results);
		results += ow_daemon_results_per_s(added->length_ns);
		if (gaps == 0 || ow_daemon_limit_gaps(gaps + 1, results))
			return;
		ow_daemon_complain(added->peer,
		                   "segment '%s': too many classes came and went, '%s' is not reported any more",
		                   added->segment, d->gaps.gap[oldest].class_name);
		remove_gap(d, oldest);
	}
}

static void add_gap(struct ow_daemon *d, const struct ow_daemon_gap *gap)
{
	make_room(d, gap);
	if (OW_GROW(d->gaps.gap, d->gaps.room, d->gaps.count + 1) < 0)
		return;
	d->gaps.gap[d->gaps.count++] = *gap;
}

void ow_daemon_gap_open(const struct ow_daemon_lane *lane, int64_t interval, const char *cause)
{
	struct ow_daemon *d = lane->daemon;
	/* A segment that was removed has no gaps. Files have an end. */
	if (d->clock.files || d->stopping || !lane->segment)
		return;
	for (unsigned i = 0; i < d->gaps.count; i++) {
		if (is_lane_of(lane, &d->gaps.gap[i])) {
			/* In this case the lane has not begun yet. */
			snprintf(d->gaps.gap[i].then, sizeof d->gaps.gap[i].then, "%s", cause);
			return;
		}
	}
	struct ow_daemon_gap gap = {
		.peer = lane->peer, .sending = lane->sending, .interval = interval, .length_ns = lane->open.length_ns};
	gap.start_ns = gap.told_ns = lane->open.t0_ns + interval * lane->open.length_ns;
	gap.since_ns = ow_clock_steady_ns();
	gap.asked_ns = INT64_MIN / 2;
	snprintf(gap.segment, sizeof gap.segment, "%s", lane->open.segment);
	snprintf(gap.class_name, sizeof gap.class_name, "%s", lane->open.class_name);
	snprintf(gap.cause, sizeof gap.cause, "%s", cause);
	add_gap(d, &gap);
}

static bool has_gap_or_lane(const struct ow_daemon *d, const struct ow_daemon_gap *like)
{
	for (unsigned i = 0; i < d->gaps.count; i++) {
		const struct ow_daemon_gap *gap = &d->gaps.gap[i];
		if (gap->peer == like->peer && gap->sending == like->sending &&
		    strcmp(gap->segment, like->segment) == 0 && strcmp(gap->class_name, like->class_name) == 0)
			return true;
	}
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (is_lane_of(d->lanes[i], like))
			return true;
	}
	return false;
}

void ow_daemon_gaps_open(struct ow_daemon_peer *peer, const struct ow_config_segment *s, const char *cause)
{
	struct ow_daemon *d = peer->daemon;
	int64_t now_ns = ow_point_clock_now_ns(&d->clock);
	for (unsigned k = 0; k < 2 * s->class_count && !d->clock.files && !d->stopping; k++) {
		struct ow_daemon_gap gap = {.peer = peer,
		                            .sending = k % 2 == 0,
		                            .length_ns = s->interval_ns,
		                            .start_ns = now_ns - now_ns % s->interval_ns,
		                            .since_ns = ow_clock_steady_ns(),
		                            .asked_ns = INT64_MIN / 2};
		gap.told_ns = gap.start_ns;
		snprintf(gap.segment, sizeof gap.segment, "%s", s->name);
		snprintf(gap.class_name, sizeof gap.class_name, "%s", s->classes[k / 2].name);
		snprintf(gap.cause, sizeof gap.cause, "%s", cause);
		if (!has_gap_or_lane(d, &gap))
			add_gap(d, &gap);
	}
}

void ow_daemon_gaps_asked(struct ow_daemon_peer *peer, const struct ow_message_open *open)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->gaps.count; i++) {
		struct ow_daemon_gap *gap = &d->gaps.gap[i];
		if (gap->peer == peer && gap->sending == !open->sends && strcmp(gap->segment, open->segment) == 0 &&
		    strcmp(gap->class_name, open->class_name) == 0)
			gap->asked_ns = ow_clock_steady_ns();
	}
}

void ow_daemon_gaps_explain(struct ow_daemon_peer *peer, const char *cause)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = 0; i < d->gaps.count; i++) {
		if (d->gaps.gap[i].peer == peer)
			snprintf(d->gaps.gap[i].then, sizeof d->gaps.gap[i].then, "%s", cause);
	}
}

void ow_daemon_gaps_forget(struct ow_daemon_peer *peer)
{
	struct ow_daemon *d = peer->daemon;
	for (unsigned i = d->gaps.count; i-- > 0;) {
		if (d->gaps.gap[i].peer == peer)
			remove_gap(d, i);
	}
}

/* Reports the intervals that have ended by then, and do not reach beyond `end_ns`. */
static void tell_until(struct ow_daemon *d, struct ow_daemon_gap *gap, int64_t now_ns, int64_t end_ns)
{
	int64_t least = now_ns - BURST * gap->length_ns;
	if (gap->start_ns < least) {
		int64_t over = (least - gap->start_ns) / gap->length_ns;
		gap->interval += over;
		gap->start_ns += over * gap->length_ns;
	}
	while (gap->start_ns + gap->length_ns <= (now_ns < end_ns ? now_ns : end_ns))
		tell(d, gap);
}

void ow_daemon_gaps_step(struct ow_daemon *d, int64_t before_ns, int64_t now_ns)
{
	for (unsigned i = 0; i < d->gaps.count; i++) {
		struct ow_daemon_gap *gap = &d->gaps.gap[i];
		/* Including the interval that the step cuts. */
		tell_until(d, gap, before_ns + gap->length_ns, INT64_MAX);
		/* If the step is small, the same interval must not be reported again. */
		gap->start_ns = now_ns - now_ns % gap->length_ns;
		if (gap->start_ns + gap->length_ns == gap->told_ns)
			gap->start_ns = gap->told_ns;
	}
}

static bool has_class(const struct ow_config_segment *segment, const char *class_name)
{
	for (unsigned i = 0; i < segment->class_count; i++) {
		if (strcmp(segment->classes[i].name, class_name) == 0)
			return true;
	}
	return false;
}

/*
 * Whether the peer, which proposes all its lanes at a time, has since proposed other classes of the segment, and not
 * this one.
 */
static bool is_given_up(const struct ow_daemon *d, const struct ow_daemon_gap *gap)
{
	int64_t now = ow_clock_steady_ns();
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->peer == gap->peer && lane->state == OW_LANE_RUNNING &&
		    strcmp(lane->open.segment, gap->segment) == 0 && lane->agreed_ns >= gap->since_ns &&
		    lane->agreed_ns - gap->asked_ns > TOGETHER_NS && now - lane->agreed_ns > TOGETHER_NS)
			return true;
	}
	return false;
}

static bool is_wanted(const struct ow_daemon *d, const struct ow_daemon_gap *gap)
{
	for (unsigned i = 0; i < d->config->segment_count; i++) {
		const struct ow_config_segment *s = &d->config->segments[i];
		if (strcmp(s->name, gap->segment) != 0 || strcmp(s->peer, gap->peer->name) != 0)
			continue;
		bool chosen_here = s->stated & OW_STATED_CLASSES;
		return !d->stopping && (chosen_here ? has_class(s, gap->class_name) : !is_given_up(d, gap));
	}
	return false;
}

/* The start of the lane that replaces it; INT64_MAX = there is none yet. */
static int64_t end_of(const struct ow_daemon *d, const struct ow_daemon_gap *gap)
{
	int64_t end_ns = INT64_MAX;
	for (unsigned i = 0; i < d->lane_count; i++) {
		const struct ow_daemon_lane *lane = d->lanes[i];
		if (lane->state == OW_LANE_RUNNING && lane->until == INT64_MAX && is_lane_of(lane, gap))
			end_ns = lane->open.t0_ns;
	}
	return end_ns;
}

/* Whether the lane before it has intervals that are not answered yet: results are told in order. */
static bool is_early(const struct ow_daemon *d, const struct ow_daemon_gap *gap, int64_t now_ns)
{
	/* No longer than the results of the gap can wait. */
	if (now_ns - gap->start_ns > BURST / 2 * gap->length_ns)
		return false;
	for (unsigned i = 0; i < d->lane_count; i++) {
		if (d->lanes[i]->until != INT64_MAX && is_lane_of(d->lanes[i], gap))
			return true;
	}
	return false;
}

void ow_daemon_gaps_tick(struct ow_daemon *d)
{
	int64_t now_ns = ow_point_clock_now_ns(&d->clock);
	for (unsigned i = d->gaps.count; i-- > 0;) {
		struct ow_daemon_gap *gap = &d->gaps.gap[i];
		int64_t end_ns = end_of(d, gap);
		bool wanted = is_wanted(d, gap);
		if (wanted && is_early(d, gap, now_ns))
			continue;
		if (wanted)
			tell_until(d, gap, now_ns, end_ns);
		if (!wanted || gap->start_ns >= end_ns)
			remove_gap(d, i);
	}
}
