/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OW_ESTIMATE_RDA_ESTIMATE_H
#define OW_ESTIMATE_RDA_ESTIMATE_H

#include "estimate/estimate.h"
#include "reconcile/rda_peel.h"

/*
 * Delay and loss from two RDAs or two sRDAs: peel the difference, erase what only one point saw with the times in its
 * cache, and take mean and standard deviation from the cells that then agree in ID and count (clean cells).
 *
 * All differences found: loss is exact, and so is the mean, since every bank then holds each common packet once. Where
 * copies of a packet differ in number at the points, all of them are erased at both (formulas.md 3.5) and what is left
 * is a sample: the mean has an interval then.
 * Otherwise a packet is in some of its k cells only. With w_i clean cells of packet i, the mean over clean cells
 * weights packets by w_i, and mu +- t s sqrt(1/S - 1/R),   S = (sum w)^2 / sum w^2,   R common packets; the standard
 * deviation is the centred one (never pairs of cells), its variance's relative variance V = 2 (1 - mean 1/C) / (B-k) +
 * (kappa+2) (1/S - 1/R + sum(1/C)/B^2 - 1/sum C), for which chi-squared with 2/V degrees of freedom gives the interval;
 * for many packets a cell and all cells clean that is B - k.
 *
 * What stays undecoded is the 2-core of a random hypergraph. A cell of it holds Poisson(lambda) packets, at least two:
 *     dirty/M = 1 - e^-lambda (1 + lambda),   k r/M = lambda (1 - e^-lambda),
 * from which the dirty ones of M cells tell how many packets r remain; which sign they have the counts tell. Where
 * nearly all cells are dirty, the sum of the squared counts (as in AMS) tells it instead.
 */
struct ow_rda_estimate_options {
	struct ow_rda_peel_options peel;
	bool published; /* standard deviation by collapsing pairs of clean cells (algorithms 2 and 3, errata corrected)
	                 */
};

/* The default: corrected and centred. For kinds RDA and SRDA. -EINVAL if they cannot be compared, -ENOMEM. */
int ow_rda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
int ow_rda_estimate_with(const struct ow_view *a, const struct ow_view *b,
                         const struct ow_rda_estimate_options *options, struct ow_estimate *ret_estimate);

/*
 * Where a copy of a packet is at one point only, which of the copies before it arrived is not known (formulas.md 3.5):
 * lists these packets of A, which both points erase, by their ids as the cells hold them. *ret_ids is to be freed. B's
 * view needs a cache of no more than these and the peel's extra packets.
 */
int ow_rda_ambiguous(const struct ow_view *a, const struct ow_rda_peel *peel, uint64_t **ret_ids, size_t *ret_count);

/*
 * How many packets only one point saw, for late binding. By MinHash as published (packets of both points are needed
 * with it), with a 95 % interval; AMS has ow_ams_difference.
 */
int ow_minhash_difference(const struct ow_synopsis *a, const struct ow_synopsis *b, uint64_t packets_a,
                          uint64_t packets_b, struct ow_value *ret_differences);

#endif
