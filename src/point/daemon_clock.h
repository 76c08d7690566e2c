/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct ow_daemon;

/* Handles a clock step: all lanes end, and the points agree again. */
void ow_daemon_clock_stepped(struct ow_daemon *daemon, int64_t step_ns);
/* Updates the state of the clock, and continues what a step has started. */
void ow_daemon_clock_tick(struct ow_daemon *daemon);
