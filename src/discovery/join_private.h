/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/id_map.h"
#include "discovery/clock_bounds.h"
#include "discovery/join.h"

/*
 * Private to the join. join.c has messages and batches; trajectory.c groups sightings and puts them in order;
 * pairs.c keeps what is known of two vantages; pair_flows.c has loss and changes of routes, by flow; map.c results.
 */

#define OW_JOIN_NONE  UINT32_MAX
#define OW_JOIN_TTLS  4 /* differences of TTL that a pair remembers */
#define OW_JOIN_SPANS 3 /* batches in which a flow is known to pass a pair */

struct ow_join_message {
	int64_t epoch; /* INT64_MIN: none */
	bool complete;
	uint32_t key_generation;
	uint64_t clock_generation;
	uint64_t tau, packets, drops;
	uint32_t count;
	struct ow_sample_record *record;
	uint8_t *used; /* records that an earlier batch has settled */
};

struct ow_join_vantage {
	bool there;
	char point[OW_SAMPLE_NAME], interface[OW_SAMPLE_NAME];
	enum ow_vantage_kind kind;
	uint32_t clock; /* the number of the point */
	bool bridge;
	bool has_void;       /* TTLs mean nothing with regard to some other vantage */
	int64_t first, last; /* epochs with a message */
	struct ow_join_message message[OW_JOIN_KEPT];
	/* Of the batch: */
	uint64_t tc;       /* 0: not comparable */
	uint64_t packets;  /* of epoch e - 1 */
	double drop_share; /* frames that the capture missed, of all */
	uint64_t *settled; /* ids of settled packets, rising */
	uint32_t settleds, settled_room;
	struct { /* the last batches */
		uint64_t tc, packets;
	} past[OW_JOIN_HALVES];
	/* Over all: */
	double all_packets, all_drops, all_sampled;
	uint64_t epochs;
};

struct ow_join_sighting {
	uint64_t id;
	int64_t time_ns;
	uint32_t flow;
	uint16_t vantage, record;
	uint8_t ttl, outer_ttl, copies;
	bool now; /* of epoch e, not e - 1 */
};

struct ow_join_trajectory {
	uint32_t first, count; /* sightings, in order */
	uint32_t flow;
};

/*
 * A mean of sampled packets. A packet of a share f of all has weight w = 1 / f, because epochs are sampled unevenly:
 *
 *     mean = sum w x / sum w      variance = sum w^2 (1 - f) (x - mean)^2 / (sum w)^2
 */
struct ow_join_mean {
	double n, origin; /* of x */
	double w, wx;
	double v, vx, vxx; /* sums with w^2 (1 - f) */
};

/* What is known of packets that pass one vantage and then another. */
struct ow_join_way {
	double packets;
	int16_t ttl[OW_JOIN_TTLS]; /* differences */
	float ttl_count[OW_JOIN_TTLS];
	struct ow_join_mean delay;
	/* share: sums over epochs of N, N num / den, N^2 (1 - den / N) / den */
	double share_n, share_sum, share_variance;
	bool share_begun;
	uint32_t num; /* of this batch */
	uint16_t between[OW_JOIN_BETWEEN_MAX];
	uint8_t betweens;
	double direct, through, strict_direct, strict_through;
	uint64_t tau, strict_tau; /* thresholds of these counts */
	uint64_t batch_tau, batch_strict;
	uint16_t coarsest; /* the vantage that strict_tau is of */
	bool wants_strict; /* of this batch */
	double loss_packets, lost, loss_drops;
	double loss_weight, lost_weight, loss_squares; /* as those of a mean */
	/* of this batch: packets of known flows, those that did not arrive, and some of their flows */
	uint32_t known, missing, missing_flow[2], missing_flows;
	double usual_known, usual_missing; /* those of batches before */
	int64_t seen;                      /* the last batch */
};

/* Two vantages, a < b; way[0] is from a to b. */
struct ow_join_pair {
	uint16_t a, b;
	double n, far;           /* packets with TTLs; with TTLs that differ by more than 40 */
	uint8_t low[2], high[2]; /* TTLs at a and at b */
	double equal;            /* of one point: packets with equal TTLs, in and out */
	bool ttl_void;
	int8_t downstream; /* ttl_void: 1: b is, -1: a is, 0: not known */
	double ties, tie_direct;
	/* of this batch: times at b less those at a of packets whose order is open; and what twins say */
	uint32_t twin_n;
	double twin_sum, twin_squares;
	int8_t twin;
	struct ow_join_way way[2];
};

/* A packet that passed both vantages of a way. TIE: their order is open, and nothing else can lie between. */
enum ow_join_how { OW_JOIN_UNCLEAR, OW_JOIN_TIE, OW_JOIN_DIRECT, OW_JOIN_THROUGH };
struct ow_join_passage {
	uint64_t id;
	uint32_t pair;
	uint8_t way, how;
};

/* Packets of a flow that passed two vantages, at the first of them. */
struct ow_join_flow {
	uint32_t flow;
	uint16_t a, b;
	int64_t first_ns, last_ns;
};

struct ow_join_batch { /* what is kept of a batch for loss */
	int64_t epoch;
	struct ow_join_sighting *sighting;
	struct ow_join_trajectory *trajectory;
	uint32_t sightings, trajectories;
	struct ow_join_flow *flow;
	size_t flows, flow_room;
	uint64_t *tc;
	uint8_t *dropped; /* whether the capture of a vantage missed frames */
	uint32_t vantages;
};

struct ow_join {
	int64_t epoch_ns, settled; /* the last batch; INT64_MIN: none */
	int64_t first;             /* the first batch that settles packets, INT64_MIN: none */
	struct ow_join_vantage *vantage;
	uint32_t vantages, room;
	struct ow_join_pair *pair;
	uint32_t pairs, pair_room;
	struct ow_id_map pair_map;
	struct ow_clock_bounds *bounds;
	/* of the batch: */
	struct ow_join_sighting *sighting;
	uint32_t sightings, sighting_room;
	struct ow_join_trajectory *trajectory;
	uint32_t trajectories, trajectory_room;
	struct ow_join_passage *passage;
	size_t passages, passage_room;
	uint32_t *twin; /* pairs with packets whose order is open */
	uint32_t twins, twin_room;
	struct ow_join_batch batch[OW_JOIN_SPANS]; /* [0] is the latest */
	/* flows that NAT joins: a hash and a smaller one of the same flow */
	struct {
		uint32_t flow, same;
	} * alias;
	uint32_t aliases, alias_room;
	struct ow_id_map alias_map;
	struct ow_map_change change[OW_JOIN_CHANGES_MAX];
	uint32_t changes; /* ever; the place of the next one modulo OW_JOIN_CHANGES_MAX */
	uint64_t batches;
	struct ow_map_counts counts;
};

/* The message of an epoch; NULL: there is none. */
static inline struct ow_join_message *ow_join_message_of(struct ow_join_vantage *v, int64_t epoch)
{
	struct ow_join_message *m = &v->message[(uint64_t)epoch % OW_JOIN_KEPT];
	return m->epoch == epoch ? m : NULL;
}

/* pairs.c */
/* The pair of two vantages; it is made if there is none. OW_JOIN_NONE: out of memory, or too many. */
uint32_t ow_join_pair_of(struct ow_join *join, uint32_t x, uint32_t y);
/* NULL: there is none. */
struct ow_join_pair *ow_join_pair_find(const struct ow_join *join, uint32_t x, uint32_t y);
static inline struct ow_join_way *ow_join_way(struct ow_join_pair *pair, uint32_t from)
{
	return &pair->way[pair->a != from];
}
static inline uint32_t ow_join_other(const struct ow_join_pair *pair, unsigned way)
{
	return way ? pair->a : pair->b;
}
/* After the order of all trajectories is known. -ENOMEM. */
int ow_join_count_pairs(struct ow_join *join);
/* Forgets pairs that were not seen for long, and vantages that are gone; halves what is old. */
void ow_join_age(struct ow_join *join);
/* The usual difference of TTL; false: there is none. */
bool ow_join_usual_ttl(const struct ow_join_way *way, int *ret_difference);
enum ow_adjacency ow_join_adjacency(const struct ow_join *join, const struct ow_join_pair *pair, unsigned way);

/* trajectory.c */
/* Groups the sightings of the batch into trajectories and puts each in order. -ENOMEM. */
int ow_join_find_trajectories(struct ow_join *join, int64_t epoch);
/* One hash for all hashes of a flow. */
uint32_t ow_join_flow_of(const struct ow_join *join, uint32_t flow);

/* The share of all ids that are below a threshold. */
static inline double ow_join_share_below(uint64_t tau)
{
	return ((double)tau + 1) / 0x1p64;
}

/* pair_flows.c */
/* Loss of the batch before, changes of this one; keeps the batch. -ENOMEM. */
int ow_join_count_flows(struct ow_join *join, int64_t epoch);
void ow_join_batch_done(struct ow_join_batch *batch);
