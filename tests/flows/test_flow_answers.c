/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for flows as text, JSON and CSV: unknown values, infinite bounds, legs, warnings. */
#include "flows/epoch.h"
#include "flows/flow_answers.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char text[1 << 16];

#define FLOWS 3
#define LEGS  3

struct fixture {
	struct ow_flow_answers answers;
	struct ow_flow_answer flow[FLOWS];
	struct ow_flow_estimate estimate[FLOWS * LEGS];
	const struct ow_flow_answer *row[FLOWS];
	struct ow_flow_rows rows;
};

static struct ow_value about(double value, double low, double high)
{
	return (struct ow_value){OW_VALUE_ESTIMATED, value, low, high, OW_NO_REASON};
}

/* Three points; flow 0 has no mean, flow 1 is slow, flow 2 fast with an interval that has no end. */
static void fill(struct fixture *f)
{
	static const char *const paths[] = {"a.epochs", "b \"x\",y.epochs", "c\033[2J.epochs"};
	*f = (struct fixture){
		.answers = {.select = {.by = OW_FLOW_BY_CLASS, .classes = 3, .class_name = {"voice", "we\"b", "a,b"}},
	                    .points = 3,
	                    .legs = LEGS,
	                    .leg = {{0, 1, 100, 90}, {1, 2, 100, 100}, {0, 2, 100, 40}},
	                    .flows = FLOWS,
	                    .estimated = 2,
	                    .never_arrived = 1}};
	for (unsigned i = 0; i < 3; i++)
		f->answers.point[i] = (struct ow_flow_point){.path = paths[i],
		                                             .epochs = 2,
		                                             .end_ns = 2000000000,
		                                             .packets = 1000,
		                                             .counted = true,
		                                             .flows = FLOWS,
		                                             .counter_bits = 0.32,
		                                             .count_bits = NAN};
	for (unsigned i = 0; i < FLOWS; i++) {
		f->flow[i] = (struct ow_flow_answer){.packets = 100 * (i + 1),
		                                     .sent = i ? 100 * (i + 1) : UINT64_MAX,
		                                     .estimate = &f->estimate[i * LEGS]};
		ow_flow_select_class_key(i, &f->flow[i].key);
		for (unsigned leg = 0; leg < LEGS; leg++)
			f->estimate[i * LEGS + leg] =
				(struct ow_flow_estimate){.mean_ns = i == 0 ? ow_value_none(OW_REASON_FLOW_FEW_PACKETS)
			                                             : i == 1 ? about(2e6, 1.9e6, 2.2e6)
			                                                      : about(1e3, 900, INFINITY),
			                                  .stddev_ns = ow_value_none(OW_REASON_FLOW_ONE_COUNTER),
			                                  .estimator = OW_FLOWS_BANKS};
	}
	f->answers.flow = f->flow;
	ow_flow_answers_sort(&f->answers);
	for (unsigned i = 0; i < FLOWS; i++)
		f->row[i] = &f->flow[i];
	f->rows = (struct ow_flow_rows){.row = f->row, .rows = FLOWS, .eligible = FLOWS};
}

static void render(const struct fixture *f,
                   void (*put)(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows))
{
	FILE *out = fmemopen(text, sizeof text, "w");
	put(out, &f->answers, &f->rows);
	fclose(out);
}

static void put_text(FILE *out, const struct ow_flow_answers *answers, const struct ow_flow_rows *rows)
{
	ow_report_flow_answers_text(out, answers, rows, 80, false);
}

static void has(const char *words)
{
	if (!strstr(text, words))
		fail_msg("no '%s' in\n%s", words, text);
}

static void slowest_first(void **state)
{
	(void)state;
	struct fixture f;
	fill(&f);
	assert_int_equal(f.flow[0].key.ethertype, 1);
	assert_int_equal(f.flow[1].key.ethertype, 2);
	assert_int_equal(f.flow[2].key.ethertype, 0); /* without a mean: last */
}

static void as_text(void **state)
{
	(void)state;
	struct fixture f;
	fill(&f);
	render(&f, put_text);
	assert_null(strchr(text, '\033'));
	has("2, 2 of them with an estimate");
	has("1 more was never received");
	has("A to B: 100 used, 90 clean (90.0 %), 10 unclean");
	has("  voice\n");
	has(" A-B\n");
	has(" A-C\n");
	has("unknown"); /* the interval without an end */
	has("mean     of 1 flow: fewer than two packets\n");
	has("stddev   of 3 flows: one counter a flow\n");
	has("warning: only 40.0 % of the counters");
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		assert_true(length <= 80);
		line += length + (line[length] == '\n');
	}
	f.rows = (struct ow_flow_rows){.row = f.row, .rows = 1, .one = true};
	render(&f, put_text);
	has("mean       2 ms, 95 % interval 1.900 ms to 2.200 ms, by banks+cg\n");
	has("stddev     cannot be estimated: one counter a flow\n");
}

static void as_json(void **state)
{
	(void)state;
	struct fixture f;
	json_error_t error;
	fill(&f);
	render(&f, ow_report_flow_answers_json);
	json_t *root = json_loads(text, 0, &error);
	if (!root)
		fail_msg("%s, line %d:\n%s", error.text, error.line, text);
	json_t *flows = json_object_get(root, "flows"), *first = json_array_get(flows, 0),
	       *last = json_array_get(flows, 2);
	assert_int_equal(json_array_size(flows), FLOWS);
	assert_string_equal(json_string_value(json_object_get(json_object_get(first, "flow"), "class")), "we\"b");
	assert_true(json_number_value(json_object_get(first, "mean_ns")) == 2e6);
	assert_int_equal(json_array_size(json_object_get(first, "legs")), LEGS - 1);
	json_t *open = json_object_get(json_object_get(json_array_get(flows, 1), "ci95"), "mean");
	assert_true(json_number_value(json_array_get(open, 0)) == 900);
	assert_true(json_is_null(json_array_get(open, 1)));
	assert_true(json_is_null(json_object_get(last, "mean_ns")) && json_is_null(json_object_get(last, "sent")));
	assert_string_equal(json_string_value(json_object_get(json_object_get(last, "not_estimated"), "mean")),
	                    "fewer than two packets");
	assert_int_equal(json_array_size(json_object_get(root, "warnings")), 1);
	json_decref(root);
}

static void as_csv(void **state)
{
	(void)state;
	struct fixture f;
	fill(&f);
	render(&f, ow_report_flow_answers_csv);
	unsigned lines = 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 1 + FLOWS * LEGS);
	has("\n\"we\"\"b\",,,,,a.epochs,\"b \"\"x\"\",y.epochs\",200,200,2000000,1900000,2200000,,,,banks+cg,one "
	    "counter a flow,\n");
	has(",1000,900,,,,,banks+cg,one counter a flow,\n");
	has(",100,,,,,,,,banks+cg,fewer than two packets,\n");
}

static void warnings(void **state)
{
	(void)state;
	struct fixture f;
	char line[OW_FLOW_WARNING];
	fill(&f);
	f.answers.leg[2].clean = 90;
	assert_false(ow_flow_answers_warning(&f.answers, 0, line));
	f.answers.point[1].damage = "b.epochs is cut";
	f.answers.point[2].uncounted = 5;
	assert_true(ow_flow_answers_warning(&f.answers, 0, line));
	assert_string_equal(line, "b.epochs is cut");
	assert_true(ow_flow_answers_warning(&f.answers, 1, line));
	assert_non_null(strstr(line, "5 packets"));
	assert_false(ow_flow_answers_warning(&f.answers, 2, line));
	f.answers.point[1].flaws = OW_EPOCH_FLAWS;
	assert_true(ow_flow_answers_warning(&f.answers, 1, line));
	assert_non_null(strstr(line, "did not record all packets"));
	assert_true(ow_flow_answers_warning(&f.answers, 2, line));
	assert_non_null(strstr(line, "was set in this time"));
	f.answers.point[1].flaws = 0;
	f.answers.backwards = 3;
	assert_true(ow_flow_answers_warning(&f.answers, 2, line));
	assert_non_null(strstr(line, "3 flows were at c"));
	f.answers.backwards = 0;
	f.answers.counts = "nf.csv";
	f.answers.counted_packets = 990;
	assert_true(ow_flow_answers_warning(&f.answers, 1, line));
	assert_non_null(strstr(line, "nf.csv counts 990 packets"));
	f.answers.counted_packets = 1000;
	assert_false(ow_flow_answers_warning(&f.answers, 1, line));
}

/* A machine that reads the worst flows of an interval gets the warnings; the table has those that concern means. */
static void warnings_of_the_worst(void **state)
{
	(void)state;
	struct fixture f;
	fill(&f);
	f.answers.leg[2].lost = f.answers.leg[2].in_flight = 100;
	FILE *out = fmemopen(text, sizeof text, "w");
	ow_report_flow_worst_json(out, 0, 1000000000, &f.answers, &f.rows);
	fclose(out);
	json_t *root = json_loads(text, 0, NULL),
	       *said = json_object_get(json_object_get(root, "worst_flows"), "warnings");
	assert_int_equal(json_array_size(said), 2);
	assert_non_null(strstr(json_string_value(json_array_get(said, 0)), "only 40.0 % of the counters"));
	assert_non_null(strstr(json_string_value(json_array_get(said, 1)), "but in flight"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	json_decref(root);
	out = fmemopen(text, sizeof text, "w");
	ow_report_flow_worst(out, 0, &f.answers, &f.rows, 80, false);
	fclose(out);
	has("warning: only 40.0 % of the counters");
	assert_null(strstr(text, "flight"));
}

/* Of many 95 % intervals some are below 0 by chance; one that is far below is not, nor are too many, nor an exact mean. */
static void backwards(void **state)
{
	(void)state;
	enum { MANY = 12000 };
	struct ow_flow_answers a = {.legs = 1, .flows = MANY, .estimated = MANY};
	struct ow_flow_answer *flow = calloc(MANY, sizeof *flow);
	struct ow_flow_estimate *estimate = calloc(MANY, sizeof *estimate);
	assert_non_null(flow);
	assert_non_null(estimate);
	a.flow = flow;
	for (unsigned i = 0; i < MANY; i++) {
		estimate[i] = (struct ow_flow_estimate){.mean_ns = about(50, 10, 90), .estimator = OW_FLOWS_BANKS};
		flow[i].estimate = &estimate[i];
	}
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	/* 2.5 deviations: one of 12,000 or of 4 says nothing, one of 3 does. */
	estimate[0].mean_ns = about(-50, -90, -10);
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	a.flows = a.estimated = 4;
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	a.flows = a.estimated = 3;
	assert_int_equal(ow_flow_answers_backwards(&a), 1);
	a.flows = a.estimated = MANY;
	/* 4.6 deviations are what the largest of 12,000 has: P = 0.025 / 12,000. */
	estimate[0].mean_ns = about(-90, -130, -50);
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	estimate[0].mean_ns = about(-100, -140, -60);
	assert_int_equal(ow_flow_answers_backwards(&a), 1);
	estimate[0].mean_ns = ow_value_exact(-1);
	assert_int_equal(ow_flow_answers_backwards(&a), 1);
	estimate[0].estimator = OW_FLOWS_COLATE;
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	/* Chance gives 300 +- 17. */
	for (unsigned i = 1; i <= 300; i++)
		estimate[i].mean_ns = about(-50, -90, -10);
	assert_int_equal(ow_flow_answers_backwards(&a), 0);
	for (unsigned i = 301; i <= 340; i++)
		estimate[i].mean_ns = about(-50, -90, -10);
	assert_int_equal(ow_flow_answers_backwards(&a), 340);
	free(estimate);
	free(flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slowest_first), cmocka_unit_test(as_text),  cmocka_unit_test(as_json),
		cmocka_unit_test(as_csv),        cmocka_unit_test(warnings), cmocka_unit_test(warnings_of_the_worst),
		cmocka_unit_test(backwards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
