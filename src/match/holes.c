/* SPDX-License-Identifier: Apache-2.0 */
/* Holes in a capture: silences in which the other capture shows packets that should have passed here. */
#include "match/match_private.h"

#include "base/side.h"
#define SILENCE_UNUSUAL 4  /* this many times as long as all silences without missing packets */
#define UNSEEN_LEAST    10 /* packets of flows that a capture never shows: fewer are no evidence */

/* A silence of a side in the common time base. */
static struct ow_silence common_silence(const struct ow_match_pass *p, enum ow_side side, unsigned i)
{
	const struct ow_silence *s = &p->input[side].facts.silences.silence[i];
	struct ow_time_base base = ow_match_pass_time_base(p, side);
	return (struct ow_silence){ow_time_base_common(&base, s->from_ns), ow_time_base_common(&base, s->to_ns),
	                           s->between_files};
}

/*
 * How long a capture shows packets before and after a silence that both have: as long as the usual delays of both
 * directions, and not as long as a hole.
 */
static int64_t longest_apart(const struct ow_match_pass *p)
{
	int64_t apart_ns = 0;
	for (unsigned d = 0; d < OW_DIRECTIONS; d++)
		apart_ns += p->usual[d].known && p->usual[d].most_ns > 0 ? p->usual[d].most_ns : 0;
	return apart_ns && apart_ns < OW_SILENCE_LEAST_NS / 2 ? apart_ns : OW_SILENCE_LEAST_NS / 2;
}

/*
 * Whether the other capture is silent as well, but for less than apart_ns. Its silences are checked from
 * *next on.
 */
static bool both_silent(const struct ow_match_pass *p, enum ow_side side, const struct ow_silence *silence,
                        int64_t apart_ns, unsigned *next)
{
	unsigned count = p->input[!side].facts.silences.count;
	int64_t length_ns = silence->to_ns - silence->from_ns;
	apart_ns = apart_ns < length_ns / 2 ? apart_ns : length_ns / 2;
	while (*next < count && common_silence(p, !side, *next).to_ns <= silence->from_ns)
		++*next;
	for (unsigned i = *next; i < count; i++) {
		struct ow_silence other = common_silence(p, !side, i);
		int64_t from = other.from_ns > silence->from_ns ? other.from_ns : silence->from_ns;
		int64_t to = other.to_ns < silence->to_ns ? other.to_ns : silence->to_ns;
		if (to <= from)
			return false;
		if (length_ns - (to - from) < apart_ns)
			return true;
	}
	return false;
}

/* Silences in which the other capture shows packets. */
static unsigned suspect_gaps(struct ow_match_pass *p, enum ow_side side)
{
	unsigned next = 0;
	int64_t apart_ns = longest_apart(p);
	p->gaps[side] = 0;
	for (unsigned i = 0; i < p->input[side].facts.silences.count && p->unmatched_frames[!side]; i++) {
		struct ow_silence silence = common_silence(p, side, i);
		if (!both_silent(p, side, &silence, apart_ns, &next))
			ow_gap_init(&p->gap[side][p->gaps[side]++], silence, OW_NO_HOLE);
	}
	return p->gaps[side];
}

static double share_of(uint64_t missing, uint64_t in_gaps, uint64_t matched)
{
	double left = (double)missing - (double)in_gaps;
	return left > 0 ? left / (left + (double)matched) : 0;
}

/*
 * The verdict on a gap, from the shares of packets that are missing outside of it and of all gaps with at least as
 * many. Smaller gaps count: heavy loss of slow traffic makes silences, which do not show that loss is rare.
 */
static enum ow_hole_verdict judge_gap(const struct ow_match_pass *p, enum ow_side side, const struct ow_gap *gap)
{
	const struct ow_tally *from = &p->tally[ow_sent_by(side)];
	const struct ow_tally *to = &p->tally[side == OW_SIDE_A ? OW_B_TO_A : OW_A_TO_B];
	uint64_t extra = 0, lost = 0;
	for (const struct ow_gap *g = p->gap[side]; g < p->gap[side] + p->gaps[side]; g++) {
		extra += g->from.packets >= gap->from.packets ? g->from.packets : 0;
		lost += g->to.packets >= gap->to.packets ? g->to.packets : 0;
	}
	enum ow_hole_verdict verdict = ow_gap_judge(gap, share_of(from->extra - from->duplicated, extra, from->matched),
	                                            share_of(to->lost, lost, to->matched), p->records[!side]);
	/* Near the end of a capture they count as in flight: then there is nothing to say. */
	bool counts = (gap->from.packets && from->extra > from->duplicated) || (gap->to.packets && to->lost);
	return verdict == OW_HOLE_SHORT && !counts ? OW_NO_HOLE : verdict;
}

/* Most of the flows that this capture never shows pass in this silence. */
static bool hides_flows(const struct ow_match_pass *p, enum ow_side side, const struct ow_gap *gap)
{
	return gap->unseen >= UNSEEN_LEAST && 2 * gap->unseen > p->unclassified[!side];
}

/* Marks the gaps that are far longer than the silences without missing packets, or hide flows. */
static void compare_silences(struct ow_match_pass *p, enum ow_side side)
{
	const struct ow_silences *all = &p->input[side].facts.silences;
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
		g->unusual =
			g->silence.to_ns - g->silence.from_ns > SILENCE_UNUSUAL * longest || hides_flows(p, side, g);
}

/* Keeps the gaps that are relevant. Returns the number of holes. */
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

/* Packets that a capture could not show, because it showed nothing at all for a time, are not lost. */
int ow_match_find_holes(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	for (unsigned side = 0; side < OW_SIDES; side++)
		ow_silences_sort(&p->input[side].facts.silences);
	if (p->plan.untimed || suspect_gaps(p, OW_SIDE_A) + suspect_gaps(p, OW_SIDE_B) == 0)
		return 0;
	int r = ow_match_run(m, err);
	if (r == 0 && judge_gaps(p, OW_SIDE_A) + judge_gaps(p, OW_SIDE_B) > 0)
		r = ow_match_run(m, err);
	return r;
}
