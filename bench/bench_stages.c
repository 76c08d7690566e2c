/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows how the time for a packet is divided among the stages: bench_stages CAPTURE [ROUNDS]
 * Each stage is timed together with all stages before it, over the whole file, so that the differences are the stages.
 * For comparison, libpcap reads the same file. Prints the best and the median round in ns per packet. The first round
 * brings the file into the page cache.
 */
#include "capture/file/mapping.h"
#include "capture/file/reader.h"
#include "estimate/delay.h"
#include "packet/identity.h"
#include "match/record_reader.h"
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX 1000

enum stage { STAGE_LIBPCAP, STAGE_READ, STAGE_IDENTITY, STAGE_RECORD, STAGE_DELAY, STAGES };
static const char *const stage_name[STAGES] = {
	"libpcap, pcap_next_ex", "read", "read, id", "read, id, flow, record", "all, and a delay sample",
};

struct bench {
	const char *path;
	struct ow_record_reader input;
	struct ow_delays *delays;
	struct ow_identity identity;
	uint64_t packets, sum; /* of the last round; the sum keeps the work from being optimised away */
};

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int walk_libpcap(struct bench *bench)
{
	char text[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline_with_tstamp_precision(bench->path, PCAP_TSTAMP_PRECISION_NANO, text);
	struct pcap_pkthdr *header;
	const u_char *data;
	int r;
	if (!pcap)
		return -1;
	while ((r = pcap_next_ex(pcap, &header, &data)) == 1) {
		bench->packets++;
		bench->sum += header->caplen;
	}
	pcap_close(pcap);
	return r == PCAP_ERROR_BREAK ? 0 : -1;
}

/* Reads frames, and computes the ids of plain packets, as a record reader does. */
static int walk_frames(struct bench *bench, enum stage stage, struct ow_error *err)
{
	struct ow_reader *reader = bench->input.reader;
	struct ow_frame frame[OW_RECORD_READER_FRAMES];
	struct ow_plain plain[OW_RECORD_READER_FRAMES];
	int n = ow_reader_rewind(reader, err);
	while (n >= 0 && (n = ow_reader_read(reader, frame, OW_RECORD_READER_FRAMES, err)) > 0) {
		size_t ahead = ow_reader_info(reader)->mapped ? (size_t)(frame[n - 1].data - frame[0].data) : 0;
		bench->packets += (uint64_t)n;
		bench->sum += frame[n - 1].caplen;
		if (stage == STAGE_READ) {
			for (int i = 0; i < n && ahead; i++)
				ow_frame_load_ahead(&frame[i], ahead);
			continue;
		}
		for (size_t i = 0, of = (size_t)n; i < of; i++)
			i += ow_identity_of_plains(&bench->identity, frame + i, of - i, ahead, plain);
		bench->sum += plain[0].id;
	}
	return n;
}

static int walk_records(struct bench *bench, enum stage stage, struct ow_error *err)
{
	static struct ow_record record[OW_RECORD_READER_BATCH];
	int n = ow_record_reader_start(&bench->input, &bench->identity, err);
	while (n >= 0 && (n = ow_record_reader_read(&bench->input, record, err)) > 0) {
		for (int i = 0; i < n; i++) {
			bench->sum += record[i].id;
			if (stage == STAGE_DELAY)
				ow_delays_add(bench->delays, (int64_t)(record[i].id & 0xfffff), 1);
		}
	}
	bench->packets = bench->input.facts.packets;
	return n;
}

static int walk(struct bench *bench, enum stage stage)
{
	struct ow_error err;
	bench->packets = bench->sum = 0;
	if (stage == STAGE_LIBPCAP)
		return walk_libpcap(bench);
	int n = stage < STAGE_RECORD ? walk_frames(bench, stage, &err) : walk_records(bench, stage, &err);
	if (n < 0)
		fprintf(stderr, "bench_stages: %s\n", err.text);
	return n;
}

/* If packets are truncated, the id uses only the bytes that all of them have, as in a match. */
static int limit_identity(struct bench *bench, struct ow_error *err)
{
	struct ow_frame frames[OW_RECORD_READER_FRAMES];
	struct ow_packet packet;
	int n;
	while ((n = ow_reader_read(bench->input.reader, frames, OW_RECORD_READER_FRAMES, err)) > 0) {
		for (int i = 0; i < n; i++) {
			if (ow_packet_decode(&frames[i], false, &packet) != OW_DECODE_IP)
				continue;
			uint32_t available = ow_identity_available(&packet, OW_TCP_EXACT);
			if (available < bench->identity.hash_limit)
				bench->identity.hash_limit = available;
		}
	}
	return n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Rounds of the stages alternate, so that a busy machine disturbs all of them alike. */
static int run(struct bench *bench, unsigned rounds)
{
	static double ns[STAGES][ROUNDS_MAX];
	uint64_t packets = 0;
	for (unsigned round = 0; round < rounds; round++) {
		for (enum stage stage = 0; stage < STAGES; stage++) {
			double start = now_ns();
			if (walk(bench, stage) < 0)
				return -1;
			ns[stage][round] = (now_ns() - start) / (double)(bench->packets ? bench->packets : 1);
			if (packets && packets != bench->packets) {
				fprintf(stderr, "bench_stages: %s: %s sees %" PRIu64 " packets, not %" PRIu64 "\n",
				        bench->path, stage_name[stage], bench->packets, packets);
				return -1;
			}
			packets = bench->packets;
		}
	}
	printf("%-26s %10s %10s   ns a packet, %" PRIu64 " packets, %u rounds\n", "stage", "best", "median", packets,
	       rounds);
	for (enum stage stage = 0; stage < STAGES; stage++) {
		qsort(ns[stage], rounds, sizeof **ns, compare);
		printf("%-26s %10.1f %10.1f\n", stage_name[stage], ns[stage][0], ns[stage][rounds / 2]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	struct bench bench = {.path = argc > 1 ? argv[1] : NULL};
	struct ow_error err = {""};
	int r = -1;
	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_stages CAPTURE [ROUNDS]\n");
		return 2;
	}
	bench.identity = (struct ow_identity){.level = OW_LEVEL_IP, .hash_limit = UINT32_MAX};
	ow_identity_seed(&bench.identity, 1);
	ow_mapping_allow();
	const struct ow_frame_choice every_frame = {.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	if (ow_record_reader_open(&bench.input, bench.path, NULL, &every_frame, 0, 1, &err) < 0 ||
	    limit_identity(&bench, &err) < 0)
		fprintf(stderr, "bench_stages: %s\n", err.text);
	else if (ow_delays_create(&bench.delays) == 0)
		r = run(&bench, (unsigned)rounds);
	ow_delays_free(bench.delays);
	ow_record_reader_close(&bench.input);
	return r < 0;
}
