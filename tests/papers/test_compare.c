/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods get the packets that the exact match counts: the direct exchange of all of them gives the exact result,
 * for any traffic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "papers/compare.h"
#include "sim/sim.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define A "test-compare-a.pcap"
#define B "test-compare-b.pcap"

static void simulate(struct ow_sim_options *o)
{
	struct ow_sim_truth truth;
	struct ow_error err;
	o->packets = 30000;
	o->rate_pps = 100000;
	o->flows = 50;
	o->side[OW_SIDE_A].path = A;
	o->side[OW_SIDE_B].path = B;
	assert_int_equal(ow_sim_delay_parse("weibull:20us,0.7", &o->delay, &err), 0);
	if (ow_sim_run(o, &truth, &err) < 0)
		fail_msg("%s", err.text);
}

static const struct ow_compare_row *find(const struct ow_method_comparison *c, const char *name)
{
	for (size_t i = 0; i < c->rows; i++) {
		if (strcmp(c->row[i].name, name) == 0)
			return &c->row[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

static struct ow_compare *open_pair(enum ow_direction direction)
{
	struct ow_compare_options o = {.direction = direction, .memory = 16384, .seed = 5};
	struct ow_compare *compare;
	struct ow_error err;
	ow_match_defaults(&o.match);
	if (ow_compare_open(A, B, &o, &compare, &err) < 0)
		fail_msg("%s", err.text);
	return compare;
}

static void check_direct(enum ow_direction direction, bool delays)
{
	struct ow_compare *compare = open_pair(direction);
	const struct ow_method_comparison *c;
	assert_int_equal(ow_compare_run(compare, &c), 0);
	const struct ow_result *exact = c->exact;
	const struct ow_compare_row *direct = find(c, "direct");
	const struct ow_estimate *e = &direct->estimate;
	assert_string_equal(direct->failure, "");
	assert_int_equal(e->lost.status, OW_VALUE_EXACT);
	assert_true(e->lost.value == (double)exact->lost);
	assert_true(e->extra.value == (double)exact->extra);
	assert_int_equal(e->useful, exact->matched);
	if (delays) {
		assert_true(fabs(e->mean_ns.value - exact->delay.mean_ns) <= 1e-9 * fabs(exact->delay.mean_ns));
		assert_true(fabs(e->stddev_ns.value - exact->delay.stddev_ns) <= 1e-6 * exact->delay.stddev_ns);
		for (int q = 0; q < OW_QUANTILES; q++)
			assert_true(ow_compare_covers(&e->quantile_ns[q], exact->delay.quantile_ns[q]));
	}
	/* Every method gives its mean here, or says why not, within its memory. */
	for (size_t i = 0; i < c->rows; i++) {
		const struct ow_compare_row *row = &c->row[i];
		assert_string_equal(row->failure, "");
		assert_true(row == direct || row->memory_bytes <= 16384);
		assert_true(row->estimate.mean_ns.status != OW_VALUE_NONE || row->estimate.mean_ns.reason);
		assert_true(row->baseline || row->insert_ns > 0);
	}
	ow_compare_free(compare);
}

static void test_plain(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	o.loss.ratio = 0.01;
	simulate(&o);
	check_direct(OW_A_TO_B, true);
}

static void test_duplicates(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	o.loss.ratio = 0.005;
	o.duplicate = 0.02;
	simulate(&o);
	check_direct(OW_A_TO_B, true);
}

static void test_both_directions(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	o.loss.ratio = 0.01;
	o.reverse = 0.4;
	simulate(&o);
	check_direct(OW_A_TO_B, true);
	check_direct(OW_B_TO_A, true);
}

/* Pieces of superframes stand for several packets. */
static void test_superframes(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	o.tcp = 1;
	o.loss.ratio = 0.005;
	o.side[OW_SIDE_A].superframes = true;
	simulate(&o);
	check_direct(OW_A_TO_B, true);
}

/* The assignment of copies may differ, but the counts agree. */
static void test_identical_packets(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	o.identical = 0.05;
	simulate(&o);
	check_direct(OW_A_TO_B, false);
}

static void test_refuses(void **state)
{
	(void)state;
	struct ow_sim_options o;
	ow_sim_defaults(&o);
	simulate(&o);
	struct ow_compare_options options = {.direction = OW_B_TO_A, .memory = 4096};
	struct ow_compare *compare = NULL;
	struct ow_error err;
	ow_match_defaults(&options.match);
	assert_int_equal(ow_compare_open(A, B, &options, &compare, &err), -EINVAL);
	assert_non_null(strstr(err.text, "B to A"));
	options.direction = OW_A_TO_B;
	assert_int_equal(ow_compare_open("nowhere", B, &options, &compare, &err), -ENOENT);
	assert_null(compare);
	ow_compare_free(NULL);
	/* A method with too little memory says so in its row, and the others are run. */
	options.memory = 64;
	assert_int_equal(ow_compare_open(A, B, &options, &compare, &err), 0);
	const struct ow_method_comparison *c;
	assert_int_equal(ow_compare_run(compare, &c), 0);
	assert_string_equal(find(c, "direct")->failure, "");
	ow_compare_free(compare);
}

static int teardown(void **state)
{
	(void)state;
	unlink(A);
	unlink(B);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_both_directions),
		cmocka_unit_test(test_superframes),
		cmocka_unit_test(test_identical_packets),
		cmocka_unit_test(test_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
