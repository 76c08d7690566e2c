/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/side.h"
#include "packet/record.h"
#include "reconcile/matcher.h"

/* Meetings of a pair at one of its points, that are not reported yet. */
struct ow_joint_meetings {
	struct ow_meeting *meeting;
	struct ow_joint_records *both; /* instead of meetings, if the pass wants more of them */
	int64_t *order_ns;             /* of the record of this point, which is the later one */
	size_t count, room, both_room, order_room;
};

struct ow_joint_records {
	struct ow_record record[OW_SIDES];
};

/* Makes room for so many. plain: meetings. 0 or -ENOMEM. */
int ow_joint_meetings_room(struct ow_joint_meetings *meetings, size_t count, bool plain);
void ow_joint_meetings_done(struct ow_joint_meetings *meetings);
/*
 * Reports those at both points of a pair, in the order of time, and empties them. first: of two at the same time the one at
 * the pair's first point is first. merged: room that is used. 0 or -ENOMEM.
 */
int ow_joint_meetings_tell(struct ow_joint_meetings meetings[OW_SIDES], bool plain, bool first,
                           struct ow_joint_meetings *merged, struct ow_matcher *matcher);
