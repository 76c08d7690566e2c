/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_DAEMON_CLOCK_H
#define OW_POINT_DAEMON_CLOCK_H

#include <stdint.h>

struct ow_daemon;

/* The clock was set: all lanes end, and the points agree anew. */
void ow_daemon_clock_stepped(struct ow_daemon *daemon, int64_t step_ns);
/* How well it is known; what a step has begun. */
void ow_daemon_clock_tick(struct ow_daemon *daemon);

#endif
