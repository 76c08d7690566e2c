/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "exchange/exchange.h"
#include "reconcile/shared_flows.h"

/*
 * Internal to the exchange: what both points of a lane have in common. Each file calls only those below it:
 *
 *   exchange.c             packets, messages and time that runs out, to the role of this point
 *   sender.c, receiver.c   the two roles
 *   exchange_fold.c, exchange_rda.c    the two methods (method.h)
 *   exchange_identical.c   the sender's packets that are identical to some that still wait
 *   comparison.c           one interval at the sender
 *   sender_scope.c, receiver_scope.c   which flows both points have (exchange_scope.h)
 *   exchange_times.c       the receiver's answer to NAMES
 *   exchange_result.c      results for messages
 *   exchange_slot.c        intervals under way, messages to the other point
 */

/* An interval in progress. struct ow_comparison and struct ow_reception begin with it. */
struct ow_slot {
	int64_t interval;
	struct ow_interval_packets *packets; /* NULL: not closed yet, or no longer needed */
	struct ow_clock_state clock;
	int64_t since_ns; /* when it began to wait */
	bool noticed;     /* a result was reported that says that there is no answer yet */
};

/* The role of a point in a lane: sender or receiver. */
struct ow_role {
	size_t size;     /* size of a type that begins with struct ow_exchange */
	double patience; /* waits for this many times the lane's patience */
	int (*create)(struct ow_exchange *x);
	/* Frees what it has in addition to the slots. */
	void (*done)(struct ow_exchange *x);
	/* Frees what a slot has in addition to the packets; may be NULL. */
	void (*slot_done)(struct ow_exchange *x, struct ow_slot *slot);
	/* The packets of this slot have arrived. */
	void (*packets)(struct ow_exchange *x, struct ow_slot *slot);
	int (*frame)(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err);
	void (*connected)(struct ow_exchange *x);
	/* No more intervals follow. */
	void (*finish)(struct ow_exchange *x);
	/* Whether it waits for the other point. */
	bool (*waits)(const struct ow_slot *slot);
	/* Gives up an interval. */
	void (*unknown)(struct ow_exchange *x, struct ow_slot *slot, const char *cause);
	void (*total)(const struct ow_exchange *x, struct ow_interval_result *ret_total);
};
extern const struct ow_role ow_sender_role, ow_receiver_role;

struct ow_method_ops;

/* struct ow_sender and struct ow_receiver begin with it. */
struct ow_exchange {
	const struct ow_role *role;
	const struct ow_method_ops *method;
	struct ow_exchange_options options;
	struct ow_exchange_sinks sinks;
	size_t slot_size;
	struct ow_slot **slot; /* by rising interval */
	size_t slots, room;
	int64_t next_interval; /* interval of the next packets; -1 = none came yet */
	int64_t now_ns;        /* time of the latest call, */
	int64_t entered_ns;    /* and the same by the steady clock */
	int64_t ahead_ns;      /* offset of the other point's clock, at least; INT64_MIN = unknown */
	bool finished;         /* no more intervals follow */
	bool connected;
	size_t retain_bytes;
	unsigned shift;              /* the shift that the recorder has */
	int64_t refined;             /* up to this interval packets may have been recorded with a larger one */
	char ended[OW_MESSAGE_TEXT]; /* why there are no more intervals */
};

/* The receiver pushes at most this many intervals ahead of their results: after an outage thousands may wait. */
#define OW_EXCHANGE_WINDOW 64

struct ow_slot *ow_slot_find(const struct ow_exchange *x, int64_t interval);
/* NULL when out of memory. */
struct ow_slot *ow_slot_add(struct ow_exchange *x, int64_t interval);
void ow_slot_remove(struct ow_exchange *x, struct ow_slot *slot);
void ow_slot_free(struct ow_exchange *x, struct ow_slot *slot);

int ow_exchange_say(struct ow_exchange *x, const struct ow_message *message);
void ow_exchange_say_none(struct ow_exchange *x, int64_t interval, const char *reason);
/* Sets the shift of the recorder. */
void ow_exchange_set_shift(struct ow_exchange *x, unsigned shift);
/* The other point had to sample more coarsely in this interval: informs the recorder, if it does not know yet. */
void ow_exchange_raise_shift(struct ow_exchange *x, unsigned shift, int64_t interval);
/* The shift of the receiver's intervals that is nearest to this one and allowed. */
static inline int64_t ow_exchange_cut(const struct ow_exchange *x, int64_t shift_ns)
{
	int64_t most_ns = x->options.shift_max_ns;
	return shift_ns < 0 ? 0 : shift_ns < most_ns ? shift_ns : most_ns;
}
/* The end of an interval, without a shift. */
static inline int64_t ow_exchange_end_ns(const struct ow_exchange *x, int64_t interval)
{
	return (int64_t)((uint64_t)x->options.t0_ns + (uint64_t)(interval + 1) * (uint64_t)x->options.length_ns);
}
/* By what it is measured how long things take. */
static inline int64_t ow_exchange_steady_ns(const struct ow_exchange *x)
{
	return x->sinks.steady_ns ? x->sinks.steady_ns(x->sinks.arg) : ow_clock_steady_ns();
}
/* Name of the other point. */
const char *ow_exchange_peer(const struct ow_exchange *x);
/* A result with everything that is known before the comparison. */
void ow_exchange_blank(const struct ow_exchange *x, int64_t interval, struct ow_interval_result *ret_result);

struct ow_receiver_scope;

/* exchange_times.c. -EPROTO: the names cannot be read; -ENOMEM, -EMSGSIZE. shared: if the lane compares shared flows;
 * those of this interval are added. */
int ow_exchange_say_times(struct ow_exchange *x, const struct ow_slot *slot, const struct ow_message_names *names,
                          struct ow_shared_flows *shared, struct ow_receiver_scope *scope, struct ow_error *err);

/* exchange_result.c */
void ow_result_to_message(const struct ow_interval_result *result, struct ow_interval_result *ret_message);
/* Makes estimates whole numbers where that is nothing beside their interval, and its ends wider: they take fewer bytes. */
void ow_result_round(struct ow_interval_result *result);
