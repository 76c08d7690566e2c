/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/point_limit.h"

#include "base/array.h"
#include "base/time.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ow_point_limit_entry {
	char point[OW_RESULT_NAME];
	double left;
	int64_t at_ns;
};

void ow_point_limit_init(struct ow_point_limit *limit, double burst, double rate)
{
	*limit = (struct ow_point_limit){.burst = burst, .rate = rate};
}

void ow_point_limit_done(struct ow_point_limit *limit)
{
	free(limit->entry);
	limit->entry = NULL;
	limit->count = limit->room = 0;
}

static struct ow_point_limit_entry *entry_of(struct ow_point_limit *limit, const char *point, int64_t now_ns)
{
	size_t low = 0, high = limit->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(limit->entry[middle].point, point) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < limit->count && strcmp(limit->entry[low].point, point) == 0)
		return &limit->entry[low];
	if (limit->count == OW_POINT_LIMIT_POINTS || OW_GROW(limit->entry, limit->room, limit->count + 1) < 0)
		return NULL;
	memmove(limit->entry + low + 1, limit->entry + low, (limit->count++ - low) * sizeof *limit->entry);
	limit->entry[low] = (struct ow_point_limit_entry){.left = limit->burst, .at_ns = now_ns};
	snprintf(limit->entry[low].point, sizeof limit->entry[low].point, "%s", point);
	return &limit->entry[low];
}

bool ow_point_limit_allow(struct ow_point_limit *limit, const char *point, size_t rows, int64_t now_ns)
{
	struct ow_point_limit_entry *entry = entry_of(limit, point, now_ns);
	if (!entry)
		return true;
	entry->left = fmin(limit->burst, entry->left + (double)(now_ns - entry->at_ns) / OW_NS_PER_S * limit->rate);
	entry->at_ns = now_ns;
	if (entry->left <= 0)
		return false;
	entry->left -= (double)rows;
	return true;
}
