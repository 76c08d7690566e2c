/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/skew.h"

#include "base/line.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

#define FIRST_WIDTH_NS  INT64_C(1000000) /* 1 ms: drift does not matter in shorter captures */
#define BINS_LEAST      12               /* with fewer stretches any variation looks like a line */
#define SWING_LEAST_NS  500.0            /* smaller drifts over the whole capture are ignored */
#define UNEXPLAINED     0.1              /* spread around the line, as a share of its rise */
#define NOISE_NS        20000.0          /* packets may seem too fast by this, because software timestamps are late */
#define SEARCH_STEPS    60               /* each excludes a third of the range: to 0.00002 ppb */
#define STEP_STRETCHES  3                /* before and after a step of the clock, .. */
#define STEP_PACKETS    16               /* .. or packets */
#define STEP_FEW        2                /* packets that may be other ones that look the same */
#define SHIFT_STRETCHES 6                /* the same where there is one direction only; .. */
#define SHIFT_CLEAR     20.0             /* .. it is so many times what the delays vary, .. */
#define STEP_ALIKE      0.1              /* both directions change by the same, but for such a share */
#define SHIFT_SAME      0.9              /* changes that differ by less are the same one */
#define SHIFT_LEAST_NS  100000.0         /* .. and larger than what queues do to all packets for a while */
#define STEP_SHARP      5.0              /* it is so many times what the steadier direction varies */
#define STEP_USUAL      0.5              /* most stretches show such a part of it at least */
#define STEP_NEAR       12               /* stretches that are near a step */
#define STEP_CLEAR      3.0              /* a step is at least this many times the change of the path itself */
#define PPB_MOST        500000.0 /* quartz is better than 500 ppm: more is a change of the delay, not of the clocks */

void ow_skew_init(struct ow_skew *drift)
{
	memset(drift, 0, sizeof *drift);
}

static void double_width(struct ow_skew *d)
{
	for (unsigned way = 0; way < OW_SKEW_KINDS; way++) {
		for (unsigned i = 0; i < OW_SKEW_BINS; i++) {
			unsigned from = 2 * i;
			bool there = from < OW_SKEW_BINS;
			uint32_t n = there ? d->count[way][from] : 0, m = there ? d->count[way][from + 1] : 0;
			int64_t x = there ? d->least[way][from] : 0, y = there ? d->least[way][from + 1] : 0;
			bool first = !m || (n && x < y);
			d->least[way][i] = first ? x : y;
			d->at_ns[way][i] = there ? d->at_ns[way][from + !first] : 0;
			d->count[way][i] = n + m;
		}
	}
	d->width_ns *= 2;
}

static unsigned stretches_used(const struct ow_skew *d)
{
	unsigned used = 0;
	for (unsigned way = 0; way < OW_SKEW_KINDS; way++) {
		for (unsigned i = used; i < OW_SKEW_BINS; i++)
			used = d->count[way][i] ? i + 1 : used;
	}
	return used;
}

static void move_back(struct ow_skew *d, unsigned stretches)
{
	size_t kept = OW_SKEW_BINS - stretches;
	for (unsigned way = 0; way < OW_SKEW_KINDS; way++) {
		memmove(d->least[way] + stretches, d->least[way], kept * sizeof *d->least[way]);
		memmove(d->at_ns[way] + stretches, d->at_ns[way], kept * sizeof *d->at_ns[way]);
		memmove(d->count[way] + stretches, d->count[way], kept * sizeof *d->count[way]);
		memset(d->count[way], 0, stretches * sizeof *d->count[way]);
	}
	d->start_ns -= stretches * d->width_ns;
}

/* The first packets may be reported after others: they wait until it is known that none is like them. */
static void start_earlier(struct ow_skew *d, int64_t time_ns)
{
	int64_t missing = (d->start_ns - time_ns + d->width_ns - 1) / d->width_ns;
	while (missing + stretches_used(d) > OW_SKEW_BINS) {
		double_width(d);
		missing = (d->start_ns - time_ns + d->width_ns - 1) / d->width_ns;
	}
	move_back(d, (unsigned)missing);
}

void ow_skew_find(struct ow_skew *d, int64_t time_ns)
{
	if (!d->width_ns) {
		d->start_ns = time_ns;
		d->width_ns = FIRST_WIDTH_NS;
	}
	if (time_ns < d->start_ns)
		start_earlier(d, time_ns);
	while ((time_ns - d->start_ns) / d->width_ns >= OW_SKEW_BINS)
		double_width(d);
	d->bin = (unsigned)((time_ns - d->start_ns) / d->width_ns);
	d->bin_ns = d->start_ns + (int64_t)d->bin * d->width_ns;
}

void ow_skew_finish(struct ow_skew *d)
{
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		uint64_t unlike = 0;
		for (unsigned i = 0; i < OW_SKEW_BINS; i++)
			unlike += d->count[way][i];
		if (unlike)
			continue;
		memcpy(d->least[way], d->least[way + OW_SKEW_ALIKE], sizeof d->least[way]);
		memcpy(d->at_ns[way], d->at_ns[way + OW_SKEW_ALIKE], sizeof d->at_ns[way]);
		memcpy(d->count[way], d->count[way + OW_SKEW_ALIKE], sizeof d->count[way]);
	}
}

/* Clock difference over time: from both directions if both have packets, else from one. */
static unsigned points_of(const struct ow_skew *d, double x[OW_SKEW_BINS], double y[OW_SKEW_BINS], bool *ret_both)
{
	unsigned n = 0, ab = 0, ba = 0, both = 0;
	for (unsigned i = 0; i < OW_SKEW_BINS; i++) {
		ab += d->count[OW_A_TO_B][i] > 0;
		ba += d->count[OW_B_TO_A][i] > 0;
		both += d->count[OW_A_TO_B][i] && d->count[OW_B_TO_A][i];
	}
	*ret_both = both >= BINS_LEAST;
	unsigned use = both >= BINS_LEAST ? OW_DIRECTIONS : ab >= ba ? OW_A_TO_B : OW_B_TO_A;
	for (unsigned i = 0; i < OW_SKEW_BINS; i++) {
		bool has_ab = d->count[OW_A_TO_B][i], has_ba = d->count[OW_B_TO_A][i];
		double forth = (double)d->least[OW_A_TO_B][i], back = -(double)d->least[OW_B_TO_A][i];
		if (!(use == OW_DIRECTIONS ? has_ab && has_ba : use == OW_A_TO_B ? has_ab : has_ba))
			continue;
		x[n] = ((double)i + 0.5) * (double)d->width_ns / 1e9;
		y[n++] = use == OW_DIRECTIONS ? (forth + back) / 2 : use == OW_A_TO_B ? forth : back;
	}
	return n;
}

/*
 * The time that the fastest packets of both directions take together, in nanoseconds, if B's clock gains this. They
 * bound the clock's line from both sides. The true drift leaves them the most time, whatever queues there are for a
 * while.
 */
static double room(const struct ow_skew *d, double ppb)
{
	double least[OW_DIRECTIONS] = {INFINITY, INFINITY};
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		for (unsigned i = 0; i < OW_SKEW_BINS; i++) {
			double gained = ppb * (double)(d->at_ns[way][i] - d->start_ns) / 1e9;
			double delay = (double)d->least[way][i] + (way == OW_A_TO_B ? -gained : gained);
			if (d->count[way][i] && delay < least[way])
				least[way] = delay;
		}
	}
	return least[OW_A_TO_B] + least[OW_B_TO_A];
}

/* The drift that leaves the most room: the room increases up to it and decreases after it. */
static double roomiest(const struct ow_skew *d)
{
	double low = -PPB_MOST, high = PPB_MOST;
	for (unsigned i = 0; i < SEARCH_STEPS; i++) {
		double third = (high - low) / 3;
		if (room(d, low + third) < room(d, high - third))
			low += third;
		else
			high -= third;
	}
	return (low + high) / 2;
}

bool ow_skew_estimate(const struct ow_skew *drift, double *ret_ppb)
{
	double x[OW_SKEW_BINS], y[OW_SKEW_BINS], slope, spread;
	bool both;
	unsigned n = points_of(drift, x, y, &both);
	if (n < BINS_LEAST)
		return false;
	ow_line_fit(x, y, n, &slope, &spread);
	double rise = fabs(slope) * (x[n - 1] - x[0]);
	bool plain = rise >= SWING_LEAST_NS && spread <= UNEXPLAINED * rise && fabs(slope) <= PPB_MOST;
	double best = both ? roomiest(drift) : 0;
	int64_t at_ns, gained_ns;
	bool unsure;
	if (plain && ow_step_fit(y, n) < spread && ow_skew_step(drift, &at_ns, &gained_ns, &unsure))
		return false;
	bool causal = both && room(drift, best) > -NOISE_NS;
	bool proved = both && room(drift, best) >= 0 && room(drift, 0) < -NOISE_NS;
	*ret_ppb = causal ? best : slope; /* no line fits a clock that was set */
	return plain || proved;
}

bool ow_skew_refine(const struct ow_skew *drift, double *ret_ppb)
{
	double x[OW_SKEW_BINS], y[OW_SKEW_BINS], best;
	bool both;
	(void)points_of(drift, x, y, &both);
	if (!both)
		return false;
	best = roomiest(drift);
	*ret_ppb = best;
	return room(drift, best) > -NOISE_NS && room(drift, best) > room(drift, 0) + SWING_LEAST_NS;
}

/* -- steps -------------------------------------------------------------------------------------------------------- */

/* The fastest packets of some stretches: the least of them, and by how much the least of half, and of a quarter, of the
 * stretches exceed it. */
struct level {
	double least, spread, quarter;
	unsigned stretches;
	uint64_t packets;
};

static struct level level_of(const struct ow_skew *d, unsigned way, unsigned from, unsigned to)
{
	double least[OW_SKEW_BINS];
	struct level level = {0};
	for (unsigned i = from; i < to; i++) {
		if (d->count[way][i])
			least[level.stretches++] = (double)d->least[way][i];
		level.packets += d->count[way][i];
	}
	if (!level.stretches)
		return level;
	ow_sort_doubles(least, level.stretches);
	level.least = least[0];
	level.spread = least[level.stretches / 2] - least[0];
	level.quarter = least[level.stretches / 4] - least[0];
	return level;
}

/* Stretches before and after one that may have a step: all of them, or those next to it. */
struct around {
	unsigned before_from, before_to, after_from, after_to;
};

/*
 * A step of B's clock shows with what arrives there and with what is sent from there: by A's clock, as long apart as a
 * round trip takes. The stretches between say nothing.
 */
static struct around around_of(unsigned at, unsigned zone, unsigned reach)
{
	struct around a = {.before_to = at > zone ? at - zone : 0, .after_from = at + zone + 1};
	a.before_from = a.before_to > reach ? a.before_to - reach : 0;
	a.after_to = a.after_from + reach;
	if (a.after_to > OW_SKEW_BINS)
		a.after_to = OW_SKEW_BINS;
	return a;
}

/* How many stretches a round trip takes at most. */
static unsigned zone_of(const struct ow_skew *d)
{
	double trip = 0;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++)
		trip += level_of(d, way, 0, OW_SKEW_BINS).least;
	double zone = trip > 0 ? ceil(trip / (double)d->width_ns) : 0;
	return zone < OW_SKEW_BINS / 4 ? (unsigned)(zone > 1 ? zone : 0) : OW_SKEW_BINS / 4;
}

/* How the level of a way changes. */
struct change {
	struct level before, after;
	double by, spread, quarter; /* the larger one of both */
	double usual;               /* the change of the least of half of the stretches */
	double slower;              /* spread of the slower one: a single packet shows that the faster one is as fast */
};

static struct change change_of(const struct ow_skew *d, unsigned way, unsigned at, unsigned zone, unsigned reach)
{
	struct around a = around_of(at, zone, reach);
	struct change c = {level_of(d, way, a.before_from, a.before_to), level_of(d, way, a.after_from, a.after_to)};
	c.by = c.after.least - c.before.least;
	c.usual = c.by + c.after.spread - c.before.spread;
	c.spread = fmax(c.before.spread, c.after.spread);
	c.quarter = fmax(c.before.quarter, c.after.quarter);
	c.slower = c.by > 0 ? c.after.spread : c.before.spread;
	return c;
}

static bool has_stretches(const struct change *c, unsigned stretches)
{
	return c->before.stretches >= stretches && c->after.stretches >= stretches;
}

static bool has_packets(const struct change *c)
{
	return c->before.packets >= STEP_PACKETS && c->after.packets >= STEP_PACKETS;
}

/* Few stretches are enough on one side of a change that is far larger than what the many on the other side vary. */
static bool shows_little(const struct change *c)
{
	bool many = c->before.stretches >= SHIFT_STRETCHES || c->after.stretches >= SHIFT_STRETCHES;
	return many && has_stretches(c, 1);
}

/*
 * How much B's clock gained in the stretch `at`; 0 = not certain. By all stretches before and after it, of which there are
 * enough, or enough packets; or by those near it, which must vary less.
 */
static double gained_at(const struct ow_skew *d, unsigned at, unsigned zone, bool near)
{
	struct change ab = change_of(d, OW_A_TO_B, at, zone, near ? STEP_NEAR : OW_SKEW_BINS),
		      ba = change_of(d, OW_B_TO_A, at, zone, near ? STEP_NEAR : OW_SKEW_BINS);
	bool stretches = has_stretches(&ab, STEP_STRETCHES) && has_stretches(&ba, STEP_STRETCHES);
	double gained = (ab.by - ba.by) / 2, path = (ab.by + ba.by) / 2;
	if (shows_little(&ab) && shows_little(&ba) && fabs(gained) >= SHIFT_LEAST_NS &&
	    SHIFT_CLEAR * fmax(ab.spread, ba.spread) < fabs(gained) && fabs(path) < STEP_ALIKE * fabs(gained))
		return gained;
	/* Queues make differences as small as these, too, if there are few packets. */
	bool packets = has_packets(&ab) && has_packets(&ba), small = fabs(gained) < SHIFT_LEAST_NS;
	if (stretches ? small && !packets : near || !packets)
		return 0;
	/* One direction may vary as it likes, if the other hardly does and both change by nearly the same. */
	bool sharp = stretches && STEP_SHARP * fmin(ab.spread, ba.spread) < fabs(gained) &&
	             fabs(path) < STEP_ALIKE * fabs(gained);
	double varies = sharp       ? 0
	                : near      ? fmax(STEP_CLEAR * fmax(ab.quarter, ba.quarter), fmax(ab.slower, ba.slower))
	                : stretches ? fmax(ab.slower, ba.slower)
	                            : STEP_CLEAR * fmax(ab.slower, ba.slower);
	/* A single fast packet makes no step: if delays vary by more than it, most stretches show it, too. */
	double usual = (ab.usual - ba.usual) / 2;
	bool chance = stretches && !sharp && !near && fmax(ab.spread, ba.spread) > fabs(gained) &&
	              usual * copysign(1, gained) < STEP_USUAL * fabs(gained);
	return fabs(gained) >= NOISE_NS && fabs(gained) > STEP_CLEAR * fabs(path) && fabs(gained) > varies && !chance
	               ? gained
	               : 0;
}

static int64_t time_of(const struct ow_skew *d, unsigned at)
{
	return d->start_ns + (int64_t)at * d->width_ns + d->width_ns / 2;
}

/* Whether something else may look like this step: few packets, or a change of one direction by chance. */
static bool is_unsure(const struct ow_skew *d, unsigned at, unsigned zone, double gained)
{
	bool unsure = false;
	for (unsigned way = 0; way < OW_DIRECTIONS; way++) {
		struct change c = change_of(d, way, at, zone, OW_SKEW_BINS);
		unsure |= c.before.packets <= STEP_FEW || c.after.packets <= STEP_FEW || c.spread > fabs(gained);
	}
	return unsure;
}

bool ow_skew_step(const struct ow_skew *d, int64_t *ret_at_ns, int64_t *ret_ns, bool *ret_unsure)
{
	double most = 0;
	unsigned zone = zone_of(d);
	for (unsigned i = 0; i < 2 * OW_SKEW_BINS; i++) {
		unsigned at = i % OW_SKEW_BINS;
		double gained = gained_at(d, at, zone, i >= OW_SKEW_BINS);
		if (fabs(gained) <= fabs(most))
			continue;
		most = gained;
		*ret_at_ns = time_of(d, at);
		*ret_ns = llrint(gained);
		*ret_unsure = is_unsure(d, at, zone, gained);
	}
	return most != 0;
}

/* How the delays of one way change in the stretch `at`, if the other way has too few packets to compare with, or they
 * vary more than that; 0 = not certain. */
static double shift_at(const struct ow_skew *d, unsigned way, unsigned at, unsigned zone)
{
	struct change near = change_of(d, way, at, zone, STEP_NEAR), other = change_of(d, !way, at, zone, OW_SKEW_BINS);
	bool clear = fabs(near.by) >= SHIFT_LEAST_NS && fabs(near.by) > SHIFT_CLEAR * near.spread;
	bool few = !has_stretches(&other, STEP_STRETCHES) && !has_packets(&other);
	bool tells = !few && other.spread < fabs(near.by);
	return !tells && clear && has_stretches(&near, SHIFT_STRETCHES) ? near.by : 0;
}

bool ow_skew_shift(const struct ow_skew *d, enum ow_direction *ret_way, int64_t *ret_at_ns, int64_t *ret_ns)
{
	double most = 0;
	unsigned zone = zone_of(d);
	for (unsigned i = 0; i < OW_DIRECTIONS * OW_SKEW_BINS; i++) {
		unsigned way = i / OW_SKEW_BINS, at = i % OW_SKEW_BINS;
		double by = shift_at(d, way, at, zone);
		/* If packets get faster, the stretches before the change look like it, too: the last one is it. */
		bool later = by < 0 && most < 0 && *ret_way == way && by < most * SHIFT_SAME;
		if (fabs(by) <= fabs(most) / SHIFT_SAME && !later)
			continue;
		most = by;
		*ret_way = (enum ow_direction)way;
		*ret_at_ns = time_of(d, at);
		*ret_ns = llrint(by);
	}
	return most != 0;
}
