/* SPDX-License-Identifier: Apache-2.0 */
/* Which passes can run together. */
#include "path/joint_pass.h"

#include <string.h>

unsigned ow_joint_point(const struct ow_joint_pass *set, unsigned k, enum ow_side side)
{
	return side == OW_SIDE_A ? set->pair[k].from : set->pair[k].to;
}

static bool is_special(const struct ow_match_pass *p)
{
	const struct ow_identity *identity = &p->plan.identity;
	bool special = p->details[OW_A_TO_B] || p->plan.untimed || p->plan.drift != 0 || identity->segments ||
	               identity->cut || identity->level == OW_LEVEL_NAT;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		const struct ow_record_reader *input = &p->input[side];
		special |= !input->lent || input->dedup || input->notes || input->cutter.there || p->aside[side];
	}
	return special;
}

static bool same_identity(const struct ow_identity *a, const struct ow_identity *b)
{
	return a->level == b->level && a->inner == b->inner && a->segments == b->segments &&
	       a->any_ip_id == b->any_ip_id && a->tcp == b->tcp && a->tcp_headers == b->tcp_headers &&
	       a->pieces == b->pieces && a->cut == b->cut && a->hash_limit == b->hash_limit && a->key == b->key &&
	       memcmp(a->secret, b->secret, sizeof a->secret) == 0;
}

/* Whether pass k wants the same times of its points as the passes before it. */
static bool same_times(const struct ow_joint_pass *set, unsigned k)
{
	bool same = true;
	for (unsigned i = 0; i < OW_SIDES * OW_SIDES * k; i++) {
		const unsigned before = i / (OW_SIDES * OW_SIDES), x = i / OW_SIDES % OW_SIDES, y = i % OW_SIDES;
		const struct ow_frame_choice *mine = &set->pass[k]->input[x].choice;
		const struct ow_frame_choice *other = &set->pass[before]->input[y].choice;
		if (ow_joint_point(set, k, x) == ow_joint_point(set, before, y))
			same &= mine->since_ns == other->since_ns && mine->until_ns == other->until_ns;
	}
	return same;
}

bool ow_joint_shifts(const struct ow_joint_pass *set, unsigned passes, int64_t shift_ns[OW_PATH_POINTS])
{
	uint32_t known = UINT32_C(1) << set->pair[0].from, before = 0;
	shift_ns[set->pair[0].from] = 0;
	while (known != before) {
		before = known;
		for (unsigned k = 0; k < passes; k++) {
			unsigned from = set->pair[k].from, to = set->pair[k].to;
			int64_t shift = set->pass[k]->plan.shift_ns;
			if (known >> from & 1 && !(known >> to & 1))
				shift_ns[to] = shift_ns[from] + shift;
			else if (known >> to & 1 && !(known >> from & 1))
				shift_ns[from] = shift_ns[to] - shift;
			else if (known >> from & 1 && shift_ns[to] - shift_ns[from] != shift)
				return false;
			if ((known >> from | known >> to) & 1)
				known |= UINT32_C(1) << from | UINT32_C(1) << to;
		}
	}
	for (unsigned k = 0; k < passes; k++) {
		if (!(known >> set->pair[k].from & 1))
			return false;
	}
	return true;
}

static void swap(struct ow_joint_pass *set, unsigned a, unsigned b)
{
	struct ow_match_pass *pass = set->pass[a];
	struct ow_path_pair pair = set->pair[a];
	set->pass[a] = set->pass[b];
	set->pair[a] = set->pair[b];
	set->pass[b] = pass;
	set->pair[b] = pair;
}

/* Passes that share readers skip the same packets: those that do not pass a router, if any of the pairs has one. */
static void route_alike(struct ow_joint_pass *set, unsigned passes)
{
	bool routed = false;
	for (unsigned k = 0; k < passes; k++)
		routed |= set->pass[k]->plan.identity.routed;
	for (unsigned k = 0; k < passes; k++)
		set->pass[k]->plan.identity.routed = routed;
}

unsigned ow_joint_pass_select(struct ow_joint_pass *set)
{
	unsigned count = set->passes;
	int64_t shift_ns[OW_PATH_POINTS];
	for (unsigned k = 0; k < count;) {
		bool fits = !is_special(set->pass[k]) && same_times(set, k) &&
		            same_identity(&set->pass[k]->plan.identity, &set->pass[0]->plan.identity);
		if (fits)
			k++;
		else
			swap(set, k, --count);
	}
	if (count < 2 || !ow_joint_shifts(set, count, shift_ns))
		return 0;
	route_alike(set, count);
	return count;
}
