/* SPDX-License-Identifier: Apache-2.0 */
/* Mean, standard deviation and loss from two Lossy Difference Aggregators. */
#include "estimate/lda_estimate.h"

#include "estimate/losses.h"
#include "estimate/paired.h"
#include "synopsis/lda.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SPOILT UINT64_MAX
/*
 * With more expected buckets that look clean but are not, more than 5 % of the intervals of confidence would be wrong.
 */
#define MIXED_MAX 0.05

/* Compares row by row: sums of counters hide errors that cancel. */
static void compare_rows(const struct ow_lda *a, const struct ow_lda *b, uint32_t count, bool plus,
                         struct ow_clean_bucket *row, int64_t *difference)
{
	for (uint32_t i = 0; i < count; i++) {
		difference[i] = (int64_t)(a->bucket[i].packets - b->bucket[i].packets);
		row[i].delay_ns = (int64_t)(b->bucket[i].time - a->bucket[i].time);
		bool clean = !difference[i] && !(plus && row[i].delay_ns < 0);
		row[i].packets = clean ? a->bucket[i].packets : SPOILT;
	}
}

/* Number of banks with a clean bucket that is not empty. */
static unsigned live_banks(const struct ow_lda *lda, const struct ow_clean_bucket *row)
{
	unsigned live = 0;
	for (uint32_t k = 0; k < lda->params.banks; k++)
		for (uint32_t i = lda->first[k]; i < lda->first[k + 1]; i++)
			if (row[i].packets && row[i].packets <= INT64_MAX) {
				live++;
				break;
			}
	return live;
}

/*
 * Expected number of buckets that look clean although they have a lost packet and an extra one. A single one can shift
 * the mean by any amount up to the length of the interval.
 */
static double mixed_buckets(const struct ow_lda *lda, const struct ow_clean_bucket *row, const struct ow_estimate *e)
{
	double mixed = 0;
	for (uint32_t k = 0; k < lda->params.banks; k++) {
		double clean = 0, per_bucket = ow_lda_share(&lda->params, k) / lda->params.bank[k].buckets;
		for (uint32_t i = lda->first[k]; i < lda->first[k + 1]; i++)
			clean += row[i].packets != SPOILT;
		mixed += clean * ow_losses_mixed(e->lost.value * per_bucket, e->extra.value * per_bucket);
	}
	return mixed;
}

static void published_stddev(const struct ow_lda *lda, const struct ow_clean_bucket *row, double mean_ns,
                             struct ow_value *ret_stddev)
{
	const struct ow_clean_bucket *bank[OW_LDA_BANKS_MAX];
	size_t buckets[OW_LDA_BANKS_MAX];
	for (uint32_t k = 0; k < lda->params.banks; k++) {
		bank[k] = row + lda->first[k];
		buckets[k] = lda->params.bank[k].buckets;
	}
	ow_paired_stddev(bank, buckets, lda->params.banks, mean_ns, ret_stddev);
}

int ow_lda_estimate_with(const struct ow_view *a, const struct ow_view *b, const struct ow_lda_options *options,
                         struct ow_estimate *ret_estimate)
{
	const struct ow_lda *la = (const struct ow_lda *)a->synopsis, *lb = (const struct ow_lda *)b->synopsis;
	uint32_t count = la->first[la->params.banks];
	struct ow_clean_bucket *row = calloc(count, sizeof *row);
	int64_t *difference = calloc(count, sizeof *difference);
	if (!row || !difference) {
		free(row);
		free(difference);
		return -ENOMEM;
	}
	compare_rows(la, lb, count, options->plus, row, difference);

	struct ow_estimate e;
	ow_estimate_none(&e, OW_REASON_SUMS_ONLY);
	struct ow_losses losses = {0};
	for (uint32_t k = 0; k < la->params.banks; k++)
		ow_losses_add_bank(&losses, difference + la->first[k], la->params.bank[k].buckets,
		                   ow_lda_share(&la->params, k));
	ow_losses_values(&losses, (double)a->packets, (double)b->packets, &e);

	struct ow_centred fit;
	double common = (double)a->packets - e.lost.value;
	ow_centred_fit(row, count, live_banks(la, row), &fit);
	e.useful = ow_packets_of(fit.samples);
	ow_centred_mean(&fit, common, false, &e.mean_ns);
	if (options->paper_stddev && fit.samples > 0)
		published_stddev(la, row, fit.mean_ns, &e.stddev_ns);
	else
		ow_centred_stddev(&fit, common, false, &e.stddev_ns);
	/* Keep the value, but its error has no bound. */
	if (ow_losses_disordered(&losses, (double)a->packets, (double)b->packets) &&
	    mixed_buckets(la, row, &e) > MIXED_MAX) {
		e.mean_ns.low = -INFINITY;
		e.stddev_ns.low = 0;
		e.mean_ns.high = e.stddev_ns.high = INFINITY;
	}
	free(row);
	free(difference);
	*ret_estimate = e;
	return 0;
}

int ow_lda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	return ow_lda_estimate_with(a, b, &(struct ow_lda_options){0}, ret_estimate);
}
