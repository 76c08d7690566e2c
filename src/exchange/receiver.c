/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiver of a lane: the point where its packets arrive. It pushes a synopsis of each interval and answers
 * requests about it, always from the packets, so that a request may come twice. The packets stay until the result has
 * arrived.
 */
#include "exchange/exchange_scope.h"
#include "exchange/message_scope.h"
#include "exchange/method.h"
#include "result/result_clock.h"
#include "result/run_total.h"
#include "result/cause.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The first interval is sized for one difference in this many packets, */
#define GUESS 100
/* each for at least this many, and this many standard deviations more than expected (differences are about Poisson). */
#define LEAST  4
#define MARGIN 2
/* Requests about one interval: three rounds, and again after each of some lost connections. */
#define ANSWERS_MAX 32
/* After an interval with fewer differences the expectation decreases by this share of the difference. */
#define DECAY 0.25

/* It waits longer than the sender, which knows more and should report first. */
#define PATIENCE 1.5

struct ow_receiver {
	struct ow_exchange x;
	double expected;                 /* expected differences of an interval; NAN = not known yet */
	int64_t asked_until;             /* the other point asked for intervals up to this one; -1 = none */
	int64_t next_final;              /* all intervals before have their final results */
	struct ow_receiver_scope *scope; /* NULL: all packets are compared */
	struct ow_shared_flows shared;
	int64_t shared_interval; /* the newest one that it has flows of */
	struct ow_run_total *total;
	struct ow_delays *no_delays;
};

/* One interval. */
struct ow_reception {
	struct ow_slot slot;
	unsigned banks;            /* of the synopsis that was pushed */
	unsigned answers;          /* number of answers given */
	uint64_t seen, seen_total; /* packets of the interval, at most, and including those outside the sample */
	bool under_way;            /* pushed on this connection */
	bool ready;                /* only packets that are compared are left: */
	struct ow_scope_answer answer;
	uint64_t unshared;
	bool told, told_final, emitted;
	struct ow_interval_result provisional, final;
};

static struct ow_receiver *receiver_of(struct ow_exchange *x)
{
	return (struct ow_receiver *)x;
}

static struct ow_reception *reception_of(struct ow_slot *slot)
{
	return (struct ow_reception *)slot;
}

static void unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause);

/* -- synopses ----------------------------------------------------------------------------------------------------- */

static double expected(const struct ow_receiver *r, const struct ow_interval_packets *packets)
{
	double d = isnan(r->expected) ? (double)packets->count / GUESS : r->expected;
	return d + MARGIN * sqrt(d) + LEAST;
}

static void learn(struct ow_receiver *r, uint64_t differences)
{
	double d = (double)differences;
	if (isnan(r->expected) || d > r->expected)
		r->expected = d;
	else
		r->expected += DECAY * (d - r->expected);
}

/* The oldest interval whose packets are still here. */
static int64_t oldest(const struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++) {
		if (x->slot[i]->packets)
			return x->slot[i]->interval;
	}
	return x->next_interval;
}

/* Takes over the synopsis. */
static int say_synopsis(struct ow_exchange *x, const struct ow_slot *slot, enum ow_message_part part, uint32_t idle,
                        struct ow_synopsis *synopsis, int64_t begin_ns)
{
	const struct ow_interval_packets *packets = slot->packets;
	const struct ow_reception *reception = (const struct ow_reception *)slot;
	struct ow_message m = {.type = OW_MESSAGE_SYNOPSIS, .lane = x->options.lane, .interval = slot->interval};
	uint8_t *lists = NULL;
	size_t size = synopsis ? ow_synopsis_encoded_size(synopsis) : 0;
	uint8_t *bytes = size <= OW_MESSAGE_SYNOPSIS_MAX ? malloc(size + 1) : NULL;
	if (!bytes) {
		ow_synopsis_free(synopsis);
		return -ENOMEM;
	}
	if (synopsis)
		ow_synopsis_encode(synopsis, bytes);
	ow_synopsis_free(synopsis);
	m.synopsis = (struct ow_message_synopsis){
		.part = part,
		.idle = idle,
		.sample_shift = (uint8_t)packets->sample_shift,
		.clock = slot->clock,
		.packets = packets->count,
		.total_packets = packets->total_packets > packets->count ? packets->total_packets : packets->count,
		.total_bytes = packets->total_bytes,
		.ring_drops = packets->ring_drops,
		.unreadable = packets->unreadable,
		.unshared = reception->unshared,
		.shift_ns = packets->shift_ns,
		.end_shift_ns = packets->end_shift_ns,
		.oldest = oldest(x),
		.settled = receiver_of(x)->next_final,
		.lag_ns = (int64_t)((uint64_t)x->now_ns - (uint64_t)ow_exchange_end_ns(x, slot->interval)),
		.work_ns = ow_exchange_steady_ns(x) - begin_ns,
		.synopsis = bytes,
		.synopsis_size = (uint32_t)size,
	};
	int r = 0;
	if (receiver_of(x)->scope && part <= OW_MESSAGE_AGAIN)
		r = ow_message_of_scope_answer(&reception->answer, &m.synopsis.scope, &lists);
	if (r == 0)
		r = ow_exchange_say(x, &m);
	free(lists);
	free(bytes);
	return r;
}

static int push(struct ow_exchange *x, struct ow_slot *slot, enum ow_message_part part, uint32_t idle)
{
	int64_t begin = ow_exchange_steady_ns(x);
	struct ow_synopsis *synopsis = NULL;
	double differences = expected(receiver_of(x), slot->packets);
	if (x->method->push && slot->packets->count) {
		int r = x->method->push(x, slot->packets, differences, &reception_of(slot)->banks, &synopsis);
		if (r < 0)
			return r;
		synopsis->ops->add(synopsis, slot->packets->sighting, slot->packets->count);
	}
	return say_synopsis(x, slot, part, idle, synopsis, begin);
}

/* Nothing was seen here, and flows are as before. */
static bool is_idle(const struct ow_reception *r)
{
	const struct ow_interval_packets *packets = r->slot.packets;
	const struct ow_scope_answer *a = &r->answer;
	return packets && r->ready && !r->under_way && !packets->blind[0] && !packets->total_packets &&
	       !packets->count && !packets->ring_drops && !packets->unreadable && !r->unshared && !a->seen_bytes &&
	       !a->late.count && !a->fine.count && !a->rerouted.count && packets->shift_ns == packets->end_shift_ns;
}

/* Whether the next interval is idle as well, so that one message can tell both. */
static bool tells_next(const struct ow_exchange *x, const struct ow_slot *slot)
{
	struct ow_slot *next = ow_slot_find(x, slot->interval + 1);
	const struct ow_reception *a = (const struct ow_reception *)slot, *b = next ? reception_of(next) : NULL;
	return b && is_idle(a) && is_idle(b) && a->answer.digest == b->answer.digest &&
	       slot->packets->shift_ns == next->packets->shift_ns &&
	       slot->packets->sample_shift == next->packets->sample_shift;
}

/* The next interval to push, or NULL: none is left, or enough are in progress. */
static struct ow_slot *next_push(const struct ow_exchange *x)
{
	size_t under_way = 0;
	for (size_t i = 0; i < x->slots && under_way < OW_EXCHANGE_WINDOW; i++) {
		struct ow_slot *slot = x->slot[i];
		if (slot->packets && !reception_of(slot)->under_way && reception_of(slot)->ready)
			return slot;
		under_way += slot->packets != NULL;
	}
	return NULL;
}

static void push_waiting(struct ow_exchange *x)
{
	uint32_t idle = 0;
	for (struct ow_slot *slot; x->connected && (slot = next_push(x));) {
		bool later = receiver_of(x)->scope && idle + 1 < OW_MESSAGE_IDLE_MAX && tells_next(x, slot);
		reception_of(slot)->under_way = true;
		/* The next one may have to wait for results. */
		later = later && next_push(x);
		idle += later;
		if (later)
			continue;
		if (slot->packets->blind[0])
			ow_exchange_say_none(x, slot->interval, slot->packets->blind);
		else if (push(x, slot, OW_MESSAGE_PUSHED, idle) < 0)
			unknown(x, slot, "out of memory");
		idle = 0;
	}
}

/* The packets that a sample stands for. */
static uint64_t of_all(uint64_t sampled, unsigned shift)
{
	unsigned by = shift < 63 ? shift : 63;
	return sampled > OW_MESSAGE_PACKETS_MAX >> by ? OW_MESSAGE_PACKETS_MAX : sampled << by;
}

/* Cuts the next interval that was announced, whether this point has it or not; 0, -ESTALE, -ENOMEM, -EPROTO. */
static int take_scope(struct ow_exchange *x, struct ow_slot *slot, int64_t interval, struct ow_error *err)
{
	struct ow_receiver_scope *scope = receiver_of(x)->scope;
	struct ow_scope_answer nothing;
	uint64_t unshared;
	if (!slot || !slot->packets || slot->packets->blind[0]) {
		int r = ow_receiver_scope_take(scope, NULL, &nothing, &unshared, err);
		ow_scope_answer_done(&nothing);
		if (slot && slot->packets)
			reception_of(slot)->ready = true;
		else
			ow_exchange_say_none(x, interval, "not recorded");
		return r == -EPROTO ? r : 0;
	}
	struct ow_reception *reception = reception_of(slot);
	int r = ow_receiver_scope_take(scope, slot->packets, &reception->answer, &reception->unshared, err);
	if (r == -ESTALE || r == -ENOMEM) {
		ow_exchange_say_none(x, interval, ow_cause_scope_lost);
		return 0;
	}
	/* Each packet counts in the interval in which it is known whose it is. */
	slot->packets->total_packets = of_all(slot->packets->count + reception->unshared, slot->packets->sample_shift);
	reception->seen = slot->packets->count;
	reception->seen_total = slot->packets->total_packets;
	reception->ready = true;
	return r;
}

static void ask(struct ow_exchange *x, int64_t interval, enum ow_message_part part)
{
	struct ow_message m = {.type = OW_MESSAGE_ASK, .lane = x->options.lane, .interval = interval};
	m.ask.part = part;
	(void)ow_exchange_say(x, &m);
}

static int take_scopes(struct ow_exchange *x, struct ow_error *err)
{
	int64_t interval;
	int r = 0;
	while (r == 0 && receiver_of(x)->scope && ow_receiver_scope_next(receiver_of(x)->scope, &interval)) {
		struct ow_slot *slot = ow_slot_find(x, interval);
		if ((!slot || !slot->packets) && (x->next_interval < 0 || interval >= x->next_interval) && !x->finished)
			break;
		uint32_t strange = 0;
		r = ow_receiver_scope_solve(receiver_of(x)->scope, slot ? slot->packets : NULL, &strange);
		if (r == -EAGAIN)
			ask(x, interval, OW_MESSAGE_KEYS);
		if (r == -EAGAIN || r == -EBUSY) {
			r = 0;
			break;
		}
		r = take_scope(x, slot, interval, err);
		if (slot && ow_slot_find(x, interval) == slot)
			reception_of(slot)->answer.strange = strange;
	}
	push_waiting(x);
	return r;
}

static int on_ask(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_ask *ask, struct ow_error *err)
{
	int64_t begin = ow_exchange_steady_ns(x);
	struct ow_synopsis *synopsis = NULL;
	if (ask->part == OW_MESSAGE_AGAIN) {
		if (ask->sample_shift > slot->packets->sample_shift) {
			ow_interval_packets_resample(slot->packets, &x->options.identity, ask->sample_shift);
			ow_exchange_raise_shift(x, ask->sample_shift, slot->interval);
		}
		return push(x, slot, OW_MESSAGE_AGAIN, 0);
	}
	int r = x->method->answer(x, reception_of(slot)->banks, ask, &synopsis);
	if (r == -EOPNOTSUPP)
		return ow_error_set(err, EPROTO, "message ASK: not what this lane is compared by");
	/* Up to 64 MiB: may be requested again only after some lost connections. */
	if (ask->part == OW_MESSAGE_TABLE)
		reception_of(slot)->answers += ANSWERS_MAX / 8;
	if (r == -EINVAL)
		return ow_error_set(err, EPROTO, "message ASK: %u cells are out of range", ask->cells);
	if (r < 0)
		return r;
	synopsis->ops->add(synopsis, slot->packets->sighting, slot->packets->count);
	return say_synopsis(x, slot, ask->part, 0, synopsis, begin);
}

static int on_names(struct ow_exchange *x, const struct ow_slot *slot, const struct ow_message_names *names,
                    struct ow_error *err)
{
	struct ow_receiver *r = receiver_of(x);
	if (slot->interval > r->shared_interval) {
		ow_shared_flows_turn(&r->shared, slot->packets->start_ns);
		r->shared_interval = slot->interval;
	}
	return ow_exchange_say_times(x, slot, names, &r->shared, r->scope, err);
}

/* -- results ------------------------------------------------------------------------------------------------------ */

static void drop_packets(struct ow_slot *slot)
{
	ow_interval_packets_free(slot->packets);
	slot->packets = NULL;
}

static void total_add(struct ow_receiver *receiver, const struct ow_interval_result *result)
{
	/* The mean includes late packets: here they count as if they had been in time. */
	struct ow_interval_result first = *result;
	first.matched += first.late;
	ow_result_clock_narrow(&first);
	ow_run_total_add(receiver->total, &first, result, false, NULL, 0, receiver->no_delays);
}

/* Passes on results that have arrived, in order. */
static void emit(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++) {
		struct ow_reception *reception = reception_of(x->slot[i]);
		if (!reception->told && !reception->told_final)
			break;
		if (reception->told && !reception->emitted) {
			struct ow_interval_result provisional = reception->provisional;
			ow_result_clock_forget(&provisional);
			x->sinks.result(x->sinks.arg, &provisional);
		}
		reception->emitted = true;
	}
	while (x->slots && reception_of(x->slot[0])->told_final) {
		const struct ow_interval_result *final = &reception_of(x->slot[0])->final;
		total_add(receiver_of(x), final);
		x->sinks.result(x->sinks.arg, final);
		receiver_of(x)->next_final = final->interval + 1;
		ow_slot_remove(x, x->slot[0]);
	}
}

static void unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause)
{
	struct ow_reception *reception = reception_of(slot);
	struct ow_interval_result *r = &reception->final;
	if (reception->told) {
		/* Pending packets stay pending. */
		*r = reception->provisional;
		if (r->status == OW_RESULT_MEASURED && r->pending)
			r->status = OW_RESULT_PARTIAL;
	} else {
		ow_exchange_blank(x, slot->interval, r);
		r->status = OW_RESULT_UNKNOWN;
		r->clock_to = slot->clock;
	}
	r->final = true;
	if (slot->packets) {
		r->total_received = slot->packets->total_packets;
		r->ring_drops_to = slot->packets->ring_drops;
		r->unreadable = slot->packets->unreadable;
		r->sample_shift = slot->packets->sample_shift;
	}
	if (r->status != OW_RESULT_MEASURED)
		snprintf(r->cause, sizeof r->cause, "%s", cause);
	reception->told_final = true;
	drop_packets(slot);
	emit(x);
}

/* The result of one of the intervals that the message is about; before: by so many intervals. */
static int on_result(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_result *m, size_t size,
                     int64_t before, struct ow_error *err)
{
	struct ow_reception *reception = reception_of(slot);
	struct ow_interval_result r;
	bool final = m->result.final;
	if (reception->told_final || (reception->told && !final))
		return 0;
	/* What it changes was not told: as if it were lost, too. */
	if (m->changes && !(reception->told && final))
		return 0;
	ow_exchange_blank(x, slot->interval, &r);
	int e = ow_message_complete(m, &reception->provisional, &r, err);
	if (e < 0)
		return e;
	/* This point knows best what arrived here. */
	if (r.received > reception->seen || r.total_received > reception->seen_total)
		return ow_error_set(err, EPROTO, "message RESULT: more packets received than this point saw");
	r.cost.bytes += size + 4;
	if (before)
		r.cost = (struct ow_result_cost){.ready_ns = r.cost.ready_ns + before * x->options.length_ns};
	bool first = !reception->told;
	if (first && r.status != OW_RESULT_UNKNOWN)
		learn(receiver_of(x), m->differences);
	if (x->sinks.floor && m->floor.samples)
		x->sinks.floor(x->sinks.arg, &m->floor, &r);
	if (first && x->sinks.cut && x->options.shift_max_ns)
		x->sinks.cut(x->sinks.arg, ow_exchange_cut(x, m->cut_shift_ns));
	if (final) {
		reception->final = r;
		ow_result_clock_forget(&reception->final);
	}
	reception->told_final = final;
	if (first) {
		reception->provisional = r;
		reception->provisional.final = false;
	}
	reception->told = true;
	slot->since_ns = x->now_ns;
	drop_packets(slot);
	emit(x);
	push_waiting(x);
	return 0;
}

static int on_results(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	const struct ow_message_result *m = &message->told;
	int r = 0;
	if (m->idle > message->interval)
		return ow_error_set(err, EPROTO, "message RESULT: intervals before the first one");
	for (int64_t before = m->idle; before >= 0 && r == 0; before--) {
		struct ow_slot *slot = ow_slot_find(x, message->interval - before);
		r = slot ? on_result(x, slot, m, size, before, err) : 0;
	}
	return r;
}

/* -- frames ------------------------------------------------------------------------------------------------------- */

/* A request about an interval whose packets are not here. */
static void no_packets(struct ow_exchange *x, struct ow_slot *slot, int64_t interval)
{
	struct ow_receiver *r = receiver_of(x);
	if (slot && reception_of(slot)->told)
		return; /* a request from before the result */
	bool later = x->next_interval < 0 || interval >= x->next_interval;
	if (later && !x->finished) {
		/* It will be pushed. No sender asks for intervals this far ahead; then the request is about the end. */
		if (interval > r->asked_until && interval - x->next_interval < (int64_t)x->options.intervals_max)
			r->asked_until = interval;
		return;
	}
	ow_exchange_say_none(x, interval, later ? x->ended : "not recorded, or no longer here");
}

static int frame(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err)
{
	struct ow_slot *slot = ow_slot_find(x, message->interval);
	bool here = slot && slot->packets;
	int r = 0;
	switch (message->type) {
	case OW_MESSAGE_ASK:
	case OW_MESSAGE_NAMES:
		if (here && reception_of(slot)->answers++ >= ANSWERS_MAX)
			return ow_error_set(err, EPROTO, "message %s: asked too often", ow_message_name(message->type));
		if (!here)
			no_packets(x, slot, message->interval);
		else if (slot->packets->blind[0])
			ow_exchange_say_none(x, slot->interval, slot->packets->blind);
		else if (!reception_of(slot)->ready) /* of an interval that was not announced */
			ow_exchange_say_none(x, slot->interval, ow_cause_scope_lost);
		else
			r = message->type == OW_MESSAGE_ASK ? on_ask(x, slot, &message->ask, err)
			                                    : on_names(x, slot, &message->names, err);
		if (r == -ENOMEM || r == -EMSGSIZE) {
			ow_exchange_say_none(x, message->interval, "out of memory");
			r = 0;
		}
		return r;
	case OW_MESSAGE_SCOPE:
		if (!receiver_of(x)->scope)
			return ow_error_set(err, EPROTO, "message SCOPE: this lane compares all packets");
		r = ow_receiver_scope_announced(receiver_of(x)->scope, message->interval, &message->scope, err);
		return r < 0 ? r : take_scopes(x, err);
	case OW_MESSAGE_RESULT:
		return on_results(x, message, size, err);
	case OW_MESSAGE_NONE:
		if (here) {
			char cause[OW_RESULT_CAUSE];
			snprintf(cause, sizeof cause, ow_cause_of_point, ow_exchange_peer(x), message->text.text);
			unknown(x, slot, cause);
		}
		return 0;
	default:
		return ow_error_set(err, EPROTO, "message %s: not for the receiving point of a lane",
		                    ow_message_name(message->type));
	}
}

/* -- the role ----------------------------------------------------------------------------------------------------- */

static int create(struct ow_exchange *x)
{
	struct ow_receiver *r = receiver_of(x);
	x->slot_size = sizeof(struct ow_reception);
	r->expected = NAN;
	r->asked_until = -1;
	int e = ow_exchange_has_keys(x) ? ow_receiver_scope_create(x, &r->scope) : 0;
	if (e == 0)
		e = ow_run_total_create(&r->total);
	return e < 0 ? e : ow_delays_create(&r->no_delays);
}

static void done(struct ow_exchange *x)
{
	ow_receiver_scope_free(receiver_of(x)->scope);
	ow_shared_flows_done(&receiver_of(x)->shared);
	ow_run_total_free(receiver_of(x)->total);
	ow_delays_free(receiver_of(x)->no_delays);
}

/* This point has something of an interval that the sender, which had nothing lately, may announce later. */
static void ask_for_flows(struct ow_exchange *x, int64_t interval)
{
	const struct ow_receiver_scope *scope = receiver_of(x)->scope;
	if (scope && x->connected && ow_receiver_scope_is_quiet(scope, interval))
		ask(x, interval, OW_MESSAGE_FLOWS);
}

static void packets(struct ow_exchange *x, struct ow_slot *slot)
{
	struct ow_reception *reception = reception_of(slot);
	const struct ow_interval_packets *p = slot->packets;
	reception->seen = p->count;
	reception->seen_total = p->total_packets > p->count ? p->total_packets : p->count;
	reception->ready = !receiver_of(x)->scope;
	bool idle = !p->total_packets && !p->ring_drops && !p->unreadable && !p->blind[0];
	int64_t interval = slot->interval;
	(void)take_scopes(x, NULL);
	if (!idle)
		ask_for_flows(x, interval);
}

static void slot_done(struct ow_exchange *x, struct ow_slot *slot)
{
	(void)x;
	ow_scope_answer_done(&reception_of(slot)->answer);
}

static bool waits(const struct ow_slot *slot)
{
	return !((const struct ow_reception *)slot)->told_final;
}

static void connected(struct ow_exchange *x)
{
	for (size_t i = 0; i < x->slots; i++)
		reception_of(x->slot[i])->under_way = false;
	push_waiting(x);
}

static void finish(struct ow_exchange *x)
{
	for (int64_t i = x->next_interval < 0 ? 0 : x->next_interval; i <= receiver_of(x)->asked_until; i++)
		ow_exchange_say_none(x, i, x->ended);
	emit(x);
}

static void total(const struct ow_exchange *x, struct ow_interval_result *ret_total)
{
	ow_run_total_result(((const struct ow_receiver *)x)->total, ret_total);
}

const struct ow_role ow_receiver_role = {
	.size = sizeof(struct ow_receiver),
	.patience = PATIENCE,
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
