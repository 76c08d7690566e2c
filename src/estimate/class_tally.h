/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/*
 * Exact results of the classes of a match, from its events. By filters, a packet may be of several classes, or of none; by
 * DSCP and size, it is of one.
 */
struct ow_class_tally;

int ow_class_tally_create(enum ow_class_by by, struct ow_class_tally **ret_tally);
void ow_class_tally_free(struct ow_class_tally *tally);
int ow_class_tally_add(struct ow_class_tally *tally, const struct ow_packet_event *event);
/* Whether a class has packets. */
bool ow_class_tally_used(const struct ow_class_tally *tally, unsigned number);
/* After the match: the result, with what the report knows of the class, and the percentiles of the report. 0 or -ENOMEM. */
int ow_class_tally_get(struct ow_class_tally *tally, const struct ow_match_report *report, unsigned number,
                       enum ow_direction direction, struct ow_result *ret_result, struct ow_percentile *ret_percentile);
