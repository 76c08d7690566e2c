/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of many flows, generated or read from a capture. */
#include "sim/flow_traffic.h"

#include "base/hash.h"
#include "base/sort.h"
#include "base/time.h"
#include "capture/file/reader.h"
#include "packet/flow.h"
#include "sim/models.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Memory: 32 bytes a packet while sorting. */
#define PACKETS_MAX UINT64_C(200000000)
#define LENGTH_MAX  (INT64_C(1) << 52)
#define TRAIN_GAP   12000 /* ns: 1500 bytes at 1 Gbit/s */
#define BATCH       256
/* The bytes that a packet of a trace has besides the IP packet, as in sim/path.c. */
#define FRAME_HEADER 14

void ow_flow_traffic_done(struct ow_flow_traffic *traffic)
{
	free(traffic->packet);
	free(traffic->flow);
	*traffic = (struct ow_flow_traffic){0};
}

int64_t ow_flow_traffic_length(const struct ow_flow_traffic *traffic)
{
	return traffic->packets ? traffic->packet[traffic->packets - 1].time_ns - traffic->packet[0].time_ns : 0;
}

double ow_flow_traffic_bps(const struct ow_flow_traffic *traffic)
{
	int64_t length_ns = ow_flow_traffic_length(traffic);
	return length_ns > 0 ? (double)traffic->bytes * 8e9 / (double)length_ns : 0;
}

/* -- made --------------------------------------------------------------------------------------------------------- */

static int check(const struct ow_flow_traffic_params *p, struct ow_error *err)
{
	if (!p->flows || !(p->shape > 0) || !(p->least >= 1) || p->most < p->least || !(p->train >= 1))
		return ow_error_set(err, EINVAL, "flow traffic: flows, shape, least, most or train out of range");
	if (p->length_ns <= 0 || p->length_ns > LENGTH_MAX || p->gap_ns[0] < 0 || p->gap_ns[1] < p->gap_ns[0] ||
	    p->gap_ns[1] > LENGTH_MAX)
		return ow_error_set(err, EINVAL, "flow traffic: length or gaps out of range");
	return 0;
}

/* The sizes of all flows, and their sum; 0 if the sum is above the limit. */
static uint64_t draw_sizes(const struct ow_flow_traffic_params *p, struct ow_random *random, uint32_t *sizes)
{
	uint64_t sum = 0;
	for (uint32_t f = 0; f < p->flows; f++) {
		double size = p->least * pow(1 - ow_random_unit(random), -1 / p->shape);
		sizes[f] = size < p->most ? (uint32_t)size : p->most;
		sum += sizes[f];
	}
	return sum <= PACKETS_MAX ? sum : 0;
}

static void make_steady(const struct ow_flow_traffic_params *p, uint32_t flow, uint32_t size, struct ow_random *random,
                        struct ow_flow_packet *packet)
{
	for (uint32_t i = 0; i < size; i++)
		packet[i] = (struct ow_flow_packet){(int64_t)ow_random_below(random, (uint64_t)p->length_ns), flow,
		                                    ow_size_sample(&p->size, random)};
}

static void make_flow(const struct ow_flow_traffic_params *p, uint32_t flow, uint32_t size, struct ow_random *random,
                      struct ow_flow_packet *packet)
{
	double least = p->gap_ns[1] ? (double)p->gap_ns[0] : OW_NS_PER_MS;
	double most = p->gap_ns[1] ? (double)p->gap_ns[1] : OW_NS_PER_S;
	least = fmax(least, 1);
	double gap = least * pow(fmax(most, 1) / least, ow_random_unit(random)), at = 0;
	int64_t start_ns = (int64_t)(ow_random_unit(random) * (double)p->length_ns);
	for (uint32_t i = 0; i < size; i++) {
		bool follows = i && ow_random_unit(random) >= 1 / p->train;
		if (i)
			at += follows ? TRAIN_GAP : gap * ow_random_exponential(random);
		packet[i] = (struct ow_flow_packet){(int64_t)at, flow, ow_size_sample(&p->size, random)};
	}
	double room = (double)(p->length_ns - start_ns), scale = at > room ? room / at : 1;
	for (uint32_t i = 0; i < size; i++)
		packet[i].time_ns = start_ns + (int64_t)((double)packet[i].time_ns * scale);
}

int ow_flow_traffic_make(const struct ow_flow_traffic_params *params, struct ow_flow_traffic *ret_traffic,
                         struct ow_error *err)
{
	int r = check(params, err);
	if (r < 0)
		return r;
	struct ow_random random;
	ow_random_seed(&random, params->seed);
	struct ow_flow_traffic out = {.flows = params->flows};
	uint32_t *sizes = malloc(params->flows * sizeof *sizes);
	if (!sizes)
		return ow_error_set(err, ENOMEM, "flow traffic: not enough memory");
	out.packets = draw_sizes(params, &random, sizes);
	if (!out.packets) {
		free(sizes);
		return ow_error_set(err, EINVAL, "flow traffic: more than %llu packets",
		                    (unsigned long long)PACKETS_MAX);
	}
	struct ow_flow_packet *spare = malloc(out.packets * sizeof *spare);
	out.packet = malloc(out.packets * sizeof *out.packet);
	out.flow = malloc(out.flows * sizeof *out.flow);
	if (spare && out.packet && out.flow) {
		size_t at = 0;
		for (uint32_t f = 0; f < out.flows; f++) {
			out.flow[f] = ow_random_u64(&random);
			(params->steady ? make_steady : make_flow)(params, f, sizes[f], &random, out.packet + at);
			at += sizes[f];
		}
		ow_sort_items(out.packet, spare, out.packets, sizeof *spare, offsetof(struct ow_flow_packet, time_ns));
		for (size_t i = 0; i < out.packets; i++)
			out.bytes += out.packet[i].len;
		*ret_traffic = out;
	} else {
		ow_flow_traffic_done(&out);
		r = ow_error_set(err, ENOMEM, "flow traffic: not enough memory");
	}
	free(spare);
	free(sizes);
	return r;
}

/* -- of a capture ------------------------------------------------------------------------------------------------- */

struct trace {
	struct ow_flow_traffic out;
	struct ow_flow_table *table;
	size_t room;
	int64_t latest_ns;
};

static int take(struct trace *trace, const struct ow_frame *frame)
{
	struct ow_packet packet;
	if (ow_packet_decode(frame, false, &packet) != OW_DECODE_IP)
		return 0;
	if (OW_GROW(trace->out.packet, trace->room, trace->out.packets + 1) < 0)
		return -ENOMEM;
	struct ow_flow_key key;
	ow_flow_key_of_packet(&packet, &key);
	if (!trace->out.packets || frame->time_ns > trace->latest_ns)
		trace->latest_ns = frame->time_ns;
	uint32_t len = packet.ip_len + FRAME_HEADER;
	trace->out.packet[trace->out.packets++] =
		(struct ow_flow_packet){trace->latest_ns, ow_flow_table_number(trace->table, &key), len};
	trace->out.bytes += len;
	return 0;
}

static int read_all(struct trace *trace, struct ow_reader *reader, uint64_t most, struct ow_error *err)
{
	struct ow_frame frame[BATCH];
	int got;
	while ((!most || trace->out.packets < most) && (got = ow_reader_read(reader, frame, BATCH, err)) != 0) {
		if (got < 0)
			return got;
		for (int i = 0; i < got && (!most || trace->out.packets < most); i++) {
			if (trace->out.packets >= PACKETS_MAX || take(trace, &frame[i]) < 0)
				return ow_error_set(err, ENOMEM, "%s: too many packets", ow_reader_info(reader)->path);
		}
	}
	if (!trace->out.packets)
		return ow_error_set(err, EINVAL, "%s: no IP packets", ow_reader_info(reader)->path);
	return 0;
}

int ow_flow_traffic_read(const char *path, uint64_t most, uint64_t seed, struct ow_flow_traffic *ret_traffic,
                         struct ow_error *err)
{
	struct trace trace = {0};
	struct ow_reader *reader;
	int r = ow_reader_open(path, &reader, err);
	if (r < 0)
		return r;
	if (ow_flow_table_create(seed, &trace.table) < 0)
		r = ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	else
		r = read_all(&trace, reader, most, err);
	if (r == 0) {
		trace.out.flows = ow_flow_table_count(trace.table);
		trace.out.flow = malloc(trace.out.flows * sizeof *trace.out.flow);
		if (!trace.out.flow)
			r = ow_error_set(err, ENOMEM, "%s: not enough memory", path);
	}
	if (r == 0 && trace.out.flow) {
		for (uint32_t f = 0; f < trace.out.flows; f++)
			trace.out.flow[f] = ow_mix64(ow_mix64(seed) + f);
		*ret_traffic = trace.out;
	} else {
		ow_flow_traffic_done(&trace.out);
	}
	ow_flow_table_free(trace.table);
	ow_reader_close(reader);
	return r;
}
