/* SPDX-License-Identifier: Apache-2.0 */
/* The store, looked at through SQLite itself. The first argument is docs/store.md, whose queries must work. */
#include "../result/interval_sample.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store_file.h"

static const char *manual;
static void refused(int code, const char *say)
{
	struct ow_store *store = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_store_open(store_path, &store, &err), -code);
	assert_null(store);
	if (!strstr(err.text, say) || !strstr(err.text, store_path) || strchr(err.text, '\n'))
		fail_msg("'%s' does not say '%s'", err.text, say);
}

static sqlite3 *look(void)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	return db;
}

/* The first column of the first row as text, "" if there is none. */
static const char *query(sqlite3 *db, const char *sql)
{
	static char text[600];
	sqlite3_stmt *statement;
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	const char *value =
		sqlite3_step(statement) == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : "";
	snprintf(text, sizeof text, "%s", value ? value : "NULL");
	sqlite3_finalize(statement);
	return text;
}

/* What comes out of the view of sample_live(7). */
static const char *const columns[][2] = {
	{"time", "2023-11-14 22:13:27.250"},
	{"segment", "london-paris"},
	{"class", "voice"},
	{"from_point", "london"},
	{"to_point", "paris"},
	{"start_ns", "1700000007250000000"},
	{"length_ns", "1000000000"},
	{"interval", "7"},
	{"final", "1"},
	{"exact", "0"},
	{"status", "measured"},
	{"cause", "NULL"},
	{"sent", "100000"},
	{"received", "99740"},
	{"matched", "99700"},
	{"late", "40"},
	{"late_received", "35"},
	{"lost", "260"},
	{"pending", "0"},
	{"extra", "5"},
	{"duplicated", "3"},
	{"ambiguous", "12"},
	{"reordered", "NULL"},
	{"bytes", "50000000"},
	{"sample_shift", "0"},
	{"total_sent", "100000"},
	{"total_received", "99740"},
	{"coverage", "1.0"},
	{"ring_drops_from", "0"},
	{"ring_drops_to", "7"},
	{"unreadable", "0"},
	{"samples", "2048"},
	{"mean_ns", "50123.5"},
	{"mean_low_ns", "50123.5"},
	{"mean_us", "50.1235"},
	{"stddev_ns", "1234.25"},
	{"min_ns", "NULL"},
	{"max_ns", "NULL"},
	{"p50_ns", "50000.0"},
	{"p50_low_ns", "49900.0"},
	{"p90_ns", "51000.0"},
	{"p95_high_ns", "52100.0"},
	{"p99_ns", "53000.0"},
	{"p999_ns", "54000.0"},
	{"p999_low_ns", "53900.0"},
	{"p999_high_ns", "NULL"}, /* infinity */
	{"loss_ratio", "0.0026"},
	{"loss_high", "0.0026"},
	{"loss_percent", "0.26"},
	{"json_extract(not_estimated, '$.min')", "packets were sampled"},
	{"clock_error_from_ns", "4000"},
	{"clock_error_to_ns", "NULL"},
	{"synopsis", "fold 4 x 1024"},
	{"cost_bytes", "16384"},
	{"round_trips", "2"},
	{"transmit_ns", "100000"},
	{"decode_ns", "200000"},
	{"missing_ns", "300000"},
	{"erase_ns", "400000"},
	{"compute_ns", "500000"},
	{"ready_ns", "1600000"},
};

static void every_column(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(7);
	store_add(store, &r);
	ow_store_close(store);
	sqlite3 *db = look();
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		char sql[200];
		snprintf(sql, sizeof sql, "SELECT %s FROM results", columns[i][0]);
		if (strcmp(query(db, sql), columns[i][1]) != 0)
			print_error("%s: ", columns[i][0]);
		assert_string_equal(query(db, sql), columns[i][1]);
	}
	sqlite3_close(db);
}

static void kind_of_file(void **state)
{
	(void)state;
	ow_store_close(store_open());
	sqlite3 *db = look();
	assert_string_equal(query(db, "PRAGMA journal_mode"), "wal");
	assert_int_equal(strtol(query(db, "PRAGMA user_version"), NULL, 10), ow_database_newest());
	assert_string_equal(query(db, "PRAGMA auto_vacuum"), "2");
	assert_string_equal(query(db, "PRAGMA application_id"), "1870094713");
	assert_string_equal(query(db, "SELECT count(*) FROM meta WHERE key IN ('created_ns', 'opened_by')"), "2");
	assert_string_equal(query(db, "PRAGMA integrity_check"), "ok");
	assert_string_equal(query(db, "PRAGMA foreign_key_check"), "");
	sqlite3_close(db);
}

static void final_replaces_provisional(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 50; i++) {
		struct ow_interval_result soon = sample_provisional(i), later = sample_live(i);
		store_add(store, &soon);
		store_add(store, &soon);
		store_add(store, &later);
		store_add(store, &soon); /* too late: nothing goes back */
	}
	struct ow_interval_result lost = sample_unknown(50);
	store_add(store, &lost);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ow_store_commit(store, NULL), 0); /* nothing to do */
	/* Visible while the store is open. */
	sqlite3 *db = look();
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "51");
	assert_string_equal(query(db, "SELECT count(*) FROM result WHERE final AND lost = 260"), "50");
	assert_string_equal(query(db, "SELECT cause FROM result WHERE sent IS NULL AND mean_ns IS NULL"),
	                    "paris does not answer");
	assert_string_equal(query(db, "SELECT count(*) FROM lane"), "1");
	sqlite3_close(db);
	ow_store_close(store);
}

/* Results of all lanes, in a store that is closed and opened again: the lanes keep their numbers. */
static void lanes_stay(void **state)
{
	(void)state;
	for (int64_t run = 0; run < 3; run++) {
		struct ow_store *store = store_open();
		for (int64_t i = 0; i < 10; i++) {
			for (int lane = 0; lane < 20; lane++) {
				struct ow_interval_result r = sample_live(10 * run + i);
				snprintf(r.class_name, sizeof r.class_name, "it's \"class\" %d", lane);
				r.sent = r.lost = (uint64_t)lane;
				store_add(store, &r);
			}
		}
		ow_store_close(store);
	}
	sqlite3 *db = look();
	assert_string_equal(query(db, "SELECT count(*) FROM lane"), "20");
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "600");
	assert_string_equal(query(db, "SELECT count(*) FROM results WHERE class = 'it''s \"class\" ' || sent"), "600");
	sqlite3_close(db);
}

/* Without a commit a batch is written by itself, and closing writes the rest. */
static void batches(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	sqlite3 *db = look();
	for (int64_t i = 0; i < OW_STORE_BATCH + 1; i++) {
		struct ow_interval_result r = sample_live(i);
		store_add(store, &r);
		if (i == OW_STORE_BATCH - 2)
			assert_string_equal(query(db, "SELECT count(*) FROM result"), "0");
	}
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "1000");
	ow_store_close(store);
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "1001");
	sqlite3_close(db);
}

static void write_file(const char *text, size_t size)
{
	FILE *file = fopen(store_path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	fclose(file);
}

static void others_are_refused(void **state)
{
	(void)state;
	char before[4096] = {0}, after[4096] = {0};
	write_file("This is a letter, and no database, however long it gets. It just goes on and on and on and on. "
	           "It is longer than the header of a database has to be.",
	           148);
	refused(EINVAL, "not an SQLite database");
	store_fresh(NULL);

	sqlite3 *db = look();
	query(db, "CREATE TABLE bookmarks (url)");
	sqlite3_close(db);
	FILE *file = fopen(store_path, "r");
	assert_int_equal(fread(before, 1, sizeof before, file), sizeof before);
	fclose(file);
	refused(EINVAL, "another program");
	file = fopen(store_path, "r");
	assert_int_equal(fread(after, 1, sizeof after, file), sizeof after);
	fclose(file);
	assert_memory_equal(before, after, sizeof before); /* untouched */
	store_fresh(NULL);

	ow_store_close(store_open());
	db = look();
	char sql[100];
	snprintf(sql, sizeof sql, "PRAGMA user_version = %d", ow_database_newest() + 1);
	query(db, sql);
	sqlite3_close(db);
	snprintf(sql, sizeof sql, "newer version of oneway (schema %d, this one knows %d)", ow_database_newest() + 1,
	         ow_database_newest());
	refused(ENOTSUP, sql);
	store_fresh(NULL);

	write_file("", 0); /* an empty file is a new store */
	ow_store_close(store_open());

	char keep[64];
	snprintf(keep, sizeof keep, "%s", store_path);
	snprintf(store_path, sizeof store_path, "%s/none/store", store_folder);
	refused(ENOENT, "No such file");
	snprintf(store_path, sizeof store_path, "%s", store_folder);
	refused(EISDIR, "cannot be opened");
	snprintf(store_path, sizeof store_path, "%s", keep);
}

static void damaged(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 200; i++) {
		struct ow_interval_result r = sample_live(i);
		store_add(store, &r);
	}
	ow_store_close(store);
	struct stat st;
	assert_int_equal(stat(store_path, &st), 0);
	/* Everything behind the first page is gone bad. */
	FILE *file = fopen(store_path, "r+");
	fseek(file, 4096, SEEK_SET);
	for (long i = 4096; i < st.st_size; i++)
		fputc(0x5a, file);
	fclose(file);
	struct ow_error err = {""};
	store = NULL;
	int r = ow_store_open(store_path, &store, &err);
	struct ow_interval_result result = sample_live(300);
	if (r == 0)
		r = ow_store_add(store, &result, &err);
	assert_int_equal(r, -EUCLEAN);
	assert_non_null(strstr(err.text, "damaged"));
	ow_store_close(store);
}

/* Another writer: a clear line; and when it has gone, writing goes on. */
static void locked(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	struct ow_error err = {""};
	sqlite3 *db = look();
	query(db, "BEGIN IMMEDIATE");
	assert_int_equal(ow_store_add(store, &r, &err), -EBUSY);
	assert_non_null(strstr(err.text, "locked by another program"));
	refused(EBUSY, "locked by another program");
	query(db, "ROLLBACK");
	store_add(store, &r);
	assert_int_equal(ow_store_commit(store, &err), 0);
	assert_string_equal(query(db, "SELECT count(*) FROM results"), "1");
	sqlite3_close(db);
	ow_store_close(store);
}

/* A failure in the middle of a batch takes the batch with it, also its lanes; the next one begins anew. */
static void failed_batch(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	struct ow_error err = {""};
	sqlite3 *db = look();
	query(db, "CREATE TRIGGER no BEFORE INSERT ON result WHEN new.interval = 13 BEGIN "
	          "SELECT RAISE(ABORT, 'thirteen'); END");
	store_add(store, &r);
	r.interval = 13;
	r.start_ns++;
	assert_int_equal(ow_store_add(store, &r, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "thirteen"));
	assert_string_equal(query(db, "SELECT count(*) FROM lane"), "0");
	r.interval = 14;
	store_add(store, &r);
	assert_int_equal(ow_store_commit(store, &err), 0);
	assert_string_equal(query(db, "SELECT count(*) FROM results"), "1");
	sqlite3_close(db);
	ow_store_close(store);
}

/* Root may write everything: so somebody else tries. */
static void read_only(void **state)
{
	(void)state;
	ow_store_close(store_open());
	assert_int_equal(chmod(store_path, 0444), 0);
	assert_int_equal(chmod(store_folder, 0555), 0);
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(77);
		struct ow_store *store = NULL;
		struct ow_error err = {""};
		int r = ow_store_open(store_path, &store, &err);
		if (r != -EROFS || !strstr(err.text, "read-only"))
			_exit(1);
		char path[sizeof store_path + 4];
		snprintf(path, sizeof path, "%s.new", store_path);
		r = ow_store_open(path, &store, &err);
		_exit(r == -EACCES && strstr(err.text, "Permission denied") ? 0 : 2);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	chmod(store_folder, 0700);
	chmod(store_path, 0644);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A store of schema 1 as it was written then: it is brought up to date, once, and keeps its results. */
static void older_schema(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(1);
	store_add(store, &r);
	ow_store_close(store);
	sqlite3 *db = look();
	assert_int_equal(store_to_first_schema(db), SQLITE_OK);
	sqlite3_close(db);
	store = store_open();
	r = sample_live(2);
	r.active = true;
	store_add(store, &r);
	ow_store_close(store);
	db = look();
	assert_int_equal(strtol(query(db, "PRAGMA user_version"), NULL, 10), ow_database_newest());
	assert_string_equal(
		query(db, "SELECT group_concat(active) FROM (SELECT active FROM results ORDER BY start_ns)"), "0,1");
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "2");
	assert_string_equal(query(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'result_start'"), "0");
	assert_string_equal(query(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'result_time'"), "1");
	assert_string_equal(query(db, "SELECT count(*) FROM event"), "0");
	assert_string_equal(query(db, "PRAGMA integrity_check"), "ok");
	/* A failing migration leaves it as it was. */
	query(db, "DROP INDEX result_time");
	query(db, "ALTER TABLE result RENAME TO result_away");
	query(db, "PRAGMA user_version = 1");
	sqlite3_close(db);
	refused(EIO, "no such table");
	db = look();
	assert_string_equal(query(db, "PRAGMA user_version"), "1");
	sqlite3_close(db);
}

static long file_bytes(void)
{
	struct stat st;
	assert_int_equal(stat(store_path, &st), 0);
	return (long)st.st_size;
}

/* By age and by size, a little at a time, oldest first; the file becomes shorter. */
static void trimmed(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_error err = {""};
	for (int64_t i = 0; i < 20000; i++) {
		struct ow_interval_result r = sample_live(i);
		store_add(store, &r);
	}
	assert_int_equal(ow_store_commit(store, NULL), 0);
	struct ow_interval_result r = sample_live(20000);
	sqlite3 *db = look();
	query(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	long before = file_bytes();

	/* Nothing is beyond the limits, or there are none. */
	struct ow_store_limits limits = {.max_bytes = 0};
	assert_int_equal(ow_store_trim(store, &limits, r.start_ns, &err), 0);
	limits = (struct ow_store_limits){{20000 * INT64_C(1000000000)}, (uint64_t)before};
	assert_int_equal(ow_store_trim(store, &limits, r.start_ns, &err), 0);
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "20000");

	limits.retention_ns[0] = 15000 * INT64_C(1000000000);
	assert_int_equal(ow_store_trim(store, &limits, r.start_ns, &err), 1);
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "19480");
	unsigned steps = 1;
	while (ow_store_trim(store, &limits, r.start_ns, &err) > 0)
		steps++;
	assert_in_range(steps, 10, 100);
	/* Minutes are deleted as a whole. */
	assert_string_equal(query(db, "SELECT count(*) || ' ' || min(interval) FROM result"), "15040 4960");

	limits.max_bytes = (uint64_t)before / 2;
	while (ow_store_trim(store, &limits, r.start_ns, &err) > 0)
		continue;
	query(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	/* What is free may be up to TRIM_PAGES of 4096 bytes. */
	assert_in_range(file_bytes(), before / 4, before / 2 + 256 * 4096);
	int64_t left = strtoll(query(db, "SELECT count(*) FROM result"), NULL, 10);
	assert_in_range(left, 6500, 10500);
	char newest[32];
	snprintf(newest, sizeof newest, "%lld 19999", (long long)(20000 - left));
	assert_string_equal(query(db, "SELECT min(interval) || ' ' || max(interval) FROM result"), newest);
	assert_string_equal(query(db, "PRAGMA integrity_check"), "ok");

	/* A limit that nothing fits empties it, and that is the end. */
	limits.max_bytes = 1;
	steps = 0;
	while (ow_store_trim(store, &limits, r.start_ns, &err) > 0)
		assert_in_range(++steps, 0, 1000);
	assert_string_equal(query(db, "SELECT (SELECT count(*) FROM result) + (SELECT count(*) FROM minute) +"
	                              " (SELECT count(*) FROM hour) + (SELECT count(*) FROM day)"),
	                    "0");
	store_add(store, &r);
	ow_store_close(store);
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "1");
	sqlite3_close(db);
}

/*
 * Kill -9 at any moment. The child writes intervals of three lanes, a commit an interval, and says after each commit
 * how far it is. Whatever it said is there, and nothing is there in part: an interval has all of its lanes. Only the
 * oldest minute may be forgotten.
 */
static void write_until_killed(int say, int64_t from)
{
	struct ow_store *store = store_open();
	struct ow_store_limits limits = {.retention_ns = {300 * INT64_C(1000000000)}};
	for (int64_t i = from;; i++) {
		for (int lane = 0; lane < 3; lane++) {
			struct ow_interval_result r = sample_live(i);
			snprintf(r.class_name, sizeof r.class_name, "class %d", lane);
			store_add(store, &r);
		}
		if (ow_store_commit(store, NULL) < 0 || write(say, &i, sizeof i) != sizeof i)
			_exit(1);
		if (i % 50 == 0 && ow_store_trim(store, &limits, sample_live(i).start_ns, NULL) < 0)
			_exit(1);
	}
}

static void killed(void **state)
{
	(void)state;
	uint64_t seed = 20261115;
	int64_t committed = -1;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int run = 0; run < 50; run++) {
		int said[2], status;
		assert_int_equal(pipe(said), 0);
		pid_t child = fork();
		if (child == 0) {
			close(said[0]);
			write_until_killed(said[1], committed + 1);
		}
		close(said[1]);
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		usleep((useconds_t)(seed >> 33) % 30000);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		int64_t at;
		while (read(said[0], &at, sizeof at) == sizeof at)
			committed = at;
		close(said[0]);

		ow_store_close(store_open());
		sqlite3 *db = look();
		assert_string_equal(query(db, "PRAGMA integrity_check"), "ok");
		assert_string_equal(query(db, "PRAGMA foreign_key_check"), "");
		assert_string_equal(query(db, "SELECT interval FROM result GROUP BY interval HAVING count(*) <> 3 "
		                              "AND interval > (SELECT min(interval) FROM result)"),
		                    "");
		assert_string_equal(query(db, "SELECT 1 FROM result WHERE sent <> matched + late + lost + pending"),
		                    "");
		/* At most the commit that was just not said is more. */
		int64_t newest = strtoll(query(db, "SELECT ifnull(max(interval), -1) FROM result"), NULL, 10);
		assert_true(newest == committed || newest == committed + 1);
		assert_string_equal(query(db,
		                          "SELECT max(interval) - min(interval) + 1 = (count(*) + 2) / 3 FROM result "
		                          "HAVING count(*)"),
		                    newest < 0 ? "" : "1");
		committed = newest;
		sqlite3_close(db);
	}
	print_message("%lld intervals\n", (long long)committed + 1);
}

/* Every query of the manual runs, and finds something where it should. */
static void queries_of_the_manual(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	for (int64_t i = 0; i < 30; i++) {
		struct ow_interval_result r = i == 20 ? sample_unknown(i) : sample_live(i);
		snprintf(r.class_name, sizeof r.class_name, "all");
		store_add(store, &r);
		memcpy(r.from, "paris", 6);
		memcpy(r.to, "london", 7);
		store_add(store, &r);
	}
	ow_store_close(store);
	FILE *file = fopen(manual, "r");
	assert_non_null(file);
	char text[20000];
	size_t length = fread(text, 1, sizeof text - 1, file);
	text[length] = 0;
	fclose(file);
	sqlite3 *db = look();
	unsigned queries = 0;
	for (char *at = text; (at = strstr(at, "```sql\n")); queries++) {
		at += strlen("```sql\n");
		char *end = strstr(at, "```");
		assert_non_null(end);
		*end = 0;
		const char *first = query(db, at);
		bool empty = strstr(at, "<> matched + late") || strncmp(at, "DELETE", 6) == 0;
		if ((*first == 0) != empty)
			fail_msg("%s gives '%s'", at, first);
		at = end + 1;
	}
	assert_true(queries >= 8);
	assert_string_equal(query(db, "SELECT count(*) FROM result"), "0"); /* the last one deletes what is old */
	sqlite3_close(db);
}

int main(int argc, char **argv)
{
	manual = argc > 1 ? argv[1] : "docs/store.md";
	if (store_make() < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_column, store_fresh),
		cmocka_unit_test_setup(kind_of_file, store_fresh),
		cmocka_unit_test_setup(final_replaces_provisional, store_fresh),
		cmocka_unit_test_setup(lanes_stay, store_fresh),
		cmocka_unit_test_setup(batches, store_fresh),
		cmocka_unit_test_setup(others_are_refused, store_fresh),
		cmocka_unit_test_setup(damaged, store_fresh),
		cmocka_unit_test_setup(locked, store_fresh),
		cmocka_unit_test_setup(failed_batch, store_fresh),
		cmocka_unit_test_setup(read_only, store_fresh),
		cmocka_unit_test_setup(older_schema, store_fresh),
		cmocka_unit_test_setup(trimmed, store_fresh),
		cmocka_unit_test_setup(killed, store_fresh),
		cmocka_unit_test_setup(queries_of_the_manual, store_fresh),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
