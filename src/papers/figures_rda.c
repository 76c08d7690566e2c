/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the RDA paper (rda.h) about decoding: 6, and 1 to 5 of the supplement; and RDA as published compared with
 * the corrected one. Packets that both points saw cancel in the difference bit by bit
 * (tests/reconcile/test_rda_peel.c), so only the differences are generated here, and data sets differ only in the seed.
 */
#include "papers/figures_rda.h"

#include "base/hash.h"
#include "base/random.h"
#include "estimate/rda_estimate.h"
#include "reconcile/rda_peel.h"
#include "papers/spread.h"
#include "synopsis/ams.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PUBLISHED_CELL 24 /* bytes of a cell in the paper: three words */
#define RECORD         16 /* bytes of an id and a time */

static const struct ow_rda_peel_options corrected = {.published = false};

struct decoding {
	struct ow_spread share;    /* of the differences that were decoded, % */
	struct ow_spread complete; /* 100 or 0 % */
	struct ow_spread capped;
	double us; /* the smallest of all runs: disturbances can only add time */
};

static double now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Decodes one pair of tables with these differences, half of them lost. Wrongly decoded ids do not count. */
static int decode_once(const struct ow_rda_params *params, size_t differences, bool published, uint64_t seed,
                       struct decoding *d)
{
	struct ow_synopsis *a = NULL, *b = NULL;
	struct ow_sighting *p = malloc((differences + 1) * sizeof *p);
	struct ow_random random;
	ow_random_seed(&random, seed);
	int r = p ? ow_rda_create(params, seed, &a) : -ENOMEM;
	if (!r)
		r = ow_rda_create(params, seed, &b);
	if (!r) {
		for (size_t i = 0; i < differences; i++)
			p[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)i};
		size_t lost = differences / 2;
		ow_rda_ops.add(a, p, lost);
		ow_rda_ops.add(b, p + lost, differences - lost);
		struct ow_rda_peel_options options = corrected;
		if (published)
			options = (struct ow_rda_peel_options){.published = true, .steps = 4 * differences + 100};
		struct ow_rda_peel peel;
		double from = now_us();
		r = ow_rda_peel(a, b, &options, &peel);
		if (!r) {
			d->us = fmin(d->us, now_us() - from);
			/* With the caches, ids that were never sent can be recognised. */
			size_t found_a, found_b;
			r = ow_rda_erase(a, peel.lost, peel.losts, p, lost, &found_a);
			if (!r)
				r = ow_rda_erase(b, peel.extra, peel.extras, p + lost, differences - lost, &found_b);
			double found = r ? 0 : (double)(found_a + found_b);
			ow_spread_add(&d->share, differences ? 100 * found / (double)differences : 100);
			ow_spread_add(&d->complete, peel.complete && found == (double)differences ? 100 : 0);
			ow_spread_add(&d->capped, peel.capped ? 100 : 0);
			ow_rda_peel_done(&peel);
		}
	}
	free(p);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
	return r;
}

static int decode_many(const struct ow_rda_params *params, size_t differences, bool published, unsigned runs,
                       uint64_t seed, struct decoding *ret_decoding)
{
	*ret_decoding = (struct decoding){.us = INFINITY};
	int r = 0;
	for (unsigned i = 0; i < runs && !r; i++)
		r = decode_once(params, differences, published, ow_mix64(seed + i), ret_decoding);
	return r;
}

/* -- figure 6: decoding time --------------------------------------------------------------------------------------- */

/*
 * FineComb as the RDA paper describes it: for a spoilt bucket, it tries all subsets of the stash until their XOR is the
 * difference.
 */
static double brute_force_us(unsigned stash, uint64_t seed)
{
	struct ow_random random;
	ow_random_seed(&random, seed);
	uint64_t digest[32], sum = 0, target;
	for (unsigned i = 0; i < stash; i++)
		digest[i] = ow_random_u64(&random);
	/* The subset in the middle of the search, in the order of Gray's code: one XOR for each subset. */
	uint64_t middle = UINT64_C(1) << (stash - 1);
	double from = now_us();
	target = 0;
	for (unsigned i = 0; i < stash; i++)
		target ^= (middle ^ middle >> 1) >> i & 1 ? digest[i] : 0;
	for (uint64_t step = 1; step >> stash == 0 && sum != target; step++)
		sum ^= digest[__builtin_ctzll(step)];
	return now_us() - from + (sum == target ? 0 : 1e9);
}

static int run_6(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	bool quick = ow_figure_quick(run);
	unsigned measured = quick ? 22 : 26;
	double slope = 0, rda_2000 = 0;
	int r = 0;
	for (unsigned stash = 2; stash <= 40 && !r; stash += 2) {
		/* There are as many spoilt buckets as packets in the stash. */
		double s = stash <= measured ? stash * brute_force_us(stash, ow_figure_seed(run)) / 1e6
		                             : slope * stash * exp2(stash);
		slope = stash <= measured ? s / (stash * exp2(stash)) : slope;
		r = ow_figure_point(run, stash <= measured ? "FineComb, all subsets" : "FineComb, extrapolated", stash,
		                    s, s, s);
		ow_figure_progress(run, 0.5 * fmin(1, exp2((double)stash - measured)));
	}
	static const unsigned differences[] = {1, 2, 5, 10, 20, 40, 100, 200, 500, 1000, 1500, 2000};
	enum { POINTS = sizeof differences / sizeof *differences };
	for (unsigned i = 0; i < POINTS && !r; i++) {
		struct decoding d;
		struct ow_rda_params two = {2, 2000, false}, three = {3, 1333, true};
		for (int k = 0; k < 2 && !r; k++) {
			r = decode_many(k ? &three : &two, differences[i], !k, quick ? 20 : 200,
			                ow_figure_seed(run) + i, &d);
			rda_2000 = d.us / 1e6;
			if (!r)
				r = ow_figure_point(run, k ? "RDA corrected, 3 x 1333" : "RDA as published, 2 x 2000",
				                    differences[i], rda_2000, rda_2000, rda_2000);
		}
		ow_figure_progress(run, 0.5 + 0.5 * (i + 1) / POINTS);
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "RDA decodes orders of magnitude faster than FineComb enumerates its stash",
	                               rda_2000 * 1000 < slope * 40 * exp2(40),
	                               "2000 differences in %.2g s; 40 in the stash would take %.2g s", rda_2000,
	                               slope * 40 * exp2(40));
}

/* -- supplement 1 and 2: differences, 1000 cells --------------------------------------------------------------------
 */

static const struct form {
	const char *share, *complete;
	struct ow_rda_params params;
	bool published;
} forms[] = {
	{"2 banks, as published", "2 banks, as published: complete", {2, 500, false}, true},
	{"2 banks, checked ids", "2 banks, checked ids: complete", {2, 500, true}, false},
	{"3 banks, checked ids", "3 banks, checked ids: complete", {3, 333, true}, false},
	{"4 banks, checked ids", "4 banks, checked ids: complete", {4, 250, true}, false},
};
#define FORMS (sizeof forms / sizeof *forms)

static int decoded_by_differences(struct ow_figure_run *run, struct ow_error *err)
{
	uint64_t seed = ow_figure_seed(run) + (ow_figure_part(run) == OW_RDA_UNIV ? OW_RDA_UNIV_PACKETS : 0);
	(void)err;
	unsigned runs = ow_figure_quick(run) ? 100 : 1000;
	double share_500 = 0, complete_500 = 0, complete_250 = 0, capped_500 = 0, three_750 = 0;
	int r = 0;
	for (unsigned d = 50; d <= 900 && !r; d += 50) {
		for (unsigned f = 0; f < FORMS && !r; f++) {
			struct decoding at;
			r = decode_many(&forms[f].params, d, forms[f].published, runs, seed + 1000 * d + f, &at);
			if (!r)
				r = ow_spread_point(run, forms[f].share, d, &at.share);
			if (!r)
				r = ow_spread_point(run, forms[f].complete, d, &at.complete);
			if (f == 0 && d == 500)
				capped_500 = ow_spread_mean(&at.capped);
			if (f == 1 && d == 500) {
				share_500 = ow_spread_mean(&at.share);
				complete_500 = ow_spread_mean(&at.complete);
			}
			if (f == 1 && d == 250)
				complete_250 = ow_spread_mean(&at.complete);
			if (f == 2 && d == 750)
				three_750 = ow_spread_mean(&at.complete);
		}
		ow_figure_progress(run, d / 900.);
	}
	if (!r)
		r = ow_figure_claim(run, "up to 500 differences, almost all packets are decoded", share_500 > 97,
		                    "%.1f %% of the packets, but all of them in %.0f %% of runs (d = 250: %.0f %%)",
		                    share_500, complete_500, complete_250);
	if (!r)
		r = ow_figure_claim(run, "Theorem 2: with m = 2d, failure is at most O(d^-2)", complete_250 > 99,
		                    "%.0f %% complete with 250 differences in 2 x 500 cells", complete_250);
	if (!r)
		r = ow_figure_claim(run, "(algorithm 1 ends when no pure bucket is left; d = 500)", capped_500 == 0,
		                    "in %.1f %% of runs the published loop does not end by itself", capped_500);
	return r < 0 ? r
	             : ow_figure_claim(run, "(3 banks with checked ids, d = 750: 98.5 % and more)", three_750 >= 96,
	                               "%.1f %% complete", three_750);
}

/* -- supplement 3 and 4: number of hash functions, 1000 cells in all -------------------------------------------------
 */

static int decoded_by_hashes(struct ow_figure_run *run, struct ow_error *err)
{
	uint64_t seed = ow_figure_seed(run) + (ow_figure_part(run) == OW_RDA_UNIV ? OW_RDA_UNIV_PACKETS : 0);
	(void)err;
	static const unsigned differences[] = {200, 500, 700};
	unsigned runs = ow_figure_quick(run) ? 100 : 1000, best[2] = {0, 0};
	double most[2] = {0, 0};
	int r = 0;
	for (unsigned i = 0; i < 3 && !r; i++) {
		for (uint32_t k = 1; k <= 8 && !r; k++) {
			for (int checked = 0; checked < 2 && !r; checked++) {
				struct ow_rda_params params = {k, 1000 / k, checked};
				struct decoding d;
				char name[40];
				snprintf(name, sizeof name, "d = %u, %s", differences[i],
				         checked ? "checked ids" : "as published");
				r = decode_many(&params, differences[i], !checked, runs, seed + 100 * i + k, &d);
				if (!r)
					r = ow_spread_point(run, name, k, &d.share);
				if (differences[i] == 700 && ow_spread_mean(&d.share) > most[checked]) {
					most[checked] = ow_spread_mean(&d.share);
					best[checked] = k;
				}
			}
			ow_figure_progress(run, (i + k / 8.) / 3);
		}
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "two hash functions decode most when there are too many differences",
	                               best[1] == 2,
	                               "d = 700: as published %u with %.1f %%, with checked ids %u with %.1f %%",
	                               best[0], most[0], best[1], most[1]);
}

/* -- supplement 5: bytes ---------------------------------------------------------------------------------------------
 */

/* Bits per second of an interval of one second with n packets and d differences. */
static double direct_bits(double n)
{
	return 8 * RECORD * n;
}

static double published_bits(double d)
{
	return 8 * PUBLISHED_CELL * 4 * d;
}

/* The bits that are sent: the encoded table and the AMS counters that determine its size. */
static int corrected_bits(double d, double *ret_bits)
{
	struct ow_rda_params params;
	ow_rda_params_for(d, 0, false, &params);
	struct ow_synopsis *rda, *ams;
	int r = ow_rda_create(&params, 1, &rda);
	if (r < 0)
		return r;
	r = ow_ams_create(OW_AMS_COUNTERS, 1, &ams);
	if (!r) {
		*ret_bits = 8. * (double)(ow_synopsis_encoded_size(rda) + ow_synopsis_encoded_size(ams));
		ow_synopsis_free(ams);
	}
	ow_synopsis_free(rda);
	return r;
}

static int run_s5(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	const double n = 1e5;
	double bits = 0, crossing = 0, corrected_crossing = 0;
	int r = 0;
	/* (b) the share of differences */
	for (int percent = 1; percent < 80 && !r; percent++) {
		double share = percent / 100.;
		r = corrected_bits(share * n, &bits);
		if (!r)
			r = ow_figure_point(run, "RDA as published", share, published_bits(share * n),
			                    published_bits(share * n), published_bits(share * n));
		if (!r)
			r = ow_figure_point(run, "RDA corrected", share, bits, bits, bits);
		if (!r)
			r = ow_figure_point(run, "Direct", share, direct_bits(n), direct_bits(n), direct_bits(n));
		if (!crossing && published_bits(share * n) > direct_bits(n))
			crossing = share;
		if (!corrected_crossing && bits > direct_bits(n))
			corrected_crossing = share;
	}
	/* (a) the sampling rate, with a tenth and three tenths of differences */
	for (int i = 10; i >= 0 && !r; i--) {
		double p = exp2(-i);
		r = ow_figure_point(run, "sampled: Direct", p, direct_bits(n * p), direct_bits(n * p),
		                    direct_bits(n * p));
		for (int many = 0; many < 2 && !r; many++) {
			double d = published_bits((many ? 0.3 : 0.1) * n * p);
			r = ow_figure_point(run, many ? "sampled: RDA, 30 % differ" : "sampled: RDA, 10 % differ", p, d,
			                    d, d);
		}
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "RDA is cheaper than sending everything below a set difference of 0.17",
	                               fabs(crossing - 0.17) < 0.011, "%.2f (corrected: %.2f)", crossing,
	                               corrected_crossing);
}

/* -- as published against corrected -----------------------------------------------------------------------------------
 */

/* Both are sized by the true number of differences; the next figure shows the effect of sizing by an estimate. */
static int side_by_side(struct ow_figure_run *run, unsigned d, unsigned runs, double *ret_complete)
{
	int r = 0;
	for (int published = 0; published < 2 && !r; published++) {
		struct ow_rda_params params;
		struct decoding at;
		ow_rda_params_for(d, 0, published, &params);
		double cells = (double)params.banks * params.cells,
		       bytes = (published ? PUBLISHED_CELL : sizeof(struct ow_rda_cell)) * cells / d;
		r = decode_many(&params, d, published, runs, ow_figure_seed(run) + d, &at);
		if (!r)
			r = ow_spread_point(run, published ? "complete, published, %" : "complete, corrected, %", d,
			                    &at.complete);
		if (!r)
			r = ow_figure_point(
				run, published ? "bytes a difference, published" : "bytes a difference, corrected", d,
				bytes, bytes, bytes);
		if (!r)
			r = ow_figure_point(run, published ? "decoding, published, us" : "decoding, corrected, us", d,
			                    at.us, at.us, at.us);
		ret_complete[published] = ow_spread_mean(&at.complete);
	}
	return r;
}

static int run_published(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	static const unsigned differences[] = {10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000};
	enum { POINTS = sizeof differences / sizeof *differences };
	double least[2] = {100, 100}, most = 0;
	int r = 0;
	for (unsigned i = 0; i < POINTS && !r; i++) {
		double complete[2] = {0};
		unsigned d = differences[i], runs = ow_figure_quick(run) ? 200 : 2000;
		while (runs > 20 && (double)runs * d > (ow_figure_quick(run) ? 1e6 : 2e7))
			runs /= 2;
		r = side_by_side(run, d, runs, complete);
		for (int k = 0; k < 2; k++)
			least[k] = fmin(least[k], complete[k]);
		most = fmax(most, complete[1]);
		ow_figure_progress(run, (i + 1.) / POINTS);
	}
	if (!r)
		r = ow_figure_claim(run, "Theorem 2: 2 banks of 2d fail with probability O(d^-2)", least[1] > 99,
		                    "complete in %.0f to %.0f %% of cases, 96 bytes a difference", least[1], most);
	return r < 0 ? r
	             : ow_figure_claim(run, "(corrected: 4 banks, checked ids)", least[0] >= 99,
	                               "complete in %.2f %% or more, 27 bytes a difference for many", least[0]);
}

/* -- late binding: MinHash against AMS
 * --------------------------------------------------------------------------------- */

/* The relative errors of both for d differences, half of them lost, among n packets at A. */
static int size_once(size_t n, size_t d, uint64_t seed, struct ow_spread *minhash, struct ow_spread *ams)
{
	enum { BLOCK = 1024 };
	struct ow_synopsis *s[4] = {0};
	int r = 0;
	for (int i = 0; i < 4 && !r; i++)
		r = i < 2 ? ow_minhash_create(OW_MINHASH_SLOTS, seed, &s[i])
		          : ow_ams_create(OW_AMS_COUNTERS, seed, &s[i]);
	struct ow_random random;
	ow_random_seed(&random, seed);
	/* First the lost packets, then the common ones, then the extra ones. */
	for (size_t first = 0, lost = d / 2, end = n + d - d / 2; first < end && !r; first += BLOCK) {
		struct ow_sighting a[BLOCK], b[BLOCK];
		size_t as = 0, bs = 0;
		for (size_t i = first; i < end && i < first + BLOCK; i++) {
			struct ow_sighting p = {ow_random_u64(&random), 0};
			if (i < n)
				a[as++] = p;
			if (i >= lost)
				b[bs++] = p;
		}
		for (int i = 0; i < 4; i++)
			s[i]->ops->add(s[i], i % 2 ? b : a, i % 2 ? bs : as);
	}
	struct ow_value by_minhash = {0};
	double by_ams = 0, deviation;
	if (!r)
		r = ow_minhash_difference(s[0], s[1], n, n - d / 2 + (d - d / 2), &by_minhash);
	if (!r)
		r = ow_ams_difference(s[2], s[3], &by_ams, &deviation);
	if (!r) {
		ow_spread_add(minhash, 100 * fabs(by_minhash.value - (double)d) / (double)d);
		ow_spread_add(ams, 100 * fabs(by_ams - (double)d) / (double)d);
	}
	for (int i = 0; i < 4; i++)
		ow_synopsis_free(s[i]);
	return r;
}

static int run_late(struct ow_figure_run *run, struct ow_error *err)
{
	(void)err;
	const size_t n = ow_figure_quick(run) ? 100000 : 1000000;
	unsigned runs = ow_figure_quick(run) ? 10 : 40, done = 0;
	double minhash_1000 = 0, ams_most = 0;
	int r = 0;
	for (size_t d = 10; d <= n / 10 && !r; d *= 10) {
		struct ow_spread minhash = {0}, ams = {0};
		for (unsigned i = 0; i < runs && !r; i++)
			r = size_once(n, d, ow_mix64(ow_figure_seed(run) + 1000 * d + i), &minhash, &ams);
		if (!r)
			r = ow_spread_point(run, "MinHash, 1024 slots", (double)d, &minhash);
		if (!r)
			r = ow_spread_point(run, "AMS, 1024 counters", (double)d, &ams);
		if (d == n / 1000)
			minhash_1000 = ow_spread_mean(&minhash);
		ams_most = fmax(ams_most, ow_spread_mean(&ams));
		ow_figure_progress(run, ++done / (ow_figure_quick(run) ? 4. : 5.));
	}
	return r < 0 ? r
	             : ow_figure_claim(run, "the size of the RDA follows from the MinHash estimate", minhash_1000 < 20,
	                               "errs by %.0f %% when one packet in 1000 differs; AMS by %.1f %% at most",
	                               minhash_1000, ams_most);
}

#define DECODED "decoded, %"
const struct ow_figure ow_figures_rda[] = {
	{"rda-6", "Decoding time of RDA and FineComb", "set difference or stash, packets", "seconds", true, true,
         run_6},
	{"rda-7", "Relative error, unknown set difference (DC)", "set difference, packets", "relative error", false,
         true, ow_figure_rda_unknown_difference, OW_RDA_DC},
	{"rda-8", "Relative error, unknown set difference (Univ)", "set difference, packets", "relative error", false,
         true, ow_figure_rda_unknown_difference, OW_RDA_UNIV},
	{"rda-10", "Live: latency over time", "interval of 1 s", "ms", false, true, ow_figure_rda_10},
	{"rda-11", "Live: relative errors over time", "interval of 1 s", "relative error", false, true,
         ow_figure_rda_11},
	{"rda-12", "Live: stacked delays of the stages", "interval of 1 s", "ms", false, false, ow_figure_rda_12},
	{"rda-13", "Live: load and overall delay", "interval of 1 s", "Mbit/s, ms", false, true, ow_figure_rda_13},
	{"rda-14", "Sending RDAs and records over a session", "buckets or records", "seconds", true, true,
         ow_figure_rda_14},
	{"rda-15", "Computing average and standard deviation", "buckets", "seconds", true, true, ow_figure_rda_15},
	{"rda-s1", "Decoded packets, 1000 cells (DC)", "set difference, packets", DECODED, false, false,
         decoded_by_differences, OW_RDA_DC},
	{"rda-s2", "Decoded packets, 1000 cells (Univ)", "set difference, packets", DECODED, false, false,
         decoded_by_differences, OW_RDA_UNIV},
	{"rda-s3", "Decoded packets by hash functions, 1000 cells (DC)", "hash functions", DECODED, false, false,
         decoded_by_hashes, OW_RDA_DC},
	{"rda-s4", "Decoded packets by hash functions, 1000 cells (Univ)", "hash functions", DECODED, false, false,
         decoded_by_hashes, OW_RDA_UNIV},
	{"rda-s5", "Bits to send, 1e5 packets a second", "set difference or sampling rate", "bit/s", false, true,
         run_s5},
	{"rda-s6", "Useful samples (DC)", "loss or reordering rate", "useful, %", false, false,
         ow_figure_rda_useful_samples, OW_RDA_DC},
	{"rda-s7", "Useful samples (Univ)", "loss or reordering rate", "useful, %", false, false,
         ow_figure_rda_useful_samples, OW_RDA_UNIV},
	{"rda-s8", "Relative error of the mean by delay (DC)", "shape or scale", "relative error", false, true,
         ow_figure_rda_mean_by_delay, OW_RDA_DC},
	{"rda-s9", "Relative error of the mean by delay (Univ)", "shape or scale", "relative error", false, true,
         ow_figure_rda_mean_by_delay, OW_RDA_UNIV},
	{"rda-s10", "Relative error of the deviation by delay (DC)", "shape or scale", "relative error", false, true,
         ow_figure_rda_stddev_by_delay, OW_RDA_DC},
	{"rda-s11", "Relative error of the deviation by delay (Univ)", "shape or scale", "relative error", false, true,
         ow_figure_rda_stddev_by_delay, OW_RDA_UNIV},
	{"rda-table-1", "What LDA, FineComb and RDA find", "method (1 LDA, 2 FineComb, 3 RDA)", "found, %", false,
         false, ow_figure_rda_table_1},
	{"rda-published", "RDA as published and corrected", "set difference, packets", "%, bytes, us", true, true,
         run_published},
	{"rda-late-binding", "Estimated number of differences", "set difference, packets", "error, %", true, true,
         run_late},
	{0},
};
