/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the COLATE paper run, and their claims come out as docs/reproduction.md says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "claims.h"

static const struct expected_figure expected[] = {
	{"colate-2", "n", false},           {"colate-3", "n", false},       {"colate-4", "yyn", false},
	{"colate-5", "yy", false},          {"colate-6a", "ynn?y", true},   {"colate-6b", "ynn?y", true},
	{"colate-6c", "ynn?y", true},       {"colate-7", "ynnnn", true},    {"colate-8a", "nn?y", true},
	{"colate-8b", "nn?y", true},        {"colate-8c", "nn?y", true},    {"colate-9", "nn", false},
	{"colate-10", "nnny", false},       {"colate-11", "y??nn?y", true}, {"colate-countmin", "yny", false},
	{"colate-sizes", "y??yy???", true}, {"colate-loss", "nyyy", true},  {"colate-table-2", "???", false},
	{"colate-table-3", "yyy", false},
};

static void test_claims(void **state)
{
	(void)state;
	check_figures(ow_figures_colate, expected, sizeof expected / sizeof *expected, NULL);
}

/* A folder of captures that is not there is an error, not made traffic. */
static void test_traces(void **state)
{
	(void)state;
	struct ow_figure_run *run;
	struct ow_error err;
	for (const struct ow_figure *f = ow_figures_colate; f->name; f++) {
		if (strcmp(f->name, "colate-5") == 0)
			assert_true(ow_figure_compute(
					    f, &(struct ow_figure_options){.quick = true, .traces = "/nonexistent"},
					    &run, &err) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims), cmocka_unit_test(test_traces)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
