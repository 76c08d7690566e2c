/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated traffic: flows with heavy-tailed sizes, TCP and UDP, IPv4 and IPv6, bursts, fragments, retransmissions, and
 * identical packets. Payloads are a marker that numbers packets and a slice of a small pool of random bytes.
 */
#include "sim/traffic.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "sim/build.h"
#include "sim/models.h"
#include "sim/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A slice begins in the first half and is at most as long as the second. The pool fits into a level 2 cache. */
#define PROGRESS_PACKETS 65536 /* between two reports of progress */
#define POOL_STARTS      65536
#define POOL_BYTES       (POOL_STARTS + 65536)

/* Time between the packets of a burst and between fragments: 1500 bytes at 10 Gb/s. */
#define BACK_TO_BACK_NS 1200

/* With superframes, a TCP packet of this size or more becomes a burst. */
#define TRAIN_FROM 500

/* Payload and flow number of the identical packets. */
#define IDENTICAL_PAYLOAD 72
#define IDENTICAL_FLOW    UINT32_MAX

struct flow {
	bool tcp, v6;
	bool acked[2]; /* the last packet of this direction carried the current ack */
	uint16_t sport, dport;
	uint16_t ip_id[2];
	uint32_t seq[2], ack[2];
	struct sent { /* last TCP segment with data, for retransmission */
		uint64_t marker;
		uint32_t seq, len, offset;
	} sent[2];
};

struct ow_traffic {
	const struct ow_sim_options *options;
	struct ow_wire_pool *pool;
	struct ow_replay *replay;
	struct ow_random random;
	struct ow_gaps gaps;
	struct ow_alias popularity;
	struct flow *flows;
	struct ow_wire_heap later; /* packets of bursts and fragments that wait for their time */
	int64_t next_ns;           /* when the next packet, or burst, begins */
	uint64_t made;             /* packets built */
	uint64_t retransmitted, identical, fragments;
	uint8_t payload[POOL_BYTES];
};

void ow_stream_seed(struct ow_random *random, uint64_t seed, enum ow_random_stream stream)
{
	ow_random_seed(random, ow_mix64(seed + UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)stream + 1)));
}

void ow_gaps_init(struct ow_gaps *gaps, const struct ow_sim_options *options)
{
	*gaps = (struct ow_gaps){.gap_ns = 1e9 / options->rate_pps, .constant = options->constant_rate};
	ow_stream_seed(&gaps->random, options->seed, OW_STREAM_TIME);
}

int64_t ow_gaps_next(struct ow_gaps *gaps)
{
	if (gaps->constant)
		return (int64_t)((double)gaps->count++ * gaps->gap_ns);
	gaps->fine += llrint(256 * gaps->gap_ns * ow_random_exponential(&gaps->random));
	return gaps->fine >> 8;
}

static bool chance(struct ow_random *random, double share)
{
	return share > 0 && ow_random_unit(random) < share;
}

static void make_flows(struct ow_traffic *traffic)
{
	static const uint16_t ports[] = {443, 443, 443, 80, 53, 8080, 5201, 2049, 3260, 1883};
	struct ow_random *random = &traffic->random;
	for (uint32_t i = 0; i < traffic->options->flows; i++) {
		struct flow *flow = &traffic->flows[i];
		flow->tcp = ow_random_unit(random) < traffic->options->tcp;
		flow->v6 = ow_random_unit(random) < traffic->options->ipv6;
		uint64_t draw = ow_random_u64(random);
		flow->sport = (uint16_t)(32768 + (draw & 0x3fff));
		flow->dport = ports[(draw >> 16) % (sizeof ports / sizeof *ports)];
		flow->ip_id[0] = (uint16_t)(draw >> 32);
		flow->ip_id[1] = (uint16_t)(draw >> 48);
		draw = ow_random_u64(random);
		flow->seq[0] = flow->ack[1] = (uint32_t)draw;
		flow->seq[1] = flow->ack[0] = (uint32_t)(draw >> 32);
	}
}

/* Clients at A are 10.0.0.0/8 or 2001:db8:a::/64, one address per flow. B has a thousand servers. */
static void flow_ends(const struct flow *flow, uint32_t number, int direction, struct ow_ends *ret_ends)
{
	uint8_t client[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0x0a}, server[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0x0b};
	uint32_t client_number = number + 1, server_number = 1 + (uint32_t)(ow_mix64(number) % 1000);
	*ret_ends = (struct ow_ends){.v6 = flow->v6, .sport = flow->sport, .dport = flow->dport};
	if (flow->v6) {
		ow_store_be32(client + 12, client_number);
		ow_store_be32(server + 12, server_number);
	} else {
		ow_store_be32(client, 0x0a000000 | (client_number & 0xffffff));
		ow_store_be32(server, 0xac100000 | server_number);
	}
	memcpy(direction == OW_A_TO_B ? ret_ends->src : ret_ends->dst, client, 16);
	memcpy(direction == OW_A_TO_B ? ret_ends->dst : ret_ends->src, server, 16);
	if (direction == OW_B_TO_A) {
		ret_ends->sport = flow->dport;
		ret_ends->dport = flow->sport;
	}
}

static struct ow_wire *new_packet(struct ow_traffic *traffic, uint32_t flow, int direction, int64_t time_ns)
{
	struct ow_wire *wire = ow_wire_get(traffic->pool);
	if (!wire)
		return NULL;
	wire->time_ns = time_ns;
	wire->flow = flow;
	wire->direction = (uint8_t)direction;
	wire->number = traffic->made++;
	return wire;
}

static const uint8_t *slice(struct ow_traffic *traffic)
{
	return traffic->payload + (ow_random_u64(&traffic->random) & (POOL_STARTS - 2));
}

/* Sets what all packets of a flow share; advances the IP id. */
static void begin_content(struct ow_traffic *traffic, struct flow *flow, int direction, struct ow_content *ret_content)
{
	const struct ow_sim_options *options = traffic->options;
	uint32_t ms = (uint32_t)(traffic->next_ns / OW_NS_PER_MS);
	*ret_content = (struct ow_content){
		.ip_id = flow->ip_id[direction]++,
		.dont_fragment = flow->tcp,
		.extensions = flow->v6 && chance(&traffic->random, options->ipv6_extensions),
		.ect = options->ecn_mark > 0,
		.ack = flow->ack[direction],
		.tsval = ms + flow->sport,
		.tsecr = ms + flow->dport,
		.marker = traffic->made + 1,
	};
}

static struct ow_wire *make_udp(struct ow_traffic *traffic, uint32_t number, int direction, uint32_t size)
{
	struct flow *flow = &traffic->flows[number];
	struct ow_ends ends;
	struct ow_content content;
	flow_ends(flow, number, direction, &ends);
	begin_content(traffic, flow, direction, &content);
	uint32_t headers = ow_build_udp_headers(flow->v6, content.extensions);
	/* Room for the marker; otherwise datagrams without an IP id would be identical. */
	content.payload_len = size > headers + 8 ? size - headers : 8;
	content.pool = slice(traffic);
	struct ow_wire *wire = new_packet(traffic, number, direction, traffic->next_ns);
	if (wire)
		ow_build_udp(wire, &ends, &content);
	return wire;
}

/* The first fragment has about the given size, the second is at most as long. */
static struct ow_wire *make_fragments(struct ow_traffic *traffic, uint32_t number, int direction, uint32_t size)
{
	struct flow *flow = &traffic->flows[number];
	struct ow_ends ends;
	struct ow_content content;
	flow_ends(flow, number, direction, &ends);
	begin_content(traffic, flow, direction, &content);
	uint32_t headers = ow_build_udp_headers(flow->v6, content.extensions) + (flow->v6 ? 8 : 0);
	uint32_t cut = size > headers + 64 ? size - headers : 64;
	cut = (cut < 32000 ? cut : 32000) & ~7u;
	content.payload_len = cut + 16 + (uint32_t)ow_random_below(&traffic->random, cut - 16);
	content.pool = slice(traffic);
	struct ow_wire *first = new_packet(traffic, number, direction, traffic->next_ns);
	struct ow_wire *second = new_packet(traffic, number, direction, traffic->next_ns + BACK_TO_BACK_NS);
	if (!first || !second)
		return NULL;
	ow_build_fragments(first, second, &ends, &content, cut);
	traffic->fragments += 2;
	return ow_wire_heap_push(&traffic->later, second) < 0 ? NULL : first;
}

static void send_data(struct ow_traffic *traffic, struct flow *flow, int direction, struct ow_content *content,
                      uint32_t payload_len)
{
	content->payload_len = payload_len;
	content->pool = slice(traffic);
	content->seq = flow->seq[direction];
	content->push = true;
	flow->seq[direction] += payload_len;
	flow->ack[!direction] += payload_len;
	flow->acked[!direction] = false;
	flow->sent[direction] =
		(struct sent){content->marker, content->seq, payload_len, (uint32_t)(content->pool - traffic->payload)};
}

static void send_again(struct ow_traffic *traffic, struct flow *flow, int direction, struct ow_content *content)
{
	const struct sent *sent = &flow->sent[direction];
	content->payload_len = sent->len;
	content->pool = traffic->payload + sent->offset;
	content->seq = sent->seq;
	content->marker = sent->marker;
	content->push = true;
	traffic->retransmitted++;
}

static struct ow_wire *make_tcp(struct ow_traffic *traffic, uint32_t number, int direction, uint32_t size)
{
	struct flow *flow = &traffic->flows[number];
	struct ow_ends ends;
	struct ow_content content;
	flow_ends(flow, number, direction, &ends);
	begin_content(traffic, flow, direction, &content);
	uint32_t headers = ow_build_tcp_headers(flow->v6, content.extensions);
	if (flow->sent[direction].len && chance(&traffic->random, traffic->options->retransmissions)) {
		send_again(traffic, flow, direction, &content);
	} else if (size > headers) {
		send_data(traffic, flow, direction, &content, size - headers);
	} else {
		/* Acknowledges something new; otherwise two acknowledgements would be identical. */
		if (flow->acked[direction])
			flow->ack[direction] += 1448;
		flow->acked[direction] = true;
		content.ack = flow->ack[direction];
		content.seq = flow->seq[direction];
		content.pool = traffic->payload;
	}
	struct ow_wire *wire = new_packet(traffic, number, direction, traffic->next_ns);
	if (wire)
		ow_build_tcp(wire, &ends, &content);
	return wire;
}

/* One segment of a burst, sent at_ns, with the content of the segment before, or of the start. */
static struct ow_wire *make_segment(struct ow_traffic *traffic, uint32_t number, int direction,
                                    struct ow_content *content, uint32_t len, bool end, int64_t at_ns)
{
	struct flow *flow = &traffic->flows[number];
	struct ow_ends ends;
	flow_ends(flow, number, direction, &ends);
	content->marker = traffic->made + 1;
	send_data(traffic, flow, direction, content, len);
	content->push = end;
	struct ow_wire *wire = new_packet(traffic, number, direction, at_ns);
	if (!wire)
		return NULL;
	ow_build_tcp(wire, &ends, content);
	wire->data = true;
	wire->train_end = end;
	return wire;
}

/* A burst of full segments, as a host with segmentation offload sends them; returns the first. */
static struct ow_wire *make_train(struct ow_traffic *traffic, uint32_t number, int direction)
{
	const struct ow_sim_options *options = traffic->options;
	struct flow *flow = &traffic->flows[number];
	struct ow_content content;
	begin_content(traffic, flow, direction, &content);
	content.extensions = false;
	uint32_t headers = ow_build_tcp_headers(flow->v6, false), mss = options->mtu - headers;
	uint64_t most = (options->superframe_bytes - headers) / mss, left = options->packets - traffic->made;
	uint32_t more = (uint32_t)ow_random_below(&traffic->random, most < left ? most : left);
	uint32_t rest = 8 + (uint32_t)ow_random_below(&traffic->random, mss - 7);
	int64_t at_ns = traffic->next_ns;
	struct ow_wire *first = make_segment(traffic, number, direction, &content, more ? mss : rest, !more, at_ns);
	if (!first)
		return NULL;
	first->segments = (uint16_t)(1 + more);
	first->last = first;
	while (more-- > 0) {
		content.ip_id = flow->ip_id[direction]++;
		at_ns += BACK_TO_BACK_NS;
		struct ow_wire *wire =
			make_segment(traffic, number, direction, &content, more ? mss : rest, !more, at_ns);
		if (!wire || ow_wire_heap_push(&traffic->later, wire) < 0)
			return NULL;
		first->last->more = wire;
		first->last = wire;
	}
	return first;
}

/* One flow, IP id 0, the same payload: like polling and keep-alives. */
static struct ow_wire *make_identical(struct ow_traffic *traffic, int direction)
{
	const struct flow flow = {.sport = 5000, .dport = 161};
	struct ow_ends ends;
	struct ow_content content = {.dont_fragment = true,
	                             .marker = UINT64_MAX,
	                             .pool = traffic->payload,
	                             .payload_len = IDENTICAL_PAYLOAD};
	flow_ends(&flow, 0xfffffe, direction, &ends);
	struct ow_wire *wire = new_packet(traffic, IDENTICAL_FLOW, direction, traffic->next_ns);
	if (wire)
		ow_build_udp(wire, &ends, &content);
	traffic->identical++;
	return wire;
}

static struct ow_wire *make_packet(struct ow_traffic *traffic)
{
	const struct ow_sim_options *options = traffic->options;
	int direction = chance(&traffic->random, options->reverse) ? OW_B_TO_A : OW_A_TO_B;
	if (chance(&traffic->random, options->identical))
		return make_identical(traffic, direction);
	uint32_t number = ow_alias_sample(&traffic->popularity, &traffic->random);
	uint32_t size = ow_size_sample(&options->size, &traffic->random);
	const struct flow *flow = &traffic->flows[number];
	bool superframes = options->side[OW_SIDE_A].superframes || options->side[OW_SIDE_B].superframes;
	if (!flow->tcp && traffic->made + 2 <= options->packets && chance(&traffic->random, options->fragments))
		return make_fragments(traffic, number, direction, size);
	if (!flow->tcp)
		return make_udp(traffic, number, direction, size);
	if (superframes && size >= TRAIN_FROM)
		return make_train(traffic, number, direction);
	return make_tcp(traffic, number, direction, size);
}

static int generate_next(struct ow_traffic *traffic, struct ow_wire **ret_wire)
{
	bool more = traffic->made < traffic->options->packets;
	*ret_wire = ow_wire_heap_pop(&traffic->later, more ? traffic->next_ns : INT64_MAX);
	if (*ret_wire)
		return 1;
	if (!more)
		return 0;
	uint64_t made = traffic->made;
	*ret_wire = make_packet(traffic);
	if (!*ret_wire)
		return -ENOMEM;
	/* As many gaps as packets were made, so that bursts and fragments do not raise the rate. */
	for (made = traffic->made - made; made > 0; made--)
		traffic->next_ns = traffic->options->start_ns + ow_gaps_next(&traffic->gaps);
	return 1;
}

int ow_traffic_next(struct ow_traffic *traffic, struct ow_wire **ret_wire, struct ow_error *err)
{
	if (traffic->replay)
		return ow_replay_next(traffic->replay, ret_wire, err);
	int r = generate_next(traffic, ret_wire);
	return r < 0 ? ow_error_set(err, -r, "out of memory") : r;
}

int ow_traffic_create(const struct ow_sim_options *options, struct ow_wire_pool *pool, struct ow_traffic **ret_traffic,
                      struct ow_error *err)
{
	struct ow_traffic *traffic = calloc(1, sizeof *traffic);
	if (!traffic)
		return ow_error_set(err, ENOMEM, "out of memory");
	traffic->options = options;
	traffic->pool = pool;
	int r = 0;
	if (options->traffic) {
		r = ow_replay_create(options, pool, &traffic->replay, err);
	} else {
		traffic->flows = calloc(options->flows, sizeof *traffic->flows);
		if (!traffic->flows || ow_alias_zipf(&traffic->popularity, options->flows, options->flow_skew) < 0)
			r = ow_error_set(err, ENOMEM, "out of memory for %u flows", options->flows);
	}
	if (r < 0) {
		ow_traffic_free(traffic);
		return r;
	}
	if (!options->traffic) {
		struct ow_random bytes;
		ow_stream_seed(&bytes, options->seed, OW_STREAM_PAYLOAD);
		for (size_t i = 0; i < POOL_BYTES; i++)
			traffic->payload[i] = (uint8_t)(ow_random_u64(&bytes) >> 56);
		ow_stream_seed(&traffic->random, options->seed, OW_STREAM_TRAFFIC);
		make_flows(traffic);
		ow_gaps_init(&traffic->gaps, options);
		traffic->next_ns = options->start_ns + ow_gaps_next(&traffic->gaps);
	}
	*ret_traffic = traffic;
	return 0;
}

void ow_traffic_free(struct ow_traffic *traffic)
{
	if (!traffic)
		return;
	ow_replay_free(traffic->replay);
	ow_wire_heap_done(&traffic->later, traffic->pool);
	ow_alias_done(&traffic->popularity);
	free(traffic->flows);
	free(traffic);
}

/* Drawing only the times is fast; a burst at the very end may last a little longer. */
int64_t ow_traffic_end(const struct ow_sim_options *options)
{
	struct ow_gaps gaps;
	ow_gaps_init(&gaps, options);
	int64_t end_ns = 0;
	for (uint64_t i = 0; i < options->packets; i++)
		end_ns = ow_gaps_next(&gaps);
	return options->start_ns + end_ns;
}

void ow_traffic_truth(const struct ow_traffic *traffic, struct ow_sim_truth *truth)
{
	truth->retransmitted = traffic->retransmitted;
	truth->identical = traffic->identical;
	truth->fragments = traffic->fragments;
}

double ow_traffic_done(const struct ow_traffic *traffic)
{
	if (traffic->replay)
		return ow_replay_done(traffic->replay);
	return (double)traffic->made / (double)traffic->options->packets;
}

int ow_traffic_run(struct ow_traffic *traffic, int (*send)(void *arg, struct ow_wire *wire, struct ow_error *err),
                   void *arg, struct ow_error *err)
{
	const struct ow_sim_options *options = traffic->options;
	struct ow_wire *wire;
	uint64_t packets = 0;
	int r;
	while ((r = ow_traffic_next(traffic, &wire, err)) > 0) {
		r = send(arg, wire, err);
		if (r < 0)
			break;
		if (++packets % PROGRESS_PACKETS == 0 && options->on_progress)
			options->on_progress(options->arg, ow_traffic_done(traffic));
	}
	return r;
}
