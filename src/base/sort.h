/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sort plain numbers, the smallest first. The array may be NULL if the count is 0. */
void ow_sort_doubles(double *values, size_t count); /* none of them is a NaN */
void ow_sort_ids(uint64_t *ids, size_t count);
void ow_sort_times(int64_t *times_ns, size_t count);

/* How many of sorted ids are below this one, which is its place among them. */
static inline size_t ow_ids_below(const uint64_t *ids, size_t count, uint64_t id)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#define OW_SORT_DIGIT_BITS 11

static inline int64_t ow_sort_key(const char *item)
{
	int64_t key;
	memcpy(&key, item, sizeof key);
	return key;
}

/*
 * Sorts items of `size` bytes by the signed 64-bit number at offset `at`, stable: a radix sort with digits of 11 bits,
 * least significant first. spare has room for as many items. Inlined, so that the size is a constant.
 */
__attribute__((always_inline)) static inline void ow_sort_items(void *list, void *spare, size_t count, size_t size,
                                                                size_t at)
{
	const uint64_t mask = (1u << OW_SORT_DIGIT_BITS) - 1;
	char *from = list, *to = spare;
	int64_t low = INT64_MAX, high = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		int64_t key = ow_sort_key(from + i * size + at);
		low = key < low ? key : low;
		high = key > high ? key : high;
	}
	for (unsigned shift = 0; count > 1 && shift < 64 && ((uint64_t)high - (uint64_t)low) >> shift;
	     shift += OW_SORT_DIGIT_BITS) {
		size_t place[1 << OW_SORT_DIGIT_BITS] = {0}, sum = 0;
		for (size_t i = 0; i < count; i++)
			place[((uint64_t)ow_sort_key(from + i * size + at) - (uint64_t)low) >> shift & mask]++;
		for (size_t i = 0; i <= mask; i++) {
			size_t n = place[i];
			place[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < count; i++) {
			uint64_t digit = ((uint64_t)ow_sort_key(from + i * size + at) - (uint64_t)low) >> shift & mask;
			memcpy(to + place[digit]++ * size, from + i * size, size);
		}
		char *other = from;
		from = to;
		to = other;
	}
	if (from != (char *)list)
		memcpy(list, from, count * size);
}
