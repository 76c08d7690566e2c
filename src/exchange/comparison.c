/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange/comparison.h"
#include "exchange/exchange_scope.h"

#include "estimate/sample.h"
#include "result/cause.h"
#include "result/result_clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ow_comparison_request(struct ow_comparison *c, enum ow_stage stage, struct ow_message *message)
{
	uint8_t *frame;
	size_t size;
	message->lane = c->x->options.lane;
	message->interval = c->slot.interval;
	int r = ow_message_encode(message, &frame, &size, NULL);
	if (r < 0)
		return r;
	c->x->sinks.send(c->x->sinks.arg, frame, size);
	free(c->request);
	c->request = frame;
	c->request_size = size;
	c->requested_ns = ow_exchange_steady_ns(c->x);
	c->cost.bytes += size + 4;
	c->cost.round_trips++;
	c->stage = stage;
	return 0;
}

int ow_comparison_ask(struct ow_comparison *c, enum ow_stage stage, const struct ow_message_ask *ask)
{
	struct ow_message m = {.type = OW_MESSAGE_ASK, .ask = *ask};
	c->ask = *ask;
	return ow_comparison_request(c, stage, &m);
}

void ow_comparison_result(const struct ow_comparison *c, struct ow_interval_result *ret_result)
{
	struct ow_interval_result *r = ret_result;
	const struct ow_interval_packets *packets = c->slot.packets;
	ow_exchange_blank(c->x, c->slot.interval, r);
	r->cost = c->cost;
	/* Includes the work since this call began. */
	uint64_t now_ns = (uint64_t)c->x->now_ns + (uint64_t)(ow_exchange_steady_ns(c->x) - c->x->entered_ns);
	r->cost.ready_ns = (int64_t)(now_ns - (uint64_t)r->start_ns - (uint64_t)r->length_ns);
	if (packets) {
		r->sent = packets->count + c->asides;
		r->total_sent = packets->total_packets;
		r->bytes = packets->total_bytes;
		r->ring_drops_from = packets->ring_drops;
		r->missed = packets->missed;
		r->unreadable = packets->unreadable;
		r->sample_shift = packets->sample_shift;
		r->clock_from = c->slot.clock;
	}
	if (c->pushed) {
		r->received = c->theirs.packets;
		r->unshared_received = c->theirs.unshared;
		r->total_received = c->theirs.total_packets;
		r->ring_drops_to = c->theirs.ring_drops;
		r->unreadable += c->theirs.unreadable;
		r->clock_to = c->theirs.clock;
	}
}

/* Times that packets of the receiver's interval can have: it is shifted, and has packets of intervals before it. */
static void range_of(const struct ow_comparison *c, int64_t *ret_first_ns, int64_t *ret_end_ns)
{
	int64_t held_ns = ow_exchange_has_keys(c->x) ? ow_exchange_hold(c->x) * c->x->options.length_ns : 0;
	/* The shift may have been another one when held packets arrived. */
	*ret_first_ns = (held_ns && c->theirs.shift_ns > 0 ? 0 : c->theirs.shift_ns) - held_ns;
	*ret_end_ns = c->x->options.length_ns + c->theirs.end_shift_ns;
}

struct ow_delay_window ow_comparison_window(const struct ow_comparison *c)
{
	int64_t first_ns, end_ns;
	range_of(c, &first_ns, &end_ns);
	return ow_delay_window_of(first_ns - c->x->options.length_ns, end_ns);
}

/* Both times of a packet are within the interval: sums that contradict this are forged. */
static bool made_up(const struct ow_comparison *c, const struct ow_value *mean_ns)
{
	int64_t first_ns, end_ns;
	range_of(c, &first_ns, &end_ns);
	double least = (double)(first_ns - c->x->options.length_ns), most = (double)end_ns;
	return mean_ns->status != OW_VALUE_NONE && !(mean_ns->value >= least && mean_ns->value <= most);
}

/* The counts of both points and the numbers of an estimate. */
static void begin_result(struct ow_comparison *c, const struct ow_estimate *estimate)
{
	struct ow_interval_result *r = &c->outcome.result;
	ow_comparison_result(c, r);
	if (made_up(c, &estimate->mean_ns)) {
		const struct ow_value none = {.reason = OW_REASON_PEER_TIMES_IMPOSSIBLE};
		r->mean_ns = r->stddev_ns = none;
		for (int q = 0; q < OW_QUANTILES; q++)
			r->quantile_ns[q] = none;
		return;
	}
	r->samples = estimate->useful;
	r->mean_ns = estimate->mean_ns;
	r->stddev_ns = estimate->stddev_ns;
	memcpy(r->quantile_ns, estimate->quantile_ns, sizeof r->quantile_ns);
}

void ow_comparison_measured(struct ow_comparison *c, const struct ow_estimate *estimate)
{
	struct ow_outcome *o = &c->outcome;
	size_t sorted = 1;
	while (sorted < o->only_bs && o->only_b[sorted - 1].time_ns <= o->only_b[sorted].time_ns)
		sorted++;
	/* Packets of one time keep the order that they have. */
	if (sorted < o->only_bs)
		ow_sightings_sort(o->only_b, o->only_bs);
	begin_result(c, estimate);
	o->result.status = OW_RESULT_MEASURED;
	o->result.matched = o->result.sent - o->only_as - c->asides;
	o->differences = o->only_as + o->only_bs;
	c->stage = OW_STAGE_READY;
}

/*
 * It is not known which packets are at one point only, but their number is: the loss is an estimate that includes late
 * packets.
 */
void ow_comparison_estimated(struct ow_comparison *c, const struct ow_estimate *estimate, const char *cause)
{
	struct ow_outcome *o = &c->outcome;
	struct ow_interval_result *r = &o->result;
	/* Lost packets cannot be distinguished from those that take another path. */
	if (c->x->options.shared || c->x->options.one_of_several) {
		ow_comparison_unknown(c, ow_cause_differences_unshared);
		return;
	}
	begin_result(c, estimate);
	uint64_t least = r->sent > r->received ? r->sent - r->received : 0, lost = least;
	if (estimate->lost.status != OW_VALUE_NONE)
		lost = ow_packets_of(estimate->lost.value + 0.5);
	lost = lost < least ? least : lost > r->sent ? r->sent : lost;
	r->lost = lost;
	r->matched = r->sent - lost;
	if (r->sample_shift)
		ow_sample_widen((double)r->matched, exp2(-(double)r->sample_shift), &r->mean_ns, &r->stddev_ns);
	r->extra = r->received - r->matched;
	r->loss_ratio = estimate->loss_ratio;
	r->min_ns = r->max_ns = (struct ow_value){.reason = OW_REASON_DELAYS_NOT_ALL_KNOWN};
	double total = ow_result_packets_sent(r);
	r->coverage = total > 0 ? fmin(1, (double)r->samples / total) : 0;
	r->status = OW_RESULT_PARTIAL;
	snprintf(r->cause, sizeof r->cause, "%s", cause);
	o->differences = r->lost + r->extra;
	o->estimated = true;
	c->stage = OW_STAGE_READY;
}

void ow_comparison_unknown(struct ow_comparison *c, const char *cause)
{
	c->stage = OW_STAGE_UNKNOWN;
	c->outcome.estimated = false;
	ow_comparison_result(c, &c->outcome.result);
	snprintf(c->outcome.result.cause, sizeof c->outcome.result.cause, "%s", cause);
}

uint64_t ow_comparison_base(const struct ow_comparison *c, uint64_t id)
{
	const struct ow_interval_packets *packets = c->slot.packets;
	const struct ow_copy *copy = packets->copies ? ow_interval_packets_copy(packets, id) : NULL;
	return copy ? copy->base_id : id;
}

bool ow_comparison_within(const struct ow_comparison *c, const int64_t *time_ns, uint32_t count, int64_t step_ns)
{
	int64_t first_ns, end_ns;
	range_of(c, &first_ns, &end_ns);
	for (uint32_t i = 0; i < count; i++) {
		if (time_ns[i] <= first_ns - step_ns || time_ns[i] >= end_ns)
			return false;
	}
	return true;
}

void ow_comparison_correct(struct ow_comparison *c)
{
	struct ow_outcome *o = &c->outcome;
	struct ow_interval_result *r = &o->result;
	struct ow_exchange_clock clock = {.samples = o->sample, .count = o->samples};
	if (!c->x->sinks.clock)
		return;
	c->x->sinks.clock(c->x->sinks.arg, &clock, r);
	o->floor = clock.floor;
	double added_ns = (double)ow_result_clock_added_ns(r);
	ow_value_shift(&r->mean_ns, added_ns);
	for (int q = 0; q < OW_QUANTILES; q++)
		ow_value_shift(&r->quantile_ns[q], added_ns);
}

void ow_comparison_done(struct ow_comparison *c)
{
	free(c->outcome.sample);
	free(c->request);
	ow_scope_answer_done(&c->answer);
	free(c->in_scope);
	free(c->aside);
	free(c->outcome.only_a);
	free(c->outcome.only_b);
	free(c->outcome.copy);
	free(c->outcome.only_b_sent_ns);
	free(c->outcome.delay.ns);
	free(c->outcome.newest_ns);
}
