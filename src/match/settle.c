/* SPDX-License-Identifier: Apache-2.0 */
/* Passes until nothing changes: what a pass teaches of truncation, of the path and of the clocks goes into the plan of
 * the next one. */
#include "match/match_private.h"

#include "match/plan.h"
#include <math.h>

#define PASSES_MAX      10   /* passes in a row: each answers one question, and there are fewer questions */
#define ORDER_SAMPLES   8    /* unique packets that show whether a path keeps the order: .. */
#define ORDER_FORGIVES  100  /* one in this many may be a wrong pair; */
#define ORDER_TIMES     1000 /* .. fewer than one in this many are overtaken */
#define WINDOW_SURE     10   /* delays tell the waiting time if not more than one in this many is ambiguous */
#define DRIFT_RESIDUE   0.01 /* share of a drift that its refinement leaves: the rest of an error, not a drift */
#define CORRECTIONS_MAX 3    /* of the clock, in a row */
#define LEAST_SAMPLES   48   /* delays of unique packets, whose smallest stands for the smallest of all */

int ow_match_run(struct ow_match *m, struct ow_error *err)
{
	int r = m->host.run_pass ? m->host.run_pass(m->host.arg, &m->pass, err) : ow_match_pass_run(&m->pass, err);
	m->passes++;
	return r;
}

static uint32_t least_available(const struct ow_match_pass *p)
{
	uint32_t a = p->input[OW_SIDE_A].facts.least_available, b = p->input[OW_SIDE_B].facts.least_available;
	return a < b ? a : b;
}

static bool limit_too_high(const struct ow_match_pass *p)
{
	return (p->input[OW_SIDE_A].facts.below_limit || p->input[OW_SIDE_B].facts.below_limit) &&
	       least_available(p) < p->plan.identity.hash_limit;
}

bool ow_match_floor(const struct ow_match_pass *p, enum ow_direction direction, int64_t *ret_ns)
{
	const struct ow_floor *floor = &p->floor[direction];
	struct ow_delay delay;
	bool unlike = p->floor[OW_A_TO_B].samples || p->floor[OW_B_TO_A].samples;
	ow_tally_summary(&p->tally[direction], &delay);
	if (unlike ? !floor->samples : !delay.samples)
		return false;
	*ret_ns = !unlike          ? delay.min_ns
	          : p->no_outliers ? floor->least_ns[0]
	                           : ow_floor_find(floor, (int64_t)delay.quantile_ns[OW_Q50]);
	return true;
}

/*
 * The smallest delay of the only direction. Identical packets give no information about the clocks, but are samples:
 * one that is slightly faster than all others would be below 0.
 */
static int64_t only_floor(const struct ow_match_pass *p, enum ow_direction direction, int64_t floor_ns)
{
	struct ow_delay delay;
	ow_tally_summary(&p->tally[direction], &delay);
	double above = delay.quantile_ns[OW_Q50] - (double)floor_ns, below = (double)floor_ns - (double)delay.min_ns;
	return below > 0 && below <= above ? delay.min_ns : floor_ns;
}

/*
 * Half of the difference of the two smallest delays, or the smallest of the only direction, becomes 0.
 *
 * Live measurement uses another estimator (estimate/clock_tracker.h). It answers from the past alone and needs seconds.
 * A capture is available as a whole, may be a millisecond long, and is read again with the correction: one line through
 * the fastest packets of all of it is more exact. For a minute of 1400 packets/s at 20 ppm, the error of the mean delay
 * is 3 ns here, and 200 ns with the tracker. A clock that was set is reported and not corrected.
 */
static int64_t clock_correction(const struct ow_match_pass *p)
{
	int64_t ab = 0, ba = 0;
	bool has_ab = ow_match_floor(p, OW_A_TO_B, &ab), has_ba = ow_match_floor(p, OW_B_TO_A, &ba);
	if (has_ab && has_ba)
		return (ba - ab) / 2;
	return has_ab ? -only_floor(p, OW_A_TO_B, ab) : has_ba ? only_floor(p, OW_B_TO_A, ba) : 0;
}

/* No offset fits: a clock was set. */
static bool contradictory(const struct ow_match_pass *p)
{
	int64_t ab = 0, ba = 0;
	return ow_match_floor(p, OW_A_TO_B, &ab) && ow_match_floor(p, OW_B_TO_A, &ba) && ab / 2 + ba / 2 < 0;
}

static void correct_clock(struct ow_match_pass *p, int64_t correction)
{
	struct ow_plan *plan = &p->plan;
	/* The shift tells the directions by one of the clocks; with the middle of both, it would tell none. */
	if (contradictory(p)) {
		plan->offset_ns += correction;
		return;
	}
	plan->shift_ns += correction;
	plan->offset_ns = plan->shift_ns;
	/* The expected delays depend on the clocks. */
	plan->low_ns[OW_A_TO_B] += correction;
	plan->high_ns[OW_A_TO_B] += correction;
	plan->least_ns[OW_A_TO_B] += correction;
	plan->least_ns[OW_B_TO_A] -= correction;
	plan->low_ns[OW_B_TO_A] -= correction;
	plan->high_ns[OW_B_TO_A] -= correction;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		p->usual[d].least_ns += d == OW_A_TO_B ? correction : -correction;
		p->usual[d].most_ns += d == OW_A_TO_B ? correction : -correction;
		p->flight_ns[d] += d == OW_A_TO_B ? correction : -correction;
	}
}

/* The delays of the last pass, if none were known before: they tell identical packets apart from the start. */
static void expect_delays(struct ow_match_pass *p)
{
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		struct ow_delay delay;
		ow_tally_summary(&p->tally[d], &delay);
		if (p->plan.expects[d] || !p->floor[d].samples)
			continue;
		int64_t correct = p->plan.shift_ns - p->plan.offset_ns;
		p->plan.expects[d] = true;
		p->plan.low_ns[d] = ow_floor_find(&p->floor[d], (int64_t)delay.quantile_ns[OW_Q50]);
		p->plan.high_ns[d] = (int64_t)delay.quantile_ns[OW_Q99];
		p->plan.low_ns[d] += d == OW_A_TO_B ? correct : -correct;
		p->plan.high_ns[d] += d == OW_A_TO_B ? correct : -correct;
	}
}

/* A drift changes the shift with B's time. The fastest packets refine the estimate of the samples. */
static bool correct_drift(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	double ppb;
	bool refined = p->plan.drift != 0 && ow_skew_refine(&p->skew, &ppb);
	if (!refined && !ow_skew_estimate(&p->skew, &ppb))
		return false;
	if (p->plan.drift == 0)
		p->plan.drift_from_ns = p->input[OW_SIDE_B].facts.first_ns;
	double sampled = p->plan.drift;
	p->plan.drift -= ppb / 1e9;
	/* The samples took queues that grow for a drift, and the fastest packets show that there is none. */
	if (fabs(p->plan.drift) < DRIFT_RESIDUE * fabs(sampled))
		p->plan.drift = 0;
	/* The delays that told identical packets apart are no longer valid. */
	p->plan.expects[OW_A_TO_B] = p->plan.expects[OW_B_TO_A] = false;
	p->plan.has_least[OW_A_TO_B] = p->plan.has_least[OW_B_TO_A] = false;
	return true;
}

/*
 * How long before another packet an overtaken one may have been sent. The few overtaken packets hardly show the longest
 * time: with 95 % probability it is below this, if all times up to it are equally likely.
 */
static int64_t longest_overtaking(const struct ow_tally *tally)
{
	double longest = (double)tally->reorder_ns * pow(20, 1 / (double)tally->reordered);
	return longest < (double)OW_NS_PER_S ? (int64_t)longest : tally->reorder_ns;
}

/* If packets overtake each other, the assignment of identical packets is less certain. */
static bool learn_reordering(struct ow_match_pass *p)
{
	bool more = false;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (!p->repeats[d] || p->tally[d].reorder_ns <= p->plan.reorder_ns[d])
			continue;
		p->plan.reorder_ns[d] = longest_overtaking(&p->tally[d]);
		more = true;
	}
	return more;
}

/* Whether the path keeps the order of unique packets, and with it that of identical ones. */
static bool learn_order(struct ow_match_pass *p)
{
	bool other = false;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		uint64_t samples = p->floor[d].samples;
		/* One of many may be a wrong pair. */
		uint64_t most = samples / ORDER_TIMES + (samples >= ORDER_FORGIVES);
		bool in_order = samples >= ORDER_SAMPLES && p->tally[d].reordered <= most;
		if (!p->tally[d].ambiguous || in_order == p->plan.in_order[d])
			continue;
		p->plan.in_order[d] = in_order;
		other = true;
	}
	return other;
}

/* The fastest unique packet of the whole captures: the first ones may have been slow. */
static bool learn_least(struct ow_match_pass *p)
{
	bool more = false;
	int64_t correct = p->plan.shift_ns - p->plan.offset_ns;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		int64_t least;
		if (p->plan.has_least[d] || !p->tally[d].ambiguous || p->floor[d].samples < LEAST_SAMPLES ||
		    !ow_match_floor(p, d, &least))
			continue;
		p->plan.has_least[d] = more = true;
		p->plan.least_ns[d] = ow_floor_below(&p->floor[d], least) + (d == OW_A_TO_B ? correct : -correct);
	}
	return more;
}

/* What a pass shows of the path; it tells identical packets apart in the next one. */
static bool learn_path(struct ow_match_pass *p)
{
	bool reordering = learn_reordering(p), order = learn_order(p), least = learn_least(p);
	return reordering || order || least;
}

/* The plan took the waiting time from a sample, of packets that are whole at both points. Delays of identical packets
 * say nothing of how long it takes. */
bool ow_match_wait_longer(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	int64_t correct = p->plan.shift_ns - p->plan.offset_ns, *window_ns = &p->plan.window_ns;
	bool late = false;
	if (m->options.window_ns || p->plan.untimed || *window_ns >= OW_WINDOW_STRETCH_NS)
		return false;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_tally *t = &p->tally[d];
		struct ow_delay delay;
		ow_tally_summary(t, &delay);
		int64_t most = delay.max_ns + (d == OW_A_TO_B ? correct : -correct);
		late |= delay.samples && t->lost && t->extra > t->duplicated && most > *window_ns / 4 * 3 &&
		        t->ambiguous * WINDOW_SURE <= t->matched;
	}
	if (late)
		*window_ns = *window_ns < OW_WINDOW_STRETCH_NS / 2 ? 2 * *window_ns : OW_WINDOW_STRETCH_NS;
	return late;
}

/* One change to the plan after a pass: true if another pass is needed. */
static bool improve(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	if (limit_too_high(p) && !m->limit_settled) {
		m->limit_settled = least_available(p) <= OW_PLAN_LIMIT_FLOOR;
		ow_plan_limit(&m->planner, &p->plan, least_available(p));
		return true;
	}
	if (p->miscounted || learn_path(p) || ow_match_wait_longer(m))
		return true;
	if (m->options.clock == OW_CLOCK_ESTIMATED && !m->drift_settled) {
		m->drift_settled = true;
		if (correct_drift(m))
			return true;
	}
	if (m->options.clock == OW_CLOCK_ESTIMATED && !m->clock_settled) {
		int64_t correction = clock_correction(p);
		/* With another clock, identical packets are paired otherwise, and other packets look like outliers. */
		if (correction && m->corrections % CORRECTIONS_MAX) {
			p->no_outliers = true;
			correction = clock_correction(p);
		}
		m->clock_settled = correction == 0 || ++m->corrections % CORRECTIONS_MAX == 0;
		expect_delays(p);
		correct_clock(p, correction);
		return correction != 0;
	}
	return false;
}

int ow_match_improve(struct ow_match *m, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < PASSES_MAX && improve(m); i++)
		r = ow_match_run(m, err);
	return r;
}

int ow_match_settle(struct ow_match *m, struct ow_error *err)
{
	int r = ow_match_run(m, err);
	return r < 0 ? r : ow_match_improve(m, err);
}
