/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/* Exact results of the classes of a match, from its events. A packet may be of several classes, or of none. */
struct ow_class_tally;

int ow_class_tally_create(unsigned classes, struct ow_class_tally **ret_tally);
void ow_class_tally_free(struct ow_class_tally *tally);
int ow_class_tally_add(struct ow_class_tally *tally, const struct ow_packet_event *event);
/* reordered is UINT64_MAX, because events do not come in the order of arrival. 0 or -ENOMEM. */
int ow_class_tally_get(struct ow_class_tally *tally, unsigned number, enum ow_direction direction,
                       struct ow_result *ret_result);
