/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the RDA paper about delays: 7 and 8, 6 to 11 of the supplement, and Table I. As in the paper, all synopses
 * have the same number of buckets. The paper's FineComb is ideal: it knows which packets are reordered and removes
 * them, and it loses the buckets that lost a packet. That equals an RDA of one bank in which reordered packets were
 * never counted. RDA is run as published (2 banks, ids without check, collapsed pairs) and corrected (3 banks, checked
 * ids, centred).
 */
#include "papers/figures_rda.h"

#include "base/hash.h"
#include "estimate/lda_estimate.h"
#include "estimate/rda_estimate.h"
#include "papers/spread.h"
#include "papers/stream.h"
#include "synopsis/lda.h"
#include "synopsis/rda.h"
#include <errno.h>
#include <stdio.h>

#define BLOCK 4096
#define RUNS  10    /* as in the paper */
#define EXACT 1e-12 /* a relative error of rounding */
#define SCALE 6.647 /* us, and */
#define SHAPE 0.7   /* the paper's defaults */

enum method { LDA, FINECOMB, RDA, CORRECTED, METHODS };
static const char *const method_name[METHODS] = {"LDA", "FineComb, ideal", "RDA as published", "RDA corrected"};

/* The synopses of one method at two points. */
struct two {
	struct ow_synopsis *a, *b;
	uint64_t packets_a, packets_b; /* packets that were counted, after sampling */
};

static void two_done(struct two *two)
{
	ow_synopsis_free(two->a);
	ow_synopsis_free(two->b);
}

static int two_rda(const struct ow_rda_params *params, uint64_t seed, struct two *two)
{
	int r = ow_rda_create(params, seed, &two->a);
	return r < 0 ? r : ow_rda_create(params, seed, &two->b);
}

static int two_lda(uint32_t buckets, double lost, uint64_t seed, struct two *two)
{
	struct ow_lda_params params = {1,
	                               {{buckets, ow_lda_limit(ow_lda_sampling(buckets, lost, OW_LDA_ALPHA_PAPER))}}};
	struct ow_lda *a, *b;
	int r = ow_lda_create(&params, seed, &a, NULL);
	if (r < 0)
		return r;
	two->a = &a->base;
	r = ow_lda_create(&params, seed, &b, NULL);
	if (!r)
		two->b = &b->base;
	return r;
}

/* Adds the packets whose hash is below the share p. Returns their number. */
static uint64_t add_share(struct ow_synopsis *s, const struct ow_sighting *p, size_t count, double share, uint64_t seed)
{
	if (share >= 1) {
		s->ops->add(s, p, count);
		return count;
	}
	struct ow_sighting block[BLOCK];
	size_t in = 0;
	uint64_t limit = (uint64_t)(share * 0x1p32), key = ow_mix64(seed), all = 0;
	for (size_t i = 0; i < count; i++) {
		if (ow_mix64(p[i].id ^ key) >> 32 >= limit)
			continue;
		block[in++] = p[i];
		all++;
		if (in == BLOCK || i + 1 == count) {
			s->ops->add(s, block, in);
			in = 0;
		}
	}
	s->ops->add(s, block, in);
	return all;
}

/* B's packets without those that A did not send, which are the first and the last ones. */
static void common_of(const struct ow_stream_params *params, const struct ow_made_stream *stream,
                      const struct ow_sighting **ret_b, size_t *ret_bs)
{
	*ret_b = stream->b + params->reorder[0];
	*ret_bs = stream->bs - params->reorder[0] - params->reorder[3];
}

/* The estimate of a method with `buckets` buckets for the stream. */
static int measure(enum method method, const struct ow_stream_params *params, const struct ow_made_stream *stream,
                   uint32_t buckets, uint64_t seed, struct ow_estimate *ret_estimate)
{
	struct two two = {0};
	double lost = (double)stream->truth.lost;
	const struct ow_sighting *b = stream->b;
	size_t bs = stream->bs;
	double share = 1;
	int r;
	if (method == LDA)
		r = two_lda(buckets, lost, seed, &two);
	else if (method == FINECOMB)
		r = two_rda(&(struct ow_rda_params){1, buckets, false}, seed, &two);
	else if (method == RDA)
		r = two_rda(&(struct ow_rda_params){2, buckets / 2, false}, seed, &two);
	else
		r = two_rda(&(struct ow_rda_params){3, buckets / 3, true}, seed, &two);
	if (!r) {
		if (method == FINECOMB) {
			common_of(params, stream, &b, &bs);
			share = fmin(1, buckets / (lost + 1));
		}
		two.packets_a = add_share(two.a, stream->a, stream->as, share, seed);
		two.packets_b = add_share(two.b, b, bs, share, seed);
		bool caches = method == RDA || method == CORRECTED;
		struct ow_view va = {two.a, two.packets_a, caches ? stream->a : NULL, caches ? stream->as : 0};
		struct ow_view vb = {two.b, two.packets_b, caches ? stream->b : NULL, caches ? stream->bs : 0};
		struct ow_rda_estimate_options options = {.published = method != CORRECTED};
		if (method == RDA)
			options.peel = (struct ow_rda_peel_options){
				.published = true, .steps = 4 * (stream->truth.lost + stream->truth.extra) + 100};
		r = method == LDA ? ow_lda_estimate_with(&va, &vb, &(struct ow_lda_options){.paper_stddev = true},
		                                         ret_estimate)
		                  : ow_rda_estimate_with(&va, &vb, &options, ret_estimate);
	}
	two_done(&two);
	return r;
}

struct errors {
	struct ow_spread mean, stddev, useful; /* of each method; relative, relative, % */
};

static void note(struct errors *e, const struct ow_made_stream *stream, const struct ow_estimate *estimate)
{
	const struct ow_stream_truth *t = &stream->truth;
	if (estimate->mean_ns.status != OW_VALUE_NONE) {
		double error = fabs(estimate->mean_ns.value - t->mean_ns) / t->mean_ns;
		ow_spread_add(&e->mean, error < EXACT ? 0 : error);
	}
	if (estimate->stddev_ns.status != OW_VALUE_NONE)
		ow_spread_add(&e->stddev, fabs(estimate->stddev_ns.value - t->stddev_ns) / t->stddev_ns);
	ow_spread_add(&e->useful, 100 * (double)estimate->useful / (double)t->common);
}

/* Makes the stream of a run: one second, without delays. */
static int make_stream(const struct ow_stream_params *params, unsigned run, struct ow_stream_params *ret_mine,
                       struct ow_made_stream *ret_stream, struct ow_error *err)
{
	*ret_mine = *params;
	ret_mine->seed = ow_mix64(params->seed + run);
	ret_mine->interval_ns = 1000000000;
	ret_mine->no_delays = true;
	return ow_stream_make(ret_mine, ret_stream, err);
}

/* Runs all methods on `runs` streams. buckets: 0 = four times the differences. */
static int try_methods(const struct ow_stream_params *params, uint32_t buckets, unsigned runs,
                       struct errors *ret_errors, struct ow_error *err)
{
	for (int m = 0; m < METHODS; m++)
		ret_errors[m] = (struct errors){0};
	int r = 0;
	for (unsigned i = 0; i < runs && !r; i++) {
		struct ow_stream_params mine;
		struct ow_made_stream stream;
		r = make_stream(params, i, &mine, &stream, err);
		if (r < 0)
			break;
		uint64_t four = 4 * (stream.truth.lost + stream.truth.extra);
		for (int m = 0; m < METHODS && !r; m++) {
			struct ow_estimate estimate;
			r = measure((enum method)m, &mine, &stream, buckets ? buckets : (uint32_t)four, mine.seed,
			            &estimate);
			if (!r)
				note(&ret_errors[m], &stream, &estimate);
		}
		ow_stream_done(&stream);
	}
	return r;
}

static int method_points(struct ow_figure_run *run, const char *prefix, double x, const struct errors *errors,
                         size_t offset)
{
	int r = 0;
	for (int m = 0; m < METHODS && !r; m++) {
		char name[80];
		snprintf(name, sizeof name, "%s%s", prefix, method_name[m]);
		r = ow_spread_point(run, name, x, (const struct ow_spread *)((const char *)&errors[m] + offset));
	}
	return r;
}
#define MEAN   offsetof(struct errors, mean)
#define STDDEV offsetof(struct errors, stddev)
#define USEFUL offsetof(struct errors, useful)

/* -- figures 7 and 8: 5000 buckets, unknown differences
 * ---------------------------------------------------------------- */

static uint64_t packets_of(const struct ow_figure_run *run)
{
	return ow_figure_part(run) == OW_RDA_UNIV ? OW_RDA_UNIV_PACKETS : OW_RDA_DC_PACKETS;
}

int ow_figure_rda_unknown_difference(struct ow_figure_run *run, struct ow_error *err)
{
	uint64_t packets = packets_of(run);
	static const unsigned differences[] = {100, 500, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10000};
	enum { POINTS = sizeof differences / sizeof *differences };
	bool quick = ow_figure_quick(run);
	struct errors at[POINTS][METHODS];
	int r = 0;
	for (unsigned i = 0; i < POINTS && !r; i++) {
		unsigned d = differences[i];
		struct ow_stream_params params = {.packets = quick ? packets / 10 : packets,
		                                  .delay = "weibull:6.647us,0.7",
		                                  .reorder = {d / 4, 0, 0, d / 4},
		                                  .seed = ow_figure_seed(run) + 1000 * i + packets};
		params.loss = d / 2. / (double)params.packets;
		r = try_methods(&params, 5000, quick ? 4 : RUNS, at[i], err);
		if (!r)
			r = method_points(run, "mean: ", d, at[i], MEAN);
		if (!r)
			r = method_points(run, "stddev: ", d, at[i], STDDEV);
		ow_figure_progress(run, (i + 1.) / POINTS);
	}
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "mean exact to about 2000 differences, then a sharp transition to 1e-4",
	                    ow_spread_mean(&at[4][RDA].mean) < 1e-4 && ow_spread_mean(&at[9][RDA].mean) > 1e-5,
	                    "%.1g at 1000, %.1g at 2000, %.1g at 7500; corrected %.1g at 4000",
	                    ow_spread_mean(&at[2][RDA].mean), ow_spread_mean(&at[4][RDA].mean),
	                    ow_spread_mean(&at[9][RDA].mean), ow_spread_mean(&at[7][CORRECTED].mean));
	if (!r)
		r = ow_figure_claim(run, "mean over 10 orders of magnitude better than FineComb and LDA below 2000",
		                    ow_spread_mean(&at[1][RDA].mean) < 1e-10 * ow_spread_mean(&at[1][FINECOMB].mean),
		                    "at 500: %.1g, FineComb %.1g, LDA %.1g", ow_spread_mean(&at[1][RDA].mean),
		                    ow_spread_mean(&at[1][FINECOMB].mean), ow_spread_mean(&at[1][LDA].mean));
	return r < 0 ? r
	             : ow_figure_claim(run, "stddev about 0.5 orders of magnitude better than FineComb's",
	                               3 * ow_spread_mean(&at[2][RDA].stddev) < ow_spread_mean(&at[2][FINECOMB].stddev),
	                               "at 1000: %.1f %% against %.1f %% (LDA %.0f %%)",
	                               100 * ow_spread_mean(&at[2][RDA].stddev),
	                               100 * ow_spread_mean(&at[2][FINECOMB].stddev),
	                               100 * ow_spread_mean(&at[2][LDA].stddev));
}

/* -- supplement: four buckets a difference. A tenth of the packets: with as many differences, only ratios matter.
 * ------- */

static struct ow_stream_params scaled(const struct ow_figure_run *run, uint64_t packets, double loss, double reorder,
                                      uint64_t seed)
{
	struct ow_stream_params params = {.packets = packets / (ow_figure_quick(run) ? 100 : 10),
	                                  .delay = "weibull:6.647us,0.7",
	                                  .loss = loss,
	                                  .seed = ow_figure_seed(run) + seed + packets};
	params.reorder[0] = params.reorder[3] = (uint64_t)(reorder * (double)params.packets / 2);
	return params;
}

static unsigned scaled_runs(const struct ow_figure_run *run)
{
	return ow_figure_quick(run) ? 4 : RUNS;
}

/*
 * Packets in buckets with the same content at both points, whether or not the method knows it: LDA's counters can agree
 * although the packets differ.
 */
static int truly_useful(const struct ow_stream_params *params, unsigned runs, struct ow_spread *ret_share,
                        struct ow_error *err)
{
	*ret_share = (struct ow_spread){0};
	int r = 0;
	for (unsigned i = 0; i < runs && !r; i++) {
		struct ow_stream_params mine;
		struct ow_made_stream stream;
		r = make_stream(params, i, &mine, &stream, err);
		if (r < 0)
			break;
		struct two two = {0};
		uint32_t cells = (uint32_t)(4 * (stream.truth.lost + stream.truth.extra));
		r = two_rda(&(struct ow_rda_params){1, cells, false}, mine.seed, &two);
		if (!r) {
			two.a->ops->add(two.a, stream.a, stream.as);
			two.b->ops->add(two.b, stream.b, stream.bs);
			const struct ow_rda_cell *x = ow_rda_of(two.a)->cell, *y = ow_rda_of(two.b)->cell;
			double useful = 0;
			for (uint32_t c = 0; c < cells; c++)
				useful += x[c].id == y[c].id && x[c].count == y[c].count ? x[c].count : 0;
			ow_spread_add(ret_share, 100 * useful / (double)stream.truth.common);
		}
		two_done(&two);
		ow_stream_done(&stream);
	}
	return r;
}

int ow_figure_rda_useful_samples(struct ow_figure_run *run, struct ow_error *err)
{
	uint64_t packets = packets_of(run);
	static const double rates[] = {0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3};
	enum { POINTS = sizeof rates / sizeof *rates };
	struct ow_spread finecomb[2][POINTS], least = {0}, lda = {0};
	int r = 0;
	for (unsigned i = 0; i < 2 * POINTS && !r; i++) {
		bool loss = i < POINTS;
		double rate = rates[i % POINTS];
		struct ow_stream_params params = scaled(run, packets, loss ? rate : 0.1, loss ? 0.1 : rate, i);
		struct errors e[METHODS];
		const char *prefix = loss ? "loss: " : "reordering: ";
		r = try_methods(&params, 0, scaled_runs(run), e, err);
		if (!r)
			r = truly_useful(&params, scaled_runs(run), &e[LDA].useful, err);
		if (!r)
			r = method_points(run, prefix, rate, e, USEFUL);
		finecomb[!loss][i % POINTS] = e[FINECOMB].useful;
		ow_spread_add(&least, 100 - ow_spread_mean(&e[RDA].useful));
		ow_spread_add(&lda, ow_spread_mean(&e[LDA].useful));
		ow_figure_progress(run, (i + 1.) / (2 * POINTS));
	}
	if (r < 0)
		return r;
	r = ow_figure_claim(run, "RDA: the percentage of useful samples reaches one in most cases", least.most < 1,
	                    "%.3f %% at least", 100 - least.most);
	double from = ow_spread_mean(&finecomb[0][0]), to = ow_spread_mean(&finecomb[0][POINTS - 1]);
	if (!r)
		r = ow_figure_claim(run, "FineComb: falls with loss, rises with reordering",
		                    from > to &&
		                            ow_spread_mean(&finecomb[1][0]) < ow_spread_mean(&finecomb[1][POINTS - 1]),
		                    "%.0f to %.0f %% with loss 0.01 to 0.3; %.0f to %.0f %% with reordering", from, to,
		                    ow_spread_mean(&finecomb[1][0]), ow_spread_mean(&finecomb[1][POINTS - 1]));
	return r < 0 ? r
	             : ow_figure_claim(run, "LDA: the least, and steady", fabs(ow_spread_mean(&lda) - 77.9) < 1.5,
	                               "%.1f %% (e^-1/4 = 77.9 %%)", ow_spread_mean(&lda));
}

/* Supplement 8 to 11: by the shape and scale of the delay. */
static int by_delay(struct ow_figure_run *run, uint64_t packets, bool stddev, struct ow_error *err)
{
	static const double shapes[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1}, scales[] = {1, 2, 4, 6.647, 8, 10};
	enum { POINTS = 6 };
	struct ow_spread all[METHODS] = {{0}};
	size_t which = stddev ? STDDEV : MEAN;
	int r = 0;
	for (unsigned i = 0; i < 2 * POINTS && !r; i++) {
		bool shape = i < POINTS;
		double x = shape ? shapes[i] : scales[i - POINTS];
		char delay[40];
		snprintf(delay, sizeof delay, "weibull:%gus,%g", shape ? SCALE : x, shape ? x : SHAPE);
		struct ow_stream_params params = scaled(run, packets, 0.1, 0.1, i);
		params.delay = delay;
		struct errors e[METHODS];
		r = try_methods(&params, 0, scaled_runs(run), e, err);
		if (!r)
			r = method_points(run, shape ? "shape: " : "scale: ", x, e, which);
		for (int m = 0; m < METHODS && !r; m++) {
			const struct ow_spread *s = stddev ? &e[m].stddev : &e[m].mean;
			if (s->count > 0)
				ow_spread_add(&all[m], ow_spread_mean(s));
		}
		ow_figure_progress(run, (i + 1.) / (2 * POINTS));
	}
	char text[160];
	snprintf(text, sizeof text, "RDA %.2g, corrected %.2g, FineComb %.2g, LDA %.2g", ow_spread_mean(&all[RDA]),
	         ow_spread_mean(&all[CORRECTED]), ow_spread_mean(&all[FINECOMB]), ow_spread_mean(&all[LDA]));
	if (r < 0)
		return r;
	if (stddev)
		return ow_figure_claim(run, "RDA's deviation is better than FineComb's, LDA's much worse",
		                       ow_spread_mean(&all[RDA]) < ow_spread_mean(&all[FINECOMB]) &&
		                               ow_spread_mean(&all[LDA]) > 3 * ow_spread_mean(&all[FINECOMB]),
		                       "%s", text);
	return ow_figure_claim(run, "RDA's mean is over 10 orders of magnitude better than FineComb's, 15 than LDA's",
	                       ow_spread_mean(&all[RDA]) < 1e-10 * ow_spread_mean(&all[FINECOMB]), "%s", text);
}

int ow_figure_rda_mean_by_delay(struct ow_figure_run *run, struct ow_error *err)
{
	return by_delay(run, packets_of(run), false, err);
}

int ow_figure_rda_stddev_by_delay(struct ow_figure_run *run, struct ow_error *err)
{
	return by_delay(run, packets_of(run), true, err);
}

/* -- Table I: the last column, for the methods that aggregate end to end
 * ------------------------------------------------- */

struct recognised {
	struct ow_spread by_count, by_digest; /* of the spoilt buckets, % */
	struct ow_spread lost, extra;         /* of these packets, the share that RDA names */
};

static int recognise(const struct ow_made_stream *stream, uint64_t seed, struct recognised *found)
{
	uint32_t buckets = (uint32_t)(4 * (stream->truth.lost + stream->truth.extra));
	struct two one = {0}, four = {0};
	int r = two_rda(&(struct ow_rda_params){1, buckets, false}, seed, &one);
	if (!r)
		r = two_rda(&(struct ow_rda_params){4, buckets / 4, true}, seed, &four);
	if (!r) {
		one.a->ops->add(one.a, stream->a, stream->as);
		one.b->ops->add(one.b, stream->b, stream->bs);
		four.a->ops->add(four.a, stream->a, stream->as);
		four.b->ops->add(four.b, stream->b, stream->bs);
		double spoilt = 0, by_count = 0, by_digest = 0;
		const struct ow_rda_cell *x = ow_rda_of(one.a)->cell, *y = ow_rda_of(one.b)->cell;
		for (uint32_t i = 0; i < buckets; i++) {
			/* With 64-bit digests, equal digests mean equal content. */
			bool count = x[i].count != y[i].count, digest = x[i].id != y[i].id;
			spoilt += count || digest;
			by_count += count;
			by_digest += digest;
		}
		ow_spread_add(&found->by_count, 100 * by_count / fmax(1, spoilt));
		ow_spread_add(&found->by_digest, 100 * by_digest / fmax(1, spoilt));
		struct ow_rda_peel peel;
		r = ow_rda_peel(four.a, four.b, NULL, &peel);
		size_t lost, extra;
		if (!r) {
			r = ow_rda_erase(four.a, peel.lost, peel.losts, stream->a, stream->as, &lost);
			if (!r)
				r = ow_rda_erase(four.b, peel.extra, peel.extras, stream->b, stream->bs, &extra);
			if (!r) {
				ow_spread_add(&found->lost, 100 * (double)lost / fmax(1, (double)stream->truth.lost));
				ow_spread_add(&found->extra,
				              100 * (double)extra / fmax(1, (double)stream->truth.extra));
			}
			ow_rda_peel_done(&peel);
		}
	}
	two_done(&one);
	two_done(&four);
	return r;
}

int ow_figure_rda_table_1(struct ow_figure_run *run, struct ow_error *err)
{
	struct recognised found = {0};
	int r = 0;
	for (unsigned i = 0; i < RUNS && !r; i++) {
		struct ow_stream_params params = {.packets = ow_figure_quick(run) ? 20000 : 200000,
		                                  .interval_ns = 1000000000,
		                                  .delay = "weibull:6.647us,0.7",
		                                  .loss = 0.01,
		                                  .no_delays = true,
		                                  .seed = ow_figure_seed(run) + i};
		params.reorder[0] = params.reorder[3] = params.packets / 200;
		struct ow_made_stream stream;
		r = ow_stream_make(&params, &stream, err);
		if (r < 0)
			break;
		r = recognise(&stream, params.seed, &found);
		ow_stream_done(&stream);
		ow_figure_progress(run, (i + 1.) / RUNS);
	}
	if (!r)
		r = ow_spread_point(run, "spoilt buckets recognised", 1, &found.by_count);
	if (!r)
		r = ow_spread_point(run, "spoilt buckets recognised", 2, &found.by_digest);
	if (!r)
		r = ow_spread_point(run, "spoilt buckets recognised", 3, &found.by_digest);
	if (!r)
		r = ow_spread_point(run, "lost packets named", 3, &found.lost);
	if (!r)
		r = ow_spread_point(run, "reordered packets named", 3, &found.extra);
	if (!r)
		r = ow_figure_claim(run, "LDA: 1 hash, detects no problematic packets",
		                    ow_spread_mean(&found.by_count) < 100,
		                    "its counters recognise %.1f %% of the spoilt buckets, no packet",
		                    ow_spread_mean(&found.by_count));
	if (!r)
		r = ow_figure_claim(
			run, "FineComb: 1 hash, detects reordered packets", ow_spread_mean(&found.by_digest) == 100,
			"digests recognise %.2f %% of the spoilt buckets", ow_spread_mean(&found.by_digest));
	return r < 0 ? r
	             : ow_figure_claim(run, "RDA: multiple hashes, detects lost and reordered packets",
	                               ow_spread_mean(&found.lost) > 99 && ow_spread_mean(&found.extra) > 99,
	                               "names %.2f %% of the lost and %.2f %% of the reordered packets",
	                               ow_spread_mean(&found.lost), ow_spread_mean(&found.extra));
}
