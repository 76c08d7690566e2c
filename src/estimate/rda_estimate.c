/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates from two RDAs or sRDAs. rda_estimate.h has the formulas; those of the papers include their errata. */
#include "estimate/rda_estimate.h"

#include "base/array.h"
#include "base/clock.h"
#include "estimate/distribution.h"
#include "estimate/paired.h"
#include "reconcile/keyset.h"
#include "synopsis/copies.h"
#include "synopsis/minhash.h"
#include "synopsis/rda.h"
#include "synopsis/srda.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* With a larger share of dirty cells, their number is not informative: a cell with 5 packets looks like one with 6. */
#define DIRTY_MAX 0.95

/* With fewer degrees of freedom, neither the kurtosis of a sample nor the interval is reliable. */
#define FREEDOM_MIN 4

/* The shape of a table of either kind. */
struct shape {
	bool srda;
	uint32_t k;   /* cells of a packet */
	size_t cells; /* all */
	size_t bank;  /* cells of a bank; all for sRDA */
};

/* Two tables after repair, and which of their cells agree. */
struct repaired {
	struct shape shape;
	struct ow_synopsis *a, *b;
	bool *clean;                    /* for each cell; empty ones that agree are clean */
	bool all;                       /* all cells are clean */
	size_t ambiguous;               /* common packets that were left out because their copies differ in number */
	uint64_t *copy;                 /* their ids */
	struct ow_clean_bucket *bucket; /* the clean cells with packets, bank after bank */
	size_t *in_bank;                /* number of them in each bank */
	size_t buckets;                 /* B */
	size_t banks;
};

/* How often the common packets are in clean cells. */
struct weights {
	double packets, sum, squares; /* w > 0, sum w, sum w^2 */
};

static struct shape shape_of(const struct ow_synopsis *s)
{
	if (s->ops->kind == OW_SYNOPSIS_SRDA) {
		const struct ow_srda_params *p = &ow_srda_of(s)->params;
		return (struct shape){true, p->hashes, p->cells, p->cells};
	}
	const struct ow_rda_params *p = &ow_rda_of(s)->params;
	return (struct shape){false, p->banks, (size_t)p->banks * p->cells, p->cells};
}

/* Returns whether both points have the same packets in the cell, with their number and delay. */
static bool clean_cell(const struct repaired *t, size_t i, struct ow_clean_bucket *ret_bucket)
{
	if (t->shape.srda) {
		const struct ow_srda_cell *x = ow_srda_of(t->a)->cell + i, *y = ow_srda_of(t->b)->cell + i;
		*ret_bucket = (struct ow_clean_bucket){(int64_t)(y->ts - x->ts), x->count};
		return x->id == y->id && x->idsh == y->idsh && x->count == y->count;
	}
	const struct ow_rda_cell *x = ow_rda_of(t->a)->cell + i, *y = ow_rda_of(t->b)->cell + i;
	*ret_bucket = (struct ow_clean_bucket){(int64_t)(y->ts - x->ts), x->count};
	return x->id == y->id && x->count == y->count;
}

static void repaired_done(struct repaired *t)
{
	ow_synopsis_free(t->a);
	ow_synopsis_free(t->b);
	free(t->clean);
	free(t->copy);
	free(t->bucket);
	free(t->in_bank);
}

/* An id as stored in cells. */
static uint64_t held_id(const struct ow_synopsis *synopsis, uint64_t id)
{
	return synopsis->ops->kind == OW_SYNOPSIS_RDA ? ow_rda_id(ow_rda_of(synopsis), id) : id;
}

/* From the last packet to the first, so that one pass follows a chain of copies to its start. */
int ow_rda_ambiguous(const struct ow_view *a, const struct ow_rda_peel *peel, uint64_t **ret_ids, size_t *ret_count)
{
	struct ow_keyset set = {0};
	uint64_t *ids = NULL;
	size_t room = 0, count = 0;
	int r = 0;
	for (size_t i = 0; i < peel->losts && r == 0; i++)
		r = ow_keyset_add(&set, peel->lost[i]);
	for (size_t i = 0; i < peel->extras && r == 0; i++)
		r = ow_keyset_add(&set, peel->extra[i]);
	for (size_t i = peel->losts + peel->extras ? a->cached : 0; i-- > 0 && r == 0;) {
		uint64_t id = held_id(a->synopsis, a->cache[i].id);
		if (!ow_keyset_has(&set, held_id(a->synopsis, ow_copy_next(a->cache[i].id))) || ow_keyset_has(&set, id))
			continue;
		r = OW_GROW(ids, room, count + 1);
		if (r == 0) {
			ids[count++] = id;
			r = ow_keyset_add(&set, id);
		}
	}
	ow_keyset_done(&set);
	if (r < 0) {
		free(ids);
		return r;
	}
	*ret_ids = ids;
	*ret_count = count;
	return 0;
}

/*
 * Erases the differences that were found from copies of the tables, if the caches have them, and lists the clean cells.
 */
static int repair(const struct ow_view *a, const struct ow_view *b, const struct ow_rda_peel *peel, struct repaired *t)
{
	size_t erased;
	int r = ow_rda_copy(a->synopsis, &t->a);
	if (r == 0)
		r = ow_rda_copy(b->synopsis, &t->b);
	if (r == 0)
		r = ow_rda_erase(t->a, peel->lost, peel->losts, a->cache, a->cached, &erased);
	if (r == 0)
		r = ow_rda_erase(t->b, peel->extra, peel->extras, b->cache, b->cached, &erased);
	if (r == 0 && a->cache && b->cache)
		r = ow_rda_ambiguous(a, peel, &t->copy, &t->ambiguous);
	if (r == 0)
		r = ow_rda_erase(t->a, t->copy, t->ambiguous, a->cache, a->cached, &erased);
	if (r == 0)
		r = ow_rda_erase(t->b, t->copy, t->ambiguous, b->cache, b->cached, &erased);
	if (r < 0)
		return r;
	t->shape = shape_of(a->synopsis);
	t->banks = t->shape.cells / t->shape.bank;
	t->clean = malloc(t->shape.cells * sizeof *t->clean);
	t->bucket = malloc(t->shape.cells * sizeof *t->bucket);
	t->in_bank = calloc(t->banks, sizeof *t->in_bank);
	if (!t->clean || !t->bucket || !t->in_bank)
		return -ENOMEM;
	t->all = true;
	for (size_t i = 0; i < t->shape.cells; i++) {
		struct ow_clean_bucket *bucket = t->bucket + t->buckets;
		t->clean[i] = clean_cell(t, i, bucket);
		t->all &= t->clean[i];
		/* A count above 2^31 is negative, so not a number of packets. */
		if (t->clean[i] && bucket->packets && bucket->packets <= INT32_MAX) {
			t->buckets++;
			t->in_bank[i / t->shape.bank]++;
		}
	}
	return 0;
}

static unsigned clean_cells_of(const struct repaired *t, uint64_t id)
{
	uint32_t place[OW_SRDA_HASHES_MAX];
	unsigned clean = 0;
	if (t->shape.srda) {
		ow_srda_places(ow_srda_of(t->a), id, place);
		for (uint32_t j = 0; j < t->shape.k; j++)
			clean += t->clean[place[j]];
		return clean;
	}
	const struct ow_rda *rda = ow_rda_of(t->a);
	id = ow_rda_id(rda, id);
	for (uint32_t j = 0; j < t->shape.k; j++)
		clean += t->clean[j * t->shape.bank + ow_rda_place(rda, id, j)];
	return clean;
}

static void weigh(struct weights *weights, unsigned clean, double sign)
{
	weights->packets += clean ? sign : 0;
	weights->sum += sign * clean;
	weights->squares += sign * clean * clean;
}

/*
 * Counted in A's cache, without the packets that were found to be lost (they are in clean cells, but no longer part of
 * the sums). Without a cache: the expectation for independent hashes; a packet is in the clean cells of bank l with
 * probability S_l/R.
 */
static void weigh_packets(const struct repaired *t, const struct ow_view *a, const struct ow_rda_peel *peel,
                          double common, struct weights *ret_weights)
{
	struct weights w = {0};
	if (a->cache && a->cached) {
		for (size_t i = 0; i < a->cached; i++)
			weigh(&w, clean_cells_of(t, a->cache[i].id), 1);
		for (size_t i = 0; i < peel->losts; i++)
			weigh(&w, clean_cells_of(t, peel->lost[i]), -1);
		for (size_t i = 0; i < t->ambiguous; i++)
			weigh(&w, clean_cells_of(t, t->copy[i]), -1);
	} else {
		double unseen = 1, variance = 0, mean = 0;
		size_t at = 0;
		for (uint32_t j = 0; j < t->shape.k; j++) {
			double samples = 0;
			for (size_t i = 0; !t->shape.srda && i < t->in_bank[j]; i++)
				samples += (double)t->bucket[at++].packets;
			for (size_t i = 0; t->shape.srda && i < t->buckets; i++)
				samples += (double)t->bucket[i].packets / t->shape.k;
			double f = common > 0 ? fmin(1, samples / common) : 0;
			unseen *= 1 - f;
			variance += f * (1 - f);
			mean += f;
		}
		w = (struct weights){common * (1 - unseen), common * mean, common * (variance + mean * mean)};
	}
	*ret_weights = w;
}

struct moments {
	double samples; /* sum of C_j */
	double mean_ns;
	double inverse;  /* sum of 1/C_j */
	double freedom;  /* B - k */
	double variance; /* s^2 */
	double kurtosis;
};

/* e_j = D_j - mu C_j. The integer part of mu is subtracted in integers, so a large clock offset costs no precision. */
static void fit(const struct repaired *t, struct moments *ret_moments)
{
	struct moments m = {.freedom = (double)t->buckets - t->shape.k};
	__int128 delay = 0, packets = 0;
	for (size_t i = 0; i < t->buckets; i++) {
		delay += t->bucket[i].delay_ns;
		packets += (__int128)t->bucket[i].packets;
		m.inverse += 1 / (double)t->bucket[i].packets;
	}
	m.samples = (double)packets;
	int64_t whole = packets ? (int64_t)(delay / packets) : 0;
	double rest = packets ? (double)(delay - whole * packets) / m.samples : 0, second = 0, fourth = 0;
	m.mean_ns = (double)whole + rest;
	for (size_t i = 0; i < t->buckets; i++) {
		const struct ow_clean_bucket *b = t->bucket + i;
		uint64_t off = (uint64_t)b->delay_ns - (uint64_t)whole * b->packets;
		double e = (double)(int64_t)off - rest * (double)b->packets, e2 = e * e / (double)b->packets;
		second += e2;
		fourth += e2 * e2;
	}
	double buckets = (double)t->buckets;
	/* sigma^2 = 1/(B-k) sum e_j^2/C_j */
	if (m.freedom > 0)
		m.variance = second / m.freedom;
	/* kappa = C (mean(e^4/C^2) / s^4 - 3)+ */
	if (second > 0)
		m.kurtosis = fmax(0, m.samples / buckets * (fourth / buckets / pow(second / buckets, 2) - 3));
	*ret_moments = m;
}

static void mean_value(const struct repaired *t, const struct moments *m, double unseen, struct ow_value *ret_mean)
{
	if (m->samples <= 0) {
		*ret_mean =
			(struct ow_value){.reason = t->all ? OW_REASON_NO_COMMON_PACKET : OW_REASON_NO_COMMON_BUCKET};
		return;
	}
	double error = 0;
	bool exact = t->all && !t->ambiguous;
	if (!exact)
		error = m->freedom > 0 ? ow_student_975(fmax(1, m->freedom)) * sqrt(m->variance * unseen) : INFINITY;
	*ret_mean = (struct ow_value){exact ? OW_VALUE_EXACT : OW_VALUE_ESTIMATED, m->mean_ns, m->mean_ns - error,
	                              m->mean_ns + error, OW_NO_REASON};
}

static void stddev_value(const struct repaired *t, const struct moments *m, double unseen, double common,
                         struct ow_value *ret_stddev)
{
	if (m->freedom <= (t->all ? 0 : FREEDOM_MIN)) {
		*ret_stddev = (struct ow_value){.reason = OW_REASON_FEW_COMMON_BUCKETS};
		return;
	}
	double buckets = (double)t->buckets;
	double uneven = fmax(0, m->inverse / (buckets * buckets) - 1 / m->samples);
	double v = 2 * (1 - m->inverse / buckets) / m->freedom + (m->kurtosis + 2) * (unseen + uneven);
	/* The variance of the measured packets, not of a larger population: n - 1 of n. */
	double variance = m->variance * (common > 1 ? 1 - 1 / common : 1), nu = v > 0 ? fmax(1, 2 / v) : INFINITY;
	struct ow_value value = {OW_VALUE_ESTIMATED, sqrt(variance), sqrt(variance), sqrt(variance), OW_NO_REASON};
	if (isfinite(nu)) {
		value.low = sqrt(variance * nu / ow_chi2_quantile(0.975, nu));
		value.high = sqrt(variance * nu / ow_chi2_quantile(0.025, nu));
	}
	*ret_stddev = value;
}

static void published_stddev(const struct repaired *t, double mean_ns, struct ow_value *ret_stddev)
{
	const struct ow_clean_bucket *bank[OW_RDA_BANKS_MAX];
	size_t at = 0;
	for (size_t i = 0; i < t->banks; i++) {
		bank[i] = t->bucket + at;
		at += t->in_bank[i];
	}
	ow_paired_stddev(bank, t->in_bank, (unsigned)t->banks, mean_ns, ret_stddev);
}

/* lambda with 1 - e^-lambda (1 + lambda) = share; share < 1 */
static double core_density(double share)
{
	double low = 0, high = 50;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;
		if (1 - exp(-middle) * (1 + middle) < share)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Estimates the number of packets that were not decoded, and its standard deviation. */
static void remaining(const struct ow_rda_peel *peel, const struct shape *shape, double net_all, double *ret_remaining,
                      double *ret_deviation)
{
	double cells = (double)shape->cells, k = shape->k, dirty = (double)peel->dirty;
	double found = (double)peel->losts + (double)peel->extras;
	/* E sum Delta^2 = k d + (net^2 - d) k^2/M; collisions of two packets give it the variance 2 d^2 k^2/M. */
	double all = fmax(0, (peel->squares - net_all * net_all * k * k / cells) / (k - fmin(k - 0.5, k * k / cells)));
	double by_squares = fmax(0, all - found), squares_deviation = all * sqrt(2 / cells);
	*ret_remaining = by_squares;
	*ret_deviation = squares_deviation;
	if (dirty >= DIRTY_MAX * cells)
		return;
	double lambda = core_density(dirty / cells), none = exp(-lambda);
	double core = lambda * (1 - none) * cells / k;
	/*
	 * Cells have x = Poisson(lambda) packets; y = x if x >= 2, else 0. The sum of y is estimated from the number of
	 * cells with y > 0 by a curve of slope s, so its variance is M var(y - s [y > 0]).
	 */
	double p = dirty / cells, y = lambda * (1 - none), y2 = lambda * (lambda + 1 - none);
	double s = (1 - none + lambda * none) / (lambda * none);
	double deviation = sqrt(cells * fmax(0, y2 - y * y - 2 * s * y * (1 - p) + s * s * p * (1 - p))) / k;
	if (deviation < squares_deviation) {
		*ret_remaining = core;
		*ret_deviation = deviation;
	}
}

/* found + (r +- net)/2, r >= least */
static struct ow_value about(double found, double r, double deviation, double net, double least)
{
	double low = fmax(least, r - OW_NORMAL_975 * deviation), high = fmax(least, r + OW_NORMAL_975 * deviation);
	r = fmax(least, r);
	return (struct ow_value){OW_VALUE_ESTIMATED, found + fmax(0, (r + net) / 2),
	                         found + fmax(0, floor((low + net) / 2)), found + fmax(0, ceil((high + net) / 2)),
	                         OW_NO_REASON};
}

static void loss_values(const struct ow_view *a, const struct ow_view *b, const struct ow_rda_peel *peel,
                        const struct shape *shape, struct ow_estimate *e)
{
	double losts = (double)peel->losts, extras = (double)peel->extras, sent = (double)a->packets;
	if (peel->complete) {
		e->lost = ow_value_exact(losts);
		e->extra = ow_value_exact(extras);
	} else {
		double r, deviation, net = (double)peel->net;
		remaining(peel, shape, (double)b->packets - sent, &r, &deviation);
		/* A cell that was not decoded has two packets or more, and there are at least as many packets as the
		 * counts differ. */
		double least = fmax(fabs(net), ceil(2 * (double)peel->dirty / shape->k));
		e->lost = about(losts, r, deviation, -net, least);
		e->extra = about(extras, r, deviation, net, least);
	}
	if (sent > 0)
		e->loss_ratio =
			(struct ow_value){e->lost.status, fmin(1, e->lost.value / sent), fmin(1, e->lost.low / sent),
		                          fmin(1, e->lost.high / sent), OW_NO_REASON};
	else
		e->loss_ratio = (struct ow_value){.reason = OW_REASON_NO_PACKET_SENT};
}

int ow_rda_estimate_with(const struct ow_view *a, const struct ow_view *b,
                         const struct ow_rda_estimate_options *options, struct ow_estimate *ret_estimate)
{
	struct ow_rda_peel peel;
	int r = ow_rda_peel(a->synopsis, b->synopsis, &options->peel, &peel);
	if (r < 0)
		return r;
	struct repaired t = {0};
	int64_t begin_ns = ow_clock_steady_ns();
	r = repair(a, b, &peel, &t);
	if (r == 0) {
		struct ow_estimate e;
		ow_estimate_none(&e, OW_REASON_SUMS_ONLY);
		e.erase_ns = ow_clock_steady_ns() - begin_ns;
		e.complete = peel.complete;
		loss_values(a, b, &peel, &t.shape, &e);
		struct moments m;
		fit(&t, &m);
		double common = t.all ? m.samples / t.shape.k : fmax(0, (double)a->packets - e.lost.value), unseen = 0;
		struct weights w = {.packets = common};
		if (t.all && t.ambiguous) {
			common += (double)t.ambiguous;
			unseen = w.packets > 0 ? 1 / w.packets - 1 / common : 0;
		}
		if (!t.all) {
			weigh_packets(&t, a, &peel, common, &w);
			common = fmax(common, w.packets);
			/* 1/S - 1/R */
			unseen = w.sum > 0 ? fmax(0, w.squares / (w.sum * w.sum) - 1 / common) : 0;
		}
		e.useful = ow_packets_of(w.packets);
		mean_value(&t, &m, unseen, &e.mean_ns);
		if (options->published)
			published_stddev(&t, m.mean_ns, &e.stddev_ns);
		else
			stddev_value(&t, &m, unseen, common, &e.stddev_ns);
		/* B receives the ids of the packets that it must erase, and sends back their times. */
		e.more_bytes = 16 * (uint64_t)(peel.extras + t.ambiguous);
		e.round_trips = e.more_bytes > 0;
		*ret_estimate = e;
	}
	repaired_done(&t);
	ow_rda_peel_done(&peel);
	return r;
}

int ow_rda_estimate(const struct ow_view *a, const struct ow_view *b, struct ow_estimate *ret_estimate)
{
	static const struct ow_rda_estimate_options defaults;
	return ow_rda_estimate_with(a, b, &defaults, ret_estimate);
}

int ow_minhash_difference(const struct ow_synopsis *a, const struct ow_synopsis *b, uint64_t packets_a,
                          uint64_t packets_b, struct ow_value *ret_differences)
{
	if (a->ops->kind != OW_SYNOPSIS_MINHASH || ow_synopsis_comparable(a, b, NULL) < 0)
		return -EINVAL;
	uint32_t used, same;
	ow_minhash_compare(a, b, &used, &same);
	double packets = (double)packets_a + (double)packets_b;
	if (!used) {
		*ret_differences = ow_value_exact(0);
		if (packets > 0)
			*ret_differences = (struct ow_value){.reason = OW_REASON_SYNOPSES_SAW_NONE};
		return 0;
	}
	/* (1 - J)/(1 + J) (n_A + n_B), and Wilson's interval for 1 - J. */
	double n = used, q = (n - same) / n, z2 = OW_NORMAL_975 * OW_NORMAL_975;
	double middle = (q + z2 / (2 * n)) / (1 + z2 / n);
	double half = OW_NORMAL_975 / (1 + z2 / n) * sqrt(q * (1 - q) / n + z2 / (4 * n * n));
	double low = fmax(0, middle - half), high = fmin(1, middle + half);
	*ret_differences = (struct ow_value){OW_VALUE_ESTIMATED, q / (2 - q) * packets, low / (2 - low) * packets,
	                                     high / (2 - high) * packets, OW_NO_REASON};
	return 0;
}
