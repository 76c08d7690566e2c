/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks that go on, at the same pace, and a state that says what the kernel says. */
#include "base/clock.h"

#include "base/time.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/timex.h>
#include <time.h>
#include <cmocka.h>

static void clocks_go_on(void **state)
{
	(void)state;
	int64_t real = ow_clock_real_ns(), steady = ow_clock_steady_ns(), before = steady;
	for (int i = 0; i < 100000; i++) {
		int64_t now = ow_clock_steady_ns();
		assert_true(now >= before);
		before = now;
	}
	assert_true(before > steady);
	/* 2020 .. 2100 */
	assert_true(real > 1577836800 * OW_NS_PER_S && real < 4102444800 * OW_NS_PER_S);
	int64_t library = time(NULL);
	assert_true(library - real / OW_NS_PER_S <= 60 && real / OW_NS_PER_S - library <= 60);
}

static void state_is_the_kernels(void **state)
{
	(void)state;
	struct ow_clock_state clock;
	struct timex timex = {0};
	ow_clock_state(&clock);
	if (adjtimex(&timex) == TIME_ERROR || timex.status & STA_UNSYNC) {
		assert_false(clock.synchronised);
		assert_true(clock.error_ns == OW_CLOCK_UNKNOWN);
		return;
	}
	assert_true(clock.synchronised);
	assert_true(clock.error_ns >= 0 && clock.error_ns < OW_CLOCK_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(clocks_go_on), cmocka_unit_test(state_is_the_kernels)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
