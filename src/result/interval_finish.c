/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of an interval, provisional or final: counts, delays including those of late packets, loss, and causes as
 * text.
 */
#include "base/time.h"
#include "base/word.h"
#include "result/interval_results_private.h"
#include "result/result_clock.h"

#include "estimate/sample.h"
#include "result/cause.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Mean, standard deviation and quantiles of the packets sent in the interval, as far as they have arrived. */
static void fill_delays(struct ow_interval_results *results, const struct ow_interval_results_open *open,
                        struct ow_interval_result *result)
{
	uint64_t known = ow_delays_samples(open->delays);
	if (open->full && known && !result->sample_shift) {
		ow_interval_results_exact(open->delays, result);
		result->samples = ow_delays_samples(open->delays);
		return;
	}
	result->min_ns = result->max_ns =
		ow_value_none(known && open->full ? OW_REASON_SAMPLED : OW_REASON_DELAYS_NOT_ALL_KNOWN);
	if (!open->full && !known)
		return; /* unchanged */
	ow_pool_reset(results->scratch);
	if (open->full) {
		ow_pool_add_delays(results->scratch, open->delays, exp2(result->sample_shift));
		result->samples = known;
	} else {
		struct ow_pool_group matched = {(double)(result->matched - open->result.ambiguous),
		                                open->result.mean_ns, open->result.stddev_ns, open->sample,
		                                open->samples};
		ow_pool_add(results->scratch, &matched);
		ow_pool_add_delays(results->scratch, open->delays, 1);
		result->samples = open->result.samples + known;
	}
	ow_pool_values(results->scratch, &result->mean_ns, &result->stddev_ns, result->quantile_ns);
}

static void move_value(struct ow_value *value, double by_ns)
{
	if (value->status != OW_VALUE_NONE) {
		value->value += by_ns;
		value->low += by_ns;
		value->high += by_ns;
	}
}

/* Late packets change the mean: the numbers that were made of it before they came go with it. */
static void follow_mean(const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	if (open->result.mean_ns.status == OW_VALUE_NONE || result->mean_ns.status == OW_VALUE_NONE)
		return;
	double by_ns = result->mean_ns.value - open->result.mean_ns.value;
	move_value(&result->above_min_ns, by_ns);
	move_value(&result->round_trip_mean_ns, by_ns);
}

static void add_slot(void *arg, double delay_ns, uint64_t samples)
{
	ow_buckets_add(arg, delay_ns, samples);
}

static void fill_buckets(const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	uint64_t matched = open->full ? 0 : open->result.matched - open->result.ambiguous;
	/* Late packets alone would show only long delays. */
	if (matched && !open->samples)
		return;
	ow_delays_each(open->delays, add_slot, result->delay_bucket);
	ow_buckets_sample(result->delay_bucket, open->sample, open->samples, matched);
}

/* As the buckets, but each packet of a sample by id counts as those that it stands for. */
static void fill_histogram(const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	uint64_t matched = open->full ? 0 : open->result.matched - open->result.ambiguous;
	uint64_t weight = UINT64_C(1) << result->sample_shift;
	struct ow_delay_histogram in_time;
	if (matched && !open->samples)
		return;
	ow_delay_histogram_of(open->delays, weight, &result->delays);
	ow_delay_histogram_sample(open->sample, open->samples, matched * weight, &in_time);
	ow_delay_histogram_merge(&result->delays, &in_time);
}

static void fill_loss(struct ow_interval_result *result)
{
	uint64_t decided = result->sent - result->pending;
	struct ow_estimate estimate;
	result->coverage = result->status == OW_RESULT_UNKNOWN ? 0 : 1;
	if (ow_result_packets_sent(result) > 0)
		result->coverage = (double)decided / ow_result_packets_sent(result);
	if (!decided) {
		result->loss_ratio = ow_value_none(OW_REASON_NO_KNOWN_FATE);
	} else if (!result->sample_shift) {
		result->loss_ratio = ow_value_exact((double)result->lost / (double)decided);
	} else {
		ow_sample_loss(result->lost, decided, fmax((double)result->total_sent, (double)decided), NAN,
		               &estimate);
		result->loss_ratio = estimate.loss_ratio;
	}
	ow_result_loss_undecided(&result->loss_ratio, (double)decided, (double)result->sent);
}

void ow_interval_results_explain_drops(struct ow_interval_result *result)
{
	char text[OW_RESULT_CAUSE];
	if (result->ring_drops_from) {
		snprintf(text, sizeof text, ow_cause_ring_full_sending, result->from, result->ring_drops_from,
		         ow_plural(result->ring_drops_from, "frame", "frames"));
		ow_result_add_cause(result, text);
	}
	if (result->ring_drops_to) {
		snprintf(text, sizeof text, ow_cause_ring_full, result->to, result->ring_drops_to,
		         ow_plural(result->ring_drops_to, "frame", "frames"));
		ow_result_add_cause(result, text);
	}
}

/* If these were lost, the loss would be another one. */
#define UNSURE_SHARE 100

void ow_interval_results_explain_unlisted(const struct ow_interval_results_open *open,
                                          struct ow_interval_result *result)
{
	char text[OW_RESULT_CAUSE];
	if (UNSURE_SHARE * open->unsure > result->sent) {
		snprintf(text, sizeof text, ow_cause_flows_undecided, open->unsure,
		         ow_plural(open->unsure, "packet", "packets"));
		ow_result_add_cause(result, text);
	}
	if (!open->unlisted)
		return;
	snprintf(text, sizeof text, ow_cause_flows_unlisted, open->unlisted,
	         ow_plural(open->unlisted, "packet", "packets"));
	ow_result_add_cause(result, text);
}

void ow_interval_results_explain_in_turn(const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	char text[OW_RESULT_CAUSE];
	if (open->in_turn) {
		snprintf(text, sizeof text, ow_cause_identical_late, open->in_turn,
		         ow_plural(open->in_turn, "packet", "packets"));
		ow_result_add_cause(result, text);
	}
	if (open->close) {
		snprintf(text, sizeof text, ow_cause_identical_close, open->close,
		         ow_plural(open->close, "packet", "packets"));
		ow_result_add_cause(result, text);
	}
	if (open->twice) {
		snprintf(text, sizeof text, ow_cause_identical_twice, open->twice,
		         ow_plural(open->twice, "packet", "packets"));
		ow_result_add_cause(result, text);
	}
	if (open->amid && result->matched + result->late > result->ambiguous)
		ow_result_add_cause(result, ow_cause_identical_begun);
}

void ow_interval_results_explain_undecided(const struct ow_interval_results *results, struct ow_interval_result *result)
{
	static const char *const why[] = {[OW_DOUBT_UNKNOWN] = "is unknown",
	                                  [OW_DOUBT_INCOMPLETE] = "is not known of all peers",
	                                  [OW_DOUBT_DROPS] = "missed frames at the receiving point",
	                                  [OW_DOUBT_SAMPLED] = "has a smaller sample"};
	char text[OW_RESULT_CAUSE];
	if (!result->pending)
		return;
	const char *packets = ow_plural(result->pending, "packet", "packets");
	if (results->doubt == OW_DOUBT_MEMORY)
		snprintf(text, sizeof text, ow_cause_undecided_memory, result->pending, packets);
	else if (results->doubt == OW_DOUBT_CHANGED)
		snprintf(text, sizeof text, ow_cause_undecided_changed, result->pending, packets);
	else if (results->doubt == OW_DOUBT_ENDED)
		snprintf(text, sizeof text, ow_cause_undecided_ended, result->pending, packets);
	else if (results->doubt == OW_DOUBT_BEGUN)
		snprintf(text, sizeof text, ow_cause_undecided_begun, result->pending, packets);
	else
		snprintf(text, sizeof text, ow_cause_undecided_interval, result->pending, packets, results->doubted,
		         why[results->doubt]);
	ow_result_add_cause(result, text);
}

static void check(const struct ow_interval_result *r)
{
	assert(r->absent <= r->unshared_sent && r->lost_whole_flows <= r->lost);
	assert(r->sent == r->matched + r->late + r->lost + r->pending);
	assert(r->received == r->matched + r->late_received + r->extra);
	assert(r->duplicated <= r->extra && r->ambiguous <= r->matched + r->late);
}

/* Whether the extra packets may have been sent before the first interval. */
static bool in_flight_at_start(const struct ow_interval_results *results, const struct ow_interval_results_open *open)
{
	int64_t arrived_ns = open->result.start_ns - results->begun_ns;
	if (open->newest_extra_ns != OW_INTERVAL_RESULTS_NO_TIME)
		arrived_ns += open->newest_extra_ns;
	return arrived_ns <= results->reach_ns;
}

/* Whether the sending point missed packets, which are extra at the other one. Drops may be counted in the next interval. */
static bool is_missed(const struct ow_interval_results *results, const struct ow_interval_result *r)
{
	const struct ow_interval_results_open *next =
		results->first < results->next ? ow_interval_results_open_of(results, results->first) : NULL;
	return r->ring_drops_from || (next && next->result.ring_drops_from);
}

/* Sums of the last second or so: a packet and what became of it need not be in the same interval. */
static void add_recent(struct ow_interval_results_recent *recent, const struct ow_interval_result *r, uint64_t others)
{
	double keep = exp((double)-r->length_ns / (double)OW_NS_PER_S);
	recent->duplicated = keep * recent->duplicated + (double)r->duplicated;
	recent->others = keep * recent->others + (double)others;
	recent->lost = keep * recent->lost + (double)r->lost;
}

/*
 * How many of the missing packets may have arrived as others. A duplicate that arrives in another interval than its
 * original is not known as one: where there are duplicates, the others may be that. If there are few others for the
 * missing ones, so many are in doubt; if not, all: one packet may have become several, or several one.
 */
static uint64_t count_doubtful(const struct ow_interval_results_recent *recent, uint64_t lost, uint64_t others)
{
	if (recent->others < .9 || recent->others <= 2 * recent->duplicated)
		return 0;
	return 8 * recent->others < recent->lost && others < lost ? others : lost;
}

/* A network that changes packets (fragments, another IP id) has lost none: they are missing at one point, and others of
 * the same flows are extra at the other. */
void ow_interval_results_explain_changed(struct ow_interval_results *results,
                                         const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	struct ow_interval_result *r = result;
	char text[OW_RESULT_CAUSE];
	/* Some of the strange ones were late. */
	uint64_t changed = open->changed < open->strange ? open->changed : open->strange;
	uint64_t others = r->extra - r->duplicated + (r->matched + r->late ? changed : open->strange);
	if (!results->scope || open->unknown || in_flight_at_start(results, open) || is_missed(results, r))
		return;
	add_recent(&results->recent, r, others);
	uint64_t doubtful = count_doubtful(&results->recent, r->lost, others);
	if (!doubtful)
		return;
	r->lost -= doubtful;
	r->pending += doubtful;
	if (r->lost_whole_flows > r->lost)
		r->lost_whole_flows = r->lost;
	snprintf(text, sizeof text, ow_cause_packets_changed, doubtful, ow_plural(doubtful, "packet", "packets"),
	         (uint64_t)ceil(results->recent.others));
	ow_result_add_cause(r, text);
	fill_loss(r);
	check(r);
}

#define MISSED_LEAST  8 /* packets that a capture missed: fewer may have joined on the way */
#define MISSED_SIGMAS 4 /* its share of the packets of one direction may differ so much from that of the other */

/* Adds the packets of an interval that came from there unseen, without those that may have been sent before the first one. */
static void add_missed(const struct ow_interval_results *results, const struct ow_interval_result *r, int64_t after,
                       double part, struct ow_interval_results_missed *sum)
{
	const struct ow_interval_results_missed *m = ow_interval_results_missed_of(results, r->interval + after);
	int64_t reach_ns = results->reach_ns, start_ns = r->start_ns + after * r->length_ns;
	if (!m->of || m->interval != r->interval + after || m->missed > m->of)
		return;
	double begun = (double)(results->begun_ns + reach_ns - start_ns) / (double)r->length_ns;
	double missed = (double)m->missed - fmin(fmax(begun, 0), 1) * (double)m->of;
	sum->missed += missed > 0 ? (uint64_t)ceil(part * missed) : 0;
	sum->of = m->of > sum->of ? m->of : sum->of;
}

/*
 * A capture that was full, stopped for a while, or whose clock was set ahead: packets that came from its point are not in it,
 * and it does not show those that arrived there at these times. What came from there arrived later than that: up to both
 * delays after these were sent.
 */
void ow_interval_results_explain_missed(const struct ow_interval_results *results,
                                        const struct ow_interval_results_open *open, struct ow_interval_result *result)
{
	struct ow_interval_result *r = result;
	struct ow_interval_results_missed sum = {0};
	char text[OW_RESULT_CAUSE];
	double later = (double)results->reach_ns / (double)r->length_ns;
	if (open->unknown || !r->lost)
		return;
	add_missed(results, r, 0, 1, &sum);
	for (uint32_t k = 0; k < results->horizon && k < later; k++)
		add_missed(results, r, k + 1, fmin(later - k, 1), &sum);
	if (sum.missed < MISSED_LEAST)
		return;
	sum.missed = sum.missed < sum.of ? sum.missed : sum.of;
	double of = (double)sum.of, share = (double)sum.missed / of, sent = (double)r->sent;
	double spread = sqrt(share * (1 - share) * sent * (1 + sent / of));
	uint64_t doubtful = (uint64_t)ceil(sent * share + MISSED_SIGMAS * spread);
	doubtful = doubtful < r->lost ? doubtful : r->lost;
	if (UNSURE_SHARE * doubtful <= r->sent)
		return;
	r->lost -= doubtful;
	r->pending += doubtful;
	if (r->lost_whole_flows > r->lost)
		r->lost_whole_flows = r->lost;
	snprintf(text, sizeof text, ow_cause_capture_missed, doubtful, ow_plural(doubtful, "packet", "packets"), r->to,
	         sum.missed, sum.of);
	ow_result_add_cause(r, text);
	fill_loss(r);
	check(r);
}

/* Packets that are not for the other point, or not from it, leave the account. */
static void take_unshared(const struct ow_interval_results_open *open, const struct ow_late_packets_account *account,
                          struct ow_interval_result *r)
{
	uint64_t strange = open->strange < r->extra ? open->strange : r->extra;
	r->extra -= strange;
	r->received -= strange;
	r->unshared_received += strange;
	if (r->duplicated > r->extra)
		r->duplicated = r->extra;
	if (!account)
		return;
	r->sent -= account->unshared;
	r->unshared_sent += account->unshared;
	r->absent = open->absent;
	r->lost_whole_flows = open->whole;
}

void ow_interval_results_make_result(struct ow_interval_results *results, const struct ow_interval_results_open *open,
                                     const struct ow_late_packets_account *account,
                                     struct ow_interval_result *ret_result)
{
	struct ow_interval_result *r = ret_result;
	*r = open->result;
	r->final = account != NULL;
	r->late = open->late;
	r->late_received = open->late_received;
	r->lost = account ? account->lost : 0;
	r->extra = r->received - r->matched - r->late_received;
	if (account)
		assert(r->late_received == account->late_received && r->extra == account->extra);
	if (r->duplicated > r->extra)
		r->duplicated = r->extra;
	/* These are not counted as extra: packets of the unknown interval must arrive somewhere. Copies are known. */
	uint64_t strange = r->extra - r->duplicated, unplaced = open->unplaced < strange ? open->unplaced : strange;
	r->late_received += unplaced;
	r->extra -= unplaced;
	take_unshared(open, account, r);
	r->pending = r->sent - r->matched - r->late - r->lost;
	r->ambiguous += open->alike;
	if (open->unordered)
		r->reordered = OW_RESULT_NOT_COUNTED;
	else if (r->reordered != OW_RESULT_NOT_COUNTED)
		r->reordered += open->reordered;
	if (account) {
		assert(r->late == account->late && r->pending == account->pending && r->sent == account->sent);
	}
	if (!open->unknown) {
		fill_delays(results, open, r);
		follow_mean(open, r);
		if (r->final) {
			fill_buckets(open, r);
			fill_histogram(open, r);
		}
		ow_result_clock_widen(r);
	}
	fill_loss(r);
	if (results->one_of_several)
		r->loss_ratio = ow_value_none(OW_REASON_OTHER_PEERS);
	check(r);
}
