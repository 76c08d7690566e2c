/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <oneway/match.h>

/* The sides of a direction, and the direction in which a side sends. */
static inline enum ow_side ow_sender_of(enum ow_direction direction)
{
	return direction == OW_A_TO_B ? OW_SIDE_A : OW_SIDE_B;
}

static inline enum ow_side ow_receiver_of(enum ow_direction direction)
{
	return direction == OW_A_TO_B ? OW_SIDE_B : OW_SIDE_A;
}

static inline enum ow_direction ow_sent_by(enum ow_side side)
{
	return side == OW_SIDE_A ? OW_A_TO_B : OW_B_TO_A;
}
