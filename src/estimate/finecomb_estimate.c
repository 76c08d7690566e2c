/* SPDX-License-Identifier: Apache-2.0 */
/* Mean, standard deviation and loss from two FineCombs. */
#include "estimate/finecomb_estimate.h"

#include "estimate/distribution.h"
#include "estimate/losses.h"
#include "estimate/paired.h"
#include "reconcile/finecomb_recover.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SPOILT UINT64_MAX

/* What the buckets show about missing and drifted packets. All but the shares are sampled packets. */
struct evidence {
	double share;          /* p: share of the packets that are sampled */
	double clean, spoilt;  /* e, g: p times the share of clean and of dirty buckets, over the banks; p = e + g */
	double back, out;      /* repaired packets: drifted out of the interval, and into it */
	double net;            /* sum C_A - C_B before repair */
	double left, left_abs; /* the same after repair, and without sign */
	bool complete;         /* every packet is sampled and every bucket clean */
};

static void weigh_bank(const struct ow_recovered_bucket *bucket, uint32_t count, double share, struct evidence *e)
{
	double clean = 0;
	for (uint32_t i = 0; i < count; i++) {
		clean += bucket[i].clean;
		e->complete = e->complete && bucket[i].clean;
		e->back += bucket[i].back;
		e->out += bucket[i].out;
		e->left += (double)bucket[i].difference;
		e->left_abs += fabs((double)bucket[i].difference);
	}
	e->share += share;
	e->clean += share * clean / count;
	e->spoilt += share * (1 - clean / count);
}

static struct evidence weigh(const struct ow_finecomb *f, const struct ow_recovery *recovery)
{
	struct evidence e = {.complete = f->params.bank[0].limit == UINT32_MAX};
	for (uint32_t k = 0; k < f->params.banks; k++)
		weigh_bank(recovery->bucket + f->first[k], f->params.bank[k].buckets, ow_finecomb_share(&f->params, k),
		           &e);
	e.net = e.left + e.back - e.out;
	return e;
}

/*
 * Lost packets less extra ones, apart from those in the stash. The dirty buckets count them, less the drift that they
 * hide, which has the same density there as in clean buckets:
 *
 *   direct = (left - g drift)/p,   drift = (back - out)/e.
 *
 * The sampling error of lost and drifted packets together is known exactly: net/p - (sent - received). The share of it
 * that is due to lost ones, theta = L/(L + D) for D drifted, is subtracted. Without drift the result is sent -
 * received.
 */
static double missing(const struct evidence *e, double sent, double received, double *ret_variance)
{
	*ret_variance = 0;
	if (e->clean <= 0)
		return sent - received;
	double p = fmin(1, e->share), drift = (e->back - e->out) / e->clean, drifted = (e->back + e->out) / e->clean;
	double lost = e->left_abs / p, all = lost + drifted;
	double direct = (e->left - e->spoilt * drift) / p, theta = all > 0 ? lost / all : 1;
	/* First sampling, then the drift that dirty buckets hide. */
	if (all > 0)
		*ret_variance = (1 - p) / p * lost * drifted / all +
		                drifted * (e->spoilt + e->spoilt * e->spoilt / e->clean) / (p * p);
	return direct - theta * (e->net / p - (sent - received));
}

static void widen(struct ow_value *v, double shift, double error)
{
	v->value += shift;
	v->low = fmax(0, v->low + shift - error);
	v->high += shift + error;
}

static void spread(struct ow_value *v, double value, double variance)
{
	double error = OW_NORMAL_975 * sqrt(variance);
	*v = (struct ow_value){OW_VALUE_ESTIMATED, fmax(0, value), fmax(0, value - error), fmax(0, value + error),
	                       OW_NO_REASON};
}

/* Uses the counters before repair. After repair they have no Poisson distribution, because it removes drift only from
 * buckets without losses. */
static int gather(const struct ow_finecomb *f, const struct ow_recovery *recovery, struct ow_losses *losses)
{
	int64_t *difference = malloc(recovery->buckets * sizeof *difference);
	if (!difference)
		return -ENOMEM;
	for (uint32_t i = 0; i < recovery->buckets; i++) {
		const struct ow_recovered_bucket *b = &recovery->bucket[i];
		difference[i] = b->clean ? (int64_t)b->back - b->out : b->difference;
	}
	for (uint32_t k = 0; k < f->params.banks; k++)
		ow_losses_add_bank(losses, difference + f->first[k], f->params.bank[k].buckets,
		                   ow_finecomb_share(&f->params, k));
	free(difference);
	return 0;
}

static int lost_and_extra(const struct ow_finecomb *f, const struct ow_recovery *recovery, const struct evidence *ev,
                          double sent, double received, struct ow_estimate *e)
{
	struct ow_losses losses = {0};
	int r = gather(f, recovery, &losses);
	if (r < 0)
		return r;
	double clean = fmax(ev->clean, 1e-12), out = ev->out / clean, back = ev->back / clean,
	       unseen = fmax(0, 1 / clean - 1);
	losses.known = out; /* drifted in */
	double variance, net = missing(ev, sent, received, &variance);
	/* A second estimate: sent - received = lost + drifted out - extra, with extra from the variance of the
	 * counters. */
	double extra_variance, extra = ow_losses_extra(&losses, &extra_variance);
	double other = sent - received - back + extra, other_variance = extra_variance + back * unseen;
	bool disordered = ow_losses_disordered(&losses, sent, sent - net);
	if (disordered) {
		/* More packets drifted than the stash shows, and dirty buckets hide more than clean ones. */
		spread(&e->lost, other, other_variance);
		spread(&e->extra, fmax(extra, received - sent), extra_variance);
		/*
		 * If packets drifted out, too, as many of them may be missing in the stash as of those that drifted in.
		 */
		if (ev->back > 0)
			e->lost.low = fmax(0, e->lost.low - fmax(0, extra - out));
	} else if (other_variance < variance) {
		spread(&e->lost, other, other_variance);
		spread(&e->extra, out, out * unseen);
	} else {
		/* A small negative value is noise. A larger one is due to extra packets that did not drift in, such as
		 * copies. */
		if (net < 0 && net > -OW_NORMAL_975 * sqrt(variance))
			net = 0;
		ow_losses_values(&losses, sent, sent - net, e);
		widen(&e->lost, 0, OW_NORMAL_975 * sqrt(variance));
		widen(&e->extra, out, OW_NORMAL_975 * sqrt(out * unseen));
	}
	if (sent > 0)
		e->loss_ratio =
			(struct ow_value){OW_VALUE_ESTIMATED, fmin(1, e->lost.value / sent),
		                          fmin(1, e->lost.low / sent), fmin(1, e->lost.high / sent), OW_NO_REASON};
	else
		e->loss_ratio = (struct ow_value){.reason = OW_REASON_NO_PACKET_SENT};
	return 0;
}

/* The paper's estimate: sum (C_A - C_B) / sum C_A. */
static void published_loss(const struct ow_recovery *recovery, const struct evidence *ev, bool where, double sent,
                           struct ow_estimate *e)
{
	double lost = 0, packets = 0;
	for (uint32_t i = 0; i < recovery->buckets; i++) {
		const struct ow_recovered_bucket *b = &recovery->bucket[i];
		if (where && b->difference < 0)
			continue;
		lost += (double)b->difference;
		packets += (double)b->packets;
	}
	if (packets <= 0) {
		e->lost = e->loss_ratio = (struct ow_value){.reason = OW_REASON_NO_PACKET_SAMPLED};
		return;
	}
	double ratio = lost / packets, p = fmin(1, ev->share);
	double error = OW_NORMAL_975 * sqrt(fmax(0, ratio * sent) * (1 - p) / p) / fmax(sent, 1);
	e->loss_ratio = (struct ow_value){OW_VALUE_ESTIMATED, ratio, ratio - error, ratio + error, OW_NO_REASON};
	e->lost = (struct ow_value){OW_VALUE_ESTIMATED, ratio * sent, (ratio - error) * sent, (ratio + error) * sent,
	                            OW_NO_REASON};
}

static void exactly(struct ow_value *v, double value)
{
	*v = ow_value_exact(value);
}

/* Mean and standard deviation over the clean buckets of all banks. */
static int delays(const struct ow_finecomb *f, const struct ow_recovery *recovery, double common, bool complete,
                  bool published, struct ow_estimate *e)
{
	struct ow_clean_bucket *row = malloc(recovery->buckets * sizeof *row);
	if (!row)
		return -ENOMEM;
	const struct ow_clean_bucket *bank[OW_FINECOMB_BANKS_MAX];
	size_t buckets[OW_FINECOMB_BANKS_MAX];
	unsigned live = 0;
	for (uint32_t k = 0; k < f->params.banks; k++) {
		bool any = false;
		for (uint32_t i = f->first[k]; i < f->first[k + 1]; i++) {
			const struct ow_recovered_bucket *b = &recovery->bucket[i];
			row[i] = (struct ow_clean_bucket){b->delay_ns, b->clean ? b->packets : SPOILT};
			any = any || (row[i].packets && row[i].packets <= INT64_MAX);
		}
		live += any;
		bank[k] = row + f->first[k];
		buckets[k] = f->params.bank[k].buckets;
	}
	struct ow_centred fit;
	ow_centred_fit(row, recovery->buckets, live, &fit);
	e->useful = ow_packets_of(fit.samples);
	ow_centred_mean(&fit, common, complete, &e->mean_ns);
	if (published && fit.samples > 0)
		ow_paired_stddev(bank, buckets, f->params.banks, fit.mean_ns, &e->stddev_ns);
	else
		ow_centred_stddev(&fit, common, complete, &e->stddev_ns);
	free(row);
	return 0;
}

int ow_finecomb_estimate_with(const struct ow_view *a, const struct ow_view *b,
                              const struct ow_finecomb_options *options, struct ow_estimate *ret_estimate)
{
	const struct ow_finecomb *fa = (const struct ow_finecomb *)a->synopsis;
	const struct ow_finecomb *fb = (const struct ow_finecomb *)b->synopsis;
	struct ow_recovery recovery;
	struct ow_estimate e;
	int r = ow_finecomb_recover(fa, fb, !options->no_stash, &recovery);
	if (r < 0)
		return r;
	ow_estimate_none(&e, OW_REASON_SUMS_ONLY);
	struct evidence ev = weigh(fa, &recovery);
	double sent = (double)a->packets;
	r = lost_and_extra(fa, &recovery, &ev, sent, (double)b->packets, &e);
	if (options->paper_loss)
		published_loss(&recovery, &ev, options->paper_where, sent, &e);
	e.complete = ev.complete;
	if (e.complete) {
		exactly(&e.lost, 0);
		exactly(&e.extra, ev.out);
		if (sent > 0)
			exactly(&e.loss_ratio, 0);
	}
	if (!r)
		r = delays(fa, &recovery, sent - e.lost.value, e.complete, options->paper_stddev, &e);
	ow_recovery_done(&recovery);
	if (!r)
		*ret_estimate = e;
	return r;
}

int ow_finecomb_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	return ow_finecomb_estimate_with(a, b, &(struct ow_finecomb_options){0}, ret_estimate);
}
