/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/random.h"
#include "point/daemon.h"
#include "point/daemon_gap.h"
#include "point/daemon_group.h"
#include "point/daemon_lane.h"
#include "point/daemon_unauthenticated.h"
#include "point/point_clock.h"
#include "point/scheduler.h"
#include "record/lane_log.h"

/*
 * The daemon, for its own modules. Each calls only those below it, which tools/check-calls holds them to:
 *
 *   daemon.c               opens all, passes what the scheduler says on, and the end
 *   daemon_reload.c        another configuration
 *   daemon_clock.c         a clock that is set, and one that is not disciplined any more
 *   daemon_trust.c         certificates that expire
 *   daemon_connections.c   making, accepting, driving and dropping connections
 *   daemon_peer.c          what is said on them
 *   daemon_agree.c         lanes that are agreed on
 *   daemon_identity.c      what makes a packet the same at both points
 *   daemon_record.c        what goes through lanes, and their end
 *   daemon_lane.c          a lane
 *   daemon_gap.c           intervals without a lane
 *   daemon_group.c         lanes to several peers of a segment, joined
 *   daemon_limit.c, daemon_memory.c                   what peers and lanes may cost
 *   daemon_unauthenticated.c, daemon_queue.c          what connections may cost
 *   daemon_link.c          a connection
 *   daemon_events.c, point_clock.c, scheduler.c
 */

/* Peers, including those that a reload has removed and that still have lanes. */
#define OW_PEERS_MAX (2 * OW_CONFIG_SEGMENTS_MAX)

/* A recording of flows, for its threads. */
struct ow_daemon_flows {
	const struct ow_flows_sink *sink;
	unsigned recording;
};

/* The identity of a lane with `identity: auto`, at the point that proposes it. */
struct ow_daemon_identity {
	char peer[OW_POINT_NAME], segment[OW_MESSAGE_NAME], class_name[OW_MESSAGE_NAME];
	bool sends;
	enum ow_variant variant;
	int64_t again_ns; /* steady time from which it may be examined again, */
	int64_t pause_ns; /* and the pause after that */
};

struct ow_daemon_identities {
	struct ow_daemon_identity *entry;
	size_t count, room;
};

struct ow_daemon {
	struct ow_daemon_flows flows[OW_CONFIG_FLOWS_MAX];
	const struct ow_config *config;
	struct ow_daemon_options options;
	struct ow_scheduler scheduler;
	struct ow_watch listen, stop, recorded;
	struct ow_recorder *recorder;
	struct ow_sample_collector *samples; /* NULL = none */
	struct ow_lane_logs logs;
	struct ow_daemon_keys *keys;
	struct ow_point_clock clock;
	uint64_t epoch;
	struct ow_random jitter;
	struct ow_daemon_peer *peers[OW_PEERS_MAX];
	unsigned peer_count;
	struct ow_unauthenticated unauthenticated;
	bool hurry; /* a link's turn was over: continue at once */
	struct ow_daemon_lane *lanes[OW_LANES_MAX];
	unsigned lane_count;
	struct ow_daemon_gaps gaps;
	struct ow_daemon_groups groups;
	struct ow_daemon_identities identities;
	uint32_t last_wire;
	uint64_t memory_left;
	int64_t passed_ns;
	int64_t started_ns; /* steady */
	bool stopping, at_once;
	int64_t deadline_ns; /* steady time of the end */
	int64_t expiry_ns;   /* steady time of the next warning about the certificate; 0 = at once */
	bool has_results;    /* since the last flush */
};
