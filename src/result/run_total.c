/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over the intervals of a run. Single delays are merged by sample shift, so that they count as one sample,
 * whatever their interval; means and standard deviations of estimated intervals are pooled.
 */
#include "result/run_total.h"

#include "estimate/pool.h"
#include "estimate/sample.h"
#include "result/cause.h"
#include "result/fields.h"
#include "result/result_clock.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHIFTS 64

struct ow_run_total {
	struct ow_interval_result sum;
	uint64_t intervals, missing, unknown, partial;
	uint64_t synopses;    /* intervals with a cost */
	double lost, decided; /* weighted by the packets that each stands for */
	double doubted;       /* lost packets of unsampled intervals may be so many more or less */
	double covered;       /* packets whose fate is known, */
	double sent;          /* and those sent, including missed ones */
	uint64_t blind;       /* unknown intervals whose packets were not all counted */
	bool one_of_several;  /* lost packets are known of all peers together only */
	struct ow_delays *known[SHIFTS];
	struct ow_pool *estimated;
	struct ow_pool *scratch;
};

int ow_run_total_create(struct ow_run_total **ret_total)
{
	struct ow_run_total *total = calloc(1, sizeof *total);
	if (!total)
		return -ENOMEM;
	if (ow_pool_create(&total->estimated) < 0 || ow_pool_create(&total->scratch) < 0 ||
	    ow_delays_create(&total->known[0]) < 0) {
		ow_run_total_free(total);
		return -ENOMEM;
	}
	*ret_total = total;
	return 0;
}

void ow_run_total_free(struct ow_run_total *total)
{
	if (!total)
		return;
	for (int i = 0; i < SHIFTS; i++)
		ow_delays_free(total->known[i]);
	ow_pool_free(total->estimated);
	ow_pool_free(total->scratch);
	free(total);
}

void ow_run_total_gap(struct ow_run_total *total, uint64_t intervals)
{
	total->missing += intervals;
}

static void add_known(struct ow_run_total *total, unsigned shift, const struct ow_delays *known)
{
	struct ow_delays **slot = total->known + (shift < SHIFTS ? shift : SHIFTS - 1);
	if (!ow_delays_samples(known))
		return;
	/* Without memory for their own histogram, less is known about their error. */
	if (!*slot && ow_delays_create(slot) < 0)
		ow_pool_add_delays(total->estimated, known, exp2(shift));
	else
		ow_delays_merge(*slot, known);
}

/*
 * Whether the packets that were sent in an unknown interval were not counted: there are none, or the sending point itself
 * was away for a part of it.
 */
static bool sent_uncounted(const struct ow_interval_result *r)
{
	size_t name = strlen(r->from);
	enum ow_cause cause = ow_cause_of(r->cause);
	bool away = cause >= OW_CAUSE_INTERFACE_DOWN && cause <= OW_CAUSE_INTERFACE_REPLACED;
	return r->total_sent == 0 || (away && strncmp(r->cause, r->from, name) == 0 && r->cause[name] == ' ');
}

/* What the bounds of an unsampled loss are wider by than its packets without a known fate. */
static double doubted_of(const struct ow_interval_result *r)
{
	const struct ow_value *loss = &r->loss_ratio;
	if (loss->status == OW_VALUE_NONE || r->sample_shift)
		return 0;
	double sent = (double)r->sent;
	return fmax(0, fmax(sent * loss->high - (double)(r->lost + r->pending), (double)r->lost - sent * loss->low));
}

void ow_run_total_add(struct ow_run_total *total, const struct ow_interval_result *first,
                      const struct ow_interval_result *final, bool full, const int64_t *sample, size_t samples,
                      const struct ow_delays *known)
{
	struct ow_interval_result *sum = &total->sum;
	if (!total->intervals++) {
		ow_fields_add(sum, final, OW_SUM_BIT(OW_SUM_FIRST));
		sum->exact = true;
		sum->clock_from = final->clock_from;
		sum->clock_to = final->clock_to;
	}
	sum->length_ns = final->start_ns + final->length_ns - sum->start_ns;
	ow_fields_add(sum, final, OW_SUM_BIT(OW_SUM_WORSE));
	total->partial += final->status == OW_RESULT_PARTIAL;
	if (final->status == OW_RESULT_UNKNOWN) {
		total->unknown++;
		total->blind += sent_uncounted(final);
		total->sent += sent_uncounted(final) ? 0 : ow_result_packets_sent(final);
		sum->total_sent += final->total_sent;
		sum->total_received += final->total_received;
		sum->ring_drops_from += final->ring_drops_from;
		sum->ring_drops_to += final->ring_drops_to;
		return;
	}
	struct ow_interval_result added = *final;
	ow_result_clock_meet(sum, &added, !total->synopses);
	memcpy(sum->clock_method, added.clock_method, sizeof sum->clock_method);
	ow_fields_add(sum, &added, ~(OW_SUM_BIT(OW_SUM_FIRST) | OW_SUM_BIT(OW_SUM_WORSE)));
	total->synopses++;
	total->one_of_several |= final->loss_ratio.reason == OW_REASON_OTHER_PEERS;
	double weight = exp2(final->sample_shift);
	total->lost += weight * (double) final->lost;
	total->decided += weight * (double)(final->sent - final->pending);
	total->doubted += doubted_of(final);
	double covered = (double)(final->sent - final->pending);
	total->covered += covered;
	/* In a result of the peer, only the coverage shows what it missed. */
	total->sent += covered > 0 && final->coverage > 0 ? covered / final->coverage : ow_result_packets_sent(final);
	if (!ow_result_clock_known(final))
		return;
	add_known(total, final->sample_shift, known);
	if (full)
		return;
	struct ow_pool_group group = {(double)(first->matched - first->ambiguous) * weight, first->mean_ns,
	                              first->stddev_ns, sample, samples};
	ow_pool_add(total->estimated, &group);
}

void ow_interval_results_exact(const struct ow_delays *delays, struct ow_interval_result *result)
{
	struct ow_delay d;
	ow_delays_summary(delays, &d);
	result->mean_ns = ow_value_exact(d.mean_ns);
	result->stddev_ns = ow_value_exact(d.stddev_ns);
	result->min_ns = ow_value_exact((double)d.min_ns);
	result->max_ns = ow_value_exact((double)d.max_ns);
	for (int i = 0; i < OW_QUANTILES; i++)
		result->quantile_ns[i] = ow_value_exact(d.quantile_ns[i]);
}

static void fill_delays(const struct ow_run_total *total, struct ow_interval_result *result)
{
	bool all = ow_pool_packets(total->estimated) == 0;
	for (int i = 1; i < SHIFTS; i++)
		all &= !total->known[i];
	ow_pool_copy(total->scratch, total->estimated);
	for (int i = 0; i < SHIFTS; i++) {
		if (total->known[i])
			ow_pool_add_delays(total->scratch, total->known[i], exp2(i));
	}
	ow_pool_values(total->scratch, &result->mean_ns, &result->stddev_ns, result->quantile_ns);
	result->min_ns = result->max_ns = ow_value_none(OW_REASON_DELAYS_NOT_ALL_KNOWN);
	if (!all || !ow_delays_samples(total->known[0]))
		return;
	ow_interval_results_exact(total->known[0], result);
}

/* An unknown interval counts as many packets as the others have on average. */
static double coverage_of(const struct ow_run_total *total)
{
	double seen = (double)(total->intervals - total->blind), blind = (double)(total->blind + total->missing);
	if (!(total->sent > 0))
		return total->unknown + total->missing ? 0 : 1;
	return fmin(1, total->covered / (total->sent * (1 + blind / fmax(seen, 1))));
}

static void fill_loss(const struct ow_run_total *total, struct ow_interval_result *result)
{
	double all = ow_result_packets_sent(result);
	result->coverage = coverage_of(total);
	result->loss_ratio = ow_value_none(total->one_of_several ? OW_REASON_OTHER_PEERS : OW_REASON_NO_KNOWN_FATE);
	if (!(total->decided > 0) || total->one_of_several)
		return;
	double ratio = total->lost / total->decided;
	result->loss_ratio = ow_value_exact(ratio);
	if (result->sample_shift) {
		struct ow_estimate estimate;
		uint64_t decided = result->sent - result->pending;
		ow_sample_loss(ow_packets_of(ratio * (double)decided + 0.5), decided, fmax(all, (double)decided), NAN,
		               &estimate);
		result->loss_ratio = estimate.loss_ratio;
	}
	ow_result_loss_undecided(&result->loss_ratio, (double)(result->sent - result->pending), (double)result->sent);
	ow_result_loss_doubted(&result->loss_ratio, total->doubted, (double)result->sent);
}

static void explain(const struct ow_run_total *total, struct ow_interval_result *result)
{
	uint64_t blind = total->unknown + total->missing;
	if (total->unknown == total->intervals) {
		result->status = OW_RESULT_UNKNOWN;
		snprintf(result->cause, sizeof result->cause, ow_cause_none_compared);
	} else if (blind || total->partial) {
		result->status = OW_RESULT_PARTIAL;
		uint64_t all = total->intervals + total->missing;
		if (blind && total->partial)
			snprintf(result->cause, sizeof result->cause, ow_cause_intervals_unknown_partial, all, blind,
			         total->partial);
		else
			snprintf(result->cause, sizeof result->cause,
			         blind ? ow_cause_intervals_unknown : ow_cause_intervals_partial, all,
			         blind ? blind : total->partial);
	}
}

void ow_run_total_result(const struct ow_run_total *total, struct ow_interval_result *ret_result)
{
	struct ow_interval_result *r = ret_result;
	*r = total->sum;
	r->final = true;
	r->interval = (int64_t)total->intervals;
	/* Late in their interval, but in time for the run. */
	r->matched += r->late;
	r->late = r->late_received = 0;
	r->received = r->matched + r->extra;
	if (total->synopses)
		ow_fields_mean(r, (int64_t)total->synopses);
	fill_delays(total, r);
	ow_result_clock_widen(r);
	fill_loss(total, r);
	explain(total, r);
	assert(r->sent == r->matched + r->late + r->lost + r->pending && r->received == r->matched + r->extra);
}
