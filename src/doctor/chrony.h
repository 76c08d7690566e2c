/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"

#include <stdint.h>

/*
 * How well this host's clock is known: from chronyd if it runs here, otherwise from the kernel.
 *
 * The kernel's bound (base/clock.h) grows by 500 ppm, 32 ms a minute, until the daemon sets it again. chronyd's bound
 * grows by the error that it found in the clock's frequency. The bound is that of chronyc(1), relative to the top of
 * the NTP tree: |offset| + root dispersion + root delay / 2. ptp4l and phc2sys report to the kernel only.
 *
 * No call blocks: a question is a datagram to chronyd's port on this host, and the answer is read when it has arrived.
 * For one thread only.
 */
struct ow_clocks;

#define OW_CLOCKS_CHRONY_PORT 323 /* "cmdport" of chrony.conf */

/* -ENOMEM. Without a socket the kernel is asked. */
int ow_clocks_create(uint16_t chrony_port, struct ow_clocks **ret_clocks);
void ow_clocks_free(struct ow_clocks *clocks);

/* Asks every 10 s and reads the answer. To be called at least once a second; now_ns is ow_clock_steady_ns. */
void ow_clocks_tick(struct ow_clocks *clocks, int64_t now_ns);
/* The state of the clock now. */
void ow_clocks_state(const struct ow_clocks *clocks, int64_t now_ns, struct ow_clock_state *ret_state);
/* The source of the state: "chrony" or "kernel". */
const char *ow_clocks_source(const struct ow_clocks *clocks, int64_t now_ns);
