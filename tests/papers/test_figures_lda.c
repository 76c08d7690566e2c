/* SPDX-License-Identifier: Apache-2.0 */
/* Some figures of the LDA paper: a bound, and active probes beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "claims.h"

static const struct expected_figure expected[] = {
	{"lda-4a", NULL, false}, {"lda-4b", "y", true},   {"lda-4c", NULL, false},
	{"lda-5a", NULL, false}, {"lda-5b", NULL, false}, {"lda-5c", NULL, false},
	{"lda-6a", NULL, false}, {"lda-6b", "yy", true},  {"lda-6c", NULL, false},
};

static void test_claims(void **state)
{
	(void)state;
	check_figures(ow_figures_lda, expected, sizeof expected / sizeof *expected, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
