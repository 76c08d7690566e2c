/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/scope_flow.h"
#include "synopsis/synopsis.h"

/*
 * What it means that a packet of the sending point found no counterpart: it is lost, or its flow does not pass the
 * other point. scope_verdict.c has the formulas.
 *
 * Who calls when, at A (live) or for side A of two captures:
 *
 *     interval i was compared, in rising order     ow_scope_verdict_note    all its packets, and which of them matched
 *     a packet of an earlier interval was matched  ow_scope_verdict_late    that flow, and when it was sent
 *     interval j is final                          ow_scope_verdict_judge   its packets that are still unmatched
 *
 * The verdict on j uses matches of up to `horizon` intervals after j: so note(j + horizon) comes before judge(j),
 * unless the recording ends. The caller keeps the flows of j (struct ow_scope_flow) and its unmatched packets until then.
 *
 * Memory grows with the flows, to 16 MiB for OW_SCOPE_FLOWS_MAX flows and 8 MiB each for OW_SCOPE_NETWORKS_MAX pairs
 * and destinations. When a table is full, the quarter that was not used for longest goes. What was used within the present
 * tick (an interval, or half of the waiting time) stays; what is new then gets no entry. A flow without entry is judged
 * as one that never matched, by its pair and its destination. So a flood costs evidence, but makes no loss of flows
 * that do not pass B.
 */
#define OW_SCOPE_FLOWS_MAX    98304u
#define OW_SCOPE_NETWORKS_MAX 49152u
#define OW_SCOPE_EVENTS_MAX   16 /* of a call; further ones are summed up in the last */

struct ow_scope_verdict_options {
	int64_t length_ns; /* of an interval */
	uint32_t horizon;  /* intervals until an interval is final, 1 .. 1024 */
	uint64_t secret;   /* random, of this point alone: places in tables */
};

enum ow_scope_fate {
	OW_SCOPE_LOST,
	OW_SCOPE_LOST_WHOLE, /* lost with all of its flow after it, or for longer than loss explains: gone another way? */
	OW_SCOPE_ABSENT,     /* of a flow that does not pass B, though others between these networks do */
	OW_SCOPE_UNSHARED,   /* of networks of which nothing passes B */
};

/* An unmatched packet. */
struct ow_scope_packet {
	uint32_t flow;   /* index in the flows of its interval */
	int64_t time_ns; /* since the start of its interval */
	bool compared;   /* its key was seen: it cost bytes */
};

struct ow_scope_sums {
	uint64_t lost;     /* with whole */
	uint64_t whole;    /* lost_whole_flows */
	uint64_t absent;   /* a part of unshared */
	uint64_t unsure;   /* a part of absent: of short flows that may as well be lost */
	uint64_t unshared; /* lost + unshared = unmatched packets */
	uint64_t networks; /* distinct destination networks of unshared packets that are not absent */
};

enum ow_scope_event_kind {
	OW_SCOPE_STOPPED,  /* flows that passed B do not any more, for longer than the waiting time, and go on at A */
	OW_SCOPE_BACK,     /* some of those pass again */
	OW_SCOPE_REROUTED, /* flows arrive with another TTL, and were sent with the same */
	OW_SCOPE_SPRAYED, /* many flows of a destination lose a steady share, as if packets went different ways in turn */
	OW_SCOPE_MISSING, /* the share of absent flows rose: another way for new flows, or a black hole */
};

struct ow_scope_event {
	enum ow_scope_event_kind kind;
	int64_t interval;   /* in which it began */
	int64_t time_ns;    /* within that: the first packet that did not pass, or passed again */
	uint32_t flows;     /* how many */
	uint8_t network[6]; /* the longest prefix of their destinations */
	uint8_t bits;       /* of it: 8 .. 24, IPv6 16 .. 48; 0 = several networks */
	uint8_t version;
	int8_t ttl_change; /* REROUTED: TTL at B, now less before */
	double share;      /* SPRAYED: of the packets that does not pass; MISSING: of the new flows */
};

struct ow_scope_verdict;

int ow_scope_verdict_create(const struct ow_scope_verdict_options *options, struct ow_scope_verdict **ret_verdict);
void ow_scope_verdict_free(struct ow_scope_verdict *verdict);

/* Interval i: its flows, its packets in order of time with the number of their flow, from 1, and whether each matched.
 * Packets of unknown flows (0) say nothing. -EINVAL: not later than the last one, or a flow beyond the flows. -ENOMEM:
 * nothing is noted. */
int ow_scope_verdict_note(struct ow_scope_verdict *verdict, int64_t interval, const struct ow_scope_flow *flows,
                          size_t flow_count, const struct ow_sighting *packets, const uint8_t *matched, size_t count);
/* A packet of an earlier interval matched late. To be called before the interval that has it is noted. */
void ow_scope_verdict_late(struct ow_scope_verdict *verdict, int64_t interval, const struct ow_scope_flow *flow,
                           int64_t time_ns);
/* B's answer (scope_keys.h) says that flows of these pairs have another TTL. */
void ow_scope_verdict_ttl(struct ow_scope_verdict *verdict, int64_t interval, const uint64_t *pair_keys,
                          const int8_t *change, size_t count);
/* Interval j is final. `unmatched` in order of time; those whose key was not seen belong to it, too. fate: one of enum
 * ow_scope_fate for each. -EINVAL as above, -ENOMEM. */
int ow_scope_verdict_judge(struct ow_scope_verdict *verdict, int64_t interval, const struct ow_scope_flow *flows,
                           size_t flow_count, const struct ow_scope_packet *unmatched, size_t count, uint8_t *fate,
                           struct ow_scope_sums *ret_sums);

/* Events that are ready; to be called after each judge. What grows is kept for up to 3 calls, so that the flows of one
 * event are told together. `events` has room for OW_SCOPE_EVENTS_MAX. Returns their number. */
size_t ow_scope_verdict_events(struct ow_scope_verdict *verdict, struct ow_scope_event *events);
/* Keys of pairs that cost less as FINE, for ow_scope_make_fine: at most max, each told once a generation. */
size_t ow_scope_verdict_fine(struct ow_scope_verdict *verdict, uint64_t *pair_keys, size_t max);
