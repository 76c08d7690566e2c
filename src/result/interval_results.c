/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of intervals in order, provisional and final. reconcile/late_packets decides what is late; here each interval that
 * is still open keeps its result and its delays, as a histogram where all are known (an array of every packet's delay
 * would take megabytes an interval), else as the sample that it came with and a histogram of the late ones.
 */
#include "result/interval_results_private.h"

#include "base/random.h"

#include "estimate/sample.h"
#include "result/cause.h"
#include "result/result_clock.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(OW_INTERVAL_RESULTS_NO_TIME == OW_LATE_PACKETS_NO_TIME,
              "handed on"); /* NOLINT(misc-redundant-expression) */

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* A packet arrived in another interval. */
static void on_late(void *arg, const struct ow_late_packets_late *late)
{
	struct ow_interval_results *settle = arg;
	uint64_t newest = settle->next - 1;
	struct ow_interval_results_open *sender = ow_interval_results_open_of(settle, newest - late->age);
	sender->late++;
	struct ow_interval_results_open *receiver = ow_interval_results_open_of(settle, newest - late->arrived);
	receiver->late_received++;
	receiver->strange -= settle->scope && !late->arrival_flow;
	ow_interval_results_note_late(settle, sender, late->flow, late->sent_ns);
	if (!late->arrived && ow_interval_results_is_unplaced(settle, settle->input->only_b + late->place))
		receiver->unplaced--;
	if (late->alike) {
		sender->alike++;
		/* Nothing tells how long packets take: each of these may be lost, and another one late. */
		bool in_turn = !late->timed && settle->reach_ns < 0;
		sender->in_turn += in_turn;
		receiver->in_turn += in_turn;
		return;
	}
	ow_delays_add(sender->delays, late->delay_ns + ow_result_clock_added_ns(&sender->result), 1);
	ow_interval_results_raise_reach(settle, late->delay_ns);
	if (settle->delays < OW_INTERVAL_RESULTS_DELAYS)
		settle->delay_ns[settle->delays++] = late->delay_ns;
	const struct ow_interval_results_input *in = settle->input;
	if (late->arrived || !in->newest_ns) {
		/* What arrived early may have overtaken packets of the interval in which it arrived. */
		sender->unordered = true;
		receiver->unordered |= late->arrived > 0;
		return;
	}
	if (in->newest_ns[late->place] != INT64_MIN)
		settle->newest_ns = later(settle->newest_ns, in->result.start_ns + in->newest_ns[late->place]);
	sender->reordered += late->sent_ns < settle->newest_ns;
	settle->newest_ns = later(settle->newest_ns, late->sent_ns);
}

int ow_interval_results_create(uint32_t horizon, ow_interval_results_sink sink, void *arg,
                               struct ow_interval_results **ret_settle)
{
	struct ow_interval_results *settle = calloc(1, sizeof *settle);
	if (!settle)
		return -ENOMEM;
	*settle = (struct ow_interval_results){.horizon = horizon,
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
	int r = ow_late_packets_create(horizon, &settle->carry);
	if (r == 0)
		r = ow_pool_create(&settle->scratch);
	if (r == 0)
		r = ow_run_total_create(&settle->total);
	if (r == 0) {
		settle->open = calloc((size_t)horizon + 1, sizeof *settle->open);
		r = settle->open ? 0 : -ENOMEM;
	}
	if (r < 0) {
		ow_interval_results_free(settle);
		return r;
	}
	ow_late_packets_listen(settle->carry, &(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided,
	                                                                      NULL, settle});
	*ret_settle = settle;
	return 0;
}

int ow_interval_results_share(struct ow_interval_results *settle, int64_t length_ns, ow_flow_event_sink sink)
{
	struct ow_scope_verdict_options options = {
		.length_ns = length_ns, .horizon = settle->horizon, .secret = ow_random_secret(settle)};
	int r = ow_scope_verdict_create(&options, &settle->scope);
	settle->event_sink = sink;
	settle->event_length_ns = length_ns;
	if (r == 0)
		ow_late_packets_listen(settle->carry,
		                       &(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided,
		                                                       ow_interval_results_on_judge, settle});
	return r;
}

void ow_interval_results_one_of_several(struct ow_interval_results *settle)
{
	settle->one_of_several = true;
	ow_late_packets_listen(settle->carry, &(struct ow_late_packets_calls){on_late, ow_interval_results_on_undecided,
	                                                                      ow_interval_results_on_judge, settle});
}

void ow_interval_results_free(struct ow_interval_results *settle)
{
	if (!settle)
		return;
	for (uint32_t i = 0; settle->open && i <= settle->horizon; i++) {
		free(settle->open[i].sample);
		free(settle->open[i].flow);
		free(settle->open[i].in_scope);
		free(settle->open[i].estimate);
		ow_delays_free(settle->open[i].delays);
	}
	free(settle->open);
	ow_late_packets_free(settle->carry);
	ow_scope_verdict_free(settle->scope);
	ow_pool_free(settle->scratch);
	ow_run_total_free(settle->total);
	free(settle);
}

size_t ow_interval_results_waits(const struct ow_interval_results *settle, uint64_t name)
{
	return ow_late_packets_waits(settle->carry, name);
}

/* Of identical packets that wait for the next interval, these can be late by the delays that were seen so far: the
 * shift of the receiver's intervals takes the usual part of a delay away, the rest may double. */
static int64_t late_since(const struct ow_interval_results *settle)
{
	if (settle->reach_ns < 0 || !settle->started)
		return INT64_MIN;
	int64_t rest = settle->reach_ns / 2 - settle->shift_ns;
	return settle->end_ns - (rest < 0 ? 0 : rest < INT64_MAX / 8 ? 2 * rest : INT64_MAX / 4);
}

size_t ow_interval_results_in_turn(const struct ow_interval_results *settle, uint64_t name, size_t sent,
                                   size_t received)
{
	size_t waits = ow_late_packets_waits(settle->carry, name);
	size_t likely = ow_late_packets_waits_since(settle->carry, name, late_since(settle));
	size_t surplus = received > sent ? received - sent : 0;
	surplus = surplus < waits ? surplus : waits;
	return likely > surplus ? likely : surplus;
}

size_t ow_interval_results_waiting(const struct ow_interval_results *settle)
{
	return ow_late_packets_waiting(settle->carry);
}

/* Reports an estimate unchanged: its mean already includes late packets. */
static void tell_estimate(struct ow_interval_results *settle, const struct ow_interval_results_open *open, bool final)
{
	struct ow_interval_result result = *open->estimate;
	result.final = final;
	if (final)
		ow_run_total_add(settle->total, &result, &result, false, NULL, 0, open->delays);
	ow_result_clock_widen(&result);
	settle->sink(settle->arg, &result);
}

/* The slot of the ring is free again. */
static void give_up(struct ow_interval_results_open *open)
{
	free(open->sample);
	free(open->flow);
	free(open->in_scope);
	*open = (struct ow_interval_results_open){.delays = open->delays};
}

static void close_oldest(struct ow_interval_results *settle, const struct ow_late_packets_account *account)
{
	struct ow_interval_results_open *open = ow_interval_results_open_of(settle, settle->first++);
	struct ow_interval_result result;
	if (open->estimate) {
		tell_estimate(settle, open, true);
	} else if (!open->quiet) {
		ow_interval_results_make_result(settle, open, account, &result);
		ow_interval_results_explain_undecided(settle, &result);
		ow_interval_results_explain_unlisted(open, &result);
		ow_interval_results_explain_in_turn(open, &result);
		ow_interval_results_explain_changed(settle, open, &result);
		ow_interval_results_explain_unshared(settle, &result);
		ow_run_total_add(settle->total, &open->result, &result, open->full, open->sample, open->samples,
		                 open->delays);
		settle->sink(settle->arg, &result);
	}
	settle->blind -= ow_interval_results_is_blind(open);
	settle->coarser -= open->coarser;
	settle->before_shift = open->result.sample_shift;
	settle->before = open->unknown                        ? OW_DOUBT_UNKNOWN
	                 : open->incomplete                   ? OW_DOUBT_INCOMPLETE
	                 : ow_interval_results_is_blind(open) ? OW_DOUBT_DROPS
	                                                      : OW_DOUBT_NONE;
	free(open->estimate);
	ow_delays_reset(open->delays);
	give_up(open);
}

/* Every n-th of those in time, beside the late ones that are there. */
static void sample_delays(struct ow_interval_results *settle, const struct ow_interval_results_input *in)
{
	size_t room = OW_INTERVAL_RESULTS_DELAYS - settle->delays, step = room ? in->delays / room + 1 : 1;
	for (size_t i = 0; i < in->delays && settle->delays < OW_INTERVAL_RESULTS_DELAYS; i += step)
		settle->delay_ns[settle->delays++] = in->delay_ns[i];
}

static void keep_delays(struct ow_interval_results *settle, struct ow_interval_results_open *open,
                        const struct ow_interval_results_input *in)
{
	sample_delays(settle, in);
	int64_t least = in->delays ? in->delay_ns[0] : 0, most = least;
	for (size_t i = 1; i < in->delays; i++) {
		least = in->delay_ns[i] < least ? in->delay_ns[i] : least;
		most = in->delay_ns[i] > most ? in->delay_ns[i] : most;
	}
	if (in->delays) {
		ow_interval_results_raise_reach(settle, least);
		ow_interval_results_raise_reach(settle, most);
	} else if (in->result.mean_ns.status != OW_VALUE_NONE) {
		const struct ow_interval_result *r = &in->result;
		double spread = r->stddev_ns.status == OW_VALUE_NONE ? 0 : r->stddev_ns.value;
		double mean_ns = r->mean_ns.value - (double)ow_result_clock_added_ns(r) - (double)in->shift_ns;
		ow_interval_results_raise_ahead(settle, (int64_t)fmin(fmax(mean_ns - 3 * spread, -1e18), 0));
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
	}
	*open = (struct ow_interval_results_open){
		.result = in->result,
		.quiet = in->quiet,
		.incomplete = in->incomplete,
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
static int carry_on(struct ow_interval_results *settle, struct ow_interval_results_open *open,
                    const struct ow_interval_results_input *in, struct ow_late_packets_account *ret_account)
{
	struct ow_late_packets_interval interval = {
		in->result.start_ns, in->result.sent, in->result.received,
		in->only_a,          in->only_b,      in->only_as,
		in->only_bs,         in->shift_ns,    ow_interval_results_early(settle, &in->result),
		late_since(settle)};
	settle->unplaced_ns = ow_interval_results_unplaced_until(settle, &in->result);
	for (size_t i = 0; settle->unplaced_ns && i < in->only_bs; i++)
		open->unplaced += ow_interval_results_is_unplaced(settle, in->only_b + i);
	settle->next++;
	open->coarser = settle->started && in->result.sample_shift > settle->last_shift;
	settle->blind += ow_interval_results_is_blind(open);
	settle->coarser += open->coarser;
	settle->input = in;
	settle->delays = 0;
	settle->doubt = OW_DOUBT_NONE;
	settle->end_ns = in->result.start_ns + in->result.length_ns;
	int r = ow_late_packets_step(settle->carry, &interval, ret_account);
	if (r >= 0)
		ow_interval_results_note_flows(settle);
	settle->input = NULL;
	if (r < 0) {
		settle->next--;
		settle->blind -= ow_interval_results_is_blind(open);
		settle->coarser -= open->coarser;
	}
	return r;
}

/*
 * Adds the next interval, closes the oldest one if its time is over, and reports both. estimate: is taken over; may be
 * NULL.
 */
static int step(struct ow_interval_results *settle, const struct ow_interval_results_input *in, bool unknown,
                struct ow_interval_result *estimate)
{
	struct ow_interval_results_open *open = ow_interval_results_open_of(settle, settle->next);
	struct ow_late_packets_account account;
	int r = occupy(open, in);
	if (r < 0)
		return r;
	open->unknown = unknown;
	r = ow_interval_results_keep_flows(settle, in, open);
	if (r < 0) {
		give_up(open);
		return r;
	}
	settle->shift_ns = in->shift_ns;
	ow_interval_results_learn_shown(settle, in);
	r = carry_on(settle, open, in, &account);
	if (r < 0) {
		give_up(open);
		return r;
	}
	open->estimate = estimate;
	keep_delays(settle, open, in);
	if (in->newest_ns && in->newest_at_end_ns != INT64_MIN)
		settle->newest_ns = later(settle->newest_ns, in->result.start_ns + in->newest_at_end_ns);
	if (settle->begun_ns == INT64_MIN)
		settle->begun_ns = in->result.start_ns;
	settle->started = true;
	settle->last_interval = in->result.interval;
	settle->last_shift = in->result.sample_shift;
	if (r == 1)
		close_oldest(settle, &account);
	if (open->estimate) {
		tell_estimate(settle, open, false);
	} else if (!in->quiet) {
		struct ow_interval_result result;
		ow_interval_results_make_result(settle, open, NULL, &result);
		settle->sink(settle->arg, &result);
	}
	ow_interval_results_tell_events(settle, &in->result);
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
	input->only_as = input->only_bs = input->delays = input->flows = 0;
	input->newest_ns = NULL;
}

/* Adds missing intervals: as many as packets can still wait for. */
static int bridge(struct ow_interval_results *settle, const struct ow_interval_result *next)
{
	if (!settle->started)
		return 0;
	if (next->interval <= settle->last_interval)
		return -EINVAL;
	uint64_t missing = (uint64_t)next->interval - (uint64_t)settle->last_interval - 1;
	uint64_t steps = missing <= settle->horizon ? missing : settle->horizon + UINT64_C(1);
	for (uint64_t i = 0; i < steps; i++) {
		struct ow_interval_results_input gap = {.result = *next, .quiet = true};
		gap.result.interval = settle->last_interval + 1;
		gap.result.start_ns = settle->end_ns;
		make_unknown(&gap);
		int r = step(settle, &gap, true, NULL);
		if (r < 0)
			return r;
	}
	ow_run_total_gap(settle->total, missing);
	return 0;
}

int ow_interval_results_step(struct ow_interval_results *settle, const struct ow_interval_results_input *input)
{
	struct ow_interval_results_input in = *input;
	if (in.result.ambiguous > in.result.matched || in.delays > in.result.matched - in.result.ambiguous)
		return -EINVAL;
	int r = bridge(settle, &in.result);
	if (r < 0)
		return r;
	ow_interval_results_explain_drops(&in.result);
	r = step(settle, &in, false, NULL);
	if (r != -ENOSPC)
		return r;
	char text[OW_RESULT_CAUSE];
	snprintf(text, sizeof text, ow_cause_too_many_differ, OW_LATE_PACKETS_PENDING_MAX);
	ow_interval_results_add_cause(&in.result, text);
	return ow_interval_results_unknown(settle, &in.result, in.quiet);
}

int ow_interval_results_unknown(struct ow_interval_results *settle, const struct ow_interval_result *result, bool quiet)
{
	struct ow_interval_results_input in = {.result = *result, .quiet = quiet};
	int r = bridge(settle, result);
	if (r < 0)
		return r;
	make_unknown(&in);
	return step(settle, &in, true, NULL);
}

int ow_interval_results_estimated(struct ow_interval_results *settle, const struct ow_interval_result *result)
{
	struct ow_interval_results_input in = {.result = *result};
	int r = bridge(settle, result);
	if (r < 0)
		return r;
	struct ow_interval_result *estimate = malloc(sizeof *estimate);
	if (!estimate)
		return -ENOMEM;
	*estimate = *result;
	make_unknown(&in);
	r = step(settle, &in, true, estimate);
	if (r < 0)
		free(estimate);
	return r;
}

void ow_interval_results_distrust(struct ow_interval_results *settle)
{
	settle->changed = true;
}

int ow_interval_results_finish(struct ow_interval_results *settle)
{
	struct ow_late_packets_account account;
	settle->doubt = OW_DOUBT_NONE;
	while (ow_late_packets_flush(settle->carry, &account) == 1) {
		close_oldest(settle, &account);
		settle->doubt = OW_DOUBT_NONE;
	}
	/* Twice, because the first call leaves events that may still grow. */
	ow_interval_results_tell_events(settle, NULL);
	ow_interval_results_tell_events(settle, NULL);
	/* More intervals may come after a clock step, or with another identity. */
	settle->newest_ns = INT64_MIN;
	settle->begun_ns = INT64_MIN;
	settle->changed = false;
	settle->recent = (struct ow_interval_results_recent){0};
	return 0;
}

size_t ow_interval_results_delays(const struct ow_interval_results *settle,
                                  int64_t ret_delay_ns[OW_INTERVAL_RESULTS_DELAYS])
{
	memcpy(ret_delay_ns, settle->delay_ns, settle->delays * sizeof *ret_delay_ns);
	return settle->delays;
}

void ow_run_total(const struct ow_interval_results *settle, struct ow_interval_result *ret_total)
{
	ow_run_total_result(settle->total, ret_total);
}
