/* SPDX-License-Identifier: Apache-2.0 */
#include "match/plan.h"

#include "base/hash.h"
#include "base/time.h"

#include <errno.h>
#include <stdlib.h>

#define GLANCE_FRAMES   4096 /* frames of each capture that a first look uses */
#define TAI_MINUS_UTC_S 37
#define MANY_TIMES      10    /* hardly any packets are IPv6 if so many times as many are not */
#define HOPS_CLEAR      20    /* this many times as many packets had a lower TTL at one point as at the other */
#define MTU_USUAL       1500u /* Ethernet */

static bool allowed(const struct ow_match_options *o, enum ow_variant v)
{
	if (o->level != OW_LEVEL_AUTO && o->level != ow_variant_level(v))
		return false;
	if (ow_variant_any_tcp(v) && o->segments == OW_ON)
		return false; /* their segments are recognised by their numbers */
	if (v == OW_VARIANT_FRAME)
		return o->inner != OW_ON || o->level == OW_LEVEL_FRAME;
	return o->inner == OW_AUTO || (o->inner == OW_ON) == ow_variant_inner(v);
}

static int64_t given_shift(const struct ow_match_options *o)
{
	return o->clock == OW_CLOCK_GIVEN ? o->offset_ns : 0;
}

static int take_outlooks(struct ow_match_planner *p, struct ow_record_reader input[OW_SIDES], struct ow_error *err)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		int r = ow_outlook_take(input[side].reader, &p->outlook[side], err);
		if (r < 0)
			return r;
		const struct ow_reader_info *info = ow_reader_info(input[side].reader);
		if (p->outlook[side].empty) {
			const char *damage = ow_reader_damage(input[side].reader);
			return ow_error_set(err, ENOMSG, "%s: no packets%s%s", info->path, damage ? ": " : "",
			                    damage ? damage : "");
		}
	}
	for (unsigned v = 0; v < OW_VARIANTS; v++) {
		uint32_t a = p->outlook[OW_SIDE_A].limit[v], b = p->outlook[OW_SIDE_B].limit[v];
		p->limit[v] = a < b ? a : b;
	}
	return 0;
}

/*
 * Most of both captures is not IP, and comparing frames byte by byte would not lose matches of superframes. Otherwise
 * traffic of the link, such as ARP, does not decide how IP packets are matched.
 */
static bool mostly_frames(const struct ow_match_planner *p)
{
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_outlook *o = &p->outlook[side];
		if (2 * o->ip > o->frames || o->longest_tcp > MTU_USUAL || o->longest_udp > MTU_USUAL)
			return false;
	}
	return true;
}

/* Compares samples of both captures under these identities. */
static int compare(struct ow_match_planner *p, struct ow_record_reader input[OW_SIDES], bool whole,
                   enum ow_selection which, struct ow_error *err)
{
	struct ow_survey survey[OW_SIDES];
	int64_t shift = given_shift(p->options);
	int64_t from = p->outlook[OW_SIDE_A].first_ns, from_b = p->outlook[OW_SIDE_B].first_ns + shift;
	if (from_b > from)
		from = from_b;
	int r = ow_survey_init(&survey[OW_SIDE_A], which);
	if (r < 0)
		return r;
	r = ow_survey_init(&survey[OW_SIDE_B], which);
	for (unsigned side = 0; side < OW_SIDES && r == 0; side++) {
		int64_t start = whole ? INT64_MIN : side == OW_SIDE_B ? from - shift : from;
		r = ow_survey_read(&survey[side], input[side].reader, p->limit, which, start,
		                   whole ? UINT64_MAX : GLANCE_FRAMES, p->seed, err);
		p->first_ns[side] = survey[side].first_ns;
		p->last_ns[side] = survey[side].last_ns;
	}
	for (unsigned v = 0; v < OW_VARIANTS && r == 0; v++) {
		if (!ow_variant_among(v, which))
			continue;
		r = ow_sample_overlap_find(&survey[OW_SIDE_A].sample[v], &survey[OW_SIDE_B].sample[v],
		                           p->options->clock == OW_CLOCK_ESTIMATED, &p->common[v]);
	}
	p->whole = whole;
	ow_survey_done(&survey[OW_SIDE_A]);
	ow_survey_done(&survey[OW_SIDE_B]);
	return r;
}

/* A first look at the captures: usually the preferred identity finds enough, and the others need no check. */
static int glance(struct ow_match_planner *p, struct ow_record_reader input[OW_SIDES], struct ow_error *err)
{
	if (allowed(p->options, OW_VARIANT_IP) && !mostly_frames(p)) {
		int r = compare(p, input, false, OW_SELECT_FIRST, err);
		if (r < 0 || p->common[OW_VARIANT_IP].share >= OW_IDENTITY_ENOUGH)
			return r;
	}
	return compare(p, input, false, OW_SELECT_USUAL, err);
}

static void choose(struct ow_match_planner *p)
{
	uint32_t may = 0;
	for (enum ow_variant v = 0; v < OW_VARIANTS; v++)
		may |= (uint32_t)allowed(p->options, v) << v;
	p->variant = ow_identity_choose(p->common, may, mostly_frames(p));
}

/* -- clocks ------------------------------------------------------------------------------------------------------- */

/* The shift that makes the fastest packets of both directions equally fast, or those of the only one take no time. */
static int64_t estimated_shift(const struct ow_sample_overlap *c, enum ow_direction way)
{
	if (!c->both_directions)
		return way == OW_A_TO_B ? -c->min_ns : -c->max_ns;
	int64_t there = c->low_ns[0], back = c->high_ns[1];
	/*
	 * No shift fits. If a clock was set, the same quantile of both is of the same clock: then they are as far apart as a round
	 * trip, else by the step, too.
	 */
	if (there < back) {
		const int64_t pair[][2] = {{c->low_ns[0], c->low_ns[1]},
		                           {c->median_ns[0], c->median_ns[1]},
		                           {c->high_ns[0], c->high_ns[1]}};
		int64_t least = INT64_MAX;
		for (size_t i = 0; i < 3; i++) {
			int64_t apart = pair[i][0] - pair[i][1];
			if (apart <= 0 || apart >= least)
				continue;
			least = apart;
			there = pair[i][0];
			back = pair[i][1];
		}
	}
	/* Halves first: the sum may overflow. */
	return -(there / 2 + back / 2);
}

bool ow_plan_hops(const struct ow_match_planner *p, enum ow_direction *ret_way)
{
	const size_t *lower = p->common[p->variant].lower_ttl;
	if (lower[OW_A_TO_B] > HOPS_CLEAR * lower[OW_B_TO_A])
		*ret_way = OW_A_TO_B;
	else if (lower[OW_B_TO_A] > HOPS_CLEAR * lower[OW_A_TO_B])
		*ret_way = OW_B_TO_A;
	else
		return false;
	return true;
}

/* Whether the clocks, shifted by this, give both directions positive delays. */
static bool causal(const struct ow_sample_overlap *c, int64_t shift)
{
	return !c->both_directions || (c->low_ns[0] + shift >= 0 && c->high_ns[1] + shift <= 0);
}

/* Coarse timestamps, and the middle of what both directions allow, where the fastest packets are not known yet. */
static int64_t doubt_of(const struct ow_match_planner *p)
{
	const struct ow_sample_overlap *c = &p->common[p->variant];
	int64_t a = p->outlook[OW_SIDE_A].tick_ns, b = p->outlook[OW_SIDE_B].tick_ns, tick = a > b ? a : b;
	bool estimated = p->options->clock == OW_CLOCK_ESTIMATED && c->unique && c->both_directions;
	return estimated && c->low_ns[0] > c->high_ns[1] ? tick + c->low_ns[0] / 2 - c->high_ns[1] / 2 : tick;
}

static void set_clock(const struct ow_match_planner *p, struct ow_plan *plan)
{
	const struct ow_sample_overlap *c = &p->common[p->variant];
	plan->offset_ns = given_shift(p->options);
	plan->shift_ns = plan->offset_ns;
	plan->doubt_ns = doubt_of(p);
	plan->rule = p->options->one_direction ? OW_ALL_FORWARD : OW_BY_VOTES;
	if (p->options->clock == OW_CLOCK_ESTIMATED && c->unique) {
		if (!c->both_directions && plan->rule == OW_BY_VOTES) {
			plan->rule = OW_ONE_WAY; /* with the smallest delay set to 0, signs would show nothing */
			if (ow_plan_hops(p, &plan->way))
				plan->why = OW_WAY_HOPS;
		}
		plan->offset_ns = plan->shift_ns = estimated_shift(c, plan->way);
		plan->drift = -c->drift;
		plan->drift_from_ns = c->drift_from_ns;
	} else if (c->unique && !causal(c, plan->shift_ns)) {
		plan->shift_ns = estimated_shift(
			c, OW_A_TO_B); /* to distinguish the directions; results keep the clocks unchanged */
	}
}

/* The usual delays, from packets that are unique in both samples: they tell identical packets apart from the start. */
static void set_expectation(const struct ow_match_planner *p, struct ow_plan *plan)
{
	const struct ow_sample_overlap *c = &p->common[p->variant];
	if (!c->unique)
		return;
	int64_t low = c->low_ns[0] + plan->shift_ns, high = c->high_ns[0] + plan->shift_ns;
	if (!c->both_directions && high < 0) {
		plan->expects[OW_B_TO_A] = true;
		plan->low_ns[OW_B_TO_A] = -high;
		plan->high_ns[OW_B_TO_A] = -low;
	} else if (c->both_directions || low >= 0) {
		plan->expects[OW_A_TO_B] = true;
		plan->low_ns[OW_A_TO_B] = low;
		plan->high_ns[OW_A_TO_B] = high;
	}
	if (c->both_directions) {
		plan->expects[OW_B_TO_A] = true;
		plan->low_ns[OW_B_TO_A] = -(c->high_ns[1] + plan->shift_ns);
		plan->high_ns[OW_B_TO_A] = -(c->low_ns[1] + plan->shift_ns);
	}
}

/* -- the waiting time --------------------------------------------------------------------------------------------- */

/* Both directions together tell a long delay from a difference of the clocks. */
static int64_t longest_delay(const struct ow_sample_overlap *c, const struct ow_plan *plan)
{
	int64_t there = plan->high_ns[OW_A_TO_B], back = plan->high_ns[OW_B_TO_A];
	return !c->unique || !c->both_directions ? 0 : there > back ? there : back;
}

static void set_window(const struct ow_match_planner *p, struct ow_plan *plan)
{
	const struct ow_sample_overlap *c = &p->common[p->variant];
	plan->window_ns = p->options->window_ns;
	if (plan->window_ns > 0)
		return;
	plan->window_ns = OW_WINDOW_DEFAULT_NS;
	int64_t spread = c->high_ns[0] - c->low_ns[0], back = c->high_ns[1] - c->low_ns[1];
	spread = back > spread ? back : spread;
	if (spread > plan->window_ns / 4)
		plan->window_ns = spread < OW_WINDOW_STRETCH_NS / 4 ? 4 * spread : OW_WINDOW_STRETCH_NS;
	int64_t longest = longest_delay(c, plan);
	if (longest > plan->window_ns / 2)
		plan->window_ns = longest < OW_WINDOW_STRETCH_NS / 2 ? 2 * longest : OW_WINDOW_STRETCH_NS;
	/* Without times only the order is left: nothing expires. */
	if (plan->untimed)
		plan->window_ns = INT64_C(1) << 61;
}

/* -- refusals ----------------------------------------------------------------------------------------------------- */

static int refuse_clock(const struct ow_match_planner *p, const struct ow_sample_overlap *c, int64_t shift,
                        struct ow_error *err)
{
	int64_t off = c->median_ns[0] + shift;
	char text[OW_DURATION_TEXT];
	ow_duration_text((double)(off < 0 ? -off : off), text);
	bool tai = llabs(llabs(off) - TAI_MINUS_UTC_S * OW_NS_PER_S) < OW_NS_PER_S;
	return ow_error_set(err, ENOMSG,
	                    "the captures share packets, but the clock of B is %s %s A's%s: use --offset auto%s%s",
	                    text, off > 0 ? "ahead of" : "behind", tai ? " (TAI against UTC?)" : "",
	                    p->options->clock == OW_CLOCK_GIVEN ? ", or another --offset" : "",
	                    llabs(off) < OW_WINDOW_STRETCH_NS ? ", or --window if packets take that long" : "");
}

int ow_plan_refuse(const struct ow_match_planner *p, struct ow_record_reader input[OW_SIDES], struct ow_error *err)
{
	const char *a = ow_reader_info(input[OW_SIDE_A].reader)->path,
		   *b = ow_reader_info(input[OW_SIDE_B].reader)->path;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (p->options->level != OW_LEVEL_FRAME && p->common[OW_VARIANT_FRAME].packets == 0 &&
		    !p->outlook[side].ip)
			return ow_error_set(
				err, ENOMSG,
				"nothing in common: %s holds no IP packets among its first %llu (link type %s), and no "
				"frame "
				"is in %s byte by byte (a VLAN tag, a trailer or an FCS in one capture only?)",
				side ? b : a, (unsigned long long)p->outlook[side].frames,
				ow_linktype_name(ow_reader_info(input[side].reader)->linktype), side ? a : b);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		if (p->outlook[side].ip && p->outlook[side].cut_short == p->outlook[side].ip)
			return ow_error_set(
				err, ENOMSG,
				"nothing in common: the packets of %s are cut off before what identifies them "
				"(capture 96 bytes or more of each: tcpdump -s 96)",
				side ? b : a);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		uint32_t here = p->outlook[side].longest_udp, there = p->outlook[!side].longest_udp;
		if (here > MTU_USUAL && there && there <= MTU_USUAL)
			return ow_error_set(
				err, ENOMSG,
				"nothing in common: %s shows UDP packets of up to %u bytes, %s of %u: superframes that "
				"cannot be cut (turn UDP segmentation offload off, or capture on the wire)",
				side ? b : a, here, side ? a : b, there);
	}
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_outlook *here = &p->outlook[side], *there = &p->outlook[!side];
		if (2 * here->ipv6 > here->ip && MANY_TIMES * there->ipv6 < there->ip)
			return ow_error_set(err, ENOMSG,
			                    "nothing in common: %s shows IPv6 and %s IPv4: different traffic, or it is "
			                    "translated on the "
			                    "way (NAT64, 464XLAT), which leaves nothing to tell its packets by",
			                    side ? b : a, side ? a : b);
	}
	int64_t shift = given_shift(p->options), gap = p->first_ns[OW_SIDE_B] + shift - p->last_ns[OW_SIDE_A];
	int64_t gap_back = p->first_ns[OW_SIDE_A] - (p->last_ns[OW_SIDE_B] + shift);
	if (gap > 0 || gap_back > 0) {
		char text[OW_DURATION_TEXT];
		ow_duration_text((double)(gap > 0 ? gap : gap_back), text);
		return ow_error_set(err, ENOMSG,
		                    "nothing in common: no packet of %s is in %s, and %s starts %s after %s ends", a, b,
		                    gap > 0 ? "B" : "A", text, gap > 0 ? "A" : "B");
	}
	bool fixed = p->options->level != OW_LEVEL_AUTO || p->options->inner != OW_AUTO;
	return ow_error_set(err, ENOMSG, "nothing in common: no packet of %s is in %s%s", a, b,
	                    fixed ? " by this identity (try --level auto --inner auto)"
	                          : " by any identity (different traffic, encryption, or a proxy)");
}

/* Packets that match but differ by more than the waiting time: the clocks, or the given offset, are wrong. */
static bool out_of_reach(const struct ow_sample_overlap *c, const struct ow_plan *plan)
{
	int64_t near = llabs(c->low_ns[0] + plan->shift_ns) < llabs(c->high_ns[0] + plan->shift_ns)
	                       ? llabs(c->low_ns[0] + plan->shift_ns)
	                       : llabs(c->high_ns[0] + plan->shift_ns);
	bool straddles = c->low_ns[0] + plan->shift_ns < 0 && c->high_ns[0] + plan->shift_ns > 0;
	return !straddles && near > plan->window_ns;
}

/* -- the plan ----------------------------------------------------------------------------------------------------- */

void ow_plan_limit(struct ow_match_planner *planner, struct ow_plan *plan, uint32_t limit)
{
	plan->identity = (struct ow_identity){
		.level = ow_variant_level(planner->variant),
		.inner = ow_variant_inner(planner->variant),
		.segments = plan->identity.segments && planner->tcp != OW_TCP_ANY_NUMBERS,
		.any_ip_id = ow_variant_any_ip_id(planner->variant),
		.tcp = planner->tcp,
		.cut = plan->identity.cut,
		.cut_df = plan->identity.cut_df,
		.routed = plan->identity.routed,
		.hash_limit = limit < OW_PLAN_LIMIT_FLOOR ? OW_PLAN_LIMIT_FLOOR : limit,
	};
	ow_identity_seed(&plan->identity, planner->seed);
}

/* Whether cutting UDP superframes could find what the samples do not. */
static bool may_be_cut(const struct ow_match_planner *p)
{
	uint32_t a = p->outlook[OW_SIDE_A].longest_udp, b = p->outlook[OW_SIDE_B].longest_udp;
	return p->options->segments != OW_OFF && p->options->level != OW_LEVEL_FRAME && a && b &&
	       (a > MTU_USUAL || b > MTU_USUAL) && p->limit[p->variant] == UINT32_MAX;
}

/* Whether fragments of one side could be the packets of the other. */
static bool may_be_fragments(const struct ow_match_planner *p)
{
	const struct ow_outlook *a = &p->outlook[OW_SIDE_A], *b = &p->outlook[OW_SIDE_B];
	return p->options->level != OW_LEVEL_FRAME && (a->fragments || b->fragments);
}

int ow_plan_make(struct ow_match_planner *p, struct ow_record_reader input[OW_SIDES], struct ow_plan *ret_plan,
                 struct ow_error *err)
{
	struct ow_plan plan = {.identity.segments = p->options->segments == OW_ON};
	int r = take_outlooks(p, input, err);
	if (r == 0)
		r = glance(p, input, err);
	if (r < 0)
		return r;
	choose(p);
	/* A drift shows only over the whole captures. */
	if (p->options->clock == OW_CLOCK_ESTIMATED || p->common[p->variant].share < OW_IDENTITY_ENOUGH ||
	    (p->variant != OW_VARIANT_IP && p->options->level == OW_LEVEL_AUTO)) {
		r = compare(p, input, true, OW_SELECT_USUAL, err);
		if (r < 0)
			return r;
		choose(p);
	}
	if (p->whole && p->common[p->variant].share < OW_IDENTITY_ENOUGH && p->options->level != OW_LEVEL_FRAME) {
		r = compare(p, input, true, OW_SELECT_LOOSE, err);
		if (r < 0)
			return r;
		choose(p);
	}
	const struct ow_sample_overlap *c = &p->common[p->variant];
	p->strangers = c->packets == 0;
	if (p->strangers && !may_be_cut(p) && !may_be_fragments(p))
		return ow_plan_refuse(p, input, err);
	plan.untimed = p->outlook[OW_SIDE_A].untimed || p->outlook[OW_SIDE_B].untimed;
	set_clock(p, &plan);
	set_expectation(p, &plan);
	set_window(p, &plan);
	if (c->unique && !plan.untimed && out_of_reach(c, &plan))
		return refuse_clock(p, c, plan.shift_ns, err);
	/* The results keep the clocks: a shift for distinguishing directions must not hide that they differ. */
	if (c->unique && c->both_directions && llabs(plan.shift_ns - plan.offset_ns) > plan.window_ns)
		return refuse_clock(p, c, plan.offset_ns, err);
	/* If TCP differs, it is usually in its options: the match checks whether its numbers differ as well. */
	p->tcp = ow_variant_any_tcp(p->variant) ? OW_TCP_ANY_OPTIONS : OW_TCP_EXACT;
	plan.identity.routed = c->lower_ttl[OW_A_TO_B] + c->lower_ttl[OW_B_TO_A] > c->unique / 2;
	ow_plan_limit(p, &plan, p->limit[p->variant]);
	*ret_plan = plan;
	return 0;
}
