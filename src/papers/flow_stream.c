/* SPDX-License-Identifier: Apache-2.0 */
/* Flows on a path: sightings at both points, and the truth about each flow. */
#include "papers/flow_stream.h"

#include "base/sort.h"
#include "sim/queue.h"
#include "papers/delay_sampler.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BASE_MAX  (INT64_C(1) << 52)
#define START_MAX (INT64_C(1) << 62)

struct ow_flow_passage {
	const struct ow_flow_path *path;
	struct ow_delay_sampler sampler[OW_SIM_PATHS];
	struct ow_queue queue[OW_SIM_PATHS];
	struct ow_random random;
	struct ow_loss loss;
};

struct ow_sim_delay ow_flow_queue(enum ow_sim_delay_kind kind, const struct ow_flow_traffic *traffic,
                                  double utilisation, double buffer_bytes)
{
	double rate_bps = fmax(1, ow_flow_traffic_bps(traffic) / utilisation);
	return (struct ow_sim_delay){.path = {{kind, rate_bps, buffer_bytes, 1}}, .paths = 1};
}

static int check(const struct ow_flow_path *p, struct ow_error *err)
{
	if (!p->delay.paths || p->delay.paths > OW_SIM_PATHS)
		return ow_error_set(err, EINVAL, "flow stream: no delay");
	for (unsigned i = 0; i < p->delay.paths; i++) {
		if (ow_model_is_queue(&p->delay.path[i]) && !(p->delay.path[i].a >= 1))
			return ow_error_set(err, EINVAL, "flow stream: a queue without a rate");
	}
	if (!(p->spread >= 0 && p->spread <= 10) || !(p->loss.ratio >= 0 && p->loss.ratio <= 1) ||
	    !(p->loss.episode >= 0) || p->base_ns < 0 || p->base_ns > BASE_MAX || p->start_ns < 0 ||
	    p->start_ns > START_MAX)
		return ow_error_set(err, EINVAL, "flow stream: spread, loss, base or start out of range");
	return 0;
}

int ow_flow_passage_create(const struct ow_flow_path *path, struct ow_flow_passage **ret_passage, struct ow_error *err)
{
	int r = check(path, err);
	if (r < 0)
		return r;
	struct ow_flow_passage *passage = calloc(1, sizeof *passage);
	if (!passage)
		return ow_error_set(err, ENOMEM, "flow stream: not enough memory");
	passage->path = path;
	ow_random_seed(&passage->random, path->seed);
	ow_loss_init(&passage->loss, &path->loss, &passage->random);
	for (unsigned i = 0; i < path->delay.paths; i++) {
		const struct ow_sim_model *model = &path->delay.path[i];
		if (model->kind == OW_SIM_FIFO)
			ow_queue_init_fifo(&passage->queue[i], model->a, model->b);
		else if (model->kind == OW_SIM_RED)
			ow_queue_init_red(&passage->queue[i], model->a);
		else
			ow_delay_sampler_init(&passage->sampler[i], model);
	}
	*ret_passage = passage;
	return 0;
}

void ow_flow_passage_free(struct ow_flow_passage *passage)
{
	free(passage);
}

/* A random number in [0, 1) that is constant for a flow. */
static double unit_of(const struct ow_flow_passage *passage, uint64_t flow, uint64_t purpose)
{
	return (double)(ow_mix64(flow ^ ow_mix64(passage->path->seed + purpose)) >> 11) * 0x1p-53;
}

static double factor_of(const struct ow_flow_passage *passage, uint64_t flow)
{
	if (passage->path->spread <= 0)
		return 1;
	double u = 1 - unit_of(passage, flow, 1), v = unit_of(passage, flow, 2);
	return exp(passage->path->spread * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static unsigned path_of(struct ow_flow_passage *passage, uint64_t flow)
{
	const struct ow_sim_delay *delay = &passage->path->delay;
	if (delay->paths == 1)
		return 0;
	double u = delay->by_flow ? unit_of(passage, flow, 3) : ow_random_unit(&passage->random);
	unsigned i = 0;
	while (i + 1 < delay->paths && u >= delay->path[i].weight)
		u -= delay->path[i++].weight;
	return i;
}

int64_t ow_flow_passage_next(struct ow_flow_passage *passage, uint64_t flow, uint32_t len, int64_t since_ns)
{
	if (ow_loss_next(&passage->loss, &passage->random))
		return -1;
	unsigned i = path_of(passage, flow);
	int64_t delay_ns;
	if (ow_model_is_queue(&passage->path->delay.path[i]))
		delay_ns = ow_queue_pass(&passage->queue[i], since_ns, len, &passage->random);
	else
		delay_ns = (int64_t)((double)ow_delay_sampler_next(&passage->sampler[i], &passage->random) *
		                     factor_of(passage, flow));
	return delay_ns < 0 ? -1 : delay_ns + passage->path->base_ns;
}

/* Welford's update, because the difference of large sums of squares would lose precision. */
void ow_flow_truth_count(struct ow_flow_truth *truth, double delay_ns)
{
	truth->received++;
	double from = delay_ns - truth->mean_ns;
	truth->mean_ns += from / (double)truth->received;
	truth->stddev_ns += from * (delay_ns - truth->mean_ns);
}

void ow_flow_truth_settle(struct ow_flow_truth *truth)
{
	truth->stddev_ns = truth->received ? sqrt(fmax(0, truth->stddev_ns) / (double)truth->received) : 0;
}

static void make(const struct ow_flow_traffic *traffic, struct ow_flow_passage *passage, struct ow_flow_stream *out,
                 struct ow_flow_sighting *spare)
{
	struct ow_flow_truth all = {0};
	int64_t first_ns = traffic->packet[0].time_ns;
	for (size_t i = 0; i < traffic->packets; i++) {
		const struct ow_flow_packet *packet = &traffic->packet[i];
		struct ow_flow_truth *truth = &out->flow[packet->flow];
		uint64_t flow = traffic->flow[packet->flow];
		struct ow_flow_sighting sighting = {flow, ow_random_u64(&passage->random),
		                                    packet->time_ns + passage->path->start_ns};
		out->a[out->as++] = sighting;
		if (!truth->sent++)
			truth->first_ns = sighting.time_ns;
		truth->last_ns = sighting.time_ns > truth->last_ns ? sighting.time_ns : truth->last_ns;
		int64_t delay_ns = ow_flow_passage_next(passage, flow, packet->len, packet->time_ns - first_ns);
		if (delay_ns < 0)
			continue;
		sighting.time_ns += delay_ns;
		truth->last_ns = sighting.time_ns > truth->last_ns ? sighting.time_ns : truth->last_ns;
		out->b[out->bs++] = sighting;
		ow_flow_truth_count(truth, (double)delay_ns);
		ow_flow_truth_count(&all, (double)delay_ns);
	}
	for (size_t f = 0; f < out->flows; f++)
		ow_flow_truth_settle(&out->flow[f]);
	ow_flow_truth_settle(&all);
	out->mean_ns = all.mean_ns;
	out->stddev_ns = all.stddev_ns;
	ow_sort_items(out->b, spare, out->bs, sizeof *spare, offsetof(struct ow_flow_sighting, time_ns));
}

int ow_flow_stream_make(const struct ow_flow_traffic *traffic, const struct ow_flow_path *path,
                        struct ow_flow_stream *ret_stream, struct ow_error *err)
{
	if (!traffic->packets)
		return ow_error_set(err, EINVAL, "flow stream: no packets");
	struct ow_flow_stream out = {.flows = traffic->flows};
	struct ow_flow_passage *passage = NULL;
	int r = ow_flow_passage_create(path, &passage, err);
	if (r < 0)
		return r;
	struct ow_flow_sighting *spare = malloc(traffic->packets * sizeof *spare);
	out.a = malloc(traffic->packets * sizeof *out.a);
	out.b = malloc(traffic->packets * sizeof *out.b);
	out.flow = calloc(traffic->flows, sizeof *out.flow);
	if (spare && out.a && out.b && out.flow) {
		for (size_t f = 0; f < out.flows; f++)
			out.flow[f].flow = traffic->flow[f];
		make(traffic, passage, &out, spare);
		*ret_stream = out;
	} else {
		ow_flow_stream_done(&out);
		r = ow_error_set(err, ENOMEM, "flow stream: not enough memory for %zu packets", traffic->packets);
	}
	free(spare);
	ow_flow_passage_free(passage);
	return r;
}

void ow_flow_stream_done(struct ow_flow_stream *stream)
{
	free(stream->a);
	free(stream->b);
	free(stream->flow);
	*stream = (struct ow_flow_stream){0};
}
