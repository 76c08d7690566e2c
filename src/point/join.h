/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_POINT_JOIN_H
#define OW_POINT_JOIN_H

#include "point/ledger.h"
#include "point/settle.h"

/*
 * Both points on this host: compares the pages of an interval packet by packet. Everything is exact: loss, all delays,
 * reordering (RFC 4737), duplicates (a packet sent once and received more often keeps the delay of its first arrival,
 * RFC 5560); where several copies were sent and another number arrived, their delays are ambiguous.
 */

/* What the two pages share. Fills counts, delays and lists of *ret_input (the names of lane and points are the
 * caller's); what it points to belongs to *ret_joined. 0 or -ENOMEM. The pages must have the same shift. */
struct ow_joined {
	struct ow_stamp *only_a, *only_b; /* by base id */
	int64_t *delay_ns;
};
int ow_join_pages(const struct ow_page *a, const struct ow_page *b, struct ow_settle_input *ret_input,
                  struct ow_joined *ret_joined);
void ow_joined_done(struct ow_joined *joined);

#endif
