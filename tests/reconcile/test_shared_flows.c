/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that came from the other point are remembered for seconds, whatever the intervals are, and not for ever. */
#include "reconcile/shared_flows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/hash.h"

#define SECOND INT64_C(1000000000)

/* One flow, then intervals of this length until it is forgotten: how long that takes. */
static int64_t remembered_ns(int64_t length_ns)
{
	struct ow_shared_flows flows = {0};
	int64_t at_ns = 1000 * SECOND;
	ow_shared_flows_turn(&flows, at_ns);
	assert_int_equal(ow_shared_flows_add(&flows, 77), 0);
	while (ow_shared_flows_has(&flows, 77)) {
		at_ns += length_ns;
		ow_shared_flows_turn(&flows, at_ns);
	}
	ow_shared_flows_done(&flows);
	return at_ns - 1000 * SECOND;
}

static void test_time(void **state)
{
	(void)state;
	assert_int_equal(remembered_ns(SECOND / 100), 10 * SECOND);
	assert_int_equal(remembered_ns(SECOND), 10 * SECOND);
	/* A longer interval is remembered until the next has ended. */
	assert_int_equal(remembered_ns(60 * SECOND), 120 * SECOND);
}

/* A flood of flows does not take memory without limit. */
static void test_flood(void **state)
{
	(void)state;
	struct ow_shared_flows flows = {0};
	uint64_t n = 0;
	for (int64_t i = 0; i < 8; i++) {
		ow_shared_flows_turn(&flows, 1000 * SECOND + i);
		for (int k = 0; k < 100000; k++)
			assert_int_equal(ow_shared_flows_add(&flows, ow_mix64(++n)), 0);
	}
	assert_true(flows.set[0].used + flows.set[1].used <= 200000);
	assert_true(ow_shared_flows_has(&flows, ow_mix64(n)) && !ow_shared_flows_has(&flows, ow_mix64(1)));
	ow_shared_flows_done(&flows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_time), cmocka_unit_test(test_flood)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
