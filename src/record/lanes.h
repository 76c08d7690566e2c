/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/packet_filter.h"
#include "record/recorder.h"
#include <stdatomic.h>

/*
 * The lanes of a recorder. One thread (the controlling thread) changes them; each change makes a new table, which is
 * never changed again. The recording threads switch to the newest table regularly and report which one they use; older
 * ones are then freed.
 */

/* A filter, compiled for each source; lanes with the same filter share it. */
struct ow_lane_filter {
	struct ow_lane_filter *next;
	char *text;
	bool inner;
	uint32_t sources; /* sources that it is compiled for */
	unsigned users;
	struct ow_packet_filter *code; /* by number of the source */
	unsigned count;                /* of sources */
};

struct ow_lane {
	uint32_t number;
	unsigned users; /* number of tables that use it */
	bool gone;      /* removed; used by the controlling thread only */
	struct ow_identity identity;
	uint32_t sources;
	enum ow_heading heading;
	struct ow_lane_filter *filter, *way, *without; /* NULL = none */
	bool way_not, firsts, flows;
	struct ow_scope_hash flow_hash; /* if it notes flows */
	int64_t t0_ns, length_ns;
};

#define OW_NO_FILTER UINT32_MAX

struct ow_lane_entry {
	struct ow_lane *lane;
	unsigned sample_shift;
	struct ow_interval_cuts cuts;
	uint32_t identity;             /* index in the table */
	uint32_t filter, way, without; /* index in the table, or OW_NO_FILTER */
};

struct ow_table_filter {
	const struct ow_packet_filter *code; /* by number of the source */
};

struct ow_lane_table {
	struct ow_lane_table *older;
	uint64_t generation;
	struct ow_identity *identity; /* the identities of the lanes, each once */
	uint32_t identities;
	struct ow_table_filter *filter; /* the filters of the lanes, each once */
	uint32_t filters;
	uint32_t count;
	struct ow_lane_entry entry[]; /* sorted by lane number */
};

struct ow_lanes {
	const uint16_t *linktype; /* of the sources; owned by the caller */
	const char *const *name;
	unsigned sources;
	uint32_t numbers; /* lane numbers given so far */
	struct ow_lane_filter *filter;
	_Atomic(struct ow_lane_table *) newest;
};

/* Creates a table without lanes. 0 or -ENOMEM. */
int ow_lanes_init(struct ow_lanes *lanes, const uint16_t *linktype, const char *const *name, unsigned sources);
/* To be called when no thread uses a table any more. */
void ow_lanes_done(struct ow_lanes *lanes);

/* As ow_recorder_add_lane and so on; for the controlling thread. */
int ow_lanes_add(struct ow_lanes *lanes, const struct ow_lane_options *options, uint32_t *ret_lane,
                 struct ow_error *err);
int ow_lanes_remove(struct ow_lanes *lanes, uint32_t lane);
int ow_lanes_set_shift(struct ow_lanes *lanes, uint32_t lane, unsigned sample_shift);
int ow_lanes_set_cuts(struct ow_lanes *lanes, uint32_t lane, const struct ow_interval_cuts *cuts);
/* Whether there is such a lane; for the controlling thread. */
bool ow_lanes_has(const struct ow_lanes *lanes, uint32_t lane);
/* Whether a lane of this source examines the payload of TCP packets, by its identity or its filters. */
bool ow_lanes_need_payload(const struct ow_lanes *lanes, unsigned source);
/* Frees the tables that are older than the oldest one in use. */
void ow_lanes_reclaim(struct ow_lanes *lanes, uint64_t oldest_used);
