/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over the intervals of a run. Delays that are known one by one are merged by sample shift, so that they count as
 * one sample whatever interval they are of; means and standard deviations of intervals that were estimated are pooled.
 */
#include "result/run_total.h"

#include "estimate/pool.h"
#include "estimate/sample.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHIFTS 64

struct ow_run_total {
	struct ow_interval_result sum;
	uint64_t intervals, missing, unknown, partial;
	uint64_t synopses;    /* intervals that cost something */
	double lost, decided; /* weighed by the packets that each stands for */
	double covered;       /* packets whose fate is known */
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
	/* Without memory for a histogram of their own: less can be said of their error, that is all. */
	if (!*slot && ow_delays_create(slot) < 0)
		ow_pool_add_delays(total->estimated, known, exp2(shift));
	else
		ow_delays_merge(*slot, known);
}

/* What another point says may be any number. */
static void add_ns(int64_t *sum_ns, int64_t ns)
{
	*sum_ns = (int64_t)((uint64_t)*sum_ns + (uint64_t)ns);
}

static void add_cost(struct ow_result_cost *sum, const struct ow_result_cost *cost)
{
	sum->bytes += cost->bytes;
	sum->round_trips += cost->round_trips;
	add_ns(&sum->transmit_ns, cost->transmit_ns);
	add_ns(&sum->decode_ns, cost->decode_ns);
	add_ns(&sum->missing_ns, cost->missing_ns);
	add_ns(&sum->erase_ns, cost->erase_ns);
	add_ns(&sum->compute_ns, cost->compute_ns);
	add_ns(&sum->ready_ns, cost->ready_ns);
}

static void worse_clock(struct ow_clock_state *sum, const struct ow_clock_state *clock)
{
	sum->synchronised &= clock->synchronised;
	if (clock->error_ns > sum->error_ns)
		sum->error_ns = clock->error_ns;
}

static void add_counts(struct ow_interval_result *sum, const struct ow_interval_result *r)
{
	sum->sent += r->sent;
	sum->matched += r->matched + r->late;
	sum->lost += r->lost;
	sum->pending += r->pending;
	sum->extra += r->extra;
	sum->received = sum->matched + sum->extra;
	sum->duplicated += r->duplicated;
	sum->ambiguous += r->ambiguous;
	if (r->reordered == OW_RESULT_NOT_COUNTED || sum->reordered == OW_RESULT_NOT_COUNTED)
		sum->reordered = OW_RESULT_NOT_COUNTED;
	else
		sum->reordered += r->reordered;
	sum->bytes += r->bytes;
	sum->total_sent += r->total_sent;
	sum->total_received += r->total_received;
	sum->ring_drops_from += r->ring_drops_from;
	sum->ring_drops_to += r->ring_drops_to;
	sum->unreadable += r->unreadable;
	sum->samples += r->samples;
	sum->exact &= r->exact;
	if (r->sample_shift > sum->sample_shift)
		sum->sample_shift = r->sample_shift;
}

static void begin(struct ow_interval_result *sum, const struct ow_interval_result *r)
{
	memcpy(sum->segment, r->segment, sizeof sum->segment);
	memcpy(sum->class_name, r->class_name, sizeof sum->class_name);
	memcpy(sum->from, r->from, sizeof sum->from);
	memcpy(sum->to, r->to, sizeof sum->to);
	sum->start_ns = r->start_ns;
	sum->exact = true;
	sum->clock_from = r->clock_from;
	sum->clock_to = r->clock_to;
}

void ow_run_total_add(struct ow_run_total *total, const struct ow_interval_result *first,
                      const struct ow_interval_result *final, bool full, const int64_t *sample, size_t samples,
                      const struct ow_delays *known)
{
	struct ow_interval_result *sum = &total->sum;
	if (!total->intervals++)
		begin(sum, final);
	sum->length_ns = final->start_ns + final->length_ns - sum->start_ns;
	worse_clock(&sum->clock_from, &final->clock_from);
	worse_clock(&sum->clock_to, &final->clock_to);
	total->partial += final->status == OW_RESULT_PARTIAL;
	if (final->status == OW_RESULT_UNKNOWN) {
		total->unknown++;
		sum->total_sent += final->total_sent;
		sum->total_received += final->total_received;
		return;
	}
	memcpy(sum->synopsis, final->synopsis, sizeof sum->synopsis);
	add_counts(sum, final);
	add_cost(&sum->cost, &final->cost);
	total->synopses++;
	double weight = exp2(final->sample_shift);
	total->lost += weight * (double) final->lost;
	total->decided += weight * (double)(final->sent - final->pending);
	total->covered += (double)(final->sent - final->pending);
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

static void fill_loss(const struct ow_run_total *total, struct ow_interval_result *result)
{
	double all = fmax((double)result->total_sent, (double)result->sent);
	result->coverage = all > 0 ? total->covered / all : total->unknown + total->missing ? 0 : 1;
	result->loss_ratio = ow_value_none(OW_REASON_NO_KNOWN_FATE);
	if (!(total->decided > 0))
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
}

static void explain(const struct ow_run_total *total, struct ow_interval_result *result)
{
	uint64_t blind = total->unknown + total->missing;
	if (total->unknown == total->intervals) {
		result->status = OW_RESULT_UNKNOWN;
		snprintf(result->cause, sizeof result->cause, "no interval could be compared");
	} else if (blind || total->partial) {
		result->status = OW_RESULT_PARTIAL;
		uint64_t all = total->intervals + total->missing;
		if (blind && total->partial)
			snprintf(result->cause, sizeof result->cause,
			         "of %" PRIu64 " intervals %" PRIu64 " unknown, %" PRIu64 " partial", all, blind,
			         total->partial);
		else
			snprintf(result->cause, sizeof result->cause, "of %" PRIu64 " intervals %" PRIu64 " %s", all,
			         blind ? blind : total->partial, blind ? "unknown" : "partial");
	}
}

void ow_run_total_result(const struct ow_run_total *total, struct ow_interval_result *ret_result)
{
	struct ow_interval_result *r = ret_result;
	*r = total->sum;
	r->final = true;
	r->interval = (int64_t)total->intervals;
	if (total->synopses) {
		int64_t n = (int64_t)total->synopses;
		r->cost.transmit_ns /= n;
		r->cost.decode_ns /= n;
		r->cost.missing_ns /= n;
		r->cost.erase_ns /= n;
		r->cost.compute_ns /= n;
		r->cost.ready_ns /= n;
	}
	fill_delays(total, r);
	fill_loss(total, r);
	explain(total, r);
	assert(r->sent == r->matched + r->late + r->lost + r->pending && r->received == r->matched + r->extra);
}
