/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results in PostgreSQL, at a real server (tests/system/servers.py starts it): what goes in comes out; whatever the order,
 * and however often, one row remains; hours and days are what their minutes add up to.
 */
#include "../result/every_field.h"
#include "../result/interval_sample.h"
#include "base/random.h"
#include "base/time.h"
#include "result/rollup.h"
#include "store/postgres.h"
#include "store/postgres_gaps.h"
#include "store/postgres_schema.h"
#include "store/postgres_writer.h"
#include "store/row.h"
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MINUTE_NS (60 * OW_NS_PER_S)
#define HOUR_NS   (3600 * OW_NS_PER_S)
#define DAY_NS    (24 * HOUR_NS)

static const char *server; /* its URL */
static char url[300];      /* of the database of this test */

static struct ow_postgres *connect_to(const char *where)
{
	struct ow_postgres *p = NULL;
	struct ow_error err = {""};
	if (ow_postgres_open(where, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void run(struct ow_postgres *p, const char *sql)
{
	struct ow_error err = {""};
	if (ow_postgres_run(p, sql, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
}

static void run_at(const char *where, const char *sql)
{
	struct ow_postgres *p = connect_to(where);
	run(p, sql);
	ow_postgres_close(p);
}

static int64_t ask(const char *sql)
{
	struct ow_postgres *p = connect_to(url);
	struct ow_error err = {""};
	int64_t value = 0;
	if (ow_postgres_ask(p, sql, &value, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	ow_postgres_close(p);
	return value;
}

/* An empty database. */
static int fresh(void **state)
{
	(void)state;
	run_at(server, "DROP DATABASE IF EXISTS t WITH (FORCE)");
	run_at(server, "CREATE DATABASE t");
	snprintf(url, sizeof url, "%.*s/t", (int)(strrchr(server, '/') - server), server);
	return 0;
}

static struct ow_postgres_writer *open_writer(const struct ow_postgres_writer_options *more)
{
	struct ow_postgres_writer_options options = more ? *more : (struct ow_postgres_writer_options){.url = NULL};
	struct ow_postgres_writer *writer = NULL;
	struct ow_error err = {""};
	options.url = url;
	if (ow_postgres_writer_open(&options, &writer, &err) < 0)
		fail_msg("%s", err.text);
	return writer;
}

static struct ow_postgres_tally write_rows(struct ow_postgres_writer *writer, const struct ow_postgres_row *rows,
                                           size_t count)
{
	struct ow_postgres_tally tally = {.stored = 0};
	struct ow_error err = {""};
	if (ow_postgres_write(writer, rows, count, &tally, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(tally.stored + tally.kept + tally.refused, count);
	return tally;
}

static struct ow_postgres_tally write_one(struct ow_postgres_writer *writer, enum ow_period period,
                                          const struct ow_interval_result *r)
{
	return write_rows(writer, &(struct ow_postgres_row){r->from, period, r}, 1);
}

/* Reads the rows of a table in the order of lane and time. Returns their number. */
static size_t read_rows(const char *table, struct ow_interval_result *ret_rows, int64_t *ret_lanes, size_t most)
{
	struct ow_postgres *p = connect_to(url);
	struct ow_row_reader reader = {.version = ow_row_version()};
	struct ow_statement *statement = NULL;
	char *sql = NULL;
	size_t size, count = 0;
	FILE *out = open_memstream(&sql, &size);
	fputs("SELECT ", out);
	ow_row_select(out, ow_row_version());
	fprintf(out, " FROM %s ORDER BY lane, start_ns", table);
	fclose(out);
	assert_int_equal(ow_postgres_prepare(p, sql, &statement, NULL), 0);
	enum ow_step step;
	while ((step = ow_step(statement)) == OW_STEP_ROW) {
		assert_true(count < most);
		if (ret_lanes)
			ret_lanes[count] = ow_column_integer(statement, 0);
		ow_row_read(&reader, statement, &ret_rows[count++]);
	}
	assert_int_equal(step, OW_STEP_DONE);
	ow_row_reader_done(&reader);
	ow_statement_free(statement);
	free(sql);
	ow_postgres_close(p);
	return count;
}

static int64_t now_minute(void)
{
	return ow_clock_real_ns() / MINUTE_NS * MINUTE_NS;
}

/* -- what went in ------------------------------------------------------------------------------------------------- */

static void every_column(void **state)
{
	(void)state;
	struct ow_interval_result in = every_field(0), out[2];
	in.start_ns = ow_clock_real_ns();
	in.length_ns = OW_NS_PER_S;
	struct ow_postgres_writer *writer = open_writer(NULL);
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &in).stored, 1);
	ow_postgres_writer_close(writer);
	assert_int_equal(read_rows("result", out, NULL, 2), 1);
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].columns)
			every_same(&ow_fields[i], &in, &out[0]);
	}
	assert_int_equal(ask("SELECT count(*) FROM results WHERE segment <> '' AND final AND time ~ "
	                     "'^20[0-9-]+ [0-9:]+\\.[0-9]{3}$'"),
	                 1);
}

/* Text that is not UTF-8, or too long, must not keep a batch from being stored. */
static void any_text(void **state)
{
	(void)state;
	struct ow_interval_result r = sample_live(1), out[2];
	r.start_ns = ow_clock_real_ns();
	snprintf(r.cause, sizeof r.cause, "caf\xe9 \x01 \xff");
	struct ow_postgres_writer *writer = open_writer(NULL);
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r).stored, 1);
	ow_postgres_writer_close(writer);
	assert_int_equal(read_rows("result", out, NULL, 2), 1);
	assert_string_equal(out[0].cause, "caf? ? ?");
}

/* -- one row remains ---------------------------------------------------------------------------------------------- */

/* Results of the same interval, from the worst to the best. */
#define VERSIONS 5
static void make_versions(struct ow_interval_result version[VERSIONS], int64_t start_ns)
{
	version[0] = sample_unknown(1);
	version[0].final = false;
	version[1] = sample_provisional(1);
	version[2] = sample_provisional(1);
	version[2].pending--;
	version[2].late++;
	version[3] = sample_unknown(1);
	version[4] = sample_live(1);
	for (int i = 0; i < VERSIONS; i++) {
		version[i].start_ns = start_ns;
		version[i].ring_drops_from = (uint64_t)i;
	}
}

/* A random subset in a random order, by two writers, some of it in one batch: the best one is stored. */
static void any_order(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_postgres_writer *writer[2] = {open_writer(NULL), open_writer(NULL)};
	int64_t start_ns = ow_clock_real_ns();
	ow_random_seed(&random, 17);
	for (int round = 0; round < 60; round++) {
		struct ow_interval_result version[VERSIONS], out[61];
		struct ow_postgres_row row[VERSIONS];
		int best = 0, left = 0, count = 1 + (int)ow_random_below(&random, 8);
		make_versions(version, start_ns + round * OW_NS_PER_S);
		for (int i = 0; i < count; i++) {
			int which = (int)ow_random_below(&random, VERSIONS);
			best = which > best ? which : best;
			row[left++] = (struct ow_postgres_row){"london", OW_PERIOD_INTERVAL, &version[which]};
			if (left == VERSIONS || i == count - 1 || ow_random_below(&random, 2)) {
				write_rows(writer[ow_random_below(&random, 2)], row, (size_t)left);
				left = 0;
			}
		}
		assert_int_equal(read_rows("result", out, NULL, 61), round + 1);
		assert_int_equal(out[round].final, version[best].final);
		assert_int_equal(out[round].status, version[best].status);
		assert_int_equal(out[round].pending,
		                 version[best].status == OW_RESULT_UNKNOWN ? 0 : version[best].pending);
	}
	ow_postgres_writer_close(writer[0]);
	ow_postgres_writer_close(writer[1]);
}

/* A minute in which more and more intervals are unknown, as after a clock is set back: the one that tells of most of them. */
static void more_unknown(void **state)
{
	(void)state;
	struct ow_postgres_writer *writer = open_writer(NULL);
	struct ow_interval_result early = sample_unknown(1), late;
	early.start_ns = now_minute() - MINUTE_NS;
	early.length_ns = MINUTE_NS;
	early.intervals = early.intervals_unknown = 1;
	late = early;
	late.intervals = late.intervals_unknown = 60;
	assert_int_equal(write_one(writer, OW_PERIOD_MINUTE, &early).stored, 1);
	assert_int_equal(write_one(writer, OW_PERIOD_MINUTE, &late).stored, 1);
	assert_int_equal(write_one(writer, OW_PERIOD_MINUTE, &early).kept, 1);
	early.start_ns = late.start_ns -= MINUTE_NS;
	const struct ow_postgres_row both[] = {{early.from, OW_PERIOD_MINUTE, &early},
	                                       {late.from, OW_PERIOD_MINUTE, &late}};
	assert_int_equal(write_rows(writer, both, 2).stored, 1);
	ow_postgres_writer_close(writer);
	assert_int_equal(ask("SELECT count(*) FROM minute WHERE intervals = 60 AND intervals_unknown = 60"), 2);
}

/* -- what is refused ---------------------------------------------------------------------------------------------- */

static void expect_refused(struct ow_postgres_writer *writer, const char *point, enum ow_period period,
                           const struct ow_interval_result *r, const char *why)
{
	struct ow_postgres_tally tally = write_rows(writer, &(struct ow_postgres_row){point, period, r}, 1);
	assert_int_equal(tally.refused, 1);
	if (!strstr(tally.why.text, why))
		fail_msg("'%s' is not in: %s", why, tally.why.text);
}

static void refused(void **state)
{
	(void)state;
	struct ow_postgres_writer_options options = {.retention_ns = {7 * DAY_NS, 90 * DAY_NS}, .lanes_max = 3};
	struct ow_postgres_writer *writer = open_writer(&options);
	struct ow_interval_result good = sample_live(1), r;
	good.start_ns = ow_clock_real_ns();
	expect_refused(writer, "madrid", OW_PERIOD_INTERVAL, &good, "a lane of other points");
	expect_refused(writer, "", OW_PERIOD_INTERVAL, &good, "a lane of other points");
	expect_refused(writer, "london", OW_PERIOD_MINUTE, &good, "not an interval of its period");
	expect_refused(writer, "london", OW_PERIOD_HOUR, &good, "neither a result nor a minute");
	r = good;
	r.start_ns -= 365 * DAY_NS;
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "older than what is kept");
	r = good;
	r.start_ns += 365 * DAY_NS;
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "more than a day ahead");
	r = good;
	r.start_ns = INT64_MIN;
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "older than what is kept");
	r = good;
	r.length_ns = 0;
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "not an interval of its period");
	r = good;
	snprintf(r.segment, sizeof r.segment, "a\nb");
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "names that cannot be names");
	r = good;
	memset(r.class_name, 'x', sizeof r.class_name);
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "names that cannot be names");
	/* A point cannot fill the table of lanes; others can still add theirs. */
	for (int i = 0; i < 5; i++) {
		r = good;
		snprintf(r.segment, sizeof r.segment, "segment %d", i);
		if (i < 3)
			assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r).stored, 1);
		else
			expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "too many lanes");
	}
	assert_int_equal(write_rows(writer, &(struct ow_postgres_row){"paris", OW_PERIOD_INTERVAL, &good}, 1).stored,
	                 1);
	ow_postgres_writer_close(writer);
	assert_int_equal(ask("SELECT count(*) FROM result"), 4);
	/* The next collector knows how many there are. */
	writer = open_writer(&options);
	expect_refused(writer, "london", OW_PERIOD_INTERVAL, &r, "too many lanes");
	ow_postgres_writer_close(writer);
}

/* -- hours and days ----------------------------------------------------------------------------------------------- */

#define LANES   3
#define HOURS   50
#define MINUTES (HOURS * 60)

static struct ow_interval_result minute_of(int lane, int64_t start_ns, struct ow_random *random)
{
	struct ow_interval_result r = sample_live(start_ns / MINUTE_NS);
	int64_t delay[50];
	snprintf(r.class_name, sizeof r.class_name, "class %d", lane);
	r.start_ns = start_ns;
	r.length_ns = MINUTE_NS;
	r.intervals = 60;
	r.intervals_partial = ow_random_below(random, 3);
	r.status = r.intervals_partial ? OW_RESULT_PARTIAL : OW_RESULT_MEASURED;
	r.lost = ow_random_below(random, 100);
	r.matched = 100000 - r.lost - r.late;
	r.received = r.matched + r.late_received + r.extra;
	for (int i = 0; i < 50; i++)
		delay[i] = 50000 + 1000 * i + (int64_t)ow_random_below(random, 900);
	ow_delay_histogram_sample(delay, 50, r.matched, &r.delays);
	return r;
}

static void maintain(struct ow_postgres_writer *writer, int64_t now_ns)
{
	struct ow_error err = {""};
	int r = 1;
	for (int i = 0; r > 0; i++) {
		assert_true(i < 1000);
		r = ow_postgres_maintain(writer, now_ns, &err);
		if (r < 0)
			fail_msg("%s", err.text);
	}
}

static void same_json(const struct ow_interval_result *a, const struct ow_interval_result *b)
{
	assert_int_equal(a->start_ns, b->start_ns);
	for (size_t i = 0; i < ow_field_count; i++) {
		if (ow_fields[i].columns && a->status != OW_RESULT_UNKNOWN && ow_fields[i].type != OW_FIELD_CLOCK)
			every_same(&ow_fields[i], a, b);
	}
}

/* Adds the rows of a table up, independently of the list of what is due, and compares. */
static void compare_sums(const char *fine, enum ow_period period)
{
	static struct ow_interval_result row[LANES * MINUTES], sum[LANES * HOURS];
	static int64_t lane[LANES * MINUTES], sum_lane[LANES * HOURS];
	int64_t length_ns = ow_periods[period].length_ns;
	size_t rows = read_rows(fine, row, lane, LANES * MINUTES), at = 0;
	size_t sums = read_rows(ow_periods[period].table, sum, sum_lane, LANES * HOURS);
	struct ow_rollup *rollup = NULL;
	assert_int_equal(ow_rollup_create(&rollup), 0);
	for (size_t i = 0; i < rows;) {
		struct ow_interval_result want;
		int64_t start_ns = row[i].start_ns / length_ns * length_ns, its_lane = lane[i];
		ow_rollup_begin(rollup, start_ns, length_ns);
		while (i < rows && lane[i] == its_lane && row[i].start_ns < start_ns + length_ns)
			ow_rollup_add(rollup, &row[i++]);
		ow_rollup_result(rollup, &want);
		assert_true(at < sums);
		assert_int_equal(sum_lane[at], its_lane);
		same_json(&want, &sum[at++]);
	}
	assert_int_equal(at, sums);
	ow_rollup_free(rollup);
}

/* Minutes in a random order, over several batches and writers; some come after their hours and days were added up. */
static void hours_and_days(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_postgres_writer *writer[2] = {open_writer(NULL), open_writer(NULL)};
	int64_t end_ns = now_minute() / DAY_NS * DAY_NS, first_ns = end_ns - HOURS * HOUR_NS;
	static struct ow_interval_result minute[LANES * MINUTES];
	static struct ow_postgres_row row[LANES * MINUTES];
	size_t count = 0;
	ow_random_seed(&random, 3);
	for (int64_t i = 0; i < MINUTES; i++) {
		for (int lane = 0; lane < LANES; lane++) {
			size_t other = ow_random_below(&random, count + 1);
			minute[count] = minute_of(lane, first_ns + i * MINUTE_NS, &random);
			row[count] = row[other];
			row[other] = (struct ow_postgres_row){"london", OW_PERIOD_MINUTE, &minute[count]};
			count++;
		}
	}
	/* Some are first known in part. */
	for (size_t i = 0; i < 200; i++) {
		struct ow_interval_result early = *row[i].result;
		early.intervals = 40;
		early.sent -= 10000;
		early.matched -= 10000;
		write_one(writer[0], OW_PERIOD_MINUTE, &early);
	}
	for (size_t at = 0; at < count;) {
		size_t some = 1 + ow_random_below(&random, 1500);
		some = some < count - at ? some : count - at;
		write_rows(writer[ow_random_below(&random, 2)], row + at, some);
		at += some;
		maintain(writer[ow_random_below(&random, 2)], end_ns + DAY_NS);
	}
	assert_int_equal(ask("SELECT count(*) FROM minute WHERE intervals = 60"), LANES * MINUTES);
	assert_int_equal(ask("SELECT count(*) FROM hour"), LANES * HOURS);
	assert_int_equal(ask("SELECT count(*) FROM rollup_due"), 0);
	compare_sums("minute", OW_PERIOD_HOUR);
	compare_sums("hour", OW_PERIOD_DAY);
	/* What is sent again changes nothing, and leaves nothing to do. */
	struct ow_postgres_tally tally = write_rows(writer[0], row, count);
	assert_int_equal(tally.kept, count);
	assert_int_equal(ask("SELECT count(*) FROM rollup_due"), 0);
	ow_postgres_writer_close(writer[0]);
	ow_postgres_writer_close(writer[1]);
}

/* The gaps that were found: how many, and the last one. */
struct gaps {
	unsigned count;
	int64_t since_ns, until_ns;
};

static void note_gap(void *arg, const struct ow_postgres_gap *gap)
{
	struct gaps *gaps = arg;
	*gaps = (struct gaps){gaps->count + 1, gap->since_ns, gap->until_ns};
}

/* The hour that is not over is there, not final, until it is over. */
static void running_hour(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_postgres_writer *writer = open_writer(NULL);
	int64_t hour_ns = now_minute() / HOUR_NS * HOUR_NS - HOUR_NS;
	ow_random_seed(&random, 4);
	for (int i = 0; i < 60; i++) {
		struct ow_interval_result r = minute_of(0, hour_ns + i * MINUTE_NS, &random);
		write_one(writer, OW_PERIOD_MINUTE, &r);
		if (i == 20)
			maintain(writer, hour_ns + 21 * MINUTE_NS);
		if (i == 25) /* too soon */
			maintain(writer, hour_ns + 26 * MINUTE_NS);
		assert_int_equal(ask("SELECT coalesce(sum(intervals)::bigint, 0) FROM hour WHERE NOT final"),
		                 i < 20 ? 0 : 21 * 60);
	}
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM day WHERE NOT final"), 21 * 60);
	maintain(writer, hour_ns + 63 * MINUTE_NS);
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM hour WHERE NOT final"), 60 * 60);
	maintain(writer, hour_ns + 66 * MINUTE_NS);
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM hour WHERE final"), 60 * 60);
	assert_int_equal(ask("SELECT count(*) FROM hour"), 1);
	maintain(writer, hour_ns + 80 * MINUTE_NS);
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM day"), 60 * 60);
	ow_postgres_writer_close(writer);
}

/* Intervals of 90 s: each makes a minute of its length, and two minutes may follow each other within it. */
static void long_intervals(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_error err = {""};
	struct gaps gaps = {0};
	struct ow_postgres_writer *writer = open_writer(NULL);
	int64_t hour_ns = now_minute() / HOUR_NS * HOUR_NS - HOUR_NS;
	ow_random_seed(&random, 6);
	for (int i = 0; i < 40; i++) {
		struct ow_interval_result r =
			minute_of(0, hour_ns + i * 90 * OW_NS_PER_S / MINUTE_NS * MINUTE_NS, &random);
		r.length_ns = 90 * OW_NS_PER_S;
		r.intervals = 1;
		r.intervals_partial = 0;
		if (i != 17)
			assert_int_equal(write_one(writer, OW_PERIOD_MINUTE, &r).stored, 1);
	}
	maintain(writer, hour_ns + 66 * MINUTE_NS);
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM hour WHERE final"), 39);
	/* Only what is missing is a gap. */
	assert_int_equal(ow_postgres_gaps(writer, hour_ns, hour_ns + HOUR_NS, 10, note_gap, &gaps, &err), 0);
	assert_int_equal(gaps.count, 1);
	assert_true(gaps.since_ns <= hour_ns + 25 * MINUTE_NS && gaps.until_ns > hour_ns + 25 * MINUTE_NS);
	ow_postgres_writer_close(writer);
}

/* A point that changes its old minutes again and again: the hours of others are added up all the same. */
static void flood_of_changes(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_error err = {""};
	struct ow_postgres_writer *writer = open_writer(NULL);
	int64_t hour_ns = now_minute() / HOUR_NS * HOUR_NS - HOUR_NS;
	ow_random_seed(&random, 8);
	for (int i = 0; i < 20; i++) {
		struct ow_interval_result r = minute_of(0, hour_ns - i * HOUR_NS, &random);
		write_one(writer, OW_PERIOD_MINUTE, &r);
	}
	maintain(writer, hour_ns + 66 * MINUTE_NS);
	struct ow_interval_result good = minute_of(1, hour_ns, &random);
	write_one(writer, OW_PERIOD_MINUTE, &good);
	for (int i = 0; i < 60; i++) {
		run_at(url,
		       "INSERT INTO rollup_due SELECT 2, start_ns, lane, lane FROM hour WHERE start_ns < (SELECT max("
		       "start_ns) FROM hour)");
		assert_true(ow_postgres_maintain(writer, hour_ns + 67 * MINUTE_NS, &err) >= 0);
	}
	assert_int_equal(ask("SELECT count(*) FROM hour JOIN lane ON id = lane WHERE class = 'class 1'"), 1);
	ow_postgres_writer_close(writer);
}

/* The clock of a collector that was a year ahead has ended no hour that has yet to come. */
static void clock_ahead(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_postgres_writer *writer = open_writer(NULL);
	int64_t hour_ns = now_minute() / HOUR_NS * HOUR_NS - HOUR_NS;
	ow_random_seed(&random, 7);
	struct ow_interval_result r = minute_of(0, hour_ns, &random);
	write_one(writer, OW_PERIOD_MINUTE, &r);
	maintain(writer, hour_ns + 365 * DAY_NS);
	assert_true(ask("SELECT max(value::bigint) FROM meta WHERE key LIKE '%_until_ns'") <= hour_ns + DAY_NS);
	ow_postgres_writer_close(writer);
}

/* Another collector adds up what this one has just chosen: nothing is left for it, and that is no error. */
static void taken_by_another(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_error err = {""};
	struct ow_postgres_writer *writer = open_writer(NULL);
	int64_t hour_ns = now_minute() / HOUR_NS * HOUR_NS - HOUR_NS;
	ow_random_seed(&random, 5);
	struct ow_interval_result r = minute_of(0, hour_ns, &random);
	write_one(writer, OW_PERIOD_MINUTE, &r);
	run_at(url, "CREATE FUNCTION taken() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
	            "CREATE TRIGGER taken BEFORE DELETE ON rollup_due FOR EACH ROW EXECUTE FUNCTION taken()");
	if (ow_postgres_maintain(writer, hour_ns + 66 * MINUTE_NS, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(ask("SELECT count(*) FROM hour"), 0);
	run_at(url, "DROP TRIGGER taken ON rollup_due");
	maintain(writer, hour_ns + 66 * MINUTE_NS);
	assert_int_equal(ask("SELECT sum(intervals)::bigint FROM hour"), 60);
	ow_postgres_writer_close(writer);
}

/* -- partitions --------------------------------------------------------------------------------------------------- */

static void old_parts(void **state)
{
	(void)state;
	struct ow_postgres_writer_options options = {.retention_ns = {7 * DAY_NS, 90 * DAY_NS, 730 * DAY_NS}};
	struct ow_postgres_writer *writer = open_writer(&options);
	int64_t now_ns = now_minute();
	struct ow_interval_result r[3];
	for (int i = 0; i < 3; i++) {
		r[i] = sample_live(1);
		r[i].start_ns = now_ns - i * 3 * DAY_NS;
		assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r[i]).stored, 1);
	}
	maintain(writer, now_ns);
	assert_int_equal(ask("SELECT count(*) FROM result"), 3);
	ow_postgres_writer_close(writer);
	/* A clock that jumps ahead deletes nothing: the newest result shows what time it is. */
	writer = open_writer(&options);
	maintain(writer, now_ns + 300 * DAY_NS);
	assert_int_equal(ask("SELECT count(*) FROM result"), 3);
	ow_postgres_writer_close(writer);
	/* Three days later, with new results. */
	writer = open_writer(&options);
	r[0].start_ns = now_ns + DAY_NS - OW_NS_PER_S;
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r[0]).stored, 1);
	maintain(writer, now_ns + 3 * DAY_NS);
	assert_int_equal(ask("SELECT count(*) FROM result"), 3);
	ow_postgres_writer_close(writer);
}

/* Somebody reads for hours: nothing is dropped, everything else goes on. A partition that is dropped by hand comes back. */
static void busy_table(void **state)
{
	(void)state;
	struct ow_postgres_writer_options options = {.retention_ns = {7 * DAY_NS, 90 * DAY_NS, 730 * DAY_NS}};
	struct ow_postgres_writer *writer = open_writer(NULL);
	struct ow_random random;
	int64_t now_ns = now_minute();
	struct ow_interval_result r = sample_live(1), minute;
	ow_random_seed(&random, 9);
	minute = minute_of(0, now_ns - 3 * HOUR_NS, &random);
	r.start_ns = now_ns - 20 * DAY_NS;
	write_one(writer, OW_PERIOD_INTERVAL, &r);
	r.start_ns = now_ns;
	write_one(writer, OW_PERIOD_INTERVAL, &r);
	write_one(writer, OW_PERIOD_MINUTE, &minute);
	ow_postgres_writer_close(writer);
	struct ow_postgres *reader = connect_to(url);
	run(reader, "BEGIN; SELECT count(*) FROM result");
	writer = open_writer(&options);
	maintain(writer, now_ns);
	assert_int_equal(ask("SELECT count(*) FROM result"), 2);
	assert_int_equal(ask("SELECT count(*) FROM hour"), 1);
	ow_postgres_close(reader);
	ow_postgres_writer_close(writer);
	writer = open_writer(&options);
	maintain(writer, now_ns);
	assert_int_equal(ask("SELECT count(*) FROM result"), 1);
	struct ow_postgres_part part = ow_postgres_part(OW_PERIOD_INTERVAL, now_ns);
	struct ow_postgres *administrator = connect_to(url);
	assert_int_equal(ow_postgres_drop_part(administrator, OW_PERIOD_INTERVAL, part.end_ns, NULL), 1);
	ow_postgres_close(administrator);
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r).stored, 1);
	ow_postgres_writer_close(writer);
}

/* After a failure with the connection still there, everything works again. */
static void failing_lanes(void **state)
{
	(void)state;
	struct ow_postgres_writer *writer = open_writer(NULL);
	struct ow_interval_result r = sample_live(1);
	struct ow_postgres_row row = {"london", OW_PERIOD_INTERVAL, &r};
	struct ow_postgres_tally tally;
	struct ow_error err = {""};
	r.start_ns = ow_clock_real_ns();
	run_at(url, "ALTER TABLE lane RENAME TO lanes");
	assert_int_equal(ow_postgres_write(writer, &row, 1, &tally, &err), -ENOENT);
	run_at(url, "ALTER TABLE lanes RENAME TO lane");
	assert_int_equal(write_rows(writer, &row, 1).stored, 1);
	ow_postgres_writer_close(writer);
}

/* A database of an earlier version is converted; one of a newer version, or of another program, is left alone. */
static void versions(void **state)
{
	(void)state;
	struct ow_postgres_writer_options options = {.url = url};
	struct ow_postgres_writer *writer = open_writer(NULL);
	struct ow_interval_result in = sample_live(1), out[2];
	struct ow_error err = {""};
	in.start_ns = ow_clock_real_ns();
	ow_postgres_writer_close(writer);
	run_at(url, "DROP VIEW results, minutes, hours, days");
	for (size_t i = 0; i < ow_field_count; i++) {
		char columns[200], sql[300], *rest = columns;
		snprintf(columns, sizeof columns, "%s",
		         ow_fields[i].since == ow_row_version() ? ow_fields[i].columns : "");
		for (char *name; (name = strtok_r(rest, ", ", &rest));) {
			for (int period = 0; period < OW_PERIODS; period++) {
				snprintf(sql, sizeof sql, "ALTER TABLE %s DROP COLUMN %s", ow_periods[period].table,
				         name);
				run_at(url, sql);
			}
		}
	}
	char sql[100];
	snprintf(sql, sizeof sql, "UPDATE meta SET value = '%d' WHERE key = 'schema'", ow_row_version() - 1);
	run_at(url, sql);
	writer = open_writer(NULL);
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &in).stored, 1);
	ow_postgres_writer_close(writer);
	assert_int_equal(read_rows("result", out, NULL, 2), 1);
	assert_int_equal(ask("SELECT value::bigint FROM meta WHERE key = 'schema'"), ow_row_version());
	assert_int_equal(ask("SELECT count(*) FROM results"), 1);

	run_at(url, "UPDATE meta SET value = '99' WHERE key = 'schema'");
	assert_int_equal(ow_postgres_writer_open(&options, &writer, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "newer version of oneway"));
	fresh(NULL);
	run_at(url, "CREATE TABLE books (title text)");
	assert_int_equal(ow_postgres_writer_open(&options, &writer, &err), -EINVAL);
	assert_non_null(strstr(err.text, "another program"));
}

/* -- errors and roles --------------------------------------------------------------------------------------------- */

static void no_passwords(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"postgresql://user:secret@127.0.0.1:1/x",
		"postgresql://user:secret@127.0.0.1:notaport/x",
		"postgresql://user:secret@[::1/x",
		"postgresql://127.0.0.1:1/x?password=secret",
		"postgresql://user:secret@127.0.0.1:1/x?nonsense=secret",
		"postgresql://user:secret%zz@127.0.0.1:1/x",
		"postgres://secret:secret@",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct ow_postgres *p = NULL;
		struct ow_error err = {""};
		char where[200];
		snprintf(where, sizeof where, "%s", wrong[i]);
		assert_true(ow_postgres_is_url(where));
		assert_true(ow_postgres_open(where, &p, &err) < 0);
		assert_true(*err.text);
		if (i < 6 && strstr(err.text, "secret"))
			fail_msg("%s", err.text);
		assert_null(strchr(err.text, '\n'));
	}
	assert_false(ow_postgres_is_url("results.db"));
}

/* A server that hangs is given up; what was sent comes again, and is stored once. */
static void silent_server(void **state)
{
	(void)state;
	struct ow_postgres_writer_options options = {.patience_s = 1};
	struct ow_postgres_writer *writer = open_writer(&options);
	struct ow_interval_result r = sample_live(1);
	struct ow_postgres_tally tally;
	struct ow_error err = {""};
	r.start_ns = ow_clock_real_ns();
	struct ow_postgres_row row = {"london", OW_PERIOD_INTERVAL, &r};
	pid_t pid =
		(pid_t)ask("SELECT pid::bigint FROM pg_stat_activity WHERE datname = 't' AND pid <> pg_backend_pid()");
	if (kill(pid, SIGSTOP) != 0)
		skip();
	int code = ow_postgres_write(writer, &row, 1, &tally, &err);
	kill(pid, SIGCONT);
	assert_int_equal(code, -ECONNRESET);
	assert_non_null(strstr(err.text, "does not answer"));
	assert_int_equal(write_rows(writer, &row, 1).refused, 0);
	ow_postgres_writer_close(writer);
	assert_int_equal(ask("SELECT count(*) FROM result"), 1);
}

/* The printed schema works as it is: the collector collects, the reader only reads. */
static void roles(void **state)
{
	(void)state;
	char *sql = NULL, collector[300], reader[300];
	size_t size;
	FILE *out = open_memstream(&sql, &size);
	ow_postgres_schema(out);
	fclose(out);
	run_at(url, sql);
	free(sql);
	const char *at = strchr(url, '@');
	snprintf(collector, sizeof collector, "postgresql://oneway_collector%s", at);
	snprintf(reader, sizeof reader, "postgresql://oneway_reader%s", at);
	struct ow_interval_result r = sample_live(1);
	r.start_ns = ow_clock_real_ns();
	struct ow_postgres_writer_options options = {.url = collector};
	struct ow_postgres_writer *writer = NULL;
	struct ow_error err = {""};
	if (ow_postgres_writer_open(&options, &writer, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write_one(writer, OW_PERIOD_INTERVAL, &r).stored, 1);
	maintain(writer, r.start_ns);
	ow_postgres_writer_close(writer);

	int64_t count = 0;
	struct ow_postgres *p = connect_to(reader);
	assert_int_equal(ow_postgres_ask(p, "SELECT count(*) FROM results", &count, &err), 0);
	assert_int_equal(count, 1);
	static const char *const forbidden[] = {"DELETE FROM result", "INSERT INTO meta VALUES ('x', 'y')",
	                                        "DROP TABLE lane", "CREATE TABLE mine (x int)",
	                                        "UPDATE lane SET point = 'x'"};
	for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++)
		assert_int_equal(ow_postgres_run(p, forbidden[i], &err), -EACCES);
	ow_postgres_close(p);
	p = connect_to(collector);
	assert_true(ow_postgres_run(p, "CREATE ROLE evil SUPERUSER", &err) < 0);
	assert_true(ow_postgres_run(p, "COPY lane TO PROGRAM 'id'", &err) < 0);
	ow_postgres_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_column, fresh),
		cmocka_unit_test_setup(any_text, fresh),
		cmocka_unit_test_setup(any_order, fresh),
		cmocka_unit_test_setup(more_unknown, fresh),
		cmocka_unit_test_setup(refused, fresh),
		cmocka_unit_test_setup(hours_and_days, fresh),
		cmocka_unit_test_setup(running_hour, fresh),
		cmocka_unit_test_setup(long_intervals, fresh),
		cmocka_unit_test_setup(clock_ahead, fresh),
		cmocka_unit_test_setup(flood_of_changes, fresh),
		cmocka_unit_test_setup(taken_by_another, fresh),
		cmocka_unit_test_setup(old_parts, fresh),
		cmocka_unit_test_setup(busy_table, fresh),
		cmocka_unit_test_setup(failing_lanes, fresh),
		cmocka_unit_test_setup(versions, fresh),
		cmocka_unit_test(no_passwords),
		cmocka_unit_test_setup(roles, fresh),
		cmocka_unit_test_setup(silent_server, fresh),
	};
	server = getenv("ONEWAY_POSTGRES");
	if (!server) {
		puts("no server: run it by tests/system/servers.py postgres");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
