/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "synopsis/synopsis.h"

/*
 * Finds the packets that only one of two points saw, from their RDAs or sRDAs (algorithm 1 of the RDA paper and of its
 * supplement, with the errata): cells of B - A with a single packet are removed until none is left. It always ends: a
 * cell is tested again when its turn comes, and the steps are limited. It is complete only if every cell ends empty.
 */

struct ow_rda_peel_options {
	/*
	 * Algorithm 1 as printed, for comparison: a cell that was found pure is used when its turn comes unless it has
	 * become empty, and checks in the ids are ignored.
	 */
	bool published;
	uint64_t steps; /* cap; 0 = 4 times the cells that are not empty, plus 100, which a decoding without errors
	                   never needs */
};

struct ow_rda_peel {
	uint64_t *lost, *extra; /* ids as the cells hold them, only at A and only at B; one allocation */
	size_t losts, extras;
	bool complete; /* every cell ended with ID = 0 and count = 0: these are all */
	bool capped;   /* the steps ran out */
	uint64_t steps;
	/* What remains, for estimates if it is not complete. */
	size_t cells, dirty; /* all cells; cells that are not empty after peeling */
	int64_t net;         /* packets only at B minus packets only at A that remain */
	double squares;      /* sum of the squared counts of the difference before peeling */
};

/* Both of kind RDA or both of kind SRDA, comparable. options may be NULL. -EINVAL, -ENOMEM. */
int ow_rda_peel(const struct ow_synopsis *a, const struct ow_synopsis *b, const struct ow_rda_peel_options *options,
                struct ow_rda_peel *ret_peel);
void ow_rda_peel_done(struct ow_rda_peel *peel);

/*
 * Repair (section VIII, latency aggregation): removes from `synopsis`, in which the packets of `cache` were counted,
 * those whose id is in `ids` (as in the cells). Of several packets with one id the last is removed, because the other
 * point has the first copies as well. ret_erased: how many were found.
 */
int ow_rda_erase(struct ow_synopsis *synopsis, const uint64_t *ids, size_t count, const struct ow_sighting *cache,
                 size_t cached, size_t *ret_erased);

/* A synopsis of the same contents. */
int ow_rda_copy(const struct ow_synopsis *synopsis, struct ow_synopsis **ret_copy);
