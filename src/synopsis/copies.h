/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_SYNOPSIS_COPIES_H
#define OW_SYNOPSIS_COPIES_H

#include "synopsis/synopsis.h"

/*
 * Identical packets of an interval: keep-alives, polls, duplicates. Structures that compare sets would take an even
 * number of them for none. So the n-th occurrence of an id within the interval, counted at each point for itself, gets
 * an id of its own: the first keeps its id, the n-th has mix(id, n). (Not from a paper.)
 */

/* In place, in the order of the list. 0 or -ENOMEM; needs 16 bytes a packet for the time of the call. */
int ow_copies_rename(struct ow_stamp *stamps, size_t count);

#endif
