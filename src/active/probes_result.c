/* SPDX-License-Identifier: Apache-2.0 */
/* Results of an interval of probes and of a run. Probes are a sample of what the network did, so nothing is exact. */
#include "active/probes_private.h"

#include "estimate/sample.h"
#include "result/cause.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* -- delays ------------------------------------------------------------------------------------------------------- */

/* Removes quantiles that are not bounded on both sides. */
static void keep_bounded(struct ow_value quantile[OW_QUANTILES])
{
	for (int i = 0; i < OW_QUANTILES; i++) {
		if (quantile[i].status != OW_VALUE_NONE && !(isfinite(quantile[i].low) && isfinite(quantile[i].high)))
			quantile[i] = ow_value_none(OW_REASON_PROBES_TOO_FEW);
	}
}

static void no_delays(struct ow_interval_result *r)
{
	r->mean_ns = r->stddev_ns = r->min_ns = r->max_ns = ow_value_none(OW_REASON_PROBES_NO_ANSWER);
	for (int i = 0; i < OW_QUANTILES; i++)
		r->quantile_ns[i] = ow_value_none(OW_REASON_PROBES_NO_ANSWER);
}

/* Sorts `delay` in place. */
static void fill_delays(struct ow_interval_result *r, int64_t *delay, size_t count)
{
	struct ow_estimate estimate;
	r->samples = count;
	if (!count) {
		no_delays(r);
		return;
	}
	ow_estimate_none(&estimate, OW_NO_REASON);
	ow_sample_delays(delay, count, INFINITY, &estimate);
	r->mean_ns = estimate.mean_ns;
	r->stddev_ns = estimate.stddev_ns;
	memcpy(r->quantile_ns, estimate.quantile_ns, sizeof r->quantile_ns);
	keep_bounded(r->quantile_ns);
	r->min_ns = r->max_ns = ow_value_none(OW_REASON_PROBES_NO_EXTREMES);
	for (size_t i = 0; i < count; i++)
		ow_buckets_add(r->delay_bucket, (double)delay[i], 1);
	ow_delay_histogram_sample(delay, count, count, &r->delays);
}

/* -- loss --------------------------------------------------------------------------------------------------------- */

static struct ow_value share_of(uint64_t lost, uint64_t trials)
{
	struct ow_estimate estimate;
	ow_sample_loss(lost, trials, INFINITY, NAN, &estimate);
	return estimate.loss_ratio;
}

/* trials: packets whose waiting time is over; doubtful: those of them whose direction of loss is not known. All of
 * these, or none, may be lost here. */
static void fill_loss(struct ow_interval_result *r, uint64_t trials, uint64_t doubtful, bool stateless)
{
	r->loss_ratio = ow_value_none(OW_REASON_PROBES_NONE_SENT);
	r->coverage = trials ? (double)(trials - doubtful) / (double)trials : 1;
	if (!trials)
		return;
	if (doubtful && (stateless || doubtful == trials)) {
		r->loss_ratio = ow_value_none(OW_REASON_PROBES_WHICH_WAY);
		return;
	}
	r->loss_ratio = share_of(r->lost, trials);
	if (!doubtful)
		return;
	r->loss_ratio.high = share_of(r->lost + doubtful, trials).high;
	r->loss_ratio.value = (double)r->lost / (double)(trials - doubtful);
}

/* Packets whose fate is undecided are pending in the direction there, and may not have been sent back at all. */
static void lane_loss(const struct ow_probes *p, enum ow_probes_lane lane, uint64_t under_way, uint64_t doubtful,
                      struct ow_interval_result *r)
{
	uint64_t trials = lane == OW_PROBES_BACK ? r->sent + doubtful : r->sent - under_way;
	fill_loss(r, trials, lane == OW_PROBES_ROUND ? 0 : doubtful, p->told && !p->stateful);
}

/* -- an interval -------------------------------------------------------------------------------------------------- */

static void fill_counts(const struct ow_probes *p, const struct ow_probes_interval *in,
                        const struct ow_probes_fate *fate, enum ow_probes_lane lane, struct ow_interval_result *r)
{
	uint64_t copies_there = p->stateful ? in->duplicated[OW_PROBES_THERE] : 0;
	uint64_t copies = in->duplicated[OW_PROBES_ROUND];
	switch (lane) {
	case OW_PROBES_THERE:
		r->sent = fate->sent;
		r->lost = fate->lost_there;
		r->pending = fate->undecided;
		r->duplicated = r->extra = copies_there;
		r->reordered = p->stateful ? fate->reordered_there : OW_RESULT_NOT_COUNTED;
		r->bytes = r->cost.bytes = in->bytes;
		break;
	case OW_PROBES_BACK:
		/* The reflector answered each copy that reached it. */
		r->sent = fate->answered + copies_there + fate->lost_back;
		r->lost = fate->lost_back;
		r->duplicated = r->extra = copies - copies_there;
		r->late_received = in->late;
		r->reordered = p->stateful ? in->reordered[OW_PROBES_BACK] : OW_RESULT_NOT_COUNTED;
		r->bytes = r->cost.bytes = in->reply_bytes;
		break;
	default:
		r->sent = fate->sent;
		r->pending = fate->under_way;
		r->lost = fate->sent - fate->answered - fate->under_way;
		r->duplicated = r->extra = copies;
		r->late_received = in->late;
		r->reordered = in->reordered[OW_PROBES_ROUND];
		r->bytes = in->bytes;
		r->cost.bytes = in->bytes + in->reply_bytes;
		break;
	}
	r->matched = r->sent - r->lost - r->pending;
	r->received = r->matched + r->late_received + r->extra;
	r->total_sent = r->sent;
	r->total_received = r->received;
}

static void fill_names(const struct ow_probes *p, enum ow_probes_lane lane, struct ow_interval_result *r)
{
	bool back = lane == OW_PROBES_BACK, round = lane == OW_PROBES_ROUND;
	memcpy(r->segment, p->segment, sizeof r->segment);
	memcpy(r->class_name, round ? p->round_name : p->class_name, sizeof r->class_name);
	memcpy(r->from, back ? p->to : p->from, sizeof r->from);
	memcpy(r->to, back || round ? p->from : p->to, sizeof r->to);
	snprintf(r->synopsis, sizeof r->synopsis, "%s probes, %s reflector", p->method,
	         !p->told      ? "unknown"
	         : p->stateful ? "stateful"
	                       : "stateless");
	r->active = r->final = true;
}

static void fill_clocks(const struct ow_probes_interval *in, enum ow_probes_lane lane,
                        const struct ow_clock_state *near, struct ow_interval_result *r)
{
	struct ow_clock_state far = {false, OW_CLOCK_UNKNOWN}, same = {true, 0};
	if (in->heard)
		far = in->far;
	r->clock_from = lane == OW_PROBES_ROUND ? same : lane == OW_PROBES_BACK ? far : *near;
	r->clock_to = lane == OW_PROBES_ROUND ? same : lane == OW_PROBES_BACK ? *near : far;
}

/* For a direction this includes probes whose direction of loss is not known; they are not packets of the way back. */
static void fill_status(const struct ow_probes *p, const struct ow_probes_fate *fate, enum ow_probes_lane lane,
                        const char *cut, struct ow_interval_result *r)
{
	uint64_t doubtful = fate->undecided - fate->under_way;
	r->status = OW_RESULT_MEASURED;
	if (fate->under_way && cut) {
		r->status = OW_RESULT_PARTIAL;
		snprintf(r->cause, sizeof r->cause, ow_cause_probes_under_way, cut, fate->under_way);
	} else if (doubtful && lane != OW_PROBES_ROUND) {
		r->status = OW_RESULT_PARTIAL;
		snprintf(r->cause, sizeof r->cause, ow_cause_probes_which_way, doubtful, fate->sent,
		         !fate->answered           ? "none was answered"
		         : p->told && !p->stateful ? "the reflector is stateless"
		                                   : "the numbers of the reflector do not decide it");
	}
}

static size_t collect(struct ow_probes *p, uint64_t end, enum ow_probes_lane lane)
{
	size_t count = 0;
	for (uint64_t n = p->settled; n < end; n++) {
		const struct ow_probes_slot *slot = ow_probes_slot(p, n);
		if (slot->answered && slot->timed)
			p->scratch[count++] = slot->delay_ns[lane];
	}
	return count;
}

/* -- the run ------------------------------------------------------------------------------------------------------ */

static void add_to_sum(struct ow_probes_sum *sum, const struct ow_interval_result *r, const int64_t *delay,
                       size_t count)
{
	struct ow_interval_result *t = &sum->counts;
	if (!sum->intervals++) {
		t->start_ns = r->start_ns;
		t->clock_from = r->clock_from;
		t->clock_to = r->clock_to;
	}
	sum->partial += r->status == OW_RESULT_PARTIAL;
	t->length_ns = r->start_ns + r->length_ns - t->start_ns;
	/* Without replies the state of the reflector's clock is not known. */
	if (r->samples) {
		ow_clock_state_worse(&t->clock_from, &r->clock_from);
		ow_clock_state_worse(&t->clock_to, &r->clock_to);
	}
	t->sent += r->sent;
	t->matched += r->matched;
	t->late_received += r->late_received;
	t->lost += r->lost;
	t->pending += r->pending;
	t->extra += r->extra;
	t->duplicated += r->duplicated;
	t->received += r->received;
	t->bytes += r->bytes;
	t->cost.bytes += r->cost.bytes;
	t->reordered = r->reordered == OW_RESULT_NOT_COUNTED ? OW_RESULT_NOT_COUNTED : t->reordered + r->reordered;
	ow_delays_add_many(sum->delays, delay, count);
}

static void total_quantiles(const struct ow_delays *delays, struct ow_interval_result *r)
{
	double n = (double)ow_delays_samples(delays), low, high;
	for (int i = 0; i < OW_QUANTILES; i++) {
		ow_sample_ranks((size_t)n, ow_quantile_level[i], &low, &high);
		r->quantile_ns[i] = ow_value_none(OW_REASON_PROBES_TOO_FEW);
		if (low >= 0 && high < n)
			r->quantile_ns[i] =
				(struct ow_value){OW_VALUE_ESTIMATED, ow_delays_quantile(delays, ow_quantile_level[i]),
			                          ow_delays_quantile(delays, (low + 1) / n),
			                          ow_delays_quantile(delays, (high + 1) / n), OW_NO_REASON};
	}
}

static void total_delays(const struct ow_delays *delays, struct ow_interval_result *r)
{
	struct ow_delay d;
	r->samples = ow_delays_samples(delays);
	no_delays(r);
	if (r->samples < 2)
		return;
	ow_delays_summary(delays, &d);
	double n = (double)r->samples;
	r->mean_ns = ow_value_exact(d.mean_ns);
	r->stddev_ns = ow_value_exact(d.stddev_ns * sqrt(n / (n - 1)));
	ow_sample_widen(n, 0, &r->mean_ns, &r->stddev_ns);
	r->min_ns = r->max_ns = ow_value_none(OW_REASON_PROBES_NO_EXTREMES);
	total_quantiles(delays, r);
}

void ow_probes_total(const struct ow_probes *p, enum ow_probes_lane lane, struct ow_interval_result *ret_total)
{
	const struct ow_probes_sum *sum = &p->sum[lane];
	struct ow_interval_result *r = ret_total;
	*r = sum->counts;
	fill_names(p, lane, r);
	r->interval = (int64_t)sum->intervals;
	r->total_sent = r->sent;
	r->total_received = r->received;
	total_delays(sum->delays, r);
	lane_loss(p, lane, sum->under_way, sum->doubtful, r);
	r->status = sum->partial ? OW_RESULT_PARTIAL : OW_RESULT_MEASURED;
	if (sum->partial)
		snprintf(r->cause, sizeof r->cause, ow_cause_intervals_partial, sum->intervals, sum->partial);
}

void ow_probes_report(struct ow_probes *p, uint64_t end, int64_t length_ns, const struct ow_probes_fate *fate,
                      int64_t now_ns, const struct ow_clock_state *near, const char *cut)
{
	const struct ow_probes_interval *in = ow_probes_interval(p, 0);
	for (int lane = 0; lane < OW_PROBES_LANES; lane++) {
		struct ow_interval_result r = {.interval = p->number, .start_ns = in->start_ns, .length_ns = length_ns};
		fill_names(p, lane, &r);
		fill_counts(p, in, fate, lane, &r);
		fill_clocks(in, lane, near, &r);
		fill_status(p, fate, lane, cut, &r);
		size_t count = collect(p, end, lane);
		fill_delays(&r, p->scratch, count);
		lane_loss(p, lane, fate->under_way, fate->undecided - fate->under_way, &r);
		r.cost.ready_ns = now_ns - in->start_ns - length_ns;
		assert(r.sent == r.matched + r.late + r.lost + r.pending);
		assert(r.received == r.matched + r.late_received + r.extra);
		add_to_sum(&p->sum[lane], &r, p->scratch, count);
		p->sum[lane].under_way += fate->under_way;
		p->sum[lane].doubtful += fate->undecided - fate->under_way;
		if (p->options.sink)
			p->options.sink(p->options.arg, &r);
	}
}
