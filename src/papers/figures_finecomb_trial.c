/* SPDX-License-Identifier: Apache-2.0 */
/* A point of FineComb's figures: structures that record a trace with loss and reordering, and their errors. */
#include "papers/figures_finecomb.h"

#include "base/hash.h"
#include "estimate/finecomb_estimate.h"
#include "estimate/lda_estimate.h"
#include "reconcile/finecomb_recover.h"
#include "synopsis/finecomb.h"
#include "synopsis/lda.h"
#include <errno.h>
#include <stdlib.h>

#define GAP_NS   200
#define RUNS_MAX 20

const struct ow_sim_model ow_comb_weibull = {.kind = OW_SIM_WEIBULL, .a = 6646.3, .b = 0.6}; /* mean 10 us */
const struct ow_sim_model ow_comb_pareto = {.kind = OW_SIM_PARETO, .a = 6666.7, .b = 3};

/* Reordering ratios: a quarter of each drifts over one boundary. With --quick, every other one. */
static const double rhos[] = {OW_COMB_LEAST_RHO, 1.2e-5, 4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3};
#define RHOS (sizeof rhos / sizeof *rhos)

static unsigned runs_of(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 6 : RUNS_MAX;
}

static size_t step_of(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 2 : 1;
}

/* Runs of one structure with different seeds. */
struct group {
	bool used;
	struct ow_synopsis *a[RUNS_MAX], *b[RUNS_MAX];
};

struct rig {
	unsigned runs;
	struct group group[OW_COMB_KINDS];
	uint64_t sent, received;
	double p, buckets, stash; /* of FINECOMB */
};

static void rig_done(struct rig *rig)
{
	for (int k = 0; k < OW_COMB_KINDS; k++)
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

/* The known ranges of loss and reordering: rates for one bank, ranges for several. */
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
	struct ow_finecomb_params finecomb[OW_COMB_KINDS];
	struct ow_lda_params lda[OW_COMB_KINDS];
};

static int tune(double beta, double rho, struct tuning *t, struct ow_error *err)
{
	int r = ow_finecomb_tune(OW_COMB_PACKETS, OW_COMB_STORAGE, beta, rho, true, 0, &t->finecomb[OW_COMB_FINECOMB],
	                         err);
	if (!r)
		r = ow_finecomb_tune(OW_COMB_PACKETS, OW_COMB_STORAGE, beta, rho, false, 0, &t->finecomb[OW_COMB_MINUS],
		                     err);
	if (!r)
		r = ow_finecomb_tune_four(OW_COMB_PACKETS, OW_COMB_STORAGE, range, range, 0, &t->finecomb[OW_COMB_FOUR],
		                          err);
	if (r < 0)
		return r;
	uint32_t one = lda_buckets(&t->finecomb[OW_COMB_FINECOMB]), half = lda_buckets(&t->finecomb[OW_COMB_FOUR]) / 2;
	r = ow_lda_tune(OW_COMB_PACKETS, &one, &beta, 1, OW_LDA_ALPHA_PAPER, &t->lda[OW_COMB_LDA], err);
	return r < 0 ? r
	             : ow_lda_tune(OW_COMB_PACKETS, (uint32_t[]){half, half}, range, 2, OW_LDA_ALPHA_PAPER,
	                           &t->lda[OW_COMB_LDA2], err);
}

static int rig_make(struct rig *rig, unsigned kinds, unsigned runs, double beta, double rho, uint64_t seed,
                    struct ow_error *err)
{
	struct tuning t;
	*rig = (struct rig){.runs = runs};
	int r = tune(beta, rho, &t, err);
	for (int k = 0; k < OW_COMB_KINDS && !r; k++) {
		struct group *g = &rig->group[k];
		g->used = kinds >> k & 1;
		for (unsigned i = 0; i < 2 * runs && g->used && !r; i++) {
			struct ow_synopsis **s = i < runs ? &g->a[i] : &g->b[i - runs];
			uint64_t own = ow_mix64(seed) + i % runs;
			r = k == OW_COMB_LDA || k == OW_COMB_LDA2 ? make_lda(&t.lda[k], own, s, err)
			                                          : make_finecomb(&t.finecomb[k], own, s, err);
		}
	}
	const struct ow_finecomb_bank *bank = &t.finecomb[OW_COMB_FINECOMB].bank[0];
	rig->p = ((double)bank->limit + 1) * 0x1p-32;
	rig->buckets = bank->buckets;
	rig->stash = OW_STASHES * (double)bank->stash;
	if (r < 0)
		rig_done(rig);
	return r;
}

static void rig_sent(void *arg, const struct ow_sighting *sightings, size_t count)
{
	struct rig *rig = arg;
	rig->sent += count;
	for (int k = 0; k < OW_COMB_KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used; i++)
			rig->group[k].a[i]->ops->add(rig->group[k].a[i], sightings, count);
}

static void rig_received(void *arg, const struct ow_sighting *sightings, size_t count)
{
	struct rig *rig = arg;
	rig->received += count;
	for (int k = 0; k < OW_COMB_KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used; i++)
			rig->group[k].b[i]->ops->add(rig->group[k].b[i], sightings, count);
}

/* -- a point ------------------------------------------------------------------------------------------------------- */

/* The loss of the LDA paper: the difference of all counters, of the sampled packets. */
static void add_lda_loss(struct ow_spread *s, const struct ow_synopsis *a, const struct ow_synopsis *b, double truth)
{
	const struct ow_lda *x = (const struct ow_lda *)a, *y = (const struct ow_lda *)b;
	double sent = 0, lost = 0;
	for (uint32_t i = 0; i < x->first[x->params.banks]; i++) {
		sent += (double)x->bucket[i].packets;
		lost += (double)x->bucket[i].packets - (double)y->bucket[i].packets;
	}
	if (sent > 0)
		ow_spread_add(s, 100 * fabs(lost / sent * OW_COMB_PACKETS - truth) / truth);
}

static int evaluate_lda(const struct ow_view *a, const struct ow_view *b, const struct ow_trace_truth *truth,
                        struct ow_comb_outcome *o, struct ow_comb_outcome *plus)
{
	struct ow_estimate e;
	int r = ow_lda_estimate(a, b, &e);
	if (r < 0)
		return r;
	ow_spread_add(&o->samples, (double)e.useful);
	ow_spread_add_error(&o->mean, &e.mean_ns, truth->mean_ns);
	ow_spread_add_error(&o->ours, &e.lost, (double)truth->lost);
	add_lda_loss(&o->all, a->synopsis, b->synopsis, (double)truth->lost);
	r = ow_lda_estimate_with(a, b, &(struct ow_lda_options){.plus = true}, &e);
	if (!r && plus)
		ow_spread_add_error(&plus->mean, &e.mean_ns, truth->mean_ns);
	return r;
}

/* The loss that one of the four banks is tuned to, from its sampling share. */
static double tuned_loss(const struct ow_finecomb_bank *bank)
{
	for (int i = 0; i < 4; i++)
		if (ow_lda_limit(ow_finecomb_sampling(OW_COMB_STORAGE / 4, OW_COMB_PACKETS, range[i >> 1], range[i & 1],
		                                      true)) == bank->limit)
			return range[i >> 1];
	return range[0];
}

/*
 * Section 3.5: of the banks' estimates with C_A >= C_B, the one that is closest to the loss that its bank is tuned to.
 */
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
                             enum ow_comb_kind kind, struct ow_comb_outcome *o)
{
	struct ow_estimate e;
	struct ow_finecomb_options options = {.no_stash = kind == OW_COMB_MINUS};
	double lost = (double)truth->lost, ratio = 0;
	int r = ow_finecomb_estimate_with(a, b, &options, &e);
	if (r < 0)
		return r;
	ow_spread_add(&o->samples, (double)e.useful);
	ow_spread_add_error(&o->mean, &e.mean_ns, truth->mean_ns);
	ow_spread_add_error(&o->ours, &e.lost, lost);
	options.paper_loss = true;
	r = ow_finecomb_estimate_with(a, b, &options, &e);
	if (!r)
		ow_spread_add_error(&o->all, &e.lost, lost);
	options.paper_where = true;
	if (!r && kind == OW_COMB_FOUR) {
		r = closest_bank((const struct ow_finecomb *)a->synopsis, (const struct ow_finecomb *)b->synopsis,
		                 &ratio);
		if (!r)
			ow_spread_add(&o->loss, 100 * fabs(ratio * OW_COMB_PACKETS - lost) / lost);
	} else if (!r) {
		r = ow_finecomb_estimate_with(a, b, &options, &e);
		if (!r)
			ow_spread_add_error(&o->loss, &e.lost, lost);
	}
	return r;
}

static int evaluate(const struct rig *rig, struct ow_comb_point *point)
{
	int r = 0;
	for (int k = 0; k < OW_COMB_KINDS; k++)
		for (unsigned i = 0; i < rig->runs && rig->group[k].used && !r; i++) {
			struct ow_view a = {.synopsis = rig->group[k].a[i], .packets = rig->sent};
			struct ow_view b = {.synopsis = rig->group[k].b[i], .packets = rig->received};
			r = k == OW_COMB_LDA || k == OW_COMB_LDA2
			            ? evaluate_lda(&a, &b, &point->truth, &point->of[k],
			                           k == OW_COMB_LDA ? &point->plus : NULL)
			            : evaluate_finecomb(&a, &b, &point->truth, (enum ow_comb_kind)k, &point->of[k]);
		}
	return r;
}

static int measure(const struct ow_figure_run *run, const struct ow_trace *trace, const struct ow_comb_setting *s,
                   uint64_t seed, struct ow_comb_point *ret_point, struct ow_error *err)
{
	struct rig *rig = malloc(sizeof *rig);
	if (!rig)
		return -ENOMEM;
	*ret_point = (struct ow_comb_point){0};
	int r = rig_make(rig, s->kinds, runs_of(run), s->beta, s->rho, seed, err);
	if (!r) {
		uint64_t x = (uint64_t)(s->rho * OW_COMB_PACKETS / OW_STASHES + 0.5);
		struct ow_trace_faults faults = {.loss = {s->beta, 0},
		                                 .lost = s->lost,
		                                 .start = s->backward ? 0 : x,
		                                 .end = s->backward ? x : 0};
		struct ow_trace_watcher watcher = {rig_sent, rig_received, rig, NULL};
		ow_trace_pass(trace, &faults, ow_mix64(seed + 1), &watcher, &ret_point->truth);
		r = evaluate(rig, ret_point);
		ret_point->expected = ow_finecomb_samples(rig->buckets, rig->stash, OW_COMB_PACKETS, s->beta,
		                                          s->rho / OW_STASHES, rig->p);
		rig_done(rig);
	}
	free(rig);
	return r;
}

int ow_comb_sweep(struct ow_figure_run *run, const struct ow_sim_model *model, const struct ow_comb_setting *setting,
                  double from, double to, ow_comb_put put, void *arg, struct ow_error *err)
{
	struct ow_trace trace;
	struct ow_comb_point *point = malloc(sizeof *point);
	if (!point)
		return -ENOMEM;
	int r = ow_trace_make(&trace, model, OW_COMB_PACKETS, GAP_NS, ow_figure_seed(run));
	for (size_t i = 0; i < RHOS && !r; i += step_of(run)) {
		struct ow_comb_setting s = *setting;
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
