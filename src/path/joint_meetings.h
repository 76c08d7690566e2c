/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/side.h"
#include "packet/record.h"
#include "reconcile/matcher.h"

/* Meetings of a pair at one of its points. */
struct ow_joint_meetings {
	struct ow_meeting *meeting;
	struct ow_joint_records *both; /* of these, if the pass is not plain */
	size_t told, count;            /* those that were reported, and all */
	size_t room, both_room;
};

struct ow_joint_records {
	struct ow_record record[OW_SIDES];
};

/* Makes room for so many. 0 or -ENOMEM. */
int ow_joint_meetings_room(struct ow_joint_meetings *meetings, size_t count, bool plain);
void ow_joint_meetings_done(struct ow_joint_meetings *meetings);
/* The records of a meeting, from those of all points, if the pass is not plain. There is room for them. */
void ow_joint_meetings_keep(struct ow_joint_meetings *meetings, size_t i, const struct ow_record *record, unsigned from,
                            unsigned to, int64_t shift_ns);
/*
 * Reports those at both points of a pair whose turn is before `turned` of their point, in the order of time. When all are
 * reported, they are empty again. first: of two at the same time the one at the pair's first point is first. merged: room
 * that is used. 0 or -ENOMEM.
 */
int ow_joint_meetings_tell(struct ow_joint_meetings meetings[OW_SIDES], const uint32_t turned[OW_SIDES], bool plain,
                           bool first, struct ow_joint_meetings *merged, struct ow_matcher *matcher);
