/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "config/memory_budget.h"

struct ow_daemon;
struct ow_daemon_lane;

/* The number of lanes that the configuration wants. */
unsigned ow_daemon_lanes_wanted(const struct ow_config *config);
/* The number of those lanes, at least, that have no memory yet. */
unsigned ow_daemon_lanes_missing(const struct ow_daemon *daemon);
/*
 * Bytes of the budget for a lane, and the packets of an interval for which they are enough. -ENOMEM if there are none.
 */
int ow_daemon_memory_share(const struct ow_daemon_lane *lane, const struct ow_retention *retention, uint64_t *ret_bytes,
                           size_t *ret_stamps, struct ow_error *err);
