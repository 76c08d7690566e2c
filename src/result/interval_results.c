/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of intervals in order, provisional and final. reconcile/late_packets decides what is late; here each interval that
 * is still open keeps its result and its delays, as a histogram where all are known (an array of every packet's delay
 * would take megabytes an interval), else as the sample that it came with and a histogram of the late ones.
 */
#include "result/interval_results_private.h"

#include "base/random.h"
#include "base/sort.h"

#include "estimate/sample.h"
#include "result/cause.h"
#include "result/result_clock.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTNEXTLINE(misc-redundant-expression) */
static_assert(OW_INTERVAL_RESULTS_NO_TIME == OW_LATE_PACKETS_NO_TIME, "handed on");

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* An identical packet of any interval from the first on may be the one that arrived in the last. */
static void doubt_between(struct ow_interval_results *results, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number <= last; number++)
		ow_interval_results_open_of(results, number)->in_turn++;
}

/* Identical packets were on their way when the first interval began, and it shows only now: while that one is open, all may have
 * been taken for others. */
static void doubt_begun(struct ow_interval_results *results)
{
	if (ow_interval_results_open_of(results, results->first)->result.start_ns != results->begun_ns)
		return;
	for (uint64_t number = results->first; number < results->next; number++)
		ow_interval_results_open_of(results, number)->amid = true;
}

/* A packet arrived in another interval. */
static void on_late(void *arg, const struct ow_late_packets_late *late)
{
	struct ow_interval_results *results = arg;
	uint64_t newest = results->next - 1;
	struct ow_interval_results_open *sender = ow_interval_results_open_of(results, newest - late->age);
	sender->late++;
	struct ow_interval_results_open *receiver = ow_interval_results_open_of(results, newest - late->arrived);
	receiver->late_received++;
	receiver->strange -= results->scope && !late->arrival_flow;
	ow_interval_results_note_late(results, sender, late->flow, late->sent_ns);
	if (!late->arrived && ow_interval_results_is_unplaced(results, results->input->only_b + late->place))
		receiver->unplaced--;
	if (late->alike) {
		sender->alike++;
		if (late->arrived)
			doubt_begun(results);
		/* Nothing tells how long packets take: each of these may be lost, and another one late. */
		bool in_turn = !late->timed && results->reach_ns < 0;
		if (late->doubted) {
			doubt_between(results, newest - late->age, newest - late->arrived);
		} else {
			sender->in_turn += in_turn;
			receiver->in_turn += in_turn;
		}
		return;
	}
	ow_delays_add(sender->delays, late->delay_ns + ow_result_clock_added_ns(&sender->result), 1);
	ow_interval_results_raise_reach(results, late->delay_ns);
	sender->matched_ns = later(sender->matched_ns, late->sent_ns);
	if (results->delays < OW_INTERVAL_RESULTS_DELAYS)
		results->delay_ns[results->delays++] = late->delay_ns;
	const struct ow_interval_results_input *in = results->input;
	if (late->arrived || !in->newest_ns) {
		/* What arrived early may have overtaken packets of the interval in which it arrived. */
		sender->unordered = true;
		receiver->unordered |= late->arrived > 0;
		return;
	}
	if (in->newest_ns[late->place] != INT64_MIN)
		results->newest_ns = later(results->newest_ns, in->result.start_ns + in->newest_ns[late->place]);
	sender->reordered += late->sent_ns < results->newest_ns;
	results->newest_ns = later(results->newest_ns, late->sent_ns);
}

int ow_interval_results_create(uint32_t horizon, ow_interval_results_sink sink, void *arg,
                               struct ow_interval_results **ret_results)
{
	struct ow_interval_results *results = calloc(1, sizeof *results);
	if (!results)
		return -ENOMEM;
	*results = (struct ow_interval_results){.horizon = horizon,
	                                        .sink = sink,
	                                        .arg = arg,
	                                        .first = 1,
	                                        .next = 1,
	                                        .newest_ns = INT64_MIN,
	                                        .reach_ns = -1,
	                                        .ahead_ns = -1,
	                                        .before = OW_DOUBT_BEGUN,
	                                        .noted = INT64_MIN,
	                                        .begun_ns = INT64_MIN,
	                                        .shared_ns = INT64_MIN};
	int r = ow_late_packets_create(horizon, &results->late_packets);
	if (r == 0)
		r = ow_pool_create(&results->scratch);
	if (r == 0)
		r = ow_run_total_create(&results->total);
	if (r == 0) {
		results->open = calloc((size_t)horizon + 1, sizeof *results->open);
		results->missed = calloc(2 * ((size_t)horizon + 1), sizeof *results->missed);
		r = results->open && results->missed ? 0 : -ENOMEM;
	}
	if (r < 0) {
		ow_interval_results_free(results);
		return r;
	}
	ow_late_packets_listen(
		results->late_packets,
		&(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided, NULL, results});
	*ret_results = results;
	return 0;
}

int ow_interval_results_share(struct ow_interval_results *results, int64_t length_ns, ow_flow_event_sink sink)
{
	struct ow_scope_verdict_options options = {
		.length_ns = length_ns, .horizon = results->horizon, .secret = ow_random_secret(results)};
	int r = ow_scope_verdict_create(&options, &results->scope);
	results->event_sink = sink;
	results->event_length_ns = length_ns;
	if (r == 0)
		ow_late_packets_listen(results->late_packets,
		                       &(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided,
		                                                       ow_interval_results_on_judge, results});
	return r;
}

void ow_interval_results_one_of_several(struct ow_interval_results *results)
{
	results->one_of_several = true;
	ow_late_packets_listen(results->late_packets,
	                       &(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided,
	                                                       ow_interval_results_on_judge, results});
}

void ow_interval_results_free(struct ow_interval_results *results)
{
	if (!results)
		return;
	for (uint32_t i = 0; results->open && i <= results->horizon; i++) {
		free(results->open[i].sample);
		free(results->open[i].flow);
		free(results->open[i].in_scope);
		free(results->open[i].estimate);
		ow_delays_free(results->open[i].delays);
	}
	free(results->open);
	free(results->missed);
	ow_late_packets_free(results->late_packets);
	ow_scope_verdict_free(results->scope);
	ow_pool_free(results->scratch);
	ow_run_total_free(results->total);
	free(results);
}

size_t ow_interval_results_waits(const struct ow_interval_results *results, uint64_t name)
{
	return ow_late_packets_waits(results->late_packets, name);
}

/* Of identical packets that wait for the next interval, these can be late by the delays that were seen so far: the
 * shift of the receiver's intervals takes the usual part of a delay away, the rest may double. */
static int64_t late_since(const struct ow_interval_results *results)
{
	if (results->reach_ns < 0 || !results->started)
		return INT64_MIN;
	int64_t rest = results->reach_ns / 2 - results->shift_ns;
	return results->end_ns - (rest < 0 ? 0 : rest < INT64_MAX / 8 ? 2 * rest : INT64_MAX / 4);
}

size_t ow_interval_results_in_turn(const struct ow_interval_results *results, uint64_t name, size_t sent,
                                   size_t received)
{
	size_t waits = ow_late_packets_waits(results->late_packets, name);
	size_t likely = ow_late_packets_waits_since(results->late_packets, name, late_since(results));
	size_t surplus = received > sent ? received - sent : 0;
	surplus = surplus < waits ? surplus : waits;
	return likely > surplus ? likely : surplus;
}

void ow_interval_results_waiting_times(const struct ow_interval_results *results, uint64_t name, int64_t *ret_sent_ns)
{
	ow_late_packets_times(results->late_packets, name, ret_sent_ns);
}

size_t ow_interval_results_waiting(const struct ow_interval_results *results)
{
	return ow_late_packets_waiting(results->late_packets);
}

int64_t ow_interval_results_reach(const struct ow_interval_results *results)
{
	return results->reach_ns;
}

/* Reports an estimate unchanged: its mean already includes late packets. */
static void tell_estimate(struct ow_interval_results *results, const struct ow_interval_results_open *open, bool final)
{
	struct ow_interval_result result = *open->estimate, told;
	result.final = final;
	told = result;
	ow_result_clock_widen(&told);
	if (final)
		ow_run_total_add(results->total, &result, &told, false, NULL, 0, open->delays);
	results->sink(results->arg, &told);
}

/* The slot of the ring is free again. */
static void give_up(struct ow_interval_results_open *open)
{
	free(open->sample);
	free(open->flow);
	free(open->in_scope);
	*open = (struct ow_interval_results_open){.delays = open->delays};
}

static void close_oldest(struct ow_interval_results *results, const struct ow_late_packets_account *account)
{
	struct ow_interval_results_open *open = ow_interval_results_open_of(results, results->first++);
	struct ow_interval_result result;
	if (open->estimate) {
		tell_estimate(results, open, true);
	} else if (!open->quiet) {
		ow_interval_results_make_result(results, open, account, &result);
		ow_interval_results_explain_undecided(results, &result);
		ow_interval_results_explain_unlisted(open, &result);
		ow_interval_results_explain_in_turn(open, &result);
		ow_interval_results_explain_changed(results, open, &result);
		ow_interval_results_explain_missed(results, open, &result);
		ow_interval_results_explain_unshared(results, &result);
		ow_result_loss_doubted(&result.loss_ratio, (double)(open->in_turn + open->close + open->twice),
		                       (double)result.sent);
		ow_run_total_add(results->total, &open->result, &result, open->full, open->sample, open->samples,
		                 open->delays);
		results->sink(results->arg, &result);
	}
	results->blind -= ow_interval_results_is_blind(open);
	results->coarser -= open->coarser;
	results->before_shift = open->result.sample_shift;
	results->before = open->unknown                        ? OW_DOUBT_UNKNOWN
	                  : open->incomplete                   ? OW_DOUBT_INCOMPLETE
	                  : ow_interval_results_is_blind(open) ? OW_DOUBT_DROPS
	                                                       : OW_DOUBT_NONE;
	free(open->estimate);
	ow_delays_reset(open->delays);
	give_up(open);
}

/* Every n-th of those in time that no other is like, beside the late ones that are there. */
static void sample_delays(struct ow_interval_results *results, const struct ow_interval_results_input *in)
{
	size_t others = in->delays - in->identical;
	results->lates = results->delays;
	results->hasty = !in->result.ambiguous && !in->identical && in->result.matched <= in->only_as;
	size_t room = OW_INTERVAL_RESULTS_DELAYS - results->delays, step = room ? others / room + 1 : 1;
	for (size_t i = 0; i < others && results->delays < OW_INTERVAL_RESULTS_DELAYS; i += step)
		results->delay_ns[results->delays++] = in->delay_ns[i];
}

static void keep_delays(struct ow_interval_results *results, struct ow_interval_results_open *open,
                        const struct ow_interval_results_input *in)
{
	sample_delays(results, in);
	int64_t least = in->delays ? in->delay_ns[0] : 0, most = least;
	for (size_t i = 1; i < in->delays; i++) {
		least = in->delay_ns[i] < least ? in->delay_ns[i] : least;
		most = in->delay_ns[i] > most ? in->delay_ns[i] : most;
	}
	if (in->delays) {
		ow_interval_results_raise_reach(results, least);
		ow_interval_results_raise_reach(results, most);
	} else if (in->result.mean_ns.status != OW_VALUE_NONE) {
		const struct ow_interval_result *r = &in->result;
		double spread = r->stddev_ns.status == OW_VALUE_NONE ? 0 : r->stddev_ns.value;
		double mean_ns = r->mean_ns.value - (double)ow_result_clock_added_ns(r);
		/* Late packets alone, which are few, do not show how long packets take. */
		ow_interval_results_raise_reach(results, (int64_t)fmin(fmax(mean_ns + 3 * spread, -1e18), 1e18));
		ow_interval_results_raise_ahead(
			results, (int64_t)fmin(fmax(mean_ns - (double)in->shift_ns - 3 * spread, -1e18), 0));
	}
	int64_t added_ns = ow_result_clock_added_ns(&in->result);
	for (size_t i = 0; open->full && added_ns && i < in->delays; i++)
		ow_delays_add(open->delays, in->delay_ns[i] + added_ns, 1);
	if (open->full && !added_ns)
		ow_delays_add_many(open->delays, in->delay_ns, in->delays);
}

/* Prepares the slot of the ring for the next interval. On failure it is unchanged. */
static int occupy(struct ow_interval_results_open *open, const struct ow_interval_results_input *in)
{
	bool full = in->delays == in->result.matched - in->result.ambiguous;
	int64_t *sample = NULL;
	if (!open->delays && ow_delays_create(&open->delays) < 0)
		return -ENOMEM;
	if (!full && in->delays) {
		sample = malloc(in->delays * sizeof *sample);
		if (!sample)
			return -ENOMEM;
		for (size_t i = 0; i < in->delays; i++)
			sample[i] = in->delay_ns[i] + ow_result_clock_added_ns(&in->result);
		ow_sort_times(sample, in->delays);
	}
	*open = (struct ow_interval_results_open){
		.result = in->result,
		.quiet = in->quiet,
		.incomplete = in->incomplete,
		.changed = in->changed,
		.close = in->close,
		.twice = in->twice,
		.full = full,
		.sample = sample,
		.samples = full ? 0 : in->delays,
		.delays = open->delays,
	};
	if (!full && in->result.sample_shift)
		ow_sample_widen((double)(in->result.matched - in->result.ambiguous),
		                exp2(-(double)in->result.sample_shift), &open->result.mean_ns, &open->result.stddev_ns);
	return 0;
}

/*
 * Compares the packets of the next interval with those that wait. Returns 1 if the oldest interval is decided, with its
 * account.
 */
static int carry_on(struct ow_interval_results *results, struct ow_interval_results_open *open,
                    const struct ow_interval_results_input *in, struct ow_late_packets_account *ret_account)
{
	int64_t early_ns = ow_interval_results_early(results, &in->result, in->shift_ns);
	struct ow_late_packets_interval interval = {
		.start_ns = in->result.start_ns,
		.sent = in->result.sent,
		.received = in->result.received,
		.only_a = in->only_a,
		.only_b = in->only_b,
		.only_as = in->only_as,
		.only_bs = in->only_bs,
		.shift_ns = in->shift_ns,
		.early_ns = early_ns,
		.since_ns = late_since(results),
		.sent_ns = in->only_b_sent_ns,
		.repeats = in->repeats,
		.repeats_arg = in->repeats_arg,
		.early = (uint32_t)((early_ns + in->result.length_ns - 1) / in->result.length_ns)};
	results->unplaced_ns = ow_interval_results_unplaced_until(results, in);
	for (size_t i = 0; results->unplaced_ns && i < in->only_bs; i++)
		open->unplaced += ow_interval_results_is_unplaced(results, in->only_b + i);
	results->next++;
	open->coarser = results->started && in->result.sample_shift > results->last_shift;
	results->blind += ow_interval_results_is_blind(open);
	results->coarser += open->coarser;
	results->input = in;
	results->delays = 0;
	results->doubt = OW_DOUBT_NONE;
	results->end_ns = in->result.start_ns + in->result.length_ns;
	int r = ow_late_packets_step(results->late_packets, &interval, ret_account);
	if (r >= 0)
		ow_interval_results_note_flows(results);
	results->input = NULL;
	if (r < 0) {
		results->next--;
		results->blind -= ow_interval_results_is_blind(open);
		results->coarser -= open->coarser;
	}
	return r;
}

static int64_t last_matched(const struct ow_interval_results_input *in)
{
	int64_t last_ns = in->packets ? INT64_MIN : INT64_MAX;
	if (in->newest_ns && in->newest_at_end_ns != INT64_MIN)
		return in->result.start_ns + in->newest_at_end_ns;
	for (size_t i = 0; i < in->packets; i++) {
		if (in->is_matched[i])
			last_ns = later(last_ns, in->result.start_ns + in->packet[i].time_ns);
	}
	return last_ns;
}

/*
 * Adds the next interval, closes the oldest one if its time is over, and reports both. estimate: is taken over; may be
 * NULL.
 */
static int step(struct ow_interval_results *results, const struct ow_interval_results_input *in, bool unknown,
                struct ow_interval_result *estimate)
{
	struct ow_interval_results_open *open = ow_interval_results_open_of(results, results->next);
	struct ow_late_packets_account account;
	int r = occupy(open, in);
	if (r < 0)
		return r;
	open->unknown = unknown;
	open->shift_ns = in->shift_ns;
	open->matched_ns = last_matched(in);
	r = ow_interval_results_keep_flows(results, in, open);
	if (r < 0) {
		give_up(open);
		return r;
	}
	results->shift_ns = in->shift_ns;
	ow_interval_results_learn_shown(results, in);
	r = carry_on(results, open, in, &account);
	if (r < 0) {
		give_up(open);
		return r;
	}
	open->estimate = estimate;
	keep_delays(results, open, in);
	if (in->newest_ns && in->newest_at_end_ns != INT64_MIN)
		results->newest_ns = later(results->newest_ns, in->result.start_ns + in->newest_at_end_ns);
	if (results->begun_ns == INT64_MIN)
		results->begun_ns = in->result.start_ns;
	results->started = true;
	results->last_interval = in->result.interval;
	results->last_shift = in->result.sample_shift;
	if (in->begun_amid)
		doubt_begun(results);
	if (r == 1)
		close_oldest(results, &account);
	if (open->estimate) {
		tell_estimate(results, open, false);
	} else if (!in->quiet) {
		struct ow_interval_result result;
		ow_interval_results_make_result(results, open, NULL, &result);
		results->sink(results->arg, &result);
	}
	ow_interval_results_tell_events(results, &in->result);
	return 0;
}

static void make_unknown(struct ow_interval_results_input *input)
{
	struct ow_interval_result *r = &input->result;
	r->status = OW_RESULT_UNKNOWN;
	r->sent = r->received = r->matched = r->duplicated = r->ambiguous = r->samples = 0;
	r->exact = false;
	ow_result_clear_delays(r);
	r->unshared_sent = r->unshared_received = 0;
	input->only_as = input->only_bs = input->delays = input->identical = input->flows = 0;
	input->begun_amid = false;
	input->newest_ns = NULL;
}

/* Adds missing intervals: as many as packets can still wait for. */
static int bridge(struct ow_interval_results *results, const struct ow_interval_result *next)
{
	if (!results->started)
		return 0;
	if (next->interval <= results->last_interval)
		return -EINVAL;
	uint64_t missing = (uint64_t)next->interval - (uint64_t)results->last_interval - 1;
	uint64_t steps = missing <= results->horizon ? missing : results->horizon + UINT64_C(1);
	for (uint64_t i = 0; i < steps; i++) {
		struct ow_interval_results_input gap = {.result = *next, .quiet = true};
		gap.result.interval = results->last_interval + 1;
		gap.result.start_ns = results->end_ns;
		make_unknown(&gap);
		int r = step(results, &gap, true, NULL);
		if (r < 0)
			return r;
	}
	ow_run_total_gap(results->total, missing);
	return 0;
}

int ow_interval_results_step(struct ow_interval_results *results, const struct ow_interval_results_input *input)
{
	struct ow_interval_results_input in = *input;
	if (in.result.ambiguous > in.result.matched || in.delays > in.result.matched - in.result.ambiguous ||
	    in.identical > in.delays)
		return -EINVAL;
	int r = bridge(results, &in.result);
	if (r < 0)
		return r;
	ow_interval_results_explain_drops(&in.result);
	r = step(results, &in, false, NULL);
	if (r != -ENOSPC)
		return r;
	char text[OW_RESULT_CAUSE];
	snprintf(text, sizeof text, ow_cause_too_many_differ, OW_LATE_PACKETS_PENDING_MAX);
	ow_result_add_cause(&in.result, text);
	return ow_interval_results_unknown(results, &in.result, in.quiet);
}

int ow_interval_results_unknown(struct ow_interval_results *results, const struct ow_interval_result *result,
                                bool quiet)
{
	struct ow_interval_results_input in = {.result = *result, .quiet = quiet};
	int r = bridge(results, result);
	if (r < 0)
		return r;
	make_unknown(&in);
	return step(results, &in, true, NULL);
}

int ow_interval_results_estimated(struct ow_interval_results *results, const struct ow_interval_result *result)
{
	struct ow_interval_results_input in = {.result = *result};
	int r = bridge(results, result);
	if (r < 0)
		return r;
	struct ow_interval_result *estimate = malloc(sizeof *estimate);
	if (!estimate)
		return -ENOMEM;
	*estimate = *result;
	make_unknown(&in);
	r = step(results, &in, true, estimate);
	if (r < 0)
		free(estimate);
	return r;
}

void ow_interval_results_distrust(struct ow_interval_results *results)
{
	results->changed = true;
}

int ow_interval_results_finish(struct ow_interval_results *results)
{
	struct ow_late_packets_account account;
	results->doubt = OW_DOUBT_NONE;
	while (ow_late_packets_flush(results->late_packets, &account) == 1) {
		close_oldest(results, &account);
		results->doubt = OW_DOUBT_NONE;
	}
	/* Twice, because the first call leaves events that may still grow. */
	ow_interval_results_tell_events(results, NULL);
	ow_interval_results_tell_events(results, NULL);
	/* More intervals may come after a clock step, or with another identity. */
	results->newest_ns = INT64_MIN;
	results->begun_ns = INT64_MIN;
	results->changed = false;
	results->recent = (struct ow_interval_results_recent){0};
	return 0;
}

void ow_interval_results_missed(struct ow_interval_results *results, int64_t interval, uint64_t missed, uint64_t of)
{
	*ow_interval_results_missed_of(results, interval) = (struct ow_interval_results_missed){interval, missed, of};
}

void ow_interval_results_add_bytes(struct ow_interval_results *results, int64_t interval, uint64_t bytes)
{
	for (uint64_t number = results->first; number < results->next; number++) {
		struct ow_interval_results_open *open = ow_interval_results_open_of(results, number);
		struct ow_interval_result *r = open->estimate ? open->estimate : &open->result;
		if (r->interval == interval)
			r->cost.bytes += bytes;
	}
}

size_t ow_interval_results_usual_delays(const struct ow_interval_results *results,
                                        int64_t ret_delay_ns[OW_INTERVAL_RESULTS_DELAYS])
{
	size_t count = results->hasty ? results->lates : results->delays;
	memcpy(ret_delay_ns, results->delay_ns, count * sizeof *ret_delay_ns);
	return count;
}

size_t ow_interval_results_delays(const struct ow_interval_results *results,
                                  int64_t ret_delay_ns[OW_INTERVAL_RESULTS_DELAYS])
{
	memcpy(ret_delay_ns, results->delay_ns, results->delays * sizeof *ret_delay_ns);
	return results->delays;
}

void ow_run_total(const struct ow_interval_results *results, struct ow_interval_result *ret_total)
{
	ow_run_total_result(results->total, ret_total);
}
