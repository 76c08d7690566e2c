/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A sender that timestamps a packet after sending it is late by less than this: an interrupt, a busy core. */
#define OW_LATE_STAMP_NS 100000

/*
 * Warnings about clocks for a delay, with the same texts in all output: a clock error that is larger than the delay,
 * and a negative delay, which is impossible without a clock error.
 */
struct ow_clock_words {
	char beyond[200];   /* "" = the error is smaller than the delay, or unknown */
	char negative[240]; /* "" = no delay is negative */
};

/* Delays in ns, NAN = unknown. error_ns: the sum of both clocks' bounds; NAN = unknown, 0 = one clock for both. behind:
 * which of the two is behind if the delay is negative; NULL = not printed. */
void ow_clock_words(double least_ns, double mean_ns, double error_ns, const char *behind,
                    struct ow_clock_words *ret_words);
