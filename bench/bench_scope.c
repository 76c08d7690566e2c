/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time for the verdicts of scope: bench_scope [ROUNDS]
 * An interval has 200,000 packets, each of a random one of so many flows between 64 and 1024 networks; some are not matched. Noting
 * the interval and judging what did not match are timed apart. Prints the best round in ns per packet.
 */
#include "base/random.h"
#include "reconcile/scope_verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PACKETS   200000u
#define LENGTH_NS INT64_C(1000000000)
#define SOURCES   64u /* networks */
#define NETWORKS  1024u
#define WARM_UP   4

struct bench {
	struct ow_scope_flow *flow, *seen; /* all; and those of the interval */
	uint32_t *number;                  /* of a flow in the interval, from 1 */
	uint32_t flows, seens;
	struct ow_sighting *packet;
	uint8_t *matched, *fate;
	struct ow_scope_packet *unmatched;
	size_t unmatcheds;
};

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void make_flows(struct bench *b, struct ow_random *random)
{
	for (uint32_t i = 0; i < b->flows; i++) {
		uint64_t source = ow_random_u64(random) % SOURCES, dest = ow_random_u64(random) % NETWORKS;
		b->flow[i] = (struct ow_scope_flow){
			.flow = ow_random_u64(random),
			.pair = (source * NETWORKS + dest + 1) * UINT64_C(0x9e3779b97f4a7c15),
			.dest = (dest + 1) * UINT64_C(0xc2b2ae3d27d4eb4f),
			.network = {10, (uint8_t)(dest >> 8), (uint8_t)dest},
			.version = 4,
			.ttl = 60,
		};
	}
}

static void make_interval(struct bench *b, struct ow_random *random, double loss)
{
	memset(b->number, 0, b->flows * sizeof *b->number);
	b->seens = 0;
	b->unmatcheds = 0;
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t f = (uint32_t)(ow_random_u64(random) % b->flows);
		if (!b->number[f]) {
			b->seen[b->seens++] = b->flow[f];
			b->number[f] = b->seens;
		}
		b->seen[b->number[f] - 1].packets++;
		b->packet[i] = (struct ow_sighting){ow_random_u64(random), i * (LENGTH_NS / PACKETS), b->number[f]};
		b->matched[i] = ow_random_unit(random) >= loss;
		if (!b->matched[i])
			b->unmatched[b->unmatcheds++] =
				(struct ow_scope_packet){.flow = b->number[f] - 1, .time_ns = b->packet[i].time_ns};
	}
}

static void run(struct bench *b, uint32_t flows, double loss, int rounds)
{
	struct ow_scope_verdict_options options = {.length_ns = LENGTH_NS, .horizon = 2, .secret = 7};
	struct ow_scope_verdict *v;
	struct ow_scope_sums sums = {0};
	struct ow_scope_event events[OW_SCOPE_EVENTS_MAX];
	struct ow_random random;
	double note = 1e9, judge = 1e9;
	uint64_t lost = 0, unmatched = 0;
	ow_random_seed(&random, 1);
	b->flows = flows;
	make_flows(b, &random);
	if (ow_scope_verdict_create(&options, &v) < 0)
		abort();
	for (int i = 0; i < WARM_UP + rounds; i++) {
		make_interval(b, &random, loss);
		double t0 = now_ns();
		int r = ow_scope_verdict_note(v, i, b->seen, b->seens, b->packet, b->matched, PACKETS);
		double t1 = now_ns();
		if (r == 0)
			r = ow_scope_verdict_judge(v, i, b->seen, b->seens, b->unmatched, b->unmatcheds, b->fate,
			                           &sums);
		double t2 = now_ns();
		(void)ow_scope_verdict_events(v, events);
		if (r < 0)
			abort();
		lost += sums.lost;
		unmatched += b->unmatcheds;
		if (i >= WARM_UP) {
			note = t1 - t0 < note ? t1 - t0 : note;
			judge = t2 - t1 < judge ? t2 - t1 : judge;
		}
	}
	ow_scope_verdict_free(v);
	printf("%8u %8u %6.1f %%  %6.1f %6.1f %6.1f  %9llu of %llu\n", flows, b->seens, 100 * loss, note / PACKETS,
	       judge / PACKETS, (note + judge) / PACKETS, (unsigned long long)lost, (unsigned long long)unmatched);
}

int main(int argc, char **argv)
{
	static const uint32_t flows[] = {1000, 20000, 80000};
	static const double losses[] = {0, 0.01};
	int rounds = argc > 1 ? (int)strtoul(argv[1], NULL, 10) : 20;
	struct bench b = {
		.flow = need(malloc(80000 * sizeof *b.flow)),
		.seen = need(malloc(80000 * sizeof *b.seen)),
		.number = need(malloc(80000 * sizeof *b.number)),
		.packet = need(malloc(PACKETS * sizeof *b.packet)),
		.matched = need(malloc(PACKETS)),
		.fate = need(malloc(PACKETS)),
		.unmatched = need(malloc(PACKETS * sizeof *b.unmatched)),
	};
	printf("%8s %8s %8s  %20s  %9s\n", "flows", "seen", "loss", "ns: note, judge, both", "lost");
	for (size_t f = 0; f < sizeof flows / sizeof *flows; f++)
		for (size_t l = 0; l < sizeof losses / sizeof *losses; l++)
			run(&b, flows[f], losses[l], rounds);
	free(b.flow);
	free(b.seen);
	free(b.number);
	free(b.packet);
	free(b.matched);
	free(b.fate);
	free(b.unmatched);
	return 0;
}
