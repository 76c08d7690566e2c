/* SPDX-License-Identifier: Apache-2.0 */
#include "path/joint_meetings.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ow_joint_meetings_room(struct ow_joint_meetings *m, size_t count, bool plain)
{
	if (OW_GROW(m->order_ns, m->order_room, count) < 0)
		return -ENOMEM;
	return plain ? OW_GROW(m->meeting, m->room, count) : OW_GROW(m->both, m->both_room, count);
}

void ow_joint_meetings_done(struct ow_joint_meetings *m)
{
	free(m->meeting);
	free(m->both);
	free(m->order_ns);
}

static bool is_sooner(bool first, int64_t from_ns, int64_t to_ns)
{
	return from_ns < to_ns || (from_ns == to_ns && first);
}

static void merge(const struct ow_joint_meetings from[OW_SIDES], bool first, struct ow_meeting *to)
{
	const struct ow_joint_meetings *a = &from[OW_SIDE_A], *b = &from[OW_SIDE_B];
	size_t i = 0, k = 0;
	while (i < a->count && k < b->count) {
		bool is_a = is_sooner(first, a->order_ns[i], b->order_ns[k]);
		to[i + k] = is_a ? a->meeting[i] : b->meeting[k];
		i += is_a;
		k += !is_a;
	}
	memcpy(&to[i + k], &a->meeting[i], (a->count - i) * sizeof *to);
	i = a->count;
	memcpy(&to[i + k], &b->meeting[k], (b->count - k) * sizeof *to);
}

/* For a pass that wants the records. */
static void tell_both(const struct ow_joint_meetings from[OW_SIDES], bool first, struct ow_matcher *matcher)
{
	const struct ow_joint_meetings *a = &from[OW_SIDE_A], *b = &from[OW_SIDE_B];
	for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
		bool is_a = k == b->count || (i < a->count && is_sooner(first, a->order_ns[i], b->order_ns[k]));
		ow_matcher_matched(matcher, is_a ? a->both[i].record : b->both[k].record);
		i += is_a;
		k += !is_a;
	}
}

int ow_joint_meetings_tell(struct ow_joint_meetings m[OW_SIDES], bool plain, bool first,
                           struct ow_joint_meetings *merged, struct ow_matcher *matcher)
{
	const struct ow_joint_meetings *told = m[OW_SIDE_A].count ? &m[OW_SIDE_A] : &m[OW_SIDE_B];
	size_t count = m[OW_SIDE_A].count + m[OW_SIDE_B].count;
	if (!plain) {
		tell_both(m, first, matcher);
	} else if (m[OW_SIDE_A].count && m[OW_SIDE_B].count) {
		told = merged;
		if (ow_joint_meetings_room(merged, count, true) < 0)
			return -ENOMEM;
		merge(m, first, merged->meeting);
	}
	if (plain && count)
		ow_matcher_met(matcher, told->meeting, count);
	m[OW_SIDE_A].count = m[OW_SIDE_B].count = 0;
	return 0;
}
