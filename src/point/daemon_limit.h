/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/config.h"
#include "exchange/message.h"

/* Limits on what a peer may use. */
struct ow_daemon;
struct ow_daemon_peer;

/* Whether there is room for a lane that a peer proposes. -ENOSPC. */
int ow_daemon_limit_lane(const struct ow_daemon *daemon, const struct ow_config_segment *segment,
                         const struct ow_message_open *open, struct ow_error *why);
/* Whether its filter is accepted; to be called last, because it takes time. -EINVAL, -EAGAIN, -ENOSPC. */
int ow_daemon_limit_filter(struct ow_daemon_peer *peer, const struct ow_config_segment *segment, const char *filter,
                           unsigned *ret_instructions, struct ow_error *why);
/* Charges the time since then (steady) to the peer, for starting a lane. */
void ow_daemon_peer_spend(struct ow_daemon_peer *peer, int64_t begin_ns);
double ow_daemon_results_per_s(int64_t length_ns);
/* Whether a segment may have this many gaps, with this many results per second. */
bool ow_daemon_limit_gaps(unsigned gaps, double results);
