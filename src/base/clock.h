/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_CLOCK_H
#define OW_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* How well this host's clock is known, by what the kernel says of it (adjtimex). */
struct ow_clock_state {
	bool synchronised; /* something disciplines the clock */
	int64_t error_ns;  /* its bound on the error; INT64_MAX when not synchronised. 0 only of a clock against itself
	                    */
};
#define OW_CLOCK_UNKNOWN INT64_MAX

void ow_clock_state(struct ow_clock_state *ret_state);
int64_t ow_clock_real_ns(void);
int64_t ow_clock_steady_ns(void); /* CLOCK_MONOTONIC: for durations */
/*
 * A stamp that the kernel took of a packet, as a time of the clock above: the same number. Every stamp of a live source
 * comes by here, so that a test can link another clock than that of the host (tests/system/injected_clock.c), of which
 * both the readings and the stamps step.
 */
int64_t ow_clock_stamp_ns(int64_t kernel_ns);

#endif
