/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender of a lane: the point where its packets come from. It compares, and reports results. Several intervals are
 * in progress at a time, but each names its packets only when those before it know which they lack: a packet that is
 * identical to one that still waits is ambiguous, and its time is asked for (exchange_identical.h).
 */
#include "estimate/interval_shift.h"
#include "exchange/exchange_identical.h"
#include "exchange/exchange_scope.h"
#include "exchange/method.h"
#include "result/cause.h"
#include "result/result_clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A result as it was sent, until the other point has confirmed it. */
struct ow_told {
	int64_t interval;
	bool unknown; /* the other point would find this out itself */
	uint8_t *frame;
	size_t size;
};

struct ow_sender {
	struct ow_exchange x;
	bool met; /* a filter that names the link layer has matched packets at both points */
	struct ow_missing missing;
	struct ow_forecast forecast;
	int64_t next_settled;                 /* intervals before this one have their provisional results */
	struct ow_comparison *settling;       /* whose result is being reported */
	int64_t cut_shift_ns;                 /* by which the receiver should shift its intervals */
	int64_t least_delay_ns;               /* by the clocks as they are, or OW_INTERVAL_SHIFT_FIRST */
	struct ow_scope_announcer *announcer; /* NULL: all packets are compared */
	struct ow_sender_quiet quiet;
	bool final;           /* everything has been reported */
	struct ow_told *tell; /* oldest first */
	size_t tells;
	/* The provisional result of an interval in which nobody saw anything, that is not told yet, */
	struct ow_interval_result nothing;
	bool has_nothing;
	uint32_t untold; /* and so many directly before it like it */
};

static struct ow_sender *sender_of(struct ow_exchange *x)
{
	return (struct ow_sender *)x;
}

static struct ow_comparison *comparison_of(struct ow_slot *slot)
{
	return (struct ow_comparison *)slot;
}

static void advance(struct ow_exchange *x);

/* The cause of an interval that could not be compared. */
static const char *failure(int error)
{
	return error == -ENOMEM ? ow_cause_out_of_memory : strerror(-error);
}

/* -- results ------------------------------------------------------------------------------------------------------ */

/* The other point has the final results of all intervals before this one. */
static void confirm(struct ow_sender *s, int64_t settled)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->tells; i++) {
		if (s->tell[i].interval < settled)
			free(s->tell[i].frame);
		else
			s->tell[kept++] = s->tell[i];
	}
	s->tells = kept;
}

/* Removes what may have to be sent again of one interval: the oldest, unknown ones first. A final result is no use
 * without the provisional one that it changes. */
static void forget_one(struct ow_sender *s)
{
	size_t at = 0, kept = 0;
	while (at < s->tells && !s->tell[at].unknown)
		at++;
	int64_t interval = s->tell[at < s->tells ? at : 0].interval;
	for (size_t i = 0; i < s->tells; i++) {
		if (s->tell[i].interval == interval)
			free(s->tell[i].frame);
		else
			s->tell[kept++] = s->tell[i];
	}
	s->tells = kept;
}

/* The first result of the interval that may have to be sent again, or NULL. */
static const struct ow_told *told_of(const struct ow_sender *s, int64_t interval)
{
	for (size_t i = 0; i < s->tells; i++) {
		if (s->tell[i].interval == interval)
			return &s->tell[i];
	}
	return NULL;
}

static size_t tells_max(const struct ow_sender *s)
{
	size_t ahead =
		s->x.options.intervals_max > OW_EXCHANGE_WINDOW ? s->x.options.intervals_max : OW_EXCHANGE_WINDOW;
	return 2 * (ahead + s->x.options.horizon + 2);
}

/* Nobody saw anything in this interval: nothing of that can change, so the result is told once. */
static bool is_nothing(const struct ow_interval_result *r)
{
	return r->status == OW_RESULT_MEASURED && !r->sent && !r->received && !r->total_sent && !r->total_received &&
	       !r->unshared_sent && !r->unshared_received && !r->ring_drops_from && !r->ring_drops_to && !r->unreadable;
}

/* Encodes what is new in a result. Its cost is that before this message, which the other point adds. */
static int encode_result(struct ow_sender *s, const struct ow_interval_result *result, const struct ow_outcome *outcome,
                         const struct ow_told *provisional, uint8_t **ret_frame, size_t *ret_size)
{
	bool nothing = is_nothing(result);
	struct ow_message before;
	struct ow_message m = {.type = OW_MESSAGE_RESULT, .lane = s->x.options.lane, .interval = result->interval};
	ow_result_to_message(result, &m.told.result);
	if (outcome) {
		m.told.differences = outcome->differences;
		m.told.floor = outcome->floor;
	}
	m.told.cut_shift_ns = s->cut_shift_ns;
	m.told.idle = nothing ? s->untold : 0;
	m.told.result.final |= nothing;
	int r = provisional ? ow_message_decode(provisional->frame, provisional->size, &before, NULL) : 0;
	if (r < 0)
		return r;
	ow_message_choose(&m.told, provisional ? &before.told.result : NULL);
	return ow_message_encode(&m, ret_frame, ret_size, NULL);
}

/* outcome: of the interval whose result is given for the first time; else NULL. */
static void tell(struct ow_sender *s, struct ow_interval_result *result, const struct ow_outcome *outcome)
{
	const struct ow_told *provisional = result->final ? told_of(s, result->interval) : NULL;
	uint8_t *frame;
	size_t size;
	if (encode_result(s, result, outcome, provisional, &frame, &size) < 0)
		return;
	result->cost.bytes += size + 4;
	ow_interval_results_add_bytes(s->missing.results, result->interval, size + 4);
	s->x.sinks.send(s->x.sinks.arg, frame, size);
	if (s->tells == tells_max(s))
		forget_one(s);
	s->tell[s->tells++] = (struct ow_told){result->interval, result->status == OW_RESULT_UNKNOWN, frame, size};
}

/* Whether one message can tell both: the first had none of its own, and they differ in nothing but the duration of the
 * work and the errors of the clocks. */
static bool is_like(const struct ow_interval_result *nothing, const struct ow_interval_result *next)
{
	struct ow_message_result m = {.result = *next};
	m.result.cost = nothing->cost;
	m.result.clock_from = nothing->clock_from;
	m.result.clock_to = nothing->clock_to;
	m.result.exact = false; /* a flag that is set is always there */
	ow_message_choose(&m, nothing);
	return !nothing->cost.bytes && next->interval == nothing->interval + 1 && next->exact == nothing->exact &&
	       !m.present;
}

/* Tells what happened in the last intervals, in which it was nothing. */
static void tell_nothing(struct ow_sender *s)
{
	if (!s->has_nothing)
		return;
	tell(s, &s->nothing, NULL);
	s->x.sinks.result(s->x.sinks.arg, &s->nothing);
	s->has_nothing = false;
	s->untold = 0;
}

/* The result waits for the next one, which may be the same. */
static void keep_nothing(struct ow_sender *s, const struct ow_interval_result *result)
{
	if (s->has_nothing && (s->untold + 2 >= OW_MESSAGE_IDLE_MAX || !is_like(&s->nothing, result)))
		tell_nothing(s);
	if (s->has_nothing) {
		s->x.sinks.result(s->x.sinks.arg, &s->nothing);
		s->untold++;
	}
	s->nothing = *result;
	s->has_nothing = true;
}

static void on_result(void *arg, const struct ow_interval_result *settled)
{
	struct ow_sender *s = arg;
	struct ow_interval_result result = *settled;
	const struct ow_outcome *outcome = NULL;
	/* All of its cost is that of the interval with the message. */
	if (is_nothing(&result) && !result.cost.bytes)
		result.cost = (struct ow_result_cost){.ready_ns = result.cost.ready_ns};
	if (is_nothing(&result) && !result.final) {
		keep_nothing(s, &result);
		return;
	}
	if (is_nothing(&result)) { /* told before */
		s->x.sinks.result(s->x.sinks.arg, &result);
		return;
	}
	tell_nothing(s);
	if (s->settling && s->settling->slot.interval == result.interval)
		outcome = &s->settling->outcome;
	ow_result_round(&result);
	tell(s, &result, outcome);
	s->x.sinks.result(s->x.sinks.arg, &result);
}

static void on_event(void *arg, const struct ow_flow_event *event)
{
	struct ow_sender *s = arg;
	if (s->x.sinks.event)
		s->x.sinks.event(s->x.sinks.arg, event);
}

/* -- giving results ----------------------------------------------------------------------------------------------- */

/* Tells which packets arrived, where the other point is one of several. */
static int tell_compared(const struct ow_comparison *c, const struct ow_interval_results_input *input)
{
	const struct ow_exchange_sinks *sinks = &c->x->sinks;
	if (!sinks->compared)
		return 0;
	uint64_t *name = malloc((input->packets + 1) * sizeof *name);
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < input->packets; i++)
		name[i] = c->x->method->name(c, input->packet[i].id);
	sinks->compared(sinks->arg, input, name);
	free(name);
	return 0;
}

static int step(struct ow_interval_results *results, const struct ow_comparison *c)
{
	const struct ow_outcome *o = &c->outcome;
	const struct ow_lane_flows *flows = &c->slot.packets->flows;
	struct ow_interval_results_input input = {
		.result = o->result,
		.only_a = o->only_a,
		.only_b = o->only_b,
		.only_as = o->only_as,
		.only_bs = o->only_bs,
		.only_b_sent_ns = o->only_b_sent_ns,
		.close = o->close,
		.twice = o->twice,
		.delay_ns = o->delay.ns,
		.delays = o->delay.count,
		.identical = o->identical,
		.begun_amid = o->begun_amid,
		.repeats = ow_missing_repeats,
		.repeats_arg = c->missing,
		.shift_ns = c->theirs.shift_ns,
		.newest_ns = o->newest_ns,
		.newest_at_end_ns = o->newest_at_end_ns,
	};
	struct ow_sighting *packets = NULL;
	uint8_t *matched = NULL;
	int r = ow_sender_matched(c, &packets, &matched);
	input.packet = packets;
	input.packets = c->slot.packets->count + c->asides;
	input.is_matched = matched;
	input.flow = flows->flow;
	input.flows = flows->count;
	input.in_scope = c->in_scope;
	if (r == 0)
		r = ow_interval_results_step(results, &input);
	if (r == 0)
		r = tell_compared(c, &input);
	free(packets);
	free(matched);
	return r;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The receiver shifts its intervals by the usual delay. If an interval has no delays because a point saw nothing, the
 * shift stays as it is. */
static void choose_shift(struct ow_sender *s, const struct ow_comparison *c)
{
	int64_t length_ns = s->x.options.length_ns;
	int64_t delay_ns[OW_INTERVAL_RESULTS_DELAYS];
	size_t count = ow_interval_results_delays(s->missing.results, delay_ns);
	const struct ow_interval_result *result = &c->outcome.result;
	bool idle = !(result->sent + result->unshared_sent) || !(result->received + result->unshared_received);
	int64_t least_ns = idle && !count ? OW_INTERVAL_SHIFT_FIRST : s->least_delay_ns;
	int64_t shift_ns = ow_interval_shift(c->theirs.end_shift_ns, length_ns, least_ns, delay_ns, count);
	if (count && delay_ns[0] < s->least_delay_ns)
		s->least_delay_ns = delay_ns[0];
	/* The order of packets that arrive early is not known. */
	int64_t expected_ns = ow_forecast_window(&s->forecast, ow_comparison_window(c)).least_ns;
	if (s->x.options.exact && shift_ns > expected_ns)
		shift_ns = later(expected_ns, c->theirs.end_shift_ns - length_ns / 4);
	s->cut_shift_ns = ow_exchange_cut(&s->x, shift_ns);
}

#define FINE_MAX 256

/* What the verdicts and the receiver found out about flows. */
static void learn_scope(struct ow_sender *s, const struct ow_comparison *c)
{
	struct ow_interval_results *results = s->missing.results;
	const struct ow_scope_answer *a = &c->answer;
	uint64_t fine[FINE_MAX];
	if (!s->announcer)
		return;
	size_t count = ow_interval_results_fine(results, fine, FINE_MAX);
	(void)ow_scope_make_fine(s->announcer, fine, count);
	ow_interval_results_rerouted(results, c->slot.interval, a->rerouted.key, a->ttl_change, a->rerouted.count);
}

static void tell_unknown(struct ow_sender *s, const struct ow_interval_result *result)
{
	const struct ow_exchange_sinks *sinks = &s->x.sinks;
	(void)ow_interval_results_unknown(s->missing.results, result, false);
	if (sinks->compared)
		sinks->compared(sinks->arg, &(struct ow_interval_results_input){.result = *result}, NULL);
}

static void settle(struct ow_sender *s, struct ow_comparison *c)
{
	struct ow_outcome *o = &c->outcome;
	struct ow_interval_results *results = s->missing.results;
	int r = 0;
	s->settling = c;
	/* The other point may have declined before the interval was closed. */
	if (c->stage == OW_STAGE_UNKNOWN) {
		char cause[OW_RESULT_CAUSE];
		memcpy(cause, o->result.cause, sizeof cause);
		ow_comparison_result(c, &o->result);
		memcpy(o->result.cause, cause, sizeof cause);
	}
	bool compared = c->stage == OW_STAGE_READY && !o->estimated;
	size_t others = o->delay.count;
	if (c->stage == OW_STAGE_READY)
		ow_comparison_correct(c);
	if (compared)
		r = ow_identical_regroup(c);
	if (compared && r == 0)
		r = ow_identical_find_twice(c);
	ow_missing_doubt_delays(&s->missing, c, compared && r == 0, others);
	if (compared && r == 0)
		ow_forecast_learn_sample(&s->forecast, o->delay.ns, o->delay.count, o->result.matched,
		                         ow_result_clock_added_ns(&o->result));
	if (compared && r == 0)
		r = ow_sender_add_aside(c);
	if (compared && r == 0)
		r = step(results, c);
	if (c->pushed && s->x.options.shift_max_ns)
		choose_shift(s, c);
	learn_scope(s, c);
	if (r < 0)
		snprintf(o->result.cause, sizeof o->result.cause, "%s",
		         r == -ENOMEM ? ow_cause_out_of_memory : ow_cause_counts_contradict);
	if (o->estimated)
		r = ow_interval_results_estimated(results, &o->result);
	if (r < 0 || c->stage == OW_STAGE_UNKNOWN)
		tell_unknown(s, &o->result);
	ow_missing_add(&s->missing, c);
	s->settling = NULL;
	s->next_settled = c->slot.interval + 1;
}

static void settle_ready(struct ow_exchange *x)
{
	struct ow_sender *s = sender_of(x);
	for (struct ow_slot *slot; x->slots && (slot = x->slot[0]); ow_slot_remove(x, slot)) {
		if (comparison_of(slot)->stage < OW_STAGE_READY || (!slot->packets && !x->finished)) {
			tell_nothing(s);
			return;
		}
		if (slot->packets)
			settle(s, comparison_of(slot));
	}
	tell_nothing(s);
	if (x->finished && !s->final) {
		s->final = true;
		(void)ow_interval_results_finish(s->missing.results);
	}
}

/* -- stages ------------------------------------------------------------------------------------------------------- */

/* Initialises a new slot. */
static void begin(struct ow_exchange *x, struct ow_slot *slot)
{
	comparison_of(slot)->x = x;
	comparison_of(slot)->missing = &sender_of(x)->missing;
	comparison_of(slot)->forecast = &sender_of(x)->forecast;
}

/* Intervals that this point has not recorded yet do not wait for the other point. */
static bool waits(const struct ow_slot *slot)
{
	return slot->packets && ((const struct ow_comparison *)slot)->stage < OW_STAGE_READY;
}

static void unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	ow_comparison_unknown(comparison_of(slot), cause);
	advance(x);
}

/*
 * If only one point sees a tag (a trunk and an access port), the filter matches packets there, and cannot match them at
 * the other one. These are not lost. Once it has matched packets at both points, missing packets are lost.
 */
static bool filter_fits(struct ow_sender *s, const struct ow_comparison *c)
{
	bool here = c->slot.packets->total_packets > 0, there = c->theirs.total_packets > 0;
	s->met |= here && there;
	return !s->x.options.link_filter || s->met || here == there;
}

static int start(struct ow_exchange *x, struct ow_comparison *c)
{
	struct ow_interval_packets *packets = c->slot.packets;
	char cause[OW_RESULT_CAUSE];
	if (packets->blind[0]) {
		snprintf(cause, sizeof cause, ow_cause_of_point, x->options.from, packets->blind);
		ow_comparison_unknown(c, cause);
		return 0;
	}
	if (!filter_fits(sender_of(x), c)) {
		snprintf(cause, sizeof cause, ow_cause_filter_takes_none,
		         packets->total_packets ? x->options.to : x->options.from);
		ow_comparison_unknown(c, cause);
		return 0;
	}
	unsigned mine = packets->sample_shift, theirs = c->theirs.sample_shift;
	if (theirs < mine) {
		struct ow_message_ask ask = {.part = OW_MESSAGE_AGAIN, .sample_shift = (uint8_t)mine};
		return ow_comparison_ask(c, OW_STAGE_AGAIN, &ask);
	}
	if (theirs > mine) {
		ow_interval_packets_resample(packets, &x->options.identity, theirs);
		ow_exchange_raise_shift(x, theirs, c->slot.interval);
	}
	int r = ow_sender_confirm(c, sender_of(x)->announcer);
	if (r == -ESTALE || r == -ENOENT) {
		ow_comparison_unknown(c, ow_cause_scope_lost);
		if (r == -ESTALE)
			ow_scope_announcer_reset(sender_of(x)->announcer);
		return 0;
	}
	return r < 0 ? r : x->method->start(c);
}

/* Intervals that began before the recording: the other point will get no other answer. */
static void drop_without_packets(struct ow_exchange *x)
{
	while (x->slots && !x->slot[0]->packets && (x->finished || x->slot[0]->interval < x->next_interval)) {
		ow_exchange_say_none(x, x->slot[0]->interval, "not recorded");
		ow_slot_remove(x, x->slot[0]);
	}
	for (size_t i = x->slots; x->finished && i-- > 0;) {
		if (!x->slot[i]->packets) {
			ow_exchange_say_none(x, x->slot[i]->interval, x->ended);
			ow_slot_remove(x, x->slot[i]);
		}
	}
}

/* Continues with all intervals as far as possible. */
static void advance(struct ow_exchange *x)
{
	bool turn = true;
	drop_without_packets(x);
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_comparison *c = comparison_of(x->slot[i]);
		int r = 0;
		if (c->stage == OW_STAGE_OPEN && c->slot.packets && c->pushed)
			r = start(x, c);
		if (r == 0 && c->stage == OW_STAGE_TURN && turn)
			r = x->method->turn(c);
		if (r < 0)
			ow_comparison_unknown(c, failure(r));
		turn &= c->stage >= OW_STAGE_NAMED;
	}
	settle_ready(x);
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* Bytes that are kept of a synopsis and its answer to SCOPE. A key of a list is 8 bytes here, and at least 23 bits there. */
static size_t memory_of(const struct ow_message_synopsis *m)
{
	const struct ow_message_scope_answer *a = &m->scope;
	size_t lists = (size_t)a->late_size + a->fine_size + a->rerouted_size;
	return m->synopsis_size + (size_t)a->seen_size + a->changes + 3 * lists;
}

/* When it was sent, by the clock of the other point. */
static int64_t sent_at(const struct ow_exchange *x, int64_t interval, const struct ow_message_synopsis *m)
{
	return (int64_t)((uint64_t)ow_exchange_end_ns(x, interval) + (uint64_t)m->lag_ns);
}

/* The pushed synopsis, or the same for fewer packets. */
static int take_push(struct ow_comparison *c, const struct ow_message_synopsis *m, struct ow_error *err)
{
	if (c->stage == OW_STAGE_AGAIN && m->sample_shift < c->slot.packets->sample_shift)
		return 0; /* the answer to an earlier request */
	int r = c->x->method->take_push(c, m, err);
	if (r == 0)
		r = ow_sender_take_answer(c, &m->scope, err);
	if (r < 0)
		return r;
	c->held = memory_of(m);
	c->theirs = *m;
	c->theirs.synopsis = NULL;
	c->theirs.scope = (struct ow_message_scope_answer){0};
	c->pushed = true;
	int64_t now_ns = c->x->now_ns, sent_ns = sent_at(c->x, c->slot.interval, m);
	if (c->stage == OW_STAGE_AGAIN)
		c->cost.transmit_ns += ow_exchange_steady_ns(c->x) - c->requested_ns;
	else
		c->cost.transmit_ns = (int64_t)((uint64_t)c->cost.transmit_ns + (uint64_t)m->work_ns +
		                                (uint64_t)(now_ns > sent_ns ? now_ns - sent_ns : 0));
	c->stage = OW_STAGE_OPEN;
	return 0;
}

/* Whether there is room for another synopsis of this many bytes. */
static bool has_room(const struct ow_exchange *x, size_t size)
{
	size_t held = 0;
	for (size_t i = 0; i < x->slots; i++)
		held += comparison_of(x->slot[i])->held;
	return !x->options.synopses_max || !held || held + size <= x->options.synopses_max;
}

/* The comparison for a synopsis of this interval; NULL if it is not needed. */
static struct ow_comparison *comparison_for(struct ow_exchange *x, int64_t interval)
{
	struct ow_sender *s = sender_of(x);
	struct ow_slot *slot = ow_slot_find(x, interval);
	/* Its result was sent, or was given up during an outage. */
	if (!slot && interval < s->next_settled && !told_of(s, interval))
		ow_exchange_say_none(x, interval, "not compared, too long ago");
	if (slot || interval < s->next_settled)
		return comparison_of(slot);
	if (x->finished || interval < x->next_interval) {
		ow_exchange_say_none(x, interval, x->finished ? x->ended : "not recorded");
		return NULL;
	}
	/* This point is slow, or the other one invents intervals. */
	size_t ahead = 0;
	for (size_t i = x->slots; i-- > 0 && !x->slot[i]->packets;)
		ahead++;
	if (ahead >= 2 * (size_t)x->options.intervals_max)
		return NULL;
	slot = ow_slot_add(x, interval);
	if (slot)
		begin(x, slot);
	return comparison_of(slot);
}

static bool wants(const struct ow_comparison *c, enum ow_message_part part)
{
	bool open = c->stage == OW_STAGE_OPEN && !c->pushed;
	switch (part) {
	case OW_MESSAGE_PUSHED:
		return open;
	case OW_MESSAGE_AGAIN:
		return open || c->stage == OW_STAGE_AGAIN;
	default:
		return c->stage == OW_STAGE_SYNOPSIS && c->ask.part == part;
	}
}

/* A synopsis that is needed. */
static int take_synopsis(struct ow_exchange *x, struct ow_comparison *c, const struct ow_message_synopsis *m,
                         size_t bytes, struct ow_error *err)
{
	bool answer = m->part >= OW_MESSAGE_SECOND;
	/* Answers must be about the same packets as the counts before. */
	if (answer && (m->packets != c->theirs.packets || m->sample_shift != c->theirs.sample_shift))
		return ow_error_set(err, EPROTO, "message SYNOPSIS: other packets than before");
	struct ow_result_cost before = c->cost;
	/* The bytes of this message belong to the result that it makes possible. */
	c->cost.bytes += bytes;
	c->cost.transmit_ns += answer ? ow_exchange_steady_ns(c->x) - c->requested_ns : 0;
	int r = answer ? x->method->take_synopsis(c, m, err) : take_push(c, m, err);
	if (r == -EPROTO) {
		c->cost = before;
		if (!c->slot.packets && !c->pushed)
			ow_slot_remove(x, &c->slot);
		return r;
	}
	if (r < 0)
		ow_comparison_unknown(c, failure(r));
	return 0;
}

/* One of the intervals that the message is about. */
static int on_interval(struct ow_exchange *x, int64_t interval, const struct ow_message_synopsis *m, size_t bytes,
                       struct ow_error *err)
{
	struct ow_comparison *c = comparison_for(x, interval);
	if (!c || !wants(c, m->part))
		return 0;
	if (has_room(x, memory_of(m)))
		return take_synopsis(x, c, m, bytes, err);
	ow_exchange_say_none(x, interval, "no memory for so many synopses");
	if (c->slot.packets)
		ow_comparison_unknown(c, ow_cause_too_many_synopses);
	else
		ow_slot_remove(x, &c->slot);
	return 0;
}

static int on_synopsis(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	const struct ow_message_synopsis *m = &message->synopsis;
	x->ahead_ns = (int64_t)((uint64_t)sent_at(x, message->interval, m) - (uint64_t)x->now_ns);
	if (m->idle > message->interval)
		return ow_error_set(err, EPROTO, "message SYNOPSIS: intervals before the first one");
	for (int64_t i = message->interval - m->idle; i <= message->interval; i++) {
		struct ow_message_synopsis one = *m;
		one.lag_ns = (int64_t)((uint64_t)m->lag_ns +
		                       (uint64_t)(message->interval - i) * (uint64_t)x->options.length_ns);
		int r = on_interval(x, i, &one, i == message->interval ? size + 4 : 0, err);
		if (r < 0)
			return r;
	}
	confirm(sender_of(x), m->settled);
	/* Intervals whose packets the other point no longer has cannot be compared. */
	for (size_t i = 0; i < x->slots && x->slot[i]->interval < m->oldest; i++) {
		if (waits(x->slot[i]))
			ow_comparison_unknown(comparison_of(x->slot[i]), ow_cause_peer_without_packets);
	}
	advance(x);
	return 0;
}

static int on_times(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_comparison *c = comparison_of(ow_slot_find(x, message->interval));
	if (!c || c->stage != OW_STAGE_NAMED)
		return 0;
	/* The bytes of this answer belong to the result that it makes possible. */
	c->cost.bytes += size + 4;
	int64_t before = c->cost.missing_ns;
	c->cost.missing_ns += ow_exchange_steady_ns(c->x) - c->requested_ns;
	int r = message->times.sample_shift != c->theirs.sample_shift ? -ESTALE
	                                                              : x->method->take_times(c, &message->times, err);
	if (r == -EPROTO) {
		c->cost.bytes -= size + 4;
		c->cost.missing_ns = before;
		return r;
	}
	if (r < 0)
		ow_comparison_unknown(c, r == -ESTALE ? ow_cause_peer_sample_changed : failure(r));
	advance(x);
	return 0;
}

/* The receiver has packets of an interval that was not announced yet. */
static int on_ask(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_sender *s = sender_of(x);
	struct ow_comparison *c = comparison_of(ow_slot_find(x, message->interval));
	if (!s->announcer || message->ask.part < OW_MESSAGE_FLOWS)
		return ow_error_set(err, EPROTO, "message ASK: not for the sending point of a lane");
	if (message->ask.part == OW_MESSAGE_KEYS) {
		size_t bytes = ow_sender_announce_list(x, s->announcer, message->interval);
		if (c)
			c->cost.bytes += size + 4 + bytes;
		return 0;
	}
	if (message->interval > s->quiet.asked)
		s->quiet.asked = message->interval;
	ow_sender_announce_held(x, s->announcer, &s->quiet);
	return 0;
}

static int frame(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_comparison *c;
	switch (message->type) {
	case OW_MESSAGE_SYNOPSIS:
		return on_synopsis(x, message, size, err);
	case OW_MESSAGE_TIMES:
		return on_times(x, message, size, err);
	case OW_MESSAGE_ASK:
		return on_ask(x, message, size, err);
	case OW_MESSAGE_NONE:
		/* The other point may close its interval first. */
		c = comparison_for(x, message->interval);
		if (sender_of(x)->announcer && ow_cause_of(message->text.text) == OW_CAUSE_SCOPE_LOST)
			ow_scope_announcer_lost(sender_of(x)->announcer, message->interval);
		if (c && c->stage < OW_STAGE_READY) {
			char cause[OW_RESULT_CAUSE];
			snprintf(cause, sizeof cause, ow_cause_of_point, ow_exchange_peer(x), message->text.text);
			unknown(x, &c->slot, cause);
		}
		return 0;
	default:
		return ow_error_set(err, EPROTO, "message %s: not for the sending point of a lane",
		                    ow_message_name(message->type));
	}
}

/* -- the role ----------------------------------------------------------------------------------------------------- */

static int create(struct ow_exchange *x)
{
	struct ow_sender *s = sender_of(x);
	s->quiet.asked = -1;
	x->slot_size = x->method->size;
	int r = ow_interval_results_create(x->options.horizon, on_result, s, &s->missing.results);
	if (r == 0)
		r = ow_interval_copies_create(&s->missing.copies);
	if (r == 0 && x->options.shared)
		r = ow_interval_results_share(s->missing.results, x->options.length_ns, on_event);
	if (r < 0)
		return r;
	if (x->options.one_of_several)
		ow_interval_results_one_of_several(s->missing.results);
	if (ow_exchange_has_keys(x)) {
		struct ow_scope_options scope;
		ow_exchange_scope_options(x, &scope);
		r = ow_scope_announcer_create(&scope, &s->announcer);
	}
	s->least_delay_ns = OW_INTERVAL_SHIFT_FIRST;
	s->tell = calloc(tells_max(s), sizeof *s->tell);
	return r < 0 ? r : s->tell ? 0 : -ENOMEM;
}

static void done(struct ow_exchange *x)
{
	struct ow_sender *s = sender_of(x);
	confirm(s, INT64_MAX);
	free(s->tell);
	ow_missing_done(&s->missing);
	ow_scope_announcer_free(s->announcer);
}

static void slot_done(struct ow_exchange *x, struct ow_slot *slot)
{
	x->method->done(comparison_of(slot));
	ow_comparison_done(comparison_of(slot));
}

static void packets(struct ow_exchange *x, struct ow_slot *slot)
{
	begin(x, slot);
	if (sender_of(x)->announcer)
		comparison_of(slot)->cost.bytes +=
			ow_sender_announce(x, sender_of(x)->announcer, &sender_of(x)->quiet, slot);
	advance(x);
}

/* Asks for synopses that should have arrived: they may be lost, or the other point has none. */
static void ask_for_missing(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_comparison *c = comparison_of(x->slot[i]);
		if (c->slot.packets && c->stage == OW_STAGE_OPEN && !c->pushed &&
		    ow_comparison_ask(c, OW_STAGE_OPEN, &(struct ow_message_ask){.part = OW_MESSAGE_AGAIN}) < 0)
			ow_comparison_unknown(c, ow_cause_out_of_memory);
	}
}

static void connected(struct ow_exchange *x)
{
	struct ow_sender *s = sender_of(x);
	for (size_t i = 0; i < s->tells; i++)
		x->sinks.send(x->sinks.arg, s->tell[i].frame, s->tell[i].size);
	if (s->announcer)
		ow_sender_announce_again(x, s->announcer);
	s->quiet.held = 0;
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_comparison *c = comparison_of(x->slot[i]);
		if (c->stage == OW_STAGE_OPEN || c->stage == OW_STAGE_TURN || c->stage >= OW_STAGE_READY || !c->request)
			continue;
		c->cost.bytes += c->request_size + 4;
		x->sinks.send(x->sinks.arg, c->request, c->request_size);
	}
	if (x->finished)
		ask_for_missing(x);
}

static void finish(struct ow_exchange *x)
{
	if (sender_of(x)->announcer)
		ow_sender_announce_held(x, sender_of(x)->announcer, &sender_of(x)->quiet);
	if (ow_cause_of(x->ended) == OW_CAUSE_IDENTITY_CHANGED)
		ow_interval_results_distrust(sender_of(x)->missing.results);
	ask_for_missing(x);
	advance(x);
}

static void total(const struct ow_exchange *x, struct ow_interval_result *ret_total)
{
	ow_run_total(((const struct ow_sender *)x)->missing.results, ret_total);
}

const struct ow_role ow_sender_role = {
	.size = sizeof(struct ow_sender),
	.patience = 1,
	.create = create,
	.done = done,
	.slot_done = slot_done,
	.packets = packets,
	.frame = frame,
	.connected = connected,
	.finish = finish,
	.waits = waits,
	.unknown = unknown,
	.total = total,
};
