/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the RDA paper run, and their claims come out as docs/reproduction.md says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "claims.h"

static const struct expected_figure expected[] = {
	{"rda-6", "y", false},
	{"rda-7", "yy?", true},
	{"rda-8", "yy?", true},
	{"rda-10", "?", false, true},
	{"rda-11", "y?y", false, true},
	{"rda-12", "??", false, true},
	{"rda-13", "??", false, true},
	{"rda-14", "??", false, true},
	{"rda-15", "??", false},
	{"rda-s1", "ynny", true},
	{"rda-s2", "ynny", true},
	{"rda-s3", "n", true},
	{"rda-s4", "n", true},
	{"rda-s5", "y", false},
	{"rda-s6", "?yy", true},
	{"rda-s7", "?yy", true},
	{"rda-s8", "?", true},
	{"rda-s9", "?", true},
	{"rda-s10", "?", true},
	{"rda-s11", "?", true},
	{"rda-table-1", "yyy", false},
	{"rda-published", "ny", true},
	{"rda-late-binding", "n", false},
};

static void test_claims(void **state)
{
	(void)state;
	check_figures(ow_figures_rda, expected, sizeof expected / sizeof *expected, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
