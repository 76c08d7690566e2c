/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <stdlib.h>

#define ITEMS_LEAST 256 /* with fewer numbers, qsort is as fast */

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

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void ow_sort_times(int64_t *times_ns, size_t count)
{
	int64_t *spare = count < ITEMS_LEAST ? NULL : malloc(count * sizeof *spare);
	if (spare)
		ow_sort_items(times_ns, spare, count, sizeof *spare, 0);
	else if (count)
		qsort(times_ns, count, sizeof *times_ns, by_time);
	free(spare);
}

/* Turns over the highest bit: numbers without a sign have the order of numbers with one. */
static void turn_over(uint64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ids[i] ^= UINT64_C(1) << 63;
}

void ow_sort_ids(uint64_t *ids, size_t count)
{
	turn_over(ids, count);
	ow_sort_times((int64_t *)ids, count);
	turn_over(ids, count);
}
