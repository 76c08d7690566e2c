/* SPDX-License-Identifier: Apache-2.0 */
/* A store has no holes: what nobody told of is there as unknown, with its cause. */
#include "../result/interval_sample.h"
#include "store/store_gaps.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store_file.h"

static int64_t ask(const char *sql)
{
	struct ow_database file;
	struct ow_error err = {""};
	int64_t value = -1;
	assert_int_equal(ow_database_look(store_path, &file, &err), 0);
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
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	store_add(store, &r);
	ow_store_close(store);
	/* Another process, since interval 10; it could not store 20 to 22, and was without agreement until 30. */
	store = store_open();
	ow_store_since(store, sample_live(10).start_ns);
	ow_store_missed(store, sample_live(20).start_ns, sample_live(23).start_ns);
	r = sample_live(30);
	store_add(store, &r);
	/* Another lane begins when it begins. */
	snprintf(r.class_name, sizeof r.class_name, "other");
	store_add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), 32);
	assert_int_equal(ask(HOLES), 0);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final AND sent IS NULL AND status = 'unknown'"), 29);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE 'this point was not running%'"), 9);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE '%could not be stored'"), 3);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE cause LIKE 'nothing was measured then%'"), 17);
	assert_int_equal(ask("SELECT min(interval = (start_ns - 1700000000250000000) / 1000000000) FROM result"), 1);
}

/* After a restart intervals are counted anew, and may be of another length. */
static void other_length(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	store_add(store, &r);
	r = sample_live(10);
	r.interval = 0;
	r.length_ns = INT64_C(4000000000);
	store_add(store, &r);
	/* What overlaps, as after a clock that went back, has nothing in between. */
	r.start_ns -= r.length_ns / 2;
	store_add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), 6);
	assert_int_equal(ask("SELECT length_ns FROM result WHERE interval = -3"), 1000000000);
	assert_int_equal(ask("SELECT sum(length_ns) FROM result WHERE interval < 0"), 9000000000);
}

/* The end of a very long gap is there; `oneway results` counts the rest as missing. */
static void too_long(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	store_add(store, &r);
	r = sample_live(INT64_C(10000000));
	store_add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result"), OW_STORE_GAPS_ROWS + 2);
	assert_int_equal(ask("SELECT min(interval) FROM result WHERE interval > 0"), 10000000 - OW_STORE_GAPS_ROWS);
}

/* A batch that fails takes what it has filled in along. */
static void rolled_back(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	store_add(store, &r);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	struct ow_database file;
	assert_int_equal(ow_database_open(store_path, &file, NULL), 0);
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
	store_add(store, &r);
	assert_int_equal(ow_store_commit(store, NULL), 0);
	assert_int_equal(ask("SELECT count(*) FROM result"), 12);
	ow_database_close(&file);
	ow_store_close(store);
}

/* What a killed process has left: nothing stays provisional, and nothing undecided becomes lost. */
static void left_behind(void **state)
{
	(void)state;
	struct ow_store *store = store_open();
	struct ow_interval_result r = sample_live(0);
	store_add(store, &r);
	r = sample_provisional(1);
	store_add(store, &r);
	r = sample_provisional(2);
	r.matched += r.pending;
	r.received += r.pending;
	r.pending = 0;
	store_add(store, &r);
	r = sample_unknown(3);
	r.final = false;
	store_add(store, &r);
	r = sample_provisional(4);
	r.status = OW_RESULT_PARTIAL;
	snprintf(r.cause, sizeof r.cause, "a cause");
	store_add(store, &r);
	ow_store_close(store);
	assert_int_equal(ask("SELECT count(*) FROM result WHERE final = 0"), 4);
	ow_store_close(store_open());
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
	if (store_make() < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(causes, store_fresh),      cmocka_unit_test_setup(other_length, store_fresh),
		cmocka_unit_test_setup(too_long, store_fresh),    cmocka_unit_test_setup(rolled_back, store_fresh),
		cmocka_unit_test_setup(left_behind, store_fresh),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	store_done();
	return failed;
}
