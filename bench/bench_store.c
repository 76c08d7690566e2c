/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how many results per second the store accepts: a run of intervals with some lanes. Each result is first
 * provisional, then final, with one transaction for each interval, as a point writes them. Prints results per second
 * and bytes per row, checked by a count.
 */
#include "base/clock.h"
#include "store/store.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sample of queues that are usually short. */
static void make_histogram(struct ow_delay_histogram *ret_delays)
{
	int64_t delay[1000];
	for (int i = 0; i < 1000; i++)
		delay[i] = 50000 + 10000 * i / (1001 - i);
	ow_delay_histogram_sample(delay, 1000, 99900, ret_delays);
}

static struct ow_interval_result result_of(int lane, int64_t interval, bool final,
                                           const struct ow_delay_histogram *delays)
{
	struct ow_interval_result r = {.segment = "london-paris",
	                               .from = "london",
	                               .to = "paris",
	                               .interval = interval,
	                               .start_ns = INT64_C(1700000000000000000) + interval * INT64_C(1000000000),
	                               .length_ns = 1000000000,
	                               .final = final,
	                               .sent = 100000,
	                               .matched = 99900,
	                               .received = 99900,
	                               .coverage = 1,
	                               .reordered = OW_RESULT_NOT_COUNTED,
	                               .min_ns = {.reason = OW_REASON_SAMPLED},
	                               .max_ns = {.reason = OW_REASON_SAMPLED},
	                               .synopsis = "fold 4 x 1024"};
	struct ow_value value = {OW_VALUE_ESTIMATED, 50123.4567, 50120.1, 50130.9, OW_NO_REASON};
	snprintf(r.class_name, sizeof r.class_name, "class %d", lane);
	r.lost = final ? 100 : 0;
	r.pending = final ? 0 : 100;
	r.mean_ns = r.stddev_ns = value;
	for (int i = 0; i < OW_QUANTILES; i++)
		r.quantile_ns[i] = value;
	r.loss_ratio = (struct ow_value){OW_VALUE_EXACT, 0.001, 0.001, 0.001, OW_NO_REASON};
	if (final)
		r.delays = *delays;
	return r;
}

static int add_all(struct ow_store *store, int lanes, int64_t intervals, struct ow_error *err)
{
	struct ow_delay_histogram delays;
	int r;
	make_histogram(&delays);
	for (int64_t i = 0; i < intervals; i++) {
		for (int lane = 0; lane < lanes; lane++) {
			struct ow_interval_result soon = result_of(lane, i, false, &delays),
						  later = result_of(lane, i - 2, true, &delays);
			if ((r = ow_store_add(store, &soon, err)) < 0 ||
			    (i >= 2 && (r = ow_store_add(store, &later, err)) < 0))
				return r;
		}
		if ((r = ow_store_commit(store, err)) < 0)
			return r;
	}
	return 0;
}

static int64_t rows_of(const char *path)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	int64_t rows = -1;
	if (sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT count(*) FROM result", -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		rows = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return rows;
}

int main(void)
{
	static const struct {
		int lanes;
		int64_t intervals;
	} runs[] = {{2, 5000}, {50, 1000}, {1000, 50}};
	char folder[] = "/tmp/oneway-bench-XXXXXX", path[64];
	struct ow_error err = {""};
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/store.db", folder);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct ow_store *store = NULL;
		int64_t start = ow_clock_steady_ns();
		if (ow_store_open(path, &store, &err) < 0 ||
		    add_all(store, runs[i].lanes, runs[i].intervals, &err) < 0) {
			fprintf(stderr, "bench_store: %s\n", err.text);
			return 1;
		}
		ow_store_close(store);
		double seconds = (double)(ow_clock_steady_ns() - start) / 1e9;
		int64_t rows = rows_of(path), added = runs[i].lanes * (2 * runs[i].intervals - 2);
		struct stat st;
		if (rows != runs[i].lanes * runs[i].intervals || stat(path, &st) != 0) {
			fprintf(stderr, "bench_store: %lld rows\n", (long long)rows);
			return 1;
		}
		printf("store: %4d lanes, %5lld intervals: %8.0f results/s, %4.0f bytes a row\n", runs[i].lanes,
		       (long long)runs[i].intervals, (double)added / seconds, (double)st.st_size / (double)rows);
		unlink(path);
	}
	rmdir(folder);
	return 0;
}
