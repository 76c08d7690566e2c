/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures speed, decoding and bytes of the synopses: bench_synopsis [ROUNDS [SEED]]
 * Prints the measured value, the target and their ratio; above 1 is better than the target. Times are those of the best
 * round, and the median; on a busy machine the two differ. Every result is checked: a wrong one ends the program with
 * 1, a slow one does not.
 */
#include "idbatch.h"

#include "base/random.h"
#include "reconcile/fold_peel.h"
#include "reconcile/key_list.h"
#include "reconcile/rda_peel.h"
#include "synopsis/bottomk.h"
#include "synopsis/fold.h"
#include "synopsis/lda.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define PACKETS    1000000u
#define HEADERS    512u /* they fit into the first-level cache */
#define BATCH      256u
#define ROUNDS_MAX 1000u
#define MINHASH    1024u

static unsigned rounds = 9;
static uint64_t seed = 1;
static struct ow_sighting *stamps; /* PACKETS of them */

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wrong(const char *what)
{
	fprintf(stderr, "bench_synopsis: WRONG RESULT: %s\n", what);
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		wrong(what);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* -- what is timed ------------------------------------------------------------------------------------------------ */

struct work {
	void (*run)(struct work *work);
	uint64_t packets;
	struct ow_synopsis *synopsis, *more;
	struct ow_idbatch idbatch;
	uint8_t *headers;
	size_t header_bytes;
};

/* The best and the median ns per packet. */
static double measure(struct work *work, double *ret_median)
{
	static double ns[ROUNDS_MAX];
	for (unsigned i = 0; i < rounds; i++) {
		double start = now_ns();
		work->run(work);
		ns[i] = (now_ns() - start) / (double)work->packets;
	}
	qsort(ns, rounds, sizeof *ns, by_value);
	*ret_median = ns[rounds / 2];
	return ns[0];
}

static void insert(struct work *work)
{
	for (size_t i = 0; i < work->packets; i += BATCH) {
		size_t n = work->packets - i < BATCH ? work->packets - i : BATCH;
		work->synopsis->ops->add(work->synopsis, stamps + i, n);
	}
}

/* Uses the same headers repeatedly, so that they stay in the cache. */
static void identify(struct work *work)
{
	struct ow_sighting batch[BATCH];
	for (size_t i = 0; i < BATCH; i++)
		batch[i].time_ns = (int64_t)i * 1000;
	for (uint64_t i = 0; i < work->packets; i += BATCH) {
		const uint8_t *headers = work->headers + i % HEADERS * work->header_bytes;
		ow_idbatch(&work->idbatch, headers, work->header_bytes, BATCH, &batch[0].id, sizeof *batch / 8);
		if (work->synopsis)
			work->synopsis->ops->add(work->synopsis, batch, BATCH);
		else
			__asm__ volatile("" ::"r"(batch) : "memory");
	}
}

static void row(const char *name, double best, double median, double target_ns, const char *note)
{
	printf("%-44s %7.2f %7.2f ns %8.1f M/s", name, best, median, 1e3 / best);
	if (target_ns > 0)
		printf("   target %6.1f M/s  ratio %5.2f", 1e3 / target_ns, target_ns / best);
	printf("%s%s\n", *note ? "   " : "", note);
}

static struct work headers_of(size_t bytes)
{
	struct work work = {.run = identify, .packets = 4 * PACKETS / BATCH * BATCH, .header_bytes = bytes};
	struct ow_random random;
	ow_random_seed(&random, seed);
	work.headers = malloc(HEADERS * bytes);
	must(work.headers ? ow_idbatch_init(&work.idbatch, bytes, NULL, seed) : -1, "idbatch");
	for (size_t i = 0; i < HEADERS * bytes; i++)
		work.headers[i] = (uint8_t)ow_random_u64(&random);
	return work;
}

/* Each round has counted each packet; the sums of the counters must agree. */
static void check_lda(const struct ow_synopsis *synopsis, uint64_t packets)
{
	const struct ow_lda *lda = (const struct ow_lda *)synopsis;
	uint64_t counted = 0;
	for (uint32_t i = 0; i < lda->first[lda->params.banks]; i++)
		counted += lda->bucket[i].packets;
	if (counted != packets)
		wrong("LDA does not hold the packets that were added");
}

static void check_rda(const struct ow_synopsis *synopsis, uint64_t packets)
{
	const struct ow_rda *rda = ow_rda_of(synopsis);
	uint64_t counted = 0;
	for (uint32_t i = 0; i < rda->params.banks * rda->params.cells; i++)
		counted += rda->cell[i].count;
	if ((uint32_t)counted != (uint32_t)(packets * rda->params.banks))
		wrong("RDA does not hold the packets that were added");
}

static void bench_headers(void)
{
	double best, median;
	struct work work = headers_of(40);
	best = measure(&work, &median);
	row("id of 40 bytes", best, median, 0, "");
	struct ow_lda_params lda = {1, {{1024, UINT32_MAX}}};
	struct ow_lda *made;
	must(ow_lda_create(&lda, seed, &made, NULL), "lda");
	work.synopsis = &made->base;
	best = measure(&work, &median);
	check_lda(work.synopsis, work.packets * rounds);
	row("id of 40 bytes, LDA, every packet", best, median, 1e3 / 150, "1024 buckets");
	ow_synopsis_free(work.synopsis);
	free(work.headers);

	work = headers_of(64);
	best = measure(&work, &median);
	row("id of 64 bytes", best, median, 0, "");
	for (int checked = 0; checked < 2; checked++) {
		struct ow_rda_params rda = {.banks = 2, .cells = 1000, .checked = checked};
		must(ow_rda_create(&rda, seed, &work.synopsis), "rda");
		best = measure(&work, &median);
		check_rda(work.synopsis, work.packets * rounds);
		row(checked ? "id of 64 bytes, RDA k=2, checked ids" : "id of 64 bytes, RDA k=2, as published", best,
		    median, 1e3 / 100, "2 x 1000 cells");
		ow_synopsis_free(work.synopsis);
	}
	free(work.headers);
}

static void bench_insert(void)
{
	double best, median;
	struct work work = {.run = insert, .packets = PACKETS};
	for (unsigned i = 0; i < 4; i++) {
		struct ow_fold_params params = {i < 2 ? 4 : 3, OW_FOLD_CELLS, 0, i % 2};
		static const char *const name[] = {"fold k=4", "fold k=4 and ams", "fold k=3", "fold k=3 and ams"};
		must(ow_fold_create(&params, seed, &work.synopsis), "fold");
		best = measure(&work, &median);
		row(name[i], best, median, i % 2 ? 10 : 0, "n = 1e6, 65536 cells a bank");
		for (unsigned round = 0; round < rounds; round++)
			work.synopsis->ops->remove(work.synopsis, stamps, PACKETS);
		for (size_t k = 0; k < (size_t)params.banks * params.cells; k++)
			if (ow_fold_of(work.synopsis)->cell[k])
				wrong("fold is not empty after all packets were removed");
		ow_synopsis_free(work.synopsis);
	}
	must(ow_bottomk_create(10000, seed, &work.synopsis), "bottomk");
	best = measure(&work, &median);
	row("bottomk, k = 10000", best, median, 0, "n = 1e6");
	ow_synopsis_free(work.synopsis);
}

/* -- decoding ----------------------------------------------------------------------------------------------------- */

/* A - B as a fold of this many cells, with the first d sightings only at A (or every second of them only at B). */
static struct ow_synopsis *difference(unsigned banks, uint32_t cells, unsigned order, uint64_t key, size_t from,
                                      size_t d, size_t extra)
{
	struct ow_synopsis *fold;
	must(ow_fold_create(&(struct ow_fold_params){banks, cells, order, false}, key, &fold), "fold");
	fold->ops->add(fold, stamps + from, d - extra);
	fold->ops->remove(fold, stamps + from + d - extra, extra);
	return fold;
}

static void bench_decode(void)
{
	static const struct {
		size_t d;
		double target_us;
	} cases[] = {{10, 0}, {100, 0}, {1000, 50}, {10000, 0}, {100000, 10000}};
	printf("\ndecode: subtracted folds to lists of keys, half only at A, half only at B\n");
	for (unsigned banks = 4; banks >= 3; banks--) {
		for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
			static double us[ROUNDS_MAX];
			size_t d = cases[k].d;
			unsigned done = 0;
			for (unsigned i = 0; i < rounds; i++) {
				struct ow_synopsis *fold = difference(banks, ow_fold_cells_for(banks, (double)d), 0,
				                                      seed + i, 0, d, d / 2);
				struct ow_fold_difference diff = {0};
				double start = now_ns();
				must(ow_fold_peel(fold, NULL, &diff), "peel");
				us[i] = (now_ns() - start) / 1e3;
				if (diff.complete && (diff.as != d - d / 2 || diff.bs != d / 2))
					wrong("complete, but not all differences");
				done += diff.complete;
				ow_fold_difference_done(&diff);
				ow_synopsis_free(fold);
			}
			qsort(us, rounds, sizeof *us, by_value);
			printf("fold k=%u  d = %-7zu %9.1f %9.1f us  %u of %u complete", banks, d, us[0],
			       us[rounds / 2], done, rounds);
			if (cases[k].target_us > 0)
				printf("   target %7.0f us  ratio %5.2f", cases[k].target_us,
				       cases[k].target_us / us[0]);
			putchar('\n');
		}
	}
}

/* -- bytes and success -------------------------------------------------------------------------------------------- */

struct tally {
	double runs, first, second, bytes, us; /* runs that succeed with the first fold, with a second fold; sums */
};

/* The counters of 1e6 packets, and of the packets without d of them: the contents of both points' ams. */
static struct ow_synopsis *counters_without(const struct ow_synopsis *all, size_t from, size_t d)
{
	size_t size = ow_synopsis_encoded_size(all);
	uint8_t *bytes = malloc(size);
	struct ow_synopsis *copy;
	if (!bytes)
		wrong("memory");
	ow_synopsis_encode(all, bytes);
	must(ow_synopsis_decode(bytes, size, seed, &copy, NULL), "decode");
	copy->ops->remove(copy, stamps + from, d);
	free(bytes);
	return copy;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Push, peel, second fold, names: as estimate/fold_estimate does it, with the sizes of the encodings. */
static void reconcile_fold(const struct ow_synopsis *ams, size_t d, size_t extra, unsigned run, struct tally *tally)
{
	size_t from = (size_t)run * 7919 % (PACKETS - d);
	struct ow_synopsis *theirs = counters_without(ams, from, d), *second;
	struct ow_synopsis *first = difference(4, ow_fold_cells_for(4, (double)d), 0, seed + run, from, d, extra);
	struct ow_fold_difference diff = {0};
	double estimate, deviation, start = now_ns();
	tally->bytes += (double)(ow_synopsis_encoded_size(first) + ams->ops->encoded_size(theirs));
	must(ow_fold_peel(first, NULL, &diff), "peel");
	tally->us += (now_ns() - start) / 1e3;
	tally->first += diff.complete;
	if (!diff.complete) {
		must(ow_ams_difference(ams, theirs, &estimate, &deviation), "ams");
		double rest = fmax(estimate + 3 * deviation - (double)(diff.as + diff.bs), (double)diff.left / 2);
		second = difference(4, ow_fold_cells_for(4, rest), 1, seed + run, from, d, extra);
		tally->bytes += (double)(OW_SYNOPSIS_HEADER + 8 + ow_synopsis_encoded_size(second));
		must(ow_fold_peel(first, second, &diff), "peel");
		ow_synopsis_free(second);
	}
	tally->second += diff.complete;
	if (diff.complete && (diff.as != d - extra || diff.bs != extra))
		wrong("complete, but not all differences");
	if (diff.bs)
		qsort(diff.only_b, diff.bs, sizeof *diff.only_b, by_key);
	tally->bytes += (double)(OW_SYNOPSIS_HEADER + ow_key_list_size(OW_KEY_LIST_PACKET, diff.only_b, diff.bs));
	tally->runs++;
	ow_fold_difference_done(&diff);
	ow_synopsis_free(first);
	ow_synopsis_free(theirs);
}

/*
 * RDA sized by the true difference, which its estimator would first have to find; the bytes of that estimator are
 * included.
 */
static void reconcile_rda(bool published, size_t d, size_t estimator_bytes, unsigned run, struct tally *tally)
{
	size_t from = (size_t)run * 7919 % (PACKETS - d);
	struct ow_rda_params params;
	struct ow_synopsis *a, *b;
	struct ow_rda_peel peel;
	ow_rda_params_for((double)d, 0, published, &params);
	must(ow_rda_create(&params, seed + run, &a), "rda");
	must(ow_rda_create(&params, seed + run, &b), "rda");
	a->ops->add(a, stamps + from, d);
	double start = now_ns();
	must(ow_rda_peel(a, b, &(struct ow_rda_peel_options){.published = published}, &peel), "peel");
	tally->us += (now_ns() - start) / 1e3;
	tally->first += peel.complete && peel.losts == d;
	if (!published && peel.complete && peel.losts != d)
		wrong("RDA is complete, but not all differences");
	tally->bytes += (double)(ow_synopsis_encoded_size(a) + estimator_bytes);
	tally->runs++;
	ow_rda_peel_done(&peel);
	ow_synopsis_free(a);
	ow_synopsis_free(b);
}

static void tally_row(const char *name, size_t d, const struct tally *tally, bool second)
{
	double bytes = tally->bytes / tally->runs, limit = d < 1000 ? 3072 + 20 * (double)d : 20 * (double)d;
	printf("%-26s %7zu %6.0f runs %8.2f %%", name, d, tally->runs, 100 * tally->first / tally->runs);
	if (second)
		printf(" %8.3f %%", 100 * tally->second / tally->runs);
	else
		printf(" %10s", "-");
	printf(" %9.1f us %10.0f bytes %8.1f each", tally->us / tally->runs, bytes, bytes / (double)d);
	if (second)
		printf("   target %7.0f  ratio %5.2f", limit, limit / bytes);
	putchar('\n');
}

static void bench_bytes(void)
{
	static const struct {
		size_t d;
		unsigned runs;
	} cases[] = {{10, 2000}, {100, 1000}, {1000, 300}, {10000, 30}, {100000, 4}};
	struct ow_synopsis *ams, *minhash;
	must(ow_ams_create(OW_AMS_COUNTERS, seed, &ams), "ams");
	must(ow_minhash_create(MINHASH, seed, &minhash), "minhash");
	ams->ops->add(ams, stamps, PACKETS);
	size_t ams_bytes = ow_synopsis_encoded_size(ams), minhash_bytes = ow_synopsis_encoded_size(minhash);
	printf("\nreconciliation at n = 1e6, everything included: %22s %10s\n", "first try", "two folds");
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		struct tally lost = {0}, mixed = {0}, published = {0}, corrected = {0};
		for (unsigned run = 0; run < cases[k].runs; run++) {
			reconcile_fold(ams, cases[k].d, 0, run, &lost);
			reconcile_fold(ams, cases[k].d, cases[k].d / 2, run, &mixed);
			reconcile_rda(true, cases[k].d, minhash_bytes, run, &published);
			reconcile_rda(false, cases[k].d, ams_bytes, run, &corrected);
		}
		tally_row("fold, all lost", cases[k].d, &lost, true);
		tally_row("fold, half lost half extra", cases[k].d, &mixed, true);
		tally_row("RDA as published", cases[k].d, &published, false);
		tally_row("RDA corrected", cases[k].d, &corrected, false);
		if (lost.second + mixed.second < lost.runs + mixed.runs)
			printf("%-26s %7zu two folds were not enough in %.0f runs\n", "fold", cases[k].d,
			       lost.runs + mixed.runs - lost.second - mixed.second);
	}
	ow_synopsis_free(ams);
	ow_synopsis_free(minhash);
}

int main(int argc, char **argv)
{
	struct ow_random random;
	struct utsname machine;
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	if (argc > 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_synopsis [ROUNDS [SEED]]\n");
		return 2;
	}
	stamps = malloc(PACKETS * sizeof *stamps);
	if (!stamps || uname(&machine) < 0)
		return 1;
	ow_random_seed(&random, seed);
	for (size_t i = 0; i < PACKETS; i++)
		stamps[i] = (struct ow_sighting){ow_random_u64(&random), (int64_t)i * 1000};
	printf("%s %s, seed %llu, %u rounds: best, median\n\n", machine.machine, machine.release,
	       (unsigned long long)seed, rounds);
	bench_headers();
	bench_insert();
	bench_decode();
	bench_bytes();
	free(stamps);
	return 0;
}
