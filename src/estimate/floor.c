/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/floor.h"

#define OUTLIERS_LEAST 2    /* at most this many packets may be outliers, */
#define OUTLIERS_EVERY 500  /* and one more for this many samples */
#define SAMPLES_LEAST  20   /* with fewer, none is an outlier */
#define SLACK_NS       2000 /* two ticks of a microsecond clock */

void ow_floor_init(struct ow_floor *floor)
{
	floor->samples = 0;
	floor->kept = 0;
}

void ow_floor_keep(struct ow_floor *f, int64_t delay_ns)
{
	unsigned i = f->kept < OW_FLOOR_KEPT ? f->kept++ : OW_FLOOR_KEPT - 1;
	for (; i > 0 && f->least_ns[i - 1] > delay_ns; i--)
		f->least_ns[i] = f->least_ns[i - 1];
	f->least_ns[i] = delay_ns;
}

int64_t ow_floor_find(const struct ow_floor *f, int64_t median_ns)
{
	uint64_t most = f->samples < SAMPLES_LEAST ? 0 : OUTLIERS_LEAST + f->samples / OUTLIERS_EVERY;
	unsigned outliers = most < f->kept ? (unsigned)most : f->kept - 1;
	/* A packet is an outlier if its distance to the next is more than that from the next to the median. */
	for (unsigned i = outliers; i > 0; i--) {
		int64_t gap = f->least_ns[i] - f->least_ns[i - 1], spread = median_ns - f->least_ns[i];
		if (gap > (spread > SLACK_NS ? spread : SLACK_NS))
			return f->least_ns[i];
	}
	return f->least_ns[0];
}

int64_t ow_floor_below(const struct ow_floor *f, int64_t least_ns)
{
	return least_ns - (f->least_ns[f->kept - 1] - least_ns);
}
