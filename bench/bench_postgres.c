/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how many results per second a PostgreSQL server accepts, in batches as a collector writes them.
 *
 *     bench_postgres URL [POINTS [MINUTES [BATCH]]]
 *
 * Each point has ten lanes with a minute each. Prints rows per second and the processor time of a row here, and its bytes in
 * the database; whether every row is there; and the time that adding them up to hours and days takes. The database should be empty.
 */
#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "store/postgres.h"
#include "store/postgres_writer.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LANES     10
#define MINUTE_NS (60 * OW_NS_PER_S)

static int64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * OW_NS_PER_S + t.tv_nsec;
}

static void fill(struct ow_random *random, int64_t number, int64_t start_ns, struct ow_interval_result *r)
{
	int64_t delay[100];
	*r = (struct ow_interval_result){.segment = "backbone",
	                                 .interval = start_ns / MINUTE_NS,
	                                 .start_ns = start_ns,
	                                 .length_ns = MINUTE_NS,
	                                 .intervals = 60,
	                                 .final = true,
	                                 .sent = 100000,
	                                 .matched = 99900,
	                                 .received = 99900,
	                                 .lost = 100,
	                                 .total_sent = 100000,
	                                 .total_received = 99900,
	                                 .coverage = 1,
	                                 .reordered = OW_RESULT_NOT_COUNTED,
	                                 .min_ns = {.reason = OW_REASON_SAMPLED},
	                                 .max_ns = {.reason = OW_REASON_SAMPLED},
	                                 .clock_from = {true, 1000},
	                                 .clock_to = {true, 1000},
	                                 .clock_method = "trusted",
	                                 .synopsis = "fold 4 x 1024"};
	snprintf(r->from, sizeof r->from, "point%" PRId64, number / LANES);
	snprintf(r->to, sizeof r->to, "point%" PRId64, number / LANES + 1);
	snprintf(r->class_name, sizeof r->class_name, "class %" PRId64, number % LANES);
	for (int i = 0; i < 100; i++)
		delay[i] = 50000 + i * 700 + (int64_t)ow_random_below(random, 500);
	ow_delay_histogram_sample(delay, 100, 100000, &r->delays);
	struct ow_value value = {OW_VALUE_ESTIMATED, 50123.4567 + ow_random_unit(random), 50120.1, 50130.9,
	                         OW_NO_REASON};
	r->mean_ns = r->stddev_ns = value;
	for (int i = 0; i < OW_QUANTILES; i++)
		r->quantile_ns[i] = value;
	r->loss_ratio = (struct ow_value){OW_VALUE_EXACT, 0.001, 0.001, 0.001, OW_NO_REASON};
}

struct load {
	struct ow_postgres_writer *writer;
	struct ow_interval_result *result;
	struct ow_postgres_row *row;
	int64_t lanes, minutes, batch, first_ns;
	uint64_t stored;
	int64_t real_ns, own_ns; /* in the writer */
};

static int write_minute(struct load *load, int64_t minute, struct ow_random *random, struct ow_error *err)
{
	struct ow_postgres_tally tally;
	int r = 0;
	for (int64_t at = 0; r == 0 && at < load->lanes; at += load->batch) {
		int64_t count = load->lanes - at < load->batch ? load->lanes - at : load->batch;
		for (int64_t i = 0; i < count; i++) {
			fill(random, at + i, load->first_ns + minute * MINUTE_NS, &load->result[i]);
			load->row[i] =
				(struct ow_postgres_row){load->result[i].from, OW_PERIOD_MINUTE, &load->result[i]};
		}
		int64_t real_ns = ow_clock_steady_ns(), own_ns = cpu_ns();
		r = ow_postgres_write(load->writer, load->row, (size_t)count, &tally, err);
		load->real_ns += ow_clock_steady_ns() - real_ns;
		load->own_ns += cpu_ns() - own_ns;
		load->stored += r == 0 ? tally.stored : 0;
		if (r == 0 && tally.refused)
			r = ow_error_set(err, EINVAL, "%s", tally.why.text);
	}
	return r;
}

/* What a row of table minute takes on the disk, with its indexes. */
static int measure_size(const struct load *load, struct ow_error *err)
{
	int64_t bytes = 0;
	int r = ow_postgres_ask(
		ow_postgres_writer_connection(load->writer),
		"SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits WHERE inhparent ="
		" 'minute'::regclass",
		&bytes, err);
	if (r == 0)
		printf("%.0f bytes a row on the disk\n", (double)bytes / (double)(load->lanes * load->minutes));
	return r;
}

/* Two days later, everything is over. */
static int add_up(struct load *load, struct ow_error *err)
{
	int64_t real_ns = ow_clock_steady_ns(), own_ns = cpu_ns(), now_ns = ow_clock_real_ns() + 48 * 60 * MINUTE_NS;
	int r;
	while ((r = ow_postgres_maintain(load->writer, now_ns, err)) > 0)
		;
	double rows = (double)(load->lanes * load->minutes);
	printf("hours and days: %.1f us a row, %.1f us of them here\n",
	       (double)(ow_clock_steady_ns() - real_ns) / 1e3 / rows, (double)(cpu_ns() - own_ns) / 1e3 / rows);
	return r;
}

static int64_t number(int argc, char **argv, int at, int64_t otherwise)
{
	return argc > at ? strtoll(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
	struct ow_postgres_writer_options options = {.url = argc > 1 ? argv[1] : NULL};
	struct load load = {.lanes = LANES * number(argc, argv, 2, 2000),
	                    .minutes = number(argc, argv, 3, 5),
	                    .batch = number(argc, argv, 4, 20000)};
	struct ow_error err = {""};
	struct ow_random random;
	if (!options.url || load.lanes <= 0 || load.minutes <= 0 || load.batch <= 0) {
		fprintf(stderr, "usage: bench_postgres URL [POINTS [MINUTES [BATCH]]]\n");
		return 2;
	}
	ow_random_seed(&random, 1);
	load.first_ns = (ow_clock_real_ns() / MINUTE_NS - load.minutes) * MINUTE_NS;
	load.result = calloc((size_t)load.batch, sizeof *load.result);
	load.row = calloc((size_t)load.batch, sizeof *load.row);
	int r = load.result && load.row ? ow_postgres_writer_open(&options, &load.writer, &err)
	                                : ow_error_set(&err, ENOMEM, "out of memory");
	for (int64_t i = 0; r == 0 && i < load.minutes; i++)
		r = write_minute(&load, i, &random, &err);
	if (r == 0)
		r = measure_size(&load, &err);
	if (r == 0)
		r = add_up(&load, &err);
	ow_postgres_writer_close(load.writer);
	free(load.result);
	free(load.row);
	if (r < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	int64_t made = load.lanes * load.minutes;
	printf("%" PRId64 " rows, %.0f rows/s, %.1f us a row, %.1f us of them here%s\n", made,
	       1e9 * (double)made / (double)load.real_ns, (double)load.real_ns / 1e3 / (double)made,
	       (double)load.own_ns / 1e3 / (double)made, load.stored == (uint64_t)made ? "" : ", NOT ALL STORED");
	return load.stored == (uint64_t)made ? 0 : 1;
}
