/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RADIX_LEAST 256 /* with fewer values, qsort is as fast */
#define DIGITS      8   /* bytes of a value */
#define DIGIT       256

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static unsigned digit_of(uint64_t value, unsigned digit)
{
	return (unsigned)(value >> (8 * digit)) & (DIGIT - 1);
}

/* Sorts by one byte of the values. False: all have the same one. */
static bool sort_by_digit(const uint64_t *from, uint64_t *to, size_t count, unsigned digit)
{
	size_t place[DIGIT] = {0}, next = 0;
	for (size_t i = 0; i < count; i++)
		place[digit_of(from[i], digit)]++;
	if (place[digit_of(from[0], digit)] == count)
		return false;
	for (unsigned d = 0; d < DIGIT; d++) {
		size_t values = place[d];
		place[d] = next;
		next += values;
	}
	for (size_t i = 0; i < count; i++)
		to[place[digit_of(from[i], digit)]++] = from[i];
	return true;
}

/* Radix sort, from the lowest byte on. False: there is no memory. */
static bool sort_by_digits(uint64_t *values, size_t count)
{
	uint64_t *room = malloc(count * sizeof *room), *from = values, *to = room;
	if (!room)
		return false;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		if (!sort_by_digit(from, to, count, digit))
			continue;
		uint64_t *sorted = to;
		to = from;
		from = sorted;
	}
	if (from != values)
		memcpy(values, from, count * sizeof *values);
	free(room);
	return true;
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
	if (count && (count < RADIX_LEAST || !sort_by_digits(ids, count)))
		qsort(ids, count, sizeof *ids, by_id);
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void ow_sort_times(int64_t *times_ns, size_t count)
{
	const uint64_t sign = UINT64_C(1) << 63; /* turned over, so that negative times come first */
	if (count < RADIX_LEAST) {
		if (count)
			qsort(times_ns, count, sizeof *times_ns, by_time);
		return;
	}
	uint64_t *values = (uint64_t *)times_ns;
	for (size_t i = 0; i < count; i++)
		values[i] ^= sign;
	ow_sort_ids(values, count);
	for (size_t i = 0; i < count; i++)
		values[i] ^= sign;
}
