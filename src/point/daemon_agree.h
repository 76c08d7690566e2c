/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "point/daemon_lane.h"

/* Whether the clocks are close enough. Clocks of files always are, because nothing is known about them. */
bool ow_daemon_clocks_fit(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment);
/* The cause of unknown intervals if they do not. */
void ow_daemon_clocks_cause(const struct ow_daemon_peer *peer, char ret_cause[OW_RESULT_CAUSE]);
void ow_daemon_lanes_propose(struct ow_daemon_peer *peer);
void ow_daemon_lane_opened(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_opened *opened);
void ow_daemon_lane_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open);
/* Starts the proposed lanes, all at the same time, so that they get equal parts of the memory. */
void ow_daemon_lanes_accept(struct ow_daemon_peer *peer);
void ow_daemon_lane_refused(struct ow_daemon_peer *peer, uint32_t wire, const char *why);
