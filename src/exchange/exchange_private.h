/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_EXCHANGE_EXCHANGE_PRIVATE_H
#define OW_EXCHANGE_EXCHANGE_PRIVATE_H

#include "estimate/fold_steps.h"
#include "exchange/exchange.h"
#include "result/run_total.h"
#include "reconcile/keyset.h"
#include "reconcile/rda_peel.h"

/*
 * Internal to the exchange: the intervals that are under way, each in a slot.
 *
 *   exchange.c          slots, pages, frames to where they belong, time that runs out
 *   exchange_send.c     the sending point: stages of an interval, results
 *   exchange_fold.c     its comparison by fold
 *   exchange_rda.c      and by RDA
 *   exchange_identical.c  its packets that are like some that still wait
 *   exchange_receive.c  the receiving point: answers, results that it is told
 *   exchange_result.c   results as messages
 */

/* What the sending point waits for. From OW_STAGE_NAMED on it knows which packets only it has. */
enum ow_stage {
	OW_STAGE_OPEN,    /* its own page, or the other's synopsis */
	OW_STAGE_AGAIN,   /* the synopsis of fewer packets */
	OW_STAGE_SECOND,  /* a second fold */
	OW_STAGE_MINHASH, /* rda */
	OW_STAGE_TABLE,
	OW_STAGE_PEELED, /* its turn: fold */
	OW_STAGE_NAMED,  /* times and sums */
	OW_STAGE_CLEAN,  /* clean buckets: the packets could not be told apart */
	OW_STAGE_READY,  /* nothing: compared */
	OW_STAGE_UNKNOWN,
};

/* What the sending point found. */
struct ow_outcome {
	struct ow_interval_result result;
	struct ow_sighting *only_a, *only_b; /* named as settle wants it */
	size_t only_as, only_bs;
	struct ow_reconciled_delay delay;
	uint64_t differences;
	bool estimated; /* packets are not told apart: the result stands as it is */
};

struct ow_slot {
	int64_t interval;
	struct ow_interval_packets *page; /* NULL: not closed yet, or no longer needed */
	struct ow_clock_state clock;
	int64_t since_ns; /* when it began to wait */
	bool noticed;     /* it was told that there is no answer yet */

	/* The sending point. */
	enum ow_stage stage;
	bool pushed;                       /* the other's counts are here: */
	struct ow_message_synopsis theirs; /* without the synopsis itself, which is */
	struct ow_synopsis *synopsis;
	size_t held; /* bytes of it */
	struct ow_fold_steps steps;
	struct ow_rda_peel peel;
	struct ow_synopsis *table, *other_table; /* RDAs: this point's, the other's */
	uint64_t *asked;                         /* ids whose times were asked for */
	size_t askeds;
	struct ow_reconciled_plan plan;
	uint8_t *request; /* the last one, to be sent again */
	size_t request_size;
	int64_t requested_ns; /* steady */
	struct ow_result_cost cost;
	struct ow_outcome outcome;

	/* The receiving point. */
	unsigned banks;            /* of the fold that was pushed */
	unsigned answers;          /* that were given */
	uint64_t seen, seen_total; /* packets of its page, at most, and with those outside the sample */
	bool under_way;            /* pushed on this connection */
	bool told, told_final, emitted;
	struct ow_interval_result provisional, final;
};

/* A result as it was sent, until the other point has confirmed it. */
struct ow_told {
	int64_t interval;
	bool unknown; /* the other point would find out by itself */
	uint8_t *frame;
	size_t size;
};

struct ow_exchange {
	struct ow_exchange_options options;
	struct ow_exchange_sinks sinks;
	struct ow_reconciled_options reconciled;
	struct ow_slot **slot; /* by rising interval */
	size_t slots, room;
	int64_t next_page;    /* interval of the next page; -1 = none came yet */
	int64_t now_ns;       /* of the latest call, */
	int64_t entered_ns;   /* and then by the steady clock */
	bool finished, final; /* no more pages; everything has been told */
	bool connected;
	size_t retain_bytes;
	unsigned shift;              /* that the recorder was told */
	int64_t refined;             /* up to this interval pages may have been recorded with a larger one */
	char ended[OW_MESSAGE_TEXT]; /* why there are no more pages */

	/* The sending point. */
	int64_t ahead_ns; /* the other's clock, at least */
	bool met;         /* a filter that names the link layer has taken packets at both points */
	struct ow_interval_results *settle;
	int64_t next_settled; /* intervals before this one are behind us */
	struct ow_slot *settling;
	/* Names of packets that settle was given as missing: of the latest intervals, at least as many as the horizon,
	 * and at most twice as many. Most packets are in neither: asking settle for each would take longer. */
	struct ow_keyset missing[2];
	uint32_t missing_age; /* intervals in the first */
	bool missing_unknown; /* out of memory: ask settle always */
	struct ow_told *tell; /* oldest first */
	size_t tells;

	/* The receiving point. */
	double expected;     /* differences of an interval; NAN = none known yet */
	int64_t asked_until; /* the other asked for intervals up to this one; -1 = none */
	int64_t next_final;  /* all before have their final results */
	struct ow_run_total *total;
	struct ow_delays *no_delays;
};

/* The receiving point pushes at most so many intervals ahead of their results: after an outage thousands may wait. */
#define OW_EXCHANGE_WINDOW 64

/* exchange.c */
struct ow_slot *ow_slot_find(const struct ow_exchange *x, int64_t interval);
/* NULL when out of memory. */
struct ow_slot *ow_slot_add(struct ow_exchange *x, int64_t interval);
void ow_slot_remove(struct ow_exchange *x, struct ow_slot *slot);
/* Encodes and sends; counts the bytes for the slot, if any. Keeps a request in the slot. */
int ow_exchange_say(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message *message, bool request);
void ow_exchange_say_none(struct ow_exchange *x, int64_t interval, const char *reason);
/* The other point had to sample more coarsely in this interval: the recorder is told so, if it was not yet. */
void ow_exchange_raise_shift(struct ow_exchange *x, unsigned shift, int64_t interval);
/* Name of the other point. */
const char *ow_exchange_peer(const struct ow_exchange *x);
/* A result with all that is known before any comparison. */
void ow_exchange_blank(const struct ow_exchange *x, int64_t interval, struct ow_interval_result *ret_result);
int64_t ow_exchange_start(const struct ow_exchange *x, int64_t interval);

/* exchange_send.c */
int ow_sender_frame(struct ow_exchange *x, const struct ow_message *message, size_t size, struct ow_error *err);
/* Goes on with all intervals as far as possible. */
void ow_sender_advance(struct ow_exchange *x);
/* Gives up on an interval. */
void ow_sender_unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause);
void ow_sender_connected(struct ow_exchange *x);
void ow_sender_finish(struct ow_exchange *x);
int ow_sender_create(struct ow_exchange *x);
void ow_sender_free(struct ow_exchange *x);
/* The counts of both points and the cost so far. */
void ow_sender_result(const struct ow_exchange *x, const struct ow_slot *slot, struct ow_interval_result *ret_result);
/* Asks for something; the slot waits in `stage` for the answer. */
int ow_sender_ask(struct ow_exchange *x, struct ow_slot *slot, enum ow_stage stage, struct ow_message *message);
/* Puts the numbers of an estimate into a result. */
void ow_sender_numbers(const struct ow_estimate *estimate, struct ow_interval_result *result);
/* The interval is compared, but not packet by packet: a result that stands by itself. */
void ow_sender_estimated(struct ow_exchange *x, struct ow_slot *slot, const struct ow_estimate *estimate,
                         const char *cause);

/* exchange_identical.c: before settling; 0 or -ENOMEM. */
int ow_sender_regroup(const struct ow_exchange *x, struct ow_slot *slot);
/* Does a packet of this name wait for its arrival? */
bool ow_sender_waits(const struct ow_exchange *x, uint64_t name);
/* What settle and the other point know a packet by: the first of its copies, by key or by id. */
uint64_t ow_sender_name(const struct ow_exchange *x, const struct ow_slot *slot, uint64_t id);

/* exchange_fold.c, exchange_rda.c. Return 0; -EPROTO when the answer does not fit, and nothing has changed; -ENOMEM. */
int ow_sender_fold_start(struct ow_exchange *x, struct ow_slot *slot);
/* From OW_STAGE_PEELED on; the intervals before must have come so far. */
int ow_sender_fold_name(struct ow_exchange *x, struct ow_slot *slot);
int ow_sender_fold_synopsis(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_synopsis *message,
                            struct ow_error *err);
int ow_sender_fold_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                         struct ow_error *err);
int ow_sender_rda_start(struct ow_exchange *x, struct ow_slot *slot);
int ow_sender_rda_synopsis(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_synopsis *message,
                           struct ow_error *err);
int ow_sender_rda_times(struct ow_exchange *x, struct ow_slot *slot, const struct ow_message_times *times,
                        struct ow_error *err);
/* What a pushed synopsis must be. */
int ow_sender_fold_check(const struct ow_synopsis *synopsis, uint64_t packets, struct ow_error *err);

/* exchange_receive.c */
int ow_receiver_create(struct ow_exchange *x);
void ow_receiver_free(struct ow_exchange *x);
/* Pushes what is waiting, in order, as long as not too much is under way. */
void ow_receiver_push(struct ow_exchange *x);
int ow_receiver_frame(struct ow_exchange *x, const struct ow_message *message, struct ow_error *err);
void ow_receiver_unknown(struct ow_exchange *x, struct ow_slot *slot, const char *cause);
void ow_receiver_emit(struct ow_exchange *x);
void ow_receiver_connected(struct ow_exchange *x);
void ow_receiver_finish(struct ow_exchange *x);

/* exchange_result.c */
void ow_result_to_message(const struct ow_interval_result *result, uint64_t differences,
                          struct ow_message_result *ret_message);
/* The names, interval and times of *result are the caller's. */
void ow_result_from_message(const struct ow_message_result *message, struct ow_interval_result *result);

#endif
