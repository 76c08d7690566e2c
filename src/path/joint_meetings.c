/* SPDX-License-Identifier: Apache-2.0 */
#include "path/joint_meetings.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_joint_meetings_room(struct ow_joint_meetings *m, size_t count, bool plain)
{
	if (OW_GROW(m->meeting, m->room, count) < 0)
		return -ENOMEM;
	return plain ? 0 : OW_GROW(m->both, m->both_room, count);
}

void ow_joint_meetings_done(struct ow_joint_meetings *m)
{
	free(m->meeting);
	free(m->both);
}

void ow_joint_meetings_keep(struct ow_joint_meetings *m, size_t i, const struct ow_record *record, unsigned from,
                            unsigned to, int64_t shift_ns)
{
	struct ow_record *kept = m->both[i].record;
	kept[OW_SIDE_A] = record[from];
	kept[OW_SIDE_B] = record[to];
	kept[OW_SIDE_A].time_ns -= shift_ns;
	kept[OW_SIDE_B].time_ns -= shift_ns;
}

static bool is_sooner(bool first, int64_t from_ns, int64_t to_ns)
{
	return from_ns < to_ns || (from_ns == to_ns && first);
}

/* Those that are reported now: of each side from `told` to end[side]. */
static void merge(const struct ow_joint_meetings from[OW_SIDES], const size_t end[OW_SIDES], bool first,
                  struct ow_meeting *to)
{
	const struct ow_joint_meetings *a = &from[OW_SIDE_A], *b = &from[OW_SIDE_B];
	size_t i = a->told, k = b->told;
	while (i < end[OW_SIDE_A] && k < end[OW_SIDE_B]) {
		bool is_a = is_sooner(first, a->meeting[i].order_ns, b->meeting[k].order_ns);
		*to++ = is_a ? a->meeting[i] : b->meeting[k];
		i += is_a;
		k += !is_a;
	}
	memcpy(to, &a->meeting[i], (end[OW_SIDE_A] - i) * sizeof *to);
	memcpy(to + (end[OW_SIDE_A] - i), &b->meeting[k], (end[OW_SIDE_B] - k) * sizeof *to);
}

/* For a pass that wants the records. */
static void tell_both(const struct ow_joint_meetings from[OW_SIDES], const size_t end[OW_SIDES], bool first,
                      struct ow_matcher *matcher)
{
	const struct ow_joint_meetings *a = &from[OW_SIDE_A], *b = &from[OW_SIDE_B];
	for (size_t i = a->told, k = b->told; i < end[OW_SIDE_A] || k < end[OW_SIDE_B];) {
		bool is_a = k == end[OW_SIDE_B] ||
		            (i < end[OW_SIDE_A] && is_sooner(first, a->meeting[i].order_ns, b->meeting[k].order_ns));
		ow_matcher_matched(matcher, is_a ? a->both[i].record : b->both[k].record);
		i += is_a;
		k += !is_a;
	}
}

static int tell_plain(const struct ow_joint_meetings m[OW_SIDES], const size_t end[OW_SIDES], bool first,
                      struct ow_joint_meetings *merged, struct ow_matcher *matcher)
{
	size_t a = end[OW_SIDE_A] - m[OW_SIDE_A].told, b = end[OW_SIDE_B] - m[OW_SIDE_B].told;
	const struct ow_joint_meetings *only = a ? &m[OW_SIDE_A] : &m[OW_SIDE_B];
	if (!a || !b) {
		if (a + b)
			ow_matcher_met(matcher, only->meeting + only->told, a + b);
		return 0;
	}
	if (ow_joint_meetings_room(merged, a + b, true) < 0)
		return -ENOMEM;
	merge(m, end, first, merged->meeting);
	ow_matcher_met(matcher, merged->meeting, a + b);
	return 0;
}

int ow_joint_meetings_tell(struct ow_joint_meetings m[OW_SIDES], const uint32_t turned[OW_SIDES], bool plain,
                           bool first, struct ow_joint_meetings *merged, struct ow_matcher *matcher)
{
	size_t end[OW_SIDES];
	int r = 0;
	for (unsigned side = 0; side < OW_SIDES; side++) {
		end[side] = m[side].told;
		while (end[side] < m[side].count && m[side].meeting[end[side]].turn < turned[side])
			end[side]++;
	}
	if (plain)
		r = tell_plain(m, end, first, merged, matcher);
	else
		tell_both(m, end, first, matcher);
	for (unsigned side = 0; side < OW_SIDES; side++) {
		m[side].told = end[side];
		if (end[side] == m[side].count)
			m[side].told = m[side].count = 0;
	}
	return r;
}
