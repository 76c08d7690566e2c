/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_BASE_STEPS_H
#define OW_BASE_STEPS_H

#include "base/clock.h"

/*
 * Whether this host's clock was set. CLOCK_REALTIME less CLOCK_MONOTONIC is constant: the kernel slews both alike,
 * whatever a daemon does to their rate, and only setting the time (settimeofday, ADJ_SETOFFSET), a leap second or a
 * suspended host changes the difference. (CLOCK_MONOTONIC_RAW is not slewed: against it a slew of 500 ppm looks like a
 * step of 1 ms every 2 s.) So a step is seen as exactly as both clocks can be read at once, some 100 ns.
 *
 * A timer with TFD_TIMER_CANCEL_ON_SET would tell of the same events, but not by how much, and when it pleases. Who
 * looks here after having taken packets has seen every step that came before their stamps.
 */

/* Both clocks at one moment: the difference is within low .. high. */
struct ow_steps_reading {
	int64_t steady_ns;
	int64_t low_ns, high_ns; /* real less steady */
};

struct ow_steps {
	uint64_t count; /* steps so far */
	bool begun;
	int64_t offset_ns; /* real less steady: what all times are told by until a step is */
};

/*
 * Steps of at most this are no event: the bound on the clock's error, but no more than 100 us, which matter to every
 * delay, and no less than 1 us, below which reading two clocks says nothing. What stays below adds up: the clock is
 * never further from the last event.
 */
#define OW_STEPS_LEAST_NS INT64_C(1000)
#define OW_STEPS_MOST_NS  INT64_C(100000)
int64_t ow_steps_threshold(const struct ow_clock_state *clock);

/* Reads both until that was done within `within_ns` (or as well as 64 attempts can). */
void ow_steps_read(int64_t within_ns, struct ow_steps_reading *ret_reading);
/* By how much the clock was set since the last call, positive = forward; 0 = not by more than the threshold. */
int64_t ow_steps_check(struct ow_steps *steps, const struct ow_steps_reading *reading, int64_t threshold_ns);
/* Real time as of the last check. Goes on evenly, also where the clock has been set meanwhile. */
int64_t ow_steps_now_ns(const struct ow_steps *steps);

/* "+1.000 s", "-3600 s", "+250.0 us". */
#define OW_STEP_TEXT 40
void ow_step_text(int64_t step_ns, char text[OW_STEP_TEXT]);

#endif
