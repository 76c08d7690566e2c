/* SPDX-License-Identifier: Apache-2.0 */
/* oneway results as users run it. The program's path is in ONEWAY. */
#include "../result/interval_sample.h"
#include "store/store.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "shell.h"

static char folder[] = "/tmp/oneway-results-XXXXXX";

/* Runs "oneway results ARGUMENTS" in the folder. */
static void expect(const char *arguments, int code)
{
	char line[1900];
	snprintf(line, sizeof line, "\"$ONEWAY\" results %s", arguments);
	int got = run(line);
	if (got != code)
		fail_msg("%s: exit code %d\n%s%s", arguments, got, out, err);
}

static void expect_out(const char *arguments, const char *text)
{
	expect(arguments, 0);
	if (!strstr(out, text))
		fail_msg("%s: no '%s' in\n%s", arguments, text, out);
}

static void expect_error(const char *arguments, int code, const char *text)
{
	expect(arguments, code);
	if (!strstr(err, text) || strchr(err, '\n') != err + strlen(err) - 1)
		fail_msg("%s: not one line with '%s':\n%s", arguments, text, err);
}

static unsigned lines(void)
{
	unsigned count = 0;
	for (const char *p = out; (p = strchr(p, '\n')); p++)
		count++;
	return count;
}

/* Ten minutes of two directions from 22:13:20 UTC on; minute 5 is unknown, interval 400 has much loss. */
static void fill(void)
{
	struct ow_store *store;
	assert_int_equal(ow_store_open("r.db", &store, NULL), 0);
	for (int64_t i = 0; i < 600; i++) {
		struct ow_interval_result r = i >= 300 && i < 360 ? sample_unknown(i) : sample_live(i);
		if (r.status == OW_RESULT_MEASURED && i == 400) {
			r.lost = 5000;
			r.matched = r.sent - r.late - r.lost;
			r.received = r.matched + r.late_received + r.extra;
			r.loss_ratio = sample_value(OW_VALUE_EXACT, 0.05, 0);
			r.quantile_ns[OW_Q99].value = r.quantile_ns[OW_Q99].high = 9e6;
		}
		assert_int_equal(ow_store_add(store, &r, NULL), 0);
		memcpy(r.from, "paris", 6);
		memcpy(r.to, "london", 7);
		assert_int_equal(ow_store_add(store, &r, NULL), 0);
	}
	ow_store_close(store);
}

static void lists(void **state)
{
	(void)state;
	expect_out("r.db", "22:23:19.250  voice london>paris");
	assert_non_null(strstr(err, "the newest 50"));
	assert_ptr_equal(strstr(out, "2023-11-14\nUTC"), out);
	expect_out("r.db --since '2023-11-14 22:18:18' --until '2023-11-14 22:18:22' --from london",
	           "22:18:20.250? voice london>paris           no result: paris does not answer");
	assert_int_equal(lines(), 6);
	expect("r.db --limit 7 --status measured", 0);
	assert_int_equal(lines(), 9);
	expect_out("r.db --worst 1 by loss", "22:20:00.250  voice london>paris             100,000   5,000    5.00%");
	assert_int_equal(lines(), 3);
	expect("--worst 3 by p99 --to paris r.db", 0);
	assert_int_equal(lines(), 5);
	/* Local time, and the zone is named; a line where the day changes. */
	setenv("TZ", "Asia/Kolkata", 1);
	expect_out("r.db --limit 1", "IST");
	assert_non_null(strstr(out, "03:53:19.250"));
	assert_non_null(strstr(out, "2023-11-15\n"));
	setenv("TZ", "Europe/London", 1);
	expect_out("r.db --limit 1", "2023-11-14\nGMT ");
	setenv("TZ", "UTC", 1);
}

static void json_lines(void **state)
{
	(void)state;
	expect("r.db --json --class voice --from london", 0);
	assert_int_equal(lines(), 600);
	json_int_t interval = 0;
	char *rest = out;
	for (char *line; *rest && (line = strsep(&rest, "\n")); interval++) {
		json_error_t why;
		json_t *root = json_loads(line, 0, &why);
		if (!root)
			fail_msg("%s: %s", why.text, line);
		assert_int_equal(json_integer_value(json_object_get(root, "interval")), interval);
		bool unknown = interval >= 300 && interval < 360;
		assert_string_equal(json_string_value(json_object_get(root, "status")),
		                    unknown ? "unknown" : "measured");
		json_decref(root);
	}
}

static void sums(void **state)
{
	(void)state;
	expect_out("r.db --summary", "--- voice london>paris ---\n600 intervals from 2023-11-14 22:13:20 to "
	                             "2023-11-14 22:23:20 UTC\n540 measured (90.0%), 60 unknown\n");
	assert_non_null(strstr(out, "54,000,000 sent, 53,854,860 received, 145,140 lost (0.269%)"));
	assert_non_null(strstr(out, "p99 of intervals: 53 us to 9 ms, worst at 11-14 22:20:00"));
	assert_non_null(strstr(out, "120 unknown: paris does not answer, 11-14 22:18:20 to 11-14 22:19:19"));
	assert_non_null(strstr(out, "cannot be added up"));
	expect_out("r.db --summary by hour --from london", "2023-11-14 22:00 voice london>paris");
	expect_out("r.db --summary by day", "2023-11-14 voice london>paris");
	expect_out("r.db --summary by segment", "--- london-paris ---\n1,200 intervals");
	expect("r.db --summary --json --from paris", 0);
	char *rest = out;
	json_t *root = json_loads(strsep(&rest, "\n"), 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "sent")), 54000000);
	assert_float_equal(json_real_value(json_object_get(root, "availability")), 0.9, 1e-12);
	json_decref(root);
	root = json_loads(strsep(&rest, "\n"), 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "cause")), "paris does not answer");
	json_decref(root);
}

static void files(void **state)
{
	(void)state;
	struct stat info;
	expect("r.db --csv r.csv", 0);
	assert_int_equal(lines(), 0);
	slurp("r.csv", out, sizeof out);
	assert_int_equal(lines(), 1201);
	expect("r.db --csv - --from london", 0);
	assert_int_equal(lines(), 601);
	if (system("gnuplot --version >/dev/null 2>&1") != 0) { /* NOLINT(cert-env33-c) */
		print_message("gnuplot is not installed: no pictures\n");
		return;
	}
	expect("r.db --plot r.svg", 0);
	assert_int_equal(lines(), 0);
	assert_int_equal(stat("r.svg", &info), 0);
	assert_true(info.st_size > 10000);
	expect_out("r.db --plot r.png --summary", "540 measured");
	assert_int_equal(stat("r.png", &info), 0);
	expect_error("r.db --plot r.jpg", 2, "--plot");
}

static void thresholds(void **state)
{
	(void)state;
	expect("r.db --summary --max-loss 1%", 0);
	expect_error("r.db --summary --from london --max-loss 0.1%", 3,
	             "london-paris/voice london>paris: loss of 0.2688 % is above --max-loss 0.1 %");
	expect("r.db --summary --max-delay-p99 10ms", 0);
	expect_error(
		"r.db --summary --from london --max-delay-p99 1ms", 3,
		"p99 delay of 1 of 540 intervals is above --max-delay-p99 1 ms, worst 9 ms at 2023-11-14 22:20:00");
	/* Unknown is not good. */
	expect_error("r.db --from london --status unknown --limit 9 --max-loss 1%", 3, "no packet to compare with");
}

static void errors(void **state)
{
	(void)state;
	expect_error("none.db", 1, "none.db: no such store");
	expect_error("out", 1, "out: ");
	expect_error("r.db --segment london-paros", 1, "did you mean 'london-paris'?");
	expect_error("r.db --since -1h", 1,
	             "no results match; there are results from 2023-11-14 22:13:20 to 2023-11-14 22:23:19 UTC");
	expect_error("r.db --since -1h --summary", 1, "no results match");
	expect_error("r.db --since -1h --csv none.csv", 1, "no results match");
	assert_int_not_equal(access("none.csv", F_OK), 0);
	expect_error("r.db --since -1h --plot none.svg", 1, "no results match");
	expect_error("r.db --since now --until -1h", 2, "--since now is not before --until -1h");
	expect_error("r.db --since tomorrow", 2, "--since: 'tomorrow' is not a time");
	expect_error("r.db --worst 3 by delay", 2, "by: 'delay'");
	expect_error("r.db --worst 3 by hour", 2, "'by' without --summary");
	expect_error("r.db --summary by", 2, "'by' needs");
	expect_error("r.db --worst 3 --summary", 2, "exclude each other");
	expect_error("r.db other.db", 2, "unexpected 'other.db'");
	expect_error("", 2, "a store");
	expect_error("r.db --csv r.db", 2, "would overwrite the store");
	expect_error("r.db --status bad", 2, "measured");
	expect_error("r.db --summary --limit 3", 2, "--limit is for lists");
	expect_out("--help", "usage: oneway results STORE");
}

int main(void)
{
	if (!mkdtemp(folder) || chdir(folder) != 0)
		return 1;
	setenv("TZ", "UTC", 1);
	fill();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists), cmocka_unit_test(json_lines), cmocka_unit_test(sums),
		cmocka_unit_test(files), cmocka_unit_test(thresholds), cmocka_unit_test(errors),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	static const char *const names[] = {"out", "err", "r.db", "r.db-wal", "r.db-shm", "r.csv", "r.svg", "r.png"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(names[i]);
	rmdir(folder);
	return failed;
}
