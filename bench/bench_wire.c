/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the bytes that two points exchange about traffic, and their share of it: by rate and loss for fold, RDA as
 * published, and every record sent (16 bytes each); by message; for an idle lane; with scope; by path and length of an
 * interval. Two exchanges with a wire in memory between them run as in two daemons; a frame takes as long as a packet.
 * Intervals count once the exchanges know what to expect. Every final loss is checked against the truth, and the cost
 * that results state against the frames; an interval that RDA could not decode completely is marked with a star.
 */
#include "base/random.h"
#include "exchange/exchange.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND    INT64_C(1000000000)
#define MS        INT64_C(1000000)
#define US        INT64_C(1000)
#define T0        INT64_C(1700000000000000000)
#define PACKET    500 /* bytes */
#define RECORD    16
#define SEED      1
#define FRAMES    4096
#define INTERVALS 256
#define NEW_FLOWS 1000 /* a second */
#define FLOWS     1000 /* that have packets at a time */

struct load {
	double rate; /* packets a second */
	double loss;
	bool shared; /* the points tell each other their flows */
	int64_t length_ns, delay_ns, jitter_ns;
	int first, counted; /* the intervals that are printed */
};
static const struct load usual = {
	.length_ns = SECOND, .delay_ns = 100 * US, .jitter_ns = 20 * US, .first = 2, .counted = 1};

struct packet {
	int64_t time_ns; /* since T0 */
	uint64_t id;
	uint32_t flow;
};

struct frame {
	uint8_t *bytes;
	size_t size;
	int to;
	int64_t due_ns;
};

struct point {
	struct duet *duet;
	int side;
	struct ow_exchange *x;
	struct packet *packet;
	size_t packets, taken;
	struct ow_interval_cuts cuts;
	int64_t next; /* interval to close */
};

struct duet {
	const struct load *load;
	struct point point[2];
	struct ow_scope_flow *flow;
	uint64_t lost[INTERVALS];
	struct frame frame[FRAMES];
	size_t first, last;
	int64_t now_ns;
	uint64_t bytes[INTERVALS][OW_MESSAGE_TYPES];
	struct ow_interval_result final[INTERVALS];
};

/* Means of the intervals that count. */
struct cost {
	double bytes[OW_MESSAGE_TYPES], all;
	struct ow_interval_result last;
};

static void die(const char *why)
{
	fprintf(stderr, "bench_wire: %s\n", why);
	exit(1);
}

static void *memory(size_t count, size_t size)
{
	void *p = calloc(count + 1, size);
	if (!p)
		die("out of memory");
	return p;
}

/* -- traffic ------------------------------------------------------------------------------------------------------ */

/* A client of 64 networks, a server of 1024. */
static struct ow_scope_flow new_flow(const struct ow_scope_hash *hash, struct ow_random *random)
{
	struct ow_scope_flow flow;
	struct ow_flow_key key = {
		.proto = 6, .version = 4, .sport = (uint16_t)ow_random_below(random, 60000), .dport = 443};
	uint64_t to = (uint64_t)(1024 * pow(ow_random_unit(random), 3)); /* some have most */
	memcpy(key.src, (uint8_t[]){10, 0, (uint8_t)ow_random_below(random, 64), (uint8_t)ow_random_below(random, 250)},
	       4);
	memcpy(key.dst, (uint8_t[]){20, (uint8_t)(to >> 8), (uint8_t)to, (uint8_t)ow_random_below(random, 250)}, 4);
	ow_scope_flow_of(hash, &key, &flow);
	flow.ttl = 60;
	flow.packets = 0;
	return flow;
}

static int by_time(const void *a, const void *b)
{
	const struct packet *x = a, *y = b;
	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static double share_of_new(const struct load *load)
{
	return load->rate > 0 ? NEW_FLOWS / load->rate : 0;
}

/* Packets of some intervals more than count. */
static void make_packets(struct duet *duet)
{
	const struct load *load = duet->load;
	struct point *a = &duet->point[0], *b = &duet->point[1];
	int64_t end_ns = (load->first + load->counted + 1) * load->length_ns;
	size_t count = (size_t)(load->rate * (double)end_ns / (double)SECOND);
	uint32_t of[FLOWS], flows = FLOWS;
	struct ow_random random;
	struct ow_scope_hash hash;
	ow_random_seed(&random, SEED);
	ow_scope_hash_seed(&hash, SEED);
	a->packet = memory(count, sizeof *a->packet);
	b->packet = memory(count, sizeof *b->packet);
	duet->flow = memory(FLOWS + count, sizeof *duet->flow);
	for (uint32_t i = 0; i < FLOWS; i++)
		duet->flow[of[i] = i] = new_flow(&hash, &random);
	for (size_t n = 0; n < count; n++) {
		uint32_t *flow = &of[ow_random_below(&random, FLOWS)];
		if (ow_random_unit(&random) < share_of_new(load))
			duet->flow[ *flow = flows++] = new_flow(&hash, &random);
		struct packet packet = {(int64_t)((double)n / load->rate * (double)SECOND), ow_mix64(n + 1), *flow};
		a->packet[a->packets++] = packet;
		if (ow_random_unit(&random) < load->loss) {
			duet->lost[packet.time_ns / load->length_ns]++;
			continue;
		}
		packet.time_ns +=
			load->delay_ns + (int64_t)(-log(1 - ow_random_unit(&random)) * (double)load->jitter_ns);
		b->packet[b->packets++] = packet;
	}
	qsort(b->packet, b->packets, sizeof *b->packet, by_time);
}

static void enter(struct ow_interval_packets *page, const struct packet *packet, const struct ow_scope_flow *flow)
{
	uint32_t number = 0;
	if (flow) {
		number = ow_lane_flows_find(&page->flows, flow->flow);
		number = number ? number : ow_lane_flows_add(&page->flows, flow, UINT32_MAX);
		page->flows.flow[number - 1].packets++;
	}
	page->sighting[page->count++] = (struct ow_sighting){packet->id, T0 + packet->time_ns - page->start_ns, number};
}

static struct ow_interval_packets *make_page(struct duet *duet, struct point *p)
{
	const struct load *load = duet->load;
	struct ow_interval_packets *page = memory(1, sizeof *page);
	int64_t end_ns = ow_cuts_start(&p->cuts, p->next + 1) - T0;
	size_t end = p->taken;
	while (end < p->packets && p->packet[end].time_ns < end_ns)
		end++;
	page->interval = p->next;
	page->start_ns = ow_cuts_origin(&p->cuts, p->next);
	page->length_ns = load->length_ns;
	page->shift_ns = ow_cuts_shift(&p->cuts, p->next);
	page->end_shift_ns = ow_cuts_shift(&p->cuts, p->next + 1);
	page->sighting = memory(end - p->taken, sizeof *page->sighting);
	for (; p->taken < end; p->taken++) {
		const struct packet *packet = &p->packet[p->taken];
		enter(page, packet, load->shared ? &duet->flow[packet->flow] : NULL);
	}
	page->total_packets = page->count;
	page->total_bytes = page->count * PACKET;
	return page;
}

/* -- two points --------------------------------------------------------------------------------------------------- */

static void on_send(void *arg, const uint8_t *bytes, size_t size)
{
	struct point *point = arg;
	struct duet *duet = point->duet;
	struct ow_message message;
	if (duet->last - duet->first == FRAMES || ow_message_decode(bytes, size, &message, NULL) < 0)
		die("a frame that cannot be delivered");
	struct frame *f = &duet->frame[duet->last++ % FRAMES];
	*f = (struct frame){memory(size, 1), size, !point->side, duet->now_ns + duet->load->delay_ns};
	memcpy(f->bytes, bytes, size);
	duet->bytes[message.interval][message.type] += size + 4;
	ow_message_done(&message);
}

static void on_result(void *arg, const struct ow_interval_result *result)
{
	const struct point *point = arg;
	if (point->side == 0 && result->final)
		point->duet->final[result->interval] = *result;
}

/* As a point does, which tells the threads that record in time. */
static void on_cut(void *arg, int64_t shift_ns)
{
	struct point *point = arg;
	struct ow_interval_cuts *cuts = &point->cuts;
	int64_t least_ns = cuts->after_ns - cuts->length_ns / 2;
	shift_ns = shift_ns > least_ns ? shift_ns : least_ns;
	if (shift_ns == cuts->after_ns || point->next <= cuts->change)
		return;
	cuts->before_ns = cuts->after_ns;
	cuts->after_ns = shift_ns;
	cuts->change = point->next + 2;
}

static void create(struct duet *duet, enum ow_method method)
{
	const struct load *load = duet->load;
	for (int side = 0; side < 2; side++) {
		struct point *p = &duet->point[side];
		*p = (struct point){.duet = duet, .side = side, .cuts = {T0, load->length_ns, 0, 0, 0}};
		struct ow_exchange_options options = {.lane = 1,
		                                      .sending = side == 0,
		                                      .method = method,
		                                      .segment = "bench",
		                                      .class_name = "all",
		                                      .from = "a",
		                                      .to = "b",
		                                      .seed = SEED,
		                                      .shared = load->shared,
		                                      .identity = {.level = OW_LEVEL_IP},
		                                      .t0_ns = T0,
		                                      .length_ns = load->length_ns,
		                                      .horizon = (uint32_t)(SECOND / load->length_ns),
		                                      .patience_ns = 10 * SECOND,
		                                      .intervals_max = 64,
		                                      .shift_max_ns = SECOND};
		struct ow_exchange_sinks sinks = {.send = on_send, .result = on_result, .cut = on_cut, .arg = p};
		if (ow_exchange_create(&options, &sinks, &p->x) < 0)
			die("out of memory");
	}
}

static void deliver(struct duet *duet)
{
	struct frame *f = &duet->frame[duet->first++ % FRAMES];
	struct ow_error err;
	duet->now_ns = f->due_ns;
	if (ow_exchange_frame(duet->point[f->to].x, f->bytes, f->size, duet->now_ns, &err) < 0)
		die(err.text);
	free(f->bytes);
}

static void close_interval(struct duet *duet, struct point *p)
{
	const struct ow_clock_state clock = {true, 1000};
	duet->now_ns = ow_cuts_start(&p->cuts, p->next + 1);
	struct ow_interval_packets *page = make_page(duet, p);
	p->next++;
	if (ow_exchange_packets(p->x, page, &clock, duet->now_ns) < 0)
		die("the packets of an interval were refused");
}

/* The point whose interval ends first, or NULL: no more are needed. */
static struct point *next_point(struct duet *duet)
{
	struct point *a = &duet->point[0], *b = &duet->point[1];
	int64_t last = duet->load->first + duet->load->counted + (SECOND / duet->load->length_ns) + 4;
	if (a->next >= last && b->next >= last)
		return NULL;
	return ow_cuts_start(&a->cuts, a->next + 1) <= ow_cuts_start(&b->cuts, b->next + 1) ? a : b;
}

static void run_all(struct duet *duet)
{
	for (;;) {
		struct point *p = next_point(duet);
		bool waits = duet->first < duet->last;
		if (!p && !waits)
			return;
		if (waits && (!p || duet->frame[duet->first % FRAMES].due_ns <= ow_cuts_start(&p->cuts, p->next + 1)))
			deliver(duet);
		else
			close_interval(duet, p);
	}
}

static void check(const struct duet *duet, int i)
{
	const struct ow_interval_result *r = &duet->final[i];
	uint64_t sent = 0;
	for (size_t k = 0; k < duet->point[0].packets; k++)
		sent += duet->point[0].packet[k].time_ns / duet->load->length_ns == i;
	if (r->status == OW_RESULT_UNKNOWN || r->sent != sent)
		die("the interval was not measured");
	if (r->status == OW_RESULT_MEASURED && r->lost != duet->lost[i])
		die("the measured loss is not the truth");
	uint64_t bytes = 0;
	for (int type = 1; type < OW_MESSAGE_TYPES; type++)
		bytes += duet->bytes[i][type];
	if (bytes != r->cost.bytes)
		die("the cost is not that of the frames");
}

static struct cost run(const struct load *load, enum ow_method method)
{
	static struct duet duet;
	struct cost cost = {0};
	memset(&duet, 0, sizeof duet);
	duet.load = load;
	duet.now_ns = T0;
	create(&duet, method);
	make_packets(&duet);
	run_all(&duet);
	for (int i = load->first; i < load->first + load->counted; i++) {
		check(&duet, i);
		for (int type = 1; type < OW_MESSAGE_TYPES; type++) {
			cost.bytes[type] += (double)duet.bytes[i][type] / load->counted;
			cost.all += (double)duet.bytes[i][type] / load->counted;
		}
		cost.last = duet.final[i];
	}
	for (int side = 0; side < 2; side++) {
		ow_exchange_free(duet.point[side].x);
		free(duet.point[side].packet);
	}
	free(duet.flow);
	return cost;
}

/* -- tables ------------------------------------------------------------------------------------------------------- */

static void print_share(double bytes, double packets, bool partial)
{
	printf("  %9.0f %8.4f %%%c", bytes, 100.0 * bytes / (packets * PACKET), partial ? '*' : ' ');
}

static void print_methods(void)
{
	static const double rates[] = {1e3, 1e4, 1e5, 1e6};
	static const double losses[] = {0, 0.0001, 0.01, 0.1};
	printf("bytes on the wire for a second of packets of %d bytes (seed %d), and ms of the sending point\n", PACKET,
	       SEED);
	printf("%9s %7s  %20s   %20s   %20s   %7s %7s %7s\n", "packets", "loss", "fold", "rda as published",
	       "every record", "decode", "erase", "compute");
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
			struct load load = usual;
			load.rate = rates[i];
			load.loss = losses[k];
			struct cost fold = run(&load, OW_METHOD_FOLD), rda = run(&load, OW_METHOD_RDA);
			const struct ow_result_cost *ms = &fold.last.cost;
			printf("%9.0f %6.2f%%", load.rate, 100 * load.loss);
			print_share(fold.all, load.rate, fold.last.status != OW_RESULT_MEASURED);
			print_share(rda.all, load.rate, rda.last.status != OW_RESULT_MEASURED);
			print_share((double)fold.last.received * RECORD, load.rate, false);
			printf("  %7.2f %7.2f %7.2f\n", (double)ms->decode_ns / 1e6, (double)ms->erase_ns / 1e6,
			       (double)ms->compute_ns / 1e6);
		}
	}
	printf("* not decoded completely: 13 %% of cases at 2 banks of twice the differences; more where MinHash "
	       "errs\n");
}

static void print_types(const char *what, const struct load *load)
{
	struct cost cost = run(load, OW_METHOD_FOLD);
	printf("%-34s", what);
	for (int type = OW_MESSAGE_SYNOPSIS; type <= OW_MESSAGE_RESULT; type++)
		printf(" %9.0f", cost.bytes[type]);
	printf(" %9.0f %9.0f\n", cost.bytes[OW_MESSAGE_SCOPE], cost.all);
}

/* Where the bytes go. An idle segment has two lanes. */
static void print_messages(void)
{
	printf("\nbytes of an interval by message, fold, loss .01 %%, scope shared\n%-34s", "");
	for (int type = OW_MESSAGE_SYNOPSIS; type <= OW_MESSAGE_RESULT; type++)
		printf(" %9s", ow_message_name(type));
	printf(" %9s %9s\n", ow_message_name(OW_MESSAGE_SCOPE), "all");
	struct load load = usual;
	load.shared = true;
	load.loss = 0.0001;
	load.first = 8;
	load.counted = 32;
	print_types("idle, 1 s", &load);
	load.first = usual.first;
	load.counted = 4;
	load.rate = 10;
	print_types("10 packets/s", &load);
	load.rate = 1e3;
	print_types("1,000 packets/s", &load);
	load.rate = 1e4;
	print_types("10,000 packets/s", &load);
	load.jitter_ns = 2 * MS;
	load.delay_ns = 50 * MS;
	load.first = 24;
	print_types("10,000 packets/s, 50 +- 2 ms", &load);
	load.length_ns = 100 * MS;
	load.first = 100;
	load.counted = 40;
	print_types("the same, intervals of 100 ms", &load);
}

/* Everything is shared, and flows come and go. */
static void print_scope(void)
{
	static const double rates[] = {1e4, 1e5};
	static const double losses[] = {0.0001, 0.01};
	printf("\n%d new flows a second, all of which pass both points: bytes of fold\n", NEW_FLOWS);
	printf("%9s %7s  %20s   %20s\n", "packets", "loss", "scope all", "scope shared");
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
			struct load load = usual;
			load.rate = rates[i];
			load.loss = losses[k];
			load.counted = 4;
			struct cost all = run(&load, OW_METHOD_FOLD);
			load.shared = true;
			struct cost shared = run(&load, OW_METHOD_FOLD);
			printf("%9.0f %6.2f%%", load.rate, 100 * load.loss);
			print_share(all.all, load.rate, false);
			print_share(shared.all, load.rate, false);
			printf("  %+.1f %%\n", 100 * (shared.all / all.all - 1));
		}
	}
}

/* What a long path costs, beside the same jitter on a short one. */
static void print_paths(bool shared)
{
	static const int64_t delays[] = {100 * US, 50 * MS, 300 * MS};
	static const int64_t lengths[] = {SECOND, 100 * MS};
	printf("\n10,000 packets/s, jitter 2 ms (exponential), loss .01 %%, scope %s: bytes a second\n",
	       shared ? "shared" : "all");
	printf("%9s %9s %20s   %s\n", "interval", "delay", "fold", "beside 100 us");
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		double least = 0;
		for (size_t k = 0; k < sizeof delays / sizeof *delays; k++) {
			int per_second = (int)(SECOND / lengths[i]);
			struct load load = {.rate = 1e4,
			                    .loss = 0.0001,
			                    .shared = shared,
			                    .length_ns = lengths[i],
			                    .delay_ns = delays[k],
			                    .jitter_ns = 2 * MS,
			                    .first = per_second == 1 ? 24 : 100,
			                    .counted = per_second == 1 ? 8 : 40};
			double bytes = run(&load, OW_METHOD_FOLD).all * per_second;
			least = k ? least : bytes;
			printf("%6d ms %6.1f ms", (int)(lengths[i] / MS), (double)delays[k] / 1e6);
			print_share(bytes, load.rate, false);
			printf("  %.2f\n", bytes / least);
		}
	}
}

int main(void)
{
	print_methods();
	print_messages();
	print_scope();
	print_paths(false);
	print_paths(true);
	return 0;
}
