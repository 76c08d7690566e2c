/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "reconcile/scope_table.h"
#include <stddef.h>
#include <stdint.h>

/*
 * Internal to scope: which pairs of networks should be FINE. A packet of a seen key that only one point has costs bytes
 * in the comparison; announcing each new flow of the pair costs bytes, too. A pair is to be FINE when
 *
 *     waste > 4 * new flows + 8
 *
 * where both fall by a tenth each interval. Only pairs with waste are kept: at most OW_SCOPE_WASTE_MAX of 32 bytes.
 */
#define OW_SCOPE_WASTE_MAX    12288u
#define OW_SCOPE_WASTE_A_ONLY 13.8f /* bytes: in the fold, and as a late packet */
#define OW_SCOPE_WASTE_B_ONLY 18.0f

struct ow_scope_waste {
	struct ow_scope_table table; /* by key of the pair */
	uint64_t *fine;              /* keys of pairs that are to be FINE and were not taken yet */
	size_t fines, room;
};

/* secret: where the table puts keys. */
void ow_scope_waste_init(struct ow_scope_waste *waste, uint64_t secret);
void ow_scope_waste_done(struct ow_scope_waste *waste);
/* Bytes that the pair cost in this interval. Out of memory or with too many pairs they are forgotten. */
void ow_scope_waste_add(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval, float bytes);
/* A new flow of the pair; ignored if it has no waste. */
void ow_scope_waste_flow(struct ow_scope_waste *waste, uint64_t pair_key, int64_t interval);
