/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_PLANE_WATCH_H
#define OW_PLANE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One segment watched over time: what is usual for it, and whether it has changed.
 *
 * Usual is what the last OW_WATCH_HISTORY intervals without a change say: mean and standard deviation of the intervals'
 * mean delays, and the loss ratio. Each new interval gives a deviation z in units of that standard deviation, turned to
 * the normal scale (with few intervals it is Student's t that z follows). A change is found by a cumulative sum,
 *     C = max(0, C + z - k),   change when C > h,
 * with k = 1.5, which finds a lasting shift of three sigma fastest, and no z beyond 4, so that one wild interval is
 * none. h follows from how often the whole network may cry wolf (ow_watch_threshold). Losses likewise, on the scale on
 * which a Poisson count has variance 1: z = 2 (sqrt(lost + 3/8) - sqrt(expected + 3/8)). The sum also says since when:
 * the first interval after it was last 0.
 */
#define OW_WATCH_HISTORY 128
#define OW_WATCH_LEARN   24  /* intervals before anything is said */
#define OW_WATCH_DRIFT   1.5 /* k */

/* What one interval says of a segment. */
struct ow_watch_sample {
	int64_t start_ns, length_ns;
	bool has_delay, has_loss;
	double mean_ns, stddev_ns;
	double mean_error_ns, stddev_error_ns; /* standard errors by sampling; 0 = exact */
	double clock_error_ns;                 /* bound of both clocks together; NAN = not known */
	uint64_t samples;                      /* delays */
	uint64_t sent, lost;
	bool active; /* by probes */
};

struct ow_watch_level {
	double history[OW_WATCH_HISTORY];
	uint32_t count, next; /* in history */
	double sum;           /* C */
	int64_t since_ns;     /* the first interval of this sum */
	uint32_t intervals;   /* that it has */
	bool changed;
};

struct ow_watch {
	struct ow_watch_level delay, loss;
	double loss_sent, loss_lost; /* of the usual intervals, fading */
	struct ow_watch_sample last;
	double delay_z, loss_z; /* of the last interval; NAN while learning or without a number */
};

/*
 * h for `segments` segments that together may cry wolf once in `intervals` intervals, both for delay and loss. By
 * Siegmund's approximation of the average run length of a cumulative sum of normal deviations. At least so much that
 * two intervals alone are no change.
 */
double ow_watch_threshold(double segments, double intervals);

void ow_watch_init(struct ow_watch *watch);
/* Takes an interval. Without delay or loss that level stays as it is. */
void ow_watch_add(struct ow_watch *watch, const struct ow_watch_sample *sample, double threshold);
/* The usual mean delay and its standard deviation over intervals; false while learning. */
bool ow_watch_usual(const struct ow_watch *watch, double *ret_mean_ns, double *ret_spread_ns);
/* The usual loss ratio; false while learning. */
bool ow_watch_usual_loss(const struct ow_watch *watch, double *ret_ratio);

#endif
