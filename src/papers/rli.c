/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RLI: injects probes and interpolates. The COLATE paper does not say how the probe rate depends on the utilisation;
 * its Table 3 fits a linear dependence (the ICSI trace: 0.43 and 0.41 from the two pairs of limits).
 */
#include "papers/rli.h"

#include "base/sort.h"
#include "sim/models.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PROBE     UINT32_MAX
#define PROBE_KEY UINT64_C(0x50524f4245) /* the probes' flow */

struct arrival {
	int64_t time_ns; /* since the first packet was sent */
	int64_t delay_ns;
	uint32_t flow; /* or PROBE */
};

struct sender {
	const struct ow_rli_params *params;
	double rate_bps;
	double utilisation;
	int64_t window_end_ns;
	double window_bytes;
	double credit; /* probes that are due */
};

/* Counts a packet, and returns whether a probe is due after it. */
static bool probe_due(struct sender *s, int64_t since_ns, uint32_t len)
{
	const struct ow_rli_params *p = s->params;
	if (since_ns >= s->window_end_ns) {
		bool next = since_ns < s->window_end_ns + p->window_ns;
		double full = s->rate_bps / 8 * (double)p->window_ns / 1e9;
		s->utilisation = next ? fmin(1, s->window_bytes / full) : 0;
		s->window_end_ns = since_ns - since_ns % p->window_ns + p->window_ns;
		s->window_bytes = 0;
	}
	s->window_bytes += len;
	s->credit += p->most - (p->most - p->least) * s->utilisation;
	if (s->credit < 1)
		return false;
	s->credit -= 1;
	return true;
}

/* Collects all packets that arrive, in the order of sending; returns their number. */
static size_t transmit(const struct ow_flow_traffic *traffic, struct ow_flow_passage *passage, struct sender *sender,
                       struct arrival *arrival, struct ow_rli *out)
{
	size_t arrivals = 0;
	double sum = 0;
	for (size_t i = 0; i < traffic->packets; i++) {
		const struct ow_flow_packet *p = &traffic->packet[i];
		int64_t since_ns = p->time_ns - traffic->packet[0].time_ns;
		int64_t delay_ns = ow_flow_passage_next(passage, traffic->flow[p->flow], p->len, since_ns);
		out->packets++;
		out->truth[p->flow].sent++;
		out->lost += delay_ns < 0;
		if (delay_ns >= 0) {
			arrival[arrivals++] = (struct arrival){since_ns + delay_ns, delay_ns, p->flow};
			sum += (double)delay_ns;
		}
		if (!probe_due(sender, since_ns, p->len))
			continue;
		delay_ns = ow_flow_passage_next(passage, PROBE_KEY, sender->params->probe_len, since_ns);
		out->probes++;
		out->probes_lost += delay_ns < 0;
		if (delay_ns >= 0)
			arrival[arrivals++] = (struct arrival){since_ns + delay_ns, delay_ns, PROBE};
	}
	out->mean_ns = out->packets > out->lost ? sum / (double)(out->packets - out->lost) : 0;
	return arrivals;
}

/*
 * The receiver: packets wait for the next probe. Before the first and after the last probe, the delay of the nearest
 * one is used.
 */
static void interpolate(const struct arrival *arrival, size_t arrivals, struct ow_rli *out)
{
	const struct arrival *before = NULL;
	size_t waiting = 0;
	for (size_t i = 0; i <= arrivals; i++) {
		const struct arrival *after = i < arrivals ? &arrival[i] : NULL;
		if (after && after->flow != PROBE)
			continue;
		for (; waiting < i; waiting++) {
			const struct arrival *w = &arrival[waiting], *near = before ? before : after;
			double delay = near ? (double)near->delay_ns : NAN;
			if (before && after && after->time_ns > before->time_ns)
				delay += (double)(after->delay_ns - before->delay_ns) *
				         (double)(w->time_ns - before->time_ns) /
				         (double)(after->time_ns - before->time_ns);
			ow_flow_truth_count(&out->truth[w->flow], (double)w->delay_ns);
			if (near)
				ow_flow_truth_count(&out->estimate[w->flow], delay);
		}
		waiting = i + 1;
		before = after;
	}
	for (size_t f = 0; f < out->flows; f++) {
		ow_flow_truth_settle(&out->truth[f]);
		ow_flow_truth_settle(&out->estimate[f]);
	}
}

static int check(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
                 const struct ow_rli_params *params, struct ow_error *err)
{
	if (!traffic->packets)
		return ow_error_set(err, EINVAL, "rli: no packets");
	if (path->delay.paths != 1 || !ow_model_is_queue(&path->delay.path[0]))
		return ow_error_set(err, EINVAL, "rli: the path is not a single queue");
	if (!(params->least >= 0 && params->least <= params->most && params->most <= 1) || params->window_ns <= 0)
		return ow_error_set(err, EINVAL, "rli: rates of probes or window out of range");
	return 0;
}

int ow_rli_run(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
               const struct ow_rli_params *params, struct ow_rli *ret_rli, struct ow_error *err)
{
	struct ow_flow_passage *passage = NULL;
	int r = check(traffic, path, params, err);
	if (r == 0)
		r = ow_flow_passage_create(path, &passage, err);
	if (r < 0)
		return r;
	struct ow_rli out = {.flows = traffic->flows};
	/* There is at most one probe for every packet. */
	struct arrival *arrival = malloc(2 * traffic->packets * sizeof *arrival);
	struct arrival *spare = malloc(2 * traffic->packets * sizeof *spare);
	out.truth = calloc(traffic->flows, sizeof *out.truth);
	out.estimate = calloc(traffic->flows, sizeof *out.estimate);
	if (arrival && spare && out.truth && out.estimate) {
		for (size_t f = 0; f < out.flows; f++)
			out.truth[f].flow = out.estimate[f].flow = traffic->flow[f];
		struct sender sender = {
			.params = params, .rate_bps = path->delay.path[0].a, .window_end_ns = params->window_ns};
		size_t arrivals = transmit(traffic, passage, &sender, arrival, &out);
		ow_sort_items(arrival, spare, arrivals, sizeof *arrival, offsetof(struct arrival, time_ns));
		interpolate(arrival, arrivals, &out);
		*ret_rli = out;
	} else {
		ow_rli_done(&out);
		r = ow_error_set(err, ENOMEM, "rli: not enough memory for %zu packets", traffic->packets);
	}
	free(arrival);
	free(spare);
	ow_flow_passage_free(passage);
	return r;
}

void ow_rli_done(struct ow_rli *rli)
{
	free(rli->truth);
	free(rli->estimate);
	*rli = (struct ow_rli){0};
}
