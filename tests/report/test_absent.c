/* SPDX-License-Identifier: Apache-2.0 */
/* A store has no holes: what nobody told of is there as unknown, with its cause. */
#include "live_sample.h"
#include "report/absent.h"
#include "report/store.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/oneway-absent-XXXXXX";
static char path[64];

static int fresh(void **state)
{
	(void)state;
	static const char *const ends[] = {"", "-wal", "-shm"};
	for (int i = 0; i < 3; i++) {
		char name[80];
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
	return 0;
}

static struct ow_store *open_store(void)
{
	struct ow_store *store = NULL;
	struct ow_error err = {""};
	if (ow_store_open(path, &store, &err) < 0)
		fail_msg("%s", err.text);
	return store;
}

static void add(struct ow_store *store, const struct ow_live_result *result)
{
	struct ow_error err = {""};
	if (ow_store_add(store, result, &err) < 0)
		fail_msg("%s", err.text);
}

static int64_t ask(const char *sql)
{
	struct ow_database file;
	struct ow_error err = {""};
	int64_t value = -1;
	assert_int_equal(ow_database_look(path, &file, &err), 0);
	if (ow_database_ask(&file, sql, &value, &err) < 0)
		fail_msg("%s: %s", sql, err.text);
	ow_database_close(&file);
	return value;
}

/* Every interval begins where the one before ends. */
#define HOLES                                                                                                 \
	"SELECT count(*) FROM (SELECT start_ns - lag(start_ns + length_ns) OVER (PARTITION BY lane ORDER BY " \
	"start_ns) AS "                                                                                       \
	"apart FROM result) WHERE apart <> 0"

static void causes(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_live_result r = sample_live(0);
	add(store, &r);
	ow_store_close(store);
	/* Another process, since interval 10; it could not store 20 to 22, and was without agreement until 30. */
	store = open_store();
	ow_store_since(store, sample_live(10).start_ns);
	ow_store_missed(store, sample_live(20).start_ns, sample_live(23).start_ns);
	r = sample_live(30);
	add(store, &r);
	/* Another lane begins when it begins. */
	snprintf(r.class_name, sizeof r.class_name, "other");
	add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), 32);
	assert_int_equal(ask(HOLES), 0);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final AND sent IS NULL AND status = 'unknown'"), 29);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE 'this point was not running%'"), 9);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE '%could not be stored'"), 3);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE 'the points had no agreement%'"), 17);
	assert_int_equal(ask("SELECT min(interval = (start_ns - 1700000000250000000) / 1000000000) FROM result"), 1);
}

/* After a restart intervals are counted anew, and may be of another length. */
static void other_length(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_live_result r = sample_live(0);
	add(store, &r);
	r = sample_live(10);
	r.interval = 0;
	r.length_ns = INT64_C(4000000000);
	add(store, &r);
	/* What overlaps, as after a clock that went back, has nothing in between. */
	r.start_ns -= r.length_ns / 2;
	add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), 6);
	assert_int_equal(ask("SELECT length_ns FROM result WHERE interval = -3"), 1000000000);
	assert_int_equal(ask("SELECT sum(length_ns) FROM result WHERE interval < 0"), 9000000000);
}

/* The end of a very long gap is there; `oneway results` counts the rest as missing. */
static void too_long(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_live_result r = sample_live(0);
	add(store, &r);
	r = sample_live(INT64_C(10000000));
	add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), OW_ABSENT_ROWS + 2);
	assert_int_equal(ask("SELECT min(interval) FROM result WHERE interval > 0"), 10000000 - OW_ABSENT_ROWS);
}

/* A batch that fails takes what it has filled in along. */
static void rolled_back(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_live_result r = sample_live(0);
	add(store, &r);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	struct ow_database file;
	assert_int_equal(ow_database_open(path, &file, NULL), 0);
	assert_int_equal(ow_database_run(&file,
	                                 "CREATE TRIGGER no BEFORE INSERT ON result WHEN new.interval = 9 BEGIN "
	                                 "SELECT RAISE(ABORT, 'nine'); END",
	                                 NULL),
	                 0);
	r = sample_live(9);
	assert_int_equal(ow_store_add(store, &r, NULL), -EBADMSG);
	assert_int_equal(ask("SELECT count(*) FROM result"), 1);
	/* A row that the file does not take is missing, those after it are not. */
	r = sample_live(12);
	add(store, &r);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ask("SELECT count(*) FROM result"), 12);
	ow_database_close(&file);
	ow_store_close(store);
}

/* What a killed process has left: nothing stays provisional, and nothing undecided becomes lost. */
static void left_behind(void **state)
{
	(void)state;
	struct ow_store *store = open_store();
	struct ow_live_result r = sample_live(0);
	add(store, &r);
	r = sample_provisional(1);
	add(store, &r);
	r = sample_provisional(2);
	r.matched += r.pending;
	r.received += r.pending;
	r.pending = 0;
	add(store, &r);
	r = sample_unknown(3);
	r.final = false;
	add(store, &r);
	r = sample_provisional(4);
	r.status = OW_LIVE_PARTIAL;
	snprintf(r.cause, sizeof r.cause, "a cause");
	add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final = 0"), 4);
	ow_store_close(open_store());
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final = 0"), 0);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE sent <> matched + late + lost + pending"), 0);
	assert_int_equal(ask("SELECT sum(lost) FROM result WHERE interval > 0"), 0);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE interval = 1 AND status = 'partial' AND cause = "
	                     "'300 packets undecided: the point was killed before they could arrive'"),
	                 1);
	assert_int_equal(
		ask("SELECT count(*) FROM result WHERE interval = 2 AND status = 'measured' AND cause IS NULL"), 1);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE interval = 3 AND status = 'unknown'"), 1);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE interval = 4 AND status = 'partial' AND cause LIKE "
	                     "'a cause; 300 packets undecided%'"),
	                 1);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/results.db", folder);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(causes, fresh),      cmocka_unit_test_setup(other_length, fresh),
		cmocka_unit_test_setup(too_long, fresh),    cmocka_unit_test_setup(rolled_back, fresh),
		cmocka_unit_test_setup(left_behind, fresh),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	fresh(NULL);
	rmdir(folder);
	return failed;
}
