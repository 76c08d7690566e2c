/* SPDX-License-Identifier: Apache-2.0 */
/* Health of a point: what is written comes back, and what anybody may publish instead does no harm. */
#include "fleet/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char *print(const struct ow_health *health, size_t *size)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, size);
	ow_health_print(out, health);
	fclose(out);
	return text;
}

static void comes_back(void **state)
{
	(void)state;
	struct ow_health health = {.point = "london",
	                           .version = "0.1.0",
	                           .state = "measuring",
	                           .time_ns = INT64_C(1794848195476988077),
	                           .started_ns = 7,
	                           .peers = 3,
	                           .connected = 2,
	                           .lanes = 8,
	                           .frames = 1234567890123,
	                           .dropped = 5,
	                           .store_waiting = 6,
	                           .store_lost = 1,
	                           .store_failing = true,
	                           .memory_bytes = 83959808,
	                           .clock_known = true,
	                           .clock_synchronised = true,
	                           .clock_error_ns = 1500,
	                           .last_result_ns = 9,
	                           .certificate_until_s = 10,
	                           .config_version = 7,
	                           .config_refused = 8,
	                           .config_why = "line 3: \"x\" is not y",
	                           .config_kept = "interfaces, memory"},
			 again;
	struct ow_error err;
	size_t size;
	char *text = print(&health, &size);
	assert_true(size < OW_HEALTH_MAX);
	assert_int_equal(ow_health_parse(text, size, &again, &err), 0);
	char *second = print(&again, &size);
	assert_string_equal(text, second);
	free(text);
	free(second);
}

static void later_members_are_skipped(void **state)
{
	(void)state;
	static const char text[] = "{\"point\": \"a\", \"new\": {\"x\": [1]}, \"peers\": 2}";
	struct ow_health health;
	struct ow_error err;
	assert_int_equal(ow_health_parse(text, strlen(text), &health, &err), 0);
	assert_int_equal(health.peers, 2);
	assert_int_equal(health.lanes, 0);
}

static void garbage(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
	                                  "{",
	                                  "[]",
	                                  "7",
	                                  "{\"peers\": \"x\"}",
	                                  "{\"state\": 1}",
	                                  "{\"peers\": 1.5}",
	                                  "{\"clock_known\": 1}",
	                                  "{\"peers\": 1, \"peers\": 2}",
	                                  "{} {}"};
	struct ow_health health;
	struct ow_error err;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (ow_health_parse(bad[i], strlen(bad[i]), &health, &err) >= 0)
			fail_msg("%s", bad[i]);
	}
	/* Nothing that could control a terminal, and no count below 0. */
	static const char escape[] = "{\"state\": \"\\u001b[31mred\", \"peers\": -5}";
	assert_int_equal(ow_health_parse(escape, strlen(escape), &health, &err), 0);
	assert_null(strchr(health.state, 27));
	assert_int_equal(health.peers, 0);
	/* Longer than any health is. */
	char *large = malloc(OW_HEALTH_MAX + 1);
	memset(large, ' ', OW_HEALTH_MAX + 1);
	assert_true(ow_health_parse(large, OW_HEALTH_MAX + 1, &health, &err) < 0);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(later_members_are_skipped),
		cmocka_unit_test(garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
