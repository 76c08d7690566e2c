/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "flows/epochs.h"

/*
 * When a recording has epochs. A packet of another point from a time without one may not be lost: the point was not running, or
 * nothing passed it.
 */
struct ow_flow_cover_span {
	int64_t begin_ns, end_ns;
};

struct ow_flow_cover {
	struct ow_flow_cover_span *span; /* in their order, apart from each other */
	size_t spans;
};

/* -ENOMEM. */
int ow_flow_cover_init(const struct ow_epochs *epochs, struct ow_flow_cover *ret_cover);
void ow_flow_cover_done(struct ow_flow_cover *cover);

/*
 * About how many packets of the epochs that overlap [since_ns, until_ns) are from times that are not covered, when shift_ns is
 * added to their times. ends: also from before the first and after the last span.
 */
double ow_flow_cover_unmet(const struct ow_flow_cover *cover, const struct ow_epochs *epochs, int64_t since_ns,
                           int64_t until_ns, double shift_ns, bool ends);
