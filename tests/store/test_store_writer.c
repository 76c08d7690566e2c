/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as a daemon uses it: whatever becomes of the disk, nothing waits, nothing is lost as long as it can wait in
 * memory, what is lost is counted, and writing goes on by itself. Disks that are full or read-only are made in a mount
 * namespace of the test's own.
 */
#include "../result/interval_sample.h"
#include "base/clock.h"
#include "store/store_writer.h"
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "store_file.h"

static char ballast[80];
static bool mounts; /* the namespace is ours */

static int64_t ask(const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open_v2(store_path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	int64_t value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return value;
}

static struct ow_store_writer *keep(size_t waiting, int64_t retention_s)
{
	struct ow_store_writer_options o = {.path = store_path,
	                                    .waiting_max = waiting,
	                                    .limits = {.retention_ns = {retention_s * INT64_C(1000000000)}}};
	struct ow_store_writer *keeper = NULL;
	struct ow_error err = {""};
	if (ow_store_writer_create(&o, &keeper, &err) < 0)
		fail_msg("%s", err.text);
	return keeper;
}

static struct ow_store_writer_state state_of(struct ow_store_writer *keeper)
{
	struct ow_store_writer_state state;
	ow_store_writer_state(keeper, &state);
	return state;
}

static void expect_news(struct ow_store_writer *keeper, const char *say)
{
	struct ow_error line = {""};
	for (int i = 0; i < 3000 && !ow_store_writer_news(keeper, &line); i++)
		usleep(10000);
	if (!strstr(line.text, say) || !strstr(line.text, store_path))
		fail_msg("'%s' does not say '%s'", line.text, say);
}

static void expect_no_news(struct ow_store_writer *keeper)
{
	struct ow_error line;
	if (ow_store_writer_news(keeper, &line))
		fail_msg("%s", line.text);
}

static void add(struct ow_store_writer *keeper, int64_t from, int64_t to)
{
	for (int64_t i = from; i < to; i++) {
		struct ow_interval_result soon = sample_provisional(i), later = sample_live(i);
		ow_store_writer_add(keeper, &soon);
		ow_store_writer_add(keeper, &later);
	}
	ow_store_writer_commit(keeper);
}

static void wait_stored(struct ow_store_writer *keeper, uint64_t stored)
{
	for (int i = 0; i < 3000 && state_of(keeper).stored < stored; i++)
		usleep(10000);
	assert_int_equal(state_of(keeper).stored, stored);
}

static void usual(void **state)
{
	(void)state;
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 10);
	wait_stored(keeper, 20);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 10);
	/* Without being asked to, too. */
	struct ow_interval_result r = sample_live(10);
	ow_store_writer_add(keeper, &r);
	wait_stored(keeper, 21);
	/* What is not written yet when it ends, is then. */
	add(keeper, 11, 3000);
	ow_store_writer_stop(keeper);
	assert_int_equal(state_of(keeper).waiting, 0);
	assert_false(state_of(keeper).failing);
	expect_no_news(keeper);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 3000);
	ow_store_writer_free(NULL);
}

/* What is old goes; a batch at a time, also while new ones come. */
static void retention(void **state)
{
	(void)state;
	int64_t now = ow_clock_real_ns() / 1000000000, age = now - sample_live(0).start_ns / 1000000000;
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 3000);
	ow_store_writer_stop(keeper);
	ow_store_writer_free(keeper);
	keeper = keep(0, age - 2000);
	for (int i = 0; i < 3000 && ask("SELECT count(*) FROM result") > 1100; i++)
		usleep(10000);
	add(keeper, 3000, 3001);
	ow_store_writer_stop(keeper);
	/* Some seconds may have passed since `now`. */
	int64_t left = ask("SELECT count(*) FROM result");
	assert_in_range(left, 800, 1061); /* whole minutes */
	assert_int_equal(ask("SELECT max(interval) FROM result"), 3000);
	assert_int_equal(ask("SELECT min(interval) FROM result"), 3001 - left);
	ow_store_writer_free(keeper);
}

/* Another writer keeps its lock: nobody waits, and all is there afterwards. */
static void locked(void **state)
{
	(void)state;
	struct ow_store_writer *keeper = keep(0, 0);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000); /* the writer may be at its start */
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	add(keeper, 0, 100);
	expect_news(keeper, "locked by another program; results wait in memory");
	assert_true(state_of(keeper).failing);
	add(keeper, 100, 200);
	assert_int_equal(state_of(keeper).waiting, 400);
	sqlite3_close(db);
	expect_news(keeper, "written again after");
	wait_stored(keeper, 400);
	assert_int_equal(state_of(keeper).lost, 0);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 200);
}

/* Readers do not keep it from writing. */
static void readers(void **state)
{
	(void)state;
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 100);
	wait_stored(keeper, 200);
	sqlite3 *db;
	sqlite3_stmt *statement;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM result", -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	add(keeper, 100, 2000);
	wait_stored(keeper, 4000);
	unsigned rows = 1;
	while (sqlite3_step(statement) == SQLITE_ROW)
		rows++;
	assert_int_equal(rows, 100); /* as it was when it began */
	sqlite3_finalize(statement);
	sqlite3_close(db);
	expect_no_news(keeper);
	ow_store_writer_free(keeper);
}

/* One that the store refuses does not keep the others back. */
static void refused(void **state)
{
	(void)state;
	struct ow_store_writer *keeper = keep(0, 0);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000); /* the writer may be at work */
	assert_int_equal(sqlite3_exec(db,
	                              "CREATE TRIGGER no BEFORE INSERT ON result WHEN new.interval = 13 BEGIN "
	                              "SELECT RAISE(ABORT, 'thirteen'); END",
	                              NULL, NULL, NULL),
	                 SQLITE_OK);
	sqlite3_close(db);
	add(keeper, 0, 100);
	wait_stored(keeper, 198);
	assert_int_equal(state_of(keeper).lost, 1);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 99);
	assert_int_equal(ask("SELECT value FROM meta WHERE key = 'not_stored'"), 1);
}

static void removed(void **state)
{
	(void)state;
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 10);
	wait_stored(keeper, 20);
	assert_int_equal(unlink(store_path), 0);
	sleep(1); /* it looks once a second */
	add(keeper, 10, 15);
	expect_news(keeper, "was removed or replaced; opened again");
	wait_stored(keeper, 30);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result"), 5);
}

/* What a person has to put right is said at once. */
static void hopeless(void **state)
{
	(void)state;
	struct ow_store_writer_options o = {.path = "/nowhere/at/all.db"};
	struct ow_store_writer *keeper = NULL;
	struct ow_error err = {""};
	assert_int_equal(ow_store_writer_create(&o, &keeper, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/at/all.db"));
	FILE *file = fopen(store_path, "w");
	fputs("This is a letter, and no database, however long it gets. It just goes on and on and on and on. It is "
	      "longer than the header of a database has to be.",
	      file);
	fclose(file);
	o.path = store_path;
	assert_int_equal(ow_store_writer_create(&o, &keeper, &err), -EINVAL);
	assert_null(keeper);
}

static void fill_disk(void)
{
	static const char block[4096] = {1};
	FILE *file = fopen(ballast, "a");
	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	while (fwrite(block, 1, sizeof block, file) == sizeof block)
		continue;
	fclose(file);
}

/* A disk of 1 MB that others fill. */
static void full(void **state)
{
	(void)state;
	if (!mounts)
		skip();
	struct ow_store_writer *keeper = keep(300, 0);
	add(keeper, 0, 20);
	wait_stored(keeper, 40);
	expect_no_news(keeper);
	fill_disk();
	int64_t at = 20;
	/* What SQLite has room for is written, then no more. */
	for (; at < 2000 && !state_of(keeper).failing; at++) {
		add(keeper, at, at + 1);
		usleep(1000);
	}
	expect_news(keeper, "no space left; results wait in memory");
	/* More than can wait: the oldest make room and are counted; each result is either stored, waiting or lost. */
	add(keeper, at, at + 1000);
	expect_news(keeper, "older ones are lost from now on");
	struct ow_store_writer_state now = state_of(keeper);
	assert_true(now.failing && now.lost > 500);
	int64_t readable = ask("SELECT count(*) FROM result");
	assert_true(readable >= 20);
	expect_no_news(keeper); /* said once */

	assert_int_equal(unlink(ballast), 0);
	expect_news(keeper, "written again after");
	for (int i = 0; i < 3000 && state_of(keeper).waiting; i++)
		usleep(10000);
	now = state_of(keeper);
	assert_false(now.failing);
	ow_store_writer_free(keeper);
	/* Every interval is there; those that could not be stored say so, and are counted. */
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), at + 1000);
	assert_int_equal(
		ask("SELECT count(*) FROM result WHERE status = 'unknown' AND cause = 'the result could not be "
	            "stored'"),
		now.lost);
	assert_int_equal(ask("SELECT value FROM meta WHERE key = 'not_stored'"), now.lost);
	assert_int_equal(ask("SELECT max(interval) FROM result"), at + 999);
	assert_int_equal(ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
}

/* Full from the very start: it starts, and makes the store when it can. */
static void full_at_start(void **state)
{
	(void)state;
	if (!mounts)
		skip();
	fill_disk();
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 20);
	expect_news(keeper, "; results wait in memory");
	assert_int_equal(unlink(ballast), 0);
	expect_news(keeper, "written again after");
	wait_stored(keeper, 40);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 20);
}

static void read_only_disk(void **state)
{
	(void)state;
	if (!mounts)
		skip();
	ow_store_writer_free(keep(0, 0));
	assert_int_equal(mount(NULL, store_folder, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	struct ow_store_writer *keeper = keep(0, 0);
	add(keeper, 0, 20);
	expect_news(keeper, "read-only");
	assert_int_equal(mount(NULL, store_folder, NULL, MS_REMOUNT, "size=1m"), 0);
	expect_news(keeper, "written again after");
	wait_stored(keeper, 40);
	ow_store_writer_free(keeper);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final"), 20);
}

static int fresh(void **state)
{
	store_fresh(state);
	unlink(ballast);
	return 0;
}

int main(void)
{
	if (store_make() < 0)
		return 1;
	snprintf(ballast, sizeof ballast, "%s/ballast", store_folder);
	mounts = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	         mount("tmpfs", store_folder, "tmpfs", 0, "size=1m") == 0;
	if (!mounts)
		printf("no mount namespace (%s): without full and read-only disks\n", strerror(errno));
	const struct CMUnitTest small[] = {
		cmocka_unit_test_setup(full, fresh),
		cmocka_unit_test_setup(full_at_start, fresh),
		cmocka_unit_test_setup(read_only_disk, fresh),
	};
	int failed = cmocka_run_group_tests(small, NULL, NULL);
	fresh(NULL);
	if (mounts)
		umount(store_folder);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(usual, fresh),    cmocka_unit_test_setup(retention, fresh),
		cmocka_unit_test_setup(locked, fresh),   cmocka_unit_test_setup(readers, fresh),
		cmocka_unit_test_setup(refused, fresh),  cmocka_unit_test_setup(removed, fresh),
		cmocka_unit_test_setup(hopeless, fresh),
	};
	failed += cmocka_run_group_tests(tests, NULL, NULL);
	fresh(NULL);
	store_done();
	return failed;
}
