/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's usual delay and loss, and the cumulative sums that detect changes. */
#include "plane/watch.h"

#include "base/sort.h"
#include <math.h>
#include <string.h>

/* A smaller spread is below the resolution of the clock. */
#define SPREAD_MIN_NS 1.0
/* Limit of what one interval adds to a sum: a single outlier (a stalled host, a burst) is never a change. */
#define Z_MAX 4.0
/* A change takes at least three intervals, also with few segments. */
#define THRESHOLD_MIN (2 * (Z_MAX - OW_WATCH_DRIFT))
/* Number of usual intervals over which the loss ratio is averaged. */
#define LOSS_MEMORY 1000.0

/*
 * Siegmund, for a sum with drift -k, with b = h + 1.166; there are two sums per segment:
 *     ARL = (exp(2 k b) - 2 k b - 1) / (2 k^2)
 */
double ow_watch_threshold(double segments, double intervals)
{
	double run = 2 * segments * intervals, k = OW_WATCH_DRIFT;
	double low = 0, high = 100;
	for (int i = 0; i < 100; i++) {
		double h = (low + high) / 2, x = 2 * k * (h + 1.166);
		if ((exp(x) - x - 1) / (2 * k * k) < run)
			low = h;
		else
			high = h;
	}
	return high > THRESHOLD_MIN ? high : THRESHOLD_MIN;
}

void ow_watch_init(struct ow_plane_watch *watch)
{
	memset(watch, 0, sizeof(*watch));
	watch->delay_z = watch->loss_z = NAN;
}

static void moments(const struct ow_watch_level *level, double *ret_mean, double *ret_spread)
{
	double sum = 0, squares = 0;
	for (uint32_t i = 0; i < level->count; i++)
		sum += level->history[i];
	*ret_mean = sum / level->count;
	for (uint32_t i = 0; i < level->count; i++) {
		double d = level->history[i] - *ret_mean;
		squares += d * d;
	}
	*ret_spread = sqrt(squares / (level->count - 1));
}

static void remember(struct ow_watch_level *level, double value)
{
	level->history[level->next] = value;
	level->next = (level->next + 1) % OW_WATCH_HISTORY;
	if (level->count < OW_WATCH_HISTORY)
		level->count++;
}

/*
 * The difference of the new value and the mean of n others follows Student's t with n - 1 degrees of freedom. Wallace's
 * approximation converts it to the normal scale.
 */
static double to_normal(double t, double n)
{
	double nu = n - 1, size = fabs(t) / sqrt(1 + 1 / n);
	double z = (8 * nu + 1) / (8 * nu + 3) * sqrt(nu * log1p(size * size / nu));
	return copysign(z, t);
}

/* Adds a deviation to the sum. */
static void cumulate(struct ow_watch_level *level, double z, int64_t start_ns, double threshold)
{
	if (level->sum <= 0)
		level->since_ns = start_ns;
	level->sum += fmin(z, Z_MAX) - OW_WATCH_DRIFT;
	if (level->sum <= 0) {
		level->sum = 0;
		level->intervals = 0;
		level->changed = false;
		return;
	}
	level->intervals++;
	if (level->sum > threshold) {
		level->changed = true;
		level->adopted = false;
	}
	/* Limits the sum: otherwise it would take as long to fall after a large change as the change lasted. */
	if (level->sum > 2 * threshold)
		level->sum = 2 * threshold;
}

/*
 * Whether this interval counts as usual. It does not while a change is building up. A change that has lasted long enough
 * becomes the usual state: learning starts again.
 */
static bool is_usual(struct ow_watch_level *level, int64_t start_ns, double threshold)
{
	if (level->changed && level->intervals >= OW_WATCH_HISTORY && start_ns - level->since_ns >= OW_WATCH_ADOPT_NS) {
		*level = (struct ow_watch_level){.adopted = true};
		return false;
	}
	return !level->changed && level->sum < threshold / 2;
}

bool ow_watch_usual(const struct ow_plane_watch *watch, double *ret_mean_ns, double *ret_spread_ns)
{
	if (watch->delay.count < OW_WATCH_LEARN)
		return false;
	moments(&watch->delay, ret_mean_ns, ret_spread_ns);
	if (*ret_spread_ns < SPREAD_MIN_NS)
		*ret_spread_ns = SPREAD_MIN_NS;
	return true;
}

bool ow_watch_median(const struct ow_plane_watch *watch, double *ret_median_ns)
{
	double sorted[OW_WATCH_HISTORY];
	uint32_t count = watch->delay.count;
	if (count < OW_WATCH_LEARN)
		return false;
	memcpy(sorted, watch->delay.history, count * sizeof(*sorted));
	ow_sort_doubles(sorted, count);
	*ret_median_ns = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
	return true;
}

bool ow_watch_usual_loss(const struct ow_plane_watch *watch, double *ret_ratio)
{
	if (watch->loss.count < OW_WATCH_LEARN || watch->loss_sent <= 0)
		return false;
	*ret_ratio = watch->loss_lost / watch->loss_sent;
	return true;
}

static void add_delay(struct ow_plane_watch *watch, const struct ow_watch_sample *sample, double threshold)
{
	double mean, spread;
	if (!ow_watch_usual(watch, &mean, &spread)) {
		remember(&watch->delay, sample->mean_ns);
		return;
	}
	/* An interval with few samples deviates more: its own error counts if it is larger than the usual spread. */
	double own = sample->mean_error_ns > spread ? sample->mean_error_ns : spread;
	watch->delay_z = to_normal((sample->mean_ns - mean) / own, watch->delay.count);
	cumulate(&watch->delay, watch->delay_z, sample->start_ns, threshold);
	if (is_usual(&watch->delay, sample->start_ns, threshold))
		remember(&watch->delay, sample->mean_ns);
}

static void remember_loss(struct ow_plane_watch *watch, const struct ow_watch_sample *sample, double z)
{
	double keep = 1 - 1 / LOSS_MEMORY;
	remember(&watch->loss, z);
	watch->loss_sent = watch->loss_sent * keep + (double)sample->sent;
	watch->loss_lost = watch->loss_lost * keep + (double)sample->lost;
}

static void add_loss(struct ow_plane_watch *watch, const struct ow_watch_sample *sample, double threshold)
{
	double ratio, mean, spread;
	if (!ow_watch_usual_loss(watch, &ratio)) {
		remember_loss(watch, sample, 0);
		return;
	}
	double z = 2 * (sqrt((double)sample->lost + 0.375) - sqrt(ratio * (double)sample->sent + 0.375));
	/* Losses come in bursts. If they usually spread more than a Poisson count, the usual spread is used. */
	moments(&watch->loss, &mean, &spread);
	watch->loss_z = z / fmax(1, spread);
	cumulate(&watch->loss, watch->loss_z, sample->start_ns, threshold);
	if (is_usual(&watch->loss, sample->start_ns, threshold))
		remember_loss(watch, sample, z);
	if (watch->loss.count == 0)
		watch->loss_sent = watch->loss_lost = 0;
}

void ow_watch_add(struct ow_plane_watch *watch, const struct ow_watch_sample *sample, double threshold)
{
	watch->delay_z = watch->loss_z = NAN;
	if (sample->has_delay && isfinite(sample->mean_ns) && !sample->clock_set)
		add_delay(watch, sample, threshold);
	if (sample->has_loss && sample->sent)
		add_loss(watch, sample, threshold);
	watch->last = *sample;
	watch->last.cause = NULL;
}
