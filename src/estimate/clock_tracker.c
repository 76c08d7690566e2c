/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each period, z being the delays less the line's slope:
 *
 *     drop z if z + the other direction's level < 0                  (impossible; counted)
 *     low   = sorted z[n < 20 ? 0 : 1 + n / 100]
 *     slope = least sum of the check losses (tau = 0.1) of both directions around lines of one slope
 *     level = p10 of low less the slope, for each direction, at the latest time
 *     offset = (level AB - level BA) / 2 - asymmetry
 *
 * The slope is that of quantile regression: a queue that lasts for less than most of the 60 periods does not bend it,
 * and neither does one packet that is too fast, as the minimum would. Events compare the latest floors with the line of
 * those before.
 */
#include "estimate/clock_tracker.h"

#include "base/sort.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_SAMPLES       20      /* with fewer, the least is the floor */
#define FLOOR_SHARE       100     /* else one in so many may be too fast, and one more */
#define TAU               0.1     /* quantile of the line among the floors */
#define POINTS_FIRST      5       /* for the first slope */
#define POINTS_LEAST      12      /* for a slope whose error is DRIFT_DOUBT_PPB, and for events */
#define SLOPE_MOST_PPB    600000. /* quartz is better, and NTP slews by 500 ppm */
#define SLOPE_DIGITS      46      /* golden section: 1.2e6 ppb * 0.618^46 = 0.0003 ppb */
#define SLOPE_CHANGED_PPB 5000.   /* a floor that was chosen by a slope so far off is a bad one */
#define NOISE_TIMES       6.      /* an event exceeds the spread (p90 - p10) of the floors so many times */
#define NOISE_LEAST_NS    20000.  /* and this: software timestamps */
#define STEP_UNLIKE       0.2     /* both directions change by the same, up to this share */
#define ROUTE_POINTS      3       /* another route lasts */
#define DRIFT_DOUBT_PPB   2000.   /* error of the drift, for bounds from older floors */
#define DRIFT_UNKNOWN_PPB 500000. /* the same before there is a slope */
#define IMPOSSIBLE_MOST   0.005   /* share of samples: with more, pairs are wrong and so are floors */
#define STEP_REST_PERIODS 2.      /* after a step */
#define FAR_S             1e9     /* no measurement lasts this long: such a time is invalid */

void ow_clock_tracker_init(struct ow_clock_tracker *t, int64_t period_ns)
{
	*t = (struct ow_clock_tracker){
		.period_ns = period_ns, .best_ns = INFINITY, .start_s = -INFINITY, .stepped_s = -INFINITY};
}

/* Delays A to B grow with B's gain, delays B to A shrink. */
static double sign_of(enum ow_direction direction)
{
	return direction == OW_A_TO_B ? 1 : -1;
}

static double seconds(const struct ow_clock_tracker *t, int64_t at_ns)
{
	/* Another point may say any time. */
	return (double)(int64_t)((uint64_t)at_ns - (uint64_t)t->zero_ns) / 1e9;
}

static double period_s(const struct ow_clock_tracker *t)
{
	return (double)t->period_ns / 1e9;
}

/* -- floors ------------------------------------------------------------------------------------------------------- */

static int by_delay(const void *a, const void *b)
{
	const struct ow_clock_sample *x = a, *y = b;
	return (x->delay_ns > y->delay_ns) - (x->delay_ns < y->delay_ns);
}

void ow_clock_samples_sort(struct ow_clock_sample *samples, size_t count)
{
	if (count)
		qsort(samples, count, sizeof *samples, by_delay);
}

/* What the drift added to a delay between `from_ns` and `at_ns`. */
static int64_t gained(const struct ow_clock_tracker *t, enum ow_direction direction, int64_t at_ns, int64_t from_ns)
{
	return llrint(sign_of(direction) * t->drift_ppb * (double)(at_ns - from_ns) / 1e9);
}

/* How many of the sorted samples arrive before the other direction lets them be sent. If most of them do, the clock was
 * set, and they are right. */
static size_t impossible(const struct ow_clock_tracker *t, enum ow_direction direction,
                         const struct ow_clock_sample *sorted, size_t count, int64_t now_ns)
{
	const struct ow_clock_side *other = &t->side[direction == OW_A_TO_B ? OW_B_TO_A : OW_A_TO_B];
	if (!other->points)
		return 0;
	const struct ow_clock_point *last = &other->point[other->points - 1];
	double age_s = seconds(t, now_ns) - last->at_s;
	double low_ns = last->low_ns - sign_of(direction) * t->drift_ppb * age_s;
	size_t n = 0;
	while (n < count && (double)sorted[n].delay_ns + low_ns < 0)
		n++;
	return n > count / 2 ? 0 : n;
}

void ow_clock_tracker_floor(const struct ow_clock_tracker *t, enum ow_direction direction,
                            struct ow_clock_sample *samples, size_t count, struct ow_clock_floor *ret_floor)
{
	*ret_floor = (struct ow_clock_floor){.drift_ppb = llrint(t->drift_ppb)};
	if (!count)
		return;
	int64_t now_ns = samples[0].at_ns;
	for (size_t i = 1; i < count; i++)
		now_ns = samples[i].at_ns > now_ns ? samples[i].at_ns : now_ns;
	for (size_t i = 0; i < count; i++)
		samples[i].delay_ns += gained(t, direction, now_ns, samples[i].at_ns);
	ow_clock_samples_sort(samples, count);
	size_t dropped = impossible(t, direction, samples, count, now_ns), rest = count - dropped;
	const struct ow_clock_sample *low = &samples[dropped + (rest < FEW_SAMPLES ? 0 : 1 + rest / FLOOR_SHARE)];
	ret_floor->at_ns = low->at_ns;
	ret_floor->low_ns = low->delay_ns - gained(t, direction, now_ns, low->at_ns);
	ret_floor->samples = (uint32_t)rest;
	ret_floor->impossible = (uint32_t)dropped;
}

/* -- the line ----------------------------------------------------------------------------------------------------- */

static double quantile(double *values, unsigned count, double q)
{
	ow_sort_doubles(values, count);
	return values[(unsigned)(q * (double)(count - 1))];
}

/* The points of a direction that a line may be fitted to: since the last event, and made with about this slope. Without
 * the latest `without`. */
static unsigned usable(const struct ow_clock_tracker *t, enum ow_direction direction, unsigned without,
                       const struct ow_clock_point *ret_point[OW_CLOCK_POINTS])
{
	const struct ow_clock_side *side = &t->side[direction];
	unsigned n = 0, good = 0;
	for (unsigned i = 0; i + without < side->points; i++) {
		if (side->point[i].at_s < t->start_s)
			continue;
		good += fabs(side->point[i].drift_ppb - t->drift_ppb) <= SLOPE_CHANGED_PPB;
		ret_point[n++] = &side->point[i];
	}
	if (good < POINTS_LEAST || good == n)
		return n;
	unsigned kept = 0;
	for (unsigned i = 0; i < n; i++) {
		if (fabs(ret_point[i]->drift_ppb - t->drift_ppb) <= SLOPE_CHANGED_PPB)
			ret_point[kept++] = ret_point[i];
	}
	return kept;
}

/* Delays of the points at now_s if the clock gains ppb. */
static void levelled(const struct ow_clock_tracker *t, enum ow_direction direction,
                     const struct ow_clock_point *const *point, unsigned count, double ppb, double *ret_ns)
{
	for (unsigned i = 0; i < count; i++)
		ret_ns[i] = point[i]->low_ns + sign_of(direction) * ppb * (t->now_s - point[i]->at_s);
}

struct line_points {
	const struct ow_clock_point *point[OW_DIRECTIONS][OW_CLOCK_POINTS];
	unsigned count[OW_DIRECTIONS];
};

/* Sum of the check losses around the best line of this slope. Convex in the slope. */
static double loss(const struct ow_clock_tracker *t, const struct line_points *points, double ppb)
{
	double sum = 0, value[OW_CLOCK_POINTS];
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		unsigned n = points->count[way];
		levelled(t, way, points->point[way], n, ppb, value);
		double level = quantile(value, n, TAU);
		for (unsigned i = 0; i < n; i++)
			sum += (value[i] - level) * (value[i] < level ? TAU - 1 : TAU);
	}
	return sum;
}

static double best_slope(const struct ow_clock_tracker *t, const struct line_points *points)
{
	const double share = (sqrt(5) - 1) / 2;
	double low = -SLOPE_MOST_PPB, high = SLOPE_MOST_PPB;
	double x = high - share * (high - low), y = low + share * (high - low);
	double at_x = loss(t, points, x), at_y = loss(t, points, y);
	for (unsigned i = 0; i < SLOPE_DIGITS; i++) {
		if (at_x < at_y) {
			high = y;
			y = x;
			at_y = at_x;
			x = high - share * (high - low);
			at_x = loss(t, points, x);
		} else {
			low = x;
			x = y;
			at_x = at_y;
			y = low + share * (high - low);
			at_y = loss(t, points, y);
		}
	}
	return (low + high) / 2;
}

static void fit(struct ow_clock_tracker *t)
{
	struct line_points points;
	unsigned least = OW_CLOCK_POINTS;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		points.count[way] = usable(t, way, 0, points.point[way]);
		least = points.count[way] < least ? points.count[way] : least;
	}
	if (least < (t->fitted ? POINTS_LEAST : POINTS_FIRST))
		return;
	t->drift_ppb = best_slope(t, &points);
	t->fitted |= least >= POINTS_LEAST;
}

/* Level and noise of the line through all points but the latest; false: there are too few. */
static bool level_of(const struct ow_clock_tracker *t, enum ow_direction direction, unsigned without, unsigned least,
                     double *ret_level_ns, double *ret_noise_ns)
{
	const struct ow_clock_point *point[OW_CLOCK_POINTS];
	double value[OW_CLOCK_POINTS];
	unsigned n = usable(t, direction, without, point);
	if (n < least || !n)
		return false;
	levelled(t, direction, point, n, t->drift_ppb, value);
	*ret_level_ns = quantile(value, n, TAU);
	double spread_ns = quantile(value, n, 0.9) - *ret_level_ns;
	*ret_noise_ns = fmax(NOISE_TIMES * spread_ns, NOISE_LEAST_NS);
	return true;
}

/* -- events ------------------------------------------------------------------------------------------------------- */

static const struct ow_clock_point *latest(const struct ow_clock_tracker *t, enum ow_direction direction, unsigned back)
{
	const struct ow_clock_side *side = &t->side[direction];
	return &side->point[side->points - 1 - back];
}

/* How far a late point is from the line. */
static double beyond(const struct ow_clock_tracker *t, enum ow_direction direction, unsigned back, double level_ns)
{
	const struct ow_clock_point *p = latest(t, direction, back);
	return p->low_ns + sign_of(direction) * t->drift_ppb * (t->now_s - p->at_s) - level_ns;
}

static void tell(struct ow_clock_tracker *t, enum ow_clock_event event, double at_s, double size_ns)
{
	t->start_s = at_s;
	t->last.event = event;
	t->last.event_ns = (int64_t)((uint64_t)t->zero_ns + (uint64_t)(int64_t)(at_s * 1e9));
	t->last.event_size_ns = size_ns;
	if (event == OW_CLOCK_STEP)
		t->last.steps++;
	else
		t->last.routes++;
}

struct lines {
	double level_ns[OW_DIRECTIONS], noise_ns[OW_DIRECTIONS];
};

static bool lines_of(const struct ow_clock_tracker *t, unsigned without, struct lines *ret_lines)
{
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		if (!level_of(t, way, without, POINTS_LEAST, &ret_lines->level_ns[way], &ret_lines->noise_ns[way]))
			return false;
	}
	return true;
}

/* The latest point of both directions leaves the line, in opposite ways by the same. */
static bool find_step(struct ow_clock_tracker *t)
{
	struct lines lines;
	if (!lines_of(t, 2, &lines))
		return false;
	double forth = beyond(t, OW_A_TO_B, 0, lines.level_ns[OW_A_TO_B]);
	double back = beyond(t, OW_B_TO_A, 0, lines.level_ns[OW_B_TO_A]);
	double slack = (lines.noise_ns[OW_A_TO_B] + lines.noise_ns[OW_B_TO_A]) / 2;
	if (forth * back >= 0 || fabs(forth) <= lines.noise_ns[OW_A_TO_B] || fabs(back) <= lines.noise_ns[OW_B_TO_A] ||
	    fabs(forth + back) >= STEP_UNLIKE * fmin(fabs(forth), fabs(back)) + slack)
		return false;
	double at_s = fmin(latest(t, OW_A_TO_B, 0)->at_s, latest(t, OW_B_TO_A, 0)->at_s);
	tell(t, OW_CLOCK_STEP, at_s, (forth - back) / 2);
	t->stepped_s = t->now_s;
	return true;
}

/* The latest points of one direction all leave the line to one side. Returns the direction, or OW_DIRECTIONS. */
static unsigned rerouted(const struct ow_clock_tracker *t, const struct lines *lines, double *ret_size_ns)
{
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		double least = INFINITY, most = -INFINITY;
		for (unsigned i = 0; i < ROUTE_POINTS; i++) {
			double size = beyond(t, way, i, lines->level_ns[way]);
			least = fmin(least, size);
			most = fmax(most, size);
		}
		*ret_size_ns = least > 0 ? least : most;
		if (least > lines->noise_ns[way] || most < -lines->noise_ns[way])
			return way;
	}
	return OW_DIRECTIONS;
}

static double half_difference(const struct ow_clock_tracker *t)
{
	return (t->side[OW_A_TO_B].level_ns - t->side[OW_B_TO_A].level_ns) / 2;
}

static void set_levels(struct ow_clock_tracker *t)
{
	double noise_ns;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++)
		(void)level_of(t, way, 0, 1, &t->side[way].level_ns, &noise_ns);
}

/*
 * Whether the latest point of a direction is off the line, but not for long enough to say why. Then the line stays as
 * it is: a slope that bends towards two points of another route would be kept after the event.
 */
static bool find_doubt(struct ow_clock_tracker *t)
{
	struct lines lines;
	bool doubt = false;
	if (!lines_of(t, ROUTE_POINTS, &lines))
		return false;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++)
		doubt |= fabs(beyond(t, way, 0, lines.level_ns[way])) > lines.noise_ns[way];
	for (unsigned way = 0; doubt && way < OW_DIRECTIONS; way++)
		t->side[way].level_ns = lines.level_ns[way];
	return doubt;
}

/*
 * The offset stays as it was, unless the round trip is as short again as it ever was: that route is taken to be the one
 * that is alike in both directions.
 */
static bool find_route(struct ow_clock_tracker *t, double offset_ns)
{
	struct lines lines;
	double size_ns;
	if (!lines_of(t, ROUTE_POINTS, &lines))
		return false;
	unsigned way = rerouted(t, &lines, &size_ns);
	if (way == OW_DIRECTIONS)
		return false;
	double at_s = fmin(latest(t, OW_A_TO_B, ROUTE_POINTS - 1)->at_s, latest(t, OW_B_TO_A, ROUTE_POINTS - 1)->at_s);
	tell(t, OW_CLOCK_ROUTE, at_s, size_ns);
	set_levels(t);
	double round_trip_ns = t->side[OW_A_TO_B].level_ns + t->side[OW_B_TO_A].level_ns;
	double slack_ns = (lines.noise_ns[OW_A_TO_B] + lines.noise_ns[OW_B_TO_A]) / 2;
	t->asymmetry_ns = round_trip_ns < t->best_ns + slack_ns ? 0 : half_difference(t) - offset_ns;
	return true;
}

/* -- periods ------------------------------------------------------------------------------------------------------ */

/* Forgets points that are too old for a line: traffic may pause. */
static void forget(struct ow_clock_tracker *t, struct ow_clock_side *side)
{
	unsigned old = 0;
	while (old + 1 < side->points && side->point[old].at_s < t->now_s - OW_CLOCK_POINTS * period_s(t))
		old++;
	side->points -= old;
	memmove(side->point, side->point + old, side->points * sizeof *side->point);
}

/* Both directions have a new floor. */
static bool go_on(struct ow_clock_tracker *t)
{
	double before_s = t->now_s;
	t->now_s = fmax(latest(t, OW_A_TO_B, 0)->at_s, latest(t, OW_B_TO_A, 0)->at_s);
	for (unsigned way = 0; way < OW_DIRECTIONS; way++)
		forget(t, &t->side[way]);
	double offset_ns = t->offset_ns + t->drift_ppb * (t->now_s - before_s);
	bool event = find_step(t) || find_route(t, offset_ns);
	if (event) {
		set_levels(t);
	} else if (!find_doubt(t)) {
		fit(t);
		set_levels(t);
	}
	t->offset_ns = half_difference(t) - t->asymmetry_ns;
	t->best_ns = fmin(t->best_ns, t->side[OW_A_TO_B].level_ns + t->side[OW_B_TO_A].level_ns);
	t->side[OW_A_TO_B].is_new = t->side[OW_B_TO_A].is_new = false;
	return event;
}

bool ow_clock_tracker_add(struct ow_clock_tracker *t, enum ow_direction direction, const struct ow_clock_floor *floor)
{
	struct ow_clock_side *side = &t->side[direction];
	if (!floor->samples)
		return false;
	if (!t->begun)
		t->zero_ns = floor->at_ns;
	t->begun = true;
	double at_s = seconds(t, floor->at_ns);
	if (fabs(at_s) > FAR_S || (side->points && !(at_s > side->point[side->points - 1].at_s)))
		return false;
	if (side->points == OW_CLOCK_POINTS)
		memmove(side->point, side->point + 1, --side->points * sizeof *side->point);
	side->point[side->points++] = (struct ow_clock_point){at_s, (double)floor->low_ns, (double)floor->drift_ppb,
	                                                      floor->samples, floor->impossible};
	side->is_new = true;
	return t->side[OW_A_TO_B].is_new && t->side[OW_B_TO_A].is_new && go_on(t);
}

/* What a direction says about the offset at most (A to B), or about its negative. */
static double bound_of(const struct ow_clock_tracker *t, enum ow_direction direction, double at_s)
{
	const struct ow_clock_side *side = &t->side[direction];
	double least = INFINITY, doubt_ppb = t->fitted ? DRIFT_DOUBT_PPB : DRIFT_UNKNOWN_PPB;
	for (unsigned i = 0; i < side->points; i++) {
		const struct ow_clock_point *p = &side->point[i];
		double age_s = at_s - p->at_s;
		if (p->at_s >= t->start_s)
			least = fmin(least,
			             p->low_ns + sign_of(direction) * t->drift_ppb * age_s + doubt_ppb * fabs(age_s));
	}
	return least;
}

static enum ow_reason refusal(const struct ow_clock_tracker *t, double at_s, const struct ow_clock_estimate *e)
{
	double most_s = OW_CLOCK_POINTS * period_s(t);
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		bool any = t->side[way].points && latest(t, way, 0)->at_s >= t->start_s;
		if (!any || at_s - latest(t, way, 0)->at_s > most_s)
			return OW_REASON_CLOCK_ONE_WAY;
	}
	if (at_s - t->stepped_s < STEP_REST_PERIODS * period_s(t))
		return OW_REASON_CLOCK_STEPPED;
	if ((double)e->impossible > IMPOSSIBLE_MOST * (double)(e->samples + e->impossible))
		return OW_REASON_CLOCK_MISPAIRED;
	return e->high_ns > e->low_ns ? OW_NO_REASON : OW_REASON_CLOCK_CONTRADICTS;
}

void ow_clock_tracker_estimate(const struct ow_clock_tracker *t, int64_t at_ns, struct ow_clock_estimate *ret_estimate)
{
	struct ow_clock_estimate *e = ret_estimate;
	double at_s = seconds(t, at_ns);
	*e = t->last;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		for (unsigned i = 0; i < t->side[way].points; i++) {
			e->samples += t->side[way].point[i].samples;
			e->impossible += t->side[way].point[i].impossible;
		}
	}
	e->drift_ppb = t->drift_ppb;
	e->asymmetry_ns = t->asymmetry_ns;
	e->high_ns = bound_of(t, OW_A_TO_B, at_s);
	e->low_ns = -bound_of(t, OW_B_TO_A, at_s);
	e->round_trip_ns = t->side[OW_A_TO_B].level_ns + t->side[OW_B_TO_A].level_ns;
	e->reason = refusal(t, at_s, e);
	double offset_ns = t->offset_ns + t->drift_ppb * (at_s - t->now_s);
	/* The line is through the floors; the bound also has those that are below it. */
	e->offset_ns = fmax(e->low_ns, fmin(offset_ns, e->high_ns));
}
