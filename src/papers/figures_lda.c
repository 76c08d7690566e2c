/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures 4 to 6 of the LDA paper (lda.h): one second of 5 million packets, 0.2 us mean delay. The delays of a trace
 * stay the same while different losses are imposed on it, and LDAs with different seeds record it at the same time;
 * only the delays are stored. As in the paper, alpha = 0.5 and the standard deviation is F - mu^2; the centred one is
 * shown in addition.
 */
#include "base/hash.h"
#include "estimate/lda_estimate.h"
#include "papers/spread.h"
#include "papers/trace.h"
#include "synopsis/lda.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define GAP_NS       200 /* 250 bytes at 10 Gb/s */
#define RUNS_MAX     20
#define PROBE_RATES  4
#define EPISODE      100               /* packets of a loss episode, figure 6 */
#define CONFIDENCE98 4.605170185988092 /* ln(2 / 0.02): solves equation (1) for 98 % */

/* Mean 0.2 us each: scale = 200 ns / Gamma(1 + 1/shape), and 200 ns (shape - 1)/shape. */
static const struct shape {
	const char *name, *centred;
	enum ow_sim_delay_kind kind;
	double shape, scale_ns;
} shapes[] = {
	{"Weibull 0.6", "Weibull 0.6, centred", OW_SIM_WEIBULL, 0.6, 132.93},
	{"Weibull 0.8", "Weibull 0.8, centred", OW_SIM_WEIBULL, 0.8, 176.52},
	{"Pareto 3", "Pareto 3, centred", OW_SIM_PARETO, 3, 133.33},
	{"Pareto 5", "Pareto 5, centred", OW_SIM_PARETO, 5, 160},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static const double losses[] = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2};
#define LOSSES (sizeof losses / sizeof *losses)

/* The results of the LDAs of a point, one entry for each run. */
struct found {
	unsigned runs;
	double mean_ns, stddev_ns; /* the truth */
	uint64_t lost;
	struct ow_estimate paper[RUNS_MAX], centred[RUNS_MAX];
	/* Active probes, figure 6. */
	struct ow_spread probes[PROBE_RATES], probe_mean[PROBE_RATES], probe_stddev[PROBE_RATES];
};

static int trace_make(struct ow_trace *t, const struct shape *shape, size_t packets, uint64_t seed)
{
	struct ow_sim_model model = {.kind = shape->kind, .a = shape->scale_ns, .b = shape->shape};
	return ow_trace_make(t, &model, packets, GAP_NS, seed);
}

/* -- watching a trace ---------------------------------------------------------------------------------------------- */

struct watchers {
	unsigned runs;
	struct ow_lda *a[RUNS_MAX], *b[RUNS_MAX];
};

static void watchers_done(struct watchers *w)
{
	for (unsigned i = 0; i < RUNS_MAX; i++) {
		if (w->a[i])
			ow_synopsis_free(&w->a[i]->base);
		if (w->b[i])
			ow_synopsis_free(&w->b[i]->base);
	}
}

static int watchers_make(struct watchers *w, const struct ow_lda_params *params, unsigned runs, uint64_t seed,
                         struct ow_error *err)
{
	*w = (struct watchers){.runs = runs};
	for (unsigned i = 0; i < runs; i++) {
		int r = ow_lda_create(params, seed + i, &w->a[i], err);
		if (!r)
			r = ow_lda_create(params, seed + i, &w->b[i], err);
		if (r < 0) {
			watchers_done(w);
			return r;
		}
	}
	return 0;
}

static void sent(void *arg, const struct ow_sighting *sightings, size_t count)
{
	struct watchers *w = arg;
	for (unsigned i = 0; i < w->runs; i++)
		ow_lda_ops.add(&w->a[i]->base, sightings, count);
}

static void received(void *arg, const struct ow_sighting *sightings, size_t count)
{
	struct watchers *w = arg;
	for (unsigned i = 0; i < w->runs; i++)
		ow_lda_ops.add(&w->b[i]->base, sightings, count);
}

static int look(const struct ow_trace *t, const struct watchers *w, struct found *found)
{
	found->runs = w->runs;
	for (unsigned i = 0; i < w->runs; i++) {
		struct ow_view a = {.synopsis = &w->a[i]->base, .packets = t->packets};
		struct ow_view b = {.synopsis = &w->b[i]->base, .packets = t->packets - found->lost};
		int r = ow_lda_estimate_with(&a, &b, &(struct ow_lda_options){.paper_stddev = true}, &found->paper[i]);
		if (!r)
			r = ow_lda_estimate(&a, &b, &found->centred[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int watch(const struct ow_trace *t, const struct ow_lda_params *params, const struct ow_sim_loss *loss,
                 unsigned runs, uint64_t seed, uint8_t *missing, struct found *found, struct ow_error *err)
{
	struct watchers w;
	*found = (struct found){0};
	int r = watchers_make(&w, params, runs, ow_mix64(seed), err);
	if (r < 0)
		return r;
	struct ow_trace_watcher watcher = {sent, received, &w, missing};
	struct ow_trace_truth truth;
	ow_trace_pass(t, &(struct ow_trace_faults){.loss = *loss}, ow_mix64(seed + 1), &watcher, &truth);
	found->mean_ns = truth.mean_ns;
	found->stddev_ns = truth.stddev_ns;
	found->lost = truth.lost;
	r = look(t, &w, found);
	watchers_done(&w);
	return r;
}

/* -- numbers of a point -------------------------------------------------------------------------------------------- */

static struct ow_spread mean_error(const struct found *f)
{
	struct ow_spread s = {0};
	for (unsigned i = 0; i < f->runs; i++)
		ow_spread_add_error(&s, &f->paper[i].mean_ns, f->mean_ns);
	return s;
}

static struct ow_spread stddev_error(const struct found *f, bool centred)
{
	struct ow_spread s = {0};
	for (unsigned i = 0; i < f->runs; i++)
		ow_spread_add_error(&s, centred ? &f->centred[i].stddev_ns : &f->paper[i].stddev_ns, f->stddev_ns);
	return s;
}

static struct ow_spread sample_size(const struct found *f)
{
	struct ow_spread s = {0};
	for (unsigned i = 0; i < f->runs; i++)
		ow_spread_add(&s, (double)f->paper[i].useful);
	return s;
}

static size_t packets_of(const struct ow_figure_run *run)
{
	/*
	 * The number of samples depends on the loss ratio and the buckets, not on the number of packets: a fifth is
	 * enough.
	 */
	return ow_figure_quick(run) ? 1000000 : 5000000;
}

static unsigned runs_of(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 10 : RUNS_MAX;
}

/* One bank of 1024 buckets, tuned to the loss. */
static int tune_single(const struct ow_trace *t, double loss, struct ow_lda_params *ret_params, struct ow_error *err)
{
	return ow_lda_tune((double)t->packets, (uint32_t[]){1024}, &loss, 1, OW_LDA_ALPHA_PAPER, ret_params, err);
}

static int watch_single(const struct ow_figure_run *run, const struct ow_trace *t, double loss, uint64_t seed,
                        struct found *found, struct ow_error *err)
{
	struct ow_lda_params params;
	int r = tune_single(t, loss, &params, err);
	return r < 0 ? r : watch(t, &params, &(struct ow_sim_loss){loss, 0}, runs_of(run), seed, NULL, found, err);
}

/* Adds a claim "at most bound" with the worst (or only) point. */
static int claim_below(struct ow_figure_run *run, const char *paper, const struct ow_spread *s, double bound)
{
	return ow_figure_claim(run, paper, ow_spread_below(s, bound), "%.2f +- %.2f %%", ow_spread_mean(s),
	                       ow_spread_error(s));
}

/* -- figure 4: one bank, tuned to the loss ------------------------------------------------------------------------- */

struct claims_4 {
	struct ow_spread low_loss, high_loss, weibull, pareto, weibull_centred, pareto_centred, gain;
};

static void note_4(const struct ow_trace *t, const struct shape *shape, double loss, const struct found *f,
                   struct claims_4 *c)
{
	struct ow_spread mean = mean_error(f), paper = stddev_error(f, false), centred = stddev_error(f, true);
	if (loss <= 1e-3)
		ow_spread_keep_worse(&c->low_loss, &mean);
	if (loss == 0.2)
		ow_spread_keep_worse(&c->high_loss, &mean);
	ow_spread_add(shape->kind == OW_SIM_WEIBULL ? &c->weibull : &c->pareto, ow_spread_mean(&paper));
	ow_spread_add(shape->kind == OW_SIM_WEIBULL ? &c->weibull_centred : &c->pareto_centred,
	              ow_spread_mean(&centred));
	/* Equation (2), where it holds: L >= m. */
	double lost = (double)f->lost, m = 1024;
	struct ow_spread samples = sample_size(f);
	if (lost > m)
		ow_spread_add(&c->gain,
		              ow_spread_mean(&samples) / (0.25 * m / (lost + 1) * ((double)t->packets - lost)));
}

/* Figures 4a and 4c: all shapes, all losses. */
static int sweep_4(struct ow_figure_run *run, bool stddev, struct claims_4 *claims, struct ow_error *err)
{
	int r = 0;
	struct found *found = malloc(sizeof *found);
	struct ow_trace t = {0};
	for (size_t k = 0; k < SHAPES && found && !r; k++) {
		r = trace_make(&t, &shapes[k], packets_of(run), ow_figure_seed(run) + k);
		for (size_t i = 0; i < LOSSES && !r; i++) {
			r = watch_single(run, &t, losses[i], ow_figure_seed(run) + 100 * k + i, found, err);
			if (r < 0)
				break;
			struct ow_spread s = stddev ? stddev_error(found, false) : mean_error(found);
			r = ow_spread_point(run, shapes[k].name, losses[i], &s);
			if (!r && stddev) {
				s = stddev_error(found, true);
				r = ow_spread_point(run, shapes[k].centred, losses[i], &s);
			}
			note_4(&t, &shapes[k], losses[i], found, claims);
			ow_figure_progress(run, ((double)k + (double)(i + 1) / LOSSES) / SHAPES);
		}
		ow_trace_done(&t);
	}
	free(found);
	return found ? r : -ENOMEM;
}

static int run_4a(struct ow_figure_run *run, struct ow_error *err)
{
	struct claims_4 c = {0};
	int r = sweep_4(run, false, &c, err);
	if (!r)
		r = claim_below(run, "mean within 0.3 % at loss up to 0.1 %", &c.low_loss, 0.3);
	if (!r)
		r = claim_below(run, "mean within 4 % at 20 % loss", &c.high_loss, 4);
	return r < 0 ? r
	             : ow_figure_claim(run, "almost twice the samples of the bound (2)", ow_spread_mean(&c.gain) > 1.7,
	                               "%.2f times (e^-a / (1 - a) = 1.21)", ow_spread_mean(&c.gain));
}

static int run_4b(struct ow_figure_run *run, struct ow_error *err)
{
	enum { SHOWN = 5 };
	struct ow_trace t = {0};
	struct found *found = malloc(sizeof *found);
	unsigned outside = 0, all = 0;
	int r = found ? trace_make(&t, &shapes[0], packets_of(run), ow_figure_seed(run)) : -ENOMEM;
	for (size_t i = 0; i < LOSSES && !r; i++) {
		r = watch_single(run, &t, losses[i], ow_figure_seed(run) + i, found, err);
		if (r < 0)
			break;
		double mean = found->mean_ns / 1000, least = INFINITY;
		for (unsigned k = 0; k < found->runs; k++)
			least = fmin(least, (double)found->paper[k].useful);
		/* (1): 2 exp(-e^2 S mu^2 / (2 sigma^2)) = 0.02; relative to the mean, in us. */
		double bound = sqrt(2 * CONFIDENCE98 / least) * found->stddev_ns / 1000;
		r = ow_figure_point(run, "98 % bound (1)", losses[i], mean, mean - bound, mean + bound);
		for (unsigned k = 0; k < found->runs && !r; k++) {
			double y = found->paper[k].mean_ns.value / 1000;
			char name[16];
			snprintf(name, sizeof name, "run %u", k + 1);
			outside += fabs(y - mean) > bound;
			all++;
			if (k < SHOWN)
				r = ow_figure_point(run, name, losses[i], y, y, y);
		}
		ow_figure_progress(run, (double)(i + 1) / LOSSES);
	}
	ow_trace_done(&t);
	free(found);
	return r < 0 ? r
	             : ow_figure_claim(run, "all estimates well within the 98 % bounds", outside * 50 <= all,
	                               "%u of %u outside", outside, all);
}

static int run_4c(struct ow_figure_run *run, struct ow_error *err)
{
	struct claims_4 c = {0};
	int r = sweep_4(run, true, &c, err);
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "standard deviation, Weibull: within 10 %", ow_spread_mean(&c.weibull) <= 10,
	                    "average %.1f %%, at most %.1f %% (centred: %.1f %%, %.1f %%)", ow_spread_mean(&c.weibull),
	                    c.weibull.most, ow_spread_mean(&c.weibull_centred), c.weibull_centred.most);
	return r < 0 ? r
	             : ow_figure_claim(run, "standard deviation, Pareto: 20-50 %",
	                               ow_spread_mean(&c.pareto) >= 10 && ow_spread_mean(&c.pareto) <= 50,
	                               "average %.1f %%, at most %.1f %% (centred: %.1f %%, %.1f %%)",
	                               ow_spread_mean(&c.pareto), c.pareto.most, ow_spread_mean(&c.pareto_centred),
	                               c.pareto_centred.most);
}

/* -- figure 5: several banks for unknown loss ---------------------------------------------------------------------- */

static const struct setup {
	const char *name;
	uint32_t banks, buckets[4];
	double tuned[4];
} setups[] = {
	{"two banks", 2, {512, 512}, {0.005, 0.1}},
	{"three banks", 3, {341, 341, 342}, {0.001, 0.01, 0.1}},
	{"four banks", 4, {256, 256, 256, 256}, {0.001, 0.01, 0.05, 0.1}},
};
#define SETUPS (sizeof setups / sizeof *setups)

enum quantity { SAMPLES, MEAN, STDDEV, CENTRED };

static struct ow_spread spread_of(const struct found *f, enum quantity q)
{
	return q == SAMPLES ? sample_size(f) : q == MEAN ? mean_error(f) : stddev_error(f, q == CENTRED);
}

static int tune_setup(const struct ow_trace *t, size_t k, double loss, struct ow_lda_params *ret_params,
                      struct ow_error *err)
{
	if (k == SETUPS)
		return tune_single(t, loss, ret_params, err);
	return ow_lda_tune((double)t->packets, setups[k].buckets, setups[k].tuned, setups[k].banks, OW_LDA_ALPHA_PAPER,
	                   ret_params, err);
}

/* at: the two-bank LDA at each loss, used by the claims. */
static int sweep_5(struct ow_figure_run *run, enum quantity q, struct ow_spread *at, struct ow_error *err)
{
	struct ow_trace t = {0};
	struct found *found = malloc(sizeof *found);
	int r = found ? trace_make(&t, &shapes[0], packets_of(run), ow_figure_seed(run)) : -ENOMEM;
	for (size_t i = 0; i < LOSSES && !r; i++)
		for (size_t k = 0; k <= SETUPS && !r; k++) {
			struct ow_lda_params params;
			r = tune_setup(&t, k, losses[i], &params, err);
			if (!r)
				r = watch(&t, &params, &(struct ow_sim_loss){losses[i], 0}, runs_of(run),
				          ow_figure_seed(run) + 10 * i + k, NULL, found, err);
			if (r < 0)
				break;
			struct ow_spread s = spread_of(found, q);
			r = ow_spread_point(run, k < SETUPS ? setups[k].name : "one bank, optimal", losses[i], &s);
			if (!k)
				at[i] = s;
			if (!r && !k && q == STDDEV) {
				s = spread_of(found, CENTRED);
				r = ow_spread_point(run, "two banks, centred", losses[i], &s);
			}
			ow_figure_progress(run, ((double)i + (double)(k + 1) / (SETUPS + 1)) / LOSSES);
		}
	ow_trace_done(&t);
	free(found);
	return r;
}

/* The two-bank LDA at losses 1e-4, 1e-3, 0.01, 0.1, 0.2, as text. */
static const size_t shown[] = {0, 3, 6, 9, 10};
static int claim_5(struct ow_figure_run *run, const char *paper, const struct ow_spread *at, const char *unit,
                   bool agrees)
{
	char text[160];
	int n = 0;
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%.3g", i ? ", " : "",
		              ow_spread_mean(&at[shown[i]]));
	snprintf(text + n, sizeof text - (size_t)n, "%s", unit);
	return ow_figure_claim(run, paper, agrees, "%s", text);
}

static int run_5a(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_spread at[LOSSES] = {{0}};
	int r = sweep_5(run, SAMPLES, at, err);
	return r < 0 ? r
	             : claim_5(run, "two banks: fewer samples than optimal, not by far (loss 0.01 % ... 20 %)", at, "",
	                       true);
}

static int run_5b(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_spread at[LOSSES] = {{0}};
	int r = sweep_5(run, MEAN, at, err);
	return r < 0 ? r
	             : claim_5(run, "two banks: mean comparable over loss 0.01 % ... 20 %", at, " %",
	                       ow_spread_below(&at[LOSSES - 1], 6));
}

static int run_5c(struct ow_figure_run *run, struct ow_error *err)
{
	struct ow_spread at[LOSSES] = {{0}};
	int r = sweep_5(run, STDDEV, at, err);
	return r < 0 ? r
	             : claim_5(run, "two banks: standard deviation over loss 0.01 % ... 20 %", at, " %",
	                       ow_spread_below(&at[LOSSES - 1], 25));
}

/* -- figure 6: active probes --------------------------------------------------------------------------------------- */

static const double probe_rate[PROBE_RATES] = {1, 7, 144, 10000}; /* per interval of a second */
static const char *const probe_name[PROBE_RATES] = {"probes, 1 Hz", "probes, 7 Hz", "probes, 144 Hz",
                                                    "probes, 10000 Hz"};

/*
 * A Poisson number of probes at random times. A probe is lost if the packet at that time was lost; it has its own
 * delay.
 */
static void probe(const struct ow_trace *t, const uint8_t *missing, unsigned k, struct ow_random *random,
                  struct found *f)
{
	double sum = 0, squares = 0, got = 0, at = ow_random_exponential(random) / probe_rate[k];
	for (; at < 1; at += ow_random_exponential(random) / probe_rate[k]) {
		if (missing[(size_t)(at * (double)t->packets)])
			continue;
		double delay = (double)ow_delay_sampler_next(&t->sampler, random);
		got++;
		sum += delay;
		squares += delay * delay;
	}
	double mean = got > 0 ? sum / got : 0;
	double stddev = got > 1 ? sqrt(fmax(0, squares - mean * sum) / (got - 1)) : 0;
	/* If nothing was measured, the error is 100 %, as in the paper's figure. */
	ow_spread_add(&f->probes[k], got);
	ow_spread_add(&f->probe_mean[k], 100 * fabs(mean - f->mean_ns) / f->mean_ns);
	ow_spread_add(&f->probe_stddev[k], 100 * fabs(stddev - f->stddev_ns) / f->stddev_ns);
}

static int points_6(struct ow_figure_run *run, enum quantity q, double loss, const struct found *f,
                    struct ow_spread *ret_lda)
{
	*ret_lda = spread_of(f, q);
	int r = ow_spread_point(run, "LDA, two banks", loss, ret_lda);
	for (unsigned k = 0; k < PROBE_RATES && !r; k++)
		r = ow_spread_point(run, probe_name[k], loss,
		                    q == SAMPLES ? &f->probes[k]
		                    : q == MEAN  ? &f->probe_mean[k]
		                                 : &f->probe_stddev[k]);
	if (!r && q == STDDEV) {
		struct ow_spread centred = spread_of(f, CENTRED);
		r = ow_spread_point(run, "LDA, two banks, centred", loss, &centred);
	}
	return r;
}

struct claims_6 {
	struct ow_spread lda[LOSSES], probes[LOSSES][PROBE_RATES];
};

static int sweep_6(struct ow_figure_run *run, enum quantity q, struct claims_6 *claims, struct ow_error *err)
{
	struct ow_trace t = {0};
	struct found *found = calloc(1, sizeof *found);
	uint8_t *missing = malloc(packets_of(run));
	int r = found && missing ? trace_make(&t, &shapes[0], packets_of(run), ow_figure_seed(run)) : -ENOMEM;
	for (size_t i = 0; i < LOSSES && !r; i++) {
		struct ow_lda_params params;
		r = tune_setup(&t, 0, losses[i], &params, err);
		if (!r)
			r = watch(&t, &params, &(struct ow_sim_loss){losses[i], EPISODE}, runs_of(run),
			          ow_figure_seed(run) + i, missing, found, err);
		if (r < 0)
			break;
		struct ow_random random;
		ow_random_seed(&random, ow_mix64(ow_figure_seed(run) + 1000 + i));
		for (unsigned k = 0; k < PROBE_RATES; k++)
			for (unsigned n = 0; n < found->runs; n++)
				probe(&t, missing, k, &random, found);
		r = points_6(run, q, losses[i], found, &claims->lda[i]);
		for (unsigned k = 0; k < PROBE_RATES; k++)
			claims->probes[i][k] = q == STDDEV ? found->probe_stddev[k] : found->probe_mean[k];
		ow_figure_progress(run, (double)(i + 1) / LOSSES);
	}
	ow_trace_done(&t);
	free(missing);
	free(found);
	return r;
}

static int run_6a(struct ow_figure_run *run, struct ow_error *err)
{
	struct claims_6 c = {0};
	int r = sweep_6(run, SAMPLES, &c, err);
	return r < 0 ? r
	             : claim_5(run, "far more samples than probes, falling with loss (0.01 % ... 20 %)", c.lda, "",
	                       true);
}

static int run_6b(struct ow_figure_run *run, struct ow_error *err)
{
	struct claims_6 c = {0};
	int r = sweep_6(run, MEAN, &c, err);
	if (r < 0)
		return r;
	r = claim_5(run, "LDA: 0.2-4 % (loss 0.01 % ... 10 %, and 20 %)", c.lda, " %",
	            ow_spread_below(&c.lda[LOSSES - 2], 4));
	/* At 1 % loss. */
	double few = ow_spread_mean(&c.probes[6][1]), fair = ow_spread_mean(&c.probes[6][2]),
	       lda = ow_spread_mean(&c.lda[6]);
	return r < 0 ? r
	             : ow_figure_claim(run, "probes at 7 Hz almost 100 %, at 144 Hz 11 %, LDA below 1 % (loss 1 %)",
	                               few > 10 * lda && fair > 5 * lda, "%.0f %% and %.0f %% against %.2f %%", few,
	                               fair, lda);
}

static int run_6c(struct ow_figure_run *run, struct ow_error *err)
{
	struct claims_6 c = {0};
	int r = sweep_6(run, STDDEV, &c, err);
	if (r < 0)
		return r;
	struct ow_spread lda = {0}, probes = {0};
	for (size_t i = 0; losses[i] < 0.05; i++) {
		ow_spread_add(&lda, ow_spread_mean(&c.lda[i]));
		ow_spread_add(&probes, ow_spread_mean(&c.probes[i][2]));
	}
	return ow_figure_claim(run, "LDA 3-9 % against 15 % at 144 Hz (loss below 5 %)",
	                       ow_spread_mean(&lda) < ow_spread_mean(&probes), "%.1f %% on average against %.1f %%",
	                       ow_spread_mean(&lda), ow_spread_mean(&probes));
}

#define LOSS_LABEL "loss ratio"
const struct ow_figure ow_figures_lda[] = {
	{"lda-4a", "LDA 4(a): relative error of the mean, one bank tuned to the loss", LOSS_LABEL, "relative error, %",
         true, true, run_4a},
	{"lda-4b", "LDA 4(b): estimated mean and 98 % bounds", LOSS_LABEL, "mean delay, us", true, false, run_4b},
	{"lda-4c", "LDA 4(c): relative error of the standard deviation", LOSS_LABEL, "relative error, %", true, true,
         run_4c},
	{"lda-5a", "LDA 5(a): samples of several banks", LOSS_LABEL, "samples", true, true, run_5a},
	{"lda-5b", "LDA 5(b): relative error of the mean, several banks", LOSS_LABEL, "relative error, %", true, true,
         run_5b},
	{"lda-5c", "LDA 5(c): relative error of the standard deviation, several banks", LOSS_LABEL, "relative error, %",
         true, true, run_5c},
	{"lda-6a", "LDA 6(a): samples, LDA and active probes", LOSS_LABEL, "samples", true, true, run_6a},
	{"lda-6b", "LDA 6(b): relative error of the mean, LDA and active probes", LOSS_LABEL, "relative error, %", true,
         true, run_6b},
	{"lda-6c", "LDA 6(c): relative error of the standard deviation, LDA and active probes", LOSS_LABEL,
         "relative error, %", true, true, run_6c},
	{0},
};
