/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sort plain numbers, the smallest first. The array may be NULL if the count is 0. */
void ow_sort_doubles(double *values, size_t count); /* none of them is a NaN */
void ow_sort_ids(uint64_t *ids, size_t count);
void ow_sort_times(int64_t *times_ns, size_t count);
