/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct ow_daemon;

/* Breaks the connection of the peer that reads least, if too much data waits. */
void ow_daemon_queues_bound(struct ow_daemon *daemon, int64_t steady_ns);
