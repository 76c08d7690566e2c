/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_MATCH_DUPLICATE_FILTER_H
#define OW_MATCH_DUPLICATE_FILTER_H

#include "packet/record.h"

/*
 * Leaves out the further copies of packets that a capture shows more than once: a mirror port that copies both
 * directions, or a capture on all interfaces of a router. Remembers the latest packets, up to 2^17 of them.
 */
struct ow_dedup;

struct ow_dedup *ow_dedup_create(void);
void ow_dedup_free(struct ow_dedup *copies);
void ow_dedup_reset(struct ow_dedup *copies);
/* Was the same packet shown within the last within_ns? If not, remembers it. */
bool ow_dedup_seen(struct ow_dedup *copies, const struct ow_record *record, int64_t within_ns);

#endif
