/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Minutes, hours and days of a store are those of its results, whatever happens: late results, a clock that is set back,
 * intervals of any length, restarts, kill -9, deleted results, stores of earlier versions.
 */
#include "../result/interval_sample.h"

#include "base/random.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <cmocka.h>
#include "store_file.h"

#define SECOND INT64_C(1000000000)
#define BASE   (INT64_C(1700000000) / 86400 * 86400 * SECOND) /* a midnight */

static sqlite3 *open_file(void)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	return db;
}

static void edit(const char *sql)
{
	sqlite3 *db = open_file();
	char *why = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}

static int64_t ask(const char *sql)
{
	sqlite3 *db = open_file();
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return value;
}

static void dump_table(sqlite3 *db, const char *table, FILE *out)
{
	char sql[80];
	sqlite3_stmt *statement;
	snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY lane, start_ns", table);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		fprintf(out, "%s", table);
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const unsigned char *bytes = sqlite3_column_blob(statement, i);
			fprintf(out, " %s=", sqlite3_column_name(statement, i));
			for (int k = 0; k < sqlite3_column_bytes(statement, i); k++)
				fprintf(out, sqlite3_column_type(statement, i) == SQLITE_BLOB ? "%02x" : "%c",
				        bytes[k]);
		}
		fputc('\n', out);
	}
	sqlite3_finalize(statement);
}

/* All minutes, hours and days as text. */
static char *dump(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	sqlite3 *db = open_file();
	dump_table(db, "minute", out);
	dump_table(db, "hour", out);
	dump_table(db, "day", out);
	sqlite3_close(db);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void catch_up(struct ow_store *store)
{
	struct ow_store_limits limits = {.max_bytes = 0};
	struct ow_error err = {""};
	int r;
	while ((r = ow_store_trim(store, &limits, BASE, &err)) > 0)
		continue;
	if (r < 0)
		fail_msg("%s", err.text);
}

static void reopen(void)
{
	struct ow_store *store = store_open();
	catch_up(store);
	ow_store_close(store);
}

/* The sums in the file are those that its results have. */
static void check_recomputed(void)
{
	char *before = dump();
	edit("DELETE FROM minute; DELETE FROM hour; DELETE FROM day");
	reopen();
	char *after = dump();
	for (const char *a = before, *b = after; *a || *b; a += strcspn(a, "\n") + 1, b += strcspn(b, "\n") + 1) {
		size_t length = strcspn(a, "\n");
		if (length != strcspn(b, "\n") || memcmp(a, b, length) != 0)
			fail_msg("%.*s\n became %.*s", (int)length, a, (int)strcspn(b, "\n"), b);
	}
	free(before);
	free(after);
}

/* Nothing is lost or counted twice: of the minutes, hours and days as well. */
static void check_conserved(int64_t results)
{
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), results);
	const char *const tables[] = {"minute", "hour", "day"};
	for (int i = 0; i < 3; i++) {
		char sql[700];
		/* The newest minute is not added up. */
		snprintf(sql, sizeof sql,
		         "SELECT (SELECT sum(intervals) FROM %s) - (SELECT count(*) FROM result r WHERE final AND "
		         "start_ns"
		         " < (SELECT max(start_ns) / 60000000000 * 60000000000 FROM result WHERE lane = r.lane AND "
		         "final))",
		         tables[i]);
		assert_int_equal(ask(sql), 0);
		snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE sent <> matched + late + lost + pending",
		         tables[i]);
		assert_int_equal(ask(sql), 0);
	}
	assert_int_equal(ask("SELECT (SELECT sum(sent) FROM minute) - (SELECT sum(sent) FROM day)"), 0);
	assert_int_equal(
		ask("SELECT (SELECT sum(intervals_unknown) FROM minute) - (SELECT sum(intervals_unknown) FROM day)"),
		0);
}

static struct ow_interval_result sample_at(struct ow_random *random, int64_t start_ns, int64_t length_ns)
{
	int64_t delay[100];
	struct ow_interval_result r = ow_random_below(random, 30) ? sample_live(0) : sample_unknown(0);
	r.start_ns = start_ns;
	r.length_ns = length_ns;
	r.interval = start_ns / length_ns;
	if (r.status == OW_RESULT_UNKNOWN)
		return r;
	for (int i = 0; i < 100; i++)
		delay[i] = (int64_t)(1000000 + i * 1000 + (int64_t)ow_random_below(random, 1000));
	ow_delay_histogram_sample(delay, 100, r.matched + r.late - r.ambiguous, &r.delays);
	return r;
}

/* -- what can happen ---------------------------------------------------------------------------------------------- */

static void of_a_day(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_store *store = store_open();
	ow_random_seed(&random, 1);
	for (int64_t i = 0; i < 26 * 120; i++) { /* 26 hours of 30 s */
		struct ow_interval_result r = sample_at(&random, BASE + i * 30 * SECOND, 30 * SECOND);
		store_add(store, &r);
		if (i % 7 == 0)
			assert_int_equal(ow_store_commit(store, NULL), 0);
	}
	ow_store_close(store);
	reopen();
	check_conserved(26 * 120);
	assert_int_equal(ask("SELECT count(*) FROM minute"), 26 * 60 - 1);
	assert_int_equal(ask("SELECT count(*) FROM hour"), 26);
	assert_int_equal(ask("SELECT count(*) FROM day"), 2);
	/* What is not over is not final. */
	assert_int_equal(ask("SELECT count(*) FROM minute WHERE NOT final"), 0);
	assert_int_equal(ask("SELECT count(*) FROM hour WHERE NOT final"), 1);
	assert_int_equal(ask("SELECT count(*) FROM day WHERE NOT final"), 1);
	assert_int_equal(ask("SELECT start_ns FROM day WHERE final"), BASE);
	check_recomputed();
	/* What a query of people shows. */
	assert_int_equal(ask("SELECT count(*) FROM days WHERE p99_us > 1000 AND time LIKE '____-__-__ 00:00:00.000'"),
	                 2);
}

static void add_seconds(struct ow_store *store, int64_t first, int64_t last)
{
	for (int64_t i = first; i < last; i++) {
		struct ow_interval_result r = sample_live(0);
		r.start_ns = BASE + i * SECOND;
		r.length_ns = SECOND;
		r.interval = r.start_ns / SECOND;
		store_add(store, &r);
	}
}

/* The last minute of a store is added up when its process ends, or when nothing came for long; and again if more comes. */
static void last_minute(void **state)
{
	struct ow_error err;
	struct ow_store_limits limits = {.max_bytes = 0};
	(void)state;
	struct ow_store *store = store_open();
	add_seconds(store, 0, 80);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM minute"), 60);
	assert_int_equal(ow_store_finish(store, BASE + 81 * SECOND, &err), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM minute"), 80);
	assert_int_equal(ask("SELECT sum(intervals) FROM day"), 80);
	ow_store_close(store);
	store = store_open();
	add_seconds(store, 85, 130);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	/* Five that nobody measured are unknown. */
	assert_int_equal(ask("SELECT sum(intervals) FROM minute"), 120);
	assert_int_equal(ow_store_trim(store, &limits, BASE + 300 * SECOND, &err), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM hour"), 120);
	assert_int_equal(ow_store_trim(store, &limits, BASE + 800 * SECOND, &err), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM hour"), 130);
	/* The rest of a minute that was added up is unknown, too. */
	add_seconds(store, 200, 250);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM minute"), 240);
	assert_int_equal(ask("SELECT sum(intervals_unknown) FROM day"), 5 + 70);
	ow_store_close(store);
}

/* Late ones, in any order, and those that replace others. */
static void late_results(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_store *store = store_open();
	ow_random_seed(&random, 2);
	for (int64_t i = 0; i < 3000; i++) {
		struct ow_interval_result r = sample_at(&random, BASE + i * SECOND, SECOND);
		r.final = ow_random_below(&random, 10) > 0; /* some become final later */
		store_add(store, &r);
		int64_t late = (int64_t)ow_random_below(&random, (uint64_t)i + 1);
		if (ow_random_below(&random, 20) == 0) {
			r = sample_at(&random, BASE + late * SECOND, SECOND);
			store_add(store, &r);
		}
		if (ow_random_below(&random, 5) == 0)
			assert_int_equal(ow_store_commit(store, NULL), 0);
	}
	assert_int_equal(ow_store_commit(store, NULL), 0);
	ow_store_close(store);
	reopen(); /* here they do */
	check_conserved(3000);
	check_recomputed();
}

/* A clock that is set back by hours: times occur again. */
static void clock_set_back(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_store *store = store_open();
	ow_random_seed(&random, 3);
	for (int64_t i = 0; i < 4000; i++) {
		int64_t second = i < 2000 ? 7200 + i : 5000 + i;
		struct ow_interval_result r = sample_at(&random, BASE + second * SECOND - 300, SECOND);
		store_add(store, &r);
		assert_int_equal(ow_store_commit(store, NULL), 0);
	}
	ow_store_close(store);
	reopen();
	check_conserved(4000 - 2000 + 200);
	check_recomputed();
}

/* Lengths that do not divide a minute, and more than a minute; the point was not running for a time. */
static void any_length(void **state)
{
	(void)state;
	const int64_t lengths[] = {250000000, 7 * SECOND, 600 * SECOND, 7200 * SECOND};
	for (int k = 0; k < 4; k++) {
		struct ow_random random;
		store_fresh(NULL);
		struct ow_store *store = store_open();
		ow_random_seed(&random, (uint64_t)k);
		int64_t rows = 0;
		for (int64_t i = 0; i < 400; i++) {
			if (i == 200)
				i += 50; /* filled in as unknown */
			struct ow_interval_result r = sample_at(&random, BASE + i * lengths[k], lengths[k]);
			store_add(store, &r);
			rows = i + 1;
		}
		ow_store_close(store);
		reopen();
		check_conserved(rows);
		check_recomputed();
		assert_int_equal(ask("SELECT min(length_ns) FROM minute"),
		                 lengths[k] > 60 * SECOND ? lengths[k] : 60 * SECOND);
	}
}

/* Sums that were made stay when results, minutes and hours go; sums are made before they go. */
static void deleted_results(void **state)
{
	(void)state;
	struct ow_random random;
	struct ow_error err;
	struct ow_store *store = store_open();
	ow_random_seed(&random, 4);
	for (int64_t i = 0; i < 7200; i++) {
		struct ow_interval_result r = sample_at(&random, BASE + i * SECOND, SECOND);
		if (i >= 3600 + 1800) /* this lane ends earlier */
			snprintf(r.class_name, sizeof r.class_name, "other");
		store_add(store, &r);
	}
	assert_int_equal(ow_store_commit(store, NULL), 0);
	catch_up(store);
	char *before = dump();
	struct ow_store_limits limits = {.retention_ns = {600 * SECOND}};
	while (ow_store_trim(store, &limits, BASE + 7200 * SECOND, &err) > 0)
		continue;
	assert_int_equal(ask("SELECT count(*) FROM result"), 600);
	/* The last minute of the lane that has ended is added up now. */
	assert_int_equal(ask("SELECT sum(intervals) FROM day"), 7200 - 60);
	edit("DELETE FROM minute WHERE start_ns = (SELECT max(start_ns) FROM minute WHERE lane = 1) AND lane = 1");
	char *after = dump();
	assert_int_equal(strncmp(before, after, (size_t)(strstr(before, "hour ") - before)), 0);
	free(before);
	/* A result of a time that was deleted changes nothing. */
	struct ow_interval_result late = sample_at(&random, BASE + 100 * SECOND, SECOND);
	store_add(store, &late);
	ow_store_close(store);
	char *again = dump();
	assert_string_equal(after, again);
	free(after);
	free(again);
	/* Minutes go, hours stay; then these. */
	store = store_open();
	limits = (struct ow_store_limits){.retention_ns = {1, 1, 0, 0}};
	while (ow_store_trim(store, &limits, BASE + 2 * 86400 * SECOND, &err) > 0)
		continue;
	assert_int_equal(ask("SELECT count(*) FROM result"), 0);
	assert_int_equal(ask("SELECT count(*) FROM minute"), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM hour"), 7200);
	limits.retention_ns[OW_PERIOD_HOUR] = 1;
	while (ow_store_trim(store, &limits, BASE + 2 * 86400 * SECOND, &err) > 0)
		continue;
	ow_store_close(store);
	reopen();
	assert_int_equal(ask("SELECT count(*) FROM hour"), 0);
	assert_int_equal(ask("SELECT sum(intervals) FROM day"), 7200);
}

/* -- earlier versions ---------------------------------------------------------------------------------------------- */

static void fill(int64_t count)
{
	struct ow_random random;
	struct ow_store *store = store_open();
	ow_random_seed(&random, 5);
	for (int64_t i = 0; i < count; i++) {
		struct ow_interval_result r = sample_at(&random, BASE + i * SECOND, SECOND);
		store_add(store, &r);
	}
	ow_store_close(store);
}

static void earlier_version(void **state)
{
	(void)state;
	fill(5000);
	sqlite3 *db = open_file();
	assert_int_equal(store_to_schema(db, 6), SQLITE_OK);
	sqlite3_close(db);
	/* New results come before all old ones are added up. */
	struct ow_store *store = store_open();
	for (int64_t i = 5000; i < 5200; i++) {
		struct ow_interval_result r = sample_live(i);
		r.start_ns = BASE + i * SECOND;
		store_add(store, &r);
		assert_int_equal(ow_store_commit(store, NULL), 0);
	}
	catch_up(store);
	ow_store_close(store);
	check_conserved(5200);
	check_recomputed();
	assert_int_equal(ask("PRAGMA user_version"), ow_database_newest());
	/* Without histograms there are no quantiles, and it says why. */
	assert_int_equal(ask("SELECT count(*) FROM hour WHERE mean_ns > 0 AND p99_ns IS NULL AND"
	                     " not_estimated LIKE '%\"quantiles\"%'"),
	                 2);
}

/* Killed while it converts: all or nothing, and the next one does it. */
static void killed_while_converting(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 6);
	fill(2000);
	unsigned converted = 0;
	for (int run = 0; run < 12; run++) {
		sqlite3 *db = open_file();
		assert_int_equal(store_to_schema(db, 6), SQLITE_OK);
		sqlite3_close(db);
		pid_t child = fork();
		if (child == 0) {
			struct ow_store *store;
			if (ow_store_open(store_path, &store, NULL) == 0)
				catch_up(store);
			_exit(0);
		}
		usleep((useconds_t)ow_random_below(&random, 15000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		int64_t version = ask("PRAGMA user_version");
		assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name IN ('minute', 'hour', 'day')"),
		                 version == 6 ? 0 : 3);
		assert_int_equal(ask("SELECT count(*) FROM pragma_table_info('result') WHERE name = 'delay_histogram'"),
		                 version == 6 ? 0 : 1);
		converted += version != 6;
		assert_int_equal(ask("SELECT count(*) FROM result"), 2000);
		reopen();
		check_conserved(2000);
	}
	check_recomputed();
	print_message("%u of 12 had converted\n", converted);
}

/* No space for the new columns and tables: it stays as it was, until there is. */
static void full_while_converting(void **state)
{
	(void)state;
	unsigned failed = 0;
	fill(2000);
	sqlite3 *db = open_file();
	assert_int_equal(store_to_schema(db, 6), SQLITE_OK);
	sqlite3_close(db);
	edit("PRAGMA wal_checkpoint(TRUNCATE)");
	for (rlim_t room = 0; ask("PRAGMA user_version") == 6; room += 4096) {
		pid_t child = fork();
		if (child == 0) {
			struct ow_store *store;
			signal(SIGXFSZ, SIG_IGN);
			setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, room});
			_exit(ow_store_open(store_path, &store, NULL) < 0);
		}
		int status;
		waitpid(child, &status, 0);
		assert_true(WIFEXITED(status));
		failed += WEXITSTATUS(status) != 0;
		if (ask("PRAGMA user_version") != 6)
			break;
		assert_int_equal(ask("SELECT count(*) FROM sqlite_schema WHERE name IN ('minute', 'hour', 'day')"), 0);
		assert_int_equal(ask("SELECT count(*) FROM result"), 2000);
	}
	assert_true(failed > 0);
	reopen();
	check_conserved(2000);
	check_recomputed();
}

/* -- kill -9 ------------------------------------------------------------------------------------------------------ */

/* Two lanes, provisional and final results, late ones, and a clock that jumps. Says when each second is stored. */
static void write_until_killed(uint64_t seed, int64_t second, int said)
{
	struct ow_random random;
	struct ow_store *store = store_open();
	struct ow_error err;
	ow_random_seed(&random, seed);
	for (;; second++) {
		for (int lane = 0; lane < 2; lane++) {
			for (int age = 0; age <= 3; age += 3) {
				int64_t at = second - age;
				if (ow_random_below(&random, 50) == 0)
					at -= (int64_t)ow_random_below(&random, 400);
				struct ow_interval_result r = sample_at(&random, BASE + at * SECOND, SECOND);
				r.class_name[0] = (char)('a' + lane);
				r.final = age > 0;
				if (ow_store_add(store, &r, &err) < 0)
					_exit(1);
			}
		}
		if (ow_store_commit(store, &err) < 0 || write(said, "", 1) != 1)
			_exit(1);
		if (ow_random_below(&random, 300) == 0)
			second -= 120;
	}
}

/* Until the process has stored so many seconds: how long that takes says nothing. */
static void wait_for_seconds(int said, uint64_t seconds)
{
	char bytes[256];
	while (seconds) {
		ssize_t n = read(said, bytes, seconds < sizeof bytes ? seconds : sizeof bytes);
		assert_true(n > 0);
		seconds -= (uint64_t)n;
	}
}

static void killed(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, 7);
	for (int run = 0; run < 10; run++) {
		int64_t second = run ? ask("SELECT max(start_ns) FROM result") / SECOND - BASE / SECOND : 0;
		int said[2];
		assert_int_equal(pipe(said), 0);
		pid_t child = fork();
		if (child == 0)
			write_until_killed((uint64_t)run, second + 1, said[1]);
		close(said[1]);
		wait_for_seconds(said[0], 1 + ow_random_below(&random, 300));
		usleep((useconds_t)ow_random_below(&random, 1000));
		assert_int_equal(kill(child, SIGKILL), 0);
		close(said[0]);
		int status;
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		reopen();
		assert_int_equal(ask("SELECT count(*) FROM result WHERE NOT final"), 0);
		check_conserved(ask("SELECT count(*) FROM result"));
		check_recomputed();
	}
	print_message("%lld results\n", (long long)ask("SELECT count(*) FROM result"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(of_a_day, store_fresh),
		cmocka_unit_test_setup(last_minute, store_fresh),
		cmocka_unit_test_setup(late_results, store_fresh),
		cmocka_unit_test_setup(clock_set_back, store_fresh),
		cmocka_unit_test_setup(any_length, store_fresh),
		cmocka_unit_test_setup(deleted_results, store_fresh),
		cmocka_unit_test_setup(earlier_version, store_fresh),
		cmocka_unit_test_setup(killed_while_converting, store_fresh),
		cmocka_unit_test_setup(full_while_converting, store_fresh),
		cmocka_unit_test_setup(killed, store_fresh),
	};
	if (store_make() < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
