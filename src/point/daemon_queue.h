/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_QUEUE_H
#define OW_POINT_DAEMON_QUEUE_H

#include <stdint.h>

struct ow_daemon;

/* Breaks the connection of the peer that reads least, if too much data waits. */
void ow_daemon_queues_bound(struct ow_daemon *daemon, int64_t steady_ns);

#endif
