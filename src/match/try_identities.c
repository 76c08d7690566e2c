/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unmatched packets of both sides may be the same ones, changed on the way: cut from superframes, rewritten by a
 * middlebox, fragmented, translated. Each such identity is tried by a pass, and kept if fewer packets stay unmatched.
 */
#include "match/match_private.h"

#include <errno.h>
#include <stdlib.h>

#define PROTO_TCP       6
#define SUPERFRAME_FROM 1501u /* a longer TCP packet may be a superframe (or a jumbo frame: then there is no gain) */
#define SEGMENTS_GAIN   1.01  /* cutting superframes must match this many times as many bytes */
/* Rewritten TCP: packets that only one side shows, at both sides; ignoring its options and numbers helps. */
#define REWRITTEN_LEAST 2u
#define REWRITTEN_SHARE 0.005 /* of the matches */
#define REWRITTEN_GAIN  1.25  /* this many times fewer must stay unmatched */

/* -- superframes -------------------------------------------------------------------------------------------------- */

static uint64_t unmatched(const struct ow_match_pass *p, enum ow_side side)
{
	return p->records[side] > ow_match_matched(p) ? p->records[side] - ow_match_matched(p) : 0;
}

static bool has_superframes(const struct ow_match_pass *p)
{
	return p->input[OW_SIDE_A].facts.longest_tcp >= SUPERFRAME_FROM ||
	       p->input[OW_SIDE_B].facts.longest_tcp >= SUPERFRAME_FROM;
}

static bool superframes_likely(const struct ow_match_pass *p)
{
	return p->plan.identity.tcp != OW_TCP_ANY_NUMBERS && has_superframes(p) && unmatched(p, OW_SIDE_A) &&
	       unmatched(p, OW_SIDE_B);
}

bool ow_match_keeps_superframes(const struct ow_match *match)
{
	return has_superframes(&match->pass) && !match->pass.plan.identity.segments;
}

static void learn_segments(struct ow_match_pass *p)
{
	const uint32_t longest[OW_SIDES] = {p->input[OW_SIDE_A].facts.longest_tcp,
	                                    p->input[OW_SIDE_B].facts.longest_tcp};
	ow_tcp_segments_learn(&p->pieces, longest);
}

/* Matched bytes of TCP data are not known without cutting; so the unmatched frames are compared. */
static int try_segments(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = unmatched(p, OW_SIDE_A) + unmatched(p, OW_SIDE_B);
	p->plan.identity.segments = true;
	int r = ow_match_run(m, err);
	if (r < 0)
		return r;
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if ((double)before > SEGMENTS_GAIN * (double)after) {
		learn_segments(p);
		return ow_match_run(m, err);
	}
	p->plan.identity.segments = false;
	return ow_match_run(m, err);
}

/*
 * A host that sends through a tunnel shows superframes in it: UDP or GRE packets longer than on any wire. Only their
 * inner packets can be cut.
 */
static bool tunnelled_superframes_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	const struct ow_record_reader_facts *a = &p->input[OW_SIDE_A].facts, *b = &p->input[OW_SIDE_B].facts;
	return m->options.inner == OW_AUTO && m->options.segments != OW_OFF && !p->plan.identity.inner &&
	       p->plan.identity.tcp != OW_TCP_ANY_NUMBERS &&
	       (a->longest_tunnel >= SUPERFRAME_FROM || b->longest_tunnel >= SUPERFRAME_FROM) &&
	       unmatched(p, OW_SIDE_A) && unmatched(p, OW_SIDE_B);
}

/* With another identity flows have other numbers: what is known about them is no longer valid. */
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
		r = ow_match_settle(m, err);
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (r == 0 && (double)before > SEGMENTS_GAIN * (double)after) {
		learn_segments(p);
		return ow_match_run(m, err);
	}
	if (r == 0)
		r = change_variant(m, variant, m->options.segments == OW_ON);
	return r < 0 ? ow_error_set(err, -r, "out of memory") : ow_match_settle(m, err);
}

/* -- TCP that is rewritten ---------------------------------------------------------------------------------------- */

/*
 * Packets of TCP connections without any match, although the other point shows the same connection. (Behind a NAT it
 * may be any.)
 */
static uint64_t unknown_tcp(const struct ow_match_pass *p, enum ow_side side)
{
	uint64_t n = 0;
	uint32_t flows = ow_flow_table_count(p->input[side].flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct ow_flow_evidence *e = ow_directions_flow(p->directions, side, i);
		const struct ow_flow_key *key = ow_flow_table_key(p->input[side].flows, i);
		if (e && key && e->direction == OW_DIRECTIONS && key->proto == PROTO_TCP &&
		    (p->plan.identity.level == OW_LEVEL_NAT ||
		     ow_flow_table_find(p->input[!side].flows, key) != UINT32_MAX))
			n += e->unmatched;
	}
	return n;
}

/*
 * Packets that one point shows and others that the other one shows instead, which loss does not explain: those of
 * connections without any match, and those that are lost and extra in the same direction.
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
	return p->input[OW_SIDE_A].facts.longest_tcp && p->input[OW_SIDE_B].facts.longest_tcp && n >= REWRITTEN_LEAST &&
	       (double)n > REWRITTEN_SHARE * (double)ow_match_matched(p);
}

static uint64_t ambiguous(const struct ow_match_pass *p)
{
	return p->tally[OW_A_TO_B].ambiguous + p->tally[OW_B_TO_A].ambiguous;
}

static int change_tcp(struct ow_match *m, enum ow_tcp_rule rule, bool segments, struct ow_error *err)
{
	m->planner.tcp = rule;
	int r = change_variant(m, m->planner.variant, segments);
	r = r < 0 ? ow_error_set(err, -r, "out of memory") : ow_match_settle(m, err);
	if (r == 0 && segments) {
		learn_segments(&m->pass);
		r = ow_match_run(m, err);
	}
	return r;
}

/*
 * Ignores more of TCP's headers, if clearly fewer packets are exchanged for others then, and not only because all are
 * identical.
 */
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
 * Something on the way removes TCP options, or changes TCP's numbers: many packets may match unchanged, so the plan did
 * not detect it, and the others count as lost and as extra.
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
	return (p->input[OW_SIDE_A].facts.fragments || p->input[OW_SIDE_B].facts.fragments) &&
	       p->unmatched_frames[OW_SIDE_A] && p->unmatched_frames[OW_SIDE_B];
}

/*
 * A datagram that a point shows in fragments is identified by its name at both points, where it may be whole or in
 * other fragments. All other packets keep their ids. A full filter names more datagrams in this way than necessary, at
 * both points: that costs certainty if a host reuses an identification within the waiting time.
 */
static int name_fragmented(struct ow_match *m)
{
	struct ow_match_pass *p = &m->pass;
	if (!m->cut && !(m->cut = calloc(OW_IDENTITY_CUT_BITS / 64, sizeof *m->cut)))
		return -ENOMEM;
	for (size_t i = 0; i < OW_IDENTITY_CUT_BITS / 64; i++)
		m->cut[i] = p->input[OW_SIDE_A].fragmented[i] | p->input[OW_SIDE_B].fragmented[i];
	p->plan.identity.cut = m->cut;
	return 0;
}

/* Matches packets with their fragments: those without DF; and those with it, if that is what is missing. */
static int try_fragments(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (name_fragmented(m) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	int r = ow_match_run(m, err);
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	uint64_t best = after < before ? after : before;
	if (r == 0 && fragments_likely(m)) {
		p->plan.identity.cut_df = true;
		r = ow_match_run(m, err);
		uint64_t with_df = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
		p->plan.identity.cut_df = (double)best > SEGMENTS_GAIN * (double)with_df;
		best = p->plan.identity.cut_df ? with_df : best;
	}
	if (r < 0)
		return r;
	if (best == before)
		p->plan.identity.cut = NULL;
	r = ow_match_run(m, err);
	if (r < 0 || !p->plan.identity.cut)
		return r;
	ow_tcp_segments_learn_cuts(&p->pieces);
	r = ow_match_run(m, err);
	while (r == 0 && ow_match_wait_longer(m))
		r = ow_match_run(m, err);
	return r;
}

/* -- flows behind a translator ------------------------------------------------------------------------------------ */

static bool flows_mix(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	return p->plan.identity.level == OW_LEVEL_NAT && !p->input[OW_SIDE_A].pairs &&
	       (p->repeats[OW_A_TO_B] || p->repeats[OW_B_TO_A] || exchanged(p));
}

/* Identical packets of different flows are distinguished by their flows. */
static int pair_flows(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	const struct ow_flow_table *const keys[OW_SIDES] = {p->input[OW_SIDE_A].flows, p->input[OW_SIDE_B].flows};
	if (ow_flow_pairs_learn(&p->flow_pairs, keys) < 0)
		return ow_error_set(err, ENOMEM, "out of memory");
	for (unsigned side = 0; side < OW_SIDES; side++) {
		p->input[side].pair = p->flow_pairs.name[side];
		p->input[side].pairs = p->flow_pairs.names[side];
	}
	ow_directions_forget(p->directions);
	return ow_match_settle(m, err);
}

/* -- UDP superframes ---------------------------------------------------------------------------------------------- */

/* Longer UDP packets than on any wire, and packets that only one side saw, all of them captured whole. */
static bool udp_superframes_likely(const struct ow_match *m)
{
	const struct ow_match_pass *p = &m->pass;
	uint32_t a = p->input[OW_SIDE_A].facts.longest_udp, b = p->input[OW_SIDE_B].facts.longest_udp;
	bool jumbo = a == b && a >= OW_JUMBO_LEAST && a <= OW_JUMBO_MOST;
	return (a >= SUPERFRAME_FROM || b >= SUPERFRAME_FROM) && a && b && !jumbo &&
	       p->plan.identity.hash_limit == UINT32_MAX && p->unmatched_frames[OW_SIDE_A] &&
	       p->unmatched_frames[OW_SIDE_B];
}

/* Notes the datagrams of a capture. */
static int note_datagrams(struct ow_match *m, enum ow_side side, struct ow_error *err)
{
	struct ow_record_reader *input = &m->pass.input[side];
	struct ow_record record[OW_RECORD_READER_BATCH];
	if (!m->datagrams[side] && !(m->datagrams[side] = ow_datagrams_create()))
		return ow_error_set(err, ENOMEM, "out of memory");
	ow_datagrams_reset(m->datagrams[side]);
	input->notes = m->datagrams[side];
	int r = ow_record_reader_start(input, &m->pass.plan.identity, err);
	for (int n = 1; r == 0 && n > 0;) {
		n = ow_record_reader_read(input, record, err);
		r = n < 0 ? n : 0;
	}
	input->notes = NULL;
	return r;
}

static int cut_datagrams(struct ow_match *m, struct ow_error *err)
{
	struct ow_record_reader *a = &m->pass.input[OW_SIDE_A], *b = &m->pass.input[OW_SIDE_B];
	a->cutter.there = b->cutter.there = NULL;
	int r = note_datagrams(m, OW_SIDE_A, err);
	if (r == 0)
		r = note_datagrams(m, OW_SIDE_B, err);
	if (r < 0)
		return r;
	ow_cutter_init(&a->cutter, m->datagrams[OW_SIDE_A], m->datagrams[OW_SIDE_B]);
	ow_cutter_init(&b->cutter, m->datagrams[OW_SIDE_B], m->datagrams[OW_SIDE_A]);
	m->cuts_datagrams = true;
	return ow_match_run(m, err);
}

static int try_datagrams(struct ow_match *m, struct ow_error *err)
{
	struct ow_match_pass *p = &m->pass;
	uint64_t before = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	int r = cut_datagrams(m, err);
	/* The samples did not decide the level. */
	if (r == 0 && m->planner.strangers && m->options.level == OW_LEVEL_AUTO && !ow_match_matched(p)) {
		r = change_variant(m, OW_VARIANT_NAT, p->plan.identity.segments);
		r = r < 0 ? ow_error_set(err, -r, "out of memory") : cut_datagrams(m, err);
	}
	uint64_t after = p->unmatched_frames[OW_SIDE_A] + p->unmatched_frames[OW_SIDE_B];
	if (r < 0 || (double)before > SEGMENTS_GAIN * (double)after)
		return r;
	p->input[OW_SIDE_A].cutter = p->input[OW_SIDE_B].cutter = (struct ow_cutter){0};
	m->cuts_datagrams = false;
	return ow_match_run(m, err);
}

/* -- all of them -------------------------------------------------------------------------------------------------- */

int ow_match_try_identities(struct ow_match *m, struct ow_error *err)
{
	int r = tunnelled_superframes_likely(m) ? try_inner(m, err) : 0;
	if (r < 0)
		return r;
	if (m->options.segments == OW_ON || m->pass.plan.identity.segments) {
		learn_segments(&m->pass);
		r = ow_match_run(m, err);
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
	return r;
}
