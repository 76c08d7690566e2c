/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time for trajectory samples: bench_sampler [ROUNDS]
 * 1,000,000 different UDP and TCP packets of 64 to 1400 bytes in one epoch. Prints the
 * best round in ns per packet: of the sampler, and of what it is made of (id of level nat; id of level ip for comparison).
 */
#include "base/bytes.h"
#include "base/random.h"
#include "discovery/sampler.h"
#include "packet/segments.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAMES  4096u
#define PACKETS 1000000u
#define BATCH   256u
#define BYTES   2048u

static uint8_t bytes[FRAMES][BYTES];
static struct ow_iface_frame frames[FRAMES];
static uint32_t kept;

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void take(void *arg, unsigned source, struct ow_vantage_sample *sample)
{
	(void)arg, (void)source;
	kept += sample->count;
}

static void make_frames(void)
{
	struct ow_random random;
	ow_random_seed(&random, 1);
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t len = 64 + (uint32_t)ow_random_below(&random, 1336);
		uint8_t *ip = bytes[i] + 14;
		for (uint32_t k = 0; k < len; k++)
			ip[k] = (uint8_t)ow_random_u64(&random);
		bytes[i][12] = 8;
		bytes[i][13] = 0;
		ip[0] = 0x45;
		ow_store_be16(ip + 2, (uint16_t)len);
		ow_store_be16(ip + 6, 0);
		ip[9] = i % 2 ? 17 : 6;
		if (i % 2) {
			ow_store_be16(ip + 22, 443);
			ow_store_be16(ip + 24, (uint16_t)(len - 20));
		} else {
			ip[32] = 0x80;
			ip[33] = 0x10;
		}
		frames[i] = (struct ow_iface_frame){
			.frame = {.data = bytes[i], .caplen = len + 14, .len = len + 14, .linktype = 1},
			.heading = i % 3 ? OW_HEADING_IN : OW_HEADING_OUT};
	}
}

/* No two packets are the same: the next batch gets other bytes, in UDP payload or TCP sequence number. */
static void renew(uint32_t n)
{
	static uint32_t number;
	for (uint32_t i = n % FRAMES; i < n % FRAMES + BATCH; i++)
		ow_store_be32(bytes[i] + 14 + (i % 2 ? 28 : 24), number++);
}

static double sample(struct ow_sampler *sampler, int64_t epoch)
{
	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i].frame.time_ns = epoch * OW_SAMPLE_EPOCH_NS + i;
	double from = now_ns();
	for (uint32_t n = 0; n < PACKETS; n += BATCH) {
		renew(n);
		ow_sampler_frames(sampler, &frames[n % FRAMES], BATCH);
	}
	ow_sampler_pass(sampler, (epoch + 1) * OW_SAMPLE_EPOCH_NS, 0);
	return (now_ns() - from) / PACKETS;
}

static double identify(enum ow_level level)
{
	static struct ow_segments segments;
	struct ow_identity identity = {.level = level, .inner = true, .tcp_headers = true, .hash_limit = 72};
	ow_identity_seed(&identity, 1);
	double from = now_ns();
	for (uint32_t n = 0; n < PACKETS; n++)
		kept += ow_segments_of_frame(&identity, &frames[n % FRAMES], &segments) == 0;
	return (now_ns() - from) / PACKETS;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
	struct ow_sampler *sampler;
	struct ow_sampler_options options = {
		.key = 1, .records = OW_SAMPLER_RECORDS, .epoch_ns = OW_SAMPLE_EPOCH_NS, .on_sample = take};
	double best[3] = {1e9, 1e9, 1e9};
	make_frames();
	if (ow_sampler_create(&options, 0, true, &sampler, NULL) < 0)
		return 1;
	for (int i = 0; i < rounds; i++) {
		double some[3] = {sample(sampler, 100 + i), identify(OW_LEVEL_NAT), identify(OW_LEVEL_IP)};
		for (int k = 0; k < 3; k++)
			best[k] = some[k] < best[k] ? some[k] : best[k];
	}
	ow_sampler_free(sampler);
	printf("ns/packet: sampler %.1f, of that the id %.1f; an id of level ip %.1f\n", best[0], best[1], best[2]);
	return kept == 0;
}
