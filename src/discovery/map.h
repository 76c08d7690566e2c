/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "discovery/sample_message.h"
#include "estimate/estimate.h"

/* The network that samples show: vantages, what passes from one to another, and what changed. */

enum ow_adjacency {
	OW_NOT_ADJACENT,  /* packets pass both, but always something between them */
	OW_FIRM,          /* nothing that could lie between has missed these packets */
	OW_PROVISIONAL,   /* another vantage may lie between: its sample is too coarse to tell */
	OW_UNKNOWN_ORDER, /* neighbours, but neither TTL nor clocks nor directions tell which is first */
	OW_ADJACENCIES,
};
extern const char *const ow_adjacency_name[OW_ADJACENCIES]; /* "none", "firm", "provisional", "unknown order" */

struct ow_map_vantage {
	char point[OW_SAMPLE_NAME], interface[OW_SAMPLE_NAME];
	enum ow_vantage_kind kind;
	bool bridge;             /* it neither routes nor ends packets: TTLs stay */
	uint64_t packets, drops; /* in the last epochs; drops of the capture */
	uint64_t epochs;         /* that could be compared */
	double least_share;      /* pairs with a smaller share of its packets may not have been seen yet */
};

/* What passed `from` and then `to`: indexes of vantages. */
struct ow_map_pair {
	uint32_t from, to;
	enum ow_adjacency adjacency;
	uint64_t packets; /* of the sample */
	bool ttl_void;    /* a device between them rewrites TTLs */
	bool hops_known;  /* from here on: usual number of routers between, by TTL */
	uint8_t hops;
	struct ow_value share;    /* of the packets of `from` that also pass `to` */
	struct ow_value delay_ns; /* mean, by both clocks: with the difference of their offsets */
	int64_t offset_least_ns,
		offset_most_ns; /* of the clock of `to` less that of `from`; INT64_MIN, _MAX: unknown */
	struct ow_value loss;   /* of flows that pass both */
	bool loss_at_most;      /* the capture at `to` dropped frames, so loss is an upper bound */
	uint64_t lost, loss_packets;
	uint32_t between; /* of a provisional pair: a vantage that may lie between */
};

/* Flows that passed both vantages and no longer do. */
struct ow_map_change {
	int64_t epoch, time_ns;
	uint32_t from, to;
	uint64_t packets, missing; /* of these flows in the epoch: at `from`; of them not at `to` */
	uint32_t flows;            /* at least */
};

/* What could not be used. */
struct ow_map_counts {
	uint64_t epochs, messages;
	uint64_t missing;                       /* epochs of vantages without message, after their first */
	uint64_t incomplete;                    /* messages that do not cover their epoch */
	uint64_t clock_steps;                   /* another clock generation */
	uint64_t other_keys;                    /* messages under another key than most */
	uint64_t late, ahead;                   /* messages that came too late, or from a clock that is far ahead */
	uint64_t refused;                       /* messages beyond the limits for vantages */
	uint64_t packets;                       /* trajectories that were settled */
	uint64_t copies, repeats, spans, loops; /* dropped: identical packets; seen twice at a vantage; longer than 3 s,
	                                           or clocks that differ by as much; contradictions of their order */
	uint64_t rewritten;                     /* dropped: TTLs that a point has set tell no order */
	uint64_t clock_contradictions;
	uint64_t pairs_refused; /* pairs beyond the limit */
};

struct ow_map {
	int64_t from_ns, until_ns;      /* epochs that were settled */
	struct ow_map_vantage *vantage; /* by point, interface, kind */
	uint32_t vantages;
	struct ow_map_pair *pair; /* by from, to */
	uint32_t pairs;
	struct ow_map_change *change; /* oldest first */
	uint32_t changes;
	struct ow_map_counts counts;
};

void ow_map_done(struct ow_map *map);
