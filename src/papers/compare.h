/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "papers/trial.h"

/*
 * Runs all methods on two capture files of the same traffic and compares them with the exact result. The packets are
 * those that ow_match_files counts for the direction: sent and received within the time that both captures cover, and
 * of flows in this direction. The whole capture is one interval.
 */
struct ow_compare_options {
	struct ow_match_options match; /* on_packet must be NULL */
	enum ow_direction direction;
	size_t memory; /* bytes that each structure may take */
	uint64_t seed;
};

struct ow_compare;

/* -EINVAL if no packet was sent in this direction; otherwise as ow_match_files. */
int ow_compare_open(const char *path_a, const char *path_b, const struct ow_compare_options *options,
                    struct ow_compare **ret_compare, struct ow_error *err);
void ow_compare_free(struct ow_compare *compare);

/* Runs all methods. The result belongs to compare. Returns 0 or -ENOMEM. Also calls on_progress of the options. */
int ow_compare_run(struct ow_compare *compare, const struct ow_method_comparison **ret_comparison);

#define OW_SWEEP_SEEDS 5

/*
 * The error of a method's mean for some memory, relative to the truth: root mean square over the seeds, and their
 * range.
 */
struct ow_sweep_point {
	const char *name;
	double wire_bytes, error, low, high;
};

/* Returns 0, or a negative errno that ends the sweep. */
typedef int ow_compare_point(void *arg, const struct ow_sweep_point *point);

/* Runs all methods, from a sixteenth of the memory to sixteen times as much, and reports one point at a time. */
int ow_compare_sweep(struct ow_compare *compare, ow_compare_point *tell, void *arg);
