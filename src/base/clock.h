/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How well this host's clock is synchronised, according to the kernel (adjtimex). */
struct ow_clock_state {
	bool synchronised; /* a daemon disciplines the clock */
	/* Bound on the error; INT64_MAX if not synchronised. 0 only for a clock compared with itself. */
	int64_t error_ns;
};
#define OW_CLOCK_UNKNOWN INT64_MAX

void ow_clock_state(struct ow_clock_state *ret_state);
/* The worse of both, for a time in which both were seen. */
static inline void ow_clock_state_worse(struct ow_clock_state *sum, const struct ow_clock_state *other)
{
	sum->synchronised &= other->synchronised;
	if (other->error_ns > sum->error_ns)
		sum->error_ns = other->error_ns;
}

/* Tells the clock of this host from those of others: programs that read the same number have the same CLOCK_REALTIME,
 * until the host is booted again. 0 = not known. Reads a file of /proc: to be called before the sandbox closes. */
uint64_t ow_clock_identity(void);
int64_t ow_clock_real_ns(void);
int64_t ow_clock_steady_ns(void); /* CLOCK_MONOTONIC: for durations */
/*
 * Converts a timestamp that the kernel took of a packet to a time of CLOCK_REALTIME: the same number. Every timestamp
 * of a live source passes through this function, so that a test can link a simulated clock
 * (tests/system/injected_clock.c) whose readings and timestamps both step.
 */
int64_t ow_clock_stamp_ns(int64_t kernel_ns);
