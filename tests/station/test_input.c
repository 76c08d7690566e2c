/* SPDX-License-Identifier: Apache-2.0 */
/* Results as the station takes them: lines and stores, once and as they come. */
#include "station/input.h"
#include "base/time.h"
#include "store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define START (INT64_C(1794736800) * OW_NS_PER_S)

struct folder {
	char name[64], lines[96], store[96];
};

static int make_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	snprintf(folder->name, sizeof(folder->name), "/tmp/oneway-input-XXXXXX");
	if (!mkdtemp(folder->name))
		return -1;
	snprintf(folder->lines, sizeof(folder->lines), "%s/lines.jsonl", folder->name);
	snprintf(folder->store, sizeof(folder->store), "%s/store.db", folder->name);
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *folder = *state;
	char path[120];
	unlink(folder->lines);
	unlink(folder->store);
	snprintf(path, sizeof(path), "%s-wal", folder->store);
	unlink(path);
	snprintf(path, sizeof(path), "%s-shm", folder->store);
	unlink(path);
	int r = rmdir(folder->name);
	free(folder);
	return r;
}

static void append(const char *path, const char *text)
{
	FILE *file = fopen(path, "ae");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static const char *line(int interval, bool final)
{
	static char text[300];
	snprintf(text, sizeof(text),
	         "{\"segment\": \"F>C\", \"class\": \"all\", \"from\": \"F\", \"to\": \"C\", \"start_ns\": %lld, "
	         "\"length_ns\": 1000000000, \"final\": %s, \"status\": \"measured\", \"sent\": %d}\n",
	         (long long)(START + interval * OW_NS_PER_S), final ? "true" : "false", interval);
	return text;
}

struct seen {
	int count;
	int64_t last_ns;
	int stop_at; /* 0 = never */
};

static int on_result(void *arg, const struct ow_interval_result *result)
{
	struct seen *seen = arg;
	assert_string_equal(result->segment, "F>C");
	assert_true(result->final);
	seen->last_ns = result->start_ns;
	return ++seen->count == seen->stop_at ? -ECANCELED : 0;
}

static struct ow_station_input *open_one(const char *path, bool follow, int64_t since_ns)
{
	char *paths[] = {(char *)path};
	struct ow_station_input *input;
	struct ow_error err = {""};
	if (ow_station_input_open(paths, 1, follow, since_ns, NULL, &input, &err) < 0)
		fail_msg("%s", err.text);
	return input;
}

static void lines_once(void **state)
{
	struct folder *folder = *state;
	struct seen seen = {0};
	struct ow_error err;
	bool ended = false;
	append(folder->lines, "{\"a\": \"line that is no result\"}\n\n");
	for (int i = 0; i < 10; i++) {
		append(folder->lines, line(i, false));
		append(folder->lines, line(i, true));
	}
	struct ow_station_input *input = open_one(folder->lines, false, START + 3 * OW_NS_PER_S);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_true(ended);
	assert_int_equal(seen.count, 7);
	ow_station_input_close(input);
	/* A sink can end it. */
	seen = (struct seen){.stop_at = 2};
	input = open_one(folder->lines, false, 0);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), -ECANCELED);
	assert_int_equal(seen.count, 2);
	ow_station_input_close(input);
}

/* A line counts when all of it has come; nothing is read twice. */
static void lines_as_they_come(void **state)
{
	struct folder *folder = *state;
	struct seen seen = {0};
	struct ow_error err;
	bool ended = false;
	char half[300];
	append(folder->lines, line(0, true));
	struct ow_station_input *input = open_one(folder->lines, true, 0);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 1);
	snprintf(half, sizeof(half), "%s", line(1, true));
	char rest[300];
	snprintf(rest, sizeof(rest), "%s", half + 40);
	half[40] = 0;
	append(folder->lines, half);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 1);
	append(folder->lines, rest);
	append(folder->lines, line(2, true));
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 3);
	assert_false(ended);
	ow_station_input_close(input);
}

static void wrong_lines(void **state)
{
	struct folder *folder = *state;
	struct seen seen = {0};
	struct ow_error err = {""};
	bool ended;
	append(folder->lines, line(0, true));
	append(folder->lines, "no JSON\n");
	struct ow_station_input *input = open_one(folder->lines, false, 0);
	assert_true(ow_station_input_poll(input, on_result, &seen, &ended, &err) < 0);
	assert_non_null(strstr(err.text, "lines.jsonl:2: not JSON"));
	assert_int_equal(seen.count, 1);
	ow_station_input_close(input);
	/* Without an end. */
	assert_int_equal(truncate(folder->lines, 0), 0);
	FILE *file = fopen(folder->lines, "we");
	assert_non_null(file);
	for (int i = 0; i < 1 << 20; i++)
		putc('x', file);
	fclose(file);
	input = open_one(folder->lines, false, 0);
	assert_true(ow_station_input_poll(input, on_result, &seen, &ended, &err) < 0);
	ow_station_input_close(input);
	char *paths[] = {(char *)"/nonexistent"};
	assert_int_equal(ow_station_input_open(paths, 1, false, 0, NULL, &input, &err), -ENOENT);
}

static void store_results(const char *path, const char *to, int from, int until)
{
	struct ow_store *store;
	struct ow_error err = {""};
	if (ow_store_open(path, &store, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = from; i < until; i++) {
		struct ow_interval_result result = {.segment = "F>C",
		                                    .class_name = "all",
		                                    .from = "F",
		                                    .to = "?",
		                                    .interval = i,
		                                    .start_ns = START + i * OW_NS_PER_S,
		                                    .length_ns = OW_NS_PER_S,
		                                    .status = OW_RESULT_MEASURED,
		                                    .final = true,
		                                    .coverage = 1};
		result.mean_ns = result.stddev_ns = result.loss_ratio = ow_value_exact(0);
		result.min_ns = result.max_ns = ow_value_exact(0);
		for (int q = 0; q < OW_QUANTILES; q++)
			result.quantile_ns[q] = ow_value_exact(0);
		snprintf(result.to, sizeof result.to, "%s", to);
		if (ow_store_add(store, &result, &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_int_equal(ow_store_commit(store, &err), 0);
	ow_store_close(store);
}

/* A store is asked again from a minute before its last result: the sink sees some twice, and misses none. */
static void store_as_it_grows(void **state)
{
	struct folder *folder = *state;
	struct seen seen = {0};
	struct ow_error err;
	bool ended;
	store_results(folder->store, "C", 1, 101);
	struct ow_station_input *input = open_one(folder->store, true, START + 11 * OW_NS_PER_S);
	/* The past is read in slices of ten minutes. */
	assert_false(ow_station_input_is_current(input));
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 90);
	while (!ow_station_input_is_current(input))
		assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_false(ended);
	/* One of a clock that is years ahead does not end it. */
	store_results(folder->store, "X", 100000000, 100000001);
	store_results(folder->store, "C", 101, 111);
	seen.count = 0;
	/* It is not asked more often than twice a second. */
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 0);
	nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_true(seen.count >= 10 && seen.count <= 72);
	nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
	store_results(folder->store, "C", 111, 112);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_true(seen.count >= 12);
	ow_station_input_close(input);
	input = open_one(folder->store, false, 0);
	seen.count = 0;
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 112);
	assert_true(ended);
	ow_station_input_close(input);
}

/* A segment that begins after the store was opened is seen, too. */
static void store_that_was_empty(void **state)
{
	struct folder *folder = *state;
	struct seen seen = {0};
	struct ow_error err;
	bool ended;
	/* The point has made the file, but not written to it. */
	append(folder->store, "");
	struct ow_station_input *input = open_one(folder->store, true, START);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	store_results(folder->store, "C", 0, 0);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 0);
	store_results(folder->store, "C", 1, 11);
	nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
	assert_int_equal(ow_station_input_poll(input, on_result, &seen, &ended, &err), 0);
	assert_int_equal(seen.count, 10);
	ow_station_input_close(input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_once, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(lines_as_they_come, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(wrong_lines, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(store_as_it_grows, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(store_that_was_empty, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
