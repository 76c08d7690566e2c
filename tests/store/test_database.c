/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a store: made, opened again, and left alone if it is not ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/database.h"
#include "store_file.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Runs SQL on the file as another program would. */
static void edit(const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(store_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *text)
{
	FILE *out = fopen(store_path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static struct ow_database open_it(void)
{
	struct ow_database d;
	struct ow_error err = {""};
	if (ow_database_open(store_path, &d, &err) < 0)
		fail_msg("%s", err.text);
	return d;
}

static int64_t ask(const struct ow_database *d, const char *sql)
{
	int64_t value = -1;
	assert_int_equal(ow_database_ask(d, sql, &value, NULL), 0);
	return value;
}

/* Neither opened nor looked at, and not a byte of it changes. */
static void refuse(int code, const char *text)
{
	struct ow_database d;
	struct ow_error err = {""};
	struct stat before, after;
	assert_int_equal(stat(store_path, &before), 0);
	assert_int_equal(ow_database_open(store_path, &d, &err), -code);
	assert_non_null(strstr(err.text, text));
	assert_non_null(strstr(err.text, store_path));
	assert_int_equal(ow_database_look(store_path, &d, &err), -code);
	assert_non_null(strstr(err.text, text));
	assert_int_equal(stat(store_path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void test_made_once(void **state)
{
	(void)state;
	struct ow_database d = open_it();
	int64_t version = ask(&d, "PRAGMA user_version"),
		created = ask(&d, "SELECT value FROM meta WHERE key = 'created_ns'");
	assert_true(version >= 1 && created > 0);
	assert_int_equal(ow_database_run(&d, "INSERT INTO lane VALUES (1, 's', 'c', 'a', 'b')", NULL), 0);
	ow_database_close(&d);
	assert_null(d.db);
	d = open_it();
	assert_int_equal(ask(&d, "PRAGMA user_version"), version);
	assert_int_equal(ask(&d, "SELECT value FROM meta WHERE key = 'created_ns'"), created);
	assert_int_equal(ask(&d, "SELECT count(*) FROM lane"), 1);
	ow_database_close(&d);
}

/* Looking does not write, also while another one writes. */
static void test_look(void **state)
{
	(void)state;
	struct ow_database d, writer;
	struct ow_error err;
	assert_int_equal(ow_database_look(store_path, &d, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no such store"));
	assert_int_equal(access(store_path, F_OK), -1);
	writer = open_it();
	assert_int_equal(
		ow_database_run(&writer, "BEGIN IMMEDIATE; INSERT INTO lane VALUES (1, 's', 'c', 'a', 'b')", NULL), 0);
	assert_int_equal(ow_database_look(store_path, &d, &err), 0);
	assert_int_equal(ask(&d, "SELECT count(*) FROM lane"), 0);
	assert_int_equal(ow_database_run(&writer, "COMMIT", NULL), 0);
	assert_int_equal(ask(&d, "SELECT count(*) FROM lane"), 1);
	assert_int_equal(ow_database_run(&d, "DELETE FROM lane", &err), -EROFS);
	ow_database_close(&d);
	ow_database_close(&writer);
}

static void test_not_ours(void **state)
{
	(void)state;
	write_file("This is text, long enough for a header of SQLite, which has one hundred bytes, of which these are "
	           "not.\n");
	refuse(EINVAL, "not an SQLite database");
	store_fresh(NULL);
	edit("CREATE TABLE birds (name); PRAGMA user_version = 1");
	refuse(EINVAL, "another program");
	store_fresh(NULL);
	struct ow_database d = open_it();
	ow_database_close(&d);
	edit("PRAGMA user_version = 1000000");
	refuse(ENOTSUP, "newer version");
	edit("PRAGMA user_version = -1");
	refuse(EUCLEAN, "damaged");
}

/* A failed statement ends its transaction: what came before it in there is undone. */
static void test_rolls_back(void **state)
{
	(void)state;
	struct ow_database d = open_it();
	struct ow_error err;
	sqlite3_stmt *statement;
	int64_t value;
	assert_int_equal(ow_database_run(&d,
	                                 "BEGIN; INSERT INTO lane VALUES (1, 's', 'c', 'a', 'b');"
	                                 "INSERT INTO lane VALUES (2, 's', 'c', 'a', 'b')",
	                                 &err),
	                 -EBADMSG);
	assert_int_equal(ask(&d, "SELECT count(*) FROM lane"), 0);
	assert_true(sqlite3_get_autocommit(d.db));
	assert_int_equal(ow_database_prepare(&d, "SELECT nothing FROM nowhere", &statement, &err), -EIO);
	assert_int_equal(ow_database_ask(&d, "SELECT nothing FROM nowhere", &value, &err), -EIO);
	ow_database_close(&d);
}

/* Cache and log follow the number of lanes, between SQLite's own sizes and 32 MiB. A small disk keeps its small log. */
static void test_suits_lanes(void **state)
{
	static const struct {
		size_t lanes;
		int64_t kib, pages;
	} sizes[] = {
		{0, 2000, 1000}, {10, 2000, 1000}, {250, 2000, 1000}, {1000, 8000, 4000}, {SIZE_MAX, 32000, 16000}};
	(void)state;
	struct ow_database d = open_it();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		assert_int_equal(ow_database_suit(&d, sizes[i].lanes, NULL), 0);
		assert_int_equal(ask(&d, "PRAGMA cache_size"), -sizes[i].kib);
		assert_int_equal(ask(&d, "PRAGMA wal_autocheckpoint"), sizes[i].pages);
		assert_int_equal(ask(&d, "PRAGMA journal_size_limit"), sizes[i].pages * 6144);
	}
	d.small_disk = true;
	assert_int_equal(ow_database_suit(&d, 1000, NULL), 0);
	assert_int_equal(ask(&d, "PRAGMA wal_autocheckpoint"), 64);
	ow_database_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_made_once, store_fresh),
		cmocka_unit_test_setup(test_look, store_fresh),
		cmocka_unit_test_setup(test_not_ours, store_fresh),
		cmocka_unit_test_setup(test_rolls_back, store_fresh),
		cmocka_unit_test_setup(test_suits_lanes, store_fresh),
	};
	if (store_make() < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
