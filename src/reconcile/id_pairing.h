/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/* Finds the packets that are in both lists. Ids are unique within each list; both have fewer than 2^32 - 1 packets. */
#define OW_PAIRING_NONE UINT32_MAX

/* of_b[j]: the index in a of the packet b[j], or NONE. of_a is the reverse. Returns 0 or -ENOMEM. */
int ow_pairing(const struct ow_sighting *a, size_t as, const struct ow_sighting *b, size_t bs, uint32_t *of_a,
               uint32_t *of_b);
