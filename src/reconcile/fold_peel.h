/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/fold.h"

/*
 * Reads the differences of two points from the difference of their folds. A packet is named by its key (ow_fold_key);
 * the point that saw it finds it in its cache.
 */
struct ow_fold_difference {
	uint64_t *only_a, *only_b; /* keys; a key that one point has two times more than the other is there twice */
	size_t as, bs;
	size_t doubled; /* keys that are there twice */
	size_t left;    /* cells that are not 0 */
	bool complete;  /* no cell is left: these are all differences */
	size_t space_a, space_b;
};

/*
 * first: a fold of A minus the same fold of B (ow_synopsis_subtract); it is consumed. second: NULL, or the same with
 * another order, if an earlier call with first alone was not complete: what that one found is removed from second, then
 * both are peeled jointly. diff: zeroed before the first call; ow_fold_difference_done frees its memory.
 *
 * Ends after a number of steps that is limited by the number of cells, for any contents. -EINVAL if the tables are not
 * folds of the same seed and banks, -ENOMEM; diff is valid then but not complete.
 */
int ow_fold_peel(struct ow_synopsis *first, struct ow_synopsis *second, struct ow_fold_difference *diff);
void ow_fold_difference_done(struct ow_fold_difference *diff);
