/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a run: packets are conserved, late ones are in time for the run, and unknown intervals cost coverage. */
#include "result/run_total.h"

#include "result/cause.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S INT64_C(1000000000)

static struct ow_interval_result interval(int64_t number, enum ow_result_status status, uint64_t sent, uint64_t late,
                                          uint64_t lost, uint64_t extra)
{
	struct ow_interval_result r = {.segment = "a-b",
	                               .interval = number,
	                               .start_ns = number * S,
	                               .length_ns = S,
	                               .status = status,
	                               .total_sent = sent,
	                               .exact = true};
	if (status == OW_RESULT_UNKNOWN)
		return r;
	r.sent = sent;
	r.late = late;
	r.lost = lost;
	r.matched = sent - late - lost;
	r.extra = extra;
	r.late_received = late;
	r.received = r.matched + late + extra;
	r.coverage = sent ? 1 : NAN;
	return r;
}

/* Delays first, first + 1, ... of all packets that arrived. */
static void add(struct ow_run_total *total, const struct ow_interval_result *r, int64_t first_ns)
{
	struct ow_delays *known;
	assert_int_equal(ow_delays_create(&known), 0);
	for (uint64_t i = 0; i < r->matched + r->late; i++)
		ow_delays_add(known, first_ns + (int64_t)i, 1);
	ow_run_total_add(total, r, r, true, NULL, 0, known);
	ow_delays_free(known);
}

static struct ow_run_total *create(void)
{
	struct ow_run_total *total;
	assert_int_equal(ow_run_total_create(&total), 0);
	return total;
}

static void all_is_known(void **state)
{
	(void)state;
	struct ow_run_total *total = create();
	struct ow_interval_result a = interval(7, OW_RESULT_MEASURED, 100, 10, 5, 1),
				  b = interval(8, OW_RESULT_MEASURED, 50, 0, 0, 2), sum;
	add(total, &a, 1000);
	add(total, &b, 2000);
	ow_run_total_result(total, &sum);
	assert_int_equal(sum.start_ns, 7 * S);
	assert_int_equal(sum.length_ns, 2 * S);
	assert_int_equal(sum.interval, 2);
	assert_int_equal(sum.sent, 150);
	assert_int_equal(sum.matched, 145);
	assert_int_equal(sum.late, 0);
	assert_int_equal(sum.lost, 5);
	assert_int_equal(sum.received, 148);
	assert_int_equal(sum.extra, 3);
	assert_true(sum.status == OW_RESULT_MEASURED && sum.exact && !*sum.cause);
	assert_true(sum.coverage == 1);
	assert_true(sum.loss_ratio.status == OW_VALUE_EXACT && fabs(sum.loss_ratio.value - 5.0 / 150) < 1e-12);
	assert_true(sum.min_ns.status == OW_VALUE_EXACT && sum.min_ns.value == 1000 && sum.max_ns.value == 2049);
	/* 95 delays from 1000 on, and 50 from 2000 on. */
	assert_true(fabs(sum.mean_ns.value - (95 * 1047.0 + 50 * 2024.5) / 145) < 1e-6);
	ow_run_total_free(total);
}

/* What a point counted while it was away for a part of an interval is not what was sent; the other point is no reason. */
static void sender_was_away(void **state)
{
	static const struct {
		const char *cause;
		double coverage;
	} cases[] = {{"london was disconnected", 100.0 / 200},
	             {"london was down; paris was down", 100.0 / 200},
	             {"paris was disconnected", 100.0 / 110},
	             {"london2 was disconnected", 100.0 / 110}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ow_run_total *total = create();
		struct ow_interval_result good = interval(0, OW_RESULT_MEASURED, 100, 0, 2, 0),
					  away = interval(1, OW_RESULT_UNKNOWN, 10, 0, 0, 0), sum;
		snprintf(away.from, sizeof away.from, "london");
		snprintf(away.cause, sizeof away.cause, "%s", cases[i].cause);
		add(total, &good, 500);
		add(total, &away, 0);
		ow_run_total_result(total, &sum);
		assert_int_equal(sum.total_sent, 110);
		assert_true(fabs(sum.coverage - cases[i].coverage) < 1e-12);
		ow_run_total_free(total);
	}
}

/* An unknown interval of 100 packets, and two of which nothing is known: they count as the others do on average. */
static void unknown_intervals(void **state)
{
	(void)state;
	struct ow_run_total *total = create();
	struct ow_interval_result good = interval(0, OW_RESULT_MEASURED, 100, 0, 2, 0),
				  bad = interval(1, OW_RESULT_UNKNOWN, 100, 0, 0, 0),
				  blind = interval(2, OW_RESULT_UNKNOWN, 0, 0, 0, 0), sum;
	add(total, &good, 500);
	add(total, &bad, 0);
	add(total, &blind, 0);
	ow_run_total_gap(total, 1);
	ow_run_total_result(total, &sum);
	assert_int_equal(sum.status, OW_RESULT_PARTIAL);
	assert_int_equal(ow_cause_of(sum.cause), OW_CAUSE_INTERVALS_UNKNOWN);
	assert_non_null(strstr(sum.cause, "of 4 intervals 3 unknown"));
	assert_int_equal(sum.sent, 100);
	assert_int_equal(sum.total_sent, 200);
	assert_true(fabs(sum.coverage - 100.0 / 400) < 1e-12);
	assert_true(fabs(sum.loss_ratio.value - 0.02) < 1e-12);
	ow_run_total_free(total);
}

/* No interval, only unknown ones, or only gaps: no number is made up. */
static void nothing_is_known(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct ow_run_total *total = create();
		struct ow_interval_result bad = interval(0, OW_RESULT_UNKNOWN, 100, 0, 0, 0), sum;
		if (kind == 1)
			add(total, &bad, 0);
		if (kind == 2)
			ow_run_total_gap(total, 5);
		ow_run_total_result(total, &sum);
		assert_int_equal(sum.status, OW_RESULT_UNKNOWN);
		assert_int_equal(ow_cause_of(sum.cause), OW_CAUSE_NONE_COMPARED);
		assert_int_equal(sum.loss_ratio.status, OW_VALUE_NONE);
		assert_int_equal(sum.mean_ns.status, OW_VALUE_NONE);
		assert_int_equal(sum.max_ns.status, OW_VALUE_NONE);
		if (kind)
			assert_true(sum.coverage == 0);
		ow_run_total_free(total);
	}
}

/* A sampled interval stands for more packets than it has: loss is weighted, extremes are not known any more. */
static void samples(void **state)
{
	(void)state;
	struct ow_run_total *total = create();
	struct ow_interval_result all = interval(0, OW_RESULT_MEASURED, 1000, 0, 0, 0),
				  sampled = interval(1, OW_RESULT_MEASURED, 1000, 0, 100, 0), sum;
	sampled.sample_shift = 3;
	sampled.total_sent = 8000;
	add(total, &all, 1000);
	add(total, &sampled, 1000);
	ow_run_total_result(total, &sum);
	assert_int_equal(sum.sent, sum.matched + sum.lost);
	/* 8 * 100 of 1000 + 8 * 1000. */
	assert_true(sum.loss_ratio.low < 800.0 / 9000 && sum.loss_ratio.high > 800.0 / 9000);
	assert_true(fabs(sum.loss_ratio.value - 800.0 / 9000) < 0.001);
	assert_int_equal(sum.max_ns.status, OW_VALUE_NONE);
	assert_int_equal(sum.max_ns.reason, OW_REASON_DELAYS_NOT_ALL_KNOWN);
	ow_run_total_free(total);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_known),    cmocka_unit_test(unknown_intervals),
		cmocka_unit_test(sender_was_away), cmocka_unit_test(nothing_is_known),
		cmocka_unit_test(samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
