/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/scope_flow.h"
#include <oneway/error.h>

/*
 * Scope: both points of a lane cut the same set of packets out of an interval before they compare it, the packets that
 * should pass both. A packet belongs to a key of 40 bits:
 *
 *     its pair of networks is FINE           the flow
 *     else its destination network is HOT    the destination network
 *     else                                   the pair of networks (/24, /48)
 *
 * The sending point (A) announces the keys of an interval that are not yet announced in the present generation. The
 * receiving point (B) answers which of them it has seen. Both compare packets of seen keys only. What is only at A
 * is judged afterwards (reconcile/scope_verdict.h), whether its key was seen or not.
 *
 * Who calls when, for interval i:
 *
 *     A  its interval i is closed        ow_scope_announce      -> the update, as SCOPE(i) to B
 *     B  has SCOPE(i) and its interval i ow_scope_receive       -> which flows to put into the synopsis, which flows of
 *                                                                  the intervals before join it, the answer for
 *                                                                  SYNOPSIS(i)
 *     A  has SYNOPSIS(i)                 ow_scope_confirm       -> which flows of its interval i to compare
 *     B  knows packets only it has       ow_scope_received_only
 *
 * A may announce i + 1, i + 2, ... before the answer of i is there. At both points intervals come in rising order.
 *
 * Packets cross the ends of intervals in both directions, and none may get lost here:
 *  - B keeps the packets of an interval whose key is not seen for `hold` further intervals (HELD). They join the
 *    synopsis of the first of these in which the key is seen. Then they are at A in that interval, or before it.
 *  - When a key is seen for the first time, A's packets of it in earlier intervals were not compared, and B may have
 *    some of them in its synopsis only now. So all packets of A that are not matched wait for a packet that is only at
 *    B, also those whose key was not seen.
 *  - While a pair turns FINE or a destination HOT, both keys of a packet count for `overlap` intervals.
 *  - What is at B before it is at A (EARLY) waits for a later packet that is only at A, as in late_packets.h.
 *
 * Generations: A begins one every 32 intervals (or `overlap`, if that is more), earlier if there are many keys. Keys
 * that were not announced in this generation or the one before are forgotten. A key is seen anew in each generation.
 *
 * No step costs anything for a packet but a look at an array of its interval's flows. Not for use by several threads at
 * once. Memory of a lane: at most 8 MiB at each point, for OW_SCOPE_LIVE_MAX keys.
 */
#define OW_SCOPE_KEY_BITS    40
#define OW_SCOPE_UPDATE_MAX  65536u  /* keys of an update: about 209 kB */
#define OW_SCOPE_LIVE_MAX    131072u /* keys of the present and the last generation */
#define OW_SCOPE_LISTED_MAX  16384u  /* pairs that are FINE, destinations that are HOT; each */
#define OW_SCOPE_GENERATION  32      /* intervals */
#define OW_SCOPE_HOT_PAIRS   256u    /* a destination with more new pairs in an interval is HOT */
#define OW_SCOPE_HOLD_MAX    64
#define OW_SCOPE_OVERLAP_MAX 1024
#define OW_SCOPE_FLIGHT_MAX  4096 /* updates that wait for their answer */

/* The key of a hash of struct ow_scope_flow. */
static inline uint64_t ow_scope_key(uint64_t hash)
{
	return hash >> (64 - OW_SCOPE_KEY_BITS);
}

/* The same at both points, but for the secret. */
struct ow_scope_options {
	/* Intervals: packets that arrive so much before the interval they are sent in still find it, 1 .. HOLD_MAX. */
	uint32_t hold;
	/* Intervals that a packet may be late by (the lane's horizon), 1 .. OVERLAP_MAX. */
	uint32_t overlap;
	uint64_t
		secret; /* random, of this point alone: the peer chooses keys, and must not know where tables put them */
};

/* A list of keys: sorted, each once. */
struct ow_scope_list {
	uint64_t *key;
	size_t count;
};

/* SCOPE. Zeroed is empty. */
struct ow_scope_update {
	uint16_t generation;
	bool reset; /* forget everything before */
	struct ow_scope_list hot, fine, keys;
	uint64_t digest; /* of all that is live after this update */
	/* B probably has all keys but so many, and others, at most; a sketch of this capacity tells which (key_sketch.h).
	 * 0 = they are listed. */
	unsigned capacity;
};

/* What SYNOPSIS has for scope. Zeroed is empty. */
struct ow_scope_answer {
	uint64_t digest; /* of the keys seen after this interval */
	uint8_t *seen;   /* bit k: keys.key[k] of the update is seen; (keys.count + 7) / 8 bytes, lowest bit first */
	size_t seen_bytes;
	uint32_t strange;          /* keys of B that are new there, and not in the update */
	struct ow_scope_list late; /* keys of earlier updates that were seen now for the first time */
	struct ow_scope_list fine; /* pairs that B wants FINE: much of what B has of them is not at A */
	/* Keys of pairs of which flows arrive with another TTL than before; and by how much, for each of them. */
	struct ow_scope_list rerouted;
	int8_t *ttl_change;
};

/* Free what they own and make them empty. */
void ow_scope_update_done(struct ow_scope_update *update);
void ow_scope_answer_done(struct ow_scope_answer *answer);

/* -- the sending point -------------------------------------------------------------------------------------------- */

struct ow_scope_announcer;

struct ow_scope_announcer_counts {
	uint64_t live;        /* keys */
	uint64_t fine, hot;   /* listed */
	uint64_t unannounced; /* flows of the last interval without a live key, for the limits above: say so */
	uint64_t resets;
};

int ow_scope_announcer_create(const struct ow_scope_options *options, struct ow_scope_announcer **ret_announcer);
void ow_scope_announcer_free(struct ow_scope_announcer *announcer);

/* Pairs that shall be FINE from the next update on (scope_verdict.h finds them). Beyond the limit they are ignored. */
int ow_scope_make_fine(struct ow_scope_announcer *announcer, const uint64_t *pair_keys, size_t count);
/*
 * ow_scope_confirm returned -ESTALE or -ENOMEM: forgets the updates in
 * flight. The next update is a reset with all live keys; what is too much for one update follows with the next ones.
 * Nothing can be compared before B has it. A connection that breaks needs no reset: A sends what is in flight again, B
 * the answers that A did not get, and ignores updates that it has.
 */
void ow_scope_announcer_reset(struct ow_scope_announcer *announcer);
/* B answered NONE to this interval because digests differ. A reset, unless one came after its update: that one is on its
 * way, and another one would forget it. */
void ow_scope_announcer_lost(struct ow_scope_announcer *announcer, int64_t interval);
/* Updates that have no answer yet. */
size_t ow_scope_flights(const struct ow_scope_announcer *announcer);
/* The nth update, from 0 on, that has no answer yet; NULL if there are not so many. Valid until the next call. */
const struct ow_scope_update *ow_scope_in_flight(const struct ow_scope_announcer *announcer, size_t nth,
                                                 int64_t *ret_interval);

/* Interval i is closed. *ret_update stays the announcer's and is valid until the next call. -EINVAL: the interval is
 * not later than the last one; -ENOSPC: FLIGHT_MAX; -ENOMEM: reset, then try again. */
int ow_scope_announce(struct ow_scope_announcer *announcer, int64_t interval, const struct ow_scope_flow *flows,
                      size_t count, const struct ow_scope_update **ret_update);
/*
 * B's answer to the update of an interval. in_scope[k] becomes 1 for each flow of A's interval that is to be compared,
 * else 0: the same array as was announced. Updates of earlier intervals without an answer (NONE) are applied as well.
 * Wishes of B (fine) are followed with the next update. -ESTALE: the digests differ, so nothing can be compared: reset.
 * -EINVAL: the answer does not fit to the update: reset. -ENOMEM: reset. -ENOENT: there is no such update, or a reset came
 * after it: nothing can be compared, and no other reset is needed.
 */
int ow_scope_confirm(struct ow_scope_announcer *announcer, int64_t interval, const struct ow_scope_answer *answer,
                     const struct ow_scope_flow *flows, size_t count, uint8_t *in_scope, struct ow_error *err);
void ow_scope_announcer_counts(const struct ow_scope_announcer *announcer,
                               struct ow_scope_announcer_counts *ret_counts);

/* -- the receiving point ------------------------------------------------------------------------------------------- */

struct ow_scope_receiver;

/* What happens to the packets of a flow of an interval. */
enum ow_scope_holding {
	OW_SCOPE_PASSED,  /* in a synopsis before, or unshared */
	OW_SCOPE_JOINS,   /* in the synopsis now */
	OW_SCOPE_HOLDS,   /* held: they may join that of a later interval */
	OW_SCOPE_EXPIRES, /* were held and did not join: unshared_received */
};

/* An interval before the present one, some flows of which may join it. */
struct ow_scope_held {
	int64_t interval;
	const uint8_t *joins; /* enum ow_scope_holding of each flow, in the order of that interval */
	size_t flows;
};

int ow_scope_receiver_create(const struct ow_scope_options *options, struct ow_scope_receiver **ret_receiver);
void ow_scope_receiver_free(struct ow_scope_receiver *receiver);

/*
 * B's interval i with A's update of it. in_scope[k]: OW_SCOPE_JOINS: flow k is in the synopsis, OW_SCOPE_HOLDS: its
 * packets are held. The flows stay the caller's and must stay where they are until the interval has been in ret_held
 * with nothing in OW_SCOPE_HOLDS, and one more call was made.
 *
 * ret_held: room for `hold` intervals, the newest first, valid until the next call. The caller has the packets of these
 * intervals. It takes those whose flow joins into the synopsis of i, with times less the distance of the intervals (so
 * they are negative), and numbers copies anew over the union. *ret_answer is to be freed by ow_scope_answer_done.
 *
 * update NULL: A has nothing for this interval. There is no answer. If B has nothing, it still applies A's update, with
 * no flows.
 *
 * -ESTALE: digests differ, or an update is missing: B answers NONE, until an update with reset comes. in_scope is then
 * as without an update. -EINVAL: not after the last interval. -EPROTO: the update breaks its limits. -ENOMEM: as
 * -ESTALE.
 */
int ow_scope_receive(struct ow_scope_receiver *receiver, int64_t interval, const struct ow_scope_update *update,
                     const struct ow_scope_flow *flows, size_t count, uint8_t *in_scope, struct ow_scope_held *ret_held,
                     size_t *ret_helds, struct ow_scope_answer *ret_answer, struct ow_error *err);
/* The keys that A would have announced in this update if it had B's flows of the interval, where it is no reset. The rest of
 * the update is applied; the update itself is to be received next. To be freed. 0 or -ENOMEM. */
int ow_scope_candidates(struct ow_scope_receiver *receiver, int64_t interval, const struct ow_scope_update *update,
                        const struct ow_scope_flow *flows, size_t count, struct ow_scope_list *ret_keys);
/* Packets of this flow were in the synopsis and are not at A (NAMES says so). What costs much is answered as `fine`. */
void ow_scope_received_only(struct ow_scope_receiver *receiver, const struct ow_scope_flow *flow, uint32_t packets);
