/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/repair.h"
#include <stdbool.h>

/*
 * The times of packets that only one point has, from the cells that they are in. Cell j has n_j common packets, whose
 * delays have the mean d and the variance v; t_l is the time of packet l, known but for an error e_l; s_l its sign:
 *     left_j = sum_l s_l e_l - n_j d + noise of variance n_j v
 * e and d follow by weighted least squares, v from what they do not explain.
 */
struct ow_lost_place {
	uint64_t flow, key;
	int sign;
	uint64_t time; /* as read from one cell, in dropped units modulo 2^OW_REPAIR_TIME_BITS */
	uint32_t cell[OW_REPAIR_BANKS];
};

struct ow_lost_cell {
	/* times of A - B, without those of the packets that were found; then also without what the corrections explain */
	double left;
	double var;    /* of what is left then: of the common packets' delays */
	double common; /* packets of B */
	bool read;     /* no other packet is in it */
};

struct ow_lost_time {
	int64_t correction; /* of the time as read; rounded */
	double var;         /* of the error that remains */
};

/* 0, or -ENOMEM. count: at least one. */
int ow_lost_times(struct ow_lost_cell *cell, size_t cells, const struct ow_lost_place *place, size_t count,
                  struct ow_lost_time *ret_time);
