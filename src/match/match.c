/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact matching of two capture files: plan, pass, and again with what the pass taught (further truncation,
 * superframes, directions, the exact clock offset), until nothing changes; then, if events or intervals are wanted, a
 * last pass that tells them. Every pass streams; memory follows the waiting packets and the flows.
 */
#include "match/match_private.h"

#include "match/capture_time_range.h"
#include "match/match_options.h"
#include "match/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PASSES_MAX     10   /* in a row: each settles one question; there are not that many */
#define ORDER_SAMPLES  8    /* unique packets that tell whether a path keeps order: .. */
#define ORDER_FORGIVES 100  /* one of so many may be a wrong pair; */
#define ORDER_TIMES    1000 /* .. fewer than one in so many are overtaken */
#define LEAST_SAMPLES  48   /* delays of unique packets, whose least is taken for the least of all */

/* -- progress ----------------------------------------------------------------------------------------------------- */

static void on_progress(void *arg)
{
	struct ow_match *m = arg;
	double done = 0, size = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		struct ow_reader *reader = m->pass.tap[side].reader;
		done += (double)m->pass.position[side];
		size += (double)ow_reader_info(reader)->size_bytes;
	}
	double expected = m->options.on_packet || m->options.interval_ns ? 2 : 1;
	if (m->passes + 1 > expected)
		expected = m->passes + 1;
	m->options.on_progress(m->options.arg, size > 0 ? (m->passes + done / size) / expected : 0);
}

/* -- passes ------------------------------------------------------------------------------------------------------- */

int ow_match_run(struct ow_match *m, struct ow_error *err)
{
	int r = ow_match_pass_run(&m->pass, err);
	m->passes++;
	return r;
}

static uint32_t least_available(const struct ow_match_pass *p)
{
	uint32_t a = p->tap[OW_SIDE_A].facts.least_available, b = p->tap[OW_SIDE_B].facts.least_available;
	return a < b ? a : b;
}

static bool limit_too_high(const struct ow_match_pass *p)
{
	return (p->tap[OW_SIDE_A].facts.below_limit || p->tap[OW_SIDE_B].facts.below_limit) &&
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
	*ret_ns = unlike ? ow_floor_find(floor, (int64_t)delay.quantile_ns[OW_Q50]) : delay.min_ns;
	return true;
}

/*
 * The least delay of the only direction. Identical packets say nothing of the clocks, but are samples: one that is a
 * little faster than all others would be below 0.
 */
static int64_t only_floor(const struct ow_match_pass *p, enum ow_direction direction, int64_t floor_ns)
{
	struct ow_delay delay;
	ow_tally_summary(&p->tally[direction], &delay);
	double above = delay.quantile_ns[OW_Q50] - (double)floor_ns, below = (double)floor_ns - (double)delay.min_ns;
	return below > 0 && below <= above ? delay.min_ns : floor_ns;
}

/* Half the difference of the two least delays, or the least of the only direction, moves to 0. */
static int64_t clock_correction(const struct ow_match_pass *p)
{
	int64_t ab = 0, ba = 0;
	bool has_ab = ow_match_floor(p, OW_A_TO_B, &ab), has_ba = ow_match_floor(p, OW_B_TO_A, &ba);
	if (has_ab && has_ba)
		return (ba - ab) / 2;
	return has_ab ? -only_floor(p, OW_A_TO_B, ab) : has_ba ? only_floor(p, OW_B_TO_A, ba) : 0;
}

static void correct_clock(struct ow_plan *plan, int64_t correction)
{
	plan->shift_ns += correction;
	plan->offset_ns = plan->shift_ns;
	/* The delays that are expected are those of the clocks. */
	plan->low_ns[OW_A_TO_B] += correction;
	plan->high_ns[OW_A_TO_B] += correction;
	plan->least_ns[OW_A_TO_B] += correction;
	plan->least_ns[OW_B_TO_A] -= correction;
	plan->low_ns[OW_B_TO_A] -= correction;
	plan->high_ns[OW_B_TO_A] -= correction;
}

/* The delays of the last pass, where none were known beforehand: they tell identical packets apart from the start. */
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

/* A drift makes the shift change with B's time. What the samples showed is made exact by the fastest packets. */
static bool correct_drift(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	double ppb;
	bool refined = p->plan.drift != 0 && ow_skew_refine(&p->skew, &ppb);
	if (!refined && !ow_skew_estimate(&p->skew, &ppb))
		return false;
	if (p->plan.drift == 0)
		p->plan.drift_from_ns = p->tap[OW_SIDE_B].facts.first_ns;
	p->plan.drift -= ppb / 1e9;
	/* The delays by which identical packets were told apart hold no more. */
	p->plan.expects[OW_A_TO_B] = p->plan.expects[OW_B_TO_A] = false;
	p->plan.has_least[OW_A_TO_B] = p->plan.has_least[OW_B_TO_A] = false;
	return true;
}

/* How long ago a packet may have been sent that another one overtakes. The few that were seen to be overtaken hardly
 * show the longest time: with 95 % it is below this, if all times up to it are as likely. */
static int64_t longest_overtaking(const struct ow_tally *tally)
{
	double longest = (double)tally->reorder_ns * pow(20, 1 / (double)tally->reordered);
	return longest < (double)OW_NS_PER_S ? (int64_t)longest : tally->reorder_ns;
}

/* Paths that let packets overtake each other leave more open which of identical packets is which. */
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

/* The fastest unique packet of the whole captures: those that came first may have been slow. */
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
		p->plan.least_ns[d] = least + (d == OW_A_TO_B ? correct : -correct);
	}
	return more;
}

/* What a pass shows of the path, which tells identical packets apart in the next one. */
static bool learn_path(struct ow_match_pass *p)
{
	bool reordering = learn_reordering(p), order = learn_order(p), least = learn_least(p);
	return reordering || order || least;
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
	if (p->miscounted || learn_path(p))
		return true;
	if (m->options.clock == OW_CLOCK_ESTIMATED && !m->drift_settled) {
		m->drift_settled = true;
		if (correct_drift(m))
			return true;
	}
	if (m->options.clock == OW_CLOCK_ESTIMATED && !m->clock_settled) {
		int64_t correction = clock_correction(p);
		m->clock_settled = true;
		expect_delays(p);
		correct_clock(&p->plan, correction);
		return correction != 0;
	}
	return false;
}

static int improve_all(struct ow_match *m, struct ow_error *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < PASSES_MAX && improve(m); i++)
		r = ow_match_run(m, err);
	return r;
}

int ow_match_settle(struct ow_match *m, struct ow_error *err)
{
	int r = ow_match_run(m, err);
	return r < 0 ? r : improve_all(m, err);
}

static int run_until_settled(struct ow_match *m, struct ow_error *err)
{
	int r = ow_match_settle(m, err);
	if (r == 0)
		r = ow_match_leave_copies_out(m, err);
	if (r < 0 || m->options.segments == OW_OFF || m->pass.plan.identity.level == OW_LEVEL_FRAME)
		return r;
	r = ow_match_try_identities(m, err);
	if (r == 0)
		r = ow_match_leave_copies_out(m, err);
	m->clock_settled = m->drift_settled = false; /* what was cut since may tell more of the clocks */
	return r < 0 ? r : improve_all(m, err);
}

/* When the first packet passed either point, of those that have a time. */
static int64_t first_time(const struct ow_match_pass *p)
{
	const struct ow_record_reader_facts *a = &p->tap[OW_SIDE_A].facts, *b = &p->tap[OW_SIDE_B].facts;
	int64_t a_ns = a->first_ns, b_ns = b->first_ns + p->plan.offset_ns;
	bool only_b = a->untimed == a->packets, only_a = b->untimed == b->packets;
	return only_b || (!only_a && b_ns < a_ns) ? b_ns : a_ns;
}

static int tell_events(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	if (!m->options.on_packet && !m->options.interval_ns)
		return 0;
	p->events = m->options.on_packet != NULL;
	if (m->options.interval_ns > 0) {
		int r = ow_intervals_create(m->options.interval_ns, p->plan.window_ns, first_time(p), &m->intervals);
		if (r < 0)
			return ow_error_set(err, -r, "out of memory");
		p->intervals = m->intervals;
	}
	int r = ow_match_run(m, err);
	if (r == -ERANGE)
		return ow_error_set(err, ERANGE, "more than %u intervals: choose a longer --interval",
		                    OW_INTERVALS_MAX);
	if (r == 0 && m->intervals)
		r = ow_intervals_finish(m->intervals, &m->report.interval, &m->report.intervals);
	return r;
}

static int refuse_no_matches(struct ow_match *m, struct ow_error *err)
{
	if (m->planner.strangers)
		return ow_plan_refuse(&m->planner, m->pass.tap, err);
	char text[OW_DURATION_TEXT];
	ow_duration_text((double)m->pass.plan.window_ns, text);
	return ow_error_set(err, ENOMSG, "nothing in common: no packet of %s was in %s within %s of its time",
	                    m->report.capture[OW_SIDE_A].path, m->report.capture[OW_SIDE_B].path, text);
}

/* Looks through a capture. */
static int check_order(struct ow_reader *reader, int64_t window_ns, struct ow_error *err)
{
	struct ow_frame frame[OW_RECORD_READER_BATCH];
	struct ow_order order;
	int n, r = ow_reader_rewind(reader, err);
	if (r < 0)
		return r;
	ow_order_init(&order, window_ns);
	while ((n = ow_reader_read(reader, frame, OW_RECORD_READER_BATCH, err)) > 0) {
		for (int i = 0; i < n; i++)
			ow_order_add(&order, &frame[i]);
	}
	return n < 0 ? n : ow_order_check(&order, ow_reader_info(reader)->path, err);
}

/* Captures that are not in the order of time are refused. If they have nothing in common, that may be the reason. */
static int check_orders(struct ow_match *m, int result, struct ow_error *err)
{
	int64_t window_ns = m->pass.plan.window_ns ? m->pass.plan.window_ns : 2 * OW_NS_PER_S;
	if (result < 0 && result != -ENOMSG)
		return result;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader *tap = &m->pass.tap[side];
		struct ow_error why;
		if (result == 0 && tap->facts.behind_most_ns <= window_ns)
			continue;
		int r = check_order(tap->reader, window_ns, &why);
		if (r < 0)
			return ow_error_set(err, -r, "%s", why.text);
	}
	return result;
}

static int match(struct ow_match *m, const char *const path[OW_SIDES], struct ow_error *err)
{
	/* Who writes a capture must not know by what it is hashed: he could make all packets meet in one place. */
	m->planner.seed = m->options.seed;
	if (m->planner.seed == 0 &&
	    getrandom(&m->planner.seed, sizeof m->planner.seed, 0) != (ssize_t)sizeof m->planner.seed)
		return ow_error_set(err, EIO, "no random numbers: %s", strerror(errno));
	for (unsigned side = 0; side < OW_SIDES; side++) {
		int r = ow_record_reader_open(&m->pass.tap[side], path[side], m->options.dedup_ns, ~m->planner.seed,
		                              err);
		if (r < 0)
			return r;
	}
	int r = ow_plan_make(&m->planner, m->pass.tap, &m->pass.plan, err);
	if (r == 0)
		r = run_until_settled(m, err);
	r = check_orders(m, r, err);
	if (r == 0)
		r = ow_match_find_holes(m, err);
	if (r == 0)
		r = ow_match_settle_direction(m, err);
	if (r == 0)
		r = tell_events(m, err);
	if (r < 0)
		return r;
	r = ow_match_fill_report(m);
	if (r < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	if (!m->report.direction[OW_A_TO_B].matched && !m->report.direction[OW_B_TO_A].matched)
		return check_orders(m, refuse_no_matches(m, err), err);
	return ow_match_warn(m);
}

int ow_match_files(const char *path_a, const char *path_b, const struct ow_match_options *options,
                   struct ow_match **ret_match, struct ow_error *err)
{
	const char *const path[OW_SIDES] = {path_a, path_b};
	struct ow_match_options taken;
	int r = ow_match_options_take(options, &taken, err);
	if (r < 0)
		return r;
	struct ow_match *m = calloc(1, sizeof *m);
	if (!m || (m->options = taken, ow_match_pass_init(&m->pass, &m->options)) < 0) {
		ow_match_free(m);
		return ow_error_set(err, ENOMEM, "out of memory");
	}
	m->planner.options = &m->options;
	if (taken.on_progress) {
		m->pass.progress = on_progress;
		m->pass.progress_arg = m;
	}
	r = match(m, path, err);
	if (r < 0) {
		ow_match_free(m);
		return r;
	}
	*ret_match = m;
	return 0;
}

const struct ow_match_report *ow_match_report(const struct ow_match *match)
{
	return &match->report;
}

void ow_match_free(struct ow_match *match)
{
	if (!match)
		return;
	ow_match_pass_done(&match->pass);
	ow_intervals_free(match->intervals);
	free(match->cut);
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_datagrams_free(match->datagrams[side]);
	for (size_t i = 0; i < match->warnings; i++)
		free(match->warning[i]);
	free(match);
}
