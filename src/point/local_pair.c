/* SPDX-License-Identifier: Apache-2.0 */
/* Live measurement between two interfaces of one host: see local_pair.h. */
#include "point/local_pair_private.h"

#include "result/cause.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Intervals compared in one call: signals and full pipes are checked in between. */
#define WORK_INTERVALS 256u
/* After the stop, the time to wait for packets in flight, */
#define GRACE_NS (200 * OW_NS_PER_MS)
/* and how much longer for a recorder that does not continue. */
#define PATIENCE_NS OW_NS_PER_S

/* -- intervals ----------------------------------------------------------------------------------------------------- */

/* The time from which nothing of a lane is used: a file that has ended cannot show arrivals. */
static int64_t stop_of(const struct ow_local_pair *pair, const struct ow_local_pair_lane *lane)
{
	return ow_local_pair_least(pair->stop_ns, pair->over_ns[lane->log[OW_LOCAL_PAIR_RECEIVER].source]);
}

/* An interface was away: packets that it did not see are not lost. cause: another one; or NULL. */
static int skip(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, const struct ow_interval_packets *a,
                const struct ow_interval_packets *b, const char *cause, bool quiet)
{
	struct ow_interval_result result = {.interval = a->interval - pair->lead,
	                                    .start_ns = a->start_ns,
	                                    .length_ns = a->length_ns,
	                                    .total_sent = a->total_packets,
	                                    .total_received = b->total_packets,
	                                    .bytes = a->total_bytes};
	ow_local_pair_complete(pair, lane, &result);
	snprintf(result.cause, sizeof result.cause, "%s%s%s", cause ? cause : a->blind,
	         a->blind[0] && b->blind[0] ? "; " : "", b->blind);
	lane->running.begun = false;
	return ow_interval_results_unknown(lane->results, &result, quiet);
}

/* Nothing but identical packets that were sent already when recording began: the result says that delays may be longer. */
static void doubt_delays(const struct ow_local_pair *pair, struct ow_local_pair_lane *lane,
                         const struct ow_interval_packets *a, const struct ow_joined *joined,
                         struct ow_interval_results_input *input)
{
	struct ow_interval_result *r = &input->result;
	struct ow_running_interval interval = {
		.compared = true,
		.start_ns = a->start_ns,
		.begun_ns = a->start_ns > pair->begun_ns ? a->start_ns : pair->begun_ns,
		.sent = a->sighting,
		.count = a->count,
		.copies = a->copies,
		.others = joined->aligned ? joined->samples : 0,
		.aligned = joined->aligned,
		.unsure = input->close || r->ambiguous,
		.most_ns = pair->two_clocks ? INT64_MAX : OW_LOCAL_PAIR_LEAD_NS,
		.lost_ns = pair->options.wait_ns,
	};
	int64_t gap_ns = ow_running_copies_doubt(&lane->running, &interval);
	if (gap_ns)
		ow_result_delays_longer(r, gap_ns);
}

static int compare(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, const struct ow_interval_packets *a,
                   const struct ow_interval_packets *b)
{
	struct ow_interval_results_input input;
	bool quiet = a->interval < pair->lead || a->start_ns >= pair->end_ns;
	if (a->blind[0] || b->blind[0])
		return skip(pair, lane, a, b, NULL, quiet);
	struct ow_joined joined;
	int64_t before_ns = ow_clock_steady_ns();
	int r = ow_interval_match_pair(a, b,
	                               &(struct ow_interval_match_past){
					       lane->results, lane->before, pair->options.shared ? &lane->shared : NULL,
					       lane->copies, lane->running.longer, pair->two_clocks},
	                               &input, &joined);
	if (r < 0)
		return r;
	pair->met = pair->met || input.result.matched;
	if (pair->streams && !pair->met && a->count && b->count) {
		ow_joined_done(&joined);
		return skip(pair, lane, a, b, ow_cause_none_met, quiet);
	}
	ow_local_pair_complete(pair, lane, &input.result);
	ow_local_pair_correct(lane, &input, &joined);
	doubt_delays(pair, lane, a, &joined, &input);
	input.quiet = quiet;
	input.result.interval = a->interval - pair->lead;
	input.result.cost.compute_ns = ow_clock_steady_ns() - before_ns;
	r = ow_interval_results_step(lane->results, &input);
	ow_joined_done(&joined);
	return r;
}

/* The run ends in the middle of the interval: the rest is only for packets in flight. */
static int compare_split(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, struct ow_interval_packets *a,
                         struct ow_interval_packets *b)
{
	struct ow_interval_packets *rest_a = ow_interval_packets_rest(a, pair->end_ns),
				   *rest_b = ow_interval_packets_rest(b, pair->end_ns);
	int r = rest_a && rest_b ? 0 : -ENOMEM;
	ow_interval_packets_cut(a, pair->end_ns);
	ow_interval_packets_cut(b, pair->end_ns);
	if (r == 0)
		r = compare(pair, lane, a, b);
	if (r == 0)
		r = compare(pair, lane, rest_a, rest_b);
	ow_interval_packets_free(rest_a);
	ow_interval_packets_free(rest_b);
	return r;
}

/*
 * If only one interface shows a tag (a trunk and an access port), the filter matches packets at one of them and cannot
 * match them at the other. These are not lost. Once it has matched packets at both, missing packets are lost.
 */
static void look_at_filter(struct ow_local_pair_lane *lane, struct ow_interval_packets *a,
                           struct ow_interval_packets *b)
{
	if (!lane->link_filter || lane->met || (!a->total_packets && !b->total_packets))
		return;
	lane->met = a->total_packets && b->total_packets;
	struct ow_interval_packets *empty = a->total_packets ? b : a;
	if (!lane->met && !empty->blind[0])
		snprintf(empty->blind, sizeof empty->blind, ow_cause_filter_takes_none,
		         a->total_packets ? lane->names.to : lane->names.from);
}

static int compare_packets(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, struct ow_interval_packets *a,
                           struct ow_interval_packets *b)
{
	unsigned shift = a->sample_shift > b->sample_shift ? a->sample_shift : b->sample_shift;
	ow_interval_packets_resample(a, &pair->options.identity, shift);
	ow_interval_packets_resample(b, &pair->options.identity, shift);
	look_at_filter(lane, a, b);
	int64_t stop_ns = stop_of(pair, lane);
	if (a->start_ns + a->length_ns > stop_ns) {
		ow_interval_packets_cut(a, stop_ns);
		ow_interval_packets_cut(b, stop_ns);
	}
	a->interval += pair->split;
	b->interval += pair->split;
	if (a->start_ns < pair->end_ns && pair->end_ns < a->start_ns + a->length_ns)
		return compare_split(pair, lane, a, b);
	return compare(pair, lane, a, b);
}

static struct ow_interval_packets *next_packets(const struct ow_local_pair *pair, struct ow_interval_log *log,
                                                int64_t passed_ns)
{
	struct ow_interval_packets *packets = ow_interval_log_next(log, passed_ns);
	if (packets)
		packets->interval += pair->base;
	return packets;
}

/* The packets of an interval; empty if the log has none. NULL without memory. */
static struct ow_interval_packets *take_packets(struct ow_local_pair *pair, struct ow_local_pair_log *log,
                                                int64_t interval, int64_t passed_ns)
{
	if (!log->packets)
		log->packets = next_packets(pair, log->recorded->packets, passed_ns);
	struct ow_interval_packets *packets = log->packets;
	while (packets && packets->interval < interval) {
		ow_interval_packets_free(packets);
		packets = next_packets(pair, log->recorded->packets, passed_ns);
	}
	log->packets = packets;
	if (packets && packets->interval == interval) {
		log->packets = NULL;
		return packets;
	}
	/* An interval without memory is not empty: all its packets would seem lost. */
	if (!packets && ow_interval_log_due(log->recorded->packets, passed_ns))
		return NULL;
	packets = calloc(1, sizeof *packets);
	if (packets) {
		packets->interval = interval;
		packets->start_ns = ow_local_pair_start_of(pair, interval);
		packets->length_ns = pair->options.length_ns;
	}
	return packets;
}

static int compare_interval(struct ow_local_pair *pair, struct ow_local_pair_lane *lane, int64_t passed_ns)
{
	struct ow_interval_packets *a = take_packets(pair, lane->log + OW_LOCAL_PAIR_SENDER, pair->next, passed_ns);
	struct ow_interval_packets *b = take_packets(pair, lane->log + OW_LOCAL_PAIR_RECEIVER, pair->next, passed_ns);
	int r = a && b ? compare_packets(pair, lane, a, b) : -ENOMEM;
	ow_interval_packets_free(a);
	ow_interval_packets_free(lane->before);
	lane->before = b;
	return r;
}

static bool something_waits(const struct ow_local_pair *pair)
{
	for (size_t i = 0; i < pair->lanes; i++) {
		if (ow_interval_results_waiting(pair->lane[i].results))
			return true;
	}
	return false;
}

/* Whether the next interval is complete, or will not become more complete. */
static bool is_due(const struct ow_local_pair *pair)
{
	int64_t end_ns = ow_local_pair_least(ow_local_pair_start_of(pair, pair->next + 1), pair->stop_ns);
	return pair->passed_ns >= end_ns ||
	       (pair->stopped && ow_clock_steady_ns() - pair->since_ns > GRACE_NS + PATIENCE_NS);
}

static int finish(struct ow_local_pair *pair)
{
	pair->holding = true;
	for (size_t i = 0; i < pair->lanes; i++)
		ow_interval_results_finish(pair->lane[i].results);
	ow_local_pair_release(pair);
	pair->done = true;
	return 1;
}

/* Compares complete intervals, up to WORK_INTERVALS. Returns 1 at the end. */
static int compare_intervals(struct ow_local_pair *pair)
{
	for (unsigned n = 0; n < WORK_INTERVALS && is_due(pair); n++) {
		int64_t start_ns = ow_local_pair_start_of(pair, pair->next),
			end_ns = start_ns + pair->options.length_ns;
		/* The logs return an interval when it has ended; the last one ends now. */
		int64_t passed_ns = end_ns > pair->stop_ns || pair->stopped ? INT64_MAX : pair->passed_ns;
		int r = 0;
		pair->holding = true;
		for (size_t i = 0; r >= 0 && i < pair->lanes; i++) {
			if (start_ns < stop_of(pair, pair->lane + i))
				r = compare_interval(pair, pair->lane + i, passed_ns);
		}
		ow_local_pair_release(pair);
		if (r < 0)
			return r;
		pair->next++;
		pair->split += start_ns < pair->end_ns && pair->end_ns < end_ns;
		if (end_ns >= pair->stop_ns || (end_ns >= pair->end_ns && !something_waits(pair)))
			return finish(pair);
	}
	return 0;
}

/* -- work ---------------------------------------------------------------------------------------------------------- */

int ow_local_pair_fd(const struct ow_local_pair *pair)
{
	return ow_recorder_fd(pair->recorder);
}

bool ow_local_pair_is_blind(const struct ow_local_pair *pair, struct ow_error *err)
{
	return !pair->clock.files && ow_lane_logs_check(&pair->logs, err) < 0;
}

int ow_local_pair_timeout_ms(const struct ow_local_pair *pair)
{
	return is_due(pair) ? 0 : OW_LOCAL_PAIR_WORK_MS;
}

/* A stream has ended: what it would show later is not known. */
static void end_stream(struct ow_local_pair *pair, unsigned source, int64_t end_ns)
{
	pair->over_ns[source] = ow_local_pair_least(pair->over_ns[source], end_ns);
	pair->end_ns = ow_local_pair_least(pair->end_ns, end_ns);
	if (pair->end_ns < INT64_MAX - pair->options.wait_ns)
		pair->stop_ns = ow_local_pair_least(pair->stop_ns, pair->end_ns + pair->options.wait_ns);
}

/* Notes when a source has shown nothing. The end of files is known from the start. */
static void take_outages(struct ow_local_pair *pair)
{
	for (unsigned source = 0; source < OW_LOCAL_PAIR_SIDES; source++) {
		struct ow_outage outage;
		bool new;
		if ((pair->clock.files && !pair->streams) || !ow_recorder_outage(pair->recorder, source, &outage))
			continue;
		if (pair->streams && outage.until_ns == INT64_MAX)
			end_stream(pair, source, outage.from_ns);
		else
			ow_lane_logs_outage(&pair->logs, source, &outage, &new);
	}
}

int ow_local_pair_work(struct ow_local_pair *pair, struct ow_error *err)
{
	struct ow_chunk *chunks = NULL;
	struct ow_error reason = {"no reason given"};
	if (pair->done)
		return 1;
	int r = ow_recorder_take(pair->recorder, &chunks, &pair->passed_ns, &reason);
	/* Before the packets are used. */
	int stepped = ow_local_pair_look_at_clock(pair, err);
	ow_lane_logs_enter(&pair->logs, chunks);
	take_outages(pair);
	if (r < 0 && !pair->failed) {
		pair->failed = r;
		pair->err = reason;
		/*
		 * One interface alone gives no result: the result is what was seen until now. The end of a damaged file
		 * is known.
		 */
		if (!pair->clock.files || pair->streams)
			ow_local_pair_stop(pair);
	}
	if (stepped < 0)
		return stepped;
	if (pair->done)
		return 1;
	r = ow_local_pair_look_at_identity(pair, err);
	if (r < 0)
		return r;
	r = compare_intervals(pair);
	if (r < 0)
		return ow_error_set(err, -r, "cannot compare packets: %s", strerror(-r));
	if (r == 1 && pair->failed) {
		*err = pair->err;
		return pair->failed;
	}
	return r;
}

void ow_local_pair_stop(struct ow_local_pair *pair)
{
	if (pair->stopped)
		return;
	/*
	 * For files, the time of the last comparison, because the recorder may be far ahead. For streams, the time up to
	 * which both have come.
	 */
	int64_t now_ns = pair->streams ? pair->passed_ns
	                 : pair->clock.files
	                         ? ow_local_pair_least(pair->passed_ns, ow_local_pair_start_of(pair, pair->next))
	                         : ow_recorder_now_ns(pair->recorder);
	pair->stopped = true;
	pair->since_ns = ow_clock_steady_ns();
	pair->end_ns = ow_local_pair_least(pair->end_ns, now_ns);
	pair->stop_ns = ow_local_pair_least(
		pair->stop_ns, now_ns + (pair->clock.files ? 0 : ow_local_pair_least(GRACE_NS, pair->options.wait_ns)));
}

size_t ow_local_pair_lanes(const struct ow_local_pair *pair)
{
	return pair->lanes;
}

void ow_local_pair_total(const struct ow_local_pair *pair, size_t lane, struct ow_interval_result *ret_total)
{
	assert(lane < pair->lanes);
	ow_run_total(pair->lane[lane].results, ret_total);
	ow_result_name_like(ret_total, &pair->lane[lane].names);
	ow_local_pair_add_shift(pair, ret_total);
}

uint64_t ow_local_pair_untimed(const struct ow_local_pair *pair, unsigned source)
{
	return pair->untimed[source];
}

const char *ow_local_pair_note(const struct ow_local_pair *pair, unsigned source)
{
	return pair->note[source];
}

void ow_local_pair_counts(const struct ow_local_pair *pair, unsigned source, struct ow_recorder_counts *ret_counts)
{
	ow_recorder_counts(pair->recorder, source, ret_counts);
}
