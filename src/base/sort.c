/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void ow_sort_doubles(double *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof *values, by_value);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

void ow_sort_ids(uint64_t *ids, size_t count)
{
	if (count)
		qsort(ids, count, sizeof *ids, by_id);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void ow_sort_times(int64_t *times_ns, size_t count)
{
	if (count)
		qsort(times_ns, count, sizeof *times_ns, by_time);
}
