/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Watches one segment over time: what is usual for it, and whether it has changed.
 *
 * What is usual follows from the last OW_WATCH_HISTORY intervals without a change: mean and standard deviation of the
 * intervals' mean delays, and the loss ratio. Each new interval gives a deviation z in units of that standard
 * deviation, converted to the normal scale (with few intervals the deviation follows Student's t). A cumulative sum
 * detects a change:
 *     C = max(0, C + z - k),   change when C > h,
 * with k = 1.5, which detects a lasting shift of three sigma fastest. z is limited to 4, so that one outlier is not a
 * change. h follows from the allowed rate of false alarms of the whole network (ow_watch_threshold). Losses are treated
 * in the same way, on the scale on which a Poisson count has variance 1:
 *     z = 2 (sqrt(lost + 3/8) - sqrt(expected + 3/8))
 * The sum also gives the start of a change: the first interval after the sum was last 0.
 */
#define OW_WATCH_HISTORY 128
#define OW_WATCH_LEARN   24  /* intervals before the first verdict */
#define OW_WATCH_DRIFT   1.5 /* k */
/* A change becomes the usual state when it has lasted for this time, and for OW_WATCH_HISTORY intervals. */
#define OW_WATCH_ADOPT_NS (INT64_C(3600) * 1000000000)

/* The values of one interval of a segment. */
struct ow_watch_sample {
	int64_t start_ns, length_ns;
	bool has_delay, has_loss;
	double mean_ns, stddev_ns;             /* stddev_ns: NAN = not known */
	double mean_error_ns, stddev_error_ns; /* standard errors by sampling; 0 = exact */
	double clock_error_ns;                 /* bound for both clocks together; NAN = not known */
	uint64_t samples;                      /* number of delays */
	uint64_t sent, lost;
	uint64_t lost_whole; /* of lost: nothing more of their flows arrived, which may have taken another way */
	bool clock_set;      /* a clock was set: the delay shows no change */
	bool active;         /* measured with probes */
	/* Why there are no values; NULL if there are some or nothing is known. Not kept by a watch. */
	const char *cause;
};

struct ow_watch_level {
	double history[OW_WATCH_HISTORY];
	uint32_t count, next; /* in history */
	double sum;           /* C */
	int64_t since_ns;     /* the first interval of this sum */
	uint32_t intervals;   /* number of intervals in this sum */
	bool changed;
	bool adopted; /* a change has lasted so long that it is the usual state now; until the next change */
};

struct ow_plane_watch {
	struct ow_watch_level delay, loss;
	double loss_sent, loss_lost; /* of the usual intervals, with exponentially decreasing weight */
	struct ow_watch_sample last;
	double delay_z, loss_z; /* of the last interval; NAN while learning or without a value */
};

/*
 * h for `segments` segments that together may raise one false alarm in `intervals` intervals, for delay and loss
 * together. Uses Siegmund's approximation of the average run length of a cumulative sum of normal deviations. h is at
 * least so large that two intervals alone are not a change.
 */
double ow_watch_threshold(double segments, double intervals);

void ow_watch_init(struct ow_plane_watch *watch);
/* Takes an interval. If it has no delay, or a clock was set, or it has no loss, the level of that stays unchanged. */
void ow_watch_add(struct ow_plane_watch *watch, const struct ow_watch_sample *sample, double threshold);
/* The usual mean delay and its standard deviation over intervals; false while learning. */
bool ow_watch_usual(const struct ow_plane_watch *watch, double *ret_mean_ns, double *ret_spread_ns);
/* The median of the usual mean delays, on which single outliers have no influence; false while learning. */
bool ow_watch_median(const struct ow_plane_watch *watch, double *ret_median_ns);
/* The usual loss ratio; false while learning. */
bool ow_watch_usual_loss(const struct ow_plane_watch *watch, double *ret_ratio);
