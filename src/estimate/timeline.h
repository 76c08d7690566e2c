/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Delay and loss over time in bounded memory: at most OW_TIMELINE_BINS bins of equal width, which doubles when the time
 * range grows. Packets may come in any order. Quantiles are within 0.2 %, the rest is exact.
 */
#define OW_TIMELINE_BINS 512

struct ow_timeline;

struct ow_timeline_bin {
	int64_t start_ns, end_ns;
	uint64_t sent, lost, samples;
	/* Undefined without samples. */
	int64_t min_ns, max_ns;
	double median_ns, p99_ns;
};

int ow_timeline_create(struct ow_timeline **ret_timeline);
void ow_timeline_free(struct ow_timeline *timeline);

/* Adds packets sent at time_ns: that took delay_ns; that were lost; that arrived without a sample. 0 or -ENOMEM. */
int ow_timeline_add(struct ow_timeline *timeline, int64_t time_ns, int64_t delay_ns, uint32_t packets);
int ow_timeline_add_lost(struct ow_timeline *timeline, int64_t time_ns, uint32_t packets);
int ow_timeline_add_unmeasured(struct ow_timeline *timeline, int64_t time_ns, uint32_t packets);

/* Returns the bins that are not empty, in time order, and their number; ret_bin has room for OW_TIMELINE_BINS. */
size_t ow_timeline_bins(const struct ow_timeline *timeline, struct ow_timeline_bin *ret_bin);
