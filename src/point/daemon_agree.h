/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_AGREE_H
#define OW_POINT_DAEMON_AGREE_H

#include "point/daemon_lane.h"

/* Clocks of files say nothing: always. */
bool ow_daemon_clocks_fit(const struct ow_daemon_peer *peer, const struct ow_config_segment *segment);
void ow_daemon_lanes_propose(struct ow_daemon_peer *peer);
void ow_daemon_lane_opened(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_opened *opened);
void ow_daemon_lane_asked(struct ow_daemon_peer *peer, uint32_t wire, const struct ow_message_open *open);
/* Starts what was asked for. All at once, so that they share the memory evenly. */
void ow_daemon_lanes_accept(struct ow_daemon_peer *peer);
void ow_daemon_lane_refused(struct ow_daemon_peer *peer, uint32_t wire, const char *why);

#endif
