/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "packet/record.h"

/*
 * Copies that were not matched, because the capture seems to show a packet twice. A host that repeats a packet at the
 * same lag looks the same; but then the other point has one packet more, which finds its counterpart here. The latest
 * 2^17 copies are kept.
 */
struct ow_copies_aside;

struct ow_copies_aside *ow_copies_aside_create(void);
void ow_copies_aside_free(struct ow_copies_aside *aside);
void ow_copies_aside_reset(struct ow_copies_aside *aside);
void ow_copies_aside_add(struct ow_copies_aside *aside, const struct ow_record *record);
/*
 * Removes the oldest copy of this packet whose time is within these bounds; older ones are dropped. False if there is
 * none. Calls come approximately in the order of time.
 */
bool ow_copies_aside_take(struct ow_copies_aside *aside, uint64_t id, int64_t from_ns, int64_t to_ns,
                          struct ow_record *ret_record);
