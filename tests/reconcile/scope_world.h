/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/scope_keys.h"
#include "reconcile/scope_verdict.h"

/*
 * Two points and the way between them, packet by packet, with all that scope does: the truth is known. Comparison finds
 * exactly what differs, as a fold that is large enough does. Everything goes through ow_scope_* as between two daemons,
 * the lists as sizes of their encoding.
 */

enum trip_fate { TRIP_ARRIVES, TRIP_LOST, TRIP_ELSEWHERE, TRIP_ONLY_B };

/* A packet. */
struct trip {
	uint32_t flow;               /* index of the world's flows */
	int64_t sent_ns, arrived_ns; /* those that its fate has */
	enum trip_fate fate;
	uint8_t ttl_b; /* TTL at B; 0 = not told */
	/* Filled by scope_world_run: */
	int64_t a_interval, b_interval;
	int64_t compared, matched; /* interval of B's synopsis, of the match; -1 = none */
	bool in_scope;             /* A compared it */
	bool judged;
	uint8_t verdict; /* enum ow_scope_fate, if judged */
};

struct scope_world {
	struct ow_scope_flow *flows;
	size_t flow_count;
	struct trip *trips;
	size_t trip_count;
	int64_t length_ns;
	uint32_t horizon, hold;
	const int64_t *edge_ns; /* NULL, or how much later than A's B's interval i begins; of intervals + 1 */
	int64_t intervals;
	unsigned ahead;   /* updates that are in flight */
	int64_t break_at; /* B forgets an update here: digests differ; 0 = never */
	int64_t fine_at;  /* all pairs are FINE from here on; 0 = as the costs say */
};

#define WORLD_EVENTS_MAX 256
struct scope_account {
	uint64_t sent, arrived, lost, elsewhere; /* the truth, of judged packets */
	uint64_t false_lost, false_whole;        /* elsewhere, and called lost */
	uint64_t missed, missed_absent;          /* lost, and not called so */
	uint64_t strays;                         /* arrived, but not matched */
	uint64_t unknown;                        /* intervals without an answer */
	struct ow_scope_sums sums;
	double scope_bytes, answer_bytes, waste_bytes;
	uint64_t received, in_synopsis, expired; /* at B; what is left is held at the end */
	struct ow_scope_event event[WORLD_EVENTS_MAX];
	size_t events;
	uint64_t unannounced;
	struct ow_scope_announcer_counts counts;
};

/* Aborts a test by cmocka where packets are not conserved, or are compared twice. */
void scope_world_run(struct scope_world *world, struct scope_account *ret_account);
