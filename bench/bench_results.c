/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures queries of a large store: bench_results [ROWS [FILE]] makes a store of ROWS results (a million) of 4 lanes
 * with intervals of a second, some of them unknown, and queries its last day: list, sums by lane and by hour, the
 * worst. The answers are checked against what was stored. With FILE the store is kept, and used again if it exists.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "store/stored_sum.h"
#include "store/store.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LANES 4
#define DAY   86400
#define START (INT64_C(1790000000) * 1000000000)

static struct ow_interval_result result_of(int lane, int64_t interval)
{
	uint64_t dice = ow_mix64((uint64_t)interval * LANES + (uint64_t)lane);
	struct ow_interval_result r = {.segment = "london-paris",
	                               .interval = interval,
	                               .start_ns = START + interval * INT64_C(1000000000),
	                               .length_ns = 1000000000,
	                               .final = true,
	                               .sent = 10000 + dice % 1000,
	                               .lost = dice % 97 == 0 ? dice % 50 : 0,
	                               .coverage = 1,
	                               .reordered = OW_RESULT_NOT_COUNTED,
	                               .min_ns = {.reason = OW_REASON_SAMPLED},
	                               .max_ns = {.reason = OW_REASON_SAMPLED},
	                               .synopsis = "fold 4 x 1024"};
	double mean = 4e6 + (double)(dice % 1000000);
	snprintf(r.class_name, sizeof r.class_name, "%s", lane & 1 ? "voice" : "all");
	snprintf(r.from, sizeof r.from, "%s", lane & 2 ? "paris" : "london");
	snprintf(r.to, sizeof r.to, "%s", lane & 2 ? "london" : "paris");
	if (dice % 5003 == 0) {
		r.status = OW_RESULT_UNKNOWN;
		r.sent = r.lost = 0;
		snprintf(r.cause, sizeof r.cause, "paris does not answer");
		return r;
	}
	r.matched = r.received = r.samples = r.sent - r.lost;
	r.total_sent = r.sent;
	r.total_received = r.received;
	r.mean_ns = (struct ow_value){OW_VALUE_EXACT, mean, mean, mean, OW_NO_REASON};
	r.stddev_ns = (struct ow_value){OW_VALUE_ESTIMATED, mean / 10, mean / 11, mean / 9, OW_NO_REASON};
	for (int i = 0; i < OW_QUANTILES; i++)
		r.quantile_ns[i] =
			(struct ow_value){OW_VALUE_ESTIMATED, mean + 1e5 * i, mean, mean + 1e6, OW_NO_REASON};
	double loss = (double)r.lost / (double)r.sent;
	r.loss_ratio = (struct ow_value){OW_VALUE_EXACT, loss, loss, loss, OW_NO_REASON};
	return r;
}

static int fill(const char *path, int64_t intervals, struct ow_error *err)
{
	struct ow_store *store;
	int r = ow_store_open(path, &store, err);
	if (r < 0)
		return r;
	int64_t start = ow_clock_steady_ns();
	for (int64_t i = 0; r == 0 && i < intervals; i++) {
		for (int lane = 0; r == 0 && lane < LANES; lane++) {
			struct ow_interval_result result = result_of(lane, i);
			r = ow_store_add(store, &result, err);
		}
	}
	if (r == 0)
		r = ow_store_commit(store, err);
	ow_store_close(store);
	printf("made in %.1f s\n", (double)(ow_clock_steady_ns() - start) / 1e9);
	return r;
}

static int count(void *arg, const struct ow_interval_result *result)
{
	*(uint64_t *)arg += result->sent;
	return 0;
}

/* CPU time of this process, because other programs may run. */
static int64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct watch {
	int64_t wall, cpu;
};

static struct watch now(void)
{
	return (struct watch){ow_clock_steady_ns(), cpu_ns()};
}

static void stop(struct watch start, const char *what)
{
	printf("%-36s %7.3f s, %7.3f s of CPU\n", what, (double)(ow_clock_steady_ns() - start.wall) / 1e9,
	       (double)(cpu_ns() - start.cpu) / 1e9);
}

static int fail(const char *why)
{
	fprintf(stderr, "bench_results: %s\n", why);
	return 1;
}

static int ask(const char *path, int64_t intervals)
{
	struct ow_stored *stored;
	struct ow_stored_sums sums;
	struct ow_error err = {""};
	uint64_t sent = 0, listed = 0, summed = 0, some = 0;
	int64_t day = intervals < DAY ? intervals : DAY;
	for (int64_t i = intervals - day; i < intervals; i++) {
		for (int lane = 0; lane < LANES; lane++)
			sent += result_of(lane, i).sent;
	}
	struct ow_stored_filter filter = {.since_ns = START + (intervals - day) * INT64_C(1000000000),
	                                  .until_ns = INT64_MAX};
	struct watch start = now();
	if (ow_stored_open(path, &stored, &err) < 0 || ow_stored_choose(stored, &filter, &err) < 0)
		return fail(err.text);
	stop(start, "opened");
	static const enum ow_stored_group groups[] = {OW_STORED_LANE, OW_STORED_HOUR};
	for (int i = 0; i < 2; i++) {
		struct ow_stored_sum_options o = {.group = groups[i]};
		start = now();
		if (ow_stored_summarise(stored, &o, &sums, &err) < 0)
			return fail(err.text);
		summed = 0;
		for (size_t k = 0; k < sums.count; k++) {
			struct ow_interval_result counts;
			ow_stored_sum_counts(&sums.sum[k], &counts);
			summed += counts.sent;
		}
		stop(start, i ? "a day summarised by hour" : "a day summarised by lane");
		ow_stored_sums_done(&sums);
		if (summed != sent)
			return fail("sums are wrong");
	}
	start = now();
	if (ow_stored_list(stored, 0, count, &listed, &err) < 0)
		return fail(err.text);
	stop(start, "a day listed");
	start = now();
	if (ow_stored_worst(stored, OW_STORED_P99, 10, count, &some, &err) < 0)
		return fail(err.text);
	stop(start, "worst 10 of a day by p99");
	start = now();
	filter = (struct ow_stored_filter){.since_ns = INT64_MIN, .until_ns = INT64_MAX};
	if (ow_stored_choose(stored, &filter, &err) < 0 || ow_stored_list(stored, 50, count, &some, &err) < 0)
		return fail(err.text);
	stop(start, "newest 50 of all");
	ow_stored_close(stored);
	return listed == sent ? 0 : fail("the list is wrong");
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/oneway-bench-XXXXXX", path[300];
	int64_t intervals = (argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000) / LANES;
	struct ow_error err = {""};
	if (argc > 2)
		snprintf(path, sizeof path, "%s", argv[2]);
	else if (mkdtemp(folder))
		snprintf(path, sizeof path, "%s/store.db", folder);
	else
		return fail("no folder");
	printf("%" PRId64 " results\n", intervals * LANES);
	if (access(path, F_OK) != 0 && fill(path, intervals, &err) < 0)
		return fail(err.text);
	int code = ask(path, intervals);
	if (argc <= 2) {
		unlink(path);
		rmdir(folder);
	}
	return code;
}
