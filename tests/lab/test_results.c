/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of the points are compared with the truth of the wire: lines are read, rows come in order, each once, none is
 * lost.
 */
#include "lab/lab.h"

#include "base/random.h"
#include "result/interval_result.h"
#include "result/result_json.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SEED      3
#define LENGTH_NS INT64_C(1000000000)
#define FIRST     INT64_C(1700000000)

/* A result as a point writes it, by the code that a point uses. */
static char *line_of(const struct ow_interval_result *result, bool total)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	(total ? ow_result_json_summary : ow_result_json)(out, result);
	assert_int_equal(fclose(out), 0);
	return text;
}

static struct ow_interval_result result_of(int64_t i, bool back, bool final)
{
	struct ow_interval_result result = {.segment = "wire",
	                                    .class_name = "all",
	                                    .interval = i,
	                                    .start_ns = (FIRST + i) * LENGTH_NS,
	                                    .length_ns = LENGTH_NS,
	                                    .final = final,
	                                    .sent = 1000,
	                                    .matched = 980,
	                                    .late = final ? 8 : 0,
	                                    .lost = final ? 12 : 0,
	                                    .pending = final ? 0 : 20,
	                                    .late_received = 5,
	                                    .extra = 3,
	                                    .duplicated = 2,
	                                    .received = 988,
	                                    .bytes = 500000,
	                                    .samples = 988,
	                                    .coverage = 1};
	snprintf(result.from, sizeof result.from, back ? "b" : "a");
	snprintf(result.to, sizeof result.to, back ? "a" : "b");
	snprintf(result.synopsis, sizeof result.synopsis, "fold 4 x 64");
	result.mean_ns = result.stddev_ns =
		(struct ow_value){.status = OW_VALUE_EXACT, .value = 2e6, .low = 2e6, .high = 2e6};
	result.cost.bytes = 700;
	result.cost.ready_ns = final ? 1030000000 : 20000000 + i;
	return result;
}

static void reads_lines(void **state)
{
	(void)state;
	struct ow_interval_result result = result_of(7, true, true);
	struct ow_lab_measured measured;
	struct ow_error err;
	for (int total = 0; total < 2; total++) {
		char *line = line_of(&result, total);
		assert_int_equal(ow_lab_parse(line, &measured, &err), total ? OW_LAB_TOTAL : OW_LAB_RESULT);
		assert_int_equal(measured.direction, OW_B_TO_A);
		assert_int_equal(measured.start_ns, (FIRST + 7) * LENGTH_NS);
		assert_true(measured.final);
		assert_int_equal(measured.result.sent, 1000);
		assert_int_equal(measured.result.lost, 12);
		assert_int_equal(measured.result.matched, 988);
		assert_int_equal(measured.result.sent, measured.result.matched + measured.result.lost);
		assert_int_equal(measured.result.received, measured.result.matched + measured.result.extra);
		assert_true(measured.has_delay);
		assert_true(measured.result.delay.mean_ns == 2e6);
		assert_int_equal(measured.cost.bytes, 700);
		assert_non_null(strstr(measured.text, "fold 4 x 64"));
		free(measured.text);
		free(line);
	}
	assert_int_equal(ow_lab_parse("{\"tool\": \"oneway\"}", &measured, &err), OW_LAB_OTHER);
	assert_int_equal(ow_lab_parse("[1, 2]", &measured, &err), OW_LAB_OTHER);
	assert_int_equal(ow_lab_parse("3.5 ms", &measured, &err), -EPROTO);
	/* Numbers of the wrong kind are no numbers; without its names and its time it is no result. */
	assert_int_equal(
		ow_lab_parse("{\"segment\": \"wire\", \"start_ns\": 1, \"length_ns\": 1, \"status\": \"sure\"}",
	                     &measured, &err),
		-EPROTO);
	assert_int_equal(ow_lab_parse("{\"segment\": \"wire\", \"class\": \"all\", \"from\": \"a\", \"to\": \"b\", "
	                              "\"start_ns\": 1, \"length_ns\": 1, \"status\": \"measured\", \"sent\": \"x\", "
	                              "\"delay_ns\": [], \"cost\": null}",
	                              &measured, &err),
	                 OW_LAB_RESULT);
	assert_int_equal(measured.result.sent, 0);
	assert_false(measured.has_delay);
	free(measured.text);
}

struct seen {
	unsigned rows, without_truth;
	int64_t last_ns[OW_DIRECTIONS];
};

static void on_row(void *arg, const struct ow_lab_row *row)
{
	struct seen *seen = arg;
	int64_t start_ns = row->measured->start_ns;
	assert_true(start_ns > seen->last_ns[row->direction]);
	seen->last_ns[row->direction] = start_ns;
	seen->rows++;
	seen->without_truth += !row->truth;
	if (row->truth) {
		assert_int_equal(row->truth->start_ns, start_ns);
		assert_int_equal(row->truth->result.sent, 1000 + row->direction);
		assert_true(row->measured->final);
		/* That of the provisional result, where there was one. */
		assert_true(row->first_ready_ns < 1e9);
	}
}

static void measure(struct ow_lab_results *results, int64_t i, int way, bool final)
{
	struct ow_interval_result result = result_of(i, way, final);
	struct ow_lab_measured measured;
	struct ow_error err;
	char *line = line_of(&result, false);
	assert_int_equal(ow_lab_parse(line, &measured, &err), OW_LAB_RESULT);
	assert_int_equal(ow_lab_results_measured(results, &measured), 0);
	free(line);
}

static void tell_truth(struct ow_lab_results *results, int64_t i, int way)
{
	struct ow_wiretruth_report truth = {.start_ns = (FIRST + i) * LENGTH_NS, .length_ns = LENGTH_NS};
	truth.result.sent = 1000 + (uint64_t)way;
	assert_int_equal(ow_lab_results_truth(results, (enum ow_direction)way, &truth), 0);
}

/* The wire reports before and after the points; results and truth come in any order between. */
static void pairs(void **state)
{
	(void)state;
	struct ow_random random;
	ow_random_seed(&random, SEED);
	for (int round = 0; round < 50; round++) {
		struct seen seen = {0};
		struct ow_lab_results *results;
		assert_int_equal(ow_lab_results_create(on_row, &seen, &results), 0);
		int64_t truth_at[2] = {-3, -3}, result_at[2] = {0, 0}, final_at[2] = {0, 0};
		while (truth_at[0] < 40 || truth_at[1] < 40 || final_at[0] < 37 || final_at[1] < 37) {
			int way = (int)ow_random_below(&random, 2);
			switch (ow_random_below(&random, 3)) {
			case 0:
				if (truth_at[way] < 40)
					tell_truth(results, truth_at[way]++, way);
				break;
			case 1:
				if (result_at[way] < 37)
					measure(results, result_at[way]++, way, false);
				break;
			default:
				if (final_at[way] < result_at[way])
					measure(results, final_at[way]++, way, true);
			}
		}
		assert_int_equal(seen.rows, 2 * 37);
		assert_int_equal(seen.without_truth, 0);
		/* A result that the wire says nothing about is told at the end. */
		measure(results, 40, 0, true);
		assert_int_equal(seen.rows, 2 * 37);
		ow_lab_results_finish(results);
		assert_int_equal(seen.rows, 2 * 37 + 1);
		assert_int_equal(seen.without_truth, 1);
		ow_lab_results_free(results);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_lines), cmocka_unit_test(pairs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
