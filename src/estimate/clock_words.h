/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_CLOCK_WORDS_H
#define OW_ESTIMATE_CLOCK_WORDS_H

/* A sender that stamps a packet after it has left is late by less than this: an interrupt, a busy core. */
#define OW_LATE_STAMP_NS 100000

/*
 * What the clocks mean for a delay, in the same words wherever one is shown: a clock error that is larger than the
 * delay, and a delay that is negative, which no network makes.
 */
struct ow_clock_words {
	char beyond[200];   /* "" = the error is smaller than the delay, or not known */
	char negative[240]; /* "" = no delay is negative */
};

/* Delays in ns, NAN = not known. error_ns: the bounds of both clocks together; NAN = not known, 0 = one clock for both.
 * behind: who of the two is behind where the delay is negative; NULL = not said. */
void ow_clock_words(double least_ns, double mean_ns, double error_ns, const char *behind,
                    struct ow_clock_words *ret_words);

#endif
