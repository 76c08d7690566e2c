/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate/details.h"

#include "base/array.h"
#include "estimate/reorder_extent.h"
#include "estimate/tally.h"
#include "estimate/tcp_resends.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define JITTER_GAIN 16                 /* RFC 3550, section 6.4.1 */
#define TIME_MOST   (INT64_C(1) << 60) /* of a delay: so that differences cannot overflow */

struct flow_jitter {
	double jitter_ns, max_ns;
	int64_t transit_ns;
	uint64_t samples;
	bool started;
};

struct ow_details_tally {
	struct ow_packet_order sent, arrived;
	struct ow_reorder_extent extent;
	uint64_t packets, unplaced, lost;

	/* The last packet in the order of sending; has_delay is false before the first. */
	struct ow_ordered_packet last;
	struct ow_tally ipdv, ipdv_size;

	/* RFC 3357 */
	uint64_t period;     /* lost packets in the period that goes on */
	uint64_t since_lost; /* packets since the last lost one, with itself; 0 = there was none that counts */
	uint64_t uncertain_lost;
	struct ow_delays *length, *distance;

	struct flow_jitter *flow;
	size_t flows;
	double jitter_sum_ns;
	struct ow_jitter jitter;

	struct ow_tcp_resends *resends;
	struct ow_tcp_data tcp;
};

int ow_details_tally_create(int64_t keep_ns, struct ow_details_tally **ret_tally)
{
	struct ow_details_tally *t = calloc(1, sizeof *t);
	if (!t)
		return -ENOMEM;
	if (ow_reorder_extent_init(&t->extent) < 0 || ow_tally_init(&t->ipdv) < 0 || ow_tally_init(&t->ipdv_size) < 0 ||
	    ow_delays_create(&t->length) < 0 || ow_delays_create(&t->distance) < 0 ||
	    ow_tcp_resends_create(keep_ns, &t->resends) < 0) {
		ow_details_tally_free(t);
		return -ENOMEM;
	}
	*ret_tally = t;
	return 0;
}

void ow_details_tally_free(struct ow_details_tally *t)
{
	if (!t)
		return;
	ow_packet_order_done(&t->sent);
	ow_packet_order_done(&t->arrived);
	ow_reorder_extent_done(&t->extent);
	ow_tally_done(&t->ipdv);
	ow_tally_done(&t->ipdv_size);
	ow_delays_free(t->length);
	ow_delays_free(t->distance);
	ow_tcp_resends_free(t->resends);
	free(t->flow);
	free(t);
}

void ow_details_tally_arrived(struct ow_details_tally *t, uint64_t number, uint32_t packets)
{
	ow_reorder_extent_add(&t->extent, number, packets);
}

/* -- in the order of sending -------------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* RFC 5481, section 4.1: of packets that were sent one after the other, if both arrived. */
static int add_variation(struct ow_details_tally *t, const struct ow_ordered_packet *p)
{
	if (!t->last.has_delay || !p->has_delay)
		return 0;
	int64_t ipdv = p->delay_ns - t->last.delay_ns, less = p->less_ns + t->last.more_ns,
		more = p->more_ns + t->last.less_ns;
	int64_t size = llabs(ipdv), low = llabs(ipdv - less), high = llabs(ipdv + more);
	if (!less && !more) {
		ow_tally_sample(&t->ipdv, ipdv, 1);
		ow_tally_sample(&t->ipdv_size, size, 1);
		return 0;
	}
	int r = ow_tally_uncertain(&t->ipdv, ipdv, less, more, 0, 1);
	bool both_signs = ipdv - less < 0 && ipdv + more > 0;
	return r < 0 ? r
	             : ow_tally_uncertain(&t->ipdv_size, size, size - (both_signs ? 0 : least(low, high)),
	                                  most(low, high) - size, 0, 1);
}

static void end_period(struct ow_details_tally *t)
{
	if (t->period)
		ow_delays_add(t->length, (int64_t)t->period, 1);
	t->period = 0;
}

/* RFC 3357: periods of loss, and distances of lost packets. A packet of unknown fate ends both. */
static void add_loss(struct ow_details_tally *t, const struct ow_ordered_packet *p)
{
	if (p->is_lost) {
		if (t->since_lost)
			ow_delays_add(t->distance, (int64_t)t->since_lost, 1);
		if (p->packets > 1)
			ow_delays_add(t->distance, 1, p->packets - 1);
		t->period += p->packets;
		t->lost += p->packets;
		t->uncertain_lost += p->alike ? p->packets : 0;
		t->since_lost = 1;
		return;
	}
	end_period(t);
	if (p->is_unknown)
		t->since_lost = 0;
	else if (t->since_lost)
		t->since_lost += p->packets;
}

static enum ow_tcp_fate tcp_fate(const struct ow_ordered_packet *p)
{
	return p->alike || p->is_unknown ? OW_TCP_UNKNOWN : p->is_lost ? OW_TCP_LOST : OW_TCP_ARRIVED;
}

static int add_tcp(struct ow_details_tally *t, const struct ow_ordered_packet *p)
{
	if (p->flow == UINT32_MAX) {
		t->tcp.left_out += p->packets;
		return 0;
	}
	struct ow_tcp_verdict verdict;
	const struct ow_tcp_packet packet = {.flow = p->flow,
	                                     .seq = p->seq,
	                                     .len = p->len,
	                                     .syn = p->syn,
	                                     .fin = p->fin,
	                                     .time_ns = p->time_ns,
	                                     .number = p->number,
	                                     .fate = tcp_fate(p),
	                                     .packets = p->packets};
	int r = ow_tcp_resends_add(t->resends, &packet, &verdict);
	if (r < 0 || p->is_unknown)
		return r;
	struct ow_tcp_data *tcp = &t->tcp;
	bool resent = verdict.kind == OW_TCP_RESENT || verdict.kind == OW_TCP_FORGOTTEN;
	tcp->packets += p->packets;
	tcp->lost += p->is_lost ? p->packets : 0;
	tcp->lost_resent += verdict.resent;
	tcp->out_of_order += verdict.kind == OW_TCP_OUT_OF_ORDER ? p->packets : 0;
	tcp->keep_alives += verdict.kind == OW_TCP_KEEP_ALIVE ? p->packets : 0;
	if (!resent)
		return 0;
	tcp->retransmissions += p->packets;
	tcp->retransmissions_lost += p->is_lost ? p->packets : 0;
	*(verdict.repairs ? &tcp->repairs : verdict.needless ? &tcp->needless : &tcp->undecided) += p->packets;
	return 0;
}

static int take_sent(struct ow_details_tally *t, int64_t before_ns)
{
	struct ow_ordered_packet p;
	int r = 0;
	while (r == 0 && ow_packet_order_take(&t->sent, before_ns, &p)) {
		t->packets += p.is_unknown ? 0 : p.packets;
		add_loss(t, &p);
		r = add_variation(t, &p);
		if (r == 0 && p.len)
			r = add_tcp(t, &p);
		t->last = p;
	}
	return r;
}

/* -- in the order of arrival -------------------------------------------------------------------------------------- */

static int add_jitter(struct ow_details_tally *t, const struct ow_ordered_packet *p)
{
	if (OW_GROW_ZEROED(t->flow, t->flows, (size_t)p->flow + 1) < 0)
		return -ENOMEM;
	struct flow_jitter *f = &t->flow[p->flow];
	if (f->started) {
		f->jitter_ns += (fabs((double)(p->delay_ns - f->transit_ns)) - f->jitter_ns) / JITTER_GAIN;
		f->max_ns = fmax(f->max_ns, f->jitter_ns);
		f->samples++;
		t->jitter.flows += f->samples == 1;
		t->jitter.samples++;
		t->jitter_sum_ns += f->jitter_ns;
	}
	f->transit_ns = p->delay_ns;
	f->started = true;
	return 0;
}

static int take_arrived(struct ow_details_tally *t, int64_t before_ns)
{
	struct ow_ordered_packet p;
	int r = 0;
	while (r == 0 && ow_packet_order_take(&t->arrived, before_ns, &p))
		r = add_jitter(t, &p);
	return r;
}

/* Returns 0 or -ENOMEM; counts it if it comes too late. */
static int place(struct ow_packet_order *order, const struct ow_ordered_packet *packet, uint64_t *too_late)
{
	int r = ow_packet_order_add(order, packet);
	*too_late += r == -ESTALE ? packet->packets : 0;
	return r == -ESTALE ? 0 : r;
}

int ow_details_tally_sent(struct ow_details_tally *t, const struct ow_ordered_packet *packet, uint64_t received,
                          int64_t received_ns, int64_t before_ns)
{
	struct ow_ordered_packet known = *packet;
	known.delay_ns = most(-TIME_MOST, least(known.delay_ns, TIME_MOST));
	known.less_ns = least(known.less_ns, TIME_MOST);
	known.more_ns = least(known.more_ns, TIME_MOST);
	int r = place(&t->sent, &known, &t->unplaced);
	struct ow_ordered_packet arrival = known;
	arrival.number = received;
	arrival.time_ns = received_ns;
	bool certain = packet->has_delay && !packet->alike && packet->flow != UINT32_MAX;
	if (r == 0 && certain)
		r = place(&t->arrived, &arrival, &t->jitter.left_out);
	else if (!packet->is_lost && !packet->is_unknown)
		t->jitter.left_out += packet->packets;
	if (r == 0)
		r = take_sent(t, before_ns);
	return r < 0 ? r : take_arrived(t, before_ns);
}

/* -- results ------------------------------------------------------------------------------------------------------ */

static void fill_jitter(const struct ow_details_tally *t, struct ow_jitter *ret, uint32_t *ret_flow)
{
	*ret = t->jitter;
	if (!ret->samples)
		return;
	ret->mean_ns = t->jitter_sum_ns / (double)ret->samples;
	for (size_t i = 0; i < t->flows; i++) {
		const struct flow_jitter *f = &t->flow[i];
		if (!f->samples || (ret->flow_samples && f->max_ns <= ret->max_ns))
			continue;
		ret->max_ns = f->max_ns;
		*ret_flow = (uint32_t)i;
		ret->final_ns = f->jitter_ns;
		ret->flow_samples = f->samples;
	}
}

bool ow_details_tally_jitter(const struct ow_details_tally *t, uint32_t *flow, struct ow_flow_jitter *ret_jitter)
{
	while (*flow < t->flows && !t->flow[*flow].samples)
		++*flow;
	if (*flow >= t->flows)
		return false;
	const struct flow_jitter *f = &t->flow[*flow];
	*ret_jitter = (struct ow_flow_jitter){.samples = f->samples, .final_ns = f->jitter_ns, .max_ns = f->max_ns};
	return true;
}

/*
 * If u of the lost packets may be others, taking one away splits a period at most, or ends it; adding one joins two at most,
 * or begins one. A longest period of n is split into u + 1 parts at most, or joins u others as long.
 */
static void fill_losses(const struct ow_details_tally *t, struct ow_loss_periods *ret)
{
	uint64_t u = t->uncertain_lost;
	*ret = (struct ow_loss_periods){.lost = t->lost, .uncertain = u};
	ow_count_spread_of(t->length, &ret->length);
	ow_count_spread_of(t->distance, &ret->distance);
	if (!ret->length.samples)
		return;
	uint64_t periods = ret->length.samples, longest = ret->length.max;
	ret->least_periods = periods > 2 * u ? periods - 2 * u : 1;
	ret->most_periods = periods + 2 * u < t->lost ? periods + 2 * u : t->lost;
	ret->least_longest = longest > u ? longest / (u + 1) : 1;
	ret->most_longest = (u + 1) * longest + u < t->lost ? (u + 1) * longest + u : t->lost;
}

/* Delays above the smallest one, RFC 5481, section 4.2. */
static void fill_pdv(const struct ow_delay *delay, struct ow_delay *ret)
{
	*ret = *delay;
	if (!delay->samples)
		return;
	int64_t low_ns = delay->uncertain ? delay->high.min_ns : 0, high_ns = delay->uncertain ? delay->low.min_ns : 0;
	ret->mean_ns -= (double)delay->min_ns;
	ret->max_ns -= delay->min_ns;
	ret->min_ns = 0;
	ret->low.mean_ns = fmax(0, delay->low.mean_ns - (double)low_ns);
	ret->high.mean_ns = delay->high.mean_ns - (double)high_ns;
	ret->low.max_ns = most(0, delay->low.max_ns - low_ns);
	ret->high.max_ns = delay->high.max_ns - high_ns;
	ret->low.min_ns = ret->high.min_ns = 0;
	for (int i = 0; i < OW_QUANTILES; i++) {
		ret->quantile_ns[i] -= (double)delay->min_ns;
		ret->low.quantile_ns[i] = fmax(0, delay->low.quantile_ns[i] - (double)low_ns);
		ret->high.quantile_ns[i] = delay->high.quantile_ns[i] - (double)high_ns;
	}
}

int ow_details_tally_finish(struct ow_details_tally *t, const struct ow_result *result, struct ow_details *ret,
                            uint32_t *ret_jitter_flow)
{
	int r = take_sent(t, INT64_MAX);
	if (r == 0)
		r = take_arrived(t, INT64_MAX);
	if (r < 0)
		return r;
	end_period(t);
	ow_tally_flush(&t->ipdv);
	ow_tally_flush(&t->ipdv_size);
	*ret = (struct ow_details){.size = sizeof *ret, .packets = t->packets, .unplaced = t->unplaced, .tcp = t->tcp};
	ow_tally_summary(&t->ipdv, &ret->ipdv);
	ow_tally_summary(&t->ipdv_size, &ret->ipdv_size);
	fill_pdv(&result->delay, &ret->pdv);
	fill_jitter(t, &ret->jitter, ret_jitter_flow);
	fill_losses(t, &ret->loss);
	ow_reorder_extent_get(&t->extent, &ret->reordering);
	if (t->unplaced)
		ret->reason = "the fate of some packets was decided too late to put them in order";
	else if (t->packets != result->sent || t->lost != result->lost ||
	         ret->reordering.reordered != result->reordered)
		ret->reason = "the packets in order are not those of the result";
	return 0;
}
