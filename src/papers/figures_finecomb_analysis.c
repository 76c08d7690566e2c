/* SPDX-License-Identifier: Apache-2.0 */
/* Figures 8 and 9 of the FineComb paper: the best sizes of the stash and of the sample, by its analysis. */
#include "papers/figures_finecomb.h"

#include "estimate/distribution.h"
#include "synopsis/finecomb.h"
#include <stdio.h>

/* F(w; lambda), Poisson. */
static double poisson(double w, double lambda)
{
	return lambda > 0 ? 1 - ow_gamma_p(w + 1, lambda) : 1;
}

/* E[X] / (p G), equation (16): drift and loss are the expected numbers of sampled packets of each. */
static double useful_share(double buckets, double stash, double drift, double loss)
{
	double hit = 1 - 1 / buckets;
	return exp(-loss / buckets) *
	       (poisson(stash, drift) + exp(-drift / buckets - stash * log(hit)) * (1 - poisson(stash, hit * drift)));
}

/* Draws the curve and finds the stash with the largest share. */
static int curve_8(struct ow_figure_run *run, double storage, double drift, double loss, double *ret_best)
{
	char name[64];
	double most = -1;
	snprintf(name, sizeof name, "pR %g, p beta T %g", drift, loss);
	for (double w = 0; w <= storage - 10; w += 2) {
		double y = useful_share(storage - w, w, drift, loss);
		int r = ow_figure_point(run, name, w, y, y, y);
		if (r < 0)
			return r;
		if (y > most) {
			most = y;
			*ret_best = w;
		}
	}
	return 0;
}

int ow_figure_finecomb_8(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	enum { S = 160 };
	unsigned near = 0, none = 0, fits = 0, over = 0;
	int r = 0;
	for (int i = 0; i < 12 && !r; i++) {
		double x = 20 * (i % 6 + 1), drift = i < 6 ? 100 : x, loss = i < 6 ? x : 100, best = 0;
		if (i == 10)
			continue; /* both are 100: already drawn */
		r = curve_8(run, S, drift, loss, &best);
		if (drift + loss < S) {
			fits++;
			near += fabs(best / drift - 1) < 0.2;
		} else if (drift + loss > S) {
			over++;
			none += best == 0;
		}
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "best stash about pR if p(R + beta T) < S, else none",
	                               near == fits && none == over, "near pR in %u of %u, 0 in %u of %u", near, fits,
	                               none, over);
}

/* E[X] in packets at a sampling share, with W = pR or without. */
static double samples_9(double p, double beta, double rho, bool stash)
{
	double drift = p * rho * OW_COMB_PACKETS, loss = p * beta * OW_COMB_PACKETS, w = stash ? floor(drift) : 0;
	if (w > OW_COMB_STORAGE - 2)
		return 0;
	return p * (1 - beta) * OW_COMB_PACKETS * useful_share(OW_COMB_STORAGE - w, w, drift, loss);
}

int ow_figure_finecomb_9(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	static const double betas[] = {1e-4, 1e-3};
	const double rho = 1e-3;
	int r = 0;
	double off = 0, gain[2] = {0};
	for (int k = 0; k < 2 && !r; k++) {
		double most[2] = {0};
		for (int i = 0; i <= 200 && !r; i++) {
			double p = pow(10, -3 + i / 200. * 3);
			for (int stash = 0; stash < 2 && !r; stash++) {
				char name[64];
				double y = samples_9(p, betas[k], rho, stash);
				snprintf(name, sizeof name, "loss %g, %s", betas[k], stash ? "stash pR" : "no stash");
				most[stash] = fmax(most[stash], y);
				if (y > 0)
					r = ow_figure_point(run, name, p, y, y, y);
			}
		}
		gain[k] = 100 * (most[1] / most[0] - 1);
		double star = ow_finecomb_sampling(OW_COMB_STORAGE, OW_COMB_PACKETS, betas[k], rho, true);
		off = fmax(off, 1 - samples_9(star, betas[k], rho, true) / most[1]);
	}
	if (!r)
		r = ow_figure_claim(run, "a stash gives 15-30 % more samples than none", gain[0] > 0 && gain[1] > 0,
		                    "%.0f %% at loss 1e-4, %.0f %% at 1e-3", gain[0], gain[1]);
	return r < 0 ? r
	             : ow_figure_claim(run, "p* is close to the maximum", off < 0.1,
	                               "%.1f %% fewer samples than at the maximum", 100 * off);
}
