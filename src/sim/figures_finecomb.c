/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 4 to 9 of the FineComb paper (finecomb.h) and its table of recovery times: one second of 5 million packets,
 * 10 us mean delay, 1000 buckets and stash entries. Packets of the neighbours drift into the interval, at its start
 * ("forward") or end ("backward"), as the paper's text has it; its 4-tuple counts by the place of arrival. As in the
 * paper the stash has the expected size without margin. FineComb's loss is counted where C_A >= C_B, as printed;
 * without a stash and for an LDA over all buckets; our estimate is shown beside it.
 */
#include "base/hash.h"
#include "estimate/distribution.h"
#include "estimate/finecomb_estimate.h"
#include "estimate/lda_estimate.h"
#include "reconcile/finecomb_recover.h"
#include "sim/spread.h"
#include "sim/trace.h"
#include "synopsis/finecomb.h"
#include "synopsis/lda.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PACKETS  5000000
#define GAP_NS   200
#define STORAGE  1000
#define RUNS_MAX 20

static const struct ow_sim_model weibull = {.kind = OW_SIM_WEIBULL, .a = 6646.3, .b = 0.6}; /* mean 10 us */
static const struct ow_sim_model pareto = {.kind = OW_SIM_PARETO, .a = 6666.7, .b = 3};

/* Reordering ratios: a quarter of each drifts over the one boundary. Quick: every other one. */
static const double rhos[] = {4e-6, 1.2e-5, 4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3};
#define RHOS (sizeof rhos / sizeof *rhos)

static unsigned runs_of(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 6 : RUNS_MAX;
}

static size_t step_of(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 2 : 1;
}

/* -- structures that watch a trace --------------------------------------------------------------------------------- */

enum kind { FINECOMB, MINUS, LDA, FOUR, LDA2, KINDS };

/* Runs of one structure with different seeds. */
struct group {
	bool used;
	struct ow_synopsis *a[RUNS_MAX], *b[RUNS_MAX];
};

struct rig {
	unsigned runs;
	struct group group[KINDS];
	uint64_t sent, received;
	double p, buckets, stash; /* of FINECOMB */
};

static void rig_done(struct rig *rig)
{
	for (int k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < RUNS_MAX; i++) {
			ow_synopsis_free(rig->group[k].a[i]);
			ow_synopsis_free(rig->group[k].b[i]);
		}
}

static int make_finecomb(const struct ow_finecomb_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis,
                         struct ow_error *err)
{
	struct ow_finecomb *f;
	int r = ow_finecomb_create(params, seed, &f, err);
	if (!r)
		*ret_synopsis = &f->base;
	return r;
}

static int make_lda(const struct ow_lda_params *params, uint64_t seed, struct ow_synopsis **ret_synopsis,
                    struct ow_error *err)
{
	struct ow_lda *lda;
	int r = ow_lda_create(params, seed, &lda, err);
	if (!r)
		*ret_synopsis = &lda->base;
	return r;
}

/* What is known of loss and reordering: rates for one bank, ranges for several. */
static const double range[2] = {1e-4, 0.01};

/* An LDA has 1.5 (M + W/2) buckets: its buckets are 2/3 as large, and both points have them. */
static uint32_t lda_buckets(const struct ow_finecomb_params *p)
{
	double buckets = 0;
	for (uint32_t i = 0; i < p->banks; i++)
		buckets += 1.5 * (p->bank[i].buckets + OW_STASHES * (double)p->bank[i].stash / 2);
	return (uint32_t)buckets;
}

struct tuning {
	struct ow_finecomb_params finecomb[KINDS];
	struct ow_lda_params lda[KINDS];
};

static int tune(double beta, double rho, struct tuning *t, struct ow_error *err)
{
	int r = ow_finecomb_tune(PACKETS, STORAGE, beta, rho, true, 0, &t->finecomb[FINECOMB], err);
	if (!r)
		r = ow_finecomb_tune(PACKETS, STORAGE, beta, rho, false, 0, &t->finecomb[MINUS], err);
	if (!r)
		r = ow_finecomb_tune_four(PACKETS, STORAGE, range, range, 0, &t->finecomb[FOUR], err);
	if (r < 0)
		return r;
	uint32_t one = lda_buckets(&t->finecomb[FINECOMB]), half = lda_buckets(&t->finecomb[FOUR]) / 2;
	r = ow_lda_tune(PACKETS, &one, &beta, 1, OW_LDA_ALPHA_PAPER, &t->lda[LDA], err);
	return r < 0 ? r
	             : ow_lda_tune(PACKETS, (uint32_t[]){half, half}, range, 2, OW_LDA_ALPHA_PAPER, &t->lda[LDA2], err);
}

static int rig_make(struct rig *rig, unsigned kinds, unsigned runs, double beta, double rho, uint64_t seed,
                    struct ow_error *err)
{
	struct tuning t;
	*rig = (struct rig){.runs = runs};
	int r = tune(beta, rho, &t, err);
	for (int k = 0; k < KINDS && !r; k++) {
		struct group *g = &rig->group[k];
		g->used = kinds >> k & 1;
		for (unsigned i = 0; i < 2 * runs && g->used && !r; i++) {
			struct ow_synopsis **s = i < runs ? &g->a[i] : &g->b[i - runs];
			uint64_t own = ow_mix64(seed) + i % runs;
			r = k == LDA || k == LDA2 ? make_lda(&t.lda[k], own, s, err)
			                          : make_finecomb(&t.finecomb[k], own, s, err);
		}
	}
	const struct ow_finecomb_bank *bank = &t.finecomb[FINECOMB].bank[0];
	rig->p = ((double)bank->limit + 1) * 0x1p-32;
	rig->buckets = bank->buckets;
	rig->stash = OW_STASHES * (double)bank->stash;
	if (r < 0)
		rig_done(rig);
	return r;
}

static void rig_sent(void *arg, const struct ow_stamp *stamps, size_t count)
{
	struct rig *rig = arg;
	rig->sent += count;
	for (int k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used; i++)
			rig->group[k].a[i]->ops->add(rig->group[k].a[i], stamps, count);
}

static void rig_received(void *arg, const struct ow_stamp *stamps, size_t count)
{
	struct rig *rig = arg;
	rig->received += count;
	for (int k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used; i++)
			rig->group[k].b[i]->ops->add(rig->group[k].b[i], stamps, count);
}

/* -- a point ------------------------------------------------------------------------------------------------------- */

/* Errors in percent. Loss: where C_A >= C_B, as printed; over all buckets; our estimate. */
struct outcome {
	struct ow_spread samples, mean, loss, all, ours;
};

struct point {
	struct outcome of[KINDS], plus; /* plus: LDA+ */
	double expected;                /* samples, equation (2) */
	struct ow_trace_truth truth;
};

static void add_error(struct ow_spread *s, const struct ow_value *v, double truth)
{
	if (v->status != OW_VALUE_NONE)
		ow_spread_add(s, 100 * fabs(v->value - truth) / truth);
}

/* The LDA paper's loss: the difference of all counters, of those sampled. */
static void add_lda_loss(struct ow_spread *s, const struct ow_synopsis *a, const struct ow_synopsis *b, double truth)
{
	const struct ow_lda *x = (const struct ow_lda *)a, *y = (const struct ow_lda *)b;
	double sent = 0, lost = 0;
	for (uint32_t i = 0; i < x->first[x->params.banks]; i++) {
		sent += (double)x->bucket[i].packets;
		lost += (double)x->bucket[i].packets - (double)y->bucket[i].packets;
	}
	if (sent > 0)
		ow_spread_add(s, 100 * fabs(lost / sent * PACKETS - truth) / truth);
}

static int evaluate_lda(const struct ow_view *a, const struct ow_view *b, const struct ow_trace_truth *truth,
                        struct outcome *o, struct outcome *plus)
{
	struct ow_estimate e;
	int r = ow_lda_estimate(a, b, &e);
	if (r < 0)
		return r;
	ow_spread_add(&o->samples, (double)e.useful);
	add_error(&o->mean, &e.mean_ns, truth->mean_ns);
	add_error(&o->ours, &e.lost, (double)truth->lost);
	add_lda_loss(&o->all, a->synopsis, b->synopsis, (double)truth->lost);
	r = ow_lda_estimate_with(a, b, &(struct ow_lda_options){.plus = true}, &e);
	if (!r && plus)
		add_error(&plus->mean, &e.mean_ns, truth->mean_ns);
	return r;
}

/* The loss that a bank of the four is tuned to: the one whose sampling share it has. */
static double tuned_loss(const struct ow_finecomb_bank *bank)
{
	for (int i = 0; i < 4; i++)
		if (ow_lda_limit(ow_finecomb_sampling(STORAGE / 4, PACKETS, range[i >> 1], range[i & 1], true)) ==
		    bank->limit)
			return range[i >> 1];
	return range[0];
}

/* Section 3.5: of the banks' estimates, where C_A >= C_B, the one that is closest to what its bank is tuned to. */
static int closest_bank(const struct ow_finecomb *a, const struct ow_finecomb *b, double *ret_loss)
{
	struct ow_recovery recovery;
	int r = ow_finecomb_recover(a, b, true, &recovery);
	if (r < 0)
		return r;
	double best = INFINITY;
	for (uint32_t k = 0; k < a->params.banks; k++) {
		double lost = 0, packets = 0;
		for (uint32_t i = a->first[k]; i < a->first[k + 1]; i++) {
			const struct ow_recovered_bucket *bucket = &recovery.bucket[i];
			lost += bucket->difference >= 0 ? (double)bucket->difference : 0;
			packets += bucket->difference >= 0 ? (double)bucket->packets : 0;
		}
		double ratio = packets > 0 ? lost / packets : 0, tuned = tuned_loss(&a->params.bank[k]);
		if (fabs(ratio - tuned) / tuned < best) {
			best = fabs(ratio - tuned) / tuned;
			*ret_loss = ratio;
		}
	}
	ow_recovery_done(&recovery);
	return 0;
}

static int evaluate_finecomb(const struct ow_view *a, const struct ow_view *b, const struct ow_trace_truth *truth,
                             enum kind kind, struct outcome *o)
{
	struct ow_estimate e;
	struct ow_finecomb_options options = {.no_stash = kind == MINUS};
	double lost = (double)truth->lost, ratio = 0;
	int r = ow_finecomb_estimate_with(a, b, &options, &e);
	if (r < 0)
		return r;
	ow_spread_add(&o->samples, (double)e.useful);
	add_error(&o->mean, &e.mean_ns, truth->mean_ns);
	add_error(&o->ours, &e.lost, lost);
	options.paper_loss = true;
	r = ow_finecomb_estimate_with(a, b, &options, &e);
	if (!r)
		add_error(&o->all, &e.lost, lost);
	options.paper_where = true;
	if (!r && kind == FOUR) {
		r = closest_bank((const struct ow_finecomb *)a->synopsis, (const struct ow_finecomb *)b->synopsis,
		                 &ratio);
		if (!r)
			ow_spread_add(&o->loss, 100 * fabs(ratio * PACKETS - lost) / lost);
	} else if (!r) {
		r = ow_finecomb_estimate_with(a, b, &options, &e);
		if (!r)
			add_error(&o->loss, &e.lost, lost);
	}
	return r;
}

static int evaluate(const struct rig *rig, struct point *point)
{
	int r = 0;
	for (int k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used && !r; i++) {
			struct ow_view a = {.synopsis = rig->group[k].a[i], .packets = rig->sent};
			struct ow_view b = {.synopsis = rig->group[k].b[i], .packets = rig->received};
			r = k == LDA || k == LDA2
			            ? evaluate_lda(&a, &b, &point->truth, &point->of[k], k == LDA ? &point->plus : NULL)
			            : evaluate_finecomb(&a, &b, &point->truth, (enum kind)k, &point->of[k]);
		}
	return r;
}

struct setting {
	unsigned kinds;
	double beta, rho;
	uint64_t lost; /* exactly, if not 0 */
	bool backward;
};

static int measure(const struct ow_figure_run *run, const struct ow_trace *trace, const struct setting *s,
                   uint64_t seed, struct point *ret_point, struct ow_error *err)
{
	struct rig *rig = malloc(sizeof *rig);
	if (!rig)
		return -ENOMEM;
	*ret_point = (struct point){0};
	int r = rig_make(rig, s->kinds, runs_of(run), s->beta, s->rho, seed, err);
	if (!r) {
		uint64_t x = (uint64_t)(s->rho * PACKETS / OW_STASHES + 0.5);
		struct ow_trace_faults faults = {.loss = {s->beta, 0},
		                                 .lost = s->lost,
		                                 .start = s->backward ? 0 : x,
		                                 .end = s->backward ? x : 0};
		struct ow_trace_watcher watcher = {rig_sent, rig_received, rig, NULL};
		ow_trace_pass(trace, &faults, ow_mix64(seed + 1), &watcher, &ret_point->truth);
		r = evaluate(rig, ret_point);
		ret_point->expected =
			ow_finecomb_samples(rig->buckets, rig->stash, PACKETS, s->beta, s->rho / OW_STASHES, rig->p);
		rig_done(rig);
	}
	free(rig);
	return r;
}

/* A sweep over rho; `put` draws what it wants of each point. */
typedef int (*put_fn)(struct ow_figure_run *run, const struct setting *setting, const struct point *point, void *arg);

static int sweep(struct ow_figure_run *run, const struct ow_sim_model *model, const struct setting *setting,
                 double from, double to, put_fn put, void *arg, struct ow_error *err)
{
	struct ow_trace trace;
	struct point *point = malloc(sizeof *point);
	if (!point)
		return -ENOMEM;
	int r = ow_trace_make(&trace, model, PACKETS, GAP_NS, ow_figure_seed(run));
	for (size_t i = 0; i < RHOS && !r; i += step_of(run)) {
		struct setting s = *setting;
		s.rho = rhos[i];
		r = measure(run, &trace, &s, ow_figure_seed(run) + 100 + i, point, err);
		if (!r)
			r = put(run, &s, point, arg);
		ow_figure_progress(run, from + (to - from) * (double)(i + 1) / RHOS);
	}
	ow_trace_done(&trace);
	free(point);
	return r;
}

/* -- figure 4 ------------------------------------------------------------------------------------------------------ */

struct seen {
	const char *suffix;
	struct ow_spread first, worst, minus,
		rate; /* of what the figure is about: at the least rho, the largest, ... */
	double most_off;
};

static void keep_worse(struct ow_spread *worst, const struct ow_spread *s)
{
	if (ow_spread_mean(s) > ow_spread_mean(worst))
		*worst = *s;
}

static int put_samples(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct seen *seen = arg;
	char name[64];
	double got = ow_spread_mean(&p->of[FINECOMB].samples);
	if (s->rho == rhos[0])
		seen->first = p->of[FINECOMB].samples;
	seen->most_off = fmax(seen->most_off, fabs(got / p->expected - 1));
	snprintf(name, sizeof name, "loss %g", s->beta);
	int r = ow_spread_point(run, name, s->rho, &p->of[FINECOMB].samples);
	snprintf(name, sizeof name, "loss %g, expected", s->beta);
	return r < 0 ? r : ow_figure_point(run, name, s->rho, p->expected, p->expected, p->expected);
}

static int run_4a(struct ow_figure_run *run, struct ow_error *err)
{
	static const double betas[] = {1e-4, 1e-3, 1e-2};
	struct seen seen[3] = {{.suffix = NULL}, {.suffix = NULL}, {.suffix = NULL}};
	char text[120];
	int r = 0;
	for (int i = 0; i < 3 && !r; i++)
		r = sweep(run, &weibull, &(struct setting){1u << FINECOMB, betas[i], 0, 0, false}, i / 3., (i + 1) / 3.,
		          put_samples, &seen[i], err);
	if (r < 0)
		return r;
	double low = ow_spread_mean(&seen[0].first), high = ow_spread_mean(&seen[2].first);
	snprintf(text, sizeof text, "%.2f million, %.1f k", low / 1e6, high / 1e3);
	r = ow_figure_claim(run, "almost 3 million samples at loss 1e-4, about 40 k at 1e-2", text,
	                    fabs(low / 3e6 - 1) < 0.1 && fabs(high / 4e4 - 1) < 0.15);
	double off = fmax(seen[0].most_off, fmax(seen[1].most_off, seen[2].most_off));
	snprintf(text, sizeof text, "within %.1f %%", 100 * off);
	return r < 0 ? r : ow_figure_claim(run, "as expected by equation (2)", text, off < 0.1);
}

static int put_mean(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct seen *seen = arg;
	char name[64];
	keep_worse(&seen->worst, &p->of[FINECOMB].mean);
	snprintf(name, sizeof name, "FineComb, %s", seen->suffix);
	int r = ow_spread_point(run, name, s->rho, &p->of[FINECOMB].mean);
	snprintf(name, sizeof name, "FineComb-, %s", seen->suffix);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[MINUS].mean);
}

static int put_loss(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct seen *seen = arg;
	char name[64];
	keep_worse(&seen->minus, &p->of[MINUS].all);
	keep_worse(&seen->worst, &p->of[FINECOMB].loss);
	snprintf(name, sizeof name, "FineComb, %s", seen->suffix);
	int r = ow_spread_point(run, name, s->rho, &p->of[FINECOMB].loss);
	snprintf(name, sizeof name, "FineComb-, %s", seen->suffix);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[MINUS].all);
}

/* 4b and 4c: two distributions, with and without stash. */
static int both_shapes(struct ow_figure_run *run, double beta, put_fn put, struct seen seen[2], struct ow_error *err)
{
	const struct setting setting = {1u << FINECOMB | 1u << MINUS, beta, 0, 0, false};
	seen[0] = (struct seen){.suffix = "Weibull"};
	seen[1] = (struct seen){.suffix = "Pareto"};
	int r = sweep(run, &weibull, &setting, 0, 0.5, put, &seen[0], err);
	return r < 0 ? r : sweep(run, &pareto, &setting, 0.5, 1, put, &seen[1], err);
}

static int run_4b(struct ow_figure_run *run, struct ow_error *err)
{
	struct seen seen[2];
	char text[120];
	int r = both_shapes(run, 0.01, put_mean, seen, err);
	if (r < 0)
		return r;
	snprintf(text, sizeof text, "at most %.2f %% (Weibull), %.2f %% (Pareto)", ow_spread_mean(&seen[0].worst),
	         ow_spread_mean(&seen[1].worst));
	return ow_figure_claim(run, "mean within 0.3 % for both distributions (loss 1 %)", text,
	                       ow_spread_below(&seen[0].worst, 0.3) && ow_spread_below(&seen[1].worst, 0.3));
}

static int run_4c(struct ow_figure_run *run, struct ow_error *err)
{
	struct seen seen[2];
	char text[120];
	int r = both_shapes(run, 1e-4, put_loss, seen, err);
	snprintf(text, sizeof text, "at most %.0f %% with, %.0f %% without", ow_spread_mean(&seen[0].worst),
	         ow_spread_mean(&seen[0].minus));
	return r < 0 ? r
	             : ow_figure_claim(run, "loss: far better with a stash (loss 1e-4)", text,
	                               ow_spread_mean(&seen[0].minus) > 5 * ow_spread_mean(&seen[0].worst));
}

/* -- figure 5: the mean against LDA -------------------------------------------------------------------------------- */

struct versus {
	struct ow_spread lda_low, lda_high, plus_high, finecomb; /* LDA at the middle and the largest rho; the worst */
};

static int put_versus(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct versus *v = arg;
	keep_worse(&v->finecomb, &p->of[FINECOMB].mean);
	if (s->rho == 4e-4)
		v->lda_low = p->of[LDA].mean;
	if (s->rho == 4e-3) {
		v->lda_high = p->of[LDA].mean;
		v->plus_high = p->plus.mean;
	}
	int r = ow_spread_point(run, "LDA", s->rho, &p->of[LDA].mean);
	if (!r)
		r = ow_spread_point(run, "LDA+", s->rho, &p->plus.mean);
	if (!r)
		r = ow_spread_point(run, "FineComb", s->rho, &p->of[FINECOMB].mean);
	return r < 0 ? r : ow_spread_point(run, "FineComb-", s->rho, &p->of[MINUS].mean);
}

static int figure_5(struct ow_figure_run *run, double beta, bool backward, struct ow_error *err)
{
	const struct setting setting = {1u << FINECOMB | 1u << MINUS | 1u << LDA, beta, 0, 0, backward};
	struct versus v = {.lda_low = {0}};
	char text[120];
	int r = sweep(run, &weibull, &setting, 0, 1, put_versus, &v, err);
	if (r < 0)
		return r;
	snprintf(text, sizeof text, "%.0f %% at rho 0.0004, %.0f %% at 0.004", ow_spread_mean(&v.lda_low),
	         ow_spread_mean(&v.lda_high));
	r = ow_figure_claim(run, "LDA errs by 100 % at rho 0.0005 to 400 % at 0.004", text,
	                    ow_spread_mean(&v.lda_high) > 100);
	snprintf(text, sizeof text, "%.3g %% against LDA's %.3g %%", ow_spread_mean(&v.plus_high),
	         ow_spread_mean(&v.lda_high));
	bool helps = ow_spread_mean(&v.plus_high) < ow_spread_mean(&v.lda_high) / 2;
	if (!r)
		r = ow_figure_claim(run, backward ? "LDA+ does not help backward" : "LDA+ helps forward", text,
		                    helps != backward);
	snprintf(text, sizeof text, "at most %.2f %%", ow_spread_mean(&v.finecomb));
	return r < 0 ? r
	             : ow_figure_claim(run, "FineComb: mostly 0.1 %, never more than 1 %", text,
	                               ow_spread_below(&v.finecomb, 1));
}

static int run_5a(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-4, false, err);
}

static int run_5b(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-3, false, err);
}

static int run_5c(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-2, false, err);
}

static int run_5d(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-4, true, err);
}

static int run_5e(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-3, true, err);
}

static int run_5f(struct ow_figure_run *run, struct ow_error *err)
{
	return figure_5(run, 1e-2, true, err);
}

/* -- figure 6: small losses ---------------------------------------------------------------------------------------- */

struct losses_seen {
	struct ow_spread middle, worst, worst_ours, lda; /* FineComb up to rho 0.0012, and above; ours; LDA's worst */
	char name[32];
	struct ow_spread small; /* up to rho 1e-4 */
};

static int put_low_loss(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct losses_seen *seen = arg;
	keep_worse(s->rho < 2e-3 ? &seen->middle : &seen->worst, &p->of[FINECOMB].loss);
	keep_worse(&seen->worst_ours, &p->of[FINECOMB].ours);
	keep_worse(&seen->lda, &p->of[LDA].all);
	int r = ow_spread_point(run, "FineComb", s->rho, &p->of[FINECOMB].loss);
	if (!r)
		r = ow_spread_point(run, "FineComb, all buckets", s->rho, &p->of[FINECOMB].all);
	if (!r)
		r = ow_spread_point(run, "FineComb-", s->rho, &p->of[MINUS].all);
	if (!r)
		r = ow_spread_point(run, "LDA", s->rho, &p->of[LDA].all);
	if (!r)
		r = ow_spread_point(run, "FineComb, our estimate", s->rho, &p->of[FINECOMB].ours);
	return r < 0 ? r : ow_spread_point(run, "LDA, our estimate", s->rho, &p->of[LDA].ours);
}

static int run_6a(struct ow_figure_run *run, struct ow_error *err)
{
	struct losses_seen seen = {0};
	char text[160];
	int r = sweep(run, &weibull, &(struct setting){1u << FINECOMB | 1u << MINUS | 1u << LDA, 1e-4, 0, 0, false}, 0,
	              1, put_low_loss, &seen, err);
	if (r < 0)
		return r;
	snprintf(text, sizeof text, "at most %.0f %%, at rho 0.004 %.0f %% (ours: at most %.0f %%)",
	         ow_spread_mean(&seen.middle), ow_spread_mean(&seen.worst), ow_spread_mean(&seen.worst_ours));
	r = ow_figure_claim(run, "FineComb: loss within 10-30 % at loss 1e-4, whatever the reordering", text,
	                    ow_spread_below(&seen.middle, 30) && ow_spread_below(&seen.worst, 30));
	snprintf(text, sizeof text, "up to %.0f %%", ow_spread_mean(&seen.lda));
	return r < 0 ? r : ow_figure_claim(run, "LDA: 100-500 % and more", text, ow_spread_mean(&seen.lda) > 100);
}

static int put_microscopic(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct losses_seen *seen = arg;
	char name[64];
	if (s->rho <= 1.2e-4)
		keep_worse(&seen->small, &p->of[FINECOMB].loss);
	int r = ow_spread_point(run, seen->name, s->rho, &p->of[FINECOMB].loss);
	snprintf(name, sizeof name, "%s, our estimate", seen->name);
	return r < 0 ? r : ow_spread_point(run, name, s->rho, &p->of[FINECOMB].ours);
}

static int run_6b(struct ow_figure_run *run, struct ow_error *err)
{
	static const uint64_t lost[] = {5, 10, 50, 100};
	struct ow_spread worst = {0};
	char text[80];
	int r = 0;
	for (int i = 0; i < 4 && !r; i++) {
		struct losses_seen seen = {0};
		snprintf(seen.name, sizeof seen.name, "%u lost", (unsigned)lost[i]);
		r = sweep(run, &weibull,
		          &(struct setting){1u << FINECOMB, (double)lost[i] / PACKETS, 0, lost[i], false}, i / 4.,
		          (i + 1) / 4., put_microscopic, &seen, err);
		keep_worse(&worst, &seen.small);
	}
	snprintf(text, sizeof text, "at most %.1f +- %.1f %%", ow_spread_mean(&worst), ow_spread_error(&worst));
	return r < 0 ? r
	             : ow_figure_claim(run, "5 to 100 lost of 5 million: within 10 % up to rho 1e-4", text,
	                               ow_spread_below(&worst, 10));
}

/* -- figure 7: loss and reordering unknown ------------------------------------------------------------------------- */

struct unknown {
	bool loss;
	struct ow_spread four, lda;
};

static int put_unknown(struct ow_figure_run *run, const struct setting *s, const struct point *p, void *arg)
{
	struct unknown *u = arg;
	const struct outcome *opt = &p->of[FINECOMB], *four = &p->of[FOUR], *lda = &p->of[LDA2];
	keep_worse(&u->four, u->loss ? &four->loss : &four->mean);
	keep_worse(&u->lda, u->loss ? &lda->all : &lda->mean);
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
	return sweep(run, &weibull,
	             &(struct setting){1u << FINECOMB | 1u << FOUR | 1u << LDA2, loss ? 1e-4 : 0.01, 0, 0, false}, 0, 1,
	             put_unknown, u, err);
}

static int run_7a(struct ow_figure_run *run, struct ow_error *err)
{
	struct unknown u;
	char text[80];
	int r = figure_7(run, false, &u, err);
	snprintf(text, sizeof text, "at most %.2f +- %.2f %%, LDA up to %.0f %%", ow_spread_mean(&u.four),
	         ow_spread_error(&u.four), ow_spread_mean(&u.lda));
	return r < 0 ? r
	             : ow_figure_claim(run, "four banks: mean within 1 %, LDA quickly unusable (loss 1 %)", text,
	                               ow_spread_below(&u.four, 1));
}

static int run_7b(struct ow_figure_run *run, struct ow_error *err)
{
	struct unknown u;
	char text[80];
	int r = figure_7(run, true, &u, err);
	snprintf(text, sizeof text, "at most %.0f %%, LDA up to %.0f %%", ow_spread_mean(&u.four),
	         ow_spread_mean(&u.lda));
	return r < 0 ? r
	             : ow_figure_claim(run, "four banks: loss within 60 %, LDA unusable (loss 1e-4)", text,
	                               ow_spread_below(&u.four, 60));
}

/* -- figures 8 and 9: the analysis --------------------------------------------------------------------------------- */

/* F(w; lambda), Poisson. */
static double poisson(double w, double lambda)
{
	return lambda > 0 ? 1 - ow_gamma_p(w + 1, lambda) : 1;
}

/* E[X] / (p G), equation (16): drift and loss are the expected sampled packets of each. */
static double useful_share(double buckets, double stash, double drift, double loss)
{
	double hit = 1 - 1 / buckets;
	return exp(-loss / buckets) *
	       (poisson(stash, drift) + exp(-drift / buckets - stash * log(hit)) * (1 - poisson(stash, hit * drift)));
}

/* The stash with the largest share; draws the curve. */
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

static int run_8(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	enum { S = 160 };
	unsigned near = 0, none = 0, fits = 0, over = 0;
	int r = 0;
	for (int i = 0; i < 12 && !r; i++) {
		double x = 20 * (i % 6 + 1), drift = i < 6 ? 100 : x, loss = i < 6 ? x : 100, best = 0;
		if (i == 10)
			continue; /* both 100: drawn already */
		r = curve_8(run, S, drift, loss, &best);
		if (drift + loss < S) {
			fits++;
			near += fabs(best / drift - 1) < 0.2;
		} else if (drift + loss > S) {
			over++;
			none += best == 0;
		}
	}
	char text[120];
	snprintf(text, sizeof text, "near pR in %u of %u, 0 in %u of %u", near, fits, none, over);
	return r < 0 ? r
	             : ow_figure_claim(run, "best stash about pR if p(R + beta T) < S, else none", text,
	                               near == fits && none == over);
}

/* E[X] in packets at a sampling share, with W = pR or without. */
static double samples_9(double p, double beta, double rho, bool stash)
{
	double drift = p * rho * PACKETS, loss = p * beta * PACKETS, w = stash ? floor(drift) : 0;
	if (w > STORAGE - 2)
		return 0;
	return p * (1 - beta) * PACKETS * useful_share(STORAGE - w, w, drift, loss);
}

static int run_9(struct ow_figure_run *run, struct ow_error *err)
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
		double star = ow_finecomb_sampling(STORAGE, PACKETS, betas[k], rho, true);
		off = fmax(off, 1 - samples_9(star, betas[k], rho, true) / most[1]);
	}
	char text[120];
	snprintf(text, sizeof text, "%.0f %% at loss 1e-4, %.0f %% at 1e-3", gain[0], gain[1]);
	if (!r)
		r = ow_figure_claim(run, "a stash gives 15-30 % more samples than none", text,
		                    gain[0] > 0 && gain[1] > 0);
	snprintf(text, sizeof text, "%.1f %% fewer samples than at the maximum", 100 * off);
	return r < 0 ? r : ow_figure_claim(run, "p* is close to the maximum", text, off < 0.1);
}

/* -- the table of recovery times ----------------------------------------------------------------------------------- */

/* All stash entries drifted; M = (2000 - W)/2, as both points have buckets. The least of some repetitions, ms. */
static int time_recovery(uint32_t stash, uint64_t seed, double *ret_ms, struct ow_error *err)
{
	const struct ow_finecomb_params params = {1, {{(2000 - stash) / 2, UINT32_MAX, stash / OW_STASHES}}};
	struct ow_synopsis *a = NULL, *b = NULL;
	int r = make_finecomb(&params, seed, &a, err);
	if (!r)
		r = make_finecomb(&params, seed, &b, err);
	double least = INFINITY;
	for (uint64_t i = 0; i < stash && !r; i++) {
		struct ow_stamp s = {ow_mix64(seed + i), (int64_t)i};
		if (i < stash / 4)
			ow_finecomb_before((struct ow_finecomb *)b, &s, 1);
		else if (i < stash / 4 * 3)
			b->ops->add(b, &s, 1);
		else
			ow_finecomb_after((struct ow_finecomb *)b, &s, 1);
		if (i < stash / 4 || i >= stash / 4 * 3)
			a->ops->add(a, &s, 1);
	}
	for (int i = 0; i < 20 && !r; i++) {
		struct ow_recovery recovery;
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		r = ow_finecomb_recover((struct ow_finecomb *)a, (struct ow_finecomb *)b, true, &recovery);
		clock_gettime(CLOCK_MONOTONIC, &to);
		if (!r)
			ow_recovery_done(&recovery);
		least = fmin(least,
		             (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6);
	}
	ow_synopsis_free(a);
	ow_synopsis_free(b);
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
			r = ow_figure_claim(run, claim, text, ms <= paper[i].ms);
	}
	char text[40];
	snprintf(text, sizeof text, "%.3f ms", ms);
	return r < 0 ? r : ow_figure_claim(run, "stash of 1000: not in the paper; asked for: 5 ms", text, ms < 5);
}

#define RHO "reordering ratio"
#define ERR "relative error, %"
/* clang-format off */
const struct ow_figure ow_figures_finecomb[] = {
	{"finecomb-4a", "FineComb 4(a): samples", RHO, "samples", true, true, run_4a},
	{"finecomb-4b", "FineComb 4(b): error of the mean, loss 1 %", RHO, ERR, true, true, run_4b},
	{"finecomb-4c", "FineComb 4(c): error of the loss, loss 1e-4", RHO, ERR, true, true, run_4c},
	{"finecomb-5a", "FineComb 5: error of the mean, forward, loss 1e-4", RHO, ERR, true, true, run_5a},
	{"finecomb-5b", "FineComb 5: error of the mean, forward, loss 1e-3", RHO, ERR, true, true, run_5b},
	{"finecomb-5c", "FineComb 5: error of the mean, forward, loss 1e-2", RHO, ERR, true, true, run_5c},
	{"finecomb-5d", "FineComb 5: error of the mean, backward, loss 1e-4", RHO, ERR, true, true, run_5d},
	{"finecomb-5e", "FineComb 5: error of the mean, backward, loss 1e-3", RHO, ERR, true, true, run_5e},
	{"finecomb-5f", "FineComb 5: error of the mean, backward, loss 1e-2", RHO, ERR, true, true, run_5f},
	{"finecomb-6a", "FineComb 6(a): error of the loss, loss 1e-4", RHO, ERR, true, true, run_6a},
	{"finecomb-6b", "FineComb 6(b): error of the loss, 5 to 100 packets lost", RHO, ERR, true, true, run_6b},
	{"finecomb-7a", "FineComb 7(a): error of the mean, rates unknown, loss 1 %", RHO, ERR, true, true, run_7a},
	{"finecomb-7b", "FineComb 7(b): error of the loss, rates unknown, loss 1e-4", RHO, ERR, true, true, run_7b},
	{"finecomb-8", "FineComb 8: share of useful samples, storage 160", "stash entries", "E[X] / pG", false, false, run_8},
	{"finecomb-9", "FineComb 9: samples by sampling share, storage 1000, rho 0.001", "sampling share", "E[X]", true, true,
	 run_9},
	{"finecomb-table", "FineComb, section 6: stash recovery", "stash entries", "ms", false, true, run_table},
	{0},
};
/* clang-format on */
