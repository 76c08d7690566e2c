/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures recording of flows from given ids, and queries over a day of epochs: bench_flows [ROUNDS [SEED]]
 * 100 k flows of Zipf sizes, half a counter per flow. Prints the measured value, the target and their ratio; above 1 is
 * better than the target. Recording is measured in CPU time, queries in wall time; the best round and the median are
 * printed. Every result is checked: a wrong one ends the program with 1, a slow one does not.
 */
#include "base/random.h"
#include "flows/epochs.h"
#include "synopsis/colate_plan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FLOWS      100000u
#define PACKETS    2000000u
#define BATCH      256u
#define COUNTERS   50000u
#define ROUNDS_MAX 1000u
#define DAY        1440u /* epochs of a minute */
#define MINUTE     INT64_C(60000000000)
#define BEGIN      INT64_C(1700000040000000000)

static unsigned rounds = 9;
static uint64_t seed = 1;
static struct ow_flow_sighting *stamps;
static const struct ow_flow_key **keys;
static struct ow_flow_key flow_key[FLOWS];

static double clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* CPU time: how much one core can do. */
static double now_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Wall time: how long the user waits. */
static double wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void wrong(const char *what)
{
	fprintf(stderr, "bench_flows: WRONG RESULT: %s\n", what);
	exit(1);
}

static void must(int r, const char *what)
{
	if (r < 0)
		wrong(what);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/*
 * Flow i of a million has a share of 1 / (i + 1). It is drawn by the inverse of the sum, which is nearly a logarithm.
 */
static void make_stamps(void)
{
	struct ow_random random;
	uint64_t hash[FLOWS];
	ow_random_seed(&random, seed);
	for (uint32_t i = 0; i < FLOWS; i++) {
		flow_key[i] = (struct ow_flow_key){.version = 4, .proto = 6, .dport = 443};
		uint64_t ends = ow_random_u64(&random);
		memcpy(flow_key[i].src, &ends, 4);
		memcpy(flow_key[i].dst, (char *)&ends + 4, 4);
		flow_key[i].sport = (uint16_t)ow_random_u64(&random);
		hash[i] = ow_flow_hash(seed, &flow_key[i]);
	}
	stamps = malloc(PACKETS * sizeof *stamps);
	keys = malloc(PACKETS * sizeof *keys);
	if (!stamps || !keys)
		wrong("no memory");
	for (uint32_t i = 0; i < PACKETS; i++) {
		uint32_t f = (uint32_t)exp(ow_random_unit(&random) * log(FLOWS)) - 1;
		stamps[i] = (struct ow_flow_sighting){hash[f], ow_random_u64(&random), BEGIN + i * INT64_C(500)};
		keys[i] = &flow_key[f];
	}
}

static void print(const char *what, double *took_ns, double target_mpps)
{
	qsort(took_ns, rounds, sizeof *took_ns, by_value);
	double best = PACKETS / took_ns[0] * 1e3, median = PACKETS / took_ns[rounds / 2] * 1e3;
	printf("%-36s %8.1f Mpps  median %8.1f", what, best, median);
	if (target_mpps > 0)
		printf("  target %5.0f  ratio %5.2f", target_mpps, best / target_mpps);
	printf("\n");
}

static struct ow_colate_params params_of(enum ow_colate_form form, uint32_t spread, uint8_t check_bits, uint32_t repair)
{
	struct ow_colate_plan plan;
	struct ow_colate_params params;
	ow_colate_plan_defaults(&plan);
	plan.form = form;
	plan.counters = COUNTERS;
	plan.spread = spread;
	plan.check_bits = check_bits;
	plan.repair = repair;
	plan.seed = seed;
	must(ow_colate_plan_params(&plan, &params, NULL), "parameters");
	return params;
}

/* Each packet is counted once in each bank, or once in total: the counters add up to the times. */
static void check_colate(const struct ow_colate *colate, uint32_t times)
{
	const struct ow_colate_layer *layer = &ow_colate_params(colate)->layer[0];
	uint64_t sum = 0, expected = 0, mask = (UINT64_C(1) << 48) - 1;
	for (uint32_t i = 0; i < layer->counters; i++)
		sum += ow_colate_counters(colate, 0)[i];
	for (uint32_t i = 0; i < PACKETS; i++)
		expected += (uint64_t)stamps[i].time_ns;
	if ((sum & mask) != (expected * times & mask) || ow_colate_packets(colate) != PACKETS)
		wrong("counters do not add up");
}

static void bench_colate(const char *what, enum ow_colate_form form, uint32_t spread, uint8_t check_bits,
                         uint32_t repair)
{
	struct ow_colate_params params = params_of(form, spread, check_bits, repair);
	struct ow_colate *colate;
	double took[ROUNDS_MAX];
	must(ow_colate_create(&params, &colate, NULL), "memory");
	for (unsigned round = 0; round < rounds; round++) {
		ow_colate_reset(colate);
		double start = now_ns();
		for (uint32_t i = 0; i < PACKETS; i += BATCH)
			ow_colate_add(colate, stamps + i, PACKETS - i < BATCH ? PACKETS - i : BATCH);
		took[round] = now_ns() - start;
		check_colate(colate, form == OW_COLATE_BANKS ? spread : 1);
	}
	print(what, took, 50);
	ow_colate_free(colate);
}

static void bench_counts(void)
{
	struct ow_colate_params params = params_of(OW_COLATE_BANKS, 3, 16, 0);
	struct ow_flow_counts *counts;
	double took[ROUNDS_MAX] = {0};
	must(ow_flow_counts_create(&params, 0, &counts), "memory");
	for (unsigned round = 0; round < rounds; round++) {
		ow_flow_counts_reset(counts);
		double start = now_ns();
		for (uint32_t i = 0; i < PACKETS; i += BATCH)
			ow_flow_counts_add(counts, stamps + i, keys + i, PACKETS - i < BATCH ? PACKETS - i : BATCH);
		took[round] = now_ns() - start;
		if (ow_flow_counts_packets(counts) != PACKETS)
			wrong("flow counts do not add up");
	}
	print("flow counts", took, 0);
	ow_flow_counts_free(counts);
}

/* A day of minutes, each with some of the packets: measures writing it, and the sum of nearly all of it. */
static void bench_day(void)
{
	struct ow_epoch_info info = {.select = {.by = OW_FLOW_BY_FIVE_TUPLE},
	                             .level = OW_LEVEL_IP,
	                             .id_bytes = 64,
	                             .interval_ns = MINUTE,
	                             .counts = true,
	                             .params = params_of(OW_COLATE_BANKS, 3, 16, 8192)};
	char path[] = "/tmp/bench_flows_XXXXXX";
	struct ow_epochs_writer *writer;
	struct ow_epoch epoch;
	struct ow_error err = {""};
	int fd = mkstemp(path);
	if (fd < 0 || close(fd) < 0)
		wrong("no temporary file");
	must(ow_epochs_create(path, &info, false, &writer, &err), "file of epochs");
	must(ow_epoch_init(&info, OW_FLOW_COUNTS_MAX, &epoch, &err), "epoch");
	const uint32_t some = 20000;
	double start = wall_ns();
	for (uint32_t n = 0; n < DAY; n++) {
		uint32_t from = n * 977 % (PACKETS - some);
		ow_colate_reset(epoch.colate);
		ow_flow_counts_reset(epoch.counts);
		ow_colate_add(epoch.colate, stamps + from, some);
		ow_flow_counts_add(epoch.counts, stamps + from, keys + from, some);
		epoch.epochs = 1;
		epoch.begin_ns = BEGIN + n * MINUTE;
		epoch.end_ns = epoch.begin_ns + MINUTE;
		must(ow_epochs_append(writer, &epoch, NULL, &err), err.text);
	}
	double wrote = wall_ns() - start;
	ow_epoch_done(&epoch);
	ow_epochs_writer_free(writer);
	struct stat status;
	must(stat(path, &status), "file of epochs");
	double took[ROUNDS_MAX] = {0};
	unsigned tries = rounds < 9 ? rounds : 9;
	for (unsigned round = 0; round < tries; round++) {
		struct ow_epochs *epochs;
		start = wall_ns();
		must(ow_epochs_open(path, &epochs, &err), err.text);
		must(ow_epochs_sum(epochs, BEGIN + 5 * MINUTE, BEGIN + (DAY - 3) * MINUTE, OW_FLOW_COUNTS_MAX, &epoch,
		                   &err),
		     err.text);
		took[round] = wall_ns() - start;
		if (ow_colate_packets(epoch.colate) != (uint64_t)(DAY - 8) * some ||
		    ow_flow_counts_packets(epoch.counts) != (uint64_t)(DAY - 8) * some)
			wrong("the sum of a day does not add up");
		ow_epoch_done(&epoch);
		ow_epochs_close(epochs);
	}
	unlink(path);
	qsort(took, tries, sizeof *took, by_value);
	printf("a day of %u epochs, %u counters          %8.1f MB, written in %.1f ms an epoch\n", DAY, COUNTERS,
	       (double)status.st_size / 1e6, wrote / DAY / 1e6);
	printf("%-36s %8.3f s     median %8.3f  target %5.0f  ratio %5.2f\n", "  the sum of 1432 of them",
	       took[0] / 1e9, took[tries / 2] / 1e9, 1.0, 1e9 / took[0]);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_flows [ROUNDS [SEED]]\n");
		return 2;
	}
	make_stamps();
	printf("recording of %u packets of %u flows in %u counters, seed %llu, best of %u rounds\n", PACKETS, FLOWS,
	       COUNTERS, (unsigned long long)seed, rounds);
	bench_colate("banks, k = 1", OW_COLATE_BANKS, 1, 16, 0);
	bench_colate("banks, k = 2", OW_COLATE_BANKS, 2, 16, 0);
	bench_colate("banks, k = 3", OW_COLATE_BANKS, 3, 16, 0);
	bench_colate("banks, k = 3, repair of 8192 losses", OW_COLATE_BANKS, 3, 16, 8192);
	bench_colate("banks, k = 3, repair of 64k losses", OW_COLATE_BANKS, 3, 16, 65536);
	bench_colate("banks, k = 3, no checks", OW_COLATE_BANKS, 3, 0, 0);
	bench_colate("colate, m = 20", OW_COLATE_HASHED, 20, 16, 0);
	bench_colate("colate, m = 20, no checks", OW_COLATE_HASHED, 20, 0, 0);
	bench_counts();
	bench_day();
	free(stamps);
	free(keys);
	return 0;
}
