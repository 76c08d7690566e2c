/* SPDX-License-Identifier: Apache-2.0 */
#include "reconcile/plausible.h"

#include <string.h>

#define FIRST_UPDATE   8     /* samples before the range is used at all */
#define UPDATE_AT_MOST 65536 /* samples between two updates */
#define SLACK_NS       2000  /* two ticks of a microsecond clock */

/* The smallest delay of a bucket; that of the next bucket is its upper end. */
static int64_t bucket_start(unsigned bucket)
{
	unsigned octave = bucket / 4;
	if (octave < 2)
		return 0;
	return octave > 61 ? INT64_MAX / 4 : (int64_t)(4 + bucket % 4) << (octave - 2);
}

void ow_plausible_update(struct ow_plausible *p)
{
	uint64_t below = p->samples / 1000, above = below, sum = 0;
	unsigned low = 0, high = OW_PLAUSIBLE_BUCKETS - 2;
	while (low < OW_PLAUSIBLE_BUCKETS - 2 && (sum += p->count[low]) <= below)
		low++;
	sum = 0;
	while (high > 0 && (sum += p->count[high]) <= above)
		high--;
	int64_t start_ns = bucket_start(low), end_ns = bucket_start(high + 1);
	p->least_ns = p->min_ns > start_ns ? p->min_ns : start_ns;
	p->most_ns = p->max_ns < end_ns ? p->max_ns : end_ns;
	p->low_ns = start_ns / 2 - SLACK_NS;
	p->high_ns = end_ns * 2 + SLACK_NS;
	p->known = true;
	p->next_update = p->samples + (p->samples < UPDATE_AT_MOST ? p->samples : UPDATE_AT_MOST);
}

void ow_plausible_init(struct ow_plausible *plausible)
{
	memset(plausible, 0, sizeof *plausible);
	plausible->next_update = FIRST_UPDATE;
	plausible->min_ns = INT64_MAX;
	plausible->max_ns = INT64_MIN;
}
