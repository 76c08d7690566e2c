/* SPDX-License-Identifier: Apache-2.0 */
/* Some figures of the FineComb paper: a trial, the analysis, the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "claims.h"

static const struct expected_figure expected[] = {
	{"finecomb-4a", "yy", true},          {"finecomb-4b", NULL, false}, {"finecomb-4c", NULL, false},
	{"finecomb-5a", NULL, false},         {"finecomb-5b", NULL, false}, {"finecomb-5c", NULL, false},
	{"finecomb-5d", NULL, false},         {"finecomb-5e", NULL, false}, {"finecomb-5f", NULL, false},
	{"finecomb-6a", NULL, false},         {"finecomb-6b", NULL, false}, {"finecomb-7a", NULL, false},
	{"finecomb-7b", NULL, false},         {"finecomb-8", "y", false},   {"finecomb-9", "yy", false},
	{"finecomb-table", "???????", false},
};

static void test_claims(void **state)
{
	(void)state;
	check_figures(ow_figures_finecomb, expected, sizeof expected / sizeof *expected, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
