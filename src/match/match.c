/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exact matching of two capture files: plan, pass, and again with what the pass taught (further truncation,
 * superframes, directions, the exact clock offset), until nothing changes; then, if events or intervals are wanted, a
 * last pass that tells them. Every pass streams; memory follows the waiting packets and the flows.
 */
#include "match/match.h"

#include "base/hash.h"
#include "match/capture_time_range.h"
#include "match/match_options.h"
#include "match/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PASSES_MAX      10 /* in a row: each settles one question; there are not that many */
#define PROTO_TCP       6
#define SUPERFRAME_FROM 1501u /* a longer TCP packet may be a superframe (or a jumbo frame: then nothing is gained) */
#define TAIL_SAMPLES    100   /* delays that a tail is judged by */
#define TAIL_CLEAR      3     /* so many times as long as the other one */
#define LOSS_PACKETS    10    /* packets that one point shows and the other does not, .. */
#define LOSS_CLEAR      10    /* .. so many times as many as the other way round */
#define SIGNS_MIXED     0.01 /* share of packets whose delay has another sign than most: clocks cannot tell directions */
#define ORDER_SAMPLES   8    /* unique packets that tell whether a path keeps order: .. */
#define ORDER_FORGIVES  100  /* one of so many may be a wrong pair; */
#define ORDER_TIMES     1000 /* .. fewer than one in so many are overtaken */
#define LEAST_SAMPLES   48   /* delays of unique packets, whose least is taken for the least of all */
#define SEGMENTS_GAIN   1.01 /* cutting superframes must match this many times as many bytes */
/* TCP that is rewritten: packets that only one side shows, at both sides; leaving its options and numbers out helps. */
#define REWRITTEN_LEAST 2u
#define REWRITTEN_SHARE 0.005 /* of the matches */
#define REWRITTEN_GAIN  1.25  /* so many times fewer must stay alone */
#define SILENCE_UNUSUAL 4     /* times as long as all silences in which no packet is missing */
/* Below these shares of the matches, captures show packets once. */
#define COPIES_SHARE 0.001 /* copies without counterpart */
#define ALIKE_SHARE  0.1   /* packets that others are like: both captures may show all of them twice */

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

static int run(struct ow_match *m, struct ow_error *err)
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

static uint64_t matched(const struct ow_match_pass *p)
{
	return p->tally[OW_A_TO_B].matched + p->tally[OW_B_TO_A].matched;
}

static uint64_t unmatched(const struct ow_match_pass *p, enum ow_side side)
{
	return p->records[side] > matched(p) ? p->records[side] - matched(p) : 0;
}

static bool superframes_likely(const struct ow_match_pass *p)
{
	return p->plan.identity.tcp != OW_TCP_ANY_NUMBERS &&
	       (p->tap[OW_SIDE_A].facts.longest_tcp >= SUPERFRAME_FROM ||
	        p->tap[OW_SIDE_B].facts.longest_tcp >= SUPERFRAME_FROM) &&
	       unmatched(p, OW_SIDE_A) && unmatched(p, OW_SIDE_B);
}

static void learn_segments(struct ow_match_pass *p)
{
	const uint32_t longest[OW_SIDES] = {p->tap[OW_SIDE_A].facts.longest_tcp, p->tap[OW_SIDE_B].facts.longest_tcp};
	ow_tcp_segments_learn(&p->pieces, longest);
}

/* Matched bytes of TCP data cannot be told without cutting; so compare what stays unmatched, in frames. */
static int try_segments(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = unmatched(p, OW_SIDE_A) + unmatched(p, OW_SIDE_B);
	p->plan.identity.segments = true;
	int r = run(m, err);
	if (r < 0)
		return r;
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if ((double)before > SEGMENTS_GAIN * (double)after) {
		learn_segments(p);
		return run(m, err);
	}
	p->plan.identity.segments = false;
	return run(m, err);
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
		r = run(m, err);
	return r;
}

static int settle(struct ow_match *m, struct ow_error *err)
{
	int r = run(m, err);
	return r < 0 ? r : improve_all(m, err);
}

/*
 * A host that sends through a tunnel shows superframes in it: UDP or GRE packets longer than any wire takes. Only their
 * inner packets can be cut.
 */
static bool tunnelled_superframes_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	const struct ow_record_reader_facts *a = &p->tap[OW_SIDE_A].facts, *b = &p->tap[OW_SIDE_B].facts;
	return m->options.inner == OW_AUTO && m->options.segments != OW_OFF && !p->plan.identity.inner &&
	       p->plan.identity.tcp != OW_TCP_ANY_NUMBERS &&
	       (a->longest_tunnel >= SUPERFRAME_FROM || b->longest_tunnel >= SUPERFRAME_FROM) &&
	       unmatched(p, OW_SIDE_A) && unmatched(p, OW_SIDE_B);
}

/* With another identity flows have other numbers: what is known of them holds no more. */
static int change_variant(struct ow_match *m, enum ow_variant variant, bool segments)
{
	ow_directions_free(m->pass.directions);
	m->pass.directions = NULL;
	ow_tcp_segments_done(&m->pass.pieces);
	m->planner.variant = variant;
	m->pass.plan.identity.segments = segments;
	m->pass.plan.identity.cut = NULL;
	m->pass.plan.identity.cut_df = false;
	m->limit_settled = false;
	uint32_t limit = m->planner.limit[variant];
	if (m->planner.tcp && m->planner.limit[OW_VARIANT_IP_ANY_TCP] < limit)
		limit = m->planner.limit[OW_VARIANT_IP_ANY_TCP];
	ow_plan_limit(&m->planner, &m->pass.plan, limit);
	return ow_directions_create(&m->pass.directions);
}

static int try_inner(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = unmatched(p, OW_SIDE_A) + unmatched(p, OW_SIDE_B);
	enum ow_variant variant = m->planner.variant;
	int r = change_variant(m, ow_variant_entered(variant), true);
	if (r == 0)
		r = settle(m, err);
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (r == 0 && (double)before > SEGMENTS_GAIN * (double)after) {
		learn_segments(p);
		return run(m, err);
	}
	if (r == 0)
		r = change_variant(m, variant, m->options.segments == OW_ON);
	return r < 0 ? ow_error_set(err, -r, "out of memory") : settle(m, err);
}

/* -- TCP that is rewritten ---------------------------------------------------------------------------------------- */

/*
 * Packets of TCP connections of which not one packet matches, though the other point shows the same connection. (Behind
 * a translator it may be any.)
 */
static uint64_t unknown_tcp(const struct ow_match_pass *p, enum ow_side side)
{
	uint64_t n = 0;
	uint32_t flows = ow_flow_table_count(p->tap[side].flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
		const struct ow_flow_key *key = ow_flow_table_key(p->tap[side].flows, i);
		if (e && key && e->direction == OW_DIRECTIONS && key->proto == PROTO_TCP &&
		    (p->plan.identity.level == OW_LEVEL_NAT ||
		     ow_flow_table_find(p->tap[!side].flows, key) != UINT32_MAX))
			n += e->unmatched;
	}
	return n;
}

/*
 * Packets that one point shows and others that the other one shows instead: not what loss looks like. Those of
 * connections that do not match at all, and those that are lost and extra the same way.
 */
static uint64_t exchanged(const struct ow_match_pass *p)
{
	uint64_t a = unknown_tcp(p, OW_SIDE_A), b = unknown_tcp(p, OW_SIDE_B), n = a < b ? a : b;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_tally *t = &p->tally[d];
		uint64_t extra = t->extra - t->duplicated;
		n += t->lost < extra ? t->lost : extra;
	}
	return n;
}

static bool tcp_rewriting_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	uint64_t n = exchanged(p);
	return p->tap[OW_SIDE_A].facts.longest_tcp && p->tap[OW_SIDE_B].facts.longest_tcp && n >= REWRITTEN_LEAST &&
	       (double)n > REWRITTEN_SHARE * (double)matched(p);
}

static uint64_t ambiguous(const struct ow_match_pass *p)
{
	return p->tally[OW_A_TO_B].ambiguous + p->tally[OW_B_TO_A].ambiguous;
}

static int change_tcp(struct ow_match *m, enum ow_tcp_rule rule, bool segments, struct ow_error *err)
{
	m->planner.tcp = rule;
	int r = change_variant(m, m->planner.variant, segments);
	r = r < 0 ? ow_error_set(err, -r, "out of memory") : settle(m, err);
	if (r == 0 && segments) {
		learn_segments(&m->pass);
		r = run(m, err);
	}
	return r;
}

/* Leaves more of TCP's headers out, if clearly fewer packets are exchanged for others then, and not because all are
 * alike. */
static int try_tcp(struct ow_match *m, enum ow_tcp_rule rule, bool segments, bool *ret_better, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	enum ow_tcp_rule exact = m->planner.tcp;
	bool cut = p->plan.identity.segments;
	uint64_t before = exchanged(p), unsure = ambiguous(p);
	int r = change_tcp(m, rule, segments, err);
	uint64_t after = exchanged(p);
	*ret_better = (double)before > REWRITTEN_GAIN * (double)after && ambiguous(p) < unsure + (before - after);
	return r < 0 || *ret_better ? r : change_tcp(m, exact, cut, err);
}

/*
 * Something on the way takes options off TCP packets, or numbers them anew: many packets may match as they are, so that
 * the plan did not ask for it, and the others count as lost and as extra.
 */
static int loosen_tcp(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	bool better = false;
	int r = 0;
	if (m->planner.tcp == OW_TCP_EXACT && superframes_likely(p) && !p->plan.identity.segments)
		r = try_tcp(m, OW_TCP_ANY_OPTIONS, true, &better, err);
	if (r == 0 && !better && m->planner.tcp == OW_TCP_EXACT)
		r = try_tcp(m, OW_TCP_ANY_OPTIONS, p->plan.identity.segments, &better, err);
	if (r == 0 && tcp_rewriting_likely(m))
		r = try_tcp(m, OW_TCP_ANY_NUMBERS, false, &better, err);
	return r;
}

/* -- fragments ---------------------------------------------------------------------------------------------------- */

/* There are fragments, and both points show packets that the other does not. */
static bool fragments_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	return (p->tap[OW_SIDE_A].facts.fragments || p->tap[OW_SIDE_B].facts.fragments) &&
	       p->unmatched_frames[OW_SIDE_A] && p->unmatched_frames[OW_SIDE_B];
}

/*
 * A datagram of which a point shows fragments goes by its name at both points, where it may be in one piece or in
 * others. All other packets keep their ids. A filter that is full names more datagrams so than necessary, at both
 * points: that costs certainty where a host uses an identification again within the waiting time.
 */
static int name_fragmented(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	if (!m->cut && !(m->cut = calloc(OW_IDENTITY_CUT_BITS / 64, sizeof *m->cut)))
		return -ENOMEM;
	for (size_t i = 0; i < OW_IDENTITY_CUT_BITS / 64; i++)
		m->cut[i] = p->tap[OW_SIDE_A].fragmented[i] | p->tap[OW_SIDE_B].fragmented[i];
	p->plan.identity.cut = m->cut;
	return 0;
}

/*
 * The plan took the waiting time from packets that are whole at both points. Are some fragments nearly as late as that,
 * and others perhaps later?
 */
static bool fragments_too_late(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	int64_t correct = p->plan.shift_ns - p->plan.offset_ns;
	if (m->options.window_ns || p->plan.untimed || p->plan.window_ns >= OW_WINDOW_STRETCH_NS)
		return false;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		const struct ow_tally *t = &p->tally[d];
		struct ow_delay delay;
		ow_tally_summary(t, &delay);
		int64_t most = delay.max_ns + (d == OW_A_TO_B ? correct : -correct);
		if (delay.samples && t->lost && t->extra > t->duplicated && most > p->plan.window_ns / 4 * 3)
			return true;
	}
	return false;
}

/* Matches packets with their fragments: those without DF; and those with it, if that is what is missing. */
static int try_fragments(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (name_fragmented(m) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = run(m, err);
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	uint64_t best = after < before ? after : before;
	if (r == 0 && fragments_likely(m)) {
		p->plan.identity.cut_df = true;
		r = run(m, err);
		uint64_t with_df = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
		p->plan.identity.cut_df = (double)best > SEGMENTS_GAIN * (double)with_df;
		best = p->plan.identity.cut_df ? with_df : best;
	}
	if (r < 0)
		return r;
	if (best == before)
		p->plan.identity.cut = NULL;
	r = run(m, err);
	if (r < 0 || !p->plan.identity.cut)
		return r;
	ow_tcp_segments_learn_cuts(&p->pieces);
	r = run(m, err);
	while (r == 0 && fragments_too_late(m)) {
		p->plan.window_ns =
			p->plan.window_ns < OW_WINDOW_STRETCH_NS / 2 ? 2 * p->plan.window_ns : OW_WINDOW_STRETCH_NS;
		r = run(m, err);
	}
	return r;
}

/* -- flows behind a translator ------------------------------------------------------------------------------------ */

static bool flows_mix(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	return p->plan.identity.level == OW_LEVEL_NAT && !p->tap[OW_SIDE_A].pairs &&
	       (p->repeats[OW_A_TO_B] || p->repeats[OW_B_TO_A] || exchanged(p));
}

/* Packets that are alike, of flows that are not the same, are told apart by their flows. */
static int pair_flows(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	const struct ow_flow_table *const keys[OW_SIDES] = {p->tap[OW_SIDE_A].flows, p->tap[OW_SIDE_B].flows};
	if (ow_flow_pairs_learn(&p->flow_pairs, keys) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->tap[side].pair = p->flow_pairs.name[side];
		p->tap[side].pairs = p->flow_pairs.names[side];
	}
	ow_directions_forget(p->directions);
	return settle(m, err);
}

/* -- captures that show packets twice ----------------------------------------------------------------------------- */

/* Adds a capture's packets to the sample. */
static int sample_copies(struct ow_match *m, enum ow_side side, struct ow_duplicate_capture_sample *sample,
                         struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	struct ow_record_reader *tap = &p->tap[side];
	struct ow_record record[OW_RECORD_READER_BATCH];
	struct ow_time_base base = ow_match_pass_time_base(p, side);
	int n, r = ow_record_reader_start(tap, &p->plan.identity, err);
	if (r < 0)
		return r;
	while ((n = ow_record_reader_read(tap, record, err)) > 0) {
		for (int i = 0; i < n; i++) {
			const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, record[i].flow);
			/* A superframe and its first segment begin with the same byte. */
			uint64_t id = record[i].len ? ow_mix64(record[i].id ^ record[i].seq) : record[i].id;
			if (!e)
				return ow_error_set(err, ENOMEM, "out of memory");
			ow_duplicate_capture_sample_add(
				sample, &(struct ow_frame_sighting){id, ow_time_base_common(&base, record[i].time_ns),
			                                            (uint8_t)side, e->direction});
		}
	}
	return n;
}

/* The shortest round trip, or twice the least delay of the only direction. */
static int64_t least_round_trip(const struct ow_match_pass *p)
{
	int64_t ab = 0, ba = 0;
	bool has_ab = ow_match_floor(p, OW_A_TO_B, &ab), has_ba = ow_match_floor(p, OW_B_TO_A, &ba);
	int64_t trip = has_ab && has_ba ? ab + ba : 2 * (has_ab ? ab : ba);
	return trip > 0 ? trip : INT64_MAX;
}

/* No fewer than one: what was not seen yet may happen. */
static double most_lost(const struct ow_tally *sent)
{
	return (double)(sent->lost + 1) / (double)(sent->lost + sent->matched + 1);
}

static int judge_copies(struct ow_match *m, struct ow_duplicate_capture_verdict verdict[OW_SIDES], struct ow_error *err)
{
	const struct ow_match_pass *p = &m->pass;
	struct ow_duplicate_capture_sample *sample = ow_duplicate_capture_sample_create();
	struct ow_duplicate_capture_facts facts = {.round_trip_ns = least_round_trip(p)};
	int r = sample ? 0 : ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		facts.first_ns[side] = p->first_ns[side];
		facts.last_ns[side] = p->last_ns[side];
		facts.most_lost[side] = most_lost(&p->tally[side == OW_SIDE_A ? OW_A_TO_B : OW_B_TO_A]);
		r = sample_copies(m, side, sample, err);
	}
	if (r == 0)
		ow_duplicate_capture_judge(sample, &facts, verdict);
	ow_duplicate_capture_sample_free(sample);
	return r;
}

/* Packets that found no counterpart and are like one that did, at both sides. */
static uint64_t count_copies(struct ow_match *m)
{
	uint64_t copies = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t flows = ow_flow_table_count(m->pass.tap[side].flows);
		for (uint32_t i = 0; i < flows; i++) {
			if (ow_directions_flow(m->pass.directions, side, i))
				copies += ow_directions_repeats(m->pass.directions, side, i)->copies;
		}
	}
	return copies;
}

/* Copies of superframes wait together, and are not known as such. */
static bool copies_likely(struct ow_match *m)
{
	if (m->pass.plan.identity.segments &&
	    (m->pass.unmatched_frames[OW_SIDE_A] || m->pass.unmatched_frames[OW_SIDE_B]))
		return true;
	uint64_t alike = m->pass.repeats[OW_A_TO_B] + m->pass.repeats[OW_B_TO_A];
	return (double)count_copies(m) > COPIES_SHARE * (double)matched(&m->pass) ||
	       (double)alike > ALIKE_SHARE * (double)matched(&m->pass);
}

/* Where a capture shows packets twice, its copies are left out. */
static int leave_copies_out(struct ow_match *m, struct ow_error *err)
{
	struct ow_duplicate_capture_verdict verdict[OW_SIDES];
	if (m->options.dedup_ns || m->pass.plan.untimed || !copies_likely(m))
		return 0;
	int r = judge_copies(m, verdict, err);
	if (r < 0)
		return r;
	bool twice = false;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		twice |= verdict[side].twice;
		if (verdict[side].twice || !m->twice[side].twice)
			m->twice[side] = verdict[side];
	}
	for (unsigned side = 0; side < OW_SIDES && twice; side++) {
		if (ow_record_reader_dedup(&m->pass.tap[side], &m->twice[side].rule) < 0)
			return ow_error_set(err, ENOMEM, "out of memory");
	}
	if (!twice)
		return 0;
	ow_directions_forget(m->pass.directions);
	m->clock_settled = m->drift_settled = false;
	return settle(m, err);
}

/* -- UDP superframes ---------------------------------------------------------------------------------------------- */

/* Longer UDP packets than a wire takes, and packets that only one side saw, all of them captured whole. */
static bool udp_superframes_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	uint32_t a = p->tap[OW_SIDE_A].facts.longest_udp, b = p->tap[OW_SIDE_B].facts.longest_udp;
	bool jumbo = a == b && a >= OW_JUMBO_LEAST && a <= OW_JUMBO_MOST;
	return (a >= SUPERFRAME_FROM || b >= SUPERFRAME_FROM) && a && b && !jumbo &&
	       p->plan.identity.hash_limit == UINT32_MAX && p->unmatched_frames[OW_SIDE_A] &&
	       p->unmatched_frames[OW_SIDE_B];
}

/* Notes the datagrams of a capture. */
static int note_datagrams(struct ow_match *m, enum ow_side side, struct ow_error *err)
{
	struct ow_record_reader *tap = &m->pass.tap[side];
	struct ow_record record[OW_RECORD_READER_BATCH];
	if (!m->datagrams[side] && !(m->datagrams[side] = ow_datagrams_create()))
		return ow_error_set(err, ENOMEM, "out of memory");
	ow_datagrams_reset(m->datagrams[side]);
	tap->notes = m->datagrams[side];
	int r = ow_record_reader_start(tap, &m->pass.plan.identity, err);
	for (int n = 1; r == 0 && n > 0;) {
		n = ow_record_reader_read(tap, record, err);
		r = n < 0 ? n : 0;
	}
	tap->notes = NULL;
	return r;
}

static int cut_datagrams(struct ow_match *m, struct ow_error *err)
{
	struct ow_record_reader *a = &m->pass.tap[OW_SIDE_A], *b = &m->pass.tap[OW_SIDE_B];
	a->cutter.there = b->cutter.there = NULL;
	int r = note_datagrams(m, OW_SIDE_A, err);
	if (r == 0)
		r = note_datagrams(m, OW_SIDE_B, err);
	if (r < 0)
		return r;
	ow_cutter_init(&a->cutter, m->datagrams[OW_SIDE_A], m->datagrams[OW_SIDE_B]);
	ow_cutter_init(&b->cutter, m->datagrams[OW_SIDE_B], m->datagrams[OW_SIDE_A]);
	m->cuts_datagrams = true;
	return run(m, err);
}

static int try_datagrams(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	int r = cut_datagrams(m, err);
	/* Nothing said which level to take. */
	if (r == 0 && m->planner.strangers && m->options.level == OW_LEVEL_AUTO && !matched(p)) {
		r = change_variant(m, OW_VARIANT_NAT, p->plan.identity.segments);
		r = r < 0 ? ow_error_set(err, -r, "out of memory") : cut_datagrams(m, err);
	}
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (r < 0 || (double)before > SEGMENTS_GAIN * (double)after)
		return r;
	p->tap[OW_SIDE_A].cutter = p->tap[OW_SIDE_B].cutter = (struct ow_cutter){0};
	m->cuts_datagrams = false;
	return run(m, err);
}

static int run_until_settled(struct ow_match *m, struct ow_error *err)
{
	int r = settle(m, err);
	if (r == 0)
		r = leave_copies_out(m, err);
	if (r < 0 || m->options.segments == OW_OFF || m->pass.plan.identity.level == OW_LEVEL_FRAME)
		return r;
	if (tunnelled_superframes_likely(m)) {
		r = try_inner(m, err);
		if (r < 0)
			return r;
	}
	if (m->options.segments == OW_ON || m->pass.plan.identity.segments) {
		learn_segments(&m->pass);
		r = run(m, err);
	} else if (superframes_likely(&m->pass)) {
		r = try_segments(m, err);
	}
	if (r == 0 && udp_superframes_likely(m))
		r = try_datagrams(m, err);
	if (r == 0 && tcp_rewriting_likely(m))
		r = loosen_tcp(m, err);
	if (r == 0 && fragments_likely(m))
		r = try_fragments(m, err);
	if (r == 0 && flows_mix(m))
		r = pair_flows(m, err);
	if (r == 0)
		r = leave_copies_out(m, err);
	m->clock_settled = m->drift_settled = false; /* what was cut since may tell more of the clocks */
	return r < 0 ? r : improve_all(m, err);
}

/* -- holes in a capture ------------------------------------------------------------------------------------------- */

/* A silence of a side in the common time base. */
static struct ow_silence common_silence(const struct ow_match_pass *p, enum ow_side side, unsigned i)
{
	const struct ow_silence *s = &p->tap[side].facts.silences.silence[i];
	struct ow_time_base base = ow_match_pass_time_base(p, side);
	return (struct ow_silence){ow_time_base_common(&base, s->from_ns), ow_time_base_common(&base, s->to_ns)};
}

/* Is the other capture silent as well, but for less than a hole is long? Its silences are looked at from *next on. */
static bool both_silent(const struct ow_match_pass *p, enum ow_side side, const struct ow_silence *silence,
                        unsigned *next)
{
	unsigned count = p->tap[!side].facts.silences.count;
	while (*next < count && common_silence(p, !side, *next).to_ns <= silence->from_ns)
		++*next;
	for (unsigned i = *next; i < count; i++) {
		struct ow_silence other = common_silence(p, !side, i);
		int64_t from = other.from_ns > silence->from_ns ? other.from_ns : silence->from_ns;
		int64_t to = other.to_ns < silence->to_ns ? other.to_ns : silence->to_ns;
		if (to <= from)
			return false;
		if (silence->to_ns - silence->from_ns - (to - from) < OW_SILENCE_LEAST_NS / 2)
			return true;
	}
	return false;
}

/* Silences in which the other capture shows packets. */
static unsigned suspect_gaps(struct ow_match_pass *p, enum ow_side side)
{
	unsigned next = 0;
	p->gaps[side] = 0;
	for (unsigned i = 0; i < p->tap[side].facts.silences.count && p->unmatched_frames[!side]; i++) {
		struct ow_silence silence = common_silence(p, side, i);
		if (!both_silent(p, side, &silence, &next))
			p->gap[side][p->gaps[side]++] = (struct ow_gap){.silence = silence};
	}
	return p->gaps[side];
}

static double share_of(uint64_t missing, uint64_t in_gaps, uint64_t matched)
{
	double left = (double)missing - (double)in_gaps;
	return left > 0 ? left / (left + (double)matched) : 0;
}

/*
 * The verdict on a gap, by the shares of packets that are missing outside of it and of all gaps in which as many are.
 * Smaller gaps count: heavy loss of slow traffic makes silences, which are no reason to think that loss is rare.
 */
static enum ow_hole_verdict judge_gap(const struct ow_match_pass *p, enum ow_side side, const struct ow_gap *gap)
{
	const struct ow_tally *from = &p->tally[side == OW_SIDE_A ? OW_A_TO_B : OW_B_TO_A];
	const struct ow_tally *to = &p->tally[side == OW_SIDE_A ? OW_B_TO_A : OW_A_TO_B];
	uint64_t extra = 0, lost = 0;
	for (const struct ow_gap *g = p->gap[side]; g < p->gap[side] + p->gaps[side]; g++) {
		extra += g->from.packets >= gap->from.packets ? g->from.packets : 0;
		lost += g->to.packets >= gap->to.packets ? g->to.packets : 0;
	}
	return ow_gap_judge(gap, share_of(from->extra - from->duplicated, extra, from->matched),
	                    share_of(to->lost, lost, to->matched), p->records[!side]);
}

/* Marks the gaps that are far longer than the silences in which no packet is missing. */
static void compare_silences(struct ow_match_pass *p, enum ow_side side)
{
	const struct ow_silences *all = &p->tap[side].facts.silences;
	int64_t longest = OW_SILENCE_LEAST_NS;
	for (unsigned i = 0; i < all->count; i++) {
		struct ow_silence s = common_silence(p, side, i);
		unsigned g = ow_gaps_after(p->gap[side], p->gaps[side], s.from_ns);
		bool missing = g < p->gaps[side] && p->gap[side][g].silence.from_ns == s.from_ns &&
		               p->gap[side][g].from.packets + p->gap[side][g].to.packets > 0;
		if (!missing && s.to_ns - s.from_ns > longest)
			longest = s.to_ns - s.from_ns;
	}
	for (struct ow_gap *g = p->gap[side]; g < p->gap[side] + p->gaps[side]; g++)
		g->unusual = g->silence.to_ns - g->silence.from_ns > SILENCE_UNUSUAL * longest;
}

/* Keeps the gaps that mean something. Returns how many are holes. */
static unsigned judge_gaps(struct ow_match_pass *p, enum ow_side side)
{
	unsigned kept = 0, holes = 0;
	compare_silences(p, side);
	for (unsigned i = 0; i < p->gaps[side]; i++)
		p->gap[side][i].verdict = judge_gap(p, side, &p->gap[side][i]);
	for (unsigned i = 0; i < p->gaps[side]; i++) {
		struct ow_gap gap = p->gap[side][i];
		holes += gap.verdict >= OW_HOLE_OR_OUTAGE;
		if (gap.verdict != OW_NO_HOLE)
			p->gap[side][kept++] = gap;
	}
	p->gaps[side] = kept;
	return holes;
}

/* Packets that a capture could not show, because it showed nothing at all for a while, are not lost. */
static int find_holes(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_silences_sort(&p->tap[side].facts.silences);
	if (p->plan.untimed || suspect_gaps(p, OW_SIDE_A) + suspect_gaps(p, OW_SIDE_B) == 0)
		return 0;
	int r = run(m, err);
	if (r == 0 && judge_gaps(p, OW_SIDE_A) + judge_gaps(p, OW_SIDE_B) > 0)
		r = run(m, err);
	return r;
}

/* -- the direction of traffic that goes one way ------------------------------------------------------------------- */

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

/* Queues make packets slower, never faster: the longer tail of the delays is above the median, not below it. */
static bool way_of_tail(const struct ow_match_pass *p, enum ow_direction *ret_way)
{
	enum ow_direction d = p->tally[OW_A_TO_B].matched >= p->tally[OW_B_TO_A].matched ? OW_A_TO_B : OW_B_TO_A;
	struct ow_delays *delays;
	if (ow_tally_delays(&p->tally[d], &delays) < 0)
		return false;
	bool few = ow_delays_samples(delays) < TAIL_SAMPLES;
	double median = few ? 0 : ow_delays_quantile(delays, 0.5);
	double above = few ? 0 : ow_delays_quantile(delays, 0.99) - median;
	double below = few ? 0 : median - ow_delays_quantile(delays, 0.01);
	ow_delays_free(delays);
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

/* Packets are lost between the points, not made: the point that shows more of them is the sending one. */
static bool way_of_loss(const struct ow_direction_evidence *e, enum ow_direction *ret_way)
{
	uint64_t a = e->only[OW_SIDE_A], b = e->only[OW_SIDE_B];
	*ret_way = a > b ? OW_A_TO_B : OW_B_TO_A;
	return (a > b ? a : b) >= LOSS_PACKETS && (a > b ? a : b) > LOSS_CLEAR * (a > b ? b : a);
}

/*
 * Which way the packets go, where they go one way only and the clocks are not known to be right. The clocks tell if all
 * packets agree, unless they tell B to A and the losses A to B. Returns false if there is nothing to change.
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
		return false; /* between some hosts this way, between others that */
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

static int settle_direction(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	const struct ow_flow_table *const keys[OW_SIDES] = {p->tap[OW_SIDE_A].flows, p->tap[OW_SIDE_B].flows};
	struct ow_direction_evidence evidence;
	enum ow_direction way;
	enum ow_way_reason why;
	if (p->plan.rule == OW_ALL_FORWARD || p->plan.untimed || m->options.clock == OW_CLOCK_GIVEN || !matched(p))
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
	int r = settle(m, err);
	return r < 0 ? r : find_holes(m, err);
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
	int r = run(m, err);
	if (r == -ERANGE)
		return ow_error_set(err, ERANGE, "more than %u intervals: choose a longer --interval",
		                    OW_INTERVALS_MAX);
	if (r == 0 && m->intervals)
		r = ow_intervals_finish(m->intervals, &m->report.interval, &m->report.intervals);
	return r;
}

/* -- the report --------------------------------------------------------------------------------------------------- */

/* What offset the packets allow: no delay is negative. Timestamps are cut to their resolution. */
static void fill_clock(struct ow_match *m)
{
	struct ow_match_report *report = &m->report;
	const struct ow_match_pass *p = &m->pass;
	bool unlike = p->floor[OW_A_TO_B].samples || p->floor[OW_B_TO_A].samples;
	int64_t ab, ba, tick_a = report->capture[OW_SIDE_A].resolution_ns,
			tick_b = report->capture[OW_SIDE_B].resolution_ns;
	int64_t tick = tick_a > tick_b ? tick_a : tick_b;
	bool has_ab = unlike && ow_match_floor(p, OW_A_TO_B, &ab), has_ba = unlike && ow_match_floor(p, OW_B_TO_A, &ba);
	report->offset_low_ns = has_ab ? report->offset_ns - ab - tick : INT64_MIN;
	report->offset_high_ns = has_ba ? report->offset_ns + ba + tick : INT64_MAX;
	report->offset_error_ns = -1;
	if (m->options.clock == OW_CLOCK_ESTIMATED && has_ab && has_ba &&
	    report->offset_low_ns <= report->offset_high_ns)
		report->offset_error_ns = (ab > ba ? ab : ba) + tick;
}

static void fill_holes(struct ow_match *m, enum ow_side side)
{
	const struct ow_match_pass *p = &m->pass;
	int64_t shown = side == OW_SIDE_B ? p->plan.offset_ns - p->plan.shift_ns : 0;
	for (unsigned i = 0; i < p->gaps[side]; i++) {
		const struct ow_gap *gap = &p->gap[side][i];
		if (gap->verdict >= OW_HOLE_OR_OUTAGE)
			m->hole[m->report.holes++] = (struct ow_hole){
				.side = side,
				.start_ns = gap->silence.from_ns + shown,
				.length_ns = gap->silence.to_ns - gap->silence.from_ns,
				.packets = gap->packets,
				.certain = gap->verdict == OW_HOLE,
			};
	}
}

static int fill_report(struct ow_match *m)
{
	struct ow_match_report *report = &m->report;
	struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader_facts *facts = &p->tap[side].facts;
		const struct ow_reader_info *info = ow_reader_info(p->tap[side].reader);
		report->capture[side] = (struct ow_capture_info){
			.path = info->path,
			.packets = facts->packets,
			.first_ns = facts->first_ns,
			.last_ns = facts->last_ns,
			.linktype = facts->mixed_links ? "mixed" : ow_linktype_name(info->linktype),
			.resolution_ns = info->resolution_ns,
		};
		report->unclassified[side] = p->unclassified[side];
		report->outside_overlap[side] = p->outside[side];
		report->skipped[side] = ow_record_reader_skipped(facts) - p->resent[side];
	}
	report->size = sizeof *report;
	report->level = p->plan.identity.level;
	report->inner = p->plan.identity.inner;
	report->ip_id = !p->plan.identity.any_ip_id;
	report->tcp_numbers = p->plan.identity.tcp != OW_TCP_ANY_NUMBERS;
	report->tcp_options = p->plan.identity.tcp == OW_TCP_EXACT;
	report->segments = p->plan.identity.segments || m->cuts_datagrams;
	report->fragments = p->plan.identity.cut != NULL;
	report->clock = m->options.clock;
	/* At B's first packet. */
	report->offset_ns = p->plan.offset_ns;
	if (p->plan.drift != 0)
		report->offset_ns +=
			llrint(p->plan.drift * (double)(p->tap[OW_SIDE_B].facts.first_ns - p->plan.drift_from_ns));
	report->drift_ppb = -p->plan.drift * 1e9;
	report->window_ns = p->plan.window_ns;
	fill_clock(m);
	for (unsigned d = 0; d < OW_DIRECTIONS; d++) {
		if (ow_tally_result(&p->tally[d], &report->direction[d]) < 0)
			return -ENOMEM;
		report->has_direction[d] = report->direction[d].sent + report->direction[d].received > 0;
	}
	report->has_direction[OW_A_TO_B] = true;
	for (unsigned side = 0; side < OW_SIDES; side++)
		fill_holes(m, side);
	report->hole = m->hole;
	return 0;
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
		r = find_holes(m, err);
	if (r == 0)
		r = settle_direction(m, err);
	if (r == 0)
		r = tell_events(m, err);
	if (r < 0)
		return r;
	r = fill_report(m);
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
