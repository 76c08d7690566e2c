/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "estimate/estimate.h"

/*
 * Estimates from two FineCombs, after stash recovery. Delays come from the clean buckets of all banks. `lost` are
 * packets of the interval at A that B saw neither in it nor (as far as the stash shows) near it; `extra` are packets
 * that B counts in it and A does not.
 */
struct ow_finecomb_options {
	bool no_stash;     /* FineComb- */
	bool paper_stddev; /* F - mu^2 from pairs of buckets instead of the centred estimator */
	bool paper_loss;   /* sum (C_A - C_B) / sum C_A over the sampled packets only, after recovery */
	bool paper_where;  /* with paper_loss: only buckets with C_A >= C_B, as printed; biased */
};

/* For comparable synopses. -ENOMEM. */
int ow_finecomb_estimate_with(const struct ow_view *a, const struct ow_view *b,
                              const struct ow_finecomb_options *options, struct ow_estimate *ret_estimate);
/* With the default options. */
int ow_finecomb_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate);
