/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "exchange/comparison.h"
#include "reconcile/scope_keys.h"

/*
 * Scope in the exchange (reconcile/scope_keys.h): the sender announces the flows of each interval with SCOPE, the
 * receiver puts the packets of those that it has into its synopsis and says which these are, and the sender compares
 * only packets of these. At level nat flows have other keys at the other point: there everything is compared, and only
 * the verdict on unmatched packets is by flow.
 */
static inline bool ow_exchange_has_keys(const struct ow_exchange *x)
{
	return x->options.shared && x->options.identity.level == OW_LEVEL_IP;
}

/* Intervals for which the receiver holds packets that may be early; and all options, with a new secret. */
uint32_t ow_exchange_hold(const struct ow_exchange *x);
void ow_exchange_scope_options(const struct ow_exchange *x, struct ow_scope_options *ret_options);

/* -- the sender (sender_scope.c) */

/*
 * A point that has had nothing for some time announces several intervals with one message. It does so at once if it has
 * something, or if the receiver asks because it does.
 */
struct ow_sender_quiet {
	uint32_t idle; /* intervals without anything until now, */
	uint32_t held; /* of these not announced */
	int64_t asked; /* the receiver waits for the intervals up to this one */
};

/* Announces the flows of an interval that was closed. Returns the bytes that this took. */
size_t ow_sender_announce(struct ow_exchange *x, struct ow_scope_announcer *announcer, struct ow_sender_quiet *quiet,
                          const struct ow_slot *slot);
/* Announces what is held. */
void ow_sender_announce_held(struct ow_exchange *x, const struct ow_scope_announcer *announcer,
                             struct ow_sender_quiet *quiet);
/* Announces an interval again, with a list of its keys. Returns the bytes that this took. */
size_t ow_sender_announce_list(struct ow_exchange *x, const struct ow_scope_announcer *announcer, int64_t interval);
/* The connection is back: what was not answered is announced again. */
void ow_sender_announce_again(struct ow_exchange *x, const struct ow_scope_announcer *announcer);
/* The receiver's answer, which comes with the pushed synopsis. -EPROTO, -ENOMEM. */
int ow_sender_take_answer(struct ow_comparison *c, const struct ow_message_scope_answer *message, struct ow_error *err);
/*
 * Packets and answer are here: packets of flows that are not compared move to c->aside. -ESTALE: the points
 * must begin anew; -ENOMEM.
 */
int ow_sender_confirm(struct ow_comparison *c, struct ow_scope_announcer *announcer);
/* The interval is compared: the packets that are aside are at the sender only. */
int ow_sender_add_aside(struct ow_comparison *c);
/* All packets of the interval, and a flag for each: 1 unless only the sender has it. To be freed. 0 or -ENOMEM. */
int ow_sender_matched(const struct ow_comparison *c, struct ow_sighting **ret_packets, uint8_t **ret_matched);

/* -- the receiver (receiver_scope.c) */

struct ow_receiver_scope;

int ow_receiver_scope_create(const struct ow_exchange *x, struct ow_receiver_scope **ret_scope);
void ow_receiver_scope_free(struct ow_receiver_scope *scope);
/* SCOPE of an interval: kept until the interval is closed here. -EPROTO, -ENOMEM. */
int ow_receiver_scope_announced(struct ow_receiver_scope *scope, int64_t interval,
                                const struct ow_message_scope *message, struct ow_error *err);
/* Whether this interval may be announced late, because the sender has nothing. */
bool ow_receiver_scope_is_quiet(const struct ow_receiver_scope *scope, int64_t interval);
/*
 * Finds out the keys of the next one, if it came as a sketch. packets: NULL = this point has no packets of the interval.
 * -EAGAIN: the sketch does not tell them, a list is needed; -EBUSY: it was asked for; -ENOMEM. ret_strange: new keys of
 * this point that are not among them.
 */
int ow_receiver_scope_solve(struct ow_receiver_scope *scope, const struct ow_interval_packets *packets,
                            uint32_t *ret_strange);
/* The next interval that was announced; false if there is none. */
bool ow_receiver_scope_next(const struct ow_receiver_scope *scope, int64_t *ret_interval);
/*
 * Takes the next one. Leaves in `packets` those to be compared, with those of earlier intervals that belong to
 * them, and returns the answer and the packets that turned out to be unshared. packets: NULL = this point has no packets of
 * the interval. -ESTALE: the points must begin anew; -ENOMEM; -EPROTO.
 */
int ow_receiver_scope_take(struct ow_receiver_scope *scope, struct ow_interval_packets *packets,
                           struct ow_scope_answer *ret_answer, uint64_t *ret_unshared, struct ow_error *err);
/* So many packets of this flow are not at the sender. */
void ow_receiver_scope_only(struct ow_receiver_scope *scope, const struct ow_scope_flow *flow, uint32_t packets);
