/* SPDX-License-Identifier: Apache-2.0 */
/* oneway results prints the same of a store and of its copy at a PostgreSQL server (tests/system/servers.py starts it). */
#include "../result/interval_sample.h"
#include "base/random.h"
#include "store/store.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "shell.h"

static char folder[] = "/tmp/oneway-copied-XXXXXX";
static char url[200], name[200]; /* of the server, and as messages have it */

/* A result with random numbers of any kind. */
static struct ow_interval_result make_one(struct ow_random *random, int64_t interval, bool final)
{
	struct ow_interval_result r = ow_random_below(random, 10) ? sample_live(interval) : sample_unknown(interval);
	int64_t delay[40];
	if (!final && r.status == OW_RESULT_MEASURED)
		r = sample_provisional(interval);
	r.active = interval % 97 == 0;
	if (r.status != OW_RESULT_MEASURED)
		return r;
	double mean = 1e5 * ow_random_unit(random);
	uint64_t lost = ow_random_below(random, 1000);
	r.sent = 100000;
	r.lost = r.pending ? 0 : lost;
	r.pending = r.pending ? lost : 0;
	r.matched = r.sent - r.late - lost;
	r.received = r.matched + r.late_received + r.extra;
	r.mean_ns = sample_value(OW_VALUE_ESTIMATED, mean, mean / 100);
	r.quantile_ns[OW_Q99].value = mean * 3;
	r.loss_ratio = sample_value(OW_VALUE_EXACT, (double)r.lost / 1e5, 0);
	r.reordered = ow_random_below(random, 2) ? OW_RESULT_NOT_COUNTED : 12;
	if (ow_random_below(random, 5) == 0) {
		r.status = OW_RESULT_PARTIAL;
		snprintf(r.cause, sizeof r.cause, "ring of \"paris\", lost %d frames",
		         (int)ow_random_below(random, 50));
	}
	for (int i = 0; i < 40; i++)
		delay[i] = 1000 * i + (int64_t)ow_random_below(random, 900);
	if (r.final)
		ow_delay_histogram_sample(delay, 40, r.matched, &r.delays);
	return r;
}

/* Half an hour of four lanes with a hole, an event now and then, the last intervals provisional. */
static int make_store(void)
{
	static const char *const classes[] = {"voice", "a \"quoted\", class"};
	struct ow_random random;
	struct ow_store *store = NULL;
	ow_random_seed(&random, 5);
	if (ow_store_open("r.db", &store, NULL) < 0)
		return -1;
	for (int64_t i = 0; i < 1800; i++) {
		for (int lane = 0; lane < 4; lane++) {
			struct ow_interval_result r = make_one(&random, i, i < 1790);
			bool back = lane % 2;
			snprintf(r.class_name, sizeof r.class_name, "%s", classes[lane / 2]);
			snprintf(r.from, sizeof r.from, "%s", back ? "paris" : "london");
			snprintf(r.to, sizeof r.to, "%s", back ? "london" : "paris");
			if ((i < 700 || i >= 800) && ow_store_add(store, &r, NULL) < 0)
				return -1;
			struct ow_flow_event event = {
				.segment = "london-paris",
				.from = "london",
				.to = "paris",
				.start_ns = r.start_ns,
				.scope = {.kind = OW_SCOPE_REROUTED, .interval = i, .flows = 3, .ttl_change = -2}};
			snprintf(event.class_name, sizeof event.class_name, "%s", classes[0]);
			if (lane == 0 && i % 300 == 10 && ow_store_add_event(store, &event, NULL) < 0)
				return -1;
		}
	}
	ow_store_close(store);
	return 0;
}

/* Runs "oneway results WHERE OPTIONS". */
static int results(const char *where, const char *options)
{
	char line[1500];
	snprintf(line, sizeof line, "\"$ONEWAY\" results '%s' %s", where, options);
	return run(line);
}

static void replace_name(char *text, const char *from, const char *to)
{
	char *at = strstr(text, from);
	if (!at)
		return;
	memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
	memcpy(at, to, strlen(to));
}

static void same(const char *options)
{
	static char first[sizeof out], first_err[sizeof err];
	int code = results("r.db", options);
	memcpy(first, out, sizeof out);
	memcpy(first_err, err, sizeof err);
	int other = results(url, options);
	replace_name(err, name, "r.db");
	if (other != code)
		fail_msg("%s: exit codes %d and %d: %s", options, code, other, err);
	if (strcmp(out, first) != 0) {
		size_t at = 0;
		while (out[at] == first[at])
			at++;
		fail_msg("%s: differs at byte %zu:\n%.300s\n--- server ---\n%.300s", options, at,
		         first + (at > 60 ? at - 60 : 0), out + (at > 60 ? at - 60 : 0));
	}
	assert_string_equal(err, first_err);
}

static const char *const selections[] = {
	"",
	"--segment london-paris --class voice",
	"--from london",
	"--to london --final",
	"--since '2023-11-14 22:20' --until '2023-11-14 22:26:10'",
	"--status partial --status unknown",
	"--since '2023-11-14 22:20' --class voice --from paris --status measured",
};

static void every_option(void **state)
{
	(void)state;
	static const char *const options[] = {
		"",
		"--limit 7",
		"--json --limit 300",
		"--csv -",
		"--csv - --limit 20",
		"--worst 20",
		"--worst 9 by p99",
		"--worst 9 by mean --json",
		"--summary",
		"--summary by hour",
		"--summary by day",
		"--summary by segment",
		"--summary --json",
		"--max-loss 0.1% --max-delay-p99 1ms --summary",
	};
	for (size_t i = 0; i < sizeof selections / sizeof *selections; i++) {
		for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
			char line[400];
			snprintf(line, sizeof line, "--period interval %s %s", selections[i], options[k]);
			same(line);
		}
	}
	for (int i = 0; i < 3; i++) {
		static const char *const periods[] = {"minute", "hour", "day"};
		static const char *const shown[] = {"--json", "--csv -", "--summary"};
		for (int k = 0; k < 3; k++) {
			char line[100];
			snprintf(line, sizeof line, "--period %s %s", periods[i], shown[k]);
			same(line);
		}
	}
	same("--events");
	same("--events --json --since '2023-11-14 22:20'");
	same("--events --limit 2");
}

static void errors(void **state)
{
	(void)state;
	same("--period interval --segment london-pari");
	same("--period interval --class nothing");
	same("--period interval --since '2024-01-01'");
	assert_int_equal(results("postgresql://user:secret@127.0.0.1:1/x", ""), 1);
	assert_null(strstr(err, "secret"));
	assert_int_equal(results("postgresql://user:secret@127.0.0.1:x/y", ""), 1);
	assert_null(strstr(err, "secret"));
	assert_int_equal(results(getenv("ONEWAY_POSTGRES"), ""), 1);
	assert_non_null(strstr(err, "empty, not a store of oneway"));
	assert_int_equal(results("r.db", "--copy-to other.db"), 2);
	assert_int_equal(results("r.db", "--json --copy-to postgresql://127.0.0.1/x"), 2);
}

static void copied_again(void **state)
{
	(void)state;
	char option[300];
	snprintf(option, sizeof option, "--copy-to '%s'", url);
	assert_int_equal(results("r.db", option), 0);
	assert_non_null(strstr(out, "copied 0 results, minutes, hours and days, and 0 events"));
}

/* The queries of docs/store.md work at a server, too, except for the one that deletes. */
static void queries(void **state)
{
	(void)state;
	char line[1000];
	snprintf(line, sizeof line,
	         "awk '/^```sql/ {on = 1; next} /^```/ {on = 0} on' '%s' | grep -v unixepoch >queries.sql &&"
	         " grep -q SELECT queries.sql && psql -X -q -v ON_ERROR_STOP=1 -f queries.sql '%s'",
	         getenv("STORE_PAGE"), url);
	if (run(line) != 0)
		fail_msg("%s", err);
}

static int copy_store(void)
{
	const char *server = getenv("ONEWAY_POSTGRES");
	char line[600];
	snprintf(url, sizeof url, "%.*s/copied", (int)(strrchr(server, '/') - server), server);
	snprintf(name, sizeof name, "postgresql://%s", strchr(url, '@') + 1);
	snprintf(line, sizeof line,
	         "psql -X -q -c 'CREATE DATABASE copied' '%s' && \"$ONEWAY\" results r.db --copy-to '%s'", server, url);
	if (run(line) != 0) {
		fprintf(stderr, "%s", err);
		return -1;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_option),
		cmocka_unit_test(errors),
		cmocka_unit_test(copied_again),
		cmocka_unit_test(queries),
	};
	if (!getenv("ONEWAY_POSTGRES")) {
		puts("no server: run it by tests/system/servers.py postgres");
		return 77;
	}
	setenv("TZ", "UTC", 1);
	if (!mkdtemp(folder) || chdir(folder) != 0 || make_store() < 0 || copy_store() < 0)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char line[100];
	snprintf(line, sizeof line, "rm -rf %s", folder);
	return chdir("/") == 0 && system(line) == 0 ? failed : 1; /* NOLINT(cert-env33-c) */
}
