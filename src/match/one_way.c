/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the direction of traffic that goes one way, if the clocks alone do not show it. */
#include "match/match_private.h"

#include <errno.h>

#define TAIL_SAMPLES 100 /* delays that are needed to judge a tail */
#define TAIL_CLEAR   3   /* this many times as long as the other one */
#define LOSS_PACKETS 10  /* packets that one point shows and the other does not, .. */
#define LOSS_CLEAR   10  /* .. and this many times as many as in the reverse direction */
/* share of packets whose delay has another sign than most: the clocks cannot show directions */
#define SIGNS_MIXED 0.01

/* B's time minus A's over all samples, in the common time base. */
static void extremes(const struct ow_match_pass *p, int64_t *ret_least, int64_t *ret_most)
{
	struct ow_delay ab, ba;
	ow_tally_summary(&p->tally[OW_A_TO_B], &ab);
	ow_tally_summary(&p->tally[OW_B_TO_A], &ba);
	int64_t least = INT64_MAX, most = INT64_MIN, correct = p->plan.shift_ns - p->plan.offset_ns;
	if (ab.samples) {
		least = ab.min_ns;
		most = ab.max_ns;
	}
	if (ba.samples && -ba.max_ns < least)
		least = -ba.max_ns;
	if (ba.samples && -ba.min_ns > most)
		most = -ba.min_ns;
	*ret_least = least + correct;
	*ret_most = most + correct;
}

/* Queues make packets slower, never faster: the longer tail of the delays is above the median. */
static bool way_of_tail(const struct ow_match_pass *p, enum ow_direction *ret_way)
{
	enum ow_direction d = p->tally[OW_A_TO_B].matched >= p->tally[OW_B_TO_A].matched ? OW_A_TO_B : OW_B_TO_A;
	const struct ow_delays *delays = ow_tally_borrow(&p->tally[d]);
	if (!delays)
		return false;
	bool few = ow_delays_samples(delays) < TAIL_SAMPLES;
	double median = few ? 0 : ow_delays_quantile(delays, 0.5);
	double above = few ? 0 : ow_delays_quantile(delays, 0.99) - median;
	double below = few ? 0 : median - ow_delays_quantile(delays, 0.01);
	ow_tally_return(&p->tally[d], delays);
	if (few)
		return false;
	if (above > TAIL_CLEAR * below)
		*ret_way = d;
	else if (below > TAIL_CLEAR * above)
		*ret_way = !d;
	else
		return false;
	return true;
}

/* Packets are lost between the points, not created: the point that shows more of them is the sending one. */
static bool way_of_loss(const struct ow_direction_evidence *e, enum ow_direction *ret_way)
{
	uint64_t a = e->only[OW_SIDE_A], b = e->only[OW_SIDE_B];
	*ret_way = a > b ? OW_A_TO_B : OW_B_TO_A;
	return (a > b ? a : b) >= LOSS_PACKETS && (a > b ? a : b) > LOSS_CLEAR * (a > b ? b : a);
}

/*
 * Chooses the direction if packets go one way only and the clocks are not known to be right. The clocks decide if all
 * packets agree, unless they show B to A and the losses A to B. Returns false if there is nothing to change.
 */
static bool choose_way(const struct ow_match *m, const struct ow_direction_evidence *e, enum ow_direction *ret_way,
                       enum ow_way_reason *ret_why)
{
	const struct ow_plan *plan = &m->pass.plan;
	uint64_t matched = e->way[OW_A_TO_B] + e->way[OW_B_TO_A];
	bool estimated = plan->rule == OW_ONE_WAY, agree = (double)e->against <= SIGNS_MIXED * (double)matched;
	bool two_ways = e->way[OW_A_TO_B] && e->way[OW_B_TO_A];
	enum ow_direction by_clocks = e->way[OW_A_TO_B] >= e->way[OW_B_TO_A] ? OW_A_TO_B : OW_B_TO_A;
	*ret_way = OW_A_TO_B;
	*ret_why = OW_WAY_ASSUMED;
	if (!estimated && agree && two_ways)
		return false; /* between some hosts in this direction, between others in the reverse */
	if (ow_plan_hops(&m->planner, ret_way))
		*ret_why = OW_WAY_HOPS;
	else if (way_of_loss(e, ret_way) && (estimated || !agree || *ret_way == OW_A_TO_B))
		*ret_why = OW_WAY_LOST;
	else if (!estimated && agree)
		return false;
	else if (way_of_tail(&m->pass, ret_way))
		*ret_why = OW_WAY_TAIL;
	else
		*ret_way = OW_A_TO_B;
	return *ret_way != (estimated ? plan->way : by_clocks) || (!estimated && !agree);
}

/* In the common time base no packet arrives before it was sent. */
static void go_one_way(struct ow_match_pass *p, enum ow_direction way, bool estimated)
{
	int64_t least, most;
	extremes(p, &least, &most);
	if (way == OW_A_TO_B && (least < 0 || estimated))
		p->plan.shift_ns -= least;
	if (way == OW_B_TO_A && (most > 0 || estimated))
		p->plan.shift_ns -= most;
	if (estimated)
		p->plan.offset_ns = p->plan.shift_ns;
	p->plan.rule = OW_ONE_WAY;
	p->plan.way = way;
	p->plan.expects[OW_A_TO_B] = p->plan.expects[OW_B_TO_A] = false;
	p->plan.has_least[OW_A_TO_B] = p->plan.has_least[OW_B_TO_A] = false;
	p->gaps[OW_SIDE_A] = p->gaps[OW_SIDE_B] = 0;
	ow_directions_forget(p->directions);
}

int ow_match_settle_direction(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	const struct ow_flow_table *const keys[OW_SIDES] = {p->input[OW_SIDE_A].flows, p->input[OW_SIDE_B].flows};
	struct ow_direction_evidence evidence;
	enum ow_direction way;
	enum ow_way_reason why;
	if (p->plan.rule == OW_ALL_FORWARD || p->plan.untimed || m->options.clock == OW_CLOCK_GIVEN ||
	    !ow_match_matched(p))
		return 0;
	if (ow_directions_weigh(p->directions, keys, &evidence) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (evidence.both)
		return 0;
	bool change = choose_way(m, &evidence, &way, &why);
	if (p->plan.rule == OW_ONE_WAY || change)
		p->plan.why = why;
	if (!change)
		return 0;
	go_one_way(p, way, m->options.clock == OW_CLOCK_ESTIMATED);
	m->clock_settled = m->drift_settled = false;
	int r = ow_match_settle(m, err);
	return r < 0 ? r : ow_match_find_holes(m, err);
}
