/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon_lane.h"

/* A lane with intervals of at most this length ends at the end of one. */
#define OW_QUICK_NS INT64_C(2000000000)

struct ow_chunk;

/*
 * Processes what the recorder has delivered; passed_ns: the time that all sources have passed, INT64_MAX = all have
 * ended. Frees the chunks.
 */
void ow_daemon_lanes_take(struct ow_daemon *daemon, struct ow_chunk *chunks, int64_t passed_ns);
/* Logs what a segment measures with times that are taken at two kinds of places. */
void ow_daemon_log_mixes(struct ow_daemon *daemon);
void ow_daemon_lanes_tick(struct ow_daemon *daemon);
/* The same peer is connected again. */
void ow_daemon_lanes_connected(struct ow_daemon_peer *peer);
/* The connection is lost. */
void ow_daemon_lanes_disconnected(struct ow_daemon_peer *peer);
/* The peer ends the lane before this interval, with a reason. */
void ow_daemon_lane_bye(struct ow_daemon_peer *peer, uint32_t wire, int64_t interval, const char *why);
/* Ends the lane after the last closed interval, here and at the peer, because the clock was set. */
void ow_daemon_lane_break(struct ow_daemon_lane *lane, const char *why);
/* Ends the lane with the current interval, here and at the peer. A lane without an agreement is removed. */
void ow_daemon_lane_stop(struct ow_daemon_lane *lane, const char *why);
/* No lane continues after the current interval. */
void ow_daemon_lanes_stop(struct ow_daemon *daemon, bool at_once);
/* Whether all lanes have given their last result. */
bool ow_daemon_lanes_done(const struct ow_daemon *daemon);
