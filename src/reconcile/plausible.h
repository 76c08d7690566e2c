/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The range of delays of one direction, learned from certain matches: it decides between identical packets. Half of the
 * 0.1 % quantile to twice the 99.9 % quantile, plus and minus the coarsest accepted clock tick.
 */
#define OW_PLAUSIBLE_BUCKETS 256 /* 4 an octave over 64 bits */

struct ow_plausible {
	uint64_t count[OW_PLAUSIBLE_BUCKETS];
	uint64_t samples, next_update;
	int64_t low_ns, high_ns; /* defined if known */
	int64_t least_ns; /* the smallest delay; if it is below the bucket of the 0.1 % quantile, the start of that */
	int64_t most_ns;  /* the largest delay; if it is above the bucket of the 99.9 % quantile, the end of that */
	int64_t min_ns, max_ns; /* of all samples */
	bool known;
};

void ow_plausible_init(struct ow_plausible *plausible);
/* Computes the range again from the samples so far. */
void ow_plausible_update(struct ow_plausible *plausible);

static inline unsigned ow_plausible_bucket(int64_t delay_ns)
{
	if (delay_ns < 4)
		return 0;
	unsigned octave = 63 - (unsigned)__builtin_clzll((uint64_t)delay_ns);
	return octave * 4 + ((unsigned)(delay_ns >> (octave - 2)) & 3);
}

static inline void ow_plausible_add(struct ow_plausible *plausible, int64_t delay_ns)
{
	plausible->count[ow_plausible_bucket(delay_ns)]++;
	plausible->min_ns = delay_ns < plausible->min_ns ? delay_ns : plausible->min_ns;
	plausible->max_ns = delay_ns > plausible->max_ns ? delay_ns : plausible->max_ns;
	if (++plausible->samples >= plausible->next_update)
		ow_plausible_update(plausible);
}
