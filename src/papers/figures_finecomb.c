/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 4 to 7 of the FineComb paper (finecomb.h) and its table of recovery times; 8 and 9 are in
 * figures_finecomb_analysis.c. FineComb's loss is estimated from buckets with C_A >= C_B, as printed; without a stash,
 * and for an LDA, from all buckets. Our estimate is shown in addition.
 */
#include "papers/figures_finecomb.h"

#include "base/hash.h"
#include "reconcile/finecomb_recover.h"
#include "synopsis/finecomb.h"
#include <stdio.h>
#include <time.h>

/* -- figure 4 ------------------------------------------------------------------------------------------------------ */

struct seen {
	const char *suffix;
	struct ow_spread first, worst, minus,
		rate; /* error of the quantity of the figure: at the smallest rho, the largest, ... */
	double most_off;
};

static int put_samples(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                       void *arg)
{
	struct seen *seen = arg;
	char name[64];
	double got = ow_spread_mean(&p->of[OW_COMB_FINECOMB].samples);
	if (s->rho == OW_COMB_LEAST_RHO)
		seen->first = p->of[OW_COMB_FINECOMB].samples;
	seen->most_off = fmax(seen->most_off, fabs(got / p->expected - 1));
	snprintf(name, sizeof name, "loss %g", s->beta);
	int r = ow_spread_point(run, name, s->rho, &p->of[OW_COMB_FINECOMB].samples);
	snprintf(name, sizeof name, "loss %g, expected", s->beta);
	return r < 0 ? r : ow_figure_point(run, name, s->rho, p->expected, p->expected, p->expected);
}

static int run_4a(struct ow_figure_run *run, struct ow_error *err)
{
	static const double betas[] = {1e-4, 1e-3, 1e-2};
	struct seen seen[3] = {{.suffix = NULL}, {.suffix = NULL}, {.suffix = NULL}};
	int r = 0;
	for (int i = 0; i < 3 && !r; i++)
		r = ow_comb_sweep(run, &ow_comb_weibull,
		                  &(struct ow_comb_setting){1u << OW_COMB_FINECOMB, betas[i], 0, 0, false}, i / 3.,
		                  (i + 1) / 3., put_samples, &seen[i], err);
	if (r < 0)
		return r;
	double low = ow_spread_mean(&seen[0].first), high = ow_spread_mean(&seen[2].first);
	r = ow_figure_claim(run, "almost 3 million samples at loss 1e-4, about 40 k at 1e-2",
	                    fabs(low / 3e6 - 1) < 0.1 && fabs(high / 4e4 - 1) < 0.15, "%.2f million, %.1f k", low / 1e6,
	                    high / 1e3);
	double off = fmax(seen[0].most_off, fmax(seen[1].most_off, seen[2].most_off));
	return r < 0 ? r : ow_figure_claim(run, "as expected by equation (2)", off < 0.1, "within %.1f %%", 100 * off);
}

static int put_mean(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                    void *arg)
{
	struct seen *seen = arg;
	char name[64];
	ow_spread_keep_worse(&seen->worst, &p->of[OW_COMB_FINECOMB].mean);
	snprintf(name, sizeof name, "FineComb, %s", seen->suffix);
	int r = ow_spread_point(run, name, s->rho, &p->of[OW_COMB_FINECOMB].mean);
	snprintf(name, sizeof name, "FineComb-, %s", seen->suffix);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[OW_COMB_MINUS].mean);
}

static int put_loss(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                    void *arg)
{
	struct seen *seen = arg;
	char name[64];
	ow_spread_keep_worse(&seen->minus, &p->of[OW_COMB_MINUS].all);
	ow_spread_keep_worse(&seen->worst, &p->of[OW_COMB_FINECOMB].loss);
	snprintf(name, sizeof name, "FineComb, %s", seen->suffix);
	int r = ow_spread_point(run, name, s->rho, &p->of[OW_COMB_FINECOMB].loss);
	snprintf(name, sizeof name, "FineComb-, %s", seen->suffix);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[OW_COMB_MINUS].all);
}

/* 4b and 4c: two distributions, with and without stash. */
static int both_shapes(struct ow_figure_run *run, double beta, ow_comb_put put, struct seen seen[2],
                       struct ow_error *err)
{
	const struct ow_comb_setting setting = {1u << OW_COMB_FINECOMB | 1u << OW_COMB_MINUS, beta, 0, 0, false};
	seen[0] = (struct seen){.suffix = "Weibull"};
	seen[1] = (struct seen){.suffix = "Pareto"};
	int r = ow_comb_sweep(run, &ow_comb_weibull, &setting, 0, 0.5, put, &seen[0], err);
	return r < 0 ? r : ow_comb_sweep(run, &ow_comb_pareto, &setting, 0.5, 1, put, &seen[1], err);
}

static int run_4b(struct ow_figure_run *run, struct ow_error *err)
{
	struct seen seen[2];
	int r = both_shapes(run, 0.01, put_mean, seen, err);
	if (r < 0)
		return r;
	return ow_figure_claim(run, "mean within 0.3 % for both distributions (loss 1 %)",
	                       ow_spread_below(&seen[0].worst, 0.3) && ow_spread_below(&seen[1].worst, 0.3),
	                       "at most %.2f %% (Weibull), %.2f %% (Pareto)", ow_spread_mean(&seen[0].worst),
	                       ow_spread_mean(&seen[1].worst));
}

static int run_4c(struct ow_figure_run *run, struct ow_error *err)
{
	struct seen seen[2];
	int r = both_shapes(run, 1e-4, put_loss, seen, err);
	return r < 0 ? r
	             : ow_figure_claim(run, "loss: far better with a stash (loss 1e-4)",
	                               ow_spread_mean(&seen[0].minus) > 5 * ow_spread_mean(&seen[0].worst),
	                               "at most %.0f %% with, %.0f %% without", ow_spread_mean(&seen[0].worst),
	                               ow_spread_mean(&seen[0].minus));
}

/* -- figure 5: the mean against LDA -------------------------------------------------------------------------------- */

struct versus {
	/* LDA at the middle and the largest rho; the worst of FineComb */
	struct ow_spread lda_low, lda_high, plus_high, finecomb;
};

static int put_versus(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                      void *arg)
{
	struct versus *v = arg;
	ow_spread_keep_worse(&v->finecomb, &p->of[OW_COMB_FINECOMB].mean);
	if (s->rho == 4e-4)
		v->lda_low = p->of[OW_COMB_LDA].mean;
	if (s->rho == 4e-3) {
		v->lda_high = p->of[OW_COMB_LDA].mean;
		v->plus_high = p->plus.mean;
	}
	int r = ow_spread_point(run, "LDA", s->rho, &p->of[OW_COMB_LDA].mean);
	if (!r)
		r = ow_spread_point(run, "LDA+", s->rho, &p->plus.mean);
	if (!r)
		r = ow_spread_point(run, "FineComb", s->rho, &p->of[OW_COMB_FINECOMB].mean);
	return r < 0 ? r : ow_spread_point(run, "FineComb-", s->rho, &p->of[OW_COMB_MINUS].mean);
}

/* Losses of 1e-4, 1e-3, 1e-2, first forward, then backward. */
static int run_5(struct ow_figure_run *run, struct ow_error *err)
{
	double beta = (const double[]){1e-4, 1e-3, 1e-2}[ow_figure_part(run) % 3];
	bool backward = ow_figure_part(run) >= 3;
	const struct ow_comb_setting setting = {1u << OW_COMB_FINECOMB | 1u << OW_COMB_MINUS | 1u << OW_COMB_LDA, beta,
	                                        0, 0, backward};
	struct versus v = {.lda_low = {0}};
	char text[120];
	int r = ow_comb_sweep(run, &ow_comb_weibull, &setting, 0, 1, put_versus, &v, err);
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "LDA errs by 100 % at rho 0.0005 to 400 % at 0.004", ow_spread_mean(&v.lda_high) > 100,
	                    "%.0f %% at rho 0.0004, %.0f %% at 0.004", ow_spread_mean(&v.lda_low),
	                    ow_spread_mean(&v.lda_high));
	snprintf(text, sizeof text, "%.3g %% against LDA's %.3g %%", ow_spread_mean(&v.plus_high),
	         ow_spread_mean(&v.lda_high));
	bool helps = ow_spread_mean(&v.plus_high) < ow_spread_mean(&v.lda_high) / 2;
	if (!r)
		r = ow_figure_claim(run, backward ? "LDA+ does not help backward" : "LDA+ helps forward",
		                    helps != backward, "%s", text);
	return r < 0 ? r
	             : ow_figure_claim(run, "FineComb: mostly 0.1 %, never more than 1 %",
	                               ow_spread_below(&v.finecomb, 1), "at most %.2f %%", ow_spread_mean(&v.finecomb));
}

/* -- figure 6: small losses ---------------------------------------------------------------------------------------- */

struct losses_seen {
	/* FineComb up to rho 0.0012, and above; our estimate; the worst of LDA */
	struct ow_spread middle, worst, worst_ours, lda;
	char name[32];
	struct ow_spread small; /* up to rho 1e-4 */
};

static int put_low_loss(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                        void *arg)
{
	struct losses_seen *seen = arg;
	ow_spread_keep_worse(s->rho < 2e-3 ? &seen->middle : &seen->worst, &p->of[OW_COMB_FINECOMB].loss);
	ow_spread_keep_worse(&seen->worst_ours, &p->of[OW_COMB_FINECOMB].ours);
	ow_spread_keep_worse(&seen->lda, &p->of[OW_COMB_LDA].all);
	int r = ow_spread_point(run, "FineComb", s->rho, &p->of[OW_COMB_FINECOMB].loss);
	if (!r)
		r = ow_spread_point(run, "FineComb, all buckets", s->rho, &p->of[OW_COMB_FINECOMB].all);
	if (!r)
		r = ow_spread_point(run, "FineComb-", s->rho, &p->of[OW_COMB_MINUS].all);
	if (!r)
		r = ow_spread_point(run, "LDA", s->rho, &p->of[OW_COMB_LDA].all);
	if (!r)
		r = ow_spread_point(run, "FineComb, our estimate", s->rho, &p->of[OW_COMB_FINECOMB].ours);
	return r < 0 ? r : ow_spread_point(run, "LDA, our estimate", s->rho, &p->of[OW_COMB_LDA].ours);
}

static int run_6a(struct ow_figure_run *run, struct ow_error *err)
{
	struct losses_seen seen = {0};
	int r = ow_comb_sweep(
		run, &ow_comb_weibull,
		&(struct ow_comb_setting){1u << OW_COMB_FINECOMB | 1u << OW_COMB_MINUS | 1u << OW_COMB_LDA, 1e-4, 0, 0,
	                                  false},
		0, 1, put_low_loss, &seen, err);
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "FineComb: loss within 10-30 % at loss 1e-4, whatever the reordering",
	                    ow_spread_below(&seen.middle, 30) && ow_spread_below(&seen.worst, 30),
	                    "at most %.0f %%, at rho 0.004 %.0f %% (ours: at most %.0f %%)",
	                    ow_spread_mean(&seen.middle), ow_spread_mean(&seen.worst),
	                    ow_spread_mean(&seen.worst_ours));
	return r < 0 ? r
	             : ow_figure_claim(run, "LDA: 100-500 % and more", ow_spread_mean(&seen.lda) > 100, "up to %.0f %%",
	                               ow_spread_mean(&seen.lda));
}

static int put_microscopic(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                           void *arg)
{
	struct losses_seen *seen = arg;
	char name[64];
	if (s->rho <= 1.2e-4)
		ow_spread_keep_worse(&seen->small, &p->of[OW_COMB_FINECOMB].loss);
	int r = ow_spread_point(run, seen->name, s->rho, &p->of[OW_COMB_FINECOMB].loss);
	snprintf(name, sizeof name, "%s, our estimate", seen->name);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[OW_COMB_FINECOMB].ours);
}

static int run_6b(struct ow_figure_run *run, struct ow_error *err)
{
	static const uint64_t lost[] = {5, 10, 50, 100};
	struct ow_spread worst = {0};
	int r = 0;
	for (int i = 0; i < 4 && !r; i++) {
		struct losses_seen seen = {0};
		snprintf(seen.name, sizeof seen.name, "%u lost", (unsigned)lost[i]);
		r = ow_comb_sweep(run, &ow_comb_weibull,
		                  &(struct ow_comb_setting){1u << OW_COMB_FINECOMB, (double)lost[i] / OW_COMB_PACKETS,
		                                            0, lost[i], false},
		                  i / 4., (i + 1) / 4., put_microscopic, &seen, err);
		ow_spread_keep_worse(&worst, &seen.small);
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "5 to 100 lost of 5 million: within 10 % up to rho 1e-4",
	                               ow_spread_below(&worst, 10), "at most %.1f +- %.1f %%", ow_spread_mean(&worst),
	                               ow_spread_error(&worst));
}

/* -- figure 7: loss and reordering unknown ------------------------------------------------------------------------- */

struct unknown {
	bool loss;
	struct ow_spread four, lda;
};

static int put_unknown(struct ow_figure_run *run, const struct ow_comb_setting *s, const struct ow_comb_point *p,
                       void *arg)
{
	struct unknown *u = arg;
	const struct ow_comb_outcome *opt = &p->of[OW_COMB_FINECOMB], *four = &p->of[OW_COMB_FOUR],
				     *lda = &p->of[OW_COMB_LDA2];
	ow_spread_keep_worse(&u->four, u->loss ? &four->loss : &four->mean);
	ow_spread_keep_worse(&u->lda, u->loss ? &lda->all : &lda->mean);
	int r = ow_spread_point(run, "FineComb, four banks", s->rho, u->loss ? &four->loss : &four->mean);
	if (!r)
		r = ow_spread_point(run, "FineComb-OPT", s->rho, u->loss ? &opt->loss : &opt->mean);
	if (!r)
		r = ow_spread_point(run, "LDA, two banks", s->rho, u->loss ? &lda->all : &lda->mean);
	if (!r && u->loss)
		r = ow_spread_point(run, "FineComb, four banks, our estimate", s->rho, &four->ours);
	return r;
}

static int figure_7(struct ow_figure_run *run, bool loss, struct unknown *u, struct ow_error *err)
{
	*u = (struct unknown){.loss = loss};
	return ow_comb_sweep(run, &ow_comb_weibull,
	                     &(struct ow_comb_setting){1u << OW_COMB_FINECOMB | 1u << OW_COMB_FOUR | 1u << OW_COMB_LDA2,
	                                               loss ? 1e-4 : 0.01, 0, 0, false},
	                     0, 1, put_unknown, u, err);
}

static int run_7a(struct ow_figure_run *run, struct ow_error *err)
{
	struct unknown u;
	int r = figure_7(run, false, &u, err);
	return r < 0 ? r
	             : ow_figure_claim(run, "four banks: mean within 1 %, LDA quickly unusable (loss 1 %)",
	                               ow_spread_below(&u.four, 1), "at most %.2f +- %.2f %%, LDA up to %.0f %%",
	                               ow_spread_mean(&u.four), ow_spread_error(&u.four), ow_spread_mean(&u.lda));
}

static int run_7b(struct ow_figure_run *run, struct ow_error *err)
{
	struct unknown u;
	int r = figure_7(run, true, &u, err);
	return r < 0 ? r
	             : ow_figure_claim(run, "four banks: loss within 60 %, LDA unusable (loss 1e-4)",
	                               ow_spread_below(&u.four, 60), "at most %.0f %%, LDA up to %.0f %%",
	                               ow_spread_mean(&u.four), ow_spread_mean(&u.lda));
}
/* -- the table of recovery times ----------------------------------------------------------------------------------- */

/*
 * All stash entries have drifted; M = (2000 - W)/2, because both points have buckets. The smallest time of some
 * repetitions, in ms.
 */
static int time_recovery(uint32_t stash, uint64_t seed, double *ret_ms, struct ow_error *err)
{
	const struct ow_finecomb_params params = {1, {{(2000 - stash) / 2, UINT32_MAX, stash / OW_STASHES}}};
	struct ow_finecomb *a = NULL, *b = NULL;
	int r = ow_finecomb_create(&params, seed, &a, err);
	if (!r)
		r = ow_finecomb_create(&params, seed, &b, err);
	double least = INFINITY;
	for (uint64_t i = 0; i < stash && !r; i++) {
		struct ow_sighting s = {ow_mix64(seed + i), (int64_t)i};
		if (i < stash / 4)
			ow_finecomb_before(b, &s, 1);
		else if (i < stash / 4 * 3)
			b->base.ops->add(&b->base, &s, 1);
		else
			ow_finecomb_after(b, &s, 1);
		if (i < stash / 4 || i >= stash / 4 * 3)
			a->base.ops->add(&a->base, &s, 1);
	}
	for (int i = 0; i < 20 && !r; i++) {
		struct ow_recovery recovery;
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		r = ow_finecomb_recover(a, b, true, &recovery);
		clock_gettime(CLOCK_MONOTONIC, &to);
		if (!r)
			ow_recovery_done(&recovery);
		least = fmin(least,
		             (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6);
	}
	ow_synopsis_free(a ? &a->base : NULL);
	ow_synopsis_free(b ? &b->base : NULL);
	*ret_ms = least;
	return r;
}

static int run_table(struct ow_figure_run *run, struct ow_error *err)
{
	static const struct {
		uint32_t stash;
		double ms;
	} paper[] = {{20, 1}, {120, 4}, {200, 6}, {462, 10}, {703, 10}, {838, 14}, {1000, NAN}};
	int r = 0;
	double ms = 0;
	for (size_t i = 0; i < sizeof paper / sizeof *paper && !r; i++) {
		r = time_recovery(paper[i].stash, ow_figure_seed(run), &ms, err);
		if (!r && !isnan(paper[i].ms))
			r = ow_figure_point(run, "paper", paper[i].stash, paper[i].ms, paper[i].ms, paper[i].ms);
		if (!r)
			r = ow_figure_point(run, "ours", paper[i].stash, ms, ms, ms);
		char claim[80], text[40];
		snprintf(claim, sizeof claim, "stash of %u: %g ms", paper[i].stash, paper[i].ms);
		snprintf(text, sizeof text, "%.3f ms", ms);
		if (!r && !isnan(paper[i].ms))
			r = ow_figure_claim(run, claim, ms <= paper[i].ms, "%s", text);
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "stash of 1000: not in the paper; asked for: 5 ms", ms < 5, "%.3f ms", ms);
}
#define RHO "reordering ratio"
#define ERR "relative error, %"
/* clang-format off */
const struct ow_figure ow_figures_finecomb[] = {
	{"finecomb-4a", "FineComb 4(a): samples", RHO, "samples", true, true, run_4a},
	{"finecomb-4b", "FineComb 4(b): error of the mean, loss 1 %", RHO, ERR, true, true, run_4b},
	{"finecomb-4c", "FineComb 4(c): error of the loss, loss 1e-4", RHO, ERR, true, true, run_4c},
	{"finecomb-5a", "FineComb 5: error of the mean, forward, loss 1e-4", RHO, ERR, true, true, run_5, 0},
	{"finecomb-5b", "FineComb 5: error of the mean, forward, loss 1e-3", RHO, ERR, true, true, run_5, 1},
	{"finecomb-5c", "FineComb 5: error of the mean, forward, loss 1e-2", RHO, ERR, true, true, run_5, 2},
	{"finecomb-5d", "FineComb 5: error of the mean, backward, loss 1e-4", RHO, ERR, true, true, run_5, 3},
	{"finecomb-5e", "FineComb 5: error of the mean, backward, loss 1e-3", RHO, ERR, true, true, run_5, 4},
	{"finecomb-5f", "FineComb 5: error of the mean, backward, loss 1e-2", RHO, ERR, true, true, run_5, 5},
	{"finecomb-6a", "FineComb 6(a): error of the loss, loss 1e-4", RHO, ERR, true, true, run_6a},
	{"finecomb-6b", "FineComb 6(b): error of the loss, 5 to 100 packets lost", RHO, ERR, true, true, run_6b},
	{"finecomb-7a", "FineComb 7(a): error of the mean, rates unknown, loss 1 %", RHO, ERR, true, true, run_7a},
	{"finecomb-7b", "FineComb 7(b): error of the loss, rates unknown, loss 1e-4", RHO, ERR, true, true, run_7b},
	{"finecomb-8", "FineComb 8: share of useful samples, storage 160", "stash entries", "E[X] / pG", false, false, ow_figure_finecomb_8},
	{"finecomb-9", "FineComb 9: samples by sampling share, storage 1000, rho 0.001", "sampling share", "E[X]", true, true,
	 ow_figure_finecomb_9},
	{"finecomb-table", "FineComb, section 6: stash recovery", "stash entries", "ms", false, true, run_table},
	{0},
};
/* clang-format on */
