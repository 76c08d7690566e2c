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
#include <time.h>
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
			r.unreadable = 1625;
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
	assert_non_null(strstr(out, "21,600 late: arrived in a later interval\n"
	                            "18,900 received late: sent in an earlier interval\n"));
	assert_non_null(strstr(out, "1,625 frames could not be identified\n"));
	assert_non_null(strstr(out, "worst p99 of intervals: 9 ms at 11-14 22:20:00"));
	assert_non_null(strstr(out, "120 unknown: paris does not answer, 11-14 22:18:20 to 11-14 22:19:19"));
	assert_non_null(strstr(out, "no quantiles: of 53,848,380 packets of 53,848,380 only the mean is known"));
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

/* Methods that keep sums may give a mean without a standard deviation: then that of the sum is not known either. */
static void without_stddev(void **state)
{
	(void)state;
	struct ow_store *store;
	assert_int_equal(ow_store_open("s.db", &store, NULL), 0);
	for (int64_t i = 0; i < 3; i++) {
		struct ow_interval_result r = sample_live(i);
		if (i == 1)
			r.stddev_ns = sample_none(OW_REASON_FEW_DELAYS);
		assert_int_equal(ow_store_add(store, &r, NULL), 0);
	}
	ow_store_close(store);
	expect_out("s.db --summary", "one-way delay mean/stddev = 50.12 us / - of 299,184 packets\n"
	                             "no stddev: not all intervals have one\n");
	expect_out("s.db --summary --json", "\"stddev\": null");
}

/* The round trip of probes is not added to the ways there and back. */
static void round_trips(void **state)
{
	(void)state;
	struct ow_store *store;
	assert_int_equal(ow_store_open("t.db", &store, NULL), 0);
	for (int64_t i = 0; i < 9; i++) {
		struct ow_interval_result r = sample_live(i / 3);
		r.active = true;
		if (i % 3 == 1) {
			memcpy(r.from, "paris", 6);
			memcpy(r.to, "london", 7);
		} else if (i % 3 == 2) {
			memcpy(r.to, "london", 7);
			memcpy(r.class_name, "round-trip", 11);
		}
		assert_int_equal(ow_store_add(store, &r, NULL), 0);
	}
	ow_store_close(store);
	expect_out("t.db --summary by segment", "6 intervals from");
	assert_non_null(strstr(out, "\n600,000 sent, "));
	assert_non_null(strstr(out, "\none-way delay mean/stddev = "));
	expect_out("t.db --summary by segment --class round-trip", "\n300,000 sent, ");
	assert_non_null(strstr(out, "\nround-trip delay mean/stddev = "));
	expect_out("t.db --summary", "\nround-trip delay mean/stddev = ");
}

/* -- a year ------------------------------------------------------------------------------------------------------- */

#define DAYS    400
#define HOUR_NS (INT64_C(3600) * 1000000000)
#define DAY_NS  (24 * HOUR_NS)
/* Delays of an hour. */
#define DELAYS 40

static int64_t year_delay[DAYS * 24 * DELAYS];

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Hours, the last of which has begun now; of 40 packets each, some hours are slow. Old ones are deleted. */
static int64_t fill_year(void)
{
	struct ow_store *store;
	int64_t now = time(NULL) * INT64_C(1000000000) / HOUR_NS * HOUR_NS;
	assert_int_equal(ow_store_open("y.db", &store, NULL), 0);
	for (int64_t i = 0; i < DAYS * 24; i++) {
		struct ow_interval_result r = sample_live(i);
		int64_t *delay = year_delay + i * DELAYS;
		r.start_ns = now - (DAYS * 24 - i - 1) * HOUR_NS;
		r.length_ns = HOUR_NS;
		r.sent = r.received = r.matched = r.samples = DELAYS;
		r.lost = r.late = r.late_received = r.extra = r.duplicated = r.ambiguous = 0;
		for (int64_t k = 0; k < DELAYS; k++)
			delay[k] = 1000000 + k * 10000 + (i % 50 == 0 ? 20000000 + i * 1000 : i * 10);
		qsort(delay, DELAYS, sizeof *delay, by_value);
		ow_delay_histogram_sample(delay, DELAYS, DELAYS, &r.delays);
		assert_int_equal(ow_store_add(store, &r, NULL), 0);
	}
	struct ow_store_limits limits = {.retention_ns = {7 * DAY_NS, 90 * DAY_NS, 300 * DAY_NS}};
	while (ow_store_trim(store, &limits, now, NULL) > 0)
		continue;
	ow_store_close(store);
	return now;
}

/* The p99 of all packets of these hours, except for the newest ones, is within the interval that is printed, and that is narrow. */
static void check_p99(const char *arguments, const char *level, int64_t hours, int64_t newer)
{
	size_t count = (size_t)hours * DELAYS;
	int64_t *all = malloc(count * sizeof *all);
	expect(arguments, 0);
	json_t *root = json_loads(out, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "period")), level);
	assert_int_equal(json_integer_value(json_object_get(root, "sent")), count);
	memcpy(all, year_delay + sizeof year_delay / sizeof *year_delay - count - (size_t)newer * DELAYS,
	       count * sizeof *all);
	qsort(all, count, sizeof *all, by_value);
	double truth = (double)all[(count * 99 + 99) / 100 - 1];
	const json_t *bounds = json_object_get(json_object_get(json_object_get(root, "ci95"), "quantiles"), "0.99");
	double low = json_number_value(json_array_get(bounds, 0)), high = json_number_value(json_array_get(bounds, 1));
	if (!(low <= truth && truth <= high && high - low < truth / 8))
		fail_msg("%s: p99 of %g is not in [%g, %g]", arguments, truth, low, high);
	json_decref(root);
	free(all);
}

/* The finest level that has all of the time, and what it says is true. */
static void levels(void **state)
{
	(void)state;
	char line[200];
	int64_t now = fill_year(), hour = now / 1000000000 - 3600 * 24 * DAYS + 3600, midnight;
	/* The newest hour is not added up yet. */
	snprintf(line, sizeof line, "y.db --summary --json --since %lld", (long long)(now / 1000000000 - 24 * 3600));
	check_p99(line, "interval", 25, 0);
	snprintf(line, sizeof line, "y.db --summary --json --since %lld --until %lld",
	         (long long)(now / 1000000000 - 48 * 24 * 3600), (long long)(now / 1000000000));
	expect(line, 0);
	assert_non_null(strstr(err, "by minutes"));
	assert_non_null(strstr(out, "\"intervals\": 1152, \"measured\": 1152"));
	/* Whole days, the oldest of which no other level has. */
	midnight = (hour + 86399) / 86400 * 86400;
	snprintf(line, sizeof line, "y.db --summary --json --since %lld", (long long)midnight);
	expect(line, 0);
	assert_non_null(strstr(err, "by days"));
	snprintf(line, sizeof line, "y.db --summary --json --period day --since %lld", (long long)midnight);
	check_p99(line, "day", (now / 1000000000 - midnight) / 3600, 1);
	assert_string_equal(err, "");
	/* Of a list as well; and the newest ones are always results. */
	expect("y.db --since -200d --until -199d", 0);
	assert_non_null(strstr(err, "by hours"));
	/* A line for each date: whole hours of 24 hours from now are of one day if now is in the last hour of a day. */
	assert_int_equal(lines(), 24 + 2 + (now % DAY_NS == DAY_NS - HOUR_NS ? 1 : 2));
	expect("y.db --limit 1 --json", 0);
	assert_null(strstr(out, "\"intervals\""));
	expect("y.db --period minute --worst 2 by p99 --json", 0);
	assert_int_equal(lines(), 2);
	expect("y.db --period hour --csv -", 0);
	assert_non_null(strstr(out, ",delay_histogram,"));
	/* Days and hours of UTC are no parts of those of other zones. */
	static const struct {
		const char *zone, *arguments, *note;
	} zones[] = {
		{"UTC", "--period hour --summary by day", ""},
		{"UTC", "--period day --summary by day", ""},
		{"UTC", "--period day --summary by hour", "days of UTC are not parts of local hours: "},
		{"Europe/London", "--period day --summary by day", "days of UTC are not parts of local days: "},
		{"EST5", "--period hour --summary by day", ""},
		{"EST5", "--period day --summary by day", "days of UTC are not parts of local days: "},
		{"EST5", "--period day --summary", ""},
		{"IST-5:30", "--period minute --summary by day", ""},
		{"IST-5:30", "--period hour --summary by day", "hours of UTC are not parts of local days: "},
	};
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
		snprintf(line, sizeof line, "y.db %s", zones[i].arguments);
		setenv("TZ", zones[i].zone, 1);
		expect(line, 0);
		if (strncmp(err, zones[i].note, strlen(zones[i].note)) != 0 || !*err != !*zones[i].note)
			fail_msg("%s %s: %s", zones[i].zone, line, err);
	}
	setenv("TZ", "UTC", 1);
	expect_error("y.db --period week", 2, "'week'");
	expect_error("y.db --period day --events", 2, "exclude each other");
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
		cmocka_unit_test(lists),          cmocka_unit_test(json_lines),  cmocka_unit_test(sums),
		cmocka_unit_test(without_stddev), cmocka_unit_test(round_trips), cmocka_unit_test(files),
		cmocka_unit_test(thresholds),     cmocka_unit_test(errors),      cmocka_unit_test(levels),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	static const char *const names[] = {"out",   "err",   "r.db", "r.db-wal", "r.db-shm", "r.csv",
	                                    "r.svg", "r.png", "y.db", "y.db-wal", "y.db-shm"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(names[i]);
	rmdir(folder);
	return failed;
}
