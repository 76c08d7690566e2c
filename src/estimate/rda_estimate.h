/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"
#include "reconcile/rda_peel.h"

/*
 * Delay and loss from two RDAs or two sRDAs: peel the difference, erase the packets that only one point saw, with the
 * times in its cache, and compute mean and standard deviation from the cells that then agree in ID and count (clean
 * cells).
 *
 * If all differences are found, the loss is exact, and so is the mean, because every bank then holds each common packet
 * once. If copies of a packet differ in number at the points, all of them are erased at both (formulas.md 3.5). What is
 * left is a sample, and the mean has an interval.
 *
 * Otherwise a packet is only in some of its k cells. With w_i clean cells of packet i, the mean over clean cells
 * weights packets by w_i:
 *
 *     mu +- t s sqrt(1/S - 1/R),   S = (sum w)^2 / sum w^2,   R common packets.
 *
 * The standard deviation is the centred one (never pairs of cells). The relative variance of its square is
 *
 *     V = 2 (1 - mean 1/C) / (B-k) + (kappa+2) (1/S - 1/R + sum(1/C)/B^2 - 1/sum C),
 *
 * and chi-squared with 2/V degrees of freedom gives the interval; with many packets a cell and all cells clean, 2/V is
 * B - k.
 *
 * The packets that are not decoded are the 2-core of a random hypergraph. A cell of it has Poisson(lambda) packets, at
 * least two:
 *
 *     dirty/M = 1 - e^-lambda (1 + lambda),   k r/M = lambda (1 - e^-lambda),
 *
 * so the number of dirty cells among M gives the number r of packets that remain; the counts give their sign. If nearly
 * all cells are dirty, the sum of the squared counts (as in AMS) is used instead.
 */
struct ow_rda_estimate_options {
	struct ow_rda_peel_options peel;
	bool published; /* standard deviation by collapsing pairs of clean cells (algorithms 2 and 3, errata corrected)
	                 */
};

/* The default: corrected and centred, for kinds RDA and SRDA. -EINVAL if they cannot be compared, -ENOMEM. */
int ow_rda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
int ow_rda_estimate_with(const struct ow_view *a, const struct ow_view *b,
                         const struct ow_rda_estimate_options *options, struct ow_estimate *ret_estimate);

/*
 * If only one point has a copy of a packet, it is not known which of the copies before it arrived (formulas.md 3.5).
 * Lists these packets of A, which both points erase, by their ids as stored in cells. The caller frees *ret_ids. B's
 * view needs a cache of only these and the extra packets of the peel.
 */
int ow_rda_ambiguous(const struct ow_view *a, const struct ow_rda_peel *peel, uint64_t **ret_ids, size_t *ret_count);

/*
 * Estimates how many packets only one point saw, for late binding. By MinHash as published (it needs the packet counts
 * of both points), with a 95 % interval; AMS has ow_ams_difference.
 */
int ow_minhash_difference(const struct ow_synopsis *a, const struct ow_synopsis *b, uint64_t packets_a,
                          uint64_t packets_b, struct ow_value *ret_differences);
