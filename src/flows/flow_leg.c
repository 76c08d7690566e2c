/* SPDX-License-Identifier: Apache-2.0 */
/* The estimates of one leg: flow_leg.h. */
#include "flows/flow_leg.h"

#include "flows/flow_cover.h"
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

void ow_flow_leg_done(struct ow_flow_leg_flows *leg)
{
	free(leg->load);
	free(leg->estimate);
	free(leg->spread);
	*leg = (struct ow_flow_leg_flows){0};
}

/* -- loads --------------------------------------------------------------------------------------------------------- */

/* p_f is the number of received packets; if a flow's counters are clean, as many were sent. */
static int choose_counts(const struct ow_flow_leg_input *in, struct ow_flow_leg_flows *leg, struct ow_error *err)
{
	const struct ow_flow_counts *sender = in->side[0].sum->counts, *receiver = in->side[1].sum->counts;
	if (in->counts) {
		leg->counts = in->counts;
		leg->sender = sender && receiver ? sender : NULL;
		return 0;
	}
	leg->counts = receiver ? receiver : sender;
	leg->sender = sender;
	if (!leg->counts)
		return ow_error_set(
			err, EINVAL,
			"neither %.120s nor %.120s has flow counts: use --counts FILE to give the packets of "
			"each flow",
			in->path[0], in->path[1]);
	return 0;
}

static void fill_load(const struct ow_flow_leg_flows *leg, const struct ow_colate_params *params, bool external,
                      size_t i, struct ow_flow_load *load)
{
	struct ow_flow_count count, sent;
	ow_flow_counts_get(leg->counts, i, &count);
	*load = (struct ow_flow_load){
		.flow = count.flow,
		.packets = (double)count.packets,
		.first_ns = count.first_ns,
		.last_ns = count.last_ns,
	};
	for (uint32_t k = 0; k < params->layers; k++) {
		bool all = params->layer[k].first == 0 && params->layer[k].last == OW_COLATE_SHARE;
		load->in_layer[k] = all        ? load->packets
		                    : external ? -1
		                               : (double)ow_flow_counts_in_layer(leg->counts, i, k);
	}
	ptrdiff_t at = leg->sender ? ow_flow_counts_find(leg->sender, count.flow) : -1;
	if (at < 0)
		return;
	ow_flow_counts_get(leg->sender, (size_t)at, &sent);
	load->whole = sent.packets == count.packets;
	load->first_ns = sent.first_ns < load->first_ns ? sent.first_ns : load->first_ns;
	load->last_ns = sent.last_ns > load->last_ns ? sent.last_ns : load->last_ns;
}

static int fill_loads(struct ow_flow_leg_flows *leg, const struct ow_colate_params *params, bool external)
{
	double sum = 0;
	leg->flows = ow_flow_counts_flows(leg->counts);
	leg->load = calloc(leg->flows + 1, sizeof *leg->load);
	leg->estimate = calloc(leg->flows + 1, sizeof *leg->estimate);
	if (!leg->load || !leg->estimate)
		return -ENOMEM;
	for (size_t i = 0; i < leg->flows; i++) {
		fill_load(leg, params, external, i, &leg->load[i]);
		sum += leg->load[i].packets;
	}
	/* Each counted packet is in one flow. (Sums of integers below 2^53 are exact.) */
	assert(sum > 0x1p53 || sum == (double)ow_flow_counts_packets(leg->counts));
	return 0;
}

/* -- clean counters ------------------------------------------------------------------------------------------------ */

/* Counts the counters with packets, and those with the same packets at both points. */
static void count_clean(const struct ow_flow_leg_input *in, const struct ow_flows *flows, struct ow_flow_leg *leg)
{
	leg->counters = leg->clean = 0;
	for (uint32_t k = 0; k < flows->params.layers; k++) {
		const uint64_t *x = ow_colate_counters(in->side[0].sum->colate, k);
		const uint64_t *y = ow_colate_counters(in->side[1].sum->colate, k);
		const bool *clean = flows->layer[k].clean;
		for (uint32_t j = 0; j < flows->layer[k].layer.counters; j++) {
			bool used = x[j] || y[j];
			leg->counters += used;
			leg->clean += used && clean[j];
		}
	}
}

/* Notes packets that were found, by flow of `from` and layer. */
static void note_found(const struct ow_flow_counts *from, const struct ow_lost_packets *packets,
                       const struct ow_colate_params *params, int64_t *more)
{
	for (size_t i = 0; i < packets->count; i++) {
		ptrdiff_t at = ow_flow_counts_find(from, packets->packet[i].flow);
		uint32_t place = ow_colate_place(packets->packet[i].hash);
		for (uint32_t k = 0; at >= 0 && k < params->layers; k++)
			if (place >= params->layer[k].first && place < params->layer[k].last)
				more[(size_t)at * params->layers + k] -= packets->packet[i].sign;
	}
}

/*
 * Packets of each flow of `from` at A less those at B, without the packets that were found. sign: 1 if `from` is of A;
 * -1 if it is of B, then only flows that A does not have. -ENOMEM.
 */
static int distrust_flows(const struct ow_flow_counts *from, const struct ow_flow_counts *other, int sign,
                          const struct ow_lost_packets *packets, struct ow_flows *flows)
{
	size_t count = ow_flow_counts_flows(from);
	uint32_t layers = flows->params.layers;
	int64_t *more = calloc(count * layers + 1, sizeof *more);
	if (!more)
		return -ENOMEM;
	note_found(from, packets, &flows->params, more);
	for (size_t i = 0; i < count; i++) {
		struct ow_flow_count own;
		ow_flow_counts_get(from, i, &own);
		ptrdiff_t at = ow_flow_counts_find(other, own.flow);
		if (at >= 0 && sign < 0)
			continue;
		for (uint32_t k = 0; k < layers; k++) {
			uint64_t here = ow_flow_counts_in_layer(from, i, k);
			uint64_t there = at >= 0 ? ow_flow_counts_in_layer(other, (size_t)at, k) : 0;
			uint64_t off = sign > 0 ? here - there : there - here;
			if (off + (uint64_t)more[i * layers + k] != 0)
				ow_flows_distrust(flows, own.flow, k);
		}
	}
	free(more);
	return 0;
}

/*
 * A flow of which the points counted different numbers has a packet that only one of them has. A check of 16 bits misses
 * one such counter in 65536, which would spoil the estimates of all flows.
 */
static int distrust(const struct ow_flow_leg_input *in, const struct ow_lost_packets *packets, struct ow_flows *flows)
{
	const struct ow_flow_counts *a = in->side[0].sum->counts, *b = in->side[1].sum->counts;
	if (!a || !b)
		return 0;
	int r = distrust_flows(a, b, 1, packets, flows);
	return r < 0 ? r : distrust_flows(b, a, -1, packets, flows);
}

/* -- packets that only one point has ------------------------------------------------------------------------------- */

/* Whether both points have as many packets of each flow, without those that were taken out. */
static int balance(const struct ow_flow_leg_flows *leg, const struct ow_lost_packets *packets)
{
	int64_t *more = calloc(leg->flows + 1, sizeof *more);
	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < packets->count; i++) {
		ptrdiff_t at = ow_flow_counts_find(leg->counts, packets->packet[i].flow);
		if (at >= 0)
			more[at] -= packets->packet[i].sign;
	}
	for (size_t i = 0; leg->sender && i < leg->flows; i++) {
		struct ow_flow_count sent, received;
		ptrdiff_t at = ow_flow_counts_find(leg->sender, leg->load[i].flow);
		ow_flow_counts_get(leg->counts, i, &received);
		if (at < 0)
			continue;
		ow_flow_counts_get(leg->sender, (size_t)at, &sent);
		leg->load[i].balanced = sent.packets - received.packets + (uint64_t)more[i] == 0;
	}
	free(more);
	return 0;
}

/* The packets of this flow in the layers, less those that were taken out. */
static void lighten(const struct ow_flow_leg_flows *leg, const struct ow_colate_params *params,
                    const struct ow_lost_packet *packet)
{
	ptrdiff_t at = ow_flow_counts_find(leg->counts, packet->flow);
	struct ow_flow_load *load = at >= 0 ? &leg->load[at] : NULL;
	uint32_t place = ow_colate_place(packet->hash);
	if (!load || packet->sign > 0)
		return;
	load->packets--;
	for (uint32_t k = 0; k < params->layers; k++)
		if (load->in_layer[k] > 0 && place >= params->layer[k].first && place < params->layer[k].last)
			load->in_layer[k]--;
}

static int repair(const struct ow_flow_leg_input *in, struct ow_flows *flows, struct ow_flow_leg *leg,
                  const struct ow_flow_leg_flows *of, struct ow_lost_packets *packets, struct ow_error *err)
{
	uint64_t before = leg->clean;
	int r = ow_flow_repair_find(in->side, in->since_ns, in->until_ns, in->offset_ns, packets, err);
	if (r < 0)
		return r;
	if (packets->count) {
		ow_flows_take_out(flows, packets);
		for (size_t i = 0; i < packets->count; i++)
			lighten(of, &flows->params, &packets->packet[i]);
		count_clean(in, flows, leg);
		leg->repaired = leg->clean > before ? leg->clean - before : 0;
	}
	leg->searched = r > 0;
	leg->lost = packets->lost;
	leg->extra = packets->extra;
	leg->unread = packets->unread;
	return 0;
}

/* -- own counters of heavy flows ----------------------------------------------------------------------------------- */

/* B - A, without packets that were taken out. */
struct own_off {
	uint64_t sum, packets;
	uint32_t check;
	double noise; /* units^2 */
	bool repaired;
};

static void take_from_own(struct own_off *off, const struct ow_lost_packet *packet)
{
	bool at_a = packet->sign > 0;
	uint32_t check = ow_colate_check_word(packet->hash);
	off->sum += at_a ? (uint64_t)packet->time : -(uint64_t)packet->time;
	off->packets += at_a ? 1 : UINT64_MAX;
	off->check += at_a ? check : -check;
	off->noise += packet->var;
	off->repaired = true;
}

/* Of a packet that was taken out, 16 bits of its check are known. */
static bool is_clean(const struct own_off *off)
{
	return !off->packets && !(off->repaired ? off->check & 0xffff : off->check);
}

/* Both points must have the same packets in it: all of the flow, or those of epochs in which it was heavy. */
static void fill_own(const struct ow_flow_leg_flows *leg, size_t i, struct own_off *off, int64_t offset_ns,
                     int64_t unit_ns)
{
	struct ow_flow_count to, from;
	ptrdiff_t at = ow_flow_counts_find(leg->sender, leg->load[i].flow);
	ow_flow_counts_get(leg->counts, i, &to);
	if (at < 0 || !to.own.packets)
		return;
	ow_flow_counts_get(leg->sender, (size_t)at, &from);
	bool all = to.own.packets == to.packets && from.own.packets == from.packets;
	if (!from.own.packets || (off->repaired && !all))
		return;
	off->sum += to.own.sum - from.own.sum;
	off->packets += to.own.packets - from.own.packets;
	off->check += to.own.check - from.own.check;
	if (!is_clean(off))
		return;
	leg->load[i].own_packets = all ? leg->load[i].packets : (double)to.own.packets;
	double n = leg->load[i].own_packets, unit = (double)unit_ns;
	off->sum += (uint64_t)(offset_ns / unit_ns) * (uint64_t)n;
	leg->load[i].own_delay_ns = (double)(int64_t)off->sum * unit + n * (double)(offset_ns % unit_ns);
	leg->load[i].own_noise = off->noise * unit * unit;
}

static int use_own(const struct ow_flow_leg_input *in, const struct ow_flow_leg_flows *leg,
                   const struct ow_lost_packets *packets)
{
	if (in->counts || !in->side[0].sum->counts || !in->side[1].sum->counts)
		return 0;
	struct own_off *off = calloc(leg->flows + 1, sizeof *off);
	if (!off)
		return -ENOMEM;
	for (size_t i = 0; i < packets->count; i++) {
		ptrdiff_t at = ow_flow_counts_find(leg->counts, packets->packet[i].flow);
		if (at >= 0)
			take_from_own(&off[at], &packets->packet[i]);
	}
	for (size_t i = 0; i < leg->flows; i++)
		fill_own(leg, i, &off[i], in->offset_ns, ow_colate_params(in->side[0].sum->colate)->unit_ns);
	free(off);
	return 0;
}

/* -- samples of heavy flows ---------------------------------------------------------------------------------------- */

static void no_spreads(const struct ow_flow_leg_flows *leg)
{
	for (size_t i = 0; i < leg->flows; i++)
		leg->estimate[i].no_spread = OW_REASON_FLOW_NOT_SAMPLED;
}

/* Both points must have sampled the flow. */
static bool fill_spread(const struct ow_flow_leg_flows *leg, size_t i, struct ow_flow_spread *spread)
{
	struct ow_flow_count to;
	struct ow_flow_estimate *estimate = &leg->estimate[i];
	ow_flow_counts_get(leg->counts, i, &to);
	ptrdiff_t at = to.own.packets ? ow_flow_counts_find(leg->sender, to.flow) : -1;
	if (at < 0)
		return false;
	struct ow_flow_sample x = ow_flow_counts_sample(leg->sender, (size_t)at);
	struct ow_flow_sample y = ow_flow_counts_sample(leg->counts, i);
	if (!x.count || !y.count)
		return false;
	if (!ow_flow_spread(&x, &y, to.own.packets, to.packets, spread)) {
		estimate->no_spread = OW_REASON_FLOW_FEW_SAMPLED;
		return false;
	}
	estimate->spread = spread;
	return true;
}

static int use_samples(const struct ow_flow_leg_input *in, struct ow_flow_leg_flows *leg)
{
	size_t heavy = 0;
	no_spreads(leg);
	if (in->counts || !in->side[0].sum->counts || !in->side[1].sum->counts)
		return 0;
	for (size_t i = 0; i < leg->flows; i++) {
		struct ow_flow_count count;
		ow_flow_counts_get(leg->counts, i, &count);
		heavy += count.own.packets > 0;
	}
	leg->spread = calloc(heavy + 1, sizeof *leg->spread);
	if (!leg->spread)
		return -ENOMEM;
	struct ow_flow_spread *next = leg->spread;
	for (size_t i = 0; i < leg->flows; i++)
		next += fill_spread(leg, i, next);
	return 0;
}

/* -- estimates ----------------------------------------------------------------------------------------------------- */

static int make_clean(const struct ow_flow_leg_input *in, struct ow_flows *flows, struct ow_flow_leg *leg,
                      const struct ow_flow_leg_flows *of, struct ow_lost_packets *packets, struct ow_error *err)
{
	int r = 0;
	count_clean(in, flows, leg);
	if (!in->no_repair && leg->clean < leg->counters)
		r = repair(in, flows, leg, of, packets, err);
	if (r == 0 && distrust(in, packets, flows) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory for %zu flows", of->flows);
	count_clean(in, flows, leg);
	if (r == 0 && !leg->clean)
		r = ow_error_set(err, ENOMSG,
		                 "nothing can be estimated: none of the %llu counters has the same packets at %.120s "
		                 "and %.120s: each lost "
		                 "a packet, or these are recordings of different traffic",
		                 (unsigned long long)leg->counters, in->path[0], in->path[1]);
	return r;
}

/* The mean of heavy flows, which is exact; if there are none, of all packets with an estimate. */
static double mean_delay(const struct ow_flow_leg_flows *leg)
{
	double sum = 0, packets = 0;
	for (size_t i = 0; i < leg->flows; i++) {
		sum += leg->load[i].own_packets > 0 ? leg->load[i].own_delay_ns : 0;
		packets += leg->load[i].own_packets > 0 ? leg->load[i].own_packets : 0;
	}
	if (packets > 0)
		return sum / packets;
	if (leg->is_noise)
		return NAN;
	for (size_t i = 0; i < leg->flows; i++) {
		if (leg->estimate[i].mean_ns.status == OW_VALUE_NONE)
			continue;
		sum += leg->estimate[i].mean_ns.value * leg->load[i].packets;
		packets += leg->load[i].packets;
	}
	return packets > 0 ? sum / packets : NAN;
}

/* Packets that only one point has, from before the first or after the last packet of the other: it may not have recorded. */
static void count_uncovered(const struct ow_flow_leg_input *in, const struct ow_lost_packets *packets, double delay_ns,
                            struct ow_flow_leg *leg)
{
	double unit_ns = ow_colate_params(in->side[0].sum->colate)->unit_ns;
	bool begins = in->since_ns != INT64_MIN, ends = in->until_ns != INT64_MAX;
	for (size_t i = 0; i < packets->count; i++) {
		int sign = packets->packet[i].sign;
		const struct ow_colate *other = in->side[sign > 0].sum->colate;
		double there = (double)packets->packet[i].time * unit_ns + sign * delay_ns;
		double error = 3 * sqrt(packets->packet[i].var) * unit_ns;
		double first = (double)ow_colate_first_ns(other), last = (double)ow_colate_last_ns(other);
		leg->uncovered += there + error < first || there - error > last;
		leg->in_flight += (begins && there - error < first) || (ends && there + error > last);
	}
}

/* What may not be lost, because the other point did not record then. Of packets that were found, the times are known. */
static int note_times(const struct ow_flow_leg_input *in, struct ow_flow_leg *leg,
                      const struct ow_lost_packets *packets, double delay_ns)
{
	bool ends = !leg->searched || leg->unread;
	count_uncovered(in, packets, delay_ns, leg);
	for (int i = 0; i < 2; i++) {
		struct ow_flow_cover other;
		if (ow_flow_cover_init(in->side[!i].epochs, &other) < 0)
			return -ENOMEM;
		double shift_ns = i ? -delay_ns : delay_ns;
		*(i ? &leg->unmet_to : &leg->unmet_from) =
			ow_flow_cover_unmet(&other, in->side[i].epochs, in->since_ns, in->until_ns, shift_ns, ends);
		ow_flow_cover_done(&other);
	}
	return 0;
}

int ow_flow_leg_estimate(const struct ow_flow_leg_input *in, struct ow_flow_leg *leg,
                         struct ow_flow_leg_flows *ret_flows, struct ow_error *err)
{
	struct ow_flows flows = {0};
	struct ow_lost_packets packets = {0};
	*ret_flows = (struct ow_flow_leg_flows){0};
	int r = choose_counts(in, ret_flows, err);
	if (r == 0)
		r = ow_flows_difference(in->side[0].sum->colate, in->side[1].sum->colate, &flows, err);
	if (r == 0 && fill_loads(ret_flows, &flows.params, in->counts != NULL) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory for %zu flows", ret_flows->flows);
	if (r == 0)
		r = make_clean(in, &flows, leg, ret_flows, &packets, err);
	if (r == 0 && (balance(ret_flows, &packets) < 0 || use_own(in, ret_flows, &packets) < 0))
		r = ow_error_set(err, ENOMEM, "not enough memory for %zu flows", ret_flows->flows);
	if (r == 0) {
		flows.flow = ret_flows->load;
		flows.flows = ret_flows->flows;
		if (ow_flows_correct(&flows, in->offset_ns) < 0)
			r = ow_error_set(err, ENOMEM, "not enough memory for counters");
	}
	if (r == 0)
		r = ow_flows_estimate(&flows, &in->estimate, ret_flows->estimate, err);
	if (r == 0 && use_samples(in, ret_flows) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory for the samples of flows");
	/* With a random j the points put a packet into different counters, so that differences are of times, not of delays. */
	ret_flows->is_noise = flows.params.layers && flows.params.layer[0].form == OW_COLATE_RANDOM;
	ret_flows->mean_ns = r == 0 ? mean_delay(ret_flows) : NAN;
	double delay_ns = isnan(ret_flows->mean_ns) ? 0 : ret_flows->mean_ns;
	if (r == 0 && note_times(in, leg, &packets, delay_ns - (double)in->offset_ns) < 0)
		r = ow_error_set(err, ENOMEM, "not enough memory");
	ow_lost_packets_done(&packets);
	ow_flows_done(&flows);
	return r;
}
