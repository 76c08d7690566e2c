/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"

/*
 * Detects that this host's clock was set. CLOCK_REALTIME less CLOCK_MONOTONIC is constant, because the kernel slews
 * both clocks alike. Only setting the time (settimeofday, ADJ_SETOFFSET), a leap second or a suspend changes the
 * difference. (CLOCK_MONOTONIC_RAW is not slewed: against it a slew of 500 ppm looks like a step of 1 ms every 2 s.) So
 * steps are measured as precisely as both clocks can be read at once, about 100 ns.
 *
 * A timer with TFD_TIMER_CANCEL_ON_SET would report the same events, but not their size, and with an unknown delay. A
 * caller that checks after it has read packets sees every step that happened before their timestamps.
 */

/* Both clocks at one moment: the true difference is from low to high. */
struct ow_steps_reading {
	int64_t steady_ns;
	int64_t low_ns, high_ns; /* real less steady */
};

struct ow_steps {
	uint64_t count; /* steps so far */
	bool begun;
	int64_t offset_ns; /* real less steady, as of the last step */
};

/*
 * Smaller steps are ignored. The threshold is the bound on the clock's error, at most 100 us, because a step of that
 * size matters to every delay, and at least 1 us, because two clocks cannot be compared more exactly. Ignored steps add
 * up: each check compares with the last reported step, so the error never exceeds the threshold.
 */
#define OW_STEPS_LEAST_NS INT64_C(1000)
#define OW_STEPS_MOST_NS  INT64_C(100000)
int64_t ow_steps_threshold(const struct ow_clock_state *clock);

/* Reads both clocks until a reading took at most `within_ns`; after 64 attempts it takes the best. */
void ow_steps_read(int64_t within_ns, struct ow_steps_reading *ret_reading);
/* Returns by how much the clock was set since the last call, positive = forward; 0 = at most the threshold. */
int64_t ow_steps_check(struct ow_steps *steps, const struct ow_steps_reading *reading, int64_t threshold_ns);
/* Real time as of the last check. It advances evenly, even if the clock was set since then. */
int64_t ow_steps_now_ns(const struct ow_steps *steps);

/* "+1.000 s", "-3600 s", "+250.0 us". */
#define OW_STEP_TEXT 40
void ow_step_text(int64_t step_ns, char text[OW_STEP_TEXT]);
